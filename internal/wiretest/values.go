package wiretest

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

const OperationID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

// dec returns the amount with the scale in which it is written.
func Dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func CardNumber(t *testing.T, s string) cardwire.CardNumber {
	t.Helper()
	n, err := cardwire.NewCardNumber(s)
	require.NoError(t, err)
	return n
}

func CVV(t *testing.T, s string) cardwire.CVV {
	t.Helper()
	v, err := cardwire.NewCVV(s)
	require.NoError(t, err)
	return v
}

func EncryptedPAN(t *testing.T, s string) cardwire.EncryptedPAN {
	t.Helper()
	p, err := cardwire.NewEncryptedPAN(s)
	require.NoError(t, err)
	return p
}

// The canaries. No text of any kind may sing of them. The number fails the Luhn
// check. Sealed bytes are none of ASCII, so that they cannot spell them by chance.
const (
	CanaryNumber = "4917365624401735"
	CanaryCVV    = "7351"
	CanaryPAN    = "q83vEjRW+JCrze8S/FZ4kA=="
	CanaryKey    = "skCanaryZq8XvT3mKpW5Hd"
)

// The canaries of replies that are wrong are longer than the others: what an
// error shows beside its words, times and addresses, must not spell one by
// chance. The wire's CVV may have seven digits.
const (
	LongCVV    = "7351537"
	LongNumber = "7365624401" // of canaryNumber
)

// freezeID is the client transaction ID of a freeze.
const FreezeID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"

const UUID = "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"

func SmallTransfer(orderNo string) cardwire.TransferParams {
	return cardwire.TransferParams{MerchantOrderNo: orderNo, PayoutCurrency: "EUR", TransferAmount: Dec("10.50")}
}
