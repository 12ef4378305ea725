package cardwire

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Request describes an operation that the interface names but does not
// specify, for [Call].
type Request struct {
	// Op is the operation's name for errors, observers and the journal.
	Op string
	// Method is the HTTP method: GET and POST read, unless Write is set.
	Method string
	// Path is below the base URL and begins with "/". It is sent as given: check an
	// identifier that is put into it, for its slashes are slashes of the path.
	Path string
	// Query is sent in the URL; nil: none.
	Query url.Values
	// Form is sent as application/x-www-form-urlencoded; nil: none.
	Form url.Values
	// JSON is sent as application/json; nil: none. Only one of Form and JSON may be set.
	JSON any
	// Write says that the operation changes something: it is then sent once. A
	// POST without it is a read that is repeated as GetCardSecrets is.
	Write bool
	// Reference is the caller's own identifier of a write, which is journaled
	// and sent once at a time; "": none.
	Reference string
}

// Call sends r and decodes data with encoding/json into a T, which matches names
// in any letter case, and makes a float64 of a number in an any. Everything else,
// errors too, is as for a named operation: data that does not fit T is
// [ErrUnreadable]. Null fits only a T that can be nil: where an operation answers
// nothing, let T be any.
func Call[T any](ctx context.Context, c *Client, r Request, opts ...CallOption) (T, error) {
	op := operation{
		name: r.name(), method: r.Method, path: r.Path, class: r.class(),
		query: r.Query.Encode(), reference: r.Reference, unique: true,
	}
	op.invalid = r.encode(&op)
	// What a path and a query name belongs to the intent as the body does.
	op.target = wire.Fields{{Name: op.method + " " + op.path, Value: op.query}}
	return value(do(ctx, c, op, reply[T]{read: readAny[T]}, opts))
}

// name keeps an Op that is refused out of the text of the error.
func (r *Request) name() string {
	if check.Given("Op", r.Op) != nil {
		return "Call"
	}
	return r.Op
}

func (r *Request) class() transport.Class {
	switch {
	case r.Write:
		return transport.Write
	case r.Method == http.MethodPost:
		return transport.Secret
	}
	return transport.Read
}

// encode puts the body into op, or says what is wrong with the request.
func (r *Request) encode(op *operation) error {
	if err := r.valid(); err != nil {
		return err
	}
	switch {
	case r.JSON != nil:
		text, err := json.Marshal(r.JSON)
		if err != nil {
			return invalid("JSON cannot be encoded")
		}
		if err := checked(check.JSON("JSON", r.JSON)); err != nil {
			return err
		}
		op.fields = wire.Fields{{Value: string(text)}}
		op.body = rawBody
	case r.Form != nil || op.method != http.MethodGet:
		for _, name := range slices.Sorted(maps.Keys(r.Form)) {
			for _, v := range r.Form[name] {
				op.fields = append(op.fields, wire.Field{Name: name, Value: v})
			}
		}
		op.body = formBody
	}
	return nil
}

func (r *Request) valid() error {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	get := r.Method == http.MethodGet
	switch {
	case !slices.Contains(methods, r.Method):
		return invalid("Method is none of GET, POST, PUT, PATCH and DELETE")
	case r.Write && get:
		return invalid("a GET does not write")
	case !r.Write && !get && r.Method != http.MethodPost:
		return invalid("PUT, PATCH and DELETE write: set Write")
	case r.Form != nil && r.JSON != nil:
		return invalid("Form and JSON are both set")
	case get && (r.Form != nil || r.JSON != nil):
		return invalid("a GET has no body")
	case r.Reference != "" && !r.Write:
		return invalid("Reference belongs to a write")
	}
	return checked(
		check.Given("Op", r.Op), check.Path(r.Path), check.Visible("Reference", r.Reference),
		check.Values("Query", r.Query), check.Values("Form", r.Form),
	)
}

// readAny refuses null for a T that cannot hold it: encoding/json would leave a
// zero that the service did not send.
func readAny[T any](c *wire.Codec, v *T) {
	text := c.Span()
	switch {
	case text == nil:
	case string(text) == "null" && !nillable[T](), json.Unmarshal(text, v) != nil:
		c.Fail("what the type of the call holds")
	}
}

func nillable[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return false
}
