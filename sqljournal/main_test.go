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

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

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
	for name, at := range map[string]func(*testing.T) place{
		"SQLite":     func(t *testing.T) place { return onSQLite(t, "") },
		"SQLite WAL": func(t *testing.T) place { return onSQLite(t, "&_pragma=journal_mode(WAL)") },
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

func onSQLite(t *testing.T, options string) place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	return place{"sqlite", "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=synchronous(OFF)" + options, sqljournal.SQLite, sqljournal.DefaultTable}
}

// onPostgreSQL gives the test a table of its own.
func onPostgreSQL(t *testing.T) place {
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
func drop(t *testing.T, db *sql.DB, table string) {
	t.Helper()
	for _, name := range []string{table, table + "_history", table + "_journal"} {
		_, err := db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+name)
		require.NoError(t, err)
	}
}

// open returns the database and a journal in it. Each stands for a process.
func open(t *testing.T, at place, opts ...sqljournal.Option) (*sql.DB, *sqljournal.Journal) {
	t.Helper()
	db, err := sql.Open(at.Driver, at.Source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, at.Dialect, append(opts, sqljournal.WithTable(at.Table))...)
	require.NoError(t, err)
	return db, journal
}

// openNew is open, with the schema in place.
func openNew(t *testing.T, at place) (*sql.DB, *sqljournal.Journal) {
	t.Helper()
	db, journal := open(t, at)
	require.NoError(t, journal.Migrate(t.Context()))
	return db, journal
}

// openFor is openNew for a benchmark.
func openFor(b *testing.B, at place) (*sql.DB, *sqljournal.Journal) {
	b.Helper()
	db, err := sql.Open(at.Driver, at.Source)
	require.NoError(b, err)
	journal, err := sqljournal.New(db, at.Dialect, sqljournal.WithTable(at.Table))
	require.NoError(b, err)
	require.NoError(b, journal.Migrate(b.Context()))
	b.Cleanup(func() {
		for _, name := range []string{at.Table, at.Table + "_history", at.Table + "_journal"} {
			_, err := db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+name)
			require.NoError(b, err)
		}
		require.NoError(b, db.Close())
	})
	return db, journal
}
