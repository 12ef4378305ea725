//go:build unix

package merchant

import (
	"context"
	"crypto/rand"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

var flagOrders = flag.Int("orders", 0, "how many orders there are; 0: a few hundred")

// A test that needs other processes starts this program again.
func TestMain(m *testing.M) {
	if os.Getenv(TaskVariable) != "" {
		os.Exit(Work(context.Background()))
	}
	os.Exit(m.Run())
}

// With a journal each order ends once, whatever happens to the processes.
func TestJournal(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(*testing.T) *Place{"SQLite": onSQLite, "PostgreSQL": onPostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := proof(t, orders(300))
			p.Journal, p.Processes, p.Kill, p.Pause = place(t), 3, true, true
			if p.Journal.Dialect == sqljournal.PostgreSQL {
				p.Restart = os.Getenv("CARDWIRE_TEST_POSTGRES_RESTART")
			}
			r := run(t, p)
			assert.Zero(t, r.Flaws())
			assert.Equal(t, r.Orders, r.Submitted+r.Failed)
			if p.Restart != "" {
				assert.Positive(t, r.Restarts)
				assert.Positive(t, r.Sessions)
			}
		})
	}
}

// Without one each order ends once within one process, one client, and what that
// remembers, also if the process is paused.
func TestWithoutAJournal(t *testing.T) {
	t.Parallel()
	p := proof(t, min(orders(300), 60_000))
	p.Processes, p.Pause = 1, true
	r := run(t, p)
	assert.Zero(t, r.Flaws())
	assert.Equal(t, r.Orders, r.Submitted+r.Failed)
}

// A crash, between the service's execution and its response, is what only a journal
// remembers.
func TestACrash(t *testing.T) {
	for name, tc := range map[string]struct {
		journal func(*testing.T) *Place
		timeout time.Duration // without a journal only the crash ends the call
		twice   int
	}{
		"with a journal":    {onSQLite, time.Second, 0},
		"without a journal": {func(*testing.T) *Place { return nil }, time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := proof(t, 1)
			p.Journal, p.Processes, p.Timeout, p.Lease = tc.journal(t), 1, tc.timeout, 50*time.Millisecond
			w, err := p.open(t.Context())
			require.NoError(t, err)
			defer w.close()

			first := w.task
			first.Kinds = []string{"done-hang"} // executed, and no response
			command, _, err := first.start(t.Context())
			require.NoError(t, err)
			require.Eventually(t, func() bool { return w.service.Ledger().Total() == 1 }, time.Minute, time.Millisecond)
			require.NoError(t, command.Process.Kill())
			require.Error(t, command.Wait())

			second := w.task
			second.Kinds = []string{"ok"}
			command, complaint, err := second.start(t.Context())
			require.NoError(t, err)
			require.NoError(t, command.Wait(), complaint)

			r := &Result{Orders: 1, Steps: map[string]int{}}
			require.NoError(t, w.compare(t.Context(), r))
			t.Log(r)
			assert.Equal(t, tc.twice, r.Twice)
			assert.Equal(t, tc.twice, r.Flaws())
			assert.Equal(t, 1, r.Submitted)
		})
	}
}

func orders(few int) int {
	if *flagOrders > 0 {
		return *flagOrders
	}
	return few
}

func proof(t *testing.T, orders int) Proof {
	t.Helper()
	return Proof{
		Dir: t.TempDir(), Orders: orders, Client: clientCardwire, Workers: 24, Limit: 4, Seed: 1,
		Timeout: 400 * time.Millisecond, Grace: 1500 * time.Millisecond, Lease: 2 * time.Second,
	}
}

func run(t *testing.T, p Proof) *Result {
	t.Helper()
	r, err := p.Run(t.Context())
	require.NoError(t, err)
	t.Log(r)
	return r
}

func onSQLite(t *testing.T) *Place {
	t.Helper()
	return migrated(t, Place{"sqlite", dsn(t.TempDir() + "/journal.db"), sqljournal.SQLite, sqljournal.DefaultTable})
}

// onPostgreSQL is on the server that sqljournal/scripts/postgres starts.
func onPostgreSQL(t *testing.T) *Place {
	t.Helper()
	source := os.Getenv("CARDWIRE_TEST_POSTGRES")
	if source == "" {
		t.Skip("CARDWIRE_TEST_POSTGRES is not set: run ../../../sqljournal/scripts/postgres go test ./merchant")
	}
	table := "m_" + strings.ToLower(rand.Text())
	return migrated(t, Place{"pgx", source + "&application_name=" + table, sqljournal.PostgreSQL, table})
}

func migrated(t *testing.T, p Place) *Place {
	t.Helper()
	db, journal, err := p.open()
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, journal.Migrate(t.Context()))
	return &p
}
