package cardwire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/cardwire/cardwire-go/internal/mask"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// The code and the messages of a success.
const (
	codeSuccess     = 200
	messageSuccess  = "success"
	messageUploaded = "Uploaded"
)

// envelope is the {code, msg, data} of every response, with the facts for judge. Data is read
// only once the code is known to be that of a success.
type envelope struct {
	facts
	op       *operation
	place    wire.Mark   // where data is, if it was not read at once
	mismatch *wire.Error // why data, which is valid JSON, is not what the operation returns
	deferred bool        // data was skipped: it came before the code, or the code is not a success
	hasData  bool        // data is present, and the code is a success
}

var envelopeFields = []wire.FieldOf[envelope]{
	{Name: "code", Required: true, Value: func(c *wire.Codec, e *envelope) { e.readCode(c) }},
	{Name: "msg", Value: func(c *wire.Codec, e *envelope) { e.readMessage(c) }},
	{Name: "data", Value: func(c *wire.Codec, e *envelope) { e.reachData(c) }},
}

func (e *envelope) decode(c *wire.Codec) {
	wire.Object(c, e, envelopeFields, wire.Whole)
	c.End()
	if c.Err() != nil || !e.succeeded() || e.hasData {
		return
	}
	if !e.deferred {
		e.mismatch = wire.Missing("data")
		return
	}
	c.Rewind(e.place)
	e.readData(c)
}

// readCode refuses a number that is too long: it may be a card number, and errors contain the code.
func (e *envelope) readCode(c *wire.Codec) {
	wire.IntOf(c, &e.code, wire.Exact)
	if e.code > math.MaxInt32 || e.code < math.MinInt32 {
		c.Fail("a code")
	}
}

func (e *envelope) readMessage(c *wire.Codec) {
	e.hasMessage = c.Kind() == '"'
	message := c.Bytes(wire.Text)
	if e.message = messageSuccess; string(message) != messageSuccess { // which saves an allocation
		e.message = string(message[:min(len(message), maxRawMessage)])
	}
	if e.contradicted() {
		c.Drift("unknown success message") // reported with a success only
	}
}

// maxRawMessage bounds what is sanitized for the few bytes that are kept.
const maxRawMessage = 64 << 10

// reachData reads the data of a success. It checks other data, and remembers where it is.
func (e *envelope) reachData(c *wire.Codec) {
	if e.succeeded() {
		e.readData(c)
		return
	}
	e.place, e.deferred = c.Mark(), true
	c.Skip()
}

// readData reads the operation's data. If data is of the wrong kind, the rest of the
// response must still be valid before anything is concluded from it.
func (e *envelope) readData(c *wire.Codec) {
	mark := c.Mark()
	e.hasData = true
	e.op.read(c)
	if err := c.Err(); err != nil && !err.Malformed {
		e.mismatch = err
		if e.isProof(c, mark) {
			e.data = thisOrder
		}
		c.Rewind(mark)
		c.Skip()
	}
}

// isProof reports whether the data at m, which op.read did not accept, proves execution.
func (e *envelope) isProof(c *wire.Codec, m wire.Mark) bool {
	c.Rewind(m)
	return e.op.proves != nil && e.op.proves(c)
}

// judge has the response judged, reports its drift, and releases it.
func (k *call) judge(ctx context.Context, r *transport.Response) *Error {
	defer r.Release()
	if k.response != nil {
		defer k.capture(r)
	}
	k.tries += r.Tries
	k.last = Error{
		HTTPStatus: r.Status, RetryAfter: r.RetryAfter, RequestID: mask.RequestID(r.Header, k.key),
	}
	for _, a := range r.Attempts {
		k.last.Attempts = append(k.last.Attempts, Attempt(a))
	}
	var drift error
	if drifts := k.facts(r); len(drifts) > 0 {
		drift = k.drifted(ctx, drifts)
	}
	f := &k.envelope.facts
	outcome, cause := judge(&k.client.profile, f)
	if outcome == OutcomeExecuted {
		cause = cmp.Or(cause, f.ignored, drift)
	}
	if outcome == OutcomeExecuted && cause == nil {
		return nil
	}
	return k.fail(outcome, cause)
}

func (k *call) facts(r *transport.Response) []wire.Drift {
	k.envelope = envelope{
		facts: facts{status: r.Status, resent: r.Resent, referenced: k.op.isClaimed()}, op: &k.op,
	}
	f := &k.envelope.facts
	switch {
	case r.NotSent:
		f.unsent = ofTransport(r.Err)
	case r.Redirected:
		leads := when(r.RedirectHost != "", "it leads to "+mask.Message(r.RedirectHost, k.key)+": ")
		f.elsewhere = detailed(ErrRedirect, leads+"check the base URL")
	case errors.Is(r.Err, transport.ErrTooLarge):
		f.lost = ErrResponseTooLarge
	case r.Err != nil:
		f.lost = ofTransport(r.Err)
	default:
		return k.read(r)
	}
	return nil
}

func (k *call) capture(r *transport.Response) {
	*k.response = Response{
		HTTPStatus: r.Status, Code: k.last.Code, Message: k.last.Message, Attempts: k.last.Attempts,
	}
	if r.Header != nil {
		k.response.Header = mask.Header(r.Header, k.key)
	}
	if r.Err == nil && !k.client.maskedCards {
		body := bytes.Clone(r.Body)
		k.response.body = func() []byte { return bytes.Clone(body) }
	}
}

func (k *call) read(r *transport.Response) (drifts []wire.Drift) {
	body := wire.NewReader(r.Body, k.client.watchesDrift)
	body.Masking = k.client.maskedCards
	e := &k.envelope
	e.decode(body)
	if err := body.Err(); err != nil {
		e.unreadable, e.bare = unreadable(err), k.op.isBare(r)
		if r.Status >= 500 && wire.IsBare(r.Body, true) {
			e.unreadable = detailed(ErrUnreadable, "the response is from a gateway in front of the service")
		}
		return nil
	}
	e.read = true
	k.last.Code, k.last.codeSent, k.last.Message = e.code, true, e.message
	if e.message != messageSuccess {
		k.last.Message = mask.Message(e.message, k.key)
	}
	if e.succeeded() {
		drifts = body.Drifts()
	}
	k.gatherEvidence(e, body)
	return drifts
}

func (k *call) gatherEvidence(e *envelope, body *wire.Codec) {
	switch {
	case !e.succeeded():
		if e.deferred && e.referenced && (body.Mentions(e.place, k.op.reference) || e.isProof(body, e.place)) {
			e.data = thisOrder
		}
	case e.mismatch != nil:
		e.unreadable = unreadable(e.mismatch)
	default:
		e.data = readable
		var err error
		if k.op.verify != nil {
			err = k.op.verify()
		}
		switch {
		case errors.Is(err, ErrParameterIgnored):
			e.ignored = err
		case err != nil:
			e.data, e.unreadable = otherOrder, err
		}
	}
}

// isBare reports whether a response certainly has no envelope. The response to a write may
// have had one if it is compressed, which no write asks for, or was cut off before its first
// byte; and if it contains the reference, in any letter case, it may mean anything.
func (o *operation) isBare(r *transport.Response) bool {
	if o.class != transport.Write {
		return wire.IsBare(r.Body, true)
	}
	named := o.isClaimed() && bytes.Contains(bytes.ToLower(r.Body), bytes.ToLower([]byte(o.reference)))
	return wire.IsBare(r.Body, !r.MayBeCut) && !isEncoded(r.Header) && !named
}

// isEncoded reports whether one of the lines of Content-Encoding changes the body.
func isEncoded(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Encoding"), func(line string) bool {
		return line != "" && !strings.EqualFold(line, "identity")
	})
}

func unreadable(err *wire.Error) error { return detailed(ErrUnreadable, err.Error()) }
