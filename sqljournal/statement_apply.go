package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
)

var (
	// ErrUncertain reports that a finding has nothing to apply: both sides agree, or a person
	// must find out more.
	ErrUncertain = errors.New("sqljournal: nothing in the finding is certain enough to be recorded")
	// ErrMoved reports that the reference has changed since the report, and was left as
	// it is.
	ErrMoved = errors.New("sqljournal: the reference has changed since the report: reconcile again")
)

// Apply records what a finding of [Journal.Reconcile] makes certain, as an event with who,
// why, and what the statement says: executed, or what the comment of its [FindingKind] says.
// What was not executed is closed, or freed if Finding.Free is true. By must not be empty. If
// another reference has the service ID of the line, a reference that could be sent again is
// recorded as executed without it.
//
// Applying a finding again changes nothing. If the reference has changed since the report,
// Apply leaves it and returns [ErrMoved]; if nothing is certain, it returns [ErrUncertain]. If
// [Journal.Resolve] refuses it, for example because an unresolved reference would get the
// service ID of another one, Apply returns that error. After an interruption reconcile again,
// and apply what is left.
func (j *Journal) Apply(ctx context.Context, f Finding, by, note string) error {
	return j.together(ctx, "applying the finding", func(t *Tx) error { return t.Apply(ctx, f, by, note) })
}

// Apply is [Journal.Apply] in the transaction.
func (t *Tx) Apply(ctx context.Context, f Finding, by, note string) error {
	if err := check.Given("by", by); err != nil {
		return fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
	}
	if !f.Applies() {
		return ErrUncertain
	}
	// From here on nobody else changes the reference.
	if _, err := t.exec(ctx, lock, f.Op, f.Reference); err != nil {
		return t.journal.failed("applying the finding", err)
	}
	found := f.resolution(by, note)
	now, err := t.Lookup(ctx, f.Op, f.Reference)
	switch {
	case err != nil && !errors.Is(err, ErrNoIntent):
		return err
	case isRecorded(now, found):
		return nil
	case hasMoved(f.Entry, now):
		return ErrMoved
	case found.Outcome == cardwire.OutcomeUnknown:
		return t.recordPending(ctx, f, found)
	}
	i := cardwire.Intent{Op: f.Op, Reference: f.Reference, Summary: f.summary(), Call: f.Entry.Call}
	if isNothing(f.Entry) { // Resolve needs a row; and from here on nobody can send the order
		switch err := t.Void(ctx, i, by, found.Note); {
		case errors.Is(err, cardwire.ErrDuplicateIntent): // since Lookup, which has no row to lock
			return ErrMoved
		case err != nil:
			return err
		}
	}
	err = t.Resolve(ctx, i, found)
	if errors.Is(err, ErrDecided) && isUndone(f.Entry) { // another reference has the service ID
		found.ServiceID, found.Note = "", found.Note+"; without the service ID: another reference has it"
		err = t.Resolve(ctx, i, found)
	}
	return err
}

// summary is that of the order here, or else of the line.
func (f Finding) summary() string { return cmp.Or(f.Entry.Summary, amountOf(f.Line)) }

// resolution is what Apply records; an unknown outcome is that of what is pending.
func (f Finding) resolution(by, note string) cardwire.Resolution {
	if note != "" {
		note += "; "
	}
	r := cardwire.Resolution{By: by, Note: note + f.Note, AsOf: f.AsOf}
	switch f.Kind {
	case FindingPending:
	case FindingNotExecuted, FindingRejected:
		r.Outcome = cardwire.OutcomeRefused
		if f.Free {
			r.Outcome = cardwire.OutcomeNotSent
		}
	default:
		r.Outcome, r.ServiceID = cardwire.OutcomeExecuted, f.Line.ServiceID
	}
	return r
}

// isRecorded reports whether the entry says what the resolution does.
func isRecorded(e Entry, r cardwire.Resolution) bool {
	isDenial := r.Outcome == cardwire.OutcomeRefused || r.Outcome == cardwire.OutcomeNotSent
	switch {
	case isNothing(e), e.Outcome != r.Outcome, e.InProgress:
		return false
	case isDenial:
		return e.Closed == (r.Outcome == cardwire.OutcomeRefused)
	}
	return r.ServiceID == "" || e.ServiceID == "" || e.ServiceID == r.ServiceID
}

// hasMoved reports whether an entry is no longer what the report had.
func hasMoved(then, now Entry) bool {
	return then.Op != now.Op || then.Call != now.Call || then.Outcome != now.Outcome || then.Closed != now.Closed ||
		then.Proved != now.Proved || then.ServiceID != now.ServiceID || !then.SettledBy.Equal(now.SettledBy)
}

// pend records what is pending there as unknown. Its time is the earlier of both, so that
// only a statement that lists it can deny it.
const pend = `@event
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, '', ?3, FALSE, 'unknown', FALSE, FALSE, ?4, 0, '', '',
	@now, CAST(?5 AS @time), @now, @now, @now, 'pending', ?6, ?7
WHERE @this
ON CONFLICT (op, reference) DO UPDATE
SET state = 'unknown', closed = FALSE,
	time = @earlier(i.time, excluded.time), settled_by = @later(i.settled_by, excluded.settled_by),
	ended_at = excluded.ended_at,
	kind = excluded.kind, by = excluded.by, note = excluded.note
WHERE i.state IN ('refused', 'not_sent') AND i.call = ?4 AND NOT i.repeatable`

func (t *Tx) recordPending(ctx context.Context, f Finding, r cardwire.Resolution) error {
	changed, err := t.exec(ctx, pend, f.Op, f.Reference, f.summary(), f.Entry.Call,
		t.journal.dialect.moment(f.Line.Time), r.By, r.Note)
	switch {
	case err != nil:
		return t.journal.failed("applying the finding", err)
	case changed == 0:
		return ErrMoved
	}
	return nil
}
