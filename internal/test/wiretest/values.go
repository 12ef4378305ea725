package wiretest

import (
	"encoding/json"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// OperationID is the ID of an operation on a card.
const OperationID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

// Dec returns the amount with the scale in which it is written.
func Dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

// CardNumber returns the number s.
func CardNumber(t *testing.T, s string) cardwire.CardNumber {
	t.Helper()
	n, err := cardwire.NewCardNumber(s)
	require.NoError(t, err)
	return n
}

// CVV returns the CVV s.
func CVV(t *testing.T, s string) cardwire.CVV { t.Helper(); return secrets(t, s, CanaryPAN).CVV }

// EncryptedPAN returns the ciphertext s.
func EncryptedPAN(t *testing.T, s string) cardwire.EncryptedPAN {
	t.Helper()
	return secrets(t, "***", s).PAN
}

func secrets(t *testing.T, cvv, pan string) (s cardwire.CardSecrets) {
	t.Helper()
	response := `{"card_no":"491736******1735","cvv":"` + cvv + `","expire_date":"**/****","pan":"` + pan + `"}`
	require.NoError(t, json.Unmarshal([]byte(response), &s))
	return s
}

// The canaries are secrets that nothing may print. The number fails the Luhn check. Scrambled
// bytes are not ASCII, so that they cannot spell a canary by chance.
const (
	CanaryNumber = "4917365624401735"
	CanaryCVV    = "7351"
	CanaryPAN    = "q83vEjRW+JCrze8S/FZ4kA=="
	CanaryKey    = "skCanaryZq8XvT3mKpW5Hd"
)

// The canaries of responses that are wrong are longer than the others: the times and
// addresses in an error must not spell one by chance. A CVV may have seven digits.
const (
	LongCVV    = "7351537"
	LongNumber = "7365624401" // of CanaryNumber
)

// FreezeID is the client transaction ID of a freeze.
const FreezeID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"

// UUID is the ID of an operation that was made before.
const UUID = "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"

// SmallTransfer returns a transfer with the fields that are required.
func SmallTransfer(orderNo string) cardwire.TransferParams {
	return cardwire.TransferParams{MerchantOrderNo: orderNo, PayoutCurrency: "EUR", TransferAmount: Dec("10.50")}
}
