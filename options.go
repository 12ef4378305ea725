package cardwire

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/version"
)

// Option configures a [Client] in [New].
type Option func(*config) error

// config is what the options set.
type config struct {
	base         *url.URL
	bearer       func(context.Context) (string, error) // the Authorization header; a closure, so that nothing prints it
	asksForKey   bool                                  // bearer calls a caller-supplied function
	doer         Doer
	transport    *http.Transport
	retry        RetryPolicy
	limit        func(context.Context) error // nil: none
	logger       *slog.Logger
	observers    []Observer
	journal      Journal
	profile      Profile
	userAgent    string
	maxBytes     int64
	timeout      time.Duration // 0: the operation's own
	maskedCards  bool
	insecureHTTP bool
	anyBasePath  bool
	strictDrift  bool
}

// The defaults of the options.
const (
	defaultMaxBytes       = 8 << 20
	defaultTimeout        = 30 * time.Second
	defaultUploadTimeout  = 5 * time.Minute
	maxWriteResponseBytes = 64 << 10
)

// WithHTTPClient sends every request through d instead of the client's own engines. An
// *http.Client may be changed: the next call uses it as it is then, except that
// redirects are never followed. OutcomeNotSent is then only for what fails before d is
// called, and d decides which certificates to trust.
//
// Neither d nor its transport may retry requests: that executes a transfer twice. If
// net/http/httptrace shows that a write was sent more than once, Attempt.Resent is true,
// an error is logged, and the outcome of a write that did not succeed is unknown.
func WithHTTPClient(d Doer) Option {
	return func(c *config) error {
		if check.Nil(d) {
			return badSetup("WithHTTPClient: the client is nil")
		}
		c.doer = d
		return nil
	}
}

// WithTransport uses clones of t, for its proxy, TLS roots and dialer. The clones speak
// HTTP/1.1 only, because net/http retries requests by itself over HTTP/2, and use a
// fresh connection for each write, and for each read too if t has DisableKeepAlives.
// They require TLS 1.2 or later. Plain http, which is for loopback addresses, uses no
// proxy.
//
// The service's certificate is always verified: InsecureSkipVerify is refused, unless
// VerifyConnection or VerifyPeerCertificate is set. Put your own CA into RootCAs. A
// DialTLSContext is responsible for its own TLS.
func WithTransport(t *http.Transport) Option {
	return func(c *config) error {
		switch {
		case t == nil:
			return badSetup("WithTransport: the transport is nil")
		case trustsAnybody(t.TLSClientConfig):
			return badSetup("WithTransport: InsecureSkipVerify accepts any certificate: add the service's CA to RootCAs, or set VerifyConnection")
		}
		c.transport = t // cloned by New
		return nil
	}
}

func trustsAnybody(c *tls.Config) bool {
	return c != nil && c.InsecureSkipVerify && c.VerifyConnection == nil && c.VerifyPeerCertificate == nil
}

// WithKeySource gets the API key from f at each call, so that keys can rotate. The key
// passed to New is then ignored, and may be "". If f fails, nothing is sent.
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
			header, err := bearer(setting{"the API key of the key source", key})
			if err != nil {
				return "", badSetup(err.Error())
			}
			return header, nil
		}
		return nil
	}
}

// WithRetry replaces [DefaultRetryPolicy]. Writes are retried only if provably nothing
// was sent, whatever the policy.
func WithRetry(p RetryPolicy) Option {
	return func(c *config) error {
		if p.MaxRetries < 0 || p.MinDelay < 0 || p.MaxDelay < 0 || p.MaxRetryAfter < 0 || p.Attempt < 0 {
			return badSetup("WithRetry: no value of the policy may be negative")
		}
		c.retry = p
		return nil
	}
}

// WithLimiter waits for l before every request. If l fails before the first, nothing is
// sent.
func WithLimiter(l Limiter) Option {
	return func(c *config) error {
		if check.Nil(l) {
			return badSetup("WithLimiter: the limiter is nil")
		}
		c.limit = l.Wait
		return nil
	}
}

// WithLogger logs failed writes, except those that are refused before they begin, with
// operation, reference, outcome, step, status, code, request ID and cause: as an error if
// the outcome is unknown, and otherwise as a warning. An HTTP client that sends a write
// more than once is an error; drift, retries and results that a Journal did not record are
// warnings. Each attempt is one line at debug level. Nothing of a payload is logged.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil || check.Nil(l.Handler()) {
			return badSetup("WithLogger: the logger is nil or has no handler")
		}
		c.logger = l
		return nil
	}
}

// WithObserver reports every call to o, except those that are refused before they
// begin, for invalid parameters or a context that is done. It may be given several
// times: all observers are called, in order.
func WithObserver(o Observer) Option {
	return func(c *config) error {
		c.observers = append(slices.Clone(c.observers), o)
		return nil
	}
}

// WithJournal records every write that has a reference in j, instead of a
// [MemoryJournal], before it is sent.
func WithJournal(j Journal) Option {
	return func(c *config) error {
		if check.Nil(j) {
			return badSetup("WithJournal: the journal is nil")
		}
		c.journal = j
		return nil
	}
}

// WithProfile calls set to change the profile, which is initially [DefaultProfile]. It
// may be given several times: all functions are applied, in order.
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

// WithMaskedCards masks the card numbers and CVVs of responses as they are decoded, for
// programs that must not process them: only the buffers of the connection contain them,
// and that of the response, which is cleared. Response.RevealBody then returns nil. In
// what [Call] decodes, it masks values of this package's types, also within others;
// strings of a caller-supplied type stay as they were sent.
func WithMaskedCards() Option {
	return func(c *config) error { c.maskedCards = true; return nil }
}

// WithUserAgent puts product, like "shop/1.2", before the client's own name in
// the User-Agent header.
func WithUserAgent(product string) Option {
	return func(c *config) error {
		if err := check.Product(product); err != nil {
			return badSetup("WithUserAgent: " + err.Error())
		}
		c.userAgent = product + " " + version.UserAgent()
		return nil
	}
}

// WithMaxResponseBytes bounds the body of a response; a larger one is
// [ErrResponseTooLarge]. The default is 8 MiB. Responses to writes are also bounded by
// 64 KiB.
func WithMaxResponseBytes(n int64) Option {
	return func(c *config) error {
		if n <= 0 {
			return badSetup("WithMaxResponseBytes: the bound must be greater than zero")
		}
		c.maxBytes = n
		return nil
	}
}

// WithTimeout bounds a call whose context has no deadline, its retries and waits
// included. A write with a reference ends after d even if its context allows more. The
// default is 30 seconds, and 5 minutes for uploads. It cannot end a Doer, Limiter,
// Journal or key source that ignores its context, nor a Read of an upload that ignores
// Close, and recording the result in a Journal may take 5 seconds more.
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		switch {
		case d <= 0:
			return badSetup("WithTimeout: the duration must be greater than zero")
		case d < time.Millisecond:
			return badSetup(fmt.Sprintf("WithTimeout: %v is less than a millisecond: write %d*time.Second for seconds", d, d))
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

// WithAnyBasePath allows a base URL that does not end in /api/v1, for a gateway that
// rewrites paths.
func WithAnyBasePath() Option {
	return func(c *config) error { c.anyBasePath = true; return nil }
}

// WithStrictDrift makes drift an error, [ErrDrift], for tests. The call returns what it
// read together with the error.
func WithStrictDrift() Option {
	return func(c *config) error { c.strictDrift = true; return nil }
}

// RetryPolicy is how reads are retried after connection failures and the statuses 408,
// 425, 429, 500, 502, 503 and 504. Retries also share a budget of the client, so that
// they do not multiply the traffic during an outage.
type RetryPolicy struct {
	// MaxRetries is the number of retries; 0: none.
	MaxRetries int
	// MinDelay is the scale of the waits, which are random between 0 and MinDelay, then
	// twice that, four times and so on; 0: there is no wait.
	MinDelay time.Duration
	// MaxDelay bounds a random wait; 0: only the call's deadline bounds it.
	MaxDelay time.Duration
	// MaxRetryAfter bounds the wait that the service asks for; a longer one ends the
	// call at once. 0: any Retry-After ends it.
	MaxRetryAfter time.Duration
	// Attempt is how long one attempt of a read may take; 0: as long as the call.
	Attempt time.Duration
}

// DefaultRetryPolicy returns 2 retries, waits with a scale of 250 ms and a bound of 8 s,
// a Retry-After of up to 30 s, and 10 s for each attempt.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		MaxRetries: 2, MinDelay: 250 * time.Millisecond, MaxDelay: 8 * time.Second,
		MaxRetryAfter: 30 * time.Second, Attempt: 10 * time.Second,
	}
}
