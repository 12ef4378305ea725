package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/journal"
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
	return j.decide(ctx, "voiding the reference", i, func(t *Tx) error { return t.Void(ctx, i, by, note) })
}

// Void is [Journal.Void] in the transaction.
func (t *Tx) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	err := cmp.Or(check.Given("op", string(i.Op)), check.Given("reference", i.Reference), check.Given("by", by),
		check.Note("note", note))
	if err != nil {
		return invalid(err)
	}
	return t.change(ctx, "voiding the reference", i, &event{kind: "voided", by: by, note: note},
		func(k known) (journal.Record, error) {
			if !k.row.Exists() && i.Call == "" {
				if err := t.refusesOp(ctx, i.Op); err != nil {
					return k.row, err
				}
			}
			return k.row.Void(i, k.hold, k.now)
		})
}

// Reserve pins the reference of an order to its body before it is sent, as
// journal.Memory.Reserve does, best in the transaction that creates the order, by
// [Tx.Reserve].
func (j *Journal) Reserve(ctx context.Context, i cardwire.Intent) error {
	return j.decide(ctx, "reserving the reference", i, func(t *Tx) error { return t.Reserve(ctx, i) })
}

// reserve is the record of a new reference, as journal.Record.Reserve has it, in one statement.
const reserve = `@event
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, ?3, ?4, ?5, 'not_sent', FALSE, FALSE, TRUE, '', 0, '', '', @now, @now, @now, @now, @now,
	'reserved', '', '', j.era
FROM @journal AS j WHERE @pinned AND (?6 = '' OR j.service = ?6 AND j.account = ?7)
ON CONFLICT (op, reference) DO NOTHING`

// Reserve is [Journal.Reserve] in the transaction.
func (t *Tx) Reserve(ctx context.Context, i cardwire.Intent) error {
	const what = "reserving the reference"
	err := cmp.Or(check.Given("op", string(i.Op)), check.Given("reference", i.Reference))
	if err != nil {
		return invalid(err)
	}
	if _, err = (journal.Record{}).Reserve(i, journal.Hold{}, time.Now()); err != nil {
		return err
	}
	if err = t.pin(ctx); err != nil {
		return err
	}
	changed, err := t.exec(ctx, reserve, i.Op, i.Reference, i.BodySHA256, moneyOf(i), i.Currency, i.Service, i.Account)
	switch {
	case err != nil:
		return t.journal.failed(what, err)
	case changed > 0:
		return nil
	}
	return t.change(ctx, what, i, &event{kind: "reserved"}, func(k known) (journal.Record, error) {
		if k.Service == "" && i.Service != "" {
			if err := t.introduce(ctx, i, 0); err != nil {
				return k.row, err
			}
		}
		return k.row.Reserve(i, k.hold, k.now)
	})
}

// refusesOp returns an error for an operation that is neither one of the client's own nor on record:
// with a mistyped name the reference that is meant would stay as it is.
func (t *Tx) refusesOp(ctx context.Context, op cardwire.Op) error {
	if op.IsRecorded() {
		return nil
	}
	var isKnown bool
	const one = `SELECT count(*) > 0 FROM (SELECT 1 FROM @intents WHERE op = ?1 LIMIT 1) AS o`
	err := t.queryRow(ctx, []any{&isKnown}, one, op)
	switch {
	case err != nil:
		return t.journal.failed("reading the intents", err)
	case !isKnown:
		return invalid(errors.New("no client records this Op, and nothing is on record under it: " +
			"use a constant, like OpCreateTransfer; of another, after a loss, Reserve a reference first"))
	}
	return nil
}

// Resolve records what a person found out about the call i.Call of a reference, as an
// [Entry] has it and journal.Resolution says. An empty Service is taken for the journal's.
//
// If it cannot be recorded, Resolve returns [ErrNoIntent], or [ErrDecided], which says why,
// and names the other reference that has the service ID.
func (j *Journal) Resolve(ctx context.Context, i cardwire.Intent, r journal.Resolution) error {
	return j.decide(ctx, "resolving the intent", i, func(t *Tx) error { return t.Resolve(ctx, i, r) })
}

// Resolve is [Journal.Resolve] in the transaction.
func (t *Tx) Resolve(ctx context.Context, i cardwire.Intent, r journal.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return t.change(ctx, "resolving the intent", i, &event{kind: "resolved", by: r.By, note: r.Note},
		func(k known) (journal.Record, error) {
			if !k.row.Exists() {
				return k.row, cmp.Or(t.refusesOp(ctx, i.Op), ErrNoIntent)
			}
			other, err := t.executedAs(ctx, i, r.ServiceID)
			if err != nil {
				return k.row, err
			}
			next, err := k.row.Resolve(i, r, other, k.hold, k.now)
			return next, decided(err)
		})
}

// executedAs returns another reference that has the service ID; "": none. Whoever would give it to
// one then waits for this transaction: after the row, so that no two wait for each other.
func (t *Tx) executedAs(ctx context.Context, i cardwire.Intent, serviceID string) (other string, err error) {
	if serviceID == "" {
		return "", nil
	}
	if t.journal.dialect == PostgreSQL {
		const lockID = `SELECT pg_advisory_xact_lock(hashtextextended(?1, ` + lockNumber + `))`
		_, err = t.exec(ctx, lockID, serviceID)
	}
	if err == nil {
		err = t.queryRow(ctx, []any{&other}, `
SELECT reference FROM @intents WHERE service_id = ?1 AND service_id <> '' AND op = ?2 AND reference <> ?3`,
			serviceID, i.Op, i.Reference)
	}
	return other, t.journal.failed("reading the intents", err)
}
