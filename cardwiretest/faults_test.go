package cardwiretest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// line is one way to the service, at which everything can be seen.
type line struct {
	*cardwiretest.Service
	base   string
	client *http.Client
}

// seen is what a client sees.
type seen struct {
	status   int
	header   http.Header
	body     string
	err      error // instead of a response
	readErr  error // in the middle of the body
	location string
}

func bothLines(t *testing.T, test func(t *testing.T, l line), opts ...cardwiretest.Option) {
	t.Helper()
	noFollow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Run("in process", func(t *testing.T) {
		s := cardwiretest.New(opts...)
		test(t, line{s, "https://cards.example/api/v1", &http.Client{Transport: s, CheckRedirect: noFollow}})
	})
	t.Run("over loopback", func(t *testing.T) {
		s := cardwiretest.NewServer(t, opts...)
		transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10}
		t.Cleanup(transport.CloseIdleConnections)
		test(t, line{s.Service, s.URL, &http.Client{Transport: transport, CheckRedirect: noFollow}})
	})
}

// send sends a request given as a string.
func (l line) send(ctx context.Context, t *testing.T, text string) (v seen) {
	t.Helper()
	parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(complete(text))))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(parsed.Body)
	if err != nil {
		t.Fatal(err)
	}
	url := l.base + strings.TrimPrefix(parsed.RequestURI, "/api/v1")
	r, err := http.NewRequestWithContext(ctx, parsed.Method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = parsed.Header
	response, err := l.client.Do(r)
	if err != nil {
		return seen{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text2, err := io.ReadAll(response.Body)
	return seen{response.StatusCode, response.Header, string(text2), nil, err, response.Header.Get("Location")}
}

const done = `{"code":200,"msg":"success","data":{"merchant_order_no":"order-1","api_order_no":"AO`

func (v seen) isSuccess() bool { return v.status == 200 && strings.HasPrefix(v.body, done) }

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  cardwiretest.Fault
		right  func(v seen) bool
		always bool // executes whatever Executed says
	}{
		"status": {cardwiretest.Fault{}, func(v seen) bool {
			return v.status == 500 && v.body == `{"code":500,"msg":"the service failed","data":null}`
		}, false},
		"status of one's own": {cardwiretest.Fault{Status: 409, Code: 4099, Message: "order exists", RetryAfter: "3"}, func(v seen) bool {
			return v.status == 409 && v.body == `{"code":4099,"msg":"order exists","data":null}` && v.header.Get("Retry-After") == "3"
		}, false},
		"html": {cardwiretest.Fault{Kind: cardwiretest.FaultHTML}, func(v seen) bool {
			return v.status == 502 && strings.Contains(v.body, "<h1>502 Bad Gateway</h1>") && v.header.Get("Content-Type") == "text/html"
		}, false},
		"code": {cardwiretest.Fault{Kind: cardwiretest.FaultCode, Code: 1001, Message: "balance"}, func(v seen) bool {
			return v.status == 200 && v.body == `{"code":1001,"msg":"balance","data":null}`
		}, false},
		"rate limited": {cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}, func(v seen) bool {
			return v.status == 429 && v.header.Get("Retry-After") == "1" && strings.HasPrefix(v.body, `{"code":429,`)
		}, false},
		"rate limited until": {cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "Wed, 21 Oct 2026 07:28:00 GMT"}, func(v seen) bool {
			return v.status == 429 && v.header.Get("Retry-After") == "Wed, 21 Oct 2026 07:28:00 GMT"
		}, false},
		"reset": {cardwiretest.Fault{Kind: cardwiretest.FaultReset}, func(v seen) bool {
			var op *net.OpError
			return errors.Is(v.err, syscall.ECONNRESET) && errors.As(v.err, &op) && op.Op == "read"
		}, false},
		"closed": {cardwiretest.Fault{Kind: cardwiretest.FaultClosed}, func(v seen) bool { return errors.Is(v.err, io.EOF) }, false},
		"hang": {cardwiretest.Fault{Kind: cardwiretest.FaultHang, Delay: 20 * time.Millisecond}, func(v seen) bool {
			return errors.Is(v.err, io.EOF)
		}, false},
		"delay": {cardwiretest.Fault{Kind: cardwiretest.FaultClosed, Delay: 20 * time.Millisecond}, func(v seen) bool {
			return errors.Is(v.err, io.EOF)
		}, false},
		"truncated": {cardwiretest.Fault{Kind: cardwiretest.FaultTruncated, Bytes: 10}, func(v seen) bool {
			return v.status == 200 && v.body == `{"code":20` && errors.Is(v.readErr, io.ErrUnexpectedEOF)
		}, false},
		"truncated in the middle": {cardwiretest.Fault{Kind: cardwiretest.FaultTruncated}, func(v seen) bool {
			return v.status == 200 && strings.HasPrefix(v.body, done[:30]) && errors.Is(v.readErr, io.ErrUnexpectedEOF)
		}, false},
		"truncated at the end": {cardwiretest.Fault{Kind: cardwiretest.FaultTruncated, Bytes: 1 << 20}, func(v seen) bool {
			return strings.HasPrefix(v.body, done) && errors.Is(v.readErr, io.ErrUnexpectedEOF)
		}, false},
		"truncated at once": {cardwiretest.Fault{Kind: cardwiretest.FaultTruncated, Bytes: -1}, func(v seen) bool {
			return v.status == 200 && v.body == "" && errors.Is(v.readErr, io.ErrUnexpectedEOF)
		}, false},
		"garbage": {cardwiretest.Fault{Kind: cardwiretest.FaultGarbage, Bytes: 100}, func(v seen) bool {
			return v.status == 200 && len(v.body) == 100 && v.body[0] != '{'
		}, false},
		"not http": {cardwiretest.Fault{Kind: cardwiretest.FaultNotHTTP}, func(v seen) bool {
			return v.err != nil && strings.Contains(v.err.Error(), "malformed HTTP response")
		}, false},
		"empty": {cardwiretest.Fault{Kind: cardwiretest.FaultEmpty}, func(v seen) bool {
			return v.status == 200 && v.body == "" && v.readErr == nil
		}, false},
		"slow drip": {cardwiretest.Fault{Kind: cardwiretest.FaultSlowDrip, Delay: time.Millisecond, Bytes: 20}, seen.isSuccess, true},
		"redirect to itself": {cardwiretest.Fault{Kind: cardwiretest.FaultRedirectSelf, Status: 303}, func(v seen) bool {
			return v.status == 303 && strings.HasSuffix(v.location, "/api/v1/remittance/transfer")
		}, false},
		"redirect elsewhere": {cardwiretest.Fault{Kind: cardwiretest.FaultRedirectElsewhere, Status: 302}, func(v seen) bool {
			return v.status == 302 && strings.HasSuffix(v.location, "/elsewhere")
		}, false},
		"redirect to a dead host": {cardwiretest.Fault{Kind: cardwiretest.FaultRedirectDead}, func(v seen) bool {
			return v.status == 307 && v.location == "http://127.0.0.1:1/api/v1/remittance/transfer"
		}, false},
		"wrong data": {cardwiretest.Fault{Kind: cardwiretest.FaultWrongData}, func(v seen) bool {
			return v.status == 200 && v.body == `{"code":200,"msg":"success","data":7}`
		}, true},
		"duplicate fields": {cardwiretest.Fault{Kind: cardwiretest.FaultDuplicateFields}, func(v seen) bool {
			return v.isSuccess() && strings.HasSuffix(v.body, `"wait_process"},"code":500}`)
		}, false},
		"header flood": {cardwiretest.Fault{Kind: cardwiretest.FaultHeaderFlood}, func(v seen) bool {
			return v.err != nil && strings.Contains(v.err.Error(), "server response headers exceeded 65536 bytes")
		}, false},
		"other response": {cardwiretest.Fault{Kind: cardwiretest.FaultOtherResponse}, func(v seen) bool {
			return v.status == 200 && strings.Contains(v.body, `"order-of-somebody-else"`)
		}, false},
	} {
		for _, executed := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " after", false: " before"}[executed], func(t *testing.T) {
				bothLines(t, func(t *testing.T, l line) {
					tc.fault.Executed = executed
					l.Fail("CreateTransfer", tc.fault, 1)
					if v := l.send(t.Context(), t, transfer); !tc.right(v) {
						t.Errorf("saw %+v", v)
					}
					want := map[bool]int{true: 1, false: 0}[executed || tc.always]
					if n := l.Executions("CreateTransfer", "order-1"); n != want {
						t.Errorf("executed %d times", n)
					}
					if v := l.send(t.Context(), t, transfer); !v.isSuccess() {
						t.Errorf("after the fault: %+v", v)
					}
				})
			})
		}
	}
}

func TestLargeFaults(t *testing.T) {
	bothLines(t, func(t *testing.T, l line) {
		l.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultOversize, Bytes: 1 << 20, Executed: true}, 1)
		l.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultOversize, Bytes: 1 << 20}, 1)
		l.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultGzipBomb, Bytes: 1 << 20, Executed: true}, 1)
		if v := l.send(t.Context(), t, transfer); !v.isSuccess() || len(v.body) != 1<<20 {
			t.Errorf("saw %d %.80s and %d bytes", v.status, v.body, len(v.body))
		}
		if v := l.send(t.Context(), t, transfer); v.status != 500 || !strings.HasPrefix(v.body, `{"code":500,`) || len(v.body) != 1<<20 {
			t.Errorf("saw %d %.80s and %d bytes", v.status, v.body, len(v.body))
		}
		v := l.send(t.Context(), t, transfer)
		z, err := gzip.NewReader(strings.NewReader(v.body))
		if err != nil || v.header.Get("Content-Encoding") != "gzip" {
			t.Fatal(err, v.header)
		}
		text, err := io.ReadAll(z)
		if err != nil || len(text) != 1<<20 || len(v.body) > 20<<10 || !strings.HasPrefix(string(text), done) {
			t.Errorf("%d bytes that expand to %d, %v", len(v.body), len(text), err)
		}
		if n := l.Executions("CreateTransfer", ""); n != 2 {
			t.Errorf("executed %d times", n)
		}
	})
}

func TestHangUntilTheClientLeaves(t *testing.T) {
	bothLines(t, func(t *testing.T, l line) {
		for _, f := range []cardwiretest.Fault{
			{Kind: cardwiretest.FaultHang, Executed: true},
			{Kind: cardwiretest.FaultLateAfterHang, Delay: time.Millisecond},
			{Kind: cardwiretest.FaultClosed, Delay: time.Hour, Executed: true},
		} {
			l.Fail("CreateTransfer", f, 1)
			ctx := untilRequested(t, l.Service)
			if v := l.send(ctx, t, transfer); !errors.Is(v.err, context.Canceled) {
				t.Errorf("%v: saw %+v", f.Kind, v)
			}
		}
		eventually(t, func() bool { return l.Executions("CreateTransfer", "order-1") == 3 })
	})
}

func TestLateAfterClose(t *testing.T) {
	bothLines(t, func(t *testing.T, l line) {
		l.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultLateAfterClose, Delay: time.Hour}, 1)
		l.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultLateAfterClose, Delay: time.Millisecond}, 1)
		v := l.send(t.Context(), t, transfer)
		if n := l.Executions("CreateTransfer", "order-1"); n != 0 || !errors.Is(v.err, io.EOF) {
			t.Errorf("saw %+v, executed %d times", v, n)
		}
		l.send(t.Context(), t, transfer)
		eventually(t, func() bool { return l.Executions("CreateTransfer", "order-1") == 1 })
	})
}

// untilRequested returns a context that ends when one more request has arrived.
func untilRequested(t *testing.T, s *cardwiretest.Service) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	n := len(s.Requests())
	go func() {
		eventually(t, func() bool { return len(s.Requests()) > n })
		cancel()
	}()
	return ctx
}

// eventually polls: sockets, unlike what is in process, are not for bubbles.
func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for range 6000 { // at least a minute
		if f() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Error("it did not happen")
}

// In a bubble of synctest, hours pass at once.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cardwiretest.New(cardwiretest.WithLatency(time.Hour))
		l := line{s, "https://cards.example/api/v1", &http.Client{Transport: s}}
		start := time.Now()
		if v := l.send(t.Context(), t, transfer); !v.isSuccess() || time.Since(start) != time.Hour {
			t.Errorf("saw %+v after %v", v, time.Since(start))
		}
		s.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultLateAfterClose, Delay: time.Hour}, 1)
		l.send(t.Context(), t, transfer)
		time.Sleep(time.Hour - time.Second)
		if n := s.Executions("CreateTransfer", ""); n != 1 {
			t.Errorf("executed %d times", n)
		}
		time.Sleep(2 * time.Second)
		if n := s.Executions("CreateTransfer", ""); n != 2 {
			t.Errorf("executed %d times", n)
		}
	})
}

func TestPageFaults(t *testing.T) {
	bothLines(t, func(t *testing.T, l line) {
		ask := func(query string) (string, []string) {
			v := l.send(t.Context(), t, "GET /cards?"+query)
			return v.body, idsOf(t, response{v.status, v.header, v.body})
		}
		_, second := ask("limit=5&page=2")
		_, first := ask("limit=5")
		l.Fail("ListCards", cardwiretest.Fault{Kind: cardwiretest.FaultRepeatedPage}, 2)
		if body, ids := ask("limit=5&page=3"); !strings.Contains(body, `"current_page":3`) || strings.Join(ids, " ") != strings.Join(second, " ") {
			t.Errorf("got %v", ids)
		}
		if _, ids := ask("limit=5&page=1"); strings.Join(ids, " ") != strings.Join(first, " ") {
			t.Errorf("got %v", ids)
		}
		l.Fail("ListCards", cardwiretest.Fault{Kind: cardwiretest.FaultIgnoredPage}, 1)
		if body, ids := ask("limit=5&page=2"); !strings.Contains(body, `"current_page":1`) || len(ids) != 20 {
			t.Errorf("got %v", ids)
		}
		l.Fail("ListCards", cardwiretest.Fault{Kind: cardwiretest.FaultIgnoredFilter}, 1)
		if _, ids := ask("limit=5&status=1"); strings.Join(ids, " ") != strings.Join(first, " ") {
			t.Errorf("got %v", ids)
		}
	})
}

func TestFaultsOfReads(t *testing.T) {
	bothLines(t, func(t *testing.T, l line) {
		twoCards(l.Service)
		ask := func(path string) seen { return l.send(t.Context(), t, "GET "+path) }
		l.Fail("GetCardByOrder", cardwiretest.Fault{Kind: cardwiretest.FaultOtherResponse}, 1)
		if v := ask("/cards/info?id=card-1"); v.status != 200 || strings.Contains(v.body, `"id":"card-1"`) {
			t.Errorf("saw %+v", v)
		}
		l.Fail("GetCardSecrets", cardwiretest.Fault{Kind: cardwiretest.FaultOtherResponse}, 1)
		secrets := "POST /cards/private\nContent-Type: application/x-www-form-urlencoded\n\ncardId=card-1"
		if v := l.send(t.Context(), t, secrets); v.status != 200 || strings.Contains(v.body, "428837******0003") {
			t.Errorf("saw %+v", v)
		}
		l.Fail("CardCapacity", cardwiretest.Fault{Kind: cardwiretest.FaultWrongData}, 1)
		if v := ask("/account/capacity"); v.body != `{"code":200,"msg":"success","data":[]}` {
			t.Errorf("saw %+v", v)
		}
		l.Fail("CardCapacity", cardwiretest.Fault{Kind: cardwiretest.FaultRedirectSelf, Status: 308}, 1)
		if v := ask("/account/capacity"); v.status != 308 || v.location != l.base+"/account/capacity" {
			t.Errorf("saw %+v", v)
		}
		l.Fail("ListBINs", cardwiretest.Fault{Status: 503}, -1)
		for range 5 {
			if v := ask("/bins"); v.status != 503 {
				t.Errorf("saw %+v", v)
			}
		}
		l.Fail("GetCard", cardwiretest.Fault{Kind: cardwiretest.FaultWrongData}, 1)
		if v := ask("/cards/info?id=nobody"); v.status != 404 {
			t.Errorf("saw %+v", v)
		}
		l.Fail("ListRemittanceStates", cardwiretest.Fault{}, 0)
		if v := ask("/remittance/states"); v.status != 200 {
			t.Errorf("saw %+v", v)
		}
	})
}

// A redirect that is followed shows in the records.
func TestFollowedRedirect(t *testing.T) {
	s := cardwiretest.NewServer(t)
	transport := &http.Transport{DisableKeepAlives: true}
	l := line{s.Service, s.URL, &http.Client{Transport: transport}}
	l.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultRedirectElsewhere}, 1)
	l.send(t.Context(), t, transfer)
	got := s.Requests()
	if len(got) != 2 || got[1].Path != "/elsewhere" || got[1].Method != "POST" || got[1].Authorized {
		t.Errorf("got %+v", got)
	}
}

func TestAnotherOfOneCard(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithCards(0))
	s.AddCard(cardwiretest.Card{ID: "only"})
	s.Fail("GetCard", cardwiretest.Fault{Kind: cardwiretest.FaultOtherResponse}, 1)
	if got := inProcess(s)(t, "GET /cards/info?id=only"); got.status != 200 || strings.Contains(got.body, `"id":"only"`) {
		t.Errorf("got %s", got.body)
	}
}

func TestFailPanics(t *testing.T) {
	s := cardwiretest.New()
	mustPanic(t, func() { s.Fail("CreateTransfers", cardwiretest.Fault{}, 1) })
	mustPanic(t, func() { s.Fail("CreateTransfer", cardwiretest.Fault{Kind: -1}, 1) })
	mustPanic(t, func() { s.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultIgnoredFilter}, 1) })
	mustPanic(t, func() { s.Executions("Transfer", "") })
	if got := cardwiretest.FaultKind(99).String(); got != "FaultKind(99)" {
		t.Errorf("got %s", got)
	}
}

// A server that closes ends what hangs, and forgets what was to come. The clock of
// the bubble stands still until its socket is closed.
func TestServerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &tester{}
		s := cardwiretest.NewServer(tb)
		l := line{s.Service, s.URL, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
		s.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultLateAfterClose, Delay: time.Second}, 1)
		s.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultHang}, 1)
		l.send(t.Context(), t, transfer)
		failed := make(chan error, 1)
		go func() { failed <- l.send(t.Context(), t, transfer).err }()
		for len(s.Requests()) < 2 {
			runtime.Gosched()
		}
		tb.end()
		if err := <-failed; err == nil {
			t.Error("the request that hung got a response")
		}
		time.Sleep(2 * time.Second) // when it would have been executed
		if n := s.Executions("CreateTransfer", ""); n != 0 {
			t.Errorf("executed %d times", n)
		}
	})
}

// The package's documentation has what a client makes of each kind of fault.
func TestTableOfFaults(t *testing.T) {
	source, err := os.ReadFile("service.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Split(string(source), "\n") {
		if row, ok := strings.CutPrefix(line, "//\tFault"); ok {
			got = append(got, "Fault"+strings.Join(strings.Fields(row), " "))
		}
	}
	var want []string
	for kind, name := range kindsOfFaults(t) {
		f := cardwiretest.Fault{Kind: cardwiretest.FaultKind(kind)}
		want = append(want, name+" "+consequence(t, f))
	}
	for name, f := range map[string]cardwiretest.Fault{
		"FaultStatus, Status: 401": {Status: 401}, "FaultStatus, Status: 422": {Status: 422},
		"FaultCode, Code: 422": {Kind: cardwiretest.FaultCode, Code: 422},
	} {
		want = append(want, name+" "+consequence(t, f))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the table has\n%s\ninstead of\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// kindsOfFaults returns the names of the constants, each at its value.
func kindsOfFaults(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "faults.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST || block.Specs[0].(*ast.ValueSpec).Names[0].Name != "FaultStatus" {
			continue
		}
		for _, spec := range block.Specs {
			names = append(names, spec.(*ast.ValueSpec).Names[0].Name)
		}
	}
	return names
}

// consequence is the outcome and the step of a call that meets the fault, whether it is
// executed or not.
func consequence(t *testing.T, f cardwiretest.Fault) string {
	t.Helper()
	seen := ""
	for _, executed := range []bool{false, true} {
		f.Executed = executed
		one := afterFault(t, f)
		if executed && one != seen {
			t.Errorf("%v: %s if it was executed, and otherwise %s", f.Kind, one, seen)
		}
		seen = one
	}
	return seen
}

func afterFault(t *testing.T, f cardwiretest.Fault) (consequence string) {
	t.Helper()
	switch f.Kind {
	case cardwiretest.FaultHang, cardwiretest.FaultLateAfterHang: // until the call's timeout
		synctest.Test(t, func(t *testing.T) {
			client, service := cardwiretest.NewClient(t)
			consequence = faultyCall(t, client, service, f)
			time.Sleep(time.Minute) // what comes late has come
		})
		return consequence
	}
	server := cardwiretest.NewServer(t)
	return faultyCall(t, server.Client(), server.Service, f)
}

func faultyCall(t *testing.T, client *cardwire.Client, service *cardwiretest.Service, f cardwiretest.Fault) string {
	t.Helper()
	call := func() error {
		service.Fail("CreateTransfer", f, 1)
		_, err := client.CreateTransfer(t.Context(), cardwire.TransferParams{
			MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("25.00"),
		})
		return err
	}
	switch f.Kind {
	case cardwiretest.FaultRepeatedPage, cardwiretest.FaultIgnoredPage, cardwiretest.FaultIgnoredFilter:
		call = func() error {
			service.Fail("ListCards", f, -1)
			for _, err := range client.AllCards(t.Context(), cardwire.ListCardsParams{Limit: 2, Status: new(cardwire.CardActive)}) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	err := call()
	outcome := cardwire.OutcomeExecuted
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		outcome = failure.Outcome
	}
	return outcome.String() + " " + cardwire.NextStep(err).String()
}
