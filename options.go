package cardwire

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/version"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Option configures a [Client] in [New].
type Option func(*config) error

// option returns an Option that calls set, or one that fails with why if the value is wrong.
func option(wrong bool, why string, set func(*config)) Option {
	return func(c *config) error {
		if wrong {
			return badSetup(why)
		}
		set(c)
		return nil
	}
}

func always(set func(*config)) Option { return option(false, "", set) }

// config is what the options set, and what a Client consists of.
type config struct {
	engine       *transport.Engine // nil: New did not make the client
	base         *url.URL
	service      string                                // base as a string
	server       string                                // its host and port
	keySource    func(context.Context) (string, error) // nil: the key is New's
	bearer       string                                // the Authorization header, without a keySource
	doer         Doer
	transport    *http.Transport
	tls          *tls.Config
	retry        RetryPolicy
	limit        func(context.Context) error // nil: none
	logger       *slog.Logger
	observers    []Observer
	journal      Journal // nil: none
	turns        turns
	account      string
	profile      Profile
	userAgent    string
	maxBytes     int64
	timeout      time.Duration // 0: the operation's own
	maskedCards  bool
	insecureHTTP bool
	anyBasePath  bool
	strictDrift  bool
	watchesDrift bool // drift is reported to somebody
}

// The defaults of the options.
const (
	defaultMaxBytes       = 8 << 20
	defaultUploadTimeout  = 5 * time.Minute
	maxWriteResponseBytes = 64 << 10
)

// WithHTTPClient sends every request through d instead of the client's own connections. d
// decides which certificates to trust. The outcome is OutcomeNotSent only for what fails
// before d is called. Neither d nor its transport may retry requests: that executes a
// transfer twice. One of go-retryablehttp that does is refused. Where the client notices a retry of a write,
// its error says so, and Attempt.Resent is true: with a success it is Executed and ErrSetup, with the result;
// otherwise the outcome is unknown.
func WithHTTPClient(d Doer) Option {
	if transport.Retries(d) {
		return func(*config) error {
			return badSetup("WithHTTPClient: the client retries requests, and would send a transfer twice: set RetryMax to 0, " +
				"or leave the option out")
		}
	}
	return option(check.Nil(d), "WithHTTPClient: the client is nil", func(c *config) { c.doer = d })
}

// WithTransport uses clones of t, for its proxy and dialer: see [WithTLSConfig] for a CA or a
// client certificate. A nil Proxy means none, not even the environment's. The clones speak
// HTTP/1.1 only, because net/http retries requests by itself over HTTP/2. One makes a fresh
// connection for each write, two keep those of reads, with a proxy and without; each has its own
// MaxConnsPerHost. InsecureSkipVerify is refused, as by WithTLSConfig. A DialTLSContext has
// its own TLS: TLSClientConfig does not apply to it.
func WithTransport(t *http.Transport) Option {
	return func(c *config) error {
		if t == nil {
			return badSetup("WithTransport: the transport is nil")
		}
		c.transport = t // cloned by New
		return trusted("WithTransport", t.TLSClientConfig)
	}
}

// WithTLSConfig uses a clone of t for the client's own connections: your own CA in RootCAs, a
// client certificate in Certificates. InsecureSkipVerify is refused without VerifyConnection or
// VerifyPeerCertificate, whose errors mean that the certificate is not trusted. Sessions are not
// resumed unless t has a ClientSessionCache: that skips VerifyPeerCertificate. It cannot be
// combined with WithTransport, whose TLSClientConfig is the same, or WithHTTPClient.
func WithTLSConfig(t *tls.Config) Option {
	return func(c *config) error {
		if t == nil {
			return badSetup("WithTLSConfig: the configuration is nil")
		}
		c.tls = t.Clone()
		return trusted("WithTLSConfig", t)
	}
}

func trusted(option string, t *tls.Config) error {
	if t == nil || !t.InsecureSkipVerify || t.VerifyConnection != nil || t.VerifyPeerCertificate != nil {
		return nil
	}
	return badSetup(option + ": InsecureSkipVerify accepts any certificate: " +
		"add the service's CA to RootCAs, or set VerifyConnection")
}

// WithKeySource gets the API key from f at each call, not from New. If f fails, nothing is sent.
// All keys must be of one account, with one journal.
func WithKeySource(f func(context.Context) (string, error)) Option {
	return option(f == nil, "WithKeySource: the function is nil", func(c *config) { c.keySource = f })
}

// WithRetry replaces [DefaultRetryPolicy]. Writes are retried only if unsent.
func WithRetry(p RetryPolicy) Option {
	if p.MaxRetries < 0 || min(p.MinDelay, p.MaxDelay, p.MaxRetryAfter, p.Attempt) < 0 {
		return option(true, "WithRetry: no value of the policy may be negative", nil)
	}
	err := cmp.Or(check.Duration("WithRetry: MinDelay", p.MinDelay), check.Duration("WithRetry: MaxDelay", p.MaxDelay),
		check.Duration("WithRetry: MaxRetryAfter", p.MaxRetryAfter), check.Duration("WithRetry: Attempt", p.Attempt))
	return option(err != nil, fmt.Sprint(err), func(c *config) { c.retry = p })
}

// WithLimiter waits for l before every request.
func WithLimiter(l Limiter) Option {
	return option(check.Nil(l), "WithLimiter: the limiter is nil", func(c *config) { c.limit = l.Wait })
}

// WithLogger logs writes that failed: as errors after StepReconcile, as warnings after
// StepRetry and StepFail, otherwise as information; writes that an HTTP client sent twice, and
// results that a [Journal] could not record or contradicts, as errors; drift and retries, as
// warnings; and each other call and each attempt at debug level. It logs no payloads, and no
// calls that are refused before they begin.
func WithLogger(l *slog.Logger) Option {
	return option(l == nil || check.Nil(l.Handler()), "WithLogger: the logger is nil or has no handler",
		func(c *config) { c.logger, c.watchesDrift = l, true })
}

// WithObserver reports every call to o that is not refused before it begins.
func WithObserver(o Observer) Option {
	return always(func(c *config) {
		c.observers, c.watchesDrift = append(c.observers, o), c.watchesDrift || o.Drift != nil
	})
}

// WithJournal records transfers, and writes through [Call], in j. They need one: that of
// sqljournal, or one of journal.NewMemory if an order may be paid again after a restart or by
// another client. A journal is for one account of one service: see [WithAccount].
func WithJournal(j Journal) Option {
	return option(check.Nil(j), "WithJournal: the journal is nil",
		func(c *config) { c.journal = j })
}

// WithAccount names the account whose key the client has, by a name of your own that stays when
// keys change; "", the default, is a name like any other. The journal records it, and refuses
// calls of another account, which may have used the same reference for another order.
func WithAccount(name string) Option {
	return func(c *config) error {
		if err := check.Visible("name", name); err != nil {
			return badSetup("WithAccount: " + err.Error())
		}
		c.account = name
		return nil
	}
}

// WithProfile calls set to change the profile, at first [DefaultProfile].
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

// WithMaskedCards masks card numbers and CVVs as they are decoded, for programs that must not
// process them. In the result of [Call] it masks those of this package's types.
func WithMaskedCards() Option { return always(func(c *config) { c.maskedCards = true }) }

// WithUserAgent puts product, like "shop/1.2", before the User-Agent.
func WithUserAgent(product string) Option {
	err := check.Product(product)
	return option(err != nil, fmt.Sprint("WithUserAgent: ", err),
		func(c *config) { c.userAgent = product + " " + version.UserAgent() })
}

// WithMaxResponseBytes bounds a response: 8 MiB by default; of a write 64 KiB.
func WithMaxResponseBytes(n int64) Option {
	return option(n <= 0, "WithMaxResponseBytes: the bound must be greater than zero",
		func(c *config) { c.maxBytes = n })
}

// WithTimeout bounds a call whose context has no deadline, including its retries and waits,
// and every write with a reference. The default is 30 seconds, and 5 minutes for uploads. It
// cannot end caller code that ignores its context. A Journal may take 5 seconds more.
func WithTimeout(d time.Duration) Option {
	if d <= 0 {
		return option(true, "WithTimeout: the duration must be greater than zero", nil)
	}
	err := check.Duration("WithTimeout", d)
	return option(err != nil, fmt.Sprint(err), func(c *config) { c.timeout = d })
}

// WithInsecureHTTP allows plain http to other machines: it exposes the key.
func WithInsecureHTTP() Option { return always(func(c *config) { c.insecureHTTP = true }) }

// WithAnyBasePath allows a base URL that does not end in /api/v1.
func WithAnyBasePath() Option { return always(func(c *config) { c.anyBasePath = true }) }

// WithStrictDrift makes drift an error, [ErrDrift], for tests.
func WithStrictDrift() Option {
	return always(func(c *config) { c.strictDrift, c.watchesDrift = true, true })
}

// RetryPolicy is how reads are retried after connection failures, the statuses 408, 425, 429,
// 500, 502, 503 and 504, and Profile.RetryCodes. A budget bounds them.
type RetryPolicy struct {
	MaxRetries    int           // the number of retries; 0: none
	MinDelay      time.Duration // the upper bound of the first random wait; it doubles with each retry; 0: no wait
	MaxDelay      time.Duration // the upper bound of every random wait; 0: the call's deadline
	MaxRetryAfter time.Duration // the longest Retry-After that is waited for; 0: the call's deadline
	Attempt       time.Duration // how long one attempt of a read may take; 0: as long as the call
}

// DefaultRetryPolicy returns RetryPolicy{2, 250 ms, 8 s, 30 s, 10 s}.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		MaxRetries: 2, MinDelay: 250 * time.Millisecond, MaxDelay: 8 * time.Second,
		MaxRetryAfter: 30 * time.Second, Attempt: 10 * time.Second,
	}
}

// Profile has every assumption about what is undocumented. A call that needs one of its
// strings that is "" is refused.
type Profile struct {
	LimitParam          string // the query parameter of the page size. Assumed: "limit".
	PageParam           string // the query parameter of the page number. Assumed: "page".
	StatusParam         string // the query parameter of the card status. Assumed: "status".
	CardBINParam        string // the query parameter of the BIN. Assumed: "card_bin".
	SubAccountParam     string // the query parameter of the sub-account. No default.
	CreatedFromParam    string // the query parameter of the first creation day. No default.
	CreatedToParam      string // the query parameter of the last creation day. No default.
	TransactedFromParam string // the query parameter of the first transaction day. No default.
	TransactedToParam   string // the query parameter of the last transaction day. No default.
	CardIDParam         string // the query parameter of GetCard. Assumed: "id".
	RetryAction         string // the value that RetryOperation sends as type. Assumed: "retry".
	// RefusedCodes are the codes that mean that nothing was executed, if the HTTP status is a
	// success. Assumed: 400 401 403 404 405 413 415 422 429.
	RefusedCodes []int
	// RefusedStatuses are the HTTP statuses, from 400 to 499, that mean the same, if the body
	// is an envelope whose code is neither 200 nor 500 to 599. Assumed: the same.
	RefusedStatuses []int
	// BareRefusedStatuses are the HTTP statuses, from 400 to 499, that mean the same, if the
	// body is certainly not an envelope. Assumed: 401 405 411 413 429, and of reads and uploads
	// always 404. A firewall may send 403 in place of the response to a transfer that was executed.
	BareRefusedStatuses []int
	RetryCodes          []int // the codes after which a read is retried as after such a status. Assumed: 429 503.
	// DuplicateCodes are the codes that mean that the reference exists: OutcomeUnknown,
	// since a gateway may have sent the request twice. Default: none. Ask the provider.
	DuplicateCodes []int
	// DuplicateMessages are phrases that mean the same in any string of a refusal, except of FreezeCard,
	// compared by letters and digits in any case. "order exists", "must be unique", "重复" and similar
	// do anyway. Default: none.
	DuplicateMessages []string
	// RefusedMessages are phrases, compared in the same way, that say why the service refused: with 400, 404
	// or 422 a write is OutcomeRefused only if a string says why. "invalid", "insufficient", "余额不足" and
	// similar do anyway, and so does any other code that is added to RefusedCodes. Default: none.
	RefusedMessages []string
	LateExecution   time.Duration // how late after SendBy a call may be executed; 0: never. Assumed: 10 minutes.
	TrustResponses  bool          // switches off the checks behind ErrParameterIgnored
}

// DefaultProfile returns the assumptions for an unknown service.
func DefaultProfile() Profile {
	p := Profile{
		LimitParam: "limit", PageParam: "page", StatusParam: "status", CardBINParam: "card_bin",
		CardIDParam: "id", RetryAction: "retry",
		BareRefusedStatuses: []int{http.StatusLengthRequired}, // a proxy's
		RetryCodes:          []int{http.StatusTooManyRequests, http.StatusServiceUnavailable},
		LateExecution:       check.DefaultLateExecution,
	}
	for _, r := range refusals {
		p.RefusedCodes, p.RefusedStatuses = append(p.RefusedCodes, r.number), append(p.RefusedStatuses, r.number)
		if r.bare {
			p.BareRefusedStatuses = append(p.BareRefusedStatuses, r.number)
		}
	}
	return p
}

// clone returns a copy that shares nothing that a caller could change later.
func (p *Profile) clone() Profile {
	c := *p
	for _, list := range []*[]int{
		&c.RefusedCodes, &c.RefusedStatuses, &c.BareRefusedStatuses, &c.RetryCodes, &c.DuplicateCodes,
	} {
		*list = slices.Clone(*list)
	}
	c.DuplicateMessages, c.RefusedMessages = slices.Clone(p.DuplicateMessages), slices.Clone(p.RefusedMessages)
	return c
}

func (p *Profile) valid() error {
	ofListCards := new(ListCardsParams).selectors(p)
	others := []selector{{"CardIDParam", p.CardIDParam, ""}, {"RetryAction", p.RetryAction, ""}}
	for _, n := range slices.Concat(ofListCards, others) {
		if check.Text("", n.param) != nil || strings.TrimSpace(n.param) != n.param {
			return badSetup("WithProfile: " + n.field + " contains a control character, " +
				"begins or ends with a space, or is not valid UTF-8")
		}
	}
	for i, n := range ofListCards {
		for _, other := range ofListCards[:i] {
			if n.param != "" && n.param == other.param {
				return badSetup("WithProfile: " + other.field + " and " + n.field + " must be different names")
			}
		}
	}
	late := check.Duration("WithProfile: LateExecution", p.LateExecution)
	unfit := func(status int) bool { return status < 400 || status > 499 }
	empty := func(phrase string) bool { return wire.Letters(phrase) == "" }
	switch {
	case slices.ContainsFunc(p.DuplicateMessages, empty):
		return badSetup("WithProfile: a phrase of DuplicateMessages has no letter or digit")
	case slices.ContainsFunc(p.RefusedMessages, empty):
		return badSetup("WithProfile: a phrase of RefusedMessages has no letter or digit")
	case late != nil:
		return badSetup(late.Error())
	case p.RetryAction == cancelAction:
		return badSetup("WithProfile: RetryAction must not be the value that cancels")
	case slices.Contains(slices.Concat(p.RefusedCodes, p.RetryCodes, p.DuplicateCodes), codeSuccess):
		return badSetup("WithProfile: RefusedCodes, RetryCodes and DuplicateCodes must not contain 200, " +
			"the code of a success")
	case slices.ContainsFunc(p.RefusedStatuses, unfit) || slices.ContainsFunc(p.BareRefusedStatuses, unfit):
		return badSetup("WithProfile: a refused status must be from 400 to 499")
	}
	return nil
}
