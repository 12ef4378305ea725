package cardwire_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestObserversAreToldInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []string
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			events = append(events, fmt.Sprint("request ", r.Context().Value(wiretest.ContextKey{})))
			time.Sleep(time.Second)
			if len(events) < 6 {
				return wiretest.Response(r, 503, ""), nil
			}
			return wiretest.Response(r, 200, `{"code":200,"msg":"success","data":[493193,493194]}`), nil
		}), cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 2}),
			cardwire.WithObserver(notingObserver("a", &events)), cardwire.WithObserver(cardwire.Observer{}),
			cardwire.WithObserver(notingObserver("b", &events)))
		_, err := c.ListBINsUnderMaintenance(t.Context())
		require.NoError(t, err)
		for i := range events {
			events[i] = strings.Replace(events[i], "2.000000001s", "2s", 1) // a wait is never nothing
		}
		const info = "{Op:ListBINsUnderMaintenance Server:api.example.com:443 " +
			"Method:GET Path:/bins/maintenance Reference: ReadOnly:true}"
		const result = "{HTTPStatus:200 Code:200 Outcome:executed Duration:2s Attempts:2 Err:<nil>}"
		assert.Equal(t, []string{
			"a start " + info,
			"b start " + info,
			"request ab",
			"a attempt ab received 503 of ListBINsUnderMaintenance",
			"b attempt ab received 503 of ListBINsUnderMaintenance",
			"request ab",
			"a attempt ab received 200 of ListBINsUnderMaintenance",
			"b attempt ab received 200 of ListBINsUnderMaintenance",
			"a drift ab {data[] number for string} of ListBINsUnderMaintenance",
			"b drift ab {data[] number for string} of ListBINsUnderMaintenance",
			"a end ab " + result + " false of ListBINsUnderMaintenance",
			"b end ab " + result + " false of ListBINsUnderMaintenance",
		}, events)
	})
}

// notingObserver notes each event under its name.
func notingObserver(name string, events *[]string) cardwire.Observer {
	note := func(format string, args ...any) { *events = append(*events, name+" "+fmt.Sprintf(format, args...)) }
	marks := func(ctx context.Context) string { s, _ := ctx.Value(wiretest.ContextKey{}).(string); return s }
	return cardwire.Observer{
		CallStart: func(ctx context.Context, i cardwire.CallInfo) context.Context {
			note("start %+v", i)
			return context.WithValue(ctx, wiretest.ContextKey{}, marks(ctx)+name)
		},
		Attempt: func(ctx context.Context, i cardwire.CallInfo, a cardwire.Attempt) {
			note("attempt %s %s %d of %s", marks(ctx), a.Phase, a.HTTPStatus, i.Op)
		},
		Drift: func(ctx context.Context, i cardwire.CallInfo, d cardwire.Drift) {
			note("drift %s %s of %s", marks(ctx), d, i.Op)
		},
		CallEnd: func(ctx context.Context, i cardwire.CallInfo, r cardwire.CallResult) {
			err := r.Err != nil
			r.Err = nil
			note("end %s %+v %v of %s", marks(ctx), r, err, i.Op)
		},
	}
}

// What observers get of each operation, in full. Only writes under a reference are recorded.
func TestObserversAreToldOfEachOperation(t *testing.T) {
	t.Parallel()
	references := map[string]string{}
	for _, w := range wiretest.AllWrites() {
		references[string(w.Op)] = w.Reference
	}
	names := map[string]cardwire.Op{"AllPages": "ListCards", "AllCards": "ListCards", "Call": "Ping"}
	for method, call := range wiretest.AllMethods() {
		var told, want cardwire.CallInfo
		journal := new(wiretest.Journal)
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			reference, writes := references[method]
			want = cardwire.CallInfo{
				Op: cmp.Or(names[method], cardwire.Op(method)), Method: r.Method, ReadOnly: !writes,
				Server: net.JoinHostPort(r.URL.Hostname(), "443"), Reference: reference,
				Path: strings.TrimPrefix(r.URL.Path, "/shop/api/v1"),
			}
			return wiretest.Response(r, 422, refusal), nil
		}), cardwire.WithJournal(journal), cardwire.WithObserver(cardwire.Observer{
			CallStart: func(_ context.Context, i cardwire.CallInfo) context.Context {
				told = i
				return nil // is no context: the caller's stays
			},
		}))
		assert.Equal(t, refused, wiretest.Failure(t, call(t.Context(), c)).Outcome, method)
		assert.Equal(t, want, told)
		assert.Equal(t, want.Op.IsRecorded(), len(journal.Begun) == 1, method)
	}
}

// resultsOf returns an observer that gathers the results of calls.
func resultsOf(results *[]cardwire.CallResult) cardwire.Option {
	return cardwire.WithObserver(cardwire.Observer{
		CallEnd: func(_ context.Context, _ cardwire.CallInfo, r cardwire.CallResult) { *results = append(*results, r) },
	})
}

// A page that contradicts its parameters is read twice, and both are counted.
func TestObserversAreToldOfThePageThatWasReadTwice(t *testing.T) {
	t.Parallel()
	var results []cardwire.CallResult
	first := wiretest.Exchange{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(1, 9)}
	c := wiretest.Converse(t, []wiretest.Exchange{first, first}, resultsOf(&results))
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{Page: 2})
	assert.Equal(t, `Executed ParameterIgnored, HTTP 200, 200 "success"`, outcomeOf(t, err))
	assert.Equal(t, 1, page.CurrentPage)
	require.Len(t, results, 1)
	want := cardwire.CallResult{HTTPStatus: 200, Code: 200, Outcome: executed, Attempts: 2, Err: err}
	want.Duration = results[0].Duration
	assert.Equal(t, want, results[0])
}

// The response is what came; the error is what the record says.
func TestARecordThatContradictsTheResponse(t *testing.T) {
	t.Parallel()
	var results []cardwire.CallResult
	journal := &wiretest.Journal{OnEnd: func(context.Context, cardwire.Intent, cardwire.IntentResult) error {
		return &cardwire.DuplicateIntent{Outcome: executed}
	}}
	refused := wiretest.Always(422, `{"code":422,"msg":"invalid account"}`)
	c := wiretest.NewClient(t, refused, cardwire.WithJournal(journal), resultsOf(&results))
	assert.Equal(t, "Executed DuplicateIntent", outcomeOf(t, send(t, c)))
	require.Len(t, results, 1)
	assert.Equal(t, []int{422, 422}, []int{results[0].HTTPStatus, results[0].Code})
}

// logTo returns the option of a logger that writes text without the time.
func logTo(log *bytes.Buffer, level slog.Level) cardwire.Option {
	return cardwire.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
}

// The log is all that is written of a call: no address, key or number, and
// a reference only of a write that failed.
func TestLogger(t *testing.T) {
	t.Parallel()
	type calls = func(context.Context, *cardwire.Client) error
	transfer := func(ctx context.Context, c *cardwire.Client) error {
		return wiretest.OnlyError(c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1")))
	}
	bins := func(ctx context.Context, c *cardwire.Client) error { return wiretest.OnlyError(c.ListBINs(ctx)) }
	secondPage := func(ctx context.Context, c *cardwire.Client) error {
		return wiretest.OnlyError(c.ListCards(ctx, cardwire.ListCardsParams{Page: 2}))
	}
	page := func(n int) wiretest.Exchange {
		return wiretest.Exchange{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(n, 9)}
	}
	exchange := func(status int, header, body string) wiretest.Exchange {
		return wiretest.Exchange{Want: wiretest.Anything, Status: status, Header: header, Response: body}
	}
	broken := wiretest.Exchange{Want: wiretest.Anything, Err: wiretest.ErrBroken}
	refused := wiretest.Exchange{Want: wiretest.Anything, Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	// In what is wanted < is level=DEBUG msg="cardwire: attempt" operation=, ! a retry's warning,
	// > the end of a read, and ok the end of one that succeeded.
	logs := func(name, want string, call calls, asked ...wiretest.Exchange) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := wiretest.Script(t, asked...)
				policy := cardwire.RetryPolicy{MaxRetries: 1, MaxRetryAfter: time.Minute}
				c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
					time.Sleep(time.Second)
					return s.RoundTrip(r)
				}), logTo(&log, slog.LevelDebug), cardwire.WithRetry(policy))
				_ = call(t.Context(), c)
				assert.Equal(t, strings.NewReplacer(
					"<", `level=DEBUG msg="cardwire: attempt" operation=`,
					"!", `level=WARN msg="cardwire: the attempt failed and is retried" operation=`,
					">", `level=DEBUG msg="cardwire: call" operation=`, "ok\n", "outcome=success code=200\n",
				).Replace(want), log.String())
			})
		})
	}
	good := exchange(200, "", wiretest.Success(`[]`))
	logs("a success", "<ListBINs status=200 duration=1s\n>ListBINs ok\n", bins, good)
	logs("a refusal", "<CreateTransfer status=422 duration=1s\n"+
		`level=WARN msg="cardwire: a write failed" operation=CreateTransfer reference=M-1 outcome=refused `+
		"step=fail status=422 code=1422 requestID=\"\"\n",
		transfer, exchange(422, "", `{"code":1422,"msg":"invalid: 4111111111111111","data":null}`))
	logs("an unknown outcome", "<CreateTransfer status=0 duration=1s cause=\"no response\"\n"+
		`level=ERROR msg="cardwire: a write failed" operation=CreateTransfer reference=M-1 outcome=unknown `+
		"step=reconcile status=0 code=0 requestID=\"\" "+
		"cause=\"the HTTP client returned an error (*errors.errorString)\"\n", transfer, broken)
	logs("an unreadable success", "<CreateTransfer status=200 duration=1s\n"+
		`level=INFO msg="cardwire: call" operation=CreateTransfer reference=M-1 outcome=executed `+
		"step=done status=200 code=200 requestID=\"\" "+
		"cause=\"cardwire: the response is unreadable: data.status: expected a string\"\n",
		transfer, wiretest.TransferUnreadable)
	logs("a retry after a status", "<ListBINs status=429 duration=1s\n!ListBINs status=429 duration=1s\n"+
		"<ListBINs status=0 duration=1s cause=\"no response\"\n"+
		">ListBINs reference=\"\" outcome=unknown step=retry status=0 code=0 requestID=\"\" "+
		"cause=\"the HTTP client returned an error (*errors.errorString)\"\n",
		bins, exchange(429, "Retry-After: 7", refusal), broken)
	logs("a retry without a response", "<ListBINs status=0 duration=1s cause=\"no response\"\n"+
		"!ListBINs status=0 duration=1s cause=\"no response\"\n"+
		"<ListBINs status=200 duration=1s\n>ListBINs ok\n", bins, broken, good)
	logs("a retry without a connection", "<ListBINs status=0 duration=1s cause=\"no connection\"\n"+
		"!ListBINs status=0 duration=1s cause=\"no connection\"\n"+
		"<ListBINs status=200 duration=1s\n>ListBINs ok\n", bins, refused, good)
	logs("a page that is read once more", "<ListCards status=200 duration=1s\n"+
		"<ListCards status=503 duration=1s\n!ListCards status=503 duration=1s\n"+
		"<ListCards status=200 duration=1s\n>ListCards ok\n", secondPage, page(1), exchange(503, "", ""), page(2))
	logs("drift", "<CardCapacity status=200 duration=1s\n"+
		"level=WARN msg=\"cardwire: the response deviates from the API\" operation=CardCapacity path=data "+
		"kind=\"string for number\"\n>CardCapacity ok\n",
		func(ctx context.Context, c *cardwire.Client) error { return wiretest.OnlyError(c.CardCapacity(ctx)) },
		exchange(200, "", wiretest.Success(`"250"`)))
	logs("what was not sent", "", func(ctx context.Context, c *cardwire.Client) error {
		return wiretest.OnlyError(c.GetCard(ctx, ""))
	})
}

// The envelope's drift counts as that of data does.
func TestWithStrictDrift(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: wiretest.Anything, Response: `{"code":200,"data":` + wiretest.TransferData + `}`},
		{Want: wiretest.Anything, Response: wiretest.Success(`["493193"]`)},
	}, cardwire.WithStrictDrift())
	transfer, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, `Executed Drift, HTTP 200, 200 ""`, outcomeOf(t, err))
	assert.ErrorContains(t, err, "msg: missing field")
	assert.Equal(t, "A-1", transfer.APIOrderNo)

	bins, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err, "without drift")
	assert.Equal(t, []string{"493193"}, bins)
}
