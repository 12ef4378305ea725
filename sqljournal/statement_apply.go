package sqljournal

import (
	"context"
	"errors"
	"strings"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/journal"
)

var (
	// ErrUncertain reports that a finding has nothing to apply: see Finding.Applies.
	ErrUncertain = errors.New("sqljournal: the finding has nothing to record: ask the service")
	// ErrMoved reports that the reference has changed since the report, and was left as it is.
	ErrMoved = errors.New("sqljournal: the reference has changed since the report: reconcile again")
)

// Apply records what a finding says that happened, as an event with who, why, and the line of the statement: executed,
// or what the comment of its Why says. It never records that something did not happen. By must not be empty.
// If another reference has the line's service ID, a reference that could be sent again is recorded without it, and of
// an unresolved one Apply returns an [ErrDecided]. Applying a finding again changes nothing.
func (j *Journal) Apply(ctx context.Context, f Finding, by, note string) error {
	i := cardwire.Intent{Op: f.Op, Reference: f.Reference}
	return j.decide(ctx, "applying the finding", i, func(t *Tx) error { return t.Apply(ctx, f, by, note) })
}

// Apply is [Journal.Apply] in the transaction.
func (t *Tx) Apply(ctx context.Context, f Finding, by, note string) error {
	if err := check.Given("by", by); err != nil {
		return invalid(err)
	}
	if !f.Applies() {
		return ErrUncertain
	}
	i := cardwire.Intent{Op: f.Op, Reference: f.Reference, Time: f.Line.Time}
	if i.Amount, i.Currency = f.Entry.Amount, f.Entry.Currency; i.Amount.IsZero() {
		i.Amount, i.Currency = f.Line.Amount, f.Line.Currency
	}
	said := strings.TrimPrefix(note+"; in the statement "+f.period+": "+inWords(f.Line), "; ")
	e, result := &event{kind: "pending", by: by, note: said}, cardwire.IntentResult{}
	if f.Why != whyPending && f.Why != whyDiffers {
		e.kind, result = "resolved", cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: f.Line.ServiceID}
	}
	return t.change(ctx, "applying the finding", i, e, func(k known) (journal.Record, error) {
		switch {
		case k.row.Exists() && !k.InProgress && !k.wasFree && k.Outcome == result.Outcome &&
			(k.ServiceID == "" || result.ServiceID == "" || k.ServiceID == result.ServiceID):
			return k.row, nil // already
		case k.row.Exists() == isNothing(f.Entry), k.row.Exists() && !k.equal(f.Entry):
			return k.row, ErrMoved
		}
		other, err := t.executedAs(ctx, i, result.ServiceID)
		if err != nil {
			return k.row, err
		}
		if e.note = said; other != "" {
			e.note += "; without the service ID: another reference has it"
		}
		i.SettledBy = k.now.Add(k.life())
		next, err := k.row.Listed(i, result, other, k.hold, k.now)
		return next, decided(err)
	})
}
