package cardwire

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/mask"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Outcome reports whether a failed call happened. Its zero value is OutcomeUnknown, so
// that nothing unresolved is ever taken for executed, or for not executed.
type Outcome int

const (
	// OutcomeUnknown means that the operation may have been executed. Ask the service
	// before sending anything that would execute it again.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent means that this call did nothing: no byte of its request left. An
	// earlier call with the same reference is not affected.
	OutcomeNotSent
	// OutcomeRefused means that the service refused: nothing was executed.
	OutcomeRefused
	// OutcomeExecuted means that the operation was executed: by this call, whose response
	// is unreadable or not what was asked for, or by an earlier one with the reference.
	OutcomeExecuted
)

// String returns "unknown", "not sent", "refused" or "executed".
func (o Outcome) String() string {
	return named("Outcome", int(o), []string{
		OutcomeUnknown: "unknown", OutcomeNotSent: "not sent", OutcomeRefused: "refused", OutcomeExecuted: "executed",
	})
}

// named returns the name of the constant n, or "Kind(n)" if it has none.
func named(kind string, n int, names []string) string {
	if n < 0 || n >= len(names) || names[n] == "" {
		return kind + "(" + strconv.Itoa(n) + ")"
	}
	return names[n]
}

// response is what is known of the last response.
type response struct {
	status     int
	code       int // 0: none was readable, unless codeSent
	codeSent   bool
	message    string
	requestID  string
	retryAfter time.Duration
	attempts   []Attempt
	tries      int
	attempt    *transport.Attempt // the last one, if it is to be logged; nil: none
}

// judge is the outcome table: it decides from the response whether the call happened,
// and releases the response.
func (k *call) judge(ctx context.Context, r *transport.Response) *Error {
	defer r.Release()
	defer k.capture(r)
	k.last.tries += r.Tries
	k.last.status = r.Status
	k.last.retryAfter = r.RetryAfter
	k.last.attempts = attempts(r.Attempts)
	k.last.requestID = mask.RequestID(r.Header, k.key())
	switch {
	case r.NotSent:
		return k.fail(OutcomeNotSent, &transportError{r.Err})
	case r.Redirected:
		return k.fail(OutcomeUnknown, redirected(mask.Message(r.RedirectHost, k.key())))
	case errors.Is(r.Err, transport.ErrTooLarge):
		return k.fail(OutcomeUnknown, ErrResponseTooLarge)
	case r.Err != nil:
		return k.fail(OutcomeUnknown, &transportError{r.Err})
	}
	body := wire.NewReader(r.Body, k.client.watchesDrift())
	defer body.Release()
	body.Masking = k.client.maskedCards
	k.envelope = envelope{result: k.result, proves: k.op.proves, success: r.Status >= 200 && r.Status <= 299}
	e := &k.envelope
	e.decode(body)
	if body.Err() == nil {
		k.last.code, k.last.codeSent = e.code, e.hasCode
		k.last.message = e.message
		if e.message != messageSuccess {
			k.last.message = mask.Message(e.message, k.key())
		}
	}
	switch {
	case body.Err() == nil && slices.Contains(k.client.profile.DuplicateCodes, e.code):
		return k.fail(OutcomeUnknown, nil)
	case e.success && body.Err() == nil && e.code == codeSuccess:
		return k.judgeSuccess(ctx, e, body)
	}
	return k.judgeFailure(e, body, r)
}

// judgeSuccess judges a response with a status from 200 to 299 and the code 200.
func (k *call) judgeSuccess(ctx context.Context, e *envelope, body *wire.Codec) *Error {
	drift := k.client.drifted(ctx, k.op, body.Drifts())
	if e.mismatch != nil {
		outcome := OutcomeUnknown
		// A message that contradicts the code leaves what is proven in doubt.
		if e.proven && (e.message == "" || isSuccessMessage(e.message)) {
			outcome = OutcomeExecuted
		}
		return k.fail(outcome, unreadable(e.mismatch))
	}
	if err := k.check(); err != nil {
		return k.fail(verdict(err), err)
	}
	if drift != nil {
		return k.fail(OutcomeExecuted, drift)
	}
	return nil
}

// check returns why a readable response does not belong to this request.
func (k *call) check() error {
	for file := range k.op.parts.Files() {
		if err := file.Check(); err != nil {
			return err
		}
	}
	return k.result.verify()
}

// verdict returns the outcome of a readable response that is not what was asked for: it
// proves nothing if it may belong to another request.
func verdict(err error) Outcome {
	if errors.Is(err, ErrParameterIgnored) {
		return OutcomeExecuted
	}
	return OutcomeUnknown
}

// judgeFailure judges every other response. It is a refusal only if both the HTTP status
// and the envelope say so, and nothing in it contradicts that.
func (k *call) judgeFailure(e *envelope, body *wire.Codec, r *transport.Response) *Error {
	p := &k.client.profile
	switch {
	case body.Err() != nil && slices.Contains(p.BareRefusedStatuses, k.last.status) && k.op.isBare(r):
		return k.fail(OutcomeRefused, unreadable(body.Err()))
	case body.Err() != nil && e.success:
		return k.fail(OutcomeUnknown, unreadable(body.Err()))
	case body.Err() != nil, !e.isEnvelope(), isSuccessMessage(e.message):
		return k.fail(OutcomeUnknown, nil)
	case e.success && !slices.Contains(p.RefusedCodes, e.code),
		!e.success && !slices.Contains(p.RefusedStatuses, k.last.status),
		!e.success && (e.code == codeSuccess || e.code >= 500 && e.code <= 599):
		return k.fail(OutcomeUnknown, nil)
	case e.deferred && k.op.isClaimed() && (body.Mentions(e.data, k.op.reference) || k.op.isProven(body, e.data)):
		return k.fail(OutcomeUnknown, nil) // what it refuses may be a second delivery
	}
	return k.fail(OutcomeRefused, nil)
}

// isBare reports whether a response certainly has no envelope. That to a write may have
// had one if it is compressed, which no write asks for, or was cut off before its first
// byte; and if it contains the reference, it may mean anything.
func (s *spec) isBare(r *transport.Response) bool {
	if s.class != transport.Write {
		return wire.IsBare(r.Body, true)
	}
	return wire.IsBare(r.Body, !r.MayBeCut) && !isEncoded(r.Header) && !s.isNamedIn(r.Body)
}

func isEncoded(h http.Header) bool {
	encoding := h.Get("Content-Encoding")
	return encoding != "" && !strings.EqualFold(encoding, "identity")
}

// isNamedIn reports whether a body that is no envelope contains the reference, in any
// letter case.
func (s *spec) isNamedIn(body []byte) bool {
	return s.isClaimed() && bytes.Contains(bytes.ToLower(body), bytes.ToLower([]byte(s.reference)))
}

// isProven reports whether the data at m would prove execution under another code.
func (s *spec) isProven(c *wire.Codec, m wire.Mark) bool {
	if s.proves == nil {
		return false
	}
	c.Rewind(m)
	return s.proves(c)
}

// doubt makes a failure unknown if its request was sent more than once: what the last
// response says proves nothing about the others.
func (e *Error) doubt(r *transport.Response) {
	const detail = "the HTTP client sent the request more than once: see WithHTTPClient"
	switch {
	case !r.Resent, e.Outcome == OutcomeExecuted:
	case e.Err == nil:
		e.Outcome, e.Err = OutcomeUnknown, errors.New(detail)
	default:
		e.Outcome, e.Err = OutcomeUnknown, &detailError{e.Err, detail}
	}
}

// redirected returns the error of a redirect that leads to a host; "": it is unknown.
func redirected(host string) error {
	if host == "" {
		return &detailError{ErrRedirect, "check the base URL"}
	}
	return &detailError{ErrRedirect, "it leads to " + host + ": check the base URL"}
}

func unreadable(err *wire.Error) error { return &detailError{ErrUnreadable, err.Error()} }
