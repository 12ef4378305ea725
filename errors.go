package cardwire

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/mask"
)

// The sentinels of this package are only for use with [errors.Is].
var (
	// ErrUnauthorized, ErrNotFound and ErrRateLimited match an [Error] with the HTTP status or
	// code 401, 404 or 429.
	ErrUnauthorized = ofNumber("cardwire: the API key was not accepted", http.StatusUnauthorized)
	ErrNotFound     = ofNumber("cardwire: not found", http.StatusNotFound)
	ErrRateLimited  = ofNumber("cardwire: too many requests", http.StatusTooManyRequests)

	// ErrInvalidParams means that a parameter, which the error names, is invalid.
	ErrInvalidParams = newSentinel("cardwire: invalid parameters")
	// ErrSetup means that the client, an option, the profile or the key is wrong.
	ErrSetup = newSentinel("cardwire: invalid setup")
	// ErrUnreadable means that a response, or JSON to unmarshal, is not what the API documents.
	ErrUnreadable = newSentinel("cardwire: the response is unreadable")
	// ErrElements means that some elements of a list, or cards of a page, are unreadable: see
	// Error.Elements. The others are returned too. It is an ErrUnreadable.
	ErrElements = &sentinel{message: "cardwire: some elements are unreadable", broader: ErrUnreadable}
	// ErrResponseTooLarge means that the response exceeds WithMaxResponseBytes.
	ErrResponseTooLarge = newSentinel("cardwire: the response is too large")
	// ErrRedirect means that the response is a redirect, or that a [Doer] followed one.
	ErrRedirect = newSentinel("cardwire: the response is a redirect")
	// ErrParameterIgnored means that the response, which is returned too, contradicts a
	// parameter: its name in [Profile] is probably wrong.
	ErrParameterIgnored = newSentinel("cardwire: the service ignored a parameter")
	// ErrDuplicateIntent means that the reference is not free, and nothing was sent: see [DuplicateIntent].
	ErrDuplicateIntent = newSentinel("cardwire: this reference was used before")
	// ErrOtherBody means that nothing was sent, because the reference was used for a different
	// request. If nothing was executed under it, it is now closed, and the outcome is
	// OutcomeNotSent. Otherwise the outcome is OutcomeUnknown, even if the other request was
	// executed, and the error also matches ErrDuplicateIntent.
	ErrOtherBody = newSentinel("cardwire: this reference was already used for a different request")
	// ErrDrift means that the response, which is returned too, has a [Drift]. Only
	// [WithStrictDrift] makes that an error.
	ErrDrift = newSentinel("cardwire: the response deviates from the API")
)

type sentinel struct {
	message string
	number  int   // it matches an Error with this HTTP status or code; 0: only errors that wrap it
	broader error // the sentinel of which this is a case; nil: none
}

func newSentinel(message string) error { return &sentinel{message: message} }

func ofNumber(message string, number int) error { return &sentinel{message: message, number: number} }

func (s *sentinel) Error() string { return s.message }
func (s *sentinel) Unwrap() error { return s.broader }

// Error is the error of every failed call. It contains no body, query or key, and no card number
// unless that is the caller's Reference.
//
// A stub sets Op, Outcome and Err: of a write [ErrInvalidParams] makes StepFail of OutcomeNotSent,
// and a [*DuplicateIntent] that is InProgress makes StepWait of OutcomeUnknown.
type Error struct {
	Op         Op                  // the operation; "": it is of New
	Outcome    Outcome             // whether it happened. A failed read changed nothing, whatever this is.
	HTTPStatus int                 // the status of the last response; 0: there was none
	Code       int                 // the code of the envelope; 0: none was readable
	Message    string              // the service's msg, at most 256 bytes, without key and card numbers; "": none
	RequestID  string              // the service's identifier of the exchange, masked like Message; "": none
	Reference  string              // the caller's identifier of a write; a UUID is in lower case; "": none, or invalid
	Page       int                 // the ListCardsParams.Page from which AllPages and AllCards resume; 0: none
	RetryAfter time.Duration       // how long to wait, at most an hour; until the SendBy of a call in progress; 0: unknown
	ServiceID  string              // the service's identifier of what was executed, now or before; "": unknown
	Attempts   []Attempt           // the requests; nil if the first was the only one and got a response
	ReadOnly   bool                // whether the operation changes nothing
	Elements   []UnreadableElement // those that could not be read, with ErrElements; nil: none
	Err        error               // the cause; nil: none. A stub sets a sentinel, or a *[DuplicateIntent].

	codeSent  bool      // Code is what the service sent, if it is 0
	settledBy time.Time // when it is certain what a cancel or a retry of unknown outcome did; zero: not known
}

// UnreadableElement is an element of a list that could not be read.
type UnreadableElement struct {
	Index int    // its place in the list or on the page, from 0
	ID    string // its id or bin; "": unreadable too, or not of an identifier's form
	Err   error  // why, with its place, as in data.data[6].available, and without its value
}

func (e UnreadableElement) describe() string {
	return e.Err.Error() + ifTrue(e.ID != "", " (ID "+e.ID+")")
}

// elementsError is the cause for elements that could not be read, of which there is one at least.
func elementsError(elements []UnreadableElement) error {
	n := ifTrue(len(elements) > 1, strconv.Itoa(len(elements))+", the first is ")
	return detailed(ErrElements, n+elements[0].describe())
}

// Attempt is one request of a call.
type Attempt struct {
	Start      time.Time     // when the attempt began
	Duration   time.Duration // how long it took, to the last byte of the response
	Phase      string        // how far it got: "connect", "sent" or "received"
	HTTPStatus int           // the status of the response; 0: there was none
	Wait       time.Duration // the pause before the next attempt; 0: there was none
	Resent     bool          // whether the client of WithHTTPClient sent a write more than once
}

// Error reports what failed, what is known, why, and what to do.
func (e *Error) Error() string {
	switch {
	case e == nil:
		return "<nil>" // as fmt prints a nil pointer
	case e.Op == "" && e.Outcome == OutcomeNotSent && e.Err != nil:
		return e.Err.Error() // of New: there is no call
	}
	_, advice := e.decision()
	// "success" would contradict the error.
	message := ifTrue(e.Message != "" && !isSuccessMessage(e.Message), ", "+strconv.Quote(e.Message))
	return "cardwire: " + string(e.Op) + ifTrue(e.Reference != "", " "+e.Reference) + ": " + e.reason(message+
		ifTrue(e.RequestID != "", ", request ID "+e.RequestID)+
		ifTrue(e.Page != 0, ", page "+strconv.Itoa(e.Page))+
		ifTrue(len(e.Attempts) > 1, ", "+strconv.Itoa(len(e.Attempts))+" attempts")) + ": " + advice
}

// reason returns what is known of the call, and why. details is "", or has the service's own words.
func (e *Error) reason(details string) string {
	reason := e.outcomeInWords() + ifTrue(e.HTTPStatus != 0, ", HTTP "+strconv.Itoa(e.HTTPStatus)) +
		ifTrue(e.Code != 0 || e.codeSent, ", code "+strconv.Itoa(e.Code)) + details
	if e.Err != nil {
		reason += ": " + strings.TrimPrefix(e.Err.Error(), "cardwire: ")
	}
	return reason
}

func ifTrue(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// outcomeInWords returns the outcome in words. Whether a read was executed does not matter.
func (e *Error) outcomeInWords() string {
	switch {
	case e.Outcome == OutcomeUnknown && !e.ReadOnly:
		return "unknown outcome"
	case e.Outcome == OutcomeNotSent:
		return "not sent"
	case e.ReadOnly && e.Outcome != OutcomeRefused:
		return "failed"
	}
	return e.Outcome.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Is matches the sentinels of the error's status and code.
func (e *Error) Is(target error) bool {
	s, ok := target.(*sentinel) // not errors.AsType: a sentinel that target wraps is another error
	return ok && e != nil && s.number != 0 && e.has(s.number)
}

func (e *Error) has(number int) bool { return e.HTTPStatus == number || e.Code == number }

// explained is an error with its own message that wraps what errors.Is and errors.As find.
type explained struct {
	message string
	wrapped error
}

func (e *explained) Error() string { return e.message }
func (e *explained) Unwrap() error { return e.wrapped }

// detailed returns an error of that kind. It omits the kind's name if detail begins with "the response is".
func detailed(kind error, detail string) error {
	if strings.HasPrefix(detail, "the response is ") {
		return &explained{"cardwire: " + detail, kind}
	}
	return &explained{kind.Error() + ": " + detail, kind}
}

// ignored returns the error for a parameter whose name may be wrong in that field of Profile.
func ignored(what, field string) error {
	return detailed(ErrParameterIgnored, what+": see Profile."+field)
}

func invalid(detail string) error { return detailed(ErrInvalidParams, detail) }

func badSetup(detail string) error { return detailed(ErrSetup, detail) }

// checked returns the first error as an invalid parameter, or nil.
func checked(errs ...error) error {
	if err := cmp.Or(errs...); err != nil {
		return invalid(err.Error())
	}
	return nil
}

// errExplained is that of a journal which says what is wrong, and stays so until somebody corrects it.
var errExplained = errors.New("cardwire: what is wrong is known")

// safeMessage is the method of an error whose message may be shown: see [Journal].
type safeMessage interface {
	error
	SafeMessage() string
}

// hiddenCause is for errors from caller code. It has its own message, because that of the
// cause may contain anything. errors.Is finds the cause, but no cardwire sentinel in it: a
// key source or a doer may itself call this package, and that call's outcome is not this one's.
type hiddenCause struct {
	message string
	cause   mask.Hidden[error]
	typed   bool // errors.As finds what is in the cause
}

func hideCause(message string, cause error) error {
	return &hiddenCause{message, mask.Hide(cause), false}
}

// hideTransport is for an error of the transport, which lets errors.As find only harmless types.
func hideTransport(err error) error {
	return &hiddenCause{err.Error(), mask.Hide(err), true}
}

// hideKeySource is for an error of a key source. Only a message that is safe is shown.
func hideKeySource(err error) error {
	message := "the key source failed"
	if safe := safeWords(err); safe != "" {
		message += ": " + safe
	}
	return &hiddenCause{message, mask.Hide(err), true}
}

// safeWords returns the message of the error in err that says that its own is safe; "": there is none.
func safeWords(err error) string {
	if safe, ok := errors.AsType[safeMessage](err); ok && !check.Nil(safe) {
		return mask.Message(strings.TrimPrefix(safe.SafeMessage(), "cardwire: "), "")
	}
	return ""
}

func (c *hiddenCause) Error() string { return c.message }

func (c *hiddenCause) Is(target error) bool {
	_, isSentinel := target.(*sentinel)
	return !isSentinel && errors.Is(c.cause(), target)
}

func (c *hiddenCause) As(target any) bool {
	switch target.(type) {
	case **Error, **DuplicateIntent: // of another call
		return false
	}
	return c.typed && errors.As(c.cause(), target)
}
