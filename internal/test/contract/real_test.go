package contract_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

// reads are the steps of a suite that changes nothing.
var reads = []string{
	"ListCards", "GetCard", "GetCardSecrets", "ListBINs", "ListBINsUnderMaintenance", "CardCapacity",
	"ListRemittanceStates", "ListRemittanceCurrencies",
}

func TestReal(t *testing.T) {
	if os.Getenv("CARDWIRE_BASE_URL") == "" || os.Getenv("CARDWIRE_API_KEY") == "" {
		t.Skip("there is no real service: CARDWIRE_BASE_URL and CARDWIRE_API_KEY are not both set")
	}
	c, err := cardwire.NewFromEnv(cardwire.WithStrictDrift())
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	made, err := contract.Run(t.Context(), c, contract.Real)
	t.Logf("passed: %v", made)
	require.NoError(t, err)
}

// The fake stands in for the real service here.
func TestRealOnTheFake(t *testing.T) {
	t.Parallel()
	t.Run("with cards", func(t *testing.T) {
		t.Parallel()
		s := cardwiretest.New(cardwiretest.WithProfile(contract.Profile()))
		made, err := contract.Run(t.Context(), overHTTP(t, contract.NewRecorder(t, s)), contract.Real)
		require.NoError(t, err)
		assert.Equal(t, reads, made)
		assert.Empty(t, s.Ledger())
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		s := cardwiretest.New(contract.Options()...)
		made, err := contract.Run(t.Context(), inProcess(t, contract.NewRecorder(t, s)), contract.Real)
		require.NoError(t, err)
		assert.Equal(t, append([]string{"ListCards"}, reads[3:]...), made)
	})
}

// What contradicts the API without being drift is found by the suite.
func TestRealFinds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(*cardwiretest.Service)
		want    string
	}{
		"a masked number in the list": {func(s *cardwiretest.Service) {
			s.SetCard(`{"card_no":"428837******0003"}`)
		}, "ListCards: a number of the list is masked"},
		"a masked CVV in the list": {func(s *cardwiretest.Service) {
			s.SetCard(`{"cvv":"***"}`)
		}, "ListCards: a CVV of the list is masked"},
		"letters in card_bin": {func(s *cardwiretest.Service) {
			s.SetCard(`{"bin_id":101,"card_bin":"42883x","card_no":"4288379977000003"}`)
		}, "ListCards: card_bin is not made of digits"},
		"a seventh status": {func(s *cardwiretest.Service) {
			s.SetCard(`{"status":5}`)
		}, "ListCards: a status is none of the six"},
		"the secrets of another card": {func(s *cardwiretest.Service) {
			s.SetCard(`{"card_no":"4288379977000003"}`)
			s.Handle("POST", "/cards/private", func(*http.Request) (int, string, any) {
				return 200, "success", json.RawMessage(
					`{"card_no":"428837******0019","cvv":"***","expire_date":"**/****","pan":"b3RoZXI="}`)
			})
		}, "GetCardSecrets: the number is another than in the list"},
		"letters in a BIN": {func(s *cardwiretest.Service) {
			s.SetBIN(`{"bin":"42883x"}`)
		}, "ListBINs: a BIN is not made of digits"},
		"a country of three letters": {func(s *cardwiretest.Service) {
			s.SetBIN(`{"country":"USA"}`)
		}, "ListBINs: a country has not two letters"},
		"levels that do not correspond": {func(s *cardwiretest.Service) {
			s.SetBIN(`{"auth_level":1,"auth_requirement":{"level":"advanced","fields":[]}}`)
		}, "ListBINs: auth_level and level do not correspond"},
		"a refusal": {func(s *cardwiretest.Service) {
			s.Fail("CardCapacity", cardwiretest.Fault{Status: 200, Code: 403, Message: "no"}, 9)
		}, "CardCapacity: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := cardwiretest.New(contract.Options()...)
			tt.prepare(s)
			_, err := contract.Run(t.Context(), inProcess(t, s), contract.Real)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
