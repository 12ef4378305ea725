package cardwire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type limiterFunc func(context.Context) error

func (l limiterFunc) Wait(ctx context.Context) error { return l(ctx) }

// changedProfile is the default profile with one change.
func changedProfile(change func(*Profile)) Option {
	p := DefaultProfile()
	change(&p)
	return WithProfile(p)
}

func TestWithHeader(t *testing.T) {
	t.Parallel()
	var got http.Header
	c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return httpReply(r, 200, success(`[]`)), nil
	}))
	_, err := c.ListBINs(t.Context(),
		WithHeader("x-trace", "1"), WithHeader("X-Trace", "2"), WithHeader("accept", "text/json"), WithHeader("X-Empty", ""))
	require.NoError(t, err)
	assert.Equal(t, []string{"2"}, got["X-Trace"], "the last one holds")
	assert.Equal(t, []string{"text/json"}, got["Accept"])
	assert.Equal(t, []string{""}, got["X-Empty"])
	assert.Equal(t, []string{"Bearer " + testKey}, got["Authorization"])

	_, err = c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"application/json"}, got["Accept"], "the call after is as it was")
	assert.NotContains(t, got, "X-Trace")
}

func TestWithHeaderRefuses(t *testing.T) {
	t.Parallel()
	c := unasked(t)
	for _, name := range []string{
		"Authorization", "authorization", "Proxy-Authorization", "Cookie", "Idempotency-Key", "idempotency-key",
		"X-Idempotency-Key", "Host", "Content-Type", "Content-Length", "Content-Encoding", "Accept-Encoding",
		"Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	} {
		_, err := c.ListBINs(t.Context(), WithHeader(name, "x"))
		refusedBeforehand(t, err, "WithHeader: the header is not a caller's to set")
	}
	for _, name := range []string{"", " ", "X Trace", "X-Trace:", "X\r\nY", "X-Tr\u00e4ce"} {
		_, err := c.ListBINs(t.Context(), WithHeader(name, "x"))
		refusedBeforehand(t, err, "WithHeader: the header's name is not a token")
	}
	for _, value := range []string{"a\r\nX-Other: b", "a\x00", "\u00e4"} {
		_, err := c.ListBINs(t.Context(), WithHeader("X-Trace", value))
		refusedBeforehand(t, err, "WithHeader: the header's value is not visible ASCII")
	}
	_, err := c.ListBINs(t.Context(), WithHeader("", ""), WithHeader("Host", "x"))
	refusedBeforehand(t, err, "not a token")
}

func TestWithUserAgent(t *testing.T) {
	t.Parallel()
	var got string
	c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Get("User-Agent")
		return httpReply(r, 200, success(`[]`)), nil
	}), WithUserAgent("shop/1.2 (test)"))
	_, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Regexp(t, `^shop/1\.2 \(test\) cardwire-go/[0-9a-z.+-]+$`, got)
}

func TestTheKeySourceIsAskedAtEachCall(t *testing.T) {
	t.Parallel()
	var sent []string
	asked := 0
	c, err := New(testBase, "", WithHTTPClient(carrier(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Authorization"))
		if len(sent) == 1 {
			return httpReply(r, 503, ""), nil
		}
		return httpReply(r, 401, `{"code":401,"msg":"key-2 is old","data":null}`), nil
	})), WithKeySource(func(ctx context.Context) (string, error) {
		asked++
		assert.Equal(t, "kept", ctx.Value(contextKey{}))
		return fmt.Sprint("key-", asked), nil
	}), WithRetry(quickPolicy))
	require.NoError(t, err)
	ctx := context.WithValue(t.Context(), contextKey{}, "kept")
	_, err = c.ListBINs(ctx)
	require.ErrorIs(t, err, ErrUnauthorized)
	_, err = c.CreateTransfer(ctx, smallTransfer("M-1"))
	require.ErrorIs(t, err, ErrUnauthorized)
	assert.Equal(t, []string{"Bearer key-1", "Bearer key-1", "Bearer key-2"}, sent, "a repeat is not another call")
	assert.Equal(t, "*** is old", failure(t, err).Message, "the key of this very call is masked")
}

func TestWithoutAKeyNothingIsSent(t *testing.T) {
	t.Parallel()
	down := errors.New("vault: token s.4111111111111111 expired")
	for name, tc := range map[string]struct {
		key  string
		err  error
		want string
	}{
		"a source that fails":   {"", down, "cardwire: ListBINs: not sent: the key source failed: nothing was sent; it is safe to call again"},
		"an empty key":          {"", nil, "cardwire: ListBINs: not sent: invalid parameters: the key source: the API key is empty: correct it and call again; nothing was sent"},
		"a key that is a line":  {"s.secret\r\nX-Evil: 1", nil, "cardwire: ListBINs: not sent: invalid parameters: the key source: the API key holds a character that is not visible ASCII: correct it and call again; nothing was sent"},
		"a key of other script": {"s.sécret", nil, "cardwire: ListBINs: not sent: invalid parameters: the key source: the API key holds a character that is not visible ASCII: correct it and call again; nothing was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := unasked(t, WithKeySource(func(context.Context) (string, error) { return tc.key, tc.err }))
			_, err := c.ListBINs(t.Context())
			require.EqualError(t, err, tc.want)
			require.ErrorIs(t, err, ErrNotSent)
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
			}
			assert.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "secret")
		})
	}
}

// A source that does not answer ends with the call's own deadline.
func TestTheKeySourceIsAskedWithinTheCallsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := unasked(t, WithKeySource(func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}))
		start := time.Now()
		_, err := c.ListBINs(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, ErrNotSent)
		assert.Equal(t, 30*time.Second, time.Since(start))
	})
}

func TestTheLimiterIsWaitedForBeforeEveryRequest(t *testing.T) {
	t.Parallel()
	var events []string
	c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
		events = append(events, "request")
		if len(events) < 6 {
			return httpReply(r, 503, ""), nil
		}
		return httpReply(r, 200, success(`[]`)), nil
	}), WithRetry(quickPolicy), WithLimiter(limiterFunc(func(context.Context) error {
		events = append(events, "wait")
		return nil
	})))
	_, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"wait", "request", "wait", "request", "wait", "request"}, events)
}

func TestALimiterThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("the queue of 4111111111111111 is full")
	for _, w := range allWrites() {
		t.Run(w.op, func(t *testing.T) {
			t.Parallel()
			c := unasked(t, WithLimiter(limiterFunc(func(context.Context) error { return full })))
			err := w.call(t.Context(), c)
			assert.Equal(t, facts{Outcome: OutcomeNotSent, Is: "NotSent"}, factsOf(t, err))
			require.ErrorIs(t, err, full)
			assert.Contains(t, err.Error(), "refused by the rate limiter")
			assert.NotContains(t, err.Error(), "4111")
		})
	}
	t.Run("before a repeat", func(t *testing.T) {
		t.Parallel()
		waits := 0
		c := converse(t, []exchange{{want: "GET /shop/api/v1/bins", status: 503}}, WithRetry(quickPolicy), WithLimiter(limiterFunc(func(context.Context) error {
			if waits++; waits == 2 {
				return full
			}
			return nil
		})))
		_, err := c.ListBINs(t.Context())
		assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 503, Phases: "answered"}, factsOf(t, err))
		require.ErrorIs(t, err, full)
	})
}

// The log, as text, is all that is written of a call: no address, key, reference
// or number.
func TestLogger(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked []exchange
		call  func(context.Context, *Client) error
		want  string
	}{
		"a success": {
			[]exchange{{want: "GET /shop/api/v1/bins", reply: success(`[]`)}},
			func(ctx context.Context, c *Client) error { return onlyError(c.ListBINs(ctx)) },
			"level=DEBUG msg=\"cardwire: attempt\" operation=ListBINs status=200 duration=1s code=200\n",
		},
		"a refusal": {
			[]exchange{{want: asksTransfer("M-1"), status: 422, reply: `{"code":1422,"msg":"4111111111111111","data":null}`}},
			func(ctx context.Context, c *Client) error {
				return onlyError(c.CreateTransfer(ctx, smallTransfer("M-1")))
			},
			"level=DEBUG msg=\"cardwire: attempt\" operation=CreateTransfer status=422 duration=1s code=1422 outcome=refused\n",
		},
		"a repeat": {
			[]exchange{
				{want: "GET /shop/api/v1/cards/info?id=o1", status: 429, header: "Retry-After: 7", reply: `{"code":429,"msg":"no","data":null}`},
				{want: "GET /shop/api/v1/cards/info?id=o1", err: errBrokenNetwork},
			},
			func(ctx context.Context, c *Client) error { return onlyError(c.GetCardByOrder(ctx, "o1")) },
			"level=DEBUG msg=\"cardwire: attempt\" operation=GetCardByOrder status=429 duration=1s\n" +
				"level=WARN msg=\"cardwire: the attempt failed and is repeated\" operation=GetCardByOrder status=429 duration=1s\n" +
				"level=DEBUG msg=\"cardwire: attempt\" operation=GetCardByOrder status=0 duration=1s outcome=unknown\n",
		},
		"a page that is read once more": {
			[]exchange{
				{want: pageRequest(2), reply: success(`{"total":9,"per_page":1,"current_page":1,"last_page":9,"data":[]}`)},
				{want: pageRequest(2), status: 503},
				{want: pageRequest(2), reply: success(`{"total":9,"per_page":1,"current_page":2,"last_page":9,"data":[]}`)},
			},
			func(ctx context.Context, c *Client) error {
				return onlyError(c.ListCards(ctx, ListCardsParams{Page: 2}))
			},
			"level=DEBUG msg=\"cardwire: attempt\" operation=ListCards status=200 duration=1s code=200 outcome=executed\n" +
				"level=DEBUG msg=\"cardwire: attempt\" operation=ListCards status=503 duration=1s\n" +
				"level=WARN msg=\"cardwire: the attempt failed and is repeated\" operation=ListCards status=503 duration=1s\n" +
				"level=DEBUG msg=\"cardwire: attempt\" operation=ListCards status=200 duration=1s code=200\n",
		},
		"what was not sent": {
			nil,
			func(ctx context.Context, c *Client) error { return onlyError(c.GetCard(ctx, "..")) },
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
					Level: slog.LevelDebug,
					ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
						if a.Key == slog.TimeKey {
							return slog.Attr{}
						}
						return a
					},
				}))
				s := script(t, tc.asked...)
				c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
					time.Sleep(time.Second)
					return s.RoundTrip(r)
				}), WithLogger(logger), WithRetry(RetryPolicy{MaxRetries: 1, MinDelay: 1, MaxDelay: 1, MaxRetryAfter: time.Minute}))
				_ = tc.call(t.Context(), c)
				assert.Equal(t, tc.want, log.String())
			})
		})
	}
}

// The outcome that is logged is the one that the caller is told.
func TestLoggerTellsTheOutcomeOfTheReference(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := converse(t, []exchange{transferUnanswered, transferRefused},
		WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	transferOutcome(t, c, "M-1")
	log.Reset()
	require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	assert.Contains(t, log.String(), "code=422 outcome=unknown")
}

// What is not repeated after all, because the limiter says no, is logged once.
func TestLoggerHearsOfNoRepeatThatTheLimiterStops(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	waits := 0
	c := converse(t, []exchange{{want: "GET /shop/api/v1/bins", status: 503}}, WithRetry(quickPolicy),
		WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		WithLimiter(limiterFunc(func(context.Context) error {
			if waits++; waits == 2 {
				return errBrokenNetwork
			}
			return nil
		})))
	_, err := c.ListBINs(t.Context())
	require.ErrorIs(t, err, errBrokenNetwork)
	assert.Equal(t, 1, strings.Count(log.String(), `msg="cardwire: attempt"`), log.String())
}

func TestLoggerOfWarningsOnly(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := converse(t, []exchange{{want: "GET /shop/api/v1/bins", status: 503}, {want: "GET /shop/api/v1/bins", reply: success(`[]`)}},
		WithRetry(quickPolicy), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	_, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(log.String(), "\n"))
	assert.Contains(t, log.String(), `level=WARN msg="cardwire: the attempt failed and is repeated" operation=ListBINs status=503`)
}

// notingObserver writes down what it is told, under its name.
func notingObserver(name string, events *[]string) Observer {
	note := func(format string, args ...any) { *events = append(*events, name+" "+fmt.Sprintf(format, args...)) }
	marks := func(ctx context.Context) string { s, _ := ctx.Value(contextKey{}).(string); return s }
	return Observer{
		CallStart: func(ctx context.Context, i CallInfo) context.Context {
			note("start %+v", i)
			return context.WithValue(ctx, contextKey{}, marks(ctx)+name)
		},
		Attempt: func(ctx context.Context, i CallInfo, a Attempt) {
			note("attempt %s %s %d of %s", marks(ctx), a.Phase, a.HTTPStatus, i.Op)
		},
		Drift: func(ctx context.Context, i CallInfo, d Drift) { note("drift %s %s of %s", marks(ctx), d, i.Op) },
		CallEnd: func(ctx context.Context, i CallInfo, r CallResult) {
			err := r.Err != nil
			r.Err = nil
			note("end %s %+v %v of %s", marks(ctx), r, err, i.Op)
		},
	}
}

func TestObserversAreToldInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []string
		c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
			events = append(events, fmt.Sprint("request ", r.Context().Value(contextKey{})))
			time.Sleep(time.Second)
			if len(events) < 6 {
				return httpReply(r, 503, ""), nil
			}
			return httpReply(r, 200, `{"code":200,"msg":"success","data":[493193,493194]}`), nil
		}), WithRetry(RetryPolicy{MaxRetries: 2, MinDelay: 0, MaxDelay: 0}),
			WithObserver(notingObserver("a", &events)), WithObserver(Observer{}), WithObserver(notingObserver("b", &events)))
		_, err := c.ListBINsUnderMaintenance(t.Context())
		require.NoError(t, err)
		for i := range events {
			events[i] = strings.Replace(events[i], "2.000000001s", "2s", 1) // a wait is never nothing
		}
		assert.Equal(t, []string{
			"a start {Op:ListBINsUnderMaintenance Method:GET Path:/bins/maintenance Reference: Write:false}",
			"b start {Op:ListBINsUnderMaintenance Method:GET Path:/bins/maintenance Reference: Write:false}",
			"request ab",
			"a attempt ab answered 503 of ListBINsUnderMaintenance",
			"b attempt ab answered 503 of ListBINsUnderMaintenance",
			"request ab",
			"a attempt ab answered 200 of ListBINsUnderMaintenance",
			"b attempt ab answered 200 of ListBINsUnderMaintenance",
			"a drift ab {data[] number for text} of ListBINsUnderMaintenance",
			"b drift ab {data[] number for text} of ListBINsUnderMaintenance",
			"a end ab {HTTPStatus:200 Code:200 Outcome:unknown Duration:2s Attempts:2 Err:<nil>} false of ListBINsUnderMaintenance",
			"b end ab {HTTPStatus:200 Code:200 Outcome:unknown Duration:2s Attempts:2 Err:<nil>} false of ListBINsUnderMaintenance",
		}, events)
	})
}

func TestObserversAreToldHowAWriteEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked exchange
		want  CallResult
	}{
		"success":   {transferDone, CallResult{HTTPStatus: 200, Code: 200, Attempts: 1}},
		"refused":   {transferRefused, CallResult{HTTPStatus: 422, Code: 422, Attempts: 1, Outcome: OutcomeRefused}},
		"no answer": {transferUnanswered, CallResult{Attempts: 1}},
		"executed":  {transferStrange, CallResult{HTTPStatus: 200, Code: 200, Attempts: 1, Outcome: OutcomeExecuted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var infos []CallInfo
				var results []CallResult
				c := converse(t, []exchange{tc.asked}, WithObserver(Observer{
					CallStart: func(context.Context, CallInfo) context.Context { return nil }, // is no context: the caller's stays
					CallEnd: func(_ context.Context, i CallInfo, r CallResult) {
						infos, results = append(infos, i), append(results, r)
					},
				}))
				_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
				assert.Equal(t, []CallInfo{{
					Op: "CreateTransfer", Method: "POST", Path: "/remittance/transfer", Reference: "M-1", Write: true,
				}}, infos)
				tc.want.Err = err
				assert.Equal(t, []CallResult{tc.want}, results)
			})
		})
	}
}

// A page that contradicts its parameters is read twice, and both are counted.
func TestObserversAreToldOfThePageThatWasReadTwice(t *testing.T) {
	t.Parallel()
	var results []CallResult
	first := exchange{want: pageRequest(2), reply: success(`{"total":9,"per_page":1,"current_page":1,"last_page":9,"data":[]}`)}
	c := converse(t, []exchange{first, first}, WithObserver(Observer{
		CallEnd: func(_ context.Context, _ CallInfo, r CallResult) { results = append(results, r) },
	}))
	page, err := c.ListCards(t.Context(), ListCardsParams{Page: 2})
	assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed ParameterIgnored", HTTPStatus: 200, Code: 200, Message: "success"}, factsOf(t, err))
	assert.Equal(t, 1, page.CurrentPage)
	require.Len(t, results, 1)
	assert.Equal(t, 2, results[0].Attempts)
	assert.Equal(t, OutcomeExecuted, results[0].Outcome)
	assert.Same(t, err, results[0].Err)
}

// The envelope's drift counts as that of data does.
func TestWithStrictDrift(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{
		{want: anything, reply: `{"code":200,"data":` + transferData + `}`},
		{want: anything, reply: success(`["493193"]`)},
	}, WithStrictDrift())
	transfer, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed Drift", HTTPStatus: 200, Code: 200}, factsOf(t, err))
	assert.ErrorContains(t, err, "msg: missing member")
	assert.Equal(t, "A-1", transfer.APIOrderNo)

	bins, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err, "without drift")
	assert.Equal(t, []string{"493193"}, bins)
}

// countingServer is a server that answers each read, and counts connections.
func countingServer(t *testing.T, connections *atomic.Int32) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, success(`[]`))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func TestReadsShareConnectionsUnlessTheyAreToBeFresh(t *testing.T) {
	t.Parallel()
	for want, opts := range map[int32][]Option{1: nil, 3: {WithFreshConnections()}} {
		var connections atomic.Int32
		c := clientOver(t, countingServer(t, &connections).URL, opts...)
		for range 3 {
			_, err := c.ListBINs(t.Context())
			require.NoError(t, err)
		}
		assert.Equal(t, want, connections.Load())
	}
}

func TestWithMaxResponseBytes(t *testing.T) {
	t.Parallel()
	reply := success(`["493193"]`)
	const asked = "GET /shop/api/v1/bins/maintenance"
	bins, err := answered(t, asked, reply, WithMaxResponseBytes(int64(len(reply)))).ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"493193"}, bins)

	short := converse(t, []exchange{{want: asked, reply: reply}, {want: asksTransfer("M-1"), reply: reply}},
		WithMaxResponseBytes(int64(len(reply))-1), WithRetry(quickPolicy))
	_, err = short.ListBINsUnderMaintenance(t.Context())
	assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown TooLarge", HTTPStatus: 200, Phases: "answered"}, factsOf(t, err))
	_, err = short.CreateTransfer(t.Context(), smallTransfer("M-1"))
	require.ErrorIs(t, err, ErrResponseTooLarge, "the bound of writes is the lower one")

	_, err = answered(t, asked, success(`["`+strings.Repeat("4", 100<<10)+`"]`)).ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err, "64 KiB bound writes only")
}

func TestTimeoutOfACall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts  []Option
		limit time.Duration // of the context; 0: none
		op    string
		want  time.Duration
	}{
		"by default":                         {op: "ListBINs", want: 30 * time.Second},
		"a write by default":                 {op: "CreateTransfer", want: 30 * time.Second},
		"an upload by default":               {op: "UploadImage", want: 5 * time.Minute},
		"an option":                          {opts: []Option{WithTimeout(time.Hour)}, op: "ListBINs", want: time.Hour},
		"an option for an upload":            {opts: []Option{WithTimeout(time.Second)}, op: "UploadImage", want: time.Second},
		"an earlier deadline of the context": {limit: time.Second, op: "ListBINs", want: time.Second},
		"a later deadline of the context":    {limit: time.Hour, op: "CreateTransfer", want: time.Hour},
		"a deadline and an option":           {opts: []Option{WithTimeout(time.Second)}, limit: time.Hour, op: "ListBINs", want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.limit != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.limit)
					defer cancel()
				}
				c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}), append(tc.opts, WithRetry(RetryPolicy{}))...)
				start := time.Now()
				err := allMethods()[tc.op](ctx, c)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, ErrOutcomeUnknown)
				assert.Equal(t, tc.want, time.Since(start))
			})
		})
	}
}

// Repeats and waits count as well.
func TestTimeoutIncludesRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), WithRetry(RetryPolicy{MaxRetries: 9, MinDelay: 1, MaxDelay: 1, Attempt: 8 * time.Second}))
		start := time.Now()
		_, err := c.ListBINs(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, failure(t, err).Attempts, 4)
		assert.Equal(t, 30*time.Second, time.Since(start))
	})
}

func TestWithTransportIsACopyThatSpeaksHTTP1(t *testing.T) {
	t.Parallel()
	var protocols []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols = append(protocols, r.Proto)
		_, _ = io.WriteString(w, success(`[]`))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()

	own := s.Client().Transport.(*http.Transport).Clone()
	own.ForceAttemptHTTP2 = true
	require.Contains(t, own.TLSClientConfig.NextProtos, "h2")
	c := clientOver(t, s.URL, WithTransport(own))
	own.TLSClientConfig = &tls.Config{} // would not trust the server
	own.Proxy = func(*http.Request) (*url.URL, error) { return nil, errBrokenNetwork }
	_, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	_, err = Call[any](t.Context(), c, Request{Op: "Write", Method: "POST", Path: "/write", Write: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"HTTP/1.1", "HTTP/1.1"}, protocols)
	assert.True(t, own.ForceAttemptHTTP2, "the caller's own is not changed")
}

// A mock that is installed in an http.Client after New must carry the calls.
func TestAnHTTPClientIsUsedAsItIsAtEachCall(t *testing.T) {
	t.Parallel()
	own := &http.Client{Transport: carrier(func(*http.Request) (*http.Response, error) { return nil, errBrokenNetwork })}
	c, err := New(testBase, testKey, WithHTTPClient(own), WithRetry(RetryPolicy{}))
	require.NoError(t, err)
	_, err = c.ListBINs(t.Context())
	require.ErrorIs(t, err, errBrokenNetwork)
	own.Transport = script(t, exchange{want: "GET /shop/api/v1/bins", reply: success(`[]`)})
	_, err = c.ListBINs(t.Context())
	require.NoError(t, err)
}

func TestAProfileIsCopied(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	c := answered(t, asksTransfer("M-1"), `{"code":422,"msg":"no","data":null}`, WithProfile(p))
	for i := range p.RefusedCodes {
		p.RefusedCodes[i] = 0
	}
	assert.Equal(t, OutcomeRefused, transferOutcome(t, c, "M-1"))
}

func TestTheDefaults(t *testing.T) {
	t.Parallel()
	assert.Equal(t, RetryPolicy{
		MaxRetries: 2, MinDelay: 250 * time.Millisecond, MaxDelay: 8 * time.Second,
		MaxRetryAfter: 30 * time.Second, Attempt: 10 * time.Second,
	}, DefaultRetryPolicy())
	refused := []int{400, 401, 403, 404, 405, 413, 415, 422, 429}
	assert.Equal(t, Profile{
		LimitParam: "limit", PageParam: "page", StatusParam: "status", CardBINParam: "card_bin",
		CardIDParam: "id", RetryAction: "retry", RefusedCodes: refused, RefusedStatuses: refused,
	}, DefaultProfile())
}
