package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river/rivermigrate"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// release is the version of the tables that this program reads and writes.
const release = 3

// JournalTable is what [sqljournal.WithTable] takes in another program that sends transfers of the same account: the
// journal in a schema of PostgreSQL, as in [Config]. In SQLite it is [sqljournal.DefaultTable].
func JournalTable(schema string) string {
	return cmp.Or(schema, defaultSchema) + "." + sqljournal.DefaultTable
}

// parts are what the tables need to be whole, each with how to find it.
var parts = map[sqljournal.Dialect][][2]string{
	sqljournal.SQLite: {
		{"a trigger on @intents", `SELECT count(*) = 2 FROM sqlite_master WHERE type = 'trigger'
	AND name IN ('@payouts_begun', '@payouts_changed') AND tbl_name = '@intents'`},
		{"the view @payouts_orders", `SELECT count(*) = 1 FROM sqlite_master WHERE type = 'view' AND name = '@payouts_orders'`},
		{"the foreign key of @payouts", `SELECT count(*) = 2 FROM pragma_foreign_key_list('@payouts')
	WHERE "table" = '@intents' AND "from" IN ('op', 'order_no')`},
	},
	sqljournal.PostgreSQL: {
		{"the trigger payouts_mark on @intents", `SELECT count(*) = 1 FROM pg_trigger
	WHERE tgname = 'payouts_mark' AND tgrelid = to_regclass('@intents') AND tgenabled IN ('O', 'A')`},
		{"the view @payouts_orders", `SELECT to_regclass('@payouts_orders') IS NOT NULL`},
		{"the foreign key of @payouts", `SELECT count(*) = 1 FROM pg_constraint WHERE contype = 'f' AND convalidated
	AND conrelid = to_regclass('@payouts') AND confrelid = to_regclass('@intents')`},
	},
}

// rights are what a program's role needs, as statements grant them, each with how to ask for one.
var rights = []struct{ grant, ask string }{
	{"USAGE ON SCHEMA @schema", "has_schema_privilege(to_regnamespace(thing), privilege)"},
	{"SELECT ON @payouts_orders, @river_migration", hasTable},
	{"SELECT, INSERT ON @intents_history, @payouts_history", hasTable},
	{"SELECT, UPDATE ON @intents_journal, @payouts_control", hasTable},
	{"SELECT, INSERT, UPDATE ON @intents, @payouts, @payouts_turns", hasTable},
	{"SELECT, INSERT, UPDATE, DELETE ON @payouts_marks, @river_job, @river_leader, @river_queue, @river_notification", hasTable},
	{"USAGE ON SEQUENCE @river_job_id_seq", "has_sequence_privilege(to_regclass(thing), privilege)"},
}

const hasTable = "has_table_privilege(to_regclass(thing), privilege)"

// Migrate creates or upgrades all tables: the journal's, the queue's and its own, in PostgreSQL also their schema. It is a
// step of the deployment, once for each new database and release, and needs permission to create them. In PostgreSQL
// several may run at once, beside programs that send. Of a newer release it changes nothing.
func (s *Service) Migrate(ctx context.Context) error {
	err := s.checkConnections(ctx)
	if err == nil {
		err = s.checkRelease(ctx, true)
	}
	if err == nil {
		err = s.journal.Migrate(ctx)
	}
	if err != nil {
		return err
	}
	isDeadlock := func(err error) bool { return slices.Contains([]string{"40P01", "40001"}, database.State(err)) }
	err = database.Again(ctx, isDeadlock, func() error { return s.createTables(ctx) }) // calls in progress wait for it, and it for them
	if database.State(err) == "55P03" {
		err = fmt.Errorf(s.sql("payouts: others have had @intents locked for 5 seconds: look for them in pg_locks, and try again: %w"), err)
	}
	return err
}

// createTables has one program at a time create the tables. River does so in transactions of its own.
func (s *Service) createTables(ctx context.Context) error {
	create := func(ctx context.Context) error {
		migrator, err := s.migrator()
		if err == nil {
			_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		if err != nil || s.checkParts(ctx) == nil {
			return err // nobody has to wait for locks on tables that are in use
		}
		return s.transaction(ctx, func(tx *sql.Tx) error {
			lock := ""
			if s.dialect == sqljournal.PostgreSQL { // who waits for the lock has all others wait
				lock = `SET LOCAL lock_timeout = '5s'; LOCK TABLE @intents IN ACCESS EXCLUSIVE MODE; `
			}
			return s.exec(ctx, tx, lock+embedded("schema.sql")+embedded(strings.ToLower(s.dialect.String())+".sql"))
		})
	}
	if s.dialect == sqljournal.SQLite {
		return create(ctx)
	}
	return s.transaction(ctx, func(tx *sql.Tx) error {
		if err := s.exec(ctx, tx, `SELECT pg_advisory_xact_lock(5821034417)`); err != nil {
			return err
		}
		return create(ctx)
	})
}

// checkRelease reports tables of another release. A new database has none.
func (s *Service) checkRelease(ctx context.Context, mayBeNew bool) error {
	there := `SELECT count(*) > 0 FROM sqlite_master WHERE name = '@payouts_control'`
	if s.dialect == sqljournal.PostgreSQL {
		there = `SELECT to_regclass('@payouts_control') IS NOT NULL`
	}
	found, err := query(ctx, s, s.db, database.One[bool], there)
	var releases []int64
	if err == nil && found[0] {
		releases, err = query(ctx, s, s.db, database.One[int64], `SELECT release FROM @payouts_control`)
	}
	switch {
	case err != nil:
		return fmt.Errorf("payouts: its tables cannot be read: %w", err)
	case !found[0] && mayBeNew:
		return nil
	case len(releases) == 0:
		return errors.New(s.sql("payouts: there is no row in @payouts_control: if the database is new, call Migrate once, " +
			"and otherwise restore it from a backup"))
	case releases[0] > release:
		return errors.New("payouts: its tables are of a newer release: update this program")
	case releases[0] < release:
		return errors.New("payouts: its tables are of a release that is not upgraded: use a new schema or file")
	}
	return nil
}

// checkParts reports what is missing, or that orders have no row in the journal: somebody has removed the foreign key.
func (s *Service) checkParts(ctx context.Context) error {
	if err := s.checkRelease(ctx, false); err != nil {
		return err
	}
	for _, part := range parts[s.dialect] {
		found, err := query(ctx, s, s.db, database.One[bool], part[1])
		if err != nil {
			return err
		}
		if !found[0] {
			return errors.New(s.sql("payouts: " + part[0] + " is missing: call Migrate once"))
		}
	}
	return nil
}

func (s *Service) migrator() (*rivermigrate.Migrator[*sql.Tx], error) {
	return rivermigrate.New(s.driver, &rivermigrate.Config{Logger: s.log, Schema: s.config.Schema})
}

// Verify reports why this program must not run on the database: SQLite's connection lacks a setting, a
// table, trigger or key is missing, PostgreSQL does not let it use one, another journal is there for the same account, or
// the orders are another service's or another account's. It is a readiness check too, and creates nothing. While nothing
// is sent, as on hold, it returns nil: people need the page then.
func (s *Service) Verify(ctx context.Context) error {
	for _, check := range []func(context.Context) error{
		s.checkConnections, s.checkRights, s.checkJournal, s.checkParts, s.checkOtherJournals, s.checkQueue,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkJournal reports what is wrong with the journal, or that it is another account's.
func (s *Service) checkJournal(ctx context.Context) error {
	err := s.journal.Verify(ctx)
	if errors.Is(err, sqljournal.ErrSchema) {
		return fmt.Errorf("payouts: %w; if the database or the release is new, call Migrate once", err)
	}
	var service, account string
	if err == nil {
		err = s.db.QueryRowContext(ctx, s.sql(`SELECT service, account FROM @intents_journal`)).Scan(&service, &account)
	}
	switch {
	case err != nil:
		return fmt.Errorf("payouts: the journal cannot be read: %w", err)
	case service != "" && (service != s.base || account != s.config.Account):
		return fmt.Errorf("payouts: the orders in this database are for %s, account %q, and not for %s, account %q: "+
			"set BaseURL, APIKey and Account, or use another schema or database; if the service has moved, call sqljournal's SetService",
			service, account, s.base, s.config.Account)
	}
	return nil
}

// checkRights reports what this role may not do. Of a table that is missing others tell.
func (s *Service) checkRights(ctx context.Context) error {
	if s.dialect == sqljournal.SQLite {
		return nil
	}
	var lacks []string
	mayUse := true // the schema: otherwise nothing can be asked about what is in it
	for i, right := range rights {
		all, things, _ := strings.Cut(s.sql(right.grant), " ON ")
		things = strings.TrimPrefix(strings.TrimPrefix(things, "SCHEMA "), "SEQUENCE ")
		lacking := []bool{true}
		var err error
		if mayUse {
			lacking, err = query(ctx, s, s.db, database.One[bool], `SELECT count(*) > 0 FROM unnest(string_to_array($1, ', ')) AS thing,
	unnest(string_to_array($2, ', ')) AS privilege WHERE NOT `+right.ask, things, all)
		}
		if err != nil {
			return err
		}
		if lacking[0] {
			lacks = append(lacks, s.sql(right.grant))
			mayUse = mayUse && i > 0
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	role, err := query(ctx, s, s.db, database.One[string], `SELECT quote_ident(current_user)`)
	if err != nil {
		return err
	}
	text := "payouts: this role lacks rights; the tables' owner executes:"
	for _, right := range lacks {
		text += "\nGRANT " + right + " TO " + role[0] + ";"
	}
	return errors.New(text)
}

// otherJournals are the tables of other journals, and whether they may be read.
var otherJournals = map[sqljournal.Dialect]string{
	sqljournal.SQLite: `SELECT '"' || name || '"', TRUE FROM sqlite_master t WHERE type = 'table' AND name LIKE '%~_journal' ESCAPE '~'
	AND name <> '@intents_journal' AND 4 = (SELECT count(*) FROM pragma_table_info(t.name) c
		WHERE c.name IN ('identity', 'service', 'account', 'longest'))`,
	sqljournal.PostgreSQL: `SELECT c.oid::regclass::text, has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
	FROM pg_class c WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.relname LIKE '%~_journal' ESCAPE '~'
	AND c.oid <> to_regclass('@intents_journal') AND 4 = (SELECT count(*) FROM pg_attribute a
		WHERE a.attrelid = c.oid AND a.attname IN ('identity', 'service', 'account', 'longest'))`,
}

// isThere is false of a journal whose row says that it is elsewhere, as of a copy.
var isThere = map[sqljournal.Dialect]string{sqljournal.PostgreSQL: ` AND coalesce(to_jsonb(j) ->> 'in_table', '') IN ('', j.tableoid::text)
	AND coalesce(to_jsonb(j) ->> 'in_database', '') IN ('', (SELECT oid::text FROM pg_database WHERE datname = current_database()))`}

// checkOtherJournals reports that this database has another journal of this account: each would grant the same order.
func (s *Service) checkOtherJournals(ctx context.Context) error {
	type other struct {
		name string
		may  bool
	}
	others, err := query(ctx, s, s.db, func(scan scan) (o other, err error) {
		err = scan(&o.name, &o.may)
		return o, err
	}, otherJournals[s.dialect])
	for _, o := range others {
		if !o.may {
			return fmt.Errorf("payouts: %s, another journal, may not be read, and may be of the same account: "+
				"grant USAGE on its schema and SELECT on it, or drop it", o.name)
		}
		same, err := query(ctx, s, s.db, database.One[int64], `SELECT count(*) FROM `+o.name+` AS j WHERE service = $1 AND account = $2`+
			isThere[s.dialect], s.base, s.config.Account)
		if err != nil {
			return err
		}
		if same[0] > 0 {
			return fmt.Errorf("payouts: %s is another journal of %s, account %q: it would grant what this one has granted; "+
				"have its programs use %s, or give the account that it is of another name", o.name, s.base, s.config.Account, s.sql("@intents"))
		}
	}
	return err
}

// checkQueue reports a queue of another release, or with the jobs of another program: whichever River is the leader
// discards those that it does not know.
func (s *Service) checkQueue(ctx context.Context) error {
	migrator, err := s.migrator()
	if err != nil {
		return err
	}
	found, err := migrator.Validate(ctx, nil)
	if err == nil && !found.OK {
		err = errors.New("payouts: the queue's tables are of an older release: call Migrate once")
	}
	if err != nil {
		return err
	}
	kind, there := submit{}.Kind(), `('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled')`
	others, err := query(ctx, s, s.db, database.One[bool], `SELECT EXISTS (SELECT 1 FROM @river_job WHERE kind < $1 OR kind > $1)
	OR EXISTS (SELECT 1 FROM @river_job WHERE state IN `+there+` AND (queue < $2 OR queue > $2))`, kind, queue)
	if err == nil && others[0] {
		err = errors.New(s.sql("payouts: @river_job has jobs of another program, which this one would discard: " +
			"in SQLite give each a file, and in PostgreSQL a schema"))
	}
	return err
}

var errSQLite = errors.New("payouts: open a file of SQLite with payouts/sqlite, or with db.SetMaxOpenConns(1) and " +
	"_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate&_time_format=sqlite&_timezone=UTC " +
	"in the data source name: at least one of them is missing")

// checkConnections reports whether SQLite's connection lacks a setting.
func (s *Service) checkConnections(ctx context.Context) error {
	if s.dialect != sqljournal.SQLite {
		return nil
	}
	var file, at string
	var foreign, waits bool
	zoned := time.Date(2026, 1, 31, 15, 4, 5, 0, time.FixedZone("", 3600))
	err := s.db.QueryRowContext(ctx, `SELECT (SELECT file FROM pragma_database_list WHERE name = 'main'),
	(SELECT foreign_keys FROM pragma_foreign_keys), (SELECT timeout > 0 FROM pragma_busy_timeout), CAST($1 AS TEXT)`, zoned).
		Scan(&file, &foreign, &waits, &at)
	switch {
	case err != nil:
		return err
	case s.db.Stats().MaxOpenConnections != 1, !foreign, !waits, at != "2026-01-31 14:04:05+00:00":
		return errSQLite
	case file == "":
		return errors.New("payouts: a database in memory forgets what was sent: use a file")
	}
	return s.checkLock(ctx, file)
}

// checkLock begins a transaction, and looks whether another connection could begin one too.
func (s *Service) checkLock(ctx context.Context, file string) error {
	return s.transaction(ctx, func(*sql.Tx) error {
		path := url.URL{Path: filepath.ToSlash(file)}
		other, err := s.db.Driver().Open("file:" + path.EscapedPath() + "?mode=rw")
		if err != nil {
			return err
		}
		defer func() { _ = other.Close() }() // nothing was written
		run := func(statement string) error {
			_, err := other.(driver.ExecerContext).ExecContext(ctx, statement, nil)
			return err
		}
		if run(`PRAGMA busy_timeout = 0`) == nil && run(`BEGIN IMMEDIATE`) == nil {
			_ = run(`ROLLBACK`)
			return errSQLite
		}
		return nil
	})
}
