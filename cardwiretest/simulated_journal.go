package cardwiretest

import (
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// SimulatedJournal is the [cardwire.Journal] of a [World], as one program has it.
type SimulatedJournal struct{ w *World }

// errJournalDown is the error of a journal that fails.
var errJournalDown = errors.New("cardwiretest: the journal is down")

// durableJournal outlives the programs.
type durableJournal struct {
	*simulated
	*simulation

	journal cardwire.Journal
	calls   map[string]cardwire.Intent // the last of each reference
	log     []entry
}

// entry is a change that the journal accepted.
type entry struct {
	at     time.Time
	change change
}

type change func(context.Context, cardwire.Journal) error

// Begin records that a call is about to be sent.
func (j *SimulatedJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	return j.do(ctx, "begin", i, func(ctx context.Context, journal cardwire.Journal) error {
		err := journal.Begin(ctx, i)
		if err == nil {
			j.w.journal.calls[i.Reference] = i
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

// Void closes a reference under which nothing was executed.
func (j *SimulatedJournal) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	return j.do(ctx, "void", i, func(ctx context.Context, journal cardwire.Journal) error {
		return journal.Void(ctx, i, by, note)
	})
}

// Resolve records what a person found out about a call, if the journal can do that.
func (j *SimulatedJournal) Resolve(ctx context.Context, i cardwire.Intent, found journal.Resolution) error {
	what := "resolve as " + found.Outcome.String()
	return j.do(ctx, what, i, func(ctx context.Context, journal cardwire.Journal) error {
		r, ok := journal.(resolver)
		if !ok {
			return errors.New("cardwiretest: the journal has no Resolve")
		}
		return r.Resolve(ctx, i, found)
	})
}

// Last returns the intent that was last begun under a reference, as a lookup in the journal
// would.
func (j *SimulatedJournal) Last(reference string) (i cardwire.Intent, found bool) {
	i, found = j.w.journal.calls[reference]
	return i, found
}

// do waits for its turn, and sometimes fails before or after the change.
func (j *SimulatedJournal) do(ctx context.Context, what string, i cardwire.Intent, f change) error {
	d, name := j.w.journal, j.w.own.name
	if err := d.wait(j.w.own, "journal: "+what+" "+i.Reference); err != nil {
		return err
	}
	fate := d.luck("journal " + i.Reference).IntN(20)
	if fate == 0 && !d.calm {
		d.tell(i.Reference, "%s: journal: %s: it is down, and nothing is recorded", name, what)
		return errJournalDown
	}
	err := f(ctx, d.journal)
	if err == nil {
		d.log = append(d.log, entry{time.Now(), f})
	}
	if fate == 1 && !d.calm {
		d.tell(i.Reference, "%s: journal: %s: it is recorded, and the response is lost", name, what)
		return errJournalDown
	}
	d.tell(i.Reference, "%s: journal: %s: %s", name, what, kindOf(err))
	return err
}

// plan draws what happens to the journal from outside: it forgets, if the test asks for
// that, and a program for another service uses it.
func (d *durableJournal) plan() {
	luck := d.luck("journal")
	later := func(name string, f func()) {
		time.AfterFunc(upTo(luck, stormTime), func() {
			if d.wait(nil, name) == nil {
				f()
			}
		})
	}
	if d.forgets > 0 {
		lost := upTo(luck, d.forgets)
		later("the journal forgets", func() { d.forget(lost) })
	}
	if luck.IntN(4) == 0 {
		o := d.orders[luck.IntN(len(d.orders))]
		later("another service", func() { d.usedByAnother(o.number) })
	}
}

// forget takes the journal back to what it was.
func (d *durableJournal) forget(lost time.Duration) {
	d.journal = d.open(d.t)
	for _, e := range d.log {
		if time.Since(e.at) >= lost {
			_ = e.change(d.t.Context(), d.journal)
		}
	}
	for _, o := range d.orders {
		d.tell(o.number, "journal: its last %s are lost", lost.Round(time.Second))
	}
}

// usedByAnother uses the journal as a program for another service does, with the same order number.
func (d *durableJournal) usedByAnother(number string) {
	if len(d.calls) == 0 {
		return // the journal would be the other one's
	}
	now := time.Now()
	i := cardwire.Intent{
		Call: "another", Op: cardwire.OpCreateTransfer, Reference: number, Service: otherService,
		Time: now, SendBy: now.Add(callTimeout), SettledBy: now.Add(time.Hour),
	}
	err := d.journal.Begin(d.t.Context(), i)
	if err == nil {
		executed := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "other-1"}
		err = d.journal.End(d.t.Context(), i, executed)
	}
	d.tell(number, "another service has an order with this number: journal: %s", kindOf(err))
}
