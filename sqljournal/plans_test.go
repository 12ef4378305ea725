package sqljournal_test

import (
	"database/sql"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// However many intents there are, every statement finds its own by an index. SQLite parses each
// once for a connection.
func TestNoTableIsReadToItsEnd(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		at := onPostgreSQL(t)
		db, journal := openNew(t, at)
		db.SetMaxOpenConns(1) // its counts of scans are told by this connection
		execute(t, db, `
INSERT INTO `+at.Table+` (op, reference, body_sha256, amount, currency, state, closed, proved, reserved, call, calls,
	service_id, status, created_at, time, send_by, settled_by, ended_at, kind, by, note, era)
SELECT 'CreateTransfer', 'order-2026-11-' || lpad(n::text, 9, '0'), md5(n::text), '100.00', 'EUR',
	CASE WHEN n % 1000 = 1 THEN 'unknown' WHEN n % 50 = 2 THEN 'refused' ELSE 'executed' END, n % 50 = 2, TRUE, FALSE,
	'ABCDEFGHIJKLMNOPQRSTUVWXYZ-' || n, 1, 'T20261121' || n, 'wait_process', t, t, t, t, t, 'ended', '', '', 1
FROM (SELECT n, now() - n * interval '1 second' AS t FROM generate_series(1, 5000) AS n) AS made`, `
INSERT INTO `+at.Table+`_history (op, reference, time, kind, call, state, service_id, by, note)
SELECT op, reference, time, k, call, CASE k WHEN 'begun' THEN 'open' ELSE state END, '', '', ''
FROM `+at.Table+`, (VALUES ('begun'), ('ended')) AS kinds (k)`,
			"VACUUM ANALYZE "+at.Table, "VACUUM ANALYZE "+at.Table+"_history")
		before := tableScans(t, db, at)
		for n := range 10 { // of which the last five have plans for any parameters
			exercise(t, journal, "new-"+strconv.Itoa(n))
		}
		assert.Equal(t, before, tableScans(t, db, at))
	})
	t.Run("PostgreSQL, planned while empty", func(t *testing.T) {
		at := onPostgreSQL(t)
		db, journal := openNew(t, at)
		db.SetMaxOpenConns(1)
		for n := range 10 {
			ended(t, journal, settled("new-"+strconv.Itoa(n)), refused)
		}
		assert.Zero(t, scans(t, db, "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1",
			at.Table+"_unresolved"))
	})
	t.Run("SQLite", func(t *testing.T) {
		at := onSQLite(t, "")
		db, _ := openNew(t, at)
		journal, outage := during(t, at, nil)
		exercise(t, journal, "new")
		exercise(t, journal, "newer")
		assert.Greater(t, len(outage.texts), 12)
		for text, times := range outage.texts {
			assert.LessOrEqual(t, times, 1, text)
			for _, step := range plan(t, db, text) {
				if strings.HasPrefix(step, "SCAN") && !strings.Contains(text, "WHERE FALSE") {
					const small = `j|\w+_journal|sqlite_master|pragma_database_list|CONSTANT ROW`
					assert.Regexp(t, `^SCAN (`+small+`)\b|_unresolved$`, step, text)
				}
			}
		}
	})
}

// exercise carries out everything that a journal can.
func exercise(t *testing.T, journal *sqljournal.Journal, reference string) {
	t.Helper()
	first, second := settled(reference), settled(reference)
	ended(t, journal, first, refused)
	begun(t, journal, second)
	assert.Equal(t, "unknown", word(journal.Begin(t.Context(), intent(reference))))
	require.NoError(t, journal.End(t.Context(), first, unknown))
	require.NoError(t, journal.Resolve(t.Context(), second, notSent()))
	require.NoError(t, journal.Resolve(t.Context(), second, paid("X-"+reference)))
	late := executed
	late.ServiceID = "Y-" + reference
	require.ErrorIs(t, journal.End(t.Context(), second, late), sqljournal.ErrContradiction)
	assert.NotEmpty(t, events(t, journal, reference))
	require.NoError(t, journal.Void(t.Context(), intent(reference+"-void"), "Ada", ""))
	voided := lookup(t, journal, reference+"-void").Intent
	require.ErrorIs(t, journal.Resolve(t.Context(), voided, paid("X-"+reference)), sqljournal.ErrDecided)
	forgotten := intent(reference + "-forgotten")
	require.ErrorIs(t, journal.End(t.Context(), forgotten, late), sqljournal.ErrRecordedAgain)
	_, err := journal.Stats(t.Context())
	require.NoError(t, err)
	_ = unresolved(t, journal)
	s := statement(reference+" X-"+reference+" 12.50 EUR done", reference+"-pending X-2 1.00 EUR wait")
	require.NoError(t, journal.Apply(t.Context(), finding(t, journal, s, reference+"-pending"), "Ada", ""))
}

// tableScans are how often the tables were read to their end.
func tableScans(t *testing.T, db *sql.DB, at place) int {
	t.Helper()
	return scans(t, db, "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname IN ($1, $2)",
		at.Table, at.Table+"_history")
}

func scans(t *testing.T, db *sql.DB, query string, names ...any) (n int) {
	t.Helper()
	execute(t, db, "SELECT pg_stat_force_next_flush()", "SELECT pg_stat_clear_snapshot()")
	require.NoError(t, db.QueryRowContext(t.Context(), query, names...).Scan(&n))
	return n
}

var parameters = regexp.MustCompile(`\?\d+`)

// plan returns the steps of SQLite's plan for a statement.
func plan(t *testing.T, db *sql.DB, text string) (steps []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+parameters.ReplaceAllString(text, "'1'"))
	require.NoError(t, err, text)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	require.NoError(t, rows.Err())
	return steps
}
