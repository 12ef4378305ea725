package cardwiretest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(runner{m}) }

// runner ends what the examples began before goroutines are counted.
type runner struct{ *testing.M }

func (r runner) Run() int {
	defer t.end()
	return r.M.Run()
}

// response is a response as it is on the wire.
type response struct {
	status int
	header http.Header
	body   string
}

// talk sends a request given as a string and returns the response.
type talk func(t *testing.T, request string) response

// bothWays runs a test in process and over loopback.
func bothWays(t *testing.T, opts []cardwiretest.Option, test func(*testing.T, *cardwiretest.Service, talk)) {
	t.Helper()
	t.Run("in process", func(t *testing.T) {
		s := cardwiretest.New(opts...)
		test(t, s, inProcess(s))
	})
	t.Run("over loopback", func(t *testing.T) {
		s := cardwiretest.NewServer(t, opts...)
		test(t, s.Service, overLoopback(s))
	})
}

func inProcess(s *cardwiretest.Service) talk {
	return func(t *testing.T, request string) response {
		t.Helper()
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(complete(request))))
		if err != nil {
			t.Fatal(err)
		}
		r.RequestURI = ""
		r.URL.Scheme, r.URL.Host = "https", r.Host
		response, err := s.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, response)
	}
}

func overLoopback(s *cardwiretest.Server) talk {
	return func(t *testing.T, request string) response {
		t.Helper()
		conn, err := net.Dial("tcp", hostOf(t, s))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(conn, complete(request)); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, response)
	}
}

func hostOf(t *testing.T, s *cardwiretest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func read(t *testing.T, r *http.Response) response {
	t.Helper()
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(body)) != r.ContentLength {
		t.Errorf("Content-Length is %d for %d bytes", r.ContentLength, len(body))
	}
	return response{r.StatusCode, r.Header, string(body)}
}

// complete adds to a request what all of them have.
func complete(request string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	head = strings.Replace(head, " /", " /api/v1/", 1)
	line, headers, _ := strings.Cut(head, "\n")
	if !strings.Contains(head, "Authorization") {
		headers = "Authorization: Bearer " + cardwiretest.DefaultKey + "\n" + headers
	}
	headers = strings.TrimSuffix(strings.Replace(headers, "Authorization: none\n", "", 1), "\n")
	text := line + " HTTP/1.1\nHost: cards.example\n" + headers
	if strings.Contains(head, "multipart") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\r\n")
	return fmt.Sprintf("%s\r\nContent-Length: %d\r\n\r\n%s", text, len(body), body)
}

func expect(t *testing.T, got response, status int, body string) {
	t.Helper()
	if got.status != status || got.body != body {
		t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, status, body)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("Content-Type is %q", kind)
	}
}

// one line out of several, for readability only
func joined(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		b.WriteString(strings.TrimSpace(line))
	}
	return b.String()
}
