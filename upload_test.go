package cardwire_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

const (
	pngHead  = "\x89PNG\r\n\x1a\n"
	heicHead = "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"
	avifHead = "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf"
	tiffHead = "II*\x00\x08\x00\x00\x00"
	uploaded = `{"code":200,"msg":"Uploaded","data":{"attachment_key":"att/7f.png"}}`
)

func TestUploadImage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ filename, given, data, sent string }{
		"PNG":                  {"front.png", "", pngHead + "pixels", "image/png"},
		"JPEG":                 {"front.jpg", "", "\xff\xd8\xff\xe0pixels", "image/jpeg"},
		"the data tells":       {"front.heic", "", pngHead + "pixels", "image/png"},
		"given":                {"front.png", "image/x-scan; q=1", pngHead, "image/x-scan; q=1"},
		"HEIC":                 {"IMG_1.HEIC", "", heicHead, "image/heic"},
		"HEIF":                 {"front.heif", "", heicHead, "image/heif"},
		"AVIF":                 {"front.avif", "", avifHead, "image/avif"},
		"TIFF":                 {"front.tif", "", tiffHead, "image/tiff"},
		"TIFF, longer":         {"front.tiff", "", tiffHead, "image/tiff"},
		"SVG":                  {"front.svg", "", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml"},
		"SVG, with a prologue": {"front.svg", "", `<?xml version="1.0"?><svg/>`, "image/svg+xml"},
		"a document":           {"front.svg", "", "%PDF-1.7", "application/pdf"},
		"one byte, unknown":    {"front.png", "", "\x01", "application/octet-stream"},
		"name in a script":     {"frente é 表.png", "", pngHead, "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, "POST /shop/api/v1/cards/upload\nmultipart/form-data\n\n"+
				"Content-Disposition: form-data; name=\"file\"; filename=\""+tc.filename+"\"\n"+
				"Content-Type: "+tc.sent+"\n\n"+tc.data, uploaded, cardwire.WithStrictDrift())
			got, err := c.UploadImage(t.Context(), cardwire.UploadImageParams{
				Filename: tc.filename, ContentType: tc.given, Data: []byte(tc.data),
			})
			require.NoError(t, err)
			assert.Equal(t, &cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, got)
		})
	}
}

// Loggers marshal anything, and an identity document is in it.
func TestImagesDoNotMarshal(t *testing.T) {
	t.Parallel()
	p := cardwire.UploadImageParams{Filename: "front.png", Data: []byte(pngHead)}
	for _, v := range []any{p, &p, cardwire.Request{Multipart: []cardwire.Part{{Name: "front", File: &p}}}} {
		text, err := json.Marshal(v)
		require.ErrorContains(t, err, "UploadImageParams cannot be marshaled")
		assert.Empty(t, text)
	}
}

func TestUploadedImageAsJSON(t *testing.T) {
	t.Parallel()
	encodes(t, cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, `{"attachment_key":"att/7f.png"}`)
	decodes(t, `{"attachment_key":"att\/7f.png"}`, cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, `{}`)
}

// What is no file name and no type in detail is in internal/check.
func TestUploadRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for names, p := range map[string]cardwire.UploadImageParams{
		"Data is empty":                    {Filename: "front.png"},
		"Data must be at most 32 MiB":      {Filename: "front.png", Data: make([]byte, 32<<20+1)},
		"Filename is empty":                {Data: []byte(pngHead)},
		"ContentType must be a media type": {Filename: "front.png", ContentType: "png", Data: []byte(pngHead)},
	} {
		got, err := wiretest.Unasked(t).UploadImage(t.Context(), p)
		assert.Nil(t, got)
		wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, names)
		_, err = cardwire.Call[any](t.Context(), wiretest.Unasked(t), cardwire.Request{
			Op: "Identify", Method: "POST", Path: "/kyc", Reference: "r-1",
			Multipart: []cardwire.Part{{Name: "front", File: &p}},
		})
		wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, names)
	}
}

// late reads the body only after its response was taken, as net/http may.
type late struct {
	goOn <-chan struct{}
	body chan string
}

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	go func() {
		<-l.goOn
		body, _ := io.ReadAll(r.Body)
		l.body <- string(body)
	}()
	return wiretest.Response(r, http.StatusOK, uploaded), nil
}

func TestDataIsTheCallersAgainWhenUploadImageReturns(t *testing.T) {
	t.Parallel()
	goOn, body := make(chan struct{}), make(chan string, 1)
	data := []byte(pngHead + strings.Repeat("p", 32<<20-len(pngHead))) // as much as there may be
	meant := string(data)
	_, err := wiretest.NewClient(t, late{goOn, body}).UploadImage(t.Context(), cardwire.UploadImageParams{
		Filename: "front.png", Data: data,
	})
	require.NoError(t, err)
	clear(data)
	close(goOn)
	assert.True(t, strings.Contains(<-body, meant), "the bytes that were given are sent")
}
