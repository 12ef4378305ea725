package cardwire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// UploadImageParams describes an image. Which types and sizes the service takes
// is not shown. For progress, count what is read from the reader that Open returns.
type UploadImageParams struct {
	// Filename is the plain name of the file.
	Filename string
	// ContentType is the media type; "": told from the first 512 bytes.
	ContentType string
	// Size is the number of bytes, which must be known, and above zero.
	Size int64
	// Open returns the bytes from their beginning. It is called once an attempt,
	// and what it returns is closed by UploadImage.
	Open func() (io.ReadCloser, error)
}

// UploadedImage is an image that the service holds.
type UploadedImage struct {
	// AttachmentKey is what the identity fields idFrontAttachmentKey and
	// selfieAttachmentKey take.
	AttachmentKey string
}

// ImageFile describes the file at path, which is opened for each attempt.
func ImageFile(path string) (UploadImageParams, error) {
	info, err := os.Stat(path)
	if err != nil {
		return UploadImageParams{}, err
	}
	return UploadImageParams{
		Filename: filepath.Base(path), Size: info.Size(),
		Open: func() (io.ReadCloser, error) { return os.Open(path) },
	}, nil
}

// ImageBytes describes an image in memory. b must not be changed until the
// upload has ended.
func ImageBytes(filename string, b []byte) UploadImageParams {
	return UploadImageParams{
		Filename: filename, Size: int64(len(b)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
	}
}

// UploadImage uploads an identity image, streamed and with its length known. It
// stands for POST /cards/upload and is sent once. A source that yields more or
// fewer bytes than Size is an error, and never OutcomeExecuted.
func (c *Client) UploadImage(ctx context.Context, p UploadImageParams, opts ...CallOption) (*UploadedImage, error) {
	u := &upload{params: p}
	defer u.close()
	op := operation{
		name: "UploadImage", method: http.MethodPost, path: "/cards/upload",
		class: transport.Write, body: multipart, upload: u, timeout: defaultUploadTimeout,
		invalid: p.valid(),
	}
	return pointer(do(ctx, c, op, reply[UploadedImage]{
		read: func(d *wire.Codec, v *UploadedImage) { wire.Object(d, v, uploadedImageMembers, wire.Whole) },
		// A service may answer before it has read everything.
		verify: func(*UploadedImage) error { return u.mismatch },
	}, opts))
}

func (p *UploadImageParams) valid() error {
	switch {
	case p.Open == nil:
		return invalid("Open is nil")
	case p.Size <= 0:
		return invalid("Size is not above zero: an empty file cannot be uploaded")
	}
	var contentType error
	if p.ContentType != "" {
		contentType = check.ContentType("ContentType", p.ContentType)
	}
	return checked(check.Filename("Filename", p.Filename), contentType)
}

var uploadedImageMembers = []wire.Member[UploadedImage]{
	wire.Required("attachment_key", func(c *wire.Codec, v *UploadedImage) { c.ID(&v.AttachmentKey) }),
}

// MarshalJSON returns the image under the wire's names.
func (v UploadedImage) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, uploadedImageMembers) }

// UnmarshalJSON reads an image, as strictly as a reply.
func (v *UploadedImage) UnmarshalJSON(text []byte) error {
	return unmarshal(text, v, uploadedImageMembers)
}

// upload is the file of a multipart body under way.
type upload struct {
	params   UploadImageParams
	sniffed  io.ReadCloser // opened to tell the type, for the first attempt; nil: used
	peeked   []byte        // what was read from it
	mismatch error         // the source did not hold Size bytes
}

// sniffLength is what http.DetectContentType looks at.
const sniffLength = 512

// contentType tells the type from the first bytes, unless the caller did. The
// source stays open for the first attempt, which must not open it again.
func (u *upload) contentType() (string, error) {
	if u.params.ContentType != "" {
		return u.params.ContentType, nil
	}
	source, err := u.open()
	if err != nil {
		return "", err
	}
	u.sniffed = source
	u.peeked = make([]byte, min(sniffLength, u.params.Size))
	n, err := io.ReadFull(source, u.peeked)
	u.peeked = u.peeked[:n]
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "", invalid("the source holds fewer bytes than Size")
	case err != nil:
		return "", conceal("the source could not be read", err)
	}
	return http.DetectContentType(u.peeked), nil
}

func (u *upload) open() (io.ReadCloser, error) {
	source, err := u.params.Open()
	if err != nil {
		return nil, conceal("the source could not be opened", err)
	}
	if source == nil {
		return nil, invalid("Open returned nil")
	}
	return source, nil
}

// body returns the bytes of one attempt: head, the source's Size bytes, tail.
func (u *upload) body(head, tail []byte) (io.ReadCloser, error) {
	source, start := u.sniffed, u.peeked
	u.sniffed, u.peeked = nil, nil
	if source == nil {
		var err error
		if source, err = u.open(); err != nil {
			return nil, err
		}
	}
	exact := &exactReader{upload: u, source: io.MultiReader(bytes.NewReader(start), source), left: u.params.Size}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), exact, bytes.NewReader(tail)), source}, nil
}

func (u *upload) close() {
	if u.sniffed != nil {
		_ = u.sniffed.Close() // only read from
	}
}

// exactReader fails unless its source holds exactly as many bytes as were
// announced. It finds out before the tail is sent, so that a body that is wrong
// is never complete.
type exactReader struct {
	upload *upload
	source io.Reader
	left   int64
}

func (r *exactReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, r.end()
	}
	n, err := r.source.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	switch {
	case err == nil || errors.Is(err, io.EOF) && r.left == 0:
		return n, nil
	case errors.Is(err, io.EOF):
		return n, r.fail("the source holds fewer bytes than Size")
	}
	r.upload.mismatch = conceal("the source could not be read", err)
	return n, r.upload.mismatch
}

// end is reached after the last announced byte: there must be no other.
func (r *exactReader) end() error {
	var one [1]byte
	for range 100 {
		n, err := r.source.Read(one[:])
		switch {
		case n > 0:
			return r.fail("the source holds more bytes than Size")
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			r.upload.mismatch = conceal("the source could not be read", err)
			return r.upload.mismatch
		}
	}
	return r.fail("the source does not end")
}

func (r *exactReader) fail(text string) error {
	r.upload.mismatch = errors.New(text)
	return r.upload.mismatch
}

// encodeMultipart gives r a multipart body, streamed where it holds a file.
func (op *operation) encodeMultipart(r *transport.Call) (string, error) {
	if op.upload == nil {
		m, err := wire.NewMultipart(op.fields, nil)
		text := append(m.Head, m.Tail...)
		r.Body, r.BodySize = bytesBody(text), int64(len(text))
		return m.ContentType, err
	}
	contentType, err := op.upload.contentType()
	if err != nil {
		return "", err
	}
	m, err := wire.NewMultipart(op.fields, &wire.File{
		Field: "file", Name: op.upload.params.Filename, ContentType: contentType,
	})
	r.Body = func() (io.ReadCloser, error) { return op.upload.body(m.Head, m.Tail) }
	r.BodySize = int64(len(m.Head)) + op.upload.params.Size + int64(len(m.Tail))
	return m.ContentType, err
}
