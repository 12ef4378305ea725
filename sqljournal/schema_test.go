package sqljournal_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	rules "github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Verify and Migrate say what to open, where it is not what the journal was made for.
func TestADatabaseOfAnotherKind(t *testing.T) {
	t.Parallel()
	memory, journal := open(t, place{"sqlite", ":memory:", sqljournal.SQLite, sqljournal.DefaultTable})
	memory.SetMaxOpenConns(1)
	require.NoError(t, journal.Migrate(t.Context()))
	err := journal.Verify(t.Context())
	require.ErrorIs(t, err, sqljournal.ErrSchema)
	require.ErrorContains(t, err, "a database in memory forgets what was sent: open a file, or use journal.NewMemory")
	eachPlace(t, func(t *testing.T, at place) {
		names := map[sqljournal.Dialect]string{sqljournal.SQLite: "SQLite", sqljournal.PostgreSQL: "PostgreSQL"}
		want := "it is " + names[at.Dialect] + ": pass sqljournal." + names[at.Dialect] + " to New"
		at.Dialect = map[sqljournal.Dialect]sqljournal.Dialect{
			sqljournal.SQLite: sqljournal.PostgreSQL, sqljournal.PostgreSQL: sqljournal.SQLite,
		}[at.Dialect]
		_, journal := open(t, at)
		_, err := journal.Stats(t.Context())
		for _, err := range []error{
			journal.Migrate(t.Context()), journal.Verify(t.Context()), journal.Begin(t.Context(), intent("M-1")), err,
		} {
			require.ErrorIs(t, err, sqljournal.ErrSchema)
			require.ErrorContains(t, err, want)
		}
	})
}

// Verify, Begin and a first Lookup refuse what is not the journal, and say what it is.
func TestWhatIsNotTheJournal(t *testing.T) {
	t.Parallel()
	const nothing = "DROP TABLE @; DROP TABLE @_history; DROP TABLE @_journal"
	for name, tc := range map[string]struct {
		change string // @ is the table
		want   string // from Verify
		sent   bool   // Begin does not look
	}{
		"nothing":          {nothing, "its tables are missing", false},
		"no intents":       {"DROP TABLE @", "a table or a trigger is missing", false},
		"no trigger":       {"DROP TRIGGER @_changed", "a table or a trigger is missing", true},
		"no history":       {"DROP TABLE @_history", "a table or a trigger is missing", false},
		"an empty journal": {"DELETE FROM @_journal", "has no valid row", false},
		"no journal":       {"DROP TABLE @_journal", "its tables are missing", false},
		"an older version": {"UPDATE @_journal SET version = 1", "of an earlier version of this module", true},
		"an older program's": {"ALTER TABLE @_journal DROP oldest_writer", "of an earlier version of this module",
			false},
		"a newer version":    {"UPDATE @_journal SET version = 4, oldest_writer = 3", "update this program", false},
		"another journal":    {"UPDATE @_journal SET identity = 'another'", "it belongs to another journal", false},
		"no identity at all": {"UPDATE @_journal SET identity = ''", "has no valid row", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				if name == "no trigger" && at.Dialect == sqljournal.PostgreSQL {
					t.Skip("it writes its history without")
				}
				db, _ := openNew(t, at)
				_, journal := open(t, at)
				begun(t, journal, intent("M-0"))
				identity, err := journal.Identity(t.Context())
				require.NoError(t, err)
				for statement := range strings.SplitSeq(tc.change, ";") {
					execute(t, db, strings.ReplaceAll(statement, "@", at.Table))
				}
				err = journal.Verify(t.Context())
				require.ErrorIs(t, err, sqljournal.ErrSchema)
				assert.ErrorContains(t, err, tc.want)
				if name != "another journal" { // which it may be that of, for one that is not pinned
					_, other := open(t, at)
					_, err = other.Lookup(t.Context(), transfer, "M-0")
					require.ErrorContains(t, err, tc.want, "also if that is the first thing asked")
				}
				err = journal.Begin(t.Context(), intent("M-1"))
				if tc.sent {
					assert.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, sqljournal.ErrSchema)
				require.NotErrorIs(t, err, cardwire.ErrDuplicateIntent)
				if _, err = journal.Lookup(t.Context(), transfer, "M-0"); name == "another journal" {
					require.ErrorIs(t, err, sqljournal.ErrSchema)
				}
				require.ErrorIs(t, journal.Migrate(t.Context()), sqljournal.ErrSchema, "what is gone is not made anew")
				_, pinned := open(t, at, sqljournal.WithIdentity(identity))
				require.ErrorIs(t, pinned.Migrate(t.Context()), sqljournal.ErrSchema, "nor by who has pinned it")
			})
		})
	}
}

// The tables are those of one schema, whatever the search path says later: with tenant_b, public
// a tenant without tables does not find those of another. The journal in a second schema is not the one that is pinned.
func TestTheTablesAreOfOneSchema(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	db, first := openNew(t, at)
	inSecond := at
	schema := newSchema(t, db)
	inSecond.Source += "&search_path=" + schema
	_, second := openNew(t, inSecond)
	firstID, err := first.Identity(t.Context())
	require.NoError(t, err)
	secondID, err := second.Identity(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, firstID, secondID)

	// As after a change of the connection's settings: the same program, the same schema.
	both, moving := open(t, at)
	both.SetMaxOpenConns(1)
	i := intent("M-1")
	begun(t, moving, i)
	execute(t, both, "SET search_path = "+schema)
	require.NoError(t, moving.End(t.Context(), i, executed))
	assert.Equal(t, "executed T-1", word(moving.Begin(t.Context(), intent("M-1"))))
	require.NoError(t, moving.Void(t.Context(), intent("M-2"), "Ada", ""))
	assertEvents(t, moving, "M-1", "begun: unknown", "ended: executed T-1")
	elsewhere := at
	elsewhere.Table = schema + "." + at.Table
	assert.Empty(t, rows(t, both, elsewhere), "nothing is recorded in the other one")

	tenant := at
	empty := newSchema(t, db)
	tenant.Source += "&search_path=" + empty + ",public"
	_, without := open(t, tenant)
	require.ErrorContains(t, without.Begin(t.Context(), intent("M-1")), "its tables are missing")
	require.NoError(t, without.Migrate(t.Context()))
	begun(t, without, intent("M-1")) // in its own
	nowhere := at
	nowhere.Source += "&search_path=nowhere"
	_, lost := open(t, nowhere)
	require.ErrorContains(t, lost.Verify(t.Context()), "the search path names no schema")

	_, pinned := open(t, at, sqljournal.WithIdentity(secondID))
	require.ErrorIs(t, pinned.Verify(t.Context()), sqljournal.ErrSchema)
	require.ErrorIs(t, pinned.Begin(t.Context(), intent("M-2")), sqljournal.ErrSchema)
	_, qualified := open(t, elsewhere, sqljournal.WithIdentity(secondID))
	require.NoError(t, qualified.Verify(t.Context()))
	begun(t, qualified, settled("M-2"))
	assert.Equal(t, []string{"M-2"}, unresolved(t, second))
}

// After an update of the operating system a linguistic collation orders otherwise, and an index by it
// misses rows: no order that was paid is then granted again.
func TestNoCollationHidesAnOrder(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	admin, _ := open(t, at)
	name := "c_" + strings.ToLower(rand.Text())
	execute(t, admin, "CREATE DATABASE "+name+" LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0")
	t.Cleanup(func() {
		_, err := admin.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		require.NoError(t, err)
	})
	source, err := url.Parse(at.Source)
	require.NoError(t, err)
	source.Path = name
	at.Source = source.String()
	db, journal := openNew(t, at)
	begun(t, journal, intent("M-1"))
	const orders = `SELECT (ARRAY['order-', 'Order ', 'ORDER_', 'örder.'])[n % 4 + 1] || n AS number
		FROM generate_series(1, 2000) AS n`
	execute(t, db, `INSERT INTO `+at.Table+` SELECT (jsonb_populate_record(i, jsonb_build_object(
		'reference', o.number, 'state', 'executed', 'service_id', 'T-' || o.number))).*
		FROM `+at.Table+` AS i, (`+orders+`) AS o`)
	require.NoError(t, db.Close())
	const locale = "CASE WHEN current_setting('server_version_num')::int < 170000 THEN 'daticulocale' " +
		"ELSE 'datlocale' END"
	var column string
	require.NoError(t, admin.QueryRowContext(t.Context(), "SELECT "+locale).Scan(&column))
	execute(t, admin, "UPDATE pg_database SET "+column+" = 'C', datlocprovider = 'c' WHERE datname = '"+name+"'")

	db, journal = open(t, at)
	require.NoError(t, journal.Verify(t.Context()))
	rows, err := db.QueryContext(t.Context(), orders)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var number string
		require.NoError(t, rows.Scan(&number))
		assert.Equal(t, "executed T-"+number, word(journal.Begin(t.Context(), intent(number))))
	}
	require.NoError(t, rows.Err())
	for _, column := range []string{
		" ALTER op", " ALTER reference", " ALTER service_id", "_history ALTER op", "_history ALTER reference",
	} {
		execute(t, db, "ALTER TABLE "+at.Table+column+` TYPE TEXT COLLATE "default"`)
		require.ErrorIs(t, journal.Verify(t.Context()), sqljournal.ErrSchema, column)
		require.ErrorContains(t, journal.Verify(t.Context()), `a column of a key is not COLLATE "C"`)
		execute(t, db, "ALTER TABLE "+at.Table+column+` TYPE TEXT COLLATE "C"`)
	}
	require.NoError(t, journal.Verify(t.Context()))
}

// newSchema creates a schema for the test.
func newSchema(t *testing.T, db *sql.DB) string {
	t.Helper()
	schema := "s_" + strings.ToLower(rand.Text())
	execute(t, db, "CREATE SCHEMA "+schema)
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		require.NoError(t, err)
	})
	return schema
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
		begun(t, journal, intent("M-1"))
		assertEvents(t, journal, "M-1", "begun: unknown")
	})
	_, err := sqljournal.Schema(0, "t")
	require.Error(t, err)
	_, err = sqljournal.Schema(sqljournal.SQLite, "t;")
	require.Error(t, err)
}

func TestTheTablesAreCreatedOnceHoweverOften(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := open(t, at)
		_, err := journal.Identity(t.Context())
		require.ErrorIs(t, err, sqljournal.ErrSchema)
		var group sync.WaitGroup
		for range 8 {
			_, journal := open(t, at)
			group.Go(func() { assert.NoError(t, journal.Migrate(t.Context())) })
		}
		group.Wait()
		id, err := journal.Identity(t.Context())
		require.NoError(t, err)
		assert.Regexp(t, "^[0-9a-f]{32}$", id)
		_, pinned := open(t, at, sqljournal.WithIdentity(id))
		begun(t, pinned, intent("M-1"))
		require.NoError(t, journal.Migrate(t.Context()))
		assert.Equal(t, []string{"M-1 open 1"}, rows(t, db, at))
	})
}

// A table in a schema of its own: in SQLite the file's own name for itself. It has nothing
// to do with one of another name.
func TestAQualifiedTable(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, usual := openNew(t, at)
		begun(t, usual, intent("M-1"))
		schema := "main"
		if at.Dialect == sqljournal.PostgreSQL {
			schema = newSchema(t, db)
		}
		at.Table = schema + ".other"
		_, journal := openNew(t, at)
		i := settled("M-1")
		ended(t, journal, i, unknown)
		require.NoError(t, journal.Resolve(t.Context(), i, paid("T-1")))
		assertEvents(t, journal, "M-1", "begun: unknown", "ended: unknown", "resolved: executed T-1, Ada, ticket 7")
		require.NoError(t, journal.Migrate(t.Context()))
	})
}

// What docs/operations.md grants is enough for a program, and for no more.
func TestThePermissionsOfAProgram(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	db, _ := openNew(t, at)
	role := "r_" + strings.ToLower(rand.Text())
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(page), "cardwire_intents", at.Table)
	granted := regexp.MustCompile(`(GRANT [^;]* TO )payments;`).FindAllStringSubmatch(text, -1)
	require.Len(t, granted, 3)
	execute(t, db, "CREATE ROLE "+role)
	for _, g := range granted {
		execute(t, db, g[1]+role)
	}
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
	first, second := settled("M-1"), settled("M-1")
	ended(t, journal, first, unknown)
	require.NoError(t, journal.Resolve(t.Context(), first, notSent()))
	begun(t, journal, second)
	require.ErrorIs(t, journal.End(t.Context(), first, executed), sqljournal.ErrContradiction)
	require.NoError(t, journal.Void(t.Context(), intent("M-2"), "Ada", ""))
	require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-2").Intent, paid("T-2")))
	assertEvents(t, journal, "M-2", "voided: not_sent, Ada, ", "resolved: executed T-2, Ada, ticket 7")
	_, err = journal.Stats(t.Context())
	require.NoError(t, err)
	assert.Empty(t, unresolved(t, journal))
	for _, statement := range []string{
		"DELETE FROM " + at.Table, "UPDATE " + at.Table + "_history SET note = ''", "DROP TABLE " + at.Table,
		"UPDATE " + at.Table + "_journal SET identity = 'staging'",
	} {
		_, err = program.ExecContext(t.Context(), statement)
		require.ErrorContains(t, err, "42501", statement)
	}
	require.NoError(t, journal.Hold(t.Context(), "Ada", "", 0))

	execute(t, db, "REVOKE UPDATE (era) ON "+at.Table+"_journal FROM "+role)
	err = journal.Verify(t.Context())
	require.ErrorIs(t, err, cardwire.ErrSetup)
	require.ErrorContains(t, err, "GRANT UPDATE (service, account, longest, server, timeline, in_database, in_table, "+
		"era, oldest, back, held_at, floor, held_by, held_why) ON public."+at.Table+"_journal TO "+role)
	execute(t, db, "UPDATE "+at.Table+"_journal SET held_by = '', in_table = '1'") // it may not store its own hold
	_, restarted := open(t, limited)
	require.ErrorContains(t, restarted.Begin(t.Context(), intent("M-9")), "GRANT UPDATE")
	require.ErrorIs(t, journal.Begin(t.Context(), intent("M-9")), rules.ErrOnHold)
	h, err := journal.Held(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "the journal", h.By)
}

// Verify tells what loses commits, and what cannot write, with what to write.
func TestWhatVerifyTells(t *testing.T) {
	t.Parallel()
	verify := func(at place, opts ...sqljournal.Option) error {
		_, journal := open(t, at, opts...)
		return journal.Verify(t.Context())
	}
	refuses := func(at place, want string, opts ...sqljournal.Option) {
		t.Helper()
		err := verify(at, opts...)
		require.ErrorIs(t, err, cardwire.ErrSetup)
		require.ErrorContains(t, err, want)
		_, journal := open(t, at, opts...)
		require.ErrorIs(t, journal.Begin(t.Context(), intent("M-1")), cardwire.ErrSetup, "nothing is sent")
	}
	t.Run("SQLite", func(t *testing.T) {
		at := onSQLite(t, "&_pragma=journal_mode(WAL)")
		openNew(t, at)
		with := func(synchronous, rest string) place {
			at := at
			at.Source = strings.Replace(at.Source, "synchronous(FULL)", "synchronous("+synchronous+")", 1) + rest
			return at
		}
		const full = "PRAGMA synchronous = FULL on every connection"
		refuses(with("OFF", ""), full)
		refuses(with("NORMAL", ""), full)
		refuses(with("OFF", ""), full, sqljournal.WithSynchronousNormal())
		require.NoError(t, verify(with("NORMAL", ""), sqljournal.WithSynchronousNormal()))
		require.NoError(t, verify(with("EXTRA", "")))
		require.ErrorContains(t, verify(with("FULL", "&_pragma=query_only(TRUE)")), "the database is read-only")
		other := onSQLite(t, "")
		openNew(t, other)
		other.Source = strings.Replace(other.Source, "FULL", "NORMAL", 1)
		refuses(other, full, sqljournal.WithSynchronousNormal()) // which only WAL makes safe from a crash
		other.Source = strings.Replace(other.Source, "NORMAL", "FULL", 1) + "&_pragma=journal_mode(MEMORY)"
		refuses(other, "PRAGMA journal_mode = WAL")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		at := onPostgreSQL(t)
		openNew(t, at)
		with := func(setting string) place {
			at := at
			at.Source += "&" + setting
			return at
		}
		refuses(with("synchronous_commit=off"), "synchronous_commit is off, and what was committed last may be lost: "+
			"ALTER ROLE cardwire SET synchronous_commit = on")
		refuses(with("synchronous_commit=local"), "synchronous_commit is local", sqljournal.WithSynchronousFailover())
		require.NoError(t, verify(with("synchronous_commit=local")))
		refuses(with("default_transaction_read_only=on"), "the connection cannot write: connect to the primary")
	})
}

// What waits for a lock keeps all behind it waiting: Migrate gives up, and names the table.
func TestMigrateDoesNotWaitForLong(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	db, journal := openNew(t, at)
	lock, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = lock.ExecContext(t.Context(), "LOCK TABLE "+at.Table+"_journal")
	require.NoError(t, err)
	err = journal.Migrate(t.Context())
	require.ErrorContains(t, err, "others have had "+at.Table+" or one of its tables locked for 5 seconds")
	require.NoError(t, lock.Rollback())
	require.NoError(t, journal.Migrate(t.Context()))
}

// Migrate creates the schema that the table is in, and asks first: who may not create one need not, where it is there.
func TestMigrateCreatesASchema(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	db, _ := open(t, at)
	schema, role := "s_"+strings.ToLower(rand.Text()), "r_"+strings.ToLower(rand.Text())
	t.Cleanup(func() {
		for _, statement := range []string{"DROP SCHEMA " + schema + " CASCADE", "DROP ROLE " + role} {
			_, err := db.ExecContext(context.Background(), statement)
			require.NoError(t, err)
		}
	})
	at.Table = schema + ".first"
	openNew(t, at)
	execute(t, db, "CREATE ROLE "+role, "GRANT CREATE, USAGE ON SCHEMA "+schema+" TO "+role)
	at.Table, at.Source = schema+".second", at.Source+"&role="+role
	_, limited := openNew(t, at)
	begun(t, limited, intent("M-1"))
	at.Table = schema + "2.second"
	_, refused := open(t, at)
	require.ErrorContains(t, refused.Migrate(t.Context()), "a permission is missing")
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	db, _ := open(t, onSQLite(t, ""))
	refusal := func(db *sql.DB, dialect sqljournal.Dialect, opts ...sqljournal.Option) error {
		_, err := sqljournal.New(db, dialect, opts...)
		return err
	}
	for want, err := range map[string]error{
		"sqljournal: the database is nil":                      refusal(nil, sqljournal.SQLite),
		"sqljournal: the dialect must be SQLite or PostgreSQL": refusal(db, 0),
		"sqljournal: an option is nil":                         refusal(db, sqljournal.SQLite, nil),
	} {
		assert.EqualError(t, err, want)
	}
	for _, name := range []string{"", "1a", "a-b", "a b", `a"b`, "A", "a.b.c", ".a", "s.", strings.Repeat("a", 49)} {
		err := refusal(db, sqljournal.SQLite, sqljournal.WithTable(name))
		assert.EqualError(t, err, "sqljournal: the name of a table must be at most 48 of a-z, 0-9 and _, and not "+
			"begin with a digit; a schema may precede it, as in payments.cardwire_intents", name)
	}
	assert.NoError(t, refusal(db, sqljournal.PostgreSQL, sqljournal.WithTable("_"+strings.Repeat("z", 47))))
	names := fmt.Sprint(sqljournal.SQLite, sqljournal.PostgreSQL, sqljournal.Dialect(0))
	assert.Equal(t, "SQLite PostgreSQL Dialect(0)", names)
}
