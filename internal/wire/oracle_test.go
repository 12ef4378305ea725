package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// The standard library is asked what a text is and what it holds: encoding/json/v2
// with its strict defaults where there is one, and otherwise encoding/json about
// valid texts that repeat no name. It reads all that this package reads without drift, and
// more: see valueTests, and TestElementsMustBeWorthTheirMemory.

func readThing(v *thing) func(*wire.Codec) {
	return func(c *wire.Codec) { wire.Object(c, v, thingFields(), wire.Lenient) }
}

// oracle reads text with encoding/json, which replaces bytes and halves of pairs that are no
// characters, and takes the last of repeated names: those are looked for beforehand.
func oracle(text []byte) (v any, ok bool) {
	if !jsonsuite.Strict(text, len(text)) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err == nil
}

// agrees asserts that text is read as the oracle reads it.
func agrees(t *testing.T, text []byte) {
	t.Helper()
	want, ok := oracle(text)
	require.Equal(t, ok, oracleInto(text, new(json.RawMessage)), "of %.200q", text)
	got, read := value(text)
	require.Equal(t, ok && depthOf(want) <= 64, read, "of %.200q", text)
	if read {
		require.Equal(t, want, got, "of %.200q", text)
	}

	var asThing thing // what its fields are is in TestEveryValueInEveryForm
	require.True(t, !accepted(text, readThing(&asThing)) || json.Valid(text), "of %.200q", text)
}

func depthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			deepest = max(deepest, depthOf(e))
		}
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, depthOf(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

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
		return string(c.Bytes(wire.Text))
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
