package cardwiretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// TestJournal compares a journal with the rules of [journal.Record], so that nothing is sent
// twice: it makes the same steps, drawn from fixed seeds, with the journal and with the rules. It is
// for authors of journals. The journal that open returns must be empty. Methods like those of
// [journal.Memory] and of sqljournal.Journal are tested if it has them: Resolve; Reserve;
// Hold, Held and Release; and a Record(ctx, op, reference) that returns what is on record.
//
// TestJournal cannot test what a journal loses when its process or its database dies:
// the intent must be on durable storage before Begin returns.
func TestJournal(t *testing.T, open func(t *testing.T) cardwire.Journal) {
	t.Helper()
	if flaw := flawOf(t, open(t)); flaw != "" {
		t.Error(flaw)
	}
}

// The optional methods of a journal.
type (
	reserver interface {
		Reserve(ctx context.Context, i cardwire.Intent) error
	}
	resolver interface {
		Resolve(ctx context.Context, i cardwire.Intent, found journal.Resolution) error
	}
	holder interface {
		Hold(ctx context.Context, by, why string, atLeast time.Duration) error
		Held(ctx context.Context) (journal.Hold, error)
		Release(ctx context.Context, by, why string) error
	}
	recorder interface {
		Record(ctx context.Context, op cardwire.Op, reference string) (journal.Record, error)
	}
)

// The lengths of the test.
const (
	historiesInAll = 100
	stepsInAll     = 40
)

// flawOf returns the first difference between a journal and the rules; "": none.
func flawOf(t *testing.T, tested cardwire.Journal) (flaw string) {
	t.Helper()
	j := &journalTest{
		journal: tested, now: time.Now(),
		records: map[recordKey]modelRecord{}, ops: map[cardwire.Op]bool{},
	}
	i := j.intent("a", 0)
	i.Reference = "first"
	if err := tested.Begin(t.Context(), i); err != nil { // from here on it belongs to one service
		return "Begin with an empty journal: " + err.Error()
	}
	for seed := range uint64(historiesInAll) {
		j.seed, j.luck, j.told = seed, rand.New(rand.NewPCG(seed, 7)), nil
		for range stepsInAll {
			if flaw := j.step(t.Context()); flaw != "" {
				return fmt.Sprintf("seed %d: %s\nthe steps were\n%s", seed, flaw, strings.Join(j.told, "\n"))
			}
		}
	}
	return j.atOnce(t.Context())
}

// journalTest is a journal, and what must be on record in it.
type journalTest struct {
	journal cardwire.Journal
	records map[recordKey]modelRecord
	ops     map[cardwire.Op]bool // those that are on record
	hold    journal.Hold

	seed uint64
	luck *rand.Rand
	odd  string    // what is unusual about the step; "": nothing
	now  time.Time // for the rules
	told []string
}

type recordKey struct {
	op        cardwire.Op
	reference string
}

func keyOf(i cardwire.Intent) recordKey { return recordKey{i.Op, i.Reference} }

type modelRecord struct {
	journal.Record

	begun  map[string]bool // calls
	denied map[string]bool // calls of which a person said that they did not happen
}

// with returns a copy of a set of calls that has one more.
func with(calls map[string]bool, call string) map[string]bool {
	more := map[string]bool{call: true}
	maps.Copy(more, calls)
	return more
}

// oddities are what a step may have one of.
var oddities = []string{
	"canceled", "nobody", "another body", "no body", "another service", "no service", "another account", "no operation",
	"no call", "unlisted", "mistyped", "no time", "no outcome",
}

// one draws one of the values.
func one[T any](luck *rand.Rand, values ...T) T { return values[luck.IntN(len(values))] }

// step draws a step, makes it with the journal and with the rules, and returns the difference.
func (j *journalTest) step(ctx context.Context) (flaw string) {
	j.now = time.Now()
	what := one(j.luck, "begin", "begin", "begin", "end", "end", "end", "void", "reserve", "resolve", "resolve")
	j.odd = ""
	if j.luck.IntN(4) == 0 {
		j.odd = one(j.luck, oddities...)
	}
	i := j.draw(what)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if j.odd == "canceled" {
		cancel()
	}
	by := "Ada"
	if j.odd == "nobody" {
		by = ""
	}
	var got, want error
	next := j.records[keyOf(i)]
	h, isHolder := j.journal.(holder)
	switch {
	case isHolder && j.luck.IntN(10) == 0:
		return j.holds(context.WithoutCancel(ctx), h)
	case what == "begin":
		got = j.journal.Begin(ctx, i)
		if want = j.refusal(i, "somebody"); want == nil && i.Call == "" {
			want = errInvalid
		}
		if want == nil {
			next.Record, want = next.Begin(i, j.hold, j.now)
		}
		if want == nil {
			next.begun = with(next.begun, i.Call)
		}
	case what == "end":
		if !next.begun[i.Call] { // what never began has no end
			return ""
		}
		r := j.result(i)
		what += " as " + r.Outcome.String()
		got = j.journal.End(ctx, i, r)
		next.Record, want = next.End(i, r, next.denied[i.Call], false, j.hold, j.now)
	case what == "void":
		got = j.journal.Void(ctx, i, by, "canceled")
		if want = cmp.Or(j.refusal(i, by), j.unknownOp(i)); want == nil {
			next.Record, want = next.Void(i, j.hold, j.now)
		}
	case what == "reserve":
		r, ok := j.journal.(reserver)
		if !ok {
			return ""
		}
		got = r.Reserve(ctx, i)
		if want = j.refusal(i, "somebody"); want == nil {
			next.Record, want = next.Reserve(i, j.hold, j.now)
		}
	default:
		r, ok := j.journal.(resolver)
		if !ok {
			return ""
		}
		found := j.found(i, by)
		what += fmt.Sprintf(" as %s %s, %q, as of %s", found.Outcome, found.ServiceID, found.By, found.AsOf.Sub(j.now))
		got = r.Resolve(ctx, i, found)
		want = cmp.Or(found.Validate(), journal.BelongsTo(i, usualService, ""), j.unknownOp(i))
		if want == nil {
			next, want = j.resolve(next, i, found)
		}
	}
	if j.odd == "canceled" && (want == nil || kindOf(got) != kindOf(want)) {
		want = context.Canceled
	}
	step := fmt.Sprintf("%s: call %q, %s %q, body %.1s, service %s, account %q, begun %s ago", what, i.Call, i.Op, i.Reference,
		i.BodySHA256, i.Service, i.Account, j.now.Sub(i.Time))
	return j.compare(ctx, step, i, next, got, want)
}

// compare returns the difference between the journal and the rules after a step.
func (j *journalTest) compare(
	ctx context.Context, step string, i cardwire.Intent, next modelRecord, got, want error,
) string {
	j.told = append(j.told, step+": "+kindOf(want))
	if kindOf(got) != kindOf(want) {
		return fmt.Sprintf("the last step returned %q (%v), want %q (%v)", kindOf(got), got, kindOf(want), want)
	}
	if !errors.Is(want, context.Canceled) && next.Exists() {
		j.records[keyOf(i)], j.ops[i.Op] = next, true
	}
	stored, ok := j.journal.(recorder)
	if !ok || !i.Op.IsRecorded() && !j.ops[i.Op] {
		return ""
	}
	record, err := stored.Record(context.WithoutCancel(ctx), i.Op, i.Reference)
	expected := j.records[keyOf(i)].In(j.hold)
	if err != nil || !same(record, expected) {
		return fmt.Sprintf("after the last step %+v is on record (%v), want %+v", record, err, expected)
	}
	return ""
}

// same compares two records. Of times, and of the service of a late result, a journal may keep others; what an era
// means was compared before.
func same(got, want journal.Record) bool {
	for _, times := range [][2]*time.Time{
		{&got.Time, &want.Time}, {&got.SendBy, &want.SendBy}, {&got.SettledBy, &want.SettledBy}, {&got.EndedAt, &want.EndedAt},
	} {
		if times[0].IsZero() != times[1].IsZero() || times[0].Sub(*times[1]).Abs() > 10*time.Minute {
			return false
		}
		*times[0] = *times[1]
	}
	got.Closed, want.Closed = got.IsClosed(), want.IsClosed()
	got.Service, got.Account, got.Era = want.Service, want.Account, want.Era
	return got == want
}

var errInvalid = errors.New("cardwiretest: invalid")

// refusal is what every method but End says of an intent before it looks at the record.
func (j *journalTest) refusal(i cardwire.Intent, by string) error {
	if i.Op == "" || by == "" {
		return errInvalid
	}
	return journal.BelongsTo(i, usualService, "")
}

// unknownOp refuses a mistyped Op of a person.
func (j *journalTest) unknownOp(i cardwire.Intent) error {
	if i.Call == "" && !i.Op.IsRecorded() && !j.ops[i.Op] {
		return errInvalid
	}
	return nil
}

func (j *journalTest) resolve(r modelRecord, i cardwire.Intent, found journal.Resolution) (modelRecord, error) {
	other := ""
	for key, o := range j.records {
		if o.Outcome == cardwire.OutcomeExecuted && found.ServiceID != "" && o.ServiceID == found.ServiceID &&
			key.op == i.Op && key.reference != i.Reference {
			other = key.reference
		}
	}
	next, err := r.Resolve(i, found, other, j.hold, j.now)
	if next != r.Record && found.Outcome != cardwire.OutcomeExecuted {
		r.denied = with(r.denied, i.Call)
	}
	r.Record = next
	return r, err
}

// holds puts the journal on hold, or releases it, which it does not accept before the floor.
func (j *journalTest) holds(ctx context.Context, h holder) string {
	what, got, want := "hold", error(nil), error(nil)
	if j.hold.By != "" && j.luck.IntN(2) == 0 {
		what, got = "release", h.Release(ctx, "Ada", "")
		if j.hold.Floor.After(j.now) {
			want = errInvalid
		}
	} else {
		got = h.Hold(ctx, "Ada", "", 0)
	}
	j.told = append(j.told, what+": "+kindOf(want))
	if kindOf(got) != kindOf(want) {
		return fmt.Sprintf("%s returned %q (%v), want %q", what, kindOf(got), got, kindOf(want))
	}
	held, err := h.Held(ctx)
	if err != nil || want == nil && (held.By != "") != (what == "hold") {
		return fmt.Sprintf("after %s Held returned %+v, %v", what, held, err)
	}
	if j.hold.By = held.By; held.By != "" { // else the last floor counts
		j.hold = held
	}
	return ""
}

// The services and bodies of intents.
const (
	usualService = "https://api.example.com/api/v1"
	otherService = "https://api.example.org/api/v1"

	usualBody = "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
	otherBody = "0d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
)

// intent returns an intent as the client creates it. One that is new may still be sent; one that is
// two hours old may still be executed; one that is five hours old is settled.
func (j *journalTest) intent(call string, age time.Duration) cardwire.Intent {
	began := j.now.Add(-age)
	return cardwire.Intent{
		Call: fmt.Sprintf("%d %s", j.seed, call), Op: cardwire.OpCreateTransfer, Reference: fmt.Sprintf("M-%d", j.seed),
		BodySHA256: usualBody, Service: usualService, Time: began,
		SendBy: began.Add(time.Hour), SettledBy: began.Add(3 * time.Hour),
	}
}

// draw returns the intent of a step. Most are of one reference.
func (j *journalTest) draw(what string) cardwire.Intent {
	i := j.intent(one(j.luck, "a", "b", "c"), one[time.Duration](j.luck, 0, 2, 5, 5)*time.Hour)
	if j.luck.IntN(6) == 0 { // references are compared by operation and byte
		i.Reference = fmt.Sprintf(one(j.luck, "m-%d", "M-%d0", "№ %d'; --"), j.seed)
	}
	if what == "void" {
		i.BodySHA256 = one(j.luck, i.BodySHA256, i.BodySHA256, "")
	}
	isPersons := what == "void" || what == "resolve"
	if isPersons && j.luck.IntN(3) == 0 {
		i.Call = ""
	}
	switch j.odd {
	case "another body":
		i.BodySHA256 = otherBody
	case "no body":
		i.BodySHA256 = ""
	case "another service":
		i.Service = otherService
	case "no service":
		i.Service = ""
	case "another account":
		i.Account = "another one"
	case "no operation":
		if what == "begin" || what == "void" || what == "reserve" {
			i.Op = ""
		}
	case "no call":
		if what == "begin" {
			i.Call = ""
		}
	case "unlisted":
		i.Op = "CloseCard"
	case "mistyped":
		if isPersons {
			i.Op, i.Call = "transfer", ""
		}
	}
	return i
}

// id is the service's number of a call. Most are the only one with it.
func (j *journalTest) id(i cardwire.Intent) string {
	return one(j.luck, "T-"+i.Call, "T-"+i.Call, fmt.Sprintf("T-%d", j.seed), "")
}

func (j *journalTest) result(i cardwire.Intent) cardwire.IntentResult {
	r := one(j.luck,
		cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, Status: "wait_process"},
		cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true},
		cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}, cardwire.IntentResult{})
	if r.Outcome == cardwire.OutcomeExecuted {
		r.ServiceID = j.id(i)
	}
	return r
}

func (j *journalTest) found(i cardwire.Intent, by string) journal.Resolution {
	found := journal.Resolution{
		Outcome: one(j.luck, cardwire.OutcomeExecuted, cardwire.OutcomeRefused, cardwire.OutcomeNotSent),
		By:      by, Note: "ticket 7", AsOf: j.now.Add(one[time.Duration](j.luck, 0, 0, -30, 30) * time.Minute),
	}
	switch j.odd {
	case "no time":
		found.AsOf = time.Time{}
	case "no outcome":
		found.Outcome = cardwire.OutcomeUnknown
	}
	if found.Outcome == cardwire.OutcomeExecuted {
		found.ServiceID = j.id(i)
	}
	return found
}

// kindOf puts what a journal returned into words.
func kindOf(err error) string {
	d, known := errors.AsType[*cardwire.DuplicateIntent](err)
	var words []string
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case strings.Contains(err.Error(), usualService) && strings.Contains(err.Error(), otherService):
		return "another service"
	case strings.Contains(err.Error(), "another one"):
		return "another account"
	case known && !errors.Is(err, cardwire.ErrDuplicateIntent):
		return "a DuplicateIntent that is no ErrDuplicateIntent"
	case known && (d.InProgress != (d.Remaining > 0) || d.InProgress && d.Outcome != cardwire.OutcomeUnknown):
		return "a DuplicateIntent that contradicts itself"
	case known && d.Reserved:
		words = []string{"reserved"}
	case known && d.InProgress:
		words = []string{"in progress"}
	case known && d.Outcome == cardwire.OutcomeExecuted:
		words = []string{"executed " + d.ServiceID}
	case known:
		words = []string{d.Outcome.String()}
	}
	if errors.Is(err, cardwire.ErrOtherBody) {
		words = append(words, "another body")
	}
	if len(words) == 0 {
		return "error"
	}
	return strings.Join(words, ", ")
}

// atOnce begins a reference in 64 goroutines, of which one is granted.
func (j *journalTest) atOnce(ctx context.Context) string {
	if j.hold.By != "" {
		return ""
	}
	var group sync.WaitGroup
	var got [64]string
	start := make(chan struct{})
	for n := range got {
		i := j.intent(fmt.Sprint("at once ", n), 0)
		i.Reference = "at once"
		group.Go(func() {
			<-start
			got[n] = kindOf(j.journal.Begin(ctx, i))
		})
	}
	close(start)
	group.Wait()
	slices.Sort(got[:])
	if want := append(slices.Repeat([]string{"in progress"}, len(got)-1), "ok"); !slices.Equal(got[:], want) {
		return fmt.Sprintf("64 Begins of one reference at once returned %q, want ok once, and in progress", got)
	}
	return ""
}
