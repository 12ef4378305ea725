// Package wiretest is what tests of the client share: a service whose responses are scripted,
// calls of every method, the facts of an error, and sample data. The service on loopback is in
// package loopback, which does not import the client.
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

// Base and Key are what clients of a conversation are made with. The base URL has a path: a
// client that loses it fails every test.
const (
	Base = "https://api.example.com/shop/api/v1"
	Key  = "sk-test-7f3a"
)

// ErrBroken is an error of the network. No error of a call may quote it.
var ErrBroken = errors.New("the network of 4111111111111111 is broken")

// Anything is the Want of a request that the test itself compares.
const Anything = "*"

// Exchange is one request that a test expects, and the response to it.
type Exchange struct {
	Want     string // see requestString
	Status   int    // 0: 200
	Header   string // "Name: value"; "": none
	Response string
	Err      error // instead of a response
}

// Conversation is a service whose responses are scripted, as an http.RoundTripper.
type Conversation struct {
	t         *testing.T
	mu        sync.Mutex
	exchanges []Exchange
	Requests  []string // as requestString writes them
}

// Converse returns a client that must have the conversation to its end.
func Converse(t *testing.T, exchanges []Exchange, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	return NewClient(t, Script(t, exchanges...), opts...)
}

// Script returns a conversation that must be had to its end.
func Script(t *testing.T, exchanges ...Exchange) *Conversation {
	t.Helper()
	s := &Conversation{t: t, exchanges: exchanges}
	t.Cleanup(func() {
		assert.Len(t, s.Requests, len(exchanges), "the number of requests")
	})
	return s
}

// Respond is Converse for one request, the response to which has status 200.
func Respond(t *testing.T, want, response string, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	return Converse(t, []Exchange{{Want: want, Response: response}}, opts...)
}

// Unasked returns a client that must not send anything.
func Unasked(t *testing.T, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	return Converse(t, nil, opts...)
}

// NewClient returns a client whose requests transport gets, with a journal in memory.
func NewClient(t *testing.T, transport http.RoundTripper, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	carried := cardwire.WithHTTPClient(&http.Client{Transport: transport})
	c, err := cardwire.New(Base, Key, append([]cardwire.Option{carried, InMemory()}, opts...)...)
	require.NoError(t, err)
	return c
}

// RoundTrip compares the request with that of the script, and returns its response.
func (s *Conversation) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := requestString(s.t, r)
	s.Requests = append(s.Requests, request)
	if len(s.Requests) > len(s.exchanges) {
		s.t.Errorf("an unexpected request:\n%s", request)
		return nil, errors.New("an unexpected request")
	}
	e := s.exchanges[len(s.Requests)-1]
	if e.Want != Anything {
		assert.Equal(s.t, e.Want, request)
	}
	if e.Err != nil {
		return nil, e.Err
	}
	response := Response(r, e.Status, e.Response)
	if name, value, ok := strings.Cut(e.Header, ": "); ok {
		response.Header.Set(name, value)
	}
	return response, nil
}

// RoundTripper is a function as an http.RoundTripper and as a cardwire.Doer.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Do calls f.
func (f RoundTripper) Do(r *http.Request) (*http.Response, error) { return f(r) }

// Always has the same response to every request.
func Always(status int, body string) RoundTripper {
	return func(r *http.Request) (*http.Response, error) { return Response(r, status, body), nil }
}

// Response returns the response to r. Status 0 is 200.
func Response(r *http.Request, status int, body string) *http.Response {
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// requestString writes a request as tests expect it: the method and the URL, and below them,
// if there is a body, its type, an empty line and the body. The parts of a multipart body,
// whose boundary is random, are written one by one. What all requests have in common is
// compared here.
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

	request := r.Method + " " + r.URL.RequestURI()
	contentType := r.Header.Get("Content-Type")
	names := []string{"Accept", "Authorization", "User-Agent"}
	if contentType != "" {
		names = append(names, "Content-Type")
	}
	isCall := r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/shop/api/v1/cards/private")
	if r.Method == http.MethodGet || isCall && r.Header["Accept-Encoding"] != nil {
		names = append(names, "Accept-Encoding")
		assert.Equal(t, []string{"gzip"}, r.Header["Accept-Encoding"])
	}
	assert.ElementsMatch(t, names, slices.Collect(maps.Keys(r.Header)), "the headers")
	if contentType == "" {
		assert.Empty(t, body)
		return request
	}
	media, params, err := mime.ParseMediaType(contentType)
	assert.NoError(t, err)
	if media != "multipart/form-data" {
		return request + "\n" + contentType + "\n\n" + string(body)
	}
	return request + "\n" + media + partsString(t, body, params["boundary"])
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

// Success returns the envelope of a success with that data.
func Success(data string) string { return `{"code":200,"msg":"success","data":` + data + `}` }

// Edited returns s with its only occurrence of old replaced.
func Edited(t *testing.T, s, old, replacement string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(s, old), "%q must occur once", old)
	return strings.Replace(s, old, replacement, 1)
}
