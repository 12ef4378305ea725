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
	"github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func nines(n int) string { return strings.Repeat("9", n) }

func zeros(n int) string { return strings.Repeat("0", n) }

// A program may set the variables of the decimal package: they change neither what is sent nor
// what is read. Not parallel: all tests share them.
func TestNoAmountHeedsTheVariablesOfDecimal(t *testing.T) {
	want := conversationOfMoney(t)
	assert.Contains(t, want, `"transferAmount":"250.50"`)
	assert.Contains(t, want, `"available":"1250.50000","pending":12.5,"frozen":0.25,`)
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
		MerchantOrderNo: "order-7", PayoutCurrency: "PHP", TransferAmount: decimal.New(2_505_000, -4),
	}
	s := wiretest.Script(t,
		wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(contract.Data("order"))})
	_, err := wiretest.NewClient(t, s).CreateTransfer(t.Context(), p)
	require.NoError(t, err)
	kept, err := p.RevealJSON()
	require.NoError(t, err)
	told = fmt.Sprintf("%v %s %+v %#v", p, p, &p, []cardwire.TransferParams{p}) + p.LogValue().String() + string(kept)
	for _, read := range []struct {
		data string
		into any
	}{
		{wiretest.Edited(t, contract.Data("second"), "1250.500", "1250.50000"), new(cardwire.CardPage)},
		{contract.Data("suspended"), new(cardwire.Card)},
		{contract.Element("currencies", 0), new(cardwire.RemittanceCurrency)},
		{wiretest.Edited(t, contract.Element("bins", 0), `10000.5,`, `100005e-1,`), new(cardwire.BIN)},
	} {
		require.NoError(t, json.Unmarshal([]byte(read.data), read.into))
		encoded, err := json.Marshal(read.into)
		require.NoError(t, err)
		told += string(encoded)
	}
	return told + strings.Join(s.Requests, "")
}
