package contract

import (
	"cmp"
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
		{"ListBINs", func() error { return each(c.ListBINs(ctx))(bin) }},
		{"ListBINsUnderMaintenance", func() error { return each(c.ListBINsUnderMaintenance(ctx))(maintained) }},
		{"CardCapacity", func() error { _, err := c.CardCapacity(ctx); return err }},
		{"ListRemittanceStates", func() error { return each(c.ListRemittanceStates(ctx))(state) }},
		{"ListRemittanceCurrencies", func() error { return each(c.ListRemittanceCurrencies(ctx))(currency) }},
	} {
		if card == nil && (s.name == "GetCard" || s.name == "GetCardSecrets") {
			continue // an account without cards leaves nothing to check
		}
		if err := s.check(); err != nil {
			return made, fmt.Errorf("%s: %w", s.name, err)
		}
		made = append(made, s.name)
	}
	return made, nil
}

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	country = regexp.MustCompile(`^[A-Za-z]{2}$`)
)

// claim returns an error of that text unless it holds.
func claim(holds bool, text string) error {
	if holds {
		return nil
	}
	return errors.New(text)
}

// each returns a function that checks every element of a list that was read.
func each[T any](list []T, err error) func(check func(*T) error) error {
	return func(check func(*T) error) error {
		for i := range list {
			err = cmp.Or(err, check(&list[i]))
		}
		return err
	}
}

func firstCard(ctx context.Context, c *cardwire.Client) (*cardwire.Card, error) {
	p, err := c.ListCards(ctx, cardwire.ListCardsParams{Limit: 2, Page: 1})
	if err != nil {
		return nil, err
	}
	if len(p.Cards) == 0 {
		return nil, claim(p.Total == 0, "a page without cards is one of several")
	}
	return &p.Cards[0], each(p.Cards, nil)(func(card *cardwire.Card) error {
		known := card.Status >= cardwire.CardLocked && card.Status <= cardwire.CardSuspended
		return cmp.Or(
			claim(card.ID != "", "a card has no id"),
			claim(!card.Number.IsMasked(), "a number of the list is masked"),
			claim(!card.CVV.IsMasked(), "a CVV of the list is masked"),
			claim(digits.MatchString(card.CardBIN), "card_bin is not made of digits"),
			claim(known, "a status is none of the six"),
		)
	})
}

func sameCard(ctx context.Context, c *cardwire.Client, listed *cardwire.Card) error {
	card, err := c.GetCard(ctx, listed.ID)
	if err != nil {
		return err
	}
	return cmp.Or(
		claim(card.ID == listed.ID, "it is another card"),
		claim(card.TradeID == listed.TradeID, "its trade_id is another than in the list"),
		claim(card.Number.IsMasked(), "its number is not masked"),
		claim(card.Number.Last4() == listed.Number.Last4(), "its number is another than in the list"),
		claim(card.CVV.IsMasked(), "its CVV is not masked"),
	)
}

func maskedSecrets(ctx context.Context, c *cardwire.Client, listed *cardwire.Card) error {
	s, err := c.GetCardSecrets(ctx, listed.ID)
	if err != nil {
		return err
	}
	_, err = s.PAN.Ciphertext()
	masked := s.Number.IsMasked() && s.CVV.IsMasked() && s.Expiry.IsMasked()
	return cmp.Or(
		claim(masked, "a field that should be masked is not"),
		claim(s.Number.Last4() == listed.Number.Last4(), "the number is another than in the list"),
		claim(err == nil, "pan is not base64"),
	)
}

func bin(b *cardwire.BIN) error {
	level := map[int]string{1: "base", 2: "advanced"}[b.AuthLevel]
	return cmp.Or(
		maintained(&b.BIN),
		claim(country.MatchString(b.Country), "a country has not two letters"),
		claim(level != "" && level == b.AuthRequirement.Level, "auth_level and level do not correspond"),
	)
}

func maintained(bin *string) error {
	return claim(digits.MatchString(*bin), "a BIN is not made of digits")
}

func state(s *cardwire.RemittanceState) error {
	return cmp.Or(
		claim(len(s.Country) == 2, "country has not two letters"),
		claim(len(s.CountryStandardCode) == 3, "countryStandardCode has not three letters"),
	)
}

func currency(l *cardwire.RemittanceCurrency) error {
	isC2C := l.TransferTypeID == cardwire.TransferTypeC2C
	return cmp.Or(
		claim(isC2C == (l.TransferType == "C2C"), "transfer type 3 is not C2C"),
		claim((l.PayoutMethodID == cardwire.PayoutMethodBankTransfer) == (l.PayoutMethod == "Bank Transfer"),
			"payout method 1 is not Bank Transfer"),
		claim(len(l.Country) == 3, "country has not three letters"),
		claim(len(l.CountryCode) == 2, "country_code has not two letters"),
	)
}
