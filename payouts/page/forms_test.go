package page

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/payouts"
)

// A resolution is a form whose fields are known and come once. A time has its offset: that of who reads it may be any.
func TestAResolutionIsAForm(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.loseResponse("A-3")
	call := s.found("A-3").Call
	for form, want := range map[string]int{
		"order=A-3&outcome=executed":                                             422, // of which call?
		"order=+A-3&outcome=executed":                                            422,
		"order=x+A-3&outcome=not_executed&as_of=2026-01-31T15:04:05Z":            409, // of another
		"order=" + call + "+A-3&outcome=perhaps":                                 422,
		"order=" + call + "+A-3&outcome=not_executed":                            422, // when was it asked?
		"order=" + call + "+A-3&outcome=not_executed&as_of=soon":                 422,
		"order=" + call + "+A-3&outcome=not_executed&as_of=2999-01-31+15:04:05":  422, // by which clock?
		"order=" + call + "+A-3&outcome=not_executed&as_of=2020-01-31":           422,
		"order=" + call + "+A-3&outcome=not_executed&as_of=2999-01-31T15:04:05Z": 409,
		"order=" + call + "+A-3&outcome=not_executed&as_of=2020-01-31+15:04+UTC": 409,
		"outcome=executed": 422,
		"order=" + call + "+A-3&order=x+A-4&outcome=executed&service_id=T":                   422,
		"order=" + call + "+A-9&outcome=executed":                                            404,
		"order=" + call + "+A-3&outcome=executed&why=%ff":                                    422,
		"order=" + call + "+A-3&outcome=executed&why=":                                       422,
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
	assert.Equal(t, []payouts.State{payouts.StateUnresolved}, s.states("A-3"))
	east := time.FixedZone("", 2*60*60)
	status, text := s.post("resolve", url.Values{"order": {call + " A-3"}, "outcome": {"not_executed"},
		"as_of": {time.Now().In(east).Format(time.RFC3339Nano)}})
	assert.Equal(t, 200, status, text)
}

// An order without a call is resolved by its number alone, whatever that is.
func TestAnOrderWithoutACall(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("A-1", "a b", "- c")
	require.NoError(t, s.Hold(t.Context(), "Eve", "a restore"))
	s.settled()
	for number, want := range map[string]string{"A-1": "A-1", "a b": "- a b", "- c": "- - c"} {
		assert.Empty(t, s.found(number).Call)
		page := s.page("order?number=" + url.QueryEscape(number))
		assert.Contains(t, page, `name="order" value="`+want+`"`)
		assert.NotContains(t, page, `value=" `)
		assert.Contains(t, page, "which may have forgotten that it was sent")
		status, text := s.post("resolve", url.Values{"order": {want}, "outcome": {"executed"}})
		assert.Equal(t, 200, status, text)
		assert.Equal(t, []payouts.State{payouts.StateSubmitted}, s.states(number))
	}
}

// To pay again is asked once more, with amount and payee; several orders are resolved at once, each for itself.
func TestToPayAgainIsAskedOnceMore(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		var chosen []string
		for _, number := range []string{"A-1", "A-2", "A-3"} {
			s.loseResponse(number)
			chosen = append(chosen, s.found(number).Call+" "+number)
		}
		for path, want := range map[string]bool{"?still=on": false, "?still=on&state=unresolved": true} {
			assert.Equal(t, want, strings.Contains(s.page(path), "for all selected orders"), path)
		}
		page := s.page("?state=unresolved&still=all")
		assert.Equal(t, 3, strings.Count(page, ` checked>`))
		first, again := strings.Index(page, "Close them"), strings.Index(page, "may have paid it under a new number")
		assert.True(t, first > 0 && again > first, "to close is offered first")
		form := url.Values{
			"order": chosen, "outcome": {"send_again"}, "why": {"ticket 7"},
			"as_of": {time.Now().UTC().Format(time.RFC3339Nano)},
		}
		r := s.request("POST", "/ops/resolve", form.Encode(), true)
		text := textOf(t, r)
		assert.Equal(t, 200, r.StatusCode)
		assert.Contains(t, text, "Pay 37.50 EUR again?")
		assert.Contains(t, text, "account …NARY")
		assert.Equal(t, []payouts.State{payouts.StateUnresolved}, s.states("A-1"))
		_, err := s.Resolve(t.Context(), "A-3", payouts.Resolution{Call: s.found("A-3").Call, Outcome: "executed",
			By: "Eve", Why: "ticket 8"})
		require.NoError(t, err)
		form.Set("sure", "yes")
		r = s.request("POST", "/ops/resolve", form.Encode(), true)
		assert.Equal(t, 409, r.StatusCode)
		assert.Contains(t, textOf(t, r), "1 of 3 were not recorded")
		assert.Equal(t, []payouts.State{payouts.StateQueued, payouts.StateQueued, payouts.StateSubmitted},
			s.states("A-1", "A-2", "A-3"))
	})
}

// A person stops and resumes what that person has seen, holds and releases; readiness says that, and not why.
func TestThePageStopsAndResumes(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		does := func(path string, form url.Values, want int) string {
			t.Helper()
			status, text := s.post(path, form)
			assert.Equal(t, want, status, text)
			return text
		}
		s.orders("A-1", "A-2")
		does("pause", url.Values{"why": {"a suspicion"}}, 303)
		assert.Contains(t, s.page(""), "paused by Ada: a suspicion")
		assert.JSONEq(t, `{"status":"up","paused":"by hand"}`, s.get("readyz"), "not why: it asks for no password")
		assert.Contains(t, s.get("queue"), `"paused":"paused by Ada: a suspicion","kind":"by hand"`)
		for since, want := range map[string]int{"": 422, "2026-01-31T15:04:05Z": 409, "soon": 422} {
			does("resume", url.Values{"since": {since}}, want)
		}
		status, err := s.Status(t.Context())
		require.NoError(t, err)
		does("resume", url.Values{"since": {status.Since.Format(time.RFC3339Nano)}}, 303)
		assert.Contains(t, s.page("?still=on"), "It makes 2 queued orders unresolved")
		does("hold", url.Values{"why": {"a restore"}}, 303)
		page := s.page("?still=on")
		assert.Contains(t, page, "was that hold never released where it came from? Otherwise orders are paid twice.")
		assert.Regexp(t, `Since 20.* UTC: put on hold by Ada: a restore\.`, page)
		assert.Contains(t, does("release", url.Values{}, 409), "ask the service again then, and release the hold")
		s.settled()
		line := listed("A-9")
		_, text := s.upload("", line)
		code, text := s.upload(seenIn(text), line)
		assert.Equal(t, 200, code, text)
		assert.Contains(t, s.page("?still=on"), "UTC by Ada: the statement: statement.csv, from 20")
		does("moved", url.Values{}, 409)
		does("release", url.Values{}, 303)
		assert.JSONEq(t, `{"status":"up"}`, s.get("readyz"))
		s.do(`UPDATE @payouts_control SET kind = 'trouble', why = 'a 429', since = $1, until = $1`,
			"2026-01-31T15:04:05.000000Z")
		assert.Contains(t, s.page(""), "a 429; the next try is at 2026-01-31 15:04:05 UTC, and at once after Resume.")
		s.do(`UPDATE @payouts_control SET kind = 'refused'`)
		assert.Contains(t, s.page(""), "If it resumes before the reason is gone, more orders end like these.")
	})
}
