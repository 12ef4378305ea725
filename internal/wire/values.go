package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Tolerance says which values are read beside the documented string or number: a set of flags.
type Tolerance uint8

// The flags. A value that one of them allows is drift, except for nullToo's. notBlank allows
// nothing more, but refuses a blank string.
const (
	nullToo   Tolerance = 1 << iota // null, which is documented
	nullDrift                       // null
	typeDrift                       // an integer for a string, or a string for a number
	notBlank                        // not a blank string
	anyNumber                       // with typeDrift: any number for a string
	falseToo                        // false for an empty string
	replaced                        // characters that are replaced because they are none
)

// The tolerances of strings and numbers. Null reads as "" or 0.
const (
	Exact    Tolerance = 0                     // Exact is the documented value, and nothing else.
	Text               = nullDrift             // Text is a string.
	Message            = Text | replaced       // Message is what an envelope says.
	Code               = nullDrift | typeDrift // Code is an identifier, a code or a number.
	Required           = typeDrift             // Required is a Code that must not be null.
	ID                 = typeDrift | notBlank  // ID is an identifier that must be neither null nor blank.
	Time               = Code | anyNumber      // Time is a date or a time.

	// Free is free text, which no program compares: a number is its digits, and false is "".
	// FreeNull may be null, and FreeRequired must not.
	Free         = FreeRequired | nullDrift
	FreeNull     = FreeRequired | nullToo
	FreeRequired = typeDrift | anyNumber | falseToo | replaced
)

// String reads or writes a [Text].
func (c *Codec) String(dst *string) { c.Text(dst, Text) }

// Text reads or writes a string with that tolerance.
func (c *Codec) Text(dst *string, allowed Tolerance) {
	if c.Writing {
		c.AppendString(*dst)
		return
	}
	if b := c.Bytes(allowed); c.err == nil {
		*dst = c.keep(b)
	}
}

// CleanedID is an [ID] of which only the part that clean returns is kept; if that is less
// than all of it, it is drift.
func (c *Codec) CleanedID(dst *string, clean func(id []byte) []byte) {
	if c.Writing {
		c.AppendString(*dst)
		return
	}
	given := c.Bytes(ID)
	b := clean(given)
	if len(b) < len(given) {
		c.Drift("identifier with invisible characters")
	}
	if len(b) == 0 {
		c.Fail("an identifier")
	}
	if c.err == nil {
		*dst = c.keep(b)
	}
}

// Bytes reads a string with that tolerance. Null reads as nil.
func (c *Codec) Bytes(allowed Tolerance) (text []byte) {
	switch b := c.peek(); {
	case b == '"':
		text = c.readString(allowed&replaced != 0)
	case b == 'n' && allowed&(nullToo|nullDrift) != 0:
		if allowed&nullDrift != 0 {
			c.Drift("null for string")
		}
		c.word("null")
	case allowed&typeDrift != 0 && isNumeric(b):
		lit, integer := c.number()
		if text = lit; !integer && allowed&anyNumber == 0 {
			c.Fail("a string")
		}
		c.Drift("number for string")
	case b == 'f' && allowed&falseToo != 0:
		c.Drift("false for string")
		c.word("false")
	default:
		c.wrong(b, "a string")
	}
	if allowed&notBlank != 0 && len(bytes.TrimSpace(text)) == 0 {
		c.Fail("an identifier")
	}
	return text
}

// isNumeric reports whether a value that begins with b is a number.
func isNumeric(b byte) bool { return b == '-' || b >= '0' && b <= '9' }

// Int reads or writes an integer with the tolerance [Code].
func Int[T ~int | ~int64](c *Codec, dst *T) { IntOf(c, dst, Code) }

// IntOf reads or writes an integer with that tolerance. One with a fraction of zeros or with an
// exponent is drift.
func IntOf[T ~int | ~int64](c *Codec, dst *T, allowed Tolerance) {
	if c.Writing {
		c.out = strconv.AppendInt(c.out, int64(*dst), 10)
		return
	}
	n := c.integer(allowed)
	if *dst = T(n); int64(*dst) != n { // int has 32 bits on some systems
		c.Fail(fittingInteger)
	}
}

// Count reads or writes a [Required] number that must not be negative.
func (c *Codec) Count(dst *int) {
	if IntOf(c, dst, Required); *dst < 0 && !c.Writing {
		c.Fail("a count")
	}
}

const fittingInteger = "an integer that fits"

func (c *Codec) integer(allowed Tolerance) int64 {
	switch b := c.peek(); {
	case isNumeric(b):
		lit, plain := c.number()
		if plain {
			return c.integerIn(lit, true)
		}
		if d, ok := ParseDecimal(lit, true); ok && d.IsInteger() && d.BigInt().IsInt64() {
			c.Drift("decimal for integer")
			return d.BigInt().Int64()
		}
		c.Fail(fittingInteger)
	case b == '"' && allowed&typeDrift != 0:
		n := c.quotedInteger()
		c.Drift("string for number")
		return n
	case b == 'n' && allowed&nullDrift != 0:
		c.Drift("null for number")
		c.word("null")
	default:
		c.wrong(b, "an integer")
	}
	return 0
}

func (c *Codec) quotedInteger() int64 {
	lit := c.readString(false)
	whole, _, end := numberIn(lit)
	return c.integerIn(lit, whole == len(lit) && end > 0)
}

func (c *Codec) integerIn(lit []byte, integer bool) int64 {
	if integer {
		if n, ok := parseInt(lit); ok {
			return n
		}
	}
	c.Fail(fittingInteger)
	return 0
}

// EnvelopeCode reads the code of an envelope, and reports whether it is an integer, as
// documented. A string of digits and a fraction of zeros are drift.
func (c *Codec) EnvelopeCode(dst *int) (documented bool) {
	raw := c.Span()
	lit := bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte(`"`)), []byte(`"`))
	whole, mantissa, end := numberIn(lit)
	n, fits := int64(0), false
	if end > 0 {
		n, fits = parseInt(lit[:whole])
	}
	quoted := len(lit) < len(raw)
	switch {
	case !fits, mantissa < len(lit), len(lit) > maxDigits, quoted && (whole < len(lit) || lit[0] == '-'),
		len(bytes.Trim(lit[whole:], ".0")) > 0, n != int64(int32(n)): // what is longer may be a card number
		c.Fail("a code")
	case quoted:
		c.Drift("string for number")
	case whole < len(lit):
		c.Drift("decimal for integer")
	default:
		documented = true
	}
	*dst = int(n)
	return documented
}

// parseInt reads digits, which may follow a minus sign. It reports whether they fit.
func parseInt(lit []byte) (n int64, ok bool) {
	switch {
	case len(lit) > len("-9223372036854775808"):
		return 0, false
	case len(lit) > 18:
		n, err := strconv.ParseInt(string(lit), 10, 64)
		return n, err == nil
	}
	for _, b := range lit {
		if b != '-' {
			n = n*10 + int64(b-'0')
		}
	}
	if lit[0] == '-' {
		n = -n
	}
	return n, true
}

// Flag reads or writes 0 or 1. Any other number is true and drift; a string, a
// boolean and null are drift too.
func (c *Codec) Flag(dst *bool) {
	if c.Writing {
		bit := byte('0')
		if *dst {
			bit = '1'
		}
		c.out = append(c.out, bit)
		return
	}
	switch b := c.peek(); b {
	case 't', 'f':
		*dst = c.boolean(b)
		c.Drift("boolean for number")
	case '"':
		n := c.quotedInteger()
		if n != 0 && n != 1 {
			c.Fail("0 or 1")
		}
		c.Drift("string for number")
		*dst = n != 0
	default:
		n := c.integer(Code)
		if n != 0 && n != 1 {
			c.Drift("flag other than 0 and 1")
		}
		*dst = n != 0
	}
}

// Bool reads or writes a boolean. 0 and 1, as numbers or strings, are drift, and so
// is null, which reads as false.
func (c *Codec) Bool(dst *bool) {
	if c.Writing {
		c.out = strconv.AppendBool(c.out, *dst)
		return
	}
	switch b := c.peek(); {
	case b == 't' || b == 'f':
		*dst = c.boolean(b)
	case b == 'n':
		c.Drift("null for boolean")
		c.word("null")
		*dst = false
	case b == '"':
		*dst = c.bit(c.readString(false))
		c.Drift("string for boolean")
	case isNumeric(b):
		lit, _ := c.number()
		*dst = c.bit(lit)
		c.Drift("number for boolean")
	default:
		c.wrong(b, "a boolean")
	}
}

func (c *Codec) boolean(b byte) bool {
	if b == 't' {
		return c.word("true")
	}
	c.word("false")
	return false
}

func (c *Codec) bit(lit []byte) bool {
	if s := string(lit); s != "0" && s != "1" {
		c.Fail("a boolean")
	}
	return string(lit) == "1"
}

// What an element of a list takes in addition to its bytes.
const (
	sizeOfString = 32
	sizeOfRaw    = 48
)

// Strings reads or writes a list of strings.
func (c *Codec) Strings(dst *[]string) {
	if c.Writing {
		writeList(c, *dst, func(s *string) { c.AppendString(*s) })
		return
	}
	c.strings(dst, Exact)
}

// Codes reads a list of digits. Numbers are drift.
func (c *Codec) Codes(dst *[]string) { c.strings(dst, Required) }

func (c *Codec) strings(dst *[]string, allowed Tolerance) {
	*dst = []string{}
	c.Elements(func() {
		if c.Budget(sizeOfString) {
			*dst = append(*dst, c.keep(c.Bytes(allowed)))
		}
	})
}

// RawObject reads or writes null, or an object with undocumented fields.
func (c *Codec) RawObject(dst *json.RawMessage) {
	if c.Writing {
		c.appendRaw(*dst)
		return
	}
	*dst = nil
	switch c.Kind() {
	case '{':
		*dst = bytes.Clone(c.Span())
	case '[':
		c.Drift("empty array for object")
		c.EmptyArray("null or an object")
	default:
		if !c.Null() {
			c.Fail("null or an object")
		}
	}
}

// RawList reads or writes a list of values of undocumented form.
func (c *Codec) RawList(dst *[]json.RawMessage) {
	if c.Writing {
		writeList(c, *dst, func(raw *json.RawMessage) { c.appendRaw(*raw) })
		return
	}
	*dst = []json.RawMessage{}
	c.Elements(func() {
		if c.Budget(sizeOfRaw) {
			*dst = append(*dst, bytes.Clone(c.Span()))
		}
	})
}

func (c *Codec) appendRaw(raw json.RawMessage) {
	if raw == nil {
		raw = json.RawMessage("null")
	}
	c.Append(raw...)
}

// Null consumes a null if that is next, and reports whether it was.
func (c *Codec) Null() bool { return c.peek() == 'n' && c.word("null") }

// EmptyObject consumes an empty object if that is next, and reports whether it was.
func (c *Codec) EmptyObject() bool {
	if c.peek() != '{' {
		return false
	}
	before := c.pos
	c.pos++
	if c.peek() != '}' {
		c.pos = before
		return false
	}
	c.pos++
	return true
}

// EmptyArray consumes an array that must be empty.
func (c *Codec) EmptyArray(want string) {
	c.Each(func() { c.Fail(want) })
}
