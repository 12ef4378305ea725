package wiretest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// Drifts returns an option that collects the drift of all calls, and the list of it.
func Drifts() (cardwire.Option, *[]cardwire.Drift) {
	list := new([]cardwire.Drift)
	note := func(_ context.Context, _ cardwire.CallInfo, d cardwire.Drift) { *list = append(*list, d) }
	return cardwire.WithObserver(cardwire.Observer{Drift: note}), list
}

// ReadsQuirk asserts that a response which deviates from the API is read as want, that
// observers are told of the drift, and that WithStrictDrift returns an error for it together
// with the same value.
func ReadsQuirk[T any](
	t *testing.T, request, response string,
	read func(*cardwire.Client, context.Context, ...cardwire.CallOption) (T, error), want T, drift []cardwire.Drift,
) {
	t.Helper()
	observe, told := Drifts()
	got, err := read(Respond(t, request, response, observe), t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, drift, *told)

	got, err = read(Respond(t, request, response, cardwire.WithStrictDrift()), t.Context())
	assert.Equal(t, want, got)
	if drift == nil {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, cardwire.ErrDrift)
	require.ErrorIs(t, err, cardwire.ErrExecuted)
}

// ContextKey is the key of a value that a caller puts into a context.
type ContextKey struct{}

// ClientOver returns a client of the service at base, with a journal in memory, which retries
// without waiting.
func ClientOver(t *testing.T, base string, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New(base, Key, append([]cardwire.Option{cardwire.WithRetry(QuickRetry), InMemory()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// InMemory returns the option of a journal in memory: without one a client moves no money.
func InMemory() cardwire.Option { return cardwire.WithJournal(journal.NewMemory()) }

// QuickRetry retries as the default policy does, without the waits.
var QuickRetry = cardwire.RetryPolicy{MaxRetries: 2, MinDelay: 1, MaxDelay: 1, MaxRetryAfter: time.Minute}

// Limiter is a function as a cardwire.Limiter.
type Limiter func(context.Context) error

// Wait calls l.
func (l Limiter) Wait(ctx context.Context) error { return l(ctx) }

// InTurn admits one request a second, in the order in which they came, and refuses at
// once what would wait beyond its deadline, as golang.org/x/time/rate does.
func InTurn() cardwire.Option {
	var mu sync.Mutex
	next := time.Now()
	return cardwire.WithLimiter(Limiter(func(ctx context.Context) error {
		mu.Lock()
		turn := time.Now()
		if next.After(turn) {
			turn = next
		}
		if end, ok := ctx.Deadline(); ok && turn.After(end) {
			mu.Unlock()
			return context.DeadlineExceeded
		}
		next = turn.Add(time.Second)
		mu.Unlock()
		select {
		case <-time.After(time.Until(turn)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
}

// Allocated returns the bytes that were allocated during op, whether or not they are still in
// use.
func Allocated(op func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	op()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// Walk returns what AllCards yields: the IDs of cards, and the error that ended it.
func Walk(
	ctx context.Context, c *cardwire.Client, p cardwire.ListCardsParams, opts ...cardwire.CallOption,
) (ids []string, err error) {
	for card, e := range c.AllCards(ctx, p, opts...) {
		if e != nil {
			if err != nil {
				e = errors.Join(err, e) // only one may come
			}
			err = e
			continue
		}
		ids = append(ids, card.ID)
	}
	return ids, err
}
