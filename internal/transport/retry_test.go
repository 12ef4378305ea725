package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatusesThatAreRetried(t *testing.T) {
	// go-retryablehttp retries a POST five times on every one of 429 and 5xx.
	for status, want := range map[int][3]int{ // tries of a Read, a Secret, a Write
		200: {1, 1, 1}, 204: {1, 1, 1}, 302: {1, 1, 1}, 400: {1, 1, 1}, 401: {1, 1, 1}, 404: {1, 1, 1},
		408: {3, 1, 1}, 409: {1, 1, 1}, 422: {1, 1, 1}, 425: {3, 1, 1}, 429: {3, 2, 1}, 499: {1, 1, 1},
		500: {3, 1, 1}, 501: {1, 1, 1}, 502: {3, 2, 1}, 503: {3, 2, 1}, 504: {3, 2, 1}, 505: {1, 1, 1}, 599: {1, 1, 1},
	} {
		for _, class := range []Class{Read, Secret, Write} {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(response(status, "words of the service"))
				r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), post(t, service, class))
				assert.Equal(t, want[class], s.requests(), "status %d, class %d", status, class)
				require.NoError(t, r.Err, "the last response is a response, not \"giving up\"")
				assert.Equal(t, status, r.Status)
				assert.Equal(t, "words of the service", string(r.Body), "and its body is kept")
				assert.Equal(t, s.requests(), r.Tries)
			})
		}
	}
}

func TestFailuresThatAreRetried(t *testing.T) {
	truncated := func(r *http.Request) (*http.Response, error) {
		return stream(10, io.MultiReader(strings.NewReader("abc"), eof{}))(r)
	}
	for name, do := range map[string]step{
		"no response": fail(io.EOF), "unknown": fail(errBroken), "truncated": truncated, "hangs": hang,
	} {
		for _, class := range []Class{Read, Secret, Write} {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(do)
				in := post(t, service, class)
				in.Deadline = time.Now().Add(time.Minute)
				r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
				require.Error(t, r.Err)
				assert.Equal(t, map[Class]int{Read: 3, Secret: 1, Write: 1}[class], s.requests(), name)
				assert.Len(t, r.Attempts, r.Tries)
			})
		}
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

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
		assert.Equal(t, "sent", r.Attempts[0].Phase)
		assert.Equal(t, 503, r.Attempts[1].HTTPStatus)
		assert.Equal(t, "received", r.Attempts[2].Phase)
		assert.Positive(t, r.Attempts[0].Wait)
		assert.Zero(t, r.Attempts[2].Wait)
		assert.Equal(t, begun.Add(r.Attempts[0].Wait), r.Attempts[1].Start)
		assert.Equal(t, r.Attempts[0].Wait+r.Attempts[1].Wait, time.Since(begun))
	})
}

func TestRetriesUseTheirOwnHeader(t *testing.T) {
	s := scripted(response(503, ""), response(200, ""))
	in := get(t, service)
	New(Config{Doer: s.client(), Policy: quick}).Do(t.Context(), in)
	s.seen[1].Header.Set("X-Late", "1")
	assert.Empty(t, s.seen[0].Header)
}

func TestNoRetry(t *testing.T) {
	for _, class := range []Class{Read, Secret} {
		s := scripted(response(503, ""))
		in := post(t, service, class)
		in.NoRetry = true
		New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
		assert.Equal(t, 1, s.requests())
	}
	s := scripted(response(503, ""))
	New(Config{Doer: s.client()}).Do(t.Context(), get(t, service))
	assert.Equal(t, 1, s.requests(), "the zero Policy retries nothing")
}

func TestMoreRetriesAreForReadsOnly(t *testing.T) {
	many := policy
	many.MaxRetries = 5
	for class, want := range map[Class]int{Read: 6, Secret: 2, Write: 3} {
		synctest.Test(t, func(t *testing.T) {
			e := New(Config{Policy: many, Transport: &http.Transport{DialContext: refuse(errBroken)}})
			r := e.Do(t.Context(), post(t, service, class))
			assert.Equal(t, want, r.Tries)
		})
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
		assert.LessOrEqual(t, high, most)
		assert.Less(t, low, most/20, "retry %d", retry)
		assert.Greater(t, high, most-most/20, "retry %d", retry)
	}
	assert.EqualValues(t, 1, Policy{}.delay(0))
	assert.LessOrEqual(t, Policy{MinDelay: time.Hour, MaxDelay: time.Second}.delay(3), time.Second)
	unbounded := Policy{MinDelay: time.Hour}
	longest := time.Duration(0)
	for range 100 {
		longest = max(longest, unbounded.delay(5))
	}
	assert.Greater(t, longest, time.Hour, "no bound is not no wait")
	assert.LessOrEqual(t, Policy{MinDelay: 1, MaxDelay: 1 << 62}.delay(1000), time.Duration(1<<62), "no overflow")
}

func TestRetryAfterIsHonoured(t *testing.T) {
	// go-retryablehttp sleeps for a year if asked to, and not at all for 9223372037.
	for _, tc := range []struct {
		status int
		header string
		tries  int
		wait   time.Duration // 0: jitter
		report time.Duration
	}{
		{503, "7", 2, 7 * time.Second, 7 * time.Second},
		{429, "30", 2, 30 * time.Second, 30 * time.Second},
		{500, "2", 2, 2 * time.Second, 2 * time.Second},
		{503, "31", 1, 0, 31 * time.Second},
		{429, "31536000", 1, 0, 365 * 24 * time.Hour},
		{503, "9223372037", 1, 0, maxRetryAfter},
		{503, "0", 2, 0, 0},
		{503, "-1", 2, 0, 0},
		{503, "soon", 2, 0, 0},
		{503, "Sat, 01 Jan 2000 00:00:05 GMT", 2, 5 * time.Second, 5 * time.Second},
		{503, "Sat, 01 Jan 2000 00:01:00 GMT", 1, 0, time.Minute},
		{503, "Fri, 31 Dec 1999 23:59:59 GMT", 2, 0, 0},
		{503, "Fri, 31 Dec 9999 23:59:59 GMT", 1, 0, maxRetryAfter},
		{503, "Fri, 31 Dec 1999 23:59:59 GMT", 2, 0, 0},
		{404, "5", 1, 0, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) { // where it is midnight, 1 January 2000
			s := scripted(response(tc.status, "", "Retry-After", tc.header))
			once := policy
			once.MaxRetries = 1
			r := New(Config{Doer: s.client(), Policy: once}).Do(t.Context(), get(t, service))
			require.NoError(t, r.Err)
			assert.Equal(t, tc.tries, s.requests(), tc.header)
			if tc.wait > 0 {
				assert.Equal(t, tc.wait, r.Attempts[0].Wait)
			} else if tc.tries > 1 {
				assert.LessOrEqual(t, r.Attempts[0].Wait, policy.MinDelay)
			}
			if tc.tries == 1 {
				assert.Equal(t, tc.report, r.RetryAfter)
				assert.Nil(t, r.Attempts)
			}
		})
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"":                                 0,
		"0":                                0,
		"5":                                5 * time.Second,
		" 5":                               5 * time.Second, // white space around a field value is no part of it
		"-1":                               0,
		"+5":                               0,
		"1.5":                              0,
		"5s":                               0,
		"0x10":                             0,
		"31536000":                         365 * 24 * time.Hour,
		"315360000":                        maxRetryAfter,
		"315360001":                        maxRetryAfter,
		"9223372037":                       maxRetryAfter,
		"18446744074":                      maxRetryAfter,
		"9223372036854775807":              maxRetryAfter,
		"18446744073709551616":             maxRetryAfter,
		"18446744073709551616 seconds":     0,
		"Sat, 01 Jan 2000 00:00:30 GMT":    30 * time.Second,
		"Saturday, 01-Jan-00 00:00:30 GMT": 30 * time.Second,
		"Sat Jan  1 00:00:30 2000":         30 * time.Second,
		"Fri, 31 Dec 1999 23:59:59 GMT":    0,
		"Fri, 31 Dec 9999 23:59:59 GMT":    maxRetryAfter,
		"Sat, 01 Jan 2000 00:00:30 CEST":   0,
	} {
		assert.Equal(t, want, parseRetryAfter(in, now), "%q", in)
	}
}

func TestWaitThatOutlastsTheCallIsNotBegun(t *testing.T) {
	busy := response(503, "busy", "Retry-After", "20")
	for name, limit := range map[string]func(context.Context, *Request, time.Duration) (context.Context, context.CancelFunc){
		"deadline of the call": func(ctx context.Context, in *Request, d time.Duration) (context.Context, context.CancelFunc) {
			in.Deadline = time.Now().Add(d)
			return ctx, func() {}
		},
		"deadline of the context": func(ctx context.Context, in *Request, d time.Duration) (context.Context, context.CancelFunc) {
			in.Deadline = time.Now().Add(time.Hour)
			return context.WithTimeout(ctx, d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for d, tries := range map[time.Duration]int{20 * time.Second: 1, 21 * time.Second: 2} {
					s := scripted(busy)
					in := get(t, service)
					ctx, cancel := limit(t.Context(), in, d)
					begun := time.Now()
					r := New(Config{Doer: s.client(), Policy: policy}).Do(ctx, in)
					cancel()
					require.NoError(t, r.Err)
					assert.Equal(t, 503, r.Status)
					assert.Equal(t, "busy", string(r.Body))
					assert.Equal(t, 20*time.Second, r.RetryAfter)
					assert.Equal(t, tries, s.requests())
					assert.Equal(t, time.Duration(tries-1)*20*time.Second, time.Since(begun))
				}
			})
		})
	}
}

func TestDeadlineOfTheCallEndsAnAttempt(t *testing.T) {
	for _, class := range []Class{Read, Secret, Write} {
		synctest.Test(t, func(t *testing.T) {
			s := scripted(hang)
			in := post(t, service, class)
			in.Deadline = time.Now().Add(4 * time.Second)
			begun := time.Now()
			r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			require.EqualError(t, r.Err, "deadline exceeded")
			assert.Equal(t, 4*time.Second, time.Since(begun))
			assert.Equal(t, 1, r.Tries)
			assert.False(t, r.NotSent)
			assert.Equal(t, 4*time.Second, r.Attempts[0].Duration)
		})
	}
}

func TestAttemptOfAReadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(hang, response(200, "hello"))
		in := get(t, service)
		in.Deadline = time.Now().Add(30 * time.Second)
		r := New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
		require.NoError(t, r.Err)
		assert.Equal(t, "hello", string(r.Body))
		assert.Equal(t, 10*time.Second, r.Attempts[0].Duration)

		in.Class = Write
		in.Deadline = time.Now().Add(30 * time.Second)
		s = scripted(hang)
		r = New(Config{Doer: s.client(), Policy: policy}).Do(t.Context(), in)
		assert.Equal(t, 30*time.Second, r.Attempts[0].Duration, "a write is given all the time there is")
	})
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
		require.ErrorIs(t, r.Err, context.DeadlineExceeded)
		assert.Equal(t, 200, r.Status)
		assert.Equal(t, 10500*time.Millisecond, time.Since(begun))
	})
}

func TestContextOfTheAttempt(t *testing.T) { synctest.Test(t, contextOfTheAttempt) }

func contextOfTheAttempt(t *testing.T) {
	type key struct{}
	var seen context.Context
	var during error
	s := scripted(func(r *http.Request) (*http.Response, error) {
		seen, during = r.Context(), r.Context().Err()
		return response(200, "")(r)
	})
	in := get(t, service)
	e := New(Config{Doer: s.client(), Policy: policy})
	r := e.Do(context.WithValue(t.Context(), key{}, "v"), in)
	require.NoError(t, r.Err)
	require.NoError(t, during)
	assert.Equal(t, "v", seen.Value(key{}))
	end, ok := seen.Deadline()
	assert.True(t, ok)
	assert.Equal(t, time.Now().Add(policy.Attempt), end)
	require.ErrorIs(t, seen.Err(), context.Canceled, "it ends with the body")

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	e.Do(ctx, in)
	assert.Same(t, ctx, seen, "an earlier deadline of the caller's own costs nothing")
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
		assert.False(t, r.NotSent)
	})
}

func TestContextEndsDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := scripted(hang)
		r := New(Config{Doer: s.client(), Policy: policy}).Do(ctx, get(t, service))
		require.ErrorIs(t, r.Err, context.DeadlineExceeded)
		assert.Equal(t, 1, s.requests())
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	s := scripted(func(*http.Request) (*http.Response, error) {
		cancel(errBroken)
		return nil, io.EOF // a doer that words it in its own way
	})
	r := New(Config{Doer: s.client(), Policy: quick}).Do(ctx, get(t, service))
	require.ErrorIs(t, r.Err, context.Canceled)
	require.ErrorIs(t, r.Err, errBroken)
	require.ErrorIs(t, r.Err, io.EOF)
	assert.Equal(t, 1, s.requests())
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

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := 0
		limit := func(ctx context.Context) error {
			waits++
			end, _ := ctx.Deadline()
			assert.Equal(t, 20*time.Second, time.Until(end).Round(10*time.Second), "the limiter sees the deadline")
			return nil
		}
		s := scripted(response(503, ""), response(503, ""), response(200, ""))
		in := get(t, service)
		in.Deadline = time.Now().Add(20 * time.Second)
		r := New(Config{Doer: s.client(), Policy: policy, Limit: limit}).Do(t.Context(), in)
		require.NoError(t, r.Err)
		assert.Equal(t, 3, waits)
	})
}

func TestLimitRefuses(t *testing.T) {
	s := scripted(response(503, "busy"))
	calls := 0
	second := func(context.Context) error {
		if calls++; calls == 2 {
			return errBroken
		}
		return nil
	}
	always := func(context.Context) error { return errBroken }

	r := New(Config{Doer: s.client(), Policy: quick, Limit: always}).Do(t.Context(), post(t, service, Write))
	require.ErrorIs(t, r.Err, errBroken)
	require.EqualError(t, r.Err, "the rate limiter returned an error")
	assert.True(t, r.NotSent)
	assert.Zero(t, r.Tries)
	assert.Zero(t, s.requests())

	r = New(Config{Doer: s.client(), Policy: quick, Limit: second}).Do(t.Context(), get(t, service))
	require.ErrorIs(t, r.Err, errBroken)
	assert.False(t, r.NotSent)
	assert.Equal(t, 1, r.Tries)
	assert.Equal(t, 503, r.Status)
	require.Len(t, r.Attempts, 1)
}

func TestLimitThatOutlastsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(response(200, ""))
		patient := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		deaf := func(context.Context) error { pause(time.Hour); return nil }
		for _, limit := range []func(context.Context) error{patient, deaf} {
			in := post(t, service, Write)
			in.Deadline = time.Now().Add(time.Second)
			r := New(Config{Doer: s.client(), Limit: limit}).Do(t.Context(), in)
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			assert.True(t, r.NotSent)
		}
		assert.Zero(t, s.requests())
	})
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
		down := true
		s := scripted(func(r *http.Request) (*http.Response, error) {
			if down {
				return response(503, "")(r)
			}
			return response(404, "")(r)
		})
		e := New(Config{Doer: s.client(), Policy: policy})
		tries := func(n int) (sum int) {
			for range n {
				sum += e.Do(t.Context(), get(t, service)).Tries
			}
			return sum
		}
		assert.Equal(t, 20+20, tries(20), "all of it is spent")
		assert.EqualValues(t, budgetSize, e.budget.spent.Load())
		down = false
		tries(9)
		down = true
		assert.Equal(t, 5+1, tries(5), "nine successes pay for one retry")
		down = false
		tries(1000)
		assert.Zero(t, e.budget.spent.Load(), "and never for more than there was")
	})
}

func TestWhatDoesNotRefillTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, do := range map[string]step{
			"429": response(429, ""), "500": response(500, ""), "501": response(501, ""), "no response": fail(io.EOF),
			"truncated": stream(5, io.MultiReader(strings.NewReader("abc"), eof{})),
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
	var out bytes.Buffer
	before := log.Writer()      //nolint:forbidigo // what must not be written to
	log.SetOutput(&out)         //nolint:forbidigo // what must not be written to
	defer log.SetOutput(before) //nolint:forbidigo // what must not be written to
	both := func(r *http.Request) (*http.Response, error) {
		resp, _ := response(200, "")(r)
		return resp, errBroken // http.Client logs this
	}
	New(Config{Doer: scripted(both).client(), Policy: quick}).Do(t.Context(), get(t, service))
	assert.Empty(t, out.String())
}

func TestEveryDefaultOfTheLibraryIsReplaced(t *testing.T) {
	library := newLibrary(2)
	assert.NotNil(t, retryablehttp.NewClient().Logger, "which writes every URL to stderr")
	assert.Nil(t, library.Logger)
	assert.NotNil(t, library.CheckRetry)
	assert.NotNil(t, library.Backoff)
	assert.NotNil(t, library.ErrorHandler)
	_, closes := library.HTTPClient.Transport.(interface{ CloseIdleConnections() })
	assert.False(t, closes, "which it calls after each failure")
}

func TestErrorsOfTheLibraryArePassedOn(t *testing.T) {
	e := New(Config{Doer: scripted(response(200, "")).client()})
	e.library.HTTPClient = &http.Client{Transport: doerFunc(fail(fmt.Errorf("at %s: %w", service, errBroken)))}
	r := e.Do(t.Context(), get(t, service))
	require.ErrorIs(t, r.Err, errBroken)
	require.EqualError(t, r.Err, "connection failed")
}
