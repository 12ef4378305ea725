package sqljournal_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// BenchmarkBeginAndEnd is what the journal costs while 16 callers write: an iteration is
// Begin and End of one intent. SQLite waits for the disk; whether PostgreSQL does, its
// settings say.
func BenchmarkBeginAndEnd(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		at := onSQLite(b, "")
		at.Source = "file:" + filepath.Join(b.TempDir(), "journal.db") + // on a disk
			"?_pragma=synchronous(FULL)&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"
		beginAndEnd(b, at)
	})
	b.Run("PostgreSQL", func(b *testing.B) { beginAndEnd(b, onPostgreSQL(b)) })
}

func beginAndEnd(b *testing.B, at place) {
	const writers = 16
	db, journal := openNew(b, at)
	db.SetMaxOpenConns(writers)
	db.SetMaxIdleConns(writers)
	var last atomic.Int64
	write := func() bool {
		n := last.Add(1)
		i := intent(fmt.Sprintf("order-2026-11-%09d", n))
		r := executed
		r.ServiceID = fmt.Sprint("T20261121", n)
		return assert.NoError(b, journal.Begin(b.Context(), i)) && assert.NoError(b, journal.End(b.Context(), i, r))
	}
	for range 2 * writers {
		write() // prepares the statements
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for left.Add(-1) >= 0 && write() { //nolint:revive // write is what is done
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "intents/s")
}
