package cardwire_test

import (
	"encoding/json"
	"errors"
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

func stateWanted() cardwire.RemittanceState {
	return cardwire.RemittanceState{Code: "CA-ON", Name: "Ontario", Country: "CA", CountryStandardCode: "CAN"}
}

func currencyWanted() cardwire.RemittanceCurrency {
	return cardwire.RemittanceCurrency{
		ID: 9, PayoutCurrency: "PHP", TransferTypeID: "3", TransferType: "C2C", PayoutMethodID: "1", PayoutMethod: "Bank Transfer",
		Country: "PHL", CountryCode: "PH", FeeRate: wiretest.Dec("0.015"), FixedFee: wiretest.Dec("2.50"),
		MinQuota: wiretest.Dec("10.01"), MaxQuota: wiretest.Dec("5000.02"), YearTransferAmountQuota: wiretest.Dec("50000.03"),
	}
}

func TestListRemittanceStatesReadsEveryField(t *testing.T) {
	t.Parallel()
	wiretest.NoZeroField(t, stateWanted())
	c := wiretest.Respond(t, "GET /shop/api/v1/remittance/states",
		wiretest.Success(`[`+wiretest.State+`,{"country":"CA","countryStandardCode":"CAN","name":"Qu\u00e9bec \/ Quebec","code":"CA-QC"}]`), cardwire.WithStrictDrift())
	got, err := c.ListRemittanceStates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.RemittanceState{
		stateWanted(), {Code: "CA-QC", Name: "Québec / Quebec", Country: "CA", CountryStandardCode: "CAN"},
	}, got)
}

func TestListRemittanceCurrenciesReadsEveryField(t *testing.T) {
	t.Parallel()
	wiretest.NoZeroField(t, currencyWanted())
	c := wiretest.Respond(t, "GET /shop/api/v1/remittance/currency", wiretest.Success(`[`+wiretest.Currency+`]`), cardwire.WithStrictDrift())
	got, err := c.ListRemittanceCurrencies(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.RemittanceCurrency{currencyWanted()}, got)
}

func TestRemittanceListQuirks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, replacement string
		change           func(*cardwire.RemittanceState)
		drift            []cardwire.Drift
	}{
		"code as a number": {`"CA-ON"`, `35`, func(s *cardwire.RemittanceState) { s.Code = "35" }, []cardwire.Drift{{"data[].code", "number for string"}}},
		"empty code":       {`"CA-ON"`, `""`, func(s *cardwire.RemittanceState) { s.Code = "" }, nil},
		"unknown field":    {`"name":`, `"region":1,"name":`, func(*cardwire.RemittanceState) {}, []cardwire.Drift{{"data[].*", "unknown field"}}},
	} {
		t.Run("state, "+name, func(t *testing.T) {
			t.Parallel()
			want := stateWanted()
			tc.change(&want)
			response := wiretest.Success(`[` + wiretest.Edited(t, wiretest.State, tc.old, tc.replacement) + `]`)
			wiretest.ReadsQuirk(t, wiretest.Anything, response, (*cardwire.Client).ListRemittanceStates, []cardwire.RemittanceState{want}, tc.drift)
		})
	}
	for name, tc := range map[string]struct {
		old, replacement string
		change           func(*cardwire.RemittanceCurrency)
		drift            []cardwire.Drift
	}{
		"rate as text":       {`0.015`, `"0.0150"`, func(c *cardwire.RemittanceCurrency) { c.FeeRate = wiretest.Dec("0.0150") }, []cardwire.Drift{{"data[].fee_rate", "string for number"}}},
		"id as text":         {`"id":9`, `"id":"9"`, func(*cardwire.RemittanceCurrency) {}, []cardwire.Drift{{"data[].id", "string for number"}}},
		"id missing":         {`"id":9,`, ``, func(c *cardwire.RemittanceCurrency) { c.ID = 0 }, []cardwire.Drift{{"data[].id", "missing field"}}},
		"quota missing":      {`"min_quota":10.01,`, ``, func(c *cardwire.RemittanceCurrency) { c.MinQuota = decimal.Decimal{} }, []cardwire.Drift{{"data[].min_quota", "missing field"}}},
		"null type's name":   {`"C2C"`, `null`, func(c *cardwire.RemittanceCurrency) { c.TransferType = "" }, []cardwire.Drift{{"data[].transfer_type_value", "null for string"}}},
		"quota with an e":    {`5000.02`, `5e3`, func(c *cardwire.RemittanceCurrency) { c.MaxQuota = decimal.New(5, 3) }, nil},
		"currency a number":  {`"PHP"`, `608`, func(c *cardwire.RemittanceCurrency) { c.PayoutCurrency = "608" }, []cardwire.Drift{{"data[].payout_currency", "number for string"}}},
		"another type's id":  {`_type_id":3`, `_type_id":4`, func(c *cardwire.RemittanceCurrency) { c.TransferTypeID = "4" }, nil},
		"null type's id":     {`_type_id":3`, `_type_id":null`, func(c *cardwire.RemittanceCurrency) { c.TransferTypeID = "" }, []cardwire.Drift{{"data[].transfer_type_id", "null for number"}}},
		"method's id a text": {`_method_id":1`, `_method_id":"1"`, func(*cardwire.RemittanceCurrency) {}, []cardwire.Drift{{"data[].payout_method_id", "string for number"}}},
	} {
		t.Run("currency, "+name, func(t *testing.T) {
			t.Parallel()
			want := currencyWanted()
			tc.change(&want)
			response := wiretest.Success(`[` + wiretest.Edited(t, wiretest.Currency, tc.old, tc.replacement) + `]`)
			wiretest.ReadsQuirk(t, wiretest.Anything, response, (*cardwire.Client).ListRemittanceCurrencies, []cardwire.RemittanceCurrency{want}, tc.drift)
		})
	}
}

func TestUnreadableRemittanceLists(t *testing.T) {
	t.Parallel()
	states := func(c *cardwire.Client) (any, error) { return c.ListRemittanceStates(t.Context()) }
	currencies := func(c *cardwire.Client) (any, error) { return c.ListRemittanceCurrencies(t.Context()) }
	for name, tc := range map[string]struct {
		call func(*cardwire.Client) (any, error)
		data string
		path string
	}{
		"state without code":          {states, `[` + wiretest.Edited(t, wiretest.State, `"code":"CA-ON",`, ``) + `]`, "data[].code"},
		"state with a null code":      {states, `[` + wiretest.Edited(t, wiretest.State, `"CA-ON"`, `null`) + `]`, "data[].code"},
		"state without name":          {states, `[` + wiretest.Edited(t, wiretest.State, `"name":"Ontario",`, ``) + `]`, "data[].name"},
		"state with a null name":      {states, `[` + wiretest.Edited(t, wiretest.State, `"Ontario"`, `null`) + `]`, "data[].name"},
		"state without country":       {states, `[` + wiretest.Edited(t, wiretest.State, `"country":"CA",`, ``) + `]`, "data[].country"},
		"state with a null country":   {states, `[` + wiretest.Edited(t, wiretest.State, `"CA"`, `null`) + `]`, "data[].country"},
		"state without standard code": {states, `[` + wiretest.Edited(t, wiretest.State, `,"countryStandardCode":"CAN"`, ``) + `]`, "data[].countryStandardCode"},
		"state with a null standard":  {states, `[` + wiretest.Edited(t, wiretest.State, `"CAN"`, `null`) + `]`, "data[].countryStandardCode"},
		"states null":                 {states, `null`, "data"},
		"states an object":            {states, `{}`, "data"},
		"currency without its code":   {currencies, `[` + wiretest.Edited(t, wiretest.Currency, `"payout_currency":"PHP",`, ``) + `]`, "data[].payout_currency"},
		"currency with a null code":   {currencies, `[` + wiretest.Edited(t, wiretest.Currency, `"PHP"`, `null`) + `]`, "data[].payout_currency"},
		"currency with an empty code": {currencies, `[` + wiretest.Edited(t, wiretest.Currency, `"PHP"`, `""`) + `]`, "data[].payout_currency"},
		"currency with a null rate":   {currencies, `[` + wiretest.Edited(t, wiretest.Currency, `0.015`, `null`) + `]`, "data[].fee_rate"},
		"currency with a rate of %":   {currencies, `[` + wiretest.Edited(t, wiretest.Currency, `0.015`, `"1.5%"`) + `]`, "data[].fee_rate"},
		"currencies null":             {currencies, `null`, "data"},
		"currencies text":             {currencies, `""`, "data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.call(wiretest.Respond(t, wiretest.Anything, wiretest.Success(tc.data)))
			assert.Empty(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			wiretest.UnreadableAt(t, err, tc.path)
		})
	}
}

func TestEmptyRemittanceLists(t *testing.T) {
	t.Parallel()
	states, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[]`)).ListRemittanceStates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.RemittanceState{}, states)
	currencies, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[]`)).ListRemittanceCurrencies(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.RemittanceCurrency{}, currencies)
}

func fullTransfer() cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "PHP", TransferType: cardwire.TransferTypeC2C,
		PayoutMethod: cardwire.PayoutMethodBankTransfer, SenderBeneficiaryRelationship: "11", TransferAmount: wiretest.Dec("250.5"),
		SenderSourceOfFund: "12", PurposeOfRemittance: "13", SenderFirstName: "Maria", SenderLastName: "Silva \"Z\\",
		SenderGender: "F", SenderMobileNumber: "+351 912 345 678", SenderIDType: "14", SenderIDNumber: "ID-100",
		SenderDateOfBirth: cardwire.Date{1990, time.December, 31}, SenderNationality: "PT", SenderIDIssueCountry: "620",
		SenderCountry: "ES", SenderAddress: "Rua Augusta 5\n2 Esq", ReceiverNativeFirstName: "José",
		ReceiverNativeLastName: "Rizal", ReceiverIDType: "15", ReceiverIDNumber: "ID-200",
		ReceiverMobileNumber: "+63 917 123 4567", ReceiverBankAccountNumber: "0001234567",
		Extra: map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati", "note": ""},
	}
}

func TestCreateTransferSendsEveryField(t *testing.T) {
	t.Parallel()
	wiretest.NoZeroField(t, fullTransfer())
	got, err := wiretest.Respond(t, wiretest.TransferRequest(wiretest.TransferSent), wiretest.Success(wiretest.Transfer), cardwire.WithStrictDrift()).CreateTransfer(t.Context(), fullTransfer())
	require.NoError(t, err)
	assert.Equal(t, &cardwire.Transfer{MerchantOrderNo: "order-1", APIOrderNo: "api-9", Status: cardwire.TransferWaitProcess}, got)
	wiretest.NoZeroField(t, got)
}

func TestCreateTransferDoesNotSendEmptyFields(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.TransferRequest(`{"merchantOrderNo":"order-1","transferAmount":"1.00"}`), wiretest.Success(wiretest.Transfer))
	got, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: wiretest.Dec("1")})
	require.NoError(t, err)
	assert.Equal(t, "api-9", got.APIOrderNo)
}

func TestRevealJSONIsWhatIsSent(t *testing.T) {
	t.Parallel()
	text, err := fullTransfer().RevealJSON()
	require.NoError(t, err)
	assert.Equal(t, wiretest.TransferSent, string(text))

	text, err = cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: wiretest.Dec("1")}.RevealJSON()
	require.NoError(t, err)
	assert.Equal(t, `{"merchantOrderNo":"order-1","transferAmount":"1.00"}`, string(text))

	text, err = cardwire.TransferParams{MerchantOrderNo: "order-1"}.RevealJSON()
	require.ErrorIs(t, err, cardwire.ErrInvalidParams)
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
	want := fullTransfer()
	want.TransferAmount = wiretest.Dec("250.50")
	want.Extra = map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati"} // an empty field is not sent
	least := cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: wiretest.Dec("1.00")}
	for name, tc := range map[string]struct {
		text string
		want cardwire.TransferParams
	}{
		"all fields":          {wiretest.TransferSent, want},
		"as HTML may hold it": {strings.ReplaceAll(wiretest.TransferSent, "+", `\u002b`), want},
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

func TestTransferParamsInALargerValue(t *testing.T) {
	t.Parallel()
	var outbox struct {
		ID       int
		Transfer cardwire.TransferParams
		None     *cardwire.TransferParams
	}
	require.NoError(t, json.Unmarshal([]byte(`{"ID":7,"Transfer":`+wiretest.TransferSent+`,"None":null}`), &outbox))
	assert.Equal(t, map[string]string{"swiftCode": "BNORPHMM", "branch": "Makati"}, outbox.Transfer.Extra)
	assert.Nil(t, outbox.None)

	_, err := wiretest.Respond(t, wiretest.TransferRequest(wiretest.TransferSent), wiretest.Success(wiretest.Transfer)).CreateTransfer(t.Context(), outbox.Transfer)
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
		"another kind":               {`["` + secret + `"]`, cardwire.ErrUnreadable, "expected an object"},
		"text":                       {`"` + secret + `"`, cardwire.ErrUnreadable, "expected an object"},
		"a number for an amount":     {`{"merchantOrderNo":"order-1","transferAmount":7702}`, cardwire.ErrUnreadable, "*: expected a string"},
		"an amount without cents":    {`{"merchantOrderNo":"order-1","transferAmount":"7702"}`, cardwire.ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount of three digits":  {`{"merchantOrderNo":"order-1","transferAmount":"7702.000"}`, cardwire.ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount in the exponent":  {`{"merchantOrderNo":"order-1","transferAmount":"7702e0"}`, cardwire.ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount of 0":             {`{"merchantOrderNo":"order-1","transferAmount":"0.00"}`, cardwire.ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"an amount below 0":          {`{"merchantOrderNo":"order-1","transferAmount":"-7702.00"}`, cardwire.ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"a leading zero":             {`{"merchantOrderNo":"order-1","transferAmount":"07702.00"}`, cardwire.ErrUnreadable, "*: expected transferAmount in the form that is sent"},
		"no such day":                {with(`"senderDateOfBirth":"1977-02-30"`), cardwire.ErrUnreadable, "*: expected senderDateOfBirth in the form that is sent"},
		"a null":                     {with(`"senderLastName":null`), cardwire.ErrUnreadable, "*: expected a string"},
		"a null beside":              {with(`"` + secret + `":null`), cardwire.ErrUnreadable, "*: expected a string"},
		"a number beside":            {with(`"` + secret + `":77`), cardwire.ErrUnreadable, "*: expected a string"},
		"an object beside":           {with(`"` + secret + `":{"a":"` + secret + `"}`), cardwire.ErrUnreadable, "*: expected a string"},
		"an empty text":              {with(`"senderLastName":""`), cardwire.ErrUnreadable, "*: expected a string that is not empty"},
		"an empty text beside":       {with(`"` + secret + `":""`), cardwire.ErrUnreadable, "*: expected a string that is not empty"},
		"a field twice":              {with(`"payoutCurrency":"EUR","payoutCurrency":"EUR"`), cardwire.ErrUnreadable, "not strict JSON: a field name appears twice"},
		"a name twice":               {with(`"` + secret + `":"a","` + secret + `":"b"`), cardwire.ErrUnreadable, "not strict JSON: a field name appears twice"},
		"text behind it":             {wiretest.TransferSent + `"` + secret + `"`, cardwire.ErrUnreadable, "not strict JSON: bytes follow the end"},
		"text behind null":           {`null "` + secret + `"`, cardwire.ErrUnreadable, "not strict JSON: bytes follow the end"},
		"half of it":                 {wiretest.TransferSent[:200], cardwire.ErrUnreadable, "not strict JSON: a colon is missing"},
		"not UTF-8":                  {with(`"senderLastName":"` + secret + "\xff\""), cardwire.ErrUnreadable, "not strict JSON: a string is not valid UTF-8"},
		"no order number":            {`{"transferAmount":"7702.00"}`, cardwire.ErrInvalidParams, "MerchantOrderNo is empty"},
		"no amount":                  {`{"merchantOrderNo":"` + secret + `"}`, cardwire.ErrInvalidParams, "TransferAmount must be greater than zero"},
		"a code that is none":        {with(`"transferType":"` + secret + `"`), cardwire.ErrInvalidParams, "TransferType must be a code of at most 18 digits"},
		"a name in other letters":    {with(`"MerchantOrderNo":"` + secret + `"`), cardwire.ErrInvalidParams, "Extra contains the name of a field of TransferParams"},
		"a name that does not exist": {with(`"":"` + secret + `"`), cardwire.ErrInvalidParams, "Extra contains an empty name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fullTransfer()
			err := got.UnmarshalJSON([]byte(tc.text))
			message := tc.is.Error() + ": " + tc.want
			if errors.Is(tc.is, cardwire.ErrUnreadable) {
				message = "cardwire: cannot unmarshal TransferParams: " + tc.want
			}
			require.EqualError(t, err, message)
			require.ErrorIs(t, err, tc.is)
			assert.Equal(t, fullTransfer(), got, "it is as it was")
			assert.NotRegexp(t, "CANARY|77", tc.want)
		})
	}
}

func TestTransferResponses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		data    string
		want    *cardwire.Transfer // nil: an error
		outcome cardwire.Outcome
		drift   []cardwire.Drift
	}{
		"as documented":        {wiretest.Transfer, &cardwire.Transfer{"order-1", "api-9", "wait_process"}, 0, nil},
		"another status":       {wiretest.Edited(t, wiretest.Transfer, "wait_process", "done"), &cardwire.Transfer{"order-1", "api-9", "done"}, 0, nil},
		"our number missing":   {wiretest.Edited(t, wiretest.Transfer, `"merchant_order_no":"order-1",`, ``), &cardwire.Transfer{"", "api-9", "wait_process"}, 0, []cardwire.Drift{{"data.merchant_order_no", "missing field"}}},
		"our number null":      {wiretest.Edited(t, wiretest.Transfer, `"order-1"`, `null`), &cardwire.Transfer{"", "api-9", "wait_process"}, 0, []cardwire.Drift{{"data.merchant_order_no", "null for string"}}},
		"its number a number":  {wiretest.Edited(t, wiretest.Transfer, `"api-9"`, `9`), &cardwire.Transfer{"order-1", "9", "wait_process"}, 0, []cardwire.Drift{{"data.api_order_no", "number for string"}}},
		"status missing":       {wiretest.Edited(t, wiretest.Transfer, `,"status":"wait_process"`, ``), &cardwire.Transfer{"order-1", "api-9", ""}, 0, []cardwire.Drift{{"data.status", "missing field"}}},
		"another order":        {wiretest.Edited(t, wiretest.Transfer, `"order-1"`, `"order-2"`), nil, cardwire.OutcomeUnknown, nil},
		"another letter case":  {wiretest.Edited(t, wiretest.Transfer, `"order-1"`, `"Order-1"`), nil, cardwire.OutcomeUnknown, nil},
		"another as a number":  {wiretest.Edited(t, wiretest.Transfer, `"order-1"`, `1`), nil, cardwire.OutcomeUnknown, []cardwire.Drift{{"data.merchant_order_no", "number for string"}}},
		"its number missing":   {wiretest.Edited(t, wiretest.Transfer, `"api_order_no":"api-9",`, ``), nil, cardwire.OutcomeExecuted, nil},
		"its number null":      {wiretest.Edited(t, wiretest.Transfer, `"api-9"`, `null`), nil, cardwire.OutcomeExecuted, nil},
		"its number empty":     {wiretest.Edited(t, wiretest.Transfer, `"api-9"`, `""`), nil, cardwire.OutcomeExecuted, nil},
		"no object":            {`"api-9"`, nil, cardwire.OutcomeUnknown, nil},
		"null":                 {`null`, nil, cardwire.OutcomeUnknown, nil},
		"an empty list":        {`[]`, nil, cardwire.OutcomeUnknown, nil},
		"our number an object": {wiretest.Edited(t, wiretest.Transfer, `"order-1"`, `{}`), nil, cardwire.OutcomeUnknown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observe, drift := wiretest.Drifts()
			c := wiretest.Respond(t, wiretest.TransferRequest(`{"merchantOrderNo":"order-1","transferAmount":"1.00"}`), wiretest.Success(tc.data), observe)
			got, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: wiretest.Dec("1")})
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.drift, *drift)
			if tc.want != nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			e := wiretest.Failure(t, err)
			assert.Equal(t, tc.outcome, e.Outcome)
			assert.Equal(t, "order-1", e.Reference)
		})
	}
}

func TestCreateTransferUnderStrictDrift(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.Anything, wiretest.Success(wiretest.Edited(t, wiretest.Transfer, `"api-9"`, `9`)), cardwire.WithStrictDrift())
	got, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: wiretest.Dec("1")})
	require.ErrorIs(t, err, cardwire.ErrDrift)
	require.ErrorIs(t, err, cardwire.ErrExecuted)
	assert.Equal(t, &cardwire.Transfer{"order-1", "9", "wait_process"}, got)
}

func TestTransferAmountsAreSentWithTwoFractionDigits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		amount decimal.Decimal
		want   string
	}{
		"one digit":        {wiretest.Dec("12.3"), "12.30"},
		"two digits":       {wiretest.Dec("12.34"), "12.34"},
		"zeros behind":     {wiretest.Dec("12.300"), "12.30"},
		"many zeros":       {wiretest.Dec("12.3400000000"), "12.34"},
		"no digits":        {wiretest.Dec("12"), "12.00"},
		"an exponent":      {decimal.New(1, 3), "1000.00"},
		"the least":        {wiretest.Dec("0.01"), "0.01"},
		"one and a tenth":  {wiretest.Dec("0.1"), "0.10"},
		"more than uint64": {wiretest.Dec("98765432109876543210.99"), "98765432109876543210.99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, wiretest.TransferRequest(`{"merchantOrderNo":"order-1","transferAmount":"`+tc.want+`"}`), wiretest.Success(wiretest.Transfer))
			_, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: tc.amount})
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
		"zero":              {wiretest.Dec("0"), notAbove},
		"zero with a scale": {wiretest.Dec("0.00"), notAbove},
		"below zero":        {wiretest.Dec("-1"), notAbove},
		"three digits":      {wiretest.Dec("12.345"), inexact},
		"a thousandth":      {wiretest.Dec("0.001"), inexact},
		"just above":        {wiretest.Dec("12.340000001"), inexact},
		"too large":         {decimal.New(1, 38), "TransferAmount is too large"},
		"far too large":     {decimal.New(1, 1<<30), "TransferAmount is too large"},
		"far too small":     {decimal.New(1, -1<<30), inexact},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wiretest.Unasked(t).CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: tc.amount})
			wiretest.RefusedBeforehand(t, err, tc.want)
		})
	}
}

func TestCreateTransferRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*cardwire.TransferParams)
		want   string
	}{
		"no order number":            {func(p *cardwire.TransferParams) { p.MerchantOrderNo = "" }, "MerchantOrderNo is empty"},
		"spaces for an order number": {func(p *cardwire.TransferParams) { p.MerchantOrderNo = "  " }, "MerchantOrderNo begins or ends with white space"},
		"space behind order number":  {func(p *cardwire.TransferParams) { p.MerchantOrderNo = "order-1 " }, "MerchantOrderNo begins or ends with white space"},
		"control in order number":    {func(p *cardwire.TransferParams) { p.MerchantOrderNo = "order\x001" }, "MerchantOrderNo contains a control character"},
		"order number too long":      {func(p *cardwire.TransferParams) { p.MerchantOrderNo = strings.Repeat("1", 129) }, "MerchantOrderNo is longer than 128 bytes"},
		"currency with a space":      {func(p *cardwire.TransferParams) { p.PayoutCurrency = "P P" }, "PayoutCurrency must be a currency code of 3 to 10 letters or digits, as in EUR"},
		"currency too short":         {func(p *cardwire.TransferParams) { p.PayoutCurrency = "PH" }, "PayoutCurrency must be a currency code of 3 to 10 letters or digits, as in EUR"},
		"transfer type by name":      {func(p *cardwire.TransferParams) { p.TransferType = "C2C" }, "TransferType must be a code of at most 18 digits"},
		"payout method by name":      {func(p *cardwire.TransferParams) { p.PayoutMethod = "Bank Transfer" }, "PayoutMethod must be a code of at most 18 digits"},
		"relationship by name":       {func(p *cardwire.TransferParams) { p.SenderBeneficiaryRelationship = "brother" }, "SenderBeneficiaryRelationship must be a code of at most 18 digits"},
		"source of fund by name":     {func(p *cardwire.TransferParams) { p.SenderSourceOfFund = "salary" }, "SenderSourceOfFund must be a code of at most 18 digits"},
		"purpose below zero":         {func(p *cardwire.TransferParams) { p.PurposeOfRemittance = "-1" }, "PurposeOfRemittance must be a code of at most 18 digits"},
		"sender's id type by name":   {func(p *cardwire.TransferParams) { p.SenderIDType = "passport" }, "SenderIDType must be a code of at most 18 digits"},
		"date of birth not there":    {func(p *cardwire.TransferParams) { p.SenderDateOfBirth = cardwire.Date{1990, 2, 30} }, "SenderDateOfBirth is not a valid date, as in 2026-01-31"},
		"date of birth, half of it":  {func(p *cardwire.TransferParams) { p.SenderDateOfBirth = cardwire.Date{Year: 1990} }, "SenderDateOfBirth is not a valid date, as in 2026-01-31"},
		"nationality of three":       {func(p *cardwire.TransferParams) { p.SenderNationality = "PRT" }, "SenderNationality must be a two-letter country code"},
		"nationality in digits":      {func(p *cardwire.TransferParams) { p.SenderNationality = "62" }, "SenderNationality must be a two-letter country code"},
		"issue country in letters":   {func(p *cardwire.TransferParams) { p.SenderIDIssueCountry = "PT" }, "SenderIDIssueCountry must be a code of at most 18 digits"},
		"country of one letter":      {func(p *cardwire.TransferParams) { p.SenderCountry = "P" }, "SenderCountry must be a two-letter country code"},
		"country in another script":  {func(p *cardwire.TransferParams) { p.SenderCountry = "é" }, "SenderCountry must be a two-letter country code"},
		"receiver's id type by name": {func(p *cardwire.TransferParams) { p.ReceiverIDType = "1a" }, "ReceiverIDType must be a code of at most 18 digits"},
		"extra without a name":       {func(p *cardwire.TransferParams) { p.Extra = map[string]string{"": "x"} }, "Extra contains an empty name"},
		"extra with a control":       {func(p *cardwire.TransferParams) { p.Extra = map[string]string{"a\nb": "x"} }, "Extra contains a name with a control character or invalid UTF-8"},
		"extra name invalid UTF-8":   {func(p *cardwire.TransferParams) { p.Extra = map[string]string{"a\xff": "x"} }, "Extra contains a name with a control character or invalid UTF-8"},
		"extra value invalid UTF-8":  {func(p *cardwire.TransferParams) { p.Extra = map[string]string{"a": "x\xff"} }, "Extra contains a value that is not valid UTF-8"},
		"extra shadows a field":      {func(p *cardwire.TransferParams) { p.Extra = map[string]string{"transferAmount": "1"} }, "Extra contains the name of a field of TransferParams"},
		"extra shadows, letter case": {func(p *cardwire.TransferParams) { p.Extra = map[string]string{"TRANSFERAMOUNT": "1"} }, "Extra contains the name of a field of TransferParams"},
		"extra shadows an empty one": {func(p *cardwire.TransferParams) {
			p.SenderGender = ""
			p.Extra = map[string]string{"senderGender": "M"}
		}, "Extra contains the name of a field of TransferParams"},
		"extra shadows with no value": {func(p *cardwire.TransferParams) { p.Extra = map[string]string{"merchantorderno": ""} }, "Extra contains the name of a field of TransferParams"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fullTransfer()
			tc.change(&p)
			_, err := wiretest.Unasked(t).CreateTransfer(t.Context(), p)
			wiretest.RefusedBeforehand(t, err, tc.want)
			_, encoded := p.RevealJSON()
			require.ErrorIs(t, encoded, cardwire.ErrInvalidParams)
		})
	}
}

func TestNoFieldCanBeShadowedByExtra(t *testing.T) {
	t.Parallel()
	var sent map[string]string
	require.NoError(t, json.Unmarshal([]byte(wiretest.TransferSent), &sent))
	delete(sent, "branch")
	delete(sent, "swiftCode")
	require.Len(t, sent, 25)
	for name := range sent {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, shadow := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
				p := cardwire.TransferParams{MerchantOrderNo: "order-1", TransferAmount: wiretest.Dec("1"), Extra: map[string]string{shadow: "x"}}
				_, err := wiretest.Unasked(t).CreateTransfer(t.Context(), p)
				wiretest.RefusedBeforehand(t, err, "Extra")
			}
		})
	}
}

// Invalid UTF-8 would arrive as another string: another name, or another account.
func TestNoStringOfATransferMayBeInvalidUTF8(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[cardwire.TransferParams]()
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
			_, err := wiretest.Unasked(t).CreateTransfer(t.Context(), p)
			wiretest.RefusedBeforehand(t, err, fields.Field(i).Name)
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
		"state":    {stateWanted(), wiretest.State},
		"currency": {currencyWanted(), wiretest.Currency},
		"transfer": {cardwire.Transfer{"order-1", "api-9", cardwire.TransferWaitProcess}, wiretest.Transfer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(tc.value)
			require.NoError(t, err)
			assert.Equal(t, tc.want, string(text))
		})
	}
}

func TestRemittanceTypesDecodeAsStrictlyAsAResponse(t *testing.T) {
	t.Parallel()
	var state cardwire.RemittanceState
	require.NoError(t, json.Unmarshal([]byte(wiretest.State), &state))
	assert.Equal(t, stateWanted(), state)
	var currency cardwire.RemittanceCurrency
	require.NoError(t, json.Unmarshal([]byte(wiretest.Currency), &currency))
	assert.Equal(t, currencyWanted(), currency)
	var transfer cardwire.Transfer
	require.NoError(t, json.Unmarshal([]byte(wiretest.Transfer), &transfer))
	assert.Equal(t, cardwire.Transfer{"order-1", "api-9", cardwire.TransferWaitProcess}, transfer)

	for name, tc := range map[string]struct {
		into any
		text string
	}{
		"state without code":     {&cardwire.RemittanceState{}, wiretest.Edited(t, wiretest.State, `"code":"CA-ON",`, ``)},
		"currency without code":  {&cardwire.RemittanceCurrency{}, `{"id":9}`},
		"transfer with a repeat": {&cardwire.Transfer{}, `{"api_order_no":"a","api_order_no":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ErrorIs(t, json.Unmarshal([]byte(tc.text), tc.into), cardwire.ErrUnreadable)
		})
	}
}

// Whose response it is counts before anything that is wrong with it.
func TestAnotherOrdersResponseIsUnknownWhateverElseIsWrong(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"merchant_order_no":"M-2","api_order_no":"A-2","status":"wait_process"}`,
		`{"merchant_order_no":"M-2","status":"wait_process"}`,
		`{"api_order_no":null,"merchant_order_no":"M-2"}`,
		`{"status":1,"api_order_no":"A-2","merchant_order_no":"M-2"}`,
		`{"status":[{}],"api_order_no":"A-2","merchant_order_no":7}`,
		`{"api_order_no":"A-2","merchant_order_no":"M\u002d2"}`,
	} {
		c := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data))
		_, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "M-1", TransferAmount: wiretest.Dec("1")})
		assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, err).Outcome, data)
	}
}

// Validate refuses what CreateTransfer does.
func TestValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, wiretest.SmallTransfer("M-1").Validate())
	for field, spoil := range map[string]func(*cardwire.TransferParams){
		"MerchantOrderNo": func(p *cardwire.TransferParams) { p.MerchantOrderNo = "" },
		"TransferAmount":  func(p *cardwire.TransferParams) { p.TransferAmount = wiretest.Dec("10.005") },
		"Extra":           func(p *cardwire.TransferParams) { p.Extra = map[string]string{"senderIdNumber": "1"} },
	} {
		p := wiretest.SmallTransfer("M-1")
		spoil(&p)
		require.ErrorIs(t, p.Validate(), cardwire.ErrInvalidParams, field)
		require.ErrorContains(t, p.Validate(), field)
		_, err := wiretest.Unasked(t).CreateTransfer(t.Context(), p)
		require.ErrorContains(t, err, p.Validate().Error()[len("cardwire: "):])
	}
}
