package payouts

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river/rivermigrate"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Requests at once are one order with one job, and so are later ones.
func TestAnOrderIsSubmittedOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.run()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { s.orders("A-1") })
		}
		group.Wait()
		s.await("A-1", StateSubmitted)
		again, err := s.SubmitNow(s.t.Context(), paramsFor("A-1"))
		require.NoError(t, err)
		assert.Equal(t, StateSubmitted, again.State, "the same again is the same order")
		other := paramsFor("A-1")
		other.ReceiverBankAccountNumber = "DE01"
		_, err = s.SubmitNow(s.t.Context(), other)
		require.ErrorIs(t, err, ErrConflict)
		assert.Equal(t, []string{"A-1"}, valuesOf[string](s, `SELECT args ->> 'order' FROM @river_job`))
		require.Len(t, s.fake.Ledger(), 1)
		o, err := s.Order(t.Context(), "A-1")
		require.NoError(t, err)
		want := []string{"12.5", "EUR", s.fake.Ledger()[0].ID, "wait_process"}
		assert.Equal(t, want, []string{o.Amount.String(), o.Currency, o.ServiceID, o.ServiceStatus})
		assert.NotContains(t, s.log.String(), "CANARY")
		require.Eventually(t, func() bool { return len(valuesOf[int64](s, `SELECT number FROM @payouts_marks`)) == 0 },
			waitFor, tick)
		assert.Equal(t, []string{"submitted"}, valuesOf[string](s, `SELECT told FROM @payouts`))
		s.do(`UPDATE @intents SET body_sha256 = $1, reserved = FALSE`, other.Digest())
		_, err = s.SubmitNow(s.t.Context(), other)
		require.ErrorIs(t, err, ErrConflict, "whatever the journal's row says: the order is another one")
		d, _ := errors.AsType[*cardwire.DuplicateIntent](err)
		require.NotNil(t, d)
		assert.Equal(t, cardwire.OutcomeExecuted, d.Outcome)
		assert.Equal(t, []bool{false}, valuesOf[bool](s, `SELECT reserved FROM @intents`), "nothing is pinned")
	})
}

// The caller's transaction has the order, its job and the journal's row, or none of them.
func TestSubmitIsInTheCallersTransaction(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		undo := errors.New("the checkout failed")
		err := s.transaction(t.Context(), func(tx *sql.Tx) error {
			o, err := s.Submit(t.Context(), tx, paramsFor("A-1"))
			assert.Equal(t, StateQueued, o.State)
			return errors.Join(err, undo)
		})
		require.ErrorIs(t, err, undo)
		_, err = s.Order(t.Context(), "A-1")
		require.ErrorIs(t, err, ErrNoOrder)
		for _, table := range []string{"@river_job", "@intents", "@intents_history", "@payouts_marks"} {
			assert.Equal(t, []int64{0}, valuesOf[int64](s, `SELECT count(*) FROM `+table), table)
		}
	})
}

// row makes the journal's row of a new order.
func (s *shop) row(number, change string, args ...any) {
	s.t.Helper()
	s.orders(number)
	s.do(`UPDATE @intents SET `+change+` WHERE reference = '`+number+`'`, args...)
}

// Each state, as the journal's row and the order's make it, and that the state's list and the counts
// have it: they look by indexes of their own, before and after it was told.
func TestTheStateIsDerived(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		const ahead = `'2999-01-31T15:04:05.000000Z'`
		all := map[string]struct {
			journal, order string
			state          State
		}{
			"new":              {"", "", StateQueued},
			"orphan":           {"", "", StateUnresolved},
			"in progress":      {`state = 'open', send_by = ` + ahead, "", StateSending},
			"died":             {`state = 'open'`, "", StateUnresolved},
			"ahead":            {`state = 'open', time = ` + ahead + `, send_by = ` + ahead, "", StateUnresolved},
			"lost":             {`state = 'unknown'`, "", StateUnresolved},
			"lost, closed":     {`state = 'unknown', closed = TRUE`, "", StateUnresolved},
			"refused":          {`state = 'refused'`, "", StateQueued},
			"closed":           {`state = 'refused', closed = TRUE`, "", StateFailed},
			"executed":         {`state = 'executed'`, "", StateSubmitted},
			"executed, closed": {`state = 'executed', closed = TRUE`, "", StateSubmitted},
			"paid":             {`state = 'executed'`, `said = 'paid'`, StatePaid},
			"returned":         {`state = 'executed'`, `said = 'returned'`, StateReturned},
			"denied":           {`state = 'refused', closed = TRUE`, `said = 'paid'`, StateFailed},
			"replaced":         {`state = 'not_sent'`, `told = 'failed'`, StateUnresolved},
			"canceled":         {`closed = TRUE`, `said = 'canceled'`, StateCanceled},
			"late":             {`state = 'executed'`, `said = 'canceled'`, StateSubmitted},
		}
		for number, tc := range all {
			s.row(number, cmp.Or(tc.journal, `state = state`))
			s.do(`UPDATE @payouts SET `+cmp.Or(tc.order, `said = said`)+` WHERE order_no = $1`, number)
		}
		s.forget("orphan")
		assert.Equal(t, "the result of the call is not on record", s.found("ahead").Reason)
		for _, told := range []bool{false, true} {
			counts := map[State]int64{}
			for number, tc := range all {
				assert.Equal(t, []State{tc.state}, s.states(number), number)
				if number == "replaced" && told { // it is as it was told, until a person finds out
					assert.Equal(t, 1, strings.Count(s.log.String(),
						"somebody has replaced its row in the journal: it was told as failed"))
					continue
				}
				assert.Contains(t, s.lists(tc.state), number, "told: %t", told)
				if !hasEnded(tc.state) {
					counts[tc.state]++
				}
			}
			found, err := s.liveTotals(t.Context())
			require.NoError(t, err)
			assert.Equal(t, counts, countsOf(found))
			s.tells()
			assert.Empty(t, valuesOf[int64](s, `SELECT number FROM @payouts_marks`))
		}
		for number, tc := range all { // whatever is delivered again
			if tc.state != StateQueued {
				s.work(number)
				assert.Zero(t, s.fake.Executions(operation, number), number)
			}
		}
	})
}

// forget removes an order from the journal, as after a failover that lost something.
func (s *shop) forget(numbers ...string) {
	s.t.Helper()
	unchecked := map[sqljournal.Dialect][2]string{
		sqljournal.SQLite:     {`PRAGMA foreign_keys = OFF`, `PRAGMA foreign_keys = ON`},
		sqljournal.PostgreSQL: {`ALTER TABLE @payouts DROP CONSTRAINT IF EXISTS payouts_journal`, ``},
	}[s.dialect]
	s.do(unchecked[0])
	for _, number := range numbers {
		s.do(`DELETE FROM @intents WHERE reference = $1`, number)
	}
	s.do(unchecked[1])
}

// What is on record before the order is adopted, where it is of the same body, or of none and the same
// amount: the order is born as what it says. It is told.
func TestWhatIsOnRecordIsAdopted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row   string
		state State
	}{ // state "": a conflict
		"executed":       {`state = 'executed'`, StateSubmitted},
		"closed":         {`state = 'refused', closed = TRUE`, StateFailed},
		"refused":        {`state = 'refused'`, StateQueued},
		"unknown":        {`state = 'unknown'`, StateUnresolved},
		"in progress":    {`state = 'open'`, StateSending},
		"voided":         {"", StateFailed},
		"a statement's":  {`state = 'executed', body_sha256 = '', amount = '12.5', currency = 'eur'`, StateSubmitted},
		"no amount":      {`state = 'executed', body_sha256 = '', amount = '', currency = ''`, StateSubmitted},
		"another amount": {`state = 'executed', body_sha256 = '', amount = '12.51', currency = 'EUR'`, ""},
		"another money":  {`state = 'executed', body_sha256 = '', amount = '12.50', currency = 'USD'`, ""},
		"another body":   {`body_sha256 = 'another'`, ""},
		"another's":      {`body_sha256 = 'another', state = 'executed'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				if tc.row == "" {
					s.voids("A-1")
				} else {
					require.NoError(t, s.journal.Begin(t.Context(), cardwire.Intent{
						Op: operation, Reference: "A-1", BodySHA256: paramsFor("A-1").Digest(),
						Amount: decimal.New(1250, -2), Currency: "EUR", Call: "c",
						SendBy: time.Now().Add(time.Minute), SettledBy: time.Now().Add(time.Minute),
					}))
					s.do(`UPDATE @intents SET ` + tc.row)
				}
				s.do(`DELETE FROM @payouts_marks`) // of no order yet: a sweep does so
				o, err := s.SubmitNow(s.t.Context(), paramsFor("A-1"))
				if tc.state == "" {
					require.ErrorIs(t, err, ErrConflict)
					require.ErrorContains(t, err, "do not pay it under another number")
					if d, ok := errors.AsType[*cardwire.DuplicateIntent](err); strings.Contains(tc.row, "executed") {
						assert.True(t, ok && d.Outcome == cardwire.OutcomeExecuted)
					}
					return
				}
				require.NoError(t, err)
				assert.Equal(t, tc.state, o.State)
				s.sweeps()
				assert.Empty(t, s.paused().Kind, "nothing is lost")
				s.tells()
				told := tc.state
				if told == StateQueued || told == StateSending {
					told = ""
				}
				assert.Equal(t, []State{told}, valuesOf[State](s, `SELECT told FROM @payouts`))
			})
		})
	}
}

// voids closes a number in the journal alone.
func (s *shop) voids(number string) {
	s.t.Helper()
	require.NoError(s.t, s.journal.Void(s.t.Context(), cardwire.Intent{Op: operation, Reference: number}, "Ada",
		"canceled"))
}

// What SQLite's connection lacks is said with the words to write.
func TestSQLiteIsOpenedAsItMustBe(t *testing.T) {
	t.Parallel()
	const settings = "_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate" +
		"&_time_format=sqlite&_timezone=UTC"
	assert.ErrorContains(t, errSQLite, settings)
	path := newFile(t)
	s := openShop(t, path, nil)
	require.NoError(t, os.Remove(path))
	require.Error(t, s.Verify(t.Context()))
	assert.NoFileExists(t, path, "nothing is created")
	for n, without := range []string{
		"", "_pragma=busy_timeout(5000)&", "&_txlock=immediate", "&_pragma=foreign_keys(1)", "&_time_format=sqlite",
		"&_timezone=UTC", "more than one connection", "a database in memory",
	} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { // a directory has the test's name
			t.Parallel()
			path, connections, want := filepath.Join(t.TempDir(), "payouts.db"), 1, errSQLite.Error()
			switch without {
			case "":
				want = ""
			case "a database in memory":
				path, want = ":memory:", "use a file"
			case "more than one connection":
				connections = 2
			}
			db, err := sql.Open("sqlite", strings.Replace("file:"+path+"?"+settings, without, "", 1))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			db.SetMaxOpenConns(connections)
			s, err := New(db, sqljournal.SQLite,
				Config{BaseURL: "https://cards.example/api/v1", APIKey: "k", Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			err = s.Migrate(t.Context())
			if want == "" {
				require.NoError(t, errors.Join(err, s.Verify(t.Context())))
				return
			}
			require.ErrorContains(t, err, want)
			assert.ErrorContains(t, s.Verify(t.Context()), want)
		})
	}
}

// An empty database would forget what was sent, and another service's would be sent to this one.
func TestTheDatabaseMustBeThisPrograms(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		db, dialect := openDB(t, source)
		c := Config{BaseURL: "https://cards.example/api/v1", APIKey: "CANARY", Logger: slog.New(slog.DiscardHandler)}
		open := func() *Service {
			s, err := New(db, dialect, c)
			require.NoError(t, err)
			return s
		}
		assert.Equal(t, "payouts.Config(https://cards.example/api/v1)", fmt.Sprintf("%+v", c), "without the key")
		assert.NotContains(t, fmt.Sprintf("%+v", open()), c.APIKey)
		require.ErrorContains(t, open().Run(t.Context()), "call Migrate once")
		require.ErrorIs(t, open().Verify(t.Context()), sqljournal.ErrSchema)
		s := openShop(t, source, nil)
		s.orders("A-1")
		s.work("A-1")
		require.NoError(t, open().Verify(t.Context()))
		c.BaseURL = "https://fake.example/api/v1"
		require.ErrorContains(t, open().Verify(t.Context()),
			"the orders in this database are for https://cards.example/api/v1")
		c.BaseURL, c.Account = "https://cards.example/api/v1", "another"
		require.ErrorContains(t, open().Verify(t.Context()),
			`account "", and not for https://cards.example/api/v1, account "another"`)
		c.Account, c.BaseURL = "", "https://cards.example/(a!b)/api/v1"
		assert.Equal(t, fmt.Sprint(open().client), "cardwire.Client("+open().base+")", "one name, in the journal too")
		c.BaseURL, c.Identity = "https://cards.example/api/v1", "another"
		require.ErrorIs(t, open().Verify(t.Context()), sqljournal.ErrSchema)
		require.ErrorIs(t, open().Migrate(t.Context()), sqljournal.ErrSchema)
		c.Identity = ""
		s.do(map[sqljournal.Dialect]string{
			sqljournal.SQLite:     `DROP TRIGGER @payouts_begun`,
			sqljournal.PostgreSQL: `DROP TRIGGER payouts_mark ON @intents`,
		}[dialect])
		require.ErrorContains(t, open().Verify(t.Context()), "cardwire_intents is missing: call Migrate once")
		require.NoError(t, open().Migrate(t.Context()))
		require.NoError(t, open().Verify(t.Context()), "once more is no harm")
		migrator, err := s.migrator()
		require.NoError(t, err)
		_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionDown, nil) // one version
		require.NoError(t, err)
		require.ErrorContains(t, open().Verify(t.Context()),
			"the queue's tables are of an older release: call Migrate once")
	})
}

// Two deployments at once wait for each other, also beside programs that send.
func TestMigrationsAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		stop := s.run()
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				for range 5 {
					assert.NoError(t, s.Migrate(t.Context()))
				}
			})
			group.Go(func() {
				for n := range 20 {
					_, err := s.SubmitNow(s.t.Context(), paramsFor(fmt.Sprintf("A-%d-%d", i, n)))
					assert.NoError(t, err)
				}
			})
		}
		group.Wait()
		s.await("A-2-19", StateSubmitted)
		stop()
		assert.NotContains(t, s.log.String(), "the journal failed")
	})
}

// What is to be done is listed oldest first, what has ended newest first; pages lead forth and back.
func TestPagesLeadForthAndBack(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for i := range 5 {
			number := fmt.Sprintf("A-%d", i)
			s.orders(number)
			s.do(`UPDATE @payouts SET created_at = $1 WHERE order_no = $2`,
				s.moment(time.Now().Add(time.Duration(i)*time.Minute-99*time.Hour)), number)
		}
		page := func(f Filter) (numbers string, p Page) {
			t.Helper()
			f.Limit = 2
			p, err := s.Orders(t.Context(), f)
			require.NoError(t, err)
			for _, o := range p.Orders {
				numbers += o.Number[2:]
			}
			return numbers, p
		}
		leads := func(f Filter, want ...string) {
			t.Helper()
			numbers, p := page(f)
			assert.Equal(t, want[0], numbers)
			assert.Empty(t, p.Previous)
			for _, next := range want[1:] {
				f.After = p.Next
				numbers, p = page(f)
				assert.Equal(t, next, numbers)
			}
			assert.Empty(t, p.Next)
			f.After, f.Before = "", p.Previous
			numbers, p = page(f)
			assert.Equal(t, want[len(want)-2], numbers)
			assert.NotEmpty(t, p.Next)
		}
		leads(Filter{}, "43", "21", "0")
		leads(Filter{State: StateQueued}, "01", "23", "4")
		s.do(`UPDATE @intents SET state = 'executed' WHERE reference <> 'A-0'`)
		for range 2 { // before they are told, and after
			leads(Filter{State: StateSubmitted}, "43", "21")
			numbers, _ := page(Filter{Live: true})
			assert.Equal(t, "0", numbers)
			s.tells()
		}
		second := s.found("A-2").CreatedAt
		numbers, _ := page(Filter{From: second, Until: second.Add(2 * time.Minute)})
		assert.Equal(t, "32", numbers)
		totals, err := s.Totals(t.Context(), Filter{From: second})
		require.NoError(t, err)
		require.Len(t, totals, 1)
		assert.Equal(t, []any{StateSubmitted, "EUR", int64(3), "37.5"},
			[]any{totals[0].State, totals[0].Currency, totals[0].Orders, totals[0].Amount.String()})
		_, p := page(Filter{Numbers: []string{"A-1", "A-9"}})
		assert.Equal(t, []string{"A-9"}, p.Missing)
		for _, f := range []Filter{{State: "lost"}, {After: "\xff"}, {Numbers: make([]string, maxNumbers+1)}} {
			_, err := s.Orders(t.Context(), f)
			require.ErrorIs(t, err, cardwire.ErrInvalidParams)
			_, err = s.Totals(t.Context(), f)
			require.ErrorIs(t, err, cardwire.ErrInvalidParams)
		}
	})
}
