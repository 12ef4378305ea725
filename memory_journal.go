package cardwire

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
)

// MemoryJournal is the [Journal] of a client without [WithJournal]. It follows the same rules,
// but only until the program ends. It remembers every unresolved reference, at most 65,536,
// the last 65,536 that were executed or closed, and the last 4,096 that are free: refused for
// now, or not sent. Its zero value is empty. It is safe for concurrent use.
type MemoryJournal struct {
	mu      sync.Mutex
	service string          // "": none has been recorded
	rows    map[rowKey]*row // nil: nothing has been recorded
	ended   list.List       // of the rows that are executed or closed, oldest first
	free    list.List       // of the rows that may be begun again, oldest first
}

// The bounds of a MemoryJournal.
const (
	maxUnresolved = 64 << 10
	maxEnded      = 64 << 10
	maxFree       = 4 << 10
)

// NewMemoryJournal returns an empty journal, to be shared by clients of one service only.
func NewMemoryJournal() *MemoryJournal { return new(MemoryJournal) }

// Begin implements [Journal]. It also fails if 65,536 references are unresolved.
func (j *MemoryJournal) Begin(ctx context.Context, i Intent) error {
	if i.Op == "" || i.Reference == "" || i.Call == "" {
		return invalid("an intent needs an operation, a reference and a call")
	}
	return j.change(ctx, i, func(r *row) error {
		unresolved := len(j.rows) - j.ended.Len() - j.free.Len()
		return r.begin(i, time.Now(), unresolved >= maxUnresolved && !r.isUnresolved())
	})
}

// End implements [Journal]. It records a result whatever the Service of i is, because the call
// happened.
func (j *MemoryJournal) End(ctx context.Context, i Intent, result IntentResult) error {
	anywhere := i
	anywhere.Service = ""
	return j.change(ctx, anywhere, func(r *row) error { return r.end(i, result, time.Now()) })
}

// Void closes a reference under which nothing was executed, as [Journal] says. By must not be
// empty; the journal does not keep it, or the note.
func (j *MemoryJournal) Void(ctx context.Context, i Intent, by, note string) error {
	err := checked(check.Given("Op", string(i.Op)), check.Given("Reference", i.Reference), check.Given("by", by),
		check.Note("note", note))
	if err != nil {
		return err
	}
	i.Repeatable = i.Repeatable || i.Op == OpCancelOrRetry
	return j.change(ctx, i, func(r *row) error { return r.void(i, time.Now()) })
}

// Unresolved returns the calls to ask the service about, oldest first: those that ended
// as unknown, and those that have not ended by their SendBy.
func (j *MemoryJournal) Unresolved() []Intent {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []Intent
	for _, r := range j.rows {
		if r.isUnresolved() && !r.inProgress(time.Now()) {
			list = append(list, r.intent)
		}
	}
	slices.SortFunc(list, func(a, b Intent) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Reference, b.Reference))
	})
	return list
}

// Resolve records what a person found out about the call i.Call, as [Resolution] says.
func (j *MemoryJournal) Resolve(ctx context.Context, i Intent, found Resolution) error {
	if err := found.Validate(); err != nil {
		return err
	}
	return j.change(ctx, i, func(r *row) error {
		if !r.exists {
			return fmt.Errorf("cardwire: nothing is on record for %s %s", i.Op, i.Reference)
		}
		return r.resolve(i, found, j.executedAs(i.Op, found.ServiceID), time.Now())
	})
}

// Validate returns an [ErrInvalidParams] for a resolution that no journal may record.
func (r Resolution) Validate() error {
	switch err := checked(check.Given("By", r.By), check.Note("Note", r.Note), check.Visible("ServiceID", r.ServiceID)); {
	case err != nil:
		return err
	case r.Outcome != OutcomeExecuted && r.Outcome != OutcomeRefused && r.Outcome != OutcomeNotSent:
		return invalid("Outcome must be executed, refused or not sent: leave the call unresolved until one is known")
	case r.Outcome == OutcomeExecuted:
		return nil
	case r.ServiceID != "":
		return invalid("ServiceID is only for what was executed")
	case r.AsOf.IsZero():
		return invalid("AsOf is missing: set it to when the service was asked")
	case r.AsOf.After(time.Now()):
		return invalid("AsOf is in the future")
	}
	return nil
}

// executedAs returns the reference that op executed as serviceID; "": none.
func (j *MemoryJournal) executedAs(op Op, serviceID string) string {
	if serviceID == "" {
		return ""
	}
	for key, r := range j.rows {
		if r.outcome == OutcomeExecuted && r.serviceID == serviceID && key.op == op {
			return key.reference
		}
	}
	return ""
}

func (j *MemoryJournal) change(ctx context.Context, i Intent, f func(*row) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if i.Service != "" && j.service != "" && i.Service != j.service {
		return shown("cardwire: the journal belongs to the service at "+j.service+", and the call is for "+i.Service+
			": check the base URL, and use a separate journal for each service", nil)
	}
	j.service = cmp.Or(j.service, i.Service)
	if j.rows == nil {
		j.rows = map[rowKey]*row{}
	}
	r := j.rows[keyOf(i)]
	if r == nil {
		r = new(row)
	}
	before := j.home(r)
	err := f(r)
	if r.exists {
		j.rows[keyOf(r.intent)] = r
	}
	if after := j.home(r); after != before {
		j.move(r, before, after)
	}
	return err
}

// home returns the list that a row belongs to; nil: none.
func (j *MemoryJournal) home(r *row) *list.List {
	switch {
	case r.isEnded():
		return &j.ended
	case r.isUnresolved(), !r.exists:
		return nil
	}
	return &j.free
}

// move makes a row the newest of another list, which forgets its oldest if it is full.
func (j *MemoryJournal) move(r *row, from, to *list.List) {
	if from != nil {
		from.Remove(r.place)
	}
	if to == nil {
		return
	}
	r.place = to.PushBack(r)
	if to == &j.ended && to.Len() > maxEnded || to == &j.free && to.Len() > maxFree {
		oldest := to.Remove(to.Front()).(*row)
		delete(j.rows, keyOf(oldest.intent))
	}
}

type rowKey struct {
	op        Op
	reference string
}

func keyOf(i Intent) rowKey { return rowKey{i.Op, i.Reference} }

// row is what is known of a reference. A full journal has 135,000 of them.
type row struct {
	intent    Intent // of the call on record
	serviceID string
	earlier   map[string]said // by Call, calls that did nothing: all that a person denied, and the last other
	outcome   Outcome
	place     *list.Element // in its list
	exists    bool
	open      bool // the call has not ended; the outcome is then unknown
	closed    bool // it is never granted again
	proven    bool // a response, not a person, says that it was executed
}

func (r *row) isUnresolved() bool { return r.exists && r.outcome == OutcomeUnknown }

func (r *row) isEnded() bool { return r.outcome == OutcomeExecuted || r.closed }

func (r *row) inProgress(now time.Time) bool { return r.open && now.Before(r.intent.SendBy) }

func (r *row) begin(i Intent, now time.Time, full bool) error {
	if r.open && r.intent.Call == i.Call {
		return nil
	}
	if err := r.refusal(i, now); err != nil {
		return err
	}
	if full {
		return shown("cardwire: 65,536 references are unresolved: resolve them first", nil)
	}
	if freed := r.intent.Call; r.exists && !i.Repeatable && !r.earlier[freed].byPerson {
		r.note(freed, said{outcome: r.outcome})
	}
	*r = row{exists: true, intent: i, open: true, earlier: r.earlier, place: r.place}
	return nil
}

// refusal returns the error of Begin for the row; nil: the reference is free.
func (r *row) refusal(i Intent, now time.Time) error {
	d := r.duplicate(now)
	sameBody := !r.isOther(i.BodySHA256)
	switch {
	case !r.exists, i.Repeatable && (d == nil || r.isRepeatableAt(now)):
		return nil
	case d == nil && !sameBody:
		return ErrOtherBody
	case d == nil:
		return nil
	case r.closed, sameBody, i.Repeatable:
		return d
	}
	return fmt.Errorf("%w: %w", ErrOtherBody, d)
}

func (r *row) isOther(body string) bool {
	return r.intent.BodySHA256 != "" && r.intent.BodySHA256 != body
}

// isRepeatableAt reports whether nothing that was sent can still be executed.
func (r *row) isRepeatableAt(now time.Time) bool {
	return r.outcome != OutcomeUnknown || !now.Before(r.intent.SettledBy)
}

// duplicate returns why the reference is not free; nil: it is.
func (r *row) duplicate(now time.Time) *DuplicateIntent {
	switch {
	case r.inProgress(now):
		return &DuplicateIntent{InProgress: true, Remaining: r.intent.SendBy.Sub(now)}
	case r.isUnresolved(), r.isEnded():
		return &DuplicateIntent{Outcome: r.outcome, ServiceID: r.serviceID}
	}
	return nil
}

// end records a result, and returns an error where the record contradicts it.
func (r *row) end(i Intent, result IntentResult, now time.Time) error {
	known := r.exists
	if !known {
		*r = row{exists: true, intent: i, open: true}
	}
	if r.record(i, result) && known {
		return nil
	}
	if d := r.duplicate(now); d != nil {
		found := strings.TrimPrefix(d.Error(), "cardwire: ")
		return shown("cardwire: the record contradicts the result: "+found, d)
	}
	return shown("cardwire: the record of this reference was changed while the call was in progress", nil)
}

// record applies a result, and reports whether the row agreed with it, and does now.
func (r *row) record(i Intent, result IntentResult) bool {
	own := r.intent.Call == i.Call
	switch {
	case !own && i.Repeatable:
		return true // the row is about a later call, which this result does not change
	case result.Outcome == OutcomeExecuted:
		return r.executed(i, own, result.ServiceID)
	case result.Outcome == OutcomeUnknown:
		return r.unknown(i)
	}
	closes := result.Final && !i.Repeatable
	if own && r.open {
		r.open, r.outcome, r.closed = false, result.Outcome, closes
		return true
	}
	toldAgain := !closes && r.earlier[i.Call] == said{outcome: result.Outcome} // End is retried
	return toldAgain || r.outcome == result.Outcome && r.closed == closes
}

// executed records that the call i was executed, whatever the row says.
func (r *row) executed(i Intent, own bool, serviceID string) bool {
	if r.outcome == OutcomeExecuted {
		same := r.serviceID == serviceID && serviceID != ""
		agrees := same || own && (r.serviceID == "" || serviceID == "")
		r.proven, r.serviceID = true, cmp.Or(r.serviceID, serviceID)
		return agrees
	}
	agrees := own && r.outcome == OutcomeUnknown
	r.intent, r.open, r.closed = i, false, false
	r.outcome, r.proven, r.serviceID = OutcomeExecuted, true, serviceID
	return agrees
}

// unknown records that the call i may have been executed.
func (r *row) unknown(i Intent) bool {
	if r.outcome == OutcomeExecuted || r.earlier[i.Call].byPerson {
		return false
	}
	if i.SettledBy.After(r.intent.SettledBy) {
		r.intent.SettledBy = i.SettledBy // by then neither call can be executed
	}
	agrees := r.outcome == OutcomeUnknown // otherwise somebody was told that it did not happen
	r.open, r.closed, r.outcome = false, false, OutcomeUnknown
	return agrees
}

func (r *row) void(i Intent, now time.Time) error {
	repeatable := i.Repeatable || r.intent.Repeatable
	d := r.duplicate(now)
	switch {
	case r.closed, repeatable && (d == nil || r.isRepeatableAt(now)):
		return nil
	case d != nil && r.outcome == OutcomeExecuted && i.BodySHA256 != "" && r.isOther(i.BodySHA256):
		return fmt.Errorf("%w: %w", ErrOtherBody, d)
	case d != nil:
		return d
	case !r.exists:
		i.Time, i.SendBy, i.SettledBy = now, now, now
		r.exists, r.intent, r.outcome = true, i, OutcomeNotSent
	}
	r.closed = true
	return nil
}

// resolve records what a person found out about the call i. other is the reference that
// was executed as the service ID; "": none. now must not be before SettledBy either: by the
// monotonic clock, which nobody can set.
func (r *row) resolve(i Intent, found Resolution, other string, now time.Time) error {
	if found.Outcome == OutcomeExecuted {
		return r.confirm(i.Call, found.ServiceID, other)
	}
	closes := found.Outcome == OutcomeRefused && !r.intent.Repeatable
	free := !r.closed && (r.outcome == OutcomeNotSent || r.outcome == OutcomeRefused)
	switch {
	case r.outcome == found.Outcome && r.closed == closes, free && !closes:
		return nil
	case i.Call != r.intent.Call:
		return errOtherCall
	case r.closed:
		return errors.New("cardwire: the reference is closed: this can only be corrected to executed")
	case r.outcome == OutcomeExecuted && r.proven:
		return errors.New("cardwire: a response proved that it was executed: this cannot be corrected")
	case !free && (found.AsOf.Before(r.intent.SettledBy) || now.Before(r.intent.SettledBy)):
		if r.intent.Time.Round(0).After(now) { // by the wall clock
			return errors.New("cardwire: the clock was ahead when the call began, and so are its times on record: " +
				"until then it can only be resolved as executed")
		}
		return fmt.Errorf("cardwire: the service may still execute it until %s: ask again then",
			r.intent.SettledBy.Format(time.RFC3339))
	}
	r.open, r.outcome, r.closed, r.serviceID = false, found.Outcome, closes, ""
	r.note(i.Call, said{found.Outcome, true})
	return nil
}

// said is how a call is known to have done nothing.
type said struct {
	outcome  Outcome
	byPerson bool // not by a response
}

// note adds what was said of a call, and forgets what was said by the response before it.
func (r *row) note(call string, s said) {
	kept := map[string]said{call: s}
	for call, s := range r.earlier {
		if s.byPerson {
			kept[call] = s
		}
	}
	r.earlier = kept
}

var errOtherCall = errors.New("cardwire: another call is on record under this reference: read it again")

func (r *row) confirm(call, serviceID, other string) error {
	switch {
	case r.outcome == OutcomeExecuted && (serviceID == "" || serviceID == r.serviceID):
		return nil
	case r.proven && r.serviceID != "":
		return errors.New("cardwire: a response proved that it was executed as " + r.serviceID +
			": this cannot be corrected")
	case r.intent.Repeatable && r.intent.Call != call: // the call on record may be in progress
		return errOtherCall
	case other != "":
		return fmt.Errorf("cardwire: the service ID belongs to reference %s: correct the one that is wrong", other)
	}
	r.open, r.closed, r.outcome = false, false, OutcomeExecuted
	r.serviceID = cmp.Or(serviceID, r.serviceID)
	return nil
}

// safeError is an error whose message may be shown.
type safeError struct{ explained }

func shown(message string, wrapped error) error { return &safeError{explained{message, wrapped}} }

func (e *safeError) SafeMessage() string { return e.message }
