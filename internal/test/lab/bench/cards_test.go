package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/lab/bench/generated"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

const service = "https://api.example.com/api/v1"

// smallest is the call with the smallest response.
var smallest = comparison{
	name: "smallest", base: service, path: "/account/capacity",
	response: func() string { return wiretest.Success("250") },
	decode:   into(func(r *response[int64]) bool { return r.Code == 200 && r.Data == 250 }),
	ours: func(ctx context.Context, c *cardwire.Client) error {
		n, err := c.CardCapacity(ctx)
		return cmp.Or(err, sent(n == 250))
	},
}

// listOf is a list of n cards in a shape.
func listOf(n int, s shape) comparison {
	return comparison{
		name: fmt.Sprintf("list-%d%s", n, s.name), base: service, path: "/cards?limit=1000",
		response: func() string { return s.page(n) }, decode: into(isPage),
		ours: func(ctx context.Context, c *cardwire.Client) error {
			page, err := c.ListCards(ctx, cardwire.ListCardsParams{PageSize: 1000})
			return cmp.Or(err, sent(err != nil || page.Cards[page.Total-1].ID != ""))
		},
	}
}

var bins = comparison{
	name: "bins-50", base: service, path: "/bins",
	response: func() string { return wiretest.Success("[" + elements(50, bin) + "]") },
	decode:   into(func(r *response[[]plainBIN]) bool { return r.Code == 200 && len(r.Data) == 50 }),
	ours: func(ctx context.Context, c *cardwire.Client) error {
		list, err := c.ListBINs(ctx)
		return cmp.Or(err, sent(len(list) == 50))
	},
}

func cardwireCalls() []comparison {
	calls := []comparison{smallest, bins, listOf(1, usual), listOf(20, usual)}
	for _, n := range []int{100, 1000} {
		for _, s := range shapes {
			calls = append(calls, listOf(n, s))
		}
	}
	return calls
}

// generatedClient is the client that oapi-codegen makes from the OpenAPI document.
var generatedClient = comparison{
	name: "generated", base: service, path: "/cards?limit=1000",
	response: func() string { return usual.page(100) }, decode: into(isPage),
	peer: func(tb testing.TB, hc *http.Client) func(context.Context) error {
		c, err := generated.NewClientWithResponses(service, generated.WithHTTPClient(hc),
			generated.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
				r.Header.Set("Authorization", "Bearer "+wiretest.Key)
				return nil
			}))
		require.NoError(tb, err)
		limit := "1000"
		return func(ctx context.Context) error {
			r, err := c.ListCardsWithResponse(ctx, &generated.ListCardsParams{Limit: &limit})
			return cmp.Or(err, sent(err != nil || r.JSON200 != nil && len(r.JSON200.Data.Data) == 100))
		}
	},
}

// shape is how the cards of a page are written.
type shape struct {
	name string // follows that of the call
	page func(n int) string
}

// usual is as most services write them.
var usual = shape{"", func(n int) string { return pageOf(n, usualCard) }}

var shapes = []shape{
	usual,
	{"-distinct", func(n int) string { return pageOf(n, distinctCard) }},
	{"-long-first", func(n int) string { return longAt(n, 0) }},
	{"-long-last", func(n int) string { return longAt(n, n-1) }},
	{"-php", func(n int) string { return asPHP.Replace(usual.page(n)) }},
}

// asPHP escapes what PHP does.
var asPHP = strings.NewReplacer("/", `\/`, "é", `\u00e9`)

// A card and a BIN, whose strings others have in another form.
const (
	oneCard = `{"id":"card-1","trade_id":"trade-2","label":"team A","bin_id":37,"card_bin":"493193",` +
		`"card_no":"4931930000001234","cvv":"123","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
		`"expire_date":"08/2027","holder_username":"Maria Silva",` +
		`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048",` +
		`"addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
		`"create_time":"2026-01-02 03:04:05","update_time":"2026-06-07 08:09:10","status":1,"remark":"keep",` +
		`"holder_phone":"912345678","holder_phone_code":"+351","holder_email":"maria@example.com","fee":"1.50",` +
		`"destory_reason":"lost","nickname":"travel","physical":1,"physical_status":2,"deliver_status":3,` +
		`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT"}`

	oneBIN = `{"id":37,"bin":"493193","type":"share","name":"Travel","network":"VISA","country":"US","avs":1,"3ds":1,` +
		`"day_purchase_limit":1000.5,"single_purchase_limit":200.25,"lifetime_purchase_limit":90000,"maintain":true,` +
		`"weigh":8,"status":true,"api":true,"physical":1,"currency":"USD",` +
		`"foreign_fee_config":{"10-99.99":{"fee":0.11,"fee_rate":0.012,"extra_fee":0.13,"extra_fee_rate":0.014}},` +
		`"auth_fee_config":{"fee": 1},"refund_fee_config":{"fee":[2,"3"]},"reversal_fee_config":{"a":{"b":null}},` +
		`"cashback_fee_config":[{"rate": 0.01},7,"x"],"apple_pay":1,"google_wallet":1,"card_nums":55,` +
		`"is_card_count_limited":1,"business_mode":["B2B","B2C"],"auth_level":2,"create_amount":1.05,` +
		`"card_depost_fee":0.02,"allow_create":true,"allow_in":true,"allow_out":true,"allow_suspend":true,` +
		`"allow_enable":true,"allow_frozen":true,` +
		`"allow_unfrozen":true,"allow_destory":true,"create_min_amount":10.01,"create_max_amount":10.02,` +
		`"recharge_min_amount":10.03,"recharge_max_amount":10.04,"withdraw_min_amount":10.05,` +
		`"withdraw_max_amount":10.06,` +
		`"refuse_times":3,"refuse_rate":0.250,"scenes":["ads","travel"],"auth_requirement":{"level":"advanced",` +
		`"fields":[{"field":"idType","required":true,"desc":"kind of document"},` +
		`{"field":"selfieAttachmentKey","required":true,"desc":"photo"}]}}`
)

// usualCard has some strings in common with other cards, and lacks others.
func usualCard(i int) string {
	card := other(oneCard, i,
		"label", "card_bin", "currency", "city", "state", "country", "holder_phone_code")
	if i%4 == 1 {
		card = strings.Replace(card, "Maria", "José", 1)
	}
	if i%8 != 6 {
		card = rare.ReplaceAllString(card, `"$1":null`)
	}
	return card
}

var rare = regexp.MustCompile(`"(remark|destory_reason|platform_waybill_\w+)":"[^"]*"`)

// distinctCard has no string that another card has.
func distinctCard(i int) string { return other(oneCard, i) }

// longAt is a page with one card that is several times as long as the others.
func longAt(n, long int) string {
	return pageOf(n, func(i int) string {
		if i == long {
			return strings.Replace(usualCard(i), "Silva", strings.Repeat("Silva e ", 400), 1)
		}
		return usualCard(i)
	})
}

func pageOf(n int, card func(i int) string) string {
	return wiretest.Success(fmt.Sprintf(`{"total":%d,"per_page":1000,"current_page":1,"last_page":1,"data":[%s]}`,
		n, elements(n, card)))
}

func bin(i int) string {
	return other(oneBIN, i, "type", "network", "country", "currency", "level", "field", "desc")
}

func elements(n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return strings.Join(all, ",")
}

var field = regexp.MustCompile(`"(\w+)":("[^"]*"|\d+\.\d+)`)

// other returns the object with other strings and amounts, except in the fields that are
// common.
func other(object string, i int, common ...string) string {
	return field.ReplaceAllStringFunc(object, func(pair string) string {
		parts := field.FindStringSubmatch(pair)
		name, value, suffix := parts[1], parts[2], strconv.Itoa(i)
		switch {
		case slices.Contains(common, name):
			return pair
		case strings.HasSuffix(name, "_time"):
			value = fmt.Sprintf(`"2026-01-02 03:%02d:%02d"`, i/60, i%60)
		case name == "expire_date":
			value = fmt.Sprintf(`"%02d/%d"`, i%12+1, 2027+i/12)
		case strings.HasSuffix(value, `"`):
			value = strings.TrimSuffix(value, `"`) + suffix + `"`
		default:
			value += suffix
		}
		return `"` + name + `":` + value
	})
}

// What follows is what one would write by hand, without any of the service's quirks
// handled: amounts are floats or strings, dates are strings, and nothing is checked.

type response[T any] struct {
	Code int    `json:"code"`
	Msg  string `json:"msg"`
	Data T      `json:"data"`
}

func isPage(r *response[plainPage]) bool {
	return r.Code == 200 && len(r.Data.Data) == r.Data.Total && r.Data.Data[r.Data.Total-1].ID != ""
}

type plainPage struct {
	Total       int         `json:"total"`
	PerPage     int         `json:"per_page"`
	CurrentPage int         `json:"current_page"`
	LastPage    int         `json:"last_page"`
	Data        []plainCard `json:"data"`
}

type plainCard struct {
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
	BINID                  int64           `json:"bin_id"`
	UpdateTime             string          `json:"update_time"`
	Remark                 string          `json:"remark"`
	DestroyReason          string          `json:"destory_reason"`
	Nickname               string          `json:"nickname"`
}

type plainBIN struct {
	ID                    int64                `json:"id"`
	BIN                   string               `json:"bin"`
	Type                  string               `json:"type"`
	Name                  string               `json:"name"`
	Network               string               `json:"network"`
	Country               string               `json:"country"`
	AVS                   int                  `json:"avs"`
	ThreeDS               int                  `json:"3ds"`
	DayPurchaseLimit      float64              `json:"day_purchase_limit"`
	SinglePurchaseLimit   float64              `json:"single_purchase_limit"`
	LifetimePurchaseLimit float64              `json:"lifetime_purchase_limit"`
	Maintain              bool                 `json:"maintain"`
	Weight                int                  `json:"weigh"`
	Status                bool                 `json:"status"`
	API                   bool                 `json:"api"`
	Physical              int                  `json:"physical"`
	Currency              string               `json:"currency"`
	ForeignFees           map[string]plainFees `json:"foreign_fee_config"`
	AuthFees              json.RawMessage      `json:"auth_fee_config"`
	RefundFees            json.RawMessage      `json:"refund_fee_config"`
	ReversalFees          json.RawMessage      `json:"reversal_fee_config"`
	CashbackFees          json.RawMessage      `json:"cashback_fee_config"`
	ApplePay              int                  `json:"apple_pay"`
	GoogleWallet          int                  `json:"google_wallet"`
	CardCount             int64                `json:"card_nums"`
	CardCountLimited      int                  `json:"is_card_count_limited"`
	BusinessModes         []string             `json:"business_mode"`
	AuthLevel             int                  `json:"auth_level"`
	CreateAmount          float64              `json:"create_amount"`
	CardDepositFee        float64              `json:"card_depost_fee"`
	AllowCreate           bool                 `json:"allow_create"`
	AllowIn               bool                 `json:"allow_in"`
	AllowOut              bool                 `json:"allow_out"`
	AllowSuspend          bool                 `json:"allow_suspend"`
	AllowEnable           bool                 `json:"allow_enable"`
	AllowFrozen           bool                 `json:"allow_frozen"`
	AllowUnfrozen         bool                 `json:"allow_unfrozen"`
	AllowDestroy          bool                 `json:"allow_destory"`
	CreateMinAmount       float64              `json:"create_min_amount"`
	CreateMaxAmount       float64              `json:"create_max_amount"`
	RechargeMinAmount     float64              `json:"recharge_min_amount"`
	RechargeMaxAmount     float64              `json:"recharge_max_amount"`
	WithdrawMinAmount     float64              `json:"withdraw_min_amount"`
	WithdrawMaxAmount     float64              `json:"withdraw_max_amount"`
	RefuseTimes           float64              `json:"refuse_times"`
	RefuseRate            float64              `json:"refuse_rate"`
	Scenes                []string             `json:"scenes"`
	AuthRequirement       struct {
		Level  string `json:"level"`
		Fields []struct {
			Field       string `json:"field"`
			Required    bool   `json:"required"`
			Description string `json:"desc"`
		} `json:"fields"`
	} `json:"auth_requirement"`
}

type plainFees struct {
	Fee          float64 `json:"fee"`
	FeeRate      float64 `json:"fee_rate"`
	ExtraFee     float64 `json:"extra_fee"`
	ExtraFeeRate float64 `json:"extra_fee_rate"`
}
