package wire_test

import (
	"bytes"
	"encoding/json"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// anything reads a value of any kind as encoding/json reads it into an any, but
// for numbers, which keep their text.
func anything(c *wire.Codec) any {
	switch c.Kind() {
	case '{':
		object := map[string]any{}
		c.Map(func(name []byte) {
			key := string(name)
			object[key] = anything(c)
		})
		return object
	case '[':
		list := []any{}
		c.Each(func() { list = append(list, anything(c)) })
		return list
	case '"':
		return string(c.Bytes())
	case 't', 'f':
		var b bool
		c.Bool(&b)
		return b
	case 'n':
		c.Null()
		return nil
	case '0', '-':
		return json.Number(c.Span())
	default:
		c.Skip()
		return nil
	}
}

// value reads text as a whole, and says whether it was accepted.
func value(text []byte) (v any, ok bool) {
	ok = accepted(text, func(c *wire.Codec) { v = anything(c) })
	return v, ok
}

// shown is a value as JSON, with its names in order.
func shown(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
