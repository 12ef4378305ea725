package hostile_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// certified returns the settings of a server with a certificate for 127.0.0.1, and the pool that
// trusts it.
func certified(t *testing.T) (server *tls.Config, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	s.Close()
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS10}, roots
}

// overheard is what a server received over one connection.
type overheard struct {
	wire    []byte // all that came
	text    []byte // what could be decrypted
	version uint16 // of TLS; 0: there was no handshake
}

// tee keeps what is read.
type tee struct {
	net.Conn
	read bytes.Buffer
}

func (c *tee) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Write(p[:n])
	return n, err
}

// accept returns the address of a server that calls serve with each connection.
func accept(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	return strings.TrimPrefix(loopback.Listen(t, func(conn net.Conn) {
		defer loopback.HangUp(conn)
		serve(conn)
	}), "http://")
}

// secureService responds to one request a connection, over TLS, that nothing was found, and
// returns what it received. Without config it does not use TLS.
func secureService(t *testing.T, config *tls.Config) (base string, heards chan overheard) {
	t.Helper()
	heards = make(chan overheard, 16)
	address := accept(t, func(conn net.Conn) {
		raw := &tee{Conn: conn}
		var h overheard
		if config == nil {
			_, _ = raw.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		} else {
			secure := tls.Server(raw, config)
			if secure.Handshake() == nil { //nolint:noctx // the client ends it
				h.version = secure.ConnectionState().Version
				text := &tee{Conn: secure}
				if r, err := http.ReadRequest(bufio.NewReader(text)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(secure, loopback.Response("200 OK", "", nothingThere))
				}
				h.text = text.read.Bytes()
				_ = secure.Close()
			}
		}
		h.wire = raw.read.Bytes()
		heards <- h
	})
	return "https://" + address + "/api/v1", heards
}

// A server that cannot prove to be the service gets nothing: no request, no key, and the
// outcome of a write is not sent.
func TestOnlyTheServiceIsTalkedTo(t *testing.T) {
	t.Parallel()
	server, trusted := certified(t)
	upTo := func(version uint16) *tls.Config {
		c := server.Clone()
		c.MaxVersion = version
		return c
	}
	trusting := func(least, most uint16) *tls.Config {
		return &tls.Config{RootCAs: trusted, MinVersion: least, MaxVersion: most}
	}
	in := func(year int) *tls.Config {
		now := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		return &tls.Config{RootCAs: trusted, Time: func() time.Time { return now }}
	}
	const (
		unknown = " not trusted: unknown authority: add its CA to the RootCAs of the TLS configuration"
		expired = " not trusted: expired or not yet valid: check this machine's clock"
		another = " not trusted: issued for another host: check the base URL"
		failed  = "TLS handshake failed"

		v10, v11, v12, v13 = tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13
	)
	base, _ := secureService(t, server)
	impossible := cardwire.WithTransport(&http.Transport{TLSClientConfig: trusting(0, v11)})
	err := canceled(t, base, impossible)
	assert.Equal(t, cardwire.OutcomeNotSent, wiretest.Failure(t, err).Outcome, "TLS 1.1 at most is no version")
	for name, tc := range map[string]struct {
		server, client *tls.Config
		words          string // "": the request arrives
		version        uint16
	}{
		"an unknown authority":  {server, &tls.Config{RootCAs: x509.NewCertPool()}, unknown, 0},
		"expired":               {server, in(2200), expired, 0},
		"not yet valid":         {server, in(1960), expired, 0},
		"another host":          {server, &tls.Config{RootCAs: trusted, ServerName: "api.example.org"}, another, 0},
		"TLS 1.0":               {upTo(v10), trusting(v10, 0), failed, 0},
		"TLS 1.1":               {upTo(v11), trusting(v10, 0), failed, 0},
		"TLS 1.3 is wanted":     {upTo(v12), trusting(v13, 0), failed, 0},
		"no TLS":                {nil, trusting(v10, 0), failed, 0},
		"the service, TLS 1.2":  {upTo(v12), trusting(v10, 0), "", v12},
		"the service, TLS 1.3":  {server, trusting(0, 0), "", v13},
		"the service, TLS 1.3+": {server, trusting(v13, 0), "", v13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, heards := secureService(t, tc.server)
			c := wiretest.ClientOver(t, base, cardwire.WithTransport(&http.Transport{TLSClientConfig: tc.client}))
			for method, call := range wiretest.AllMethods() {
				err := call(t.Context(), c)
				h := <-heards
				assert.Empty(t, heards, "it is not tried again")
				assert.NotContains(t, string(h.wire), wiretest.Key, method)
				assert.NotContains(t, string(h.wire), "HTTP/1.1", method)
				if tc.words == "" {
					require.ErrorIs(t, err, cardwire.ErrNotFound, method)
					assert.Equal(t, tc.version, h.version)
					assert.Regexp(t, `^(GET|POST) /api/v1/.* HTTP/1.1\r\n`, string(h.text), method)
					assert.Contains(t, string(h.text), "\r\nAuthorization: Bearer "+wiretest.Key+"\r\n", method)
					c.CloseIdleConnections()
					continue
				}
				require.ErrorContains(t, err, tc.words, method)
				assert.Empty(t, h.text, method)
				e := wiretest.Failure(t, err)
				require.Len(t, e.Attempts, 1)
				assert.Equal(t, claimsNotSent(method), e.Outcome == cardwire.OutcomeNotSent, method)
				if claimsNotSent(method) {
					assert.Equal(t, "connect", e.Attempts[0].Phase)
				}
			}
		})
	}
}

// claimsNotSent reports whether the client claims that nothing was sent in a failed call of the
// method: only writes are traced.
func claimsNotSent(method string) bool {
	return slices.ContainsFunc(wiretest.AllWrites(), func(w wiretest.Write) bool { return string(w.Op) == method })
}

// canceled makes one call, once.
func canceled(t *testing.T, base string, opts ...cardwire.Option) error {
	t.Helper()
	c := wiretest.ClientOver(t, base, append(opts, cardwire.WithRetry(cardwire.RetryPolicy{}))...)
	return c.CancelOperation(t.Context(), wiretest.UUID)
}

func TestNoOptionTrustsAnybody(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]func(*tls.Config) cardwire.Option{
		"WithTLSConfig": cardwire.WithTLSConfig,
		"WithTransport": func(c *tls.Config) cardwire.Option {
			return cardwire.WithTransport(&http.Transport{TLSClientConfig: c})
		},
	} {
		for _, c := range []*tls.Config{{}, {RootCAs: x509.NewCertPool()}, {ServerName: "api.example.com"}} {
			c.InsecureSkipVerify = true
			client, err := cardwire.New(wiretest.Base, wiretest.Key, option(c))
			assert.Nil(t, client)
			require.EqualError(t, err, "cardwire: invalid setup: "+name+": InsecureSkipVerify accepts any certificate"+
				": add the service's CA to RootCAs, or set VerifyConnection")
			require.ErrorIs(t, err, cardwire.ErrSetup)
			c.VerifyConnection = func(tls.ConnectionState) error { return nil }
			require.NoError(t, wiretest.OnlyError(cardwire.New(wiretest.Base, wiretest.Key, option(c))))
			c.VerifyConnection = nil
			c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil }
			require.NoError(t, wiretest.OnlyError(cardwire.New(wiretest.Base, wiretest.Key, option(c))))
		}
	}
}

// No code of this repository but its tests switches verification off.
func TestNothingSwitchesVerificationOff(t *testing.T) {
	t.Parallel()
	off, looked := regexp.MustCompile(`InsecureSkipVerify *(:|=[^=])`), 0
	root := os.DirFS("../../..")
	require.NoError(t, fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			text, err := fs.ReadFile(root, path)
			assert.NoError(t, err)
			assert.False(t, off.Match(text), path)
			looked++
		}
		return err
	}))
	assert.Greater(t, looked, 50)
}

// tunnel is a proxy that returns what it read, before the tunnel and in it.
type tunnel struct {
	address  string
	connects chan string
	carried  chan []byte
}

func newTunnel(t *testing.T) *tunnel {
	t.Helper()
	p := &tunnel{connects: make(chan string, 64), carried: make(chan []byte, 64)}
	p.address = accept(t, func(conn net.Conn) {
		client := &tee{Conn: conn}
		text := bufio.NewReader(client)
		r, err := http.ReadRequest(text)
		if err != nil {
			return
		}
		p.connects <- client.read.String()
		if r.Method != http.MethodConnect {
			_, _ = io.WriteString(conn, loopback.Response("200 OK", "", nothingThere))
			return
		}
		service, err := net.Dial("tcp", r.Host)
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		var back sync.WaitGroup
		back.Go(func() {
			_, _ = io.Copy(conn, service)
			_ = conn.Close()
		})
		client.read.Reset()
		_, _ = io.Copy(service, text)
		_ = service.Close()
		back.Wait()
		p.carried <- client.read.Bytes()
	})
	return p
}

// through is a transport that uses the proxy at the address.
func through(t *testing.T, roots *x509.CertPool, proxy string) cardwire.Option {
	t.Helper()
	address, err := url.Parse(proxy)
	require.NoError(t, err)
	trusted := &tls.Config{RootCAs: roots}
	return cardwire.WithTransport(&http.Transport{Proxy: http.ProxyURL(address), TLSClientConfig: trusted})
}

// A proxy learns the host, and sees nothing but TLS.
func TestAProxyIsNotToldTheKey(t *testing.T) {
	t.Parallel()
	server, roots := certified(t)
	base, heards := secureService(t, server)
	host := strings.TrimSuffix(strings.TrimPrefix(base, "https://"), "/api/v1")
	proxy := newTunnel(t)
	for user, wants := range map[string]string{"": "", "me:secret@": "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"} {
		c := wiretest.ClientOver(t, base, through(t, roots, "http://"+user+proxy.address))
		for method, call := range wiretest.AllMethods() {
			require.ErrorIs(t, call(t.Context(), c), cardwire.ErrNotFound, method)
			c.CloseIdleConnections()
			connect := "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: Go-http-client/1.1\r\n"
			assert.Equal(t, connect+wants+"\r\n", <-proxy.connects, method)
			carried := <-proxy.carried
			assert.NotContains(t, string(carried), wiretest.Key, method)
			assert.NotContains(t, string(carried), "/api/v1", method)
			h := <-heards
			assert.True(t, bytes.HasPrefix(carried, h.wire), "the tunnel carries what the service hears: %s", method)
			assert.Contains(t, string(h.text), "\r\nAuthorization: Bearer "+wiretest.Key+"\r\n", method)
			assert.NotContains(t, string(h.text), "Proxy-", method)
		}
	}
}

// Plain http is allowed for this machine because no one else reads it. A proxy
// would.
func TestPlainHTTPToThisMachineGoesThroughNoProxy(t *testing.T) {
	t.Parallel()
	proxy := newTunnel(t)
	s := loopback.Serve(t, loopback.Say(loopback.Response("200 OK", "", nothingThere)))
	c := wiretest.ClientOver(t, s.Base, through(t, nil, "http://"+proxy.address))
	for method, call := range wiretest.AllMethods() {
		require.ErrorIs(t, call(t.Context(), c), cardwire.ErrNotFound, method)
	}
	assert.Len(t, wiretest.AllMethods(), int(s.Requests.Load()))
	assert.Empty(t, proxy.connects)

	// Where it is allowed for other hosts, a proxy may be the only way.
	const elsewhere = "http://api.example.com/api/v1"
	err := canceled(t, elsewhere, through(t, nil, "http://"+proxy.address), cardwire.WithInsecureHTTP())
	require.ErrorIs(t, err, cardwire.ErrNotFound)
	assert.True(t, strings.HasPrefix(<-proxy.connects, "POST "+elsewhere+"/cards/adjustAction HTTP/1.1\r\n"))
}
