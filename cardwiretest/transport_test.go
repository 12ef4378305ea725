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

	"github.com/cardwire/cardwire-go/cardwiretest"
)

func get(t *testing.T, ctx context.Context, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "", "https://cards.example/api/v1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+cardwiretest.DefaultKey)
	return r
}

func TestResponse(t *testing.T) {
	s := cardwiretest.New()
	var responder func(*http.Request) (*http.Response, error) = s.RoundTrip // as mocks of net/http want it
	r := get(t, t.Context(), "/account/capacity")
	r.Method = "" // means GET
	response, err := responder(r)
	if err != nil {
		t.Fatal(err)
	}
	if response.Request != r || response.Proto != "HTTP/1.1" || response.ProtoMajor != 1 || response.ProtoMinor != 1 ||
		response.Status != "200 OK" || response.StatusCode != 200 ||
		response.ContentLength != 39 || response.Header.Get("Content-Length") != "39" {
		t.Errorf("got %+v", response)
	}
	if n, err := response.Body.Read(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != `{"code":200,"msg":"success","data":606}` {
		t.Errorf("got %s, %v", body, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if _, err := response.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a closed body was read: %v", err)
	}
}

// watched notes whether it was closed.
type watched struct {
	io.Reader
	closed bool
}

func (w *watched) Close() error { w.closed = true; return nil }

func post(t *testing.T, ctx context.Context, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", "https://cards.example/api/v1/remittance/transfer", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+cardwiretest.DefaultKey)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func TestRequestBody(t *testing.T) {
	s := cardwiretest.New()
	_, text, _ := strings.Cut(transfer, "\n\n")
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		body   io.Reader
		length int64
		err    error
	}{
		"whole":           {strings.NewReader(text), int64(len(text)), nil},
		"of no length":    {strings.NewReader(text), -1, nil},
		"broken":          {io.MultiReader(strings.NewReader(text[:20]), failing{broken}), -1, broken},
		"broken at large": {io.MultiReader(bytes.NewReader(make([]byte, 2<<20)), failing{broken}), -1, broken},
		"short":           {strings.NewReader(text), int64(len(text)) + 1, errors.New("cardwiretest: the length of the body is not its Content-Length")},
	} {
		before := len(s.Ledger())
		w := &watched{Reader: tc.body}
		r := post(t, t.Context(), w)
		r.ContentLength = tc.length
		response, err := s.RoundTrip(r)
		switch {
		case tc.err != nil && (err == nil || err.Error() != tc.err.Error()):
			t.Errorf("%s: got %v", name, err)
		case tc.err == nil && (err != nil || response.StatusCode != 200):
			t.Errorf("%s: got %v, %v", name, response, err)
		case !w.closed:
			t.Errorf("%s: the body was not closed", name)
		case tc.err != nil && len(s.Ledger()) != before:
			t.Errorf("%s: executed", name)
		}
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

func TestContext(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithLatency(time.Hour))
	ctx := untilRequested(t, s)
	if _, err := s.RoundTrip(get(t, ctx, "/bins")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w := &watched{Reader: strings.NewReader("{}")}
	if _, err := s.RoundTrip(post(t, ctx, w)); !errors.Is(err, context.Canceled) || !w.closed {
		t.Errorf("got %v, closed %v", err, w.closed)
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	if n := s.Executions("ListBINs", ""); n != 0 {
		t.Errorf("executed %d times", n)
	}
}

// A context that ends while a body is written or read ends that.
func TestContextInBodies(t *testing.T) {
	s := cardwiretest.New()
	ctx, cancel := context.WithCancel(t.Context())
	body := io.MultiReader(strings.NewReader(`{"merchantOrderNo":`), cancelling{cancel}, strings.NewReader(`"1"}`))
	if _, err := s.RoundTrip(post(t, ctx, body)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, kind := range []cardwiretest.FaultKind{cardwiretest.FaultSlowDrip, cardwiretest.FaultStatus} {
		ctx, cancel = context.WithCancel(t.Context())
		s.Fail("ListBINs", cardwiretest.Fault{Kind: kind, Delay: time.Millisecond}, 1)
		response, err := s.RoundTrip(get(t, ctx, "/bins"))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := response.Body.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Error(n, err)
		}
		cancel()
		if _, err := io.ReadAll(response.Body); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: got %v", kind, err)
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	s.Fail("ListBINs", cardwiretest.Fault{Kind: cardwiretest.FaultSlowDrip, Delay: time.Hour}, 1)
	response, err := s.RoundTrip(get(t, ctx, "/bins"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := io.ReadAll(response.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type cancelling struct{ cancel func() }

func (c cancelling) Read([]byte) (int, error) { c.cancel(); return 0, io.EOF }

// A client that leaves a dripping response ends it.
func TestLeavingADrip(t *testing.T) {
	s := cardwiretest.NewServer(t)
	s.Fail("ListBINs", cardwiretest.Fault{Kind: cardwiretest.FaultSlowDrip, Delay: 30 * time.Millisecond, Bytes: 1}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	r := get(t, ctx, "/bins")
	r.URL.Scheme, r.URL.Host = "http", hostOf(t, s)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if n, err := response.Body.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Error(n, err)
	}
	cancel()
	if _, err := io.ReadAll(response.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestHandlerElsewhere(t *testing.T) {
	s := cardwiretest.New()
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, get(t, t.Context(), "/account/capacity"))
	if recorder.Body.String() != `{"code":200,"msg":"success","data":606}` {
		t.Errorf("got %s", recorder.Body)
	}
	s.Fail("CardCapacity", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	mustPanic(t, func() { s.ServeHTTP(httptest.NewRecorder(), get(t, t.Context(), "/account/capacity")) })
	server := httptest.NewTLSServer(s)
	defer server.Close()
	server.Client().Transport.(*http.Transport).DisableKeepAlives = true // a reset on a used connection is tried again
	for kind, right := range map[cardwiretest.FaultKind]func(seen) bool{
		cardwiretest.FaultReset:        func(v seen) bool { return v.err != nil },
		cardwiretest.FaultClosed:       func(v seen) bool { return v.err != nil },
		cardwiretest.FaultRedirectSelf: func(v seen) bool { return v.location == server.URL+"/api/v1/account/capacity" },
	} {
		s.Fail("CardCapacity", cardwiretest.Fault{Kind: kind}, 1)
		client := server.Client()
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		l := line{s, server.URL + "/api/v1", client}
		if v := l.send(t.Context(), t, "GET /account/capacity"); !right(v) {
			t.Errorf("%v: saw %+v", kind, v)
		}
	}
}

// Everything may be used at once; the race detector listens.
func TestConcurrency(t *testing.T) {
	bothLines(t, func(t *testing.T, l line) {
		twoCards(l.Service)
		var g sync.WaitGroup
		for i := range 8 {
			g.Go(func() {
				l.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
				for range 5 {
					l.send(t.Context(), t, transfer)
					l.send(t.Context(), t, "GET /cards")
					l.SetCardStatus("card-1", i%4)
					l.AddCard(cardwiretest.Card{})
					l.AddBIN(cardwiretest.BIN{})
					l.AddFailedOperation(failedID, "close")
					l.send(t.Context(), t, adjusting(failedID, "cancel"))
					_, _, _ = l.Ledger(), l.Requests(), l.Executions("CreateTransfer", "order-1")
				}
			})
		}
		g.Wait()
		if n := l.Executions("CreateTransfer", "order-1"); n != 40 {
			t.Errorf("executed %d times", n)
		}
	})
}

func TestARequestWithoutAURLIsRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []*http.Request{nil, {}} {
		resp, err := cardwiretest.New().RoundTrip(r)
		if resp != nil || err == nil || err.Error() != "cardwiretest: the request has no URL" {
			if resp != nil {
				_ = resp.Body.Close()
			}
			t.Errorf("%v, %v", resp, err)
		}
	}
}
