package cardwire

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// BIN is a card product: what the cards of a range of numbers can do and what they cost.
// Amounts are in Currency; a limit of zero is undocumented.
type BIN struct {
	ID                    int64             // the service's identifier, as in Card.BINID
	BIN                   string            // the first 6 or 8 digits of the card numbers
	Type                  string            // the kind of product; share and PrepaidCard have been seen
	Name                  string            // the product's name
	Network               string            // the card network; its letter case varies
	Country               string            // the issuing country, two letters
	Currency              string            // the currency code of the amounts
	AVS                   bool              // whether addresses are verified
	ThreeDS               bool              // whether 3-D Secure is used; the API spells it 3ds
	DayPurchaseLimit      decimal.Decimal   // the amount that can be spent in a day
	SinglePurchaseLimit   decimal.Decimal   // the amount that can be spent in one purchase
	LifetimePurchaseLimit decimal.Decimal   // the amount that can be spent in total
	Maintain              bool              // whether the BIN is under maintenance
	Status                bool              // a flag whose meaning is undocumented
	API                   bool              // a flag whose meaning is undocumented
	Physical              bool              // whether there are physical cards
	Weight                int64             // an undocumented number; the API spells it weigh
	ForeignFees           []FeeTier         // sorted by Low, those not Bounded last; nil: none
	AuthFeeConfig         json.RawMessage   // a JSON object with undocumented fields; nil: null
	RefundFeeConfig       json.RawMessage   // a JSON object with undocumented fields; nil: null
	ReversalFeeConfig     json.RawMessage   // a JSON object with undocumented fields; nil: null
	CashbackFeeConfig     []json.RawMessage // JSON values of undocumented form; empty: none
	ApplePay              bool              // whether cards can be added to Apple Pay
	GoogleWallet          bool              // whether cards can be added to Google Wallet
	CardCount             int64             // the number of cards
	CardCountLimited      bool              // whether CardCount is a limit
	BusinessModes         []string          // B2B, B2C or both
	AuthLevel             int               // 1 for AuthRequirement.Level base, 2 for advanced
	CreateAmount          decimal.Decimal   // a card's price or its first balance; which, is undocumented
	CardDepositFee        decimal.Decimal   // a deposit's fee; the API spells it card_depost_fee
	AllowCreate           bool              // whether cards can be created
	AllowIn               bool              // whether cards can be topped up
	AllowOut              bool              // whether money can be withdrawn from cards
	AllowSuspend          bool              // whether cards can be suspended
	AllowEnable           bool              // whether suspended cards can be enabled
	AllowFrozen           bool              // whether cards can be frozen
	AllowUnfrozen         bool              // whether frozen cards can be unfrozen
	AllowDestroy          bool              // whether cards can be closed; the API spells it allow_destory
	CreateMinAmount       decimal.Decimal   // the minimum amount at creation
	CreateMaxAmount       decimal.Decimal   // the maximum amount at creation
	RechargeMinAmount     decimal.Decimal   // the minimum amount of a top-up
	RechargeMaxAmount     decimal.Decimal   // the maximum amount of a top-up
	WithdrawMinAmount     decimal.Decimal   // the minimum amount of a withdrawal
	WithdrawMaxAmount     decimal.Decimal   // the maximum amount of a withdrawal
	RefuseTimes           decimal.Decimal   // a number of declines
	RefuseRate            decimal.Decimal   // a rate of declines: a fraction or percent, undocumented
	Scenes                []string          // the places or kinds of use
	AuthRequirement       AuthRequirement   // what a cardholder must provide
}

var binFields = []wire.FieldOf[BIN]{
	{Name: "id", Required: true, Value: func(c *wire.Codec, v *BIN) { wire.IntOf(c, &v.ID, wire.Required) }},
	{Name: "bin", Required: true, Value: func(c *wire.Codec, v *BIN) { c.Text(&v.BIN, wire.ID) }},
	{Name: "type", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Type) }},
	{Name: "name", Value: func(c *wire.Codec, v *BIN) { c.Text(&v.Name, wire.Free) }},
	{Name: "network", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Network) }},
	{Name: "country", Value: func(c *wire.Codec, v *BIN) { c.String(&v.Country) }},
	{Name: "avs", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.AVS) }},
	{Name: "3ds", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.ThreeDS) }},
	{Name: "day_purchase_limit", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.DayPurchaseLimit) }},
	{Name: "single_purchase_limit", Value: func(c *wire.Codec, v *BIN) { c.LenientDecimal(&v.SinglePurchaseLimit) }},
	{Name: "lifetime_purchase_limit", Value: func(c *wire.Codec, v *BIN) {
		c.LenientDecimal(&v.LifetimePurchaseLimit)
	}},
	{Name: "maintain", Value: func(c *wire.Codec, v *BIN) { c.Bool(&v.Maintain) }},
	{Name: "weigh", Value: func(c *wire.Codec, v *BIN) { wire.Int(c, &v.Weight) }},
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
	{Name: "card_nums", Value: func(c *wire.Codec, v *BIN) { wire.Int(c, &v.CardCount) }},
	{Name: "is_card_count_limited", Value: func(c *wire.Codec, v *BIN) { c.Flag(&v.CardCountLimited) }},
	{Name: "business_mode", Value: func(c *wire.Codec, v *BIN) { c.Strings(&v.BusinessModes) }},
	{Name: "auth_level", Value: func(c *wire.Codec, v *BIN) { wire.Int(c, &v.AuthLevel) }},
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

// FeeTier has the fees for a range of amounts.
type FeeTier struct {
	Range        string          // the range as sent, "<low>-<high>"
	Low          decimal.Decimal // the minimum amount of the range; zero if Bounded is false
	High         decimal.Decimal // the maximum amount of the range; zero if Bounded is false
	Fee          decimal.Decimal // a fixed fee
	FeeRate      decimal.Decimal // a fee in proportion to the amount: a fraction or percent, undocumented
	ExtraFee     decimal.Decimal // a further fixed fee
	ExtraFeeRate decimal.Decimal // a further fee in proportion to the amount
	Bounded      bool            // whether Range is "<low>-<high>"
}

var feeTierFields = []wire.FieldOf[FeeTier]{
	{Name: "fee", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.Fee) }},
	{Name: "fee_rate", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.FeeRate) }},
	{Name: "extra_fee", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.ExtraFee) }},
	{Name: "extra_fee_rate", Value: func(c *wire.Codec, v *FeeTier) { c.LenientDecimal(&v.ExtraFeeRate) }},
}

// AuthRequirement is what a cardholder must provide for a card of a BIN.
type AuthRequirement struct {
	Level  string      // base, or advanced, which always requires selfieAttachmentKey
	Fields []AuthField // the fields to provide
}

var requirementFields = []wire.FieldOf[AuthRequirement]{
	{Name: "level", Value: func(c *wire.Codec, v *AuthRequirement) { c.String(&v.Level) }},
	{Name: "fields", Value: func(c *wire.Codec, v *AuthRequirement) { wire.List(c, &v.Fields, authFieldFields) }},
}

// AuthField is one field that a cardholder provides.
type AuthField struct {
	Field       string // its name: idType, idFrontAttachmentKey or selfieAttachmentKey
	Required    bool   // whether it is required
	Description string // the explanation that the API calls desc
}

var authFieldFields = []wire.FieldOf[AuthField]{
	{Name: "field", Value: func(c *wire.Codec, v *AuthField) { c.String(&v.Field) }},
	{Name: "required", Value: func(c *wire.Codec, v *AuthField) { c.Bool(&v.Required) }},
	{Name: "desc", Value: func(c *wire.Codec, v *AuthField) { c.Text(&v.Description, wire.Free) }},
}

// Missing returns the required fields absent or "" in values; empty: none.
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
	return orZero(do(ctx, c, get(OpListBINs, "/bins", rows(binFields)), opts))
}

// ListBINsUnderMaintenance returns the BIN.BIN of each. It calls GET /bins/maintenance.
func (c *Client) ListBINsUnderMaintenance(ctx context.Context, opts ...CallOption) ([]string, error) {
	return orZero(do(ctx, c, get(OpListBINsUnderMaintenance, "/bins/maintenance", (*wire.Codec).Codes), opts))
}

// feeTiersValue is an object whose names are ranges of amounts, or [], as PHP writes {}.
func feeTiersValue(c *wire.Codec, tiers *[]FeeTier) {
	if c.Writing {
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

func (t *FeeTier) split(text []byte) {
	low, high, _ := bytes.Cut(text, []byte("-"))
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
