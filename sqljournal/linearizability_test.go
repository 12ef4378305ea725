package sqljournal_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
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
	"github.com/cardwire/cardwire-go/journal"
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
			if !porcupine.CheckOperations(h.model(), h.operations) {
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

// action is what is asked of the journal.
type action struct {
	what   string // begin, end, reserve, void, resolve, lookup, or release
	call   callIn
	result string // of end and resolve: executed, refused, final or not sent; "" is unknown
	id     string
}

// callIn is an intent.
type callIn struct {
	name, body string
	age        time.Duration // new: it may still be sent; over: it may not, and is settled
}

const (
	isNew  time.Duration = 0
	isOver               = 2 * time.Hour
)

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
	age := []time.Duration{isNew, isOver, isOver, isOver}[luck.IntN(4)]
	return callIn{name: string(rune('a' + n)), body: body, age: age}
}

func (h *history) caller(luck *rand.Rand, call callIn) {
	ctx, cancel := h.trouble(luck)
	defer cancel()
	if h.do(ctx, action{what: "begin", call: call}) != "ok" {
		return
	}
	result := []string{"executed", "refused", "final", "not_sent", ""}[luck.IntN(5)]
	end := action{what: "end", call: call, result: result}
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
	switch luck.IntN(5) {
	case 0:
		h.do(ctx, action{what: "void", call: callIn{body: usual}})
	case 1:
		h.do(ctx, action{what: "reserve", call: callIn{body: call.body}})
	case 2:
		h.do(ctx, action{what: "lookup"})
	default:
		e, err := h.journal.Lookup(h.Context(), transfer, h.reference)
		if err == nil && e.Call != "" && luck.IntN(4) > 0 {
			call = callIn{name: h.name(e)}
		}
		result := []string{"executed", "final", "not_sent"}[luck.IntN(3)]
		resolve := action{what: "resolve", call: call, result: result}
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
func (h *history) do(ctx context.Context, o action) (output string) {
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

func (h *history) note(o action, called int64, output string, returned int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{Input: o, Call: called, Output: output, Return: returned})
}

func (h *history) ask(ctx context.Context, o action) string {
	journal := h.journal
	switch o.what {
	case "begin":
		return returnedBy(journal.Begin(ctx, h.intent(o.call)))
	case "end":
		return returnedBy(journal.End(ctx, h.intent(o.call), h.result(o)))
	case "void":
		return returnedBy(journal.Void(ctx, h.intent(o.call), "Ada", ""))
	case "reserve":
		return returnedBy(journal.Reserve(ctx, h.intent(o.call)))
	case "resolve":
		return returnedBy(journal.Resolve(ctx, h.intent(o.call), h.found(o, time.Now())))
	}
	e, err := h.journal.Lookup(ctx, transfer, h.reference)
	if err != nil {
		return returnedBy(err)
	}
	return shown(recordOf(e))
}

// recordOf is the record of an entry, but for one that was closed and is not.
func recordOf(e sqljournal.Entry) journal.Record {
	return journal.Record{
		Intent: e.Intent, Outcome: e.Outcome, Open: e.Open, Closed: e.Closed, Proved: e.Proved, Reserved: e.Reserved,
		ServiceID: e.ServiceID, Status: e.Status, EndedAt: e.EndedAt,
	}
}

// shown is what is compared of a record.
func shown(r journal.Record) string {
	return fmt.Sprint(r.Outcome, r.Open, r.IsClosed(), r.Proved, r.Reserved, r.Call, r.BodySHA256, r.ServiceID)
}

func (h *history) result(o action) cardwire.IntentResult {
	return cardwire.IntentResult{Outcome: outcomes[o.result], Final: o.result == "final", ServiceID: o.id}
}

func (h *history) found(o action, now time.Time) journal.Resolution {
	found := found(outcomes[o.result], o.id)
	found.AsOf = now
	return found
}

// name is that of the call on record.
func (h *history) name(e sqljournal.Entry) string { return strings.TrimPrefix(e.Call, h.reference) }

// id is the service's for a call: no other reference has it.
func (h *history) id(c callIn) string { return "T-" + h.reference + c.name }

func (h *history) intent(c callIn) cardwire.Intent {
	start := h.start.Add(-c.age)
	i := cardwire.Intent{
		Call: h.reference + c.name, Op: transfer, Reference: h.reference, BodySHA256: c.body,
		Service: service, Time: start, SendBy: start.Add(time.Minute), SettledBy: start.Add(11 * time.Minute),
	}
	if c.name == "" { // of a person
		i.Call = ""
	}
	return i
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
	case errors.Is(err, sqljournal.ErrRecordedAgain):
		return contradicts
	case errors.Is(err, cardwire.ErrOtherBody) && duplicate:
		return word(err) + ", another body"
	case errors.Is(err, cardwire.ErrOtherBody):
		return "another body"
	case err == nil, duplicate:
		return word(err)
	case errors.Is(err, cardwire.ErrInvalidParams):
		return "invalid"
	}
	return failed
}

// recordState is what is on record for a reference.
type recordState struct {
	journal.Record

	begun  string // the names of calls that began
	denied string // the names of calls of which a person said that they did not happen
	left   int    // how many operations that did not fail come later
}

// model is the rules, one action after the other. An action that failed may be executed at any
// time, or never, which is the same as after all others. Where it would change nothing it comes there, so
// that few orders are left to try.
func (h *history) model() porcupine.Model {
	first := recordState{}
	for _, o := range h.operations {
		if o.Output != failed {
			first.left++
		}
	}
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			s, o := state.(recordState), input.(action)
			next, want := h.step(s, o)
			if output == failed {
				return next != s || s.left == 0, next
			}
			if isDenial := o.what == "resolve" && o.result != "executed"; output == decided && isDenial &&
				s.Outcome == cardwire.OutcomeExecuted { // recorded after this person had asked
				next, want = s, decided
			}
			next.left--
			return output == want, next
		},
	}
}

// step returns what the action makes of the state, and what it returns.
func (h *history) step(s recordState, o action) (next recordState, want string) {
	i, err := h.intent(o.call), error(nil)
	next = s
	switch o.what {
	case "begin":
		next.Record, err = s.Begin(i, journal.Hold{}, h.start)
		if err == nil {
			next.begun += o.call.name
		}
	case "end":
		isDenied := strings.Contains(s.denied, o.call.name)
		next.Record, err = s.End(i, h.result(o), isDenied, !strings.Contains(s.begun, o.call.name), journal.Hold{},
			h.start)
		if err != nil {
			return next, contradicts
		}
	case "void":
		next.Record, err = s.Void(i, journal.Hold{}, h.start)
	case "reserve":
		next.Record, err = s.Reserve(i, journal.Hold{}, h.start)
	case "resolve":
		next.Record, err = s.Resolve(i, h.found(o, h.start), "", journal.Hold{}, h.start)
		switch {
		case !s.Exists():
			return s, sqljournal.ErrNoIntent.Error()
		case err != nil:
			return s, decided
		case next.Record != s.Record && o.result != "executed":
			next.denied += o.call.name
		}
	case "release":
		if s.Open && s.Call == i.Call {
			next.Record, _ = s.End(i, cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}, false, false,
				journal.Hold{}, h.start)
		}
		return next, failed
	case "lookup":
		if !s.Exists() {
			return s, sqljournal.ErrNoIntent.Error()
		}
		return s, shown(s.In(journal.Hold{}))
	}
	return next, returnedBy(err)
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
		outage.reading = func() {
			isLate := func(text string) bool { return strings.Contains(text, "kind = 'resolved'") }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(outage.texts)), isLate) { // after the row was locked
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
