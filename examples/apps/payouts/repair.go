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
// resolved past this program. A queued order that a worker changed since it was queued
// sleeps for as long as the service asked for. They need nothing but a call, which tells
// what is known.
const asleep = `SELECT p.order_no, p.job_id FROM payouts p LEFT JOIN river_job j ON j.id = p.job_id AND j.args ->> 'order' = p.order_no
LEFT JOIN ` + sqljournal.DefaultTable + ` i ON i.op = 'CreateTransfer' AND i.reference = p.order_no AND i.exclusive
WHERE p.state IN ('queued', 'sending', 'unresolved') AND (
	j.id IS NULL OR j.state IN ('completed', 'cancelled', 'discarded')
	OR p.state = 'queued' AND p.changed_at = p.queued_at AND j.state = 'scheduled' AND j.scheduled_at > $1
	OR p.state = 'unresolved' AND NOT p.other_body AND j.state = 'scheduled' AND i.event IN ('resolved', 'corrected', 'voided'))`

// disagreeing are orders that have ended otherwise than the journal says, and those that
// it has forgotten.
const disagreeing = `SELECT p.order_no, coalesce(i.state, 'missing'), coalesce(i.service_id, '') FROM payouts p
LEFT JOIN ` + sqljournal.DefaultTable + ` i ON i.op = 'CreateTransfer' AND i.reference = p.order_no AND i.exclusive
WHERE p.state IN ('failed', 'cancelled') AND i.state IN ('executed', 'open', 'unknown')
OR p.state IN ('submitted', 'paid', 'returned') AND NOT p.other_body AND coalesce(i.state, '') <> 'executed'
OR p.state = 'unresolved' AND i.state IS NULL`

// repair wakes orders whose job sleeps, and reports those on which the tables disagree.
// What turned out to be executed is corrected; anything else needs a person.
func (s *service) repair(ctx context.Context) error {
	sleeping, err := rows(ctx, s.db, func(o *order, scan scanner) error { return scan(&o.Order, &o.jobID) },
		asleep, time.Now().UTC().Add(longPause/2))
	errs := []error{err}
	for _, o := range sleeping {
		s.log.WarnContext(ctx, "the order's job is woken", "order", o.Order)
		errs = append(errs, s.transaction(ctx, func(tx *sql.Tx) error { return s.wake(ctx, tx, o) }))
	}
	wrong, err := rows(ctx, s.db, func(o *order, scan scanner) error { return scan(&o.Order, &o.Note, &o.ServiceID) }, disagreeing)
	errs = append(errs, err)
	for _, o := range wrong {
		s.log.ErrorContext(ctx, "the journal and the order disagree", "order", o.Order, "journal", o.Note)
		if o.Note == "executed" {
			_, err := s.apply(ctx, change{
				order: o.Order, from: []string{failed, cancelled}, to: submitted, by: "repair", serviceID: o.ServiceID, status: statusLost,
				note: "the journal says that it was executed", level: slog.LevelError,
			})
			if !errors.Is(err, errMoved) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
