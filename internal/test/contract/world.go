package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// The references of the suite.
const (
	freezeID   = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"
	canceledID = "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11" // of a failed operation, as the next
	retriedID  = "0d9a4c55-3b1e-4f6a-9c77-2f1be0a4d9e2"
)

// image is an image that survives being treated as text.
const image = "GIF89a"

// NewService returns a fake service with the examples of the document: every response is known.
// Each field of a response is at least once not zero, and at least once empty if the API has a
// form for that.
func NewService() *cardwiretest.Service {
	s := cardwiretest.New(cardwiretest.WithCards(0), cardwiretest.WithProfile(Profile()))
	s.SetBIN(Element("bins", 0))
	s.SetBIN(Element("bins", 1))
	another := func(id, change string) {
		s.SetCard(strings.Replace(FullCard(), "card-1", id, 1))
		s.SetCard(fmt.Sprintf(`{"id":%q,"order_id":%[1]q,%s}`, id, change))
	}
	another("card-0", `"trade_id":"trade-0"`) // the only other card that the filters of the suite admit
	s.SetCard(FullCard())
	s.SetCard(EmptyCard())
	// Each of the others is kept out by one filter alone, which therefore cannot
	// be left out unnoticed.
	another("other-account", `"sub_account_id":"sub-2"`)
	another("other-status", `"status":0`)
	another("other-bin", `"bin_id":102,"card_bin":"440102"`)
	another("made-before", `"create_time":"2025-01-01 23:59:59"`)
	another("made-after", `"create_time":"2025-01-03 00:00:00"`)
	another("used-before", `"transaction_times":["2025-01-31 23:59:59"]`)
	another("used-after", `"transaction_times":["2025-02-02 00:00:00"]`)
	s.AddFailedOperation(canceledID, "close")
	s.AddFailedOperation(retriedID, "transfer in")
	return s
}

// FullCard has a value of its own in every field. Its status is not active, which
// would be 0.
func FullCard() string {
	own := `{"order_id":"order-1","sub_account_id":"sub-1","transaction_times":["2025-02-01 10:00:00"]}`
	return merged(own, Data("suspended"), Element("second", 0))
}

// EmptyCard leaves everything that may be empty so.
func EmptyCard() string {
	return merged(Data("empty"), Element("only", 0))
}

// merged is one object with the fields of all; the last value of each counts.
func merged(objects ...string) string {
	fields := map[string]json.RawMessage{}
	for _, o := range objects {
		must(json.Unmarshal([]byte(o), &fields))
	}
	text, err := json.Marshal(fields)
	must(err)
	return string(text)
}

// Executed returns how what a service did differs from what it must have understood in the
// course of the suite.
func Executed(s *cardwiretest.Service) error {
	ledger := s.Ledger()
	for i := range ledger {
		ledger[i].Time = time.Time{}
	}
	if !reflect.DeepEqual(ledger, wantLedger) {
		return fmt.Errorf("ledger: got\n%+v\nnot\n%+v", ledger, wantLedger)
	}
	return nil
}

// wantLedger is what the service must have understood.
var wantLedger = []cardwiretest.Execution{
	{
		Op: "FreezeCard", Reference: freezeID, ID: "f95a25ef-fd1d-47d4-baab-0c4635e18050",
		CardID: "card-1", Action: "freeze",
	},
	{Op: "CancelOperation", Reference: canceledID, Action: "cancel", Kind: "close"},
	{Op: "RetryOperation", Reference: retriedID, Action: "retry", Kind: "transfer_in"},
	{
		Op: "CreateTransfer", Reference: "order-7", ID: "AO3af6bb8dc2eb0488", Action: "transfer",
		Amount: "100.25", Currency: "EUR",
	},
	{Op: "UploadImage", ID: "att/2cbe658a702bf36eefd40af0", Action: "upload", Size: int64(len(image))},
}
