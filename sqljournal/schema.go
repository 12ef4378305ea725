package sqljournal

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/database"
)

// schemaVersion is the version of the tables that this program reads and writes.
const schemaVersion = 2

// tables creates the tables and indexes of both dialects.
var tables = []string{
	`
CREATE TABLE @intents (
	op          @text  NOT NULL,
	reference   @text  NOT NULL,
	body_sha256 TEXT   NOT NULL,
	amount      TEXT   NOT NULL,
	currency    TEXT   NOT NULL,
	state       TEXT   NOT NULL CHECK (state IN ('open', 'unknown', 'executed', 'refused', 'not_sent')),
	closed      @bool  NOT NULL,
	proved      @bool  NOT NULL,
	reserved    @bool  NOT NULL,
	call        TEXT   NOT NULL,
	calls       @count NOT NULL,
	service_id  @text  NOT NULL,
	status      TEXT   NOT NULL,
	created_at  @time  NOT NULL,
	time        @time  NOT NULL,
	send_by     @time  NOT NULL,
	settled_by  @time  NOT NULL,
	ended_at    @time,
	kind        TEXT   NOT NULL,
	by          TEXT   NOT NULL,
	note        TEXT   NOT NULL,
	era         @count NOT NULL,
	PRIMARY KEY (op, reference)
)`, `
CREATE INDEX @index_unresolved ON @on (time, reference) WHERE ` + strings.ReplaceAll(mayBeUnresolved, "i.", ""), `
CREATE INDEX @index_service_id ON @on (service_id) WHERE service_id <> ''`, `
CREATE TABLE @history (
	number     @serial,
	op         @text  NOT NULL,
	reference  @text  NOT NULL,
	time       @time  NOT NULL,
	kind       TEXT   NOT NULL,
	call       TEXT   NOT NULL,
	state      TEXT   NOT NULL,
	service_id TEXT   NOT NULL,
	by         TEXT   NOT NULL,
	note       TEXT   NOT NULL
)`, `
CREATE INDEX @index_history_reference ON @on_history (reference)`, `
CREATE TABLE @journal (
	one      @count PRIMARY KEY CHECK (one = 1),
	version       @count NOT NULL,
	oldest_writer @count NOT NULL,
	identity      TEXT   NOT NULL,
	service       TEXT   NOT NULL,
	account       TEXT   NOT NULL,
	longest       @count NOT NULL,
	server        TEXT   NOT NULL,
	timeline      TEXT   NOT NULL,
	in_database   TEXT   NOT NULL,
	in_table      TEXT   NOT NULL,
	era           @count NOT NULL,
	oldest        @count NOT NULL,
	back          @count NOT NULL,
	held_at       @time,
	floor         @time,
	held_by       TEXT   NOT NULL,
	held_why      TEXT   NOT NULL
)`, `
INSERT INTO @journal (one, version, oldest_writer, identity, service, account, longest, server, timeline, in_database, in_table,
	era, oldest, back, held_by, held_why)
SELECT 1, 2, 2, @random, '', '', 0, '', '', '', '', 1, 1, 0, '', ''`,
}

// eventColumns are those of @history that a new row sets.
const eventColumns = `op, reference, time, kind, call, state, service_id, by, note`

// triggers write SQLite's history, within the statement that changes the intent.
var triggers = []string{trigger("begun", "INSERT"), trigger("changed", "UPDATE OF kind")}

func trigger(name, on string) string {
	return `
CREATE TRIGGER @index_` + name + ` AFTER ` + on + ` ON @on BEGIN
	INSERT INTO @name_history (` + eventColumns + `)
	VALUES (NEW.op, NEW.reference, coalesce(NEW.ended_at, NEW.time), NEW.kind, NEW.call, NEW.state, NEW.service_id,
		NEW.by, NEW.note);
END`
}

func (d Dialect) schema() []string {
	if d == SQLite {
		return append(tables[:len(tables):len(tables)], triggers...)
	}
	return tables
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
	return strings.TrimSpace(d.translate(strings.Join(d.schema(), ";\n"), &setting{table: t}).text) + ";\n", nil
}

// Migrate creates the journal's tables, and the schema that [WithTable] names if it is missing, and records where they
// are. It is a step of a deployment; several processes may
// call it concurrently. A program calls [Journal.Verify] instead: if it created missing
// tables, it would not notice that the database has lost everything. Migrate needs permission
// to create tables.
//
// Migrate returns [ErrSchema], and changes nothing, if the tables are of another version, are
// another journal's, or are missing although [WithIdentity] names a journal. In PostgreSQL it waits for a lock for at
// most five seconds: what waits for one keeps all others waiting behind it.
func (j *Journal) Migrate(ctx context.Context) error {
	err := j.inTransaction(ctx, "migrating the schema", func(t *Tx) error { return t.migrate(ctx) })
	switch {
	case err == nil, errors.Is(err, ErrSchema):
		return err
	case database.State(err) == "55P03":
		return &failure{"sqljournal: migrating the schema failed: others have had " + j.table.String() +
			" or one of its tables locked for 5 seconds: look for them in pg_locks, and try again", err}
	}
	return j.failed("migrating the schema", err)
}

func (t *Tx) migrate(ctx context.Context) error {
	if t.journal.dialect == PostgreSQL { // without the lock, one of two concurrent CREATE TABLE would fail
		for _, statement := range []string{`SET LOCAL lock_timeout = '5s'`, `SELECT pg_advisory_xact_lock(` + lockNumber + `)`} {
			if _, err := t.exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	var there bool
	err := t.queryRow(ctx, []any{&there}, `@there`)
	switch {
	case err != nil:
	case there:
		err = t.verify(ctx)
	case t.journal.pinned() != "":
		err = errMissing
	default:
		err = t.create(ctx)
	}
	if err != nil {
		return err
	}
	return t.recordPlace(ctx)
}

// create creates what is missing. It looks for the schema first: a role that may not create one can use one that is there.
func (t *Tx) create(ctx context.Context) error {
	statements := t.journal.dialect.schema()
	if schema := strings.TrimSuffix(t.journal.table.schema, "."); schema != "" && t.journal.dialect == PostgreSQL {
		var isMissing bool
		if err := t.queryRow(ctx, []any{&isMissing}, `SELECT to_regnamespace(?1) IS NULL`, schema); err != nil {
			return err
		}
		if isMissing {
			statements = append([]string{"CREATE SCHEMA " + schema}, statements...)
		}
	}
	for _, template := range statements {
		if _, err := t.exec(ctx, template); err != nil {
			return err
		}
	}
	return nil
}

// recordPlace records what is not on record of where the journal is.
func (t *Tx) recordPlace(ctx context.Context) error {
	k, err := t.identify(ctx)
	if err != nil || k.was == k.is || k.was.moved(k.is) != "" {
		return err
	}
	_, err = t.exec(ctx, `UPDATE @journal AS j SET @move`)
	return err
}

// lockNumber is that of PostgreSQL's advisory locks of journals.
const lockNumber = "7310294475036628341"

// Verify returns nil if the journal's tables are those of this program's version, and the
// journal is the one that [WithIdentity] names, or that this Journal found first. Otherwise
// it returns [ErrSchema], or the failure of the database, for example because a pool in front
// of PostgreSQL allows no transactions. It is a cardwire.ErrSetup, which says what to write, if the database may lose
// what it has committed, or the connection cannot write, or lacks a right that a hold needs.
//
// It creates nothing. If the journal is in another database than it was, Verify puts it on hold, and returns nil: see
// [Journal.Held]. Call it when the program starts, and as a readiness check; if nobody has, the first Begin does.
func (j *Journal) Verify(ctx context.Context) error {
	err := j.inTransaction(ctx, "verifying the journal", func(t *Tx) error {
		err := t.verify(ctx)
		if err == nil {
			err = t.checkDatabase(ctx)
		}
		return err
	})
	if err == nil {
		err = j.settle(ctx)
	}
	if err == nil {
		j.verified.Store(true)
	}
	return err
}

func unfit(text string) error {
	return &safeError{"the journal cannot rely on the database: " + text, cardwire.ErrSetup}
}

// checkDatabase refuses a database that may lose what it has committed, or that this program cannot write to as it must.
func (t *Tx) checkDatabase(ctx context.Context) error {
	settings := t.checkPostgreSQL
	if t.journal.dialect == SQLite {
		settings = t.checkSQLite
	}
	role, err := settings(ctx)
	if err == nil {
		_, err = t.exec(ctx, `UPDATE @journal SET `+strings.Join(changing, ` = NULL, `)+` = NULL WHERE one = 0`)
	}
	if database.State(err) == "42501" {
		return unfit("GRANT UPDATE (" + strings.Join(changing, ", ") + ") ON " +
			t.journal.setting.Load().table.String() + "_journal TO " + role)
	}
	return t.journal.failed("verifying the journal", err)
}

// changing are the columns of the journal's row that programs change.
var changing = strings.Fields("service account longest server timeline in_database in_table era oldest back held_at floor held_by held_why")

func (t *Tx) checkPostgreSQL(ctx context.Context) (role string, err error) {
	var commit, readOnly string
	err = t.queryRow(ctx, []any{&commit, &readOnly, &role}, `
SELECT current_setting('synchronous_commit'), current_setting('transaction_read_only'), quote_ident(current_user)`)
	switch {
	case err != nil:
	case readOnly == "on":
		err = unfit("the connection cannot write: connect to the primary, as with target_session_attrs=read-write, " +
			"and set default_transaction_read_only to off")
	case commit == "off", commit == "local" && t.journal.isSynchronous:
		err = unfit("synchronous_commit is " + commit + ", and what was committed last may be lost: ALTER ROLE " + role +
			" SET synchronous_commit = on")
	}
	return role, err
}

func (t *Tx) checkSQLite(ctx context.Context) (role string, err error) {
	var file, mode string
	var synchronous int
	err = t.queryRow(ctx, []any{&file}, `SELECT file FROM pragma_database_list WHERE name = 'main'`)
	if err == nil {
		err = t.queryRow(ctx, []any{&synchronous}, `PRAGMA synchronous`)
	}
	if err == nil {
		err = t.queryRow(ctx, []any{&mode}, `PRAGMA journal_mode`)
	}
	switch isNormal := synchronous == 1 && mode == "wal"; {
	case err != nil:
	case file == "":
		err = problem("a database in memory forgets what was sent: open a file, or use journal.NewMemory")
	case mode == "memory", mode == "off":
		err = unfit("what was committed may be lost with the process: PRAGMA journal_mode = WAL")
	case synchronous < 2 && !(isNormal && t.journal.acceptsNormal):
		err = unfit("what was committed last may be lost: PRAGMA synchronous = FULL on every connection, as in its DSN")
	}
	return "", err
}

func (t *Tx) verify(ctx context.Context) error {
	k, err := t.identify(ctx)
	if err == nil {
		t.journal.identity.CompareAndSwap(nil, &k.identity)
	}
	return err
}

// pin verifies the journal unless its identity is known, and how to read where it is.
func (t *Tx) pin(ctx context.Context) error {
	if s := t.journal.setting.Load(); s != nil && s.isWhole && t.journal.pinned() != "" {
		return nil
	}
	return t.verify(ctx)
}

// pinned returns the identity that the journal must have; "": any.
func (j *Journal) pinned() string {
	if identity := j.identity.Load(); identity != nil {
		return *identity
	}
	return ""
}

// Identity returns the identity of the journal that is in the database: what
// [WithIdentity] takes. It is random; Migrate writes it once.
func (j *Journal) Identity(ctx context.Context) (string, error) {
	k, err := j.waiting().identify(ctx)
	return k.identity, err
}

// SetService records the base URL of the service that the journal belongs to, and the account,
// as in cardwire.WithAccount: before the first Begin, or if they have changed. A service of ""
// is that of the client that next begins, with its account; what is no base URL is
// cardwire.ErrInvalidParams. The orders of another service or account need another journal.
func (j *Journal) SetService(ctx context.Context, service, account string) error {
	t := j.waiting()
	k, err := t.identify(ctx)
	if err != nil {
		return err
	}
	if service != "" {
		base, err := check.BaseURL("the service", service, true)
		if err != nil {
			return invalid(err)
		}
		service = base.String() // as the client has it
	}
	_, err = t.exec(ctx, `UPDATE @journal SET service = ?1, account = ?2 WHERE identity = ?3`, service, account, k.identity)
	return j.failed("recording the service", err)
}

// identify returns what is known of the journal in the database, or why it is not this one in this version.
func (t *Tx) identify(ctx context.Context) (k known, err error) {
	const what = "reading the schema"
	if s := t.journal.setting.Load(); t.on == t.journal.pool && (s == nil || !s.isWhole) {
		err = t.journal.inTransaction(ctx, what, func(t *Tx) (err error) { // which lookAround needs
			k, err = t.identify(ctx)
			return err
		})
		return k, err
	}
	var version, oldest, flaws int
	err = t.queryRow(ctx, []any{&version, &oldest, &k.identity}, `SELECT version, oldest_writer, identity FROM @journal`)
	pinned := t.journal.pinned()
	switch {
	case database.State(err) == "42703", says(err, "no such column"):
		return k, errOlder
	case t.journal.missing(err):
		return k, errMissing
	case err != nil:
		return k, t.journal.failed(what, err)
	case oldest > schemaVersion:
		return k, problem("its tables are of a newer version: update this program")
	case k.identity == "":
		return k, problem("its table _journal has no valid row: restore it from a backup")
	case version < schemaVersion:
		return k, errOlder
	case pinned != "" && pinned != k.identity:
		return k, problem("it belongs to another journal: check which database and schema this is")
	}
	if err = t.lookAround(ctx); err != nil {
		return k, t.journal.failed(what, err)
	}
	k.asked = time.Now()
	err = t.queryRow(ctx, append([]any{&flaws}, k.ofJournal()...),
		`SELECT @flaws + (SELECT count(*) FROM @intents, @history WHERE FALSE), `+journalColumns+` FROM @journal AS j`)
	switch {
	case t.journal.missing(err), err == nil && flaws > 0 && t.journal.dialect == SQLite:
		return k, problem("a table or a trigger is missing: restore it from a backup")
	case err != nil:
		return k, t.journal.failed(what, err)
	case flaws > 0:
		return k, problem(`a column of a key is not COLLATE "C": after an update of the operating system its index ` +
			"could hide what was paid: create the tables by Migrate or Schema")
	}
	k.timed(t.journal)
	return k, nil
}
