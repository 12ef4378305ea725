package sqljournal_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// postgresVariable says how to connect to a PostgreSQL server for tests.
const postgresVariable = "CARDWIRE_TEST_POSTGRES"

// place is where a test's table is.
type place struct {
	Driver  string
	Source  string
	Dialect sqljournal.Dialect
	Table   string
}

// eachPlace runs the test on every kind of database. SQLite is opened without a
// busy timeout, so that nobody but the journal waits for locks.
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

func onSQLite(t testing.TB, options string) place {
	t.Helper()
	path := (&url.URL{Path: filepath.Join(fastDir(t), "journal.db")}).EscapedPath()
	source := "file:" + path + "?_pragma=synchronous(FULL)" + options
	return place{"sqlite", source, sqljournal.SQLite, sqljournal.DefaultTable}
}

// fastDir is a directory in memory, where there is one, since no test cuts the power.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cardwire-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
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
	return place{"pgx", source, sqljournal.PostgreSQL, ""}.another(t)
}

// another is a journal of its own in the same database.
func (p place) another(t testing.TB) place {
	t.Helper()
	p.Table = "t_" + strings.ToLower(rand.Text())
	db, err := sql.Open(p.Driver, p.Source)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, name := range []string{p.Table, p.Table + "_history", p.Table + "_journal"} {
			_, err := db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+name)
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
	})
	return p
}

// open returns the database and a journal in it. Each is like a process of its own.
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

func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// The names of the usual intent.
const (
	transfer = "CreateTransfer"
	service  = "https://api.example.com/api/v1"
	body     = "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
)

// intent returns a call that has just begun.
func intent(reference string) cardwire.Intent { return since(reference, 0) }

// settled returns a call that began so long ago that it can be denied.
func settled(reference string) cardwire.Intent { return since(reference, 2*time.Hour) }

func since(reference string, age time.Duration) cardwire.Intent {
	start := time.Now().Add(-age)
	return cardwire.Intent{
		Call: rand.Text(), Op: transfer, Reference: reference, BodySHA256: body, Service: service,
		Amount: decimal.New(125, -1), Currency: "EUR",
		Time: start, SendBy: start.Add(time.Minute), SettledBy: start.Add(11 * time.Minute),
	}
}

var (
	executed = cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1", Status: "wait_process"}
	refused  = cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}
	final    = cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}
	unknown  = cardwire.IntentResult{}
)

// begun begins the intents.
func begun(t testing.TB, journal *sqljournal.Journal, intents ...cardwire.Intent) {
	t.Helper()
	for _, i := range intents {
		require.NoError(t, journal.Begin(t.Context(), i))
	}
}

// ended begins the intent, and ends it.
func ended(t testing.TB, journal *sqljournal.Journal, i cardwire.Intent, r cardwire.IntentResult) {
	t.Helper()
	begun(t, journal, i)
	require.NoError(t, journal.End(t.Context(), i, r))
}

// What Ada found out just now.
func paid(id string) journal.Resolution { return found(cardwire.OutcomeExecuted, id) }
func rejected() journal.Resolution      { return found(cardwire.OutcomeRefused, "") }
func notSent() journal.Resolution       { return found(cardwire.OutcomeNotSent, "") }

func found(outcome cardwire.Outcome, serviceID string) journal.Resolution {
	return journal.Resolution{Outcome: outcome, ServiceID: serviceID, By: "Ada", Note: "ticket 7", AsOf: time.Now()}
}

// word puts what a journal returned into words.
func word(err error) string {
	d, known := errors.AsType[*cardwire.DuplicateIntent](err)
	switch {
	case err == nil:
		return "ok"
	case known && d.InProgress:
		return "in progress"
	case known:
		return strings.TrimSpace(d.Outcome.String() + " " + d.ServiceID)
	}
	return err.Error()
}

func lookup(t testing.TB, journal *sqljournal.Journal, reference string) sqljournal.Entry {
	t.Helper()
	e, err := journal.Lookup(t.Context(), transfer, reference)
	require.NoError(t, err)
	return e
}

// events are those of a reference in a line each.
func events(t testing.TB, journal *sqljournal.Journal, reference string) (all []string) {
	t.Helper()
	history, err := journal.History(t.Context(), transfer, reference)
	require.NoError(t, err)
	for _, e := range history {
		line := strings.TrimSpace(fmt.Sprintf("%s: %s %s", e.Kind, e.Outcome, e.ServiceID))
		if e.By+e.Note != "" {
			line += ", " + e.By + ", " + e.Note
		}
		all = append(all, line)
	}
	return all
}

func assertEvents(t testing.TB, journal *sqljournal.Journal, reference string, want ...string) {
	t.Helper()
	assert.Equal(t, want, events(t, journal, reference))
}

// unresolved are the references that Unresolved yields.
func unresolved(t testing.TB, journal *sqljournal.Journal) (all []string) {
	t.Helper()
	for e, err := range journal.Unresolved(t.Context()) {
		require.NoError(t, err)
		all = append(all, e.Reference)
	}
	return all
}

// rows are the rows of the table: state, calls, and service ID.
func rows(t testing.TB, db *sql.DB, at place) (all []string) {
	t.Helper()
	query := "SELECT reference, state, calls, service_id FROM " + at.Table + " ORDER BY created_at, reference"
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var reference, state, id string
		var calls int
		require.NoError(t, rows.Scan(&reference, &state, &calls, &id))
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", reference, state, calls, id)))
	}
	require.NoError(t, rows.Err())
	return all
}
