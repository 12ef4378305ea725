package cardwire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// CallOption configures one call.
type CallOption func(*call)

// WithResponse fills r with the response. r is reset by each call; after
// AllCards it is that of the last page read.
func WithResponse(r *Response) CallOption {
	return func(k *call) {
		if r == nil {
			k.refuse("WithResponse: the response is nil")
		}
		k.response = r
	}
}

// WithHeader adds a header to the request. Those that carry a key or a cookie,
// describe the body, make net/http repeat requests (Idempotency-Key), override the
// method or the path (X-HTTP-Method-Override), ask for a part of the response
// (Range), or concern one hop are refused with [ErrInvalidParams], also with "_" or
// another character for "-".
func WithHeader(name, value string) CallOption {
	return func(k *call) {
		if err := check.Header(name, value); err != nil {
			k.refuse("WithHeader: " + err.Error())
			return
		}
		if k.header == nil {
			k.header = http.Header{}
		}
		k.header.Set(name, value)
	}
}

// WithoutRetry sends one request at most.
func WithoutRetry() CallOption { return func(k *call) { k.noRetry = true } }

// operation describes one operation of the API: all that differs between one call
// and another.
type operation struct {
	name, method, path string
	query              string
	fields             wire.Fields // of the body
	upload             *upload     // the file of a multipart body; nil: none
	reference          string      // the caller's identifier of a write; "": none
	record             string      // calls with one reference of one record exclude each other; "": name
	intent             wire.Fields // what makes two requests the same; nil: fields
	summary            string      // Intent.Summary
	timeout            time.Duration
	proves             func(*wire.Codec) bool // unreadable data proves execution; nil: never
	amend              func(*Error)           // puts into the error what only the operation knows; nil: nothing
	invalid            error                  // why it must not be sent

	// Together, since each alone takes eight bytes, and calls are made often.
	class   transport.Class
	body    encoding
	unique  bool // the reference is that of one execution
	recheck bool // a response that fails its check is asked for once more
}

// encoding is how an operation's fields become a body.
type encoding uint8

const (
	noBody        encoding = iota
	formBody               // application/x-www-form-urlencoded
	jsonBody               // application/json, an object of strings
	rawBody                // application/json, the one field's value
	multipartBody          // multipart/form-data
)

// reply is how the data of a success becomes a T.
type reply[T any] struct {
	read   func(*wire.Codec, *T)
	verify func(*T) error  // is it what was asked for? nil: nothing to compare
	id     func(*T) string // the service's identifier of what it did; nil: none
}

// object reads the data that is one object, in the form v.
func object[T any](members []wire.Member[T], v wire.Variant) func(*wire.Codec, *T) {
	return func(c *wire.Codec, dst *T) { wire.Object(c, dst, members, v) }
}

// rows reads the list that is the whole of data.
func rows[T any](members []wire.Member[T]) func(*wire.Codec, *[]T) {
	return func(c *wire.Codec, list *[]T) { wire.Rows(c, list, members, wire.Whole) }
}

// call is one call: what its options ask for, and how far it came.
type call struct {
	response *Response
	header   http.Header
	noRetry  bool
	prefetch int
	invalid  error

	client      *core // nil: New did not make the client
	op          operation
	start       time.Time
	deadline    time.Time // of the whole call; zero: the context's alone
	claimed     bool      // the reference is this call's until settle
	intent      Intent    // of a write with a reference
	journaled   bool      // the intent is in the journal
	bearer      string
	contentType string // of the body; "": there is none
	read        func(*wire.Codec)
	verify      func() error
	serviceID   func() string
	last        response

	// Kept here to be one allocation with the call.
	request  transport.Request
	envelope envelope
}

func (k *call) refuse(message string) {
	if k.invalid == nil {
		k.invalid = badSetup(message)
	}
}

// do is the one path that every operation takes. A GetCard goes through
//
//	do         begins the call, ends it, and returns what it read
//	exchange   asks the engine, and has judge say what its response means
//	Engine.Do  of package transport hands the call to go-retryablehttp
//	RoundTrip  of package transport is called back for each attempt
//
// The value is nil unless there is one: where the error is [ErrParameterIgnored]
// or [ErrDrift], it is returned together with it.
func do[T any](ctx context.Context, c *Client, op operation, r reply[T], opts []CallOption) (*T, error) {
	v := new(T)
	k := &call{
		op: op,
		read: func(d *wire.Codec) {
			*v = *new(T) // nothing is left of a first look
			r.read(d, v)
		},
	}
	if c.initialized() {
		k.client = c.core()
	}
	if r.verify != nil {
		k.verify = func() error { return r.verify(v) }
	}
	if r.id != nil {
		k.serviceID = func() string { return r.id(v) }
	}
	ctx, failure := k.begin(ctx, opts)
	defer k.settleAfterPanic(ctx)
	if failure == nil {
		failure = k.exchange(ctx)
		k.settle(ctx, failure)
	}
	k.end(ctx, failure)
	switch {
	case failure == nil:
		return v, nil
	case failure.keepsValue():
		return v, failure
	default:
		return nil, failure
	}
}

// value turns do's result into that of a method that returns no pointer.
func value[T any](v *T, err error) (T, error) {
	if v == nil {
		v = new(T)
	}
	return *v, err
}

// begin applies the call's options, tells the observers, and claims a write's
// reference. Where it fails, nothing is sent.
func (k *call) begin(ctx context.Context, opts []CallOption) (context.Context, *Error) {
	k.apply(opts)
	if err := k.ready(ctx); err != nil {
		return ctx, k.unready(ctx, err)
	}
	k.start = time.Now()
	k.deadline = k.endOf(ctx)
	ctx = k.started(ctx)
	return ctx, k.claim(ctx)
}

// endOf returns when the call must be over, by which a write with a reference has
// begun its last write whatever the context allows; zero: when the context ends.
func (k *call) endOf(ctx context.Context) time.Time {
	own := k.start.Add(k.timeout())
	switch d, ok := ctx.Deadline(); {
	case !ok, k.needsClaim() && own.Before(d):
		return own
	case k.needsClaim():
		return d
	}
	return time.Time{}
}

func (k *call) apply(opts []CallOption) {
	for _, opt := range opts {
		if opt == nil {
			k.refuse("a call option is nil")
			continue
		}
		opt(k)
	}
	if k.response != nil {
		*k.response = Response{}
	}
}

// ready returns why nothing can be sent, if so.
func (k *call) ready(ctx context.Context) error {
	switch {
	case k.client == nil:
		return badSetup("the client was not made by New")
	case ctx == nil:
		return badSetup("the context is nil")
	case k.invalid != nil:
		return k.invalid
	case k.op.invalid != nil:
		return k.op.invalid
	}
	if err := ctx.Err(); err != nil {
		return hideCause("the context had ended before the call", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// end tells of a call that was told to have started.
func (k *call) end(ctx context.Context, failure *Error) {
	if k.start.IsZero() {
		return
	}
	k.logLast(ctx, failure)
	k.ended(ctx, failure)
}

// exchange sends the request and judges the response. One that fails its check is
// asked for once more where the operation allows it: a card's status, say, may
// change while a page is read.
func (k *call) exchange(ctx context.Context) *Error {
	if err := k.authorize(ctx); err != nil {
		return k.fail(OutcomeNotSent, err)
	}
	request, err := k.prepare(ctx)
	if err != nil {
		return k.fail(OutcomeNotSent, err)
	}
	for again := k.op.recheck && !k.noRetry; ; again = false {
		k.last = response{tries: k.last.tries}
		failure := k.judge(ctx, k.client.engine.Do(ctx, request))
		if failure != nil && k.op.amend != nil {
			k.op.amend(failure)
		}
		if failure == nil || !again || !errors.Is(failure.Err, ErrParameterIgnored) {
			return failure
		}
		k.logLast(ctx, failure)
	}
}

// authorize gets the Authorization header.
func (k *call) authorize(ctx context.Context) (err error) {
	if k.client.asksForKey {
		var stop context.CancelFunc
		ctx, stop = k.bounded(ctx)
		defer stop()
	}
	k.bearer, err = k.client.bearer(ctx)
	return err
}

// key is the API key of this call.
func (k *call) key() string { return strings.TrimPrefix(k.bearer, bearerScheme) }

// bounded gives ctx the call's own deadline, for caller code that is asked before
// the request is sent.
func (k *call) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if k.deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, k.deadline)
}

// prepare builds what the engine sends.
func (k *call) prepare(ctx context.Context) (*transport.Request, error) {
	k.request = transport.Request{
		Class: k.op.class, Method: k.op.method, URL: k.client.base, Path: k.op.path, Query: k.op.query, Header: k.headers,
		MaxBytes: k.client.maxBytes, NoRetry: k.noRetry, OnAttempt: k.onAttempt(ctx), Deadline: k.deadline,
	}
	r := &k.request
	if k.op.class == transport.Write {
		r.MaxBytes = min(r.MaxBytes, maxWriteResponseBytes)
	}
	var err error
	k.contentType, err = k.op.encode(r)
	return r, err
}

// headers are those of one attempt. Their values are its own too, in one
// allocation: a doer of the caller's may change them in place.
func (k *call) headers() http.Header {
	h := make(http.Header, 4+len(k.header))
	values := []string{"application/json", k.client.userAgent, k.bearer, k.contentType}
	h["Accept"], h["User-Agent"] = values[0:1:1], values[1:2:2]
	for name, v := range k.header {
		h[name] = slices.Clone(v)
	}
	h["Authorization"] = values[2:3:3]
	if k.contentType != "" {
		h["Content-Type"] = values[3:4:4]
	}
	return h
}

func (k *call) timeout() time.Duration {
	switch {
	case k.client.timeout != 0:
		return k.client.timeout
	case k.op.timeout != 0:
		return k.op.timeout
	}
	return defaultTimeout
}

// encode gives r its body, and returns the content type, "" for no body.
func (op *operation) encode(r *transport.Request) (contentType string, err error) {
	var text []byte
	switch op.body {
	case noBody:
		return "", nil
	case formBody:
		text, contentType = []byte(op.fields.Form()), "application/x-www-form-urlencoded"
	case jsonBody:
		text, contentType = op.fields.JSON(), "application/json"
	case rawBody:
		text, contentType = []byte(op.fields[0].Value), "application/json"
	case multipartBody:
		return op.encodeMultipart(r)
	}
	r.Body, r.BodySize = bytesBody(text), int64(len(text))
	return contentType, nil
}

func bytesBody(text []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
}

// fail builds the call's error from the last response.
func (k *call) fail(outcome Outcome, cause error) *Error {
	return &Error{
		Op: k.op.name, Outcome: outcome, HTTPStatus: k.last.status, Code: k.last.code,
		Message: k.last.message, RequestID: k.last.requestID, Reference: k.op.reference,
		RetryAfter: k.last.retryAfter, Attempts: k.last.attempts,
		ReadOnly: k.op.class != transport.Write, Err: cause, codeSent: k.last.codeSent,
	}
}
