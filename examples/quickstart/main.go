// Quickstart is a merchant's day: every operation of the service, and one mishap.
//
//	go run ./examples/quickstart
//
// It starts the fake service of package cardwiretest on this machine, and calls it over real
// HTTP. For a real service only the base URL and the key are different.
package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := status(ctx, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// status runs the program and returns its exit status.
func status(ctx context.Context, out, errs io.Writer) int {
	if err := run(ctx, out); err != nil {
		_, _ = fmt.Fprintln(errs, "quickstart:", err)
		return 1
	}
	return 0
}

// The card operations that failed before the day began.
const (
	failedTopUp  = "0c5b7a1e-2f4d-4c8a-9b3e-6d1f8a7c2e50"
	failedFreeze = "7e9d3b2a-5c1f-4e6b-8a4d-1b2c3d4e5f6a"
)

func run(ctx context.Context, out io.Writer) error {
	fake := cardwiretest.New()
	fake.AddFailedOperation(failedTopUp, "transfer_in")
	fake.AddFailedOperation(failedFreeze, "freeze")
	server := httptest.NewServer(fake)
	defer server.Close()
	memory := journal.NewMemory() // a program that pays opens that of sqljournal
	client, err := cardwire.New(server.URL+"/api/v1", cardwiretest.DefaultKey, cardwire.WithJournal(memory))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return (&day{client: client, fake: fake, out: out}).live(ctx)
}

// day is a merchant's day.
type day struct {
	client *cardwire.Client
	fake   *cardwiretest.Service
	out    io.Writer
	card   cardwire.Card // that is looked at and frozen
}

// live lives the day and writes an account of it.
func (d *day) live(ctx context.Context) error {
	for _, s := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Compare card products", d.compareProducts},
		{"Count the cards", d.countCards},
		{"Look at a card", d.lookAtCard},
		{"Freeze the card", d.freezeCard},
		{"Retry and cancel failed operations", d.retryAndCancel},
		{"Upload an identity image", d.uploadImage},
		{"See where money can go", d.seeWhereMoneyCanGo},
		{"Send money", d.sendMoney},
		{"Send money, and lose the response", d.loseResponse},
	} {
		_, _ = fmt.Fprintln(d.out, s.title)
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *day) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "  "+format+"\n", args...)
}

func (d *day) compareProducts(ctx context.Context) error {
	bins, err := d.client.ListBINs(ctx)
	if err != nil {
		return err
	}
	maintained, err := d.client.ListBINsUnderMaintenance(ctx)
	if err != nil {
		return err
	}
	for _, b := range bins {
		d.say("%s %s, %s, %s: deposit fee %s, under maintenance: %t",
			b.BIN, b.Name, b.Network, b.Currency, exact(b.CardDepositFee), slices.Contains(maintained, b.BIN))
	}
	capacity, err := d.client.CardCapacity(ctx)
	if err == nil {
		d.say("The account's capacity is %d cards.", capacity)
	}
	return err
}

// exact writes all digits that were sent: Decimal.String drops trailing zeros, so that 45000.50
// would be 45000.5.
func exact(v decimal.Decimal) string { return v.StringFixed(max(0, -v.Exponent())) }

func (d *day) countCards(ctx context.Context) error {
	cards := map[cardwire.CardStatus]int{}
	for card, err := range d.client.AllCards(ctx, cardwire.ListCardsParams{PageSize: 10}) {
		if err != nil {
			return err // Error.Page is the page to resume from
		}
		if d.card.ID == "" && card.Status == cardwire.CardActive {
			d.card = card
		}
		cards[card.Status]++
	}
	for _, status := range slices.Sorted(maps.Keys(cards)) {
		d.say("%s: %d", status, cards[status])
	}
	return nil
}

func (d *day) lookAtCard(ctx context.Context) error {
	card, err := d.client.GetCard(ctx, d.card.ID)
	if err != nil {
		return err
	}
	secrets, err := d.client.GetCardSecrets(ctx, d.card.ID)
	if err != nil {
		return err
	}
	d.say("%s is %s, with %s %s", card.ID, card.Status, exact(card.Available), card.Currency)
	// Nothing has to be masked here: numbers and secrets mask themselves.
	d.say("listed as %s, CVV %s, valid until %s", d.card.Number, d.card.CVV, d.card.Expiry)
	d.say("secrets: %s, CVV %s, encrypted number %s", secrets.Number, secrets.CVV, secrets.PAN)
	return nil
}

func (d *day) freezeCard(ctx context.Context) error {
	operation, err := d.client.FreezeCard(ctx, cardwire.FreezeCardParams{
		CardID: d.card.ID, ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01",
	})
	if err != nil {
		return err
	}
	d.say("operation %s, under our ID %s", operation.ID, operation.ClientTransactionID)
	card, err := d.client.GetCard(ctx, d.card.ID)
	if err != nil {
		return err
	}
	d.say("The card is now %s. Blocked: %t.", card.Status, card.Status.Blocked())
	return nil
}

func (d *day) retryAndCancel(ctx context.Context) error {
	if err := d.client.CancelOperation(ctx, failedTopUp); err != nil {
		return err
	}
	d.say("cancel %s: done", failedTopUp)
	if err := d.client.RetryOperation(ctx, failedFreeze); err != nil {
		return err
	}
	d.say("retry  %s: done", failedFreeze)
	return nil
}

func (d *day) uploadImage(ctx context.Context) error {
	var point bytes.Buffer
	if err := png.Encode(&point, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		return err
	}
	file := cardwire.UploadImageParams{Filename: "front.png", Data: point.Bytes()}
	uploaded, err := d.client.UploadImage(ctx, file)
	if err != nil {
		return err
	}
	d.say("%s, %d bytes: attachment key %s", file.Filename, len(file.Data), uploaded.AttachmentKey)
	return nil
}

func (d *day) seeWhereMoneyCanGo(ctx context.Context) error {
	currencies, err := d.client.ListRemittanceCurrencies(ctx)
	if err != nil {
		return err
	}
	for _, c := range currencies {
		d.say("%s to %s by %s: rate %s and %s, from %s to %s", c.PayoutCurrency, c.CountryCode, c.PayoutMethod,
			c.FeeRate, exact(c.FixedFee), exact(c.MinQuota), exact(c.MaxQuota))
	}
	states, err := d.client.ListRemittanceStates(ctx)
	if err == nil {
		d.say("States that a receiver may live in: %d", len(states))
	}
	return err
}

func (d *day) sendMoney(ctx context.Context) error {
	params := transfer("order-2025-0001")
	d.say("%v", params) // prints no name and no account
	sent, err := d.client.CreateTransfer(ctx, params)
	if err != nil {
		return err // a program does what NextStep says
	}
	d.say("order %s is accepted by the service as %s: status %s", sent.MerchantOrderNo, sent.APIOrderNo, sent.Status)
	return nil
}

// transfer describes a transfer. The order number belongs to the transfer, not to one attempt:
// it is created and stored before anything is sent.
func transfer(orderNo string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo:           orderNo,
		PayoutCurrency:            "EUR",
		TransferType:              cardwire.TransferTypeC2C,
		PayoutMethod:              cardwire.PayoutMethodBankTransfer,
		TransferAmount:            decimal.RequireFromString("10.00"),
		SenderFirstName:           "Amelia",
		SenderLastName:            "Stone",
		SenderDateOfBirth:         cardwire.Date{Year: 1990, Month: 5, Day: 17},
		ReceiverNativeFirstName:   "Zoë",
		ReceiverNativeLastName:    "Ødegård",
		ReceiverBankAccountNumber: "EXAMPLE-ACCOUNT-1",
	}
}

// loseResponse has the fake service execute a transfer and reset the connection
// instead of responding.
func (d *day) loseResponse(ctx context.Context) error {
	const orderNo = "order-2025-0002"
	d.say("The fake is told to execute the next transfer, and to reset the connection instead of responding.")
	d.fake.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	_, err := d.client.CreateTransfer(ctx, transfer(orderNo))
	d.say("%v", err)
	d.say("What to do: %s.", cardwire.NextStep(err))
	d.say("Times that the service executed %s: %d", orderNo, d.fake.Executions(cardwire.OpCreateTransfer, orderNo))
	return nil
}
