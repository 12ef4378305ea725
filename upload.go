package cardwire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/upload"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// UploadImageParams describes an image. Which types and sizes are accepted is undocumented.
type UploadImageParams struct {
	Filename    string // the plain name of the file
	ContentType string // the media type; "": detected from the first 512 bytes
	Size        int64  // the number of bytes, which must be known and greater than zero
	// Open returns a reader that starts at the first byte. It is called once for each
	// attempt, on a goroutine that is abandoned when the call times out. The reader is closed
	// when the attempt ends or the call times out: Close must unblock Read. A panic is an error.
	Open func() (io.ReadCloser, error)
}

// UploadedImage is an image that the service has stored.
type UploadedImage struct {
	AttachmentKey string // the value of idFrontAttachmentKey or selfieAttachmentKey
}

var imageFields = []wire.FieldOf[UploadedImage]{
	{Name: "attachment_key", Required: true, Value: func(c *wire.Codec, v *UploadedImage) {
		c.Text(&v.AttachmentKey, wire.ID)
	}},
}

// MarshalJSON returns the image under the wire's names.
func (v UploadedImage) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, imageFields) }

// UnmarshalJSON reads an image, as strictly as a response.
func (v *UploadedImage) UnmarshalJSON(data []byte) error { return unmarshal(data, v, imageFields) }

// ImageFile describes the regular file at path, which must not be replaced or change its size
// before UploadImage returns. Its error contains the path; those of UploadImage do not.
func ImageFile(path string) (UploadImageParams, error) {
	size, open, err := upload.File(path)
	if err != nil {
		return UploadImageParams{}, err
	}
	return UploadImageParams{Filename: filepath.Base(path), Size: size, Open: open}, nil
}

// ImageBytes describes an image in memory. Do not change b until UploadImage returns.
func ImageBytes(filename string, b []byte) UploadImageParams {
	return UploadImageParams{Filename: filename, Size: int64(len(b)), Open: bytesBody(b)}
}

// UploadImage uploads an identity image, streamed. It calls POST /cards/upload and is sent
// once. Uploading an image twice is harmless.
func (c *Client) UploadImage(ctx context.Context, p UploadImageParams, opts ...CallOption) (*UploadedImage, error) {
	image := new(UploadedImage)
	return do(ctx, c, operation{
		name: opUploadImage, method: http.MethodPost, path: "/cards/upload", class: transport.Write,
		body: multipartBody, parts: upload.Parts{p.part("file")},
		timeout: defaultUploadTimeout, invalid: p.valid(),
		read: object(image, imageFields, wire.Whole),
	}, image, opts)
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

func (p *UploadImageParams) part(name string) upload.Part {
	return upload.Part{
		FormPart: wire.FormPart{Name: name, Filename: p.Filename, ContentType: p.ContentType},
		Source:   &upload.Source{Open: p.Open, Size: p.Size, Hide: hideCause, Invalid: invalid},
	}
}

func (o *operation) encodeMultipart(ctx context.Context, r *transport.Request) error {
	if o.parts == nil {
		for _, f := range o.fields {
			o.parts = append(o.parts, upload.Field(f.Name, f.Value))
		}
	}
	body, err := o.parts.Begin(ctx, r.Deadline)
	if err != nil {
		return err
	}
	o.contentType, r.BodySize, r.Body = body.ContentType, body.Size, body.Open
	return nil
}

// explain adds the fault of a file to the error, which the transport does not report.
func (o *operation) explain(failure *Error) {
	for file := range o.parts.Files() {
		if failure.Err == nil {
			return
		}
		if failure.Code == codeSuccess {
			_ = file.Check() // after an early response the source was not read to its end
		}
		//nolint:errorlint // a wrapped one has its own message
		if fault := file.Fault(); fault != nil && failure.Err != fault {
			failure.Err = fmt.Errorf("%w: %w", fault, failure.Err)
		}
	}
}
