// Package wire reads and writes the service's JSON and its request bodies.
//
// A Codec reads strictly: one JSON text held in memory, forward only, without
// reflection. It refuses what a lenient parser lets through and a client of a
// payment service must not: repeated member names, names in another letter
// case taken for known ones, invalid UTF-8, trailing bytes, deep nesting and
// numbers that cannot be held exactly. Each type is described once, by a list
// of [Member]s, and the same list serves both directions.
package wire

import (
	"math/bits"
	"reflect"
)

// Member is one named member of the JSON object that a T stands for. Lists of
// members are literals, not made by calls: what a program does not use of them
// is then not part of it.
type Member[T any] struct {
	// Name is the member's name.
	Name string
	// Required says that the object is unreadable without the member. The absence
	// of another one is drift, and leaves the zero value.
	Required bool
	// In are the variants that the member is part of; 0: all. In others its
	// absence is no drift; where it is sent all the same, it is read.
	In Variant
	// Value reads or writes the member's value.
	Value func(*Codec, *T)
}

// Variant is a set of the forms in which the service sends one type.
type Variant uint8

// The variants that this package knows. A type that is sent in several forms
// gives its own bits, from 1<<1 on.
const (
	Lenient Variant = 0      // no form: no member is missed but the required
	Whole   Variant = 1 << 0 // the one form of a type that has just one
)

// Object reads or writes dst as an object of at most 63 members, which is in
// the form v.
func Object[T any](c *Codec, dst *T, members []Member[T], v Variant) {
	if c.writing {
		writeObject(c, dst, members)
		return
	}
	readObject(c, dst, members, v, nil)
}

// readObject takes its guess of what comes next from the object before, if known
// is not nil.
func readObject[T any](c *Codec, dst *T, members []Member[T], v Variant, known *order) {
	if !c.open('{', "object") {
		return
	}
	var seen uint64
	unknown := nameSet{base: len(c.names)}
	last, next := -1, known.after(-1)
	for first := true; c.more('}', first); first = false {
		i, name := next, c.pos
		if i == len(members) || !c.take(members[i].Name) {
			text := c.memberName()
			if c.err != nil {
				return
			}
			if i = find(members, text, next); i < 0 {
				c.skipUnknown(&unknown, text)
				continue
			}
			known.learn(last, i)
		}
		if seen&(1<<i) != 0 {
			c.malformed("a member name is repeated")
			return
		}
		seen |= 1 << i
		last, next = i, known.after(i)
		c.path[len(c.path)-1] = step(name)
		members[i].Value(c, dst)
	}
	if c.err == nil {
		c.close()
		reportMissing(c, members, seen, v)
		c.names = c.names[:unknown.base]
	}
}

// order says of the elements of a list which member follows which: a service keeps
// to one order, and that need not be the interface's. Place 0 is for what comes
// first, and place i+1 for what follows member i, counted from 1; 0: not learnt.
type order [64]uint8

// after returns what is likely to follow member i; -1 asks for the first.
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

// find looks from the expected place on: members that are left out or added
// shift the others by little.
func find[T any](members []Member[T], name []byte, from int) int {
	for i := from; i < len(members); i++ {
		if string(name) == members[i].Name {
			return i
		}
	}
	for i := range min(from, len(members)) {
		if string(name) == members[i].Name {
			return i
		}
	}
	return -1
}

func reportMissing[T any](c *Codec, members []Member[T], seen uint64, v Variant) {
	for missing := ^seen & (1<<len(members) - 1); missing != 0; missing &= missing - 1 {
		m := &members[bits.TrailingZeros64(missing)]
		if m.Required {
			c.failAt(m.Name, "it to be there")
			return
		}
		if v != Lenient && (m.In == 0 || m.In&v != 0) {
			c.driftAt(m.Name, "missing member")
		}
	}
}

// Rows reads or writes the payload's own list, whose elements are in the form
// v. Its capacity is guessed from the first element.
func Rows[T any](c *Codec, dst *[]T, members []Member[T], v Variant) {
	if c.writing {
		writeList(c, *dst, func(e *T) { writeObject(c, e, members) })
		return
	}
	*dst = readList(c, members, v, true)
}

// List reads or writes a list within an element. Null is drift and reads as nil.
func List[T any](c *Codec, dst *[]T, members []Member[T]) {
	if c.writing {
		writeList(c, *dst, func(e *T) { writeObject(c, e, members) })
		return
	}
	if c.nullArray() {
		*dst = nil
		return
	}
	*dst = readList(c, members, Whole, false)
}

// maxGuess bounds the capacity reserved on the word of the first element, so
// that a short first element cannot reserve more memory than the reply is worth.
const maxGuess = 1024

func readList[T any](c *Codec, members []Member[T], v Variant, guess bool) []T {
	if !c.open('[', "array") {
		return nil
	}
	out := []T{}
	var learnt order
	size := int(reflect.TypeFor[T]().Size())
	for first := true; c.more(']', first); first = false {
		if !c.Charge(size) {
			return nil
		}
		start := c.pos
		out = extended(out)
		readObject(c, &out[len(out)-1], members, v, &learnt)
		if c.err != nil {
			return nil
		}
		c.Flush()
		if rest := (len(c.buf) - c.pos) / max(c.pos-start, 1); first && guess && rest > 0 {
			out = append(make([]T, 0, 2+min(rest+rest/32, maxGuess)), out...)
		}
	}
	if c.err != nil {
		return nil
	}
	c.close()
	return out
}

// extended returns s with one more element, a zero value. Appending one would make
// it elsewhere and copy it, and a card is half a kilobyte.
func extended[T any](s []T) []T {
	if len(s) == cap(s) {
		s = append(make([]T, 0, max(1, 2*len(s))), s...)
	}
	return s[:len(s)+1] // as make left it
}

// maxBlock is how many values Part makes at once at most. Each of them keeps its
// whole block, and the texts in it, from the collector.
const maxBlock = 4

// Part returns a zero T for a part of an element that is a pointer. The parts of
// neighbouring elements share an allocation.
func Part[T any](c *Codec) *T {
	b, ok := c.block.(*block[T])
	if !ok {
		b = new(block[T])
		c.block = b
	}
	if len(b.rest) == 0 {
		b.size = min(max(2*b.size, 1), maxBlock)
		b.rest = make([]T, b.size)
	}
	part := &b.rest[0]
	b.rest = b.rest[1:]
	return part
}

// block is what Part has left over.
type block[T any] struct {
	rest []T
	size int
}

// Map reads an object whose names are data, as in a table of amount ranges:
// each is called once a member and must read its value. The name is valid
// until the next text is read.
func (c *Codec) Map(each func(name []byte)) {
	if !c.open('{', "object") {
		return
	}
	set := nameSet{base: len(c.names)}
	for first := true; c.more('}', first); first = false {
		name := c.memberName()
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

// Each reads an array of anything: one is called once an element and must read it.
func (c *Codec) Each(one func()) {
	if !c.open('[', "array") {
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
	// The name itself is payload too, so nothing reports it.
	c.path[len(c.path)-1] = anyName
	c.Drift("unknown member")
	c.Skip()
}
