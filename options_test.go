package cardwire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestWithHeader(t *testing.T) {
	t.Parallel()
	var got http.Header
	c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return wiretest.Response(r, 200, wiretest.Success(`[]`)), nil
	}))
	_, err := c.ListBINs(t.Context(), cardwire.WithHeader("x-trace", "1"), cardwire.WithHeader("X-Trace", "2"),
		cardwire.WithHeader("accept", "text/json"), cardwire.WithHeader("X-Empty", ""))
	require.NoError(t, err)
	assert.Equal(t, []string{"2"}, got["X-Trace"], "the last one holds")
	assert.Equal(t, []string{"text/json"}, got["Accept"])
	assert.Equal(t, []string{""}, got["X-Empty"])
	assert.Equal(t, []string{"Bearer " + wiretest.Key}, got["Authorization"])

	_, err = c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"application/json"}, got["Accept"], "the call after is as it was")
	assert.NotContains(t, got, "X-Trace")
}

func TestTheKeySourceIsAskedAtEachCall(t *testing.T) {
	t.Parallel()
	var sent []string
	asked := 0
	carrier := wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Authorization"))
		if len(sent) == 1 {
			return wiretest.Response(r, 503, ""), nil
		}
		return wiretest.Response(r, 401, `{"code":401,"msg":"key-2 is old","data":null}`), nil
	})
	keys := cardwire.WithKeySource(func(ctx context.Context) (string, error) {
		asked++
		assert.Equal(t, "kept", ctx.Value(wiretest.ContextKey{}))
		return fmt.Sprint("key-", asked), nil
	})
	quick := cardwire.WithRetry(wiretest.QuickRetry)
	c, err := cardwire.New(wiretest.Base, "", cardwire.WithHTTPClient(carrier), keys, quick, wiretest.InMemory())
	require.NoError(t, err)
	ctx := context.WithValue(t.Context(), wiretest.ContextKey{}, "kept")
	_, err = c.ListBINs(ctx)
	require.ErrorIs(t, err, cardwire.ErrUnauthorized)
	_, err = c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1"))
	require.ErrorIs(t, err, cardwire.ErrUnauthorized)
	assert.Equal(t, []string{"Bearer key-1", "Bearer key-1", "Bearer key-2"}, sent, "a retry is not another call")
	assert.Equal(t, "*** is old", wiretest.Failure(t, err).Message, "the key of this very call is masked")
}

func TestWithoutAKeyNothingIsSent(t *testing.T) {
	t.Parallel()
	down := errors.New("vault: token s.4111111111111111 expired")
	const setup = "invalid setup: the API key of the key source "
	for _, tc := range []struct {
		key  string
		err  error
		want string
	}{
		{"", down, "the key source failed: it is safe to call again"},
		{"", fmt.Errorf("s.secret: %w", safeError{"cardwire: the vault is sealed"}), "the key source failed: " +
			"the vault is sealed: it is safe to call again"},
		{"", nil, setup + "is empty: correct it, then call again"},
		{"s.secret\r\nX-Evil: 1", nil, setup + "contains a line break: trim what you read from a file or a form: " +
			"correct it, then call again"},
	} {
		source := func(context.Context) (string, error) { return tc.key, tc.err }
		_, err := wiretest.Unasked(t, cardwire.WithKeySource(source)).ListBINs(t.Context())
		require.EqualError(t, err, "cardwire: ListBINs: not sent: "+tc.want)
		assert.Equal(t, notSent, wiretest.Failure(t, err).Outcome)
		if tc.err != nil {
			require.ErrorIs(t, err, tc.err)
			_, isSafe := errors.AsType[safeError](err)
			assert.Equal(t, tc.err != down, isSafe)
		}
		assert.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "secret")
	}
}

// safeError is an error whose message may be shown.
type safeError struct{ message string }

func (e safeError) Error() string       { return "s.secret " + e.message }
func (e safeError) SafeMessage() string { return e.message }

// A source may call this package. That is another call.
func TestTheErrorOfAKeySourceIsFound(t *testing.T) {
	t.Parallel()
	inner := &cardwire.Error{Op: "GetCard", Outcome: cardwire.OutcomeExecuted, Err: &net.DNSError{Name: "vault"}}
	c := wiretest.Unasked(t, cardwire.WithKeySource(func(context.Context) (string, error) { return "", inner }))
	_, err := c.ListBINs(t.Context())
	lookup, found := errors.AsType[*net.DNSError](err)
	require.True(t, found)
	assert.Equal(t, "vault", lookup.Name)
	assert.Equal(t, notSent, wiretest.Failure(t, err).Outcome)
	failure := wiretest.Failure(t, err)
	_, found = errors.AsType[*cardwire.Error](failure.Err)
	assert.False(t, found)
	assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
}

// A source that hangs ends with the call's own deadline.
func TestTheKeySourceIsAskedWithinTheCallsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := wiretest.Unasked(t, cardwire.WithKeySource(func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}))
		start := time.Now()
		_, err := c.ListBINs(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, notSent, wiretest.Failure(t, err).Outcome)
		assert.Equal(t, 30*time.Second, time.Since(start))
	})
}

func TestALimiterThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("the queue of 4111111111111111 is full")
	failing := func(at int) cardwire.Option {
		waits := 0
		return cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error {
			if waits++; waits == at {
				return full
			}
			return nil
		}))
	}
	for _, w := range wiretest.AllWrites() {
		err := w.Call(t.Context(), wiretest.Unasked(t, failing(1)))
		assert.Equal(t, "NotSent", outcomeOf(t, err), w.Op)
		require.ErrorIs(t, err, full)
		assert.Contains(t, err.Error(), "the rate limiter returned an error")
		assert.NotContains(t, err.Error(), "4111")
	}
	busy := []wiretest.Exchange{{Want: "GET /shop/api/v1/bins", Status: 503}}
	_, err := wiretest.Converse(t, busy, cardwire.WithRetry(wiretest.QuickRetry), failing(2)).ListBINs(t.Context())
	assert.Equal(t, "Unknown, HTTP 503, received", outcomeOf(t, err), "before a retry")
	require.ErrorIs(t, err, full)
}

func TestWithMaxResponseBytes(t *testing.T) {
	t.Parallel()
	const asked = "GET /shop/api/v1/bins/maintenance"
	response := wiretest.Success(`["493193"]`)
	size := int64(len(response))
	c := wiretest.Respond(t, asked, response, cardwire.WithMaxResponseBytes(size))
	_, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err)
	short := wiretest.Converse(t, []wiretest.Exchange{
		{Want: asked, Response: response}, {Want: wiretest.SmallTransferRequest("M-1"), Response: response},
	}, cardwire.WithMaxResponseBytes(size-1), cardwire.WithRetry(wiretest.QuickRetry))
	_, err = short.ListBINsUnderMaintenance(t.Context())
	assert.Equal(t, "Unknown TooLarge, HTTP 200, received", outcomeOf(t, err))
	_, err = short.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.ErrorIs(t, err, cardwire.ErrResponseTooLarge, "the bound of writes is the lower one")

	large := wiretest.Success(`["` + strings.Repeat("4", 100<<10) + `"]`)
	_, err = wiretest.Respond(t, asked, large).ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err, "64 KiB bound writes only")
}

// hanging responds to nothing.
var hanging = wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
})

func TestTimeoutOfACall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		op      string
		timeout time.Duration // WithTimeout; 0: none
		limit   time.Duration // of the context; 0: none
		want    time.Duration
	}{
		"by default":                         {"ListBINs", 0, 0, 30 * time.Second},
		"a write by default":                 {"CreateTransfer", 0, 0, 30 * time.Second},
		"an upload by default":               {"UploadImage", 0, 0, 5 * time.Minute},
		"an option":                          {"ListBINs", time.Hour, 0, time.Hour},
		"an option for an upload":            {"UploadImage", time.Second, 0, time.Second},
		"an earlier deadline of the context": {"ListBINs", 0, time.Second, time.Second},
		"a later deadline of the context":    {"ListBINs", 0, time.Hour, time.Hour},
		"an earlier one, and a reference":    {"CreateTransfer", 0, time.Second, time.Second},
		"a later deadline, and a reference":  {"CreateTransfer", 0, time.Hour, 30 * time.Second},
		"an option, and a reference":         {"FreezeCard", time.Minute, time.Hour, time.Minute},
		"a deadline and an option":           {"ListBINs", time.Second, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, journal := t.Context(), new(wiretest.Journal)
				opts := []cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{}), cardwire.WithJournal(journal)}
				if tc.timeout != 0 {
					opts = append(opts, cardwire.WithTimeout(tc.timeout))
				}
				if tc.limit != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.limit)
					defer cancel()
				}
				start := time.Now()
				err := wiretest.AllMethods()[tc.op](ctx, wiretest.NewClient(t, hanging, opts...))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, unknown, wiretest.Failure(t, err).Outcome)
				assert.Equal(t, tc.want, time.Since(start))
				for _, i := range journal.Begun {
					assert.Equal(t, start.Add(tc.want), i.SendBy)
				}
			})
		})
	}
}

func TestAProfileIsCopied(t *testing.T) {
	t.Parallel()
	codes := []int{1422}
	c := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), `{"code":1422,"msg":"no","data":null}`,
		cardwire.WithProfile(func(p *cardwire.Profile) { p.RefusedCodes = codes }))
	codes[0] = 0
	assert.Equal(t, refused, wiretest.Failure(t, send(t, c)).Outcome)
}

func TestTheDefaults(t *testing.T) {
	t.Parallel()
	assert.Equal(t, cardwire.RetryPolicy{
		MaxRetries: 2, MinDelay: 250 * time.Millisecond, MaxDelay: 8 * time.Second,
		MaxRetryAfter: 30 * time.Second, Attempt: 10 * time.Second,
	}, cardwire.DefaultRetryPolicy())
	refused := []int{400, 401, 403, 404, 405, 413, 415, 422, 429}
	assert.Equal(t, cardwire.Profile{
		LimitParam: "limit", PageParam: "page", StatusParam: "status", CardBINParam: "card_bin",
		CardIDParam: "id", RetryAction: "retry", RefusedCodes: refused, RefusedStatuses: refused,
		BareRefusedStatuses: []int{411, 401, 405, 413, 429}, RetryCodes: []int{429, 503},
		LateExecution: 10 * time.Minute,
	}, cardwire.DefaultProfile())
}
