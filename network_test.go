package cardwire_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
	"github.com/cardwire/cardwire-go/journal"
)

// serve starts a service that responds so.
func serve(t *testing.T, respond func(r *http.Request) string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, respond(r))
	}))
	t.Cleanup(s.Close)
	return s
}

// The response of a read that keeps its connection can be checked against the request, or is
// reference data.
func TestWhichReadsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	day := cardwire.Date{Year: 2026, Month: 1, Day: 2}
	list := func(p cardwire.ListCardsParams) wiretest.Method {
		return func(ctx context.Context, c *cardwire.Client, _ ...cardwire.CallOption) error {
			return wiretest.OnlyError(c.ListCards(ctx, p))
		}
	}
	methods := wiretest.AllMethods()
	methods["ListCards, sub-account"] = list(cardwire.ListCardsParams{SubAccountID: "s"})
	methods["ListCards, transacted from"] = list(cardwire.ListCardsParams{TransactedFrom: day})
	methods["ListCards, transacted to"] = list(cardwire.ListCardsParams{TransactedTo: day})
	kept := false
	s := serve(t, func(r *http.Request) string {
		kept = !r.Close
		switch strings.TrimPrefix(r.URL.Path, "/api/v1") {
		case "/cards":
			return pageText(1, 1, "a")
		case "/cards/info":
			return wiretest.Success(strings.Replace(singleCard, "card-1", r.URL.Query().Get("id"), 1))
		}
		return wiretest.Success("[]")
	})
	named := cardwire.WithProfile(func(p *cardwire.Profile) {
		p.SubAccountParam, p.TransactedFromParam, p.TransactedToParam = "sub", "from", "to"
	})
	proxy, err := url.Parse(s.URL)
	require.NoError(t, err)
	through := cardwire.WithTransport(&http.Transport{Proxy: http.ProxyURL(proxy)})
	const (
		always = " ListBINs ListBINsUnderMaintenance CardCapacity ListRemittanceStates ListRemittanceCurrencies "
		direct = " ListCards AllPages AllCards GetCard "
	)
	for _, tc := range []struct {
		opt  cardwire.Option
		kept string
	}{{cardwire.WithAnyBasePath(), always + direct}, {trusting, always}, {through, always}} {
		c := wiretest.ClientOver(t, s.URL+"/api/v1", tc.opt, named, cardwire.WithInsecureHTTP(),
			cardwire.WithJournal(journal.NewMemory()))
		for method, call := range methods {
			kept = false             // if nothing is sent: canceling and retrying share a reference
			_ = call(t.Context(), c) // some cannot read the response
			assert.Equal(t, strings.Contains(tc.kept, " "+method+" "), kept, "%s: %s", method, tc.kept)
		}
	}
}

// What comes late on a kept connection may be the response to another call.
func TestAnotherCardOrPageIsAskedForOnANewConnection(t *testing.T) {
	t.Parallel()
	cards := map[string]string{"1": pageText(1, 2, "a"), "2": pageText(2, 2, "b"), "2 again": pageText(2, 2, "a")}
	for _, late := range []string{"1", "2 again"} {
		asked := 0
		s := serve(t, func(r *http.Request) string {
			which := r.URL.Query().Get("id") + r.URL.Query().Get("page")
			if asked++; asked > 1 && !r.Close {
				which = late
			}
			if r.URL.Path == "/api/v1/cards" {
				return cards[which]
			}
			return wiretest.Success(strings.Replace(singleCard, "card-1", which, 1))
		})
		c := wiretest.ClientOver(t, s.URL+"/api/v1")
		for _, id := range []string{"a", "b"} {
			card, err := c.GetCard(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, id, card.ID)
		}
		assert.Equal(t, 3, asked)
		asked = 0
		ids, err := walk(t, c, filter{}, 0)
		require.NoError(t, err)
		assert.Equal(t, "a b", ids)
		assert.Equal(t, 3, asked, late)
	}
}

// What is judged is what was compressed, whoever asked for that.
func TestAResponseThatIsCompressed(t *testing.T) {
	t.Parallel()
	success, page := wiretest.Success(wiretest.TransferData), "<html>slow</html>"
	const refused = `{"code":422,"msg":"invalid account","data":null}`
	for name, tc := range map[string]struct {
		status             int
		coding, sent, body string
		want               string
	}{
		"executed":       {200, "gzip", loopback.Gzip(t, success), success, "Executed"},
		"cut off":        {200, "gzip", loopback.Gzip(t, success)[:40], "", "Unknown Unreadable, HTTP 200"},
		"another coding": {200, "br", loopback.Gzip(t, success), "", "Unknown Unreadable, HTTP 200"},
		"a refusal": {422, "gzip", loopback.Gzip(t, refused), refused,
			`Refused, HTTP 422, 422 "invalid account"`},
		"bare":                    {429, "gzip", loopback.Gzip(t, page), page, bareUnknown},
		"bare, decoded by a Doer": {429, "", page, page, bareUnknown},
		"bare, but the other":     {429, "br", page, page, bareUnknown},
	} {
		var got cardwire.Response
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			assert.NotContains(t, r.Header, "Accept-Encoding")
			response := wiretest.Response(r, tc.status, tc.sent)
			response.Header["Content-Encoding"] = []string{tc.coding}
			if response.Uncompressed = tc.coding == ""; response.Uncompressed { // as a client's own transport does
				response.Header.Del("Content-Encoding")
			}
			return response, nil
		}), cardwire.WithJournal(journal.NewMemory()))
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithResponse(&got))
		if tc.want == "Executed" {
			require.NoError(t, err, name)
		} else {
			assert.Equal(t, tc.want, outcomeOf(t, err), name)
		}
		if tc.body != "" {
			assert.Equal(t, tc.body, string(got.RevealBody()), name)
		}
		assert.Equal(t, tc.coding != "br" && tc.body != "", got.Header["Content-Encoding"] == nil, name)
	}
}

// A code counts as the status of that number, wherever it is in the envelope.
func TestRetryCodes(t *testing.T) {
	t.Parallel()
	busy := func(response string) wiretest.Exchange {
		return wiretest.Exchange{Want: "GET /shop/api/v1/bins/maintenance", Response: response}
	}
	limited, down := busy(`{"code":429,"msg":"slow","data":null}`),
		busy(`{"data":{"code":200},"msg":"later","code":503}`)
	quick := cardwire.WithRetry(wiretest.QuickRetry)
	none := cardwire.WithProfile(func(p *cardwire.Profile) { p.RetryCodes = nil })
	for _, tc := range []struct {
		opt       cardwire.Option
		want      string
		exchanges []wiretest.Exchange
	}{
		{quick, "", []wiretest.Exchange{limited, down, busy(wiretest.Success(`[]`))}},
		{quick, "Refused RateLimited", []wiretest.Exchange{down, down, limited}},
		{quick, "Refused", []wiretest.Exchange{busy(`{"code":422,"msg":"no","data":null}`)}},
		{none, "Refused RateLimited", []wiretest.Exchange{limited}},
	} {
		_, err := wiretest.Converse(t, tc.exchanges, tc.opt).ListBINsUnderMaintenance(t.Context())
		assert.Equal(t, tc.want, wiretest.Matched(err))
	}
}

// A code that is no integer, of a read, is that code, which is drift. A write is not refused by it.
func TestCodesOfFailuresInOtherForms(t *testing.T) {
	t.Parallel()
	for code, drift := range map[string]string{
		`"404"`: "string for number", `404.0`: "decimal for integer", `404`: "",
	} {
		var drifts []cardwire.Drift
		o := cardwire.WithObserver(cardwire.Observer{
			Drift: func(_ context.Context, _ cardwire.CallInfo, d cardwire.Drift) { drifts = append(drifts, d) },
		})
		refusal := `{"msg":"card does not exist","more":1,"code":` + code + `}`
		_, err := wiretest.Respond(t, wiretest.Anything, refusal, o).GetCard(t.Context(), "card-1")
		assert.Equal(t, `Refused NotFound, HTTP 200, 404 "card does not exist"`, outcomeOf(t, err), code)
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err))
		if drift == "" {
			assert.Empty(t, drifts)
			continue
		}
		assert.Equal(t, []cardwire.Drift{{Path: "code", Kind: drift}}, drifts)
		err = wiretest.Respond(t, wiretest.Anything, refusal).CancelOperation(t.Context(), wiretest.OperationID)
		assert.Equal(t, unknown, wiretest.Failure(t, err).Outcome, code)
	}
}

// A code is recognized in every form in which the judge reads it.
func TestRetryCodesInOtherForms(t *testing.T) {
	t.Parallel()
	for _, busy := range []string{
		"\ufeff" + `{"code":429,"msg":"slow","data":null}`, `{"code":"429","msg":"slow"}`,
		`{"code":429.0,"msg":"slow"}`,
		loopback.Gzip(t, "\ufeff"+`{"msg":"slow","code":"429"}`),
	} {
		asked := 0
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if asked++; asked == 2 {
				return wiretest.Response(r, 200, wiretest.Success(`[]`)), nil
			}
			response := wiretest.Response(r, 200, busy)
			if strings.HasPrefix(busy, "\x1f\x8b") {
				response.Header.Set("Content-Encoding", "gzip")
			}
			return response, nil
		}), cardwire.WithRetry(wiretest.QuickRetry))
		_, err := c.ListBINs(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, asked)
	}
	for _, other := range []string{`{"code":429.5}`, `{"code":"429.0"}`, `{"code":"+429"}`, `{"code":[429]}`} {
		_, err := wiretest.Respond(t, wiretest.Anything, other,
			cardwire.WithRetry(wiretest.QuickRetry)).ListBINs(t.Context())
		require.ErrorIs(t, err, cardwire.ErrUnreadable)
	}
}

func TestWithTLSConfig(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Len(t, r.TLS.PeerCertificates, 1)
		_, _ = io.WriteString(w, wiretest.Success(`[]`))
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // a test server would write to stderr
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	base, own := s.URL+"/api/v1", &tls.Config{RootCAs: roots, Certificates: s.TLS.Certificates}
	c := wiretest.ClientOver(t, base, cardwire.WithTLSConfig(own))
	own.RootCAs = x509.NewCertPool() // later, which does not matter
	_, err := c.ListBINs(t.Context())
	require.NoError(t, err)

	_, err = wiretest.ClientOver(t, base, cardwire.WithTLSConfig(own)).ListBINs(t.Context())
	at := s.Listener.Addr().String()
	require.EqualError(t, err, "cardwire: ListBINs: failed: certificate of "+at+" not trusted: "+
		"unknown authority: add its CA to the RootCAs of the TLS configuration: call again once that is corrected")

	with := cardwire.WithTLSConfig(own)
	const combined = "WithTLSConfig cannot be combined with WithTransport or WithHTTPClient"
	for _, tc := range []struct {
		want string
		opts []cardwire.Option
	}{
		{"WithTLSConfig: the configuration is nil", []cardwire.Option{cardwire.WithTLSConfig(nil)}},
		{combined, []cardwire.Option{with, cardwire.WithTransport(&http.Transport{})}},
		{combined, []cardwire.Option{cardwire.WithHTTPClient(s.Client()), with}},
	} {
		_, err := cardwire.New(base, wiretest.Key, tc.opts...)
		require.EqualError(t, err, "cardwire: invalid setup: "+tc.want)
	}
}

// A caller's HTTP client has its own ways to trace.
func TestTraceParent(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var got []string
	s := serve(t, func(r *http.Request) string {
		got = append(got, strings.Join(r.Header["Traceparent"], "|"))
		return `{"code":503,"msg":"later","data":null}`
	})
	for _, tc := range []struct {
		says, want string
		opt        cardwire.Option
	}{
		{trace, trace, cardwire.WithAnyBasePath()}, {trace + "\r\nX-A: b", "", cardwire.WithAnyBasePath()},
		{trace, "", cardwire.WithHTTPClient(s.Client())},
	} {
		got = nil
		_, err := wiretest.ClientOver(t, s.URL+"/api/v1", tc.opt, cardwire.WithObserver(cardwire.Observer{
			TraceParent: func(ctx context.Context) string {
				return tc.says + ctx.Value(wiretest.ContextKey{}).(string)
			},
		})).ListBINs(context.WithValue(t.Context(), wiretest.ContextKey{}, ""))
		require.Error(t, err)
		assert.Equal(t, []string{tc.want, tc.want, tc.want}, got)
	}
}
