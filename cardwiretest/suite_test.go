package cardwiretest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// retriedID is another failed operation, so that one can be cancelled and one retried.
const retriedID = "0d9a4c55-3b1e-4f6a-9c77-2f1be0a4d9e2"

// otherKinds are failed operations of the kinds that the two above are not.
var otherKinds = []struct{ id, kind string }{
	{"1c2d3e4f-0a1b-4c2d-8e3f-4a5b6c7d8e01", "transfer_out"},
	{"1c2d3e4f-0a1b-4c2d-8e3f-4a5b6c7d8e02", "freeze"},
	{"1c2d3e4f-0a1b-4c2d-8e3f-4a5b6c7d8e03", "unfreeze"},
}

// suiteProfile has a name for everything, so that every parameter is sent.
func suiteProfile() cardwire.Profile {
	return profileOf("limit", "page", "sub_account_id", "status", "card_bin",
		"created_from", "created_to", "transacted_from", "transacted_to", "id", "retry")
}

// suiteService returns a service whose every reply is known: each member is set
// to something that is not zero at least once, and to nothing at least once
// where the interface has a form for that.
func suiteService() *cardwiretest.Service {
	s := cardwiretest.New(cardwiretest.WithSeed(1), cardwiretest.WithCards(0), cardwiretest.WithProfile(suiteProfile()))
	prepare(s)
	return s
}

func prepare(s *cardwiretest.Service) {
	s.AddBIN(fullBIN())
	s.AddBIN(cardwiretest.BIN{ID: 102}) // in place of a seeded one: all of it empty
	for _, change := range []func(*cardwiretest.Card){
		// The only card that the filters of the suite admit as well.
		func(c *cardwiretest.Card) { c.ID, c.TradeID, c.OrderID = "card-0", "trade-0", "order-0" },
		func(*cardwiretest.Card) {},
		func(c *cardwiretest.Card) { *c = emptyCard() },
		// Each of the others is kept out by one filter alone, which therefore cannot
		// be left out unnoticed.
		func(c *cardwiretest.Card) { c.ID, c.SubAccountID = "other-account", "sub-2" },
		func(c *cardwiretest.Card) { c.ID, c.Status = "other-status", 0 },
		func(c *cardwiretest.Card) { c.ID, c.BINID, c.CardBIN = "other-bin", 102, "440102" },
		func(c *cardwiretest.Card) { c.ID, c.CreateTime = "made-before", "2025-01-01 23:59:59" },
		func(c *cardwiretest.Card) { c.ID, c.CreateTime = "made-after", "2025-01-03 00:00:00" },
		func(c *cardwiretest.Card) { c.ID, c.TransactionTimes = "used-before", []string{"2025-01-31 23:59:59"} },
		func(c *cardwiretest.Card) { c.ID, c.TransactionTimes = "used-after", []string{"2025-02-02 00:00:00"} },
	} {
		c := fullCard()
		c.Status = 4 // active would be 0
		if change(&c); c.ID != "card-1" && c.OrderID == "order-1" {
			c.OrderID = c.ID
		}
		s.AddCard(c)
	}
	s.AddFailedOperation(failedID, "close")
	s.AddFailedOperation(retriedID, "transfer in")
	for _, o := range otherKinds {
		s.AddFailedOperation(o.id, o.kind)
	}
}

// fullBIN has a value of its own in every field that can have one.
func fullBIN() cardwiretest.BIN {
	return cardwiretest.BIN{
		ID: 101, BIN: "428837", Type: "share", Name: "Business/US", Network: "VISA", Country: "US",
		AVS: 1, ThreeDS: 1, DayPurchaseLimit: "10000.5", SinglePurchaseLimit: "2500.50", LifetimePurchaseLimit: "3e6",
		Maintain: true, Weigh: 98, Status: true, API: true, Physical: 1, Currency: "USD",
		ForeignFeeConfig: []cardwiretest.FeeTier{
			{Range: "0-100", Fee: "0.5", FeeRate: "0.015", ExtraFee: "0.2", ExtraFeeRate: "0.003"},
			{Range: "100-1000", Fee: "1", FeeRate: "0.0125", ExtraFee: "0.25", ExtraFeeRate: "0.001"},
			{Range: "1000-999999999", Fee: "2.5", FeeRate: "0.01", ExtraFee: "0.75", ExtraFeeRate: "0.0005"},
		},
		AuthFeeConfig: json.RawMessage(`{"fee":0.3,"fee_rate":0.02}`), RefundFeeConfig: json.RawMessage(`{"fee":0.4}`),
		ReversalFeeConfig: json.RawMessage(`{"fee":0.1}`),
		CashbackFeeConfig: []json.RawMessage{json.RawMessage(`{"rate":0.05}`)},
		ApplePay:          1, GoogleWallet: 1, CardNums: 5, IsCardCountLimited: 1,
		BusinessMode: []string{"B2B", "B2C"}, AuthLevel: 2, CreateAmount: "1.5", CardDepostFee: "0.01",
		AllowCreate: true, AllowIn: true, AllowOut: true, AllowSuspend: true,
		AllowEnable: true, AllowFrozen: true, AllowUnfrozen: true, AllowDestory: true,
		CreateMinAmount: "10", CreateMaxAmount: "5000", RechargeMinAmount: "5", RechargeMaxAmount: "20000.00",
		WithdrawMinAmount: "12", WithdrawMaxAmount: "13", RefuseTimes: "3", RefuseRate: "0.15",
		Scenes: []string{"Advertising"},
		AuthRequirement: cardwiretest.AuthRequirement{Level: "advanced", Fields: []cardwiretest.AuthField{
			{Field: "idType", Required: true, Desc: "Type of the document"},
		}},
	}
}

// step is one call of the suite, and what it must give.
type step struct {
	name string
	call func(cardwire.CallOption) (any, error)
	msg  string // "": success
	want any
}

// suite calls every operation and returns the first difference from what the
// service was prepared to answer, nil if there is none.
func suite(ctx context.Context, c *cardwire.Client, s *cardwiretest.Service) error {
	for _, step := range steps(ctx, c) {
		var response cardwire.Response
		got, err := step.call(cardwire.WithResponse(&response))
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if !reflect.DeepEqual(got, step.want) {
			return fmt.Errorf("%s: got\n%+v\nnot\n%+v", step.name, got, step.want)
		}
		if want := or(step.msg, "success"); response.Message != want {
			return fmt.Errorf("%s: the message is %q, not %q", step.name, response.Message, want)
		}
	}
	ledger := s.Ledger()
	for i := range ledger {
		ledger[i].Time = time.Time{}
	}
	if !reflect.DeepEqual(ledger, wantLedger) {
		return fmt.Errorf("ledger: got\n%+v\nnot\n%+v", ledger, wantLedger)
	}
	for op, want := range wantExecutions {
		if got := s.Executions(op, ""); got != want {
			return fmt.Errorf("%s: executed %d times, not %d", op, got, want)
		}
	}
	return nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func steps(ctx context.Context, c *cardwire.Client) []step {
	return []step{
		{name: "ListCards", want: wantPage(), call: func(o cardwire.CallOption) (any, error) {
			return c.ListCards(ctx, cardwire.ListCardsParams{
				Limit: 1, Page: 2, SubAccountID: "sub-1", Status: new(cardwire.CardSuspended), CardBIN: "428837",
				CreatedFrom: day(2025, 1, 2), CreatedTo: day(2025, 1, 2),
				TransactedFrom: day(2025, 2, 1), TransactedTo: day(2025, 2, 1),
			}, o)
		}},
		// The numbers of this page differ from each other.
		{name: "ListCards by page", want: wantNumbers, call: func(o cardwire.CallOption) (any, error) {
			p, err := c.ListCards(ctx, cardwire.ListCardsParams{Limit: 4, Page: 2}, o)
			if err != nil {
				return nil, err
			}
			got := []any{p.Total, p.PerPage, p.CurrentPage, p.LastPage}
			for _, card := range p.Cards {
				got = append(got, card.ID)
			}
			return got, nil
		}},
		{name: "AllCards", want: wantCards(), call: func(o cardwire.CallOption) (any, error) {
			var got []any
			for card, err := range c.AllCards(ctx, cardwire.ListCardsParams{Limit: 5}, o) {
				switch {
				case err != nil:
					return nil, err
				case card.ID == "card-2":
					got = append(got, card)
				default:
					got = append(got, card.ID)
				}
			}
			return got, nil
		}},
		{name: "GetCard", want: wantSingle(), call: func(o cardwire.CallOption) (any, error) {
			return c.GetCard(ctx, "card-1", o)
		}},
		{name: "GetCard without anything", want: wantSingleEmpty(), call: func(o cardwire.CallOption) (any, error) {
			return c.GetCard(ctx, "card-2", o)
		}},
		{name: "GetCardSecrets", want: wantSecrets, call: func(o cardwire.CallOption) (any, error) {
			secrets, err := c.GetCardSecrets(ctx, "card-1", o)
			if err != nil {
				return nil, err
			}
			return []string{secrets.Number.Reveal(), secrets.CVV.Reveal(), secrets.Expiry.String(), secrets.PAN.Reveal()}, nil
		}},
		{name: "FreezeCard", want: wantOperation(), call: func(o cardwire.CallOption) (any, error) {
			return c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: "freeze-1"}, o)
		}},
		{name: "GetCardByOrder", want: wantFrozen(), call: func(o cardwire.CallOption) (any, error) {
			return c.GetCardByOrder(ctx, "order-1", o)
		}},
		{name: "CancelOperation", call: func(o cardwire.CallOption) (any, error) {
			return nil, c.CancelOperation(ctx, failedID, o)
		}},
		{name: "RetryOperation", call: func(o cardwire.CallOption) (any, error) {
			return nil, c.RetryOperation(ctx, retriedID, o)
		}},
		{name: "ListBINs", want: wantBINs(), call: func(o cardwire.CallOption) (any, error) {
			bins, err := c.ListBINs(ctx, o)
			var got []any
			for i, bin := range bins {
				if i < 2 {
					got = append(got, bin)
				} else {
					got = append(got, bin.BIN)
				}
			}
			return got, err
		}},
		{name: "ListBINsUnderMaintenance", want: []string{"428837", "53270366", "65312478"}, call: func(o cardwire.CallOption) (any, error) {
			return c.ListBINsUnderMaintenance(ctx, o)
		}},
		{name: "CardCapacity", want: int64(606), call: func(o cardwire.CallOption) (any, error) {
			return c.CardCapacity(ctx, o)
		}},
		{name: "ListRemittanceStates", want: wantStates, call: func(o cardwire.CallOption) (any, error) {
			return c.ListRemittanceStates(ctx, o)
		}},
		{name: "ListRemittanceCurrencies", want: wantCurrencies(), call: func(o cardwire.CallOption) (any, error) {
			return c.ListRemittanceCurrencies(ctx, o)
		}},
		{name: "CreateTransfer", want: wantTransfer(), call: func(o cardwire.CallOption) (any, error) {
			return c.CreateTransfer(ctx, fullTransfer(), o)
		}},
		{name: "UploadImage", msg: "Uploaded", want: wantImage(), call: func(o cardwire.CallOption) (any, error) {
			return c.UploadImage(ctx, cardwire.ImageBytes("id.png", []byte("\x89PNG1")), o)
		}},
		// What follows repeats an operation, for values of a parameter that are left.
		{name: "CancelOperation of every kind", call: func(o cardwire.CallOption) (any, error) {
			for _, other := range otherKinds {
				if err := c.CancelOperation(ctx, other.id, o); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}},
		{name: "ListCards of every status", want: []int{0, 1, 1, 0, 0, 8}, call: func(o cardwire.CallOption) (any, error) {
			var got []int
			for status := cardwire.CardLocked; status <= cardwire.CardSuspended; status++ {
				p, err := c.ListCards(ctx, cardwire.ListCardsParams{Status: &status}, o)
				if err != nil {
					return nil, err
				}
				got = append(got, p.Total)
			}
			return got, nil
		}},
	}
}

func day(year int, month time.Month, d int) cardwire.Date {
	return cardwire.Date{Year: year, Month: month, Day: d}
}

// fullTransfer fills in every field that the interface has.
func fullTransfer() cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: "order-7", PayoutCurrency: "EUR", TransferType: "3", PayoutMethod: "1",
		SenderBeneficiaryRelationship: "4", TransferAmount: dec("100.25"), SenderSourceOfFund: "2", PurposeOfRemittance: "7",
		SenderFirstName: "Ada", SenderLastName: "Lovelace", SenderGender: "F", SenderMobileNumber: "447000000000",
		SenderIDType: "1", SenderIDNumber: "X1234567", SenderDateOfBirth: day(1990, 12, 10), SenderNationality: "GB",
		SenderIDIssueCountry: "826", SenderCountry: "GB", SenderAddress: "12 St James's Square",
		ReceiverNativeFirstName: "Jörg", ReceiverNativeLastName: "Weiß", ReceiverIDType: "1", ReceiverIDNumber: "L01X00T47",
		ReceiverMobileNumber: "491700000000", ReceiverBankAccountNumber: "DE89370400440532013000",
	}
}

// What the calls must give.

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

// must unwraps a constructor that fails only if the literal given to it is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func at(date cardwire.Date, hour, minute, second int) cardwire.DateTime {
	return cardwire.DateTime{Date: date, Hour: hour, Minute: minute, Second: second}
}

// wantSingle is card-1 as Get card gives it.
func wantSingle() *cardwire.Card {
	return &cardwire.Card{
		ID: "card-1", TradeID: "trade-1", Label: "marketing/1", CardBIN: "428837",
		Number: must(cardwire.NewCardNumber("428837******0003")), CVV: must(cardwire.NewCVV("***")),
		Currency: "USD", Available: dec("1250.500"), Pending: dec("12.5"), Frozen: dec("0.25"), Fee: dec("1.50"),
		HolderUsername: `Zoë "Z" Ødegård`,
		HolderAddress: &cardwire.Address{
			City: "Oslo", State: "OS", Country: "NO", PostalCode: "0150", Line1: "Karl Johans gate 1", Line2: "H0201",
		},
		HolderPhone: "40012345", HolderPhoneCode: "+47", HolderEmail: "zoe@example.no",
		CreateTime: at(day(2025, 1, 2), 3, 4, 5), Status: cardwire.CardSuspended,
		Physical: true, PhysicalStatus: 2, DeliverStatus: 3, PlatformWaybillNumber: "WB1", PlatformWaybillCompany: "DHL",
		AccountStatus: 4, ConsumptionSceneType: 5,
		ConsumptionSceneConfig: []cardwire.ConsumptionScene{{Name: "Ads", ChannelID: 7}},
	}
}

func wantFrozen() *cardwire.Card {
	card := wantSingle()
	card.Status = cardwire.CardFrozen
	return card
}

// wantPage is the second of the two cards that the filters admit.
func wantPage() *cardwire.CardPage {
	card := *wantSingle()
	card.AccountStatus, card.ConsumptionSceneType, card.ConsumptionSceneConfig = 0, 0, nil
	card.Number, card.CVV = must(cardwire.NewCardNumber(canary)), must(cardwire.NewCVV("907"))
	card.Expiry = cardwire.Expiry{Year: 2028, Month: 9}
	card.BINID, card.UpdateTime = 101, at(day(2025, 2, 3), 4, 5, 6)
	card.Remark, card.DestroyReason, card.Nickname = "checked", "lost", "travel"
	return &cardwire.CardPage{Total: 2, PerPage: 1, CurrentPage: 2, LastPage: 2, Cards: []cardwire.Card{card}}
}

// wantNumbers are total, per_page, current_page and last_page, and the cards of that page.
var wantNumbers = []any{10, 4, 2, 3, "other-status", "other-bin", "made-before", "made-after"}

// wantSingleEmpty is card-2, which holds as little as a card can.
func wantSingleEmpty() *cardwire.Card {
	return &cardwire.Card{
		ID: "card-2", TradeID: "trade-2", CardBIN: "49387519",
		Number: must(cardwire.NewCardNumber("493875******0013")), CVV: must(cardwire.NewCVV("***")),
		Currency: "USD", Available: dec("0.000"), Pending: dec("0"), Frozen: dec("0"), Fee: dec("0.00"),
		CreateTime: at(day(2025, 3, 1), 0, 0, 0), Status: cardwire.CardSuspended,
		ConsumptionSceneConfig: []cardwire.ConsumptionScene{},
	}
}

// wantCards are all cards, card-2 in full.
func wantCards() []any {
	card := *wantSingleEmpty()
	card.ConsumptionSceneConfig = nil
	card.Number, card.CVV = must(cardwire.NewCardNumber("4938751977000013")), must(cardwire.NewCVV("917"))
	card.Expiry = cardwire.Expiry{Year: 2030, Month: 12}
	card.BINID, card.UpdateTime = 102, at(day(2025, 3, 1), 0, 0, 0)
	return []any{
		"card-0", "card-1", card, "other-account", "other-status",
		"other-bin", "made-before", "made-after", "used-before", "used-after",
	}
}

// wantSecrets are the number, the CVV and the expiry as masked, and the ciphertext.
var wantSecrets = []string{"428837******0003", "***", "**/****", "dNud+1a/g5Eo0hyr80hJkkViyKuLJTcGor01dQf3XglgDYPrGhZC61fHru4="}

func wantOperation() *cardwire.CardOperation {
	return &cardwire.CardOperation{ID: "f95a25ef-fd1d-47d4-baab-0c4635e18050", ClientTransactionID: "freeze-1"}
}

// wantBINs are all BINs, the first two in full.
func wantBINs() []any {
	return []any{
		cardwire.BIN{
			ID: 101, BIN: "428837", Type: "share", Name: "Business/US", Network: "VISA", Country: "US", Currency: "USD",
			AVS: true, ThreeDS: true,
			DayPurchaseLimit: dec("10000.5"), SinglePurchaseLimit: dec("2500.50"), LifetimePurchaseLimit: dec("3e6"),
			Maintain: true, Status: true, API: true, Physical: true, Weight: 98,
			ForeignFees: []cardwire.FeeTier{
				{
					Range: "0-100", Low: dec("0"), High: dec("100"), Bounded: true,
					Fee: dec("0.5"), FeeRate: dec("0.015"), ExtraFee: dec("0.2"), ExtraFeeRate: dec("0.003"),
				},
				{
					Range: "100-1000", Low: dec("100"), High: dec("1000"), Bounded: true,
					Fee: dec("1"), FeeRate: dec("0.0125"), ExtraFee: dec("0.25"), ExtraFeeRate: dec("0.001"),
				},
				{
					Range: "1000-999999999", Low: dec("1000"), High: dec("999999999"), Bounded: true,
					Fee: dec("2.5"), FeeRate: dec("0.01"), ExtraFee: dec("0.75"), ExtraFeeRate: dec("0.0005"),
				},
			},
			AuthFeeConfig: json.RawMessage(`{"fee":0.3,"fee_rate":0.02}`), RefundFeeConfig: json.RawMessage(`{"fee":0.4}`),
			ReversalFeeConfig: json.RawMessage(`{"fee":0.1}`),
			CashbackFeeConfig: []json.RawMessage{json.RawMessage(`{"rate":0.05}`)},
			ApplePay:          true, GoogleWallet: true, CardCount: 5, CardCountLimited: true,
			BusinessModes: []string{"B2B", "B2C"}, AuthLevel: 2, CreateAmount: dec("1.5"), CardDepositFee: dec("0.01"),
			AllowCreate: true, AllowIn: true, AllowOut: true, AllowSuspend: true,
			AllowEnable: true, AllowFrozen: true, AllowUnfrozen: true, AllowDestroy: true,
			CreateMinAmount: dec("10"), CreateMaxAmount: dec("5000"),
			RechargeMinAmount: dec("5"), RechargeMaxAmount: dec("20000.00"),
			WithdrawMinAmount: dec("12"), WithdrawMaxAmount: dec("13"), RefuseTimes: dec("3"), RefuseRate: dec("0.15"),
			Scenes: []string{"Advertising"},
			AuthRequirement: cardwire.AuthRequirement{Level: "advanced", Fields: []cardwire.AuthField{
				{Field: "idType", Required: true, Description: "Type of the document"},
			}},
		},
		cardwire.BIN{
			ID: 102, BIN: "440102", Currency: "USD", AuthLevel: 1,
			DayPurchaseLimit: dec("0"), SinglePurchaseLimit: dec("0"), LifetimePurchaseLimit: dec("0"),
			CashbackFeeConfig: []json.RawMessage{}, BusinessModes: []string{}, Scenes: []string{},
			CreateAmount: dec("0"), CardDepositFee: dec("0"), CreateMinAmount: dec("0"), CreateMaxAmount: dec("0"),
			RechargeMinAmount: dec("0"), RechargeMaxAmount: dec("0"), WithdrawMinAmount: dec("0"), WithdrawMaxAmount: dec("0"),
			RefuseTimes: dec("0"), RefuseRate: dec("0"),
			AuthRequirement: cardwire.AuthRequirement{Level: "base", Fields: []cardwire.AuthField{}},
		},
		"531847", "53270366", "601187", "65312478", "559666",
	}
}

var wantStates = []cardwire.RemittanceState{
	{Code: "CA", Name: "California", Country: "US", CountryStandardCode: "USA"},
	{Code: "NY", Name: "New York", Country: "US", CountryStandardCode: "USA"},
	{Code: "TX", Name: "Texas", Country: "US", CountryStandardCode: "USA"},
	{Code: "11", Name: "北京市", Country: "CN", CountryStandardCode: "CHN"},
	{Code: "31", Name: "上海市", Country: "CN", CountryStandardCode: "CHN"},
	{Code: "BY", Name: "Bayern", Country: "DE", CountryStandardCode: "DEU"},
	{Code: "NW", Name: "Nordrhein-Westfalen", Country: "DE", CountryStandardCode: "DEU"},
	{Code: "00", Name: "Metro Manila / NCR", Country: "PH", CountryStandardCode: "PHL"},
	{Code: "07", Name: "Cebu", Country: "PH", CountryStandardCode: "PHL"},
	{Code: "MH", Name: "Maharashtra", Country: "IN", CountryStandardCode: "IND"},
	{Code: "SG", Name: "Singapore", Country: "SG", CountryStandardCode: "SGP"},
}

func wantCurrencies() []cardwire.RemittanceCurrency {
	entry := func(id int64, currency, country, code, rate, fixed, least, most, year string) cardwire.RemittanceCurrency {
		return cardwire.RemittanceCurrency{
			ID: id, PayoutCurrency: currency, Country: country, CountryCode: code,
			TransferTypeID: 3, TransferType: "C2C", PayoutMethodID: 1, PayoutMethod: "Bank Transfer",
			FeeRate: dec(rate), FixedFee: dec(fixed),
			MinQuota: dec(least), MaxQuota: dec(most), YearTransferAmountQuota: dec(year),
		}
	}
	return []cardwire.RemittanceCurrency{
		entry(1, "EUR", "DEU", "DE", "0.0035", "1.5", "10", "50000", "500000"),
		entry(2, "EUR", "FRA", "FR", "0.004", "1.5", "10", "45000.50", "500000"),
		entry(3, "GBP", "GBR", "GB", "0.0035", "1.2", "10", "40000", "400000"),
		entry(4, "PHP", "PHL", "PH", "0.008", "90", "500", "2500000", "25000000"),
		entry(5, "INR", "IND", "IN", "0.0075", "0", "1000", "1000000", "10000000"),
		entry(6, "CNY", "CHN", "CN", "0.006", "50", "100", "300000", "600000"),
		entry(7, "USD", "USA", "US", "0.0025", "25", "50", "100000", "1000000"),
	}
}

func wantTransfer() *cardwire.Transfer {
	return &cardwire.Transfer{MerchantOrderNo: "order-7", APIOrderNo: "AO3af6bb8dc2eb0488", Status: "wait_process"}
}

func wantImage() *cardwire.UploadedImage {
	return &cardwire.UploadedImage{AttachmentKey: "att/46a6078c5df9a6ba6dd623c2"}
}

// wantLedger is what the service must have understood.
var wantLedger = []cardwiretest.Execution{
	{Op: "FreezeCard", Reference: "freeze-1", ID: "f95a25ef-fd1d-47d4-baab-0c4635e18050", CardID: "card-1", Action: "freeze"},
	{Op: "CancelOperation", Reference: failedID, Action: "cancel", Kind: "close"},
	{Op: "RetryOperation", Reference: retriedID, Action: "retry", Kind: "transfer_in"},
	{Op: "CreateTransfer", Reference: "order-7", ID: "AO3af6bb8dc2eb0488", Action: "transfer", Amount: "100.25", Currency: "EUR"},
	{Op: "UploadImage", ID: "att/46a6078c5df9a6ba6dd623c2", Action: "upload", Size: 5},
	{Op: "CancelOperation", Reference: otherKinds[0].id, Action: "cancel", Kind: "transfer_out"},
	{Op: "CancelOperation", Reference: otherKinds[1].id, Action: "cancel", Kind: "freeze"},
	{Op: "CancelOperation", Reference: otherKinds[2].id, Action: "cancel", Kind: "unfreeze"},
}

// wantExecutions is how often it must have answered.
var wantExecutions = map[string]int{
	"ListCards": 10, "GetCard": 3, "GetCardByOrder": 3, "GetCardSecrets": 1, "FreezeCard": 1, "CancelOperation": 4,
	"RetryOperation": 1, "ListBINs": 1, "ListBINsUnderMaintenance": 1, "CardCapacity": 1, "ListRemittanceStates": 1,
	"ListRemittanceCurrencies": 1, "CreateTransfer": 1, "UploadImage": 1,
}

func TestSuite(t *testing.T) {
	t.Parallel()
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		s := suiteService()
		require.NoError(t, suite(t.Context(), suiteClient(t, s), s))
	})
	t.Run("over loopback", func(t *testing.T) {
		t.Parallel()
		s := cardwiretest.NewServer(t, cardwiretest.WithSeed(1), cardwiretest.WithCards(0), cardwiretest.WithProfile(suiteProfile()))
		prepare(s.Service)
		require.NoError(t, suite(t.Context(), s.Client(cardwire.WithStrictDrift()), s.Service))
	})
}

// suiteClient returns a client that takes every deviation for an error.
func suiteClient(t *testing.T, way http.RoundTripper, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append(opts,
		cardwire.WithHTTPClient(&http.Client{Transport: way}), cardwire.WithProfile(suiteProfile()), cardwire.WithStrictDrift())...)
	require.NoError(t, err)
	return c
}
