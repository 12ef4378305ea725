package main

import (
	"net/http/httptest"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/examples/apps/internal/apptest"
)

const hostile = `<script>document.title='owned'</script>`

// A day with the page, in the order of the subtests.
func TestInABrowser(t *testing.T) {
	s := openShop(t, settingsOf(filepath.Join(t.TempDir(), "payouts.db")))
	server := httptest.NewServer(s.routes(""))
	t.Cleanup(server.Close)
	b := apptest.NewBrowser(t, "payouts", server.URL)
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		b.Step(name, func(t *testing.T) { s.t = t; do(t) })
	}
	step("no orders", func(t *testing.T) {
		b.Open("/")
		assert.Contains(t, b.Text(), "No orders here.")
		assert.Contains(t, apptest.Script[string](b, `document.querySelector('header').innerText`), "fake service: no money moves")
		assert.Contains(t, b.Text(), "What the fake service does with the next call")
		b.Look("empty")
	})
	step("a sample whose response is lost", func(t *testing.T) {
		b.Open("/")
		b.Choose("fault", "2")
		assert.Equal(t, 200, b.Press("Send an order"))
		assert.Contains(t, b.Text(), "queued")
		b.Look("queued")
		number := path.Base(b.Path())
		o, err := s.find(t.Context(), number)
		require.NoError(t, err)
		assert.Equal(t, longPause, s.work(number))
		s.exec(`UPDATE river_job SET state = 'scheduled', scheduled_at = $1 WHERE id = $2`, time.Now().UTC().Add(longPause), o.JobID)

		b.Open("/?state=unresolved")
		b.Look("list-unresolved")
		b.Press(number)
		assert.Contains(t, b.Text(), "Do you have a transfer with the merchant order number "+number+" of 12.50 EUR, sent between 20")
		assert.Contains(t, b.Text(), "Here support would say: it was not executed, and cannot be any more.")
		assert.Contains(t, b.Text(), "If the service does not know yet, leave it")
		assert.NotContains(t, b.Text(), "is accepted from", "it is accepted now")
		b.Look("unresolved")
		b.Do(chromedp.Click(chromedp.CSS(`input[value="not_executed"]`)))
		b.Fill("by", hostile)
		b.Fill("why", "ticket 7")
		assert.Equal(t, 200, b.Press("Record this"))
		assert.Contains(t, b.Text(), "It was not executed, and will not be under this number.")
		assert.Contains(t, b.Text(), "resolved: not sent")
		assert.Contains(t, b.Text(), hostile)
		b.Look("failed")
		b.Arrive(chromedp.Reload())
	})
	step("cancel", func(t *testing.T) {
		s.order("A-1")
		b.Open("/orders/A-1")
		b.Fill("by", "Ada")
		b.Fill("why", "the customer asked")
		assert.Equal(t, 200, b.Press("Cancel this order"))
		assert.Contains(t, b.Text(), "It was cancelled before anything was executed.")
		b.Look("cancelled")
	})
	step("a form that comes too late", func(t *testing.T) {
		s.order("A-2")
		b.Open("/orders/A-2")
		b.Fill("by", "Ada")
		b.Fill("why", "the customer asked")
		assert.Zero(t, s.work("A-2"))
		assert.Equal(t, 409, b.Press("Cancel this order"))
		assert.Contains(t, b.Text(), "This was not done\n\nthe order is in another state now")
		b.Look("too-late")
		b.Press("A-2")
		assert.Contains(t, b.Text(), "The service accepted it.")
	})
	step("an order that is not there", func(t *testing.T) {
		assert.Equal(t, 404, b.Open("/orders/A-9"))
		assert.Contains(t, b.Text(), "Not found\n\nthere is no such order")
		b.Look("not-found")
	})
	step("what became of the money", func(t *testing.T) {
		b.Open("/orders/A-2")
		b.Do(chromedp.Click(chromedp.CSS(`input[value="returned"]`)))
		b.Fill("by", "Ada")
		b.Fill("why", "statement")
		assert.Equal(t, 200, b.Press("Record this"))
		assert.Equal(t, returned, s.state("A-2"))
		b.Look("returned")
	})
	step("a status that needs a look", func(t *testing.T) {
		s.order("A-3")
		o, err := s.apply(t.Context(), change{order: "A-3", from: unended, to: sending, by: "worker"})
		require.NoError(t, err)
		require.NoError(t, (&submitter{service: s.service}).follow(t.Context(), o, &cardwire.Transfer{APIOrderNo: "T-1", Status: "reviewing"}, nil))
		b.Open("/")
		b.Look("list")
		b.Open("/orders/A-3")
		assert.Contains(t, b.Text(), "This needs a look")
		b.Look("look")
	})
	step("a narrow phone", func(t *testing.T) {
		s.order("A-4")
		s.fake.Fail(operation, cardwiretest.Fault{Status: 422, Message: "the account of the receiver has been closed"}, 1)
		assert.Zero(t, s.work("A-4"))
		for _, path := range []string{"/", "/orders/A-4"} {
			b.Open(path)
			b.Do(chromedp.EmulateViewport(360, 740))
			assert.LessOrEqual(t, apptest.Script[int64](b, `document.documentElement.scrollWidth`), int64(360), path)
			assert.Empty(t, apptest.Script[[]string](b, `[...document.querySelectorAll('main tbody *, main section:not(:has(table)) *')].filter(e =>
				e.clientWidth > 1 && e.scrollWidth > e.clientWidth).map(e => e.outerHTML)`), "%s: what sticks out", path)
		}
		b.Do(chromedp.EmulateViewport(1200, 900))
		assert.Empty(t, apptest.Script[[]string](b, `[...document.querySelectorAll('td[data-label="By"]')].filter(e => {
			const r = document.createRange(); r.selectNodeContents(e); return r.getClientRects().length > 1
		}).map(e => e.textContent)`), "names that are broken")
	})
	step("keyboard", func(t *testing.T) {
		b.Open("/orders/A-3")
		b.Do(chromedp.KeyEvent("\t"))
		assert.Equal(t, "Skip to the content", apptest.Script[string](b, `document.activeElement.textContent`))
		assert.Equal(t, "solid", apptest.Script[string](b, `document.activeElement.getBoundingClientRect().left >= 0
			? getComputedStyle(document.activeElement).outlineStyle : 'off the screen'`))
		// Skip, choose by the arrows, fill in and send: without a mouse.
		b.Do(chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"))
		for range 12 {
			if apptest.Script[bool](b, `document.activeElement.name === 'outcome'`) {
				break
			}
			b.Do(chromedp.KeyEvent("\t"))
		}
		b.Do(chromedp.KeyEvent(" "), chromedp.KeyEvent("\tAda\tstatement"))
		b.Arrive(chromedp.KeyEvent("\r"))
		assert.Equal(t, paid, s.state("A-3"))
	})
}
