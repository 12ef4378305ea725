package cardwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	mimemultipart "mime/multipart"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The base URL has a path of its own: one that is lost shows in each request.
const (
	testBase = "https://api.example.com/shop/api/v1"
	testKey  = "sk-test-7f3a"
)

var errBrokenNetwork = errors.New("the network of 4111111111111111 is broken")

// anything stands for a request that the test compares itself.
const anything = "*"

// exchange is one request that a test expects and the reply to it, as text.
type exchange struct {
	want   string // see requestText
	status int    // 0: 200
	header string // "Name: value"; "": none
	reply  string
	err    error // instead of a reply
}

// conversation is a service that answers from a script, in order.
type conversation struct {
	t         *testing.T
	mu        sync.Mutex
	exchanges []exchange
	requests  []string // what was asked, as text
}

// converse returns a client that must have the conversation to its end.
func converse(t *testing.T, exchanges []exchange, opts ...Option) *Client {
	t.Helper()
	return clientOn(t, script(t, exchanges...), opts...)
}

// script returns a conversation that must be had to its end.
func script(t *testing.T, exchanges ...exchange) *conversation {
	t.Helper()
	s := &conversation{t: t, exchanges: exchanges}
	t.Cleanup(func() {
		assert.Len(t, s.requests, len(exchanges), "the number of requests")
	})
	return s
}

// answered is converse for one request that is answered with status 200.
func answered(t *testing.T, want, reply string, opts ...Option) *Client {
	t.Helper()
	return converse(t, []exchange{{want: want, reply: reply}}, opts...)
}

// unasked returns a client that must not send anything.
func unasked(t *testing.T, opts ...Option) *Client {
	t.Helper()
	return converse(t, nil, opts...)
}

func clientOn(t *testing.T, way http.RoundTripper, opts ...Option) *Client {
	t.Helper()
	c, err := New(testBase, testKey, append([]Option{WithHTTPClient(&http.Client{Transport: way})}, opts...)...)
	require.NoError(t, err)
	return c
}

func (s *conversation) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := requestText(s.t, r)
	s.requests = append(s.requests, text)
	if len(s.requests) > len(s.exchanges) {
		s.t.Errorf("an unexpected request:\n%s", text)
		return nil, errors.New("an unexpected request")
	}
	e := s.exchanges[len(s.requests)-1]
	if e.want != anything {
		assert.Equal(s.t, e.want, text)
	}
	if e.err != nil {
		return nil, e.err
	}
	answer := httpReply(r, e.status, e.reply)
	if name, value, ok := strings.Cut(e.header, ": "); ok {
		answer.Header.Set(name, value)
	}
	return answer, nil
}

// carrier is a function as the way to the service, in either form.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }
func (c carrier) Do(r *http.Request) (*http.Response, error)        { return c(r) }

// always is the way to a service that says the same for ever.
func always(status int, reply string) carrier {
	return func(r *http.Request) (*http.Response, error) { return httpReply(r, status, reply), nil }
}

func httpReply(r *http.Request, status int, body string) *http.Response {
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
func requestText(t *testing.T, r *http.Request) string {
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
	return text + "\n" + media + partsText(t, body, params["boundary"])
}

func partsText(t *testing.T, body []byte, boundary string) string {
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
func success(data string) string { return `{"code":200,"msg":"success","data":` + data + `}` }

// edited replaces the one place in text where old stands.
func edited(t *testing.T, text, old, replacement string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, old), "the text must hold %q once", old)
	return strings.Replace(text, old, replacement, 1)
}

// failure returns err as the Error that every failed call returns.
func failure(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	return e
}

// refusedBeforehand asserts that a call was refused because of the parameter.
func refusedBeforehand(t *testing.T, err error, parameter string) {
	t.Helper()
	require.ErrorIs(t, err, ErrInvalidParams)
	require.ErrorIs(t, err, ErrNotSent)
	require.ErrorContains(t, err, parameter)
}

// unreadableAt asserts that the error names the place of what could not be read.
func unreadableAt(t *testing.T, err error, path string) {
	t.Helper()
	require.ErrorIs(t, err, ErrUnreadable)
	require.Regexp(t, ": "+regexp.QuoteMeta(path)+"(: expected \\w.*| is missing): ", err)
}

// driftsOf returns an option that gathers the drift of all calls, and the list.
func driftsOf() (Option, *[]Drift) {
	list := new([]Drift)
	return WithObserver(Observer{Drift: func(_ context.Context, _ CallInfo, d Drift) {
		*list = append(*list, d)
	}}), list
}

// readsQuirk checks that a reply which deviates is read as want, that observers are
// told of the drift, and that WithStrictDrift makes an error of it which comes
// together with the same value.
func readsQuirk[T any](t *testing.T, request, reply string, read func(*Client, context.Context, ...CallOption) (T, error), want T, drift []Drift) {
	t.Helper()
	observe, told := driftsOf()
	got, err := read(answered(t, request, reply, observe), t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, drift, *told)

	got, err = read(answered(t, request, reply, WithStrictDrift()), t.Context())
	assert.Equal(t, want, got)
	if drift == nil {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, ErrDrift)
	require.ErrorIs(t, err, ErrExecuted)
}

// dec returns the amount with the scale in which it is written.
func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func sealedNumber(t *testing.T, s string) CardNumber {
	t.Helper()
	n, err := NewCardNumber(s)
	require.NoError(t, err)
	return n
}

func sealedCVV(t *testing.T, s string) CVV {
	t.Helper()
	v, err := NewCVV(s)
	require.NoError(t, err)
	return v
}

func sealedPAN(t *testing.T, s string) EncryptedPAN {
	t.Helper()
	p, err := NewEncryptedPAN(s)
	require.NoError(t, err)
	return p
}

// noZeroField asserts that every exported field of v, at any depth, holds
// something: a member that is not read would otherwise pass as its zero value.
func noZeroField(t *testing.T, v any, except ...string) {
	t.Helper()
	assert.Equal(t, append([]string(nil), except...), zeroFields(reflect.ValueOf(v), ""), "the fields that are zero")
}

func zeroFields(v reflect.Value, path string) (zero []string) {
	if d, ok := v.Interface().(decimal.Decimal); ok {
		if d.IsZero() {
			return []string{path}
		}
		return nil
	}
	switch {
	case v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0:
		return []string{path}
	case v.Kind() == reflect.Pointer:
		return zeroFields(v.Elem(), path)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() != reflect.Uint8 {
				zero = append(zero, zeroFields(v.Index(i), path+"[]")...)
			}
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				zero = append(zero, zeroFields(v.Field(i), strings.TrimPrefix(path+"."+f.Name, "."))...)
			}
		}
	}
	return zero
}

func TestZeroFieldsAreFoundAtAnyDepth(t *testing.T) {
	t.Parallel()
	type inner struct{ A, B string }
	type outer struct {
		Amount  decimal.Decimal
		Pointer *inner
		List    []inner
		Empty   []inner
		None    *inner
		Flag    bool
		hidden  int
	}
	v := outer{Amount: dec("0.00"), Pointer: &inner{A: "a"}, List: []inner{{"a", "b"}, {B: "b"}}, Empty: []inner{}}
	assert.Zero(t, v.hidden)
	assert.Equal(t, []string{"Amount", "Pointer.B", "List[].A", "Empty", "None", "Flag"}, zeroFields(reflect.ValueOf(v), ""))
}
