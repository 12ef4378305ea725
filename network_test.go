package cardwire_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// numbered starts a server that tells respond over which connection, from 1 on, a request came.
func numbered(t *testing.T, respond func(connection int32, r *http.Request) string) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	connections := new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, respond(r.Context().Value(wiretest.ContextKey{}).(int32), r))
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, wiretest.ContextKey{}, connections.Add(1))
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, connections
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
	for _, w := range wiretest.AllWrites() {
		delete(methods, string(w.Op))
	}
	s, connections := numbered(t, func(_ int32, r *http.Request) string {
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
	const (
		always = " ListBINs ListBINsUnderMaintenance CardCapacity ListRemittanceStates ListRemittanceCurrencies "
		direct = " ListCards AllPages AllCards GetCard "
	)
	for name, tc := range map[string]struct {
		opts []cardwire.Option
		kept string
	}{
		"directly": {nil, always + direct},
		"trusting": {[]cardwire.Option{trusting}, always},
		"through a proxy": {[]cardwire.Option{
			cardwire.WithInsecureHTTP(), cardwire.WithTransport(&http.Transport{Proxy: http.ProxyURL(proxy)}),
		}, always},
	} {
		for method, call := range methods {
			c := wiretest.ClientOver(t, s.URL+"/api/v1", append(tc.opts, named)...)
			before, want := connections.Load(), int32(3)
			for range 3 {
				_ = call(t.Context(), c) // some cannot read the response
			}
			if strings.Contains(tc.kept, " "+method+" ") {
				want = 1
			}
			assert.Equal(t, want, connections.Load()-before, "%s, %s", name, method)
		}
	}
}

// What comes late on a kept connection may be the response to another call.
func TestAnotherCardOrPageIsAskedForOnANewConnection(t *testing.T) {
	t.Parallel()
	cards := map[string]string{"1": pageText(1, 2, "a"), "2": pageText(2, 2, "b"), "2 again": pageText(2, 2, "a")}
	for path, late := range map[string]string{"/cards/info": "another", "/cards": "1", "/cards ": "2 again"} {
		asked := 0
		s, connections := numbered(t, func(connection int32, r *http.Request) string {
			which := r.URL.Query().Get("id") + r.URL.Query().Get("page")
			if asked++; connection == 1 && asked > 1 {
				which = late
			}
			if r.URL.Path == "/api/v1/cards" {
				return cards[which]
			}
			return wiretest.Success(strings.Replace(singleCard, "card-1", which, 1))
		})
		c := wiretest.ClientOver(t, s.URL+"/api/v1")
		if path == "/cards/info" {
			for _, id := range []string{"a", "b"} {
				card, err := c.GetCard(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, id, card.ID)
			}
		} else {
			ids, err := walk(t, c, filter{}, 0)
			require.NoError(t, err)
			assert.Equal(t, "a b", ids)
		}
		assert.EqualValues(t, 2, connections.Load(), late)
		assert.Equal(t, 3, asked, late)
	}
}

func zipped(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, s)
	require.NoError(t, errors.Join(err, w.Close()))
	return b.String()
}

// What is judged is what was compressed, whoever asked for that.
func TestAResponseThatIsCompressed(t *testing.T) {
	t.Parallel()
	success, page := wiretest.Success(wiretest.TransferData), "<html>no such page</html>"
	for name, tc := range map[string]struct {
		status             int
		coding, sent, body string
		want               string
	}{
		"executed":            {200, "gzip", zipped(t, success), success, "Executed"},
		"cut off":             {200, "gzip", zipped(t, success)[:40], "", "Unknown Unreadable, HTTP 200"},
		"another coding":      {200, "br", zipped(t, success), "", "Unknown Unreadable, HTTP 200"},
		"bare":                {404, "gzip", zipped(t, page), page, "Refused NotFound Unreadable, HTTP 404"},
		"bare, but the other": {404, "br", page, page, "Unknown NotFound Unreadable, HTTP 404"},
		"with the reference":  {404, "gzip", zipped(t, page+"M-1"), page + "M-1", "Unknown NotFound Unreadable, HTTP 404"},
	} {
		var got cardwire.Response
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			assert.NotContains(t, r.Header, "Accept-Encoding")
			response := wiretest.Response(r, tc.status, tc.sent)
			response.Header.Set("Content-Encoding", tc.coding)
			return response, nil
		}), cardwire.WithJournal(cardwire.NewMemoryJournal()))
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithResponse(&got))
		if tc.want == "Executed" {
			require.NoError(t, err, name)
		} else {
			assert.Equal(t, tc.want, outcomeOf(t, err), name)
		}
		if tc.body != "" {
			assert.Equal(t, tc.body, string(got.RevealBody()), name)
		}
		assert.Equal(t, tc.coding == "gzip" && tc.body != "", got.Header["Content-Encoding"] == nil, name)
	}
	_, err := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		assert.NotContains(t, r.Header, "Accept-Encoding", "a ciphertext is as short as it gets")
		return nil, wiretest.ErrBroken
	})).GetCardSecrets(t.Context(), "card-1")
	require.ErrorIs(t, err, wiretest.ErrBroken)
}

// A code counts as the status of that number, wherever it is in the envelope.
func TestRetryCodes(t *testing.T) {
	t.Parallel()
	busy := func(response string) wiretest.Exchange {
		return wiretest.Exchange{Want: "GET /shop/api/v1/bins/maintenance", Response: response}
	}
	limited, down := busy(`{"code":429,"msg":"slow","data":null}`), busy(`{"data":{"code":200},"msg":"later","code":503}`)
	good := busy(wiretest.Success(`[]`))
	quick := cardwire.WithRetry(wiretest.QuickRetry)
	none := cardwire.WithProfile(func(p *cardwire.Profile) { p.RetryCodes = nil })
	for name, tc := range map[string]struct {
		exchanges []wiretest.Exchange
		opts      []cardwire.Option
		call      []cardwire.CallOption
		want      error
	}{
		"twice": {[]wiretest.Exchange{limited, down, good}, []cardwire.Option{quick}, nil, nil},
		"all":   {[]wiretest.Exchange{down, down, limited}, []cardwire.Option{quick}, nil, cardwire.ErrRateLimited},
		"without a retry": {
			[]wiretest.Exchange{limited}, nil, []cardwire.CallOption{cardwire.WithoutRetry()}, cardwire.ErrRateLimited,
		},
		"no such codes": {[]wiretest.Exchange{limited}, []cardwire.Option{none}, nil, cardwire.ErrRateLimited},
		"another code":  {[]wiretest.Exchange{busy(`{"code":422,"msg":"no","data":null}`)}, nil, nil, cardwire.ErrRefused},
	} {
		_, err := wiretest.Converse(t, tc.exchanges, tc.opts...).ListBINsUnderMaintenance(t.Context(), tc.call...)
		require.ErrorIs(t, err, tc.want, name)
	}
	write := wiretest.Exchange{Want: wiretest.Anything, Response: `{"code":503,"msg":"later","data":null}`}
	_, err := wiretest.Converse(t, []wiretest.Exchange{write}, quick, cardwire.WithJournal(cardwire.NewMemoryJournal())).
		CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
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
	require.EqualError(t, err, "cardwire: ListBINs: failed: certificate not trusted: unknown authority: "+
		"check the certificate and the client's TLS configuration, then call again")

	const (
		combined = "WithTLSConfig cannot be combined with WithTransport or WithHTTPClient"
		blind    = "WithTLSConfig: InsecureSkipVerify accepts any certificate: " +
			"add the service's CA to RootCAs, or set VerifyConnection"
	)
	for _, tc := range []struct {
		config *tls.Config
		other  cardwire.Option
		want   string
	}{
		{nil, cardwire.WithAnyBasePath(), "WithTLSConfig: the configuration is nil"},
		{&tls.Config{InsecureSkipVerify: true, RootCAs: roots}, cardwire.WithAnyBasePath(), blind},
		{own, cardwire.WithTransport(&http.Transport{}), combined},
		{own, cardwire.WithHTTPClient(s.Client()), combined},
	} {
		_, err := cardwire.New(base, wiretest.Key, cardwire.WithTLSConfig(tc.config), tc.other)
		require.EqualError(t, err, "cardwire: invalid setup: "+tc.want)
	}
}

// A caller's HTTP client has its own ways to trace.
func TestTraceParent(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var got []string
	s, _ := numbered(t, func(_ int32, r *http.Request) string {
		got = append(got, strings.Join(r.Header["Traceparent"], "|"))
		return `{"code":503,"msg":"later","data":null}`
	})
	for name, tc := range map[string]struct {
		says string
		opts []cardwire.Option
		want string
	}{
		"own connections":      {trace, nil, trace},
		"none":                 {"", nil, ""},
		"not of visible ASCII": {trace + "\r\nX-A: b", nil, ""},
		"an HTTP client":       {trace, []cardwire.Option{cardwire.WithHTTPClient(s.Client())}, ""},
	} {
		got = nil
		c := wiretest.ClientOver(t, s.URL+"/api/v1", append(tc.opts, cardwire.WithObserver(cardwire.Observer{
			CallStart: func(ctx context.Context, _ cardwire.CallInfo) context.Context {
				return context.WithValue(ctx, wiretest.ContextKey{}, tc.says)
			},
			TraceParent: func(ctx context.Context) string { return ctx.Value(wiretest.ContextKey{}).(string) },
		}))...)
		_, err := c.ListBINs(t.Context())
		require.Error(t, err)
		assert.Equal(t, []string{tc.want, tc.want, tc.want}, got, name)
	}
}
