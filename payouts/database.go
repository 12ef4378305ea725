package payouts

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// querier and executor are a database, or a transaction.
type (
	querier interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	executor interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
)

// scan reads the columns of a row.
type scan func(into ...any) error

// query reads all rows of a query, each by read.
func query[T any](
	ctx context.Context, s *Service, db querier, read func(scan) (T, error), text string, args ...any,
) (all []T, err error) {
	rows, err := db.QueryContext(ctx, s.sql(text), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := read(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// one reads a value of each row.
func one[T any](scan scan) (value T, err error) {
	err = scan(&value)
	return value, err
}

// exec executes a statement.
func (s *Service) exec(ctx context.Context, db executor, statement string, args ...any) error {
	_, err := db.ExecContext(ctx, s.sql(statement), args...)
	return err
}

// placeholders is a list of so many parameters in SQL, after others.
func placeholders[T any](after int, values []T) string {
	var all []string
	for i := range values {
		all = append(all, "$"+strconv.Itoa(after+i+1))
	}
	return "(" + strings.Join(all, ", ") + ")"
}

// parameters are values as those of a statement.
func parameters[T any](values []T) (all []any) {
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

// fragments are parts of statements: the numbers of the orders that had not ended when they were last told, or have
// changed since, and of those with a call in progress or unknown, or that were free before a hold; which of them can be
// unresolved is as the journal's index has it.
var fragments = strings.NewReplacer(
	"@live", `(SELECT order_no FROM @payouts WHERE told IN ('', 'unresolved') UNION SELECT order_no FROM @payouts_marks)`,
	"@open", `(SELECT reference FROM @intents WHERE op || '' = 'CreateTransfer'
	AND (state IN ('open', 'unknown') OR state IN ('refused', 'not_sent') AND NOT closed)
	AND (state IN ('open', 'unknown') OR era < (SELECT oldest FROM @intents_journal)))`)

// dialectWords are the words of each dialect.
var dialectWords = map[sqljournal.Dialect][]string{
	sqljournal.SQLite: {
		"@time", "TEXT", "@key", "TEXT", "@id", "INTEGER PRIMARY KEY AUTOINCREMENT",
		"NOW()", `strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')`, "@skip", "", "@lock", "",
		"@age", "unixepoch('now') - unixepoch(j.attempted_at)",
		"@view @payouts_orders", "DROP VIEW IF EXISTS cardwire_payouts_orders;\nCREATE VIEW cardwire_payouts_orders",
	},
	sqljournal.PostgreSQL: {
		"@time", "TIMESTAMPTZ", "@key", `TEXT COLLATE "C"`, "@id", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"NOW()", "statement_timestamp()", "@skip", "FOR UPDATE SKIP LOCKED", "@lock", "FOR UPDATE",
		"@age", "EXTRACT(EPOCH FROM statement_timestamp() - j.attempted_at)", "@view", "CREATE OR REPLACE VIEW",
	},
}

// wordsOf are the words of a dialect, and the names of the tables: in PostgreSQL all are in a schema of their own, and in
// SQLite those of payouts have a prefix.
func wordsOf(dialect sqljournal.Dialect, schema string) *strings.Replacer {
	in, own := `"`+schema+`".`, `"`+schema+`".`
	if dialect == sqljournal.SQLite {
		in, own = "", "cardwire_"
	}
	return strings.NewReplacer(append(slices.Clone(dialectWords[dialect]),
		"@release", strconv.Itoa(release), "@schema", strings.TrimSuffix(in, "."),
		"@payouts", own+"payouts", "@intents", in+sqljournal.DefaultTable, "@river", in+"river")...)
}

// sql returns a statement in the dialect, with the names of this service's tables.
func (s *Service) sql(text string) string {
	if known, ok := s.statements.Load(text); ok {
		return known.(string)
	}
	known := s.words.Replace(fragments.Replace(text))
	if len(known) < 8<<10 { // of a list with many parameters there are too many
		s.statements.Store(text, known)
	}
	return known
}

//go:embed *.sql
var sqlFiles embed.FS

func embedded(name string) string {
	text, _ := sqlFiles.ReadFile(name) // it is there
	return string(text)
}

// transaction makes one transaction.
func (s *Service) transaction(ctx context.Context, do func(*sql.Tx) error) error {
	var options *sql.TxOptions
	if s.dialect == sqljournal.PostgreSQL { // whatever the database's default is
		options = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	tx, err := s.db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// isDeadlock reports whether PostgreSQL ended a transaction that another one waited for.
func isDeadlock(err error) bool {
	state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	return ok && (state.SQLState() == "40P01" || state.SQLState() == "40001")
}

// moment is a time as a parameter: SQLite keeps it as the journal does, and compares strings.
func (s *Service) moment(t time.Time) any {
	if s.dialect == sqljournal.SQLite {
		return t.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	return t
}

// moment reads a time, or a string as SQLite has it; null is the zero time.
type moment struct{ *time.Time }

// Scan implements sql.Scanner.
func (m moment) Scan(v any) (err error) {
	switch v := v.(type) {
	case nil:
		*m.Time = time.Time{}
	case time.Time:
		*m.Time = v.UTC()
	case string:
		*m.Time, err = time.Parse(time.RFC3339, strings.Replace(v, " ", "T", 1))
	default:
		err = fmt.Errorf("a time is stored as %T", v)
	}
	return err
}
