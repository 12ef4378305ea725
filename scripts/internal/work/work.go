// Package work is shared by the program bench and the worker that it measures.
package work

import "time"

// PerPage is how many cards a page has.
const PerPage = 100

// Report is what a worker reports about itself, as JSON.
type Report struct {
	// Peak is the most memory that was resident, in bytes.
	Peak int64
	// Elapsed is how long the work took.
	Elapsed time.Duration
	// Cards is how many arrived; 0 where the work has nothing to do with cards.
	Cards int
}

// PeakMiB is Peak in MiB.
func (r *Report) PeakMiB() float64 { return float64(r.Peak) / (1 << 20) }
