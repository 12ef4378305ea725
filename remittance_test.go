package cardwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	stateText    = `{"code":"CA-ON","name":"Ontario","country":"CA","countryStandardCode":"CAN"}`
	currencyText = `{"id":9,"payout_currency":"PHP","transfer_type_id":3,"transfer_type_value":"C2C","payout_method_id":1,` +
		`"payout_method_value":"Bank Transfer","country":"PHL","country_code":"PH","fee_rate":0.015,"fixed_fee":2.50,` +
		`"min_quota":10.01,"max_quota":5000.02,"year_transfer_amount_quota":50000.03}`
	transferText = `{"merchant_order_no":"order-1","api_order_no":"api-9","status":"wait_process"}`
)

func stateWanted() RemittanceState {
	return RemittanceState{Code: "CA-ON", Name: "Ontario", Country: "CA", CountryStandardCode: "CAN"}
}

func currencyWanted() RemittanceCurrency {
	return RemittanceCurrency{
		ID: 9, PayoutCurrency: "PHP", TransferTypeID: 3, TransferType: "C2C", PayoutMethodID: 1, PayoutMethod: "Bank Transfer",
		Country: "PHL", CountryCode: "PH", FeeRate: dec("0.015"), FixedFee: dec("2.50"),
		MinQuota: dec("10.01"), MaxQuota: dec("5000.02"), YearTransferAmountQuota: dec("50000.03"),
	}
}

func TestListRemittanceStatesReadsEveryMember(t *testing.T) {
	t.Parallel()
	noZeroField(t, stateWanted())
	c := answered(t, "GET /shop/api/v1/remittance/states",
		success(`[`+stateText+`,{"country":"CA","countryStandardCode":"CAN","name":"Qu\u00e9bec \/ Quebec","code":"CA-QC"}]`), WithStrictDrift())
	got, err := c.ListRemittanceStates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []RemittanceState{
		stateWanted(), {Code: "CA-QC", Name: "Québec / Quebec", Country: "CA", CountryStandardCode: "CAN"},
	}, got)
}

func TestListRemittanceCurrenciesReadsEveryMember(t *testing.T) {
	t.Parallel()
	noZeroField(t, currencyWanted())
	c := answered(t, "GET /shop/api/v1/remittance/currency", success(`[`+currencyText+`]`), WithStrictDrift())
	got, err := c.ListRemittanceCurrencies(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []RemittanceCurrency{currencyWanted()}, got)
}

func TestRemittanceListQuirks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, replacement string
		change           func(*RemittanceState)
		drift            []Drift
	}{
		"code as a number": {`"CA-ON"`, `35`, func(s *RemittanceState) { s.Code = "35" }, []Drift{{"data[].code", "number for string"}}},
		"empty code":       {`"CA-ON"`, `""`, func(s *RemittanceState) { s.Code = "" }, nil},
		"unknown field":    {`"name":`, `"region":1,"name":`, func(*RemittanceState) {}, []Drift{{"data[].*", "unknown field"}}},
	} {
		t.Run("state, "+name, func(t *testing.T) {
			t.Parallel()
			want := stateWanted()
			tc.change(&want)
			reply := success(`[` + edited(t, stateText, tc.old, tc.replacement) + `]`)
			readsQuirk(t, anything, reply, (*Client).ListRemittanceStates, []RemittanceState{want}, tc.drift)
		})
	}
	for name, tc := range map[string]struct {
		old, replacement string
		change           func(*RemittanceCurrency)
		drift            []Drift
	}{
		"rate as text":       {`0.015`, `"0.0150"`, func(c *RemittanceCurrency) { c.FeeRate = dec("0.0150") }, []Drift{{"data[].fee_rate", "string for number"}}},
		"id as text":         {`"id":9`, `"id":"9"`, func(*RemittanceCurrency) {}, []Drift{{"data[].id", "string for number"}}},
		"id missing":         {`"id":9,`, ``, func(c *RemittanceCurrency) { c.ID = 0 }, []Drift{{"data[].id", "missing field"}}},
		"quota missing":      {`"min_quota":10.01,`, ``, func(c *RemittanceCurrency) { c.MinQuota = decimal.Decimal{} }, []Drift{{"data[].min_quota", "missing field"}}},
		"null type's name":   {`"C2C"`, `null`, func(c *RemittanceCurrency) { c.TransferType = "" }, []Drift{{"data[].transfer_type_value", "null for string"}}},
		"quota with an e":    {`5000.02`, `5e3`, func(c *RemittanceCurrency) { c.MaxQuota = decimal.New(5, 3) }, nil},
		"currency a number":  {`"PHP"`, `608`, func(c *RemittanceCurrency) { c.PayoutCurrency = "608" }, []Drift{{"data[].payout_currency", "number for string"}}},
		"another type's id":  {`_type_id":3`, `_type_id":4`, func(c *RemittanceCurrency) { c.TransferTypeID = 4 }, nil},
		"method's id a text": {`_method_id":1`, `_method_id":"1"`, func(*RemittanceCurrency) {}, []Drift{{"data[].payout_method_id", "string for number"}}},
	} {
		t.Run("currency, "+name, func(t *testing.T) {
			t.Parallel()
			want := currencyWanted()
			tc.change(&want)
			reply := success(`[` + edited(t, currencyText, tc.old, tc.replacement) + `]`)
			readsQuirk(t, anything, reply, (*Client).ListRemittanceCurrencies, []RemittanceCurrency{want}, tc.drift)
		})
	}
}

func TestUnreadableRemittanceLists(t *testing.T) {
	t.Parallel()
	states := func(c *Client) (any, error) { return c.ListRemittanceStates(t.Context()) }
	currencies := func(c *Client) (any, error) { return c.ListRemittanceCurrencies(t.Context()) }
	for name, tc := range map[string]struct {
		call func(*Client) (any, error)
		data string
		path string
	}{
		"state without code":          {states, `[` + edited(t, stateText, `"code":"CA-ON",`, ``) + `]`, "data[].code"},
		"state with a null code":      {states, `[` + edited(t, stateText, `"CA-ON"`, `null`) + `]`, "data[].code"},
		"state without name":          {states, `[` + edited(t, stateText, `"name":"Ontario",`, ``) + `]`, "data[].name"},
		"state with a null name":      {states, `[` + edited(t, stateText, `"Ontario"`, `null`) + `]`, "data[].name"},
		"state without country":       {states, `[` + edited(t, stateText, `"country":"CA",`, ``) + `]`, "data[].country"},
		"state with a null country":   {states, `[` + edited(t, stateText, `"CA"`, `null`) + `]`, "data[].country"},
		"state without standard code": {states, `[` + edited(t, stateText, `,"countryStandardCode":"CAN"`, ``) + `]`, "data[].countryStandardCode"},
		"state with a null standard":  {states, `[` + edited(t, stateText, `"CAN"`, `null`) + `]`, "data[].countryStandardCode"},
		"states null":                 {states, `null`, "data"},
		"states an object":            {states, `{}`, "data"},
		"currency without its code":   {currencies, `[` + edited(t, currencyText, `"payout_currency":"PHP",`, ``) + `]`, "data[].payout_currency"},
		"currency with a null code":   {currencies, `[` + edited(t, currencyText, `"PHP"`, `null`) + `]`, "data[].payout_currency"},
		"currency with an empty code": {currencies, `[` + edited(t, currencyText, `"PHP"`, `""`) + `]`, "data[].payout_currency"},
		"currency with a null rate":   {currencies, `[` + edited(t, currencyText, `0.015`, `null`) + `]`, "data[].fee_rate"},
		"currency with a rate of %":   {currencies, `[` + edited(t, currencyText, `0.015`, `"1.5%"`) + `]`, "data[].fee_rate"},
		"currencies null":             {currencies, `null`, "data"},
		"currencies text":             {currencies, `""`, "data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.call(answered(t, anything, success(tc.data)))
			assert.Empty(t, got)
			require.ErrorIs(t, err, ErrUnreadable)
			unreadableAt(t, err, tc.path)
		})
	}
}

func TestEmptyRemittanceLists(t *testing.T) {
	t.Parallel()
	states, err := answered(t, anything, success(`[]`)).ListRemittanceStates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []RemittanceState{}, states)
	currencies, err := answered(t, anything, success(`[]`)).ListRemittanceCurrencies(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []RemittanceCurrency{}, currencies)
}

func fullTransfer() TransferParams {
	return TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "PHP", TransferType: TransferTypeC2C,
		PayoutMethod: PayoutMethodBankTransfer, SenderBeneficiaryRelationship: "11", TransferAmount: dec("250.5"),
		SenderSourceOfFund: "12", PurposeOfRemittance: "13", SenderFirstName: "Maria", SenderLastName: "Silva \"Z\\",
		SenderGender: "F", SenderMobileNumber: "+351 912 345 678", SenderIDType: "14", SenderIDNumber: "ID-100",
		SenderDateOfBirth: Date{1990, time.December, 31}, SenderNationality: "PT", SenderIDIssueCountry: "620",
		SenderCountry: "ES", SenderAddress: "Rua Augusta 5\n2 Esq", ReceiverNativeFirstName: "José",
		ReceiverNativeLastName: "Rizal", ReceiverIDType: "15", ReceiverIDNumber: "ID-200",
		ReceiverMobileNumber: "+63 917 123 4567", ReceiverBankAccountNumber: "0001234567",
		Extra: map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati", "note": ""},
	}
}

const transferSent = `{"merchantOrderNo":"order-1","payoutCurrency":"PHP","transferType":"3","payoutMethod":"1",` +
	`"senderBeneficiaryRelationship":"11","transferAmount":"250.50","senderSourceOfFund":"12","purposeOfRemittance":"13",` +
	`"senderFirstName":"Maria","senderLastName":"Silva \"Z\\","senderGender":"F","senderMobileNumber":"+351 912 345 678",` +
	`"senderIdType":"14","senderIdNumber":"ID-100","senderDateOfBirth":"1990-12-31","senderNationality":"PT",` +
	`"senderIdIssueCountry":"620","senderCountry":"ES","senderAddress":"Rua Augusta 5\u000a2 Esq",` +
	`"receiverNativeFirstName":"José","receiverNativeLastName":"Rizal","receiverIdType":"15","receiverIdNumber":"ID-200",` +
	`"receiverMobileNumber":"+63 917 123 4567","receiverBankAccountNumber":"0001234567","branch":"Makati","swiftCode":"BNORPHMM"}`

func transferRequest(body string) string {
	return "POST /shop/api/v1/remittance/transfer\napplication/json\n\n" + body
}

func TestCreateTransferSendsEveryField(t *testing.T) {
	t.Parallel()
	noZeroField(t, fullTransfer())
	got, err := answered(t, transferRequest(transferSent), success(transferText), WithStrictDrift()).CreateTransfer(t.Context(), fullTransfer())
	require.NoError(t, err)
	assert.Equal(t, &Transfer{MerchantOrderNo: "order-1", APIOrderNo: "api-9", Status: TransferWaitProcess}, got)
	noZeroField(t, got)
}

func TestCreateTransferDoesNotSendEmptyFields(t *testing.T) {
	t.Parallel()
	c := answered(t, transferRequest(`{"merchantOrderNo":"order-1","transferAmount":"1.00"}`), success(transferText))
	got, err := c.CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "order-1", TransferAmount: dec("1")})
	require.NoError(t, err)
	assert.Equal(t, "api-9", got.APIOrderNo)
}

func TestRevealJSONIsWhatIsSent(t *testing.T) {
	t.Parallel()
	text, err := fullTransfer().RevealJSON()
	require.NoError(t, err)
	assert.Equal(t, transferSent, string(text))

	text, err = TransferParams{MerchantOrderNo: "order-1", TransferAmount: dec("1")}.RevealJSON()
	require.NoError(t, err)
	assert.Equal(t, `{"merchantOrderNo":"order-1","transferAmount":"1.00"}`, string(text))

	text, err = TransferParams{MerchantOrderNo: "order-1"}.RevealJSON()
	require.ErrorIs(t, err, ErrInvalidParams)
	assert.Nil(t, text)
}

// A mask would lose the transfer of who keeps it, and its own JSON is what every
// logger would write.
func TestTransferParamsDoNotMarshal(t *testing.T) {
	t.Parallel()
	const refused = "cardwire: TransferParams cannot be marshaled, because names and account numbers would reach logs: " +
		"use RevealJSON"
	p := fullTransfer()
	for name, v := range map[string]any{
		"value": p, "pointer": &p, "in a map": map[string]any{"p": p}, "in a slice": []TransferParams{p},
		"in a struct": struct{ P *TransferParams }{&p}, "without fields": TransferParams{},
	} {
		text, err := json.Marshal(v)
		require.ErrorContains(t, err, refused, name)
		assert.Empty(t, text, name)
	}
	text, err := json.Marshal((*TransferParams)(nil))
	require.NoError(t, err)
	assert.Equal(t, "null", string(text))
}

// What was kept is what was to be sent, further fields included.
func TestTransferParamsAreReadAsTheyWereSent(t *testing.T) {
	t.Parallel()
	want := fullTransfer()
	want.TransferAmount = dec("250.50")
	want.Extra = map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati"} // an empty field is not sent
	least := TransferParams{MerchantOrderNo: "order-1", TransferAmount: dec("1.00")}
	for name, tc := range map[string]struct {
		text string
		want TransferParams
	}{
		"all fields":          {transferSent, want},
		"as HTML may hold it": {strings.ReplaceAll(transferSent, "+", `\u002b`), want},
		"no fields but two":   {`{"merchantOrderNo":"order-1","transferAmount":"1.00"}`, least},
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

func TestTransferParamsInALargerText(t *testing.T) {
	t.Parallel()
	var outbox struct {
		ID       int
		Transfer TransferParams
		None     *TransferParams
	}
	require.NoError(t, json.Unmarshal([]byte(`{"ID":7,"Transfer":`+transferSent+`,"None":null}`), &outbox))
	assert.Equal(t, map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati"}, outbox.Transfer.Extra)
	assert.Nil(t, outbox.None)

	_, err := answered(t, transferRequest(transferSent), success(transferText)).CreateTransfer(t.Context(), outbox.Transfer)
	require.NoError(t, err)

	require.NoError(t, json.Unmarshal([]byte(`{"Transfer":null}`), &outbox))
	assert.Equal(t, "order-1", outbox.Transfer.MerchantOrderNo, "null leaves a value as it is")
}

// What is never written is not read: it was written by somebody else, or changed
// since.
func TestTransferParamsThatAreNotReadAtAll(t *testing.T) {
	t.Parallel()
	const secret = "CANARY77"
	with := func(more string) string {
		return `{"merchantOrderNo":"order-1","transferAmount":"1.00",` + more + `}`
	}
	for name, tc := range map[string]struct {
		text string
		is   error
		want string
	}{
		"another kind":               {`["` + secret + `"]`, ErrUnreadable, "expected an object"},
		"text":                       {`"` + secret + `"`, ErrUnreadable, "expected an object"},
		"a number for an amount":     {`{"merchantOrderNo":"order-1","transferAmount":7702}`, ErrUnreadable, "*: expected a string"},
		"an amount without cents":    {`{"merchantOrderNo":"order-1","transferAmount":"7702"}`, ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount of three digits":  {`{"merchantOrderNo":"order-1","transferAmount":"7702.000"}`, ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount in the exponent":  {`{"merchantOrderNo":"order-1","transferAmount":"7702e0"}`, ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount of 0":             {`{"merchantOrderNo":"order-1","transferAmount":"0.00"}`, ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount below 0":          {`{"merchantOrderNo":"order-1","transferAmount":"-7702.00"}`, ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"a leading zero":             {`{"merchantOrderNo":"order-1","transferAmount":"07702.00"}`, ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"no such day":                {with(`"senderDateOfBirth":"1977-02-30"`), ErrUnreadable, "*: expected senderDateOfBirth in the form that is sent"},
		"a null":                     {with(`"senderLastName":null`), ErrUnreadable, "*: expected a string"},
		"a null beside":              {with(`"` + secret + `":null`), ErrUnreadable, "*: expected a string"},
		"a number beside":            {with(`"` + secret + `":77`), ErrUnreadable, "*: expected a string"},
		"an object beside":           {with(`"` + secret + `":{"a":"` + secret + `"}`), ErrUnreadable, "*: expected a string"},
		"an empty text":              {with(`"senderLastName":""`), ErrUnreadable, "*: expected a string that is not empty"},
		"an empty text beside":       {with(`"` + secret + `":""`), ErrUnreadable, "*: expected a string that is not empty"},
		"a field twice":              {with(`"payoutCurrency":"EUR","payoutCurrency":"EUR"`), ErrUnreadable, "not strict JSON: a field name appears twice"},
		"a name twice":               {with(`"` + secret + `":"a","` + secret + `":"b"`), ErrUnreadable, "not strict JSON: a field name appears twice"},
		"text behind it":             {transferSent + `"` + secret + `"`, ErrUnreadable, "not strict JSON: bytes follow the end"},
		"text behind null":           {`null "` + secret + `"`, ErrUnreadable, "not strict JSON: bytes follow the end"},
		"half of it":                 {transferSent[:200], ErrUnreadable, "not strict JSON: a colon is missing"},
		"not UTF-8":                  {with(`"senderLastName":"` + secret + "\xff\""), ErrUnreadable, "not strict JSON: a string is not valid UTF-8"},
		"no order number":            {`{"transferAmount":"7702.00"}`, ErrInvalidParams, "MerchantOrderNo is empty"},
		"no amount":                  {`{"merchantOrderNo":"` + secret + `"}`, ErrInvalidParams, "TransferAmount must be greater than zero"},
		"a code that is none":        {with(`"transferType":"` + secret + `"`), ErrInvalidParams, "TransferType is not a numeric code"},
		"a name in other letters":    {with(`"MerchantOrderNo":"` + secret + `"`), ErrInvalidParams, "Extra contains the name of a field of TransferParams"},
		"a name that does not exist": {with(`"":"` + secret + `"`), ErrInvalidParams, "Extra contains an empty name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fullTransfer()
			err := got.UnmarshalJSON([]byte(tc.text))
			message := tc.is.Error() + ": " + tc.want
			if errors.Is(tc.is, ErrUnreadable) {
				message = "cardwire: cannot unmarshal TransferParams: " + tc.want
			}
			require.EqualError(t, err, message)
			require.ErrorIs(t, err, tc.is)
			assert.Equal(t, fullTransfer(), got, "it is as it was")
			assert.NotRegexp(t, "CANARY|77", tc.want)
		})
	}
}

// plainTransfer has the fields of TransferParams and none of its methods.
type plainTransfer TransferParams

func TestTransferParamsPrintNoIdentity(t *testing.T) {
	t.Parallel()
	p := fullTransfer()
	const masked = "cardwire.TransferParams{MerchantOrderNo: order-1, PayoutCurrency: PHP, TransferAmount: 250.5, ...}"
	type holder struct{ Params TransferParams }
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		assert.Equal(t, masked, fmt.Sprintf(verb, p), verb)
		assert.Equal(t, masked, fmt.Sprintf(verb, &p), verb)
		for _, around := range []any{[]TransferParams{p}, map[string]TransferParams{"k": p}, holder{p}} {
			printed := fmt.Sprintf(verb, around)
			assert.Contains(t, printed, masked, verb)
			assert.NotContains(t, printed, "Rizal", verb)
		}
	}
	assert.Contains(t, fmt.Sprintf("%v", plainTransfer(p)), "Rizal", "without the methods it would be shown")

	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("sending", "transfer", p)
	assert.Contains(t, log.String(), "transfer.MerchantOrderNo=order-1 transfer.PayoutCurrency=PHP transfer.TransferAmount=250.5\n")
}

func TestNilTransferParamsPrint(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		assert.NotPanics(t, func() {
			assert.Equal(t, "<nil>", fmt.Sprintf(format, (*TransferParams)(nil)), format)
		})
	}
}

func TestTransferAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		data    string
		want    *Transfer // nil: an error
		outcome Outcome
		drift   []Drift
	}{
		"as documented":        {transferText, &Transfer{"order-1", "api-9", "wait_process"}, 0, nil},
		"another status":       {edited(t, transferText, "wait_process", "done"), &Transfer{"order-1", "api-9", "done"}, 0, nil},
		"our number missing":   {edited(t, transferText, `"merchant_order_no":"order-1",`, ``), &Transfer{"", "api-9", "wait_process"}, 0, []Drift{{"data.merchant_order_no", "missing field"}}},
		"our number null":      {edited(t, transferText, `"order-1"`, `null`), &Transfer{"", "api-9", "wait_process"}, 0, []Drift{{"data.merchant_order_no", "null for string"}}},
		"its number a number":  {edited(t, transferText, `"api-9"`, `9`), &Transfer{"order-1", "9", "wait_process"}, 0, []Drift{{"data.api_order_no", "number for string"}}},
		"status missing":       {edited(t, transferText, `,"status":"wait_process"`, ``), &Transfer{"order-1", "api-9", ""}, 0, []Drift{{"data.status", "missing field"}}},
		"another order":        {edited(t, transferText, `"order-1"`, `"order-2"`), nil, OutcomeUnknown, nil},
		"another letter case":  {edited(t, transferText, `"order-1"`, `"Order-1"`), nil, OutcomeUnknown, nil},
		"another as a number":  {edited(t, transferText, `"order-1"`, `1`), nil, OutcomeUnknown, []Drift{{"data.merchant_order_no", "number for string"}}},
		"its number missing":   {edited(t, transferText, `"api_order_no":"api-9",`, ``), nil, OutcomeExecuted, nil},
		"its number null":      {edited(t, transferText, `"api-9"`, `null`), nil, OutcomeExecuted, nil},
		"its number empty":     {edited(t, transferText, `"api-9"`, `""`), nil, OutcomeExecuted, nil},
		"no object":            {`"api-9"`, nil, OutcomeUnknown, nil},
		"null":                 {`null`, nil, OutcomeUnknown, nil},
		"an empty list":        {`[]`, nil, OutcomeUnknown, nil},
		"our number an object": {edited(t, transferText, `"order-1"`, `{}`), nil, OutcomeUnknown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observe, drift := driftsOf()
			c := answered(t, transferRequest(`{"merchantOrderNo":"order-1","transferAmount":"1.00"}`), success(tc.data), observe)
			got, err := c.CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "order-1", TransferAmount: dec("1")})
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.drift, *drift)
			if tc.want != nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrUnreadable)
			e := failure(t, err)
			assert.Equal(t, tc.outcome, e.Outcome)
			assert.Equal(t, "order-1", e.Reference)
		})
	}
}

func TestCreateTransferUnderStrictDrift(t *testing.T) {
	t.Parallel()
	c := answered(t, anything, success(edited(t, transferText, `"api-9"`, `9`)), WithStrictDrift())
	got, err := c.CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "order-1", TransferAmount: dec("1")})
	require.ErrorIs(t, err, ErrDrift)
	require.ErrorIs(t, err, ErrExecuted)
	assert.Equal(t, &Transfer{"order-1", "9", "wait_process"}, got)
}

func TestTransferAmountsAreSentWithTwoFractionDigits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		amount decimal.Decimal
		want   string
	}{
		"one digit":        {dec("12.3"), "12.30"},
		"two digits":       {dec("12.34"), "12.34"},
		"zeros behind":     {dec("12.300"), "12.30"},
		"many zeros":       {dec("12.3400000000"), "12.34"},
		"no digits":        {dec("12"), "12.00"},
		"an exponent":      {decimal.New(1, 3), "1000.00"},
		"the least":        {dec("0.01"), "0.01"},
		"one and a tenth":  {dec("0.1"), "0.10"},
		"more than uint64": {dec("98765432109876543210.99"), "98765432109876543210.99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answered(t, transferRequest(`{"merchantOrderNo":"order-1","transferAmount":"`+tc.want+`"}`), success(transferText))
			_, err := c.CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "order-1", TransferAmount: tc.amount})
			require.NoError(t, err)
		})
	}
}

func TestTransferAmountsThatAreNotSent(t *testing.T) {
	t.Parallel()
	const notAbove, inexact = "TransferAmount must be greater than zero", "TransferAmount has more than two decimal places"
	for name, tc := range map[string]struct {
		amount decimal.Decimal
		want   string
	}{
		"none":              {decimal.Decimal{}, notAbove},
		"zero":              {dec("0"), notAbove},
		"zero with a scale": {dec("0.00"), notAbove},
		"below zero":        {dec("-1"), notAbove},
		"three digits":      {dec("12.345"), inexact},
		"a thousandth":      {dec("0.001"), inexact},
		"just above":        {dec("12.340000001"), inexact},
		"too large":         {decimal.New(1, 38), "TransferAmount is too large"},
		"far too large":     {decimal.New(1, 1<<30), "TransferAmount is too large"},
		"far too small":     {decimal.New(1, -1<<30), inexact},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := unasked(t).CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "order-1", TransferAmount: tc.amount})
			refusedBeforehand(t, err, tc.want)
		})
	}
}

func TestCreateTransferRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*TransferParams)
		want   string
	}{
		"no order number":             {func(p *TransferParams) { p.MerchantOrderNo = "" }, "MerchantOrderNo is empty"},
		"spaces for an order number":  {func(p *TransferParams) { p.MerchantOrderNo = "  " }, "MerchantOrderNo begins or ends with white space"},
		"space behind order number":   {func(p *TransferParams) { p.MerchantOrderNo = "order-1 " }, "MerchantOrderNo begins or ends with white space"},
		"control in order number":     {func(p *TransferParams) { p.MerchantOrderNo = "order\x001" }, "MerchantOrderNo contains a control character"},
		"order number too long":       {func(p *TransferParams) { p.MerchantOrderNo = strings.Repeat("1", 129) }, "MerchantOrderNo is longer than 128 bytes"},
		"currency with a space":       {func(p *TransferParams) { p.PayoutCurrency = "P P" }, "PayoutCurrency is not a currency code"},
		"currency too short":          {func(p *TransferParams) { p.PayoutCurrency = "PH" }, "PayoutCurrency is not a currency code"},
		"transfer type by name":       {func(p *TransferParams) { p.TransferType = "C2C" }, "TransferType is not a numeric code"},
		"payout method by name":       {func(p *TransferParams) { p.PayoutMethod = "Bank Transfer" }, "PayoutMethod is not a numeric code"},
		"relationship by name":        {func(p *TransferParams) { p.SenderBeneficiaryRelationship = "brother" }, "SenderBeneficiaryRelationship is not a numeric code"},
		"source of fund by name":      {func(p *TransferParams) { p.SenderSourceOfFund = "salary" }, "SenderSourceOfFund is not a numeric code"},
		"purpose below zero":          {func(p *TransferParams) { p.PurposeOfRemittance = "-1" }, "PurposeOfRemittance is not a numeric code"},
		"sender's id type by name":    {func(p *TransferParams) { p.SenderIDType = "passport" }, "SenderIDType is not a numeric code"},
		"date of birth not there":     {func(p *TransferParams) { p.SenderDateOfBirth = Date{1990, 2, 30} }, "SenderDateOfBirth is not a valid date, as in 2026-01-31"},
		"date of birth, half of it":   {func(p *TransferParams) { p.SenderDateOfBirth = Date{Year: 1990} }, "SenderDateOfBirth is not a valid date, as in 2026-01-31"},
		"nationality of three":        {func(p *TransferParams) { p.SenderNationality = "PRT" }, "SenderNationality is not a two-letter country code"},
		"nationality in digits":       {func(p *TransferParams) { p.SenderNationality = "62" }, "SenderNationality is not a two-letter country code"},
		"issue country in letters":    {func(p *TransferParams) { p.SenderIDIssueCountry = "PT" }, "SenderIDIssueCountry is not a numeric code"},
		"country of one letter":       {func(p *TransferParams) { p.SenderCountry = "P" }, "SenderCountry is not a two-letter country code"},
		"country in another script":   {func(p *TransferParams) { p.SenderCountry = "é" }, "SenderCountry is not a two-letter country code"},
		"receiver's id type by name":  {func(p *TransferParams) { p.ReceiverIDType = "1a" }, "ReceiverIDType is not a numeric code"},
		"extra without a name":        {func(p *TransferParams) { p.Extra = map[string]string{"": "x"} }, "Extra contains an empty name"},
		"extra with a control":        {func(p *TransferParams) { p.Extra = map[string]string{"a\nb": "x"} }, "Extra contains a name with a control character or invalid UTF-8"},
		"extra name invalid UTF-8":    {func(p *TransferParams) { p.Extra = map[string]string{"a\xff": "x"} }, "Extra contains a name with a control character or invalid UTF-8"},
		"extra value invalid UTF-8":   {func(p *TransferParams) { p.Extra = map[string]string{"a": "x\xff"} }, "Extra contains a value that is not valid UTF-8"},
		"extra shadows a field":       {func(p *TransferParams) { p.Extra = map[string]string{"transferAmount": "1"} }, "Extra contains the name of a field of TransferParams"},
		"extra shadows, letter case":  {func(p *TransferParams) { p.Extra = map[string]string{"TRANSFERAMOUNT": "1"} }, "Extra contains the name of a field of TransferParams"},
		"extra shadows an empty one":  {func(p *TransferParams) { p.SenderGender = ""; p.Extra = map[string]string{"senderGender": "M"} }, "Extra contains the name of a field of TransferParams"},
		"extra shadows with no value": {func(p *TransferParams) { p.Extra = map[string]string{"merchantorderno": ""} }, "Extra contains the name of a field of TransferParams"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fullTransfer()
			tc.change(&p)
			_, err := unasked(t).CreateTransfer(t.Context(), p)
			refusedBeforehand(t, err, tc.want)
			_, encoded := p.RevealJSON()
			require.ErrorIs(t, encoded, ErrInvalidParams)
		})
	}
}

func TestNoFieldCanBeShadowedByExtra(t *testing.T) {
	t.Parallel()
	var sent map[string]string
	require.NoError(t, json.Unmarshal([]byte(transferSent), &sent))
	delete(sent, "branch")
	delete(sent, "swiftCode")
	require.Len(t, sent, 25)
	for name := range sent {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, shadow := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
				p := TransferParams{MerchantOrderNo: "order-1", TransferAmount: dec("1"), Extra: map[string]string{shadow: "x"}}
				_, err := unasked(t).CreateTransfer(t.Context(), p)
				refusedBeforehand(t, err, "Extra")
			}
		})
	}
}

// Invalid UTF-8 would arrive as another text: another name, or another account.
func TestNoTextOfATransferMayBeInvalidUTF8(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[TransferParams]()
	texts := 0
	for i := range fields.NumField() {
		if fields.Field(i).Type.Kind() != reflect.String {
			continue
		}
		texts++
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			t.Parallel()
			p := fullTransfer()
			reflect.ValueOf(&p).Elem().Field(i).SetString("a\xffb")
			_, err := unasked(t).CreateTransfer(t.Context(), p)
			refusedBeforehand(t, err, fields.Field(i).Name)
			assert.NotContains(t, err.Error(), "a\xffb")
		})
	}
	assert.Equal(t, 23, texts)
}

func TestRemittanceTypesEncodeUnderTheWireNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"state":    {stateWanted(), stateText},
		"currency": {currencyWanted(), currencyText},
		"transfer": {Transfer{"order-1", "api-9", TransferWaitProcess}, transferText},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(tc.value)
			require.NoError(t, err)
			assert.Equal(t, tc.want, string(text))
		})
	}
}

func TestRemittanceTypesDecodeAsStrictlyAsAReply(t *testing.T) {
	t.Parallel()
	var state RemittanceState
	require.NoError(t, json.Unmarshal([]byte(stateText), &state))
	assert.Equal(t, stateWanted(), state)
	var currency RemittanceCurrency
	require.NoError(t, json.Unmarshal([]byte(currencyText), &currency))
	assert.Equal(t, currencyWanted(), currency)
	var transfer Transfer
	require.NoError(t, json.Unmarshal([]byte(transferText), &transfer))
	assert.Equal(t, Transfer{"order-1", "api-9", TransferWaitProcess}, transfer)

	for name, tc := range map[string]struct {
		into any
		text string
	}{
		"state without code":     {&RemittanceState{}, edited(t, stateText, `"code":"CA-ON",`, ``)},
		"currency without code":  {&RemittanceCurrency{}, `{"id":9}`},
		"transfer with a repeat": {&Transfer{}, `{"api_order_no":"a","api_order_no":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ErrorIs(t, json.Unmarshal([]byte(tc.text), tc.into), ErrUnreadable)
		})
	}
}

// Whose answer it is counts before anything that is wrong with it.
func TestAnotherOrdersAnswerIsUnknownWhateverElseIsWrong(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"merchant_order_no":"M-2","api_order_no":"A-2","status":"wait_process"}`,
		`{"merchant_order_no":"M-2","status":"wait_process"}`,
		`{"api_order_no":null,"merchant_order_no":"M-2"}`,
		`{"status":1,"api_order_no":"A-2","merchant_order_no":"M-2"}`,
		`{"status":[{}],"api_order_no":"A-2","merchant_order_no":7}`,
		`{"api_order_no":"A-2","merchant_order_no":"M\u002d2"}`,
	} {
		c := answered(t, anything, success(data))
		_, err := c.CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "M-1", TransferAmount: dec("1")})
		assert.Equal(t, OutcomeUnknown, failure(t, err).Outcome, data)
	}
}

// Validate refuses what CreateTransfer does.
func TestValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, smallTransfer("M-1").Validate())
	for field, spoil := range map[string]func(*TransferParams){
		"MerchantOrderNo": func(p *TransferParams) { p.MerchantOrderNo = "" },
		"TransferAmount":  func(p *TransferParams) { p.TransferAmount = dec("10.005") },
		"Extra":           func(p *TransferParams) { p.Extra = map[string]string{"senderIdNumber": "1"} },
	} {
		p := smallTransfer("M-1")
		spoil(&p)
		require.ErrorIs(t, p.Validate(), ErrInvalidParams, field)
		require.ErrorContains(t, p.Validate(), field)
		_, err := unasked(t).CreateTransfer(t.Context(), p)
		require.ErrorContains(t, err, p.Validate().Error()[len("cardwire: "):])
	}
}
