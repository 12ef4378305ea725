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

// carry returns the request for go-retryablehttp: it carries the call and nothing else,
// because each attempt makes its own request.
func (c *call) carry() *retryablehttp.Request {
	ctx := context.WithValue(c.ctx, callKey{}, c)
	c.inner = *(&http.Request{Method: c.in.Method, URL: c.in.URL, Header: c.engine.noHeader}).WithContext(ctx)
	c.outer.Request = &c.inner
	return &c.outer
}

// carried is what carry returns. It is part of the call to save an allocation.
type carried struct {
	inner http.Request
	outer retryablehttp.Request
}
