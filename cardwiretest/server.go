package cardwiretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("cardwiretest: listening on 127.0.0.1 failed: %v", err)
		return nil
	}
	tb.Cleanup(service.serve(listener))
	return &Server{
		Service: service, URL: "http://" + listener.Addr().String() + basePath,
		Key: service.key, tb: tb,
	}
}

// serve returns a function that ends everything that serve began.
func (s *Service) serve(l net.Listener) (stop func()) {
	var running sync.RWMutex // read-locked by requests in progress
	served := make(chan struct{})
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.RLock()
			defer running.RUnlock()
			s.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // keeps the test's output clean
	}
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	return func() {
		close(s.done)
		_ = server.Close()
		<-served
		running.Lock() // the last request has ended
		defer running.Unlock()
		s.cancelPending()
	}
}

// ServeHTTP responds to a request whose path begins with /api/v1.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.handle(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has disconnected, or the server closes
	}
	switch a.delivery {
	case reset, closed, notHTTP:
		a.hijack(w)
		return
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	switch a.delivery {
	case whole:
		_, _ = w.Write(a.body) // the client may have disconnected
	case cut:
		_, _ = w.Write(a.body[:a.keep])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case drip:
		s.drip(r.Context(), w, a)
	}
}

// hijack ends the connection itself, because net/http would respond first.
func (a *response) hijack(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = conn.Close() }()
	if tlsConn, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tlsConn.NetConn()
	}
	switch a.delivery {
	case reset:
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // Close then sends RST, not FIN
		}
		_ = conn.Close()
	case notHTTP:
		_, _ = conn.Write(a.body)
	}
}

func (s *Service) drip(ctx context.Context, w http.ResponseWriter, a response) {
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	for body := a.body; len(body) > 0; {
		if s.wait(ctx, a.pause) != nil {
			panic(http.ErrAbortHandler)
		}
		n := min(a.piece, len(body))
		_, _ = w.Write(body[:n])
		_ = flusher.Flush()
		body = body[n:]
	}
}

// maxHeader is the maximum size of a header in process.
const maxHeader = 64 << 10

// RoundTrip responds to a request in process, whatever its host, as over a new
// connection: it honors the context of the request, and a reset or closed connection
// is an error. A header of more than 64 KiB is the error that a transport with that
// limit returns. Compressed bodies are not decompressed.
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
	switch a.delivery {
	case reset:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case closed:
		return nil, io.EOF
	case notHTTP:
		return nil, fmt.Errorf("net/http: HTTP/1.x transport connection broken: malformed HTTP response %q",
			bytes.TrimSpace(a.body))
	}
	return s.response(r, a)
}

func (s *Service) response(r *http.Request, a response) (*http.Response, error) {
	header := a.header.Clone()
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	size := 0
	for name, values := range header {
		size += len(name) + len(values[0]) + len(": \r\n")
	}
	if size > maxHeader {
		return nil, fmt.Errorf("net/http: server response headers exceeded %d bytes; aborted", maxHeader)
	}
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(a.body)), Request: r,
		Body: &responseBody{service: s, ctx: r.Context(), response: a},
	}, nil
}

// responseBody is the body of a response in process.
type responseBody struct {
	service  *Service
	ctx      context.Context
	response response
	at       int
	closed   bool
}

func (b *responseBody) Read(p []byte) (int, error) {
	a := &b.response
	end := len(a.body)
	if a.delivery == cut {
		end = a.keep
	}
	switch err := b.ctx.Err(); {
	case b.closed:
		return 0, errors.New("http: read on closed response body")
	case err != nil:
		return 0, err
	case len(p) == 0:
		return 0, nil
	case b.at == end && a.delivery == cut:
		return 0, io.ErrUnexpectedEOF
	case b.at == end:
		return 0, io.EOF
	}
	if a.delivery == drip {
		if err := b.service.wait(b.ctx, a.pause); err != nil {
			return 0, err
		}
		end = min(end, b.at+a.piece)
	}
	n := copy(p, a.body[b.at:end])
	b.at += n
	return n, nil
}

func (b *responseBody) Close() error {
	b.closed = true
	return nil
}
