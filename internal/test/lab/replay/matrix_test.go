package replay

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// action is something that a service does to a request, and what must become of
// the call.
type action struct {
	name     string
	do       func(*exchange)
	atAccept bool           // as in script
	before   func(*service) // before the request; nil: nothing
	write    want           // of a write on a connection of its own
	reused   *want          // of a write on one that was used before, by a caller's client; nil: as write
	outcome  string         // of a read: some of "success" and "unknown"
	reads    int            // requests that a read makes
	// silent says that a request gets no byte of a response. A read that met this
	// on an idle connection net/http itself sends on another one, and so once more
	// for each.
	silent bool
	// racy says that how often a read is sent depends on how soon the client sees
	// that its idle connections have gone.
	racy bool
}

// want is what may become of a write.
type want struct {
	outcomes   string // some of "success", "not sent", "unknown"
	status     int
	arrivals   span
	executions span
	requests   span // begun; for what is done to new connections, those
}

// anyStatus says that it depends on how far a response came.
const anyStatus = -1

// once is a write that was sent and whose response did not come.
func once(arrivals, executions int) want {
	return want{"unknown", 0, exactly(arrivals), exactly(executions), exactly(1)}
}

// told is a write that was executed, and whose response has this status.
func told(status int) want {
	return want{"unknown", status, exactly(1), exactly(1), exactly(1)}
}

// done is a write that was executed and got its response. early is one whose response came
// before it had all been sent, and may have ended that.
var (
	done  = want{"success", 0, exactly(1), exactly(1), exactly(1)}
	early = want{"success", 0, span{0, 1}, exactly(1), exactly(1)}
)

// executed has something done to the connection after the request was executed.
func executed(then func(*exchange)) func(*exchange) {
	return func(x *exchange) {
		if x.receive() {
			x.execute()
			then(x)
		}
	}
}

// actions are the doings of the service.
var actions = []action{
	{
		name: "response", do: (*exchange).serve,
		write: done, outcome: "success", reads: 1,
	},
	{
		name: "reset at once", atAccept: true, do: (*exchange).reset,
		// It is a race whether the client sees the reset in place of a connection.
		write:   want{"not sent, unknown", 0, exactly(0), exactly(0), span{1, maxWrites}},
		reused:  &want{"unknown", 0, exactly(0), exactly(0), exactly(1)},
		outcome: "not sent, unknown", reads: maxReads, silent: true,
	},
	{
		name: "reset before reading", do: (*exchange).reset,
		write: once(0, 0), outcome: "unknown", reads: maxReads, silent: true,
	},
	{
		name: "reset after reading the head",
		do: func(x *exchange) {
			if x.head() {
				x.reset()
			}
		},
		write: once(0, 0), outcome: "unknown", reads: maxReads, silent: true,
	},
	{
		name: "reset after reading all, before executing",
		do: func(x *exchange) {
			if x.receive() {
				x.reset()
			}
		},
		write: once(1, 0), outcome: "unknown", reads: maxReads, silent: true,
	},
	{
		name: "executed, then reset", do: executed((*exchange).reset),
		write: once(1, 1), outcome: "unknown", reads: maxReads, silent: true,
	},
	{
		name: "executed, then closed", do: executed((*exchange).hangUp),
		write: once(1, 1), outcome: "unknown", reads: maxReads, silent: true,
	},
	{
		name: "executed, then half a head",
		do: executed(func(x *exchange) {
			x.say("HTTP/1.1 200 OK\r\nContent-Le")
			x.hangUp()
		}),
		write: once(1, 1), outcome: "unknown", reads: maxReads,
	},
	{
		name: "executed, then a response but for its last byte",
		do: executed(func(x *exchange) {
			body := x.op().success(x.ref())
			x.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:len(body)-1]))
			x.hangUp()
		}),
		write: told(200), outcome: "unknown", reads: maxReads,
	},
	{
		name: "executed, then half a response and a reset",
		do: executed(func(x *exchange) {
			x.say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
			x.reset()
		}),
		// A reset may overtake what was sent before it.
		write:   want{"unknown", anyStatus, exactly(1), exactly(1), exactly(1)},
		outcome: "unknown", reads: maxReads, racy: true,
	},
	{
		name: "executed, then 408", do: executed(func(x *exchange) { x.respond("408 Request Timeout") }),
		write: told(408), outcome: "unknown", reads: maxReads,
	},
	{
		name:  "executed, then 408 and closed",
		do:    executed(func(x *exchange) { x.respond("408 Request Timeout", "Connection: close") }),
		write: told(408), outcome: "unknown", reads: maxReads,
	},
	{
		name: "executed, then 425", do: executed(func(x *exchange) { x.respond("425 Too Early") }),
		write: told(425), outcome: "unknown", reads: maxReads,
	},
	{
		name: "executed, then 502", do: executed(func(x *exchange) { x.respond("502 Bad Gateway") }),
		write: told(502), outcome: "unknown", reads: maxReads,
	},
	{
		// A deploy: every connection that was used before is closed, the one that
		// carries the request too. New ones are served.
		name: "idle connections close as the request arrives",
		do: func(x *exchange) {
			x.eachIdle(func(p *peer) {
				if p.served > 0 {
					p.leave()
				}
			})
			if x.served == 0 {
				x.serve()
				return
			}
			x.leave()
			x.over = true
			_, _ = io.Copy(io.Discard, x.in)
		},
		write: done, reused: &want{"unknown", 0, exactly(0), exactly(0), exactly(1)},
		outcome: "success", reads: 1, silent: true, racy: true,
	},
	{
		// Which net/http takes for the end of an idle connection. It must not take
		// it for the response to a write.
		name: "408 unasked on the idle connections", do: (*exchange).serve,
		before: func(s *service) {
			s.eachIdle(func(p *peer) {
				_, _ = p.conn.Write([]byte("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
				p.leave()
			})
		},
		write: done, reused: &want{"success, unknown", anyStatus, span{0, 1}, span{0, 1}, span{0, 1}},
		outcome: "success, unknown", reads: 1, racy: true,
	},
	{
		name: "a response that closes the connection", do: executed(func(x *exchange) { x.respond("200 OK", "Connection: close") }),
		write: done, outcome: "success", reads: 1,
	},
	{
		name: "a response before the request is read",
		do: func(x *exchange) {
			x.execute()
			x.respond("200 OK", "Connection: close")
			x.receive()
		},
		write: early, outcome: "success", reads: 1,
	},
	{
		name: "a response before the request is sent", atAccept: true,
		do: func(x *exchange) {
			x.execute()
			x.respond("200 OK", "Connection: close")
			x.receive()
		},
		write:   want{"success, unknown", 0, span{0, 1}, exactly(1), exactly(1)},
		reused:  &early,
		outcome: "success, unknown", reads: 1, racy: true,
	},
}

// carrier is what requests go out by.
type carrier struct {
	name string
	own  bool
	// new makes a client, and what lets go of its idle connections.
	new func(*testing.T, *service) (*cardwire.Client, func())
}

var carriers = []carrier{
	{"own engine", true, func(t *testing.T, s *service) (*cardwire.Client, func()) {
		c := newClient(t, s.base)
		return c, c.CloseIdleConnections
	}},
	{"caller's client", false, func(t *testing.T, s *service) (*cardwire.Client, func()) {
		transport := &http.Transport{MaxIdleConnsPerHost: 100}
		t.Cleanup(transport.CloseIdleConnections)
		c := newClient(t, s.base, cardwire.WithHTTPClient(&http.Client{Transport: transport}))
		return c, transport.CloseIdleConnections
	}},
}

// state is that of a client's connections.
type state struct {
	name string
	idle int
	warm []int // how many reads are made at a time
}

var states = []state{
	{"fresh", 0, nil},
	{"reused", 1, []int{1, 1}},
	{"10 idle", 10, []int{10}},
}

// cell is one call of the matrix.
type cell struct {
	action  *action
	carrier *carrier
	state   *state
	op      *operation
}

func TestMatrix(t *testing.T) {
	flat(t)
	var cells atomic.Int64
	t.Run("actions", func(t *testing.T) {
		for i := range actions {
			t.Run(actions[i].name, func(t *testing.T) {
				t.Parallel()
				for _, c := range cellsOf(&actions[i]) {
					n := int(cells.Add(1))
					t.Run(strings.Join([]string{c.carrier.name, c.state.name, c.op.name}, ", "), func(t *testing.T) {
						c.run(t, reference(n))
					})
				}
			})
		}
	})
	t.Logf("%d cells", cells.Load())
}

func cellsOf(a *action) (cells []cell) {
	for c := range carriers {
		for s := range states {
			for o := range operations {
				// A caller's client carries reads as the own engine does.
				if carriers[c].own || operations[o].class == write {
					cells = append(cells, cell{a, &carriers[c], &states[s], &operations[o]})
				}
			}
		}
	}
	return cells
}

// run makes the call and compares.
func (c *cell) run(t *testing.T, ref string) {
	s := serve(t, nil, nil)
	client, letGo := c.carrier.new(t, s)
	for _, n := range c.state.warm {
		warmUp(t, s, client, n)
	}
	_, before := s.counts()
	s.perform(script{do: c.action.do, atAccept: c.action.atAccept, op: c.op, ref: ref})
	if c.action.before != nil {
		c.action.before(s)
	}
	err := c.op.do(t.Context(), client, ref)
	letGo()
	s.settle(t)
	_, after := s.counts()

	want := c.want()
	assert.Contains(t, strings.Split(want.outcomes, ", "), outcome(err))
	assert.True(t, want.requests.has(after-before), "the service saw %d requests, not %s", after-before, want.requests)
	if c.op.class != write {
		return
	}
	if want.status != anyStatus {
		assert.Equal(t, want.status, statusOf(err))
	}
	assertDone(t, s.of(ref), want.arrivals, want.executions)
}

// want is what must become of the call. Of reads, arrivals, executions and the
// status are nobody's concern.
func (c *cell) want() want {
	a := c.action
	w := a.write
	switch {
	case c.op.class == write && !c.carrier.own && c.state.idle > 0 && a.reused != nil:
		w = *a.reused
	case c.op.class != write:
		idle := c.state.idle
		if c.op.class == fresh {
			idle = 0
		}
		w.outcomes, w.requests = a.outcome, exactly(a.reads)
		switch {
		case a.racy:
			w.requests = span{1, maxReads + idle}
		case a.silent:
			w.requests = exactly(a.reads + idle)
		}
	}
	return w
}

// resending carries requests as net/http does for a program that thinks they may
// be retried.
type resending struct{ http.RoundTripper }

func (r resending) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Idempotency-Key", "k")
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	return r.RoundTripper.RoundTrip(req)
}

// The control: the matrix sees what is sent again.
func TestMatrixSeesWhatIsSentAgain(t *testing.T) {
	for i := range actions {
		a := &actions[i]
		if !a.silent || a.racy {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil, nil)
			transport := &http.Transport{MaxIdleConnsPerHost: 100}
			t.Cleanup(transport.CloseIdleConnections)
			c := newClient(t, s.base, cardwire.WithHTTPClient(&http.Client{Transport: resending{transport}}))
			warmUp(t, s, c, 10)
			s.perform(script{do: a.do, atAccept: a.atAccept})
			require.Error(t, named("CreateTransfer").do(t.Context(), c, "1"))
			transport.CloseIdleConnections()
			s.settle(t)
			_, requests := s.counts()
			assert.Equal(t, 10+11, requests, "those that warmed up, once for each idle connection, and once more")
		})
	}
}

// warmUp makes n reads, none of which gets a response before all have arrived: each
// has a connection of its own, which then idles.
func warmUp(t *testing.T, s *service, c *cardwire.Client, n int) {
	t.Helper()
	var together, calls sync.WaitGroup
	together.Add(n)
	s.perform(script{do: func(x *exchange) {
		if x.receive() {
			together.Done()
			together.Wait()
			x.respond("200 OK")
		}
	}})
	for range n {
		calls.Go(func() {
			_, err := c.CardCapacity(t.Context())
			assert.NoError(t, err)
		})
	}
	calls.Wait()
	// Where it has just responded, the service does not yet wait for a request.
	require.Eventually(t, func() bool { return s.eachIdle(func(*peer) {}) == n }, patience, tick)
	connections, _ := s.counts()
	require.Equal(t, n, connections, "the connections that idle")
}
