package cardwire

import (
	"context"
	"net/url"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Method is a call of a method that asks the service.
type Method = func(context.Context, *Client, ...CallOption) error

// Given is what such calls hand in.
type Given struct {
	Card, Order, Freeze, Operation string // identifiers
	List                           ListCardsParams
	Transfer                       TransferParams
	Image                          []byte
}

// MethodsGiven are calls of every method that asks the service, by its name. It
// is for the tests of package cardwire_test too.
func MethodsGiven(g Given) map[string]Method {
	return map[string]Method{
		"ListBINs": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.ListBINs(ctx, opts...))
		},
		"ListBINsUnderMaintenance": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.ListBINsUnderMaintenance(ctx, opts...))
		},
		"ListCards": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.ListCards(ctx, g.List, opts...))
		},
		"AllCards": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(walked(ctx, c, g.List, opts...))
		},
		"AllPages": func(ctx context.Context, c *Client, opts ...CallOption) error {
			for _, err := range c.AllPages(ctx, g.List, opts...) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"GetCard": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.GetCard(ctx, g.Card, opts...))
		},
		"GetCardByOrder": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.GetCardByOrder(ctx, g.Order, opts...))
		},
		"GetCardSecrets": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.GetCardSecrets(ctx, g.Card, opts...))
		},
		"FreezeCard": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.FreezeCard(ctx, FreezeCardParams{CardID: g.Card, ClientTransactionID: g.Freeze}, opts...))
		},
		"CancelOperation": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return c.CancelOperation(ctx, g.Operation, opts...)
		},
		"RetryOperation": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return c.RetryOperation(ctx, g.Operation, opts...)
		},
		"CardCapacity": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.CardCapacity(ctx, opts...))
		},
		"ListRemittanceStates": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.ListRemittanceStates(ctx, opts...))
		},
		"ListRemittanceCurrencies": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.ListRemittanceCurrencies(ctx, opts...))
		},
		"CreateTransfer": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.CreateTransfer(ctx, g.Transfer, opts...))
		},
		"UploadImage": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(c.UploadImage(ctx, ImageBytes("id.png", g.Image), opts...))
		},
		"Call": func(ctx context.Context, c *Client, opts ...CallOption) error {
			return onlyError(Call[any](ctx, c, Request{Op: "Ping", Method: "GET", Path: "/ping"}, opts...))
		},
	}
}

func allMethods() map[string]Method {
	return MethodsGiven(Given{
		Card: "c1", Order: "o1", Freeze: freezeID, Operation: testUUID,
		Transfer: smallTransfer("M-1"), Image: []byte("\x89PNG\r\n\x1a\nimage"),
	})
}

func onlyError[T any](_ T, err error) error { return err }

// A method that is added must be added to the list above as well.
func TestTheListOfMethodsIsComplete(t *testing.T) {
	t.Parallel()
	local := map[string]bool{"CloseIdleConnections": true, "Format": true, "LogValue": true}
	client, methods := reflect.TypeFor[*Client](), allMethods()
	for i := range client.NumMethod() {
		name := client.Method(i).Name
		assert.True(t, local[name] || methods[name] != nil, "%s is not in the list", name)
	}
}

// writeOp is one operation that changes something.
type writeOp struct {
	op        string
	reference string
	unique    bool   // the reference is that of one execution
	data      string // of a success
	call      Method
}

func allWrites() []writeOp {
	methods := allMethods()
	return []writeOp{
		{"CreateTransfer", "M-1", true, transferData, methods["CreateTransfer"]},
		{"FreezeCard", freezeID, true, `"` + testUUID + `"`, methods["FreezeCard"]},
		{"CancelOperation", testUUID, false, `true`, methods["CancelOperation"]},
		{"RetryOperation", testUUID, false, `true`, methods["RetryOperation"]},
		{"UploadImage", "", false, `{"attachment_key":"k-1"}`, methods["UploadImage"]},
		{
			"CloseCard", "C-1", true, `{"ticket":"T-9"}`,
			func(ctx context.Context, c *Client, opts ...CallOption) error {
				return onlyError(Call[closingTicket](ctx, c, Request{
					Op: "CloseCard", Method: "POST", Path: "/cards/close",
					Form: url.Values{"cardId": {"c1"}}, Reference: "C-1",
				}, opts...))
			},
		},
	}
}

type closingTicket struct {
	Ticket string `json:"ticket"`
}

// freezeID is the client transaction ID of a freeze.
const freezeID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"

const testUUID = "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"

func smallTransfer(orderNo string) TransferParams {
	return TransferParams{MerchantOrderNo: orderNo, PayoutCurrency: "EUR", TransferAmount: dec("10.50")}
}
