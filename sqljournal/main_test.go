package sqljournal_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// A test that needs other processes starts this program again as a worker.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// postgresVariable holds how to connect to a PostgreSQL server for tests.
const postgresVariable = "CARDWIRE_TEST_POSTGRES"

// place is where a test's table is. Workers are given one as well.
type place struct {
	Driver  string
	Source  string
	Dialect sqljournal.Dialect
	Table   string
}

// eachPlace runs the test on every kind of database. SQLite is opened without a
// busy timeout, so that nobody but the journal waits for locks, and does not
// wait for the disk, since no test cuts the power.
func eachPlace(t *testing.T, test func(t *testing.T, at place)) {
	t.Helper()
	for name, at := range map[string]func(testing.TB) place{
		"SQLite":     func(t testing.TB) place { return onSQLite(t, "") },
		"SQLite WAL": func(t testing.TB) place { return onSQLite(t, "&_pragma=journal_mode(WAL)") },
		"PostgreSQL": onPostgreSQL,
	} {
		t.Run(name, func(t *testing.T) { test(t, at(t)) })
	}
}

// unhurried is a test for eachPlace in a bubble, whose clock stands still while
// anyone works: no deadline passes because the machine is slow. The clock of a
// PostgreSQL server is not that of the bubble.
func unhurried(test func(t *testing.T, at place)) func(*testing.T, place) {
	return func(t *testing.T, at place) {
		synctest.Test(t, func(t *testing.T) { test(t, at) })
	}
}

func onSQLite(t testing.TB, options string) place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	return place{"sqlite", "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=synchronous(OFF)" + options, sqljournal.SQLite, sqljournal.DefaultTable}
}

// onPostgreSQL gives the test a table of its own.
func onPostgreSQL(t testing.TB) place {
	t.Helper()
	source := os.Getenv(postgresVariable)
	if source == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set, and these tests must run under CI: use scripts/postgres", postgresVariable)
		}
		t.Skipf("%s is not set: run scripts/postgres go test ./...", postgresVariable)
	}
	at := place{"pgx", source, sqljournal.PostgreSQL, "t_" + strings.ToLower(rand.Text())}
	t.Cleanup(func() {
		db, err := sql.Open(at.Driver, at.Source)
		require.NoError(t, err)
		defer db.Close()
		drop(t, db, at.Table)
	})
	return at
}

// another is a journal of its own in the same database, or in a database beside it.
func (p place) another(t *testing.T) place {
	t.Helper()
	p.Table = "t_" + strings.ToLower(rand.Text())
	db, err := sql.Open(p.Driver, p.Source)
	require.NoError(t, err)
	t.Cleanup(func() {
		drop(t, db, p.Table)
		require.NoError(t, db.Close())
	})
	return p
}

// drop drops a journal's tables.
func drop(t testing.TB, db *sql.DB, table string) {
	t.Helper()
	for _, name := range []string{table, table + "_history", table + "_journal"} {
		_, err := db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+name)
		require.NoError(t, err)
	}
}

// open returns the database and a journal in it. Each stands for a process.
func open(t testing.TB, at place, opts ...sqljournal.Option) (*sql.DB, *sqljournal.Journal) {
	t.Helper()
	db, err := sql.Open(at.Driver, at.Source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, at.Dialect, append(opts, sqljournal.WithTable(at.Table))...)
	require.NoError(t, err)
	return db, journal
}

// openNew is open, with the schema in place.
func openNew(t testing.TB, at place) (*sql.DB, *sqljournal.Journal) {
	t.Helper()
	db, journal := open(t, at)
	require.NoError(t, journal.Migrate(t.Context()))
	return db, journal
}


// intent returns one as the client creates it.
func intent(reference string) cardwire.Intent {
	now := time.Now()
	return cardwire.Intent{
		Call: rand.Text(), Op: "CreateTransfer", Reference: reference, Summary: "100.00 EUR", Service: "https://api.example.com/api/v1",
		BodySHA256: "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a",
		Time: now, SendBy: now.Add(30 * time.Second), SettledBy: now.Add(11 * time.Minute),
	}
}
