package transport

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatusesThatAreRetried(t *testing.T) {
	// go-retryablehttp retries a POST five times on every one of 429 and 5xx.
	for status, tries := range map[int]int{ // of a Read; a Write is sent once
		200: 1, 204: 1, 302: 1, 400: 1, 401: 1, 404: 1, 408: 3, 409: 1, 422: 1, 425: 3, 429: 3, 499: 1,
		500: 3, 501: 1, 502: 3, 503: 3, 504: 3, 505: 1, 599: 1,
	} {
		for kind, in := range map[string]*Request{
			"read": get(t, service), "secrets": secrets(t, service), "write": post(t, service, Write),
		} {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(response(status, "words of the service"))
				r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
				want := tries
				if in.Class == Write {
					want = 1
				}
				assert.Equal(t, want, s.requests(), "status %d, %s", status, kind)
				require.NoError(t, r.Err, "the last response is a response, not \"giving up\"")
				assert.Equal(t, status, r.Status)
				assert.Equal(t, "words of the service", string(r.Body), "and its body is kept")
				assert.Equal(t, s.requests(), r.Tries)
			})
		}
	}
}

// truncated is a body of ten bytes that ends after three.
func truncated(r *http.Request) (*http.Response, error) {
	return stream(10, io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)))(r)
}

func TestFailuresThatAreRetried(t *testing.T) {
	for name, do := range map[string]step{
		"no response": fail(io.EOF), "unknown": fail(errBroken), "truncated": truncated, "hangs": hang,
	} {
		for _, class := range classes {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(do)
				in := post(t, service, class)
				in.Deadline = time.Now().Add(time.Minute)
				r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
				require.Error(t, r.Err)
				assert.Equal(t, map[Class]int{Read: 3, Write: 1}[class], s.requests(), name)
				assert.Len(t, r.Attempts, r.Tries)
			})
		}
	}
	s := scripted(stream(-1, endless{}))
	r := New(Config{Doer: s.client(), Policy: quick}).Do(t.Context(), get(t, service))
	require.EqualError(t, r.Err, "the response is too large")
	assert.Equal(t, 1, s.requests(), "it will not be smaller")
}

func TestRetrySucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(fail(io.EOF), response(503, "busy"), response(200, "hello"))
		var told []Attempt
		in := get(t, service)
		in.OnAttempt = func(a Attempt) { told = append(told, a) }
		begun := time.Now()
		r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)

		require.NoError(t, r.Err)
		assert.Equal(t, "hello", string(r.Body))
		assert.Equal(t, 3, r.Tries)
		require.Len(t, r.Attempts, 3)
		assert.Equal(t, told, r.Attempts)
		assert.Equal(t, []string{"sent", "received", "received"}, phases(r))
		assert.Equal(t, 503, r.Attempts[1].HTTPStatus)
		assert.Positive(t, r.Attempts[0].Wait)
		assert.Zero(t, r.Attempts[2].Wait)
		assert.Equal(t, begun.Add(r.Attempts[0].Wait), r.Attempts[1].Start)
		assert.Equal(t, r.Attempts[0].Wait+r.Attempts[1].Wait, time.Since(begun))
	})
}

func TestHowOftenIsRetried(t *testing.T) {
	for _, tc := range []struct {
		policy, noRetry bool
		read, write     int
	}{{true, false, 6, 3}, {true, true, 1, 1}, {false, false, 1, 1}} {
		for _, class := range classes {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{Transport: &http.Transport{DialContext: refuse(errBroken)}}
				if tc.policy {
					cfg.Policy = policy
					cfg.Policy.MaxRetries = 5
				}
				in := post(t, service, class)
				in.NoRetry = tc.noRetry
				r := New(cfg).Do(t.Context(), in)
				assert.Equal(t, map[Class]int{Read: tc.read, Write: tc.write}[class], r.Tries)
			})
		}
	}
}

func TestDelayIsFullJitter(t *testing.T) {
	p := Policy{MinDelay: 100 * time.Millisecond, MaxDelay: time.Second}
	for retry, most := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		most *= time.Millisecond
		low, high := most, time.Duration(0)
		for range 2000 {
			d := p.delay(retry)
			low, high = min(low, d), max(high, d)
		}
		assert.Positive(t, low)
		assert.Less(t, low, most/20, "retry %d", retry)
		assert.InDelta(t, most-most/40, high, float64(most/40), "retry %d", retry)
	}
	assert.EqualValues(t, 1, Policy{}.delay(0))
	longest := time.Duration(0)
	for range 100 {
		longest = max(longest, Policy{MinDelay: time.Hour}.delay(5))
	}
	assert.Greater(t, longest, time.Hour, "no bound is not no wait")
	assert.LessOrEqual(t, Policy{MinDelay: 1, MaxDelay: 1 << 62}.delay(1000), time.Duration(1<<62), "no overflow")
}

func TestRetryAfterIsHonored(t *testing.T) {
	// go-retryablehttp sleeps for a year if asked to.
	for _, tc := range []struct {
		status int
		header string
		tries  int
		wait   time.Duration // 0: jitter
		report time.Duration
	}{
		{503, "7", 2, 7 * time.Second, 7 * time.Second},
		{429, "30", 2, 30 * time.Second, 30 * time.Second},
		{500, " 2", 2, 2 * time.Second, 2 * time.Second},
		{503, "31", 1, 0, 31 * time.Second},
		{429, "3600", 1, 0, time.Hour},
		{429, "3601", 1, 0, time.Hour},
		{503, "999999999", 1, 0, time.Hour},
		{503, "1795415413", 1, 0, time.Hour}, // an epoch
		{503, "18446744073709551616", 1, 0, time.Hour},
		{503, "18446744073709551616 seconds", 2, 0, 0},
		{503, "0", 2, 0, 0},
		{503, "-1", 2, 0, 0},
		{503, "+5", 2, 0, 0},
		{503, "soon", 2, 0, 0},
		{503, "Sat, 01 Jan 2000 00:00:05 GMT", 2, 5 * time.Second, 5 * time.Second},
		{503, "Saturday, 01-Jan-00 00:00:05 GMT", 2, 5 * time.Second, 5 * time.Second},
		{503, "Sat, 01 Jan 2000 00:01:00 GMT", 1, 0, time.Minute},
		{503, "Fri, 31 Dec 1999 23:59:59 GMT", 2, 0, 0},
		{503, "Fri, 31 Dec 9999 23:59:59 GMT", 1, 0, time.Hour},
		{404, "5", 1, 0, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) { // where it is midnight, 1 January 2000
			s := scripted(response(tc.status, "", "Retry-After", tc.header))
			once := policy
			once.MaxRetries = 1
			r := New(Config{Doer: s.client(), Policy: once}).Do(t.Context(), get(t, service))
			require.NoError(t, r.Err)
			assert.Equal(t, tc.tries, s.requests(), tc.header)
			switch {
			case tc.tries == 1:
				assert.Equal(t, tc.report, r.RetryAfter, tc.header)
				assert.Nil(t, r.Attempts)
			case tc.wait > 0:
				assert.Equal(t, tc.wait, r.Attempts[0].Wait, tc.header)
			default:
				assert.LessOrEqual(t, r.Attempts[0].Wait, policy.MinDelay, tc.header)
			}
		})
	}
}

func TestABodyAsksForARetryAsAStatusDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for class, want := range map[Class]struct {
			tries int
			spent int64
		}{Read: {3, 60}, Write: {1, 49}} {
			s := scripted(response(200, "busy", "Retry-After", "20"), response(400, "busy"), response(200, "hi"))
			e := New(Config{Doer: s.client(), Policy: policy})
			in := post(t, service, class)
			in.Busy = func(body []byte) bool { return string(body) == "busy" }
			e.budget.spent.Store(50)
			begun := time.Now()
			require.NoError(t, e.Do(t.Context(), in).Err)
			assert.Equal(t, want.tries, s.requests())
			assert.Equal(t, want.spent, e.budget.spent.Load())
			assert.Equal(t, class == Read, time.Since(begun) >= 20*time.Second)
			in.NoRetry = true
			e = New(Config{Doer: scripted(response(200, "busy")).client(), Policy: policy})
			e.budget.spent.Store(50)
			require.NoError(t, e.Do(t.Context(), in).Err)
			assert.Equal(t, class == Read, e.budget.spent.Load() == 50, "what is busy is no success")
		}
	})
}

func TestWaitThatOutlastsTheCallIsNotBegun(t *testing.T) {
	for _, byContext := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			for d, tries := range map[time.Duration]int{20 * time.Second: 1, 21 * time.Second: 2} {
				s := scripted(response(503, "busy", "Retry-After", "20"))
				in := get(t, service)
				in.Deadline = time.Now().Add(d)
				ctx := t.Context()
				if byContext {
					in.Deadline = time.Now().Add(time.Hour)
					limited, cancel := context.WithTimeout(ctx, d)
					defer cancel()
					ctx = limited
				}
				begun := time.Now()
				r := New(Config{Doer: s.client(), Policy: Policy{MaxRetries: 2}}).Do(ctx, in) // with no MaxRetryAfter
				require.NoError(t, r.Err)
				assert.Equal(t, 503, r.Status)
				assert.Equal(t, "busy", string(r.Body))
				assert.Equal(t, 20*time.Second, r.RetryAfter)
				assert.Equal(t, tries, s.requests())
				assert.Equal(t, time.Duration(tries-1)*20*time.Second, time.Since(begun))
			}
		})
	}
}

// drip is a body without end that takes no notice of a context.
type drip struct{}

func (drip) Read(p []byte) (int, error) {
	pause(1500 * time.Millisecond) // the deadline passes within a pause
	p[0] = 'x'
	return 1, nil
}

func TestDeadlineHoldsForABodyThatIgnoresIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := get(t, service)
		in.NoRetry = true
		begun := time.Now()
		r := New(Config{Doer: scripted(stream(-1, drip{})).client(), Policy: policy}).Do(t.Context(), in)
		require.EqualError(t, r.Err, "deadline exceeded: RetryPolicy.Attempt's")
		assert.Equal(t, 200, r.Status)
		assert.Equal(t, 10500*time.Millisecond, time.Since(begun))
	})
}

func TestContextEndsDuringAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(response(503, "busy", "Retry-After", "20"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(errBroken) })
		begun := time.Now()
		r := New(Config{Doer: s.client(), Policy: policy}).Do(ctx, get(t, service))

		require.ErrorIs(t, r.Err, context.Canceled)
		require.ErrorIs(t, r.Err, errBroken)
		require.EqualError(t, r.Err, "the call was canceled")
		assert.Equal(t, 5*time.Second, time.Since(begun))
		require.Len(t, r.Attempts, 1)
		assert.Equal(t, 503, r.Attempts[0].HTTPStatus)
		assert.Equal(t, 20*time.Second, r.Attempts[0].Wait)
		assert.Equal(t, 503, r.Status, "the last response is still told")
		assert.Equal(t, "busy", string(r.Body))
		assert.False(t, r.NotSent)
	})
}

func TestResponseThatCameIsNotThrownAway(t *testing.T) {
	// go-retryablehttp's own policy looks at the context first, and drops it.
	for _, status := range []int{200, 503} {
		ctx, cancel := context.WithCancel(t.Context())
		s := scripted(func(r *http.Request) (*http.Response, error) {
			cancel()
			return response(status, "in time")(r)
		})
		r := New(Config{Doer: s.client(), Policy: policy}).Do(ctx, get(t, service))
		require.NoError(t, r.Err)
		assert.Equal(t, status, r.Status)
		assert.Equal(t, "in time", string(r.Body))
		assert.Equal(t, 1, s.requests())
	}
}

func TestBudgetInATotalOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, do := range []step{response(503, ""), fail(io.EOF)} {
			s := scripted(do)
			e := New(Config{Doer: s.client(), Policy: policy})
			for range 10_000 {
				e.Do(t.Context(), get(t, service)).Release()
			}
			assert.Equal(t, 10_020, s.requests())
		}
	})
}

func TestBudgetComesBackWithFirstTrySuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 503
		e := New(Config{Policy: policy, Doer: scripted(func(r *http.Request) (*http.Response, error) {
			return response(status, "")(r)
		})})
		tries := func(n int) (sum int) {
			for range n {
				sum += e.Do(t.Context(), get(t, service)).Tries
			}
			return sum
		}
		assert.Equal(t, 20+20, tries(20), "all of it is spent")
		assert.EqualValues(t, budgetSize, e.budget.spent.Load())
		status = 404
		tries(9)
		status = 503
		assert.Equal(t, 5+1, tries(5), "nine successes pay for one retry")
		status = 404
		tries(1000)
		assert.Zero(t, e.budget.spent.Load(), "and never for more than there was")
	})
}

func TestWhatDoesNotRefillTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, do := range map[string]step{
			"429": response(429, ""), "500": response(500, ""), "501": response(501, ""),
			"no response": fail(io.EOF), "truncated": truncated,
		} {
			e := New(Config{Doer: scripted(do).client(), Policy: policy})
			e.budget.spent.Store(50)
			in := get(t, service)
			in.NoRetry = true
			e.Do(t.Context(), in)
			assert.EqualValues(t, 50, e.budget.spent.Load(), name)
		}
		e := New(Config{Doer: scripted(response(503, ""), response(200, "")).client(), Policy: policy})
		e.budget.spent.Store(50)
		e.Do(t.Context(), get(t, service))
		assert.EqualValues(t, 55, e.budget.spent.Load(), "a success after a retry brings nothing back")
	})
}

func TestNothingIsLogged(t *testing.T) {
	out := keepLog(t)
	both := func(r *http.Request) (*http.Response, error) {
		resp, _ := response(200, "")(r)
		return resp, errBroken // http.Client logs this
	}
	New(Config{Doer: scripted(both).client(), Policy: quick}).Do(t.Context(), get(t, service))
	assert.Empty(t, out.String(), "go-retryablehttp's logger writes every URL")
	_, closes := any(new(exchange)).(interface{ CloseIdleConnections() })
	assert.False(t, closes, "which the library calls after each failure")
}
