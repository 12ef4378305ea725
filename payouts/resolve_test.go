package payouts

import (
	"net/url"
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
		s.refuses("A-1", StatePaid, "another state")
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
		for form, want := range map[string]int{
			"order=+A-3&outcome=executed":                                            422, // of which call?
			"order=x+A-3&outcome=not_executed&as_of=2026-01-31T15:04:05Z":            409, // of another
			"order=" + call + "+A-3&outcome=perhaps":                                 422,
			"order=" + call + "+A-3&outcome=not_executed&service_id=T":               422,
			"order=" + call + "+A-3&outcome=not_executed":                            422, // when was it asked?
			"order=" + call + "+A-3&outcome=not_executed&as_of=soon":                 422,
			"order=" + call + "+A-3&outcome=not_executed&as_of=2999-01-31T15:04:05Z": 409,
			"order=" + call + "+A-3&outcome=not_executed&as_of=2020-01-31T15:04:05Z": 409,
			"outcome=executed":                                                                   422,
			"order=" + call + "+A-9&outcome=executed":                                            404,
			"order=" + call + "+A%00&outcome=executed":                                           404,
			"order=" + call + "+A-3&outcome=executed&service_id=T%00":                            422,
			"order=" + call + "+A-3&outcome=executed&why=%ff":                                    422,
			"order=" + call + "+A-3&outcome=executed&outcome=executed":                           400,
			"order=" + call + "+A-3&outcome=executed&serviceid=T":                                400,
			"order=" + call + "+A-3&outcome=executed&service_id=T;1":                             400,
			"order=" + call + "+A-3&outcome=executed&service_id=" + strings.Repeat("x", maxBody): 400,
		} {
			if !strings.Contains(form, "&why=") {
				form += "&why=ticket+7"
			}
			r := s.request("POST", "/ops/resolve", form, false)
			assert.Equal(t, want, r.StatusCode, "%.80s: %s", form, textOf(t, r))
			assert.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
		}
		assert.Equal(t, []string{StateUnresolved}, s.states("A-3"))
		assert.Equal(t, 422, s.request("POST", "/ops/resolve", "order="+call+"+A-3&outcome=executed", false).StatusCode,
			"why?")
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
		s.resolves("A-1", StatePaid, "T-2") // it was mistyped
		s.resolves("A-1", StatePaid)
		assert.Equal(t, "T-2", s.found("A-1").ServiceID)
		assert.Contains(t, s.page("order?number=A-1"), "Correct it")
		s.tells()
		s.resolves("A-1", "not_executed") // a paid one that was not
		assert.Equal(t, []string{StateFailed}, s.states("A-1"))
		s.refuses("A-1", "send_again", "the reference was closed")
		s.resolves("A-1", "executed")
		assert.Equal(t, []string{StateSubmitted}, s.states("A-1"), "that it was paid is to be said again")
		s.refuses("A-1", "send_again", "the reference was closed")
		s.resolves("A-2", "send_again")
		assert.Zero(t, s.work("A-2"))
		s.refuses("A-2", "not_executed", "a response proved that it was executed")
		assert.NotContains(t, s.page("order?number=A-2"), "Correct it")
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
		assert.Equal(t, 422, s.request("POST", "/ops/cancel", "order=A-1", false).StatusCode, "without a reason")
		assert.Equal(t, 200, s.cancelAs("A-1"))
		assert.Equal(t, []string{StateCanceled}, s.states("A-1"))
		assert.Equal(t, 200, s.cancelAs("A-1"), "as where the response was lost")
		assert.Equal(t, 404, s.cancelAs("A-9"))
		s.willFail(cardwiretest.Fault{Status: 422})
		s.work("A-2")
		assert.Equal(t, 200, s.cancelAs("A-2"))
		assert.Equal(t, []string{StateFailed}, s.states("A-2"))
		s.loseResponse("A-3", true)
		assert.Equal(t, 409, s.cancelAs("A-3"), "it may have been executed")
		assert.NotContains(t, s.log.String(), "ticket 7", "a person's words may be about a person")
		_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
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
		assert.Equal(t, 503, s.cancelAs("A-2"))
		rename(`@river_job`, `@river_gone`)
		status, text := s.resolveAs("A-1", "send_again")
		assert.Equal(t, 503, status)
		assert.NotContains(t, text, "river_job")
		assert.Equal(t, []string{StateUnresolved, StateQueued}, s.states("A-1", "A-2"))
		rename(`@river_gone`, `@river_job`)
		rename(`@payouts_gone`, `@payouts_history`)
		s.resolves("A-1", "send_again")
		assert.Equal(t, 200, s.cancelAs("A-2"))
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, []string{StateSubmitted, StateCanceled}, s.states("A-1", "A-2"))
	})
}

// To pay again is asked once more, with amount and payee; several orders are resolved at once, each for itself.
func TestSeveralOrdersAreResolvedAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		var chosen []string
		for _, number := range []string{"A-1", "A-2", "A-3"} {
			s.loseResponse(number, false)
			chosen = append(chosen, s.found(number).Call+" "+number)
		}
		for path, want := range map[string]bool{"?still=on": false, "?still=on&state=unresolved": true} {
			assert.Equal(t, want, strings.Contains(s.page(path), "for all selected orders"), path)
		}
		form := url.Values{
			"order": chosen, "outcome": {"send_again"}, "why": {"ticket 7"},
			"as_of": {time.Now().UTC().Format(time.RFC3339Nano)},
		}
		r := s.request("POST", "/ops/resolve", form.Encode(), true)
		text := textOf(t, r)
		assert.Equal(t, 200, r.StatusCode)
		assert.Contains(t, text, "Pay 37.50 EUR again?")
		assert.Contains(t, text, "account …NARY")
		assert.Equal(t, []string{StateUnresolved}, s.states("A-1"))
		s.resolves("A-3", "executed")
		s.tells()
		form.Set("sure", "yes")
		r = s.request("POST", "/ops/resolve", form.Encode(), true)
		assert.Equal(t, 409, r.StatusCode)
		assert.Contains(t, textOf(t, r), "1 of 3 were not recorded")
		assert.Equal(t, []string{StateQueued, StateQueued, StateSubmitted}, s.states("A-1", "A-2", "A-3"))
		for _, number := range []string{"A-1", "A-2"} {
			assert.Zero(t, s.work(number))
		}
	})
}
