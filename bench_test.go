package cardwire_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/measure"
)

// Each benchmark is a whole call beside its baseline, which is named bare: what one
// would write by hand. The program scripts/bench compares the two.

// BenchmarkMemory compares calls to a service in memory with those of a bare
// http.Client: what the client itself costs.
func BenchmarkMemory(b *testing.B) {
	for _, w := range calls() {
		b.Run(w.name, func(b *testing.B) {
			hc := &http.Client{Transport: measure.Memory(w.body())}
			w.compare(b, inMemory, hc, cardwire.WithHTTPClient(hc))
		})
	}
}

// BenchmarkDoer is BenchmarkMemory through a doer that is no *http.Client. The bare
// calls go through one all the same.
func BenchmarkDoer(b *testing.B) {
	for _, w := range []wholeCall{tiny, list} {
		b.Run(w.name, func(b *testing.B) {
			doer := measure.Memory(w.body())
			w.compare(b, inMemory, &http.Client{Transport: doer}, cardwire.WithHTTPClient(doer))
		})
	}
}

// BenchmarkLoopback is BenchmarkMemory over a socket, the service included,
// which runs in this process.
func BenchmarkLoopback(b *testing.B) {
	for _, w := range []wholeCall{tiny, list} {
		b.Run(w.name, func(b *testing.B) {
			server := serve(b, w.body())
			w.compare(b, server, tuned(b))
		})
	}
}

// inMemory is the base URL of the service in memory.
const inMemory = "https://api.example.com/api/v1"

// wholeCall is a call and the response to it.
type wholeCall struct {
	name, path string
	body       func() []byte // not kept: garbage is collected more often if there is less else
	plain      func([]byte) error
	ours       func(context.Context, *cardwire.Client) error
}

// The smallest call, and the usual one.
var (
	tiny = wholeCall{
		name: "capacity", path: "/account/capacity", body: measure.Capacity, plain: measure.PlainCapacity,
		ours: func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.CardCapacity(ctx)
			return err
		},
	}
	list = listCall("list-100", measure.Cards{}, 100, 100)
)

// calls are all calls that are measured in memory.
func calls() []wholeCall {
	all := []wholeCall{
		tiny, listCall("list-1", measure.Cards{}, 1, 1), listCall("list-20", measure.Cards{}, 20, 20),
		{
			name: "card", path: "/cards/info?card_id=c000000000000006", body: func() []byte { return measure.SingleCard(measure.UTF8) }, plain: measure.PlainCard,
			ours: func(ctx context.Context, c *cardwire.Client) error {
				_, err := c.GetCard(ctx, "c000000000000006")
				return err
			},
		},
		binsCall("bins", measure.UTF8), binsCall("bins-php", measure.PHP),
	}
	for _, n := range []int{100, 1000} {
		name := fmt.Sprintf("list-%d", n)
		all = append(all,
			listCall(name, measure.Cards{}, n, n),
			listCall(name+"-without-limit", measure.Cards{}, n, 0),
			listCall(name+"-distinct", measure.Cards{Distinct: true}, n, n),
			listCall(name+"-long-first", measure.Cards{Long: 1}, n, n),
			listCall(name+"-long-last", measure.Cards{Long: n}, n, n),
			listCall(name+"-php", measure.Cards{Script: measure.PHP}, n, n),
		)
	}
	return all
}

// listCall is a list of n cards; a limit of 0 is not sent.
func listCall(name string, cards measure.Cards, n, limit int) wholeCall {
	w := wholeCall{
		name: name, path: "/cards", body: func() []byte { return cards.Page(1, 1, n) }, plain: measure.PlainPage,
		ours: func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.ListCards(ctx, cardwire.ListCardsParams{Limit: limit})
			return err
		},
	}
	if limit > 0 {
		w.path += fmt.Sprintf("?limit=%d", limit)
	}
	return w
}

func binsCall(name string, s measure.Script) wholeCall {
	return wholeCall{
		name: name, path: "/bins", body: func() []byte { return measure.BINs(s, 50) }, plain: measure.PlainBINs,
		ours: func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.ListBINs(ctx)
			return err
		},
	}
}

func (w wholeCall) compare(b *testing.B, base string, hc *http.Client, opts ...cardwire.Option) {
	b.Run("bare", func(b *testing.B) {
		measure.Loop(b, func() error { return measure.Bare(context.Background(), hc, base+w.path, w.plain) })
	})
	b.Run("cardwire", func(b *testing.B) {
		c := clientAt(b, base, opts...)
		measure.Loop(b, func() error { return w.ours(context.Background(), c) })
	})
}

// Not parallel: memory is counted. Where nothing is copied and nothing is twice as large
// as it need be, a page costs its cards and their strings, whatever it looks like.
func TestAPageCostsTheSameInEveryShape(t *testing.T) {
	memory := map[string]int{}
	for _, w := range calls() {
		if shape, ok := strings.CutPrefix(w.name, list.name); ok && !strings.HasPrefix(w.name, "list-1000") {
			c, err := cardwire.New(inMemory, measure.Key, cardwire.WithHTTPClient(measure.Memory(w.body())))
			require.NoError(t, err)
			memory[shape] = measure.LeastBytes(func() { require.NoError(t, w.ours(t.Context(), c)) })
		}
	}
	usual := memory[""]
	assert.Less(t, usual, 100*(int(unsafe.Sizeof(cardwire.Card{}))+480))
	const long, amounts = 4 << 10, 8 << 10 // of the long card's string, and of further amounts
	for shape, more := range map[string]int{
		"-without-limit": 0, "-distinct": amounts, "-long-first": long, "-long-last": long, "-php": 0,
	} {
		assert.LessOrEqual(t, memory[shape], usual+usual/20+more, shape)
		assert.GreaterOrEqual(t, memory[shape], usual-usual/20, shape)
	}
}

// goroutines is how many share one client in BenchmarkParallel.
const goroutines = 64

// BenchmarkParallel compares what many goroutines get out of one client with
// what they get out of one bare http.Client.
func BenchmarkParallel(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		server := serve(b, tiny.body())
		hc := tuned(b)
		share(b, func() error {
			return measure.Bare(context.Background(), hc, server+tiny.path, tiny.plain)
		})
	})
	b.Run("cardwire", func(b *testing.B) {
		server := serve(b, tiny.body())
		c := clientAt(b, server)
		share(b, func() error { return tiny.ours(context.Background(), c) })
	})
}

// share has the goroutines do op b.N times between them, once their
// connections are there.
func share(b *testing.B, op func() error) {
	b.Helper()
	together(b, 4*goroutines, op)
	b.ReportAllocs()
	b.ResetTimer()
	before := measure.CPU()
	together(b, b.N, op)
	b.StopTimer()
	b.ReportMetric(float64(measure.CPU()-before)/float64(b.N), "cpu-ns/op")
}

func together(b *testing.B, times int, op func() error) {
	b.Helper()
	var begun atomic.Int64
	var running sync.WaitGroup
	for range goroutines {
		running.Go(func() {
			for begun.Add(1) <= int64(times) {
				if err := op(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// serve starts a service whose every response is body, and returns its base URL.
func serve(b *testing.B, body []byte) (base string) {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
	b.Cleanup(server.Close)
	return server.URL + "/api/v1"
}

// tuned is a bare client that keeps as many connections as there are goroutines.
func tuned(b *testing.B) *http.Client {
	b.Helper()
	transport := &http.Transport{MaxIdleConns: goroutines, MaxIdleConnsPerHost: goroutines}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func clientAt(b *testing.B, base string, opts ...cardwire.Option) *cardwire.Client {
	b.Helper()
	c, err := cardwire.New(base, measure.Key, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.CloseIdleConnections)
	return c
}
