package cardwire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Op is the name of an operation: one of the constants, or the Op of a [Request].
type Op string

// The operations, each named like the method of [Client] that calls it.
const (
	OpListBINs                 Op = "ListBINs"
	OpListBINsUnderMaintenance Op = "ListBINsUnderMaintenance"
	OpListCards                Op = "ListCards"
	OpGetCard                  Op = "GetCard"
	OpGetCardByOrder           Op = "GetCardByOrder"
	OpGetCardSecrets           Op = "GetCardSecrets"
	OpFreezeCard               Op = "FreezeCard"
	OpCancelOperation          Op = "CancelOperation"
	OpRetryOperation           Op = "RetryOperation"
	OpUploadImage              Op = "UploadImage"
	OpCardCapacity             Op = "CardCapacity"
	OpListRemittanceStates     Op = "ListRemittanceStates"
	OpListRemittanceCurrencies Op = "ListRemittanceCurrencies"
	OpCreateTransfer           Op = "CreateTransfer"
	// OpCancelOrRetry is the Intent.Op of OpCancelOperation and OpRetryOperation, which share
	// references and exclude each other.
	OpCancelOrRetry Op = "CancelOrRetry"
)

// ownOps are the names that a [Request] must not have: whether references of the operation
// are never closed, and whether it names nothing that could be missing.
var ownOps = map[Op]struct{ repeatable, namesNothing bool }{
	OpListBINs: {namesNothing: true}, OpListBINsUnderMaintenance: {namesNothing: true},
	OpListCards: {namesNothing: true}, OpCardCapacity: {namesNothing: true},
	OpListRemittanceStates: {namesNothing: true}, OpListRemittanceCurrencies: {namesNothing: true},
	OpCreateTransfer: {namesNothing: true}, OpUploadImage: {namesNothing: true},
	OpCancelOperation: {repeatable: true}, OpRetryOperation: {repeatable: true},
	OpGetCard: {}, OpGetCardByOrder: {}, OpGetCardSecrets: {}, OpFreezeCard: {}, OpCancelOrRetry: {},
}

// operation is everything that differs between one operation of the API and another:
// how its fields go out, and how the data of a success is read.
type operation struct {
	name         Op
	method, path string
	query        string
	fields       wire.Fields // of the body
	parts        []wire.Part // of a multipart body; nil: the fields
	contentType  string      // of the body, once it is encoded; "": there is none
	timeout      time.Duration
	invalid      error             // why it must not be sent
	read         func(*wire.Codec) // reads the data of a success
	verify       func() error      // why what was read is not what was asked for; nil: nothing to compare

	// For writes only.
	reference string                            // the caller-supplied identifier; "": none, or an invalid one
	repeats   Op                                // Intent.Op if it may be repeated; "": it is executed once, as name
	intent    wire.Fields                       // what makes two requests the same; nil: fields
	summary   string                            // Intent.Summary
	proves    func(*wire.Codec) bool            // data that read refuses proves execution; nil: never
	record    func() (serviceID, status string) // of what the service did; nil: none

	// Together, since each alone takes eight bytes, and calls are made often.
	class   transport.Class
	fresh   bool // a read that needs a new connection
	body    encoding
	recheck bool // a response that fails its check is asked for once more
}

// accepted returns v, or "" if check refuses it: an invalid reference was never sent, and
// may be anything, so that it stays out of errors.
func accepted(check func(name, v string) error, v string) string {
	return when(check("", v) == nil, v)
}

// isClaimed reports whether the operation is a write with a reference.
func (o *operation) isClaimed() bool { return o.class == transport.Write && o.reference != "" }

type encoding uint8

const (
	noBody        encoding = iota
	formBody               // application/x-www-form-urlencoded
	jsonBody               // application/json, an object of strings
	rawBody                // application/json, the one field's value
	multipartBody          // multipart/form-data
)

func object[T any](dst *T, fields []wire.FieldOf[T], v wire.Variant) func(*wire.Codec) {
	return func(c *wire.Codec) {
		*dst = *new(T) // discard what an earlier attempt to read it left
		wire.Object(c, dst, fields, v)
	}
}

func rows[T any](dst *[]T, fields []wire.FieldOf[T]) func(*wire.Codec) {
	return func(c *wire.Codec) { wire.Rows(c, dst, fields, wire.Whole) }
}

// get is a GET without parameters.
func get(name Op, path string, read func(*wire.Codec)) operation {
	return operation{name: name, method: http.MethodGet, path: path, read: read}
}

type call struct {
	callOptions
	client   *config
	op       operation
	intent   *Intent // of a write with a reference; nil: none
	held     bool    // this call has the reference, until settle
	start    time.Time
	deadline time.Time          // of the whole call; zero: the context's alone
	sending  bool               // a request may have been sent
	ended    bool               // the end was reported
	bearer   string             // the Authorization header
	key      string             // the API key in it
	last     Error              // what is known of the last response
	tries    int                // the requests made
	attempt  *transport.Attempt // the last one, if it is to be logged; nil: none

	// Kept here to be one allocation with the call.
	request  transport.Request
	envelope envelope
}

// do is the one path that every operation takes. A GetCard goes through
//
//	do         begins the call, ends it, and returns what it read
//	exchange   calls the engine, and has judge decide what the response means
//	Engine.Do  of package transport passes the call to go-retryablehttp
//	RoundTrip  of package transport makes one attempt, with net/http
//
// It returns v, which op reads. With an error v is nil, unless the error is
// [ErrParameterIgnored] or [ErrDrift].
func do[T any](ctx context.Context, c *Client, op operation, v *T, opts []CallOption) (*T, error) {
	k := &call{client: c.settings(), op: op}
	if len(opts) > 0 {
		k.apply(opts)
	}
	defer func() { k.settleAfterPanic(ctx) }() // on the context that the observers return
	ctx, failure := k.begin(ctx)
	if failure == nil {
		failure = k.exchange(ctx)
	}
	switch failure = k.end(ctx, failure); {
	case failure == nil:
		return v, nil
	case errors.Is(failure.Err, ErrParameterIgnored) || errors.Is(failure.Err, ErrDrift):
		return v, failure
	}
	return nil, failure
}

func value[T any](v *T, err error) (T, error) {
	if v == nil {
		v = new(T)
	}
	return *v, err
}

// begin notifies the observers, and claims a write's reference; if it fails, nothing is sent.
func (k *call) begin(ctx context.Context) (context.Context, *Error) {
	if err := k.ready(ctx); err != nil {
		return ctx, k.unready(ctx, err)
	}
	k.start = time.Now()
	k.deadline = k.endOf(ctx)
	for _, o := range k.client.observers {
		if o.CallStart != nil {
			ctx = cmp.Or(o.CallStart(ctx, k.op.info()), ctx)
		}
	}
	if !k.op.isClaimed() {
		return ctx, nil
	}
	k.intent = k.newIntent(k.start, k.deadline)
	return ctx, k.claim(ctx)
}

// ready returns why nothing can be sent, or nil.
func (k *call) ready(ctx context.Context) error {
	switch {
	case k.client.engine == nil:
		return badSetup("the client was not created by New")
	case ctx == nil:
		return badSetup("the context is nil")
	case k.wrong != nil:
		return k.wrong
	case ctx.Err() != nil: // checked first: the journal could not void an invalid call on this context
		return hideCause("the context was already canceled or expired", errors.Join(ctx.Err(), context.Cause(ctx)))
	}
	return k.op.invalid
}

// endOf returns the call's own deadline, after which a write with a reference sends
// nothing, even if the context allows more; zero: the context's deadline applies.
func (k *call) endOf(ctx context.Context) time.Time {
	own := k.start.Add(cmp.Or(k.client.timeout, k.op.timeout, defaultTimeout))
	switch d, ok := ctx.Deadline(); {
	case !ok, k.op.isClaimed() && own.Before(d):
		return own
	case k.op.isClaimed():
		return d
	}
	return time.Time{}
}

// unready returns the error of a call that cannot be sent. If a parameter is invalid, no
// request like it was ever sent, and its order will fail.
func (k *call) unready(ctx context.Context, err error) *Error {
	if !k.op.isClaimed() || !errors.Is(err, ErrInvalidParams) {
		return k.fail(OutcomeNotSent, err)
	}
	now := time.Now()
	k.intent = k.newIntent(now, now)
	return k.void(ctx, err, "a parameter is invalid")
}

// settleAfterPanic resolves a call that a panic in caller code cut short.
func (k *call) settleAfterPanic(ctx context.Context) {
	if k.start.IsZero() || k.ended {
		return
	}
	failure := k.fail(OutcomeNotSent, nil)
	if k.sending {
		failure.Outcome = OutcomeUnknown
	}
	_ = k.end(ctx, failure) // the panic continues
}

// exchange sends the request and judges the response. If that fails its check, operations
// that allow it are sent once more: a card's status may change while a page is read.
func (k *call) exchange(ctx context.Context) *Error {
	if err := k.authorize(ctx); err != nil {
		return k.fail(OutcomeNotSent, err)
	}
	request := k.prepare(ctx)
	for again := k.op.recheck && !k.noRetry; ; again = false {
		k.last, k.attempt = Error{}, nil
		failure := k.judge(ctx, k.client.engine.Do(ctx, request))
		if failure == nil || !again || !errors.Is(failure.Err, ErrParameterIgnored) {
			return failure
		}
		k.logLast(ctx, failure)
	}
}

// end records and reports the result of a call whose start was reported, and returns its error.
func (k *call) end(ctx context.Context, failure *Error) *Error {
	if k.start.IsZero() {
		return failure
	}
	if k.held {
		failure = k.settle(ctx, failure)
	}
	k.ended = true
	k.logLast(ctx, failure)
	if failure != nil && !failure.ReadOnly {
		k.client.logFailedWrite(ctx, failure)
	}
	if len(k.client.observers) == 0 {
		return failure
	}
	result := CallResult{
		HTTPStatus: k.last.HTTPStatus, Code: k.last.Code,
		Outcome: OutcomeExecuted, Duration: time.Since(k.start), Attempts: k.tries,
	}
	if failure != nil {
		result.Outcome, result.Err = failure.Outcome, failure
	}
	for _, o := range k.client.observers {
		if o.CallEnd != nil {
			o.CallEnd(ctx, k.op.info(), result)
		}
	}
	return failure
}

func (k *call) authorize(ctx context.Context) (err error) {
	if k.client.asksForKey && !k.deadline.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, k.deadline)
		defer stop()
	}
	k.bearer, err = k.client.bearer(ctx)
	k.key = strings.TrimPrefix(k.bearer, bearerScheme)
	return err
}

func (k *call) prepare(ctx context.Context) *transport.Request {
	k.request = transport.Request{
		Class: k.op.class, Fresh: k.op.fresh, Method: k.op.method,
		URL: k.client.base, Path: k.op.path, Query: k.op.query, Header: k, MaxBytes: k.client.maxBytes,
		NoRetry: k.noRetry, Deadline: k.deadline,
	}
	r := &k.request
	if k.client.logger != nil || len(k.client.observers) > 0 { // otherwise nobody reads the attempts
		r.OnAttempt = k.onAttempt(ctx)
	}
	if k.op.class == transport.Write {
		r.MaxBytes = min(r.MaxBytes, maxWriteResponseBytes)
	}
	if k.op.body != noBody {
		k.op.encode(r)
	}
	return r
}

// Header returns the header of one attempt. Its values, one allocation, are not shared with
// other attempts, since a caller-supplied doer may change them in place. It is called last,
// after everything that can fail before the attempt.
func (k *call) Header() http.Header {
	k.sending = true
	h := make(http.Header, 4+len(k.header))
	values := []string{"application/json", k.client.userAgent, k.bearer, k.op.contentType}
	h["Accept"], h["User-Agent"] = values[0:1:1], values[1:2:2]
	for name, v := range k.header {
		h[name] = slices.Clone(v)
	}
	h["Authorization"] = values[2:3:3]
	if k.op.contentType != "" {
		h["Content-Type"] = values[3:4:4]
	}
	return h
}

func (o *operation) encode(r *transport.Request) {
	var body []byte
	switch o.body {
	case formBody:
		body, o.contentType = []byte(o.fields.Form()), "application/x-www-form-urlencoded"
	case jsonBody:
		body, o.contentType = o.fields.JSON(), "application/json"
	case rawBody:
		body, o.contentType = []byte(o.fields[0].Value), "application/json"
	case multipartBody:
		if o.parts == nil {
			o.parts = o.fields.Parts()
		}
		body, o.contentType = wire.Multipart(o.parts)
	}
	r.Body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.BodySize = int64(len(body))
}

// fail builds the call's error from the last response, if there was one.
func (k *call) fail(outcome Outcome, cause error) *Error {
	e := k.last
	e.Op, e.Reference, e.ReadOnly = k.op.name, k.op.reference, k.op.class != transport.Write
	e.Outcome, e.Err = outcome, cause
	return &e
}
