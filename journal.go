package cardwire

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go/internal/inflight"
	"github.com/cardwire/cardwire-go/internal/transport"
)

// Journal records what is about to be sent, so that a crash before the response leaves a
// trace. It must be safe for concurrent use, and must return when its context is done:
// the call waits for it. Package cardwiretest has a test for journals.
type Journal interface {
	// Begin is called before the first byte of a write that has a reference. It returns
	//
	//   - nil if the reference is free: never begun, or ended as not sent or refused,
	//     not Final, and with the same body;
	//   - an error that wraps [ErrOtherBody] if the body is another, together with a
	//     DuplicateIntent unless the first is known not to have been executed;
	//   - a *[DuplicateIntent] otherwise.
	//
	// Any error means that nothing is sent, with one exception: under
	// [Profile].ServerDeduplicates the call is sent after a *DuplicateIntent with
	// OutcomeUnknown that no other error wraps. A journal that did not record the retry
	// must wrap it.
	Begin(ctx context.Context, i Intent) error
	// End is called with the result, on a context that outlives the call. If it fails,
	// the intent stays open, which is safe, and [Observer].JournalError is called.
	End(ctx context.Context, i Intent, r IntentResult) error
}

// Looker is an optional interface of a [Journal]. It is called for the reference of a call
// with invalid parameters: an order that was executed must not be marked as failed because
// of a later call with a broken request. A free reference is then closed, by a Begin and a
// Final End. If the journal is not a Looker, the outcome of such a call is unknown.
type Looker interface {
	// Look returns nil if the reference is free, and what Begin would return if not.
	Look(ctx context.Context, op, reference string) error
}

// Intent is a write that is about to be sent.
type Intent struct {
	// Call is random, and of this call alone: what End and Resolve match by.
	Call string
	// Op is the operation, as in Error.Op; "CardOperation" for canceling and retrying,
	// which share their references.
	Op string
	// Reference is the caller's identifier: the merchant order number, the
	// client transaction ID or Request.Reference.
	Reference string
	// BodySHA256 is a hash, in hex, of the sorted names and values that are sent. A retry
	// of a reference with another body must always be refused.
	BodySHA256 string
	// Summary is what a person needs to recognize the intent, as in "10.00 EUR".
	// It contains no personal data and no account number; "": there is none.
	Summary string
	// Service is the base URL: a journal belongs to one service.
	Service string
	// Time is when the call began.
	Time time.Time
	// SendBy is the deadline after which no write of this call begins: the client's own
	// connections refuse it. Bytes that were handed over before may arrive later. It does
	// not bind a caller-supplied Doer.
	SendBy time.Time
	// SettledBy is SendBy plus [Profile].LateExecution: by then the service has executed
	// the call, if ever. Before it, no journal accepts that nothing happened.
	SettledBy time.Time
	// Repeatable reports that the reference may be sent again after it was executed or
	// refused, as that of canceling and retrying: a record may fail again.
	Repeatable bool
	// Unique reports that a reference may be executed only once: while an intent of it is
	// open, unknown or executed, another must not begin. It is false for canceling and
	// retrying, since a record may fail again.
	Unique bool
}

// IntentResult is how an intent ended.
type IntentResult struct {
	// Outcome is OutcomeExecuted also for a success.
	Outcome Outcome
	// ServiceID is the service's identifier of what it did, api_order_no or the
	// operation's ID, of at most 128 visible bytes; "": none was returned.
	ServiceID string
	// Status is the service's own, as in "wait_process", of at most 128 visible bytes;
	// "": none was returned.
	Status string
	// Final reports that NextStep of the call's error is StepFail: the reference
	// must never be granted again.
	Final bool
}

// Resolution is what a person found out about a call.
type Resolution struct {
	// Outcome is OutcomeExecuted; OutcomeRefused, which closes the reference; or
	// OutcomeNotSent, which frees it to be sent again.
	Outcome Outcome
	// ServiceID is the service's identifier of what it executed, of at most 128 visible
	// bytes; "": not known. It belongs to one reference.
	ServiceID string
	// By is who found it out. It must not be empty.
	By string
	// Note is why, in words; "": none.
	Note string
	// AsOf is when the service was asked. For OutcomeRefused and OutcomeNotSent it must
	// be at or after Intent.SettledBy, and not in the future: what the service said
	// earlier proves nothing.
	AsOf time.Time
}

// DuplicateIntent is why a call with a reference cannot be sent: another call used the
// reference or is using it, or it is closed. A [Journal] returns it; a client without a
// Journal makes it, as far as it remembers.
type DuplicateIntent struct {
	// Outcome is what is known of the reference: OutcomeUnknown where the earlier
	// call is in progress or its outcome is unknown, OutcomeExecuted where it was
	// executed, OutcomeRefused or OutcomeNotSent where it is closed for good, by a
	// final refusal or by being voided. The Error's Outcome is the same, unless it is
	// an ErrOtherBody.
	Outcome Outcome
	// InProgress reports that the earlier call has begun, has not ended, and may
	// still send: now is before its SendBy. The Outcome is then OutcomeUnknown.
	InProgress bool
	// Remaining is the time left until SendBy while InProgress; 0 otherwise.
	Remaining time.Duration
	// ServiceID is the service's identifier of what was executed; "": not known.
	ServiceID string
}

// Error reports what is known of the reference.
func (d *DuplicateIntent) Error() string { // a nil one in an error is taken for an unknown outcome
	switch {
	case d == nil:
	case d.InProgress:
		return "cardwire: another call with this reference is in progress"
	case d.Outcome == OutcomeExecuted:
		return "cardwire: this reference was executed before"
	case d.Outcome == OutcomeRefused, d.Outcome == OutcomeNotSent:
		return "cardwire: this reference is closed"
	}
	return "cardwire: the outcome of an earlier call with this reference is unknown"
}

// Is matches [ErrDuplicateIntent].
func (d *DuplicateIntent) Is(target error) bool { return target == ErrDuplicateIntent }

// journalTimeout bounds the recording of a result, which outlives the call.
const journalTimeout = 5 * time.Second

// claim is a write's claim on its reference, in memory and in the journal. A claim that
// is held must be settled.
type claim struct {
	core      *core
	op        *spec
	intent    Intent
	held      bool // the reference is this call's until settle
	journaled bool // the intent is in the journal
}

// isClaimed reports whether the operation is a write with a reference.
func (s *spec) isClaimed() bool { return s.class == transport.Write && s.reference != "" }

// key is the key under which the reference is remembered.
func (c *claim) key() inflight.Key { return inflight.Key{Op: c.op.name, Reference: c.op.reference} }

// guard is the key that at most one call in progress may have.
func (c *claim) guard() inflight.Key {
	return inflight.Key{Op: cmp.Or(c.op.record, c.op.name), Reference: c.op.reference}
}

// body distinguishes the request from others with the same reference.
func (c *claim) body() uint64 { return inflight.Digest(c.intent.BodySHA256) }

// take claims the reference before anything is sent.
func (c *claim) take(ctx context.Context, start, sendBy time.Time) *Error {
	if until, ok := c.core.memory.Enter(c.guard(), sendBy); !ok {
		return c.inProgress(until)
	}
	defer func() {
		if !c.held { // also where the journal panicked
			c.core.memory.Leave(c.guard())
		}
	}()
	c.intend(start, sendBy)
	failure := c.grant(ctx)
	c.held = failure == nil
	return failure
}

func (c *claim) intend(start, sendBy time.Time) {
	fields := c.op.intent
	if fields == nil {
		fields = c.op.fields
	}
	c.intent = Intent{
		Op: c.op.name, Reference: c.op.reference, BodySHA256: fields.Digest(), Summary: c.op.summary,
		Time: start, SendBy: sendBy, Unique: c.op.unique,
	}
}

// grant asks whether the reference may be sent: the journal alone decides where there
// is one, and the client's memory otherwise. nil: it may.
func (c *claim) grant(ctx context.Context) *Error {
	if c.core.journal == nil {
		return c.recall()
	}
	if err := c.core.journal.Begin(ctx, c.intent); err != nil {
		return c.onRecord(err)
	}
	c.journaled = true
	if c.op.unique { // a journal grants any other reference
		c.remember(inflight.Free, "") // it was resolved, whatever this client remembers
	}
	return nil
}

// recall asks the client's memory.
func (c *claim) recall() *Error {
	known := c.core.memory.Known(c.key())
	if !c.op.unique || known.State == inflight.Free {
		return nil
	}
	d := duplicateOf(known)
	switch {
	case known.Body != c.body():
		return c.otherBody(d, nil)
	case c.core.profile.ServerDeduplicates:
		return nil
	case known.State == inflight.Executed, c.core.memory.Waited(c.guard()):
		return c.duplicate(d) // a caller that was told to wait did not decide to send again
	}
	return nil // whether to retry after an unknown outcome is the caller's decision
}

func duplicateOf(known inflight.Record) *DuplicateIntent {
	if known.State == inflight.Executed {
		return &DuplicateIntent{Outcome: OutcomeExecuted, ServiceID: known.ServiceID}
	}
	return &DuplicateIntent{}
}

// onRecord returns the error of a call whose journal did not grant the reference; nil:
// it is sent all the same.
func (c *claim) onRecord(err error) *Error {
	var d *DuplicateIntent
	if !errors.As(err, &d) {
		if errors.Is(err, ErrOtherBody) {
			return c.op.failure(OutcomeNotSent, &journalRefusal{ErrOtherBody, hideCause("", err)})
		}
		return c.unrecorded("the journal did not record the intent", err)
	}
	_, bare := err.(*DuplicateIntent) //nolint:errorlint // a wrapped one always forbids sending
	if bare && d.sound().Outcome == OutcomeUnknown && c.core.profile.ServerDeduplicates {
		// The service responds to a retry as it did to the first attempt; whether that
		// one was executed stays unknown whatever a refusal says now.
		c.remember(inflight.Unknown, "")
		c.journaled = true
		return nil
	}
	return c.refused(err, d)
}

// unrecorded returns the error of a call whose journal failed before anything was sent.
func (c *claim) unrecorded(message string, err error) *Error {
	failure := c.op.failure(OutcomeNotSent, hideCause(message, err))
	c.keepKnown(failure)
	return failure
}

// refused returns the error of a call whose reference the journal refused with d.
func (c *claim) refused(err error, d *DuplicateIntent) *Error {
	d = d.sound()
	if errors.Is(err, ErrOtherBody) {
		return c.otherBody(d, hideCause("", err))
	}
	failure := c.duplicate(d)
	if _, bare := err.(*DuplicateIntent); !bare { //nolint:errorlint // errors.Is must find what wraps it
		failure.Err = &journalRefusal{d, hideCause("", err)}
	}
	return failure
}

// sound returns d without contradictions, whatever a journal returned.
func (d *DuplicateIntent) sound() *DuplicateIntent {
	if d == nil || d.Outcome < OutcomeUnknown || d.Outcome > OutcomeExecuted || d.InProgress && d.Outcome != OutcomeUnknown {
		return &DuplicateIntent{}
	}
	sound := *d
	sound.Remaining = max(sound.Remaining, 0)
	if !sound.InProgress {
		sound.Remaining = 0
	}
	return &sound
}

// journalRefusal is why a reference was refused, and what the refusal wrapped, which
// errors.Is finds and nothing prints.
type journalRefusal struct {
	error
	wrapped error
}

func (r *journalRefusal) Unwrap() []error { return []error{r.error, r.wrapped} }

// inProgress returns the error of a call whose reference another call has, which may
// send until the given time.
func (c *claim) inProgress(until time.Time) *Error {
	remaining := time.Until(until)
	return c.duplicate(&DuplicateIntent{InProgress: remaining > 0, Remaining: max(remaining, 0)})
}

func (c *claim) duplicate(d *DuplicateIntent) *Error {
	failure := c.op.failure(d.Outcome, d)
	failure.RetryAfter = d.Remaining
	return failure
}

// otherBody returns the error of a call whose reference was used for another request. It
// does not report that request's outcome: the caller would book this one as paid.
func (c *claim) otherBody(d *DuplicateIntent, cause error) *Error {
	return c.op.failure(OutcomeUnknown, &journalRefusal{ErrOtherBody, errors.Join(d, cause)})
}

// unready returns the error of a call that cannot be sent. If its reference is not free,
// "not sent" would be true of this call only, and not of the order.
func (c *claim) unready(ctx context.Context, err error) *Error {
	failure := c.op.failure(OutcomeNotSent, err)
	if until, ok := c.core.memory.InProgress(c.guard()); ok {
		return c.inProgress(until)
	}
	if c.core.journal != nil && errors.Is(err, ErrInvalidParams) && !errors.Is(err, ErrSetup) {
		return c.look(ctx, failure)
	}
	known := c.core.memory.Known(c.key())
	switch {
	case known.State == inflight.Executed:
		return c.duplicate(duplicateOf(known))
	case known.State == inflight.Unknown:
		failure.Outcome = OutcomeUnknown
	}
	return failure
}

// look asks the journal about a reference whose call has invalid parameters: after "not
// sent" the caller would fail an order that may be paid. If the reference is free, look
// closes it and returns failure.
func (c *claim) look(ctx context.Context, failure *Error) *Error {
	looker, ok := c.core.journal.(Looker)
	if !ok {
		failure.Outcome = OutcomeUnknown
		return failure
	}
	ctx, stop := context.WithTimeout(ctx, journalTimeout)
	defer stop()
	err := looker.Look(ctx, c.op.name, c.op.reference)
	if err == nil && c.op.unique {
		err = c.close(ctx)
	}
	var d *DuplicateIntent
	switch {
	case err == nil:
		return failure
	case errors.As(err, &d):
		return c.refused(err, d)
	case errors.Is(err, ErrOtherBody):
		return c.onRecord(err)
	}
	return c.unrecorded("a parameter is invalid, and the journal could not look up or close the reference", err)
}

// close records that the reference will never be sent: its order is about to fail, and a
// late message with a valid request must not pay it.
func (c *claim) close(ctx context.Context) error {
	now := time.Now()
	c.intend(now, now)
	if err := c.core.journal.Begin(ctx, c.intent); err != nil {
		return err
	}
	err := c.core.journal.End(ctx, c.intent, IntentResult{Outcome: OutcomeNotSent, Final: true})
	if err != nil {
		c.core.journalFailed(ctx, c.op, err)
	}
	return err
}

// settle sets the final outcome of failure, records the result in memory and in the
// journal, and releases the reference. The error is the journal's.
func (c *claim) settle(ctx context.Context, failure *Error, r result) error {
	if c == nil || !c.held {
		return nil
	}
	c.held = false
	defer c.core.memory.Leave(c.guard())
	end := IntentResult{Outcome: OutcomeExecuted}
	if failure != nil {
		c.keepKnown(failure)
		end = IntentResult{Outcome: failure.Outcome, Final: NextStep(failure) == StepFail}
	}
	if end.Outcome == OutcomeExecuted {
		end.ServiceID = r.serviceID()
	}
	switch {
	case end.Outcome == OutcomeUnknown:
		c.remember(inflight.Unknown, "")
	case end.Outcome != OutcomeExecuted:
	case c.journaled, !c.op.unique: // the journal knows, or it may be executed again
		c.remember(inflight.Free, "")
	default:
		c.remember(inflight.Executed, end.ServiceID)
	}
	if !c.journaled {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTimeout) // the caller may be gone
	defer cancel()
	return c.core.journal.End(ctx, c.intent, end)
}

// keepKnown keeps what is known of the reference: a later refusal proves nothing
// about the first attempt.
func (c *claim) keepKnown(failure *Error) {
	switch known := c.core.memory.Known(c.key()); {
	case known.State == inflight.Executed:
		failure.Outcome = OutcomeExecuted
	case known.State == inflight.Unknown && (failure.Outcome == OutcomeRefused || failure.Outcome == OutcomeNotSent):
		failure.Outcome = OutcomeUnknown
	}
}

func (c *claim) remember(s inflight.State, serviceID string) {
	c.core.memory.Remember(c.key(), inflight.Record{State: s, Body: c.body(), ServiceID: serviceID})
}
