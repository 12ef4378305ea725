package bench

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-github/v84/github"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/journal"
)

// roundTrip is that of the network between a client and the service.
const roundTrip = 40 * time.Millisecond

// BenchmarkRoundTrips counts the connections and the round trips of a call over TLS: cold, by a
// client that was just made, and warm.
func BenchmarkRoundTrips(b *testing.B) {
	measure(b, "ListCards", "hand", func(_ testing.TB, t *http.Transport) far {
		return generatedClient.byHand(&http.Client{Transport: t})
	})
	measure(b, "ListCards", "generated", func(tb testing.TB, t *http.Transport) far {
		return generatedClient.peer(tb, &http.Client{Transport: t})
	})
	measure(b, "list", "go-github", func(_ testing.TB, t *http.Transport) far {
		c := github.NewClient(&http.Client{Transport: t}).WithAuthToken(wiretest.Key)
		return func(ctx context.Context) error {
			_, _, err := c.Users.ListAll(ctx, nil)
			return err
		}
	})
	measure(b, "list", "stripe-go", func(_ testing.TB, t *http.Transport) far {
		c := stripe.NewClient(wiretest.Key, stripe.WithBackends(stripe.NewBackends(&http.Client{Transport: t})))
		return func(ctx context.Context) (failed error) {
			for _, err := range c.V1IssuingCards.List(ctx, nil).All(ctx) {
				failed = cmp.Or(failed, err)
			}
			return failed
		}
	})
	methods := wiretest.MethodsGiven(wiretest.Given{
		Card: "card-x", Order: "order-1", List: cardwire.ListCardsParams{PageSize: 20},
		Image:   cardwire.UploadImageParams{Filename: "a.png", Data: []byte("\x89PNG")},
		Request: cardwire.Request{Op: "Capacity", Method: "GET", Path: "/account/capacity"},
	})
	methods["CreateTransfer"] = func(ctx context.Context, c *cardwire.Client, _ ...cardwire.CallOption) error {
		return wiretest.OnlyError(c.CreateTransfer(ctx, wiretest.SmallTransfer(uuid.NewString())))
	}
	for _, name := range []string{
		"ListCards", "AllCards", "GetCard", "GetCardByOrder", "GetCardSecrets", "ListBINs", "CardCapacity", "Call",
		"CreateTransfer", "UploadImage",
	} {
		measure(b, name, "client", func(tb testing.TB, t *http.Transport) far {
			c, err := cardwire.New(service, wiretest.Key, cardwire.WithTransport(t),
				cardwire.WithJournal(journal.NewMemory()))
			require.NoError(tb, err)
			tb.Cleanup(c.CloseIdleConnections)
			return func(ctx context.Context) error { return methods[name](ctx, c) }
		})
	}
}

// far is a call over a network.
type far = func(context.Context) error

// measure reports what a call costs that prepare makes, with a transport of its own.
func measure(b *testing.B, name, by string, prepare func(testing.TB, *http.Transport) far) {
	b.Helper()
	var dialed atomic.Int64
	server := farService(b)
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig
	trusted.ServerName = "example.com"
	call := func() far {
		return prepare(b, &http.Transport{TLSClientConfig: trusted, DialContext: func(
			ctx context.Context, network, _ string,
		) (net.Conn, error) {
			dialed.Add(1)
			<-time.After(roundTrip)
			conn, err := new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
			return delayed(conn), err
		}})
	}
	warm := call()
	require.NoError(b, warm(b.Context()))
	for state, next := range map[string]func() far{"cold": call, "warm": func() far { return warm }} {
		b.Run("call="+name+"/by="+by+"/state="+state, func(b *testing.B) {
			var took []time.Duration
			before := dialed.Load()
			for b.Loop() {
				call := next()
				start := time.Now()
				require.NoError(b, call(b.Context()))
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(dialed.Load()-before)/float64(len(took)), "connections/op")
			b.ReportMetric(float64(took[len(took)/2])/float64(roundTrip), "roundtrips/op")
		})
	}
}

// farService is the fake with a hundred cards, and the others' lists.
func farService(tb testing.TB) *httptest.Server {
	tb.Helper()
	fake := cardwiretest.New(cardwiretest.WithKey(wiretest.Key), cardwiretest.WithCards(99))
	fake.SetCard(`{"id":"card-x","order_id":"order-1"}`)
	lists := map[string]string{
		"/users": "[]", "/v1/issuing/cards": `{"object":"list","url":"/v1/issuing/cards","has_more":false,"data":[]}`,
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if list := lists[r.URL.Path]; list != "" {
			_, _ = io.WriteString(w, list)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	tb.Cleanup(s.Close)
	return s
}

// delayed returns a connection on which everything arrives a round trip late.
func delayed(conn net.Conn) net.Conn {
	if conn == nil {
		return nil
	}
	near, end := net.Pipe()
	arrivals := make(chan func(), 1024)
	go func() {
		for arrive := range arrivals {
			arrive()
		}
		_ = end.Close()
	}()
	go func() {
		defer close(arrivals)
		for {
			p := make([]byte, 32<<10)
			n, err := conn.Read(p)
			if err != nil {
				return
			}
			at := time.Now().Add(roundTrip)
			arrivals <- func() { <-time.After(time.Until(at)); _, _ = end.Write(p[:n]) }
		}
	}()
	go func() {
		_, _ = io.Copy(conn, end)
		_ = conn.Close()
	}()
	return near
}
