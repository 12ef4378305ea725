package cardwire_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// What is wrong with the base URL and the key in detail is in internal/check.
func TestNewRefusesABaseURLOrAKey(t *testing.T) {
	const (
		base   = "https://api.example.com/api/v1"
		suffix = " must end in /api/v1, as in https://host/api/v1: if a gateway rewrites paths, use WithAnyBasePath"
		scheme = ` begins with "Bearer ", which the client adds: pass only the key`
	)
	for _, tc := range []struct{ base, key, want string }{
		{"", "sk", "URL is empty: it must be like https://host/api/v1"},
		{"https://api.example.com", "sk", "URL" + suffix},
		{"https://me:secret@api.example.com/api/v1", "sk", "URL contains a user name: pass the API key to New"},
		{base, "", "KEY is empty: set it, or use WithKeySource"},
		{base, "Bearer sk-secret", "KEY" + scheme},
	} {
		_, err := cardwire.New(tc.base, tc.key)
		require.ErrorIs(t, err, cardwire.ErrSetup)
		passed := strings.NewReplacer("URL", "the base URL", "KEY", "the API key")
		require.EqualError(t, err, "cardwire: invalid setup: "+passed.Replace(tc.want))

		t.Setenv("CARDWIRE_BASE_URL", tc.base)
		t.Setenv("CARDWIRE_API_KEY", tc.key)
		_, err = cardwire.NewFromEnv()
		fromEnv := strings.NewReplacer("URL", "CARDWIRE_BASE_URL", "KEY", "CARDWIRE_API_KEY")
		require.EqualError(t, err, "cardwire: invalid setup: "+fromEnv.Replace(tc.want))
	}
}

func TestNewRefusesAnOption(t *testing.T) {
	t.Parallel()
	refuses := func(want string, opts ...cardwire.Option) {
		t.Helper()
		c, err := cardwire.New(wiretest.Base, wiretest.Key, opts...)
		assert.Nil(t, c)
		require.EqualError(t, err, "cardwire: invalid setup: "+want)
		assert.Equal(t, told{"NotSent Setup", cardwire.StepRetry}, toldBy(t, err))
	}
	refuses("an option is nil", cardwire.Option(nil))
	refuses("WithHTTPClient: the client is nil", cardwire.WithHTTPClient((*http.Client)(nil)))
	refuses("WithHTTPClient: the client is nil", cardwire.WithHTTPClient(wiretest.RoundTripper(nil)))
	refuses("WithTransport: the transport is nil", cardwire.WithTransport(nil))
	refuses("WithTransport cannot be combined with WithHTTPClient", cardwire.WithHTTPClient(http.DefaultClient),
		cardwire.WithTransport(&http.Transport{}))
	refuses("WithKeySource: the function is nil", cardwire.WithKeySource(nil))
	refuses("WithLimiter: the limiter is nil", cardwire.WithLimiter(wiretest.Limiter(nil)))
	refuses("WithLogger: the logger is nil or has no handler", cardwire.WithLogger(nil))
	refuses("WithLogger: the logger is nil or has no handler", cardwire.WithLogger(new(slog.Logger)))
	refuses("WithJournal: the journal is nil", cardwire.WithJournal(nil))
	refuses("WithJournal: the journal is nil", cardwire.WithJournal((*wiretest.Journal)(nil)))
	const short = ": 30ns is less than a millisecond: write 30*time.Second for seconds"
	for field, policy := range map[string]func(time.Duration) cardwire.RetryPolicy{
		"MinDelay":      func(d time.Duration) cardwire.RetryPolicy { return cardwire.RetryPolicy{MinDelay: d} },
		"MaxDelay":      func(d time.Duration) cardwire.RetryPolicy { return cardwire.RetryPolicy{MaxDelay: d} },
		"MaxRetryAfter": func(d time.Duration) cardwire.RetryPolicy { return cardwire.RetryPolicy{MaxRetryAfter: d} },
		"Attempt":       func(d time.Duration) cardwire.RetryPolicy { return cardwire.RetryPolicy{Attempt: d} },
		"":              func(d time.Duration) cardwire.RetryPolicy { return cardwire.RetryPolicy{MaxRetries: int(d)} },
	} {
		refuses("WithRetry: no value of the policy may be negative", cardwire.WithRetry(policy(-1)))
		if field != "" {
			refuses("WithRetry: "+field+short, cardwire.WithRetry(policy(30)))
		}
	}
	refuses("WithTimeout: the duration must be greater than zero", cardwire.WithTimeout(0))
	refuses("WithTimeout"+short, cardwire.WithTimeout(30))
	refuses("WithMaxResponseBytes: the bound must be greater than zero", cardwire.WithMaxResponseBytes(0))
	refuses("WithUserAgent: the product name is empty", cardwire.WithUserAgent(""))
	refuses("WithProfile: the function is nil", cardwire.WithProfile(nil))
}

func TestNewRefusesAProfile(t *testing.T) {
	t.Parallel()
	const (
		unusable = " contains a control character, begins or ends with a space, or is not valid UTF-8"
		success  = "RefusedCodes, RetryCodes and DuplicateCodes must not contain 200, the code of a success"
		status   = "a refused status must be from 400 to 499"
	)
	for _, tc := range []struct {
		want   string
		change func(*cardwire.Profile)
	}{
		{
			"PageParam and SubAccountParam must be different names",
			func(p *cardwire.Profile) { p.SubAccountParam = "page" },
		},
		{"CardIDParam" + unusable, func(p *cardwire.Profile) { p.CardIDParam = "id\n" }},
		{"RetryAction" + unusable, func(p *cardwire.Profile) { p.RetryAction = " retry" }},
		{"RetryAction must not be the value that cancels", func(p *cardwire.Profile) { p.RetryAction = "cancel" }},
		{
			"LateExecution: 600ns is less than a millisecond: write 600*time.Second for seconds",
			func(p *cardwire.Profile) { p.LateExecution = 600 },
		},
		{"LateExecution must not be negative", func(p *cardwire.Profile) { p.LateExecution = -1 }},
		{"a phrase of DuplicateMessages has no letter or digit",
			func(p *cardwire.Profile) { p.DuplicateMessages = []string{"no", "!"} }},
		{"a phrase of RefusedMessages has no letter or digit",
			func(p *cardwire.Profile) { p.RefusedMessages = []string{""} }},
		{success, func(p *cardwire.Profile) { p.RefusedCodes = []int{422, 200} }},
		{success, func(p *cardwire.Profile) { p.DuplicateCodes = []int{200} }},
		{status, func(p *cardwire.Profile) { p.RefusedStatuses = []int{399} }},
		{status, func(p *cardwire.Profile) { p.RefusedStatuses = []int{500} }},
		{status, func(p *cardwire.Profile) { p.BareRefusedStatuses = []int{200} }},
	} {
		_, err := cardwire.New(wiretest.Base, wiretest.Key, cardwire.WithProfile(tc.change))
		require.EqualError(t, err, "cardwire: invalid setup: WithProfile: "+tc.want)
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
		"https://api.example.com/api/v1/": nil,
		"https://api.example.com/cards":   {cardwire.WithAnyBasePath()},
		"http://127.0.0.1:8080":           nil,
		"http://[::1]:8080/api/v1":        nil,
		"http://api.example.com/api/v1":   {cardwire.WithInsecureHTTP(), cardwire.WithTimeout(time.Millisecond)},
	} {
		_, err := cardwire.New(base, wiretest.Key, append(opts, offline)...)
		require.NoError(t, err, base)
	}
}

func TestAClientThatNewDidNotMakeSendsNothing(t *testing.T) {
	t.Parallel()
	for name, call := range wiretest.AllMethods() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []*cardwire.Client{nil, {}} {
				err := call(t.Context(), c)
				wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "the client was not created by New")
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
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.Equal(t, want, fmt.Sprintf(format, *c), format)
		assert.Equal(t, want, fmt.Sprintf(format, c), format)
		assert.Equal(t, "cardwire.Client()", fmt.Sprintf(format, cardwire.Client{}), format)
		assert.Contains(t, fmt.Sprintf(format, (*cardwire.Client)(nil)), "<nil>", format)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "client", c)
	assert.Contains(t, log.String(), `"client":{}`)
}

// What Settings returns is what was given, and nothing of a client that New did not make.
func TestSettings(t *testing.T) {
	t.Parallel()
	c, err := cardwire.New("https://api.example.com/api/v1/", "sk-secret",
		cardwire.WithAccount("a"), cardwire.WithTimeout(time.Hour),
		cardwire.WithProfile(func(p *cardwire.Profile) { p.LateExecution = 24 * time.Hour }))
	require.NoError(t, err)
	want := cardwire.Settings{
		Service: "https://api.example.com/api/v1", Account: "a", Timeout: time.Hour, LateExecution: 24 * time.Hour,
	}
	assert.Equal(t, want, c.Settings())
	for _, none := range []*cardwire.Client{nil, {}} {
		assert.Zero(t, none.Settings())
	}
}

func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	connections := map[string]bool{}
	s := serve(t, func(r *http.Request) string {
		connections[r.RemoteAddr] = true
		return wiretest.Success(`[]`)
	})
	c := wiretest.ClientOver(t, s.URL)
	for range 2 {
		_, err := c.ListBINs(t.Context())
		require.NoError(t, err)
		c.CloseIdleConnections()
	}
	assert.Len(t, connections, 2)
}

// TestMain uses the random generator before any test does: that of FIPS 140 seeds itself by
// the clock, which stands still in a bubble of testing/synctest.
func TestMain(m *testing.M) {
	rand.Text()
	goleak.VerifyTestMain(m)
}
