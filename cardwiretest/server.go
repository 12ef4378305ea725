package cardwiretest

import (
	"bytes"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/iotest"
)

// Server is a [Service] that listens on loopback. [NewServer] creates one: the zero
// value and nil are not usable.
type Server struct {
	// Service is the service that listens; its methods are also the server's.
	*Service
	// URL is the base URL, which ends in /api/v1.
	URL string
	// Key is the API key.
	Key string

	tb testing.TB
}

// NewServer starts a service that listens on a port of 127.0.0.1 until tb and
// its subtests end.
func NewServer(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	service := New(opts...)
	server := httptest.NewUnstartedServer(service)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // keeps the test's output clean
	server.Start()
	tb.Cleanup(func() {
		close(service.done)
		server.CloseClientConnections() // of clients that do not send the rest of a request
		server.Close()                  // waits for the last request
	})
	return &Server{Service: service, URL: server.URL + basePath, Key: service.key, tb: tb}
}

// ServeHTTP responds to a request whose path begins with /api/v1.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.handle(r)
	if err != nil {
		panic(http.ErrAbortHandler) // ends the connection
	}
	if a.reset {
		reset(w)
		return
	}
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.sent()) // the client may have disconnected
	if a.cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// sent returns what the client gets of the body.
func (a *response) sent() []byte {
	if a.cut {
		return a.body[:len(a.body)/2]
	}
	return a.body
}

// reset ends the connection itself, because net/http would respond first.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = conn.Close() }()
	if tlsConn, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tlsConn.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Close then sends RST, not FIN
	}
	_ = conn.Close()
}

// RoundTrip responds to a request in process, whatever its host, as over a new
// connection: it honors the context of the request, and a reset or closed connection
// is an error.
func (s *Service) RoundTrip(r *http.Request) (*http.Response, error) {
	if r == nil || r.URL == nil {
		return nil, errors.New("cardwiretest: the request has no URL")
	}
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a, err := s.handle(r)
	if err != nil {
		return nil, err
	}
	if a.reset {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	var body io.Reader = bytes.NewReader(a.sent())
	if a.cut {
		body = io.MultiReader(body, iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	header := a.header.Clone()
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(a.body)), Request: r, Body: io.NopCloser(body),
	}, nil
}
