package cardwiretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
)

// SimulatedJournal is the [cardwire.Journal] of a [World], as one program has it.
type SimulatedJournal struct{ w *World }

// errJournalDown is what a journal returns that fails.
var errJournalDown = errors.New("cardwiretest: the journal is down")

// durableJournal outlives the programs.
type durableJournal struct {
	w       *World
	open    func(*testing.T) cardwire.Journal
	journal cardwire.Journal
	forgets time.Duration
	calls   map[string]cardwire.Intent // the last of each reference
	log     []entry
}

// entry is a change that the journal accepted.
type entry struct {
	at     time.Time
	change func(cardwire.Journal)
}

// Begin records that a call is about to be sent.
func (j *SimulatedJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	return j.do(ctx, "begin", i, func(ctx context.Context, journal cardwire.Journal) error {
		err := journal.Begin(ctx, i)
		if err == nil {
			j.w.inner.durable.remember(i)
		}
		return err
	})
}

// End records how a call ended.
func (j *SimulatedJournal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	return j.do(ctx, "end as "+r.Outcome.String(), i, func(ctx context.Context, journal cardwire.Journal) error {
		return journal.End(ctx, i, r)
	})
}

// Void closes a reference of which nothing happened.
func (j *SimulatedJournal) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	return j.do(ctx, "void", i, func(ctx context.Context, journal cardwire.Journal) error {
		return journal.Void(ctx, i, by, note)
	})
}

// Resolve records what a person found out about a call, in a journal that can.
func (j *SimulatedJournal) Resolve(ctx context.Context, i cardwire.Intent, found cardwire.Resolution) error {
	return j.do(ctx, "resolve as "+found.Outcome.String(), i, func(ctx context.Context, journal cardwire.Journal) error {
		r, ok := journal.(resolver)
		if !ok {
			return errors.New("cardwiretest: the journal has no Resolve")
		}
		return r.Resolve(ctx, i, found)
	})
}

// Last returns the intent that was last begun under a reference, as a look into the
// journal would.
func (j *SimulatedJournal) Last(reference string) (i cardwire.Intent, found bool) {
	i, found = j.w.inner.durable.calls[reference]
	return i, found
}

// do waits for its turn, and fails before or after the change at times.
func (j *SimulatedJournal) do(ctx context.Context, what string, i cardwire.Intent, f func(context.Context, cardwire.Journal) error) error {
	if err := j.w.wait("journal: " + what + " " + i.Reference); err != nil {
		return err
	}
	w, d := j.w.inner, j.w.inner.durable
	luck := w.luck("journal " + i.Reference)
	fate := luck.IntN(20)
	if w.calm {
		fate = 19
	}
	if fate == 0 {
		w.tell(i.Reference, "%s: journal: %s: it is down, and nothing is recorded", j.w.own.name, what)
		return errJournalDown
	}
	err := f(ctx, d.journal)
	if err == nil {
		d.log = append(d.log, entry{time.Now(), func(journal cardwire.Journal) { _ = f(context.WithoutCancel(ctx), journal) }})
	}
	if fate == 1 {
		w.tell(i.Reference, "%s: journal: %s: it is recorded, and the response is lost", j.w.own.name, what)
		return errJournalDown
	}
	w.tell(i.Reference, "%s: journal: %s: %s", j.w.own.name, what, kindOf(err))
	return err
}

func (d *durableJournal) remember(i cardwire.Intent) {
	if d.calls == nil {
		d.calls = map[string]cardwire.Intent{}
	}
	d.calls[i.Reference] = i
}

// planJournal draws what happens to the journal from outside: it forgets, if the test
// asks for that, and a program of another service finds it.
func (w *World) planJournal() {
	luck := w.luck("journal")
	if w.durable.forgets > 0 {
		time.AfterFunc(time.Duration(luck.Int64N(int64(stormTime))), func() {
			if w.wait("the journal forgets") == nil {
				w.durable.forget(time.Duration(luck.Int64N(int64(w.durable.forgets))))
			}
		})
	}
	if luck.IntN(4) != 0 {
		return
	}
	o := w.orders[luck.IntN(len(w.orders))]
	time.AfterFunc(time.Duration(luck.Int64N(int64(stormTime))), func() {
		if w.wait("another service") == nil {
			w.durable.usedByAnother(o.params.MerchantOrderNo)
		}
	})
}

// forget takes the journal back to what it was d ago.
func (d *durableJournal) forget(lost time.Duration) {
	d.journal = d.open(d.w.t)
	for _, e := range d.log {
		if time.Since(e.at) >= lost {
			e.change(d.journal)
		}
	}
	for _, o := range d.w.orders {
		d.w.tell(o.params.MerchantOrderNo, "journal: its last %s are lost", lost.Round(time.Second))
	}
}

// usedByAnother is a program of another service with the same order number.
func (d *durableJournal) usedByAnother(number string) {
	if len(d.calls) == 0 {
		return // the journal would be the other one's
	}
	now := time.Now()
	i := cardwire.Intent{
		Call: "another", Op: "CreateTransfer", Reference: number, Service: "https://api.example.org/api/v1",
		Time: now, SendBy: now.Add(callTimeout), SettledBy: now.Add(callTimeout + lateForFake),
	}
	err := d.journal.Begin(d.w.t.Context(), i)
	if err == nil {
		err = d.journal.End(d.w.t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "other-1"})
	}
	d.w.tell(number, "another service has an order with this number: journal: %s", kindOf(err))
}
