package cardwire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/mask"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Part is a field or a file of a multipart body.
type Part struct {
	Name  string             // the part's name
	Value string             // the value of a field
	File  *UploadImageParams // sent instead of Value; nil: the part is a field
}

// Request describes an operation that the API names but does not specify.
type Request struct {
	Op     Op     // the operation's name for errors, observers and the journal: none of the constants
	Method string // the HTTP method
	// Path is below the base URL, begins with "/", and is sent as given: check what you put into it.
	Path  string
	Query url.Values // sent in the URL; nil: none
	Form  url.Values // sent as application/x-www-form-urlencoded; nil: none
	// JSON is sent as application/json; nil: none. Use Reveal of sealed values, StringFixed of decimals.
	JSON      any
	Multipart []Part // sent as multipart/form-data. Only one of Form, JSON and this may be set.
	ReadOnly  bool   // declares that a request other than a GET is a read, and may be retried
	// Reference is the caller's identifier of a write, of at most 128 visible bytes: your own
	// number for it, the same for each retry. A write needs one.
	Reference string
}

// Call sends r, and decodes data into a T as encoding/json does, a number in an any as a
// json.Number. Data that it cannot decode is [ErrUnreadable], and the outcome of a write is
// then OutcomeUnknown. Null needs a T that can be nil, like any.
func Call[T any](ctx context.Context, c *Client, r Request, opts ...CallOption) (T, error) {
	o := spec{
		name:   Op(cmp.Or(accepted(check.Given, string(r.Op)), "Call")),
		method: r.Method, path: r.Path, query: r.Query.Encode(),
		class: r.class(), fresh: true, journal: r.class() == transport.Write,
		reference: accepted(check.Visible, r.Reference),
	}
	o.invalid = r.encode(&o)
	// The path and the query are part of the intent, as the body is.
	o.intent = append(slices.Clone(o.fields), wire.Field{Name: o.method + " " + o.path, Value: o.query})
	if o.invalid != nil {
		o.method, o.path = "", "" // invalid ones may contain anything, and observers see them
	}
	return orZero(do(ctx, c, operation[T]{spec: o, read: readAny[T]}, opts))
}

func (r *Request) class() transport.Class {
	if r.Method == http.MethodGet || r.ReadOnly {
		return transport.Read
	}
	return transport.Write
}

func (r *Request) encode(o *spec) error {
	if err := r.valid(); err != nil {
		return err
	}
	switch {
	case r.JSON != nil:
		body, err := json.Marshal(r.JSON)
		if err != nil {
			return invalid("JSON cannot be encoded")
		}
		if err := checked(check.JSON("JSON", r.JSON, losesInJSON)); err != nil {
			return err
		}
		o.fields = wire.Fields{{Value: string(body)}}
		o.body = rawBody
	case r.Multipart != nil:
		o.body = multipartBody
		for _, p := range r.Multipart {
			o.addPart(p)
		}
	case r.Form != nil || o.method != http.MethodGet:
		for _, name := range slices.Sorted(maps.Keys(r.Form)) {
			for _, v := range r.Form[name] {
				o.fields = append(o.fields, wire.Field{Name: name, Value: v})
			}
		}
		o.body = formBody
	}
	return nil
}

// losesInJSON returns what a value in a JSON body would lose of itself in text; "": nothing.
func losesInJSON(v any, text []byte) string {
	var amount decimal.Decimal
	switch v := v.(type) {
	case CardNumber, CVV, EncryptedPAN, Card, CardPage, CardSecrets:
		return "contains a sealed value, which would be sent as its mask: use Reveal"
	case decimal.Decimal:
		amount = v
	case decimal.NullDecimal:
		amount = v.Decimal
	}
	_, places, _ := strings.Cut(strings.Trim(string(text), `"`), ".")
	if amount.Exponent() < 0 && int64(len(places)) != -int64(amount.Exponent()) {
		return "contains a decimal that would lose its scale: use StringFixed"
	}
	return ""
}

// addPart adds a part to the body, and to what makes two requests the same. No field has the
// name under which a file counts there: it contains quotation marks.
func (s *spec) addPart(p Part) {
	if p.File == nil {
		field := wire.Fields{{Name: p.Name, Value: p.Value}}
		s.fields, s.parts = append(s.fields, field...), append(s.parts, field.Parts()...)
		return
	}
	file := p.File.part(p.Name)
	s.fields = append(s.fields, wire.Field{
		Name:  fmt.Sprintf("%q %q %q", file.Name, file.Filename, file.ContentType),
		Value: fmt.Sprintf("%x", sha256.Sum256(file.Value)),
	})
	s.parts = append(s.parts, file)
	s.timeout = defaultUploadTimeout
}

func validParts(parts []Part) error {
	for _, p := range parts {
		err := checked(check.Text("Multipart: a name", p.Name), check.UTF8("Multipart: a value", p.Value))
		switch {
		case err != nil:
		case p.Name == "" || strings.Contains(p.Name, `"`):
			err = invalid("Multipart: a name is empty, or contains a quotation mark")
		case p.File != nil && p.Value != "":
			err = invalid("Multipart: a part must not have both a Value and a File")
		case p.File != nil:
			err = p.File.valid()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) valid() error {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	get, bodies := r.Method == http.MethodGet, 0
	for _, set := range []bool{r.Form != nil, r.JSON != nil, r.Multipart != nil} {
		if set {
			bodies++
		}
	}
	_, isOwn := ownOps[r.Op]
	switch {
	// A mistake of the program must not close the reference: before all that is invalid.
	case check.Given("Op", string(r.Op)) != nil:
		return badSetup(check.Given("Op", string(r.Op)).Error())
	case isOwn:
		return badSetup("Op must not be that of an operation of the client")
	case !slices.Contains(methods, r.Method):
		return invalid("Method must be GET, POST, PUT, PATCH or DELETE")
	case bodies > 1:
		return invalid("only one of Form, JSON and Multipart may be set")
	case get && bodies > 0:
		return invalid("a GET must not have a body")
	case r.Reference != "" && r.class() != transport.Write:
		return invalid("only a write may have a Reference")
	case r.Reference == "" && r.class() == transport.Write:
		return invalid("Reference is empty: a write needs one, " +
			"such as your own number for it, which every retry shares")
	}
	return cmp.Or(checked(
		check.Path(r.Path), check.Visible("Reference", r.Reference),
		check.Values("Query", r.Query), check.Values("Form", r.Form),
	), validParts(r.Multipart))
}

// readAny refuses null for a T that cannot be nil: encoding/json would leave a zero
// value that the service did not send.
func readAny[T any](c *wire.Codec, v *T) {
	nillable := slices.Contains([]reflect.Kind{
		reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice,
	}, reflect.TypeFor[T]().Kind())
	data := c.Span()
	switch {
	case data == nil:
	case string(data) == "null" && !nillable, decode(data, v) != nil:
		c.Fail("a value that can be decoded into the type parameter of Call")
	case c.Masking:
		mask.Values(v, maskCard)
	}
}

// decode is json.Unmarshal of one value, exact also for a number in an any.
func decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

func maskCard(pointer any) bool {
	switch secret := pointer.(type) {
	case *CardNumber:
		*secret = secret.masked()
	case *CVV:
		*secret = secret.masked()
	default:
		return false
	}
	return true
}

// query collects query parameters, whose names may be unknown.
type query struct {
	fields wire.Fields
	err    error
}

func (q *query) add(param, field, value string) {
	switch {
	case value == "":
	case param == "":
		q.err = cmp.Or(q.err, badSetup("the API's name for a parameter is unknown: set Profile."+field))
	default:
		q.fields = append(q.fields, wire.Field{Name: param, Value: value})
	}
}

// CallOption configures one call.
type CallOption func(*callOptions)

type callOptions struct {
	response *Response
	header   http.Header
	noRetry  bool
	fresh    bool // a new connection
	prefetch int
	wrong    error // what is wrong with the first invalid option; nil: nothing
}

func (o *callOptions) apply(opts []CallOption) {
	for _, opt := range opts {
		if opt == nil {
			opt = func(o *callOptions) { o.refuse("a call option is nil") }
		}
		opt(o)
	}
	if o.response != nil {
		*o.response = Response{}
	}
}

func (o *callOptions) refuse(message string) {
	o.wrong = cmp.Or(o.wrong, badSetup(message))
}

// WithResponse stores the response in r: for pages, that of the current one.
func WithResponse(r *Response) CallOption {
	return func(o *callOptions) {
		if r == nil {
			o.refuse("WithResponse: the response is nil")
		}
		o.response = r
	}
}

// WithHeader sets a header. One that could carry a key or a cookie, that describes the body,
// the path, the method or a range, that is hop-by-hop, or that makes net/http retry is an [ErrSetup].
func WithHeader(name, value string) CallOption {
	return func(o *callOptions) {
		if err := check.Header(name, value); err != nil {
			o.refuse("WithHeader: " + err.Error())
			return
		}
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Set(name, value)
	}
}

// WithoutRetry sends at most one request.
func WithoutRetry() CallOption { return func(o *callOptions) { o.noRetry = true } }

// Response is the response of the service, for [WithResponse].
type Response struct {
	HTTPStatus int         // the status; 0: there was no response
	Header     http.Header // the header, without the key and cookies, and masked like Message
	Code       int         // the envelope's code; 0: none was readable
	Message    string      // the envelope's msg, masked as in Error.Message
	Attempts   []Attempt   // the requests made; nil after a clean first try

	body mask.Hidden[[]byte]
}

// RevealBody returns the body as it was received, but without gzip, with card numbers and CVVs;
// nil: there was no complete response, or WithMaskedCards.
func (r *Response) RevealBody() []byte {
	if r == nil || r.body == nil {
		return nil
	}
	return bytes.Clone(r.body())
}
