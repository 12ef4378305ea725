package journal

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
)

// Memory is a [cardwire.Journal] that forgets everything when the program ends: an order may then be
// paid again. Until then it remembers all references that are reserved; 65,536 that are unresolved, and
// then begins no other; the last 65,536 that were executed or closed; and the last 4,096 that are free:
// refused for now, or not sent. Its zero value is ready for concurrent use.
type Memory struct {
	mu               sync.Mutex
	service, account string          // "": none has been recorded
	rows             map[rowKey]*row // nil: nothing has been recorded
	ended            list.List       // of the rows that are executed or closed, oldest first
	free             list.List       // of the rows that may be begun again, oldest first
	reserved         list.List       // of the rows that are resolved and reserved
}

// The bounds of a Memory.
const (
	maxUnresolved = 64 << 10
	maxEnded      = 64 << 10
	maxFree       = 4 << 10
)

// NewMemory returns an empty journal, for clients of one account only.
func NewMemory() *Memory { return new(Memory) }

// Begin implements [cardwire.Journal]. It also fails if 65,536 references are unresolved.
func (j *Memory) Begin(ctx context.Context, i cardwire.Intent) error {
	if i.Op == "" || i.Reference == "" || i.Call == "" {
		return invalid("an intent needs an operation, a reference and a call")
	}
	return j.change(ctx, i, true, func(r *row) (Record, error) {
		next, err := r.Begin(i, Hold{}, time.Now())
		unresolved := len(j.rows) - j.ended.Len() - j.free.Len() - j.reserved.Len()
		if err == nil && unresolved >= maxUnresolved && !r.IsUnresolved() {
			return r.Record, safe("cardwire: 65,536 references are unresolved: resolve them first", nil)
		}
		return next, err
	})
}

// Reserve pins the reference of an order to its body before it is sent: a call with another body
// is refused, and leaves the reference as it is. Op, Reference and BodySHA256 must not be empty.
// What is neither new nor free is pinned too, and Reserve returns what Begin would; of another
// body than what is on record it returns [cardwire.ErrOtherBody].
func (j *Memory) Reserve(ctx context.Context, i cardwire.Intent) error {
	if err := checked(check.Given("Op", string(i.Op)), check.Given("Reference", i.Reference)); err != nil {
		return err
	}
	return j.change(ctx, i, true, func(r *row) (Record, error) { return r.Reserve(i, Hold{}, time.Now()) })
}

// End implements [cardwire.Journal].
func (j *Memory) End(ctx context.Context, i cardwire.Intent, result cardwire.IntentResult) error {
	anywhere := i
	anywhere.Service = ""
	return j.change(ctx, anywhere, false, func(r *row) (Record, error) {
		_, isDenied := r.denied[i.Call]
		return r.End(i, result, isDenied, !r.Exists(), Hold{}, time.Now())
	})
}

// Void closes a reference under which nothing was executed, as [cardwire.Journal] says. By must not be
// empty; the journal does not keep it, or the note.
func (j *Memory) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	err := checked(check.Given("Op", string(i.Op)), check.Given("Reference", i.Reference), check.Given("by", by),
		check.Note("note", note))
	if err != nil {
		return err
	}
	return j.change(ctx, i, false, func(r *row) (Record, error) {
		if !r.Exists() && i.Call == "" && !j.knows(i.Op) {
			return r.Record, errUnknownOp
		}
		return r.Void(i, Hold{}, time.Now())
	})
}

// Unresolved returns the calls to ask the service about, oldest first: those that ended
// as unknown, and those that have not ended by their SendBy.
func (j *Memory) Unresolved() []cardwire.Intent {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []cardwire.Intent
	for _, r := range j.rows {
		if r.IsUnresolved() && !r.InProgress(time.Now()) {
			all = append(all, r.Intent)
		}
	}
	slices.SortFunc(all, func(a, b cardwire.Intent) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Reference, b.Reference))
	})
	return all
}

// Resolve records what a person found out about the call i.Call.
func (j *Memory) Resolve(ctx context.Context, i cardwire.Intent, found Resolution) error {
	if err := found.Validate(); err != nil {
		return err
	}
	return j.change(ctx, i, false, func(r *row) (Record, error) {
		if !r.Exists() && i.Call == "" && !j.knows(i.Op) {
			return r.Record, errUnknownOp
		}
		next, err := r.Resolve(i, found, j.executedAs(i, found.ServiceID), Hold{}, time.Now())
		if next != r.Record && found.Outcome != cardwire.OutcomeExecuted {
			if r.denied == nil {
				r.denied = map[string]struct{}{}
			}
			r.denied[i.Call] = struct{}{}
		}
		return next, err
	})
}

// knows reports whether op is one that a client records, or on record.
func (j *Memory) knows(op cardwire.Op) bool {
	for key := range j.rows {
		if key.op == op {
			return true
		}
	}
	return op.IsRecorded()
}

var errUnknownOp = invalid("no client records this Op, and nothing is on record under it: " +
	"use a constant, like OpCreateTransfer")

// executedAs returns another reference that was executed as serviceID; "": none.
func (j *Memory) executedAs(i cardwire.Intent, serviceID string) string {
	if serviceID == "" {
		return ""
	}
	for key, r := range j.rows {
		if r.Outcome == cardwire.OutcomeExecuted && r.ServiceID == serviceID && key.op == i.Op && key.reference != i.Reference {
			return key.reference
		}
	}
	return ""
}

// change lets rule say what becomes of the row of an intent.
func (j *Memory) change(ctx context.Context, i cardwire.Intent, begins bool, rule func(*row) (Record, error)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := BelongsTo(i, j.service, j.account); err != nil {
		return err
	}
	if begins && j.service == "" {
		j.service, j.account = i.Service, i.Account
	}
	r := j.rows[keyOf(i)]
	if r == nil {
		r = new(row)
	}
	before := j.listOf(r)
	next, err := rule(r)
	if next == r.Record {
		return err
	}
	if j.rows == nil {
		j.rows = map[rowKey]*row{}
	}
	r.Record = next
	j.rows[keyOf(i)] = r
	if after := j.listOf(r); after != before {
		j.move(r, before, after)
	}
	return err
}

// listOf returns the list that a row belongs to; nil: none.
func (j *Memory) listOf(r *row) *list.List {
	switch {
	case r.IsUnresolved(), !r.Exists():
		return nil
	case r.Reserved:
		return &j.reserved
	case r.isFree():
		return &j.free
	}
	return &j.ended
}

// move makes a row the newest of another list, which forgets its oldest if it is full.
func (j *Memory) move(r *row, from, to *list.List) {
	if from != nil {
		from.Remove(r.place)
	}
	if to == nil {
		return
	}
	r.place = to.PushBack(r)
	if to == &j.ended && to.Len() > maxEnded || to == &j.free && to.Len() > maxFree {
		oldest := to.Remove(to.Front()).(*row)
		delete(j.rows, keyOf(oldest.Intent))
	}
}

type rowKey struct {
	op        cardwire.Op
	reference string
}

func keyOf(i cardwire.Intent) rowKey { return rowKey{i.Op, i.Reference} }

// row is what is known of a reference. A full journal has 135,000 of them.
type row struct {
	Record

	denied map[string]struct{} // by Call, the calls that a person denied
	place  *list.Element       // in its list
}
