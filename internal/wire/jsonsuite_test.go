package wire_test

import (
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// repeatedNames are the two texts that every parser must accept by the suite's
// will, and that repeat a field name, which is refused here.
var repeatedNames = []string{"y_object_duplicated_key", "y_object_duplicated_key_and_value"}

// freeTexts are the texts that a parser may accept or refuse, or that parsers
// read differently, and what is read of those that are accepted. What is not
// named here is refused.
var freeTexts = map[string]struct {
	value   string // as JSON
	amount  string // of the array's one element as a JSON amount; "": refused
	integer string // the same as an integer; "": refused
}{
	// No exponent is too large for what is skipped, and hardly one fits money.
	"i_number_double_huge_neg_exp": {value: `[123.456e-789]`},
	"i_number_huge_exp":            {value: "[0.4e0066" + nines(116) + "6" + nines(7) + "006]"},
	"i_number_neg_int_huge_exp":    {value: `[-1e+9999]`},
	"i_number_pos_double_huge_exp": {value: `[1.5e+9999]`},
	"i_number_real_neg_overflow":   {value: `[-123123e100000]`},
	"i_number_real_pos_overflow":   {value: `[123123e100000]`},
	"i_number_real_underflow":      {value: `[123e-10000000]`},
	"i_number_too_big_neg_int": {
		value: `[-123123123123123123123123123123]`, amount: "-123123123123123123123123123123e0",
	},
	"i_number_too_big_pos_int":       {value: `[100000000000000000000]`, amount: "100000000000000000000e0"},
	"i_number_very_big_negative_int": {value: `[-237462374673276894279832749832423479823246327846]`},
	"number_-9223372036854775808":    {`[-9223372036854775808]`, "-9223372036854775808e0", "-9223372036854775808"},
	"number_-9223372036854775809":    {value: `[-9223372036854775809]`, amount: "-9223372036854775809e0"},
	"number_1.0":                     {value: `[1.0]`, amount: "10e-1"},
	"number_1.000000000000000005":    {value: `[1.000000000000000005]`, amount: "1000000000000000005e-18"},
	"number_1000000000000000":        {`[1000000000000000]`, "1000000000000000e0", "1000000000000000"},
	"number_10000000000000000999":    {value: `[10000000000000000999]`, amount: "10000000000000000999e0"},
	"number_1e-999":                  {value: `[1E-999]`},
	"number_1e6":                     {value: `[1E6]`, amount: "1e6"},
	"number_9223372036854775807":     {`[9223372036854775807]`, "9223372036854775807e0", "9223372036854775807"},
	"number_9223372036854775808":     {value: `[9223372036854775808]`, amount: "9223372036854775808e0"},
	"object_key_nfc_nfd":             {value: "{\"e\u0301\":\"NFD\",\"\u00e9\":\"NFC\"}"}, // two names, not one
	"object_key_nfd_nfc":             {value: "{\"e\u0301\":\"NFD\",\"\u00e9\":\"NFC\"}"},
	"string_with_escaped_NULL":       {value: `["A\u0000B"]`},
}

func TestJSONTestSuite(t *testing.T) {
	t.Parallel()
	for _, f := range jsonsuite.Files(t) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			free, listed := freeTexts[f.Name]
			want := listed
			switch f.Kind {
			case jsonsuite.Accepted:
				want = !slices.Contains(repeatedNames, f.Name)
			case jsonsuite.Refused:
				want = false
			}
			v, ok := value(f.Text)
			assert.Equal(t, want, ok, "read")
			assert.Equal(t, want, accepted(f.Text, skip), "skipped")
			assert.Equal(t, want, accepted(around(`[0,`, f.Text, `,0]`), skip), "an element")
			assert.Equal(t, want, accepted(around(`{"x":`, f.Text, `}`), skip), "a field's value")
			var p pair
			known := around(`{"other":`, f.Text, `,"text":"a"}`)
			assert.Equal(t, want, accepted(known, readPair(&p)), "a known field's value")
			if listed {
				assert.Equal(t, free.value, shown(v))
				assert.Equal(t, free.amount, only(f.Text, amount))
				assert.Equal(t, free.integer, only(f.Text, integerText))
			}

			var code int
			asCode := accepted(f.Text, func(c *wire.Codec) { c.ExactInt(&code) })
			assert.Equal(t, f.Name == "y_structure_lonely_int", asCode, "a code")
		})
	}
}

// only reads an array's one element; "": refused.
func only(text []byte, read func(*wire.Codec) string) (v string) {
	if accepted(text, func(c *wire.Codec) { c.Each(func() { v = read(c) }) }) {
		return v
	}
	return ""
}

func amount(c *wire.Codec) string {
	var d decimal.Decimal
	c.DecimalNumber(&d)
	return exactly(d)
}

func integerText(c *wire.Codec) string {
	var n int64
	c.RequiredInt64(&n)
	return shown(n)
}
