package payouts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/payouts/internal/statement"
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

// listed is a line of a statement, of half a minute ago.
func listed(number string) string {
	return number + ",T-" + number + ",12.50,EUR,done," + time.Now().Add(-30*time.Second).UTC().Format(time.RFC3339)
}

// records records what a statement of these lines proves.
func (s *shop) records(lines ...string) {
	s.t.Helper()
	other := strings.Replace(listed("another program's"), "done", "failed", 1) // no statement is empty
	text := "order,id,amount,currency,status,time\n" + strings.Join(append(lines, other), "\n")
	now := time.Now()
	file := statement.File{
		From: now.AddDate(-1, 0, 0), Until: now, Exported: now, Strays: true,
		Statuses: map[string]sqljournal.StatementStatus{
			"done": sqljournal.StatementExecuted, "failed": sqljournal.StatementNotExecuted,
		},
	}
	require.NoError(s.t, s.Reconcile(s.t.Context(), "statement.csv", file.Statement(strings.NewReader(text)),
		"Ada", "the statement", func(sqljournal.Finding, error) {}))
}

// On hold orders are accepted, and nothing is sent, canceled or failed before the floor. What was queued before is
// unresolved, is told, does not count for the brake, and is resolved one by one or all at once; what came since is sent
// once a person has released the hold, who sees what a statement has recorded.
func TestAHoldBeginsAnEra(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, source, func(c *Config) { c.Brake = 2 })
		s.orders("A-1", "A-2", "A-3", "A-4")
		s.tells()
		require.NoError(t, s.Hold(t.Context(), "Ada", "restored from the backup of Monday"))
		s.looks()
		assert.Equal(t, []string{"hold", "put on hold by Ada: restored from the backup of Monday"},
			[]string{s.status().Kind, s.status().Why})
		assert.Equal(t, 1, strings.Count(s.log.String(), "nothing is sent: the journal is on hold"))
		// The shop submits again what a restore may have lost.
		s.orders("A-1", "B-1")
		for _, list := range []State{StateUnresolved, StateQueued} { // before it is told, and after
			assert.Equal(t, list == "queued", slices.Contains(s.lists(list), "B-1"))
			assert.Equal(t, list == "unresolved", slices.Contains(s.lists(list), "A-4"))
		}
		s.sweeps()
		s.tells()
		assert.Equal(t, []string{"", "unresolved", "unresolved", "unresolved", "unresolved"},
			valuesOf[string](s, `SELECT told FROM @payouts ORDER BY told, order_no`))
		for _, number := range []string{"A-1", "B-1"} {
			s.work(number)
		}
		assert.Empty(t, s.fake.Requests())
		require.ErrorIs(t, s.cancels("B-1"), ErrConflict, "before the floor")
		s.refuses("A-1", "not_executed", "a call that it has forgotten may be executed until 20")
		err := s.Release(t.Context(), "Ada", "compared")
		require.ErrorIs(t, err, ErrConflict)
		require.ErrorContains(t, err, "ask the service again then, and release the hold")
		s.settled()
		s.refuses("A-1", "paid", "another state")
		_, err = s.ResolveAll(t.Context(), []string{"A-2", "A-3"},
			Resolution{Outcome: "not_executed", AsOf: time.Now(), By: "Ada", Why: "ticket 7"})
		require.NoError(t, err)
		s.resolves("A-4", "send_again")
		s.records(listed("A-9"))
		last := s.status().History[len(s.status().History)-1]
		assert.Equal(t, []string{"reconciled", "Ada"}, []string{last.What, last.By})
		assert.Contains(t, last.Why, "the statement: statement.csv, from 20")
		assert.Equal(t, minPause, s.work("A-4"), "the hold stands")
		require.NoError(t, s.Release(t.Context(), "Ada", "compared"))
		s.sweeps()
		assert.Empty(t, s.paused().Kind)
		for _, number := range []string{"A-1", "A-2", "A-4", "B-1"} {
			s.work(number)
		}
		assert.Equal(t, []State{StateUnresolved, StateFailed, StateFailed, StateSubmitted, StateSubmitted},
			s.states("A-1", "A-2", "A-3", "A-4", "B-1"))
		s.loseResponse("C-1", false)
		s.loseResponse("C-2", false)
		s.sweeps()
		assert.Equal(t, brake, s.paused().Kind, "of these the service executed some, perhaps")
	})
}

// The database refuses to lose a row of an order, or to have another order's there; where somebody has taken the
// foreign key, Verify says so, and Migrate makes it again, unless a row is missing.
func TestTheDatabaseRefusesPartialLoss(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1", "A-2")
		s.work("A-1")
		for _, statement := range []string{
			`DELETE FROM @intents`, `TRUNCATE @intents`, `DROP TABLE @intents`,
			`UPDATE @intents SET reference = 'x' WHERE reference = 'A-1'`,
		} {
			err := s.exec(t.Context(), s.db, statement)
			if assert.Error(t, err, statement) && !strings.HasPrefix(statement, "TRUNC") {
				assert.Regexp(t, `(?i)foreign key|depend`, err.Error())
			}
		}
		require.NoError(t, s.Verify(t.Context()))
		if s.dialect == sqljournal.SQLite {
			return // of which the key is the table's
		}
		s.do(`ALTER TABLE @payouts DROP CONSTRAINT payouts_journal`)
		require.ErrorContains(t, s.Verify(t.Context()),
			`the foreign key of "cardwire".payouts is missing: call Migrate once`)
		require.NoError(t, s.Migrate(t.Context()))
		require.NoError(t, s.Verify(t.Context()))
		s.forget("A-1")
		assert.Equal(t, []State{StateUnresolved}, s.states("A-1"))
		assert.Zero(t, s.work("A-1"))
		require.ErrorContains(t, s.Migrate(t.Context()), "payouts_journal")
		assert.Len(t, s.fake.Requests(), 1)
	})
}

// In a database that was restored, failed over or copied nothing is sent, whoever looks first, until a person releases
// it, or says that it was moved as planned.
func TestACopyIsOnHold(t *testing.T) {
	t.Parallel()
	for first, look := range map[string]func(*shop){
		"a start": func(s *shop) { s.run() },
		"a call":  func(s *shop) { s.work("A-1") },
		"a sweep": (*shop).sweeps,
		"a shop":  func(s *shop) { s.orders("A-2") },
	} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, newDatabase(t), nil)
			s.orders("A-1")
			s.do(`UPDATE @intents_journal SET timeline = '00000007'`)
			s.looked.Store(0)
			look(s)
			require.Eventually(t, func() bool { return s.paused().Kind == onHold }, waitFor, tick)
			assert.Contains(t, s.status().Why, "restored, failed over or copied: timeline 7 -> 1")
			assert.Equal(t, []State{StateUnresolved}, s.states("A-1"))
			if first == "a shop" {
				assert.Equal(t, []State{StateQueued}, s.states("A-2"), "it came once the hold was on record")
			}
			require.ErrorIs(t, s.Moved(t.Context(), "Ada", "by plan"), ErrConflict)
			s.settled()
			require.NoError(t, s.Release(t.Context(), "Ada", "compared"))
			s.resolves("A-1", "send_again")
			s.work("A-1")
			s.await("A-1", StateSubmitted)
			assert.Len(t, s.fake.Requests(), 1)
		})
	}
	t.Run("a planned move", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, newDatabase(t), nil)
		s.orders("A-1")
		require.NoError(t, s.Hold(t.Context(), "Ada", "a new server"))
		s.do(`UPDATE @intents_journal SET timeline = '00000007'`)
		s.sweeps()
		assert.Equal(t, []State{StateUnresolved}, s.states("A-1"))
		require.NoError(t, s.Moved(t.Context(), "Ada", "by plan"))
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, []State{StateSubmitted}, s.states("A-1"))
	})
}

// What no foreign key refuses, as a restore with triggers disabled: what was told as ended is not sent again.
func TestWhatWasToldAsEndedIsNotSent(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		s.tells()
		restore := s.backUp(journalTables)
		s.work("A-1")
		s.tells()
		restore()
		for range 2 {
			s.do(`INSERT INTO @payouts_marks (order_no) VALUES ('A-1')`)
			s.tells()
			s.sweeps()
			s.work("A-1")
		}
		assert.Equal(t, []State{StateUnresolved}, s.states("A-1"))
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
		require.ErrorIs(t, s.cancels("A-1"), ErrConflict)
		s.refuses("A-1", "send_again", "reported as ended")
		s.resolves("A-1", "executed")
		assert.Equal(t, []State{StateSubmitted}, s.states("A-1"))
	})
}
