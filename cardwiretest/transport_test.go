package cardwiretest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// get returns a request that asks for the capacity.
func get(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "", "https://cards.example/api/v1/account/capacity", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+cardwiretest.DefaultKey)
	return r
}

func TestResponse(t *testing.T) {
	s := cardwiretest.New()
	r := get(t)
	r.Method = ""                   // means GET
	response, err := s.RoundTrip(r) // which mocks of net/http take as a responder
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.JSONEq(t, `{"code":200,"msg":"success","data":606}`, string(body))
	response.Body = nil
	assert.Equal(t, &http.Response{
		Status: "200 OK", StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: 39,
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"39"}}, Request: r,
	}, response)
}

// watched notes whether it was closed.
type watched struct {
	io.Reader
	closed bool
}

func (w *watched) Close() error { w.closed = true; return nil }

// readerFunc is what a part of a body does.
type readerFunc func() error

func (f readerFunc) Read([]byte) (int, error) { return 0, f() }

func TestRequestBody(t *testing.T) {
	_, text, _ := strings.Cut(transfer, "\n\n")
	broken := readerFunc(func() error { return io.ErrNoProgress })
	for name, tc := range map[string]struct {
		body   io.Reader
		length int
		err    string
	}{
		"whole":           {strings.NewReader(text), len(text), ""},
		"of no length":    {strings.NewReader(text), -1, ""},
		"broken":          {io.MultiReader(strings.NewReader(text[:20]), broken), -1, io.ErrNoProgress.Error()},
		"broken at large": {io.MultiReader(bytes.NewReader(make([]byte, 2<<20)), broken), -1, io.ErrNoProgress.Error()},
		"short": {
			strings.NewReader(text), len(text) + 1,
			"cardwiretest: the length of the body is not its Content-Length",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, body := cardwiretest.New(), &watched{Reader: tc.body}
			_, err := s.RoundTrip(post(t.Context(), t, body, tc.length))
			assert.True(t, body.closed)
			if tc.err == "" {
				require.NoError(t, err)
				assert.Len(t, s.Ledger(), 1)
				return
			}
			require.EqualError(t, err, tc.err)
			assert.Empty(t, s.Ledger())
		})
	}
}

func post(ctx context.Context, t *testing.T, body io.Reader, length int) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", "https://cards.example/api/v1/remittance/transfer", body)
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer " + cardwiretest.DefaultKey}, "Content-Type": {"application/json"}}
	r.ContentLength = int64(length)
	return r
}

func TestContext(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithLatency(time.Hour))
	ctx := untilRequested(t, s)
	_, err := s.RoundTrip(get(t).WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	body := &watched{Reader: strings.NewReader("{}")}
	_, err = s.RoundTrip(post(ctx, t, body, 2))
	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, body.closed)
	assert.Len(t, s.Requests(), 1)
	assert.Zero(t, s.Executions("CardCapacity", ""))

	ctx, cancel := context.WithCancel(t.Context())
	leaving := readerFunc(func() error { cancel(); return io.EOF })
	_, err = s.RoundTrip(post(ctx, t, io.MultiReader(strings.NewReader(`{`), leaving, strings.NewReader(`}`)), -1))
	require.ErrorIs(t, err, context.Canceled, "while the body is read")
}

func TestHandlerElsewhere(t *testing.T) {
	s := cardwiretest.New()
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, get(t))
	assert.JSONEq(t, `{"code":200,"msg":"success","data":606}`, recorder.Body.String())
	s.Fail("CardCapacity", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { s.ServeHTTP(httptest.NewRecorder(), get(t)) })

	server := httptest.NewTLSServer(s)
	defer server.Close()
	// A reset on a used connection is tried again.
	server.Client().Transport.(*http.Transport).DisableKeepAlives = true
	s.Fail("CardCapacity", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	w := way{s, server.URL + "/api/v1", server.Client()}
	require.Error(t, w.ask(t, "GET /account/capacity").err)
	succeeded(t, w.ask(t, "GET /account/capacity"), "606")
}

// All methods may be called concurrently, as the race detector confirms.
func TestConcurrency(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		twoCards(w.Service)
		var g sync.WaitGroup
		for range 8 {
			g.Go(func() {
				w.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
				for range 5 {
					w.ask(t, transfer)
					w.ask(t, "GET /cards")
					w.ask(t, "GET /bins")
					w.SetCard(`{"id":"card-1","status":0}`)
					w.SetCard(`{}`)
					w.SetBIN(`{}`)
					w.AddFailedOperation(failedID, "close")
					w.ask(t, adjusting(failedID, "cancel"))
					_, _, _ = w.Ledger(), w.Requests(), w.Executions("CreateTransfer", "order-1")
				}
			})
		}
		g.Wait()
		assert.Equal(t, 40, w.Executions("CreateTransfer", "order-1"))
	})
}

func TestARequestWithoutAURLIsRefused(t *testing.T) {
	for _, r := range []*http.Request{nil, {}} {
		_, err := cardwiretest.New().RoundTrip(r)
		require.Equal(t, errors.New("cardwiretest: the request has no URL"), err)
	}
}
