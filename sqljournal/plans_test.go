package sqljournal_test

import (
	"database/sql"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// rowsVariable is how many intents TestNoTableIsReadToItsEnd has, if not 20,000.
const rowsVariable = "CARDWIRE_TEST_ROWS"

// However many intents there are, every statement finds its own by an index.
func TestNoTableIsReadToItsEnd(t *testing.T) {
	at := onPostgreSQL(t)
	count := 20_000
	if text := os.Getenv(rowsVariable); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	db, journal := openNew(t, at)
	db.SetMaxOpenConns(1) // its counts of scans are told by this connection
	execute(t, db, `
INSERT INTO `+at.Table+` (op, reference, exclusive, body_sha256, summary, state, closed, holder, attempts, service_id, created_at, begun_at, send_by, ended_at, event, who, note)
SELECT CASE n % 10 WHEN 0 THEN 'CancelOperation' ELSE 'CreateTransfer' END, 'order-2026-11-' || lpad(n::text, 9, '0'), n % 10 <> 0, encode(sha256(n::text::bytea), 'hex'), '100.00 EUR',
	CASE WHEN n % 1000 = 1 THEN 'unknown' WHEN n % 50 = 2 THEN 'refused' ELSE 'executed' END, n % 50 = 2, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ-d41d8cd98f00b-' || n, 1,
	'T20261121' || n, t, t, t, t, 'ended', '', ''
FROM (SELECT n, now() - n * interval '1 second' AS t FROM generate_series(1, `+strconv.Itoa(count)+`) AS n) AS made`,
		`INSERT INTO `+at.Table+`_history (intent, attempt, at, kind, state, who, note)
SELECT id, 1, begun_at, 'begun', 'open', '', '' FROM `+at.Table+` UNION ALL SELECT id, 1, ended_at, 'ended', state, '', '' FROM `+at.Table,
		"VACUUM ANALYZE "+at.Table, "VACUUM ANALYZE "+at.Table+"_history")
	before := scans(t, db, at)
	for n := range 10 { // of which the last five have plans for any parameters
		exercise(t, journal, "new-"+strconv.Itoa(n))
	}
	assert.Equal(t, before, scans(t, db, at))
	t.Logf("%d intents: %s", count, sizes(t, db, at, count))
}

// exercise carries out everything that a journal can, and logs how long it took.
func exercise(t *testing.T, journal *sqljournal.Journal, reference string) {
	t.Helper()
	i := until(reference, 0)
	for name, do := range map[string]func() error{
		"Look":     func() error { return journal.Look(t.Context(), transfer, "order-2026-11-000000002-") },
		"a second": func() error { return ignoreTaken(journal.Begin(t.Context(), i)) },
		"Lookup":   func() error { _, err := journal.Lookup(t.Context(), transfer, reference); return err },
		"History":  func() error { _, err := journal.History(t.Context(), transfer, reference); return err },
		"Resolve": func() error {
			e, err := journal.Lookup(t.Context(), transfer, reference)
			require.NoError(t, err)
			return journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent})
		},
		"Stats": func() error { _, err := journal.Stats(t.Context()); return err },
		"Unresolved": func() error {
			for _, err := range journal.Unresolved(t.Context(), time.Minute) {
				require.NoError(t, err)
			}
			return nil
		},
		"Void": func() error { return journal.Void(t.Context(), transfer, reference+"-void", "Ada", "") },
		"Cancel": func() error {
			cancel := i
			cancel.Op, cancel.Unique = "CancelOperation", false
			require.NoError(t, journal.Begin(t.Context(), cancel))
			return journal.End(t.Context(), cancel, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted})
		},
	} {
		start := time.Now()
		require.NoError(t, ignoreTaken(journal.Begin(t.Context(), i)))
		middle := time.Now()
		require.NoError(t, do())
		done := time.Now()
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}))
		t.Logf("%-10s %8s, Begin %8s, End %8s", name, done.Sub(middle).Round(time.Microsecond), middle.Sub(start).Round(time.Microsecond),
			time.Since(done).Round(time.Microsecond))
	}
}

// ignoreTaken is for references that are begun several times.
func ignoreTaken(err error) error {
	if word(err) == "taken, unknown" {
		return nil
	}
	return err
}

// scans are how often the tables were read to their end.
func scans(t *testing.T, db *sql.DB, at place) (n int) {
	t.Helper()
	execute(t, db, "SELECT pg_stat_force_next_flush()", "SELECT pg_stat_clear_snapshot()")
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname IN ($1, $2)",
		at.Table, at.Table+"_history").Scan(&n))
	return n
}

func sizes(t *testing.T, db *sql.DB, at place, count int) (text string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT relname, pg_relation_size(oid) / $2::float8 FROM pg_class WHERE relname LIKE $1 AND relkind IN ('r', 'i') ORDER BY 1`,
		at.Table+"%", count)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var size float64
		require.NoError(t, rows.Scan(&name, &size))
		text += name[len(at.Table):] + " " + strconv.FormatFloat(size, 'f', 1, 64) + " B/intent, "
	}
	require.NoError(t, rows.Err())
	return text
}
