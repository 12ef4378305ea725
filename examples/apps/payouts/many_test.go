package main

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

var many = flag.Int("many", 3000, "how many orders TestManyOrders makes")

// fill makes orders, one every forty seconds until now: of a hundred, 96 were submitted, one
// failed, one was canceled, one was paid and one returned. Of the last, 300 are unresolved and
// one in a thousand of all is queued.
var fill = map[sqljournal.Dialect][]string{
	sqljournal.PostgreSQL: {`
INSERT INTO payouts (order_no, body, body_sha256, amount, currency, job_id, created_at, calls, said, said_at)
SELECT 'order-' || (10000000 + i), '{}', 'x', '12.50', 'EUR', i, now() - ($1::bigint - i) * interval '40 seconds',
	CASE WHEN i > $1 - $1 / 1000 THEN 0 ELSE 1 END,
	CASE WHEN i > $1 - 300 - $1 / 1000 THEN ''
		ELSE CASE i % 100 WHEN 1 THEN 'canceled' WHEN 2 THEN 'paid' WHEN 3 THEN 'returned' ELSE '' END END, now()
FROM generate_series(1, $1::bigint) AS i`, `
INSERT INTO cardwire_intents (op, reference, body_sha256, summary, repeatable, state, closed, proved, reserved, call, calls,
	service_id, status, created_at, time, send_by, settled_by, ended_at, kind, by, note)
SELECT 'CreateTransfer', 'order-' || (10000000 + i), 'x', '', FALSE,
	CASE WHEN i > $1 - 300 - $1 / 1000 THEN 'unknown' WHEN i % 100 < 2 THEN 'refused' ELSE 'executed' END,
	i <= $1 - 300 - $1 / 1000 AND i % 100 < 2, TRUE, FALSE, 'c', 1, 'T-' || i, '', t, t, t, t, t, 'ended', '', ''
FROM (SELECT i, now() - ($1::bigint - i) * interval '40 seconds' AS t
	FROM generate_series(1, $1::bigint - $1 / 1000) AS i) x`, `
ANALYZE`},
	sqljournal.SQLite: {`
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
INSERT INTO payouts (order_no, body, body_sha256, amount, currency, job_id, created_at, calls, said, said_at)
SELECT 'order-' || (10000000 + i), '{}', 'x', '12.50', 'EUR', i,
	strftime('%Y-%m-%d %H:%M:%S+00:00', 'now', ((i - $1) * 40) || ' seconds'),
	i <= $1 - $1 / 1000,
	CASE WHEN i > $1 - 300 - $1 / 1000 THEN ''
		ELSE CASE i % 100 WHEN 1 THEN 'canceled' WHEN 2 THEN 'paid' WHEN 3 THEN 'returned' ELSE '' END END,
	strftime('%Y-%m-%d %H:%M:%S+00:00', 'now')
FROM n`, `
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1 - $1 / 1000),
	x (i, t) AS (SELECT i, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', ((i - $1) * 40) || ' seconds') FROM n)
INSERT INTO cardwire_intents (op, reference, body_sha256, summary, repeatable, state, closed, proved, reserved, call, calls,
	service_id, status, created_at, time, send_by, settled_by, ended_at, kind, by, note)
SELECT 'CreateTransfer', 'order-' || (10000000 + i), 'x', '', FALSE,
	CASE WHEN i > $1 - 300 - $1 / 1000 THEN 'unknown' WHEN i % 100 < 2 THEN 'refused' ELSE 'executed' END,
	i <= $1 - 300 - $1 / 1000 AND i % 100 < 2, TRUE, FALSE, 'c', 1, 'T-' || i, '', t, t, t, t, t, 'ended', '', ''
FROM x`},
}

// However many orders there are, each page, list and look takes less than a tenth of a second:
//
//	scripts/postgres go test ./payouts -run TestManyOrders -v -args -many 2000000
func TestManyOrders(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		if s.dialect == sqljournal.SQLite {
			s.exec(`PRAGMA synchronous = OFF`)
		}
		for _, statement := range fill[s.dialect] {
			args := []any{*many}
			if !strings.Contains(statement, "$1") {
				args = nil
			}
			s.exec(statement, args...)
		}
		assert.Equal(t, []int64{int64(*many / 1000), 300}, []int64{s.countOf(queued), s.countOf(unresolved)})
		pages := map[string]string{
			"/": "order-", "/?after=order-10001500": "order-10001499", "/?before=order-10001500": "order-10001501",
			"/?find=order-10000007+T-9": "order-10000009", "/orders/order-10001550": "order-10001549",
			"/?day=" + time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly): "", "/metrics": "queued",
			"/queue": "waiting", "/payouts?after=order-10001500": "order-10001499",
		}
		for _, state := range states {
			pages["/?state="+state] = ""
		}
		for path, want := range pages {
			s.quickly(path, func() { assert.Contains(t, s.get(path), want, path) })
		}
		s.quickly("sweep", func() {
			sleeping, err := s.read(t.Context(), s.db, asleep)
			require.NoError(t, err)
			assert.Len(t, sleeping, *many/1000)
		})
		s.purgeAfter = 10000 * 24 * time.Hour
		s.quickly("purge", func() { require.NoError(t, s.purge(t.Context())) })
	})
}

func (s *shop) countOf(state string) int64 {
	s.t.Helper()
	live, err := s.liveTotals(s.t.Context())
	require.NoError(s.t, err)
	return countsOf(live)[state]
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
