package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// The references of the suite.
const (
	freezeID    = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"
	cancelledID = "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11" // of a failed operation, as the next
	retriedID   = "0d9a4c55-3b1e-4f6a-9c77-2f1be0a4d9e2"
)

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
	return []cardwiretest.Option{
		cardwiretest.WithSeed(1), cardwiretest.WithCards(0), cardwiretest.WithProfile(Profile()),
	}
}

// NewService returns a fake service whose every response is known.
func NewService() *cardwiretest.Service {
	s := cardwiretest.New(Options()...)
	Prepare(s)
	return s
}

// Prepare adds the examples of the document to a service created with Options. Each field
// of a response is at least once not zero, and at least once empty if the API has a form
// for that. Amounts that are sent as numbers are written as ECMAScript writes them,
// because a proxy between client and service may do so.
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
	c := cardwiretest.Card{OrderID: "order-1", SubAccountID: "sub-1", TransactionTimes: []string{"2025-02-01 10:00:00"}}
	fillCard(&c, "suspended", "second")
	return c
}

// EmptyCard leaves everything that may be empty so.
func EmptyCard() (c cardwiretest.Card) {
	fillCard(&c, "empty", "only")
	return c
}

// fillCard fills in a card as it is read alone, and then what a list has of it.
func fillCard(c *cardwiretest.Card, single, page string) {
	fill(c, exampleResponse(single).Data)
	var p struct{ Data []json.RawMessage }
	must(json.Unmarshal(exampleResponse(page).Data, &p))
	fill(c, p.Data[0])
}

// fullBIN has a value of its own in every field that can have one.
func fullBIN() (b cardwiretest.BIN) {
	var bins []map[string]json.RawMessage
	must(json.Unmarshal(exampleResponse("bins").Data, &bins))
	var fees map[string]json.RawMessage
	must(json.Unmarshal(bins[0]["foreign_fee_config"], &fees))
	delete(bins[0], "foreign_fee_config")
	bins[0]["ThreeDS"] = bins[0]["3ds"]
	text, err := json.Marshal(bins[0])
	must(err)
	fill(&b, text)
	for _, span := range slices.Sorted(maps.Keys(fees)) {
		tier := cardwiretest.FeeTier{Range: span}
		fill(&tier, fees[span])
		b.ForeignFeeConfig = append(b.ForeignFeeConfig, tier)
	}
	return b
}

// fill fills in the fields that are named as those of the document, without underscores.
func fill(v any, text json.RawMessage) {
	var fields map[string]json.RawMessage
	must(json.Unmarshal([]byte(strings.ReplaceAll(string(text), "channel_id", "channelid")), &fields))
	plain := map[string]json.RawMessage{}
	for name, value := range fields {
		if name != "holder_address" || value[0] == '{' { // no address is an empty array
			plain[strings.ReplaceAll(name, "_", "")] = value
		}
	}
	text, err := json.Marshal(plain)
	must(err)
	must(json.Unmarshal(text, v))
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
	{
		Op: "FreezeCard", Reference: freezeID, ID: "f95a25ef-fd1d-47d4-baab-0c4635e18050",
		CardID: "card-1", Action: "freeze",
	},
	{Op: "CancelOperation", Reference: cancelledID, Action: "cancel", Kind: "close"},
	{Op: "RetryOperation", Reference: retriedID, Action: "retry", Kind: "transfer_in"},
	{
		Op: "CreateTransfer", Reference: "order-7", ID: "AO3af6bb8dc2eb0488", Action: "transfer",
		Amount: "100.25", Currency: "EUR",
	},
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
