package contract

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/cardwire/cardwire-go"
)

// read is the suite for a service of which only the API is known. It changes nothing.
// No error contains a value from the service.
func read(ctx context.Context, c *cardwire.Client) (made []string, err error) {
	var card *cardwire.Card // the first of the list, nil if there is none
	for _, s := range []struct {
		name  string
		check func() error
	}{
		{"ListCards", func() (err error) { card, err = firstCard(ctx, c); return err }},
		{"GetCard", func() error { return sameCard(ctx, c, card) }},
		{"GetCardSecrets", func() error { return maskedSecrets(ctx, c, card) }},
		{"ListBINs", func() error { return bins(ctx, c) }},
		{"ListBINsUnderMaintenance", func() error { return maintained(ctx, c) }},
		{"CardCapacity", func() error { _, err := c.CardCapacity(ctx); return err }},
		{"ListRemittanceStates", func() error { return states(ctx, c) }},
		{"ListRemittanceCurrencies", func() error { return currencies(ctx, c) }},
	} {
		switch err := s.check(); {
		case errors.Is(err, errNoCard):
		case err != nil:
			return made, fmt.Errorf("%s: %w", s.name, err)
		default:
			made = append(made, s.name)
		}
	}
	return made, nil
}

// errNoCard reports that an account without cards leaves nothing to check.
var errNoCard = errors.New("the account has no card")

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	country = regexp.MustCompile(`^[A-Za-z]{2}$`)
)

// demand returns an error that names the first condition that is false.
func demand(conditions ...condition) error {
	for _, c := range conditions {
		if !c.holds {
			return errors.New(c.text)
		}
	}
	return nil
}

type condition struct {
	holds bool
	text  string
}

func firstCard(ctx context.Context, c *cardwire.Client) (*cardwire.Card, error) {
	p, err := c.ListCards(ctx, cardwire.ListCardsParams{Limit: 2, Page: 1})
	if err != nil {
		return nil, err
	}
	if len(p.Cards) == 0 {
		return nil, demand(condition{p.Total == 0, "a page without cards is one of several"})
	}
	for i := range p.Cards {
		card := &p.Cards[i]
		if err := demand(
			condition{card.ID != "", "a card has no id"},
			condition{!card.Number.IsMasked(), "a number of the list is masked"},
			condition{!card.CVV.IsMasked(), "a CVV of the list is masked"},
			condition{digits.MatchString(card.CardBIN), "card_bin is not made of digits"},
			condition{card.Status >= cardwire.CardLocked && card.Status <= cardwire.CardSuspended, "a status is none of the six"},
		); err != nil {
			return nil, err
		}
	}
	return &p.Cards[0], nil
}

func sameCard(ctx context.Context, c *cardwire.Client, listed *cardwire.Card) error {
	if listed == nil {
		return errNoCard
	}
	card, err := c.GetCard(ctx, listed.ID)
	if err != nil {
		return err
	}
	return demand(
		condition{card.ID == listed.ID, "it is another card"},
		condition{card.TradeID == listed.TradeID, "its trade_id is another than in the list"},
		condition{card.Number.IsMasked(), "its number is not masked"},
		condition{card.Number.Last4() == listed.Number.Last4(), "its number is another than in the list"},
		condition{card.CVV.IsMasked(), "its CVV is not masked"},
	)
}

func maskedSecrets(ctx context.Context, c *cardwire.Client, listed *cardwire.Card) error {
	if listed == nil {
		return errNoCard
	}
	s, err := c.GetCardSecrets(ctx, listed.ID)
	if err != nil {
		return err
	}
	_, err = s.PAN.Ciphertext()
	return demand(
		condition{s.Number.IsMasked() && s.CVV.IsMasked() && s.Expiry.IsMasked(), "a field that should be masked is not"},
		condition{s.Number.Last4() == listed.Number.Last4(), "the number is another than in the list"},
		condition{err == nil, "pan is not base64"},
	)
}

func bins(ctx context.Context, c *cardwire.Client) error {
	list, err := c.ListBINs(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		b := &list[i]
		level := map[int]string{1: "base", 2: "advanced"}[b.AuthLevel]
		if err := demand(
			condition{digits.MatchString(b.BIN), "a BIN is not made of digits"},
			condition{country.MatchString(b.Country), "a country has not two letters"},
			condition{level != "" && level == b.AuthRequirement.Level, "auth_level and level do not correspond"},
		); err != nil {
			return err
		}
	}
	return nil
}

func maintained(ctx context.Context, c *cardwire.Client) error {
	list, err := c.ListBINsUnderMaintenance(ctx)
	for _, bin := range list {
		if !digits.MatchString(bin) {
			return errors.New("a BIN is not made of digits")
		}
	}
	return err
}

func states(ctx context.Context, c *cardwire.Client) error {
	list, err := c.ListRemittanceStates(ctx)
	for _, s := range list {
		if err := demand(
			condition{len(s.Country) == 2, "country has not two letters"},
			condition{len(s.CountryStandardCode) == 3, "countryStandardCode has not three letters"},
		); err != nil {
			return err
		}
	}
	return err
}

func currencies(ctx context.Context, c *cardwire.Client) error {
	list, err := c.ListRemittanceCurrencies(ctx)
	for i := range list {
		l := &list[i]
		if err := demand(
			condition{(l.TransferTypeID == cardwire.TransferTypeC2C) == (l.TransferType == "C2C"), "transfer type 3 is not C2C"},
			condition{(l.PayoutMethodID == cardwire.PayoutMethodBankTransfer) == (l.PayoutMethod == "Bank Transfer"), "payout method 1 is not Bank Transfer"},
			condition{len(l.Country) == 3, "country has not three letters"},
			condition{len(l.CountryCode) == 2, "country_code has not two letters"},
		); err != nil {
			return err
		}
	}
	return err
}
