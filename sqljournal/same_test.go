package sqljournal_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

var histories = flag.Int("compared", 500, "how many histories TestBothJournalsSayTheSame makes")

// Whatever happens to two references, the journal in memory and this one say the same of
// them: in errors, and in what is unresolved.
func TestBothJournalsSayTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := place{"sqlite", "file::memory:", sqljournal.SQLite, sqljournal.DefaultTable}
		db, inSQL := open(t, at)
		db.SetMaxOpenConns(1) // each has a database of its own
		require.NoError(t, inSQL.Migrate(t.Context()))
		for seed := range *histories {
			empty(t, db, at)
			h := &twoJournals{T: t, rand: rand.New(rand.NewPCG(uint64(seed), 1)), inSQL: inSQL,
				calls: map[string]cardwire.Intent{}, last: map[string]string{}, over: map[string]bool{}}
			h.repeatable = h.chance(4)
			for range 24 {
				h.step()
			}
			h.compareUnresolved()
		}
	})
}

// twoJournals is what happens to two references of one operation.
type twoJournals struct {
	*testing.T

	rand       *rand.Rand
	inMemory   cardwire.MemoryJournal
	inSQL      *sqljournal.Journal
	repeatable bool
	calls      map[string]cardwire.Intent
	last       map[string]string // the call of each reference that was begun last
	over       map[string]bool   // the calls of which something was said
	steps      []string
}

func (h *twoJournals) chance(of int) bool { return h.rand.IntN(of) == 0 }

func one[T any](h *twoJournals, of ...T) T { return of[h.rand.IntN(len(of))] }

// step does the same to both journals, and compares what they say.
func (h *twoJournals) step() {
	reference := one(h, "M-1", "M-2")
	i := h.call(reference, one(h, "a", "b", "c", "last", "last"))
	switch h.rand.IntN(8) {
	case 0, 1:
		h.begin(i)
	case 2, 3:
		h.end(i)
	case 4:
		h.void(i)
	case 5, 6:
		h.resolve(i)
	default:
		wait := one(h, 30*time.Second, time.Minute, 6*time.Minute)
		h.steps = append(h.steps, "wait "+wait.String())
		time.Sleep(wait)
		h.compareUnresolved()
	}
}

// call returns a call of a reference, which is new when it is first returned. Some are of
// another service.
func (h *twoJournals) call(reference, name string) cardwire.Intent {
	if name == "last" {
		name = cmp.Or(h.last[reference], "a")
	}
	name = reference + " " + name
	if _, ok := h.calls[name]; !ok {
		i := intent(reference)
		i.Call, i.BodySHA256, i.Repeatable = name, one(h, "00", "00", "11"), h.repeatable
		i.SettledBy = i.SendBy.Add(one(h, 0, time.Minute, 4*time.Minute))
		h.calls[name] = i
	}
	i := h.calls[name]
	if h.chance(16) {
		i.Service = "https://other.example.com/api/v1"
	}
	return i
}

// both compares what the journals return.
func (h *twoJournals) both(step string, call func(cardwire.Journal) error) {
	h.Helper()
	inMemory, inSQL := kind(call(&h.inMemory)), kind(call(h.inSQL))
	h.steps = append(h.steps, step+" = "+inSQL)
	if inMemory != inSQL {
		h.Fatalf("the journal in memory returns %q after\n%s", inMemory, strings.Join(h.steps, "\n"))
	}
}

func (h *twoJournals) begin(i cardwire.Intent) {
	_, name, _ := strings.Cut(i.Call, " ")
	if name <= h.last[i.Reference] || h.over[i.Call] {
		return // a call begins before others do, and before it is over
	}
	h.last[i.Reference] = name
	for range one(h, 1, 1, 2) { // a driver may repeat it
		h.both("begin "+describe(i), func(j cardwire.Journal) error { return j.Begin(h.Context(), i) })
	}
}

func (h *twoJournals) end(i cardwire.Intent) {
	r := cardwire.IntentResult{Outcome: h.outcome(), Final: h.chance(2)}
	told := i.Call + " " + r.Outcome.String()
	frees := !r.Final && (r.Outcome == cardwire.OutcomeRefused || r.Outcome == cardwire.OutcomeNotSent)
	if frees && h.over[told] {
		return // no response of the journal in memory is lost, so that it need not know what was told again
	}
	h.over[i.Call], h.over[told] = true, true
	if r.Outcome == cardwire.OutcomeExecuted {
		r.ServiceID = one(h, "", "T-1", "T-2", "T-3")
	}
	step := fmt.Sprintf("end %s %+v", describe(i), r)
	h.both(step, func(j cardwire.Journal) error { return j.End(h.Context(), i, r) })
}

func (h *twoJournals) outcome() cardwire.Outcome {
	return one(h, cardwire.OutcomeUnknown, cardwire.OutcomeExecuted, cardwire.OutcomeRefused, cardwire.OutcomeNotSent)
}

func (h *twoJournals) void(i cardwire.Intent) {
	i.BodySHA256 = one(h, i.BodySHA256, "22", "")
	i.Repeatable = i.Repeatable && h.chance(2)
	i.Op = one(h, i.Op, i.Op, i.Op, "")
	by := one(h, "Ada", "Ada", "Ada", "")
	step := "void by " + by + " " + describe(i)
	h.both(step, func(j cardwire.Journal) error { return j.Void(h.Context(), i, by, "canceled") })
}

func (h *twoJournals) resolve(i cardwire.Intent) {
	h.over[i.Call] = true
	ago := one(h, 0, 0, 0, 0, time.Minute, -time.Second)
	r := cardwire.Resolution{Outcome: h.outcome(), By: "Ada", AsOf: time.Now().Add(-ago)}
	if r.Outcome == cardwire.OutcomeExecuted {
		r.ServiceID = one(h, "", "T-1", "T-2")
	}
	h.both(fmt.Sprintf("resolve %s %+v", describe(i), r), func(j cardwire.Journal) error {
		return j.(interface {
			Resolve(context.Context, cardwire.Intent, cardwire.Resolution) error
		}).Resolve(h.Context(), i, r)
	})
}

func (h *twoJournals) compareUnresolved() {
	h.Helper()
	var inMemory, inSQL []string
	for _, i := range h.inMemory.Unresolved() {
		inMemory = append(inMemory, describe(i))
	}
	for e, err := range h.inSQL.Unresolved(h.Context()) {
		require.NoError(h, err)
		inSQL = append(inSQL, describe(e.Intent))
	}
	slices.Sort(inMemory)
	slices.Sort(inSQL)
	if !slices.Equal(inMemory, inSQL) {
		h.Fatalf("in memory %q are unresolved, here %q, after\n%s", inMemory, inSQL, strings.Join(h.steps, "\n"))
	}
}

// describe is what matters of an intent. Its service is the journal's.
func describe(i cardwire.Intent) string {
	const clock = "04:05"
	return fmt.Sprintf("%s %s %s %v %s %s %s", i.Reference, i.Call, cmp.Or(i.BodySHA256, "-"), i.Repeatable,
		i.Time.UTC().Format(clock), i.SendBy.UTC().Format(clock), i.SettledBy.UTC().Format(clock))
}

// kind is word, where the words of an error that is no *cardwire.DuplicateIntent do not
// matter.
func kind(err error) string {
	d, known := errors.AsType[*cardwire.DuplicateIntent](err)
	said := "an error"
	switch {
	case err == nil:
		return "ok"
	case known:
		said = fmt.Sprint(word(err), " ", d.Remaining)
	case errors.Is(err, cardwire.ErrInvalidParams):
		said = "invalid"
	}
	if errors.Is(err, cardwire.ErrOtherBody) {
		said += ", another body"
	}
	return said
}
