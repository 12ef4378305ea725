package sqljournal

import (
	"context"
	"errors"
	"fmt"

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
