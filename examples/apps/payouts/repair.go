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

// asleep are orders whose job does not run by itself, or not soon: it is gone, it has
// ended, or it slept through being resolved. An order that a worker changed since it was
// queued sleeps for as long as the service asked for.
const asleep = `SELECT p.order_no, p.job_id FROM payouts p LEFT JOIN river_job j ON j.id = p.job_id AND j.args ->> 'order' = p.order_no
WHERE p.state IN ('queued', 'sending') AND (j.id IS NULL OR j.state IN ('completed', 'cancelled', 'discarded')
	OR p.state = 'queued' AND p.changed_at = p.queued_at AND j.state = 'scheduled' AND j.scheduled_at > $1)`

// disagreeing are orders of which the journal knows something else, or nothing.
const disagreeing = `SELECT p.order_no, p.state, coalesce(i.state, 'missing') AS note FROM payouts p
LEFT JOIN ` + sqljournal.DefaultTable + ` i ON i.op = 'CreateTransfer' AND i.reference = p.order_no AND i.exclusive
WHERE p.state IN ('failed', 'cancelled') AND i.state IN ('executed', 'open', 'unknown')
OR p.state IN ('submitted', 'paid', 'returned') AND NOT p.other_body AND coalesce(i.state, '') <> 'executed'
OR p.state = 'unresolved' AND NOT p.other_body AND coalesce(i.state, '') NOT IN ('open', 'unknown')`

// repair wakes orders whose job sleeps, and looks at those on which the tables disagree.
func (s *service) repair(ctx context.Context) error {
	sleeping, err := read(ctx, s.db, asleep, time.Now().UTC().Add(longPause/2))
	errs := []error{err}
	for _, o := range sleeping {
		s.log.WarnContext(ctx, "the order's job is woken", "order", o.Order)
		errs = append(errs, s.transaction(ctx, func(tx *sql.Tx) error { return s.wake(ctx, tx, o) }))
	}
	disputed, err := read(ctx, s.db, disagreeing)
	errs = append(errs, err)
	for _, o := range disputed {
		if err := s.reconcile(ctx, o, o.Note); !errors.Is(err, errMoved) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// reconcile corrects an order that the journal has as executed, and queues one that is
// unresolved and was not, as the journal learned late or from a person. In a journal that
// forgot the order's try the execution may be another request's: a call tells. Anything else
// needs a person.
func (s *service) reconcile(ctx context.Context, o order, journal string) (err error) {
	if state := o.State; state == unresolved || journal == executed {
		if o, err = s.findEntry(ctx, o.Order); err != nil || o.State != state {
			return err // it has moved
		}
	}
	c := change{order: o.Order, by: "repair", note: "in the journal it is " + journal, level: slog.LevelWarn}
	ours := o.State != unresolved || o.Try == o.Entry.Try || o.Entry.BodySHA256 == "" // a person recorded that
	switch {
	case journal == executed && ours:
		c.from, c.to, c.serviceID, c.status = []string{unresolved, failed, cancelled}, submitted, o.Entry.ServiceID, statusLost
	case o.State == unresolved && !o.IsForgotten():
		c.from, c.to = []string{unresolved}, queued
	}
	if o.State != unresolved || o.IsForgotten() {
		s.log.ErrorContext(ctx, "the journal and the order disagree", "order", o.Order, "state", o.State, "journal", journal)
		c.level = slog.LevelError
	}
	if c.to != "" {
		_, err = s.apply(ctx, c, s.wake)
	}
	return err
}
