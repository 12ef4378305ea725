package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The samples look like payments, and the page says that they are none.
func TestThePageOfTheDemonstration(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, w)
		_ = w.CloseWithError(err) // the scanner's, where it ends early
		ended <- err
	}()
	address, out := "", bufio.NewScanner(r)
	for address == "" && out.Scan() {
		address = regexp.MustCompile(`http://\S+/`).FindString(out.Text())
	}
	require.NoError(t, out.Err())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]string{"": `<span class="of">Demo</span>`, "?state=unresolved": "USD",
		"order?number=sample-2": "Alan Turing"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Accept", "text/html")
		response, err := client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.Contains(t, string(text), want)
	}
	end()
	require.NoError(t, <-ended)
}
