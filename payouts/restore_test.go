package payouts

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// copyTables replaces the tables of one prefix by those of another, as a restore does: no trigger leaves a mark.
func (s *shop) copyTables(from, to string, tables []string) {
	s.t.Helper()
	conn, err := s.db.Conn(s.t.Context())
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, conn.Close()) }()
	run := func(statement string) {
		s.t.Helper()
		_, err := conn.ExecContext(s.t.Context(), s.sql(statement))
		require.NoError(s.t, err, statement)
	}
	begin, overriding, end := `PRAGMA foreign_keys = OFF; BEGIN`, ``, `COMMIT; PRAGMA foreign_keys = ON`
	if s.dialect == sqljournal.PostgreSQL { // as pg_restore --disable-triggers
		begin, overriding = `SET session_replication_role = replica; BEGIN`, ` OVERRIDING SYSTEM VALUE`
		end = `COMMIT; SET session_replication_role = DEFAULT`
	} else { // whose triggers write in a restore by hand
		var last int64
		const text = `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '@payouts_marks'), 0)`
		require.NoError(s.t, conn.QueryRowContext(s.t.Context(), s.sql(text)).Scan(&last))
		end = fmt.Sprintf(`DELETE FROM @payouts_marks WHERE number > %d; `, last) + end
	}
	run(begin)
	for _, table := range tables {
		run(`DELETE FROM ` + copyOf(to, table))
		run(`INSERT INTO ` + copyOf(to, table) + overriding + ` SELECT * FROM ` + copyOf(from, table))
	}
	run(end)
}

// backUp copies tables, and returns what restores them.
func (s *shop) backUp(tables []string) (restore func()) {
	s.t.Helper()
	for _, table := range tables {
		s.do(`CREATE TABLE ` + copyOf("backup", table) + ` AS SELECT * FROM ` + table)
	}
	return func() { s.copyTables("backup", "", tables) }
}

// copyOf is a table's copy; "": the table itself.
func copyOf(name, table string) string {
	if name == "" {
		return table
	}
	return table[1:] + "_" + name
}

// everyTable is all that a backup has.
var (
	journalTables = []string{"@intents", "@intents_history", "@intents_journal"}
	everyTable    = append([]string{
		"@payouts", "@payouts_history", "@payouts_marks", "@payouts_control", "@river_job",
	}, journalTables...)
)

func (s *shop) sweeps() {
	s.t.Helper()
	require.NoError(s.t, s.sweep(s.t.Context()))
}

// settled is after the hold's floor.
func (s *shop) settled() {
	s.t.Helper()
	s.do(`UPDATE @intents_journal SET floor = $1`, s.moment(time.Now().Add(-time.Second)))
}

// The whole database is restored, and the procedure of docs/operations.md followed, with a service that executed
// after the backup, and late; an order that was canceled and replaced since; a broker that delivers again what both
// tables have lost; and a statement that lacks lines and mangles numbers. Support is right when it is asked.
func TestARestoreOnHold(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("paid later", "late", "canceled later", "still queued")
		s.loseResponse("unresolved", false)
		restore := s.backUp(everyTable)
		s.work("paid later")
		s.willFail(cardwiretest.Fault{Kind: cardwiretest.FaultReset}) // it will be executed
		s.work("late")
		assert.Equal(t, 200, s.cancelAs("canceled later"))
		s.orders("replacement", "new and paid", "new")
		s.work("replacement")
		s.work("new and paid")

		restore()
		require.NoError(t, s.Hold(t.Context(), "Ada", "a restore"))
		all := []string{"paid later", "late", "canceled later", "still queued", "replacement", "new and paid", "new"}
		s.orders(all...) // the broker delivers all of it again
		for _, number := range all {
			s.work(number)
		}
		assert.Len(t, s.fake.Ledger(), 3, "nothing is sent")
		service, err := cardwire.New(s.base, cardwiretest.DefaultKey, cardwire.WithJournal(journal.NewMemory()),
			cardwire.WithHTTPClient(&http.Client{Transport: s.fake}))
		require.NoError(t, err)
		_, err = service.CreateTransfer(t.Context(), paramsFor("late")) // as it executes, late
		require.NoError(t, err)
		s.settled()
		at := time.Now().UTC().Format(time.RFC3339)
		lines := []string{"paid later,T-1,12.50,EUR,done," + at, "2.02601E+17,T-2,12.50,EUR,done," + at} // of "replacement"
		s.records("executed", lines...)
		assert.Contains(t, s.page("?still=on"), "2.02601E&#43;17")
		for _, number := range append(all, "unresolved") { // support is asked about each that would be sent, or is unresolved
			state := s.found(number).State
			switch {
			case s.fake.Executions(operation, number) > 0 && !hasEnded(state):
				s.resolves(number, "executed")
			case number == "canceled later": // by the merchant's own records
				assert.Equal(t, 200, s.cancelAs(number))
			case state == StateUnresolved:
				s.resolves(number, "not_executed")
			}
		}
		status, text := s.post("release", url.Values{})
		require.Equal(t, 303, status, text)
		for _, number := range append(all, "unresolved") {
			s.work(number)
			times, want := s.fake.Executions(operation, number), StateSubmitted
			if number == "canceled later" {
				want = StateCanceled
			} else if number == "unresolved" {
				want = StateFailed
			}
			assert.Equal(t, []string{want}, s.states(number), number)
			assert.Equal(t, want == StateSubmitted, times == 1, "%s was executed %d times", number, times)
		}
	})
}
