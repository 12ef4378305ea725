package cardwiretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// World is the environment of a simulated [Program]. Every call that leaves the program takes
// some virtual time, chosen by the seed, so that no two of them continue at the same instant.
type World struct {
	*simulated

	own *incarnation
}

// simulated is one simulation.
type simulated struct {
	*simulation

	t       *testing.T
	seed    uint64
	began   time.Time
	start   func(*World) Program
	orders  []*simulatedOrder
	service *Service
	outside *incarnation   // what is no program; its life is the simulation
	running sync.WaitGroup // all goroutines
	stirred chan struct{}  // a call has continued
	calm    atomic.Bool    // there are no more faults or crashes
	flaw    string

	// What one goroutine does before it locks mu, all others see after they have.
	mu       sync.Mutex
	crashes  int
	replicas map[string]*incarnation // those that are running
	counts   map[string]uint64       // how often each name was drawn for
	values   map[string]any
	stories  story
	payments map[*simulatedOrder][]payment // nil: what nobody ordered
	journal  cardwire.Journal              // outlives the programs
	begun    map[string]cardwire.Intent    // the last call of each reference
}

// simulatedOrder is an order, and what was done with it.
type simulatedOrder struct {
	number string
	params cardwire.TransferParams
	shown  string // what the customer was last shown
	failed bool   // it was shown as failed
	early  bool   // it was shown as submitted before it was executed
	taken  atomic.Bool
}

// incarnation is one life of a replica.
type incarnation struct {
	name    string
	program Program
	ctx     context.Context
	end     context.CancelFunc
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
	ctx, end := context.WithCancel(t.Context())
	s := &simulated{
		simulation: settings, t: t, seed: seed, began: time.Now(), start: start, service: New(),
		outside: &incarnation{ctx: ctx, end: end}, stirred: make(chan struct{}, 1),
		replicas: map[string]*incarnation{}, counts: map[string]uint64{}, values: map[string]any{}, stories: story{},
		payments: map[*simulatedOrder][]payment{}, journal: settings.open(t), begun: map[string]cardwire.Intent{},
	}
	s.service.draw, s.service.watch = s.draw, s.watch
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
	defer w.stir()
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
	w.running.Go(func() { defer stop(); w.serve(context.WithoutCancel(ctx), server) })
	return client, nil
}

// wait lets time pass before a call continues: a moment or, while there are faults, a pause of the
// machine. At times the program crashes instead.
func (s *simulated) wait(of *incarnation, name string) error {
	if of.ctx.Err() != nil {
		return ErrCrashed
	}
	luck := s.luck(of.name + ": " + name)
	d := upTo(luck, time.Second)
	switch n := luck.IntN(50); {
	case of == s.outside || s.calm.Load() || n > 6:
	case n > 1:
		d = upTo(luck, maxPause) >> luck.IntN(12)
	default:
		s.crash(of)
	}
	if !of.sleep(d) {
		return ErrCrashed
	}
	s.stir()
	return nil
}

// sleep reports whether the incarnation has outlived d.
func (i *incarnation) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.ctx.Done():
	}
	return i.ctx.Err() == nil
}

// stir has the customers look when all is idle.
func (s *simulated) stir() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.stirred <- struct{}{}:
	default:
	}
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
	for _, name := range replicaNames {
		s.running.Go(func() { s.live(name) })
	}
	s.plan()
	s.pass(stormTime)
	s.calm.Store(true)
	for range quietHours {
		s.pass(time.Hour)
		if s.check() || !slices.ContainsFunc(s.orders, s.lasts) {
			break
		}
	}
	for _, o := range s.orders {
		if s.lasts(o) {
			s.found(o.number, "was forgotten: it is still shown as %s", o.shown)
		}
	}
}

// live runs a replica, and again after each crash, until the simulation ends.
func (s *simulated) live(name string) {
	for s.wait(s.outside, "start "+name) == nil {
		ctx, end := context.WithCancel(s.outside.ctx)
		i := &incarnation{name: name, ctx: ctx, end: end}
		i.program = s.start(&World{s, i})
		s.mu.Lock()
		s.replicas[name] = i
		s.mu.Unlock()
		i.program.Run(ctx)
		<-ctx.Done()
		_ = i.program.Close()
		s.outside.sleep(upTo(s.luck("restart"), 10*time.Minute))
	}
}

// crash kills a replica: nothing that it still does reaches anything.
func (s *simulated) crash(i *incarnation) {
	s.mu.Lock()
	isOver := s.crashes == maxCrashes
	if !isOver {
		s.crashes++
		delete(s.replicas, i.name)
	}
	s.mu.Unlock()
	if isOver {
		return
	}
	for _, o := range s.orders {
		s.tell(o.number, "%s: crashes", i.name)
	}
	i.end()
}

// stop ends everything.
func (s *simulated) stop() {
	s.outside.end()
	s.running.Wait()
	for name, value := range s.values {
		if c, ok := value.(io.Closer); ok {
			if err := c.Close(); err != nil {
				s.t.Errorf("cardwiretest: closing %s: %v", name, err)
			}
		}
	}
}

// pass lets time pass. Whenever something has happened, customers look.
func (s *simulated) pass(d time.Duration) {
	for end := time.Now().Add(d); s.wakes(time.Until(end)); {
		synctest.Wait()
		for _, o := range s.orders {
			s.look(o)
		}
	}
}

// wakes reports whether something has happened within d.
func (s *simulated) wakes(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.stirred:
		return true
	case <-timer.C:
		return false
	}
}

// plan draws what happens to each order from outside.
func (s *simulated) plan() {
	for _, o := range s.orders {
		luck := s.luck("plan " + o.number)
		later := func(most time.Duration, what string, f func(Program) error) {
			s.later(upTo(luck, most), func() { s.insist(o, what, f) })
		}
		take := func(p Program) error { return s.take(o, p) }
		later(time.Minute, "take", take)
		for range 1 + luck.IntN(3) {
			later(stormTime, "take", take)
		}
		if luck.IntN(4) == 0 {
			later(stormTime, "other", func(p Program) error { return s.takeOther(o, p) })
		}
		if luck.IntN(4) == 0 {
			later(stormTime, "cancel", func(p Program) error { return s.cancel(o, p) })
		}
		s.running.Go(func() { s.support(o) })
	}
}

// later calls f after d, unless the simulation has ended.
func (s *simulated) later(d time.Duration, f func()) {
	s.running.Go(func() {
		if s.outside.sleep(d) {
			f()
		}
	})
}

// insist calls f with one replica until it succeeds, as a queue delivers a message.
func (s *simulated) insist(o *simulatedOrder, what string, f func(Program) error) {
	for range 50 {
		name := replicaNames[s.luck(what+" "+o.number).IntN(len(replicaNames))]
		if s.wait(s.outside, "deliver "+what+" "+o.number) != nil {
			return
		}
		if p := s.programOf(name); p != nil {
			s.tell(o.number, "%s: %s", name, what)
			if f(p) == nil {
				return
			}
		}
		s.outside.sleep(time.Minute)
	}
}

// programOf returns the program of a replica; nil: it is not running.
func (s *simulated) programOf(name string) Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.replicas[name]; i != nil {
		return i.program
	}
	return nil
}

func (s *simulated) take(o *simulatedOrder, p Program) error {
	err := p.Take(s.t.Context(), o.params)
	if err == nil {
		o.taken.Store(true)
	}
	return err
}

// takeOther delivers the order with another amount. The program may accept or refuse it.
func (s *simulated) takeOther(o *simulatedOrder, p Program) error {
	if o.taken.Load() { // otherwise it would be the order
		other := o.params
		other.TransferAmount = other.TransferAmount.Add(decimal.New(1, 0))
		_ = p.Take(s.t.Context(), other)
	}
	return nil
}

func (s *simulated) cancel(o *simulatedOrder, p Program) error {
	if c, ok := p.(Canceler); ok && o.taken.Load() {
		_ = c.Cancel(s.t.Context(), o.number)
	}
	return nil
}

// look keeps what the customer is shown.
func (s *simulated) look(o *simulatedOrder) {
	shown, paid := s.shown(o), len(s.paymentsOf(o)) > 0
	o.failed = o.failed || slices.Contains(shown, Failed)
	o.early = o.early || slices.Contains(shown, Submitted) && !paid
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(shown), "[]"), " ", " or ")
	if len(shown) > 0 && text != o.shown {
		s.tell(o.number, "the customer is shown: %s", text)
		o.shown = text
	}
}

// shown returns what the replicas show, without duplicates, since a customer may ask any of
// them; nil: none is running.
func (s *simulated) shown(o *simulatedOrder) (all []Shown) {
	for _, name := range replicaNames {
		if p := s.programOf(name); p != nil {
			shown := p.Show(o.number)
			s.mu.Lock() // so that the program sees that what it changes next was read
			all = append(all, shown)
			s.mu.Unlock()
		}
	}
	return slices.Compact(all)
}

// lasts reports whether an order was taken and has not ended.
func (s *simulated) lasts(o *simulatedOrder) bool {
	return o.taken.Load() && slices.ContainsFunc(s.shown(o), func(s Shown) bool { return s != Submitted && s != Failed })
}

// support is asked about an order while the order is unresolved. It is slow, and what it says
// may be out of date.
func (s *simulated) support(o *simulatedOrder) {
	isUnresolved := func() bool { return slices.Contains(s.shown(o), Unresolved) }
	for s.outside.sleep(7*time.Minute) && s.wait(s.outside, "look whether "+o.number+" is unresolved") == nil {
		if !isUnresolved() {
			continue
		}
		found := s.asked(o)
		s.outside.sleep(upTo(s.luck("support "+o.number), 30*time.Minute))
		s.insist(o, "support says "+found.Outcome.String(), func(p Program) error {
			if !isUnresolved() {
				return nil
			}
			if err := p.Support(s.t.Context(), o.number, found); err != nil {
				s.tell(o.number, "support is not believed: %v", err)
			}
			return nil // it is asked again
		})
	}
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

// check reports whether an order was executed or shown as it must not be.
func (s *simulated) check() bool {
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

// found records the first flaw.
func (s *simulated) found(number, format string, args ...any) {
	s.flaw = cmp.Or(s.flaw, fmt.Sprintf("seed %d (run it again with -cardwire.seed=%[1]d): %s %s\n%s",
		s.seed, number, fmt.Sprintf(format, args...), s.storyOf(number)))
}
