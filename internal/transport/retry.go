package transport

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxSecretRetries and maxWriteRetries cap Policy.MaxRetries.
	maxSecretRetries = 1
	maxWriteRetries  = 2
	// maxRetryAfter is reported for any longer Retry-After.
	maxRetryAfter = 10 * 365 * 24 * time.Hour
)

// again records the attempt, and reports whether another follows, after attempt.Wait.
func (c *call) again() bool {
	if c.refused {
		return false
	}
	c.attempt.Wait = c.pause()
	c.record()
	again := c.attempt.Wait > 0
	if !again && c.response.Tries == 1 && c.healthy() {
		c.engine.budget.refill()
	}
	return again
}

// pause returns how long to wait before the next attempt; 0: there is none.
func (c *call) pause() time.Duration {
	if c.response.Tries > c.maxRetries() || !c.retryable() {
		return 0
	}
	wait := c.engine.policy.delay(c.response.Tries - 1)
	switch after := c.response.RetryAfter; {
	case after > c.engine.policy.MaxRetryAfter:
		return 0
	case after > 0:
		wait = after
	}
	if !c.outlasts(wait) || !c.engine.budget.spend() {
		return 0
	}
	return wait
}

func (c *call) maxRetries() int {
	most := c.engine.policy.MaxRetries
	switch {
	case c.in.NoRetry:
		return 0
	case c.in.Class == Secret:
		return min(most, maxSecretRetries)
	case c.in.Class == Write:
		return min(most, maxWriteRetries)
	}
	return most
}

// retryable reports whether another attempt is harmless and may succeed.
func (c *call) retryable() bool {
	switch {
	case c.final || c.response.Redirected || c.ctx.Err() != nil:
		return false
	case c.response.Err == nil:
		return retryableStatus(c.in.Class, c.response.Status)
	case c.in.Class == Read:
		return true
	}
	return c.unsent
}

func retryableStatus(class Class, status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return class != Write
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusInternalServerError:
		return class == Read
	}
	return false
}

// delay is full jitter: clients that failed together do not retry together. It is
// never 0, which would mean that there is no retry.
func (p Policy) delay(retry int) time.Duration {
	bound := p.MaxDelay
	if bound <= 0 {
		bound = math.MaxInt64 / 2
	}
	most := p.MinDelay
	for ; retry > 0 && most < bound; retry-- {
		most *= 2
	}
	most = min(most, bound)
	if most <= 0 {
		return 1
	}
	return 1 + rand.N(most)
}

// outlasts reports whether the call has more than d left.
func (c *call) outlasts(d time.Duration) bool {
	end := c.end()
	return end.IsZero() || time.Until(end) > d
}

// end returns when the call ends, by its own deadline or its context's; zero: never.
func (c *call) end() time.Time {
	end := c.in.Deadline
	if own, ok := c.ctx.Deadline(); ok {
		end = earlier(end, own)
	}
	return end
}

// healthy reports whether the service is up and not overloaded.
func (c *call) healthy() bool {
	return c.response.Err == nil && c.response.Status < 500 && c.response.Status != http.StatusTooManyRequests
}

// parseRetryAfter reads seconds or an HTTP date; anything else is 0.
func parseRetryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	// Checked first: for a long string strconv reports "out of range" before it finds
	// that it is not a number.
	if v != "" && strings.Trim(v, "0123456789") == "" {
		seconds, err := strconv.ParseUint(v, 10, 64)
		if err != nil || seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

const (
	budgetSize = 100
	retryCost  = 5
)

// budget keeps retries from multiplying the traffic during an outage: a retry costs
// more than a success restores. Its zero value is full.
type budget struct{ spent atomic.Int64 }

func (b *budget) spend() bool {
	for {
		n := b.spent.Load()
		if n+retryCost > budgetSize {
			return false
		}
		if b.spent.CompareAndSwap(n, n+retryCost) {
			return true
		}
	}
}

func (b *budget) refill() {
	for {
		n := b.spent.Load()
		if n == 0 || b.spent.CompareAndSwap(n, n-1) {
			return
		}
	}
}
