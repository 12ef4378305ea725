package cardwiretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// World is what a simulated [Program] lives in. Every call that leaves the program waits
// in it until all is idle, and then one goes on, chosen by the seed.
type World struct {
	t       *testing.T
	seed    uint64
	began   time.Time
	start   func(*World) Program
	orders  []*simulatedOrder
	service *provider
	durable *durableJournal
	stories story
	flaw    string
	calm    bool // no fault and no crash comes any more
	over    bool // nothing comes any more
	crashes int

	mu       sync.Mutex
	parked   map[string]*waiter
	counts   map[string]uint64 // how often each name was drawn for
	arrived  chan struct{}
	replicas map[string]*incarnation
	values   map[string]any

	// Of a view that an incarnation has.
	inner *World
	own   *incarnation
}

// simulatedOrder is an order, and what was done with it.
type simulatedOrder struct {
	params cardwire.TransferParams
	taken  bool // at least once
	failed bool // it was shown as failed
	asking bool // support is at it
}

// incarnation is one life of a replica.
type incarnation struct {
	name    string
	program Program
	ctx     context.Context
	end     context.CancelFunc
	ran     chan struct{} // closed when Run has returned
}

// waiter is a goroutine that waits for its turn.
type waiter struct {
	name  string
	of    *incarnation // nil: it is the world's own
	turn  chan error
	until time.Time // it is paused until then
}

// ErrCrashed is what every call returns that leaves a program which has crashed.
var ErrCrashed = errors.New("cardwiretest: this program has crashed")

// The lengths of a simulation.
const (
	ordersInAll  = 4
	stormTime    = 2 * time.Hour
	quietHours   = 48
	maxCrashes   = 6
	maxPause     = time.Hour
	lateForFake  = 10 * time.Minute
	callTimeout  = 30 * time.Second
	simulatedURL = "http://127.0.0.1:8080/api/v1"
	simulatedKey = "sk-simulated"
)

func openWorld(t *testing.T, seed uint64, s *simulation, start func(*World) Program) *World {
	w := &World{
		t: t, seed: seed, began: time.Now(), start: start, stories: story{}, parked: map[string]*waiter{},
		counts: map[string]uint64{}, arrived: make(chan struct{}, 1), replicas: map[string]*incarnation{}, values: map[string]any{},
	}
	w.inner = w
	w.service = &provider{w: w, executed: map[string][]string{}}
	w.durable = &durableJournal{w: w, journal: s.open(t), open: s.open, forgets: s.forgets}
	for n := range ordersInAll {
		w.orders = append(w.orders, &simulatedOrder{params: cardwire.TransferParams{
			MerchantOrderNo: fmt.Sprintf("order-%d", n+1), PayoutCurrency: "EUR",
			TransferAmount: decimal.New(int64(1000+n), -2),
		}})
	}
	return w
}

// Client returns a client of the simulated service, with the journal of World.Journal
// unless an option gives it another. Its own connections are used: nothing stands in for
// them.
func (w *World) Client(opts ...cardwire.Option) *cardwire.Client {
	w.t.Helper()
	transport := &http.Transport{DialContext: w.dial}
	opts = append([]cardwire.Option{
		cardwire.WithTransport(transport), cardwire.WithJournal(w.Journal()), cardwire.WithTimeout(callTimeout),
	}, opts...)
	c, err := cardwire.New(simulatedURL, simulatedKey, opts...)
	if err != nil {
		w.t.Fatalf("cardwire.New: %v", err)
	}
	return c
}

// Journal returns the journal, which outlives the program, and fails at times.
func (w *World) Journal() *SimulatedJournal { return &SimulatedJournal{w} }

// Do waits for its turn and calls f, which must not block: it is for the program's own
// store, and for everything else that outlives it. It returns [ErrCrashed], without
// calling f, if the program crashes first. The name tells calls apart, as in
// "save order-1".
func (w *World) Do(name string, f func() error) error {
	if err := w.wait(name); err != nil {
		return err
	}
	return f()
}

// Value returns what make returned when the name was first asked for: a store that
// outlives the program.
func (w *World) Value(name string, create func() any) any {
	w.inner.mu.Lock()
	defer w.inner.mu.Unlock()
	if w.inner.values[name] == nil {
		w.inner.values[name] = create()
	}
	return w.inner.values[name]
}

// wait parks the caller until its turn.
func (w *World) wait(name string) error {
	g := &waiter{name: name, of: w.own, turn: make(chan error, 1)}
	if w.own != nil {
		g.name = w.own.name + ": " + name
	}
	if !w.inner.park(g) {
		return ErrCrashed
	}
	return <-g.turn
}

// park reports whether g waits now: those of the dead do not.
func (w *World) park(g *waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || g.of != nil && g.of.ctx.Err() != nil {
		return false
	}
	key := g.name
	for n := 2; w.parked[key] != nil; n++ {
		key = fmt.Sprintf("%s (%d)", g.name, n)
	}
	w.parked[key] = g
	select {
	case w.arrived <- struct{}{}:
	default:
	}
	return true
}

// luck returns the random numbers of the nth decision about what has the name: they do
// not depend on what else is decided.
func (w *World) luck(name string) *rand.Rand {
	w.mu.Lock()
	w.counts[name]++
	n := w.counts[name]
	w.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()^n*0x9e3779b97f4a7c15)) //nolint:gosec // a simulation, from a seed
}

// simulate lets the storm go over the orders, then waits until all is quiet, and judges.
func (w *World) simulate() {
	defer w.stop()
	for _, name := range []string{"a", "b"} {
		w.launch(name)
	}
	w.plan()
	go w.askSupport()
	w.pass(stormTime)
	w.calm = true
	w.revive()
	for range quietHours {
		w.pass(time.Hour)
		if w.judge() || w.quiet() {
			break
		}
	}
	if w.flaw == "" {
		w.judgeEnd()
	}
}

// plan draws what happens to each order from outside.
func (w *World) plan() {
	for _, o := range w.orders {
		luck := w.luck("plan " + o.params.MerchantOrderNo)
		for range 1 + luck.IntN(3) {
			w.at(time.Duration(luck.Int64N(int64(stormTime))), o, "take", w.take)
		}
		w.at(time.Duration(luck.Int64N(int64(time.Minute))), o, "take", w.take)
		if luck.IntN(4) == 0 {
			w.at(time.Duration(luck.Int64N(int64(stormTime))), o, "other", w.takeOther)
		}
		if luck.IntN(4) == 0 {
			w.at(time.Duration(luck.Int64N(int64(stormTime))), o, "cancel", w.cancel)
		}
	}
	w.planJournal()
}

// at lets f deal with the order at a time.
func (w *World) at(after time.Duration, o *simulatedOrder, what string, f func(*simulatedOrder, Program) error) {
	time.AfterFunc(after, func() { w.insist(o, what, f) })
}

// insist calls f with one replica until it succeeds, as a queue delivers a message.
func (w *World) insist(o *simulatedOrder, what string, f func(*simulatedOrder, Program) error) {
	number := o.params.MerchantOrderNo
	for range 50 {
		luck := w.luck(what + " " + number)
		name := []string{"a", "b"}[luck.IntN(2)]
		if err := w.wait("deliver " + what + " " + number + " to " + name); err != nil {
			return
		}
		w.mu.Lock()
		replica := w.replicas[name]
		w.mu.Unlock()
		err := ErrCrashed
		if replica != nil {
			w.tell(number, "%s: %s", name, what)
			err = f(o, replica.program)
		}
		if err == nil {
			return
		}
		time.Sleep(time.Minute)
	}
}

func (w *World) take(o *simulatedOrder, p Program) error {
	err := p.Take(w.t.Context(), o.params)
	o.taken = o.taken || err == nil
	return err
}

// takeOther delivers the order with another amount. What the program says is its affair.
func (w *World) takeOther(o *simulatedOrder, p Program) error {
	if !o.taken {
		return nil // it would be the order
	}
	other := o.params
	other.TransferAmount = other.TransferAmount.Add(decimal.New(1, 0))
	_ = p.Take(w.t.Context(), other)
	return nil
}

func (w *World) cancel(o *simulatedOrder, p Program) error {
	if c, ok := p.(Canceler); ok && o.taken {
		_ = c.Cancel(w.t.Context(), o.params.MerchantOrderNo)
	}
	return nil
}

// launch starts a replica.
func (w *World) launch(name string) {
	ctx, end := context.WithCancel(w.t.Context())
	i := &incarnation{name: name, ctx: ctx, end: end, ran: make(chan struct{})}
	view := &World{t: w.t, inner: w, own: i, began: w.began}
	i.program = w.start(view)
	w.mu.Lock()
	w.replicas[name] = i
	w.mu.Unlock()
	go func() { defer close(i.ran); i.program.Run(ctx) }()
}

// crash kills a replica, and starts it again later.
func (w *World) crash(name string) {
	w.crashes++
	w.kill(name)
	after := time.Duration(w.luck("restart").Int64N(int64(10 * time.Minute)))
	time.AfterFunc(after, func() {
		if !w.calm && w.wait("start "+name) == nil {
			w.mu.Lock()
			lives := w.replicas[name] != nil
			w.mu.Unlock()
			if !lives && !w.calm {
				w.launch(name)
			}
		}
	})
}

// kill ends a replica: nothing that it still does reaches anything.
func (w *World) kill(name string) {
	w.mu.Lock()
	i := w.replicas[name]
	delete(w.replicas, name)
	w.mu.Unlock()
	if i == nil {
		return
	}
	for _, o := range w.orders {
		w.tell(o.params.MerchantOrderNo, "%s: crashes", name)
	}
	i.end()
	w.mu.Lock()
	for key, c := range w.parked {
		if c.of == i {
			delete(w.parked, key)
			c.turn <- ErrCrashed
		}
	}
	w.mu.Unlock()
	<-i.ran
	_ = i.program.Close()
}

// revive starts what is dead.
func (w *World) revive() {
	for _, name := range []string{"a", "b"} {
		w.mu.Lock()
		dead := w.replicas[name] == nil
		w.mu.Unlock()
		if dead {
			w.launch(name)
		}
	}
}

// stop ends everything.
func (w *World) stop() {
	w.calm = true
	for _, name := range []string{"a", "b"} {
		w.kill(name)
	}
	w.mu.Lock()
	w.over = true
	for key, c := range w.parked {
		delete(w.parked, key)
		c.turn <- ErrCrashed
	}
	w.mu.Unlock()
	time.Sleep(stormTime) // what sleeps wakes, and is told that it is over
}

// pass lets the given time pass: whenever all is idle, one call goes on.
func (w *World) pass(d time.Duration) {
	end := time.Now().Add(d)
	for time.Now().Before(end) && w.flaw == "" {
		synctest.Wait()
		next := w.choose(end)
		if next == nil {
			continue
		}
		if w.crashesAt(next) {
			next.turn <- ErrCrashed
			w.crash(next.of.name)
		} else {
			next.turn <- nil
		}
		synctest.Wait()
		w.look()
	}
}

// crashesAt reports whether the program crashes instead of making the call.
func (w *World) crashesAt(g *waiter) bool {
	return g.of != nil && !w.calm && w.crashes < maxCrashes && w.luck("crash").IntN(25) == 0
}

// choose returns the call that goes on; nil: time has passed instead.
func (w *World) choose(end time.Time) *waiter {
	w.mu.Lock()
	ready, wake := []string{}, end
	for key, g := range w.parked {
		if !g.until.After(time.Now()) {
			ready = append(ready, key)
		} else if g.until.Before(wake) {
			wake = g.until
		}
	}
	w.mu.Unlock()
	if len(ready) == 0 {
		timer := time.NewTimer(time.Until(wake))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.arrived:
		}
		return nil
	}
	slices.Sort(ready)
	luck := w.luck("turn")
	key := ready[luck.IntN(len(ready))]
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.parked[key]
	if g.of != nil && !w.calm && g.until.IsZero() && luck.IntN(10) == 0 { // the machine stands still
		g.until = time.Now().Add(time.Duration(luck.Int64N(int64(maxPause)) >> luck.IntN(12)))
		return nil
	}
	delete(w.parked, key)
	return g
}

// look notes what the customers are shown.
func (w *World) look() {
	for _, o := range w.orders {
		if w.shown(o) == Failed && !o.failed {
			o.failed = true
			w.tell(o.params.MerchantOrderNo, "the customer is shown: failed")
		}
	}
}

// shown is what the replicas show: each of them may be the one that is asked.
func (w *World) shown(o *simulatedOrder) Shown {
	w.mu.Lock()
	replicas := maps.Clone(w.replicas)
	w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(replicas)) {
		return replicas[name].program.Show(o.params.MerchantOrderNo)
	}
	return Pending
}

// quiet reports whether every order has ended.
func (w *World) quiet() bool {
	return !slices.ContainsFunc(w.orders, func(o *simulatedOrder) bool {
		s := w.shown(o)
		return o.taken && s != Submitted && s != Failed
	})
}

// askSupport asks about what is unresolved, again and again. Support is slow, and what it
// says may be old.
func (w *World) askSupport() {
	for {
		time.Sleep(7 * time.Minute)
		if w.wait("look for what is unresolved") != nil {
			return
		}
		for _, o := range w.orders {
			if w.shown(o) == Unresolved && !o.asking {
				o.asking = true
				go w.support(o)
			}
		}
	}
}

func (w *World) support(o *simulatedOrder) {
	defer func() { o.asking = false }()
	number := o.params.MerchantOrderNo
	luck := w.luck("support " + number)
	found := cardwire.Resolution{Outcome: cardwire.OutcomeNotSent, By: "support", Note: "asked", AsOf: time.Now()}
	if luck.IntN(2) == 0 {
		found.Outcome = cardwire.OutcomeRefused
	}
	if ids := w.service.ids(number); len(ids) > 0 {
		found.Outcome, found.ServiceID = cardwire.OutcomeExecuted, ids[0]
	}
	time.Sleep(time.Duration(luck.Int64N(int64(30 * time.Minute))))
	w.insist(o, fmt.Sprintf("support says %s", found.Outcome), func(_ *simulatedOrder, p Program) error {
		if w.shown(o) != Unresolved {
			return nil
		}
		if err := p.Support(w.t.Context(), number, found); err != nil {
			w.tell(number, "support is not believed: %v", err)
		}
		return nil // it is asked again
	})
}

// judge reports whether an order is not what it is shown as.
func (w *World) judge() bool {
	for _, o := range w.orders {
		number := o.params.MerchantOrderNo
		ids, shown := w.service.ids(number), w.shown(o)
		switch {
		case len(ids) > 1:
			w.found(o, "was executed %d times", len(ids))
		case len(ids) > 0 && (o.failed || shown == Failed):
			w.found(o, "was shown as failed, and executed")
		case len(ids) == 0 && shown == Submitted:
			w.found(o, "is shown as submitted, and was not executed")
		}
	}
	return w.flaw != ""
}

// judgeEnd finds what was forgotten.
func (w *World) judgeEnd() {
	for _, o := range w.orders {
		if s := w.shown(o); o.taken && s != Submitted && s != Failed {
			w.found(o, "was forgotten: it is still shown as %s", s)
		}
	}
}

func (w *World) found(o *simulatedOrder, format string, args ...any) {
	number := o.params.MerchantOrderNo
	w.flaw = cmp.Or(w.flaw, fmt.Sprintf("seed %d: %s %s\n%s", w.seed, number, fmt.Sprintf(format, args...), w.storyOf(number)))
}

// dial opens a connection to the simulated service.
func (w *World) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := w.wait("connect"); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	stop := context.AfterFunc(w.own.ctx, func() { _ = client.Close() })
	go func() { defer stop(); w.inner.service.serve(server) }()
	return client, nil
}
