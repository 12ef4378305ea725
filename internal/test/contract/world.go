package contract

import (
	"fmt"
	"reflect"
	"strings"
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
	s.SetBIN(fullBIN)
	s.SetBIN(emptyBIN)
	another := func(id, change string) {
		s.SetCard(strings.Replace(FullCard, "card-1", id, 1))
		s.SetCard(fmt.Sprintf(`{"id":%q,"order_id":%[1]q,%s}`, id, change))
	}
	another("card-0", `"trade_id":"trade-0"`) // the only other card that the filters of the suite admit
	s.SetCard(FullCard)
	s.SetCard(EmptyCard)
	// Each of the others is kept out by one filter alone, which therefore cannot
	// be left out unnoticed.
	another("other-account", `"sub_account_id":"sub-2"`)
	another("other-status", `"status":0`)
	another("other-bin", `"bin_id":102,"card_bin":"440102"`)
	another("made-before", `"create_time":"2025-01-01 23:59:59"`)
	another("made-after", `"create_time":"2025-01-03 00:00:00"`)
	another("used-before", `"transaction_times":["2025-01-31 23:59:59"]`)
	another("used-after", `"transaction_times":["2025-02-02 00:00:00"]`)
	s.AddFailedOperation(cancelledID, "close")
	s.AddFailedOperation(retriedID, "transfer in")
	for _, o := range otherKinds {
		s.AddFailedOperation(o.id, o.kind)
	}
}

// FullCard has a value of its own in every field. Its status is not active, which
// would be 0.
const FullCard = `{
	"id":"card-1","trade_id":"trade-1","label":"marketing/1","bin_id":101,"card_bin":"428837",
	"card_no":"4288379977000003","cvv":"907","currency":"USD","available":"1250.500","pending":12.5,"frozen":0.25,
	"expire_date":"09/2028","holder_username":"Zoë \"Z\" Ødegård",
	"holder_address":{"city":"Oslo","state":"OS","country":"NO","postalCode":"0150",
		"addressLine1":"Karl Johans gate 1","addressLine2":"H0201"},
	"create_time":"2025-01-02 03:04:05","update_time":"2025-02-03 04:05:06","status":4,"remark":"checked",
	"holder_phone":"40012345","holder_phone_code":"+47","holder_email":"zoe@example.no","fee":"1.50",
	"destory_reason":"lost","nickname":"travel","physical":1,"physical_status":2,"deliver_status":3,
	"platform_waybill_number":"WB1","platform_waybill_company":"DHL",
	"account_status":4,"consumption_scene_type":5,"consumption_scene_config":[{"name":"Ads","channel_id":7}],
	"order_id":"order-1","sub_account_id":"sub-1","transaction_times":["2025-02-01 10:00:00"]
}`

// EmptyCard leaves everything that may be empty so.
const EmptyCard = `{
	"id":"card-2","trade_id":"trade-2","bin_id":102,"card_bin":"49387519","card_no":"4938751977000013","cvv":"917",
	"create_time":"2025-03-01 00:00:00","status":4
}`

// fullBIN has a value of its own in every field that can have one.
const fullBIN = `{
	"id":101,"bin":"428837","type":"share","name":"Business/US","network":"VISA","country":"US","avs":1,"3ds":1,
	"day_purchase_limit":10000.5,"single_purchase_limit":2500.5,"lifetime_purchase_limit":3000000,
	"maintain":true,"weigh":98,"status":true,"api":true,"physical":1,"currency":"USD",
	"foreign_fee_config":{
		"0-100":{"fee":0.5,"fee_rate":0.015,"extra_fee":0.2,"extra_fee_rate":0.003},
		"100-1000":{"fee":1,"fee_rate":0.0125,"extra_fee":0.25,"extra_fee_rate":0.001},
		"1000-999999999":{"fee":2.5,"fee_rate":0.01,"extra_fee":0.75,"extra_fee_rate":0.0005}
	},
	"auth_fee_config":{"fee":0.3,"fee_rate":0.02},"refund_fee_config":{"fee":0.4},"reversal_fee_config":{"fee":0.1},
	"cashback_fee_config":[{"rate":0.05}],"apple_pay":1,"google_wallet":1,"card_nums":5,"is_card_count_limited":1,
	"business_mode":["B2B","B2C"],"auth_level":2,"create_amount":1.5,"card_depost_fee":0.01,
	"allow_create":true,"allow_in":true,"allow_out":true,"allow_suspend":true,
	"allow_enable":true,"allow_frozen":true,"allow_unfrozen":true,"allow_destory":true,
	"create_min_amount":10,"create_max_amount":5000,"recharge_min_amount":5,"recharge_max_amount":20000,
	"withdraw_min_amount":12,"withdraw_max_amount":13,"refuse_times":3,"refuse_rate":0.15,"scenes":["Advertising"],
	"auth_requirement":{"level":"advanced","fields":[
		{"field":"idType","required":true,"desc":"Type of the document"}
	]}
}`

// emptyBIN is as empty as a BIN can be.
const emptyBIN = `{
	"id":102,"bin":"440102","type":"","name":"","network":"","country":"US","avs":0,"3ds":0,
	"day_purchase_limit":0,"single_purchase_limit":0,"lifetime_purchase_limit":0,
	"maintain":false,"weigh":0,"status":false,"api":false,"physical":0,"currency":"USD","foreign_fee_config":{},
	"auth_fee_config":null,"refund_fee_config":null,"reversal_fee_config":null,"cashback_fee_config":[],
	"apple_pay":0,"google_wallet":0,"card_nums":0,"is_card_count_limited":0,"business_mode":[],"auth_level":1,
	"create_amount":0,"card_depost_fee":0,"allow_create":false,"allow_in":false,"allow_out":false,
	"allow_suspend":false,"allow_enable":false,"allow_frozen":false,"allow_unfrozen":false,"allow_destory":false,
	"create_min_amount":0,"create_max_amount":0,"recharge_min_amount":0,"recharge_max_amount":0,
	"withdraw_min_amount":0,"withdraw_max_amount":0,"refuse_times":0,"refuse_rate":0,"scenes":[],
	"auth_requirement":{"level":"base","fields":[]}
}`

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
