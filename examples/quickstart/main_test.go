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

// live runs the program and returns its account, in which nothing may be as long
// as a card number.
func live(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, args))
	assert.NotRegexp(t, `[0-9]{12}`, out.String())
	assert.NotContains(t, out.String(), cardwiretest.DefaultKey)
	return out.String()
}

// withoutService makes the program use its own fake service.
func withoutService(t *testing.T) {
	t.Helper()
	t.Setenv("CARDWIRE_BASE_URL", "")
	t.Setenv("CARDWIRE_API_KEY", "")
}

// withServer makes the program use a fake service as if it were a real one.
func withServer(t *testing.T) *cardwiretest.Server {
	t.Helper()
	server := cardwiretest.NewServer(t)
	t.Setenv("CARDWIRE_BASE_URL", server.URL)
	t.Setenv("CARDWIRE_API_KEY", server.Key)
	return server
}

func TestDayWithTheFakeService(t *testing.T) {
	withoutService(t)
	account := live(t)
	for _, line := range []string{
		`BIN +PRODUCT +NETWORK +CURRENCY +DEPOSIT FEE +FOREIGN FEE +STATE`,
		`49387519 +Prepaid Plus +Visa +GBP +0\.01 +0-100: 0\.5, rate 0\.015 +open`,
		`65312478 +.* +under maintenance`,
		`The account's capacity is \d+ cards\.`,
		`25 cards, on 3 pages of 10\. The first 25 by status:`,
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
		`cardwire\.TransferParams\{MerchantOrderNo: order-2025-0001, PayoutCurrency: EUR, TransferAmount: 10\.00, \.\.\.\}`,
		`order order-2025-0001 is accepted by the service as AO[0-9a-f]+: status wait_process`,
		`CreateTransfer order-2025-0002: unknown outcome: .*: ask the service about order-2025-0002 before sending it again`,
		`In our books: unresolved, until the service has said what became of order-2025-0002\.`,
		`Times that the service executed order-2025-0002: 1`,
	} {
		assert.Regexp(t, regexp.MustCompile(`(?m)^ +`+line+`$`), account)
	}
	assert.LessOrEqual(t, strings.Count(account, "\n"), 65, "it is to be read at a glance")
}

// What a reader sees twice must be the same twice.
func TestDayIsTheSameEachTime(t *testing.T) {
	withoutService(t)
	assert.Equal(t, live(t), live(t))
}

func TestServiceOfTheEnvironmentIsOnlyReadWithoutWrite(t *testing.T) {
	server := withServer(t)
	account := live(t)
	assert.Contains(t, account, "Nothing was changed. The flag -write does the rest of the day.\n")
	assert.NotContains(t, account, "Send money")
	reads := map[string]bool{}
	for _, r := range server.Requests() {
		reads[r.Method+" "+r.Path] = true
	}
	assert.Equal(t, map[string]bool{
		"GET /api/v1/bins": true, "GET /api/v1/bins/maintenance": true, "GET /api/v1/account/capacity": true,
		"GET /api/v1/cards": true, "GET /api/v1/cards/info": true, "POST /api/v1/cards/private": true,
		"GET /api/v1/remittance/states": true, "GET /api/v1/remittance/currency": true,
	}, reads)
	assert.Empty(t, server.Ledger())
}

func TestServiceOfTheEnvironmentIsChangedWithWrite(t *testing.T) {
	server := withServer(t)
	server.AddFailedOperation(failedTopUp, "transfer_in")
	server.AddFailedOperation(failedFreeze, "freeze")
	account := live(t, "-write")
	var done []string
	for _, e := range server.Ledger() {
		done = append(done, e.Op)
	}
	assert.Equal(t, []string{"FreezeCard", "CancelOperation", "RetryOperation", "UploadImage", "CreateTransfer"}, done)
	assert.NotContains(t, account, "lose the response", "mishaps are for the fake service only")
}

func TestRefusedWriteIsExplainedAndTheDayGoesOn(t *testing.T) {
	withServer(t) // knows nothing of the operations
	account := live(t, "-write")
	assert.Contains(t, account, "cancel "+failedTopUp+"\n  CancelOperation "+failedTopUp+": refused, HTTP 422, code 422")
	assert.Contains(t, account, "\n  In our books: failed.\n")
	assert.Contains(t, account, ": status wait_process\n")
}

// That this call sent nothing proves nothing about one before it.
func TestWriteThatWasNotSentLeavesTheBooksAsTheyWere(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	d := &day{client: client, orderNo: "order-1", currency: cardwire.RemittanceCurrency{PayoutCurrency: "EUR"}}
	var out strings.Builder
	require.NoError(t, d.tell(&out, "Send money", func() error { return d.sendMoney(ctx) }))
	assert.Contains(t, out.String(), "\n  In our books: as before. It can be called again, with the same reference.\n")
	assert.NotContains(t, out.String(), "failed")
	assert.Empty(t, service.Requests())
}

// A service may identify cards by as many digits as their numbers have.
func TestLongIdentifierIsNotPrinted(t *testing.T) {
	server := cardwiretest.NewServer(t, cardwiretest.WithCards(0))
	server.SetCard(`{"id":"999999999999999999"}`)
	t.Setenv("CARDWIRE_BASE_URL", server.URL)
	t.Setenv("CARDWIRE_API_KEY", server.Key)
	assert.Regexp(t, `(?m)^  card +\(long number\)$`, live(t))
}

func TestFailedReadEndsTheDayWithItsReason(t *testing.T) {
	server := withServer(t)
	t.Setenv("CARDWIRE_API_KEY", "another-key")
	var out strings.Builder
	err := run(t.Context(), &out, nil)
	require.ErrorContains(t, err, "check the API key")
	assert.Equal(t, "Compare card products\n\n", out.String())
	assert.Len(t, server.Requests(), 1)
}

func TestHalfAnEnvironmentIsAnError(t *testing.T) {
	withoutService(t)
	t.Setenv("CARDWIRE_API_KEY", "a-key")
	require.ErrorContains(t, run(t.Context(), &strings.Builder{}, nil), "CARDWIRE_BASE_URL is empty")
}

func TestTheCommandLine(t *testing.T) {
	withoutService(t)
	for want, args := range map[string][]string{
		"quickstart: flag provided but not defined: -nope: -help lists the flags\n": {"-nope"},
		"quickstart: unexpected argument \"write\": -help lists the flags\n":        {"write"},
	} {
		var out, errs strings.Builder
		assert.Equal(t, 2, status(t.Context(), &out, &errs, args))
		assert.Equal(t, want, errs.String())
		assert.Empty(t, out.String())
	}
	var out, errs strings.Builder
	assert.Zero(t, status(t.Context(), &out, &errs, []string{"-help"}))
	assert.Empty(t, errs.String())
	for _, part := range []string{"every operation of the service", "go run ./examples/quickstart", "CARDWIRE_BASE_URL", "CARDWIRE_API_KEY", "\n  -write\n"} {
		assert.Contains(t, out.String(), part)
	}
}

func TestInterruptedDayEnds(t *testing.T) {
	withoutService(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs strings.Builder
	assert.Equal(t, 130, status(ctx, &out, &errs, nil))
	assert.Equal(t, "quickstart: interrupted\n", errs.String())
}
