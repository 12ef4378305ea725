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
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// day is a merchant's day, and what is learned in its course.
type day struct {
	client *cardwire.Client
	write  bool                  // things may be changed
	fake   *cardwiretest.Service // nil: the service is a real one

	cancelID string // the failed operation to cancel
	retryID  string // the failed operation to try again
	freezeID string // the UUID of the freeze; "": the client makes one
	orderNo  string // the order number of the transfer

	report   *tabwriter.Writer           // of a step
	card     cardwire.Card               // the card that is looked at and frozen
	currency cardwire.RemittanceCurrency // the currency that is paid out
}

// live lives the day and writes an account of it to out.
func (d *day) live(ctx context.Context, out io.Writer) error {
	steps := []struct {
		title string
		do    func(context.Context) error
		skip  bool
	}{
		{"Compare card products", d.compareProducts, false},
		{"Count the cards", d.countCards, false},
		{"Look at a card", d.lookAtCard, false},
		{"See where money can go", d.seeWhereMoneyCanGo, false},
		{"Freeze the card", d.freezeCard, !d.write},
		{"Retry and cancel failed operations", d.retryAndCancel, !d.write},
		{"Upload an identity image", d.uploadImage, !d.write},
		{"Send money", d.sendMoney, !d.write},
		{"Send money, and lose the response", d.loseResponse, d.fake == nil},
	}
	for _, s := range steps {
		if s.skip {
			continue
		}
		if err := d.tell(out, s.title, func() error { return s.do(ctx) }); err != nil {
			return err
		}
	}
	if !d.write {
		_, err := fmt.Fprintln(out, "Nothing was changed. The flag -write does the rest of the day.")
		return err
	}
	return nil
}

// longDigits are digits that might be a card number. The client prints none, but
// a service may use identifiers that are as long.
var longDigits = regexp.MustCompile(`[0-9]{12,}`)

// tell writes what the step prints, also if it fails.
func (d *day) tell(out io.Writer, title string, step func() error) error {
	var lines bytes.Buffer
	d.report = tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	d.say("%s", title)
	failed := step()
	d.say("")
	if err := d.report.Flush(); err != nil {
		return err
	}
	_, err := out.Write(longDigits.ReplaceAll(lines.Bytes(), []byte("(long number)")))
	return errors.Join(failed, err)
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
		d.say("  %s\t%s\t%s\t%s\t%s\t%s\t%s", b.BIN, b.Name, b.Network, b.Currency, exact(b.CardDepositFee), foreignFee(b), state)
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

// The cards that are counted: real accounts may have very many.
const (
	pageSize = 10
	maxCards = 500
)

func (d *day) countCards(ctx context.Context) error {
	first, err := d.client.ListCards(ctx, cardwire.ListCardsParams{Limit: pageSize})
	if err != nil {
		return err
	}
	counted := 0
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
		if counted++; counted == maxCards {
			break
		}
	}
	d.say("  %d cards, on %d pages of %d. The first %d by status:", first.Total, first.LastPage, first.PerPage, counted)
	for _, status := range slices.Sorted(maps.Keys(cards)) {
		d.say("  %s\t%d", status, cards[status])
	}
	for _, currency := range slices.Sorted(maps.Keys(available)) {
		d.say("  %s %s can be spent.", exact(available[currency]), currency)
	}
	return nil
}

func (d *day) lookAtCard(ctx context.Context) error {
	if d.card.ID == "" {
		d.say("  There is no active card.")
		return nil
	}
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
	d.say("  secrets\t%s, CVV %s, valid until %s, encrypted number %s", secrets.Number, secrets.CVV, secrets.Expiry, secrets.PAN)
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
	if len(currencies) > 0 {
		d.currency = currencies[0]
	}
	return nil
}

func (d *day) freezeCard(ctx context.Context) error {
	if d.card.ID == "" {
		d.say("  There is no active card.")
		return nil
	}
	operation, err := d.client.FreezeCard(ctx, cardwire.FreezeCardParams{
		CardID: d.card.ID, ClientTransactionID: d.freezeID,
	})
	if err != nil {
		d.explain(err)
		return nil
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
	d.result("  cancel "+d.cancelID, d.client.CancelOperation(ctx, d.cancelID))
	d.result("  retry  "+d.retryID, d.client.RetryOperation(ctx, d.retryID))
	return nil
}

func (d *day) result(what string, err error) {
	if err != nil {
		d.say("%s", what)
		d.explain(err)
		return
	}
	d.say("%s: done", what)
}

func (d *day) uploadImage(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "quickstart")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "front.png")
	if err := writeImage(path); err != nil {
		return err
	}
	file, err := cardwire.ImageFile(path)
	if err != nil {
		return err
	}
	uploaded, err := d.client.UploadImage(ctx, file)
	if err != nil {
		d.explain(err)
		return nil
	}
	d.say("  %s, %d bytes: attachment key %s", file.Filename, file.Size, uploaded.AttachmentKey)
	return nil
}

// writeImage writes one white point.
func writeImage(path string) error {
	point := image.NewGray(image.Rect(0, 0, 1, 1))
	point.Pix[0] = 0xff
	var b bytes.Buffer
	if err := png.Encode(&b, point); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

func (d *day) sendMoney(ctx context.Context) error {
	if d.currency.PayoutCurrency == "" {
		d.say("  There is no currency to pay out.")
		return nil
	}
	params := d.transfer(d.orderNo)
	d.say("  %v", params) // prints no name and no account
	transfer, err := d.client.CreateTransfer(ctx, params)
	if err != nil {
		d.explain(err)
		return nil
	}
	d.say("  order %s is accepted by the service as %s: status %s", transfer.MerchantOrderNo, transfer.APIOrderNo, transfer.Status)
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
	if err == nil {
		return errors.New("the response was lost, and the client did not notice")
	}
	d.explain(err)
	d.say("  Times that the service executed %s: %d", orderNo, d.fake.Executions("CreateTransfer", orderNo))
	return nil
}

// explain says what becomes of a write that failed. That follows from NextStep alone,
// not from a status or a message.
func (d *day) explain(err error) {
	d.say("  %s", strings.TrimPrefix(err.Error(), "cardwire: "))
	switch cardwire.NextStep(err) {
	case cardwire.StepDone:
		d.say("  In our books: submitted.")
	case cardwire.StepRetry:
		d.say("  In our books: as before. It can be called again, with the same reference.")
	case cardwire.StepFail:
		d.say("  In our books: failed.")
	case cardwire.StepWait:
		d.say("  In our books: as before. Another call with the reference is in progress.")
	default: // cardwire.StepReconcile
		d.say("  In our books: unresolved, until the service has said what became of %s.", reference(err))
	}
}

func reference(err error) string {
	var failure *cardwire.Error
	if errors.As(err, &failure) && failure.Reference != "" {
		return failure.Reference
	}
	return "it"
}
