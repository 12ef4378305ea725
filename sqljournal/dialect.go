package sqljournal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Dialect is the SQL dialect of a database. [New] refuses its zero value.
type Dialect int

const (
	// SQLite is SQLite 3.24 and newer: one machine, one file.
	SQLite Dialect = iota + 1
	// PostgreSQL is PostgreSQL 13 and newer: any number of machines.
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

func (d Dialect) check() error {
	if d != SQLite && d != PostgreSQL {
		return errors.New("sqljournal: the dialect must be SQLite or PostgreSQL")
	}
	return nil
}

// words are the placeholders of statements, and their SQL in SQLite and PostgreSQL.
var words = [...][3]string{
	{"@id", "INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"}, // SQLite would reuse the ID of a row that vanished
	{"@serial", "INTEGER PRIMARY KEY", "BIGINT GENERATED ALWAYS AS IDENTITY"},                       // never looked up
	{"@bool", "INTEGER", "BOOLEAN"},
	{"@count", "INTEGER", "BIGINT"},
	{"@time", "TEXT", "TIMESTAMPTZ"},
	{"@random", "lower(hex(randomblob(16)))", "replace(gen_random_uuid()::text, '-', '')"},
	{"@later", "max", "greatest"},
	{"@clock", "NULL", "clock_timestamp()"},     // read with the row, so that no visible row is later
	{"@one", " LIMIT 1", " LIMIT 1 FOR UPDATE"}, // SQLite allows no other writer in between
}

// query replaces the placeholders of tables and words.
func (d Dialect) query(text string, t table) string {
	for _, w := range words {
		text = strings.ReplaceAll(text, w[0], w[d])
	}
	text = t.names(d).Replace(text)
	if d == PostgreSQL {
		text = strings.ReplaceAll(text, "?", "$")
	}
	return text
}

// table is the name of the table of intents, from which the other names derive.
type table struct{ schema, name string } // schema ends in a dot or is empty

func (t table) String() string { return t.schema + t.name }

// names replaces the placeholders of tables, indexes and triggers. PostgreSQL takes the
// schema of an index from its table, SQLite the schema of a table from its index; the
// same with triggers.
func (t table) names(d Dialect) *strings.Replacer {
	index, on := t.name, t.String()
	if d == SQLite {
		index, on = t.String(), t.name
	}
	return strings.NewReplacer("@intents", t.String(), "@history", t.String()+"_history", "@journal", t.String()+"_journal",
		"@name", t.name, "@schema", t.schema, "@index", index, "@on", on)
}

// change is an INSERT or UPDATE of @intents that writes its event to the history in
// the same statement. It counts the intents that it changed. In SQLite a trigger
// does the same.
func (d Dialect) change(statement string) string {
	if d == SQLite {
		return statement
	}
	return `WITH changed AS (` + statement + `
RETURNING id, attempts, state, event, who, note, coalesce(ended_at, begun_at) AS at)
INSERT INTO @history (intent, attempt, state, kind, who, note, at)
SELECT id, attempts, state, event, who, note, at FROM changed`
}

// moment returns a time that was read from the database as a parameter.
func (d Dialect) moment(t time.Time) any {
	if d == PostgreSQL {
		return t
	}
	return textOf(t)
}

// textTime is how SQLite keeps times, to PostgreSQL's precision.
const textTime = "2006-01-02T15:04:05.000000Z"

// textOf returns t as SQLite stores it. Its drivers disagree about a time.Time.
func textOf(t time.Time) string { return t.UTC().Truncate(time.Microsecond).Format(textTime) }

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

// now returns m, or the time of this machine if the database has no clock of its own.
func (m moment) now() time.Time {
	if m.IsZero() {
		return time.Now()
	}
	return m.Time
}
