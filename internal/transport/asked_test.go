package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// readAhead is a connection that has read something already.
type readAhead struct {
	net.Conn
	from *bufio.Reader
}

func (c readAhead) Read(p []byte) (int, error) { return c.from.Read(p) }

// ahead dials connections, and counts them. From the first one it has read a byte.
func ahead(dial dialer, connections *atomic.Int64) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		number := connections.Add(1)
		conn, err := dial(ctx, network, addr)
		from := bufio.NewReader(conn)
		if err == nil && number == 1 {
			_, err = from.Peek(1)
		}
		return readAhead{conn, from}, err
	}
}

// early serves connections. On the first one it responds before there is a request.
func early(connections, executed *atomic.Int64) func(net.Conn) {
	return func(conn net.Conn) {
		if connections.Load() == 1 {
			say(conn, framings["length"](canary))
		}
		converse(conn, ok, executed)
	}
}

// No request is written to a connection on which something has come already, whether or not net/http has
// read it: a write is not sent, and a read goes to a new connection.
func TestWhatWasSentBeforeTheRequestIsNoResponseToIt(t *testing.T) {
	logged := keepLog(t)
	var connections, executed atomic.Int64
	for name, way := range routes(t, early(&connections, &executed)) {
		hook := &way.transport.DialTLSContext
		if way.scheme == "http" {
			hook = &way.transport.DialContext
		}
		if *hook == nil || way.transport.Proxy != nil {
			continue
		}
		*hook = ahead(*hook, &connections)
		for kind, in := range map[string]*Request{
			"write":      post(t, way.scheme+"://service.test/", Write),
			"fresh read": secrets(t, way.scheme+"://service.test/"),
			"kept read":  get(t, way.scheme+"://service.test/"),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					connections.Store(0)
					executed.Store(0)
					in.Deadline = time.Now().Add(time.Minute)
					r := own(t, Config{Transport: way.transport, Policy: policy}).Do(t.Context(), in)
					synctest.Wait()
					if kind == "write" {
						port := map[string]string{"http": "80", "https": "443"}[way.scheme]
						require.EqualError(t, r.Err, "service.test:"+port+" sent something before the request")
						assert.True(t, r.NotSent)
						assert.Equal(t, []int64{1, 0}, []int64{connections.Load(), executed.Load()})
						return
					}
					require.NoError(t, r.Err)
					assert.Equal(t, "hi", string(r.Body))
					assert.Equal(t, []int64{2, 1}, []int64{connections.Load(), executed.Load()})
				})
			})
		}
	}
	assert.Empty(t, logged.String())
}

// What has reached the machine is found too, behind TLS and below a proxy.
func TestWhatIsInTheSocketBeforeTheRequestIsNoResponseToIt(t *testing.T) {
	logged := keepLog(t)
	srv, trusted := secure(t, func(http.ResponseWriter, *http.Request) {})
	trusted.ServerName = "example.com"
	for _, scheme := range []string{"http", "https", "proxy"} {
		t.Run(scheme, func(t *testing.T) {
			var connections, executed atomic.Int64
			said := make(chan struct{}, 1)
			serve := early(&connections, &executed)
			at := parse(t, loopback.Listen(t, func(conn net.Conn) {
				if scheme == "https" {
					conn = tls.Server(conn, &tls.Config{Certificates: srv.TLS.Certificates})
				}
				if connections.Load() == 1 {
					conn = signaling{conn, said}
				}
				serve(conn)
			})).Host
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
				connections.Add(1)
				return new(net.Dialer).DialContext(ctx, "tcp", at)
			}
			transport := &http.Transport{TLSClientConfig: trusted, DialContext: dial}
			url := scheme + "://service.test/"
			if scheme == "proxy" {
				url = "http://service.test/"
				transport.Proxy = http.ProxyURL(parse(t, "http://proxy.test"))
			}
			ctx := onceConnected(t.Context(), func() { <-said })
			write := post(t, url, Write)
			write.Deadline = time.Now().Add(time.Hour)
			r := own(t, Config{Transport: transport, Policy: quick}).Do(ctx, write)
			require.Error(t, r.Err)
			assert.True(t, r.NotSent)

			for _, read := range []*Request{get(t, url), secrets(t, url)} {
				connections.Store(0)
				ctx := onceConnected(t.Context(), func() {
					if connections.Load() == 1 {
						<-said
					}
				})
				r = own(t, Config{Transport: transport, Policy: quick}).Do(ctx, read)
				require.NoError(t, r.Err)
				assert.Equal(t, "hi", string(r.Body))
			}
			assert.EqualValues(t, 2, executed.Load())
		})
	}
	assert.Empty(t, logged.String())
}

// signaling tells when something was written.
type signaling struct {
	net.Conn
	said chan struct{}
}

func (c signaling) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	select {
	case c.said <- struct{}{}:
	default:
	}
	return n, err
}
