package wire

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// Limits of a decimal: written out, no more digits than maxDigits, and no
// exponent beyond maxExponent, so that a short literal cannot cost much.
const (
	maxDigits   = 40
	maxExponent = 30
)

// MoneyText reads or writes an amount that the interface sends as text; a
// number is drift. Null, no digits or an exponent in the text are errors.
func (c *Codec) MoneyText(dst *decimal.Decimal) {
	if c.writing {
		c.out = append(c.out, '"')
		c.out = AppendDecimal(c.out, *dst)
		c.out = append(c.out, '"')
		return
	}
	c.money(dst, '"')
}

// MoneyNumber reads or writes an amount that the interface sends as a number;
// text is drift.
func (c *Codec) MoneyNumber(dst *decimal.Decimal) {
	if c.writing {
		c.out = AppendDecimal(c.out, *dst)
		return
	}
	c.money(dst, '0')
}

func (c *Codec) money(dst *decimal.Decimal, documented byte) {
	var lit []byte
	b := c.peek()
	text := b == '"'
	switch {
	case text:
		lit = c.text()
	case b == '-' || b >= '0' && b <= '9':
		lit = c.number()
	default:
		c.wrong(b, "a decimal amount")
	}
	if c.err != nil {
		return
	}
	if c.amounts == nil {
		c.amounts = new(amounts)
	}
	d, ok := c.amounts.parse(lit, !text)
	switch {
	case !ok:
		c.Fail("a decimal amount of at most 40 digits")
	case text && documented != '"':
		c.Drift("text for number")
	case !text && documented == '"':
		c.Drift("number for text")
	}
	*dst = d
}

// ParseDecimal reads an amount exactly, keeping its scale. The exponent form is
// accepted where exponent is true.
func ParseDecimal(lit []byte, exponent bool) (decimal.Decimal, bool) {
	return (*amounts)(nil).parse(lit, exponent)
}

// amounts are some of the amounts that one text has held. Zeros, limits and fees
// repeat on a page, a Decimal is two allocations, and nothing changes it once it
// is made, so that many can share one. nil remembers none.
type amounts struct {
	places [32]amount
	used   bool // one of them is taken
}

type amount struct {
	coefficient int64
	value       decimal.Decimal // the zero value: the place is free
}

// parse is [ParseDecimal].
func (a *amounts) parse(lit []byte, exponent bool) (decimal.Decimal, bool) {
	digitCount, scale, end, ok := mantissa(lit)
	if !ok {
		return decimal.Decimal{}, false
	}
	e := 0
	if end < len(lit) {
		if e, ok = parseExponent(lit[end:]); !ok || !exponent {
			return decimal.Decimal{}, false
		}
	}
	exp := e - scale
	// Written out, 12e3 takes three more digits and 12e-30 thirty in all.
	if max(digitCount, digitCount+exp, -exp) > maxDigits {
		return decimal.Decimal{}, false
	}
	if digitCount > 18 {
		return bigDecimal(lit[:end], exp), true
	}
	coefficient := smallCoefficient(lit[:end])
	if a == nil {
		return decimal.New(coefficient, int32(exp)), true
	}
	return a.shared(coefficient, int32(exp)), true
}

// shared returns a Decimal that may be another amount's too.
func (a *amounts) shared(coefficient int64, exp int32) decimal.Decimal {
	const spread = 0x9E3779B97F4A7C15 // takes near numbers to places far apart
	place := &a.places[(uint64(coefficient)^uint64(uint32(exp))<<32)*spread>>59]
	if place.coefficient != coefficient || place.value.Exponent() != exp || place.value == (decimal.Decimal{}) {
		*place = amount{coefficient, decimal.New(coefficient, exp)}
		a.used = true
	}
	return place.value
}

// forget spares texts without amounts the clearing.
func (a *amounts) forget() {
	if a != nil && a.used {
		*a = amounts{}
	}
}

// mantissa measures -?digits(.digits)? without needless leading zeros.
func mantissa(lit []byte) (count, scale, end int, ok bool) {
	i := 0
	if len(lit) > 0 && lit[0] == '-' {
		i = 1
	}
	whole := digits(lit, i)
	if whole == i || (lit[i] == '0' && whole > i+1) {
		return 0, 0, 0, false
	}
	count, end = whole-i, whole
	if end < len(lit) && lit[end] == '.' {
		end = digits(lit, whole+1)
		scale = end - whole - 1
		if scale == 0 {
			return 0, 0, 0, false
		}
	}
	return count + scale, scale, end, true
}

func parseExponent(lit []byte) (int, bool) {
	if lit[0]|0x20 != 'e' {
		return 0, false
	}
	e, err := strconv.Atoi(string(lit[1:]))
	return e, err == nil && e >= -maxExponent && e <= maxExponent
}

func smallCoefficient(mantissa []byte) (n int64) {
	for _, b := range mantissa {
		if b != '.' && b != '-' {
			n = n*10 + int64(b-'0')
		}
	}
	if mantissa[0] == '-' {
		return -n
	}
	return n
}

func bigDecimal(mantissa []byte, exp int) decimal.Decimal {
	plain := make([]byte, 0, len(mantissa))
	for _, b := range mantissa {
		if b != '.' {
			plain = append(plain, b)
		}
	}
	n, _ := new(big.Int).SetString(string(plain), 10)
	return decimal.NewFromBigInt(n, int32(exp))
}

// AppendDecimal writes d with its scale, as 123.450. It does not go through
// decimal's own formatting, which package variables of that package can change.
func AppendDecimal(dst []byte, d decimal.Decimal) []byte {
	n, exp := d.Coefficient(), int(d.Exponent())
	if n.Sign() < 0 {
		dst = append(dst, '-')
		n.Neg(n)
	}
	text := n.String()
	switch {
	case exp > maxDigits || exp < -maxDigits:
		// Written out it would be a page of zeros.
		dst = append(append(dst, text...), 'e')
		return strconv.AppendInt(dst, int64(exp), 10)
	case exp >= 0:
		dst = append(dst, text...)
		return appendZeros(dst, exp*min(n.Sign(), 1))
	case len(text) <= -exp:
		dst = appendZeros(append(dst, '0', '.'), -exp-len(text))
		return append(dst, text...)
	}
	point := len(text) + exp
	dst = append(append(dst, text[:point]...), '.')
	return append(dst, text[point:]...)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// Cents writes d with exactly two fraction digits. It reports false where d
// cannot be written so exactly, is not above zero, or takes more than 40 digits.
func Cents(d decimal.Decimal) (string, bool) {
	exp := int(d.Exponent())
	n := d.Coefficient()
	if n.Sign() <= 0 || exp > maxDigits {
		return "", false
	}
	text := n.String()
	if exp < -2 {
		cut := len(text) - (-2 - exp)
		if cut <= 0 || strings.Trim(text[cut:], "0") != "" {
			return "", false
		}
		text, exp = text[:cut], -2
	}
	text = string(appendZeros([]byte(text), exp+2))
	if len(text) > maxDigits {
		return "", false
	}
	for len(text) < 3 {
		text = "0" + text
	}
	return text[:len(text)-2] + "." + text[len(text)-2:], true
}
