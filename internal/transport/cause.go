package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/cardwire/cardwire-go/internal/mask"
)

// failure seals an error: its message consists of fixed words and of the host and port
// that it is about, because those of net/http quote URLs and even the bytes of a response.
// If the caller's context is done, that is the cause that the caller knows about.
func (x *exchange) failure(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // go-retryablehttp's http.Client put it around RoundTrip's
	}
	words := x.words(err)
	if done := x.ctx.Err(); done != nil {
		err = errors.Join(done, context.Cause(x.ctx), err)
	}
	return &sealed{words, mask.Hide(err)}
}

// sealed hides the messages of the network: it has no Unwrap. Errors of another call are the
// client's concern, which knows its own sentinels.
type sealed struct {
	words string
	raw   mask.Hidden[error]
}

func (s *sealed) Error() string { return s.words }

// Timeout makes it a net.Error.
func (s *sealed) Timeout() bool { return timedOut(s.raw()) }

// Temporary makes it a net.Error. It is no advice on whether to call again.
func (s *sealed) Temporary() bool { return false }

func (s *sealed) Is(target error) bool { return errors.Is(s.raw(), target) }

// As finds only types that are known to be harmless. net.Error is not in the list:
// the sealed error itself is one.
func (s *sealed) As(target any) bool {
	switch target.(type) {
	case *x509.UnknownAuthorityError, *x509.HostnameError, *x509.CertificateInvalidError,
		*x509.SystemRootsError, **tls.CertificateVerificationError, **net.DNSError, *syscall.Errno:
		return errors.As(s.raw(), target)
	}
	return false
}

const (
	contexts     = "the context's"
	proxyConnect = "proxyconnect" // the operation of connecting to a proxy
)

// words describes an error by its kind.
func (x *exchange) words(err error) string {
	stopped, _ := errors.AsType[*stoppedError](err)
	overdue := errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.Is(x.ctx.Err(), context.Canceled), errors.Is(err, context.Canceled):
		return "the call was canceled"
	case stopped != nil && stopped.what != "" && overdue:
		return stopped.what + ": deadline exceeded: " + x.whose(err, "the limiter's")
	case stopped != nil && stopped.what != "":
		return stopped.what
	case x.ctx.Err() != nil, overdue:
		return "deadline exceeded: " + x.whose(err, "the HTTP client's")
	}
	return x.wordsOfNetwork(err) + x.unusedMock(err)
}

// unusedMock says that a mock in the place of net/http's default transport gets no request of the client's own
// connections.
func (x *exchange) unusedMock(err error) string {
	shared := fmt.Sprintf("%T", http.DefaultTransport) //nolint:forbidigo // only its type is looked at
	if x.engine.doer != nil || !connecting(err) || !strings.Contains(shared, "mock") {
		return ""
	}
	return ": this client does not use the mock in http.DefaultTransport: pass WithHTTPClient(http.DefaultClient)"
}

// whose returns whose deadline passed, or otherwise if neither the caller's nor the call's has.
func (x *exchange) whose(err error, otherwise string) string {
	next := x.bound()
	switch passed := !next.at.IsZero() && !time.Now().Before(next.at); {
	case x.ctx.Err() != nil:
		return contexts
	case passed, errors.Is(err, errExpired):
		return next.whose
	}
	return otherwise
}

func (x *exchange) wordsOfNetwork(err error) string {
	refused, isRefused := errors.AsType[*proxyError](err)
	switch {
	case errors.Is(err, ErrTooLarge):
		return "the response is too large"
	case errors.Is(err, errMiscounted):
		return "the response body's Read returned an impossible count"
	case distrust(err) != "":
		return "certificate of " + x.peer(err) + " not trusted: " + distrust(err)
	case speaksNoTLS(err):
		return "TLS handshake failed: " + x.peer(err) + " does not speak TLS: check the scheme and the port"
	case handshakeFailed(err):
		return "TLS handshake failed"
	case is[*handshakeError](err) && hungUp(err):
		return "TLS handshake failed: connection reset by " + x.peer(err) + ": " +
			"a firewall may not accept what this Go release offers: try GODEBUG=tlsmlkem=0"
	case errors.Is(err, errUnasked):
		return x.peer(err) + " sent something before the request"
	case is[*net.DNSError](err):
		return "name lookup failed: " + x.peer(err)
	case isRefused:
		return refused.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused by " + x.peer(err)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset by the peer"
	case timedOut(err) && dialFailed(err):
		return "timeout while connecting to " + x.peer(err)
	case timedOut(err):
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed before the response was complete"
	case flooded(err):
		return "response headers too large"
	case errors.Is(err, errNoResponse), strings.Contains(err.Error(), "malformed"):
		return "not an HTTP response"
	case dialFailed(err):
		return "connection failed: " + x.peer(err)
	case x.engine.doer != nil && strings.HasPrefix(ofDoer(err).Error(), noResponder):
		at := url.URL{Scheme: x.in.URL.Scheme, Host: x.in.URL.Host, Path: x.in.URL.Path + x.in.Path}
		return noResponder + ": register one for " + x.in.Method + " " + at.String()
	case x.engine.doer != nil:
		return fmt.Sprintf("the HTTP client returned an error (%T)", ofDoer(err))
	}
	return "connection failed"
}

// noResponder is the message of httpmock for a request that no test expects.
const noResponder = "no responder found"

// ofDoer is what a doer returned, without what http.Client adds.
func ofDoer(err error) error {
	for {
		outer, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = outer.Err
	}
}

// peer names what could not be reached: the host and port of the request, or what the error
// contains of those of the proxy.
func (x *exchange) peer(err error) string {
	outer, _ := errors.AsType[*net.OpError](err)
	if outer == nil || outer.Op != proxyConnect {
		return hostPort(x.in.URL)
	}
	if lookup, ok := errors.AsType[*net.DNSError](outer.Err); ok {
		return "the proxy " + lookup.Name
	}
	if dial, ok := errors.AsType[*net.OpError](outer.Err); ok && dial.Addr != nil {
		return "the proxy " + dial.Addr.String()
	}
	return "the proxy"
}

func hostPort(u *url.URL) string {
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// permanent reports whether the same request would fail in the same way.
func permanent(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, errExpired) || distrust(err) != "" ||
		handshakeFailed(err) || flooded(err)
}

// connecting reports whether an error is about getting a connection. It proves
// nothing, since it may be about a redirect: use it for reports only.
func connecting(err error) bool {
	return dialFailed(err) || is[*proxyError](err) || is[*net.DNSError](err) || distrust(err) != ""
}

func dialFailed(err error) bool {
	op := operation(err)
	return op == "dial" || op == proxyConnect
}

// distrust returns why a certificate is not trusted; "": the error is about something else.
func distrust(err error) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case is[x509.UnknownAuthorityError](err):
		return "unknown authority: add its CA to the RootCAs of the TLS configuration"
	case is[x509.HostnameError](err):
		return "issued for another host: check the base URL"
	case isInvalid && invalid.Reason == x509.Expired:
		return "expired or not yet valid: check this machine's clock"
	case isInvalid, is[*tls.CertificateVerificationError](err):
		return "not valid"
	}
	return ""
}

// handshakeFailed covers alerts of either side and peers that do not speak TLS.
func handshakeFailed(err error) bool {
	op := operation(err)
	return op == "remote error" || op == "local error" || speaksNoTLS(err)
}

// handshakeError is the error of a TLS handshake.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }

// hungUp reports whether the peer ended the connection.
func hungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
}

// speaksNoTLS also recognizes the error by which http.Client replaces a tls.RecordHeaderError.
func speaksNoTLS(err error) bool {
	return is[tls.RecordHeaderError](err) || errors.Is(err, http.ErrSchemeMismatch)
}

// flooded matches the message, because net/http gives this error no type.
func flooded(err error) bool {
	return strings.Contains(err.Error(), "response headers exceeded")
}

func timedOut(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// operation returns the network operation that failed, or "".
func operation(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op
	}
	return ""
}
