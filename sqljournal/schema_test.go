package sqljournal_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// Verify and Begin refuse what is not the journal, and say what it is.
func TestWhatIsNotTheJournal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change []string // @ is the table
		want   string   // from Verify
		sent   bool     // Begin does not look
	}{
		"nothing":            {[]string{"DROP TABLE @", "DROP TABLE @_history", "DROP TABLE @_journal"}, "its tables are missing", false},
		"no intents":         {[]string{"DROP TABLE @"}, "a table or a trigger is missing", false},
		"no history":         {[]string{"DROP TABLE @_history"}, "a table or a trigger is missing", false},
		"an empty journal":   {[]string{"DELETE FROM @_journal"}, "has no valid row", false},
		"an older version":   {[]string{"UPDATE @_journal SET version = 1"}, "has no valid row", true},
		"version 1":          {[]string{"DROP TABLE @_journal"}, "its tables are of version 1: upgrade them with Migrate", false},
		"a newer version":    {[]string{"UPDATE @_journal SET version = 3"}, "update this program", true},
		"another journal":    {[]string{"UPDATE @_journal SET identity = 'another'"}, "it belongs to another journal", false},
		"no identity at all": {[]string{"UPDATE @_journal SET identity = ''"}, "has no valid row", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				db, _ := openNew(t, at)
				_, journal := open(t, at)
				require.NoError(t, journal.Verify(t.Context()))
				for _, statement := range tc.change {
					execute(t, db, strings.ReplaceAll(statement, "@", at.Table))
				}
				err := journal.Verify(t.Context())
				require.ErrorIs(t, err, sqljournal.ErrSchema)
				assert.ErrorContains(t, err, tc.want)
				err = journal.Begin(t.Context(), intent("M-1"))
				if tc.sent {
					assert.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, sqljournal.ErrSchema)
				require.NotErrorIs(t, err, cardwire.ErrDuplicateIntent)
				require.ErrorIs(t, journal.Migrate(t.Context()), sqljournal.ErrSchema, "what is gone is not made anew")
			})
		})
	}
}

// The journal in a second schema is not the one that was found first, nor is an
// older backup's the one that is pinned.
func TestASecondSchemaStopsThePayment(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	db, _ := openNew(t, at)
	schema := "s_" + strings.ToLower(rand.Text())
	execute(t, db, "CREATE SCHEMA "+schema)
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		require.NoError(t, err)
	})
	inSecond := at
	inSecond.Source += "&search_path=" + schema
	_, second := openNew(t, inSecond)
	_, first := open(t, at)
	firstID, err := first.Identity(t.Context())
	require.NoError(t, err)
	secondID, err := second.Identity(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, firstID, secondID)

	// As after a change of the connection's settings: the same program, the other schema.
	both, err := sql.Open(at.Driver, at.Source)
	require.NoError(t, err)
	defer both.Close()
	both.SetMaxOpenConns(1)
	moving, err := sqljournal.New(both, at.Dialect, sqljournal.WithTable(at.Table))
	require.NoError(t, err)
	require.NoError(t, moving.Begin(t.Context(), intent("M-1")))
	execute(t, both, "SET search_path = "+schema)
	err = moving.Begin(t.Context(), intent("M-1"))
	require.ErrorIs(t, err, sqljournal.ErrSchema)
	assert.ErrorContains(t, err, "it belongs to another journal")
	require.ErrorIs(t, moving.End(t.Context(), intent("M-1"), cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted}), sqljournal.ErrSchema)
	_, err = moving.Stats(t.Context())
	require.ErrorIs(t, err, sqljournal.ErrSchema, "nothing unresolved would be no good news")
	_, err = moving.Lookup(t.Context(), "CreateTransfer", "M-1")
	require.ErrorIs(t, err, sqljournal.ErrSchema)
	_, err = moving.History(t.Context(), "CreateTransfer", "M-1")
	require.ErrorIs(t, err, sqljournal.ErrSchema)
	for _, err := range moving.Unresolved(t.Context(), 0) {
		require.ErrorIs(t, err, sqljournal.ErrSchema)
	}
	assert.Empty(t, rowsOf(t, both, schema+"."+at.Table), "nothing is recorded in the wrong place")

	pinned, err := sqljournal.New(db, at.Dialect, sqljournal.WithTable(at.Table), sqljournal.WithIdentity(secondID))
	require.NoError(t, err)
	require.ErrorIs(t, pinned.Verify(t.Context()), sqljournal.ErrSchema)
	require.ErrorIs(t, pinned.Begin(t.Context(), intent("M-2")), sqljournal.ErrSchema)
	qualified, err := sqljournal.New(db, at.Dialect, sqljournal.WithTable(schema+"."+at.Table), sqljournal.WithIdentity(secondID))
	require.NoError(t, err)
	require.NoError(t, qualified.Verify(t.Context()))
	require.NoError(t, qualified.Begin(t.Context(), intent("M-2")))
	assert.Len(t, list(t, second, 0), 1)
}

// A file that was deleted is another database, also for a program that runs on.
func TestADeletedFileStopsThePayment(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	_, before := openNew(t, at)
	identity, err := before.Identity(t.Context())
	require.NoError(t, err)
	db, journal := open(t, at)
	db.SetMaxIdleConns(0) // an open connection to a deleted file cannot notice
	require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
	path := strings.TrimPrefix(strings.Split(at.Source, "?")[0], "file:")
	require.NoError(t, os.Remove(filepath.FromSlash(path)))
	require.ErrorIs(t, journal.Begin(t.Context(), intent("M-1")), sqljournal.ErrSchema)
	require.ErrorIs(t, journal.Verify(t.Context()), sqljournal.ErrSchema)
	require.ErrorIs(t, journal.Migrate(t.Context()), sqljournal.ErrSchema)
	_, pinned := open(t, at, sqljournal.WithIdentity(identity))
	require.ErrorIs(t, pinned.Migrate(t.Context()), sqljournal.ErrSchema, "a new journal is not the one that is pinned")
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := open(t, at)
		_, err := journal.Identity(t.Context())
		require.ErrorIs(t, err, sqljournal.ErrSchema)
		require.NoError(t, journal.Migrate(t.Context()))
		id, err := journal.Identity(t.Context())
		require.NoError(t, err)
		assert.Regexp(t, "^[0-9a-f]{32}$", id)
		_, same := openNew(t, at)
		again, err := same.Identity(t.Context())
		require.NoError(t, err)
		assert.Equal(t, id, again, "it was drawn once")
		_, pinned := open(t, at, sqljournal.WithIdentity(id))
		assert.NoError(t, pinned.Begin(t.Context(), intent("M-1")))
	})
}

// What Schema prints is what Migrate does.
func TestTheStatementsOfTheSchema(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := open(t, at)
		statements, err := sqljournal.Schema(at.Dialect, at.Table)
		require.NoError(t, err)
		execute(t, db, statements)
		require.NoError(t, journal.Verify(t.Context()))
		require.NoError(t, journal.Migrate(t.Context()), "there is nothing to do")
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		assert.Equal(t, []string{"begun: unknown"}, kinds(t, journal))
	})
	_, err := sqljournal.Schema(0, "t")
	require.Error(t, err)
	_, err = sqljournal.Schema(sqljournal.SQLite, "t;")
	require.Error(t, err)
}

func kinds(t *testing.T, journal *sqljournal.Journal) (all []string) {
	t.Helper()
	history, err := journal.History(t.Context(), transfer, "M-1")
	require.NoError(t, err)
	for _, e := range history {
		all = append(all, e.Kind+": "+e.Outcome.String())
	}
	return all
}

// A table in a schema of its own: in SQLite the file's own name for itself.
func TestAQualifiedTable(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := open(t, at)
		schema := "main"
		if at.Dialect == sqljournal.PostgreSQL {
			schema = "s_" + strings.ToLower(rand.Text())
			execute(t, db, "CREATE SCHEMA "+schema)
			t.Cleanup(func() {
				_, err := db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
				require.NoError(t, err)
			})
		}
		at.Table = schema + "." + at.Table
		_, journal := openNew(t, at)
		i := intent("M-1")
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{}))
		assert.Equal(t, []string{"begun: unknown", "ended: unknown"}, kinds(t, journal))
		assert.Len(t, list(t, journal, 0), 1)
		require.NoError(t, journal.Migrate(t.Context()))
	})
}

// version1 is the table as it was before there was a history.
func version1(d sqljournal.Dialect, table string) []string {
	id, flag, count, moment := "INTEGER PRIMARY KEY", "INTEGER", "INTEGER", "TEXT"
	if d == sqljournal.PostgreSQL {
		id, flag, count, moment = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BOOLEAN", "BIGINT", "TIMESTAMPTZ"
	}
	return []string{
		"CREATE TABLE " + table + " (id " + id + ", op TEXT NOT NULL, reference TEXT NOT NULL, exclusive " + flag + " NOT NULL, body_sha256 TEXT NOT NULL," +
			"state TEXT NOT NULL CHECK (state IN ('open', 'undecided', 'executed', 'refused', 'not_sent')), holder TEXT NOT NULL, attempts " + count + " NOT NULL," +
			"service_id TEXT NOT NULL, created_at " + moment + " NOT NULL, begun_at " + moment + " NOT NULL, ended_at " + moment + ")",
		"CREATE UNIQUE INDEX " + table + "_exclusive ON " + table + " (op, reference) WHERE exclusive",
		"CREATE INDEX " + table + "_reference ON " + table + " (op, reference)",
		"CREATE INDEX " + table + "_undecided ON " + table + " (begun_at) WHERE state IN ('open', 'undecided')",
	}
}

// What the older version recorded keeps its meaning, while several upgrade at once.
func TestMigrateUpgradesVersion1(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := open(t, at)
		execute(t, db, version1(at.Dialect, at.Table)...)
		for _, row := range []string{"'open', 1, '', NULL", "'undecided', 2, 'T-1', E", "'executed', 1, 'T-2', E", "'refused', 1, '', E", "'not_sent', 1, '', E"} {
			state, _, _ := strings.Cut(strings.Trim(row, "'"), "'")
			execute(t, db, strings.ReplaceAll("INSERT INTO "+at.Table+
				" (op, reference, exclusive, body_sha256, holder, created_at, begun_at, state, attempts, service_id, ended_at) VALUES ('CreateTransfer', 'M-"+state+
				"', TRUE, '"+canaryBody+"', 'old-1-1', '2026-01-01T09:00:00.000000Z', '2026-01-02T09:00:00.000000Z', "+row+")", "E)", "'2026-01-02T09:00:07.000000Z')"))
		}
		require.ErrorIs(t, journal.Begin(t.Context(), intent("M-1")), sqljournal.ErrSchema)
		var group sync.WaitGroup
		for range 4 {
			_, other := open(t, at)
			group.Go(func() { assert.NoError(t, other.Migrate(t.Context())) })
		}
		group.Wait()
		require.NoError(t, journal.Verify(t.Context()))

		want := map[string]string{
			"M-open": "taken, unknown", "M-undecided": "taken, unknown", "M-executed": "taken, executed", "M-refused": "ok", "M-not_sent": "ok",
		}
		assert.Equal(t, []string{"M-open", "M-undecided"}, references(t, journal, time.Hour))
		e := lookup(t, journal, "M-undecided")
		first := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
		assert.Equal(t, sqljournal.Entry{Op: transfer, Reference: "M-undecided", BodySHA256: canaryBody, Unique: true, Attempts: 2, ServiceID: "T-1", Try: "2-2",
			CreatedAt: first, BegunAt: first.AddDate(0, 0, 1), SendBy: first.AddDate(0, 0, 1).Add(7 * time.Second), EndedAt: first.AddDate(0, 0, 1).Add(7 * time.Second)}, e)
		history, err := journal.History(t.Context(), transfer, "M-undecided")
		require.NoError(t, err)
		assert.Equal(t, []sqljournal.Event{
			{Time: e.BegunAt, Kind: "begun", Try: "2-2", Note: "from version 1 of the schema"},
			{Time: e.EndedAt, Kind: "ended", Try: "2-2", Note: "from version 1 of the schema"},
		}, history)
		for reference, begin := range want {
			assert.Equal(t, begin, word(journal.Begin(t.Context(), intent(reference))), reference)
		}
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		require.NoError(t, journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeRefused}))
		assert.Equal(t, "ok", word(journal.Begin(t.Context(), intent("M-undecided"))))
	})
}

// What the package documentation says that a program may do is enough.
func TestThePermissionsOfAProgram(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	db, _ := openNew(t, at)
	role := "r_" + strings.ToLower(rand.Text())
	execute(t, db, "CREATE ROLE "+role, "GRANT SELECT, INSERT, UPDATE ON "+at.Table+" TO "+role,
		"GRANT SELECT, INSERT ON "+at.Table+"_history TO "+role, "GRANT SELECT ON "+at.Table+"_journal TO "+role)
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			_, err := db.ExecContext(context.Background(), statement)
			require.NoError(t, err)
		}
	})
	limited := at
	limited.Source += "&role=" + role
	program, journal := open(t, limited)
	require.NoError(t, journal.Verify(t.Context()))
	for _, unique := range []bool{true, false} {
		i := intent("M-1")
		i.Unique = unique
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{}))
		require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1"), sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent}))
	}
	require.NoError(t, journal.Void(t.Context(), transfer, "M-1", "Ada", ""))
	_, err := journal.Stats(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list(t, journal, 0))
	_, err = program.ExecContext(t.Context(), "DELETE FROM "+at.Table)
	assert.Error(t, err, "it has no more permissions than those")
}

// What may be begun again is not closed, and nobody is told that it is.
func TestACancellingCannotBeVoided(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	for _, op := range []string{"CancelOperation", "RetryOperation"} {
		require.ErrorContains(t, journal.Void(t.Context(), op, "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "ops", "gone"), "sqljournal: CancelOperation and RetryOperation may be begun again and cannot be voided")
	}
}

// What was voided is not sent again, also where a retry would be and a late result says
// that its outcome is unknown: a bare duplicate would be lifted by ServerDeduplicates.
func TestAVoidedReferenceThatEndsUnknownIsNotSentAgain(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	openNew(t, at)
	_, retrying := open(t, at, sqljournal.WithRepeats())
	require.NoError(t, retrying.Begin(t.Context(), intent("M-1")))
	require.NoError(t, retrying.End(t.Context(), intent("M-1"), cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}))
	require.NoError(t, retrying.Void(t.Context(), "CreateTransfer", "M-1", "ops", "given up"))
	require.NoError(t, retrying.End(t.Context(), intent("M-1"), cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}))
	err := retrying.Begin(t.Context(), intent("M-1"))
	require.ErrorIs(t, err, cardwire.ErrDuplicateIntent)
	_, bare := err.(*cardwire.DuplicateIntent)
	assert.False(t, bare, "%v", err)
}
