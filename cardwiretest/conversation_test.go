package cardwiretest_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(runner{m}) }

// runner ends what the examples began before goroutines are counted.
type runner struct{ *testing.M }

func (r runner) Run() int {
	rand.Text() // under FIPS 140 the first use needs a clock that goes on, which one in a bubble does not
	defer t.end()
	return r.M.Run()
}

// way is one way to a service, at which everything can be seen.
type way struct {
	*cardwiretest.Service
	base   string
	client *http.Client
}

func inProcess(opts ...cardwiretest.Option) way {
	s := cardwiretest.New(opts...)
	return way{s, "https://cards.example/api/v1", &http.Client{Transport: s}}
}

func overLoopback(t *testing.T, opts ...cardwiretest.Option) way {
	t.Helper()
	s := cardwiretest.NewServer(t, opts...)
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return way{s.Service, s.URL, &http.Client{Transport: transport}}
}

func bothWays(t *testing.T, test func(*testing.T, way), opts ...cardwiretest.Option) {
	t.Helper()
	t.Run("in process", func(t *testing.T) { test(t, inProcess(opts...)) })
	t.Run("over loopback", func(t *testing.T) { test(t, overLoopback(t, opts...)) })
}

// seen is what a client sees.
type seen struct {
	status  int
	header  http.Header
	body    string
	err     error // instead of a response
	readErr error // in the middle of the body
}

// ask sends a request given as a string.
func (w way) ask(t *testing.T, text string) seen {
	t.Helper()
	return w.send(t.Context(), t, text)
}

func (w way) send(ctx context.Context, t *testing.T, text string) seen {
	t.Helper()
	parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(complete(text))))
	require.NoError(t, err)
	body, err := io.ReadAll(parsed.Body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(ctx, parsed.Method, w.base+parsed.RequestURI, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header = parsed.Header
	response, err := w.client.Do(r)
	if err != nil {
		return seen{err: err}
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err == nil {
		assert.EqualValues(t, len(got), response.ContentLength)
	}
	return seen{response.StatusCode, response.Header, string(got), nil, err}
}

// complete adds to a request what all of them have.
func complete(request string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	line, headers, _ := strings.Cut(head, "\n")
	if !strings.Contains(head, "Authorization") {
		headers = "Authorization: Bearer " + cardwiretest.DefaultKey + "\n" + headers
	}
	headers = strings.TrimSuffix(strings.Replace(headers, "Authorization: none\n", "", 1), "\n")
	text := strings.TrimSuffix(line+" HTTP/1.1\nHost: cards.example\n"+headers, "\n")
	if strings.Contains(head, "multipart") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	text = strings.ReplaceAll(text, "\n", "\r\n")
	return fmt.Sprintf("%s\r\nContent-Length: %d\r\n\r\n%s", text, len(body), body)
}

func expect(t *testing.T, got seen, status int, body string) {
	t.Helper()
	require.NoError(t, got.err)
	assert.Equal(t, status, got.status)
	assert.Equal(t, body, got.body)
	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
}

// refused expects the refusal of a request.
func refused(t *testing.T, got seen, status int, msg string) {
	t.Helper()
	expect(t, got, status, fmt.Sprintf(`{"code":%d,"msg":"%s","data":null}`, status, msg))
}

// succeeded expects a success with the data.
func succeeded(t *testing.T, got seen, data string) {
	t.Helper()
	expect(t, got, 200, `{"code":200,"msg":"success","data":`+data+`}`)
}
