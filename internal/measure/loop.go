package measure

import (
	"math"
	"runtime"
	"testing"
)

// Loop measures op, in CPU time and in elapsed time, once it has been done: buffers that
// are used again are made by then.
func Loop(b *testing.B, op func() error) {
	b.Helper()
	if err := op(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := CPU()
	for b.Loop() {
		if err := op(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(CPU()-before)/float64(b.N), "cpu-ns/op")
}

// LeastBytes returns how much memory op allocates at least: pools may be emptied at any
// time. Nothing else may allocate in between.
func LeastBytes(op func()) int {
	least := math.MaxInt
	for range 20 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		op()
		runtime.ReadMemStats(&after)
		least = min(least, int(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}
