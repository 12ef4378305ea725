package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// BenchmarkOrders measures orders a second over TCP: calls with the journal alone, and the whole
// of this program, from a full queue to an empty one; in PostgreSQL also the statements for each
// order and the most connections.
//
//	scripts/postgres go test ./payouts -run '^$' -bench Orders -benchtime 5000x
func BenchmarkOrders(b *testing.B) {
	for _, workers := range []int{8, 32} {
		for _, database := range []string{"SQLite", "PostgreSQL"} {
			start := func(b *testing.B) *service {
				b.Helper()
				source := filepath.Join(b.TempDir(), "payouts.db")
				if database == "PostgreSQL" {
					source = postgresURL(b)
				}
				fake := cardwiretest.NewServer(b)
				set := settingsOf(source)
				set.base, set.timeout, set.workers, set.giveUpAfter = fake.URL, 30*time.Second, workers, giveUpAfter
				s, err := open(b.Context(), set, slog.New(slog.NewTextHandler(io.Discard, nil)))
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, s.close()) })
				return s
			}
			b.Run(fmt.Sprintf("%s/workers=%d/journal", database, workers), func(b *testing.B) {
				s := start(b)
				measured(b, s, func() { callAtOnce(b, s, workers) })
			})
			b.Run(fmt.Sprintf("%s/workers=%d/payouts", database, workers), func(b *testing.B) {
				s := start(b)
				for i := range b.N {
					_, err := s.create(b.Context(), paramsFor(fmt.Sprintf("order-%d", i)))
					require.NoError(b, err)
				}
				measured(b, s, func() {
					stop, err := s.start(b.Context())
					require.NoError(b, err)
					require.Eventually(b, func() bool {
						return one(b.Context(), b, s.db, `SELECT count(*) FROM payouts WHERE calls = 0 AND said = ''`) == 0
					}, 10*time.Minute, 50*time.Millisecond)
					require.NoError(b, stop(context.Background()))
				})
			})
		}
	}
}

// callAtOnce sends b.N orders by so many callers.
func callAtOnce(b *testing.B, s *service, callers int) {
	b.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				_, err := s.client.CreateTransfer(b.Context(), paramsFor(fmt.Sprintf("order-%d", i)))
				assert.NoError(b, err)
			}
		})
	}
	group.Wait()
}

// measured reports what do costs for each of b.N orders.
func measured(b *testing.B, s *service, do func()) {
	b.Helper()
	var group sync.WaitGroup
	watching, stop := context.WithCancel(b.Context())
	count := func() float64 { return 0 }
	if s.dialect == sqljournal.PostgreSQL {
		pool := openPool(b, s.source)
		defer pool.Close()
		_, err := pool.ExecContext(b.Context(), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public`)
		require.NoError(b, err)
		count = func() float64 { return one(b.Context(), b, pool, `SELECT sum(calls) FROM public.pg_stat_statements`) }
		var most float64
		group.Go(func() {
			for watching.Err() == nil {
				most = max(most, one(context.WithoutCancel(watching), b, pool, `
SELECT count(*) FROM pg_stat_activity, pg_sleep(0.05) WHERE backend_type = 'client backend'`))
			}
		})
		defer func() { b.ReportMetric(most-float64(pool.Stats().OpenConnections), "connections") }()
	}
	before := count()
	b.ResetTimer()
	do()
	b.StopTimer()
	stop()
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
	b.ReportMetric((count()-before)/float64(b.N), "statements/order")
}

func one(ctx context.Context, b *testing.B, pool *sql.DB, query string) (n float64) {
	b.Helper()
	assert.NoError(b, pool.QueryRowContext(ctx, query).Scan(&n), strings.TrimSpace(query))
	return n
}
