package cardwire

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Expiry is the last month in which a card is valid; zero: masked or absent.
type Expiry struct {
	Year  int        // the year, in full: 2028. 0: masked or absent.
	Month time.Month // the month. 0: masked or absent.
}

const maskedExpiry = "**/****"

// IsMasked reports whether it is the zero value.
func (e Expiry) IsMasked() bool { return e == Expiry{} }

// String returns the wire's form, "09/2028", or "**/****" for the zero value.
func (e Expiry) String() string {
	if e.IsMasked() {
		return maskedExpiry
	}
	return fmt.Sprintf("%02d/%04d", e.Month, e.Year)
}

// MarshalText returns String.
func (e Expiry) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (e *Expiry) UnmarshalText(text []byte) error {
	year, month, ok := wire.ParseMonth(text)
	return assign(e, Expiry{year, time.Month(month)}, ok, string(text) == maskedExpiry, "expiry, as in 09/2028")
}

// assign sets v to what was read if that is valid, or to zero if it is absent.
func assign[T any](v *T, read T, valid, absent bool, what string) error {
	switch {
	case v == nil:
		return errNilReceiver
	case valid:
		*v = read
	case absent:
		*v = *new(T)
	default:
		return errors.New("cardwire: not a valid " + what)
	}
	return nil
}

// Date is a day without a time or a zone. The zero value is an absent date.
type Date struct {
	Year  int        // the year, in full. 0: absent.
	Month time.Month // the month. 0: absent.
	Day   int        // the day of the month, from 1. 0: absent.
}

// DateOf returns the day of t in t's zone.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// IsZero reports whether the date is absent.
func (d Date) IsZero() bool { return d == Date{} }

// String returns YYYY-MM-DD, or "" for the zero value.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day)
}

// MarshalText returns String.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (d *Date) UnmarshalText(text []byte) error {
	year, month, day, ok := wire.ParseDate(text)
	return assign(d, Date{year, time.Month(month), day}, ok, len(text) == 0, "date, as in 2026-01-31")
}

// checkDate refuses an invalid date; an absent one is valid.
func checkDate(name string, d Date) error {
	if new(Date).UnmarshalText([]byte(d.String())) != nil {
		return errors.New(name + " is not a valid date, as in 2026-01-31")
	}
	return nil
}

// DateTime is a date and time in an undocumented zone. It is absent if its Date is.
type DateTime struct {
	Date       // the day
	Hour   int // from 0 to 23
	Minute int // from 0 to 59
	Second int // from 0 to 59
}

// In returns t as a time in loc, which is the service's time zone; nil is UTC.
func (t DateTime) In(loc *time.Location) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	if loc == nil {
		loc = time.UTC
	}
	return time.Date(t.Year, t.Month, t.Day, t.Hour, t.Minute, t.Second, 0, loc)
}

// String returns YYYY-MM-DD HH:MM:SS, or "" for the zero value.
func (t DateTime) String() string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s %02d:%02d:%02d", t.Date, t.Hour, t.Minute, t.Second)
}

// MarshalText returns String.
func (t DateTime) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (t *DateTime) UnmarshalText(text []byte) error {
	day, clock, _ := bytes.Cut(text, []byte(" "))
	year, month, dayOfMonth, isDate := wire.ParseDate(day)
	hour, minute, second, isTime := wire.ParseClock(clock)
	read := DateTime{Date{year, time.Month(month), dayOfMonth}, hour, minute, second}
	return assign(t, read, isDate && isTime, len(text) == 0, "date and time, as in 2026-01-31 23:59:59")
}

// Address is the address of a cardholder. fmt and slog print none of it.
type Address struct {
	City       string // the city; "": none
	State      string // the state, province or region; "": none
	Country    string // the country as the service writes it; "": none
	PostalCode string // the postal code; "": none
	Line1      string // the first line: addressLine1
	Line2      string // the second line: addressLine2; "": none
}

var addressFields = []wire.FieldOf[Address]{
	{Name: "city", Value: func(c *wire.Codec, a *Address) { c.Text(&a.City, wire.Null) }},
	{Name: "state", Value: func(c *wire.Codec, a *Address) { c.Text(&a.State, wire.Null) }},
	{Name: "country", Value: func(c *wire.Codec, a *Address) { c.Text(&a.Country, wire.Null) }},
	{Name: "postalCode", Value: func(c *wire.Codec, a *Address) { c.Text(&a.PostalCode, wire.Code) }},
	{Name: "addressLine1", Value: func(c *wire.Codec, a *Address) { c.Text(&a.Line1, wire.Null) }},
	{Name: "addressLine2", Value: func(c *wire.Codec, a *Address) { c.Text(&a.Line2, wire.Null) }},
}

const loggedAddress = "cardwire.Address{...}"

// Format writes none of the address, whatever the verb.
func (a Address) Format(f fmt.State, _ rune) { formatMasked(f, loggedAddress) }

// LogValue returns none of the address.
func (a Address) LogValue() slog.Value { return slog.StringValue(loggedAddress) }

// serviceIDValue is for the identifiers that a journal records and people search for.
func serviceIDValue(c *wire.Codec, id *string) {
	c.CleanedID(id, check.Cleaned)
	if !c.Writing && !isServiceID(*id) { // 0, "failed"
		*id = ""
		c.Fail("an identifier")
	}
}

// scalar returns a string, without the spaces at its ends, or a number; "": it is neither.
func scalar(d *wire.Codec) string {
	switch d.Kind() {
	case '"':
		return strings.TrimSpace(string(d.Bytes(wire.Text)))
	case '0', '-':
		return string(d.Span())
	}
	d.Skip()
	return ""
}

// isServiceID reports whether a value can be a service's identifier: it has a digit and no
// white space, and is no negative number or zero.
func isServiceID(id string) bool {
	return strings.ContainsAny(id, "0123456789") && !strings.ContainsFunc(id, unicode.IsSpace) &&
		!strings.HasPrefix(id, "-") && strings.Trim(id, "0-_.") != ""
}

// errNilReceiver is for direct calls: encoding packages never unmarshal into nil.
var errNilReceiver = errors.New("cardwire: cannot unmarshal into a nil pointer")

func unmarshal[T any](data []byte, v *T, fields []wire.FieldOf[T]) error {
	if v == nil {
		return errNilReceiver
	}
	err, _ := errors.AsType[*wire.Error](wire.Unmarshal(data, v, fields))
	return cannotUnmarshal[T](err)
}

// cannotUnmarshal is the error of an UnmarshalJSON, which may read from a cache, or nil.
func cannotUnmarshal[T any](err *wire.Error) error {
	if err == nil {
		return nil
	}
	name := reflect.TypeFor[T]().Name()
	return &explained{"cardwire: cannot unmarshal " + name + ": " + err.Detail(), ErrUnreadable}
}

// addressValue is an object, or an empty array where there is no address.
func addressValue(c *wire.Codec, a **Address) {
	if c.Writing {
		if *a == nil {
			c.Append('[', ']')
			return
		}
		wire.Object(c, *a, addressFields, wire.Whole)
		return
	}
	*a = nil
	switch {
	case c.Kind() == '[':
		c.EmptyArray("an address or an empty array")
	case c.EmptyObject():
		c.Drift("empty object for array")
	case c.Kind() == 'n':
		c.Drift("null for object")
		c.Null()
	default:
		*a = new(Address)
		wire.Object(c, *a, addressFields, wire.Whole)
	}
}
