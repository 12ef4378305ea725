package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// secure starts a TLS server that prefers HTTP/2.
func secure(t *testing.T, handle http.HandlerFunc) (*httptest.Server, *tls.Config) {
	t.Helper()
	srv := httptest.NewUnstartedServer(handle)
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = quietLog
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return srv, &tls.Config{RootCAs: roots}
}

func TestHTTP1OnlyEvenWhereTheServerPrefersHTTP2(t *testing.T) {
	// net/http sends a request again over HTTP/2, without end, when the server
	// resets the stream with PROTOCOL_ERROR after executing it.
	srv, config := secure(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Proto, " ", r.TLS.NegotiatedProtocol == "h2")
	})
	forced := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: config.Clone(), Protocols: new(http.Protocols)}
	forced.TLSClientConfig.NextProtos = []string{"h2"}
	forced.Protocols.SetHTTP2(true)
	for name, transport := range map[string]*http.Transport{
		"plain": {TLSClientConfig: config}, "forced": forced, "theirs": srv.Client().Transport.(*http.Transport),
	} {
		e := own(t, Config{Transport: transport, Policy: policy})
		for _, class := range classes {
			r := e.Do(t.Context(), post(t, srv.URL, class))
			require.NoError(t, r.Err, name)
			assert.Equal(t, "HTTP/1.1 false", string(r.Body), name)
		}
	}
	assert.Equal(t, []string{"h2"}, forced.TLSClientConfig.NextProtos, "the caller's transport stays as it is")
	assert.True(t, forced.Protocols.HTTP2())
}

func TestSettingsOfTheEngines(t *testing.T) {
	weak := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS10}, MaxResponseHeaderBytes: 1 << 20}
	strong := &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS13},
		MaxResponseHeaderBytes: 1 << 10,
	}
	for name, base := range map[string]*http.Transport{"ours": nil, "zero": {}, "weak": weak, "strong": strong} {
		kept, proxied, fresh := newTransports(base, nil)
		for _, tr := range []*http.Transport{kept, proxied, fresh} {
			assert.True(t, tr.Protocols.HTTP1(), name)
			assert.False(t, tr.Protocols.HTTP2() || tr.Protocols.UnencryptedHTTP2() || tr.ForceAttemptHTTP2, name)
			assert.NotNil(t, tr.TLSNextProto, name)
			assert.Empty(t, tr.TLSNextProto, name)
			assert.Equal(t, []string{"http/1.1"}, tr.TLSClientConfig.NextProtos, name)
			assert.GreaterOrEqual(t, tr.TLSClientConfig.MinVersion, uint16(tls.VersionTLS12), name)
			assert.True(t, tr.DisableCompression, name)
			assert.NotNil(t, tr.DialContext, name)
			assert.Positive(t, tr.TLSHandshakeTimeout, name)
			assert.Positive(t, tr.MaxResponseHeaderBytes, name)
			assert.LessOrEqual(t, tr.MaxResponseHeaderBytes, int64(64<<10), name)
		}
		assert.False(t, kept.DisableKeepAlives || proxied.DisableKeepAlives, name)
		assert.True(t, fresh.DisableKeepAlives, name)
		cache := kept.TLSClientConfig.ClientSessionCache
		assert.Equal(t, base == nil, cache != nil, name)
		assert.Equal(t, cache, fresh.TLSClientConfig.ClientSessionCache, name)
	}
	assert.EqualValues(t, tls.VersionTLS10, weak.TLSClientConfig.MinVersion, "the caller's transport stays as it is")

	_, ours, _ := newTransports(nil, nil)
	assert.Equal(t, 100, ours.MaxIdleConnsPerHost)
	assert.Equal(t, 100, ours.MaxIdleConns)
	assert.Equal(t, reflect.ValueOf(http.ProxyFromEnvironment).Pointer(), reflect.ValueOf(ours.Proxy).Pointer())
	config := &tls.Config{ServerName: "example.com"}
	_, ours, _ = newTransports(nil, config)
	assert.NotNil(t, ours.Proxy, "the environment's, though the configuration is the caller's")
	assert.Equal(t, "example.com", ours.TLSClientConfig.ServerName)
	assert.Nil(t, ours.TLSClientConfig.ClientSessionCache)
	assert.Zero(t, config.MinVersion)
	_, theirs, _ := newTransports(strong, nil)
	assert.Nil(t, theirs.Proxy)
	assert.EqualValues(t, tls.VersionTLS13, theirs.TLSClientConfig.MinVersion)
	assert.Equal(t, int64(1<<10), theirs.MaxResponseHeaderBytes)
}

func TestRequestOnTheWire(t *testing.T) {
	const (
		head    = "POST /api/v1/cards/c-1?a=b HTTP/1.1\r\nHost: service.test\r\nUser-Agent: cardwire\r\n"
		closing = "Connection: close\r\n\r\n"
	)
	for name, tc := range map[string]struct {
		class       Class
		doer, empty bool
		want        string
	}{
		"read":                  {Read, false, false, "Content-Length: 3\r\nX-Api-Key: k\r\n" + closing + "a=1"},
		"write":                 {Write, false, false, "Content-Length: 3\r\nX-Api-Key: k\r\n" + closing + "a=1"},
		"empty write":           {Write, false, true, "Content-Length: 0\r\nX-Api-Key: k\r\n" + closing},
		"empty write by a doer": {Write, true, true, "Content-Length: 0\r\nX-Api-Key: k\r\n" + closing},
	} {
		var got strings.Builder
		transport := &http.Transport{DisableCompression: tc.doer, DialContext: pipeTo(func(conn net.Conn) {
			defer loopback.HangUp(conn)
			if loopback.ReadRequest(bufio.NewReader(io.TeeReader(conn, &got))) {
				say(conn, ok)
			}
		})}
		cfg := Config{Transport: transport}
		if tc.doer {
			transport.DisableKeepAlives = true
			cfg = Config{Doer: &http.Client{Transport: transport}}
		}
		in := post(t, service+"?a=b", tc.class)
		in.Header = fixed{"X-Api-Key": {"k"}, "User-Agent": {"cardwire"}}
		if tc.empty {
			in.Body, in.BodySize = nil, 0
		}
		require.NoError(t, own(t, cfg).Do(t.Context(), in).Err)
		assert.Equal(t, head+tc.want, got.String(), name)
	}
}

func TestConnectionsOfEachCall(t *testing.T) {
	var executed atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) { converse(conn, ok, &executed) })
	cards := get(t, at)
	cards.CardData = true
	for name, tc := range map[string]struct {
		in    *Request
		proxy *url.URL
		fresh bool // as the caller's transport has it
		want  int64
	}{
		"read":                 {get(t, at), nil, false, 1},
		"read, but never kept": {get(t, at), nil, true, 5},
		"read with a body":     {post(t, at, Read), nil, false, 5},
		"fresh read":           {secrets(t, at), nil, false, 5},
		"write":                {post(t, at, Write), nil, false, 5},
		"cards":                {cards, nil, false, 1},
		"read by proxy":        {get(t, at), parse(t, at), false, 1},
		"cards by proxy":       {cards, parse(t, at), false, 5}, // where nothing can be put above TLS
	} {
		var dialed atomic.Int64
		transport := counted(&dialed)
		transport.DisableKeepAlives = tc.fresh
		transport.Proxy = func(r *http.Request) (*url.URL, error) {
			assert.Equal(t, at, r.URL.String(), name)
			return tc.proxy, nil
		}
		e := own(t, Config{Transport: transport})
		for range 5 {
			require.NoError(t, e.Do(t.Context(), tc.in).Err, name)
		}
		assert.Equal(t, tc.want, dialed.Load(), name)
	}
	none := func(*http.Request) (*url.URL, error) { return nil, errBroken }
	for _, in := range []*Request{get(t, at), cards} {
		require.ErrorIs(t, own(t, Config{Transport: &http.Transport{Proxy: none}}).Do(t.Context(), in).Err, errBroken)
	}
}

// A NAT that forgot one idle connection forgot the others too: each attempt would take the next.
func TestRetryDoesNotTakeAnotherDeadConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		first   *Request
		hurry   error // why the first call's context ends after a second; nil: it does not
		revived bool  // then the idle connections are not dead
		redial  int64 // connections that two calls make
	}{
		"silent":                 {get(t, service), nil, false, 2},
		"silent, and in a hurry": {get(t, service), context.DeadlineExceeded, false, 1},
		"canceled":               {get(t, service), context.Canceled, true, 0},
		"a write":                {post(t, service, Write), context.DeadlineExceeded, true, 1}, // its own
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dialed atomic.Int64
				var dead atomic.Bool
				e := own(t, Config{Policy: policy, Transport: &http.Transport{DialContext: pipeTo(func(conn net.Conn) {
					defer loopback.HangUp(conn)
					old := dialed.Add(1) <= 4 || tc.first.Class == Write
					for in := bufio.NewReader(conn); loopback.ReadRequest(in); say(conn, ok) {
						if old && dead.Load() {
							sink(conn)
						}
						pause(time.Millisecond) // so that calls at once need a connection each
					}
				})}})
				var group sync.WaitGroup
				for range 4 {
					group.Go(func() { assert.NoError(t, e.Do(t.Context(), get(t, service)).Err) })
				}
				group.Wait()
				dead.Store(true)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch tc.hurry {
				case context.Canceled:
					time.AfterFunc(time.Second, cancel)
				case context.DeadlineExceeded:
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				require.ErrorIs(t, e.Do(ctx, tc.first).Err, tc.hurry)
				dead.Store(!tc.revived)
				r := e.Do(t.Context(), get(t, service))
				require.NoError(t, r.Err)
				assert.Equal(t, 1, r.Tries)
				assert.Equal(t, tc.redial, dialed.Load()-4)
			})
		})
	}
}

// A session that is resumed skips VerifyPeerCertificate: a pin that was withdrawn would not be noticed.
func TestRefusalByAHookOfTLS(t *testing.T) {
	srv, trusted := secure(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") })
	var why error
	peer, whole := trusted.Clone(), trusted.Clone()
	peer.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return why }
	whole.VerifyConnection = func(tls.ConnectionState) error { return why }
	for _, config := range []*tls.Config{peer, whole} {
		for _, cfg := range []Config{{TLS: config}, {Transport: &http.Transport{TLSClientConfig: config}}} {
			cfg.Policy = quick
			e := own(t, cfg)
			for _, class := range classes {
				why = nil
				require.NoError(t, e.Do(t.Context(), post(t, srv.URL, class)).Err)
				why = errBroken
				r := e.Do(t.Context(), post(t, srv.URL, class))
				require.ErrorContains(t, r.Err, " not trusted: not valid")
				require.ErrorIs(t, r.Err, errBroken)
				assert.True(t, is[*tls.CertificateVerificationError](r.Err))
				assert.Equal(t, 1, r.Tries)
				assert.Equal(t, class == Write, r.NotSent)
			}
		}
	}
}

// A firewall that does not know what a new release of Go offers resets the connection.
func TestAHandshakeThatThePeerEnds(t *testing.T) {
	for _, end := range []func(net.Conn){loopback.Reset, loopback.HangUp} {
		at := strings.TrimPrefix(loopback.Listen(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 5))
			end(conn)
		}), "http://")
		for _, in := range []*Request{get(t, "https://"+at), post(t, "https://"+at, Write)} {
			r := own(t, Config{Policy: quick}).Do(t.Context(), in)
			require.EqualError(t, r.Err, "TLS handshake failed: connection reset by "+at+
				": a firewall may not accept what this Go release offers: try GODEBUG=tlsmlkem=0")
			assert.Equal(t, in.Class == Write, r.NotSent)
			assert.Equal(t, 3, r.Tries)
		}
	}
}

func TestNoConnectionIsProofThatNothingWasSent(t *testing.T) {
	srv, trusted := secure(t, func(http.ResponseWriter, *http.Request) { panic("nothing may arrive here") })
	proxy := loopback.Listen(t, func(conn net.Conn) {
		var n atomic.Int64
		converse(conn, "HTTP/1.1 403 4111111111111111\r\nContent-Length: 0\r\n\r\n", &n)
	})
	plain := strings.TrimPrefix(loopback.Listen(t, func(conn net.Conn) {
		say(conn, "HTTP/1.1 400 Bad\r\n\r\n")
		loopback.HangUp(conn)
	}), "http://")
	closed := loopback.ClosedPort(t)
	port := strings.TrimPrefix(closed, "http://")
	old := trusted.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	old.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA} // which the server does not offer
	lookup := &net.DNSError{Err: "no such host", Name: canary, IsNotFound: true}
	through := func(at string) func(*http.Request) (*url.URL, error) { return http.ProxyURL(parse(t, at)) }

	for name, tc := range map[string]struct {
		transport *http.Transport
		at        string
		tries     int
		words     string
		dial      bool // it failed, not what follows it
	}{
		"closed port": {nil, closed + "/a/path?pan=4", 3, "connection refused by " + port, true},
		"no such host": {
			&http.Transport{DialContext: refuse(lookup)}, service, 3, "name lookup failed: service.test:80", true,
		},
		"untrusted": {
			nil, srv.URL, 1, "certificate of " + strings.TrimPrefix(srv.URL, "https://") +
				" not trusted: unknown authority: add its CA to the RootCAs of the TLS configuration", false,
		},
		"no common cipher": {&http.Transport{TLSClientConfig: old}, srv.URL, 1, "TLS handshake failed", false},
		"https to an http port": {
			nil, "https://" + plain + "/a", 1,
			"TLS handshake failed: " + plain + " does not speak TLS: check the scheme and the port", false,
		},
		"proxy refuses": {
			&http.Transport{Proxy: through(proxy), TLSClientConfig: trusted}, srv.URL, 3,
			fmt.Sprintf("the proxy %s refused the connection to %s: HTTP 403",
				strings.TrimPrefix(proxy, "http://"), strings.TrimPrefix(srv.URL, "https://")), false,
		},
		"proxy is down": {
			&http.Transport{Proxy: through(closed)}, srv.URL, 3, "connection refused by the proxy " + port, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var k tracked
			in := post(t, tc.at, Write)
			in.Body = k.open
			r := own(t, Config{Transport: tc.transport, Policy: quick}).Do(t.Context(), in)
			require.EqualError(t, r.Err, tc.words)
			assert.True(t, r.NotSent)
			assert.Equal(t, tc.tries, r.Tries)
			require.Len(t, r.Attempts, r.Tries)
			assert.Equal(t, "connect", r.Attempts[0].Phase)
			assert.Equal(t, k.opened.Load(), k.closed.Load())

			for _, in := range []*Request{get(t, tc.at), secrets(t, tc.at)} {
				r := own(t, Config{Transport: tc.transport, Policy: quick}).Do(t.Context(), in)
				require.EqualError(t, r.Err, tc.words)
				assert.Equal(t, tc.tries, r.Tries)
				assert.Equal(t, tc.dial, r.NotSent, "reads have no trace: the error of a dial tells")
			}
		})
	}
}

func TestDialThatHangsUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := func(context.Context, string, string) (net.Conn, error) {
			pause(dialTimeout) // net/http detaches a dial from its request
			return nil, errBroken
		}
		e := New(Config{Policy: policy, Transport: &http.Transport{DialContext: hanging}})
		in := post(t, service, Write)
		in.Deadline = time.Now().Add(3 * time.Second)
		r := e.Do(t.Context(), in)
		require.EqualError(t, r.Err, "deadline exceeded: WithTimeout's")
		assert.True(t, r.NotSent)
		assert.Equal(t, 1, r.Tries)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r = e.Do(ctx, post(t, service, Write))
		require.ErrorIs(t, r.Err, context.Canceled)
		assert.True(t, r.NotSent)
		pause(dialTimeout)
	})
}

func TestNotSentSpeaksOfAllAttempts(t *testing.T) {
	for _, tc := range []struct {
		class     Class
		connected int // the attempt that gets a connection, and no response
		phases    []string
	}{
		{Write, 2, []string{"connect", "sent"}}, // once sent, it is not sent on a third connection
		{Read, 1, []string{"sent", "connect", "connect"}},
	} {
		dials := 0
		e := own(t, Config{Policy: quick, Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials++; dials != tc.connected {
					return refuse(syscall.ECONNREFUSED)(ctx, network, addr)
				}
				return pipeTo(once(func(net.Conn) {}))(ctx, network, addr)
			},
		}})
		r := e.Do(t.Context(), post(t, service, tc.class))
		assert.False(t, r.NotSent)
		assert.Equal(t, tc.phases, phases(r))
	}
}

func TestRequestBrokenOffInItsHead(t *testing.T) {
	var dialed atomic.Int64
	broken := pipeTo(func(conn net.Conn) {
		defer loopback.HangUp(conn)
		dialed.Add(1)
		_, err := io.ReadFull(conn, make([]byte, 100))
		assert.NoError(t, err)
	})
	in := post(t, service, Write)
	in.Header = fixed{"X-Long": {strings.Repeat("a", 64<<10)}} // net/http writes its head in parts
	r := own(t, Config{Policy: quick, Transport: &http.Transport{DialContext: broken}}).Do(t.Context(), in)
	require.Error(t, r.Err)
	assert.False(t, r.NotSent, "100 bytes of it have arrived")
	assert.EqualValues(t, 1, dialed.Load())
}

func TestBodyThatStallsIsBounded(t *testing.T) {
	// The default drains the body of a 503 before it retries, for as long as that takes.
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Policy: policy, Transport: &http.Transport{DialContext: pipeTo(once(func(conn net.Conn) {
			say(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\nabc")
			sink(conn)
		}))}})
		r := e.Do(t.Context(), get(t, service))
		require.EqualError(t, r.Err, "deadline exceeded: RetryPolicy.Attempt's")
		assert.Equal(t, 3, r.Tries)
		assert.Equal(t, 503, r.Status)
		for _, a := range r.Attempts {
			assert.Equal(t, policy.Attempt, a.Duration)
		}
	})
}

func TestProxyHookOfTheCallerComesFirst(t *testing.T) {
	proxy, connect := parse(t, "http://u:p@proxy.test:3128"), &http.Request{Host: "service.test:443"}
	for status, want := range map[int]error{
		200: nil,
		403: &proxyError{"proxy.test:3128", "service.test:443", 403},
		407: &proxyError{"proxy.test:3128", "service.test:443", 407},
	} {
		tr, resp := &http.Transport{}, &http.Response{StatusCode: status}
		checkProxy(tr)
		assert.Equal(t, want, tr.OnProxyConnectResponse(t.Context(), proxy, connect, resp))
		tr.OnProxyConnectResponse = func(context.Context, *url.URL, *http.Request, *http.Response) error {
			return errBroken
		}
		checkProxy(tr)
		assert.Equal(t, errBroken, tr.OnProxyConnectResponse(t.Context(), proxy, connect, resp))
	}
}
