package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
)

// roundTrip is that of the network between a client and the service.
const roundTrip = 40 * time.Millisecond

// BenchmarkRoundTrips counts the connections and the round trips of a call over TLS: cold, by a
// client that was just made, and warm. Other clients are called as their documentation shows it.
func BenchmarkRoundTrips(b *testing.B) {
	for _, c := range farCalls {
		b.Run("call="+c.name+"/by="+c.by, func(b *testing.B) {
			far := newNetwork(b)
			b.Run("state=cold", func(b *testing.B) {
				far.measure(b, func() func(context.Context) error { return c.prepare(b, far) })
			})
			b.Run("state=warm", func(b *testing.B) {
				call := c.prepare(b, far)
				require.NoError(b, call(b.Context()))
				far.measure(b, func() func(context.Context) error { return call })
			})
		})
	}
}

// farCall is a call by a client, which prepare makes.
type farCall struct {
	name, by string
	prepare  func(testing.TB, *network) func(context.Context) error
}

var farCalls = []farCall{
	ours("ListCards", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		return wiretest.OnlyError(c.ListCards(ctx, cardwire.ListCardsParams{}))
	}),
	{"ListCards", "hand", byHand("GET", "/cards", "")},
	{"ListCards", "generated", func(tb testing.TB, far *network) func(context.Context) error {
		return generatedClient.peer(tb, &http.Client{Transport: far.transport()})
	}},
	{"list", "go-github", func(_ testing.TB, far *network) func(context.Context) error {
		c := github.NewClient(&http.Client{Transport: far.transport()}).WithAuthToken(wiretest.Key)
		return func(ctx context.Context) error {
			_, _, err := c.Users.ListAll(ctx, nil)
			return err
		}
	}},
	{"list", "stripe-go", func(_ testing.TB, far *network) func(context.Context) error {
		c := stripe.NewClient(wiretest.Key, stripe.WithBackends(stripe.NewBackends(&http.Client{Transport: far.transport()})))
		return func(ctx context.Context) error {
			for _, err := range c.V1IssuingCards.List(ctx, nil).All(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}},
	ours("AllCards-5-pages", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		ids, err := wiretest.Walk(ctx, c, cardwire.ListCardsParams{PageSize: 20})
		return cmp.Or(err, sent(len(ids) == 100))
	}),
	ours("GetCard", func(ctx context.Context, c *cardwire.Client, far *network) error {
		return wiretest.OnlyError(c.GetCard(ctx, far.card))
	}),
	ours("GetCardByOrder", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		return wiretest.OnlyError(c.GetCardByOrder(ctx, "order-1"))
	}),
	ours("GetCardSecrets", func(ctx context.Context, c *cardwire.Client, far *network) error {
		return wiretest.OnlyError(c.GetCardSecrets(ctx, far.card))
	}),
	ours("ListBINs", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		return wiretest.OnlyError(c.ListBINs(ctx))
	}),
	ours("CardCapacity", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		return wiretest.OnlyError(c.CardCapacity(ctx))
	}),
	ours("Call", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		return wiretest.OnlyError(cardwire.Call[int](ctx, c, cardwire.Request{Op: "Capacity", Method: "GET", Path: "/account/capacity"}))
	}),
	ours("CreateTransfer", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		return wiretest.OnlyError(c.CreateTransfer(ctx, wiretest.SmallTransfer(uuid.NewString())))
	}),
	{"CreateTransfer", "hand", byHand("POST", "/remittance/transfer",
		`{"merchantOrderNo":"M-1","payoutCurrency":"EUR","transferAmount":"10.50"}`)},
	ours("UploadImage", func(ctx context.Context, c *cardwire.Client, _ *network) error {
		return wiretest.OnlyError(c.UploadImage(ctx, cardwire.UploadImageParams{Filename: "a.png", Data: []byte("\x89PNG")}))
	}),
}

func ours(name string, call func(context.Context, *cardwire.Client, *network) error) farCall {
	return farCall{name, "client", func(tb testing.TB, far *network) func(context.Context) error {
		c, err := cardwire.New(service, wiretest.Key, cardwire.WithTransport(far.transport()),
			cardwire.WithJournal(cardwire.NewMemoryJournal()))
		require.NoError(tb, err)
		tb.Cleanup(c.CloseIdleConnections)
		return func(ctx context.Context) error { return call(ctx, c, far) }
	}}
}

func byHand(method, path, body string) func(testing.TB, *network) func(context.Context) error {
	return func(_ testing.TB, far *network) func(context.Context) error {
		hc := &http.Client{Transport: far.transport()}
		return func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, method, service+path, strings.NewReader(body))
			if err != nil {
				return err
			}
			r.Header.Set("Authorization", "Bearer "+wiretest.Key)
			if body != "" {
				r.Header.Set("Content-Type", "application/json")
			}
			resp, err := hc.Do(r)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return cmp.Or(err, sent(resp.StatusCode == http.StatusOK))
		}
	}
}

// network is a way to a service that is a round trip away.
type network struct {
	server *httptest.Server
	trust  *tls.Config
	card   string // the ID of one
	dialed atomic.Int64
}

func newNetwork(tb testing.TB) *network {
	tb.Helper()
	fake := cardwiretest.New(cardwiretest.WithKey(wiretest.Key), cardwiretest.WithCards(99))
	fake.SetCard(`{"id":"card-x","order_id":"order-1"}`)
	n := &network{card: "card-x", server: httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/users":
				_, _ = io.WriteString(w, "[]")
			case "/v1/issuing/cards":
				_, _ = io.WriteString(w, `{"object":"list","url":"/v1/issuing/cards","has_more":false,"data":[]}`)
			default:
				fake.ServeHTTP(w, r)
			}
		}))}
	n.server.StartTLS()
	tb.Cleanup(n.server.Close)
	n.trust = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"}
	n.trust.RootCAs.AddCert(n.server.Certificate())
	return n
}

// transport returns one for a client of its own.
func (n *network) transport() *http.Transport {
	return &http.Transport{DialContext: n.dial, TLSClientConfig: n.trust}
}

// dial takes a round trip, whatever the address is.
func (n *network) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	n.dialed.Add(1)
	<-time.After(roundTrip)
	conn, err := new(net.Dialer).DialContext(ctx, network, n.server.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	far := &farConn{Conn: conn, arrivals: make(chan arrival, 1024)}
	go far.receive()
	return far, nil
}

// measure reports what a call costs.
func (n *network) measure(b *testing.B, prepare func() func(context.Context) error) {
	b.Helper()
	var took []time.Duration
	before := n.dialed.Load()
	for b.Loop() {
		call := prepare()
		start := time.Now()
		if err := call(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n.dialed.Load()-before)/float64(len(took)), "connections/op")
	b.ReportMetric(float64(took[len(took)/2])/float64(roundTrip), "roundtrips/op")
}

// farConn delays what arrives by a round trip, without delaying what follows it by more.
type farConn struct {
	net.Conn
	arrivals chan arrival
	rest     []byte
}

type arrival struct {
	data []byte
	at   time.Time
}

func (c *farConn) receive() {
	defer close(c.arrivals)
	for {
		p := make([]byte, 32<<10)
		n, err := c.Conn.Read(p)
		if err != nil {
			return
		}
		c.arrivals <- arrival{p[:n], time.Now().Add(roundTrip)}
	}
}

func (c *farConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		a, more := <-c.arrivals
		if !more {
			return 0, io.EOF
		}
		<-time.After(time.Until(a.at))
		c.rest = a.data
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
