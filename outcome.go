package cardwire

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Outcome reports whether a failed call happened; zero is OutcomeUnknown.
type Outcome int

// The outcomes.
const (
	OutcomeUnknown  Outcome = iota // OutcomeUnknown means that the operation may have been executed.
	OutcomeNotSent                 // OutcomeNotSent means that this call did nothing; an earlier one may have.
	OutcomeRefused                 // OutcomeRefused means that the service refused: nothing was executed.
	OutcomeExecuted                // OutcomeExecuted means that it was executed, by this call or an earlier one.
)

var outcomeNames = []string{
	OutcomeUnknown: "unknown", OutcomeNotSent: "not_sent", OutcomeRefused: "refused", OutcomeExecuted: "executed",
}

// String returns "unknown", "not_sent", "refused" or "executed".
func (o Outcome) String() string { return named("Outcome", int(o), outcomeNames) }

// isUndone reports whether nothing was executed.
func (o Outcome) isUndone() bool { return o == OutcomeNotSent || o == OutcomeRefused }

func named(kind string, n int, names []string) string {
	if n < 0 || n >= len(names) || names[n] == "" {
		return kind + "(" + strconv.Itoa(n) + ")"
	}
	return names[n]
}

// Step is what a caller does after a call. The zero value is the safe one.
type Step int

// The steps.
const (
	// StepReconcile means that the operation may have been executed. Ask the service about the
	// reference, then resolve it in the journal; send nothing until then. A journal has transfers and
	// writes through [Call]: after a card operation, look at the card.
	StepReconcile Step = iota
	StepDone           // StepDone means that it was executed, now or before. Book it as submitted; never resend it.
	// StepRetry means that nothing was executed, and that the request was not rejected.
	// Retry with the same reference after RetryAfter. It may fail too: after a limit of
	// your own, fail the order, but only if the journal's Void returned nil. A read of what is
	// unreadable, too large or redirected may not help: the error says what does.
	StepRetry
	// StepFail means that nothing was executed, and nothing will be under this reference,
	// which a refused call closes, and a failed Validate does not. Fail the order; a corrected
	// request gets a new reference.
	StepFail
	StepWait // StepWait means that another call with this reference is in progress: call again later.
)

var stepNames = []string{
	StepReconcile: "reconcile", StepDone: "done", StepRetry: "retry", StepFail: "fail", StepWait: "wait",
}

// String returns "reconcile", "done", "retry", "fail" or "wait".
func (s Step) String() string { return named("Step", int(s), stepNames) }

// MarshalText returns String.
func (s Step) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (s *Step) UnmarshalText(text []byte) error { return byName(s, string(text), stepNames) }

// MarshalText returns String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (o *Outcome) UnmarshalText(text []byte) error { return byName(o, string(text), outcomeNames) }

// byName sets v to the constant of that name.
func byName[T ~int](v *T, name string, names []string) error {
	if v == nil {
		return errNilReceiver
	}
	i := slices.Index(names, name)
	if i < 0 {
		return fmt.Errorf("cardwire: %s must be one of %s", reflect.TypeFor[T]().Name(), strings.Join(names, ", "))
	}
	*v = T(i)
	return nil
}

// NextStep returns what to do after a call that returned err: StepDone for nil, StepReconcile
// for an error with no [*Error] in it, or several. A program that follows it never gets an
// order executed twice, and never marks an executed order as failed.
//
// After a read, or an upload that was not executed, it is StepFail if a parameter is invalid or
// the service refused with 400, 404, 405, 413, 415 or 422, and otherwise StepRetry. After another
// write that was refused, it is StepFail unless the refusal may not be about the request: with
// 401, 403, 405, 413, 415 or 429, with a 404 of a CreateTransfer, which names nothing that could be
// missing, or without an envelope, which does not come from the service itself. Except after
// 429, a person must then correct the cause, as that of [ErrSetup]. Only a card operation may be canceled
// or retried again after StepFail.
func NextStep(err error) Step {
	if err == nil {
		return StepDone
	}
	step, _ := theError(err).decision()
	return step
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
