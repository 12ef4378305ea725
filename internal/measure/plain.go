package measure

import (
	"encoding/json"
	"fmt"
)

// The plain baseline: the types that one would write by hand for encoding/json,
// without any of the service's quirks handled. Amounts are floats or strings, dates are
// strings, and nothing is checked.

type response[T any] struct {
	Code int    `json:"code"`
	Msg  string `json:"msg"`
	Data T      `json:"data"`
}

type page struct {
	Total       int      `json:"total"`
	PerPage     int      `json:"per_page"`
	CurrentPage int      `json:"current_page"`
	LastPage    int      `json:"last_page"`
	Data        []listed `json:"data"`
}

// card is what the card of a list and the single one have in common.
type card struct {
	ID                     string          `json:"id"`
	TradeID                string          `json:"trade_id"`
	Label                  string          `json:"label"`
	CardBIN                string          `json:"card_bin"`
	Number                 string          `json:"card_no"`
	CVV                    string          `json:"cvv"`
	Currency               string          `json:"currency"`
	Available              string          `json:"available"`
	Pending                float64         `json:"pending"`
	Frozen                 float64         `json:"frozen"`
	Expiry                 string          `json:"expire_date"`
	HolderUsername         string          `json:"holder_username"`
	HolderAddress          json.RawMessage `json:"holder_address"`
	CreateTime             string          `json:"create_time"`
	Status                 int             `json:"status"`
	HolderPhone            string          `json:"holder_phone"`
	HolderPhoneCode        string          `json:"holder_phone_code"`
	HolderEmail            string          `json:"holder_email"`
	Fee                    string          `json:"fee"`
	Physical               int             `json:"physical"`
	PhysicalStatus         int             `json:"physical_status"`
	DeliverStatus          int             `json:"deliver_status"`
	PlatformWaybillNumber  string          `json:"platform_waybill_number"`
	PlatformWaybillCompany string          `json:"platform_waybill_company"`
}

type listed struct {
	card

	BINID         int64  `json:"bin_id"`
	UpdateTime    string `json:"update_time"`
	Remark        string `json:"remark"`
	DestroyReason string `json:"destory_reason"`
	Nickname      string `json:"nickname"`
}

type single struct {
	card

	AccountStatus          int `json:"account_status"`
	ConsumptionSceneType   int `json:"consumption_scene_type"`
	ConsumptionSceneConfig []struct {
		Name      string `json:"name"`
		ChannelID int64  `json:"channel_id"`
	} `json:"consumption_scene_config"`
}

type bin struct {
	ID                    int64           `json:"id"`
	BIN                   string          `json:"bin"`
	Type                  string          `json:"type"`
	Name                  string          `json:"name"`
	Network               string          `json:"network"`
	Country               string          `json:"country"`
	AVS                   int             `json:"avs"`
	ThreeDS               int             `json:"3ds"`
	DayPurchaseLimit      float64         `json:"day_purchase_limit"`
	SinglePurchaseLimit   float64         `json:"single_purchase_limit"`
	LifetimePurchaseLimit float64         `json:"lifetime_purchase_limit"`
	Maintain              bool            `json:"maintain"`
	Weight                int             `json:"weigh"`
	Status                bool            `json:"status"`
	API                   bool            `json:"api"`
	Physical              int             `json:"physical"`
	Currency              string          `json:"currency"`
	ForeignFees           map[string]fees `json:"foreign_fee_config"`
	AuthFees              json.RawMessage `json:"auth_fee_config"`
	RefundFees            json.RawMessage `json:"refund_fee_config"`
	ReversalFees          json.RawMessage `json:"reversal_fee_config"`
	CashbackFees          json.RawMessage `json:"cashback_fee_config"`
	ApplePay              int             `json:"apple_pay"`
	GoogleWallet          int             `json:"google_wallet"`
	CardCount             int64           `json:"card_nums"`
	CardCountLimited      int             `json:"is_card_count_limited"`
	BusinessModes         []string        `json:"business_mode"`
	AuthLevel             int             `json:"auth_level"`
	CreateAmount          float64         `json:"create_amount"`
	CardDepositFee        float64         `json:"card_depost_fee"`
	AllowCreate           bool            `json:"allow_create"`
	AllowIn               bool            `json:"allow_in"`
	AllowOut              bool            `json:"allow_out"`
	AllowSuspend          bool            `json:"allow_suspend"`
	AllowEnable           bool            `json:"allow_enable"`
	AllowFrozen           bool            `json:"allow_frozen"`
	AllowUnfrozen         bool            `json:"allow_unfrozen"`
	AllowDestroy          bool            `json:"allow_destory"`
	CreateMinAmount       float64         `json:"create_min_amount"`
	CreateMaxAmount       float64         `json:"create_max_amount"`
	RechargeMinAmount     float64         `json:"recharge_min_amount"`
	RechargeMaxAmount     float64         `json:"recharge_max_amount"`
	WithdrawMinAmount     float64         `json:"withdraw_min_amount"`
	WithdrawMaxAmount     float64         `json:"withdraw_max_amount"`
	RefuseTimes           float64         `json:"refuse_times"`
	RefuseRate            float64         `json:"refuse_rate"`
	Scenes                []string        `json:"scenes"`
	AuthRequirement       struct {
		Level  string `json:"level"`
		Fields []struct {
			Field       string `json:"field"`
			Required    bool   `json:"required"`
			Description string `json:"desc"`
		} `json:"fields"`
	} `json:"auth_requirement"`
}

type fees struct {
	Fee          float64 `json:"fee"`
	FeeRate      float64 `json:"fee_rate"`
	ExtraFee     float64 `json:"extra_fee"`
	ExtraFeeRate float64 `json:"extra_fee_rate"`
}

// plainly decodes a response into the plain types, and fails if nothing arrived.
func plainly[T any](body []byte, arrived func(*T) bool) error {
	var r response[T]
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.Code != 200 || !arrived(&r.Data) {
		return fmt.Errorf("measure: code %d, or nothing arrived", r.Code)
	}
	return nil
}

// PlainCapacity decodes [Capacity] by encoding/json.
func PlainCapacity(body []byte) error {
	return plainly(body, func(n *int64) bool { return *n > 0 })
}

// PlainPage decodes [CardPage] by encoding/json.
func PlainPage(body []byte) error {
	return plainly(body, func(p *page) bool { return len(p.Data) > 0 && p.Data[len(p.Data)-1].ID != "" })
}

// PlainCard decodes [SingleCard] by encoding/json.
func PlainCard(body []byte) error {
	return plainly(body, func(c *single) bool { return c.ID != "" })
}

// PlainBINs decodes [BINs] by encoding/json.
func PlainBINs(body []byte) error {
	return plainly(body, func(list *[]bin) bool { return len(*list) > 0 && (*list)[len(*list)-1].BIN != "" })
}
