package cardwire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Op is the name of an operation: a constant, or the Op of a [Request].
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
)

// IsRecorded reports whether a client records calls of the operation in its [Journal]. It also
// records those of each [Request] that writes, under its Op.
func (o Op) IsRecorded() bool {
	return ownOps[o].recorded
}

// ownOps are the names that a [Request] must not have: whether a journal records the operation,
// whether it is about a record of another, and whether it names nothing that could be missing.
var ownOps = map[Op]struct{ recorded, ofRecord, namesNothing bool }{
	OpListBINs: {namesNothing: true}, OpListBINsUnderMaintenance: {namesNothing: true},
	OpListCards: {namesNothing: true}, OpCardCapacity: {namesNothing: true},
	OpListRemittanceStates: {namesNothing: true}, OpListRemittanceCurrencies: {namesNothing: true},
	OpCreateTransfer: {recorded: true, namesNothing: true}, OpUploadImage: {namesNothing: true},
	OpCancelOperation: {ofRecord: true}, OpRetryOperation: {ofRecord: true},
	OpGetCard: {}, OpGetCardByOrder: {}, OpGetCardSecrets: {}, OpFreezeCard: {},
}

// operation is everything that differs between one operation of the API and another: what is
// sent, and how the data of a success becomes a T.
type operation[T any] struct {
	spec
	read   func(*wire.Codec, *T)               // reads the data of a success into the zero value
	verify func(*T) error                      // why what was read is not what was asked for; nil: nothing to compare
	record func(*T) (serviceID, status string) // of what the service did; nil: none
	value  *T                                  // what was read
}

// spec is the part of an operation that does not depend on its T.
type spec struct {
	name         Op
	method, path string
	query        string
	body         encoding
	fields       wire.Fields // of the body
	parts        []wire.Part // of a multipart body; nil: the fields
	class        transport.Class
	fresh        bool // a read whose response cannot be checked against the request: a new connection
	cards        bool // a read of cards
	journal      bool // a write that cannot be read back: a journal records it
	timeout      time.Duration
	invalid      error // why it must not be sent

	// For writes only.
	reference string                 // the caller-supplied identifier; "": none, or an invalid one
	intent    wire.Fields            // what makes two requests the same; nil: fields
	amount    decimal.Decimal        // Intent.Amount
	currency  string                 // Intent.Currency
	proves    func(*wire.Codec) bool // whether unreadable data still proves execution; nil: never
}

// payload is an operation to those who need not know its T: its methods only pass on, so that
// call, and all that handles a response, is compiled once and not for each T.
type payload interface {
	readData(c *wire.Codec)
	verifyData() error
	executedAs() (serviceID, status string)
}

func (o *operation[T]) readData(c *wire.Codec) {
	*o.value = *new(T) // discard what an earlier attempt to read it left
	o.read(c, o.value)
}

func (o *operation[T]) verifyData() error {
	if o.verify == nil {
		return nil
	}
	return o.verify(o.value)
}

func (o *operation[T]) executedAs() (serviceID, status string) {
	if o.record == nil {
		return "", ""
	}
	return o.record(o.value)
}

// accepted returns v, or "" if check refuses it: an invalid reference was never sent, and
// may be anything, so that it stays out of errors.
func accepted(check func(name, v string) error, v string) string {
	return ifTrue(check("", v) == nil, v)
}

// hasReference reports whether the operation is a write with a reference.
func (s *spec) hasReference() bool { return s.class == transport.Write && s.reference != "" }

// isJournaled reports whether the journal records the operation.
func (s *spec) isJournaled() bool { return s.journal && s.reference != "" }

// refusalsExplain reports whether a refusal is believed only if it says why. What a freeze did can be
// read back.
func (s *spec) refusalsExplain() bool { return s.hasReference() && s.name != OpFreezeCard }

// values returns the strings that are sent.
func (s *spec) values() (list []string) {
	for _, f := range s.fields {
		list = append(list, f.Value)
	}
	for _, p := range s.parts {
		list = append(list, p.Filename)
	}
	if s.body == rawBody {
		list = wire.Strings([]byte(s.fields[0].Value))
	}
	query, _ := url.ParseQuery(s.query)
	return slices.Concat(append(slices.Collect(maps.Values(query)), list)...)
}

type encoding uint8

const (
	noBody        encoding = iota
	formBody               // application/x-www-form-urlencoded
	jsonBody               // application/json, an object of strings
	rawBody                // application/json, the one field's value
	multipartBody          // multipart/form-data
)

// object reads data that is an object with these fields.
func object[T any](fields []wire.FieldOf[T], v wire.Variant) func(*wire.Codec, *T) {
	return func(c *wire.Codec, dst *T) { wire.Object(c, dst, fields, v) }
}

// rows reads data that is an array of objects with these fields.
func rows[T any](fields []wire.FieldOf[T]) func(*wire.Codec, *[]T) {
	return func(c *wire.Codec, dst *[]T) { wire.Rows(c, dst, fields, wire.Whole) }
}

// get is a GET without parameters.
func get[T any](name Op, path string, read func(*wire.Codec, *T)) operation[T] {
	return operation[T]{spec: spec{name: name, method: http.MethodGet, path: path}, read: read}
}

// call is one call of an operation.
type call struct {
	callOptions
	client  *config
	op      *spec
	payload payload

	ctx         context.Context // the caller's, or what the observers made of it
	start       time.Time
	deadline    time.Time // of the whole call; zero: the context's alone
	open        bool      // the start was reported, and the end was not
	intent      *Intent   // the reference that this call has, until its result is recorded; nil: none
	turn        *turn     // that this call has, until its end; nil: none
	bearer      string    // the Authorization header
	contentType string    // of the body; "": there is none
	sending     bool      // a request may have been sent

	last  Error // what is known of the last response
	tries int   // the requests made
}

// do is the one path that every operation takes, from its method to its result:
//
//	GetCard    says what is sent, and what the response must be
//	do         makes a call of that
//	begin      checks the call; of a write it claims the reference in the journal
//	send       gets the key, makes the request, and has the engine of package transport carry it
//	Do         makes attempts, by go-retryablehttp, until one of them ends the call
//	RoundTrip  makes one attempt, from the rate limiter to the last byte of the response
//	receive    finds out what is known of the response, and makes an error of what judge says
//	read       reads the envelope and its data, by the field tables of package wire
//	judge      decides, by these facts alone, whether the call happened
//	end        records the result of a write in the journal, and reports it
//
// With an error do returns nil, unless the error is one of withValue.
func do[T any](ctx context.Context, c *Client, op operation[T], opts []CallOption) (*T, error) {
	op.value = new(T)
	k := &call{client: c.settings(), op: &op.spec, payload: &op, ctx: ctx}
	k.apply(opts)
	defer k.endAfterPanic()
	failure := k.begin()
	if failure == nil {
		failure = k.send()
	}
	switch failure = k.end(failure); {
	case failure == nil:
		return op.value, nil
	case slices.ContainsFunc(withValue, func(kind error) bool { return errors.Is(failure.Err, kind) }):
		return op.value, failure
	}
	return nil, failure
}

// withValue are the errors with which what was read is returned too.
var withValue = []error{ErrElements, ErrParameterIgnored, ErrDrift, ErrSetup}

func orZero[T any](v *T, err error) (T, error) {
	if v == nil {
		v = new(T)
	}
	return *v, err
}

// begin notifies the observers, and claims a write's reference; if it fails, nothing is sent.
func (k *call) begin() *Error {
	if err := k.ready(); err != nil {
		return k.unready(err)
	}
	k.start, k.open = time.Now(), true
	k.deadline = k.ownDeadline()
	for _, o := range k.client.observers {
		if o.CallStart != nil {
			k.ctx = cmp.Or(o.CallStart(k.ctx, k.info()), k.ctx)
		}
	}
	switch {
	case k.op.isJournaled():
		return k.claim()
	case ownOps[k.op.name].ofRecord:
		return k.takeTurn()
	}
	return nil
}

// ready returns why nothing can be sent, or nil.
func (k *call) ready() error {
	switch {
	case k.client.engine == nil:
		return badSetup("the client was not created by New")
	case k.ctx == nil:
		return badSetup("the context is nil")
	case k.wrong != nil:
		return k.wrong
	case k.prefetch > 0:
		return badSetup("WithPrefetch is for AllPages and AllCards")
	case k.op.journal && k.client.journal == nil:
		return badSetup("no journal: pass WithJournal with sqljournal's, " +
			"or with journal.NewMemory if an order may be paid again after a restart")
	case k.ctx.Err() != nil: // checked first: the journal could not void an invalid call on this context
		return hideCause("the context was already canceled or expired", errors.Join(k.ctx.Err(), context.Cause(k.ctx)))
	}
	return k.op.invalid
}

// ownDeadline returns the call's own deadline, after which a write with a reference sends
// nothing, even if the context allows more; zero: the context's deadline applies.
func (k *call) ownDeadline() time.Time {
	own := k.start.Add(cmp.Or(k.client.timeout, k.op.timeout, check.DefaultTimeout))
	switch d, ok := k.ctx.Deadline(); {
	case !ok, k.op.hasReference() && own.Before(d):
		return own
	case k.op.hasReference():
		return d
	}
	return time.Time{}
}

// unready returns the error of a call that cannot be sent. If a parameter is invalid, no
// request like it was ever sent, and its order will fail.
func (k *call) unready(err error) *Error {
	if !k.op.isJournaled() || !errors.Is(err, ErrInvalidParams) {
		return k.fail(OutcomeNotSent, err)
	}
	now := time.Now()
	return k.void(k.newIntent(now, now), err, "a parameter is invalid")
}

// endAfterPanic ends a call that a panic in caller code cut short.
func (k *call) endAfterPanic() {
	if !k.open {
		return
	}
	failure := k.fail(OutcomeNotSent, nil)
	if k.sending {
		failure.Outcome = OutcomeUnknown
	}
	_ = k.end(failure) // the panic continues
}

// send sends the request, and returns what the response means. One that contradicts a parameter is
// asked for once more, on a new connection: a card's status may change while a page is read.
func (k *call) send() *Error {
	if err := k.authorize(); err != nil {
		return k.fail(OutcomeNotSent, err)
	}
	request := k.request()
	failure := k.receive(k.client.engine.Do(k.ctx, request))
	if failure == nil || k.noRetry || !errors.Is(failure.Err, ErrParameterIgnored) {
		return failure
	}
	k.last, request.Fresh = Error{}, true
	return k.receive(k.client.engine.Do(k.ctx, request))
}

// end records and reports the result of a call whose start was reported, and returns its error.
func (k *call) end(failure *Error) *Error {
	if !k.open {
		return failure
	}
	if failure != nil && failure.Outcome == OutcomeExecuted {
		id, _ := k.payload.executedAs()
		failure.ServiceID = cmp.Or(failure.ServiceID, id)
	}
	switch {
	case k.intent != nil:
		failure = k.recordResult(failure)
	case k.turn != nil:
		k.leaveTurn(failure)
	}
	k.open = false
	k.logEnd(failure)
	result := CallResult{
		HTTPStatus: k.last.HTTPStatus, Code: k.last.Code,
		Outcome: OutcomeExecuted, Duration: time.Since(k.start), Attempts: k.tries,
	}
	if failure != nil {
		result.Outcome, result.Err = failure.Outcome, failure
	}
	for _, o := range k.client.observers {
		if o.CallEnd != nil {
			o.CallEnd(k.ctx, k.info(), result)
		}
	}
	return failure
}

// authorize gets the Authorization header: from the key source, if there is one.
func (k *call) authorize() (err error) {
	if k.client.keySource == nil {
		k.bearer = k.client.bearer
		return nil
	}
	ctx := k.ctx
	if !k.deadline.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, k.deadline)
		defer stop()
	}
	key, err := k.client.keySource(ctx)
	if err != nil {
		return hideKeySource(err)
	}
	k.bearer, err = bearer(setting{"the API key of the key source", key})
	return err
}

// key returns the API key, which no error contains.
func (k *call) key() string { return strings.TrimPrefix(k.bearer, bearerScheme) }

func (k *call) request() *transport.Request {
	r := &transport.Request{
		Class: k.op.class, Method: k.op.method, CardData: k.op.cards,
		Fresh: k.op.fresh || k.fresh || k.op.cards && k.client.profile.TrustResponses,
		URL:   k.client.base, Path: k.op.path, Query: k.op.query, Header: k, MaxBytes: k.client.maxBytes,
		NoRetry: k.noRetry, Deadline: k.deadline,
	}
	if k.client.logger != nil || len(k.client.observers) > 0 { // otherwise nobody reads the attempts
		r.OnAttempt = k.onAttempt
	}
	if len(k.client.profile.RetryCodes) > 0 {
		r.Busy = k.client.profile.asksForRetry
	}
	if k.op.class == transport.Write {
		r.MaxBytes = min(r.MaxBytes, maxWriteResponseBytes)
	}
	if k.op.body != noBody {
		var body []byte
		body, k.contentType = k.op.encode()
		r.Body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.BodySize = int64(len(body))
	}
	return r
}

// Header returns the header of one attempt, which shares nothing with others: a
// caller-supplied doer may change it. It is called last, after everything that can fail
// before the attempt.
func (k *call) Header() http.Header {
	h := make(http.Header, 5+len(k.header))
	k.addTraceParent(h)
	k.sending = true
	values := []string{"application/json", k.client.userAgent, "gzip", k.bearer, k.contentType} // one allocation: BenchmarkCardwire
	value := func(i int) []string { return values[i : i+1 : i+1] }
	h["Accept"], h["User-Agent"] = value(0), value(1)
	if k.op.class == transport.Read && k.op.name != OpGetCardSecrets {
		h["Accept-Encoding"] = value(2)
	}
	for name, v := range k.header {
		h[name] = slices.Clone(v)
	}
	h["Authorization"] = value(3)
	if k.contentType != "" {
		h["Content-Type"] = value(4)
	}
	return h
}

// encode returns the body and its media type.
func (s *spec) encode() (body []byte, contentType string) {
	switch s.body {
	case formBody:
		return []byte(s.fields.Form()), "application/x-www-form-urlencoded"
	case jsonBody:
		return s.fields.JSON(), "application/json"
	case rawBody:
		return []byte(s.fields[0].Value), "application/json"
	}
	if s.parts == nil {
		return wire.Multipart(s.fields.Parts())
	}
	return wire.Multipart(s.parts)
}

// fail builds the call's error from the last response, if there was one.
func (k *call) fail(outcome Outcome, cause error) *Error {
	e := k.last
	e.Op, e.Reference, e.ReadOnly = k.op.name, k.op.reference, k.op.class != transport.Write
	e.Outcome, e.Err = outcome, cause
	return &e
}
