package cardwiretest_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// tester is a testing.TB that keeps what happens to itself.
type tester struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (f *tester) Helper()            {}
func (f *tester) Setenv(_, _ string) {}
func (f *tester) Cleanup(c func())   { f.cleanups = append(f.cleanups, c) }
func (f *tester) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *tester) end() {
	for _, c := range slices.Backward(f.cleanups) {
		c()
	}
}
func (f *tester) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

// during returns what NoLeaks reports of f.
func during(f func()) []string {
	tb := &tester{}
	cardwiretest.NoLeaks(tb)
	f()
	tb.end()
	return tb.errors
}

// quiet keeps the tests' leaks out of this process's own output.
func quiet(t *testing.T) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	stdout, stderr, writer := os.Stdout, os.Stderr, log.Writer()
	os.Stdout, os.Stderr = null, null
	log.SetOutput(io.Discard)
	t.Cleanup(func() {
		os.Stdout, os.Stderr = stdout, stderr
		log.SetOutput(writer)
		_ = null.Close()
	})
}

func TestNoLeaksFinds(t *testing.T) {
	quiet(t)
	const key = cardwiretest.DefaultKey
	cardwiretest.New() // whose key it is
	s := cardwiretest.New(cardwiretest.WithKey("another-key"), cardwiretest.WithCards(0))
	s.SetCard(`{"card_no":"400000000000","cvv":"5555"}`)
	twoCards(s) // numbers and keys are searched for once a service has them
	for name, tc := range map[string]struct {
		leak func()
		want string
	}{
		"stdout":     {func() { fmt.Println("card", canary) }, "cardwiretest: a card number reached os.Stdout"},
		"stderr":     {func() { fmt.Fprint(os.Stderr, key) }, "cardwiretest: an API key reached os.Stderr"},
		"log":        {func() { log.Printf("cvv=%s", "907") }, "cardwiretest: a CVV reached log"},
		"slog":       {func() { slog.Info("x", "CVV2", 917) }, "cardwiretest: a CVV reached log"},
		"own key":    {func() { fmt.Print("another-key") }, "cardwiretest: an API key reached os.Stdout"},
		"own number": {func() { fmt.Print("400000000000") }, "cardwiretest: a card number reached os.Stdout"},
		"own CVV":    {func() { fmt.Print("cvc: 5555") }, "cardwiretest: a CVV reached os.Stdout"},
		"nothing":    {func() {}, ""},
	} {
		assert.Equal(t, tc.want, strings.Join(during(tc.leak), "; "), name)
	}
}

// The service's own responses contain canaries, which NoLeaks would find.
func TestNoLeaksKnowsEveryCard(t *testing.T) {
	quiet(t)
	w := inProcess()
	w.SetBIN(`{"id":7,"bin":"220000"}`)
	w.SetCard(`{"bin_id":7}`) // whose number is none of any network
	for _, page := range []string{"1", "14", "25", "26"} {
		response := w.ask(t, "GET /cards?limit=1&page="+page).body
		got := during(func() { fmt.Print(response) })
		want := []string{"cardwiretest: a card number reached os.Stdout", "cardwiretest: a CVV reached os.Stdout"}
		assert.Equal(t, want, got, "of %s", response)
	}
}

// A program's own default logger is captured too, and restored.
func TestNoLeaksCustomLogger(t *testing.T) {
	old, writer, flags := slog.Default(), log.Writer(), log.Flags()
	defer func() {
		slog.SetDefault(old)
		log.SetOutput(writer)
		log.SetFlags(flags)
	}()
	twoCards(cardwiretest.New())
	var out bytes.Buffer
	mine := slog.New(slog.NewJSONHandler(&out, nil))
	slog.SetDefault(mine)
	log.SetFlags(log.LUTC)
	before := log.Writer()
	got := during(func() {
		assert.Equal(t, log.LUTC, log.Flags())
		slog.With("number", canary).WithGroup("g").Info("one")
		slog.Debug(canary) // not enabled
		log.Print("two ", cardwiretest.DefaultKey)
	})
	want := []string{"cardwiretest: a card number reached slog", "cardwiretest: an API key reached log"}
	assert.ElementsMatch(t, want, got)
	assert.Same(t, mine, slog.Default())
	assert.Equal(t, before, log.Writer())
	assert.Equal(t, log.LUTC, log.Flags())
	assert.Equal(t, 2, strings.Count(out.String(), "\n"), "what is not enabled is not passed on")
	assert.Contains(t, out.String(), `"number":"`+canary)
	assert.Contains(t, out.String(), "two cwtest")
}

func TestNoLeaksPassesOn(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	old, before := os.Stdout, log.Writer()
	os.Stdout = w
	got := during(func() { fmt.Print("hello") })
	os.Stdout = old
	assert.Equal(t, before, log.Writer())
	_ = w.Close()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(text))
	assert.Empty(t, got)
	_ = r.Close()
}

func TestNoLeaksRefusesParallelTests(t *testing.T) {
	t.Run("parallel", func(t *testing.T) {
		t.Parallel()
		assert.Panics(t, func() { cardwiretest.NoLeaks(t) })
	})
}
