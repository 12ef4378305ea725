package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// State is what is known of an order.
type State string

// The states of an order.
const (
	StateQueued     State = "queued"     // waits for a worker, for the first time or again
	StateSending    State = "sending"    // a call is in progress
	StateUnresolved State = "unresolved" // it may have been executed: a person asks the service
	StateSubmitted  State = "submitted"  // the service accepted it; whether the money arrives is not known yet
	StateFailed     State = "failed"     // not executed, and never will be under this number
	StateCanceled   State = "canceled"   // by a person, before anything was executed
	StatePaid       State = "paid"       // a person recorded that the money arrived
	StateReturned   State = "returned"   // a person recorded that the money came back
)

const operation = cardwire.OpCreateTransfer

// states are all of them: first those in which an order has not ended.
var states = []State{
	StateQueued, StateSending, StateUnresolved, StateSubmitted, StateFailed, StateCanceled, StatePaid, StateReturned,
}

var liveStates, endedStates = states[:3], states[3:]

// hasEnded reports whether a state is an end.
func hasEnded(state State) bool { return slices.Contains(endedStates, state) }

// Order is an order as it is now, without what is personal, which [Details] has. Its state is not stored: it is derived from
// the journal's row.
type Order struct {
	// Number is the merchant's order number.
	Number string `json:"order"`
	// State is what is known of it.
	State State `json:"state"`
	// Amount is the TransferAmount, in units of Currency.
	Amount decimal.Decimal `json:"amount"`
	// Currency is the payout currency, as in EUR.
	Currency string `json:"currency"`
	// ServiceID is the service's number of the transfer; "": not known.
	ServiceID string `json:"service_id,omitempty"`
	// ServiceStatus is the service's own word of what it accepted; "": none.
	ServiceStatus string `json:"service_status,omitempty"`
	// Reason is why the last call failed; "": it did not, or a person has resolved or canceled the order since.
	Reason string `json:"reason,omitempty"`
	// Call names the call that the service is asked about, in the journal; "": none.
	Call string `json:"call,omitempty"`
	// DenyFrom is when the service may first say that it was not executed: before, it may still
	// execute it. Zero: nothing of the kind can be recorded.
	DenyFrom time.Time `json:"deny_from,omitzero"`
	// CreatedAt is when Submit wrote it, in UTC.
	CreatedAt time.Time `json:"created_at"`
	// ChangedAt is when the state last changed, in UTC, or a call last ended.
	ChangedAt time.Time `json:"changed_at"`
}

// MarshalJSON writes the amount with two decimals, whatever package decimal is set to. A struct that embeds an
// Order needs a MarshalJSON of its own.
func (o Order) MarshalJSON() ([]byte, error) {
	type plain Order
	return json.Marshal(struct {
		plain
		Amount string `json:"amount"`
	}{plain(o), o.Amount.StringFixed(2)})
}

// Ended reports whether nothing is left to do.
func (o Order) Ended() bool { return hasEnded(o.State) }

// order is an Order with what people at its page, and the worker, need.
type order struct {
	Order

	Body      string // "": it was purged
	Digest    string // of the body, as the journal has it
	JobID     int64
	Waited    int64  // seconds in which it could have been sent, since its first try
	Words     string // the service's, of the last call that failed
	Said      State  // by a person, of the order
	Told      State  // the last state that was told; "": none, or it is queued or sending again
	ToldID    string
	Journal   string // its state; "": there is no row
	Closed    bool
	Proved    bool // a response says that it was executed
	CallFrom  time.Time
	CallUntil time.Time // when the service may have got it
	SettledBy time.Time
}

const columns = `order_no, state, amount, currency, service_id, service_status, note, words, call, created_at,
	changed_at, body, body_sha256, job_id, waited, said, told, told_id, journal, closed, proved, call_from, call_until,
	settled_by, (SELECT floor FROM @intents_journal)`

// personal are the orders with what the view does not have, since it is personal.
const personal = `@payouts_orders o JOIN (SELECT order_no, body, body_sha256, words FROM @payouts) b USING (order_no)`

func readOrder(scan scan) (o order, err error) {
	var floor time.Time // of a hold
	err = scan(&o.Number, &o.State, &o.Amount, &o.Currency, &o.ServiceID, &o.ServiceStatus, &o.Reason, &o.Words, &o.Call,
		database.Moment(&o.CreatedAt), database.Moment(&o.ChangedAt), &o.Body, &o.Digest, &o.JobID, &o.Waited, &o.Said, &o.Told,
		&o.ToldID, &o.Journal, &o.Closed, &o.Proved, database.Moment(&o.CallFrom), database.Moment(&o.CallUntil), database.Moment(&o.SettledBy), database.Moment(&floor))
	r := journal.Record{Intent: cardwire.Intent{SettledBy: o.SettledBy}, EndedAt: o.ChangedAt}
	if o.Journal == "executed" {
		r.Outcome = cardwire.OutcomeExecuted
	}
	if o.State == StateUnresolved || o.Journal == "executed" && !o.Proved { // a person said so, as of then
		o.DenyFrom = r.DenyFrom(journal.Hold{Floor: floor})
	}
	return o, err
}

// transfer is the order's request, or an error if it was purged, or this release of the client refuses it.
func (o order) transfer() (p cardwire.TransferParams, err error) {
	err = p.UnmarshalJSON([]byte(o.Body))
	return p, err
}

// isFree reports whether a call may begin, as far as the journal's row says.
func (o order) isFree() bool { return !o.Closed && (o.Journal == "refused" || o.Journal == "not_sent") }

// intent names the order in the journal.
func (s *Service) intent(o order) cardwire.Intent {
	return cardwire.Intent{
		Op: operation, Reference: o.Number, BodySHA256: o.Digest, Amount: o.Amount, Currency: o.Currency,
		Service: s.base, Account: s.config.Account,
	}
}

var errOther = conflict("this order number was already used for another transfer")

// amountLimit keeps the sums of many orders exact in every database.
var amountLimit = decimal.New(1, 12)

// Submit puts an order, its row in the journal and its job into the database, in the caller's
// transaction: all is there, or nothing. It uses tx alone. An order that exists is returned as it is;
// of another transfer it is [ErrConflict], which wraps what is on record, as a cardwire.DuplicateIntent: executed means that it
// may have been paid, so do not pay it under another number. Parameters that the client refuses are
// cardwire.ErrInvalidParams.
//
// If the journal has the number already, from another program or from before this package was used, the order is adopted:
// it is submitted, failed, sending or unresolved, as the journal's row says. That needs a row of the same request, or of
// none and of no other amount or currency; any other is [ErrConflict]. In PostgreSQL leave the isolation level at READ
// COMMITTED: otherwise Submit may fail with SQLSTATE 40001, and the transaction must be begun again.
func (s *Service) Submit(ctx context.Context, tx *sql.Tx, p cardwire.TransferParams) (Order, error) {
	number := p.MerchantOrderNo
	if tx == nil {
		return Order{}, errors.New("payouts: Submit needs the caller's transaction: it is nil")
	}
	body, err := p.RevealJSON()
	if err == nil && p.TransferAmount.GreaterThanOrEqual(amountLimit) {
		err = fmt.Errorf("%w: TransferAmount must be below %s", cardwire.ErrInvalidParams, amountLimit)
	}
	if err != nil {
		return Order{}, err
	}
	o := order{Order: Order{Number: number, Amount: p.TransferAmount, Currency: p.PayoutCurrency}, Digest: p.Digest()}
	known, err := s.find(ctx, tx, number)
	if errors.Is(err, ErrNoOrder) {
		if err = s.lookAround(ctx); err == nil {
			err = s.reserve(ctx, tx, o)
		}
		if err == nil {
			err = s.insert(ctx, tx, o, string(body))
		}
		if err == nil {
			known, err = s.find(ctx, tx, number)
		}
	}
	if err == nil && known.Digest != o.Digest {
		err = s.otherOrder(ctx, tx, number)
	}
	if err != nil {
		return Order{}, cmp.Or(refusal(err), s.advise(err))
	}
	return known.Order, nil
}

// SubmitNow is [Service.Submit] in a transaction of its own: for what comes from elsewhere, such as a queue or another
// program, that has nothing of its own to write with the order. It may be called again with the same transfer.
func (s *Service) SubmitNow(ctx context.Context, p cardwire.TransferParams) (o Order, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) (err error) {
		o, err = s.Submit(ctx, tx, p)
		return err
	})
	return o, err
}

// lookAround has the journal look, before the first order and then once a minute, whether the database was restored or moved,
// so that its hold is on record before the order: an order that came during a hold is sent once it is released. Before the
// first order it has to find the journal: a caller's transaction of another database would make that one the journal's. It
// uses a connection of its own, and gives up soon where the pool has none left. With SQLite there is nothing to look for.
func (s *Service) lookAround(ctx context.Context) error {
	last, now := s.looked.Load(), time.Now().UnixNano()
	if s.dialect == sqljournal.SQLite || now-last < int64(sweepEvery) || last != 0 && !s.looked.CompareAndSwap(last, now) {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, minPause)
	defer cancel()
	switch err := s.journal.Verify(short); {
	case err == nil:
		s.looked.Store(now)
	case last == 0:
		return fmt.Errorf("payouts: the journal could not be verified before the first order: "+
			"call Verify when the program starts, or try again: %w", err)
	default:
		s.log.WarnContext(ctx, "the journal could not be verified", "error", err)
	}
	return nil
}

// reserve pins the number to the order's body. What a person or a statement recorded is of no body: it is
// this order's, unless it says another amount or currency.
func (s *Service) reserve(ctx context.Context, tx *sql.Tx, o order) error {
	err := s.journal.In(tx).Reserve(ctx, s.intent(o))
	switch {
	case errors.Is(err, cardwire.ErrOtherBody):
		return conflictOf(err)
	case errors.Is(err, cardwire.ErrDuplicateIntent): // it is pinned, and the order is what it says
		return nil
	}
	return err
}

// otherOrder returns why another transfer cannot have an order's number: what is on record. It changes nothing: the caller
// may commit its transaction.
func (s *Service) otherOrder(ctx context.Context, tx *sql.Tx, number string) error {
	e, err := s.journal.In(tx).Lookup(ctx, operation, number)
	switch {
	case errors.Is(err, sqljournal.ErrNoIntent):
		return errOther
	case err != nil:
		return err
	}
	r := journal.Record{Intent: e.Intent, Outcome: e.Outcome, Open: e.Open, Closed: e.Closed, ServiceID: e.ServiceID}
	if d := r.Duplicate(time.Now()); d != nil {
		return conflictOf(d)
	}
	return errOther
}

func conflictOf(why error) error {
	return fmt.Errorf("%w: %w: if it was executed it may have been paid: do not pay it under another number then", errOther, why)
}

// insert writes the order with its job, unless another transaction was faster. It leaves a mark: an order that the
// journal's row makes ended or unresolved at once is told.
func (s *Service) insert(ctx context.Context, tx *sql.Tx, o order, body string) error {
	job, err := s.river.InsertTx(ctx, tx, submit{o.Number}, insertion(ctx))
	if err != nil {
		return err
	}
	inserted, err := query(ctx, s, tx, database.One[string], `
INSERT INTO @payouts (order_no, body, body_sha256, amount, currency, job_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (order_no) DO NOTHING RETURNING order_no`,
		o.Number, body, o.Digest, o.Amount.StringFixed(2), o.Currency, job.Job.ID, s.moment(time.Now()))
	if err == nil && len(inserted) == 0 {
		_, err = s.river.JobDeleteTx(ctx, tx, job.Job.ID)
		return err
	}
	if err != nil {
		return err
	}
	return s.exec(ctx, tx, `INSERT INTO @payouts_marks (order_no) VALUES ($1)`, o.Number)
}

// Order returns an order as it is now, or [ErrNoOrder].
func (s *Service) Order(ctx context.Context, number string) (Order, error) {
	o, err := s.find(ctx, s.db, number)
	return o.Order, err
}

func (s *Service) find(ctx context.Context, db querier, number string) (order, error) {
	if !isText(number) {
		return order{}, ErrNoOrder
	}
	list, err := s.read(ctx, db, `order_no = $1`, number)
	if err == nil && len(list) == 0 {
		err = ErrNoOrder
	}
	return append(list, order{})[0], err
}

// read reads orders.
func (s *Service) read(ctx context.Context, db querier, where string, args ...any) ([]order, error) {
	return query(ctx, s, db, readOrder, `SELECT `+columns+` FROM `+personal+` WHERE `+where, args...)
}

// isText reports whether every database keeps these: PostgreSQL has no NUL, and UTF-8 only.
func isText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

// logChange logs what happened to an order: one line for each.
func (s *Service) logChange(
	ctx context.Context, level slog.Level, number string, what State, by, why string, more ...slog.Attr,
) {
	s.log.LogAttrs(ctx, level, "payout", append([]slog.Attr{
		slog.String("order", number), slog.String("what", string(what)), slog.String("by", by), slog.String("why", why),
	}, more...)...)
}
