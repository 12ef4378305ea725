// Package cardwire is a client for a card-issuing and remittance API.
//
// # Reading cards
//
//	client, err := cardwire.New("https://api.example.com/api/v1", key) // share it: it is safe for concurrent use
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
// What a shop reads:
//
//   - [Client.GetCard], [Client.GetCardByOrder], [Client.ListCards], [Client.AllPages], [Client.AllCards]: a [Card];
//     [Client.GetCardSecrets]: its [CardSecrets]
//   - [Client.ListBINs], [Client.ListBINsUnderMaintenance], [Client.CardCapacity]
//   - [ErrNotFound], [ErrUnauthorized], [ErrRateLimited], [ErrElements]: why it failed
//
// Card numbers, CVVs and keys print, log, marshal and diff as a mask; only methods whose names begin with
// Reveal, and [EncryptedPAN.Ciphertext], return them. Amounts are [decimal.Decimal], exact and never rounded.
//
// [Profile] has every assumption about what is undocumented: run the example program doctor with a new key, and
// correct them there. What deviates without losing a value is accepted and reported to [Observer].Drift; any
// other deviation is [ErrUnreadable]. Package cardwiretest is an in-memory fake of the service.
//
// # Moving money
//
//   - [Client.CreateTransfer], with [WithJournal]; [Client.ListRemittanceCurrencies], [Client.ListRemittanceStates]
//   - [Client.FreezeCard], [Client.CancelOperation], [Client.RetryOperation], [Client.UploadImage]
//   - [Call]: what the API names but does not specify
//   - [NextStep]: what to do after a call. A program that does only that never gets an order executed twice, and
//     never marks an executed order as failed. [Error] has the [Outcome]: whether the call was executed
//
// This package never sends a write twice, and retries reads by [RetryPolicy]. What it knows about a reference is
// in the journal; a durable one, as that of the module sqljournal, keeps it across crashes. The module payouts is a
// payout service to import.
//
// # For authors of journals
//
//   - [Journal]: what is implemented, by the rules in package journal; package cardwiretest has its tests
//   - [Intent], [IntentResult]: what it is told; [DuplicateIntent]: what it says
package cardwire

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/mask"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/version"
)

// Doer sends requests. *http.Client is one.
type Doer interface {
	// Do sends one request. It must not retry it or follow redirects. Both Do and reading the
	// body that it returns must end when the request's context does.
	Do(r *http.Request) (*http.Response, error)
}

// Limiter delays requests. *rate.Limiter of golang.org/x/time/rate is one.
type Limiter interface {
	// Wait returns nil when a request may be sent, and an error if it may not, or ctx ends.
	Wait(ctx context.Context) error
}

// Client calls the service. It is immutable, and prints without its key.
type Client struct {
	config mask.Hidden[*config] // its connections have the key and the last response in buffers
}

// New returns a Client for the service at baseURL, which ends in /api/v1 and uses https:
// see [WithAnyBasePath] and [WithInsecureHTTP]. It uses no network. Its
// errors are an [*Error] that matches [ErrSetup].
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	return newClient(setting{"the base URL", baseURL}, setting{"the API key", apiKey}, opts)
}

// NewFromEnv is [New] with CARDWIRE_BASE_URL and CARDWIRE_API_KEY.
func NewFromEnv(opts ...Option) (*Client, error) {
	return newClient(
		setting{"CARDWIRE_BASE_URL", os.Getenv("CARDWIRE_BASE_URL")},
		setting{"CARDWIRE_API_KEY", os.Getenv("CARDWIRE_API_KEY")}, opts)
}

type setting struct{ name, value string }

func newClient(baseURL, apiKey setting, opts []Option) (*Client, error) {
	cfg := &config{
		profile:   DefaultProfile(),
		retry:     DefaultRetryPolicy(),
		userAgent: version.UserAgent(),
		maxBytes:  defaultMaxBytes,
	}
	if err := cfg.apply(opts, baseURL, apiKey); err != nil {
		return nil, &Error{Outcome: OutcomeNotSent, Err: err}
	}
	cfg.engine = transport.New(transport.Config{
		Doer: cfg.doer, Transport: cfg.directTransport(), TLS: cfg.tls, Policy: transport.Policy(cfg.retry),
		Limit: cfg.limit,
	})
	return &Client{mask.Hide(cfg)}, nil
}

func (c *config) apply(opts []Option, baseURL, apiKey setting) error {
	for _, opt := range opts {
		if opt == nil {
			return badSetup("an option is nil")
		}
		if err := opt(c); err != nil {
			return err
		}
	}
	return c.complete(baseURL, apiKey)
}

func (c *config) complete(baseURL, apiKey setting) error {
	base, err := check.BaseURL(baseURL.name, baseURL.value, c.insecureHTTP)
	if err == nil && !c.anyBasePath {
		err = check.BasePath(baseURL.name, base)
	}
	switch {
	case err != nil:
		return badSetup(err.Error())
	case c.doer != nil && c.transport != nil:
		return badSetup("WithTransport cannot be combined with WithHTTPClient")
	case c.tls != nil && (c.doer != nil || c.transport != nil):
		return badSetup("WithTLSConfig cannot be combined with WithTransport or WithHTTPClient")
	}
	port := cmp.Or(base.Port(), map[string]string{"http": "80"}[base.Scheme], "443")
	c.server = net.JoinHostPort(base.Hostname(), port)
	switch c.base, c.service = base, base.String(); {
	case c.keySource != nil:
		return nil
	case apiKey.value == "":
		return badSetup(apiKey.name + " is empty: set it, or use WithKeySource")
	}
	header, err := bearer(apiKey)
	c.bearer = header
	return err
}

// directTransport returns the caller's transport, without its proxy if the base URL is
// plain http of this machine: a proxy would read the key.
func (c *config) directTransport() *http.Transport {
	if c.transport == nil || c.base.Scheme != "http" || c.insecureHTTP {
		return c.transport
	}
	direct := c.transport.Clone()
	direct.Proxy = nil
	return direct
}

const bearerScheme = "Bearer "

func bearer(key setting) (string, error) {
	if err := check.Key(key.name, key.value); err != nil {
		return "", badSetup(err.Error())
	}
	return bearerScheme + key.value, nil
}

// CloseIdleConnections closes the client's own idle connections.
func (c *Client) CloseIdleConnections() {
	c.settings().engine.CloseIdleConnections()
}

// Format writes the base URL, whatever the verb.
func (c Client) Format(f fmt.State, _ rune) {
	formatMasked(f, "cardwire.Client("+c.settings().service+")")
}

// Settings is what a [Client] was given that a program around it must know.
type Settings struct {
	Service       string        // the base URL, as the journal has it; "": the client was not created by New
	Account       string        // that of WithAccount; "": none
	Timeout       time.Duration // that of WithTimeout; 0: each operation's default
	LateExecution time.Duration // the profile's
}

// Settings returns what the client was given, without its key.
func (c *Client) Settings() Settings {
	s := c.settings()
	return Settings{s.service, s.account, s.timeout, s.profile.LateExecution}
}

// settings returns what New made, or an empty one.
func (c *Client) settings() *config {
	if c == nil || c.config == nil {
		return new(config)
	}
	return c.config()
}
