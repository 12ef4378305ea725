package cardwire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// A BIN as List BINs returns it, parts of it that other tests edit, and what it is read as.
const (
	foreignFees     = `{"10-99.99":{"fee":0.11,"fee_rate":0.012,"extra_fee":0.13,"extra_fee_rate":0.014}}`
	authRequirement = `{"level":"advanced","fields":[{"field":"idType","required":true,"desc":"kind of document"},` +
		`{"field":"selfieAttachmentKey","required":true,"desc":"photo"}]}`

	oneBIN = `{"id":37,"bin":"493193","type":"share","name":"Travel","network":"VISA","country":"US","avs":1,"3ds":1,` +
		`"day_purchase_limit":1000.5,"single_purchase_limit":200.25,"lifetime_purchase_limit":90000,"maintain":true,` +
		`"weigh":8,"status":true,"api":true,"physical":1,"currency":"USD","foreign_fee_config":` + foreignFees + `,` +
		`"auth_fee_config":{"fee": 1},"refund_fee_config":{"fee":[2,"3"]},"reversal_fee_config":{"a":{"b":null}},` +
		`"cashback_fee_config":[{"rate": 0.01},7,"x"],"apple_pay":1,"google_wallet":1,"card_nums":55,` +
		`"is_card_count_limited":1,"business_mode":["B2B","B2C"],"auth_level":2,"create_amount":1.05,` +
		`"card_depost_fee":0.02,"allow_create":true,"allow_in":true,"allow_out":true,"allow_suspend":true,` +
		`"allow_enable":true,"allow_frozen":true,"allow_unfrozen":true,"allow_destory":true,` +
		`"create_min_amount":10.01,"create_max_amount":10.02,"recharge_min_amount":10.03,` +
		`"recharge_max_amount":10.04,"withdraw_min_amount":10.05,"withdraw_max_amount":10.06,` +
		`"refuse_times":3,"refuse_rate":0.250,"scenes":["ads","travel"],"auth_requirement":` + authRequirement + `}`
)

func binWanted(*testing.T) cardwire.BIN {
	return cardwire.BIN{
		ID: 37, BIN: "493193", Type: "share", Name: "Travel", Network: "VISA", Country: "US", Currency: "USD",
		AVS: true, ThreeDS: true,
		DayPurchaseLimit: wiretest.Dec("1000.5"), SinglePurchaseLimit: wiretest.Dec("200.25"),
		LifetimePurchaseLimit: wiretest.Dec("90000"),
		Maintain:              true, Status: true, API: true, Physical: true, Weight: 8,
		ForeignFees: []cardwire.FeeTier{{
			Range: "10-99.99", Low: wiretest.Dec("10"), High: wiretest.Dec("99.99"), Bounded: true,
			Fee: wiretest.Dec("0.11"), FeeRate: wiretest.Dec("0.012"),
			ExtraFee: wiretest.Dec("0.13"), ExtraFeeRate: wiretest.Dec("0.014"),
		}},
		AuthFeeConfig:     json.RawMessage(`{"fee": 1}`),
		RefundFeeConfig:   json.RawMessage(`{"fee":[2,"3"]}`),
		ReversalFeeConfig: json.RawMessage(`{"a":{"b":null}}`),
		CashbackFeeConfig: []json.RawMessage{[]byte(`{"rate": 0.01}`), []byte(`7`), []byte(`"x"`)},
		ApplePay:          true, GoogleWallet: true, CardCount: 55, CardCountLimited: true,
		BusinessModes: []string{"B2B", "B2C"}, AuthLevel: 2,
		CreateAmount: wiretest.Dec("1.05"), CardDepositFee: wiretest.Dec("0.02"),
		AllowCreate: true, AllowIn: true, AllowOut: true, AllowSuspend: true,
		AllowEnable: true, AllowFrozen: true, AllowUnfrozen: true, AllowDestroy: true,
		CreateMinAmount: wiretest.Dec("10.01"), CreateMaxAmount: wiretest.Dec("10.02"),
		RechargeMinAmount: wiretest.Dec("10.03"), RechargeMaxAmount: wiretest.Dec("10.04"),
		WithdrawMinAmount: wiretest.Dec("10.05"), WithdrawMaxAmount: wiretest.Dec("10.06"),
		RefuseTimes: wiretest.Dec("3"), RefuseRate: wiretest.Dec("0.250"),
		Scenes: []string{"ads", "travel"},
		AuthRequirement: cardwire.AuthRequirement{Level: "advanced", Fields: []cardwire.AuthField{
			{Field: "idType", Required: true, Description: "kind of document"},
			{Field: "selfieAttachmentKey", Required: true, Description: "photo"},
		}},
	}
}

func TestListBINs(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/bins",
		`{"code":200,"msg":"success","data":[`+oneBIN+`]}`, cardwire.WithStrictDrift())
	got, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	want := []cardwire.BIN{binWanted(t)}
	assert.Equal(t, want, got)
	wiretest.NoZeroField(t, want)
}

var bins = reading[cardwire.BIN, []cardwire.BIN]{
	oneBIN, binWanted, "data[]", rows, alone[cardwire.BIN], (*cardwire.Client).ListBINs,
}

func alone[T any](v T) []T      { return []T{v} }
func rows(edited string) string { return wiretest.Success("[" + edited + "]") }

// Fields of one kind must not be read into one another's fields: each flag in
// turn is the only one that is not set.
func TestEachFlagOfABINIsReadByItself(t *testing.T) {
	t.Parallel()
	for name, field := range map[string]string{
		"avs": "AVS", "3ds": "ThreeDS", "maintain": "Maintain", "status": "Status", "api": "API",
		"physical":  "Physical",
		"apple_pay": "ApplePay", "google_wallet": "GoogleWallet", "is_card_count_limited": "CardCountLimited",
		"allow_create": "AllowCreate", "allow_in": "AllowIn", "allow_out": "AllowOut", "allow_suspend": "AllowSuspend",
		"allow_enable": "AllowEnable", "allow_frozen": "AllowFrozen", "allow_unfrozen": "AllowUnfrozen",
		"allow_destory": "AllowDestroy", `idType","required`: "AuthRequirement.Fields.0.Required",
	} {
		old, sent := `"`+name+`":1,`, `"`+name+`":0,`
		if strings.Count(oneBIN, old) == 0 {
			old, sent = `"`+name+`":true,`, `"`+name+`":false,`
		}
		bins.quirks(t, []quirk{{old, sent, field, false, ""}})
		want := binWanted(t)
		set(reflect.ValueOf(&want), field, false)
		encoded, err := want.MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, wiretest.Edited(t, oneBIN, old, sent), string(encoded))
	}
}

// tier returns a fee for a range of amounts.
func tier(of, low, high, fee string) cardwire.FeeTier {
	none := wiretest.Dec("0")
	tier := cardwire.FeeTier{Range: of, Fee: wiretest.Dec(fee), FeeRate: none, ExtraFee: none, ExtraFeeRate: none}
	if low != "" {
		tier.Low, tier.High, tier.Bounded = wiretest.Dec(low), wiretest.Dec(high), true
	}
	return tier
}

// tiers returns fees for ranges, in the order of the list: range, fee, range, fee.
func tiers(list ...string) string {
	var b strings.Builder
	for i := 0; i < len(list); i += 2 {
		fmt.Fprintf(&b, `,"%s":{"fee":%s,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0}`, list[i], list[i+1])
	}
	return "{" + b.String()[1:] + "}"
}

func TestBINQuirks(t *testing.T) {
	t.Parallel()
	const (
		fees     = "foreign_fee_config"
		cashback = `[{"rate": 0.01},7,"x"]`
		noFee    = ": empty array for object"
		limit    = "day_purchase_limit"
		basic    = `{"level":"base","fields":`
		fields   = "auth_requirement.fields"
		unread   = fees + ".*: unreadable range"
		refund   = `"refund_fee_config":{"fee":[2,"3"]}`
		reversal = `"reversal_fee_config":{"a":{"b":null}}`
	)
	bins.quirks(t, []quirk{
		{`"bin":"493193"`, `"bin":"49319300"`, "BIN", "49319300", ""},
		{`"bin":"493193"`, `"bin":493193`, "", nil, "bin: number for string"},
		{`"Travel"`, `null`, "Name", nil, "name: null for string"},
		{`1000.5`, `null`, "DayPurchaseLimit", nil, limit + ": null for number"},
		{`"day_purchase_limit":1000.5,`, ``, "DayPurchaseLimit", nil, limit + ": missing field"},
		{`"avs":1`, `"avs":2`, "", nil, "avs: flag other than 0 and 1"},
		{`"maintain":true`, `"maintain":1`, "", nil, "maintain: number for boolean"},
		{`"scenes"`, `"secret-49319300":0,"scenes"`, "", nil, "*: unknown field"},
		{`"scenes":["ads","travel"],`, ``, "Scenes", nil, "scenes: missing field"},
		{`["ads","travel"]`, `null`, "Scenes", []string{}, "scenes: null for array"},
		{`["ads","travel"]`, `{"1":"ads","3":"travel"}`, "", nil, "scenes: object for array"},
		{`"Travel"`, `12`, "Name", "12", "name: number for string"},
		{`"photo"`, `false`, "AuthRequirement.Fields.1.Description", nil, fields + "[].desc: false for string"},
		{`["ads","travel"]`, `[]`, "Scenes", []string{}, ""},

		{`{"fee": 1}`, `null`, "AuthFeeConfig", nil, ""},
		{`{"fee": 1}`, `{}`, "AuthFeeConfig", json.RawMessage(`{}`), ""},
		{`{"fee": 1}`, `[]`, "AuthFeeConfig", nil, "auth_fee_config" + noFee},
		{refund, `"refund_fee_config":null`, "RefundFeeConfig", nil, ""},
		{refund, `"refund_fee_config":[ ]`, "RefundFeeConfig", nil, "refund_fee_config" + noFee},
		{reversal, `"reversal_fee_config":null`, "ReversalFeeConfig", nil, ""},
		{reversal, `"reversal_fee_config":[]`, "ReversalFeeConfig", nil, "reversal_fee_config" + noFee},
		{cashback, `[]`, "CashbackFeeConfig", []json.RawMessage{}, ""},
		{cashback, `null`, "CashbackFeeConfig", []json.RawMessage{}, "cashback_fee_config: null for array"},

		{foreignFees, `{}`, "ForeignFees", nil, ""},
		{foreignFees, `[]`, "ForeignFees", nil, fees + noFee},
		{foreignFees, tiers("100-1000", "3", "9.5-100", "2", "0-9.5", "1"), "ForeignFees", []cardwire.FeeTier{
			tier("0-9.5", "0", "9.5", "1"), tier("9.5-100", "9.5", "100", "2"), tier("100-1000", "100", "1000", "3"),
		}, ""},
		{
			foreignFees, tiers("5-10", "2", "rest", "4", "10-", "5", "0-5", "1", "1e2-1e3", "6", "-5", "7"),
			"ForeignFees", []cardwire.FeeTier{
				tier("0-5", "0", "5", "1"), tier("5-10", "5", "10", "2"), tier("rest", "", "", "4"),
				tier("10-", "", "", "5"), tier("1e2-1e3", "", "", "6"), tier("-5", "", "", "7"),
			}, unread,
		},
		{`"10-99.99"`, `"10 - 99.99"`, "ForeignFees.0.Range", "10 - 99.99", ""},
		{`"10-99.99"`, `"1\u0030-99.99"`, "", nil, ""},
		{`"fee":0.11,`, ``, "ForeignFees.0.Fee", nil, fees + ".*.fee: missing field"},
		{`"fee":0.11`, `"fee":null`, "ForeignFees.0.Fee", nil, fees + ".*.fee: null for number"},

		{authRequirement, basic + `[]}`, "AuthRequirement", cardwire.AuthRequirement{
			Level: "base", Fields: []cardwire.AuthField{},
		}, ""},
		{authRequirement, basic + `null}`, "AuthRequirement", cardwire.AuthRequirement{
			Level: "base", Fields: []cardwire.AuthField{},
		}, fields + ": null for array"},
		{`"idType","required":true`, `"idType","required":1`, "", nil, fields + "[].required: number for boolean"},
	})
}

func TestUnreadableBINs(t *testing.T) {
	t.Parallel()
	fields := strings.TrimSuffix(strings.TrimPrefix(authRequirement, `{"level":"advanced","fields":`), `}`)
	bins.unreadable(t, map[string][][2]string{
		"data[].id": {{`"id":37,`, ``}, {`"id":37`, `"id":null`}, {`"id":37`, `"id":"x"`}},
		"data[].bin": {
			{`"bin":"493193",`, ``}, {`"bin":"493193"`, `"bin":null`}, {`"bin":"493193"`, `"bin":""`},
		},
		"data[].day_purchase_limit":       {{`1000.5`, `"much"`}},
		"data[].foreign_fee_config.*.fee": {{`"fee":0.11`, `"fee":{}`}},
		"data[].foreign_fee_config[]":     {{foreignFees, `[{"fee":1}]`}},
		"data[].foreign_fee_config":       {{foreignFees, `null`}},
		"data[].foreign_fee_config.*":     {{foreignFees, `{"10-99.99":[]}`}},
		"data[].auth_fee_config[]":        {{`{"fee": 1}`, `[1]`}},
		"data[].auth_fee_config":          {{`{"fee": 1}`, `"{}"`}},
		"data[].refund_fee_config":        {{`{"fee":[2,"3"]}`, `0`}},
		"data[].reversal_fee_config":      {{`{"a":{"b":null}}`, `false`}},
		"data[].cashback_fee_config":      {{`[{"rate": 0.01},7,"x"]`, `{"rate":1}`}},
		"data[].scenes[1]":                {{`["ads","travel"]`, `["ads",1]`}},
		"data[].scenes":                   {{`["ads","travel"]`, `"ads,travel"`}},
		"data[].maintain":                 {{`"maintain":true`, `"maintain":2`}},
		"data[].auth_requirement":         {{authRequirement, `null`}},
		"data[].auth_requirement.fields":  {{fields, `""`}},
		"data": {
			{"[" + oneBIN + "]", `{"message":"none"}`}, {"[" + oneBIN + "]", `"493193"`},
		},
		"data[]": {{oneBIN, `null`}, {oneBIN, `[]`}},
	})
}

// One amount that is null does not cost the whole list, whichever it is.
func TestNoNullAmountMakesBINsUnreadable(t *testing.T) {
	t.Parallel()
	noAmount := strings.Fields(
		"id avs weigh physical apple_pay google_wallet card_nums is_card_count_limited auth_level")
	tried := 0
	for _, m := range regexp.MustCompile(`"([a-z_]+)":[0-9.]+[,}]`).FindAllStringSubmatch(oneBIN, -1) {
		if slices.Contains(noAmount, m[1]) {
			continue
		}
		tried++
		with := func(value string) string {
			return strings.Replace(oneBIN, m[0], `"`+m[1]+`":`+value+m[0][len(m[0])-1:], 1)
		}
		withDrift, drifts := wiretest.Drifts()
		list := rows(with("null") + `,` + wiretest.Edited(t, oneBIN, `"id":37`, `"id":38`))
		got, err := wiretest.Respond(t, wiretest.Anything, list, withDrift).ListBINs(t.Context())
		require.NoError(t, err, m[1])
		assert.Len(t, got, 2)
		require.Len(t, *drifts, 1, m[1])
		assert.Equal(t, "null for number", (*drifts)[0].Kind)
		assert.Regexp(t, m[1]+"$", (*drifts)[0].Path)
		encoded, err := got[0].MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, with("0"), string(encoded))
	}
	assert.Equal(t, 17, tried)
}

func TestListBINsUnderMaintenance(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/bins/maintenance",
		`{"code":200,"msg":"success","data":["493193","01234567"]}`, cardwire.WithStrictDrift())
	got, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"493193", "01234567"}, got)
}

func TestBINsUnderMaintenanceQuirks(t *testing.T) {
	t.Parallel()
	list := (*cardwire.Client).ListBINsUnderMaintenance
	wiretest.ReadsQuirk(t, wiretest.Anything, wiretest.Success(`[]`), list, []string{}, nil)
	wiretest.ReadsQuirk(t, wiretest.Anything, wiretest.Success(`["493193",510510]`), list, []string{"493193", "510510"},
		[]cardwire.Drift{{"data[]", "number for string"}})
	wiretest.ReadsQuirk(t, wiretest.Anything, wiretest.Success(`null`), list, []string{},
		[]cardwire.Drift{{"data", "null for array"}})
	wiretest.ReadsQuirk(t, wiretest.Anything, wiretest.Success(`{"0":"493193","2":"510510"}`), list,
		[]string{"493193", "510510"}, []cardwire.Drift{{"data", "object for array"}})
	for _, data := range []string{`{"message":"none"}`, `"493193"`, `[null]`, `[["493193"]]`, `[4.5]`, `[true]`} {
		got, err := list(wiretest.Respond(t, wiretest.Anything, wiretest.Success(data)), t.Context())
		assert.Nil(t, got, data)
		require.ErrorIs(t, err, cardwire.ErrUnreadable, data)
	}
}

func TestBINsAsJSON(t *testing.T) {
	t.Parallel()
	// Not through json.Marshal, which takes the spaces out of the raw configs.
	text, err := binWanted(t).MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, oneBIN, string(text))
	two := cardwire.BIN{ForeignFees: []cardwire.FeeTier{tier("0-5", "", "", "1"), tier("rest \"\n", "", "", "2.50")}}
	for v, fields := range map[*cardwire.BIN][]string{
		{}: {
			`"id":0`, `"avs":0`, `"day_purchase_limit":0`, `"maintain":false`, `"foreign_fee_config":{},` +
				`"auth_fee_config":null,"refund_fee_config":null,"reversal_fee_config":null,"cashback_fee_config":[]`,
			`"business_mode":[]`, `"scenes":[],"auth_requirement":{"level":"","fields":[]}`,
		},
		&two: {`"foreign_fee_config":` + tiers("0-5", "1", `rest \"\u000a`, "2.50")},
	} {
		text, err := v.MarshalJSON()
		require.NoError(t, err)
		for _, field := range fields {
			assert.Contains(t, string(text), field)
		}
	}
	decodes(t, oneBIN, binWanted(t), `{"bin":"493193"}`)
}

func TestMissingIdentityFields(t *testing.T) {
	t.Parallel()
	const idType = "idType"
	// A field that is required is marked so.
	for _, tc := range []struct {
		level, fields, values, want string
	}{
		{"base", "", "", ""},
		{"base", "idType! idFrontAttachmentKey!", "idType idFrontAttachmentKey selfieAttachmentKey", ""},
		{"base", "idType! idFrontAttachmentKey!", "", "idType idFrontAttachmentKey"},
		{"base", "idType! idFrontAttachmentKey!", "idFrontAttachmentKey", "idType"},
		{"base", "nickname idType!", "", "idType"},
		{"base", "selfieAttachmentKey idType!", "", "idType"},
		{"base", "selfieAttachmentKey! idType!", "", "selfieAttachmentKey idType"},
		{"advanced", "selfieAttachmentKey! idType!", "idType selfieAttachmentKey", ""},
		{"advanced", "selfieAttachmentKey! idType!", "", "selfieAttachmentKey idType"},
		{"advanced", "selfieAttachmentKey idType!", "", "idType selfieAttachmentKey"},
		{"advanced", "idType! idFrontAttachmentKey!", "idFrontAttachmentKey", "idType selfieAttachmentKey"},
		{"advanced", "", "", "selfieAttachmentKey"},
		{"advanced", "", "selfieAttachmentKey", ""},
	} {
		requirement, values := cardwire.AuthRequirement{Level: tc.level}, map[string]string{idType: ""}
		for field := range strings.FieldsSeq(tc.fields) {
			name, required := strings.CutSuffix(field, "!")
			requirement.Fields = append(requirement.Fields, cardwire.AuthField{Field: name, Required: required})
		}
		for field := range strings.FieldsSeq(tc.values) {
			values[field] = "given"
		}
		assert.Equal(t, tc.want, strings.Join(requirement.Missing(values), " "), "%+v", tc)
	}
	assert.Empty(t, cardwire.AuthRequirement{}.Missing(nil))
}
