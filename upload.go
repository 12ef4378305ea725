package cardwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// UploadImageParams describes an image. The accepted types are undocumented.
type UploadImageParams struct {
	Filename string // the plain name of the file
	// ContentType is the media type; "": detected from Data, or by the name of a HEIC, AVIF, TIFF or SVG.
	ContentType string
	Data        []byte // the file, at most 32 MiB, which must not change until UploadImage returns
}

// Format writes what LogValue returns, whatever the verb.
func (p UploadImageParams) Format(f fmt.State, _ rune) { formatLogged(f, "UploadImageParams", p) }

// LogValue returns the media type and size: the name may be a person's.
func (p UploadImageParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("ContentType", p.ContentType), slog.Int("Size", len(p.Data)))
}

// MarshalJSON returns an error: loggers marshal anything.
func (p UploadImageParams) MarshalJSON() ([]byte, error) {
	return nil, errors.New("cardwire: UploadImageParams cannot be marshaled, because the image would reach logs")
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

// UploadImage uploads an identity image. It calls POST /cards/upload and is sent once.
// Uploading an image twice is harmless.
func (c *Client) UploadImage(ctx context.Context, p UploadImageParams, opts ...CallOption) (*UploadedImage, error) {
	return do(ctx, c, operation[UploadedImage]{
		spec: spec{
			name: OpUploadImage, method: http.MethodPost, path: "/cards/upload", class: transport.Write,
			body: multipartBody, parts: []wire.Part{p.part("file")},
			timeout: defaultUploadTimeout, invalid: p.valid(),
		},
		read: object(imageFields, wire.Whole),
	}, opts)
}

const maxFileBytes = 32 << 20

func (p *UploadImageParams) valid() error {
	switch {
	case len(p.Data) == 0:
		return invalid("Data is empty")
	case len(p.Data) > maxFileBytes:
		return invalid("Data must be at most 32 MiB")
	}
	var contentType error
	if p.ContentType != "" {
		contentType = check.ContentType("ContentType", p.ContentType)
	}
	return checked(check.Filename("Filename", p.Filename), contentType)
}

func (p *UploadImageParams) part(name string) wire.Part {
	return wire.Part{Name: name, Value: p.Data, Filename: p.Filename, ContentType: cmp.Or(p.ContentType, p.detected())}
}

// detected returns the media type of Data.
func (p *UploadImageParams) detected() string {
	detected := http.DetectContentType(p.Data)
	if detected != "application/octet-stream" && !strings.HasPrefix(detected, "text/") {
		return detected
	}
	return cmp.Or(undetected[strings.ToLower(path.Ext(p.Filename))], detected)
}

// undetected are the types of images that http.DetectContentType does not know.
var undetected = map[string]string{
	".heic": "image/heic", ".heif": "image/heif", ".avif": "image/avif",
	".tif": "image/tiff", ".tiff": "image/tiff", ".svg": "image/svg+xml",
}
