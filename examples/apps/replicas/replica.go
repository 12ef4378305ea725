package main

import (
	"context"
	"database/sql"

	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// migrate creates or upgrades the journal's tables, as a step of the deployment. No
// replica does it as it starts: one that creates what is missing does not notice that
// the database has forgotten everything.
func migrate(ctx context.Context, db *sql.DB, dialect sqljournal.Dialect) error {
	journal, err := sqljournal.New(db, dialect)
	if err != nil {
		return err
	}
	return journal.Migrate(ctx)
}

// openJournal opens the journal that all replicas share.
func openJournal(ctx context.Context, db *sql.DB, dialect sqljournal.Dialect) (*sqljournal.Journal, error) {
	journal, err := sqljournal.New(db, dialect)
	if err != nil {
		return nil, err
	}
	return journal, journal.Verify(ctx)
}

// connect returns a replica's client.
func connect(baseURL, key string, journal cardwire.Journal, limiter cardwire.Limiter, opts ...cardwire.Option) (*cardwire.Client, error) {
	opts = append(opts, cardwire.WithJournal(journal), cardwire.WithLimiter(limiter))
	return cardwire.New(baseURL, key, opts...)
}

// share is one replica's part of a rate that is allowed to all of them together.
func share(perSecond float64, replicas int) cardwire.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond/float64(replicas)), 1)
}
