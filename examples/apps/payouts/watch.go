package main

import (
	"context"
	"time"

	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// watch reports the journal's numbers as gauges of OpenTelemetry.
func watch(journal *sqljournal.Journal, opts ...cardwireotel.Option) (stop func() error, err error) {
	registration, err := cardwireotel.ObserveJournal(func(ctx context.Context) (int64, int64, time.Time, error) {
		stats, err := journal.Stats(ctx)
		return stats.InProgress, stats.Unresolved, stats.OldestUnresolved, err
	}, opts...)
	if err != nil {
		return nil, err
	}
	return registration.Unregister, nil
}
