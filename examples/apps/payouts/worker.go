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
	"github.com/riverqueue/river/rivertype"

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

// InsertOpts implements river.JobArgsWithInsertOpts. Only errors of the database and
// crashes use up attempts: snoozes do not.
func (submit) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1000} }

// submitter does what cardwire.NextStep says, and nothing else.
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
	ctx, end := startJob(ctx, w.tracer, job.JobRow)
	defer end()
	o, err := w.apply(ctx, change{
		order: job.Args.Order, from: []string{queued, sending, unresolved}, to: sending, by: "worker",
	})
	switch {
	case errors.Is(err, errMoved):
		return nil // it has ended
	case err != nil:
		return err
	}
	var params cardwire.TransferParams
	if err := params.UnmarshalJSON([]byte(o.body)); err != nil {
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
	c := change{order: o.Order, from: []string{sending}, claim: o.claim, by: "worker"}
	c.note, c.log = noteOf(err)
	var snooze time.Duration
	switch cardwire.NextStep(err) {
	case cardwire.StepDone:
		c.to, c.serviceID, c.status = submitted, serviceIDOf(transfer, err), statusOf(transfer)
		if c.status != string(cardwire.TransferWaitProcess) {
			c.level = slog.LevelWarn
		}
	case cardwire.StepFail:
		c.to, c.level = failed, slog.LevelWarn
	case cardwire.StepWait:
		return river.JobSnooze(max(retryAfter(err), leastPause))
	case cardwire.StepRetry:
		waited := time.Since(o.queuedAt)
		if waited > w.giveUpAfter {
			return w.giveUp(ctx, c)
		}
		c.to, c.level = queued, levelOf(err)
		snooze = max(retryAfter(err), min(max(waited/4, leastPause), mostPause))
	default: // cardwire.StepReconcile
		c.to, c.level, snooze = unresolved, slog.LevelError, longPause
		c.otherBody = errors.Is(err, cardwire.ErrOtherBody)
	}
	return w.settle(ctx, c, snooze)
}

// giveUp fails an order that could not be sent for a day. Void closes it first, so
// that nothing sends it later.
func (w *submitter) giveUp(ctx context.Context, c change) error {
	err := w.journal.Void(ctx, operation, c.order, c.by, "not sent for too long")
	if errors.Is(err, cardwire.ErrDuplicateIntent) {
		return river.JobSnooze(leastPause) // the next call tells what became of it
	}
	if err != nil {
		return err
	}
	c.to, c.level, c.note, c.log = failed, slog.LevelError, "not sent for too long: "+c.note, "not sent for too long: "+c.log
	return w.settle(ctx, c, 0)
}

func (w *submitter) settle(ctx context.Context, c change, snooze time.Duration) error {
	_, err := w.apply(ctx, c)
	switch {
	case errors.Is(err, errMoved):
		return river.JobSnooze(leastPause) // another worker has it, or it has ended
	case err != nil:
		return err // the journal knows how the call ended: the next one tells
	case snooze > 0:
		return river.JobSnooze(snooze)
	}
	return nil
}

// wake has the order's job run now, in the transaction of a change. A job that is
// running is left alone; if it then sleeps for long, the repair wakes it.
func (s *service) wake(ctx context.Context, tx *sql.Tx, o order) error {
	woken, err := s.river.JobRetryTx(ctx, tx, o.jobID)
	switch {
	case err == nil && isJobOf(woken, o): // SQLite gives a deleted job's ID to another one
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

func isJobOf(job *rivertype.JobRow, o order) bool {
	var args submit
	return json.Unmarshal(job.EncodedArgs, &args) == nil && args.Order == o.Order
}

// noteOf is what the history and the log say of a call: the log not in the service's own
// words, which may quote a name or an account.
func noteOf(err error) (note, log string) {
	e, ok := errors.AsType[*cardwire.Error](err)
	switch {
	case err == nil:
		return "", ""
	case errors.Is(err, errBraked):
		note = errBraked.Error()
	case !ok:
		note = "the outcome is unknown"
	default:
		quiet := *e
		quiet.Message = ""
		return e.Error(), quiet.Error()
	}
	return note, note
}

// levelOf is an error where a person has to do something before it goes on.
func levelOf(err error) slog.Level {
	if errors.Is(err, cardwire.ErrSetup) || errors.Is(err, cardwire.ErrUnauthorized) {
		return slog.LevelError
	}
	return slog.LevelWarn
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*cardwire.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// serviceIDOf returns the service's number; where an earlier call was executed, the
// journal has it.
func serviceIDOf(t *cardwire.Transfer, err error) string {
	if t != nil {
		return t.APIOrderNo
	}
	if d, ok := errors.AsType[*cardwire.DuplicateIntent](err); ok {
		return d.ServiceID
	}
	return ""
}

// statusLost is the status of an order that was executed, where no response says it: the
// journal keeps none.
const statusLost = "unknown"

func statusOf(t *cardwire.Transfer) string {
	if t == nil {
		return statusLost
	}
	return cmp.Or(string(t.Status), statusLost)
}
