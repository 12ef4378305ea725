package payouts_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/payouts"
	"github.com/cardwire/cardwire-go/payouts/page"
	"github.com/cardwire/cardwire-go/payouts/sqlite"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// A shop writes its own row and the payout in one transaction, is told what became of it, and has the page below its
// own sign-in.
func Example() {
	ctx := context.Background()
	db, err := sqlite.Open("shop.db")
	if err != nil {
		log.Fatal(err)
	}
	svc, err := payouts.New(db, sqljournal.SQLite, payouts.Config{
		BaseURL: os.Getenv("CARDWIRE_BASE_URL"), APIKey: os.Getenv("CARDWIRE_API_KEY"),
		Changed: func(ctx context.Context, tx *sql.Tx, o payouts.Order) error {
			_, err := tx.ExecContext(ctx, `UPDATE withdrawals SET state = $2 WHERE number = $1`, o.Number, o.State)
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	withdraw := func(number, iban string, amount decimal.Decimal) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		if _, err := tx.ExecContext(ctx, `INSERT INTO withdrawals VALUES ($1, 'new')`, number); err != nil {
			return err
		}
		if _, err := svc.Submit(ctx, tx, cardwire.TransferParams{
			MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: amount, ReceiverBankAccountNumber: iban,
		}); err != nil {
			return err
		}
		return tx.Commit()
	}
	http.Handle("/payouts/", page.Handler(svc, func(r *http.Request) string { return r.Header.Get("X-User") }))
	http.HandleFunc("POST /withdraw", func(w http.ResponseWriter, r *http.Request) {
		if err := withdraw(r.FormValue("number"), r.FormValue("iban"), decimal.NewFromInt(25)); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	})
	log.Fatal(svc.Run(ctx))
}

// A test of a shop has the fake service, and a file of SQLite for the test alone.
func Example_test() {
	dir, _ := os.MkdirTemp("", "shop-") // in a test: t.TempDir()
	defer func() { _ = os.RemoveAll(dir) }()
	fake, told := cardwiretest.New(), make(chan payouts.Order, 1)
	db, _ := sqlite.Open(filepath.Join(dir, "shop.db"))
	defer func() { _ = db.Close() }()
	svc, err := payouts.New(db, sqljournal.SQLite, payouts.Config{
		BaseURL: "https://cards.example/api/v1", APIKey: cardwiretest.DefaultKey,
		Options: []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: fake})},
		Changed: func(_ context.Context, _ *sql.Tx, o payouts.Order) error { told <- o; return nil },
	})
	if err != nil {
		panic(err) // in a test: require.NoError
	}
	ctx, stop := context.WithCancel(context.Background())
	_ = svc.Migrate(ctx)
	_, err = svc.SubmitNow(ctx, cardwire.TransferParams{
		MerchantOrderNo: "A-1", PayoutCurrency: "EUR", TransferAmount: decimal.NewFromInt(25),
	})
	ended := make(chan error)
	go func() { ended <- svc.Run(ctx) }()
	fmt.Println(err, (<-told).State, fake.Executions(cardwire.OpCreateTransfer, "A-1"))
	stop()
	fmt.Println(<-ended)
	// Output:
	// <nil> submitted 1
	// <nil>
}
