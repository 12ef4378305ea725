package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Status is whether orders are sent, and to whom.
type Status struct {
	// Service is the address of the service.
	Service string
	// Account is the merchant's own name of the account.
	Account string
	// Kind is what stops all replicas: "hold", "brake", "trouble", "refused" or "by hand"; "": orders are sent.
	Kind string
	// Why is why nothing is sent; "": orders are sent.
	Why string
	// Since is since when nothing is sent; zero: orders are sent.
	Since time.Time
	// Until is when an order is tried next; zero: not before people have done something.
	Until time.Time
	// Floor is when a hold may be released, also of the last one; zero: there was none. Before it nobody can say that
	// something was not executed.
	Floor time.Time
	// History is what people did to the queue since nothing is sent, the oldest first: statements that were recorded too.
	History []Event
	// Untold is how many orders have changed of which Changed has not been told for a minute or longer.
	Untold int64
	// UntoldSince is since when the first of them waits; zero: none does.
	UntoldSince time.Time
	// Idle is since when no replica has worked; zero: one has, less than a minute ago.
	Idle time.Time
}

// Status returns whether orders are sent. Service and Account are there with an error too.
func (s *Service) Status(ctx context.Context) (Status, error) {
	status := Status{Service: s.base, Account: s.config.Account}
	p, err := s.pausedNow(ctx, s.db)
	if err != nil {
		return status, err
	}
	status.Kind, status.Why, status.Since, status.Until, status.Floor = p.Kind, p.Why, p.Since, p.Until, p.Floor
	if p.Kind != "" {
		status.History, err = s.events(ctx, s.db, "", p.Since)
	}
	d, err2 := s.delays(ctx)
	status.Idle, status.Untold, status.UntoldSince = d.Idle, d.Untold, d.UntoldSince
	return status, errors.Join(err, err2)
}

// Pause stops all replicas until a person resumes, in place of a pause that would end by itself. Where a person has
// paused already it changes nothing. By and why are for the history; an error may be cardwire.ErrInvalidParams.
func (s *Service) Pause(ctx context.Context, by, why string) error {
	if err := checkWho(by, why); err != nil {
		return err
	}
	changed, err := s.pause(ctx, pause{Kind: byHand, Why: "paused by " + by + ": " + why})
	if err == nil && changed {
		err = s.addHistory(ctx, s.db, "", "paused", by, why)
	}
	return err
}

// Resume ends a pause of any kind; without one it does nothing. While too many orders are unresolved the brake follows any
// other pause. On hold it returns [ErrConflict]: that ends with [Service.Release].
func (s *Service) Resume(ctx context.Context, by, why string) error {
	return s.ResumeSince(ctx, time.Time{}, by, why)
}

// ResumeSince is [Service.Resume] of the pause that somebody has seen, whose start is [Status].Since; zero: of any. Where
// that pause has ended, or another one has begun, it returns [ErrConflict].
func (s *Service) ResumeSince(ctx context.Context, since time.Time, by, why string) error {
	if err := checkWho(by, why); err != nil {
		return err
	}
	p, err := s.pausedNow(ctx, s.db)
	isSeen := since.IsZero() || since.Equal(p.Since)
	switch {
	case err != nil || p.Kind == "" && isSeen:
		return err
	case p.Kind == onHold:
		return conflict("the journal is on hold: release it")
	}
	ended := false
	if isSeen {
		ended, err = s.resume(ctx, by, p)
	}
	if err == nil && !ended {
		err = conflict("the pause is another one now, or has ended: check again why nothing is sent")
	}
	if err == nil {
		err = s.addHistory(ctx, s.db, "", "resumed", by, why)
	}
	return err
}

// Hold stops all payments of the journal, by any program, until a person releases it: for the first start after a restore
// of the whole database, before Run, where the journal cannot notice that by itself, as in SQLite. What is queued then is
// unresolved from here on. Orders are still accepted. Nothing can be recorded as not executed before the last call from
// before is settled.
func (s *Service) Hold(ctx context.Context, by, why string) error {
	err := s.journal.Hold(ctx, by, why, s.jobTimeout()+s.config.LateExecution)
	return cmp.Or(refusal(err), err)
}

// Release ends a hold, so that orders are sent again; without one it does nothing. Before [Status].Floor, and with
// Config.FourEyes by the person who holds, it returns [ErrConflict]. What was queued before the hold stays unresolved.
func (s *Service) Release(ctx context.Context, by, why string) error {
	return s.endHold(ctx, by, func(j *sqljournal.Tx) error { return j.Release(ctx, by, why) })
}

// Moved ends the hold that a person began before a planned move of the database, as sqljournal.Journal.Moved does: nothing
// is unresolved for it. Where that cannot be, and with Config.FourEyes by the person who holds, it returns [ErrConflict].
func (s *Service) Moved(ctx context.Context, by, why string) error {
	return s.endHold(ctx, by, func(j *sqljournal.Tx) error { return j.Moved(ctx, by, why) })
}

// endHold ends a hold that nobody changes meanwhile.
func (s *Service) endHold(ctx context.Context, by string, end func(*sqljournal.Tx) error) error {
	err := s.transaction(ctx, func(tx *sql.Tx) error {
		if err := s.exec(ctx, tx, `UPDATE @intents_journal SET held_by = held_by`); err != nil {
			return err
		}
		// Where something is lost the journal has taken over the hold of the person.
		held, err := query(ctx, s, tx, database.One[string], `SELECT by FROM @intents_history WHERE kind = 'held' AND number = (
	SELECT max(number) FROM @intents_history WHERE op = '' AND reference = '' AND by <> 'the journal')`)
		if err == nil && len(held) > 0 {
			err = s.checkOther(by, held[0])
		}
		if err == nil {
			err = end(s.journal.In(tx))
		}
		return err
	})
	return cmp.Or(refusal(err), err)
}
