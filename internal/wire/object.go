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
	c.Skip()
}

func reportMissing[T any](c *Codec, fields []FieldOf[T], v Variant, seen uint64) {
	for i := range fields {
		m := &fields[i]
		if seen>>i&1 != 0 {
			continue
		}
		if m.Required {
			c.failAt(m.Name, isMissing)
			return
		}
		if v != Lenient && (m.In == 0 || m.In&v != 0) {
			c.driftAt(m.Name, "missing field")
		}
	}
}

// Rows reads or writes the main list of the payload, whose elements are in the form
// v. It makes room for all of them at once.
func Rows[T any](c *Codec, dst *[]T, fields []FieldOf[T], v Variant) {
	list(c, dst, fields, v, true)
}

// List reads or writes a list within an element. Null is drift and reads as nil.
func List[T any](c *Codec, dst *[]T, fields []FieldOf[T]) {
	if !c.Writing && c.nullArray() {
		*dst = nil
		return
	}
	list(c, dst, fields, Whole, false)
}

func list[T any](c *Codec, dst *[]T, fields []FieldOf[T], v Variant, main bool) {
	if c.Writing {
		writeList(c, *dst, func(e *T) { writeObject(c, e, fields) })
		return
	}
	read := []T{}
	size := int(reflect.TypeFor[T]().Size())
	c.Each(func() {
		if !c.Budget(size) {
			return
		}
		if main && len(read) == 0 {
			read = make([]T, 0, min(c.upcoming(), 1+c.left()/size))
		}
		read = append(read, *new(T))
		readObject(c, &read[len(read)-1], fields, v)
	})
	*dst = read
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
	for first := true; c.more(']', first); first = false {
		one()
	}
	if c.err == nil {
		c.path = c.path[:len(c.path)-1]
	}
}
