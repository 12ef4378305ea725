package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	service = "http://service.test/api/v1/cards/c-1"
	ok      = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	canary  = "4111111111111111"
)

// policy is the one most tests run under: two retries, short waits.
var policy = Policy{
	MaxRetries: 2, MinDelay: 250 * time.Millisecond, MaxDelay: 8 * time.Second,
	MaxRetryAfter: 30 * time.Second, Attempt: 10 * time.Second,
}

// quick is policy for tests over real sockets, where waits are real too. No
// attempt ends because the machine is slow.
var quick = Policy{MaxRetries: 2, MinDelay: time.Microsecond, MaxDelay: time.Microsecond, Attempt: time.Hour}

var classes = []Class{Read, Write}

var errBroken = errors.New("broken by the test")

var quietLog = log.New(io.Discard, "", 0) //nolint:forbidigo // for a test server that would write to stderr

type testKey struct{}

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

// response responds with a status, a body and pairs of header names and values.
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

// stream responds 200 with a body of its own making.
func stream(size int64, body io.Reader) step {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Request: r, ContentLength: size, Body: io.NopCloser(body)}, nil
	}
}

// fixed is a header that is the same for each attempt.
type fixed http.Header

func (h fixed) Header() http.Header { return http.Header(h).Clone() }

// get is a read, and post a call of the given class with the body "a=1".
func get(t testing.TB, at string) *Request {
	t.Helper()
	return &Request{Method: http.MethodGet, URL: parse(t, at), Header: fixed{}, MaxBytes: 1 << 20}
}

func post(t testing.TB, at string, class Class) *Request {
	t.Helper()
	in := get(t, at)
	in.Class, in.Method, in.BodySize = class, http.MethodPost, 3
	in.Body = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("a=1")), nil }
	return in
}

// secrets is a read over a connection of its own.
func secrets(t testing.TB, at string) *Request {
	t.Helper()
	in := post(t, at, Read)
	in.Fresh = true
	return in
}

func parse(t testing.TB, at string) *url.URL {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	return u
}

// own is an engine of our own, whose connections end with the test.
func own(t *testing.T, cfg Config) *Engine {
	t.Helper()
	e := New(cfg)
	t.Cleanup(e.CloseIdleConnections)
	return e
}

// converse serves a connection: it reads whole requests, counts them, and
// writes the response.
func converse(conn net.Conn, response string, executed *atomic.Int64) {
	defer loopback.HangUp(conn)
	for in := bufio.NewReader(conn); loopback.ReadRequest(in); say(conn, response) {
		executed.Add(1)
	}
}

// once serves a connection: it reads one whole request, and then does the rest.
func once(rest func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		defer loopback.HangUp(conn)
		if loopback.ReadRequest(bufio.NewReader(conn)) {
			rest(conn)
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

type dialer = func(context.Context, string, string) (net.Conn, error)

// pipeTo dials connections in memory, each of which serve takes the other end of.
func pipeTo(serve func(net.Conn)) dialer {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}
}

// refuse is a dialer for which nobody listens.
func refuse(err error) dialer {
	return func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
}

// counted counts the connections that a transport dials.
func counted(n *atomic.Int64) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
}

// pause waits in the time of a synctest bubble.
func pause(d time.Duration) { <-time.After(d) }

func phases(r *Response) (all []string) {
	for _, a := range r.Attempts {
		all = append(all, a.Phase)
	}
	return all
}
