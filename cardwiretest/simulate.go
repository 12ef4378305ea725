package cardwiretest

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// Program is a merchant's own program, as [Simulate] runs it. Its methods may be called
// concurrently, and again after they failed. It must not hold a mutex while it calls the
// client, the journal or [World.Do].
type Program interface {
	// Take accepts an order, to be executed unchanged and under its own number. The same
	// order may come again, even after it ended. If it comes again with another amount, the
	// one that Take accepted first counts.
	Take(ctx context.Context, order cardwire.TransferParams) error
	// Run sends what must be sent, until ctx is done.
	Run(ctx context.Context)
	// Support tells the program what the service's support found out about an order that Show
	// returned as Unresolved. If it returns an error, it is called again later.
	Support(ctx context.Context, number string, found journal.Resolution) error
	// Show returns what the customer sees of an order. It is called while the program is
	// idle, and must not call the client, the journal or World.Do.
	Show(number string) Shown
	// Close ends the program. After a crash it must not wait for anything that has not ended.
	Close() error
}

// Canceler is an optional interface of a [Program].
type Canceler interface {
	// Cancel cancels an order, if that is still possible.
	Cancel(ctx context.Context, number string) error
}

// Shown is what a customer sees of an order.
type Shown int

const (
	// Pending means that the order has not ended as far as the program knows, or that the
	// program does not know it.
	Pending Shown = iota
	// Submitted means that the service has executed the order.
	Submitted
	// Failed means that the order was not executed and never will be.
	Failed
	// Unresolved means that support must find out.
	Unresolved
)

// String returns "pending", "submitted", "failed" or "unresolved".
func (s Shown) String() string {
	if s < Pending || s > Unresolved {
		return fmt.Sprintf("Shown(%d)", int(s))
	}
	return []string{"pending", "submitted", "failed", "unresolved"}[s]
}

// SimulationOption configures [Simulate].
type SimulationOption func(*simulation)

// Seeds sets the seeds to run: n of them, from first on. The default is 100, from 1 on.
func Seeds(first, n uint64) SimulationOption {
	return func(s *simulation) { s.first, s.seeds = first, n }
}

// JournalOf makes World.Journal wrap the journal that open returns, instead of one in memory.
// open is called once for each seed, and its journal must outlive the program's crashes.
func JournalOf(open func(t *testing.T) cardwire.Journal) SimulationOption {
	return func(s *simulation) { s.open = open }
}

// simulation is what the options of Simulate set.
type simulation struct {
	first, seeds uint64
	open         func(t *testing.T) cardwire.Journal
	patience     time.Duration // for one seed, in real time
}

// onlySeed is the test flag that runs only one seed.
var onlySeed = func() *uint64 {
	if !testing.Testing() {
		return new(uint64)
	}
	return flag.Uint64("cardwire.seed", 0, "the only seed that cardwiretest.Simulate tries; 0: those of the test")
}()

// Simulate runs a merchant's own program against a failing service, in virtual time, once for
// each seed. start creates the program: at the beginning, after each crash, and once for each
// of two replicas. [World.Client] gives it a client whose journal outlives it. [World.Do] wraps each
// change to its own store, so that the simulation can interrupt between any two of them, and
// [World.Value] keeps that store across a crash.
//
// It tries these:
//
//   - The service refuses, for good or for now; resets the connection before or after it executes;
//     executes up to Profile.LateExecution after the client has gone; responds with a gateway's page, a
//     firewall's page, an undocumented code, or a success without the order. A gateway delivers a
//     request twice.
//   - The program crashes or pauses at any call to the client, the journal or World.Do, for up to a day.
//   - Orders are submitted again, even after they ended, or with another amount, and are canceled.
//   - Support is slow, and says "not found" about what is executed later.
//   - The journal fails, before and after it has recorded something.
//
// It does not try these:
//
//   - What a database loses when its machine crashes: [JournalOf] only takes a journal on a real one.
//   - Faults of other operations than CreateTransfer.
//   - Races between goroutines of the program that have no call between them.
//
// Then the faults stop. When every order has ended, or after two quiet days, a seed fails if an order
// was executed twice, or with another amount, payee or number; if either replica ever showed it as
// failed though it was executed, or as submitted before it was, or still shows it as pending; or if
// something was executed that nobody ordered. The failure has the story of that order.
//
// Each seed is a subtest, as in -run 'TestShop/seed=17'; -cardwire.seed=17 runs only that one. The
// same seed tells the same story if the program itself uses no randomness, its goroutines meet only
// at calls, and no two of them read from the service, or call Do with the same name, at the same
// instant. A mutex that is held during a call stops virtual time: the test fails, and says so.
func Simulate(t *testing.T, start func(w *World) Program, options ...SimulationOption) {
	t.Helper()
	s := newSimulation(options)
	for seed := s.first; seed < s.first+s.seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if flaw := s.run(t, seed, start).flaw; flaw != "" {
				t.Error(flaw)
			}
		})
	}
}

func newSimulation(options []SimulationOption) *simulation {
	s := &simulation{
		first: 1, seeds: 100, patience: time.Minute,
		open: func(*testing.T) cardwire.Journal { return journal.NewMemory() },
	}
	for _, option := range options {
		option(s)
	}
	if *onlySeed > 0 {
		s.first, s.seeds = *onlySeed, 1
	}
	return s
}

// run simulates one seed.
func (s *simulation) run(t *testing.T, seed uint64, start func(w *World) Program) (done *simulated) {
	t.Helper()
	stop := s.watch(seed)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			panic(ofDeadlock(p))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		done = openWorld(t, seed, s, start)
		done.simulate()
	})
	return done
}

// ofDeadlock says what to do about what testing/synctest found.
func ofDeadlock(p any) any {
	if text := fmt.Sprint(p); strings.HasPrefix(text, "deadlock") {
		return text + ": cardwiretest: a goroutine that the program started never ends: end it in Program.Close. " +
			"A sql.DB, or whatever else World.Value keeps, has a Close method, which is called at the end"
	}
	return p
}

// watch ends the tests if a seed takes too long: a goroutine that waits for a mutex is
// not idle for testing/synctest, so that virtual time does not advance.
func (s *simulation) watch(seed uint64) (stop func()) {
	timer := time.AfterFunc(s.patience, func() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		panic(fmt.Sprintf("cardwiretest: seed %d did not end within %s: check whether the program holds a mutex "+
			"during a call, or never stops computing\n%s", seed, s.patience, stacks))
	})
	return func() { timer.Stop() }
}

// story is what happened to each order, in order.
type story map[string][]string

// tell adds a line to the story of the order that a reference is about.
func (s *simulated) tell(reference, format string, args ...any) {
	if o := s.orderOf(reference); o != nil {
		reference = o.number
	}
	line := fmt.Sprintf("%10.3f s  %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stories[reference] = append(s.stories[reference], line)
}

// storyLines bounds a story that is shown.
const storyLines = 40

// storyOf returns the story of an order; if it is long, without its middle.
func (s *simulated) storyOf(order string) string {
	lines := s.stories[order]
	if left := len(lines) - storyLines + 1; left > 1 {
		first := storyLines / 4
		said := fmt.Sprintf("    (%d lines are left out)", left)
		lines = slices.Concat(lines[:first], []string{said}, lines[first+left:])
	}
	return strings.Join(lines, "\n")
}
