// Package database has what the modules of this repository share that write SQL by hand: the drivers are the
// importers', and the dialects are those of SQLite and PostgreSQL.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// Executor is the same.
type Executor interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

// Scan reads the columns of a row.
type Scan func(into ...any) error

// Query reads all rows of a query, each by read.
func Query[T any](
	ctx context.Context, on Querier, read func(Scan) (T, error), text string, args ...any,
) (all []T, err error) {
	rows, err := on.QueryContext(ctx, text, args...)
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

// One reads the only column of a row.
func One[T any](scan Scan) (value T, err error) {
	err = scan(&value)
	return value, err
}

// Placeholders is a list of so many parameters, after others.
func Placeholders[T any](after int, values []T) string {
	var all []string
	for i := range values {
		all = append(all, "$"+strconv.Itoa(after+i+1))
	}
	return "(" + strings.Join(all, ", ") + ")"
}

// Parameters are values as those of a statement.
func Parameters[T any](values []T) (all []any) {
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

// InProgress is the condition of a row of the journal whose call may still send, as journal.Record.InProgress has it:
// at @now, and if it did not begin after @latest, by a clock that was ahead.
const InProgress = `(state = 'open' AND send_by > @now AND time <= @latest)`

// Words are words of definitions, each with its SQL in a dialect.
func Words(isPostgreSQL bool) []string {
	if isPostgreSQL { // a linguistic collation may change with the operating system, and an index then hides rows
		return []string{"@time", "TIMESTAMPTZ", "@text", `TEXT COLLATE "C"`}
	}
	return []string{"@time", "TEXT", "@text", "TEXT"}
}

// Beginner is a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error)
}

// Transaction runs do in a transaction, which ends without a change if do fails.
func Transaction(ctx context.Context, db Beginner, isPostgreSQL bool, do func(*sql.Tx) error) error {
	var options *sql.TxOptions
	if isPostgreSQL { // whatever the database's default: a row that is locked is then as others left it
		options = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // it is over already if ctx is done
		return err
	}
	return tx.Commit()
}

// How long Again tries, unless ctx ends earlier, and how long it waits between two tries.
const (
	againFor     = 10 * time.Second
	againWait    = time.Millisecond
	againMaxWait = 50 * time.Millisecond
)

// Again calls try, and again after the failures that may pass; nil: none may.
func Again(ctx context.Context, mayPass func(error) bool, try func() error) error {
	until := time.Now().Add(againFor)
	for wait := againWait; ; wait = min(2*wait, againMaxWait) {
		err := try()
		if mayPass == nil || !mayPass(err) {
			return err
		}
		left := time.Until(until)
		if left <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(min(wait, left)):
		}
	}
}

// State returns the SQLSTATE of a failure of PostgreSQL; "": it has none.
func State(err error) string {
	if state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return state.SQLState()
	}
	return ""
}

// Text returns a time as SQLite stores it, to PostgreSQL's precision: its drivers disagree about a time.Time.
func Text(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format("2006-01-02T15:04:05.000000Z")
}

// Moment is what a time of either dialect is read by; null is the zero time.
func Moment(into *time.Time) sql.Scanner { return moment{into} }

type moment struct{ *time.Time }

// Scan implements sql.Scanner.
func (m moment) Scan(v any) (err error) {
	text := ""
	switch v := v.(type) {
	case nil:
		*m.Time = time.Time{}
		return nil
	case time.Time:
		*m.Time = v.UTC()
		return nil
	case string:
		text = v
	case []byte:
		text = string(v)
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	*m.Time, err = time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1))
	return err
}
