package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/measure"
	"github.com/cardwire/cardwire-go/scripts/internal/work"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func clientOf(t *testing.T, handler http.Handler) *cardwire.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := cardwire.New(server.URL+"/api/v1", measure.Key, cardwire.WithStrictDrift())
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestAllCardsArrive(t *testing.T) {
	t.Parallel()
	for name, prefetch := range map[string]int{"a page at a time": 0, "ahead": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := cards(t.Context(), clientOf(t, service(5, time.Millisecond)), prefetch)
			require.NoError(t, err)
			assert.Equal(t, 5*work.PerPage, n)
		})
	}
}

func TestUploadArrives(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.ContentLength)
		service(1, 0).ServeHTTP(w, r)
	}))
	require.NoError(t, upload(t.Context(), c, 1<<20))
	assert.Greater(t, sent.Load(), int64(1<<20), "the file and what surrounds it, of a known length")
}

func TestUnknownPageIsRefused(t *testing.T) {
	t.Parallel()
	_, err := clientOf(t, service(1, 0)).ListCards(t.Context(), cardwire.ListCardsParams{Page: 2})
	assert.ErrorIs(t, err, cardwire.ErrRefused)
}
