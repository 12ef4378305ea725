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

// A program may set the variables of the decimal package as it likes: neither
// what is sent nor what is read changes with them. Not parallel: they belong to
// all tests.
func TestNoAmountHeedsTheVariablesOfDecimal(t *testing.T) {
	want := conversationOfMoney(t)
	assert.Contains(t, want, `"transferAmount":"250.50"`)
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
// is sent, and what is read as it is printed and encoded.
func conversationOfMoney(t *testing.T) (told string) {
	t.Helper()
	p := cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "PHP", TransferAmount: decimal.New(2_505_000, -4),
	}
	s := wiretest.Script(t, wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(wiretest.Transfer)})
	_, err := wiretest.NewClient(t, s).CreateTransfer(t.Context(), p)
	require.NoError(t, err)
	kept, err := p.RevealJSON()
	require.NoError(t, err)
	told = fmt.Sprintf("%v %s %+v %#v", p, p, &p, []cardwire.TransferParams{p}) + p.LogValue().String() + string(kept)
	for _, read := range []struct {
		data string
		into any
	}{
		{wiretest.Edited(t, hostilePage, "123.450", "123.45000"), new(cardwire.CardPage)},
		{wiretest.SingleCard, new(cardwire.Card)}, {wiretest.Currency, new(cardwire.RemittanceCurrency)},
		{wiretest.Edited(t, wiretest.BIN, `1000.5,`, `10005e-1,`), new(cardwire.BIN)},
	} {
		require.NoError(t, json.Unmarshal([]byte(read.data), read.into))
		encoded, err := json.Marshal(read.into)
		require.NoError(t, err)
		told += string(encoded)
	}
	return told + strings.Join(s.Requests, "")
}
