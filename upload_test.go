package cardwire_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/upload"
)

const (
	pngHead  = "\x89PNG\r\n\x1a\n"
	jpegHead = "\xff\xd8\xff\xe0"
	uploaded = `{"code":200,"msg":"Uploaded","data":{"attachment_key":"att/7f.png"}}`
)

func uploadRequest(filename, contentType, content string) string {
	return "POST /shop/api/v1/cards/upload\nmultipart/form-data\n\n" +
		"Content-Disposition: form-data; name=\"file\"; filename=\"" + filename + "\"\n" +
		"Content-Type: " + contentType + "\n\n" + content
}

func TestUploadImage(t *testing.T) {
	t.Parallel()
	large := pngHead + strings.Repeat("0123456789", 20_000)
	for name, tc := range map[string]struct {
		filename, contentType, content string
		want                           string // content type
	}{
		"PNG":                {"front.png", "", pngHead + "pixels", "image/png"},
		"JPEG":               {"front.jpg", "", jpegHead + "pixels", "image/jpeg"},
		"the content tells":  {"front.jpg", "", pngHead + "pixels", "image/png"},
		"not known":          {"front.png", "", "\x01\x02\x03", "application/octet-stream"},
		"one byte":           {"front.png", "", "\x01", "application/octet-stream"},
		"given":              {"front.png", "image/x-scan; q=1", pngHead, "image/x-scan; q=1"},
		"more than a buffer": {"front.png", "", large, "image/png"},
		"512 bytes":          {"front.png", "", large[:512], "image/png"},
		"large and given":    {"front.png", "image/png", large, "image/png"},
		"name in a script":   {"frente é 表.png", "", pngHead, "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, uploadRequest(tc.filename, tc.want, tc.content), uploaded, cardwire.WithStrictDrift())
			p := cardwire.ImageBytes(tc.filename, []byte(tc.content))
			p.ContentType = tc.contentType
			got, err := c.UploadImage(t.Context(), p)
			require.NoError(t, err)
			assert.Equal(t, &cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, got)
			wiretest.NoZeroField(t, got)
		})
	}
}

func TestUploadResponsesWithoutAKeyAreUnknownAndUnreadable(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{}`, `{"attachment_key":null}`, `{"attachment_key":""}`, `{"attachment_key":{}}`, `[]`, `null`, `"att/7f.png"`} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data)).UploadImage(t.Context(), cardwire.ImageBytes("front.png", []byte(pngHead)))
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
			assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err), "an image that is uploaded twice harms nobody")
		})
	}
}

func TestUploadedImageEncodesUnderTheWireNames(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(cardwire.UploadedImage{AttachmentKey: "att/7f.png"})
	require.NoError(t, err)
	assert.Equal(t, `{"attachment_key":"att/7f.png"}`, string(text))

	var image cardwire.UploadedImage
	require.NoError(t, json.Unmarshal([]byte(`{"attachment_key":"att\/7f.png"}`), &image))
	assert.Equal(t, cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, image)
	assert.ErrorIs(t, json.Unmarshal([]byte(`{}`), &image), cardwire.ErrUnreadable)
	assert.Equal(t, cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, image, "what cannot be read changes nothing")
}

func TestUploadRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*cardwire.UploadImageParams)
		names  string
	}{
		"no source":                 {func(p *cardwire.UploadImageParams) { p.Open = nil }, "Open is nil"},
		"no size":                   {func(p *cardwire.UploadImageParams) { p.Size = 0 }, "Size"},
		"size below zero":           {func(p *cardwire.UploadImageParams) { p.Size = -1 }, "Size"},
		"no name":                   {func(p *cardwire.UploadImageParams) { p.Filename = "" }, "Filename"},
		"dots for a name":           {func(p *cardwire.UploadImageParams) { p.Filename = ".." }, "Filename"},
		"path for a name":           {func(p *cardwire.UploadImageParams) { p.Filename = "a/front.png" }, "Filename"},
		"Windows path for a name":   {func(p *cardwire.UploadImageParams) { p.Filename = `C:\front.png` }, "Filename"},
		"quotation mark in a name":  {func(p *cardwire.UploadImageParams) { p.Filename = `front".png` }, "Filename"},
		"line end in a name":        {func(p *cardwire.UploadImageParams) { p.Filename = "front\r\nX: y.png" }, "Filename"},
		"invalid UTF-8 in a name":   {func(p *cardwire.UploadImageParams) { p.Filename = "front\xff.png" }, "Filename"},
		"name of 256 bytes":         {func(p *cardwire.UploadImageParams) { p.Filename = strings.Repeat("a", 256) }, "Filename"},
		"type without a slash":      {func(p *cardwire.UploadImageParams) { p.ContentType = "png" }, "ContentType"},
		"line end in a type":        {func(p *cardwire.UploadImageParams) { p.ContentType = "image/png\r\nX: y" }, "ContentType"},
		"type in another script":    {func(p *cardwire.UploadImageParams) { p.ContentType = "image/é" }, "ContentType"},
		"a size with no room left":  {func(p *cardwire.UploadImageParams) { p.Size = math.MaxInt64; p.ContentType = "image/png" }, ""},
		"more than there is to see": {func(p *cardwire.UploadImageParams) { p.Size = math.MaxInt64 }, "Size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := cardwire.ImageBytes("front.png", []byte(pngHead))
			tc.change(&p)
			got, err := wiretest.Unasked(t).UploadImage(t.Context(), p)
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrNotSent)
			if tc.names != "" {
				wiretest.RefusedBeforehand(t, err, tc.names)
			}
		})
	}
}

func TestUploadOfAnEmptyImage(t *testing.T) {
	t.Parallel()
	_, err := wiretest.Unasked(t).UploadImage(t.Context(), cardwire.ImageBytes("front.png", nil))
	wiretest.RefusedBeforehand(t, err, "an empty file cannot be uploaded")
}

func TestImageFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "front.png")
	require.NoError(t, os.WriteFile(path, []byte(pngHead+"pixels"), 0o600))
	p, err := cardwire.ImageFile(path)
	require.NoError(t, err)
	assert.Equal(t, "front.png", p.Filename)
	assert.Equal(t, int64(14), p.Size)
	assert.Empty(t, p.ContentType)

	got, err := wiretest.Respond(t, uploadRequest("front.png", "image/png", pngHead+"pixels"), uploaded).UploadImage(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, "att/7f.png", got.AttachmentKey)

	// A file that grew after it was measured is another image.
	require.NoError(t, os.WriteFile(path, []byte(pngHead+"pixels!"), 0o600))
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	wiretest.RefusedBeforehand(t, err, "the file was replaced or has changed its size since ImageFile")

	require.NoError(t, os.Remove(path))
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	assert.NotContains(t, err.Error(), "front.png", "the path may hold a name")
}

func TestImageFileOfAFileThatWasReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "front.png"), filepath.Join(dir, "other.png")
	require.NoError(t, os.WriteFile(path, []byte(pngHead+"pixels"), 0o600))
	p, err := cardwire.ImageFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, []byte(pngHead+"PIXELS"), 0o600))
	require.NoError(t, os.Rename(other, path))
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	wiretest.RefusedBeforehand(t, err, "the file was replaced or has changed its size since ImageFile")
}

func TestImageFileOfWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "front.png")
	for path, cause := range map[string]error{missing: os.ErrNotExist, dir: upload.ErrNotRegular, os.DevNull: upload.ErrNotRegular} {
		p, err := cardwire.ImageFile(path)
		require.ErrorIs(t, err, cause)
		var failed *fs.PathError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, path, failed.Path)
		assert.Zero(t, p)
	}
}

func TestUploadOfADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := cardwire.UploadImageParams{Filename: "front.png", Size: 10, Open: func() (io.ReadCloser, error) { return os.Open(dir) }}
	_, err := wiretest.Unasked(t).UploadImage(t.Context(), p)
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	require.ErrorContains(t, err, "the source could not be read")
	assert.NotContains(t, err.Error(), dir)
}

// source counts how often it is opened and closed.
type source struct {
	content        func() io.Reader
	opened, closed atomic.Int32
}

func sourceOf(content string) *source {
	return &source{content: func() io.Reader { return strings.NewReader(content) }}
}

func (s *source) params(size int, contentType string) cardwire.UploadImageParams {
	return cardwire.UploadImageParams{Filename: "front.png", Size: int64(size), ContentType: contentType, Open: s.open}
}

func (s *source) open() (io.ReadCloser, error) {
	s.opened.Add(1)
	return &opened{Reader: s.content(), source: s}, nil
}

type opened struct {
	io.Reader
	source *source
	done   atomic.Bool
}

func (o *opened) Read(p []byte) (int, error) {
	if o.done.Load() {
		return 0, os.ErrClosed
	}
	return o.Reader.Read(p)
}

func (o *opened) Close() error {
	if !o.done.Swap(true) {
		o.source.closed.Add(1)
	}
	return nil
}

// hasty responds before it has read more of the body than some bytes.
type hasty struct {
	bytes    int64
	response string // "": uploaded
}

func (h hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.CopyN(io.Discard, r.Body, h.bytes); err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	if h.response == "" {
		h.response = uploaded
	}
	return wiretest.Response(r, http.StatusOK, h.response), nil
}

// A response that comes before the source has been read to its end says nothing
// about the source.
func TestUploadIsNotProvenByAnEarlyResponse(t *testing.T) {
	t.Parallel()
	errRead := errors.New("disk on fire in /home/maria")
	content := pngHead + strings.Repeat("p", 5000)
	for name, tc := range map[string]struct {
		content func() io.Reader
		size    int
		says    string // "": a success
	}{
		"exact":          {func() io.Reader { return strings.NewReader(content) }, len(content), ""},
		"exact, slowly":  {func() io.Reader { return iotest.OneByteReader(strings.NewReader(content)) }, len(content), ""},
		"exact, EOF too": {func() io.Reader { return iotest.DataErrReader(strings.NewReader(content)) }, len(content), ""},
		"too few bytes":  {func() io.Reader { return strings.NewReader(content[1:]) }, len(content), "fewer bytes than Size"},
		"few, EOF too":   {func() io.Reader { return iotest.DataErrReader(strings.NewReader(content[1:])) }, len(content), "fewer bytes than Size"},
		"too many bytes": {func() io.Reader { return strings.NewReader(content + "p") }, len(content), "more bytes than Size"},
		"a read error": {func() io.Reader {
			return io.MultiReader(strings.NewReader(content[:3000]), iotest.ErrReader(errRead))
		}, len(content), "the source could not be read"},
		"an error at the end": {func() io.Reader {
			return io.MultiReader(strings.NewReader(content), iotest.ErrReader(errRead))
		}, len(content), "the source could not be read"},
		"no end": {func() io.Reader { return io.MultiReader(strings.NewReader(content), endless{}) }, len(content), "returns neither bytes nor an error"},
		"more than asked for": {func() io.Reader {
			return io.MultiReader(strings.NewReader(content[:3000]), miscounting(func(p []byte) int { return len(p) + 1 }))
		}, len(content), "the source's Read returned an impossible count"},
		"less than nothing": {func() io.Reader {
			return io.MultiReader(strings.NewReader(content[:3000]), miscounting(func([]byte) int { return -1 }))
		}, len(content), "the source's Read returned an impossible count"},
	} {
		for _, contentType := range []string{"", "image/png"} {
			for read, carrier := range map[string]hasty{"nothing": {}, "the head": {bytes: 150}, "much": {bytes: 2000}} {
				t.Run(name+", "+read+" is read, "+contentType, func(t *testing.T) {
					t.Parallel()
					s := &source{content: tc.content}
					got, err := wiretest.NewClient(t, carrier).UploadImage(t.Context(), s.params(tc.size, contentType))
					assert.Equal(t, int32(1), s.opened.Load())
					assert.Equal(t, int32(1), s.closed.Load())
					if tc.says == "" {
						require.NoError(t, err)
						assert.Equal(t, &cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, got)
						return
					}
					assert.Nil(t, got)
					require.ErrorContains(t, err, tc.says)
					require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
					assert.NotContains(t, err.Error(), "maria")
				})
			}
		}
	}
}

// miscounting returns another count than that of the bytes that it read.
type miscounting func(p []byte) int

func (m miscounting) Read(p []byte) (int, error) { return m(p), nil }

// endless yields neither bytes nor an error.
type endless struct{}

func (endless) Read([]byte) (int, error) { return 0, nil }

// What the service says it did was not done with the image that was meant.
func TestUploadOfAWrongImageWithAnUnreadableEarlyResponseIsUnknown(t *testing.T) {
	t.Parallel()
	carrier := hasty{response: wiretest.Success(`{}`)}
	content := pngHead + "pixels"
	_, err := wiretest.NewClient(t, carrier).UploadImage(t.Context(), sourceOf(content).params(len(content)+1, "image/png"))
	require.ErrorIs(t, err, cardwire.ErrUnreadable)
	require.ErrorContains(t, err, "fewer bytes than Size")
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, err).Outcome)

	_, err = wiretest.NewClient(t, carrier).UploadImage(t.Context(), sourceOf(content).params(len(content), "image/png"))
	require.ErrorIs(t, err, cardwire.ErrUnreadable)
	assert.NotContains(t, err.Error(), "Size", "of an image as it was announced")
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, err).Outcome)
}

// stuck blocks until it is closed, like a pipe without a writer.
type stuck struct {
	untilClosed

	reading func() // told of each read
}

func (s *stuck) Read([]byte) (int, error) {
	s.reading()
	<-s.closed
	return 0, os.ErrClosed
}

// untilClosed tells when it is closed, as often as that may be.
type untilClosed struct {
	closed chan struct{}
	once   sync.Once
}

func (u *untilClosed) Close() error {
	u.once.Do(func() { close(u.closed) })
	return nil
}

// net/http waits for a read under way even where the context is done.
func TestUploadEndsASourceThatBlocksWithTheContext(t *testing.T) {
	t.Parallel()
	connected := func(t *testing.T) *cardwire.Client { return uploadServer(t, nil) }
	early := func(t *testing.T) *cardwire.Client { return wiretest.NewClient(t, hasty{}) }
	for name, tc := range map[string]struct {
		client      func(*testing.T) *cardwire.Client
		contentType string
		outcome     cardwire.Outcome
	}{
		"while it is sent":        {connected, "image/png", cardwire.OutcomeUnknown},
		"before the type is told": {connected, "", cardwire.OutcomeNotSent},
		"after an early response": {early, "image/png", cardwire.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errGone := errors.New("the user has gone")
			ctx, cancel := context.WithCancelCause(t.Context())
			s := &stuck{reading: func() { cancel(errGone) }, untilClosed: untilClosed{closed: make(chan struct{})}}
			got, err := tc.client(t).UploadImage(ctx, cardwire.UploadImageParams{
				Filename: "front.png", ContentType: tc.contentType, Size: 10,
				Open: func() (io.ReadCloser, error) { return s, nil },
			})
			assert.Nil(t, got)
			assert.Equal(t, tc.outcome, wiretest.Failure(t, err).Outcome)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errGone)
			require.ErrorContains(t, err, "the call ended while the source was read")
		})
	}
}

func TestUploadEndsASourceThatBlocksWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts []cardwire.Option
		want time.Duration
	}{
		"five minutes":       {nil, 5 * time.Minute},
		"the client's bound": {[]cardwire.Option{cardwire.WithTimeout(time.Hour)}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := &stuck{reading: func() {}, untilClosed: untilClosed{closed: make(chan struct{})}}
				_, err := wiretest.NewClient(t, hasty{bytes: 1000}, tc.opts...).UploadImage(t.Context(), cardwire.UploadImageParams{
					Filename: "front.png", ContentType: "image/png", Size: 1000,
					Open: func() (io.ReadCloser, error) { return s, nil },
				})
				require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, tc.want, time.Since(begun))
			})
		})
	}
}

// A source may heed neither that it was closed nor what is asked of a Read.
func TestUploadEndsASourceThatGoesOnForever(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source io.Reader
		says   string
		took   time.Duration // until the read is over that the call's end found under way
	}{
		"neither bytes nor an error": {endless{}, "the source returns neither bytes nor an error", 0},
		"nothing, slowly":            {slow{70 * time.Second, 0}, "the call ended while the source was read", 350 * time.Second},
		"bytes, slowly":              {slow{70 * time.Second, 1}, "the call ended while the source was read", 350 * time.Second},
	} {
		for contentType, outcome := range map[string]cardwire.Outcome{"": cardwire.OutcomeNotSent, "image/png": cardwire.OutcomeUnknown} {
			t.Run(name+", "+contentType, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					_, err := wiretest.NewClient(t, hasty{}).UploadImage(t.Context(), cardwire.UploadImageParams{
						Filename: "front.png", ContentType: contentType, Size: 1000,
						Open: func() (io.ReadCloser, error) { return io.NopCloser(tc.source), nil },
					})
					require.ErrorContains(t, err, tc.says)
					assert.Equal(t, outcome, wiretest.Failure(t, err).Outcome)
					assert.Equal(t, tc.took, time.Since(began))
				})
			})
		}
	}
}

// slow takes its time for each read of so many bytes.
type slow struct {
	wait  time.Duration
	bytes int
}

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(s.wait)
	return min(s.bytes, len(p)), nil
}

// A source that is opened after the call ended is closed.
func TestUploadLeavesAnOpenThatBlocks(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]*untilClosed{"what comes late": {closed: make(chan struct{})}, "nothing comes": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, release := time.Now(), make(chan struct{})
				_, err := wiretest.Unasked(t).UploadImage(t.Context(), cardwire.UploadImageParams{
					Filename: "front.png", ContentType: "image/png", Size: 1000,
					Open: func() (io.ReadCloser, error) {
						<-release
						if late == nil {
							panic("nobody hears it")
						}
						return struct {
							io.Reader
							io.Closer
						}{endless{}, late}, nil
					},
				})
				require.ErrorIs(t, err, cardwire.ErrNotSent)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "the call ended while the source was opened")
				assert.Equal(t, 5*time.Minute, time.Since(began))
				close(release)
				if late != nil {
					<-late.closed
				}
			})
		})
	}
}

// The call's time is also what an observer makes it.
func TestUploadEndsAnOpenWithTheContextOfAnObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, release := time.Now(), make(chan struct{})
		defer close(release)
		observe := cardwire.WithObserver(cardwire.Observer{CallStart: func(ctx context.Context, _ cardwire.CallInfo) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			t.Cleanup(cancel)
			return ctx
		}})
		_, err := wiretest.Unasked(t, observe).UploadImage(t.Context(), cardwire.UploadImageParams{
			Filename: "front.png", Size: 1000,
			Open: func() (io.ReadCloser, error) { <-release; return nil, os.ErrClosed },
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// That Open runs elsewhere is not seen by who wrote it.
func TestUploadEndsAsItsOpenDoes(t *testing.T) {
	t.Parallel()
	c := wiretest.Unasked(t)
	upload := func(open func() (io.ReadCloser, error)) error {
		_, err := c.UploadImage(t.Context(), cardwire.UploadImageParams{Filename: "front.png", Size: 10, Open: open})
		return err
	}
	assert.PanicsWithValue(t, "of the caller", func() {
		_ = upload(func() (io.ReadCloser, error) { panic("of the caller") })
	})
	var after atomic.Bool
	var goroutine sync.WaitGroup
	goroutine.Go(func() {
		_ = upload(func() (io.ReadCloser, error) { runtime.Goexit(); return nil, nil })
		after.Store(true)
	})
	goroutine.Wait()
	assert.False(t, after.Load(), "a runtime.Goexit ends the goroutine of the call")
	wiretest.RefusedBeforehand(t, upload(func() (io.ReadCloser, error) { return (*os.File)(nil), nil }), "Open returned nil")
}

// keeper reads the body only after its response was taken, as net/http may while
// the response is judged.
type keeper struct{ later chan error }

func (k keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	go func() {
		_, err := io.Copy(io.Discard, r.Body)
		k.later <- err
	}()
	return wiretest.Response(r, http.StatusOK, uploaded), nil
}

func TestUploadMayBeReadOnWhileTheResponseIsJudged(t *testing.T) {
	t.Parallel()
	content := pngHead + strings.Repeat("p", 100_000)
	for name, tc := range map[string]struct {
		size int
		fine bool
	}{"exact": {len(content), true}, "too few": {len(content) + 1, false}, "too many": {len(content) - 1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := keeper{make(chan error, 1)}
			s := sourceOf(content)
			got, err := wiretest.NewClient(t, k).UploadImage(t.Context(), s.params(tc.size, ""))
			t.Log("the doer saw:", <-k.later) // it ends, whatever it saw
			assert.Equal(t, tc.fine, got != nil)
			assert.Equal(t, tc.fine, err == nil)
			if err != nil {
				require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
			}
			assert.Equal(t, int32(1), s.closed.Load())
		})
	}
}

func TestUploadOfSourcesThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	errOpen := errors.New("no such file: /home/maria/front.png")
	for _, contentType := range []string{"", "image/png"} {
		t.Run("error, "+contentType, func(t *testing.T) {
			t.Parallel()
			_, err := wiretest.Unasked(t).UploadImage(t.Context(), cardwire.UploadImageParams{
				Filename: "front.png", Size: 10, ContentType: contentType,
				Open: func() (io.ReadCloser, error) { return nil, errOpen },
			})
			require.ErrorIs(t, err, errOpen)
			require.ErrorIs(t, err, cardwire.ErrNotSent)
			require.ErrorContains(t, err, "the source could not be opened")
			assert.NotContains(t, err.Error(), "maria")
		})
		t.Run("nothing, "+contentType, func(t *testing.T) {
			t.Parallel()
			_, err := wiretest.Unasked(t).UploadImage(t.Context(), cardwire.UploadImageParams{
				Filename: "front.png", Size: 10, ContentType: contentType,
				Open: func() (io.ReadCloser, error) { return nil, nil },
			})
			wiretest.RefusedBeforehand(t, err, "Open returned nil")
		})
	}
}

func TestUploadOfSourcesThatFailBeforeTheTypeIsTold(t *testing.T) {
	t.Parallel()
	errRead := errors.New("disk on fire")
	for name, tc := range map[string]struct {
		content io.Reader
		cause   error
		says    string
	}{
		"empty":      {strings.NewReader(""), cardwire.ErrInvalidParams, "fewer bytes than Size"},
		"too short":  {strings.NewReader(pngHead), cardwire.ErrInvalidParams, "fewer bytes than Size"},
		"read error": {io.MultiReader(strings.NewReader(pngHead), iotest.ErrReader(errRead)), errRead, "could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &source{content: func() io.Reader { return tc.content }}
			_, err := wiretest.Unasked(t).UploadImage(t.Context(), s.params(100, ""))
			require.ErrorIs(t, err, tc.cause)
			require.ErrorIs(t, err, cardwire.ErrNotSent)
			require.ErrorContains(t, err, tc.says)
			assert.Equal(t, int32(1), s.closed.Load())
		})
	}
}

func TestUploadClosesTheSourceWhateverHappens(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("no")
	refusing := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errOwn }}
	noKey := func(context.Context) (string, error) { return "", errOwn }
	done, cancel := context.WithCancel(t.Context())
	cancel()
	content := pngHead + "pixels"
	for name, tc := range map[string]struct {
		ctx    context.Context
		key    string
		opts   []cardwire.Option
		opened int32
	}{
		"the context is done":    {done, wiretest.Key, nil, 0},
		"the key source fails":   {t.Context(), "", []cardwire.Option{cardwire.WithKeySource(noKey)}, 0},
		"the limiter fails":      {t.Context(), wiretest.Key, []cardwire.Option{cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return errOwn }))}, 1},
		"no server":              {t.Context(), wiretest.Key, []cardwire.Option{cardwire.WithTransport(refusing), cardwire.WithRetry(cardwire.RetryPolicy{})}, 1},
		"no server, three times": {t.Context(), wiretest.Key, []cardwire.Option{cardwire.WithTransport(refusing), cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 2})}, 3},
	} {
		for _, contentType := range []string{"", "image/png"} {
			t.Run(name+", "+contentType, func(t *testing.T) {
				t.Parallel()
				c, err := cardwire.New(wiretest.Base, tc.key, tc.opts...)
				require.NoError(t, err)
				s := sourceOf(content)
				got, err := c.UploadImage(tc.ctx, s.params(len(content), contentType))
				assert.Nil(t, got)
				require.ErrorIs(t, err, cardwire.ErrNotSent)
				assert.Equal(t, tc.opened, s.opened.Load(), "opened once an attempt")
				assert.Equal(t, tc.opened, s.closed.Load(), "closed as often")
			})
		}
	}
}

// A source may open once and not again.
func TestUploadOfASourceThatCannotBeOpenedAgain(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("no")
	refusing := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errOwn }}
	c, err := cardwire.New(wiretest.Base, wiretest.Key, cardwire.WithTransport(refusing), cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 2}))
	require.NoError(t, err)
	s := sourceOf(pngHead)
	p := s.params(len(pngHead), "")
	p.Open = func() (io.ReadCloser, error) {
		if s.opened.Load() > 0 {
			return nil, errOwn
		}
		return s.open()
	}
	_, err = c.UploadImage(t.Context(), p)
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	require.ErrorIs(t, err, errOwn)
	assert.Equal(t, int32(1), s.closed.Load())
}

// uploadServer reads whole uploads, and responds as the service does.
func uploadServer(t *testing.T, files chan<- []byte) *cardwire.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, _, err := r.FormFile("file")
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		content, err := io.ReadAll(file)
		assert.NoError(t, err)
		files <- content
		_, err = io.WriteString(w, uploaded)
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	c, err := cardwire.New(server.URL+"/shop/api/v1", wiretest.Key)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestUploadOverAConnection(t *testing.T) {
	t.Parallel()
	errRead := errors.New("disk on fire in /home/maria")
	content := pngHead + strings.Repeat("0123456789", 100_000)
	for name, tc := range map[string]struct {
		content func() io.Reader
		says    string // "": a success
	}{
		"exact":          {func() io.Reader { return strings.NewReader(content) }, ""},
		"exact, halves":  {func() io.Reader { return iotest.HalfReader(strings.NewReader(content)) }, ""},
		"too few bytes":  {func() io.Reader { return strings.NewReader(content[:len(content)/2]) }, "fewer bytes than Size"},
		"one too few":    {func() io.Reader { return strings.NewReader(content[1:]) }, "fewer bytes than Size"},
		"one too many":   {func() io.Reader { return strings.NewReader(content + "p") }, "more bytes than Size"},
		"far too many":   {func() io.Reader { return strings.NewReader(content + content) }, "more bytes than Size"},
		"error half-way": {func() io.Reader { return io.MultiReader(strings.NewReader(content[:5000]), iotest.ErrReader(errRead)) }, "could not be read"},
		"error at the end": {
			func() io.Reader { return io.MultiReader(strings.NewReader(content), iotest.ErrReader(errRead)) }, "could not be read",
		},
	} {
		for _, contentType := range []string{"", "image/png"} {
			t.Run(name+", "+contentType, func(t *testing.T) {
				t.Parallel()
				files := make(chan []byte, 1)
				s := &source{content: tc.content}
				got, err := uploadServer(t, files).UploadImage(t.Context(), s.params(len(content), contentType))
				assert.Equal(t, int32(1), s.opened.Load())
				assert.Equal(t, int32(1), s.closed.Load())
				if tc.says == "" {
					require.NoError(t, err)
					assert.Equal(t, &cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, got)
					assert.True(t, bytes.Equal([]byte(content), <-files), "the file arrives as it is")
					return
				}
				assert.Nil(t, got)
				assert.Empty(t, files, "a body that is wrong is never complete")
				require.ErrorContains(t, err, tc.says)
				require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
				assert.NotContains(t, err.Error(), "maria")
			})
		}
	}
}

// lingering is a source that returns some bytes and then holds on to a read
// until it is closed, and for a while longer.
type lingering struct {
	untilClosed

	first   []byte
	reading atomic.Bool
}

func (l *lingering) Read(p []byte) (int, error) {
	if len(l.first) > 0 {
		n := copy(p, l.first)
		l.first = l.first[n:]
		return n, nil
	}
	l.reading.Store(true)
	defer l.reading.Store(false)
	<-l.closed
	for range 10_000 {
		runtime.Gosched()
	}
	return 0, os.ErrClosed
}

// What the caller gave is the caller's again when UploadImage returns, also
// where the service responded before it had been sent everything.
func TestUploadReadsNothingAfterAnEarlyResponse(t *testing.T) {
	t.Parallel()
	source := &lingering{first: make([]byte, 64<<10), untilClosed: untilClosed{closed: make(chan struct{})}}
	leave := make(chan struct{})
	server := serveHead(t, func(conn net.Conn) {
		for !source.reading.Load() {
			runtime.Gosched()
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		<-leave
	})
	t.Cleanup(func() { close(leave) })
	c, err := cardwire.New(server, wiretest.Key)
	require.NoError(t, err)
	_, err = c.UploadImage(t.Context(), cardwire.UploadImageParams{
		Filename: "front.png", ContentType: "image/png", Size: 1 << 20,
		Open: func() (io.ReadCloser, error) { return source, nil },
	})
	assert.False(t, source.reading.Load(), "a read is under way")
	assert.Equal(t, cardwire.OutcomeRefused, wiretest.Failure(t, err).Outcome)
}

// serveHead responds to one request of which it has read the head only.
func serveHead(t *testing.T, response func(net.Conn)) (base string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return // closed by the test's end
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			response(conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return "http://" + listener.Addr().String()
}

// Opening a named pipe waits for somebody who writes to it, and no context ends that.
func TestImageFileOfANamedPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "front.png")
	require.NoError(t, os.WriteFile(path, []byte(pngHead), 0o600))
	p, err := cardwire.ImageFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	if runtime.GOOS == "windows" {
		t.Skip("this system has no named pipes in directories")
	}
	require.NoError(t, exec.CommandContext(t.Context(), "mkfifo", path).Run())

	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	wiretest.RefusedBeforehand(t, err, "the file was replaced or has changed its size since ImageFile")
	_, err = cardwire.ImageFile(path)
	require.ErrorIs(t, err, upload.ErrNotRegular)
}
