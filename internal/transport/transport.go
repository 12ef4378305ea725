// Package transport carries one call to the service: it chooses the engine, has
// go-retryablehttp retry where that is safe, reads the whole response and reports what is
// proven about it. No other package uses that library.
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Doer sends one request. *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Class is how a call may be carried and when it may be retried.
type Class uint8

const (
	// Read changes nothing: it is retried by the policy.
	Read Class = iota
	// Write changes something: a fresh connection, retried only if provably nothing was
	// sent. With the engines of this package, no write to its connection begins after
	// Request.Deadline or the context's.
	Write
)

// Policy is how often calls are retried, a Write at most twice, and after which waits:
// see cardwire.RetryPolicy.
type Policy struct {
	MaxRetries         int
	MinDelay, MaxDelay time.Duration
	MaxRetryAfter      time.Duration
	Attempt            time.Duration
}

// Config is what an Engine is made from. The zero value is usable: no retries.
type Config struct {
	// Doer carries every class of call; nil: the engines of this package.
	Doer Doer
	// Transport is cloned into the engines, unless there is a Doer; nil: one with limits.
	Transport *http.Transport
	// TLS is cloned if there is no Transport; nil: the default.
	TLS *tls.Config
	// Policy governs retries.
	Policy Policy
	// Limit is called before every attempt; its error ends the call. nil: none.
	Limit func(context.Context) error
}

// Engine carries calls. It is safe for concurrent use.
type Engine struct {
	doer     Doer              // caller-supplied; nil: the three that follow
	custom   http.RoundTripper // the doer, unless it is an *http.Client
	kept     *http.Transport   // for reads without a proxy
	proxied  *http.Transport   // for reads through one that cannot have card data
	fresh    *http.Transport   // a connection for each attempt
	policy   Policy
	limit    func(context.Context) error
	budget   budget
	buffers  sync.Pool                 // of *buffer
	noHeader http.Header               // shared by all calls, and never written to
	wall     func(time.Time) time.Time // of the fence
}

// New makes an Engine. It does not touch the network.
func New(cfg Config) *Engine {
	e := &Engine{doer: cfg.Doer, custom: doerTripper{cfg.Doer}, policy: cfg.Policy, limit: cfg.Limit}
	e.buffers.New = func() any { return new(buffer) }
	e.noHeader, e.wall = http.Header{}, func(t time.Time) time.Time { return t.Round(0) }
	if e.doer == nil {
		e.kept, e.proxied, e.fresh = newTransports(cfg.Transport, cfg.TLS)
	}
	return e
}

// CloseIdleConnections closes the idle connections of e, which may be nil, but not those of a
// caller-supplied Doer.
func (e *Engine) CloseIdleConnections() {
	if e != nil && e.kept != nil {
		e.kept.CloseIdleConnections()
		e.proxied.CloseIdleConnections()
	}
}

// Attempt is one request of a call: see cardwire.Attempt.
type Attempt struct {
	Start      time.Time
	Duration   time.Duration
	Phase      string
	HTTPStatus int
	Wait       time.Duration
	Resent     bool
}

// Request is what a call sends, in one or more attempts.
type Request struct {
	// Class is how it is carried and retried.
	Class Class
	// Fresh gives a Read a new connection, as one with a body has: another call's late response
	// cannot be taken for its own.
	Fresh bool
	// CardData gives a Read a new connection if it goes through a proxy: net/http logs
	// unsolicited bytes on an idle one, and behind a proxy nothing of ours is above TLS.
	CardData bool
	// Method is the HTTP method.
	Method string
	// URL is absolute, http or https. It may be shared: it is only copied.
	URL *url.URL
	// Path is appended to the path of URL, without escapes; "": nothing.
	Path string
	// Query replaces URL's query, encoded; "": that stays.
	Query string
	// Header makes the header of an attempt, with valid names and values. Each needs its
	// own: a caller-supplied Doer may change it, and keep it.
	Header interface{ Header() http.Header }
	// Body opens the body, once for each attempt; nil: none. The reader is closed before Do
	// returns, perhaps twice, and perhaps while net/http still reads it.
	Body func() (io.ReadCloser, error)
	// BodySize is the exact length of the body in bytes; 0: there is none.
	BodySize int64
	// Deadline is the deadline of the whole call with its retries and waits; zero: only
	// the context's applies.
	Deadline time.Time
	// MaxBytes bounds the body of the response, decompressed.
	MaxBytes int64
	// Busy reports whether the body of a Read's response asks for a retry, as a status may;
	// nil: none does.
	Busy func(body []byte) bool
	// NoRetry limits the call to one attempt.
	NoRetry bool
	// OnAttempt is called after each attempt, once it is known whether another
	// follows; nil: not called.
	OnAttempt func(Attempt)
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

// Response is the result of a call. If a limiter, a context, a deadline or a body that
// could not be opened stopped a retry, it is the last response together with an Err.
type Response struct {
	// Status is the status of the last response; 0: it had no readable head.
	Status int
	// Header is the header of the last response, without the coding of the body.
	Header http.Header
	// Body is the whole body of the last response, decompressed, valid until Release.
	Body []byte
	// Attempts are the requests made; nil after a clean first try.
	Attempts []Attempt
	// NotSent is proof that no byte of the request left this machine in any attempt.
	// For a Read it means that every attempt ended in a failed dial.
	NotSent bool
	// Resent reports that the Doer sent the request of a Write more than once.
	Resent bool
	// Redirected reports that the response is a redirect, or belongs to another
	// request than the one sent.
	Redirected bool
	// RedirectHost is the host that a redirect leads to; "": unknown.
	RedirectHost string
	// Encoded reports that the body came in a coding, also in one that was undone.
	Encoded bool
	// MayBeCut reports that nothing but the end of the connection ended the body.
	MayBeCut bool
	// RetryAfter is what the last response asks for, at most an hour; 0: nothing.
	RetryAfter time.Duration
	// Tries is the number of attempts begun.
	Tries int
	// Err is nil if the last response was read to its end. It is sealed: its message
	// contains no URL and no response, and errors.Is finds what is behind it.
	Err error

	buf   *buffer
	owner *Engine
}

// Release clears the body, which may contain card data, and gives its memory back unless it
// is very large. It is safe to call twice.
func (r *Response) Release() {
	if r.buf != nil {
		clear(r.buf.b)
		r.buf.b = r.buf.b[:0]
	}
	if r.buf != nil && cap(r.buf.b) <= maxPooled {
		r.owner.buffers.Put(r.buf)
	}
	r.Body, r.buf = nil, nil
}

// ErrTooLarge means that the body of the response exceeds MaxBytes.
var ErrTooLarge = errors.New("transport: the response is too large")

// Retries reports whether a doer is one of go-retryablehttp that retries, as its StandardClient is.
func Retries(d Doer) bool {
	client, _ := d.(*http.Client)
	if client == nil {
		return false
	}
	by, is := client.Transport.(*retryablehttp.RoundTripper)
	return is && (by == nil || by.Client == nil || by.Client.RetryMax > 0)
}
