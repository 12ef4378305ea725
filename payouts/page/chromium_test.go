package page

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

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// browser is a page of a headless Chromium, and what it complained of. Its methods fail the
// test that it was made for, or that of the step that runs.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu         sync.Mutex
	complaints []string // requests to other hosts among them
}

// chromium is the program's file. Without one the test is skipped; where the environment
// variable CI is "true", it fails.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"}
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	require.NotEqual(t, "true", os.Getenv("CI"), "this test needs a Chromium: install one of %v", names)
	t.Skipf("no Chromium is installed: none of %v", names)
	return ""
}

// newBrowser returns a browser for the pages at the URL base. It ends with the test, and has
// two minutes for all of it.
func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true),
		// A page from the back-forward cache is never loaded.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,BackForwardCache"))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // root cannot have one
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // t.Context is done before the browser ends
	t.Cleanup(cancel)
	b := &browser{t: t, base: base}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(opts...), chromedp.WithListener(b.listen))
	t.Cleanup(cancel)
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(b.ctx)) })
	return b
}

// step runs a subtest, and fails if the browser complained. After a step that failed there
// is no other.
func (b *browser) step(name string, do func(t *testing.T)) {
	whole := b.t
	whole.Helper()
	defer func() { b.t = whole }()
	require.True(whole, whole.Run(name, func(t *testing.T) {
		b.t = t
		do(t)
		b.mu.Lock()
		defer b.mu.Unlock()
		assert.Empty(t, b.complaints, "what the browser complained of")
	}))
}

// open goes to a path of the program, and returns the status of the page.
func (b *browser) open(path string) int {
	b.t.Helper()
	return b.arrive(chromedp.Navigate(b.base + path))
}

// press presses the button, or follows the link, that has these words, and returns the
// status of the page that it leads to.
func (b *browser) press(words string) int {
	b.t.Helper()
	return b.arrive(chromedp.Click(fmt.Sprintf(`//main//*[self::button or self::a][contains(., %q)]`, words)))
}

// arrive does what leads to another page, and returns the status of that.
func (b *browser) arrive(actions ...chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, actions...)
	require.NoError(b.t, err)
	require.NotNil(b.t, response)
	return int(response.Status)
}

// do does what stays on the page.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// pick chooses the radio button with this value.
func (b *browser) pick(value string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf("input[value=%q]", value))))
}

// tick ticks the checkboxes with these labels.
func (b *browser) tick(labels ...string) {
	b.t.Helper()
	for _, label := range labels {
		b.do(chromedp.Click(fmt.Sprintf(`//input[@type="checkbox"][contains(.., %q)]`, label)))
	}
}

// fill types into inputs, by their names, in place of what they contained.
func (b *browser) fill(values map[string]string) {
	b.t.Helper()
	for name, value := range values {
		input := chromedp.CSS(fmt.Sprintf("[name=%q]", name))
		b.do(chromedp.Clear(input), chromedp.SendKeys(input, value))
	}
}

// text returns what a reader sees of the page.
func (b *browser) text() string {
	b.t.Helper()
	return script[string](b, `document.querySelector('main').innerText`)
}

// script returns the value of a JavaScript expression on the page.
func script[T any](b *browser, expression string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression))
}

// get runs what returns something.
func get[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	require.NoError(b.t, err)
	return v
}

// faultsOfPage finds inputs without a label, text with too little contrast, and what else
// makes a page hard to use.
//
//go:embed testdata/faults.js
var faultsOfPage string

// prefers sets the browser's color scheme.
func (b *browser) prefers(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(b.t, err)
}

// look checks the page on a phone and on a desktop, light and dark. If the environment
// variable SCREENSHOTS names a directory, it keeps pictures there, as in list-phone.png.
func (b *browser) look(name string) {
	b.t.Helper()
	defer b.prefers("light")
	for _, size := range []struct {
		name          string
		width, height int64
		scheme        string
	}{
		{"phone-dark", 375, 740, "dark"}, {"phone", 375, 740, "light"},
		{"dark", 1280, 900, "dark"}, {"desktop", 1280, 900, "light"},
	} {
		b.prefers(size.scheme)
		b.do(chromedp.EmulateViewport(size.width, size.height))
		width := script[int64](b, `document.documentElement.scrollWidth`)
		assert.LessOrEqual(b.t, width, size.width, "%s is wider than a %s", name, size.name)
		assert.Empty(b.t, script[[]string](b, faultsOfPage), "%s on a %s", name, size.name)
		if directory := os.Getenv("SCREENSHOTS"); directory != "" {
			picture := get(b, chromedp.FullScreenshot(100))
			require.NoError(b.t, os.WriteFile(filepath.Join(directory, name+"-"+size.name+".png"), picture, 0o600))
		}
	}
}

// listen keeps what must not happen. That a page comes with a status above 400 is what some
// tests are about.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.base+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			b.complaints = append(b.complaints, "a request to "+e.Request.URL)
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
