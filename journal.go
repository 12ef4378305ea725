package cardwire

import (
	"context"
	"time"

	"github.com/shopspring/decimal"
)

// Journal is the record of what was sent, and the only source of what is known about a
// reference: see [WithJournal]. It must be safe for concurrent use, and its methods must return
// when their context, which is never nil, is done. Package journal has its rules, as a table and
// as functions, and cardwiretest.TestJournal tests them.
//
// A refusal is a *[DuplicateIntent], [ErrOtherBody], or both. The message of any other error may
// contain anything, so the client reports only that the journal failed. If the error has a method
// SafeMessage() string, the client adds what that returns: what failed and what to do about it,
// without any value of a request.
type Journal interface {
	// Begin is called before the first byte of a write. Any error means that nothing is sent.
	// A second Begin with the same Intent.Call is a retry of the first. Op, Reference and Call must not be empty.
	Begin(ctx context.Context, i Intent) error
	// End records the result of the call i.Call, on a context that outlives the call, also if the
	// Service of the intent is another one. It returns an error if the record then contradicts the
	// result, or cannot be written. If Begin would then return a *DuplicateIntent, the error wraps it.
	End(ctx context.Context, i Intent, r IntentResult) error
	// Void closes a reference under which nothing was executed, so that it is never sent.
	// Op, Reference and by must not be empty. By and note are for the record. An Op that is
	// not on record and none that a client records is an error, unless the intent has a Call.
	Void(ctx context.Context, i Intent, by, note string) error
}

// Intent is a write that is about to be sent.
type Intent struct {
	Call       string          // a random identifier of this call, by which End and Resolve find it
	Op         Op              // Error.Op
	Reference  string          // the merchant order number, the client transaction ID or Request.Reference
	BodySHA256 string          // a hash, in hex, of the sorted names and values that are sent
	Amount     decimal.Decimal // what it moves; zero: unknown, or nothing
	Currency   string          // of the Amount; "": unknown
	Service    string          // the base URL: a journal belongs to one service. A person may leave it empty.
	Account    string          // that of [WithAccount]: a journal belongs to one account of the service
	Time       time.Time       // when the call began
	// SendBy is the deadline after which no write of this call begins: the client's own
	// connections refuse it. Bytes that were written before it may arrive later. A
	// caller-supplied Doer is not bound by it.
	SendBy time.Time
	// SettledBy is SendBy plus [Profile].LateExecution: by then the service is assumed to
	// have executed the call, if ever.
	SettledBy time.Time
}

// IntentResult is how an intent ended.
type IntentResult struct {
	Outcome   Outcome // OutcomeExecuted also for a success
	ServiceID string  // api_order_no or the operation's ID, of at most 128 visible bytes; "": none was returned
	Status    string  // what the service returned, like "wait_process", of at most 128 visible bytes; "": none
	// Reason is why the call returned an error, executed or not, as in "refused, HTTP 422,
	// code 422", in at most 256 printable bytes; "": it returned none. It never contains the
	// service's message, which may contain personal data.
	Reason string
	Final  bool // it closes the reference for good: NextStep returns StepFail
}

// DuplicateIntent is why a [Journal] refuses a reference: used, in use, closed.
type DuplicateIntent struct {
	// Outcome is what is known about the reference: OutcomeUnknown also while the earlier
	// call is in progress, OutcomeRefused or OutcomeNotSent if the reference is closed. The
	// Outcome of the Error is the same, unless that is an ErrOtherBody.
	Outcome    Outcome
	InProgress bool          // whether the earlier call may still send: before its SendBy it has not ended
	Remaining  time.Duration // the time left until SendBy while InProgress; 0 otherwise
	ServiceID  string        // the service's identifier of what was executed; "": not known
	Reserved   bool          // whether nothing was sent, and the reference is reserved for another body
}

// Error reports what is known about the reference.
func (d *DuplicateIntent) Error() string { // a nil d is an unknown outcome
	switch {
	case d == nil:
	case d.Reserved:
		return "cardwire: this reference is reserved for a different request"
	case d.InProgress:
		return "cardwire: another call with this reference is in progress"
	case d.Outcome == OutcomeExecuted:
		return "cardwire: this reference was executed before"
	case d.Outcome.isUndone():
		return "cardwire: this reference is closed"
	}
	return "cardwire: the outcome of an earlier call with this reference is unknown"
}

// Is matches [ErrDuplicateIntent].
func (d *DuplicateIntent) Is(target error) bool { return target == ErrDuplicateIntent }

// sound returns d without contradictions, whatever a journal returned.
func (d *DuplicateIntent) sound() *DuplicateIntent {
	if d == nil || d.Outcome < OutcomeUnknown || d.Outcome > OutcomeExecuted ||
		(d.InProgress || d.Reserved) && d.Outcome != OutcomeUnknown {
		return &DuplicateIntent{}
	}
	sound := *d
	sound.Remaining = max(sound.Remaining, 0)
	if !sound.InProgress {
		sound.Remaining = 0
	}
	return &sound
}
