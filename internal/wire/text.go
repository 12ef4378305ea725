package wire

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// Textual is a value that reads and writes itself as a string.
type Textual interface {
	String() string
	UnmarshalText([]byte) error
}

// Invalid is how a date or a time that could not be read is written.
const Invalid = "invalid"

// Date reads or writes a date or a time as a string. documented reads the documented form into
// v. Another form, which UnmarshalText must read, is drift, and so is what it does not read,
// which makes v invalid. An empty array, as PHP sends in place of null, is absent.
func Date[T Textual](c *Codec, v T, documented func(text []byte) bool) {
	if c.Writing {
		c.AppendString(v.String())
		return
	}
	text, other := c.bytesOrOther(Time)
	switch {
	case string(other) == "[]":
		c.Drift("empty array for string")
	case other == nil && (text == nil || documented(text)):
	case other == nil && len(text) == 0:
		c.Drift("empty string")
	case other == nil && string(text) != Invalid && v.UnmarshalText(text) == nil:
		c.Drift("date in another form")
	default:
		_ = v.UnmarshalText([]byte(Invalid))
		c.Drift("invalid date")
	}
}

// bytesOrOther is Bytes, or skips a value of another kind and returns what it is.
func (c *Codec) bytesOrOther(allowed Tolerance) (text, other []byte) {
	switch b := c.peek(); {
	case b == '{', b == '[', b == 't', b == 'f', isNumeric(b) && allowed&typeDrift == 0:
		from := c.pos
		c.SkipFree()
		other = c.buf[from:c.pos]
		if b == '[' && len(bytes.Trim(other, "[] \t\r\n")) == 0 {
			other = []byte("[]")
		}
		return nil, other
	}
	return c.Bytes(allowed), nil
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

// ParseOtherMonth reads the usual other forms of a month: 9/2028, 09/28, 2028-09, and four
// digits of which one reading only has a month.
func ParseOtherMonth(text []byte) (year, month int, ok bool) {
	for _, form := range []string{"0/0000", "00/00", "0/00"} {
		if year, month = 0, 0; numbers(text, form, &month, &year) {
			return inCentury(year), month, isMonth(month) && year > 0
		}
	}
	if year, month = 0, 0; numbers(text, "0000-00", &year, &month) {
		return year, month, isMonth(month) && year > 0
	}
	if year = 0; !numbers(text, "0000", &year) {
		return 0, 0, false
	}
	first, last := year/100, year%100
	if isMonth(first) {
		return inCentury(last), first, !isMonth(last)
	}
	return inCentury(first), last, isMonth(last)
}

func isMonth(n int) bool { return n >= 1 && n <= 12 }

// inCentury returns the year that a card means by two digits.
func inCentury(year int) int {
	if year < 100 {
		return 2000 + year
	}
	return year
}

// ParseOtherTime reads the usual other forms of a date and a time: with T, a fraction, no
// seconds, Z or an offset, and seconds or milliseconds since 1970 from 2001 to 2100. zoned
// reports that an instant was sent; otherwise t is in UTC.
func ParseOtherTime(text []byte) (t time.Time, zoned, ok bool) {
	if len(text) > 0 && digits(text, 0) == len(text) {
		n, _ := parseInt(text)
		if len(text) == len("1700000000") {
			n *= 1000
		}
		t = time.UnixMilli(n).UTC()
		return t, true, (len(text) == 10 || len(text) == 13) && t.Year() >= 2001 && t.Year() <= 2100
	}
	const longest = len("2026-01-31 23:59:59.123456789 +00:00")
	fraction := text[bytes.IndexAny(text, ".,")+1:] // time.Parse drops digits of more than nanoseconds
	if len(text) > longest || digits(fraction, 0) > len("123456789") {
		return t, false, false
	}
	s := strings.Replace(string(text), "T", " ", 1)
	for _, clock := range []string{time.DateTime, "2006-01-02 15:04"} {
		for _, zone := range []string{"", "Z07:00", "Z0700", "Z07", " Z07:00", " Z0700"} {
			if t, err := time.Parse(clock+zone, s); err == nil {
				return t, zone != "", t.Year() > 0
			}
		}
	}
	return t, false, false
}

// zeroDays are the days of the zero times of Go and of PHP, which a zone moves.
var zeroDays = []string{"0001-01-01", "0000-12-31", "-0001-11-30", "-0001-11-29"}

// IsZeroTime reports whether text is the zero that a database, Go or PHP has for an absent date.
func IsZeroTime(text []byte) bool {
	for _, day := range zeroDays {
		rest, found := bytes.CutPrefix(text, []byte(day))
		if found && (len(rest) == 0 || rest[0] == ' ' || rest[0] == 'T') {
			return true
		}
	}
	return len(bytes.Trim(text, "0-/: T.Z+")) == 0 && bytes.IndexByte(text, '0') >= 0
}

// maskCharacters are what services hide digits with.
const maskCharacters = "*Xx•●#"

// IsMask reports whether text has only characters that hide digits, and what separates them.
func IsMask(text []byte) bool {
	return len(bytes.Trim(text, maskCharacters+"/- ")) == 0 && bytes.ContainsAny(text, maskCharacters)
}

// Digits reads digits of which some may be hidden, as asterisks; null reads as nil. Other
// characters that hide digits are drift, among them spaces in a row, and so are single spaces
// between groups if digits are hidden. Anything else, or what is longer than most, is [Invalid]: it
// costs no more than itself.
func (c *Codec) Digits(allowed Tolerance, what string, most int) []byte {
	text, other := c.bytesOrOther(allowed | anyNumber)
	plain := other == nil && len(bytes.Trim(text, "0123456789*")) == 0
	hides := false
	if !plain && other == nil {
		text, hides = asterisks(string(text))
	}
	switch {
	case !plain && !hides, len(text) > most:
		c.Drift("invalid " + what)
		return []byte(Invalid)
	case hides:
		c.Drift("other mask characters")
	}
	return text
}

// asterisks returns text with an asterisk for each mask character. Spaces around it are none,
// and nor are those between so many digits that none can be hidden.
func asterisks(text string) (out []byte, hides bool) {
	if trimmed := strings.Trim(text, " "); trimmed != "" {
		text = trimmed
	}
	const maxVisible = 10 // the first 6, and the last 4
	digits, blanks := 0, false
	for i, r := range text {
		switch {
		case r >= '0' && r <= '9':
			out = append(out, byte(r))
			digits++
		case strings.ContainsRune(maskCharacters, r):
			out, hides = append(out, '*'), true
		case r == ' ' && (strings.HasSuffix(text[:i], " ") || strings.HasPrefix(text[i+1:], " ")):
			out, hides, blanks = append(out, '*'), true, true
		case r != ' ':
			return nil, false
		}
	}
	if blanks && digits > maxVisible {
		return nil, false
	}
	return out, hides
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
