package contract_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inProcess returns a client whose requests the service answers without a socket.
func inProcess(t *testing.T, s *cardwiretest.Service, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append([]cardwire.Option{
		cardwire.WithHTTPClient(&http.Client{Transport: contract.NewRecorder(t, s)}),
		cardwire.WithProfile(contract.Profile()), cardwire.WithStrictDrift(),
	}, opts...)...)
	require.NoError(t, err)
	return c
}

// overHTTP returns a client whose own connections lead to the service.
func overHTTP(t *testing.T, s *cardwiretest.Service) *cardwire.Client {
	t.Helper()
	server := httptest.NewServer(contract.NewRecorder(t, s))
	t.Cleanup(server.Close)
	c, err := cardwire.New(server.URL+"/api/v1", cardwiretest.DefaultKey,
		cardwire.WithProfile(contract.Profile()), cardwire.WithStrictDrift())
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(*testing.T, *cardwiretest.Service) *cardwire.Client{
		"in process": func(t *testing.T, s *cardwiretest.Service) *cardwire.Client { return inProcess(t, s) },
		"over HTTP":  overHTTP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := contract.NewService()
			made, err := contract.Run(t.Context(), way(t, s), contract.Fake)
			require.NoError(t, err)
			assert.Len(t, made, 21)
			require.NoError(t, contract.Executed(s))
		})
	}
}
