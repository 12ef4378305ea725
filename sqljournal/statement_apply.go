package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
)

var (
	// ErrUncertain reports that a finding has nothing to apply: both sides agree, or a person
	// must ask the service.
	ErrUncertain = errors.New("sqljournal: the finding says of nothing new that it happened: ask the service")
	// ErrMoved reports that the reference has changed since the report, and was left as
	// it is.
	ErrMoved = errors.New("sqljournal: the reference has changed since the report: reconcile again")
)

// Apply records what a finding of [Journal.Reconcile] says that happened, as an event with who,
// why, and the line of the statement: executed, or what the comment of its [FindingKind] says.
// It never records that something did not happen. By must not be empty. If another reference has
// the service ID of the line, a reference that could be sent again is recorded without it, and of
// an unresolved one Apply returns an [ErrDecided].
//
// Applying a finding again changes nothing. If the reference has changed since the report,
// Apply leaves it and returns [ErrMoved]; if there is nothing to record, it returns
// [ErrUncertain]. After an interruption reconcile again, and apply what is left.
func (j *Journal) Apply(ctx context.Context, f Finding, by, note string) error {
	return j.decide(ctx, "applying the finding", func(t *Tx) (refused, err error) { return t.apply(ctx, f, by, note) })
}

// Apply is [Journal.Apply] in the transaction.
func (t *Tx) Apply(ctx context.Context, f Finding, by, note string) error {
	refused, err := t.apply(ctx, f, by, note)
	return cmp.Or(err, refused)
}

func (t *Tx) apply(ctx context.Context, f Finding, by, note string) (refused, err error) {
	if err := check.Given("by", by); err != nil {
		return nil, fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
	}
	if !f.Applies() {
		return ErrUncertain, nil
	}
	found := f.resolution(by, note)
	i := cardwire.Intent{Op: f.Op, Reference: f.Reference, Summary: f.summary(), Time: f.Line.Time}
	e := &event{kind: "resolved", by: by, note: found.Note}
	if found.Outcome == cardwire.OutcomeUnknown {
		e.kind = "pending"
	}
	return t.change(ctx, "applying the finding", i, e, func(k known) (next cardwire.Record, refused, err error) {
		switch next = k.record(); {
		case isRecorded(k.Entry, found):
			return next, nil, nil
		case hasMoved(f.Entry, k.Entry):
			return next, ErrMoved, nil
		}
		other, err := t.executedAs(ctx, i, found.ServiceID)
		if err != nil {
			return next, nil, err
		}
		listed, result := i, cardwire.IntentResult{Outcome: found.Outcome, ServiceID: found.ServiceID}
		listed.SettledBy = k.now.Add(time.Duration(k.longest) * time.Microsecond)
		next, refused = next.Listed(listed, result, other, k.now)
		if other != "" {
			e.note = found.Note + "; without the service ID: another reference has it"
		}
		return next, decided(refused), nil
	})
}

// resolution is what Apply records: executed, or unknown.
func (f Finding) resolution(by, note string) cardwire.Resolution {
	if note != "" {
		note += "; "
	}
	r := cardwire.Resolution{By: by, Note: note + "in the statement: " + inWords(f.Line)}
	if f.Kind != FindingPending && f.Kind != FindingDiffers {
		r.Outcome, r.ServiceID = cardwire.OutcomeExecuted, f.Line.ServiceID
	}
	return r
}

// isRecorded reports whether the entry says what the resolution does.
func isRecorded(e Entry, r cardwire.Resolution) bool {
	return !isNothing(e) && e.Outcome == r.Outcome && !e.InProgress &&
		(r.ServiceID == "" || e.ServiceID == "" || e.ServiceID == r.ServiceID)
}

// hasMoved reports whether an entry is no longer what the report had.
func hasMoved(then, now Entry) bool {
	return then.Op != now.Op || then.Call != now.Call || then.Outcome != now.Outcome || then.Closed != now.Closed ||
		then.Proved != now.Proved || then.ServiceID != now.ServiceID || !then.SettledBy.Equal(now.SettledBy)
}
