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
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		op()
		runtime.ReadMemStats(&after)
		least = min(least, int(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}
