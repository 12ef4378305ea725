package hostile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

const (
	refusedNumber = "refused" // sound JSON, and no amount
	noJSON        = "no JSON" // the whole response is unreadable
)

// Amounts are read exactly and with their scale, or not at all. What is wanted is
// the coefficient and the exponent, in which 12.340 is 12340e-3.
func TestAmountsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	nines := func(n int) string { return strings.Repeat("9", n) }
	zeros := func(n int) string { return strings.Repeat("0", n) }
	literals := []struct{ literal, text, number string }{
		{"0", "0e0", "0e0"},
		{"-0", "0e0", "0e0"},
		{"0.0", "0e-1", "0e-1"},
		{"-0.00", "0e-2", "0e-2"},
		{"1", "1e0", "1e0"},
		{"-1", "-1e0", "-1e0"},
		{"10", "10e0", "10e0"},
		{"0.1", "1e-1", "1e-1"},
		{"0.2", "2e-1", "2e-1"},
		{"0.3", "3e-1", "3e-1"},
		{"0.30000000000000004", "30000000000000004e-17", "30000000000000004e-17"},
		{"1.005", "1005e-3", "1005e-3"},
		{"12.340", "12340e-3", "12340e-3"},
		{"-12.340", "-12340e-3", "-12340e-3"},
		{"100.00", "10000e-2", "10000e-2"},
		{"0.001", "1e-3", "1e-3"},
		{"0.010", "10e-3", "10e-3"},
		{"123456789.123", "123456789123e-3", "123456789123e-3"},
		{"9007199254740993", "9007199254740993e0", "9007199254740993e0"}, // no float64
		{"9007199254740993.01", "900719925474099301e-2", "900719925474099301e-2"},
		{"999999999999999999", nines(18) + "e0", nines(18) + "e0"},
		{"1000000000000000000", "1" + zeros(18) + "e0", "1" + zeros(18) + "e0"},
		{"9223372036854775807", "9223372036854775807e0", "9223372036854775807e0"},
		{"9223372036854775808", "9223372036854775808e0", "9223372036854775808e0"},
		{"-9223372036854775809", "-9223372036854775809e0", "-9223372036854775809e0"},
		{"18446744073709551616.5", "184467440737095516165e-1", "184467440737095516165e-1"},
		{nines(40), nines(40) + "e0", nines(40) + "e0"},
		{"-" + nines(38) + ".99", "-" + nines(40) + "e-2", "-" + nines(40) + "e-2"},
		{"0." + nines(39), nines(39) + "e-39", nines(39) + "e-39"},
		{"0." + zeros(38) + "1", "1e-39", "1e-39"},

		// An exponent is for numbers only.
		{"1e0", refusedNumber, "1e0"},
		{"1e2", refusedNumber, "1e2"},
		{"1E+2", refusedNumber, "1e2"},
		{"15e-1", refusedNumber, "15e-1"},
		{"1.50e3", refusedNumber, "150e1"},
		{"-2.5E-3", refusedNumber, "-25e-4"},
		{"0e0", refusedNumber, "0e0"},
		{"0e30", refusedNumber, "0e30"},
		{"1e30", refusedNumber, "1e30"},
		{"1e-30", refusedNumber, "1e-30"},
		{"1e00030", refusedNumber, "1e30"},
		{nines(10) + "e30", refusedNumber, nines(10) + "e30"},

		// Too much.
		{nines(41), refusedNumber, refusedNumber},
		{"1" + zeros(40), refusedNumber, refusedNumber},
		{"0." + nines(40), refusedNumber, refusedNumber},
		{nines(20) + "." + nines(21), refusedNumber, refusedNumber},
		{"1e31", refusedNumber, refusedNumber},
		{"1e-31", refusedNumber, refusedNumber},
		{"0e31", refusedNumber, refusedNumber},
		{nines(11) + "e30", refusedNumber, refusedNumber},
		{"0." + zeros(10) + "1e-30", refusedNumber, refusedNumber},
		{"1e400", refusedNumber, refusedNumber},
		{"1e1000000000", refusedNumber, refusedNumber},
		{"-1e-1000000000", refusedNumber, refusedNumber},
		{"1e99999999999999999999", refusedNumber, refusedNumber},
		{nines(100_000), refusedNumber, refusedNumber},

		// No numbers.
		{"", refusedNumber, noJSON},
		{" ", refusedNumber, noJSON},
		{"-", refusedNumber, noJSON},
		{"+1", refusedNumber, noJSON},
		{".5", refusedNumber, noJSON},
		{"5.", refusedNumber, noJSON},
		{"01", refusedNumber, noJSON},
		{"-01.5", refusedNumber, noJSON},
		{"1.2.3", refusedNumber, noJSON},
		{"1,5", refusedNumber, noJSON},
		{"1 000", refusedNumber, noJSON},
		{"1_000", refusedNumber, noJSON},
		{"1'000", refusedNumber, noJSON},
		{"0x10", refusedNumber, noJSON},
		{"1e", refusedNumber, noJSON},
		{"1e+", refusedNumber, noJSON},
		{"1e5.0", refusedNumber, noJSON},
		{"NaN", refusedNumber, noJSON},
		{"Infinity", refusedNumber, noJSON},
		{"-Infinity", refusedNumber, noJSON},
		{"$1", refusedNumber, noJSON},
		{"1 USD", refusedNumber, noJSON},
		{"\u0661\u0662", refusedNumber, noJSON},
		{"\uff11", refusedNumber, noJSON},
		{"null", refusedNumber, refusedNumber},
		{"true", refusedNumber, refusedNumber},
		{"[1]", refusedNumber, refusedNumber},
		{"{}", refusedNumber, refusedNumber},

		// White space is none of a number's, and any of JSON's.
		{" 1", refusedNumber, "1e0"},
		{"1 ", refusedNumber, "1e0"},

		// Escapes are undone before a string is read.
		{`1\u0030`, "10e0", noJSON},
		{`\u002d1\u002e50`, "-150e-2", noJSON},
		{`1\u0065\u0035`, refusedNumber, noJSON},
	}
	require.GreaterOrEqual(t, len(literals), 60)
	for _, tc := range literals {
		t.Run(tc.literal[:min(len(tc.literal), 50)], func(t *testing.T) {
			t.Parallel()
			available := func(c *cardwire.Card) decimal.Decimal { return c.Available }
			assert.Equal(t, tc.text, amountRead(t, `"available":"123.450"`, `"available":"`+tc.literal+`"`, available), "text")
			assert.Equal(t, tc.number, amountRead(t, `"pending":7.25`, `"pending":`+tc.literal, func(c *cardwire.Card) decimal.Decimal { return c.Pending }), "number")
			// Each form is taken for the other, and read by its own rules.
			assert.Equal(t, tc.number, amountRead(t, `"available":"123.450"`, `"available":`+tc.literal, available), "number for string")
		})
	}
}

// amountRead makes the service respond with a card that differs in one field, and
// returns what that was read as.
func amountRead(t *testing.T, old, field string, of func(*cardwire.Card) decimal.Decimal) string {
	t.Helper()
	c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id=card-1", wiretest.Success(wiretest.Edited(t, wiretest.SingleCard, old, field)))
	card, err := c.GetCard(t.Context(), "card-1")
	if err == nil {
		return exactText(of(card))
	}
	if told := wiretest.FactsOf(t, err); told != suiteUnfit {
		assert.Equal(t, suiteUnreadable, told)
		return noJSON
	}
	return refusedNumber
}

func exactText(d decimal.Decimal) string { return fmt.Sprintf("%se%d", d.Coefficient(), d.Exponent()) }

// A program may set the variables of the decimal package as it likes: neither
// what is sent nor what is read changes with them. Not parallel: they belong to
// all tests.
func TestNoAmountHeedsTheVariablesOfDecimal(t *testing.T) {
	want := conversationOfMoney(t)
	assert.Contains(t, want.sent, `"transferAmount":"250.50"`)
	assert.Contains(t, want.read, "12345000e-5 725e-2 3e0 150e-2")
	assert.Contains(t, want.encoded, `"available":"123.45000","pending":7.25,"frozen":3,`)
	for name, flip := range map[string]func(){
		"DivisionPrecision":            func() { decimal.DivisionPrecision = 0 },
		"MarshalJSONWithoutQuotes":     func() { decimal.MarshalJSONWithoutQuotes = !decimal.MarshalJSONWithoutQuotes },
		"TrimTrailingZeros":            func() { decimal.TrimTrailingZeros = !decimal.TrimTrailingZeros },
		"UseScientificNotation":        func() { decimal.UseScientificNotation = !decimal.UseScientificNotation },
		"ExpMaxIterations":             func() { decimal.ExpMaxIterations = 0 },
		"PowPrecisionNegativeExponent": func() { decimal.PowPrecisionNegativeExponent = 0 },
		"MaxDecodeExponent":            func() { decimal.MaxDecodeExponent = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			division, iterations, power, exponent := decimal.DivisionPrecision, decimal.ExpMaxIterations, decimal.PowPrecisionNegativeExponent, decimal.MaxDecodeExponent
			quotes, trim, scientific := decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros, decimal.UseScientificNotation
			t.Cleanup(func() {
				decimal.DivisionPrecision, decimal.ExpMaxIterations, decimal.PowPrecisionNegativeExponent, decimal.MaxDecodeExponent = division, iterations, power, exponent
				decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros, decimal.UseScientificNotation = quotes, trim, scientific
			})
			flip()
			assert.Equal(t, want, conversationOfMoney(t))
		})
	}
}

// money is all that is sent, read, printed and encoded of amounts.
type money struct{ sent, read, encoded, printed string }

// conversationOfMoney goes through the operations that have amounts. Its own are
// made without the functions that heed a variable.
func conversationOfMoney(t *testing.T) money {
	t.Helper()
	p := cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "PHP", TransferAmount: decimal.New(2_505_000, -4),
		Extra: map[string]string{"branch": "Makati"},
	}
	s := wiretest.Script(t,
		wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(wiretest.Transfer)},
		wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Page(wiretest.Edited(t, wiretest.ListedCard, "123.450", "123.45000"))},
		wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(wiretest.SingleCard)},
		wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(`[` + wiretest.Edited(t, wiretest.BIN, `1000.5,`, `10005e-1,`) + `]`)},
		wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(`[` + wiretest.Currency + `]`)},
	)
	c := wiretest.NewClient(t, s)
	m := money{printed: fmt.Sprintf("%v %s %+v %#v", p, p, &p, []cardwire.TransferParams{p}) + p.LogValue().String()}
	ctx := context.WithoutCancel(t.Context())
	_, err := c.CreateTransfer(ctx, p)
	require.NoError(t, err)
	page, err := c.ListCards(ctx, cardwire.ListCardsParams{})
	require.NoError(t, err)
	card, err := c.GetCard(ctx, "card-1")
	require.NoError(t, err)
	bins, err := c.ListBINs(ctx)
	require.NoError(t, err)
	currencies, err := c.ListRemittanceCurrencies(ctx)
	require.NoError(t, err)

	m.sent = strings.Join(s.Requests, "\n\n")
	for _, v := range []*cardwire.Card{&page.Cards[0], card} {
		for _, d := range []decimal.Decimal{v.Available, v.Pending, v.Frozen, v.Fee} {
			m.read += exactText(d) + " "
		}
	}
	for _, d := range []decimal.Decimal{bins[0].DayPurchaseLimit, bins[0].ForeignFees[0].High, bins[0].RefuseRate, currencies[0].FeeRate} {
		m.read += exactText(d) + " "
	}
	kept, err := p.RevealJSON()
	require.NoError(t, err)
	encoded, err := json.Marshal([]any{page, card, bins, currencies})
	require.NoError(t, err)
	m.encoded = string(kept) + string(encoded)
	return m
}
