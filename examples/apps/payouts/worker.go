package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/cardwire/cardwire-go"
)

const operation = "CreateTransfer"

// submit is the job of an order: it has the number, and nothing else. Each order has
// one job for all its life, which ends where nothing is to be sent, and is woken.
type submit struct {
	Order string `json:"order"`
}

// Kind implements river.JobArgs.
func (submit) Kind() string { return "payout" }

// InsertOpts implements river.JobArgsWithInsertOpts. Only crashes and errors, of the
// database mostly, use up attempts: snoozes do not.
func (submit) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1000} }

// submitter does what cardwire.NextStep says.
type submitter struct {
	river.WorkerDefaults[submit]
	*service
}

// The pauses of an order that cannot be sent now.
const (
	leastPause  = time.Second
	mostPause   = 10 * time.Minute
	giveUpAfter = 24 * time.Hour
)

// Work implements river.Worker. It runs on a context of its own: the job's ends when
// the program is told to stop, and a call that is cut off is one more to ask about.
func (w *submitter) Work(ctx context.Context, job *river.Job[submit]) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.jobTimeout())
	defer cancel()
	ctx, span := w.startJob(ctx, job.JobRow)
	defer span.End()
	if w.paused.Load() { // River stops fetching jobs up to two seconds late
		return river.JobSnooze(leastPause)
	}
	snooze, trouble, err := w.send(ctx, job.Args.Order, false)
	if err == nil && trouble != nil {
		err = w.troubled(ctx, trouble)
	}
	if err == nil && snooze > 0 {
		err = river.JobSnooze(snooze)
	}
	return err
}

// NextRetry implements river.Worker: after an error of the database, or a crash.
func (w *submitter) NextRetry(job *river.Job[submit]) time.Time {
	return time.Now().Add(min(time.Duration(job.Attempt)*leastPause, time.Minute))
}

// send calls the service about an order that is queued, and returns how long its job is to
// sleep (0: it has ended), and what is wrong with the service rather than with the order. While the
// queue is paused it only sends a test.
func (s *service) send(
	ctx context.Context, number string, isTest bool,
) (snooze time.Duration, trouble *cardwire.Error, err error) {
	// Before it is read: it may change meanwhile.
	if err := errors.Join(s.ramp.Wait(ctx), s.limiter.Wait(ctx)); err != nil {
		s.log.DebugContext(ctx, "no turn", "order", number, "error", err)
		return leastPause, nil, nil
	}
	if s.paused.Load() && !isTest { // since it began to wait for its turn
		return leastPause, nil, nil
	}
	o, err := s.take(ctx, number)
	switch {
	case err == nil && o.State == queued:
	case isTest: // which proves nothing
		return leastPause, nil, err
	case err == nil && o.State == sending: // until another worker's call can send nothing more
		return min(max(time.Until(o.CallUntil.Time), leastPause), mostPause), nil, nil
	default:
		return 0, nil, err
	}
	var params cardwire.TransferParams
	if err := params.UnmarshalJSON([]byte(o.Body)); err != nil {
		return 0, nil, err
	}
	transfer, err := s.client.CreateTransfer(ctx, params)
	if transfer != nil && transfer.Status != cardwire.TransferWaitProcess {
		s.log.WarnContext(ctx, "the status is undocumented: check the order", "order", number, "status", transfer.Status)
	}
	return s.follow(ctx, o, err)
}

// take returns an order, queued if it is to be sent. Most orders take this one statement: what has
// changed when the call begins, the database knows (isBarred).
func (s *service) take(ctx context.Context, number string) (o order, err error) {
	o.Order, o.State = number, queued
	err = s.db.QueryRowContext(ctx, oftenUsed+`BodyOfQueued :one
SELECT body FROM payouts_states WHERE order_no = $1 AND state = 'queued'`, number).Scan(&o.Body)
	if !errors.Is(err, sql.ErrNoRows) {
		return o, err
	}
	o, err = s.find(ctx, number)
	switch {
	case errors.Is(err, errNoOrder):
		return order{State: failed}, nil // a job without an order
	case err == nil && o.State == forgotten:
		err = s.miss(ctx, number)
		s.report(ctx, slog.LevelError, number, forgotten, "worker", "the journal has lost records of it: nothing is sent")
	case err == nil && o.State == conflicted:
		s.report(ctx, slog.LevelError, number, conflicted, "worker",
			"in the journal the number belongs to another request: nothing is sent")
	}
	return o, err
}

// miss records when it was found that the journal does not know the order, by the database's clock.
func (s *service) miss(ctx context.Context, number string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE payouts SET missed_at = `+nowOf(s.dialect)+`
WHERE order_no = $1 AND missed_at IS NULL`, number)
	return err
}

// follow does what the step says. What the order is now, the journal says.
func (s *service) follow(
	ctx context.Context, o order, failure error,
) (snooze time.Duration, trouble *cardwire.Error, err error) {
	var e cardwire.Error
	words := ""
	if known, ok := errors.AsType[*cardwire.Error](failure); ok {
		e, words = *known, known.Message
		e.Message = "" // the service's own words, which may quote a name or an account: not for the log
	}
	switch cardwire.NextStep(failure) {
	case cardwire.StepDone:
		s.troubles.Store(0)
		s.report(ctx, slog.LevelInfo, o.Order, submitted, "worker", "")
		return 0, nil, nil
	case cardwire.StepFail:
		s.troubles.Store(0)
		s.report(ctx, slog.LevelWarn, o.Order, failed, "worker", e.Error())
		return 0, nil, s.note(ctx, o, words)
	case cardwire.StepWait:
		return min(max(e.RetryAfter, leastPause), mostPause), nil, nil
	case cardwire.StepRetry:
		snooze, err = s.again(ctx, o, &e, words)
		if errors.Is(err, sql.ErrNoRows) { // the database barred the call, or the order was held or ended since
			return leastPause, nil, nil
		}
		return snooze, &e, err
	default: // cardwire.StepReconcile
		s.report(ctx, slog.LevelError, o.Order, unresolved, "worker", e.Error())
		return 0, nil, errors.Join(s.note(ctx, o, words), s.brakes(ctx))
	}
}

// note keeps the service's words, for people. Why the call failed otherwise, the journal says.
func (s *service) note(ctx context.Context, o order, words string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE payouts SET note = $2 WHERE order_no = $1`, o.Order, words)
	return err
}

// again returns when an order that was not sent is sent again; sql.ErrNoRows: it is queued no longer.
// After a day of its own it fails: Void closes its number first, so that nothing sends it later.
func (s *service) again(ctx context.Context, o order, e *cardwire.Error, words string) (time.Duration, error) {
	now, err := s.unpaused(ctx)
	if err != nil {
		return 0, err
	}
	var since moment
	err = s.db.QueryRowContext(ctx, `UPDATE payouts SET retried_at = coalesce(retried_at, $2), note = $3
WHERE order_no = $1 AND EXISTS (SELECT 1 FROM payouts_states s WHERE s.order_no = $1 AND s.state = 'queued')
RETURNING retried_at`, o.Order, now, words).Scan(&since)
	if err != nil {
		return 0, err
	}
	s.report(ctx, slog.LevelWarn, o.Order, queued, "worker", e.Error())
	waited := now.Sub(since.Time)
	if waited < s.giveUpAfter {
		return min(max(waited/4, leastPause), mostPause, s.giveUpAfter-waited+leastPause), nil
	}
	return 0, s.giveUp(ctx, o)
}

// giveUp fails an order that is still queued. Where its number cannot be closed, the next call tells why.
func (s *service) giveUp(ctx context.Context, o order) error {
	const why = "not sent for too long"
	err := s.locked(ctx, o.Order, func(tx *sql.Tx, o order) error {
		if o.State != queued {
			return errMoved
		}
		return cmp.Or(s.journal.In(tx).Void(ctx, o.intent(), "worker", why), say(ctx, tx, o.Order, failed))
	})
	if errors.Is(err, errMoved) {
		return nil
	}
	if err == nil {
		s.report(ctx, slog.LevelError, o.Order, failed, "worker", why)
	}
	return err
}

// wake runs the order's job now, in the transaction of a change. A job that is
// running is left alone; if it then ends, the sweep wakes it.
func (s *service) wake(ctx context.Context, tx *sql.Tx, o order) error {
	woken, err := s.river.JobRetryTx(ctx, tx, o.JobID)
	var args submit
	switch {
	case err == nil && json.Unmarshal(woken.EncodedArgs, &args) == nil && args.Order == o.Order:
		return nil // after a restore of River's tables the ID may be another job's
	case err != nil && !errors.Is(err, river.ErrNotFound):
		return err
	}
	job, err := s.river.InsertTx(ctx, tx, submit{o.Order}, nil) // somebody deleted it
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE payouts SET job_id = $2 WHERE order_no = $1`, o.Order, job.Job.ID)
	return err
}

// asleep are orders that are to be sent, or may have been, and whose job is gone or has
// ended: it was running while the order was resolved, or somebody deleted it.
const asleep = `order_no IN ` + live + ` AND state IN ('queued', 'sending') AND NOT EXISTS (
	SELECT 1 FROM river_job j WHERE j.id = job_id AND j.args ->> 'order' = order_no
		AND j.state NOT IN ('completed', 'cancelled', 'discarded'))`

// sweep wakes what has no job.
func (s *service) sweep(ctx context.Context) error {
	sleeping, err := s.read(ctx, s.db, asleep)
	errs := []error{err}
	for _, o := range sleeping {
		s.log.WarnContext(ctx, "the order's job is woken", "order", o.Order)
		errs = append(errs, s.transaction(ctx, func(tx *sql.Tx) error { return s.wake(ctx, tx, o) }))
	}
	return errors.Join(errs...)
}

// purge removes what was sent for orders that ended, of which the last change is old. It looks
// at the oldest that have it: those that do not end are few. SQLite, where times are strings of
// two forms, keeps it for up to a day longer.
func (s *service) purge(ctx context.Context) error {
	old := time.Now().UTC().Add(-s.purgeAfter)
	list, err := s.read(ctx, s.db, `body <> '' AND created_at < $1 AND changed_at < $1
AND state IN ('submitted', 'failed', 'canceled', 'paid', 'returned') ORDER BY created_at LIMIT 1000`, old)
	errs := []error{err}
	for _, o := range list {
		errs = append(errs, s.locked(ctx, o.Order, func(tx *sql.Tx, now order) error {
			if now.State != o.State {
				return nil
			}
			_, err := tx.ExecContext(ctx, `UPDATE payouts SET body = '', note = '' WHERE order_no = $1`, o.Order)
			return err
		}))
	}
	return errors.Join(errs...)
}
