package wire_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/wire"
)

func nines(n int) string { return strings.Repeat("9", n) }

func zeros(n int) string { return strings.Repeat("0", n) }

func huge(digits string, exp int32) decimal.Decimal {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		panic("not digits")
	}
	return decimal.NewFromBigInt(n, exp)
}

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text     string
		exponent bool
		want     string // "": refused
	}{
		{"0", false, "0e0"},
		{"-0", false, "0e0"},
		{"0.0", false, "0e-1"},
		{"-0.00", false, "0e-2"},
		{"1", false, "1e0"},
		{"-1", false, "-1e0"},
		{"10", false, "10e0"},
		{"100.00", false, "10000e-2"},
		{"123.450", false, "123450e-3"},
		{"-123.450", false, "-123450e-3"},
		{"0.001", false, "1e-3"},
		{"-0.001", false, "-1e-3"},
		{"0.10", false, "10e-2"},
		{nines(17), false, nines(17) + "e0"},
		{nines(18), false, nines(18) + "e0"},
		{"-" + nines(18), false, "-" + nines(18) + "e0"},
		{nines(19), false, nines(19) + "e0"},
		{"-" + nines(19), false, "-" + nines(19) + "e0"},
		{"9223372036854775808", false, "9223372036854775808e0"},
		{nines(10) + "." + nines(8), false, nines(18) + "e-8"},
		{nines(10) + "." + nines(9), false, nines(19) + "e-9"},
		{"-" + nines(10) + "." + nines(9), false, "-" + nines(19) + "e-9"},
		{nines(40), false, nines(40) + "e0"},
		{nines(20) + "." + nines(20), false, nines(40) + "e-20"},
		{"0." + nines(39), false, nines(39) + "e-39"},
		{"1" + zeros(39), false, "1" + zeros(39) + "e0"},
		{"1e0", true, "1e0"},
		{"1e5", true, "1e5"},
		{"1E5", true, "1e5"},
		{"1e+5", true, "1e5"},
		{"1e-5", true, "1e-5"},
		{"1.50e3", true, "150e1"},
		{"1.5e-3", true, "15e-4"},
		{"-1.5e-3", true, "-15e-4"},
		{"0e30", true, "0e30"},
		{"1e30", true, "1e30"},
		{"1e-30", true, "1e-30"},
		{"1e0000030", true, "1e30"},
		{"12.5e30", true, "125e29"},
		{nines(10) + "e30", true, nines(10) + "e30"},
		{nines(39) + ".9e1", true, nines(40) + "e0"},
		{"1." + zeros(10) + "e-30", true, "1" + zeros(10) + "e-40"},
		{"5", true, "5e0"},

		{nines(41), false, ""},
		{"1" + zeros(40), false, ""},
		{"0." + nines(40), false, ""},
		{"0." + zeros(40), false, ""},
		{nines(11) + "e30", true, ""},
		{nines(40) + "e1", true, ""},
		{"1." + zeros(11) + "e-30", true, ""},
		{"1e31", true, ""},
		{"1e-31", true, ""},
		{"1e999999999999999999999", true, ""},
		{"1e-999999999999999999999", true, ""},
		{"1e" + nines(100_000), true, ""},
		{nines(100_000), true, ""},
		{"1e5", false, ""},
		{"1E0", false, ""},
		{"", false, ""},
		{"-", false, ""},
		{".", false, ""},
		{"1.", false, ""},
		{".5", false, ""},
		{"-.5", false, ""},
		{"+1", false, ""},
		{"--1", false, ""},
		{"00", false, ""},
		{"01", false, ""},
		{"-01.5", false, ""},
		{"1.2.3", false, ""},
		{"1,5", false, ""},
		{"1 000", false, ""},
		{" 1", false, ""},
		{"1 ", false, ""},
		{"1\x00", false, ""},
		{"1_000", false, ""},
		{"0x10", false, ""},
		{"$1", false, ""},
		{"1%", false, ""},
		{"NaN", true, ""},
		{"Inf", true, ""},
		{"null", true, ""},
		{"\u0661", false, ""},
		{"1e", true, ""},
		{"1e+", true, ""},
		{"1e5.0", true, ""},
		{"1e5e5", true, ""},
		{"1e 5", true, ""},
		{"1e--5", true, ""},
		{"1e+-5", true, ""},
		{"1e0x5", true, ""},
		{"1e1_0", true, ""},
		{"1x5", true, ""},
		{"e5", true, ""},
		{"1.e5", true, ""},
	} {
		d, ok := wire.ParseDecimal([]byte(test.text), test.exponent)
		assert.Equal(t, test.want != "", ok, "of %.60q", test.text)
		if ok {
			assert.Equal(t, test.want, exactly(d), "of %.60q", test.text)
		} else {
			assert.Equal(t, decimal.Decimal{}, d, "of %.60q", test.text)
		}
	}
}

var decimalTests = []struct {
	value decimal.Decimal
	want  string
}{
	{decimal.Decimal{}, "0"},
	{decimal.New(0, 0), "0"},
	{decimal.New(0, -2), "0.00"},
	{decimal.New(0, 5), "0"},
	{decimal.New(1, 0), "1"},
	{decimal.New(-1, 0), "-1"},
	{decimal.New(12, 3), "12000"},
	{decimal.New(-12, 3), "-12000"},
	{decimal.New(123450, -3), "123.450"},
	{decimal.New(-123450, -3), "-123.450"},
	{decimal.New(5, -1), "0.5"},
	{decimal.New(-5, -1), "-0.5"},
	{decimal.New(5, -3), "0.005"},
	{decimal.New(-5, -3), "-0.005"},
	{decimal.New(50, -3), "0.050"},
	{decimal.New(500, -3), "0.500"},
	{decimal.New(5000, -3), "5.000"},
	{decimal.New(100, -2), "1.00"},
	{decimal.New(9223372036854775807, -19), "0.9223372036854775807"},
	{decimal.New(-9223372036854775808, 0), "-9223372036854775808"},
	{decimal.New(1, 40), "1" + zeros(40)},
	{decimal.New(1, -40), "0." + zeros(39) + "1"},
	{decimal.New(1, 41), "1e41"},
	{decimal.New(-1, -41), "-1e-41"},
	{decimal.New(0, 2_000_000_000), "0e2000000000"},
	{decimal.New(7, 2_000_000_000), "7e2000000000"},
	{decimal.New(7, -2_000_000_000), "7e-2000000000"},
	{huge(nines(200), 0), nines(200)},
	{huge("-"+nines(200), -3), "-" + nines(197) + "." + nines(3)},
	{huge(nines(200), 2), nines(200) + "00"},
}

func TestAppendDecimal(t *testing.T) {
	t.Parallel()
	for _, test := range decimalTests {
		before := exactly(test.value)
		assert.Equal(t, "="+test.want, string(wire.AppendDecimal([]byte("="), test.value)))
		assert.Equal(t, before, exactly(test.value), "writing a value must not change it")
	}
}

var centsTests = []struct {
	value decimal.Decimal
	want  string // "": refused
}{
	{decimal.New(1, 0), "1.00"},
	{decimal.New(12, 0), "12.00"},
	{decimal.New(100, 2), "10000.00"},
	{decimal.New(1, 2), "100.00"},
	{decimal.New(15, 1), "150.00"},
	{decimal.New(5, -1), "0.50"},
	{decimal.New(15, -1), "1.50"},
	{decimal.New(1, -2), "0.01"},
	{decimal.New(10, -2), "0.10"},
	{decimal.New(99, -2), "0.99"},
	{decimal.New(100, -2), "1.00"},
	{decimal.New(123, -2), "1.23"},
	{decimal.New(100, -3), "0.10"},     // 0.100
	{decimal.New(123400, -4), "12.34"}, // 12.3400
	{decimal.New(10, -3), "0.01"},
	{decimal.New(1000, -3), "1.00"},
	{decimal.New(1000000, -8), "0.01"},
	{decimal.New(1234560, -3), "1234.56"},
	{decimal.New(9223372036854775807, -2), "92233720368547758.07"},
	{decimal.New(1, 37), "1" + zeros(37) + ".00"},
	{huge(nines(40), -2), nines(38) + ".99"},
	{huge(nines(38), 0), nines(38) + ".00"},
	{huge(nines(38)+zeros(60), -60), nines(38) + ".00"},

	{decimal.Decimal{}, ""},
	{decimal.New(0, 0), ""},
	{decimal.New(0, -2), ""},
	{decimal.New(0, 2_000_000_000), ""},
	{decimal.New(-1, 0), ""},
	{decimal.New(-1, -2), ""},
	{decimal.New(-100, -2), ""},
	{decimal.New(1, -3), ""},
	{decimal.New(1005, -3), ""}, // 1.005 would have to be rounded
	{decimal.New(1234567, -3), ""},
	{decimal.New(12345, -4), ""},
	{decimal.New(10, -4), ""},
	{decimal.New(1, -40), ""},
	{decimal.New(100, -2_000_000_000), ""},
	{decimal.New(1, 38), ""},
	{decimal.New(1, 40), ""},
	{decimal.New(1, 41), ""},
	{decimal.New(1, 2_000_000_000), ""},
	{huge(nines(41), -2), ""},
	{huge(nines(39), 0), ""},
	{huge(nines(38)+zeros(60)+"1", -61), ""},
	{huge(nines(5000), 0), ""},
}

func TestCents(t *testing.T) {
	t.Parallel()
	for _, test := range centsTests {
		got, ok := wire.Cents(test.value)
		assert.Equal(t, test.want, got, "of %.60s", exactly(test.value))
		assert.Equal(t, test.want != "", ok, "of %.60s", exactly(test.value))
	}
}

// A program may set the variables of the decimal package as it likes; the money
// on the wire must not change with them. Not parallel: they belong to all tests.
func TestMoneyDoesNotHeedTheVariablesOfItsPackage(t *testing.T) {
	quotes, precision, trim, scientific := decimal.MarshalJSONWithoutQuotes, decimal.DivisionPrecision, decimal.TrimTrailingZeros, decimal.UseScientificNotation
	decode := decimal.MaxDecodeExponent
	t.Cleanup(func() {
		decimal.MarshalJSONWithoutQuotes, decimal.DivisionPrecision = quotes, precision
		decimal.TrimTrailingZeros, decimal.UseScientificNotation, decimal.MaxDecodeExponent = trim, scientific, decode
	})
	for _, on := range []bool{false, true} {
		decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros, decimal.UseScientificNotation = on, on, on
		decimal.DivisionPrecision, decimal.MaxDecodeExponent = 0, 0

		for _, test := range decimalTests {
			assert.Equal(t, test.want, string(wire.AppendDecimal(nil, test.value)))
		}
		for _, test := range centsTests {
			got, _ := wire.Cents(test.value)
			assert.Equal(t, test.want, got)
		}
		var d decimal.Decimal
		plainly(t, read(t, `"1200.500"`, func(c *wire.Codec) { c.DecimalString(&d) }))
		assert.Equal(t, "1200500e-3", exactly(d))
		plainly(t, read(t, `12e2`, func(c *wire.Codec) { c.DecimalNumber(&d) }))
		assert.Equal(t, "12e2", exactly(d))
		one := sample{MoneyText: decimal.New(1200, -2), MoneyNumber: decimal.New(12, 2)}
		text, _ := wire.Marshal(&one, sampleFields)
		assert.Contains(t, string(text), `"money_text":"12.00","money_number":1200,`)
	}
}
