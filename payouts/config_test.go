package payouts

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
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

// What may be set in Options too holds wherever it is set, and is refused where both say something else. A key
// source needs no key.
func TestConfigOfOptions(t *testing.T) {
	t.Parallel()
	late := func(d time.Duration) cardwire.Option {
		return cardwire.WithProfile(func(p *cardwire.Profile) { p.LateExecution = d })
	}
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		config  Config
		options []cardwire.Option
		want    cardwire.Settings // its Service is that of an error
	}{
		"defaults": {Config{}, nil, cardwire.Settings{Timeout: 30 * time.Second, LateExecution: 10 * time.Minute}},
		"Config": {Config{Timeout: time.Minute, Account: "a", LateExecution: day}, nil,
			cardwire.Settings{Account: "a", Timeout: time.Minute, LateExecution: day}},
		"Options": {Config{},
			[]cardwire.Option{late(day), cardwire.WithTimeout(time.Minute), cardwire.WithAccount("a")},
			cardwire.Settings{Account: "a", Timeout: time.Minute, LateExecution: day}},
		"both": {Config{LateExecution: day, Account: "a"}, []cardwire.Option{cardwire.WithAccount("a"), late(day)},
			cardwire.Settings{Account: "a", Timeout: 30 * time.Second, LateExecution: day}},
		"never late": {Config{LateExecution: -1}, []cardwire.Option{late(0)},
			cardwire.Settings{Timeout: 30 * time.Second}},
		"two late": {Config{LateExecution: day}, []cardwire.Option{late(10 * time.Minute)}, cardwire.Settings{
			Service: "payouts: LateExecution is 24h0m0s, and Options set it to 10m0s: set it in one place"}},
		"late, and never": {Config{LateExecution: -1}, []cardwire.Option{late(day)}, cardwire.Settings{
			Service: "payouts: LateExecution is 0s, and Options set it to 24h0m0s: set it in one place"}},
		"two timeouts": {Config{Timeout: time.Minute}, []cardwire.Option{cardwire.WithTimeout(time.Hour)},
			cardwire.Settings{
				Service: "payouts: Timeout is 1m0s, and Options set it to 1h0m0s: set it in one place"}},
		"two accounts": {Config{Account: "a"}, []cardwire.Option{cardwire.WithAccount("b")}, cardwire.Settings{
			Service: `payouts: Account is "a", and Options set it to "b": set it in one place`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tc.config
			c.BaseURL = "https://cards.example/api/v1"
			keys := cardwire.WithKeySource(func(context.Context) (string, error) { return "k", nil })
			c.Options = append([]cardwire.Option{keys}, tc.options...)
			s, err := New(new(sql.DB), sqljournal.PostgreSQL, c)
			if tc.want.Service != "" {
				require.EqualError(t, err, tc.want.Service)
				return
			}
			require.NoError(t, err)
			tc.want.Service = c.BaseURL
			assert.Equal(t, tc.want, s.client.Settings())
			assert.Equal(t, []any{tc.want.Timeout, tc.want.Account, tc.want.LateExecution},
				[]any{s.config.Timeout, s.config.Account, s.config.LateExecution})
		})
	}
}
