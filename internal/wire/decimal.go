package wire

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// Limits of a decimal: at most maxDigits digits when written out, and no exponent
// beyond maxExponent, so that a short literal cannot cost much.
const (
	maxDigits   = 40
	maxExponent = 30
)

// DecimalString reads or writes an amount that the API sends as a string; a number
// is drift. Null, an empty string and an exponent in a string are errors.
func (c *Codec) DecimalString(dst *decimal.Decimal) {
	if c.writing {
		c.out = append(c.out, '"')
		c.out = AppendDecimal(c.out, *dst)
		c.out = append(c.out, '"')
		return
	}
	c.money(dst, '"')
}

// DecimalNumber reads or writes an amount that the API sends as a number; a string
// is drift.
func (c *Codec) DecimalNumber(dst *decimal.Decimal) {
	if c.writing {
		c.out = AppendDecimal(c.out, *dst)
		return
	}
	c.money(dst, '0')
}

// LenientDecimal is [Codec.DecimalNumber] for an amount that moves no money. Null is
// drift and reads as zero.
func (c *Codec) LenientDecimal(dst *decimal.Decimal) {
	if c.writing || c.peek() != 'n' {
		c.DecimalNumber(dst)
		return
	}
	c.Drift("null for number")
	c.word("null")
	*dst = decimal.Decimal{}
}

func (c *Codec) money(dst *decimal.Decimal, documented byte) {
	var lit []byte
	b := c.peek()
	quoted := b == '"'
	switch {
	case quoted:
		lit = c.readString()
	case b == '-' || b >= '0' && b <= '9':
		lit = c.number()
	default:
		c.wrong(b, "a decimal amount")
	}
	if c.err != nil {
		return
	}
	d, ok := c.ParseDecimal(lit, !quoted)
	switch {
	case !ok:
		c.Fail("a decimal amount of at most 40 digits")
	case quoted && documented != '"':
		c.Drift("string for number")
	case !quoted && documented == '"':
		c.Drift("number for string")
	}
	*dst = d
}

// ParseDecimal reads an amount exactly, keeping its scale. It accepts the exponent
// form if exponent is true.
func ParseDecimal(lit []byte, exponent bool) (decimal.Decimal, bool) {
	return (*amounts)(nil).parse(lit, exponent)
}

// ParseDecimal is the function of that name. Equal amounts of a document share memory.
func (c *Codec) ParseDecimal(lit []byte, exponent bool) (decimal.Decimal, bool) {
	if c.amounts == nil {
		c.amounts = new(amounts)
	}
	return c.amounts.parse(lit, exponent)
}

// amounts caches some of the amounts of one JSON document. Zeros, limits and fees
// recur on a page, a Decimal is two allocations, and nothing changes it once it is
// made, so that many can share one. nil caches none.
type amounts struct {
	places [128]amount
	used   bool // at least one place is taken
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
	// Written out, 12e3 takes three more digits, and 12e-30 takes thirty in all.
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

// shared returns a Decimal that equal amounts may share.
func (a *amounts) shared(coefficient int64, exp int32) decimal.Decimal {
	const spread = 0x9E3779B97F4A7C15 // maps nearby numbers to places far apart
	place := &a.places[(uint64(coefficient)^uint64(uint32(exp))<<32)*spread>>57]
	if place.coefficient != coefficient || place.value.Exponent() != exp || place.value == (decimal.Decimal{}) {
		*place = amount{coefficient, decimal.New(coefficient, exp)}
		a.used = true
	}
	return place.value
}

// forget clears the cache, unless it is empty anyway.
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

// AppendDecimal writes d with its scale, as 123.450. It does not use the formatting
// of package decimal, which package variables can change.
func AppendDecimal(dst []byte, d decimal.Decimal) []byte {
	n, exp := d.Coefficient(), int(d.Exponent())
	if n.Sign() < 0 {
		dst = append(dst, '-')
		n.Neg(n)
	}
	text := n.String()
	switch {
	case exp > maxDigits || exp < -maxDigits:
		// Written out, it would be a page of zeros.
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

// Cents writes d with exactly two decimal places. It reports false if d has more
// than two, is not greater than zero, or takes more than 40 digits.
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
