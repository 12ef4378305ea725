package cardwire_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// ticks and memory are kinds that an interface holds as nil.
type (
	ticks  chan struct{}
	memory map[string]cardwire.Intent
)

func (c ticks) Wait(context.Context) error { <-c; return nil }

func (m memory) Begin(_ context.Context, i cardwire.Intent) error { m[i.Reference] = i; return nil }

func (memory) Void(context.Context, cardwire.Intent, string, string) error { return nil }

func (m memory) End(_ context.Context, i cardwire.Intent, _ cardwire.IntentResult) error {
	delete(m, i.Reference)
	return nil
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	var noClient *http.Client
	for name, tc := range map[string]struct {
		base, key string
		opts      []cardwire.Option
		want      string // after "cardwire: invalid parameters: "
	}{
		"no base URL":        {"", wiretest.Key, nil, "the base URL must be like https://host/api/v1"},
		"no host":            {"https:///api/v1", wiretest.Key, nil, "the base URL must be like https://host/api/v1"},
		"no scheme":          {"api.example.com/api/v1", wiretest.Key, nil, "the base URL must be like https://host/api/v1"},
		"another scheme":     {"ftp://api.example.com", wiretest.Key, nil, "the base URL must use https"},
		"plain http":         {"http://api.example.com/api/v1", wiretest.Key, nil, "the base URL is plain http, which would send the key in the clear: use https, or WithInsecureHTTP for a host that you trust"},
		"nearly this host":   {"http://localhost.example.com", wiretest.Key, nil, "the base URL is plain http, which would send the key in the clear: use https, or WithInsecureHTTP for a host that you trust"},
		"a user":             {"https://me:secret@api.example.com", wiretest.Key, nil, "the base URL contains a user name: pass the API key to New"},
		"a query":            {"https://api.example.com/api/v1?key=secret", wiretest.Key, nil, "the base URL contains a query or a fragment"},
		"an empty query":     {"https://api.example.com/api/v1?", wiretest.Key, nil, "the base URL contains a query or a fragment"},
		"a fragment":         {"https://api.example.com/api/v1#secret", wiretest.Key, nil, "the base URL contains a query or a fragment"},
		"no key":             {wiretest.Base, "", nil, "the API key is empty: pass one to New, set CARDWIRE_API_KEY for NewFromEnv, or use WithKeySource"},
		"a key with a space": {wiretest.Base, "sk secret", nil, "the API key contains a character that is not visible ASCII"},
		"a key with a line":  {wiretest.Base, "sk-secret\r\nX: y", nil, "the API key contains a character that is not visible ASCII"},
		"a key beyond ASCII": {wiretest.Base, "sk-sécret", nil, "the API key contains a character that is not visible ASCII"},
		"a nil option":       {wiretest.Base, wiretest.Key, []cardwire.Option{nil}, "an option is nil"},
		"a nil client":       {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithHTTPClient(nil)}, "WithHTTPClient: the client is nil"},
		"a nil Doer":         {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithHTTPClient((*wiretest.RoundTripper)(nil))}, "WithHTTPClient: the client is nil"},
		"a nil function":     {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithHTTPClient(wiretest.RoundTripper(nil))}, "WithHTTPClient: the client is nil"},
		"a typed nil client": {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithHTTPClient(noClient)}, "WithHTTPClient: the client is nil"},
		"a nil transport":    {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithTransport(nil)}, "WithTransport: the transport is nil"},
		"client and transport": {
			wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithHTTPClient(http.DefaultClient), cardwire.WithTransport(&http.Transport{})},
			"WithTransport cannot be combined with WithHTTPClient",
		},
		"a nil key source":            {wiretest.Base, "", []cardwire.Option{cardwire.WithKeySource(nil)}, "WithKeySource: the function is nil"},
		"a nil limiter":               {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithLimiter(nil)}, "WithLimiter: the limiter is nil"},
		"a nil pointer for a limiter": {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithLimiter((*failing)(nil))}, "WithLimiter: the limiter is nil"},
		"a nil channel for a limiter": {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithLimiter(ticks(nil))}, "WithLimiter: the limiter is nil"},
		"a logger without a handler":  {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithLogger(new(slog.Logger))}, "WithLogger: the logger is nil or has no handler"},
		"a nil pointer for a journal": {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithJournal((*wiretest.Journal)(nil))}, "WithJournal: the journal is nil"},
		"a nil map for a journal":     {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithJournal(memory(nil))}, "WithJournal: the journal is nil"},
		"a nil logger":                {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithLogger(nil)}, "WithLogger: the logger is nil or has no handler"},
		"a nil journal":               {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithJournal(nil)}, "WithJournal: the journal is nil"},
		"negative retries":            {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: -1})}, "WithRetry: no value of the policy may be negative"},
		"a negative scale":            {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{MinDelay: -1})}, "WithRetry: no value of the policy may be negative"},
		"a negative bound":            {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{MaxDelay: -1})}, "WithRetry: no value of the policy may be negative"},
		"a negative wait":             {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{MaxRetryAfter: -1})}, "WithRetry: no value of the policy may be negative"},
		"a negative length":           {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{Attempt: -1})}, "WithRetry: no value of the policy may be negative"},
		"no time":                     {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithTimeout(0)}, "WithTimeout: the duration must be greater than zero"},
		"less than no time":           {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithTimeout(-1)}, "WithTimeout: the duration must be greater than zero"},
		"no bytes":                    {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithMaxResponseBytes(0)}, "WithMaxResponseBytes: the bound must be greater than zero"},
		"no product":                  {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithUserAgent("")}, "WithUserAgent: the product name is empty"},
		"a product's line":            {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithUserAgent("shop\r\nX: y")}, "WithUserAgent: the product name contains a character that is not visible ASCII"},
		"one name for two": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.SubAccountParam = "page" })},
			"WithProfile: PageParam and SubAccountParam must be different names",
		},
		"a name with a line": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.CardIDParam = "id\n" })},
			"WithProfile: CardIDParam contains a control character, begins or ends with a space, or is not valid UTF-8",
		},
		"a name with a space": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.RetryAction = " retry" })},
			"WithProfile: RetryAction contains a control character, begins or ends with a space, or is not valid UTF-8",
		},
		"a retry that cancels": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.RetryAction = "cancel" })},
			"WithProfile: RetryAction must not be the value that cancels",
		},
		"a success that refuses": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.RefusedCodes = []int{422, 200} })},
			"WithProfile: RefusedCodes and DuplicateCodes must not contain 200, the code of a success",
		},
		"a status below 400": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.RefusedStatuses = []int{399} })},
			"WithProfile: a refused status must be from 400 to 499",
		},
		"a bare status below 400": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.BareRefusedStatuses = []int{200} })},
			"WithProfile: a refused status must be from 400 to 499",
		},
		"a success that is a duplicate": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.DuplicateCodes = []int{200} })},
			"WithProfile: RefusedCodes and DuplicateCodes must not contain 200, the code of a success",
		},
		"a nil function for a profile": {wiretest.Base, wiretest.Key, []cardwire.Option{cardwire.WithProfile(nil)}, "WithProfile: the function is nil"},
		"a status above 499": {
			wiretest.Base, wiretest.Key, []cardwire.Option{wiretest.ChangedProfile(func(p *cardwire.Profile) { p.RefusedStatuses = []int{500} })},
			"WithProfile: a refused status must be from 400 to 499",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := cardwire.New(tc.base, tc.key, tc.opts...)
			assert.Nil(t, c)
			require.EqualError(t, err, "cardwire: invalid setup: "+tc.want)
			require.ErrorIs(t, err, cardwire.ErrSetup)
			require.ErrorIs(t, err, cardwire.ErrInvalidParams)
			assert.NotContains(t, err.Error(), "secret@")
		})
	}
}

func TestNewAcceptsWithoutTheNetwork(t *testing.T) {
	t.Parallel()
	offline := cardwire.WithTransport(&http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			t.Error("New touched the network")
			return nil, wiretest.ErrBroken
		},
	})
	for base, opts := range map[string][]cardwire.Option{
		"https://api.example.com":         nil,
		"https://api.example.com/api/v1/": nil,
		"http://localhost:8080/api/v1":    nil,
		"http://127.0.0.1:8080":           nil,
		"http://[::1]:8080/api/v1":        nil,
		"http://api.example.com":          {cardwire.WithInsecureHTTP()},
	} {
		_, err := cardwire.New(base, wiretest.Key, append(opts, offline)...)
		require.NoError(t, err, base)
	}
}

func TestNewFromEnv(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "https://env.example.com/api/v1")
	t.Setenv("CARDWIRE_API_KEY", "sk-env")
	var got string
	c, err := cardwire.NewFromEnv(cardwire.WithHTTPClient(wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Get("Authorization") + " to " + r.URL.String()
		return wiretest.Response(r, 200, wiretest.Success(`[]`)), nil
	})))
	require.NoError(t, err)
	_, err = c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer sk-env to https://env.example.com/api/v1/bins", got)

	t.Setenv("CARDWIRE_API_KEY", "")
	_, err = cardwire.NewFromEnv()
	require.EqualError(t, err, "cardwire: invalid setup: the API key is empty: pass one to New, set CARDWIRE_API_KEY for NewFromEnv, or use WithKeySource")
}

func TestAClientThatNewDidNotMakeSendsNothing(t *testing.T) {
	t.Parallel()
	for name, call := range wiretest.AllMethods() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []*cardwire.Client{nil, {}} {
				err := call(t.Context(), c)
				wiretest.RefusedBeforehand(t, err, "the client was not made by New")
				assert.Equal(t, cardwire.OutcomeNotSent, wiretest.Failure(t, err).Outcome)
			}
		})
	}
	assert.NotPanics(t, func() {
		(*cardwire.Client)(nil).CloseIdleConnections()
		new(cardwire.Client).CloseIdleConnections()
	})
	assert.Equal(t, "cardwire.Client()", fmt.Sprint(cardwire.Client{}))
}

func TestAClientPrintsItsBaseURL(t *testing.T) {
	t.Parallel()
	c, err := cardwire.New("https://api.example.com/api/v1/", wiretest.CanaryKey)
	require.NoError(t, err)
	const want = "cardwire.Client(https://api.example.com/api/v1)"
	type holder struct{ client *cardwire.Client }
	type copied struct{ client cardwire.Client }
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.Equal(t, want, fmt.Sprintf(format, *c), format)
		assert.Equal(t, want, fmt.Sprintf(format, c), format)
		assert.Equal(t, "cardwire.Client()", fmt.Sprintf(format, cardwire.Client{}), format)
		assert.NotPanics(t, func() { assert.Contains(t, fmt.Sprintf(format, (*cardwire.Client)(nil)), "<nil>", format) })
		for _, v := range []any{holder{c}, copied{*c}} {
			text := fmt.Sprintf(format, v)
			assert.NotContains(t, text, wiretest.CanaryKey, format)
			assert.NotContains(t, text, fmt.Sprintf("%x", wiretest.CanaryKey), format)
		}
	}
	assert.Equal(t, want, c.LogValue().String())
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "client", c)
	assert.Contains(t, log.String(), `"client":"`+want+`"`)
}

func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	c := wiretest.ClientOver(t, wiretest.CountingServer(t, &connections).URL)
	for range 2 {
		_, err := c.ListBINs(t.Context())
		require.NoError(t, err)
		c.CloseIdleConnections()
	}
	assert.EqualValues(t, 2, connections.Load())
}

// failing is a limiter that lets nothing pass.
type failing struct{ err error }

func (f failing) Wait(context.Context) error { return f.err }

func TestMain(m *testing.M) { wiretest.Main(m) }
