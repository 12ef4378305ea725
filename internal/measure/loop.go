package measure

import "testing"

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
