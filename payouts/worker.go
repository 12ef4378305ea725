package payouts

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/internal/wire"
	"github.com/cardwire/cardwire-go/journal"
)

// submit is the job of an order: it has the number, and nothing else. An order has one
// job, which ends where nothing is to be sent, and is woken; one that is lost is replaced.
type submit struct {
	Order string `json:"order"`
}

// Kind implements river.JobArgs.
func (submit) Kind() string { return "cardwire_payout" }

// queue is a queue of its own: the importer's River client may be in the same schema.
const queue = "cardwire_payouts"

// insertion is how a job is inserted. Crashes and errors, mostly of the database, use up attempts; snoozes do not.
func insertion(ctx context.Context) *river.InsertOpts {
	return &river.InsertOpts{MaxAttempts: 1000, Queue: queue, Metadata: traceOf(ctx)}
}

// submitter does what cardwire.NextStep says.
type submitter struct {
	river.WorkerDefaults[submit]
	*Service
}

// The pauses of an order that cannot be sent now.
const (
	minPause    = time.Second
	maxPause    = 10 * time.Minute
	giveUpAfter = 24 * time.Hour

	maintainEvery = time.Second
	sweepEvery    = time.Minute
)

// Work implements river.Worker. It runs on a context of its own: the job's ends when
// the program is told to stop, and a call that is cut off is one more to ask about.
func (w *submitter) Work(ctx context.Context, job *river.Job[submit]) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.jobTimeout())
	defer cancel()
	ctx, span := w.startJob(ctx, job.JobRow)
	defer span.End()
	snooze, trouble, err := w.send(ctx, job.Args.Order, false)
	if err == nil && trouble != nil {
		err = w.noteTrouble(ctx, job.Args.Order, trouble)
	}
	if err == nil && snooze > 0 {
		err = river.JobSnooze(snooze)
	}
	w.wakeTeller()
	return err
}

// NextRetry implements river.Worker: after an error of the database, or a crash.
func (w *submitter) NextRetry(job *river.Job[submit]) time.Time {
	return time.Now().Add(min(time.Duration(job.Attempt)*minPause, time.Minute))
}

// send sends an order that is queued. It returns how long its job is to sleep (0: the job has ended), and the failure if
// it may be the service's, and not the order's alone. While the queue is paused only a probe is sent.
func (s *Service) send(
	ctx context.Context, number string, isProbe bool,
) (snooze time.Duration, trouble *cardwire.Error, err error) {
	if !isProbe && s.refusedKey() != "" {
		return minPause, nil, nil
	}
	// The order is read after it had its turn: it may change while it waits.
	if hasTurn, err := s.waitForTurn(ctx, number, isProbe); !hasTurn {
		return minPause, nil, err
	}
	o, stopped, err := s.readToSend(ctx, number)
	switch {
	case errors.Is(err, ErrNoOrder) && !isProbe:
		return 0, nil, nil // a job without an order
	case err != nil:
		return minPause, nil, err
	case o.State == StateSending && !isProbe: // it waits until the other worker's call can send nothing more
		return min(max(time.Until(o.CallUntil), minPause), maxPause), nil, nil
	case o.State != StateQueued && !isProbe:
		return 0, nil, nil
	case o.State != StateQueued, stopped != "" && !(isProbe && stopped == inTrouble):
		return minPause, nil, nil
	}
	params, err := o.transfer()
	if err != nil || params.Digest() != o.Digest {
		snooze, err = s.retryLater(ctx, o, errRefused.Error(), errRefused.Error())
		return snooze, nil, err
	}
	transfer, err := s.client.CreateTransfer(ctx, params)
	o.ServiceID = s.serviceID(ctx, number, transfer, err)
	return s.applyStep(ctx, o, err)
}

// waitForTurn waits until an order may be sent, and reports whether it may. After a pause the ramp lets few orders at a
// time through, but always a probe.
func (s *Service) waitForTurn(ctx context.Context, number string, isProbe bool) (hasTurn bool, err error) {
	var noTurn error
	if !isProbe {
		noTurn = s.ramp.Wait(ctx)
	}
	noTurn = errors.Join(noTurn, s.limiter.Wait(ctx))
	if noTurn != nil {
		s.log.DebugContext(ctx, "no turn", "order", number, "error", noTurn)
	}
	return noTurn == nil, s.noteTurn(ctx, noTurn == nil)
}

// serviceID is the service's number of what it accepted, now or before; "": not known.
func (s *Service) serviceID(ctx context.Context, number string, transfer *cardwire.Transfer, failure error) string {
	if known, ok := errors.AsType[*cardwire.DuplicateIntent](failure); ok {
		return known.ServiceID
	}
	if transfer == nil {
		return ""
	}
	if transfer.Status != cardwire.TransferWaitProcess {
		s.log.WarnContext(ctx, "the status is undocumented: check the order", "order", number, "status", transfer.Status)
	}
	return transfer.APIOrderNo
}

var errRefused = errors.New("this release of the client refuses the order's request, or would send another one")

// readToSend reads an order, and what stops payments, in one statement.
func (s *Service) readToSend(ctx context.Context, number string) (o order, stopped string, err error) {
	found, err := query(ctx, s, s.db, func(scan scan) (o order, err error) {
		err = scan(&o.State, &o.Body, &o.Digest, &o.Call, database.Moment(&o.CallUntil), &o.Waited, &stopped)
		return o, err
	}, `SELECT o.state, b.body, b.body_sha256, o.call, o.call_until, o.waited,
	CASE WHEN h.held_by <> '' THEN '`+onHold+`' ELSE c.kind END
FROM @payouts_orders o JOIN @payouts b ON b.order_no = o.order_no, @payouts_control c, @intents_journal h WHERE o.order_no = $1`, number)
	if err == nil && len(found) == 0 {
		return o, "", ErrNoOrder
	}
	if err != nil {
		return o, "", err
	}
	found[0].Number = number
	return found[0], stopped, nil
}

// applyStep does what the step says. What the order is now, the journal says.
func (s *Service) applyStep(
	ctx context.Context, o order, failure error,
) (snooze time.Duration, trouble *cardwire.Error, err error) {
	var e cardwire.Error
	words := ""
	if known, ok := errors.AsType[*cardwire.Error](failure); ok {
		e = *known
		if e.Message != "" {
			words = strconv.Quote(e.Message)
		}
		e.Message = masked(e.Message, o.Body) // the service's own words may quote a name or an account
	}
	switch cardwire.NextStep(failure) {
	case cardwire.StepDone:
		s.clearTroubles()
		s.logChange(ctx, slog.LevelInfo, o.Number, StateSubmitted, "worker", "", slog.String("service_id", o.ServiceID))
		return 0, nil, nil
	case cardwire.StepFail:
		s.clearTroubles()
		s.logChange(ctx, slog.LevelWarn, o.Number, StateFailed, "worker", e.Error())
		return 0, nil, s.keepWords(ctx, o, words, e)
	case cardwire.StepWait:
		return min(max(e.RetryAfter, minPause), maxPause), nil, nil
	case cardwire.StepRetry:
		if errors.Is(failure, journal.ErrOnHold) { // since it was read
			return minPause, nil, nil
		}
		s.noteKey(ctx, o.Number, &e)
		snooze, err = s.retryLater(ctx, o, e.Error(), words)
		return snooze, &e, err
	default: // cardwire.StepReconcile
		s.logChange(ctx, slog.LevelError, o.Number, StateUnresolved, "worker", e.Error())
		return 0, nil, errors.Join(s.keepWords(ctx, o, words, e), s.checkBrake(ctx))
	}
}

// keepWords keeps the service's words, which the journal does not have, for people. If the service refused the order, it
// also looks whether it refuses others for the same reason.
func (s *Service) keepWords(ctx context.Context, o order, words string, e cardwire.Error) error {
	err := s.exec(ctx, s.db, `UPDATE @payouts SET tried_at = $2, words = $3 WHERE order_no = $1`,
		o.Number, s.moment(time.Now()), words)
	if err == nil && (e.Outcome == cardwire.OutcomeRefused && e.HTTPStatus != 0 || errors.Is(e.Err, wire.ErrNoReason)) {
		err = s.checkRefusals(ctx, o, words, e)
	}
	return err
}

// pauseAfter is how long an order waits for its next try after it has waited that long in all: as long again.
func pauseAfter(waited time.Duration) time.Duration {
	return min(max(waited, minPause), maxPause)
}

// retryLater returns how long an order that was not sent waits for its next try. After a day it fails: Void closes its
// number first, so that nothing sends it later. The day counts only time in which the order could have been sent: where
// no replica ran, or the queue was paused, it counts about as much as the order was to wait.
func (s *Service) retryLater(ctx context.Context, o order, why, words string) (time.Duration, error) {
	waited := time.Duration(o.Waited) * time.Second
	tried, err := query(ctx, s, s.db, func(scan scan) (t time.Time, err error) {
		err = scan(database.Moment(&t))
		return t, err
	}, `SELECT tried_at FROM @payouts WHERE order_no = $1`, o.Number)
	if err != nil || len(tried) == 0 {
		return 0, err
	}
	if !tried[0].IsZero() {
		waited += min(max(time.Since(tried[0]), 0), 2*pauseAfter(waited)+time.Second)
	}
	err = s.exec(ctx, s.db, `UPDATE @payouts SET tried_at = $2, waited = $3, words = $4 WHERE order_no = $1`,
		o.Number, s.moment(time.Now()), int64(waited/time.Second), words)
	if err != nil {
		return 0, err
	}
	s.logChange(ctx, slog.LevelWarn, o.Number, StateQueued, "worker", why)
	if waited < giveUpAfter {
		return min(pauseAfter(waited), giveUpAfter-waited+minPause), nil
	}
	return minPause, s.giveUp(ctx, o)
}

// giveUp fails an order that is still queued.
func (s *Service) giveUp(ctx context.Context, o order) error {
	const why = "not sent for too long"
	err := s.withOrderLocked(ctx, o.Number, func(tx *sql.Tx, o order) error {
		if o.State != StateQueued {
			return moved(o)
		}
		i := s.intent(o)
		i.Call = "worker" // on hold no program closes anything
		return s.journal.In(tx).Void(ctx, i, "worker", why)
	})
	if refusal(err) != nil { // its job looks again
		return nil
	}
	if err == nil {
		s.logChange(ctx, slog.LevelError, o.Number, StateFailed, "worker", why)
	}
	return err
}

// wake runs the order's job now, in the transaction of a change, in which the order is locked. A job that is
// running is left alone; if it then ends, the sweep wakes it.
func (s *Service) wake(ctx context.Context, tx *sql.Tx, o order) error {
	found, err := query(ctx, s, tx, database.One[int64], `SELECT 1 FROM @payouts WHERE order_no = $2 AND EXISTS (`+itsJob+`)`,
		s.rescueAfter().Seconds(), o.Number)
	if err == nil && len(found) > 0 {
		if _, err = s.river.JobRetryTx(ctx, tx, o.JobID); !errors.Is(err, river.ErrNotFound) {
			return err
		}
		err = nil // somebody has just deleted it
	}
	if err != nil {
		return err
	}
	job, err := s.river.InsertTx(ctx, tx, submit{o.Number}, insertion(ctx))
	if err != nil {
		return err
	}
	return s.exec(ctx, tx, `UPDATE @payouts SET job_id = $2 WHERE order_no = $1`, o.Number, job.Job.ID)
}

// itsJob is an order's job, if it is alive. After a restore of River's tables the job of that ID may be another order's. A
// job whose replica has died does not count: only the leader among River's clients rescues it, which may be a program that
// does not.
const itsJob = `SELECT 1 FROM @river_job j WHERE j.id = job_id AND j.kind = 'cardwire_payout'
	AND j.args ->> 'order' = order_no AND NOT (j.state = 'running' AND @age > $1)`

// asleep are orders that are queued or sending, and have no job that will run: it ended while a person resolved the order, died
// with its replica, or was deleted.
const asleep = `order_no IN @live AND state IN ('queued', 'sending')
	AND NOT EXISTS (` + itsJob + ` AND j.state NOT IN ('completed', 'cancelled', 'discarded'))`

// maintain looks after the queue until ctx is done: each replica does.
func (s *Service) maintain(ctx context.Context) {
	ticker := time.NewTicker(maintainEvery)
	defer ticker.Stop()
	swept := time.Time{}
	for {
		limit := s.ramp.Limit() * 2 // more orders, a moment after a pause
		if limit > fullRate {
			limit = rate.Inf
		}
		s.ramp.SetLimit(limit)
		if err := s.journal.Flush(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "results were recorded late", "error", err)
		}
		err := s.checkPause(ctx)
		if err == nil && time.Since(swept) >= sweepEvery {
			swept = time.Now()
			err = s.sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "the queue could not be checked", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// sweep does each minute what no event starts: it looks for a loss, and for what changed by time alone.
func (s *Service) sweep(ctx context.Context) error {
	return errors.Join(
		s.journal.Verify(ctx), s.noteTeller(ctx), s.markMissed(ctx), s.checkBrake(ctx), s.awaken(ctx), s.purge(ctx))
}

// awaken wakes what has no job.
func (s *Service) awaken(ctx context.Context) error {
	sleeping, err := s.read(ctx, s.db, asleep, s.rescueAfter().Seconds())
	errs := []error{err}
	for _, o := range sleeping {
		s.log.WarnContext(ctx, "the order's job is woken", "order", o.Number)
		errs = append(errs, s.tryWithOrderLocked(ctx, o.Number, func(tx *sql.Tx, o order) error { return s.wake(ctx, tx, o) }))
	}
	return errors.Join(errs...)
}

// purge removes the requests of orders whose end is older than PurgeAfter. It looks at the 1,000 oldest that have one:
// few orders do not end.
func (s *Service) purge(ctx context.Context) error {
	if s.config.PurgeAfter <= 0 {
		return nil
	}
	return s.exec(ctx, s.db, `
UPDATE @payouts SET body = '', words = '' WHERE order_no IN (
	SELECT order_no FROM `+personal+` WHERE body <> '' AND created_at < $1 AND changed_at < $1 AND told = state
	AND state NOT IN ('queued', 'sending', 'unresolved') ORDER BY created_at LIMIT 1000)`,
		s.moment(time.Now().Add(-s.config.PurgeAfter)))
}
