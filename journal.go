package cardwire

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/inflight"
	"github.com/cardwire/cardwire-go/internal/transport"
)

// Journal records what is about to be sent, so that a crash between sending and
// response leaves a trace. It must be safe for concurrent use, and must end with
// its context: the call waits for it. Package cardwiretest has a test of what every
// journal must keep.
type Journal interface {
	// Begin is called before the first byte of a write that has a reference. It
	// returns nil only if the reference is free: never begun, or ended as not sent or
	// refused and not Final, with the same body. Otherwise it returns a
	// *[DuplicateIntent], or an error that wraps one where nothing may be sent whatever
	// the Profile says, as where a retry is not recorded. Where the body is another,
	// it returns an error that wraps [ErrOtherBody], together with a DuplicateIntent
	// unless the first is known not to have happened. Any error means that nothing is
	// sent, but for an unknown *DuplicateIntent under [Profile].ServerDeduplicates.
	Begin(ctx context.Context, i Intent) error
	// End is called with the result, on a context that outlives the call. Where it
	// fails the intent stays open, which is the safe direction, and
	// [Observer].JournalError is called.
	End(ctx context.Context, i Intent, r IntentResult) error
}

// Looker is optional for a [Journal]. It is asked about references whose call has
// invalid parameters: a paid order must not be failed because it is called again
// with a broken request.
type Looker interface {
	// Look returns nil if the reference is free, and what Begin would return if not.
	Look(ctx context.Context, op, reference string) error
}

// Intent is a write that is about to be sent.
type Intent struct {
	// Op is the operation, as in Error.Op.
	Op string
	// Reference is the caller's identifier: the merchant order number, the
	// client transaction ID or Request.Reference.
	Reference string
	// BodySHA256 is a hash, in hex, over the sorted names and values that are
	// sent. A retry of a reference with another body is always to be refused.
	BodySHA256 string
	// Summary is what a person needs to recognize the intent, as in "10.00 EUR".
	// It contains no personal data and no account number; "": nothing.
	Summary string
	// Time is when the call began.
	Time time.Time
	// SendBy is the deadline after which no write of this call begins: the client's
	// own connections refuse it. Bytes that were handed over before may arrive
	// later. A caller-supplied Doer is outside this promise.
	SendBy time.Time
	// Unique reports that a reference is that of one execution: while an intent of
	// it is open, unknown or executed, another must not begin. It is false for
	// cancelling and retrying, since a record may fail again.
	Unique bool
}

// IntentResult is how an intent ended.
type IntentResult struct {
	// Outcome is OutcomeExecuted also for a success.
	Outcome Outcome
	// ServiceID is the service's identifier of what it did, api_order_no or the
	// operation's ID, of at most 128 visible bytes; "": none was returned.
	ServiceID string
	// Final reports that NextStep of the call's error is StepFail: the reference
	// must never be granted again.
	Final bool
}

// DuplicateIntent is why a reference cannot be sent: another call has it, or it is
// closed. A [Journal] returns it, and a client without one where it remembers.
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

// claim takes a write's reference, in memory and in the journal, before anything
// is sent. What is claimed must be settled.
func (k *call) claim(ctx context.Context) *Error {
	if !k.needsClaim() {
		return nil
	}
	if until, ok := k.client.memory.Enter(k.guard(), k.deadline); !ok {
		return k.inProgress(until)
	}
	defer func() {
		if !k.claimed { // also where the journal panicked
			k.client.memory.Leave(k.guard())
		}
	}()
	k.intent = k.newIntent()
	var failure *Error
	if k.client.journal == nil {
		failure = k.recall()
	} else {
		failure = k.recordIntent(ctx)
	}
	k.claimed = failure == nil
	return failure
}

func (k *call) needsClaim() bool { return k.op.class == transport.Write && k.op.reference != "" }

// key is what the reference is remembered by.
func (k *call) referenceKey() inflight.Key {
	return inflight.Key{Op: k.op.name, Reference: k.op.reference}
}

// guard is what no other call may be in progress with.
func (k *call) guard() inflight.Key {
	return inflight.Key{Op: cmp.Or(k.op.record, k.op.name), Reference: k.op.reference}
}

func (k *call) newIntent() Intent {
	fields := k.op.intent
	if fields == nil {
		fields = k.op.fields
	}
	return Intent{
		Op: k.op.name, Reference: k.op.reference, BodySHA256: fields.Digest(), Summary: k.op.summary,
		Time: k.start, SendBy: k.deadline, Unique: k.op.unique,
	}
}

// inProgress is the error of a call whose reference another call has, which may
// send until then.
func (k *call) inProgress(until time.Time) *Error {
	remaining := time.Until(until)
	return k.duplicate(&DuplicateIntent{InProgress: remaining > 0, Remaining: max(remaining, 0)})
}

func (k *call) duplicate(d *DuplicateIntent) *Error {
	failure := k.fail(d.Outcome, d)
	failure.RetryAfter = d.Remaining
	return failure
}

// otherBody is the error of a call whose reference is that of another request, whose
// outcome is not this one's: the caller would book this one as paid.
func (k *call) otherBody(d *DuplicateIntent, cause error) *Error {
	return k.fail(OutcomeUnknown, &journalRefusal{ErrOtherBody, errors.Join(d, cause)})
}

// recall asks the client's memory about the reference, where there is no journal;
// nil: it may be sent.
func (k *call) recall() *Error {
	known := k.client.memory.Known(k.referenceKey())
	if !k.op.unique || known.State == inflight.Free {
		return nil
	}
	d := duplicateOf(known)
	switch {
	case known.Body != inflight.Digest(k.intent.BodySHA256):
		return k.otherBody(d, nil)
	case known.State == inflight.Executed && !k.client.profile.ServerDeduplicates:
		return k.duplicate(d)
	}
	return nil // to send again what is unknown is the caller's decision
}

func duplicateOf(known inflight.Record) *DuplicateIntent {
	if known.State == inflight.Executed {
		return &DuplicateIntent{Outcome: OutcomeExecuted, ServiceID: known.ServiceID}
	}
	return &DuplicateIntent{}
}

// recordIntent has the journal record the intent. The journal alone decides: a
// reference that it grants is free, whatever this client saw of it.
func (k *call) recordIntent(ctx context.Context) *Error {
	ctx, stop := k.bounded(ctx)
	defer stop()
	if err := k.client.journal.Begin(ctx, k.intent); err != nil {
		return k.onRecord(err)
	}
	k.journaled = true
	if k.op.unique { // of others it records everything
		k.client.memory.Remember(k.referenceKey(), inflight.Record{})
	}
	return nil
}

// onRecord is what it means for this call that its journal did not grant the
// reference; nil: it is sent all the same.
func (k *call) onRecord(err error) *Error {
	var d *DuplicateIntent
	if !errors.As(err, &d) {
		if errors.Is(err, ErrOtherBody) {
			return k.fail(OutcomeNotSent, &journalRefusal{ErrOtherBody, hideCause("", err)})
		}
		return k.fail(OutcomeNotSent, hideCause("the journal did not record the intent", err))
	}
	d = d.sound()
	if errors.Is(err, ErrOtherBody) {
		return k.otherBody(d, hideCause("", err))
	}
	if _, bare := err.(*DuplicateIntent); !bare { //nolint:errorlint // one that is wrapped must not be lifted
		failure := k.duplicate(d)
		failure.Err = &journalRefusal{d, hideCause("", err)}
		return failure
	}
	if d.Outcome != OutcomeUnknown || !k.client.profile.ServerDeduplicates {
		return k.duplicate(d)
	}
	// The service responds to a retry as it did to the first attempt; whether that
	// one was executed stays unknown whatever a refusal says now.
	k.remember(inflight.Unknown, "")
	k.journaled = true
	return nil
}

// sound returns d without what contradicts itself, whatever a journal returned.
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

// journalRefusal is why a reference was refused, and what the refusal wrapped:
// errors.Is finds that, and it is not printed.
type journalRefusal struct {
	error
	wrapped error
}

func (r *journalRefusal) Unwrap() []error { return []error{r.error, r.wrapped} }

// unready is the error of a call that cannot be sent. Where its reference is not
// free, "not sent" would be true of this call and not of what the caller asks about.
func (k *call) unready(ctx context.Context, err error) *Error {
	failure := k.fail(OutcomeNotSent, err)
	if k.client == nil || !k.needsClaim() || check.Given("", k.op.reference) != nil {
		return failure // such a reference was never sent
	}
	if until, ok := k.client.memory.InProgress(k.guard()); ok {
		return k.inProgress(until)
	}
	if k.client.journal != nil && errors.Is(err, ErrInvalidParams) && !errors.Is(err, ErrSetup) {
		return cmp.Or(k.look(ctx), failure)
	}
	known := k.client.memory.Known(k.referenceKey())
	switch {
	case known.State == inflight.Executed:
		return k.duplicate(duplicateOf(known))
	case known.State == inflight.Unknown:
		failure.Outcome = OutcomeUnknown
	}
	return failure
}

// look asks the journal about a reference whose call cannot be sent as it is: with
// "not sent" an order would be failed that may be paid. nil: it is free.
func (k *call) look(ctx context.Context) *Error {
	looker, ok := k.client.journal.(Looker)
	if !ok {
		return k.fail(OutcomeUnknown, k.op.invalid)
	}
	ctx, stop := context.WithTimeout(ctx, k.timeout())
	defer stop()
	err := looker.Look(ctx, k.op.name, k.op.reference)
	if err == nil {
		return nil
	}
	var d *DuplicateIntent
	switch duplicate := errors.As(err, &d); {
	case duplicate && errors.Is(err, ErrOtherBody):
		return k.otherBody(d.sound(), hideCause("", err))
	case duplicate:
		return k.duplicate(d.sound())
	}
	return k.fail(OutcomeNotSent, hideCause("a parameter is invalid, and the journal returned an error when it was asked about the reference", err))
}

// keepKnown keeps what is known of the reference: a later refusal proves nothing
// about the first attempt.
func (k *call) keepKnown(failure *Error) {
	switch known := k.client.memory.Known(k.referenceKey()); {
	case known.State == inflight.Executed:
		failure.Outcome = OutcomeExecuted
	case known.State == inflight.Unknown && (failure.Outcome == OutcomeRefused || failure.Outcome == OutcomeNotSent):
		failure.Outcome = OutcomeUnknown
	}
}

// settle gives a claimed call its final outcome, in memory and in the journal, and
// lets go of the reference.
func (k *call) settle(ctx context.Context, failure *Error) {
	if !k.claimed {
		return
	}
	k.claimed = false
	defer k.client.memory.Leave(k.guard())
	result := IntentResult{Outcome: OutcomeExecuted}
	if failure != nil {
		k.keepKnown(failure)
		result = IntentResult{Outcome: failure.Outcome, Final: NextStep(failure) == StepFail}
	}
	switch result.Outcome {
	case OutcomeExecuted:
		if k.serviceID != nil {
			result.ServiceID = k.serviceID()
		}
		k.rememberExecuted(result.ServiceID)
	case OutcomeUnknown:
		k.remember(inflight.Unknown, "")
	}
	if k.journaled {
		k.recordResult(ctx, result)
	}
}

// rememberExecuted ends what was unknown. That it is executed is for the journal to
// know where there is one, and stands in the way of no other execution where the
// reference is not unique.
func (k *call) rememberExecuted(serviceID string) {
	if k.journaled || !k.op.unique {
		k.remember(inflight.Free, "")
		return
	}
	k.remember(inflight.Executed, serviceID)
}

func (k *call) remember(s inflight.State, serviceID string) {
	k.client.memory.Remember(k.referenceKey(), inflight.Record{State: s, Body: inflight.Digest(k.intent.BodySHA256), ServiceID: serviceID})
}

// settleAfterPanic resolves a call that a panic in caller code cut short: what was
// sent may have happened.
func (k *call) settleAfterPanic(ctx context.Context) {
	if k.claimed {
		k.settle(ctx, k.fail(OutcomeUnknown, nil))
	}
}

// recordResult records also where the caller has gone.
func (k *call) recordResult(ctx context.Context, r IntentResult) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTimeout)
	defer cancel()
	if err := k.client.journal.End(ctx, k.intent, r); err != nil {
		k.journalFailed(ctx, err)
	}
}
