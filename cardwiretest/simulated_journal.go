package cardwiretest

import (
	"context"
	"errors"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// SimulatedJournal is the [cardwire.Journal] of a [World], as one program has it.
type SimulatedJournal struct{ w *World }

// errJournalDown is the error of a journal that fails.
var errJournalDown = errors.New("cardwiretest: the journal is down")

// Begin records that a call is about to be sent.
func (j *SimulatedJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	return j.do("begin", i, func() error {
		err := j.w.journal.Begin(ctx, i)
		if err == nil {
			j.w.begun[i.Reference] = i
		}
		return err
	})
}

// End records how a call ended.
func (j *SimulatedJournal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	return j.do("end as "+r.Outcome.String(), i, func() error { return j.w.journal.End(ctx, i, r) })
}

// Void closes a reference under which nothing was executed.
func (j *SimulatedJournal) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	return j.do("void", i, func() error { return j.w.journal.Void(ctx, i, by, note) })
}

// Resolve records what a person found out about a call, if the journal can do that. If i has no Call,
// it is about the last one of its reference, which a person reads in the journal.
func (j *SimulatedJournal) Resolve(ctx context.Context, i cardwire.Intent, found journal.Resolution) error {
	return j.do("resolve as "+found.Outcome.String(), i, func() error {
		if last, begun := j.w.begun[i.Reference]; begun && i.Call == "" {
			i = last
		}
		r, ok := j.w.journal.(resolver)
		if !ok {
			return errors.New("cardwiretest: the journal has no Resolve")
		}
		return r.Resolve(ctx, i, found)
	})
}

// do waits for its turn, and sometimes fails before or after the change.
func (j *SimulatedJournal) do(what string, i cardwire.Intent, change func() error) error {
	s, name := j.w.simulated, j.w.own.name
	if err := s.wait(j.w.own, "journal: "+what+" "+i.Reference); err != nil {
		return err
	}
	fate := s.luck("journal " + i.Reference).IntN(20)
	if fate == 0 && !s.calm.Load() {
		s.tell(i.Reference, "%s: journal: %s: it is down, and nothing is recorded", name, what)
		return errJournalDown
	}
	s.mu.Lock()
	err := change()
	s.mu.Unlock()
	if fate == 1 && !s.calm.Load() {
		s.tell(i.Reference, "%s: journal: %s: it is recorded, and the response is lost", name, what)
		return errJournalDown
	}
	s.tell(i.Reference, "%s: journal: %s: %s", name, what, kindOf(err))
	return err
}
