package wiretest

import (
	"math"
	"runtime"
)

// LeastBytes returns how much memory op allocates at least: pools may be emptied at any
// time. Nothing else may allocate in between.
func LeastBytes(op func()) int {
	least := math.MaxInt
	for range 20 {
		least = min(least, Allocated(op))
	}
	return least
}

// Allocated returns the bytes that were allocated during op, whether or not they are still in
// use.
func Allocated(op func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	op()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}
