package contract_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/internal/test/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Run stops at the first difference, and says where.
func TestSuiteStops(t *testing.T) {
	t.Parallel()
	another := json.RawMessage(`{"card_no":"493875******0013","cvv":"***","expire_date":"**/****","pan":"b3RoZXI="}`)
	for want, code := range map[string]int{"GetCardSecrets: cardwire: ": 403, "GetCardSecrets: got": 200} {
		s := contract.NewService()
		s.Handle("POST", "/cards/private", func(*http.Request) (int, string, any) { return code, "success", another })
		made, err := contract.Run(t.Context(), contract.Client(t, "https://cards.example/api/v1", s))
		require.ErrorContains(t, err, want)
		assert.Len(t, made, 5)
		require.ErrorContains(t, contract.Executed(s), "ledger: got")
	}
}
