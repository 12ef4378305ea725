package replay

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// class is how an operation may be retried.
type class int

const (
	read  class = iota // by the policy
	fresh              // a read over a connection of its own
	write              // only if nothing was sent
)

// operation is one operation of the client.
type operation struct {
	name  string
	class class
	path  string // below the base URL
	data  string // of a success; <ref> stands for the call's reference
	call  func(ctx context.Context, c *cardwire.Client, ref string, opts ...cardwire.CallOption) error
}

// callHeader tells the service which call a request belongs to.
const callHeader = "X-Call"

func (o *operation) do(ctx context.Context, c *cardwire.Client, ref string) error {
	return o.call(ctx, c, ref, cardwire.WithHeader(callHeader, ref))
}

// success is the body of the response that the API promises.
func (o *operation) success(ref string) string {
	return `{"code":200,"msg":"success","data":` + strings.ReplaceAll(o.data, "<ref>", ref) + `}`
}

// reference is a UUID, which is all that some operations take.
func reference(n int) string { return fmt.Sprintf("6f1c2a34-5b6d-4e7f-8a9b-%012x", n) }

const (
	cardText = `{"id":"c1","trade_id":"t1","label":null,"card_bin":"493193","card_no":"493193******1234",` +
		`"cvv":"***","currency":"USD","available":"123.450","pending":0,"frozen":0,"expire_date":"**/****",` +
		`"holder_username":"Ada","holder_address":[],"holder_phone":"","holder_phone_code":"","holder_email":"",` +
		`"create_time":"2026-01-02 03:04:05","status":0,"fee":"1.50","physical":0,"physical_status":0,` +
		`"deliver_status":0,"platform_waybill_number":null,"platform_waybill_company":null,"account_status":0,` +
		`"consumption_scene_type":0,"consumption_scene_config":[]}`
	pageText = `{"total":1,"per_page":20,"current_page":1,"last_page":1,"data":[` + cardText + `]}`
)

type ticket struct {
	Ticket string `json:"ticket"`
}

// operations are all of the client, and Call in each of its ways.
var operations = []operation{
	{
		"ListCards", read, "/cards", pageText,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.ListCards(ctx, cardwire.ListCardsParams{}, opts...)
			return err
		},
	},
	{
		"AllCards", read, "/cards", pageText,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			for _, err := range c.AllCards(ctx, cardwire.ListCardsParams{}, opts...) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		"GetCard", read, "/cards/info", cardText,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.GetCard(ctx, "c1", opts...)
			return err
		},
	},
	{
		"GetCardByOrder", read, "/cards/info", cardText,
		func(ctx context.Context, c *cardwire.Client, ref string, opts ...cardwire.CallOption) error {
			_, err := c.GetCardByOrder(ctx, ref, opts...)
			return err
		},
	},
	{
		"ListBINs", read, "/bins", `[{"id":37,"bin":"493193"}]`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.ListBINs(ctx, opts...)
			return err
		},
	},
	{
		"ListBINsUnderMaintenance", read, "/bins/maintenance", `["493193"]`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.ListBINsUnderMaintenance(ctx, opts...)
			return err
		},
	},
	{
		"CardCapacity", read, "/account/capacity", `7`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.CardCapacity(ctx, opts...)
			return err
		},
	},
	{
		"ListRemittanceStates", read, "/remittance/states",
		`[{"code":"BY","name":"Bavaria","country":"DE","countryStandardCode":"DEU"}]`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.ListRemittanceStates(ctx, opts...)
			return err
		},
	},
	{
		"ListRemittanceCurrencies", read, "/remittance/currency", `[{"id":1,"payout_currency":"EUR"}]`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.ListRemittanceCurrencies(ctx, opts...)
			return err
		},
	},
	{
		"Call by GET", read, "/wallet", `{"ticket":"T-1"}`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := cardwire.Call[ticket](ctx, c, cardwire.Request{
				Op: "ReadWallet", Method: http.MethodGet, Path: "/wallet", Query: url.Values{"coin": {"USDT"}},
			}, opts...)
			return err
		},
	},
	{
		"Call by POST", fresh, "/wallet/search", `{"ticket":"T-1"}`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := cardwire.Call[ticket](ctx, c, cardwire.Request{
				Op: "SearchWallet", Method: http.MethodPost, Path: "/wallet/search", ReadOnly: true,
				JSON: map[string]string{"coin": "USDT"},
			}, opts...)
			return err
		},
	},
	{
		"GetCardSecrets", fresh, "/cards/private",
		`{"card_no":"493193******1234","cvv":"***","expire_date":"**/****","pan":"q83vAQ=="}`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.GetCardSecrets(ctx, "c1", opts...)
			return err
		},
	},
	{
		"CreateTransfer", write, "/remittance/transfer",
		`{"merchant_order_no":"<ref>","api_order_no":"A-1","status":"wait_process"}`,
		func(ctx context.Context, c *cardwire.Client, ref string, opts ...cardwire.CallOption) error {
			_, err := c.CreateTransfer(ctx, cardwire.TransferParams{
				MerchantOrderNo: ref, PayoutCurrency: "EUR", TransferAmount: decimal.New(1050, -2),
			}, opts...)
			return err
		},
	},
	{
		"FreezeCard", write, "/cards/suspend", `"6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"`,
		func(ctx context.Context, c *cardwire.Client, ref string, opts ...cardwire.CallOption) error {
			_, err := c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: ref}, opts...)
			return err
		},
	},
	{
		"CancelOperation", write, "/cards/adjustAction", `true`,
		func(ctx context.Context, c *cardwire.Client, ref string, opts ...cardwire.CallOption) error {
			return c.CancelOperation(ctx, ref, opts...)
		},
	},
	{
		"RetryOperation", write, "/cards/adjustAction", `true`,
		func(ctx context.Context, c *cardwire.Client, ref string, opts ...cardwire.CallOption) error {
			return c.RetryOperation(ctx, ref, opts...)
		},
	},
	{
		"UploadImage", write, "/cards/upload", `{"attachment_key":"k-1"}`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := c.UploadImage(ctx, cardwire.ImageBytes("id.png", []byte("\x89PNG\r\n\x1a\nimage")), opts...)
			return err
		},
	},
	{
		"Call that writes", write, "/cards/close", `{"ticket":"T-1"}`,
		func(ctx context.Context, c *cardwire.Client, ref string, opts ...cardwire.CallOption) error {
			_, err := cardwire.Call[ticket](ctx, c, cardwire.Request{
				Op: "CloseCard", Method: http.MethodPost, Path: "/cards/close",
				Form: url.Values{"cardId": {"c1"}}, Reference: ref,
			}, opts...)
			return err
		},
	},
	{
		// What has no body is what net/http retries most readily.
		"Call that writes without a body", write, "/webhook", `{"ticket":"T-1"}`,
		func(ctx context.Context, c *cardwire.Client, _ string, opts ...cardwire.CallOption) error {
			_, err := cardwire.Call[ticket](ctx, c, cardwire.Request{
				Op: "DeleteWebhook", Method: http.MethodDelete, Path: "/webhook",
			}, opts...)
			return err
		},
	},
}

// operationAt finds what to respond with. Operations that share a path share the response.
func operationAt(path string) *operation {
	path = strings.TrimPrefix(path, basePath)
	for i := range operations {
		if operations[i].path == path {
			return &operations[i]
		}
	}
	return nil
}

// named is the operation of that name.
func named(name string) *operation {
	for i := range operations {
		if operations[i].name == name {
			return &operations[i]
		}
	}
	panic("no operation is called " + name)
}

// writes are the operations that change something.
func writes() (all []operation) {
	for _, o := range operations {
		if o.class == write {
			all = append(all, o)
		}
	}
	return all
}
