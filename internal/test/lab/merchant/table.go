package merchant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver of SQLite

	"github.com/cardwire/cardwire-go"
)

// table is the merchant's own: its orders, and the queue of messages to call with
// them. A message is delivered at least once, and until its order has ended.
type table struct{ db *sql.DB }

// message asks a worker to call with an order.
type message struct {
	ID         int64
	Reference  string
	Body       string // "as ordered", "other" or "invalid"
	Tries      int    // how often the step was StepRetry
	Deliveries int
	Late       bool // the order had ended when it was put into the queue
	Double     bool // the customer clicks again while the call is in progress
}

// The states of an order.
const (
	stateNew        = "new"
	stateSending    = "sending" // without a journal: a worker has it
	stateUnresolved = "unresolved"
	stateSubmitted  = "submitted"
	stateFailed     = "failed"
)

func ended(state string) bool { return state == stateSubmitted || state == stateFailed }

const schema = `
CREATE TABLE orders (
	reference  TEXT PRIMARY KEY,
	body       TEXT NOT NULL,
	state      TEXT NOT NULL DEFAULT 'new',
	service_id TEXT NOT NULL DEFAULT '',
	since      INTEGER NOT NULL DEFAULT 0,
	support    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX orders_unresolved ON orders (since) WHERE state = 'unresolved';
CREATE TABLE messages (
	id         INTEGER PRIMARY KEY,
	reference  TEXT NOT NULL,
	body       TEXT NOT NULL,
	shard      INTEGER NOT NULL,
	due        INTEGER NOT NULL DEFAULT 0,
	tries      INTEGER NOT NULL DEFAULT 0,
	deliveries INTEGER NOT NULL DEFAULT 0,
	late       INTEGER NOT NULL DEFAULT 0,
	double     INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX messages_due ON messages (shard, due);
CREATE TABLE steps (step TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE complaints (reference TEXT NOT NULL, text TEXT NOT NULL);`

// dsn opens a file without waiting for the disk, since no test cuts the power. A
// process that is paused may have the lock for seconds.
func dsn(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"
}

func openTable(source string) (*table, error) {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	return &table{db}, nil
}

func (t *table) close() error { return t.db.Close() }

// tx makes one transaction.
func (t *table) tx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// lease takes messages that are due out of the queue until a crash of this process
// would have to be noticed: those of its own shard or, if it has none, of another's.
func (t *table) lease(ctx context.Context, shard, n int, lease time.Duration) (messages []message, err error) {
	now := time.Now()
	for _, where := range []string{"shard = ?", "shard <> ?"} {
		rows, err := t.db.QueryContext(ctx, `UPDATE messages SET due = ?, deliveries = deliveries + 1
WHERE id IN (SELECT id FROM messages WHERE `+where+` AND due <= ? ORDER BY due, id LIMIT ?)
RETURNING id, reference, body, tries, deliveries, late, double`,
			now.Add(lease).UnixMilli(), shard, now.UnixMilli(), n)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var m message
			if err := rows.Scan(&m.ID, &m.Reference, &m.Body, &m.Tries, &m.Deliveries, &m.Late, &m.Double); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			messages = append(messages, m)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(messages) > 0 {
			return messages, err
		}
	}
	return nil, nil
}

// isEmpty reports whether the queue has no message, due or not.
func (t *table) isEmpty(ctx context.Context) (empty bool, err error) {
	err = t.db.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM messages)`).Scan(&empty)
	return empty, err
}

// take reports whether an order may be called with where there is no journal. One
// that was new is then this worker's. again allows those that were submitted because
// the client said so: it remembers that, but nothing of what support found out.
func (t *table) take(ctx context.Context, reference string, again bool) (may bool, err error) {
	err = t.tx(ctx, func(tx *sql.Tx) error {
		var state string
		var support bool
		err := tx.QueryRowContext(ctx, `SELECT state, support FROM orders WHERE reference = ?`, reference).Scan(&state, &support)
		if err != nil {
			return err
		}
		if may = state == stateNew || again && state == stateSubmitted && !support; state == stateNew {
			_, err = tx.ExecContext(ctx, `UPDATE orders SET state = 'sending' WHERE reference = ?`, reference)
		}
		return err
	})
	return may, err
}

// recover puts back what a process had that crashed. Nobody knows whether it was sent.
func (t *table) recover(ctx context.Context) error {
	_, err := t.db.ExecContext(ctx, `UPDATE orders SET state = 'new' WHERE state = 'sending'`)
	return err
}

// advice is what a call returned, as far as the merchant wants to know.
type advice struct {
	step      cardwire.Step
	after     time.Duration // not before this
	serviceID string
	none      bool // there was no call: the order's state said so
}

// record writes down what the step is for an order, and puts the message back into
// the queue until the order has ended. reborn, if it is not nil, is delivered instead,
// long after.
func (t *table) record(ctx context.Context, m message, a advice, reborn *message, after time.Duration) error {
	return t.tx(ctx, func(tx *sql.Tx) error {
		exec := func(statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		}
		var state string
		if err := tx.QueryRowContext(ctx, `SELECT state FROM orders WHERE reference = ?`, m.Reference).Scan(&state); err != nil {
			return err
		}
		next, complaint := a.next(state)
		now, tries := time.Now(), m.Tries
		if a.step == cardwire.StepRetry && !a.none {
			tries++
		}
		var errs []error
		if next != state {
			errs = append(errs, exec(`UPDATE orders SET state = ?, service_id = ?, since = ? WHERE reference = ?`,
				next, a.serviceID, now.UnixMilli(), m.Reference))
		}
		if complaint != "" {
			errs = append(errs, exec(`INSERT INTO complaints VALUES (?, ?)`, m.Reference, complaint))
		}
		if !a.none {
			errs = append(errs, exec(`INSERT INTO steps VALUES (?, 1) ON CONFLICT (step) DO UPDATE SET n = n + 1`, a.step.String()))
		}
		switch {
		case !ended(next):
			errs = append(errs, exec(`UPDATE messages SET due = ?, tries = ? WHERE id = ?`, now.Add(a.after).UnixMilli(), tries, m.ID))
		case reborn != nil:
			errs = append(errs, exec(`UPDATE messages SET due = ?, tries = 0, body = ?, late = TRUE, double = FALSE WHERE id = ?`,
				now.Add(after).UnixMilli(), reborn.Body, m.ID))
		default:
			errs = append(errs, exec(`DELETE FROM messages WHERE id = ?`, m.ID))
		}
		return errors.Join(errs...)
	})
}

// next is the state of an order after the step. An order that has ended stays as it
// is, and no step may say that it ended the other way.
func (a advice) next(state string) (next, complaint string) {
	if a.none {
		return state, ""
	}
	switch a.step {
	case cardwire.StepDone:
		next = stateSubmitted
	case cardwire.StepFail:
		next = stateFailed
	case cardwire.StepReconcile:
		next = stateUnresolved
	case cardwire.StepRetry, cardwire.StepWait:
		next = stateNew
	}
	switch {
	case !ended(state):
		return next, ""
	case ended(next) && next != state:
		complaint = fmt.Sprintf("the step is %s, and the order is %s", a.step, state)
	}
	return state, complaint
}

// unresolved returns the orders that are unresolved for longer than grace.
func (t *table) unresolved(ctx context.Context, grace time.Duration) (references []string, err error) {
	rows, err := t.db.QueryContext(ctx, `SELECT reference FROM orders WHERE state = 'unresolved' AND since <= ? LIMIT 500`,
		time.Now().Add(-grace).UnixMilli())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var reference string
		if err := rows.Scan(&reference); err != nil {
			return nil, err
		}
		references = append(references, reference)
	}
	return references, rows.Err()
}

// resolve is what support found out about an order, where there is no journal to tell.
func (t *table) resolve(ctx context.Context, reference, state, serviceID string) error {
	_, err := t.db.ExecContext(ctx, `UPDATE orders SET state = ?, service_id = ?, support = TRUE WHERE reference = ? AND state = 'unresolved'`,
		state, serviceID, reference)
	return err
}
