package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// live runs the program and returns its account.
func live(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	require.Zero(t, status(t.Context(), &out, &out), &out)
	return out.String()
}

func TestTheDay(t *testing.T) {
	account := live(t)
	for _, line := range []string{
		`49387519 Prepaid Plus, Visa, GBP: deposit fee 0\.01, under maintenance: false`,
		`65312478 .*, under maintenance: true`,
		`The account's capacity is 606 cards\.`,
		`suspended: 2`,
		`\d+ is active, with \d+\.\d{3} [A-Z]{3}`,
		`listed as 428837\*{6}\d{4}, CVV \*{3}, valid until \d\d/\d{4}`,
		`secrets: 428837\*{6}\d{4}, CVV \*{3}, encrypted number \*{3}`,
		`EUR to FR by Bank Transfer: rate 0\.004 and 1\.5, from 10 to 45000\.50`,
		`States that a receiver may live in: 11`,
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
		assert.Regexp(t, regexp.MustCompile(`(?m)^  `+line+`$`), account)
	}
	assert.Equal(t, 7, strings.Count(account, "under maintenance: "), "all card products")
	assert.Equal(t, 7, strings.Count(account, " by Bank Transfer: "), "all currencies")
	assert.NotRegexp(t, `[0-9]{12}`, account)
	assert.NotContains(t, account, cardwiretest.DefaultKey)
	assert.Equal(t, account, live(t), "what a reader sees twice is the same twice")
}

// A step that fails ends the day.
func TestTheDayEndsWithAFailure(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var errs strings.Builder
	assert.Equal(t, 1, status(ctx, io.Discard, &errs))
	assert.Contains(t, errs.String(), "quickstart: cardwire: ListBINs: not sent: ")
}
