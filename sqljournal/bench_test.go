package sqljournal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// BenchmarkBeginAndEnd is what a write costs, by how many write at once: of an
// iteration Begin and End of one intent, and of each the mean time that its caller
// waits. SQLite waits for the disk; whether PostgreSQL does, its settings say.
func BenchmarkBeginAndEnd(b *testing.B) {
	for name, at := range map[string]func(b *testing.B) place{
		"SQLite WAL": func(b *testing.B) place {
			return place{"sqlite", "file:" + filepath.Join(b.TempDir(), "journal.db") + "?_pragma=synchronous(FULL)&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)",
				sqljournal.SQLite, sqljournal.DefaultTable}
		},
		"PostgreSQL": func(b *testing.B) place {
			if os.Getenv(postgresVariable) == "" {
				b.Skip(postgresVariable + " is not set")
			}
			return place{"pgx", os.Getenv(postgresVariable), sqljournal.PostgreSQL, fmt.Sprintf("bench_%d", time.Now().UnixNano())}
		},
	} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(name+"/"+strconv.Itoa(writers), func(b *testing.B) { beginAndEnd(b, at(b), writers) })
		}
	}
}

func beginAndEnd(b *testing.B, at place, writers int) {
	db, journal := openFor(b, at)
	db.SetMaxOpenConns(writers)
	db.SetMaxIdleConns(writers)
	var begins, ends, next atomic.Int64
	work := func(limit int64) {
		for {
			n := next.Add(1)
			if n > limit {
				return
			}
			i := until(fmt.Sprintf("order-2026-11-%09d", n), 30*time.Second)
			i.BodySHA256 = "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
			i.Summary = "100.00 EUR"
			start := time.Now()
			if err := journal.Begin(b.Context(), i); err != nil {
				b.Error(err)
				return
			}
			middle := time.Now()
			if err := journal.End(b.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T20261121" + strconv.Itoa(int(n))}); err != nil {
				b.Error(err)
				return
			}
			begins.Add(int64(middle.Sub(start)))
			ends.Add(int64(time.Since(middle)))
		}
	}
	run := func(count int) {
		limit := next.Load() + int64(count)
		var group sync.WaitGroup
		for range writers {
			group.Go(func() { work(limit) })
		}
		group.Wait()
		next.Store(limit)
	}
	run(2 * writers) // connects, and prepares the statements
	begins.Store(0)
	ends.Store(0)
	b.ResetTimer()
	run(b.N)
	b.StopTimer()
	b.ReportMetric(float64(begins.Load())/float64(b.N)/1e3, "µs/Begin")
	b.ReportMetric(float64(ends.Load())/float64(b.N)/1e3, "µs/End")
	if at.Dialect == sqljournal.PostgreSQL {
		var bytes float64
		require.NoError(b, db.QueryRowContext(b.Context(), "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c WHERE c.relkind = 'r' AND c.relname LIKE $1", at.Table+"%").Scan(&bytes))
		b.ReportMetric(bytes/float64(next.Load()), "B/intent")
	}
}
