package sqljournal_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

const transfer = "CreateTransfer"

// until is an intent that may be sent for so long.
func until(reference string, left time.Duration) cardwire.Intent {
	i := intent(reference)
	i.Time = time.Now()
	i.SendBy = i.Time.Add(left)
	return i
}

func lookup(t *testing.T, journal *sqljournal.Journal, reference string) sqljournal.Entry {
	t.Helper()
	e, err := journal.Lookup(t.Context(), transfer, reference)
	require.NoError(t, err)
	return e
}

// events are those of a reference in a line each.
func events(t *testing.T, journal *sqljournal.Journal, reference string) (all []string) {
	t.Helper()
	history, err := journal.History(t.Context(), transfer, reference)
	require.NoError(t, err)
	for _, e := range history {
		assert.WithinDuration(t, time.Now(), e.Time, time.Minute, e.Kind)
		assert.Equal(t, time.UTC, e.Time.Location())
		line := e.Kind + ": " + e.Outcome.String()
		if e.By != "" || e.Note != "" {
			line += ", " + e.By + ", " + e.Note
		}
		all = append(all, line)
	}
	return all
}

func TestTheRulesOfEveryJournal(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		cardwiretest.TestJournal(t, func(t *testing.T) cardwire.Journal {
			db, journal := openNew(t, at.another(t))
			db.SetMaxOpenConns(8) // a server for tests takes only so many
			if at.Dialect == sqljournal.SQLite {
				db.SetMaxOpenConns(1) // who waits for SQLite's lock gives up after ten seconds
			}
			return journal
		})
	})
}

// As behind a pool of transactions: each statement has a session of its own, and none
// finds what another has prepared.
func TestNoStatementNeedsASession(t *testing.T) {
	t.Parallel()
	at := onPostgreSQL(t)
	at.Source += "&default_query_exec_mode=exec"
	cardwiretest.TestJournal(t, func(t *testing.T) cardwire.Journal {
		db, journal := open(t, at.another(t))
		db.SetMaxIdleConns(-1)
		db.SetMaxOpenConns(8)
		require.NoError(t, journal.Migrate(t.Context()))
		i := until("M-0", 0)
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{}))
		assert.Equal(t, []string{"M-0"}, references(t, journal, 0))
		stats, err := journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(1), stats.Unresolved)
		require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-0"), sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent}))
		require.NoError(t, journal.Void(t.Context(), transfer, "M-0", "Ada", "cancelled"))
		assert.Equal(t, []string{"begun: unknown", "ended: unknown", "resolved: not sent", "voided: not sent, Ada, cancelled"}, events(t, journal, "M-0"))
		return journal
	})
}

// What support found out after the order was taken for failed.
func TestARefusalIsCorrectedToExecuted(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		i := until("M-1", time.Minute)
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}))
		e := lookup(t, journal, "M-1")
		assert.True(t, e.Closed)
		assert.Equal(t, "taken, refused", word(journal.Begin(t.Context(), i)))
		assert.Equal(t, "decided", word(journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent})))

		found := sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-9", By: "Ada", Note: "ticket 4711"}
		require.NoError(t, journal.Resolve(t.Context(), e, found))
		assert.Equal(t, "decided", word(journal.Resolve(t.Context(), e, found)))
		assert.Equal(t, []string{"begun: unknown", "ended: refused", "corrected: executed, Ada, ticket 4711"}, events(t, journal, "M-1"))
		assert.Equal(t, "T-9", lookup(t, journal, "M-1").ServiceID)
		var duplicate *cardwire.DuplicateIntent
		require.ErrorAs(t, journal.Begin(t.Context(), i), &duplicate)
		assert.Equal(t, cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-9"}, *duplicate)
	})
}

// An old message that is delivered once more sends nothing.
func TestAFinalRefusalIsFinal(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		for _, outcome := range []cardwire.Outcome{cardwire.OutcomeRefused, cardwire.OutcomeNotSent} {
			i := until("M-"+outcome.String(), time.Minute)
			require.NoError(t, journal.Begin(t.Context(), i))
			require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: outcome, Final: true}))
			_, other := open(t, at)
			assert.Equal(t, "taken, "+outcome.String(), word(other.Begin(t.Context(), i)))
			assert.Equal(t, "taken, "+outcome.String(), word(other.Look(t.Context(), i.Op, i.Reference)))
			another := i
			another.BodySHA256 = "00"
			assert.Equal(t, "other body", word(other.Begin(t.Context(), another)))
		}
	})
}

// Only the result of the one call that may have sent closes a reference.
func TestWhatIsUnknownIsNotClosed(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		_, journal := open(t, at, sqljournal.WithRepeats())
		i := until("M-1", 0)
		require.NoError(t, journal.Begin(t.Context(), i))
		require.Equal(t, "may be retried", word(journal.Begin(t.Context(), i)))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown, Final: true}))
		assert.False(t, lookup(t, journal, "M-1").Closed)
	})
}

func TestVoid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before  []string // what became of the reference, for a story
		void    string
		begin   string
		history []string
	}{
		"never begun": {nil, "ok", "taken, not sent", []string{"voided: not sent, Ada, cancelled"}},
		"not sent":    {[]string{"notsent"}, "ok", "taken, not sent", []string{"begun: unknown", "ended: not sent", "voided: not sent, Ada, cancelled"}},
		"refused":     {[]string{"refused"}, "ok", "taken, refused", []string{"begun: unknown", "ended: refused", "voided: refused, Ada, cancelled"}},
		"open":        {[]string{""}, "taken, unknown", "taken, unknown", []string{"begun: unknown"}},
		"unknown":     {[]string{"unknown"}, "taken, unknown", "taken, unknown", []string{"begun: unknown", "ended: unknown"}},
		"executed":    {[]string{"executed"}, "taken, executed", "taken, executed", []string{"begun: unknown", "ended: executed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				_, journal := openNew(t, at)
				i := until("M-1", time.Minute)
				for _, how := range tc.before {
					require.NoError(t, journal.Begin(t.Context(), i))
					if how != "" {
						require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: outcomes[how]}))
					}
				}
				voided := journal.Void(t.Context(), transfer, "M-1", "Ada", "cancelled")
				if got := word(voided); got != "may be retried" {
					assert.Equal(t, tc.void, got)
				} else {
					assert.Equal(t, tc.void, "taken, unknown")
				}
				assert.Equal(t, tc.begin, word(journal.Begin(t.Context(), i)))
				if tc.void == "ok" {
					require.NoError(t, journal.Void(t.Context(), transfer, "M-1", "Bob", "once more"), "it is closed already")
				}
				assert.Equal(t, tc.history, events(t, journal, "M-1"))
			})
		})
	}
}

// Close is Resolve and Void at once, and leaves an executed reference as it is.
func TestResolveCloses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outcome cardwire.Outcome
		close   bool
		begin   string
	}{
		"refused, closed":  {cardwire.OutcomeRefused, true, "taken, refused"},
		"not sent, closed": {cardwire.OutcomeNotSent, true, "taken, not sent"},
		"not sent":         {cardwire.OutcomeNotSent, false, "ok"},
		"executed, closed": {cardwire.OutcomeExecuted, true, "taken, executed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				_, journal := openNew(t, at)
				i := until("M-1", time.Minute)
				require.NoError(t, journal.Begin(t.Context(), i))
				require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}))
				found := sqljournal.Resolution{Outcome: tc.outcome, By: "Ada", Note: "ticket 4711", Close: tc.close}
				require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1"), found))
				e := lookup(t, journal, "M-1")
				assert.Equal(t, tc.close && tc.outcome != cardwire.OutcomeExecuted, e.Closed)
				assert.Equal(t, tc.outcome, e.Outcome)
				assert.Equal(t, tc.begin, word(journal.Begin(t.Context(), i)))
				if e.Closed { // it turns out to be paid
					require.NoError(t, journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted, Close: true}))
					assert.Equal(t, "taken, executed", word(journal.Begin(t.Context(), i)))
				}
			})
		})
	}
}

func TestResolveClosesOnlyUniqueReferences(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		i := until("M-1", time.Minute)
		i.Unique = false
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}))
		e := lookup(t, journal, "M-1")
		require.NoError(t, journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent, Close: true}))
		assert.False(t, lookup(t, journal, "M-1").Closed)
	})
}

// A voided order that turns out to be paid, and one that is sent by another program.
func TestAVoidedReferenceIsCorrected(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		require.NoError(t, journal.Void(t.Context(), transfer, "M-1", "", ""))
		e := lookup(t, journal, "M-1")
		assert.Equal(t, cardwire.OutcomeNotSent, e.Outcome)
		require.NoError(t, journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted}))
		assert.Equal(t, "taken, executed", word(journal.Begin(t.Context(), intent("M-1"))), "whatever its body")
		assert.Equal(t, []string{"voided: not sent", "corrected: executed"}, events(t, journal, "M-1"))
		assert.Error(t, journal.Void(t.Context(), "", "M-1", "", ""))
	})
}

// Nothing is resolved to "did not happen" while its call may still send.
func TestNothingIsResolvedAsNotSentBeforeSendBy(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		require.NoError(t, journal.Begin(t.Context(), until("M-1", time.Hour)))
		e := lookup(t, journal, "M-1")
		assert.True(t, e.InProgress)
		assert.WithinDuration(t, time.Now().Add(time.Hour), e.SendBy, time.Minute)
		assert.Empty(t, list(t, journal, 0), "it is in progress")
		for _, outcome := range []cardwire.Outcome{cardwire.OutcomeRefused, cardwire.OutcomeNotSent} {
			err := journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: outcome})
			require.ErrorContains(t, err, "may still send until "+e.SendBy.Format(time.RFC3339))
			require.ErrorIs(t, err, cardwire.ErrDuplicateIntent)
		}
		assert.Equal(t, []string{"begun: unknown"}, events(t, journal, "M-1"))

		date(t, db, at, "M-1", time.Now().Add(-time.Second))
		require.NoError(t, journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent, By: "Ada"}))
		require.NoError(t, journal.Begin(t.Context(), until("M-1", time.Hour)))
		require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1"), sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted}),
			"that it happened is known at any time")
	})
}

// A call that has ended sends nothing; one that was retried may have company.
func TestAnEndIsTheEndOfSending(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		_, journal := open(t, at, sqljournal.WithRepeats())
		notSent := sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent}
		i := until("M-1", time.Hour)
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{}))
		assert.Equal(t, []string{"M-1"}, references(t, journal, 0))
		require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1"), notSent))

		require.NoError(t, journal.Begin(t.Context(), i))
		retry := until("M-1", time.Minute)
		require.Equal(t, "may be retried", word(journal.Begin(t.Context(), retry)))
		require.NoError(t, journal.End(t.Context(), retry, cardwire.IntentResult{}))
		assert.WithinDuration(t, time.Now().Add(time.Hour), lookup(t, journal, "M-1").SendBy, time.Minute, "the first may still send")
		require.ErrorContains(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1"), notSent), "may still send")
	})
}

// A clock that was set back hides nothing, and keeps nobody waiting.
func TestWhatBeganInTheFutureIsListed(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		require.NoError(t, journal.Begin(t.Context(), until("M-1", time.Minute)))
		date(t, db, at, "M-1", time.Now().Add(time.Hour))
		assert.Equal(t, []string{"M-1"}, references(t, journal, 24*time.Hour))
		assert.False(t, lookup(t, journal, "M-1").InProgress)
		var duplicate *cardwire.DuplicateIntent
		require.ErrorAs(t, journal.Begin(t.Context(), until("M-1", time.Minute)), &duplicate)
		assert.Equal(t, cardwire.DuplicateIntent{}, *duplicate)
		stats, err := journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, stats.InProgress)
		assert.EqualValues(t, 1, stats.Unresolved)
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		stats, err := journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, sqljournal.Stats{}, stats)
		for n, how := range []string{"", "unknown", "unknown", "executed", "refused", "notsent", ""} {
			i := until(fmt.Sprint("M-", n), time.Hour)
			require.NoError(t, journal.Begin(t.Context(), i))
			if how != "" {
				require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: outcomes[how]}))
			}
		}
		oldest := time.Now().Add(-3 * time.Hour).UTC().Truncate(time.Microsecond)
		date(t, db, at, "M-2", oldest)
		date(t, db, at, "M-6", oldest.Add(time.Hour))
		stats, err = journal.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, sqljournal.Stats{InProgress: 1, Unresolved: 3, OldestUnresolved: oldest}, stats)
		assert.Equal(t, []string{"M-2", "M-6", "M-1"}, references(t, journal, 0))
	})
}

// Several pages, some of one time, each of which is resolved as it is read.
func TestUnresolvedYieldsAnyNumber(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		const count = 1203
		db, journal := openNew(t, at)
		db.SetMaxOpenConns(1) // a page is read to its end before the loop's body
		require.NoError(t, journal.Begin(t.Context(), intent("M-0000")))
		date(t, db, at, "M-0000", morning)
		numbers := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1202)"
		pad := "'M-' || substr('0000' || n.i, -4)"
		if at.Dialect == sqljournal.PostgreSQL {
			pad = "'M-' || lpad(n.i::text, 4, '0')"
		}
		_, err := db.ExecContext(t.Context(), numbers+`
INSERT INTO `+at.Table+` (op, reference, exclusive, body_sha256, summary, state, closed, holder, attempts, service_id, created_at, begun_at, send_by, event, who, note)
SELECT op, `+pad+`, exclusive, body_sha256, summary, state, closed, holder, attempts, service_id, created_at, begun_at, send_by, event, who, note FROM n, `+at.Table)
		require.NoError(t, err)

		var all []string
		for e, err := range journal.Unresolved(t.Context(), 10*time.Minute) {
			require.NoError(t, err)
			all = append(all, e.Reference)
			if len(all)%3 == 0 {
				require.NoError(t, journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted}))
			}
		}
		assert.Equal(t, numberedFrom("M", count), all)
		assert.Len(t, list(t, journal, 0), count-count/3)
		for _, err := range journal.Unresolved(t.Context(), 0) {
			require.NoError(t, err)
			break
		}
	})
}

func numberedFrom(prefix string, n int) []string {
	all := numbered(prefix, n)
	slices.Sort(all)
	return all
}

// Whoever crashed between the success and its own UPDATE can finish.
func TestADuplicateCarriesTheServiceID(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		i := until("M-1", time.Minute)
		i.Summary = "12.50 EUR"
		require.NoError(t, journal.Begin(t.Context(), i))
		assert.Equal(t, "12.50 EUR", lookup(t, journal, "M-1").Summary)
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"}))
		_, other := open(t, at)
		want := &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"}
		assert.Equal(t, want, other.Begin(t.Context(), i))
		assert.Equal(t, want, other.Look(t.Context(), i.Op, i.Reference))
		e := lookup(t, other, "M-1")
		assert.Equal(t, "T-1", e.ServiceID)
		assert.Equal(t, cardwire.OutcomeExecuted, e.Outcome)
	})
}

// History names the try that each event belongs to.
func TestTheHistoryOfSeveralTries(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		_, journal := open(t, at, sqljournal.WithRepeats())
		i := until("M-1", 0)
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}))
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{}))
		require.Equal(t, "may be retried", word(journal.Begin(t.Context(), i)))
		require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1"), sqljournal.Resolution{Outcome: cardwire.OutcomeRefused, By: "Ada"}))
		assert.Equal(t, []string{"begun: unknown", "ended: refused", "begun: unknown", "ended: unknown", "retried: unknown", "resolved: refused, Ada, "},
			events(t, journal, "M-1"))
		history, err := journal.History(t.Context(), transfer, "M-1")
		require.NoError(t, err)
		var tries []string
		for _, e := range history {
			tries = append(tries, e.Try)
		}
		assert.Equal(t, []string{"1-1", "1-1", "1-2", "1-2", "1-3", "1-3"}, tries)
		assert.Equal(t, "1-3", lookup(t, journal, "M-1").Try)
	})
}
