package payouts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// tell writes what is known of an order: its state, and who did what to it and when.
func tell(ctx context.Context, out io.Writer, journal *sqljournal.Journal, reference string) error {
	e, err := journal.Lookup(ctx, cardwire.OpCreateTransfer, reference)
	if err != nil {
		return err
	}
	history, err := journal.History(ctx, e.Op, e.Reference)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s, %s %s: %s, service ID %q, in progress %t, closed %t\n",
		e.Reference, e.Amount.StringFixed(2), e.Currency, e.Outcome, e.ServiceID, e.InProgress, e.Closed)
	for _, h := range history {
		_, err2 := fmt.Fprintf(out, "%s %s: %s %q %q\n", h.Time.Format(time.RFC3339), h.Kind, h.Outcome, h.By, h.Note)
		err = errors.Join(err, err2)
	}
	return err
}

// recordPaid records an order that the service executed, whatever the journal knows of
// it: nothing, as in a new journal, or that it failed. It may be called again.
func recordPaid(ctx context.Context, j *sqljournal.Journal, reference, serviceID, by, note string) error {
	i := cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: reference}
	err := j.Void(ctx, i, by, note) // nobody sends it from here on
	if err != nil && !errors.Is(err, cardwire.ErrDuplicateIntent) {
		return err
	}
	return j.Resolve(ctx, i, journal.Resolution{
		Outcome: cardwire.OutcomeExecuted, ServiceID: serviceID, By: by, Note: note,
	})
}
