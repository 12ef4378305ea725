package payouts

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hold stops all payments of the journal, by any program, until a person releases it on the page: for the
// first start after a restore of the whole database, before Run. Orders are still accepted. Nothing can
// be recorded as not executed before the last call from before is settled.
func (s *Service) Hold(ctx context.Context, by, why string) error {
	if err := s.checkJournal(ctx); err != nil { // it may be older alone
		return err
	}
	return s.withJournalLocked(ctx, func(tx *sql.Tx) error { return s.hold(ctx, tx, by, why) })
}

// withJournalLocked runs do in a transaction that has locked the journal's own row: of changes of the hold there is one
// at a time.
func (s *Service) withJournalLocked(ctx context.Context, do func(*sql.Tx) error) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		_, err := query(ctx, s, tx, one[int64], `SELECT one FROM cardwire_intents_journal @lock`)
		if err == nil {
			err = do(tx)
		}
		return err
	})
}

// hold puts the journal on hold, and marks every order whose state is not the one that was told: the journal may be
// older than what was told. An order that would be sent, but was told as unresolved, may have been executed.
func (s *Service) hold(ctx context.Context, tx *sql.Tx, by, why string) error {
	err := s.exec(ctx, tx, `UPDATE payouts SET alarmed = TRUE WHERE order_no IN (
	SELECT order_no FROM @orders WHERE told = 'unresolved' AND state = 'queued')`)
	if err == nil {
		err = s.journal.In(tx).Hold(ctx, by, why, s.jobTimeout()+s.config.LateExecution)
	}
	if err == nil {
		err = s.exec(ctx, tx, `UPDATE payouts_marks SET high = 0`)
	}
	if err == nil {
		err = s.exec(ctx, tx, `
INSERT INTO payouts_marks (order_no) SELECT order_no FROM @orders WHERE state NOT IN (told, 'queued', 'sending')`)
	}
	if err == nil {
		err = s.rememberHistory(ctx, tx)
	}
	if err == nil {
		s.log.ErrorContext(ctx, "nothing is sent: the journal is on hold", "by", by, "why", why)
	}
	return err
}

// rememberHistory keeps the last event of the journal's history: it is there as long as the journal is not an older one.
func (s *Service) rememberHistory(ctx context.Context, tx *sql.Tx) error {
	return s.exec(ctx, tx, `UPDATE payouts_control SET
	high = @last,
	high_at = (SELECT time FROM cardwire_intents_history ORDER BY number DESC LIMIT 1)`)
}

// highWater compares the journal's history with what payouts remembers of it: older, if events are missing; newer, if
// there are more, also those of other programs.
const highWater = `SELECT CASE WHEN (SELECT max(high) FROM payouts_marks) > @last THEN 'older'
	WHEN c.high <> 0 AND NOT EXISTS (
		SELECT 1 FROM cardwire_intents_history h WHERE h.number = c.high AND h.time = c.high_at) THEN 'older'
	WHEN c.high < @last THEN 'newer'
	ELSE '' END FROM payouts_control c `

const (
	whyOlder = "the journal is older than the orders: stop all programs, restore both together, from one backup, " +
		"and put them on hold (payouts -hold, or Service.Hold) before any starts"
	whyLacking = "the journal lacks what was said of orders: see those that are unresolved, and what changed it"
)

// checkJournal puts an older journal on hold, once for each loss, whichever replica finds it, and remembers what
// a newer one has. It runs whenever something is told, so that a journal from before that is noticed.
func (s *Service) checkJournal(ctx context.Context) error {
	found, err := query(ctx, s, s.db, one[string], highWater)
	if err != nil || found[0] == "" {
		return err
	}
	return s.withJournalLocked(ctx, func(tx *sql.Tx) error {
		found, err := query(ctx, s, tx, one[string], highWater)
		switch {
		case err != nil:
			return err
		case found[0] != "older":
			return s.rememberHistory(ctx, tx)
		}
		// What has a mark may be of events that are lost, whose numbers others may have since.
		err = s.exec(ctx, tx, `UPDATE payouts SET alarmed = TRUE WHERE order_no IN (SELECT order_no FROM payouts_marks WHERE high > 0)`)
		if err == nil {
			err = s.hold(ctx, tx, "payouts", whyOlder)
		}
		return err
	})
}

// holdIfLost puts the journal on hold where it is older, or lacks an order, or what was told of one, among some: once
// for each.
func (s *Service) holdIfLost(ctx context.Context, some string, args ...any) error {
	if err := s.checkJournal(ctx); err != nil {
		return err
	}
	lost := `SELECT order_no FROM @orders WHERE ` + some + ` AND state = 'unresolved' AND NOT alarmed
	AND NOT (is_anothers AND said_of_other) AND (NOT is_ours OR journal IN ('refused', 'not_sent'))
	ORDER BY order_no` // who was never pinned is alarmed
	found, err := query(ctx, s, s.db, one[string], lost, args...)
	if err != nil || len(found) == 0 {
		return err
	}
	return s.withJournalLocked(ctx, func(tx *sql.Tx) error {
		found, err = query(ctx, s, tx, one[string], lost, args...)
		if err != nil || len(found) == 0 {
			return err
		}
		p, err := s.pausedNow(ctx, tx)
		for _, number := range found { // before their marks, as the teller locks them
			if err == nil {
				err = s.exec(ctx, tx, `UPDATE payouts SET alarmed = TRUE WHERE order_no = $1`, number)
			}
			s.logChange(ctx, slog.LevelError, number, StateUnresolved, "payouts", whyLacking)
		}
		if err == nil && p.Kind != onHold {
			err = s.hold(ctx, tx, "payouts", whyLacking)
		}
		return err
	})
}

// adopt pins what a statement, or a person, says of orders that the journal had lost: it is theirs, as at Submit.
func (s *Service) adopt(ctx context.Context) error {
	found, err := s.read(ctx, s.db, `order_no IN @live AND is_bodiless`)
	errs := []error{err}
	for _, o := range slices.DeleteFunc(found, func(o order) bool { return !o.IsFound }) {
		errs = append(errs, s.tryWithOrderLocked(ctx, o.Number, func(tx *sql.Tx, o order) error {
			if !o.IsFound {
				return nil
			}
			_, err := s.reserve(ctx, tx, o)
			return err
		}))
	}
	return errors.Join(errs...)
}

// checkAsOf reports why what the service said as of then proves nothing: it counts from then on.
func checkAsOf(asOf, from time.Time) error {
	switch {
	case asOf.After(time.Now()):
		return conflict("as_of is in the future")
	case asOf.Before(from):
		return conflict("ask the service at " + after(from) + " UTC or later, and say when in as_of")
	}
	return nil
}

// release is what a person sees before a hold ends, and says.
type release struct {
	Orders []order // that would be sent now
	Seen   string  // names them, and what the comparison leaves unexplained
	comparison
}

// releasable returns what a person has to see: the orders until the last, by their jobs.
func (s *Service) releasable(ctx context.Context, db querier, last int64) (r release, err error) {
	r.Orders, err = s.read(ctx, db, `order_no IN @live AND state = 'queued' ORDER BY created_at, order_no`)
	if err != nil {
		return r, err
	}
	if r.comparison, err = s.compared(ctx, db); err != nil {
		return r, err
	}
	r.Orders = slices.DeleteFunc(r.Orders, func(o order) bool { return o.JobID > last })
	last = 0
	seen := []string{r.Unexplained}
	for _, o := range r.Orders {
		seen, last = append(seen, o.Number), max(last, o.JobID)
	}
	r.Seen = fmt.Sprintf("%d-%x", last, sha256.Sum256([]byte(strings.Join(seen, "\x00"))))
	return r, nil
}

// release ends the hold that a person has seen, with the orders that are then sent: the service was asked
// about each, as of then. Those that came since are unresolved: a shop goes on while people ask. From when the
// journal may have lost something, as the time of the backup, nobody else can know.
func (s *Service) release(ctx context.Context, by, why, seen string, asOf, lostFrom time.Time) error {
	if err := s.checkJournal(ctx); err != nil { // which may have been restored since
		return err
	}
	text, _, _ := strings.Cut(seen, "-")
	last, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return invalid("seen must be that of the page ./?still=on")
	case lostFrom.IsZero():
		return invalid("lost_from is required: from when on may the journal have lost something?")
	}
	return s.withJournalLocked(ctx, func(tx *sql.Tx) error {
		p, err := s.pausedNow(ctx, tx)
		if err != nil {
			return err
		}
		r, err := s.releasable(ctx, tx, last)
		unproved := checkAsOf(asOf, p.Floor)
		switch {
		case err != nil:
			return err
		case p.Kind != onHold:
			return conflict("the journal is not on hold")
		case !r.IsSettled:
			return conflict("compare with a statement first that goes to " + after(p.Floor) +
				" UTC or later, and record what it proves: until then a call that the journal has lost may be executed")
		case r.since.After(lostFrom):
			return conflict("compare with a statement first that begins at lost_from or earlier: it begins at " +
				r.since.UTC().Format(time.RFC3339Nano))
		case lostFrom.After(p.Since):
			return conflict("lost_from must be before the hold: it is the time of the backup")
		case seen != r.Seen:
			return conflict("the orders that would be sent, or what no order explains, have changed: check them again")
		case unproved != nil:
			return unproved
		case slices.ContainsFunc(r.Orders, func(o order) bool { return asOf.Before(o.CreatedAt) }):
			return conflict("an order came after as_of: ask the service about each that would be sent, and say when in as_of")
		}
		const since = `SELECT order_no FROM @orders WHERE order_no IN @live AND job_id > $1 AND state = 'queued'`
		err = s.exec(ctx, tx, `INSERT INTO payouts_marks (order_no) `+since, last)
		if err == nil {
			err = s.exec(ctx, tx, `UPDATE payouts SET alarmed = TRUE WHERE order_no IN (`+since+`)`, last)
		}
		if err != nil {
			return err
		}
		return s.journal.In(tx).Release(ctx, by, why)
	})
}
