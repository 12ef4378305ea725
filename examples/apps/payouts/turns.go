package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
)

// share is one replica's part of a rate that is allowed to all of them together.
func share(perSecond float64, replicas int) cardwire.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond/float64(replicas)), 1)
}

// turns is a cardwire.Limiter that all replicas share: a row in PostgreSQL has the
// moment of the last request that was allowed, by the server's clock.
type turns struct {
	db       *sql.DB
	interval time.Duration // between two requests, of whichever replicas
	patience time.Duration // a turn that is further away is not taken
}

// createTurns takes a lock, because IF NOT EXISTS fails where two do it at once.
const createTurns = `
SELECT pg_advisory_xact_lock(5821034417);
CREATE TABLE IF NOT EXISTS turns (name TEXT PRIMARY KEY, taken TIMESTAMPTZ NOT NULL)`

// migrateTurns creates the table, as a step of the deployment.
func migrateTurns(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, createTurns)
	return err
}

func newTurns(db *sql.DB, interval time.Duration) *turns {
	return &turns{db: db, interval: interval, patience: 10 * time.Second}
}

var errNoTurn = errors.New("too many requests are waiting for their turn")

// takeTurn is one statement: the lock on the row lets one replica at a time look
// at the last turn and take the next.
const takeTurn = `
INSERT INTO turns AS t (name, taken) VALUES ('cardwire', clock_timestamp())
ON CONFLICT (name) DO UPDATE
SET taken = greatest(t.taken + make_interval(secs => $1), clock_timestamp())
WHERE t.taken + make_interval(secs => $1) < clock_timestamp() + make_interval(secs => $2)
RETURNING taken, extract(epoch FROM taken - clock_timestamp())`

// Wait implements cardwire.Limiter. Where it fails, nothing is sent.
func (l *turns) Wait(ctx context.Context) error {
	_, wait, err := l.take(ctx)
	if err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (l *turns) take(ctx context.Context) (turn time.Time, wait time.Duration, err error) {
	var seconds float64
	err = l.db.QueryRowContext(ctx, takeTurn, l.interval.Seconds(), l.patience.Seconds()).Scan(&turn, &seconds)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoTurn
	}
	return turn, time.Duration(seconds * float64(time.Second)), err
}
