package payouts_test

import (
	"context"
	"database/sql"
	"errors"
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
	ctx, stop := context.WithCancel(context.Background())

	fake, told, ended := cardwiretest.New(), make(chan payouts.Order, 1), make(chan error)
	db, err1 := sqlite.Open(filepath.Join(dir, "shop.db")) // dir: t.TempDir()
	svc, err2 := payouts.New(db, sqljournal.SQLite, payouts.Config{
		BaseURL: "https://cards.example/api/v1", APIKey: cardwiretest.DefaultKey,
		Options: []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: fake})},
		Changed: func(_ context.Context, _ *sql.Tx, o payouts.Order) error { told <- o; return nil }, // the shop's own
	})
	err3 := svc.Migrate(ctx)
	_, err4 := svc.SubmitNow(ctx, params("A-1")) // or what of the shop calls Submit
	go func() { ended <- svc.Run(ctx) }()        // stop, and wait for ended, before db.Close
	fmt.Println((<-told).State, fake.Executions(cardwire.OpCreateTransfer, "A-1"), errors.Join(err1, err2, err3, err4))

	stop()
	fmt.Println(<-ended, db.Close())
	// Output:
	// submitted 1 <nil>
	// <nil> <nil>
}

func params(number string) cardwire.TransferParams {
	return cardwire.TransferParams{MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: decimal.NewFromInt(25)}
}

// The comment of the package shows this function. Its parameters are what its reader has in a program already.
func _(
	ctx context.Context, db *sql.DB, tx *sql.Tx, order cardwire.TransferParams, config payouts.Config, mux *http.ServeMux,
	signIn func(http.Handler) http.Handler, who func(*http.Request) string,
) error {
	svc, err := payouts.New(db, sqljournal.PostgreSQL, config)
	if err != nil {
		return err
	}
	if _, err := svc.Submit(ctx, tx, order); err != nil { // in the checkout's own transaction
		return err
	}
	mux.Handle("/payouts/", signIn(page.Handler(svc, who)))
	return svc.Run(ctx)
}
