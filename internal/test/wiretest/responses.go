package wiretest

import (
	"fmt"
	"strings"
)

// A BIN, and parts of it that tests edit.
const (
	ForeignFees     = `{"10-99.99":{"fee":0.11,"fee_rate":0.012,"extra_fee":0.13,"extra_fee_rate":0.014}}`
	AuthRequirement = `{"level":"advanced","fields":[{"field":"idType","required":true,"desc":"kind of document"},` +
		`{"field":"selfieAttachmentKey","required":true,"desc":"photo"}]}`

	BIN = `{"id":37,"bin":"493193","type":"share","name":"Travel","network":"VISA","country":"US","avs":1,"3ds":1,` +
		`"day_purchase_limit":1000.5,"single_purchase_limit":200.25,"lifetime_purchase_limit":90000,"maintain":true,` +
		`"weigh":8,"status":true,"api":true,"physical":1,"currency":"USD","foreign_fee_config":` + ForeignFees + `,` +
		`"auth_fee_config":{"fee": 1},"refund_fee_config":{"fee":[2,"3"]},"reversal_fee_config":{"a":{"b":null}},` +
		`"cashback_fee_config":[{"rate": 0.01},7,"x"],"apple_pay":1,"google_wallet":1,"card_nums":55,` +
		`"is_card_count_limited":1,"business_mode":["B2B","B2C"],"auth_level":2,"create_amount":1.05,` +
		`"card_depost_fee":0.02,"allow_create":true,"allow_in":true,"allow_out":true,"allow_suspend":true,` +
		`"allow_enable":true,"allow_frozen":true,` +
		`"allow_unfrozen":true,"allow_destory":true,"create_min_amount":10.01,"create_max_amount":10.02,` +
		`"recharge_min_amount":10.03,"recharge_max_amount":10.04,"withdraw_min_amount":10.05,` +
		`"withdraw_max_amount":10.06,` +
		`"refuse_times":3,"refuse_rate":0.250,"scenes":["ads","travel"],"auth_requirement":` + AuthRequirement + `}`
)

// A card as it is listed and as it is read alone, and its secrets.
const (
	ListedCard = `{"id":"card-1","trade_id":"trade-2","label":"team A","bin_id":37,"card_bin":"493193",` +
		`"card_no":"4931930000001234","cvv":"123","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
		`"expire_date":"08/2027","holder_username":"Maria Silva",` +
		`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048",` +
		`"addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
		`"create_time":"2026-01-02 03:04:05","update_time":"2026-06-07 08:09:10","status":1,"remark":"keep",` +
		`"holder_phone":"912345678","holder_phone_code":"+351","holder_email":"maria@example.com","fee":"1.50",` +
		`"destory_reason":"lost","nickname":"travel","physical":1,"physical_status":2,"deliver_status":3,` +
		`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT"}`

	SingleCard = `{"id":"card-1","trade_id":"trade-2","label":"team A","card_bin":"493193",` +
		`"card_no":"493193******1234","cvv":"***","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
		`"expire_date":"**/****","holder_username":"Maria Silva",` +
		`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048",` +
		`"addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
		`"create_time":"2026-01-02 03:04:05","status":4,"holder_phone":"912345678","holder_phone_code":"351",` +
		`"holder_email":"maria@example.com","fee":"1.50","physical":1,"physical_status":2,"deliver_status":3,` +
		`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT","account_status":5,` +
		`"consumption_scene_type":6,"consumption_scene_config":[{"name":"online","channel_id":71},` +
		`{"name":"shop","channel_id":72}]}`

	CardSecrets = `{"card_no":"493193******1234","cvv":"***","expire_date":"**/****","pan":"q83vAQ=="}`
)

// Page is the response of List cards, the first of three pages.
func Page(cards string) string {
	return Success(`{"total":41,"per_page":20,"current_page":1,"last_page":3,"data":[` + cards + `]}`)
}

// FreezeRequest is the request that freezes a card.
func FreezeRequest(card, reference string) string {
	return "POST /shop/api/v1/cards/suspend\nmultipart/form-data\n\n" +
		"Content-Disposition: form-data; name=\"cardId\"\n\n" + card + "\n\n" +
		"Content-Disposition: form-data; name=\"clientTransactionId\"\n\n" + reference
}

// TransferData is the data of a success of SmallTransfer("M-1").
const TransferData = `{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`

// The service's responses to SmallTransfer("M-1").
var (
	TransferDone       = Exchange{Want: SmallTransferRequest("M-1"), Response: Success(TransferData)}
	TransferRefused    = Refusal(SmallTransferRequest("M-1"))
	TransferBroken     = Exchange{Want: SmallTransferRequest("M-1"), Err: ErrBroken}
	TransferUnreadable = Exchange{
		Want:     SmallTransferRequest("M-1"),
		Response: Success(`{"merchant_order_no":"M-1","api_order_no":"A-7","status":[]}`),
	}
)

// SmallTransferRequest is the request of SmallTransfer.
func SmallTransferRequest(orderNo string) string {
	return TransferRequest(`{"merchantOrderNo":"` + orderNo + `","payoutCurrency":"EUR","transferAmount":"10.50"}`)
}

// OrderExists is a refusal.
const OrderExists = `{"code":422,"msg":"order exists","data":null}`

// Refusal is an exchange that ends with OrderExists.
func Refusal(want string) Exchange { return Exchange{Want: want, Status: 422, Response: OrderExists} }

// RefusalsByNumber are the codes that mean, by the default profile, that a write was not
// executed, with the sentinels that they match.
var RefusalsByNumber = map[int]string{
	400: "Refused", 401: "Refused Unauthorized", 403: "Refused", 404: "Refused NotFound", 405: "Refused",
	413: "Refused", 415: "Refused", 422: "Refused", 429: "Refused RateLimited",
}

// PageRequest is the request of page n.
func PageRequest(n int) string { return fmt.Sprintf("GET /shop/api/v1/cards?page=%d", n) }

// ShortCard is a card with few fields: those that are missing are drift.
func ShortCard(id, more string) string {
	return `{"id":"` + id + `","available":"1.000","pending":0,"frozen":0,"fee":"0.00"` + more + `}`
}

// ShortPage is a response of List cards.
func ShortPage(current, last int, cards ...string) string {
	return Success(fmt.Sprintf(`{"total":9,"per_page":2,"current_page":%d,"last_page":%d,"data":[%s]}`,
		current, last, strings.Join(cards, ",")))
}

// A state, a currency and a transfer as the API returns them.
const (
	State    = `{"code":"CA-ON","name":"Ontario","country":"CA","countryStandardCode":"CAN"}`
	Currency = `{"id":9,"payout_currency":"PHP","transfer_type_id":3,"transfer_type_value":"C2C",` +
		`"payout_method_id":1,"payout_method_value":"Bank Transfer","country":"PHL","country_code":"PH",` +
		`"fee_rate":0.015,"fixed_fee":2.50,` +
		`"min_quota":10.01,"max_quota":5000.02,"year_transfer_amount_quota":50000.03}`
	Transfer = `{"merchant_order_no":"order-1","api_order_no":"api-9","status":"wait_process"}`
)

// TransferSent is the body of a transfer with all its fields.
const TransferSent = `{"merchantOrderNo":"order-1","payoutCurrency":"PHP","transferType":"3","payoutMethod":"1",` +
	`"senderBeneficiaryRelationship":"11","transferAmount":"250.50","senderSourceOfFund":"12",` +
	`"purposeOfRemittance":"13","senderFirstName":"Maria","senderLastName":"Silva \"Z\\","senderGender":"F",` +
	`"senderMobileNumber":"+351 912 345 678",` +
	`"senderIdType":"14","senderIdNumber":"ID-100","senderDateOfBirth":"1990-12-31","senderNationality":"PT",` +
	`"senderIdIssueCountry":"620","senderCountry":"ES","senderAddress":"Rua Augusta 5\u000a2 Esq",` +
	`"receiverNativeFirstName":"José","receiverNativeLastName":"Rizal","receiverIdType":"15",` +
	`"receiverIdNumber":"ID-200","receiverMobileNumber":"+63 917 123 4567","receiverBankAccountNumber":"0001234567",` +
	`"branch":"Makati","swiftCode":"BNORPHMM"}`

// TransferRequest is the request of Create transfer with that body.
func TransferRequest(body string) string {
	return "POST /shop/api/v1/remittance/transfer\napplication/json\n\n" + body
}
