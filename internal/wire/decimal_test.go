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

// What is no number, and that an amount is exact, is in FuzzNumber; here are the limits.
func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // "": refused
		"-0.00":                           "0e-2",
		"9223372036854775808":             "9223372036854775808e0",
		"-" + nines(18):                   "-" + nines(18) + "e0",
		nines(10) + "." + nines(9):        nines(19) + "e-9",
		"-" + nines(20) + "." + nines(20): "-" + nines(40) + "e-20",
		"0." + nines(39):                  nines(39) + "e-39",
		"1" + zeros(39):                   "1" + zeros(39) + "e0",
		"1E+30":                           "1e30",
		"1e-30":                           "1e-30",
		"1e0000030":                       "1e30",
		"-1.5e-3":                         "-15e-4",
		nines(10) + "e30":                 nines(10) + "e30",
		nines(39) + ".9e1":                nines(40) + "e0",
		"1." + zeros(10) + "e-30":         "1" + zeros(10) + "e-40",

		nines(41):                 "",
		"-1" + zeros(40):          "",
		"0." + zeros(40):          "",
		nines(11) + "e30":         "",
		nines(40) + "e1":          "",
		"1." + zeros(11) + "e-30": "",
		"1e31":                    "",
		"1e-31":                   "",
		"1e" + nines(100_000):     "",
		nines(100_000):            "",
	} {
		d, ok := wire.ParseDecimal([]byte(text), true)
		assert.Equal(t, want != "", ok, "of %.60q", text)
		if ok {
			assert.Equal(t, want, exactly(d), "of %.60q", text)
		}
		_, plain := wire.ParseDecimal([]byte(text), false)
		assert.Equal(t, ok && !strings.ContainsAny(text, "eE"), plain, "of %.60q", text)
	}
}

var decimalTests = []struct {
	value decimal.Decimal
	want  string
}{
	{decimal.Decimal{}, "0"},
	{decimal.New(0, -2), "0.00"},
	{decimal.New(0, 5), "0"},
	{decimal.New(-12, 3), "-12000"},
	{decimal.New(-123450, -3), "-123.450"},
	{decimal.New(-5, -1), "-0.5"},
	{decimal.New(50, -3), "0.050"},
	{decimal.New(9223372036854775807, -19), "0.9223372036854775807"},
	{decimal.New(1, 40), "1" + zeros(40)},
	{decimal.New(1, -40), "0." + zeros(39) + "1"},
	{decimal.New(1, 41), "1e41"},
	{decimal.New(-1, -41), "-1e-41"},
	{decimal.New(0, 2_000_000_000), "0e2000000000"},
	{decimal.New(7, -2_000_000_000), "7e-2000000000"},
	{huge("-"+nines(200), -3), "-" + nines(197) + "." + nines(3)},
	{huge(nines(200), -200), "0." + nines(200)},
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
	{decimal.New(100, 2), "10000.00"},
	{decimal.New(5, -1), "0.50"},
	{decimal.New(1, -2), "0.01"},
	{decimal.New(100, -3), "0.10"},
	{decimal.New(123400, -4), "12.34"},
	{decimal.New(9223372036854775807, -2), "92233720368547758.07"},
	{decimal.New(1, 37), "1" + zeros(37) + ".00"},
	{huge(nines(40), -2), nines(38) + ".99"},
	{huge(nines(38)+zeros(60), -60), nines(38) + ".00"},

	{decimal.Decimal{}, ""},
	{decimal.New(0, -2), ""},
	{decimal.New(0, 2_000_000_000), ""},
	{decimal.New(-1, -2), ""},
	{decimal.New(1005, -3), ""}, // 1.005 would have to be rounded
	{decimal.New(10, -4), ""},
	{decimal.New(100, -2_000_000_000), ""},
	{decimal.New(1, 38), ""},
	{decimal.New(1, 41), ""},
	{decimal.New(1, 2_000_000_000), ""},
	{huge(nines(41), -2), ""},
	{huge(nines(38)+zeros(60)+"1", -61), ""},
}

func TestCents(t *testing.T) {
	t.Parallel()
	for _, test := range centsTests {
		got, ok := wire.Cents(test.value)
		assert.Equal(t, test.want, got, "of %.60s", exactly(test.value))
		assert.Equal(t, test.want != "", ok, "of %.60s", exactly(test.value))
	}
}
