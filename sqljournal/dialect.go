package sqljournal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Dialect is the SQL that a database speaks. Its zero value is none, which
// [New] refuses.
type Dialect int

const (
	// SQLite is SQLite 3.24 and newer: one machine, one file.
	SQLite Dialect = iota + 1
	// PostgreSQL is PostgreSQL 10 and newer: any number of machines.
	PostgreSQL
)

// String returns the name of the dialect.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	}
	return "Dialect(" + strconv.Itoa(int(d)) + ")"
}

// DefaultTable is the table unless [WithTable] names another.
const DefaultTable = "cardwire_intents"

// SchemaSQLite is what [Journal.EnsureSchema] creates in SQLite. Times are UTC,
// in text of a fixed width that sorts as they do.
const SchemaSQLite = `
CREATE TABLE IF NOT EXISTS cardwire_intents (
	id          INTEGER PRIMARY KEY,
	op          TEXT    NOT NULL,
	reference   TEXT    NOT NULL,
	exclusive   INTEGER NOT NULL CHECK (exclusive IN (0, 1)),
	body_sha256 TEXT    NOT NULL,
	state       TEXT    NOT NULL CHECK (state IN ('open', 'undecided', 'executed', 'refused', 'not_sent')),
	holder      TEXT    NOT NULL,
	attempts    INTEGER NOT NULL,
	service_id  TEXT    NOT NULL,
	created_at  TEXT    NOT NULL,
	begun_at    TEXT    NOT NULL,
	ended_at    TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS cardwire_intents_exclusive ON cardwire_intents (op, reference) WHERE exclusive;
CREATE INDEX IF NOT EXISTS cardwire_intents_reference ON cardwire_intents (op, reference);
CREATE INDEX IF NOT EXISTS cardwire_intents_undecided ON cardwire_intents (begun_at) WHERE state IN ('open', 'undecided')`

// SchemaPostgreSQL is what [Journal.EnsureSchema] creates in PostgreSQL.
const SchemaPostgreSQL = `
CREATE TABLE IF NOT EXISTS cardwire_intents (
	id          BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	op          TEXT        NOT NULL,
	reference   TEXT        NOT NULL,
	exclusive   BOOLEAN     NOT NULL,
	body_sha256 TEXT        NOT NULL,
	state       TEXT        NOT NULL CHECK (state IN ('open', 'undecided', 'executed', 'refused', 'not_sent')),
	holder      TEXT        NOT NULL,
	attempts    BIGINT      NOT NULL,
	service_id  TEXT        NOT NULL,
	created_at  TIMESTAMPTZ NOT NULL,
	begun_at    TIMESTAMPTZ NOT NULL,
	ended_at    TIMESTAMPTZ
);
CREATE UNIQUE INDEX IF NOT EXISTS cardwire_intents_exclusive ON cardwire_intents (op, reference) WHERE exclusive;
CREATE INDEX IF NOT EXISTS cardwire_intents_reference ON cardwire_intents (op, reference);
CREATE INDEX IF NOT EXISTS cardwire_intents_undecided ON cardwire_intents (begun_at) WHERE state IN ('open', 'undecided')`

// schema is what EnsureSchema executes, one statement each, for query.
func (d Dialect) schema() []string {
	schema := SchemaSQLite
	if d == PostgreSQL {
		schema = SchemaPostgreSQL
	}
	return strings.Split(schema, ";")
}

// query puts the table in, and writes parameters as the dialect does: ?1 or $1.
func (d Dialect) query(text, table string) string {
	text = strings.ReplaceAll(text, DefaultTable, table)
	if d == PostgreSQL {
		text = strings.ReplaceAll(text, "?", "$")
	}
	return text
}

// one takes the first of several rows, and keeps it until it is written. SQLite
// lets nobody write between by itself.
func (d Dialect) one() string {
	if d == PostgreSQL {
		return " LIMIT 1 FOR UPDATE"
	}
	return " LIMIT 1"
}

// textTime is how SQLite keeps times, to PostgreSQL's precision.
const textTime = "2006-01-02T15:04:05.000000Z"

// textOf is t as SQLite keeps it. Its drivers disagree about a time.Time.
func textOf(t time.Time) string { return t.UTC().Truncate(time.Microsecond).Format(textTime) }

// ago is when something of the age ?1 began, by the clock that times are taken
// from.
func (d Dialect) ago() string {
	if d == PostgreSQL {
		return "statement_timestamp() - make_interval(secs => ?1)"
	}
	return "?1"
}

// age is the parameter of ago.
func (d Dialect) age(a time.Duration) any {
	if d == PostgreSQL {
		return a.Seconds()
	}
	return textOf(time.Now().Add(-a))
}

// moment reads a time of either dialect; null is the zero time.
type moment struct{ time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(v any) (err error) {
	switch v := v.(type) {
	case nil:
		m.Time = time.Time{}
	case time.Time:
		m.Time = v.UTC()
	case string:
		m.Time, err = time.Parse(textTime, v)
	case []byte:
		m.Time, err = time.Parse(textTime, string(v))
	default:
		err = fmt.Errorf("a time is stored as %T", v)
	}
	return err
}
