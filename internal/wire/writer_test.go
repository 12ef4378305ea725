package wire_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// sample has a field of each kind that is written.
type sample struct {
	Text, Null, Code, Present, ID string
	Int, Count                    int
	Int64, Number                 int64
	Flag, Bool                    bool
	Texts                         []string
	MoneyText, MoneyNumber        decimal.Decimal
	Pet                           pet
	Rows, List                    []pet
	Raw                           string
}

var sampleFields = []wire.FieldOf[sample]{
	{Name: "text", Value: func(c *wire.Codec, s *sample) { c.String(&s.Text) }},
	{Name: "null", Value: func(c *wire.Codec, s *sample) { c.NullString(&s.Null) }},
	{Name: "code", Value: func(c *wire.Codec, s *sample) { c.Code(&s.Code) }},
	{Name: "present", Value: func(c *wire.Codec, s *sample) { c.RequiredCode(&s.Present) }},
	{Name: "id", Value: func(c *wire.Codec, s *sample) { c.ID(&s.ID) }},
	{Name: "int", Value: func(c *wire.Codec, s *sample) { c.Int(&s.Int) }},
	{Name: "count", Value: func(c *wire.Codec, s *sample) { c.Count(&s.Count) }},
	{Name: "int64", Value: func(c *wire.Codec, s *sample) { c.Int64(&s.Int64) }},
	{Name: "number", Value: func(c *wire.Codec, s *sample) { c.RequiredInt64(&s.Number) }},
	{Name: "flag", Value: func(c *wire.Codec, s *sample) { c.Flag(&s.Flag) }},
	{Name: "bool", Value: func(c *wire.Codec, s *sample) { c.Bool(&s.Bool) }},
	{Name: "texts", Value: func(c *wire.Codec, s *sample) { c.Strings(&s.Texts) }},
	{Name: "money_text", Value: func(c *wire.Codec, s *sample) { c.DecimalString(&s.MoneyText) }},
	{Name: "money_number", Value: func(c *wire.Codec, s *sample) { c.DecimalNumber(&s.MoneyNumber) }},
	{Name: "pet", Value: func(c *wire.Codec, s *sample) { wire.Object(c, &s.Pet, petFields, single) }},
	{Name: "rows", Value: func(c *wire.Codec, s *sample) { wire.Rows(c, &s.Rows, petFields, listed) }},
	{Name: "list", Value: func(c *wire.Codec, s *sample) { wire.List(c, &s.List, petFields) }},
	{Name: "raw", Value: func(c *wire.Codec, s *sample) {
		if c.Writing {
			c.Append('"')
			c.Append([]byte(s.Raw)...)
			c.Append('"')
			return
		}
		s.Raw = string(c.Bytes())
	}},
}

const sampleText = `{"text":"say \"é\"","null":"n","code":"c7","present":"p","id":"i1","int":-12,"count":3,` +
	`"int64":9223372036854775807,"number":-9223372036854775808,"flag":1,"bool":true,"texts":["a","\\"],` +
	`"money_text":"12.340","money_number":-0.05,` +
	`"pet":{"id":"1","name":"Rex","race":"pug","chip":"77","owner":"Eve"},` +
	`"rows":[{"id":"2","name":"","race":"","chip":"","owner":""},` +
	`{"id":"3","name":"Tom","race":"","chip":"","owner":""}],` +
	`"list":[{"id":"4","name":"","race":"","chip":"5","owner":""}],"raw":"r"}`

func theSample() sample {
	return sample{
		Text: `say "é"`, Null: "n", Code: "c7", Present: "p", ID: "i1", Int: -12, Count: 3,
		Int64: 9223372036854775807, Number: -9223372036854775808, Flag: true, Bool: true, Texts: []string{"a", `\`},
		MoneyText: decimal.New(12340, -3), MoneyNumber: decimal.New(-5, -2),
		Pet:  pet{"1", "Rex", "pug", "77", "Eve"},
		Rows: []pet{{ID: "2"}, {ID: "3", Name: "Tom"}}, List: []pet{{ID: "4", Chip: "5"}}, Raw: "r",
	}
}

func TestMarshalTheZeroValue(t *testing.T) {
	t.Parallel()
	text, err := wire.Marshal(&sample{}, sampleFields)
	require.NoError(t, err)
	assert.Equal(t, `{"text":"","null":"","code":"","present":"","id":"","int":0,"count":0,"int64":0,"number":0,`+
		`"flag":0,"bool":false,"texts":[],"money_text":"0","money_number":0,`+
		`"pet":{"id":"","name":"","race":"","chip":"","owner":""},"rows":[],"list":[],"raw":""}`, string(text))
}

func TestMarshalAndUnmarshal(t *testing.T) {
	t.Parallel()
	want := theSample()
	text, err := wire.Marshal(&want, sampleFields)
	require.NoError(t, err)
	assert.Equal(t, sampleText, string(text))

	var got sample
	require.NoError(t, wire.Unmarshal([]byte(sampleText), &got, sampleFields))
	assert.Equal(t, exactly(want.MoneyText), exactly(got.MoneyText))
	assert.Equal(t, exactly(want.MoneyNumber), exactly(got.MoneyNumber))
	got.MoneyText, got.MoneyNumber = want.MoneyText, want.MoneyNumber
	assert.Equal(t, want, got)
}

func TestUnmarshalLeavesAloneWhatItDoesNotFill(t *testing.T) {
	t.Parallel()
	old := pet{ID: "old", Name: "Old"}
	for _, test := range []struct {
		text string
		want pet
		err  string
	}{
		{` null `, old, ""},
		{`{"id":"1"}`, pet{ID: "1"}, ""}, // nothing of the old pet is mixed into the new one
		{`{"id":"1","name":null,"x":1}`, pet{ID: "1"}, ""},
		{`{"id":"1","name":7}`, old, "name: expected a string"},
		{`{"name":"Rex"}`, old, "id is missing"},
		{`[]`, old, "expected an object"},
		{`nul`, old, notStrict + "a value is misspelled"},
		{`null null`, old, notStrict + "bytes follow the end"},
		{`{"id":"1"}}`, old, notStrict + "bytes follow the end"},
		{`{"id":"1","id":"1"}`, old, notStrict + "a field name appears twice"},
		{``, old, notStrict + "it ends too early"},
	} {
		got := old
		err := wire.Unmarshal([]byte(test.text), &got, petFields)
		if test.err == "" {
			require.NoError(t, err, test.text)
		} else {
			require.EqualError(t, err, test.err, test.text)
		}
		assert.Equal(t, test.want, got, test.text)
	}
}

func TestAppendText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                 `""`,
		"abc":              `"abc"`,
		`"`:                `"\""`,
		`\`:                `"\\"`,
		`\"`:               `"\\\""`,
		"a/b":              `"a/b"`,
		"<script>&":        `"<script>&"`,
		"\x00":             `"\u0000"`,
		"\b\f\n\r\t":       `"\u0008\u000c\u000a\u000d\u0009"`,
		"\x0f\x10\x1e":     `"\u000f\u0010\u001e"`,
		"\x1f\x20\x7f":     "\"\\u001f \x7f\"",
		"é中😀":              `"é中😀"`,
		"\u2028":           "\"\u2028\"",
		"\xff is replaced": "\"\uFFFD is replaced\"",
	} {
		assert.Equal(t, "before:"+want, string(wire.AppendString([]byte("before:"), text)))
	}
}
