package chaos

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// line is what happens to a connection, whatever the service does.
type line func(net.Conn) net.Conn

// faulty accepts connections on the line; nil: nothing happens to them.
type faulty struct {
	net.Listener
	line line
}

func (f faulty) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	if err != nil || f.line == nil {
		return conn, err
	}
	return f.line(conn), nil
}

// leave closes the service's side: what the client still sends is not met with a reset.
func leave(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// linger leaves, and closes the connection when the client has.
func linger(conn net.Conn) {
	leave(conn)
	_, _ = io.Copy(io.Discard, conn)
	loopback.HangUp(conn)
}

// resetAtOnce resets the connection before anything has arrived.
func resetAtOnce(conn net.Conn) net.Conn {
	loopback.Reset(conn)
	return conn
}

// anyTime ends the connection at a moment that is drawn, while a request is on its way.
func anyTime(end func(net.Conn)) line {
	return func(conn net.Conn) net.Conn {
		time.AfterFunc(rand.N(2*time.Millisecond), func() { end(conn) }) //nolint:gosec // no secret
		return conn
	}
}

// saying writes a response at once, before there is a request.
func saying(text string) line {
	return func(conn net.Conn) net.Conn {
		_, _ = io.WriteString(conn, text)
		return conn
	}
}

var errLine = errors.New("the line is cut")

// cut lets so many bytes through, and then closes the connection.
type cut struct {
	net.Conn
	in, out int // bytes; negative: all
}

func (c *cut) Read(p []byte) (n int, err error) {
	if c.in < 0 {
		return c.Conn.Read(p)
	}
	n, err = c.Conn.Read(p[:min(len(p), c.in)])
	if c.in -= n; c.in == 0 {
		loopback.HangUp(c.Conn)
		return 0, errLine
	}
	return n, err
}

func (c *cut) Write(p []byte) (n int, err error) {
	if c.out < 0 {
		return c.Conn.Write(p)
	}
	n, err = c.Conn.Write(p[:min(len(p), c.out)])
	if c.out -= n; c.out == 0 {
		loopback.HangUp(c.Conn)
		return n, errLine
	}
	return n, err
}

func cutIn(bytes int) line {
	return func(conn net.Conn) net.Conn { return &cut{conn, bytes, -1} }
}

func cutOut(bytes int) line {
	return func(conn net.Conn) net.Conn { return &cut{conn, -1, bytes} }
}

// deaf lets nothing through to the service until the client has gone.
type deaf struct{ net.Conn }

func (d deaf) Read([]byte) (int, error) {
	_, _ = io.Copy(io.Discard, d.Conn)
	return 0, io.EOF
}

// slow sends a response late, in pieces.
type slow struct {
	net.Conn
	after, each time.Duration
	piece       int
}

func (s *slow) Write(p []byte) (n int, err error) {
	<-time.After(s.after)
	for err == nil && n < len(p) {
		<-time.After(s.each)
		var m int
		m, err = s.Conn.Write(p[n:min(len(p), n+s.piece)])
		n += m
	}
	return n, err
}

func slowly(after, each time.Duration, piece int) line {
	return func(conn net.Conn) net.Conn { return &slow{conn, after, each, piece} }
}
