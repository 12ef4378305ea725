package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/database"
)

// Tx is a [Journal] in its caller's transaction, from [Journal.In].
type Tx struct {
	journal *Journal
	on      executor
	retried func(error) bool // the failures after which a statement is executed again; nil: none
}

type executor interface {
	database.Querier
	database.Executor
}

// In returns the journal in tx, a transaction of its database: what it records is committed,
// or not, with the caller's own changes. After a failure of the database, roll back. After a
// refusal too, end tx immediately: the row stays locked, and a call in progress cannot record its
// result. In PostgreSQL leave the isolation level at READ COMMITTED. In SQLite begin tx with BEGIN
// IMMEDIATE, as with the option _txlock=immediate of some drivers: otherwise a transaction
// that reads before it writes fails while others write.
func (j *Journal) In(tx *sql.Tx) *Tx {
	return &Tx{j, tx, nil}
}

// waiting is the journal outside a transaction, waiting for locks.
func (j *Journal) waiting() *Tx { return &Tx{j, j.pool, j.busy} }

// transaction runs do in a transaction. In SQLite it takes its turn with what else this journal
// writes, since waiting for the lock is unfair: a busy process would keep it for seconds.
func (j *Journal) transaction(ctx context.Context, do func(*Tx) error) error {
	if w, ok := j.pool.(*writes); ok {
		select {
		case w.turn <- struct{}{}:
			defer func() { <-w.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return database.Transaction(ctx, j.db, j.dialect == PostgreSQL, func(tx *sql.Tx) error { return do(j.In(tx)) })
}

// inTransaction runs do in a transaction, and again where a lock of SQLite ended it: a
// transaction that reads before it writes fails while others write.
func (j *Journal) inTransaction(ctx context.Context, what string, do func(*Tx) error) error {
	var refused error
	err := database.Again(ctx, j.busy, func() error {
		refused = nil
		return j.transaction(ctx, func(t *Tx) error {
			refused = do(t)
			return refused
		})
	})
	if refused == nil || j.busy(refused) {
		return j.failed(what, err)
	}
	return err
}

// translation returns the template in the journal's dialect, translated once.
func (j *Journal) translation(template string) *translation {
	key := struct {
		template string
		setting  *setting
	}{template, j.setting.Load()}
	if s, ok := j.translations.Load(key); ok {
		return s.(*translation)
	}
	s, _ := j.translations.LoadOrStore(key, j.dialect.translate(template, key.setting))
	return s.(*translation)
}

// prepare returns a template's text, and its parameters with those that it adds.
func (t *Tx) prepare(ctx context.Context, template string, args []any) (string, []any, error) {
	if err := t.locate(ctx); err != nil {
		return "", nil, err
	}
	s := t.journal.translation(template)
	if s.isTimed {
		args = append(args, database.Text(time.Now()))
	}
	if s.isPinned {
		args = append(args, t.journal.pinned())
	}
	return s.text, args, nil
}

func (t *Tx) exec(ctx context.Context, template string, args ...any) (changed int64, err error) {
	err = database.Again(ctx, t.retried, func() error {
		text, args, err := t.prepare(ctx, template, args)
		if err != nil {
			return err
		}
		result, err := t.on.ExecContext(ctx, text, args...)
		if err != nil {
			return err
		}
		changed, err = result.RowsAffected()
		return err
	})
	return changed, err
}

type scan = database.Scan

func query[T any](
	ctx context.Context, t *Tx, read func(scan) (T, error), template string, args ...any,
) (all []T, err error) {
	err = database.Again(ctx, t.retried, func() (err error) {
		text, args, err := t.prepare(ctx, template, args)
		if err != nil {
			return err
		}
		all, err = database.Query(ctx, t.on, read, text, args...)
		return err
	})
	return all, err
}

// queryRow reads the one row of a query. If there is none, into stays as it is.
func (t *Tx) queryRow(ctx context.Context, into []any, template string, args ...any) error {
	_, err := query(ctx, t, func(s scan) (any, error) { return nil, s(into...) }, template, args...)
	return err
}

// busy reports whether SQLite did nothing because of a lock. SQLite's message, which
// every driver passes on, is the only sign that does not depend on the driver.
func (j *Journal) busy(err error) bool {
	return j.dialect == SQLite &&
		(errors.Is(err, errAbandoned) || says(err, "database is locked", "database table is locked"))
}

// mayPass reports whether a failure may be temporary, as during a restart of the
// database. Every failure that is not known to be permanent may be.
func (j *Journal) mayPass(err error) bool {
	return err != nil && !says(err, closedDatabase) && !j.isPermanent(err)
}

const closedDatabase = "sql: database is closed"

// isPermanent reports whether the database is not the journal's, or refuses the statement
// itself: there is no such table or column, no permission to write it, or a string cannot be stored.
// Drivers of PostgreSQL return the SQLSTATE, whose class is then 42 or 22; SQLite has
// only its message.
func (j *Journal) isPermanent(err error) bool {
	if state := database.State(err); state != "" {
		return strings.HasPrefix(state, "42") || isRefused(err)
	}
	return errors.Is(err, ErrSchema) || j.missing(err) || j.dialect == SQLite && says(err, "readonly database", "not a database")
}

// missing reports whether the database has no such table, column or schema.
func (j *Journal) missing(err error) bool {
	if j.dialect == SQLite {
		return says(err, "no such table", "no such column", "has no column", "unknown database")
	}
	return slices.Contains([]string{"42P01", "42703", "3F000"}, database.State(err))
}

// says reports whether the database's message has one of the words.
func says(err error, words ...string) bool {
	for f, ok := errors.AsType[*failure](err); ok; f, ok = errors.AsType[*failure](err) {
		err = f.cause // which its message omits
	}
	return err != nil && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
}
