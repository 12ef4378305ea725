package cardwiretest_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

const (
	failedID = "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11"
	freezeID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"
	// canary is the number of card-1. It fails the Luhn check.
	canary = "4288379977000003"
)

// none is the option for a service without cards.
var none = cardwiretest.WithCards(0)

// twoCards adds card-1 with a value of its own in every field, and card-2, which is
// as empty as can be.
func twoCards(s *cardwiretest.Service) {
	s.SetCard(contract.FullCard())
	s.SetCard(contract.EmptyCard())
}

// The document's two cards, as they are listed and as they are read alone.
var (
	listedFull, listedEmpty = listed("second"), listed("only")
	singleFull, singleEmpty = string(dataOf("suspended")), string(dataOf("empty"))
)

// dataOf returns the data of an example of the document.
func dataOf(example string) json.RawMessage {
	var response struct{ Data json.RawMessage }
	if err := json.Unmarshal(contract.Example(example), &response); err != nil {
		panic(err)
	}
	return response.Data
}

// listed returns the card of an example that is a page.
func listed(example string) string {
	var page struct{ Data []json.RawMessage }
	if err := json.Unmarshal(dataOf(example), &page); err != nil {
		panic(err)
	}
	return string(page.Data[0])
}

func TestListCards(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		twoCards(w.Service)
		succeeded(t, w.ask(t, "GET /cards"),
			`{"total":2,"per_page":20,"current_page":1,"last_page":1,"data":[`+listedFull+`,`+listedEmpty+`]}`)
		succeeded(t, w.ask(t, "GET /cards?limit=1&page=2"),
			`{"total":2,"per_page":1,"current_page":2,"last_page":2,"data":[`+listedEmpty+`]}`)
		succeeded(t, w.ask(t, "GET /cards?page=7"),
			`{"total":2,"per_page":20,"current_page":7,"last_page":1,"data":[]}`)
		succeeded(t, w.ask(t, "GET /cards?status=3&limit=500"),
			`{"total":0,"per_page":100,"current_page":1,"last_page":1,"data":[]}`)
		assert.Equal(t, 4, w.Executions("ListCards", ""))
	}, none)
}

func TestListCardsFilters(t *testing.T) {
	w := inProcess(none, cardwiretest.WithProfile(renamed))
	twoCards(w.Service)
	w.SetCard(`{"id":"card-1","status":0}`)
	for query, ids := range map[string][]string{
		"size=1":               {"card-1"},
		"size=1&no=2":          {"card-2"},
		"state=4":              {"card-2"},
		"state=-1":             nil,
		"bin=428837":           {"card-1"},
		"bin=4288":             nil,
		"sub=sub-1":            {"card-1"},
		"made_from=2025-02-01": {"card-2"},
		"made_to=2025-01-02":   {"card-1"},
		"made_from=2025-01-02&made_to=2025-01-02": {"card-1"},
		"used_from=2025-02-01&used_to=2025-02-01": {"card-1"},
		"used_from=2025-02-02":                    nil,
		"used_to=2025-01-31":                      nil,
	} {
		assert.Equal(t, ids, idsOf(t, w.ask(t, "GET /cards?"+query)), query)
	}
	refused(t, w.ask(t, "GET /cards?limit=1"), 422, "the parameter limit is unknown")
	succeeded(t, w.ask(t, "GET /cards/info?which=card-2"), singleEmpty)
}

func idsOf(t *testing.T, v seen) (ids []string) {
	t.Helper()
	var page struct {
		Data struct{ Data []struct{ ID string } }
	}
	require.NoError(t, json.Unmarshal([]byte(v.body), &page), v.body)
	require.Equal(t, 200, v.status)
	for _, c := range page.Data.Data {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestGetCard(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		twoCards(w.Service)
		succeeded(t, w.ask(t, "GET /cards/info?id=card-1"), singleFull)
		succeeded(t, w.ask(t, "GET /cards/info?id=order-1"), singleFull)
		succeeded(t, w.ask(t, "GET /cards/info?id=trade-2"), singleEmpty)
		refused(t, w.ask(t, "GET /cards/info?id=trade-1"), 404, "the parameter id names no card and no order")
		assert.Equal(t, 3, w.Executions("GetCardByOrder", ""))
	}, none)
}

// secretsOf returns the request for the secrets of a card.
func secretsOf(cardID string) string {
	return "POST /cards/private\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\n\ncardId=" + cardID
}

func TestGetCardSecrets(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		twoCards(w.Service)
		got := w.ask(t, secretsOf("card-1"))
		head, pan, _ := strings.Cut(got.body, `,"pan":"`)
		pan, tail, _ := strings.Cut(pan, `"`)
		got.body = head + tail
		succeeded(t, got, `{"card_no":"428837******0003","cvv":"***","expire_date":"**/****"}`)
		assert.Equal(t, canary, decrypt(t, pan))
		refused(t, w.ask(t, secretsOf("card-9")), 404, "the field cardId names no card")
	}, none)
}

func decrypt(t *testing.T, pan string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(pan)
	require.NoError(t, err)
	key := sha256.Sum256([]byte(cardwiretest.DefaultKey))
	block, err := aes.NewCipher(key[:])
	require.NoError(t, err)
	cipher.NewCTR(block, b[:16]).XORKeyStream(b[16:], b[16:])
	return string(b[16:])
}

// freezing returns the request that freezes a card.
func freezing(cardID, clientTransactionID string) string {
	return "POST /cards/suspend\nContent-Type: multipart/form-data; boundary=xx\n\n" +
		part("cardId", cardID) + part("clientTransactionId", clientTransactionID) + "--xx--\n"
}

func part(name, value string) string {
	return fmt.Sprintf("--xx\nContent-Disposition: form-data; name=%q\n\n%s\n", name, value)
}

func adjusting(id, action string) string {
	return "POST /cards/adjustAction\nContent-Type: application/x-www-form-urlencoded\n\n" +
		"client_transaction_id=" + id + "&type=" + action
}

const notAdjustable = "the field client_transaction_id names no failed operation of a kind that can be adjusted"

func TestFreezeCard(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		twoCards(w.Service)
		first, second := w.ask(t, freezing("card-1", failedID)), w.ask(t, freezing("card-1", failedID))
		ledger := w.Ledger()
		require.Len(t, ledger, 2)
		succeeded(t, first, `"`+ledger[0].ID+`"`)
		succeeded(t, second, `"`+ledger[1].ID+`"`)
		assert.Len(t, ledger[0].ID, 36)
		assert.NotEqual(t, ledger[0].ID, ledger[1].ID)
		assert.NotZero(t, ledger[0].Time)
		ledger[0].ID, ledger[0].Time = "", ledger[1].Time
		assert.Equal(t, cardwiretest.Execution{
			Op: "FreezeCard", Reference: failedID, CardID: "card-1", Action: "freeze", Time: ledger[1].Time,
		}, ledger[0])
		frozen := strings.Replace(listedFull, `"status":4`, `"status":1`, 1)
		frozen = strings.Replace(frozen, "2025-02-03 04:05:06", "2025-03-03 09:30:02", 1)
		succeeded(t, w.ask(t, "GET /cards?status=1"),
			`{"total":1,"per_page":20,"current_page":1,"last_page":1,"data":[`+frozen+`]}`)
		refused(t, w.ask(t, adjusting(failedID, "cancel")), 422, notAdjustable)
	}, none)
}

func TestFreezeCardRefusals(t *testing.T) {
	w := inProcess(none)
	twoCards(w.Service)
	refused(t, w.ask(t, freezing("card-9", freezeID)), 404, "the field cardId names no card")
	for _, status := range []string{"2", "3"} {
		w.SetCard(`{"id":"card-1","status":` + status + `}`)
		got := w.ask(t, freezing("card-1", freezeID))
		refused(t, got, 422, "the field cardId names a card that is closed or closing")
	}
	assert.Empty(t, w.Ledger())
	unnamed := strings.Replace(freezing("card-2", ""), part("clientTransactionId", ""), "", 1)
	assert.Equal(t, 200, w.ask(t, unnamed).status)
}

func TestAdjust(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		w.AddFailedOperation(failedID, "transfer in")
		succeeded(t, w.ask(t, adjusting(strings.ToUpper(failedID), "cancel")), "true")
		refused(t, w.ask(t, adjusting(failedID, "cancel")), 422, notAdjustable)
		refused(t, w.ask(t, adjusting(failedID, "retry")), 422, notAdjustable)
		w.AddFailedOperation(failedID, "close")
		succeeded(t, w.ask(t, adjusting(failedID, "retry")), "true")
		w.AddFailedOperation(failedID, "create")
		refused(t, w.ask(t, adjusting(failedID, "retry")), 422, notAdjustable)
		refused(t, w.ask(t, adjusting("00000000-0000-4000-8000-000000000000", "cancel")), 422, notAdjustable)
		assert.Equal(t, 1, w.Executions("CancelOperation", ""))
		assert.Equal(t, 1, w.Executions("RetryOperation", failedID))
		assert.Equal(t, "close retry", w.Ledger()[1].Kind+" "+w.Ledger()[1].Action)
	})
}

const transfer = `POST /remittance/transfer
Content-Type: application/json

{"merchantOrderNo":"order-1","payoutCurrency":"EUR","transferType":"3","payoutMethod":"1",
"senderBeneficiaryRelationship":"4","transferAmount":"100.25","senderSourceOfFund":"2","purposeOfRemittance":"7",
"senderFirstName":"Ada","senderLastName":"Lovelace","senderGender":"F","senderMobileNumber":"447000000000",
"senderIdType":"1","senderIdNumber":"X1234567","senderDateOfBirth":"1990-12-10","senderNationality":"GB",
"senderIdIssueCountry":"826","senderCountry":"GB","senderAddress":"12 St James's Square",
"receiverNativeFirstName":"Jörg","receiverNativeLastName":"Weiß","receiverIdType":"1","receiverIdNumber":"L01X00T47",
"receiverMobileNumber":"491700000000","receiverBankAccountNumber":"DE89370400440532013000"}`

func TestCreateTransfer(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		first, second := w.ask(t, transfer), w.ask(t, transfer)
		e := w.Ledger()
		require.Len(t, e, 2)
		order := `{"merchant_order_no":"order-1","api_order_no":"%s","status":"wait_process"}`
		succeeded(t, first, fmt.Sprintf(order, e[0].ID))
		succeeded(t, second, fmt.Sprintf(order, e[1].ID))
		assert.NotEqual(t, e[0].ID, e[1].ID)
		assert.Equal(t, "CreateTransfer transfer 100.25 EUR",
			strings.Join([]string{e[0].Op, e[0].Action, e[0].Amount, e[0].Currency}, " "))
		assert.Equal(t, 2, w.Executions("CreateTransfer", "order-1"))
	})
}

func TestDeduplication(t *testing.T) {
	w := inProcess(cardwiretest.WithDeduplication(), none)
	twoCards(w.Service)
	w.AddFailedOperation(failedID, "freeze")
	for _, request := range []string{transfer, freezing("card-1", freezeID), adjusting(failedID, "cancel")} {
		first, second := w.ask(t, request), w.ask(t, request)
		assert.Equal(t, 200, first.status)
		assert.Equal(t, first.body, second.body)
	}
	assert.Len(t, w.Ledger(), 3)
	w.AddFailedOperation(failedID, "freeze")
	w.ask(t, adjusting(failedID, "cancel"))
	assert.Equal(t, 2, w.Executions("CancelOperation", failedID), "it failed again")
}

const image = "--xx\nContent-Disposition: form-data; name=\"file\"; filename=\"id.png\"\n" +
	"Content-Type: image/png\n\n\x89PNG1\n--xx--\n"

func TestUploadImage(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		got := w.ask(t, "POST /cards/upload\nContent-Type: multipart/form-data; boundary=xx\n\n"+image)
		e := w.Ledger()
		require.Len(t, e, 1)
		expect(t, got, 200, `{"code":200,"msg":"Uploaded","data":{"attachment_key":"`+e[0].ID+`"}}`)
		assert.Regexp(t, "^att/[0-9a-f]{24}$", e[0].ID)
		assert.Equal(t, "UploadImage  5", fmt.Sprint(e[0].Op, " ", e[0].Reference, " ", e[0].Size))
		assert.Equal(t, 1, w.Executions("UploadImage", ""))
	})
}

func TestListBINs(t *testing.T) {
	const first = `{"code":200,"msg":"success","data":[{"id":101,"bin":"428837","type":"share","name":"A/B",
		"network":"VISA","country":"US","avs":0,"3ds":1,"day_purchase_limit":1e4,"single_purchase_limit":2500.50,
		"lifetime_purchase_limit":1000000,"maintain":true,"weigh":100,"status":true,"api":true,"physical":0,
		"currency":"USD","foreign_fee_config":{"0-100":{"fee":0.5,"fee_rate":0.015,"extra_fee":0,"extra_fee_rate":0},
		"100-1000":{"fee":1,"fee_rate":0.0125,"extra_fee":0.25,"extra_fee_rate":0.001},
		"1000-999999999":{"fee":2.5,"fee_rate":0.01,"extra_fee":0.5,"extra_fee_rate":0.0005}},
		"auth_fee_config":{"fee":0.3,"fee_rate":0},"refund_fee_config":null,"reversal_fee_config":{"fee":0.1},
		"cashback_fee_config":[{"rate":0.01}],"apple_pay":1,"google_wallet":0,"card_nums":4,"is_card_count_limited":0,
		"business_mode":["B2B","B2C"],"auth_level":1,"create_amount":1.5,"card_depost_fee":0.01,
		"allow_create":true,"allow_in":true,"allow_out":true,"allow_suspend":true,
		"allow_enable":true,"allow_frozen":true,"allow_unfrozen":true,"allow_destory":true,
		"create_min_amount":10,"create_max_amount":5000,"recharge_min_amount":5,"recharge_max_amount":20000.00,
		"withdraw_min_amount":0,"withdraw_max_amount":0,"refuse_times":3,"refuse_rate":0.15,
		"scenes":["Advertising","E-commerce / retail"],"auth_requirement":{"level":"base","fields":[
		{"field":"idType","required":true,"desc":"Type of the identity document"},
		{"field":"idFrontAttachmentKey","required":true,"desc":"Front of the identity document / 证件正面"},
		{"field":"selfieAttachmentKey","required":false,"desc":"Selfie"}]}},`
	bothWays(t, func(t *testing.T, w way) {
		w.SetBIN(`{"id":101,"name":"A/B","maintain":true,"day_purchase_limit":1e4}`)
		got := w.ask(t, "GET /bins").body
		assert.Equal(t, joined(first), got[:min(len(got), len(joined(first)))])
		w.SetBIN(`{"currency":"CHF"}`)
		assert.Contains(t, w.ask(t, "GET /bins").body, `{"id":1008,"bin":"441008","type":"share",`)
		succeeded(t, w.ask(t, "GET /bins/maintenance"), `["428837","53270366","65312478","441008"]`)
	})
}

func TestCapacityAndRemittanceLists(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		succeeded(t, w.ask(t, "GET /account/capacity"), "606")
		assert.Contains(t, w.ask(t, "GET /remittance/states").body, joined(`{"code":200,"msg":"success","data":[
			{"code":"CA","name":"California","country":"US","countryStandardCode":"USA"},`))
		assert.Contains(t, w.ask(t, "GET /remittance/currency").body, joined(`{"code":200,"msg":"success","data":[
			{"id":1,"payout_currency":"EUR","transfer_type_id":3,"transfer_type_value":"C2C",
			"payout_method_id":1,"payout_method_value":"Bank Transfer","country":"DEU","country_code":"DE",
			"fee_rate":0.0035,"fixed_fee":1.5,"min_quota":10,"max_quota":50000,"year_transfer_amount_quota":500000},`))
	})
}
