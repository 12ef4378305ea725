// Package cardwire is a client for a card-issuing and remittance service.
//
// A [Client] lists card products (BINs) and cards, reads a card and its secrets,
// freezes it, cancels or retries a failed card operation, uploads identity
// images and sends bank transfers. It is made once and shared: every method is
// safe for concurrent use, takes a context first and call options last, and
// stands for one operation of the service. [Call] is for operations that the
// interface names but does not specify.
//
// # A first program
//
//	client, err := cardwire.New("https://api.example.com/api/v1", key)
//	if err != nil {
//		return err
//	}
//	for card, err := range client.AllCards(ctx, cardwire.ListCardsParams{}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(card.ID, card.Number, card.Available, card.Currency)
//	}
//
// [NewFromEnv] takes the address and the key from the environment. With a new
// key, run the example program doctor first: it says which of the assumptions
// below hold.
//
// # Did it happen?
//
// Every failed call returns an [*Error] whose Outcome answers that:
//
//   - [OutcomeNotSent]: no byte of the request left. Call again.
//   - [OutcomeRefused]: the service said no. Nothing happened; correct it.
//   - [OutcomeExecuted]: the service said yes, and only its answer is unreadable.
//   - [OutcomeUnknown]: it may have happened. Settle the matter with the service
//     before doing it again: no operation reads a transfer back.
//
// The sentinels [ErrNotSent], [ErrRefused], [ErrExecuted] and [ErrOutcomeUnknown]
// match them with [errors.Is]; others, like [ErrRateLimited], say why. Nothing
// that changes something is ever sent twice by this package. Reads are repeated
// by [RetryPolicy]. A reference that once ended unknown stays so, whatever a later
// answer says; a [Journal] keeps that across crashes and machines.
//
// # Pages
//
// [Client.AllCards] goes through all pages, with [WithPrefetch] several at a
// time. After an error, Error.Page is where to resume. Replies prove that what
// was asked for was honoured: a page or a card outside the filter is
// [ErrParameterIgnored], never data that is taken for right.
//
// # Money
//
// Amounts are [decimal.Decimal], exact and with the scale that was sent. Nothing
// goes through a float and nothing is rounded: an amount to send that is not
// exact in two fraction digits is refused.
//
// # Card data
//
// Card numbers, CVVs and keys are sealed values: printing, logging, marshalling
// and diffing show a mask. Methods whose names begin with Reveal return what they
// hold. [WithMaskedCards] is for programs that must never hold them.
//
// # Testing
//
// Package cardwiretest is the service in memory, with faults and a ledger of what
// was executed. A *Client needs no interface here: declare one of the methods
// that you call where you call them.
//
// # What the interface does not show
//
// [Profile] names every assumption, and is where to correct it. Replies that
// deviate from the interface where no value is lost are read all the same and
// told to [Observer].Drift; all others are [ErrUnreadable].
package cardwire

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Doer sends one request. *http.Client is one. A Doer must not repeat requests
// and must not follow redirects; of an *http.Client a copy is used that does not.
// It must end when the request's context does, and so must the body it returns.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Limiter delays requests. *rate.Limiter of golang.org/x/time/rate is one.
type Limiter interface{ Wait(context.Context) error }

// Client calls the service. It is immutable after [New], safe for concurrent
// use, and prints without its key. The zero Client returns an error from every
// method.
type Client struct {
	// A closure, because a diff or a dump of the client would otherwise go on
	// into the buffers of its connections, with the key and the last reply.
	core func() *core
}

// core is what a Client holds.
type core struct {
	config
	engine  *transport.Engine
	intents intents
}

// Option configures a [Client] in [New].
type Option func(*config) error

// CallOption configures one call.
type CallOption func(*call)

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
	defaultMaxBytes      = 8 << 20
	defaultTimeout       = 30 * time.Second
	defaultUploadTimeout = 5 * time.Minute
	maxWriteReplyBytes   = 64 << 10
)

// New returns a Client for the service at baseURL, which is the service's
// origin followed by /api/v1. It must be https, except for this machine. New
// checks its parameters, and does not touch the network.
//
// Without options the environment's proxy is used, reads are repeated twice,
// and a call ends after 30 seconds, an upload after 5 minutes.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	cfg := config{
		profile:   DefaultProfile(),
		retry:     DefaultRetryPolicy(),
		userAgent: userAgent(),
		maxBytes:  defaultMaxBytes,
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("an option is nil")
		}
		if err := opt(&cfg); err != nil {
			return nil, err
		}
	}
	if err := cfg.complete(baseURL, apiKey); err != nil {
		return nil, err
	}
	engine := transport.New(transport.Config{
		Doer: cfg.doer, Transport: cfg.proxied(), Policy: transport.Policy(cfg.retry),
		FreshReads: cfg.freshReads, Limit: cfg.limit(),
	})
	made := &core{config: cfg, engine: engine}
	return &Client{func() *core { return made }}, nil
}

// NewFromEnv is [New] with the base URL and the key of the environment
// variables CARDWIRE_BASE_URL and CARDWIRE_API_KEY.
func NewFromEnv(opts ...Option) (*Client, error) {
	baseURL := os.Getenv("CARDWIRE_BASE_URL")
	if baseURL == "" {
		return nil, invalid("CARDWIRE_BASE_URL is not set in the environment")
	}
	return New(baseURL, os.Getenv("CARDWIRE_API_KEY"), opts...)
}

// complete checks what cannot be checked option by option.
func (c *config) complete(baseURL, apiKey string) error {
	base, err := check.BaseURL(baseURL, c.insecureHTTP)
	if err != nil {
		return invalid(err.Error())
	}
	c.base = base
	if c.doer != nil && (c.transport != nil || c.freshReads) {
		return invalid("WithHTTPClient brings its own connections: WithTransport and WithFreshConnections do not go with it")
	}
	if c.asksForKey {
		return nil
	}
	header, err := bearer(apiKey)
	if err != nil {
		return invalid(err.Error())
	}
	c.bearer = func(context.Context) (string, error) { return header, nil }
	return nil
}

// proxied returns the caller's transport, without its proxy where the base URL is
// plain http because it is that of this machine: no proxy is to read the key.
func (c *config) proxied() *http.Transport {
	if c.transport == nil || c.base.Scheme != "http" || c.insecureHTTP {
		return c.transport
	}
	direct := c.transport.Clone()
	direct.Proxy = nil
	return direct
}

// bearerScheme stands before the key in the Authorization header.
const bearerScheme = "Bearer "

func bearer(key string) (string, error) {
	if err := check.Key(key); err != nil {
		return "", err
	}
	return bearerScheme + key, nil
}

func (c *config) limit() func(context.Context) error {
	if c.limiter == nil {
		return nil
	}
	return c.limiter.Wait
}

// CloseIdleConnections closes the connections that the client keeps for later.
// Those of a caller's HTTP client are the caller's.
func (c *Client) CloseIdleConnections() {
	if c.made() {
		c.core().engine.CloseIdleConnections()
	}
}

// made says whether New made the client.
func (c *Client) made() bool { return c != nil && c.core != nil }

// profile is the client's own, or an empty one where New did not make the client.
func (c *Client) profile() *Profile {
	if !c.made() {
		return &Profile{}
	}
	return &c.core().profile
}

// Format writes the base URL, whatever the verb.
func (c Client) Format(f fmt.State, _ rune) {
	if !c.made() {
		formatMasked(f, "cardwire.Client()")
		return
	}
	formatMasked(f, "cardwire.Client("+c.core().base.String()+")")
}

// LogValue returns the base URL.
func (c Client) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// WithHTTPClient sends every request through d instead of the client's own
// engines. An *http.Client is used as it is at each call, but for redirects,
// which are never followed. That nothing was sent is then claimed only for what
// fails before d is asked, and whom TLS trusts is the matter of d.
func WithHTTPClient(d Doer) Option {
	return func(c *config) error {
		if d == nil || d == Doer((*http.Client)(nil)) {
			return invalid("WithHTTPClient: the client is nil")
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
			return invalid("WithTransport: the transport is nil")
		case trustsAnybody(t.TLSClientConfig):
			return invalid("WithTransport: InsecureSkipVerify would send the key to any server: put the service's CA into RootCAs, or set VerifyConnection")
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
			return invalid("WithKeySource: the function is nil")
		}
		c.asksForKey = true
		c.bearer = func(ctx context.Context) (string, error) {
			key, err := f(ctx)
			if err != nil {
				return "", conceal("the key source failed", err)
			}
			return bearer(key)
		}
		return nil
	}
}

// WithRetry replaces [DefaultRetryPolicy]. Writes are repeated only where
// provably nothing was sent, whatever the policy.
func WithRetry(p RetryPolicy) Option {
	return func(c *config) error {
		if p.MaxRetries < 0 || p.MinDelay < 0 || p.MaxDelay < 0 || p.MaxRetryAfter < 0 || p.Attempt < 0 {
			return invalid("WithRetry: a value is negative")
		}
		c.retry = p
		return nil
	}
}

// WithLimiter waits for l before every request. Where l fails before the first,
// nothing is sent.
func WithLimiter(l Limiter) Option {
	return func(c *config) error {
		if l == nil {
			return invalid("WithLimiter: the limiter is nil")
		}
		c.limiter = l
		return nil
	}
}

// WithLogger logs one line at debug level for each attempt and one at warning
// level for each repeat, with the operation, outcome, status, code and duration
// and nothing else.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return invalid("WithLogger: the logger is nil")
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
		if j == nil {
			return invalid("WithJournal: the journal is nil")
		}
		c.journal = j
		return nil
	}
}

// WithProfile replaces [DefaultProfile]: begin with that and change what is
// known better.
func WithProfile(p Profile) Option {
	return func(c *config) error {
		p.RefusedCodes = slices.Clone(p.RefusedCodes)
		p.RefusedStatuses = slices.Clone(p.RefusedStatuses)
		c.profile = p
		return p.valid()
	}
}

// WithMaskedCards masks the card numbers and CVVs of replies as they are
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
			return invalid("WithUserAgent: " + err.Error())
		}
		c.userAgent = product + " " + userAgent()
		return nil
	}
}

// WithMaxResponseBytes bounds the body of a reply; a larger one is
// [ErrResponseTooLarge]. The default is 8 MiB. Replies to writes are bounded by
// 64 KiB as well.
func WithMaxResponseBytes(n int64) Option {
	return func(c *config) error {
		if n <= 0 {
			return invalid("WithMaxResponseBytes: the bound is not above zero")
		}
		c.maxBytes = n
		return nil
	}
}

// WithTimeout bounds a whole call, repeats and waits included, whose context
// has no deadline. The default is 30 seconds, and 5 minutes for uploads.
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return invalid("WithTimeout: the duration is not above zero")
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

// WithStrictDrift makes drift an error, [ErrDrift], for tests.
func WithStrictDrift() Option {
	return func(c *config) error { c.strictDrift = true; return nil }
}

// WithResponse fills r with what came back. r is reset by each call; after
// AllCards it holds the last page read.
func WithResponse(r *Response) CallOption {
	return func(k *call) {
		if r == nil {
			k.refuse("WithResponse: the response is nil")
		}
		k.response = r
	}
}

// WithHeader adds a header to the request. Those that carry a key or a cookie,
// describe the body, make net/http repeat requests (Idempotency-Key), or concern
// one hop are refused with [ErrInvalidParams].
func WithHeader(name, value string) CallOption {
	return func(k *call) {
		if err := check.Header(name, value); err != nil {
			k.refuse("WithHeader: " + err.Error())
			return
		}
		if k.header == nil {
			k.header = http.Header{}
		}
		k.header.Set(name, value)
	}
}

// WithoutRetry sends one request at most.
func WithoutRetry() CallOption { return func(k *call) { k.noRetry = true } }

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
	// Attempt is the deadline of one attempt of a read; 0: none.
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

// Response is what came back from the service, for WithResponse.
type Response struct {
	// HTTPStatus is the status; 0: there was no answer.
	HTTPStatus int
	// Header is the header, without Set-Cookie, Authorization and what holds the
	// key, and with digits masked as in Message; nil: no answer.
	Header http.Header
	// Code is the envelope's code; 0: none was readable.
	Code int
	// Message is the envelope's msg, masked as in Error.Message.
	Message string
	// Attempts are the requests made; nil after a clean first try.
	Attempts []Attempt

	body func() []byte
}

// RevealBody returns a copy of the body as it came. It may hold card numbers
// and CVVs. It is nil where no answer came or not all of it, and under
// WithMaskedCards.
func (r *Response) RevealBody() []byte {
	if r == nil || r.body == nil {
		return nil
	}
	return r.body()
}

// Profile names every assumption about what the interface does not show. A
// parameter whose name is "" cannot be used: the call is refused with
// [ErrInvalidParams], naming the field to set.
type Profile struct {
	// LimitParam is the query parameter for the page size. Assumed: "limit".
	LimitParam string
	// PageParam is the query parameter for the page number. Assumed: "page".
	PageParam string
	// StatusParam is the query parameter for the card status. Assumed: "status".
	StatusParam string
	// CardBINParam is the query parameter for the BIN. Assumed: "card_bin".
	CardBINParam string
	// SubAccountParam is the query parameter for the sub-account. No default.
	SubAccountParam string
	// CreatedFromParam is the query parameter for the first creation day. No default.
	CreatedFromParam string
	// CreatedToParam is the query parameter for the last creation day. No default.
	CreatedToParam string
	// TransactedFromParam is the query parameter for the first transaction day. No default.
	TransactedFromParam string
	// TransactedToParam is the query parameter for the last transaction day. No default.
	TransactedToParam string
	// CardIDParam is the query parameter of GetCard. Assumed: "id".
	CardIDParam string
	// RetryAction is the value of type by which RetryOperation retries. Assumed: "retry".
	RetryAction string
	// RefusedCodes are the envelope codes that guarantee that nothing happened.
	// Assumed: 400 401 403 404 405 413 415 422 429. Any other code than 200 is
	// OutcomeUnknown.
	RefusedCodes []int
	// RefusedStatuses are the HTTP statuses, from 400 to 499, that guarantee it.
	// Assumed: the same numbers.
	RefusedStatuses []int
	// TrustReplies switches off the checks behind ErrParameterIgnored.
	TrustReplies bool
	// ServerDeduplicates says that the service executes a reference once however
	// often it is sent. A caller may then repeat an undecided one despite the
	// journal. The client itself repeats nothing all the same.
	ServerDeduplicates bool
}

// DefaultProfile returns what is assumed where nothing better is known.
func DefaultProfile() Profile {
	return Profile{
		LimitParam: "limit", PageParam: "page", StatusParam: "status", CardBINParam: "card_bin",
		CardIDParam: "id", RetryAction: "retry",
		RefusedCodes:    []int{400, 401, 403, 404, 405, 413, 415, 422, 429},
		RefusedStatuses: []int{400, 401, 403, 404, 405, 413, 415, 422, 429},
	}
}

// valid refuses a profile that would send one thing for another.
func (p *Profile) valid() error {
	names := []struct{ field, name string }{
		{"LimitParam", p.LimitParam},
		{"PageParam", p.PageParam},
		{"StatusParam", p.StatusParam},
		{"CardBINParam", p.CardBINParam},
		{"SubAccountParam", p.SubAccountParam},
		{"CreatedFromParam", p.CreatedFromParam},
		{"CreatedToParam", p.CreatedToParam},
		{"TransactedFromParam", p.TransactedFromParam},
		{"TransactedToParam", p.TransactedToParam},
		{"CardIDParam", p.CardIDParam},
		{"RetryAction", p.RetryAction},
	}
	const ofListCards = 9
	for i, n := range names {
		if check.Text("", n.name) != nil || strings.TrimSpace(n.name) != n.name {
			return invalid("WithProfile: " + n.field + " holds a control character, a space at an end, or is not valid UTF-8")
		}
		for _, other := range names[:min(i, ofListCards)] {
			if i < ofListCards && n.name != "" && n.name == other.name {
				return invalid("WithProfile: " + other.field + " and " + n.field + " are the same name")
			}
		}
	}
	if p.RetryAction == cancelAction {
		return invalid("WithProfile: RetryAction is the value that cancels")
	}
	if slices.Contains(p.RefusedCodes, codeSuccess) {
		return invalid("WithProfile: 200 is the code of success")
	}
	if slices.ContainsFunc(p.RefusedStatuses, func(s int) bool { return s < 400 || s > 499 }) {
		return invalid("WithProfile: a refused status is not from 400 to 499")
	}
	return nil
}

// Observer is a set of optional functions that are told of calls. They are
// called on the caller's goroutine, or one of the call's own, and must be safe
// for concurrent use and quick.
type Observer struct {
	// CallStart is told before anything is sent or recorded; the context that it returns is
	// the call's from then on.
	CallStart func(ctx context.Context, c CallInfo) context.Context
	// CallEnd is told last.
	CallEnd func(ctx context.Context, c CallInfo, r CallResult)
	// Attempt is told after each request.
	Attempt func(ctx context.Context, c CallInfo, a Attempt)
	// Drift is told of each kind of deviation in a reply, once a place.
	Drift func(ctx context.Context, c CallInfo, d Drift)
	// JournalError is told where Journal.End failed and the intent stays open.
	JournalError func(ctx context.Context, c CallInfo, err error)
}

// CallInfo describes a call.
type CallInfo struct {
	// Op is the operation, as in Error.Op.
	Op string
	// Method is the HTTP method.
	Method string
	// Path is the path below the base URL, without a query.
	Path string
	// Reference is the caller's reference of a write; "": none.
	Reference string
	// Write says that the call changes something.
	Write bool
}

// CallResult describes how a call ended.
type CallResult struct {
	// HTTPStatus is the last status; 0: no answer.
	HTTPStatus int
	// Code is the envelope's code; 0: none was readable.
	Code int
	// Outcome is meaningful when Err is not nil.
	Outcome Outcome
	// Duration is that of the whole call.
	Duration time.Duration
	// Attempts is the number of requests made.
	Attempts int
	// Err is the call's error, or nil.
	Err error
}

// Drift is a deviation from the interface that was tolerated.
type Drift struct {
	// Path is the place, like "data.data[].fee". Indices are left out, and an
	// unknown name is "*", since it is payload too.
	Path string
	// Kind is what deviates: "unknown member", "missing member", "text for
	// number" and the like; never a value.
	Kind string
}

// DriftLogger returns an [Observer] that logs drift at warning level; with nil
// it logs nothing.
func DriftLogger(l *slog.Logger) Observer {
	if l == nil {
		return Observer{}
	}
	return Observer{Drift: func(ctx context.Context, c CallInfo, d Drift) {
		l.WarnContext(ctx, "cardwire: the answer deviates from the interface",
			"operation", c.Op, "path", d.Path, "kind", d.Kind)
	}}
}

// Request describes an operation that the interface names but does not
// specify, for [Call].
type Request struct {
	// Op is the operation's name for errors, observers and the journal.
	Op string
	// Method is the HTTP method: GET and POST read, unless Write is set.
	Method string
	// Path is below the base URL and begins with "/". It is sent as given: check an
	// identifier that is put into it, for its slashes are slashes of the path.
	Path string
	// Query is sent in the URL; nil: none.
	Query url.Values
	// Form is sent as application/x-www-form-urlencoded; nil: none.
	Form url.Values
	// JSON is sent as application/json; nil: none. Only one of Form and JSON may be set.
	JSON any
	// Write says that the operation changes something: it is then sent once. A
	// POST without it is a read that is repeated as GetCardSecrets is.
	Write bool
	// Reference is the caller's own identifier of a write, which is journaled
	// and sent once at a time; "": none.
	Reference string
}

// Call sends r and decodes data with encoding/json into a T, which matches names
// in any letter case. Everything else, errors too, is as for a named operation:
// data that does not fit T is [ErrUnreadable]. Null fits only a T that can be nil:
// where an operation answers nothing, let T be any.
func Call[T any](ctx context.Context, c *Client, r Request, opts ...CallOption) (T, error) {
	op := operation{
		name: r.name(), method: r.Method, path: r.Path, class: r.class(),
		query: r.Query.Encode(), reference: r.Reference, unique: true,
	}
	op.invalid = r.encode(&op)
	// What a path and a query name belongs to the intent as the body does.
	op.target = wire.Fields{{Name: op.method + " " + op.path, Value: op.query}}
	return do(ctx, c, op, reply[T]{read: readAny[T]}, opts)
}

// name keeps an Op that is refused out of the text of the error.
func (r *Request) name() string {
	if check.Reference("Op", r.Op) != nil {
		return "Call"
	}
	return r.Op
}

func (r *Request) class() transport.Class {
	switch {
	case r.Write:
		return transport.Write
	case r.Method == http.MethodPost:
		return transport.Secret
	}
	return transport.Read
}

// encode puts the body into op, or says what is wrong with the request.
func (r *Request) encode(op *operation) error {
	if err := r.valid(); err != nil {
		return err
	}
	switch {
	case r.JSON != nil:
		text, err := json.Marshal(r.JSON)
		if err != nil {
			return invalid("JSON cannot be encoded")
		}
		if err := check.JSON("JSON", r.JSON); err != nil {
			return invalid(err.Error())
		}
		op.fields = wire.Fields{{Value: string(text)}}
		op.body = rawJSON
	case r.Form != nil || op.method != http.MethodGet:
		for _, name := range slices.Sorted(maps.Keys(r.Form)) {
			for _, v := range r.Form[name] {
				op.fields = append(op.fields, wire.Field{Name: name, Value: v})
			}
		}
		op.body = form
	}
	return nil
}

func (r *Request) valid() error {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	get := r.Method == http.MethodGet
	switch {
	case r.Op == "":
		return invalid("Op is empty")
	case !slices.Contains(methods, r.Method):
		return invalid("Method is none of GET, POST, PUT, PATCH and DELETE")
	case r.Write && get:
		return invalid("a GET does not write")
	case !r.Write && !get && r.Method != http.MethodPost:
		return invalid("PUT, PATCH and DELETE write: set Write")
	case r.Form != nil && r.JSON != nil:
		return invalid("Form and JSON are both set")
	case get && (r.Form != nil || r.JSON != nil):
		return invalid("a GET has no body")
	case r.Reference != "" && !r.Write:
		return invalid("Reference belongs to a write")
	}
	return checked(
		check.Visible("Op", r.Op), check.Path(r.Path), check.Visible("Reference", r.Reference),
		check.Values("Query", r.Query), check.Values("Form", r.Form),
	)
}

// readAny refuses null for a T that cannot hold it: encoding/json would leave a
// zero that the service did not send.
func readAny[T any](c *wire.Codec, v *T) {
	text := c.Span()
	switch {
	case text == nil:
	case string(text) == "null" && !nillable[T](), json.Unmarshal(text, v) != nil:
		c.Fail("what the type of the call holds")
	}
}

func nillable[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return false
}

// userAgent takes the version from the build, where no constant can go stale.
func userAgent() string {
	info, _ := debug.ReadBuildInfo()
	return "cardwire-go/" + versionIn(info)
}

// versionIn is the version of this module in a build, "devel" where it has none.
// nil is a build that does not say.
func versionIn(info *debug.BuildInfo) string {
	const module = "github.com/cardwire/cardwire-go"
	if info == nil {
		return "devel"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace // what was built
		}
		if m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return "devel"
}

// operation describes one operation of the interface: all that differs between
// one call and another.
type operation struct {
	name, method, path string
	class              transport.Class
	query              string
	fields             wire.Fields // of the body
	body               encoding
	upload             *upload     // the file of a multipart body; nil: none
	reference          string      // the caller's identifier of a write; "": none
	unique             bool        // the reference stands for one execution
	target             wire.Fields // what identifies the intent beside the body; nil: nothing
	looks              int         // how often a reply that fails its check is asked for; 0: once
	timeout            time.Duration
	amend              func(*Error) // puts into the error what only the operation knows; nil: nothing
	invalid            error        // why it must not be sent
}

// encoding is how an operation's fields become a body.
type encoding uint8

const (
	none      encoding = iota
	form               // application/x-www-form-urlencoded
	jsonTexts          // application/json, an object of texts
	rawJSON            // application/json, the one field's value
	multipart          // multipart/form-data
)

// reply says how the data of a success becomes a T.
type reply[T any] struct {
	read   func(*wire.Codec, *T)
	verify func(*T) error  // does it answer what was asked? nil: nothing to compare
	id     func(*T) string // the service's identifier of what it did; nil: none
}

// call is one call: what its options ask for, and how far it came.
type call struct {
	response *Response
	header   http.Header
	noRetry  bool
	prefetch int
	invalid  error

	client    *core // nil: New did not make the client
	op        operation
	start     time.Time
	intent    *Intent // in the journal; nil: not there
	bearer    string
	read      func(*wire.Codec)
	verify    func() error
	serviceID func() string
	last      answer

	// Kept here to be one allocation with the call.
	url      url.URL
	sent     transport.Call
	envelope envelope
}

func (k *call) refuse(text string) {
	if k.invalid == nil {
		k.invalid = invalid(text)
	}
}

// do is the one path that every operation takes. Where the error is
// [ErrParameterIgnored] or [ErrDrift], the value is returned together with it.
func do[T any](ctx context.Context, c *Client, op operation, r reply[T], opts []CallOption) (T, error) {
	var value T
	k := &call{
		op: op,
		read: func(d *wire.Codec) {
			var fresh T
			value = fresh
			r.read(d, &value)
		},
	}
	if c.made() {
		k.client = c.core()
	}
	if r.verify != nil {
		k.verify = func() error { return r.verify(&value) }
	}
	if r.id != nil {
		k.serviceID = func() string { return r.id(&value) }
	}
	if err := k.run(ctx, opts); err != nil {
		if !err.keepsValue() {
			var none T
			value = none
		}
		return value, err
	}
	return value, nil
}

func (e *Error) keepsValue() bool {
	return errors.Is(e.err, ErrParameterIgnored) || errors.Is(e.err, ErrDrift)
}

func (k *call) run(ctx context.Context, opts []CallOption) *Error {
	for _, opt := range opts {
		if opt == nil {
			k.refuse("a call option is nil")
			continue
		}
		opt(k)
	}
	if k.response != nil {
		*k.response = Response{}
	}
	if err := k.ready(ctx); err != nil {
		failure := k.fail(OutcomeNotSent, err)
		k.stick(failure)
		return failure
	}
	k.start = time.Now()
	ctx = k.started(ctx)
	failure := k.send(ctx)
	k.logLast(ctx, failure)
	k.ended(ctx, failure)
	return failure
}

// ready says why nothing can be sent, if that is so.
func (k *call) ready(ctx context.Context) error {
	switch {
	case k.client == nil:
		return invalid("the client was not made by New")
	case ctx == nil:
		return invalid("the context is nil")
	case k.invalid != nil:
		return k.invalid
	case k.op.invalid != nil:
		return k.op.invalid
	}
	if err := ctx.Err(); err != nil {
		return conceal("the context was done before the call", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// info is what observers are told; made when one is.
func (k *call) info() CallInfo {
	return CallInfo{
		Op: k.op.name, Method: k.op.method, Path: k.op.path,
		Reference: k.op.reference, Write: k.op.class == transport.Write,
	}
}

// exchange sends the request and judges the answer. What does not answer the
// question is asked for once more where the operation allows it: a card's
// status, say, may change while a page is read.
func (k *call) exchange(ctx context.Context) *Error {
	if err := k.authorize(ctx); err != nil {
		return k.fail(OutcomeNotSent, err)
	}
	request, err := k.request(ctx)
	if err != nil {
		return k.fail(OutcomeNotSent, err)
	}
	for look := 1; ; look++ {
		failure := k.look(ctx, request)
		if failure != nil && k.op.amend != nil {
			k.op.amend(failure)
		}
		if failure == nil || look >= k.op.looks || k.noRetry || !errors.Is(failure.err, ErrParameterIgnored) {
			return failure
		}
		k.logLast(ctx, failure)
	}
}

func (k *call) look(ctx context.Context, request *transport.Call) *Error {
	k.last = answer{tries: k.last.tries}
	r := k.client.engine.Do(ctx, request)
	defer r.Release()
	k.last.tries += r.Tries
	failure := k.judge(ctx, r)
	k.capture(r)
	return failure
}

// authorize gets the Authorization header.
func (k *call) authorize(ctx context.Context) (err error) {
	if k.client.asksForKey {
		var stop context.CancelFunc
		ctx, stop = k.bounded(ctx)
		defer stop()
	}
	k.bearer, err = k.client.bearer(ctx)
	return err
}

// key is the API key of this call.
func (k *call) key() string { return strings.TrimPrefix(k.bearer, bearerScheme) }

// bounded gives ctx the call's own deadline if it has none, for the caller's
// functions that are asked before the request is sent.
func (k *call) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, k.start.Add(k.timeout()))
}

// request builds what the engine sends.
func (k *call) request(ctx context.Context) (*transport.Call, error) {
	k.url = *k.client.base
	k.url.Path += k.op.path
	k.url.RawQuery = k.op.query
	k.sent = transport.Call{
		Class: k.op.class, Method: k.op.method, URL: &k.url, Header: k.headers(),
		MaxBytes: k.client.maxBytes, NoRetry: k.noRetry, OnAttempt: k.onAttempt(ctx),
	}
	r := &k.sent
	if k.op.class == transport.Write {
		r.MaxBytes = min(r.MaxBytes, maxWriteReplyBytes)
	}
	if _, ok := ctx.Deadline(); !ok {
		r.Deadline = k.start.Add(k.timeout())
	}
	contentType, err := k.op.encode(r)
	if contentType != "" {
		r.Header["Content-Type"] = []string{contentType}
	}
	return r, err
}

// headers gives each call values of its own, in one allocation: a doer of the
// caller's may change them in place.
func (k *call) headers() http.Header {
	h := make(http.Header, 4+len(k.header))
	values := []string{"application/json", k.client.userAgent, k.bearer}
	h["Accept"], h["User-Agent"] = values[0:1:1], values[1:2:2]
	for name, v := range k.header {
		h[name] = v
	}
	h["Authorization"] = values[2:3:3]
	return h
}

func (k *call) timeout() time.Duration {
	switch {
	case k.client.timeout != 0:
		return k.client.timeout
	case k.op.timeout != 0:
		return k.op.timeout
	}
	return defaultTimeout
}

// encode gives r its body, and returns the content type, "" for no body.
func (op *operation) encode(r *transport.Call) (contentType string, err error) {
	var text []byte
	switch op.body {
	case none:
		return "", nil
	case form:
		text, contentType = []byte(op.fields.Form()), "application/x-www-form-urlencoded"
	case jsonTexts:
		text, contentType = op.fields.JSON(), "application/json"
	case rawJSON:
		text, contentType = []byte(op.fields[0].Value), "application/json"
	case multipart:
		return op.encodeMultipart(r)
	}
	r.Body, r.BodySize = bytesBody(text), int64(len(text))
	return contentType, nil
}

// started, ended, onAttempt and drifted tell the observers.

func (k *call) started(ctx context.Context) context.Context {
	for _, o := range k.client.observers {
		if o.CallStart != nil {
			if next := o.CallStart(ctx, k.info()); next != nil {
				ctx = next
			}
		}
	}
	return ctx
}

func (k *call) ended(ctx context.Context, failure *Error) {
	if len(k.client.observers) == 0 {
		return
	}
	result := CallResult{
		HTTPStatus: k.last.status, Code: k.last.code,
		Duration: time.Since(k.start), Attempts: k.last.tries,
	}
	if failure != nil {
		result.Outcome, result.Err = failure.Outcome, failure
	}
	for _, o := range k.client.observers {
		if o.CallEnd != nil {
			o.CallEnd(ctx, k.info(), result)
		}
	}
}

// onAttempt returns nil where nobody listens, which spares the call the work.
func (k *call) onAttempt(ctx context.Context) func(transport.Attempt) {
	if k.client.logger == nil && len(k.client.observers) == 0 {
		return nil
	}
	return func(a transport.Attempt) {
		for _, o := range k.client.observers {
			if o.Attempt != nil {
				o.Attempt(ctx, k.info(), Attempt(a))
			}
		}
		if a.Wait == 0 {
			k.last.attempt = &a // to be logged when its outcome and code are known
			return
		}
		k.log(ctx, slog.LevelDebug, "cardwire: attempt", a, nil)
		k.log(ctx, slog.LevelWarn, "cardwire: the attempt failed and is repeated", a, nil)
	}
}

// logLast logs the attempt that no other followed.
func (k *call) logLast(ctx context.Context, failure *Error) {
	if k.last.attempt != nil {
		k.log(ctx, slog.LevelDebug, "cardwire: attempt", *k.last.attempt, failure)
	}
}

// log writes what is safe to write, and nothing else.
func (k *call) log(ctx context.Context, level slog.Level, text string, a transport.Attempt, failure *Error) {
	l := k.client.logger
	if l == nil || !l.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("operation", k.op.name), slog.Int("status", a.HTTPStatus), slog.Duration("duration", a.Duration),
	}
	if k.last.code != 0 {
		attrs = append(attrs, slog.Int("code", k.last.code))
	}
	if failure != nil {
		attrs = append(attrs, slog.String("outcome", failure.Outcome.String()))
	}
	l.LogAttrs(ctx, level, text, attrs...)
}

func (k *call) journalFailed(ctx context.Context, err error) {
	err = conceal("the journal did not record the result: the intent stays open", err)
	for _, o := range k.client.observers {
		if o.JournalError != nil {
			o.JournalError(ctx, k.info(), err)
		}
	}
	if k.client.logger != nil {
		k.client.logger.WarnContext(ctx, "cardwire: the journal did not record the result", "operation", k.op.name)
	}
}

// drifted tells of drift, and returns an error under WithStrictDrift.
func (k *call) drifted(ctx context.Context, drifts []wire.Drift) error {
	for _, d := range drifts {
		for _, o := range k.client.observers {
			if o.Drift != nil {
				o.Drift(ctx, k.info(), Drift(d))
			}
		}
	}
	if k.client.strictDrift && len(drifts) > 0 {
		return &problem{ErrDrift, drifts[0].Path + ": " + drifts[0].Kind}
	}
	return nil
}

// watchesDrift says whether anybody would hear of drift.
func (c *config) watchesDrift() bool {
	return c.strictDrift || slices.ContainsFunc(c.observers, func(o Observer) bool { return o.Drift != nil })
}
