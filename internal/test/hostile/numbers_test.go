package hostile_test

import (
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

func nines(n int) string { return strings.Repeat("9", n) }

func zeros(n int) string { return strings.Repeat("0", n) }

// literals are amounts by what they are as a string and as a number: the coefficient and
// the exponent, in which 12.340 is 12340e-3. More are in TestParseDecimal of internal/wire.
func literals() map[string][2]string {
	all := map[string][2]string{
		// White space is none of a number's, and any of JSON's.
		" 1": {refusedNumber, "1e0"}, "1 ": {refusedNumber, "1e0"},
		// Escapes are undone before a string is read.
		`1\u0030`: {"10e0", noJSON}, `\u002d1\u002e50`: {"-150e-2", noJSON}, `1\u0065\u0035`: {refusedNumber, noJSON},
	}
	for literal, exact := range map[string]string{
		"0": "0e0", "-0.00": "0e-2", "1": "1e0", "0.1": "1e-1", "0.3": "3e-1", "-12.340": "-12340e-3",
		"100.00":              "10000e-2",
		"0.30000000000000004": "30000000000000004e-17", "9007199254740993.01": "900719925474099301e-2", // no float64
		"9223372036854775808": "9223372036854775808e0", "18446744073709551616.5": "184467440737095516165e-1",
		nines(40): nines(40) + "e0", "0." + nines(39): nines(39) + "e-39", "0." + zeros(38) + "1": "1e-39",
	} {
		all[literal] = [2]string{exact, exact}
	}
	for literal, number := range map[string]string{ // an exponent is for numbers only
		"1e2": "1e2", "1E+2": "1e2", "1.50e3": "150e1", "-2.5E-3": "-25e-4", "0e30": "0e30", "1e-30": "1e-30",
		nines(10) + "e30": nines(10) + "e30",
	} {
		all[literal] = [2]string{refusedNumber, number}
	}
	for _, tooMuch := range []string{
		nines(41), "0." + nines(40), nines(20) + "." + nines(21), "1e31", "0e31", nines(11) + "e30", "1e400",
		"1e1000000000", "-1e-1000000000", nines(100_000), "null", "true", "[1]", "{}",
	} {
		all[tooMuch] = [2]string{refusedNumber, refusedNumber}
	}
	for _, none := range []string{
		"", "-", "+1", ".5", "5.", "01", "1,5", "1 000", "1_000", "0x10", "1e", "NaN", "Infinity", "$1", "1 USD",
		"\u0661\u0662",
	} {
		all[none] = [2]string{refusedNumber, noJSON}
	}
	return all
}

// Amounts are read exactly and with their scale, or not at all.
func TestAmountsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	available := func(c *cardwire.Card) decimal.Decimal { return c.Available }
	pending := func(c *cardwire.Card) decimal.Decimal { return c.Pending }
	for literal, want := range literals() {
		t.Run(literal[:min(len(literal), 50)], func(t *testing.T) {
			t.Parallel()
			const text, number = `"available":"123.450"`, `"pending":7.25`
			assert.Equal(t, want[0], amountRead(t, text, `"available":"`+literal+`"`, available), "text")
			assert.Equal(t, want[1], amountRead(t, number, `"pending":`+literal, pending), "number")
			// Each form is taken for the other, and read by its own rules.
			assert.Equal(t, want[1], amountRead(t, text, `"available":`+literal, available), "number for string")
		})
	}
}

// amountRead makes the service respond with a card that differs in one field, and
// returns what that was read as.
func amountRead(t *testing.T, old, field string, of func(*cardwire.Card) decimal.Decimal) string {
	t.Helper()
	response := wiretest.Success(wiretest.Edited(t, wiretest.SingleCard, old, field))
	card, err := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id=card-1", response).GetCard(t.Context(), "card-1")
	if err == nil {
		return exactText(of(card))
	}
	if told := wiretest.FactsOf(t, err); told != hostileUnfit {
		assert.Equal(t, hostileUnreadable, told)
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
	assert.Contains(t, want, `"transferAmount":"250.50"`)
	assert.Contains(t, want, "12345000e-5 725e-2 3e0 150e-2")
	assert.Contains(t, want, `"available":"123.45000","pending":7.25,"frozen":3,`)
	for _, v := range []*bool{
		&decimal.MarshalJSONWithoutQuotes, &decimal.TrimTrailingZeros, &decimal.UseScientificNotation,
	} {
		*v = !*v
		assert.Equal(t, want, conversationOfMoney(t))
		*v = !*v
	}
	for _, v := range []*int{
		&decimal.DivisionPrecision, &decimal.ExpMaxIterations, &decimal.PowPrecisionNegativeExponent,
		&decimal.MaxDecodeExponent,
	} {
		before := *v
		*v = 0
		assert.Equal(t, want, conversationOfMoney(t))
		*v = before
	}
}

// conversationOfMoney goes through the operations that have amounts, and returns all that
// is sent, read, printed and encoded of them. Its own are made without the functions that
// heed a variable.
func conversationOfMoney(t *testing.T) string {
	t.Helper()
	p := cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "PHP", TransferAmount: decimal.New(2_505_000, -4),
		Extra: map[string]string{"branch": "Makati"},
	}
	responses := []string{
		wiretest.Success(wiretest.Transfer),
		wiretest.Page(wiretest.Edited(t, wiretest.ListedCard, "123.450", "123.45000")),
		wiretest.Success(wiretest.SingleCard), wiretest.Success(`[` + wiretest.Currency + `]`),
		wiretest.Success(`[` + wiretest.Edited(t, wiretest.BIN, `1000.5,`, `10005e-1,`) + `]`),
	}
	exchanges := make([]wiretest.Exchange, len(responses))
	for i := range responses {
		exchanges[i] = wiretest.Exchange{Want: wiretest.Anything, Response: responses[i]}
	}
	s := wiretest.Script(t, exchanges...)
	c := wiretest.NewClient(t, s)
	_, err := c.CreateTransfer(t.Context(), p)
	require.NoError(t, err)
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
	require.NoError(t, err)
	card, err := c.GetCard(t.Context(), "card-1")
	require.NoError(t, err)
	currencies, err := c.ListRemittanceCurrencies(t.Context())
	require.NoError(t, err)
	bins, err := c.ListBINs(t.Context())
	require.NoError(t, err)

	told := fmt.Sprintf("%v %s %+v %#v", p, p, &p, []cardwire.TransferParams{p}) + p.LogValue().String()
	told += strings.Join(s.Requests, "\n\n")
	for _, d := range []decimal.Decimal{
		page.Cards[0].Available, page.Cards[0].Pending, page.Cards[0].Frozen, page.Cards[0].Fee,
		card.Available, card.Fee, bins[0].DayPurchaseLimit, bins[0].ForeignFees[0].High, bins[0].RefuseRate,
		currencies[0].FeeRate,
	} {
		told += exactText(d) + " "
	}
	kept, err := p.RevealJSON()
	require.NoError(t, err)
	encoded, err := json.Marshal([]any{page, card, bins, currencies})
	require.NoError(t, err)
	return told + string(kept) + string(encoded)
}
