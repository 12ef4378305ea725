package cardwire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardNumber is the number of a card, full or masked. Printing, marshalling,
// logging and diffing show the masked form; only Reveal returns the digits. What was
// marshalled reads back as the mask. Values compare with ==. The zero value is no
// number.
type CardNumber struct {
	n uint8
	b [31]byte // scrambled
}

// CVV is the verification value of a card. It prints as "***"; only Reveal
// returns it. It does not unmarshal, because a mask is not the value. Values
// compare with ==. The zero value is no CVV.
type CVV struct {
	n uint8
	b [7]byte // scrambled
}

// NewCardNumber returns the number s: 12 to 19 digits, some of which may be
// asterisks. Its errors do not hold s.
func NewCardNumber(s string) (CardNumber, error) {
	if n := len(s); n < 12 || n > 19 || !digitsOrAsterisks(s) {
		return CardNumber{}, errors.New("cardwire: a card number has 12 to 19 digits or asterisks")
	}
	return sealNumber([]byte(s)), nil
}

func sealNumber(s []byte) (n CardNumber) {
	if n.n = uint8(len(s)); n.n > 0 {
		copy(n.b[:], s)
		scramble(n.sealed())
	}
	return n
}

// sealed is the part that is scrambled: of a short text, more than the text.
func (n *CardNumber) sealed() []byte { return n.b[:max(n.n, 16)] }

// open returns the text in its first n bytes.
func (n CardNumber) open() [31]byte {
	unscramble(n.sealed())
	return n.b
}

func digitsOrAsterisks[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] != '*' && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

// Reveal returns the number as the service sent it: all digits, or masked. It
// is the one way out of the sealed value; keep what it returns out of logs.
func (n CardNumber) Reveal() string {
	b := n.open()
	return string(b[:n.n])
}

// Masked returns the first 6 digits, asterisks and the last 4, as "411111******1234".
// A number of fewer than 13 digits is all asterisks. The zero value is "".
func (n CardNumber) Masked() string {
	b := n.mask()
	return string(b[:n.n])
}

func (n CardNumber) mask() [31]byte {
	b := n.open()
	hide := b[:n.n]
	if n.n >= 13 {
		hide = b[6 : n.n-4]
	}
	for i := range hide {
		hide[i] = '*'
	}
	return b
}

// Last4 returns the last 4 digits, or "" where Masked shows none.
func (n CardNumber) Last4() string {
	if n.n < 13 {
		return ""
	}
	return n.Masked()[n.n-4:]
}

// BIN returns the first 6 digits, or "" where Masked shows none.
func (n CardNumber) BIN() string {
	if n.n < 13 {
		return ""
	}
	return n.Masked()[:6]
}

// IsMasked says whether digits are missing, as in the answers of GetCard and
// GetCardSecrets. The zero value is not masked.
func (n CardNumber) IsMasked() bool { return strings.ContainsRune(n.Reveal(), '*') }

// covers says whether n may be the number that m masks. A mask without a digit
// may be any.
func (m CardNumber) covers(n CardNumber) bool {
	mask, digits := m.Reveal(), n.Reveal()
	if strings.Trim(mask, "*") == "" {
		return true
	}
	if len(mask) != len(digits) {
		return false
	}
	for i := range len(mask) {
		if mask[i] != '*' && mask[i] != digits[i] {
			return false
		}
	}
	return true
}

// String returns Masked.
func (n CardNumber) String() string { return n.Masked() }

// Format writes Masked, whatever the verb.
func (n CardNumber) Format(f fmt.State, _ rune) { formatMasked(f, n.Masked()) }

// MarshalText returns Masked.
func (n CardNumber) MarshalText() ([]byte, error) { return []byte(n.Masked()), nil }

// MarshalJSON returns Masked.
func (n CardNumber) MarshalJSON() ([]byte, error) { return wire.AppendText(nil, n.Masked()), nil }

// UnmarshalText reads digits or a mask, as [NewCardNumber] does; "" is no number.
func (n *CardNumber) UnmarshalText(text []byte) error {
	if n == nil {
		return errors.New("cardwire: a card number cannot be read into nil")
	}
	if len(text) == 0 {
		*n = CardNumber{}
		return nil
	}
	read, err := NewCardNumber(string(text))
	if err == nil {
		*n = read
	}
	return err
}

// LogValue returns Masked.
func (n CardNumber) LogValue() slog.Value { return slog.StringValue(n.Masked()) }

// NewCVV returns the verification value s: 3 or 4 digits, or asterisks. Its
// errors do not hold s.
func NewCVV(s string) (CVV, error) {
	if n := len(s); n < 3 || n > 4 || !digitsOrAsterisks(s) {
		return CVV{}, errors.New("cardwire: a CVV has 3 or 4 digits or asterisks")
	}
	return sealCVV([]byte(s)), nil
}

func sealCVV(s []byte) (v CVV) {
	if v.n = uint8(len(s)); v.n > 0 {
		copy(v.b[:], s)
		scramble(v.b[:])
	}
	return v
}

// Reveal returns the value as the service sent it, digits or "***". It must not
// be stored after an authorisation.
func (v CVV) Reveal() string {
	unscramble(v.b[:])
	return string(v.b[:v.n])
}

// IsMasked says whether the service sent asterisks. The zero value is not masked.
func (v CVV) IsMasked() bool { return strings.ContainsRune(v.Reveal(), '*') }

// String returns "***", or "" for the zero value.
func (v CVV) String() string {
	if v.n == 0 {
		return ""
	}
	return "***"
}

// Format writes String, whatever the verb.
func (v CVV) Format(f fmt.State, _ rune) { formatMasked(f, v.String()) }

// MarshalText returns String.
func (v CVV) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalJSON returns String.
func (v CVV) MarshalJSON() ([]byte, error) { return wire.AppendText(nil, v.String()), nil }

// LogValue returns String.
func (v CVV) LogValue() slog.Value { return slog.StringValue(v.String()) }

// EncryptedPAN is the ciphertext of a card number. The interface shows neither
// cipher nor key. It prints as "***". The zero value is none. Compare what Reveal
// returns: == compares where it is held.
type EncryptedPAN struct{ p *string } // scrambled

// NewEncryptedPAN returns the ciphertext that is base64, standard or for URLs, with or
// without padding. Its errors do not contain it.
func NewEncryptedPAN(base64 string) (EncryptedPAN, error) {
	p := sealPAN([]byte(base64))
	if _, err := p.Ciphertext(); err != nil {
		return EncryptedPAN{}, err
	}
	return p, nil
}

func sealPAN(s []byte) EncryptedPAN {
	b := bytes.Clone(s)
	scramble(b)
	sealed := string(b)
	return EncryptedPAN{&sealed}
}

// Reveal returns the text as it stands on the wire.
func (p EncryptedPAN) Reveal() string {
	if p.p == nil {
		return ""
	}
	b := []byte(*p.p)
	unscramble(b)
	return string(b)
}

// Ciphertext returns the bytes that the text stands for: base64 in the standard
// or the URL alphabet, padded or not.
func (p EncryptedPAN) Ciphertext() ([]byte, error) {
	text := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(p.Reveal(), "="))
	b, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 {
		return nil, errors.New("cardwire: the encrypted PAN is not base64")
	}
	return b, nil
}

// String returns "***", or "" for the zero value.
func (p EncryptedPAN) String() string {
	if p.p == nil {
		return ""
	}
	return "***"
}

// Format writes String, whatever the verb.
func (p EncryptedPAN) Format(f fmt.State, _ rune) { formatMasked(f, p.String()) }

// MarshalText returns String.
func (p EncryptedPAN) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// MarshalJSON returns String.
func (p EncryptedPAN) MarshalJSON() ([]byte, error) { return wire.AppendText(nil, p.String()), nil }

// LogValue returns String.
func (p EncryptedPAN) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Expiry is the month up to whose end a card is valid. The zero value is a
// masked or absent one.
type Expiry struct {
	// Year is the year, in full: 2028. 0: masked or absent.
	Year int
	// Month is the month. 0: masked or absent.
	Month time.Month
}

// maskedExpiry is how the service masks a month.
const maskedExpiry = "**/****"

// IsMasked says whether the service kept the month to itself.
func (e Expiry) IsMasked() bool { return e == Expiry{} }

// String returns the wire's form, "09/2028", or "**/****" for the zero value.
func (e Expiry) String() string {
	if e.IsMasked() {
		return maskedExpiry
	}
	return string(wire.AppendMonth(nil, e.Year, e.Month))
}

// MarshalText returns String.
func (e Expiry) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (e *Expiry) UnmarshalText(text []byte) error {
	if e == nil {
		return errNilReceiver
	}
	if string(text) == maskedExpiry {
		*e = Expiry{}
		return nil
	}
	year, month, ok := wire.ParseMonth(text)
	if !ok {
		return errors.New("cardwire: an expiry is like 09/2028")
	}
	*e = Expiry{year, time.Month(month)}
	return nil
}

// Date is a day without a time and a zone. The zero value is an absent one.
type Date struct {
	// Year is the year, in full. 0: absent.
	Year int
	// Month is the month. 0: absent.
	Month time.Month
	// Day is the day of the month, from 1. 0: absent.
	Day int
}

// DateOf returns the day of t in t's own zone.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// ParseDate reads YYYY-MM-DD. The day must exist: "" is an error.
func ParseDate(s string) (Date, error) {
	year, month, day, ok := wire.ParseDate([]byte(s))
	if !ok {
		return Date{}, errors.New("cardwire: a date is a day that exists, like 2026-02-28")
	}
	return Date{year, time.Month(month), day}, nil
}

// IsZero says whether the date is absent.
func (d Date) IsZero() bool { return d == Date{} }

// String returns YYYY-MM-DD, or "" for the zero value.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return string(wire.AppendDate(nil, d.Year, d.Month, d.Day))
}

// MarshalText returns String.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (d *Date) UnmarshalText(text []byte) error {
	if d == nil {
		return errNilReceiver
	}
	if len(text) == 0 {
		*d = Date{}
		return nil
	}
	parsed, err := ParseDate(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}

// exists says whether a date that a caller put together is a day of the
// calendar; the zero value is not asked.
func (d Date) exists() bool {
	_, _, _, ok := wire.ParseDate([]byte(d.String()))
	return ok
}

// checkDate refuses a date that does not exist; an absent one is fine.
func checkDate(name string, d Date) error {
	if !d.IsZero() && !d.exists() {
		return errors.New(name + " is not a day that exists")
	}
	return nil
}

// DateTime is a day and a time of it without a zone: the interface names none.
// It is absent where its Date is; a service that sends 0000-00-00 means the same.
type DateTime struct {
	// Date is the day.
	Date
	// Hour is from 0 to 23.
	Hour int
	// Minute is from 0 to 59.
	Minute int
	// Second is from 0 to 59.
	Second int
}

// In returns the instant at which clocks in loc show t. Which zone the service
// means is not shown: ask for it, and keep loc in one place. nil is UTC.
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
	b := append(wire.AppendDate(nil, t.Year, t.Month, t.Day), ' ')
	return string(wire.AppendClock(b, t.Hour, t.Minute, t.Second))
}

// MarshalText returns String.
func (t DateTime) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (t *DateTime) UnmarshalText(text []byte) error {
	if t == nil {
		return errNilReceiver
	}
	if len(text) == 0 {
		*t = DateTime{}
		return nil
	}
	if len(text) == len("2006-01-02 15:04:05") && text[10] == ' ' {
		year, month, day, ok := wire.ParseDate(text[:10])
		hour, minute, second, ok2 := wire.ParseClock(text[11:])
		if ok && ok2 {
			*t = DateTime{Date{year, time.Month(month), day}, hour, minute, second}
			return nil
		}
	}
	return errors.New("cardwire: a date and time is like 2026-02-28 23:59:59")
}

// Address is the address of a cardholder, as the service holds it.
type Address struct {
	// City is the city; "": none.
	City string
	// State is the state, province or region; "": none.
	State string
	// Country is the country as the service writes it; "": none.
	Country string
	// PostalCode is the postal code; "": none.
	PostalCode string
	// Line1 is the first line: addressLine1.
	Line1 string
	// Line2 is the second line: addressLine2; "": none.
	Line2 string
}

var addressMembers = []wire.Member[Address]{
	{Name: "city", Value: func(c *wire.Codec, a *Address) { c.NullText(&a.City) }},
	{Name: "state", Value: func(c *wire.Codec, a *Address) { c.NullText(&a.State) }},
	{Name: "country", Value: func(c *wire.Codec, a *Address) { c.NullText(&a.Country) }},
	{Name: "postalCode", Value: func(c *wire.Codec, a *Address) { c.Code(&a.PostalCode) }},
	{Name: "addressLine1", Value: func(c *wire.Codec, a *Address) { c.NullText(&a.Line1) }},
	{Name: "addressLine2", Value: func(c *wire.Codec, a *Address) { c.NullText(&a.Line2) }},
}

// MarshalJSON returns the address under the wire's names.
func (a Address) MarshalJSON() ([]byte, error) { return wire.Marshal(&a, addressMembers) }

// UnmarshalJSON reads an address under the wire's names.
func (a *Address) UnmarshalJSON(text []byte) error { return unmarshal(text, a, addressMembers) }

// The values below stand in several types, in forms of their own.

func numberValue(c *wire.Codec, n *CardNumber) {
	if c.Writing() {
		c.AppendText(n.Masked())
		return
	}
	text := c.CodeBytes()
	if len(text) > len(n.b) || !digitsOrAsterisks(text) {
		c.Fail("a card number")
		return
	}
	if *n = sealNumber(text); c.Masking {
		mask := n.mask()
		*n = sealNumber(mask[:n.n])
	}
}

func cvvValue(c *wire.Codec, v *CVV) {
	if c.Writing() {
		c.AppendText(v.String())
		return
	}
	text := c.Bytes()
	if len(text) > len(v.b) || !digitsOrAsterisks(text) {
		c.Fail("a CVV")
		return
	}
	if *v = sealCVV(text); c.Masking {
		*v = sealCVV([]byte(v.String()))
	}
}

func panValue(c *wire.Codec, p *EncryptedPAN) {
	if c.Writing() {
		c.AppendText(p.String())
		return
	}
	text := c.Bytes()
	if len(text) == 0 {
		c.Fail("a ciphertext")
		return
	}
	*p = sealPAN(text)
}

// serviceIDValue is for the identifiers that a journal records and people ask about.
func serviceIDValue(c *wire.Codec, id *string) { c.CleanedID(id, check.Cleaned) }

func expiryValue(c *wire.Codec, e *Expiry) {
	textValue(c, e, "a month like 09/2028 or **/****")
}

func dateTimeValue(c *wire.Codec, t *DateTime) {
	textValue(c, t, "a date and time like 2026-02-28 23:59:59", "0000-00-00 00:00:00", "0000-00-00")
}

// textual is a value that reads and writes itself as text.
type textual interface {
	String() string
	UnmarshalText([]byte) error
}

// textValue reads zeros, by which some databases write that a date is absent, as
// an absent value.
func textValue[T textual](c *wire.Codec, v T, want string, zeros ...string) {
	if c.Writing() {
		c.AppendText(v.String())
		return
	}
	text := c.Bytes()
	switch {
	case text == nil:
		return
	case len(text) == 0:
		c.Drift("empty text")
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

// errNilReceiver is where encoding packages never call, but others may.
var errNilReceiver = errors.New("cardwire: a nil pointer cannot be unmarshalled into")

// unmarshal is wire.Unmarshal with an error of this package.
func unmarshal[T any](text []byte, v *T, members []wire.Member[T]) error {
	if v == nil {
		return errNilReceiver
	}
	if err := wire.Unmarshal(text, v, members); err != nil {
		return &detailError{ErrUnreadable, err.Error()}
	}
	return nil
}
