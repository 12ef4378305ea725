package measure

import "testing"

// Loop measures op, in CPU time and in elapsed time.
func Loop(b *testing.B, op func() error) {
	b.Helper()
	b.ReportAllocs()
	before := CPU()
	for b.Loop() {
		if err := op(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(CPU()-before)/float64(b.N), "cpu-ns/op")
}
