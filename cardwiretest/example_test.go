package cardwiretest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

// t is the *testing.T of the examples, which have none of their own. TestMain ends it.
var t = &tester{TB: new(testing.T)}

func ExampleNewClient() {
	client, service := cardwiretest.NewClient(t) // in a test: its own t
	service.SetCard(`{"id":"card-1","available":"-12.500"}`)

	card, err := client.GetCard(context.Background(), "card-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(card.ID, card.Number, card.Available, card.Currency)
	// Output: card-1 428837******0254 -12.5 USD
}

// What a program must be ready for: the transfer was made, and its response was lost.
func ExampleService_Fail() {
	client, service := cardwiretest.NewClient(t)
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)

	_, err := client.CreateTransfer(context.Background(), cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("100.00"),
	})
	fmt.Println("unknown:", errors.Is(err, cardwire.ErrOutcomeUnknown))
	fmt.Println("executed:", service.Executions(cardwire.OpCreateTransfer, "order-1"))
	// Output:
	// unknown: true
	// executed: 1
}

func ExampleService_Ledger() {
	client, service := cardwiretest.NewClient(t)
	service.SetCard(`{"id":"card-1"}`)

	_, err := client.FreezeCard(context.Background(), cardwire.FreezeCardParams{
		CardID: "card-1", ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range service.Ledger() {
		fmt.Println(e.Op, e.Reference, e.CardID)
	}
	// Output: FreezeCard 5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01 card-1
}

func ExampleService_Requests() {
	client, service := cardwiretest.NewClient(t)
	if _, err := client.ListCards(context.Background(), cardwire.ListCardsParams{PageSize: 5}); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range service.Requests() {
		fmt.Println(r.Method, r.Path, r.Query)
	}
	// Output: GET /api/v1/cards limit=***
}

// A test fails if the program under test prints a secret.
func ExampleNoLeaks() {
	t := &tester{TB: new(testing.T)} // in a test: its own t
	cardwiretest.NoLeaks(t)

	client, _ := cardwiretest.NewClient(t)
	page, err := client.ListCards(context.Background(), cardwire.ListCardsParams{PageSize: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("card", page.Cards[0].Number)                     // as it should be
	fmt.Printf("debug: %x\n", page.Cards[0].Number.Reveal()[:16]) // a mistake

	t.end() // when the test ends
	fmt.Println(t.errors)
	// Output:
	// card 428837******0007
	// debug: 34323838333739393737303030303037
	// [cardwiretest: a card number reached os.Stdout]
}

// A journal of your own, for MySQL or DynamoDB, is tested like this.
func ExampleTestJournal() {
	_ = func(t *testing.T) { // in a test file: func TestMyJournal(t *testing.T)
		cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal {
			return journal.NewMemory() // here: your own, empty
		})
	}
}

// A service is a transport for programs that bring their own HTTP client.
func ExampleService_RoundTrip() {
	service := cardwiretest.New(cardwiretest.WithLatency(time.Millisecond))
	httpClient := &http.Client{Transport: service}

	client, err := cardwire.New("https://api.example.com/api/v1", cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(httpClient))
	if err != nil {
		fmt.Println(err)
		return
	}
	digits, err := client.ListBINsUnderMaintenance(context.Background())
	fmt.Println(digits, err)
	// Output: [53270366 65312478] <nil>
}

// Over loopback, connections are really reset.
func ExampleNewServer() {
	server := cardwiretest.NewServer(t)
	server.Fail("CardCapacity", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)

	capacity, err := server.Client().CardCapacity(context.Background())
	fmt.Println(capacity > 0, err, len(server.Requests()))
	// Output: true <nil> 2
}
