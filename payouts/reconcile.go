package payouts

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// Reconcile compares the journal with the service's statement of transfers, as sqljournal.Journal.Reconcile does, and
// records what it proves if by and why are given. Do gets each finding; left is why it was not recorded: the record has
// changed since, or contradicts it. That it was recorded is in the history, with the statement's period and a name like the
// file's: whoever releases a hold sees it; not of a statement without a line in its period, which proves nothing. Arguments
// that are invalid are cardwire.ErrInvalidParams; an error of st.Lines is returned as it is.
func (s *Service) Reconcile(
	ctx context.Context, name string, st sqljournal.Statement, by, why string,
	do func(f sqljournal.Finding, left error),
) error {
	if !isText(name) {
		return errText
	}
	isToRecord := by != "" || why != ""
	if isToRecord {
		if err := checkWho(by, why); err != nil {
			return err
		}
	}
	if st.Op != operation {
		return invalid("the statement must be of transfers: its Op is %s", operation)
	}
	if err := s.Verify(ctx); err != nil { // it is of this account
		return err
	}
	isRead := false // a line of the statement's period, without which it proves nothing
	for f, err := range s.journal.Reconcile(ctx, st) {
		var left error
		if err == nil && isToRecord && f.Applies() {
			left, err = s.apply(ctx, f, by, why)
		}
		if errors.Is(err, sqljournal.ErrStrays) {
			err = invalid("%w", err)
		}
		if err != nil {
			return err
		}
		isRead = isRead || f.Line.Line > 0 && f.Kind != sqljournal.FindingUnread
		do(f, left)
	}
	if !isToRecord || !isRead {
		return nil
	}
	return s.addHistory(ctx, s.db, "", reconciled, by,
		why+": "+name+", from "+st.From.Format(time.RFC3339)+" until "+st.Until.Format(time.RFC3339))
}

// reconciled is what was done to the journal in its history.
const reconciled = "reconciled"

// apply records what a finding proves. Left is why it does not fit what is on record now.
func (s *Service) apply(ctx context.Context, f sqljournal.Finding, by, why string) (left, err error) {
	err = s.journal.Apply(ctx, f, by, why)
	err = cmp.Or(refusal(err), err)
	if !errors.Is(err, ErrConflict) {
		return nil, err
	}
	s.log.WarnContext(ctx, "not reconciled", "order", f.Reference, "error", err)
	return err, nil
}
