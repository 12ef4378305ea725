package cardwire

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// BIN is a card product: what the cards of a range of numbers can do and cost. Amounts are
// in Currency; what zero means for a limit is undocumented.
type BIN struct {
	// ID is the service's identifier, as in Card.BINID.
	ID int64
	// BIN is the first 6 or 8 digits of the card numbers.
	BIN string
	// Type is the kind of product; share and PrepaidCard have been seen.
	Type string
	// Name is the product's name.
	Name string
	// Network is the card network; its letter case varies.
	Network string
	// Country is the issuing country, two letters.
	Country string
	// Currency is the currency code of the amounts.
	Currency string
	// AVS reports whether addresses are verified.
	AVS bool
	// ThreeDS reports whether 3-D Secure is used; the API spells it 3ds.
	ThreeDS bool
	// DayPurchaseLimit is the amount that can be spent in a day.
	DayPurchaseLimit decimal.Decimal
	// SinglePurchaseLimit is the amount that can be spent in one purchase.
	SinglePurchaseLimit decimal.Decimal
	// LifetimePurchaseLimit is the amount that can be spent in total.
	LifetimePurchaseLimit decimal.Decimal
	// Maintain reports whether the BIN is under maintenance.
	Maintain bool
	// Status is a flag whose meaning is undocumented.
	Status bool
	// API is a flag whose meaning is undocumented.
	API bool
	// Physical reports whether there are physical cards.
	Physical bool
	// Weight is a number whose meaning is undocumented; the API spells it weigh.
	Weight int64
	// ForeignFees are the fees by amount, sorted by Low, those not Bounded last; nil: none.
	ForeignFees []FeeTier
	// AuthFeeConfig is a JSON object with undocumented fields; nil: null.
	AuthFeeConfig json.RawMessage
	// RefundFeeConfig is a JSON object with undocumented fields; nil: null.
	RefundFeeConfig json.RawMessage
	// ReversalFeeConfig is a JSON object with undocumented fields; nil: null.
	ReversalFeeConfig json.RawMessage
	// CashbackFeeConfig are JSON values of undocumented form; empty: none.
	CashbackFeeConfig []json.RawMessage
	// ApplePay reports whether cards can be added to Apple Pay.
	ApplePay bool
	// GoogleWallet reports whether cards can be added to Google Wallet.
	GoogleWallet bool
	// CardCount is the number of cards.
	CardCount int64
	// CardCountLimited reports whether CardCount is a bound.
	CardCountLimited bool
	// BusinessModes are B2B, B2C or both.
	BusinessModes []string
	// AuthLevel is 1 where AuthRequirement.Level is base, 2 where it is advanced.
	AuthLevel int
	// CreateAmount is the price of creating a card, or an amount put on it: undocumented.
	CreateAmount decimal.Decimal
	// CardDepositFee is the fee for a deposit; the API spells it card_depost_fee.
	CardDepositFee decimal.Decimal
	// AllowCreate reports whether cards can be created.
	AllowCreate bool
	// AllowIn reports whether cards can be topped up.
	AllowIn bool
	// AllowOut reports whether money can be withdrawn from cards.
	AllowOut bool
	// AllowSuspend reports whether cards can be suspended.
	AllowSuspend bool
	// AllowEnable reports whether suspended cards can be enabled.
	AllowEnable bool
	// AllowFrozen reports whether cards can be frozen.
	AllowFrozen bool
	// AllowUnfrozen reports whether frozen cards can be unfrozen.
	AllowUnfrozen bool
	// AllowDestroy reports whether cards can be closed; the API spells it allow_destory.
	AllowDestroy bool
	// CreateMinAmount is the least amount at creation.
	CreateMinAmount decimal.Decimal
	// CreateMaxAmount is the greatest amount at creation.
	CreateMaxAmount decimal.Decimal
	// RechargeMinAmount is the least amount of a top-up.
	RechargeMinAmount decimal.Decimal
	// RechargeMaxAmount is the greatest amount of a top-up.
	RechargeMaxAmount decimal.Decimal
	// WithdrawMinAmount is the least amount of a withdrawal.
	WithdrawMinAmount decimal.Decimal
	// WithdrawMaxAmount is the greatest amount of a withdrawal.
	WithdrawMaxAmount decimal.Decimal
	// RefuseTimes is a number of declines.
	RefuseTimes decimal.Decimal
	// RefuseRate is a rate of declines, as a fraction or in percent: which is undocumented.
	RefuseRate decimal.Decimal
	// Scenes are the places or kinds of use.
	Scenes []string
	// AuthRequirement is what a cardholder must provide.
	AuthRequirement AuthRequirement
}

var binFields = []wire.FieldOf[BIN]{
	{Name: "id", Required: true, Value: func(c *wire.Codec, v *BIN) { c.RequiredInt64(&v.ID) }},
	{Name: "bin", Required: true, Value: func(c *wire.Codec, v *BIN) { c.ID(&v.BIN) }},
	{Name: "type", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Type) }},
	{Name: "name", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Name) }},
	{Name: "network", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Network) }},
	{Name: "country", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Country) }},
	{Name: "avs", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.AVS) }},
	{Name: "3ds", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.ThreeDS) }},
	{Name: "day_purchase_limit", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.DayPurchaseLimit) }},
	{Name: "single_purchase_limit", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.SinglePurchaseLimit) }},
	{Name: "lifetime_purchase_limit", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.LifetimePurchaseLimit) }},
	{Name: "maintain", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.Maintain) }},
	{Name: "weigh", Value: func(c *wire.Codec, v *BIN) { c.Int64(&v.Weight) }},
	{Name: "status", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.Status) }},
	{Name: "api", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.API) }},
	{Name: "physical", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.Physical) }},
	{Name: "currency", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Currency) }},
	{Name: "foreign_fee_config", Value: func(c *wire.Codec, v *BIN) { feeTiersValue(c, &v.ForeignFees) }},
	{Name: "auth_fee_config", Value: func(c *wire.Codec, v *BIN) { c.RawObject(&v.AuthFeeConfig) }},
	{Name: "refund_fee_config", Value: func(c *wire.Codec, v *BIN) { c.RawObject(&v.RefundFeeConfig) }},
	{Name: "reversal_fee_config", Value: func(c *wire.Codec, v *BIN) { c.RawObject(&v.ReversalFeeConfig) }},
	{Name: "cashback_fee_config", Value: func(c *wire.Codec, v *BIN) { c.RawList(&v.CashbackFeeConfig) }},
	{Name: "apple_pay", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.ApplePay) }},
	{Name: "google_wallet", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.GoogleWallet) }},
	{Name: "card_nums", Value: func(c *wire.Codec, v *BIN) { c.Int64(&v.CardCount) }},
	{Name: "is_card_count_limited", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.CardCountLimited) }},
	{Name: "business_mode", Value: func(c *wire.Codec, v *BIN) { c.Strings(&v.BusinessModes) }},
	{Name: "auth_level", Value: func(c *wire.Codec, v *BIN) { c.Int(&v.AuthLevel) }},
	{Name: "create_amount", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.CreateAmount) }},
	{Name: "card_depost_fee", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.CardDepositFee) }},
	{Name: "allow_create", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowCreate) }},
	{Name: "allow_in", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowIn) }},
	{Name: "allow_out", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowOut) }},
	{Name: "allow_suspend", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowSuspend) }},
	{Name: "allow_enable", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowEnable) }},
	{Name: "allow_frozen", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowFrozen) }},
	{Name: "allow_unfrozen", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowUnfrozen) }},
	{Name: "allow_destory", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.AllowDestroy) }},
	{Name: "create_min_amount", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.CreateMinAmount) }},
	{Name: "create_max_amount", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.CreateMaxAmount) }},
	{Name: "recharge_min_amount", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.RechargeMinAmount) }},
	{Name: "recharge_max_amount", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.RechargeMaxAmount) }},
	{Name: "withdraw_min_amount", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.WithdrawMinAmount) }},
	{Name: "withdraw_max_amount", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.WithdrawMaxAmount) }},
	{Name: "refuse_times", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.RefuseTimes) }},
	{Name: "refuse_rate", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.RefuseRate) }},
	{Name: "scenes", Value: func(c *wire.Codec, v *BIN) { c.Strings(&v.Scenes) }},
	{Name: "auth_requirement", Value: func(c *wire.Codec, v *BIN) {
		wire.Object(c, &v.AuthRequirement, requirementFields, wire.Whole)
	}},
}

// MarshalJSON returns the BIN under the wire's names.
func (v BIN) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, binFields) }

// UnmarshalJSON reads a BIN, as strictly as a response.
func (v *BIN) UnmarshalJSON(data []byte) error { return unmarshal(data, v, binFields) }

// FeeTier is the fees for a range of amounts.
type FeeTier struct {
	// Range is the range as sent, "<low>-<high>".
	Range string
	// Low is the least amount of the range; zero where Bounded is false.
	Low decimal.Decimal
	// High is the greatest amount of the range; zero where Bounded is false.
	High decimal.Decimal
	// Fee is a fixed fee.
	Fee decimal.Decimal
	// FeeRate is a fee in proportion to the amount: a fraction or percent, undocumented.
	FeeRate decimal.Decimal
	// ExtraFee is a further fixed fee.
	ExtraFee decimal.Decimal
	// ExtraFeeRate is a further fee in proportion to the amount.
	ExtraFeeRate decimal.Decimal
	// Bounded reports whether Range is "<low>-<high>".
	Bounded bool
}

var feeTierFields = []wire.FieldOf[FeeTier]{
	{Name: "fee", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.Fee) }},
	{Name: "fee_rate", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.FeeRate) }},
	{Name: "extra_fee", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.ExtraFee) }},
	{Name: "extra_fee_rate", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.ExtraFeeRate) }},
}

// AuthRequirement is what a cardholder must provide for a card of a BIN.
type AuthRequirement struct {
	// Level is base, or advanced, which always requires selfieAttachmentKey.
	Level string
	// Fields are the fields to provide.
	Fields []AuthField
}

var requirementFields = []wire.FieldOf[AuthRequirement]{
	{Name: "level", Value: func(c *wire.Codec, v *AuthRequirement) { c.String(&v.Level) }},
	{Name: "fields", Value: func(c *wire.Codec, v *AuthRequirement) { wire.List(c, &v.Fields, authFieldFields) }},
}

// AuthField is one field that a cardholder provides.
type AuthField struct {
	// Field is its name: idType, idFrontAttachmentKey or selfieAttachmentKey.
	Field string
	// Required reports whether it is required.
	Required bool
	// Description is the explanation that the API calls desc.
	Description string
}

var authFieldFields = []wire.FieldOf[AuthField]{
	{Name: "field", Value: func(c *wire.Codec, v *AuthField) { c.String(&v.Field) }},
	{Name: "required", Value: func(c *wire.Codec, v *AuthField) { c.Bool(&v.Required) }},
	{Name: "desc", Value: func(c *wire.Codec, v *AuthField) { c.String(&v.Description) }},
}

// Missing returns the required fields that values lacks or has as ""; empty: none.
func (r AuthRequirement) Missing(values map[string]string) []string {
	const selfie = "selfieAttachmentKey"
	var names []string
	for _, f := range r.Fields {
		if f.Required {
			names = append(names, f.Field)
		}
	}
	if r.Level == "advanced" && !slices.Contains(names, selfie) {
		names = append(names, selfie)
	}
	return slices.DeleteFunc(names, func(name string) bool { return values[name] != "" })
}

// ListBINs returns the BINs that the caller may use. It calls GET /bins.
func (c *Client) ListBINs(ctx context.Context, opts ...CallOption) ([]BIN, error) {
	return value(do(ctx, c, operation[[]BIN]{
		spec: spec{name: "ListBINs", method: http.MethodGet, path: "/bins"},
		read: rows(binFields),
	}, opts))
}

// ListBINsUnderMaintenance returns their BIN.BIN. It calls GET /bins/maintenance.
func (c *Client) ListBINsUnderMaintenance(ctx context.Context, opts ...CallOption) ([]string, error) {
	return value(do(ctx, c, operation[[]string]{
		spec: spec{name: "ListBINsUnderMaintenance", method: http.MethodGet, path: "/bins/maintenance"},
		read: (*wire.Codec).Codes,
	}, opts))
}

// feeTiersValue is an object whose names are ranges of amounts. PHP writes an empty one
// as [].
func feeTiersValue(c *wire.Codec, tiers *[]FeeTier) {
	if c.Writing() {
		writeFeeTiers(c, *tiers)
		return
	}
	*tiers = nil
	if c.Kind() == '[' {
		c.Drift("empty array for object")
		c.EmptyArray("an object of fees by range")
		return
	}
	c.Map(func(name []byte) {
		if !c.Budget(sizeOfTier) {
			return
		}
		if *tiers == nil {
			*tiers = make([]FeeTier, 0, usualTiers)
		}
		*tiers = append(*tiers, FeeTier{Range: string(name)})
		t := &(*tiers)[len(*tiers)-1]
		if t.split(name); !t.Bounded {
			c.Drift("unreadable range")
		}
		wire.Object(c, t, feeTierFields, wire.Whole)
	})
	slices.SortStableFunc(*tiers, func(a, b FeeTier) int {
		switch {
		case a.Bounded == b.Bounded:
			return a.Low.Cmp(b.Low)
		case a.Bounded:
			return -1
		}
		return 1
	})
}

// split reads Low and High from the bytes of Range.
func (t *FeeTier) split(text []byte) {
	low, high, found := bytes.Cut(text, []byte("-"))
	if !found {
		return
	}
	l, okLow := wire.ParseDecimal(bytes.TrimSpace(low), false)
	h, okHigh := wire.ParseDecimal(bytes.TrimSpace(high), false)
	if okLow && okHigh {
		t.Low, t.High, t.Bounded = l, h, true
	}
}

func writeFeeTiers(c *wire.Codec, tiers []FeeTier) {
	c.Append('{')
	for i := range tiers {
		if i > 0 {
			c.Append(',')
		}
		c.AppendString(tiers[i].Range)
		c.Append(':')
		wire.Object(c, &tiers[i], feeTierFields, wire.Whole)
	}
	c.Append('}')
}

// sizeOfTier is what a tier takes in addition to its bytes.
const sizeOfTier = 160

// usualTiers is how many tiers get room at first.
const usualTiers = 4
