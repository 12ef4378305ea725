// Package merchant is a proof that cardwire.NextStep can be followed blindly: a merchant
// that does what it says, and knows nothing else, ends each order once.
//
// Its table of orders is its queue too. TestSimulation runs it in a simulation, from seeds,
// with all that cardwiretest.Simulate does to it. Real processes are the proof of package payouts.
//
//	go test ./merchant -run TestSimulation -timeout 60m -args -seeds 2000
package merchant

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"time"

	"github.com/shopspring/decimal"
	_ "modernc.org/sqlite" // the driver of SQLite

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

const schema = `
CREATE TABLE IF NOT EXISTS orders (
	number     TEXT PRIMARY KEY,
	amount     TEXT NOT NULL,              -- of the last message
	account    TEXT NOT NULL DEFAULT '',   -- of the first
	shown      INTEGER NOT NULL DEFAULT 0, -- a cardwiretest.Shown
	service_id TEXT NOT NULL DEFAULT '',
	due        INTEGER,                    -- when it is sent next; NULL: never
	tries      INTEGER NOT NULL DEFAULT 0,
	complaint  TEXT NOT NULL DEFAULT ''    -- what a step said of an order that had ended the other way
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS orders_due ON orders (due);`

// openOrders opens the merchant's table in a file, without waiting for the disk, since no
// test cuts the power.
func openOrders(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", fileOf(path))
	if err == nil {
		_, err = db.ExecContext(ctx, schema)
	}
	return db, err
}

func fileOf(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"
}

// merchant is one program of the merchant's.
type merchant struct {
	orders  *sql.DB
	client  *cardwire.Client
	journal *cardwiretest.SimulatedJournal // it is asked to close what is given up
	do      func(name string, f func() error) error
}

const (
	again = time.Minute // after which an order is looked at again, also one that was being sent
	limit = 4           // how often it is retried
)

// advice is what a call returned, as far as the merchant wants to know.
type advice struct {
	step      cardwire.Step
	after     time.Duration // not before this
	serviceID string
}

func (m *merchant) send(ctx context.Context, p cardwire.TransferParams) advice {
	transfer, err := m.client.CreateTransfer(ctx, p)
	a := advice{step: cardwire.NextStep(err), after: cardwire.RetryAfter(err)}
	if transfer != nil {
		a.serviceID = transfer.APIOrderNo
	}
	if d, ok := errors.AsType[*cardwire.DuplicateIntent](err); ok && a.step == cardwire.StepDone {
		a.serviceID = d.ServiceID
	}
	return a
}

func params(number, amount, account string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString(amount),
		ReceiverBankAccountNumber: account,
	}
}

// change changes one row of the table, also when the program ends. It is one step of the
// simulation.
func (m *merchant) change(ctx context.Context, what, statement string, args ...any) error {
	return m.do(what, func() error {
		_, err := m.orders.ExecContext(context.WithoutCancel(ctx), statement, args...)
		return err
	})
}

// Take accepts a message with an order. Those of orders that have ended are sent as well.
func (m *merchant) Take(ctx context.Context, p cardwire.TransferParams) error {
	return m.change(ctx, "take "+p.MerchantOrderNo, `INSERT INTO orders (number, amount, account, due)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (number) DO UPDATE SET amount = excluded.amount, due = excluded.due WHERE shown IN (?5, ?6)`,
		p.MerchantOrderNo, p.TransferAmount.String(), p.ReceiverBankAccountNumber, time.Now().UnixMilli(),
		cardwiretest.Submitted, cardwiretest.Failed)
}

// Run sends what is due.
func (m *merchant) Run(ctx context.Context) {
	for ctx.Err() == nil {
		var number, amount, account string
		var tries int
		err := m.do("next", func() error {
			now := time.Now()
			return m.orders.QueryRowContext(context.WithoutCancel(ctx), `UPDATE orders SET due = ?1
WHERE number = (SELECT number FROM orders WHERE due <= ?2 ORDER BY due, number LIMIT 1)
RETURNING number, amount, account, tries`,
				now.Add(again).UnixMilli(), now.UnixMilli()).Scan(&number, &amount, &account, &tries)
		})
		if err != nil { // there is none
			pause(ctx, again/2)
			continue
		}
		a := m.send(ctx, params(number, amount, account))
		if a.step == cardwire.StepRetry && tries >= limit {
			a.step = m.giveUp(ctx, number)
		}
		_ = m.record(ctx, number, a) // what is not recorded is sent again
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// giveUp closes a number before its order is failed. Where something happened after all, the
// next call tells.
func (m *merchant) giveUp(ctx context.Context, number string) cardwire.Step {
	if m.void(ctx, number, "too many tries") != nil {
		return cardwire.StepWait
	}
	return cardwire.StepFail
}

func (m *merchant) void(ctx context.Context, number, why string) error {
	return m.journal.Void(ctx, cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: number}, "merchant", why)
}

// record writes down what the step is for an order. An order that has ended stays as it is,
// and no step may say that it ended the other way.
func (m *merchant) record(ctx context.Context, number string, a advice) error {
	next := map[cardwire.Step]cardwiretest.Shown{
		cardwire.StepDone: cardwiretest.Submitted, cardwire.StepFail: cardwiretest.Failed,
		cardwire.StepReconcile: cardwiretest.Unresolved,
	}[a.step]
	return m.change(ctx, "record "+number, `UPDATE orders SET
	complaint = CASE WHEN shown IN (?6, ?7) AND ?2 IN (?6, ?7) AND shown <> ?2 THEN ?3 ELSE complaint END,
	service_id = CASE WHEN ?4 <> '' THEN ?4 ELSE service_id END,
	due = CASE WHEN shown NOT IN (?6, ?7) AND ?2 NOT IN (?6, ?7) THEN ?5 END,
	tries = tries + (?3 = 'retry'),
	shown = CASE WHEN shown IN (?6, ?7) THEN shown ELSE ?2 END
WHERE number = ?1`, number, next, a.step.String(), a.serviceID,
		time.Now().Add(max(a.after, again)).UnixMilli(), cardwiretest.Submitted, cardwiretest.Failed)
}

// Cancel closes the number first: what it cannot close has happened, or may have.
func (m *merchant) Cancel(ctx context.Context, number string) error {
	if err := m.void(ctx, number, "the customer has gone"); err != nil {
		return err
	}
	return m.record(ctx, number, advice{step: cardwire.StepFail})
}

// Show returns what the customer is shown.
func (m *merchant) Show(number string) (shown cardwiretest.Shown) {
	row := m.orders.QueryRowContext(context.Background(), `SELECT shown FROM orders WHERE number = ?`, number)
	_ = row.Scan(&shown) // pending also means that it is not known
	return shown
}
