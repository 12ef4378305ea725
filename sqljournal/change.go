package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// change is what most of a journal's methods do: it lets rule say what becomes of a reference,
// while nobody else changes it, and records that with the event. It returns what rule does.
func (t *Tx) change(
	ctx context.Context, what string, i cardwire.Intent, e *event, rule func(known) (journal.Record, error),
) error {
	for range 3 {
		k, err := t.lock(ctx, i)
		if err == nil {
			err = belongs(i, k)
		}
		if err != nil {
			return err
		}
		next, refused := rule(k)
		if next == k.row {
			return refused
		}
		e.call, e.state, e.serviceID = next.Call, stateOf(next), next.ServiceID
		if err = t.store(ctx, k, next, *e); !errors.Is(err, errAgain) {
			return cmp.Or(t.journal.failed(what, err), refused)
		}
	}
	return errAgain
}

// errAgain means that others have changed the row since it was read.
var errAgain = safe("the reference was changed by others at the same time: try again")

// decide runs do in a transaction of its own, after it has recorded what was kept of the reference. It also commits if do
// refuses, unless the database failed: Reserve pins the row that it refuses.
func (j *Journal) decide(ctx context.Context, what string, i cardwire.Intent, do func(*Tx) error) error {
	err := j.flush(ctx, i)
	if err != nil {
		return err
	}
	var refused error
	err = j.inTransaction(ctx, what, func(t *Tx) error {
		refused = do(t)
		if _, failed := errors.AsType[*failure](refused); failed || errors.Is(refused, ErrSchema) {
			return refused
		}
		return nil
	})
	return cmp.Or(err, refused)
}

// belongs returns an error for an intent that is another journal's, and where a standby has replaced the server, which
// knows nothing of what came since.
func belongs(i cardwire.Intent, k known) error {
	if k.isBack {
		return errBack
	}
	if err := journal.BelongsTo(i, k.Service, k.Account); err != nil {
		return &safeError{strings.TrimPrefix(err.Error(), "cardwire: ") + ", or SetService if it has changed", cardwire.ErrSetup}
	}
	return nil
}

// lock returns what is known of the reference of an intent, and keeps others from changing it
// until the transaction ends; a row that does not exist cannot be locked.
func (t *Tx) lock(ctx context.Context, i cardwire.Intent) (k known, err error) {
	if t.journal.dialect == SQLite { // before it reads
		const lock = `UPDATE @intents SET calls = calls WHERE op = ?1 AND reference = ?2 AND @this`
		if _, err := t.exec(ctx, lock, i.Op, i.Reference); err != nil {
			return k, t.journal.failed("locking the intent", err)
		}
	}
	return t.find(ctx, i.Op, i.Reference, "@locked")
}

type event struct{ kind, call, state, serviceID, by, note string }

// columns are those of @intents that a new row sets.
const columns = `op, reference, body_sha256, amount, currency, state, closed, proved, reserved, call, calls,
	service_id, status, created_at, time, send_by, settled_by, ended_at, kind, by, note, era`

// insert adds a row, unless another has been added since it was read.
const insert = `@event
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, CAST(?7 AS @bool), CAST(?8 AS @bool), CAST(?9 AS @bool), ?10,
	CASE WHEN ?10 = '' THEN 0 ELSE 1 END, ?11, ?12, @now, CAST(?13 AS @time), CAST(?14 AS @time), CAST(?15 AS @time),
	CAST(?16 AS @time), ?18, ?19, ?20, ?17
WHERE @this
ON CONFLICT (op, reference) DO NOTHING`

const (
	// update changes a row with an event of its call.
	update = `@event` + set + `, kind = ?23, by = ?24, note = ?25` + ofRead

	// updateLate changes a row with an event of another call, or of another time.
	updateLate = set + ofRead

	set = `
UPDATE @intents
SET body_sha256 = ?3, amount = ?4, currency = ?5, state = ?6, closed = ?7, proved = ?8, reserved = ?9, call = ?10,
	service_id = ?11, status = ?12, time = ?13, send_by = ?14, settled_by = ?15, ended_at = ?16, era = ?17`

	ofRead = `
WHERE op = ?1 AND reference = ?2 AND @this AND state || '' = ?18 AND call = ?19 AND era = ?20 AND closed = ?21 AND reserved = ?22`

	// add adds an event that is not the row's own, once.
	add = `
INSERT INTO @history (` + eventColumns + `)
SELECT ?1, ?2, @now, ?3, ?4, ?5, ?6, ?7, ?8 WHERE @this AND NOT EXISTS (SELECT 1 FROM @history AS h
	WHERE h.op = ?1 AND h.reference = ?2 AND h.kind = ?3 AND h.call = ?4 AND h.state = ?5 AND h.service_id = ?6)`
)

// store records what becomes of a reference, and the event. It returns errAgain if the row is not the one that was read, as
// where a pool had a standby respond: it compares state, call, era, closed and reserved. A new row, and one whose era
// changes, gets the journal's current era.
func (t *Tx) store(ctx context.Context, k known, next journal.Record, e event) error {
	was, changed, err := k.row, int64(1), error(nil)
	if !was.Exists() || next.Era != was.Era {
		next.Era = k.era
	}
	args := []any{
		next.Op, next.Reference, next.BodySHA256, moneyOf(next.Intent), next.Currency, stateOf(next), next.Closed, next.Proved,
		next.Reserved, next.Call, next.ServiceID, next.Status,
	}
	for _, at := range []time.Time{next.Time, next.SendBy, next.SettledBy, next.EndedAt} {
		args = append(args, t.journal.dialect.moment(at))
	}
	args = append(args, next.Era)
	own, read := []any{e.kind, e.by, e.note}, []any{stateOf(was), was.Call, was.Era, was.Closed, was.Reserved}
	switch isOwn := e.call == next.Call && next.EndedAt != was.EndedAt; {
	case !was.Exists():
		changed, err = t.exec(ctx, insert, append(args, own...)...)
	case isOwn:
		changed, err = t.exec(ctx, update, slices.Concat(args, read, own)...)
	default:
		if next != was {
			changed, err = t.exec(ctx, updateLate, append(args, read...)...)
		}
		if err == nil {
			_, err = t.exec(ctx, add, next.Op, next.Reference, e.kind, e.call, e.state, e.serviceID, e.by, e.note)
		}
	}
	if err == nil && changed == 0 {
		err = errAgain
	}
	return err
}

// moneyOf is an intent's amount as its column has it: equal amounts are equal strings; "": it is not known.
func moneyOf(i cardwire.Intent) string {
	if i.Amount.IsZero() {
		return ""
	}
	return i.Amount.String()
}

func stateOf(r journal.Record) string {
	if r.Open {
		return "open"
	}
	return states[r.Outcome]
}
