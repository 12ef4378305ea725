package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// The failed operations of the suite.
const (
	cancelledID = "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11"
	retriedID   = "0d9a4c55-3b1e-4f6a-9c77-2f1be0a4d9e2"
)

// canary is the number of a card. It fails the Luhn check.
const canary = "4288379977000003"

// otherKinds are failed operations of the kinds that the two above are not.
var otherKinds = []struct{ id, kind string }{
	{"1c2d3e4f-0a1b-4c2d-8e3f-4a5b6c7d8e01", "transfer_out"},
	{"1c2d3e4f-0a1b-4c2d-8e3f-4a5b6c7d8e02", "freeze"},
	{"1c2d3e4f-0a1b-4c2d-8e3f-4a5b6c7d8e03", "unfreeze"},
}

// image is an image that survives being treated as text.
const image = "GIF89a"

// Options are those of a fake service that Prepare can prepare.
func Options() []cardwiretest.Option {
	return []cardwiretest.Option{cardwiretest.WithSeed(1), cardwiretest.WithCards(0), cardwiretest.WithProfile(Profile())}
}

// NewService returns a fake service whose every response is known.
func NewService() *cardwiretest.Service {
	s := cardwiretest.New(Options()...)
	Prepare(s)
	return s
}

// Prepare adds the data of the suite to a service created with Options. Each field of
// a response is at least once not zero, and at least once empty if the API has a form
// for that. Amounts that
// are sent as numbers are written as ECMAScript writes them, because a proxy
// between client and service may do so.
func Prepare(s *cardwiretest.Service) {
	s.AddBIN(fullBIN())
	s.AddBIN(cardwiretest.BIN{ID: 102}) // in place of a seeded one: all of it empty
	for _, change := range []func(*cardwiretest.Card){
		// The only card that the filters of the suite admit as well.
		func(c *cardwiretest.Card) { c.ID, c.TradeID, c.OrderID = "card-0", "trade-0", "order-0" },
		func(*cardwiretest.Card) {},
		func(c *cardwiretest.Card) { *c = EmptyCard() },
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
		c := FullCard()
		if change(&c); c.ID != "card-1" && c.OrderID == "order-1" {
			c.OrderID = c.ID
		}
		s.AddCard(c)
	}
	s.AddFailedOperation(cancelledID, "close")
	s.AddFailedOperation(retriedID, "transfer in")
	for _, o := range otherKinds {
		s.AddFailedOperation(o.id, o.kind)
	}
}

// FullCard has a value of its own in every field. Its status is not active, which
// would be 0.
func FullCard() cardwiretest.Card {
	return cardwiretest.Card{
		ID: "card-1", TradeID: "trade-1", Label: new("marketing/1"), BINID: 101, CardBIN: "428837",
		CardNo: canary, CVV: "907", Currency: "USD", Available: "1250.500", Pending: "12.5", Frozen: "0.25",
		ExpireDate: "09/2028", HolderUsername: "Zoë \"Z\" Ødegård",
		HolderAddress: &cardwiretest.Address{
			City: "Oslo", State: "OS", Country: "NO", PostalCode: "0150", AddressLine1: "Karl Johans gate 1", AddressLine2: "H0201",
		},
		CreateTime: "2025-01-02 03:04:05", UpdateTime: "2025-02-03 04:05:06", Status: 4, Remark: new("checked"),
		HolderPhone: "40012345", HolderPhoneCode: "+47", HolderEmail: "zoe@example.no", Fee: "1.50",
		DestoryReason: new("lost"), Nickname: "travel", Physical: 1, PhysicalStatus: 2, DeliverStatus: 3,
		PlatformWaybillNumber: new("WB1"), PlatformWaybillCompany: new("DHL"),
		AccountStatus: 4, ConsumptionSceneType: 5,
		ConsumptionSceneConfig: []cardwiretest.Scene{{Name: "Ads", ChannelID: 7}},
		OrderID:                "order-1", SubAccountID: "sub-1", TransactionTimes: []string{"2025-02-01 10:00:00"},
	}
}

// EmptyCard leaves everything that may be empty so.
func EmptyCard() cardwiretest.Card {
	return cardwiretest.Card{
		ID: "card-2", TradeID: "trade-2", BINID: 102, CardBIN: "49387519", CardNo: "4938751977000013", CVV: "917",
		CreateTime: "2025-03-01 00:00:00", Status: 4,
	}
}

// fullBIN has a value of its own in every field that can have one.
func fullBIN() cardwiretest.BIN {
	return cardwiretest.BIN{
		ID: 101, BIN: "428837", Type: "share", Name: "Business/US", Network: "VISA", Country: "US",
		AVS: 1, ThreeDS: 1, DayPurchaseLimit: "10000.5", SinglePurchaseLimit: "2500.5", LifetimePurchaseLimit: "3000000",
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
		CreateMinAmount: "10", CreateMaxAmount: "5000", RechargeMinAmount: "5", RechargeMaxAmount: "20000",
		WithdrawMinAmount: "12", WithdrawMaxAmount: "13", RefuseTimes: "3", RefuseRate: "0.15",
		Scenes: []string{"Advertising"},
		AuthRequirement: cardwiretest.AuthRequirement{Level: "advanced", Fields: []cardwiretest.AuthField{
			{Field: "idType", Required: true, Desc: "Type of the document"},
		}},
	}
}

// Executed returns the first difference between what a prepared service did and
// what it must have understood in the course of the suite.
func Executed(s *cardwiretest.Service) error {
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

// wantLedger is what the service must have understood.
var wantLedger = []cardwiretest.Execution{
	{Op: "FreezeCard", Reference: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01", ID: "f95a25ef-fd1d-47d4-baab-0c4635e18050", CardID: "card-1", Action: "freeze"},
	{Op: "CancelOperation", Reference: cancelledID, Action: "cancel", Kind: "close"},
	{Op: "RetryOperation", Reference: retriedID, Action: "retry", Kind: "transfer_in"},
	{Op: "CreateTransfer", Reference: "order-7", ID: "AO3af6bb8dc2eb0488", Action: "transfer", Amount: "100.25", Currency: "EUR"},
	{Op: "UploadImage", ID: "att/2cbe658a702bf36eefd40af0", Action: "upload", Size: int64(len(image))},
	{Op: "CancelOperation", Reference: otherKinds[0].id, Action: "cancel", Kind: "transfer_out"},
	{Op: "CancelOperation", Reference: otherKinds[1].id, Action: "cancel", Kind: "freeze"},
	{Op: "CancelOperation", Reference: otherKinds[2].id, Action: "cancel", Kind: "unfreeze"},
}

// wantExecutions is how often it must have executed each operation.
var wantExecutions = map[string]int{
	"ListCards": 11, "GetCard": 3, "GetCardByOrder": 3, "GetCardSecrets": 1, "FreezeCard": 1, "CancelOperation": 4,
	"RetryOperation": 1, "ListBINs": 2, "ListBINsUnderMaintenance": 1, "CardCapacity": 1, "ListRemittanceStates": 1,
	"ListRemittanceCurrencies": 1, "CreateTransfer": 1, "UploadImage": 1,
}
