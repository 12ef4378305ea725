// Package transport carries one call to the service: it chooses the engine, retries
// where that is safe, reads the whole response and reports what is proven about it.
// All retrying runs in go-retryablehttp, with every default of it replaced; no other
// package uses that library.
package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Doer sends one request. *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Class is how a call may be carried and when it may be retried.
type Class uint8

const (
	// Read changes nothing: pooled connections, retried by the policy.
	Read Class = iota
	// Secret reads card secrets: a fresh connection, at most one retry. It is not
	// pooled because net/http logs unsolicited bytes on an idle connection.
	Secret
	// Write changes something: a fresh connection, retried only if provably nothing
	// was sent. With the engines of this package, no write to its connection begins
	// after its deadline, the earlier of Request.Deadline and the context's, by the
	// monotonic or the wall clock, whichever passes it first. Bytes handed over before
	// may arrive later.
	Write
)

// Policy is how often calls are retried, and after which waits.
type Policy struct {
	// MaxRetries is how often a Read is retried; Secret and Write have lower limits.
	// 0: nothing is retried.
	MaxRetries int
	// MinDelay and MaxDelay bound the wait before retry n, counted from 0: a random
	// time of at most MinDelay*2^n and at most MaxDelay; MaxDelay 0: no bound.
	MinDelay, MaxDelay time.Duration
	// MaxRetryAfter is the longest wait that the service may ask for; a longer
	// one ends the call. 0: any ends it.
	MaxRetryAfter time.Duration
	// Attempt is how long one attempt of a Read may take; 0: as long as the call.
	Attempt time.Duration
}

// Config is what an Engine is made from. The zero value is usable: no retries.
type Config struct {
	// Doer carries every class of call; nil: the engines of this package.
	Doer Doer
	// Transport is cloned into both engines; nil: a transport with sensible limits.
	// It is ignored if there is a Doer.
	Transport *http.Transport
	// Policy governs retries.
	Policy Policy
	// Limit is called before every attempt; its error ends the call. nil: none.
	Limit func(context.Context) error
}

// Engine carries calls. It is safe for concurrent use.
type Engine struct {
	doer    Doer              // caller-supplied; nil: pooled and fresh
	custom  http.RoundTripper // the doer, unless it is an *http.Client
	pooled  *http.Transport   // for reads
	fresh   *http.Transport   // for everything else: a connection for each attempt
	policy  Policy
	limit   func(context.Context) error
	library library
	budget  budget
	buffers sync.Pool // of *buffer

	// Shared by all calls, and never written to.
	noHeader http.Header
	stub     http.Response
	wall     func(time.Time) time.Time // of the fence
}

// New makes an Engine. It does not touch the network.
func New(cfg Config) *Engine {
	e := &Engine{doer: cfg.Doer, custom: doerTripper{cfg.Doer}, policy: cfg.Policy, limit: cfg.Limit, noHeader: http.Header{}}
	e.stub = http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	e.wall = func(t time.Time) time.Time { return t.Round(0) }
	e.library = newLibrary(cfg.Policy.MaxRetries)
	if e.doer == nil {
		e.pooled, e.fresh = newTransports(cfg.Transport)
	}
	return e
}

// CloseIdleConnections closes the Engine's own idle connections. Those of a
// caller-supplied Doer stay.
func (e *Engine) CloseIdleConnections() {
	if e.pooled != nil {
		e.pooled.CloseIdleConnections()
	}
}

// Attempt is one request of a call.
type Attempt struct {
	// Start is when the attempt began.
	Start time.Time
	// Duration is how long it took, to the last byte of the response.
	Duration time.Duration
	// Phase is how far it got: "connect", "sent" or "received". Without a trace, "sent"
	// is anything that is not known to be "connect".
	Phase string
	// HTTPStatus is the status of the response; 0: there was none.
	HTTPStatus int
	// Wait is the pause before the next attempt; 0: there was none.
	Wait time.Duration
}

// Request is what a call sends, in one or more attempts.
type Request struct {
	// Class is how it is carried and retried.
	Class Class
	// Method is the HTTP method.
	Method string
	// URL is absolute, http or https. It may be shared: it is only copied.
	URL *url.URL
	// Path is appended to the path of URL, without escapes; "": nothing.
	Path string
	// Query replaces URL's query, encoded; "": that stays.
	Query string
	// Header makes the header of an attempt, with valid names and values; nil: none.
	// Each attempt needs its own: a caller-supplied Doer may change it, and keep it
	// after the attempt has ended.
	Header interface{ Header() http.Header }
	// Body opens the body, once for each attempt; nil: none. What it returns is closed
	// once, before Do returns, but perhaps while net/http still reads it.
	Body func() (io.ReadCloser, error)
	// BodySize is the exact length of the body in bytes; 0: there is none.
	BodySize int64
	// Deadline is the deadline of the whole call with its retries and waits; zero: only
	// the context's applies.
	Deadline time.Time
	// MaxBytes bounds the body of the response, decompressed.
	MaxBytes int64
	// NoRetry limits the call to one attempt.
	NoRetry bool
	// OnAttempt is called after each attempt, once it is known whether another
	// follows; nil: not called.
	OnAttempt func(Attempt)
}

func (r *Request) header() http.Header {
	if r.Header == nil {
		return http.Header{}
	}
	return r.Header.Header()
}

// address returns the URL of one attempt, which shares nothing with others.
func (r *Request) address() url.URL {
	u := *r.URL
	u.Path += r.Path
	if r.Query != "" {
		u.RawQuery = r.Query
	}
	return u
}

// isFor reports whether u is the URL of the request's attempts. It compares what that is
// made of: a doer may have changed the URL that it was given.
func (r *Request) isFor(u *url.URL) bool {
	base := r.URL
	path, below := strings.CutPrefix(u.Path, base.Path)
	return below && path == r.Path && u.RawPath == base.RawPath && u.RawQuery == cmp.Or(r.Query, base.RawQuery) &&
		u.Scheme == base.Scheme && u.Opaque == base.Opaque && u.Host == base.Host && u.User == base.User
}

// Response is the result of a call. If a limiter, a context or a deadline stopped a
// retry, it is the last response together with an Err.
type Response struct {
	// Status is the status of the last response; 0: it had no readable head.
	Status int
	// Header is the header of the last response.
	Header http.Header
	// Body is the whole body of the last response, valid until Release.
	Body []byte
	// Attempts are the requests made; nil if the first was the only one and got a
	// response.
	Attempts []Attempt
	// NotSent is proof that no byte of the request left this machine in any attempt.
	// For a Read it means that every attempt ended in a failed dial.
	NotSent bool
	// Redirected reports that the response is a redirect, or belongs to another
	// request than the one sent.
	Redirected bool
	// MayBeCut reports that nothing but the end of the connection ended the body.
	MayBeCut bool
	// RetryAfter is how long the last response asks to wait, at most ten years; 0: it
	// does not.
	RetryAfter time.Duration
	// Tries is the number of attempts begun.
	Tries int
	// Err is nil if the last response was read to its end. It is sealed: its message
	// is one of a few fixed ones, and errors.Is finds what is behind it.
	Err error

	buf   *buffer
	owner *Engine
}

// Release clears the body and gives its memory back. It is safe to call twice.
func (r *Response) Release() {
	if r.buf != nil {
		r.owner.recycle(r.buf)
	}
	r.Body, r.buf = nil, nil
}

// ErrTooLarge means that the body of the response exceeds MaxBytes.
var ErrTooLarge = errors.New("transport: the response is too large")

// Do carries a call to its end; in must not change until Do returns. The Response is
// never nil, and the caller must release it.
func (e *Engine) Do(ctx context.Context, in *Request) *Response {
	c := &call{ctx: ctx, in: in, engine: e}
	c.response = Response{NotSent: true, owner: e}
	if err := in.validate(); err != nil {
		c.response.Err = seal("invalid request", err)
		return &c.response
	}
	// An error comes only from a wait that the context cut short.
	if _, err := e.library.Do(c.carry()); err != nil { //nolint:bodyclose // of a stub
		c.response.Err = c.failure(err)
	}
	return &c.response
}
