package wire

import (
	"errors"
	"slices"

	"github.com/shopspring/decimal"
)

// Textual is a value that reads and writes itself as a string.
type Textual interface {
	String() string
	UnmarshalText([]byte) error
}

// Text reads or writes v as a string. A string in zeros, as some databases write an absent
// date, is drift, and leaves v as it was.
func Text[T Textual](c *Codec, v T, want string, zeros ...string) {
	if c.writing {
		c.AppendString(v.String())
		return
	}
	text := c.Bytes()
	switch {
	case text == nil:
		return
	case len(text) == 0:
		c.Drift("empty string")
		return
	}
	switch {
	case v.UnmarshalText(text) == nil:
	case slices.Contains(zeros, string(text)):
		c.Drift("zero date")
	default:
		c.Fail(want)
	}
}

// Plain is a string that is sent as it is.
type Plain string

// String returns the string.
func (s *Plain) String() string { return string(*s) }

// UnmarshalText takes any string.
func (s *Plain) UnmarshalText(text []byte) error {
	*s = Plain(text)
	return nil
}

// TwoPlaces is an amount that is sent with two decimal places, or "" if it has more.
type TwoPlaces decimal.Decimal

// String returns what is sent.
func (a *TwoPlaces) String() string {
	text, _ := Cents(decimal.Decimal(*a))
	return text
}

// UnmarshalText reads what is sent.
func (a *TwoPlaces) UnmarshalText(text []byte) error {
	amount, ok := ParseDecimal(text, false)
	if sent, exact := Cents(amount); !ok || !exact || sent != string(text) {
		return errors.New("must have two decimal places, as in 12.50")
	}
	*a = TwoPlaces(amount)
	return nil
}
