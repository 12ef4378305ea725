package sqljournal_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// outage is a way to a database on which writes fail while it lasts: statements in
// PostgreSQL, and transactions in SQLite.
type outage struct {
	driver  driver.Driver
	at      place
	cause   error        // of the failures
	lost    atomic.Int64 // writes to come that are executed, and fail all the same
	failed  atomic.Int64 // writes to come after those that fail
	asked   atomic.Int64 // writes so far
	hasLost atomic.Bool  // the write of lose has come
	writing func()       // called before each write; nil: nothing is
	losing  func()       // called after a write whose response is lost; nil: nothing is
	pooled  bool         // no transaction can begin, as in a pool of statements
	begun   atomic.Int64 // transactions that are not over
	crowded atomic.Bool  // there was more than one
	reading func()       // called before each query, which SQLite prepares once; nil: nothing is

	mu    sync.Mutex
	texts map[string]int // how often each statement and query was parsed, but for those of a transaction
}

// during returns a journal at a place that has its schema, and the outage on the
// way there, which is over as yet.
func during(t *testing.T, at place, cause error) (*sqljournal.Journal, *outage) {
	t.Helper()
	direct, _ := open(t, at)
	o := &outage{driver: direct.Driver(), at: at, cause: cause, texts: map[string]int{}}
	db := sql.OpenDB(o)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, at.Dialect, sqljournal.WithTable(at.Table))
	require.NoError(t, err)
	return journal, o
}

func (o *outage) Driver() driver.Driver { return o.driver }

func (o *outage) Connect(context.Context) (driver.Conn, error) {
	conn, err := o.driver.Open(o.at.Source)
	return &unsteady{Conn: conn, outage: o}, err
}

// lose has the write that comes after so many others be executed, and fail all the same.
func (o *outage) lose(after int64) {
	nth := o.asked.Load() + after + 1
	o.writing = func() {
		if o.asked.Load() == nth {
			o.lost.Store(1)
			o.hasLost.Store(true)
		}
	}
}

// write writes during the outage; fail is called instead where nothing is written.
func (o *outage) write(write, fail func() error) error {
	o.asked.Add(1)
	if o.writing != nil {
		o.writing()
	}
	switch {
	case o.lost.Add(-1) >= 0:
		err := write()
		if o.losing != nil {
			o.losing()
		}
		return errors.Join(o.cause, err)
	case o.failed.Add(-1) >= 0:
		return errors.Join(o.cause, fail())
	}
	return write()
}

// unsteady is a connection during an outage.
type unsteady struct {
	driver.Conn
	outage *outage
	inTx   bool
}

func (u *unsteady) parses(text string) {
	u.outage.mu.Lock()
	defer u.outage.mu.Unlock()
	times := u.outage.texts[text]
	if !u.inTx {
		times++
	}
	u.outage.texts[text] = times
}

func (u *unsteady) Prepare(query string) (driver.Stmt, error) {
	u.parses(query)
	if u.outage.reading != nil {
		u.outage.reading()
	}
	return u.Conn.Prepare(query)
}

func (u *unsteady) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if u.outage.pooled {
		return nil, u.outage.cause
	}
	if u.outage.begun.Add(1) > 1 {
		u.outage.crowded.Store(true)
	}
	tx, err := u.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	u.inTx = true
	return &unsteadyTx{tx, u}, err
}

type unsteadyTx struct {
	driver.Tx
	on *unsteady
}

func (u *unsteadyTx) Commit() error {
	u.on.inTx = false
	defer u.on.outage.begun.Add(-1)
	return u.on.outage.write(u.Tx.Commit, u.Tx.Rollback)
}

func (u *unsteadyTx) Rollback() error {
	u.on.inTx = false
	defer u.on.outage.begun.Add(-1)
	return u.Tx.Rollback()
}

func (u *unsteady) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	u.parses(query)
	var result driver.Result
	err := u.outage.write(func() (err error) {
		result, err = u.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	}, func() error { return nil })
	return result, err
}

func (u *unsteady) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	u.parses(query)
	if u.outage.reading != nil {
		u.outage.reading()
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

// A late result needs a transaction, so that a pool that allows none is found out at the start.
func TestAPoolOfStatementsIsRefused(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	openNew(t, at)
	journal, outage := during(t, at, sqlState("08P01"))
	id, err := journal.Identity(t.Context())
	require.NoError(t, err)
	require.NoError(t, sqljournal.WithIdentity(id)(journal))
	outage.pooled = true
	require.ErrorIs(t, journal.Verify(t.Context()), outage.cause)
	require.ErrorIs(t, journal.Begin(t.Context(), intent("order-1")), outage.cause)
	outage.pooled = false
	require.NoError(t, journal.Verify(t.Context()))
}

// In SQLite what one journal writes never waits for its own lock: that wait is unfair, and a late
// result would be lost to it.
func TestWritesTakeTurns(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	openNew(t, at)
	journal, outage := during(t, at, nil)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for m := range 20 {
				i := intent(fmt.Sprint("order-", n, "-", m))
				ended(t, journal, i, unknown)
				assert.NoError(t, journal.End(t.Context(), i, executed))
			}
		})
	}
	group.Wait()
	assert.False(t, outage.crowded.Load())
}

// An End whose acknowledgement is lost is told again. That changes nothing, and what happens meanwhile
// does not contradict it.
func TestAnEndThatIsToldAgain(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, other *sqljournal.Journal, i cardwire.Intent) {
		t.Helper()
		begun(t, other, intent(i.Reference))
	}
	deny := func(t *testing.T, other *sqljournal.Journal, i cardwire.Intent) {
		t.Helper()
		assert.NoError(t, other.Resolve(t.Context(), i, rejected()))
	}
	for name, tc := range map[string]struct {
		result    cardwire.IntentResult
		want      []string
		meanwhile func(*testing.T, *sqljournal.Journal, cardwire.Intent)
	}{
		"executed":             {executed, []string{"ended: executed T-1"}, nil},
		"final":                {final, []string{"ended: refused"}, nil},
		"unknown":              {unknown, []string{"ended: unknown"}, nil},
		"unknown, then denied": {unknown, []string{"ended: unknown", "resolved: refused, Ada, ticket 7"}, deny},
		"refused, then begun":  {refused, []string{"ended: refused", "begun: unknown"}, begin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				_, other := openNew(t, at)
				journal, outage := during(t, at, io.ErrUnexpectedEOF)
				i := settled("M-1")
				begun(t, journal, i)
				outage.lost.Store(3)
				if tc.meanwhile != nil {
					outage.lost.Store(1)
					outage.losing = func() { tc.meanwhile(t, other, i) }
				}
				require.NoError(t, journal.End(t.Context(), i, tc.result))
				assertEvents(t, journal, "M-1", append([]string{"begun: unknown"}, tc.want...)...)
			})
		})
	}
}

// A contradiction is told and recorded once, whichever of its writes is executed and fails all the same.
func TestAContradictionOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, at place, nth int64) bool {
		openNew(t, at)
		journal, outage := during(t, at, io.ErrUnexpectedEOF)
		i := intent("M-1")
		ended(t, journal, i, refused)
		outage.lose(nth)
		require.ErrorIs(t, journal.End(t.Context(), i, executed), sqljournal.ErrContradiction)
		assertEvents(t, journal, "M-1", "begun: unknown", "ended: refused", "contradicted: executed T-1")
		return outage.hasLost.Load()
	})
}

// eachWrite runs the test on every kind of database, for each of its writes, until it has no more.
func eachWrite(t *testing.T, test func(t *testing.T, at place, nth int64) (hasWritten bool)) {
	t.Helper()
	for nth := int64(0); !t.Failed(); nth++ {
		var written atomic.Int64
		eachPlace(t, func(t *testing.T, at place) {
			if test(t, at, nth) {
				written.Add(1)
			}
		})
		if written.Load() == 0 {
			assert.Greater(t, nth, int64(2))
			return
		}
	}
}

// A Begin that was recorded and not acknowledged sent nothing: that is put right
// as soon as the database is back.
func TestAFailedBeginIsReleasedAfterTheOutage(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		synctest.Test(t, func(t *testing.T) { // no deadline passes because the machine is slow
			openNew(t, at)
			journal, outage := during(t, at, io.ErrUnexpectedEOF)
			begun(t, journal, intent("M-0"))
			outage.lost.Store(1)
			outage.failed.Store(3)
			require.ErrorIs(t, journal.Begin(t.Context(), intent("M-1")), io.ErrUnexpectedEOF)
			assertEvents(t, journal, "M-1", "begun: unknown", "ended: not_sent, , nothing was sent: Begin failed")
		})
	})
}

// What a failed Begin left open sent nothing, so the next Begin or Void of its journal, or Flush,
// takes it back, also where it comes late, and the call itself is not begun again.
func TestALaterCallTakesBackWhatAFailedBeginLeftOpen(t *testing.T) {
	t.Parallel()
	denied := sqlState("42501") // which is not waited for
	eachPlace(t, func(t *testing.T, at place) {
		_, other := openNew(t, at)
		journal, outage := during(t, at, denied)
		begun(t, journal, intent("M-0"))
		for _, reference := range []string{"M-1", "M-2", "M-3"} {
			outage.lost.Store(1)
			outage.failed.Store(1)
			i := intent(reference)
			require.ErrorIs(t, journal.Begin(t.Context(), i), denied)
			require.ErrorContains(t, journal.Begin(t.Context(), i), "an earlier Begin of this call failed")
			require.Equal(t, "in progress", word(other.Begin(t.Context(), intent(reference))), "to other processes")
		}
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		assertEvents(t, journal, "M-1",
			"begun: unknown", "ended: not_sent, , nothing was sent: Begin failed", "begun: unknown")
		assert.Equal(t, "in progress", word(journal.Begin(t.Context(), intent("M-1"))), "now it is begun")
		require.NoError(t, journal.Void(t.Context(), intent("M-2"), "Ada", "canceled"))
		another := intent("M-3")
		another.BodySHA256 = "00"
		assert.Same(t, cardwire.ErrOtherBody, journal.Begin(t.Context(), another))

		for reference, end := range map[string]func() error{
			"M-5": func() error { return journal.Flush(t.Context()) },
			"M-6": func() error { return journal.Void(t.Context(), intent("M-6"), "Ada", "") },
		} {
			outage.failed.Store(1)
			late := intent(reference)
			require.ErrorIs(t, journal.Begin(t.Context(), late), denied)
			begun(t, other, late) // which the server executes only now
			require.NoError(t, end())
			assert.Equal(t, cardwire.OutcomeNotSent, lookup(t, other, reference).Outcome)
		}

		outage.lost.Store(1)
		outage.failed.Store(1)
		require.ErrorIs(t, journal.Begin(t.Context(), settled("M-4")), denied)
		require.NoError(t, other.Hold(t.Context(), "Ada", "a restore", 0))
		assert.Equal(t, "unknown", word(journal.Begin(t.Context(), intent("M-4"))), "another may have been sent, and forgotten")
	})
}

// A Begin that waits in vain ends two seconds after its context: one for its
// statement, one to release what it may have recorded. What waits with it goes on.
func TestABeginThatWaitsInVainEnds(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	synctest.Test(t, func(t *testing.T) {
		db, journal := openNew(t, at)
		begun(t, journal, intent("M-0"))
		lock, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = lock.ExecContext(t.Context(), "DELETE FROM "+at.Table+"_history")
		require.NoError(t, err)
		patient := make(chan error)
		go func() { patient <- journal.Begin(context.WithoutCancel(t.Context()), intent("M-2")) }()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, journal.Begin(ctx, intent("M-1")), context.DeadlineExceeded)
		assert.Equal(t, 30*time.Millisecond+2*time.Second, time.Since(start))
		require.NoError(t, lock.Rollback())
		require.NoError(t, <-patient)
		assert.Equal(t, []string{"M-0 open 1", "M-2 open 1"}, rows(t, db, at))
	})
}

// Callers whose statements are executed in one transaction are told of their own: one
// that fails fails alone, and what was abandoned with it is executed again.
func TestAStatementFailsAlone(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "&_pragma=journal_mode(WAL)")
	db, _ := openNew(t, at)
	execute(t, db, "CREATE TRIGGER unlucky BEFORE INSERT ON "+at.Table+
		" WHEN NEW.reference LIKE '%13' BEGIN SELECT RAISE(ABORT, 'no'); END")
	journal, outage := during(t, at, nil)
	var came atomic.Int64
	var first sync.Once
	outage.writing = func() { // the others wait together
		first.Do(func() {
			for came.Load() < 128 {
				runtime.Gosched()
			}
		})
	}
	var group sync.WaitGroup
	for n := range 128 {
		i := intent(fmt.Sprintf("M-%02d", n))
		group.Go(func() {
			came.Add(1)
			err := journal.Begin(t.Context(), i)
			if n%100 == 13 {
				assert.ErrorContains(t, err, "recording the intent failed")
				return
			}
			assert.NoError(t, err)
			assert.NoError(t, journal.End(t.Context(), i, executed))
		})
	}
	group.Wait()
	assert.Len(t, rows(t, db, at), 126)
	assert.Empty(t, unresolved(t, journal))
}

// Who is in a hurry takes nobody along: what waits is not executed for them any more, and
// what they execute for others is executed again.
func TestACallerInAHurry(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	synctest.Test(t, func(t *testing.T) {
		openNew(t, at)
		journal, outage := during(t, at, context.Canceled)
		i := intent("M-1")
		begun(t, journal, i)
		others, hurried := make(chan error, 2), make(chan error, 1)
		begin := func(reference string) { others <- journal.Begin(t.Context(), intent(reference)) }
		end := func(ctx context.Context) { hurried <- journal.End(ctx, i, refused) }
		hold := func() (gate chan struct{}) { // until then, what is called waits
			gate = make(chan struct{})
			outage.writing = func() { <-gate }
			go begin(rand.Text())
			synctest.Wait()
			return gate
		}
		gate := hold()
		ctx, cancel := context.WithCancel(t.Context())
		go end(ctx)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-hurried, context.Canceled)
		outage.writing = nil
		close(gate)
		require.NoError(t, <-others)
		begun(t, journal, intent("M-2"))
		assert.Equal(t, "in progress", word(journal.Begin(t.Context(), intent("M-1"))))

		gate = hold()
		ctx, cancel = context.WithCancel(t.Context())
		go end(ctx) // it executes what follows too
		synctest.Wait()
		go begin("M-3")
		synctest.Wait()
		outage.writing = func() {
			cancel()
			outage.failed.Store(1)
			outage.writing = nil
		}
		close(gate)
		require.ErrorIs(t, <-hurried, context.Canceled)
		require.NoError(t, errors.Join(<-others, <-others))
		assert.Equal(t, "in progress", word(journal.Begin(t.Context(), intent("M-3"))))
	})
}

// The database forgot the intent while its call was in progress, whatever else failed.
func TestAnIntentThatVanishedIsRecordedAgain(t *testing.T) {
	t.Parallel()
	for want, tc := range map[string]struct {
		result cardwire.IntentResult
		begin  string
	}{
		"executed T-1": {executed, "executed T-1"},
		"unknown":      {unknown, "unknown"},
		"refused":      {refused, "unknown"},
		"final":        {final, "unknown"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			eachWrite(t, func(t *testing.T, at place, nth int64) bool {
				db, _ := openNew(t, at)
				journal, outage := during(t, at, io.ErrUnexpectedEOF)
				i := intent("M-1")
				begun(t, journal, i)
				execute(t, db, "DELETE FROM "+at.Table)
				outage.lose(nth)
				err := journal.End(t.Context(), i, tc.result)
				require.ErrorIs(t, err, sqljournal.ErrRecordedAgain)
				var shown interface{ SafeMessage() string }
				require.ErrorAs(t, err, &shown, "the client tells it")
				history := events(t, journal, "M-1")
				assert.Len(t, history, 2)
				assert.Equal(t, 1, strings.Count(history[1], "the database had lost it"))
				e := lookup(t, journal, "M-1")
				assert.False(t, e.SendBy.After(time.Now()), "it sends nothing more")
				assert.WithinDuration(t, i.SettledBy, e.SettledBy, time.Minute, "the service may execute it late")
				_, other := open(t, at)
				assert.Equal(t, tc.begin, word(other.Begin(t.Context(), intent("M-1"))))
				return outage.hasLost.Load()
			})
		})
	}
}

func TestEndOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cause error
		lasts bool
	}{
		"a connection that is cut":  {io.ErrUnexpectedEOF, false},
		"a server that shuts down":  {sqlState("57P01"), false},
		"transactions that collide": {sqlState("40001"), false},
		"a standby":                 {sqlState("25006"), false},
		"no permission":             {sqlState("42501"), true},
		"a NUL":                     {sqlState("22021"), true},
		"a file of another user":    {errors.New("attempt to write a readonly database (8)"), true},
		"no column":                 {errors.New("no such column: call (1)"), true},
		"no database":               {errors.New("file is not a database (26)"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				if _, ok := tc.cause.(sqlState); tc.lasts && at.Dialect == sqljournal.PostgreSQL && !ok {
					t.Skip("SQLite's message")
				}
				db, _ := openNew(t, at)
				journal, outage := during(t, at, tc.cause)
				i := intent("M-1")
				begun(t, journal, i)
				asked := outage.asked.Load()
				outage.failed.Store(4)
				err := journal.End(t.Context(), i, executed)
				if tc.lasts {
					require.ErrorIs(t, err, tc.cause)
					assert.Equal(t, asked+1, outage.asked.Load(), "it is not tried again")
					return
				}
				require.NoError(t, err)
				assert.Equal(t, []string{"M-1 executed 1 T-1"}, rows(t, db, at))
				assert.Equal(t, asked+4+1, outage.asked.Load())
			})
		})
	}
}

func TestEndDoesNotWaitForWhatLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := onSQLite(t, "")
		_, missing := open(t, at)
		closed := sql.OpenDB(nowhere{})
		require.NoError(t, closed.Close())
		start := time.Now()
		require.Error(t, missing.End(t.Context(), intent("M-1"), executed))
		require.Error(t, journalIn(t, closed).End(t.Context(), intent("M-1"), executed))
		openNew(t, at)
		_, another := open(t, at, sqljournal.WithIdentity("another"))
		require.ErrorIs(t, another.End(t.Context(), intent("M-1"), executed), sqljournal.ErrSchema)
		assert.Equal(t, start, time.Now(), "nothing was waited for")
	})
}

var errNowhere = errors.New("no server at that address")

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
				err := journalIn(t, db).End(ctx, intent("M-1"), unknown)
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
		require.NoError(t, journal.Verify(t.Context()))
		outage.reading = func() {
			outage.reading = nil
			begun(t, other, intent("M-1"))
		}
		assert.Empty(t, unresolved(t, journal))
		assert.Equal(t, "in progress", word(journal.Begin(t.Context(), intent("M-1"))))
	})
}

// pooled is a pool that lets a copy respond to reads.
type pooled struct {
	driver       driver.Driver
	source, copy string
}

func (p pooled) Driver() driver.Driver { return p.driver }

func (p pooled) Connect(context.Context) (driver.Conn, error) {
	primary, err := p.driver.Open(p.source)
	if err != nil {
		return nil, err
	}
	behind, err := p.driver.Open(p.copy)
	return &split{primary, behind}, err
}

type split struct {
	driver.Conn
	behind driver.Conn
}

func (s *split) Prepare(text string) (driver.Stmt, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "SELECT") {
		return s.behind.Prepare(text)
	}
	return s.Conn.Prepare(text)
}

func (s *split) Close() error { return errors.Join(s.behind.Close(), s.Conn.Close()) }

// What changes a row compares what it has read: a pool whose reads a copy responds to, which is behind, changes
// nothing.
func TestAStaleRead(t *testing.T) {
	t.Parallel()
	i, again := settled("M-1"), settled("M-1")
	denies := func(ctx context.Context, j *sqljournal.Journal) error { return j.Resolve(ctx, i, notSent()) }
	for name, c := range map[string]struct {
		copied      cardwire.IntentResult // before the copy was made; the zero value: nothing
		meanwhile   func(ctx context.Context, other *sqljournal.Journal) error
		changeStale func(ctx context.Context, j *sqljournal.Journal) error
	}{
		"state": {
			meanwhile:   func(ctx context.Context, other *sqljournal.Journal) error { return other.End(ctx, i, executed) },
			changeStale: denies,
		},
		"call": {
			meanwhile: func(ctx context.Context, other *sqljournal.Journal) error {
				return errors.Join(other.End(ctx, i, refused), other.Begin(ctx, again))
			},
			changeStale: denies,
		},
		"closed": {
			copied: refused,
			meanwhile: func(ctx context.Context, other *sqljournal.Journal) error {
				return other.Void(ctx, again, "Ada", "the order has failed")
			},
			changeStale: func(ctx context.Context, j *sqljournal.Journal) error { return j.Reserve(ctx, again) },
		},
		"reserved": {
			copied:    refused,
			meanwhile: func(ctx context.Context, other *sqljournal.Journal) error { return other.Reserve(ctx, again) },
			changeStale: func(ctx context.Context, j *sqljournal.Journal) error {
				return j.Void(ctx, cardwire.Intent{Op: transfer, Reference: "M-1"}, "Ada", "")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := onSQLite(t, "")
			db, other := openNew(t, at)
			begun(t, other, i)
			if c.copied.Outcome != cardwire.OutcomeUnknown {
				require.NoError(t, other.End(t.Context(), i, c.copied))
			}
			copied := filepath.Join(fastDir(t), "copy.db")
			execute(t, db, "VACUUM INTO '"+copied+"'")
			pool := sql.OpenDB(pooled{db.Driver(), at.Source, "file:" + copied})
			defer pool.Close()
			journal, err := sqljournal.New(pool, at.Dialect, sqljournal.WithTable(at.Table))
			require.NoError(t, err)
			require.NoError(t, c.meanwhile(t.Context(), other))
			want := lookup(t, other, "M-1")
			err = c.changeStale(t.Context(), journal)
			require.ErrorContains(t, err, "the reference was changed by others at the same time: try again")
			assert.Equal(t, want, lookup(t, other, "M-1"))
		})
	}
}
