package transport

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxWriteRetries = 2 // at most, whatever Policy.MaxRetries is
	// maxRetryAfter is reported for any longer Retry-After: a service that sends an epoch
	// instead of a number of seconds must not park an order for years.
	maxRetryAfter = time.Hour
	budgetSize    = 100
	retryCost     = 5
)

// checkRetry records the attempt, and reports whether another follows, after attempt.Wait.
// Backoff chooses nothing, because a pause that is too long ends the call.
func (x *exchange) checkRetry(_ context.Context, resp *http.Response, err error) (bool, error) {
	if is[*stoppedError](err) {
		return false, nil
	}
	x.attempt.Wait = x.pause(err)
	x.record(err)
	again := x.attempt.Wait > 0
	healthy := err == nil && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && !x.busy
	if !again && x.response.Tries == 1 && healthy {
		x.engine.budget.refill()
	}
	return again, nil
}

// pause returns how long to wait before the next attempt; 0: there is none.
func (x *exchange) pause(err error) time.Duration {
	if x.response.Tries > x.retrier.RetryMax || !x.retryable(err) {
		return 0
	}
	wait, most := x.engine.policy.delay(x.response.Tries-1), x.engine.policy.MaxRetryAfter
	switch after := x.response.RetryAfter; {
	case most > 0 && after > most:
		return 0
	case after > 0:
		wait = after
	}
	if end := x.end.at; !end.IsZero() && time.Until(end) <= wait || !x.engine.budget.spend() {
		return 0
	}
	return wait
}

func (x *exchange) maxRetries() int {
	switch most := x.engine.policy.MaxRetries; {
	case x.in.NoRetry:
		return 0
	case x.in.Class == Write:
		return min(most, maxWriteRetries)
	default:
		return most
	}
}

// retryable reports whether another attempt is harmless and may succeed.
func (x *exchange) retryable(err error) bool {
	switch {
	case x.response.Redirected || x.ctx.Err() != nil:
		return false
	case err == nil:
		return x.busy
	case permanent(err):
		return false
	}
	return x.in.Class == Read || is[*unsentError](err) && !errors.Is(err, errUnasked)
}

var retryableStatuses = []int{
	http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// delay is full jitter: clients that failed together do not retry together. It is
// never 0, which would mean that there is no retry.
func (p Policy) delay(retry int) time.Duration {
	bound := cmp.Or(p.MaxDelay, math.MaxInt64/2)
	most := p.MinDelay
	for ; retry > 0 && most < bound; retry-- {
		most *= 2
	}
	return 1 + rand.N(max(min(most, bound), 1))
}

// deadline is a point in time, and whose it is.
type deadline struct {
	at    time.Time // zero: never
	whose string
}

// or returns the earlier of two deadlines.
func (d deadline) or(other deadline) deadline {
	if d.at.IsZero() || !other.at.IsZero() && other.at.Before(d.at) {
		return other
	}
	return d
}

// bound returns when the attempt ends, or the call if none has begun.
func (x *exchange) bound() deadline {
	if most := x.engine.policy.Attempt; most > 0 && x.in.Class == Read && !x.attempt.Start.IsZero() {
		return x.end.or(deadline{x.attempt.Start.Add(most), "RetryPolicy.Attempt's"})
	}
	return x.end
}

// until is the caller's context with a deadline.
func (x *exchange) until(d deadline) (context.Context, context.CancelFunc) {
	if d.at.IsZero() || d.whose == contexts {
		return x.ctx, func() {}
	}
	return context.WithDeadline(x.ctx, d.at)
}

// parseRetryAfter reads seconds or an HTTP date; anything else is 0.
func parseRetryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if v != "" && strings.Trim(v, "0123456789") == "" {
		seconds, _ := strconv.ParseUint(v, 10, 64) // a number that is too large is the largest
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// budget keeps retries from multiplying the traffic during an outage: a retry costs
// more than a success restores. Its zero value is full.
type budget struct{ spent atomic.Int64 }

func (b *budget) spend() bool {
	if b.spent.Add(retryCost) <= budgetSize {
		return true
	}
	b.spent.Add(-retryCost)
	return false
}

func (b *budget) refill() {
	if b.spent.Load() > 0 && b.spent.Add(-1) < 0 {
		b.spent.Add(1)
	}
}
