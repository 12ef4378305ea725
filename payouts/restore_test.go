package payouts

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
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
		_, err := conn.ExecContext(s.t.Context(), statement)
		require.NoError(s.t, err, statement)
	}
	begin, overriding, end := `PRAGMA foreign_keys = OFF; BEGIN`, ``, `COMMIT; PRAGMA foreign_keys = ON`
	if s.dialect == sqljournal.PostgreSQL { // as pg_restore --disable-triggers
		begin, overriding = `SET session_replication_role = replica; BEGIN`, ` OVERRIDING SYSTEM VALUE`
		end = `COMMIT; SET session_replication_role = DEFAULT`
	} else { // whose triggers write in a restore by hand
		var last int64
		const text = `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'payouts_marks'), 0)`
		require.NoError(s.t, conn.QueryRowContext(s.t.Context(), text).Scan(&last))
		end = fmt.Sprintf(`DELETE FROM payouts_marks WHERE number > %d; `, last) + end
	}
	run(begin)
	for _, table := range tables {
		run(`DELETE FROM ` + to + table)
		run(`INSERT INTO ` + to + table + overriding + ` SELECT * FROM ` + from + table)
	}
	run(end)
}

// backUp copies tables, and returns what restores them.
func (s *shop) backUp(tables []string) (restore func()) {
	s.t.Helper()
	for _, table := range tables {
		s.do(`CREATE TABLE backup_` + table + ` AS SELECT * FROM ` + table)
	}
	return func() { s.copyTables("backup_", "", tables) }
}

// everyTable is all that a backup has.
var (
	journalTables = []string{"cardwire_intents", "cardwire_intents_history", "cardwire_intents_journal"}
	everyTable    = append([]string{
		"payouts", "payouts_history", "payouts_marks", "payouts_control", "payouts_reports", "river_job",
	}, journalTables...)
)

func (s *shop) sweeps() {
	s.t.Helper()
	require.NoError(s.t, s.sweep(s.t.Context()))
}

// settled is after the hold's floor.
func (s *shop) settled() {
	s.t.Helper()
	s.do(`UPDATE cardwire_intents_journal SET floor = $1`, s.moment(time.Now().Add(-time.Second)))
}

// A journal that is restored alone is put on hold, once; nothing that it has lost is sent, and what was told as
// ended is unresolved. Page, log and readiness say what to restore.
func TestAJournalThatIsOlderIsPutOnHold(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("paid", "failed", "queued")
		restore := s.backUp(journalTables)
		s.sweeps()
		s.work("paid")
		s.row("failed later", `state = 'refused', closed = TRUE`)
		s.do(`UPDATE cardwire_intents SET closed = TRUE WHERE reference = 'failed'`)
		s.tells() // and nothing has swept since
		restore()
		s.sweeps()
		p := s.paused()
		assert.Equal(t, onHold, p.Kind)
		s.sweeps()
		assert.Equal(t, p, s.paused(), "one loss is one alarm")
		assert.Equal(t, 1, strings.Count(s.log.String(), "nothing is sent: the journal is on hold"))
		assert.Contains(t, s.page(""), whyOlder)
		assert.Contains(t, s.get("readyz"), whyOlder)
		s.tells()
		assert.Equal(t, []string{StateUnresolved, StateUnresolved, StateUnresolved, StateQueued}, s.states("paid", "failed", "failed later", "queued"))
		assert.Equal(t, []string{"failed", "failed later", "paid"},
			valuesOf[string](s, `SELECT order_no FROM payouts WHERE told = 'unresolved' ORDER BY order_no`))
		for _, number := range []string{"paid", "failed", "failed later", "queued"} {
			s.work(number)
		}
		assert.Len(t, s.fake.Ledger(), 1)
		assert.Contains(t, s.page("order?number=paid"), "The journal has lost records")
		s.refuses("paid", "send_again", "use a new number")
		status, _ := s.resolveAs("failed", "not_executed")
		assert.Equal(t, 409, status, "before the floor")
		s.settled()
		s.resolves("failed", "not_executed")
		s.resolves("failed later", "not_executed")
		s.resolves("paid", "executed", "T-1")
		assert.Equal(t, []string{StateSubmitted, StateFailed, StateFailed}, s.states("paid", "failed", "failed later"))
	})
}

// While no replica runs another program executes an order, and the journal alone is then restored: a person who is
// first, also with a statement whose events have the lost numbers, meets the hold.
func TestWhatAnotherProgramDidIsMissed(t *testing.T) {
	t.Parallel()
	for first, do := range map[string]func(*shop){
		"a decision":  func(s *shop) { assert.Equal(s.t, 409, s.cancelAs("A-1")) },
		"a statement": func(s *shop) { s.records("executed", listed("N-1"), listed("N-2"), listed("N-3")) },
	} {
		t.Run(first, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.orders("A-1")
				s.tells()
				restore := s.backUp(journalTables)
				_, err := s.client.CreateTransfer(t.Context(), paramsFor("A-1"))
				require.NoError(t, err)
				restore()
				do(s)
				s.sweeps()
				assert.Equal(t, onHold, s.paused().Kind)
				assert.Equal(t, []string{StateUnresolved}, s.states("A-1"))
			})
		})
	}
}

// The end of Run remembers what the last calls recorded, of which nothing was told.
func TestTheEndOfRunRemembersTheJournal(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		restore := s.backUp(journalTables)
		s.do(`UPDATE payouts_marks SET due = $1`, s.moment(time.Now().Add(time.Hour)))
		stop := s.run()
		s.await("A-1", StateSubmitted)
		stop()
		restore()
		s.orders("A-2", "A-3", "A-4") // as many events as were lost, and more
		require.NoError(t, s.checkJournal(t.Context()))
		assert.Equal(t, onHold, s.paused().Kind)
	})
}

// What is about the hold locks the journal's own row before anything else, and an order before its marks: in another
// order PostgreSQL would end one of two that wait for each other.
func TestTheHoldLocksTheJournalFirst(t *testing.T) {
	t.Parallel()
	const journal, control = "cardwire_intents_journal", "payouts_control"
	alarm := func(s *shop) error { return s.holdIfLost(s.t.Context(), `order_no IN @live`) }
	for name, tc := range map[string]struct {
		first, then string
		isOlder     bool
		do          func(*shop) error
	}{
		"a hold":       {journal, control, true, func(s *shop) error { return s.Hold(s.t.Context(), "Ada", "a restore") }},
		"a check":      {journal, control, true, func(s *shop) error { return s.checkJournal(s.t.Context()) }},
		"an alarm":     {journal, "payouts", false, alarm},
		"a lost order": {"payouts", "payouts_marks", false, alarm}, // which the teller may have
		"its release": {journal, control, true, func(s *shop) error {
			if err := s.release(s.t.Context(), "Ada", "ok", "0-", time.Now(), time.Now()); refusal(err) == nil {
				return err
			}
			return nil // where nothing is on hold
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, newSchema(t), nil)
			s.orders("A-1")
			require.NoError(t, s.checkJournal(t.Context()))
			s.forget("A-1")
			if tc.isOlder {
				s.do(`UPDATE payouts_control SET high = 1000`)
			}
			tx, err := s.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }() // unless it was committed
			var pid int64
			require.NoError(t, tx.QueryRowContext(t.Context(), `SELECT pg_backend_pid() FROM `+tc.first+` FOR UPDATE`).Scan(&pid))
			done := make(chan error, 1)
			go func() { done <- tc.do(s) }()
			require.Eventually(t, func() bool {
				waiting := valuesOf[int64](s, `SELECT pid FROM pg_stat_activity WHERE `+fmt.Sprint(pid)+` = ANY(pg_blocking_pids(pid))`)
				return len(waiting) > 0
			}, time.Minute, time.Millisecond)
			_, err = tx.ExecContext(t.Context(), `SELECT 1 FROM `+tc.then+` FOR UPDATE NOWAIT`)
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
			assert.NoError(t, <-done)
		})
	}
}

// One order that the journal lost, or that another program freed, is unresolved, and puts the journal on hold once.
func TestALostOrderPutsTheJournalOnHold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*shop){
		"it is recorded again": func(s *shop) {
			s.do(`UPDATE cardwire_intents SET state = 'not_sent', closed = FALSE, reserved = FALSE WHERE reference = 'A-1'`)
		},
		"it is missing": func(s *shop) { s.forget("A-1") },
		"it is voided since": func(s *shop) {
			s.forget("A-1")
			s.voids("A-1")
		},
		"it is freed": func(s *shop) {
			s.do(`UPDATE cardwire_intents SET state = 'not_sent', closed = FALSE WHERE reference = 'A-1'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.loseResponse("A-1", false)
				s.resolves("A-1", "executed")
				s.tells()
				s.do(`UPDATE payouts SET told = 'unresolved' WHERE order_no = 'A-1'`) // it is noticed where it is live
				lose(s)
				s.refuses("A-1", "not_executed", "UTC or later, and say when in as_of")
				p := s.paused()
				assert.Equal(t, onHold, p.Kind)
				s.sweeps()
				assert.Equal(t, p, s.paused())
				s.settled()
				s.do(`UPDATE cardwire_intents_journal SET held_by = ''`)
				s.sweeps()
				assert.Empty(t, s.paused().Kind, "once for each")
				s.resolves("A-1", "not_executed")
				assert.Equal(t, []string{StateFailed}, s.states("A-1"))
				assert.Empty(t, s.fake.Ledger())
			})
		})
	}
	t.Run("it is lost a second time", func(t *testing.T) {
		t.Parallel()
		s := shopInFile(t)
		for range 2 {
			s.do(`UPDATE cardwire_intents_journal SET held_by = '', floor = NULL`)
			s.loseResponse("A-1", false)
			s.forget("A-1")
			s.sweeps()
			assert.Equal(t, onHold, s.paused().Kind)
			s.settled()
			s.resolves("A-1", "send_again")
		}
	})
	t.Run("before a sweep it is recorded as executed", func(t *testing.T) {
		t.Parallel()
		s := shopInFile(t)
		s.orders("A-1")
		s.forget("A-1")
		s.resolves("A-1", "executed")
		assert.Equal(t, onHold, s.paused().Kind, "what is recorded again no longer shows a call that may be executed late")
	})
}

// What payouts knows of an order, and the journal has lost, outlives a restore of the journal alone, also where a
// person is faster than the sweep: it was executed or canceled, which nobody was told; told as unresolved or failed;
// or paid.
func TestWhatIsKnownOutlivesTheJournal(t *testing.T) {
	t.Parallel()
	for first, hold := range map[string]func(*shop){"a sweep": (*shop).sweeps, "the teller": (*shop).tells, "a person": func(s *shop) {
		require.NoError(s.t, s.Hold(s.t.Context(), "Ada", "a restore"))
		s.tells()
		assert.Contains(s.t, s.get("?state=unresolved"), `"order":"failed"`)
	}} {
		t.Run(first, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				s.orders("executed", "unresolved", "paid", "never sent", "failed", "canceled")
				restore := s.backUp(journalTables)
				s.willFail(lostResponse)
				s.work("unresolved")
				s.do(`UPDATE cardwire_intents SET closed = TRUE WHERE reference = 'failed'`)
				s.tells()
				s.work("paid")
				s.resolves("paid", StatePaid)
				s.work("executed")
				assert.Equal(t, 200, s.cancelAs("canceled"))
				restore()
				s.orders("A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7", "A-8") // whose events have the numbers of those that are lost
				hold(s)
				p := s.paused()
				s.sweeps()
				assert.Equal(t, p, s.paused(), "one loss is one hold")
				s.settled()
				const lost = StateUnresolved
				assert.Equal(t, []string{lost, lost, lost, StateQueued, lost, lost},
					s.states("executed", "unresolved", "paid", "never sent", "failed", "canceled"))
				s.refuses("paid", "send_again", "use a new number")
				s.refuses("canceled", "send_again", "use a new number")
				s.records("executed", listed("executed"))
				s.tells()
				assert.False(t, s.found("executed").Alarmed, "another loss is noticed")
				s.resolves("unresolved", "send_again") // a person may err, and has to say so
				s.resolves("failed", "not_executed")
				s.resolves("canceled", "not_executed")
				assert.Equal(t, []string{StateSubmitted, StateQueued, StateFailed, StateCanceled},
					s.states("executed", "unresolved", "failed", "canceled"))
			})
		})
	}
}

// An order was sent or canceled, the journal has lost its row, and a statement lists it before a sweep: with its own
// amount it is this order, with another's it is none, and the loss is noticed in both.
func TestAStatementListsALostOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ means, amount, want string }{
		"sent":                        {"executed", "12.50", StateSubmitted},
		"sent, in progress":           {"pending", "12.50", StateUnresolved},
		"canceled":                    {"executed", "12.50", StateSubmitted},
		"canceled, of another amount": {"executed", "12.40", StateUnresolved},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				if strings.HasPrefix(name, "sent") {
					s.loseResponse("A-1", true)
				} else {
					s.orders("A-1")
					assert.Equal(t, 200, s.cancelAs("A-1"))
				}
				s.tells()
				s.forget("A-1")
				s.records(tc.means, "A-1,T-1,"+tc.amount+",EUR,done,"+time.Now().UTC().Format(time.RFC3339))
				assert.Equal(t, []string{StateUnresolved}, s.states("A-1"))
				assert.Equal(t, 409, s.cancelAs("A-1"), "before the floor")
				assert.Equal(t, onHold, s.paused().Kind, "no decision hides the loss")
				s.sweeps()
				s.tells()
				assert.Equal(t, tc.amount == "12.50", s.found("A-1").IsOurs)
				assert.Equal(t, []string{tc.want}, valuesOf[string](s, `SELECT told FROM payouts`))
			})
		})
	}
}

// releaseAs releases the hold, as Ada saw it.
func (s *shop) releaseAs(change func(url.Values)) (int, string) {
	s.t.Helper()
	r, err := s.releasable(s.t.Context(), s.db, math.MaxInt64)
	require.NoError(s.t, err)
	now := time.Now().UTC()
	form := url.Values{"seen": {r.Seen}, "as_of": {now.Format(time.RFC3339Nano)}, "lost_from": {now.AddDate(0, -6, 0).Format(time.RFC3339)}}
	if change != nil {
		change(form)
	}
	return s.post("release", form)
}

// A hold is released by who has seen what is then sent, asked about it after the floor, and compared with the
// statement since. On hold orders are accepted, and nothing is sent, canceled or failed before the floor.
func TestAHoldIsReleasedByWhoSawIt(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		require.NoError(t, s.Hold(t.Context(), "Ada", "restored from the backup of Monday"))
		s.orders("A-2")
		s.waited("A-2", giveUpAfter)
		assert.Equal(t, minPause, s.work("A-1"))
		s.work("A-2")
		assert.Equal(t, []string{StateQueued, StateQueued}, s.states("A-1", "A-2"))
		assert.Equal(t, 409, s.cancelAs("A-2"), "before the floor")
		refused := func(why string, change func(url.Values)) {
			t.Helper()
			status, text := s.releaseAs(change)
			assert.Equal(t, 409, status)
			assert.Contains(t, text, why)
		}
		const compare = "compare with a statement first that goes to 20"
		stray := listed("A-3")
		s.records("executed", stray)
		s.do(`UPDATE payouts_reports SET until = $1`, s.moment(time.Now().Add(time.Hour)))
		refused(compare, nil) // before the floor nobody knows
		s.settled()
		s.do(`UPDATE payouts_reports SET until = $1`, s.moment(time.Now().Add(-time.Hour)))
		refused(compare, nil)
		assert.Contains(t, s.page("?still=on"), "&#34;A-3&#34;: in the statement")
		halfway := time.Now().Add(-time.Minute).UTC().Format(timeLayout)
		s.uploadWith(url.Values{"from": {halfway}, "strays": {"true"}}, header)
		begins := "begins at lost_from or earlier: it begins at " + strings.Replace(halfway, " ", "T", 1)
		refused(begins, nil)
		s.uploadWith(url.Values{"until": {halfway}, "exported": {halfway}, "strays": {"true"}}, header)
		refused(begins, nil) // that was exported before the floor
		s.uploadWith(url.Values{"until": {halfway}, "strays": {"true"}}, header)
		refused("as_of is in the future", func(f url.Values) { f.Set("as_of", "2999-01-31T15:04:05Z") }) // one continues the other
		s.upload("")
		assert.Contains(t, s.page("?still=on"), "the statement has no lines")
		assert.Contains(t, s.page("?still=on"), "2 orders, 25.00 EUR, would then be sent")
		s.row("A-5", `closed = TRUE`)
		s.records("executed", listed("A-5"))
		assert.Contains(t, s.page("?still=on"), "&#34;A-5&#34;: paid though closed: in the statement", "it may have been replaced")
		s.do(`DELETE FROM payouts_reports`) // as where the program died before it was kept
		s.upload("", stray)
		assert.Contains(t, s.page("?still=on"), "&#34;A-3&#34;: in the statement", "no call here explains it, still")
		before, err := s.releasable(t.Context(), s.db, math.MaxInt64)
		require.NoError(t, err)
		s.records("pending", listed("A1"))
		assert.Contains(t, s.page("?still=on"), "&#34;A1&#34;: in the statement")
		refused("UTC or later, and say when in as_of", func(f url.Values) { f.Set("as_of", "2020-01-31T15:04:05Z") })
		assert.Contains(t, s.page("order?number=A-1"), "Do you have a transfer with the merchant order number A-1 of 12.50 EUR?", "nobody knows when")
		refused("have changed", func(f url.Values) { f.Set("seen", before.Seen) })
		assert.Equal(t, 200, s.cancelAs("A-2"), "after the floor, while the hold stands")
		status, text := s.post("resume", url.Values{"since": {s.paused().Since.Format(time.RFC3339Nano)}})
		assert.Equal(t, 409, status, text)
		before, err = s.releasable(t.Context(), s.db, math.MaxInt64)
		require.NoError(t, err)
		came := s.found("A-1").CreatedAt
		s.do(`UPDATE cardwire_intents_journal SET floor = $1`, s.moment(came.Add(-time.Minute)))
		refused("an order came after as_of", func(f url.Values) { f.Set("as_of", came.Add(-time.Microsecond).Format(time.RFC3339Nano)) })
		for field, value := range map[string]string{"lost_from": "", "seen": ""} {
			status, text := s.releaseAs(func(f url.Values) { f.Set(field, value) })
			assert.Equal(t, 422, status, text)
		}
		restore := s.backUp(journalTables)
		refused("lost_from must be before the hold", func(f url.Values) { f.Set("lost_from", "2999-01-31T15:04:05Z") })
		s.orders("A-8", "A-9")
		s.tells()
		s.do(`UPDATE payouts SET created_at = $1 WHERE order_no = 'A-8'`, s.moment(came.Add(-time.Second))) // by another clock
		status, text = s.releaseAs(func(f url.Values) { f.Set("seen", before.Seen) })
		assert.Equal(t, 303, status, text)
		assert.Zero(t, s.work("A-1"))
		assert.Zero(t, s.work("A-9"))
		assert.Equal(t, []string{StateSubmitted, StateCanceled, StateUnresolved}, s.states("A-1", "A-2", "A-8"), "of the last nobody has asked")
		assert.Contains(t, s.page("order?number=A-9"), "It may have been executed")
		assert.Contains(t, s.get("?state=unresolved"), `"order":"A-9"`)
		assert.Equal(t, s.found("A-9").CreatedAt, s.found("A-9").DenyFrom, "before that nobody can have asked")
		s.sweeps()
		assert.Empty(t, s.paused().Kind)
		s.tells()
		s.resolves("A-9", "send_again")
		s.tells()
		assert.Contains(t, s.get("?state=queued"), `"order":"A-9"`, "it is told once it is unresolved again")
		refused("the journal is not on hold", nil)
		s.records("executed", listed("A-4"))
		assert.NotContains(t, valuesOf[string](s, `SELECT unexplained FROM payouts_reports`)[0], "A-3", "it is told once")
		restore() // the journal alone, as it was on hold
		refused(compare, nil)
		assert.Equal(t, []string{StateUnresolved}, s.states("A-1"))
		s.settled()
		refused(compare, nil) // the comparison was before
	})
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
		status, text := s.releaseAs(nil)
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
