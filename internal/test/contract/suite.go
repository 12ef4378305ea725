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
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
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
		cardwire.WithJournal(cardwire.NewMemoryJournal()),
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = Profile() }))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Run is the suite. It calls the operations through c, whose service [Prepare] prepared, and
// returns the names of the steps that were made and the first difference from what the API
// and the service's data require.
func Run(ctx context.Context, c *cardwire.Client) (made []string, err error) {
	for _, s := range slices.Concat(
		cardSteps(ctx, c), binSteps(ctx, c), remittanceSteps(ctx, c), repeatedSteps(ctx, c),
	) {
		if err := s.run(); err != nil {
			return made, fmt.Errorf("%s: %w", s.name, err)
		}
		made = append(made, s.name)
	}
	return made, nil
}

// step is one call of the suite.
type step struct {
	name string
	// example is the one of the document that is the right response, and whose data the
	// call must return; "": that depends on the state, and is want.
	example string
	want    any
	call    call
}

func (s *step) run() error {
	var response cardwire.Response
	got, err := s.call(cardwire.WithResponse(&response))
	if err != nil {
		return err
	}
	want, message := s.want, "success"
	if s.example != "" {
		e := exampleResponse(s.example)
		into := reflect.New(reflect.TypeOf(got))
		must(json.Unmarshal(e.Data, into.Interface()))
		want, message = into.Elem().Interface(), e.Msg
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got\n%+v\nnot\n%+v", got, want)
	}
	if response.Message != message {
		return fmt.Errorf("the message is %q, not %q", response.Message, message)
	}
	return nil
}

// call is a call with its parameters.
type call = func(...cardwire.CallOption) (any, error)

func without[T any](ctx context.Context, f func(context.Context, ...cardwire.CallOption) (T, error)) call {
	return func(o ...cardwire.CallOption) (any, error) { return f(ctx, o...) }
}

func with[P, T any](ctx context.Context, f func(context.Context, P, ...cardwire.CallOption) (T, error), p P) call {
	return func(o ...cardwire.CallOption) (any, error) { return f(ctx, p, o...) }
}

// day is one of 2025.
func day(month, d int) cardwire.Date {
	return cardwire.Date{Year: 2025, Month: time.Month(month), Day: d}
}

func cardSteps(ctx context.Context, c *cardwire.Client) []step {
	return []step{
		{name: "ListCards", example: "second", call: with(ctx, c.ListCards, cardwire.ListCardsParams{
			PageSize: 1, Page: 2, SubAccountID: "sub-1", Status: new(cardwire.CardSuspended), CardBIN: "428837",
			CreatedFrom: day(1, 2), CreatedTo: day(1, 2), TransactedFrom: day(2, 1), TransactedTo: day(2, 1),
		})},
		{
			name: "ListCards by page", // whose numbers differ from each other
			want: []any{10, 4, 2, 3, "other-status", "other-bin", "made-before", "made-after"},
			call: func(o ...cardwire.CallOption) (any, error) {
				p, err := c.ListCards(ctx, cardwire.ListCardsParams{PageSize: 4, Page: 2}, o...)
				if err != nil {
					return nil, err
				}
				got := []any{p.Total, p.PerPage, p.CurrentPage, p.LastPage}
				for _, card := range p.Cards {
					got = append(got, card.ID)
				}
				return got, nil
			},
		},
		{
			name: "AllCards",
			want: []any{
				"card-0", "card-1", onlyCard(), "other-account", "other-status",
				"other-bin", "made-before", "made-after", "used-before", "used-after",
			},
			call: func(o ...cardwire.CallOption) (any, error) {
				var got []any
				for card, err := range c.AllCards(ctx, cardwire.ListCardsParams{PageSize: 5}, o...) {
					switch {
					case err != nil:
						return nil, err
					case card.ID == "card-2":
						got = append(got, card)
					default:
						got = append(got, card.ID)
					}
				}
				return got, nil
			},
		},
		{name: "AllPages of one page", example: "only", call: func(o ...cardwire.CallOption) (any, error) {
			var got *cardwire.CardPage
			for page, err := range c.AllPages(ctx, cardwire.ListCardsParams{CardBIN: "49387519"}, o...) {
				if err != nil || got != nil {
					return nil, fmt.Errorf("a second page: %w", err)
				}
				got = page
			}
			return got, nil
		}},
		{name: "GetCard", example: "suspended", call: with(ctx, c.GetCard, "card-1")},
		{name: "GetCard without anything", example: "empty", call: with(ctx, c.GetCard, "card-2")},
		{name: "GetCardSecrets", example: "secrets", call: with(ctx, c.GetCardSecrets, "card-1")},
		{name: "FreezeCard", example: "operation", call: func(o ...cardwire.CallOption) (any, error) {
			p := cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: freezeID}
			op, err := c.FreezeCard(ctx, p, o...)
			if err == nil && op.ClientTransactionID != freezeID {
				err = fmt.Errorf("the reference is %s", op.ClientTransactionID)
			}
			if err != nil {
				return nil, err
			}
			return op.ID, nil
		}},
		{name: "GetCardByOrder", example: "frozen", call: with(ctx, c.GetCardByOrder, "order-1")},
		{name: "CancelOperation", example: "done", call: func(o ...cardwire.CallOption) (any, error) {
			return true, c.CancelOperation(ctx, cancelledID, o...)
		}},
		{name: "RetryOperation", example: "done", call: func(o ...cardwire.CallOption) (any, error) {
			return true, c.RetryOperation(ctx, retriedID, o...)
		}},
	}
}

// onlyCard is the card of the page "only".
func onlyCard() cardwire.Card {
	var p cardwire.CardPage
	must(json.Unmarshal(exampleResponse("only").Data, &p))
	return p.Cards[0]
}

// binSteps are those of BINs, and of the capacity of cards.
func binSteps(ctx context.Context, c *cardwire.Client) []step {
	return []step{
		{name: "ListBINs", example: "bins", call: func(o ...cardwire.CallOption) (any, error) {
			bins, err := c.ListBINs(ctx, o...)
			return bins[:min(len(bins), 2)], err
		}},
		{
			name: "ListBINs, all of them",
			want: []string{"428837", "440102", "531847", "53270366", "601187", "65312478", "559666"},
			call: func(o ...cardwire.CallOption) (any, error) {
				bins, err := c.ListBINs(ctx, o...)
				var got []string
				for _, bin := range bins {
					got = append(got, bin.BIN)
				}
				return got, err
			},
		},
		{name: "ListBINsUnderMaintenance", example: "digits", call: without(ctx, c.ListBINsUnderMaintenance)},
		{name: "CardCapacity", example: "capacity", call: without(ctx, c.CardCapacity)},
	}
}

func remittanceSteps(ctx context.Context, c *cardwire.Client) []step {
	var transfer cardwire.TransferParams
	must(json.Unmarshal(Example("transfer"), &transfer))
	return []step{
		{name: "ListRemittanceStates", example: "states", call: without(ctx, c.ListRemittanceStates)},
		{name: "ListRemittanceCurrencies", example: "currencies", call: func(o ...cardwire.CallOption) (any, error) {
			list, err := c.ListRemittanceCurrencies(ctx, o...)
			for i := range list { // one is sent as 45000.50, and a proxy may write it anew
				list[i].MaxQuota = decimal.RequireFromString(list[i].MaxQuota.String())
			}
			return list, err
		}},
		{name: "CreateTransfer", example: "order", call: with(ctx, c.CreateTransfer, transfer)},
		{
			name: "UploadImage", example: "image",
			call: with(ctx, c.UploadImage, cardwire.UploadImageParams{Filename: "id.gif", Data: []byte(image)}),
		},
	}
}

// repeatedSteps repeat an operation, for values of a parameter that are left.
func repeatedSteps(ctx context.Context, c *cardwire.Client) []step {
	return []step{
		{name: "CancelOperation of every kind", call: func(o ...cardwire.CallOption) (any, error) {
			for _, other := range otherKinds {
				if err := c.CancelOperation(ctx, other.id, o...); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}},
		{
			name: "ListCards of every status",
			want: []int{0, 1, 1, 0, 0, 8},
			call: func(o ...cardwire.CallOption) (any, error) {
				var got []int
				for status := cardwire.CardLocked; status <= cardwire.CardSuspended; status++ {
					p, err := c.ListCards(ctx, cardwire.ListCardsParams{Status: &status}, o...)
					if err != nil {
						return nil, err
					}
					got = append(got, p.Total)
				}
				return got, nil
			},
		},
	}
}
