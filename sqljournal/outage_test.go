package sqljournal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// outage is a way to a database on which statements fail while it lasts.
type outage struct {
	driver driver.Driver
	source string
	cause  error        // of the failures
	lost   atomic.Int64 // statements to come that are executed, and fail all the same
	failed atomic.Int64 // statements to come after those that fail
	asked  atomic.Int64 // statements so far
	before func()       // what happens before a query is executed; nil: nothing

	executing func() // called before each statement; nil: nothing is
}

// during returns a journal at a place that has its schema, and the outage on the
// way there, which is over as yet.
func during(t *testing.T, at place, cause error) (*sqljournal.Journal, *outage) {
	t.Helper()
	direct, _ := open(t, at)
	o := &outage{driver: direct.Driver(), source: at.Source, cause: cause}
	db := sql.OpenDB(o)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, at.Dialect, sqljournal.WithTable(at.Table))
	require.NoError(t, err)
	return journal, o
}

func (o *outage) Driver() driver.Driver { return o.driver }

func (o *outage) Connect(context.Context) (driver.Conn, error) {
	conn, err := o.driver.Open(o.source)
	return &unsteady{conn, o}, err
}

// unsteady is a connection during an outage.
type unsteady struct {
	driver.Conn
	outage *outage
}

func (u *unsteady) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	u.outage.asked.Add(1)
	if u.outage.executing != nil {
		u.outage.executing()
	}
	switch {
	case u.outage.lost.Add(-1) >= 0:
		if _, err := u.Conn.(driver.ExecerContext).ExecContext(ctx, query, args); err != nil {
			return nil, err
		}
		return nil, u.outage.cause
	case u.outage.failed.Add(-1) >= 0:
		return nil, u.outage.cause
	}
	return u.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (u *unsteady) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if u.outage.before != nil {
		u.outage.before()
	}
	return u.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (u *unsteady) CheckNamedValue(v *driver.NamedValue) error {
	if own, ok := u.Conn.(driver.NamedValueChecker); ok {
		return own.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// sqlState is an error as drivers of PostgreSQL have it.
type sqlState string

func (s sqlState) Error() string    { return "the server said no" }
func (s sqlState) SQLState() string { return string(s) }

func TestEndOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"a connection that is cut":  io.ErrUnexpectedEOF,
		"a server that shuts down":  sqlState("57P01"),
		"a server that starts":      sqlState("57P03"),
		"transactions that collide": sqlState("40001"),
		"a standby":                 sqlState("25006"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				db, _ := openNew(t, at)
				journal, outage := during(t, at, cause)
				require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
				outage.failed.Store(4)
				require.NoError(t, journal.End(t.Context(), intent("M-1"), cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "X-1"}))
				assert.Equal(t, []string{"executed 1 true X-1"}, rowsOf(t, db, at.Table))
				assert.EqualValues(t, 1+4+1, outage.asked.Load())
			})
		})
	}
}

// An End whose acknowledgement is lost is told again, and that changes nothing:
// neither what it recorded, nor what another call of the same tick did.
func TestAnEndThatIsToldAgainChangesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		unique  bool
		outcome cardwire.Outcome
		rows    []string
	}{
		"unique, executed":     {true, cardwire.OutcomeExecuted, []string{"executed 1 true X-1"}},
		"unique, refused":      {true, cardwire.OutcomeRefused, []string{"refused 1 true X-1"}},
		"unique, unknown":      {true, cardwire.OutcomeUnknown, []string{"unknown 1 true X-1"}},
		"not unique, executed": {false, cardwire.OutcomeExecuted, []string{"executed 1 true X-1", "open 1 false"}},
		"not unique, refused":  {false, cardwire.OutcomeRefused, []string{"refused 1 true X-1", "open 1 false"}},
		"not unique, unknown":  {false, cardwire.OutcomeUnknown, []string{"unknown 1 true X-1", "open 1 false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				db, _ := openNew(t, at)
				journal, outage := during(t, at, io.ErrUnexpectedEOF)
				i := intent("M-1")
				i.Unique = tc.unique
				for range tc.rows {
					require.NoError(t, journal.Begin(t.Context(), i))
				}
				outage.lost.Store(3)
				require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: tc.outcome, ServiceID: "X-1"}))
				assert.Equal(t, tc.rows, rowsOf(t, db, at.Table))
			})
		})
	}
}

// Each of several rows of one tick has its own End, whichever was lost.
func TestEachEndHasARowOfItsOwn(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		journal, outage := during(t, at, io.ErrUnexpectedEOF)
		i := intent("M-1")
		i.Unique = false
		results := []cardwire.Outcome{cardwire.OutcomeRefused, cardwire.OutcomeExecuted, cardwire.OutcomeUnknown}
		for range results {
			require.NoError(t, journal.Begin(t.Context(), i))
		}
		for _, outcome := range results {
			outage.lost.Store(2)
			require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: outcome}))
		}
		assert.Equal(t, []string{"refused 1 true", "executed 1 true", "unknown 1 true"}, rowsOf(t, db, at.Table))
	})
}

// A Begin that was recorded and not acknowledged sent nothing: that is put right
// as soon as the database is back.
func TestAFailedBeginIsReleasedAfterTheOutage(t *testing.T) {
	t.Parallel()
	eachPlace(t, unhurried(func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		journal, outage := during(t, at, io.ErrUnexpectedEOF)
		outage.lost.Store(1)
		outage.failed.Store(3)
		require.ErrorIs(t, journal.Begin(t.Context(), intent("M-1")), io.ErrUnexpectedEOF)
		assert.Equal(t, []string{"not_sent 1 true"}, rowsOf(t, db, at.Table))
		assert.EqualValues(t, 1+3+1, outage.asked.Load())
	}))
}

// A driver that lost the response executes the statement again on a connection that
// lives: the row that is there is then this call's own.
func TestABeginThatIsExecutedTwiceIsNoDuplicate(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		journal, outage := during(t, at, driver.ErrBadConn)
		outage.lost.Store(1)
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		assert.EqualValues(t, 2, outage.asked.Load())
		cancel := intent("M-2")
		cancel.Unique = false
		outage.lost.Store(1)
		require.NoError(t, journal.Begin(t.Context(), cancel))
		assert.Equal(t, []string{"open 1 false", "open 1 false"}, rowsOf(t, db, at.Table))
		assert.Equal(t, []string{"begun: unknown"}, kinds(t, journal))
		assert.Equal(t, "taken, unknown", word(journal.Begin(t.Context(), intent("M-1"))), "by a later call")
	})
}

// What a failed Begin left open sent nothing, so the next one takes it back.
func TestALaterBeginTakesBackWhatAFailedOneLeftOpen(t *testing.T) {
	t.Parallel()
	denied := sqlState("42501") // which is not waited for
	leftOpen := func(t *testing.T, at place) *sqljournal.Journal {
		db, _ := openNew(t, at)
		journal, outage := during(t, at, denied)
		outage.lost.Store(1)
		outage.failed.Store(1)
		require.ErrorIs(t, journal.Begin(t.Context(), intent("M-1")), denied)
		require.Equal(t, []string{"open 1 false"}, rowsOf(t, db, at.Table))
		_, other := open(t, at)
		require.Equal(t, "taken, unknown", word(other.Begin(t.Context(), intent("M-1"))), "for another process it may have been sent")
		assert.NoError(t, journal.Look(t.Context(), transfer, "M-1"))
		return journal
	}
	eachPlace(t, func(t *testing.T, at place) {
		journal := leftOpen(t, at)
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		assert.Equal(t, []string{"begun: unknown", "ended: not sent", "begun: unknown"}, kinds(t, journal))
		assert.Equal(t, "taken, unknown", word(journal.Begin(t.Context(), intent("M-1"))), "now it is begun")
	})
	eachPlace(t, func(t *testing.T, at place) {
		journal := leftOpen(t, at)
		other := intent("M-1")
		other.BodySHA256 = "00"
		assert.Equal(t, "other body", word(journal.Begin(t.Context(), other)), "the first is known not to have been sent")
	})
	eachPlace(t, func(t *testing.T, at place) {
		journal := leftOpen(t, at)
		require.NoError(t, journal.Void(t.Context(), transfer, "M-1", "", ""))
	})
}

// The database forgot the intent while its call was in progress.
func TestAnIntentThatVanishedIsRecordedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result cardwire.IntentResult
		row    string
		begin  string
	}{
		"executed": {cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"}, "executed 1 true T-1", "taken, executed"},
		"unknown":  {cardwire.IntentResult{}, "unknown 1 true", "taken, unknown"},
		"refused":  {cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}, "refused 1 true", "ok"},
		"final":    {cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}, "refused 1 true", "taken, refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, lost := range []int64{0, 2} { // statements whose response is lost
				eachPlace(t, func(t *testing.T, at place) {
					db, _ := openNew(t, at)
					journal, outage := during(t, at, io.ErrUnexpectedEOF)
					require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
					execute(t, db, "DELETE FROM "+at.Table)
					outage.lost.Store(lost)
					require.ErrorIs(t, journal.End(t.Context(), intent("M-1"), tc.result), sqljournal.ErrRecordedAgain)
					assert.Equal(t, []string{tc.row}, rowsOf(t, db, at.Table))
					assert.Equal(t, "recorded again", strings.Split(kinds(t, journal)[0], ":")[0])
					_, other := open(t, at)
					assert.Equal(t, tc.begin, word(other.Begin(t.Context(), intent("M-1"))))
				})
			}
		})
	}
}

func TestSeveralIntentsThatVanished(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		i := intent("M-1")
		i.Unique = false
		for range 2 {
			require.NoError(t, journal.Begin(t.Context(), i))
		}
		execute(t, db, "DELETE FROM "+at.Table)
		for _, outcome := range []cardwire.Outcome{cardwire.OutcomeExecuted, cardwire.OutcomeUnknown} {
			require.ErrorIs(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: outcome}), sqljournal.ErrRecordedAgain)
		}
		assert.Equal(t, []string{"executed 1 true", "unknown 1 true"}, rowsOf(t, db, at.Table))
	})
}

func TestEndDoesNotRetryWhatLasts(t *testing.T) {
	t.Parallel()
	executed := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted}
	t.Run("no table", func(t *testing.T) {
		t.Parallel()
		eachPlace(t, func(t *testing.T, at place) {
			journal, outage := during(t, at, nil)
			require.ErrorContains(t, journal.End(t.Context(), intent("M-1"), executed), "recording the result failed")
			assert.EqualValues(t, 1, outage.asked.Load())
		})
	})
	for name, cause := range map[string]sqlState{
		"no permission": "42501", "a NUL": "22021", "too many bytes": "22001",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				journal, outage := during(t, at, cause)
				outage.failed.Store(1)
				require.ErrorIs(t, journal.End(t.Context(), intent("M-1"), executed), cause)
				assert.EqualValues(t, 1, outage.asked.Load())
			})
		})
	}
	for _, words := range []string{"attempt to write a readonly database (8)", "no such column: holder (1)", "file is not a database (26)"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			at := onSQLite(t, "")
			journal, outage := during(t, at, errors.New(words))
			outage.failed.Store(1)
			require.Error(t, journal.End(t.Context(), intent("M-1"), executed))
			assert.EqualValues(t, 1, outage.asked.Load())
		})
	}
	t.Run("a closed database", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := sql.OpenDB(nowhere{})
			require.NoError(t, db.Close())
			start := time.Now()
			require.Error(t, journalIn(t, db).End(t.Context(), intent("M-1"), executed))
			assert.Equal(t, start, time.Now(), "nothing was waited for")
		})
	})
}

var errNowhere = errors.New("nobody listens")

// nowhere is where no database can be reached.
type nowhere struct{}

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, errNowhere }
func (nowhere) Driver() driver.Driver                        { return nil }

func journalIn(t *testing.T, db *sql.DB) *sqljournal.Journal {
	t.Helper()
	journal, err := sqljournal.New(db, sqljournal.PostgreSQL)
	require.NoError(t, err)
	return journal
}

// Without a deadline an End ends by itself; with one it uses it.
func TestEndGivesUpInTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		deadline, want time.Duration
		is             []error
	}{
		"no deadline":    {0, 10 * time.Second, []error{errNowhere}},
		"the client's":   {5 * time.Second, 5 * time.Second, []error{errNowhere, context.DeadlineExceeded}},
		"a distant one":  {time.Hour, 10 * time.Second, []error{errNowhere}},
		"one that is up": {-1, 0, []error{context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := sql.OpenDB(nowhere{})
				defer db.Close()
				ctx := t.Context()
				if tc.deadline != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				start := time.Now()
				err := journalIn(t, db).End(ctx, intent("M-1"), cardwire.IntentResult{})
				assert.Equal(t, tc.want, time.Since(start))
				for _, cause := range tc.is {
					require.ErrorIs(t, err, cause)
				}
			})
		})
	}
}

// A query that is held up finds what was begun meanwhile, which is in progress
// although it is later than the query's time.
func TestUnresolvedLeavesOutWhatIsBegunMeanwhile(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, other := openNew(t, at)
		journal, outage := during(t, at, nil)
		i := intent("M-1")
		outage.before = func() {
			outage.before = nil
			i.Time = time.Now()
			i.SendBy = i.Time.Add(time.Minute)
			require.NoError(t, other.Begin(t.Context(), i))
		}
		assert.Empty(t, references(t, journal, 0))
		outage.before = func() {
			outage.before = nil
			require.NoError(t, other.End(t.Context(), i, cardwire.IntentResult{}))
		}
		assert.Empty(t, references(t, journal, time.Hour), "it ended unknown, and not an hour ago")
		assert.Len(t, references(t, journal, 0), 1)
	})
}
