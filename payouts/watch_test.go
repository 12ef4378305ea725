package payouts

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (s *shop) late() delays {
	s.t.Helper()
	d, err := s.delays(s.t.Context())
	require.NoError(s.t, err)
	return d
}

// Where nobody calls Run, it shows after a minute, also while nothing is to be sent.
func TestNobodyRuns(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		ago := func(d time.Duration) time.Time {
			at := time.Now().Add(-d).UTC().Truncate(time.Microsecond)
			s.do(`UPDATE @payouts_control SET worked_at = $1`, s.moment(at))
			return at
		}
		assert.Zero(t, s.status().Idle)
		ago(50 * time.Second)
		assert.Zero(t, s.status().Idle)
		assert.Equal(t, ago(70*time.Second), s.status().Idle)
		require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
		assert.Equal(t, ago(time.Hour), s.status().Idle)
		s.run()
		require.Eventually(t, func() bool { return s.status().Idle.IsZero() }, waitFor, tick, "also while nothing is sent")
	})
}

// A server that has become read-only is no place for orders, and a pool that is left on it leads to the new one as soon
// as somebody looks.
func TestConnectionsThatCannotWriteAreDiscarded(t *testing.T) {
	t.Parallel()
	s := openShop(t, newDatabase(t), nil)
	s.db.SetMaxIdleConns(4)
	pin := func() {
		var all []*sql.Conn
		for range 4 {
			c, err := s.db.Conn(t.Context())
			require.NoError(t, err)
			all = append(all, c)
			require.NoError(t, s.exec(t.Context(), c, `SET default_transaction_read_only = on`))
		}
		for _, c := range all {
			require.NoError(t, c.Close())
		}
	}
	pin()
	require.NoError(t, s.Verify(t.Context()))
	s.orders("A-1")

	other, _ := openDB(t, s.source)
	admin, err := other.Conn(t.Context())
	require.NoError(t, err)
	defer func() { _ = admin.Close() }()
	name := valuesOf[string](s, `SELECT quote_ident(current_database())`)[0]
	require.NoError(t, s.exec(t.Context(), admin, `ALTER DATABASE `+name+` SET default_transaction_read_only = on`))
	pin()
	require.ErrorContains(t, s.Verify(t.Context()), "connect to the primary")
	require.NoError(t, s.exec(t.Context(), admin, `ALTER DATABASE `+name+` RESET default_transaction_read_only`))
	require.NoError(t, s.Verify(t.Context()))
	s.orders("A-2")
}

// What the service says of a request is known without what it quotes of it.
func TestWhatTheServiceSaysIsMasked(t *testing.T) {
	t.Parallel()
	const body = `{"merchantOrderNo":"A-17","receiverBankAccountNumber":"DE00CANARY","transferAmount":"12.50",` +
		`"receiverNativeFirstName":"Jo\u0308rg Li","senderAddress":"5 Elm St","payoutCurrency":"EUR"}`
	for message, want := range map[string]string{
		"insufficient balance":                    "insufficient balance",
		"insufficient balance: 7.10 of 12.50 EUR": "insufficient balance: #.# of #.# …",
		"account DE00CANARY of J\u00f6rg LI":      "account … of … …",
		"account de00 canary, order a-17":         "account … …, order …-#",
		"the name JO\u0308RG is unlisted":         "the name … is unlisted",
		"limit\u0661\u0662 of ...NARY":            "limit# of ...…",
		"":                                        "",
	} {
		assert.Equal(t, want, masked(message, body), message)
	}
	assert.Equal(t, "order A-# of …", masked("order A-7 of DE0", `{"a":"DE0"}`))
	assert.Equal(t, "Grace, #", masked("Grace, 12", ""), "what was purged is not known")
}
