package cardwiretest

import (
	"encoding/json"
)

// BIN is a card BIN, with the fields of the wire. Amounts are in Currency, in whole
// units with a fraction, and are sent as numbers; "" is sent as 0.
type BIN struct {
	// ID is id, by which Card.BINID names the BIN.
	ID int
	// BIN is bin: 6 or 8 digits.
	BIN string
	// Type is type: share or PrepaidCard.
	Type string
	// Name is name.
	Name string
	// Network is network, like VISA, in any letter case.
	Network string
	// Country is country: two letters.
	Country string
	// AVS is avs: 1 or 0.
	AVS int
	// ThreeDS is 3ds: 1 or 0.
	ThreeDS int
	// DayPurchaseLimit is day_purchase_limit, an amount.
	DayPurchaseLimit json.Number
	// SinglePurchaseLimit is single_purchase_limit, an amount.
	SinglePurchaseLimit json.Number
	// LifetimePurchaseLimit is lifetime_purchase_limit, an amount.
	LifetimePurchaseLimit json.Number
	// Maintain is maintain, and puts the BIN into List BINs under maintenance.
	Maintain bool
	// Weigh is weigh, a rank.
	Weigh int
	// Status is status.
	Status bool
	// API is api.
	API bool
	// Physical is physical: 1 or 0.
	Physical int
	// Currency is currency, a code like USD.
	Currency string
	// ForeignFeeConfig is foreign_fee_config; nil: an empty object.
	ForeignFeeConfig []FeeTier
	// AuthFeeConfig is auth_fee_config, JSON as it is sent; nil: null.
	AuthFeeConfig json.RawMessage
	// RefundFeeConfig is refund_fee_config, JSON as it is sent; nil: null.
	RefundFeeConfig json.RawMessage
	// ReversalFeeConfig is reversal_fee_config, JSON as it is sent; nil: null.
	ReversalFeeConfig json.RawMessage
	// CashbackFeeConfig is cashback_fee_config, each element JSON as it is sent;
	// nil: an empty array.
	CashbackFeeConfig []json.RawMessage
	// ApplePay is apple_pay: 1 or 0.
	ApplePay int
	// GoogleWallet is google_wallet: 1 or 0.
	GoogleWallet int
	// CardNums is card_nums, a count.
	CardNums int
	// IsCardCountLimited is is_card_count_limited: 1 or 0.
	IsCardCountLimited int
	// BusinessMode is business_mode: B2B, B2C or both; nil: an empty array.
	BusinessMode []string
	// AuthLevel is auth_level: 1 for base, 2 for advanced.
	AuthLevel int
	// CreateAmount is create_amount, an amount.
	CreateAmount json.Number
	// CardDepostFee is card_depost_fee, an amount.
	CardDepostFee json.Number
	// AllowCreate is allow_create. This and the other permissions are sent, not enforced.
	AllowCreate bool
	// AllowIn is allow_in.
	AllowIn bool
	// AllowOut is allow_out.
	AllowOut bool
	// AllowSuspend is allow_suspend.
	AllowSuspend bool
	// AllowEnable is allow_enable.
	AllowEnable bool
	// AllowFrozen is allow_frozen.
	AllowFrozen bool
	// AllowUnfrozen is allow_unfrozen.
	AllowUnfrozen bool
	// AllowDestory is allow_destory.
	AllowDestory bool
	// CreateMinAmount is create_min_amount, an amount.
	CreateMinAmount json.Number
	// CreateMaxAmount is create_max_amount, an amount.
	CreateMaxAmount json.Number
	// RechargeMinAmount is recharge_min_amount, an amount.
	RechargeMinAmount json.Number
	// RechargeMaxAmount is recharge_max_amount, an amount.
	RechargeMaxAmount json.Number
	// WithdrawMinAmount is withdraw_min_amount, an amount.
	WithdrawMinAmount json.Number
	// WithdrawMaxAmount is withdraw_max_amount, an amount.
	WithdrawMaxAmount json.Number
	// RefuseTimes is refuse_times, a count.
	RefuseTimes json.Number
	// RefuseRate is refuse_rate, a rate.
	RefuseRate json.Number
	// Scenes is scenes; nil: an empty array.
	Scenes []string
	// AuthRequirement is auth_requirement.
	AuthRequirement AuthRequirement
}

// FeeTier is a field of foreign_fee_config. "" is sent as 0.
type FeeTier struct {
	// Range is the field's name: a range of amounts like 0-100.
	Range string
	// Fee is fee, an amount.
	Fee json.Number
	// FeeRate is fee_rate, a rate.
	FeeRate json.Number
	// ExtraFee is extra_fee, an amount.
	ExtraFee json.Number
	// ExtraFeeRate is extra_fee_rate, a rate.
	ExtraFeeRate json.Number
}

// AuthRequirement is an auth_requirement.
type AuthRequirement struct {
	// Level is level: base or advanced.
	Level string
	// Fields is fields; nil: an empty array.
	Fields []AuthField
}

// AuthField is an element of the fields of an auth_requirement.
type AuthField struct {
	// Field is field: idType, idFrontAttachmentKey or selfieAttachmentKey.
	Field string
	// Required is required.
	Required bool
	// Desc is desc.
	Desc string
}

func listBINs(s *Service, _ *request) result {
	return success(array(s.world.bins, BIN.json))
}

func listMaintenance(s *Service, _ *request) result {
	var digits []string
	for _, b := range s.world.bins {
		if b.Maintain {
			digits = append(digits, b.BIN)
		}
	}
	return success(array(digits, func(v string) []byte { return appendString(nil, v, false) }))
}

func (b BIN) json() []byte {
	var o object
	o.integer("id", b.ID)
	o.str("bin", b.BIN)
	o.str("type", b.Type)
	o.str("name", b.Name)
	o.str("network", b.Network)
	o.str("country", b.Country)
	o.integer("avs", b.AVS)
	o.integer("3ds", b.ThreeDS)
	o.number("day_purchase_limit", b.DayPurchaseLimit)
	o.number("single_purchase_limit", b.SinglePurchaseLimit)
	o.number("lifetime_purchase_limit", b.LifetimePurchaseLimit)
	o.boolean("maintain", b.Maintain)
	o.integer("weigh", b.Weigh)
	o.boolean("status", b.Status)
	o.boolean("api", b.API)
	o.integer("physical", b.Physical)
	o.str("currency", b.Currency)
	b.fees(&o)
	o.integer("apple_pay", b.ApplePay)
	o.integer("google_wallet", b.GoogleWallet)
	o.integer("card_nums", b.CardNums)
	o.integer("is_card_count_limited", b.IsCardCountLimited)
	o.strs("business_mode", b.BusinessMode)
	o.integer("auth_level", b.AuthLevel)
	o.number("create_amount", b.CreateAmount)
	o.number("card_depost_fee", b.CardDepostFee)
	b.permissions(&o)
	b.limits(&o)
	o.strs("scenes", b.Scenes)
	o.raw("auth_requirement", b.AuthRequirement.json())
	return o.end()
}

func (b *BIN) fees(o *object) {
	var tiers object
	for _, t := range b.ForeignFeeConfig {
		var tier object
		tier.number("fee", t.Fee)
		tier.number("fee_rate", t.FeeRate)
		tier.number("extra_fee", t.ExtraFee)
		tier.number("extra_fee_rate", t.ExtraFeeRate)
		tiers.raw(t.Range, tier.end())
	}
	o.raw("foreign_fee_config", tiers.end())
	o.raw("auth_fee_config", orNull(b.AuthFeeConfig))
	o.raw("refund_fee_config", orNull(b.RefundFeeConfig))
	o.raw("reversal_fee_config", orNull(b.ReversalFeeConfig))
	o.raw("cashback_fee_config", array(b.CashbackFeeConfig, func(v json.RawMessage) []byte { return v }))
}

func orNull(raw json.RawMessage) []byte {
	if raw == nil {
		return []byte("null")
	}
	return raw
}

func (b *BIN) permissions(o *object) {
	o.boolean("allow_create", b.AllowCreate)
	o.boolean("allow_in", b.AllowIn)
	o.boolean("allow_out", b.AllowOut)
	o.boolean("allow_suspend", b.AllowSuspend)
	o.boolean("allow_enable", b.AllowEnable)
	o.boolean("allow_frozen", b.AllowFrozen)
	o.boolean("allow_unfrozen", b.AllowUnfrozen)
	o.boolean("allow_destory", b.AllowDestory)
}

func (b *BIN) limits(o *object) {
	o.number("create_min_amount", b.CreateMinAmount)
	o.number("create_max_amount", b.CreateMaxAmount)
	o.number("recharge_min_amount", b.RechargeMinAmount)
	o.number("recharge_max_amount", b.RechargeMaxAmount)
	o.number("withdraw_min_amount", b.WithdrawMinAmount)
	o.number("withdraw_max_amount", b.WithdrawMaxAmount)
	o.number("refuse_times", b.RefuseTimes)
	o.number("refuse_rate", b.RefuseRate)
}

func (r *AuthRequirement) json() []byte {
	var o object
	o.str("level", r.Level)
	o.raw("fields", array(r.Fields, func(f AuthField) []byte {
		var o object
		o.str("field", f.Field)
		o.boolean("required", f.Required)
		o.str("desc", f.Desc)
		return o.end()
	}))
	return o.end()
}

// base and advanced are the two levels of identification.
var (
	base = AuthRequirement{Level: "base", Fields: []AuthField{
		{"idType", true, "Type of the identity document"},
		{"idFrontAttachmentKey", true, "Front of the identity document / 证件正面"},
		{"selfieAttachmentKey", false, "Selfie"},
	}}
	advanced = AuthRequirement{Level: "advanced", Fields: []AuthField{
		{"idType", true, "Type of the identity document"},
		{"idFrontAttachmentKey", true, "Front of the identity document / 证件正面"},
		{"selfieAttachmentKey", true, "Selfie with the document"},
	}}
	foreignFees = []FeeTier{
		{"0-100", "0.5", "0.015", "0", "0"},
		{"100-1000", "1", "0.0125", "0.25", "0.001"},
		{"1000-999999999", "2.5", "0.01", "0.5", "0.0005"},
	}
)

// seedBINs returns BINs of both lengths, types and levels, of several networks, with
// digits that these networks use.
func seedBINs() []BIN {
	bins := []BIN{
		{ID: 101, BIN: "428837", Type: "share", Name: "Virtual Business/US", Network: "VISA", Country: "US", Currency: "USD", AuthLevel: 1},
		{ID: 102, BIN: "49387519", Type: "PrepaidCard", Name: "Prepaid Plus", Network: "Visa", Country: "GB", Currency: "GBP", AuthLevel: 2},
		{ID: 103, BIN: "531847", Type: "share", Name: "Ads & Media", Network: "MasterCard", Country: "HK", Currency: "USD", AuthLevel: 1},
		{ID: 104, BIN: "53270366", Type: "PrepaidCard", Name: "Reisekarte Größe M", Network: "MASTERCARD", Country: "DE", Currency: "EUR", AuthLevel: 2, Maintain: true},
		{ID: 105, BIN: "601187", Type: "share", Name: "Everyday", Network: "Discover", Country: "US", Currency: "USD", AuthLevel: 1},
		{ID: 106, BIN: "65312478", Type: "PrepaidCard", Name: "Everyday 8", Network: "DISCOVER", Country: "US", Currency: "USD", AuthLevel: 1, Maintain: true},
		{ID: 107, BIN: "559666", Type: "share", Name: "Physical Classic", Network: "mastercard", Country: "SG", Currency: "USD", AuthLevel: 2, Physical: 1},
	}
	for i := range bins {
		bins[i].seed(i)
	}
	return bins
}

func (b *BIN) seed(i int) {
	b.AVS, b.ThreeDS, b.ApplePay, b.GoogleWallet = i%2, (i+1)%2, (i+1)%2, i%2
	b.DayPurchaseLimit, b.SinglePurchaseLimit, b.LifetimePurchaseLimit = "10000", "2500.50", "1000000"
	b.Weigh, b.Status, b.API = 100-i, true, i != 5
	b.IsCardCountLimited = i % 2
	b.BusinessMode = [][]string{{"B2B", "B2C"}, {"B2C"}, {"B2B"}}[i%3]
	b.CreateAmount, b.CardDepostFee = "1.5", "0.01"
	b.AllowCreate, b.AllowIn, b.AllowOut, b.AllowSuspend = !b.Maintain, true, true, i != 2
	b.AllowEnable, b.AllowFrozen, b.AllowUnfrozen, b.AllowDestory = true, true, true, i != 4
	b.CreateMinAmount, b.CreateMaxAmount = "10", "5000"
	b.RechargeMinAmount, b.RechargeMaxAmount = "5", "20000.00"
	b.WithdrawMinAmount, b.WithdrawMaxAmount = "0", "0" // what zero means is undocumented
	b.RefuseTimes, b.RefuseRate = "3", "0.15"
	b.Scenes = [][]string{{"Advertising", "E-commerce / retail"}, {"Travel"}, nil}[i%3]
	if b.AuthRequirement = base; b.AuthLevel == 2 {
		b.AuthRequirement = advanced
	}
	if i != 5 {
		b.ForeignFeeConfig = foreignFees
	}
	if i%3 == 0 {
		b.AuthFeeConfig = json.RawMessage(`{"fee":0.3,"fee_rate":0}`)
		b.ReversalFeeConfig = json.RawMessage(`{"fee":0.1}`)
		b.CashbackFeeConfig = []json.RawMessage{json.RawMessage(`{"rate":0.01}`)}
	}
}
