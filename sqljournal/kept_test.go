package sqljournal_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// away is more writes than are tried in any test.
const away = 1 << 30

// misses begins intents, and ends them while the database is away for longer than the client waits.
func misses(
	t *testing.T, journal *sqljournal.Journal, outage *outage, r cardwire.IntentResult, intents ...cardwire.Intent,
) {
	t.Helper()
	begun(t, journal, intents...)
	outage.failed.Store(away)
	for _, i := range intents {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		require.Error(t, journal.End(ctx, i, r))
		cancel()
	}
	outage.failed.Store(0)
}

// A result that could not be recorded is recorded before the next thing that is done with its reference, or by
// Flush; once.
func TestAKeptResult(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		synctest.Test(t, func(t *testing.T) {
			openNew(t, at)
			_, other := open(t, at)
			journal, outage := during(t, at, io.ErrUnexpectedEOF)
			i := intent("M-1")
			misses(t, journal, outage, executed, i, intent("M-2"), intent("M-3"), intent("M-4"), intent("M-5"),
				intent("M-6"))
			assert.Equal(t, "in progress", word(other.Begin(t.Context(), intent("M-1"))), "others do not know it")
			assert.Equal(t, "executed T-1", word(journal.Begin(t.Context(), intent("M-1"))))
			assert.Equal(t, "executed T-1", word(journal.Void(t.Context(), intent("M-2"), "Ada", "")))
			assert.Equal(t, "executed T-1", word(journal.Reserve(t.Context(), intent("M-3"))))
			require.ErrorIs(t, journal.Resolve(t.Context(), lookup(t, journal, "M-4").Intent, notSent()),
				sqljournal.ErrDecided)
			assertEvents(t, journal, "M-5", "begun: unknown", "ended: executed T-1")
			assert.Equal(t, "in progress", word(other.Begin(t.Context(), intent("M-6"))))
			require.NoError(t, journal.Flush(t.Context()))
			assert.Equal(t, "executed T-1", word(other.Begin(t.Context(), intent("M-6"))))
			require.NoError(t, journal.Flush(t.Context()))
			for n := range 6 {
				assert.Equal(t, []string{"begun: unknown", "ended: executed T-1"},
					events(t, other, fmt.Sprint("M-", n+1))[:2])
			}
		})
	})
}

// While the database is away nothing is done with the reference of a kept result, and Flush says so.
func TestAKeptResultWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		synctest.Test(t, func(t *testing.T) {
			openNew(t, at)
			journal, outage := during(t, at, io.ErrUnexpectedEOF)
			i := settled("M-1")
			misses(t, journal, outage, executed, i)
			outage.failed.Store(away)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			require.ErrorIs(t, journal.Resolve(ctx, i, notSent()), io.ErrUnexpectedEOF,
				"it was executed, as this program knows")
			require.Error(t, journal.Flush(ctx))
			outage.failed.Store(0)
			require.NoError(t, journal.Flush(t.Context()))
			assertEvents(t, journal, "M-1", "begun: unknown", "ended: executed T-1")
		})
	})
}

// A kept result is recorded in no transaction of its caller's, and in no other journal; what contradicts it is told by
// the next Flush, once.
func TestWhereAKeptResultIsRecorded(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		synctest.Test(t, func(t *testing.T) {
			db, other := openNew(t, at)
			journal, outage := during(t, at, io.ErrUnexpectedEOF)
			i := intent("M-1")
			misses(t, journal, outage, executed, i)
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			e, err := journal.In(tx).Lookup(t.Context(), transfer, "M-1")
			require.NoError(t, err)
			assert.True(t, e.Open)
			require.NoError(t, tx.Rollback())

			execute(t, db, "UPDATE "+at.Table+"_journal SET identity = 'x' || identity")
			require.ErrorIs(t, journal.Flush(t.Context()), sqljournal.ErrSchema)
			execute(t, db, "UPDATE "+at.Table+"_journal SET identity = substr(identity, 2)")
			require.NoError(t, other.Resolve(t.Context(), i, paid("T-9")))
			assert.Equal(t, "executed T-9", word(journal.Begin(t.Context(), intent("M-1"))))
			err = journal.Flush(t.Context())
			require.ErrorIs(t, err, sqljournal.ErrContradiction)
			require.ErrorContains(t, err, "the result of CreateTransfer M-1: ")
			require.NoError(t, journal.Flush(t.Context()), "it is told once")
		})
	})
}

// What keeps one result from the record does not keep the others; a context that is done keeps all.
func TestFlushGoesOn(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		synctest.Test(t, func(t *testing.T) {
			_, other := openNew(t, at)
			journal, outage := during(t, at, sqlState("P0001")) // as a trigger of the merchant's raises
			misses(t, journal, outage, executed, intent("M-1"), intent("M-2"), intent("M-3"))
			ctx, cancel := context.WithCancel(t.Context())
			outage.writing = cancel
			asked := outage.asked.Load()
			require.ErrorIs(t, journal.Flush(ctx), context.Canceled)
			assert.Equal(t, asked+1, outage.asked.Load())
			outage.writing = nil
			outage.failed.Store(1)
			require.ErrorIs(t, journal.Flush(t.Context()), outage.cause)
			for n, want := range []string{"in progress", "executed T-1", "executed T-1"} {
				reference := fmt.Sprint("M-", n+1)
				assert.Equal(t, want, word(other.Begin(t.Context(), intent(reference))), reference)
			}
			require.NoError(t, journal.Flush(t.Context()))
			assert.Equal(t, "executed T-1", word(other.Begin(t.Context(), intent("M-1"))))
		})
	})
}

// What the database refuses for its own sake is dropped, and told: it would keep all others from the record.
func TestAKeptResultThatIsRefused(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	synctest.Test(t, func(t *testing.T) {
		openNew(t, at)
		journal, outage := during(t, at, io.ErrUnexpectedEOF)
		misses(t, journal, outage, executed, intent("M-1"), intent("M-2"))
		outage.cause = sqlState("23514")
		outage.failed.Store(1)
		err := journal.Flush(t.Context())
		require.ErrorIs(t, err, outage.cause)
		require.ErrorContains(t, err, "the result of CreateTransfer M-1: sqljournal: recording the result failed")
		assertEvents(t, journal, "M-1", "begun: unknown")
		assertEvents(t, journal, "M-2", "begun: unknown", "ended: executed T-1")
		require.NoError(t, journal.Flush(t.Context()))
		i := intent("M-3")
		begun(t, journal, i)
		outage.failed.Store(1)
		require.Error(t, journal.End(t.Context(), i, executed))
		require.NoError(t, journal.Flush(t.Context()), "it was not kept")
	})
}
