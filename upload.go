package cardwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// UploadImageParams describes an image. Which types and sizes the service takes
// is undocumented. For progress, count what is read from the reader that Open returns.
type UploadImageParams struct {
	// Filename is the plain name of the file.
	Filename string
	// ContentType is the media type; "": detected from the first 512 bytes.
	ContentType string
	// Size is the number of bytes, which must be known and greater than zero.
	Size int64
	// Open returns a reader from the first byte on. It is called once for each attempt,
	// on its own goroutine, which is abandoned if Open has not returned when the call's
	// time is over. UploadImage closes what Open returns: at the end, when the call's
	// time is over, which unblocks a read, or when Open returns late.
	Open func() (io.ReadCloser, error)
}

// UploadedImage is an image that the service has stored.
type UploadedImage struct {
	// AttachmentKey is a value for the identity fields idFrontAttachmentKey and
	// selfieAttachmentKey.
	AttachmentKey string
}

var uploadedImageFields = []wire.FieldOf[UploadedImage]{
	{Name: "attachment_key", Required: true, Value: func(c *wire.Codec, v *UploadedImage) { c.ID(&v.AttachmentKey) }},
}

// MarshalJSON returns the image under the wire's names.
func (v UploadedImage) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, uploadedImageFields) }

// UnmarshalJSON reads an image, as strictly as a response.
func (v *UploadedImage) UnmarshalJSON(data []byte) error {
	return unmarshal(data, v, uploadedImageFields)
}

// ImageFile describes the regular file at path. It is opened for each attempt, and must
// then be the same file with the same size. The error of ImageFile is an *[fs.PathError],
// which contains the path. Errors of UploadImage do not; their cause is found by
// [errors.Is].
func ImageFile(path string) (UploadImageParams, error) {
	seen, err := os.Stat(path)
	if err == nil && !seen.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return UploadImageParams{}, err
	}
	os.SameFile(seen, seen) // Windows reads a file's identity when it is first compared
	return UploadImageParams{
		Filename: filepath.Base(path), Size: seen.Size(),
		Open: func() (io.ReadCloser, error) { return openAgain(path, seen) },
	}, nil
}

var (
	errNotRegular = errors.New("it is not a regular file")
	errReplaced   = invalid("the file was replaced or has changed its size since ImageFile: call ImageFile again")
)

// openAgain does not wait for a writer if the path has become a named pipe.
func openAgain(path string, seen fs.FileInfo) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	same := err == nil && opened.Mode().IsRegular() && os.SameFile(seen, opened) && opened.Size() == seen.Size()
	if err == nil && !same {
		err = errReplaced
	}
	if err != nil {
		_ = f.Close() // only read from
		return nil, err
	}
	return f, nil
}

// ImageBytes describes an image in memory. b must not change until UploadImage returns.
func ImageBytes(filename string, b []byte) UploadImageParams {
	return UploadImageParams{
		Filename: filename, Size: int64(len(b)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
	}
}

const opUploadImage = "UploadImage"

// UploadImage uploads an identity image, streamed and with its length known. It
// calls POST /cards/upload and is sent once. [NextStep] of its errors is StepRetry unless
// there is an attachment key: uploading an image twice is harmless. A source with more or
// fewer bytes than Size is an error, and never OutcomeExecuted.
func (c *Client) UploadImage(ctx context.Context, p UploadImageParams, opts ...CallOption) (*UploadedImage, error) {
	return do(ctx, c, operation[UploadedImage]{
		spec: spec{
			name: opUploadImage, method: http.MethodPost, path: "/cards/upload", class: transport.Write,
			body: multipartBody, parts: []bodyPart{{name: "file", file: &upload{params: p}}},
			timeout: defaultUploadTimeout, invalid: p.valid(),
		},
		read: object(uploadedImageFields, wire.Whole),
	}, opts)
}

func (p *UploadImageParams) valid() error {
	switch {
	case p.Open == nil:
		return invalid("Open is nil")
	case p.Size <= 0:
		return invalid("Size must be greater than zero: an empty file cannot be uploaded")
	}
	var contentType error
	if p.ContentType != "" {
		contentType = check.ContentType("ContentType", p.ContentType)
	}
	return checked(check.Filename("Filename", p.Filename), contentType)
}

// bodyPart is a field of a multipart body, or a file.
type bodyPart struct {
	name, value string
	file        *upload // nil: a field
}

// uploads are the files of the body.
func (s *spec) uploads() iter.Seq[*upload] {
	return func(yield func(*upload) bool) {
		for _, p := range s.parts {
			if p.file != nil && !yield(p.file) {
				return
			}
		}
	}
}

func (s *spec) endUploads() {
	for u := range s.uploads() {
		u.end()
	}
}

// encodeMultipart gives r a multipart body, which streams its files.
func (s *spec) encodeMultipart(r *transport.Request) (string, error) {
	if s.parts == nil {
		for _, f := range s.fields {
			s.parts = append(s.parts, bodyPart{name: f.Name, value: f.Value})
		}
	}
	parts := make([]wire.FormPart, len(s.parts))
	for i, p := range s.parts {
		parts[i] = wire.FormPart{Name: p.name, Value: p.value}
		if p.file == nil {
			continue
		}
		contentType, err := p.file.prepare(r.Deadline)
		if err != nil {
			return "", err
		}
		parts[i].Filename, parts[i].ContentType = p.file.params.Filename, contentType
		r.BodySize += p.file.params.Size
	}
	m, err := wire.NewMultipart(parts)
	for _, piece := range m.Pieces {
		r.BodySize += int64(len(piece))
	}
	r.Body = func() (io.ReadCloser, error) { return s.multipartBody(m.Pieces) }
	return m.ContentType, err
}

// multipartBody returns the bytes of one attempt: the pieces, and the files between them.
func (s *spec) multipartBody(pieces [][]byte) (io.ReadCloser, error) {
	readers := []io.Reader{bytes.NewReader(pieces[0])}
	for u := range s.uploads() {
		source, err := u.fresh()
		if err != nil {
			return nil, err
		}
		readers = append(readers, source, bytes.NewReader(pieces[(len(readers)+1)/2]))
	}
	return &uploadBody{bytes: io.MultiReader(readers...)}, nil
}

// upload is a file of a multipart body in progress.
type upload struct {
	params UploadImageParams
	ctx    context.Context    // of the call, as observers left it
	cancel context.CancelFunc // nil: the context is the caller's
	source *exactReader       // of the next attempt, or of the last; nil: none
}

// sniffLength is how many bytes http.DetectContentType considers.
const sniffLength = 512

// prepare opens the source and returns its media type, from its first bytes unless
// the caller gave one. The source stays open for the first attempt, which must not
// open it again.
func (u *upload) prepare(deadline time.Time) (contentType string, err error) {
	if !deadline.IsZero() {
		u.ctx, u.cancel = context.WithDeadline(u.ctx, deadline)
	}
	if err := u.open(); err != nil {
		return "", err
	}
	if u.params.ContentType != "" {
		return u.params.ContentType, nil
	}
	peeked := make([]byte, min(sniffLength, u.params.Size))
	if _, err := io.ReadFull(u.source, peeked); errors.Is(err, errTooFew) {
		return "", invalid(errTooFew.Error())
	} else if err != nil {
		return "", err
	}
	u.source.unread(peeked)
	return http.DetectContentType(peeked), nil
}

func (u *upload) open() error {
	u.close()
	file, err := u.openInTime()
	if done := u.ctx.Err(); done != nil && err != nil {
		return hideCause("the call ended while the source was opened", errors.Join(done, context.Cause(u.ctx), err))
	}
	switch {
	case err == errReplaced: //nolint:errorlint // our own, never wrapped
		return err
	case err != nil:
		return hideCause("the source could not be opened", err)
	}
	if isNil(file) {
		return invalid("Open returned nil")
	}
	r := &exactReader{ctx: u.ctx, file: file, bytes: file, left: u.params.Size}
	// The transport waits for a read in progress even if the context is done.
	r.release = context.AfterFunc(u.ctx, r.closeFile)
	u.source = r
	return nil
}

// opening is how a call of Open ended.
type opening struct {
	file     io.ReadCloser
	err      error
	panicked any
	returned bool // else it panicked, or called runtime.Goexit
}

// openInTime does not wait for an Open that outlasts the call. If it panics later, that
// is not reported.
func (u *upload) openInTime() (io.ReadCloser, error) {
	if err := u.ctx.Err(); err != nil {
		return nil, err
	}
	ended, left := make(chan opening), make(chan struct{})
	defer close(left)
	go func() {
		var o opening
		defer func() {
			if !o.returned {
				o.panicked = recover()
			}
			select {
			case ended <- o:
			case <-left:
				if !isNil(o.file) {
					_ = o.file.Close()
				}
			}
		}()
		o.file, o.err = u.params.Open()
		o.returned = true
	}()
	select {
	case o := <-ended:
		return o.result()
	case <-u.ctx.Done():
		return nil, u.ctx.Err()
	}
}

// result returns, panics or calls runtime.Goexit as Open did.
func (o *opening) result() (io.ReadCloser, error) {
	switch {
	case o.panicked != nil:
		panic(o.panicked)
	case !o.returned:
		runtime.Goexit()
	}
	return o.file, o.err
}

// fresh returns the source from its first byte on.
func (u *upload) fresh() (io.Reader, error) {
	if u.source == nil || u.source.taken {
		if err := u.open(); err != nil {
			return nil, err
		}
	}
	u.source.taken = true
	return u.source, nil
}

// check returns why the source does not have Size bytes. A service may respond before
// everything was sent: the rest is then read here.
func (u *upload) check() error {
	if u.source == nil {
		return nil
	}
	_, err := io.Copy(io.Discard, u.source)
	return err
}

// explain adds the fault of the source to the error, which the transport does not
// report.
func (u *upload) explain(failure *Error) {
	if u.source == nil || failure.Err == nil {
		return
	}
	if failure.Code == codeSuccess {
		_ = u.check() // an early response leaves the source unread, and its fault unknown
	}
	if fault := u.source.fault(); fault != nil && failure.Err != fault { //nolint:errorlint // a wrapped one has its own message
		failure.Err = fmt.Errorf("%w: %w", fault, failure.Err)
	}
}

func (u *upload) close() {
	if u.source != nil {
		u.source.release()
		u.source.closeFile()
		u.source = nil
	}
}

// end releases the upload. After an early response the transport may still be reading:
// the caller may use its reader again only when that has stopped.
func (u *upload) end() {
	if u.source != nil {
		u.source.retire()
	}
	u.close()
	if u.cancel != nil {
		u.cancel()
	}
}

// uploadBody is the body for the transport. It does not close the source, which is still
// to be checked after an early response.
type uploadBody struct {
	bytes  io.Reader
	closed atomic.Bool
}

func (b *uploadBody) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.bytes.Read(p)
}

func (b *uploadBody) Close() error {
	b.closed.Store(true)
	return nil
}

// exactReader fails unless its source has exactly Size bytes. It finds out before the end
// of the body is sent, so that a wrong body is never complete. The transport may still
// read while its response is judged.
type exactReader struct {
	ctx     context.Context
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

// read returns bytes or an error. It stops reading when the call's time is over: a source
// may ignore that it was closed, and the contract of Read.
func (r *exactReader) read(p []byte) (int, error) {
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
	if err == errStalled || err == errMiscounted { //nolint:errorlint // our own, never wrapped
		return err
	}
	if done := r.ctx.Err(); done != nil {
		return hideCause("the call ended while the source was read", errors.Join(done, context.Cause(r.ctx), err))
	}
	return hideCause("the source could not be read", err)
}

// errRetired is for a transport that reads after the call has ended.
var errRetired = errors.New("the upload has ended")

// retire waits for a read in progress, which closing the file ends, and prevents others.
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
	r.closed.Do(func() { _ = r.file.Close() }) // only read from
}
