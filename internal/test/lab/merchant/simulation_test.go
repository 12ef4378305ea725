package merchant

import (
	"context"
	"database/sql"
	"flag"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

var flagSeeds = flag.Uint64("seeds", 10, "how many seeds TestSimulation tries with each journal")

// program is the merchant in a simulation.
type program struct {
	*merchant

	t *testing.T
}

// Support tells the journal: the next call is told what it knows.
func (p *program) Support(ctx context.Context, number string, found cardwire.Resolution) error {
	i, _ := p.journal.Last(number)
	return p.journal.Resolve(ctx, i, found)
}

// Close also checks that no step said of an order that it ended the other way.
func (p *program) Close() error {
	var contradicted int
	row := p.orders.QueryRowContext(context.Background(), `SELECT count(*) FROM orders WHERE complaint <> ''`)
	assert.NoError(p.t, row.Scan(&contradicted))
	assert.Zero(p.t, contradicted)
	p.client.CloseIdleConnections()
	return p.orders.Close()
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) cardwire.Journal{
		"memory": func(*testing.T) cardwire.Journal { return cardwire.NewMemoryJournal() },
		"SQLite": newSQLite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func(w *cardwiretest.World) cardwiretest.Program {
				path := w.Value("orders", func() any { return filepath.Join(t.TempDir(), "orders.db") })
				orders, err := openOrders(context.Background(), path.(string))
				require.NoError(t, err)
				return &program{&merchant{orders, w.Client(), w.Journal(), w.Do}, t}
			}
			cardwiretest.Simulate(t, start, cardwiretest.Seeds(1, *flagSeeds), cardwiretest.JournalOf(open))
		})
	}
}

func newSQLite(t *testing.T) cardwire.Journal {
	t.Helper()
	db, err := sql.Open("sqlite", fileOf(filepath.Join(t.TempDir(), "journal.db")))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, sqljournal.SQLite)
	require.NoError(t, err)
	require.NoError(t, journal.Migrate(t.Context()))
	return journal
}
