package main

import (
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// support finds out what became of an intent: a ticket, a telephone call, an
// export of the console. Its answer is OutcomeUnknown until it is certain: that
// an order is not found may mean that it is not found yet.
type support func(context.Context, sqljournal.Entry) (cardwire.Outcome, error)

// settle has support decide what was begun longer ago than any call takes. It
// may run in every replica.
func settle(ctx context.Context, journal *sqljournal.Journal, olderThan time.Duration, ask support) error {
	entries, err := journal.Undecided(ctx, olderThan)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range entries {
		outcome, err := ask(ctx, e)
		switch {
		case err != nil:
			failed = append(failed, err)
			continue
		case outcome == cardwire.OutcomeUnknown:
			continue // it is asked again next time
		}
		err = journal.ResolveEntry(ctx, e, outcome)
		if err != nil && !errors.Is(err, sqljournal.ErrDecided) { // another replica was faster
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
