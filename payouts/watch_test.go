package payouts

import (
	"database/sql"
	"net/url"
	"strings"
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

// Where nobody calls Run, the page, readyz and the API say so after a minute, also while nothing is to be sent.
func TestNobodyRuns(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		ready := func() (int, string) {
			r := s.request("GET", "/ops/readyz", "", false)
			return r.StatusCode, textOf(t, r)
		}
		says := func(isIdle bool, since time.Time) {
			t.Helper()
			status, text := ready()
			page := s.page("")
			if !isIdle {
				assert.Equal(t, 200, status, text)
				assert.NotContains(t, page, "No program sends orders")
				return
			}
			at := since.Format(timeLayout) + " UTC: start one"
			assert.Equal(t, delays{Idle: since}, s.late())
			assert.Equal(t, 503, status)
			assert.Contains(t, text, "no replica has worked since "+at)
			assert.Contains(t, page, "No replica has worked since "+at)
			assert.Contains(t, page, "1 order is waiting.")
			assert.NotContains(t, page, "Orders are being sent")
			assert.Contains(t, s.get("queue"), `"idle":"`+since.Format(time.RFC3339Nano))
		}
		says(false, time.Time{})
		assert.Contains(t, s.page(""), "Orders are being sent")
		ago := func(d time.Duration) time.Time {
			at := time.Now().Add(-d).UTC().Truncate(time.Microsecond)
			s.do(`UPDATE @payouts_control SET worked_at = $1`, s.moment(at))
			return at
		}
		ago(50 * time.Second)
		says(false, time.Time{})
		says(true, ago(70*time.Second))
		s.post("pause", url.Values{})
		says(true, ago(time.Hour))
		s.run()
		require.Eventually(t, func() bool { return s.late() == delays{} }, waitFor, tick, "also while nothing is sent")
		says(false, time.Time{})
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
	assert.Equal(t, 503, s.request("GET", "/ops/readyz", "", false).StatusCode)
	require.ErrorContains(t, s.Verify(t.Context()), "connect to the primary")
	require.NoError(t, s.exec(t.Context(), admin, `ALTER DATABASE `+name+` RESET default_transaction_read_only`))
	assert.Equal(t, 200, s.request("GET", "/ops/readyz", "", false).StatusCode)
	s.orders("A-2")
}

// What refreshes by itself would lose what somebody types.
func TestAPageThatRefreshesHasNothingToFillIn(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.row("sending", `state = 'open', send_by = '2999-01-31T15:04:05.000000Z'`)
	s.row("unresolved", `state = 'unknown'`)
	s.row("submitted", `state = 'executed'`)
	s.row("failed", `state = 'refused', closed = TRUE`)
	s.orders("queued")
	refreshing := 0
	look := func(path string) {
		t.Helper()
		page := s.page(path)
		if strings.Contains(page, `http-equiv="refresh"`) {
			refreshing++
			assert.NotRegexp(t, `<(form|input|select|textarea|details)`, page, path)
		}
	}
	for range 2 {
		look("")
		look("?find=queued&day=" + time.Now().UTC().Format(time.DateOnly))
		for _, state := range []string{"sending", "unresolved", "submitted", "failed", "queued"} {
			look("?state=" + state)
			look("order?number=" + state)
		}
		s.pauses(pause{Kind: byHand, Why: "a test"})
	}
	assert.Equal(t, 2*(2+5+1), refreshing, "the lists, and the order that is being sent")
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
