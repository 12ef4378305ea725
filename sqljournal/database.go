package sqljournal

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
)

// times are @now and @sendby of a statement. In PostgreSQL @now is the server's clock,
// because the clocks of several machines differ.
type times struct {
	now    time.Time
	sendBy any // seconds from now in PostgreSQL, a time in SQLite
}

// begins returns the times of a Begin. An unknown SendBy is now.
func (j *Journal) begins(i cardwire.Intent) times {
	unknown := i.SendBy.IsZero()
	switch {
	case j.dialect == SQLite && unknown:
		return times{i.Time, textOf(i.Time)}
	case j.dialect == SQLite:
		return times{i.Time, textOf(i.SendBy)}
	case unknown:
		return times{i.Time, 0.0}
	}
	return times{i.Time, time.Until(i.SendBy).Seconds()}
}

// change executes one statement that is a transaction of its own, with its event in
// the history, and returns how many intents it changed. It waits for locks.
func (j *Journal) change(ctx context.Context, at times, statement string, args ...any) (changed int64, err error) {
	return j.execWhile(ctx, j.busy, at, statement, args)
}

// persist is change for an idempotent statement: it also retries failures after which
// the statement may have been executed.
func (j *Journal) persist(ctx context.Context, statement string, args ...any) (changed int64, err error) {
	return j.execWhile(ctx, j.passes, times{now: time.Now()}, statement, args)
}

func (j *Journal) execWhile(ctx context.Context, passes func(error) bool, at times, statement string, args []any) (rows int64, err error) {
	query, args := j.bind(j.dialect.change(statement), at, args)
	err = repeated(ctx, passes, func() error {
		result, err := j.db.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		rows, err = result.RowsAffected()
		return err
	})
	return rows, err
}

// bind replaces @now, @sendby, and @this, which checks the journal's identity.
func (j *Journal) bind(statement string, at times, args []any) (string, []any) {
	put := func(word, before string, value any, after string) {
		if strings.Contains(statement, word) {
			args = append(args, value)
			statement = strings.ReplaceAll(statement, word, before+"?"+strconv.Itoa(len(args))+after)
		}
	}
	if j.dialect == PostgreSQL {
		statement = strings.ReplaceAll(statement, "@now", "statement_timestamp()")
		put("@sendby", "(statement_timestamp() + make_interval(secs => ", at.sendBy, "))")
	} else {
		put("@now", "", textOf(at.now), "")
		put("@sendby", "", at.sendBy, "")
	}
	if identity := j.pinned(); identity != "" {
		put("@this", "EXISTS (SELECT 1 FROM @journal WHERE identity = ", identity, ")")
	}
	return j.query(strings.ReplaceAll(statement, "@this", "TRUE")), args
}

// query returns the statement in the dialect, with the names of the journal's tables.
func (j *Journal) query(statement string) string { return j.dialect.query(statement, j.table) }

// How long the journal retries unless the caller's context ends earlier, and how long it
// waits between two tries.
const (
	repeatTimeout = 10 * time.Second
	repeatWait    = time.Millisecond
	repeatMaxWait = 50 * time.Millisecond
)

// repeated calls try, and retries temporary failures.
func repeated(ctx context.Context, passes func(error) bool, try func() error) error {
	err := try()
	if !passes(err) {
		return err
	}
	limit := time.NewTimer(repeatTimeout)
	defer limit.Stop()
	for wait := repeatWait; ; wait = min(2*wait, repeatMaxWait) {
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(ctx.Err(), err)
		case <-limit.C:
			pause.Stop()
			return err
		case <-pause.C:
		}
		if err = try(); !passes(err) {
			return err
		}
	}
}

// busy reports whether SQLite did nothing because of a lock. SQLite's message, which
// every driver passes on, is the only sign that does not depend on the driver.
func (j *Journal) busy(err error) bool {
	return j.dialect == SQLite && says(err, "database is locked", "database table is locked")
}

// passes reports whether a failure may be temporary, as during a restart of the
// database. Every failure that is not known to be permanent may be.
func (j *Journal) passes(err error) bool {
	return err != nil && err.Error() != closedDatabase && !j.misunderstood(err)
}

// closedDatabase is the message of database/sql for a closed database.
const closedDatabase = "sql: database is closed"

// misunderstood reports whether the database refuses the statement itself: there is
// no such table or column, no permission to write it, or a string cannot be stored.
// Drivers of PostgreSQL return the SQLSTATE, whose class is then 42 or 22; SQLite has
// only its message.
func (j *Journal) misunderstood(err error) bool {
	if state := sqlState(err); state != "" {
		return strings.HasPrefix(state, "42") || strings.HasPrefix(state, "22")
	}
	return j.missing(err) || j.dialect == SQLite && says(err, "readonly database", "not a database")
}

// missing reports whether the database has no such table, column or schema.
func (j *Journal) missing(err error) bool {
	if j.dialect == SQLite {
		return says(err, "no such table", "no such column", "has no column", "unknown database")
	}
	return slices.Contains([]string{"42P01", "42703", "3F000"}, sqlState(err))
}

func sqlState(err error) string {
	if state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return state.SQLState()
	}
	return ""
}

func says(err error, words ...string) bool {
	return err != nil && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
}
