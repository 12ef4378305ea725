package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// newLibrary returns go-retryablehttp with every default of it replaced: by itself it
// retries a POST on any failed connection and any 5xx, sleeps for any Retry-After, if it
// is a year, and logs every URL to stderr. No other file knows it.
func newLibrary(maxRetries int) library {
	return library{
		HTTPClient:   &http.Client{Transport: attempts{}},
		RetryMax:     maxRetries,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		CheckRetry: func(ctx context.Context, _ *http.Response, err error) (bool, error) {
			return err == nil && callOf(ctx).again(), nil
		},
		Backoff: func(_, _ time.Duration, _ int, stub *http.Response) time.Duration {
			return callOf(stub.Request.Context()).attempt.Wait
		},
	}
}

type library = retryablehttp.Client

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// loop makes the attempts of the call. The error is that of a wait that the context
// cut short.
func (c *call) loop() error {
	ctx := context.WithValue(c.ctx, callKey{}, c)
	// The request carries nothing but the call: each attempt makes its own.
	c.inner = *(&http.Request{Method: c.in.Method, URL: c.in.URL, Header: c.engine.noHeader}).WithContext(ctx)
	c.outer.Request = &c.inner
	_, err := c.engine.library.Do(&c.outer)
	return err
}

// carried is what go-retryablehttp is given of a call. It is part of the call to be
// one allocation with it.
type carried struct {
	inner http.Request
	outer retryablehttp.Request
}

// attempts is the RoundTripper below go-retryablehttp. It has no CloseIdleConnections on
// purpose: the library calls that after each failure.
type attempts struct{}

// RoundTrip makes one attempt of the call that r carries. It never fails, and its
// response is a stub with a status that makes http.Client look no further: what
// happened is in the call.
func (attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callOf(r.Context())
	c.try()
	if !c.retryable() {
		return &c.engine.stub, nil // Backoff will not ask whose it is
	}
	stub := c.engine.stub
	stub.Request = r
	return &stub, nil
}
