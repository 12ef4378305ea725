package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A harness that passes every client shows nothing. These two send a POST again
// by themselves, and it must see that.
func TestHarnessCatchesOthers(t *testing.T) {
	tests := []struct {
		name   string
		caller func() Caller
	}{
		{"go-retryablehttp with its defaults", Retrying},
		{"net/http with an Idempotency-Key", Idempotent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Calls = 516                // 12 for each kind
			cfg.Patience = 5 * time.Second // they wait and retry where cardwire has long returned
			report, err := Run(t.Context(), cfg, tt.caller())
			require.NoError(t, err)
			t.Logf("%s", report)
			assert.Positive(t, report.Total.Duplicated, "the harness saw no duplicate")
			assert.NotEmpty(t, report.Complaints)
		})
	}
}
