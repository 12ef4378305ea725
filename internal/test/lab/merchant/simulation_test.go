// Package merchant is a proof that cardwire.NextStep can be followed blindly: a merchant
// that does what it says, and knows nothing else, ends each order once.
//
// Its table of orders is its queue too. TestSimulation runs it in a simulation, from seeds,
// with all that cardwiretest.Simulate does to it. Real processes are the proof of package payouts.
//
//	go test ./merchant -run TestSimulation -timeout 60m -args -seeds 2000
package merchant

import (
	"cmp"
	"context"
	"database/sql"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver of SQLite

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

var flagSeeds = flag.Uint64("seeds", 10, "how many seeds TestSimulation tries with each journal")

const (
	again = time.Minute // after which an order is looked at again, also one that was being sent
	limit = 4           // how often it is retried
)

// order is a row of the merchant's table.
type order struct {
	params cardwire.TransferParams // of the last message
	shown  cardwiretest.Shown
	due    time.Time // when it is sent next; zero: never
	tries  int
}

func ended(s cardwiretest.Shown) bool { return s == cardwiretest.Submitted || s == cardwiretest.Failed }

// merchant is one program of the merchant's.
type merchant struct {
	t      *testing.T
	world  *cardwiretest.World
	client *cardwire.Client
	orders map[string]*order // the table outlives the program, and changes in World.Do
}

// Take accepts a message with an order. Those of orders that have ended are sent as well.
func (m *merchant) Take(_ context.Context, p cardwire.TransferParams) error {
	return m.world.Do("take "+p.MerchantOrderNo, func() error {
		switch o := m.orders[p.MerchantOrderNo]; {
		case o == nil:
			m.orders[p.MerchantOrderNo] = &order{params: p, due: time.Now()}
		case ended(o.shown):
			o.params, o.due = p, time.Now()
		}
		return nil
	})
}

// Run sends what is due.
func (m *merchant) Run(ctx context.Context) {
	for ctx.Err() == nil {
		o, err := m.next()
		if err != nil || o == nil {
			select {
			case <-time.After(again / 2):
			case <-ctx.Done():
			}
			continue
		}
		number := o.params.MerchantOrderNo
		_, err = m.client.CreateTransfer(ctx, o.params)
		step := cardwire.NextStep(err)
		if step == cardwire.StepRetry && o.tries >= limit {
			step = m.giveUp(ctx, number)
		}
		_ = m.record(number, step, cardwire.RetryAfter(err)) // what is not recorded is sent again
	}
}

// next returns a copy of the order that is due first; nil: there is none.
func (m *merchant) next() (first *order, err error) {
	err = m.world.Do("next", func() error {
		for number, o := range m.orders {
			if !o.due.IsZero() && !o.due.After(time.Now()) &&
				(first == nil || cmp.Or(o.due.Compare(first.due), cmp.Compare(number, first.params.MerchantOrderNo)) < 0) {
				first = o
			}
		}
		if first != nil {
			first.due = time.Now().Add(again)
			first = new(*first)
		}
		return nil
	})
	return first, err
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
	i := cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: number}
	return m.world.Journal().Void(ctx, i, "merchant", why)
}

// record writes down what the step is for an order. An order that has ended stays as it is,
// and no step may say that it ended the other way.
func (m *merchant) record(number string, step cardwire.Step, after time.Duration) error {
	shown := map[cardwire.Step]cardwiretest.Shown{
		cardwire.StepDone: cardwiretest.Submitted, cardwire.StepFail: cardwiretest.Failed,
		cardwire.StepReconcile: cardwiretest.Unresolved,
	}[step]
	return m.world.Do("record "+number, func() error {
		o := m.orders[number]
		if o == nil {
			return nil // canceled before it came
		}
		o.due = time.Time{}
		if ended(o.shown) {
			assert.True(m.t, shown == o.shown || !ended(shown), "%s is %v, and the step %v", number, o.shown, step)
			return nil
		}
		o.shown = shown
		if !ended(shown) {
			o.due = time.Now().Add(max(after, again))
		}
		if step == cardwire.StepRetry {
			o.tries++
		}
		return nil
	})
}

// Cancel closes the number first: what it cannot close has happened, or may have.
func (m *merchant) Cancel(ctx context.Context, number string) error {
	if err := m.void(ctx, number, "the customer has gone"); err != nil {
		return err
	}
	return m.record(number, cardwire.StepFail, 0)
}

// Support tells the journal: the next call is told what it knows.
func (m *merchant) Support(ctx context.Context, number string, found journal.Resolution) error {
	i, _ := m.world.Journal().Last(number)
	return m.world.Journal().Resolve(ctx, i, found)
}

func (m *merchant) Show(number string) cardwiretest.Shown {
	if o := m.orders[number]; o != nil {
		return o.shown
	}
	return cardwiretest.Pending
}

func (m *merchant) Close() error { return nil }

func TestSimulation(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) cardwire.Journal{
		"memory": func(*testing.T) cardwire.Journal { return journal.NewMemory() },
		"SQLite": newSQLite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func(w *cardwiretest.World) cardwiretest.Program {
				orders := w.Value("orders", func() any { return map[string]*order{} })
				return &merchant{t, w, w.Client(), orders.(map[string]*order)}
			}
			cardwiretest.Simulate(t, start, cardwiretest.Seeds(1, *flagSeeds), cardwiretest.JournalOf(open))
		})
	}
}

// newSQLite is in memory, where there is a directory for it, since no test cuts the power.
func newSQLite(t *testing.T) cardwire.Journal {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cardwire-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	file := url.URL{Path: filepath.Join(dir, "journal.db")}
	db, err := sql.Open("sqlite", "file:"+file.EscapedPath()+
		"?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, sqljournal.SQLite)
	require.NoError(t, err)
	require.NoError(t, journal.Migrate(t.Context()))
	return journal
}
