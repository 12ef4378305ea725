package sqljournal

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/database"
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
	if d.check() != nil {
		return "Dialect(" + strconv.Itoa(int(d)) + ")"
	}
	return [...]string{SQLite: "SQLite", PostgreSQL: "PostgreSQL"}[d]
}

func (d Dialect) check() error {
	if d != SQLite && d != PostgreSQL {
		return errors.New("sqljournal: the dialect must be SQLite or PostgreSQL")
	}
	return nil
}

// words are the placeholders of statements, and their SQL in SQLite and PostgreSQL.
var words = [...][3]string{
	{"@serial", "INTEGER PRIMARY KEY", "BIGINT GENERATED ALWAYS AS IDENTITY"}, // never looked up
	{"@bool", "INTEGER", "BOOLEAN"},
	{"@count", "INTEGER", "BIGINT"},
	{"@random", "lower(hex(randomblob(16)))", "replace(gen_random_uuid()::text, '-', '')"},
	{"@later", "max", "greatest"},
	{"@in ", "", "statement_timestamp() + interval '1 second' * "}, // before a parameter of Dialect.in
	{"@clock", "NULL", "clock_timestamp()"},                        // read after the row: the row is never of the future
	{"@latest", "@now", "clock_timestamp()"},                       // the same, in a condition
	{
		"@there", "SELECT count(*) FROM @schemasqlite_master WHERE name = '@name_journal'",
		"SELECT count(to_regclass('@journal'))",
	},
	{"@locked", "", "FOR UPDATE OF i"},
	{
		"@flaws", "2 - (SELECT count(*) FROM @schemasqlite_master WHERE name IN ('@name_begun', '@name_changed'))",
		"5 - (SELECT count(*) FROM pg_attribute WHERE attrelid IN (to_regclass('@intents'), to_regclass('@history')) " +
			"AND attname IN ('op', 'reference', 'service_id') AND attcollation = 'pg_catalog.\"C\"'::regcollation)",
	},
}

// translation is a template of this package in the dialect and for the tables of a Journal.
type translation struct {
	text     string
	isTimed  bool // the time is its next parameter after those of the template
	isPinned bool // the identity of the journal is the one after that
}

var parameter = regexp.MustCompile(`\?(\d+)`)

// translate replaces the placeholders of a template. In PostgreSQL @now is the server's
// clock, because the clocks of several machines differ.
func (d Dialect) translate(template string, s *setting) *translation {
	text, isEvent := strings.CutPrefix(template, "@event")
	if isEvent && d == PostgreSQL {
		text = withEvent(text)
	}
	text = strings.ReplaceAll(text, "@this", "EXISTS (SELECT 1 FROM @journal AS j WHERE @pinned)")
	text = s.words().Replace(text)
	for _, w := range words {
		text = strings.ReplaceAll(text, w[0], w[d])
	}
	text = strings.NewReplacer(database.Words(d == PostgreSQL)...).Replace(text)
	last := 0
	for _, found := range parameter.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1])
		last = max(last, n)
	}
	made := &translation{isTimed: d == SQLite && strings.Contains(text, "@now"), isPinned: strings.Contains(text, "@pinned")}
	now := "statement_timestamp()"
	if made.isTimed {
		last++
		now = "?" + strconv.Itoa(last)
	}
	pinned := "?" + strconv.Itoa(last+1) + " IN ('', j.identity) AND j.oldest_writer <= " + strconv.Itoa(schemaVersion)
	made.text = s.table.names(d).Replace(strings.NewReplacer("@now", now, "@pinned", pinned).Replace(text))
	if d == PostgreSQL {
		made.text = strings.ReplaceAll(made.text, "?", "$")
	}
	return made
}

// withEvent makes an INSERT or UPDATE of @intents write its event to the history in the
// same statement, which counts the intents that changed. In SQLite triggers do the same.
func withEvent(text string) string {
	return `WITH changed AS (` + text + `
RETURNING op, reference, coalesce(ended_at, time) AS time, kind, call, state, service_id, by, note)
INSERT INTO @history (` + eventColumns + `)
SELECT ` + eventColumns + ` FROM changed`
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
	return strings.NewReplacer("@intents", t.String(), "@history", t.String()+"_history",
		"@journal", t.String()+"_journal", "@name", t.name, "@schema", t.schema, "@index", index, "@on", on)
}

// in returns a time of the client as a parameter for "@in": seconds from now in
// PostgreSQL. The zero time is now.
func (d Dialect) in(t time.Time) any {
	if t.IsZero() {
		t = time.Now()
	}
	if d == PostgreSQL {
		return time.Until(t).Seconds()
	}
	return database.Text(t)
}

// moment returns a time of the database, or of a person, as a parameter; the zero time is null.
func (d Dialect) moment(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case d == PostgreSQL:
		return t
	}
	return database.Text(t)
}
