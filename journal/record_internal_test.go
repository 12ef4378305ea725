package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// The search below goes through everything that can happen to one order: two callers and
// three calls, each of which may crash, be told late, or be executed late; a journal that
// hears of results late or never; a person who tells the truth, but may have asked early
// and may say it late; a cancellation; another body; a reservation; a statement; holds and their eras, a
// release, a planned move, and a backup that is restored while programs run on, as when a standby takes
// over. The journal is a [Record]. Time is counted in steps: a call sends for one, and is settled after two.
const (
	sendSteps   = 1
	settleSteps = 2
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
	result                cardwire.IntentResult
}

// order is the state of the world.
type order struct {
	calls      [callsInAll]orderCall
	now        int8
	executions int8
	failed     bool // somebody was told that it will not happen
	booked     bool // somebody was told that it happened
	pinned     bool // another merchant order was told that it has the number
	asks       int8
	asked      bool // the person has not said yet what the service said
	askedAt    int8
	askedOf    string // the call
	saidYes    bool
	wrong      string // what has happened that must never be; "": nothing

	state
	backup   state
	backedUp bool // and not restored
	restored bool
	ended    bool // a hold has ended since the backup, or something else is lost
}

// state is what the database has, and a restore brings back.
type state struct {
	Record

	denied [callsInAll]bool
	begun  [callsInAll]bool // the history has their Begin
	hold   Hold
	era    int64 // how often it was put on hold
	back   int64 // what Moved sets the hold's Era back to
	isMine bool  // a person's hold that Moved may end
}

// key identifies a state.
type key [7 + 2*stateKey + 4*callsInAll]byte

const stateKey = 14

func (o *order) key() (k key) {
	flags(k[:], o.failed, o.booked, o.pinned, o.asked, o.saidYes, o.backedUp, o.restored, o.ended)
	k[1], k[2], k[3], k[4] = byte(o.now), byte(o.executions), byte(o.asks), byte(o.askedAt)
	flags(k[5:], o.hold.Moved != "")
	copy(k[6:], o.askedOf)
	o.state.writeKey(k[7:])
	o.backup.writeKey(k[7+stateKey:])
	for n, c := range o.calls {
		bytes := k[7+2*stateKey+4*n:]
		bytes[0], bytes[1], bytes[2], bytes[3] = byte(c.phase), byte(c.request), byte(c.began), byte(c.result.Outcome)
	}
	return k
}

func (r *state) writeKey(k []byte) {
	flags(k, r.Open, r.Closed, r.Proved, r.Reserved, r.Exists(), r.BodySHA256 == "b", r.hold.By != "", r.isMine)
	flags(k[1:], r.denied[:]...)
	flags(k[13:], r.begun[:]...)
	k[7], k[8], k[9], k[10], k[11] = byte(r.Era), byte(r.hold.Era), byte(r.era), byte(r.back), byte(step(r.hold.Floor))
	k[12] = byte(step(r.hold.Since))
	k[2], k[3] = byte(r.Outcome), byte(step(r.SettledBy))
	if r.Outcome == cardwire.OutcomeExecuted && !r.Proved { // else nothing depends on it
		k[4] = byte(step(r.EndedAt))
	}
	copy(k[5:6], r.Call)
	copy(k[6:7], r.ServiceID)
}

// flags makes bits of them.
func flags(k []byte, set ...bool) {
	for n, is := range set {
		if is {
			k[0] |= 1 << n
		}
	}
}

// step is that of a time.
func step(t time.Time) int8 {
	if t.IsZero() {
		return -1
	}
	return int8(t.Unix())
}

// callName is one byte, and costs no memory.
func callName(n int) string { return "012"[n : n+1] }

func (o *order) time(step int8) time.Time { return time.Unix(int64(step), 0) }

func (o *order) intent(n int) cardwire.Intent {
	began := o.calls[n].began
	return cardwire.Intent{
		Call: callName(n), Op: cardwire.OpCreateTransfer, Reference: "M-1", BodySHA256: "a", Time: o.time(began),
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
	case !pending && o.executions > 0 && o.Outcome != cardwire.OutcomeExecuted && !o.In(o.hold).IsUnresolved() &&
		o.hold.By == "":
		return "executed, and nobody is asked to find out"
	}
	return o.wrong
}

// tell lets the caller do what it does with what the journal says.
func (o *order) tell(err error) {
	d, ok := errors.AsType[*cardwire.DuplicateIntent](err)
	if !ok {
		return
	}
	o.failed = o.failed || isUndone(d.Outcome)
	o.booked = o.booked || d.Outcome == cardwire.OutcomeExecuted && !errors.Is(err, cardwire.ErrOtherBody)
}

// become stores a record, and returns what its rule returned.
func (o *order) become(r Record, err error) error {
	o.Record = r
	return err
}

// other is an intent that is of no call.
func (o *order) other(body string) cardwire.Intent {
	return cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: "M-1", BodySHA256: body}
}

// statementMoves are those of a statement that lists what is true, and of whoever applies it.
func (o *order) statementMoves(add func(func(*order))) {
	lists := func(result cardwire.IntentResult) {
		add(func(n *order) {
			listed := n.other("")
			listed.SettledBy = n.time(n.now + settleSteps)
			//nolint:errcheck // it is for who reads statements
			n.become(n.Listed(listed, result, "", n.hold, n.time(n.now)))
		})
	}
	for i, c := range o.calls {
		if c.phase != notBegun && c.request == executed {
			lists(cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: callName(i)})
		}
		if c.phase != notBegun && c.request == onItsWay {
			lists(cardwire.IntentResult{})
		}
	}
}

// looser is a rule that is not kept; "": all are.
type looser string

// world is what else may happen.
type world struct {
	calls, steps                     int
	isReserved, isListed, isRestored bool
	isMoved                          bool // restored too, under holds of a person, or moved by plan
}

var worlds = []world{
	{calls: callsInAll, steps: 7}, {calls: 2, steps: 7, isReserved: true, isListed: true},
	{calls: 2, steps: 4, isRestored: true}, {calls: 1, steps: 4, isReserved: true, isListed: true, isRestored: true},
	{calls: 1, steps: 3, isMoved: true}, {calls: 1, steps: 2, isReserved: true, isMoved: true},
}

// holdsInAll is how often the journal is put on hold.
const holdsInAll = 2

// moves calls add with each change that may follow.
func (o *order) moves(of world, rule looser, add func(change func(*order))) {
	if int(o.now) < of.steps {
		add(func(n *order) { n.now++ })
	}
	for i := range of.calls {
		o.callMoves(i, rule, add)
	}
	for _, body := range []string{"", "b"} { // canceled, or called with another body
		if o.isForgotten() {
			break // a person asks the service first
		}
		add(func(n *order) {
			err := n.become(n.Void(n.other(body), n.decides(rule), n.time(n.now)))
			n.failed = n.failed || err == nil
			n.tell(err)
		})
	}
	if of.isReserved && !o.isForgotten() {
		for _, body := range []string{"a", "b"} {
			add(func(n *order) {
				era, isThere := n.Era, n.Exists()
				err := n.become(n.Reserve(n.other(body), n.hold, n.time(n.now)))
				if isThere && rule == "a reservation washes" {
					n.Era = n.hold.Era
				} else if isThere && n.Era != era {
					n.wrong = "a reservation washes"
				}
				n.pinned = n.pinned || body == "b" && err == nil
				n.tell(err)
			})
		}
	}
	if of.isListed {
		o.statementMoves(add)
	}
	if of.isRestored || of.isMoved {
		o.holdMoves(of, rule, add)
	}
	o.personMoves(rule, add)
}

// isForgotten reports whether a restore has forgotten the order altogether, and what became of it: that only
// a statement, or a person, can tell.
func (o *order) isForgotten() bool {
	isSent := func(c orderCall) bool { return c.phase != notBegun && c.request != dead }
	return o.restored && !o.Exists() && (o.failed || o.pinned || slices.ContainsFunc(o.calls[:], isSent))
}

// decides returns the hold under which a person decides.
func (o *order) decides(rule looser) Hold {
	hold := o.hold
	if rule == "a person decides in another database" {
		hold.Moved = ""
	}
	return hold
}

// holdMoves are those of holds and their ends, of planned moves and failovers, of a backup and its restore.
// Programs run on. A person releases what is forgotten altogether only once it is on record.
func (o *order) holdMoves(of world, rule looser, add func(func(*order))) {
	isOnHold := o.hold.By != ""
	if o.era < holdsInAll && of.isMoved {
		add(func(n *order) { n.holds("Ada", rule) })
	}
	if isOnHold && o.hold.Settled(o.time(o.now)) == nil && !o.isForgotten() {
		add(func(n *order) { n.hold.By, n.back, n.isMine, n.ended = "", 0, false, true })
	}
	isMoved := o.hold.Moved != ""
	if isMoved && (o.isMine && !o.ended || !o.isMine && rule == "a failover is called a move") {
		add(func(n *order) {
			n.hold = Hold{Since: n.hold.Since, Floor: n.hold.Since, Era: n.back}
			n.back, n.isMine, n.ended = 0, false, true
		})
	}
	if !isMoved && o.era < holdsInAll && of.isMoved { // all of it is there
		add(func(n *order) { n.finds(rule) })
	}
	switch {
	case !o.backedUp && !o.restored:
		add(func(n *order) { n.backup, n.backedUp, n.ended = n.state, true, false })
	case o.backedUp && o.backup.era < holdsInAll:
		add(func(n *order) {
			n.ended = n.ended || n.Record != n.backup.Record
			n.state, n.backup, n.backedUp, n.restored = n.backup, state{}, false, true
			n.finds(rule)
		})
	}
}

// finds is that the journal finds itself in another database: under a person's hold a person says why, or it
// puts itself on hold.
func (o *order) finds(rule looser) {
	isMine := o.hold.By != "" && o.hold.By != "the journal"
	if !isMine {
		o.holds("the journal", rule)
	}
	if isMine || rule == "a failover is called a move" {
		o.hold.Moved = "elsewhere"
	}
}

// holds puts the journal on hold.
func (o *order) holds(by string, rule looser) {
	floor := later(o.time(o.now+settleSteps), o.hold.Floor)
	if rule == "a hold without a floor" {
		floor = o.time(o.now)
	}
	o.isMine, o.back = by == "Ada" && o.hold.By == "", o.hold.Era
	if !o.isMine && rule != "a failover is called a move" {
		o.back = 0
	}
	o.era++
	o.hold = Hold{Since: o.time(o.now), Floor: floor, By: by, Era: o.era}
	if rule == "a hold begins no era" {
		o.hold.Era = 0
	}
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
		end := func(request int8, result cardwire.IntentResult) {
			add(func(n *order) { n.calls[i].phase, n.calls[i].request, n.calls[i].result = hasResult, request, result })
		}
		end(c.request, cardwire.IntentResult{})
		if c.request == executed {
			end(executed, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: callName(i)})
		}
		if c.request == onItsWay {
			end(dead, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true})
			end(dead, cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent})
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
	switch rule {
	case "closed is reopened":
		o.Closed = false
	case "reserved is forgotten":
		o.Reserved, o.BodySHA256 = false, "a"
	}
	hold := o.hold
	if rule == "a call begins on hold" {
		hold.By = ""
	}
	if err := o.become(o.Begin(o.intent(i), hold, o.time(o.now))); err != nil {
		o.calls[i] = orderCall{phase: over, request: dead}
		o.tell(err)
		return
	}
	o.calls[i].phase, o.begun[i] = inFlight, true
	if o.pinned {
		o.wrong = "sent with another body than was reserved"
	}
}

func (o *order) end(i int, rule looser) {
	c := &o.calls[i]
	c.phase = over
	if rule == "a late unknown frees what was closed" && c.result.Outcome == cardwire.OutcomeUnknown {
		o.denied[i], o.Closed = false, false
	}
	hold, isGone := o.hold, !o.begun[i]
	switch {
	case rule == "a refusal from an earlier era closes":
		hold, isGone = Hold{}, false
	case isGone && o.hold.By != "the journal":
		o.holds("the journal", rule)
		hold = o.hold
	}
	err := o.become(o.End(o.intent(i), c.result, o.denied[i], isGone, hold, o.time(o.now)))
	switch {
	case c.result.Outcome == cardwire.OutcomeExecuted:
		o.booked = true
	case err != nil:
		o.tell(err)
	case c.result.Final:
		o.failed = true
	}
}

func (o *order) personMoves(rule looser, add func(func(*order))) {
	if o.asks < asksInAll && !o.asked && o.In(o.hold).IsUnresolved() && !o.InProgress(o.time(o.now)) {
		add(func(n *order) {
			n.asks++
			n.asked, n.askedAt, n.askedOf, n.saidYes = true, n.now, n.Call, n.executions > 0
		})
	}
	if !o.asked {
		return
	}
	outcomes := []cardwire.Outcome{cardwire.OutcomeRefused, cardwire.OutcomeNotSent}
	switch {
	case o.saidYes:
		outcomes = []cardwire.Outcome{cardwire.OutcomeExecuted}
	case o.restored && o.failed:
		outcomes = outcomes[:1] // whoever told that it failed gives the order a new number
	}
	for _, outcome := range outcomes {
		add(func(n *order) { n.resolve(outcome, rule) })
	}
}

func (o *order) resolve(outcome cardwire.Outcome, rule looser) {
	o.asked = false
	i, found := cardwire.Intent{Call: o.askedOf}, Resolution{Outcome: outcome, By: "Ada", AsOf: o.time(o.askedAt)}
	switch rule {
	case "denied as of an earlier look":
		found.AsOf = o.time(o.now)
	case "a denial reaches a later call":
		if n := strings.Index("012", i.Call); n >= 0 && !found.AsOf.Before(o.intent(n).SettledBy) {
			i, found.AsOf = o.Intent, o.time(o.now)
		}
	}
	before := o.Record
	hold := o.decides(rule)
	if err := errors.Join(found.Validate(), o.become(o.Resolve(i, found, "", hold, o.time(o.now)))); err != nil {
		return
	}
	if n := strings.Index("012", i.Call); before != o.Record && outcome != cardwire.OutcomeExecuted && i.Call != "" {
		o.denied[n] = true
	}
	o.failed = o.failed || outcome == cardwire.OutcomeRefused
	o.booked = o.booked || outcome == cardwire.OutcomeExecuted
}

// search returns the first flaw that can be reached, and how many states it saw.
func search(of world, rule looser) (flaw string, states int) {
	seen := map[key]struct{}{}
	var o, next order
	for todo := []order{{}}; len(todo) > 0; {
		o = todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if flaw := o.flaw(); flaw != "" {
			return fmt.Sprintf("%s: %+v", flaw, o), len(seen)
		}
		own := o.key()
		o.moves(of, rule, func(change func(*order)) {
			next = o
			change(&next)
			k := next.key()
			if k == own {
				return
			}
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
	all := 0
	for _, of := range worlds {
		flaw, states := search(of, "")
		require.Empty(t, flaw)
		t.Logf("%+v: %d states", of, states)
		all += states
	}
	assert.Greater(t, all, 4_500_000)
}

func TestTheSearchFindsLooserRules(t *testing.T) {
	t.Parallel()
	for rule, of := range map[looser]world{
		"denied as of an earlier look": worlds[0], "closed is reopened": worlds[0],
		"a denial reaches a later call": worlds[0], "a late unknown frees what was closed": worlds[0],
		"reserved is forgotten":  worlds[1],
		"a hold without a floor": worlds[2], "a call begins on hold": worlds[2], "a hold begins no era": worlds[2],
		"a failover is called a move": worlds[4], "a refusal from an earlier era closes": worlds[2],
		"a reservation washes": worlds[3], "a person decides in another database": worlds[5],
	} {
		flaw, _ := search(of, rule)
		assert.NotEmpty(t, flaw, rule)
	}
}

// A reference is voided when that was said, and not when its last call ended.
func TestVoidIsTheLastChange(t *testing.T) {
	t.Parallel()
	ended := time.Now()
	r := Record{Intent: cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: "M-1"},
		Outcome: cardwire.OutcomeRefused, EndedAt: ended}
	want := r
	want.Closed, want.EndedAt = true, ended.Add(time.Hour)
	got, err := r.Void(cardwire.Intent{}, Hold{}, want.EndedAt)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// A wall clock that was set forward makes nobody believe a denial early.
func TestADenialWaitsForTheMonotonicClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := cardwire.Intent{Call: "0", SendBy: now, SettledBy: now.Add(time.Hour)}
	i.Reference = "M-1"
	r := Record{Intent: i}
	denial := Resolution{Outcome: cardwire.OutcomeNotSent, By: "Ada", AsOf: now.Add(2 * time.Hour)}
	denial.AsOf = denial.AsOf.Round(0) // by the wall clock
	resolve := func(r Record, now time.Time) error {
		_, err := r.Resolve(i, denial, "", Hold{}, now)
		return err
	}
	require.ErrorContains(t, resolve(r, now), "the service may still execute it until")
	ahead := r
	ahead.Time, ahead.SettledBy = now.Add(time.Hour), now.Add(3*time.Hour)
	require.ErrorContains(t, resolve(ahead, now), "the clock was ahead when the call began")
	require.NoError(t, resolve(r, now.Add(2*time.Hour)))
}

// fill sends n references, which end as r; nil: they do not end.
func fill(t *testing.T, j *Memory, name string, n int, r *cardwire.IntentResult) {
	t.Helper()
	for k := range n {
		i := cardwire.Intent{
			Call: strings.Clone(rand.Text()[:16]), Op: "CreateTransfer", Reference: fmt.Sprintf("%s-%026d", name, k),
			BodySHA256: rand.Text() + rand.Text() + rand.Text()[:12], Amount: decimal.New(int64(k), -2),
			Currency: "EUR",
			Service:  "https://api.example.com/api/v1", Time: time.Now(),
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
func begin(t *testing.T, j *Memory, name string, k int) error {
	t.Helper()
	return j.Begin(t.Context(), cardwire.Intent{Call: "late", Op: "CreateTransfer",
		Reference: fmt.Sprintf("%s-%026d", name, k)})
}

func TestAFullMemory(t *testing.T) {
	before := heap()
	j := NewMemory()
	fill(t, j, "first", 10, &cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted})
	fill(t, j, "executed", maxEnded/2, &cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted})
	fill(t, j, "closed", maxEnded/2, &cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true})
	fill(t, j, "outage", 2*maxFree, &cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent})
	fill(t, j, "unresolved", maxUnresolved-2, nil)
	last := cardwire.Intent{Call: "a", Op: cardwire.OpCreateTransfer, Reference: "last"}
	require.NoError(t, j.Begin(t.Context(), last))
	require.NoError(t, begin(t, j, "first", 0), "what is older than the last 65,536 is forgotten")
	for _, name := range []string{"executed", "closed", "unresolved"} {
		require.ErrorIs(t, begin(t, j, name, 0), cardwire.ErrDuplicateIntent, name)
	}
	assert.Less(t, (heap()-before)>>20, uint64(80), "MiB")

	err := begin(t, j, "next", 0)
	require.ErrorContains(t, err, "65,536 references are unresolved")
	assert.NotErrorIs(t, err, cardwire.ErrDuplicateIntent)
	require.ErrorIs(t, begin(t, j, "executed", 0), cardwire.ErrDuplicateIntent, "what is known is said all the same")
	require.NoError(t, j.Begin(t.Context(), last), "the same call has begun already")
	i := cardwire.Intent{Call: "late", Op: "CreateTransfer", Reference: fmt.Sprintf("first-%026d", 0)}
	require.NoError(t, j.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}))
	require.NoError(t, begin(t, j, "next", 0), "one was resolved")
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
