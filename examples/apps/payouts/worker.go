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
// one job for all its life, which is snoozed and woken, and never inserted again.
type submit struct {
	Order string `json:"order"`
}

// Kind implements river.JobArgs.
func (submit) Kind() string { return "payout" }

// InsertOpts implements river.JobArgsWithInsertOpts. Only crashes and errors, of the
// database mostly, use up attempts: snoozes do not.
func (submit) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1000} }

// submitter does what cardwire.NextStep says. It takes no order that is unresolved.
type submitter struct {
	river.WorkerDefaults[submit]
	*service
}

// The pauses of an order that cannot be sent now, and of one that a person looks at.
const (
	leastPause  = time.Second
	mostPause   = 10 * time.Minute
	longPause   = 24 * time.Hour // resolving it wakes the job
	giveUpAfter = 24 * time.Hour
)

// Work implements river.Worker. It runs on a context of its own: the job's ends when
// the program is told to stop, and a call that is cut off is one more to ask about.
func (w *submitter) Work(ctx context.Context, job *river.Job[submit]) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.jobTimeout())
	defer cancel()
	ctx, span := w.startJob(ctx, job.JobRow)
	defer span.End()
	o, err := w.apply(ctx, change{order: job.Args.Order, from: []string{queued, sending}, to: sending, by: "worker"})
	if err != nil {
		return w.leave(ctx, job.Args.Order, err)
	}
	var params cardwire.TransferParams
	if err := params.UnmarshalJSON([]byte(o.Body)); err != nil {
		return err
	}
	transfer, err := w.client.CreateTransfer(ctx, params)
	return w.follow(ctx, o, transfer, err)
}

// NextRetry implements river.Worker: after an error of the database, or a crash.
func (w *submitter) NextRetry(job *river.Job[submit]) time.Time {
	return time.Now().Add(min(time.Duration(job.Attempt)*leastPause, time.Minute))
}

// follow does what the step says. The change is made only under the claim of this
// worker: one that was paused and woke up late changes nothing.
func (w *submitter) follow(ctx context.Context, o order, transfer *cardwire.Transfer, err error) error {
	c := change{order: o.Order, from: []string{sending}, claim: o.Claim, by: "worker", level: slog.LevelWarn}
	var e cardwire.Error
	if failure, ok := errors.AsType[*cardwire.Error](err); ok {
		e, c.note = *failure, failure.Error()
		e.Message = "" // the service's own words, which may quote a name or an account
		c.log = e.Error()
	}
	if errors.Is(err, errBraked) { // which the client's error does not quote
		c.note, c.log = errBraked.Error(), errBraked.Error()
	}
	var snooze time.Duration
	switch cardwire.NextStep(err) {
	case cardwire.StepDone:
		c.to = submitted
		c.serviceID, c.status = executedAs(transfer, err)
		if c.status == string(cardwire.TransferWaitProcess) {
			c.level = slog.LevelInfo
		}
	case cardwire.StepFail:
		c.to = failed
	case cardwire.StepWait:
		return river.JobSnooze(min(max(e.RetryAfter, leastPause), mostPause))
	case cardwire.StepRetry:
		waited := time.Since(o.QueuedAt)
		if waited > w.giveUpAfter {
			return w.giveUp(ctx, c)
		}
		pause := max(e.RetryAfter, min(max(waited/4, leastPause), mostPause))
		c.to, snooze = queued, min(pause, w.giveUpAfter-waited+leastPause) // it is looked at when its day is over
		if errors.Is(err, cardwire.ErrSetup) || errors.Is(err, cardwire.ErrUnauthorized) {
			c.level = slog.LevelError // a person has to do something before it goes on
		}
	default: // cardwire.StepReconcile
		known, err2 := w.findEntry(ctx, o.Order)
		if err2 != nil {
			return err2 // the next call tells
		}
		c.to, c.level, snooze, c.try = unresolved, slog.LevelError, longPause, known.Entry.Try
		c.otherBody = errors.Is(err, cardwire.ErrOtherBody)
	}
	return w.settle(ctx, c, snooze)
}

// giveUp fails an order that could not be sent for a day. Void closes it first, so
// that nothing sends it later.
func (w *submitter) giveUp(ctx context.Context, c change) error {
	const why = "not sent for too long"
	if err := w.journal.Void(ctx, operation, c.order, c.by, why); err != nil {
		return err // the next call tells what became of it
	}
	c.to, c.level, c.note, c.log = failed, slog.LevelError, why+": "+c.note, why+": "+c.log
	return w.settle(ctx, c, 0)
}

// settle makes a change. If that fails, the journal knows how the call ended, and the next
// call tells.
func (w *submitter) settle(ctx context.Context, c change, snooze time.Duration) error {
	_, err := w.apply(ctx, c)
	if err == nil && snooze > 0 {
		return river.JobSnooze(snooze)
	}
	return w.leave(ctx, c.order, err)
}

// leave leaves an order alone that has moved: it ended, or became unresolved, or another
// worker has it.
func (w *submitter) leave(ctx context.Context, number string, err error) error {
	if !errors.Is(err, errMoved) {
		return err
	}
	o, err := w.find(ctx, number)
	switch {
	case o.State == unresolved:
		return river.JobSnooze(longPause)
	case !o.Ended():
		return river.JobSnooze(leastPause)
	case errors.Is(err, errNoOrder):
		return nil
	}
	return err
}

// wake has the order's job run now, in the transaction of a change. A job that is
// running is left alone; if it then sleeps for long, the repair wakes it.
func (s *service) wake(ctx context.Context, tx *sql.Tx, o order) error {
	woken, err := s.river.JobRetryTx(ctx, tx, o.JobID)
	var args submit
	switch {
	case err == nil && json.Unmarshal(woken.EncodedArgs, &args) == nil && args.Order == o.Order: // SQLite gives a deleted job's ID to another one
		return nil
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

// statusLost is the status of an order that was executed, where no response says it: the
// journal keeps none.
const statusLost = "unknown"

// executedAs returns the service's number and status of an order. Where an earlier call
// was executed, the journal has the number.
func executedAs(t *cardwire.Transfer, err error) (serviceID, status string) {
	if t != nil {
		return t.APIOrderNo, cmp.Or(string(t.Status), statusLost)
	}
	if d, ok := errors.AsType[*cardwire.DuplicateIntent](err); ok {
		serviceID = d.ServiceID
	}
	return serviceID, statusLost
}
