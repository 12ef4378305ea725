package main

import (
	"context"
	"encoding/json"
	"html"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// putOnHold puts the program on hold, as -hold does.
func (s *shop) putOnHold() {
	s.t.Helper()
	require.NoError(s.t, s.hold(s.t.Context()))
}

// hidden returns a field of the page that a person does not fill in, for a form.
func (s *shop) hidden(name string) string {
	s.t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(s.get("/?still=on"))
	require.Len(s.t, found, 2)
	return "&" + name + "=" + url.QueryEscape(html.UnescapeString(found[1]))
}

func (s *shop) release() {
	s.t.Helper()
	require.Equal(s.t, 303, s.post("/resume", "by=Ada&why=it+is+reconciled"+s.hidden("since")).Code)
	s.ramp.SetLimit(rate.Inf) // the rate after a pause is TestTheQueueIsLookedAfter's
}

// On hold nothing is sent, what waits and what comes is held, and page, list and /readyz say so.
func TestOnHoldNothingIsSent(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("waited")
		s.lost("lost", true)
		s.order("other")
		s.otherRequest("other")
		s.putOnHold()
		s.forget("other")
		assert.Equal(t, held, s.state("other"), "the journal may forget the other request")
		require.Equal(t, 200, s.cancelAs("other").StatusCode)
		s.putOnHold() // as where each replica is started so
		assert.Equal(t, 202, s.call("POST", "/payouts", a1).StatusCode)
		i := intentOf("on-record")
		require.NoError(t, s.journal.Void(t.Context(), i, "Ada", "canceled"))
		s.order("on-record")
		numbers := []string{"waited", "A-1", "lost", "on-record"}
		assert.Equal(t, []string{held, held, unresolved, failed}, s.statesOf(numbers...))
		for _, isPaused := range []bool{true, false} { // of a replica that has not looked yet
			s.paused.Store(isPaused)
			for _, number := range numbers {
				s.work(number)
			}
		}
		assert.Len(t, s.fake.Requests(), 1, "that of the lost one")
		assert.Contains(t, s.get("/"), "<p>on hold until somebody releases it.</p>")
		assert.Contains(t, s.get("/"), "2 held")
		ready := map[string]string{}
		require.NoError(t, json.Unmarshal([]byte(s.get("/readyz")), &ready))
		assert.Equal(t, map[string]string{"status": "up", "paused": "on hold"}, ready)
		assert.Contains(t, s.get("/payouts?state=held"), `"order":"waited"`)
		live, err := s.liveTotals(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[string]int64{held: 2, unresolved: 1}, countsOf(live))

		again := openShop(t, s.settings) // another process, or a restart without -hold
		require.NoError(t, again.look(t.Context()))
		again.order("later")
		assert.Equal(t, held, s.state("later"))
		s.resolves("lost", "send_again")
		assert.Equal(t, held, s.state("lost"), "it may have been canceled since")
	})
}

// What a person does to what is held, one at a time and all at once.
func TestWhatIsHeldIsSentOrClosed(t *testing.T) {
	const form = "by=Ada&why=our+own+records"
	eachShop(t, func(t *testing.T, s *shop) {
		s.putOnHold()
		s.orders("A-1", "A-2", "A-3", "A-4", "A-5")
		r := s.call("POST", "/payouts/A-1/send", `{"by":"Ada","why":"our own records"}`)
		assert.Equal(t, 409, r.StatusCode)
		assert.Contains(t, textOf(t, r), "the program is on hold: release the hold first")
		assert.Equal(t, 303, s.post("/payouts/A-2/cancel", form).Code, "to close is no risk")
		s.release()
		assert.NotContains(t, s.get("/"), "Nothing is sent")
		for _, number := range []string{"A-1", "A-2", "A-3"} { // their jobs end
			assert.Zero(t, s.work(number))
		}
		s.exec(`UPDATE river_job SET state = 'completed', finalized_at = created_at`)
		assert.Empty(t, s.fake.Requests())

		assert.Equal(t, 422, s.call("POST", "/payouts/A-1/send", `{"by":"","why":"x"}`).StatusCode)
		assert.Equal(t, 200, s.call("POST", "/payouts/A-1/send", `{"by":"Ada","why":"our own records"}`).StatusCode)
		assert.Equal(t, 409, s.post("/payouts/A-1/send", form).Code, "it is queued now")
		assert.Equal(t, []string{"available", "completed", "completed", "completed", "completed"}, s.jobs(),
			"it is woken")
		require.NoError(t, s.holdOrders(t.Context())) // by a replica that saw the hold before its release
		sent := time.Now().Truncate(time.Millisecond)
		assert.Zero(t, s.work("A-1"))
		assert.False(t, s.found("A-1").ChangedAt.Before(sent), "not as it was released")
		assert.Equal(t, 303, s.post("/payouts/A-3/cancel", form).Code)
		assert.Equal(t, 422, s.post("/held", form+"&then=wait").Code)
		assert.Equal(t, []string{submitted, canceled, canceled, held, held},
			s.statesOf("A-1", "A-2", "A-3", "A-4", "A-5"))
		assert.Equal(t, 303, s.post("/held", form+"&then=send"+s.hidden("seen")).Code)
		for _, number := range []string{"A-4", "A-5"} {
			assert.Zero(t, s.work(number))
			assert.Equal(t, submitted, s.state(number))
		}
		assert.NotContains(t, s.get("/"), "held-title")
		assert.Contains(t, s.get("/orders/A-4"), "released")

		s.putOnHold()
		s.order("A-6")
		assert.Equal(t, 303, s.post("/held", form+"&then=close"+s.hidden("seen")).Code)
		s.release()
		assert.Zero(t, s.work("A-6"))
		assert.Equal(t, canceled, s.state("A-6"))
		e, err := s.journal.Lookup(t.Context(), operation, "A-6")
		require.NoError(t, err)
		assert.True(t, e.Closed)
		assert.Len(t, s.fake.Ledger(), 3)
	})
}

// Only a person ends a hold: not a test of the way that began before, nor the brake.
func TestOnlyAPersonEndsAHold(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		require.NoError(t, s.pause(t.Context(), pause{Why: "a test"}))
		s.elapse()
		before, err := s.pausedNow(t.Context())
		require.NoError(t, err)
		s.putOnHold()
		isHeld := func() {
			t.Helper()
			p, err := s.pausedNow(t.Context())
			require.NoError(t, err)
			assert.Equal(t, onHold, p.Text())
			assert.True(t, s.paused.Load())
		}
		require.NoError(t, s.look(t.Context()))
		isHeld()
		ended, err := s.resume(t.Context(), "the brake", before.Since)
		require.NoError(t, err)
		assert.False(t, ended)
		isHeld()
		require.NoError(t, s.test(t.Context(), before))
		isHeld()
		s.exec(`UPDATE payouts SET said = ''`) // it came as the hold began
		s.fake.Fail(operation, rateLimited(""), 1)
		require.NoError(t, s.test(t.Context(), before))
		isHeld()
		require.NoError(t, s.pause(t.Context(), pause{Why: "a test"}))
		isHeld()
		require.NoError(t, s.river.QueueResume(t.Context(), everyOrder, nil)) // as River's own page does
		isHeld()
		require.NoError(t, s.look(t.Context()))
		assert.Equal(t, held, s.state("A-1"))
		s.release()
		p, err := s.pausedNow(t.Context())
		require.NoError(t, err)
		assert.Greater(t, p.total(), time.Hour, "which counts for no order's day")
	})
}

// Who saw another pause releases no hold, nor does who saw none.
func TestAHoldIsReleasedByWhoSawIt(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		require.NoError(t, s.pause(t.Context(), pause{Why: "too many orders are unresolved"}))
		stale := s.hidden("since")
		s.putOnHold()
		for name, seen := range map[string]string{"another": stale, "none": "", "empty": "&since="} {
			w := s.post("/resume", "by=Ada&why=it+works+again"+seen)
			assert.Equal(t, 409, w.Code, name)
			assert.Contains(t, w.Body.String(), "check again why nothing is sent", name)
		}
		assert.Equal(t, 422, s.post("/resume", "by=Ada&why=it+works+again&since=now").Code)
		assert.Equal(t, held, s.order("A-1").State)
		assert.Contains(t, s.get("/queue"), onHold)
		assert.NotContains(t, s.get("/queue"), `"since":"0001`)
		s.release()
		assert.JSONEq(t, `{"waiting":0,"last_minute":0}`, s.get("/queue"))
	})
}

// Whoever has no password is told no more than that nothing is sent, and metrics one word of a few.
func TestWhyNothingIsSentNamesNoOrderInPublic(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		is := func(ready, kind string) {
			t.Helper()
			assert.JSONEq(t, `{"status":"up","paused":"`+ready+`"}`, s.get("/readyz"))
			assert.Contains(t, s.get("/metrics"), `payouts_paused{why="`+kind+`"} 1`)
		}
		s.order("customer-4711")
		s.fails(cardwiretest.Fault{Status: 401})
		s.work("customer-4711")
		assert.Contains(t, s.get("/queue"), "customer-4711: refused, HTTP 401")
		is("paused", "trouble")
		s.putOnHold()
		is("on hold", "hold")
		s.release()
		require.NoError(t, s.pause(t.Context(), pause{Why: "too many orders are unresolved"}))
		is("paused", "brake")
		_, err := s.resume(t.Context(), "Ada", time.Time{})
		require.NoError(t, err)
		require.NoError(t, s.river.QueuePause(t.Context(), everyOrder, nil))
		is("paused", "by hand")
	})
}

// What is done to all that are held is done to those that a person saw.
func TestWhatNobodySawStaysHeld(t *testing.T) {
	const form = "by=Ada&why=our+own+records&then="
	eachShop(t, func(t *testing.T, s *shop) {
		s.putOnHold()
		s.order("A-1")
		seen := s.hidden("seen")
		assert.Contains(t, s.get("/?still=on"), "Do this to all 1<")
		s.order("A-2")
		assert.Equal(t, 409, s.post("/held", form+"close").Code, "nothing was seen")
		w := s.post("/held", form+"close"+seen)
		assert.Equal(t, 409, w.Code)
		assert.Contains(t, w.Body.String(), "check them again")
		assert.Equal(t, []string{held, held}, s.statesOf("A-1", "A-2"))

		seen = s.hidden("seen")
		s.release()
		s.putOnHold()
		s.order("A-3")
		s.release()
		assert.Equal(t, 409, s.post("/held", form+"send"+seen).Code)
		assert.Equal(t, []string{held, held, held}, s.statesOf("A-1", "A-2", "A-3"))
		assert.Equal(t, 303, s.post("/held", form+"send"+s.hidden("seen")).Code)
		assert.Equal(t, []string{queued, queued, queued}, s.statesOf("A-1", "A-2", "A-3"))
	})
}

// All that is held is decided about, however long it takes. What another person has decided meanwhile is
// said, and how many were done where the database fails.
func TestAllThatIsHeld(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.putOnHold()
	s.orders("A-1", "A-2", "A-3", "A-4")
	s.release()
	assert.Contains(t, s.get("/?state=held&still=on"), `action="/held"`)
	for _, few := range []string{"find=A-1", "day=" + time.Now().UTC().Format(time.DateOnly)} {
		assert.NotContains(t, s.get("/?state=held&still=on&"+few), `action="/held"`, "it is about all")
	}
	s.exec(`CREATE TRIGGER another AFTER UPDATE OF retried_at ON payouts WHEN NEW.order_no = 'A-1' BEGIN
	UPDATE payouts SET said = 'canceled' WHERE order_no = 'A-2';
END`)
	s.exec(`CREATE TRIGGER fails BEFORE UPDATE OF retried_at ON payouts WHEN NEW.order_no = 'A-4' BEGIN
	SELECT RAISE(FAIL, 'the disk is full');
END`)
	for _, want := range []string{"2 of 4 were done: the database or the journal is not available", ""} {
		form := strings.NewReader("by=Ada&why=our+own+records&then=send" + s.hidden("seen"))
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/held", form)
		_, err := s.postHeld(httptest.NewRecorder(), r)
		if want == "" {
			require.NoError(t, err)
			break
		}
		require.ErrorContains(t, err, want)
		assert.Equal(t, []string{queued, canceled, queued, held}, s.statesOf("A-1", "A-2", "A-3", "A-4"))
		s.exec(`DROP TRIGGER fails`)
	}
	assert.Equal(t, queued, s.state("A-4"))

	s.putOnHold()
	s.release()
	s.exec(`CREATE TRIGGER also AFTER UPDATE OF retried_at ON payouts WHEN NEW.order_no = 'A-1' BEGIN
	UPDATE payouts SET said = 'canceled' WHERE order_no = 'A-3';
END`)
	w := s.post("/held", "by=Ada&why=our+own+records&then=send"+s.hidden("seen"))
	assert.Equal(t, 409, w.Code)
	assert.Contains(t, w.Body.String(), "1 of 3 had changed state")
}

// River deletes a queue that nothing has used for a day, and with it why it is paused. At a start it does
// so at the same time as it begins to use the queue.
func TestAHoldOutlivesDaysWithoutAReplica(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.putOnHold()
		s.exec(`UPDATE river_queue SET updated_at = $1`, time.Now().UTC().Add(-48*time.Hour))
		require.NoError(t, s.openQueue(t.Context()))
		_, err := s.driver.GetExecutor().QueueDeleteExpired(t.Context(), &riverdriver.QueueDeleteExpiredParams{
			Max: 10, UpdatedAtHorizon: time.Now().Add(-24 * time.Hour),
		})
		require.NoError(t, err)
		assert.Equal(t, held, s.order("A-1").State)
	})
}
