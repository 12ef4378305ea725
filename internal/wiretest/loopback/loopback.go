package loopback

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// loopbackService is a service on loopback. It reads each request to its last byte,
// counts it, and does with the connection what the test says.
type Service struct {
	Base     string
	Requests atomic.Int32

	mu    sync.Mutex
	conns []net.Conn
}

func Serve(t *testing.T, reply func(net.Conn)) *Service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &Service{Base: "http://" + listener.Addr().String() + "/api/v1"}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed by the test's end
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			running.Go(func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				s.Requests.Add(1)
				reply(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		running.Wait()
	})
	return s
}

// sayAndClose writes text, and closes the connection.
func Say(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// resetConn ends the connection so that the client sees a reset.
func Reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// replyText is the text of a reply: a status line's end, further header lines, a body.
func Response(status, header, body string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" + header +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\nConnection: close\r\n\r\n" + body
}

// closedPort is the base URL of a service that is not there. The port is that of a
// connection: once free, it might become that of the next server.
func ClosedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return "http://" + conn.LocalAddr().String() + "/api/v1"
}
