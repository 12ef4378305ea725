package wire

import (
	"bytes"
	"encoding/json"
)

// RawObject reads or writes null, or an object with undocumented fields.
func (c *Codec) RawObject(dst *json.RawMessage) {
	if c.writing {
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
	if c.writing {
		writeList(c, *dst, func(raw *json.RawMessage) { c.appendRaw(*raw) })
		return
	}
	*dst = nil
	if c.nullArray() {
		return
	}
	*dst = []json.RawMessage{}
	c.Each(func() {
		if c.Budget(sizeOfRaw) {
			*dst = append(*dst, bytes.Clone(c.Span()))
		}
	})
}

// sizeOfRaw is what a raw value in a list takes in addition to its bytes.
const sizeOfRaw = 48

func (c *Codec) appendRaw(raw json.RawMessage) {
	if raw == nil {
		raw = json.RawMessage("null")
	}
	c.Append(raw...)
}
