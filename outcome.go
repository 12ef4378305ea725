package cardwire

import (
	"bytes"
	"cmp"
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

// Outcome reports whether a failed call happened. Its zero value is OutcomeUnknown.
type Outcome int

const (
	// OutcomeUnknown means that the operation may have been executed.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent means that this call did nothing. An earlier one may have done
	// something.
	OutcomeNotSent
	// OutcomeRefused means that the service refused: nothing was executed.
	OutcomeRefused
	// OutcomeExecuted means that the operation was executed, by this call or an earlier
	// one.
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

// judge has the response judged, reports what is odd about it, and releases it.
func (k *call) judge(ctx context.Context, r *transport.Response) *Error {
	defer r.Release()
	defer k.capture(r)
	k.last.tries += r.Tries
	k.last.status = r.Status
	k.last.retryAfter = r.RetryAfter
	k.last.attempts = attempts(r.Attempts)
	k.last.requestID = mask.RequestID(r.Header, k.key())
	f, drifts := k.facts(r)
	drift := k.client.drifted(ctx, k.op, drifts)
	outcome, cause := judge(&k.client.profile, f)
	if outcome != OutcomeExecuted {
		return k.fail(outcome, cause)
	}
	if err := cmp.Or(cause, f.ignored, drift); err != nil {
		return k.fail(OutcomeExecuted, err)
	}
	return nil
}

// facts reads the response, and returns how a success deviates from the API.
func (k *call) facts(r *transport.Response) (*facts, []wire.Drift) {
	f := &facts{status: r.Status, resent: r.Resent, referenced: k.op.isClaimed()}
	switch {
	case r.NotSent:
		f.unsent = &transportError{r.Err}
	case r.Redirected:
		f.elsewhere = redirected(mask.Message(r.RedirectHost, k.key()))
	case errors.Is(r.Err, transport.ErrTooLarge):
		f.lost = ErrResponseTooLarge
	case r.Err != nil:
		f.lost = &transportError{r.Err}
	default:
		return f, k.read(r, f)
	}
	return f, nil
}

// read reads the body.
func (k *call) read(r *transport.Response, f *facts) []wire.Drift {
	body := wire.NewReader(r.Body, k.client.watchesDrift())
	body.Masking = k.client.maskedCards
	k.envelope = envelope{result: k.result, proves: k.op.proves, success: f.isSuccess()}
	e := &k.envelope
	e.decode(body)
	if err := body.Err(); err != nil {
		f.unreadable, f.bare = unreadable(err), k.op.isBare(r)
		if r.Status >= 500 && wire.IsBare(r.Body, true) {
			f.unreadable = &detailError{ErrUnreadable, "the response is from a gateway in front of the service"}
		}
		return nil
	}
	f.read, f.code, f.hasMessage, f.message = true, e.code, e.hasMessage, e.message
	k.last.code, k.last.codeSent, k.last.message = e.code, e.hasCode, e.message
	if e.message != messageSuccess {
		k.last.message = mask.Message(e.message, k.key())
	}
	var drifts []wire.Drift
	if e.succeeded() {
		drifts = body.Drifts()
	}
	f.data = k.weigh(e, body, f)
	return drifts
}

// weigh returns what the data proves.
func (k *call) weigh(e *envelope, body *wire.Codec, f *facts) evidence {
	switch {
	case !e.succeeded():
		if e.deferred && f.referenced && (body.Mentions(e.data, k.op.reference) || k.op.isProven(body, e.data)) {
			return thisOrder
		}
		return proofless
	case e.mismatch != nil:
		f.unreadable = unreadable(e.mismatch)
		if e.proven {
			return thisOrder
		}
		return proofless
	}
	err := k.check()
	if errors.Is(err, ErrParameterIgnored) {
		f.ignored, err = err, nil
	}
	if err != nil {
		f.unreadable = err
		return otherOrder
	}
	return readable
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

// isBare reports whether a response certainly has no envelope. That to a write may have
// had one if it is compressed, which no write asks for, or was cut off before its first
// byte; and if it contains the reference, it may mean anything.
func (s *spec) isBare(r *transport.Response) bool {
	if s.class != transport.Write {
		return wire.IsBare(r.Body, true)
	}
	return wire.IsBare(r.Body, !r.MayBeCut) && !isEncoded(r.Header) && !s.isNamedIn(r.Body)
}

// isEncoded reports whether any Content-Encoding, of which there may be several, changes
// the body.
func isEncoded(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Encoding"), func(line string) bool {
		return line != "" && !strings.EqualFold(line, "identity")
	})
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

// redirected returns the error of a redirect that leads to a host; "": it is unknown.
func redirected(host string) error {
	if host == "" {
		return &detailError{ErrRedirect, "check the base URL"}
	}
	return &detailError{ErrRedirect, "it leads to " + host + ": check the base URL"}
}

func unreadable(err *wire.Error) error { return &detailError{ErrUnreadable, err.Error()} }
