package cardwiretest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

const done = `{"code":200,"msg":"success","data":{"merchant_order_no":"order-1","api_order_no":"AO`

func (v seen) isSuccess() bool { return v.status == 200 && strings.HasPrefix(v.body, done) }

// String is the error, or the response with what is unusual of its header.
func (v seen) String() string {
	if v.err != nil {
		return v.err.Error()
	}
	media := strings.TrimPrefix(v.header.Get("Content-Type"), "application/json")
	text := fmt.Sprintf("%d%s %s %s", v.status, media, v.body, v.header.Get("Retry-After"))
	if v.readErr != nil {
		text += v.readErr.Error()
	}
	return text
}

func TestFaults(t *testing.T) {
	const (
		start   = `200 {"code":200,"msg":"success","data":{`
		success = start + `"merchant_order_no":"order-1","api_order_no":"AO\w+","status":"wait_process"}`
		date    = "Wed, 21 Oct 2026 07:28:00 GMT"
		limited = `429 {"code":429,"msg":"too many requests","data":null} `
	)
	own := cardwiretest.Fault{Status: 409, Code: 4099, Message: "order exists", RetryAfter: "3"}
	for name, tc := range map[string]struct {
		fault  cardwiretest.Fault
		want   string // a pattern
		always bool   // executes whatever Executed says
	}{
		"status":              {cardwiretest.Fault{}, `500 {"code":500,"msg":"the service failed".*`, false},
		"status of one's own": {own, `409 {"code":4099,"msg":"order exists","data":null} 3`, false},
		"code": {
			cardwiretest.Fault{Status: 200, Code: 1001, Message: "balance"},
			`200 {"code":1001,"msg":"balance","data":null} `, false,
		},
		"html": {
			cardwiretest.Fault{Kind: cardwiretest.FaultHTML}, `(?s)502text/html <html>.*<h1>502 Bad Gateway.*`, false,
		},
		"rate limited": {cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}, limited + "1", false},
		"rate limited until": {
			cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: date}, limited + date, false,
		},
		"reset": {
			cardwiretest.Fault{Kind: cardwiretest.FaultReset}, ".*: read tcp.*: read: connection reset by peer", false,
		},
		"hang": {cardwiretest.Fault{Kind: cardwiretest.FaultHang, Delay: 20 * time.Millisecond}, ".*: EOF", false},
		"truncated": {
			cardwiretest.Fault{Kind: cardwiretest.FaultTruncated}, start[:len(start)-1] + ".*[^}] unexpected EOF", true,
		},
		"garbage": {cardwiretest.Fault{Kind: cardwiretest.FaultGarbage}, `(?s)200 [^{].{300,}`, false},
		"slow":    {cardwiretest.Fault{Kind: cardwiretest.FaultSlow, Delay: time.Second / 50}, success + "} ", true},
		"drift":   {cardwiretest.Fault{Kind: cardwiretest.FaultDrift}, success + `,"drift":true} `, true},
	} {
		for when, executed := range map[string]bool{" before": false, " after": true} {
			t.Run(name+when, func(t *testing.T) {
				bothWays(t, func(t *testing.T, w way) {
					tc.fault.Executed = executed
					w.Fail("CreateTransfer", tc.fault, 1)
					assert.Regexp(t, "^"+tc.want+"$", w.ask(t, transfer).String())
					want := map[bool]int{true: 1}[executed || tc.always]
					assert.Equal(t, want, w.Executions("CreateTransfer", "order-1"))
					assert.True(t, w.ask(t, transfer).isSuccess(), "it happened once")
				})
			})
		}
	}
}

func TestHangUntilTheClientLeaves(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		for _, f := range []cardwiretest.Fault{
			{Kind: cardwiretest.FaultHang, Executed: true},
			{Kind: cardwiretest.FaultLate, Delay: time.Millisecond},
			{Kind: cardwiretest.FaultSlow, Delay: time.Hour},
		} {
			w.Fail("CreateTransfer", f, 1)
			v := w.send(untilRequested(t, w.Service), t, transfer)
			require.ErrorIs(t, v.err, context.Canceled, f.Kind)
		}
		eventually(t, func() bool { return w.Executions("CreateTransfer", "order-1") == 3 })
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

// eventually polls: synctest does not cover sockets.
func eventually(t *testing.T, f func() bool) {
	t.Helper()
	assert.Eventually(t, f, time.Minute, 5*time.Millisecond)
}

// In a bubble of synctest, hours pass at once.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inProcess(cardwiretest.WithLatency(time.Hour))
		start := time.Now()
		assert.True(t, w.ask(t, transfer).isSuccess())
		assert.Equal(t, time.Hour, time.Since(start))
		assert.Zero(t, w.Executions("CreateTransfer", "Order-1"), "which is another one")
		w.Handle("GET", "/own", func(*http.Request) (int, string, any) { return 200, "success", nil })
		succeeded(t, w.ask(t, "GET /own"), "null")
		assert.Equal(t, 2*time.Hour, time.Since(start))
		w.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultLate, Delay: time.Hour}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		w.send(ctx, t, transfer)
		time.Sleep(time.Hour - time.Second)
		assert.Equal(t, 1, w.Executions("CreateTransfer", ""))
		time.Sleep(2 * time.Second)
		assert.Equal(t, 2, w.Executions("CreateTransfer", ""))
	})
}

func TestFaultsOfReads(t *testing.T) {
	w := inProcess()
	w.Fail("ListBINs", cardwiretest.Fault{Status: 503}, -1)
	for range 5 {
		assert.Equal(t, 503, w.ask(t, "GET /bins").status)
	}
	w.Fail("GetCardByOrder", cardwiretest.Fault{Kind: cardwiretest.FaultDrift}, 1)
	assert.Equal(t, 404, w.ask(t, "GET /cards/info?id=nobody").status, "only a valid request is executed")
	w.Fail("CardCapacity", cardwiretest.Fault{}, 0)
	w.Fail("CardCapacity", cardwiretest.Fault{}, 2)
	for _, status := range []int{500, 500, 200} {
		assert.Equal(t, status, w.ask(t, "GET /account/capacity").status)
	}
}

func TestFailPanics(t *testing.T) {
	s := cardwiretest.New()
	assert.PanicsWithValue(t, "cardwiretest: no operation has the name CreateTransfers",
		func() { s.Fail("CreateTransfers", cardwiretest.Fault{}, 1) })
	assert.PanicsWithValue(t, "cardwiretest: no kind of fault is FaultKind(-1)",
		func() { s.Fail("CreateTransfer", cardwiretest.Fault{Kind: -1}, 1) })
	assert.PanicsWithValue(t, "cardwiretest: no operation has the name Transfer",
		func() { s.Executions("Transfer", "") })
	assert.Equal(t, "FaultKind(99)", cardwiretest.FaultKind(99).String())
	assert.Equal(t, "Shown(4)", cardwiretest.Shown(4).String())
	assert.Equal(t, "rate limited", cardwiretest.FaultRateLimited.String())
}

// A server that closes ends requests that hang, and cancels late executions. The clock of the
// bubble does not advance until its socket is closed.
func TestServerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &tester{}
		s := cardwiretest.NewServer(tb)
		w := way{s.Service, s.URL, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
		s.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultLate, Delay: time.Second}, 1)
		s.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultHang}, 1)
		failed := make(chan error, 2)
		for range 2 {
			go func() { failed <- w.ask(t, transfer).err }()
		}
		for len(s.Requests()) < 2 {
			runtime.Gosched()
		}
		tb.end()
		require.Error(t, <-failed)
		require.Error(t, <-failed)
		time.Sleep(2 * time.Second) // when it would have been executed
		assert.Zero(t, s.Executions("CreateTransfer", ""))
	})
}

func TestServerClosesUnderARequestThatNeverEnds(t *testing.T) {
	tb := &tester{}
	s := cardwiretest.NewServer(tb)
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/api/v1"))
	require.NoError(t, err)
	defer conn.Close()
	const head = "POST /api/v1/cards/private HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
	_, err = io.WriteString(conn, head+"Content-Length: 9\r\n\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 12)) // the server waits for the rest
	require.NoError(t, err)
	tb.end()
}

// The package's documentation lists the outcome and the step of each kind of fault.
func TestTableOfFaults(t *testing.T) {
	source, err := os.ReadFile("service.go")
	require.NoError(t, err)
	got := map[string]string{}
	for line := range strings.Lines(string(source)) {
		if row, ok := strings.CutPrefix(line, "//\tFault"); ok {
			columns := strings.Split(row, "  ")
			got["Fault"+columns[0]] = strings.Join(strings.Fields(row[len(columns[0]):]), " ")
		}
	}
	want := map[string]string{
		"FaultStatus, Status: 401":            consequence(t, cardwiretest.Fault{Status: 401}),
		"FaultStatus, Status: 422":            consequence(t, cardwiretest.Fault{Status: 422}),
		"FaultStatus, Status: 200, Code: 422": consequence(t, cardwiretest.Fault{Status: 200, Code: 422}),
		"FaultStatus, Status: 200, Code: 500": consequence(t, cardwiretest.Fault{Status: 200, Code: 500}),
	}
	for kind, name := range []string{
		"Status", "HTML", "RateLimited", "Reset", "Hang", "Late", "Truncated", "Garbage", "Slow", "Drift",
	} {
		want["Fault"+name] = consequence(t, cardwiretest.Fault{Kind: cardwiretest.FaultKind(kind)})
	}
	assert.Equal(t, want, got)
}

// consequence is the outcome and the step of a call that meets the fault, whether it is
// executed or not.
func consequence(t *testing.T, f cardwiretest.Fault) (seen string) {
	t.Helper()
	for _, executed := range []bool{false, true} {
		f.Executed = executed
		synctest.Test(t, func(t *testing.T) {
			client, service := cardwiretest.NewClient(t)
			service.Fail("CreateTransfer", f, 1)
			_, err := client.CreateTransfer(t.Context(), cardwire.TransferParams{
				MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("25.00"),
			})
			one, failure := cardwire.OutcomeExecuted, new(cardwire.Error)
			if errors.As(err, &failure) {
				one = failure.Outcome
			}
			after := one.String() + " " + cardwire.NextStep(err).String()
			assert.Contains(t, []string{"", after}, seen, "%v: it depends on whether it was executed", f.Kind)
			seen = after
			time.Sleep(time.Minute) // late executions have happened
		})
	}
	return seen
}
