package cardwire_test

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
		}), cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 2, MinDelay: 0, MaxDelay: 0}),
			cardwire.WithObserver(notingObserver("a", &events)), cardwire.WithObserver(cardwire.Observer{}), cardwire.WithObserver(notingObserver("b", &events)))
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
			"a end ab {HTTPStatus:200 Code:200 Outcome:executed Duration:2s Attempts:2 Err:<nil>} false of ListBINsUnderMaintenance",
			"b end ab {HTTPStatus:200 Code:200 Outcome:executed Duration:2s Attempts:2 Err:<nil>} false of ListBINsUnderMaintenance",
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

// What observers get of each operation, in full. Only writes under a
// reference are recorded.
func TestObserversAreToldOfEachOperation(t *testing.T) {
	t.Parallel()
	const page = `{"total":0,"per_page":1,"current_page":1,"last_page":1,"data":[]}`
	card := wiretest.ShortCard("c1", "")
	wanted := map[string]struct {
		data string
		info cardwire.CallInfo
	}{
		"ListBINs":                 {`[]`, cardwire.CallInfo{"ListBINs", "GET", "/bins", "", false}},
		"ListBINsUnderMaintenance": {`[]`, cardwire.CallInfo{"ListBINsUnderMaintenance", "GET", "/bins/maintenance", "", false}},
		"ListCards":                {page, cardwire.CallInfo{"ListCards", "GET", "/cards", "", false}},
		"AllPages":                 {page, cardwire.CallInfo{"ListCards", "GET", "/cards", "", false}},
		"AllCards":                 {page, cardwire.CallInfo{"ListCards", "GET", "/cards", "", false}},
		"GetCard":                  {card, cardwire.CallInfo{"GetCard", "GET", "/cards/info", "", false}},
		"GetCardByOrder":           {card, cardwire.CallInfo{"GetCardByOrder", "GET", "/cards/info", "", false}},
		"GetCardSecrets":           {wiretest.CardSecrets, cardwire.CallInfo{"GetCardSecrets", "POST", "/cards/private", "", false}},
		"FreezeCard":               {`"` + wiretest.UUID + `"`, cardwire.CallInfo{"FreezeCard", "POST", "/cards/suspend", wiretest.FreezeID, true}},
		"CancelOperation":          {`true`, cardwire.CallInfo{"CancelOperation", "POST", "/cards/adjustAction", wiretest.UUID, true}},
		"RetryOperation":           {`true`, cardwire.CallInfo{"RetryOperation", "POST", "/cards/adjustAction", wiretest.UUID, true}},
		"CardCapacity":             {`1`, cardwire.CallInfo{"CardCapacity", "GET", "/account/capacity", "", false}},
		"ListRemittanceStates":     {`[]`, cardwire.CallInfo{"ListRemittanceStates", "GET", "/remittance/states", "", false}},
		"ListRemittanceCurrencies": {`[]`, cardwire.CallInfo{"ListRemittanceCurrencies", "GET", "/remittance/currency", "", false}},
		"CreateTransfer":           {wiretest.TransferData, cardwire.CallInfo{"CreateTransfer", "POST", "/remittance/transfer", "M-1", true}},
		"UploadImage":              {`{"attachment_key":"k-1"}`, cardwire.CallInfo{"UploadImage", "POST", "/cards/upload", "", true}},
		"Call":                     {`null`, cardwire.CallInfo{"Ping", "GET", "/ping", "", false}},
	}
	for op, call := range wiretest.AllMethods() {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			want := wanted[op]
			var told []cardwire.CallInfo
			journal := new(wiretest.Journal)
			observer := cardwire.Observer{CallStart: func(ctx context.Context, i cardwire.CallInfo) context.Context {
				told = append(told, i)
				return ctx
			}}
			c := wiretest.Respond(t, wiretest.Anything, wiretest.Success(want.data), cardwire.WithObserver(observer), cardwire.WithJournal(journal))
			require.NoError(t, call(t.Context(), c))
			assert.Equal(t, []cardwire.CallInfo{want.info}, told)
			assert.Equal(t, want.info.Write && want.info.Reference != "", len(journal.Begun) == 1)
		})
	}
}

func TestObserversAreToldHowAWriteEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked wiretest.Exchange
		want  cardwire.CallResult
	}{
		"success":     {wiretest.TransferDone, cardwire.CallResult{HTTPStatus: 200, Code: 200, Attempts: 1, Outcome: cardwire.OutcomeExecuted}},
		"refused":     {wiretest.TransferRefused, cardwire.CallResult{HTTPStatus: 422, Code: 422, Attempts: 1, Outcome: cardwire.OutcomeRefused}},
		"no response": {wiretest.TransferBroken, cardwire.CallResult{Attempts: 1}},
		"executed":    {wiretest.TransferUnreadable, cardwire.CallResult{HTTPStatus: 200, Code: 200, Attempts: 1, Outcome: cardwire.OutcomeExecuted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var infos []cardwire.CallInfo
				var results []cardwire.CallResult
				c := wiretest.Converse(t, []wiretest.Exchange{tc.asked}, cardwire.WithObserver(cardwire.Observer{
					CallStart: func(context.Context, cardwire.CallInfo) context.Context { return nil }, // is no context: the caller's stays
					CallEnd: func(_ context.Context, i cardwire.CallInfo, r cardwire.CallResult) {
						infos, results = append(infos, i), append(results, r)
					},
				}))
				_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
				assert.Equal(t, []cardwire.CallInfo{{
					Op: "CreateTransfer", Method: "POST", Path: "/remittance/transfer", Reference: "M-1", Write: true,
				}}, infos)
				tc.want.Err = err
				assert.Equal(t, []cardwire.CallResult{tc.want}, results)
			})
		})
	}
}

// A page that contradicts its parameters is read twice, and both are counted.
func TestObserversAreToldOfThePageThatWasReadTwice(t *testing.T) {
	t.Parallel()
	var results []cardwire.CallResult
	first := wiretest.Exchange{Want: wiretest.PageRequest(2), Response: wiretest.Success(`{"total":9,"per_page":1,"current_page":1,"last_page":9,"data":[]}`)}
	c := wiretest.Converse(t, []wiretest.Exchange{first, first}, cardwire.WithObserver(cardwire.Observer{
		CallEnd: func(_ context.Context, _ cardwire.CallInfo, r cardwire.CallResult) { results = append(results, r) },
	}))
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{Page: 2})
	assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed ParameterIgnored", HTTPStatus: 200, Code: 200, Message: "success"}, wiretest.FactsOf(t, err))
	assert.Equal(t, 1, page.CurrentPage)
	require.Len(t, results, 1)
	assert.Equal(t, 2, results[0].Attempts)
	assert.Equal(t, cardwire.OutcomeExecuted, results[0].Outcome)
	assert.Same(t, err, results[0].Err)
}

// The log is all that is written of a call: no address, key or number, and
// a reference only of a write that failed.
func TestLogger(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked []wiretest.Exchange
		call  func(context.Context, *cardwire.Client) error
		want  string
	}{
		"a success": {
			[]wiretest.Exchange{{Want: "GET /shop/api/v1/bins", Response: wiretest.Success(`[]`)}},
			func(ctx context.Context, c *cardwire.Client) error { return wiretest.OnlyError(c.ListBINs(ctx)) },
			"level=DEBUG msg=\"cardwire: attempt\" operation=ListBINs status=200 duration=1s code=200\n",
		},
		"a refusal": {
			[]wiretest.Exchange{{Want: wiretest.SmallTransferRequest("M-1"), Status: 422, Response: `{"code":1422,"msg":"4111111111111111","data":null}`}},
			func(ctx context.Context, c *cardwire.Client) error {
				return wiretest.OnlyError(c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1")))
			},
			"level=DEBUG msg=\"cardwire: attempt\" operation=CreateTransfer status=422 duration=1s code=1422 outcome=refused\n" +
				"level=WARN msg=\"cardwire: a write failed\" operation=CreateTransfer reference=M-1 outcome=refused step=fail status=422 code=1422 requestID=\"\"\n",
		},
		"an unknown outcome": {
			[]wiretest.Exchange{{Want: wiretest.SmallTransferRequest("M-1"), Err: wiretest.ErrBroken}},
			func(ctx context.Context, c *cardwire.Client) error {
				return wiretest.OnlyError(c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1")))
			},
			"level=DEBUG msg=\"cardwire: attempt\" operation=CreateTransfer status=0 duration=1s outcome=unknown\n" +
				"level=ERROR msg=\"cardwire: a write failed\" operation=CreateTransfer reference=M-1 outcome=unknown step=reconcile status=0 code=0 requestID=\"\" cause=\"connection failed\"\n",
		},
		"a retry": {
			[]wiretest.Exchange{
				{Want: "GET /shop/api/v1/cards/info?id=o1", Status: 429, Header: "Retry-After: 7", Response: `{"code":429,"msg":"no","data":null}`},
				{Want: "GET /shop/api/v1/cards/info?id=o1", Err: wiretest.ErrBroken},
			},
			func(ctx context.Context, c *cardwire.Client) error {
				return wiretest.OnlyError(c.GetCardByOrder(ctx, "o1"))
			},
			"level=DEBUG msg=\"cardwire: attempt\" operation=GetCardByOrder status=429 duration=1s\n" +
				"level=WARN msg=\"cardwire: the attempt failed and is retried\" operation=GetCardByOrder status=429 duration=1s\n" +
				"level=DEBUG msg=\"cardwire: attempt\" operation=GetCardByOrder status=0 duration=1s outcome=unknown\n",
		},
		"a page that is read once more": {
			[]wiretest.Exchange{
				{Want: wiretest.PageRequest(2), Response: wiretest.Success(`{"total":9,"per_page":1,"current_page":1,"last_page":9,"data":[]}`)},
				{Want: wiretest.PageRequest(2), Status: 503},
				{Want: wiretest.PageRequest(2), Response: wiretest.Success(`{"total":9,"per_page":1,"current_page":2,"last_page":9,"data":[]}`)},
			},
			func(ctx context.Context, c *cardwire.Client) error {
				return wiretest.OnlyError(c.ListCards(ctx, cardwire.ListCardsParams{Page: 2}))
			},
			"level=DEBUG msg=\"cardwire: attempt\" operation=ListCards status=200 duration=1s code=200 outcome=executed\n" +
				"level=DEBUG msg=\"cardwire: attempt\" operation=ListCards status=503 duration=1s\n" +
				"level=WARN msg=\"cardwire: the attempt failed and is retried\" operation=ListCards status=503 duration=1s\n" +
				"level=DEBUG msg=\"cardwire: attempt\" operation=ListCards status=200 duration=1s code=200\n",
		},
		"what was not sent": {
			nil,
			func(ctx context.Context, c *cardwire.Client) error { return wiretest.OnlyError(c.GetCard(ctx, "")) },
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
				s := wiretest.Script(t, tc.asked...)
				c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
					time.Sleep(time.Second)
					return s.RoundTrip(r)
				}), cardwire.WithLogger(logger), cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 1, MinDelay: 1, MaxDelay: 1, MaxRetryAfter: time.Minute}))
				_ = tc.call(t.Context(), c)
				assert.Equal(t, tc.want, log.String())
			})
		})
	}
}

// The outcome that is logged is that of the error.
// A retry that the limiter refuses is not logged.
func TestLoggerHearsOfNoRetryThatTheLimiterStops(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	waits := 0
	c := wiretest.Converse(t, []wiretest.Exchange{{Want: "GET /shop/api/v1/bins", Status: 503}}, cardwire.WithRetry(wiretest.QuickRetry),
		cardwire.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error {
			if waits++; waits == 2 {
				return wiretest.ErrBroken
			}
			return nil
		})))
	_, err := c.ListBINs(t.Context())
	require.ErrorIs(t, err, wiretest.ErrBroken)
	assert.Equal(t, 1, strings.Count(log.String(), `msg="cardwire: attempt"`), log.String())
}

func TestLoggerOfWarningsOnly(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := wiretest.Converse(t, []wiretest.Exchange{{Want: "GET /shop/api/v1/bins", Status: 503}, {Want: "GET /shop/api/v1/bins", Response: wiretest.Success(`[]`)}},
		cardwire.WithRetry(wiretest.QuickRetry), cardwire.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	_, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(log.String(), "\n"))
	assert.Contains(t, log.String(), `level=WARN msg="cardwire: the attempt failed and is retried" operation=ListBINs status=503`)
}

// driftKinds has every kind of drift there is, in the response of an operation.
func driftKinds(t *testing.T) map[string]driftCase {
	t.Helper()
	bin := func(old, replacement string) string {
		return wiretest.Success(`[` + wiretest.Edited(t, wiretest.BIN, old, replacement) + `]`)
	}
	card := func(old, replacement string) string {
		return wiretest.Success(wiretest.Edited(t, wiretest.SingleCard, old, replacement))
	}
	const addressText = `{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`
	return map[string]driftCase{
		"unknown field":                        {bin(`"maintain":true`, `"maintain":true,"Maintain":false`), "data[].*", binOf(maintained), true},
		"missing field":                        {bin(`"maintain":true,`, ``), "data[].maintain", binOf(maintained), false},
		"string for number":                    {bin(`1000.5`, `"1000.50"`), "data[].day_purchase_limit", binOf(func(b *cardwire.BIN) any { return b.DayPurchaseLimit }), wiretest.Dec("1000.50")},
		"number for string":                    {bin(`"bin":"493193"`, `"bin":493193`), "data[].bin", binOf(func(b *cardwire.BIN) any { return b.BIN }), "493193"},
		"null for string":                      {bin(`"Travel"`, `null`), "data[].name", binOf(func(b *cardwire.BIN) any { return b.Name }), ""},
		"null for number":                      {bin(`"weigh":8`, `"weigh":null`), "data[].weigh", binOf(func(b *cardwire.BIN) any { return b.Weight }), int64(0)},
		"null for boolean":                     {bin(`"maintain":true`, `"maintain":null`), "data[].maintain", binOf(maintained), false},
		"null for array":                       {bin(`["ads","travel"]`, `null`), "data[].scenes", binOf(func(b *cardwire.BIN) any { return b.Scenes }), []string(nil)},
		"number for boolean":                   {bin(`"maintain":true`, `"maintain":1`), "data[].maintain", binOf(maintained), true},
		"string for boolean":                   {bin(`"maintain":true`, `"maintain":"1"`), "data[].maintain", binOf(maintained), true},
		"boolean for number":                   {bin(`"3ds":1`, `"3ds":true`), "data[].3ds", binOf(func(b *cardwire.BIN) any { return b.ThreeDS }), true},
		"flag other than 0 and 1":              {bin(`"avs":1`, `"avs":2`), "data[].avs", binOf(func(b *cardwire.BIN) any { return b.AVS }), true},
		"empty array for object":               {bin(wiretest.ForeignFees, `[]`), "data[].foreign_fee_config", binOf(func(b *cardwire.BIN) any { return b.ForeignFees }), []cardwire.FeeTier(nil)},
		"unreadable range":                     {bin(`"10-99.99"`, `"rest"`), "data[].foreign_fee_config.*", binOf(func(b *cardwire.BIN) any { return b.ForeignFees[0].Range }), "rest"},
		"empty object for array":               {card(addressText, `{}`), "data.holder_address", holderAddress, (*cardwire.Address)(nil)},
		"null for object":                      {card(addressText, `null`), "data.holder_address", holderAddress, (*cardwire.Address)(nil)},
		"empty string":                         {card(`"2026-01-02 03:04:05"`, `""`), "data.create_time", createTime, cardwire.DateTime{}},
		"zero date":                            {card(`"2026-01-02 03:04:05"`, `"0000-00-00 00:00:00"`), "data.create_time", createTime, cardwire.DateTime{}},
		"identifier that is not a UUID":        {wiretest.Success(`"op-1"`), "data", frozenBy, "op-1"},
		"identifier with invisible characters": {wiretest.Success(`"` + wiretest.OperationID + `\u0000"`), "data", frozenBy, wiretest.OperationID},
		"unknown success message":              {`{"code":200,"msg":"done","data":"` + wiretest.OperationID + `"}`, "msg", frozenBy, wiretest.OperationID},
	}
}

// driftCase is a response, the place of the drift in it, the call that reads it
// and what it reads in that place all the same.
type driftCase struct {
	response, path string
	read           func(context.Context, *cardwire.Client) (any, error)
	want           any
}

func maintained(b *cardwire.BIN) any { return b.Maintain }

func binOf(value func(*cardwire.BIN) any) func(context.Context, *cardwire.Client) (any, error) {
	return func(ctx context.Context, c *cardwire.Client) (any, error) {
		bins, err := c.ListBINs(ctx)
		if len(bins) != 1 {
			return nil, errors.Join(err, errors.New("not one BIN"))
		}
		return value(&bins[0]), err
	}
}

func holderAddress(ctx context.Context, c *cardwire.Client) (any, error) {
	card, err := c.GetCard(ctx, "card-1")
	return card.HolderAddress, err
}

func createTime(ctx context.Context, c *cardwire.Client) (any, error) {
	card, err := c.GetCard(ctx, "card-1")
	return card.CreateTime, err
}

func frozenBy(ctx context.Context, c *cardwire.Client) (any, error) {
	operation, err := c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "card-1"})
	return operation.ID, err
}

// Each kind is reported to observers, logged, and an error under WithStrictDrift;
// what was sent is read in any case.
func TestEveryKindOfDrift(t *testing.T) {
	t.Parallel()
	for kind, tc := range driftKinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, tc.response)
			}))
			t.Cleanup(server.Close)
			client := func(opts ...cardwire.Option) *cardwire.Client {
				c, err := cardwire.New(server.URL, wiretest.Key, opts...)
				require.NoError(t, err)
				t.Cleanup(c.CloseIdleConnections)
				return c
			}

			got, err := tc.read(t.Context(), client())
			require.NoError(t, err, "with nobody to tell")
			assert.Equal(t, tc.want, got)

			heard, drifts := wiretest.Drifts()
			var log bytes.Buffer
			got, err = tc.read(t.Context(), client(heard, cardwire.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, []cardwire.Drift{{tc.path, kind}}, *drifts)
			assert.Regexp(t, `^time=\S+ level=WARN msg="cardwire: the response deviates from the API" operation=(ListBINs|GetCard|FreezeCard) `+
				regexp.QuoteMeta(`path=`+tc.path+` kind=`+strconv.Quote(kind))+`\n$`, log.String())

			got, err = tc.read(t.Context(), client(cardwire.WithStrictDrift()))
			told := wiretest.FactsOf(t, err)
			assert.Contains(t, []string{"success", "done"}, told.Message)
			told.Message = ""
			assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed Drift", HTTPStatus: 200, Code: 200}, told)
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
	heard, drifts := wiretest.Drifts()
	response := wiretest.Success(`[{"code":"1","name":"Lisboa","country":"PT","countryStandardCode":"PRT","zip":"1","zap":"2"},` +
		`{"code":2,"name":"Porto","country":"PT","countryStandardCode":"PRT","zip":"1"},` +
		`{"code":3,"name":"Faro","country":"PT","countryStandardCode":"PRT","zip":"1"}]`)
	states := wiretest.Exchange{Want: "GET /shop/api/v1/remittance/states", Response: response}
	c := wiretest.Converse(t, []wiretest.Exchange{states, states}, heard)
	for range 2 {
		*drifts = nil
		states, err := c.ListRemittanceStates(t.Context())
		require.NoError(t, err)
		assert.Len(t, states, 3)
		assert.Equal(t, []cardwire.Drift{{"data[].*", "unknown field"}, {"data[].code", "number for string"}}, *drifts)
	}
}

// The envelope's drift counts as that of data does.
func TestWithStrictDrift(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: wiretest.Anything, Response: `{"code":200,"data":` + wiretest.TransferData + `}`},
		{Want: wiretest.Anything, Response: wiretest.Success(`["493193"]`)},
	}, cardwire.WithStrictDrift())
	transfer, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed Drift", HTTPStatus: 200, Code: 200}, wiretest.FactsOf(t, err))
	assert.ErrorContains(t, err, "msg: missing field")
	assert.Equal(t, "A-1", transfer.APIOrderNo)

	bins, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err, "without drift")
	assert.Equal(t, []string{"493193"}, bins)
}
