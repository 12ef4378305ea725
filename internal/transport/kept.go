package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// keptConn passes net/http one response to each request, and nothing else. At the first byte
// more, at once or while the connection is idle, it ends the connection and clears what came:
// net/http would write that to the standard logger, or take it for the response to the next
// request. Its requests must not have a body.
type keptConn struct {
	askedConn
	tail  []byte // the last bytes of what was written
	frame frame
}

// endOfHead is how a request ends.
const endOfHead = "\r\n\r\n"

// Write notices a new request. A response may come before its request was written to the end.
func (c *keptConn) Write(p []byte) (int, error) {
	if len(c.tail) == 0 || string(c.tail) == endOfHead {
		if err := c.begin(); err != nil {
			return 0, err
		}
	}
	c.tail = append(c.tail, p[max(0, len(p)-len(endOfHead)):]...)
	c.tail = append(c.tail[:0], c.tail[max(0, len(c.tail)-len(endOfHead)):]...)
	return c.Conn.Write(p)
}

// Read reports the end of the connection together with the last byte of a response that more
// follows, so that net/http does not keep it.
func (c *keptConn) Read(p []byte) (int, error) {
	return c.read(p, func(n int, err error) (int, error) {
		own, end := c.frame.scan(p[:n])
		if end == complete {
			c.asked.Store(false)
		}
		if own < n || end == malformed {
			clear(p[own:n])
			clear(c.frame.text)
			return own, c.end(io.EOF)
		}
		return n, err
	})
}

// frame finds the end of a response where net/http does, or none.
type frame struct {
	part part
	text []byte // of a head, or of a line of a chunked body, up to now
	left uint64 // of the body or the chunk
}

// part is what comes next in a response.
type part uint8

const (
	head       part = iota
	body            // of a known length
	untilClose      // a body that the end of the connection ends
	chunkSize
	chunk
	chunkEnd
	trailer
)

// end is how a response goes on.
type end uint8

const (
	more end = iota
	complete
	malformed
)

// scan returns how many bytes of p belong to the response, and whether it ends with them.
func (f *frame) scan(p []byte) (n int, result end) {
	for n < len(p) && result == more {
		switch f.part {
		case untilClose:
			n = len(p)
		case body, chunk:
			k := min(f.left, uint64(len(p)-n))
			n += int(k)
			if f.left -= k; f.left == 0 {
				result = f.next(f.part == body, chunkEnd)
			}
		default:
			k := bytes.IndexByte(p[n:], '\n') + 1
			whole := k > 0
			if !whole {
				k = len(p) - n
			}
			f.text = append(f.text, p[n:n+k]...)
			if n += k; whole {
				result = f.line()
			}
		}
	}
	return n, result
}

// next goes on with a part, unless the response is complete.
func (f *frame) next(isComplete bool, p part) end {
	clear(f.text)
	f.part, f.text = p, f.text[:0]
	if isComplete {
		f.part = head // of the next response
		return complete
	}
	return more
}

// line reads a line that is complete, and a head when its last one is.
func (f *frame) line() end {
	line := f.text
	switch {
	case f.part == head && !bytes.HasSuffix(line, []byte("\n\r\n")) && !bytes.HasSuffix(line, []byte("\n\n")):
		return more
	case f.part == head:
		return f.begin()
	case f.part == trailer:
		return f.next(string(line) == "\r\n" || string(line) == "\n", trailer)
	case f.part == chunkEnd && string(line) == "\r\n":
		return f.next(false, chunkSize)
	case f.part == chunkEnd, bytes.IndexByte(line, '\r') != len(line)-2:
		return malformed
	}
	size, _, _ := bytes.Cut(bytes.TrimRight(line, "\r\n\t "), []byte(";"))
	var err error
	if f.left, err = strconv.ParseUint(string(size), 16, 60); err != nil {
		return malformed
	}
	if f.left == 0 {
		return f.next(false, trailer)
	}
	return f.next(false, chunk)
}

// begin has net/http itself read the head, which is what the framing of the body depends on.
func (f *frame) begin() end {
	resp, err := http.ReadResponse(bufio.NewReaderSize(bytes.NewReader(f.text), len(f.text)), nil) //nolint:bodyclose // only the head is there
	switch {
	case err != nil:
		return malformed
	case resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols:
		return f.next(false, head)
	case resp.Body == http.NoBody:
		return f.next(true, head)
	case len(resp.TransferEncoding) > 0:
		return f.next(false, chunkSize)
	case resp.ContentLength < 0:
		return f.next(false, untilClose)
	}
	f.left = uint64(resp.ContentLength)
	return f.next(false, body)
}

// guardDials puts a guard around the connections of t, above TLS. Those of a proxy have it below.
func guardDials(t *http.Transport, guard func(ctx context.Context, c net.Conn, lazy bool) net.Conn) {
	lazy := t.DialTLSContext != nil
	if !lazy {
		t.DialTLSContext = dialTLS(t.DialContext, t.TLSClientConfig, t.TLSHandshakeTimeout)
	}
	t.DialContext = around(t.DialContext, func(ctx context.Context, c net.Conn) net.Conn { return guard(ctx, c, false) })
	t.DialTLSContext = around(t.DialTLSContext, func(ctx context.Context, c net.Conn) net.Conn { return guard(ctx, c, lazy) })
}

// dialTLS connects as net/http does without a DialTLSContext.
func dialTLS(dial dialContext, config *tls.Config, timeout time.Duration) dialContext {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil || conn == nil {
			return nil, err
		}
		own := config.Clone()
		if own.ServerName == "" {
			own.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secure := tls.Client(conn, own)
		limited, stop := context.WithTimeout(ctx, timeout)
		defer stop()
		if err := secure.HandshakeContext(limited); err != nil {
			_ = conn.Close()
			if limited.Err() != nil && ctx.Err() == nil {
				err = os.ErrDeadlineExceeded // not the call's own
			}
			return nil, &handshakeError{err}
		}
		return secure, nil
	}
}
