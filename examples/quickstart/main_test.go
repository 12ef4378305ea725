package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// live runs the program and returns its account.
func live(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	return out.String()
}

func TestTheDay(t *testing.T) {
	account := live(t)
	for _, line := range []string{
		`BIN +PRODUCT +NETWORK +CURRENCY +DEPOSIT FEE +FOREIGN FEE +STATE`,
		`49387519 +Prepaid Plus +Visa +GBP +0\.01 +0-100: 0\.5, rate 0\.015 +open`,
		`65312478 +.* +under maintenance`,
		`The account's capacity is \d+ cards\.`,
		`25 cards, on 3 pages of 10:`,
		`suspended +2`,
		`number +428837\*{6}\d{4}`,
		`listed as +428837\*{6}\d{4}, CVV \*{3}, valid until \d\d/\d{4}`,
		`secrets +428837\*{6}\d{4}, CVV \*{3}, valid until \*\*/\*{4}, encrypted number \*{3}`,
		`EUR +FR +Bank Transfer +0\.004 +1\.5 +10 +45000\.50 +0`,
		`operation [0-9a-f-]{36}, under our ID 5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01`,
		`The card is now frozen\. Blocked: true\.`,
		`cancel ` + failedTopUp + `: done`,
		`retry  ` + failedFreeze + `: done`,
		`front\.png, \d+ bytes: attachment key att/[0-9a-f]+`,
		`cardwire\.TransferParams\{MerchantOrderNo: order-2025-0001, .*, TransferAmount: 10\.00, \.\.\.\}`,
		`order order-2025-0001 is accepted by the service as AO[0-9a-f]+: status wait_process`,
		`cardwire: CreateTransfer order-2025-0002: unknown outcome: .*: ask the service about order-2025-0002 .*`,
		`What to do: reconcile\.`,
		`Times that the service executed order-2025-0002: 1`,
	} {
		assert.Regexp(t, regexp.MustCompile(`(?m)^ +`+line+`$`), account)
	}
	assert.NotRegexp(t, `[0-9]{12}`, account)
	assert.NotContains(t, account, cardwiretest.DefaultKey)
	assert.Equal(t, account, live(t), "what a reader sees twice is the same twice")
}

// A step that fails ends the day, after what it has printed.
func TestTheDayEndsWithAFailure(t *testing.T) {
	for op, title := range map[string]string{
		"ListBINs": "Compare card products", "ListBINsUnderMaintenance": "Compare card products",
		"CardCapacity": "Compare card products", "ListCards": "Count the cards", "GetCard": "Look at a card",
		"GetCardSecrets": "Look at a card", "ListRemittanceStates": "See where money can go",
		"ListRemittanceCurrencies": "See where money can go", "FreezeCard": "Freeze the card",
		"CancelOperation": "Retry and cancel failed operations", "RetryOperation": "Retry and cancel failed operations",
		"UploadImage": "Upload an identity image", "CreateTransfer": "Send money",
	} {
		client, fake := cardwiretest.NewClient(t)
		fake.AddFailedOperation(failedTopUp, "transfer_in")
		fake.AddFailedOperation(failedFreeze, "freeze")
		fake.Fail(op, cardwiretest.Fault{Status: 403}, -1)
		var out strings.Builder
		require.ErrorIs(t, (&day{client: client, fake: fake}).live(t.Context(), &out), cardwire.ErrRefused, op)
		assert.Contains(t, "\n"+out.String(), "\n"+title+"\n", op)
		assert.NotContains(t, out.String(), "lose the response", op)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, run(ctx, &strings.Builder{}), context.Canceled)
}
