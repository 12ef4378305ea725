package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// exchange is the record of one call. It is the RoundTripper below go-retryablehttp, and
// has no CloseIdleConnections on purpose: the library calls that after each failure.
type exchange struct {
	ctx      context.Context // the caller's
	in       *Request
	engine   *Engine
	end      deadline // of the call: its own, or its context's
	response Response
	attempt  Attempt // the one in progress, or the last
	busy     bool    // its response asks a Read to be retried
	fresh    bool    // an attempt failed: the next one takes a new connection

	// Kept here to be one allocation with the exchange.
	retrier retryablehttp.Client
	client  http.Client
	outer   retryablehttp.Request
	inner   http.Request
	read    http.Response
	body    bytes.Reader
}

// Do carries a call to its end; in must not change until Do returns. The Response is
// never nil, and the caller must release it. All defaults of go-retryablehttp are replaced:
// by itself it retries a POST on any failed connection and any 5xx, sleeps for any
// Retry-After, if it is a year, and logs every URL to stderr.
func (e *Engine) Do(ctx context.Context, in *Request) *Response {
	x := &exchange{ctx: ctx, in: in, engine: e, response: Response{NotSent: true}}
	contextEnd, _ := ctx.Deadline()
	x.end = deadline{contextEnd, contexts}.or(deadline{in.Deadline, "WithTimeout's"})
	x.client.Transport = x
	x.retrier = retryablehttp.Client{
		HTTPClient: &x.client, RetryMax: x.maxRetries(), CheckRetry: x.checkRetry,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return x.attempt.Wait },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	// Each attempt makes its own request.
	x.inner = *(&http.Request{Method: in.Method, URL: in.URL, Header: e.noHeader}).WithContext(ctx)
	x.outer.Request = &x.inner
	if _, err := x.retrier.Do(&x.outer); err != nil { //nolint:bodyclose // the response was read to its end
		x.response.Err = x.failure(err)
	}
	return &x.response
}

// RoundTrip makes one attempt, from the limiter to the last byte of the response. So a
// truncated body is a failed attempt like any other, and there is no body left that
// could be lost, or block the library's drain.
func (x *exchange) RoundTrip(*http.Request) (*http.Response, error) {
	body, err := x.admit()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	x.begin()
	ctx, stop := x.until(x.bound())
	defer stop()
	var trace *connTrace
	if x.in.Class == Write {
		trace = &connTrace{fence: fence{deadline: x.end.at, wall: x.engine.wall}}
		ctx = trace.attach(ctx)
	}
	request := x.request(ctx, body)
	resp, err := x.carrier(request).RoundTrip(request)
	err = x.receive(ctx, resp, err)
	if trace != nil {
		x.attempt.Resent = trace.written.Load() > 1 // as by a doer that retries
	}
	if err != nil {
		x.abandon()
		return nil, x.classify(trace, err)
	}
	x.busy = x.in.Class == Read && (slices.Contains(retryableStatuses, x.response.Status) ||
		x.in.Busy != nil && x.in.Busy(x.response.Body))
	return x.whole(resp), nil
}

// abandon makes the next attempt of a Read that failed use a new connection, and closes the idle
// ones: where a network forgot one, it forgot others, and each attempt would take another.
func (x *exchange) abandon() {
	if x.in.Class == Read && !errors.Is(x.ctx.Err(), context.Canceled) {
		x.fresh = true
		x.engine.CloseIdleConnections()
	}
}

// stoppedError means that an attempt did not begin.
type stoppedError struct {
	what string // failed; "": the context or the deadline is over
	error
}

func (e *stoppedError) Unwrap() error { return e.error }

// unsentError means that an attempt provably sent nothing.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// admit waits for the limiter and opens the body. Its error is a stoppedError.
func (x *exchange) admit() (io.ReadCloser, error) {
	x.attempt = Attempt{}
	if err := x.ctx.Err(); err != nil {
		return nil, &stoppedError{"", err}
	}
	if x.engine.limit != nil {
		ctx, stop := x.until(x.end)
		defer stop()
		if err := x.engine.limit(ctx); err != nil {
			return nil, &stoppedError{"the rate limiter returned an error", err}
		}
	}
	start := time.Now()
	if d := x.in.Deadline; !d.IsZero() && !start.Before(d) {
		return nil, &stoppedError{"", context.DeadlineExceeded}
	}
	body, err := x.openBody()
	if err != nil {
		return nil, &stoppedError{"the request body could not be opened", err}
	}
	x.attempt.Start = start
	return body, nil
}

// openBody returns http.NoBody for an empty one: a POST then says that its length is 0.
func (x *exchange) openBody() (io.ReadCloser, error) {
	switch {
	case x.in.BodySize < 0:
		return nil, errors.New("transport: the size of the body is negative")
	case x.in.BodySize > 0:
		return x.in.Body()
	}
	return http.NoBody, nil
}

// begin forgets the response of the attempt before.
func (x *exchange) begin() {
	x.response.Release()
	last := x.response
	x.response = Response{
		Attempts: last.Attempts, NotSent: last.NotSent, Resent: last.Resent, Tries: last.Tries + 1, owner: x.engine,
	}
}

// request is a literal because http.NewRequest would parse the URL again and set
// GetBody, with which net/http sends a body again by itself. A doer may change the
// request, and may keep it after the attempt has ended.
func (x *exchange) request(ctx context.Context, body io.ReadCloser) *http.Request {
	out := &struct {
		request http.Request
		url     url.URL
	}{url: x.in.address()}
	out.request = *(&http.Request{
		Method: x.in.Method, URL: &out.url, Host: x.in.URL.Host, Header: x.in.Header.Header(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: body, ContentLength: x.in.BodySize,
	}).WithContext(ctx)
	return &out.request
}

// carrier returns what carries a request to the head of its response, and follows no
// redirect. A caller-supplied client is used as it is at this moment: mocks are often
// installed after it was handed over. Redirects are all that one without cookies and a
// timeout adds to its transport, so that the request goes straight there.
func (x *exchange) carrier(r *http.Request) http.RoundTripper {
	e := x.engine
	hc, isClient := e.doer.(*http.Client)
	switch {
	case e.doer == nil:
		return x.own(r)
	case !isClient:
		return e.custom
	case hc.Jar != nil || hc.Timeout != 0:
		single := *hc
		single.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return doerTripper{&single}
	case hc.Transport == nil:
		return http.DefaultTransport
	}
	return hc.Transport
}

// own returns which of the engine's own connections a request takes.
func (x *exchange) own(r *http.Request) *http.Transport {
	e := x.engine
	if x.in.Class == Write || x.in.Fresh || x.fresh || x.in.BodySize > 0 {
		return e.fresh
	}
	if e.proxied.Proxy == nil {
		return e.kept
	}
	switch proxy, err := e.proxied.Proxy(r); {
	case proxy == nil && err == nil:
		return e.kept
	case x.in.CardData:
		return e.fresh
	}
	return e.proxied
}

// doerTripper is a doer as a RoundTripper.
type doerTripper struct{ Doer }

func (d doerTripper) RoundTrip(r *http.Request) (*http.Response, error) { return d.Do(r) }

// errNoResponse is for doers that return neither a response nor an error.
var errNoResponse = errors.New("transport: no response and no error")

// receive reads the response, head and body, and closes it.
func (x *exchange) receive(ctx context.Context, resp *http.Response, err error) error {
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		return err
	}
	if resp == nil || resp.StatusCode == 0 {
		return errNoResponse
	}
	x.readHead(resp)
	// After a 101 the connection speaks another protocol, and no context ends it any
	// more: there is nothing to read.
	if resp.Body == nil || resp.StatusCode < http.StatusOK {
		return nil
	}
	x.response.buf = x.engine.buffers.Get().(*buffer)
	if err := x.response.buf.fill(ctx, resp.Body, resp.ContentLength, x.in.MaxBytes); err != nil {
		return err
	}
	if err := x.unzip(ctx); err != nil {
		return err
	}
	x.response.Body = x.response.buf.b
	return nil
}

// unzip replaces a body whose one coding is gzip, and which is exactly one member of it, by its
// content. Everything else stays as it came. A reader of gzip is never used again, because its
// window keeps what it has read.
func (x *exchange) unzip(ctx context.Context) error {
	r := &x.response
	if coding := r.Header["Content-Encoding"]; len(coding) != 1 || !strings.EqualFold(coding[0], "gzip") {
		return nil
	}
	member := bytes.NewReader(r.buf.b)
	reader, err := gzip.NewReader(member)
	if err != nil {
		return nil //nolint:nilerr // it stays as it came
	}
	reader.Multistream(false)
	content := Response{buf: x.engine.buffers.Get().(*buffer), owner: x.engine}
	err = content.buf.fill(context.WithoutCancel(ctx), reader, -1, x.in.MaxBytes)
	if err == nil && member.Len() == 0 {
		r.buf, content.buf = content.buf, r.buf
		r.Header = r.Header.Clone() // which may be a doer's own
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
	}
	content.Release()
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	return nil
}

func (x *exchange) readHead(resp *http.Response) {
	r := &x.response
	r.Status, r.Header = resp.StatusCode, resp.Header
	r.Redirected = resp.StatusCode/100 == 3 || x.engine.doer != nil && x.isOfAnotherRequest(resp.Request)
	if to, err := resp.Location(); r.Redirected && err == nil {
		r.RedirectHost = to.Host
	}
	changes := func(line string) bool { return line != "" && !strings.EqualFold(line, "identity") }
	r.Encoded = resp.Uncompressed || slices.ContainsFunc(resp.Header.Values("Content-Encoding"), changes)
	// net/http sets Close for such a response; stubs leave out only the length.
	r.MayBeCut = resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.Close
	if after := resp.Header["Retry-After"]; len(after) > 0 {
		r.RetryAfter = parseRetryAfter(after[0], time.Now())
	}
}

// isOfAnotherRequest reports whether a doer, which may follow redirects by itself,
// returned the response to another request than the one it was given.
func (x *exchange) isOfAnotherRequest(r *http.Request) bool {
	if r == nil {
		return false
	}
	followed := r.Response != nil || r.Method != x.in.Method
	if _, ok := x.engine.doer.(*http.Client); ok {
		return followed // its transport may rewrite URLs, as those of tests do
	}
	return followed || r.URL == nil || *r.URL != x.in.address()
}

// whole returns the response with the body that was read. For a redirect it omits the
// header: http.Client would fail if it could not parse the Location.
func (x *exchange) whole(resp *http.Response) *http.Response {
	x.read = *resp // which may be a doer's own
	x.body.Reset(x.response.Body)
	x.read.Body = io.NopCloser(&x.body)
	if x.response.Redirected {
		x.read.Header = nil
	}
	return &x.read
}

// classify makes the error of an attempt that provably sent nothing an unsentError. For a Read,
// which is harmless, a failed dial is enough, although net/http may have lost an idle
// connection together with the request before the dial: a trace would slow every Read down. A
// doer proves nothing.
func (x *exchange) classify(trace *connTrace, err error) error {
	switch {
	case x.engine.doer != nil:
		return err
	case trace != nil:
		return trace.classify(err)
	case dialFailed(err):
		return &unsentError{err}
	}
	return err
}

// record adds the result of the attempt to the response, and reports it.
func (x *exchange) record(err error) {
	unsent := is[*unsentError](err)
	x.response.NotSent = x.response.NotSent && unsent
	x.response.Resent = x.response.Resent || x.attempt.Resent
	clean := err == nil && x.response.Tries == 1 && x.attempt.Wait == 0 && !x.attempt.Resent
	if clean && x.in.OnAttempt == nil {
		return
	}
	x.attempt.Duration, x.attempt.HTTPStatus, x.attempt.Phase = time.Since(x.attempt.Start), x.response.Status, "sent"
	switch {
	case x.response.Status != 0:
		x.attempt.Phase = "received"
	case unsent || connecting(err):
		x.attempt.Phase = "connect"
	}
	if !clean {
		x.response.Attempts = append(x.response.Attempts, x.attempt)
	}
	if x.in.OnAttempt != nil {
		x.in.OnAttempt(x.attempt)
	}
}
