package cardwiretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// World is the environment of a simulated [Program]. Every call that leaves the program waits
// until everything is idle; then one call, chosen by the seed, continues.
type World struct {
	*simulated

	own *incarnation
}

// simulated is one simulation.
type simulated struct {
	t       *testing.T
	seed    uint64
	began   time.Time
	start   func(*World) Program
	orders  []*simulatedOrder
	service *Service
	journal *durableJournal

	replicas map[string]*incarnation // those that are running
	crashes  int
	calm     bool // there are no more faults or crashes
	flaw     string
	arrived  chan struct{} // a waiter has parked

	mu       sync.Mutex
	over     bool // the simulation has ended
	parked   map[string]*waiter
	counts   map[string]uint64 // how often each name was drawn for
	values   map[string]any
	stories  story
	payments map[*simulatedOrder][]payment // nil: what nobody ordered
}

// simulatedOrder is an order, and what was done with it.
type simulatedOrder struct {
	number string
	params cardwire.TransferParams
	shown  string // what the customer was last shown
	taken  bool   // at least once
	failed bool   // it was shown as failed
	early  bool   // it was shown as submitted before it was executed
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
	of    *incarnation // nil: the simulation itself
	turn  chan error
	until time.Time // it is paused until then
}

// ErrCrashed is the error of every call that a crashed program makes to the client, the
// journal or [World.Do].
var ErrCrashed = errors.New("cardwiretest: this program has crashed")

// The lengths of a simulation.
const (
	ordersInAll = 4
	stormTime   = 2 * time.Hour
	quietHours  = 48
	maxCrashes  = 6
	maxPause    = 24 * time.Hour
	callTimeout = 30 * time.Second
)

// replicaNames are those of the two replicas.
var replicaNames = []string{"a", "b"}

func openWorld(t *testing.T, seed uint64, settings *simulation, start func(*World) Program) *simulated {
	s := &simulated{
		t: t, seed: seed, began: time.Now(), start: start, service: New(),
		replicas: map[string]*incarnation{}, arrived: make(chan struct{}, 1),
		parked: map[string]*waiter{}, counts: map[string]uint64{}, values: map[string]any{}, stories: story{},
		payments: map[*simulatedOrder][]payment{},
	}
	s.service.draw, s.service.watch = s.draw, s.watch
	s.journal = &durableJournal{s, settings, settings.open(t), map[string]cardwire.Intent{}, nil}
	for n := range ordersInAll {
		o := &simulatedOrder{number: fmt.Sprintf("order-%d", n+1), shown: Pending.String()}
		o.params = cardwire.TransferParams{
			MerchantOrderNo: o.number, PayoutCurrency: "EUR", TransferAmount: decimal.New(int64(1000+n), -2),
			ReceiverBankAccountNumber: fmt.Sprintf("DE0%d", n),
		}
		s.orders = append(s.orders, o)
	}
	return s
}

// Client returns a client of the simulated service, with the journal of World.Journal unless
// an option sets another one. It uses the client's own connection code, not a stub.
func (w *World) Client(opts ...cardwire.Option) *cardwire.Client {
	w.t.Helper()
	transport := &http.Transport{DialContext: w.dial, DisableKeepAlives: true} // each call waits for its turn
	opts = append([]cardwire.Option{
		cardwire.WithTransport(transport), cardwire.WithJournal(w.Journal()), cardwire.WithTimeout(callTimeout),
	}, opts...)
	c, err := cardwire.New("http://127.0.0.1:8080"+basePath, DefaultKey, opts...)
	if err != nil {
		w.t.Fatalf("cardwire.New: %v", err)
	}
	return c
}

// Journal returns the journal, which outlives the program and sometimes fails.
func (w *World) Journal() *SimulatedJournal { return &SimulatedJournal{w} }

// Do waits for its turn and calls f, which must not block: it is for the program's own store,
// and for everything else that outlives the program. If the program crashes first, Do returns
// [ErrCrashed] without calling f. The name distinguishes calls, as in "save order-1".
func (w *World) Do(name string, f func() error) error {
	if err := w.wait(w.own, name); err != nil {
		return err
	}
	return f()
}

// Value returns what create returned when Value was first called with the name: a store that
// outlives the program. One with a Close method, as a sql.DB, is closed at the end.
func (w *World) Value(name string, create func() any) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.values[name] == nil {
		w.values[name] = create()
	}
	return w.values[name]
}

// dial opens a connection to the simulated service.
func (w *World) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := w.wait(w.own, "connect"); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	stop := context.AfterFunc(w.own.ctx, func() { _ = client.Close() })
	go func() { defer stop(); w.serve(context.WithoutCancel(ctx), server) }()
	return client, nil
}

// wait parks the caller until its turn. The calls of a crashed program do not wait.
func (s *simulated) wait(of *incarnation, name string) error {
	w := &waiter{of: of, turn: make(chan error, 1)}
	if of != nil {
		name = of.name + ": " + name
	}
	if !s.park(name, w) {
		return ErrCrashed
	}
	return <-w.turn
}

// park reports whether the caller waits now.
func (s *simulated) park(name string, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || w.of != nil && w.of.ctx.Err() != nil {
		return false
	}
	key := name
	for n := 2; s.parked[key] != nil; n++ {
		key = fmt.Sprintf("%s (%d)", name, n)
	}
	s.parked[key] = w
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return true
}

// luck returns the random numbers of the nth decision with that name: they do not depend on
// other decisions.
func (s *simulated) luck(name string) *rand.Rand {
	s.mu.Lock()
	s.counts[name]++
	n := s.counts[name]
	s.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(s.seed, h.Sum64()^n*0x9e3779b97f4a7c15))
}

// upTo draws a time.
func upTo(luck *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(luck.Int64N(int64(most)))
}

// simulate runs the orders with faults, then without, until all is quiet, and checks.
func (s *simulated) simulate() {
	defer s.stop()
	s.revive()
	s.plan()
	s.pass(stormTime)
	s.calm = true
	s.revive()
	for range quietHours {
		s.pass(time.Hour)
		if s.check() || s.quiet() {
			break
		}
	}
	s.checkEnd()
}

// plan draws what happens to each order from outside.
func (s *simulated) plan() {
	for _, o := range s.orders {
		luck := s.luck("plan " + o.number)
		later := func(most time.Duration, what string, f func(*simulatedOrder, Program) error) {
			time.AfterFunc(upTo(luck, most), func() { s.insist(o, what, f) })
		}
		for range 1 + luck.IntN(3) {
			later(stormTime, "take", s.take)
		}
		later(time.Minute, "take", s.take)
		if luck.IntN(4) == 0 {
			later(stormTime, "other", s.takeOther)
		}
		if luck.IntN(4) == 0 {
			later(stormTime, "cancel", s.cancel)
		}
		go s.support(o)
	}
	s.journal.plan()
}

// insist calls f with one replica until it succeeds, as a queue delivers a message.
func (s *simulated) insist(o *simulatedOrder, what string, f func(*simulatedOrder, Program) error) {
	for range 50 {
		luck := s.luck(what + " " + o.number)
		name := replicaNames[luck.IntN(len(replicaNames))]
		if s.wait(nil, "deliver "+what+" "+o.number+" to "+name) != nil {
			return
		}
		if replica := s.replicas[name]; replica != nil {
			s.tell(o.number, "%s: %s", name, what)
			if f(o, replica.program) == nil {
				return
			}
		}
		time.Sleep(time.Minute)
	}
}

func (s *simulated) take(o *simulatedOrder, p Program) error {
	err := p.Take(s.t.Context(), o.params)
	o.taken = o.taken || err == nil
	return err
}

// takeOther delivers the order with another amount. The program may accept or refuse it.
func (s *simulated) takeOther(o *simulatedOrder, p Program) error {
	if o.taken { // otherwise it would be the order
		other := o.params
		other.TransferAmount = other.TransferAmount.Add(decimal.New(1, 0))
		_ = p.Take(s.t.Context(), other)
	}
	return nil
}

func (s *simulated) cancel(o *simulatedOrder, p Program) error {
	if c, ok := p.(Canceler); ok && o.taken {
		_ = c.Cancel(s.t.Context(), o.number)
	}
	return nil
}

// revive starts the replicas that are not running.
func (s *simulated) revive() {
	for _, name := range replicaNames {
		s.launch(name)
	}
}

// launch starts a replica, unless it is running.
func (s *simulated) launch(name string) {
	if s.replicas[name] != nil {
		return
	}
	ctx, end := context.WithCancel(s.t.Context())
	i := &incarnation{name: name, ctx: ctx, end: end, ran: make(chan struct{})}
	i.program = s.start(&World{s, i})
	s.replicas[name] = i
	go func() { defer close(i.ran); i.program.Run(ctx) }()
}

// crash kills a replica, and starts it again later.
func (s *simulated) crash(name string) {
	s.crashes++
	s.kill(name)
	time.AfterFunc(upTo(s.luck("restart"), 10*time.Minute), func() {
		if s.wait(nil, "start "+name) == nil {
			s.launch(name)
		}
	})
}

// kill ends a replica: nothing that it still does reaches anything.
func (s *simulated) kill(name string) {
	i := s.replicas[name]
	if i == nil {
		return
	}
	delete(s.replicas, name)
	for _, o := range s.orders {
		s.tell(o.number, "%s: crashes", name)
	}
	i.end()
	s.releaseAll(func(w *waiter) bool { return w.of == i })
	<-i.ran
	_ = i.program.Close()
}

// releaseAll ends the calls of crashed programs, one after the other.
func (s *simulated) releaseAll(dead func(*waiter) bool) {
	synctest.Wait()
	for s.release(ErrCrashed, dead) {
		synctest.Wait()
	}
}

// release lets the first of these waiters continue, and reports whether there is one.
func (s *simulated) release(err error, these func(*waiter) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.parked)) {
		if w := s.parked[key]; these(w) {
			delete(s.parked, key)
			w.turn <- err
			return true
		}
	}
	return false
}

// stop ends everything.
func (s *simulated) stop() {
	for _, name := range replicaNames {
		s.kill(name)
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.releaseAll(func(*waiter) bool { return true })
	time.Sleep(stormTime) // sleeping goroutines wake, and see that it is over
	for name, value := range s.values {
		if c, ok := value.(io.Closer); ok {
			if err := c.Close(); err != nil {
				s.t.Errorf("cardwiretest: closing %s: %v", name, err)
			}
		}
	}
}

// pass lets the given time pass: whenever all is idle, one waiter continues.
func (s *simulated) pass(d time.Duration) {
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		synctest.Wait()
		switch next := s.choose(end); {
		case next == nil:
			continue
		case s.crashesNow(next):
			s.crash(next.of.name)
		default:
			s.release(nil, func(w *waiter) bool { return w == next })
		}
		synctest.Wait()
		s.show()
	}
}

// crashesNow reports whether the program crashes instead of going on.
func (s *simulated) crashesNow(w *waiter) bool {
	return w.of != nil && !s.calm && s.crashes < maxCrashes && s.luck("crash").IntN(25) == 0
}

// choose returns the waiter that continues; nil: time has passed instead.
func (s *simulated) choose(end time.Time) *waiter {
	ready, wake := s.ready(end)
	if len(ready) == 0 {
		timer := time.NewTimer(time.Until(wake))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.arrived:
		}
		return nil
	}
	luck := s.luck("turn")
	key := ready[luck.IntN(len(ready))]
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.parked[key]
	if w.of != nil && !s.calm && w.until.IsZero() && luck.IntN(10) == 0 { // the machine pauses
		w.until = time.Now().Add(upTo(luck, maxPause) >> luck.IntN(12))
		return nil
	}
	return w
}

// ready returns those that are not paused, and when the next of the others is not.
func (s *simulated) ready(end time.Time) (keys []string, wake time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wake = end
	for key, w := range s.parked {
		if !w.until.After(time.Now()) {
			keys = append(keys, key)
		} else if w.until.Before(wake) {
			wake = w.until
		}
	}
	slices.Sort(keys)
	return keys, wake
}

// show keeps what the customers are shown.
func (s *simulated) show() {
	for _, o := range s.orders {
		shown := s.shown(o)
		o.failed = o.failed || slices.Contains(shown, Failed)
		o.early = o.early || slices.Contains(shown, Submitted) && len(s.paymentsOf(o)) == 0
		text := strings.ReplaceAll(strings.Trim(fmt.Sprint(shown), "[]"), " ", " or ")
		if len(shown) > 0 && text != o.shown {
			s.tell(o.number, "the customer is shown: %s", text)
			o.shown = text
		}
	}
}

// shown returns what the replicas show, without duplicates, since a customer may ask any of
// them; nil: none is running.
func (s *simulated) shown(o *simulatedOrder) (all []Shown) {
	for _, name := range replicaNames {
		if i := s.replicas[name]; i != nil {
			all = append(all, i.program.Show(o.number))
		}
	}
	return slices.Compact(all)
}

// quiet reports whether every order has ended.
func (s *simulated) quiet() bool { return !slices.ContainsFunc(s.orders, s.lasts) }

// lasts reports whether an order was taken and has not ended.
func (s *simulated) lasts(o *simulatedOrder) bool {
	return o.taken && slices.ContainsFunc(s.shown(o), func(s Shown) bool { return s != Submitted && s != Failed })
}

// support is asked about an order while the order is unresolved. It is slow, and what it says
// may be out of date.
func (s *simulated) support(o *simulatedOrder) {
	for {
		time.Sleep(7 * time.Minute)
		if s.wait(nil, "look whether "+o.number+" is unresolved") != nil {
			return
		}
		if !s.isUnresolved(o) {
			continue
		}
		found := s.asked(o)
		time.Sleep(upTo(s.luck("support "+o.number), 30*time.Minute))
		s.insist(o, "support says "+found.Outcome.String(), func(_ *simulatedOrder, p Program) error {
			if !s.isUnresolved(o) {
				return nil
			}
			if err := p.Support(s.t.Context(), o.number, found); err != nil {
				s.tell(o.number, "support is not believed: %v", err)
			}
			return nil // it is asked again
		})
	}
}

func (s *simulated) isUnresolved(o *simulatedOrder) bool {
	return slices.Contains(s.shown(o), Unresolved)
}

// asked returns what support knows now.
func (s *simulated) asked(o *simulatedOrder) journal.Resolution {
	found := journal.Resolution{Outcome: cardwire.OutcomeNotSent, By: "support", Note: "asked", AsOf: time.Now()}
	if s.luck("asked "+o.number).IntN(2) == 0 {
		found.Outcome = cardwire.OutcomeRefused
	}
	if paid := s.paymentsOf(o); len(paid) > 0 {
		found.Outcome, found.ServiceID = cardwire.OutcomeExecuted, paid[0].id
	}
	return found
}

// check reports whether an order is shown as something that it is not.
func (s *simulated) check() bool {
	s.show()
	for _, p := range s.paymentsOf(nil) {
		s.found(p.reference, "was executed, and nobody ordered it")
	}
	for _, o := range s.orders {
		paid := s.paymentsOf(o)
		switch {
		case len(paid) > 1:
			s.found(o.number, "was executed %d times", len(paid))
		case len(paid) > 0 && paid[0].wrong != "":
			s.found(o.number, "was executed %s", paid[0].wrong)
		case len(paid) > 0 && o.failed:
			s.found(o.number, "was shown as failed, but was executed")
		case o.early:
			s.found(o.number, "was shown as submitted, but had not been executed")
		}
	}
	return s.flaw != ""
}

// checkEnd finds what was forgotten.
func (s *simulated) checkEnd() {
	for _, o := range s.orders {
		if s.lasts(o) {
			s.found(o.number, "was forgotten: it is still shown as %s", o.shown)
		}
	}
}

// found records the first flaw.
func (s *simulated) found(number, format string, args ...any) {
	s.flaw = cmp.Or(s.flaw, fmt.Sprintf("seed %d (run it again with -cardwire.seed=%[1]d): %s %s\n%s",
		s.seed, number, fmt.Sprintf(format, args...), s.storyOf(number)))
}
