package wire

import (
	"fmt"
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
	if c.Writing {
		c.out = append(AppendDecimal(append(c.out, '"'), *dst), '"')
		return
	}
	c.money(dst, '"')
}

// DecimalNumber reads or writes an amount that the API sends as a number; a string
// is drift.
func (c *Codec) DecimalNumber(dst *decimal.Decimal) {
	if c.Writing {
		c.out = AppendDecimal(c.out, *dst)
		return
	}
	c.money(dst, '0')
}

// LenientDecimal is [Codec.DecimalNumber] for an amount that moves no money. Null is
// drift and reads as zero.
func (c *Codec) LenientDecimal(dst *decimal.Decimal) {
	if c.Writing || c.peek() != 'n' {
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
		lit = c.readString(false)
	case isNumeric(b):
		lit, _ = c.number()
	default:
		c.wrong(b, "a decimal amount")
	}
	if c.err != nil {
		return
	}
	d, ok := ParseDecimal(lit, !quoted)
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
	whole, mantissa, end := numberIn(lit)
	if end == 0 || end < len(lit) || mantissa < end && !exponent {
		return decimal.Decimal{}, false
	}
	exp := 0
	if mantissa < end {
		exp, _ = strconv.Atoi(string(lit[mantissa+1:])) // the largest int if it does not fit
		if exp < -maxExponent || exp > maxExponent {
			return decimal.Decimal{}, false
		}
	}
	scale := max(mantissa-whole-1, 0)
	exp -= scale
	count := whole + scale
	if lit[0] == '-' {
		count--
	}
	// Written out, 12e3 takes three more digits, and 12e-30 takes thirty in all.
	if max(count, count+exp, -exp) > maxDigits {
		return decimal.Decimal{}, false
	}
	var room [1 + maxDigits]byte
	text := append(append(room[:0], lit[:whole]...), lit[mantissa-scale:mantissa]...)
	if small, ok := parseInt(text); ok {
		return decimal.New(small, int32(exp)), true
	}
	large, _ := new(big.Int).SetString(string(text), 10)
	return decimal.NewFromBigInt(large, int32(exp)), true
}

// AppendDecimal writes d with its scale, as 123.450, or as 1e41 where that would have too many
// zeros. It does not use the formatting of package decimal, which package variables can change.
func AppendDecimal(dst []byte, d decimal.Decimal) []byte {
	n, exp := d.Coefficient(), int(d.Exponent())
	digits := new(big.Int).Abs(n).String()
	switch {
	case exp > maxDigits, exp < -max(maxDigits, len(digits)): // -exp overflows 32 bits
		return fmt.Appendf(dst, "%de%d", n, exp)
	case n.Sign() < 0:
		dst = append(dst, '-')
	case n.Sign() == 0:
		exp = min(exp, 0)
	}
	if exp >= 0 {
		return append(append(dst, digits...), strings.Repeat("0", exp)...)
	}
	digits = strings.Repeat("0", max(1-exp-len(digits), 0)) + digits
	point := len(digits) + exp
	return fmt.Appendf(dst, "%s.%s", digits[:point], digits[point:])
}

// Cents writes d with exactly two decimal places. It reports false if d has more
// than two, is not greater than zero, or takes more than 40 digits.
func Cents(d decimal.Decimal) (string, bool) {
	whole, fraction, _ := strings.Cut(string(AppendDecimal(nil, d)), ".")
	fraction = strings.TrimRight(fraction, "0")
	if d.Sign() <= 0 || len(fraction) > 2 || len(whole)+2 > maxDigits || strings.Contains(whole, "e") {
		return "", false
	}
	return whole + "." + (fraction + "00")[:2], true
}
