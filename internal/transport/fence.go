package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// errExpired means that the deadline of a Write passed before its connection was
// written to.
var errExpired = fmt.Errorf("transport: the deadline has passed: %w", context.DeadlineExceeded)

// connTrace records what became of the attempt of a Write. net/http calls GotConn before
// it writes the first byte of a request, so a GetConn without a GotConn proves that nothing
// was sent. It calls WroteHeaders for each time that a request is written. Its hooks may be
// called late, from other goroutines: hence one for each attempt, and atomics.
type connTrace struct {
	sought, got atomic.Bool
	written     atomic.Int32
	fence       fence
	ended       atomic.Pointer[error] // why the connection ended before the request; nil: it did not
}

// traceKey is how a new connection finds the fence of the attempt that it is made for.
type traceKey struct{}

func (t *connTrace) attach(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, traceKey{}, t)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { t.sought.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { t.got.Store(true) },
		WroteHeaders: func() { t.written.Add(1) },
	})
}

// classify makes the error of an attempt that provably sent nothing an unsentError. The
// deadline becomes the error of one that the fence stopped: net/http may report only that
// the connection was closed.
func (t *connTrace) classify(err error) error {
	unsent := t.sought.Load() && (!t.got.Load() || t.fence.expired() && t.fence.bar())
	if why := t.ended.Load(); why != nil {
		unsent, err = true, errors.Join(*why, err)
	}
	if t.fence.state.Load() >= barred {
		err = errors.Join(errExpired, err)
	}
	if unsent {
		return &unsentError{err}
	}
	return err
}

// fence stops the connection of one attempt from beginning a write after the
// deadline. The timer of a context does not: after a process was stopped, or a
// machine suspended, a write may begin before the timers fire. It does not notice a stop
// between reading the clocks and the system call.
type fence struct {
	deadline time.Time                 // zero: never
	wall     func(time.Time) time.Time // returns the wall clock's part of a time
	state    atomic.Uint32
}

// The states of a fence. In the last two, nothing more is written.
const (
	unfenced  uint32 = iota
	untouched        // no byte of the request was written
	begun
	barred // before the first byte of the request
	cut    // after it
)

// expired checks both clocks: the monotonic one stops while the machine is suspended,
// and the wall clock can be set back.
func (f *fence) expired() bool {
	now := time.Now()
	return !f.deadline.IsZero() && (!now.Before(f.deadline) || !f.wall(now).Before(f.deadline.Round(0)))
}

// admit reports whether a write may begin. request is false before the request itself:
// in a proxy's CONNECT or a TLS handshake.
func (f *fence) admit(request bool) bool {
	if f.expired() {
		if !f.bar() {
			f.state.Store(cut)
		}
		return false
	}
	return !request || f.state.CompareAndSwap(untouched, begun) || f.state.Load() == begun
}

// bar reports whether no byte of the request was written, and makes sure that none
// will be.
func (f *fence) bar() bool {
	return f.state.CompareAndSwap(untouched, barred) || f.state.Load() == barred
}

// fencedConn hides every method of a connection that net.Conn does not have: an
// io.ReaderFrom would go on writing after it has read the clocks once.
type fencedConn struct {
	net.Conn
	trace *connTrace
}

// Write is called for each byte of a request immediately before that byte is sent or, on a
// connection of a DialTLS hook, encrypted.
func (c *fencedConn) Write(p []byte) (int, error) {
	if !c.trace.fence.admit(c.trace.got.Load()) {
		return 0, errExpired
	}
	return c.Conn.Write(p)
}

// fenceDials puts a fence around the connections of t's hooks. t must not keep
// connections alive: net/http then uses a connection for the request that it was made
// for, or for none.
func fenceDials(t *http.Transport) {
	t.DialContext, t.DialTLSContext = around(t.DialContext, fenced), around(t.DialTLSContext, fenced)
}

func fenced(ctx context.Context, conn net.Conn) net.Conn {
	trace, ok := ctx.Value(traceKey{}).(*connTrace)
	if !ok || trace.fence.deadline.IsZero() {
		return conn
	}
	trace.fence.state.CompareAndSwap(unfenced, untouched)
	return &fencedConn{conn, trace}
}
