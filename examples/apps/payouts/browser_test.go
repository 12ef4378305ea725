package main

import (
	"context"
	_ "embed"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// browser is a page of a headless Chromium, and what it complained of.
type browser struct {
	t     *testing.T
	ctx   context.Context
	base  string
	shots string // where pictures are kept

	mu         sync.Mutex
	elsewhere  []string // requests to other hosts
	complaints []string
}

// The names of the program.
var chromiums = []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"}

// newBrowser ends with the test, and has two minutes for all of it.
func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	program := ""
	for _, name := range chromiums {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		require.NotEqual(t, "true", os.Getenv("CI"), "there is no Chromium, which this test needs: install one of %v", chromiums)
		t.Skipf("no Chromium is installed: none of %v", chromiums)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,BackForwardCache")) // a page from that cache is never loaded
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // root cannot have one
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // the test's own is done before the browser ends
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(end)
	b := &browser{t: t, base: base, shots: os.Getenv("PAYOUTS_SCREENSHOTS")}
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(b.listen))
	t.Cleanup(cancel)
	b.ctx = ctx
	for _, domain := range []string{"Network.enable", "Log.enable", "Page.enable"} {
		b.do(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
			return none, t.Call(ctx, domain, nil, nil)
		})
	}
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(ctx)) })
	return b
}

// listen keeps what must not happen. That a page comes with a status above 400
// is what some tests are about.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.base+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			b.elsewhere = append(b.elsewhere, e.Request.URL)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Source != "network" || !strings.Contains(e.Entry.Text, "responded with a status of") {
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, "console."+string(e.Type))
	case *cdppage.EventJavascriptDialogOpening:
		b.complaints = append(b.complaints, "a dialog: "+e.Message)
	}
}

func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.elsewhere, "requests to other hosts")
	assert.Empty(b.t, b.complaints, "what the browser complained of")
}

// arrive does what leads to another page, and returns the status of that.
func (b *browser) arrive(actions ...chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, actions...)
	require.NoError(b.t, err)
	require.NotNil(b.t, response)
	return int(response.Status)
}

func (b *browser) open(path string) int {
	b.t.Helper()
	return b.arrive(chromedp.Navigate(b.base + path))
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// get runs what returns something.
func get[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	require.NoError(b.t, err)
	return v
}

func script[T any](b *browser, expression string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression))
}

func named(name string) chromedp.CSS { return chromedp.CSS(fmt.Sprintf("[name=%q]", name)) }

// fill types into an input.
func (b *browser) fill(name, value string) {
	b.t.Helper()
	b.do(chromedp.Clear(named(name)), chromedp.SendKeys(named(name), value))
}

func (b *browser) choose(name, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(named(name), value))
}

// press presses the button, or follows the link, that says so.
func (b *browser) press(words string) int {
	b.t.Helper()
	return b.arrive(chromedp.Click(fmt.Sprintf(`//main//*[self::button or self::a][contains(., %q)]`, words)))
}

// text is what a reader sees of the page.
func (b *browser) text() string {
	b.t.Helper()
	return script[string](b, `document.querySelector('main').innerText`)
}

// The sizes that the pages are looked at in.
var sizes = map[string][2]int64{"desktop": {1280, 900}, "phone": {375, 812}}

// look checks the page at both sizes, and takes pictures if they are wanted.
func (b *browser) look(name string) {
	b.t.Helper()
	for size, s := range sizes {
		b.do(chromedp.EmulateViewport(s[0], s[1]))
		assert.LessOrEqual(b.t, script[int64](b, `document.documentElement.scrollWidth`), s[0], "%s is wider than a %s", name, size)
		assert.Empty(b.t, script[[]string](b, faultsOfPage), "%s on a %s", name, size)
		if b.shots != "" {
			picture := get(b, chromedp.FullScreenshot(100))
			require.NoError(b.t, os.WriteFile(filepath.Join(b.shots, name+"-"+size+".png"), picture, 0o600))
		}
	}
}

// faultsOfPage finds inputs without a label, text with too little contrast, and
// what else makes a page hard to use.
//
//go:embed testdata/faults.js
var faultsOfPage string

const hostile = `<script>document.title='owned'</script>`

// A day with the page, in the order of the subtests.
func TestInABrowser(t *testing.T) {
	s := openShop(t, settingsOf(filepath.Join(t.TempDir(), "payouts.db")))
	server := httptest.NewServer(s.routes(""))
	t.Cleanup(server.Close)
	b := newBrowser(t, server.URL)
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		require.True(t, t.Run(name, func(t *testing.T) { b.t, s.t = t, t; do(t); b.quiet() }))
	}
	step("no orders", func(*testing.T) {
		b.open("/")
		assert.Contains(b.t, b.text(), "No orders here.")
		assert.Contains(b.t, script[string](b, `document.querySelector('header').innerText`), "fake service: no money moves")
		b.look("empty")
	})
	step("a sample whose response is lost", func(t *testing.T) {
		b.open("/")
		b.choose("fault", "2")
		assert.Equal(t, 200, b.press("Send an order"))
		assert.Contains(t, b.text(), "queued")
		b.look("queued")
		number := path.Base(get(b, chromedp.Location()))
		o, err := s.find(t.Context(), number)
		require.NoError(t, err)
		assert.Equal(t, longPause, s.work(number))
		s.exec(`UPDATE river_job SET state = 'scheduled', scheduled_at = $1 WHERE id = $2`, time.Now().UTC().Add(longPause), o.jobID)

		b.open("/?state=unresolved")
		b.look("list-unresolved")
		b.press(number)
		assert.Contains(t, b.text(), "Do you have a transfer with the merchant order number "+number+" over 12.50 EUR, sent between 20")
		b.look("unresolved")
		b.do(chromedp.Click(chromedp.CSS(`input[value="not_executed"]`)))
		b.fill("by", hostile)
		b.fill("why", "ticket 7")
		assert.Equal(t, 200, b.press("Record this"))
		assert.Contains(t, b.text(), "It was not executed, and will not be under this number.")
		assert.Contains(t, b.text(), "resolved: not sent")
		assert.Contains(t, b.text(), hostile)
		b.look("failed")
		b.arrive(chromedp.Reload())
		b.quiet()
	})
	step("cancel", func(t *testing.T) {
		s.order("A-1")
		b.open("/orders/A-1")
		b.fill("by", "Ada")
		b.fill("why", "the customer asked")
		assert.Equal(t, 200, b.press("Cancel this order"))
		assert.Contains(t, b.text(), "It was cancelled before anything was executed.")
		b.look("cancelled")
	})
	step("a form that comes too late", func(t *testing.T) {
		s.order("A-2")
		b.open("/orders/A-2")
		b.fill("by", "Ada")
		b.fill("why", "the customer asked")
		assert.Zero(t, s.work("A-2"))
		assert.Equal(t, 409, b.press("Cancel this order"))
		assert.Contains(t, b.text(), "Nothing was changed\n\nthe order is in another state now")
		b.look("too-late")
	})
	step("what became of the money", func(t *testing.T) {
		b.open("/orders/A-2")
		b.do(chromedp.Click(chromedp.CSS(`input[value="returned"]`)))
		b.fill("by", "Ada")
		b.fill("why", "statement")
		assert.Equal(t, 200, b.press("Record this"))
		assert.Equal(t, returned, s.state("A-2"))
		b.look("returned")
	})
	step("a status that needs a look", func(t *testing.T) {
		s.order("A-3")
		o, err := s.apply(t.Context(), change{order: "A-3", from: unended, to: sending, by: "worker"})
		require.NoError(t, err)
		require.NoError(t, (&submitter{service: s.service}).follow(t.Context(), o, &cardwire.Transfer{APIOrderNo: "T-1", Status: "reviewing"}, nil))
		b.open("/")
		b.look("list")
		b.open("/orders/A-3")
		assert.Contains(t, b.text(), "This needs a look")
		b.look("look")
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
		b.do(chromedp.KeyEvent(" "), chromedp.KeyEvent("\tAda\tstatement"))
		b.arrive(chromedp.KeyEvent("\r"))
		assert.Equal(t, paid, s.state("A-3"))
	})
}
