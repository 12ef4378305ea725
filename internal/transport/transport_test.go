package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

func TestResponseIsReadToItsEnd(t *testing.T) {
	said := response(200, "hello", "Content-Encoding", "identity", "Content-Encoding", "gzip")
	e := New(Config{Doer: scripted(said).client(), Policy: policy})
	var told []Attempt
	in := get(t, service)
	in.OnAttempt = func(a Attempt) { told = append(told, a) }

	r := e.Do(t.Context(), in)

	require.NoError(t, r.Err)
	assert.Equal(t, "hello", string(r.Body))
	assert.Equal(t, []string{"identity", "gzip"}, r.Header["Content-Encoding"], "all lines of it")
	want := Response{Status: 200, Header: r.Header, Body: r.Body, Tries: 1, Encoded: true, buf: r.buf, owner: e}
	assert.Equal(t, want, *r, "a clean first try is not recorded")
	require.Len(t, told, 1, "but told")
	assert.WithinDuration(t, time.Now(), told[0].Start, time.Minute)
	assert.Positive(t, told[0].Duration)
	wanted := Attempt{Start: told[0].Start, Duration: told[0].Duration, Phase: "received", HTTPStatus: 200}
	assert.Equal(t, wanted, told[0])
}

func TestContextOrDeadlineAlreadyOver(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	for _, class := range classes {
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
	for _, class := range classes {
		s := scripted(response(200, ""))
		in := post(t, service, class)
		kept := weak.Make(in)
		New(Config{Doer: s.client()}).Do(t.Context(), in).Release()

		runtime.GC()
		assert.Nil(t, kept.Value())
		assert.Len(t, s.seen, 1)
	}
}

func TestRequestAsADoerSeesIt(t *testing.T) {
	s := scripted(response(200, ""))
	in := post(t, service+"?old=1", Write)
	in.Path, in.Query = "/a b", "page=1"
	in.Header = fixed{"Accept": {"application/json"}}
	in.Deadline = time.Now().Add(time.Hour)
	New(Config{Doer: s.client()}).Do(context.WithValue(t.Context(), testKey{}, "v"), in)

	sent := s.seen[0]
	assert.Equal(t, "v", sent.Context().Value(testKey{}))
	require.ErrorIs(t, sent.Context().Err(), context.Canceled, "it ends with the body")
	assert.Equal(t, service+"/a%20b?page=1", sent.URL.String())
	assert.Equal(t, service+"?old=1", in.URL.String(), "which calls share")
	assert.Equal(t, http.Header{"Accept": {"application/json"}}, sent.Header)
	assert.Nil(t, sent.GetBody, "net/http sends again by itself what it can get again")
}

// tracked counts what is done to the bodies it opens.
type tracked struct{ opened, closed atomic.Int64 }

type trackedBody struct {
	io.Reader
	close func()
}

func (b *trackedBody) Close() error { b.close(); return nil }

func (k *tracked) open() (io.ReadCloser, error) {
	k.opened.Add(1)
	return &trackedBody{strings.NewReader("a=1"), sync.OnceFunc(func() { k.closed.Add(1) })}, nil
}

func TestBodiesAreOpenedForEachAttemptAndClosed(t *testing.T) {
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
	var k tracked
	in := post(t, service, Read)
	in.Body = k.open
	doer := scripted(closing, read(fail(errBroken)), read(response(200, "")))
	r := New(Config{Doer: doer, Policy: quick}).Do(t.Context(), in)

	require.NoError(t, r.Err)
	assert.Equal(t, []string{"a=1", "a=1", "a=1"}, bodies)
	assert.EqualValues(t, 3, k.opened.Load())
	assert.EqualValues(t, 3, k.closed.Load())
}

func TestNothingIsProvenWhereNoConnectionWasSought(t *testing.T) {
	assert.Equal(t, errBroken, new(connTrace).classify(errBroken))
}

func TestClientIsUsedAsItIsAtTheTime(t *testing.T) {
	var n atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) { converse(conn, ok, &n) })
	hc := &http.Client{}
	e := New(Config{Doer: hc})
	r := e.Do(t.Context(), get(t, at))
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forbidigo // tidying up
	require.NoError(t, r.Err)
	assert.Equal(t, "hi", string(r.Body))

	hc.Transport = scripted(response(200, "mock"))
	r = e.Do(t.Context(), get(t, at))
	require.NoError(t, r.Err)
	assert.Equal(t, "mock", string(r.Body))
}

func TestRedirectsAreNeverFollowed(t *testing.T) {
	// By default http.Client sends the body again on 307 and 308, and a custom
	// key header to any host.
	cookies, err := cookiejar.New(nil)
	require.NoError(t, err)
	for _, status := range []int{301, 302, 303, 304, 307, 308, 399} {
		for _, class := range classes {
			var executed atomic.Int64
			moved := fmt.Sprintf("HTTP/1.1 %d Again\r\nLocation: /done\r\nContent-Length: 0\r\n\r\n", status)
			ours := &http.Transport{DialContext: pipeTo(func(conn net.Conn) { converse(conn, moved, &executed) })}
			r := own(t, Config{Transport: ours, Policy: policy}).Do(t.Context(), post(t, service, class))
			require.NoError(t, r.Err)
			assert.True(t, r.Redirected)
			assert.EqualValues(t, 1, executed.Load(), "our own engines")
			for location, host := range map[string]string{
				"": "", "/done": "service.test", "http://elsewhere.test:8443/?q=4": "elsewhere.test:8443",
				"http://elsewhere.test/%zz": "",
			} {
				s := scripted(response(status, "moved", "Location", location))
				clients := []*http.Client{s.client(), {Transport: s, Timeout: time.Hour}, {Transport: s, Jar: cookies}}
				for i, hc := range clients {
					if i > 0 && host == "" {
						continue // an http.Client fails if it cannot parse where a redirect leads
					}
					r := New(Config{Doer: hc, Policy: policy}).Do(t.Context(), post(t, service, class))
					require.NoError(t, r.Err)
					assert.Equal(t, status, r.Status)
					assert.Equal(t, "moved", string(r.Body))
					assert.Equal(t, location, r.Header.Get("Location"))
					assert.True(t, r.Redirected)
					assert.Equal(t, host, r.RedirectHost)
					assert.Equal(t, i+1, s.requests())
					assert.Nil(t, hc.CheckRedirect, "the caller's client stays as it is")
				}
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
		"not told":         {nil, false},
		"an equal URL":     {&http.Request{Method: http.MethodPost, URL: parse(t, service)}, false},
		"another URL":      {&http.Request{Method: http.MethodPost, URL: elsewhere}, true},
		"another path":     {&http.Request{Method: http.MethodPost, URL: parse(t, service+"/more")}, true},
		"part of the path": {&http.Request{Method: http.MethodPost, URL: parse(t, "http://service.test/api")}, true},
		"another query":    {&http.Request{Method: http.MethodPost, URL: parse(t, service+"?a=1")}, true},
		"no URL":           {&http.Request{Method: http.MethodPost}, true},
		"another method":   {&http.Request{Method: http.MethodGet, URL: parse(t, service)}, true},
		"sent there twice": {&http.Request{Method: http.MethodPost, URL: parse(t, service), Response: first}, true},
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

// Not parallel: allocations are counted. The URLs of the request and of the response
// are compared as they are, not as strings that are made for that.
func TestAllocationsOfACallInMemory(t *testing.T) {
	e := New(Config{Doer: scripted(response(200, "hi")).client(), Policy: policy})
	in := get(t, service)
	in.Deadline = time.Now().Add(time.Minute)
	n := testing.AllocsPerRun(200, func() { e.Do(t.Context(), in).Release() })
	assert.LessOrEqual(t, n, 18.0, "four of them are the response")
}

func TestConcurrentCalls(t *testing.T) {
	var n atomic.Int64
	at := loopback.Listen(t, func(conn net.Conn) { converse(conn, ok, &n) })
	engines := []*Engine{
		own(t, Config{Policy: quick}),
		New(Config{Policy: quick, Doer: scripted(response(200, "hi")).client()}),
	}
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			for j := range 10 {
				r := engines[i%2].Do(t.Context(), post(t, at, classes[j%2]))
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
