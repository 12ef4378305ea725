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

// cause seals an error: its text is one of a few fixed ones, because those of
// net/http quote URLs and even the bytes of an answer. errors.Is sees through
// to the error itself; errors.As finds only types that hold nothing of the
// request or the answer. cause(nil) is nil.
func cause(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*sealed); ok { //nolint:errorlint // one that is wrapped needs a seal like any other
		return err
	}
	return seal(words(err), err)
}

// sealed keeps the error in a closure, where neither fmt nor reflection finds
// it, and has no Unwrap. It hides what the network said; that an error may tell
// of another call is for the client to see to, which knows its own sentinels.
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

// Temporary makes it a net.Error. Whether to call again is not for it to say.
func (s *sealed) Temporary() bool { return false }

func (s *sealed) Is(target error) bool { return errors.Is(s.raw(), target) }

// As lets through what is known to be harmless. net.Error is not in the list:
// errors.As finds the sealed error itself to be one.
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
		return "the answer is too large"
	case errors.Is(err, errMiscounted):
		return "the response body's Read returned an impossible count"
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case untrusted(err):
		return "certificate not trusted: " + distrust(err)
	case handshakeFailed(err):
		return "TLS handshake failed"
	case is[*net.DNSError](err):
		return "name lookup failed"
	case errors.Is(err, errProxyRefused), operation(err) == "proxyconnect":
		return "proxy refused"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset by the peer"
	case timedOut(err):
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed before the answer was complete"
	case flooded(err):
		return "answer headers too large"
	case errors.Is(err, errNoAnswer), strings.Contains(err.Error(), "malformed"):
		return "not an HTTP answer"
	}
	return "connection failed"
}

// hopeless says that the same request would fail in the same way.
func hopeless(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, errExpired) || untrusted(err) || handshakeFailed(err) || flooded(err)
}

// connecting says that an error is about getting a connection. It is good for a
// report only: after a redirect it would prove nothing.
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

// flooded matches a text, because net/http gives this error no type.
func flooded(err error) bool {
	return strings.Contains(err.Error(), "response headers exceeded")
}

func timedOut(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// operation is what the network was asked to do when it failed, or "".
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
