package merchant

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	weak "math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
)

var flagOrders = flag.Int("orders", 300, "how many orders there are")

// The times of the service, and of support.
const (
	callTimeout = 400 * time.Millisecond
	lateBy      = 1500 * time.Millisecond // Profile.LateExecution
	supportPoll = 300 * time.Millisecond
)

func newMerchant(base string, orders *sql.DB, journal cardwire.Journal) (*merchant, error) {
	client, err := cardwire.New(base, "merchant-key", cardwire.WithJournal(journal), cardwire.WithTimeout(callTimeout),
		cardwire.WithProfile(func(p *cardwire.Profile) { p.DuplicateCodes, p.LateExecution = []int{422}, lateBy }))
	if err != nil {
		return nil, err
	}
	return &merchant{
		orders: orders, call: cardwireCaller(client), journal: journal,
		do:    func(_ string, f func() error) error { return f() },
		lease: callTimeout, again: 50 * time.Millisecond, limit: 4,
	}, nil
}

// work sends orders, 24 at a time.
func work(ctx context.Context, m *merchant) {
	var group sync.WaitGroup
	for range 24 {
		group.Go(func() { m.Run(ctx) })
	}
	group.Wait()
}

// Without a database each order ends once within one client that is never restarted.
func TestOneClient(t *testing.T) {
	t.Parallel()
	w := newSetting(t, min(*flagOrders, 60_000), cardwire.NewMemoryJournal()) // what the journal in memory remembers
	journal := w.journal.(*cardwire.MemoryJournal)
	w.unresolved = func(context.Context) []cardwire.Intent { return journal.Unresolved() }
	w.start(func(ctx context.Context) { work(ctx, w.merchant) })
	w.finish()
}

// setting is the environment of a merchant, which is in this process.
type setting struct {
	*testing.T
	*merchant

	service    *chaos.Running
	base, path string
	number     int // of orders
	unresolved func(context.Context) []cardwire.Intent

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	result
}

// result is what happened, and what the ledger says of the orders.
type result struct {
	Submitted, Failed int

	Twice, FailedPaid, Unpaid, Forgotten, WrongID, Contradicted, Stray int

	mu               sync.Mutex
	NotYet, Canceled int
}

func (r *result) count(n *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n++
}

func newSetting(t *testing.T, number int, journal cardwire.Journal) *setting {
	t.Helper()
	w := &setting{T: t, number: number, path: filepath.Join(t.TempDir(), "orders.db")}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	var err error
	w.service, err = chaos.Start(w.ctx, append(chaos.Kinds(), chaos.GatewayKinds()...))
	require.NoError(t, err)
	t.Cleanup(w.service.Stop)
	w.base, err = w.service.Mix(w.ctx)
	require.NoError(t, err)
	orders, err := openOrders(w.ctx, w.path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, orders.Close()) })
	w.merchant, err = newMerchant(w.base, orders, journal)
	require.NoError(t, err)
	tx, err := orders.BeginTx(w.ctx, nil)
	require.NoError(t, err)
	for n := range number {
		amount := asOrdered
		if n%50 == 0 {
			amount = invalid
		}
		_, err := tx.ExecContext(w.ctx, `INSERT INTO orders (number, amount, due) VALUES (?, ?, 0)`,
			numberOf(n), amount)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
	return w
}

func numberOf(n int) string { return fmt.Sprintf("order-%07d", n) }

// The amounts of messages.
const asOrdered, other, invalid = "10.50", "11.50", "10.505"

// start lets something happen until the orders have ended.
func (w *setting) start(f func(context.Context)) { w.group.Go(func() { f(w.ctx) }) }

// finish waits until all orders have ended and late executions have happened, and compares.
func (w *setting) finish() {
	customers, stop := context.WithCancel(w.ctx)
	w.start(w.support)
	w.start(func(context.Context) { w.customers(customers) })
	w.wait(`shown NOT IN (?, ?)`, cardwiretest.Submitted, cardwiretest.Failed)
	stop()
	flaws := w.compare()
	assert.Empty(w, flaws[:min(len(flaws), 20)])
	assert.Zero(w, w.Stray)
	assert.Equal(w, w.number, w.Submitted+w.Failed)
}

// wait returns when no row is as the condition says.
func (w *setting) wait(condition string, args ...any) {
	for left := true; left; pause(w.ctx, supportPoll) {
		row := w.orders.QueryRowContext(w.ctx, `SELECT EXISTS (SELECT 1 FROM orders WHERE `+condition+`)`, args...)
		require.NoError(w, row.Scan(&left))
	}
}

// customers come again with orders, also with those that ended long ago, some of them with
// another amount or an invalid one, and leave.
func (w *setting) customers(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, 5*time.Millisecond) {
		number := numberOf(weak.IntN(w.number))
		amount := []string{asOrdered, other, invalid}[weak.IntN(3)]
		if weak.IntN(10) > 0 {
			assert.NoError(w, w.Take(context.WithoutCancel(ctx), params(number, amount, "")))
		} else if w.Cancel(ctx, number) == nil {
			w.count(&w.Canceled)
		}
	}
}

// support asks the service about what is unresolved. Nobody believes its "not found" too early.
func (w *setting) support(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, supportPoll) {
		for _, i := range w.unresolved(ctx) {
			found := cardwire.Resolution{By: "support", AsOf: time.Now(), Outcome: cardwire.OutcomeNotSent}
			if weak.IntN(3) == 0 {
				found.Outcome = cardwire.OutcomeRefused
			}
			order := chaos.Order{Op: operation, Reference: i.Reference}
			switch ledger := w.service.Ledger(); {
			case ledger.Executions(order) > 0:
				found.Outcome, found.ServiceID = cardwire.OutcomeExecuted, idOf(i.Reference)
			case ledger.Pending(order) && found.AsOf.After(i.SettledBy):
				continue // a process that is stopped keeps the service waiting
			case ledger.Pending(order):
				w.count(&w.NotYet)
			}
			_ = w.journal.(resolver).Resolve(ctx, i, found) // it is asked again
		}
	}
}

type resolver interface {
	Resolve(context.Context, cardwire.Intent, cardwire.Resolution) error
}

// idOf is the service's identifier of an order.
func idOf(number string) string { return "AO-" + number }

// compare ends the merchant when nothing is due any more, asks the service's ledger about
// each order, and returns what is wrong.
func (w *setting) compare() (flaws []string) {
	w.wait(`due IS NOT NULL`)
	w.cancel()
	w.group.Wait()
	settle, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	require.NoError(w, w.service.Finish(settle))
	r := &w.result
	r.Stray = w.service.Ledger().Total()
	rows, err := w.orders.QueryContext(w.Context(), `SELECT number, shown, service_id, complaint FROM orders`)
	require.NoError(w, err)
	defer rows.Close()
	for rows.Next() {
		var number, id, complaint string
		var shown cardwiretest.Shown
		require.NoError(w, rows.Scan(&number, &shown, &id, &complaint))
		n := w.service.Ledger().Executions(chaos.Order{Op: operation, Reference: number})
		r.Stray -= n
		if flaw := r.flawOf(shown, n, id, idOf(number), complaint); flaw != nil {
			*flaw++
			flaws = append(flaws, fmt.Sprintf("%s: %s, executed %d times, %q, %q", number, shown, n, id, complaint))
		}
	}
	require.NoError(w, rows.Err())
	text, err := json.Marshal(r)
	require.NoError(w, err)
	w.Log(string(text))
	return flaws
}

// flawOf counts an order, and returns the count of what is wrong with it.
func (r *result) flawOf(shown cardwiretest.Shown, executions int, id, want, complaint string) (flaw *int) {
	switch shown {
	case cardwiretest.Submitted:
		r.Submitted++
	case cardwiretest.Failed:
		r.Failed++
	default:
		return &r.Forgotten
	}
	switch {
	case executions > 1:
		return &r.Twice
	case shown == cardwiretest.Failed && executions > 0:
		return &r.FailedPaid
	case shown == cardwiretest.Submitted && executions == 0:
		return &r.Unpaid
	case shown == cardwiretest.Submitted && id != "" && id != want:
		return &r.WrongID
	case complaint != "":
		return &r.Contradicted
	}
	return nil
}
