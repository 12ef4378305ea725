package sqljournal

import (
	"context"
	"errors"
	"strings"

	"github.com/cardwire/cardwire-go/internal/check"
)

// schemaVersion is the version of the tables that this program reads and writes.
const schemaVersion = 1

// tables creates the tables and indexes of both dialects.
var tables = []string{
	`
CREATE TABLE @intents (
	op          @text  NOT NULL,
	reference   @text  NOT NULL,
	body_sha256 TEXT   NOT NULL,
	summary     TEXT   NOT NULL,
	repeatable  @bool  NOT NULL,
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
	PRIMARY KEY (op, reference)
)`, `
CREATE INDEX @index_unresolved ON @on (time, reference) WHERE state IN ('open', 'unknown')`, `
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
	version  @count NOT NULL,
	identity TEXT   NOT NULL,
	service  TEXT   NOT NULL,
	account  TEXT   NOT NULL,
	longest  @count NOT NULL,
	held_at  @time,
	floor    @time,
	held_by  TEXT   NOT NULL,
	held_why TEXT   NOT NULL
)`, `
INSERT INTO @journal (one, version, identity, service, account, longest, held_by, held_why)
SELECT 1, 1, @random, '', '', 0, '', ''`,
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

// schema returns the statements that create a new journal.
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
	return strings.TrimSpace(d.translate(strings.Join(d.schema(), ";\n"), t).text) + ";\n", nil
}

// Migrate creates the journal's tables. It is a step of a deployment; several processes may
// call it concurrently. A program calls [Journal.Verify] instead: if it created missing
// tables, it would not notice that the database has lost everything. Migrate needs permission
// to create tables.
//
// Migrate returns [ErrSchema], and changes nothing, if the tables are of another version, are
// another journal's, or are missing although [WithIdentity] names a journal.
func (j *Journal) Migrate(ctx context.Context) error {
	err := j.waiting().repeated(ctx, func() error {
		return j.transaction(ctx, func(t *Tx) error { return t.migrate(ctx) })
	})
	if err == nil || errors.Is(err, ErrSchema) {
		return err
	}
	return j.unlessOther(ctx, j.failed("migrating the schema", err))
}

func (t *Tx) migrate(ctx context.Context) error {
	if t.journal.dialect == PostgreSQL { // without the lock, one of two concurrent CREATE TABLE would fail
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(`+lockNumber+`)`); err != nil {
			return err
		}
	}
	var there bool
	err := t.queryRow(ctx, []any{&there}, `@there`)
	switch {
	case err != nil:
		return err
	case there:
		return t.verify(ctx)
	case t.journal.pinned() != "":
		return errMissing
	}
	for _, template := range t.journal.dialect.schema() {
		if _, err := t.exec(ctx, template); err != nil {
			return err
		}
	}
	return nil
}

// lockNumber is that of PostgreSQL's advisory locks of journals.
const lockNumber = "7310294475036628341"

// Verify returns nil if the journal's tables are those of this program's version, and the
// journal is the one that [WithIdentity] names, or that this Journal found first. Otherwise
// it returns [ErrSchema], or the failure of the database, for example because a pool in front
// of PostgreSQL allows no transactions. It creates nothing. Call it when the program starts,
// and as a readiness check; if nobody has, the first Begin does.
func (j *Journal) Verify(ctx context.Context) error {
	err := j.inTransaction(ctx, "verifying the journal", func(t *Tx) error { return t.verify(ctx) })
	if err == nil {
		err = j.checkDatabase(ctx)
	}
	if err == nil {
		j.verified.Store(true)
	}
	return j.unlessOther(ctx, err)
}

// checkDatabase refuses one that is lost with the process.
func (j *Journal) checkDatabase(ctx context.Context) error {
	if j.dialect != SQLite {
		return nil
	}
	var file string
	row := j.db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`)
	switch err := row.Scan(&file); {
	case err != nil:
		return j.failed("reading the schema", err)
	case file == "":
		return problem("a database in memory forgets what was sent: open a file, or use journal.NewMemory")
	}
	return nil
}

// unlessOther returns err, or that the database is of the other dialect, if it is one.
func (j *Journal) unlessOther(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrSchema) {
		return err
	}
	name, ask := "SQLite", `SELECT sqlite_version()`
	if j.dialect == SQLite {
		name, ask = "PostgreSQL", `SELECT current_setting('server_version')`
	}
	var version string
	if j.db.QueryRowContext(ctx, ask).Scan(&version) != nil { // it is not, or is not there
		return err
	}
	return problem("it is " + name + ": pass sqljournal." + name + " to New")
}

func (t *Tx) verify(ctx context.Context) error {
	identity, _, err := t.identify(ctx)
	if err == nil {
		t.journal.identity.CompareAndSwap(nil, &identity)
	}
	return err
}

// pin verifies the journal unless its identity is known.
func (t *Tx) pin(ctx context.Context) error {
	if t.journal.pinned() != "" {
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
	identity, _, err := j.waiting().identify(ctx)
	return identity, err
}

// SetService records the base URL of the service that the journal belongs to, and the account,
// as in cardwire.WithAccount: before the first Begin, or if they have changed. A service of ""
// is that of the client that next begins, with its account; what is no base URL is
// cardwire.ErrInvalidParams. The orders of another service or account need another journal.
func (j *Journal) SetService(ctx context.Context, service, account string) error {
	t := j.waiting()
	identity, _, err := t.identify(ctx)
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
	_, err = t.exec(ctx, `UPDATE @journal SET service = ?1, account = ?2 WHERE identity = ?3`, service, account, identity)
	if err != nil {
		return j.failed("recording the service", err)
	}
	return nil
}

// identify returns whose journal is in the database, or why it is not this one in this
// version. Nothing is known of a reference.
func (t *Tx) identify(ctx context.Context) (identity string, k known, err error) {
	var version, flaws int
	err = t.queryRow(ctx, []any{&version, &identity}, `SELECT version, identity FROM @journal`)
	pinned := t.journal.pinned()
	switch {
	case t.journal.missing(err):
		return "", k, errMissing
	case err != nil:
		return "", k, t.journal.failed("reading the schema", err)
	case version > schemaVersion:
		return "", k, problem("its tables are of a newer version: update this program")
	case version < schemaVersion, identity == "":
		return "", k, problem("its table _journal has no valid row: restore it from a backup")
	case pinned != "" && pinned != identity:
		return "", k, problem("it belongs to another journal: check which database and schema this is")
	}
	err = t.queryRow(ctx, append([]any{&flaws}, k.ofJournal()...),
		`SELECT @flaws + (SELECT count(*) FROM @intents, @history WHERE FALSE), `+journalColumns+` FROM @journal AS j`)
	switch {
	case t.journal.missing(err), err == nil && flaws > 0 && t.journal.dialect == SQLite:
		return "", k, problem("a table or a trigger is missing: restore it from a backup")
	case err != nil:
		return "", k, t.journal.failed("reading the schema", err)
	case flaws > 0:
		return "", k, problem(`a column of a key is not COLLATE "C": after an update of the operating system its index ` +
			"could hide what was paid: create the tables by Migrate or Schema")
	}
	return identity, k, nil
}
