// Package upload reads a caller-supplied file of a declared size, never a byte more or
// fewer, and never longer than the call if Close ends the file's reads. It builds the
// multipart body that streams such files.
package upload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
)

// Source is a file of an upload in progress.
type Source struct {
	// Open returns a reader from the first byte on, once for each attempt.
	Open func() (io.ReadCloser, error)
	// Size is the number of bytes that there must be.
	Size int64
	// Hide returns an error with a message of ours, and a cause that only errors.Is finds.
	Hide func(message string, cause error) error
	// Invalid returns the error of an invalid parameter.
	Invalid func(message string) error

	ctx    context.Context    // of the call
	cancel context.CancelFunc // nil: the context is the caller's
	reader *exactReader       // of the next attempt, or of the last; nil: none
}

// Begin opens the source for the first attempt, which must not open it again. A zero
// deadline is that of the context alone.
func (s *Source) Begin(ctx context.Context, deadline time.Time) error {
	s.ctx = ctx
	if !deadline.IsZero() {
		s.ctx, s.cancel = context.WithDeadline(ctx, deadline)
	}
	return s.open()
}

// sniffLength is how many bytes http.DetectContentType considers.
const sniffLength = 512

// MediaType detects the media type from the first bytes.
func (s *Source) MediaType() (string, error) {
	peeked := make([]byte, min(sniffLength, s.Size))
	if _, err := io.ReadFull(s.reader, peeked); errors.Is(err, errTooFew) {
		return "", s.Invalid(errTooFew.Error())
	} else if err != nil {
		return "", err
	}
	s.reader.unread(peeked)
	return http.DetectContentType(peeked), nil
}

// Fresh returns the source from its first byte on.
func (s *Source) Fresh() (io.Reader, error) {
	if s.reader == nil || s.reader.taken {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	s.reader.taken = true
	return s.reader, nil
}

// Check returns why the source does not have Size bytes. A service may respond before
// everything was sent: the rest is then read here.
func (s *Source) Check() error {
	if s.reader == nil {
		return nil
	}
	_, err := io.Copy(io.Discard, s.reader)
	return err
}

// Fault returns what was wrong with the source, so far.
func (s *Source) Fault() error {
	if s.reader == nil {
		return nil
	}
	return s.reader.fault()
}

// End releases the source. After an early response the transport may still be reading:
// the caller may use its reader again only when that has stopped.
func (s *Source) End() {
	if s.reader != nil {
		s.reader.retire()
	}
	s.close()
	if s.cancel != nil {
		s.cancel()
	}
}

func (s *Source) open() error {
	s.close()
	file, err := s.openInTime()
	if done := s.ctx.Err(); done != nil && err != nil {
		return s.Hide("the call ended while the source was opened", errors.Join(done, context.Cause(s.ctx), err))
	}
	switch {
	case err == errReplaced: //nolint:errorlint // our own, never wrapped
		return s.Invalid(err.Error())
	case err == errPanicked: //nolint:errorlint // our own, never wrapped
		return err
	case err != nil:
		return s.Hide("the source could not be opened", err)
	}
	if check.Nil(file) {
		return s.Invalid("Open returned nil")
	}
	r := &exactReader{ctx: s.ctx, hide: s.Hide, file: file, bytes: file, left: s.Size}
	// The transport waits for a read in progress even if the context is done.
	r.release = context.AfterFunc(s.ctx, r.closeFile)
	s.reader = r
	return nil
}

func (s *Source) close() {
	if s.reader != nil {
		s.reader.release()
		s.reader.closeFile()
		s.reader = nil
	}
}

// openInTime does not wait for an Open that outlasts the call.
func (s *Source) openInTime() (io.ReadCloser, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	type opened struct {
		file io.ReadCloser
		err  error
	}
	ended, left := make(chan opened), make(chan struct{})
	defer close(left)
	go func() {
		o := opened{err: errPanicked} // or it called runtime.Goexit
		defer func() {
			_ = recover()
			select {
			case ended <- o:
			case <-left:
				if !check.Nil(o.file) {
					closeQuietly(o.file)
				}
			}
		}()
		o.file, o.err = s.Open()
	}()
	select {
	case o := <-ended:
		return o.file, o.err
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// closeQuietly closes a reader. It recovers a panic, since its goroutine may have no other recover.
func closeQuietly(file io.Closer) {
	defer func() { _ = recover() }()
	_ = file.Close()
}

// exactReader fails unless its source has exactly Size bytes. It finds out before the end
// of the body is sent, so that a wrong body is never complete. The transport may still
// read while its response is judged.
type exactReader struct {
	ctx     context.Context
	hide    func(string, error) error
	release func() bool // detaches it from the context
	file    io.ReadCloser
	closed  sync.Once
	taken   bool // by an attempt

	mu    sync.Mutex
	bytes io.Reader // file from its first byte on
	left  int64
	end   atomic.Pointer[error] // io.EOF, or the fault; nil: not reached
}

func (r *exactReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := r.end.Load(); end != nil {
		return 0, *end
	}
	if r.left == 0 {
		return 0, r.stop(r.atEnd())
	}
	n, err := r.read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	switch {
	case err == nil || errors.Is(err, io.EOF) && r.left == 0:
		return n, nil
	case errors.Is(err, io.EOF):
		return n, r.stop(errTooFew)
	}
	return n, r.stop(r.unreadable(err))
}

// The faults of a source.
var (
	errTooFew     = errors.New("the source has fewer bytes than Size")
	errTooMany    = errors.New("the source has more bytes than Size")
	errStalled    = errors.New("the source returns neither bytes nor an error")
	errMiscounted = errors.New("the source's Read returned an impossible count")
	errPanicked   = errors.New("the source panicked")
)

// atEnd checks that no byte follows the last one of Size.
func (r *exactReader) atEnd() error {
	var one [1]byte
	switch n, err := r.read(one[:]); {
	case n > 0:
		return errTooMany
	case errors.Is(err, io.EOF):
		return io.EOF
	default:
		return r.unreadable(err)
	}
}

// maxEmptyReads is how often in a row a source may return nothing.
const maxEmptyReads = 100

// read returns bytes or an error. It stops reading when the call's time is over: a source may
// ignore that it was closed, and may violate the contract of io.Reader. On the goroutine on
// which net/http reads, a panic would end the program, and leave every write in progress
// unresolved.
func (r *exactReader) read(p []byte) (n int, err error) {
	defer func() {
		if recover() != nil {
			n, err = 0, errPanicked
		}
	}()
	for range maxEmptyReads {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		n, err := r.bytes.Read(p)
		switch {
		case n < 0 || n > len(p):
			return 0, errMiscounted
		case n > 0 || err != nil || len(p) == 0:
			return n, err
		}
	}
	return 0, errStalled
}

// unread puts b back before the rest.
func (r *exactReader) unread(b []byte) {
	r.bytes, r.left = io.MultiReader(bytes.NewReader(b), r.file), r.left+int64(len(b))
}

func (r *exactReader) stop(end error) error {
	r.end.Store(&end)
	return end
}

// fault returns what was wrong with the source, so far.
func (r *exactReader) fault() error {
	if end := r.end.Load(); end != nil && !errors.Is(*end, io.EOF) {
		return *end
	}
	return nil
}

// unreadable distinguishes a source that failed from one that was closed because the
// call's time was over.
func (r *exactReader) unreadable(err error) error {
	if err == errStalled || err == errMiscounted || err == errPanicked { //nolint:errorlint // our own, never wrapped
		return err
	}
	if done := r.ctx.Err(); done != nil {
		return r.hide("the call ended while the source was read", errors.Join(done, context.Cause(r.ctx), err))
	}
	return r.hide("the source could not be read", err)
}

// errRetired is for a transport that reads after the call has ended.
var errRetired = errors.New("the upload has ended")

// retire waits for a read in progress, which closing the file unblocks, and prevents others.
func (r *exactReader) retire() {
	if !r.mu.TryLock() {
		r.closeFile()
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	if r.end.Load() == nil {
		_ = r.stop(errRetired)
	}
}

func (r *exactReader) closeFile() {
	r.closed.Do(func() { closeQuietly(r.file) })
}
