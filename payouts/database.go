package payouts

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/sqljournal"
)

type (
	querier  = database.Querier
	executor = database.Executor
	scan     = database.Scan
)

// query reads all rows of a query, each by read.
func query[T any](
	ctx context.Context, s *Service, db querier, read func(scan) (T, error), text string, args ...any,
) ([]T, error) {
	all, err := database.Query(ctx, db, read, s.sql(text), args...)
	return all, s.advise(err)
}

// exec executes a statement.
func (s *Service) exec(ctx context.Context, db executor, statement string, args ...any) error {
	_, err := db.ExecContext(ctx, s.sql(statement), args...)
	return s.advise(err)
}

// advised is an error of the database, with what to do.
type advised struct {
	advice string
	error
}

func (e *advised) Error() string { return "payouts: " + e.advice + ": " + e.error.Error() }
func (e *advised) Unwrap() error { return e.error }

func isAdvised(err error) bool {
	_, is := errors.AsType[*advised](err)
	return is
}

// advise adds what to do about an error that a person has to act on.
func (s *Service) advise(err error) error {
	if err == nil || isAdvised(err) {
		return err
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(words string) bool { return strings.Contains(err.Error(), words) })
	}
	state, isSQLite := database.State(err), s.dialect == sqljournal.SQLite
	for _, known := range []struct {
		applies bool
		advice  string
	}{
		{isSQLite && state != "", "the database is PostgreSQL: pass sqljournal.PostgreSQL to New"},
		{
			!isSQLite && state == "" && says("no such table", "no such function", "syntax error"),
			"the database is SQLite: pass sqljournal.SQLite to New",
		},
		{state == "42501", "this role lacks rights: Verify says which"},
		{
			state == "42P01" || says("no such table"),
			"a table is not in this database: use the one that New was given; if it is that one, call Migrate once",
		},
		{
			errors.Is(err, sql.ErrTxDone),
			"the transaction has ended too early: commit it after Submit, and in Changed neither commit nor roll it back",
		},
		{says("sql: database is closed"), "the database was closed: close it when Run has returned"},
	} {
		if known.applies {
			return &advised{known.advice, err}
		}
	}
	return err
}

// fragments are parts of statements:
//
//	@live     the numbers of orders that had not ended when they were last told, or have changed since
//	@open     the numbers of orders that may be sending or unresolved: a condition that the journal's index has
//	@sending  whether the call of the journal's row is in progress
var fragments = strings.NewReplacer(
	"@live", `(SELECT order_no FROM @payouts WHERE told IN ('', 'unresolved') UNION SELECT order_no FROM @payouts_marks)`,
	"@open", `(SELECT reference FROM @intents WHERE op || '' = 'CreateTransfer'
	AND (state IN ('open', 'unknown') OR state IN ('refused', 'not_sent') AND NOT closed)
	AND (state IN ('open', 'unknown') OR era < (SELECT oldest FROM @intents_journal)))`,
	"@sending", strings.NewReplacer("@now", "NOW()", "@latest", "NOW()").Replace(database.InProgress))

// dialectWords are the words of each dialect.
var dialectWords = map[sqljournal.Dialect][]string{
	sqljournal.SQLite: {
		"@id", "INTEGER PRIMARY KEY AUTOINCREMENT",
		"NOW()", `strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')`, "@skip", "", "@lock", "",
		"@late", `strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', '-1 minute')`,
		"@age", "unixepoch('now') - unixepoch(j.attempted_at)",
		"@view @payouts_orders", "DROP VIEW IF EXISTS cardwire_payouts_orders;\nCREATE VIEW cardwire_payouts_orders",
	},
	sqljournal.PostgreSQL: {
		"@id", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"NOW()", "statement_timestamp()", "@skip", "FOR UPDATE SKIP LOCKED", "@lock", "FOR UPDATE",
		"@late", "statement_timestamp() - INTERVAL '1 minute'",
		"@age", "EXTRACT(EPOCH FROM statement_timestamp() - j.attempted_at)", "@view", "CREATE OR REPLACE VIEW",
	},
}

// wordsOf replaces the words of a dialect and the names of the tables, which in PostgreSQL are in a schema of their own; in
// SQLite those of this package have a prefix.
func wordsOf(dialect sqljournal.Dialect, schema string) *strings.Replacer {
	in, own := `"`+schema+`".`, `"`+schema+`".`
	if dialect == sqljournal.SQLite {
		in, own = "", "cardwire_"
	}
	return strings.NewReplacer(slices.Concat(dialectWords[dialect], database.Words(dialect == sqljournal.PostgreSQL), []string{
		"@release", strconv.Itoa(release), "@schema", strings.TrimSuffix(in, "."),
		"@payouts", own + "payouts", "@intents", in + sqljournal.DefaultTable, "@river", in + "river",
	})...)
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
	return database.Transaction(ctx, s.db, s.dialect == sqljournal.PostgreSQL, do)
}

// moment is a time as a parameter: SQLite keeps it as the journal does, and compares strings.
func (s *Service) moment(t time.Time) any {
	if s.dialect == sqljournal.SQLite {
		return database.Text(t)
	}
	return t
}
