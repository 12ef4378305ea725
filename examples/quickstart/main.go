// Quickstart is a merchant's day: every operation of the service, and one mishap.
//
//	go run ./examples/quickstart
//
// It starts the fake service of package cardwiretest on this machine, and talks to it over
// real HTTP. What it does with a service of yours is the same but for the base URL and the key.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
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
	client, err := cardwire.New(server.URL+"/api/v1", cardwiretest.DefaultKey)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return (&day{client: client, fake: fake}).live(ctx, out)
}

// day is a merchant's day, and what is learned in its course.
type day struct {
	client *cardwire.Client
	fake   *cardwiretest.Service

	report   *tabwriter.Writer           // of a step
	card     cardwire.Card               // the card that is looked at and frozen
	currency cardwire.RemittanceCurrency // the currency that is paid out
}

// live lives the day and writes an account of it to out.
func (d *day) live(ctx context.Context, out io.Writer) error {
	for _, s := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Compare card products", d.compareProducts},
		{"Count the cards", d.countCards},
		{"Look at a card", d.lookAtCard},
		{"See where money can go", d.seeWhereMoneyCanGo},
		{"Freeze the card", d.freezeCard},
		{"Retry and cancel failed operations", d.retryAndCancel},
		{"Upload an identity image", d.uploadImage},
		{"Send money", d.sendMoney},
		{"Send money, and lose the response", d.loseResponse},
	} {
		d.report = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		d.say("%s", s.title)
		failed := s.do(ctx)
		d.say("")
		if err := errors.Join(failed, d.report.Flush()); err != nil {
			return err
		}
	}
	return nil
}

// say writes a line. Tabs end cells, which are aligned with those above.
func (d *day) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.report, format+"\n", args...) // to memory
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
	capacity, err := d.client.CardCapacity(ctx)
	if err != nil {
		return err
	}
	d.say("  BIN\tPRODUCT\tNETWORK\tCURRENCY\tDEPOSIT FEE\tFOREIGN FEE\tSTATE")
	for _, b := range bins {
		state := "open"
		if slices.Contains(maintained, b.BIN) {
			state = "under maintenance"
		}
		d.say("  %s\t%s\t%s\t%s\t%s\t%s\t%s",
			b.BIN, b.Name, b.Network, b.Currency, exact(b.CardDepositFee), foreignFee(b), state)
	}
	d.say("  The account's capacity is %d cards.", capacity)
	return nil
}

// exact writes all digits that were sent: Decimal.String leaves zeros out at the
// end, and 45000.50 would be 45000.5.
func exact(v decimal.Decimal) string { return v.StringFixed(max(0, -v.Exponent())) }

// foreignFee describes the first of the tiers. Whether a rate of 1 is all of the
// amount or a hundredth is undocumented, so nothing is calculated here.
func foreignFee(b cardwire.BIN) string {
	if len(b.ForeignFees) == 0 {
		return "none"
	}
	tier := b.ForeignFees[0]
	return fmt.Sprintf("%s: %s, rate %s", tier.Range, exact(tier.Fee), tier.FeeRate)
}

func (d *day) countCards(ctx context.Context) error {
	const pageSize = 10
	first, err := d.client.ListCards(ctx, cardwire.ListCardsParams{Limit: pageSize})
	if err != nil {
		return err
	}
	cards := map[cardwire.CardStatus]int{}
	available := map[string]decimal.Decimal{}
	for card, err := range d.client.AllCards(ctx, cardwire.ListCardsParams{Limit: pageSize}) {
		if err != nil {
			return err // Error.Page is the page to resume from
		}
		if d.card.ID == "" && card.Status == cardwire.CardActive {
			d.card = card
		}
		cards[card.Status]++
		available[card.Currency] = available[card.Currency].Add(card.Available)
	}
	d.say("  %d cards, on %d pages of %d:", first.Total, first.LastPage, first.PerPage)
	for _, status := range slices.Sorted(maps.Keys(cards)) {
		d.say("  %s\t%d", status, cards[status])
	}
	for _, currency := range slices.Sorted(maps.Keys(available)) {
		d.say("  %s %s can be spent.", exact(available[currency]), currency)
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
	d.say("  card\t%s", card.ID)
	d.say("  number\t%s", card.Number)
	d.say("  status\t%s", card.Status)
	d.say("  available\t%s %s", exact(card.Available), card.Currency)
	// Nothing has to be hidden here: numbers and secrets hide themselves.
	d.say("  listed as\t%s, CVV %s, valid until %s", d.card.Number, d.card.CVV, d.card.Expiry)
	d.say("  secrets\t%s, CVV %s, valid until %s, encrypted number %s",
		secrets.Number, secrets.CVV, secrets.Expiry, secrets.PAN)
	return nil
}

func (d *day) seeWhereMoneyCanGo(ctx context.Context) error {
	currencies, err := d.client.ListRemittanceCurrencies(ctx)
	if err != nil {
		return err
	}
	states, err := d.client.ListRemittanceStates(ctx)
	if err != nil {
		return err
	}
	parts := map[string]int{}
	for _, s := range states {
		parts[s.Country]++
	}
	d.say("  CURRENCY\tCOUNTRY\tBY\tRATE\tFIXED FEE\tFROM\tTO\tSTATES")
	for _, c := range currencies {
		d.say("  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%d", c.PayoutCurrency, c.CountryCode, c.PayoutMethod,
			c.FeeRate, exact(c.FixedFee), exact(c.MinQuota), exact(c.MaxQuota), parts[c.CountryCode])
	}
	d.currency = currencies[0]
	return nil
}

func (d *day) freezeCard(ctx context.Context) error {
	operation, err := d.client.FreezeCard(ctx, cardwire.FreezeCardParams{
		CardID: d.card.ID, ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01",
	})
	if err != nil {
		return err
	}
	d.say("  operation %s, under our ID %s", operation.ID, operation.ClientTransactionID)
	card, err := d.client.GetCard(ctx, d.card.ID)
	if err != nil {
		return err
	}
	d.say("  The card is now %s. Blocked: %t.", card.Status, card.Status.Blocked())
	return nil
}

func (d *day) retryAndCancel(ctx context.Context) error {
	if err := d.client.CancelOperation(ctx, failedTopUp); err != nil {
		return err
	}
	d.say("  cancel %s: done", failedTopUp)
	if err := d.client.RetryOperation(ctx, failedFreeze); err != nil {
		return err
	}
	d.say("  retry  %s: done", failedFreeze)
	return nil
}

func (d *day) uploadImage(ctx context.Context) error {
	var point bytes.Buffer
	if err := png.Encode(&point, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		return err
	}
	file := cardwire.ImageBytes("front.png", point.Bytes()) // ImageFile reads one from a disk
	uploaded, err := d.client.UploadImage(ctx, file)
	if err != nil {
		return err
	}
	d.say("  %s, %d bytes: attachment key %s", file.Filename, file.Size, uploaded.AttachmentKey)
	return nil
}

func (d *day) sendMoney(ctx context.Context) error {
	params := d.transfer("order-2025-0001")
	d.say("  %v", params) // prints no name and no account
	transfer, err := d.client.CreateTransfer(ctx, params)
	if err != nil {
		return err // a program does what NextStep says
	}
	d.say("  order %s is accepted by the service as %s: status %s",
		transfer.MerchantOrderNo, transfer.APIOrderNo, transfer.Status)
	return nil
}

// transfer describes a transfer of the least amount. The order number belongs to
// the transfer, not to the try: it is made and stored before anything is sent.
func (d *day) transfer(orderNo string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo:               orderNo,
		PayoutCurrency:                d.currency.PayoutCurrency,
		TransferType:                  cardwire.TransferTypeC2C,
		PayoutMethod:                  cardwire.PayoutMethodBankTransfer,
		TransferAmount:                decimal.Max(d.currency.MinQuota.RoundCeil(2), decimal.RequireFromString("1.00")),
		SenderFirstName:               "Amelia",
		SenderLastName:                "Stone",
		SenderDateOfBirth:             cardwire.Date{Year: 1990, Month: 5, Day: 17},
		SenderNationality:             "GB",
		SenderCountry:                 "GB",
		SenderAddress:                 "2 St. Martin's le Grand, London",
		ReceiverNativeFirstName:       "Zoë",
		ReceiverNativeLastName:        "Ødegård",
		ReceiverBankAccountNumber:     "EXAMPLE-ACCOUNT-1",
		PurposeOfRemittance:           "1",
		SenderSourceOfFund:            "1",
		SenderIDType:                  "1",
		SenderIDNumber:                "EXAMPLE-ID-1",
		ReceiverIDType:                "1",
		ReceiverIDNumber:              "EXAMPLE-ID-2",
		ReceiverMobileNumber:          "40012345",
		SenderMobileNumber:            "2071838750",
		SenderIDIssueCountry:          "1",
		SenderBeneficiaryRelationship: "1",
	}
}

// loseResponse has the fake service execute a transfer and reset the connection
// instead of responding.
func (d *day) loseResponse(ctx context.Context) error {
	const orderNo = "order-2025-0002"
	d.say("  The fake is told to execute the next transfer, and to reset the connection instead of responding.")
	d.fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	_, err := d.client.CreateTransfer(ctx, d.transfer(orderNo))
	d.say("  %v", err)
	d.say("  What to do: %s.", cardwire.NextStep(err))
	d.say("  Times that the service executed %s: %d", orderNo, d.fake.Executions("CreateTransfer", orderNo))
	return nil
}
