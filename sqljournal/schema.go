package sqljournal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
)

// schemaVersion is the version of the tables that this program reads and writes.
const schemaVersion = 2

// tables creates the tables and indexes of both dialects.
var tables = []string{`
CREATE TABLE @intents (
	id          @id,
	op          TEXT   NOT NULL,
	reference   TEXT   NOT NULL,
	exclusive   @bool  NOT NULL,
	body_sha256 TEXT   NOT NULL,
	summary     TEXT   NOT NULL,
	state       TEXT   NOT NULL CHECK (state IN ('open', 'unknown', 'executed', 'refused', 'not_sent')),
	closed      @bool  NOT NULL,
	holder      TEXT   NOT NULL,
	attempts    @count NOT NULL,
	service_id  TEXT   NOT NULL,
	created_at  @time  NOT NULL,
	begun_at    @time  NOT NULL,
	send_by     @time  NOT NULL,
	ended_at    @time,
	event       TEXT   NOT NULL,
	who         TEXT   NOT NULL,
	note        TEXT   NOT NULL
)`, uniqueIndex, otherIndex, unresolvedIndex, historyTable, historyIndex, journalTable}

const (
	uniqueIndex     = `CREATE UNIQUE INDEX @index_exclusive ON @on (op, reference) WHERE exclusive`
	otherIndex      = `CREATE INDEX @index_reference ON @on (op, reference) WHERE NOT exclusive`
	unresolvedIndex = `CREATE INDEX @index_unresolved ON @on (begun_at, id, send_by) WHERE state IN ('open', 'unknown')`
	historyTable    = `
CREATE TABLE @history (
	id      @serial,
	intent  @count NOT NULL,
	attempt @count NOT NULL,
	at      @time  NOT NULL,
	kind    TEXT   NOT NULL,
	state   TEXT   NOT NULL,
	who     TEXT   NOT NULL,
	note    TEXT   NOT NULL
)`
	historyIndex = `CREATE INDEX @index_history_intent ON @on_history (intent)`
	journalTable = `
CREATE TABLE @journal (
	one      @count PRIMARY KEY CHECK (one = 1),
	version  @count NOT NULL,
	identity TEXT   NOT NULL
)`
	journalRow = `INSERT INTO @journal (one, version, identity) SELECT 1, 2, @random`
)

// triggers write SQLite's history, within the statement that changes the intent.
var triggers = []string{trigger("begun", "INSERT"), trigger("changed", "UPDATE OF event")}

func trigger(name, on string) string {
	return `
CREATE TRIGGER @index_` + name + ` AFTER ` + on + ` ON @on BEGIN
	INSERT INTO @name_history (intent, attempt, state, kind, who, note, at)
	VALUES (NEW.id, NEW.attempts, NEW.state, NEW.event, NEW.who, NEW.note, coalesce(NEW.ended_at, NEW.begun_at));
END`
}

// upgradePostgreSQL keeps the table, and with it its permissions.
var upgradePostgreSQL = []string{
	`DROP INDEX IF EXISTS @schema@name_reference, @schema@name_undecided`,
	`ALTER TABLE @intents
	DROP CONSTRAINT IF EXISTS @name_state_check,
	ADD COLUMN summary TEXT NOT NULL DEFAULT '', ADD COLUMN closed BOOLEAN NOT NULL DEFAULT FALSE,
	ADD COLUMN send_by TIMESTAMPTZ, ADD COLUMN event TEXT NOT NULL DEFAULT '',
	ADD COLUMN who TEXT NOT NULL DEFAULT '', ADD COLUMN note TEXT NOT NULL DEFAULT ''`,
	`UPDATE @intents SET send_by = coalesce(ended_at, begun_at), event = CASE WHEN ended_at IS NULL THEN 'begun' ELSE 'ended' END,
	state = CASE state WHEN 'undecided' THEN 'unknown' ELSE state END`,
	`ALTER TABLE @intents ALTER COLUMN send_by SET NOT NULL,
	ADD CONSTRAINT @name_state_check CHECK (state IN ('open', 'unknown', 'executed', 'refused', 'not_sent')),
	ALTER COLUMN summary DROP DEFAULT, ALTER COLUMN closed DROP DEFAULT, ALTER COLUMN event DROP DEFAULT,
	ALTER COLUMN who DROP DEFAULT, ALTER COLUMN note DROP DEFAULT`,
	otherIndex, unresolvedIndex, historyTable, historyIndex, journalTable, upgradeHistory, journalRow,
}

// upgradeHistory records what version 1 knew of the last try.
const upgradeHistory = `
INSERT INTO @history (intent, attempt, state, kind, who, note, at)
SELECT id, attempts, CASE WHEN kind = 'begun' THEN 'open' ELSE state END, kind, '', 'from version 1 of the schema', at
FROM (SELECT id, attempts, state, 'begun' AS kind, begun_at AS at FROM @intents
	UNION ALL SELECT id, attempts, state, 'ended', ended_at FROM @intents WHERE ended_at IS NOT NULL) AS known ORDER BY id, at`

// upgradeSQLite creates the table anew, because SQLite cannot change a constraint.
var upgradeSQLite = slices.Concat(
	[]string{
		`DROP INDEX IF EXISTS @index_exclusive`, `DROP INDEX IF EXISTS @index_reference`, `DROP INDEX IF EXISTS @index_undecided`,
		`ALTER TABLE @intents RENAME TO @name_v1`,
	},
	tables,
	[]string{
		`INSERT INTO @intents SELECT id, op, reference, exclusive, body_sha256, '', CASE state WHEN 'undecided' THEN 'unknown' ELSE state END,
	FALSE, holder, attempts, service_id, created_at, begun_at, coalesce(ended_at, begun_at), ended_at,
	CASE WHEN ended_at IS NULL THEN 'begun' ELSE 'ended' END, '', '' FROM @intents_v1`,
		`DROP TABLE @intents_v1`, upgradeHistory, journalRow,
	},
	triggers,
)

// schema returns the statements that create a new journal.
func (d Dialect) schema() []string {
	if d == SQLite {
		return slices.Concat(tables, triggers, []string{journalRow})
	}
	return slices.Concat(tables, []string{journalRow})
}

// Schema returns the statements by which [Journal.Migrate] creates a new journal, for
// those who migrate by other means. Execute them in one transaction; they fail if the
// tables exist. The table is named as in [WithTable].
func Schema(d Dialect, name string) (string, error) {
	if err := d.check(); err != nil {
		return "", err
	}
	t, err := parseTable(name)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(d.query(strings.Join(d.schema(), ";\n"), t)) + ";\n", nil
}

// Migrate creates the journal's tables, or upgrades those of an older version. It
// is a step of a deployment; several processes may call it concurrently. A program calls
// [Journal.Verify] instead: if it created missing tables, it would not notice that the
// database has forgotten everything. Migrate needs permission to create tables.
//
// Migrate returns [ErrSchema], and changes nothing, where the tables are newer than
// this program, another journal's, or missing although [WithIdentity] names a journal.
func (j *Journal) Migrate(ctx context.Context) error {
	err := repeated(ctx, j.busy, func() error { return j.transaction(ctx, j.migrate) })
	if err == nil {
		return j.Verify(ctx)
	}
	if errors.Is(err, ErrSchema) {
		return err
	}
	return j.failed("migrating the schema", err)
}

func (j *Journal) migrate(ctx context.Context, conn *sql.Conn) error {
	found, err := j.inspect(ctx, conn)
	if err != nil {
		return err
	}
	statements := j.dialect.schema()
	switch {
	case found.journal: // it exists, so it must not be created
		return j.accept(found)
	case j.pinned() != "":
		return errMissing
	case found.intents && j.dialect == SQLite:
		statements = upgradeSQLite
	case found.intents:
		statements = upgradePostgreSQL
	}
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, j.query(statement)); err != nil {
			return err
		}
	}
	return nil
}

// Verify returns nil if the journal's tables are those of this program's version, and
// the journal is the one that [WithIdentity] names, or that this Journal found first.
// Otherwise it returns [ErrSchema], or the failure of the database. It creates nothing.
// Call it when the program starts, and as a readiness check.
func (j *Journal) Verify(ctx context.Context) error {
	found, err := j.found(ctx)
	if err != nil {
		return err
	}
	if err := j.accept(found); err != nil {
		return err
	}
	j.identity.CompareAndSwap(nil, &found.identity)
	return nil
}

// Identity returns the identity of the journal that is in the database: what
// [WithIdentity] takes. It is random; Migrate writes it once.
func (j *Journal) Identity(ctx context.Context) (string, error) {
	found, err := j.found(ctx)
	switch {
	case err != nil:
		return "", err
	case !found.journal:
		return "", errMissing
	}
	return found.identity, nil
}

// pin verifies the journal unless its identity is known.
func (j *Journal) pin(ctx context.Context) error {
	if j.pinned() != "" {
		return nil
	}
	return j.Verify(ctx)
}

// pinned returns the identity that the journal must have; "": any.
func (j *Journal) pinned() string {
	if identity := j.identity.Load(); identity != nil {
		return *identity
	}
	return ""
}

// findings are the tables that are in the database.
type findings struct {
	intents, history, journal bool // whether the table exists
	triggers                  bool // whether the history is written
	version                   int
	identity                  string
}

// accept returns why the findings are not this journal in this version.
func (j *Journal) accept(f findings) error {
	pinned := j.pinned()
	switch {
	case !f.journal && f.intents:
		return problem("its tables are of version 1: upgrade them with Migrate")
	case !f.journal:
		return errMissing
	case f.version > schemaVersion:
		return problem("its tables are of a newer version: update this program")
	case f.version < schemaVersion, f.identity == "":
		return problem("its table _journal has no valid row: restore it from a backup")
	case pinned != "" && pinned != f.identity:
		return errOtherJournal
	case !f.intents || !f.history || !f.triggers:
		return problem("a table or a trigger is missing: restore it from a backup")
	}
	return nil
}

var errOtherJournal = problem("it belongs to another journal: check which database and schema this is")

func (j *Journal) found(ctx context.Context) (f findings, err error) {
	err = repeated(ctx, j.busy, func() (err error) {
		f, err = j.inspect(ctx, j.db)
		return err
	})
	if err != nil {
		err = j.failed("reading the schema", err)
	}
	return f, err
}

// querier is a pool or a connection.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (j *Journal) inspect(ctx context.Context, db querier) (f findings, err error) {
	query, names := `SELECT to_regclass(?1) IS NOT NULL, to_regclass(?2) IS NOT NULL, to_regclass(?3) IS NOT NULL, TRUE`, j.table
	if j.dialect == SQLite {
		const there = `SELECT count(*) FROM @schemasqlite_master WHERE name = `
		query = `SELECT (` + there + `?1), (` + there + `?2), (` + there + `?3), (` + there + `?1 || '_begun' OR name = ?1 || '_changed') = 2`
		names.schema = ""
	}
	args := []any{names.String(), names.String() + "_history", names.String() + "_journal"}
	if err := db.QueryRowContext(ctx, j.query(query), args...).Scan(&f.intents, &f.history, &f.journal, &f.triggers); err != nil || !f.journal {
		return f, err
	}
	err = db.QueryRowContext(ctx, j.query(`SELECT version, identity FROM @journal`)).Scan(&f.version, &f.identity)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil // accept reports it
	}
	return f, err
}

// transaction runs do in a transaction that writes. In SQLite it is BEGIN IMMEDIATE,
// because an ordinary transaction fails if another one wrote after it has read.
func (j *Journal) transaction(ctx context.Context, do func(context.Context, *sql.Conn) error) error {
	conn, err := j.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // one that was discarded is closed already
	begin := []string{"BEGIN", schemaLock}
	if j.dialect == SQLite {
		begin = []string{"BEGIN IMMEDIATE"}
	}
	for _, statement := range begin {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			rollback(ctx, conn)
			return err
		}
	}
	err = do(ctx, conn)
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		rollback(ctx, conn)
	}
	return err
}

// schemaLock is PostgreSQL's advisory lock for migrations: of two concurrent ones that
// create a table, one would fail.
const schemaLock = "SELECT pg_advisory_xact_lock(7310294475036628341)"

// rollback ends the transaction, or else its connection, even if ctx is done.
func rollback(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}
