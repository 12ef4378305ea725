package payouts

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// A duration that nobody means is refused. Nothing is late only where that is said.
func TestConfigOfDurations(t *testing.T) {
	t.Parallel()
	const short = ": 30ns is less than a millisecond: write 30*time.Second for seconds"
	for _, tc := range []struct {
		set  func(*Config)
		want string
	}{
		{func(c *Config) { c.Timeout = 30 }, "payouts: Timeout" + short},
		{func(c *Config) { c.Timeout = -1 }, "payouts: Timeout must not be negative"},
		{func(c *Config) { c.LateExecution = 30 }, "payouts: LateExecution" + short},
		{func(c *Config) { c.PurgeAfter = 30 }, "payouts: PurgeAfter" + short},
		{func(c *Config) { c.PurgeAfter = -1 }, "payouts: PurgeAfter must not be negative"},
		{func(c *Config) { c.Workers = -1 }, "payouts: Workers is -1: it must be at least 1, or 0 for 8"},
		{func(c *Config) { c.Rate = -1 }, "payouts: Rate is -1: it must be greater than zero, or 0 for no limit"},
	} {
		c := Config{BaseURL: "https://cards.example/api/v1", APIKey: "k"}
		tc.set(&c)
		_, err := New(new(sql.DB), sqljournal.SQLite, c)
		require.EqualError(t, err, tc.want)
	}
	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, -1: 0, time.Hour: time.Hour} {
		s, err := New(new(sql.DB), sqljournal.PostgreSQL, Config{
			BaseURL: "https://cards.example/api/v1", APIKey: "k", LateExecution: given,
		})
		require.NoError(t, err)
		assert.Equal(t, want, s.config.LateExecution)
	}
}
