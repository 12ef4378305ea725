// Package apptest contains what the tests of the programs share.
package apptest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
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
)

// Browser is a page of a headless Chromium, and what it complained of. Its methods
// fail the test that it was made for, or that of the step that runs.
type Browser struct {
	t       *testing.T
	ctx     context.Context
	program string
	base    string

	mu         sync.Mutex
	elsewhere  []string // requests to other hosts
	complaints []string
}

// The names of the Chromium program.
var chromiums = []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"}

// NewBrowser returns a browser for the pages of program at the URL base. It ends
// with the test, and has two minutes for all of it. Without a Chromium the test is
// skipped; where the environment variable CI is "true", it fails.
func NewBrowser(t *testing.T, program, base string) *Browser {
	t.Helper()
	chromium := ""
	for _, name := range chromiums {
		if found, err := exec.LookPath(name); err == nil {
			chromium = found
			break
		}
	}
	if chromium == "" {
		require.NotEqual(t, "true", os.Getenv("CI"), "there is no Chromium, which this test needs: install one of %v", chromiums)
		t.Skipf("no Chromium is installed: none of %v", chromiums)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,BackForwardCache")) // a page from that cache is never loaded
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // root cannot have one
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // the test's own is done before the browser ends
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(end)
	b := &Browser{t: t, program: program, base: base}
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(b.listen))
	t.Cleanup(cancel)
	b.ctx = ctx
	for _, domain := range []string{"Network.enable", "Log.enable", "Page.enable"} {
		b.Do(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
			return none, t.Call(ctx, domain, nil, nil)
		})
	}
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(ctx)) })
	return b
}

// Step runs a subtest, and fails if the browser complained or sent a request to
// another host. After a step that failed there is no other.
func (b *Browser) Step(name string, do func(t *testing.T)) {
	whole := b.t
	whole.Helper()
	defer func() { b.t = whole }()
	require.True(whole, whole.Run(name, func(t *testing.T) { b.t = t; do(t); b.quiet() }))
}

// Open goes to a path of the program, and returns the status of the page.
func (b *Browser) Open(path string) int {
	b.t.Helper()
	return b.Arrive(chromedp.Navigate(b.base + path))
}

// Press presses the button, or follows the link, that has these words, and returns
// the status of the page that it leads to.
func (b *Browser) Press(words string) int {
	b.t.Helper()
	return b.Arrive(chromedp.Click(fmt.Sprintf(`//main//*[self::button or self::a][contains(., %q)]`, words)))
}

// Arrive does what leads to another page, and returns the status of that.
func (b *Browser) Arrive(actions ...chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, actions...)
	require.NoError(b.t, err)
	require.NotNil(b.t, response)
	return int(response.Status)
}

// Do does what stays on the page.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// Named selects the element with this name.
func Named(name string) chromedp.CSS { return chromedp.CSS(fmt.Sprintf("[name=%q]", name)) }

// Fill types value into an input, in place of what it contained.
func (b *Browser) Fill(name, value string) {
	b.t.Helper()
	b.Do(chromedp.Clear(Named(name)), chromedp.SendKeys(Named(name), value))
}

// Choose selects an option by its value.
func (b *Browser) Choose(name, value string) {
	b.t.Helper()
	b.Do(chromedp.SetValue(Named(name), value))
}

// Value returns what an input contains.
func (b *Browser) Value(name string) string {
	b.t.Helper()
	return get(b, chromedp.Value(Named(name)))
}

// Has reports whether the page has an element that fits the selector.
func (b *Browser) Has(selector string) bool {
	b.t.Helper()
	return Script[bool](b, `!!document.querySelector('`+selector+`')`)
}

// Text returns what a reader sees of the page.
func (b *Browser) Text() string {
	b.t.Helper()
	return Script[string](b, `document.querySelector('main').innerText`)
}

// Path returns the page's URL from its path on.
func (b *Browser) Path() string {
	b.t.Helper()
	return strings.TrimPrefix(get(b, chromedp.Location()), b.base)
}

// Cookies returns the cookies that the browser sends to the page.
func (b *Browser) Cookies() []*network.Cookie {
	b.t.Helper()
	got, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	require.NoError(b.t, err)
	return got.Cookies
}

// Script returns the value of a JavaScript expression on the page.
func Script[T any](b *Browser, expression string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression))
}

// The sizes that the pages are looked at in.
var sizes = []struct {
	name          string
	width, height int64
}{{"phone", 375, 812}, {"desktop", 1200, 900}}

// faultsOfPage finds inputs without a label, text with too little contrast, and
// what else makes a page hard to use.
//
//go:embed faults.js
var faultsOfPage string

// Look checks the page on a phone and on a desktop. If the environment variable
// SCREENSHOTS names a directory, it keeps pictures there, as in
// backoffice-login-phone.png.
func (b *Browser) Look(name string) {
	b.t.Helper()
	for _, size := range sizes {
		b.Do(chromedp.EmulateViewport(size.width, size.height))
		assert.LessOrEqual(b.t, Script[int64](b, `document.documentElement.scrollWidth`), size.width, "%s is wider than a %s", name, size.name)
		assert.Empty(b.t, Script[[]string](b, faultsOfPage), "%s on a %s", name, size.name)
		if directory := os.Getenv("SCREENSHOTS"); directory != "" {
			picture := get(b, chromedp.FullScreenshot(100))
			require.NoError(b.t, os.WriteFile(filepath.Join(directory, b.program+"-"+name+"-"+size.name+".png"), picture, 0o600))
		}
	}
}

// listen keeps what must not happen. That a page comes with a status above 400
// is what some tests are about.
func (b *Browser) listen(event any) {
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

func (b *Browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.elsewhere, "requests to other hosts")
	assert.Empty(b.t, b.complaints, "what the browser complained of")
}

// get runs what returns something.
func get[T any](b *Browser, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	require.NoError(b.t, err)
	return v
}
