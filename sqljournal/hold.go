package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/journal"
)

// byItself is who puts a journal on hold that finds that something is lost.
const byItself = "the journal"

// Hold puts the journal on hold, for all programs: before any of them starts after a restore that the journal cannot
// notice, and before a planned move. While it is on hold, what Begin would grant is refused, so that the client reports
// cardwire.StepRetry; what is on record is told as always, and Reserve, End, Apply, and Resolve of what was executed
// record it. A hold begins a new era: what was free or reserved before is unknown, until a person resolves it.
//
// The floor is now plus the longest life of any call, from its Time to its SettledBy, that is on record or that this
// Journal began, or plus atLeast: the greatest timeout plus LateExecution of any program since the backup, which may not
// know it. A hold that the journal puts itself on has no atLeast: if another program's calls may live longer, call Hold.
// Where nothing is known, it is now plus the life of a call of a client with the default settings. Until the floor
// nothing is voided or denied, and of no call from before the hold a denial is ever accepted whose AsOf is earlier. From
// the floor on a person voids and denies while the hold stands.
//
// On hold, Hold sets time and floor anew, and begins another era: the backup may have been made during a hold. A floor
// is never set to an earlier time, and outlives the hold. In another database than is on record nothing is voided or
// denied before a person's Hold there, or Moved: what the backup has from during a hold may have been begun after it.
// By must not be empty, or "the journal".
func (j *Journal) Hold(ctx context.Context, by, why string, atLeast time.Duration) error {
	return j.inTransaction(ctx, "putting the journal on hold", func(t *Tx) error { return t.Hold(ctx, by, why, atLeast) })
}

// Hold is [Journal.Hold] in the transaction.
func (t *Tx) Hold(ctx context.Context, by, why string, atLeast time.Duration) error {
	k, err := t.lockFor(ctx, by, why)
	if err != nil {
		return err
	}
	back := k.hold.Era // which Moved sets back
	if k.hold.By != "" {
		back = 0
	}
	return t.recordHold(ctx, k.holdOf(k.now, by, why, atLeast), back, "@stay", "held", by, why)
}

// holdOf is a new hold. A floor never goes back.
func (k known) holdOf(since time.Time, by, why string, atLeast time.Duration) journal.Hold {
	if k.longest > 0 || atLeast <= 0 {
		atLeast = max(atLeast, k.life())
	}
	floor := since.Add(atLeast)
	if floor.Before(k.hold.Floor) {
		floor = k.hold.Floor
	}
	return journal.Hold{Since: since, Floor: floor, By: by, Why: why, Era: k.era + 1}
}

// holdItself puts the journal on hold because it is in another database, or a call has vanished. It begins no era where
// it has done so before.
func (t *Tx) holdItself(ctx context.Context, k known, isLost bool) (known, error) {
	var why []string
	if k.hold.Moved != "" {
		why = append(why, movedWhy+k.hold.Moved)
	}
	if isLost {
		why = append(why, "the database has lost a call that this program had begun: check for a restore")
	}
	if k.hold.By != "" && k.hold.By != byItself {
		why = append(why, "on hold by "+k.hold.By+": "+k.hold.Why)
	}
	if k.hold.By != byItself || k.isDerived {
		k.hold = k.holdOf(k.now, byItself, strings.Join(why, "; "), 0)
		k.era, k.isDerived = k.hold.Era, false
		return k, t.recordHold(ctx, k.hold, 0, "@stay", "held", byItself, k.hold.Why)
	}
	return k, nil
}

// Held returns the hold of the journal, also one that it has put itself on; zero: there is none. A journal that is in
// another database than it was, where nobody may record that, has its own hold, from when this Journal saw it first.
func (j *Journal) Held(ctx context.Context) (journal.Hold, error) { return j.waiting().Held(ctx) }

// Held is [Journal.Held] in the transaction.
func (t *Tx) Held(ctx context.Context) (journal.Hold, error) {
	k, err := t.identify(ctx)
	if err != nil || k.hold.By == "" {
		return journal.Hold{}, err
	}
	return k.hold, nil
}

// Release ends the hold, so that calls begin again; without one it does nothing. It returns
// [ErrDecided] before the floor, and in another database than the journal was put on hold in. What was free or reserved
// before the hold stays unknown. Why should say which statements were compared since: Apply records their period.
//
// Release cannot know what the database has forgotten altogether: a number that nothing is on record of, and that a queue
// delivers again next week, is granted, unless a statement has recorded it. See docs/operations.md. By must not be
// empty, or "the journal".
func (j *Journal) Release(ctx context.Context, by, why string) error {
	return j.inTransaction(ctx, "releasing the hold", func(t *Tx) error { return t.Release(ctx, by, why) })
}

// Release is [Journal.Release] in the transaction.
func (t *Tx) Release(ctx context.Context, by, why string) error {
	k, err := t.lockFor(ctx, by, why)
	if err != nil || k.hold.By == "" {
		return err
	}
	if err = k.hold.Settled(k.now); err != nil {
		return decided(fmt.Errorf("%w, and release the hold", err))
	}
	released := journal.Hold{Since: k.hold.Since, Floor: k.hold.Floor, Era: k.hold.Era}
	return t.recordHold(ctx, released, 0, "@move", "released", by, why)
}

// Moved says that the journal is where it is by plan, as after a switchover or an upgrade, with all that it had: it ends
// the hold at once, also before its floor, and nothing is unknown for it. It returns [ErrDecided] unless a person's hold
// is on record that began before the move and at most 24 hours ago, on a journal that was not on hold: nothing has begun
// since. Only the person knows what Moved cannot: that the hold was not released where the journal came from,
// so that no call has begun there. By must not be empty, or "the journal".
func (j *Journal) Moved(ctx context.Context, by, why string) error {
	return j.inTransaction(ctx, "recording the move", func(t *Tx) error { return t.Moved(ctx, by, why) })
}

// maxMove is how long a planned move may take.
const maxMove = 24 * time.Hour

// Moved is [Journal.Moved] in the transaction.
func (t *Tx) Moved(ctx context.Context, by, why string) error {
	k, err := t.lockFor(ctx, by, why)
	refused := ""
	switch {
	case err != nil:
		return err
	case k.was.moved(k.is) == "":
		refused = "the journal is in the database that it was put on hold in, as far as that is known: release the hold"
	case k.back == 0:
		refused = "no person has put the journal on hold before the move, while it was not on hold: call Hold again, " +
			"ask the service about each order after the floor, and release the hold"
	case k.now.Sub(k.hold.Since) > maxMove:
		refused = "the hold is older than 24 hours: call Hold again, and release that after its floor"
	}
	if refused != "" {
		return decided(errors.New(refused))
	}
	return t.recordHold(ctx, journal.Hold{Since: k.hold.Since, Floor: k.hold.Since, Era: k.back}, 0, "@stay", "moved", by, why)
}

// lockFor is lockJournal for what a person does.
func (t *Tx) lockFor(ctx context.Context, by, why string) (known, error) {
	err := cmp.Or(check.Given("by", by), check.Note("why", why))
	if by == byItself {
		err = errors.New(`by must be a person, and not "` + byItself + `"`)
	}
	if err != nil {
		return known{}, invalid(err)
	}
	return t.lockJournal(ctx)
}

// lockJournal returns what is known of the journal, and keeps others from changing its hold.
func (t *Tx) lockJournal(ctx context.Context) (known, error) {
	if _, err := t.exec(ctx, `UPDATE @journal SET held_by = held_by`); err != nil {
		return known{}, t.journal.failed("reading the hold", err)
	}
	return t.identify(ctx)
}

// recordHold writes the hold, where the journal is, and an event of no reference. Where a part of the database's name is
// not on record, "@stay" leaves it so, and "@move" fills it in.
func (t *Tx) recordHold(ctx context.Context, h journal.Hold, back int64, place, kind, by, why string) error {
	moment := t.journal.dialect.moment
	_, err := t.exec(ctx, `
UPDATE @journal AS j SET held_at = ?1, floor = ?2, held_by = ?3, held_why = ?4, era = @later(era, ?5), oldest = ?5,
	back = ?6, `+place, moment(h.Since), moment(h.Floor), h.By, h.Why, h.Era, back)
	if err == nil {
		_, err = t.exec(ctx, `INSERT INTO @history (`+eventColumns+`) VALUES ('', '', @now, ?1, '', '', '', ?2, ?3)`,
			kind, by, why)
	}
	return t.journal.failed("recording the hold", err)
}
