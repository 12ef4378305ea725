package sqljournal

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
)

// Void implements cardwire.Journal: it closes a reference under which nothing was executed,
// for an order that was canceled before it was sent, or abandoned after many attempts. Void
// it before you mark the order as failed.
//
// Void needs the Op and the Reference of the intent, exactly as the client has them:
// OpCreateTransfer, and a client transaction ID in lower case. An empty Service is taken for
// the journal's. If the client would refuse the reference, for example because it is empty,
// or begins or ends with white space, Void changes nothing and returns a
// cardwire.ErrInvalidParams. Void cannot detect any other mistake, which leaves the intended
// reference free. By must not be empty.
func (j *Journal) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	return j.waiting().Void(ctx, i, by, note)
}

const void = `@event
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, ?3, ?4, FALSE, 'not_sent', TRUE, FALSE, ?5, 0, '', '', @now, @now, @now, @now, @now, 'voided', ?6, ?7
WHERE @this AND EXISTS (SELECT 1 FROM @journal WHERE ?8 IN ('', service)) AND NOT CAST(?9 AS @bool)
ON CONFLICT (op, reference) DO UPDATE
SET closed = TRUE, ended_at = excluded.ended_at, kind = 'voided', by = excluded.by, note = excluded.note
WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed AND NOT i.repeatable AND NOT CAST(?9 AS @bool)`

// Void is [Journal.Void] in the transaction.
func (t *Tx) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	err := cmp.Or(check.Given("op", string(i.Op)), check.Given("reference", i.Reference), check.Given("by", by),
		check.Note("note", note))
	if err != nil {
		return fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
	}
	if err := t.pin(ctx); err != nil {
		return err
	}
	i.Repeatable = i.Repeatable || i.Op == cardwire.OpCancelOrRetry
	return t.attempt(ctx, "voiding the reference", i, unvoided,
		void, i.Op, i.Reference, i.BodySHA256, i.Summary, i.Call, by, note, i.Service, i.Repeatable)
}

// unvoided returns why Void changed nothing.
func unvoided(k known, i cardwire.Intent) error {
	d := k.duplicate()
	switch {
	case k.Closed, (i.Repeatable || k.Repeatable) && (d == nil || k.mayRepeat()):
		return nil
	case d == nil:
		return errAgain
	case k.Outcome == cardwire.OutcomeExecuted && i.BodySHA256 != "" && k.isOther(i.BodySHA256):
		return fmt.Errorf("%w: %w", cardwire.ErrOtherBody, d)
	}
	return d
}

// Resolve records what a person found out about the call i.Call of a reference, as an
// [Entry] has it and cardwire.Resolution says. An empty Service is taken for the journal's.
//
// If it cannot be recorded, Resolve returns [ErrNoIntent], or [ErrDecided], which says why,
// and names the other reference that has the service ID.
func (j *Journal) Resolve(ctx context.Context, i cardwire.Intent, r cardwire.Resolution) error {
	return j.together(ctx, "resolving the intent", func(t *Tx) error { return t.Resolve(ctx, i, r) })
}

// resolve changes what a resolution may change. The conditions of "executed" keep one
// service ID to one reference.
const resolve = `@event
UPDATE @intents
SET state = ?3, closed = (?3 = 'refused' AND NOT repeatable),
	service_id = ?5, ended_at = @now, kind = 'resolved', by = ?6, note = ?7
WHERE op = ?1 AND reference = ?2 AND @this AND EXISTS (SELECT 1 FROM @journal WHERE ?8 IN ('', service))
AND CASE WHEN ?3 = 'executed'
	THEN (call = ?4 OR NOT repeatable)
		AND (state <> 'executed' OR ?5 NOT IN ('', service_id) AND (NOT proved OR service_id = ''))
		AND NOT EXISTS (SELECT 1 FROM @intents AS o
			WHERE o.service_id = ?5 AND o.service_id <> '' AND o.op = ?1 AND o.reference <> ?2)
	WHEN state IN ('refused', 'not_sent') THEN ?3 = 'refused' AND call = ?4 AND NOT closed AND NOT repeatable
	ELSE NOT proved AND call = ?4 AND settled_by <= ?9 AND ?9 <= @now END`

// Resolve is [Journal.Resolve] in the transaction.
func (t *Tx) Resolve(ctx context.Context, i cardwire.Intent, r cardwire.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := t.pin(ctx); err != nil {
		return err
	}
	if t.journal.dialect == PostgreSQL && r.ServiceID != "" {
		// Two people who give one service ID to two references wait for each other. The row comes
		// before the service ID, as in Apply: otherwise two could wait for each other forever.
		_, err := t.exec(ctx, lock, i.Op, i.Reference)
		if err == nil {
			const lockID = `SELECT pg_advisory_xact_lock(hashtextextended(?1, ` + lockNumber + `))`
			_, err = t.exec(ctx, lockID, r.ServiceID)
		}
		if err != nil {
			return t.journal.failed("resolving the intent", err)
		}
	}
	why := func(k known, i cardwire.Intent) error {
		switch {
		case !k.exists():
			return ErrNoIntent
		case r.Outcome == cardwire.OutcomeExecuted:
			return t.unconfirmed(ctx, k, i, r)
		}
		return undenied(k, i, r)
	}
	return t.attempt(ctx, "resolving the intent", i, why,
		resolve, i.Op, i.Reference, states[r.Outcome], i.Call, r.ServiceID, r.By, r.Note, i.Service,
		t.journal.dialect.moment(r.AsOf))
}

// undenied returns why Resolve did not record that nothing happened.
func undenied(k known, i cardwire.Intent, r cardwire.Resolution) error {
	closes := r.Outcome == cardwire.OutcomeRefused && !k.Repeatable
	switch {
	case k.Outcome == r.Outcome && k.Closed == closes, k.duplicate() == nil && !closes:
		return nil
	case k.Call != i.Call:
		return errOtherCall
	case k.Closed:
		return decided("the reference is closed, which can only be corrected to executed")
	case k.Proved:
		return decided("a response proved that it was executed")
	case r.AsOf.After(k.now):
		return decided("AsOf is in the future by the journal's clock: " +
			"check the clock of this machine, and ask the service again")
	case r.AsOf.Before(k.SettledBy):
		if k.Time.After(k.now) {
			return decided("the clock was ahead when the call began, and so are its times on record: " +
				"see docs/operations.md")
		}
		return decided("the service may still execute it until " + k.SettledBy.Format(time.RFC3339) +
			": ask it again then")
	}
	return errAgain
}

var errOtherCall = decided("another call is on record under this reference: read its entry again")

// unconfirmed returns why Resolve did not record that it was executed.
func (t *Tx) unconfirmed(ctx context.Context, k known, i cardwire.Intent, r cardwire.Resolution) error {
	switch {
	case k.Outcome == r.Outcome && (r.ServiceID == "" || r.ServiceID == k.ServiceID):
		return nil
	case k.Proved && k.ServiceID != "":
		return decided("a response proved that it was executed as " + k.ServiceID)
	case k.Repeatable && k.Call != i.Call:
		return errOtherCall
	}
	var other string
	err := t.queryRow(ctx, []any{&other}, `
SELECT reference FROM @intents WHERE service_id = ?1 AND service_id <> '' AND op = ?2 AND reference <> ?3`,
		r.ServiceID, k.Op, k.Reference)
	switch {
	case err != nil:
		return t.journal.failed("reading the intents", err)
	case other == "":
		return errAgain
	}
	return decided("the service ID belongs to reference " + other + ": correct the one that is wrong")
}
