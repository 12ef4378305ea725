package cardwiretest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object writes a JSON object field by field, in the order of the calls: the order
// of the API's tables.
type object struct{ b []byte }

func (o *object) name(name string) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(appendString(o.b, name, false), ':')
}

func (o *object) str(name, v string) {
	o.name(name)
	o.b = appendString(o.b, v, false)
}

// optional writes null for nil.
func (o *object) optional(name string, v *string) {
	if v == nil {
		o.raw(name, []byte("null"))
		return
	}
	o.str(name, *v)
}

func (o *object) integer(name string, v int) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, int64(v), 10)
}

// number writes 0 for the zero value.
func (o *object) number(name string, v json.Number) {
	if v == "" {
		v = "0"
	}
	o.raw(name, []byte(v))
}

func (o *object) boolean(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) strs(name string, list []string) {
	o.raw(name, array(list, func(v string) []byte { return appendString(nil, v, false) }))
}

func (o *object) raw(name string, v []byte) {
	o.name(name)
	o.b = append(o.b, v...)
}

func (o *object) end() []byte {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	}
	return append(o.b, '}')
}

func array[T any](list []T, one func(T) []byte) []byte {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, one(v)...)
	}
	return append(b, ']')
}

// appendString writes a JSON string. With escaped it escapes slashes and everything
// beyond ASCII, as PHP does by default.
func appendString(b []byte, v string, escaped bool) []byte {
	const hex = "0123456789abcdef"
	unit := func(u rune) {
		b = append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	b = append(b, '"')
	for _, r := range v {
		switch {
		case r == '"' || r == '\\' || r == '/' && escaped:
			b = append(b, '\\', byte(r))
		case r < ' ', r >= 0x80 && r < 0x10000 && escaped:
			unit(r)
		case r >= 0x10000 && escaped:
			unit(0xd800 + (r-0x10000)>>10)
			unit(0xdc00 + (r-0x10000)&0x3ff)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// envelope wraps a result as the API does, with the quirks that are switched on.
func (s *Service) envelope(r result) []byte {
	var o object
	o.integer("code", r.code)
	o.str("msg", r.msg)
	o.raw("data", r.data)
	if s.quirky {
		return quirks(s.seed, o.end())
	}
	return o.end()
}

// node is a JSON value that keeps the order of its fields.
type node struct {
	kind  byte // '{', '[', '"' or 'x' for a number, a boolean or null
	text  string
	names []string // of an object
	items []*node  // of an object or an array
}

// parse reads what this package wrote.
func parse(d *json.Decoder) *node {
	t, err := d.Token()
	if err != nil {
		panic("cardwiretest: a response is not JSON: " + err.Error())
	}
	switch t := t.(type) {
	case json.Delim:
		n := &node{kind: byte(t)}
		for d.More() {
			if t == '{' {
				name, _ := d.Token()
				n.names = append(n.names, name.(string))
			}
			n.items = append(n.items, parse(d))
		}
		_, _ = d.Token()
		return n
	case string:
		return &node{kind: '"', text: t}
	case json.Number:
		return &node{kind: 'x', text: t.String()}
	case bool:
		return &node{kind: 'x', text: strconv.FormatBool(t)}
	}
	return &node{kind: 'x', text: "null"}
}

func parseBytes(text []byte) *node {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	return parse(d)
}

func (n *node) append(b []byte, escaped bool) []byte {
	switch n.kind {
	case '"':
		return appendString(b, n.text, escaped)
	case 'x':
		return append(b, n.text...)
	}
	b = append(b, n.kind)
	for i, item := range n.items {
		if i > 0 {
			b = append(b, ',')
		}
		if n.kind == '{' {
			b = append(appendString(b, n.names[i], escaped), ':')
		}
		b = item.append(b, escaped)
	}
	return append(b, n.kind+2) // ] and } follow two after [ and {
}

func (n *node) delete(i int) {
	n.names = slices.Delete(n.names, i, i+1)
	n.items = slices.Delete(n.items, i, i+1)
}
