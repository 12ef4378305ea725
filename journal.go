package cardwire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go/internal/transport"
)

// Journal records what is about to be sent, so that a crash between sending and
// answer leaves a trace. It must be safe for concurrent use, and must end with
// its context: the call waits for it.
type Journal interface {
	// Begin is called before the first byte of a write that has a reference. Where
	// the reference is taken it returns a *[DuplicateIntent], and an error that
	// wraps one where nothing may be sent whatever the Profile says, as where the
	// repeat is not on record. Where the body is another, it returns an error that
	// wraps [ErrOtherBody], together with a DuplicateIntent unless the first is known
	// not to have happened. Any error means that nothing is sent, but for an
	// undecided *DuplicateIntent under [Profile].ServerDeduplicates.
	Begin(ctx context.Context, i Intent) error
	// End is called with the result, on a context that outlives the call. Where it
	// fails the intent stays open, which is the safe direction, and
	// [Observer].JournalError is told.
	End(ctx context.Context, i Intent, r IntentResult) error
}

// Intent is a write that is about to be sent.
type Intent struct {
	// Op is the operation, as in Error.Op.
	Op string
	// Reference is the caller's identifier: the merchant order number, the
	// client transaction ID or Request.Reference.
	Reference string
	// BodySHA256 is a hash, in hex, over the sorted names and values that are
	// sent. A repeat of a reference with another body is always to be refused.
	BodySHA256 string
	// Time is when the call began.
	Time time.Time
	// Unique says that a reference stands for one execution: while an intent of
	// it is open, undecided or executed, another must not begin. It is false for
	// cancelling and retrying, since a record may fail again.
	Unique bool
}

// IntentResult is how an intent ended.
type IntentResult struct {
	// Outcome is OutcomeExecuted also for a success.
	Outcome Outcome
	// ServiceID is the service's identifier of what it did, api_order_no or the
	// operation's ID, of at most 128 bytes, all visible; "": none was answered.
	ServiceID string
}

// DuplicateIntent is what a [Journal] returns where a reference is taken.
type DuplicateIntent struct {
	// Outcome is OutcomeUnknown where the earlier intent is open or undecided,
	// OutcomeExecuted where it is done. The Error's is the same, unless it is an
	// ErrOtherBody: then that is OutcomeUnknown.
	Outcome Outcome
}

// Error says how the earlier intent stands.
func (d *DuplicateIntent) Error() string {
	if d == nil {
		d = new(DuplicateIntent) // a nil one in an error is taken for an unknown outcome
	}
	return "cardwire: the reference is taken by an intent whose outcome is " + d.Outcome.String()
}

// Is matches [ErrDuplicateIntent].
func (d *DuplicateIntent) Is(target error) bool { return target == ErrDuplicateIntent }

// maxUndecided bounds the client's memory of references that ended unknown.
const maxUndecided = 4096

// intents is the client's own memory of references: those in flight, and those
// that once ended unknown and stay so, because a later refusal ("this order
// exists") may be the echo of the first having been executed.
type intents struct {
	mu        sync.Mutex
	inFlight  map[intentKey]struct{}
	undecided map[intentKey]struct{}
	oldest    []intentKey // a ring, once it is full
	next      int
}

type intentKey struct{ op, reference string }

// enter claims the reference, and reports false where it is in flight.
func (m *intents) enter(k intentKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.inFlight[k]; taken {
		return false
	}
	if m.inFlight == nil {
		m.inFlight = map[intentKey]struct{}{}
	}
	m.inFlight[k] = struct{}{}
	return true
}

func (m *intents) leave(k intentKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.inFlight, k)
}

func (m *intents) isInFlight(k intentKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.inFlight[k]
	return ok
}

func (m *intents) isUndecided(k intentKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.undecided[k]
	return ok
}

func (m *intents) remember(k intentKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.undecided[k]; ok {
		return
	}
	if m.undecided == nil {
		m.undecided = map[intentKey]struct{}{}
	}
	m.undecided[k] = struct{}{}
	if len(m.oldest) < maxUndecided {
		m.oldest = append(m.oldest, k)
		return
	}
	delete(m.undecided, m.oldest[m.next])
	m.oldest[m.next] = k
	m.next = (m.next + 1) % maxUndecided
}

// journalTimeout bounds the recording of a result, which outlives the call.
const journalTimeout = 5 * time.Second

// claim takes a write's reference, in memory and in the journal, before anything
// is sent. What is claimed must be settled.
func (k *call) claim(ctx context.Context) *Error {
	if !k.needsClaim() {
		return nil
	}
	key := k.intentKey()
	if !k.client.intents.enter(key) {
		return k.inFlight()
	}
	defer func() {
		if !k.claimed { // also where the journal panicked
			k.client.intents.leave(key)
		}
	}()
	if failure := k.recordIntent(ctx); failure != nil {
		if !errors.Is(failure.err, ErrOtherBody) { // of which the journal knows more than we do
			k.stick(failure)
		}
		return failure
	}
	k.claimed = true
	return nil
}

func (k *call) needsClaim() bool { return k.op.class == transport.Write && k.op.reference != "" }

func (k *call) inFlight() *Error {
	return k.fail(OutcomeUnknown, &problem{ErrDuplicateIntent, "a call under it is in flight"})
}

func (k *call) intentKey() intentKey { return intentKey{k.op.name, k.op.reference} }

func (k *call) recordIntent(ctx context.Context) *Error {
	if k.client.journal == nil {
		return nil
	}
	k.intent = &Intent{
		Op: k.op.name, Reference: k.op.reference, BodySHA256: slices.Concat(k.op.fields, k.op.target).Digest(),
		Time: k.start, Unique: k.op.unique,
	}
	ctx, stop := k.bounded(ctx)
	defer stop()
	err := k.client.journal.Begin(ctx, *k.intent)
	if err == nil {
		return nil
	}
	var taken *DuplicateIntent
	switch duplicate := errors.As(err, &taken); {
	case duplicate:
		return k.onRecord(taken, err)
	case errors.Is(err, ErrOtherBody):
		return k.fail(OutcomeNotSent, &journalRefusal{ErrOtherBody, conceal("", err)})
	default:
		return k.fail(OutcomeNotSent, conceal("the journal did not record the intent", err))
	}
}

// onRecord says what it means for this call that its reference is taken; nil: it
// is sent all the same.
func (k *call) onRecord(taken *DuplicateIntent, err error) *Error {
	if taken == nil || taken.Outcome != OutcomeExecuted {
		taken = &DuplicateIntent{} // whatever a journal calls it
	}
	if errors.Is(err, ErrOtherBody) {
		// Not that of the first: who is told "executed" books this as paid.
		return k.fail(OutcomeUnknown, &journalRefusal{ErrOtherBody, errors.Join(taken, conceal("", err))})
	}
	if _, bare := err.(*DuplicateIntent); !bare { //nolint:errorlint // one that is wrapped must not be lifted
		return k.fail(taken.Outcome, &journalRefusal{taken, conceal("", err)})
	}
	if taken.Outcome == OutcomeExecuted || !k.client.profile.ServerDeduplicates {
		return k.fail(taken.Outcome, taken)
	}
	// The service answers a repeat as it answered the first; whether that first
	// was executed stays unknown whatever a refusal says now.
	k.client.intents.remember(k.intentKey())
	return nil
}

// journalRefusal is why a journal refused a reference, and what it wrapped: that is
// found by errors.Is, and not shown.
type journalRefusal struct {
	error
	wrapped error
}

func (r *journalRefusal) Unwrap() []error { return []error{r.error, r.wrapped} }

// unready is the error of a call that cannot be sent. Where another call under its
// reference is in flight, "not sent" would be true of this call and not of what
// the caller asks about.
func (k *call) unready(err error) *Error {
	if k.client != nil && k.needsClaim() && k.client.intents.isInFlight(k.intentKey()) {
		return k.inFlight()
	}
	failure := k.fail(OutcomeNotSent, err)
	k.stick(failure)
	return failure
}

// stick keeps an undecided reference undecided: that this call was refused or
// not sent says nothing of what was sent under it before, and the caller asks
// about the reference.
func (k *call) stick(failure *Error) {
	nothing := failure.Outcome == OutcomeRefused || failure.Outcome == OutcomeNotSent
	if nothing && k.client != nil && k.client.intents.isUndecided(k.intentKey()) {
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
	defer k.client.intents.leave(k.intentKey())
	outcome := OutcomeExecuted
	if failure != nil {
		k.stick(failure)
		outcome = failure.Outcome
		if outcome == OutcomeUnknown {
			k.client.intents.remember(k.intentKey())
		}
	}
	if k.intent != nil {
		k.recordResult(ctx, outcome)
	}
}

// abandon settles a call that a panic in a caller's function cut short: what was
// sent may have happened.
func (k *call) abandon(ctx context.Context) {
	if k.claimed {
		k.settle(ctx, k.fail(OutcomeUnknown, nil))
	}
}

// recordResult records also where the caller has gone.
func (k *call) recordResult(ctx context.Context, outcome Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTimeout)
	defer cancel()
	result := IntentResult{Outcome: outcome}
	if outcome == OutcomeExecuted && k.serviceID != nil {
		result.ServiceID = k.serviceID()
	}
	if err := k.client.journal.End(ctx, *k.intent, result); err != nil {
		k.journalFailed(ctx, err)
	}
}
