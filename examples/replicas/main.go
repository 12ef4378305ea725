// Replicas lets three replicas of a program send the same orders at once, through
// a service that fails in many ways, and resolves what remains unknown. No order
// is executed twice.
//
//	go run -C examples/replicas .
//
// Journal and limiter are in the PostgreSQL database of DATABASE_URL; without it
// the journal is a temporary file of SQLite, and each replica has a share of the
// rate. What this is made of is explained in docs/replicas.md.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/shopspring/decimal"
	_ "modernc.org/sqlite"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Getenv("DATABASE_URL")); err != nil {
		fmt.Fprintln(os.Stderr, "replicas:", err)
		os.Exit(1)
	}
}

const (
	replicas = 3
	orders   = 20
)

func run(ctx context.Context, out io.Writer, databaseURL string) error {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	service := cardwiretest.New() // in place of the real one
	breakSome(service)
	temp, err := os.MkdirTemp("", "replicas")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()

	var all []*replica
	for range replicas {
		r, err := start(ctx, databaseURL, temp, service)
		if err != nil {
			return err
		}
		defer r.stop()
		all = append(all, r)
	}

	batch := "batch-" + strings.ToLower(rand.Text()) // a database keeps those of earlier runs
	for len(service.Ledger()) < orders {
		say("%d replicas send the same %d orders: %s", replicas, orders, sendAll(ctx, all, batch))
		if err := settle(ctx, all[0].journal, 0, supportOf(service, batch)); err != nil {
			return err
		}
		say("support has resolved what was unknown")
	}
	twice := 0
	for i := range orders {
		if service.Executions("CreateTransfer", number(batch, i)) > 1 {
			twice++
		}
	}
	say("%d orders, %d executions, %d orders executed twice", orders, len(service.Ledger()), twice)
	return nil
}

// breakSome makes some of the first requests go wrong, before or after they take
// effect.
func breakSome(service *cardwiretest.Service) {
	for _, executed := range []bool{true, false} {
		service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: executed}, 3)
		service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultHTML, Executed: executed}, 2)
	}
	service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}, 2)
}

// replica is one of several processes, here in the same one. They share nothing
// but the database.
type replica struct {
	journal *sqljournal.Journal
	client  *cardwire.Client
	stop    func()
}

// start is what each replica does as it starts.
func start(ctx context.Context, databaseURL, temp string, service *cardwiretest.Service) (r *replica, err error) {
	driver, source, build := "pgx", databaseURL, onPostgreSQL
	if databaseURL == "" {
		driver, source, build = "sqlite", "file:"+filepath.Join(temp, "journal.db")+"?_pragma=busy_timeout(5000)", onSQLite
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	journal, limiter, err := build(ctx, db)
	if err != nil {
		return nil, err
	}
	client, err := connect("https://api.example.com/api/v1", cardwiretest.DefaultKey, journal, limiter,
		cardwire.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		return nil, err
	}
	return &replica{journal, client, func() { _ = db.Close() }}, nil
}

func onPostgreSQL(ctx context.Context, db *sql.DB) (*sqljournal.Journal, cardwire.Limiter, error) {
	if err := migrate(ctx, db); err != nil {
		return nil, nil, err
	}
	journal, err := openJournal(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	limiter, err := newTurns(ctx, db, time.Millisecond)
	return journal, limiter, err
}

func onSQLite(ctx context.Context, db *sql.DB) (*sqljournal.Journal, cardwire.Limiter, error) {
	journal, err := sqljournal.New(db, sqljournal.SQLite)
	if err != nil {
		return nil, nil, err
	}
	return journal, share(1000, replicas), journal.Migrate(ctx)
}

func number(batch string, i int) string { return fmt.Sprintf("%s-%d", batch, i) }

// sendAll has every replica send every order, and says how often a call ended in
// which way.
func sendAll(ctx context.Context, all []*replica, batch string) string {
	var mu sync.Mutex
	ends := map[string]int{}
	var group sync.WaitGroup
	for _, r := range all {
		group.Go(func() {
			for i := range orders {
				_, err := r.client.CreateTransfer(ctx, cardwire.TransferParams{
					MerchantOrderNo: number(batch, i), PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
				})
				mu.Lock()
				ends[end(err)]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return fmt.Sprint(ends)
}

func end(err error) string {
	var failure *cardwire.Error
	switch {
	case err == nil:
		return "success"
	case errors.Is(err, cardwire.ErrDuplicateIntent):
		return "taken" // by another replica, or earlier: this call sent nothing
	case errors.As(err, &failure):
		return failure.Outcome.String()
	}
	return "error"
}

// supportOf looks into the books of the fake, as the real service's support looks
// into its own.
func supportOf(service *cardwiretest.Service, batch string) support {
	return func(_ context.Context, e sqljournal.Entry) (sqljournal.Resolution, error) {
		found := sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent, By: "support", Note: "looked into the books"}
		switch {
		case !strings.HasPrefix(e.Reference, batch):
			found.Outcome = cardwire.OutcomeUnknown // of an earlier run, whose fake is gone
		case service.Executions(e.Op, e.Reference) > 0:
			found.Outcome = cardwire.OutcomeExecuted
		}
		return found, nil
	}
}
