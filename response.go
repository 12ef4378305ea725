package cardwire

import (
	"bytes"
	"net/http"

	"github.com/cardwire/cardwire-go/internal/transport"
)

// Response is what came back from the service, for WithResponse.
type Response struct {
	// HTTPStatus is the status; 0: there was no answer.
	HTTPStatus int
	// Header is the header, without Set-Cookie, Authorization and what holds the
	// key, and with digits masked as in Message; nil: no answer.
	Header http.Header
	// Code is the envelope's code; 0: none was readable.
	Code int
	// Message is the envelope's msg, masked as in Error.Message.
	Message string
	// Attempts are the requests made; nil after a clean first try.
	Attempts []Attempt

	body func() []byte
}

// RevealBody returns a copy of the body as it came. It may hold card numbers
// and CVVs. It is nil where no answer came or not all of it, and under
// WithMaskedCards.
func (r *Response) RevealBody() []byte {
	if r == nil || r.body == nil {
		return nil
	}
	return r.body()
}

// capture fills the caller's Response.
func (k *call) capture(r *transport.Reply) {
	if k.response == nil {
		return
	}
	*k.response = Response{
		HTTPStatus: r.Status, Code: k.last.code, Message: k.last.message, Attempts: k.last.attempts,
	}
	if r.Header != nil {
		k.response.Header = loggable(r.Header, k.key())
	}
	if r.Err == nil && !k.client.maskedCards {
		body := bytes.Clone(r.Body)
		k.response.body = func() []byte { return bytes.Clone(body) }
	}
}
