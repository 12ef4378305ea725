package contract_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inProcess returns a client whose requests are served without a socket.
func inProcess(t *testing.T, service http.RoundTripper) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(&http.Client{Transport: service}),
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = contract.Profile() }), cardwire.WithStrictDrift())
	require.NoError(t, err)
	return c
}

// overHTTP returns a client whose own connections lead to the service.
func overHTTP(t *testing.T, service http.Handler) *cardwire.Client {
	t.Helper()
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	c, err := cardwire.New(server.URL+"/api/v1", cardwiretest.DefaultKey,
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = contract.Profile() }), cardwire.WithStrictDrift())
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*testing.T, *contract.Recorder) *cardwire.Client{
		"in process": func(t *testing.T, r *contract.Recorder) *cardwire.Client { return inProcess(t, r) },
		"over HTTP":  func(t *testing.T, r *contract.Recorder) *cardwire.Client { return overHTTP(t, r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := contract.NewService()
			made, err := contract.Run(t.Context(), client(t, contract.NewRecorder(t, s)), contract.Fake)
			require.NoError(t, err)
			assert.Len(t, made, 21)
			require.NoError(t, contract.Executed(s))
		})
	}
}

// Everything that a service holds from the beginning is read, for the record.
func TestSeededWorld(t *testing.T) {
	t.Parallel()
	s := cardwiretest.New(cardwiretest.WithSeed(7), cardwiretest.WithCards(30), cardwiretest.WithProfile(contract.Profile()))
	c := overHTTP(t, contract.NewRecorder(t, s))
	var ids []string
	for card, err := range c.AllCards(t.Context(), cardwire.ListCardsParams{Limit: 7}) {
		require.NoError(t, err)
		ids = append(ids, card.ID)
	}
	require.Len(t, ids, 30)
	for _, id := range ids {
		card, err := c.GetCard(t.Context(), id)
		require.NoError(t, err)
		secrets, err := c.GetCardSecrets(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, card.Number, secrets.Number)
	}
	bins, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Len(t, bins, 7)
}

// What the client asks for and the service refuses is in the API's form too.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := contract.NewService()
	s.SetCard(`{"id":"card-2","status":2}`)
	c := inProcess(t, contract.NewRecorder(t, s))
	for name, tt := range map[string]struct {
		call func() error
		code int
	}{
		"no card":           {func() error { _, err := c.GetCard(t.Context(), "card-9"); return err }, 404},
		"no card's secrets": {func() error { _, err := c.GetCardSecrets(t.Context(), "card-9"); return err }, 404},
		"no operation": {func() error {
			return c.CancelOperation(t.Context(), "00000000-0000-4000-8000-000000000000")
		}, 422},
		"a closed card": {func() error {
			_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-2"})
			return err
		}, 422},
		"no currency": {func() error {
			_, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{
				MerchantOrderNo: "order-8", PayoutCurrency: "XXX", TransferAmount: decimal.RequireFromString("10"),
			})
			return err
		}, 422},
	} {
		t.Run(name, func(t *testing.T) {
			var refusal *cardwire.Error
			require.ErrorAs(t, tt.call(), &refusal)
			assert.Equal(t, tt.code, refusal.Code)
			assert.Equal(t, cardwire.OutcomeRefused, refusal.Outcome)
		})
	}
	assert.Empty(t, s.Ledger())
}

func TestRecorder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exchanges")
	t.Setenv(contract.RecordTo, file)
	s := contract.NewService()
	for _, c := range []*cardwire.Client{inProcess(t, contract.NewRecorder(t, s)), overHTTP(t, contract.NewRecorder(t, s))} {
		require.NoError(t, c.CancelOperation(t.Context(), "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11"))
		s.AddFailedOperation("6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11", "close")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		var e contract.Exchange
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		assert.Equal(t, "POST /api/v1/cards/adjustAction", e.Method+" "+e.Target)
		assert.Equal(t, "Bearer "+cardwiretest.DefaultKey, e.Header.Get("Authorization"))
		assert.Equal(t, "client_transaction_id=6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11&type=cancel", string(e.Body))
		assert.Equal(t, 200, e.Status)
		assert.Equal(t, "application/json", e.ResponseHeader.Get("Content-Type"))
		assert.Equal(t, `{"code":200,"msg":"success","data":true}`, string(e.ResponseBody))
	}
}

func TestRecorderWithoutAFile(t *testing.T) {
	t.Setenv(contract.RecordTo, t.TempDir()) // a directory
	failed := &failures{T: t}
	c := inProcess(t, contract.NewRecorder(failed, contract.NewService()))
	_, err := c.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, failed.n)
}

// failures counts what would have failed the test.
type failures struct {
	*testing.T
	n int
}

func (f *failures) Errorf(string, ...any) { f.n++ }

// Run stops at the first difference, and says where.
func TestSuiteStops(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code int
		want string
	}{
		"at an error":         {403, "GetCardSecrets: "},
		"at another response": {200, "GetCardSecrets: got"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := contract.NewService()
			s.Handle("POST", "/cards/private", func(*http.Request) (int, string, any) {
				return tt.code, "success", json.RawMessage(
					`{"card_no":"493875******0013","cvv":"***","expire_date":"**/****","pan":"b3RoZXI="}`)
			})
			made, err := contract.Run(t.Context(), inProcess(t, s), contract.Fake)
			require.ErrorContains(t, err, tt.want)
			assert.Len(t, made, 6)
			require.ErrorContains(t, contract.Executed(s), "ledger: got")
		})
	}
}
