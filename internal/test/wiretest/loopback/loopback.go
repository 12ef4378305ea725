// Package loopback is a service on loopback, for tests of what happens to connections. It
// does not import the client, so that tests of every package can import it.
package loopback

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Service is a service on loopback. It reads one request of each connection to its last byte
// and counts it; the test decides what happens to the connection then.
type Service struct {
	Base     string // URL
	Requests atomic.Int32
}

// Serve returns a service that calls respond after each request, and then closes the connection.
func Serve(t *testing.T, respond func(net.Conn)) *Service {
	t.Helper()
	s := new(Service)
	s.Base = Listen(t, func(conn net.Conn) {
		defer HangUp(conn)
		if ReadRequest(bufio.NewReader(conn)) {
			s.Requests.Add(1)
			respond(conn)
		}
	}) + "/api/v1"
	return s
}

// Listen returns the URL of a server that calls serve with each connection. All connections
// are closed when the test ends, but serve has to close its own if the client waits for that.
func Listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	var conns sync.Map
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed when the test ends
			}
			conns.Store(conn, nil)
			running.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Range(func(conn, _ any) bool { HangUp(conn.(net.Conn)); return true })
		running.Wait()
	})
	return "http://" + listener.Addr().String()
}

// ReadRequest reads a request to its last byte, and reports whether there was one.
func ReadRequest(in *bufio.Reader) bool {
	r, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

// Say returns a function that writes s.
func Say(s string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, s) }
}

// HangUp closes the connection.
func HangUp(conn net.Conn) { _ = conn.Close() }

// Reset closes the connection so that the client sees a reset.
func Reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	HangUp(conn)
}

// Response returns a response: the end of its status line, further header lines, a body.
func Response(status, header, body string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" + header +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\nConnection: close\r\n\r\n" + body
}

// Gzip compresses s.
func Gzip(tb testing.TB, s string) string {
	tb.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, s)
	require.NoError(tb, errors.Join(err, w.Close()))
	return b.String()
}

// ClosedPort returns a URL with no server at its address. The port is that of a connection:
// if it were free, it might become that of the next server.
func ClosedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { HangUp(conn) })
	return "http://" + conn.LocalAddr().String()
}
