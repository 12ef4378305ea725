package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
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

var classes = []Class{Read, Secret, Write}

// secure starts a TLS server that prefers HTTP/2, and tells of each request.
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
	control, err := bare(t, srv.Client(), http.MethodGet, srv.URL)
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", control, "the server does offer it")

	forced := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: config.Clone(), Protocols: new(http.Protocols)}
	forced.TLSClientConfig.NextProtos = []string{"h2"}
	forced.Protocols.SetHTTP2(true)
	standard := http.DefaultTransport.(*http.Transport).Clone() //nolint:forbidigo // a copy, as callers make it
	standard.TLSClientConfig = config.Clone()
	for name, transport := range map[string]*http.Transport{
		"plain": {TLSClientConfig: config}, "forced": forced, "standard": standard, "the server's own": srv.Client().Transport.(*http.Transport),
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
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS13, ClientSessionCache: tls.NewLRUClientSessionCache(1)},
		MaxResponseHeaderBytes: 1 << 10, MaxIdleConnsPerHost: 7, MaxIdleConns: 9,
		TLSHandshakeTimeout: time.Second,
	}
	for name, base := range map[string]*http.Transport{
		"ours": nil, "zero": {}, "weak": weak, "strong": strong,
		"standard": http.DefaultTransport.(*http.Transport), //nolint:forbidigo // only cloned
	} {
		pooled, fresh := newTransports(base)
		for _, tr := range []*http.Transport{pooled, fresh} {
			assert.NotSame(t, base, tr, name)
			assert.True(t, tr.Protocols.HTTP1(), name)
			assert.False(t, tr.Protocols.HTTP2() || tr.Protocols.UnencryptedHTTP2() || tr.ForceAttemptHTTP2, name)
			assert.NotNil(t, tr.TLSNextProto, name)
			assert.Empty(t, tr.TLSNextProto, name)
			assert.Equal(t, []string{"http/1.1"}, tr.TLSClientConfig.NextProtos, name)
			assert.GreaterOrEqual(t, tr.TLSClientConfig.MinVersion, uint16(tls.VersionTLS12), name)
			assert.NotNil(t, tr.TLSClientConfig.ClientSessionCache, name)
			assert.True(t, tr.DisableCompression, name)
			assert.NotNil(t, tr.DialContext, name)
			assert.Positive(t, tr.TLSHandshakeTimeout, name)
			assert.Positive(t, tr.MaxResponseHeaderBytes, name)
			assert.LessOrEqual(t, tr.MaxResponseHeaderBytes, int64(64<<10), name)
		}
		assert.False(t, pooled.DisableKeepAlives, name)
		assert.True(t, fresh.DisableKeepAlives, name)
		assert.Same(t, pooled.TLSClientConfig.ClientSessionCache, fresh.TLSClientConfig.ClientSessionCache, name)
	}
	assert.EqualValues(t, tls.VersionTLS10, weak.TLSClientConfig.MinVersion, "the caller's transport stays as it is")

	ours, _ := newTransports(nil)
	assert.Equal(t, 100, ours.MaxIdleConnsPerHost)
	assert.Equal(t, 100, ours.MaxIdleConns)
	assert.Equal(t, 90*time.Second, ours.IdleConnTimeout)
	assert.Equal(t, 10*time.Second, ours.TLSHandshakeTimeout)
	assert.Equal(t, reflect.ValueOf(http.ProxyFromEnvironment).Pointer(), reflect.ValueOf(ours.Proxy).Pointer())
	theirs, _ := newTransports(strong)
	assert.Equal(t, 7, theirs.MaxIdleConnsPerHost)
	assert.Equal(t, time.Second, theirs.TLSHandshakeTimeout)
	assert.Equal(t, 9, theirs.MaxIdleConns)
	assert.Nil(t, theirs.Proxy)
	assert.EqualValues(t, tls.VersionTLS13, theirs.TLSClientConfig.MinVersion)
	assert.Equal(t, int64(1<<10), theirs.MaxResponseHeaderBytes)
}

func TestRequestOnTheWire(t *testing.T) {
	for class, want := range map[Class]string{
		Read: "POST /api/v1/cards/c-1?a=b HTTP/1.1\r\nHost: service.test\r\nUser-Agent: cardwire\r\n" +
			"Content-Length: 3\r\nX-Api-Key: k\r\n\r\na=1",
		Write: "POST /api/v1/cards/c-1?a=b HTTP/1.1\r\nHost: service.test\r\nUser-Agent: cardwire\r\n" +
			"Content-Length: 3\r\nX-Api-Key: k\r\nConnection: close\r\n\r\na=1",
	} {
		var got strings.Builder
		e := own(t, Config{Transport: &http.Transport{DialContext: pipeTo(func(conn net.Conn) {
			defer loopback.HangUp(conn)
			if loopback.ReadRequest(bufio.NewReader(io.TeeReader(conn, &got))) {
				say(conn, ok)
			}
		})}})
		in := post(t, service+"?a=b", class)
		in.Header = fixed(http.Header{"X-Api-Key": {"k"}, "User-Agent": {"cardwire"}})
		require.NoError(t, e.Do(t.Context(), in).Err)
		assert.Equal(t, want, got.String())
	}
}

// counted counts the connections that a transport dials.
func counted(n *atomic.Int64) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
}

func TestConnectionsOfEachClass(t *testing.T) {
	var executed atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) { exchange(conn, ok, &executed) })
	for _, tc := range []struct {
		class Class
		fresh bool // as the caller's transport has it
		want  int64
	}{{Read, false, 1}, {Read, true, 5}, {Secret, false, 5}, {Write, false, 5}} {
		var dialled atomic.Int64
		transport := counted(&dialled)
		transport.DisableKeepAlives = tc.fresh
		e := own(t, Config{Transport: transport})
		for range 5 {
			require.NoError(t, e.Do(t.Context(), post(t, at, tc.class)).Err)
		}
		assert.Equal(t, tc.want, dialled.Load(), "class %d", tc.class)
	}
}

func TestFailedCallClosesNobodysIdleConnections(t *testing.T) {
	// go-retryablehttp closes the whole idle pool after each failure.
	const burst = 4 // requests at once, each on a connection of its own
	var dialled, requests atomic.Int64
	var busy atomic.Bool
	var arrived sync.WaitGroup
	arrived.Add(burst)
	at := loopback.Listen(t, func(conn net.Conn) {
		defer loopback.HangUp(conn)
		for in := bufio.NewReader(conn); loopback.ReadRequest(in); {
			if busy.Load() {
				say(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
				continue
			}
			if requests.Add(1) <= burst {
				arrived.Done()
				arrived.Wait()
			}
			say(conn, ok)
		}
	})
	e := own(t, Config{Transport: counted(&dialled), Policy: quick})
	var group sync.WaitGroup
	for range burst {
		group.Go(func() { e.Do(t.Context(), get(t, at)) })
	}
	group.Wait()
	busy.Store(true)
	assert.Equal(t, 503, e.Do(t.Context(), get(t, at)).Status)
	ctx, cancel := context.WithCancel(t.Context())
	slow := get(t, at)
	slow.OnAttempt = func(Attempt) { cancel() } // the context ends during the wait
	e.policy.MinDelay, e.policy.MaxDelay = time.Hour, time.Hour
	e.Do(ctx, slow)
	busy.Store(false)
	e.Do(t.Context(), get(t, at))
	assert.EqualValues(t, burst, dialled.Load(), "no connection had to be made anew")
}

func TestBrokenCallClosesNobodysIdleConnections(t *testing.T) {
	var d dropping
	var dialled atomic.Int64
	at := loopback.Listen(t, d.serve)
	e := own(t, Config{Transport: counted(&dialled)})
	read := func() {
		t.Helper()
		d.reads.Add(1)
		require.NoError(t, e.Do(t.Context(), get(t, at)).Err)
	}
	read()
	require.Error(t, e.Do(t.Context(), post(t, at, Write)).Err)
	read()
	assert.EqualValues(t, 2, dialled.Load(), "one for both reads, one for the write")
}

func TestCloseIdleConnections(t *testing.T) {
	var dialled, executed atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) { exchange(conn, ok, &executed) })
	transport := counted(&dialled)
	e := own(t, Config{Transport: transport})
	e.Do(t.Context(), get(t, at))
	e.CloseIdleConnections()
	e.Do(t.Context(), get(t, at))
	assert.EqualValues(t, 2, dialled.Load())

	hc := &http.Client{Transport: transport}
	theirs := New(Config{Doer: hc})
	theirs.Do(t.Context(), get(t, at))
	theirs.CloseIdleConnections()
	theirs.Do(t.Context(), get(t, at))
	assert.EqualValues(t, 3, dialled.Load(), "a caller's connections are the caller's")
	hc.CloseIdleConnections()
}

// dropping responds to GETs, and resets the connection of a POST that it executed.
type dropping struct {
	reads    sync.WaitGroup // each read of a burst waits for the others, and so has a connection of its own
	executed atomic.Int64
}

func (d *dropping) serve(conn net.Conn) {
	defer loopback.Reset(conn)
	for in := bufio.NewReader(conn); ; say(conn, ok) {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.Method != http.MethodGet {
			d.executed.Add(1)
			return
		}
		d.reads.Done()
		d.reads.Wait()
	}
}

// bare sends a request as a program without this package might, and says by
// which protocol.
func bare(t *testing.T, hc *http.Client, method, at string) (proto string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader("a=1"))
	require.NoError(t, err)
	r.Header.Set("Idempotency-Key", "k")
	resp, err := hc.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.Proto, err
}

func TestWriteIsExecutedOnceWhateverIsIdle(t *testing.T) {
	const idle = 10
	warm := func(do func()) {
		var group sync.WaitGroup
		for range idle {
			group.Go(do)
		}
		group.Wait()
	}
	t.Run("net/http alone", func(t *testing.T) {
		// The control: a body that can be got again, a key that says it may be.
		var d dropping
		d.reads.Add(idle)
		at := loopback.Listen(t, d.serve)
		hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: idle}}
		defer hc.CloseIdleConnections()
		warm(func() {
			_, err := bare(t, hc, http.MethodGet, at)
			assert.NoError(t, err)
		})
		_, err := bare(t, hc, http.MethodPost, at)
		require.Error(t, err)
		require.EqualValues(t, idle+1, d.executed.Load(), "once for each idle connection, and once more")
	})
	for _, class := range []Class{Secret, Write} {
		var d dropping
		d.reads.Add(idle)
		e := own(t, Config{Policy: quick})
		at := loopback.Listen(t, d.serve)
		warm(func() { assert.NoError(t, e.Do(t.Context(), get(t, at)).Err) })
		in := post(t, at, class)
		in.Header = fixed(http.Header{"Idempotency-Key": {"k"}})
		r := e.Do(t.Context(), in)
		require.Error(t, r.Err)
		assert.EqualValues(t, 1, d.executed.Load())
		assert.False(t, r.NotSent)
		assert.Equal(t, 1, r.Tries)
	}
}

func TestNoConnectionIsProofThatNothingWasSent(t *testing.T) {
	srv, trusted := secure(t, func(http.ResponseWriter, *http.Request) { panic("nothing may arrive here") })
	proxy := loopback.Listen(t, func(conn net.Conn) {
		var n atomic.Int64
		exchange(conn, "HTTP/1.1 403 4111111111111111\r\nContent-Length: 0\r\n\r\n", &n)
	})
	plain := loopback.Listen(t, func(conn net.Conn) {
		say(conn, "HTTP/1.1 400 Bad\r\n\r\n")
		loopback.HangUp(conn)
	})
	closed := loopback.ClosedPort(t)
	modern := trusted.Clone()
	modern.MinVersion, modern.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	modern.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA} // which the server does not offer
	elsewhere := trusted.Clone()
	elsewhere.ServerName = "elsewhere.test"
	lookup := &net.DNSError{Err: "no such host", Name: "service.test", IsNotFound: true}
	through := func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
	nowhere := func(*http.Request) (*url.URL, error) { return url.Parse(closed) }

	for name, tc := range map[string]struct {
		transport *http.Transport
		at        string
		tries     int // of a write
		words     string
		dial      bool // it failed, not what follows it
	}{
		"closed port":      {nil, closed, 3, "connection refused", true},
		"no such host":     {&http.Transport{DialContext: refuse(lookup)}, service, 3, "name lookup failed", true},
		"dial timeout":     {&http.Transport{DialContext: refuse(os.ErrDeadlineExceeded)}, service, 3, "timeout", true},
		"untrusted":        {nil, srv.URL, 1, "certificate not trusted: unknown authority", false},
		"another host":     {&http.Transport{TLSClientConfig: elsewhere}, srv.URL, 1, "certificate not trusted: issued for another host", false},
		"expired":          {&http.Transport{TLSClientConfig: tomorrow(trusted)}, srv.URL, 1, "certificate not trusted: expired or not yet valid", false},
		"no common cipher": {&http.Transport{TLSClientConfig: modern}, srv.URL, 1, "TLS handshake failed", false},
		"not TLS":          {nil, strings.Replace(plain, "http:", "https:", 1), 1, "TLS handshake failed", false},
		"proxy refuses":    {&http.Transport{Proxy: through, TLSClientConfig: trusted}, srv.URL, 3, "the proxy refused the connection", false},
		"proxy is down":    {&http.Transport{Proxy: nowhere}, srv.URL, 3, "the proxy refused the connection", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, class := range []Class{Secret, Write} {
				var k tracked
				in := post(t, tc.at, class)
				in.Body = k.open
				r := own(t, Config{Transport: tc.transport, Policy: quick}).Do(t.Context(), in)
				require.EqualError(t, r.Err, tc.words)
				assert.True(t, r.NotSent)
				assert.Equal(t, map[Class]int{Secret: min(tc.tries, 2), Write: tc.tries}[class], r.Tries)
				require.Len(t, r.Attempts, r.Tries)
				assert.Equal(t, "connect", r.Attempts[0].Phase)
				assert.Equal(t, k.opened.Load(), k.closed.Load())
			}
			r := own(t, Config{Transport: tc.transport, Policy: quick}).Do(t.Context(), get(t, tc.at))
			require.EqualError(t, r.Err, tc.words)
			assert.Equal(t, tc.tries, r.Tries)
			assert.Equal(t, tc.dial, r.NotSent, "reads have no trace: the error of a dial tells")
		})
	}
}

func tomorrow(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.Time = func() time.Time { return time.Now().AddDate(200, 0, 0) }
	return c
}

func TestDialThatHangsUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Policy: policy, Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				pause(dialTimeout) // net/http detaches a dial from its request
				return nil, os.ErrDeadlineExceeded
			},
		}})
		in := post(t, service, Write)
		in.Deadline = time.Now().Add(3 * time.Second)
		r := e.Do(t.Context(), in)
		require.ErrorIs(t, r.Err, context.DeadlineExceeded)
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

func TestWriteSentAfterAllByTheLastAttempt(t *testing.T) {
	var executed atomic.Int64
	dials := 0
	e := own(t, Config{Policy: quick, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials++; dials < 3 {
				return refuse(syscall.ECONNREFUSED)(ctx, network, addr)
			}
			return pipeTo(func(conn net.Conn) {
				defer loopback.HangUp(conn)
				if loopback.ReadRequest(bufio.NewReader(conn)) {
					executed.Add(1)
				}
			})(ctx, network, addr)
		},
	}})
	r := e.Do(t.Context(), post(t, service, Write))
	require.Error(t, r.Err)
	assert.False(t, r.NotSent, "NotSent speaks of all attempts")
	assert.Equal(t, 3, r.Tries)
	assert.Equal(t, []string{"connect", "connect", "sent"}, phases(r))
	assert.EqualValues(t, 1, executed.Load())
}

func TestReadThatWasSentBeforeTheDialFailed(t *testing.T) {
	dials := 0
	e := own(t, Config{Policy: quick, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials++; dials > 1 {
				return refuse(syscall.ECONNREFUSED)(ctx, network, addr)
			}
			return pipeTo(func(conn net.Conn) {
				defer loopback.HangUp(conn)
				if loopback.ReadRequest(bufio.NewReader(conn)) {
					say(conn, "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
				}
			})(ctx, network, addr)
		},
	}})
	r := e.Do(t.Context(), get(t, service))
	require.ErrorIs(t, r.Err, syscall.ECONNREFUSED)
	assert.False(t, r.NotSent, "NotSent speaks of all attempts")
	assert.Equal(t, []string{"received", "connect", "connect"}, phases(r))
}

func phases(r *Response) (all []string) {
	for _, a := range r.Attempts {
		all = append(all, a.Phase)
	}
	return all
}

func TestConnectedIsNeverNotSent(t *testing.T) {
	for name, tc := range map[string]struct {
		response string // written after the whole request was read
		words    string
		status   int
		phase    string
	}{
		"closed":          {"", "connection closed before the response was complete", 0, "sent"},
		"garbage":         {canary + "\r\n\r\n", "not an HTTP response", 0, "sent"},
		"bad header":      {"HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n", "not an HTTP response", 0, "sent"},
		"half a head":     {"HTTP/1.1 200 OK\r\nX-A: " + canary, "connection closed before the response was complete", 0, "sent"},
		"truncated":       {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + canary, "connection closed before the response was complete", 200, "received"},
		"truncated chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n99\r\n" + canary, "connection closed before the response was complete", 200, "received"},
		"flood": {
			"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+canary+strings.Repeat("a", 1000)+"\r\n", 100) + "\r\n",
			"response headers too large", 0, "sent",
		},
		"lying length": {"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nhi", "connection closed before the response was complete", 200, "received"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, class := range classes {
				var executed atomic.Int64
				at := loopback.Listen(t, func(conn net.Conn) {
					defer loopback.HangUp(conn)
					if loopback.ReadRequest(bufio.NewReader(conn)) {
						executed.Add(1)
						say(conn, tc.response)
					}
				})
				r := own(t, Config{Policy: quick}).Do(t.Context(), post(t, at, class))
				require.EqualError(t, r.Err, tc.words)
				assert.NotContains(t, fmt.Sprintf("%v %+v %#v", r.Err, r.Err, r.Err), canary)
				assert.False(t, r.NotSent)
				assert.Equal(t, tc.status, r.Status)
				assert.Equal(t, tc.phase, r.Attempts[0].Phase)
				tries := 1
				if class == Read && name != "flood" {
					tries = 3
				}
				assert.EqualValues(t, tries, executed.Load())
			}
		})
	}
}

func TestResetAfterExecuting(t *testing.T) {
	for _, class := range []Class{Secret, Write} {
		var executed atomic.Int64
		at := loopback.Listen(t, func(conn net.Conn) {
			if loopback.ReadRequest(bufio.NewReader(conn)) {
				executed.Add(1)
			}
			loopback.Reset(conn)
		})
		r := own(t, Config{Policy: quick}).Do(t.Context(), post(t, at, class))
		require.EqualError(t, r.Err, "connection reset by the peer")
		require.ErrorIs(t, r.Err, syscall.ECONNRESET)
		assert.False(t, r.NotSent)
		assert.EqualValues(t, 1, executed.Load(), "by default go-retryablehttp makes it five")
	}
}

func TestRequestBrokenOffInItsHead(t *testing.T) {
	for _, class := range []Class{Secret, Write} {
		var dialled atomic.Int64
		e := own(t, Config{Policy: quick, Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled.Add(1)
			return pipeTo(func(conn net.Conn) {
				defer loopback.HangUp(conn)
				_, err := io.ReadFull(conn, make([]byte, 100))
				assert.NoError(t, err)
			})(ctx, network, addr)
		}}})
		in := post(t, service, class)
		in.Header = fixed(http.Header{"X-Long": {strings.Repeat("a", 64<<10)}}) // net/http writes its head in parts
		r := e.Do(t.Context(), in)
		require.Error(t, r.Err)
		assert.False(t, r.NotSent, "100 bytes of it have arrived")
		assert.EqualValues(t, 1, dialled.Load())
	}
}

func TestServiceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Policy: policy, Transport: &http.Transport{DialContext: pipeTo(sink)}})
		for class, want := range map[Class]time.Duration{Read: 20 * time.Second, Secret: 14 * time.Second, Write: 14 * time.Second} {
			in := post(t, service, class)
			in.Deadline = time.Now().Add(14 * time.Second)
			if class == Read {
				in.Deadline = time.Now().Add(20 * time.Second)
			}
			begun := time.Now()
			r := e.Do(t.Context(), in)
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			assert.Equal(t, want, time.Since(begun))
			assert.False(t, r.NotSent)
			assert.Equal(t, "sent", r.Attempts[0].Phase)
			assert.Equal(t, map[Class]int{Read: 2, Secret: 1, Write: 1}[class], r.Tries)
		}
	})
}

func TestBodyThatStallsIsBounded(t *testing.T) {
	// The default drains the body of a 503 before it retries, for as long as that takes.
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Policy: policy, Transport: &http.Transport{DialContext: pipeTo(func(conn net.Conn) {
			defer loopback.HangUp(conn)
			in := bufio.NewReader(conn)
			if loopback.ReadRequest(in) {
				say(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\nabc")
				sink(conn)
			}
		})}})
		r := e.Do(t.Context(), get(t, service))
		require.ErrorIs(t, r.Err, context.DeadlineExceeded)
		assert.Equal(t, 3, r.Tries)
		assert.Equal(t, 503, r.Status)
		for _, a := range r.Attempts {
			assert.Equal(t, policy.Attempt, a.Duration)
		}
	})
}

func TestCompressedBodyIsLeftAlone(t *testing.T) {
	for _, class := range classes {
		var got strings.Builder
		e := own(t, Config{Transport: &http.Transport{DialContext: pipeTo(func(conn net.Conn) {
			defer loopback.HangUp(conn)
			if loopback.ReadRequest(bufio.NewReader(io.TeeReader(conn, &got))) {
				say(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\x1f\x8bxyz")
			}
		})}})
		r := e.Do(t.Context(), post(t, service, class))
		require.NoError(t, r.Err)
		assert.Equal(t, "\x1f\x8bxyz", string(r.Body))
		assert.NotContains(t, got.String(), "Accept-Encoding")
	}
}

func TestOwnEnginesFollowNoRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, class := range classes {
			var executed atomic.Int64
			at := loopback.Listen(t, func(conn net.Conn) {
				exchange(conn, fmt.Sprintf("HTTP/1.1 %d Again\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", status), &executed)
			})
			r := own(t, Config{Policy: quick}).Do(t.Context(), post(t, at, class))
			require.NoError(t, r.Err)
			assert.Equal(t, status, r.Status)
			assert.True(t, r.Redirected)
			assert.EqualValues(t, 1, executed.Load(), "by default net/http posts it ten times after a 307")
		}
	}
}

func TestProxyHookOfTheCallerComesFirst(t *testing.T) {
	hook := func(context.Context, *url.URL, *http.Request, *http.Response) error { return errBroken }
	resp := &http.Response{StatusCode: http.StatusForbidden}
	require.ErrorIs(t, checkProxy(hook)(t.Context(), nil, nil, resp), errBroken)
	require.ErrorIs(t, checkProxy(nil)(t.Context(), nil, nil, resp), errProxyRefused)
	require.NoError(t, checkProxy(nil)(t.Context(), nil, nil, &http.Response{StatusCode: http.StatusOK}))
}

func TestNoDescriptorIsLeaked(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no list of open files here")
		}
		return len(files)
	}
	responses := []string{"", "garbage\r\n\r\n", ok, "HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\nabc"}
	var n atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) {
		defer loopback.HangUp(conn)
		if loopback.ReadRequest(bufio.NewReader(conn)) {
			say(conn, responses[int(n.Add(1))%len(responses)])
		}
	})
	e := own(t, Config{Policy: quick})
	before := open()
	for i := range 300 {
		e.Do(t.Context(), post(t, at, classes[i%3])).Release()
	}
	e.CloseIdleConnections()
	require.Eventually(t, func() bool { return open() <= before+2 }, time.Minute, 10*time.Millisecond)
}

func TestTraceOfTheCallerStillWorks(t *testing.T) {
	// A context's own trace and values reach the transport under ours.
	var asked atomic.Bool
	e := New(Config{Policy: quick, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			asked.Store(ctx.Value(testKey{}) == "v")
			return nil, errors.New("no")
		},
	}})
	in := post(t, service, Write)
	in.NoRetry = true
	in.Deadline = time.Now().Add(time.Minute)
	r := e.Do(context.WithValue(t.Context(), testKey{}, "v"), in)
	assert.True(t, r.NotSent)
	assert.True(t, asked.Load())
}

type testKey struct{}
