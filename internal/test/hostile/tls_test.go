package hostile_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
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

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	made := a.issue(t, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	a.cert, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue makes a certificate for 127.0.0.1, valid today, with one change. An
// authority without a certificate has it sign itself.
func (a *authority) issue(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(template)
	}
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// overheard is what a server was told over one connection.
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

// secureService responds to one request a connection, over TLS, that there is no
// such thing, and returns what it overheard. Without config it does not speak TLS.
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
	ours, anothers := newAuthority(t), newAuthority(t)
	served := func(a *authority, change func(*x509.Certificate)) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{a.issue(t, change)}, MinVersion: tls.VersionTLS10}
	}
	upTo := func(version uint16) *tls.Config {
		c := served(ours, nil)
		c.MaxVersion = version
		return c
	}
	leaf := ours.issue(t, nil)
	noAuthority := &authority{cert: leaf.Leaf, key: leaf.PrivateKey.(*ecdsa.PrivateKey)}
	byLeaf := served(noAuthority, nil)
	byLeaf.Certificates[0].Certificate = append(byLeaf.Certificates[0].Certificate, leaf.Certificate...)

	for name, tc := range map[string]struct {
		server *tls.Config
		words  string
	}{
		"self-signed":            {served(&authority{}, nil), "certificate not trusted: unknown authority"},
		"another authority":      {served(anothers, nil), "certificate not trusted: unknown authority"},
		"signed by no authority": {byLeaf, "certificate not trusted: unknown authority"},
		"expired": {served(ours, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
			"certificate not trusted: expired or not yet valid"},
		"not yet valid": {served(ours, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(50 * time.Minute) }),
			"certificate not trusted: expired or not yet valid"},
		"another address": {served(ours, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} }),
			"certificate not trusted: issued for another host"},
		"another name": {served(ours, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"api.example.com"} }),
			"certificate not trusted: issued for another host"},
		"a name in the subject only": {served(ours, func(c *x509.Certificate) { c.IPAddresses = nil }),
			"certificate not trusted: issued for another host"},
		"of a client": {served(ours, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			"certificate not trusted: not valid"},
		"TLS 1.1": {upTo(tls.VersionTLS11), "TLS handshake failed"},
		"TLS 1.0": {upTo(tls.VersionTLS10), "TLS handshake failed"},
		"no TLS":  {nil, "TLS handshake failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, heards := secureService(t, tc.server)
			weak := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ours.roots(), MinVersion: tls.VersionTLS10}}
			c := wiretest.ClientOver(t, base, cardwire.WithTransport(weak))
			for method, call := range wiretest.AllMethods() {
				err := call(t.Context(), c)
				require.ErrorContains(t, err, tc.words, method)
				h := <-heards
				assert.Empty(t, h.text, method)
				assert.NotContains(t, string(h.wire), wiretest.Key, method)
				assert.NotContains(t, string(h.wire), "HTTP/1.1", method)
				assert.Empty(t, heards, "it is not tried again")
				attempts := wiretest.Failure(t, err).Attempts
				require.Len(t, attempts, 1)
				assert.Equal(t, claimsNotSent(method), errors.Is(err, cardwire.ErrNotSent), method)
				if claimsNotSent(method) {
					assert.Equal(t, "connect", attempts[0].Phase)
				}
			}
		})
	}
}

// claimsNotSent says of which calls it is proven that nothing was sent: reads
// carry no trace.
func claimsNotSent(method string) bool {
	if method == "GetCardSecrets" {
		return true
	}
	for _, w := range wiretest.AllWrites() {
		if w.Op == method {
			return true
		}
	}
	return false
}

// What the test above takes for silence is not that of its server.
func TestTheServiceIsTalkedToOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for name, tc := range map[string]struct {
		server, client uint16 // the highest version, and the lowest
		want           uint16
	}{
		"1.3":                     {tls.VersionTLS13, 0, tls.VersionTLS13},
		"1.2":                     {tls.VersionTLS12, 0, tls.VersionTLS12},
		"1.2 and a client of 1.0": {tls.VersionTLS12, tls.VersionTLS10, tls.VersionTLS12},
		"1.2 and a client of 1.3": {tls.VersionTLS12, tls.VersionTLS13, 0},
		"1.3 and a client of 1.3": {tls.VersionTLS13, tls.VersionTLS13, tls.VersionTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, heards := secureService(t, &tls.Config{
				Certificates: []tls.Certificate{a.issue(t, nil)}, MinVersion: tls.VersionTLS10, MaxVersion: tc.server,
			})
			own := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.roots(), MinVersion: tc.client}}
			err := wiretest.ClientOver(t, base, cardwire.WithTransport(own)).CancelOperation(t.Context(), wiretest.UUID)
			h := <-heards
			assert.Equal(t, tc.want, h.version)
			if tc.want == 0 {
				require.ErrorIs(t, err, cardwire.ErrNotSent)
				assert.Empty(t, h.text)
				return
			}
			require.ErrorIs(t, err, cardwire.ErrNotFound)
			assert.True(t, strings.HasPrefix(string(h.text), "POST /api/v1/cards/adjustAction HTTP/1.1\r\n"), string(h.text))
			assert.Contains(t, string(h.text), "\r\nAuthorization: Bearer "+wiretest.Key+"\r\n")
			assert.NotContains(t, string(h.wire), wiretest.Key)
		})
	}
}

// A client whose own versions end before 1.2 has none left.
func TestAHighestVersionBelow12(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	base, heards := secureService(t, &tls.Config{Certificates: []tls.Certificate{a.issue(t, nil)}, MinVersion: tls.VersionTLS10})
	own := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.roots(), MaxVersion: tls.VersionTLS11}}
	err := wiretest.ClientOver(t, base, cardwire.WithTransport(own), cardwire.WithRetry(cardwire.RetryPolicy{})).CancelOperation(t.Context(), wiretest.UUID)
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	assert.Empty(t, (<-heards).wire)
}

func TestWithTransportRefusesToTrustAnybody(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server := &tls.Config{Certificates: []tls.Certificate{a.issue(t, nil)}}
	base, heards := secureService(t, server)
	blind := func(change func(*tls.Config)) cardwire.Option {
		c := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it is what is refused
		if change != nil {
			change(c)
		}
		return cardwire.WithTransport(&http.Transport{TLSClientConfig: c})
	}
	for name, change := range map[string]func(*tls.Config){
		"as it is": nil, "with roots": func(c *tls.Config) { c.RootCAs = a.roots() }, "with a name": func(c *tls.Config) { c.ServerName = "api.example.com" },
	} {
		c, err := cardwire.New(base, wiretest.Key, blind(change))
		assert.Nil(t, c, name)
		require.EqualError(t, err, "cardwire: invalid setup: WithTransport: InsecureSkipVerify accepts any certificate: add the service's CA to RootCAs, or set VerifyConnection", name)
		require.ErrorIs(t, err, cardwire.ErrSetup, name)
	}

	// Who verifies by other means may: what they say holds.
	pinned := func(want []byte) error {
		if !bytes.Equal(want, server.Certificates[0].Certificate[0]) {
			return wiretest.ErrBroken
		}
		return nil
	}
	for name, tc := range map[string]struct {
		change func(*tls.Config)
		want   error
	}{
		"the connection is right": {func(c *tls.Config) {
			c.VerifyConnection = func(s tls.ConnectionState) error { return pinned(s.PeerCertificates[0].Raw) }
		}, cardwire.ErrNotFound},
		"the connection is wrong": {func(c *tls.Config) {
			c.VerifyConnection = func(tls.ConnectionState) error { return pinned(nil) }
		}, cardwire.ErrNotSent},
		"the certificate is right": {func(c *tls.Config) {
			c.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error { return pinned(raw[0]) }
		}, cardwire.ErrNotFound},
		"the certificate is wrong": {func(c *tls.Config) {
			c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return pinned(nil) }
		}, cardwire.ErrNotSent},
	} {
		err := wiretest.ClientOver(t, base, blind(tc.change), cardwire.WithRetry(cardwire.RetryPolicy{})).CancelOperation(t.Context(), wiretest.UUID)
		require.ErrorIs(t, err, tc.want, name)
		assert.Equal(t, tc.want == cardwire.ErrNotFound, len((<-heards).text) > 0, name)
	}
}

// No code of this repository but its tests switches verification off, and no
// exported name offers to.
func TestNothingSwitchesVerificationOff(t *testing.T) {
	t.Parallel()
	looked := 0
	require.NoError(t, filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		looked++
		ast.Inspect(file, func(n ast.Node) bool {
			var set []ast.Expr
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				set = []ast.Expr{n.Key}
			case *ast.AssignStmt:
				set = n.Lhs
			case *ast.FuncDecl:
				assert.NotRegexp(t, `(?i)^With.*(skip|verif|trust|unsafe|insecureT)`, n.Name.Name)
			}
			for _, e := range set {
				assert.NotEqual(t, "InsecureSkipVerify", lastName(e), path)
			}
			return true
		})
		return nil
	}))
	assert.Greater(t, looked, 50)
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// Whatever else is asked for, the key goes over plain http to this machine only.
func TestPlainHTTPIsForThisMachine(t *testing.T) {
	t.Parallel()
	through := func(*http.Request) (*url.URL, error) { return url.Parse("http://127.0.0.1:8080") }
	options := map[string][]cardwire.Option{
		"nothing":      nil,
		"a proxy":      {cardwire.WithTransport(&http.Transport{Proxy: through})},
		"a dialler":    {cardwire.WithTransport(&http.Transport{DialContext: new(net.Dialer).DialContext})},
		"a client":     {cardwire.WithHTTPClient(http.DefaultClient)},
		"a doer":       {cardwire.WithHTTPClient(wiretest.Always(200, ""))},
		"a key source": {cardwire.WithKeySource(func(context.Context) (string, error) { return wiretest.Key, nil })},
	}
	for name, opts := range options {
		for _, base := range []string{
			"http://api.example.com/api/v1", "HTTP://api.example.com/api/v1", "http://10.0.0.7/api/v1", "http://[fe80::1]/api/v1",
			"http://localhost.example.com/api/v1", "http://0.0.0.0/api/v1", "http://api.example.com:443/api/v1",
		} {
			_, err := cardwire.New(base, wiretest.Key, opts...)
			require.ErrorIs(t, err, cardwire.ErrInvalidParams, name+" "+base)
			require.ErrorContains(t, err, "plain http", name+" "+base)
			_, err = cardwire.New(base, wiretest.Key, append(opts, cardwire.WithInsecureHTTP())...)
			require.NoError(t, err, name+" "+base)
		}
		for _, base := range []string{"ftp://api.example.com", "ws://api.example.com", "httpss://api.example.com", "unix:///run/service"} {
			_, err := cardwire.New(base, wiretest.Key, append(opts, cardwire.WithInsecureHTTP())...)
			require.ErrorIs(t, err, cardwire.ErrInvalidParams, name+" "+base)
		}
	}
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
		text := bufio.NewReader(conn)
		var head strings.Builder
		for {
			line, err := text.ReadString('\n')
			head.WriteString(line)
			if err != nil || line == "\r\n" {
				break
			}
		}
		p.connects <- head.String()
		fields := strings.Fields(head.String())
		if len(fields) < 2 || fields[0] != http.MethodConnect {
			_, _ = io.WriteString(conn, loopback.Response("200 OK", "", nothingThere))
			return
		}
		service, err := net.Dial("tcp", fields[1])
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		var back sync.WaitGroup
		back.Go(func() {
			_, _ = io.Copy(conn, service)
			_ = conn.Close()
		})
		var carried bytes.Buffer
		_, _ = io.Copy(io.MultiWriter(service, &carried), text)
		_ = service.Close()
		back.Wait()
		p.carried <- carried.Bytes()
	})
	return p
}

// through is a transport that uses the proxy at the address.
func through(t *testing.T, roots *x509.CertPool, proxy string) cardwire.Option {
	t.Helper()
	address, err := url.Parse(proxy)
	require.NoError(t, err)
	return cardwire.WithTransport(&http.Transport{Proxy: http.ProxyURL(address), TLSClientConfig: &tls.Config{RootCAs: roots}})
}

// A proxy learns the host, and sees nothing but TLS.
func TestAProxyIsNotToldTheKey(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	base, heards := secureService(t, &tls.Config{Certificates: []tls.Certificate{a.issue(t, nil)}})
	host := strings.TrimSuffix(strings.TrimPrefix(base, "https://"), "/api/v1")
	proxy := newTunnel(t)
	for user, wants := range map[string]string{"": "", "me:secret@": "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"} {
		c := wiretest.ClientOver(t, base, through(t, a.roots(), "http://"+user+proxy.address))
		for method, call := range wiretest.AllMethods() {
			require.ErrorIs(t, call(t.Context(), c), cardwire.ErrNotFound, method)
			c.CloseIdleConnections()
			assert.Equal(t, "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\nUser-Agent: Go-http-client/1.1\r\n"+wants+"\r\n", <-proxy.connects, method)
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

// A proxy that ends the tunnel itself is not the service.
func TestAProxyThatPosesAsTheService(t *testing.T) {
	t.Parallel()
	posing, heards := secureService(t, &tls.Config{Certificates: []tls.Certificate{(&authority{}).issue(t, nil)}})
	proxy := newTunnel(t)
	address, err := url.Parse("http://" + proxy.address)
	require.NoError(t, err)
	elsewhere := strings.TrimSuffix(strings.TrimPrefix(posing, "https://"), "/api/v1")
	c := wiretest.ClientOver(t, posing, cardwire.WithTransport(&http.Transport{Proxy: http.ProxyURL(address)}))
	for method, call := range wiretest.AllMethods() {
		err := call(t.Context(), c)
		require.ErrorContains(t, err, "certificate not trusted: unknown authority", method)
		assert.Equal(t, claimsNotSent(method), errors.Is(err, cardwire.ErrNotSent), method)
		assert.Contains(t, <-proxy.connects, "CONNECT "+elsewhere, method)
		assert.NotContains(t, string(<-proxy.carried), wiretest.Key, method)
		assert.Empty(t, (<-heards).text, method)
	}
}

// A proxy that does not open the tunnel learns no more, and its response is not
// the service's.
func TestAProxyThatOpensNoTunnel(t *testing.T) {
	t.Parallel()
	for name, response := range map[string]string{
		"wants a key":  "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
		"redirects":    "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
		"knows better": "HTTP/1.1 201 Created\r\nContent-Length: 46\r\n\r\n" + nothingThere,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan string, 16)
			address := accept(t, func(conn net.Conn) {
				raw := &tee{Conn: conn}
				if _, err := http.ReadRequest(bufio.NewReader(raw)); err == nil {
					_, _ = io.WriteString(conn, response)
				}
				_, _ = io.Copy(io.Discard, raw)
				told <- raw.read.String()
			})
			c := wiretest.ClientOver(t, "https://api.example.com/api/v1", through(t, nil, "http://"+address), cardwire.WithRetry(cardwire.RetryPolicy{}))
			for method, call := range wiretest.AllMethods() {
				err := call(t.Context(), c)
				require.ErrorContains(t, err, "the proxy refused the connection", method)
				assert.Equal(t, claimsNotSent(method), errors.Is(err, cardwire.ErrNotSent), method)
				assert.Equal(t, "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\nUser-Agent: Go-http-client/1.1\r\n\r\n", <-told, method)
			}
		})
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
	c = wiretest.ClientOver(t, "http://api.example.com/api/v1", through(t, nil, "http://"+proxy.address), cardwire.WithInsecureHTTP())
	require.ErrorIs(t, c.CancelOperation(t.Context(), wiretest.UUID), cardwire.ErrNotFound)
	assert.True(t, strings.HasPrefix(<-proxy.connects, "POST http://api.example.com/api/v1/cards/adjustAction HTTP/1.1\r\n"))
}
