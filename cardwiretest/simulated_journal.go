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

// Resolve records what a person found out about a call, if the journal can do that. If i has no Call,
// it is about the last one of its reference, which a person reads in the journal.
func (j *SimulatedJournal) Resolve(ctx context.Context, i cardwire.Intent, found journal.Resolution) error {
	j.w.mu.Lock()
	if last, begun := j.w.journal.calls[i.Reference]; begun && i.Call == "" {
		i = last
	}
	j.w.mu.Unlock()
	what := "resolve as " + found.Outcome.String()
	return j.do(ctx, what, i, func(ctx context.Context, journal cardwire.Journal) error {
		r, ok := journal.(resolver)
		if !ok {
			return errors.New("cardwiretest: the journal has no Resolve")
		}
		return r.Resolve(ctx, i, found)
	})
}

// do waits for its turn, and sometimes fails before or after the change.
func (j *SimulatedJournal) do(ctx context.Context, what string, i cardwire.Intent, f change) error {
	s, name := j.w.simulated, j.w.own.name
	if err := s.wait(j.w.own, "journal: "+what+" "+i.Reference); err != nil {
		return err
	}
	fate := s.luck("journal " + i.Reference).IntN(20)
	if fate == 0 && !s.isCalm() {
		s.tell(i.Reference, "%s: journal: %s: it is down, and nothing is recorded", name, what)
		return errJournalDown
	}
	err := s.change(ctx, f)
	if fate == 1 && !s.isCalm() {
		s.tell(i.Reference, "%s: journal: %s: it is recorded, and the response is lost", name, what)
		return errJournalDown
	}
	s.tell(i.Reference, "%s: journal: %s: %s", name, what, kindOf(err))
	return err
}

// change changes the journal, and remembers that.
func (s *simulated) change(ctx context.Context, f change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := f(ctx, s.journal.journal)
	if err == nil {
		s.journal.log = append(s.journal.log, entry{time.Now(), f})
	}
	return err
}

// planJournal draws what happens to the journal from outside: it forgets, if the test asks for
// that, and a program for another service uses it.
func (s *simulated) planJournal() {
	luck := s.luck("journal")
	if s.forgets > 0 {
		lost := upTo(luck, s.forgets)
		s.later(upTo(luck, stormTime), func() { s.forget(lost) })
	}
	if luck.IntN(4) == 0 {
		o := s.orders[luck.IntN(len(s.orders))]
		s.later(upTo(luck, stormTime), func() { s.usedByAnother(o.number) })
	}
}

// forget takes the journal back to what it was.
func (s *simulated) forget(lost time.Duration) {
	s.mu.Lock()
	s.journal.journal = s.open(s.t)
	for _, e := range s.journal.log {
		if time.Since(e.at) >= lost {
			_ = e.change(s.t.Context(), s.journal.journal)
		}
	}
	s.mu.Unlock()
	for _, o := range s.orders {
		s.tell(o.number, "journal: its last %s are lost", lost.Round(time.Second))
	}
}

// usedByAnother uses the journal as a program for another service does, with the same order number.
func (s *simulated) usedByAnother(number string) {
	s.mu.Lock()
	journal, isNew := s.journal.journal, len(s.journal.calls) == 0
	s.mu.Unlock()
	if isNew {
		return // the journal would be the other one's
	}
	now := time.Now()
	i := cardwire.Intent{
		Call: "another", Op: cardwire.OpCreateTransfer, Reference: number, Service: otherService,
		Time: now, SendBy: now.Add(callTimeout), SettledBy: now.Add(time.Hour),
	}
	err := journal.Begin(s.t.Context(), i)
	if err == nil {
		executed := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "other-1"}
		err = journal.End(s.t.Context(), i, executed)
	}
	s.tell(number, "another service has an order with this number: journal: %s", kindOf(err))
}
