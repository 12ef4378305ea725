package cardwire_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
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

// front describes an image of so many bytes.
func front(size int, contentType string, open func() (io.ReadCloser, error)) cardwire.UploadImageParams {
	return cardwire.UploadImageParams{Filename: "front.png", Size: int64(size), ContentType: contentType, Open: open}
}

func TestUploadImage(t *testing.T) {
	t.Parallel()
	large := pngHead + strings.Repeat("0123456789", 20_000)
	for name, tc := range map[string]struct{ filename, given, content, sent string }{
		"PNG":                {"front.png", "", pngHead + "pixels", "image/png"},
		"JPEG":               {"front.jpg", "", jpegHead + "pixels", "image/jpeg"},
		"the content tells":  {"front.jpg", "", pngHead + "pixels", "image/png"},
		"one byte, unknown":  {"front.png", "", "\x01", "application/octet-stream"},
		"given":              {"front.png", "image/x-scan; q=1", pngHead, "image/x-scan; q=1"},
		"more than a buffer": {"front.png", "", large, "image/png"},
		"512 bytes":          {"front.png", "", large[:512], "image/png"},
		"large and given":    {"front.png", "image/png", large, "image/png"},
		"name in a script":   {"frente é 表.png", "", pngHead, "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := uploadRequest(tc.filename, tc.sent, tc.content)
			c := wiretest.Respond(t, request, uploaded, cardwire.WithStrictDrift())
			p := cardwire.ImageBytes(tc.filename, []byte(tc.content))
			p.ContentType = tc.given
			got, err := c.UploadImage(t.Context(), p)
			require.NoError(t, err)
			assert.Equal(t, &cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, got)
		})
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
	for _, tc := range []struct {
		field string
		value any
		names string
	}{
		{"Open", nil, "Open is nil"},
		{"Size", 0, "Size"},
		{"Size", -1, "Size"},
		{"Size", int64(math.MaxInt64), "Size"}, // more than there is to see
		{"Filename", "", "Filename"},
		{"ContentType", "png", "ContentType"},
	} {
		p := cardwire.ImageBytes("front.png", []byte(pngHead))
		set(reflect.ValueOf(&p), tc.field, tc.value)
		got, err := wiretest.Unasked(t).UploadImage(t.Context(), p)
		assert.Nil(t, got)
		wiretest.RefusedBeforehand(t, err, tc.names)
	}
	noRoom := cardwire.ImageBytes("front.png", []byte(pngHead))
	noRoom.Size, noRoom.ContentType = math.MaxInt64, "image/png"
	_, err := wiretest.Unasked(t).UploadImage(t.Context(), noRoom)
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), cardwire.ImageBytes("front.png", nil))
	wiretest.RefusedBeforehand(t, err, "an empty file cannot be uploaded")
}

const replaced = "the file was replaced or its size has changed since ImageFile"

func TestImageFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "front.png"), filepath.Join(dir, "other.png")
	require.NoError(t, os.WriteFile(path, []byte(pngHead+"pixels"), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(pngHead+"PIXELS"), 0o600))
	p, err := cardwire.ImageFile(path)
	require.NoError(t, err)
	assert.Equal(t, "front.png", p.Filename)
	assert.Equal(t, int64(14), p.Size)
	assert.Empty(t, p.ContentType)
	c := wiretest.Respond(t, uploadRequest("front.png", "image/png", pngHead+"pixels"), uploaded)
	got, err := c.UploadImage(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, "att/7f.png", got.AttachmentKey)

	// A file that grew after it was measured is another image; so is another file.
	require.NoError(t, os.WriteFile(path, []byte(pngHead+"pixels!"), 0o600))
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	wiretest.RefusedBeforehand(t, err, replaced)
	require.NoError(t, os.Rename(other, path))
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	wiretest.RefusedBeforehand(t, err, replaced)

	require.NoError(t, os.Remove(path))
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	assert.NotContains(t, err.Error(), "front.png", "the path may hold a name")

	for path, cause := range map[string]error{
		path: os.ErrNotExist, dir: upload.ErrNotRegular, os.DevNull: upload.ErrNotRegular,
	} {
		none, err := cardwire.ImageFile(path)
		require.ErrorIs(t, err, cause)
		var failed *fs.PathError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, path, failed.Path)
		assert.Zero(t, none)
	}

	// Opening a named pipe waits for somebody who writes to it, and no context ends that.
	if runtime.GOOS == "windows" {
		t.Skip("this system has no named pipes in directories")
	}
	require.NoError(t, exec.CommandContext(t.Context(), "mkfifo", path).Run())
	_, err = wiretest.Unasked(t).UploadImage(t.Context(), p)
	wiretest.RefusedBeforehand(t, err, replaced)
	_, err = cardwire.ImageFile(path)
	require.ErrorIs(t, err, upload.ErrNotRegular)
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
	return front(size, contentType, s.open)
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

var errDisk = errors.New("disk on fire in /home/maria")

// sources are those of an image of which content is what was announced, and what is said of
// those that have something else.
var sources = map[string]struct {
	says string // "": a success
	of   func(content string) io.Reader
}{
	"exact":         {"", func(s string) io.Reader { return strings.NewReader(s) }},
	"halves":        {"", func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) }},
	"with EOF":      {"", func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) }},
	"half of it":    {fewer, func(s string) io.Reader { return strings.NewReader(s[:len(s)/2]) }},
	"one too few":   {fewer, func(s string) io.Reader { return strings.NewReader(s[1:]) }},
	"few, with EOF": {fewer, func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s[1:])) }},
	"one too many":  {"more bytes than Size", func(s string) io.Reader { return strings.NewReader(s + "p") }},
	"far too many":  {"more bytes than Size", func(s string) io.Reader { return strings.NewReader(s + s) }},
	"broken":        {unread, func(s string) io.Reader { return until(s[:3000], iotest.ErrReader(errDisk)) }},
	"broken at end": {unread, func(s string) io.Reader { return until(s, iotest.ErrReader(errDisk)) }},
	"endless":       {"neither bytes nor an error", func(s string) io.Reader { return until(s, endless{}) }},
	"more than asked for": {miscounted, func(s string) io.Reader {
		return until(s[:3000], miscounting(func(p []byte) int { return len(p) + 1 }))
	}},
	"less than nothing": {miscounted, func(s string) io.Reader {
		return until(s[:3000], miscounting(func([]byte) int { return -1 }))
	}},
}

const (
	fewer      = "fewer bytes than Size"
	unread     = "the source could not be read"
	miscounted = "the source's Read returned an impossible count"
)

func until(content string, end io.Reader) io.Reader {
	return io.MultiReader(strings.NewReader(content), end)
}

// miscounting returns another count than that of the bytes that it read.
type miscounting func(p []byte) int

func (m miscounting) Read(p []byte) (int, error) { return m(p), nil }

// endless yields neither bytes nor an error.
type endless struct{}

func (endless) Read([]byte) (int, error) { return 0, nil }

// A response that comes before the source has been read to its end says nothing
// about the source.
func TestUploadIsNotProvenByAnEarlyResponse(t *testing.T) {
	t.Parallel()
	content := pngHead + strings.Repeat("p", 5000)
	for read, carrier := range map[string]hasty{"nothing": {}, "the head": {bytes: 150}, "much": {bytes: 2000}} {
		assertSources(t, read, content, func(*testing.T) (*cardwire.Client, <-chan []byte) {
			return wiretest.NewClient(t, carrier), nil
		})
	}
}

func TestUploadOverAConnection(t *testing.T) {
	t.Parallel()
	assertSources(t, "all", pngHead+strings.Repeat("0123456789", 100_000), uploadServer)
}

// assertSources asserts how uploads of all sources end, and what arrives.
func assertSources(t *testing.T, read, content string, connect func(*testing.T) (*cardwire.Client, <-chan []byte)) {
	t.Helper()
	for name, tc := range sources {
		for _, contentType := range []string{"", "image/png"} {
			t.Run(name+", "+read+" is read, "+contentType, func(t *testing.T) {
				t.Parallel()
				c, files := connect(t)
				s := &source{content: func() io.Reader { return tc.of(content) }}
				got, err := c.UploadImage(t.Context(), s.params(len(content), contentType))
				assert.Equal(t, int32(1), s.opened.Load())
				assert.Equal(t, int32(1), s.closed.Load())
				if tc.says == "" {
					require.NoError(t, err)
					assert.Equal(t, &cardwire.UploadedImage{AttachmentKey: "att/7f.png"}, got)
					if files != nil {
						assert.True(t, bytes.Equal([]byte(content), <-files), "the file arrives as it is")
					}
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

// What the service says it did was not done with the image that was meant.
func TestUploadOfAWrongImageWithAnUnreadableEarlyResponseIsUnknown(t *testing.T) {
	t.Parallel()
	c := wiretest.NewClient(t, hasty{response: wiretest.Success(`{}`)})
	content := pngHead + "pixels"
	_, err := c.UploadImage(t.Context(), sourceOf(content).params(len(content)+1, "image/png"))
	require.ErrorIs(t, err, cardwire.ErrUnreadable)
	require.ErrorContains(t, err, "fewer bytes than Size")
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, err).Outcome)

	_, err = c.UploadImage(t.Context(), sourceOf(content).params(len(content), "image/png"))
	require.ErrorIs(t, err, cardwire.ErrUnreadable)
	assert.NotContains(t, err.Error(), "Size", "of an image as it was announced")
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, err).Outcome)
}

// stuck blocks until it is closed, like a pipe without a writer.
type stuck struct {
	*io.PipeReader
	reading func() // told of each read
}

func (s stuck) Read(p []byte) (int, error) {
	s.reading()
	return s.PipeReader.Read(p)
}

// net/http waits for a read under way even where the context is done.
func TestUploadEndsASourceThatBlocksWithTheContext(t *testing.T) {
	t.Parallel()
	connected := func(t *testing.T) *cardwire.Client {
		c, _ := uploadServer(t)
		return c
	}
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
			pipe, _ := io.Pipe()
			s := stuck{pipe, func() { cancel(errGone) }}
			p := front(10, tc.contentType, func() (io.ReadCloser, error) { return s, nil })
			got, err := tc.client(t).UploadImage(ctx, p)
			assert.Nil(t, got)
			assert.Equal(t, tc.outcome, wiretest.Failure(t, err).Outcome)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errGone)
			require.ErrorContains(t, err, "the call ended while the source was read")
		})
	}
}

// A source may heed neither that it was closed nor what is asked of a Read.
func TestUploadEndsASourceThatGoesOnForever(t *testing.T) {
	t.Parallel()
	const ended = "the call ended while the source was read"
	for name, tc := range map[string]struct {
		source io.Reader
		says   string
		took   time.Duration // until the read is over that the call's end found under way
	}{
		"neither bytes nor an error": {endless{}, "the source returns neither bytes nor an error", 0},
		"a panic":                    {struct{ io.Reader }{}, "the source panicked", 0},
		"nothing, slowly":            {slow{70 * time.Second, 0}, ended, 350 * time.Second},
		"bytes, slowly":              {slow{70 * time.Second, 1}, ended, 350 * time.Second},
	} {
		for contentType, outcome := range map[string]cardwire.Outcome{
			"": cardwire.OutcomeNotSent, "image/png": cardwire.OutcomeUnknown,
		} {
			t.Run(name+", "+contentType, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					p := front(1000, contentType, func() (io.ReadCloser, error) { return frail{tc.source}, nil })
					_, err := wiretest.NewClient(t, hasty{}).UploadImage(t.Context(), p)
					require.ErrorContains(t, err, tc.says)
					assert.Equal(t, outcome, wiretest.Failure(t, err).Outcome)
					assert.Equal(t, tc.took, time.Since(began))
				})
			})
		}
	}
}

// frail cannot be closed.
type frail struct{ io.Reader }

func (frail) Close() error { panic("nobody hears it") }

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
	for _, comes := range []bool{true, false} {
		t.Run(fmt.Sprintf("it comes late: %t", comes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, release := time.Now(), make(chan struct{})
				late, in := io.Pipe()
				p := front(1000, "image/png", func() (io.ReadCloser, error) {
					<-release
					if !comes {
						panic("nobody hears it")
					}
					return late, nil
				})
				_, err := wiretest.Unasked(t).UploadImage(t.Context(), p)
				require.ErrorIs(t, err, cardwire.ErrNotSent)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "the call ended while the source was opened")
				assert.Equal(t, 5*time.Minute, time.Since(began))
				close(release)
				if comes {
					_, err = in.Write([]byte{0})
					require.ErrorIs(t, err, io.ErrClosedPipe)
				}
			})
		})
	}
}

// That Open runs on another goroutine does not end the program.
func TestUploadFailsAsItsOpenDoes(t *testing.T) {
	t.Parallel()
	errOpen := errors.New("no such file: /home/maria/front.png")
	for _, contentType := range []string{"", "image/png"} {
		upload := func(open func() (io.ReadCloser, error)) error {
			return wiretest.OnlyError(wiretest.Unasked(t).UploadImage(t.Context(), front(10, contentType, open)))
		}
		for _, end := range []func(){func() { panic("of the caller") }, runtime.Goexit} {
			err := upload(func() (io.ReadCloser, error) { end(); return nil, nil })
			require.ErrorIs(t, err, cardwire.ErrNotSent)
			require.ErrorContains(t, err, "the source panicked")
		}
		err := upload(func() (io.ReadCloser, error) { return (*os.File)(nil), nil })
		wiretest.RefusedBeforehand(t, err, "Open returned nil")
		err = upload(func() (io.ReadCloser, error) { return nil, nil })
		wiretest.RefusedBeforehand(t, err, "Open returned nil")
		err = upload(func() (io.ReadCloser, error) { return nil, errOpen })
		require.ErrorIs(t, err, errOpen)
		require.ErrorIs(t, err, cardwire.ErrNotSent)
		require.ErrorContains(t, err, "the source could not be opened")
		assert.NotContains(t, err.Error(), "maria")
	}
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
	for _, excess := range []int{0, 1, -1} {
		k, s := keeper{make(chan error, 1)}, sourceOf(content)
		got, err := wiretest.NewClient(t, k).UploadImage(t.Context(), s.params(len(content)+excess, ""))
		t.Log("the doer saw:", <-k.later) // it ends, whatever it saw
		assert.Equal(t, excess == 0, got != nil)
		assert.Equal(t, excess == 0, err == nil)
		if err != nil {
			require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
		}
		assert.Equal(t, int32(1), s.closed.Load())
	}
}

func TestUploadOfSourcesThatFailBeforeTheTypeIsTold(t *testing.T) {
	t.Parallel()
	for content, cause := range map[io.Reader]error{
		strings.NewReader(""):                     cardwire.ErrInvalidParams,
		strings.NewReader(pngHead):                cardwire.ErrInvalidParams,
		until(pngHead, iotest.ErrReader(errDisk)): errDisk,
	} {
		s := &source{content: func() io.Reader { return content }}
		_, err := wiretest.Unasked(t).UploadImage(t.Context(), s.params(100, ""))
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, cardwire.ErrNotSent)
		require.Regexp(t, "fewer bytes than Size|could not be read", err.Error())
		assert.NotContains(t, err.Error(), "maria")
		assert.Equal(t, int32(1), s.closed.Load())
	}
}

func TestUploadClosesTheSourceWhateverHappens(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("no")
	refusing := cardwire.WithTransport(&http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errOwn },
	})
	retries := func(most int) cardwire.Option { return cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: most}) }
	limiter := cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return errOwn }))
	keyless := cardwire.WithKeySource(func(context.Context) (string, error) { return "", errOwn })
	content := pngHead + "pixels"
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		opened int32
		opts   []cardwire.Option
	}{
		"the context is done":    {done, 0, nil},
		"the key source fails":   {t.Context(), 0, []cardwire.Option{keyless}},
		"the limiter fails":      {t.Context(), 1, []cardwire.Option{limiter}},
		"no server":              {t.Context(), 1, []cardwire.Option{refusing, retries(0)}},
		"no server, three times": {t.Context(), 3, []cardwire.Option{refusing, retries(2)}},
	} {
		for _, contentType := range []string{"", "image/png"} {
			t.Run(name+", "+contentType, func(t *testing.T) {
				t.Parallel()
				c, err := cardwire.New(wiretest.Base, wiretest.Key, tc.opts...)
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

// uploadServer reads whole uploads, and responds as the service does.
func uploadServer(t *testing.T) (*cardwire.Client, <-chan []byte) {
	t.Helper()
	files := make(chan []byte, 1)
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
	return c, files
}

// lingering is a source that returns some bytes and then holds on to a read
// until it is closed, and for a while longer.
type lingering struct {
	*io.PipeReader

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
	_, err := l.PipeReader.Read(p)
	for range 10_000 {
		runtime.Gosched()
	}
	return 0, err
}

// What the caller gave is the caller's again when UploadImage returns, also
// where the service responded before it had been sent everything.
func TestUploadReadsNothingAfterAnEarlyResponse(t *testing.T) {
	t.Parallel()
	stuck, _ := io.Pipe()
	source := &lingering{PipeReader: stuck, first: make([]byte, 64<<10)}
	leave := make(chan struct{})
	server := loopback.Listen(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil { // its head only
			return
		}
		for !source.reading.Load() {
			runtime.Gosched()
		}
		loopback.Say("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")(conn)
		<-leave
	})
	t.Cleanup(func() { close(leave) })
	c, err := cardwire.New(server, wiretest.Key)
	require.NoError(t, err)
	_, err = c.UploadImage(t.Context(), front(1<<20, "image/png", func() (io.ReadCloser, error) { return source, nil }))
	assert.False(t, source.reading.Load(), "a read is under way")
	assert.Equal(t, cardwire.OutcomeRefused, wiretest.Failure(t, err).Outcome)
}
