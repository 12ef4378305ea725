package main

import (
	"context"
	"errors"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// support finds out what became of an intent: a ticket, a telephone call, an
// export of the console. It recognizes it by reference and Summary. The outcome is
// OutcomeUnknown until it is certain: that an order is not found may mean that it is
// not found yet. By and Note say who found out, and on what grounds.
type support func(context.Context, sqljournal.Entry) (sqljournal.Resolution, error)

// resolve resolves what has been unresolved for longer than grace. It may run in every
// replica.
func resolve(ctx context.Context, journal *sqljournal.Journal, grace time.Duration, ask support) error {
	var failed []error
	for e, err := range journal.Unresolved(ctx, grace) {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		found, err := ask(ctx, e)
		switch {
		case err != nil:
			failed = append(failed, err)
			continue
		case found.Outcome == cardwire.OutcomeUnknown:
			continue // it is asked again next time
		}
		err = journal.Resolve(ctx, e, found)
		if err != nil && !errors.Is(err, sqljournal.ErrDecided) { // another replica was faster
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
