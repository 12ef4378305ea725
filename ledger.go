package cardwire

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/mask"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// journalTimeout bounds the recording of a result, which outlives the call.
const journalTimeout = 5 * time.Second

// claim is a write's claim on its reference in the journal. One that is held must be
// settled.
type claim struct {
	core   *core
	op     *operation
	intent Intent
	held   bool // the reference is this call's until settle
}

// newClaim returns the claim of a call that may send until sendBy.
func (k *call) newClaim(start, sendBy time.Time) *claim {
	op := k.op
	fields := op.intent
	if fields == nil {
		fields = op.fields
	}
	summary := op.summary
	if op.invalid != nil {
		summary = "" // a parameter that was refused may be a card number, and the journal keeps it for good
	}
	return &claim{core: k.client, op: op, intent: Intent{
		Call: newCall(), Op: cmp.Or(op.repeats, op.name), Reference: op.reference, BodySHA256: op.digest(fields),
		Summary: summary, Service: k.client.service, Time: start, SendBy: sendBy,
		SettledBy: sendBy.Add(k.client.profile.LateExecution), Repeatable: op.repeats != "",
	}}
}

// newCall returns an identifier of 64 random bits: it distinguishes the calls with one
// reference.
func newCall() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return strconv.FormatUint(binary.LittleEndian.Uint64(b[:]), 36)
}

// digest distinguishes the request from others with the same reference. An invalid one
// differs from every valid one, which may have been executed.
func (o *operation) digest(fields wire.Fields) string {
	if o.invalid != nil {
		fields = append(fields[:len(fields):len(fields)], wire.Field{Name: "invalid"})
	}
	return fields.Digest()
}

// bounded gives ctx a deadline for the journal. One in memory returns at once.
func (c *claim) bounded(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if _, ok := c.core.journal.(*MemoryJournal); ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end)
}

// take begins the intent. If it fails, nothing is sent.
func (c *claim) take(ctx context.Context) *Error {
	bounded, stop := c.bounded(ctx, c.intent.SendBy)
	defer stop()
	err := c.core.journal.Begin(bounded, c.intent)
	d, known := errors.AsType[*DuplicateIntent](err)
	switch {
	case err == nil:
		c.held = true
		return nil
	case known:
		return c.refused(err, d)
	case errors.Is(err, ErrOtherBody):
		reason := &journalRefusal{ErrOtherBody, hideCause("", err)}
		return c.void(ctx, reason, "another body was sent under this reference")
	}
	return c.unrecorded(ctx, "the journal did not record the intent", err)
}

// void closes the reference of a call that will never be sent, for the given reason: its
// order is about to fail, and a late message must not pay it.
func (c *claim) void(ctx context.Context, reason error, note string) *Error {
	bounded, stop := c.bounded(ctx, time.Now().Add(journalTimeout))
	defer stop()
	err := c.core.journal.Void(bounded, c.intent, "cardwire", note)
	d, known := errors.AsType[*DuplicateIntent](err)
	switch {
	case err == nil:
		return c.op.failure(OutcomeNotSent, reason)
	case known:
		return c.refused(err, d)
	}
	return c.unrecorded(ctx, "the journal did not close the reference", err)
}

// unrecorded returns the error of a call whose journal failed before anything was sent.
func (c *claim) unrecorded(ctx context.Context, message string, err error) *Error {
	hidden := journalError(message, err)
	c.core.journalFailed(ctx, c.op, hidden)
	return c.op.failure(OutcomeNotSent, hidden)
}

// journalError hides a journal's error, and says of its cause what may be shown.
func journalError(message string, err error) error {
	return hideCause(message+": "+journalCause(err), err)
}

// safeMessage is the method of an error whose message may be shown: see [Journal].
type safeMessage interface {
	error
	SafeMessage() string
}

// journalCause returns why a journal failed, and what to do. What an error says may
// contain anything, except where its method promises otherwise, or it is one of these.
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

// refused returns the error of a call whose reference the journal refused with d, which
// err wraps. If another request has the reference, that request's outcome is not this
// one's: the caller would book this one as paid.
func (c *claim) refused(err error, d *DuplicateIntent) *Error {
	d = d.sound()
	failure := c.op.failure(d.Outcome, &journalRefusal{d, hideCause("", err)})
	if errors.Is(err, ErrOtherBody) && !d.isClosed() {
		failure = c.op.failure(OutcomeUnknown, &journalRefusal{ErrOtherBody, errors.Join(d, hideCause("", err))})
	}
	failure.RetryAfter = d.Remaining
	if failure.Outcome == OutcomeExecuted {
		failure.ServiceID = d.ServiceID
	}
	return failure
}

// sound returns d without contradictions, whatever a journal returned.
func (d *DuplicateIntent) sound() *DuplicateIntent {
	if d == nil || d.Outcome < OutcomeUnknown || d.Outcome > OutcomeExecuted ||
		d.InProgress && d.Outcome != OutcomeUnknown {
		return &DuplicateIntent{}
	}
	sound := *d
	sound.Remaining = max(sound.Remaining, 0)
	if !sound.InProgress {
		sound.Remaining = 0
	}
	return &sound
}

func (d *DuplicateIntent) isClosed() bool {
	return d.Outcome == OutcomeRefused || d.Outcome == OutcomeNotSent
}

// journalRefusal is why a reference was refused, and what the refusal wrapped, which
// errors.Is finds and nothing prints.
type journalRefusal struct {
	error
	wrapped error
}

func (r *journalRefusal) Unwrap() []error { return []error{r.error, r.wrapped} }

// settle records the result in the journal, and returns what the caller is told: what the
// record says where it contradicts the result, and an unknown outcome where nobody else
// is told of a result that was not recorded. A success stays a success.
func (c *claim) settle(ctx context.Context, failure *Error) *Error {
	if c == nil || !c.held {
		return failure
	}
	c.held = false
	end := IntentResult{Outcome: OutcomeExecuted}
	if failure != nil {
		end = IntentResult{
			Outcome: failure.Outcome, Reason: mask.Message(failure.reason(""), ""),
			Final: !c.intent.Repeatable && NextStep(failure) == StepFail,
		}
	}
	if end.Outcome == OutcomeExecuted && c.op.record != nil {
		end.ServiceID, end.Status = c.op.record()
		if failure != nil {
			failure.ServiceID = end.ServiceID
		}
	}
	bounded, stop := c.bounded(context.WithoutCancel(ctx), time.Now().Add(journalTimeout)) // the caller may be gone
	defer stop()
	err := c.core.journal.End(bounded, c.intent, end)
	if err == nil {
		return failure
	}
	hidden := journalError("the journal did not record the result", err)
	c.core.journalFailed(ctx, c.op, hidden)
	d, known := errors.AsType[*DuplicateIntent](err)
	switch {
	case end.Outcome == OutcomeExecuted:
		return failure
	case known:
		return c.refused(err, d)
	}
	failure.Outcome, failure.Err = OutcomeUnknown, &journalRefusal{hidden, failure.Err}
	return failure
}
