// Package transport carries one call to the service: it chooses the engine,
// repeats what may be repeated, reads the whole answer and says what is proven
// about it. All retrying runs in go-retryablehttp, with every default of it
// replaced; no other package knows that library.
package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Doer sends one request. *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Class says how a call may be carried and when it may be repeated.
type Class uint8

const (
	// Read changes nothing: pooled connections, repeated by the policy.
	Read Class = iota
	// Secret reads card secrets: a fresh connection, at most one repeat. Not
	// pooled because net/http logs what arrives unasked on an idle connection.
	Secret
	// Write changes something: a fresh connection, repeated only where it is
	// proven that nothing was sent. With the engines of this package, no write to
	// its connection begins after its deadline, the earlier of Request.Deadline and
	// the context's, by the monotonic or the wall clock, whichever is first to pass
	// it. Bytes handed over before may arrive later.
	Write
)

// Policy says how often and how patiently calls are repeated.
type Policy struct {
	// MaxRetries is how often a Read is repeated; Secret and Write have lower
	// limits of their own. 0: nothing is repeated.
	MaxRetries int
	// MinDelay and MaxDelay bound the wait before repeat n, counted from 0: a
	// random time of at most MinDelay*2^n and at most MaxDelay; MaxDelay 0: no
	// bound of its own.
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
	// Transport is cloned into both engines; nil: a transport with sound limits.
	// Ignored where there is a Doer.
	Transport *http.Transport
	// Policy governs repeats.
	Policy Policy
	// FreshReads gives each attempt of a Read a connection of its own too.
	FreshReads bool
	// Limit is waited for before every attempt; its error ends the call. nil: none.
	Limit func(context.Context) error
}

// Engine carries calls. It is safe for concurrent use.
type Engine struct {
	doer    Doer            // a caller's; nil: pooled and fresh
	pooled  *http.Transport // for reads
	fresh   *http.Transport // for everything else: a connection for each attempt
	policy  Policy
	limit   func(context.Context) error
	library library
	budget  budget
	buffers sync.Pool // of *buffer

	// Shared by all calls, and never written to.
	noHeader http.Header
	stub     http.Response
	wall     func(time.Time) time.Time // the fence's
}

// New makes an Engine. It does not touch the network.
func New(cfg Config) *Engine {
	e := &Engine{doer: cfg.Doer, policy: cfg.Policy, limit: cfg.Limit, noHeader: http.Header{}}
	e.stub = http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	e.wall = func(t time.Time) time.Time { return t.Round(0) }
	e.library = newLibrary(cfg.Policy.MaxRetries)
	if e.doer == nil {
		e.pooled, e.fresh = newTransports(cfg.Transport)
		if cfg.FreshReads {
			e.pooled = e.fresh
		}
	}
	return e
}

// CloseIdleConnections closes the connections that the Engine itself keeps for
// the next read. Those of a caller's Doer are the caller's, and stay.
func (e *Engine) CloseIdleConnections() {
	if e.pooled != nil {
		e.pooled.CloseIdleConnections()
	}
}

// Attempt is one request of a call.
type Attempt struct {
	// Start is when the attempt began.
	Start time.Time
	// Duration is how long it took, to the last byte of the answer.
	Duration time.Duration
	// Phase is how far it came: "connect", "sent" or "answered". Where no trace
	// tells the first two apart, "sent" is what is not known to be "connect".
	Phase string
	// HTTPStatus is the answer's status; 0: no answer.
	HTTPStatus int
	// Wait is the pause before the next attempt; 0: there was none.
	Wait time.Duration
}

// Request is what a call sends, in one attempt or more.
type Request struct {
	// Class says how it is carried and repeated.
	Class Class
	// Method is the HTTP method.
	Method string
	// URL is absolute, http or https. It may be shared: it is only copied.
	URL *url.URL
	// Path follows the path of URL, without escapes; "": nothing does.
	Path string
	// Query takes the place of URL's query, encoded; "": that stays.
	Query string
	// Header makes the header of an attempt, names and values checked; nil: none.
	// Each attempt needs one of its own: a caller's Doer may change it, and keep it
	// for longer than the attempt takes.
	Header func() http.Header
	// Body opens the body, once an attempt; nil: none. What it returns is closed
	// once, before Do returns, but perhaps while net/http still reads it.
	Body func() (io.ReadCloser, error)
	// BodySize is the exact length of the body in bytes; 0: there is none.
	BodySize int64
	// Deadline is that of the whole call with its repeats and waits; zero: the
	// context's alone.
	Deadline time.Time
	// MaxBytes is how long the body of the answer may be, decompressed.
	MaxBytes int64
	// NoRetry makes it one attempt.
	NoRetry bool
	// OnAttempt is told of each attempt, once it is known whether another
	// follows; nil: nobody is.
	OnAttempt func(Attempt)
}

func (r *Request) header() http.Header {
	if r.Header == nil {
		return http.Header{}
	}
	return r.Header()
}

// address is a URL of an attempt's own.
func (r *Request) address() url.URL {
	u := *r.URL
	u.Path += r.Path
	if r.Query != "" {
		u.RawQuery = r.Query
	}
	return u
}

// Reply says what became of a call. Where a limiter, a context or a deadline
// stopped a repeat, it is the last answer together with an Err.
type Reply struct {
	// Status is the status of the last answer; 0: it had no readable head.
	Status int
	// Header is the header of the last answer.
	Header http.Header
	// Body is the whole body of the last answer, valid until Release.
	Body []byte
	// Attempts are the requests made; nil where the first was the only one and
	// was answered.
	Attempts []Attempt
	// NotSent is proof that no byte of the request left this machine in any
	// attempt. For a Read it says that every attempt ended in a dial that failed.
	NotSent bool
	// Redirected says that the answer is a redirect, or answers another request
	// than the one sent.
	Redirected bool
	// RetryAfter is how long the last answer asks to wait, at most ten years; 0:
	// it does not.
	RetryAfter time.Duration
	// Tries is the number of attempts begun.
	Tries int
	// Err is nil if the last answer was read to its end. It is sealed: its text is
	// one of a few fixed ones, and errors.Is sees through it.
	Err error

	buf   *buffer
	owner *Engine
}

// Release clears the body and gives its memory back. It is safe to call twice.
func (r *Reply) Release() {
	if r.buf != nil {
		r.owner.recycle(r.buf)
	}
	r.Body, r.buf = nil, nil
}

// ErrTooLarge says that the body of the answer exceeds MaxBytes.
var ErrTooLarge = errors.New("transport: the answer is too large")

// Do carries a call to its end, until when in must not change. The Reply is never
// nil, and is the caller's to release.
func (e *Engine) Do(ctx context.Context, in *Request) *Reply {
	c := &call{ctx: ctx, in: in, engine: e}
	c.reply = Reply{NotSent: true, owner: e}
	if err := in.validate(); err != nil {
		c.reply.Err = seal("invalid request", err)
		return &c.reply
	}
	// An error comes only from a wait that the context cut short.
	if _, err := e.library.Do(c.carry()); err != nil { //nolint:bodyclose // of a stub
		c.reply.Err = c.failure(err)
	}
	return &c.reply
}
