package main

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/cardwire/cardwire-go"
)

// responses compares the response to each read with the API document.
func (d *doctor) responses(ctx context.Context, secrets bool) error {
	c, err := d.client()
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	compare(d, cardwire.OpListCards, wrongListed)(d.all.Cards, nil)
	compare(d, cardwire.OpListBINs, wrongBIN)(c.ListBINs(ctx))
	compare(d, cardwire.OpListBINsUnderMaintenance, wrongDigits)(c.ListBINsUnderMaintenance(ctx))
	capacity, err := c.CardCapacity(ctx)
	compare(d, cardwire.OpCardCapacity, func(*int64) string { return "" })(one(&capacity, err))
	compare(d, cardwire.OpListRemittanceStates, wrongState)(c.ListRemittanceStates(ctx))
	compare(d, cardwire.OpListRemittanceCurrencies, wrongCurrency)(c.ListRemittanceCurrencies(ctx))
	if len(d.all.Cards) > 0 {
		id := d.all.Cards[0].ID
		compare(d, cardwire.OpGetCard, d.wrongSingle)(one(c.GetCard(ctx, id)))
		if secrets {
			compare(d, cardwire.OpGetCardSecrets, d.wrongSecrets)(one(c.GetCardSecrets(ctx, id)))
		}
	}
	return ctx.Err()
}

// one returns the result of a call as a list.
func one[T any](v *T, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return []T{*v}, nil
}

// compare returns a function for what a call returns. wrong returns what the API document
// rules out and the client tolerates; "": nothing.
func compare[T any](d *doctor, op cardwire.Op, wrong func(*T) string) func([]T, error) {
	return func(list []T, err error) {
		s, advice := confirmed, ""
		for i := range list {
			advice = cmp.Or(advice, wrong(&list[i]))
		}
		switch drift := d.drift[op]; {
		case errors.Is(err, cardwire.ErrUnreadable):
			s, advice = contradicted, "tell the client's maintainers: "+err.Error()
		case err != nil:
			s, advice = unchecked, err.Error()
		case advice != "":
			s, advice = contradicted, "ask the service's support: "+advice
		case len(drift) > 0:
			s, advice = contradicted, "tolerated: "+strings.Join(drift, ", ")
		}
		d.findings = append(d.findings, finding{"response to " + string(op), "as documented", s, advice})
	}
}

// What the API document says about values that the client accepts as they are. No message
// contains such a value.
var digits = regexp.MustCompile(`^[0-9]+$`)

// unless returns the text if the claim does not hold.
func unless(holds bool, text string) string {
	if holds {
		return ""
	}
	return text
}

func wrongListed(c *cardwire.Card) string {
	return cmp.Or(
		unless(!c.Number.IsMasked(), "a number of the list is masked"),
		unless(!c.CVV.IsMasked(), "a CVV of the list is masked"),
		unless(digits.MatchString(c.CardBIN), "card_bin is not made of digits"),
		unless(c.Status >= cardwire.CardLocked && c.Status <= cardwire.CardSuspended, "a status is not one of the six"),
	)
}

func (d *doctor) wrongSingle(c *cardwire.Card) string {
	listed := d.all.Cards[0]
	return cmp.Or(
		unless(c.TradeID == listed.TradeID, "its trade_id differs from the list"),
		unless(c.Number.IsMasked(), "its number is not masked"),
		unless(c.Number.Last4() == listed.Number.Last4(), "its number differs from the list"),
		unless(c.CVV.IsMasked(), "its CVV is not masked"),
	)
}

func (d *doctor) wrongSecrets(s *cardwire.CardSecrets) string {
	_, err := s.PAN.Ciphertext()
	masked := s.Number.IsMasked() && s.CVV.IsMasked() && s.Expiry.IsMasked()
	return cmp.Or(
		unless(masked, "a field that should be masked is not"),
		unless(s.Number.Last4() == d.all.Cards[0].Number.Last4(), "the number differs from the list"),
		unless(err == nil, "pan is not base64"),
	)
}

func wrongBIN(b *cardwire.BIN) string {
	level := map[int]string{1: "base", 2: "advanced"}[b.AuthLevel]
	return cmp.Or(
		wrongDigits(&b.BIN),
		unless(len(b.Country) == 2, "a country does not have two letters"),
		unless(level != "" && level == b.AuthRequirement.Level, "auth_level and level do not correspond"),
	)
}

func wrongDigits(bin *string) string {
	return unless(digits.MatchString(*bin), "a BIN is not made of digits")
}

func wrongState(s *cardwire.RemittanceState) string {
	return cmp.Or(
		unless(len(s.Country) == 2, "country does not have two letters"),
		unless(len(s.CountryStandardCode) == 3, "countryStandardCode does not have three letters"),
	)
}

func wrongCurrency(c *cardwire.RemittanceCurrency) string {
	isC2C, byBank := c.TransferTypeID == cardwire.TransferTypeC2C, c.PayoutMethodID == cardwire.PayoutMethodBankTransfer
	return cmp.Or(
		unless(isC2C == (c.TransferType == "C2C"), "transfer type 3 is not C2C"),
		unless(byBank == (c.PayoutMethod == "Bank Transfer"), "payout method 1 is not Bank Transfer"),
		unless(len(c.Country) == 3, "country does not have three letters"),
		unless(len(c.CountryCode) == 2, "country_code does not have two letters"),
	)
}
