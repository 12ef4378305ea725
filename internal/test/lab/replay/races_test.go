package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// disturbance is what happens while a request is on its way. The service closes
// the connections on which it waits for a request, or has just ceased to wait.
// What has arrived all the same it still executes: the worst that it can do.
type disturbance struct {
	name  string
	close func(*peer)
	down  bool // meanwhile the client finds nobody to connect to
	stays bool // nor until its call is over
	quit  bool // the caller gives up as well
}

var disturbances = []disturbance{
	{"the service leaves", (*peer).leave, false, false, false},
	{"the service closes", func(p *peer) { _ = p.tcp.Close() }, false, false, false},
	{"the service resets", (*peer).reset, false, false, false},
	{"the service starts again", (*peer).reset, true, false, false},
	{"the service stops", (*peer).reset, true, true, false},
	{"the service resets, the caller gives up", (*peer).reset, false, false, true},
	{"the caller gives up", func(*peer) {}, false, false, true},
}

// race is one call that was raced, and what it said.
type race struct {
	op      *operation
	ref     string
	with    *disturbance
	outcome string
}

// track is a service and a client that race.
type track struct {
	service *service
	client  *cardwire.Client
	letGo   func()
	down    atomic.Bool
	begun   atomic.Pointer[func(*peer)] // told of requests that begin; nil: nobody is
	met     int                         // connections that were disturbed
	races   []race
}

// newTrack puts a dialler between the two that refuses while the service is down.
func newTrack(t *testing.T, callers bool) *track {
	t.Helper()
	k := &track{service: serve(t, nil, nil)}
	k.service.perform(script{do: func(x *exchange) {
		if begun := k.begun.Load(); begun != nil {
			(*begun)(x.peer)
		}
		x.serve()
	}})
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: k.dial}
	opt := cardwire.WithTransport(transport)
	if callers {
		opt = cardwire.WithHTTPClient(&http.Client{Transport: transport})
	}
	k.client = newClient(t, k.service.base, opt)
	k.letGo = func() {
		k.client.CloseIdleConnections()
		transport.CloseIdleConnections()
	}
	t.Cleanup(k.letGo)
	return k
}

// dial may also fail when the service has already accepted.
func (k *track) dial(ctx context.Context, network, address string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	if k.down.Load() {
		return nil, refused
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil && k.down.Load() {
		_ = conn.Close()
		return nil, refused
	}
	return conn, err
}

// run makes the calls.
func (k *track) run(t *testing.T, first, calls int) {
	for i := range calls {
		r := race{
			op: &operations[i%len(operations)], ref: reference(first + i),
			with: &disturbances[rand.N(len(disturbances))],
		}
		// So that a connection idles. It may fail, as what the race before has left
		// behind may be all that there is.
		_, _ = k.client.CardCapacity(t.Context())
		r.outcome = k.race(t.Context(), &r)
		k.races = append(k.races, r)
	}
}

// race makes one call, and disturbs it: at once, or as the request arrives.
func (k *track) race(ctx context.Context, r *race) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	carrying := make(chan *peer, 1) // closed where there is none
	var once sync.Once
	if rand.N(2) == 0 {
		close(carrying)
		once.Do(func() {})
	}
	begun := func(p *peer) {
		once.Do(func() {
			carrying <- p
			close(carrying)
		})
	}
	var racing sync.WaitGroup
	racing.Go(func() {
		carrier := <-carrying
		linger()
		k.down.Store(r.with.down)
		k.met += k.service.eachIdle(r.with.close)
		if carrier != nil {
			r.with.close(carrier)
			k.met++
		}
		if r.with.quit {
			cancel()
		}
		linger()
		k.down.Store(r.with.stays)
	})
	k.begun.Store(&begun)
	linger()
	err := r.op.do(ctx, k.client, r.ref)
	once.Do(func() { close(carrying) })
	racing.Wait()
	k.begun.Store(nil)
	k.down.Store(false)
	return outcome(err)
}

// linger passes a moment of random length, a fraction of a call's, so that every
// point of a request is met by the end of its connection.
func linger() {
	var passed atomic.Int64
	for range rand.N(20_000) {
		passed.Add(1)
	}
}

func TestRaces(t *testing.T) {
	flat(t)
	tracks := []*track{newTrack(t, false), newTrack(t, false), newTrack(t, true)}
	begin := time.Now()
	var running sync.WaitGroup
	for i, k := range tracks {
		calls := (*flagRaces + i) / len(tracks)
		running.Go(func() { k.run(t, i*10_000_000, calls) })
	}
	running.Wait()

	var wrong []string
	counts := map[string]int{}
	total, met := 0, 0
	for _, k := range tracks {
		k.letGo()
		k.service.settle(t)
		total, met = total+len(k.races), met+k.met
		for _, r := range k.races {
			got := k.service.of(r.ref)
			if fault := r.fault(got); fault != "" {
				wrong = append(wrong, fmt.Sprintf("%s, %s, %s, %+v: %s", r.op.name, r.with.name, r.outcome, got, fault))
			}
			kind := map[class]string{read: "reads", fresh: "reads by POST", write: "writes"}[r.op.class]
			counts[fmt.Sprintf("%-13s %-8s executed %d times", kind, r.outcome, got.executions)]++
		}
	}
	lines := make([]string, 0, len(counts))
	for line, n := range counts {
		lines = append(lines, fmt.Sprintf("%s: %d", line, n))
	}
	slices.Sort(lines)
	t.Logf("%d calls in %v, %d connections disturbed\n%s", total, time.Since(begin).Round(time.Millisecond), met,
		strings.Join(lines, "\n"))
	assert.Equal(t, *flagRaces, total)
	assert.Positive(t, met)
	require.Empty(t, wrong)
}

// fault says what must not have become of a call, and did; "": nothing.
func (r *race) fault(got entry) string {
	// Of a read that ended in a dial that failed, net/http may have lost an idle
	// connection before, together with the request. It changed nothing.
	unsent := r.outcome == "not sent" && r.op.class != read
	switch {
	case unsent && got.executions > 0:
		return "not sent, and executed"
	case unsent && got.heads > 0:
		return "not sent, and received"
	case r.outcome != "not sent" && r.outcome != "unknown" && r.outcome != "success":
		return "the service neither refuses nor responds so that it cannot be read"
	case r.outcome == "success" && got.executions == 0:
		return "a success, and not executed"
	case r.op.class == write && got.executions > 1:
		return "a write, executed more than once"
	case r.op.class == write && got.heads > 1:
		return "a write, sent more than once"
	}
	return ""
}
