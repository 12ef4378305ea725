package transport

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

func TestRelease(t *testing.T) {
	for size, kept := range map[int]bool{16: true, 3 << 20: false} {
		e := New(Config{Doer: scripted(response(200, strings.Repeat("x", size))).client()})
		in := get(t, service)
		in.MaxBytes = 4 << 20
		r := e.Do(t.Context(), in)
		require.NoError(t, r.Err)
		require.Len(t, r.Body, size)
		used := r.buf
		r.Release()
		r.Release() // gives it back once only
		assert.Nil(t, r.Body)
		first, second := e.buffers.Get(), e.buffers.Get()
		assert.NotSame(t, first, second)
		if !kept {
			assert.NotSame(t, used, first, "it is too large to be kept")
		}
	}
}

func TestBodySizes(t *testing.T) {
	xs := func(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }
	const mega = 1 << 20
	for name, tc := range map[string]struct {
		size  int64
		body  io.Reader
		limit int64
		want  error
		bytes int
	}{
		"empty":                     {0, xs(0), 0, nil, 0},
		"one byte over nothing":     {1, xs(1), 0, ErrTooLarge, 0},
		"exactly the limit":         {1 << 16, xs(1 << 16), 1 << 16, nil, 1 << 16},
		"one byte over":             {1<<16 + 1, xs(1<<16 + 1), 1 << 16, ErrTooLarge, 0},
		"one over, length unknown":  {-1, xs(1<<16 + 1), 1 << 16, ErrTooLarge, 0},
		"length unknown":            {-1, xs(300 << 10), mega, nil, 300 << 10},
		"one byte at a time":        {-1, iotest.OneByteReader(xs(5000)), mega, nil, 5000},
		"endless":                   {-1, endless{}, mega, ErrTooLarge, 0},
		"a length that is a lie":    {1e12, xs(2), 1 << 40, nil, 2},
		"a length that is too low":  {1, xs(5), mega, nil, 5},
		"nothing for ever":          {-1, counting(0), mega, io.ErrNoProgress, 0},
		"nothing for a while":       {-1, hesitant(maxEmptyReads-1, "hello"), mega, nil, 5},
		"more than there is room":   {-1, counting(mega), mega, errMiscounted, 0},
		"far more than the limit":   {-1, counting(math.MaxInt), mega, errMiscounted, 0},
		"less than nothing":         {-1, counting(-1), mega, errMiscounted, 0},
		"broken off after a few":    {-1, io.MultiReader(xs(3), iotest.ErrReader(errBroken)), mega, errBroken, 0},
		"the end with the last one": {-1, iotest.DataErrReader(xs(5)), mega, nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			in := get(t, service)
			in.MaxBytes = tc.limit
			in.NoRetry = true
			e := New(Config{Doer: scripted(stream(tc.size, tc.body)).client()})
			r := e.Do(t.Context(), in)
			require.ErrorIs(t, r.Err, tc.want)
			assert.Equal(t, 200, r.Status)
			assert.Len(t, r.Body, tc.bytes)
			assert.LessOrEqual(t, cap(r.buf.b), 1<<21, "what is promised is not reserved")
			if tc.want != nil {
				assert.Equal(t, []string{"received"}, phases(r))
				assert.Nil(t, r.Body)
			}
			r.Release()
		})
	}
}

// counting is a reader that says that it read this many bytes.
type counting int

func (c counting) Read([]byte) (int, error) { return int(c), nil }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// hesitant returns nothing a number of times before each byte.
func hesitant(times int, s string) io.Reader {
	calls := 0
	return readerFunc(func(p []byte) (int, error) {
		if s == "" {
			return 0, io.EOF
		}
		if calls++; calls%(times+1) != 0 {
			return 0, nil
		}
		n := copy(p, s[:1])
		s = s[1:]
		return n, nil
	})
}

// What the buffers of one body take in all. The limit is just above a power of the growth,
// where overshooting costs the most.
func TestWhatReadingABodyReserves(t *testing.T) {
	const limit = 8 << 20
	for _, tc := range []struct {
		size       int64
		sent, most int
	}{
		{-1, math.MaxInt, 2 * limit}, {1000, math.MaxInt, 2 * limit}, {1 << 40, math.MaxInt, 2 * limit},
		{200_000, 200_000, 400_000}, {200_000, 1000, 150_000}, {-1, 1000, 5000},
	} {
		b, last, total := new(buffer), 0, 0
		err := b.fill(t.Context(), readerFunc(func(p []byte) (int, error) {
			if n := cap(b.b); n != last {
				last, total = n, total+n
			}
			if len(b.b) >= tc.sent {
				return 0, io.EOF
			}
			return min(len(p), tc.sent-len(b.b)), nil
		}), tc.size, limit)
		assert.Equal(t, tc.sent > limit, err != nil, "%+v", tc)
		assert.LessOrEqual(t, total, tc.most+tc.most/50, "%+v", tc) // the allocator rounds up
	}
}

func TestGzip(t *testing.T) {
	large := strings.Repeat(canary, 5000)
	z := loopback.Gzip(t, "hello")
	wrong := z[:len(z)-5] + "x" + z[len(z)-4:]
	for name, tc := range map[string]struct {
		body, want string
		coding     []string
	}{
		"gzip":                {z, "hello", []string{"gzip"}},
		"in other letters":    {z, "hello", []string{"GZip"}},
		"of nothing":          {loopback.Gzip(t, ""), "", []string{"gzip"}},
		"large":               {loopback.Gzip(t, large), large, []string{"gzip"}},
		"not said":            {z, z, nil},
		"an alias":            {z, z, []string{"x-gzip"}},
		"a list":              {z, z, []string{"identity, gzip"}},
		"two lines":           {z, z, []string{"gzip", "identity"}},
		"br":                  {z, z, []string{"br"}},
		"not compressed":      {"{}", "{}", []string{"gzip"}},
		"cut off":             {z[:len(z)-1], z[:len(z)-1], []string{"gzip"}},
		"without its trailer": {z[:len(z)-8], z[:len(z)-8], []string{"gzip"}},
		"a wrong checksum":    {wrong, wrong, []string{"gzip"}},
		"a byte after it":     {z + "\x00", z + "\x00", []string{"gzip"}},
		"two members":         {z + z, z + z, []string{"gzip"}},
	} {
		for _, class := range classes {
			header := http.Header{"Content-Encoding": tc.coding, "Content-Length": {"1"}, "X-A": {"b"}}
			before := header.Clone()
			s := scripted(func(r *http.Request) (*http.Response, error) {
				resp, err := stream(-1, strings.NewReader(tc.body))(r)
				resp.Header = header
				return resp, err
			})
			in := post(t, service, class)
			in.MaxBytes = int64(max(len(tc.want), len(tc.body)))
			e := New(Config{Doer: s.client()})
			r := e.Do(t.Context(), in)
			require.NoError(t, r.Err, name)
			assert.Equal(t, tc.want, string(r.Body), name)
			assert.Equal(t, before, header, "a doer's own")
			want := before
			if tc.want != tc.body {
				want = http.Header{"X-A": {"b"}}
			}
			assert.Equal(t, want, r.Header, name)
			r.Release()

			in.MaxBytes--
			r = e.Do(t.Context(), in)
			require.ErrorIs(t, r.Err, ErrTooLarge, name)
			assert.Nil(t, r.Body)
		}
	}
}

// recording remembers all memory that it was read into.
type recording struct {
	io.Reader
	places [][]byte
}

func (r *recording) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.places = append(r.places, p[:n:n])
	return n, err
}

// However a response ends, and whatever it made grow, no byte of it is left in
// memory that was read into, once it is released.
func TestNothingOfAResponseIsLeftInItsBuffers(t *testing.T) {
	repeated := func(n int) io.Reader { return strings.NewReader(strings.Repeat(canary, n)) }
	for name, tc := range map[string]struct {
		body   io.Reader
		size   int64
		status int
	}{
		"a short one":            {repeated(1), 16, 200},
		"a refusal":              {repeated(1), 16, 422},
		"one that is retried":    {repeated(1), 16, 503},
		"a long one, announced":  {repeated(9000), 144000, 200},
		"a long one, by the way": {repeated(9000), -1, 200},
		"byte by byte":           {iotest.OneByteReader(repeated(600)), -1, 200},
		"too large a one":        {repeated(200_000), -1, 200},
		"one that breaks off":    {io.MultiReader(repeated(900), iotest.ErrReader(errBroken)), 99999, 200},
		"one that stalls":        {io.MultiReader(repeated(900), counting(0)), -1, 200},
		"a compressed one":       {strings.NewReader(loopback.Gzip(t, strings.Repeat(canary, 900))), -1, 200},
	} {
		t.Run(name, func(t *testing.T) {
			body := &recording{Reader: tc.body}
			first := func(r *http.Request) (*http.Response, error) {
				resp, _ := stream(tc.size, body)(r)
				resp.StatusCode, resp.Header = tc.status, http.Header{"Content-Encoding": {"gzip"}}
				return resp, nil
			}
			e := New(Config{Doer: scripted(first, fail(errBroken)).client(), Policy: quick})
			r := e.Do(t.Context(), get(t, service))
			read := 0
			for _, p := range body.places {
				read += len(p)
			}
			assert.GreaterOrEqual(t, read, len(canary))
			r.Release()
			for i, p := range body.places {
				assert.Equal(t, make([]byte, len(p)), p, "read %d", i)
			}
		})
	}
}
