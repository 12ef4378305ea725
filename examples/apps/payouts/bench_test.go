package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// BenchmarkOrders measures orders a second with eight workers: bare calls, calls with a
// journal, and the whole of this program, from a full queue to an empty one.
//
//	scripts/postgres go test ./payouts -run '^$' -bench Orders -benchtime 2000x
func BenchmarkOrders(b *testing.B) {
	const workers = 8
	set := func(source string) settings {
		set := settingsOf(source)
		set.options = []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: cardwiretest.New()})}
		set.timeout, set.workers, set.giveUpAfter = 30*time.Second, workers, giveUpAfter
		return set
	}
	calls := func(b *testing.B, client *cardwire.Client) {
		b.Helper()
		var next atomic.Int64
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
					_, err := client.CreateTransfer(b.Context(), paramsFor(fmt.Sprintf("order-%d-%d", b.N, i)))
					assert.NoError(b, err)
				}
			})
		}
		group.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
	}
	b.Run("bare", func(b *testing.B) {
		client, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey,
			cardwire.WithHTTPClient(&http.Client{Transport: cardwiretest.New()}))
		require.NoError(b, err)
		calls(b, client)
	})
	for name, source := range map[string]func(testing.TB) string{
		"SQLite":     func(b testing.TB) string { return filepath.Join(b.TempDir(), "payouts.db") },
		"PostgreSQL": postgresURL,
	} {
		start := func(b *testing.B) *service {
			b.Helper()
			s, err := open(b.Context(), set(source(b)), slog.New(slog.NewTextHandler(io.Discard, nil)))
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.close()) })
			b.ResetTimer()
			return s
		}
		b.Run("journal/"+name, func(b *testing.B) { calls(b, start(b).client) })
		b.Run("payouts/"+name, func(b *testing.B) {
			s := start(b)
			b.StopTimer()
			for i := range b.N {
				_, err := s.create(b.Context(), paramsFor(fmt.Sprintf("order-%d", i)))
				require.NoError(b, err)
			}
			b.StartTimer()
			stop, err := s.start(b.Context())
			require.NoError(b, err)
			require.Eventually(b, func() bool {
				left, err := s.list(b.Context(), filter{State: queued}, "", pageSize)
				return err == nil && len(left.Orders) == 0
			}, 10*time.Minute, 20*time.Millisecond)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
			require.NoError(b, stop(context.Background()))
		})
	}
}
