package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inURL wraps an error as http.Client does, with what must not be told.
func inURL(err error) error {
	return &url.Error{Op: "Get", URL: "https://k:" + canary + "@service.test/?pan=" + canary, Err: err}
}

// cause is the error of a call through a doer that fails in this way.
func cause(t *testing.T, err error) error {
	t.Helper()
	return New(Config{Doer: scripted(fail(inURL(err))).client()}).Do(t.Context(), get(t, service+"?pan="+canary)).Err
}

func TestErrorsHaveFixedWords(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)} }
	proxy := func(err error) error { return &net.OpError{Op: "proxyconnect", Err: err} }
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 3128}
	refused := &net.OpError{Op: "dial", Addr: at, Err: syscall.ECONNREFUSED}
	unknown := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	const distrusted = "certificate of service.test:80 not trusted: "
	noTLS := "TLS handshake failed: service.test:80 does not speak TLS: check the scheme and the port"
	for _, tc := range []struct {
		err   error
		words string
	}{
		{ErrTooLarge, "the response is too large"},
		{errMiscounted, "the response body's Read returned an impossible count"},
		{context.Canceled, "the call was canceled"},
		{context.DeadlineExceeded, "deadline exceeded: the HTTP client's"},
		{os.ErrDeadlineExceeded, "timeout"},
		{dial(os.ErrDeadlineExceeded), "timeout while connecting to service.test:80"},
		{proxy(os.ErrDeadlineExceeded), "timeout while connecting to the proxy"},
		{dial(syscall.ECONNREFUSED), "connection refused by service.test:80"},
		{proxy(refused), "connection refused by the proxy 10.0.0.1:3128"},
		{proxy(syscall.ECONNREFUSED), "connection refused by the proxy"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "connection reset by the peer"},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, "connection reset by the peer"},
		{io.EOF, "connection closed before the response was complete"},
		{io.ErrUnexpectedEOF, "connection closed before the response was complete"},
		{dial(&net.DNSError{Name: canary}), "name lookup failed: service.test:80"},
		{proxy(dial(&net.DNSError{Name: "proxy.test"})), "name lookup failed: the proxy proxy.test"},
		{&proxyError{"p:1", "s:2", 403}, "the proxy p:1 refused the connection to s:2: HTTP 403"},
		{&proxyError{"p:1", "s:2", 407},
			"the proxy p:1 refused the connection to s:2: HTTP 407: proxy authentication required"},
		{x509.CertificateInvalidError{Reason: x509.NameMismatch}, distrusted + "not valid"},
		{x509.CertificateInvalidError{Reason: x509.Expired},
			distrusted + "expired or not yet valid: check this machine's clock"},
		{&tls.CertificateVerificationError{Err: errBroken}, distrusted + "not valid"},
		{unknown, distrusted + "unknown authority: add its CA to the RootCAs of the TLS configuration"},
		{x509.HostnameError{Host: canary}, distrusted + "issued for another host: check the base URL"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: " + canary)}, "TLS handshake failed"},
		{tls.RecordHeaderError{Msg: canary}, noTLS},
		{http.ErrSchemeMismatch, noTLS},
		{fmt.Errorf("malformed HTTP response %q", canary), "not an HTTP response"},
		{errNoResponse, "not an HTTP response"},
		{errors.New("net/http: server response headers exceeded 65536 bytes; aborted"), "response headers too large"},
		{errors.New(canary), "the HTTP client returned an error (*errors.errorString)"},
		{dial(syscall.EHOSTUNREACH), "connection failed: service.test:80"},
	} {
		got := cause(t, tc.err)
		assert.EqualError(t, got, tc.words)
		assert.ErrorIs(t, got, tc.err)
		assert.NoError(t, errors.Unwrap(got))
		ne, ok := errors.AsType[net.Error](got)
		assert.True(t, ok && ne == got && !ne.Temporary()) //nolint:staticcheck // part of the interface
		assert.Equal(t, strings.HasPrefix(tc.words, "timeout") || strings.HasPrefix(tc.words, "deadline"), ne.Timeout())
	}
}

func TestWhoseDeadlineWasExceeded(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	deaf := func(context.Context) error { pause(time.Hour); return nil }
	ends := func(context.Context) error { return context.DeadlineExceeded }
	late := fail(context.DeadlineExceeded)
	const limiter = "the rate limiter returned an error: "
	for name, tc := range map[string]struct {
		class             Class
		context, deadline time.Duration // 0: none
		limit             func(context.Context) error
		doer              step
		want              string
	}{
		"by the context":          {Write, time.Second, time.Minute, nil, hang, "deadline exceeded: the context's"},
		"by both":                 {Write, time.Second, time.Second, nil, hang, "deadline exceeded: the context's"},
		"by an error of its own":  {Write, time.Second, 0, nil, slow(io.EOF), "deadline exceeded: the context's"},
		"by the call":             {Write, time.Minute, time.Second, nil, hang, "deadline exceeded: WithTimeout's"},
		"by the call, of a read":  {Read, time.Minute, time.Second, nil, hang, "deadline exceeded: WithTimeout's"},
		"by the attempt":          {Read, time.Hour, time.Hour, nil, hang, "deadline exceeded: RetryPolicy.Attempt's"},
		"by its context":          {Write, time.Hour, 0, nil, late, "deadline exceeded: the HTTP client's"},
		"the call's, in a wait":   {Read, 0, time.Second, wait, hang, limiter + "deadline exceeded: WithTimeout's"},
		"the context's in a wait": {Read, time.Second, 0, wait, hang, limiter + "deadline exceeded: the context's"},
		"by the limiter":          {Read, time.Minute, 0, ends, hang, limiter + "deadline exceeded: the limiter's"},
		"by a limiter that waits": {Read, 0, time.Minute, deaf, hang, "deadline exceeded: WithTimeout's"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, ctx := post(t, service, tc.class), t.Context()
				if tc.deadline > 0 {
					in.Deadline = time.Now().Add(tc.deadline)
				}
				if tc.context > 0 {
					limited, cancel := context.WithTimeout(ctx, tc.context)
					defer cancel()
					ctx = limited
				}
				s := scripted(tc.doer)
				r := New(Config{Doer: s.client(), Policy: policy, Limit: tc.limit}).Do(ctx, in)
				require.EqualError(t, r.Err, tc.want)
				require.ErrorIs(t, r.Err, context.DeadlineExceeded)
				assert.Equal(t, s.requests() == 0, r.NotSent)
			})
		})
	}
}

func TestTimeoutOfACallersClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		hc := &http.Client{Transport: scripted(hang), Timeout: time.Second}
		r := New(Config{Doer: hc}).Do(t.Context(), get(t, service))
		require.EqualError(t, r.Err, "deadline exceeded: the HTTP client's")
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// slow fails after the context's deadline.
func slow(err error) step {
	return func(r *http.Request) (*http.Response, error) { _, _ = hang(r); return nil, err }
}

func TestHarmlessTypesOfErrorsAreFound(t *testing.T) {
	lookup := &net.DNSError{Err: "no such host", Name: "service.test", IsTimeout: true}
	dns, ok := errors.AsType[*net.DNSError](cause(t, &net.OpError{Op: "dial", Err: lookup}))
	require.True(t, ok)
	assert.Same(t, lookup, dns)

	untrusted := cause(t, &tls.CertificateVerificationError{Err: x509.HostnameError{Host: "service.test"}})
	assert.True(t, is[*tls.CertificateVerificationError](untrusted))
	assert.True(t, is[x509.HostnameError](untrusted))
	assert.False(t, is[x509.UnknownAuthorityError](untrusted))
	assert.True(t, is[x509.UnknownAuthorityError](cause(t, x509.UnknownAuthorityError{})))
	assert.True(t, is[x509.CertificateInvalidError](cause(t, x509.CertificateInvalidError{})))
	assert.True(t, is[x509.SystemRootsError](cause(t, x509.SystemRootsError{})))

	err := cause(t, &net.OpError{Op: "dial", Err: os.NewSyscallError(canary, syscall.ECONNRESET)})
	errno, ok := errors.AsType[syscall.Errno](err)
	require.True(t, ok)
	assert.Equal(t, syscall.ECONNRESET, errno)
	assert.False(t, is[*url.Error](err) || is[*net.OpError](err) || is[*os.SyscallError](err), "but no others")
}

// coded is an error type of a caller's doer.
type coded int

func (c coded) Error() string { return canary }

func TestSentinelOfACallersDoer(t *testing.T) {
	err := cause(t, errors.Join(errBroken, coded(7)))
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, err, coded(7))
	require.EqualError(t, err, "the HTTP client returned an error (*errors.joinError)")
	assert.False(t, is[coded](err))

	again := cause(t, errors.Join(cause(t, io.EOF), errBroken)) // the doer is another of our clients
	require.EqualError(t, again, "connection closed before the response was complete")
	require.ErrorIs(t, again, errBroken)
	require.ErrorIs(t, again, io.EOF)
}
