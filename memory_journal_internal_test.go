package cardwire

import (
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The search below goes through everything that can happen to one order: two callers and
// three calls, each of which may crash, be told late, or be executed late; a journal that
// hears of results late or never; a person who tells the truth, but may have asked early
// and may say it late; a cancellation; another body. The journal is the memory journal's
// own row. Time is counted in steps: a call sends for one, and is settled after two.
const (
	sendSteps   = 1
	settleSteps = 2
	lastStep    = 8
	callsInAll  = 3
	asksInAll   = 3
)

// The phases of a call.
const (
	notBegun  = iota
	inFlight  // its result is open
	hasResult // the journal has not been told
	over
)

// What became of its request.
const (
	onItsWay = iota
	executed
	dead // it can no longer be executed
)

type orderCall struct {
	phase, request, began int8
	result                IntentResult
}

// order is the state of the world.
type order struct {
	row        row
	calls      [callsInAll]orderCall
	now        int8
	executions int8
	failed     bool // somebody was told that it will not happen
	booked     bool // somebody was told that it happened
	asks       int8
	asked      bool // the person has not said yet what the service said
	askedAt    int8
	askedOf    Intent
	saidYes    bool
}

// key identifies a state. Times and bodies follow from the calls.
type key [16 + 5*callsInAll]byte

func (o *order) key() (k key) {
	r := &o.row
	flags := []bool{r.open, r.closed, r.proven, r.exists, o.failed, o.booked, o.asked, o.saidYes}
	numbers := []int8{int8(r.outcome), o.now, o.executions, o.asks, o.askedAt}
	for n, set := range flags {
		if set {
			k[n] = 1
		}
	}
	for n, number := range numbers {
		k[8+n] = byte(number)
	}
	for n, name := range []string{r.intent.Call, r.serviceID, o.askedOf.Call} {
		if name != "" {
			k[13+n] = name[0]
		}
	}
	for n, c := range o.calls {
		bytes := k[16+5*n:]
		bytes[0], bytes[1], bytes[2], bytes[3] = byte(c.phase), byte(c.request), byte(c.began), byte(c.result.Outcome)
		if s := r.earlier[callName(n)]; s != (said{}) {
			bytes[4] = 1 + byte(s.outcome)
		}
		if r.earlier[callName(n)].byPerson {
			bytes[4] |= 0x80
		}
	}
	return k
}

// callName is one byte, and costs no memory.
func callName(n int) string { return "012"[n : n+1] }

func (o *order) time(step int8) time.Time { return time.Unix(int64(step), 0) }

func (o *order) intent(n int) Intent {
	began := o.calls[n].began
	return Intent{
		Call: callName(n), BodySHA256: "a", Time: o.time(began),
		SendBy: o.time(began + sendSteps), SettledBy: o.time(began + settleSteps),
	}
}

// flaw returns what must never be.
func (o *order) flaw() string {
	pending := slices.ContainsFunc(o.calls[:], func(c orderCall) bool {
		return c.phase == inFlight || c.phase == hasResult
	})
	switch {
	case o.executions > 1:
		return "executed twice"
	case o.failed && o.executions > 0:
		return "failed though executed"
	case o.booked && o.executions == 0:
		return "booked though not executed"
	case !pending && o.executions > 0 && o.row.outcome != OutcomeExecuted && !o.row.isUnresolved():
		return "executed, and nobody is asked to find out"
	}
	return ""
}

// tell lets the caller do what it does with what the journal says.
func (o *order) tell(err error) {
	d, ok := errors.AsType[*DuplicateIntent](err)
	if !ok {
		return
	}
	o.failed = o.failed || d.isClosed()
	o.booked = o.booked || d.Outcome == OutcomeExecuted && !errors.Is(err, ErrOtherBody)
}

// looser is a rule that is not kept; "": all are.
type looser string

// moves calls add with each change that may follow.
func (o *order) moves(rule looser, add func(change func(*order))) {
	if o.now < lastStep {
		add(func(n *order) { n.now++ })
	}
	for i := range o.calls {
		o.callMoves(i, rule, add)
	}
	add(func(n *order) { // canceled, or called with another body
		switch err := n.row.void(Intent{Call: "void", BodySHA256: "b"}, n.time(n.now)); err {
		case nil:
			n.failed = true
		default:
			n.tell(err)
		}
	})
	o.personMoves(rule, add)
}

func (o *order) callMoves(i int, rule looser, add func(func(*order))) {
	c := &o.calls[i]
	if c.phase == notBegun && (i == 0 || o.calls[i-1].phase != notBegun) {
		add(func(n *order) { n.begin(i, rule) })
	}
	if c.phase != notBegun && c.request == onItsWay && o.now < c.began+settleSteps {
		add(func(n *order) { n.calls[i].request = executed; n.executions++ })
	}
	if c.phase == inFlight {
		end := func(request int8, result IntentResult) {
			add(func(n *order) { n.calls[i].phase, n.calls[i].request, n.calls[i].result = hasResult, request, result })
		}
		end(c.request, IntentResult{})
		if c.request == executed {
			end(executed, IntentResult{Outcome: OutcomeExecuted, ServiceID: callName(i)})
		}
		if c.request == onItsWay {
			end(dead, IntentResult{Outcome: OutcomeRefused, Final: true})
			end(dead, IntentResult{Outcome: OutcomeNotSent})
		}
		add(func(n *order) { n.calls[i].phase = over }) // it crashes
	}
	if c.phase == hasResult {
		add(func(n *order) { n.end(i, rule) })
		add(func(n *order) { n.calls[i].phase = over }) // it crashes, or its End is lost
	}
}

func (o *order) begin(i int, rule looser) {
	o.calls[i].began = o.now
	if rule == "closed is reopened" {
		o.row.closed = false
	}
	if err := o.row.begin(o.intent(i), o.time(o.now), false); err != nil {
		o.calls[i] = orderCall{phase: over, request: dead}
		o.tell(err)
		return
	}
	o.calls[i].phase = inFlight
}

func (o *order) end(i int, rule looser) {
	c := &o.calls[i]
	c.phase = over
	if rule == "a late unknown undoes a denial" && c.result.Outcome == OutcomeUnknown {
		o.row.earlier = nil
	}
	err := o.row.end(o.intent(i), c.result, o.time(o.now))
	switch {
	case c.result.Outcome == OutcomeExecuted:
		o.booked = true
	case err != nil:
		o.tell(err)
	case c.result.Final:
		o.failed = true
	}
}

func (o *order) personMoves(rule looser, add func(func(*order))) {
	if o.asks < asksInAll && !o.asked && o.row.isUnresolved() && !o.row.inProgress(o.time(o.now)) {
		add(func(n *order) {
			n.asks++
			n.asked, n.askedAt, n.askedOf, n.saidYes = true, n.now, n.row.intent, n.executions > 0
		})
	}
	if !o.asked {
		return
	}
	outcomes := []Outcome{OutcomeRefused, OutcomeNotSent}
	if o.saidYes {
		outcomes = []Outcome{OutcomeExecuted}
	}
	for _, outcome := range outcomes {
		add(func(n *order) { n.resolve(outcome, rule) })
	}
}

func (o *order) resolve(outcome Outcome, rule looser) {
	o.asked = false
	i, found := o.askedOf, Resolution{Outcome: outcome, By: "Ada", AsOf: o.time(o.askedAt)}
	switch rule {
	case "denied as of an earlier look":
		found.AsOf = o.time(o.now)
	case "a denial reaches a later call":
		if !found.AsOf.Before(i.SettledBy) {
			i, found.AsOf = o.row.intent, o.time(o.now)
		}
	}
	if err := errors.Join(found.Validate(), o.row.resolve(i, found, "", o.time(o.now))); err != nil {
		return
	}
	o.failed = o.failed || outcome == OutcomeRefused
	o.booked = o.booked || outcome == OutcomeExecuted
}

// search returns the first flaw that can be reached, and how many states it saw.
func search(rule looser) (flaw string, states int) {
	seen := map[key]struct{}{}
	var o, next order
	for todo := []order{{}}; len(todo) > 0; {
		o = todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if flaw := o.flaw(); flaw != "" {
			return fmt.Sprintf("%s: %+v", flaw, o), len(seen)
		}
		o.moves(rule, func(change func(*order)) {
			next = o
			change(&next)
			k := next.key()
			if _, ok := seen[k]; !ok {
				seen[k] = struct{}{}
				todo = append(todo, next)
			}
		})
	}
	return "", len(seen)
}

func TestNoOrderIsPaidTwiceWhateverHappens(t *testing.T) {
	t.Parallel()
	flaw, states := search("")
	require.Empty(t, flaw)
	t.Log("states:", states)
	assert.Greater(t, states, 2_000_000)
}

func TestTheSearchFindsLooserRules(t *testing.T) {
	t.Parallel()
	for _, rule := range []looser{
		"denied as of an earlier look", "closed is reopened", "a denial reaches a later call",
		"a late unknown undoes a denial",
	} {
		flaw, _ := search(rule)
		assert.NotEmpty(t, flaw, rule)
	}
}

// A wall clock that was set forward makes nobody believe a denial early.
func TestADenialWaitsForTheMonotonicClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := Intent{Call: "0", SendBy: now, SettledBy: now.Add(time.Hour)}
	r := row{exists: true, intent: i}
	denial := Resolution{Outcome: OutcomeNotSent, By: "Ada", AsOf: now.Add(2 * time.Hour).Round(0)} // by the wall clock
	require.ErrorContains(t, r.resolve(i, denial, "", now), "the service may still execute it until")
	assert.True(t, r.isUnresolved())
	ahead := row{exists: true, intent: Intent{Call: "0", Time: now.Add(time.Hour), SettledBy: now.Add(3 * time.Hour)}}
	require.ErrorContains(t, ahead.resolve(i, denial, "", now), "the clock was ahead when the call began")
	require.NoError(t, r.resolve(i, denial, "", now.Add(time.Hour)))
	assert.False(t, r.isUnresolved())
}

func TestAnEndThatIsToldAgainAfterTheNextBegin(t *testing.T) {
	j := NewMemoryJournal()
	call := func(name string) Intent {
		return Intent{
			Call: name, Op: "CreateTransfer", Reference: "order-1", Service: "https://api.example.com/api/v1",
			SendBy: time.Now().Add(time.Hour), SettledBy: time.Now().Add(time.Hour),
		}
	}
	notSent, refused := IntentResult{Outcome: OutcomeNotSent}, IntentResult{Outcome: OutcomeRefused}
	require.NoError(t, j.Begin(t.Context(), call("a")))
	require.NoError(t, j.End(t.Context(), call("a"), notSent))
	require.NoError(t, j.Begin(t.Context(), call("b")))
	require.NoError(t, j.End(t.Context(), call("a"), notSent), "the first one, told again")
	require.ErrorIs(t, j.End(t.Context(), call("a"), refused), ErrDuplicateIntent, "another result")
	require.ErrorIs(t, j.End(t.Context(), call("x"), notSent), ErrDuplicateIntent, "of a call that never ended")
	final := IntentResult{Outcome: OutcomeNotSent, Final: true}
	require.ErrorIs(t, j.End(t.Context(), call("a"), final), ErrDuplicateIntent, "its caller would fail the order")
	require.NoError(t, j.End(t.Context(), call("b"), refused))
	require.NoError(t, j.End(t.Context(), call("a"), notSent))
	require.NoError(t, j.Begin(t.Context(), call("c")), "neither changed the record")
}

// fill sends n references, which end as r; nil: they do not end.
func fill(t *testing.T, j *MemoryJournal, name string, n int, r *IntentResult) {
	t.Helper()
	for k := range n {
		i := Intent{
			Call: strings.Clone(rand.Text()[:16]), Op: "CreateTransfer", Reference: fmt.Sprintf("%s-%026d", name, k),
			BodySHA256: rand.Text() + rand.Text() + rand.Text()[:12], Summary: fmt.Sprintf("%d.00 EUR", k),
			Service: "https://api.example.com/api/v1", Time: time.Now(),
		}
		i.SendBy = i.Time.Add(time.Hour)
		i.SettledBy = i.SendBy
		require.NoError(t, j.Begin(t.Context(), i))
		if r != nil {
			r.ServiceID = "T-" + strings.Clone(rand.Text()[:20])
			require.NoError(t, j.End(t.Context(), i, *r))
		}
	}
}

// begin returns what the journal knows of a reference of fill.
func begin(t *testing.T, j *MemoryJournal, name string, k int) error {
	t.Helper()
	return j.Begin(t.Context(), Intent{Call: "late", Op: "CreateTransfer", Reference: fmt.Sprintf("%s-%026d", name, k)})
}

func TestAFullMemoryJournal(t *testing.T) {
	before := heap()
	j := NewMemoryJournal()
	fill(t, j, "first", 10, &IntentResult{Outcome: OutcomeExecuted})
	fill(t, j, "executed", maxEnded/2, &IntentResult{Outcome: OutcomeExecuted})
	fill(t, j, "closed", maxEnded/2, &IntentResult{Outcome: OutcomeRefused, Final: true})
	fill(t, j, "outage", 2*maxFree, &IntentResult{Outcome: OutcomeNotSent})
	fill(t, j, "unresolved", maxUnresolved-2, nil)
	repeated := Intent{Call: "a", Op: OpCancelOrRetry, Reference: "settled", Repeatable: true}
	require.NoError(t, j.Begin(t.Context(), repeated))
	require.NoError(t, begin(t, j, "first", 0), "what is older than the last 65,536 is forgotten")
	for _, name := range []string{"executed", "closed", "unresolved"} {
		require.ErrorIs(t, begin(t, j, name, 0), ErrDuplicateIntent, name)
	}
	assert.Less(t, (heap()-before)>>20, uint64(64), "MiB")

	err := begin(t, j, "next", 0)
	require.ErrorContains(t, err, "65,536 references are unresolved")
	assert.NotErrorIs(t, err, ErrDuplicateIntent)
	require.ErrorIs(t, begin(t, j, "executed", 0), ErrDuplicateIntent, "what is known is said all the same")
	repeated.Call = "b"
	require.NoError(t, j.Begin(t.Context(), repeated), "it is unresolved already")
	i := Intent{Call: "late", Op: "CreateTransfer", Reference: fmt.Sprintf("first-%026d", 0)}
	require.NoError(t, j.End(t.Context(), i, IntentResult{Outcome: OutcomeNotSent}))
	require.NoError(t, begin(t, j, "next", 0), "one was resolved")
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
