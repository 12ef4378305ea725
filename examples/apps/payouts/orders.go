package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/riverqueue/river"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// The states of an order. docs/payouts.md has a picture of them.
const (
	queued     = "queued"     // waits for a worker, for the first time or again
	sending    = "sending"    // a worker has it
	submitted  = "submitted"  // the service took it; whether it arrives is not known yet
	failed     = "failed"     // not executed, and never will be
	unresolved = "unresolved" // nobody knows: a person asks the service
	cancelled  = "cancelled"  // by a person, before anything was executed
	paid       = "paid"       // a person says that it arrived
	returned   = "returned"   // a person says that it came back
)

var (
	states  = []string{queued, sending, submitted, failed, unresolved, cancelled, paid, returned}
	unended = []string{queued, sending, unresolved}
)

// schema creates the tables of the orders: put the columns of your own there. The
// index serves the page, the gauges and the repair.
const schema = `
CREATE TABLE IF NOT EXISTS payouts (
	order_no       TEXT PRIMARY KEY,
	body           TEXT NOT NULL, -- what is sent, from RevealJSON: personal data
	amount         TEXT NOT NULL,
	currency       TEXT NOT NULL,
	state          TEXT NOT NULL,
	claim          BIGINT NOT NULL DEFAULT 0, -- how often a worker took it
	job_id         BIGINT NOT NULL,
	service_id     TEXT NOT NULL DEFAULT '',
	service_status TEXT NOT NULL DEFAULT '',
	other_body     BOOLEAN NOT NULL DEFAULT FALSE, -- in the journal the number is another request's
	note           TEXT NOT NULL DEFAULT '', -- of the last change
	created_at     TIMESTAMP NOT NULL,
	queued_at      TIMESTAMP NOT NULL, -- by the merchant, or again by a person
	changed_at     TIMESTAMP NOT NULL
);
CREATE INDEX IF NOT EXISTS payouts_state ON payouts (state, order_no);
CREATE TABLE IF NOT EXISTS payouts_history (
	order_no TEXT NOT NULL,
	claim    BIGINT NOT NULL,
	at       TIMESTAMP NOT NULL,
	state    TEXT NOT NULL,
	who      TEXT NOT NULL,
	note     TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS payouts_history_order ON payouts_history (order_no);
CREATE TABLE IF NOT EXISTS payouts_service ( -- whose orders these are
	one      BIGINT PRIMARY KEY CHECK (one = 1),
	base_url TEXT NOT NULL
);`

// schemaOf returns the statements in the database's dialect. SQLite's driver reads a
// time from TIMESTAMP only.
func schemaOf(d sqljournal.Dialect) string {
	if d == sqljournal.PostgreSQL {
		return strings.ReplaceAll(schema, " TIMESTAMP ", " TIMESTAMPTZ ")
	}
	return schema
}

// order is a row of the table, without the body where it is shown.
type order struct {
	Order         string    `json:"order"`
	State         string    `json:"state"`
	Amount        string    `json:"amount"`
	Currency      string    `json:"currency"`
	ServiceID     string    `json:"service_id,omitempty"`     // the service's number
	ServiceStatus string    `json:"service_status,omitempty"` // as the service took it
	Note          string    `json:"note,omitempty"`           // why it is in this state
	Try           string    `json:"try,omitempty"`            // of an unresolved one, for resolve
	CreatedAt     time.Time `json:"created_at"`
	ChangedAt     time.Time `json:"changed_at"`

	queuedAt  time.Time
	body      string
	claim     int64
	jobID     int64
	OtherBody bool `json:"-"` // in the journal the number is another request's
}

// NeedsALook reports that the service took the order in a state that is undocumented, or
// that was lost. Of what a person recorded there is none.
func (o order) NeedsALook() bool {
	return o.State == submitted && o.ServiceStatus != "" && o.ServiceStatus != string(cardwire.TransferWaitProcess)
}

// Ended reports that no worker takes the order any more.
func (o order) Ended() bool { return !slices.Contains(unended, o.State) }

const columns = `order_no, state, amount, currency, service_id, service_status, note, created_at, changed_at, body, claim, job_id, other_body, queued_at`

func (o *order) scan(scan scanner) error {
	err := scan(&o.Order, &o.State, &o.Amount, &o.Currency, &o.ServiceID, &o.ServiceStatus, &o.Note,
		&o.CreatedAt, &o.ChangedAt, &o.body, &o.claim, &o.jobID, &o.OtherBody, &o.queuedAt)
	o.CreatedAt, o.ChangedAt = o.CreatedAt.UTC(), o.ChangedAt.UTC()
	return err
}

var (
	errNoOrder   = errors.New("there is no such order")
	errText      = errors.New("a string must be UTF-8 without NUL")
	errNumber    = errors.New("an order's number must not be . or .., which no URL can name")
	errExists    = errors.New("this order exists")
	errOtherBody = errors.New("this order exists with another body")
	errMoved     = errors.New("the order is in another state now")
)

// isText reports whether every database keeps these: PostgreSQL has no NUL, and UTF-8 only.
func isText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

func (s *service) find(ctx context.Context, number string) (o order, err error) {
	if !isText(number) {
		return o, errNoOrder
	}
	err = o.scan(s.db.QueryRowContext(ctx, `SELECT `+columns+` FROM payouts WHERE order_no = $1`, number).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoOrder
	}
	return o, err
}

// list returns orders in a state, or in all if it is "", that come after the given one.
func (s *service) list(ctx context.Context, state, after string, limit int) ([]order, error) {
	if !isText(after) {
		return nil, errText
	}
	where := `state = $1` // by the index
	if state == "" {
		where = `$1 = ''`
	}
	return rows(ctx, s.db, func(o *order, scan scanner) error { return o.scan(scan) }, `SELECT `+columns+` FROM payouts
WHERE `+where+` AND order_no > $2 ORDER BY order_no LIMIT $3`, state, after, limit)
}

// count is how many orders are in a state.
type count struct {
	State string
	N     int64
}

// counts returns how many orders are in each of the states.
func (s *service) counts(ctx context.Context, of []string) ([]count, error) {
	found, err := rows(ctx, s.db, func(c *count, scan scanner) error { return scan(&c.State, &c.N) },
		`SELECT state, count(*) FROM payouts WHERE state IN ('`+strings.Join(of, `', '`)+`') GROUP BY state`)
	for _, state := range of {
		if !slices.ContainsFunc(found, func(c count) bool { return c.State == state }) {
			found = append(found, count{State: state})
		}
	}
	slices.SortFunc(found, func(a, b count) int { return slices.Index(of, a.State) - slices.Index(of, b.State) })
	return found, err
}

// create puts an order and its job into the database, in one transaction with what is
// also done: all is there, or nothing. An order that exists is returned as it is.
func (s *service) create(ctx context.Context, p cardwire.TransferParams, also ...func(*sql.Tx, order) error) (o order, created bool, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		o, err = s.createTx(ctx, tx, p, also...)
		return err
	})
	switch {
	case errors.Is(err, errExists): // the transaction, with the job in it, is undone
		o, err = s.find(ctx, p.MerchantOrderNo)
		if body, _ := p.RevealJSON(); err == nil && o.body != string(body) {
			err = errOtherBody
		}
		return o, false, err
	case err != nil:
		return order{}, false, err
	}
	s.report(ctx, slog.LevelInfo, o, "merchant", "")
	return o, true, nil
}

// createTx is create within a transaction, which is to be undone if there is an error,
// also if that is errExists.
func (s *service) createTx(ctx context.Context, tx *sql.Tx, p cardwire.TransferParams, also ...func(*sql.Tx, order) error) (o order, err error) {
	body, err := p.RevealJSON()
	if n := p.MerchantOrderNo; err == nil && (n == "." || n == "..") {
		err = errNumber
	}
	if err != nil {
		return o, err
	}
	job, err := s.river.InsertTx(ctx, tx, submit{p.MerchantOrderNo}, &river.InsertOpts{Metadata: traceOf(ctx)})
	if err != nil {
		return o, err
	}
	now := time.Now().UTC()
	err = o.scan(tx.QueryRowContext(ctx, `INSERT INTO payouts (order_no, body, amount, currency, state, job_id, created_at, queued_at, changed_at)
VALUES ($1, $2, $3, $4, 'queued', $5, $6, $6, $6) ON CONFLICT (order_no) DO NOTHING RETURNING `+columns,
		p.MerchantOrderNo, string(body), p.TransferAmount.StringFixed(2), p.PayoutCurrency, job.Job.ID, now).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = errExists
	}
	if err != nil {
		return o, err
	}
	return o, record(ctx, tx, o, "merchant", also...)
}

// change is a change of an order's state.
type change struct {
	order string
	from  []string // it is made only in one of these
	to    string
	claim int64  // it is made only under this claim; 0: under any
	by    string // who makes it
	note  string // why
	log   string // why, without the words of a person or the service, which may be personal data

	serviceID, status string // what the service said; "": what is on record stays
	otherBody         bool   // in the journal the number is another request's
	level             slog.Level
}

// apply makes a change, with what is done in the same transaction, or returns
// errMoved: then the order is no longer in one of the states, or another worker has it.
func (s *service) apply(ctx context.Context, c change, also ...func(*sql.Tx, order) error) (o order, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		err := o.scan(tx.QueryRowContext(ctx, `UPDATE payouts SET state = $2, note = $3, changed_at = $4,
	claim = claim + CASE WHEN $2 = 'sending' THEN 1 ELSE 0 END,
	service_id = CASE WHEN $5 = '' THEN service_id ELSE $5 END,
	service_status = CASE WHEN $6 = '' THEN service_status ELSE $6 END,
	queued_at = CASE WHEN $2 = 'queued' AND state = 'unresolved' THEN $4 ELSE queued_at END,
	other_body = $8 OR other_body AND $2 <> 'sending'
WHERE order_no = $1 AND state IN ('`+strings.Join(c.from, `', '`)+`') AND ($7 = 0 OR claim = $7) RETURNING `+columns,
			c.order, c.to, c.note, time.Now().UTC(), c.serviceID, c.status, c.claim, c.otherBody).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return errMoved
		}
		if err != nil {
			return err
		}
		return record(ctx, tx, o, c.by, also...)
	})
	if err == nil {
		s.report(ctx, c.level, o, c.by, c.log)
	}
	return o, err
}

// record writes the order's state into its history, after what is also done.
func record(ctx context.Context, tx *sql.Tx, o order, by string, also ...func(*sql.Tx, order) error) error {
	for _, do := range also {
		if err := do(tx, o); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO payouts_history (order_no, claim, at, state, who, note) VALUES ($1, $2, $3, $4, $5, $6)`,
		o.Order, o.claim, o.ChangedAt, o.State, by, o.Note)
	return err
}

// report logs a change of state: one line for each.
func (s *service) report(ctx context.Context, level slog.Level, o order, by, why string) {
	s.log.LogAttrs(ctx, level, "payout", slog.String("order", o.Order), slog.String("state", o.State),
		slog.String("by", by), slog.String("service_id", o.ServiceID), slog.String("why", why))
}

// event is a line of an order's history.
type event struct {
	Time                 time.Time
	Where, What, By, Why string
}

// history returns what both tables know of an order, the oldest first.
func (s *service) history(ctx context.Context, number string) ([]event, error) {
	events, err := rows(ctx, s.db, func(e *event, scan scanner) error {
		e.Where = "order"
		return scan(&e.Time, &e.What, &e.By, &e.Why)
	}, `SELECT at, state, who, note FROM payouts_history WHERE order_no = $1 ORDER BY at, claim`, number)
	if err != nil {
		return nil, err
	}
	journal, err := s.journal.History(ctx, operation, number)
	if errors.Is(err, sqljournal.ErrNoIntent) {
		err = nil
	}
	for _, h := range journal {
		events = append(events, event{h.Time, "journal", fmt.Sprintf("%s: %s", h.Kind, h.Outcome), h.By, h.Note})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.Time.Compare(b.Time) })
	return events, err
}

// transaction makes one transaction. Within it nothing but tx may use the database: on
// SQLite the pool has one connection, and the journal waits for the same lock.
func (s *service) transaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// scanner is the Scan of a row.
type scanner func(...any) error

// rows reads all rows of a query, before anything else uses the connection.
func rows[T any](ctx context.Context, db *sql.DB, read func(*T, scanner) error, query string, args ...any) (list []T, err error) {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	list = []T{} // an empty one is [] in JSON
	for found.Next() {
		var row T
		if err := read(&row, found.Scan); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, found.Err()
}
