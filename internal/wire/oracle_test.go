package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// The standard library is asked what a text is and what it holds: encoding/json/v2
// with its strict defaults where there is one, and otherwise encoding/json about
// valid texts that repeat no name. All that may differ is in policies.

// policies are the ways in which this package is meant to differ, with a text of each. It is
// read into a thing by this package, and into a mirror by the other two. What each reads is
// shown as in fields; "": it refuses.
var policies = []struct{ name, text, ours, v1, v2 string }{
	// Of any text.
	{"nesting is at most 64 deep", `{"x":` + nested("[", "", "]", 64) + `}`, "", "{}", "{}"},
	{"no name is repeated", `{"x":1,"\u0078":1}`, "", "{}", ""},
	{"half of a surrogate pair is no character", `{"text":"\udead"}`, "", "{text:\ufffd}", ""},
	{"a string is valid UTF-8", "{\"text\":\"\xff\"}", "", "{text:\ufffd}", ""},
	{"names in another letter case are others", `{"TEXT":"x"}`, "{}", "{text:x}", "{}"},
	{
		"elements may not cost a multiple of their text", `{"list":[` + strings.Repeat("{},", 5000) + `{}]}`,
		"", "{list:5001}", "{list:5001}",
	},

	// Of numbers.
	{"an exponent is at most 30", `{"figure":1e31}`, "", "{figure:1e31}", "{figure:1e31}"},
	{"an exponent is at least -30", `{"figure":1E-31}`, "", "{figure:1E-31}", "{figure:1E-31}"},
	{
		"a number has at most 40 digits", `{"figure":` + nines(41) + `}`,
		"", "{figure:" + nines(41) + "}", "{figure:" + nines(41) + "}",
	},
	{"an amount in a string is a plain decimal", `{"amount":"1e5"}`, "", "{amount:1e5}", "{amount:1e5}"},
	{"an amount may be a number", `{"amount":1.50}`, "{amount:1.50}", "", ""},
	{"an integer may be a string", `{"int":"-7"}`, "{int:-7}", "", ""},
	{"a count is not negative", `{"count":-1}`, "", "{count:-1}", "{count:-1}"},
	{"a flag may be a boolean", `{"flag":true}`, "{flag:true}", "", ""},
	{"a boolean may be 0 or 1", `{"bool":1}`, "{bool:true}", "", ""},

	// Of identifiers.
	{"an identifier may be an integer", `{"id":7}`, "{id:7}", "", ""},
	{"an identifier is not empty", `{"id":""}`, "", "{}", "{}"},
	{"an identifier is not blank", `{"id":"\u00a0 \n"}`, "", "{id:\u00a0 \n}", "{id:\u00a0 \n}"},

	// Of null.
	{"an identifier is not null", `{"id":null}`, "", "{}", "{}"},
	{"a number that must be there is not null", `{"number":null}`, "", "{}", "{}"},
	{"an amount is not null", `{"amount":null}`, "", "{}", "{}"},
	{"an object is not null", `{"inner":null}`, "", "{}", "{}"},
	{"a list is not null", `{"list":null}`, "", "{}", "{}"},
	{"no element is null", `{"list":[null]}`, "", "{list:1}", "{list:1}"},
}

// fields lists the fields of a struct that are not zero, and of lists their length.
func fields(v any) string {
	var b strings.Builder
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		f := reflect.Indirect(s.Field(i))
		if !f.IsValid() || f.IsZero() {
			continue
		}
		var shown any
		switch d, isAmount := f.Interface().(decimal.Decimal); {
		case isAmount:
			shown = string(wire.AppendDecimal(nil, d))
		case f.Kind() == reflect.Slice:
			shown = f.Len()
		default:
			shown = f.Interface()
		}
		fmt.Fprintf(&b, ",%s:%v", strings.ToLower(s.Type().Field(i).Name), shown)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func TestPoliciesAreWhereTheStandardLibraryDiffers(t *testing.T) {
	t.Parallel()
	for _, p := range policies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			require.NotEqual(t, []string{p.ours, p.ours}, []string{p.v1, p.v2}, "a policy makes a difference")
			var ours string
			var got thing
			if accepted([]byte(p.text), readThing(&got)) {
				ours = fields(got)
			}
			assert.Equal(t, p.ours, ours)

			var v1 string
			var reflected mirror
			if json.Unmarshal([]byte(p.text), &reflected) == nil {
				v1 = fields(reflected)
			}
			assert.Equal(t, p.v1, v1)
			if !oracleIsV2 {
				return
			}
			var v2 string
			var strictly mirror
			if oracleInto([]byte(p.text), &strictly) {
				v2 = fields(strictly)
			}
			assert.Equal(t, p.v2, v2)
		})
	}
}

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

// agrees asserts that text is read as the oracle reads it, as any value and as a thing.
func agrees(t *testing.T, text []byte) {
	t.Helper()
	want, ok := oracle(text)
	require.Equal(t, ok, oracleInto(text, new(json.RawMessage)), "of %.200q", text)
	got, read := value(text)
	require.Equal(t, ok && depthOf(want) <= 64, read, "of %.200q", text)
	if read {
		require.Equal(t, want, got, "of %.200q", text)
	}

	var asThing thing
	var asMirror mirror
	c := wire.NewReader(text, true)
	readThing(&asThing)(c)
	c.End()
	if c.Err() != nil {
		return // for which there is a policy, or a row of valueTests
	}
	require.True(t, read, "of %.200q", text)
	if len(c.Drifts()) == 0 { // the standard library tolerates other things
		require.True(t, oracleInto(text, &asMirror), "of %.200q", text)
		same(t, &asMirror, &asThing)
	}
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
