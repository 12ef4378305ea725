package contract_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clientOf returns a client of the service at base, whose requests the transport gets.
func clientOf(t *testing.T, base string, transport http.RoundTripper) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New(base, cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(&http.Client{Transport: transport}), cardwire.WithStrictDrift(),
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = contract.Profile() }))
	require.NoError(t, err)
	return c
}

// inProcess returns a client whose requests are served without a socket.
func inProcess(t *testing.T, service *cardwiretest.Service) *cardwire.Client {
	t.Helper()
	return clientOf(t, "https://cards.example/api/v1", service)
}

// Nothing leaks on the way, in process and over loopback.
func TestSuite(t *testing.T) {
	cardwiretest.NoLeaks(t)
	s := contract.NewService()
	suite(t, s, inProcess(t, s))
	server := cardwiretest.NewServer(t, contract.Options()...)
	contract.Prepare(server.Service)
	suite(t, server.Service, clientOf(t, server.URL, &http.Transport{DisableKeepAlives: true}))
	seeded(t, inProcess(t, seededService()))
}

// suite calls every operation of a prepared service.
func suite(t *testing.T, s *cardwiretest.Service, c *cardwire.Client) {
	t.Helper()
	made, err := contract.Run(t.Context(), c, contract.Fake)
	require.NoError(t, err)
	assert.Len(t, made, 21)
	require.NoError(t, contract.Executed(s))
	_, err = c.GetCard(t.Context(), "card-9") // a refusal has the document's form too
	require.ErrorIs(t, err, cardwire.ErrNotFound)
}

func seededService() *cardwiretest.Service {
	return cardwiretest.New(
		cardwiretest.WithSeed(7), cardwiretest.WithCards(30), cardwiretest.WithProfile(contract.Profile()))
}

// seeded reads everything that a service holds from the beginning.
func seeded(t *testing.T, c *cardwire.Client) {
	t.Helper()
	var ids []string
	for card, err := range c.AllCards(t.Context(), cardwire.ListCardsParams{PageSize: 7}) {
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

// Run stops at the first difference, and says where.
func TestSuiteStops(t *testing.T) {
	t.Parallel()
	another := json.RawMessage(`{"card_no":"493875******0013","cvv":"***","expire_date":"**/****","pan":"b3RoZXI="}`)
	for want, code := range map[string]int{"GetCardSecrets: cardwire: ": 403, "GetCardSecrets: got": 200} {
		s := contract.NewService()
		s.Handle("POST", "/cards/private", func(*http.Request) (int, string, any) { return code, "success", another })
		made, err := contract.Run(t.Context(), inProcess(t, s), contract.Fake)
		require.ErrorContains(t, err, want)
		assert.Len(t, made, 6)
		require.ErrorContains(t, contract.Executed(s), "ledger: got")
	}
}
