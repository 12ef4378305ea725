// Package wire reads and writes the service's JSON and its request bodies.
//
// A Codec reads one JSON document in memory, strictly, forward only and without
// reflection. It refuses what a lenient parser accepts and a client of a payment
// service must not: duplicate field names, known names in another letter case,
// invalid UTF-8, trailing bytes, deep nesting and numbers that cannot be
// represented exactly. Each type is described once, by a list of [FieldOf]s, which
// serves both reading and writing.
package wire

import (
	"bytes"
	"math/bits"
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

// Object reads or writes dst as an object of at most 63 fields, in the form v.
func Object[T any](c *Codec, dst *T, fields []FieldOf[T], v Variant) {
	if c.writing {
		writeObject(c, dst, fields)
		return
	}
	readObject(c, dst, fields, v, nil)
}

// readObject guesses the next field from the order of the previous object, if known
// is not nil.
func readObject[T any](c *Codec, dst *T, fields []FieldOf[T], v Variant, known *order) {
	if !c.open('{', "an object") {
		return
	}
	var seen uint64
	unknown := nameSet{base: len(c.names)}
	last, next := -1, known.after(-1)
	for first := true; c.more('}', first); first = false {
		i, name := next, c.pos
		if i == len(fields) || !c.take(fields[i].Name) {
			found := c.fieldName()
			if c.err != nil {
				return
			}
			if i = find(fields, found, next); i < 0 {
				c.skipUnknown(&unknown, found)
				continue
			}
			known.learn(last, i)
		}
		if seen&(1<<i) != 0 {
			c.malformed(duplicateField)
			return
		}
		seen |= 1 << i
		last, next = i, known.after(i)
		c.path[len(c.path)-1] = step(name)
		fields[i].Value(c, dst)
	}
	if c.err == nil {
		c.close()
		reportMissing(c, fields, seen, v)
		c.names = c.names[:unknown.base]
	}
}

// order is the order of fields in the elements of a list: a service keeps to one,
// which need not be the documented one. Place 0 is the first field, and place i+1 is
// the field after field i, both counted from 1; 0: not learned.
type order [64]uint8

// after returns the likely successor of field i; -1 asks for the first field.
func (o *order) after(i int) int {
	if o == nil || o[i+1] == 0 {
		return i + 1
	}
	return int(o[i+1]) - 1
}

func (o *order) learn(before, i int) {
	if o != nil {
		o[before+1] = uint8(i + 1)
	}
}

// find searches from the expected place on: fields that are left out or added shift
// the others only a little.
func find[T any](fields []FieldOf[T], name []byte, from int) int {
	for i := from; i < len(fields); i++ {
		if string(name) == fields[i].Name {
			return i
		}
	}
	for i := range min(from, len(fields)) {
		if string(name) == fields[i].Name {
			return i
		}
	}
	return -1
}

func reportMissing[T any](c *Codec, fields []FieldOf[T], seen uint64, v Variant) {
	for missing := ^seen & (1<<len(fields) - 1); missing != 0; missing &= missing - 1 {
		m := &fields[bits.TrailingZeros64(missing)]
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
// v. It estimates how many there are.
func Rows[T any](c *Codec, dst *[]T, fields []FieldOf[T], v Variant) {
	if c.writing {
		writeList(c, *dst, func(e *T) { writeObject(c, e, fields) })
		return
	}
	*dst = readList(c, fields, v, true)
}

// List reads or writes a list within an element. Null is drift and reads as nil.
func List[T any](c *Codec, dst *[]T, fields []FieldOf[T]) {
	if c.writing {
		writeList(c, *dst, func(e *T) { writeObject(c, e, fields) })
		return
	}
	if c.nullArray() {
		*dst = nil
		return
	}
	*dst = readList(c, fields, Whole, false)
}

func readList[T any](c *Codec, fields []FieldOf[T], v Variant, guess bool) []T {
	if !c.open('[', "an array") {
		return nil
	}
	out := []T{}
	var learned order
	size := int(reflect.TypeFor[T]().Size())
	start := c.pos
	for first := true; c.more(']', first); first = false {
		if !c.Budget(size) {
			return nil
		}
		if n := len(out); n == cap(out) {
			room := max(n, few)
			if guess {
				room = min(c.upcoming(n, c.pos-start), 1+c.left()/size)
			}
			c.Flush() // into the elements as long as they are there
			out = append(make([]T, 0, n+room), out...)
		}
		// append would copy the element, and a card is half a kilobyte.
		out = out[:len(out)+1]
		readObject(c, &out[len(out)-1], fields, v, &learned)
		if c.err != nil {
			return nil
		}
		if guess {
			c.Flush()
		}
	}
	if c.err != nil {
		return nil
	}
	c.close()
	return out
}

// few is how many elements of a list within an element get room at first.
const few = 4

// upcoming estimates how many elements of a list follow, n of which took so many bytes.
// At first it counts what begins with the name that the next element begins with: a
// string cannot contain that, since its quotes are escaped. If that was too few, the
// average of those that were read tells how many more the body has room for.
func (c *Codec) upcoming(n, read int) int {
	rest := c.buf[c.pos:]
	if n > 0 {
		return len(rest)/max(read/n, 1) + n/8 + 1
	}
	before, name, _ := bytes.Cut(rest, []byte{'"'})
	name, _, _ = bytes.Cut(name, []byte{'"'})
	beginning := rest[:min(len(before)+len(name)+2, len(rest))]
	return max(bytes.Count(rest, beginning), 1)
}

// Map reads an object whose names are data, as in a table of amount ranges. It calls
// each for every field; each must read the value. The name is valid until the next
// string is read.
func (c *Codec) Map(each func(name []byte)) {
	if !c.open('{', "an object") {
		return
	}
	set := nameSet{base: len(c.names)}
	for first := true; c.more('}', first); first = false {
		name := c.fieldName()
		if c.err != nil || !c.unique(&set, name) {
			return
		}
		c.path[len(c.path)-1] = anyName
		each(name)
	}
	if c.err == nil {
		c.close()
		c.names = c.names[:set.base]
	}
}

// Each reads an array of anything. It calls one for every element; one must read it.
func (c *Codec) Each(one func()) {
	if !c.open('[', "an array") {
		return
	}
	for first := true; c.more(']', first); first = false {
		one()
	}
	if c.err == nil {
		c.close()
	}
}

func (c *Codec) skipUnknown(set *nameSet, name []byte) {
	if !c.unique(set, name) {
		return
	}
	// The name itself is payload too, so it is not reported.
	c.path[len(c.path)-1] = anyName
	c.Drift("unknown field")
	c.Skip()
}
