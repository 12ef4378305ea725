package sqljournal_test

import (
	"context"
	"database/sql"
	"fmt"
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

// isOnHold expects that the journal has put itself on hold, for that reason, once, and that nothing is sent, voided,
// denied or released.
func isOnHold(t *testing.T, at place, why string, opts ...sqljournal.Option) (*sql.DB, *sqljournal.Journal) {
	t.Helper()
	db, j := open(t, at, opts...)
	fake := cardwiretest.New()
	for n := range 2 {
		_, err := connect(fake, j).CreateTransfer(t.Context(), paramsOf(fmt.Sprint("new-", n)))
		require.ErrorContains(t, err, "the journal is on hold since")
		assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
	}
	assert.Empty(t, fake.Requests())
	h, err := j.Held(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "the journal", h.By)
	assert.Regexp(t, "^"+why+"$", h.Why)
	assert.WithinDuration(t, h.Since.Add(11*time.Minute), h.Floor, time.Second, "the longest life that it has seen")
	assert.Len(t, eventsOfJournal(t, db, at), 1)
	require.ErrorIs(t, j.Void(t.Context(), cardwire.Intent{Op: transfer, Reference: "new"}, "Ada", ""),
		journal.ErrOnHold)
	require.ErrorIs(t, j.Release(t.Context(), "Ada", "too early"), sqljournal.ErrDecided)
	require.ErrorIs(t, j.Moved(t.Context(), "Ada", "it was not planned"), sqljournal.ErrDecided)
	return db, j
}

// release lets the floor pass, and ends the hold.
func release(t *testing.T, db *sql.DB, at place, j *sqljournal.Journal) {
	t.Helper()
	execute(t, db, "UPDATE "+at.Table+"_journal SET floor = now()")
	require.NoError(t, j.Release(t.Context(), "Ada", "the service was asked about each"))
}

// A dump that is restored into a new database is on hold there: what was free is unknown. So is one that
// replaces the tables.
func TestADumpIsOnHold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	at := s.at("postgres")
	db, production := openNew(t, at)
	record(t, production, "free", "free")
	record(t, production, "reserved", "reserved")
	file := s.dump("postgres")
	execute(t, db, `CREATE DATABASE restored`)
	s.restore(file, "restored")
	restored := s.at("restored")

	dump, early := open(t, restored)
	reserve := func(j interface {
		Reserve(context.Context, cardwire.Intent) error
	}, reference string) {
		t.Helper()
		require.NoError(t, j.Reserve(t.Context(), intent(reference)))
	}
	tx, err := dump.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	reserve(early.In(tx), "before it is stored")
	h, err := early.In(tx).Held(t.Context())
	require.NoError(t, err)
	assert.Regexp(t, `^restored, failed over or copied: database \d+ -> \d+, table \d+ -> \d+$`, h.Why)
	require.NoError(t, tx.Commit())
	assert.ElementsMatch(t, []string{"free", "reserved", "before it is stored"}, unresolved(t, early))
	stats, err := early.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(3), stats.Unresolved)
	assert.Empty(t, eventsOfJournal(t, dump, restored), "whoever reads stores nothing")
	again, err := early.Held(t.Context())
	require.NoError(t, err)
	assert.Equal(t, h, again, "it is derived from the first look on")

	_, j := isOnHold(t, restored, `restored, failed over or copied: database \d+ -> \d+, table \d+ -> \d+`)
	reserve(j, "since")
	release(t, dump, restored, j)
	assert.ElementsMatch(t, []string{"free", "reserved", "before it is stored"}, unresolved(t, j))
	begun(t, j, intent("since"), intent("new"))
	begun(t, production, intent("free")) // which is where it was

	t.Run("into its own database", func(t *testing.T) {
		s.restore(file, "postgres", "--clean")
		isOnHold(t, at, `restored, failed over or copied: table \d+ -> \d+`)
	})
}

// standbyOf is a standby that has all that the server has.
func standbyOf(primary *server) (*server, *sql.DB) {
	primary.Helper()
	standby := primary.standby()
	db, _ := open(primary, standby.at("postgres"))
	primary.follows(db)
	return standby, db
}

// follows waits until a standby has all that the server has.
func (s *server) follows(standby *sql.DB) {
	s.Helper()
	primary, _ := open(s, s.at("postgres"))
	var end string
	require.NoError(s, primary.QueryRowContext(s.Context(), `SELECT pg_current_wal_lsn()::text`).Scan(&end))
	require.Eventually(s, func() bool { // the standby follows in its own time
		var has bool
		row := standby.QueryRowContext(s.Context(), `SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn`, end)
		return row.Scan(&has) == nil && has
	}, time.Minute, 10*time.Millisecond)
}

// loses cuts a standby off, so that it lacks what is committed from then on.
func loses(t *testing.T, standby *sql.DB) {
	t.Helper()
	execute(t, standby, `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`)
	require.Eventually(t, func() bool {
		var n int
		row := standby.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_wal_receiver`)
		return row.Scan(&n) == nil && n == 0
	}, time.Minute, 10*time.Millisecond)
}

// A primary that was replaced comes back, and a program that has seen the new one sends nothing there.
func TestAnOldPrimaryComesBack(t *testing.T) {
	t.Parallel()
	primary := newServer(t)
	db, _ := openNew(t, primary.at("postgres"))
	standby, behind := standbyOf(primary)
	j, way := program(t, primary)
	begun(t, j, intent("M-1"))
	record(t, j, "free", "free")
	primary.follows(behind)
	standby.promote()
	way.to.Store(standby)
	require.ErrorIs(t, j.Begin(t.Context(), intent("M-2")), journal.ErrOnHold)
	release(t, behind, standby.at("postgres"), j)
	begun(t, j, intent("M-2"))

	way.to.Store(primary)
	free := intent("free") // there, as far as this server knows: its order would fail, and be paid by another number
	for _, err := range []error{
		j.Begin(t.Context(), intent("M-3")), j.Verify(t.Context()), j.Void(t.Context(), free, "Ada", ""),
		j.Reserve(t.Context(), free), j.Resolve(t.Context(), lookup(t, j, "free").Intent, rejected()),
	} {
		require.ErrorContains(t, err, "the database is on an earlier timeline than this program has seen")
	}
	assert.Empty(t, eventsOfJournal(t, db, primary.at("postgres")), "it is not stored")
	_, restarted := program(t, primary)
	restarted.to.Store(primary)
	way.to.Store(standby)
	begun(t, j, intent("M-3"))
}

// With synchronous replication a standby has all, and work goes on; a call that is gone all the same is a hold, also one
// that began after an earlier hold, by a program that was not told of the replication. A restart is no failover.
func TestASynchronousFailover(t *testing.T) {
	t.Parallel()
	for name, isLossy := range map[string]bool{"all is there": false, "the last call is gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := newServer(t)
			at := primary.at("postgres")
			db, person := openNew(t, at)
			standby, behind := standbyOf(primary)
			first, way := program(t, primary, sqljournal.WithSynchronousFailover())
			second, other := program(t, primary, sqljournal.WithSynchronousFailover())
			earlier := 0 // events
			if isLossy {
				second, other = program(t, primary)
				begun(t, second, intent("M-0"))
				require.NoError(t, person.Hold(t.Context(), "Ada", "a test", 0))
				release(t, db, at, person)
				earlier = 2
			}
			begun(t, first, intent("M-1"))
			record(t, first, "free", "free")
			primary.follows(behind)
			if isLossy {
				loses(t, behind)
			}
			record(t, second, "M-2", "executed")
			if !isLossy {
				primary.follows(behind)
			}
			primary.stop()
			standby.promote()
			way.to.Store(standby)
			other.to.Store(standby)
			begun(t, first, intent("free"), intent("M-3"))
			assert.Equal(t, []string{"failed over by the journal: timeline 1 -> 2"}, eventsOfJournal(t, behind, at)[earlier:])
			if isLossy {
				require.ErrorIs(t, second.Begin(t.Context(), intent("M-2")), journal.ErrOnHold)
				require.ErrorIs(t, first.Begin(t.Context(), intent("M-4")), journal.ErrOnHold)
				assert.Equal(t, "held by the journal: the database has lost a call that this program had begun: "+
					"check for a restore", eventsOfJournal(t, behind, at)[earlier+1])
				release(t, behind, at, second)
				require.NoError(t, second.Verify(t.Context()), "a loss is a hold once")
				begun(t, second, intent("M-4"))
				return
			}
			begun(t, second, intent("M-4"))
			standby.stop()
			standby.start()
			begun(t, first, intent("M-5"))
			begun(t, second, intent("M-6"))
			fresh, _ := open(t, standby.at("postgres"))
			assert.Len(t, eventsOfJournal(t, fresh, at), 1)
		})
	}
}

// A recovery to a point in time has a new timeline.
func TestARecoveryIsOnHold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, j := openNew(t, s.at("postgres"))
	record(t, j, "free", "free")
	other := s.recovered()
	isOnHold(t, other.at("postgres"), "restored, failed over or copied: timeline 1 -> 2")
}

// A disk snapshot and rows that are replaced are what PostgreSQL does not tell: a running program notices by its calls
// in flight, in SQLite too.
func TestARunningProgramNoticesWhatItsCallsLack(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]cardwire.IntentResult{
		"executed": executed, "refused": final, "unknown": unknown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				db, j := openNew(t, at)
				begun(t, j, intent("M-1"))
				restore := backUp(t, db, at)
				i := intent("M-2")
				begun(t, j, i, intent("M-3"))
				restore()
				begun(t, j, intent("M-4")) // nothing was noticed yet
				err := j.End(t.Context(), i, result)
				require.ErrorIs(t, err, sqljournal.ErrRecordedAgain)
				require.ErrorIs(t, j.Begin(t.Context(), intent("M-5")), journal.ErrOnHold)
				h, err := j.Held(t.Context())
				require.NoError(t, err)
				assert.Equal(t, "the journal", h.By)
				assert.Equal(t, "the database has lost a call that this program had begun: check for a restore", h.Why)
				want := cardwire.OutcomeUnknown
				if name == "executed" {
					want = cardwire.OutcomeExecuted
				}
				assert.Equal(t, want, lookup(t, j, "M-2").Outcome, "a refusal says nothing of what is lost")
				assert.Len(t, eventsOfJournal(t, db, at), 1)
			})
		})
	}
}

// Where no call is in flight, the next Verify misses the last one; and the next Begin, where a hold came after nothing,
// since the database has forgotten it, or it was a planned move.
func TestARunningProgramMissesItsLastCall(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		release := func() {
			t.Helper()
			execute(t, db, "UPDATE "+at.Table+"_journal SET floor = held_at")
			require.NoError(t, j.Release(t.Context(), "Ada", "a test"))
		}
		record(t, j, "M-1", "executed")
		restore := backUp(t, db, at)
		record(t, j, "M-2", "executed")
		restore()
		require.NoError(t, j.Verify(t.Context()))
		require.ErrorIs(t, j.Begin(t.Context(), intent("M-2")), journal.ErrOnHold)
		restore()
		require.NoError(t, j.Hold(t.Context(), "Ada", "a test", 0))
		release()
		record(t, j, "M-2", "executed")
		restore()
		require.ErrorIs(t, j.Begin(t.Context(), intent("M-2")), journal.ErrOnHold)
		release()
		require.NoError(t, j.Verify(t.Context()), "a loss is a hold once")
		record(t, j, "M-3", "executed")
		if at.Dialect != sqljournal.PostgreSQL {
			return
		}
		require.NoError(t, j.Hold(t.Context(), "Ada", "a move", 0))
		require.NoError(t, j.Verify(t.Context()))
		execute(t, db, "DELETE FROM "+at.Table+" WHERE reference = 'M-3'",
			"DELETE FROM "+at.Table+"_history WHERE reference = 'M-3'", "UPDATE "+at.Table+"_journal SET in_table = '1'")
		require.NoError(t, j.Moved(t.Context(), "Ada", "it was the last"))
		require.NoError(t, j.Verify(t.Context()))
		require.ErrorIs(t, j.Begin(t.Context(), intent("M-3")), journal.ErrOnHold)
	})
}

// The life of a call that this program began counts for the floor, also where the database has lost it.
func TestTheFloorIsAfterALostCall(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		begun(t, j, intent("M-1"))
		restore := backUp(t, db, at)
		long := intent("M-2")
		long.SettledBy = long.Time.Add(3 * time.Hour)
		begun(t, j, long)
		restore()
		require.NoError(t, j.Verify(t.Context()))
		h, err := j.Held(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 3*time.Hour, h.Floor.Sub(h.Since).Round(time.Second))
	})
}

// What a failed Begin may have left, and a call that this program did not begin, are no loss.
func TestWhatIsNoLoss(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, j := openNew(t, at)
		require.NoError(t, j.Verify(t.Context()))
		require.ErrorIs(t, j.End(t.Context(), intent("M-1"), executed), sqljournal.ErrRecordedAgain)
		failing, outage := during(t, at, sqlState("42501"))
		begun(t, failing, intent("M-2"))
		outage.failed.Store(1)
		i := intent("M-3")
		require.Error(t, failing.Begin(t.Context(), i))
		require.Error(t, failing.End(t.Context(), i, unknown))
		h, err := j.Held(t.Context())
		require.NoError(t, err)
		assert.Zero(t, h)
	})
}

// A planned move is under a person's hold: it ends at once, and nothing is unknown for it.
func TestAPlannedMove(t *testing.T) {
	t.Parallel()
	primary := newServer(t)
	at := primary.at("postgres")
	db, j := openNew(t, at)
	record(t, j, "free", "free")
	refuses := func(j *sqljournal.Journal, why string) {
		t.Helper()
		err := j.Moved(t.Context(), "Ada", "a switchover")
		require.ErrorIs(t, err, sqljournal.ErrDecided)
		require.ErrorContains(t, err, why)
	}
	refuses(j, "the journal is in the database that it was put on hold in")
	require.NoError(t, j.Hold(t.Context(), "Ada", "a switchover at ten", 0))
	require.NoError(t, j.Reserve(t.Context(), intent("since")))
	refuses(j, "the journal is in the database that it was put on hold in")
	standby, behind := standbyOf(primary)
	primary.stop()
	standby.promote()
	at = standby.at("postgres")
	for range 2 { // it is stored nowhere
		_, other := open(t, at)
		require.NoError(t, other.Verify(t.Context()))
		require.ErrorIs(t, other.Begin(t.Context(), intent("new")), journal.ErrOnHold)
	}
	_, moved := open(t, at)
	h, err := moved.Held(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Ada: a switchover at ten", h.By+": "+h.Why, "a person's hold stays")
	assert.Equal(t, "unknown", standing(t, moved, "free"))
	err = moved.Release(t.Context(), "Ada", "it runs")
	require.ErrorIs(t, err, sqljournal.ErrDecided)
	require.ErrorContains(t, err, "timeline 1 -> 2: call Moved after a planned move")
	require.ErrorIs(t, moved.Moved(t.Context(), "the journal", ""), cardwire.ErrInvalidParams)
	require.ErrorIs(t, moved.Moved(t.Context(), "", ""), cardwire.ErrInvalidParams)

	const sets = `UPDATE cardwire_intents_journal SET held_at = held_at + 'HOURS', floor = floor + 'HOURS'`
	execute(t, behind, strings.ReplaceAll(sets, "HOURS", "-25 hours"))
	refuses(moved, "the hold is older than 24 hours")
	before := events(t, moved, "free")
	for what, err := range map[string]error{ // what it has from during the hold may be a backup's, and paid since
		"free in its era": moved.Void(t.Context(), cardwire.Intent{Op: transfer, Reference: "since"}, "Ada", ""),
		"new":             moved.Void(t.Context(), cardwire.Intent{Op: transfer, Reference: "new"}, "Ada", ""),
		"unknown":         moved.Resolve(t.Context(), lookup(t, moved, "free").Intent, notSent()),
	} {
		require.ErrorIs(t, err, journal.ErrOnHold, what)
		require.ErrorContains(t, err, "timeline 1 -> 2: call Moved after a planned move", what)
	}
	assert.Equal(t, before, events(t, moved, "free"))
	execute(t, behind, strings.ReplaceAll(sets, "HOURS", "25 hours"))
	require.NoError(t, moved.Moved(t.Context(), "Grace", "never released at the old one"))
	begun(t, moved, intent("free"), intent("since"), intent("new"))
	require.NoError(t, moved.Void(t.Context(), cardwire.Intent{Op: transfer, Reference: "canceled"}, "Ada", ""))
	assert.Equal(t, []string{"held by Ada: a switchover at ten", "moved by Grace: never released at the old one"},
		eventsOfJournal(t, behind, at))
	require.NoError(t, db.Close())

	t.Run("a call that is gone makes the hold the journal's own", func(t *testing.T) {
		i := intent("lost")
		begun(t, moved, i)
		execute(t, behind, `DELETE FROM cardwire_intents_history WHERE reference = 'lost'`)
		require.NoError(t, moved.Hold(t.Context(), "Ada", "an upgrade", 0))
		require.NoError(t, behind.QueryRowContext(t.Context(),
			`UPDATE cardwire_intents_journal SET in_table = '1' RETURNING 1`).Scan(new(int)))
		require.Error(t, moved.End(t.Context(), i, final))
		h, err := moved.Held(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "the journal", h.By)
		assert.Contains(t, h.Why, "the database has lost a call")
		assert.Contains(t, h.Why, "on hold by Ada: an upgrade")
		refuses(moved, "the journal is in the database")
		require.NoError(t, moved.Hold(t.Context(), "Ada", "an upgrade", 0),
			"of a hold that stands there is nothing to set back")
		execute(t, behind, `UPDATE cardwire_intents_journal SET in_table = '1'`)
		refuses(moved, "while it was not on hold")
	})
}

// A part of the name that a role may not read is not compared; nor is one that Migrate could not, until a release:
// a copy whose role may read more must not take itself for the original.
func TestAPartThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	db, _ := open(t, at)
	schema := newSchema(t, db)
	execute(t, db, `CREATE FUNCTION `+schema+`.pg_control_system(OUT system_identifier bigint) LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'not supported here' USING ERRCODE = '0A000'; END $$`) // as a managed server does
	managed := at
	managed.Source += "&search_path=" + schema + ",pg_catalog,public"
	managed.Table = "public." + at.Table
	_, j := openNew(t, managed)
	begun(t, j, intent("M-1"))
	read := func() (server string) {
		t.Helper()
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT server FROM "+at.Table+"_journal").Scan(&server))
		return server
	}
	_, more := open(t, at)
	begun(t, more, intent("M-2"))
	assert.Empty(t, read(), "only Migrate and a release fill it in")
	require.NoError(t, more.Hold(t.Context(), "Ada", "", 0))
	assert.Empty(t, read())
	release(t, db, at, more)
	assert.NotEmpty(t, read())
	begun(t, j, intent("M-3"))
	execute(t, db, "UPDATE "+at.Table+"_journal SET server = '7'")
	begun(t, j, intent("M-4"))
	require.ErrorIs(t, more.Begin(t.Context(), intent("M-5")), journal.ErrOnHold)

	execute(t, db, "UPDATE "+at.Table+"_journal SET server = '', timeline = '', held_by = ''")
	require.NoError(t, more.Migrate(t.Context()))
	assert.NotEmpty(t, read())
}

// A server that is read-only, as a standby, tells no timeline; a program that began there finds it once it can write.
func TestAProgramThatBeganOnAStandby(t *testing.T) {
	t.Parallel()
	primary := newServer(t)
	openNew(t, primary.at("postgres"))
	standby, behind := standbyOf(primary)
	j, _ := program(t, standby)
	_, err := j.Lookup(t.Context(), transfer, "M-1")
	require.ErrorIs(t, err, sqljournal.ErrNoIntent)
	require.ErrorContains(t, j.Verify(t.Context()), "the connection cannot write: connect to the primary")
	require.ErrorContains(t, j.Begin(t.Context(), intent("M-1")), "the connection cannot write")
	standby.promote()
	require.ErrorIs(t, j.Begin(t.Context(), intent("M-1")), journal.ErrOnHold)
	assert.Len(t, eventsOfJournal(t, behind, standby.at("postgres")), 1)
}
