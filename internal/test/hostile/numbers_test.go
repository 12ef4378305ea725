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

func nines(n int) string { return strings.Repeat("9", n) }

func zeros(n int) string { return strings.Repeat("0", n) }

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
