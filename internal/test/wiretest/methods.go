package wiretest

import (
	"context"
	"iter"
	"net/url"
	"reflect"

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

// MethodsGiven returns calls of every method that sends requests, by its name.
func MethodsGiven(g Given) map[string]Method {
	texts := map[string]string{
		"GetCard": g.Card, "GetCardByOrder": g.Order, "GetCardSecrets": g.Card,
		"CancelOperation": g.Operation, "RetryOperation": g.Operation,
	}
	params := map[reflect.Type]reflect.Value{}
	for _, p := range []any{g.List, g.Freeze, g.Transfer, g.Image} {
		params[reflect.TypeOf(p)] = reflect.ValueOf(p)
	}
	methods := map[string]Method{
		"Call": func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			return OnlyError(cardwire.Call[any](ctx, c, g.Request, opts...))
		},
	}
	for m := range reflect.TypeFor[*cardwire.Client]().Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() {
			continue // it sends nothing
		}
		methods[m.Name] = func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
			in := []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(&ctx).Elem()}
			for i := 2; i < m.Type.NumIn()-1; i++ {
				if text, ok := texts[m.Name]; ok {
					in = append(in, reflect.ValueOf(text))
				} else {
					in = append(in, params[m.Type.In(i)])
				}
			}
			out := m.Func.CallSlice(append(in, reflect.ValueOf(opts)))
			return errorOf(out[len(out)-1].Interface())
		}
	}
	return methods
}

// errorOf returns the last result of a call, or the error that its loop ends with.
func errorOf(result any) error {
	switch r := result.(type) {
	case error:
		return r
	case iter.Seq2[cardwire.Card, error]:
		return last(r)
	case iter.Seq2[*cardwire.CardPage, error]:
		return last(r)
	}
	return nil
}

func last[T any](all iter.Seq2[T, error]) (err error) {
	for _, e := range all {
		err = e
	}
	return err
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
