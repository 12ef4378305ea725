package main

// bar is one row of the table: what is measured, and its limit.
type bar struct {
	id      string
	text    string
	unit    string  // "" is a ratio
	limit   float64 // 0: reported, without a limit
	atLeast bool    // the limit is a minimum, not a maximum
	value   func(samples) (float64, bool)

	// The same on a machine that has other things to do: by the processors' time,
	// and of the rounds that were disturbed least. nil: not told.
	cpu, best func(samples) (float64, bool)
}

// The units that are not ratios.
const (
	mib         = "MiB"
	connections = "connections"
)

// A page of cards, and the whole call for one, against encoding/json.
const (
	timeBar        = 0.22
	allocationsBar = 0.45
	bytesBar       = 0.65
)

// bars is the table. A bar that was met with room was tightened. A commit that loosens
// one gives the reason.
var bars = []bar{
	decoded("page-100", "page of 100 cards", "page=100", "time", timeBar),
	decoded("page-100", "page of 100 cards", "page=100", "allocations", allocationsBar),
	decoded("page-100", "page of 100 cards", "page=100", "bytes", bytesBar),
	decoded("page-100-php", "page of 100 cards, PHP's escapes", "page=100-php", "time", timeBar),
	decoded("page-100-php", "page of 100 cards, PHP's escapes", "page=100-php", "allocations", allocationsBar),
	decoded("page-100-php", "page of 100 cards, PHP's escapes", "page=100-php", "bytes", bytesBar),
	decoded("page-1000", "page of 1,000 cards", "page=1000", "time", timeBar),
	decoded("page-1000", "page of 1,000 cards", "page=1000", "allocations", allocationsBar),
	decoded("page-1000", "page of 1,000 cards", "page=1000", "bytes", bytesBar),
	decoded("page-1000-php", "page of 1,000 cards, PHP's escapes", "page=1000-php", "time", timeBar),
	decoded("page-1000-php", "page of 1,000 cards, PHP's escapes", "page=1000-php", "allocations", allocationsBar),
	decoded("page-1000-php", "page of 1,000 cards, PHP's escapes", "page=1000-php", "bytes", bytesBar),
	decoded("card", "one card", "card", "time", 0.35),
	decoded("card-php", "one card, PHP's escapes", "card-php", "time", 0.35),
	decoded("bins-50", "50 BINs", "bins=50", "time", 0.33),
	decoded("bins-50-php", "50 BINs, PHP's escapes", "bins=50-php", "time", 0.33),

	called("list-memory", "whole call: List cards, 100, in memory", "Memory/list", "time", 0.22),
	called("list-memory", "whole call: List cards, 100, in memory", "Memory/list", "allocations", 0.45),
	called("list-memory", "whole call: List cards, 100, in memory", "Memory/list", "bytes", 0.30),
	called("list-loopback", "whole call: List cards, 100, over loopback", "Loopback/list", "time", 0.27),
	called("tiny-memory", "whole call: Get card capacity, in memory", "Memory/capacity", "time", 0.80),
	called("tiny-memory", "whole call: Get card capacity, in memory", "Memory/capacity", "allocations", 0.75),
	called("tiny-loopback", "whole call: Get card capacity, over loopback", "Loopback/capacity", "time", 0),

	{
		id: "parallel-throughput", text: "64 goroutines on one client: throughput", limit: 0.95, atLeast: true,
		value: medianRatio("Parallel/bare ns/op", "Parallel/cardwire ns/op"),
		cpu:   medianRatio("Parallel/bare"+cpuTime, "Parallel/cardwire"+cpuTime),
		best:  bestRatio("Parallel/bare ns/op", "Parallel/cardwire ns/op"),
	},
	{
		id: "parallel-connections", text: "64 goroutines on one client: connections opened", unit: connections, limit: 64,
		value: most("Parallel/cardwire connections"),
	},

	peerList("peer-list-cardwire", "list call over its own baseline: cardwire", "cardwire"),
	peerList("peer-list-stripe", "list call over its own baseline: stripe-go", "stripe"),
	peerList("peer-list-github", "list call over its own baseline: go-github", "github"),
	betterList("better-list-stripe", "list call, times better than stripe-go", "stripe", 10),
	betterList("better-list-github", "list call, times better than go-github", "github", 4),
	betterTiny("better-tiny-stripe", "smallest call, times faster than stripe-go", "stripe", 4),
	betterTiny("better-tiny-github", "smallest call, times faster than go-github", "github", 2),

	{
		id: "upload", text: "upload of 256 MiB: peak memory above an idle process", unit: mib, limit: 2,
		value: medianDifference("upload MiB", "idle MiB"),
	},
	{
		id: "cards", text: "100,000 cards, a page at a time: peak memory", unit: mib, limit: 16,
		value: medianOf("cards MiB"),
	},
	{
		id: "cards-prefetch", text: "100,000 cards, WithPrefetch(8): peak memory", unit: mib, limit: 16,
		value: medianOf("cards ahead MiB"),
	},
	{
		id: "pages", text: "pages at 20 ms, one at a time: time over pages x 20 ms", limit: 1.06,
		value: medianOf("pages"),
	},
	{
		id: "pages-prefetch", text: "pages at 20 ms, WithPrefetch(8): time over an eighth of that", limit: 1.10,
		value: medianOf("pages ahead"),
	},
	{
		id: "hello", text: "smallest program: size above one with bare net/http", unit: mib, limit: 0.8,
		value: medianDifference("hello cardwire MiB", "hello bare MiB"),
	},
}

// cpuTime is the unit of CPU time, which follows a benchmark's name.
const cpuTime = " cpu-ns/op"

// metrics are the units that benchmarks print.
var metrics = map[string]string{"time": "ns/op", "allocations": "allocs/op", "bytes": "B/op"}

func decoded(id, text, benchmark, metric string, limit float64) bar {
	return against(id, "decoding a response: "+text, "Decode/"+benchmark+"/plain", "Decode/"+benchmark+"/cardwire", metric, limit)
}

func called(id, text, benchmark, metric string, limit float64) bar {
	return against(id, text, benchmark+"/bare", benchmark+"/cardwire", metric, limit)
}

func against(id, text, baseline, benchmark, metric string, limit float64) bar {
	unit := " " + metrics[metric]
	b := bar{
		id: id + "-" + metric, text: text + ", " + metric, limit: limit,
		value: medianRatio(benchmark+unit, baseline+unit),
	}
	if metric == "time" {
		b.cpu = medianRatio(benchmark+cpuTime, baseline+cpuTime)
		b.best = bestRatio(benchmark+unit, baseline+unit)
	}
	return b
}

// peerList is what a client adds to its own baseline.
func peerList(id, text, name string) bar {
	client, bare := "List/"+name+"/client", "List/"+name+"/bare"
	return bar{
		id: id, text: text + ", time",
		value: medianRatio(client+" ns/op", bare+" ns/op"),
		cpu:   medianRatio(client+cpuTime, bare+cpuTime),
		best:  bestRatio(client+" ns/op", bare+" ns/op"),
	}
}

// betterList compares what two clients add to their own baselines.
func betterList(id, text, peer string, limit float64) bar {
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
	return bar{id: id, text: text, limit: limit, atLeast: true, value: by(" ns/op"), cpu: by(cpuTime), best: best}
}

func betterTiny(id, text, peer string, limit float64) bar {
	theirs, ours := "Tiny/"+peer+"/client", "Tiny/cardwire/client"
	return bar{
		id: id, text: text, limit: limit, atLeast: true,
		value: medianRatio(theirs+" ns/op", ours+" ns/op"),
		cpu:   medianRatio(theirs+cpuTime, ours+cpuTime),
		best:  bestRatio(theirs+" ns/op", ours+" ns/op"),
	}
}
