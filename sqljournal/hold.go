package sqljournal

import (
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/journal"
)

// Hold is what keeps a restored journal from beginning calls; its zero value does not.
type Hold = journal.Hold

// Hold puts the journal on hold, for all programs: after a restore, before any of them starts. While
// it stands, what Begin would grant is refused, so that the client reports cardwire.StepRetry; what is on
// record is told as always, and Reserve, End, Apply, and Resolve of what was executed record it.
//
// The floor is now plus the longest life of any call, from its Time to its SettledBy, that the
// journal has seen, or plus atLeast: the greatest timeout plus LateExecution of any program since
// the backup, which may not know it. Where neither is known, it is now plus the life of a call of a
// client with the default settings. Until the floor nothing is voided or denied, and of no call from before
// the hold a denial is ever accepted whose AsOf is earlier. From the floor on a person voids and denies while
// the hold stands.
//
// Where a hold stands, Hold sets its time and floor anew: the backup may have been made during
// one. A floor is never set to an earlier time, and outlives the hold. By must not be empty.
func (j *Journal) Hold(ctx context.Context, by, why string, atLeast time.Duration) error {
	return j.inTransaction(ctx, "putting the journal on hold", func(t *Tx) error { return t.Hold(ctx, by, why, atLeast) })
}

// Hold is [Journal.Hold] in the transaction.
func (t *Tx) Hold(ctx context.Context, by, why string, atLeast time.Duration) error {
	k, err := t.lockJournal(ctx, by, why)
	if err != nil {
		return err
	}
	if k.longest > 0 || atLeast <= 0 {
		atLeast = max(atLeast, k.life())
	}
	h := Hold{Since: k.now, Floor: k.now.Add(atLeast), By: by, Why: why}
	if h.Floor.Before(k.hold.Floor) {
		h.Floor = k.hold.Floor
	}
	return t.recordHold(ctx, h, "held", by, why)
}

// Held returns the hold of the journal; zero: there is none.
func (j *Journal) Held(ctx context.Context) (Hold, error) { return j.waiting().Held(ctx) }

// Held is [Journal.Held] in the transaction.
func (t *Tx) Held(ctx context.Context) (Hold, error) {
	_, k, err := t.identify(ctx)
	if err != nil || k.hold.By == "" {
		return Hold{}, err
	}
	return k.hold, nil
}

// Release ends the hold, so that calls begin again; without one it does nothing. It returns
// [ErrDecided] before the floor. It cannot know whether the service was asked, at or after the floor,
// about each order that is then sent: see docs/operations.md. By must not be empty.
func (j *Journal) Release(ctx context.Context, by, why string) error {
	return j.inTransaction(ctx, "releasing the hold", func(t *Tx) error { return t.Release(ctx, by, why) })
}

// Release is [Journal.Release] in the transaction.
func (t *Tx) Release(ctx context.Context, by, why string) error {
	k, err := t.lockJournal(ctx, by, why)
	switch {
	case err != nil:
		return err
	case k.hold.By == "":
		return nil
	case k.now.Before(k.hold.Floor):
		return decided(errors.New("a call that the journal has forgotten may be executed until " +
			stamp(k.hold.Floor) + ": ask the service about each order then, and release the hold"))
	}
	return t.recordHold(ctx, Hold{Since: k.hold.Since, Floor: k.hold.Floor}, "released", by, why)
}

// lockJournal returns what is known of the journal, and keeps others from changing its hold.
func (t *Tx) lockJournal(ctx context.Context, by, why string) (known, error) {
	err := check.Given("by", by)
	if err == nil {
		err = check.Note("why", why)
	}
	if err != nil {
		return known{}, invalid(err)
	}
	if _, err := t.exec(ctx, `UPDATE @journal SET held_by = held_by`); err != nil {
		return known{}, t.journal.failed("reading the hold", err)
	}
	_, k, err := t.identify(ctx)
	k.timed()
	return k, err
}

// recordHold writes the hold, and an event of no reference.
func (t *Tx) recordHold(ctx context.Context, h Hold, kind, by, why string) error {
	moment := t.journal.dialect.moment
	_, err := t.exec(ctx, `UPDATE @journal SET held_at = ?1, floor = ?2, held_by = ?3, held_why = ?4`,
		moment(h.Since), moment(h.Floor), h.By, h.Why)
	if err == nil {
		_, err = t.exec(ctx, `INSERT INTO @history (`+eventColumns+`) VALUES ('', '', @now, ?1, '', '', '', ?2, ?3)`,
			kind, by, why)
	}
	if err != nil {
		return t.journal.failed("recording the hold", err)
	}
	return nil
}
