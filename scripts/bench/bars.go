package main

import "fmt"

// bar is one row of the table: what is measured, and its limit.
type bar struct {
	id      string
	text    string
	unit    string  // "" is a ratio
	limit   float64 // 0: reported, without a limit
	atLeast bool    // the limit is a minimum, not a maximum
	value   func(samples) (float64, bool)
	twice   bool // it is measured with the next release of Go too

	// The same on a machine that has other things to do: by the processors' time,
	// and of the rounds that were disturbed least. nil: not told.
	cpu, best func(samples) (float64, bool)
}

const mib = "MiB" // the unit that is not a ratio

// bars is the table. A bar that was met with room was tightened. A commit that loosens
// one gives the reason.
var bars = []bar{
	called("tiny", "smallest call, time", "Memory/capacity", "time", 0.78),
	called("tiny-doer", "smallest call through a doer of one's own, time", "Doer/capacity", "time", 0.78),
	called("tiny-allocations", "smallest call, allocations", "Memory/capacity", "allocations", 0.80),
	called("list-1", "list of 1 card, time", "Memory/list-1", "time", 0),
	called("list-20", "list of 20 cards, time", "Memory/list-20", "time", 0),
	called("list-100", "list of 100 cards, time", "Memory/list-100", "time", 0.20),
	worst("list-100-worst", "list of 100 cards, the slowest shape, time", append(shapes(100), "Doer/list-100"), "time", 0.20),
	worst("list-1000-worst", "list of 1,000 cards, the slowest shape, time", shapes(1000), "time", 0.20),
	worst("list-bytes", "list of 100 or 1,000 cards, the largest shape, bytes", append(shapes(100), shapes(1000)...), "bytes", 0.30),
	called("list-allocations", "list of 100 cards, allocations", "Memory/list-100", "allocations", 0.50),
	called("card", "one card, time", "Memory/card", "time", 0),
	worst("bins", "50 BINs, time", []string{"Memory/bins", "Memory/bins-php"}, "time", 0.26),
	called("tiny-loopback", "smallest call over loopback, time", "Loopback/capacity", "time", 0),
	called("list-loopback", "list of 100 cards over loopback, time", "Loopback/list-100", "time", 0.26),
	{
		id: "parallel", text: "64 goroutines on one client, throughput", limit: 0.95, atLeast: true,
		value: medianRatio("Parallel/bare ns/op", "Parallel/cardwire ns/op"),
		cpu:   medianRatio("Parallel/bare"+cpuTime, "Parallel/cardwire"+cpuTime),
		best:  bestRatio("Parallel/bare ns/op", "Parallel/cardwire ns/op"),
	},

	added("list-cardwire", "list, over its own baseline: cardwire", "cardwire"),
	added("list-generated", "list, over its own baseline: the generated client", "generated"),
	added("list-github", "list, over its own baseline: go-github", "github"),
	added("list-metronome", "list, over its own baseline: metronome-go", "metronome"),
	added("list-stripe", "list, over its own baseline: stripe-go", "stripe"),
	faster("better-list-generated", "list, times faster than the generated client", "List", "generated", 5),
	better("better-list-github", "list, times better than go-github", "github", 4),
	better("better-list-stripe", "list, times better than stripe-go", "stripe", 10),
	faster("better-tiny-github", "smallest call, times faster than go-github", "Tiny", "github", 2),
	faster("better-tiny-stripe", "smallest call, times faster than stripe-go", "Tiny", "stripe", 4),

	{
		id: "upload", text: "upload of 256 MiB, memory above an idle process", unit: mib, limit: 2,
		value: medianDifference("upload MiB", "idle MiB"),
	},
	{
		id: "cards", text: "100,000 cards, a page at a time, peak memory", unit: mib, limit: 16,
		value: medianOf("cards MiB"),
	},
	{
		id: "cards-prefetch", text: "100,000 cards, WithPrefetch(8), peak memory", unit: mib, limit: 16,
		value: medianOf("cards ahead MiB"),
	},
	{
		id: "pages", text: "pages at 20 ms, time over pages x 20 ms", limit: 1.06,
		value: medianOf("pages"),
	},
	{
		id: "pages-prefetch", text: "the same, WithPrefetch(8), time over an eighth of that", limit: 1.10,
		value: medianOf("pages ahead"),
	},
	{
		id: "hello", text: "smallest program, size above one with net/http", unit: mib, limit: 0.8,
		value: medianDifference("hello cardwire MiB", "hello bare MiB"),
	},
}

// shapes are the ways in which a page of n cards is measured.
func shapes(n int) (benchmarks []string) {
	for _, shape := range []string{"", "-without-limit", "-distinct", "-long-first", "-long-last", "-php"} {
		benchmarks = append(benchmarks, fmt.Sprintf("Memory/list-%d%s", n, shape))
	}
	return benchmarks
}

// cpuTime is the unit of CPU time, which follows a benchmark's name.
const cpuTime = " cpu-ns/op"

// metrics are the units that benchmarks print.
var metrics = map[string]string{"time": "ns/op", "allocations": "allocs/op", "bytes": "B/op"}

// called compares a call with the same written by hand.
func called(id, text, benchmark, metric string, limit float64) bar {
	return worst(id, text, []string{benchmark}, metric, limit)
}

// worst is called for the worst of several benchmarks.
func worst(id, text string, benchmarks []string, metric string, limit float64) bar {
	of := func(unit string, ratio func(name, over string) func(samples) (float64, bool)) func(samples) (float64, bool) {
		return func(s samples) (float64, bool) {
			most, all := 0.0, true
			for _, b := range benchmarks {
				v, ok := ratio(b+"/cardwire"+unit, b+"/bare"+unit)(s)
				most, all = max(most, v), all && ok
			}
			return most, all
		}
	}
	b := bar{id: id, text: text, limit: limit, twice: true, value: of(" "+metrics[metric], medianRatio)}
	if metric == "time" {
		b.cpu, b.best = of(cpuTime, medianRatio), of(" ns/op", bestRatio)
	}
	return b
}

// added is what a client adds to its own baseline.
func added(id, text, name string) bar {
	client, bare := "List/"+name+"/client", "List/"+name+"/bare"
	return bar{
		id: id, text: text, twice: true,
		value: medianRatio(client+" ns/op", bare+" ns/op"),
		cpu:   medianRatio(client+cpuTime, bare+cpuTime),
		best:  bestRatio(client+" ns/op", bare+" ns/op"),
	}
}

// better compares what two clients add to their own baselines.
func better(id, text, peer string, limit float64) bar {
	by := func(unit string) func(samples) (float64, bool) {
		added := func(s samples, name string, round int) float64 {
			return s.at("List/"+name+"/client"+unit, round) / s.at("List/"+name+"/bare"+unit, round)
		}
		return func(s samples) (float64, bool) {
			return s.median("List/"+peer+"/client"+unit, func(round int) float64 {
				return added(s, peer, round) / added(s, "cardwire", round)
			})
		}
	}
	best := func(s samples) (float64, bool) {
		theirs, measured := bestRatio("List/"+peer+"/client ns/op", "List/"+peer+"/bare ns/op")(s)
		ours, _ := bestRatio("List/cardwire/client ns/op", "List/cardwire/bare ns/op")(s)
		return theirs / ours, measured
	}
	return bar{id: id, text: text, limit: limit, atLeast: true, twice: true, value: by(" ns/op"), cpu: by(cpuTime), best: best}
}

// faster compares two clients with one another.
func faster(id, text, call, peer string, limit float64) bar {
	theirs, ours := call+"/"+peer+"/client", call+"/cardwire/client"
	return bar{
		id: id, text: text, limit: limit, atLeast: true, twice: true,
		value: medianRatio(theirs+" ns/op", ours+" ns/op"),
		cpu:   medianRatio(theirs+cpuTime, ours+cpuTime),
		best:  bestRatio(theirs+" ns/op", ours+" ns/op"),
	}
}
