package payouts

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/database"
)

// books is a merchant's table, in which Changed keeps what it is told.
type books struct {
	mu    sync.Mutex
	fails map[string]bool
	calls []string
	panic bool // in place of an error
}

func (b *books) changed(ctx context.Context, tx *sql.Tx, o Order) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, o.Number+" "+string(o.State))
	_, err := tx.ExecContext(ctx, `INSERT INTO books (number, state) VALUES ($1, $2)
ON CONFLICT (number) DO UPDATE SET state = excluded.state`, o.Number, o.State)
	if b.fails[o.Number] && b.panic {
		panic("a map is nil")
	}
	if b.fails[o.Number] {
		err = errors.Join(err, errors.New("the merchant's own table is locked"))
	}
	return err
}

func (b *books) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// openBooks is a shop that is told.
func openBooks(t *testing.T, source string) (*shop, *books) {
	t.Helper()
	b := &books{fails: map[string]bool{}}
	s := openShop(t, source, func(c *Config) { c.Changed = b.changed })
	s.do(`CREATE TABLE books (number TEXT PRIMARY KEY, state TEXT NOT NULL)`)
	return s, b
}

// Each change is told once where nothing fails, whoever made it, and the last word is the last state.
func TestChangesAreTold(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s, b := openBooks(t, source)
		says := func(want ...string) {
			t.Helper()
			s.tells()
			assert.Equal(t, want, b.told())
			b.calls = nil
		}
		s.orders("call", "closed", "person")
		says()
		s.work("call")
		says("call submitted")
		s.willFail(cardwiretest.Fault{Status: 422})
		s.work("closed")
		says("closed failed")
		s.loseResponse("lost", true)
		says("lost unresolved")
		require.NoError(t, s.cancels("person"))
		says("person canceled")
		s.resolves("lost", "executed")
		s.resolves("lost", "paid")
		says("lost paid")
		s.resolves("lost", "returned")
		says("lost returned")
		s.resolves("call", "paid")
		says("call paid")
		s.loseResponse("again", false)
		s.resolves("again", "send_again")
		says()
		s.loseResponse("twice", false)
		says("twice unresolved")
		s.resolves("twice", "send_again")
		says()
		s.willFail(lostResponse)
		s.work("twice")
		says("twice unresolved")
		s.resolves("twice", "executed", "T-7")
		says("twice submitted")
		s.do(`UPDATE @intents SET service_id = 'T-8' WHERE reference = 'twice'`)
		says("twice submitted")

		// Of another program.
		i := cardwire.Intent{Op: operation, Reference: "born", BodySHA256: paramsFor("born").Digest(), Call: "c",
			SendBy: time.Now().Add(time.Minute)}
		require.NoError(t, s.journal.Begin(t.Context(), i))
		require.NoError(t, s.journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted}))
		says()
		s.orders("born")
		says("born submitted")

		// By time alone.
		s.orders("died")
		says()
		i.Reference, i.BodySHA256 = "died", paramsFor("died").Digest()
		i.Call, i.SendBy = "d", time.Now().Add(-time.Second)
		require.NoError(t, s.journal.Begin(t.Context(), i))
		says()
		require.NoError(t, s.markMissed(t.Context()))
		says("died unresolved")
		require.NoError(t, s.markMissed(t.Context()))
		says()
		assert.Equal(t, []string{"returned"}, valuesOf[string](s, `SELECT state FROM books WHERE number = 'lost'`))
	})
}

// One that fails is rolled back, and told again after growing pauses, while others go on.
func TestAChangeThatCannotBeToldIsToldLater(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s, b := openBooks(t, source)
		s.orders("A-0", "A-1", "A-2")
		s.work("A-1")
		s.work("A-2")
		b.fails["A-1"] = true
		for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			before := time.Now()
			s.tells()
			assert.Empty(t, valuesOf[string](s, `SELECT state FROM books WHERE number = 'A-1'`))
			assert.Equal(t, []string{"submitted"}, valuesOf[string](s, `SELECT state FROM books WHERE number = 'A-2'`))
			assert.Equal(t, []string{""}, valuesOf[string](s, `SELECT told FROM @payouts WHERE order_no = 'A-1'`))
			var due time.Time
			_, err := query(t.Context(), s.Service, s.db,
				func(scan scan) (any, error) { return nil, scan(database.Moment(&due)) },
				`SELECT min(due) FROM @payouts_marks`)
			require.NoError(t, err)
			assert.WithinRange(t, due, before.Add(pause-time.Second/2), time.Now().Add(pause+time.Second/2))
			assert.Zero(t, s.late(), "it has just begun")
			s.do(`UPDATE @payouts_marks SET due = $1`, s.moment(time.Now().Add(-time.Second)))
			b.panic = !b.panic
		}
		since := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
		s.do(`UPDATE @payouts_marks SET since = $1`, s.moment(since))
		s.orders("A-3") // a change that is new
		assert.Equal(t, delays{Untold: 1, UntoldSince: since}, s.late())
		b.calls = nil
		require.NoError(t, s.cancels("A-0"))
		n, err := s.tell(t.Context())
		require.NoError(t, err)
		assert.NotZero(t, n, "one was told")
		assert.Equal(t, []string{"A-0 canceled", "A-1 submitted"}, b.told(), "what failed before is the last")
		s.do(`UPDATE @payouts_marks SET due = $1`, s.moment(time.Now().Add(-time.Second)))
		n, err = s.tell(t.Context())
		require.NoError(t, err)
		assert.Zero(t, n, "there is a pause where nothing could be told")
		s.do(`UPDATE @payouts_marks SET due = $1`, s.moment(time.Now().Add(-time.Second)))
		b.fails["A-1"] = false
		s.tells()
		assert.Equal(t, []string{"submitted"}, valuesOf[string](s, `SELECT told FROM @payouts WHERE order_no = 'A-1'`))
		assert.Zero(t, s.late())
		assert.Contains(t, s.log.String(), `msg="an order could not be told: it is told again" order=A-1 `+
			`error="the merchant's own table is locked"`)
		assert.Regexp(t, `error="it panicked: a map is nil\\ngoroutine .*\(\*books\)\.changed`, s.log.String())
	})
}

// A replica without Changed leaves the marks to the one with it, also while that one is away. Where there is none
// nobody is told, and the log says so once.
func TestAReplicaWithoutChangedTellsNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		silent := openShop(t, source, nil)
		finds := func(number string) string {
			silent.orders(number)
			silent.work(number)
			silent.tells()
			return valuesOf[string](silent, `SELECT told FROM @payouts WHERE order_no = $1`, number)[0]
		}
		assert.Equal(t, []string{"submitted", "submitted"}, []string{finds("A-1"), finds("A-2")})
		assert.Equal(t, 1, strings.Count(silent.log.String(), "no replica has Changed: nobody is told"))
		s, b := openBooks(t, source)
		s.sweeps()
		s.tells()
		assert.Empty(t, b.told())
		assert.Equal(t, []string{"", ""}, []string{finds("A-3"), finds("A-4")})
		s.tells()
		assert.Equal(t, []string{"A-3 submitted", "A-4 submitted"}, b.told())
	})
}

// A transaction that stays open while later ones are told and gone is told when it commits; and one that
// rolls back is not. A number or a time greater than the last seen would miss the first.
func TestATransactionThatStaysOpenIsTold(t *testing.T) {
	t.Parallel()
	s, b := openBooks(t, newDatabase(t))
	stop := s.run()
	for _, number := range []string{"late", "undone"} {
		s.row(number, `state = 'unknown'`)
	}
	require.Eventually(t, func() bool { return len(b.told()) == 2 }, waitFor, tick)
	var open [2]*sql.Tx
	for i, number := range []string{"late", "undone"} {
		var err error
		open[i], err = s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = open[i].ExecContext(t.Context(),
			s.sql(`UPDATE @intents SET state = 'executed' WHERE reference = $1`), number)
		require.NoError(t, err)
	}
	begun := time.Now()
	for n := 0; time.Since(begun) < 10*time.Second; n++ { // others come, and are told
		number := "other-" + time.Now().Format("150405.000000000")
		s.orders(number)
		require.Eventually(t, func() bool { return slices.Contains(b.told(), number+" submitted") }, waitFor, tick)
	}
	assert.NotContains(t, b.told(), "late submitted")
	require.NoError(t, open[1].Rollback())
	require.NoError(t, open[0].Commit())
	require.Eventually(t, func() bool { return slices.Contains(b.told(), "late submitted") }, waitFor, tick)
	require.Eventually(t, func() bool { return len(valuesOf[int64](s, `SELECT number FROM @payouts_marks`)) == 0 },
		waitFor, tick)
	stop()
	assert.NotContains(t, b.told(), "undone submitted")
	assert.Equal(t, []State{StateUnresolved}, valuesOf[State](s, `SELECT told FROM @payouts WHERE order_no = 'undone'`))
}

// While an order is told, the call that changes it again does not wait; what it changes is told after that.
func TestAnEndDoesNotWaitForChanged(t *testing.T) {
	t.Parallel()
	in, out := make(chan struct{}), make(chan struct{})
	var told []State
	s := openShop(t, newDatabase(t), func(c *Config) {
		c.Changed = func(_ context.Context, _ *sql.Tx, o Order) error {
			if told = append(told, o.State); len(told) == 1 {
				in <- struct{}{}
				<-out
			}
			return nil
		}
	})
	s.row("A-1", `state = 'unknown'`)
	var group sync.WaitGroup
	group.Go(s.tells)
	<-in
	s.do(`UPDATE @intents SET state = 'executed'`)
	n, err := s.tell(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n, "another replica tells nothing of what is locked")
	assert.Len(t, valuesOf[int64](s, `SELECT number FROM @payouts_marks`), 4, "three of before, and one since")
	close(out)
	group.Wait()
	assert.Equal(t, []State{StateUnresolved, StateSubmitted}, told)
}

// Other programs need no permission on the tables of payouts: the mark has its owner's.
func TestAnotherProgramLeavesAMark(t *testing.T) {
	t.Parallel()
	s := openShop(t, newDatabase(t), nil)
	s.orders("A-1")
	s.tells()
	role := s.role("marks")
	s.do(`GRANT USAGE ON SCHEMA @schema TO ` + role)
	s.do(`GRANT SELECT, INSERT, UPDATE ON @intents, @intents_history, @intents_journal TO ` + role)
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, statement := range []string{
		`SET LOCAL ROLE ` + role, `CREATE TEMPORARY TABLE payouts_marks (order_no TEXT)`,
		`UPDATE @intents SET state = 'executed'`,
	} {
		require.NoError(t, s.exec(t.Context(), tx, statement))
	}
	require.NoError(t, tx.Commit())
	assert.Equal(t, []int64{1}, valuesOf[int64](s, `SELECT count(*) FROM @payouts_marks`))
}
