package contract

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/cardwire/cardwire-go"
)

// Target is what is behind the client of a suite.
type Target int

const (
	// Fake is the fake service that [NewService] returns.
	Fake Target = iota
	// Examples responds with the examples of [Document] and keeps no state. It
	// takes the name of an example from the header Prefer.
	Examples
	// Real is a service whose data are not known and may not be changed: it is
	// only read.
	Real
)

// Run is the suite. It calls the operations through c, and returns the names of
// the steps that were made and the first difference from what the API and the target's
// data require. Against all targets but Real, these are all
// operations.
func Run(ctx context.Context, c *cardwire.Client, target Target) (made []string, err error) {
	if target == Real {
		return read(ctx, c)
	}
	for _, s := range steps(ctx, c) {
		if target == Examples && s.example == "" {
			continue
		}
		if err := s.run(target); err != nil {
			return made, fmt.Errorf("%s: %w", s.name, err)
		}
		made = append(made, s.name)
	}
	return made, nil
}

// step is one call of the suite, and its expected result.
type step struct {
	name    string
	call    func(...cardwire.CallOption) (any, error)
	example string // of the document, that is the right response; "": it depends on the state
	msg     string // "": success
	want    any
}

func (s *step) run(target Target) error {
	var response cardwire.Response
	opts := []cardwire.CallOption{cardwire.WithResponse(&response)}
	if target == Examples {
		opts = append(opts, cardwire.WithHeader("Prefer", "example="+s.example))
	}
	got, err := s.call(opts...)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(got, s.want) {
		return fmt.Errorf("got\n%+v\nnot\n%+v", got, s.want)
	}
	want := s.msg
	if want == "" {
		want = "success"
	}
	if response.Message != want {
		return fmt.Errorf("the message is %q, not %q", response.Message, want)
	}
	return nil
}

func steps(ctx context.Context, c *cardwire.Client) []step {
	return slices.Concat(cardSteps(ctx, c), binSteps(ctx, c), remittanceSteps(ctx, c), repeatedSteps(ctx, c))
}

func cardSteps(ctx context.Context, c *cardwire.Client) []step {
	return []step{
		{name: "ListCards", example: "second", want: wantPage(), call: func(o ...cardwire.CallOption) (any, error) {
			return c.ListCards(ctx, cardwire.ListCardsParams{
				Limit: 1, Page: 2, SubAccountID: "sub-1", Status: new(cardwire.CardSuspended), CardBIN: "428837",
				CreatedFrom: day(2025, 1, 2), CreatedTo: day(2025, 1, 2),
				TransactedFrom: day(2025, 2, 1), TransactedTo: day(2025, 2, 1),
			}, o...)
		}},
		// The numbers of this page differ from each other.
		{name: "ListCards by page", want: wantNumbers, call: func(o ...cardwire.CallOption) (any, error) {
			p, err := c.ListCards(ctx, cardwire.ListCardsParams{Limit: 4, Page: 2}, o...)
			if err != nil {
				return nil, err
			}
			got := []any{p.Total, p.PerPage, p.CurrentPage, p.LastPage}
			for _, card := range p.Cards {
				got = append(got, card.ID)
			}
			return got, nil
		}},
		{name: "AllCards", want: wantCards(), call: func(o ...cardwire.CallOption) (any, error) {
			return allCards(ctx, c, cardwire.ListCardsParams{Limit: 5}, o)
		}},
		{name: "AllCards of one page", example: "only", want: wantCards()[2:3], call: func(o ...cardwire.CallOption) (any, error) {
			return allCards(ctx, c, cardwire.ListCardsParams{CardBIN: "49387519"}, o)
		}},
		{name: "GetCard", example: "suspended", want: wantSingle(), call: func(o ...cardwire.CallOption) (any, error) {
			return c.GetCard(ctx, "card-1", o...)
		}},
		{name: "GetCard without anything", example: "empty", want: wantSingleEmpty(), call: func(o ...cardwire.CallOption) (any, error) {
			return c.GetCard(ctx, "card-2", o...)
		}},
		{name: "GetCardSecrets", example: "secrets", want: wantSecrets, call: func(o ...cardwire.CallOption) (any, error) {
			secrets, err := c.GetCardSecrets(ctx, "card-1", o...)
			if err != nil {
				return nil, err
			}
			return []string{secrets.Number.Reveal(), secrets.CVV.Reveal(), secrets.Expiry.String(), secrets.PAN.Reveal()}, nil
		}},
		{name: "FreezeCard", example: "operation", want: wantOperation(), call: func(o ...cardwire.CallOption) (any, error) {
			return c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"}, o...)
		}},
		{name: "GetCardByOrder", example: "frozen", want: wantFrozen(), call: func(o ...cardwire.CallOption) (any, error) {
			return c.GetCardByOrder(ctx, "order-1", o...)
		}},
		{name: "CancelOperation", example: "done", call: func(o ...cardwire.CallOption) (any, error) {
			return nil, c.CancelOperation(ctx, cancelledID, o...)
		}},
		{name: "RetryOperation", example: "done", call: func(o ...cardwire.CallOption) (any, error) {
			return nil, c.RetryOperation(ctx, retriedID, o...)
		}},
	}
}

// binSteps are those of BINs, and of the capacity of cards.
func binSteps(ctx context.Context, c *cardwire.Client) []step {
	return []step{
		{name: "ListBINs", example: "bins", want: wantBINs(), call: func(o ...cardwire.CallOption) (any, error) {
			bins, err := c.ListBINs(ctx, o...)
			return bins[:min(len(bins), 2)], err
		}},
		{name: "ListBINs, all of them", want: wantDigits, call: func(o ...cardwire.CallOption) (any, error) {
			bins, err := c.ListBINs(ctx, o...)
			var got []string
			for _, bin := range bins {
				got = append(got, bin.BIN)
			}
			return got, err
		}},
		{name: "ListBINsUnderMaintenance", example: "digits", want: wantMaintained, call: func(o ...cardwire.CallOption) (any, error) {
			return c.ListBINsUnderMaintenance(ctx, o...)
		}},
		{name: "CardCapacity", example: "capacity", want: int64(606), call: func(o ...cardwire.CallOption) (any, error) {
			return c.CardCapacity(ctx, o...)
		}},
	}
}

func remittanceSteps(ctx context.Context, c *cardwire.Client) []step {
	return []step{
		{name: "ListRemittanceStates", example: "states", want: wantStates, call: func(o ...cardwire.CallOption) (any, error) {
			return c.ListRemittanceStates(ctx, o...)
		}},
		{name: "ListRemittanceCurrencies", example: "currencies", want: wantCurrencies(), call: func(o ...cardwire.CallOption) (any, error) {
			list, err := c.ListRemittanceCurrencies(ctx, o...)
			for i := range list { // one is sent as 45000.50, and a proxy may write it anew
				list[i].MaxQuota = dec(list[i].MaxQuota.String())
			}
			return list, err
		}},
		{name: "CreateTransfer", example: "order", want: wantTransfer(), call: func(o ...cardwire.CallOption) (any, error) {
			return c.CreateTransfer(ctx, fullTransfer(), o...)
		}},
		{name: "UploadImage", example: "image", msg: "Uploaded", want: wantImage(), call: func(o ...cardwire.CallOption) (any, error) {
			return c.UploadImage(ctx, cardwire.ImageBytes("id.gif", []byte(image)), o...)
		}},
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
		{name: "ListCards of every status", want: []int{0, 1, 1, 0, 0, 8}, call: func(o ...cardwire.CallOption) (any, error) {
			var got []int
			for status := cardwire.CardLocked; status <= cardwire.CardSuspended; status++ {
				p, err := c.ListCards(ctx, cardwire.ListCardsParams{Status: &status}, o...)
				if err != nil {
					return nil, err
				}
				got = append(got, p.Total)
			}
			return got, nil
		}},
	}
}

// allCards are the IDs of all cards, and card-2 in full.
func allCards(ctx context.Context, c *cardwire.Client, p cardwire.ListCardsParams, o []cardwire.CallOption) ([]any, error) {
	var got []any
	for card, err := range c.AllCards(ctx, p, o...) {
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
}
