package sqljournal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// As behind a pool of transactions: each statement has a session of its own, and none
// finds what another has prepared.
func TestNoStatementNeedsASession(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	at.Source += "&default_query_exec_mode=exec"
	db, journal := open(t, at)
	db.SetMaxIdleConns(-1)
	require.NoError(t, journal.Migrate(t.Context()))
	exercise(t, journal, "M-1")
}

// Of everything that a reference can go through, Lookup and History say what is known.
func TestWhatIsKnownOfAReference(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		for _, find := range []func() error{
			func() error { _, err := journal.Lookup(t.Context(), transfer, "M-1"); return err },
			func() error { _, err := journal.History(t.Context(), transfer, "M-1"); return err },
			func() error {
				return journal.Resolve(t.Context(), intent("M-1"), paid("T-1"))
			},
		} {
			assert.Same(t, sqljournal.ErrNoIntent, find())
		}
		first := settled("M-1")
		ended(t, journal, first, cardwire.IntentResult{Reason: "unknown outcome: connection failed"})
		require.NoError(t, journal.Resolve(t.Context(), first, notSent()))
		e := lookup(t, journal, "M-1")
		assert.WithinDuration(t, time.Now(), e.EndedAt, time.Minute)
		assert.WithinDuration(t, first.Time, e.CreatedAt, time.Second)
		want := sqljournal.Entry{Intent: e.Intent, Outcome: cardwire.OutcomeNotSent, Calls: 1,
			CreatedAt: e.CreatedAt, EndedAt: e.EndedAt}
		assert.Equal(t, want, e)

		second := intent("M-1")
		second.Currency = "eur"
		begun(t, journal, second)
		e = lookup(t, journal, "M-1")
		assertSame(t, second, e.Intent)
		want = sqljournal.Entry{Intent: e.Intent, Open: true, InProgress: true, Calls: 2, CreatedAt: want.CreatedAt}
		assert.Equal(t, want, e)
		d, _ := errors.AsType[*cardwire.DuplicateIntent](journal.Begin(t.Context(), intent("M-1")))
		assert.InDelta(t, time.Minute, d.Remaining, float64(30*time.Second), "until SendBy")

		success := executed
		success.Reason = "executed, HTTP 200"
		require.NoError(t, journal.End(t.Context(), second, success))
		e = lookup(t, journal, "M-1")
		want = sqljournal.Entry{Intent: e.Intent, Outcome: cardwire.OutcomeExecuted, Proved: true, Calls: 2,
			ServiceID: "T-1", Status: "wait_process", CreatedAt: want.CreatedAt, EndedAt: e.EndedAt}
		assert.Equal(t, want, e)
		assertEvents(t, journal, "M-1",
			"begun: unknown", "ended: unknown, , unknown outcome: connection failed",
			"resolved: not_sent, Ada, ticket 7", "begun: unknown", "ended: executed T-1, , executed, HTTP 200")
		history, err := journal.History(t.Context(), transfer, "M-1")
		require.NoError(t, err)
		assert.Equal(t, []string{first.Call, first.Call, first.Call, second.Call, second.Call}, callsOf(history))
		assert.WithinDuration(t, time.Now(), history[1].Time, time.Minute, "when it ended")
		assert.Equal(t, time.UTC, history[4].Time.Location())
	})
}

// assertSame compares intents whose times went through a database.
func assertSame(t *testing.T, want, got cardwire.Intent) {
	t.Helper()
	for what, times := range map[string][2]time.Time{
		"Time": {want.Time, got.Time}, "SendBy": {want.SendBy, got.SendBy},
		"SettledBy": {want.SettledBy, got.SettledBy},
	} {
		assert.WithinDuration(t, times[0], times[1], time.Second, what)
		assert.Equal(t, time.UTC, times[1].Location(), what)
	}
	got.Time, got.SendBy, got.SettledBy = want.Time, want.SendBy, want.SettledBy
	assert.Equal(t, want, got)
}

func callsOf(history []sqljournal.Event) (calls []string) {
	for _, e := range history {
		calls = append(calls, e.Call)
	}
	return calls
}

// What a person says is an event where it changes something, and is proved by a response
// that says the same.
func TestWhatAPersonSaidIsProved(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		i, free := settled("M-1"), settled("M-2")
		begun(t, journal, i)
		for range 2 {
			require.NoError(t, journal.Resolve(t.Context(), i, paid("")))
		}
		assert.False(t, lookup(t, journal, "M-1").Proved)
		require.NoError(t, journal.End(t.Context(), i, executed))
		assert.True(t, lookup(t, journal, "M-1").Proved)
		assertEvents(t, journal, "M-1", "begun: unknown", "resolved: executed, Ada, ticket 7", "ended: executed T-1")
		ended(t, journal, free, refused)
		require.NoError(t, journal.Resolve(t.Context(), free, notSent()))
		assertEvents(t, journal, "M-2", "begun: unknown", "ended: refused")
	})
}

// Resolve says why it refuses, so that a person knows what to do.
func TestWhyAResolutionIsRefused(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, j := openNew(t, at)
		proved, closed, early, taken := settled("proved"), settled("closed"), intent("early"), settled("taken")
		voided := settled("voided")
		ended(t, j, proved, executed)
		ended(t, j, closed, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true})
		ended(t, j, early, unknown)
		begun(t, j, taken)
		require.NoError(t, j.Void(t.Context(), voided, "Ada", ""))
		ended(t, j, intent("free"), refused)
		for _, tc := range []struct {
			i    cardwire.Intent
			r    journal.Resolution
			want string
		}{
			{proved, notSent(), "a response proved that it was executed: this cannot be corrected"},
			{proved, paid("X"), "a response proved that it was executed as T-1: this cannot be corrected"},
			{closed, notSent(), "the reference was closed: record it as refused, or as executed"},
			{voided, notSent(), "the reference was closed: record it as refused, or as executed"},
			{settled("free"), rejected(), "another call is on record under this reference: read it again"},
			{early, rejected(), "the service may still execute it until " +
				lookup(t, j, "early").SettledBy.Format(time.RFC3339Nano) + ": ask again then"},
			{settled("early"), notSent(), "another call is on record under this reference: read it again"},
			{taken, paid("T-1"), "the service ID belongs to reference proved: " +
				"correct the one that is wrong"},
		} {
			if tc.i.Reference == "voided" {
				tc.i = lookup(t, j, "voided").Intent // of no call
			}
			err := j.Resolve(t.Context(), tc.i, tc.r)
			require.ErrorIs(t, err, sqljournal.ErrDecided, tc.want)
			assert.EqualError(t, err, "sqljournal: this cannot be recorded: "+tc.want)
		}
		const refused = cardwire.OutcomeRefused
		unresolved := "Outcome must be executed, refused or not sent: leave the call unresolved until one is known"
		for want, r := range map[string]journal.Resolution{
			"By is empty":                                           {},
			"Note contains a NUL character":                         {By: "Ada", Note: "two\nlines\x00"},
			"Note is not valid UTF-8":                               {By: "Ada", Note: "\xff"},
			unresolved:                                              {By: "Ada"},
			"ServiceID begins or ends with white space":             {By: "Ada", ServiceID: "T-1 "},
			"ServiceID is longer than 128 bytes":                    {By: "Ada", ServiceID: strings.Repeat("T", 129)},
			"ServiceID is only for what was executed":               {By: "Ada", Outcome: refused, ServiceID: "T-1"},
			"AsOf is missing: set it to when the service was asked": {By: "Ada", Outcome: refused},
		} {
			err := j.Resolve(t.Context(), taken, r)
			require.ErrorIs(t, err, cardwire.ErrInvalidParams)
			assert.EqualError(t, err, "cardwire: invalid parameters: "+want)
		}
		assertEvents(t, j, "taken", "begun: unknown")
	})
}

// Of people who say at once that each of several orders is the one transfer, one is
// believed, and the others are told whose it is.
func TestOneServiceIDIsOfOneReference(t *testing.T) {
	t.Parallel()
	const people = 8
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		db.SetMaxOpenConns(people)
		for round := range 5 {
			id := fmt.Sprint("T-", round)
			var intents []cardwire.Intent
			for n := range people {
				intents = append(intents, intent(fmt.Sprint("M-", round, "-", n)))
			}
			begun(t, journal, intents...)
			errs := make([]error, people)
			var group sync.WaitGroup
			for n, i := range intents {
				group.Go(func() { errs[n] = journal.Resolve(t.Context(), i, paid(id)) })
			}
			group.Wait()
			first := slices.Index(errs, nil)
			require.NotEqual(t, -1, first)
			for n, err := range errs {
				if n != first {
					require.ErrorContains(t, err, "belongs to reference "+intents[first].Reference+":")
				}
			}
		}
	})
}

// An order's change and the journal's are one.
func TestInATransaction(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		i := settled("M-1")
		ended(t, journal, i, unknown)
		for _, commit := range []bool{false, true} {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, fresh := open(t, at)
			in := fresh.In(tx)
			require.NoError(t, in.Resolve(t.Context(), i, paid("T-1")))
			require.NoError(t, in.Void(t.Context(), intent("M-2"), "Ada", "canceled"))
			e, err := in.Lookup(t.Context(), transfer, "M-1")
			require.NoError(t, err)
			assert.Equal(t, "T-1", e.ServiceID)
			history, err := in.History(t.Context(), transfer, "M-2")
			require.NoError(t, err)
			assert.Equal(t, []string{"voided", "Ada", "canceled"},
				[]string{history[0].Kind, history[0].By, history[0].Note})
			if commit {
				require.NoError(t, tx.Commit())
				break
			}
			require.NoError(t, tx.Rollback())
			assert.Equal(t, []string{"M-1 unknown 1"}, rows(t, db, at))
			assertEvents(t, journal, "M-1", "begun: unknown", "ended: unknown")
		}
		assert.Equal(t, []string{"M-1 executed 1 T-1", "M-2 not_sent 0"}, rows(t, db, at))
	})
}

// What belongs to one service says nothing of another, and moves with it.
func TestTheServiceOfAJournal(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		i := intent("M-1")
		begun(t, journal, i)
		_, other := open(t, at)
		elsewhere := i
		elsewhere.Service = "https://new.example.com/api/v1"
		for what, err := range map[string]error{
			"Begin":   other.Begin(t.Context(), elsewhere),
			"Void":    other.Void(t.Context(), elsewhere, "Ada", ""),
			"Resolve": other.Resolve(t.Context(), elsewhere, paid("T-1")),
		} {
			require.EqualError(t, err, "sqljournal: the journal belongs to the service at "+service+
				", and the call is for "+elsewhere.Service+
				": check the base URL, and use a separate journal for each service, "+
				"or SetService if it has changed", what)
		}
		assert.Equal(t, []string{"M-1 open 1"}, rows(t, db, at))
		require.ErrorIs(t, other.SetService(t.Context(), "new.example.com", ""), cardwire.ErrInvalidParams)
		require.NoError(t, other.SetService(t.Context(), "HTTPS://new.example.com/api/v1/", ""),
			"as the client takes it")
		require.NoError(t, other.Resolve(t.Context(), elsewhere, paid("T-1")))
		require.Error(t, journal.Begin(t.Context(), intent("M-2")))
		require.NoError(t, journal.End(t.Context(), i, executed), "what happened is recorded all the same")
		assert.Equal(t, elsewhere.Service, lookup(t, journal, "M-1").Service)
	})
}

// The clocks of several machines differ: PostgreSQL's alone counts there. One that was set
// back hides nothing, and keeps nobody waiting.
func TestWhoseClockCounts(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		begun(t, journal, intent("M-1"))
		assert.Empty(t, unresolved(t, journal))
		execute(t, db, "UPDATE "+at.Table+
			" SET time = '2999-01-01T00:00:00.000000Z', send_by = '2999-01-01T00:01:00.000000Z'")
		assert.Equal(t, []string{"M-1"}, unresolved(t, journal))
		assert.Equal(t, &cardwire.DuplicateIntent{}, journal.Begin(t.Context(), intent("M-1")))
		stats, err := journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, stats.InProgress)
		assert.EqualValues(t, 1, stats.Unresolved)
		call := lookup(t, journal, "M-1").Intent
		require.ErrorContains(t, journal.Resolve(t.Context(), call, notSent()),
			"the clock was ahead when the call began")

		begun(t, journal, cardwire.Intent{Call: "c", Op: transfer, Reference: "M-2", SendBy: time.Now().Add(time.Hour)})
		e := lookup(t, journal, "M-2")
		assert.WithinDuration(t, time.Now(), e.Time, time.Minute, "without a time, it is now")
		assert.Equal(t, e.SendBy, e.SettledBy, "and it is not settled before it is sent")
	})
}

// By the server's clock, and not by this machine's, nobody asks in the future.
func TestAsOfIsOfTheServersClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		at := onPostgreSQL(t)
		db, _ := open(t, at)
		schema := newSchema(t, db)
		for _, clock := range []string{"statement_timestamp", "clock_timestamp"} {
			execute(t, db, "CREATE FUNCTION "+schema+"."+clock+"() RETURNS timestamptz LANGUAGE sql AS "+
				"'SELECT pg_catalog."+clock+"() + interval ''"+ahead.String()+"'''")
		}
		at.Source += "&search_path=" + schema + ",pg_catalog"
		_, journal := openNew(t, at)
		begun(t, journal, intent("M-0"))
		assert.True(t, lookup(t, journal, "M-0").InProgress)
		i := settled("M-1")
		ended(t, journal, i, unknown)
		stats, err := journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 1}, []int64{stats.InProgress, stats.Unresolved})
		denial := notSent()
		denial.AsOf = time.Now().Add(ahead + time.Minute)
		err = journal.Resolve(t.Context(), i, denial)
		require.ErrorIs(t, err, sqljournal.ErrDecided)
		require.ErrorContains(t, err, "AsOf is in the future by the journal's clock")
		denial.AsOf = time.Now().Add(ahead - time.Minute)
		require.NoError(t, journal.Resolve(t.Context(), i, denial))
		assertEvents(t, journal, "M-1", "begun: unknown", "ended: unknown", "resolved: not_sent, Ada, ticket 7")
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		stats, err := journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, sqljournal.Stats{}, stats)
		begun(t, journal, intent("sending"), since("crashed", 2*time.Hour))
		ended(t, journal, since("oldest", 3*time.Hour), unknown)
		ended(t, journal, intent("youngest"), unknown)
		ended(t, journal, since("executed", 4*time.Hour), executed)
		ended(t, journal, since("refused", 4*time.Hour), refused)
		oldest := lookup(t, journal, "oldest").Time
		stats, err = journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, sqljournal.Stats{InProgress: 1, Unresolved: 3, OldestUnresolved: oldest}, stats)
		assert.Equal(t, []string{"oldest", "crashed", "youngest"}, unresolved(t, journal))
	})
}

// Several pages, some of one time, each of which is resolved as it is read.
func TestUnresolvedYieldsAnyNumber(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		const count, each = 1203, 50
		db, journal := openNew(t, at)
		db.SetMaxOpenConns(1) // a page is read to its end before the loop's body
		begun(t, journal, settled("M-0000"))
		const others = `body_sha256, amount, currency, state, closed, proved, reserved, call, calls, service_id, status,
			created_at, time, send_by, settled_by, ended_at, kind, by, note, era`
		execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 11202)
INSERT INTO `+at.Table+` (op, reference, `+others+`)
SELECT op, 'M-' || substr(CAST(n.i AS TEXT), 2), `+others+` FROM n, `+at.Table)

		n := 0
		for e, err := range journal.Unresolved(t.Context()) {
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("M-%04d", n), e.Reference)
			if n++; n%each == 0 {
				require.NoError(t, journal.Resolve(t.Context(), e.Intent, notSent()))
			}
		}
		assert.Equal(t, count, n)
		assert.Len(t, unresolved(t, journal), count-count/each)
		assert.Len(t, reconciled(t, journal, statement()), count-count/each, "as many are not executed")
		for _, err := range journal.Unresolved(t.Context()) {
			require.NoError(t, err)
			break
		}
	})
}

func TestADoneContextIsHonoredAndLeavesNoRow(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		i := intent("M-1")
		begun(t, journal, i)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, lookup := journal.Lookup(ctx, transfer, "M-1")
		_, history := journal.History(ctx, transfer, "M-1")
		_, stats := journal.Stats(ctx)
		_, identity := journal.Identity(ctx)
		for _, err := range []error{
			journal.Begin(ctx, intent("M-2")), journal.End(ctx, i, executed),
			journal.Void(ctx, intent("M-3"), "Ada", ""), journal.Resolve(ctx, i, paid("T-1")),
			lookup, history, stats, identity,
			journal.Migrate(ctx), journal.Verify(ctx), journal.SetService(ctx, service, ""),
		} {
			require.ErrorIs(t, err, context.Canceled)
		}
		for _, err := range journal.Unresolved(ctx) {
			require.ErrorIs(t, err, context.Canceled)
		}
		assert.Equal(t, []string{"M-1 open 1"}, rows(t, db, at))
	})
}

// No error quotes a reference that the database has, or a hash.
func TestErrorsHoldNoReferenceAndNoHash(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		const canary = "CANARY-REF-77"
		i := intent(canary)
		begun(t, journal, i)
		other, broken, nameless := intent(canary), intent(canary+"\xff\x00"), intent(canary)
		other.BodySHA256, nameless.Call = "00", ""
		_, missing := open(t, place{at.Driver, at.Source, at.Dialect, "there_is_none"})
		_, noTable := missing.Lookup(t.Context(), transfer, canary)
		errs := map[string]error{
			"in progress": journal.Begin(t.Context(), intent(canary)),
			"other body":  journal.Begin(t.Context(), other),
			"no call":     journal.Begin(t.Context(), nameless),
			"late":        journal.End(t.Context(), other, refused),
			"early":       journal.Resolve(t.Context(), i, notSent()),
			"another":     journal.Resolve(t.Context(), other, notSent()),
			"void":        journal.Void(t.Context(), i, "Ada", canary),
			"no table":    missing.Begin(t.Context(), i),
			"none, end":   missing.End(t.Context(), i, executed),
			"none, find":  noTable,
		}
		if at.Dialect == sqljournal.PostgreSQL { // SQLite takes any bytes
			errs["not UTF-8"] = journal.Begin(t.Context(), broken)
		}
		require.NoError(t, db.Close())
		errs["closed"] = journal.Begin(t.Context(), i)
		for name, err := range errs {
			require.Error(t, err, name)
			for _, verb := range []string{"%v", "%+v", "%s", "%q"} {
				text := fmt.Sprintf(verb, err)
				assert.NotContains(t, text, canary, name)
				assert.NotContains(t, text, body, name)
				assert.Regexp(t, "^\"?(sqljournal|cardwire): ", text, name)
			}
		}
	})
}
