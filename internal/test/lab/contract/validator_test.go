package contract_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	root "github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/lab/contract"
)

// operations are the twelve of the API, as the document names them.
var operations = []string{
	"AdjustOperation", "CardCapacity", "CreateTransfer", "FreezeCard", "GetCard", "GetCardSecrets", "ListBINs",
	"ListBINsUnderMaintenance", "ListCards", "ListRemittanceCurrencies", "ListRemittanceStates", "UploadImage",
}

// leastExchanges is how many the tests of the root module must at least record.
const leastExchanges = 140

func validator(t *testing.T) *contract.Validator {
	t.Helper()
	v, err := contract.NewValidator(t.Context(), root.Document)
	require.NoError(t, err)
	return v
}

// The exchanges of the root module's tests, recorded while they run once more,
// are as the document says.
func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	v := validator(t)
	all := record(t)
	require.GreaterOrEqual(t, len(all), leastExchanges)
	seen := map[string]int{}
	for i, e := range all {
		op, err := v.Check(t.Context(), e)
		require.NoError(t, err, "exchange %d", i)
		seen[op]++
	}
	assert.Equal(t, operations, slices.Sorted(maps.Keys(seen)))
	t.Logf("%d exchanges are valid: %v", len(all), seen)
}

// record runs the tests of the suite, which write down what passes.
func record(t *testing.T) []root.Exchange {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exchanges")
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./internal/test/contract")
	test.Dir = filepath.Join("..", "..", "..")
	test.Env = append(os.Environ(), root.RecordTo+"="+file, "CARDWIRE_BASE_URL=", "CARDWIRE_PRISM=")
	output, err := test.CombinedOutput()
	require.NoError(t, err, "%s", output)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []root.Exchange
	for line := range bytes.Lines(text) {
		var e root.Exchange
		require.NoError(t, json.Unmarshal(line, &e))
		all = append(all, e)
	}
	return all
}
