package sqljournal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// statement is that of the hours between three hours ago and one hour ago, in which the call
// of settled lives. A line is "REFERENCE SERVICE-ID AMOUNT CURRENCY STATUS", where _ is
// a space, of the time of settled.
func statement(lines ...string) sqljournal.Statement {
	now := time.Now()
	return sqljournal.Statement{
		Op: transfer, From: now.Add(-3 * time.Hour), Until: now.Add(-time.Hour), Exported: now,
		Statuses: map[string]sqljournal.StatementStatus{
			"done": sqljournal.StatementExecuted, "failed": sqljournal.StatementNotExecuted,
			"wait": sqljournal.StatementPending,
		},
		Lines: func(yield func(sqljournal.StatementLine, error) bool) {
			for n, text := range lines {
				if !yield(lineAt(now.Add(-2*time.Hour), n+2, text), nil) { // below the header
					return
				}
			}
		},
	}
}

func lineAt(at time.Time, number int, text string) sqljournal.StatementLine {
	f := strings.Fields(text)
	return sqljournal.StatementLine{
		Line: number, Reference: strings.ReplaceAll(f[0], "_", " "), ServiceID: f[1],
		Amount: decimal.RequireFromString(f[2]), Currency: f[3], Status: f[4], Time: at,
	}
}

// reconciled are the findings without the warnings.
func reconciled(t testing.TB, journal *sqljournal.Journal, s sqljournal.Statement) (all []sqljournal.Finding) {
	t.Helper()
	for f, err := range journal.Reconcile(t.Context(), s) {
		require.NoError(t, err)
		if f.Kind != sqljournal.FindingWarning {
			all = append(all, f)
		}
	}
	return all
}

// finding is the one of the reference.
func finding(t testing.TB, journal *sqljournal.Journal, s sqljournal.Statement, reference string) sqljournal.Finding {
	t.Helper()
	all := reconciled(t, journal, s)
	n := slices.IndexFunc(all, func(f sqljournal.Finding) bool { return f.Reference == reference })
	require.GreaterOrEqual(t, n, 0, reference)
	return all[n]
}

// kinds are the kinds of findings by reference.
func kinds(t testing.TB, findings []sqljournal.Finding) map[string]sqljournal.FindingKind {
	t.Helper()
	all := map[string]sqljournal.FindingKind{}
	for _, f := range findings {
		assert.NotContains(t, all, f.Reference, "one finding for each reference")
		all[f.Reference] = f.Kind
	}
	return all
}

// applyAll applies what can be, and lets the journal refuse the rest.
func applyAll(t testing.TB, journal *sqljournal.Journal, findings []sqljournal.Finding) (applied int) {
	t.Helper()
	for _, f := range findings {
		err := journal.Apply(t.Context(), f, "Ada", "ticket 7")
		if f.Applies() {
			require.NoError(t, err, f.Reference)
			applied++
			continue
		}
		require.ErrorIs(t, err, sqljournal.ErrUncertain, f.Reference)
	}
	return applied
}

// record makes the journal have the reference in a state. The number of the service is S-1.
func record(t testing.TB, journal *sqljournal.Journal, reference, state string) {
	t.Helper()
	success := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "S-1-" + reference}
	i := settled(reference)
	switch state {
	case "nothing", "waits":
	case "sending":
		begun(t, journal, intent(reference))
	case "open":
		begun(t, journal, i)
	case "unknown":
		ended(t, journal, i, unknown)
	case "unknown early":
		ended(t, journal, since(reference, 4*time.Hour), unknown)
	case "unknown at From":
		ended(t, journal, since(reference, 3*time.Hour-time.Minute), unknown)
	case "unknown at Until":
		ended(t, journal, since(reference, time.Hour+12*time.Minute), unknown)
	case "unknown twice":
		begun(t, journal, i)
		require.NoError(t, journal.End(t.Context(), since(reference, 4*time.Hour), unknown)) // of a row that vanished
	case "unknown late":
		ended(t, journal, since(reference, 65*time.Minute), unknown)
	case "free":
		ended(t, journal, i, refused)
	case "closed":
		ended(t, journal, i, final)
	case "voided":
		require.NoError(t, journal.Void(t.Context(), i, "Grace", "canceled"))
	case "executed":
		ended(t, journal, i, success)
	case "executed early":
		ended(t, journal, since(reference, 4*time.Hour), success)
	case "confirmed":
		ended(t, journal, i, unknown)
		require.NoError(t, journal.Resolve(t.Context(), i, paid("S-1-"+reference)))
	default:
		require.Fail(t, state)
	}
}

// standing is what is on record, in a word.
func standing(t testing.TB, journal *sqljournal.Journal, reference string) string {
	t.Helper()
	e, err := journal.Lookup(t.Context(), transfer, reference)
	switch {
	case errors.Is(err, sqljournal.ErrNoIntent):
		return "nothing"
	case e.InProgress:
		return "sending"
	case e.Outcome == cardwire.OutcomeExecuted:
		return "executed " + e.ServiceID
	case e.Closed:
		return "closed"
	case e.Outcome == cardwire.OutcomeUnknown:
		return "unknown"
	}
	require.NoError(t, err)
	return "free"
}

// What a statement says of a reference, and what is on record after it was applied. The
// journal has one connection: none is kept while findings are applied.
func TestWhatAStatementSays(t *testing.T) {
	t.Parallel()
	cases := []struct {
		record string
		lines  string                 // of REF
		kind   sqljournal.FindingKind // "": none
		after  string                 // "": as before
	}{
		{"nothing", "REF S-1-REF 12.50 EUR done", "stray", "executed S-1-REF"},
		{"nothing", "REF S-1-REF 12.50 EUR wait", "pending", "unknown"},
		{"nothing", "REF S-1-REF 12.50 EUR failed", "agrees", ""},
		{"sending", "REF S-1-REF 12.50 EUR done", "sending", ""},
		{"sending", "", "sending", ""},
		{"open", "REF S-1-REF 12.50 EUR done", "executed", "executed S-1-REF"},
		{"open", "", "not executed", "closed"},
		{"unknown", "REF S-1-REF 12.50 EUR done", "executed", "executed S-1-REF"},
		{"unknown", "REF S-1-REF 12.5 eur done", "executed", "executed S-1-REF"},
		{"unknown", "", "not executed", "closed"},
		{"unknown", "REF S-1-REF 12.50 EUR failed", "rejected", "closed"},
		{"unknown", "REF S-1-REF 12.50 EUR wait", "pending", ""},
		{"unknown", "REF S-1-REF 12.51 EUR done", "differs", ""},
		{"unknown", "REF S-1-REF 12.50 USD done", "differs", ""},
		{"unknown", "REF S-1-REF 1250 EUR failed", "differs", ""},
		{"unknown early", "REF S-1-REF 12.50 EUR done", "executed", "executed S-1-REF"},
		{"unknown early", "REF S-1-REF 12.50 EUR failed", "outside", ""},
		{"unknown early", "", "outside", ""},
		{"unknown at From", "REF S-1-REF 12.50 EUR done", "executed", "executed S-1-REF"},
		{"unknown at From", "", "outside", ""}, // by the provider's clock it may be before
		{"unknown at Until", "REF S-1-REF 12.50 EUR done", "executed", "executed S-1-REF"},
		{"unknown at Until", "", "too early", ""}, // and that of its execution after
		{"unknown twice", "", "outside", ""},      // the call that began early may have been executed
		{"unknown late", "REF S-1-REF 12.50 EUR done", "executed", "executed S-1-REF"},
		{"unknown late", "REF S-1-REF 12.50 EUR failed", "too early", ""},
		{"unknown late", "", "too early", ""},
		{"free", "REF S-1-REF 12.50 EUR done", "paid though closed", "executed S-1-REF"},
		{"free", "REF S-1-REF 12.50 EUR wait", "pending", "unknown"},
		{"free", "REF S-1-REF 12.50 EUR failed", "agrees", ""},
		{"free", "REF S-1-REF 1250 EUR done", "differs", "executed S-1-REF"}, // a statement in cents
		{"free", "REF S-1-REF 12.50 EUR done|ref S-2-REF 12.50 EUR done", "paid though closed", "executed S-1-REF"},
		{"free", "ref S-1-REF 12.50 EUR done", "similar", ""},
		{"free", "", "", ""},
		{"closed", "REF S-1-REF 12.50 EUR done", "paid though closed", "executed S-1-REF"},
		{"closed", "REF S-1-REF 12.50 USD done", "differs", "executed S-1-REF"},
		{"closed", "REF S-1-REF 12.50 EUR wait", "pending", "unknown"},
		{"closed", "", "", ""},
		{"voided", "REF S-1-REF 12.50 EUR done", "paid though closed", "executed S-1-REF"},
		{"executed", "REF S-1-REF 12.50 EUR done", "agrees", ""},
		{"executed", "REF S-2-REF 12.50 EUR done", "differs", ""},
		{"executed", "REF S-1-REF 1250 EUR done", "differs", ""},
		{"executed", "REF S-1-REF 12.50 EUR wait", "pending", ""},
		{"executed", "REF S-1-REF 12.50 EUR failed", "returned", ""},
		{"executed", "", "missing", ""},
		{"executed early", "", "", ""},
		{"confirmed", "", "", ""},
		{"confirmed", "REF S-1-REF 12.50 EUR failed", "returned", ""},
		{"unknown", "REF S-2-REF 12.50 EUR failed|REF S-1-REF 12.50 EUR done|REF S-3-REF 12.50 EUR wait", "executed",
			"executed S-1-REF"},
		{"unknown", "REF S-1-REF 12.50 EUR wait|REF S-2-REF 12.50 EUR failed", "pending", ""},
		{"unknown", "REF S-1-REF 12.50 EUR done|REF S-2-REF 12.50 EUR done", "twice", ""},
		{"nothing", "REF S-1-REF 12.50 EUR done|REF S-2-REF 12.50 EUR done", "twice", "executed S-1-REF"},
		{"closed", "REF S-1-REF 12.50 EUR done|REF S-2-REF 12.50 EUR done", "twice", "executed S-1-REF"},
		{"waits", "", "", ""},
		{"waits", "REF S-1-REF 12.50 EUR failed", "agrees", ""},
		{"waits", "REF S-1-REF 12.50 EUR done", "stray", "executed S-1-REF"},
		{"waits", "REF S-1-REF 99.00 EUR done", "differs", "executed S-1-REF"},
		{"waits", "REF S-1-REF 12.50 USD done", "differs", "executed S-1-REF"},
		{"waits", "REF S-1-REF 12.50 EUR done|ref S-2-REF 12.50 EUR done", "stray", "executed S-1-REF"},
		{"waits", "REF S-1-REF 12.50 EUR failed|ref S-2-REF 12.50 EUR done", "similar", ""},
		{"waits", "REF S-1-REF 12.50 EUR wait|ref S-2-REF 12.50 EUR done", "pending", "unknown"},
		{"closed", "REF S-1-REF 12.50 EUR wait|ref S-2-REF 12.50 EUR done", "pending", "unknown"},
		{"waits", "ref S-1-REF 12.50 EUR wait", "similar", ""},
		{"waits", "00REF S-1-REF 12.50 EUR done", "similar", ""},
		{"waits", "_ref S-1-REF 12.50 EUR wait", "similar", ""},
		{"unknown", "ref S-1-REF 12.50 EUR done", "similar", ""},
		{"unknown", "ref S-1-REF 12.50 EUR wait", "similar", ""},
		{"unknown", "REF S-1-REF 12.50 EUR done|ref S-2-REF 12.50 EUR done", "executed", "executed S-1-REF"},
		{"unknown", "00REF S-1-REF 12.50 EUR failed", "similar", ""},
		{"unknown", "REF S-1-REF 12.50 EUR failed|REF_ S-2-REF 12.50 EUR done", "similar", ""},
		{"closed", "_R_EF S-1-REF 12.50 EUR done", "similar", ""},
		{"executed", "REF S-1-REF 12.50 EUR done|ref S-2-REF 12.50 EUR done", "agrees", ""},
	}
	eachPlace(t, func(t *testing.T, at place) {
		if at.Dialect == sqljournal.PostgreSQL {
			at.Source += "&default_query_exec_mode=exec" // as behind a pool of transactions
		}
		db, journal := openNew(t, at)
		db.SetMaxOpenConns(1)
		wanted, waiting := map[string]sqljournal.FindingKind{}, map[string]string{}
		others := map[string]sqljournal.FindingKind{"done": "stray", "wait": "pending", "failed": "similar"}
		var lines, order []string
		for n, tc := range cases {
			reference := fmt.Sprintf("R%dEF", n)
			record(t, journal, reference, tc.record)
			if tc.record == "waits" {
				waiting[reference] = "12.50 EUR"
			}
			for line := range strings.SplitSeq(tc.lines, "|") {
				if line == "" {
					continue
				}
				number := fmt.Sprint(n)
				names := strings.NewReplacer("R_EF", "R_"+number+"EF", "REF", reference, "ref", "r"+number+"ef")
				line = names.Replace(line)
				lines = append(lines, line)
				if at := lineAt(time.Now(), 0, line); at.Reference != reference {
					wanted[at.Reference] = others[at.Status]
				}
			}
			if tc.kind != "" {
				wanted[reference] = tc.kind
			}
			order = append(order, standing(t, journal, reference))
		}
		s := statement(lines...)
		s.Waiting, s.AllowStrays = waiting, true
		findings := reconciled(t, journal, s)
		assert.Equal(t, wanted, kinds(t, findings))
		for n := range cases {
			assert.Equal(t, order[n], standing(t, journal, fmt.Sprintf("R%dEF", n)), "the report changes nothing")
		}
		rest := slices.IndexFunc(findings, func(f sqljournal.Finding) bool { return !isPaidThoughFree(f) })
		assert.Positive(t, rest)
		assert.False(t, slices.ContainsFunc(findings[rest:], isPaidThoughFree), "they come first")

		applied := 0
		for f, err := range journal.Reconcile(t.Context(), s) {
			require.NoError(t, err)
			applied += applyAll(t, journal, []sqljournal.Finding{f})
		}
		assert.Positive(t, applied)
		for n, tc := range cases {
			reference := fmt.Sprintf("R%dEF", n)
			want := order[n]
			if tc.after != "" {
				want = strings.ReplaceAll(tc.after, "REF", reference)
			}
			assert.Equal(t, want, standing(t, journal, reference), "%s: %s: %s", reference, tc.record, tc.lines)
		}
		events := count(t, db, at.Table+"_history")
		assert.Equal(t, applied, applyAll(t, journal, findings), "what is applied twice")
		again := reconciled(t, journal, s)
		assert.Zero(t, applyAll(t, journal, again), "what is reconciled twice")
		last := fmt.Sprintf("R%dEF", len(cases)-1) // with a line of each of the two numbers, and both on record now
		assert.Equal(t, sqljournal.FindingAgrees, kinds(t, again)[last])
		assert.Equal(t, events, count(t, db, at.Table+"_history"), "changes nothing")
	})
}

// isPaidThoughFree reports whether it was paid there, and can be sent again here, or was given up.
func isPaidThoughFree(f sqljournal.Finding) bool {
	e := f.Entry.Outcome
	return f.Line.Status == "done" && (e == cardwire.OutcomeRefused || e == cardwire.OutcomeNotSent)
}

// Each change is an event with who, why, and the words of the statement.
func TestWhatAStatementChangesIsInTheHistory(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		record(t, journal, "M-1", "unknown")
		record(t, journal, "M-2", "unknown")
		record(t, journal, "M-3", "unknown")
		record(t, journal, "M-5", "closed")
		s := statement("M-1 T-1 12.50 EUR done", "M-2 T-2 12.50 EUR failed", "M-4 T-4 99.90 USD done",
			"M-5 T-5 12.50 EUR wait")
		findings := reconciled(t, journal, s)
		line := finding(t, journal, s, "M-1").Line
		for _, f := range findings {
			f.Free = f.Reference == "M-3"
			require.NoError(t, journal.Apply(t.Context(), f, "Ada", "ticket 7"))
			require.NoError(t, journal.Apply(t.Context(), f, "Ada", "ticket 7"), "the same again")
			assert.Equal(t, s.Until, f.AsOf)
		}
		assert.Equal(t, lineAt(line.Time, 2, "M-1 T-1 12.50 EUR done"), line)
		told := func(words string) string {
			return ", Ada, ticket 7; in the statement: " + words + ", " + stamp(line.Time)
		}
		assertEvents(t, journal, "M-1", "begun: unknown", "ended: unknown",
			"resolved: executed T-1"+told("line 2, T-1, 12.50 EUR, done"))
		assertEvents(t, journal, "M-2", "begun: unknown", "ended: unknown",
			"resolved: refused"+told("line 3, T-2, 12.50 EUR, failed"))
		assertEvents(t, journal, "M-3", "begun: unknown", "ended: unknown",
			"resolved: not sent, Ada, ticket 7; not in the statement from "+stamp(s.From)+" until "+stamp(s.Until))
		assertEvents(t, journal, "M-4", "voided: not sent"+told("line 4, T-4, 99.90 USD, done"),
			"resolved: executed T-4"+told("line 4, T-4, 99.90 USD, done"))
		assertEvents(t, journal, "M-5", "begun: unknown", "ended: refused",
			"pending: unknown"+told("line 5, T-5, 12.50 EUR, wait"))
		assert.Equal(t, "99.90 USD", lookup(t, journal, "M-4").Summary)
		assert.Equal(t, "free", standing(t, journal, "M-3"))
		require.ErrorIs(t, journal.Apply(t.Context(), findings[0], "", ""), cardwire.ErrInvalidParams, "by nobody")
	})
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// What has changed since the report is left as it is.
func TestWhatMovedSinceTheReport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		record, line string
		move         func(t *testing.T, journal *sqljournal.Journal)
		after        string
	}{
		"it is sent": {"nothing", "M-1 T-1 12.50 EUR done", func(t *testing.T, journal *sqljournal.Journal) {
			begun(t, journal, intent("M-1"))
		}, "sending"},
		"what is pending is sent": {"free", "M-1 T-1 12.50 EUR wait", func(t *testing.T, journal *sqljournal.Journal) {
			begun(t, journal, intent("M-1"))
		}, "sending"},
		"a call ends late": {"unknown", "M-1 T-1 12.50 EUR done", func(t *testing.T, journal *sqljournal.Journal) {
			late := executed
			late.ServiceID = "T-9"
			require.NoError(t, journal.End(t.Context(), lookup(t, journal, "M-1").Intent, late))
		}, "executed T-9"},
		"a person frees it, and it is sent": {"unknown", "", func(t *testing.T, journal *sqljournal.Journal) {
			require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1").Intent, notSent()))
			begun(t, journal, intent("M-1"))
		}, "sending"},
		"a person closes it": {"free", "M-1 T-1 12.50 EUR wait", func(t *testing.T, journal *sqljournal.Journal) {
			require.NoError(t, journal.Void(t.Context(), intent("M-1"), "Grace", "canceled"))
		}, "closed"},
		"an earlier call ends unknown": {"unknown", "", func(t *testing.T, journal *sqljournal.Journal) {
			require.NoError(t, journal.End(t.Context(), intent("M-1"), unknown))
		}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				_, journal := openNew(t, at)
				record(t, journal, "M-1", tc.record)
				record(t, journal, "M-2", "executed")
				lines := []string{"M-2 S-1-M-2 12.50 EUR done"}
				if tc.line != "" {
					lines = append(lines, tc.line)
				}
				f := finding(t, journal, statement(lines...), "M-1")
				tc.move(t, journal)
				require.ErrorIs(t, journal.Apply(t.Context(), f, "Ada", ""), sqljournal.ErrMoved)
				assert.Equal(t, tc.after, standing(t, journal, "M-1"))
			})
		})
	}
}

// A person says that it was executed while Apply closes it, and a call begins while it records a stray.
func TestSomebodyIsFasterThanApply(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, direct := openNew(t, at)
		record(t, direct, "M-1", "unknown")
		record(t, direct, "M-2", "executed")
		f := finding(t, direct, statement("M-2 S-1-M-2 12.50 EUR done"), "M-1")
		journal, outage := during(t, at, nil)
		require.NoError(t, journal.Verify(t.Context()))
		before := outage.asked.Load()
		outage.writing = func() {
			if outage.asked.Load() == before+1 {
				assert.NoError(t, direct.Resolve(t.Context(), f.Entry.Intent, paid("T-1")))
			}
		}
		require.ErrorIs(t, journal.Apply(t.Context(), f, "Ada", ""), sqljournal.ErrMoved)
		assert.Equal(t, "executed T-1", standing(t, direct, "M-1"))
		if at.Dialect == sqljournal.SQLite {
			return // it lets nobody else write meanwhile
		}
		f = finding(t, direct, statement("M-2 S-1-M-2 12.50 EUR done", "M-3 T-3 12.50 EUR done"), "M-3")
		before = outage.asked.Load() + 1 // after the lock
		outage.writing = func() {
			if outage.asked.Load() == before+1 {
				begun(t, direct, intent("M-3"))
			}
		}
		require.ErrorIs(t, journal.Apply(t.Context(), f, "Ada", ""), sqljournal.ErrMoved)
		assert.Equal(t, "sending", standing(t, direct, "M-3"))
	})
}

// The number of the service is that of another reference: a person must say which is wrong.
func TestAStatementGivesNoServiceIDToTwoReferences(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		record(t, journal, "M-1", "executed")
		record(t, journal, "M-2", "unknown")
		f := finding(t, journal, statement("M-1 S-1-M-1 12.50 EUR done", "M-2 S-1-M-1 12.50 EUR done"), "M-2")
		err := journal.Apply(t.Context(), f, "Ada", "")
		require.ErrorIs(t, err, sqljournal.ErrDecided)
		assert.ErrorContains(t, err, "the service ID belongs to reference M-1")
		assert.Equal(t, "unknown", standing(t, journal, "M-2"))

		record(t, journal, "M-3", "free")
		record(t, journal, "M-4", "closed")
		s := statement("M-1 S-1-M-1 12.50 EUR done", "M-3 S-1-M-1 12.50 EUR done", "M-4 S-1-M-1 99 EUR done",
			"M-5 S-1-M-1 12.50 EUR done")
		for _, reference := range []string{"M-3", "M-4", "M-5"} {
			f := finding(t, journal, s, reference)
			require.NoError(t, journal.Apply(t.Context(), f, "Ada", ""))
			require.NoError(t, journal.Apply(t.Context(), f, "Ada", ""), "the same again")
			assert.Equal(t, "executed ", standing(t, journal, reference), "it could be sent again")
			all := events(t, journal, reference)
			assert.Contains(t, all[len(all)-1], "; without the service ID: another reference has it")
		}
		assert.Equal(t, "executed S-1-M-1", standing(t, journal, "M-1"))
	})
}

// What was pending in one statement is not denied by one that begins after it: that one
// would not list it.
func TestWhatWasPendingIsDeniedOnlyByAStatementThatListsIt(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		ended(t, journal, since("M-1", 30*time.Minute), refused) // after the call that is pending
		s := statement("M-1 T-1 12.50 EUR wait", "M-2 T-2 12.50 EUR wait")
		s.AllowStrays = true
		early := rejected()
		assert.Equal(t, 2, applyAll(t, journal, reconciled(t, journal, s)))
		for _, reference := range []string{"M-1", "M-2"} {
			err := journal.Resolve(t.Context(), lookup(t, journal, reference).Intent, early)
			require.ErrorIs(t, err, sqljournal.ErrDecided, "the service was asked before")
		}
		later := statement()
		later.From, later.Until, later.Exported = time.Now().Add(-time.Hour), time.Now(), time.Now()
		want := map[string]sqljournal.FindingKind{"M-1": "outside", "M-2": "outside"}
		assert.Equal(t, want, kinds(t, reconciled(t, journal, later)))
		later.From = s.From
		want = map[string]sqljournal.FindingKind{"M-1": "not executed", "M-2": "not executed"}
		assert.Equal(t, want, kinds(t, reconciled(t, journal, later)))
		later.Lines = statement("M-2 T-2 12.50 EUR failed").Lines
		assert.Equal(t, sqljournal.FindingRejected, finding(t, journal, later, "M-2").Kind)
		later.Lines = statement("M-2 T-2 12.50 EUR failed", "m-2 T-3 12.50 EUR done").Lines
		later.AllowStrays = true
		for range 2 { // the first run records the other one
			assert.Equal(t, sqljournal.FindingSimilar, finding(t, journal, later, "M-2").Kind)
			applyAll(t, journal, reconciled(t, journal, later))
		}
	})
}

// A statement that is wrong stops Reconcile before anything, and says where.
func TestAWrongStatement(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	_, journal := openNew(t, at)
	record(t, journal, "M-1", "unknown")
	const good = "M-1 T-1 12.50 EUR done"
	cut := errors.New("unexpected EOF")
	for name, tc := range map[string]struct {
		edit func(*sqljournal.Statement)
		want string
	}{
		"a file that is cut off": {func(s *sqljournal.Statement) {
			s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
				_ = yield(lineAt(time.Now(), 2, good), nil) && yield(sqljournal.StatementLine{}, cut)
			}
		}, "sqljournal: reading the statement: unexpected EOF"},
		"an end after the export": {func(s *sqljournal.Statement) {
			s.Until = s.Exported.Add(time.Second)
		}, "set Until to a time at or before Exported"},
		"no time of export": {func(s *sqljournal.Statement) {
			s.Exported = time.Time{}
		}, "set Until to a time at or before Exported"},
		"an export in the future": {func(s *sqljournal.Statement) {
			s.Exported = time.Now().Add(time.Hour)
		}, "Exported is in the future"},
		"no beginning": {func(s *sqljournal.Statement) {
			s.From = time.Time{}
		}, "set From to a time before Until"},
		"an end at the beginning": {func(s *sqljournal.Statement) {
			s.Until = s.From
		}, "set From to a time before Until"},
		"no operation": {func(s *sqljournal.Statement) { s.Op = "" }, "Op is empty"},
		"an operation that may be repeated": {func(s *sqljournal.Statement) {
			s.Op = cardwire.OpCancelOrRetry
		}, "the operation may be repeated, and cannot be reconciled"},
		"no lines": {func(s *sqljournal.Statement) {
			s.Lines = nil
		}, "Lines is nil: set it to the lines of the statement"},
		"a status without meaning": {func(s *sqljournal.Statement) {
			s.Statuses["done"] = "perhaps"
		}, "each value of Statuses must be executed, not_executed or pending"},
	} {
		s := statement(good)
		tc.edit(&s)
		err := refusal(t, journal, s)
		require.ErrorContains(t, err, tc.want, name)
		assert.Equal(t, name != "a file that is cut off", errors.Is(err, cardwire.ErrInvalidParams), name)
		assert.NotContains(t, err.Error(), "M-1", name)
	}
	for want, edit := range map[string]func(*sqljournal.StatementLine){
		"its Status is not one of Statuses":         func(l *sqljournal.StatementLine) { l.Status = "on hold" },
		"Reference contains an invisible character": func(l *sqljournal.StatementLine) { l.Reference = "\ufeffM-1" },
		"ServiceID begins or ends with white space": func(l *sqljournal.StatementLine) { l.ServiceID = "T-1\n" },
		"Currency must be a currency code":          func(l *sqljournal.StatementLine) { l.Currency = "€" },
		"its Amount has more than 40 digits": func(l *sqljournal.StatementLine) {
			l.Amount = decimal.New(1, 1_000_000_000) // which would fill the memory
		},
		"its Time is missing": func(l *sqljournal.StatementLine) { l.Time = time.Time{} },
		"its Time is after Exported": func(l *sqljournal.StatementLine) { // as of a placeholder, 9999-12-31
			l.Time = time.Now().Add(11 * time.Minute)
		},
	} {
		s := statement(good)
		s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
			line := lineAt(time.Now(), 3, good)
			edit(&line)
			_ = yield(lineAt(time.Now(), 2, good), nil) && yield(line, nil)
		}
		err := refusal(t, journal, s)
		require.ErrorIs(t, err, cardwire.ErrInvalidParams)
		require.ErrorContains(t, err, "line 3 of the statement: "+want)
		assert.NotContains(t, err.Error(), "M-1", want)
	}
}

// refusal is the error of a statement that is refused before anything is found.
func refusal(t testing.TB, journal *sqljournal.Journal, s sqljournal.Statement) (refusal error) {
	t.Helper()
	n := 0
	for f, err := range journal.Reconcile(t.Context(), s) {
		assert.Empty(t, f)
		refusal = err
		n++
	}
	require.Equal(t, 1, n)
	return refusal
}

// The statement of another account is refused; after the journal was lost all are strays.
func TestMoreThanHalfAreStrays(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		record(t, journal, "M-1", "unknown")
		record(t, journal, "M-2", "unknown")
		lines := []string{
			"M-1 T-1 12.50 EUR done", "m-2 T-2 12.50 EUR done", "N-3 T-3 12.50 EUR done", "N-4 T-4 12.50 EUR failed",
			"N-4 T-5 12.50 EUR failed",
		}
		assert.Len(t, reconciled(t, journal, statement(lines...)), 5, "half of them are, and similar is not stray")
		s := statement(append(lines, "N-5 T-5 12.50 EUR wait")...)
		assert.Same(t, sqljournal.ErrStrays, refusal(t, journal, s))
		s.AllowStrays = true
		assert.Len(t, reconciled(t, journal, s), 6)
	})
}

// A statement that may lack lines is reported as such, before all findings.
func TestAStatementThatMayLackLines(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	record(t, journal, "M-1", "unknown")
	for name, tc := range map[string]struct {
		lines string // minutes after the beginning, of a hundred, and status
		want  []string
	}{
		"a full one":            {"1 done,50 done,95 failed", nil},
		"an empty one":          {"", []string{"the statement has no lines"}},
		"one that begins late":  {"95 failed,11 done,50 done", []string{"long after the statement begins"}},
		"yesterday's, of today": {"50 done,1 done,40 failed", []string{"long before the statement ends"}},
		"two hours early":       {"1 done,2300 failed,2769 done", []string{"long before the statement ends"}},
		"successes only":        {"1 done,50 wait,95 done", []string{`no line has a status that means "not executed"`}},
		"all of that":           {"50 done", []string{"begins", "ends", "successes"}},
	} {
		s := statement()
		s.Until = s.From.Add(100 * time.Minute)
		if strings.Contains(tc.lines, "2769") { // a day, of which the limit is no tenth
			s.From = s.From.Add(-47 * time.Hour)
			s.Until = s.From.Add(48 * time.Hour)
		}
		s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
			for text := range strings.SplitSeq(tc.lines, ",") {
				minutes, status, ok := strings.Cut(text, " ")
				after, _ := time.ParseDuration(minutes + "m")
				if !ok || !yield(lineAt(s.From.Add(after), 2, "M-1 T-1 12.50 EUR "+status), nil) {
					return
				}
			}
		}
		var notes []string
		for f, err := range journal.Reconcile(t.Context(), s) {
			require.NoError(t, err)
			if f.Kind != sqljournal.FindingWarning {
				break
			}
			assert.False(t, f.Applies())
			notes = append(notes, f.Note)
		}
		require.Len(t, notes, len(tc.want), name)
		for n, want := range tc.want {
			assert.Contains(t, notes[n], want, name)
		}
	}
}

// A line that may be of an order with another number is a warning: neither is recorded.
func TestLinesOfSimilarNumbersAreAWarning(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	record(t, journal, "free", "free")
	warnings := func(lines ...string) (notes []string) {
		s := statement(append(lines, "free T-0 12.50 EUR failed")...)
		s.AllowStrays = true
		s.Waiting = map[string]string{"007": "12.50 EUR", "inv 1": "12.50 EUR", "M-8": "12.50 EUR"}
		for f, err := range journal.Reconcile(t.Context(), s) {
			require.NoError(t, err)
			if strings.Contains(f.Note, "leading zeros") {
				assert.Equal(t, sqljournal.FindingWarning, f.Kind)
				notes = append(notes, f.Note)
			}
		}
		return notes
	}
	assert.Empty(t, warnings("007 T-1 12.50 EUR done", "8 T-2 12.50 EUR done",
		"INV-1 T-4 12.50 EUR done", "7 T-3 12.50 EUR failed"))
	for line, want := range map[string]string{
		"7 T-1 12.50 EUR done":     `"7" and "007"`,
		"_INV_1 T-1 9 EUR wait":    `" INV 1" and "inv 1"`,
		"0FREE T-1 12.50 EUR done": `"0FREE" and "free"`,
	} {
		notes := warnings(line, "M-8 T-9 12.50 EUR done")
		require.Len(t, notes, 1, line)
		assert.Contains(t, notes[0], "or leading zeros are ignored: 1, such as "+want+": find out which orders they are")
	}
	notes := warnings("M-8 T-1 12.50 EUR wait", "m-8 T-2 12.50 EUR done")
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], `: 1, such as "m-8" and "M-8":`)
}

// A service ID that lines of several references have is a warning: it may be the number of a batch.
func TestServiceIDsOfSeveralReferencesAreAWarning(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	s := statement("M-1 B-1 1 EUR done", "M-2 B-1 1 EUR done", "M-3 B-1 1 EUR done", "M-4 B-2 1 EUR done",
		"M-5 B-2 1 EUR done", "M-6 B-3 1 EUR done", "M-6 B-3 1 EUR done", "M-7 B-4 1 EUR done", "M-8 B-4 1 EUR wait")
	s.AllowStrays = true
	var notes []string
	for f, err := range journal.Reconcile(t.Context(), s) {
		require.NoError(t, err)
		if f.Kind == sqljournal.FindingWarning && strings.Contains(f.Note, "service IDs") {
			notes = append(notes, f.Note)
		}
	}
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], `of more than one order: 2, as "B-1" in those of 3: check`)
}

// A statement has all that was there at its export, unless it ends so long before that the provider's clock
// decides what it has.
func TestTheEndOfAStatement(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	ended(t, journal, settled("M-1"), unknown)
	s := statement()
	s.Until = lookup(t, journal, "M-1").SettledBy.Add(5 * time.Minute)
	for later, want := range map[time.Duration]sqljournal.FindingKind{
		0: sqljournal.FindingNotExecuted, 10*time.Minute - 1: sqljournal.FindingNotExecuted,
		10 * time.Minute: sqljournal.FindingTooEarly,
	} {
		s.Exported = s.Until.Add(later)
		assert.Equal(t, want, finding(t, journal, s, "M-1").Kind, later)
	}
}

// Executed lines whose calls were made at another time are reported as one warning: the time zone of
// the file is another one. What was voided has no time of a call.
func TestTheTimeZoneOfAStatement(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		for reference, state := range map[string]string{
			"M-1": "unknown", "M-2": "executed", "M-3": "voided", "M-4": "unknown", "M-5": "unknown", "M-6": "closed",
			"M-7": "closed",
		} {
			record(t, journal, reference, state)
		}
		for shift, want := range map[time.Duration]int{
			0: 0, -5 * time.Hour: 3, 2 * time.Hour: 3, -9 * time.Minute: 0, -11 * time.Minute: 3,
			20 * time.Minute: 0, 22 * time.Minute: 3, // it is settled after 11 minutes
		} {
			s := statement()
			s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
				for n, text := range []string{
					"M-1 T-1 12.50 EUR done", "M-2 S-1-M-2 12.50 EUR done", "M-3 T-3 12.50 EUR done",
					"M-4 T-4 12.50 EUR failed", "M-5 T-5 1250 EUR done", "M-6 T-6 12.50 EUR done",
					"M-7 T-7 12.50 EUR failed",
				} {
					if !yield(lineAt(time.Now().Add(shift-2*time.Hour), n+2, text), nil) {
						return
					}
				}
			}
			found := 0
			for f, err := range journal.Reconcile(t.Context(), s) {
				require.NoError(t, err)
				if f.Kind == sqljournal.FindingWarning && strings.Contains(f.Note, "check the time zone") {
					assert.Contains(t, f.Note, fmt.Sprintf(": %d: ", want), shift)
					found++
				}
			}
			assert.Equal(t, min(want, 1), found, shift)
		}
	})
}

// An interruption at any of its writes leaves what another run finishes.
func TestApplyingIsFinishedByAnotherRun(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		s := statement("M-1 T-1 12.50 EUR done", "M-2 T-2 12.50 EUR done", "M-3 T-3 12.50 EUR wait",
			"M-4 T-4 12.50 EUR done")
		s.AllowStrays = true
		for writes := range int64(8) {
			at := at.another(t)
			_, direct := openNew(t, at)
			record(t, direct, "M-1", "unknown")
			record(t, direct, "M-4", "closed")
			record(t, direct, "M-5", "unknown")
			journal, outage := during(t, at, nil)
			ctx, stop := context.WithCancel(t.Context())
			outage.writing = func() {
				if outage.asked.Load() > writes {
					stop()
				}
			}
			for f, err := range journal.Reconcile(ctx, s) {
				if err == nil && f.Applies() && journal.Apply(ctx, f, "Ada", "") != nil {
					break
				}
			}
			stop()
			assert.NotEqual(t, "closed", standing(t, direct, "M-2"), "a late message would fail what was paid")
			applyAll(t, direct, reconciled(t, direct, s))
			for reference, want := range map[string]string{
				"M-1": "executed T-1", "M-2": "executed T-2", "M-3": "unknown", "M-4": "executed T-4", "M-5": "closed",
			} {
				assert.Equal(t, want, standing(t, direct, reference))
				last := 0
				for _, e := range events(t, direct, reference) {
					if strings.HasPrefix(e, "resolved") || strings.HasPrefix(e, "pending") {
						last++
					}
				}
				assert.Equal(t, 1, last, "%s is recorded once", reference)
			}
		}
	})
}

func count(t testing.TB, db *sql.DB, table string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}
