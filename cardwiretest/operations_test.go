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

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

const (
	failedID = "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11"
	freezeID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"
	// canary is the number of the card below. It fails the Luhn check.
	canary = "4288379977000003"
)

// activeCard has a value of its own in every field.
func activeCard() cardwiretest.Card {
	c := contract.FullCard()
	c.Status = 0
	return c
}

func twoCards(s *cardwiretest.Service) {
	s.AddCard(activeCard())
	s.AddCard(contract.EmptyCard())
}

const listedFull = `{"id":"card-1","trade_id":"trade-1","label":"marketing/1","bin_id":101,"card_bin":"428837",
	"card_no":"4288379977000003","cvv":"907","currency":"USD","available":"1250.500","pending":12.5,"frozen":0.25,
	"expire_date":"09/2028","holder_username":"Zoë \"Z\" Ødegård",
	"holder_address":{"city":"Oslo","state":"OS","country":"NO","postalCode":"0150","addressLine1":"Karl Johans gate 1","addressLine2":"H0201"},
	"create_time":"2025-01-02 03:04:05","update_time":"2025-02-03 04:05:06","status":0,"remark":"checked",
	"holder_phone":"40012345","holder_phone_code":"+47","holder_email":"zoe@example.no","fee":"1.50",
	"destory_reason":"lost","nickname":"travel","physical":1,"physical_status":2,"deliver_status":3,
	"platform_waybill_number":"WB1","platform_waybill_company":"DHL"}`

const listedEmpty = `{"id":"card-2","trade_id":"trade-2","label":null,"bin_id":102,"card_bin":"49387519",
	"card_no":"4938751977000013","cvv":"917","currency":"USD","available":"0.000","pending":0,"frozen":0,
	"expire_date":"12/2030","holder_username":"","holder_address":[],
	"create_time":"2025-03-01 00:00:00","update_time":"2025-03-01 00:00:00","status":4,"remark":null,
	"holder_phone":"","holder_phone_code":"","holder_email":"","fee":"0.00",
	"destory_reason":null,"nickname":"","physical":0,"physical_status":0,"deliver_status":0,
	"platform_waybill_number":null,"platform_waybill_company":null}`

func TestListCards(t *testing.T) {
	bothWays(t, []cardwiretest.Option{cardwiretest.WithCards(0)}, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		twoCards(s)
		expect(t, ask(t, "GET /cards"), 200, joined(`{"code":200,"msg":"success","data":
			{"total":2,"per_page":20,"current_page":1,"last_page":1,"data":[`+listedFull+`,`+listedEmpty+`]}}`))
		expect(t, ask(t, "GET /cards?limit=1&page=2"), 200, joined(`{"code":200,"msg":"success","data":
			{"total":2,"per_page":1,"current_page":2,"last_page":2,"data":[`+listedEmpty+`]}}`))
		expect(t, ask(t, "GET /cards?page=7"), 200, `{"code":200,"msg":"success","data":`+
			`{"total":2,"per_page":20,"current_page":7,"last_page":1,"data":[]}}`)
		expect(t, ask(t, "GET /cards?status=3"), 200, `{"code":200,"msg":"success","data":`+
			`{"total":0,"per_page":20,"current_page":1,"last_page":1,"data":[]}}`)
		if n := s.Executions("ListCards", ""); n != 4 {
			t.Errorf("%d lists were returned", n)
		}
	})
}

func TestListCardsFilters(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithCards(0), cardwiretest.WithProfile(renamed), cardwiretest.WithMaxPageSize(1))
	twoCards(s)
	ask := inProcess(s)
	for _, tc := range []struct {
		query string
		ids   []string
	}{
		{"size=50", []string{"card-1"}}, // capped
		{"size=50&no=2", []string{"card-2"}},
		{"state=4", []string{"card-2"}},
		{"state=-1", nil},
		{"bin=428837", []string{"card-1"}},
		{"bin=4288", nil},
		{"sub=sub-1", []string{"card-1"}},
		{"made_from=2025-02-01", []string{"card-2"}},
		{"made_to=2025-01-02", []string{"card-1"}},
		{"made_from=2025-01-02&made_to=2025-01-02", []string{"card-1"}},
		{"used_from=2025-02-01&used_to=2025-02-01", []string{"card-1"}},
		{"used_from=2025-02-02", nil},
		{"used_to=2025-01-31", nil},
	} {
		got := ask(t, "GET /cards?"+tc.query)
		if ids := idsOf(t, got); strings.Join(ids, " ") != strings.Join(tc.ids, " ") {
			t.Errorf("%s: got %v, want %v", tc.query, ids, tc.ids)
		}
	}
	expect(t, ask(t, "GET /cards?limit=1"), 422, `{"code":422,"msg":"the parameter limit is unknown","data":null}`)
	if got := ask(t, "GET /cards/info?which=card-1"); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func idsOf(t *testing.T, r response) (ids []string) {
	t.Helper()
	var page struct {
		Data struct{ Data []struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(r.body), &page); err != nil || r.status != 200 {
		t.Fatal(r.status, r.body, err)
	}
	for _, c := range page.Data.Data {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestGetCard(t *testing.T) {
	const single = `{"code":200,"msg":"success","data":
		{"id":"card-1","trade_id":"trade-1","label":"marketing/1","card_bin":"428837",
		"card_no":"428837******0003","cvv":"***","currency":"USD","available":"1250.500","pending":12.5,"frozen":0.25,
		"expire_date":"**/****","holder_username":"Zoë \"Z\" Ødegård",
		"holder_address":{"city":"Oslo","state":"OS","country":"NO","postalCode":"0150","addressLine1":"Karl Johans gate 1","addressLine2":"H0201"},
		"create_time":"2025-01-02 03:04:05","status":0,
		"holder_phone":"40012345","holder_phone_code":"+47","holder_email":"zoe@example.no","fee":"1.50",
		"physical":1,"physical_status":2,"deliver_status":3,
		"platform_waybill_number":"WB1","platform_waybill_company":"DHL",
		"account_status":4,"consumption_scene_type":5,"consumption_scene_config":[{"name":"Ads","channel_id":7}]}}`
	bothWays(t, []cardwiretest.Option{cardwiretest.WithCards(0)}, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		twoCards(s)
		expect(t, ask(t, "GET /cards/info?id=card-1"), 200, joined(single))
		expect(t, ask(t, "GET /cards/info?id=order-1"), 200, joined(single))
		expect(t, ask(t, "GET /cards/info?id=trade-2"), 200, joined(`{"code":200,"msg":"success","data":
			{"id":"card-2","trade_id":"trade-2","label":null,"card_bin":"49387519",
			"card_no":"493875******0013","cvv":"***","currency":"USD","available":"0.000","pending":0,"frozen":0,
			"expire_date":"**/****","holder_username":"","holder_address":[],
			"create_time":"2025-03-01 00:00:00","status":4,
			"holder_phone":"","holder_phone_code":"","holder_email":"","fee":"0.00",
			"physical":0,"physical_status":0,"deliver_status":0,
			"platform_waybill_number":null,"platform_waybill_company":null,
			"account_status":0,"consumption_scene_type":0,"consumption_scene_config":[]}}`))
		expect(t, ask(t, "GET /cards/info?id=card-9"), 404,
			`{"code":404,"msg":"the parameter id names no card and no order","data":null}`)
		if n := s.Executions("GetCardByOrder", ""); n != 4 {
			t.Errorf("%d cards were asked for", n)
		}
	})
}

func TestGetCardSecrets(t *testing.T) {
	bothWays(t, []cardwiretest.Option{cardwiretest.WithCards(0)}, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		twoCards(s)
		got := ask(t, "POST /cards/private\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\n\ncardId=card-1")
		head, pan, _ := strings.Cut(got.body, `,"pan":"`)
		pan, tail, _ := strings.Cut(pan, `"`)
		got.body = head + tail
		expect(t, got, 200, `{"code":200,"msg":"success","data":{"card_no":"428837******0003","cvv":"***","expire_date":"**/****"}}`)
		if number := decrypt(t, pan); number != canary {
			t.Errorf("pan decrypts to %s", number)
		}
		got = ask(t, "POST /cards/private\nContent-Type: application/x-www-form-urlencoded\n\ncardId=card-9")
		expect(t, got, 404, `{"code":404,"msg":"the field cardId names no card","data":null}`)
	})
}

func decrypt(t *testing.T, pan string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(pan)
	if err != nil {
		t.Fatal(err)
	}
	key := sha256.Sum256([]byte(cardwiretest.DefaultKey))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
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

func TestFreezeCard(t *testing.T) {
	bothWays(t, []cardwiretest.Option{cardwiretest.WithCards(0)}, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		twoCards(s)
		first := ask(t, freezing("card-1", failedID))
		id, ok := strings.CutPrefix(first.body, `{"code":200,"msg":"success","data":"`)
		if id = strings.TrimSuffix(id, `"}`); !ok || len(id) != 36 || first.status != 200 {
			t.Fatalf("got %d %s", first.status, first.body)
		}
		if ids := idsOf(t, ask(t, "GET /cards?status=1")); len(ids) != 1 || ids[0] != "card-1" {
			t.Errorf("frozen: %v", ids)
		}
		if body := ask(t, "GET /cards?card_bin=428837").body; !strings.Contains(body, `"update_time":"2025-03-03 09:30:01"`) {
			t.Errorf("the time of the update is missing in %s", body)
		}
		second := ask(t, freezing("card-1", failedID))
		if second.status != 200 || second.body == first.body {
			t.Errorf("got %d %s", second.status, second.body)
		}
		if n := s.Executions("FreezeCard", failedID); n != 2 {
			t.Errorf("executed %d times", n)
		}
		e := s.Ledger()[0]
		if e.ID != id || e.CardID != "card-1" || e.Action != "freeze" || e.Reference != failedID || e.Time.IsZero() {
			t.Errorf("ledger: %+v", e)
		}
		expect(t, ask(t, adjusting(failedID, "cancel")), 422,
			`{"code":422,"msg":"the field client_transaction_id names no failed operation of a kind that can be adjusted","data":null}`)
	})
}

func TestFreezeCardRefusals(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithCards(0))
	twoCards(s)
	ask := inProcess(s)
	expect(t, ask(t, freezing("card-9", freezeID)), 404, `{"code":404,"msg":"the field cardId names no card","data":null}`)
	s.SetCardStatus("card-1", 2)
	expect(t, ask(t, freezing("card-1", freezeID)), 422,
		`{"code":422,"msg":"the field cardId names a card that is closed or closing","data":null}`)
	if len(s.Ledger()) != 0 {
		t.Error("a refused freeze is in the ledger")
	}
	without := "POST /cards/suspend\nContent-Type: multipart/form-data; boundary=xx\n\n" + part("cardId", "card-2") + "--xx--\n"
	if got := ask(t, without); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	mustPanic(t, func() { s.SetCardStatus("card-9", 0) })
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

func TestAdjust(t *testing.T) {
	bothWays(t, nil, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		const yes = `{"code":200,"msg":"success","data":true}`
		const no = `{"code":422,"msg":"the field client_transaction_id names no failed operation of a kind that can be adjusted","data":null}`
		s.AddFailedOperation(failedID, "transfer in")
		expect(t, ask(t, adjusting(strings.ToUpper(failedID), "cancel")), 200, yes)
		expect(t, ask(t, adjusting(failedID, "cancel")), 422, no)
		expect(t, ask(t, adjusting(failedID, "retry")), 422, no)
		s.AddFailedOperation(failedID, "close")
		expect(t, ask(t, adjusting(failedID, "retry")), 200, yes)
		s.AddFailedOperation(failedID, "create")
		expect(t, ask(t, adjusting(failedID, "retry")), 422, no)
		expect(t, ask(t, adjusting("00000000-0000-4000-8000-000000000000", "cancel")), 422, no)
		if c, r := s.Executions("CancelOperation", ""), s.Executions("RetryOperation", failedID); c != 1 || r != 1 {
			t.Errorf("executed %d and %d times", c, r)
		}
		if e := s.Ledger()[1]; e.Kind != "close" || e.Action != "retry" {
			t.Errorf("ledger: %+v", e)
		}
		mustPanic(t, func() { s.AddFailedOperation("42", "close") })
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
	bothWays(t, nil, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		first, second := ask(t, transfer), ask(t, transfer)
		e := s.Ledger()
		if len(e) != 2 || s.Executions("CreateTransfer", "order-1") != 2 || e[0].ID == e[1].ID {
			t.Fatalf("ledger: %+v", e)
		}
		expect(t, first, 200, `{"code":200,"msg":"success","data":{"merchant_order_no":"order-1","api_order_no":"`+e[0].ID+`","status":"wait_process"}}`)
		expect(t, second, 200, `{"code":200,"msg":"success","data":{"merchant_order_no":"order-1","api_order_no":"`+e[1].ID+`","status":"wait_process"}}`)
		if e[0].Amount != "100.25" || e[0].Currency != "EUR" || e[0].Action != "transfer" || e[0].Op != "CreateTransfer" {
			t.Errorf("ledger: %+v", e[0])
		}
	})
}

func TestDeduplication(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithDeduplication(), cardwiretest.WithCards(0))
	twoCards(s)
	s.AddFailedOperation(failedID, "freeze")
	ask := inProcess(s)
	for _, request := range []string{transfer, freezing("card-1", freezeID), adjusting(failedID, "cancel")} {
		first, second := ask(t, request), ask(t, request)
		if first.status != 200 || first.body != second.body {
			t.Errorf("got %s, then %s", first.body, second.body)
		}
	}
	if len(s.Ledger()) != 3 {
		t.Errorf("ledger: %+v", s.Ledger())
	}
	s.AddFailedOperation(failedID, "freeze")
	ask(t, adjusting(failedID, "cancel"))
	if n := s.Executions("CancelOperation", failedID); n != 2 {
		t.Errorf("an operation that failed again was cancelled %d times", n)
	}
}

const image = "--xx\nContent-Disposition: form-data; name=\"file\"; filename=\"id.png\"\nContent-Type: image/png\n\n\x89PNG1\n--xx--\n"

func TestUploadImage(t *testing.T) {
	bothWays(t, nil, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		got := ask(t, "POST /cards/upload\nContent-Type: multipart/form-data; boundary=xx\n\n"+image)
		e := s.Ledger()
		if len(e) != 1 || e[0].Size != 5 || e[0].Op != "UploadImage" || e[0].Reference != "" || !strings.HasPrefix(e[0].ID, "att/") {
			t.Fatalf("ledger: %+v", e)
		}
		expect(t, got, 200, `{"code":200,"msg":"Uploaded","data":{"attachment_key":"`+e[0].ID+`"}}`)
		if n := s.Executions("UploadImage", ""); n != 1 {
			t.Errorf("executed %d times", n)
		}
	})
}

func TestListBINs(t *testing.T) {
	full := cardwiretest.BIN{
		ID: 900, BIN: "44001234", Type: "share", Name: "A/B", Network: "Visa", Country: "US", AVS: 1, ThreeDS: 1,
		DayPurchaseLimit: "1.5", SinglePurchaseLimit: "2", LifetimePurchaseLimit: "3e3", Maintain: true, Weigh: 4,
		Status: true, API: true, Physical: 1, Currency: "USD",
		ForeignFeeConfig: []cardwiretest.FeeTier{
			{Range: "0-100", Fee: "0.5", FeeRate: "0.01", ExtraFee: "0.2", ExtraFeeRate: "0.003"}, {Range: "100-200"},
		},
		AuthFeeConfig: json.RawMessage(`{"a":1}`), RefundFeeConfig: json.RawMessage(`{"b":2}`), ReversalFeeConfig: json.RawMessage(`{"c":3}`),
		CashbackFeeConfig: []json.RawMessage{json.RawMessage(`{"d":4}`)},
		ApplePay:          1, GoogleWallet: 1, CardNums: 5, IsCardCountLimited: 1, BusinessMode: []string{"B2B", "B2C"}, AuthLevel: 2,
		CreateAmount: "6", CardDepostFee: "7", AllowCreate: true, AllowIn: true, AllowOut: true, AllowSuspend: true,
		AllowEnable: true, AllowFrozen: true, AllowUnfrozen: true, AllowDestory: true,
		CreateMinAmount: "8", CreateMaxAmount: "9", RechargeMinAmount: "10", RechargeMaxAmount: "11",
		WithdrawMinAmount: "12", WithdrawMaxAmount: "13", RefuseTimes: "14", RefuseRate: "0.15", Scenes: []string{"Ads"},
		AuthRequirement: cardwiretest.AuthRequirement{Level: "advanced", Fields: []cardwiretest.AuthField{{Field: "idType", Required: true, Desc: "Type"}}},
	}
	const fullText = `{"id":900,"bin":"44001234","type":"share","name":"A/B","network":"Visa","country":"US","avs":1,"3ds":1,
		"day_purchase_limit":1.5,"single_purchase_limit":2,"lifetime_purchase_limit":3e3,"maintain":true,"weigh":4,
		"status":true,"api":true,"physical":1,"currency":"USD",
		"foreign_fee_config":{"0-100":{"fee":0.5,"fee_rate":0.01,"extra_fee":0.2,"extra_fee_rate":0.003},
		"100-200":{"fee":0,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0}},
		"auth_fee_config":{"a":1},"refund_fee_config":{"b":2},"reversal_fee_config":{"c":3},"cashback_fee_config":[{"d":4}],
		"apple_pay":1,"google_wallet":1,"card_nums":5,"is_card_count_limited":1,"business_mode":["B2B","B2C"],"auth_level":2,
		"create_amount":6,"card_depost_fee":7,"allow_create":true,"allow_in":true,"allow_out":true,"allow_suspend":true,
		"allow_enable":true,"allow_frozen":true,"allow_unfrozen":true,"allow_destory":true,
		"create_min_amount":8,"create_max_amount":9,"recharge_min_amount":10,"recharge_max_amount":11,
		"withdraw_min_amount":12,"withdraw_max_amount":13,"refuse_times":14,"refuse_rate":0.15,"scenes":["Ads"],
		"auth_requirement":{"level":"advanced","fields":[{"field":"idType","required":true,"desc":"Type"}]}}`
	const emptyText = `{"id":1009,"bin":"440009","type":"","name":"","network":"","country":"US","avs":0,"3ds":0,
		"day_purchase_limit":0,"single_purchase_limit":0,"lifetime_purchase_limit":0,"maintain":false,"weigh":0,
		"status":false,"api":false,"physical":0,"currency":"USD","foreign_fee_config":{},
		"auth_fee_config":null,"refund_fee_config":null,"reversal_fee_config":null,"cashback_fee_config":[],
		"apple_pay":0,"google_wallet":0,"card_nums":0,"is_card_count_limited":0,"business_mode":[],"auth_level":1,
		"create_amount":0,"card_depost_fee":0,"allow_create":false,"allow_in":false,"allow_out":false,"allow_suspend":false,
		"allow_enable":false,"allow_frozen":false,"allow_unfrozen":false,"allow_destory":false,
		"create_min_amount":0,"create_max_amount":0,"recharge_min_amount":0,"recharge_max_amount":0,
		"withdraw_min_amount":0,"withdraw_max_amount":0,"refuse_times":0,"refuse_rate":0,"scenes":[],
		"auth_requirement":{"level":"base","fields":[]}}`
	bothWays(t, nil, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		s.AddBIN(full)
		s.AddBIN(full) // replaces itself
		s.AddBIN(cardwiretest.BIN{})
		got := ask(t, "GET /bins")
		got.body = got.body[strings.Index(got.body, `{"id":900,`):]
		expect(t, got, 200, joined(fullText+`,`+emptyText+`]}`))
		expect(t, ask(t, "GET /bins/maintenance"), 200, `{"code":200,"msg":"success","data":["53270366","65312478","44001234"]}`)
	})
}

func TestCapacityAndRemittanceLists(t *testing.T) {
	bothWays(t, nil, func(t *testing.T, s *cardwiretest.Service, ask talk) {
		expect(t, ask(t, "GET /account/capacity"), 200, `{"code":200,"msg":"success","data":606}`)
		states := ask(t, "GET /remittance/states").body
		for _, want := range []string{
			`{"code":200,"msg":"success","data":[{"code":"CA","name":"California","country":"US","countryStandardCode":"USA"},`,
			`{"code":"NY","name":"New York","country":"US","countryStandardCode":"USA"}`,
		} {
			if !strings.Contains(states, want) {
				t.Errorf("no %s in %s", want, states)
			}
		}
		const euro = `{"code":200,"msg":"success","data":[{"id":1,"payout_currency":"EUR","transfer_type_id":3,"transfer_type_value":"C2C",
			"payout_method_id":1,"payout_method_value":"Bank Transfer","country":"DEU","country_code":"DE",
			"fee_rate":0.0035,"fixed_fee":1.5,"min_quota":10,"max_quota":50000,"year_transfer_amount_quota":500000},`
		if got := ask(t, "GET /remittance/currency").body; !strings.HasPrefix(got, joined(euro)) {
			t.Errorf("got %s", got)
		}
	})
}
