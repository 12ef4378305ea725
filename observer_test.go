package cardwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
			"a attempt ab received 503 of ListBINsUnderMaintenance",
			"b attempt ab received 503 of ListBINsUnderMaintenance",
			"request ab",
			"a attempt ab received 200 of ListBINsUnderMaintenance",
			"b attempt ab received 200 of ListBINsUnderMaintenance",
			"a drift ab {data[] number for string} of ListBINsUnderMaintenance",
			"b drift ab {data[] number for string} of ListBINsUnderMaintenance",
			"a end ab {HTTPStatus:200 Code:200 Outcome:unknown Duration:2s Attempts:2 Err:<nil>} false of ListBINsUnderMaintenance",
			"b end ab {HTTPStatus:200 Code:200 Outcome:unknown Duration:2s Attempts:2 Err:<nil>} false of ListBINsUnderMaintenance",
		}, events)
	})
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

// What observers are told of each operation, in full. Only writes under a
// reference are recorded.
func TestObserversAreToldOfEachOperation(t *testing.T) {
	t.Parallel()
	const page = `{"total":0,"per_page":1,"current_page":1,"last_page":1,"data":[]}`
	card := shortCard("c1", "")
	wanted := map[string]struct {
		data string
		info CallInfo
	}{
		"ListBINs":                 {`[]`, CallInfo{"ListBINs", "GET", "/bins", "", false}},
		"ListBINsUnderMaintenance": {`[]`, CallInfo{"ListBINsUnderMaintenance", "GET", "/bins/maintenance", "", false}},
		"ListCards":                {page, CallInfo{"ListCards", "GET", "/cards", "", false}},
		"AllPages":                 {page, CallInfo{"ListCards", "GET", "/cards", "", false}},
		"AllCards":                 {page, CallInfo{"ListCards", "GET", "/cards", "", false}},
		"GetCard":                  {card, CallInfo{"GetCard", "GET", "/cards/info", "", false}},
		"GetCardByOrder":           {card, CallInfo{"GetCardByOrder", "GET", "/cards/info", "", false}},
		"GetCardSecrets":           {secretsText, CallInfo{"GetCardSecrets", "POST", "/cards/private", "", false}},
		"FreezeCard":               {`"` + testUUID + `"`, CallInfo{"FreezeCard", "POST", "/cards/suspend", freezeID, true}},
		"CancelOperation":          {`true`, CallInfo{"CancelOperation", "POST", "/cards/adjustAction", testUUID, true}},
		"RetryOperation":           {`true`, CallInfo{"RetryOperation", "POST", "/cards/adjustAction", testUUID, true}},
		"CardCapacity":             {`1`, CallInfo{"CardCapacity", "GET", "/account/capacity", "", false}},
		"ListRemittanceStates":     {`[]`, CallInfo{"ListRemittanceStates", "GET", "/remittance/states", "", false}},
		"ListRemittanceCurrencies": {`[]`, CallInfo{"ListRemittanceCurrencies", "GET", "/remittance/currency", "", false}},
		"CreateTransfer":           {transferData, CallInfo{"CreateTransfer", "POST", "/remittance/transfer", "M-1", true}},
		"UploadImage":              {`{"attachment_key":"k-1"}`, CallInfo{"UploadImage", "POST", "/cards/upload", "", true}},
		"Call":                     {`null`, CallInfo{"Ping", "GET", "/ping", "", false}},
	}
	for op, call := range allMethods() {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			want := wanted[op]
			var told []CallInfo
			journal := new(scriptedJournal)
			observer := Observer{CallStart: func(ctx context.Context, i CallInfo) context.Context {
				told = append(told, i)
				return ctx
			}}
			c := answered(t, anything, success(want.data), WithObserver(observer), WithJournal(journal))
			require.NoError(t, call(t.Context(), c))
			assert.Equal(t, []CallInfo{want.info}, told)
			assert.Equal(t, want.info.Write && want.info.Reference != "", len(journal.begun) == 1)
		})
	}
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

// The log, as text, is all that is written of a call: no address, key or number, and
// a reference only of a write that failed.
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
			"level=DEBUG msg=\"cardwire: attempt\" operation=CreateTransfer status=422 duration=1s code=1422 outcome=refused\n" +
				"level=WARN msg=\"cardwire: a write failed\" operation=CreateTransfer reference=M-1 outcome=refused step=fail status=422 code=1422 requestID=\"\"\n",
		},
		"an unknown outcome": {
			[]exchange{{want: asksTransfer("M-1"), err: errBrokenNetwork}},
			func(ctx context.Context, c *Client) error {
				return onlyError(c.CreateTransfer(ctx, smallTransfer("M-1")))
			},
			"level=DEBUG msg=\"cardwire: attempt\" operation=CreateTransfer status=0 duration=1s outcome=unknown\n" +
				"level=ERROR msg=\"cardwire: a write failed\" operation=CreateTransfer reference=M-1 outcome=unknown step=reconcile status=0 code=0 requestID=\"\" cause=\"connection failed\"\n",
		},
		"a repeat": {
			[]exchange{
				{want: "GET /shop/api/v1/cards/info?id=o1", status: 429, header: "Retry-After: 7", reply: `{"code":429,"msg":"no","data":null}`},
				{want: "GET /shop/api/v1/cards/info?id=o1", err: errBrokenNetwork},
			},
			func(ctx context.Context, c *Client) error { return onlyError(c.GetCardByOrder(ctx, "o1")) },
			"level=DEBUG msg=\"cardwire: attempt\" operation=GetCardByOrder status=429 duration=1s\n" +
				"level=WARN msg=\"cardwire: the attempt failed and is retried\" operation=GetCardByOrder status=429 duration=1s\n" +
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
				"level=WARN msg=\"cardwire: the attempt failed and is retried\" operation=ListCards status=503 duration=1s\n" +
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
	assert.Contains(t, log.String(), `level=WARN msg="cardwire: the attempt failed and is retried" operation=ListBINs status=503`)
}

// driftKinds has every kind of drift there is, in the reply of an operation.
func driftKinds(t *testing.T) map[string]driftCase {
	t.Helper()
	bin := func(old, replacement string) string { return success(`[` + edited(t, binText, old, replacement) + `]`) }
	card := func(old, replacement string) string { return success(edited(t, singleCardText, old, replacement)) }
	const addressText = `{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`
	return map[string]driftCase{
		"unknown field":                        {bin(`"maintain":true`, `"maintain":true,"Maintain":false`), "data[].*", binOf(maintained), true},
		"missing field":                        {bin(`"maintain":true,`, ``), "data[].maintain", binOf(maintained), false},
		"string for number":                    {bin(`1000.5`, `"1000.50"`), "data[].day_purchase_limit", binOf(func(b *BIN) any { return b.DayPurchaseLimit }), dec("1000.50")},
		"number for string":                    {bin(`"bin":"493193"`, `"bin":493193`), "data[].bin", binOf(func(b *BIN) any { return b.BIN }), "493193"},
		"null for string":                      {bin(`"Travel"`, `null`), "data[].name", binOf(func(b *BIN) any { return b.Name }), ""},
		"null for number":                      {bin(`"weigh":8`, `"weigh":null`), "data[].weigh", binOf(func(b *BIN) any { return b.Weight }), int64(0)},
		"null for boolean":                     {bin(`"maintain":true`, `"maintain":null`), "data[].maintain", binOf(maintained), false},
		"null for array":                       {bin(`["ads","travel"]`, `null`), "data[].scenes", binOf(func(b *BIN) any { return b.Scenes }), []string(nil)},
		"number for boolean":                   {bin(`"maintain":true`, `"maintain":1`), "data[].maintain", binOf(maintained), true},
		"string for boolean":                   {bin(`"maintain":true`, `"maintain":"1"`), "data[].maintain", binOf(maintained), true},
		"boolean for number":                   {bin(`"3ds":1`, `"3ds":true`), "data[].3ds", binOf(func(b *BIN) any { return b.ThreeDS }), true},
		"flag other than 0 and 1":              {bin(`"avs":1`, `"avs":2`), "data[].avs", binOf(func(b *BIN) any { return b.AVS }), true},
		"empty array for object":               {bin(foreignFeesText, `[]`), "data[].foreign_fee_config", binOf(func(b *BIN) any { return b.ForeignFees }), []FeeTier(nil)},
		"unreadable range":                     {bin(`"10-99.99"`, `"rest"`), "data[].foreign_fee_config.*", binOf(func(b *BIN) any { return b.ForeignFees[0].Range }), "rest"},
		"empty object for array":               {card(addressText, `{}`), "data.holder_address", holderAddress, (*Address)(nil)},
		"null for object":                      {card(addressText, `null`), "data.holder_address", holderAddress, (*Address)(nil)},
		"empty string":                         {card(`"2026-01-02 03:04:05"`, `""`), "data.create_time", createTime, DateTime{}},
		"zero date":                            {card(`"2026-01-02 03:04:05"`, `"0000-00-00 00:00:00"`), "data.create_time", createTime, DateTime{}},
		"identifier that is not a UUID":        {success(`"op-1"`), "data", frozenBy, "op-1"},
		"identifier with invisible characters": {success(`"` + operationID + `\u0000"`), "data", frozenBy, operationID},
		"unknown success message":              {`{"code":200,"msg":"done","data":"` + operationID + `"}`, "msg", frozenBy, operationID},
	}
}

// driftCase is a reply, the place of the drift in it, the call that reads it
// and what it reads in that place all the same.
type driftCase struct {
	reply, path string
	read        func(context.Context, *Client) (any, error)
	want        any
}

func maintained(b *BIN) any { return b.Maintain }

func binOf(value func(*BIN) any) func(context.Context, *Client) (any, error) {
	return func(ctx context.Context, c *Client) (any, error) {
		bins, err := c.ListBINs(ctx)
		if len(bins) != 1 {
			return nil, errors.Join(err, errors.New("not one BIN"))
		}
		return value(&bins[0]), err
	}
}

func holderAddress(ctx context.Context, c *Client) (any, error) {
	card, err := c.GetCard(ctx, "card-1")
	return card.HolderAddress, err
}

func createTime(ctx context.Context, c *Client) (any, error) {
	card, err := c.GetCard(ctx, "card-1")
	return card.CreateTime, err
}

func frozenBy(ctx context.Context, c *Client) (any, error) {
	operation, err := c.FreezeCard(ctx, FreezeCardParams{CardID: "card-1"})
	return operation.ID, err
}

// Each kind is told to observers, logged, and an error under WithStrictDrift;
// what was sent is read in any case.
func TestEveryKindOfDrift(t *testing.T) {
	t.Parallel()
	for kind, tc := range driftKinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, tc.reply)
			}))
			t.Cleanup(server.Close)
			client := func(opts ...Option) *Client {
				c, err := New(server.URL, testKey, opts...)
				require.NoError(t, err)
				t.Cleanup(c.CloseIdleConnections)
				return c
			}

			got, err := tc.read(t.Context(), client())
			require.NoError(t, err, "with nobody to tell")
			assert.Equal(t, tc.want, got)

			heard, drifts := driftsOf()
			var log bytes.Buffer
			got, err = tc.read(t.Context(), client(heard, WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, []Drift{{tc.path, kind}}, *drifts)
			assert.Regexp(t, `^time=\S+ level=WARN msg="cardwire: the response deviates from the API" operation=(ListBINs|GetCard|FreezeCard) `+
				regexp.QuoteMeta(`path=`+tc.path+` kind=`+strconv.Quote(kind))+`\n$`, log.String())

			got, err = tc.read(t.Context(), client(WithStrictDrift()))
			told := factsOf(t, err)
			assert.Contains(t, []string{"success", "done"}, told.Message)
			told.Message = ""
			assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed Drift", HTTPStatus: 200, Code: 200}, told)
			require.ErrorContains(t, err, tc.path+": "+kind)
			assert.Equal(t, tc.want, got, "it is returned together with the error")
		})
	}
}

// The kinds are those that the source has, and no other.
func TestNoKindOfDriftIsForgotten(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	inner, err := filepath.Glob("internal/wire/*.go")
	require.NoError(t, err)
	named := regexp.MustCompile(`[dD]rift(?:At)?\((?:[A-Za-z.]+, )?"([^"]+)"\)`)
	kinds := map[string]bool{}
	for _, file := range append(files, inner...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range named.FindAllSubmatch(text, -1) {
			kinds[string(m[1])] = true
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(kinds)), slices.Collect(maps.Keys(driftKinds(t))))
}

func TestDriftIsToldOnceAPlace(t *testing.T) {
	t.Parallel()
	heard, drifts := driftsOf()
	reply := success(`[{"code":"1","name":"Lisboa","country":"PT","countryStandardCode":"PRT","zip":"1","zap":"2"},` +
		`{"code":2,"name":"Porto","country":"PT","countryStandardCode":"PRT","zip":"1"},` +
		`{"code":3,"name":"Faro","country":"PT","countryStandardCode":"PRT","zip":"1"}]`)
	states := exchange{want: "GET /shop/api/v1/remittance/states", reply: reply}
	c := converse(t, []exchange{states, states}, heard)
	for range 2 {
		*drifts = nil
		states, err := c.ListRemittanceStates(t.Context())
		require.NoError(t, err)
		assert.Len(t, states, 3)
		assert.Equal(t, []Drift{{"data[].*", "unknown field"}, {"data[].code", "number for string"}}, *drifts)
	}
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
	assert.ErrorContains(t, err, "msg: missing field")
	assert.Equal(t, "A-1", transfer.APIOrderNo)

	bins, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err, "without drift")
	assert.Equal(t, []string{"493193"}, bins)
}
