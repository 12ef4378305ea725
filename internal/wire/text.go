package wire

import (
	"errors"
	"time"

	"github.com/shopspring/decimal"
)

// Textual is a value that reads and writes itself as a string.
type Textual interface {
	String() string
	UnmarshalText([]byte) error
}

// Date reads or writes a date or a time as a string. A string that is not a valid one, like
// 23:59:60 or the zeros of some databases, is drift, and leaves v as it was.
func Date[T Textual](c *Codec, v T) {
	if c.Writing {
		c.AppendString(v.String())
		return
	}
	switch text := c.Bytes(Text); {
	case text == nil:
	case len(text) == 0:
		c.Drift("empty string")
	case v.UnmarshalText(text) != nil:
		c.Drift("invalid date")
	}
}

// ParseDate reads YYYY-MM-DD, which must be a valid date.
func ParseDate(text []byte) (year, month, day int, ok bool) {
	ok = numbers(text, "0000-00-00", &year, &month, &day)
	// time.Date normalizes an invalid date.
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return year, month, day, ok && year > 0 && t.Month() == time.Month(month) && t.Day() == day
}

// ParseClock reads HH:MM:SS.
func ParseClock(text []byte) (hour, minute, second int, ok bool) {
	ok = numbers(text, "00:00:00", &hour, &minute, &second)
	return hour, minute, second, ok && hour < 24 && minute < 60 && second < 60
}

// ParseMonth reads MM/YYYY.
func ParseMonth(text []byte) (year, month int, ok bool) {
	ok = numbers(text, "00/0000", &month, &year)
	return year, month, ok && year > 0 && month >= 1 && month <= 12
}

// numbers reads text that has a digit where form has 0, and is form elsewhere.
func numbers(text []byte, form string, into ...*int) bool {
	if len(text) != len(form) {
		return false
	}
	for i, b := range text {
		switch {
		case form[i] != '0' && b == form[i]:
			into = into[1:]
		case form[i] == '0' && b >= '0' && b <= '9':
			*into[0] = *into[0]*10 + int(b-'0')
		default:
			return false
		}
	}
	return true
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
