package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
)

// writes is a pool of SQLite. It executes what concurrent callers write in one
// transaction, since each waits for the disk while no other can begin; and it prepares
// statements once, since parsing is a third of the work. Drivers of PostgreSQL prepare by
// themselves, unless they are told that the pool in front of the server has no sessions.
type writes struct {
	*sql.DB

	prepared sync.Map // *sql.Stmt by text; they are closed with the database
	mu       sync.Mutex
	waiting  []*write
	turn     chan struct{} // has room for the one that executes
}

// write is a statement of a caller.
type write struct {
	statement *sql.Stmt
	args      []any
	result    sql.Result
	err       error
	done      chan struct{} // closed when result and err are set
}

// errAbandoned means that a statement failed because of another caller's. It is executed
// again, even if it may have been executed: all are idempotent.
var errAbandoned = errors.New("sqljournal: the transaction was abandoned")

// ExecContext executes a statement in the next transaction.
func (w *writes) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	statement, err := w.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	own := &write{statement: statement, args: args, err: errAbandoned, done: make(chan struct{})}
	w.mu.Lock()
	w.waiting = append(w.waiting, own)
	w.mu.Unlock()
	select {
	case <-own.done:
		return own.result, own.err
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
		w.execute(ctx)
		return own.result, own.err
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting = slices.DeleteFunc(w.waiting, func(other *write) bool { return other == own })
		return nil, ctx.Err()
	}
}

// QueryContext reads outside the transactions.
func (w *writes) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	statement, err := w.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (w *writes) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s, ok := w.prepared.Load(text); ok {
		return s.(*sql.Stmt), nil
	}
	own, err := w.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s, others := w.prepared.LoadOrStore(text, own)
	if others {
		err = own.Close()
	}
	return s.(*sql.Stmt), err
}

// execute executes what is waiting: all of it, or nothing. Where a statement fails, the
// others are abandoned.
func (w *writes) execute(ctx context.Context) {
	w.mu.Lock()
	batch := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	defer func(all []*write) {
		for _, b := range all {
			close(b.done)
		}
	}(batch)
	tx, err := w.BeginTx(ctx, nil)
	for _, b := range batch {
		if err != nil {
			break
		}
		if b.result, err = tx.StmtContext(ctx, b.statement).ExecContext(ctx, b.args...); err != nil {
			_ = tx.Rollback() // it is over already if ctx is done
			batch = []*write{b}
		}
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil && ctx.Err() != nil {
		return // only the context of the caller that executes the others' statements was done
	}
	for _, b := range batch {
		b.err = err
	}
}
