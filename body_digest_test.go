package cardwire_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// digestJournal keeps the digest of what is about to be sent, and lets nothing go.
type digestJournal struct{ digest string }

var errNothingGoes = errors.New("nothing goes")

func (j *digestJournal) Begin(_ context.Context, i cardwire.Intent) error {
	j.digest = i.BodySHA256
	return errNothingGoes
}

func (j *digestJournal) End(context.Context, cardwire.Intent, cardwire.IntentResult) error {
	return nil
}

// These values are in the journals of others. A digest that changes with a release
// turns every order that is pending then into ErrOtherBody: do not change them. They
// were computed by another program: the SHA-256 over all names and values that are
// sent, sorted by name, each preceded by its length in bytes and a colon.
func TestBodyDigestsAreTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	const record = "6f1ab0f2-3c53-4f0c-9f0a-2d8f3c1f7a10"
	for name, tc := range map[string]struct {
		call func(context.Context, *cardwire.Client) error
		want string
	}{
		"a transfer of few fields": {func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.CreateTransfer(ctx, cardwire.TransferParams{
				MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("10"),
			})
			return err
		}, "be18847abad7cc1f172c0c52392a88a4460aa91c71fd0f1744d84104df446e2f"},
		"a transfer of all fields": {func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.CreateTransfer(ctx, cardwire.TransferParams{
				MerchantOrderNo: "order-2", PayoutCurrency: "JPY", TransferType: cardwire.TransferTypeC2C,
				PayoutMethod: cardwire.PayoutMethodBankTransfer, SenderBeneficiaryRelationship: "1", TransferAmount: decimal.RequireFromString("1234567.5"),
				SenderSourceOfFund: "2", PurposeOfRemittance: "3", SenderFirstName: "Ada", SenderLastName: "O'Brien-Łoś",
				SenderGender: "F", SenderMobileNumber: "+4915112345678", SenderIDType: "4", SenderIDNumber: "L01X00T47",
				SenderDateOfBirth: cardwire.Date{Year: 1990, Month: 2, Day: 28}, SenderNationality: "DE", SenderIDIssueCountry: "276",
				SenderCountry: "DE", SenderAddress: "1 Main St, \"Flat\" 2\nBerlin", ReceiverNativeFirstName: "花子", ReceiverNativeLastName: "山田",
				ReceiverIDType: "5", ReceiverIDNumber: "12345678", ReceiverMobileNumber: "+819012345678", ReceiverBankAccountNumber: "7654321",
				Extra: map[string]string{"zzNewField": "z", "aaNewField": "a"},
			})
			return err
		}, "b2218f6e9f0f59a1b22b2cc89877e25a6420b074ab5019f142e5744e43e5ec50"},
		"a cancellation": {func(ctx context.Context, c *cardwire.Client) error { return c.CancelOperation(ctx, record) }, "8efb03ce6f46fa4ebef73881ac974b2ae9de9b2e0562e2d70190c4dd66834fd9"},
		"a retry":        {func(ctx context.Context, c *cardwire.Client) error { return c.RetryOperation(ctx, record) }, "2a3beab1cecafeeb6142b28c7ce434b585aac6a836cc9ee4901bc57ff2ae4a0a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &digestJournal{}
			client, err := cardwire.New("https://api.example.com/api/v1", "key", cardwire.WithJournal(journal))
			require.NoError(t, err)
			require.ErrorIs(t, tc.call(t.Context(), client), errNothingGoes)
			assert.Equal(t, tc.want, journal.digest)
		})
	}
}
