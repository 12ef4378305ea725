package main

import (
	"cmp"
	"regexp"

	"github.com/cardwire/cardwire-go"
)

// What the API document says of values that the client takes as they are. No text contains one.

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	country = regexp.MustCompile(`^[A-Za-z]{2}$`)
)

// unless returns the text if the claim does not hold.
func unless(holds bool, text string) string {
	if holds {
		return ""
	}
	return text
}

// each returns a function that returns what is wrong with the first element of a list that is not right.
func each[T any](list []T, err error) func(wrong func(*T) string) (string, error) {
	return func(wrong func(*T) string) (first string, _ error) {
		for i := range list {
			first = cmp.Or(first, wrong(&list[i]))
		}
		return first, err
	}
}

func wrongListed(c *cardwire.Card) string {
	return cmp.Or(
		unless(!c.Number.IsMasked(), "a number of the list is masked"),
		unless(!c.CVV.IsMasked(), "a CVV of the list is masked"),
		unless(digits.MatchString(c.CardBIN), "card_bin is not made of digits"),
		unless(c.Status >= cardwire.CardLocked && c.Status <= cardwire.CardSuspended, "a status is none of the six"),
	)
}

func wrongSingle(c, listed *cardwire.Card) string {
	return cmp.Or(
		unless(c.TradeID == listed.TradeID, "its trade_id differs from the list"),
		unless(c.Number.IsMasked(), "its number is not masked"),
		unless(c.Number.Last4() == listed.Number.Last4(), "its number differs from the list"),
		unless(c.CVV.IsMasked(), "its CVV is not masked"),
	)
}

func wrongSecrets(s *cardwire.CardSecrets, listed *cardwire.Card) string {
	_, err := s.PAN.Ciphertext()
	masked := s.Number.IsMasked() && s.CVV.IsMasked() && s.Expiry.IsMasked()
	return cmp.Or(
		unless(masked, "a field that should be masked is not"),
		unless(s.Number.Last4() == listed.Number.Last4(), "the number differs from the list"),
		unless(err == nil, "pan is not base64"),
	)
}

func wrongBIN(b *cardwire.BIN) string {
	level := map[int]string{1: "base", 2: "advanced"}[b.AuthLevel]
	return cmp.Or(
		wrongDigits(&b.BIN),
		unless(country.MatchString(b.Country), "a country does not have two letters"),
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
