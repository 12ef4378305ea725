package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDemonstration(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, 40))
	assert.Regexp(t, `\A40 orders go to the fake service\. .*
submitted \d+
failed    \d+
Orders and ledger agree: what was submitted was executed once, and nothing else was\.
\z`, out.String())
}

// The samples look like payments, and the page says that they are none.
func TestThePageOfTheDemonstration(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, w, 0) }()
	address := ""
	for out := bufio.NewScanner(r); address == "" && out.Scan(); {
		address = regexp.MustCompile(`http://\S+/`).FindString(out.Text())
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]string{"": `<span class="of">Demo</span>`, "?state=unresolved": "USD", "order?number=sample-2": "Alan Turing"} {
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
