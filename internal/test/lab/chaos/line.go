package chaos

import (
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
		time.AfterFunc(rand.N(2*time.Millisecond), func() { end(conn) })
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

// cut lets so many bytes through to the service, and then closes the connection.
type cut struct {
	net.Conn
	bytes int
}

func (c *cut) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p[:min(len(p), c.bytes)])
	if c.bytes -= n; c.bytes == 0 {
		loopback.HangUp(c.Conn)
		return 0, io.ErrClosedPipe
	}
	return n, err
}

func cutAfter(bytes int) line {
	return func(conn net.Conn) net.Conn { return &cut{conn, bytes} }
}

// deaf lets nothing through to the service until the client has gone.
type deaf struct{ net.Conn }

func (d deaf) Read([]byte) (int, error) {
	_, _ = io.Copy(io.Discard, d.Conn)
	return 0, io.EOF
}
