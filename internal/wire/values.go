package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// nullRule is what null is in place of a value.
type nullRule uint8

const (
	nullIsFine nullRule = iota
	nullIsDrift
	nullFails
)

// String reads or writes a string. Null is drift and reads as "".
func (c *Codec) String(dst *string) { c.stringValue(dst, nullIsDrift, false) }

// NullString reads or writes a string that may be null, which reads as "".
func (c *Codec) NullString(dst *string) { c.stringValue(dst, nullIsFine, false) }

// Code reads or writes an identifier or a code. A number is drift.
func (c *Codec) Code(dst *string) { c.stringValue(dst, nullIsDrift, true) }

// RequiredCode reads or writes a code that must not be null.
func (c *Codec) RequiredCode(dst *string) { c.stringValue(dst, nullFails, true) }

// ID reads or writes an identifier that must be neither null nor blank.
func (c *Codec) ID(dst *string) {
	c.CleanedID(dst, func(id []byte) []byte { return id })
}

// CleanedID is [Codec.ID] for an identifier of which only the part that clean returns
// is kept; if that is less than all of it, it is drift.
func (c *Codec) CleanedID(dst *string, clean func(id []byte) []byte) {
	if c.Writing {
		c.AppendString(*dst)
		return
	}
	given := c.stringBytes(nullFails, true)
	b := clean(given)
	if len(b) < len(given) {
		c.Drift("identifier with invisible characters")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		c.Fail("an identifier")
	}
	if c.err == nil {
		*dst = c.keep(b)
	}
}

func (c *Codec) stringValue(dst *string, null nullRule, numberToo bool) {
	if c.Writing {
		c.AppendString(*dst)
		return
	}
	if b := c.stringBytes(null, numberToo); c.err == nil {
		*dst = c.keep(b)
	}
}

// Bytes reads a string. Null is drift and reads as nil.
func (c *Codec) Bytes() []byte { return c.stringBytes(nullIsDrift, false) }

// CodeBytes is [Codec.Bytes] for an identifier or a code. A number is drift.
func (c *Codec) CodeBytes() []byte { return c.stringBytes(nullIsDrift, true) }

func (c *Codec) stringBytes(null nullRule, numberToo bool) []byte {
	switch b := c.peek(); {
	case b == '"':
		return c.readString()
	case b == 'n' && null != nullFails:
		if null == nullIsDrift {
			c.Drift("null for string")
		}
		c.word("null")
	case numberToo && isNumeric(b):
		if lit, integer := c.number(); integer {
			c.Drift("number for string")
			return lit
		}
		c.Fail("a string")
	default:
		c.wrong(b, "a string")
	}
	return nil
}

// isNumeric reports whether a value that begins with b is a number.
func isNumeric(b byte) bool { return b == '-' || b >= '0' && b <= '9' }

// Int reads or writes an integer. A string is drift, and so is null, which reads as 0.
func (c *Codec) Int(dst *int) { integerValue(c, dst, nullIsDrift) }

// Int64 is [Codec.Int] for an int64.
func (c *Codec) Int64(dst *int64) { integerValue(c, dst, nullIsDrift) }

// RequiredInt64 is [Codec.Int64] for a number that must not be null.
func (c *Codec) RequiredInt64(dst *int64) { integerValue(c, dst, nullFails) }

// RequiredInt is [Codec.Int] for a number whose zero is not what null would mean.
func (c *Codec) RequiredInt(dst *int) { integerValue(c, dst, nullFails) }

// Count is [Codec.Int] for a number that must be neither null nor negative.
func (c *Codec) Count(dst *int) {
	if integerValue(c, dst, nullFails); *dst < 0 && !c.Writing {
		c.Fail("a count")
	}
}

// ExactInt reads an integer and nothing else: no string, fraction, exponent or null.
func (c *Codec) ExactInt(dst *int) {
	if b := c.peek(); !isNumeric(b) {
		c.wrong(b, "an integer")
		return
	}
	integerValue(c, dst, nullFails)
}

func integerValue[T int | int64](c *Codec, dst *T, null nullRule) {
	if c.Writing {
		c.out = strconv.AppendInt(c.out, int64(*dst), 10)
		return
	}
	n := c.integer(null)
	if *dst = T(n); int64(*dst) != n { // int has 32 bits on some systems
		c.Fail(fittingInteger)
	}
}

const fittingInteger = "an integer that fits"

func (c *Codec) integer(null nullRule) int64 {
	switch b := c.peek(); {
	case isNumeric(b):
		return c.integerIn(c.number())
	case b == '"':
		n := c.quotedInteger()
		c.Drift("string for number")
		return n
	case b == 'n' && null != nullFails:
		c.Drift("null for number")
		c.word("null")
	default:
		c.wrong(b, "an integer")
	}
	return 0
}

func (c *Codec) quotedInteger() int64 {
	lit := c.readString()
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
		n := c.integer(nullIsDrift)
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
		*dst = c.bit(c.readString())
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

// Strings reads or writes a list of strings. Null is drift and reads as nil.
func (c *Codec) Strings(dst *[]string) {
	if c.Writing {
		writeList(c, *dst, func(s *string) { c.AppendString(*s) })
		return
	}
	if *dst = nil; !c.nullArray() {
		c.strings(dst, false)
	}
}

// Codes reads a list of digits. Numbers are drift; null is an error.
func (c *Codec) Codes(dst *[]string) { c.strings(dst, true) }

func (c *Codec) strings(dst *[]string, numberToo bool) {
	*dst = []string{}
	c.Each(func() {
		if c.Budget(sizeOfString) {
			*dst = append(*dst, c.keep(c.stringBytes(nullFails, numberToo)))
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

// RawList reads or writes an array of values of undocumented form. Null is drift and
// reads as nil.
func (c *Codec) RawList(dst *[]json.RawMessage) {
	if c.Writing {
		writeList(c, *dst, func(raw *json.RawMessage) { c.appendRaw(*raw) })
		return
	}
	if *dst = nil; c.nullArray() {
		return
	}
	*dst = []json.RawMessage{}
	c.Each(func() {
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

func (c *Codec) nullArray() bool {
	if c.peek() != 'n' {
		return false
	}
	c.Drift("null for array")
	return c.word("null")
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
