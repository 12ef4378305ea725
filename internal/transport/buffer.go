package transport

import (
	"context"
	"errors"
	"io"
)

const (
	minBuffer = 4 << 10
	// maxFirst bounds what is reserved for a response's Content-Length before its
	// first byte has arrived.
	maxFirst = 128 << 10
	// maxPooled is the largest buffer that is used again.
	maxPooled = 1 << 20
	// growth is how many times larger the next buffer is than a full one.
	growth = 4
	// maxEmptyReads is how often in a row a reader may return nothing.
	maxEmptyReads = 100
)

// buffer contains the body of a response: b is what was read, and its capacity is
// what can be read without growing.
type buffer struct{ b []byte }

// errMiscounted is for the bodies of a caller-supplied Doer.
var errMiscounted = errors.New("transport: a body's Read returned an impossible count")

// fill reads r to its end. size is the Content-Length, which is only a hint, or
// negative. The context is checked between reads, for bodies that ignore it, but not
// between the last byte and the end: a complete body is not discarded.
func (b *buffer) fill(ctx context.Context, r io.Reader, size, limit int64) error {
	// One byte more than promised, to see the end without growing.
	if first := int(max(min(size, limit, maxFirst), minBuffer-1)) + 1; first > cap(b.b) {
		b.b = make([]byte, 0, first)
	}
	for empty := 0; empty < maxEmptyReads; empty++ {
		if len(b.b) == cap(b.b) {
			b.grow(size, limit)
		}
		n, err := r.Read(b.b[len(b.b):cap(b.b)])
		if n < 0 || n > cap(b.b)-len(b.b) {
			return errMiscounted
		}
		b.b = b.b[:len(b.b)+n]
		switch {
		case int64(len(b.b)) > limit:
			return ErrTooLarge
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case int64(len(b.b)) != size && ctx.Err() != nil:
			return ctx.Err()
		case n > 0:
			empty = -1
		}
	}
	return io.ErrNoProgress
}

// grow makes room: much more, so that little is copied, but no more than is promised or
// allowed. If nothing is promised, all buffers together take less than twice the limit.
// It clears what it leaves behind.
func (b *buffer) grow(size, limit int64) {
	most := min(growth*int64(cap(b.b))-1, limit)
	if size >= int64(len(b.b)) {
		most = min(most, size)
	}
	old := b.b
	b.b = append(make([]byte, 0, most+1), old...)
	clear(old)
}
