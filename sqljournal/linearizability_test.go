package sqljournal_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

var flagHistories = flag.Int("histories", 40, "how many histories TestJournalIsLinearizable makes in each database")

// What callers and people are told at the same time, while statements fail before and after
// they were executed, is what one after the other would be told.
func TestJournalIsLinearizable(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		journal, outage := during(t, at, io.ErrUnexpectedEOF)
		for seed := range uint64(*flagHistories) {
			h := &history{T: t, journal: journal, outage: outage, reference: fmt.Sprint("M-", seed), start: time.Now()}
			h.run(seed)
			if !porcupine.CheckOperations(ledgerModel(h.operations), h.operations) {
				t.Fatalf("seed %d:\n%s", seed, h)
			}
		}
	})
}

// history is what was done with a reference, and what was returned.
type history struct {
	*testing.T

	journal   *sqljournal.Journal
	outage    *outage
	reference string
	start     time.Time
	clock     atomic.Int64

	mu         sync.Mutex
	operations []porcupine.Operation
}

// operation is what is asked of the journal.
type operation struct {
	what   string // begin, end, void, resolve, lookup, or release
	call   callIn
	result string // of end and resolve: executed, refused, final or not sent; "" is unknown
	id     string
}

// callIn is an intent.
type callIn struct {
	name, body string
	isFresh    bool // it may still be sent; else its SettledBy has passed
}

const (
	callers = 3
	people  = 2
	rounds  = 3
	usual   = "the usual body"
)

// run has callers call and people ask and decide, at once.
func (h *history) run(seed uint64) {
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			luck := rand.New(rand.NewPCG(seed, uint64(n)))
			for round := range rounds {
				h.caller(luck, callOf(n*rounds+round, seed))
			}
		})
	}
	for n := range people {
		group.Go(func() {
			luck := rand.New(rand.NewPCG(seed, uint64(callers+n)))
			for range 2 * rounds {
				h.person(luck, callOf(luck.IntN(callers*rounds), seed))
			}
		})
	}
	group.Wait()
}

// callOf returns the nth call of a history. Most are settled, and of the same body.
func callOf(n int, seed uint64) callIn {
	luck := rand.New(rand.NewPCG(seed, uint64(100+n)))
	body := []string{usual, "another"}[luck.IntN(8)/7]
	return callIn{name: string(rune('a' + n)), body: body, isFresh: luck.IntN(4) == 0}
}

func (h *history) caller(luck *rand.Rand, call callIn) {
	ctx, cancel := h.trouble(luck)
	defer cancel()
	if h.do(ctx, operation{what: "begin", call: call}) != "ok" {
		return
	}
	result := []string{"executed", "refused", "final", "not_sent", ""}[luck.IntN(5)]
	end := operation{what: "end", call: call, result: result}
	if result == "executed" {
		end.id = h.id(call)
	}
	_, stop := h.trouble(luck)
	defer stop()
	h.do(h.Context(), end)
}

func (h *history) person(luck *rand.Rand, call callIn) {
	ctx, cancel := h.trouble(luck)
	defer cancel()
	switch luck.IntN(4) {
	case 0:
		h.do(ctx, operation{what: "void"})
	case 1:
		h.do(ctx, operation{what: "lookup"})
	default:
		e, err := h.journal.Lookup(h.Context(), transfer, h.reference)
		if err == nil && e.Call != "" && luck.IntN(4) > 0 {
			call = callIn{name: h.name(e)}
		}
		result := []string{"executed", "final", "not_sent"}[luck.IntN(3)]
		resolve := operation{what: "resolve", call: call, result: result}
		if resolve.result == "executed" && luck.IntN(2) == 0 {
			resolve.id = h.id(call)
		}
		h.do(ctx, resolve)
	}
}

// trouble lets the next write fail before or after it, at times, or ends the context at any
// moment.
func (h *history) trouble(luck *rand.Rand) (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(h.Context())
	switch luck.IntN(12) {
	case 0:
		h.outage.failed.Store(1)
	case 1:
		h.outage.lost.Store(1)
	case 2:
		go cancelLater(cancel, luck.IntN(200))
	}
	return ctx, cancel
}

// cancelLater lets others run n times before it cancels.
func cancelLater(cancel context.CancelFunc, n int) {
	for range n {
		runtime.Gosched()
	}
	cancel()
}

// do asks the journal, and notes what was asked and returned.
func (h *history) do(ctx context.Context, o operation) (output string) {
	called := h.clock.Add(1)
	output = h.ask(ctx, o)
	returned := h.clock.Add(1)
	if output == failed {
		returned = math.MaxInt64 // it may have been executed, or be so later
	}
	h.note(o, called, output, returned)
	if o.what == "begin" && output == failed { // it sent nothing, and the journal may say so at any time
		o.what = "release"
		h.note(o, called, output, returned)
	}
	return output
}

func (h *history) note(o operation, called int64, output string, returned int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{Input: o, Call: called, Output: output, Return: returned})
}

func (h *history) ask(ctx context.Context, o operation) string {
	switch o.what {
	case "begin":
		return returnedBy(h.journal.Begin(ctx, h.intent(o.call)))
	case "end":
		result := cardwire.IntentResult{Outcome: outcomes[o.result], Final: o.result == "final", ServiceID: o.id}
		return returnedBy(h.journal.End(ctx, h.intent(o.call), result))
	case "void":
		i := cardwire.Intent{Op: transfer, Reference: h.reference, BodySHA256: usual}
		return returnedBy(h.journal.Void(ctx, i, "Ada", ""))
	case "resolve":
		return returnedBy(h.journal.Resolve(ctx, h.intent(o.call), found(outcomes[o.result], o.id)))
	}
	e, err := h.journal.Lookup(ctx, transfer, h.reference)
	if err != nil {
		return returnedBy(err)
	}
	state := ledgerState{open: e.Open, closed: e.Closed, proved: e.Proved, outcome: e.Outcome, id: e.ServiceID}
	state.call.name = h.name(e)
	return state.shown()
}

// name is that of the call on record.
func (h *history) name(e sqljournal.Entry) string { return strings.TrimPrefix(e.Call, h.reference) }

// id is the service's for a call: no other reference has it.
func (h *history) id(c callIn) string { return "T-" + h.reference + c.name }

func (h *history) intent(c callIn) cardwire.Intent {
	start := h.start
	if !c.isFresh {
		start = start.Add(-2 * time.Hour)
	}
	return cardwire.Intent{
		Call: h.reference + c.name, Op: transfer, Reference: h.reference, BodySHA256: c.body, Service: service,
		Time: start, SendBy: start.Add(time.Minute), SettledBy: start.Add(11 * time.Minute),
	}
}

// String returns the history in the order of the calls.
func (h *history) String() string {
	var b strings.Builder
	slices.SortFunc(h.operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range h.operations {
		fmt.Fprintf(&b, "%3d to %3d: %v: %s\n", o.Call, o.Return, o.Input, o.Output)
	}
	return b.String()
}

var outcomes = map[string]cardwire.Outcome{
	"executed": cardwire.OutcomeExecuted, "refused": cardwire.OutcomeRefused, "final": cardwire.OutcomeRefused,
	"not_sent": cardwire.OutcomeNotSent, "": cardwire.OutcomeUnknown,
}

const failed = "failed"

var contradicts, decided = sqljournal.ErrContradiction.Error(), sqljournal.ErrDecided.Error()

// returnedBy puts into words what a journal returned, but for what it adds to a
// contradiction, which it reads later.
func returnedBy(err error) string {
	for _, known := range []error{sqljournal.ErrContradiction, sqljournal.ErrDecided, sqljournal.ErrNoIntent} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	_, duplicate := errors.AsType[*cardwire.DuplicateIntent](err)
	switch {
	case errors.Is(err, cardwire.ErrOtherBody) && duplicate:
		return word(err) + ", another body"
	case errors.Is(err, cardwire.ErrOtherBody):
		return "another body"
	case err == nil, duplicate:
		return word(err)
	}
	return failed
}

// ledgerState is what is on record for a reference.
type ledgerState struct {
	exists, open, closed, proved bool
	isFresh                      bool // its SettledBy has not passed
	outcome                      cardwire.Outcome
	call                         callIn
	id                           string
	denied                       string // the names of calls of which a person said that they did not happen
	left                         int    // how many operations that did not fail come later
}

func (s ledgerState) shown() string {
	return fmt.Sprint(s.outcome, s.open, s.closed, s.proved, s.call.name, s.id)
}

// ledgerModel is the table of [cardwire.Journal], and the rules below it. An operation that failed may
// be executed at any time, or never, which is the same as after all others. Where it would change nothing it
// comes there, so that few orders are left to try.
func ledgerModel(operations []porcupine.Operation) porcupine.Model {
	first := ledgerState{}
	for _, o := range operations {
		if o.Output != failed {
			first.left++
		}
	}
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			s, o := state.(ledgerState), input.(operation)
			next, want := s.step(o)
			next.left = s.left
			if output == failed {
				return next != s || s.left == 0, next
			}
			next.left--
			return output == want, next
		},
	}
}

// step returns what the operation makes of the state, and what it returns.
func (s ledgerState) step(o operation) (next ledgerState, want string) {
	switch o.what {
	case "begin":
		return s.begin(o.call)
	case "end":
		return s.end(o)
	case "void":
		return s.void()
	case "resolve":
		return s.resolve(o)
	case "release":
		if s.open && s.call.name == o.call.name {
			s.open, s.outcome = false, cardwire.OutcomeNotSent
		}
		return s, failed
	}
	if !s.exists {
		return s, sqljournal.ErrNoIntent.Error()
	}
	return s, s.shown()
}

// free reports whether nothing happened, and the reference is not closed.
func (s ledgerState) free() bool {
	return s.exists && !s.closed && (s.outcome == cardwire.OutcomeRefused || s.outcome == cardwire.OutcomeNotSent)
}

// refusal is what is returned of a reference that is neither free nor new.
func (s ledgerState) refusal() string {
	switch {
	case s.open && s.call.isFresh:
		return "in progress"
	case s.outcome == cardwire.OutcomeExecuted:
		return strings.TrimSpace(s.outcome.String() + " " + s.id)
	}
	return s.outcome.String()
}

func (s ledgerState) begin(c callIn) (ledgerState, string) {
	other := s.exists && s.call.body != c.body
	switch {
	case s.open && s.call.name == c.name:
		return s, "ok"
	case s.free() && other:
		return s, "another body"
	case s.closed:
		return s, s.refusal()
	case s.exists && !s.free() && other:
		return s, s.refusal() + ", another body"
	case s.exists && !s.free():
		return s, s.refusal()
	}
	return ledgerState{exists: true, open: true, isFresh: c.isFresh, call: c, denied: s.denied}, "ok"
}

func (s ledgerState) end(o operation) (next ledgerState, want string) {
	own := s.call.name == o.call.name
	outcome, closes := outcomes[o.result], o.result == "final"
	next, agrees := s, false
	switch {
	case own && s.open:
		next.open, next.outcome, next.closed, next.id = false, outcome, closes, o.id
		next.proved, agrees = outcome == cardwire.OutcomeExecuted, true
	case outcome == cardwire.OutcomeExecuted && s.outcome == outcome:
		next.proved, next.id = true, cmp.Or(s.id, o.id)
		agrees = s.id == o.id || own && s.id == ""
	case outcome == cardwire.OutcomeExecuted:
		next.open, next.closed, next.proved, next.outcome = false, false, true, outcome
		next.isFresh, next.call, next.id = o.call.isFresh, o.call, o.id
		agrees = own && s.outcome == cardwire.OutcomeUnknown
	case outcome != cardwire.OutcomeUnknown:
		agrees = s.outcome == outcome && s.closed == closes
	case s.outcome != cardwire.OutcomeExecuted && !strings.Contains(s.denied, o.call.name):
		next.open, next.closed, next.outcome, next.isFresh = false, false, outcome, s.isFresh || o.call.isFresh
		agrees = s.outcome == outcome
	}
	if !agrees {
		return next, contradicts
	}
	return next, "ok"
}

func (s ledgerState) void() (ledgerState, string) {
	switch {
	case !s.exists:
		voided := ledgerState{exists: true, closed: true, outcome: cardwire.OutcomeNotSent, call: callIn{body: usual}}
		return voided, "ok"
	case s.outcome == cardwire.OutcomeExecuted && s.call.body != usual:
		return s, s.refusal() + ", another body"
	case !s.closed && !s.free():
		return s, s.refusal()
	}
	s.closed = true
	return s, "ok"
}

func (s ledgerState) resolve(o operation) (ledgerState, string) {
	outcome, closes := outcomes[o.result], o.result == "final"
	switch {
	case !s.exists:
		return s, sqljournal.ErrNoIntent.Error()
	case outcome == cardwire.OutcomeExecuted && s.outcome == outcome && (o.id == "" || o.id == s.id):
		return s, "ok"
	case outcome == cardwire.OutcomeExecuted && s.proved && s.id != "":
		return s, decided
	case outcome == cardwire.OutcomeExecuted:
		s.open, s.closed, s.outcome, s.id = false, false, outcome, cmp.Or(o.id, s.id)
		return s, "ok"
	case s.outcome == outcome && s.closed == closes, s.free() && !closes:
		return s, "ok"
	case s.call.name != o.call.name, s.closed, s.proved, !s.free() && s.isFresh:
		return s, decided
	}
	s.open, s.outcome, s.closed, s.id = false, outcome, closes, ""
	s.denied += o.call.name
	return s, "ok"
}

// While a late result is recorded, nobody takes back what it proves.
func TestALateResultLocksItsRow(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, person := openNew(t, at)
		journal, outage := during(t, at, nil)
		i := settled("M-1")
		begun(t, journal, i)
		require.NoError(t, person.Resolve(t.Context(), i, paid("")))
		asked := outage.asked.Load()
		outage.reading = func() {
			if outage.asked.Load() != asked+2 { // after the row was locked
				return
			}
			outage.reading = nil
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			assert.ErrorIs(t, person.Resolve(ctx, i, notSent()), context.DeadlineExceeded)
		}
		require.NoError(t, journal.End(t.Context(), i, executed))
		assert.Nil(t, outage.reading)
		assert.Equal(t, "executed T-1", word(journal.Begin(t.Context(), intent("M-1"))))
		assert.True(t, lookup(t, journal, "M-1").Proved)
	})
}
