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
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/riverqueue/river"
	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// The states of an order, as the view payouts_states derives them from the journal.
// docs/payouts.md has a picture of them.
const (
	queued     = "queued"     // waits for a worker, for the first time or again
	held       = "held"       // came on hold, or waited then: a person sends or closes it
	sending    = "sending"    // a call is in progress
	unresolved = "unresolved" // nobody knows: a person asks the service
	forgotten  = "forgotten"  // it was sent, and the journal does not know it any more
	conflicted = "conflict"   // in the journal the number is another request's
	submitted  = "submitted"  // the service accepted it; whether it arrives is not known yet
	failed     = "failed"     // not executed, and never will be
	canceled   = "canceled"   // by a person, before anything was executed
	paid       = "paid"       // a person says that it arrived
	returned   = "returned"   // a person says that it came back
)

var (
	states  = append(unended[:len(unended):len(unended)], submitted, failed, canceled, paid, returned)
	unended = []string{queued, held, sending, unresolved, forgotten, conflicted}
)

//go:embed schema.sql
var schema string

// schemaOf returns the statements in the database's dialect. Triggers of PostgreSQL have their owner's
// permissions, so that they take no temporary table of another program for one of these.
func schemaOf(d sqljournal.Dialect) string {
	text, follows := schema, strings.ReplaceAll(strings.Join(follow, ""), "$1", "NEW.reference")
	if d == sqljournal.PostgreSQL {
		text = strings.ReplaceAll(text, "TIMESTAMP", "TIMESTAMPTZ") + `
SELECT set_config('search_path', current_setting('search_path') || ', pg_temp', TRUE);
CREATE OR REPLACE FUNCTION payouts_follow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$ BEGIN
	IF ` + isBarred + ` THEN RAISE EXCEPTION '` + barred + `'; END IF;` + follows + `
	RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS payouts_follow ON cardwire_intents;
CREATE TRIGGER payouts_follow AFTER INSERT OR UPDATE ON cardwire_intents FOR EACH ROW
WHEN (NEW.op = 'CreateTransfer') EXECUTE FUNCTION payouts_follow();`
	} else {
		for name, on := range map[string]string{"payouts_begun": "INSERT", "payouts_changed": "UPDATE"} {
			text += `
DROP TRIGGER IF EXISTS ` + name + `;
CREATE TRIGGER ` + name + ` AFTER ` + on + ` ON cardwire_intents WHEN NEW.op = 'CreateTransfer' BEGIN
	SELECT RAISE(ABORT, '` + barred + `') WHERE ` + isBarred + `;` + follows + `
END;`
		}
	}
	return strings.ReplaceAll(text, "NOW()", nowOf(d))
}

// The journal's changes and what its orders keep of them are one transaction: the database makes
// both, whichever program it is. isBarred is that a call begins which the order does not allow: it
// has ended or is held, or an earlier call is on record nowhere else any more. A result never is: a
// call that has ended, and that the journal records again, can send nothing more.
const (
	isBarred = `NEW.state = 'open' AND NEW.send_by > NOW() AND EXISTS (SELECT 1 FROM payouts
	WHERE order_no = NEW.reference AND body_sha256 = NEW.body_sha256 AND last_call <> NEW.call
		AND (said <> '' OR calls >= NEW.calls))`
	barred = "payouts: this order must not be sent as it is now"
)

// watches is whether the triggers are there, and what they write: without them a journal that was
// replaced alone would forget for the orders too.
var watches = map[sqljournal.Dialect]string{
	sqljournal.SQLite: `SELECT count(*) = 2 + (SELECT count(last_call) + count(has_failed) FROM payouts WHERE FALSE)
		FROM sqlite_master WHERE name IN ('payouts_begun', 'payouts_changed')`,
	sqljournal.PostgreSQL: `SELECT count(*) = 1 + (SELECT count(last_call) + count(has_failed) FROM payouts WHERE FALSE)
		FROM pg_trigger WHERE tgname = 'payouts_follow' AND tgrelid = 'cardwire_intents'::regclass AND tgenabled IN ('O', 'A')`,
}

// follow has an order keep what the journal says of its number, for a journal that forgets: how
// many calls began, how it ended by other means than they, or was executed after it had failed, and that it
// is held where a statement has it as pending: whatever the journal forgets, a person sends it.
var follow = []string{`
	UPDATE payouts SET calls = j.calls, last_call = j.call, missed_at = NULL, note = '' FROM cardwire_intents j
	WHERE j.op = 'CreateTransfer' AND j.reference = $1 AND payouts.order_no = $1
		AND j.body_sha256 IN ('', payouts.body_sha256) AND j.calls > payouts.calls;`, `
	UPDATE payouts SET has_failed = has_failed OR (j.closed AND j.state IN ('refused', 'not_sent')), said_at = NULL,
	said = CASE WHEN (j.closed AND j.state IN ('refused', 'not_sent')) THEN 'failed'
		WHEN j.state = 'executed' AND j.body_sha256 IN ('', payouts.body_sha256) THEN 'submitted' ELSE 'held' END
	FROM cardwire_intents j
	WHERE j.op = 'CreateTransfer' AND j.reference = $1 AND payouts.order_no = $1 AND CASE
		WHEN payouts.said IN ('failed', 'canceled') THEN j.state = 'executed' AND j.body_sha256 IN ('', payouts.body_sha256)
		WHEN payouts.said NOT IN ('', 'held') THEN FALSE
		WHEN j.body_sha256 NOT IN ('', payouts.body_sha256) THEN payouts.calls = 0
		WHEN payouts.calls = 0 THEN j.closed OR j.state NOT IN ('refused', 'not_sent')
		ELSE (j.closed AND j.state IN ('refused', 'not_sent')) OR j.kind = 'pending'
			OR j.state = 'executed' AND j.kind <> 'ended' END;`}

// nowOf is the database's clock.
func nowOf(d sqljournal.Dialect) string {
	if d == sqljournal.PostgreSQL {
		return "statement_timestamp()"
	}
	return `strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`
}

// order is a row of the view. JSON has the fields that a program may see.
type order struct {
	Order         string `json:"order" db:"order_no"`
	State         string `json:"state"`
	Amount        string `json:"amount"`
	Currency      string `json:"currency"`
	ServiceID     string `json:"service_id,omitempty"`       // the service's number
	ServiceStatus string `json:"service_status,omitempty"`   // as the service accepted it
	Note          string `json:"note,omitempty" db:"reason"` // why the last call failed, or a person's
	Call          string `json:"call,omitempty"`             // the journal's: what is asked about
	DenyFrom      moment `json:"deny_from,omitzero"`         // "not executed" is believed as of then
	CreatedAt     moment `json:"created_at"`
	ChangedAt     moment `json:"changed_at"`

	Body      string `json:"-"` // "": it was purged
	Digest    string `json:"-" db:"body_sha256"`
	Words     string `json:"-"` // the service's, which may be about a person
	Said      string `json:"-"`
	HasFailed bool   `json:"-"` // the merchant was told so once, and may have a new number for it
	Proved    bool   `json:"-"` // a response says that it was executed
	JobID     int64  `json:"-"`
	Calls     int64  `json:"-"` // that began
	Journal   string `json:"-"` // its state; "": it has no row
	Closed    bool   `json:"-"` // there
	IsOther   bool   `json:"-"` // what the journal has is another request's
	Forgot    bool   `json:"-"` // the journal knows of fewer calls
	MissedAt  moment `json:"-"`
	CallFrom  moment `json:"-"` // when the service may have got it
	CallUntil moment `json:"-"`
	SettledBy moment `json:"-"`
}

// moment is a time in UTC, from a column or, as SQLite returns it, from a string.
type moment struct{ time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(v any) (err error) {
	switch v := v.(type) {
	case nil:
		m.Time = time.Time{}
	case time.Time:
		m.Time = v.UTC()
	case string:
		m.Time, err = time.Parse(time.RFC3339, strings.Replace(v, " ", "T", 1))
		m.Time = m.UTC()
	default:
		err = fmt.Errorf("a time is stored as %T", v)
	}
	return err
}

// Payee is who gets the money, and the end of the account's number: for whoever signed in; "":
// it was not given, or was purged.
func (o order) Payee() string {
	var p cardwire.TransferParams
	_ = p.UnmarshalJSON([]byte(o.Body)) // what was purged is no transfer
	payee := strings.TrimSpace(p.ReceiverNativeFirstName + " " + p.ReceiverNativeLastName)
	if account := []rune(p.ReceiverBankAccountNumber); len(account) > 4 {
		payee += ", account …" + string(account[len(account)-4:])
	}
	return strings.TrimPrefix(payee, ", ")
}

// Age is for how long it has been waited for.
func (o order) Age() time.Duration { return time.Since(o.CreatedAt.Time) }

// Unknown reports that a person has to ask the service.
func (o order) Unknown() bool { return o.State == unresolved || o.State == forgotten }

// NeedsALook reports that the service took the order in a state that is undocumented. Of
// what a person recorded there is none.
func (o order) NeedsALook() bool {
	return o.State == submitted && o.ServiceStatus != "" && o.ServiceStatus != string(cardwire.TransferWaitProcess)
}

// saidPaid reports that the merchant was told that it was executed, whatever became of the money.
func (o order) saidPaid() bool { return o.Said == submitted || o.Said == paid || o.Said == returned }

// isLost reports that the journal does not know all calls, or the end.
func (o order) isLost() bool {
	return o.Forgot || o.Ended() && (o.IsOther || o.Journal == "") || o.saidPaid() && o.Journal != "executed"
}

// Ended reports that nothing is left to do.
func (o order) Ended() bool { return !slices.Contains(unended, o.State) }

// intent names the order in the journal.
func (o order) intent() cardwire.Intent {
	return cardwire.Intent{Op: operation, Reference: o.Order, BodySHA256: o.Digest, Call: o.Call}
}

const columns = `order_no, state, amount, currency, service_id, service_status, reason, words, call, created_at,
	changed_at, body, body_sha256, said, has_failed, proved, job_id, calls, journal, closed,
	is_other, forgot, missed_at, call_from, call_until, settled_by`

// read reads orders from the view.
func (s *service) read(ctx context.Context, db sqlscan.Querier, where string, args ...any) ([]order, error) {
	list := []order{} // an empty one is [] in JSON
	err := sqlscan.Select(ctx, db, &list, `SELECT `+columns+` FROM payouts_states WHERE `+where, args...)
	for i, o := range list {
		if o.State == forgotten { // what the journal has is of an earlier call, or of another request
			o.Note, o.CallFrom, o.CallUntil = "", moment{}, moment{}
			list[i] = o
		}
		if o.Words != "" {
			list[i].Note = strings.TrimPrefix(o.Note+", "+strconv.Quote(o.Words), ", ")
		}
		switch {
		case o.isLost() && !o.MissedAt.IsZero(): // a call may have begun just before that
			list[i].DenyFrom = moment{o.MissedAt.Add(s.jobTimeout() + s.late)}
		case o.saidPaid() && !o.Proved && o.ChangedAt.After(o.SettledBy.Time):
			list[i].DenyFrom = o.ChangedAt
		case o.State == unresolved, o.State == submitted && !o.Proved:
			list[i].DenyFrom = o.SettledBy
		}
	}
	return list, err
}

var (
	errNoOrder   = newProblem(http.StatusNotFound, "there is no such order")
	errText      = invalid("a string must be UTF-8 without NUL")
	errOtherBody = conflict("this order exists with another body")
	errMoved     = conflict("the order is in another state now")
	errExists    = errors.New("this order exists") // of create only
)

// isText reports whether every database keeps these: PostgreSQL has no NUL, and UTF-8 only.
func isText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

func (s *service) find(ctx context.Context, number string) (order, error) {
	return s.findIn(ctx, s.db, number)
}

func (s *service) findIn(ctx context.Context, db sqlscan.Querier, number string) (order, error) {
	if !isText(number) {
		return order{}, errNoOrder
	}
	list, err := s.read(ctx, db, `order_no = $1`, number)
	if err == nil && len(list) == 0 {
		err = errNoOrder
	}
	return append(list, order{})[0], err
}

// live are the numbers of all orders that have not ended, and of some that have. It
// repeats the conditions of the indexes, without which SQLite does not use them, and hides one
// for which it would take a larger index.
const live = `(SELECT order_no FROM payouts WHERE said <> '' AND said = 'held'
	UNION ALL ` + unheld + `)`

// unheld are those without most of what is held.
const unheld = `SELECT order_no FROM payouts WHERE calls = 0 AND said = ''
	UNION ALL SELECT order_no FROM payouts WHERE missed_at IS NOT NULL AND said NOT IN ('submitted', 'paid', 'returned')
	UNION ALL SELECT reference FROM cardwire_intents WHERE state IN ('open', 'unknown') AND op || '' = 'CreateTransfer'
	UNION ALL SELECT reference FROM cardwire_intents
		WHERE op = 'CreateTransfer' AND state IN ('refused', 'not_sent') AND NOT closed`

// among are the orders to look at for a state, by an index; "": each, of which the newest are
// soon found.
func (s *service) among(ctx context.Context, state string) (condition string, err error) {
	const closed = `SELECT reference FROM cardwire_intents WHERE op = 'CreateTransfer' AND closed
	AND state IN ('refused', 'not_sent')`
	switch state {
	case queued, forgotten, conflicted:
		return ` AND order_no IN ` + live, nil
	case sending, unresolved:
		return ` AND order_no IN (SELECT reference FROM cardwire_intents
	WHERE state IN ('open', 'unknown') AND op || '' = 'CreateTransfer')`, nil
	case held, canceled, paid, returned:
		return ` AND said <> '' AND said = '` + state + `'`, nil
	case failed:
		var n int
		err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM (`+closed+` LIMIT 5001) few`).Scan(&n)
		if n <= 5000 {
			condition = ` AND order_no IN (` + closed + `
	UNION ALL SELECT order_no FROM payouts WHERE said <> '' AND said = 'failed')`
		}
	}
	return condition, err
}

// inTx is what else is done in the transaction of a change. Only tx may use the database
// there: on SQLite there is one connection.
type inTx func(ctx context.Context, tx *sql.Tx, o order) error

// mostAmount keeps the sums of many orders exact in every database.
var mostAmount = decimal.New(1, 12)

// create puts an order and its job into the database, in one transaction with what is
// also done: all is there, or nothing. An order that exists is returned as it is.
func (s *service) create(ctx context.Context, p cardwire.TransferParams, also ...inTx) (o order, err error) {
	switch {
	case p.MerchantOrderNo == "." || p.MerchantOrderNo == "..":
		return o, invalid("an order's number must not be . or .., which no URL can name")
	case p.TransferAmount.GreaterThanOrEqual(mostAmount):
		return o, invalid("transferAmount must be below %s", mostAmount)
	}
	body, err := p.RevealJSON()
	if err != nil {
		return o, err
	}
	digest, err := s.digestOf(ctx, p)
	if err != nil {
		return o, err
	}
	paidOther := false
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		job, err := s.river.InsertTx(ctx, tx, submit{p.MerchantOrderNo}, &river.InsertOpts{Metadata: traceOf(ctx)})
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `
INSERT INTO payouts (order_no, body, body_sha256, amount, currency, job_id, created_at, said)
VALUES ($1, $2, $3, $4, $5, $6, $7, `+heldNow+`) ON CONFLICT (order_no) DO NOTHING RETURNING order_no`,
			p.MerchantOrderNo, string(body), digest, p.TransferAmount.StringFixed(2), p.PayoutCurrency,
			job.Job.ID, time.Now().UTC()).Scan(&o.Order)
		if errors.Is(err, sql.ErrNoRows) {
			err = errExists
		}
		for _, statement := range follow { // what is on record before the order
			if err == nil {
				_, err = tx.ExecContext(ctx, statement, p.MerchantOrderNo)
			}
		}
		if err == nil {
			o, err = s.findIn(ctx, tx, p.MerchantOrderNo)
		}
		if err == nil && o.State == submitted {
			paidOther, err = s.doubt(ctx, tx, o)
		}
		for _, do := range also {
			if err == nil {
				err = do(ctx, tx, o)
			}
		}
		return err
	})
	switch {
	case err == nil:
		s.report(ctx, slog.LevelInfo, o.Order, "created", "merchant", "")
		if paidOther {
			s.report(ctx, slog.LevelError, o.Order, executedOther, "journal", "see its history, and ask the service")
		}
	case errors.Is(err, errExists): // the transaction, with the job in it, is undone
		o, err = s.find(ctx, p.MerchantOrderNo)
		if err == nil && o.Digest != digest {
			err = errOtherBody
		}
	}
	return o, err
}

const executedOther = "executed with another amount"

// doubt records where the number of a new order was executed with another amount or currency, as
// a statement says that knew it first: this order is not sent, and perhaps nobody was paid for it.
func (s *service) doubt(ctx context.Context, tx *sql.Tx, o order) (isOther bool, err error) {
	e, err := s.journal.In(tx).Lookup(ctx, operation, o.Order)
	if err != nil {
		return false, err
	}
	text, currency, _ := strings.Cut(e.Summary, " ")
	amount, err := decimal.NewFromString(text)
	isAmount := err != nil || amount.StringFixed(2) == o.Amount // where it is on record
	if isAmount && (currency == "" || strings.EqualFold(currency, o.Currency)) {
		return false, nil
	}
	return true, record(ctx, tx, o.Order, executedOther, "journal",
		"before it came: "+e.Summary+"; it is not sent: ask the service what was paid")
}

// digestOf returns the digest that the journal will be given of a transfer: only the client
// knows what it sends.
func (s *service) digestOf(ctx context.Context, p cardwire.TransferParams) (digest string, err error) {
	_, err = s.digester.CreateTransfer(context.WithValue(ctx, digestKey{}, &digest), p) // it sends nothing
	if digest != "" {
		err = nil
	}
	return digest, err
}

type digestKey struct{}

// digests is a cardwire.Journal that grants nothing.
type digests struct{}

var errDigested = errors.New("only the digest was wanted")

func (digests) Begin(ctx context.Context, i cardwire.Intent) error {
	if digest, ok := ctx.Value(digestKey{}).(*string); ok {
		*digest = i.BodySHA256
	}
	return errDigested
}

func (digests) End(context.Context, cardwire.Intent, cardwire.IntentResult) error { return errDigested }

func (digests) Void(context.Context, cardwire.Intent, string, string) error { return errDigested }

// report logs what happened to an order: one line for each.
func (s *service) report(ctx context.Context, level slog.Level, number, what, by, why string) {
	s.log.LogAttrs(ctx, level, "payout", slog.String("order", number), slog.String("what", what),
		slog.String("by", by), slog.String("why", why))
}

// event is a line of an order's history.
type event struct {
	Time                 moment
	Where, What, By, Why string
}

// history returns what both tables know of an order, the oldest first.
func (s *service) history(ctx context.Context, o order) ([]event, error) {
	var events []event
	err := sqlscan.Select(ctx, s.db, &events, `SELECT at AS time, 'order' AS "where", what, who AS by, note AS why
FROM payouts_history WHERE order_no = $1 ORDER BY at`, o.Order)
	if err != nil {
		return nil, err
	}
	events = append([]event{{o.CreatedAt, "order", "created", "merchant", ""}}, events...)
	journal, err := s.journal.History(ctx, operation, o.Order)
	if errors.Is(err, sqljournal.ErrNoIntent) {
		err = nil
	}
	for _, h := range journal {
		what := fmt.Sprintf("%s: %s", h.Kind, h.Outcome)
		events = append(events, event{moment{h.Time}, "journal", what, h.By, h.Note})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.Time.Compare(b.Time.Time) })
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
