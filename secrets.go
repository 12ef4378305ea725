package cardwire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/mask"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardNumber is the number of a card, full or masked. It prints, marshals, logs and diffs
// as Masked. The zero value is empty.
type CardNumber struct {
	n uint8
	b [22]byte // scrambled. With CVV and Card.Physical it takes 32 bytes of a Card.
}

// CVV is the verification value of a card. It prints as "***", and is never
// unmarshaled. Zero is empty.
type CVV struct {
	n uint8
	b [7]byte // scrambled
}

// NewCardNumber returns the number s: 12 to 19 digits or asterisks.
func NewCardNumber(s string) (CardNumber, error) {
	if n := len(s); n < 12 || n > 19 || !digitsOrAsterisks(s) {
		return CardNumber{}, errors.New("cardwire: a card number must have 12 to 19 digits or asterisks")
	}
	return sealNumber([]byte(s)), nil
}

func sealNumber(s []byte) (n CardNumber) {
	if n.n = uint8(len(s)); n.n > 0 {
		copy(n.b[:], s)
		mask.Scramble(n.b[:max(n.n, minScrambled)])
	}
	return n
}

// minScrambled is how much is scrambled, even of a short string.
const minScrambled = 16

// open returns the string in the first n bytes.
func (n CardNumber) open() [22]byte {
	mask.Unscramble(n.b[:max(n.n, minScrambled)])
	return n.b
}

func digitsOrAsterisks(s string) bool { return strings.Trim(s, "0123456789*") == "" }

// Reveal returns what the service sent, or "invalid". Keep it out of logs.
func (n CardNumber) Reveal() string {
	b := n.open()
	return string(b[:n.n])
}

// Masked returns "411111******1234"; of fewer than 13 digits only asterisks, with the last 4 if the
// service hid all others; or "invalid".
func (n CardNumber) Masked() string {
	b := n.mask()
	return string(b[:n.n])
}

func (n CardNumber) mask() [22]byte {
	b := n.open()
	hide := b[:n.n]
	switch {
	case string(hide) == wire.Invalid, n.n < 13 && n.showsLast4(b):
		return b
	case n.n >= 13:
		hide = b[6 : n.n-4]
	}
	for i := range hide {
		hide[i] = '*'
	}
	return b
}

// showsLast4 reports whether Masked shows the last 4 characters of b.
func (n CardNumber) showsLast4(b [22]byte) bool {
	return n.n >= 13 || n.n > 4 && len(bytes.Trim(b[:n.n-4], "*")) == 0
}

// Last4 returns the last 4 digits, or "" where Masked shows none.
func (n CardNumber) Last4() string {
	if !n.showsLast4(n.open()) {
		return ""
	}
	return n.Masked()[n.n-4:]
}

// IsMasked reports whether digits are missing.
func (n CardNumber) IsMasked() bool { return strings.ContainsRune(n.Reveal(), '*') }

// String returns Masked.
func (n CardNumber) String() string { return n.Masked() }

// Format writes Masked, whatever the verb.
func (n CardNumber) Format(f fmt.State, _ rune) { formatMasked(f, n.Masked()) }

// MarshalText returns Masked.
func (n CardNumber) MarshalText() ([]byte, error) { return []byte(n.Masked()), nil }

// UnmarshalText accepts what [NewCardNumber] accepts or MarshalText returns.
func (n *CardNumber) UnmarshalText(text []byte) error {
	read, err := NewCardNumber(string(text))
	switch {
	case n == nil:
		return errNilReceiver
	case err == nil || len(text) == 0:
		*n = read // with an error, the zero value
		return nil
	case string(text) == wire.Invalid, bytes.Contains(text, []byte("*")) && len(text) < 12 && digitsOrAsterisks(string(text)):
		*n = sealNumber(text)
		return nil
	}
	return err
}

func sealCVV(s []byte) (v CVV) {
	if v.n = uint8(len(s)); v.n > 0 {
		copy(v.b[:], s)
		mask.Scramble(v.b[:])
	}
	return v
}

// Reveal returns the value as the service sent it. It must not be stored.
func (v CVV) Reveal() string {
	mask.Unscramble(v.b[:])
	return string(v.b[:v.n])
}

// IsMasked reports whether the service sent asterisks.
func (v CVV) IsMasked() bool { return strings.ContainsRune(v.Reveal(), '*') }

// String returns "***", or "" for the zero value, or "invalid".
func (v CVV) String() string {
	if v.Reveal() == wire.Invalid {
		return wire.Invalid
	}
	return ifTrue(v.n > 0, "***")
}

// Format writes String, whatever the verb.
func (v CVV) Format(f fmt.State, _ rune) { formatMasked(f, v.String()) }

// MarshalText returns String.
func (v CVV) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// EncryptedPAN is the ciphertext of a card number, by an undocumented cipher. It prints as
// "***"; compare what Reveal returns. The zero value is empty.
type EncryptedPAN struct{ p *string } // scrambled

func sealPAN(s []byte) EncryptedPAN {
	b := bytes.Clone(s)
	mask.Scramble(b)
	sealed := string(b)
	return EncryptedPAN{&sealed}
}

// Reveal returns the ciphertext as the service sent it.
func (p EncryptedPAN) Reveal() string {
	if p.p == nil {
		return ""
	}
	b := []byte(*p.p)
	mask.Unscramble(b)
	return string(b)
}

// Ciphertext returns the decoded bytes.
func (p EncryptedPAN) Ciphertext() ([]byte, error) {
	text := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(p.Reveal(), "="))
	b, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 {
		return nil, errors.New("cardwire: the encrypted PAN is not base64")
	}
	return b, nil
}

// String returns "***", or "" for the zero value.
func (p EncryptedPAN) String() string { return ifTrue(p.p != nil, "***") }

// Format writes String, whatever the verb.
func (p EncryptedPAN) Format(f fmt.State, _ rune) { formatMasked(f, p.String()) }

// MarshalText returns String.
func (p EncryptedPAN) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func numberValue(c *wire.Codec, n *CardNumber) {
	if c.Writing {
		c.AppendString(n.Masked())
		return
	}
	text := c.Digits(wire.Code, "card number", len(n.b))
	if *n = sealNumber(text); c.Masking {
		*n = n.masked()
	}
}

// masked returns the number without the digits that Masked hides.
func (n CardNumber) masked() CardNumber {
	b := n.mask()
	return sealNumber(b[:n.n])
}

func cvvValue(c *wire.Codec, v *CVV) {
	if c.Writing {
		c.AppendString(v.String())
		return
	}
	text := c.Digits(wire.Text, "CVV", len(v.b))
	if *v = sealCVV(text); c.Masking {
		*v = v.masked()
	}
}

func (v CVV) masked() CVV { return sealCVV([]byte(v.String())) }

func panValue(c *wire.Codec, p *EncryptedPAN) {
	if c.Writing {
		c.AppendString(p.String())
		return
	}
	text := c.Bytes(wire.Text)
	if len(text) == 0 {
		c.Fail("a ciphertext")
		return
	}
	*p = sealPAN(text)
}

// formatMasked writes s with the width and flags of f, whatever the verb: tables line up.
func formatMasked(f fmt.State, s string) {
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, 's'), s) // f reports its errors itself
}

// formatLogged writes what a struct logs of itself, as a struct.
func formatLogged(f fmt.State, name string, v slog.LogValuer) {
	var b strings.Builder
	b.WriteString("cardwire." + name + "{")
	for _, field := range v.LogValue().Group() {
		b.WriteString(field.Key + ": " + field.Value.String() + ", ")
	}
	formatMasked(f, b.String()+"...}")
}

func loggedAmount(name string, amount decimal.Decimal) slog.Attr {
	return slog.String(name, string(wire.AppendDecimal(nil, amount)))
}
