package cardwire

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/transport"
)

// The sentinels of this package are only for use with [errors.Is].
var (
	// ErrOutcomeUnknown matches an [Error] with OutcomeUnknown.
	ErrOutcomeUnknown = errors.New("cardwire: the outcome is unknown")
	// ErrNotSent matches an [Error] with OutcomeNotSent.
	ErrNotSent = errors.New("cardwire: nothing was sent")
	// ErrRefused matches an [Error] with OutcomeRefused.
	ErrRefused = errors.New("cardwire: the service refused")
	// ErrExecuted matches an [Error] with OutcomeExecuted.
	ErrExecuted = errors.New("cardwire: it was executed")

	// ErrUnauthorized matches an [Error] with the HTTP status or code 401.
	ErrUnauthorized = errors.New("cardwire: the API key was not accepted")
	// ErrNotFound matches an [Error] with the HTTP status or code 404.
	ErrNotFound = errors.New("cardwire: not found")
	// ErrRateLimited matches an [Error] with the HTTP status or code 429. Its
	// RetryAfter says how long to wait, if the service said so.
	ErrRateLimited = errors.New("cardwire: too many requests")

	// ErrInvalidParams says that a parameter was refused before anything was
	// sent. The text names it.
	ErrInvalidParams = errors.New("cardwire: invalid parameters")
	// ErrUnreadable says that the answer is not what the interface promises.
	ErrUnreadable = errors.New("cardwire: the answer is unreadable")
	// ErrResponseTooLarge says that the answer exceeds WithMaxResponseBytes, or
	// 64 KiB as the answer to a write.
	ErrResponseTooLarge = errors.New("cardwire: the answer is too large")
	// ErrRedirect says that the answer was a redirect, which is never followed, or
	// that a caller's Doer followed one.
	ErrRedirect = errors.New("cardwire: the answer is a redirect")
	// ErrParameterIgnored says that the answer contradicts a parameter that was
	// sent: the service did not honour it, probably because it knows it by
	// another name. See [Profile].
	ErrParameterIgnored = errors.New("cardwire: the service ignored a parameter")
	// ErrDuplicateIntent says that the reference is in flight or taken, and that
	// this call sent nothing. The Outcome is that of the reference.
	ErrDuplicateIntent = errors.New("cardwire: the reference is taken")
	// ErrOtherBody says that the journal has the reference with another body, and
	// that this call sent nothing. What is meant now needs a reference of its own;
	// if it is meant in place of the first, only once that is known not to have
	// happened. Unless it is known so, the error is also an ErrDuplicateIntent, and
	// the Outcome is unknown even where the first was executed: this was not it.
	ErrOtherBody = errors.New("cardwire: the reference stands for another body")
	// ErrDrift says, under WithStrictDrift, that the answer deviates from the
	// interface in a way that is tolerated otherwise.
	ErrDrift = errors.New("cardwire: the answer deviates from the interface")
)

// Error is the error of every failed call. Neither its text nor what it wraps
// holds a body, a query, a key or a card number.
type Error struct {
	// Op is the operation, named like the method: "CreateTransfer".
	Op string
	// Outcome says whether it happened. A failed read changed nothing, whatever
	// its outcome.
	Outcome Outcome
	// HTTPStatus is the status of the last answer; 0: there was none.
	HTTPStatus int
	// Code is the code of the envelope; 0: none was readable.
	Code int
	// Message is the service's msg, of at most 256 bytes; "": none. The client's
	// key, runs of 12 and more digits, also in groups as on a card, and what does
	// not print are masked.
	Message string
	// RequestID is the service's identifier of the exchange, from X-Request-Id,
	// Request-Id or X-Correlation-Id; "": none.
	RequestID string
	// Reference is the merchant order number or client transaction ID that the
	// call was made under; "": the operation has none.
	Reference string
	// Page is where AllCards resumes: pass it as ListCardsParams.Page. 0 for
	// every other operation.
	Page int
	// RetryAfter is how long the service asks to wait; 0: it did not.
	RetryAfter time.Duration
	// Attempts are the requests that were made; nil where the first was the only
	// one and was answered.
	Attempts []Attempt

	read bool // a read changes nothing; an Error that nobody filled in is a write's
	err  error
}

// Attempt is one request of a call.
type Attempt struct {
	// Start is when the attempt began.
	Start time.Time
	// Duration is how long it took, to the last byte of the answer.
	Duration time.Duration
	// Phase is how far it came: "connect", "sent" or "answered".
	Phase string
	// HTTPStatus is the answer's status; 0: no answer.
	HTTPStatus int
	// Wait is the pause before the next attempt; 0: there was none.
	Wait time.Duration
}

func attempts(list []transport.Attempt) []Attempt {
	if list == nil {
		return nil
	}
	out := make([]Attempt, len(list))
	for i, a := range list {
		out[i] = Attempt(a)
	}
	return out
}

// Error says what failed, whether it happened and what to do next.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>" // as fmt prints a nil pointer
	}
	var b strings.Builder
	b.WriteString("cardwire: " + e.Op + ": " + e.Outcome.String())
	if e.HTTPStatus != 0 {
		b.WriteString(", HTTP " + strconv.Itoa(e.HTTPStatus))
	}
	if e.Code != 0 {
		b.WriteString(", code " + strconv.Itoa(e.Code))
	}
	if e.Message != "" && !meansYes(e.Message) { // a yes is not what failed
		b.WriteString(", " + strconv.Quote(e.Message))
	}
	if e.RequestID != "" {
		b.WriteString(", request ID " + e.RequestID)
	}
	if e.Page != 0 {
		b.WriteString(", page " + strconv.Itoa(e.Page))
	}
	if e.err != nil {
		b.WriteString(": " + strings.TrimPrefix(e.err.Error(), "cardwire: "))
	}
	b.WriteString(": " + e.advice())
	return b.String()
}

// advice is the next step. It follows the outcome first: no status, code or
// cause may make what is unknown sound undone.
func (e *Error) advice() string {
	switch taken := errors.Is(e.err, ErrDuplicateIntent); {
	case taken && errors.Is(e.err, ErrOtherBody):
		return "settle what it stands for, and give this a reference of its own; this call sent nothing"
	case errors.Is(e.err, ErrOtherBody):
		return "give this a reference of its own; nothing was sent"
	case taken && e.Outcome == OutcomeExecuted:
		return "it was done before; this call sent nothing"
	case taken:
		return "settle the reference before calling again; this call sent nothing"
	}
	switch {
	case e.Outcome == OutcomeNotSent && errors.Is(e.err, ErrInvalidParams):
		return "correct it and call again; nothing was sent"
	case e.Outcome == OutcomeNotSent:
		return "nothing was sent; it is safe to call again"
	case e.Outcome == OutcomeRefused && e.has(http.StatusTooManyRequests) && e.RetryAfter > 0:
		return "nothing happened; wait " + e.RetryAfter.String() + " and call again"
	case e.Outcome == OutcomeRefused && e.has(http.StatusTooManyRequests):
		return "nothing happened; wait and call again"
	case e.Outcome == OutcomeRefused && e.has(http.StatusUnauthorized):
		return "nothing happened; check the API key"
	case e.Outcome == OutcomeRefused:
		return "nothing happened; correct the request before calling again"
	case e.read && errors.Is(e.err, ErrParameterIgnored):
		return "correct it there, or do without the parameter"
	case e.read:
		return "nothing was changed; calling again is safe"
	case e.Outcome == OutcomeExecuted:
		return "it was done; do not call again to do it"
	}
	return "it may have happened; settle it with the service before doing it again"
}

// Unwrap returns the cause, which [errors.Is] and [errors.As] look through.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.err
}

// Is matches the sentinels that stand for an outcome, a status or a code.
func (e *Error) Is(target error) bool {
	if e == nil {
		return false
	}
	switch target {
	case ErrOutcomeUnknown:
		return e.Outcome == OutcomeUnknown
	case ErrNotSent:
		return e.Outcome == OutcomeNotSent
	case ErrRefused:
		return e.Outcome == OutcomeRefused
	case ErrExecuted:
		return e.Outcome == OutcomeExecuted
	case ErrUnauthorized:
		return e.has(http.StatusUnauthorized)
	case ErrNotFound:
		return e.has(http.StatusNotFound)
	case ErrRateLimited:
		return e.has(http.StatusTooManyRequests)
	}
	return false
}

func (e *Error) has(number int) bool { return e.HTTPStatus == number || e.Code == number }

func (e *Error) keepsValue() bool {
	return errors.Is(e.err, ErrParameterIgnored) || errors.Is(e.err, ErrDrift)
}

// problem is a sentinel with words of its own.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.kind.Error() + ": " + p.text }
func (p *problem) Unwrap() error { return p.kind }

// ignored says what shows that the service did not honour a parameter, and which
// field of Profile may hold a wrong name for it.
func ignored(what, field string) error {
	return &problem{ErrParameterIgnored, what + ": see Profile." + field}
}

func invalid(text string) error { return &problem{ErrInvalidParams, text} }

// checked returns the first error as an invalid parameter, or nil.
func checked(errs ...error) error {
	if err := cmp.Or(errs...); err != nil {
		return invalid(err.Error())
	}
	return nil
}

// concealed is for errors of the caller's functions, and tells what went wrong in
// words of our own, because those of the cause may hold anything. The cause is
// found by errors.Is, and stands behind a closure so that no printing reaches it.
type concealed struct {
	text string
	is   func(error) bool
}

// conceal hides also what the cause says of another call, as of a key source
// that calls a service by this package: it would be taken for this one's.
func conceal(text string, cause error) error {
	return &concealed{text, func(target error) bool { return !isSentinel(target) && errors.Is(cause, target) }}
}

func (c *concealed) Error() string        { return c.text }
func (c *concealed) Is(target error) bool { return c.is(target) }

// foreign is for errors of the transport, which has sealed them: its words are
// safe. A doer or a limiter of the caller's may have wrapped another call's Error
// in one, and that call's outcome, status and reason are not this one's.
type foreign struct{ cause error }

func (f *foreign) Error() string        { return f.cause.Error() }
func (f *foreign) Is(target error) bool { return !isSentinel(target) && errors.Is(f.cause, target) }
func (f *foreign) As(target any) bool   { return errors.As(f.cause, target) }

// isSentinel says whether target is an error of this package to compare with.
func isSentinel(target error) bool {
	return slices.Contains([]error{
		ErrOutcomeUnknown, ErrNotSent, ErrRefused, ErrExecuted,
		ErrUnauthorized, ErrNotFound, ErrRateLimited,
		ErrInvalidParams, ErrUnreadable, ErrResponseTooLarge, ErrRedirect,
		ErrParameterIgnored, ErrDuplicateIntent, ErrOtherBody, ErrDrift,
	}, target)
}
