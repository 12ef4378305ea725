package payouts

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

var many = flag.Int("many", 3000, "how many orders TestManyOrders makes")

// fill makes orders, one every forty seconds until now: of a hundred, 96 were submitted, one
// failed, one was canceled, one was paid and one returned. Of the last, 300 are unresolved and
// one in a thousand of all is queued. @n (i) are the numbers, and @t the time of one.
var fill = []string{`
INSERT INTO @intents (op, reference, body_sha256, amount, currency, state, closed, proved, reserved, call, calls,
	service_id, status, created_at, time, send_by, settled_by, ended_at, kind, by, note, era)
@n SELECT 'CreateTransfer', 'order-' || (10000000 + i), 'x', '12.50', 'EUR',
	CASE WHEN i > $1 - $1 / 1000 THEN 'not_sent' WHEN i > $1 - 300 - $1 / 1000 THEN 'unknown'
		WHEN i % 100 < 2 THEN 'refused' ELSE 'executed' END,
	i <= $1 - 300 - $1 / 1000 AND i % 100 < 2, TRUE, TRUE, 'c', 1, 'T-' || i, '',
	@t, @t, @t, @t, @t, 'ended', '', '', 1 FROM n`, `
INSERT INTO @payouts (order_no, body, body_sha256, amount, currency, job_id, created_at, said, told, told_id)
@n SELECT 'order-' || (10000000 + i), '{}', 'x', '12.50', 'EUR', i, @t,
	CASE WHEN i > $1 - 300 - $1 / 1000 THEN '' ELSE
		CASE i % 100 WHEN 1 THEN 'canceled' WHEN 2 THEN 'paid' WHEN 3 THEN 'returned' ELSE '' END END,
	CASE WHEN i > $1 - $1 / 1000 THEN '' WHEN i > $1 - 300 - $1 / 1000 THEN 'unresolved' ELSE
		CASE i % 100 WHEN 0 THEN 'failed' WHEN 1 THEN 'canceled' WHEN 2 THEN 'paid' WHEN 3 THEN 'returned'
			ELSE 'submitted' END END,
	'T-' || i FROM n`, `DELETE FROM @payouts_marks`, `@tidy ANALYZE`}

// filled are the words of fill.
var filled = map[sqljournal.Dialect]*strings.Replacer{
	sqljournal.SQLite: strings.NewReplacer("@n",
		"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)",
		"@tidy", "", "@t", "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', ((i - $1) * 40) || ' seconds')"),
	sqljournal.PostgreSQL: strings.NewReplacer("@tidy", "VACUUM", // as it does itself within a minute
		"@n", "WITH n (i) AS (SELECT generate_series(1, $1::bigint))",
		"@t", "now() - ($1::bigint - i) * interval '40 seconds'"),
}

// However many orders there are, each page, list and sweep takes less than a tenth of a second:
//
//	../sqljournal/scripts/postgres go test -run TestManyOrders . -v -args -many 2000000
func TestManyOrders(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for _, statement := range fill {
			args := []any{*many}
			if !strings.Contains(statement, "$1") {
				args = nil
			}
			_, err := s.db.ExecContext(t.Context(), s.sql(filled[s.dialect].Replace(statement)), args...)
			require.NoError(t, err)
		}
		if s.dialect == sqljournal.SQLite {
			s.do(`PRAGMA synchronous = FULL`)
		}
		found, err := s.liveTotals(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[State]int64{StateQueued: int64(*many / 1000), StateUnresolved: 300}, countsOf(found))
		day := time.Now().UTC().Truncate(24 * time.Hour)
		lists := map[string]Filter{
			"all": {}, "order-10001499": {After: "order-10001500"}, "order-10001600": {Before: "order-10001500"},
			"order-10000009": {Numbers: []string{"order-10000007", "T-9"}},
			"":               {From: day.AddDate(0, 0, -1), Until: day},
		}
		for _, state := range states {
			lists[string(state)] = Filter{State: state}
		}
		for want, f := range lists {
			s.quickly(fmt.Sprintf("%+v", f), func() {
				page, err := s.Orders(t.Context(), f)
				require.NoError(t, err)
				isThere := slices.ContainsFunc(page.Orders, func(o Order) bool { return o.Number == want })
				assert.True(t, isThere || len(want) < 14, "%s: %+v", want, f)
			})
		}
		s.quickly("a day's totals", func() {
			_, err := s.Totals(t.Context(), lists[""])
			require.NoError(t, err)
		})
		s.quickly("an order", func() { assert.NotEmpty(t, s.details("order-10001550").History) })
		s.quickly("the tables of a start", func() { require.NoError(t, s.Verify(t.Context())) })
		s.config.PurgeAfter = 10000 * 24 * time.Hour
		s.sweeps() // which wakes what has no job
		s.quickly("sweep", func() { s.sweeps() })
		s.quickly("tell", s.tells)
		s.orders("refused")
		s.willFail(cardwiretest.Fault{Status: 422})
		s.work("refused")
		s.quickly("refusals", func() {
			require.NoError(t, s.checkRefusals(t.Context(), s.found("refused"), "", cardwire.Error{}))
		})
		s.quickly("probe", func() {
			next, err := s.nextProbe(t.Context(), true)
			require.NoError(t, err)
			assert.Len(t, next, 1)
		})
	})
}

// quickly does something five times. The fastest counts, and only of many orders: others use the machine too.
func (s *shop) quickly(name string, do func()) {
	s.t.Helper()
	var took []time.Duration
	for range 5 {
		began := time.Now()
		do()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if *many < 100_000 {
		return
	}
	s.t.(*testing.T).Logf("%-40s %v", name, took[0])
	assert.Less(s.t, took[0], 100*time.Millisecond, name)
}
