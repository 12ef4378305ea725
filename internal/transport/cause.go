package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// cause seals an error: its message is one of a few fixed ones, because those of
// net/http quote URLs and even the bytes of a response. errors.Is finds the error
// itself; errors.As finds only types that contain nothing of the request or the
// response. cause(nil) is nil.
func cause(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*sealed); ok { //nolint:errorlint // a wrapped one needs a seal like any other error
		return err
	}
	return seal(words(err), err)
}

// sealed keeps the error in a closure, where neither fmt nor reflection finds it, and
// has no Unwrap. It hides the messages of the network. Errors of another call are the
// client's concern, which knows its own sentinels.
type sealed struct {
	words string
	raw   func() error
}

func seal(words string, err error) error {
	return &sealed{words: words, raw: func() error { return err }}
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

// words describes an error by its kind.
func words(err error) string {
	switch {
	case errors.Is(err, ErrTooLarge):
		return "the response is too large"
	case errors.Is(err, errMiscounted):
		return "the response body's Read returned an impossible count"
	case errors.Is(err, context.Canceled):
		return "the call was canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case untrusted(err):
		return "certificate not trusted: " + distrust(err)
	case handshakeFailed(err):
		return "TLS handshake failed"
	case is[*net.DNSError](err):
		return "name lookup failed"
	case errors.Is(err, errProxyRefused), operation(err) == "proxyconnect":
		return "the proxy refused the connection"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset by the peer"
	case timedOut(err):
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed before the response was complete"
	case flooded(err):
		return "response headers too large"
	case errors.Is(err, errNoResponse), strings.Contains(err.Error(), "malformed"):
		return "not an HTTP response"
	}
	return "connection failed"
}

// permanent reports whether the same request would fail in the same way.
func permanent(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, errExpired) || untrusted(err) || handshakeFailed(err) || flooded(err)
}

// connecting reports whether an error is about getting a connection. It proves
// nothing, since it may be about a redirect: use it for reports only.
func connecting(err error) bool {
	op := operation(err)
	return op == "dial" || op == "proxyconnect" || errors.Is(err, errProxyRefused) ||
		is[*net.DNSError](err) || untrusted(err)
}

func untrusted(err error) bool {
	return is[*tls.CertificateVerificationError](err) || is[x509.UnknownAuthorityError](err) ||
		is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err)
}

func distrust(err error) string {
	invalid, _ := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case is[x509.UnknownAuthorityError](err):
		return "unknown authority"
	case is[x509.HostnameError](err):
		return "issued for another host"
	case invalid.Cert != nil && invalid.Reason == x509.Expired:
		return "expired or not yet valid"
	}
	return "not valid"
}

// handshakeFailed covers alerts of either side and peers that do not speak TLS.
func handshakeFailed(err error) bool {
	op := operation(err)
	return op == "remote error" || op == "local error" || is[tls.RecordHeaderError](err)
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

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
