// Package bench compares calls of clients with the same calls written by hand: a bare
// http.Client, io.ReadAll, and encoding/json into plain structs of the same fields. The figures of
// docs/speed.md are these, on linux/amd64 with nothing else running: of time, which differs between
// runs by up to about a quarter, 1 plus what benchstat prints as "vs base".
//
//	go test -C internal/test/lab -run '^$' -bench RoundTrips -benchtime 20x ./bench
//
//	go test -C internal/test/lab -c -o bench.test ./bench
//	for round in {1..20}; do
//		internal/test/lab/bench.test -test.run '^$' -test.bench 'Cardwire|Generated|Loopback|Parallel' \
//			-test.benchtime 50ms
//	done >speed.txt
//	go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da -col /by speed.txt
//
// GOTOOLCHAIN=go1.27.1 before the second command measures the other release.
package bench

//go:generate -command oapi-codegen go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2
//go:generate oapi-codegen -config generated/config.yaml ../../contract/openapi.yaml

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// BenchmarkCardwire compares calls to a service in memory: what the client itself costs.
func BenchmarkCardwire(b *testing.B) { inMemory(b, cardwireCalls()) }

// BenchmarkGenerated is a list of a hundred by the client that is generated.
func BenchmarkGenerated(b *testing.B) { inMemory(b, []comparison{generatedClient}) }

// BenchmarkLoopback is BenchmarkCardwire over a socket, with the service in this process.
func BenchmarkLoopback(b *testing.B) {
	for _, c := range []comparison{smallest, listOf(100, usual)} {
		c.base = serve(b, c.response())
		b.Run("call="+c.name, func(b *testing.B) {
			b.Run("by=hand", func(b *testing.B) { loop(b, c.byHand(pooled(b))) })
			b.Run("by=client", func(b *testing.B) { loop(b, c.byClient(b, nil)) })
		})
	}
}

// BenchmarkParallel is the smallest call of BenchmarkLoopback by many goroutines at once.
func BenchmarkParallel(b *testing.B) {
	c := smallest
	c.base = serve(b, c.response())
	hand, client := c.byHand(pooled(b)), c.byClient(b, nil) // they keep connections from run to run
	b.Run("call="+c.name, func(b *testing.B) {
		b.Run("by=hand", func(b *testing.B) { share(b, hand) })
		b.Run("by=client", func(b *testing.B) { share(b, client) })
	})
}

// comparison is a call by a client, and the same by hand.
type comparison struct {
	name     string
	base     string // of the service
	path     string
	response func() string // not kept: garbage is collected more often if there is less else
	decode   decode        // by hand
	ours     func(context.Context, *cardwire.Client) error
	peer     func(testing.TB, *http.Client) func(context.Context) error // another client; nil: ours
}

// byClient is the call by the client, with its own transport if hc is nil.
func (c comparison) byClient(tb testing.TB, hc *http.Client, opts ...cardwire.Option) func(context.Context) error {
	tb.Helper()
	if c.peer != nil {
		return c.peer(tb, hc)
	}
	if hc != nil {
		opts = append(opts, cardwire.WithHTTPClient(hc))
	}
	client, err := cardwire.New(c.base, wiretest.Key, opts...)
	require.NoError(tb, err)
	tb.Cleanup(client.CloseIdleConnections)
	return func(ctx context.Context) error { return c.ours(ctx, client) }
}

// decode reads a response into plain structs, and fails if they are not what was sent.
type decode = func(unmarshal func([]byte, any) error, body []byte) error

// into returns a decoder into a T.
func into[T any](arrived func(*T) bool) decode {
	return func(unmarshal func([]byte, any) error, body []byte) error {
		var v T
		if err := unmarshal(body, &v); err != nil {
			return err
		}
		return sent(arrived(&v))
	}
}

func sent(ok bool) error {
	if !ok {
		return errors.New("not what was sent")
	}
	return nil
}

// byHand is the call that one would write by hand.
func (c comparison) byHand(hc *http.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+c.path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+wiretest.Key)
		req.Header.Set("Accept", "application/json")
		req.Header.Set("User-Agent", "bare/1.0")
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		return c.decode(json.Unmarshal, body)
	}
}

// inMemory compares each call with the same by hand.
func inMemory(b *testing.B, calls []comparison) {
	for _, c := range calls {
		b.Run("call="+c.name, func(b *testing.B) {
			hc := &http.Client{Transport: memory(c.response())}
			b.Run("by=hand", func(b *testing.B) { loop(b, c.byHand(hc)) })
			b.Run("by=client", func(b *testing.B) { loop(b, c.byClient(b, hc)) })
		})
	}
}

// loop measures op, once it has been done: buffers that are used again are made by then.
func loop(b *testing.B, op func(context.Context) error) {
	b.Helper()
	require.NoError(b, op(context.Background()))
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		if err := op(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

// share measures op in 32 goroutines for each processor.
func share(b *testing.B, op func(context.Context) error) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(32)
	before := cpu()
	b.RunParallel(func(more *testing.PB) {
		for more.Next() {
			if err := op(context.Background()); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

// memory is a service whose every response is body, without a network.
func memory(body string) wiretest.RoundTripper {
	header := http.Header{"Content-Type": {"application/json"}} // no reader of a response writes to it
	return func(r *http.Request) (*http.Response, error) {
		response := wiretest.Response(r, 200, body)
		response.Header = header
		return response, nil
	}
}

// serve starts a service whose every response is body, and returns its base URL.
func serve(b *testing.B, body string) (base string) {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	b.Cleanup(server.Close)
	return server.URL + "/api/v1"
}

// pooled is a bare client that keeps as many connections as there are goroutines.
func pooled(b *testing.B) *http.Client {
	b.Helper()
	transport := &http.Transport{MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A struct without a field of the response would be faster to decode into.
func TestTheHandwrittenStructsHaveEveryField(t *testing.T) {
	t.Parallel()
	strict := func(body []byte, v any) error {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		return d.Decode(v)
	}
	for _, c := range cardwireCalls() {
		assert.NoError(t, c.decode(strict, []byte(c.response())), c.name)
	}
}

// What the client does not know it skips, which is faster than decoding.
func TestTheClientKnowsEveryField(t *testing.T) {
	t.Parallel()
	for _, c := range cardwireCalls() {
		hc := &http.Client{Transport: memory(c.response())}
		assert.NoError(t, c.byClient(t, hc, cardwire.WithStrictDrift())(t.Context()), c.name)
	}
}

// Not parallel: memory is counted. Where nothing is copied and nothing is twice as large
// as it need be, a page costs its cards and their strings, whatever it looks like.
func TestAPageCostsTheSameInEveryShape(t *testing.T) {
	const n = 100
	var size, usual int // of the first page, and what it cost
	for _, s := range shapes {
		c := listOf(n, s)
		body := c.response()
		op := c.byClient(t, &http.Client{Transport: memory(body)})
		least := math.MaxInt // pools may be emptied at any time
		for range 20 {
			least = min(least, wiretest.Allocated(func() { require.NoError(t, op(t.Context())) }))
		}
		if usual == 0 {
			size, usual = len(body), least
			assert.Less(t, usual, n*(int(unsafe.Sizeof(cardwire.Card{}))+550))
		}
		assert.LessOrEqual(t, least, usual+usual/20+len(body)-size, c.name)
		assert.GreaterOrEqual(t, least, usual-usual/20, c.name)
	}
}
