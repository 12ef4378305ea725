package main

import (
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

const hostile = `<script>document.title='owned'</script>`

// sticksOut are the elements whose content is wider than they are.
const sticksOut = `[...document.querySelectorAll('main tbody *, main section:not(:has(table)) *')].filter(e =>
	e.clientWidth > 1 && e.scrollWidth > e.clientWidth).map(e => e.outerHTML)`

// brokenNames are the names of people that stand on more than one line.
const brokenNames = `[...document.querySelectorAll('td[data-label="By"]')].filter(e => {
	const r = document.createRange(); r.selectNodeContents(e); return r.getClientRects().length > 1
}).map(e => e.textContent)`

// callsOfJanuary makes all calls settled for long.
const callsOfJanuary = `UPDATE cardwire_intents SET time = '2026-01-02T03:04:05.000000Z',
	send_by = '2026-01-02T03:04:05.000000Z', settled_by = '2026-01-02T03:04:05.000000Z'`

// askedInJanuary is after them: a time whose seconds are 0 reads otherwise in a browser.
const askedInJanuary = "2026-01-02T03:04:07"

// A day with the page, in the order of the subtests.
func TestInABrowser(t *testing.T) {
	s := shopInFile(t)
	server := httptest.NewServer(s.routes(""))
	t.Cleanup(server.Close)
	b := newBrowser(t, server.URL)
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		b.step(name, func(t *testing.T) { s.t = t; do(t) })
	}
	step("no orders", func(t *testing.T) {
		b.open("/")
		assert.Contains(t, b.text(), "No orders here.")
		header := script[string](b, `document.querySelector('header').innerText`)
		assert.Contains(t, header, "cards.example/api/v1")
		b.look("empty")
	})
	step("an order whose response is lost", func(t *testing.T) {
		s.order("A-0")
		b.open("/orders/A-0")
		assert.Contains(t, b.text(), "queued")
		b.look("queued")
		s.fails(cardwiretest.Fault{Kind: cardwiretest.FaultReset})
		assert.Zero(t, s.work("A-0"))
		s.exec(callsOfJanuary)

		b.open("/?state=unresolved")
		b.look("list-unresolved")
		b.press("A-0")
		assert.Contains(t, b.text(), "Do you have a transfer with the merchant order number A-0 of 12.50 EUR, "+
			"sent between 20")
		assert.Contains(t, b.text(), "If the service does not know yet, leave the order as it is")
		assert.Contains(t, b.text(), "Pay 12.50 EUR to account …NARY again: A-0 was not executed")
		b.look("unresolved")
		b.pick("not_executed")
		b.do(chromedp.SetValue(chromedp.CSS(`[name="as_of"]`), askedInJanuary))
		b.fill(map[string]string{"by": hostile, "why": "ticket 7"})
		assert.Equal(t, 200, b.press("Record this"))
		assert.Contains(t, b.text(), "It was not executed, and will not be under this number.")
		assert.Contains(t, b.text(), "resolved: refused")
		assert.Contains(t, b.text(), hostile)
		b.look("failed")
		b.arrive(chromedp.Reload())
	})
	step("cancel", func(t *testing.T) {
		s.order("A-1")
		b.open("/orders/A-1")
		b.fill(map[string]string{"by": "Ada", "why": "the customer asked"})
		assert.Equal(t, 200, b.press("Cancel this order"))
		assert.Contains(t, b.text(), "It was canceled before anything was executed.")
		b.look("canceled")
	})
	step("a form that comes too late", func(t *testing.T) {
		s.order("A-2")
		b.open("/orders/A-2")
		b.fill(map[string]string{"by": "Ada", "why": "the customer asked"})
		assert.Zero(t, s.work("A-2"))
		assert.Equal(t, 409, b.press("Cancel this order"))
		assert.Contains(t, b.text(), "This was not done\n\nthe order is in another state now")
		b.look("too-late")
		b.press("A-2")
		assert.Contains(t, b.text(), "The service accepted it.")
	})
	step("an order that is not there", func(t *testing.T) {
		assert.Equal(t, 404, b.open("/orders/A-9"))
		assert.Contains(t, b.text(), "Not found\n\nthere is no such order")
		b.look("not-found")
	})
	step("what became of the money", func(t *testing.T) {
		b.open("/orders/A-2")
		b.pick("returned")
		b.fill(map[string]string{"by": "Ada", "why": "statement"})
		assert.Equal(t, 200, b.press("Record this"))
		assert.Equal(t, returned, s.state("A-2"))
		b.look("returned")
	})
	step("a status that needs a look", func(t *testing.T) {
		s.reviewed("A-3")
		require.NoError(t, s.pause(t.Context(), pause{Why: "the brake"}))
		b.open("/")
		assert.Contains(t, b.text(), "Nothing is sent\n\nthe brake.")
		b.look("list")
		b.press("Resume sending")
		b.fill(map[string]string{"by": "Ada", "why": "it was a test"})
		assert.Equal(t, 200, b.press("Resume sending"))
		assert.NotContains(t, b.text(), "Nothing is sent")
		b.open("/orders/A-3")
		assert.Contains(t, b.text(), "This needs a look")
		b.look("look")
	})
	step("a bad day", func(t *testing.T) {
		for _, number := range []string{"B-1", "B-2", "B-3", "B-4"} {
			s.lost(number, false)
		}
		s.exec(callsOfJanuary)
		b.open("/?state=unresolved")
		assert.Regexp(t, `(?s)B-1.*B-2.*B-3.*B-4`, b.text(), "the oldest first")
		assert.Contains(t, b.text(), "unknown outcome: connection reset by the peer")
		assert.Contains(t, b.text(), "4 of 50.00 EUR on this page.")
		b.look("list-unresolved-several")
		b.press("Search, or resolve several orders at once")
		b.look("choosing")
		for range 40 { // by keyboard: to the first box, and on to the third
			if script[string](b, `document.activeElement.value || ''`) == s.found("B-1").Call+" B-1" {
				break
			}
			b.do(chromedp.KeyEvent("\t"))
		}
		b.do(chromedp.KeyEvent(" \t\t\t\t "))
		assert.Equal(t, []string{"B-1", "B-3"}, script[[]string](b,
			`[...document.querySelectorAll('[name="order"]:checked')].map(e => e.value.split(' ')[1])`))
		b.pick("executed")
		b.fill(map[string]string{"by": "Ada", "why": "statement of Monday"})
		b.arrive(chromedp.KeyEvent("\r"))
		assert.Equal(t, []string{submitted, unresolved, submitted, unresolved},
			s.statesOf("B-1", "B-2", "B-3", "B-4"))
		b.press("Search, or resolve several orders at once")
		b.fill(map[string]string{"find": "B-2, B-4 B-9"})
		assert.Equal(t, 200, b.press("Show"))
		b.tick("All on this page")
		b.pick("send_again")
		b.fill(map[string]string{"by": "Ada", "why": "ticket 8"})
		b.do(chromedp.SetValue(chromedp.CSS(`[name="as_of"]`), askedInJanuary))
		assert.Equal(t, 200, b.press("Record this for all selected orders"))
		assert.Contains(t, b.text(), "Pay 25.00 EUR again?")
		assert.Contains(t, b.text(), "account …NARY")
		assert.Equal(t, unresolved, s.state("B-2"), "it is asked once more")
		b.look("confirm")
		assert.Equal(t, 200, b.press("Yes, pay 2 orders again"))
		assert.Equal(t, []string{queued, queued}, s.statesOf("B-2", "B-4"))
		b.open("/")
		assert.Contains(t, b.text(), "are waiting;")
		b.look("list-progress")
	})
	step("a narrow phone", func(t *testing.T) {
		s.order("A-4")
		s.fails(cardwiretest.Fault{Status: 422, Message: "the account of the receiver has been closed"})
		assert.Zero(t, s.work("A-4"))
		for _, path := range []string{"/", "/orders/A-4"} {
			b.open(path)
			b.do(chromedp.EmulateViewport(360, 740))
			assert.LessOrEqual(t, script[int64](b, `document.documentElement.scrollWidth`), int64(360), path)
			assert.Empty(t, script[[]string](b, sticksOut), path)
		}
		b.do(chromedp.EmulateViewport(1200, 900))
		assert.Empty(t, script[[]string](b, brokenNames))
	})
	step("keyboard", func(t *testing.T) {
		b.open("/orders/A-3")
		b.do(chromedp.KeyEvent("\t"))
		assert.Equal(t, "Skip to the content", script[string](b, `document.activeElement.textContent`))
		assert.Equal(t, "solid", script[string](b, `document.activeElement.getBoundingClientRect().left >= 0
			? getComputedStyle(document.activeElement).outlineStyle : 'off the screen'`))
		// Skip, choose by the arrows, fill in and send: without a mouse.
		b.do(chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"))
		for range 12 {
			if script[bool](b, `document.activeElement.name === 'outcome'`) {
				break
			}
			b.do(chromedp.KeyEvent("\t"))
		}
		b.do(chromedp.KeyEvent(" "), chromedp.KeyEvent("\t\tAda\tstatement"))
		b.arrive(chromedp.KeyEvent("\r"))
		assert.Equal(t, paid, s.state("A-3"))
	})
}
