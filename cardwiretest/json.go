package cardwiretest

import (
	"bytes"
	_ "embed" // of the data
	"encoding/json"
	"slices"
	"strconv"
	"sync"
)

//go:embed data.json
var dataJSON []byte

// data returns the state with which every service begins. The first element of a list has all
// fields, and the others only those that differ from it. It is never changed.
var data = sync.OnceValue(func() *node {
	d, err := parse(dataJSON)
	if err != nil {
		panic("cardwiretest: data.json: " + err.Error())
	}
	return d
})

// node is a JSON value that keeps the order of its fields.
type node struct {
	kind  byte // '{', '[', '"' or 'x' for a number, a boolean or null
	text  string
	names []string // of an object
	items []*node  // of an object or an array
}

func text(v string) *node { return &node{kind: '"', text: v} }

func list(items ...*node) *node { return &node{kind: '[', items: items} }

func parse(text []byte) (*node, error) {
	if !json.Valid(text) {
		return nil, json.Unmarshal(text, new(any)) // says why
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return next(d), nil
}

// next reads a value of valid JSON.
func next(d *json.Decoder) *node {
	t, _ := d.Token()
	switch t := t.(type) {
	case json.Delim:
		n := &node{kind: byte(t)}
		for d.More() {
			if t == '{' {
				name, _ := d.Token()
				n.names = append(n.names, name.(string))
			}
			n.items = append(n.items, next(d))
		}
		_, _ = d.Token()
		return n
	case string:
		return text(t)
	case json.Number:
		return &node{kind: 'x', text: t.String()}
	case bool:
		return &node{kind: 'x', text: strconv.FormatBool(t)}
	}
	return &node{kind: 'x', text: "null"}
}

// get returns the value of a field; nil: there is none.
func (n *node) get(name string) *node {
	if i := slices.Index(n.names, name); i >= 0 {
		return n.items[i]
	}
	return nil
}

// str returns the string, or the literal, of a field; "": there is none.
func (n *node) str(name string) string {
	if field := n.get(name); field != nil {
		return field.text
	}
	return ""
}

// set changes a field. It panics if there is none: the caller misspelled it.
func (n *node) set(name string, v *node) {
	i := slices.Index(n.names, name)
	if i < 0 {
		panic("cardwiretest: there is no field " + strconv.Quote(name))
	}
	n.items[i] = v
}

// with returns a copy of an object with the fields changed.
func (n *node) with(fields *node) *node {
	out := n.only(n)
	for i, name := range fields.names {
		out.set(name, fields.items[i])
	}
	return out
}

// only returns those fields of an object that one of the others has.
func (n *node) only(others ...*node) *node {
	out := &node{kind: '{'}
	for _, other := range others {
		for _, name := range other.names {
			out.names = append(out.names, name)
			out.items = append(out.items, n.get(name))
		}
	}
	return out
}

// json returns the value as JSON.
func (n *node) json() []byte {
	switch n.kind {
	case '"':
		return quoted(n.text)
	case 'x':
		return []byte(n.text)
	}
	b := []byte{n.kind}
	for i, item := range n.items {
		if i > 0 {
			b = append(b, ',')
		}
		if n.kind == '{' {
			b = append(append(b, quoted(n.names[i])...), ':')
		}
		b = append(b, item.json()...)
	}
	return append(b, n.kind+2) // ] and } follow two after [ and {
}

// quoted returns a JSON string, in which <, > and & are not escaped.
func quoted(v string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a string never fails
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
