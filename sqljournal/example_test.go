package sqljournal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/shopspring/decimal"
	_ "modernc.org/sqlite"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// The order was executed and its response lost. From then on the journal stops
// every retry, of whatever process, until what happened has been found out.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sqljournal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }() // a program keeps its file
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "journal.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	j, err := sqljournal.New(db, sqljournal.SQLite)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := j.Migrate(ctx); err != nil {
		fmt.Println(err)
		return
	}

	service := cardwiretest.New() // stands for the real one
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	pay := func(client *cardwire.Client) error {
		_, err := client.CreateTransfer(ctx, cardwire.TransferParams{
			MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("100.00"),
		})
		return err
	}
	// Before the first byte leaves, the client has the journal begin the order;
	// afterwards it tells it the end.
	err = pay(connect(service, j))
	fmt.Println("the first call:", outcome(err))

	afterRestart := connect(service, j) // it remembers nothing
	err = pay(afterRestart)
	fmt.Println("a second one:", outcome(err), "and not sent:", errors.Is(err, cardwire.ErrDuplicateIntent))

	for e, err := range j.Unresolved(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("unresolved:", e.Op, e.Reference)
		found := journal.Resolution{Outcome: cardwire.OutcomeExecuted, By: "Ada", Note: "support: ticket 4711"}
		if err := j.Resolve(ctx, e.Intent, found); err != nil {
			fmt.Println(err)
			return
		}
	}

	err = pay(afterRestart)
	fmt.Println("a third one:", outcome(err), "and not sent:", errors.Is(err, cardwire.ErrDuplicateIntent))
	fmt.Println("executions:", service.Executions(cardwire.OpCreateTransfer, "order-1"))
	// Output:
	// the first call: unknown
	// a second one: unknown and not sent: true
	// unresolved: CreateTransfer order-1
	// a third one: executed and not sent: true
	// executions: 1
}

// connect is what a process does as it starts.
func connect(service *cardwiretest.Service, journal *sqljournal.Journal) *cardwire.Client {
	client, err := cardwire.New("https://api.example.com/api/v1", cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(&http.Client{Transport: service}), cardwire.WithJournal(journal))
	if err != nil {
		panic(err)
	}
	return client
}

// outcome is what the call ended with.
func outcome(err error) string {
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		return failure.Outcome.String()
	}
	return "success"
}
