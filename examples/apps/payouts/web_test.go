package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is in progress where the program is told to stop comes to its end, or is cut off
// where that takes too long, and is reported.
func TestServingEndsInOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		patience time.Duration
		cut      bool
	}{"in time": {time.Minute, false}, "too late": {time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, finish := make(chan struct{}), make(chan struct{})
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(begun)
				<-finish
				_, _ = io.WriteString(w, "done")
			})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
			go func() { ended <- serveUntil(ctx, server, listener, tc.patience) }()

			got := make(chan string, 1)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			go func() {
				url := "http://" + listener.Addr().String()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				assert.NoError(t, err)
				response, err := client.Do(r)
				if err != nil {
					got <- "cut off"
					return
				}
				defer response.Body.Close()
				got <- textOf(t, response)
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

func TestServingReportsWhyItCannot(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	err = serveUntil(t.Context(), &http.Server{ReadHeaderTimeout: time.Minute}, listener, time.Minute)
	require.ErrorIs(t, err, net.ErrClosed)
}

// A site whose name leads to this address does not get to see a page.
func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8081": true, "[::1]:8081": true, "localhost": true, "LOCALHOST:80": true,
		"": false, " ": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"localhost:x": false, "0.0.0.0:8081": false, "[::]:8081": false, "192.0.2.1": false,
	} {
		assert.Equal(t, want, isLoopback(host), host)
	}
}

// Every response has them, also that to a host which is not served, and no page needs more.
func TestTheHeadersOfEveryResponse(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.lost("A-1", true)
	for _, address := range []string{
		"http://127.0.0.1/", "http://127.0.0.1/orders/A-1", "http://127.0.0.1/payouts", "http://127.0.0.1/nowhere",
		"http://127.0.0.1/static/style.css", "http://evil.example/", "http://evil.example/static/style.css",
	} {
		w := httptest.NewRecorder()
		s.routes("").ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", address, nil))
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; " +
				"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"Referrer-Policy":              "same-origin",
			"X-Content-Type-Options":       "nosniff",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-store",
		} {
			assert.Equal(t, want, w.Header().Get(name), "%s of %s", name, address)
		}
		assert.NotRegexp(t, `<script|<style|\sstyle=|\son\w+=|https?://`, w.Body.String(), address)
	}
}
