package wiretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	mimemultipart "mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// The base URL has a path of its own: one that is lost shows in each request.
const (
	Base = "https://api.example.com/shop/api/v1"
	Key  = "sk-test-7f3a"
)

var ErrBroken = errors.New("the network of 4111111111111111 is broken")

// anything stands for a request that the test compares itself.
const Anything = "*"

// exchange is one request that a test expects and the reply to it, as text.
type Exchange struct {
	Want     string // see requestText
	Status   int    // 0: 200
	Header   string // "Name: value"; "": none
	Response string
	Err      error // instead of a reply
}

// conversation is a service that answers from a script, in order.
type Conversation struct {
	t         *testing.T
	mu        sync.Mutex
	exchanges []Exchange
	Requests  []string // what was asked, as text
}

// converse returns a client that must have the conversation to its end.
func Converse(t *testing.T, exchanges []Exchange, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	return NewClient(t, Script(t, exchanges...), opts...)
}

// script returns a conversation that must be had to its end.
func Script(t *testing.T, exchanges ...Exchange) *Conversation {
	t.Helper()
	s := &Conversation{t: t, exchanges: exchanges}
	t.Cleanup(func() {
		assert.Len(t, s.Requests, len(exchanges), "the number of requests")
	})
	return s
}

// answered is converse for one request that is answered with status 200.
func Respond(t *testing.T, want, reply string, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	return Converse(t, []Exchange{{Want: want, Response: reply}}, opts...)
}

// unasked returns a client that must not send anything.
func Unasked(t *testing.T, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	return Converse(t, nil, opts...)
}

func NewClient(t *testing.T, way http.RoundTripper, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New(Base, Key, append([]cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: way})}, opts...)...)
	require.NoError(t, err)
	return c
}

func (s *Conversation) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := requestString(s.t, r)
	s.Requests = append(s.Requests, text)
	if len(s.Requests) > len(s.exchanges) {
		s.t.Errorf("an unexpected request:\n%s", text)
		return nil, errors.New("an unexpected request")
	}
	e := s.exchanges[len(s.Requests)-1]
	if e.Want != Anything {
		assert.Equal(s.t, e.Want, text)
	}
	if e.Err != nil {
		return nil, e.Err
	}
	answer := Response(r, e.Status, e.Response)
	if name, value, ok := strings.Cut(e.Header, ": "); ok {
		answer.Header.Set(name, value)
	}
	return answer, nil
}

// carrier is a function as the way to the service, in either form.
type RoundTripper func(*http.Request) (*http.Response, error)

func (c RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func (c RoundTripper) Do(r *http.Request) (*http.Response, error) { return c(r) }

// always is the way to a service that says the same for ever.
func Always(status int, reply string) RoundTripper {
	return func(r *http.Request) (*http.Response, error) { return Response(r, status, reply), nil }
}

func Response(r *http.Request, status int, body string) *http.Response {
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// requestText writes a request as the tests expect it: method and address, and
// below them, where there is a body, its type, an empty line and the body. The
// parts of a multipart body, whose boundary is random, are written one by one.
// What all requests share is compared here.
func requestString(t *testing.T, r *http.Request) string {
	t.Helper()
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.NoError(t, r.Body.Close())
	}
	assert.Equal(t, int64(len(body)), r.ContentLength, "Content-Length")
	assert.Equal(t, "https://api.example.com", r.URL.Scheme+"://"+r.URL.Host)
	assert.Equal(t, []string{"Bearer sk-test-7f3a"}, r.Header["Authorization"])
	assert.Equal(t, []string{"application/json"}, r.Header["Accept"])
	assert.Regexp(t, `^cardwire-go/[0-9a-z.+-]+$`, r.Header.Get("User-Agent"))

	text := r.Method + " " + r.URL.RequestURI()
	contentType := r.Header.Get("Content-Type")
	names := []string{"Accept", "Authorization", "User-Agent"}
	if contentType != "" {
		names = []string{"Accept", "Authorization", "Content-Type", "User-Agent"}
	}
	assert.Equal(t, names, slices.Sorted(maps.Keys(r.Header)), "the headers")
	if contentType == "" {
		assert.Empty(t, body)
		return text
	}
	media, params, err := mime.ParseMediaType(contentType)
	assert.NoError(t, err)
	if media != "multipart/form-data" {
		return text + "\n" + contentType + "\n\n" + string(body)
	}
	return text + "\n" + media + partsString(t, body, params["boundary"])
}

func partsString(t *testing.T, body []byte, boundary string) string {
	t.Helper()
	var b strings.Builder
	for parts := mimemultipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if !assert.NoError(t, err) {
			return b.String()
		}
		b.WriteString("\n\n")
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(part.Header[name], ", "))
		}
		content, err := io.ReadAll(part)
		assert.NoError(t, err)
		fmt.Fprintf(&b, "\n%s", content)
	}
}

// success is the envelope of a success around the text of data.
func Success(data string) string { return `{"code":200,"msg":"success","data":` + data + `}` }

// edited replaces the one place in text where old stands.
func Edited(t *testing.T, text, old, replacement string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, old), "the text must hold %q once", old)
	return strings.Replace(text, old, replacement, 1)
}
