package cardwire

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode"
)

// facts are what the transport and the reader found out about a call.
type facts struct {
	unsent     error // why nothing was sent; nil: something may have been
	resent     bool  // more than one request was written for one attempt
	lost       error // why there is no response that could be read; nil: there is one
	elsewhere  error // the response is a redirect, or to another request; nil: it is not
	status     int
	read       bool  // the body is an object with a code
	unreadable error // why the body is not that, or data is not what op returns; nil: both are
	bare       bool  // the body is certainly no envelope
	hasMessage bool
	code       int
	message    string
	data       evidence
	ignored    error // which parameter the service ignored; nil: none
	referenced bool  // the operation is a write with a reference
}

type evidence uint8

const (
	proofless  evidence = iota // it is absent, of another kind, or without an identifier
	thisOrder                  // it names this operation, but is otherwise unreadable
	readable                   // it is what the operation returns, of this operation
	otherOrder                 // it names another order
)

// judge returns from the facts whether the call happened, and why that is not a success; nil
// with OutcomeExecuted: it is a success. The first case that applies counts.
func judge(p *Profile, f *facts) (Outcome, error) {
	done := f.read && f.succeeded()
	switch {
	case f.unsent != nil:
		// nothing was sent
		return OutcomeNotSent, f.unsent
	case f.resent && !(done && f.data == readable):
		// one attempt wrote more than one request, and the last response is not a success
		return OutcomeUnknown, resent(cmp.Or(f.lost, f.elsewhere, f.unreadable))
	case f.lost != nil:
		// sent, and no readable response: reset, end, timeout, cancellation, or too large
		return OutcomeUnknown, f.lost
	case f.elsewhere != nil:
		// a redirect, which is never followed, or a response to another request
		return OutcomeUnknown, f.elsewhere
	case done && f.data == readable:
		// 2xx, code 200, data that is readable and of this operation
		return OutcomeExecuted, nil
	case done && f.data == otherOrder:
		// 2xx, code 200, data that names another order
		return OutcomeUnknown, f.unreadable
	case done && f.data == thisOrder && !f.contradicted():
		// 2xx, code 200, a success message or none, data unreadable except for the identifier or our reference
		return OutcomeExecuted, f.unreadable
	case done:
		// 2xx, code 200, other data
		return OutcomeUnknown, f.unreadable
	case f.exists(p):
		// a code or a message that says that the reference exists, or data that names this order
		return OutcomeUnknown, nil
	case f.status/100 == 2 && f.refuses() && slices.Contains(p.RefusedCodes, f.code):
		// 2xx, a refusal whose code is in RefusedCodes
		return OutcomeRefused, nil
	case slices.Contains(p.RefusedStatuses, f.status) && f.refuses() && f.code/100 != 5 && f.code != codeSuccess:
		// 4xx in RefusedStatuses, a refusal whose code is not 200 and not 500 to 599
		return OutcomeRefused, nil
	case slices.Contains(p.BareRefusedStatuses, f.status) && f.bare:
		// 4xx in BareRefusedStatuses, a body that is certainly no envelope
		return OutcomeRefused, f.unreadable
	default:
		// anything else
		return OutcomeUnknown, f.unreadable
	}
}

// resent returns the cause of a call whose Doer sent the request again by itself. why is the
// reason that the last response is not a success; nil: it is readable.
func resent(why error) error {
	const detail = "the HTTP client sent the request more than once: see WithHTTPClient"
	if why == nil {
		return errors.New(detail)
	}
	return detailed(why, detail)
}

func (f *facts) succeeded() bool { return f.status/100 == 2 && f.code == codeSuccess }

// refuses reports whether the body is a refusal: an envelope without a success message.
func (f *facts) refuses() bool {
	return f.read && f.hasMessage && !isSuccessMessage(f.message)
}

// contradicted reports whether the message contradicts the code of a success.
func (f *facts) contradicted() bool { return f.message != "" && !isSuccessMessage(f.message) }

// exists reports whether the response may be to a second delivery of a request that was
// executed: a gateway may have sent it twice.
func (f *facts) exists(p *Profile) bool {
	if !f.read {
		return false
	}
	message := lettersOf(f.message)
	said := func(phrase string) bool { return strings.Contains(message, lettersOf(phrase)) }
	return slices.Contains(p.DuplicateCodes, f.code) ||
		f.referenced && (f.data == thisOrder || slices.ContainsFunc(p.DuplicateMessages, said))
}

// lettersOf returns the letters and digits of a message in lower case: some write
// ORDER_ALREADY_EXISTS.
func lettersOf(message string) string {
	other := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.ToLower(strings.Join(strings.FieldsFunc(message, other), ""))
}

// isSuccessMessage reports whether a message is that of a success. A missing one is not.
func isSuccessMessage(message string) bool {
	return message == messageSuccess || message == messageUploaded
}
