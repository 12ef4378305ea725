package wiretest

import (
	"context"
	"net/url"

	"github.com/cardwire/cardwire-go"
)

// Method is a call of a Client's method that sends requests.
type Method = func(context.Context, *cardwire.Client, ...cardwire.CallOption) error

// Given are the arguments of such calls.
type Given struct {
	Card, Order, Freeze, Operation string // identifiers
	List                           cardwire.ListCardsParams
	Transfer                       cardwire.TransferParams
	Image                          []byte
}

// MethodsGiven returns calls of every method that sends requests, by its name.
func MethodsGiven(g Given) map[string]Method {
	return map[string]Method{
		"ListBINs": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.ListBINs(ctx, opts...))
		},
		"ListBINsUnderMaintenance": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.ListBINsUnderMaintenance(ctx, opts...))
		},
		"ListCards": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.ListCards(ctx, g.List, opts...))
		},
		"AllCards": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(Walk(ctx, c, g.List, opts...))
		},
		"AllPages": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			for _, err := range c.AllPages(ctx, g.List, opts...) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"GetCard": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.GetCard(ctx, g.Card, opts...))
		},
		"GetCardByOrder": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.GetCardByOrder(ctx, g.Order, opts...))
		},
		"GetCardSecrets": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.GetCardSecrets(ctx, g.Card, opts...))
		},
		"FreezeCard": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: g.Card, ClientTransactionID: g.Freeze}, opts...))
		},
		"CancelOperation": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return c.CancelOperation(ctx, g.Operation, opts...)
		},
		"RetryOperation": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return c.RetryOperation(ctx, g.Operation, opts...)
		},
		"CardCapacity": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.CardCapacity(ctx, opts...))
		},
		"ListRemittanceStates": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.ListRemittanceStates(ctx, opts...))
		},
		"ListRemittanceCurrencies": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.ListRemittanceCurrencies(ctx, opts...))
		},
		"CreateTransfer": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.CreateTransfer(ctx, g.Transfer, opts...))
		},
		"UploadImage": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(c.UploadImage(ctx, cardwire.ImageBytes("id.png", g.Image), opts...))
		},
		"Call": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(cardwire.Call[any](ctx, c, cardwire.Request{Op: "Ping", Method: "GET", Path: "/ping"}, opts...))
		},
	}
}

// AllMethods returns MethodsGiven arguments that are valid.
func AllMethods() map[string]Method {
	return MethodsGiven(Given{
		Card: "c1", Order: "o1", Freeze: FreezeID, Operation: UUID,
		Transfer: SmallTransfer("M-1"), Image: []byte("\x89PNG\r\n\x1a\nimage"),
	})
}

// OnlyError drops a value.
func OnlyError[T any](_ T, err error) error { return err }

// Write is one operation that changes something.
type Write struct {
	Op        string
	Reference string
	Unique    bool   // the reference is that of one execution
	Data      string // of a success
	Call      Method
}

// AllWrites returns every write, and one by Call.
func AllWrites() []Write {
	methods := AllMethods()
	return []Write{
		{"CreateTransfer", "M-1", true, TransferData, methods["CreateTransfer"]},
		{"FreezeCard", FreezeID, true, `"` + UUID + `"`, methods["FreezeCard"]},
		{"CancelOperation", UUID, false, `true`, methods["CancelOperation"]},
		{"RetryOperation", UUID, false, `true`, methods["RetryOperation"]},
		{"UploadImage", "", false, `{"attachment_key":"k-1"}`, methods["UploadImage"]},
		{
			"CloseCard", "C-1", true, `{"ticket":"T-9"}`,
			func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
				return OnlyError(cardwire.Call[closingTicket](ctx, c, cardwire.Request{
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
