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
	Year  int        // the year, in full: 2028. 0: masked or absent. Negative: unreadable.
	Month time.Month // the month. 0: masked, absent or unreadable.
}

const maskedExpiry = "**/****"

// IsMasked reports whether it is the zero value.
func (e Expiry) IsMasked() bool { return e == Expiry{} }

// IsValid is false for what could not be read: neither masked nor absent.
func (e Expiry) IsValid() bool { return e.IsMasked() || Date{e.Year, e.Month, 1}.IsValid() }

// String returns "09/2028", "**/****" for the zero value, or "invalid".
func (e Expiry) String() string {
	switch {
	case e.IsMasked():
		return maskedExpiry
	case !e.IsValid():
		return wire.Invalid
	}
	return fmt.Sprintf("%02d/%04d", e.Month, e.Year)
}

// MarshalText returns String.
func (e Expiry) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads that, and the other forms that responses may have.
func (e *Expiry) UnmarshalText(text []byte) error {
	year, month, ok := wire.ParseMonth(text)
	if !ok {
		year, month, ok = wire.ParseOtherMonth(text)
	}
	invalid := Expiry{Year: invalidYear}
	absent := wire.IsMask(text) || wire.IsZeroTime(text)
	return assign(e, text, Expiry{year, time.Month(month)}, invalid, ok, absent, "expiry, as in 09/2028")
}

func (e *Expiry) isDocumented(text []byte) bool {
	year, month, ok := wire.ParseMonth(text)
	if ok {
		*e = Expiry{year, time.Month(month)}
	}
	return ok || string(text) == maskedExpiry
}

// invalidYear is the year of what could not be read.
const invalidYear = -1

// assign sets v to what was read if that is valid, to zero if it is absent, or to invalid
// if text says so.
func assign[T any](v *T, text []byte, read, invalid T, valid, absent bool, what string) error {
	switch {
	case v == nil:
		return errNilReceiver
	case valid:
		*v = read
	case absent:
		*v = *new(T)
	case string(text) == wire.Invalid:
		*v = invalid
	default:
		return errors.New("cardwire: not a valid " + what)
	}
	return nil
}

// Date is a day without a time or a zone. The zero value is an absent date.
type Date struct {
	Year  int        // the year, in full. 0: absent. Negative: unreadable.
	Month time.Month // the month. 0: absent or unreadable.
	Day   int        // the day of the month, from 1. 0: absent or unreadable.
}

// DateOf returns the day of t in t's zone.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// IsZero reports whether the date is absent.
func (d Date) IsZero() bool { return d == Date{} }

// IsValid is false for what could not be read, which is not absent.
func (d Date) IsValid() bool {
	return d.IsZero() || d.Year >= 1 && d.Year <= 9999 &&
		d == DateOf(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC))
}

// String returns YYYY-MM-DD, or "" for the zero value, or "invalid".
func (d Date) String() string {
	switch {
	case d.IsZero():
		return ""
	case !d.IsValid():
		return wire.Invalid
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day)
}

// MarshalText returns String.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (d *Date) UnmarshalText(text []byte) error {
	year, month, day, ok := wire.ParseDate(text)
	read := Date{year, time.Month(month), day}
	return assign(d, text, read, Date{Year: invalidYear}, ok, len(text) == 0, "date, as in 2026-01-31")
}

// checkDate refuses an invalid date; an absent one is valid.
func checkDate(name string, d Date) error {
	if !d.IsValid() {
		return errors.New(name + " is not a valid date, as in 2026-01-31")
	}
	return nil
}

// DateTime is a date and time in an undocumented zone, or in one that the service sent. It is
// absent if its Date is.
type DateTime struct {
	Date         // the day
	Hour   int   // from 0 to 23
	Minute int   // from 0 to 59
	Second int   // from 0 to 59
	nanos  int32 // below the second
	zone   int32 // seconds east of UTC, plus zoneSent; 0: the service sent no zone
}

const zoneSent = 1 << 20

// HasZone reports whether the service sent a zone or a Unix time: an instant.
func (t DateTime) HasZone() bool { return t.zone != 0 }

// IsValid is false for what could not be read, which is not absent.
func (t DateTime) IsValid() bool {
	return t.IsZero() || t.Date.IsValid() &&
		t.Hour >= 0 && t.Hour < 24 && t.Minute >= 0 && t.Minute < 60 && t.Second >= 0 && t.Second < 60
}

// In returns t in loc, the service's time zone; nil is UTC. With a zone it is the same instant
// in every loc. What is absent or invalid is the zero time.
func (t DateTime) In(loc *time.Location) time.Time {
	if loc == nil {
		loc = time.UTC
	}
	own := loc
	switch {
	case t.IsZero(), !t.IsValid():
		return time.Time{}
	case t.HasZone():
		own = time.FixedZone("", int(t.zone)-zoneSent)
	}
	return time.Date(t.Year, t.Month, t.Day, t.Hour, t.Minute, t.Second, int(t.nanos), own).In(loc)
}

// String returns YYYY-MM-DD HH:MM:SS, with the fraction that was sent, or RFC 3339 if t has a
// zone. It returns "" for the zero value, or "invalid".
func (t DateTime) String() string {
	switch {
	case t.IsZero():
		return ""
	case !t.IsValid():
		return wire.Invalid
	case t.HasZone():
		return t.In(time.FixedZone("", int(t.zone)-zoneSent)).Format(time.RFC3339Nano)
	}
	return t.In(time.UTC).Format("2006-01-02 15:04:05.999999999")
}

// MarshalText returns String.
func (t DateTime) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalBinary is MarshalText, for encoding/gob.
func (t DateTime) MarshalBinary() ([]byte, error) { return t.MarshalText() }

// UnmarshalBinary is UnmarshalText.
func (t *DateTime) UnmarshalBinary(text []byte) error { return t.UnmarshalText(text) }

// UnmarshalText reads that, and the other forms that responses may have.
func (t *DateTime) UnmarshalText(text []byte) error {
	var read DateTime
	absent := len(text) == 0 || wire.IsZeroTime(text)
	ok := !absent && read.isDocumented(text)
	if !ok && !absent {
		var at time.Time
		var zoned bool
		at, zoned, ok = wire.ParseOtherTime(text)
		read = dateTimeOf(at, zoned)
	}
	invalid := DateTime{Date: Date{Year: invalidYear}}
	return assign(t, text, read, invalid, ok, absent, "date and time, as in 2026-01-31 23:59:59")
}

func dateTimeOf(t time.Time, zoned bool) DateTime {
	d := DateTime{
		Date: DateOf(t), Hour: t.Hour(), Minute: t.Minute(), Second: t.Second(), nanos: int32(t.Nanosecond()),
	}
	if zoned {
		_, offset := t.Zone()
		d.zone = int32(offset + zoneSent)
	}
	return d
}

func (t *DateTime) isDocumented(text []byte) bool {
	day, clock, _ := bytes.Cut(text, []byte(" "))
	year, month, dayOfMonth, isDate := wire.ParseDate(day)
	hour, minute, second, isTime := wire.ParseClock(clock)
	if !isDate || !isTime || year == 1 && month == 1 && dayOfMonth == 1 { // Go's zero
		return false
	}
	*t = DateTime{Date: Date{year, time.Month(month), dayOfMonth}, Hour: hour, Minute: minute, Second: second}
	return true
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
	{Name: "city", Value: func(c *wire.Codec, a *Address) { c.Text(&a.City, wire.FreeNull) }},
	{Name: "state", Value: func(c *wire.Codec, a *Address) { c.Text(&a.State, wire.FreeNull) }},
	{Name: "country", Value: func(c *wire.Codec, a *Address) { c.Text(&a.Country, wire.FreeNull) }},
	{Name: "postalCode", Value: func(c *wire.Codec, a *Address) { c.Text(&a.PostalCode, wire.Free) }},
	{Name: "addressLine1", Value: func(c *wire.Codec, a *Address) { c.Text(&a.Line1, wire.FreeNull) }},
	{Name: "addressLine2", Value: func(c *wire.Codec, a *Address) { c.Text(&a.Line2, wire.FreeNull) }},
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
	case c.Kind() == '"':
		if len(c.Bytes(wire.Text)) > 0 {
			c.Fail("an address or an empty array")
		}
		c.Drift("empty string")
	default:
		*a = new(Address)
		wire.Object(c, *a, addressFields, wire.Whole)
	}
}
