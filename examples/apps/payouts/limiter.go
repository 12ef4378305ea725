package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// newLimiter returns what a request waits for: the rate, which all replicas share.
func (s *service) newLimiter() cardwire.Limiter {
	switch {
	case s.rate > 0 && s.dialect == sqljournal.PostgreSQL:
		return &turns{s.db, s.rate}
	case s.rate > 0:
		return rate.NewLimiter(rate.Limit(s.rate), 1)
	}
	return rate.NewLimiter(rate.Inf, 0)
}

var errBraked = errors.New("too many orders are unresolved: resolve them first")

// braked returns errBraked, with the numbers, while most orders or more are unresolved.
func braked(ctx context.Context, journal *sqljournal.Journal, most int64) error {
	if most == 0 {
		return nil
	}
	stats, err := journal.Stats(ctx)
	if err == nil && stats.Unresolved >= most {
		err = fmt.Errorf("%w (unresolved: %d, -brake %d)", errBraked, stats.Unresolved, most)
	}
	return err
}

// turns is a cardwire.Limiter that all replicas share: a row in PostgreSQL has the
// moment of the last request that was allowed, by the server's clock.
type turns struct {
	db        *sql.DB
	perSecond float64 // of all replicas together
}

const patience = 10 * time.Second // a turn that is further away is not taken

var errNoTurn = errors.New("too many requests are waiting for their turn")

// takeTurn is one statement: the lock on the row lets one replica at a time look
// at the last turn and take the next.
const takeTurn = `
INSERT INTO turns AS t (name, taken) VALUES ('cardwire', clock_timestamp())
ON CONFLICT (name) DO UPDATE
SET taken = greatest(t.taken + make_interval(secs => $1), clock_timestamp())
WHERE t.taken + make_interval(secs => $1) < clock_timestamp() + make_interval(secs => $2)
RETURNING extract(epoch FROM taken - clock_timestamp())`

// Wait implements cardwire.Limiter. Where it fails, nothing is sent.
func (l *turns) Wait(ctx context.Context) error {
	var seconds float64
	err := l.db.QueryRowContext(ctx, takeTurn, 1/l.perSecond, patience.Seconds()).Scan(&seconds)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return errNoTurn
	case err != nil:
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return nil
	}
}
