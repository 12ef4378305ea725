package wiretest

import (
	"context"
	"iter"
	"net/url"

	"github.com/cardwire/cardwire-go"
)

// Method is a call of a Client's method that sends requests.
type Method = func(context.Context, *cardwire.Client, ...cardwire.CallOption) error

// Given are the arguments of such calls.
type Given struct {
	Card, Order, Operation string // identifiers
	List                   cardwire.ListCardsParams
	Freeze                 cardwire.FreezeCardParams
	Transfer               cardwire.TransferParams
	Image                  cardwire.UploadImageParams
	Request                cardwire.Request // of Call
}

// MethodsGiven returns calls of every method that sends requests, by its name, and of Call.
func MethodsGiven(g Given) map[string]Method {
	return map[string]Method{
		"ListBINs":                 without((*cardwire.Client).ListBINs),
		"ListBINsUnderMaintenance": without((*cardwire.Client).ListBINsUnderMaintenance),
		"CardCapacity":             without((*cardwire.Client).CardCapacity),
		"ListRemittanceStates":     without((*cardwire.Client).ListRemittanceStates),
		"ListRemittanceCurrencies": without((*cardwire.Client).ListRemittanceCurrencies),
		"ListCards":                with((*cardwire.Client).ListCards, g.List),
		"GetCard":                  with((*cardwire.Client).GetCard, g.Card),
		"GetCardByOrder":           with((*cardwire.Client).GetCardByOrder, g.Order),
		"GetCardSecrets":           with((*cardwire.Client).GetCardSecrets, g.Card),
		"FreezeCard":               with((*cardwire.Client).FreezeCard, g.Freeze),
		"UploadImage":              with((*cardwire.Client).UploadImage, g.Image),
		"CreateTransfer":           with((*cardwire.Client).CreateTransfer, g.Transfer),
		"CancelOperation": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return c.CancelOperation(ctx, g.Operation, opts...)
		},
		"RetryOperation": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return c.RetryOperation(ctx, g.Operation, opts...)
		},
		"AllPages": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return lastOf(c.AllPages(ctx, g.List, opts...))
		},
		"AllCards": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return lastOf(c.AllCards(ctx, g.List, opts...))
		},
		"Call": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(cardwire.Call[any](ctx, c, g.Request, opts...))
		},
	}
}

// lastOf returns the error that a loop ends with.
func lastOf[T any](all iter.Seq2[T, error]) (last error) {
	for _, err := range all {
		last = err
	}
	return last
}

func without[T any](f func(*cardwire.Client, context.Context, ...cardwire.CallOption) (T, error)) Method {
	return func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
		return OnlyError(f(c, ctx, opts...))
	}
}

func with[P, T any](f func(*cardwire.Client, context.Context, P, ...cardwire.CallOption) (T, error), p P) Method {
	return func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
		return OnlyError(f(c, ctx, p, opts...))
	}
}

// AllMethods returns MethodsGiven arguments that are valid.
func AllMethods() map[string]Method {
	return MethodsGiven(Given{
		Card: "c1", Order: "o1", Operation: UUID,
		Freeze:   cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: FreezeID},
		Transfer: SmallTransfer("M-1"),
		Image:    cardwire.UploadImageParams{Filename: "id.png", Data: []byte("\x89PNG\r\n\x1a\nimage")},
		Request:  cardwire.Request{Op: "Ping", Method: "GET", Path: "/ping"},
	})
}

// OnlyError drops a value.
func OnlyError[T any](_ T, err error) error { return err }

// Write is one operation that changes something.
type Write struct {
	Op        cardwire.Op
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
