package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// call is the state of one call.
type call struct {
	ctx      context.Context // the caller's
	in       *Request
	engine   *Engine
	response Response

	attempt Attempt // the one in progress, or the last
	unsent  bool    // the attempt provably sent nothing
	final   bool    // no attempt may follow, whatever the class
	refused bool    // the attempt was not begun

	carried
}

// attempts is the RoundTripper below go-retryablehttp. It has no CloseIdleConnections on
// purpose: the library calls that after each failure.
type attempts struct{}

// RoundTrip makes one attempt of the call that r carries, from the limiter to the last
// byte of the response. So a truncated body is a failed attempt like any other, and
// there is no body left that could be lost, or block the drain.
//
// It never fails, and its response is a stub with a status that makes http.Client look
// no further: what happened is in the call.
func (attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callOf(r.Context())
	if err := c.admit(); err != nil {
		c.refused = true
		c.response.Err = c.failure(err)
		return c.stub(r), nil
	}
	c.begin()
	ctx, stop := c.bounded()
	defer stop()
	body, err := c.openBody()
	if err != nil {
		c.settle(seal("the request body could not be opened", err), true)
		c.final = true
		return c.stub(r), nil
	}
	defer body.Close()
	conn := c.trace(ctx)
	if conn != nil {
		ctx = conn.attach()
	}
	resp, err := c.engine.carrier(c.in.Class).RoundTrip(c.request(ctx, body))
	if err = c.receive(ctx, resp, err); err == nil {
		c.settle(nil, false)
		return c.stub(r), nil
	}
	unsent := conn.unused() || c.dialFailed(err)
	c.settle(conn.explain(err), unsent)
	return c.stub(r), nil
}

// stub is the response to r, which the library needs to find the call where another
// attempt may follow.
func (c *call) stub(r *http.Request) *http.Response {
	if !c.retryable() {
		return &c.engine.stub
	}
	stub := c.engine.stub
	stub.Request = r
	return &stub
}

// admit waits for the limiter and reports whether an attempt may begin.
func (c *call) admit() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.engine.limit != nil {
		ctx, stop := c.until(c.in.Deadline)
		defer stop()
		if err := c.engine.limit(ctx); err != nil {
			return seal("the rate limiter returned an error", err)
		}
	}
	c.attempt = Attempt{Start: time.Now()}
	if d := c.in.Deadline; !d.IsZero() && !c.attempt.Start.Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}

// until is the caller's context with a deadline, unless that is zero or later than
// the context's own.
func (c *call) until(end time.Time) (context.Context, context.CancelFunc) {
	if d, ok := c.ctx.Deadline(); end.IsZero() || ok && !end.Before(d) {
		return c.ctx, func() {}
	}
	return context.WithDeadline(c.ctx, end)
}

// bounded is the context of an attempt.
func (c *call) bounded() (context.Context, context.CancelFunc) {
	end := c.in.Deadline
	if limit := c.engine.policy.Attempt; limit > 0 && c.in.Class == Read {
		end = earlier(end, c.attempt.Start.Add(limit))
	}
	return c.until(end)
}

// begin forgets the response of the attempt before.
func (c *call) begin() {
	c.response.Release()
	c.response = Response{
		Attempts: c.response.Attempts,
		NotSent:  c.response.NotSent,
		Tries:    c.response.Tries + 1,
		owner:    c.engine,
	}
}

// earlier returns the earlier of two times; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (c *call) openBody() (io.ReadCloser, error) {
	if c.in.BodySize == 0 {
		return c.emptyBody(), nil
	}
	body, err := c.in.Body()
	if err != nil {
		return nil, err
	}
	return &onceCloser{ReadCloser: body}, nil
}

// emptyBody must not be recognized as empty where a Write goes through a
// caller-supplied doer: what has no body net/http sends again by itself, without end
// over HTTP/2. The price is that over HTTP/1.1 it goes out as an empty chunk.
func (c *call) emptyBody() io.ReadCloser {
	if c.in.Class == Write && c.engine.doer != nil {
		return &onceCloser{ReadCloser: http.NoBody}
	}
	return http.NoBody
}

// request is a literal because http.NewRequest would parse the URL again and set
// GetBody, with which net/http sends a body again by itself. A doer may change the
// request, and may keep it after the attempt has ended.
func (c *call) request(ctx context.Context, body io.ReadCloser) *http.Request {
	out := &struct {
		request http.Request
		url     url.URL
	}{url: c.in.address()}
	out.request = *(&http.Request{
		Method:        c.in.Method,
		URL:           &out.url,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        c.in.header(),
		Body:          body,
		ContentLength: c.in.BodySize,
		Host:          c.in.URL.Host,
	}).WithContext(ctx)
	return &out.request
}

// carrier returns what carries a request to the head of its response, and follows no
// redirect.
func (e *Engine) carrier(class Class) http.RoundTripper {
	switch d := e.doer.(type) {
	case nil:
		if class == Read {
			return e.pooled
		}
		return e.fresh
	case *http.Client:
		return carrierOf(d)
	default:
		return e.custom
	}
}

// carrierOf uses a caller-supplied client as it is at this moment: mocks are often
// installed after it was handed over. Redirects are all that a client without
// cookies and a timeout adds to its transport, so that one goes straight there.
func carrierOf(hc *http.Client) http.RoundTripper {
	switch {
	case hc.Jar != nil || hc.Timeout != 0:
		single := *hc
		single.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return doerTripper{&single}
	case hc.Transport == nil:
		return http.DefaultTransport
	}
	return hc.Transport
}

// doerTripper is a doer as a RoundTripper.
type doerTripper struct{ Doer }

func (d doerTripper) RoundTrip(r *http.Request) (*http.Response, error) { return d.Do(r) }

// errNoResponse is for doers that return neither a response nor an error.
var errNoResponse = errors.New("transport: no response and no error")

// receive reads the response, head and body, and closes it.
func (c *call) receive(ctx context.Context, resp *http.Response, err error) error {
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		return err
	}
	if resp == nil || resp.StatusCode == 0 {
		return errNoResponse
	}
	c.response.Status, c.response.Header = resp.StatusCode, resp.Header
	c.response.Redirected = resp.StatusCode/100 == 3 || c.answersOther(resp.Request)
	// net/http sets Close for such a response; stubs leave out only the length.
	c.response.MayBeCut = resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.Close
	if after := resp.Header["Retry-After"]; len(after) > 0 {
		c.response.RetryAfter = parseRetryAfter(after[0], time.Now())
	}
	// After a 101 the connection speaks another protocol, and no context ends it any
	// more: there is nothing to read.
	if resp.Body == nil || resp.StatusCode < http.StatusOK {
		return nil
	}
	c.response.buf = c.engine.buffer()
	if err := c.response.buf.fill(ctx, resp.Body, resp.ContentLength, c.in.MaxBytes); err != nil {
		return err
	}
	c.response.Body = c.response.buf.b
	return nil
}

// answersOther reports whether a doer, which may follow redirects by itself,
// returned the response to another request than the one it was given.
func (c *call) answersOther(r *http.Request) bool {
	if c.engine.doer == nil || r == nil {
		return false
	}
	followed := r.Response != nil || r.Method != c.in.Method
	if _, ok := c.engine.doer.(*http.Client); ok {
		return followed // its transport may rewrite URLs, as those of tests do
	}
	return followed || r.URL == nil || !c.in.isFor(r.URL)
}

// dialFailed reports whether a Read failed because its dial did. A trace would
// prove more and slow every Read down: before the dial, net/http may have lost
// an idle connection together with the request.
func (c *call) dialFailed(err error) bool {
	op := operation(err)
	return c.engine.doer == nil && c.in.Class == Read && (op == "dial" || op == "proxyconnect")
}

// settle records how the attempt ended.
func (c *call) settle(err error, unsent bool) {
	c.unsent = unsent
	c.response.NotSent = c.response.NotSent && unsent
	c.attempt.HTTPStatus = c.response.Status
	switch {
	case c.response.Status != 0:
		c.attempt.Phase = "received"
	case unsent || connecting(err):
		c.attempt.Phase = "connect"
	default:
		c.attempt.Phase = "sent"
	}
	if err != nil {
		c.response.Err = c.failure(err)
		c.final = permanent(err)
	}
}

// failure seals an error. If the caller's context is done, that is the cause that the
// caller knows about.
func (c *call) failure(err error) error {
	done := c.ctx.Err()
	if done == nil {
		return cause(err)
	}
	return seal(words(done), errors.Join(done, context.Cause(c.ctx), err))
}

// record adds the attempt to the response, unless it was clean, and reports it.
func (c *call) record() {
	clean := c.response.Err == nil && c.response.Tries == 1 && c.attempt.Wait == 0
	if clean && c.in.OnAttempt == nil {
		return
	}
	c.attempt.Duration = time.Since(c.attempt.Start)
	if !clean {
		c.response.Attempts = append(c.response.Attempts, c.attempt)
	}
	if c.in.OnAttempt != nil {
		c.in.OnAttempt(c.attempt)
	}
}

// connTrace records whether an attempt got a connection. net/http calls GotConn
// before it writes the first byte of a request, so a GetConn without a GotConn proves
// that nothing was sent. Its hooks may be called late, from other goroutines: hence
// one for each attempt, and atomics. It is a context so that a new connection can find
// the fence of the attempt that it is made for.
type connTrace struct {
	context.Context // the attempt's
	sought, got     atomic.Bool
	fence           fence
}

type traceKey struct{}

// trace returns the trace of an attempt, with a fence for a Write; nil: none is needed.
func (c *call) trace(ctx context.Context) *connTrace {
	if c.engine.doer != nil || c.in.Class == Read {
		return nil
	}
	t := &connTrace{Context: ctx}
	if c.in.Class == Write {
		t.fence.deadline, t.fence.wall = c.end(), c.engine.wall
	}
	return t
}

func (t *connTrace) attach() context.Context {
	return httptrace.WithClientTrace(t, &httptrace.ClientTrace{
		GetConn: func(string) { t.sought.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) },
	})
}

// Value returns the trace itself, or what the attempt's context has.
func (t *connTrace) Value(key any) any {
	if key == (traceKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// unused reports whether the attempt provably sent nothing. nil proves nothing.
func (t *connTrace) unused() bool {
	return t != nil && t.sought.Load() && (!t.got.Load() || t.fence.expired() && t.fence.bar())
}

// explain makes the deadline the error of an attempt that the fence stopped:
// net/http may report only that the connection was closed.
func (t *connTrace) explain(err error) error {
	if t == nil || !t.fence.stopped() {
		return err
	}
	return errors.Join(errExpired, err)
}

// onceCloser lets both the transport and the engine close a body: not every doer
// closes it, and not every body may be closed twice.
type onceCloser struct {
	io.ReadCloser
	once sync.Once
	err  error
}

func (c *onceCloser) Close() error {
	c.once.Do(func() { c.err = c.ReadCloser.Close() })
	return c.err
}
