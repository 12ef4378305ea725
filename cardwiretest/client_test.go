package cardwiretest_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// everything calls every operation and returns what it gave.
func everything(t *testing.T, c *cardwire.Client, s *cardwiretest.Service) []any {
	t.Helper()
	ctx := t.Context()
	s.AddFailedOperation(failedID, "close")
	var out []any
	add := func(v any, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		out = append(out, v)
	}
	page, err := c.ListCards(ctx, cardwire.ListCardsParams{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	add(page, nil)
	for _, card := range page.Cards {
		add(c.GetCard(ctx, card.ID))
		add(c.GetCardByOrder(ctx, card.TradeID))
		add(c.GetCardSecrets(ctx, card.ID))
	}
	active := cardwire.CardActive
	add(c.ListCards(ctx, cardwire.ListCardsParams{Status: &active, CardBIN: "428837", Page: 1}))
	n := 0
	for card, err := range c.AllCards(ctx, cardwire.ListCardsParams{Limit: 7}) {
		n++
		add(card, err)
	}
	add(n, nil)
	add(c.ListBINs(ctx))
	add(c.ListBINsUnderMaintenance(ctx))
	add(c.CardCapacity(ctx))
	add(c.ListRemittanceStates(ctx))
	add(c.ListRemittanceCurrencies(ctx))
	add(c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: page.Cards[0].ID, ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"}))
	add(nil, c.CancelOperation(ctx, failedID))
	s.AddFailedOperation(failedID, "close")
	add(nil, c.RetryOperation(ctx, failedID))
	add(c.UploadImage(ctx, cardwire.ImageBytes("id.png", []byte("\x89PNG1"))))
	add(c.CreateTransfer(ctx, transferParams("order-1")))
	return out
}

func transferParams(order string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: order, PayoutCurrency: "EUR", TransferType: cardwire.TransferTypeC2C,
		PayoutMethod: cardwire.PayoutMethodBankTransfer, TransferAmount: decimal.RequireFromString("100.25"),
		SenderFirstName: "Ada", SenderLastName: "Lovelace", SenderNationality: "GB", SenderCountry: "GB",
		SenderDateOfBirth:         cardwire.Date{Year: 1990, Month: 12, Day: 10},
		ReceiverBankAccountNumber: "DE89370400440532013000",
	}
}

// The client finds nothing to complain about, in process and over loopback, and
// what it reads is the same, quirks or not.
func TestClient(t *testing.T) {
	cardwiretest.NoLeaks(t)
	client, service := cardwiretest.NewClient(t)
	want := everything(t, client, service)

	server := cardwiretest.NewServer(t)
	if got := everything(t, server.Client(cardwire.WithStrictDrift()), server.Service); !reflect.DeepEqual(got, want) {
		t.Error("over loopback the client reads something else")
	}
	for seed := range int64(4) {
		opts := []cardwiretest.Option{cardwiretest.WithSeed(seed), cardwiretest.WithCards(12)}
		client, service = cardwiretest.NewClient(t, opts...)
		want := everything(t, client, service)
		client, service = cardwiretest.NewClient(t, append(opts, cardwiretest.WithQuirks())...)
		got := everything(t, client, service)
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("seed %d: with quirks the client reads\n%+v\nnot\n%+v", seed, got[i], want[i])
			}
		}
	}
}

// renamed is a profile in which nothing has its usual name.
var renamed = cardwire.Profile{
	LimitParam: "size", PageParam: "no", SubAccountParam: "sub", StatusParam: "state", CardBINParam: "bin",
	CreatedFromParam: "made_from", CreatedToParam: "made_to", TransactedFromParam: "used_from", TransactedToParam: "used_to",
	CardIDParam: "which", RetryAction: "again",
}

func TestClientProfile(t *testing.T) {
	client, service := cardwiretest.NewClient(t, cardwiretest.WithProfile(renamed))
	page, err := client.ListCards(t.Context(), cardwire.ListCardsParams{
		Limit: 3, SubAccountID: "sub-1", CreatedFrom: cardwire.Date{Year: 2024, Month: 1, Day: 1},
		CreatedTo: cardwire.Date{Year: 2026, Month: 1, Day: 1}, TransactedFrom: cardwire.Date{Year: 2024, Month: 1, Day: 1},
		TransactedTo: cardwire.Date{Year: 2026, Month: 1, Day: 1},
	})
	if err != nil || len(page.Cards) != 3 {
		t.Error(page, err)
	}
	service.AddFailedOperation(failedID, "close")
	if err := client.RetryOperation(t.Context(), failedID); err != nil {
		t.Error(err)
	}
	server := cardwiretest.NewServer(t, cardwiretest.WithProfile(renamed), cardwiretest.WithKey("another-key"))
	if server.Key != "another-key" {
		t.Error("another key")
	}
	if _, err := server.Client().GetCard(t.Context(), page.Cards[0].ID); err != nil {
		t.Error(err)
	}
}

func TestClientOptions(t *testing.T) {
	tb := &tester{}
	defer tb.end()
	server := cardwiretest.NewServer(tb)
	if server.Client(cardwire.WithTimeout(-1)) != nil || len(tb.errors) != 1 {
		t.Errorf("got %q", tb.errors)
	}
}

func TestRefusedByKind(t *testing.T) {
	client, service := cardwiretest.NewClient(t)
	if _, err := client.GetCard(t.Context(), "nobody"); !errors.Is(err, cardwire.ErrNotFound) {
		t.Error(err)
	}
	p := transferParams("order-1")
	p.TransferAmount = decimal.New(1, 0)
	if _, err := client.CreateTransfer(t.Context(), p); !errors.Is(err, cardwire.ErrRefused) || service.Executions("CreateTransfer", "") != 0 {
		t.Error(err)
	}
}

func TestANilOptionIsNone(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t, nil, cardwiretest.WithCards(3), nil)
	page, err := client.ListCards(t.Context(), cardwire.ListCardsParams{})
	if err != nil || page.Total != 3 || len(service.Requests()) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}
