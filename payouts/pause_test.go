package payouts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func (s *shop) paused() pause {
	s.t.Helper()
	p, err := s.pausedNow(s.t.Context(), s.db)
	require.NoError(s.t, err)
	return p
}

func (s *shop) pauses(p pause) {
	s.t.Helper()
	_, err := s.pause(s.t.Context(), p)
	require.NoError(s.t, err)
}

// elapse ends the wait for the next probe.
func (s *shop) elapse() {
	s.t.Helper()
	s.do(`UPDATE @payouts_control SET until = $1`, s.moment(time.Now().Add(-time.Second)))
}

func (s *shop) looks() {
	s.t.Helper()
	require.NoError(s.t, s.checkPause(s.t.Context()))
}

// On the way to and from the service the queue, and not the order, waits.
func TestTroublePausesTheQueue(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1", "A-2")
		s.willFail(cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "3600"})
		assert.Equal(t, time.Second, s.work("A-1"))
		assert.Equal(t, time.Second, s.work("A-2"), "which was fetched before")
		assert.Len(t, s.fake.Requests(), 1, "nothing is sent")
		assert.WithinDuration(t, time.Now().Add(time.Hour), s.paused().Until, time.Minute)
		assert.Equal(t, s.paused().Until, s.status().Until)
		assert.Equal(t, 1, strings.Count(s.log.String(), `msg="nothing is sent"`), "logged once")
		s.looks()
		assert.Len(t, s.fake.Requests(), 1, "before its time")
		s.elapse() // the first probe fails, and the next one is later
		s.willFail(cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited})
		s.looks()
		assert.Len(t, s.fake.Requests(), 2, "one order is the probe")
		assert.Equal(t, 1, s.paused().Probes)
		s.elapse()
		s.looks()
		assert.Empty(t, s.paused().Kind)
		assert.ElementsMatch(t, []State{StateQueued, StateSubmitted}, s.states("A-1", "A-2"))
	})
}

// One order that the service refuses for now stops no other: the next test is another one, its own day
// goes on, and alone it never pauses the queue.
func TestOneOrderStopsNoOther(t *testing.T) {
	for _, status := range []int{401, 403, 404, 405, 413, 429} {
		t.Run(time.Duration(status).String(), func(t *testing.T) {
			t.Parallel()
			s := openPicky(t, newFile(t), map[string]cardwiretest.Fault{"bad": {Status: status}})
			s.orders("bad", "good-1", "good-2", "good-3")
			for range maxTroubles {
				s.work("bad")
				s.do(`UPDATE @payouts SET tried_at = $1 WHERE order_no = 'bad'`, s.moment(time.Now().Add(-time.Hour)))
			}
			assert.Equal(t, status == 401 || status == 429, s.paused().Kind == inTrouble)
			for _, number := range []string{"good-1", "good-2", "good-3"} {
				if s.paused().Kind == inTrouble { // the probe is another order
					s.key.asked = time.Time{} // a minute later
					s.elapse()
					s.looks()
				}
				s.work(number)
				assert.Equal(t, []State{StateSubmitted}, s.states(number))
				s.work("bad")
			}
			s.key.asked = time.Time{}
			s.elapse()
			s.looks()
			s.work("bad")
			assert.Positive(t, s.found("bad").Waited, "its day goes on, also while nothing else is sent")
			assert.Equal(t, []State{StateQueued}, s.states("bad"))
		})
	}
}

// Orders in a row that do nothing pause the queue, and the pause says the service's reason.
func TestSomeOrdersThatFailPauseTheQueue(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("A-1", "A-2", "A-3", "A-4")
	s.fake.Fail(operation, cardwiretest.Fault{Status: 403}, 5)
	for _, number := range []string{"A-1", "A-2", "A-1", "A-2"} {
		s.work(number)
		assert.Empty(t, s.paused().Kind)
	}
	s.work("A-3")
	assert.Contains(t, s.paused().Why, "HTTP 403")
}

// The queue waits for people where too much is unresolved. A probe does not lift the brake.
func TestTheBrakePausesTheQueue(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, source, func(c *Config) { c.Brake = 2 })
		s.loseResponse("A-1", true)
		assert.Empty(t, s.paused().Kind)
		s.orders("A-2", "A-3")
		s.pauses(pause{Kind: inTrouble, Why: "a 429", Until: time.Now().Add(time.Minute)})
		s.elapse()
		s.willFail(lostResponse)
		s.looks()
		assert.Equal(t, brake, s.paused().Kind)
		assert.Equal(t, "too many orders are unresolved: resolve them first (unresolved: 2, Brake: 2)", s.status().Why)
		s.looks()
		assert.Equal(t, minPause, s.work("A-3"))
		require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
		require.NoError(t, s.Resume(t.Context(), "Ada", "none"))
		assert.Equal(t, brake, s.paused().Kind, "a person's pause does not lift it")
		s.resolves("A-1", "executed")
		s.looks()
		assert.Zero(t, s.work("A-3"))
		assert.Equal(t, []State{StateSubmitted}, s.states("A-3"))
	})
}

// A person stops and resumes. A hold is no pause.
func TestAPersonPauses(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		require.NoError(t, s.Resume(t.Context(), "Ada", "nothing stops it"))
		require.ErrorIs(t, s.Pause(t.Context(), "Ada", ""), cardwire.ErrInvalidParams)
		require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
		assert.Equal(t, minPause, s.work("A-1"))
		assert.Equal(t, []string{"by hand", "paused by Ada: a suspicion"}, []string{s.status().Kind, s.status().Why})
		require.NoError(t, s.Pause(t.Context(), "Eve", "another"))
		assert.Equal(t, []string{"a suspicion"},
			valuesOf[string](s, `SELECT note FROM @payouts_history WHERE what = 'paused'`))
		s.looks()
		require.NoError(t, s.Hold(t.Context(), "Ada", "a restore")) // which hides it
		require.ErrorIs(t, s.Resume(t.Context(), "Ada", "all is well"), ErrConflict)
		s.do(`UPDATE @intents_journal SET held_by = '', oldest = 0`)
		seen := s.status().Since
		require.NoError(t, s.ResumeSince(t.Context(), seen, "Ada", "all is well"))
		require.ErrorIs(t, s.ResumeSince(t.Context(), seen, "Ada", "again"), ErrConflict)
		require.NoError(t, s.Pause(t.Context(), "Eve", "another"))
		require.ErrorIs(t, s.ResumeSince(t.Context(), seen, "Ada", "of the first"), ErrConflict)
		assert.Equal(t, "paused by Eve: another", s.status().Why, "which Ada has not seen")
		require.NoError(t, s.Resume(t.Context(), "Ada", "all is well"))
		assert.Equal(t, []string{"paused", "resumed", "paused", "resumed"},
			valuesOf[string](s, `SELECT what FROM @payouts_history ORDER BY at`))
		assert.Zero(t, s.work("A-1"))
	})
}

// All replicas pause, and any of them resumes. Meanwhile a replica looks at few jobs, however many wait.
func TestReplicasPauseTogether(t *testing.T) {
	t.Parallel()
	source := newDatabase(t)
	first, second := openShop(t, source, nil), openShop(t, source, nil)
	first.pauses(pause{Kind: inTrouble, Why: "a test", Until: time.Now().Add(time.Hour)})
	second.orders("A-1")
	second.do(`INSERT INTO @river_job (args, kind, max_attempts, queue, state)
SELECT args, kind, max_attempts, queue, state FROM @river_job, generate_series(1, 10000)`)
	second.looks() // as it does before its first jobs, unless the machine is slow
	stop := second.run()
	looked := func() int64 {
		return valuesOf[int64](second,
			`SELECT count(*) FROM @river_job WHERE state = 'running' OR metadata ? 'snoozes'`)[0]
	}
	require.Eventually(t, func() bool { return looked() >= 6 }, waitFor, tick)
	began, before := time.Now(), looked()
	require.Eventually(t, func() bool { return looked() >= before+8 }, waitFor, tick)
	assert.Less(t, looked()-before, 6+int64(firstRate*time.Since(began).Seconds()))
	first.elapse()
	first.looks()
	second.await("A-1", StateSubmitted)
	stop()
}

// A person's pause takes the place of one that would end by itself.
func TestAPersonPausesWhatIsPaused(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{inTrouble, brake} {
		t.Run(kind, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.orders("A-1")
				s.pauses(pause{Kind: kind, Why: "a test", Until: time.Now().Add(time.Hour)})
				require.NoError(t, s.Hold(t.Context(), "Ada", "a restore")) // which hides it
				require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
				s.do(`UPDATE @intents_journal SET held_by = '', oldest = 0`)
				s.elapse()
				s.looks()
				s.work("A-1")
				assert.Equal(t, byHand, s.paused().Kind)
				assert.Equal(t, []State{StateQueued}, s.states("A-1"))
			})
		})
	}
}

// waits is a limiter, for what happens while an order waits for its turn.
type waits func(context.Context) error

// Wait implements cardwire.Limiter.
func (w waits) Wait(ctx context.Context) error { return w(ctx) }

// What waited for its turn as payments were stopped is not sent.
func TestWhatIsStoppedInItsTurnIsNotSent(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*shop) error{
		"a pause": func(s *shop) error { s.pauses(pause{Kind: byHand, Why: "a test"}); return nil },
		"a hold":  func(s *shop) error { return s.Hold(s.t.Context(), "Ada", "a restore") },
		"no turn": func(*shop) error { return errNoTurn },
		"it is canceled": func(s *shop) error {
			return s.cancels("A-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.orders("A-1")
				s.limiter = waits(func(context.Context) error { return wait(s) })
				s.work("A-1")
				assert.Empty(t, s.fake.Requests())
			})
		})
	}
}

// Each second somebody looks whether the queue can go on, and each minute for lost jobs.
func TestTheQueueIsLookedAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shopInFile(t)
		s.orders("A-1", "A-2")
		s.pauses(pause{Kind: inTrouble, Why: "a test", Until: time.Now().Add(2500 * time.Millisecond)})
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { s.maintain(ctx) })
		look := func(after time.Duration) {
			time.Sleep(after)
			synctest.Wait()
		}
		look(2400 * time.Millisecond)
		s.do(`DELETE FROM @river_job`)
		assert.Equal(t, []State{StateQueued, StateQueued}, s.states("A-1", "A-2"))
		look(700 * time.Millisecond)
		assert.Equal(t, []State{StateSubmitted, StateQueued}, s.states("A-1", "A-2"), "it was the probe")
		assert.InDelta(t, firstRate, float64(s.ramp.Limit()), 0)
		look(time.Second)
		assert.InDelta(t, 2*firstRate, float64(s.ramp.Limit()), 0)
		look(time.Second)
		assert.InDelta(t, 4*firstRate, float64(s.ramp.Limit()), 0)
		look(time.Minute)
		assert.Equal(t, []int64{1}, valuesOf[int64](s, `SELECT count(*) FROM @river_job`))
		assert.InDelta(t, float64(rate.Inf), float64(s.ramp.Limit()), 0)
		stop()
		group.Wait()
	})
}

// Who never has a turn is silent: page and readiness say that nothing is sent, until an order has one.
func TestWaitingWithoutEndIsTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shopInFile(t)
		s.orders("A-1")
		turn := errNoTurn
		s.limiter = waits(func(context.Context) error { return turn })
		wait := func(d time.Duration) {
			time.Sleep(d)
			assert.Equal(t, minPause, s.work("A-1"))
		}
		wait(0)
		wait(longTurnless - 1)
		turn = nil
		s.pauses(pause{Kind: byHand, Why: "a test"})
		wait(0) // it had a turn
		_, err := s.resume(t.Context(), "Ada", s.paused())
		require.NoError(t, err)
		turn = errNoTurn
		wait(time.Second)
		assert.Empty(t, s.paused().Kind)
		wait(longTurnless)
		assert.Equal(t, "for five minutes no order had its turn: check Rate, and the clock of the database",
			s.status().Why)
		assert.Equal(t, "trouble", s.status().Kind)
		s.elapse()
		s.looks()
		assert.Equal(t, inTrouble, s.paused().Kind, "nor has the probe a turn")
		turn = nil
		s.elapse()
		s.looks()
		assert.Empty(t, s.paused().Kind)
		assert.Equal(t, []State{StateSubmitted}, s.states("A-1"))
	})
}

func TestTheRateOfOneReplica(t *testing.T) {
	t.Parallel()
	for perSecond, want := range map[float64]rate.Limit{0: rate.Inf, 2.5: 2.5} {
		s := &Service{config: Config{Rate: perSecond}, dialect: sqljournal.SQLite}
		limiter, ok := s.newLimiter().(*rate.Limiter)
		require.True(t, ok)
		assert.Equal(t, want, limiter.Limit())
		assert.LessOrEqual(t, limiter.Burst(), 1)
	}
}

// take takes a turn, and returns when it is.
func take(t *testing.T, s *shop, interval, patience time.Duration) (turn time.Time, wait time.Duration, err error) {
	t.Helper()
	var seconds float64
	row := s.db.QueryRowContext(t.Context(), s.sql(takeTurn)+", taken", interval.Seconds(), patience.Seconds())
	err = row.Scan(&seconds, &turn)
	return turn, time.Duration(seconds * float64(time.Second)), err
}

// Whoever asks, in however many processes: no two turns are closer than the interval.
func TestTurnsAreApart(t *testing.T) {
	t.Parallel()
	s := openShop(t, newDatabase(t), nil)
	const each, callers, interval = 10, 4, 5 * time.Millisecond
	var mu sync.Mutex
	var taken []time.Time
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range each {
				turn, wait, err := take(t, s, interval, maxTurnWait)
				assert.NoError(t, err)
				assert.LessOrEqual(t, wait, each*callers*interval)
				mu.Lock()
				taken = append(taken, turn)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	apart := map[time.Duration]bool{}
	for _, turn := range taken {
		for _, other := range taken {
			apart[turn.Sub(other).Abs()] = true
		}
	}
	delete(apart, 0)
	require.Len(t, taken, each*callers)
	for distance := range apart {
		assert.GreaterOrEqual(t, distance, interval)
	}
}

// A turn that is too far away is not taken; one that is further than any can be, since a clock was set back, is reset.
func TestATurnThatIsTooFarAway(t *testing.T) {
	t.Parallel()
	s := openShop(t, newDatabase(t), nil)
	limiter := &turns{s.Service, 1. / 3600}
	require.NoError(t, limiter.Wait(t.Context()), "the first turn is at once")
	for range 2 {
		require.ErrorIs(t, limiter.Wait(t.Context()), errNoTurn)
	}
	_, wait, err := take(t, s, time.Hour, 61*time.Minute)
	require.NoError(t, err)
	assert.Greater(t, wait, 59*time.Minute, "those that were not taken hold up nobody")
	_, wait, err = take(t, s, time.Second, maxTurnWait)
	require.NoError(t, err)
	assert.LessOrEqual(t, wait, time.Duration(0), "an hour ahead")
	limiter.perSecond = 1 / (maxTurnWait - time.Second).Seconds()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, limiter.Wait(ctx), context.DeadlineExceeded)
}

// A pause grows while other orders meet the same trouble, and never so long that an outage outlives itself by a minute.
// Of one order it is as long as that order waits.
func TestAPauseGrowsWithTheOrdersInTrouble(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		fails := func(status int) { s.fake.Fail(operation, cardwiretest.Fault{Status: status}, 1) }
		next := func(want time.Duration, why string) {
			t.Helper()
			s.elapse()
			before := time.Now()
			s.looks()
			assert.WithinDuration(t, before.Add(want), s.paused().Until, want/4+time.Second/2, why)
		}
		var all []string
		for i := range 9 {
			all = append(all, fmt.Sprint("A-", i))
		}
		s.orders(all...)
		for _, number := range all[:maxTroubles] {
			fails(403)
			s.work(number)
		}
		assert.Contains(t, s.paused().Text(), "UTC, and at once after Resume")
		for _, seconds := range []time.Duration{2, 4, 8, 16, 16} {
			fails(403)
			next(seconds*time.Second, "the same trouble")
		}
		s.do(`UPDATE @payouts_control SET tests = 1`)
		fails(405)
		next(2*time.Second, "another trouble")
		for _, number := range all[1:] {
			require.NoError(t, s.cancels(number))
		}
		for _, waited := range []time.Duration{0, 4 * time.Second, 5 * time.Minute} {
			s.waited(all[0], waited)
			s.do(`UPDATE @payouts SET tried_at = $1`, s.moment(time.Now()))
			s.do(`UPDATE @payouts_control SET tests = 0, tested = $1`, all[0])
			fails(405)
			next(min(max(waited, time.Second), probeEvery), "one order")
		}
	})
}
