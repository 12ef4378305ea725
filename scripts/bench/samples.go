package main

import (
	"math"
	"slices"
)

// samples are what was measured: by name, one value a round. Rounds of one
// group take turns, so values at the same index belong together.
type samples map[string][]float64

func (s samples) add(name string, value float64) { s[name] = append(s[name], value) }

// at is NaN for what was not measured.
func (s samples) at(name string, round int) float64 {
	if round >= len(s[name]) {
		return math.NaN()
	}
	return s[name][round]
}

// median is that of value over the rounds of name; false: nothing to tell.
func (s samples) median(name string, value func(round int) float64) (float64, bool) {
	var values []float64
	for round := range s[name] {
		if v := value(round); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return median(values)
}

func median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle], true
	}
	return (sorted[middle-1] + sorted[middle]) / 2, true
}

func medianOf(name string) func(samples) (float64, bool) {
	return func(s samples) (float64, bool) {
		return s.median(name, func(round int) float64 { return s.at(name, round) })
	}
}

func medianRatio(name, over string) func(samples) (float64, bool) {
	return func(s samples) (float64, bool) {
		return s.median(name, func(round int) float64 { return s.at(name, round) / s.at(over, round) })
	}
}

func medianDifference(name, less string) func(samples) (float64, bool) {
	return func(s samples) (float64, bool) {
		return s.median(name, func(round int) float64 { return s.at(name, round) - s.at(less, round) })
	}
}

// bestRatio compares the least of each.
func bestRatio(name, over string) func(samples) (float64, bool) {
	return func(s samples) (float64, bool) {
		if len(s[name]) == 0 || len(s[over]) == 0 {
			return 0, false
		}
		return slices.Min(s[name]) / slices.Min(s[over]), true
	}
}
