package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// repairs is the periodic job that finds what no single order would notice.
type repairs struct{}

// Kind implements river.JobArgs.
func (repairs) Kind() string { return "payouts-repair" }

// InsertOpts implements river.JobArgsWithInsertOpts: the next one is due soon.
func (repairs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1} }

type repairer struct {
	river.WorkerDefaults[repairs]
	*service
}

// Work implements river.Worker.
func (w *repairer) Work(ctx context.Context, _ *river.Job[repairs]) error { return w.repair(ctx) }

// asleep are orders that have not ended and whose job does not run by itself, or not
// soon: it is gone, it has ended, it slept through being resolved, or the journal was
// resolved past this program. They need nothing but a call, which tells what is known.
const asleep = `SELECT p.order_no FROM payouts p LEFT JOIN river_job j ON j.id = p.job_id AND j.args ->> 'order' = p.order_no
LEFT JOIN ` + sqljournal.DefaultTable + ` i ON i.op = 'CreateTransfer' AND i.reference = p.order_no AND i.exclusive
WHERE p.state IN ('queued', 'sending', 'unresolved') AND (
	j.id IS NULL OR j.state IN ('completed', 'cancelled', 'discarded')
	OR p.state = 'queued' AND j.state = 'scheduled' AND j.scheduled_at > $1
	OR p.state = 'unresolved' AND j.state = 'scheduled' AND i.event IN ('resolved', 'corrected', 'voided'))`

// disagreeing are orders that have ended otherwise than the journal says.
const disagreeing = `SELECT p.order_no, coalesce(i.state, 'missing'), coalesce(i.service_id, '') FROM payouts p
LEFT JOIN ` + sqljournal.DefaultTable + ` i ON i.op = 'CreateTransfer' AND i.reference = p.order_no AND i.exclusive
WHERE p.state IN ('failed', 'cancelled') AND i.state IN ('executed', 'open', 'unknown')
OR p.state IN ('submitted', 'paid', 'returned') AND coalesce(i.state, '') <> 'executed'`

// repair wakes orders whose job sleeps, and reports those on which the tables disagree.
// What turned out to be executed is corrected; anything else needs a person.
func (s *service) repair(ctx context.Context) error {
	rows, err := s.three(ctx, `SELECT order_no, '', '' FROM (`+asleep+`) AS found`, time.Now().UTC().Add(longPause/2))
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range rows {
		s.log.WarnContext(ctx, "the order's job is woken", "order", r[0])
		errs = append(errs, s.transaction(ctx, func(tx *sql.Tx) error {
			o := order{Order: r[0]}
			err := tx.QueryRowContext(ctx, `SELECT job_id FROM payouts WHERE order_no = $1`, r[0]).Scan(&o.jobID)
			return errors.Join(err, s.wake(ctx, tx, o))
		}))
	}
	if rows, err = s.three(ctx, disagreeing); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, r := range rows {
		s.log.ErrorContext(ctx, "the journal and the order disagree", "order", r[0], "journal", r[1])
		if r[1] == "executed" {
			_, err := s.apply(ctx, change{
				order: r[0], from: []string{failed, cancelled}, to: submitted, by: "repair", serviceID: r[2],
				note: "the journal says that it was executed", level: slog.LevelError,
			})
			if !errors.Is(err, errMoved) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// three reads rows of three columns to their end, before anything else is done.
func (s *service) three(ctx context.Context, query string, args ...any) (list [][3]string, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r [3]string
		if err := rows.Scan(&r[0], &r[1], &r[2]); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
