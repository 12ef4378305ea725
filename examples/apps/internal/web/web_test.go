package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is in progress where the program is told to stop comes to its end, or is cut off
// where that takes too long, and is reported.
func TestServeEndsInOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		patience time.Duration
		cut      bool
	}{"in time": {time.Minute, false}, "too late": {time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, finish := make(chan struct{}), make(chan struct{})
			server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(begun)
				<-finish
				_, _ = io.WriteString(w, "done")
			})}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- Serve(ctx, server, listener, tc.patience) }()

			got := make(chan string, 1)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			go func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
				assert.NoError(t, err)
				response, err := client.Do(r)
				if err != nil {
					got <- "cut off"
					return
				}
				defer response.Body.Close()
				text, _ := io.ReadAll(response.Body)
				got <- string(text)
			}()
			<-begun
			stop()
			if tc.cut {
				require.ErrorContains(t, <-ended, "requests in progress were cut off: ")
				assert.Equal(t, "cut off", <-got)
				close(finish)
				return
			}
			close(finish)
			require.NoError(t, <-ended)
			assert.Equal(t, "done", <-got)
		})
	}
}

func TestServeReportsWhyItCannot(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorIs(t, Serve(t.Context(), &http.Server{ReadHeaderTimeout: time.Minute}, listener, time.Minute), net.ErrClosed)
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8081": true, "[::1]:8081": true, "localhost": true, "LOCALHOST:80": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "0.0.0.0:8081": false, "[::]:8081": false, "192.0.2.1": false,
	} {
		assert.Equal(t, want, IsLoopback(host), host)
	}
}
