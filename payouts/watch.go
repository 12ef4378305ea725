package payouts

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// delays are what no error tells of; zero: there are none. What is less than a minute old is no delay.
type delays struct {
	Idle        time.Time // since when no replica has worked
	Untold      int64     // orders of which Changed has not been told
	UntoldSince time.Time // the oldest of these changes
}

// delays returns what is late by the clock of the database.
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

// write writes that a replica works, or nothing new. It discards connections to a server that has become read-only,
// as after a failover: otherwise the pool keeps them as long as they are used.
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

// observeDelays reports the delays also where no replica runs. While they cannot be read nothing is reported: an
// error would take the program's other metrics with it.
func (s *Service) observeDelays() error {
	meter := s.config.MeterProvider.Meter(scope)
	idle, err1 := meter.Float64ObservableGauge("payouts.idle",
		metric.WithUnit("s"), metric.WithDescription("Time since a replica last worked; 0: less than a minute."))
	untold, err2 := meter.Int64ObservableGauge("payouts.untold", metric.WithUnit("{order}"),
		metric.WithDescription("Orders of which Changed has not been told for a minute or longer."))
	oldest, err3 := meter.Float64ObservableGauge("payouts.oldest_untold.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the oldest of these changes; 0: there is none."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		d, err := s.delays(ctx)
		if err != nil {
			return nil
		}
		o.ObserveFloat64(idle, secondsSince(d.Idle))
		o.ObserveInt64(untold, d.Untold)
		o.ObserveFloat64(oldest, secondsSince(d.UntoldSince))
		return nil
	}, idle, untold, oldest)
	return err
}

// secondsSince is 0 of the zero time, and of one in the future: clocks differ.
func secondsSince(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(time.Since(t), 0).Seconds()
}
