// Replicas lets three replicas of a program send the same orders at once, through
// a service that fails in many ways, and resolves what remains unknown. It does what
// cardwire.NextStep says and nothing else: no order is executed twice.
//
//	go run -C examples/apps ./replicas
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
	"slices"
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

	if err := deploy(ctx, databaseURL, temp); err != nil {
		return err
	}
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
	var left []string                                // orders that are neither done nor failed
	for i := range orders {
		left = append(left, number(batch, i))
	}
	for len(left) > 0 {
		again, steps := sendAll(ctx, all, left)
		say("%d replicas send the same %d orders: %v", replicas, len(left), steps)
		if err := resolve(ctx, all[0].journal, 0, supportOf(service, batch)); err != nil { // the fake executes nothing late
			return err
		}
		say("support has resolved what was unknown")
		left = again
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
	// "0": the next round may come at once. Another program waits for Error.RetryAfter.
	service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "0"}, 2)
}

// replica is one of several processes, here in the same one. They share nothing
// but the database.
type replica struct {
	journal *sqljournal.Journal
	client  *cardwire.Client
	stop    func()
}

// deploy creates the tables, once, before any replica starts.
func deploy(ctx context.Context, databaseURL, temp string) error {
	db, dialect, err := openDatabase(databaseURL, temp)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	err = migrate(ctx, db, dialect)
	if err == nil && dialect == sqljournal.PostgreSQL {
		err = migrateTurns(ctx, db)
	}
	return err
}

// openDatabase opens the database that all replicas share.
func openDatabase(databaseURL, temp string) (*sql.DB, sqljournal.Dialect, error) {
	driver, source, dialect := "pgx", databaseURL, sqljournal.PostgreSQL
	if databaseURL == "" {
		driver, source, dialect = "sqlite", "file:"+filepath.Join(temp, "journal.db")+"?_pragma=busy_timeout(5000)", sqljournal.SQLite
	}
	db, err := sql.Open(driver, source)
	return db, dialect, err
}

// start is what each replica does as it starts.
func start(ctx context.Context, databaseURL, temp string, service *cardwiretest.Service) (r *replica, err error) {
	db, dialect, err := openDatabase(databaseURL, temp)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	journal, err := openJournal(ctx, db, dialect)
	if err != nil {
		return nil, err
	}
	limiter := share(1000, replicas)
	if dialect == sqljournal.PostgreSQL {
		limiter = newTurns(db, time.Millisecond)
	}
	client, err := connect("https://api.example.com/api/v1", cardwiretest.DefaultKey, journal, limiter,
		cardwire.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		return nil, err
	}
	return &replica{journal, client, func() { _ = db.Close() }}, nil
}

func number(batch string, i int) string { return fmt.Sprintf("%s-%d", batch, i) }

// sendAll has every replica send every order. It returns those to be sent again, once
// the unknown ones are resolved, and how often each step was the next.
func sendAll(ctx context.Context, all []*replica, orders []string) (again []string, steps map[cardwire.Step]int) {
	var mu sync.Mutex
	steps = map[cardwire.Step]int{}
	ended := map[string]bool{}
	var group sync.WaitGroup
	for _, r := range all {
		group.Go(func() {
			for _, order := range orders {
				_, err := r.client.CreateTransfer(ctx, cardwire.TransferParams{
					MerchantOrderNo: order, PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
				})
				step := cardwire.NextStep(err)
				mu.Lock()
				steps[step]++
				if step == cardwire.StepDone || step == cardwire.StepFail {
					ended[order] = true
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return slices.DeleteFunc(slices.Clone(orders), func(order string) bool { return ended[order] }), steps
}

// supportOf looks into the ledger of the fake, as the real service's support looks
// into its own.
func supportOf(service *cardwiretest.Service, batch string) support {
	return func(_ context.Context, e sqljournal.Entry) (sqljournal.Resolution, error) {
		found := sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent, By: "support", Note: "looked into the ledger"}
		switch {
		case !strings.HasPrefix(e.Reference, batch):
			found.Outcome = cardwire.OutcomeUnknown // of an earlier run, whose fake is gone
		case service.Executions(e.Op, e.Reference) > 0:
			found.Outcome = cardwire.OutcomeExecuted
		}
		return found, nil
	}
}
