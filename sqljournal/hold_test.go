package sqljournal_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func paramsOf(number string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("12.50"),
	}
}

// pass makes what is on record in a table older, as if so many minutes had passed.
func pass(t testing.TB, db *sql.DB, at place, minutes int) {
	t.Helper()
	older := fmt.Sprintf("%%[1]s - interval '%d minutes'", minutes)
	if at.Dialect == sqljournal.SQLite {
		older = fmt.Sprintf("strftime('%%%%Y-%%%%m-%%%%dT%%%%H:%%%%M:%%%%S', %%[1]s, '-%d minutes') || "+
			"substr(%%[1]s, 20)",
			minutes)
	}
	for column := range strings.FieldsSeq(".time .send_by .settled_by .ended_at _journal.held_at _journal.floor") {
		table, name, _ := strings.Cut(column, ".")
		set := fmt.Sprintf(" SET %[1]s = "+older+" WHERE %[1]s IS NOT NULL", name)
		execute(t, db, "UPDATE "+at.Table+table+set)
	}
}

// While a journal is on hold nothing is begun by any program, what happened is recorded, and until the floor
// nothing is voided or denied. What was free or reserved before is unknown, until a person says otherwise.
func TestAHold(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		_, program := open(t, at)
		for reference, state := range map[string]string{
			"free": "free", "closed": "closed", "executed": "executed", "unknown": "unknown", "denied": "unknown",
			"paid": "unknown", "open": "sending", "failed": "free", "late": "sending",
		} {
			record(t, j, reference, state)
		}
		reserved := intent("reserved")
		require.NoError(t, j.Reserve(t.Context(), reserved))
		held := func() journal.Hold {
			t.Helper()
			h, err := program.Held(t.Context())
			require.NoError(t, err)
			return h
		}
		assert.Zero(t, held())
		require.NoError(t, j.Release(t.Context(), "Ada", "there is none"))
		require.ErrorIs(t, j.Hold(t.Context(), "", "", 0), cardwire.ErrInvalidParams)
		require.ErrorIs(t, j.Release(t.Context(), " ", ""), cardwire.ErrInvalidParams)

		require.NoError(t, j.Hold(t.Context(), "Ada", "restore of 9:00", time.Minute))
		h := held()
		assert.WithinDuration(t, time.Now(), h.Since, 10*time.Second)
		assert.WithinDuration(t, h.Since.Add(11*time.Minute), h.Floor, time.Second, "the longest life that it has seen")
		assert.Equal(t, journal.Hold{Since: h.Since, Floor: h.Floor, By: "Ada", Why: "restore of 9:00", Era: 2}, h)

		client := connect(cardwiretest.New(), program)
		sends := func(reference string) error {
			t.Helper()
			_, err := client.CreateTransfer(t.Context(), paramsOf(reference))
			return err
		}
		isHeld := func() {
			t.Helper()
			for _, i := range []cardwire.Intent{intent("new"), intent("new order")} {
				err := program.Begin(t.Context(), i)
				require.ErrorIs(t, err, journal.ErrOnHold)
				require.ErrorContains(t, err, "the journal is on hold since "+stamp(h.Since))
			}
			err := sends("M-1")
			assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
			assert.ErrorContains(t, err,
				"not sent: the journal did not record the intent: the journal is on hold since ")
		}
		require.NoError(t, program.Reserve(t.Context(), intent("new order")))
		isHeld()
		for _, i := range []cardwire.Intent{intent("free"), reserved} {
			assert.Equal(t, "unknown", word(program.Begin(t.Context(), i)))
			assert.Equal(t, "unknown", word(program.Reserve(t.Context(), i)), "submitted again, it is no newer")
			assert.Equal(t, cardwire.OutcomeUnknown, lookup(t, program, i.Reference).Outcome)
		}
		assert.ElementsMatch(t, []string{"denied", "failed", "free", "paid", "reserved", "unknown"},
			unresolved(t, program))
		assert.Equal(t, "in progress", word(program.Begin(t.Context(), intent("open"))))
		assert.Equal(t, "executed S-1-executed", word(program.Begin(t.Context(), intent("executed"))))
		assert.Equal(t, "unknown", word(program.Begin(t.Context(), intent("unknown"))))
		assert.Equal(t, "refused", word(program.Begin(t.Context(), intent("closed"))))
		require.NoError(t, j.Resolve(t.Context(), lookup(t, j, "paid").Intent, paid("T-9")))
		s := statement("stray T-1 12.50 EUR done", "executed S-1-executed 12.50 EUR done")
		applyAll(t, j, reconciled(t, j, s))
		assert.Equal(t, "executed T-1", standing(t, j, "stray"))

		void := func(reference, call string) error {
			t.Helper()
			return program.Void(t.Context(), cardwire.Intent{Op: transfer, Reference: reference, Call: call}, "Ada", "")
		}
		denies := func(reference string, asOf time.Time) error {
			t.Helper()
			found := notSent()
			found.AsOf = asOf
			return program.Resolve(t.Context(), lookup(t, j, reference).Intent, found)
		}
		require.ErrorIs(t, void("new order", ""), journal.ErrOnHold, "a call that is forgotten may be executed")
		require.ErrorIs(t, denies("denied", time.Now()), sqljournal.ErrDecided)
		require.ErrorIs(t, denies("free", time.Now()), sqljournal.ErrDecided, "it may have been begun since the backup")
		err := j.Release(t.Context(), "Ada", "too early")
		require.ErrorIs(t, err, sqljournal.ErrDecided)
		require.ErrorContains(t, err, "may be executed until "+strings.TrimSuffix(stamp(h.Floor), "Z"))

		pass(t, db, at, 12)
		h = held()
		isHeld()
		require.Error(t, void("canceled", "a call"), "a client knows nothing of what is lost")
		require.NoError(t, void("canceled", ""))
		assert.Equal(t, "unknown", word(void("failed", "")), "Void says nothing of when the service was asked")
		require.ErrorIs(t, denies("free", h.Floor.Add(-time.Second)), sqljournal.ErrDecided)
		require.NoError(t, denies("free", time.Now()))
		closes := rejected()
		require.NoError(t, program.Resolve(t.Context(), lookup(t, j, "failed").Intent, closes))
		late := lookup(t, j, "late").Intent
		require.ErrorIs(t, program.End(t.Context(), late, final), sqljournal.ErrContradiction,
			"a call of an earlier era")
		assert.Equal(t, "unknown", standing(t, j, "late"))
		require.ErrorIs(t, denies("denied", h.Floor.Add(-time.Second)), sqljournal.ErrDecided)
		require.NoError(t, denies("denied", time.Now()))
		require.NoError(t, program.End(t.Context(), lookup(t, j, "open").Intent, executed))

		require.NoError(t, j.Release(t.Context(), "Grace", "the service was asked"))
		assert.Zero(t, held())
		require.NoError(t, sends("M-1"))
		begun(t, program, intent("new"), intent("free"), intent("new order"))
		assert.Equal(t, "unknown", word(program.Begin(t.Context(), reserved)), "the release says nothing of each")
		require.NoError(t, denies("reserved", time.Now()))
		begun(t, program, reserved)
		require.ErrorIs(t, denies("unknown", h.Floor.Add(-time.Second)), sqljournal.ErrDecided,
			"the floor outlives the hold")
		require.NoError(t, denies("unknown", time.Now()))
		assert.Equal(t, []string{"held by Ada: restore of 9:00", "released by Grace: the service was asked"},
			eventsOfJournal(t, db, at))
	})
}

// backUp copies the journal's tables, and returns what makes them as they were.
func backUp(t testing.TB, db *sql.DB, at place) (restore func()) {
	t.Helper()
	over := ""
	if at.Dialect == sqljournal.PostgreSQL {
		over = "OVERRIDING SYSTEM VALUE "
	}
	var copies, restores []string
	for _, table := range []string{at.Table, at.Table + "_history", at.Table + "_journal"} {
		copies = append(copies, "CREATE TABLE b"+table+" AS SELECT * FROM "+table)
		restores = append(restores, "DELETE FROM "+table, "INSERT INTO "+table+" "+over+"SELECT * FROM b"+table)
		t.Cleanup(func() {
			_, err := db.ExecContext(context.Background(), "DROP TABLE b"+table)
			assert.NoError(t, err)
		})
	}
	execute(t, db, copies...)
	return func() { t.Helper(); execute(t, db, restores...) }
}

// A backup that was made during a hold has that hold. Its floor has passed, which says nothing of what was sent
// after the backup: Hold sets it anew, and to no earlier time.
func TestAHoldThatWasRestored(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		record(t, j, "M-1", "unknown")
		record(t, j, "M-2", "free")
		hold := func(atLeast time.Duration) journal.Hold {
			t.Helper()
			require.NoError(t, j.Hold(t.Context(), "Ada", "a restore", atLeast))
			h, err := j.Held(t.Context())
			require.NoError(t, err)
			return h
		}
		hold(0)
		pass(t, db, at, 20)
		restore := backUp(t, db, at)
		require.NoError(t, j.Release(t.Context(), "Ada", "the service was asked"))
		restore()
		h := hold(30 * time.Minute)
		assert.WithinDuration(t, time.Now(), h.Since, 10*time.Second)
		assert.WithinDuration(t, h.Since.Add(30*time.Minute), h.Floor, time.Second)
		assert.WithinDuration(t, h.Floor, hold(0).Floor, 0, "it is never set to an earlier time")
		asked := notSent()
		require.ErrorIs(t, j.Resolve(t.Context(), lookup(t, j, "M-1").Intent, asked), sqljournal.ErrDecided)
		require.Error(t, j.Void(t.Context(), cardwire.Intent{Op: transfer, Reference: "M-2"}, "Ada", ""))
		require.ErrorIs(t, j.Release(t.Context(), "Ada", ""), sqljournal.ErrDecided)
		pass(t, db, at, 31)
		require.NoError(t, j.Release(t.Context(), "Ada", ""))
		require.ErrorIs(t, j.Resolve(t.Context(), lookup(t, j, "M-1").Intent, func() journal.Resolution {
			asked.AsOf = asked.AsOf.Add(-2 * time.Minute)
			return asked
		}()), sqljournal.ErrDecided, "it was asked before the floor")
	})
}

// Where the journal does not know how long a call may live, it is not settled at once: it may be a new one
// after a loss.
func TestAJournalThatKnowsNoCall(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		floor := func() time.Duration {
			t.Helper()
			require.NoError(t, journal.Hold(t.Context(), "Ada", "a loss", 0))
			h, err := journal.Held(t.Context())
			require.NoError(t, err)
			return h.Floor.Sub(h.Since)
		}
		const usual = 10*time.Minute + 30*time.Second
		s := statement("M-1 - 12.50 EUR wait")
		s.AllowStrays = true
		applyAll(t, journal, reconciled(t, journal, s))
		assert.WithinDuration(t, time.Now().Add(usual), lookup(t, journal, "M-1").SettledBy, time.Minute,
			"it is under way")
		assert.Equal(t, usual, floor())
		require.ErrorIs(t, journal.Release(t.Context(), "Ada", ""), sqljournal.ErrDecided)

		_, forever := openNew(t, at.another(t))
		endless := intent("M-1")
		endless.SettledBy = endless.SendBy.Add(math.MaxInt64) // no denial is ever believed
		begun(t, forever, endless)
		journal = forever
		assert.Greater(t, floor(), 200*365*24*time.Hour)
	})
}
