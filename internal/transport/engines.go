package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	maxIdle        = 100
	dialTimeout    = 5 * time.Second
)

// proxyError replaces the error of net/http, which has the status line of a proxy's response.
type proxyError struct {
	proxy, target string // hosts and ports
	status        int
}

func (e *proxyError) Error() string {
	why := "HTTP " + strconv.Itoa(e.status)
	if e.status == http.StatusProxyAuthRequired {
		why += ": proxy authentication required"
	}
	return "the proxy " + e.proxy + " refused the connection to " + e.target + ": " + why
}

// newTransports makes the engines. They are clones of base, if any, with its proxy, dialer,
// certificates and timeouts. kept is for what needs no proxy, and proxied for what does.
func newTransports(base *http.Transport, config *tls.Config) (kept, proxied, fresh *http.Transport) {
	if base == nil {
		if config == nil {
			// A configuration that is not ours gets no cache: resuming a session skips VerifyPeerCertificate.
			config = &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(64)}
		}
		base = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: maxIdle, TLSClientConfig: config}
		base.IdleConnTimeout = 90 * time.Second
	}
	proxied = base.Clone()
	harden(proxied)
	if proxied.MaxIdleConnsPerHost == 0 {
		proxied.MaxIdleConnsPerHost = maxIdle
	}
	// Cloned after hardening, so that all share one cache of TLS sessions.
	kept, fresh = proxied.Clone(), proxied.Clone()
	kept.Proxy = nil
	guardDials(kept, func(ctx context.Context, c net.Conn, lazy bool) net.Conn {
		return &keptConn{askedConn: newAskedConn(ctx, c, lazy)}
	})
	// If the service closes an idle connection while a request is being written, the
	// outcome is needlessly unknown; a fresh connection is never stale.
	fresh.DisableKeepAlives = true
	fenceDials(fresh)
	for _, t := range []*http.Transport{fresh, proxied} {
		guardDials(t, func(ctx context.Context, c net.Conn, lazy bool) net.Conn { return new(newAskedConn(ctx, c, lazy)) })
	}
	return kept, proxied, fresh
}

// harden disables HTTP/2, over which net/http retries requests by itself and without
// end, and bounds what a response may cost.
func harden(t *http.Transport) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	// Empty but not nil: net/http fills in a nil map.
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.TLSClientConfig = hardenTLS(t.TLSClientConfig)
	t.DisableCompression = true
	if t.MaxResponseHeaderBytes <= 0 || t.MaxResponseHeaderBytes > maxHeaderBytes {
		t.MaxResponseHeaderBytes = maxHeaderBytes
	}
	checkProxy(t)
	t.DialContext = withContext(t.DialContext, t.Dial)          //nolint:staticcheck // a caller may still use Dial
	t.DialTLSContext = withContext(t.DialTLSContext, t.DialTLS) //nolint:staticcheck // a caller may still use DialTLS
	t.Dial, t.DialTLS = nil, nil                                //nolint:staticcheck // see above
	if t.DialContext == nil {
		// net/http dials in a goroutine that does not end with the request.
		t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	t.DialContext = around(t.DialContext, func(_ context.Context, c net.Conn) net.Conn { return socketOf(c) })
	if t.TLSHandshakeTimeout == 0 {
		t.TLSHandshakeTimeout = 10 * time.Second
	}
}

type dialContext = func(ctx context.Context, network, addr string) (net.Conn, error)

// withContext returns the hook that net/http would use; nil: it connects by itself.
func withContext(dial dialContext, old func(network, addr string) (net.Conn, error)) dialContext {
	if dial != nil || old == nil {
		return dial
	}
	return func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
}

// around has wrap put something around each connection of the hook, if there is one.
func around(dial dialContext, wrap func(context.Context, net.Conn) net.Conn) dialContext {
	if dial == nil {
		return nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil || conn == nil {
			return conn, err
		}
		// net/http cannot see that a connection in another is a *tls.Conn, and leaves the
		// handshake to the first write, which would pass a fence in time and be sent late.
		if shaker, ok := conn.(interface{ HandshakeContext(context.Context) error }); ok {
			if err := shaker.HandshakeContext(ctx); err != nil {
				go func() { _ = conn.Close() }() // as net/http does: closing TLS may block
				return nil, &handshakeError{err}
			}
		}
		return wrap(ctx, conn), nil
	}
}

// hardenTLS changes the clone's own configuration.
func hardenTLS(c *tls.Config) *tls.Config {
	if c == nil {
		c = new(tls.Config)
	}
	c.NextProtos = []string{"http/1.1"}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if verify := c.VerifyPeerCertificate; verify != nil {
		c.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
			return refusal(verify(raw, chains))
		}
	}
	if verify := c.VerifyConnection; verify != nil {
		c.VerifyConnection = func(s tls.ConnectionState) error { return refusal(verify(s)) }
	}
	return c
}

// refusal makes what a hook returns an error about the certificate.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	return &tls.CertificateVerificationError{Err: err}
}

func checkProxy(t *http.Transport) {
	next := t.OnProxyConnectResponse
	t.OnProxyConnectResponse = func(ctx context.Context, proxy *url.URL, req *http.Request, resp *http.Response) error {
		if next != nil {
			if err := next(ctx, proxy, req, resp); err != nil {
				return err
			}
		}
		if resp.StatusCode != http.StatusOK {
			return &proxyError{hostPort(proxy), req.Host, resp.StatusCode}
		}
		return nil
	}
}
