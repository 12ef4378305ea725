package cardwire

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
)

// Option configures a [Client] in [New].
type Option func(*config) error

// config is what the options set.
type config struct {
	base         *url.URL
	bearer       func(context.Context) (string, error) // the Authorization header; a closure, so that nothing prints it
	asksForKey   bool                                  // bearer asks a function of the caller's
	doer         Doer
	transport    *http.Transport
	retry        RetryPolicy
	limiter      Limiter
	logger       *slog.Logger
	observers    []Observer
	journal      Journal
	profile      Profile
	userAgent    string
	maxBytes     int64
	timeout      time.Duration // 0: the operation's own
	maskedCards  bool
	freshReads   bool
	insecureHTTP bool
	strictDrift  bool
}

// The defaults of what options set.
const (
	defaultMaxBytes       = 8 << 20
	defaultTimeout        = 30 * time.Second
	defaultUploadTimeout  = 5 * time.Minute
	maxWriteResponseBytes = 64 << 10
)

// WithHTTPClient sends every request through d instead of the client's own
// engines. An *http.Client is used as it is at each call, but for redirects,
// which are never followed. That nothing was sent is then claimed only for what
// fails before d is asked, and d decides which certificates to trust.
func WithHTTPClient(d Doer) Option {
	return func(c *config) error {
		if isNil(d) {
			return badSetup("WithHTTPClient: the client is nil")
		}
		c.doer = d
		return nil
	}
}

// WithTransport uses clones of t, for its proxy, TLS roots and dialer. The
// clones speak HTTP/1.1 only, because net/http repeats requests by itself over
// HTTP/2, and writes take a fresh connection each. They speak TLS 1.2 or later,
// and plain http, which is for this machine, goes through no proxy.
//
// Nothing switches the verification of the service off: an InsecureSkipVerify is
// refused, unless VerifyConnection or VerifyPeerCertificate takes its place. Put
// a CA of your own into RootCAs. A DialTLSContext answers for its own TLS.
func WithTransport(t *http.Transport) Option {
	return func(c *config) error {
		switch {
		case t == nil:
			return badSetup("WithTransport: the transport is nil")
		case trustsAnybody(t.TLSClientConfig):
			return badSetup("WithTransport: InsecureSkipVerify would send the key to any server: put the service's CA into RootCAs, or set VerifyConnection")
		}
		c.transport = t // cloned by New
		return nil
	}
}

func trustsAnybody(c *tls.Config) bool {
	return c != nil && c.InsecureSkipVerify && c.VerifyConnection == nil && c.VerifyPeerCertificate == nil
}

// WithKeySource asks f for the API key at each call, so that keys can rotate.
// The key given to New is then not used, and may be "". Where f fails, nothing
// is sent.
func WithKeySource(f func(context.Context) (string, error)) Option {
	return func(c *config) error {
		if f == nil {
			return badSetup("WithKeySource: the function is nil")
		}
		c.asksForKey = true
		c.bearer = func(ctx context.Context) (string, error) {
			key, err := f(ctx)
			if err != nil {
				return "", hideCause("the key source failed", err)
			}
			header, err := bearer(key)
			if err != nil {
				return "", badSetup("the key source: " + err.Error())
			}
			return header, nil
		}
		return nil
	}
}

// WithRetry replaces [DefaultRetryPolicy]. Writes are repeated only where
// provably nothing was sent, whatever the policy.
func WithRetry(p RetryPolicy) Option {
	return func(c *config) error {
		if p.MaxRetries < 0 || p.MinDelay < 0 || p.MaxDelay < 0 || p.MaxRetryAfter < 0 || p.Attempt < 0 {
			return badSetup("WithRetry: a value is negative")
		}
		c.retry = p
		return nil
	}
}

// WithLimiter waits for l before every request. Where l fails before the first,
// nothing is sent.
func WithLimiter(l Limiter) Option {
	return func(c *config) error {
		if isNil(l) {
			return badSetup("WithLimiter: the limiter is nil")
		}
		c.limiter = l
		return nil
	}
}

// WithLogger logs each failed write as a warning, and one whose outcome is unknown as
// an error, with operation, reference, outcome, step, status, code, request ID and
// cause. Drift, retries and results that a Journal did not record are warnings. Each
// attempt is one line at debug level. Nothing of a payload is logged.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil || isNil(l.Handler()) {
			return badSetup("WithLogger: the logger is nil or has no handler")
		}
		c.logger = l
		return nil
	}
}

// WithObserver tells o of every call, except those that end before they begin,
// for their parameters or a context that is done. Repeated, all are told, in order.
func WithObserver(o Observer) Option {
	return func(c *config) error {
		c.observers = append(slices.Clone(c.observers), o)
		return nil
	}
}

// WithJournal records every write that has a reference in j before it is sent.
func WithJournal(j Journal) Option {
	return func(c *config) error {
		if isNil(j) {
			return badSetup("WithJournal: the journal is nil")
		}
		c.journal = j
		return nil
	}
}

// WithProfile has set change the profile, which begins as [DefaultProfile].
// Several are applied in order.
func WithProfile(set func(*Profile)) Option {
	return func(c *config) error {
		if set == nil {
			return badSetup("WithProfile: the function is nil")
		}
		set(&c.profile)
		c.profile = c.profile.clone()
		return c.profile.valid()
	}
}

// WithMaskedCards masks the card numbers and CVVs of answers as they are
// decoded, for programs that must never hold them. Response.RevealBody is then
// nil. What [Call] decodes is up to its type.
func WithMaskedCards() Option {
	return func(c *config) error { c.maskedCards = true; return nil }
}

// WithFreshConnections makes reads, too, use one connection a call. net/http
// logs bytes that arrive unasked on an idle connection, card numbers included;
// without idle connections it cannot.
func WithFreshConnections() Option {
	return func(c *config) error { c.freshReads = true; return nil }
}

// WithUserAgent puts product, like "shop/1.2", before the client's own name in
// the User-Agent header.
func WithUserAgent(product string) Option {
	return func(c *config) error {
		if err := check.Product(product); err != nil {
			return badSetup("WithUserAgent: " + err.Error())
		}
		c.userAgent = product + " " + userAgent()
		return nil
	}
}

// WithMaxResponseBytes bounds the body of an answer; a larger one is
// [ErrResponseTooLarge]. The default is 8 MiB. Answers to writes are bounded by
// 64 KiB as well.
func WithMaxResponseBytes(n int64) Option {
	return func(c *config) error {
		if n <= 0 {
			return badSetup("WithMaxResponseBytes: the bound is not above zero")
		}
		c.maxBytes = n
		return nil
	}
}

// WithTimeout bounds a whole call, repeats and waits included, whose context
// has no deadline. The default is 30 seconds, and 5 minutes for uploads. It
// cannot end a Doer, Limiter, Journal or key source that ignores its context, and
// recording the result in a Journal may take 5 seconds more.
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return badSetup("WithTimeout: the duration is not above zero")
		}
		c.timeout = d
		return nil
	}
}

// WithInsecureHTTP allows a base URL of plain http for hosts other than this
// machine. The key and all card data then travel in the clear.
func WithInsecureHTTP() Option {
	return func(c *config) error { c.insecureHTTP = true; return nil }
}

// WithStrictDrift makes drift an error, [ErrDrift], for tests. What was read is
// returned together with it.
func WithStrictDrift() Option {
	return func(c *config) error { c.strictDrift = true; return nil }
}

// isNil reports whether v is nil, or a nil pointer, map, function or channel in an
// interface, whose methods would panic at the first call.
func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// RetryPolicy says how reads are repeated after connection failures and the
// statuses 408, 425, 429, 500, 502, 503 and 504. A repeat also takes from a
// budget of the client, so that an outage is not answered by a storm.
type RetryPolicy struct {
	// MaxRetries is the number of repeats; 0: none.
	MaxRetries int
	// MinDelay is the scale of the waits, which are drawn evenly between 0 and
	// MinDelay, then twice that, four times and so on; 0: there is no wait.
	MinDelay time.Duration
	// MaxDelay bounds a drawn wait; 0: nothing but the call's deadline does.
	MaxDelay time.Duration
	// MaxRetryAfter bounds the wait that the service asks for; a longer one is
	// not begun, and ends the call. 0: any ends it.
	MaxRetryAfter time.Duration
	// Attempt is how long one attempt of a read may take; 0: as long as the call.
	Attempt time.Duration
}

// DefaultRetryPolicy returns 2 repeats, waits from 250 ms to 8 s, a Retry-After
// of up to 30 s, and 10 s an attempt.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		MaxRetries: 2, MinDelay: 250 * time.Millisecond, MaxDelay: 8 * time.Second,
		MaxRetryAfter: 30 * time.Second, Attempt: 10 * time.Second,
	}
}
