package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var quietLog = log.New(io.Discard, "", 0) //nolint:forbidigo // for a test server that would write to stderr

const canary = "4111111111111111"

// inURL wraps an error as http.Client does, with what must not be told.
func inURL(err error) error {
	return &url.Error{Op: "Get", URL: "https://k:" + canary + "@service.test/?pan=" + canary, Err: err}
}

func TestCauseHasFixedWords(t *testing.T) {
	for words, errs := range map[string][]error{
		"the response is too large":                             {ErrTooLarge},
		"the response body's Read returned an impossible count": {errMiscounted},
		"the call was canceled":                                 {context.Canceled},
		"deadline exceeded":                                     {context.DeadlineExceeded},
		"timeout":                                               {os.ErrDeadlineExceeded, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}},
		"connection refused":                                    {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}},
		"connection reset by the peer": {
			&net.OpError{Op: "read", Err: syscall.ECONNRESET}, &net.OpError{Op: "write", Err: syscall.EPIPE},
		},
		"connection closed before the response was complete": {io.EOF, io.ErrUnexpectedEOF},
		"name lookup failed":                         {&net.OpError{Op: "dial", Err: &net.DNSError{Name: canary}}},
		"the proxy refused the connection":           {errProxyRefused, &net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED}},
		"certificate not trusted: not valid":         {x509.CertificateInvalidError{Reason: x509.NameMismatch}},
		"TLS handshake failed":                       {&net.OpError{Op: "remote error", Err: errors.New("tls: " + canary)}, tls.RecordHeaderError{Msg: canary}},
		"not an HTTP response":                       {fmt.Errorf("malformed HTTP response %q", canary), errNoResponse},
		"response headers too large":                 {errors.New("net/http: server response headers exceeded 65536 bytes; aborted")},
		"connection failed":                          {errors.New(canary), syscall.EHOSTUNREACH},
		"certificate not trusted: unknown authority": {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
	} {
		for _, err := range errs {
			assert.EqualError(t, cause(inURL(err)), words)
			assert.ErrorIs(t, cause(inURL(err)), err)
		}
	}
	assert.NoError(t, cause(nil))
}

func TestCauseTellsNothingElse(t *testing.T) {
	sealed := cause(inURL(fmt.Errorf("malformed HTTP response %q", canary)))
	holder := struct {
		Err  error
		list []error
	}{sealed, []error{sealed}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&out, verb, sealed)
		fmt.Fprintf(&out, verb, holder)
		fmt.Fprintf(&out, verb, &holder)
	}
	encoded, err := json.Marshal(sealed)
	require.NoError(t, err)
	out.Write(encoded)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "err", sealed, "in", holder)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "err", sealed, "in", holder)
	assert.NotContains(t, out.String(), canary)
	assert.NotContains(t, out.String(), fmt.Sprintf("%x", canary))
	assert.NotContains(t, out.String(), "service.test")
	assert.NoError(t, errors.Unwrap(sealed))
}

func TestCauseLetsHarmlessTypesThrough(t *testing.T) {
	lookup := &net.DNSError{Err: "no such host", Name: "service.test", IsTimeout: true}
	dns, ok := errors.AsType[*net.DNSError](cause(inURL(&net.OpError{Op: "dial", Err: lookup})))
	require.True(t, ok)
	assert.Same(t, lookup, dns)

	untrusted := cause(inURL(&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "service.test"}}))
	assert.True(t, is[*tls.CertificateVerificationError](untrusted))
	assert.True(t, is[x509.HostnameError](untrusted))
	assert.False(t, is[x509.UnknownAuthorityError](untrusted))
	assert.True(t, is[x509.UnknownAuthorityError](cause(x509.UnknownAuthorityError{})))
	assert.True(t, is[x509.CertificateInvalidError](cause(x509.CertificateInvalidError{})))
	assert.True(t, is[x509.SystemRootsError](cause(x509.SystemRootsError{})))

	errno, ok := errors.AsType[syscall.Errno](cause(inURL(os.NewSyscallError("read", syscall.ECONNRESET))))
	require.True(t, ok)
	assert.Equal(t, syscall.ECONNRESET, errno)
}

func TestCauseHidesEveryOtherType(t *testing.T) {
	err := cause(inURL(&net.OpError{Op: "dial", Err: &os.SyscallError{Syscall: canary, Err: syscall.ECONNREFUSED}}))
	assert.False(t, is[*url.Error](err))
	assert.False(t, is[*net.OpError](err))
	assert.False(t, is[*os.SyscallError](err))
}

func TestCauseIsANetError(t *testing.T) {
	for err, timeout := range map[error]bool{
		context.DeadlineExceeded: true, os.ErrDeadlineExceeded: true, io.EOF: false, context.Canceled: false,
	} {
		sealed := cause(inURL(err))
		ne, ok := errors.AsType[net.Error](sealed)
		require.True(t, ok)
		assert.Same(t, sealed, ne)
		assert.Equal(t, timeout, ne.Timeout())
		assert.False(t, ne.Temporary()) //nolint:staticcheck // part of the interface
	}
}

func TestCauseOfASealedErrorIsItself(t *testing.T) {
	sealed := cause(io.EOF)
	assert.Same(t, sealed, cause(sealed))

	again := cause(inURL(errors.Join(sealed, errBroken)))
	require.EqualError(t, again, sealed.Error())
	require.ErrorIs(t, again, errBroken)
	require.ErrorIs(t, again, io.EOF)
}

// coded is an error type of a caller's doer.
type coded int

func (c coded) Error() string { return canary }

func TestSentinelOfACallersDoer(t *testing.T) {
	r := New(Config{Doer: scripted(fail(inURL(errors.Join(errBroken, coded(7))))).client()}).Do(t.Context(), get(t, service))
	require.ErrorIs(t, r.Err, errBroken)
	require.ErrorIs(t, r.Err, coded(7))
	require.EqualError(t, r.Err, "connection failed")
	assert.False(t, is[coded](r.Err))
}
