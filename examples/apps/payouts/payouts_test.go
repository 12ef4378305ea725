package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
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
	t   *testing.T
	log *buffer
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

func eachDatabase(t *testing.T, test func(t *testing.T, source string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "payouts.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgresURL(t)) })
}

func settingsOf(source string) settings {
	return settings{
		fake: cardwiretest.New(), source: source, timeout: 5 * time.Second, repairEvery: time.Hour, workers: 4,
		migrate: true, giveUpAfter: time.Hour, tracers: noop.NewTracerProvider(),
	}
}

// openShop opens a service whose queue does not run.
func openShop(t *testing.T, set settings, opts ...cardwiretest.Option) *shop {
	t.Helper()
	set.fake = cardwiretest.New(opts...)
	s := &shop{t: t, log: &buffer{}}
	var err error
	s.service, err = open(t.Context(), set, slog.New(slog.NewTextHandler(s.log, nil)))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.close()) })
	return s
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

// start lets the queue run until the test ends.
func (s *shop) start() {
	s.t.Helper()
	require.NoError(s.t, s.river.Start(context.Background()))
	s.t.Cleanup(func() { assert.NoError(s.t, s.river.Stop(context.Background())) })
}

// claim has a worker take the order.
func (s *shop) claim(number string) order {
	s.t.Helper()
	o, err := s.apply(s.t.Context(), change{order: number, from: unended, to: sending, by: "worker"})
	require.NoError(s.t, err)
	return o
}

// accepted has a worker take the order, and the service accept it with this response.
func (s *shop) accepted(number string, transfer cardwire.Transfer) {
	s.t.Helper()
	require.NoError(s.t, (&submitter{service: s.service}).follow(s.t.Context(), s.claim(number), &transfer, nil))
}

// schedule has the order's job sleep.
func (s *shop) schedule(o order, pause time.Duration) {
	s.t.Helper()
	until := time.Now().UTC().Add(pause)
	s.exec(`UPDATE river_job SET state = 'scheduled', scheduled_at = $1 WHERE id = $2`, until, o.JobID)
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

// work runs an order's job once, as River would, and returns for how long it snoozes.
func (s *shop) work(number string) time.Duration {
	s.t.Helper()
	err := (&submitter{service: s.service}).Work(s.t.Context(), &river.Job[submit]{
		JobRow: &rivertype.JobRow{Metadata: []byte("{}")}, Args: submit{number},
	})
	if snooze, ok := errors.AsType[*rivertype.JobSnoozeError](err); ok {
		return snooze.Duration
	}
	require.NoError(s.t, err)
	return 0
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
	w := httptest.NewRecorder()
	s.routes("").ServeHTTP(w, r)
	return w
}

func textOf(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

const a1 = `{"order":"A-1","transfer":{
"payoutCurrency":"EUR","transferAmount":"12.50","receiverBankAccountNumber":"DE00CANARY"}}`

func TestAnOrderIsSubmittedOnce(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.start()
		first := s.call("POST", "/payouts", a1)
		assert.Equal(t, 202, first.StatusCode)
		assert.Equal(t, "/payouts/A-1", first.Header.Get("Location"))
		s.awaitState("A-1", submitted)
		again := s.call("POST", "/payouts", a1)
		assert.Equal(t, 202, again.StatusCode, "the same again is the same payout")
		assert.Contains(t, textOf(t, again), `"state":"submitted"`)
		assert.Equal(t, "/payouts/A-1", again.Header.Get("Location"))
		other := s.call("POST", "/payouts", strings.Replace(a1, "12.50", "13.50", 1))
		assert.Equal(t, 409, other.StatusCode)
		assert.Contains(t, textOf(t, other), `"detail":"this order exists with another body"`)

		s.awaitJobs("completed")
		require.Len(t, s.fake.Ledger(), 1)
		o := s.found("A-1")
		want := []string{"12.50", "EUR", s.fake.Ledger()[0].ID, "wait_process"}
		assert.Equal(t, want, []string{o.Amount, o.Currency, o.ServiceID, o.ServiceStatus})
		assert.Contains(t, s.get("/payouts/A-1"), `"state":"submitted"`)
		assert.Contains(t, s.get("/payouts?state=submitted"), `"order":"A-1"`)
		assert.JSONEq(t, `{"payouts":[]}`, s.get("/payouts?state=failed"))

		events, err := s.history(t.Context(), "A-1")
		require.NoError(t, err)
		var what []string
		for _, e := range events {
			what = append(what, e.Where+" "+e.What)
		}
		assert.Equal(t, []string{
			"order queued", "order sending", "journal begun: unknown", "journal ended: executed", "order submitted",
		}, what)
		assert.Equal(t, 3, strings.Count(s.log.String(), "msg=payout order=A-1"), "one line for each change of state")
		assert.NotContains(t, s.log.String(), "CANARY")
	})
}

var lostResponse = cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}

func rateLimited(retryAfter string) cardwiretest.Fault {
	return cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: retryAfter}
}

// fails has the service fail the next transfer.
func (s *shop) fails(f cardwiretest.Fault) { s.fake.Fail(operation, f, 1) }

// Two requests at once are one order with one job, whose arguments are its number.
func TestADoubleClickIsOneJob(t *testing.T) {
	t.Parallel()
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
		var args string
		job := s.db.QueryRowContext(t.Context(), `SELECT args FROM river_job WHERE kind = 'payout'`)
		require.NoError(t, job.Scan(&args))
		assert.JSONEq(t, `{"order":"A-1"}`, args)
	})
}

// Order and job are in one transaction: where one cannot be written, neither is.
func TestAnOrderWithoutAJobIsNoOrder(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.exec(`ALTER TABLE payouts_history RENAME TO gone`)
		assert.Equal(t, 503, s.call("POST", "/payouts", a1).StatusCode)
		assert.Regexp(t, `level=ERROR msg="a request failed" path=/payouts error=.*payouts_history`, s.log.String())
		assert.Empty(t, s.jobs())
		_, err := s.find(t.Context(), "A-1")
		require.ErrorIs(t, err, errNoOrder)
		assert.Zero(t, s.work("A-1"), "nor is a job without an order tried for ever")
	})
}

// What the worker does after each step.
func TestTheWorkerDoesWhatTheStepSays(t *testing.T) {
	t.Parallel()
	fails := func(f cardwiretest.Fault) func(*shop) { return func(s *shop) { s.fails(f) } }
	for name, tc := range map[string]struct {
		before func(*shop)
		state  string
		least  time.Duration // of the snooze
		most   time.Duration
	}{
		"done":   {func(*shop) {}, submitted, 0, 0},
		"fail":   {fails(cardwiretest.Fault{Status: 422}), failed, 0, 0},
		"unsent": {fails(rateLimited("7")), queued, 7 * time.Second, 7 * time.Second},
		"retry":  {fails(cardwiretest.Fault{Status: 403}), queued, time.Second, time.Minute},
		"another body": {func(s *shop) { // another program used the number
			require.NoError(s.t, s.journal.Begin(s.t.Context(), intentOf("A-1")))
		}, unresolved, longPause, longPause},
		"reconcile": {fails(lostResponse), unresolved, longPause, longPause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, func(t *testing.T, s *shop) {
				s.order("A-1")
				tc.before(s)
				snooze := s.work("A-1")
				assert.Equal(t, tc.state, s.state("A-1"))
				assert.GreaterOrEqual(t, snooze, tc.least)
				assert.LessOrEqual(t, snooze, tc.most)
				assert.LessOrEqual(t, s.fake.Executions(operation, "A-1"), 1)
			})
		})
	}
}

// Why an order failed is the service's to say. Its words may quote a name: they stay out of
// the log.
func TestTheServicesMessageIsInTheNote(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.order("A-1")
	s.fails(cardwiretest.Fault{Status: 422, Message: "the account of Grace is closed"})
	assert.Zero(t, s.work("A-1"))
	const words = "the account of Grace is closed"
	assert.Contains(t, s.get("/payouts/A-1"), `refused, HTTP 422, code 422, \"`+words+`\"`)
	assert.Contains(t, s.get("/orders/A-1"), words)
	events, err := s.history(t.Context(), "A-1")
	require.NoError(t, err)
	assert.Contains(t, events[len(events)-1].Why, words)
	assert.Contains(t, s.log.String(), "refused, HTTP 422, code 422: use a new reference")
	assert.NotContains(t, s.log.String(), "Grace")
}

// While the brake holds, the pages say so, and what to do.
func TestTheBrakeIsSeen(t *testing.T) {
	t.Parallel()
	set := settingsOf(filepath.Join(t.TempDir(), "payouts.db"))
	set.brake = 2
	s := openShop(t, set)
	const stopped = "Nothing is sent: too many orders are unresolved: resolve them first (unresolved: 2, -brake 2)."
	s.lost("A-1", true)
	s.order("A-3")
	assert.NotContains(t, s.get("/"), "Nothing is sent")
	s.lost("A-2", true)
	assert.Equal(t, time.Second, s.work("A-3"))
	assert.Equal(t, queued, s.state("A-3"))
	for path, says := range map[string]string{
		"/": stopped, "/?state=queued": stopped,
		"/orders/A-3": errBraked.Error(), "/payouts/A-3": `"note":"` + errBraked.Error() + `"`,
	} {
		text := s.get(path)
		assert.Contains(t, text, says, path)
		assert.NotContains(t, text, "rate limiter", path)
	}
	assert.NotContains(t, s.log.String(), "rate limiter")
	assert.Equal(t, 200, s.resolveAs("A-1", "executed").StatusCode)
	assert.NotContains(t, s.get("/"), "Nothing is sent")
	assert.Zero(t, s.work("A-3"))
	assert.Equal(t, submitted, s.state("A-3"))
}

// While another worker's call is in progress, the order stays with that one.
func TestAWorkerWaitsForAnother(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.fails(cardwiretest.Fault{Kind: cardwiretest.FaultHang, Executed: true})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		group.Go(func() { _, _ = s.client.CreateTransfer(ctx, paramsFor("A-1")) })
		require.Eventually(t, func() bool { return s.fake.Executions(operation, "A-1") == 1 }, waitFor, tick)
		assert.Positive(t, s.work("A-1"))
		assert.Equal(t, sending, s.state("A-1"))
		o := s.found("A-1")
		var snooze *rivertype.JobSnoozeError
		require.ErrorAs(t, (&submitter{service: s.service}).follow(t.Context(), o, nil, &cardwire.Error{
			Op: operation, Err: &cardwire.DuplicateIntent{InProgress: true}, RetryAfter: 9 * longPause,
		}), &snooze)
		assert.Equal(t, mostPause, snooze.Duration, "a clock may be wrong")
	})
}

// The job's context is done where the program is told to stop: the call goes on.
func TestACallOutlivesItsJobsContext(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, (&submitter{service: s.service}).Work(ctx, &river.Job[submit]{
			JobRow: &rivertype.JobRow{Metadata: []byte("{}")}, Args: submit{"A-1"},
		}))
		assert.Equal(t, submitted, s.state("A-1"))
	})
}

// Stop lets what is being sent come to its end.
func TestStoppingEndsNoCall(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, settingsOf(source), cardwiretest.WithLatency(300*time.Millisecond))
		s.order("A-1")
		require.NoError(t, s.river.Start(context.Background()))
		s.awaitState("A-1", sending)
		require.NoError(t, s.river.Stop(context.Background()))
		assert.Equal(t, submitted, s.state("A-1"))
		assert.Equal(t, []string{"completed"}, s.jobs())
	})
}

// A worker that was paused, and whose order another one has taken, changes nothing.
func TestALateWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		late, now := s.claim("A-1"), s.claim("A-1")
		w := &submitter{service: s.service}
		err := w.follow(t.Context(), late, nil, errors.New("no cardwire error"))
		require.ErrorAs(t, err, new(*rivertype.JobSnoozeError))
		assert.Equal(t, sending, s.state("A-1"))
		transfer := &cardwire.Transfer{APIOrderNo: "T-1", Status: "wait_process"}
		require.NoError(t, w.follow(t.Context(), now, transfer, nil))
		assert.Equal(t, submitted, s.state("A-1"))
	})
}

func TestAfterADayAnOrderIsVoidedAndFails(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.giveUpAfter = 0
		s := openShop(t, set)
		s.order("A-1")
		s.fails(rateLimited(""))
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, failed, s.state("A-1"))
		assert.Contains(t, s.log.String(), "level=ERROR msg=payout order=A-1 state=failed")
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err), "nothing sends it later")
		assert.Empty(t, s.fake.Ledger())
	})
}

// However long the service asks to wait, the order is looked at when its day is over.
func TestNoPauseOutlastsTheOrdersDay(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.fake.Fail(operation, cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "99999999999"}, 2)
		snooze := s.work("A-1")
		assert.Equal(t, queued, s.state("A-1"))
		assert.LessOrEqual(t, snooze, s.giveUpAfter+leastPause)
		s.exec(`UPDATE payouts SET queued_at = $1`, time.Now().UTC().Add(-s.giveUpAfter-leastPause)) // it has slept
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, failed, s.state("A-1"))
	})
}

// The day begins anew where a person has an old order sent again.
func TestAnOrderThatIsSentAgainHasItsDay(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", false)
		s.exec(`UPDATE payouts SET created_at = $1, queued_at = $1`, time.Now().UTC().Add(-2*s.giveUpAfter))
		assert.Equal(t, 200, s.resolveAs("A-1", "send_again").StatusCode)
		s.fails(rateLimited(""))
		snooze := s.work("A-1")
		assert.Equal(t, queued, s.state("A-1"))
		assert.Positive(t, snooze)
		assert.Less(t, snooze, mostPause, "its pauses begin anew as well")
		s.exec(`UPDATE payouts SET queued_at = $1`, time.Now().UTC().Add(-2*s.giveUpAfter))
		s.fails(rateLimited(""))
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, failed, s.state("A-1"), "a worker that queues it prolongs nothing")
	})
}

func TestAStatusThatIsUndocumentedNeedsALook(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.accepted("A-1", cardwire.Transfer{APIOrderNo: "T-1", Status: "reviewing"})
		assert.Contains(t, s.get("/"), "status reviewing: look")
		assert.Contains(t, s.get("/orders/A-1"), "This needs a look")
		assert.Contains(t, s.log.String(), "level=WARN msg=payout order=A-1 state=submitted")
	})
}

// The database is gone where the order is to change: the journal has the service's number,
// but no status.
func TestAStatusThatIsLostNeedsALook(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		require.NoError(t, err)
		assert.Zero(t, s.work("A-1"))
		s.order("A-2")
		s.fails(cardwiretest.Fault{Status: 422})
		assert.Zero(t, s.work("A-2"))
		s.paid("A-2", "T-2")
		require.NoError(t, s.repair(t.Context()))
		s.order("A-3")
		s.accepted("A-3", cardwire.Transfer{APIOrderNo: "T-3"}) // a response without it
		for _, number := range []string{"A-1", "A-2", "A-3"} {
			o := s.found(number)
			assert.Equal(t, []string{submitted, "unknown"}, []string{o.State, o.ServiceStatus}, number)
			assert.NotEmpty(t, o.ServiceID)
			assert.Contains(t, s.get("/orders/"+number), "and its status is not known: ask for it")
		}
		assert.Equal(t, 3, strings.Count(s.get("/"), "status unknown: look"))
		assert.Contains(t, s.log.String(), "level=WARN msg=payout order=A-1 state=submitted")
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		assert.Equal(t, 422, s.call("POST", "/payouts/A-1/cancel", `{"by":"Ada"}`).StatusCode, "without a reason")
		for range 2 {
			r := s.cancelAs("A-1")
			assert.Equal(t, 200, r.StatusCode)
			assert.Contains(t, textOf(t, r), `"state":"cancelled"`)
		}
		assert.Zero(t, s.work("A-1"), "its job ends")
		assert.Equal(t, cancelled, s.state("A-1"))
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err), "the number is closed")

		s.order("A-2")
		assert.Zero(t, s.work("A-2"))
		assert.Equal(t, 409, s.cancelAs("A-2").StatusCode, "it was submitted")
		assert.Equal(t, 404, s.cancelAs("A-3").StatusCode)

		// The program dies between the two statements of cancel: the same again finishes it, and a
		// worker that is faster fails the order.
		for _, number := range []string{"A-4", "A-5"} {
			s.order(number)
			require.NoError(t, s.journal.Void(t.Context(), operation, number, "Ada", "the customer asked"))
		}
		assert.Zero(t, s.work("A-4"))
		assert.Equal(t, failed, s.state("A-4"))
		assert.Equal(t, 200, s.cancelAs("A-5").StatusCode)
		assert.Equal(t, cancelled, s.state("A-5"))
		// The number is closed for another program too.
		i := intentOf("A-6")
		require.NoError(t, s.journal.Begin(t.Context(), i))
		require.NoError(t, s.journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}))
		s.order("A-6")
		assert.Equal(t, 200, s.cancelAs("A-6").StatusCode)
		require.ErrorIs(t, s.journal.Begin(t.Context(), i), cardwire.ErrDuplicateIntent)
		assert.Len(t, s.fake.Ledger(), 1)
		assert.NotContains(t, s.log.String(), "the customer", "a person's words may be about a person")
	})
}

// lost makes an order whose response was lost.
func (s *shop) lost(number string, executed bool) {
	s.t.Helper()
	o := s.order(number)
	s.fails(cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: executed})
	require.Equal(s.t, longPause, s.work(number))
	require.Equal(s.t, unresolved, s.state(number))
	s.schedule(o, longPause)
}

// forget has the journal forget everything, as after a restore.
func (s *shop) forget() {
	s.t.Helper()
	s.exec(`DELETE FROM cardwire_intents_history`)
	s.exec(`DELETE FROM cardwire_intents`)
}

// resolveBody resolves what the body says.
func (s *shop) resolveBody(number, body string) *http.Response {
	s.t.Helper()
	return s.call("POST", "/payouts/"+number+"/resolve", body)
}

// resolveTry resolves the try that the journal knows.
func (s *shop) resolveTry(number, body string) *http.Response {
	s.t.Helper()
	e, err := s.journal.Lookup(s.t.Context(), operation, number)
	require.NoError(s.t, err)
	return s.resolveBody(number, strings.Replace(body, "{", `{"try":"`+e.Try+`",`, 1))
}

// resolveAs resolves it as Ada found out, with the service's number if that is given.
func (s *shop) resolveAs(number, outcome string, serviceID ...string) *http.Response {
	s.t.Helper()
	id := strings.Join(serviceID, "")
	return s.resolveTry(number, `{"outcome":"`+outcome+`","service_id":"`+id+`","by":"Ada","why":"ticket 7"}`)
}

// cancelAs has Ada cancel the order.
func (s *shop) cancelAs(number string) *http.Response {
	s.t.Helper()
	return s.call("POST", "/payouts/"+number+"/cancel", `{"by":"Ada","why":"the customer asked"}`)
}

// paid records in the journal that the service executed the order.
func (s *shop) paid(number, serviceID string) {
	s.t.Helper()
	const why = "in the service's records"
	require.NoError(s.t, recordPaid(s.t.Context(), s.journal, number, serviceID, "Ada", why))
}

// disagreement is the log's line about an order.
func disagreement(number, state, journal string) string {
	const format = `level=ERROR msg="the journal and the order disagree" order=%s state=%s journal=%s`
	return fmt.Sprintf(format, number, state, journal)
}

// What was found out about one try must not free a later one.
func TestAnOldResolutionFreesNothing(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", false)
		first := s.found("A-1")
		assert.Contains(t, s.get("/payouts/A-1"), `"try":"`+first.Try+`"`)
		assert.Contains(t, s.get("/orders/A-1"), `name="try" value="`+first.Try+`"`)
		again := `{"try":"` + first.Try + `","outcome":"send_again","by":"Ada","why":"ticket 7"}`
		assert.Equal(t, 200, s.resolveBody("A-1", again).StatusCode)
		s.fails(lostResponse)
		assert.Equal(t, longPause, s.work("A-1"))
		r := s.resolveBody("A-1", strings.Replace(again, "ticket 7", "ticket 6", 1))
		assert.Equal(t, 409, r.StatusCode)
		assert.Contains(t, textOf(t, r), "this is about another try")
		assert.Equal(t, unresolved, s.state("A-1"))
		r = s.resolveBody("A-1", `{"outcome":"executed","by":"Ada","why":"ticket 7"}`)
		assert.Equal(t, 422, r.StatusCode)
		assert.Contains(t, textOf(t, r), "try is required")
	})
}

// The service's number means that it was executed: "not executed" with one is a slip that
// would pay twice.
func TestAResolutionThatContradictsItselfIsRefused(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.lost("A-1", true)
	s.order("A-2")
	assert.Zero(t, s.work("A-2"))
	const who = `"by":"Ada","why":"ticket 7"}`
	for _, tc := range []struct{ order, body, want string }{
		{"A-1", `{"outcome":"not_executed","service_id":"AO1234",`, "means that it was executed"},
		{"A-1", `{"outcome":"send_again","service_id":"AO1234",`, "means that it was executed"},
		{"A-1", `{"outcome":"not-executed",`, "the outcome must be"},
		{"A-1", `{"outcome":"",`, "the outcome must be"},
	} {
		r := s.resolveTry(tc.order, tc.body+who)
		assert.Equal(t, 422, r.StatusCode, tc.body)
		assert.Contains(t, textOf(t, r), tc.want, tc.body)
	}
	try := s.found("A-1")
	r := s.post("/orders/A-1/resolve", "try="+try.Try+"&outcome=send_again&service_id=AO1234&by=Ada&why=ticket+7")
	assert.Equal(t, 422, r.Code)
	assert.Contains(t, r.Body.String(), "means that it was executed")
	assert.Equal(t, []string{unresolved, submitted}, []string{s.state("A-1"), s.state("A-2")})

	blank := s.resolveTry("A-1", `{"outcome":"executed","by":"Ada","why":" "}`)
	assert.Equal(t, 422, blank.StatusCode)
	assert.Contains(t, textOf(t, blank), "by and why are required: the history records who made the change, and why")
	text := textOf(t, s.resolveTry("A-1", `{"outcome":"executed","service_id":"  ","by":"Ada","why":" ticket 7 "}`))
	assert.NotContains(t, text, "service_id")
	assert.Contains(t, text, `"note":"ticket 7"`)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.lost("A-2", false)
		s.lost("A-3", false)
		s.start()
		resolve := func(order, body string) (int, string) {
			r := s.resolveTry(order, body)
			return r.StatusCode, textOf(t, r)
		}
		for range 2 { // the response to the first may be lost
			status, text := resolve("A-1", `{"outcome":"executed","service_id":"T-1","by":"Ada","why":"ticket 7"}`)
			assert.Equal(t, 200, status, text)
			assert.Contains(t, text, `"state":"submitted"`)
			assert.Contains(t, text, `"service_id":"T-1"`)
		}
		status, text := resolve("A-2", `{"outcome":"send_again","by":"Ada","why":"ticket 8"}`)
		assert.Equal(t, 200, status, text)
		s.awaitState("A-2", submitted)
		assert.Equal(t, 1, s.fake.Executions(operation, "A-2"))
		status, text = resolve("A-3", `{"outcome":"not_executed","by":"Ada","why":"ticket 9"}`)
		assert.Equal(t, 200, status, text)
		assert.Equal(t, failed, s.state("A-3"))
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-3"))
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err))
		s.awaitJobs("completed", "completed", "completed") // one for each order, for all its life

		for body, want := range map[string]int{
			`{"outcome":"executed","by":"Ada","why":"ticket 7"}`:                       409, // it is submitted
			`{"outcome":"perhaps","by":"Ada","why":"ticket 7"}`:                        422,
			`{"outcome":"executed","by":"Ada"}`:                                        422,
			`{"outcome":"executed","why":"ticket 7"}`:                                  422,
			`{"outcome":"executed","by":"Ada","why":"ticket 7","order":"A-1"}`:         400,
			`{"outcome":"paid","by":"Ada","why":"statement"}`:                          200,
			`{"outcome":"send_again","by":"Ada","why":"a slip"}`:                       409,
			`{"outcome":"executed","by":"Ada","why":"ticket 7"} {"outcome":"another"}`: 400,
		} {
			status, text := resolve("A-2", body)
			assert.Equal(t, want, status, "%s: %s", body, text)
		}
		status, text = resolve("A-2", `{"outcome":"returned","by":"Ada","why":"statement 2"}`)
		assert.Equal(t, 200, status, text)
		assert.Equal(t, returned, s.state("A-2"))

		events, err := s.journal.History(t.Context(), operation, "A-1")
		require.NoError(t, err)
		last := events[len(events)-1]
		assert.Equal(t, []string{"resolved", "Ada", "ticket 7"}, []string{last.Kind, last.By, last.Note})
		assert.Len(t, s.fake.Ledger(), 2)
	})
}

// Only what was said before is done already: of the same try, and with the same number.
func TestAResolutionIsTheSameOnlyIfAllOfItIs(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for _, number := range []string{"A-1", "A-2", "A-3"} {
			s.lost(number, true)
		}
		const who = `"by":"Ada","why":"ticket 7"}`
		for _, tc := range []struct {
			order, body string
			status      int
		}{
			{"A-1", `{"outcome":"executed","service_id":"T-1",`, 200},
			{"A-1", `{"outcome":"executed","service_id":"T-1",`, 200},
			{"A-1", `{"outcome":"executed",`, 200}, // it contradicts nothing
			{"A-1", `{"outcome":"executed","service_id":"T-2",`, 409},
			{"A-1", `{"outcome":"executed","service_id":"T-1","try":"1-9",`, 409},
			{"A-1", `{"outcome":"paid","service_id":"T-2",`, 409},
			{"A-1", `{"outcome":"paid","service_id":"T-1",`, 200},
			{"A-1", `{"outcome":"paid",`, 200},
			{"A-2", `{"outcome":"executed",`, 200},
			{"A-2", `{"outcome":"executed","service_id":"T-2",`, 409}, // it would not be recorded
			{"A-2", `{"outcome":"not_executed",`, 409},
			{"A-2", `{"outcome":"paid","service_id":"T-3",`, 200}, // found out later
			{"A-2", `{"outcome":"returned","service_id":"T-4",`, 409},
			{"A-3", `{"outcome":"not_executed",`, 200},
			{"A-3", `{"outcome":"not_executed",`, 200},
			{"A-3", `{"outcome":"not_executed","try":"1-9",`, 409},
		} {
			send := s.resolveTry
			if strings.Contains(tc.body, "try") {
				send = s.resolveBody
			}
			r := send(tc.order, tc.body+who)
			assert.Equal(t, tc.status, r.StatusCode, "%s: %s: %s", tc.order, tc.body, textOf(t, r))
		}
		o := s.found("A-1")
		assert.Equal(t, []string{paid, "T-1"}, []string{o.State, o.ServiceID})
		atOnce := change{order: "A-1", from: []string{submitted, paid, returned}, to: paid, by: "Bob", serviceID: "T-2"}
		_, err := s.apply(t.Context(), atOnce)
		require.ErrorIs(t, err, errMoved, "the number was recorded since the order was read")
		o = s.found("A-1")
		assert.Equal(t, []string{paid, "T-1", "ticket 7"}, []string{o.State, o.ServiceID, o.Note})
	})
}

// Of what became of the money the journal knows nothing, and is not needed. The same again
// is recorded once.
func TestWhatBecameOfTheMoneyIsRecordedOnce(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		assert.Equal(t, 409, s.resolveAs("A-1", "paid").StatusCode, "it is unresolved")
		assert.Equal(t, 200, s.resolveAs("A-1", "executed").StatusCode)
		assert.Contains(t, s.get("/orders/A-1"), `name="service_id"`, "it can be recorded later")
		s.exec(`UPDATE cardwire_intents_journal SET identity = 'stopped-' || identity`)
		for range 2 {
			r := s.resolveBody("A-1", `{"outcome":"paid","service_id":"T-1","by":"Ada","why":"statement"}`)
			assert.Equal(t, 200, r.StatusCode)
			assert.Contains(t, textOf(t, r), `"state":"paid"`)
		}
		assert.Equal(t, 1, strings.Count(s.log.String(), "order=A-1 state=paid"))
		assert.Equal(t, 200, s.resolveBody("A-1", `{"outcome":"paid","by":"Bob","why":"another statement"}`).StatusCode)
		assert.Equal(t, 2, strings.Count(s.log.String(), "order=A-1 state=paid"))
	})
}

// What is recorded as failed is closed, also where the journal learned by itself that it was
// not sent. What the journal learned since the order was read is not overruled.
func TestWhatFailsIsClosed(t *testing.T) {
	t.Parallel()
	const who = `"by":"Ada","why":"ticket 7"}`
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", false)
		s.lost("A-2", false)
		stale, err := s.findEntry(t.Context(), "A-2")
		require.NoError(t, err)
		s.exec(`UPDATE cardwire_intents SET state = 'not_sent', event = 'ended', ended_at = begun_at`) // a late call
		assert.Equal(t, 200, s.resolveTry("A-1", `{"outcome":"not_executed",`+who).StatusCode)
		_, err = s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err), "nobody sends it any more")
		assert.Empty(t, s.fake.Ledger())
		again := resolution{Try: stale.Try, Outcome: "send_again", By: "Ada", Why: "ticket 7"}
		_, err = s.tellJournal(t.Context(), stale, again)
		require.ErrorIs(t, err, sqljournal.ErrDecided)

		s.lost("A-3", true) // recorded as executed, but not closed, in a journal that forgot the last try
		s.exec(`UPDATE cardwire_intents SET state = 'executed', service_id = 'T-3', closed = FALSE
WHERE reference = 'A-3'`)
		s.exec(`UPDATE payouts SET try = '3-2' WHERE order_no = 'A-3'`)
		assert.Equal(t, 200, s.resolveBody("A-3", `{"try":"3-2","outcome":"executed",`+who).StatusCode)
		assert.Equal(t, 409, s.resolveTry("A-1", `{"outcome":"executed",`+who).StatusCode, "it has failed")
		e, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		assert.Equal(t, cardwire.OutcomeNotSent, e.Outcome, "what is refused has no effect")
		assert.Equal(t, 409, s.call("POST", "/payouts/A-1/cancel", `{`+who).StatusCode)
		assert.Equal(t, failed, s.state("A-1"))
	})
}

// "Not executed" is believed when nothing can be sent and the service has had its time.
func TestNotExecutedIsNotBelievedTooEarly(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.grace = 10 * time.Minute
		s := openShop(t, set)
		s.lost("A-1", true)
		r := s.resolveAs("A-1", "send_again")
		assert.Equal(t, 409, r.StatusCode)
		assert.Contains(t, textOf(t, r), "it is too early: the service may still execute it; ask again after 20")
		assert.Equal(t, unresolved, s.state("A-1"))
		page := s.get("/orders/A-1")
		assert.Contains(t, page, "“Not executed” is accepted from 20")
		assert.Contains(t, page, "support would say: it was executed, with the number <code>"+s.fake.Ledger()[0].ID)
		between := regexp.MustCompile(`sent between (\S+ \S+) and (\S+ \S+) UTC`).FindStringSubmatch(page)
		require.Len(t, between, 3)
		assert.NotEqual(t, between[1], between[2], "no empty interval")
		assert.Equal(t, 200, s.resolveAs("A-1", "executed").StatusCode)
	})
}

// The program dies between the two statements of a resolution: it is repeated.
func TestAResolutionIsFinishedAfterACrash(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for number, found := range map[string]sqljournal.Resolution{
			"A-1": {Outcome: cardwire.OutcomeNotSent, ServiceID: "X-1", By: "Ada", Note: "ticket 7"},
			"A-2": {Outcome: cardwire.OutcomeExecuted, ServiceID: "T-2", By: "Ada", Note: "ticket 7"},
			"A-3": {Outcome: cardwire.OutcomeExecuted, By: "Ada", Note: "ticket 7"},
		} {
			s.lost(number, found.Outcome == cardwire.OutcomeExecuted)
			e, err := s.journal.Lookup(t.Context(), operation, number)
			require.NoError(t, err)
			require.NoError(t, s.journal.Resolve(t.Context(), e, found))
		}
		assert.Equal(t, 200, s.resolveAs("A-1", "send_again").StatusCode)
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
		assert.Equal(t, 409, s.resolveAs("A-2", "send_again").StatusCode, "the opposite")
		assert.Equal(t, 409, s.resolveAs("A-2", executed, "T-9").StatusCode, "another number")
		assert.Equal(t, 200, s.resolveAs("A-2", executed).StatusCode)
		o := s.found("A-2")
		assert.Equal(t, []string{submitted, "T-2"}, []string{o.State, o.ServiceID})

		r := s.resolveAs("A-3", executed, "T-3")
		assert.Equal(t, 409, r.StatusCode, "the journal would not get the number")
		assert.Contains(t, textOf(t, r), "leave service_id out")
		assert.Equal(t, unresolved, s.state("A-3"))
		assert.Equal(t, 200, s.resolveAs("A-3", executed).StatusCode)
		assert.Equal(t, 200, s.resolveAs("A-3", paid, "T-3").StatusCode)
	})
}

// In the journal the number is another program's transfer, whose outcome is unknown: what
// is recorded of this order must not free that one.
func TestAnotherProgramsTransferIsNotResolved(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		other := paramsFor("A-1")
		other.TransferAmount = decimal.New(9900, -2)
		s.fails(lostResponse)
		_, err := s.client.CreateTransfer(t.Context(), other)
		require.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
		require.NoError(t, s.connect(t.Context())) // as after a restart: it knows what the journal knows
		s.order("A-1")
		assert.Equal(t, longPause, s.work("A-1"))
		before, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		for _, state := range []string{"executed", "not_sent", "unknown"} { // as the other program may learn
			s.exec(`UPDATE cardwire_intents SET state = $1`, state)
			require.NoError(t, s.repair(t.Context()))
			assert.Equal(t, unresolved, s.state("A-1"), state)
		}
		for _, outcome := range []string{"send_again", "not_executed"} {
			r := s.resolveTry("A-1", `{"outcome":"`+outcome+`","by":"Ada","why":"there is no A-1 over 12.50"}`)
			assert.Equal(t, 409, r.StatusCode)
			assert.Contains(t, textOf(t, r), "belongs to another request")
			assert.Equal(t, unresolved, s.state("A-1"))
		}
		page := s.get("/orders/A-1")
		assert.Contains(t, page, `value="executed"`)
		assert.NotContains(t, page, "not_executed", "the page offers nothing that is refused")
		assert.Contains(t, page, "belongs to another request")
		assert.Equal(t, 200, s.resolveAs("A-1", "executed").StatusCode)
		assert.Equal(t, submitted, s.state("A-1"))
		after, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		assert.Equal(t, before, after)
		require.NoError(t, s.repair(t.Context()))
		assert.NotContains(t, s.log.String(), "disagree", "the journal does not have this order")
		_, err = s.client.CreateTransfer(t.Context(), other)
		assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
	})
}

// Where the database fails in the middle of a resolution, an order that was to fail is
// not sent either.
func TestAnOrderThatAPersonFailedIsNotSent(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.lost("A-1", false)
	const full = " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
	s.exec(`CREATE TRIGGER full1 BEFORE UPDATE ON cardwire_intents WHEN NEW.event = 'voided'` + full)
	s.exec(`CREATE TRIGGER full2 BEFORE UPDATE ON payouts WHEN NEW.state = 'failed'` + full)
	r := s.resolveAs("A-1", "not_executed")
	assert.Equal(t, 503, r.StatusCode)
	s.exec(`DROP TRIGGER full1`)
	s.exec(`DROP TRIGGER full2`)
	require.NoError(t, s.repair(t.Context()))
	assert.Equal(t, []string{"available"}, s.jobs())
	s.work("A-1")
	assert.Equal(t, failed, s.state("A-1"))
	assert.Empty(t, s.fake.Ledger())
}

// A request's context is done where its client hangs up.
func TestAClientThatHangsUpInterruptsNothing(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", false)
		s.order("A-2")
		s.order("A-3")
		e, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		for path, body := range map[string]string{
			"/payouts/A-1/resolve": `{"try":"` + e.Try + `","outcome":"not_executed","by":"Ada","why":"ticket 7"}`,
			"/payouts/A-2/cancel":  `{"by":"Ada","why":"the customer asked"}`,
			"/orders/A-3/cancel":   "by=Ada&why=the+customer+asked",
		} {
			ctx, hangUp := context.WithCancel(t.Context())
			hangUp()
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // the API reads JSON in any case
			s.routes("").ServeHTTP(w, r)
			assert.Contains(t, []int{200, 303}, w.Code, path)
		}
		assert.Equal(t, failed, s.state("A-1"))
		assert.Equal(t, []string{cancelled, cancelled}, []string{s.state("A-2"), s.state("A-3")})
	})
}

// What the repair finds.
func TestRepairWakesOrders(t *testing.T) {
	t.Parallel()
	const ofA1 = ` WHERE kind = 'payout'`
	for name, tc := range map[string]struct {
		before func(*shop)
		jobs   []string
		end    string
	}{
		"whose job is gone": {func(s *shop) {
			s.order("A-1")
			s.exec(`DELETE FROM river_job` + ofA1)
		}, []string{"available"}, submitted},
		"whose job has ended": {func(s *shop) {
			s.order("A-1")
			s.exec(`UPDATE river_job SET state = 'completed', finalized_at = created_at` + ofA1)
		}, []string{"available"}, submitted},
		"that were resolved while their job ran": {func(s *shop) {
			s.schedule(s.order("A-1"), longPause-time.Minute)
		}, []string{"available"}, submitted},
		"that were not sent, as a late call says": {func(s *shop) {
			s.lost("A-1", false)
			s.exec(`UPDATE cardwire_intents SET state = 'not_sent', event = 'ended'`)
		}, []string{"available"}, submitted},
		"but not those of which the journal never had a try": {func(s *shop) {
			s.lost("A-1", true)
			s.exec(`UPDATE payouts SET try = ''`)
			s.exec(`DELETE FROM cardwire_intents`)
		}, []string{"scheduled"}, unresolved},
		"nor those that wait": {func(s *shop) {
			s.schedule(s.order("A-1"), mostPause)
		}, []string{"scheduled"}, submitted},
		"nor those that the service told to wait": {func(s *shop) {
			o := s.order("A-1")
			s.giveUpAfter = giveUpAfter
			s.fails(rateLimited("80000"))
			snooze := s.work("A-1")
			assert.Equal(s.t, 80000*time.Second, snooze)
			s.schedule(o, snooze)
		}, []string{"scheduled"}, submitted},
		"nor those that are unresolved": {func(s *shop) { s.lost("A-1", true) }, []string{"scheduled"}, unresolved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, func(t *testing.T, s *shop) {
				tc.before(s)
				require.NoError(t, (&repairer{service: s.service}).Work(t.Context(), nil))
				assert.Equal(t, tc.jobs, s.jobs())
				s.work("A-1")
				assert.Equal(t, tc.end, s.state("A-1"))
				assert.LessOrEqual(t, s.fake.Executions(operation, "A-1"), 1)
			})
		})
	}
}

func TestRepairFindsWhatTheTablesDisagreeAbout(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.fails(cardwiretest.Fault{Status: 422})
		assert.Zero(t, s.work("A-1"))
		s.order("A-2")
		assert.Zero(t, s.work("A-2"))
		require.NoError(t, s.repair(t.Context()))
		assert.NotContains(t, s.log.String(), "disagree")

		s.paid("A-1", "T-1")                                           // what was refused turns out to be paid
		s.exec(`DELETE FROM cardwire_intents WHERE reference = 'A-2'`) // a lossy failover
		s.order("A-3")
		assert.Equal(t, 200, s.cancelAs("A-3").StatusCode)
		s.paid("A-3", "T-3")
		require.NoError(t, s.repair(t.Context()))
		assert.Contains(t, s.log.String(), disagreement("A-1", failed, "executed"))
		assert.Contains(t, s.log.String(), disagreement("A-2", submitted, "missing"))
		o := s.found("A-1")
		assert.Equal(t, []string{submitted, "T-1"}, []string{o.State, o.ServiceID})
		assert.Equal(t, submitted, s.state("A-2"), "a person decides")
		assert.Equal(t, submitted, s.state("A-3"), "what was canceled turns out to be paid")
		assert.Contains(t, s.log.String(), "level=ERROR msg=payout order=A-3 state=submitted")
	})
}

// What the journal has as executed is submitted at once: while it waited in the queue, a
// restore could have the journal forget it, and it would be sent.
func TestRepairSubmitsWhatWasExecuted(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for _, number := range []string{"A-1", "A-2"} {
			s.lost(number, true)
		}
		s.paid("A-1", "T-1")
		s.exec(`UPDATE cardwire_intents SET state = 'executed', service_id = 'T-2', event = 'ended'
WHERE reference = 'A-2'`) // a late call
		require.NoError(t, s.repair(t.Context()))
		for number, id := range map[string]string{"A-1": "T-1", "A-2": "T-2"} {
			o := s.found(number)
			assert.Equal(t, []string{submitted, id, statusLost}, []string{o.State, o.ServiceID, o.ServiceStatus})
		}
		moved := order{Order: "A-1", State: unresolved} // since it was read
		require.NoError(t, s.reconcile(t.Context(), moved, executed))
		assert.NotContains(t, s.log.String(), "disagree")
		s.exec(`DELETE FROM cardwire_intents`)
		require.NoError(t, s.repair(t.Context()))
		for _, number := range []string{"A-1", "A-2"} {
			assert.Zero(t, s.work(number))
			assert.Equal(t, 1, s.fake.Executions(operation, number))
		}
	})
}

// After a restore another program may have used the number: its execution is not the order's.
func TestRepairSubmitsNothingForAnotherRequest(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-0", false)
		s.lost("A-1", false)
		s.forget()
		require.NoError(t, s.connect(t.Context())) // as after a restart: it knows what the journal knows
		other := paramsFor("A-0")
		other.TransferAmount = decimal.New(9900, -2)
		for _, number := range []string{"B-1", "B-2", "A-1"} { // its try is none of the order's
			other.MerchantOrderNo = number
			_, err := s.client.CreateTransfer(t.Context(), other)
			require.NoError(t, err)
		}
		require.NoError(t, s.repair(t.Context()))
		assert.Equal(t, longPause, s.work("A-1"))
		o := s.found("A-1")
		assert.Equal(t, []any{unresolved, "", true}, []any{o.State, o.ServiceID, o.OtherBody})
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"), "the other request's")
	})
}

// A restored backup of the journal has no intent of an order, and would grant it again.
func TestAnOrderThatTheJournalForgotIsNotSent(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		numbers := []string{"A-1", "A-2", "A-3"}
		for _, number := range numbers {
			s.lost(number, number != "A-3")
		}
		s.forget()
		require.NoError(t, s.connect(t.Context())) // as after a restart: it knows what the journal knows
		require.NoError(t, s.repair(t.Context()))
		for _, number := range numbers {
			assert.Equal(t, longPause, s.work(number), "a day later")
			assert.Contains(t, s.log.String(), disagreement(number, unresolved, "missing"))
			r := s.call("GET", "/payouts/"+number, "")
			assert.Equal(t, 200, r.StatusCode)
			text := textOf(t, r)
			assert.Contains(t, text, `"state":"unresolved"`)
			page := s.get("/orders/" + number)
			assert.Contains(t, page, "The journal has no record of this try")
			assert.NotContains(t, page, "0001-01-01")
			for _, outcome := range []string{executed, "not_executed"} {
				o := s.found(number)
				assert.Contains(t, text, `"try":"`+o.Try+`"`)
				r = s.resolveBody(number, `{"try":"`+o.Try+`","outcome":"`+outcome+`","by":"Ada","why":"ticket 7"}`)
				assert.Equal(t, 409, r.StatusCode)
				assert.Contains(t, textOf(t, r), "the journal has no record of this try: see docs/operations.md")
			}
		}
		assert.Len(t, s.fake.Ledger(), 2)

		// The procedure of docs/operations.md. Then the repair ends the order.
		for _, number := range numbers[:2] {
			s.paid(number, "T-"+number)
		}
		require.NoError(t, s.journal.Void(t.Context(), operation, "A-3", "Ada", "not in the service's records"))
		require.NoError(t, s.repair(t.Context()))
		assert.Equal(t, []string{"available", "available", "available"}, s.jobs())
		for number, want := range map[string][]string{
			"A-1": {submitted, "T-A-1"}, "A-2": {submitted, "T-A-2"}, "A-3": {failed, ""},
		} {
			assert.Zero(t, s.work(number))
			o := s.found(number)
			assert.Equal(t, want, []string{o.State, o.ServiceID}, number)
		}
		assert.Len(t, s.fake.Ledger(), 2)
	})
}

// What the journal was told of a forgotten try can be recorded before the repair comes by:
// the page that offers it and the journal have one rule.
func TestAForgottenOrderIsResolvedByHand(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for _, number := range []string{"A-1", "A-2"} {
			s.lost(number, number == "A-1")
		}
		s.forget()
		s.paid("A-1", "T-1")
		require.NoError(t, s.journal.Void(t.Context(), operation, "A-2", "Ada", "not in the service's records"))
		resolve := func(number, outcome string) *httptest.ResponseRecorder {
			o := s.found(number)
			assert.Contains(t, s.get("/orders/"+number), `value="`+outcome+`"`)
			form := "try=" + o.Try + "&outcome=" + outcome + "&service_id=&by=Ada&why=ticket+7"
			return s.post("/orders/"+number+"/resolve", form)
		}
		assert.Equal(t, 409, resolve("A-1", "send_again").Code, "the journal has it as executed")
		assert.Equal(t, 409, resolve("A-1", "not_executed").Code)
		assert.Equal(t, 303, resolve("A-1", "executed").Code)
		assert.Equal(t, 303, resolve("A-2", "not_executed").Code)
		o := s.found("A-1")
		assert.Equal(t, []string{submitted, "T-1", failed}, []string{o.State, o.ServiceID, s.state("A-2")})
		for _, number := range []string{"A-1", "A-2"} {
			assert.Zero(t, s.work(number))
		}
		assert.Len(t, s.fake.Ledger(), 1)
	})
}

// A backup may know an earlier try, which was not sent, and not the one whose response
// was lost.
func TestAnOrderOfWhichTheJournalForgotATryIsNotSent(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.exec(`UPDATE cardwire_intents SET state = 'not_sent', ended_at = begun_at`)
		s.exec(`UPDATE payouts SET try = '1-2'`) // a second try, which a restore took from the journal
		assert.Equal(t, longPause, s.work("A-1"), "a day later")
		assert.Equal(t, unresolved, s.state("A-1"))
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
		r := s.resolveBody("A-1", `{"try":"1-2","outcome":"send_again","by":"Ada","why":"ticket 7"}`)
		assert.Equal(t, 409, r.StatusCode)
		assert.Contains(t, textOf(t, r), "the journal has no record of this try")
		s.paid("A-1", "T-1")
		require.NoError(t, s.repair(t.Context()))
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, submitted, s.state("A-1"))
	})
}

// A journal that was stopped by hand stops this program also after a restart.
func TestAStoppedJournalStopsTheProgram(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.exec(`UPDATE cardwire_intents_journal SET identity = 'stopped-' || identity`)
		_, err := open(t.Context(), s.settings, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "sending was stopped by hand")
	})
}

// River itself runs the repair.
func TestTheRepairIsPeriodic(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.repairEvery = time.Second
		s := openShop(t, set)
		s.order("A-1")
		s.exec(`DELETE FROM river_job`)
		s.start()
		s.awaitState("A-1", submitted)
	})
}

// A job that died with its process is run again.
func TestADeadWorkersOrderIsRescued(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.timeout = 100 * time.Millisecond
		s := openShop(t, set)
		s.order("A-1")
		s.claim("A-1")
		aMinuteAgo := time.Now().UTC().Add(-time.Minute)
		s.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = $1`, aMinuteAgo)
		s.start()
		s.awaitState("A-1", submitted)
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
	})
}

func TestTracesGoFromTheRequestToTheCall(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		exported := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported))
		set := settingsOf(source)
		set.tracers = provider
		s := openShop(t, set)
		s.start()
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

func TestTheGaugesAreTheOrdersNumbers(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.lost("A-3", true) // younger than A-2
		s.lost("A-2", true)
		s.exec(`DELETE FROM cardwire_intents`) // it is unresolved also where the journal forgot it
		s.exec(`UPDATE payouts SET changed_at = $1 WHERE order_no = 'A-2'`, time.Now().UTC().Add(-time.Hour))
		reader := sdkmetric.NewManualReader()
		registration, err := s.observe(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		require.NoError(t, err)
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		counts := map[string]int64{}
		require.Len(t, all.ScopeMetrics[0].Metrics, 2)
		for _, m := range all.ScopeMetrics[0].Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				assert.Equal(t, "payouts.orders", m.Name)
				for _, p := range data.DataPoints {
					state, _ := p.Attributes.Value("state")
					counts[state.AsString()] = p.Value
				}
			case metricdata.Gauge[float64]:
				assert.Equal(t, "payouts.oldest_unresolved.age", m.Name)
				assert.InDelta(t, 3600, data.DataPoints[0].Value, 300)
			}
		}
		assert.Equal(t, map[string]int64{queued: 1, sending: 0, unresolved: 2}, counts)
		require.NoError(t, registration.Unregister())
	})
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
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
		"three decimals": {transfer(`"transferAmount":"1.005"`), 422, `two decimals and is above zero, as in "12.50"`},
		"a bare amount":  {transfer(`"transferAmount":12.50`), 422, "each field is a string"},
		"unknown fields": {transfer(good + `,"color":"red","age":"7"`), 422, `has unknown fields: ["age" "color"]`},
		"unknown name":   {post(`{"number":"A-1"}`), 400, `the field "number" is unknown`},
		"too large":      {post(`{"order":"` + strings.Repeat("x", maxBody) + `"}`), 400, "one JSON object"},
		"no such order":  {[]string{"GET", "/payouts/A-9", ""}, 404, "no such order"},
		"no such state":  {[]string{"GET", "/payouts?state=lost", ""}, 422, "state must be one of queued, sending"},
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

// What a browser asks for is a page, also where it is an error. An API's client may accept
// anything, and its errors stay problems.
func TestABrowserGetsAPage(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for path, want := range map[string]string{
		"/orders/A-9": "text/html; charset=utf-8", "/payouts/A-9": "application/problem+json",
		"/payouts?state=lost": "application/problem+json",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1"+path, nil)
		r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		w := httptest.NewRecorder()
		s.routes("").ServeHTTP(w, r)
		assert.Equal(t, want, w.Header().Get("Content-Type"), path)
		assert.Equal(t, path == "/orders/A-9", strings.Contains(w.Body.String(), "<p>there is no such order</p>"), path)
		assert.Equal(t, "application/problem+json", s.call("GET", path, "").Header.Get("Content-Type"), path)
	}
}

// What a form leaves out may be what makes it safe: a number of the service, which says that
// the order was executed.
func TestAFormThatIsReadInPartIsRefused(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.order("A-2")
		o := s.found("A-1")
		for _, id := range []string{"TX;1", "TX%zz1", strings.Repeat("x", maxBody)} {
			w := s.post("/orders/A-1/resolve", "try="+o.Try+"&outcome=send_again&by=Ada&why=a+call&service_id="+id)
			assert.Equal(t, 400, w.Code)
			assert.Contains(t, w.Body.String(), "a form whose fields are known and come once")
		}
		for path, form := range map[string]string{
			"/orders/A-1/resolve":   "&outcome=send_again&service_id=&service_id=TX1",
			"/orders/A-1/resolve?":  "&outcome=send_again&outcome=executed",
			"/orders/A-1/resolve?a": "&outcome=send_again&serviceid=TX1",
			"/orders/A-2/cancel":    "", // it has no try
			"/sample":               "&fault=0",
		} {
			w := s.post(path, "try="+o.Try+"&by=Ada&why=a+call"+form)
			assert.Equal(t, 400, w.Code, path)
			assert.Contains(t, w.Body.String(), "a form whose fields are known and come once")
		}
		parts := "--b\r\nContent-Disposition: form-data; name=\"outcome\"\r\n\r\nnot_executed\r\n--b--\r\n"
		multipart := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/orders/A-1/resolve",
			strings.NewReader(parts))
		multipart.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		w := httptest.NewRecorder()
		s.routes("").ServeHTTP(w, multipart)
		assert.Equal(t, 400, w.Code)
		assert.Contains(t, w.Body.String(), "a form whose fields are known and come once")
		assert.Equal(t, []string{unresolved, queued}, []string{s.state("A-1"), s.state("A-2")})
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
		"not UTF-8":               {"{\"order\":\"A-\xff\",\"transfer\":{" + fields + "}}", 400},
		"not UTF-8, in a field":   {`{"order":"A-1","transfer":{` + fields + ",\"senderAddress\":\"\xff\"}}", 400},
		"half a character":        {`{"order":"A-1","transfer":{` + fields + `,"senderAddress":"\ud800"}}`, 422},
		"half of the number":      {`{"order":"A-\ud800","transfer":{` + fields + `}}`, 422},
		"order twice":             {`{"order":"A-1","order":"A-2","transfer":{` + fields + `}}`, 400},
		"transfer twice":          {`{"order":"A-1","transfer":{},"transfer":{` + fields + `}}`, 400},
		"Order":                   {`{"Order":"A-1","transfer":{` + fields + `}}`, 400},
		"order and ORDER":         {`{"order":"A-1","ORDER":"A-2","transfer":{` + fields + `}}`, 400},
		"an amount twice":         {`{"order":"A-1","transfer":{` + fields + `,"transferAmount":"99.00"}}`, 422},
		"another letter case":     {`{"order":"A-1","transfer":{` + fields + `,"PayoutCurrency":"USD"}}`, 422},
		"two numbers":             {`{"order":"A-1","transfer":{` + fields + `,"merchantOrderNo":"A-2"}}`, 422},
		"a number as well":        {`{"order":"A-1","transfer":{` + fields + `,"merchantOrderNo":"A-1"}}`, 422},
		"no transfer":             {`{"order":"A-1"}`, 422},
		"null":                    {`{"order":"A-1","transfer":null}`, 422},
		"order null":              {`{"order":null,"transfer":{` + fields + `}}`, 422},
		"order is a number":       {`{"order":1,"transfer":{` + fields + `}}`, 422},
		"an array":                {`[{"order":"A-1","transfer":{` + fields + `}}]`, 400},
		"more that follows":       {`{"order":"A-1","transfer":{` + fields + `}}{}`, 400},
		"an object that is open":  {`{"order":"A-1","transfer":{` + fields + `}`, 400},
		"nothing":                 {``, 422},
		"a form":                  {"order=A-1&transfer=%7B%7D", 400},
		"a space that is none":    {"\u00a0{\"order\":\"A-1\",\"transfer\":{" + fields + "}}", 400},
		"such a space at the end": {"{\"order\":\"A-1\",\"transfer\":{" + fields + "}}\v", 400},
	} {
		r := s.call("POST", "/payouts", tc.body)
		assert.Equal(t, tc.status, r.StatusCode, name)
		assert.Equal(t, "application/problem+json", r.Header.Get("Content-Type"), name)
		text := textOf(t, r)
		assert.NotContains(t, text, "response", name)
		assert.NotContains(t, text, `: "}`, name)
	}
	list, err := s.list(t.Context(), "", "")
	require.NoError(t, err)
	assert.Empty(t, list)
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
	t.Parallel()
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
		id := `{"try":"` + o.Try + `","outcome":"executed","service_id":"T\u0000",`
		check(422, "POST", "/payouts/A-1/resolve", id+who+`}`)
		for path, form := range map[string]string{
			"/orders/%ff/cancel": page, "/orders/A%00/resolve": page + "&outcome=executed",
			"/orders/A-2/cancel":  "by=%ff&why=ticket+7",
			"/orders/A-1/resolve": page + "&outcome=executed&service_id=%00",
		} {
			want := 422
			if strings.Contains(path, "%") {
				want = 404
			}
			assert.Equal(t, want, s.post(path, form).Code, path)
		}
		assert.Equal(t, []string{unresolved, queued}, []string{s.state("A-1"), s.state("A-2")})
	})
}

func TestTheListHasPages(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for i := range pageSize + 1 {
			s.order("A-" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
		}
		var first struct {
			Payouts []json.RawMessage
			Next    string
		}
		require.NoError(t, json.Unmarshal([]byte(s.get("/payouts?state=queued")), &first))
		assert.Len(t, first.Payouts, pageSize)
		last := s.get(first.Next)
		assert.Equal(t, 1, strings.Count(last, `"order":`))
		assert.NotContains(t, last, `"next"`)
		assert.Contains(t, s.get("/?state=queued"), "Next page")
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
			strings.NewReader(`{"try":"`+try.Try+`","outcome":"executed","by":"Eve","why":"ticket 7"}`))
		tc.change(r)
		w := httptest.NewRecorder()
		s.routes(tc.password).ServeHTTP(w, r)
		assert.Equal(t, tc.status, w.Code, name)
	}
	events, err := s.history(t.Context(), "A-1")
	require.NoError(t, err)
	by := map[string]bool{}
	for _, e := range events {
		by[e.By] = true
	}
	assert.True(t, by["Ada"] || by["Eve"], "who resolved it: %v", by)
}

// Whoever signed in is who resolves, whatever the request names.
func TestTheUserIsWhoResolves(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
	assert.Equal(t, "Eve", signedIn(r, " Eve "))
	r.SetBasicAuth("Ada", "secret")
	assert.Equal(t, "Ada", signedIn(r, "Eve"))
}

func TestTheDatabaseMustHaveItsTables(t *testing.T) {
	t.Parallel()
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
	})
}

// serviceMoved is the statement of docs/payouts.md.
const serviceMoved = `UPDATE payouts_service SET base_url = 'https://.../api/v1'`

// The fake service must not take the orders of a real one, nor the sandbox's those of
// production.
func TestADatabaseIsOfOneService(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		t.Setenv("CARDWIRE_BASE_URL", "https://cards.example/api/v1")
		t.Setenv("CARDWIRE_API_KEY", "key")
		try := func(fake *cardwiretest.Service) error {
			set := settingsOf(source)
			set.fake = fake
			s, err := open(t.Context(), set, slog.New(slog.DiscardHandler))
			if err == nil {
				require.NoError(t, s.close())
			}
			return err
		}
		t.Setenv("CARDWIRE_BASE_URL", "")
		require.ErrorIs(t, try(nil), cardwire.ErrSetup, "half of the environment claims nothing")
		t.Setenv("CARDWIRE_BASE_URL", "https://cards.example/api/v1/")
		require.NoError(t, try(nil))
		t.Setenv("CARDWIRE_BASE_URL", "https://cards.example/api/v1")
		require.NoError(t, try(nil))
		require.ErrorContains(t, try(cardwiretest.New()),
			"the orders in this database are for https://cards.example/api/v1, and not for the fake service")
		t.Setenv("CARDWIRE_BASE_URL", "https://sandbox.cards.example/api/v1")
		require.ErrorContains(t, try(nil), "and not for https://sandbox.cards.example/api/v1")

		db, err := (&service{settings: settingsOf(source)}).pool()
		require.NoError(t, err)
		defer db.Close()
		moved := strings.Replace(serviceMoved, "https://.../", "https://sandbox.cards.example/", 1)
		_, err = db.ExecContext(t.Context(), moved)
		require.NoError(t, err)
		require.NoError(t, try(nil))
	})
}

const (
	waitFor = 2 * time.Minute
	tick    = 5 * time.Millisecond
)
