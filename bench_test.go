package cardwire

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cardwire/cardwire-go/internal/measure"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Each benchmark stands beside its baseline, which is named plain or bare: the
// program scripts/bench compares the two.

// BenchmarkDecode compares decoding a response, its envelope and every quirk
// included, with encoding/json into a plain struct.
func BenchmarkDecode(b *testing.B) {
	for _, tc := range []struct {
		name  string
		body  []byte
		plain func([]byte) error
		ours  func([]byte) error
	}{
		{"page=100", measure.CardPage(measure.UTF8, 1, 1, 100), measure.PlainPage, decode(object(cardPageFields, wire.Whole))},
		{"page=100-php", measure.CardPage(measure.PHP, 1, 1, 100), measure.PlainPage, decode(object(cardPageFields, wire.Whole))},
		{"page=1000", measure.CardPage(measure.UTF8, 1, 1, 1000), measure.PlainPage, decode(object(cardPageFields, wire.Whole))},
		{"page=1000-php", measure.CardPage(measure.PHP, 1, 1, 1000), measure.PlainPage, decode(object(cardPageFields, wire.Whole))},
		{"card", measure.SingleCard(measure.UTF8), measure.PlainCard, decode(object(cardFields, singleCard))},
		{"card-php", measure.SingleCard(measure.PHP), measure.PlainCard, decode(object(cardFields, singleCard))},
		{"bins=50", measure.BINs(measure.UTF8, 50), measure.PlainBINs, decode(rows(binFields))},
		{"bins=50-php", measure.BINs(measure.PHP, 50), measure.PlainBINs, decode(rows(binFields))},
	} {
		b.Run(tc.name, func(b *testing.B) {
			b.Run("plain", func(b *testing.B) {
				b.SetBytes(int64(len(tc.body)))
				measure.Loop(b, func() error { return tc.plain(tc.body) })
			})
			b.Run("cardwire", func(b *testing.B) {
				b.SetBytes(int64(len(tc.body)))
				measure.Loop(b, func() error { return tc.ours(tc.body) })
			})
		})
	}
}

// decode does what a call does between the last byte of the response and its value.
func decode[T any](read func(*wire.Codec, *T)) func([]byte) error {
	return func(body []byte) error {
		value := new(T)
		c := wire.NewReader(body, false)
		defer c.Release()
		e := envelope{result: &resultOf[T]{operation[T]{read: read}, value}, success: true}
		e.decode(c)
		switch {
		case c.Err() != nil:
			return c.Err()
		case e.mismatch != nil:
			return e.mismatch
		case !e.hasData:
			return ErrUnreadable
		}
		return nil
	}
}

// tiny and list are the two calls that are measured whole.
var (
	tiny = wholeCall{
		name: "capacity", path: "/account/capacity", body: measure.Capacity(), plain: measure.PlainCapacity,
		ours: func(ctx context.Context, c *Client) error {
			_, err := c.CardCapacity(ctx)
			return err
		},
	}
	list = wholeCall{
		name: "list", path: "/cards?limit=100", body: measure.CardPage(measure.UTF8, 1, 1, 100), plain: measure.PlainPage,
		ours: func(ctx context.Context, c *Client) error {
			_, err := c.ListCards(ctx, ListCardsParams{Limit: 100})
			return err
		},
	}
)

type wholeCall struct {
	name, path string
	body       []byte
	plain      func([]byte) error
	ours       func(context.Context, *Client) error
}

// BenchmarkMemory compares whole calls to a service in memory with those of a
// bare http.Client: what the client itself costs.
//
// What the list call of a hundred cards still allocates, by
//
//	go test -run '^$' -bench Memory/list/cardwire -memprofile mem.prof -memprofilerate 1 .
//	go tool pprof -top -sample_index=alloc_space mem.prof
//
// is 776 objects of 95 kB in all. More than four in five are amounts: two for each
// that differs from those before it, for decimal.New makes a big.Int and its word,
// and there is no other way into a decimal.Decimal. The rest are one string a card,
// from which all its strings are cut, a block for every four addresses, the page's
// cards and 13 for the call. Of the bytes, 57 kB are the cards themselves, 14 their
// strings, 13 amounts and 7 addresses. Nothing is kept of the body: it is read into a
// buffer that the next call uses again.
func BenchmarkMemory(b *testing.B) {
	for _, w := range []wholeCall{tiny, list} {
		b.Run(w.name, func(b *testing.B) {
			hc := &http.Client{Transport: measure.Memory(w.body)}
			w.compare(b, "https://api.example.com/api/v1", hc, WithHTTPClient(hc))
		})
	}
}

// BenchmarkLoopback is BenchmarkMemory over a socket, the service included,
// which runs in this process.
func BenchmarkLoopback(b *testing.B) {
	for _, w := range []wholeCall{tiny, list} {
		b.Run(w.name, func(b *testing.B) {
			server, _ := serve(b, w.body)
			w.compare(b, server, tuned(b))
		})
	}
}

func (w wholeCall) compare(b *testing.B, base string, hc *http.Client, opts ...Option) {
	b.Run("bare", func(b *testing.B) {
		measure.Loop(b, func() error { return measure.Bare(context.Background(), hc, base+w.path, w.plain) })
	})
	b.Run("cardwire", func(b *testing.B) {
		c := clientAt(b, base, opts...)
		measure.Loop(b, func() error { return w.ours(context.Background(), c) })
	})
}

// goroutines is how many share one client in BenchmarkParallel.
const goroutines = 64

// BenchmarkParallel compares what many goroutines get out of one client with
// what they get out of one bare http.Client, and counts the connections.
func BenchmarkParallel(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		server, connections := serve(b, tiny.body)
		hc := tuned(b)
		share(b, connections, func() error {
			return measure.Bare(context.Background(), hc, server+tiny.path, tiny.plain)
		})
	})
	b.Run("cardwire", func(b *testing.B) {
		server, connections := serve(b, tiny.body)
		c := clientAt(b, server)
		share(b, connections, func() error { return tiny.ours(context.Background(), c) })
	})
}

// share has the goroutines do op b.N times between them, once their
// connections are there.
func share(b *testing.B, connections *atomic.Int64, op func() error) {
	b.Helper()
	together(b, 4*goroutines, op)
	b.ReportAllocs()
	b.ResetTimer()
	before := measure.CPU()
	together(b, b.N, op)
	b.StopTimer()
	b.ReportMetric(float64(measure.CPU()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(connections.Load()), "connections")
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

// serve responds to every request with body, and counts connections.
func serve(b *testing.B, body []byte) (base string, connections *atomic.Int64) {
	b.Helper()
	connections = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	b.Cleanup(server.Close)
	return server.URL + "/api/v1", connections
}

// tuned is a bare client that keeps as many connections as there are goroutines.
func tuned(b *testing.B) *http.Client {
	b.Helper()
	transport := &http.Transport{MaxIdleConns: goroutines, MaxIdleConnsPerHost: goroutines}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func clientAt(b *testing.B, base string, opts ...Option) *Client {
	b.Helper()
	c, err := New(base, measure.Key, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.CloseIdleConnections)
	return c
}
