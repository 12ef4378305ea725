package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// A test that needs a process of its own starts this program again.
func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv("PAYOUTS_TEST_ARGS"); ok {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// shop is a service of the program with its database and the fake service.
type shop struct {
	*service
	t    tester
	log  *buffer
	fake *cardwiretest.Service
}

// tester is a test, or a step of one that rapid runs.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
	Cleanup(func())
}

// buffer is a bytes.Buffer that may be read while the program still writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// eachDatabase runs a test on both databases, while other tests run.
func eachDatabase(t *testing.T, test func(t *testing.T, source string)) {
	t.Helper()
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "payouts.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgresURL(t)) })
}

// shopInFile is a shop on SQLite.
func shopInFile(t *testing.T) *shop {
	t.Helper()
	return openShop(t, settingsOf(filepath.Join(t.TempDir(), "payouts.db")))
}

// eachShop is eachDatabase with a shop.
func eachShop(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Helper()
	eachDatabase(t, func(t *testing.T, source string) { test(t, openShop(t, settingsOf(source))) })
}

func paramsFor(number string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
		ReceiverBankAccountNumber: "DE00CANARY",
	}
}

func (s *shop) order(number string) order {
	s.t.Helper()
	o, err := s.create(s.t.Context(), paramsFor(number))
	require.NoError(s.t, err)
	return o
}

func (s *shop) orders(numbers ...string) {
	s.t.Helper()
	for _, number := range numbers {
		s.order(number)
	}
}

func (s *shop) found(number string) order {
	s.t.Helper()
	o, err := s.find(s.t.Context(), number)
	require.NoError(s.t, err)
	return o
}

func (s *shop) state(number string) string {
	s.t.Helper()
	return s.found(number).State
}

func (s *shop) awaitState(number, state string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.state(number) == state }, waitFor, tick, "%s: %s", number, state)
}

// jobs returns the state of each job of orders.
func (s *shop) jobs() []string {
	s.t.Helper()
	states := []string{}
	const query = `SELECT state FROM river_job WHERE kind = 'payout' ORDER BY id`
	require.NoError(s.t, sqlscan.Select(s.t.Context(), s.db, &states, query))
	return states
}

func (s *shop) awaitJobs(states ...string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return slices.Equal(states, s.jobs()) }, waitFor, tick, states)
}

func (s *shop) exec(statement string, args ...any) {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), statement, args...)
	require.NoError(s.t, err)
}

// call sends a request to the API.
func (s *shop) call(method, path, body string) *http.Response {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	w := httptest.NewRecorder()
	s.routes("").ServeHTTP(w, r)
	return w.Result()
}

// get returns what the API, or a page, says.
func (s *shop) get(path string) string {
	s.t.Helper()
	return textOf(s.t, s.call("GET", path, ""))
}

// post sends a form of the page.
func (s *shop) post(path, form string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), "POST", "http://127.0.0.1"+path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	s.routes("").ServeHTTP(w, r)
	return w
}

func textOf(t tester, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

const a1 = `{"order":"A-1","transfer":{
"payoutCurrency":"EUR","transferAmount":"12.50","receiverBankAccountNumber":"DE00CANARY"}}`

var lostResponse = cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}

func rateLimited(retryAfter string) cardwiretest.Fault {
	return cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: retryAfter}
}

// fails makes the next transfer fail.
func (s *shop) fails(f cardwiretest.Fault) { s.fake.Fail(operation, f, 1) }

// Two requests at once are one order with one job, whose arguments are its number.
func TestADoubleClickIsOneJob(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				o, err := s.create(t.Context(), paramsFor("A-1"))
				assert.NoError(t, err)
				assert.Equal(t, "A-1", o.Order)
			})
		}
		group.Wait()
		assert.Equal(t, 1, strings.Count(s.log.String(), "msg=payout order=A-1"), "one is created")
		assert.Equal(t, []string{"available"}, s.jobs())
		var order string
		job := s.db.QueryRowContext(t.Context(), `SELECT args ->> 'order' FROM river_job WHERE kind = 'payout'`)
		require.NoError(t, job.Scan(&order))
		assert.Equal(t, "A-1", order)
	})
}

// The job's context is done where the program is told to stop: the call goes on.
func TestACallOutlivesItsJobsContext(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, (&submitter{service: s.service}).Work(ctx, jobOf("A-1")))
		assert.Equal(t, submitted, s.state("A-1"))
	})
}

// cancelAs cancels the order, as Ada.
func (s *shop) cancelAs(number string) *http.Response {
	s.t.Helper()
	return s.call("POST", "/payouts/"+number+"/cancel", `{"by":"Ada","why":"the customer asked"}`)
}

// A request's context is done where its client hangs up.
func TestAClientThatHangsUpInterruptsNothing(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", false)
		s.order("A-2")
		e, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		for path, body := range map[string]string{
			"/payouts/A-1/resolve": `{"call":"` + e.Call + `","outcome":"executed","by":"Ada","why":"ticket 7"}`,
			"/payouts/A-2/cancel":  `{"by":"Ada","why":"the customer asked"}`,
		} {
			ctx, hangUp := context.WithCancel(t.Context())
			hangUp()
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // the API reads JSON in any case
			s.routes("").ServeHTTP(w, r)
			assert.Equal(t, 200, w.Code, path)
		}
		assert.Equal(t, []string{submitted, canceled}, s.statesOf("A-1", "A-2"))
	})
}

func TestTracesGoFromTheRequestToTheCall(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		exported := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported))
		set := settingsOf(source)
		set.tracers = provider
		s := openShop(t, set)
		s.run()
		assert.Equal(t, 202, s.call("POST", "/payouts", a1).StatusCode)
		spans := map[string]tracetest.SpanStub{}
		require.Eventually(t, func() bool {
			for _, span := range exported.GetSpans() {
				spans[span.Name] = span
			}
			_, ok := spans["payout"]
			return ok
		}, waitFor, tick)
		parents := map[string]trace.SpanID{}
		for name, span := range spans {
			assert.Equal(t, spans["POST /payouts"].SpanContext.TraceID(), span.SpanContext.TraceID(), name)
			parents[name] = span.Parent.SpanID()
		}
		assert.Equal(t, spans["POST /payouts"].SpanContext.SpanID(), parents["payout"])
		assert.Equal(t, spans["payout"].SpanContext.SpanID(), parents["cardwire.CreateTransfer"])
	})
}

func TestHealthAndReadiness(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		assert.Equal(t, 200, s.call("GET", "/healthz", "").StatusCode)
		assert.Equal(t, 200, s.call("GET", "/readyz", "").StatusCode)
		s.exec(`UPDATE cardwire_intents_journal SET identity = 'another'`)
		r := s.call("GET", "/readyz", "")
		assert.Equal(t, 503, r.StatusCode)
		assert.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
		assert.Equal(t, 200, s.call("GET", "/healthz", "").StatusCode, "it is up")
	})
}

func TestEveryErrorIsAProblem(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	const good = `"payoutCurrency":"EUR","transferAmount":"12.50"`
	post := func(body string) []string { return []string{"POST", "/payouts", body} }
	transfer := func(fields string) []string { return post(`{"order":"A-1","transfer":{` + fields + `}}`) }
	for name, tc := range map[string]struct {
		request []string
		status  int
		detail  string
	}{
		"no order":       {post(`{"transfer":{` + good + `}}`), 422, "expected"},
		"a dot":          {post(`{"order":".","transfer":{` + good + `}}`), 422, "no URL"},
		"two dots":       {post(`{"order":"..","transfer":{` + good + `}}`), 422, "no URL"},
		"no amount":      {transfer(``), 422, "TransferAmount"},
		"a long amount":  {transfer(`"payoutCurrency":"EUR","transferAmount":"1000000000000.00"`), 422, "must be below"},
		"three decimals": {transfer(`"transferAmount":"1.005"`), 422, `two decimals and is above zero, as in "12.50"`},
		"a bare amount":  {transfer(`"transferAmount":12.50`), 422, "each field is a string"},
		"unknown fields": {transfer(good + `,"color":"red","age":"7"`), 422, `has unknown fields: ["age" "color"]`},
		"unknown name":   {post(`{"number":"A-1"}`), 400, `the field "number" is unknown`},
		"too large":      {post(`{"order":"` + strings.Repeat("x", maxBody) + `"}`), 400, "one JSON object"},
		"no such order":  {[]string{"GET", "/payouts/A-9", ""}, 404, "no such order"},
		"no such state":  {[]string{"GET", "/payouts?state=lost", ""}, 422, "must be one of queued, held, sending"},
		"no such page":   {[]string{"GET", "/nothing", ""}, 404, "no such page"},
		"another method": {[]string{"DELETE", "/payouts/A-1", ""}, 404, "no such page or operation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := s.call(tc.request[0], tc.request[1], tc.request[2])
			assert.Equal(t, tc.status, r.StatusCode)
			assert.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
			var p problem
			text := textOf(t, r)
			require.NoError(t, json.Unmarshal([]byte(text), &p))
			assert.Equal(t, problem{"about:blank", http.StatusText(tc.status), tc.status, p.Detail}, p)
			assert.Contains(t, p.Detail, tc.detail)
			assert.NotContains(t, p.Detail, "response")
		})
	}
}

// A browser gets an error as a page. A program may accept anything, and its errors are problems.
func TestABrowserGetsAPage(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for path, says := range map[string]string{
		"/orders/A-9": "there is no such order", "/payouts/A-9": "there is no such order",
		"/payouts?state=lost": "state must be one of", "/nowhere": "there is no such page",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1"+path, nil)
		r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		w := httptest.NewRecorder()
		s.routes("").ServeHTTP(w, r)
		assert.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"), path)
		assert.Contains(t, w.Body.String(), "<p>"+says, path)
		assert.Equal(t, "application/problem+json", s.call("GET", path, "").Header.Get("Content-Type"), path)
	}
}

// What a form leaves out may be what makes it safe: a number of the service, which says that
// the order was executed.
func TestAFormThatIsReadInPartIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.order("A-2")
		o := s.found("A-1")
		for _, id := range []string{"TX;1", "TX%zz1", strings.Repeat("x", maxBody)} {
			w := s.post("/resolve", "order="+o.Call+"+A-1&outcome=send_again&by=Ada&why=a+call&service_id="+id)
			assert.Equal(t, 400, w.Code)
			assert.Contains(t, w.Body.String(), "a form whose fields are known and come once")
		}
		for path, form := range map[string]string{
			"/resolve":            "&outcome=send_again&service_id=&service_id=TX1",
			"/resolve?":           "&outcome=send_again&outcome=executed",
			"/resolve?a":          "&outcome=send_again&serviceid=TX1",
			"/payouts/A-2/cancel": "", // it has no order
			"/resume":             "&fault=0",
		} {
			w := s.post(path, "order="+o.Call+"+A-1&by=Ada&why=a+call"+form)
			assert.Equal(t, 400, w.Code, path)
			assert.Contains(t, w.Body.String(), "a form whose fields are known and come once")
		}
		parts := "--b\r\nContent-Disposition: form-data; name=\"outcome\"\r\n\r\nnot_executed\r\n--b--\r\n"
		multipart := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/resolve",
			strings.NewReader(parts))
		multipart.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		w := httptest.NewRecorder()
		s.routes("").ServeHTTP(w, multipart)
		assert.Equal(t, 400, w.Code)
		assert.Contains(t, w.Body.String(), "a form whose fields are known and come once")
		assert.Equal(t, []string{unresolved, queued}, s.statesOf("A-1", "A-2"))
		assert.Len(t, s.fake.Ledger(), 1)
	})
}

func TestTheTemplatesAreNotServed(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	assert.Equal(t, 200, s.call("GET", "/static/style.css", "").StatusCode)
	assert.Equal(t, 404, s.call("GET", "/static/..%2ftemplates/order.html", "").StatusCode)
}

// A body of which two programs could read different payouts is refused.
func TestABodyThatCanBeMisreadIsRefused(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	const fields = `"payoutCurrency":"EUR","transferAmount":"12.50"`
	for name, tc := range map[string]struct {
		body   string
		status int
	}{
		"not UTF-8":            {"{\"order\":\"A-\xff\",\"transfer\":{" + fields + "}}", 400},
		"half a character":     {`{"order":"A-1","transfer":{` + fields + `,"senderAddress":"\ud800"}}`, 422},
		"half of the number":   {`{"order":"A-\ud800","transfer":{` + fields + `}}`, 422},
		"order twice":          {`{"order":"A-1","order":"A-2","transfer":{` + fields + `}}`, 400},
		"transfer twice":       {`{"order":"A-1","transfer":{},"transfer":{` + fields + `}}`, 400},
		"Order":                {`{"Order":"A-1","transfer":{` + fields + `}}`, 400},
		"an amount twice":      {`{"order":"A-1","transfer":{` + fields + `,"transferAmount":"99.00"}}`, 422},
		"another letter case":  {`{"order":"A-1","transfer":{` + fields + `,"PayoutCurrency":"USD"}}`, 422},
		"order is a number":    {`{"order":1,"transfer":{` + fields + `}}`, 422},
		"two numbers":          {`{"order":"A-1","transfer":{` + fields + `,"merchantOrderNo":"A-2"}}`, 422},
		"no transfer":          {`{"order":"A-1"}`, 422},
		"null":                 {`{"order":"A-1","transfer":null}`, 422},
		"order null":           {`{"order":null,"transfer":{` + fields + `}}`, 422},
		"an array":             {`[{"order":"A-1","transfer":{` + fields + `}}]`, 400},
		"more that follows":    {`{"order":"A-1","transfer":{` + fields + `}}{}`, 400},
		"nothing":              {``, 422},
		"a form":               {"order=A-1&transfer=%7B%7D", 400},
		"a space that is none": {"\u00a0{\"order\":\"A-1\",\"transfer\":{" + fields + "}}", 400},
	} {
		r := s.call("POST", "/payouts", tc.body)
		assert.Equal(t, tc.status, r.StatusCode, name)
		assert.Equal(t, "application/problem+json", r.Header.Get("Content-Type"), name)
		text := textOf(t, r)
		assert.NotContains(t, text, "response", name)
		assert.NotContains(t, text, `: "}`, name)
	}
	list, err := s.list(t.Context(), filter{}, "", pageSize)
	require.NoError(t, err)
	assert.Empty(t, list.Orders)
	assert.Equal(t, 202, s.call("POST", "/payouts", ` { "transfer" : {`+fields+`} , "order" : "A-1" } `).StatusCode)
	for path, body := range map[string]string{
		"/payouts/A-1/cancel":   `{"By":"Ada","why":"a slip"}`,
		"/payouts/A-1/cancel?":  `{"by":"Ada","why":"a slip","why":"another"}`,
		"/payouts/A-1/resolve?": `{"outcome":"executed","Outcome":"not_executed","by":"Ada","why":"a slip"}`,
	} {
		assert.Equal(t, 400, s.call("POST", path, body).StatusCode, path)
	}
	assert.Equal(t, queued, s.state("A-1"))
}

// PostgreSQL refuses NUL and what is not UTF-8: it is not asked.
func TestWhatNoDatabaseKeepsIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.order("A-2")
		const who, page = `"by":"Ada","why":"ticket 7"`, "by=Ada&why=ticket+7"
		check := func(want int, method, path, body string) {
			t.Helper()
			r := s.call(method, path, body)
			assert.Equal(t, want, r.StatusCode, "%s %s %s", method, path, body)
			assert.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
		}
		for _, number := range []string{"A%00", "%ff"} {
			check(404, "GET", "/payouts/"+number, "")
			check(404, "POST", "/payouts/"+number+"/resolve", `{"outcome":"executed",`+who+`}`)
			check(404, "POST", "/payouts/"+number+"/cancel", `{`+who+`}`)
			check(404, "GET", "/orders/"+number, "")
			check(422, "GET", "/payouts?after="+number, "")
			check(422, "GET", "/?after="+number, "")
		}
		check(422, "POST", "/payouts", strings.Replace(a1, "A-1", `A-\u0000`, 1))
		check(422, "POST", "/payouts", strings.Replace(strings.Replace(a1, "A-1", "A-3", 1), "EUR", `E\u0000`, 1))
		kept := strings.Replace(strings.Replace(a1, "A-1", "A-4", 1), "CANARY", `\u0000`, 1)
		assert.Equal(t, 202, s.call("POST", "/payouts", kept).StatusCode, "JSON has an escape for it")
		for _, who := range []string{`"by":"A\u0000","why":"ticket 7"`, `"by":"Ada","why":"\u0000"`} {
			check(422, "POST", "/payouts/A-2/cancel", `{`+who+`}`)
			check(422, "POST", "/payouts/A-1/resolve", `{"outcome":"executed",`+who+`}`)
		}
		o := s.found("A-1")
		id := `{"call":"` + o.Call + `","outcome":"executed","service_id":"T\u0000",`
		check(422, "POST", "/payouts/A-1/resolve", id+who+`}`)
		for path, form := range map[string]string{
			"/resolve?%00":        page + "&outcome=executed&order=+A%00",
			"/payouts/A-2/cancel": "by=%ff&why=ticket+7",
			"/resolve":            page + "&outcome=executed&service_id=%00&order=" + o.Call + "+A-1",
		} {
			want := 422
			if strings.Contains(path, "%") {
				want = 404
			}
			assert.Equal(t, want, s.post(path, form).Code, path)
		}
		assert.Equal(t, []string{unresolved, queued}, s.statesOf("A-1", "A-2"))
	})
}

// Who may come in.
func TestWhoMayComeIn(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.lost("A-1", true)
	try := s.found("A-1")
	for name, tc := range map[string]struct {
		password string
		change   func(r *http.Request)
		status   int
	}{
		"this machine":       {"", func(*http.Request) {}, 200},
		"another host":       {"", func(r *http.Request) { r.Host = "evil.example" }, 421},
		"another site":       {"", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"without a password": {"secret", func(*http.Request) {}, 401},
		"a wrong password":   {"secret", func(r *http.Request) { r.SetBasicAuth("Ada", "guess") }, 401},
		"without a name":     {"secret", func(r *http.Request) { r.SetBasicAuth("", "secret") }, 401},
		"with the password": {"secret", func(r *http.Request) {
			r.SetBasicAuth("Ada", "secret")
			r.Host = "payouts.example"
		}, 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/payouts/A-1/resolve",
			strings.NewReader(`{"call":"`+try.Call+`","outcome":"executed","by":"Eve","why":"ticket 7"}`))
		tc.change(r)
		w := httptest.NewRecorder()
		s.routes(tc.password).ServeHTTP(w, r)
		assert.Equal(t, tc.status, w.Code, name)
	}
	events, err := s.history(t.Context(), s.found("A-1"))
	require.NoError(t, err)
	by := map[string]bool{}
	for _, e := range events {
		by[e.By] = true
	}
	assert.True(t, by["Ada"] || by["Eve"], "who resolved it: %v", by)
}

// Wrong passwords are told so one a second after the first three, and are logged.
func TestSignInsThatFailSlowDown(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	synctest.Test(t, func(t *testing.T) {
		sign := s.signIn(http.NotFoundHandler(), "the password")
		from := time.Now()
		try := func(password string) (status int, after time.Duration) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://payouts.example/", nil)
			if password != "" {
				r.SetBasicAuth("CANARY", password)
			}
			w := httptest.NewRecorder()
			sign.ServeHTTP(w, r)
			return w.Code, time.Since(from)
		}
		for _, want := range []time.Duration{0, 0, 0, time.Second, 2 * time.Second} {
			status, after := try("a guess")
			assert.Equal(t, []any{401, want}, []any{status, after})
		}
		status, after := try("the password")
		assert.Equal(t, []any{404, 2 * time.Second}, []any{status, after}, "who knows it does not wait")
		status, after = try("")
		assert.Equal(t, []any{401, 2 * time.Second}, []any{status, after}, "a browser asks first")
		var soon atomic.Int64
		var group sync.WaitGroup
		for range 100 { // at once
			group.Go(func() {
				if status, after := try("a guess"); assert.Equal(t, 401, status) && after < 7*time.Second {
					soon.Add(1)
				}
			})
		}
		group.Wait()
		assert.Equal(t, int64(4), soon.Load())
	})
	logged := strings.Count(s.log.String(), `msg="a sign-in failed"`)
	assert.InDelta(t, 5+15, logged, 1, "the last one's turn is just when its request ends")
	assert.NotContains(t, s.log.String(), "CANARY")
}

func TestTheDatabaseMustHaveItsTables(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.migrate = false
		refused := func(want error) {
			t.Helper()
			_, err := open(t.Context(), set, slog.New(slog.DiscardHandler))
			require.ErrorIs(t, err, want, "an empty database would forget what was sent")
			require.ErrorContains(t, err, "start once with -migrate")
		}
		if !strings.HasPrefix(source, "postgres") {
			refused(fs.ErrNotExist)
			require.NoFileExists(t, source, "nor is an empty one left")
			require.NoError(t, os.WriteFile(source, nil, 0o600))
		}
		refused(sqljournal.ErrSchema)
		s := openShop(t, settingsOf(source))
		require.NoError(t, s.close())
		s = openShop(t, settingsOf(source)) // once more is no harm
		var n int
		require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM payouts`).Scan(&n))
		migrator, err := s.migrator()
		require.NoError(t, err)
		_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionDown, nil) // one version
		require.NoError(t, err)
		_, err = open(t.Context(), set, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "the queue's tables are of an older release: start once with -migrate")
		s.exec(map[sqljournal.Dialect]string{
			sqljournal.SQLite:     `DROP TRIGGER payouts_begun`,
			sqljournal.PostgreSQL: `DROP TRIGGER payouts_follow ON cardwire_intents`,
		}[s.dialect])
		_, err = open(t.Context(), set, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "triggers on cardwire_intents are missing: start once with -migrate")
	})
}

// What tells the digest of an order has the options of the client that sends it.
func TestTheOptionsOfTheClient(t *testing.T) {
	t.Parallel()
	set := settingsOf(filepath.Join(t.TempDir(), "payouts.db"))
	set.base, set.options = "https://cards.example/other", []cardwire.Option{cardwire.WithAnyBasePath()}
	s := openShop(t, set)
	assert.Equal(t, queued, s.order("A-1").State)
}

// serviceMoved is the statement of docs/payouts.md.
const serviceMoved = `UPDATE cardwire_intents_journal SET service = 'https://.../api/v1'`

const (
	waitFor = 2 * time.Minute
	tick    = 5 * time.Millisecond
)
