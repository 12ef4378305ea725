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
	"slices"
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

	"github.com/cardwire/cardwire-go/cardwiretest"
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
	b := &browser{t: t, base: base, shots: os.Getenv("BACKOFFICE_SCREENSHOTS")}
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

// has reports whether the page has an element that fits the selector.
func (b *browser) has(selector string) bool {
	b.t.Helper()
	return script[bool](b, `!!document.querySelector('`+selector+`')`)
}

// text is what a reader sees of the page.
func (b *browser) text() string {
	b.t.Helper()
	return script[string](b, `document.querySelector('main').innerText`)
}

// The sizes that the pages are looked at in.
var sizes = map[string][2]int64{"desktop": {1200, 900}, "phone": {375, 812}}

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

const hostile = `<script>document.title='owned'</script><img src="http://127.0.0.1:9/x" onerror="alert(1)">`

// A day in the office, in the order of the subtests.
func TestInABrowser(t *testing.T) {
	fake := cardwiretest.New(cardwiretest.WithCards(30), cardwiretest.WithProfile(allNames()))
	fake.AddCard(cardwiretest.Card{ID: "hostile-1", CardBIN: "428837", CardNo: "4288379977000992", HolderUsername: hostile, Label: new(hostile)})
	office := newTestOffice(t, fake)
	office.rename(allNames())
	server := httptest.NewServer(office.handler)
	t.Cleanup(server.Close)
	b := newBrowser(t, server.URL)
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		require.True(t, t.Run(name, func(t *testing.T) { b.t = t; do(t); b.quiet() }))
	}

	step("sign in", func(t *testing.T) {
		b.open("/cards")
		assert.Contains(t, b.text(), "Sign in")
		b.look("login")
		b.fill("user", testUser)
		b.fill("password", "wrong")
		assert.Equal(t, 403, b.press("Sign in"))
		assert.Contains(t, b.text(), "The user name or the password is wrong.")
		assert.Equal(t, testUser, get(b, chromedp.Value(named("user"))))
		b.look("login-wrong")
		b.fill("user", testUser)
		b.fill("password", testPassword)
		assert.Equal(t, 200, b.press("Sign in"))
		assert.Contains(t, b.text(), "31\ncards")
		b.look("overview")
	})
	step("list", func(t *testing.T) {
		b.open("/cards")
		assert.Contains(t, b.text(), "31 cards, page 1 of 3")
		b.look("cards")
		b.press("Next")
		assert.Contains(t, b.text(), "Page 2 of 3")
		b.press("Next")
		assert.Contains(t, b.text(), hostile)
		assert.Equal(t, "Cards · Backoffice", get(b, chromedp.Title()))
		b.look("cards-hostile")
		b.open("/cards/hostile-1")
		assert.Contains(t, b.text(), hostile)
		b.look("card-hostile")
	})
	step("filter", func(t *testing.T) {
		b.open("/cards")
		b.choose("Status", "0")
		b.fill("CardBIN", "531847")
		b.press("Filter")
		assert.Equal(t, []string{"active"}, script[[]string](b, `[...new Set([...document.querySelectorAll('tbody .badge')].map(e => e.textContent))]`))
		assert.NotContains(t, b.text(), "428837")
		b.fill("CardBIN", "card")
		assert.Equal(t, 422, b.press("Filter"))
		assert.True(t, b.has("#CardBIN-error"))
		b.look("cards-wrong-filter")
		b.open("/cards?page=99")
		assert.Contains(t, b.text(), "There is no page 99: the last one is page 3.")
		b.look("cards-no-page")
		b.press("page 3")
		assert.Contains(t, b.text(), "Page 3 of 3")
		b.open("/cards?CardBIN=999999")
		assert.Contains(t, b.text(), "No card fits.")
	})
	step("freeze", func(t *testing.T) {
		b.open("/cards?Status=0")
		b.press("428837******")
		b.look("card")
		id := path.Base(get(b, chromedp.Location()))
		b.press("Freeze this card")
		b.look("freeze")
		assert.Empty(t, fake.Executions("FreezeCard", ""), "frozen before it was confirmed")
		b.press("Freeze the card")
		assert.Contains(t, b.text(), "The freeze was accepted")
		assert.Contains(t, b.text(), "428837******")
		b.look("frozen")
		b.press("Look at the card")
		assert.Equal(t, "/cards/"+id, strings.TrimPrefix(get(b, chromedp.Location()), b.base))
		assert.False(t, b.has(".danger"), "a frozen card offers no freeze")
		b.open("/cards/" + id + "/freeze")
		assert.False(t, b.has("button.danger"))
		b.look("freeze-again")
		b.open("/cards/" + id)
		assert.Contains(t, b.text(), "frozen")
		i := slices.IndexFunc(fake.Ledger(), func(e cardwiretest.Execution) bool { return e.CardID == id })
		assert.GreaterOrEqual(t, i, 0, "the card that was frozen")
	})
	step("operations", func(t *testing.T) {
		b.open("/operations")
		b.look("operations")
		b.fill("clientTransactionID", "7")
		assert.Equal(t, 422, b.press("Try it again"))
		assert.True(t, b.has("#clientTransactionID-error"))
		b.look("operations-wrong")
		b.fill("clientTransactionID", failedTopUp)
		b.press("Try it again")
		assert.Contains(t, b.text(), "The retry was accepted")
		assert.Equal(t, 1, fake.Executions("RetryOperation", failedTopUp))
	})
	step("BINs", func(t *testing.T) {
		b.open("/bins")
		assert.Contains(t, b.text(), "Reisekarte Größe M")
		assert.Contains(t, b.text(), "under maintenance")
		b.look("bins")
	})
	step("a transfer", func(t *testing.T) {
		b.open("/transfers")
		b.look("transfer")
		b.fill("TransferAmount", "12.345")
		b.fill("SenderCountry", "GBR")
		assert.Equal(t, 422, b.press("Check the transfer"))
		assert.True(t, b.has("#TransferAmount-error"))
		assert.True(t, b.has("#SenderCountry-error"))
		b.look("transfer-wrong")
		b.choose("PayoutCurrency", "EUR")
		b.fill("SenderCountry", "GB")
		b.fill("ReceiverNativeFirstName", "Zoë")
		b.fill("ReceiverBankAccountNumber", "DE0012345678901234")
		b.do(chromedp.Clear(named("TransferAmount")))
		assert.Equal(t, 200, b.arrive(chromedp.SendKeys(named("TransferAmount"), "250.00\r")), "Enter in a field")
		assert.Contains(t, b.text(), "Send this transfer?")
		assert.Contains(t, b.text(), "•••1234")
		assert.NotContains(t, b.text(), "Zoë")
		assert.Zero(t, fake.Executions("CreateTransfer", ""), "sent before it was confirmed")
		b.look("transfer-confirm")
		b.press("Change it")
		assert.Equal(t, "250.00", get(b, chromedp.Value(named("TransferAmount"))))
		assert.Equal(t, 200, b.press("Check the transfer"))
		assert.Equal(t, 200, b.press("Send 250.00 EUR"))
		assert.Contains(t, b.text(), "The transfer was accepted")
		b.arrive(chromedp.Reload())
		assert.Contains(t, b.text(), "The transfer was accepted")
		assert.Equal(t, 1, fake.Executions("CreateTransfer", ""), "after the page was loaded again")
		b.look("transfer-sent")
	})
	step("a transfer that was refused", func(t *testing.T) {
		b.open("/transfers")
		b.choose("PayoutCurrency", "EUR")
		b.fill("TransferAmount", "1.00")
		b.press("Check the transfer")
		assert.Equal(t, 422, b.press("Send 1.00 EUR"))
		assert.Contains(t, b.text(), "The transfer was refused")
		assert.Contains(t, b.text(), "transferAmount is outside min_quota and max_quota")
		order, sent := get(b, chromedp.Value(named("MerchantOrderNo"))), office.writes()
		assert.Equal(t, 422, b.arrive(chromedp.Reload()))
		assert.Equal(t, order, get(b, chromedp.Value(named("MerchantOrderNo"))))
		assert.Equal(t, sent, office.writes(), "after the page was loaded again")
		b.look("transfer-refused")
	})
	step("a transfer whose response was lost", func(t *testing.T) {
		fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
		b.open("/transfers")
		b.choose("PayoutCurrency", "EUR")
		b.fill("TransferAmount", "300.00")
		order := get(b, chromedp.Value(named("MerchantOrderNo")))
		b.press("Check the transfer")
		b.press("Send 300.00 EUR")
		assert.Contains(t, b.text(), "The transfer is unresolved")
		for _, wrong := range []string{"failed", "refused", "was sent", "not sent"} {
			assert.NotContains(t, b.text(), wrong)
		}
		b.look("transfer-unresolved")

		// Back to the question, and once more.
		b.do(chromedp.NavigateBack())
		assert.Contains(t, b.text(), order)
		assert.Equal(t, 409, b.press("Send 300.00 EUR"))
		assert.Contains(t, b.text(), "The transfer is still unresolved")
		assert.Equal(t, 1, fake.Executions("CreateTransfer", order))
		b.look("transfer-twice")

		b.press("Unresolved")
		assert.Contains(t, b.text(), order)
		b.look("unresolved")
		b.do(chromedp.Click(chromedp.CSS(`input[value=executed]`)))
		b.press("Record this")
		assert.Contains(t, b.text(), "Recorded as executed")
		assert.Contains(t, b.text(), "Nothing is unresolved.")
		b.look("unresolved-resolved")
	})
	step("an image", func(t *testing.T) {
		b.open("/images")
		b.look("images")
		file := filepath.Join(t.TempDir(), "front.png")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		b.do(chromedp.SetUploadFiles(named("File"), []string{file}))
		assert.Equal(t, 422, b.press("Upload"))
		assert.True(t, b.has("#File-error"))
		b.look("images-wrong")
		require.NoError(t, os.WriteFile(file, []byte("\x89PNG\r\n\x1a\n"+strings.Repeat("x", 400_000)), 0o600))
		b.do(chromedp.SetUploadFiles(named("File"), []string{file}))
		b.press("Upload")
		assert.Contains(t, b.text(), "The upload was accepted")
		ledger := fake.Ledger()
		assert.Equal(t, int64(400_008), ledger[len(ledger)-1].Size)
		b.look("uploaded")
	})
	step("keyboard", func(t *testing.T) {
		b.open("/")
		b.do(chromedp.KeyEvent("\t"))
		assert.Equal(t, "Skip to the content", script[string](b, `document.activeElement.textContent`))
		assert.Equal(t, "solid", script[string](b, `document.activeElement.getBoundingClientRect().left >= 0
			? getComputedStyle(document.activeElement).outlineStyle : 'off the screen'`))
	})
	step("a page that is not there", func(t *testing.T) {
		assert.Equal(t, 404, b.open("/cards/nobody"))
		assert.Contains(t, b.text(), "Not found")
		b.look("missing")
	})
	step("sign out", func(t *testing.T) {
		got, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
		require.NoError(t, err)
		cookies := got.Cookies
		require.Len(t, cookies, 1)
		assert.True(t, cookies[0].HTTPOnly)
		assert.Equal(t, network.CookieSameSiteStrict, cookies[0].SameSite)
		b.arrive(chromedp.Click(chromedp.CSS(".leave button")))
		b.open("/")
		assert.Contains(t, b.text(), "Sign in")
	})
}
