package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// route is one way in which a transport can be told how to connect.
type route struct {
	scheme    string
	transport *http.Transport
}

// routes are all of them, to a service in memory. serve is given connections
// after the TLS handshake.
//
//nolint:staticcheck // a caller may still use Dial and DialTLS
func routes(t *testing.T, serve func(net.Conn)) map[string]route {
	t.Helper()
	srv, client := secure(t, func(http.ResponseWriter, *http.Request) {})
	client.ServerName = "example.com"
	server := &tls.Config{Certificates: srv.TLS.Certificates}
	serveTLS := func(conn net.Conn) { serve(tls.Server(conn, server)) }
	plain, secret := pipeTo(serve), pipeTo(serveTLS)
	without := func(dial dialer) func(string, string) (net.Conn, error) {
		return func(network, addr string) (net.Conn, error) { return dial(context.Background(), network, addr) }
	}
	begin := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := secret(ctx, network, addr)
		return tls.Client(conn, client), err
	}
	shake := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := begin(ctx, network, addr)
		return conn, errors.Join(err, conn.(*tls.Conn).HandshakeContext(ctx))
	}
	hide := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := shake(ctx, network, addr)
		return struct{ net.Conn }{conn}, err
	}
	tunnel := pipeTo(func(conn net.Conn) {
		in := bufio.NewReader(conn)
		if r, err := http.ReadRequest(in); assert.NoError(t, err) && assert.Equal(t, http.MethodConnect, r.Method) {
			say(conn, "HTTP/1.1 200 OK\r\n\r\n")
			serveTLS(conn)
		}
	})
	proxy := http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test"})
	return map[string]route{
		"Dial":                        {"http", &http.Transport{Dial: without(plain)}},
		"DialContext":                 {"http", &http.Transport{DialContext: plain}},
		"Dial, then TLS":              {"https", &http.Transport{Dial: without(secret), TLSClientConfig: client}},
		"DialContext, then TLS":       {"https", &http.Transport{DialContext: secret, TLSClientConfig: client}},
		"DialTLS":                     {"https", &http.Transport{DialTLS: without(begin)}},
		"DialTLS after the handshake": {"https", &http.Transport{DialTLS: without(shake)}},
		"DialTLSContext":              {"https", &http.Transport{DialTLSContext: begin}},
		"DialTLSContext, hidden type": {"https", &http.Transport{DialTLSContext: hide}},
		"proxy":                       {"http", &http.Transport{DialContext: plain, Proxy: proxy}},
		"proxy, then TLS": {
			"https", &http.Transport{DialContext: tunnel, Proxy: proxy, TLSClientConfig: client},
		},
	}
}

// lateContext has a deadline, but no timer that fires at it: that of a process
// that was stopped fires when the process runs again, and so may a write.
type lateContext struct {
	context.Context
	end time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.end, true }

// onceConnected calls do between getting a connection and the first byte of the request.
func onceConnected(ctx context.Context, do func()) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { do() }})
}

// wallClock is one that can be set.
type wallClock struct{ ahead atomic.Int64 }

func (w *wallClock) set(d time.Duration) { w.ahead.Store(int64(d)) }
func (w *wallClock) read(now time.Time) time.Time {
	return now.Round(0).Add(time.Duration(w.ahead.Load()))
}

func TestNoWriteBeginsAfterTheDeadline(t *testing.T) {
	var executed atomic.Int64
	for name, way := range routes(t, func(conn net.Conn) { converse(conn, ok, &executed) }) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, tc := range []struct {
					name             string
					paused, suspends time.Duration // by the monotonic clock; what the wall clock is ahead of it
					late             bool
				}{
					{"in time", 59 * time.Second, 0, false},
					{"stopped", time.Minute, 0, true},
					{"stopped, and the wall clock set back", time.Minute, -time.Hour, true},
					{"suspended", 0, time.Minute, true},
				} {
					executed.Store(0)
					var wall wallClock
					e := own(t, Config{Transport: way.transport, Policy: policy})
					e.wall = wall.read
					ctx := onceConnected(lateContext{t.Context(), time.Now().Add(time.Minute)}, func() {
						pause(tc.paused)
						wall.set(tc.suspends)
					})

					r := e.Do(ctx, post(t, way.scheme+"://service.test", Write))

					synctest.Wait()
					if !tc.late {
						require.NoError(t, r.Err, tc.name)
						assert.EqualValues(t, 1, executed.Load(), tc.name)
						continue
					}
					assert.Zero(t, executed.Load(), "%s: executed after the deadline", tc.name)
					require.EqualError(t, r.Err, "deadline exceeded: the context's", tc.name)
					require.ErrorIs(t, r.Err, context.DeadlineExceeded, tc.name)
					assert.True(t, r.NotSent, tc.name)
					assert.Equal(t, 1, r.Tries, "%s: the next attempt would be too late as well", tc.name)
					assert.Equal(t, []string{"connect"}, phases(r), tc.name)
				}
			})
		})
	}
}

func TestTheEarlierDeadlineCounts(t *testing.T) {
	const none, soon, late = 0, time.Minute, 2 * time.Hour
	for _, tc := range []struct {
		class            Class
		request, context time.Duration // from now
		sent             bool
	}{
		{Write, soon, none, false}, {Write, none, soon, false}, {Write, soon, late, false}, {Write, late, soon, false},
		{Write, late, late, true}, {Write, none, none, true}, {Read, soon, soon, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var executed atomic.Int64
			e := own(t, Config{Transport: &http.Transport{
				DialContext: pipeTo(func(conn net.Conn) { converse(conn, ok, &executed) }),
			}})
			e.wall = func(now time.Time) time.Time { return now.Round(0).Add(time.Hour) }
			ctx, in := t.Context(), post(t, service, tc.class)
			in.Fresh = true
			if tc.request != none {
				in.Deadline = time.Now().Add(tc.request)
			}
			if tc.context != none {
				limited, cancel := context.WithTimeout(ctx, tc.context)
				defer cancel()
				ctx = limited
			}
			r := e.Do(ctx, in)
			assert.Equal(t, tc.sent, executed.Load() == 1, "%+v", tc)
			assert.Equal(t, !tc.sent, r.NotSent, "%+v", tc)
		})
	}
}

func TestDeadlineBetweenConnectionAndFirstByte(t *testing.T) {
	// The timer and the first write are due at once: whichever comes first, nothing is sent.
	synctest.Test(t, func(t *testing.T) {
		var executed atomic.Int64
		e := own(t, Config{Policy: policy, Transport: &http.Transport{
			DialContext: pipeTo(func(conn net.Conn) { converse(conn, ok, &executed) }),
		}})
		for range 100 {
			in := post(t, service, Write)
			in.Deadline = time.Now().Add(time.Minute)
			r := e.Do(onceConnected(t.Context(), func() { pause(time.Minute) }), in)
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			require.True(t, r.NotSent)
		}
		assert.Zero(t, executed.Load())

		silent := own(t, Config{Policy: policy, Transport: &http.Transport{DialContext: pipeTo(sink)}})
		ctx, cancel := context.WithCancel(t.Context())
		in := post(t, service, Write)
		in.Deadline = time.Now().Add(time.Minute)
		r := silent.Do(onceConnected(ctx, cancel), in)
		require.ErrorIs(t, r.Err, context.Canceled)
		assert.False(t, r.NotSent, "cancelled in time: it may have been sent")
	})
}

func TestDeadlineWithinARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wall wallClock
		var arrived atomic.Int64
		e := own(t, Config{Policy: policy, Transport: &http.Transport{DialContext: pipeTo(func(conn net.Conn) {
			defer loopback.HangUp(conn)
			n, _ := io.Copy(io.Discard, conn)
			arrived.Add(n)
		})}})
		e.wall = wall.read
		in := post(t, service, Write)
		in.Deadline = time.Now().Add(time.Minute)
		in.BodySize = 1 << 20
		in.Body = func() (io.ReadCloser, error) {
			begun := io.LimitReader(endless{}, in.BodySize/2)
			return io.NopCloser(io.MultiReader(begun, readerFunc(func(p []byte) (int, error) {
				wall.set(time.Minute)
				return len(p), nil
			}))), nil
		}

		r := e.Do(t.Context(), in)

		synctest.Wait()
		require.EqualError(t, r.Err, "deadline exceeded: WithTimeout's")
		assert.False(t, r.NotSent, "half of it has arrived")
		assert.Equal(t, 1, r.Tries)
		assert.Equal(t, []string{"sent"}, phases(r))
		assert.InDelta(t, in.BodySize/2, arrived.Load(), 64<<10)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestClockSetBackAfterARefusal(t *testing.T) {
	// What was called unsent stays unsent.
	now := time.Now()
	var wall wallClock
	trace := &connTrace{fence: fence{deadline: now.Add(time.Hour), wall: wall.read}}
	conn, peer := net.Pipe()
	defer loopback.HangUp(peer)
	defer loopback.HangUp(conn)
	fenced := fenced(trace.attach(t.Context()), conn)
	trace.sought.Store(true)
	trace.got.Store(true)
	assert.Equal(t, errBroken, trace.classify(errBroken), "nothing was written yet, but may be")
	wall.set(time.Hour)
	require.True(t, is[*unsentError](trace.classify(errBroken)))
	wall.set(0)
	n, err := fenced.Write([]byte("POST"))
	assert.Zero(t, n)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotImplements(t, (*io.ReaderFrom)(nil), fenced, "it would write without asking the clocks")
}

func TestDeadlineBeforeTheHandshake(t *testing.T) {
	var arrived atomic.Int64
	count := pipeTo(func(conn net.Conn) {
		defer loopback.HangUp(conn)
		n, _ := io.Copy(io.Discard, conn)
		arrived.Add(n)
	})
	for name, transport := range map[string]*http.Transport{
		"TLS":   {},
		"proxy": {Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test"})},
	} {
		t.Run(name, func(t *testing.T) {
			var wall wallClock
			transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				wall.set(time.Hour)
				return count(ctx, network, addr)
			}
			e := own(t, Config{Transport: transport, Policy: policy})
			e.wall = wall.read
			in := post(t, "https://service.test", Write)
			in.Deadline = time.Now().Add(time.Hour)
			r := e.Do(t.Context(), in)
			require.EqualError(t, r.Err, "deadline exceeded: WithTimeout's")
			assert.True(t, r.NotSent)
			assert.Equal(t, 1, r.Tries)
			assert.Zero(t, arrived.Load())
		})
	}
}

func TestHandshakeBehindAFence(t *testing.T) {
	srv, trusted := secure(t, func(http.ResponseWriter, *http.Request) {})
	dialTLS := func(config *tls.Config, hide bool) *http.Transport {
		config = config.Clone()
		config.ServerName = "example.com"
		return &http.Transport{DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			if hide {
				return struct{ *tls.Conn }{tls.Client(conn, config)}, nil
			}
			return tls.Client(conn, config), nil
		}}
	}
	do := func(transport *http.Transport) *Response {
		in := post(t, srv.URL, Write)
		in.Deadline = time.Now().Add(time.Minute)
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			fenced := info.Conn.(*askedConn).Conn.(*fencedConn)
			secure := fenced.Conn.(interface{ ConnectionState() tls.ConnectionState })
			assert.True(t, secure.ConnectionState().HandshakeComplete,
				"a write that waits for its handshake would be late")
		}})
		return own(t, Config{Transport: transport, Policy: quick}).Do(ctx, in)
	}
	require.NoError(t, do(dialTLS(trusted, false)).Err)
	require.NoError(t, do(dialTLS(trusted, true)).Err, "net/http does not know that this is TLS")

	r := do(dialTLS(new(tls.Config), false))
	require.ErrorContains(t, r.Err, "not trusted: unknown authority")
	assert.True(t, r.NotSent)
	assert.Equal(t, 1, r.Tries)
}

func TestHookThatReturnsNothing(t *testing.T) {
	nothing := func(string, string) (net.Conn, error) { return nil, nil }
	for _, transport := range []*http.Transport{{Dial: nothing}, {DialTLS: nothing}} {
		in := post(t, "https://service.test", Write)
		in.Deadline = time.Now().Add(time.Minute)
		r := own(t, Config{Transport: transport, Policy: quick}).Do(t.Context(), in)
		require.EqualError(t, r.Err, "connection failed")
		assert.True(t, r.NotSent)
	}
}
