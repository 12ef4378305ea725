package payouts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Reconcile compares the journal with the service's statement of transfers, as sqljournal.Journal.Reconcile does, and
// records what it proves if by and why are given. Do gets each finding; left is why it was not recorded: the record has
// changed since, or contradicts it. Unless something is still to be recorded the comparison is kept for the release of a
// hold, under a name like the file's, with what a person has to ask about, too: not that of a statement without a line in
// its period, which proves nothing. Where it records, an older journal is put on
// hold first. Arguments that are invalid are cardwire.ErrInvalidParams; an error of st.Lines is returned as it is.
func (s *Service) Reconcile(
	ctx context.Context, name string, st sqljournal.Statement, by, why string,
	do func(f sqljournal.Finding, left error),
) error {
	if !isText(name) {
		return errText
	}
	if by != "" || why != "" { // what is recorded gets the numbers of what an older journal has lost
		if err := s.checkJournal(ctx); err != nil {
			return err
		}
	}
	before, err := s.pausedNow(ctx, s.db)
	if err != nil {
		return err
	}
	name += ", from " + st.From.Format(time.RFC3339) + " until " + st.Until.Format(time.RFC3339)
	isDone, rest, err := s.compare(ctx, st, by, why, do)
	if err == nil && isDone {
		rest.of = name
		err = s.keepComparison(ctx, before, name, st, rest.all())
	}
	return err
}

// compare is Reconcile without keeping it.
func (s *Service) compare(
	ctx context.Context, st sqljournal.Statement, by, why string, do func(f sqljournal.Finding, left error),
) (isDone bool, rest unexplained, err error) {
	isToRecord := by != "" || why != ""
	if isToRecord {
		err = checkWho(by, why)
	}
	if st.Op != operation {
		err = invalid("the statement must be of transfers: its Op is %s", operation)
	}
	if err == nil {
		err = s.Verify(ctx) // it is of this account
	}
	if err != nil {
		return false, rest, err
	}
	isDone = true
	isRead := false // a line of the statement's period, without which it proves nothing
	for f, err := range s.journal.Reconcile(ctx, st) {
		var left error
		if err == nil && f.Applies() {
			if isToRecord {
				left, err = s.apply(ctx, f, by, why)
			}
			isDone = isDone && isToRecord && !errors.Is(left, sqljournal.ErrMoved) // which the next comparison explains
		}
		if errors.Is(err, sqljournal.ErrStrays) {
			err = fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
		}
		if err != nil {
			return false, rest, err
		}
		isRead = isRead || f.Line.Line > 0 && f.Kind != sqljournal.FindingUnread
		rest.add(f, left)
		do(f, left)
	}
	return isDone && isRead, rest, nil
}

// apply records what a finding proves. Left is why it does not fit what is on record now.
func (s *Service) apply(ctx context.Context, f sqljournal.Finding, by, why string) (left, err error) {
	err = s.journal.Apply(ctx, f, by, why)
	if p := refusal(err); p == nil || p.Status != http.StatusConflict {
		return nil, err
	}
	s.log.WarnContext(ctx, "not reconciled", "order", f.Reference, "error", err)
	return err, nil
}

// comparison is one with a statement, of which all was recorded that could be.
type comparison struct {
	At          time.Time // zero: there is none
	File        string    // and the statement's period
	Unexplained string    // see unexplained
	IsSettled   bool      // it goes to when no call that the journal has lost could be executed any more

	since, until time.Time // of the statement, with others that it continues
}

// compared returns the last comparison since the hold; zero: there is none.
func (s *Service) compared(ctx context.Context, db querier) (c comparison, err error) {
	_, err = query(ctx, s, db, func(scan scan) (any, error) {
		return nil, scan(moment{&c.At}, &c.File, &c.Unexplained, moment{&c.since}, moment{&c.until}, &c.IsSettled)
	}, `SELECT r.at, r.file, r.unexplained, r.since, r.until, r.until >= h.floor AND r.at >= h.floor
FROM payouts_reports r JOIN cardwire_intents_journal h ON r.at >= h.held_at`)
	return c, err
}

// unexplained is what a person has to ask about, too: the lines of a statement that no call here explains, also once
// they are recorded, and those that cannot be read; what is paid though closed, or could not be recorded; and what is odd
// about the statement.
type unexplained struct {
	of    string // the statement's name
	odd   []string
	first []string
	more  int
}

const maxUnexplained = 500

func (u *unexplained) add(f sqljournal.Finding, left error) {
	var notes []string
	switch {
	case f.Why == "statement":
		u.odd = append(u.odd, f.Note)
	case f.Why == "closed":
		notes = append(notes, "paid though closed: "+f.Note)
	case f.IsUnexplained, f.Kind == sqljournal.FindingUnread:
		notes = append(notes, f.Note)
	}
	if left != nil {
		notes = append(notes, left.Error())
	}
	for _, note := range notes {
		if len(u.first) == maxUnexplained {
			u.more++
			continue
		}
		u.first = append(u.first, strconv.Quote(f.Reference)+": "+note)
	}
}

func (u *unexplained) all() []string {
	all := u.first
	if u.more > 0 {
		u.odd = append(u.odd, fmt.Sprintf("and %d more: see its report", u.more))
	}
	for _, odd := range u.odd {
		all = append(all, u.of+": "+odd)
	}
	return all
}

// keepComparison keeps a comparison, unless the journal was put on hold since it began. It adds what no order explains
// to what earlier ones left: whoever releases the hold sees all of it.
func (s *Service) keepComparison(
	ctx context.Context, before pause, name string, st sqljournal.Statement, unexplained []string,
) error {
	return s.withJournalLocked(ctx, func(tx *sql.Tx) error {
		p, err := s.pausedNow(ctx, tx)
		if err == nil && p.Kind == onHold && !p.Since.Equal(before.Since) {
			err = conflict("the journal was put on hold meanwhile: compare again")
		}
		if err != nil {
			return err
		}
		var known comparison
		if p.Kind == onHold {
			known, err = s.compared(ctx, tx)
		}
		if err != nil {
			return err
		}
		for _, line := range strings.Split(known.Unexplained, "\n") {
			if line != "" && !slices.Contains(unexplained, line) {
				unexplained = append(unexplained, line)
			}
		}
		since, until := st.From, st.Until
		if st.Exported.Before(p.Floor) { // it may lack what was executed late
			since = until
		}
		if !known.At.IsZero() && !since.After(known.until) && !known.since.After(until) { // one continues the other
			until = later(until, known.until)
			if known.since.Before(since) {
				since = known.since
			}
		}
		return s.exec(ctx, tx, `INSERT INTO payouts_reports (one, at, file, since, until, unexplained) VALUES (1, NOW(), $1, $2, $3, $4)
ON CONFLICT (one) DO UPDATE SET at = excluded.at, file = excluded.file, since = excluded.since, until = excluded.until,
	unexplained = excluded.unexplained`, name, s.moment(since), s.moment(until), strings.Join(unexplained, "\n"))
	})
}
