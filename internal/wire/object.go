// Package wire reads and writes the service's JSON and its request bodies.
//
// A Codec reads one JSON document in memory, strictly, forward only and without
// reflection. It refuses what a lenient parser accepts and a client of a payment
// service must not: duplicate field names, known names in another letter case,
// invalid UTF-8, trailing bytes, deep nesting and numbers that cannot be
// represented exactly. Each type is described once, by a list of [FieldOf]s, which
// serves both reading and writing.
//
// The grammar of JSON, in reader.go, is here because encoding/json of Go 1.26 is not
// strict. When 1.26 is no longer supported, it can give way to encoding/json/jsontext:
// then a Codec has a jsontext.Decoder in place of buf and pos, Kind is PeekKind, open and
// more read the tokens of brackets, readString, number and word read the others, Skip is
// SkipValue and Span ReadValue, and the decoder finds duplicate names, invalid UTF-8 and
// misspelled literals. What would stay: the lists of fields, the values, the path, which omits
// names that are payload, the budget, and the depth, of which jsontext allows 10,000.
package wire

import (
	"bytes"
	"reflect"
)

// FieldOf describes one field of the JSON object of a T. Lists of fields are
// literals, not made by calls, so that the linker drops those that a program does
// not use.
type FieldOf[T any] struct {
	// Name is the field's name.
	Name string
	// Required makes the absence of the field an error. The absence of any other
	// field is drift, and leaves the zero value.
	Required bool
	// In are the variants that have the field; 0: all. In others its absence is not
	// drift, and it is read if it is sent all the same.
	In Variant
	// Value reads or writes the field's value.
	Value func(*Codec, *T)
}

// Variant is a set of the forms in which the service sends one type.
type Variant uint8

// The variants that this package knows. A type that is sent in several forms defines
// its own bits, from 1<<1 on.
const (
	Lenient Variant = 0      // any form: only required fields must be present
	Whole   Variant = 1 << 0 // the only form of a type that has just one
)

// Object reads or writes dst as an object of at most 64 fields, in the form v.
func Object[T any](c *Codec, dst *T, fields []FieldOf[T], v Variant) {
	if c.Writing {
		writeObject(c, dst, fields)
		return
	}
	readObject(c, dst, fields, v)
}

func readObject[T any](c *Codec, dst *T, fields []FieldOf[T], v Variant) {
	if !c.open('{', nowhere, "an object") {
		return
	}
	unknown, next, seen := len(c.names), 0, uint64(0)
	for first := true; c.more('}', first); first = false {
		start := c.pos
		at := next
		if at == len(fields) || !c.take(fields[at].Name) {
			name := c.fieldName()
			if c.err != nil {
				return
			}
			if at = find(fields, next, name); at < 0 {
				c.skipUnknown(name)
				continue
			}
		}
		if seen>>at&1 != 0 {
			c.malformed(duplicateField)
			return
		}
		c.path[len(c.path)-1] = step(start)
		fields[at].Value(c, dst)
		seen, next = seen|1<<at, at+1
	}
	if c.err == nil {
		c.path = c.path[:len(c.path)-1]
		c.forget(unknown)
		reportMissing(c, fields, v, seen)
	}
}

// find returns the index of the field with that name; -1: there is none. It looks from next
// on first: most services keep to the documented order.
func find[T any](fields []FieldOf[T], next int, name []byte) int {
	for i := range fields {
		if at := (next + i) % len(fields); fields[at].Name == string(name) {
			return at
		}
	}
	return -1
}

// skipUnknown checks a field that is not in the list. Its name is payload too, so it is
// not reported.
func (c *Codec) skipUnknown(name []byte) {
	c.remember(name)
	c.path[len(c.path)-1] = anyName
	c.Drift("unknown field")
	c.SkipFree()
}

// SkipFree is Skip for a value whose strings may be free text.
func (c *Codec) SkipFree() {
	c.lax = true
	c.Skip()
	c.lax = false
}

func reportMissing[T any](c *Codec, fields []FieldOf[T], v Variant, seen uint64) {
	for i := range fields {
		m := &fields[i]
		if seen>>i&1 != 0 {
			continue
		}
		if m.Required {
			c.FailAt(m.Name, isMissing)
			return
		}
		if v != Lenient && (m.In == 0 || m.In&v != 0) {
			c.driftAt(m.Name, "missing field")
		}
	}
}

// Rows reads or writes the main list of the payload, whose elements are in the form v, and
// reports whether a list was sent: not null or {}. It makes room for all elements at once.
// Those that cannot be read are set aside, unless no other can: see [Codec.Unreadable].
func Rows[T any](c *Codec, dst *[]T, fields []FieldOf[T], v Variant) (sent bool) {
	return list(c, dst, fields, v, true)
}

// List reads or writes a list within an element.
func List[T any](c *Codec, dst *[]T, fields []FieldOf[T]) { list(c, dst, fields, Whole, false) }

func list[T any](c *Codec, dst *[]T, fields []FieldOf[T], v Variant, main bool) (sent bool) {
	if c.Writing {
		writeList(c, *dst, func(e *T) { writeObject(c, e, fields) })
		return true
	}
	read := []T{}
	size := int(reflect.TypeFor[T]().Size())
	sent = c.Elements(func() {
		if !c.Budget(size) {
			return
		}
		if main && cap(read) == 0 {
			read = make([]T, 0, min(c.upcoming(), 1+c.left()/size))
		}
		start := c.Mark()
		read = append(read, *new(T))
		readObject(c, &read[len(read)-1], fields, v)
		if main && c.err != nil && !c.err.Malformed {
			read = read[:len(read)-1]
			c.setAside(start)
		}
	})
	if len(read) == 0 && len(c.unreadable) > 0 && main && c.err == nil {
		c.err = c.unreadable[0].Err
	}
	*dst = read
	return sent
}

// Unreadable is an element of a list that could not be read.
type Unreadable struct {
	// Index is its place in the list, from 0.
	Index int
	// ID and BIN are the values of its fields id and bin, without quotes; "": there is none, or
	// it is long.
	ID, BIN string
	// Err is why it could not be read.
	Err *Error
}

// Unreadable returns the elements that [Rows] set aside.
func (c *Codec) Unreadable() []Unreadable { return c.unreadable }

// What an element that is set aside takes, and how long its identifiers may be.
const (
	sizeOfUnreadable = 256
	maxUnreadableID  = 64
)

// setAside notes that the element at start cannot be read, and skips it.
func (c *Codec) setAside(start Mark) {
	e := Unreadable{Index: int(element - start.step), Err: c.err}
	c.Rewind(start)
	if c.peek() == '{' {
		c.Map(func(name []byte) {
			field, from := string(name), c.pos
			c.SkipFree()
			switch value := bytes.Trim(c.buf[from:c.pos], " \t\r\n\""); {
			case len(value) > maxUnreadableID:
			case field == "id":
				e.ID = string(value)
			case field == "bin":
				e.BIN = string(value)
			}
		})
	} else {
		c.SkipFree()
	}
	if c.Budget(sizeOfUnreadable) {
		c.unreadable = append(c.unreadable, e)
	}
}

// Elements reads a list, and calls one for every element; one must read it. In place of an
// array, null and {} are an empty list, and an object whose names are integers is its values:
// all of that is drift. It reports whether a list was sent: not null or {}.
func (c *Codec) Elements(one func()) (sent bool) {
	switch c.peek() {
	case 'n':
		c.Drift("null for array")
		c.word("null")
		return false
	case '{':
	default:
		c.Each(one)
		return true
	}
	top, next := len(c.path), element
	c.Map(func(name []byte) {
		if whole, _, _ := numberIn(name); whole == 0 || whole < len(name) {
			c.path = c.path[:top]
			c.Fail("an array")
			return
		}
		c.path[top] = next
		next--
		one()
	})
	c.Drift("object for array")
	return next < element
}

// upcoming estimates how many elements of a list follow: it counts what the next element begins
// with, up to its first name in quotes. A string cannot contain that, since its quotes are
// escaped.
func (c *Codec) upcoming() int {
	rest := c.buf[c.pos:]
	before, name, _ := bytes.Cut(rest, []byte{'"'})
	name, _, _ = bytes.Cut(name, []byte{'"'})
	beginning := rest[:min(len(before)+len(name)+2, len(rest))]
	return max(bytes.Count(rest, beginning), 1)
}

// Map reads an object whose names are data, as in a table of amount ranges. It calls
// each for every field; each must read the value. A name that comes twice is refused at
// the end.
func (c *Codec) Map(each func(name []byte)) {
	if !c.open('{', anyName, "an object") {
		return
	}
	base := len(c.names)
	for first := true; c.more('}', first); first = false {
		name := c.fieldName()
		if c.remember(name); c.err != nil {
			return
		}
		each(name)
	}
	if c.err == nil {
		c.path = c.path[:len(c.path)-1]
		c.forget(base)
	}
}

// Each reads an array of anything. It calls one for every element; one must read it.
func (c *Codec) Each(one func()) {
	if !c.open('[', element, "an array") {
		return
	}
	top := len(c.path) - 1
	for first := true; c.more(']', first); first = false {
		one()
		c.path[top]--
	}
	if c.err == nil {
		c.path = c.path[:top]
	}
}
