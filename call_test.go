package cardwire_test

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestCallsThatAreRefusedWhateverTheMethod(t *testing.T) {
	t.Parallel()
	for name, call := range wiretest.AllMethods() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Unasked(t)
			var none context.Context
			wiretest.RefusedBeforehand(t, call(none, c), cardwire.ErrSetup, "the context is nil")
			for want, opt := range map[string]cardwire.CallOption{
				"a call option is nil":                                       nil,
				"WithResponse: the response is nil":                          cardwire.WithResponse(nil),
				"WithHeader: header Authorization is reserved by the client": cardwire.WithHeader("Authorization", "x"),
			} {
				wiretest.RefusedBeforehand(t, call(t.Context(), c, opt), cardwire.ErrSetup, want)
			}

			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(wiretest.ErrBroken)
			err := call(ctx, c)
			assert.Equal(t, "NotSent", outcomeOf(t, err))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, wiretest.ErrBroken)
			assert.ErrorContains(t, err, ": the context was already canceled or expired: it is safe to call again")
		})
	}
}

// What is invalid too: the journal could close nothing on that context, and an order that
// is called again is then failed.
func TestACanceledCallWithAnInvalidParameter(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	journal := new(wiretest.Journal)
	p := wiretest.SmallTransfer("M-1")
	p.PayoutCurrency = "€"
	_, err := wiretest.Unasked(t, cardwire.WithJournal(journal)).CreateTransfer(ctx, p)
	assert.Equal(t, told{"NotSent", cardwire.StepRetry}, toldBy(t, err))
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, journal.Voided)
}

// A doer may sign or redact the header that it is handed, and keep it: no other
// attempt knows of that, nor does the second look at a page.
func TestWhatADoerDoesToAHeaderStaysWithTheAttempt(t *testing.T) {
	t.Parallel()
	want := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer " + wiretest.Key},
		"User-Agent": {"cardwire-go/devel"}, "X-Shop": {"7"},
	}
	responses := []string{"", onePage(listedCard), onePage(listedCard)}
	asked := 0
	doer := wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		assert.Equal(t, want, r.Header, "attempt %d", asked)
		for _, values := range r.Header {
			values[0] = "redacted"
		}
		r.Header.Add("X-Signature", "s")
		response := responses[asked]
		if asked++; response == "" {
			return wiretest.Response(r, http.StatusServiceUnavailable, ""), nil
		}
		return wiretest.Response(r, http.StatusOK, response), nil
	})
	once := cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 1})
	c := wiretest.Unasked(t, once, cardwire.WithHTTPClient(doer))
	_, err := c.ListCards(t.Context(), cardwire.ListCardsParams{Page: 2}, cardwire.WithHeader("X-Shop", "7"))
	require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
	assert.Equal(t, len(responses), asked)
}

// The path that the comment of do describes has no other hop.
func TestTheCallPath(t *testing.T) {
	t.Parallel()
	path := func() (names []string) {
		callers := make([]uintptr, 64)
		frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
		for f, more := frames.Next(); more; f, more = frames.Next() {
			if name, ours := strings.CutPrefix(f.Function, "github.com/cardwire/cardwire-go"); ours && name[0] != '_' {
				names = append(names, name[strings.LastIndexAny(strings.TrimSuffix(name, "[...]"), ".")+1:])
			}
		}
		slices.Reverse(names)
		return names
	}
	var carrying, reading []string
	card := `{"id":"c-1","available":"1.000","pending":0,"frozen":0,"fee":"0.00","x":1}`
	c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		carrying = path()
		return wiretest.Response(r, 200, wiretest.Success(card)), nil
	}), cardwire.WithObserver(cardwire.Observer{
		Drift: func(context.Context, cardwire.CallInfo, cardwire.Drift) { reading = path() },
	}))
	_, err := c.GetCard(t.Context(), "c-1")
	require.NoError(t, err)
	assert.Equal(t, []string{"GetCard", "do[...]", "send", "Do", "RoundTrip", "RoundTrip"}, carrying)
	assert.Equal(t, []string{"GetCard", "do[...]", "send", "receive", "drifted"}, reading)
}
