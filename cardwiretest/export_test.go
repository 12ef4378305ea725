package cardwiretest

import (
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
)

// FlawOf returns the first flaw that is found within 200 seeds; "": none.
func FlawOf(t *testing.T, start func(*World) Program, options ...SimulationOption) string {
	t.Helper()
	s := newSimulation(options)
	for seed := s.first; seed < s.first+200; seed++ {
		if flaw := s.run(t, seed, start).flaw; flaw != "" {
			return flaw
		}
	}
	return ""
}

// Stories returns what happens to each order.
func Stories(t *testing.T, seed uint64, start func(*World) Program) map[string][]string {
	t.Helper()
	return newSimulation(nil).run(t, seed, start).stories
}

// RunFor simulates one seed, and ends the tests if it takes longer than that.
func RunFor(t *testing.T, patience time.Duration, start func(*World) Program) {
	t.Helper()
	s := newSimulation(nil)
	s.patience = patience
	s.run(t, 1, start)
}

// ShownOf returns a story as it is printed.
func ShownOf(lines []string) string {
	return (&simulated{stories: story{"order-1": lines}}).storyOf("order-1")
}

// JournalFlaw returns what TestJournal finds in a journal; "": nothing.
func JournalFlaw(t *testing.T, j cardwire.Journal) string {
	t.Helper()
	return flawOf(t, j)
}
