package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// policy is the one most tests run under: two retries, short waits.
var policy = Policy{
	MaxRetries: 2, MinDelay: 250 * time.Millisecond, MaxDelay: 8 * time.Second,
	MaxRetryAfter: 30 * time.Second, Attempt: 10 * time.Second,
}

// quick is policy for tests over real sockets, where waits are real too. No
// attempt ends because the machine is slow.
var quick = Policy{MaxRetries: 2, MinDelay: time.Microsecond, MaxDelay: time.Microsecond, Attempt: time.Hour}

var errBroken = errors.New("broken by the test")

// step is what a scripted Doer does with one request.
type step func(*http.Request) (*http.Response, error)

// script is a RoundTripper and a Doer that takes one step a request, and the
// last one for ever.
type script struct {
	mu    sync.Mutex
	steps []step
	seen  []*http.Request
}

func scripted(steps ...step) *script { return &script{steps: steps} }

func (s *script) Do(r *http.Request) (*http.Response, error) { return s.RoundTrip(r) }

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	next := s.steps[min(len(s.seen), len(s.steps))-1]
	s.mu.Unlock()
	return next(r)
}

func (s *script) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// client is a caller's *http.Client over the script.
func (s *script) client() *http.Client { return &http.Client{Transport: s} }

// response responses with a status, a body and pairs of header names and values.
func response(status int, body string, header ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i+1 < len(header); i += 2 {
			h.Add(header[i], header[i+1])
		}
		return &http.Response{
			StatusCode: status, Header: h, Request: r,
			ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

func fail(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// hang responds when the request's context ends, like a service that does not.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// stream responses 200 with a body of its own making.
func stream(size int64, body io.Reader) step {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: size, Body: io.NopCloser(body)}, nil
	}
}

// get is a read, and post a call of the given class with the body "a=1".
func get(t testing.TB, at string) *Request {
	t.Helper()
	return &Request{Method: http.MethodGet, URL: parse(t, at), MaxBytes: 1 << 20}
}

func post(t testing.TB, at string, class Class) *Request {
	t.Helper()
	return &Request{
		Class: class, Method: http.MethodPost, URL: parse(t, at), MaxBytes: 1 << 20,
		Body: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("a=1")), nil }, BodySize: 3,
	}
}

func parse(t testing.TB, at string) *url.URL {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	return u
}

const service = "http://service.test/api/v1/cards/c-1"

// exchange serves a connection: it reads whole requests, tells of each, and
// writes the response.
func exchange(conn net.Conn, response string, executed *atomic.Int64) {
	defer loopback.HangUp(conn)
	in := bufio.NewReader(conn)
	for {
		if !loopback.ReadRequest(in) {
			return
		}
		executed.Add(1)
		if _, err := io.WriteString(conn, response); err != nil {
			return
		}
	}
}

// say writes s.
func say(conn net.Conn, s string) { loopback.Say(s)(conn) }

// sink reads what comes until nothing does.
func sink(conn net.Conn) {
	defer loopback.HangUp(conn)
	_, _ = io.Copy(io.Discard, conn)
}

// pipeTo dials connections in memory, each of which serve takes the other end of.
func pipeTo(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}
}

// pause waits in the time of a synctest bubble.
func pause(d time.Duration) { <-time.After(d) }

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

// own is an engine of our own, whose connections end with the test.
func own(t *testing.T, cfg Config) *Engine {
	t.Helper()
	e := New(cfg)
	t.Cleanup(e.CloseIdleConnections)
	return e
}

// refuse is a dialler for which nobody listens.
func refuse(err error) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
}

func TestResponseIsReadToItsEnd(t *testing.T) {
	e := New(Config{Doer: scripted(response(200, "hello", "X-Request-Id", "r-1")).client(), Policy: policy})
	var told []Attempt
	in := get(t, service)
	in.OnAttempt = func(a Attempt) { told = append(told, a) }

	r := e.Do(t.Context(), in)

	require.NoError(t, r.Err)
	assert.Equal(t, 200, r.Status)
	assert.Equal(t, "hello", string(r.Body))
	assert.Equal(t, "r-1", r.Header.Get("X-Request-Id"))
	assert.Equal(t, 1, r.Tries)
	assert.Nil(t, r.Attempts, "a clean first try is not recorded")
	assert.False(t, r.NotSent)
	assert.False(t, r.Redirected)
	assert.Zero(t, r.RetryAfter)
	require.Len(t, told, 1, "but told")
	assert.Equal(t, "received", told[0].Phase)
	assert.Equal(t, 200, told[0].HTTPStatus)
	assert.WithinDuration(t, time.Now(), told[0].Start, time.Minute)
	assert.Positive(t, told[0].Duration)
	assert.Zero(t, told[0].Wait)
}

func TestReleaseClearsTheBodyAndIsSafeTwice(t *testing.T) {
	e := New(Config{Doer: scripted(response(200, "4111111111111111")).client()})
	r := e.Do(t.Context(), get(t, service))
	body := r.Body
	require.Equal(t, "4111111111111111", string(body))

	r.Release()
	r.Release()

	assert.Nil(t, r.Body)
	assert.Equal(t, make([]byte, 16), body, "card data must not stay in memory that is used again")
	first, second := e.buffer(), e.buffer()
	assert.NotSame(t, first, second, "given back once only")
}

func TestOversizedBuffersAreNotKept(t *testing.T) {
	e := New(Config{Doer: scripted(response(200, strings.Repeat("x", 3<<20))).client()})
	in := get(t, service)
	in.MaxBytes = 4 << 20
	r := e.Do(t.Context(), in)
	require.NoError(t, r.Err)
	require.Len(t, r.Body, 3<<20)
	r.Release()
	assert.LessOrEqual(t, cap(e.buffer().b), maxPooled)
}

func TestGrowingClearsWhatItLeaves(t *testing.T) {
	b := &buffer{b: append(make([]byte, 0, 16), "4111111111111111"...)}
	old := b.b
	b.grow(64)
	assert.Equal(t, "4111111111111111", string(b.b))
	assert.Equal(t, make([]byte, 16), old)
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	for name, spoil := range map[string]func(*Request){
		"no URL":          func(c *Request) { c.URL = nil },
		"no host":         func(c *Request) { c.URL = &url.URL{Scheme: "http", Path: "/x"} },
		"another scheme":  func(c *Request) { c.URL = parse(t, "ftp://service.test/") },
		"no method":       func(c *Request) { c.Method = "" },
		"method":          func(c *Request) { c.Method = "GE T" },
		"size, no body":   func(c *Request) { c.BodySize = 1; c.Body = nil },
		"a negative size": func(c *Request) { c.BodySize = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := scripted(response(200, ""))
			in := post(t, service, Write)
			spoil(in)
			r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
			require.EqualError(t, r.Err, "invalid request")
			assert.True(t, r.NotSent)
			assert.Zero(t, r.Tries)
			assert.Zero(t, s.requests())
		})
	}
}

func TestContextOrDeadlineAlreadyOver(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	for _, class := range []Class{Read, Secret, Write} {
		s := scripted(response(200, ""))
		e := New(Config{Doer: s.client(), Policy: policy})

		r := e.Do(over, post(t, service, class))
		require.ErrorIs(t, r.Err, context.Canceled)
		require.ErrorIs(t, r.Err, errBroken, "the cause that the caller gave")
		assert.True(t, r.NotSent)

		in := post(t, service, class)
		in.Deadline = time.Now().Add(-time.Second)
		r = e.Do(t.Context(), in)
		require.ErrorIs(t, r.Err, context.DeadlineExceeded)
		assert.True(t, r.NotSent)
		assert.Zero(t, r.Tries)
		assert.Nil(t, r.Attempts)
		assert.Zero(t, s.requests())
	}
}

// A recorder may keep the requests that it saw: what the response was read into is
// not to stay in memory with them.
func TestARequestThatIsKeptDoesNotKeepTheCall(t *testing.T) {
	s := scripted(response(200, ""))
	in := get(t, service)
	call := weak.Make(in)
	New(Config{Doer: s.client()}).Do(t.Context(), in).Release()

	runtime.GC()
	assert.Nil(t, call.Value())
	assert.Len(t, s.seen, 1)
}

func TestRequestAsADoerSeesIt(t *testing.T) {
	s := scripted(response(200, ""))
	in := post(t, service+"?old=1", Write)
	in.Path, in.Query = "/a b", "page=1"
	in.Header = fixed{"Accept": {"application/json"}}
	New(Config{Doer: s.client()}).Do(t.Context(), in)

	sent := s.seen[0]
	assert.Equal(t, "POST", sent.Method)
	assert.Equal(t, service+"/a%20b?page=1", sent.URL.String())
	assert.Equal(t, service+"?old=1", in.URL.String(), "which calls share")
	assert.Equal(t, "service.test", sent.Host)
	assert.Equal(t, http.Header{"Accept": {"application/json"}}, sent.Header)
	assert.EqualValues(t, 3, sent.ContentLength)
	assert.Nil(t, sent.GetBody, "net/http sends again by itself what it can get again")
}

func TestEmptyBodies(t *testing.T) {
	for _, class := range classes {
		for _, body := range []func() (io.ReadCloser, error){nil, func() (io.ReadCloser, error) { panic("not opened") }} {
			s := scripted(response(200, ""))
			in := post(t, service, class)
			in.Body, in.BodySize = body, 0
			require.NoError(t, New(Config{Doer: s}).Do(t.Context(), in).Err)
			if class != Write {
				assert.Equal(t, http.NoBody, s.seen[0].Body)
				continue
			}
			assert.NotEqual(t, http.NoBody, s.seen[0].Body, "net/http would send it again by itself")
			require.NotNil(t, s.seen[0].Body)
			n, err := s.seen[0].Body.Read(make([]byte, 1))
			assert.Zero(t, n)
			assert.Equal(t, io.EOF, err)
		}
	}
}

func TestEmptyBodyOnTheWire(t *testing.T) {
	var got [2]strings.Builder
	dial := func(i int) *http.Transport {
		return &http.Transport{DisableKeepAlives: true, DialContext: pipeTo(func(conn net.Conn) {
			defer loopback.HangUp(conn)
			if loopback.ReadRequest(bufio.NewReader(io.TeeReader(conn, &got[i]))) {
				say(conn, ok)
			}
		})}
	}
	framing := []string{"Transfer-Encoding: chunked\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n0\r\n\r\n", "Content-Length: 0\r\nConnection: close\r\n\r\n"}
	for i, e := range []*Engine{
		New(Config{Doer: &http.Client{Transport: dial(0)}}),
		own(t, Config{Transport: dial(1)}),
	} {
		in := post(t, service, Write)
		in.Body, in.BodySize = nil, 0
		require.NoError(t, e.Do(t.Context(), in).Err)
		assert.Equal(t, "POST /api/v1/cards/c-1 HTTP/1.1\r\nHost: service.test\r\n"+
			"User-Agent: Go-http-client/1.1\r\n"+framing[i], got[i].String())
	}
}

func TestNilHeader(t *testing.T) {
	s := scripted(response(200, ""))
	in := get(t, service)
	in.Header = nil
	require.NoError(t, New(Config{Doer: s}).Do(t.Context(), in).Err)
	assert.NotNil(t, s.seen[0].Header)
}

// tracked counts what is done to the bodies it opens.
type tracked struct {
	opened, closed atomic.Int64
}

type trackedBody struct {
	io.Reader
	closed *atomic.Int64
}

func (b *trackedBody) Close() error { b.closed.Add(1); return nil }

func (k *tracked) open() (io.ReadCloser, error) {
	k.opened.Add(1)
	return &trackedBody{strings.NewReader("a=1"), &k.closed}, nil
}

func TestBodiesAreOpenedForEachAttemptAndClosedOnce(t *testing.T) {
	var bodies []string
	read := func(next step) step {
		return func(r *http.Request) (*http.Response, error) {
			b, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(b))
			return next(r)
		}
	}
	closing := func(r *http.Request) (*http.Response, error) {
		defer r.Body.Close()
		return read(response(503, ""))(r)
	}
	forgetful := read(fail(errBroken))
	var k tracked
	in := post(t, service, Read)
	in.Body = k.open
	r := New(Config{Doer: scripted(closing, forgetful, read(response(200, ""))), Policy: quick}).Do(t.Context(), in)

	require.NoError(t, r.Err)
	assert.Equal(t, []string{"a=1", "a=1", "a=1"}, bodies)
	assert.EqualValues(t, 3, k.opened.Load())
	assert.EqualValues(t, 3, k.closed.Load())
}

func TestBodyThatCannotBeOpened(t *testing.T) {
	for _, class := range []Class{Read, Secret, Write} {
		s := scripted(response(200, ""))
		in := post(t, service, class)
		in.Body = func() (io.ReadCloser, error) { return nil, errBroken }
		r := New(Config{Doer: s, Policy: policy}).Do(t.Context(), in)
		require.ErrorIs(t, r.Err, errBroken)
		require.EqualError(t, r.Err, "the request body could not be opened")
		assert.True(t, r.NotSent)
		assert.Equal(t, 1, r.Tries)
		assert.Equal(t, "connect", r.Attempts[0].Phase)
		assert.Zero(t, s.requests())
	}
}

func TestBodyOpenedTheSecondTimeInVain(t *testing.T) {
	in := post(t, service, Read)
	times := 0
	in.Body = func() (io.ReadCloser, error) {
		if times++; times > 1 {
			return nil, errBroken
		}
		return io.NopCloser(strings.NewReader("a=1")), nil
	}
	r := New(Config{Doer: scripted(response(503, "busy")), Policy: quick}).Do(t.Context(), in)
	require.ErrorIs(t, r.Err, errBroken)
	assert.False(t, r.NotSent, "the first attempt was sent")
	assert.Equal(t, 2, r.Tries)
	assert.Zero(t, r.Status)
	assert.Nil(t, r.Body)
}

type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return nil }

func TestDoersThatBreakTheirContract(t *testing.T) {
	body := &closeRecorder{Reader: strings.NewReader("lost")}
	for name, do := range map[string]step{
		"neither": func(*http.Request) (*http.Response, error) { return nil, nil },
		"both": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: body}, errBroken
		},
		"both, bodyless": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK}, errBroken
		},
	} {
		for _, doer := range []Doer{scripted(do), scripted(do).client()} {
			r := New(Config{Doer: doer}).Do(t.Context(), post(t, service, Write))
			require.Error(t, r.Err, name)
			assert.Zero(t, r.Status, name)
			assert.False(t, r.NotSent, name)
		}
	}
	assert.True(t, body.closed)

	r := New(Config{Doer: scripted(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusNoContent}, nil
	})}).Do(t.Context(), get(t, service))
	require.NoError(t, r.Err, "no body at all is an empty one")
	assert.Equal(t, 204, r.Status)
	assert.Empty(t, r.Body)
}

func TestNothingProvenWithACallersDoer(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errBroken}
	for _, class := range classes {
		tries := 1
		if class == Read {
			tries = 3
		}
		s := scripted(fail(refused))
		r := New(Config{Doer: s.client(), Policy: quick}).Do(t.Context(), post(t, service, class))
		require.ErrorIs(t, r.Err, errBroken)
		assert.False(t, r.NotSent, "a dial can fail after a redirect was followed")
		assert.Equal(t, tries, s.requests())
		assert.Equal(t, "connect", r.Attempts[0].Phase)

		dials := &http.Client{Transport: &http.Transport{DialContext: refuse(errBroken)}}
		r = New(Config{Doer: dials, Policy: quick}).Do(t.Context(), post(t, service, class))
		assert.False(t, r.NotSent, "not even with the transport that our own engines are")
		assert.Equal(t, tries, r.Tries)
	}
	assert.False(t, new(connTrace).unused(), "nor where no connection was even sought")
}

func TestClientIsUsedAsItIsAtTheTime(t *testing.T) {
	hc := &http.Client{}
	e := New(Config{Doer: hc})
	hc.Transport = scripted(response(200, "mock")).client().Transport
	r := e.Do(t.Context(), get(t, service))
	require.NoError(t, r.Err)
	assert.Equal(t, "mock", string(r.Body))
}

func TestClientWithoutTransport(t *testing.T) {
	var n atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) { exchange(conn, ok, &n) })
	r := New(Config{Doer: &http.Client{}}).Do(t.Context(), get(t, at))
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forbidigo // tidying up
	require.NoError(t, r.Err)
	assert.Equal(t, "hi", string(r.Body))
}

// jar is a cookie jar of one cookie.
type jar struct{ set []*http.Cookie }

func (j *jar) SetCookies(_ *url.URL, c []*http.Cookie) { j.set = c }

func (j *jar) Cookies(*url.URL) []*http.Cookie { return []*http.Cookie{{Name: "a", Value: "1"}} }

func TestClientWithCookies(t *testing.T) {
	s := scripted(response(503, "", "Set-Cookie", "b=2"), response(303, "", "Set-Cookie", "c=3", "Location", "/other"))
	j := new(jar)
	in := get(t, service)
	hc := &http.Client{Transport: s, Jar: j}
	r := New(Config{Doer: hc, Policy: quick}).Do(t.Context(), in)

	require.NoError(t, r.Err)
	assert.True(t, r.Redirected)
	require.Equal(t, 2, s.requests(), "redirects are not followed on this path either")
	assert.Equal(t, "a=1", s.seen[1].Header.Get("Cookie"), "and cookies do not pile up")
	assert.Equal(t, "c", j.set[0].Name)
	assert.Nil(t, hc.CheckRedirect, "the caller's client stays as it is")
}

func TestClientWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := post(t, service, Write)
		in.Deadline = time.Now().Add(time.Minute)
		hc := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
			DialContext: pipeTo(sink),
		}}
		begun := time.Now()
		r := New(Config{Doer: hc, Policy: policy}).Do(t.Context(), in)
		require.Error(t, r.Err)
		ne, ok := errors.AsType[net.Error](r.Err)
		require.True(t, ok)
		assert.True(t, ne.Timeout())
		assert.Equal(t, 5*time.Second, time.Since(begun))
	})
}

func TestRedirectsAreNeverFollowed(t *testing.T) {
	// By default http.Client sends the body again on 307 and 308, and a custom
	// key header to any host.
	for _, status := range []int{301, 302, 303, 304, 307, 308, 399} {
		for _, class := range []Class{Read, Secret, Write} {
			for _, location := range []string{"/done", "http://elsewhere.test/", "http://elsewhere.test/%zz"} {
				s := scripted(response(status, "moved", "Location", location))
				r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), post(t, service, class))
				require.NoError(t, r.Err)
				assert.Equal(t, status, r.Status)
				assert.Equal(t, "moved", string(r.Body))
				assert.True(t, r.Redirected)
				assert.Equal(t, 1, s.requests())
			}
		}
	}
}

func TestDoerThatFollowsRedirects(t *testing.T) {
	elsewhere := parse(t, "http://elsewhere.test/")
	first := &http.Response{StatusCode: http.StatusTemporaryRedirect}
	for name, tc := range map[string]struct {
		of   *http.Request
		want bool
	}{
		"not told":          {nil, false},
		"an equal URL":      {&http.Request{Method: http.MethodPost, URL: parse(t, service)}, false},
		"another URL":       {&http.Request{Method: http.MethodPost, URL: elsewhere}, true},
		"another path":      {&http.Request{Method: http.MethodPost, URL: parse(t, service+"/more")}, true},
		"part of the path":  {&http.Request{Method: http.MethodPost, URL: parse(t, "http://service.test/api")}, true},
		"another query":     {&http.Request{Method: http.MethodPost, URL: parse(t, service+"?a=1")}, true},
		"no URL":            {&http.Request{Method: http.MethodPost}, true},
		"another method":    {&http.Request{Method: http.MethodGet, URL: parse(t, service)}, true},
		"sent there twice":  {&http.Request{Method: http.MethodPost, URL: parse(t, service), Response: first}, true},
		"another, and busy": {&http.Request{Method: http.MethodGet, URL: elsewhere}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := scripted(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Request: tc.of, Body: http.NoBody}, nil
			})
			in := post(t, service, Write)
			r := New(Config{Doer: s, Policy: quick}).Do(t.Context(), in)
			assert.Equal(t, tc.want, r.Redirected)
			in.Class = Read
			r = New(Config{Doer: s, Policy: quick}).Do(t.Context(), in)
			assert.Equal(t, map[bool]int{false: 3, true: 1}[tc.want], r.Tries, "a stray response is not retried")
		})
	}
}

func TestRealClientAsAnotherDoerIsCaughtFollowing(t *testing.T) {
	s := scripted(response(303, "", "Location", "/done"), response(200, "elsewhere"))
	r := New(Config{Doer: doerOnly{s.client()}}).Do(t.Context(), post(t, service, Write))
	require.NoError(t, r.Err)
	assert.True(t, r.Redirected)
	assert.Equal(t, 200, r.Status)
}

type doerOnly struct{ Doer }

func TestBodySizes(t *testing.T) {
	for name, tc := range map[string]struct {
		size  int64
		body  io.Reader
		limit int64
		want  error
		bytes int
	}{
		"empty":                     {0, strings.NewReader(""), 0, nil, 0},
		"one byte over nothing":     {1, strings.NewReader("x"), 0, ErrTooLarge, 0},
		"exactly the limit":         {1 << 16, strings.NewReader(strings.Repeat("x", 1<<16)), 1 << 16, nil, 1 << 16},
		"one byte over":             {1<<16 + 1, strings.NewReader(strings.Repeat("x", 1<<16+1)), 1 << 16, ErrTooLarge, 0},
		"one over, length unknown":  {-1, strings.NewReader(strings.Repeat("x", 1<<16+1)), 1 << 16, ErrTooLarge, 0},
		"length unknown":            {-1, strings.NewReader(strings.Repeat("x", 300<<10)), 1 << 20, nil, 300 << 10},
		"one byte at a time":        {-1, oneByte{strings.NewReader(strings.Repeat("x", 5000))}, 1 << 20, nil, 5000},
		"endless":                   {-1, endless{}, 1 << 20, ErrTooLarge, 0},
		"a length that is a lie":    {1e12, strings.NewReader("hi"), 1 << 40, nil, 2},
		"a length that is too low":  {1, strings.NewReader("hello"), 1 << 20, nil, 5},
		"nothing for ever":          {-1, emptyReads{}, 1 << 20, io.ErrNoProgress, 0},
		"nothing for a while":       {-1, &hesitant{times: maxEmptyReads - 1, s: "hello"}, 1 << 20, nil, 5},
		"more than there is room":   {-1, miscounting(func(p []byte) int { return len(p) + 1 }), 1 << 20, errMiscounted, 0},
		"far more than the limit":   {-1, miscounting(func([]byte) int { return math.MaxInt }), 1 << 20, errMiscounted, 0},
		"less than nothing":         {-1, miscounting(func([]byte) int { return -1 }), 1 << 20, errMiscounted, 0},
		"broken off after a few":    {-1, io.MultiReader(strings.NewReader("abc"), broken{}), 1 << 20, errBroken, 0},
		"the end with the last one": {-1, &atOnce{"hello"}, 1 << 20, nil, 5},
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
				assert.Equal(t, "received", r.Attempts[0].Phase)
				assert.Nil(t, r.Body)
			}
			r.Release()
		})
	}
}

// miscounting returns another count than that of the bytes that it read.
type miscounting func(p []byte) int

func (m miscounting) Read(p []byte) (int, error) { return m(p), nil }

// What the buffers of one body take in all, from the first to the last. The
// limit is just above a power of the growth, where overshooting costs the most.
func TestWhatReadingABodyReserves(t *testing.T) {
	const limit = 8 << 20
	for name, tc := range map[string]struct {
		size int64
		body io.Reader
		want []int // capacities
	}{
		"endless":                        {-1, endless{}, []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, limit + 1}},
		"endless in spite of its length": {1000, endless{}, []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, limit + 1}},
		"a length above the limit":       {1 << 40, endless{}, []int{128<<10 + 1, 512<<10 + 4, 2<<20 + 16, limit + 1}},
		"a length that is kept":          {200_000, strings.NewReader(strings.Repeat("x", 200_000)), []int{128<<10 + 1, 200_001}},
		"a length that is not reached":   {200_000, strings.NewReader(strings.Repeat("x", 1000)), []int{128<<10 + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b, seen := new(buffer), capacities{body: tc.body}
			seen.of = b
			err := b.fill(t.Context(), &seen, tc.size, limit)
			if _, ok := tc.body.(endless); ok {
				require.ErrorIs(t, err, ErrTooLarge)
			} else {
				require.NoError(t, err)
			}
			require.Len(t, seen.capacities, len(tc.want))
			for i, want := range tc.want {
				// The allocator rounds up to whole pages and size classes.
				assert.InEpsilon(t, want, seen.capacities[i], 0.15)
			}
		})
	}
}

// capacities notes how large the buffer is that its body is read into.
type capacities struct {
	body       io.Reader
	of         *buffer
	capacities []int
}

func (c *capacities) Read(p []byte) (int, error) {
	if n := cap(c.of.b); len(c.capacities) == 0 || c.capacities[len(c.capacities)-1] != n {
		c.capacities = append(c.capacities, n)
	}
	return c.body.Read(p)
}

func TestTooLargeIsNotRetried(t *testing.T) {
	s := scripted(stream(-1, endless{}))
	r := New(Config{Doer: s.client(), Policy: quick}).Do(t.Context(), get(t, service))
	require.ErrorIs(t, r.Err, ErrTooLarge)
	require.EqualError(t, r.Err, "the response is too large")
	assert.Equal(t, 1, s.requests())
}

type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type emptyReads struct{}

func (emptyReads) Read([]byte) (int, error) { return 0, nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// hesitant returns nothing a number of times before each byte.
type hesitant struct {
	times, count int
	s            string
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.s == "" {
		return 0, io.EOF
	}
	if h.count++; h.count%(h.times+1) != 0 {
		return 0, nil
	}
	n := copy(p, h.s[:1])
	h.s = h.s[1:]
	return n, nil
}

// atOnce returns its text together with io.EOF.
type atOnce struct{ s string }

func (a *atOnce) Read(p []byte) (int, error) { return copy(p, a.s), io.EOF }

// keeping remembers where its text was read to.
type keeping struct {
	s  string
	at []byte
}

func (k *keeping) Read(p []byte) (int, error) {
	n := copy(p, k.s)
	k.at = p[:n]
	return n, io.EOF
}

func TestResponseThatIsRetriedIsClearedToo(t *testing.T) {
	busy := &keeping{s: "4111111111111111"}
	s := scripted(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Request: r, Body: io.NopCloser(busy)}, nil
	}, fail(errBroken))
	r := New(Config{Doer: s.client(), Policy: quick}).Do(t.Context(), get(t, service))
	require.ErrorIs(t, r.Err, errBroken)
	assert.Nil(t, r.Body)
	assert.Zero(t, r.Status)
	assert.Equal(t, make([]byte, 16), busy.at)
}

func TestAllocationsOfACallInMemory(t *testing.T) {
	e := New(Config{Doer: doerFunc(response(200, "hi")).client(), Policy: policy})
	in := get(t, service)
	in.Deadline = time.Now().Add(time.Minute)
	n := testing.AllocsPerRun(200, func() { e.Do(t.Context(), in).Release() })
	assert.LessOrEqual(t, n, 15.0, "four of them are the response")
}

func TestConcurrentCalls(t *testing.T) {
	var n atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) { exchange(conn, ok, &n) })
	engines := []*Engine{
		own(t, Config{Policy: quick}),
		New(Config{Policy: quick, Doer: doerFunc(response(200, "hi")).client()}),
	}
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			for j := range 10 {
				r := engines[i%2].Do(t.Context(), post(t, at, Class(j%3)))
				if assert.NoError(t, r.Err) {
					assert.Equal(t, "hi", string(r.Body))
				}
				r.Release()
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, 320, n.Load())
}

type doerFunc step

func (f doerFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

func (f doerFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f doerFunc) client() *http.Client { return &http.Client{Transport: f} }

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
	const canary = "4917365624401735"
	for name, tc := range map[string]struct {
		body   io.Reader
		size   int64
		status int
	}{
		"a short one":            {strings.NewReader(canary), 16, 200},
		"a refusal":              {strings.NewReader(canary), 16, 422},
		"one that is retried":    {strings.NewReader(canary), 16, 503},
		"a long one, announced":  {strings.NewReader(strings.Repeat(canary, 9000)), 144000, 200},
		"a long one, by the way": {strings.NewReader(strings.Repeat(canary, 9000)), -1, 200},
		"byte by byte":           {iotest.OneByteReader(strings.NewReader(strings.Repeat(canary, 600))), -1, 200},
		"too large a one":        {strings.NewReader(strings.Repeat(canary, 200_000)), -1, 200},
		"one that breaks off":    {io.MultiReader(strings.NewReader(strings.Repeat(canary, 900)), iotest.ErrReader(errBroken)), 99999, 200},
		"one that stalls":        {io.MultiReader(strings.NewReader(strings.Repeat(canary, 900)), idle{}), -1, 200},
	} {
		t.Run(name, func(t *testing.T) {
			body := &recording{Reader: tc.body}
			first := true
			do := func(r *http.Request) (*http.Response, error) {
				if !first {
					return nil, errBroken
				}
				first = false
				return &http.Response{StatusCode: tc.status, Request: r, ContentLength: tc.size, Body: io.NopCloser(body)}, nil
			}
			in := get(t, service)
			in.MaxBytes = 1 << 20
			r := New(Config{Doer: scripted(do).client(), Policy: quick}).Do(t.Context(), in)
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

// idle is a reader that never has anything.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// fixed is a header that is the same for each attempt.
type fixed http.Header

func (h fixed) Header() http.Header { return http.Header(h).Clone() }
