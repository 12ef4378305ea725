package cardwire

import (
	"bytes"
	"cmp"
	"errors"
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
	op       *spec
	payload  payload
	ignored  error       // which parameter the service ignored; nil: none
	elements error       // which elements could not be read; nil: none
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
	c.SkipBOM()
	wire.Object(c, e, envelopeFields, wire.Whole)
	c.End()
	if c.Err() != nil || !e.hasSuccessCode() || e.hasData {
		return
	}
	if !e.deferred {
		e.mismatch = wire.Missing("data")
		return
	}
	c.Rewind(e.place)
	e.readData(c)
}

func (e *envelope) readCode(c *wire.Codec) { e.loose = !c.EnvelopeCode(&e.code) }

func (e *envelope) readMessage(c *wire.Codec) {
	e.hasMessage = c.Kind() == '"'
	message := c.Bytes(wire.Message)
	if e.message = messageSuccess; string(message) != messageSuccess { // which is one allocation less
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
	if e.hasSuccessCode() {
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
	e.payload.readData(c)
	if err := c.Err(); err != nil && !err.Malformed {
		e.mismatch = err
		if e.isProof(c, mark) {
			e.data = thisOrder
		}
		c.Rewind(mark)
		c.SkipFree()
	}
}

// isProof reports whether the data at m, which readData did not accept, proves execution. All of
// it must be readable: what follows may name another order.
func (e *envelope) isProof(c *wire.Codec, m wire.Mark) bool {
	c.Rewind(m)
	return e.op.proves != nil && e.op.proves(c) && c.Err() == nil
}

// receive returns the error that the response means; nil: it is a success. It reports drift,
// and releases the response.
func (k *call) receive(r *transport.Response) *Error {
	defer r.Release()
	if k.response != nil {
		defer k.capture(r)
	}
	k.tries += r.Tries
	k.last = Error{
		HTTPStatus: r.Status, RetryAfter: r.RetryAfter, RequestID: mask.RequestID(r.Header, k.key()),
	}
	for _, a := range r.Attempts {
		k.last.Attempts = append(k.last.Attempts, Attempt(a))
	}
	e := &envelope{op: k.op, payload: k.payload}
	drift := k.drifted(k.gather(e, r))
	outcome, _, cause := judge(&k.client.profile, &e.facts)
	if outcome == OutcomeExecuted {
		cause = cmp.Or(cause, e.ignored, e.elements, drift)
	}
	if outcome == OutcomeExecuted && cause == nil {
		return nil
	}
	return k.fail(outcome, cause)
}

// asksForRetry reports whether the code of a read's response is one of RetryCodes.
func (p *Profile) asksForRetry(body []byte) bool {
	if bytes.HasPrefix(body, []byte(`{"code":200,`)) {
		return false // as usual
	}
	var code int
	wire.Object(wire.NewReader(body, false), &code, codeField, wire.Lenient)
	return slices.Contains(p.RetryCodes, code)
}

// codeField is that of an envelope, after which nothing matters.
var codeField = []wire.FieldOf[int]{{Name: "code", Value: func(c *wire.Codec, code *int) {
	wire.IntOf(c, code, wire.Exact)
	c.Fail("the end")
}}}

// gather finds out the facts about a response, and returns its drift.
func (k *call) gather(e *envelope, r *transport.Response) []wire.Drift {
	e.status, e.resent, e.referenced = r.Status, r.Resent, k.op.hasReference()
	switch {
	case r.NotSent:
		e.fate, e.cause = unsent, hideTransport(r.Err)
	case r.Redirected:
		leads := ifTrue(r.RedirectHost != "", "it leads to "+mask.Message(r.RedirectHost, k.key())+": ")
		e.fate, e.cause = elsewhere, detailed(ErrRedirect, leads+"check the base URL")
	case errors.Is(r.Err, transport.ErrTooLarge):
		e.fate, e.cause = lost, ErrResponseTooLarge
	case r.Err != nil:
		e.fate, e.cause = lost, hideTransport(r.Err)
	default:
		return k.read(e, r)
	}
	return nil
}

func (k *call) capture(r *transport.Response) {
	*k.response = Response{
		HTTPStatus: r.Status, Code: k.last.Code, Message: k.last.Message, Attempts: k.last.Attempts,
	}
	if r.Header != nil {
		k.response.Header = mask.Header(r.Header, k.key())
	}
	if r.Err == nil && !k.client.maskedCards {
		k.response.body = mask.Hide(bytes.Clone(r.Body))
	}
}

func (k *call) read(e *envelope, r *transport.Response) (drifts []wire.Drift) {
	body := wire.NewReader(r.Body, k.client.watchesDrift)
	body.Masking = k.client.maskedCards
	e.decode(body)
	if err := body.Err(); err != nil {
		e.cause, e.bare = unreadable(err), k.op.isBare(r)
		if r.Status >= 500 && wire.IsBare(r.Body, true) {
			e.cause = detailed(ErrUnreadable, "the response is from a gateway in front of the service")
		}
		return nil
	}
	e.read = true
	if e.loose = e.loose || body.Replaced; e.loose && !e.hasSuccessCode() {
		e.cause = detailed(ErrUnreadable, "the code is not an integer, or a string is not valid UTF-8")
	}
	if e.referenced && !e.hasSuccessCode() {
		e.texts = wire.Strings(r.Body)
	}
	k.last.Code, k.last.codeSent, k.last.Message = e.code, true, e.message
	if e.message != messageSuccess {
		k.last.Message = mask.Message(e.message, k.key())
	}
	if e.hasSuccessCode() {
		drifts = body.Drifts()
	}
	e.weigh(body)
	if elements := k.unreadable(body); len(elements) > 0 && e.data == readable {
		k.last.Elements, e.elements = elements, elementsError(elements)
	} else if len(elements) > 0 && e.mismatch == body.Unreadable()[0].Err { // of all of them
		e.cause = detailed(ErrUnreadable, elements[0].describe())
	}
	return drifts
}

// unreadable returns the elements that could not be read. Their identifiers are shown, so that
// they must not be anything else.
func (k *call) unreadable(body *wire.Codec) (list []UnreadableElement) {
	isID := func(id string) bool { return isOperationID(id) && mask.Message(id, k.key()) == id }
	for _, u := range body.Unreadable() {
		id := cmp.Or(ifTrue(isID(u.ID), u.ID), ifTrue(isID(u.BIN), u.BIN))
		list = append(list, UnreadableElement{u.Index, id, &explained{u.Err.Error(), ErrUnreadable}})
	}
	return list
}

// weigh finds out what the data is evidence of.
func (e *envelope) weigh(body *wire.Codec) {
	switch {
	case !e.hasSuccessCode():
		isReference := func(text string) bool { return strings.EqualFold(text, e.op.reference) }
		if e.referenced && (slices.ContainsFunc(e.texts, isReference) ||
			e.deferred && (body.Mentions(e.place, e.op.reference) || e.isProof(body, e.place))) {
			e.data = thisOrder
		}
	case e.mismatch != nil:
		e.cause = unreadable(e.mismatch)
	default:
		e.data = readable
		err := e.payload.verifyData()
		switch {
		case errors.Is(err, ErrParameterIgnored):
			e.ignored = err
		case err != nil:
			e.data, e.cause = otherOrder, err
		}
	}
}

// isBare reports whether a response certainly has no envelope. The response to a write may
// have had one if it is compressed, which no write asks for, or was cut off before its first
// byte; and if it contains the reference, in any letter case, or says that something is a
// duplicate, it may mean anything.
func (s *spec) isBare(r *transport.Response) bool {
	if s.class != transport.Write {
		return wire.IsBare(r.Body, true)
	}
	if s.hasReference() && (bytes.Contains(bytes.ToLower(r.Body), bytes.ToLower([]byte(s.reference))) ||
		wire.InsistsItExists(string(r.Body))) {
		return false
	}
	return wire.IsBare(r.Body, !r.MayBeCut) && !isEncoded(r.Header)
}

// isEncoded reports whether one of the lines of Content-Encoding changes the body.
func isEncoded(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Encoding"), func(line string) bool {
		return line != "" && !strings.EqualFold(line, "identity")
	})
}

func unreadable(err *wire.Error) error { return detailed(ErrUnreadable, err.Error()) }
