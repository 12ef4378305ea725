package cardwire_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func binWanted() cardwire.BIN {
	return cardwire.BIN{
		ID: 37, BIN: "493193", Type: "share", Name: "Travel", Network: "VISA", Country: "US", Currency: "USD",
		AVS: true, ThreeDS: true,
		DayPurchaseLimit: wiretest.Dec("1000.5"), SinglePurchaseLimit: wiretest.Dec("200.25"), LifetimePurchaseLimit: wiretest.Dec("90000"),
		Maintain: true, Status: true, API: true, Physical: true, Weight: 8,
		ForeignFees: []cardwire.FeeTier{{
			Range: "10-99.99", Low: wiretest.Dec("10"), High: wiretest.Dec("99.99"), Bounded: true,
			Fee: wiretest.Dec("0.11"), FeeRate: wiretest.Dec("0.012"), ExtraFee: wiretest.Dec("0.13"), ExtraFeeRate: wiretest.Dec("0.014"),
		}},
		AuthFeeConfig:     json.RawMessage(`{"fee": 1}`),
		RefundFeeConfig:   json.RawMessage(`{"fee":[2,"3"]}`),
		ReversalFeeConfig: json.RawMessage(`{"a":{"b":null}}`),
		CashbackFeeConfig: []json.RawMessage{json.RawMessage(`{"rate": 0.01}`), json.RawMessage(`7`), json.RawMessage(`"x"`)},
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

func TestListBINsReadsEveryField(t *testing.T) {
	t.Parallel()
	want := binWanted()
	wiretest.NoZeroField(t, want)
	got, err := wiretest.Respond(t, "GET /shop/api/v1/bins", wiretest.Success(`[`+wiretest.BIN+`]`), cardwire.WithStrictDrift()).ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.BIN{want}, got)
}

// Fields of one kind must not be read into one another's fields: each flag in
// turn is the only one that is not set.
func TestEachFlagOfABINIsReadByItself(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, replacement string
		change           func(*cardwire.BIN)
	}{
		"avs":                   {`"avs":1`, `"avs":0`, func(b *cardwire.BIN) { b.AVS = false }},
		"3ds":                   {`"3ds":1`, `"3ds":0`, func(b *cardwire.BIN) { b.ThreeDS = false }},
		"maintain":              {`"maintain":true`, `"maintain":false`, func(b *cardwire.BIN) { b.Maintain = false }},
		"status":                {`"status":true`, `"status":false`, func(b *cardwire.BIN) { b.Status = false }},
		"api":                   {`"api":true`, `"api":false`, func(b *cardwire.BIN) { b.API = false }},
		"physical":              {`"physical":1`, `"physical":0`, func(b *cardwire.BIN) { b.Physical = false }},
		"apple_pay":             {`"apple_pay":1`, `"apple_pay":0`, func(b *cardwire.BIN) { b.ApplePay = false }},
		"google_wallet":         {`"google_wallet":1`, `"google_wallet":0`, func(b *cardwire.BIN) { b.GoogleWallet = false }},
		"is_card_count_limited": {`limited":1`, `limited":0`, func(b *cardwire.BIN) { b.CardCountLimited = false }},
		"allow_create":          {`allow_create":true`, `allow_create":false`, func(b *cardwire.BIN) { b.AllowCreate = false }},
		"allow_in":              {`allow_in":true`, `allow_in":false`, func(b *cardwire.BIN) { b.AllowIn = false }},
		"allow_out":             {`allow_out":true`, `allow_out":false`, func(b *cardwire.BIN) { b.AllowOut = false }},
		"allow_suspend":         {`allow_suspend":true`, `allow_suspend":false`, func(b *cardwire.BIN) { b.AllowSuspend = false }},
		"allow_enable":          {`allow_enable":true`, `allow_enable":false`, func(b *cardwire.BIN) { b.AllowEnable = false }},
		"allow_frozen":          {`allow_frozen":true`, `allow_frozen":false`, func(b *cardwire.BIN) { b.AllowFrozen = false }},
		"allow_unfrozen":        {`allow_unfrozen":true`, `allow_unfrozen":false`, func(b *cardwire.BIN) { b.AllowUnfrozen = false }},
		"allow_destory":         {`allow_destory":true`, `allow_destory":false`, func(b *cardwire.BIN) { b.AllowDestroy = false }},
		"required": {
			`"idType","required":true`, `"idType","required":false`,
			func(b *cardwire.BIN) { b.AuthRequirement.Fields[0].Required = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := binWanted()
			tc.change(&want)
			text := wiretest.Edited(t, wiretest.BIN, tc.old, tc.replacement)
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[`+text+`]`), cardwire.WithStrictDrift()).ListBINs(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []cardwire.BIN{want}, got)

			encoded, err := want.MarshalJSON()
			require.NoError(t, err)
			assert.Equal(t, wiretest.Edited(t, wiretest.BIN, tc.old, tc.replacement), string(encoded))
		})
	}
}

func TestBINQuirks(t *testing.T) {
	t.Parallel()
	fees := func(r string, fee string) cardwire.FeeTier {
		return cardwire.FeeTier{Range: r, Fee: wiretest.Dec(fee), FeeRate: wiretest.Dec("0"), ExtraFee: wiretest.Dec("0"), ExtraFeeRate: wiretest.Dec("0")}
	}
	bounded := func(low, high, fee string) cardwire.FeeTier {
		tier := fees(low+"-"+high, fee)
		tier.Low, tier.High, tier.Bounded = wiretest.Dec(low), wiretest.Dec(high), true
		return tier
	}
	cases := map[string]struct {
		old, replacement string
		change           func(*cardwire.BIN)
		drift            []cardwire.Drift
	}{
		"BIN of eight digits": {`"bin":"493193"`, `"bin":"49319300"`, func(b *cardwire.BIN) { b.BIN = "49319300" }, nil},
		"BIN with a zero":     {`"bin":"493193"`, `"bin":"012345"`, func(b *cardwire.BIN) { b.BIN = "012345" }, nil},
		"BIN as a number":     {`"bin":"493193"`, `"bin":493193`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].bin", "number for string"}}},
		"id as text":          {`"id":37`, `"id":"37"`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].id", "string for number"}}},
		"escaped text":        {`"Travel"`, `"Caf\u00e9 \/ Bar"`, func(b *cardwire.BIN) { b.Name = "Café / Bar" }, nil},
		"other letter case":   {`"VISA"`, `"MasterCard"`, func(b *cardwire.BIN) { b.Network = "MasterCard" }, nil},
		"null name":           {`"Travel"`, `null`, func(b *cardwire.BIN) { b.Name = "" }, []cardwire.Drift{{"data[].name", "null for string"}}},
		"limit as text":       {`1000.5`, `"1000.50"`, func(b *cardwire.BIN) { b.DayPurchaseLimit = wiretest.Dec("1000.50") }, []cardwire.Drift{{"data[].day_purchase_limit", "string for number"}}},
		"limit null":          {`1000.5`, `null`, func(b *cardwire.BIN) { b.DayPurchaseLimit = cardwire.BIN{}.DayPurchaseLimit }, []cardwire.Drift{{"data[].day_purchase_limit", "null for number"}}},
		"fee null":            {`"fee":0.11`, `"fee":null`, func(b *cardwire.BIN) { b.ForeignFees[0].Fee = cardwire.FeeTier{}.Fee }, []cardwire.Drift{{"data[].foreign_fee_config.*.fee", "null for number"}}},
		"flag 2":              {`"avs":1`, `"avs":2`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].avs", "flag other than 0 and 1"}}},
		"limit missing":       {`"day_purchase_limit":1000.5,`, ``, func(b *cardwire.BIN) { b.DayPurchaseLimit = cardwire.BIN{}.DayPurchaseLimit }, []cardwire.Drift{{"data[].day_purchase_limit", "missing field"}}},
		"boolean as a number": {`"maintain":true`, `"maintain":1`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].maintain", "number for boolean"}}},
		"boolean as 0":        {`"maintain":true`, `"maintain":0`, func(b *cardwire.BIN) { b.Maintain = false }, []cardwire.Drift{{"data[].maintain", "number for boolean"}}},
		"boolean as text":     {`"maintain":true`, `"maintain":"1"`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].maintain", "string for boolean"}}},
		"boolean as text 0":   {`"maintain":true`, `"maintain":"0"`, func(b *cardwire.BIN) { b.Maintain = false }, []cardwire.Drift{{"data[].maintain", "string for boolean"}}},
		"boolean as null":     {`"maintain":true`, `"maintain":null`, func(b *cardwire.BIN) { b.Maintain = false }, []cardwire.Drift{{"data[].maintain", "null for boolean"}}},
		"flag as a boolean":   {`"3ds":1`, `"3ds":true`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].3ds", "boolean for number"}}},
		"flag as text":        {`"avs":1`, `"avs":"1"`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].avs", "string for number"}}},
		"unknown field":       {`"scenes"`, `"secret-49319300":0,"scenes"`, func(*cardwire.BIN) {}, []cardwire.Drift{{"data[].*", "unknown field"}}},
		"missing scenes":      {`"scenes":["ads","travel"],`, ``, func(b *cardwire.BIN) { b.Scenes = nil }, []cardwire.Drift{{"data[].scenes", "missing field"}}},
		"null scenes":         {`["ads","travel"]`, `null`, func(b *cardwire.BIN) { b.Scenes = nil }, []cardwire.Drift{{"data[].scenes", "null for array"}}},
		"no scenes":           {`["ads","travel"]`, `[]`, func(b *cardwire.BIN) { b.Scenes = []string{} }, nil},
		"one business mode":   {`["B2B","B2C"]`, `["B2C"]`, func(b *cardwire.BIN) { b.BusinessModes = []string{"B2C"} }, nil},

		"null fee configs": {
			`"auth_fee_config":{"fee": 1},"refund_fee_config":{"fee":[2,"3"]},"reversal_fee_config":{"a":{"b":null}}`,
			`"auth_fee_config":null,"refund_fee_config":null,"reversal_fee_config":null`,
			func(b *cardwire.BIN) { b.AuthFeeConfig, b.RefundFeeConfig, b.ReversalFeeConfig = nil, nil, nil }, nil,
		},
		"fee configs as []": {
			`"auth_fee_config":{"fee": 1},"refund_fee_config":{"fee":[2,"3"]},"reversal_fee_config":{"a":{"b":null}}`,
			`"auth_fee_config":[],"refund_fee_config":[ ],"reversal_fee_config":[]`,
			func(b *cardwire.BIN) { b.AuthFeeConfig, b.RefundFeeConfig, b.ReversalFeeConfig = nil, nil, nil },
			[]cardwire.Drift{
				{"data[].auth_fee_config", "empty array for object"},
				{"data[].refund_fee_config", "empty array for object"},
				{"data[].reversal_fee_config", "empty array for object"},
			},
		},
		"empty fee config": {`{"fee": 1}`, `{}`, func(b *cardwire.BIN) { b.AuthFeeConfig = json.RawMessage(`{}`) }, nil},
		"no cashback":      {`[{"rate": 0.01},7,"x"]`, `[]`, func(b *cardwire.BIN) { b.CashbackFeeConfig = []json.RawMessage{} }, nil},
		"null cashback": {`[{"rate": 0.01},7,"x"]`, `null`, func(b *cardwire.BIN) { b.CashbackFeeConfig = nil },
			[]cardwire.Drift{{"data[].cashback_fee_config", "null for array"}}},

		"no foreign fees":       {wiretest.ForeignFees, `{}`, func(b *cardwire.BIN) { b.ForeignFees = nil }, nil},
		"no foreign fees as []": {wiretest.ForeignFees, `[]`, func(b *cardwire.BIN) { b.ForeignFees = nil }, []cardwire.Drift{{"data[].foreign_fee_config", "empty array for object"}}},
		"ranges out of order": {
			wiretest.ForeignFees,
			`{"100-1000":{"fee":3,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},` +
				`"9.5-100":{"fee":2,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},` +
				`"0-9.5":{"fee":1,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0}}`,
			func(b *cardwire.BIN) {
				b.ForeignFees = []cardwire.FeeTier{bounded("0", "9.5", "1"), bounded("9.5", "100", "2"), bounded("100", "1000", "3")}
			}, nil,
		},
		"ranges of other forms": {
			wiretest.ForeignFees,
			`{"rest":{"fee":4,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},` +
				`"5-10":{"fee":2,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},` +
				`"10-":{"fee":5,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},` +
				`"0-5":{"fee":1,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},` +
				`"1e2-1e3":{"fee":6,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},` +
				`"-5":{"fee":7,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0}}`,
			func(b *cardwire.BIN) {
				b.ForeignFees = []cardwire.FeeTier{
					bounded("0", "5", "1"), bounded("5", "10", "2"),
					fees("rest", "4"), fees("10-", "5"), fees("1e2-1e3", "6"), fees("-5", "7"),
				}
			}, []cardwire.Drift{{"data[].foreign_fee_config.*", "unreadable range"}},
		},
		"range with spaces": {
			`"10-99.99"`, `"10 - 99.99"`, func(b *cardwire.BIN) { b.ForeignFees[0].Range = "10 - 99.99" }, nil,
		},
		"escaped range": {`"10-99.99"`, `"1\u0030-99.99"`, func(*cardwire.BIN) {}, nil},
		"fee missing": {`"fee":0.11,`, ``, func(b *cardwire.BIN) { b.ForeignFees[0].Fee = cardwire.FeeTier{}.Fee },
			[]cardwire.Drift{{"data[].foreign_fee_config.*.fee", "missing field"}}},
		"fee as text": {`"fee":0.11,`, `"fee":"0.11",`, func(*cardwire.BIN) {},
			[]cardwire.Drift{{"data[].foreign_fee_config.*.fee", "string for number"}}},

		"basic requirement": {wiretest.AuthRequirement, `{"level":"base","fields":[]}`, func(b *cardwire.BIN) {
			b.AuthRequirement = cardwire.AuthRequirement{Level: cardwire.AuthLevelBase, Fields: []cardwire.AuthField{}}
		}, nil},
		"requirement without fields": {wiretest.AuthRequirement, `{"level":"base","fields":null}`, func(b *cardwire.BIN) {
			b.AuthRequirement = cardwire.AuthRequirement{Level: "base"}
		}, []cardwire.Drift{{"data[].auth_requirement.fields", "null for array"}}},
		"required as a number": {`"idType","required":true`, `"idType","required":1`, func(*cardwire.BIN) {},
			[]cardwire.Drift{{"data[].auth_requirement.fields[].required", "number for boolean"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := binWanted()
			tc.change(&want)
			response := wiretest.Success(`[` + wiretest.Edited(t, wiretest.BIN, tc.old, tc.replacement) + `]`)
			wiretest.ReadsQuirk(t, wiretest.Anything, response, (*cardwire.Client).ListBINs, []cardwire.BIN{want}, tc.drift)
		})
	}
}

// The raw configs must not lie in a buffer that the next call uses.
func TestRawFeeConfigsOutliveTheResponse(t *testing.T) {
	t.Parallel()
	other := wiretest.Edited(t, wiretest.Edited(t, wiretest.BIN, `{"fee": 1}`, `{"eef": 9}`), `{"rate": 0.01}`, `{"etar": 99.9}`)
	c := wiretest.Converse(t, []wiretest.Exchange{{Want: wiretest.Anything, Response: wiretest.Success(`[` + wiretest.BIN + `]`)}, {Want: wiretest.Anything, Response: wiretest.Success(`[` + other + `]`)}})
	first, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	_, err = c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.BIN{binWanted()}, first)
}

func TestUnreadableBINs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ old, replacement, path string }{
		"no id":                       {`"id":37,`, ``, "data[].id"},
		"null id":                     {`"id":37`, `"id":null`, "data[].id"},
		"id no number":                {`"id":37`, `"id":"x"`, "data[].id"},
		"no BIN":                      {`"bin":"493193",`, ``, "data[].bin"},
		"null BIN":                    {`"bin":"493193"`, `"bin":null`, "data[].bin"},
		"empty BIN":                   {`"bin":"493193"`, `"bin":""`, "data[].bin"},
		"amount no number":            {`1000.5`, `"much"`, "data[].day_purchase_limit"},
		"fee no number":               {`"fee":0.11`, `"fee":{}`, "data[].foreign_fee_config.*.fee"},
		"fees not empty as a list":    {wiretest.ForeignFees, `[{"fee":1}]`, "data[].foreign_fee_config[]"},
		"fees null":                   {wiretest.ForeignFees, `null`, "data[].foreign_fee_config"},
		"a range without fees":        {wiretest.ForeignFees, `{"10-99.99":[]}`, "data[].foreign_fee_config.*"},
		"fee config as a list":        {`{"fee": 1}`, `[1]`, "data[].auth_fee_config[]"},
		"fee config as text":          {`{"fee": 1}`, `"{}"`, "data[].auth_fee_config"},
		"fee config as a number":      {`{"fee":[2,"3"]}`, `0`, "data[].refund_fee_config"},
		"fee config as a boolean":     {`{"a":{"b":null}}`, `false`, "data[].reversal_fee_config"},
		"cashback as an object":       {`[{"rate": 0.01},7,"x"]`, `{}`, "data[].cashback_fee_config"},
		"scenes with a number":        {`["ads","travel"]`, `["ads",1]`, "data[].scenes[]"},
		"scenes as text":              {`["ads","travel"]`, `"ads,travel"`, "data[].scenes"},
		"boolean as another number":   {`"maintain":true`, `"maintain":2`, "data[].maintain"},
		"requirement null":            {wiretest.AuthRequirement, `null`, "data[].auth_requirement"},
		"requirement's fields a text": {`[{"field":"idType","required":true,"desc":"kind of document"},{"field":"selfieAttachmentKey","required":true,"desc":"photo"}]`, `""`, "data[].auth_requirement.fields"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[`+wiretest.Edited(t, wiretest.BIN, tc.old, tc.replacement)+`]`)).ListBINs(t.Context())
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			wiretest.UnreadableAt(t, err, tc.path)
		})
	}
	for _, data := range []string{`null`, `{}`, `"493193"`, `[null]`, `[[]]`} {
		t.Run("data "+data, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data)).ListBINs(t.Context())
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
		})
	}
	for name, text := range map[string]string{
		"a range twice": wiretest.Edited(t, wiretest.BIN, wiretest.ForeignFees,
			`{"1-2":{"fee":1,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},"1-2":{"fee":2,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0}}`),
		"a repeat in a raw config": wiretest.Edited(t, wiretest.BIN, `{"fee": 1}`, `{"fee":1,"fee":2}`),
		"a field twice":            wiretest.Edited(t, wiretest.BIN, `"id":37`, `"id":37,"id":38`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[`+text+`]`)).ListBINs(t.Context())
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			require.ErrorContains(t, err, "a field name appears twice")
		})
	}
}

// One amount that is null does not cost the whole list, whichever it is.
func TestNoNullAmountMakesBINsUnreadable(t *testing.T) {
	t.Parallel()
	numbers := regexp.MustCompile(`"([a-z_]+)":[0-9.]+[,}]`).FindAllStringSubmatch(wiretest.BIN, -1)
	noAmount := []string{"id", "avs", "weigh", "physical", "apple_pay", "google_wallet", "card_nums", "is_card_count_limited", "auth_level"}
	tried := 0
	for _, m := range numbers {
		if slices.Contains(noAmount, m[1]) {
			continue
		}
		tried++
		withDrift, drifts := wiretest.Drifts()
		with := func(value string) string {
			return strings.Replace(wiretest.BIN, m[0], `"`+m[1]+`":`+value+m[0][len(m[0])-1:], 1)
		}
		list := wiretest.Success(`[` + with("null") + `,` + wiretest.Edited(t, wiretest.BIN, `"id":37`, `"id":38`) + `]`)
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

func TestListBINsKeepsTheOrder(t *testing.T) {
	t.Parallel()
	second := wiretest.Edited(t, wiretest.BIN, `"id":37`, `"id":2`)
	got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[`+wiretest.BIN+`,`+second+`]`)).ListBINs(t.Context())
	require.NoError(t, err)
	want := binWanted()
	want.ID = 2
	assert.Equal(t, []cardwire.BIN{binWanted(), want}, got)
}

func TestNoBINsAreAnEmptyList(t *testing.T) {
	t.Parallel()
	got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[]`)).ListBINs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []cardwire.BIN{}, got)
}

func TestListBINsUnderMaintenance(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		data  string
		want  []string
		drift []cardwire.Drift
	}{
		"six and eight digits": {`["493193","01234567"]`, []string{"493193", "01234567"}, nil},
		"none":                 {`[]`, []string{}, nil},
		"as a number":          {`["493193",510510]`, []string{"493193", "510510"}, []cardwire.Drift{{"data[]", "number for string"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wiretest.ReadsQuirk(t, "GET /shop/api/v1/bins/maintenance", wiretest.Success(tc.data), (*cardwire.Client).ListBINsUnderMaintenance, tc.want, tc.drift)
		})
	}
	for _, data := range []string{`null`, `{}`, `"493193"`, `[null]`, `[["493193"]]`, `[4.5]`, `[true]`} {
		t.Run("unreadable "+data, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data)).ListBINsUnderMaintenance(t.Context())
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
		})
	}
}

const zeroBINEncoded = `{"id":0,"bin":"","type":"","name":"","network":"","country":"","avs":0,"3ds":0,` +
	`"day_purchase_limit":0,"single_purchase_limit":0,"lifetime_purchase_limit":0,"maintain":false,"weigh":0,` +
	`"status":false,"api":false,"physical":0,"currency":"","foreign_fee_config":{},"auth_fee_config":null,` +
	`"refund_fee_config":null,"reversal_fee_config":null,"cashback_fee_config":[],"apple_pay":0,"google_wallet":0,` +
	`"card_nums":0,"is_card_count_limited":0,"business_mode":[],"auth_level":0,"create_amount":0,"card_depost_fee":0,` +
	`"allow_create":false,"allow_in":false,"allow_out":false,"allow_suspend":false,"allow_enable":false,` +
	`"allow_frozen":false,"allow_unfrozen":false,"allow_destory":false,"create_min_amount":0,"create_max_amount":0,` +
	`"recharge_min_amount":0,"recharge_max_amount":0,"withdraw_min_amount":0,"withdraw_max_amount":0,"refuse_times":0,` +
	`"refuse_rate":0,"scenes":[],"auth_requirement":{"level":"","fields":[]}}`

func TestBINTypesEncodeUnderTheWireNames(t *testing.T) {
	t.Parallel()
	t.Run("BIN", func(t *testing.T) {
		t.Parallel()
		// Not through json.Marshal, which takes the spaces out of the raw configs.
		text, err := binWanted().MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, wiretest.BIN, string(text))
	})
	two := cardwire.BIN{ForeignFees: []cardwire.FeeTier{{Range: "0-5", Fee: wiretest.Dec("1")}, {Range: "rest \"\n", FeeRate: wiretest.Dec("0.50")}}}
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"zero BIN": {cardwire.BIN{}, zeroBINEncoded},
		"two ranges": {two, wiretest.Edited(t, zeroBINEncoded, `"foreign_fee_config":{}`,
			`"foreign_fee_config":{"0-5":{"fee":1,"fee_rate":0,"extra_fee":0,"extra_fee_rate":0},`+
				`"rest \"\u000a":{"fee":0,"fee_rate":0.50,"extra_fee":0,"extra_fee_rate":0}}`)},
		"fee tier":    {binWanted().ForeignFees[0], `{"fee":0.11,"fee_rate":0.012,"extra_fee":0.13,"extra_fee_rate":0.014}`},
		"requirement": {binWanted().AuthRequirement, wiretest.AuthRequirement},
		"field":       {cardwire.AuthField{Field: "idType", Required: true, Description: "kind"}, `{"field":"idType","required":true,"desc":"kind"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(tc.value)
			require.NoError(t, err)
			assert.Equal(t, tc.want, string(text))
		})
	}
}

func TestBINTypesDecodeAsStrictlyAsAResponse(t *testing.T) {
	t.Parallel()
	var bin cardwire.BIN
	require.NoError(t, json.Unmarshal([]byte(wiretest.BIN), &bin))
	assert.Equal(t, binWanted(), bin)
	var tier cardwire.FeeTier
	require.NoError(t, json.Unmarshal([]byte(`{"fee":0.11,"fee_rate":0.012,"extra_fee":0.13,"extra_fee_rate":0.014}`), &tier))
	assert.Equal(t, cardwire.FeeTier{Fee: wiretest.Dec("0.11"), FeeRate: wiretest.Dec("0.012"), ExtraFee: wiretest.Dec("0.13"), ExtraFeeRate: wiretest.Dec("0.014")}, tier)
	var requirement cardwire.AuthRequirement
	require.NoError(t, json.Unmarshal([]byte(wiretest.AuthRequirement), &requirement))
	assert.Equal(t, binWanted().AuthRequirement, requirement)
	var field cardwire.AuthField
	require.NoError(t, json.Unmarshal([]byte(`{"field":"idType","required":true,"desc":"kind"}`), &field))
	assert.Equal(t, cardwire.AuthField{Field: "idType", Required: true, Description: "kind"}, field)

	for name, tc := range map[string]struct {
		into any
		text string
	}{
		"BIN without id":      {&cardwire.BIN{}, `{"bin":"493193"}`},
		"tier with a string":  {&cardwire.FeeTier{}, `{"fee":"x"}`},
		"requirement a text":  {&cardwire.AuthRequirement{}, `"base"`},
		"field with a repeat": {&cardwire.AuthField{}, `{"field":"idType","field":"idType"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ErrorIs(t, json.Unmarshal([]byte(tc.text), tc.into), cardwire.ErrUnreadable)
		})
	}
}

func TestTheNamesOfIdentityFields(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "idType", cardwire.AuthFieldIDType)
	assert.Equal(t, "idFrontAttachmentKey", cardwire.AuthFieldIDFrontAttachment)
	assert.Equal(t, "selfieAttachmentKey", cardwire.AuthFieldSelfieAttachment)
}

func TestMissingIdentityFields(t *testing.T) {
	t.Parallel()
	base := []cardwire.AuthField{{Field: "idType", Required: true}, {Field: "idFrontAttachmentKey", Required: true}}
	optional := []cardwire.AuthField{{Field: "nickname"}, {Field: "idType", Required: true}}
	selfie := []cardwire.AuthField{{Field: "selfieAttachmentKey", Required: true}, {Field: "idType", Required: true}}
	optionalSelfie := []cardwire.AuthField{{Field: "selfieAttachmentKey"}, {Field: "idType", Required: true}}
	all := map[string]string{"idType": "1", "idFrontAttachmentKey": "k1", "selfieAttachmentKey": "k2"}
	for name, tc := range map[string]struct {
		requirement cardwire.AuthRequirement
		values      map[string]string
		want        []string
	}{
		"nothing required":                 {cardwire.AuthRequirement{Level: "base"}, nil, nil},
		"everything there":                 {cardwire.AuthRequirement{Level: "base", Fields: base}, all, nil},
		"nothing there":                    {cardwire.AuthRequirement{Level: "base", Fields: base}, nil, []string{"idType", "idFrontAttachmentKey"}},
		"one is empty":                     {cardwire.AuthRequirement{Level: "base", Fields: base}, map[string]string{"idType": "", "idFrontAttachmentKey": "k1"}, []string{"idType"}},
		"optional ones are not missing":    {cardwire.AuthRequirement{Level: "base", Fields: optional}, nil, []string{"idType"}},
		"base, selfie optional":            {cardwire.AuthRequirement{Level: "base", Fields: optionalSelfie}, nil, []string{"idType"}},
		"base, selfie required":            {cardwire.AuthRequirement{Level: "base", Fields: selfie}, nil, []string{"selfieAttachmentKey", "idType"}},
		"advanced, selfie there":           {cardwire.AuthRequirement{Level: "advanced", Fields: selfie}, all, nil},
		"advanced, selfie required":        {cardwire.AuthRequirement{Level: "advanced", Fields: selfie}, nil, []string{"selfieAttachmentKey", "idType"}},
		"advanced, selfie optional":        {cardwire.AuthRequirement{Level: "advanced", Fields: optionalSelfie}, nil, []string{"selfieAttachmentKey", "idType"}},
		"advanced, selfie not among them":  {cardwire.AuthRequirement{Level: "advanced", Fields: base}, map[string]string{"idFrontAttachmentKey": "k1"}, []string{"idType", "selfieAttachmentKey"}},
		"advanced, no fields":              {cardwire.AuthRequirement{Level: "advanced"}, nil, []string{"selfieAttachmentKey"}},
		"advanced, no fields, selfie here": {cardwire.AuthRequirement{Level: "advanced"}, all, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, tc.requirement.Missing(tc.values))
		})
	}
}
