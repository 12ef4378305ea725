package cardwire

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
)

// Outcome reports whether a failed call happened. Its zero value is OutcomeUnknown.
type Outcome int

const (
	// OutcomeUnknown means that the operation may have been executed.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent means that this call did nothing; an earlier one may have.
	OutcomeNotSent
	// OutcomeRefused means that the service refused: nothing was executed.
	OutcomeRefused
	// OutcomeExecuted means that it was executed, by this call or an earlier one.
	OutcomeExecuted
)

// String returns "unknown", "not sent", "refused" or "executed".
func (o Outcome) String() string {
	return named("Outcome", int(o), []string{
		OutcomeUnknown: "unknown", OutcomeNotSent: "not sent", OutcomeRefused: "refused", OutcomeExecuted: "executed",
	})
}

func named(kind string, n int, names []string) string {
	if n < 0 || n >= len(names) || names[n] == "" {
		return kind + "(" + strconv.Itoa(n) + ")"
	}
	return names[n]
}

// Step is what a caller does after a call. The zero value is the safe one.
type Step int

const (
	// StepReconcile means that the operation may have been executed. Ask the service about
	// the reference, then resolve it in the journal; send nothing until then.
	StepReconcile Step = iota
	// StepDone means that it was executed, now or before. Book it as submitted; never resend it.
	StepDone
	// StepRetry means that nothing was executed, and that the request was not rejected.
	// Retry with the same reference after RetryAfter. It may fail too: after a limit of
	// your own, fail the order, but only if the journal's Void returned nil.
	StepRetry
	// StepFail means that nothing was executed, and nothing will be under this reference,
	// which is closed. Fail the order; a corrected request gets a new reference.
	StepFail
	// StepWait means that another call with this reference is in progress: call again later.
	StepWait
)

// String returns "reconcile", "done", "retry", "fail" or "wait".
func (s Step) String() string {
	return named("Step", int(s), []string{
		StepReconcile: "reconcile", StepDone: "done", StepRetry: "retry", StepFail: "fail", StepWait: "wait",
	})
}

// MarshalText returns String.
func (s Step) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (s *Step) UnmarshalText(text []byte) error { return byName(s, StepWait, text) }

// MarshalText returns String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (o *Outcome) UnmarshalText(text []byte) error { return byName(o, OutcomeExecuted, text) }

// byName sets v to the constant, from 0 to last, whose name is text.
func byName[T interface {
	~int
	String() string
}](v *T, last T, text []byte) error {
	if v == nil {
		return errNilReceiver
	}
	for constant := T(0); constant <= last; constant++ {
		if constant.String() == string(text) {
			*v = constant
			return nil
		}
	}
	return fmt.Errorf("cardwire: no %s has this name", reflect.TypeFor[T]().Name())
}

// NextStep returns what to do after a call that returned err. A program that follows it never
// gets an order executed twice, and never marks an executed order as failed. The first line
// that applies determines the step:
//
//   - nil: StepDone.
//   - no [*Error], or several: StepReconcile.
//   - a failed read, and an UploadImage unless it was executed: StepRetry, or StepFail if
//     a parameter is invalid.
//   - another call with the reference is in progress: StepWait.
//   - [ErrOtherBody]: StepFail if nothing happened under the reference, else StepReconcile.
//   - executed: StepDone.
//   - nothing happened, because a parameter is invalid, the reference is closed, or the
//     service refused this request: StepFail.
//   - nothing happened for another reason: StepRetry. A person must correct the cause of
//     [ErrSetup], of the statuses or codes 401, 403, 405, 413 and 415, of a 404 to a
//     CreateTransfer, which names nothing that could be missing, and of a refusal without an
//     envelope, which does not come from the service itself.
//   - everything else: StepReconcile.
//
// Only a card operation may be canceled or retried again after StepFail.
func NextStep(err error) Step {
	if err == nil {
		return StepDone
	}
	return theError(err).step()
}

// step returns what to do after a call that returned e, from the first case that applies.
func (e *Error) step() Step {
	d, known := errors.AsType[*DuplicateIntent](e.Err)
	switch {
	case e.Outcome == OutcomeNotSent && e.isInvalid() && e.isHarmless():
		return StepFail
	case e.isHarmless():
		return StepRetry
	case known && d != nil && d.InProgress:
		return StepWait
	case errors.Is(e.Err, ErrOtherBody) && (known || e.Outcome != OutcomeNotSent):
		return StepReconcile
	case known && (d == nil || d.Outcome != e.Outcome):
		return StepReconcile // d and e contradict each other
	case e.Outcome == OutcomeExecuted:
		return StepDone
	case e.Outcome == OutcomeNotSent && !e.isClosed() && !e.isInvalid(), e.refusedForNow():
		return StepRetry
	case e.Outcome == OutcomeNotSent, e.Outcome == OutcomeRefused:
		return StepFail
	}
	return StepReconcile
}

// isHarmless reports whether the call changed nothing, or nothing that matters.
func (e *Error) isHarmless() bool {
	return e.ReadOnly || e.Op == OpUploadImage && e.Outcome != OutcomeExecuted
}

func (e *Error) isInvalid() bool {
	return errors.Is(e.Err, ErrInvalidParams)
}

// isClosed reports whether the journal has closed the reference.
func (e *Error) isClosed() bool {
	return errors.Is(e.Err, ErrDuplicateIntent) || errors.Is(e.Err, ErrOtherBody)
}

// notOfTheRequest are the statuses and codes of refusals that are due to the URL, the
// key or the rate: the same request may succeed later.
var notOfTheRequest = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed,
	http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests,
}

// refusedForNow reports whether a refusal is not about the request itself. A bare one,
// without an envelope, came from something in front of the service, and a write that names
// nothing that could be missing was sent to a wrong URL.
func (e *Error) refusedForNow() bool {
	return e.Outcome == OutcomeRefused && !e.isClosed() && (e.isOfURL() ||
		slices.Contains(notOfTheRequest, e.HTTPStatus) || slices.Contains(notOfTheRequest, e.Code) ||
		errors.Is(e.Err, ErrUnauthorized) || errors.Is(e.Err, ErrRateLimited) || errors.Is(e.Err, ErrUnreadable))
}

// theError returns the one Error in the tree; if there is none, or several, one with an unknown outcome.
func theError(err error) *Error {
	e, found := errors.AsType[*Error](err)
	if !found || e == nil || countErrors(err) > 1 {
		return new(Error)
	}
	return e
}

func countErrors(err error) (n int) {
	switch inner := err.(type) { //nolint:errorlint // it visits each node
	case *Error:
		return 1 + countErrors(inner.Unwrap())
	case interface{ Unwrap() error }:
		return countErrors(inner.Unwrap())
	case interface{ Unwrap() []error }:
		for _, next := range inner.Unwrap() {
			n += countErrors(next)
		}
	}
	return n
}
