package wire

import (
	"bytes"
	"math"
	"slices"
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
	if c.writing {
		c.out = AppendString(c.out, *dst)
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
		c.keep(dst, b)
	}
}

type nullRule uint8

const (
	nullIsFine nullRule = iota
	nullIsDrift
	nullFails
)

func (c *Codec) stringValue(dst *string, null nullRule, numberToo bool) {
	if c.writing {
		c.out = AppendString(c.out, *dst)
		return
	}
	if b := c.stringBytes(null, numberToo); c.err == nil {
		c.keep(dst, b)
	}
}

// Bytes reads a string, valid until the next one is read. Null is drift and reads as
// nil.
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
	case numberToo && (b == '-' || b >= '0' && b <= '9'):
		if lit := c.number(); integer(lit) {
			c.Drift("number for string")
			return lit
		}
		c.Fail("a string")
	default:
		c.wrong(b, "a string")
	}
	return nil
}

// Int reads or writes an integer. A string is drift, and so is null, which reads as 0.
func (c *Codec) Int(dst *int) {
	if c.writing {
		c.out = appendInt(c.out, int64(*dst))
		return
	}
	*dst = c.narrow(c.integer(nullIsDrift))
}

// Int64 is [Codec.Int] for an int64.
func (c *Codec) Int64(dst *int64) {
	if c.writing {
		c.out = appendInt(c.out, *dst)
		return
	}
	*dst = c.integer(nullIsDrift)
}

// Count is [Codec.Int] for a number that must be neither null nor negative.
func (c *Codec) Count(dst *int) {
	if c.writing {
		c.out = appendInt(c.out, int64(*dst))
		return
	}
	if *dst = c.narrow(c.integer(nullFails)); *dst < 0 {
		c.Fail("a count")
	}
}

// RequiredInt64 is [Codec.Int64] for a number that must not be null.
func (c *Codec) RequiredInt64(dst *int64) {
	if c.writing {
		c.out = appendInt(c.out, *dst)
		return
	}
	*dst = c.integer(nullFails)
}

// ExactInt reads an integer and nothing else: no string, fraction, exponent or null.
func (c *Codec) ExactInt(dst *int) {
	if b := c.peek(); b != '-' && (b < '0' || b > '9') {
		c.wrong(b, "an integer")
		return
	}
	*dst = c.narrow(c.parseInteger(c.number()))
}

func (c *Codec) integer(null nullRule) int64 {
	switch b := c.peek(); {
	case b == '-' || b >= '0' && b <= '9':
		return c.parseInteger(c.number())
	case b == '"':
		n := c.parseInteger(c.readString())
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

func (c *Codec) narrow(n int64) int {
	if n > math.MaxInt || n < math.MinInt {
		c.Fail("an integer that fits")
		return 0
	}
	return int(n)
}

func (c *Codec) parseInteger(lit []byte) int64 {
	if c.err != nil {
		return 0
	}
	n, ok := parseInt(lit)
	if !ok {
		c.Fail("an integer that fits")
	}
	return n
}

// integer reports whether lit is an integer without leading zeros.
func integer(lit []byte) bool {
	if len(lit) > 0 && lit[0] == '-' {
		lit = lit[1:]
	}
	return len(lit) > 0 && digits(lit, 0) == len(lit) && (lit[0] != '0' || len(lit) == 1)
}

func parseInt(lit []byte) (int64, bool) {
	if !integer(lit) {
		return 0, false
	}
	negative := lit[0] == '-'
	if negative {
		lit = lit[1:]
	}
	// Counted down, since the negative range is larger by one.
	var n int64
	for _, b := range lit {
		d := int64(b - '0')
		if n < (math.MinInt64+d)/10 {
			return 0, false
		}
		n = n*10 - d
	}
	if negative {
		return n, true
	}
	return -n, n != math.MinInt64
}

// Flag reads or writes 0 or 1. Any other number is true and drift; a string, a
// boolean and null are drift too.
func (c *Codec) Flag(dst *bool) {
	if c.writing {
		c.out = append(c.out, "01"[b2i(*dst)])
		return
	}
	switch b := c.peek(); b {
	case 't', 'f':
		*dst = c.boolean(b)
		c.Drift("boolean for number")
	case '"':
		n := c.parseInteger(c.readString())
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
	if c.writing {
		c.out = append(c.out, [2]string{"false", "true"}[b2i(*dst)]...)
		return
	}
	switch b := c.peek(); b {
	case 't', 'f':
		*dst = c.boolean(b)
	case 'n':
		c.Drift("null for boolean")
		c.word("null")
		*dst = false
	case '"':
		*dst = c.bit(c.readString())
		c.Drift("string for boolean")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		*dst = c.bit(c.number())
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

// Strings reads or writes a list of strings. Null is drift and reads as nil.
func (c *Codec) Strings(dst *[]string) {
	if c.writing {
		writeList(c, *dst, func(s *string) { c.out = AppendString(c.out, *s) })
		return
	}
	if c.nullArray() {
		*dst = nil
		return
	}
	*dst = []string{}
	c.Each(func() {
		if !c.Budget(sizeOfString) {
			return
		}
		if b := c.peek(); b != '"' {
			c.wrong(b, "a string")
			return
		}
		list := *dst
		if len(list) == cap(list) {
			c.Flush() // into the strings as long as they are there
			list = slices.Grow(list, max(len(list), few))
		}
		*dst = list[:len(list)+1]
		c.keep(&(*dst)[len(list)], c.readString())
	})
}

// sizeOfString is what a string in a list takes in addition to its bytes.
const sizeOfString = 32

// Codes is [Codec.Strings] for digits. Numbers are drift; null is an error.
func (c *Codec) Codes(dst *[]string) {
	*dst = []string{}
	c.Each(func() {
		if c.Budget(sizeOfString) {
			*dst = append(*dst, string(c.stringBytes(nullFails, true)))
		}
	})
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

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
