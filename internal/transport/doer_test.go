package transport

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Not parallel: allocations are counted. The URLs of the request and of the response
// are compared as they are, not as strings that are made for that.
func TestACallersDoerCostsNoMoreThanAClient(t *testing.T) {
	allocations := func(doer Doer) float64 {
		e := New(Config{Doer: doer})
		in := get(t, service)
		in.Path, in.Query = "/account/capacity", "limit=100"
		return testing.AllocsPerRun(200, func() {
			r := e.Do(context.Background(), in)
			require.NoError(t, r.Err)
			require.False(t, r.Redirected)
			r.Release()
		})
	}
	carrier := doerFunc(response(200, "hi"))
	// Under the race detector a pool drops some of its buffers.
	assert.LessOrEqual(t, allocations(carrier), allocations(&http.Client{Transport: carrier})+0.5)
}
