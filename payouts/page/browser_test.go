package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/payouts"
)

const hostile = `<script>document.title='owned'</script>`

// A day with the page, in the order of the subtests, mounted below a path.
func TestInABrowser(t *testing.T) {
	s := shopInFile(t)
	mux := http.NewServeMux()
	mux.Handle("/shop/payouts/", Handler(s.Service, nil))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b := newBrowser(t, server.URL)
	open := func(path string) int { return b.open("/shop/payouts/" + path) }
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		b.step(name, func(t *testing.T) { s.t = t; do(t) })
	}
	_, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{
		TimezoneID: "Africa/Johannesburg",
	})
	require.NoError(t, err)
	who := map[string]string{"by": "Ada", "why": "ticket 7"}
	step("no orders", func(t *testing.T) {
		open("")
		assert.Contains(t, b.text(), "No orders here.")
		assert.Contains(t, script[string](b, `document.querySelector('header').innerText`), "cards.example")
		b.look("empty")
	})
	step("an order whose response is lost", func(t *testing.T) {
		s.orders("A/0")
		open("order?number=A%2F0")
		assert.Contains(t, b.text(), "queued")
		b.look("queued")
		s.calls("A/0", cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown, Reason: "connection reset"})
		s.loseResponse("A-1")
		s.do(`UPDATE @intents SET settled_by = $1`, database.Text(time.Now().Add(-time.Hour)))
		open("?state=unresolved")
		b.look("list-unresolved")
		b.press("A/0")
		assert.Contains(t, b.text(),
			"Do you have a transfer with the merchant order number A/0 of 12.50 EUR, sent between 20")
		assert.Contains(t, b.text(), "Pay 12.50 EUR to account …NARY again: A/0 was not executed")
		assert.Contains(t, b.text(), "Next unresolved order")
		b.look("unresolved")
		b.pick("not_executed")
		assert.Contains(t, b.text(), "Your clock is at UTC+02:00.")
		b.do(chromedp.Click(`//button[. = "Now"]`))
		b.fill(map[string]string{"by": hostile, "why": "ticket 7"})
		assert.Equal(t, 200, b.press("Record this"))
		assert.Contains(t, b.text(), "It was not executed, and will not be under this number.")
		assert.Contains(t, b.text(), hostile)
		b.look("failed")
		b.arrive(chromedp.Reload())
	})
	step("an order that is being sent", func(t *testing.T) {
		s.orders("A-6")
		s.execute("A-6", "wait_process")
		s.do(`UPDATE @intents SET state = 'open', send_by = '2999-01-31T15:04:05.000000Z' WHERE reference = 'A-6'`)
		open("order?number=A-6")
		refreshes := func() bool { return script[bool](b, `!!document.querySelector('meta[http-equiv=refresh]')`) }
		assert.True(t, refreshes())
		assert.Contains(t, b.text(), "This page refreshes automatically. Stop refreshing")
		b.look("sending")
		for _, words := range []string{"Stop refreshing", "Check again"} {
			assert.Equal(t, 200, b.press(words))
			assert.False(t, refreshes())
		}
		b.look("sending-still")
		s.do(`UPDATE @intents SET state = 'executed' WHERE reference = 'A-6'`)
		assert.Equal(t, 200, b.press("Check again"))
		assert.Contains(t, b.text(), "The service accepted it.")
	})
	step("nobody sends, and nobody is told", func(t *testing.T) {
		s.orders("A-7")
		s.do(`UPDATE @payouts_marks SET since = $1`, database.Text(time.Now().Add(-time.Hour)))
		open("")
		assert.Contains(t, b.text(), "Orders are being sent")
		b.look("untold")
		s.do(`UPDATE @payouts_control SET worked_at = $1`, database.Text(time.Now().Add(-time.Hour)))
		open("")
		assert.Contains(t, b.text(), "No program sends orders")
		b.look("idle")
		s.do(`DELETE FROM @payouts_marks`)
		_, err := s.Cancel(t.Context(), "A-7", "Ada", "ticket 7")
		require.NoError(t, err)
		s.do(`UPDATE @payouts_control SET worked_at = $1`, database.Text(time.Now()))
	})
	step("a form that comes too late", func(t *testing.T) {
		s.orders("A-2")
		open("order?number=A-2")
		b.fill(who)
		s.execute("A-2", "wait_process")
		assert.Equal(t, 409, b.press("Cancel this order"))
		assert.Contains(t, b.text(), "This was not done\n\nthe order is in another state now")
		b.look("too-late")
		assert.Equal(t, 404, open("order?number=A-9"))
		b.look("not-found")
	})
	step("what became of the money", func(t *testing.T) {
		open("order?number=A-2")
		b.pick("returned")
		b.fill(who)
		assert.Equal(t, 200, b.press("Record this"))
		assert.Equal(t, []payouts.State{payouts.StateReturned}, s.states("A-2"))
		b.look("returned")
	})
	step("a number that is another's, and a status that needs a look", func(t *testing.T) {
		s.orders("A-3", "A-4")
		s.execute("A-3", "reviewing")
		open("order?number=A-3")
		assert.Contains(t, b.text(), "This needs a look")
		b.look("look")
		s.execute("A-4", "")
		open("order?number=A-4")
		b.look("other")
	})
	step("several orders", func(t *testing.T) {
		s.loseResponse("B-1")
		s.loseResponse("B-2")
		s.do(`UPDATE @intents SET time = $1, send_by = $1, settled_by = $1`, database.Text(time.Now().Add(-time.Hour)))
		open("?state=unresolved")
		b.press("Search, or resolve several orders at once")
		b.look("choosing")
		b.tick("A-1", "B-1")
		b.pick("send_again")
		b.fill(map[string]string{"by": "Ada", "why": "ticket 7", "as_of": time.Now().UTC().Format(timeLayout)})
		assert.Equal(t, 200, b.press("Record this for all selected orders"))
		assert.Contains(t, b.text(), "Pay 25.00 EUR again?")
		b.look("confirm")
		assert.Equal(t, 200, b.press("Yes, pay 2 orders again"))
		assert.Equal(t, []payouts.State{payouts.StateQueued, payouts.StateQueued, payouts.StateUnresolved},
			s.states("A-1", "B-1", "B-2"))
		open("")
		assert.Contains(t, b.text(), "2 orders are waiting")
		b.look("list")
	})
	step("a statement, and a hold", func(t *testing.T) {
		require.NoError(t, s.Hold(t.Context(), "Ada", "a restore"))
		open("?still=on")
		b.look("hold-before")
		s.settled()
		b.press("Compare with the service")
		file := filepath.Join(t.TempDir(), "statement.csv")
		at := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
		lines := "B-2,T-1,12.50,EUR,done," + at + "\nB-9,T-9,12.50,EUR,done," + at + "\nB-8,T-8,x,EUR,done," + at + "\n" + hostile + ",T-3,7.00,EUR," +
			hostile + "," + at + "\n"
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(header, "status", "State", 1)+lines), 0o600))
		b.look("upload")
		b.do(chromedp.SetUploadFiles(chromedp.CSS(`[name="file"]`), []string{file}))
		assert.Equal(t, 200, b.press("Upload"))
		choose := func(label, value string) {
			b.do(chromedp.SendKeys(fmt.Sprintf(`//label[contains(., %q)]/select`, label), value))
		}
		choose("The status", "State")
		now := time.Now().UTC().Format(timeLayout)
		b.fill(map[string]string{"from": at[:10] + " 00:00:00 UTC", "until": now, "exported": now})
		assert.Equal(t, 200, b.press("Continue"))
		choose("done", "executed")
		choose(hostile, "pending")
		b.tick("More than half")
		b.look("choice")
		assert.Equal(t, 200, b.press("Compare"))
		script[any](b, `document.querySelectorAll('details').forEach(d => { d.open = true; })`)
		b.look("report")
		assert.Equal(t, 200, b.press("Change the choice"))
		assert.Equal(t, 200, b.press("Compare"))
		b.fill(who)
		assert.Equal(t, 200, b.press("Record all 3"))
		assert.Equal(t, []payouts.State{payouts.StateSubmitted}, s.states("B-2"))
		b.look("recorded")
		open("?still=on")
		b.look("hold")
		b.fill(who)
		assert.Equal(t, 200, b.press("Release the hold"))
		assert.NotContains(t, b.text(), "Nothing is sent")
	})
	step("keyboard", func(t *testing.T) {
		open("order?number=A-3")
		b.do(chromedp.KeyEvent("\t"))
		assert.Equal(t, "Skip to the content", script[string](b, `document.activeElement.textContent`))
		// Skip, choose by the arrows, fill in and send: without a mouse.
		b.do(chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"))
		for range 12 {
			if script[bool](b, `document.activeElement.name === 'outcome'`) {
				break
			}
			b.do(chromedp.KeyEvent("\t"))
		}
		b.do(chromedp.KeyEvent(" "), chromedp.KeyEvent(strings.Join([]string{"", "", "Ada", "statement"}, "\t")))
		b.arrive(chromedp.KeyEvent("\r"))
		assert.Equal(t, []payouts.State{payouts.StatePaid}, s.states("A-3"))
	})
}
