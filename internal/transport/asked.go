package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// errUnasked means that a connection had something to read before its request was begun.
var errUnasked = errors.New("transport: the peer sent something before the request")

// askedConn ends where something comes before the first byte of a request: that is no response to
// it, and net/http would write it to the standard logger, or take it for one.
type askedConn struct {
	net.Conn
	trace *connTrace    // of the Write that the connection is for; nil: it is for reads
	lazy  bool          // its TLS handshake may have been left to the first write
	turn  chan struct{} // has an element while somebody reads
	looks atomic.Bool   // begin interrupts who reads
	asked atomic.Bool   // a request was begun, and its response has not ended
	ended error         // why nothing more is read or written; nil: that is not so. For who reads.
}

func newAskedConn(ctx context.Context, conn net.Conn, lazy bool) askedConn {
	trace, _ := ctx.Value(traceKey{}).(*connTrace)
	return askedConn{Conn: conn, trace: trace, lazy: lazy, turn: make(chan struct{}, 1)}
}

// Write begins the request with its first byte.
func (c *askedConn) Write(p []byte) (int, error) {
	if !c.asked.Load() {
		if err := c.begin(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

func (c *askedConn) Read(p []byte) (int, error) {
	return c.read(p, func(n int, err error) (int, error) { return n, err })
}

// read reads what responded passes on of a response.
func (c *askedConn) read(p []byte, responded func(int, error) (int, error)) (n int, err error) {
	for interrupted := true; interrupted; {
		c.turn <- struct{}{}
		n, err = c.readOnce(p, responded)
		interrupted = n == 0 && c.looks.Load() && timedOut(err)
		<-c.turn
	}
	return n, err
}

func (c *askedConn) readOnce(p []byte, responded func(int, error) (int, error)) (int, error) {
	if c.ended != nil {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	switch {
	case n > 0 && !c.asked.Load():
		clear(p[:n])
		return 0, c.end(errUnasked)
	case n > 0:
		return responded(n, err)
	}
	return n, err
}

// begin begins a request unless there is something to read already. net/http reads all the time: that
// is interrupted, so that what it has read is known, and what it has not read is looked for. There is no
// way to look into a connection that has no deadlines.
func (c *askedConn) begin() error {
	if c.lazy { // no handshake survives a deadline
		if _, err := c.Conn.Write(nil); err != nil {
			return err
		}
	}
	c.looks.Store(true)
	defer c.looks.Store(false)
	cannot := c.Conn.SetReadDeadline(time.Unix(1, 0))
	if cannot == nil {
		c.turn <- struct{}{}
		defer func() { <-c.turn }()
		c.look()
		if c.ended != nil {
			return c.ended
		}
	}
	c.asked.Store(true)
	return nil
}

// look ends a connection in which there is something to read, or which is broken.
func (c *askedConn) look() {
	if c.ended != nil {
		return
	}
	var b [1]byte
	switch n, err := c.Conn.Read(b[:]); {
	case n > 0:
		_ = c.end(errUnasked)
	case err != nil && !timedOut(err):
		_ = c.end(err)
	default:
		if err := c.Conn.SetReadDeadline(time.Time{}); err != nil {
			_ = c.end(err)
		}
	}
}

// end ends the connection, and returns why.
func (c *askedConn) end(why error) error {
	c.ended = why
	if c.trace != nil {
		c.trace.ended.Store(&why)
	}
	return why
}

// socketConn is a connection whose Read looks into the socket once more where its deadline has
// passed: what has come may not have been noticed yet.
type socketConn struct {
	net.Conn
	raw syscall.RawConn
}

// socketOf returns conn, as a socketConn if that is possible: a connection of another type may have
// a buffer of its own.
func socketOf(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &socketConn{tcp, raw}
}

func (c *socketConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		if there := readNow(c.raw, p); there > 0 {
			return there, nil
		}
	}
	return n, err
}
