package payouts

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// delays are what has stopped without an error: no replica runs, or nobody is told. What is less than a minute old is no
// delay.
type delays struct {
	Idle        time.Time // since when no replica has worked
	Untold      int64     // orders of which Changed has not been told
	UntoldSince time.Time // the oldest of these changes
}

// delays returns the delays by the clock of the database.
func (s *Service) delays(ctx context.Context) (delays, error) {
	all, err := query(ctx, s, s.db, func(scan scan) (d delays, err error) {
		err = scan(database.Moment(&d.Idle), &d.Untold, database.Moment(&d.UntoldSince))
		return d, err
	}, `SELECT CASE WHEN worked_at < @late THEN worked_at END, untold, oldest FROM @payouts_control, (
	SELECT count(DISTINCT order_no) AS untold, min(since) AS oldest FROM @payouts_marks m WHERE since < @late
		AND EXISTS (SELECT 1 FROM @payouts p WHERE p.order_no = m.order_no)) late`)
	return append(all, delays{})[0], err
}

// workEvery is how often a replica notes that it works.
const workEvery = 10 * time.Second

// noteWork notes that this replica works until ctx is done, beside what may wait for the service or for Changed.
func (s *Service) noteWork(ctx context.Context) {
	ticker := time.NewTicker(workEvery)
	defer ticker.Stop()
	for {
		if err := s.write(ctx, true); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "the database takes no writes", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// write tries whether the database takes a write, and notes that a replica works if one does. After a failover it discards
// connections to a server that has become read-only: the pool keeps them as long as they are used.
func (s *Service) write(ctx context.Context, works bool) (err error) {
	for tries := s.db.Stats().OpenConnections; tries >= 0; tries-- {
		err = s.writeOn(ctx, works)
		if database.State(err) != readOnly && !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return err
}

const readOnly = "25006" // the SQLSTATE

// writeOn writes on the connection that is used next.
func (s *Service) writeOn(ctx context.Context, works bool) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the pool has it back
	err = database.Transaction(ctx, c, s.dialect == sqljournal.PostgreSQL, func(tx *sql.Tx) error {
		return s.exec(ctx, tx, `UPDATE @payouts_control SET worked_at = CASE WHEN $1 THEN NOW() ELSE worked_at END,
	able_at = CASE WHEN $2 THEN NOW() ELSE able_at END`, works, works && s.refusedKey() == "")
	})
	if database.State(err) == readOnly {
		_ = c.Raw(func(any) error { return driver.ErrBadConn }) // which has the pool close it
	}
	return err
}
