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
	// maxRetryAfter is how a Retry-After without end is reported.
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
	if !again && c.reply.Tries == 1 && c.healthy() {
		c.engine.budget.refill()
	}
	return again
}

// pause is how long to wait before the next attempt; 0: there is none.
func (c *call) pause() time.Duration {
	if c.reply.Tries > c.maxRetries() || !c.retryable() {
		return 0
	}
	wait := c.engine.policy.delay(c.reply.Tries - 1)
	switch after := c.reply.RetryAfter; {
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

// retryable reports whether the last attempt may be made again without harm, and
// with hope.
func (c *call) retryable() bool {
	switch {
	case c.final || c.reply.Redirected || c.ctx.Err() != nil:
		return false
	case c.reply.Err == nil:
		return retryableStatus(c.in.Class, c.reply.Status)
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

// delay is full jitter: clients that failed together do not come back together. It
// is never 0, which would say that there is no repeat.
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

// outlasts says whether the call goes on for longer than d.
func (c *call) outlasts(d time.Duration) bool {
	end := c.end()
	return end.IsZero() || time.Until(end) > d
}

// end is when the call ends, by its own deadline or its context's; zero: never.
func (c *call) end() time.Time {
	end := c.in.Deadline
	if own, ok := c.ctx.Deadline(); ok {
		end = earlier(end, own)
	}
	return end
}

// healthy says that the service is up and not overloaded.
func (c *call) healthy() bool {
	return c.reply.Err == nil && c.reply.Status < 500 && c.reply.Status != http.StatusTooManyRequests
}

// parseRetryAfter reads seconds or an HTTP date; what is neither is 0.
func parseRetryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	// Looked at first: strconv finds a number too large before it sees that it is none.
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

// budget keeps an outage from being answered with a multiple of the traffic: a
// repeat costs more than a success brings back. Its zero value is full.
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
