package payouts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestResolve(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.loseResponse("A-1", true)
		s.loseResponse("A-2", false)
		s.refuses("A-1", "paid", "another state")
		s.resolves("A-1", "executed", "T-1")
		assert.Equal(t, "T-1", s.found("A-1").ServiceID)
		stop := s.run()
		s.resolves("A-2", "send_again")
		s.await("A-2", StateSubmitted)
		stop()
		assert.Equal(t, []int64{2}, valuesOf[int64](s, `SELECT count(*) FROM @river_job`),
			"one for each order, for all its life")

		s.loseResponse("A-3", false)
		call := s.found("A-3").Call
		asked := func(outcome string, at time.Time) Resolution {
			return Resolution{Call: call, Outcome: outcome, AsOf: at}
		}
		later := time.Date(2999, time.January, 31, 15, 4, 5, 0, time.UTC)
		for name, tc := range map[string]struct {
			number string
			r      Resolution
			want   error
		}{
			"which call?":     {"A-3", Resolution{Outcome: "executed"}, cardwire.ErrInvalidParams},
			"another call":    {"A-3", Resolution{Call: "x", Outcome: "not_executed", AsOf: time.Now()}, ErrConflict},
			"no such outcome": {"A-3", asked("perhaps", later), cardwire.ErrInvalidParams},
			"when?":           {"A-3", asked("not_executed", time.Time{}), cardwire.ErrInvalidParams},
			"in the future":   {"A-3", asked("not_executed", later), ErrConflict},
			"before the call": {"A-3", asked("not_executed", time.Unix(0, 0)), ErrConflict},
			"no such order":   {"A-9", asked("executed", later), ErrNoOrder},
			"a NUL":           {"A\x00", asked("executed", later), ErrNoOrder},
		} {
			tc.r.By, tc.r.Why = "Ada", "ticket 7"
			_, err := s.Resolve(t.Context(), tc.number, tc.r)
			require.ErrorIs(t, err, tc.want, name)
		}
		for name, r := range map[string]Resolution{
			"a number, and nothing": {Outcome: "not_executed", AsOf: time.Now(), ServiceID: "T", By: "Ada", Why: "x"},
			"a NUL of the service":  {Outcome: "executed", ServiceID: "T\x00", By: "Ada", Why: "x"},
			"no UTF-8":              {Outcome: "executed", By: "Ada", Why: "\xff"},
			"who?":                  {Outcome: "executed", Why: "x"},
			"invisible":             {Outcome: "executed", By: "A\u200bda", Why: "x"},
			"why?":                  {Outcome: "executed", By: "Ada"},
		} {
			r.Call = call
			_, err := s.Resolve(t.Context(), "A-3", r)
			require.ErrorIs(t, err, cardwire.ErrInvalidParams, name)
		}
		assert.Equal(t, []State{StateUnresolved}, s.states("A-3"))
		events, err := s.journal.History(t.Context(), operation, "A-1")
		require.NoError(t, err)
		last := events[len(events)-1]
		assert.Equal(t, []string{"resolved", "Ada", "ticket 7"}, []string{last.Kind, last.By, last.Note})
	})
}

// What a person said by mistake is put right, by the rules of the journal. What was told as ended is never
// sent again.
func TestCorrections(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.loseResponse("A-1", false)
		s.loseResponse("A-2", false)
		s.resolves("A-1", "executed", "T-1")
		s.refuses("A-2", "executed", "the service ID belongs to reference A-1", "T-1")
		s.resolves("A-1", "paid", "T-2") // it was mistyped
		s.resolves("A-1", "paid")
		assert.Equal(t, "T-2", s.found("A-1").ServiceID)
		assert.Contains(t, s.details("A-1").Outcomes, "not_executed")
		s.tells()
		s.resolves("A-1", "not_executed") // a paid one that was not
		assert.Equal(t, []State{StateFailed}, s.states("A-1"))
		s.refuses("A-1", "send_again", "the reference was closed")
		s.resolves("A-1", "executed")
		assert.Equal(t, []State{StateSubmitted}, s.states("A-1"), "that it was paid is to be said again")
		s.refuses("A-1", "send_again", "the reference was closed")
		s.resolves("A-2", "send_again")
		assert.Zero(t, s.work("A-2"))
		s.refuses("A-2", "not_executed", "a response proved that it was executed")
		assert.Equal(t, []string{"paid", "returned"}, s.details("A-2").Outcomes)
		s.orders("A-4")
		s.refuses("A-4", "send_again", "another state")
		s.loseResponse("A-5", false)
		s.resolves("A-5", "executed")
		s.refuses("A-5", "send_again", "it was recorded as executed")
	})
}

func TestCancel(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1", "A-2")
		_, err := s.Cancel(t.Context(), "A-1", "Ada", "")
		require.ErrorIs(t, err, cardwire.ErrInvalidParams)
		require.NoError(t, s.cancels("A-1"))
		assert.Equal(t, []State{StateCanceled}, s.states("A-1"))
		require.NoError(t, s.cancels("A-1"), "as where the response was lost")
		require.ErrorIs(t, s.cancels("A-9"), ErrNoOrder)
		s.willFail(cardwiretest.Fault{Status: 422})
		s.work("A-2")
		require.NoError(t, s.cancels("A-2"))
		assert.Equal(t, []State{StateFailed}, s.states("A-2"))
		s.loseResponse("A-3", true)
		require.ErrorIs(t, s.cancels("A-3"), ErrConflict, "it may have been executed")
		assert.NotContains(t, s.log.String(), "ticket 7", "a person's words may be about a person")
		_, err = s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err))
	})
}

// A person's action, the journal's change and the job's wake-up are one transaction: where
// one fails, nothing has changed.
func TestAPersonsActionIsOneTransaction(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.loseResponse("A-1", false)
		s.orders("A-2")
		rename := func(from, to string) {
			name := s.sql(to)
			s.do(`ALTER TABLE ` + from + ` RENAME TO ` + name[strings.LastIndexByte(name, '.')+1:])
		}
		rename(`@payouts_history`, `@payouts_gone`)
		require.NotErrorIs(t, s.cancels("A-2"), ErrConflict)
		rename(`@river_job`, `@river_gone`)
		require.NotErrorIs(t, s.resolveAs("A-1", "send_again"), ErrConflict)
		assert.Equal(t, []State{StateUnresolved, StateQueued}, s.states("A-1", "A-2"))
		rename(`@river_gone`, `@river_job`)
		rename(`@payouts_gone`, `@payouts_history`)
		s.resolves("A-1", "send_again")
		require.NoError(t, s.cancels("A-2"))
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, []State{StateSubmitted, StateCanceled}, s.states("A-1", "A-2"))
	})
}

// Several orders are resolved at once, each for itself, of the call that each has.
func TestSeveralOrdersAreResolvedAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for _, number := range []string{"A-1", "A-2", "A-3"} {
			s.loseResponse(number, false)
		}
		s.resolves("A-3", "executed")
		r := Resolution{Outcome: "send_again", AsOf: time.Now(), By: "Ada", Why: "ticket 7", ServiceID: "T"}
		_, err := s.ResolveAll(t.Context(), []string{"A-1"}, r)
		require.ErrorIs(t, err, cardwire.ErrInvalidParams)
		r.ServiceID = ""
		resolved, err := s.ResolveAll(t.Context(), []string{"A-1", "A-9", "A-2", "A-3"}, r)
		require.ErrorIs(t, err, ErrConflict)
		require.ErrorIs(t, err, ErrNoOrder)
		require.ErrorContains(t, err, `order "A-3": `)
		require.Len(t, resolved, 2)
		assert.Equal(t, []State{StateQueued, StateQueued, StateSubmitted}, s.states("A-1", resolved[1].Number, "A-3"))
		for _, number := range []string{"A-1", "A-2"} {
			assert.Zero(t, s.work(number))
		}
	})
}

// Where two people are asked for, who decided last about an order does not have it sent again, and who holds does not
// release.
func TestFourEyes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, source, func(c *Config) { c.FourEyes = true })
		again := func(by string) error {
			_, err := s.ResolveAll(t.Context(), []string{"A-1"},
				Resolution{Outcome: "send_again", AsOf: time.Now(), By: by, Why: "ticket 7"})
			return err
		}
		s.loseResponse("A-1", false)
		require.NoError(t, again("Ada"))
		s.willFail(lostResponse)
		s.work("A-1")
		s.do(`UPDATE @intents SET send_by = time, settled_by = time WHERE state = 'unknown'`)
		err := again("ada")
		require.ErrorIs(t, err, ErrConflict)
		require.ErrorContains(t, err, "Ada decided last: another person must do this")
		assert.Equal(t, []State{StateUnresolved}, s.states("A-1"))
		require.NoError(t, again("Eve"))
		require.NoError(t, s.Hold(t.Context(), "Eve", "a restore"))
		s.settled()
		require.ErrorIs(t, s.Moved(t.Context(), "Eve", "no restore"), ErrConflict)
		require.ErrorContains(t, s.Release(t.Context(), "Eve", "compared"), "another person must do this")
		require.NoError(t, s.Release(t.Context(), "Ada", "compared"))
		assert.Empty(t, s.status().Kind)
	})
}

// What can be recorded of an order is what is accepted.
func TestTheOutcomesOfAnOrder(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("queued")
		s.row("submitted", `state = 'executed', proved = TRUE`)
		s.row("failed", `state = 'refused', closed = TRUE`)
		s.row("said", `state = 'executed'`)
		s.loseResponse("lost", false)
		s.loseResponse("lost, closed", false)
		s.do(`UPDATE @intents SET closed = TRUE WHERE reference = 'lost, closed'`)
		for number, want := range map[string][]string{
			"queued": nil, "submitted": {"paid", "returned"}, "failed": {"executed"},
			"said":         {"paid", "returned", "executed", "not_executed"},
			"lost":         {"executed", "not_executed", "send_again"},
			"lost, closed": {"executed", "not_executed"},
		} {
			d := s.details(number)
			assert.Equal(t, want, d.Outcomes, number)
			assert.Equal(t, number == "queued", d.MayCancel)
			assert.Equal(t, strings.HasPrefix(number, "lost"), !d.CallFrom.IsZero())
			assert.Equal(t, "account …NARY", d.Payee)
			for outcome := range outcomes {
				if want != nil && !slices.Contains(want, outcome) { // also where it is what is on record
					_ = s.resolveAs(number, outcome)
					assert.Equal(t, d.Order.State, s.found(number).State, "%s: %s", number, outcome)
				}
			}
		}
	})
}
