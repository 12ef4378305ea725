package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func settingsOf(source string) settings {
	return settings{
		base: "https://cards.example/api/v1", key: cardwiretest.DefaultKey, source: source, timeout: 5 * time.Second,
		sweepEvery: time.Hour, workers: 4, migrate: true, giveUpAfter: time.Hour, tracers: noop.NewTracerProvider(),
	}
}

// openShop opens a service whose queue does not run.
func openShop(t *testing.T, set settings, opts ...cardwiretest.Option) *shop {
	t.Helper()
	s := &shop{t: t, log: &buffer{}, fake: cardwiretest.New(opts...)}
	if set.options == nil {
		set.options = []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: s.fake})}
	}
	var err error
	s.service, err = open(t.Context(), set, slog.New(slog.NewTextHandler(s.log, nil)))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.close()) })
	return s
}

// run lets the queue run until the test ends.
func (s *shop) run() { s.t.Cleanup(s.started()) }

// started starts the queue, and returns what stops it, or fails where that hangs.
func (s *shop) started() (stop func()) {
	s.t.Helper()
	stopQueue, err := s.start(context.Background())
	require.NoError(s.t, err)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitFor)
		defer cancel()
		assert.NoError(s.t, stopQueue(ctx))
	}
}

var starts = flag.Int("starts", 10, "how often TestStartingAndStopping starts and stops the queue")

// A stop right after the start does not hang:
//
//	scripts/postgres go test ./payouts -run TestStartingAndStopping -args -starts 1000
func TestStartingAndStopping(t *testing.T) {
	eachShop(t, func(_ *testing.T, s *shop) {
		for range *starts {
			s.started()()
		}
	})
}

// work runs an order's job once, as River would, and returns for how long it snoozes.
func (s *shop) work(number string) time.Duration {
	s.t.Helper()
	err := (&submitter{service: s.service}).Work(s.t.Context(), jobOf(number))
	if snooze, ok := errors.AsType[*rivertype.JobSnoozeError](err); ok {
		return snooze.Duration
	}
	require.NoError(s.t, err)
	return 0
}

func jobOf(number string) *river.Job[submit] {
	return &river.Job[submit]{JobRow: &rivertype.JobRow{Metadata: []byte("{}")}, Args: submit{number}}
}

// lost makes an order whose response was lost.
func (s *shop) lost(number string, executed bool) {
	s.t.Helper()
	s.order(number)
	s.fails(cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: executed})
	require.Zero(s.t, s.work(number), "the job ends")
	require.Equal(s.t, unresolved, s.state(number))
	s.settle()
	s.exec(`UPDATE river_job SET state = 'completed', finalized_at = created_at WHERE state = 'available'`)
}

// settle moves the calls into the past, unless the service executes late.
func (s *shop) settle() {
	s.t.Helper()
	if s.late == 0 {
		s.exec(`UPDATE cardwire_intents SET send_by = time, settled_by = time WHERE state = 'unknown'`)
	}
}

// forget removes an order from the journal, as after a failover that lost something.
func (s *shop) forget(number string) {
	s.t.Helper()
	s.exec(`DELETE FROM cardwire_intents WHERE reference = $1`, number)
}

// otherRequest uses the number for another body, as another program does.
func (s *shop) otherRequest(number string) {
	s.t.Helper()
	require.NoError(s.t, s.journal.Begin(s.t.Context(), intentOf(number)))
}

// forgetAll empties the journal, as where it alone is restored.
func (s *shop) forgetAll() {
	s.t.Helper()
	s.exec(`DELETE FROM cardwire_intents`)
}

// endElsewhere makes a call of the same request, as another program does, and ends it.
func (s *shop) endElsewhere(number string, r cardwire.IntentResult) {
	s.t.Helper()
	i := intentOf(number)
	var err error
	i.BodySHA256, err = s.digestOf(s.t.Context(), paramsFor(number))
	require.NoError(s.t, err)
	require.NoError(s.t, errors.Join(s.journal.Begin(s.t.Context(), i), s.journal.End(s.t.Context(), i, r)))
}

// voids closes a number in the journal alone.
func (s *shop) voids(number string) {
	s.t.Helper()
	i := cardwire.Intent{Op: operation, Reference: number}
	require.NoError(s.t, s.journal.Void(s.t.Context(), i, "Ada", "canceled"))
}

// resolveBody resolves what the body says.
func (s *shop) resolveBody(number, body string) *http.Response {
	s.t.Helper()
	return s.call("POST", "/payouts/"+number+"/resolve", body)
}

// resolveAs resolves the call that is on record as Ada found out now, with the service's
// number if that is given.
func (s *shop) resolveAs(number, outcome string, serviceID ...string) *http.Response {
	s.t.Helper()
	const body = `{"call":%q,"outcome":%q,"service_id":%q,"as_of":%q,"by":"Ada","why":"ticket 7"}`
	return s.resolveBody(number, fmt.Sprintf(body,
		s.found(number).Call, outcome, strings.Join(serviceID, ""), time.Now().Format(time.RFC3339Nano)))
}

func (s *shop) resolves(number, outcome string, serviceID ...string) {
	s.t.Helper()
	r := s.resolveAs(number, outcome, serviceID...)
	require.Equal(s.t, 200, r.StatusCode, textOf(s.t, r))
}

// refuses expects that a resolution conflicts with what is known, and that nothing changes.
func (s *shop) refuses(number, outcome, why string, serviceID ...string) {
	s.t.Helper()
	before := s.state(number)
	r := s.resolveAs(number, outcome, serviceID...)
	assert.Equal(s.t, 409, r.StatusCode)
	assert.Contains(s.t, textOf(s.t, r), why)
	assert.Equal(s.t, before, s.state(number))
}

func TestAnOrderIsSubmittedOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.run()
		first := s.call("POST", "/payouts", a1)
		assert.Equal(t, 202, first.StatusCode)
		assert.Equal(t, "/payouts/A-1", first.Header.Get("Location"))
		s.awaitState("A-1", submitted)
		again := s.call("POST", "/payouts", a1)
		assert.Equal(t, 202, again.StatusCode, "the same again is the same payout")
		assert.Contains(t, textOf(t, again), `"state":"submitted"`)
		other := s.call("POST", "/payouts", strings.Replace(a1, "12.50", "13.50", 1))
		assert.Equal(t, 409, other.StatusCode)
		assert.Contains(t, textOf(t, other), `"detail":"this order exists with another body"`)

		s.awaitJobs("completed")
		require.Len(t, s.fake.Ledger(), 1)
		o := s.found("A-1")
		want := []string{"12.50", "EUR", s.fake.Ledger()[0].ID, "wait_process"}
		assert.Equal(t, want, []string{o.Amount, o.Currency, o.ServiceID, o.ServiceStatus})
		assert.Contains(t, s.get("/payouts?state=submitted"), `"order":"A-1"`)
		assert.JSONEq(t, `{"payouts":[]}`, s.get("/payouts?state=failed"))
		events, err := s.history(t.Context(), o)
		require.NoError(t, err)
		var what []string
		for _, e := range events {
			what = append(what, e.Where+" "+e.What)
		}
		assert.Equal(t, []string{"order created", "journal begun: unknown", "journal ended: executed"}, what)
		assert.Equal(t, 2, strings.Count(s.log.String(), "msg=payout order=A-1"), "created and submitted")
		assert.NotContains(t, s.log.String(), "CANARY")
	})
}

// The digests of an order and of its call are compared for years: a release of the library
// must not change them.
func TestTheDigestOfAnOrderDoesNotChange(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for body, want := range map[string]string{
		`{"merchantOrderNo":"A-1","payoutCurrency":"EUR","transferAmount":"12.50"}`://
		"a251f2a46d3beeb434e2adaeb67b8d91e3fb231fca26ef3b154454368cda1f40",
		`{"transferAmount":"0.01","payoutCurrency":"USD","merchantOrderNo":"A-1",
"senderFirstName":"Åda","receiverBankAccountNumber":"DE00","extra":"x"}`: //
		"3acee19c5ea32bf96ac8747361ad9c3ea9133916208a2fb7399c1c79ce5deecc",
	} {
		var p cardwire.TransferParams
		require.NoError(t, p.UnmarshalJSON([]byte(body)))
		digest, err := s.digestOf(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, want, digest, body)
	}
	s.order("A-1")
	assert.Zero(t, s.work("A-1"))
	e, err := s.journal.Lookup(t.Context(), operation, "A-1")
	require.NoError(t, err)
	assert.Equal(t, e.BodySHA256, s.found("A-1").Digest, "what is sent")
	assert.Empty(t, s.fake.Requests()[1:], "to ask for a digest sends nothing")
}

// Order and job are in one transaction: where one cannot be written, neither is.
func TestAnOrderWithoutAJobIsNoOrder(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.exec(`ALTER TABLE payouts RENAME TO gone`)
		assert.Equal(t, 503, s.call("POST", "/payouts", a1).StatusCode)
		assert.Regexp(t, `level=ERROR msg="a request failed" path=/payouts error=.*payouts`, s.log.String())
		s.exec(`ALTER TABLE gone RENAME TO payouts`)
		assert.Empty(t, s.jobs())
		_, err := s.find(t.Context(), "A-1")
		require.ErrorIs(t, err, errNoOrder)
		assert.Zero(t, s.work("A-1"), "nor is a job without an order tried for ever")
	})
}

// What the worker does after each step, and what the order then is.
func TestTheWorkerDoesWhatTheStepSays(t *testing.T) {
	t.Parallel()
	fails := func(f cardwiretest.Fault) func(*shop) { return func(s *shop) { s.fails(f) } }
	for name, tc := range map[string]struct {
		before func(*shop)
		state  string
		snooze time.Duration
		paused bool
	}{
		"done":          {func(*shop) {}, submitted, 0, false},
		"fail":          {fails(cardwiretest.Fault{Status: 422}), failed, 0, false},
		"a 429":         {fails(rateLimited("7")), queued, time.Second, true},
		"a refused key": {fails(cardwiretest.Fault{Status: 401}), queued, time.Second, true},
		"retry":         {fails(cardwiretest.Fault{Status: 403}), queued, time.Second, false},
		"another body":  {func(s *shop) { s.otherRequest("A-1") }, conflicted, 0, false},
		"reconcile":     {fails(lostResponse), unresolved, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.order("A-1")
				tc.before(s)
				assert.Equal(t, tc.snooze, s.work("A-1"))
				assert.Equal(t, tc.state, s.state("A-1"))
				p, err := s.pausedNow(t.Context())
				require.NoError(t, err)
				assert.Equal(t, tc.paused, p.Why != "")
				assert.LessOrEqual(t, s.fake.Executions(operation, "A-1"), 1)
			})
		})
	}
}

// Each state, as the journal's row and the order's make it, and that the state's list and
// the counts have it: they look by indexes of their own.
func TestTheStateIsDerived(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		journal := func(number, change string) {
			s.lost(number, false)
			s.exec(`UPDATE cardwire_intents SET `+change+` WHERE reference = $1`, number)
		}
		s.orders("queued", "sending")
		own := s.found("sending").intent()
		own.Call, own.Time, own.SendBy = "c", time.Now(), time.Now().Add(time.Minute)
		require.NoError(t, s.journal.Begin(t.Context(), own))
		s.order("died")
		own.Reference, own.SendBy = "died", time.Now().Add(-time.Second)
		own.BodySHA256 = s.found("died").Digest
		require.NoError(t, s.journal.Begin(t.Context(), own))
		journal("free", `state = 'not_sent'`)
		journal("closed", `state = 'refused', closed = TRUE`)
		journal("executed", `state = 'executed'`)
		journal("paid", `state = 'executed'`)
		s.exec(`UPDATE payouts SET said = 'paid' WHERE order_no = 'paid'`)
		journal("denied", `state = 'not_sent'`)
		s.exec(`UPDATE payouts SET said = 'paid' WHERE order_no = 'denied'`)
		s.order("canceled")
		assert.Equal(t, 200, s.cancelAs("canceled").StatusCode)
		s.order("late") // a canceled one that turns out to be executed
		assert.Equal(t, 200, s.cancelAs("late").StatusCode)
		s.exec(`UPDATE cardwire_intents SET state = 'executed', closed = FALSE WHERE reference = 'late'`)
		s.order("restored") // a canceled one that the journal forgot
		assert.Equal(t, 200, s.cancelAs("restored").StatusCode)
		s.forget("restored")
		s.lost("forgotten", true)
		s.forget("forgotten")
		assert.Zero(t, s.work("forgotten"))
		s.otherRequest("other")
		s.exec(`UPDATE cardwire_intents SET time = $1, ended_at = $1 WHERE reference = 'other'`,
			time.Now().UTC().Add(-96*time.Hour).Format("2006-01-02T15:04:05.000000Z"))
		assert.WithinDuration(t, time.Now(), s.order("other").ChangedAt.Time, time.Hour, "as old as the order")
		s.order("taken")
		s.otherRequest("taken")
		s.exec(`UPDATE cardwire_intents SET state = 'executed' WHERE reference = 'taken'`)
		s.order("held")
		s.exec(`UPDATE payouts SET said = 'held' WHERE order_no IN ('held', 'other')`)
		want := map[string]string{
			"queued": queued, "sending": sending, "died": unresolved, "free": queued, "closed": failed,
			"executed": submitted,
			"paid":     paid, "denied": paid, "canceled": canceled, "late": submitted, "restored": canceled,
			"forgotten": forgotten, "other": conflicted, "taken": conflicted, "held": held,
		}
		counts := map[string]int64{}
		for number, state := range want {
			assert.Equal(t, state, s.state(number), number)
			assert.Contains(t, s.get("/payouts?state="+state), `"order":"`+number+`"`, "the list of "+state)
			if (order{State: state}).Ended() {
				continue
			}
			counts[state]++
		}
		found, err := s.liveTotals(t.Context())
		require.NoError(t, err)
		assert.Equal(t, counts, countsOf(found))
		s.exec(`UPDATE river_job SET state = 'completed', finalized_at = created_at`)
		sleeping, err := s.read(t.Context(), s.db, asleep+` ORDER BY order_no`)
		require.NoError(t, err)
		assert.Equal(t, "free queued sending", joined(listing{Orders: sleeping}), "whose jobs are woken")
		for number, state := range want { // whatever is delivered again
			if state == forgotten || state == conflicted || state == unresolved {
				assert.Zero(t, s.work(number), number)
				assert.Zero(t, s.fake.Executions(operation, number)-len(number)/9, number)
			}
		}
	})
}

// Why a call failed is in the journal's result: it is there also where the program died next. The
// service's words are in the note of the call that they came with. They may quote a name: they stay
// out of the log.
func TestTheReasonOutlivesTheProgram(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for _, number := range []string{"A-1", "A-2"} {
			s.order(number)
			_, err := s.take(t.Context(), number)
			require.NoError(t, err)
		}
		s.fails(cardwiretest.Fault{Status: 422, Message: "the account of Grace is closed"})
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		require.ErrorIs(t, err, cardwire.ErrRefused)
		own := s.found("A-2").intent()
		own.Call, own.Time, own.SendBy = "c", time.Now().Add(-time.Minute), time.Now().Add(-time.Second)
		require.NoError(t, s.journal.Begin(t.Context(), own))
		assert.Contains(t, s.get("/payouts/A-1"), `"note":"refused, HTTP 422, code 422"`)
		assert.Contains(t, s.get("/orders/A-1"), "<dd>refused, HTTP 422, code 422</dd>")
		assert.Contains(t, s.get("/orders/A-1"), `<td data-label="Why" class="long">refused, HTTP 422, code 422</td>`)
		assert.Contains(t, s.get("/?state=unresolved"), "the process ended during the call")
		assert.Contains(t, s.get("/payouts/A-2"), `"deny_from":"20`)

		s.order("A-3")
		s.fails(cardwiretest.Fault{Status: 403, Message: "the account of Grace is closed"})
		assert.Positive(t, s.work("A-3"))
		assert.Contains(t, s.get("/payouts/A-3"), `HTTP 403, code 403, \"the account of Grace is closed\"`)
		assert.Contains(t, s.get("/orders/A-3"), "the account of Grace is closed")
		assert.Contains(t, s.log.String(), "HTTP 403, code 403")
		assert.NotContains(t, s.log.String(), "Grace")
		own = s.found("A-3").intent()
		own.Call, own.Time, own.SendBy = "d", time.Now(), time.Now().Add(time.Minute)
		require.NoError(t, s.journal.Begin(t.Context(), own))
		assert.NotContains(t, s.get("/payouts/A-3"), "Grace")
	})
}

func TestAStatusThatIsUndocumentedNeedsALook(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.reviewed("A-1")
		assert.Contains(t, s.get("/?state=submitted"), "status reviewing: look")
		assert.Contains(t, s.get("/orders/A-1"), "This needs a look")
	})
}

// reviewed makes an order that the service accepted in a state of its own.
func (s *shop) reviewed(number string) {
	s.t.Helper()
	s.order(number)
	i := s.found(number).intent()
	i.Call, i.Time, i.SendBy = "c", time.Now(), time.Now()
	result := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-" + number, Status: "reviewing"}
	require.NoError(s.t, errors.Join(s.journal.Begin(s.t.Context(), i), s.journal.End(s.t.Context(), i, result)))
}

// While another worker's call is in progress, the order stays with that one.
func TestAWorkerWaitsForAnother(t *testing.T) {
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
		assert.Equal(t, sending, s.state("A-1"))
		assert.Positive(t, s.work("A-1"))
		assert.Len(t, s.fake.Requests(), 1)
		snooze, _, err := s.follow(t.Context(), order{Order: "A-1"}, &cardwire.Error{
			Op: operation, Err: &cardwire.DuplicateIntent{InProgress: true}, RetryAfter: 99 * time.Hour,
		})
		require.NoError(t, err)
		assert.Equal(t, mostPause, snooze, "a clock may be wrong")
	})
}

// Stop lets what is being sent come to its end.
func TestStoppingEndsNoCall(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, settingsOf(source), cardwiretest.WithLatency(300*time.Millisecond))
		s.order("A-1")
		stop := s.started()
		s.awaitState("A-1", sending)
		stop()
		assert.Equal(t, submitted, s.state("A-1"))
		assert.Equal(t, []string{"completed"}, s.jobs())
	})
}

// A job that died with its process is run again.
func TestADeadWorkersOrderIsRescued(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.timeout = time.Second
		s := openShop(t, set)
		s.order("A-1")
		aMinuteAgo := time.Now().UTC().Add(-time.Minute)
		s.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = $1`, aMinuteAgo)
		s.run()
		s.awaitState("A-1", submitted)
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
	})
}

// A day of its own, which begins where it first has to be sent again.
func TestAfterADayAnOrderIsVoidedAndFails(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		longAgo := time.Now().UTC().Add(-99 * s.giveUpAfter) // in a queue that was paused
		s.exec(`UPDATE payouts SET created_at = $1`, longAgo)
		s.fake.Fail(operation, cardwiretest.Fault{Status: 403}, 2)
		assert.Equal(t, leastPause, s.work("A-1"))
		assert.Equal(t, queued, s.state("A-1"))
		s.exec(`UPDATE payouts SET retried_at = $1`, time.Now().UTC().Add(-s.giveUpAfter))
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, failed, s.state("A-1"))
		assert.Contains(t, s.log.String(), "level=ERROR msg=payout order=A-1 what=failed by=worker")
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err), "nothing sends it later")
		assert.Empty(t, s.fake.Ledger())
	})
}

func TestCancel(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		assert.Equal(t, 422, s.call("POST", "/payouts/A-1/cancel", `{"by":"Ada"}`).StatusCode, "without a reason")
		r := s.cancelAs("A-1")
		assert.Equal(t, 200, r.StatusCode)
		assert.Contains(t, textOf(t, r), `"state":"canceled"`)
		assert.Equal(t, 404, s.cancelAs("A-9").StatusCode)
		assert.NotContains(t, s.log.String(), "the customer", "a person's words may be about a person")

		o := s.order("A-2") // a worker gives up meanwhile
		assert.Equal(t, 200, s.cancelAs("A-2").StatusCode)
		require.NoError(t, s.giveUp(t.Context(), o))
		s.order("A-3")
		s.fails(cardwiretest.Fault{Status: 422})
		s.work("A-3")
		s.exec(`UPDATE payouts SET calls = 0`)
		for _, older := range []string{"DELETE FROM cardwire_intents", "UPDATE cardwire_intents SET closed = FALSE"} {
			s.exec(older)
			for number, state := range map[string]string{"A-2": canceled, "A-3": failed} {
				assert.Equal(t, state, s.state(number))
				assert.Equal(t, 200, s.cancelAs(number).StatusCode)
				assert.Equal(t, state, s.state(number))
				require.ErrorIs(t, s.journal.Begin(t.Context(), intentOf(number)), cardwire.ErrDuplicateIntent, "it is closed again")
			}
		}
	})
}

// Nobody is asked about a time that is not the forgotten call's, nor told why another one failed.
func TestAForgottenCallHasNoTime(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("earlier")
		s.fails(cardwiretest.Fault{Status: 403})
		s.work("earlier")
		s.exec(`UPDATE payouts SET calls = 2, note = ''`) // of which the journal lost one
		s.order("other")
		s.work("other")
		s.forget("other")
		s.otherRequest("other")
		for _, number := range []string{"earlier", "other"} {
			assert.Equal(t, forgotten, s.state(number))
			text := s.get("/orders/" + number)
			assert.Contains(t, text, "with the merchant order number "+number+" of 12.50 EUR?")
			assert.NotContains(t, text, "sent between")
			assert.NotContains(t, text, "<dt>Why</dt>")
			assert.Empty(t, s.found(number).Note)
		}
	})
}

// When it was found missing is by the database's clock, which all replicas share.
func TestWhenItWasFoundMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in 2000
		s := shopInFile(t)
		s.order("A-1")
		s.exec(`UPDATE payouts SET calls = 1`)
		o, err := s.seen(t.Context(), "A-1")
		require.NoError(t, err)
		assert.Greater(t, o.DenyFrom.Year(), 2020)
		s.exec(`UPDATE payouts SET missed_at = '2021-02-03T04:05:06.789Z'`)
		require.NoError(t, s.miss(t.Context(), "A-1"))
		assert.Equal(t, 2021, s.found("A-1").MissedAt.Year(), "a later look changes nothing")
	})
}

// A call that was sent stays counted, also where the journal lost it and has the number for another
// request when the call ends: it was executed, and is not for canceling.
func TestACallThatTheJournalLostStaysCounted(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		o, err := s.take(t.Context(), "A-1")
		require.NoError(t, err)
		s.fails(cardwiretest.Fault{Kind: cardwiretest.FaultHang, Executed: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var failure error
		var group sync.WaitGroup
		group.Go(func() { _, failure = s.client.CreateTransfer(ctx, paramsFor("A-1")) })
		require.Eventually(t, func() bool { return s.fake.Executions(operation, "A-1") == 1 }, waitFor, tick)
		s.forget("A-1")
		s.otherRequest("A-1")
		s.exec(`UPDATE cardwire_intents SET state = 'refused', closed = TRUE`)
		cancel()
		group.Wait()
		_, _, err = s.follow(t.Context(), o, failure)
		require.NoError(t, err)
		assert.Equal(t, forgotten, s.state("A-1"))
		assert.Equal(t, 409, s.cancelAs("A-1").StatusCode)
	})
}

// When it was found missing is about a call, and not about a later one.
func TestALaterCallIsMissedLater(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.exec(`UPDATE payouts SET missed_at = $1`, time.Now().UTC().Add(-time.Hour))
		s.fails(lostResponse)
		s.work("A-1")
		s.forgetAll()
		s.refuses("A-1", "send_again", "ask again after")
	})
}

// A person's action, the journal's change and the job's wake-up are one transaction: where
// one fails, nothing has changed.
func TestAPersonsActionIsOneTransaction(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", false)
		s.order("A-2")
		s.exec(`ALTER TABLE payouts_history RENAME TO gone`)
		assert.Equal(t, 503, s.cancelAs("A-2").StatusCode)
		s.exec(`ALTER TABLE river_job RENAME TO jobs_gone`)
		assert.Equal(t, 503, s.resolveAs("A-1", "send_again").StatusCode)
		assert.Equal(t, []string{unresolved, queued}, s.statesOf("A-1", "A-2"))
		s.exec(`ALTER TABLE jobs_gone RENAME TO river_job`)
		s.exec(`ALTER TABLE gone RENAME TO payouts_history`)
		s.resolves("A-1", "send_again")
		assert.Equal(t, 200, s.cancelAs("A-2").StatusCode)
		assert.Contains(t, s.jobs(), "available", "the job of A-1 is awake")
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, []string{submitted, canceled}, s.statesOf("A-1", "A-2"))
	})
}

func TestResolve(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.lost("A-2", false)
		s.refuses("A-1", "paid", "another state")
		s.resolves("A-1", "executed", "T-1")
		assert.Equal(t, "T-1", s.found("A-1").ServiceID)
		s.run()
		s.resolves("A-2", "send_again")
		s.awaitState("A-2", submitted)
		s.awaitJobs("completed", "completed") // one for each order, for all its life

		const call, who = `"call":"x",`, `"by":"Ada","why":"ticket 7"}`
		for body, want := range map[string]int{
			`{"outcome":"perhaps",` + call + who:                            422,
			`{"outcome":"executed",` + who:                                  422, // of which call?
			`{` + call + `"outcome":"not_executed","service_id":"T",` + who: 422,
			`{` + call + `"outcome":"send_again","as_of":"soon",` + who:     422,
			`{` + call + `"outcome":"send_again",` + who:                    422, // when was the service asked?
			`{` + call + `"outcome":"executed","by":"Ada"}`:                 422,
			`{` + call + `"outcome":"executed","why":"ticket 7"}`:           422,
			`{` + call + `"outcome":"executed","by":"A\u200bda","why":"x"}`: 422,
			`{` + call + `"outcome":"executed","order":"A-1",` + who:        400,
		} {
			r := s.resolveBody("A-2", body)
			assert.Equal(t, want, r.StatusCode, "%s: %s", body, textOf(t, r))
		}
		events, err := s.journal.History(t.Context(), operation, "A-1")
		require.NoError(t, err)
		last := events[len(events)-1]
		assert.Equal(t, []string{"resolved", "Ada", "ticket 7"}, []string{last.Kind, last.By, last.Note})
	})
}

// What a person said by mistake is put right, by the rules of the journal.
func TestCorrections(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", false)
		s.lost("A-2", false)
		s.resolves("A-1", "executed", "T-1")
		s.refuses("A-2", "executed", "the service ID belongs to reference A-1", "T-1")
		s.resolves("A-1", "paid", "T-2") // it was mistyped
		s.resolves("A-1", "paid")
		assert.Equal(t, "T-2", s.found("A-1").ServiceID)
		assert.Equal(t, 1, strings.Count(s.get("/orders/A-1"), `data-label="What">paid`), "recorded once")
		assert.Contains(t, s.get("/orders/A-1"), "Correct it")
		assert.Equal(t, 422, s.resolveAs("A-1", "paid", strings.Repeat("x", 129)).StatusCode)
		s.resolves("A-1", "not_executed") // a paid one that was not
		s.refuses("A-1", "send_again", "this order was reported as failed or canceled: use a new number")
		s.resolves("A-1", "executed")
		s.refuses("A-1", "send_again", "this order was reported as failed or canceled: use a new number")
		s.resolves("A-2", "send_again")
		assert.Zero(t, s.work("A-2"))
		s.refuses("A-2", "send_again", "a response proved that it was executed")
		assert.NotContains(t, s.get("/orders/A-2"), "Correct it")

		s.lost("A-3", true) // two people
		const old = `{"call":%q,"outcome":%q,"as_of":%q,"by":"Ada","why":"an old form"}`
		call, asked := s.found("A-3").Call, time.Now().Format(time.RFC3339Nano)
		i := cardwire.Intent{Op: operation, Reference: "A-3", Call: call} // of a program of theirs
		found := cardwire.Resolution{Outcome: cardwire.OutcomeExecuted, By: "Eve", Note: "ticket 8"}
		require.NoError(t, s.journal.Resolve(t.Context(), i, found))
		for _, said := range []string{"", "executed", "paid"} {
			if said != "" {
				s.resolves("A-3", said)
			}
			assert.Equal(t, s.found("A-3").ChangedAt, s.found("A-3").DenyFrom)
			for _, denial := range []string{"send_again", "not_executed"} {
				r := s.resolveBody("A-3", fmt.Sprintf(old, call, denial, asked))
				assert.Equal(t, 409, r.StatusCode)
				assert.Contains(t, textOf(t, r), "the order was recorded as executed since")
			}
		}
		assert.Equal(t, paid, s.state("A-3"))

		s.order("A-4") // of which nothing was executed
		s.fails(cardwiretest.Fault{Status: 403})
		s.work("A-4")
		s.refuses("A-4", "send_again", "another state")
		s.putOnHold()
		s.refuses("A-4", "send_again", "another state")
	})
}

// What was told of an order stays where the journal alone is older, and is corrected by who asked
// since that was found.
func TestCorrectionsInAnOlderJournal(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for number, older := range map[string]string{
			"unknown": "state = 'unknown'", "free": "state = 'not_sent'", "closed": "state = 'refused', closed = TRUE",
			"voided": "state = 'not_sent', closed = TRUE",
		} {
			s.lost(number, true)
			s.resolves(number, "executed")
			s.resolves(number, "paid")
			s.exec(`UPDATE cardwire_intents SET `+older+` WHERE reference = $1`, number)
		}
		assert.Equal(t, []string{unresolved, paid, paid}, s.statesOf("unknown", "free", "closed"))
		for _, again := range []bool{true, false} { // which contradicts who said that it was paid
			assert.Contains(t, s.applies(again, "unknown T-1 12.50 rejected"), "rejected  1")
		}
		s.refuses("unknown", "send_again", "ask again after")
		s.refuses("free", "send_again", "ask again after")
		s.refuses("closed", "not_executed", "ask again after")
		s.refuses("voided", "not_executed", "ask again after")
		s.timeout = time.Hour
		s.exec(`UPDATE payouts SET missed_at = $1`, time.Now().UTC().Add(-s.timeout))
		s.refuses("unknown", "send_again", "ask again after") // a job that began just before has half an hour left
		s.exec(`UPDATE payouts SET missed_at = $1`, time.Now().UTC().Add(-s.jobTimeout()))
		s.resolves("unknown", "executed")
		s.resolves("free", "send_again")
		s.refuses("voided", "send_again", "the reference was closed")
		s.resolves("voided", "not_executed")
		s.resolves("closed", "not_executed")
		assert.Equal(t, []string{paid, queued, failed, failed}, s.statesOf("unknown", "free", "closed", "voided"))
		s.forgetAll()
		s.resolves("closed", "executed")
		s.resolves("unknown", "returned", "T-9")
		assert.Equal(t, []string{submitted, returned}, s.statesOf("closed", "unknown"))
		assert.Equal(t, "T-9", s.found("unknown").ServiceID)
	})
}

// What was said of an order is corrected where the journal has given its number to another request,
// which is left as it is. What was never sent was not executed.
func TestCorrectionsWhereTheNumberIsAnothers(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.applies(false, "A-1 T-1 12.50 done")
		s.forget("A-1")
		s.otherRequest("A-1")
		other, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		assert.Equal(t, submitted, s.state("A-1"))
		s.resolves("A-1", "paid", "T-9")
		assert.Equal(t, paid, s.state("A-1"))
		s.get("/orders/A-1") // which is the latest that it was found out
		s.exec(`UPDATE payouts SET missed_at = $1`, time.Now().UTC().Add(-time.Hour))
		s.refuses("A-1", "send_again", "use a new number")
		s.resolves("A-1", "not_executed")
		assert.Equal(t, failed, s.state("A-1"))
		assert.Equal(t, 200, s.cancelAs("A-1").StatusCode, "which closes no number of another request")
		s.refuses("A-1", "executed", "this order was not sent")
		e, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		assert.Equal(t, other, e)
	})
}

func TestTheGaugesAreTheOrdersNumbers(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		assert.Contains(t, s.get("/metrics"), "\npayouts_oldest_unresolved_age_seconds 0\n")
		s.order("A-1")
		s.lost("A-2", true)
		s.lost("A-3", true)
		s.forget("A-3")
		assert.Zero(t, s.work("A-3"))
		assert.Contains(t, s.get("/metrics"), "\npayouts_paused 0\n")
		require.NoError(t, s.pause(t.Context(), pause{Why: "a test"}))
		metrics := s.get("/metrics")
		for _, line := range []string{
			`payouts_orders{state="queued"} 1`, `payouts_orders{state="sending"} 0`,
			`payouts_orders{state="unresolved"} 1`, `payouts_orders{state="forgotten"} 1`,
			`payouts_orders{state="conflict"} 0`, `payouts_orders{state="held"} 0`,
			`payouts_paused{why="brake"} 1`, `cardwire_journal_unresolved 1`,
		} {
			assert.Contains(t, metrics, "\n"+line+"\n")
		}
		assert.Equal(t, 6, strings.Count(metrics, "\npayouts_orders{"))
		assert.Regexp(t, `\npayouts_oldest_unresolved_age_seconds [0-9.e-]*[1-9]`, metrics)
		s.exec(`ALTER TABLE payouts RENAME TO gone`)
		assert.NotContains(t, s.get("/metrics"), "payouts_orders", "zeros would look as if all were well")
	})
}

// Each alert is about what is at /metrics.
func TestTheAlertsAreAboutTheMetrics(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.lost("A-1", true)
	text, err := os.ReadFile("../../../docs/alerts.yml")
	require.NoError(t, err)
	metrics := s.get("/metrics")
	for _, name := range regexp.MustCompile(`\b(?:cardwire|payouts)_\w+`).FindAllString(string(text), -1) {
		assert.Regexp(t, `[\n{,]`+name, metrics)
	}
}

// The sandbox's orders must not be sent to production.
func TestADatabaseIsOfOneService(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		try := func(base string) error {
			set := settingsOf(source)
			set.base = base
			s, err := open(t.Context(), set, slog.New(slog.DiscardHandler))
			if err == nil {
				require.NoError(t, s.close())
			}
			return err
		}
		require.ErrorIs(t, try("cards.example"), cardwire.ErrSetup, "what is no address claims nothing")
		require.NoError(t, try("https://cards.example/api/v1/"))
		require.NoError(t, try("https://cards.example/api/v1"))
		require.ErrorContains(t, try("https://sandbox.cards.example/api/v1"),
			"are for https://cards.example/api/v1, and not for https://sandbox.cards.example/api/v1")
		s := &service{settings: settingsOf(source)}
		require.NoError(t, s.openDatabase(t.Context()))
		defer s.db.Close()
		moved := strings.Replace(serviceMoved, "https://.../", "https://sandbox.cards.example/", 1)
		_, err := s.db.ExecContext(t.Context(), moved)
		require.NoError(t, err)
		require.NoError(t, try("https://sandbox.cards.example/api/v1"))
	})
}

// Of people who sign in, who does something is the one who signed in.
func TestTheUserIsWhoResolves(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	require.NoError(t, err)
	assert.Equal(t, "Eve", signedIn(r, " Eve "))
	r.SetBasicAuth(" Ada ", "secret")
	assert.Equal(t, "Ada", signedIn(r, "Eve"))
}

// On the way to and from the service the queue, and not the order, waits.
func TestTheQueueIsPaused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1", "A-2")
		s.fake.Fail(operation, rateLimited("3600"), 1)
		assert.Equal(t, time.Second, s.work("A-1"))
		assert.Equal(t, time.Second, s.work("A-2"), "which was fetched before")
		assert.Len(t, s.fake.Requests(), 1, "nothing is sent")
		assert.Contains(t, s.get("/"), "Nothing is sent")
		assert.Contains(t, s.get("/"), "the next try is at 20")
		assert.NotContains(t, s.get("/"), "0001")
		assert.Equal(t, 1, strings.Count(s.log.String(), `msg="nothing is sent"`), "logged once")
		require.NoError(t, s.look(t.Context()))
		assert.Len(t, s.fake.Requests(), 1, "before its time")

		s.elapse() // the first test fails, and the next one is later
		s.fake.Fail(operation, rateLimited(""), 1)
		require.NoError(t, s.look(t.Context()))
		assert.Len(t, s.fake.Requests(), 2, "one order tests the way")
		p, err := s.pausedNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, p.Tests)
		s.elapse()
		require.NoError(t, s.look(t.Context()))
		p, err = s.pausedNow(t.Context())
		require.NoError(t, err)
		assert.Empty(t, p.Why)
		assert.GreaterOrEqual(t, p.Before, 2*time.Hour, "which counts for no order's day")
		assert.Equal(t, submitted, s.state("A-1"))
		assert.Zero(t, s.work("A-2"))
		assert.Equal(t, submitted, s.state("A-2"))
	})
}

// elapse moves the queue's pause by an hour.
func (s *shop) elapse() {
	s.t.Helper()
	require.NoError(s.t, s.change(s.t.Context(), func(p *pause) {
		p.Until, p.Since = p.Until.Add(-time.Hour), p.Since.Add(-time.Hour)
	}))
}

// Any calls that do nothing pause the queue, but not one or two of them.
func TestSomeCallsThatFailPauseTheQueue(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("A-1", "A-2")
	s.fake.Fail(operation, cardwiretest.Fault{Status: 403}, 2)
	s.work("A-1")
	s.work("A-1")
	assert.Zero(t, s.work("A-2"))
	s.fake.Fail(operation, cardwiretest.Fault{Status: 403}, 3)
	for range 3 {
		assert.NotContains(t, s.get("/"), "Nothing is sent")
		s.work("A-1")
	}
	assert.Contains(t, s.get("/"), "Nothing is sent")
	assert.Equal(t, 303, s.post("/resume", "by=Ada&why=the+key+is+new").Code)
	assert.NotContains(t, s.get("/"), "Nothing is sent")
	assert.Contains(t, s.log.String(), `msg="sending is resumed" by=Ada`)
	assert.Zero(t, s.work("A-1"))
}

// The queue waits for people where too much is unresolved. Neither a test of the way nor a release lifts
// the brake, nor does an order that ends unresolved.
func TestTheBrakePausesTheQueue(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.brake = 2
		s := openShop(t, set)
		isBraked := func(sent int) {
			t.Helper()
			assert.True(t, s.paused.Load())
			assert.Contains(t, s.get("/queue"), "too many orders are unresolved: resolve them first (unresolved: 2, ")
			assert.Len(t, s.fake.Requests(), sent)
		}
		tests := func() {
			t.Helper()
			require.NoError(t, s.pause(t.Context(), pause{Why: "a 429", Until: time.Now().Add(time.Minute)}))
			s.elapse()
			require.NoError(t, s.look(t.Context()))
		}
		s.lost("A-1", true)
		assert.NotContains(t, s.get("/"), "Nothing is sent")
		s.order("A-2")
		s.fails(lostResponse)
		tests()
		isBraked(2)
		assert.Contains(t, s.get("/"), "too many orders are unresolved: resolve them first (unresolved: 2, -brake 2).")
		s.putOnHold()
		s.release()
		isBraked(2)
		assert.Contains(t, s.log.String(), `msg="another pause follows" by=Ada why="too many`)
		assert.Equal(t, 303, s.post("/resume", "by=Ada&why=we+know"+s.hidden("since")).Code)
		assert.NotContains(t, s.get("/queue"), "too many orders", "a person may")
		s.order("A-3")
		tests()
		isBraked(2)
		assert.Equal(t, leastPause, s.work("A-3"))
		s.exec(`ALTER TABLE cardwire_intents RENAME TO gone`)
		require.Error(t, s.look(t.Context()), "nobody knows that it is few")
		s.exec(`ALTER TABLE gone RENAME TO cardwire_intents`)
		isBraked(2)
		s.resolves("A-1", "executed")
		require.NoError(t, s.look(t.Context()))
		s.ramp.SetLimit(rate.Inf)
		assert.Zero(t, s.work("A-3"))
		assert.Equal(t, submitted, s.state("A-3"))
	})
}

// waits is a limiter, for what happens while an order waits for its turn.
type waits func(context.Context) error

// Wait implements cardwire.Limiter.
func (w waits) Wait(ctx context.Context) error { return w(ctx) }

// What waited for its turn as the queue was paused is not sent, and a test of the way that sends nothing
// ends no pause: the next is a moment later.
func TestWhatIsNotSentInItsTurn(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		turns := s.limiter
		for number, wait := range map[string]waits{
			"paused": func(context.Context) error {
				s.paused.Store(true)
				return nil
			},
			"no turn": func(context.Context) error { return errNoTurn },
			"canceled": func(ctx context.Context) error {
				_, err := s.cancel(ctx, "canceled", "Ada", "no longer wanted")
				return err
			},
		} {
			s.order(number)
			sent := len(s.fake.Requests())
			s.limiter = wait
			if number == "paused" {
				assert.Equal(t, leastPause, s.work(number))
				assert.Zero(t, s.found(number).Calls)
			} else {
				require.NoError(t, s.pause(t.Context(), pause{Why: "a 429", Until: time.Now().Add(time.Minute)}))
				s.elapse()
				require.NoError(t, s.look(t.Context()))
				p, err := s.pausedNow(t.Context())
				require.NoError(t, err)
				assert.WithinDuration(t, time.Now(), p.Until, s.rescueAfter()/2)
			}
			assert.Len(t, s.fake.Requests(), sent)
			s.limiter = turns
			_, err := s.resume(t.Context(), "Ada", time.Time{})
			require.NoError(t, err)
			s.ramp.SetLimit(rate.Inf)
			s.work(number)
			assert.Len(t, s.fake.Requests(), sent+1-len(number)/8, number)
		}
	})
}

// All replicas pause, and any of them resumes, also one that started later.
func TestReplicasPauseTogether(t *testing.T) {
	t.Parallel()
	source := postgresURL(t)
	first, second := openShop(t, settingsOf(source)), openShop(t, settingsOf(source))
	require.NoError(t, first.pause(t.Context(), pause{Why: "a test", Until: time.Now().Add(-time.Second)}))
	require.NoError(t, second.look(t.Context()))
	p, err := first.pausedNow(t.Context())
	require.NoError(t, err)
	assert.Empty(t, p.Why)
	assert.InDelta(t, firstRate, float64(first.ramp.Limit()), 0, "of the other's pause it learns by looking")
	first.run()
	require.NoError(t, second.pause(t.Context(), pause{Why: "a test", Until: time.Now().Add(2 * time.Second)}))
	first.order("A-1")
	first.awaitState("A-1", submitted)
}

// What was sent is personal data. Its number stays closed, and is not sent again without it.
func TestAnOrderThatEndedIsPurged(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.purgeAfter = 48 * time.Hour
		s.orders("old", "new", "waits", "mistaken", "lost")
		assert.Zero(t, s.work("old"))
		assert.Zero(t, s.work("new"))
		for _, number := range []string{"mistaken", "lost"} {
			s.fails(lostResponse)
			assert.Zero(t, s.work(number))
		}
		s.settle()
		s.resolves("mistaken", "executed")
		longAgo := time.Now().UTC().Add(-96 * time.Hour)
		s.exec(`UPDATE payouts SET created_at = $1 WHERE order_no <> 'new'`, longAgo)
		const text = "2006-01-02T15:04:05.000000Z"
		s.exec(`UPDATE cardwire_intents SET ended_at = $1 WHERE reference <> 'new'`, longAgo.Format(text))
		require.NoError(t, s.purge(t.Context()))
		kept := map[string]bool{}
		for _, number := range []string{"old", "new", "waits", "mistaken", "lost"} {
			kept[number] = strings.Contains(s.found(number).Body, "CANARY")
		}
		want := map[string]bool{"old": false, "new": true, "waits": true, "mistaken": false, "lost": true}
		assert.Equal(t, want, kept)
		s.refuses("mistaken", "send_again", "the request of this order was purged")
		s.resolves("mistaken", "not_executed")
		assert.Equal(t, []string{submitted, failed}, s.statesOf("old", "mistaken"))
		assert.Equal(t, submitted, s.order("old").State, "it is the same order, and not a new one")
		assert.Len(t, s.fake.Ledger(), 4)
	})
}

// An order that a person sends again is purged meanwhile: it keeps what is sent.
func TestAPurgeLooksAgain(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for _, number := range []string{"A-1", "A-2"} {
		s.lost(number, false)
		s.settle()
		s.resolves(number, "executed")
	}
	longAgo := time.Now().UTC().Add(-96 * time.Hour)
	s.exec(`UPDATE payouts SET created_at = $1`, longAgo)
	s.exec(`UPDATE cardwire_intents SET ended_at = $1`, longAgo.Format("2006-01-02T15:04:05.000000Z"))
	s.purgeAfter = 48 * time.Hour
	s.exec(`CREATE TRIGGER meanwhile AFTER UPDATE OF body ON payouts WHEN NEW.order_no = 'A-1' BEGIN
	UPDATE cardwire_intents SET state = 'not_sent', closed = FALSE WHERE reference = 'A-2';
	UPDATE payouts SET said = '' WHERE order_no = 'A-2';
END`)
	require.NoError(t, s.purge(t.Context()))
	assert.Equal(t, []string{submitted, queued}, s.statesOf("A-1", "A-2"))
	assert.Empty(t, s.found("A-1").Body)
	assert.NotEmpty(t, s.found("A-2").Body)
	assert.Zero(t, s.work("A-2"))
}

// Each second somebody looks whether the queue can go on, and each -sweep for lost jobs.
func TestTheQueueIsLookedAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shopInFile(t)
		s.sweepEvery = 10 * time.Second
		s.orders("A-1", "A-2")
		require.NoError(t, s.pause(t.Context(), pause{Why: "a test", Until: time.Now().Add(2500 * time.Millisecond)}))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.keep(ctx)
		}()
		look := func(after time.Duration) {
			time.Sleep(after)
			synctest.Wait()
		}
		look(2400 * time.Millisecond)
		s.exec(`DELETE FROM river_job`)
		assert.Equal(t, []string{queued, queued}, s.statesOf("A-1", "A-2"))
		look(700 * time.Millisecond)
		assert.Equal(t, []string{submitted, queued}, s.statesOf("A-1", "A-2"), "it tested the way")
		assert.InDelta(t, firstRate, float64(s.ramp.Limit()), 0)
		look(time.Second)
		assert.InDelta(t, 2*firstRate, float64(s.ramp.Limit()), 0)
		assert.Empty(t, s.jobs())
		look(10 * time.Second)
		assert.Equal(t, []string{"available"}, s.jobs())
		assert.InDelta(t, float64(rate.Inf), float64(s.ramp.Limit()), 0)
		stop()
		<-ended
	})
}

// Steps of the order A-1.
func comes(s *shop)  { s.order("A-1") }
func works(s *shop)  { assert.Zero(s.t, s.work("A-1")) }
func sweeps(s *shop) { require.NoError(s.t, s.sweep(s.t.Context())) }

func turnedAway(s *shop) {
	s.fails(cardwiretest.Fault{Status: 403})
	s.work("A-1")
}

// An end that the journal alone knew stands with the order: whatever is lost or restored of the
// journal, the order is not sent.
func TestAnEndStandsWithItsOrder(t *testing.T) {
	t.Parallel()
	executed := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"}
	refused := cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}
	closes := func(s *shop) { s.voids("A-1") }
	elsewhere := func(r cardwire.IntentResult) func(*shop) { return func(s *shop) { s.endElsewhere("A-1", r) } }
	stray := func(s *shop) { s.applies(false, "A-1 T-1 12.50 done") }
	paidBefore := func(s *shop) { require.NoError(s.t, recordPaid(s.t.Context(), s.journal, "A-1", "T-1", "Ada", "")) }
	late := func(s *shop) { // of a call that a person denied
		i := intentOf("A-1")
		i.BodySHA256, i.SettledBy = s.found("A-1").Digest, i.SettledBy.Add(-time.Minute)
		i.SendBy = i.SettledBy
		denied := cardwire.Resolution{Outcome: cardwire.OutcomeNotSent, By: "Ada", Note: "ticket 7", AsOf: i.Time}
		ctx := s.t.Context()
		require.NoError(s.t, errors.Join(s.journal.Begin(ctx, i), s.journal.Resolve(ctx, i, denied)))
		require.ErrorIs(s.t, s.journal.End(ctx, i, executed), sqljournal.ErrContradiction)
	}
	for name, tc := range map[string]struct {
		steps []func(*shop)
		want  string
		then  string // without the journal
	}{
		"closed before it came":  {[]func(*shop){closes, comes}, failed, failed},
		"refused before it came": {[]func(*shop){elsewhere(refused), comes}, failed, forgotten},
		"a stray before it came": {[]func(*shop){stray, comes}, submitted, submitted},
		"a stray":                {[]func(*shop){comes, stray}, submitted, submitted},
		"closed":                 {[]func(*shop){comes, closes}, failed, failed},
		"closed, then executed":  {[]func(*shop){comes, closes, paidBefore}, submitted, submitted},
		"refused":                {[]func(*shop){comes, elsewhere(refused)}, failed, forgotten},
		"executed":               {[]func(*shop){comes, elsewhere(executed)}, submitted, forgotten},
		"sent before, closed":    {[]func(*shop){comes, turnedAway, closes}, failed, forgotten},
		"sent, closed, executed": {[]func(*shop){comes, turnedAway, closes, paidBefore}, submitted, submitted},
		"denied, executed":       {[]func(*shop){comes, late}, submitted, submitted},
		"sent before, executed":  {[]func(*shop){comes, turnedAway, elsewhere(executed)}, submitted, forgotten},
		"sent before, given up": {[]func(*shop){comes, turnedAway, func(s *shop) {
			s.exec(`UPDATE payouts SET retried_at = $1`, time.Now().UTC().Add(-s.giveUpAfter))
		}, turnedAway}, failed, forgotten},
		"sent before, forgotten, a stray": {[]func(*shop){comes, turnedAway, (*shop).forgetAll, works, stray}, submitted, submitted},
		"another's, closed, canceled": {[]func(*shop){comes, func(s *shop) {
			s.otherRequest("A-1")
			s.exec(`UPDATE cardwire_intents SET state = 'refused', closed = TRUE`)
			assert.Equal(s.t, 200, s.cancelAs("A-1").StatusCode)
		}}, failed, failed},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				for _, step := range tc.steps {
					step(s)
				}
				sent := len(s.fake.Requests())
				s.paused.Store(false)
				assert.Equal(t, tc.want, s.state("A-1"))
				if tc.want != submitted || tc.then != forgotten { // it was not a call that ended so
					s.exec(`UPDATE cardwire_intents SET state = 'not_sent', closed = FALSE`)
					assert.Equal(t, tc.want, s.state("A-1"))
					s.work("A-1")
				}
				s.forgetAll()
				assert.Equal(t, tc.then, s.state("A-1"))
				s.work("A-1")
				sweeps(s)
				assert.Len(t, s.fake.Requests(), sent)
			})
		})
	}
}

// What others left open under its number is kept with the order: an older journal queues it for nobody.
func TestWhatOthersLeftOpenStandsWithItsOrder(t *testing.T) {
	t.Parallel()
	unknown := func(s *shop) { s.endElsewhere("A-1", cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}) }
	other := func(s *shop) { s.otherRequest("A-1") }
	pending := func(s *shop) { // as another program recorded of a statement
		e, err := s.journal.Lookup(s.t.Context(), operation, "A-1")
		require.NoError(s.t, err)
		f := sqljournal.Finding{Kind: sqljournal.FindingPending, Op: operation, Reference: "A-1", Entry: e}
		require.NoError(s.t, s.journal.Apply(s.t.Context(), f, "Ada", ""))
	}
	for name, tc := range map[string]struct {
		before, after []func(*shop) // the backup
		want, then    string
	}{
		"unknown":                   {[]func(*shop){comes}, []func(*shop){unknown}, unresolved, forgotten},
		"unknown, before it came":   {nil, []func(*shop){unknown, comes}, unresolved, forgotten},
		"unknown, after its call":   {[]func(*shop){comes, turnedAway}, []func(*shop){unknown}, unresolved, forgotten},
		"pending, after its call":   {[]func(*shop){comes, turnedAway}, []func(*shop){pending}, unresolved, held},
		"another's":                 {[]func(*shop){comes}, []func(*shop){other}, conflicted, held},
		"another's, before it came": {nil, []func(*shop){other, comes}, conflicted, held},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				for _, step := range tc.before {
					step(s)
				}
				restore := s.backUp(journalTables)
				for _, step := range tc.after {
					step(s)
				}
				assert.Equal(t, tc.want, s.state("A-1"))
				sent := len(s.fake.Requests())
				restore()
				for range 2 {
					assert.Equal(t, tc.then, s.state("A-1"))
					s.work("A-1")
					sweeps(s)
				}
				assert.Len(t, s.fake.Requests(), sent)
			})
		})
	}
}

// What comes between a worker's look and its call stops the call, and leaves none that was not made.
func TestACallThatAnotherForestalled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		comes      func(*shop)
		want, said string
		calls      int64
	}{
		"a pending line":    {func(s *shop) { s.applies(false, "A-1 T-1 12.50 processing") }, unresolved, held, 0},
		"an executed line":  {func(s *shop) { s.applies(false, "A-1 T-1 12.50 done") }, submitted, submitted, 0},
		"another's request": {func(s *shop) { s.otherRequest("A-1") }, conflicted, held, 0},
		"another's call": {func(s *shop) {
			s.endElsewhere("A-1", cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted})
		}, submitted, "", 1},
		"it was canceled": {func(s *shop) { s.voids("A-1") }, failed, failed, 0},
		"a hold":          {(*shop).putOnHold, held, held, 0},
		"it was canceled, and the journal lost that": {func(s *shop) {
			assert.Equal(s.t, 200, s.cancelAs("A-1").StatusCode)
			s.forgetAll()
		}, canceled, canceled, 0},
		"a call, and a journal that lost it": {func(s *shop) {
			works(s)
			s.forgetAll()
		}, forgotten, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.order("A-1")
				o, err := s.take(t.Context(), "A-1")
				require.NoError(t, err)
				tc.comes(s)
				sent := len(s.fake.Requests())
				_, err = s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
				_, trouble, err := s.follow(t.Context(), o, err)
				require.NoError(t, err)
				assert.Nil(t, trouble, "the service is well")
				o = s.found("A-1")
				assert.Equal(t, []string{tc.want, tc.said}, []string{o.State, o.Said})
				assert.Equal(t, tc.calls, o.Calls)
				assert.Len(t, s.fake.Requests(), sent)
			})
		})
	}
}

// As behind a pool of transactions: each statement has a session of its own.
func TestAWorkerNeedsNoSession(t *testing.T) {
	t.Parallel()
	s := openShop(t, settingsOf(postgresURL(t)+"&default_query_exec_mode=exec"))
	s.order("A-1")
	s.work("A-1")
	prepared := ""
	_ = s.db.QueryRowContext(t.Context(), `SELECT name FROM pg_prepared_statements`).Scan(&prepared)
	assert.Empty(t, prepared)
}

// Two deployments at once wait for each other.
func TestTwoMigrationsAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				s, err := open(t.Context(), settingsOf(source), slog.New(slog.DiscardHandler))
				if assert.NoError(t, err) {
					assert.NoError(t, s.close())
				}
			})
		}
		group.Wait()
	})
}
