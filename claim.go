package cardwire

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/mask"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// journalTimeout bounds the recording of a result, which outlives the call.
const journalTimeout = 5 * time.Second

func (k *call) newIntent(start, sendBy time.Time) *Intent {
	op := k.op
	fields := op.intent
	if fields == nil {
		fields = op.fields
	}
	i := &Intent{
		Call: rand.Text()[:16], // 80 bits
		Op:   op.name, Reference: op.reference, BodySHA256: digest(fields, op.invalid),
		Service: k.client.service, Account: k.client.account, Time: start, SendBy: sendBy,
		SettledBy: sendBy.Add(k.client.profile.LateExecution),
	}
	if op.invalid == nil { // an invalid parameter may be a card number, and the journal keeps what it gets for good
		i.Amount, i.Currency = op.amount, op.currency
	}
	return i
}

// digest distinguishes the request from others with the same reference. An invalid request
// differs from every valid one, since a valid one may have been executed.
func digest(fields wire.Fields, invalid error) string {
	if invalid != nil {
		fields = append(fields[:len(fields):len(fields)], wire.Field{Name: "invalid"})
	}
	return fields.Digest()
}

// claim begins an intent. If it fails, nothing is sent; otherwise recordResult must be called.
func (k *call) claim() *Error {
	i := k.newIntent(k.start, k.deadline)
	ctx, stop := context.WithDeadline(k.ctx, i.SendBy)
	defer stop()
	err := k.client.journal.Begin(ctx, *i)
	switch {
	case err == nil:
		k.intent = i
		return nil
	case errors.Is(err, ErrOtherBody) && !errors.Is(err, ErrDuplicateIntent):
		return k.void(i, matching(ErrOtherBody, hideCause("", err)), "another body was sent under this reference")
	}
	return k.unrecorded("the journal did not record the intent", err)
}

// void closes the reference of a call that will never be sent, for the given reason: its
// order will fail, and must not be paid when a message about it arrives late.
func (k *call) void(i *Intent, reason error, note string) *Error {
	ctx, stop := context.WithTimeout(k.ctx, journalTimeout)
	defer stop()
	err := k.client.journal.Void(ctx, *i, "cardwire", note)
	if err == nil {
		return k.fail(OutcomeNotSent, reason)
	}
	return k.unrecorded("the journal did not close the reference", err)
}

func (k *call) unrecorded(message string, err error) *Error {
	if d, isDuplicate := errors.AsType[*DuplicateIntent](err); isDuplicate || errors.Is(err, ErrDuplicateIntent) {
		return k.duplicate(err, d)
	}
	return k.fail(OutcomeNotSent, k.journalFailed(message, err))
}

// journalCause returns why a journal failed, or what to check. The message of any other error
// may contain anything.
func journalCause(err error) string {
	if safe, ok := errors.AsType[safeMessage](err); ok && !check.Nil(safe) {
		return mask.Message(strings.TrimPrefix(safe.SafeMessage(), "cardwire: "), "")
	}
	number, ofSystem := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not return in time"
	case errors.Is(err, context.Canceled):
		return "the context was canceled"
	case ofSystem:
		return number.Error()
	}
	return "check its database"
}

// duplicate returns the error of a call whose reference the journal refused with d, which
// err wraps. It has the outcome that is on record, unless another request has the reference:
// the caller would book this one as paid. Nothing else takes an outcome from the journal.
func (k *call) duplicate(err error, d *DuplicateIntent) *Error {
	d = d.sound()
	outcome, cause := d.Outcome, matching(d, hideCause("", err))
	switch isOther := errors.Is(err, ErrOtherBody) && !d.Outcome.isUndone(); {
	case d.Reserved:
		cause = matching(d, ErrOtherBody, hideCause("", err))
	case isOther:
		outcome, cause = OutcomeUnknown, matching(ErrOtherBody, d, hideCause("", err))
	}
	failure := (&call{client: k.client, op: k.op}).fail(outcome, cause) // a new call: no response is involved
	failure.RetryAfter = d.Remaining
	if failure.Outcome == OutcomeExecuted {
		failure.ServiceID = d.ServiceID
	}
	return failure
}

// matching returns an error with the message of err that matches others too.
func matching(err error, others ...error) error {
	return &explained{err.Error(), errors.Join(append(others, err)...)}
}

// recordResult ends the intent, and returns the error for the caller. If the record
// contradicts the result, that is what the record says; if the result could not be recorded,
// its outcome is unknown. A success stays a success.
func (k *call) recordResult(failure *Error) *Error {
	i := k.intent
	k.intent = nil
	result := IntentResult{Outcome: OutcomeExecuted}
	if failure != nil {
		result = IntentResult{
			Outcome: failure.Outcome, Reason: mask.Message(failure.reason(""), ""),
			Final: NextStep(failure) == StepFail,
		}
	}
	if result.Outcome == OutcomeExecuted {
		result.ServiceID, result.Status = k.payload.executedAs()
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(k.ctx), journalTimeout) // the caller may be gone
	defer stop()
	err := k.client.journal.End(ctx, *i, result)
	if err == nil {
		return failure
	}
	hidden := k.journalFailed("the journal did not record the result", err)
	d, isDuplicate := errors.AsType[*DuplicateIntent](err)
	switch {
	case result.Outcome == OutcomeExecuted:
		return failure
	case isDuplicate:
		return k.duplicate(err, d)
	}
	failure.Outcome, failure.Err = OutcomeUnknown, matching(hidden, failure.Err)
	return failure
}
