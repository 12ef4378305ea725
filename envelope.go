package cardwire

import (
	"math"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// codeSuccess is the only code of a success; the others are its messages.
const (
	codeSuccess     = 200
	messageSuccess  = "success"
	messageUploaded = "Uploaded"
)

// envelope is the {code, msg, data} that every response is wrapped in. It is read
// in two phases: data is not read before the code is known to be that of a success.
type envelope struct {
	result     result                 // reads the operation's data
	proves     func(*wire.Codec) bool // data that read refuses proves execution; nil: never
	code       int
	message    string
	data       wire.Mark   // where data is, if it was not read at once
	mismatch   *wire.Error // why data, which is valid JSON, is not what the operation returns
	success    bool        // the HTTP status is that of a success
	proven     bool        // mismatched data proves execution all the same
	hasCode    bool        // the code has been read
	hasMessage bool        // the message is present, and a string
	deferred   bool        // data was skipped: it came before the code, or the code is not a success
	hasData    bool        // data is present, and the code is a success
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
	c.Rewind(e.data)
	e.readData(c)
}

func (e *envelope) succeeded() bool { return e.success && e.code == codeSuccess }

// readCode refuses a number that is too long for a code: it would appear in errors, and
// may be a card number.
func (e *envelope) readCode(c *wire.Codec) {
	c.ExactInt(&e.code)
	if e.code > math.MaxInt32 || e.code < math.MinInt32 {
		c.Fail("a code")
	}
	e.hasCode = true
}

// readMessage saves an allocation for the usual message.
func (e *envelope) readMessage(c *wire.Codec) {
	e.hasMessage = c.Kind() == '"'
	switch message := c.Bytes(); string(message) {
	case messageSuccess:
		e.message = messageSuccess
	default:
		e.message = string(message[:min(len(message), maxRawMessage)])
	}
	if e.message != "" && !isSuccessMessage(e.message) {
		c.Drift("unknown success message") // reported with a success only
	}
}

// maxRawMessage bounds what is sanitized for the few bytes that are kept.
const maxRawMessage = 64 << 10

// reachData reads data if the code was a success, and otherwise checks it and remembers
// its place.
func (e *envelope) reachData(c *wire.Codec) {
	if e.hasCode && e.succeeded() {
		e.readData(c)
		return
	}
	e.data, e.deferred = c.Mark(), true
	c.Skip()
}

// readData reads the operation's data. If data is of the wrong kind, the rest of the
// response must still be valid before anything is concluded from it.
func (e *envelope) readData(c *wire.Codec) {
	mark := c.Mark()
	e.hasData = true
	e.result.read(c)
	if err := c.Err(); err != nil && !err.Malformed {
		e.mismatch = err
		c.Rewind(mark)
		if e.proves != nil {
			e.proven = e.proves(c)
			c.Rewind(mark)
		}
		c.Skip()
	}
}
