package main

import (
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// The guides show this program, to the letter.
func TestTheGuidesShowThisCode(t *testing.T) {
	t.Parallel()
	for guide, tc := range map[string]struct {
		files  []string
		blocks int
	}{
		"payouts.md":    {[]string{"checkout_test.go"}, 1},
		"operations.md": {[]string{"limiter.go", "support_test.go", "telemetry.go"}, 4},
	} {
		text, err := os.ReadFile("../../../docs/" + guide)
		require.NoError(t, err)
		var program strings.Builder
		for _, name := range tc.files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			program.Write(text)
		}
		blocks := goBlock.FindAllStringSubmatch(string(text), -1)
		require.Len(t, blocks, tc.blocks, guide)
		for _, block := range blocks {
			assert.True(t, strings.Contains(program.String(), "\n"+block[1]), "%s: %s", guide, block[1])
		}
	}
}

// The table of River's settings in docs/payouts.md.
func TestTheSettingsOfRiver(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "https://cards.example/api/v1")
	t.Setenv("CARDWIRE_API_KEY", "key")
	o, err := parse(nil)
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{30 * time.Second, 10 * time.Minute, time.Minute, 24 * time.Hour},
		[]time.Duration{o.timeout, o.late, o.sweepEvery, o.giveUpAfter})
	assert.Equal(t, []int64{8, 20}, []int64{int64(o.workers), o.brake})
	config := (&service{settings: o, log: slog.New(slog.DiscardHandler)}).queue()
	assert.Equal(t, []time.Duration{45 * time.Second, time.Minute, 2 * time.Millisecond, 100 * time.Millisecond},
		[]time.Duration{config.JobTimeout, config.RescueStuckJobsAfter, config.FetchCooldown, config.FetchPollInterval})
	assert.Equal(t, river.InsertOpts{MaxAttempts: 1000}, submit{}.InsertOpts())
	for attempt, want := range map[int]time.Duration{1: time.Second, 7: 7 * time.Second, 900: time.Minute} {
		next := (&submitter{}).NextRetry(&river.Job[submit]{JobRow: &rivertype.JobRow{Attempt: attempt}})
		assert.WithinDuration(t, time.Now().Add(want), next, 10*time.Second)
	}
}

// The forms of the resolutions, the addresses and the statement that docs/payouts.md gives.
func TestTheGuideNamesTheOperations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/payouts.md")
	require.NoError(t, err)
	for _, name := range append(states, "POST /payouts", "GET /payouts/{order}", "POST /payouts/{order}/resolve",
		"POST /payouts/{order}/cancel", "GET /healthz", "GET /readyz",
		"executed", "not_executed", "send_again", "service_id", "`"+serviceMoved+"`") {
		assert.Contains(t, string(text), name)
	}
}
