package cardwire_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

const oneState = `{"code":"CA-ON","name":"Ontario","country":"CA","countryStandardCode":"CAN"}`

func stateWanted(*testing.T) cardwire.RemittanceState {
	return cardwire.RemittanceState{Code: "CA-ON", Name: "Ontario", Country: "CA", CountryStandardCode: "CAN"}
}

func TestListRemittanceStates(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/remittance/states",
		`{"code":200,"msg":"success","data":[`+oneState+`]}`, cardwire.WithStrictDrift())
	got, err := c.ListRemittanceStates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.RemittanceState{stateWanted(t)}, got)
}

const oneCurrency = `{"id":9,"payout_currency":"PHP","transfer_type_id":3,"transfer_type_value":"C2C",` +
	`"payout_method_id":1,"payout_method_value":"Bank Transfer","country":"PHL","country_code":"PH",` +
	`"fee_rate":0.015,"fixed_fee":2.50,` +
	`"min_quota":10.01,"max_quota":5000.02,"year_transfer_amount_quota":50000.03}`

func currencyWanted(*testing.T) cardwire.RemittanceCurrency {
	return cardwire.RemittanceCurrency{
		ID: 9, PayoutCurrency: "PHP", TransferTypeID: "3", TransferType: "C2C", PayoutMethodID: "1",
		PayoutMethod: "Bank Transfer", Country: "PHL", CountryCode: "PH",
		FeeRate: wiretest.Dec("0.015"), FixedFee: wiretest.Dec("2.50"),
		MinQuota: wiretest.Dec("10.01"), MaxQuota: wiretest.Dec("5000.02"),
		YearTransferAmountQuota: wiretest.Dec("50000.03"),
	}
}

func TestListRemittanceCurrencies(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/remittance/currency",
		`{"code":200,"msg":"success","data":[`+oneCurrency+`]}`, cardwire.WithStrictDrift())
	got, err := c.ListRemittanceCurrencies(t.Context())
	require.NoError(t, err)
	want := []cardwire.RemittanceCurrency{currencyWanted(t)}
	assert.Equal(t, want, got)
	wiretest.NoZeroField(t, want)
}

// A transfer with all fields, its body as it is sent, and the response to it.
func fullTransfer() cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "PHP", TransferType: cardwire.TransferTypeC2C,
		PayoutMethod: cardwire.PayoutMethodBankTransfer, SenderBeneficiaryRelationship: "11",
		TransferAmount:     wiretest.Dec("250.5"),
		SenderSourceOfFund: "12", PurposeOfRemittance: "13", SenderFirstName: "Maria", SenderLastName: "Silva \"Z\\",
		SenderGender: "F", SenderMobileNumber: "+351 912 345 678", SenderIDType: "14", SenderIDNumber: "ID-100",
		SenderDateOfBirth: cardwire.Date{1990, time.December, 31}, SenderNationality: "PT", SenderIDIssueCountry: "620",
		SenderCountry: "ES", SenderAddress: "Rua Augusta 5\n2 Esq", ReceiverNativeFirstName: "José",
		ReceiverNativeLastName: "Rizal", ReceiverIDType: "15", ReceiverIDNumber: "ID-200",
		ReceiverMobileNumber: "+63 917 123 4567", ReceiverBankAccountNumber: "0001234567",
		Extra: map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati", "note": ""},
	}
}

const (
	fullTransferSent = `{"merchantOrderNo":"order-1","payoutCurrency":"PHP","transferType":"3","payoutMethod":"1",` +
		`"senderBeneficiaryRelationship":"11","transferAmount":"250.50","senderSourceOfFund":"12",` +
		`"purposeOfRemittance":"13","senderFirstName":"Maria","senderLastName":"Silva \"Z\\","senderGender":"F",` +
		`"senderMobileNumber":"+351 912 345 678","senderIdType":"14","senderIdNumber":"ID-100",` +
		`"senderDateOfBirth":"1990-12-31","senderNationality":"PT","senderIdIssueCountry":"620",` +
		`"senderCountry":"ES","senderAddress":"Rua Augusta 5\u000a2 Esq","receiverNativeFirstName":"José",` +
		`"receiverNativeLastName":"Rizal","receiverIdType":"15","receiverIdNumber":"ID-200",` +
		`"receiverMobileNumber":"+63 917 123 4567","receiverBankAccountNumber":"0001234567",` +
		`"branch":"Makati","swiftCode":"BNORPHMM"}`
	oneTransfer = `{"merchant_order_no":"order-1","api_order_no":"api-9","status":"wait_process"}`
)

func transferWanted(*testing.T) cardwire.Transfer {
	return cardwire.Transfer{"order-1", "api-9", cardwire.TransferWaitProcess}
}

func TestCreateTransfer(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "POST /shop/api/v1/remittance/transfer\napplication/json\n\n"+fullTransferSent,
		`{"code":200,"msg":"success","data":`+oneTransfer+`}`, cardwire.WithStrictDrift())
	got, err := c.CreateTransfer(t.Context(), fullTransfer())
	require.NoError(t, err)
	want := transferWanted(t)
	assert.Equal(t, &want, got)
	wiretest.NoZeroField(t, fullTransfer())
}

var (
	states = reading[cardwire.RemittanceState, []cardwire.RemittanceState]{
		oneState, stateWanted, "data[]", rows, alone[cardwire.RemittanceState],
		(*cardwire.Client).ListRemittanceStates,
	}
	currencies = reading[cardwire.RemittanceCurrency, []cardwire.RemittanceCurrency]{
		oneCurrency, currencyWanted, "data[]", rows, alone[cardwire.RemittanceCurrency],
		(*cardwire.Client).ListRemittanceCurrencies,
	}
	transfers = reading[cardwire.Transfer, *cardwire.Transfer]{
		oneTransfer, transferWanted, "data", wiretest.Success, pointer[cardwire.Transfer],
		func(c *cardwire.Client, ctx context.Context, opts ...cardwire.CallOption) (*cardwire.Transfer, error) {
			return c.CreateTransfer(ctx, least, opts...)
		},
	}
)

// least is a transfer with the fields that are required.
var least = cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: decimal.New(100, -2)}

const minSent = `{"merchantOrderNo":"order-1","transferAmount":"1.00"}`

func TestRemittanceQuirks(t *testing.T) {
	t.Parallel()
	states.quirks(t, []quirk{
		{`"CA-ON"`, `35`, "Code", "35", "code: number for string"},
		{`"CA-ON"`, `""`, "Code", nil, ""},
		{`"name":`, `"region":1,"name":`, "", nil, "*: unknown field"},
		{`"Ontario"`, `7`, "Name", "7", "name: number for string"},
	})
	currencies.quirks(t, []quirk{
		{`0.015`, `"0.0150"`, "FeeRate", wiretest.Dec("0.0150"), "fee_rate: string for number"},
		{`"id":9`, `"id":"9"`, "", nil, "id: string for number"},
		{`"id":9,`, ``, "ID", nil, "id: missing field"},
		{`"min_quota":10.01,`, ``, "MinQuota", nil, "min_quota: missing field"},
		{`"C2C"`, `null`, "TransferType", nil, "transfer_type_value: null for string"},
		{`5000.02`, `5e3`, "MaxQuota", decimal.New(5, 3), ""},
		{`"PHP"`, `608`, "PayoutCurrency", "608", "payout_currency: number for string"},
		{`"C2C"`, `false`, "TransferType", nil, "transfer_type_value: false for string"},
		{`_type_id":3`, `_type_id":4`, "TransferTypeID", "4", ""},
		{`_type_id":3`, `_type_id":3.0`, "", nil, "transfer_type_id: decimal for integer"},
		{`_type_id":3`, `_type_id":null`, "TransferTypeID", nil, "transfer_type_id: null for number"},
		{`_type_id":3`, `_type_id":0`, "TransferTypeID", "0", ""},
		{`_method_id":1`, `_method_id":"1"`, "", nil, "payout_method_id: string for number"},
	})
	transfers.quirks(t, []quirk{
		{"wait_process", "done", "Status", "done", ""},
		{`,"status":"wait_process"`, ``, "Status", nil, "status: missing field"},
		{`"merchant_order_no":"order-1",`, ``, "MerchantOrderNo", nil, "merchant_order_no: missing field"},
		{`"order-1"`, `null`, "MerchantOrderNo", nil, "merchant_order_no: null for string"},
		{`"api-9"`, `9`, "APIOrderNo", "9", "api_order_no: number for string"},
	})
}

func TestUnreadableRemittances(t *testing.T) {
	t.Parallel()
	list := func(document string) string { return "[" + document + "]" }
	states.unreadable(t, map[string][][2]string{
		"data[].code":                {{`"code":"CA-ON",`, ``}, {`"CA-ON"`, `null`}},
		"data[].name":                {{`"name":"Ontario",`, ``}, {`"Ontario"`, `null`}},
		"data[].country":             {{`"country":"CA",`, ``}, {`"CA"`, `null`}},
		"data[].countryStandardCode": {{`,"countryStandardCode":"CAN"`, ``}, {`"CAN"`, `null`}},
		"data":                       {{list(oneState), `{"message":"no"}`}, {list(oneState), `""`}},
	})
	currencies.unreadable(t, map[string][][2]string{
		"data[].payout_currency": {{`"payout_currency":"PHP",`, ``}, {`"PHP"`, `null`}, {`"PHP"`, `""`}},
		"data[].fee_rate":        {{`0.015`, `null`}, {`0.015`, `"1.5%"`}},
		"data":                   {{list(oneCurrency), `{"message":"no"}`}, {list(oneCurrency), `""`}},
	})
}

// A mask would lose the transfer of who keeps it, and its own JSON is what every
// logger would write.
func TestTransferParamsDoNotMarshal(t *testing.T) {
	t.Parallel()
	const refused = "cardwire: TransferParams cannot be marshaled, " +
		"because names and account numbers would reach logs: use RevealJSON"
	p := fullTransfer()
	for name, v := range map[string]any{
		"value": p, "pointer": &p, "in a map": map[string]any{"p": p}, "in a slice": []cardwire.TransferParams{p},
		"in a struct": struct{ P *cardwire.TransferParams }{&p}, "without fields": cardwire.TransferParams{},
	} {
		text, err := json.Marshal(v)
		require.ErrorContains(t, err, refused, name)
		assert.Empty(t, text, name)
	}
	text, err := json.Marshal((*cardwire.TransferParams)(nil))
	require.NoError(t, err)
	assert.Equal(t, "null", string(text))
}

// What was kept is what was to be sent, further fields included.
func TestTransferParamsAreReadAsTheyWereSent(t *testing.T) {
	t.Parallel()
	unchanged := fullTransfer()
	require.NoError(t, unchanged.UnmarshalJSON([]byte("null")))
	assert.Equal(t, fullTransfer(), unchanged)
	want := fullTransfer()
	want.TransferAmount = wiretest.Dec("250.50")
	want.Extra = map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati"} // an empty field is not sent
	for name, tc := range map[string]struct {
		text string
		want cardwire.TransferParams
	}{
		"all fields":          {fullTransferSent, want},
		"as HTML may hold it": {strings.ReplaceAll(fullTransferSent, "+", `\u002b`), want},
		"no fields but two":   {minSent, least},
		"another order":       {" {\n \"transferAmount\": \"1.00\",\t\"merchantOrderNo\": \"\\u006frder-1\" } ", least},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fullTransfer() // nothing of which is left
			got.Extra = map[string]string{"of": "before"}
			require.NoError(t, json.Unmarshal([]byte(tc.text), &got))
			assert.Equal(t, tc.want, got)

			sent, err := got.RevealJSON()
			require.NoError(t, err)
			assert.JSONEq(t, tc.text, string(sent))
		})
	}
}

// What is never written is not read: it was written by somebody else, or changed
// since.
func TestTransferParamsThatAreNotReadAtAll(t *testing.T) {
	t.Parallel()
	const (
		secret = "CANARY77"
		strict = "not strict JSON: "
	)
	with := func(more string) string {
		return `{"merchantOrderNo":"order-1","transferAmount":"1.00",` + more + `}`
	}
	paying := func(amount string) string { return `{"merchantOrderNo":"order-1","transferAmount":` + amount + `}` }
	assertRefused := func(sent string, is error, message string) {
		got := fullTransfer()
		err := got.UnmarshalJSON([]byte(sent))
		require.EqualError(t, err, "cardwire: CreateTransfer: not sent: "+message, sent)
		require.ErrorIs(t, err, is, sent)
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err), sent)
		assert.Equal(t, fullTransfer(), got, "it is as it was")
	}
	for want, list := range map[string][]string{
		"expected an object": {`["` + secret + `"]`, `"` + secret + `"`},
		"*: expected transferAmount in the form that is sent": {
			paying(`"7702"`), paying(`"7702.000"`), paying(`"7702e0"`), paying(`"0.00"`), paying(`"-7702.00"`),
			paying(`"07702.00"`),
		},
		"*: expected senderDateOfBirth in the form that is sent": {with(`"senderDateOfBirth":"1977-02-30"`)},
		"*: expected transferAmount as a string":                 {paying(`7702`), paying(`{"a":"` + secret + `"}`)},
		"*: expected senderLastName as a string":                 {with(`"senderLastName":null`)},
		"*: expected a string": {
			with(`"` + secret + `":null`), with(`"` + secret + `":77`), with(`"` + secret + `":{"a":"` + secret + `"}`),
		},
		"*: expected senderLastName as a string that is not empty": {with(`"senderLastName":""`)},
		"*: expected a string that is not empty":                   {with(`"` + secret + `":""`)},
		strict + "a field name appears twice": {
			with(`"payoutCurrency":"EUR","payoutCurrency":"EUR"`), with(`"` + secret + `":"a","` + secret + `":"b"`),
		},
		strict + "bytes follow the end":        {fullTransferSent + `"` + secret + `"`, `null "` + secret + `"`},
		strict + "a colon is missing":          {fullTransferSent[:200]},
		strict + "a string is not valid UTF-8": {with(`"senderLastName":"` + secret + "\xff\"")},
	} {
		for _, sent := range list {
			assertRefused(sent, cardwire.ErrUnreadable,
				"cannot unmarshal TransferParams: "+want+": correct it before calling again")
		}
	}
	for sent, want := range map[string]string{
		`{"transferAmount":"7702.00"}`:             "MerchantOrderNo is empty",
		`{"merchantOrderNo":"` + secret + `"}`:     "TransferAmount must be greater than zero",
		with(`"transferType":"` + secret + `"`):    "TransferType must be a code of at most 18 digits",
		with(`"MerchantOrderNo":"` + secret + `"`): "Extra contains the name of a field of TransferParams",
		with(`"":"` + secret + `"`):                "Extra contains an empty name",
	} {
		assertRefused(sent, cardwire.ErrInvalidParams, "invalid parameters: "+want+": correct it before calling again")
	}
}

func TestCreateTransferRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	const (
		positive = " must be greater than zero"
		inexact  = " has more than two decimal places"
		large    = " is too large"
		code     = " must be a code of at most 18 digits"
		country  = " must be a two-letter country code"
		currency = " must be a currency code of 3 to 10 letters or digits, as in EUR"
		date     = " is not a valid date, as in 2026-01-31"
		control  = " contains a name with a control character or invalid UTF-8"
		shadows  = " contains the name of a field of TransferParams"
	)
	extra := func(name, value string) map[string]string { return map[string]string{name: value} }
	for _, tc := range []struct {
		field string
		value any
		want  string
	}{
		{"MerchantOrderNo", "", " is empty"},
		{"MerchantOrderNo", "order-1 ", " begins or ends with white space"},
		{"PayoutCurrency", "PH", currency},
		{"TransferType", "C2C", code},
		{"PayoutMethod", "Bank Transfer", code},
		{"SenderBeneficiaryRelationship", "brother", code},
		{"TransferAmount", decimal.Decimal{}, positive},
		{"TransferAmount", wiretest.Dec("-1"), positive},
		{"TransferAmount", wiretest.Dec("12.345"), inexact},
		{"TransferAmount", decimal.New(1, -1<<30), inexact},
		{"TransferAmount", decimal.New(1, 38), large},
		{"TransferAmount", decimal.New(1, 1<<30), large},
		{"SenderSourceOfFund", "salary", code},
		{"PurposeOfRemittance", "-1", code},
		{"SenderIDType", "passport", code},
		{"SenderDateOfBirth", cardwire.Date{1990, 2, 30}, date},
		{"SenderDateOfBirth", cardwire.Date{Year: 1990}, date},
		{"SenderNationality", "PRT", country},
		{"SenderIDIssueCountry", "PT", code},
		{"SenderCountry", "P", country},
		{"ReceiverIDType", "1a", code},
		{"ReceiverBankAccountNumber", "DE02\n", " begins or ends with white space"},
		{"Extra", extra("", "x"), " contains an empty name"},
		{"Extra", extra("a\nb", "x"), control},
		{"Extra", extra("a\xff", "x"), control},
		{"Extra", extra("a", "x\xff"), " contains a value that is not valid UTF-8"},
		{"Extra", extra("merchantorderno", ""), shadows},
	} {
		p := fullTransfer()
		set(reflect.ValueOf(&p), tc.field, tc.value)
		_, err := wiretest.Unasked(t).CreateTransfer(t.Context(), p)
		wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, tc.field+tc.want)
		want := "cardwire: CreateTransfer: not sent: invalid parameters: " + tc.field + tc.want +
			": correct it before calling again"
		require.EqualError(t, p.Validate(), want)
		assert.Equal(t, cardwire.StepFail, cardwire.NextStep(p.Validate()))
		_, err = p.RevealJSON()
		require.EqualError(t, err, want)
	}
	require.NoError(t, fullTransfer().Validate())
	require.NoError(t, wiretest.SmallTransfer("M-1").Validate())
}

func TestRemittancesAsJSON(t *testing.T) {
	t.Parallel()
	encodes(t, stateWanted(t), oneState)
	decodes(t, oneState, stateWanted(t), wiretest.Edited(t, oneState, `"code":"CA-ON",`, ``))
	encodes(t, currencyWanted(t), oneCurrency)
	decodes(t, oneCurrency, currencyWanted(t), `{"id":9}`)
	encodes(t, transferWanted(t), oneTransfer)
	decodes(t, oneTransfer, transferWanted(t), `{"api_order_no":"a","api_order_no":"b"}`)

	// A code that is none is null, which reads as none.
	const noCode = `{"id":0,"payout_currency":"","transfer_type_id":null,"transfer_type_value":"",` +
		`"payout_method_id":null,"payout_method_value":"","country":"","country_code":"","fee_rate":0,"fixed_fee":0,` +
		`"min_quota":0,"max_quota":0,"year_transfer_amount_quota":0}`
	encodes(t, cardwire.RemittanceCurrency{}, noCode)
	encodes(t, cardwire.RemittanceCurrency{TransferTypeID: "C2C"}, noCode)
}
