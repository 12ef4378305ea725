package payouts

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// newLimiter returns what a request waits for: the rate, which all replicas share.
func (s *Service) newLimiter() cardwire.Limiter {
	switch {
	case s.config.Rate > 0 && s.dialect == sqljournal.PostgreSQL:
		return &turns{s, s.config.Rate}
	case s.config.Rate > 0:
		return rate.NewLimiter(rate.Limit(s.config.Rate), 1)
	}
	return rate.NewLimiter(rate.Inf, 0)
}

// turns is a cardwire.Limiter that all replicas share: a row in PostgreSQL has the
// moment of the last request that was allowed, by the server's clock.
type turns struct {
	*Service
	perSecond float64 // of all replicas together
}

const maxTurnWait = 10 * time.Second // a turn that is further away is not taken

var errNoTurn = errors.New("too many requests are waiting for their turn")

// takeTurn is one statement: the lock on the row lets one replica at a time look
// at the last turn and take the next. One further away than any can be is of a clock that was set back.
const takeTurn = `
INSERT INTO @payouts_turns AS t (one, taken) VALUES (1, clock_timestamp())
ON CONFLICT (one) DO UPDATE
SET taken = CASE WHEN t.taken > clock_timestamp() + make_interval(secs => $2) THEN clock_timestamp()
	ELSE greatest(t.taken + make_interval(secs => $1), clock_timestamp()) END
WHERE t.taken + make_interval(secs => $1) < clock_timestamp() + make_interval(secs => $2)
	OR t.taken > clock_timestamp() + make_interval(secs => $2)
RETURNING extract(epoch FROM taken - clock_timestamp())`

// Wait implements cardwire.Limiter. Where it fails, nothing is sent.
func (l *turns) Wait(ctx context.Context) error {
	var seconds float64
	err := l.db.QueryRowContext(ctx, l.sql(takeTurn), 1/l.perSecond, maxTurnWait.Seconds()).Scan(&seconds)
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
