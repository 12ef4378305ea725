// Demo runs package payouts, with its page, against the fake service: no money moves.
//
//	go run -C payouts ./demo
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/payouts"
	"github.com/cardwire/cardwire-go/payouts/page"
	"github.com/cardwire/cardwire-go/payouts/sqlite"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1) //nolint:gocritic // what is deferred was done
	}
}

// faults are what the service does to orders: one to each after the first.
var faults = []struct {
	name  string
	fault cardwiretest.Fault
}{
	{"the response is lost, and it was executed", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}},
	{"the response is lost, and it was not executed", cardwiretest.Fault{Kind: cardwiretest.FaultReset}},
	{"it is refused", cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: 422, Message: "the account is closed"}},
	{"there are too many requests", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}},
	{"a page as response, and it was executed", cardwiretest.Fault{Kind: cardwiretest.FaultHTML, Executed: true}},
	{"a page as response", cardwiretest.Fault{Kind: cardwiretest.FaultHTML}},
	{"half of the response", cardwiretest.Fault{Kind: cardwiretest.FaultTruncated, Executed: true}},
	{"garbage", cardwiretest.Fault{Kind: cardwiretest.FaultGarbage, Executed: true}},
	{"503, and it was executed", cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: 503, Executed: true}},
}

// shop is a merchant with the fake service.
type shop struct {
	*payouts.Service
	fake *cardwiretest.Service
	page string // its address
}

func run(ctx context.Context, out io.Writer) (err error) {
	directory, err := os.MkdirTemp("", "payouts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	s := &shop{fake: cardwiretest.New()}
	service := httptest.NewServer(s.fake)
	defer service.Close()
	db, err := sqlite.Open(filepath.Join(directory, "payouts.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s.Service, err = payouts.New(db, sqljournal.SQLite, payouts.Config{
		BaseURL: service.URL + "/api/v1", APIKey: cardwiretest.DefaultKey, Account: "Demo",
		Timeout: time.Second, LateExecution: -1, Brake: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = s.Migrate(ctx)
	}
	if err != nil {
		return err
	}
	server := httptest.NewServer(page.Handler(s.Service, nil))
	defer server.Close()
	s.page = server.URL + "/"
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	return s.show(ctx, out)
}

var payees = [][2]string{{"Grace", "Hopper"}, {"Ada", "Lovelace"}, {"Alan", "Turing"}, {"Edsger", "Dijkstra"}}

// transfer is the order of a number.
func transfer(number string, i int) cardwire.TransferParams {
	payee := payees[i%len(payees)]
	return cardwire.TransferParams{
		MerchantOrderNo: number, PayoutCurrency: []string{"EUR", "EUR", "USD"}[i%3],
		TransferAmount:          decimal.New(int64(1235+700*i), -2),
		ReceiverNativeFirstName: payee[0], ReceiverNativeLastName: payee[1],
		ReceiverBankAccountNumber: fmt.Sprintf("DE00%010d", 7919*i),
	}
}

// show sends an order for each fault, and says where the page is.
func (s *shop) show(ctx context.Context, out io.Writer) error {
	for i := range len(faults) + 1 {
		number, name := fmt.Sprintf("sample-%d", i), "it is accepted"
		if i > 0 {
			name = faults[i-1].name
			s.fake.Fail(cardwire.OpCreateTransfer, faults[i-1].fault, 1)
		}
		_, err := s.SubmitNow(ctx, transfer(number, i))
		if err == nil {
			err = s.await(ctx, number)
		}
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%s: %s\n", number, name)
	}
	_, _ = fmt.Fprintf(out, "This is the fake service: no money moves. Open %s in a browser. Ctrl-C ends it.\n", s.page)
	<-ctx.Done()
	return nil
}

// await waits until an order has ended, or is unresolved.
func (s *shop) await(ctx context.Context, number string) error {
	for ctx.Err() == nil {
		o, err := s.Order(ctx, number)
		if err != nil || o.Ended() || o.State == payouts.StateUnresolved {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.New("the demonstration was interrupted")
}
