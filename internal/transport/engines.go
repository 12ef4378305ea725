package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	maxIdle        = 100
	dialTimeout    = 5 * time.Second
)

// errProxyRefused replaces the status of a proxy's response, which net/http would put into
// the error.
var errProxyRefused = errors.New("transport: the proxy refused to connect")

// newTransports makes the two engines. They are clones of base, if any, with its
// proxy, dialer, certificates and timeouts.
func newTransports(base *http.Transport) (pooled, fresh *http.Transport) {
	if base == nil {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: maxIdle}
		base.IdleConnTimeout = 90 * time.Second
	}
	pooled = base.Clone()
	harden(pooled)
	if pooled.MaxIdleConnsPerHost == 0 {
		pooled.MaxIdleConnsPerHost = maxIdle
	}
	// Cloned after hardening, so that both share one cache of TLS sessions.
	fresh = pooled.Clone()
	// If the service closes an idle connection while a request is being written, the
	// outcome is needlessly unknown; a fresh connection is never stale.
	fresh.DisableKeepAlives = true
	fenceDials(fresh)
	return pooled, fresh
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
	// net/http dials in a goroutine that does not end with the request.
	if t.DialContext == nil && t.Dial == nil { //nolint:staticcheck // a caller may still use Dial
		t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if t.TLSHandshakeTimeout == 0 {
		t.TLSHandshakeTimeout = 10 * time.Second
	}
}

// hardenTLS changes the clone's own configuration.
func hardenTLS(c *tls.Config) *tls.Config {
	if c == nil {
		c = new(tls.Config)
	}
	c.NextProtos = []string{"http/1.1"}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(64)
	}
	return c
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
			return errProxyRefused
		}
		return nil
	}
}
