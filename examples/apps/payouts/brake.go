package main

import (
	"context"
	"errors"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// brake is a cardwire.Limiter that stops all replicas while most orders, or more,
// are unresolved, and lets them go on as those are resolved.
type brake struct {
	journal *sqljournal.Journal
	most    int64
	next    cardwire.Limiter // for the rate
}

var errBraked = errors.New("too many orders are unresolved: resolve them first")

// Wait implements cardwire.Limiter.
func (b *brake) Wait(ctx context.Context) error {
	stats, err := b.journal.Stats(ctx)
	if err != nil {
		return err
	}
	if stats.Unresolved >= b.most {
		return errBraked
	}
	return b.next.Wait(ctx)
}
