package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/riverqueue/river"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// The states of an order. docs/payouts.md has a picture of them.
const (
	queued     = "queued"     // waits for a worker, for the first time or again
	sending    = "sending"    // a worker has it
	submitted  = "submitted"  // the service accepted it; whether it arrives is not known yet
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

//go:embed schema.sql
var schema string

// schemaOf returns the statements in the database's dialect. The lock is for two that do
// this at once, where IF NOT EXISTS fails.
func schemaOf(d sqljournal.Dialect) string {
	if d == sqljournal.PostgreSQL {
		return "SELECT pg_advisory_xact_lock(5821034417);" + strings.ReplaceAll(schema, "TIMESTAMP", "TIMESTAMPTZ")
	}
	return schema
}

// order is a row of the table. JSON has the fields that a program may see.
type order struct {
	Order         string    `json:"order" db:"order_no"`
	State         string    `json:"state"`
	Amount        string    `json:"amount"`
	Currency      string    `json:"currency"`
	ServiceID     string    `json:"service_id,omitempty"`     // the service's number
	ServiceStatus string    `json:"service_status,omitempty"` // as the service accepted it
	Note          string    `json:"note,omitempty"`           // why it is in this state
	Try           string    `json:"try,omitempty"`            // of one that was unresolved: which try of the journal's
	CreatedAt     time.Time `json:"created_at"`
	ChangedAt     time.Time `json:"changed_at"`

	QueuedAt  time.Time        `json:"-"`
	Body      string           `json:"-"`
	Claim     int64            `json:"-"`
	JobID     int64            `json:"-"`
	OtherBody bool             `json:"-"`        // in the journal the number is another request's
	Entry     sqljournal.Entry `json:"-" db:"-"` // from findEntry; zero: the journal has none
}

// NeedsALook reports that the service took the order in a state that is undocumented, or
// that was lost. Of what a person recorded there is none.
func (o order) NeedsALook() bool {
	return o.State == submitted && o.ServiceStatus != "" && o.ServiceStatus != string(cardwire.TransferWaitProcess)
}

// Ended reports that no worker takes the order any more.
func (o order) Ended() bool { return !slices.Contains(unended, o.State) }

const columns = `order_no, state, amount, currency, service_id, service_status, note, created_at, changed_at, body, try, claim, job_id, other_body, queued_at`

// read reads orders.
func read(ctx context.Context, db sqlscan.Querier, query string, args ...any) ([]order, error) {
	list := []order{} // an empty one is [] in JSON
	err := sqlscan.Select(ctx, db, &list, query, args...)
	for i, o := range list {
		list[i].CreatedAt, list[i].ChangedAt = o.CreatedAt.UTC(), o.ChangedAt.UTC()
	}
	return list, err
}

// readOne reads an order. The error none is returned where there is none.
func readOne(ctx context.Context, db sqlscan.Querier, none error, query string, args ...any) (order, error) {
	list, err := read(ctx, db, query, args...)
	if err == nil && len(list) == 0 {
		err = none
	}
	return append(list, order{})[0], err
}

var (
	errNoOrder   = newProblem(http.StatusNotFound, "there is no such order")
	errText      = invalid("a string must be UTF-8 without NUL")
	errOtherBody = conflict("this order exists with another body")
	errMoved     = conflict("the order is in another state now, or has another number of the service's")
	errExists    = errors.New("this order exists") // of create only
)

// isText reports whether every database keeps these: PostgreSQL has no NUL, and UTF-8 only.
func isText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

func (s *service) find(ctx context.Context, number string) (o order, err error) {
	if !isText(number) {
		return o, errNoOrder
	}
	return readOne(ctx, s.db, errNoOrder, `SELECT `+columns+` FROM payouts WHERE order_no = $1`, number)
}

// findEntry returns an order, with what the journal knows of it.
func (s *service) findEntry(ctx context.Context, number string) (order, error) {
	o, err := s.find(ctx, number)
	if err == nil {
		o.Entry, err = s.journal.Lookup(ctx, operation, number)
	}
	if errors.Is(err, sqljournal.ErrNoIntent) {
		err = nil
	}
	return o, err
}

// IsForgotten reports that the journal does not know the try about which the order became
// unresolved, as after a restore: it would let the order be sent again.
func (o order) IsForgotten() bool {
	return (o.Try == "" || o.Try != o.Entry.Try) && o.Entry.Outcome != cardwire.OutcomeExecuted && !o.Entry.Closed
}

// list returns orders in a state, or in all if it is "", that come after the given one.
func (s *service) list(ctx context.Context, state, after string) ([]order, error) {
	if !isText(after) {
		return nil, errText
	}
	where := `state = $1` // by the index
	if state == "" {
		where = `$1 = ''`
	}
	return read(ctx, s.db, `SELECT `+columns+` FROM payouts
WHERE `+where+` AND order_no > $2 ORDER BY order_no LIMIT $3`, state, after, pageSize)
}

// counts returns how many orders are in each of the states.
func (s *service) counts(ctx context.Context, of []string) (map[string]int64, error) {
	var found []struct {
		State string
		N     int64
	}
	err := sqlscan.Select(ctx, s.db, &found, `SELECT state, count(*) AS n FROM payouts WHERE state IN ('`+strings.Join(of, `', '`)+`') GROUP BY state`)
	counts := map[string]int64{} // those that are not there are 0
	for _, f := range found {
		counts[f.State] = f.N
	}
	return counts, err
}

// inTx is what else is done in the transaction of a change. Only tx may use the database
// there: on SQLite the pool has one connection, and the journal waits for the same lock.
type inTx func(ctx context.Context, tx *sql.Tx, o order) error

// create puts an order and its job into the database, in one transaction with what is
// also done: all is there, or nothing. An order that exists is returned as it is.
func (s *service) create(ctx context.Context, p cardwire.TransferParams, also ...inTx) (o order, err error) {
	if p.MerchantOrderNo == "." || p.MerchantOrderNo == ".." {
		return o, invalid("an order's number must not be . or .., which no URL can name")
	}
	body, err := p.RevealJSON()
	if err != nil {
		return o, err
	}
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		job, err := s.river.InsertTx(ctx, tx, submit{p.MerchantOrderNo}, &river.InsertOpts{Metadata: traceOf(ctx)})
		if err != nil {
			return err
		}
		o, err = readOne(ctx, tx, errExists, `INSERT INTO payouts (order_no, body, amount, currency, state, job_id, created_at, queued_at, changed_at)
VALUES ($1, $2, $3, $4, 'queued', $5, $6, $6, $6) ON CONFLICT (order_no) DO NOTHING RETURNING `+columns,
			p.MerchantOrderNo, string(body), p.TransferAmount.StringFixed(2), p.PayoutCurrency, job.Job.ID, time.Now().UTC())
		if err != nil {
			return err
		}
		return record(ctx, tx, o, "merchant", also...)
	})
	switch {
	case err == nil:
		s.report(ctx, slog.LevelInfo, o, "merchant", "")
	case errors.Is(err, errExists): // the transaction, with the job in it, is undone
		o, err = s.find(ctx, p.MerchantOrderNo)
		if err == nil && o.Body != string(body) {
			err = errOtherBody
		}
	}
	return o, err
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
	try               string // of one that becomes unresolved
	otherBody         bool   // in the journal the number is another request's
	level             slog.Level
}

// apply makes a change, with what is done in the same transaction, or returns
// errMoved: then the order is no longer in one of the states, another worker has it, or
// another number of the service's is on record.
func (s *service) apply(ctx context.Context, c change, also ...inTx) (o order, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		o, err = readOne(ctx, tx, errMoved, `UPDATE payouts SET state = $2, note = $3, changed_at = $4,
	claim = claim + CASE WHEN $2 = 'sending' THEN 1 ELSE 0 END,
	service_id = coalesce(nullif($5, ''), service_id), service_status = coalesce(nullif($6, ''), service_status),
	queued_at = CASE WHEN $2 = 'queued' AND state = 'unresolved' THEN $4 ELSE queued_at END,
	other_body = $8 OR other_body AND $2 <> 'sending', try = coalesce(nullif($9, ''), try)
WHERE order_no = $1 AND state IN ('`+strings.Join(c.from, `', '`)+`') AND ($7 = 0 OR claim = $7)
	AND ($5 = '' OR service_id IN ('', $5)) RETURNING `+columns,
			c.order, c.to, c.note, time.Now().UTC(), c.serviceID, c.status, c.claim, c.otherBody, c.try)
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
func record(ctx context.Context, tx *sql.Tx, o order, by string, also ...inTx) error {
	for _, do := range also {
		if err := do(ctx, tx, o); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO payouts_history (order_no, claim, at, state, who, note) VALUES ($1, $2, $3, $4, $5, $6)`,
		o.Order, o.Claim, o.ChangedAt, o.State, by, o.Note)
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
	var events []event
	err := sqlscan.Select(ctx, s.db, &events, `SELECT at AS time, 'order' AS "where", state AS what, who AS by, note AS why
FROM payouts_history WHERE order_no = $1 ORDER BY at, claim`, number)
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

// transaction makes one transaction.
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
