// Package contract is what client and fake are tested against: openapi.yaml, written
// from the API's documentation alone, and a suite that calls every operation of a
// client, whatever service is behind it. Only tests and checks use it.
package contract

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

// Document is openapi.yaml: the twelve operations in OpenAPI 3.1. Its examples are JSON,
// which YAML contains.
//
//go:embed openapi.yaml
var Document []byte

// Example returns an example of Document.
func Example(name string) json.RawMessage {
	at := regexp.MustCompile(`(?m)^ +` + name + `:\n(?: +summary: .*\n)? +value:`).FindIndex(Document)
	if at == nil {
		panic("there is no example " + name)
	}
	var text json.RawMessage
	must(json.NewDecoder(bytes.NewReader(Document[at[1]:])).Decode(&text))
	var compact bytes.Buffer
	must(json.Compact(&compact, text))
	return compact.Bytes()
}

// Data returns the data of an example that is a response.
func Data(example string) string { return string(exampleResponse(example).Data) }

// Element returns an element of the list that is the data of an example, or of the page.
func Element(example string, i int) string {
	var page struct{ Data json.RawMessage }
	list := exampleResponse(example).Data
	if json.Unmarshal(list, &page) == nil {
		list = page.Data
	}
	var elements []json.RawMessage
	must(json.Unmarshal(list, &elements))
	return string(elements[i])
}

// must panics where a literal of this package or of the document is wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// envelope is a response of an example.
type envelope struct {
	Msg  string
	Data json.RawMessage
}

func exampleResponse(name string) (e envelope) {
	must(json.Unmarshal(Example(name), &e))
	return e
}

// Profile returns the names that Document gives to undocumented parameters, so that
// every parameter is sent.
func Profile() cardwire.Profile {
	p := cardwire.DefaultProfile()
	p.LimitParam, p.PageParam, p.SubAccountParam = "limit", "page", "sub_account_id"
	p.StatusParam, p.CardBINParam = "status", "card_bin"
	p.CreatedFromParam, p.CreatedToParam = "created_from", "created_to"
	p.TransactedFromParam, p.TransactedToParam = "transacted_from", "transacted_to"
	p.CardIDParam, p.RetryAction = "id", "retry"
	return p
}

// Client returns a client of the service at base, whose requests the transport gets.
func Client(t testing.TB, base string, transport http.RoundTripper) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New(base, cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(&http.Client{Transport: transport}), cardwire.WithStrictDrift(),
		cardwire.WithJournal(journal.NewMemory()),
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = Profile() }))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Run is the suite. It calls each method of c, a client of a [NewService], and returns the methods
// that were called, and the first difference from what the document's examples say.
func Run(ctx context.Context, c *cardwire.Client) (called []string, err error) {
	var transfer cardwire.TransferParams
	must(json.Unmarshal(Example("transfer"), &transfer))
	only := cardwire.ListCardsParams{CardBIN: "49387519"}
	for _, s := range []step{
		{"ListCards", "second", with(ctx, c.ListCards, cardwire.ListCardsParams{
			PageSize: 1, Page: 2, SubAccountID: "sub-1", Status: new(cardwire.CardSuspended), CardBIN: "428837",
			CreatedFrom: day(1, 2), CreatedTo: day(1, 2), TransactedFrom: day(2, 1), TransactedTo: day(2, 1),
		})},
		{"AllPages", "only", func(o ...cardwire.CallOption) (got any, err error) {
			for page, e := range c.AllPages(ctx, only, o...) {
				got, err = page, e
			}
			return got, err
		}},
		{"AllCards", "only", func(o ...cardwire.CallOption) (any, error) {
			page := &cardwire.CardPage{Total: 1, PerPage: 20, CurrentPage: 1, LastPage: 1}
			for card, err := range c.AllCards(ctx, only, o...) {
				if err != nil {
					return nil, err
				}
				page.Cards = append(page.Cards, card)
			}
			return page, nil
		}},
		{"GetCard", "suspended", with(ctx, c.GetCard, "card-1")},
		{"GetCard", "empty", with(ctx, c.GetCard, "card-2")},
		{"GetCardSecrets", "secrets", with(ctx, c.GetCardSecrets, "card-1")},
		{"FreezeCard", "operation", func(o ...cardwire.CallOption) (any, error) {
			op, err := c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: freezeID}, o...)
			if err != nil {
				return nil, err
			}
			return op.ID, nil
		}},
		{"GetCardByOrder", "frozen", with(ctx, c.GetCardByOrder, "order-1")},
		{"CancelOperation", "done", func(o ...cardwire.CallOption) (any, error) {
			return true, c.CancelOperation(ctx, canceledID, o...)
		}},
		{"RetryOperation", "done", func(o ...cardwire.CallOption) (any, error) {
			return true, c.RetryOperation(ctx, retriedID, o...)
		}},
		{"ListBINs", "bins", func(o ...cardwire.CallOption) (any, error) {
			bins, err := c.ListBINs(ctx, o...)
			return bins[:min(len(bins), 2)], err
		}},
		{"ListBINsUnderMaintenance", "digits", without(ctx, c.ListBINsUnderMaintenance)},
		{"CardCapacity", "capacity", without(ctx, c.CardCapacity)},
		{"ListRemittanceStates", "states", without(ctx, c.ListRemittanceStates)},
		{"ListRemittanceCurrencies", "currencies", func(o ...cardwire.CallOption) (any, error) {
			list, err := c.ListRemittanceCurrencies(ctx, o...)
			for i := range list { // one is sent as 45000.50
				list[i].MaxQuota = decimal.RequireFromString(list[i].MaxQuota.String())
			}
			return list, err
		}},
		{"CreateTransfer", "order", with(ctx, c.CreateTransfer, transfer)},
		{"UploadImage", "image", with(ctx, c.UploadImage, cardwire.UploadImageParams{
			Filename: "id.gif", Data: []byte(image),
		})},
	} {
		if err := s.run(); err != nil {
			return called, fmt.Errorf("%s: %w", s.method, err)
		}
		called = append(called, s.method)
	}
	return called, nil
}

// step is one call of the suite. Its result is the data of an example, and so is the message.
type step struct {
	method, example string
	call            func(...cardwire.CallOption) (any, error)
}

func (s *step) run() error {
	var response cardwire.Response
	got, err := s.call(cardwire.WithResponse(&response))
	if err != nil {
		return err
	}
	example := exampleResponse(s.example)
	want := reflect.New(reflect.TypeOf(got))
	must(json.Unmarshal(example.Data, want.Interface()))
	if !reflect.DeepEqual(got, want.Elem().Interface()) {
		return fmt.Errorf("got\n%+v\nnot\n%+v", got, want.Elem().Interface())
	}
	if response.Message != example.Msg {
		return fmt.Errorf("the message is %q, not %q", response.Message, example.Msg)
	}
	return nil
}

func without[T any](
	ctx context.Context, f func(context.Context, ...cardwire.CallOption) (T, error),
) func(...cardwire.CallOption) (any, error) {
	return func(o ...cardwire.CallOption) (any, error) { return f(ctx, o...) }
}

func with[P, T any](
	ctx context.Context, f func(context.Context, P, ...cardwire.CallOption) (T, error), p P,
) func(...cardwire.CallOption) (any, error) {
	return func(o ...cardwire.CallOption) (any, error) { return f(ctx, p, o...) }
}

// day is one of 2025.
func day(month, d int) cardwire.Date {
	return cardwire.Date{Year: 2025, Month: time.Month(month), Day: d}
}
