package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// What the worker does after each step, and what the order then is.
func TestTheWorkerDoesWhatTheStepSays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  cardwiretest.Fault
		state  State
		snooze time.Duration
		paused string
	}{
		"done": {cardwiretest.Fault{}, StateSubmitted, 0, ""},
		"fail": {cardwiretest.Fault{Status: 422}, StateFailed, 0, ""},
		"a 429": {cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "7"}, StateQueued,
			time.Second, inTrouble},
		"a refused key": {cardwiretest.Fault{Status: 401}, StateQueued, time.Second, inTrouble},
		"retry":         {cardwiretest.Fault{Status: 403}, StateQueued, time.Second, ""},
		"reconcile":     {lostResponse, StateUnresolved, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.orders("A-1")
				if name != "done" {
					s.willFail(tc.fault)
				}
				assert.Equal(t, tc.snooze, s.work("A-1"))
				assert.Equal(t, []State{tc.state}, s.states("A-1"))
				assert.Contains(t, s.log.String(), "order=A-1 what="+string(tc.state)+" ")
				assert.Equal(t, tc.paused, s.paused().Kind)
				assert.Len(t, s.fake.Requests(), 1)
			})
		})
	}
}

// Why a call failed is in the journal's result, and the service's words are the order's. The log has them without what
// they quote of the request, and the service's number of what it accepted.
func TestTheReasonOutlivesTheProgram(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-2", "A-3")
		p := paramsFor("A-1")
		p.ReceiverNativeFirstName = "Grace"
		_, err := s.SubmitNow(t.Context(), p)
		require.NoError(t, err)
		s.willFail(cardwiretest.Fault{Status: 403, Message: "the account of Grace is closed"})
		s.work("A-1")
		o, err := s.Order(t.Context(), "A-1")
		require.NoError(t, err)
		assert.Equal(t, `refused, HTTP 403, code 403`, o.Reason, "Changed is told nothing of Grace")
		assert.Equal(t, o.Reason+`, "the account of Grace is closed"`, s.details("A-1").Reason)
		require.NoError(t, s.cancels("A-1"))
		assert.Equal(t, []string{"", `ticket 7, "the account of Grace is closed"`},
			[]string{s.found("A-1").Reason, s.details("A-1").Reason})
		assert.Contains(t, s.log.String(),
			`A-1: refused, HTTP 403, code 403, \"the account of … is closed\": check the base URL`)
		assert.NotContains(t, s.log.String(), "Grace")
		s.work("A-3")
		assert.Contains(t, s.log.String(),
			`order=A-3 what=submitted by=worker why="" service_id=`+s.found("A-3").ServiceID)
		s.do(`UPDATE @intents SET state = 'open' WHERE reference = 'A-2'`)
		assert.Equal(t, "the result of the call is not on record", s.found("A-2").Reason,
			"a process may keep it")
	})
}

// While another worker's call is in progress, the order stays with that one.
func TestAWorkerWaitsForAnother(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		s.willFail(cardwiretest.Fault{Kind: cardwiretest.FaultHang, Executed: true})
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		group.Go(func() { _, _ = s.client.CreateTransfer(ctx, paramsFor("A-1")) })
		require.Eventually(t, func() bool { return s.fake.Executions(operation, "A-1") == 1 }, waitFor, tick)
		assert.Equal(t, []State{StateSending}, s.states("A-1"))
		assert.Positive(t, s.work("A-1"))
		assert.Len(t, s.fake.Requests(), 1)
		snooze, _, err := s.applyStep(t.Context(), order{Order: Order{Number: "A-1"}}, &cardwire.Error{
			Op: operation, Err: &cardwire.DuplicateIntent{InProgress: true}, RetryAfter: 99 * time.Hour,
		})
		require.NoError(t, err)
		assert.Equal(t, maxPause, snooze, "a clock may be wrong")
	})
}

// gated passes requests on when the gate opens.
type gated struct {
	http.RoundTripper
	gate chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (g gated) RoundTrip(r *http.Request) (*http.Response, error) {
	<-g.gate
	return g.RoundTripper.RoundTrip(r)
}

// The job's context is done where the program is told to stop: the call comes to its end, and Run waits for it.
func TestStoppingEndsNoCall(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		fake, gate := cardwiretest.New(), make(chan struct{})
		s := openShop(t, source, func(c *Config) {
			c.Options = []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: gated{fake, gate}})}
		})
		s.orders("A-1", "A-2")
		stop := s.run()
		s.await("A-1", StateSending)
		s.await("A-2", StateSending)
		time.AfterFunc(100*time.Millisecond, func() { close(gate) })
		stop()
		assert.Equal(t, []State{StateSubmitted, StateSubmitted}, s.states("A-1", "A-2"))
		for range 3 { // nor does a stop right after a start hang
			s.run()()
		}
	})
}

// A job that died with its process is run again, also where another program's client is the leader, which rescues jobs.
func TestALostJobIsRun(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, source, func(c *Config) { c.Timeout = time.Second })
		s.orders("died")
		s.do(`UPDATE @river_job SET state = 'running', attempt = 1, attempted_at = $1`,
			time.Now().UTC().Add(-time.Minute))
		s.do(`INSERT INTO @river_leader (leader_id, elected_at, expires_at) VALUES ('another', NOW(), $1)`,
			s.moment(time.Now().Add(time.Hour)))
		s.run()
		s.await("died", StateSubmitted)
		assert.Len(t, s.fake.Ledger(), 1)
		require.ErrorContains(t, s.Run(t.Context()), "Run is running already")
	})
}

// An order has one job that will run, however often it is woken, and whatever became of its last.
// Another's is left alone.
func TestAnOrderIsWokenOnce(t *testing.T) {
	const set = `UPDATE @river_job SET `
	const ended = set + `finalized_at = NOW(), state = `
	const its = ` WHERE id = (SELECT job_id FROM @payouts WHERE order_no = $1)`
	eachShop(t, func(t *testing.T, s *shop) {
		changes := map[string]string{
			"snoozed":   set + `scheduled_at = '2999-01-31 15:04:05', state = 'scheduled'`,
			"deleted":   `DELETE FROM @river_job`,
			"completed": ended + `'completed'`, "cancelled": ended + `'cancelled'`, "discarded": ended + `'discarded'`,
			"running":         set + `state = 'running', attempted_at = NOW()`,
			"died":            set + `state = 'running', attempted_at = '2020-01-31 15:04:05'`,
			"another kind":    ended + `'completed', kind = 'another'`,
			"another order's": ended + `'completed', args = '{"order":"another"}'`,
		}
		for number, change := range changes {
			s.orders(number)
			s.do(change+its, number)
		}
		var group sync.WaitGroup
		for range 3 { // replicas
			group.Go(func() { assert.NoError(t, s.awaken(t.Context())) })
		}
		group.Wait()
		is := func(state, number string) {
			t.Helper()
			assert.Equal(t, []string{state}, valuesOf[string](s,
				`SELECT j.state FROM @river_job j WHERE j.kind = 'cardwire_payout'
	AND j.args ->> 'order' = $1 AND NOT (j.state = 'running' AND j.attempted_at < '2021-01-01')`, number), number)
		}
		for number := range changes {
			awakened := map[string]string{"running": "running"}[number]
			is(cmp.Or(awakened, map[string]string{"snoozed": "scheduled"}[number], "available"), number)
			require.NoError(t, s.withOrderLocked(t.Context(), number,
				func(tx *sql.Tx, o order) error { return s.wake(t.Context(), tx, o) }))
			is(cmp.Or(awakened, "available"), number)
		}
		assert.Equal(t, []string{"completed", "completed"}, valuesOf[string](s,
			`SELECT state FROM @river_job WHERE kind = 'another' OR args ->> 'order' = 'another'`))
	})
}

// waited makes as much of an order's day pass.
func (s *shop) waited(number string, d time.Duration) {
	s.t.Helper()
	s.do(`UPDATE @payouts SET waited = $2 WHERE order_no = $1`, number, int64(d/time.Second))
}

// After a day in which it could have been sent an order fails; the number is closed first. Hours without a
// replica, or in which nothing is sent, are no part of it.
func TestAfterADayAnOrderIsVoidedAndFails(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		s.fake.Fail(operation, cardwiretest.Fault{Status: 403}, 4)
		assert.Equal(t, minPause, s.work("A-1"))
		s.do(`UPDATE @payouts SET tried_at = $1`, s.moment(time.Now().Add(-99*time.Hour)))
		assert.Equal(t, 3*time.Second, s.work("A-1"), "as long as it has waited")
		assert.LessOrEqual(t, s.found("A-1").Waited, int64(3), "a second was to pass")
		s.waited("A-1", 23*time.Hour)
		assert.Equal(t, maxPause, s.work("A-1"))
		assert.Equal(t, []State{StateQueued}, s.states("A-1"))
		s.waited("A-1", giveUpAfter)
		s.clearTroubles() // of other orders
		s.work("A-1")
		assert.Equal(t, []State{StateFailed}, s.states("A-1"))
		assert.Contains(t, s.log.String(), "level=ERROR msg=payout order=A-1 what=failed by=worker")
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err), "nothing sends it later")
		assert.Empty(t, s.fake.Ledger())
	})
}

// What this release of the client refuses to send, or would send as something else, is not sent; the page
// says why, and after its day it fails.
func TestAnOrderThatTheClientRefuses(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("digest", "body")
		s.do(`UPDATE @payouts SET body_sha256 = 'of an older release' WHERE order_no = 'digest'`)
		s.do(`UPDATE @intents SET body_sha256 = 'of an older release' WHERE reference = 'digest'`)
		s.do(`UPDATE @payouts SET body = '{"merchantOrderNo":"body"}' WHERE order_no = 'body'`)
		for _, number := range []string{"digest", "body"} {
			assert.Equal(t, minPause, s.work(number))
			assert.Contains(t, s.details(number).Reason, "this release of the client refuses")
			s.waited(number, giveUpAfter)
			s.work(number)
			assert.Equal(t, []State{StateFailed}, s.states(number))
		}
		assert.Empty(t, s.fake.Requests())
	})
}

// What was sent is personal data. Its number stays closed, and is not sent again without it.
func TestAnOrderThatEndedIsPurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, source, func(c *Config) { c.PurgeAfter = 48 * time.Hour })
		s.orders("old", "new", "waits", "untold")
		s.work("old")
		s.work("new")
		s.loseResponse("mistaken", true)
		s.loseResponse("lost", true)
		s.resolves("mistaken", "executed")
		s.tells()
		s.work("untold")
		longAgo := s.moment(time.Now().Add(-96 * time.Hour))
		s.do(`UPDATE @payouts SET created_at = $1 WHERE order_no <> 'new'`, longAgo)
		s.do(`UPDATE @intents SET ended_at = $1 WHERE reference <> 'new'`, longAgo)
		require.NoError(t, s.purge(t.Context()))
		assert.Equal(t, []string{"mistaken", "old"},
			valuesOf[string](s, `SELECT order_no FROM @payouts WHERE body = '' ORDER BY order_no`))
		s.do(`UPDATE @intents SET state = 'not_sent' WHERE reference = 'mistaken'`)
		assert.Equal(t, []State{StateSubmitted, StateUnresolved}, s.states("old", "mistaken"))
		o, err := s.SubmitNow(s.t.Context(), paramsFor("old"))
		require.NoError(t, err)
		assert.Equal(t, StateSubmitted, o.State, "it is the same order, and not a new one")
	})
}

// A trace goes from the transaction in which the order was submitted to its call.
func TestTracesGoFromSubmitToTheCall(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		exported := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported))
		s := openShop(t, source, func(c *Config) { c.TracerProvider = provider })
		ctx, checkout := provider.Tracer("test").Start(t.Context(), "checkout")
		tx, err := s.db.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = s.Submit(ctx, tx, paramsFor("A-1"))
		require.NoError(t, errors.Join(err, tx.Commit()))
		checkout.End()
		stop := s.run()
		s.await("A-1", StateSubmitted)
		stop()
		spans := map[string]tracetest.SpanStub{}
		for _, span := range exported.GetSpans() {
			spans[span.Name] = span
		}
		assert.Equal(t, spans["checkout"].SpanContext.SpanID(), spans["payout"].Parent.SpanID())
		assert.Equal(t, spans["payout"].SpanContext.SpanID(), spans["cardwire.CreateTransfer"].Parent.SpanID())
	})
}
