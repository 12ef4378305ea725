package check_test

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/check"
)

const torn = "a\xff" // not UTF-8

type (
	label   string
	asText  struct{ text string }
	asJSON  struct{ text string }
	byPtr   struct{ text string }
	inner   struct{ Text string }
	encoded struct {
		inner
		Any     any
		Bytes   []byte
		Array   [1]label
		Map     map[label]*inner
		ByPtr   byPtr
		Left    string `json:"-"`
		Renamed string `json:"x,omitempty"`
		hidden  string
	}
)

func (v asText) MarshalText() ([]byte, error) { return []byte(v.text), nil }
func (v asJSON) MarshalJSON() ([]byte, error) { return []byte(`"` + v.text + `"`), nil }
func (v *byPtr) MarshalJSON() ([]byte, error) { return []byte(`"` + v.text + `"`), nil }

// fine finds nothing wrong with any value.
func fine(any, []byte) string { return "" }

func TestJSONThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"text":                  torn,
		"surrogate":             "\xed\xa0\x80",
		"label":                 label(torn),
		"list":                  []string{"a", torn},
		"array":                 [2]any{1, torn},
		"name of a field":       map[string]int{torn: 1},
		"field":                 map[string]any{"a": map[string]any{"b": []any{nil, torn}}},
		"pointer":               &[]*string{nil, new(torn)},
		"values":                url.Values{"a": {torn}},
		"raw":                   json.RawMessage(`"` + torn + `"`),
		"says its text":         asText{torn},
		"names a field":         map[asText]int{{torn}: 1},
		"says its JSON":         asJSON{torn},
		"says so by a pointer":  &byPtr{torn},
		"field, by a pointer":   &encoded{ByPtr: byPtr{torn}},
		"embedded":              encoded{inner: inner{torn}},
		"field of any type":     encoded{Any: torn},
		"field of an array":     encoded{Array: [1]label{torn}},
		"field of a map":        encoded{Map: map[label]*inner{"a": {torn}}},
		"field of another name": encoded{Renamed: torn},
	} {
		assert.EqualError(t, check.JSON("JSON", v, fine), "JSON is not valid UTF-8", name)
	}
}

func TestJSONThatIsUTF8(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"nothing":                 nil,
		"null":                    (*inner)(nil),
		"replacement character":   "\ufffd",
		"escape of it":            json.RawMessage(`"\ufffd"`),
		"control":                 "\x00\u2028",
		"number":                  1.5,
		"time":                    time.Unix(0, 0),
		"bytes, which are base64": []byte(torn),
		"array of bytes":          [2]byte{0xff, 0xfe},
		"what is not written": encoded{
			Left: torn, hidden: torn, Bytes: []byte(torn), Map: map[label]*inner{"a": nil},
		},
		"a method out of reach":    encoded{ByPtr: byPtr{torn}}, // it has no field that is written
		"marshalers that are fine": []any{asText{"é"}, asJSON{"é"}, &byPtr{"é"}, (*byPtr)(nil)},
	} {
		_, err := json.Marshal(v)
		require.NoError(t, err, name)
		assert.NoError(t, check.JSON("JSON", v, fine), name)
	}
	assert.Empty(t, encoded{}.hidden)
}
