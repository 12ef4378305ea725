package payouts

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// BenchmarkOrders measures orders a second over TCP, from a full queue to an empty one; in PostgreSQL also the
// statements for each order:
//
//	../sqljournal/scripts/postgres go test -run '^$' -bench Orders -benchtime 5000x .
func BenchmarkOrders(b *testing.B) {
	for _, workers := range []int{8, 32} {
		for name, source := range map[string]func(testing.TB) string{"SQLite": newFile, "PostgreSQL": newDatabase} {
			b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) {
				fake := cardwiretest.NewServer(b)
				s := openShop(b, source(b), func(c *Config) {
					c.BaseURL, c.APIKey, c.Options = fake.URL, fake.Key, nil
					c.Workers, c.Timeout = workers, 30*time.Second
					c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
				})
				if s.dialect == sqljournal.PostgreSQL {
					s.db.SetMaxOpenConns(workers + 8)
					s.db.SetMaxIdleConns(workers + 8)
					s.do(`CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public`)
				}
				statements := func() float64 {
					if s.dialect == sqljournal.SQLite {
						return 0
					}
					return valuesOf[float64](s, `SELECT sum(calls) FROM public.pg_stat_statements`)[0]
				}
				for i := range b.N {
					s.orders(fmt.Sprintf("order-%d", i))
				}
				s.tells()
				before := statements()
				b.ResetTimer()
				stop := s.run()
				require.Eventually(b, func() bool {
					return valuesOf[int64](s, `SELECT count(*) FROM @payouts WHERE told = ''`)[0] == 0
				}, 10*time.Minute, 50*time.Millisecond)
				b.StopTimer()
				stop()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
				b.ReportMetric((statements()-before)/float64(b.N), "statements/order")
			})
		}
	}
}
