package sqljournal_test

import (
	"cmp"
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
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// statement is that of the hours between three hours ago and one hour ago, in which the call
// of settled lives. A line is "REFERENCE SERVICE-ID AMOUNT CURRENCY STATUS", of the time of settled
// or "later", where _ is a space and - no service ID.
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
	if len(f) == 6 {
		at = at.Add(time.Minute)
	}
	return sqljournal.StatementLine{
		Line: number, Reference: strings.ReplaceAll(f[0], "_", " "), ServiceID: strings.Trim(f[1], "-"),
		Amount: decimal.RequireFromString(f[2]), Currency: f[3], Status: f[4], Time: at,
	}
}

// reconciled are the findings without the warnings.
func reconciled(t testing.TB, journal *sqljournal.Journal, s sqljournal.Statement) (all []sqljournal.Finding) {
	t.Helper()
	for f, err := range journal.Reconcile(t.Context(), s) {
		require.NoError(t, err)
		if f.Why != "statement" {
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
func kinds(t testing.TB, findings []sqljournal.Finding) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range findings {
		assert.NotContains(t, all, f.Reference, "one finding for each reference")
		all[f.Reference] = cmp.Or(f.Why, string(f.Kind))
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
	case "nothing":
	case "reserved":
		require.NoError(t, journal.Reserve(t.Context(), i))
	case "sending":
		begun(t, journal, intent(reference))
	case "open":
		begun(t, journal, i)
	case "unknown":
		ended(t, journal, i, unknown)
	case "unknown early":
		ended(t, journal, since(reference, 4*time.Hour), unknown)
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
	case "executed late":
		ended(t, journal, since(reference, 65*time.Minute), success)
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
	case e.Outcome == cardwire.OutcomeUnknown:
		return "unknown"
	case e.Closed:
		return "closed"
	}
	require.NoError(t, err)
	return "free"
}

// What a statement says of a reference, and what is on record after it was applied. The
// journal has one connection: none is kept while findings are applied.
func TestWhatAStatementSays(t *testing.T) {
	t.Parallel()
	const pays = "REF S-1-REF 12.50 EUR done"
	cases := []struct {
		record string
		lines  string // of REF
		kind   string // "": none
		after  string // "": as before, and nothing is applied
	}{
		{"sending", pays, "pending", ""},
		{"sending", "REF S-1-REF 12.50 EUR wait", "agrees", ""},
		{"sending", "", "", ""},
		{"sending", pays + "|REF S-2-REF 12.50 EUR done", "pending", ""},

		{"closed", pays, "closed", "executed S-1-REF"},
		{"closed", "REF S-1-REF 12.50 USD done", "closed", "executed S-1-REF"},
		{"closed", pays + "|REF S-2-REF 12.50 EUR done", "closed", "executed S-1-REF"},
		{"voided", pays, "closed", "executed S-1-REF"},

		{"nothing", pays + "|REF S-2-REF 12.50 EUR done", "twice", "executed S-1-REF"},
		{"free", pays + "|REF S-2-REF 12.50 EUR done", "twice", "executed S-1-REF"},
		{"unknown", pays + "|REF S-2-REF 12.50 EUR done", "twice", "executed S-1-REF"},
		{"executed", pays + "|REF S-2-REF 12.50 EUR done", "twice", ""},
		{"unknown", pays + "|" + pays, "recorded", "executed S-1-REF"}, // it is one line
		{"unknown", pays + "|REF S-1-REF 12.50 EUR done later", "recorded", "executed S-1-REF"},
		{"unknown", pays + "|REF - 12.50 EUR done", "twice", "executed S-1-REF"},
		{"unknown", "REF - 12.50 EUR done|REF - 12.50 EUR done later", "twice", "executed "},
		{"unknown", "REF - 12.50 EUR done|REF - 12.50 EUR done", "recorded", "executed "},

		{"free", "REF S-1-REF 1250 EUR done", "differs", "unknown"}, // a statement in cents
		{"free", "REF S-1-REF 12.50 USD done", "differs", "unknown"},
		{"reserved", "REF S-1-REF 99.00 EUR done", "differs", "unknown"},
		{"unknown", "REF S-1-REF 12.51 EUR done", "differs", ""},
		{"unknown", "REF S-1-REF 12.50 USD done", "differs", ""},
		{"unknown", pays + "|REF S-1-REF 12.51 EUR done", "differs", ""},
		{"executed", "REF S-2-REF 12.50 EUR done", "differs", ""},
		{"executed", "REF S-1-REF 1250 EUR done", "differs", ""},

		{"nothing", pays, "not known", "executed S-1-REF"},

		{"free", pays, "recorded", "executed S-1-REF"},
		{"reserved", pays, "recorded", "executed S-1-REF"},
		{"open", pays, "recorded", "executed S-1-REF"},
		{"unknown", pays, "recorded", "executed S-1-REF"},
		{"unknown", "REF S-1-REF 12.5 eur done", "recorded", "executed S-1-REF"},
		{"unknown early", pays, "recorded", "executed S-1-REF"},
		{"unknown", "REF S-2-REF 12.50 EUR failed|" + pays + "|REF S-3-REF 12.50 EUR wait", "recorded",
			"executed S-1-REF"},
		{"executed", pays, "agrees", ""},
		{"confirmed", pays, "agrees", ""},

		{"nothing", "REF S-1-REF 12.50 EUR wait", "pending", "unknown"},
		{"free", "REF S-1-REF 12.50 EUR wait", "pending", "unknown"},
		{"closed", "REF S-1-REF 12.50 EUR wait", "pending", "unknown"},
		{"reserved", "REF S-1-REF 12.50 EUR wait", "pending", "unknown"},
		{"unknown", "REF S-1-REF 12.50 EUR wait|REF S-2-REF 12.50 EUR failed", "agrees", ""},
		{"executed", "REF S-1-REF 12.50 EUR wait", "agrees", ""},

		{"unknown", "REF S-1-REF 12.50 EUR failed", "rejected", ""},
		{"unknown", "REF S-1-REF 1250 EUR failed", "rejected", ""},
		{"unknown early", "REF S-1-REF 12.50 EUR failed", "rejected", ""},
		{"executed", "REF S-1-REF 12.50 EUR failed", "rejected", ""},
		{"confirmed", "REF S-1-REF 12.50 EUR failed", "rejected", ""},
		{"nothing", "REF S-1-REF 12.50 EUR failed", "agrees", ""},
		{"free", "REF S-1-REF 12.50 EUR failed", "agrees", ""},
		{"closed", "REF S-1-REF 12.50 EUR failed", "agrees", ""},

		{"open", "", "not listed", ""},
		{"unknown", "", "not listed", ""},
		{"unknown early", "", "not listed", ""},
		{"unknown late", "", "not listed", ""},
		{"executed", "", "not listed", ""},
		{"confirmed", "", "not listed", ""}, // whoever said that it was executed
		{"executed early", "", "", ""},
		{"executed late", "", "", ""},
		{"nothing", "", "", ""},
		{"free", "", "", ""},
		{"closed", "", "", ""},
		{"unknown", "ref S-1-REF 12.50 EUR done", "not listed", ""}, // no other spelling is taken for it
		{"free", "ref S-1-REF 12.50 EUR done", "not listed", ""},
	}
	eachPlace(t, func(t *testing.T, at place) {
		if at.Dialect == sqljournal.PostgreSQL {
			at.Source += "&default_query_exec_mode=exec" // as behind a pool of transactions
		}
		db, journal := openNew(t, at)
		db.SetMaxOpenConns(1)
		wanted := map[string]string{}
		var lines, before []string
		for n, tc := range cases {
			reference := fmt.Sprintf("R%dEF", n)
			record(t, journal, reference, tc.record)
			names := strings.NewReplacer("REF", reference, "ref", strings.ToLower(reference))
			for line := range strings.FieldsFuncSeq(names.Replace(tc.lines), func(r rune) bool { return r == '|' }) {
				lines = append(lines, line)
				if other, _, _ := strings.Cut(line, " "); other != reference {
					wanted[other] = "differs"
				}
			}
			if tc.kind != "" {
				wanted[reference] = tc.kind
			}
			before = append(before, standing(t, journal, reference))
		}
		s := statement(lines...)
		s.AllowStrays = true
		findings := reconciled(t, journal, s)
		assert.Equal(t, wanted, kinds(t, findings))
		for n := range cases {
			assert.Equal(t, before[n], standing(t, journal, fmt.Sprintf("R%dEF", n)), "the report changes nothing")
		}
		place := func(f sqljournal.Finding) int {
			return slices.Index([]string{"twice", "closed"}, f.Why)
		}
		assert.True(t, slices.IsSortedFunc(findings, func(a, b sqljournal.Finding) int { return place(b) - place(a) }))

		applied := 0
		for f, err := range journal.Reconcile(t.Context(), s) {
			require.NoError(t, err)
			applied += applyAll(t, journal, []sqljournal.Finding{f})
		}
		for n, tc := range cases {
			reference := fmt.Sprintf("R%dEF", n)
			want := before[n]
			if tc.after != "" {
				want = strings.ReplaceAll(tc.after, "REF", reference)
			}
			assert.Equal(t, want, standing(t, journal, reference), "%s: %s: %s", reference, tc.record, tc.lines)
		}
		events := count(t, db, at.Table+"_history")
		assert.Equal(t, applied, applyAll(t, journal, findings), "what is applied twice")
		assert.Zero(t, applyAll(t, journal, reconciled(t, journal, s)), "what is reconciled twice")
		assert.Equal(t, events, count(t, db, at.Table+"_history"), "changes nothing")
	})
}

// Each change is an event with who, why, and the words of the statement.
func TestWhatAStatementChangesIsInTheHistory(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		record(t, journal, "M-1", "unknown")
		record(t, journal, "M-2", "unknown")
		record(t, journal, "M-5", "closed")
		s := statement("M-1 T-1 12.50 EUR done", "M-2 T-2 12.50 EUR failed", "M-4 T-4 99.90 USD done",
			"M-5 T-5 12.50 EUR wait")
		line := finding(t, journal, s, "M-1").Line
		findings := reconciled(t, journal, s)
		applyAll(t, journal, findings)
		applyAll(t, journal, findings)
		assert.Equal(t, lineAt(line.Time, 2, "M-1 T-1 12.50 EUR done"), line)
		told := func(words string) string {
			return ", Ada, ticket 7; in the statement from " + stamp(s.From) + " until " + stamp(s.Until) + ": " +
				words +
				", " + stamp(line.Time)
		}
		assertEvents(t, journal, "M-1", "begun: unknown", "ended: unknown",
			"resolved: executed T-1"+told("line 2, T-1, 12.50 EUR, done"))
		assertEvents(t, journal, "M-2", "begun: unknown", "ended: unknown")
		assertEvents(t, journal, "M-4", "resolved: executed T-4"+told("line 4, T-4, 99.90 USD, done"))
		assertEvents(t, journal, "M-5", "begun: unknown", "ended: refused",
			"pending: unknown"+told("line 5, T-5, 12.50 EUR, wait"))
		differs := lookup(t, journal, "M-4")
		assert.Equal(t, "99.9 USD", differs.Amount.String()+" "+differs.Currency)
		require.ErrorIs(t, journal.Apply(t.Context(), findings[0], "", ""), cardwire.ErrInvalidParams, "by nobody")
	})
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// What has changed since the report is left as it is.
func TestWhatMovedSinceTheReport(t *testing.T) {
	t.Parallel()
	const pays = "M-1 T-1 12.50 EUR done"
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
		"a person frees it, and it is sent": {"unknown", pays, func(t *testing.T, journal *sqljournal.Journal) {
			require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1").Intent, notSent()))
			begun(t, journal, intent("M-1"))
		}, "sending"},
		"a person closes it": {"free", "M-1 T-1 12.50 EUR wait", func(t *testing.T, journal *sqljournal.Journal) {
			require.NoError(t, journal.Void(t.Context(), intent("M-1"), "Grace", "canceled"))
		}, "closed"},
		"an earlier call ends unknown": {"unknown", pays, func(t *testing.T, journal *sqljournal.Journal) {
			require.NoError(t, journal.End(t.Context(), intent("M-1"), unknown))
		}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				_, journal := openNew(t, at)
				record(t, journal, "M-1", tc.record)
				record(t, journal, "M-2", "executed")
				f := finding(t, journal, statement("M-2 S-1-M-2 12.50 EUR done", tc.line), "M-1")
				tc.move(t, journal)
				require.ErrorIs(t, journal.Apply(t.Context(), f, "Ada", ""), sqljournal.ErrMoved)
				assert.Equal(t, tc.after, standing(t, journal, "M-1"))
			})
		})
	}
}

// A person says what was executed while Apply does, and a call begins while it records a stray.
func TestSomebodyIsFasterThanApply(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, direct := openNew(t, at)
		record(t, direct, "M-1", "unknown")
		record(t, direct, "M-2", "executed")
		f := finding(t, direct, statement("M-2 S-1-M-2 12.50 EUR done", "M-1 T-2 12.50 EUR done"), "M-1")
		journal, outage := during(t, at, nil)
		require.NoError(t, journal.Verify(t.Context()))
		before := outage.asked.Load()
		resolve := func() { assert.NoError(t, direct.Resolve(t.Context(), f.Entry.Intent, paid("T-1"))) }
		if at.Dialect == sqljournal.SQLite {
			outage.writing = func() {
				if outage.asked.Load() == before+1 {
					resolve()
				}
			}
		} else {
			outage.reading = func() {
				outage.reading = nil
				resolve()
			}
		}
		require.ErrorIs(t, journal.Apply(t.Context(), f, "Ada", ""), sqljournal.ErrMoved)
		assert.Equal(t, "executed T-1", standing(t, direct, "M-1"))
		if at.Dialect == sqljournal.SQLite {
			return // it lets nobody else write meanwhile
		}
		f = finding(t, direct, statement("M-2 S-1-M-2 12.50 EUR done", "M-3 T-3 12.50 EUR done"), "M-3")
		before = outage.asked.Load() // after it was looked up
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

// What is pending there, or of another amount, is never free again, and is denied only when no call can be
// executed anymore.
func TestWhatAStatementMakesUnknownIsNeverFreeAgain(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		record(t, j, "M-1", "free")
		record(t, j, "M-2", "free")
		record(t, j, "M-3", "closed")
		s := statement("M-1 T-1 12.50 EUR wait", "M-2 T-2 99 EUR done", "M-3 T-3 12.50 EUR wait", "M-4 T-4 1 EUR wait")
		assert.Equal(t, 4, applyAll(t, j, reconciled(t, j, s)))
		resolve := func(reference string, found journal.Resolution) error {
			t.Helper()
			return j.Resolve(t.Context(), lookup(t, j, reference).Intent, found)
		}
		for _, reference := range []string{"M-1", "M-2", "M-3", "M-4"} {
			assert.Equal(t, "unknown", word(j.Begin(t.Context(), intent(reference))))
			require.ErrorContains(t, resolve(reference, rejected()), "the service may still execute it until")
		}
		pass(t, db, at, 12)
		for _, reference := range []string{"M-1", "M-2", "M-3", "M-4"} {
			require.ErrorContains(t, resolve(reference, notSent()), "record it as refused, or as executed")
			require.NoError(t, resolve(reference, rejected()))
			assert.Equal(t, "closed", standing(t, j, reference))
		}
	})
}

// The same of what was free or reserved before a hold: what a statement lists then is no other's word that it is free.
func TestAStatementOfWhatWasFreeBeforeAHold(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		record(t, j, "M-1", "free")
		record(t, j, "M-2", "reserved")
		record(t, j, "M-3", "free")
		require.NoError(t, j.Hold(t.Context(), "Ada", "a restore", 0))
		s := statement("M-1 T-1 12.50 EUR wait", "M-2 T-2 99 EUR done", "M-3 T-3 12.50 EUR failed")
		all := reconciled(t, j, s)
		assert.Equal(t, map[string]string{"M-1": "pending", "M-2": "differs", "M-3": "rejected"}, kinds(t, all))
		assert.Equal(t, 2, applyAll(t, j, all))
		assert.Equal(t, 2, applyAll(t, j, all), "again it changes nothing")
		assert.Len(t, events(t, j, "M-1"), 3)
		pass(t, db, at, 12)
		for _, reference := range []string{"M-1", "M-2"} {
			err := j.Resolve(t.Context(), lookup(t, j, reference).Intent, notSent())
			require.ErrorContains(t, err, "record it as refused, or as executed", reference)
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
		"an operation that is mistyped": {func(s *sqljournal.Statement) {
			s.Op = "createTransfer"
		}, "no client records this Op, and nothing is on record under it"},
		"no operation": {func(s *sqljournal.Statement) { s.Op = "" }, "Op is empty"},
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
}

// A line that cannot be read is listed, with its number and why, proves nothing, and hides no other.
func TestALineThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	record(t, journal, "M-1", "unknown")
	for want, edit := range map[string]func(*sqljournal.StatementLine){
		"the quote is not closed": func(l *sqljournal.StatementLine) {
			l.Unread = "the quote is not closed"
		},
		"nobody said what its status means": func(l *sqljournal.StatementLine) { l.Status = "on hold" },
		"the order number contains a control character": func(l *sqljournal.StatementLine) {
			l.Reference = "\u202eM-1"
		},
		"the order number is longer than 200 bytes": func(l *sqljournal.StatementLine) {
			l.Reference = strings.Repeat("1", 201)
		},
		"the service ID begins or ends with white space": func(l *sqljournal.StatementLine) { l.ServiceID = "T-1\n" },
		"the currency must be a currency code":           func(l *sqljournal.StatementLine) { l.Currency = "€" },
		"the amount has more than 40 digits": func(l *sqljournal.StatementLine) {
			l.Amount = decimal.New(1, 1_000_000_000) // which would fill the memory
		},
		"the time is missing": func(l *sqljournal.StatementLine) {
			l.Time = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
		},
		"the time is after that of the export": func(l *sqljournal.StatementLine) { // as of a placeholder, 9999-12-31
			l.Time = time.Now().Add(11 * time.Minute)
		},
	} {
		s := statement("M-1 T-1 12.50 EUR done")
		good := s.Lines
		s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
			line := lineAt(time.Now().Add(-2*time.Hour), 3, "M-9 T-9 12.50 EUR done")
			edit(&line)
			for l, err := range good {
				_ = yield(line, nil) && yield(l, err)
			}
		}
		findings := reconciled(t, journal, s)
		require.Len(t, findings, 2)
		assert.Equal(t, sqljournal.FindingUnread, findings[0].Kind)
		assert.Equal(t, 3, findings[0].Line.Line)
		assert.Contains(t, findings[0].Note, "line 3: "+want)
		assert.False(t, findings[0].Applies())
		assert.Equal(t, "M-1", findings[1].Reference)
		assert.True(t, findings[1].Applies())
	}
}

// A statement of which no line is in its period is of another year, zone or column: it proves nothing.
func TestAStatementOfAnotherPeriod(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	record(t, journal, "M-1", "unknown")
	s := statement("M-1 T-1 12.50 EUR done")
	s.From = s.Until.Add(-time.Minute)
	assert.Contains(t, warnings(t, journal, s)[0], "the statement has no line in its period, from "+stamp(s.From)+
		" until "+stamp(s.Until)+", and proves nothing")
	findings := reconciled(t, journal, s)
	require.Len(t, findings, 2)
	assert.Equal(t, "line 2: no line of the statement is in its period", findings[0].Note)
	assert.Equal(t, "not listed", findings[1].Why)
	assert.Zero(t, applyAll(t, journal, findings))
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
			"M-1 T-1 12.50 EUR done", "M-2 T-2 12.50 EUR done", "N-3 T-3 12.50 EUR done", "N-4 T-4 12.50 EUR failed",
			"N-4 T-5 12.50 EUR failed",
		}
		assert.Len(t, reconciled(t, journal, statement(lines...)), 4, "half of them are")
		s := statement(append(lines, "N-5 T-5 12.50 EUR wait")...)
		assert.Same(t, sqljournal.ErrStrays, refusal(t, journal, s))
		s.AllowStrays = true
		assert.Len(t, reconciled(t, journal, s), 5)
	})
}

// warnings are what Reconcile says of the statement as a whole, before all findings.
func warnings(t testing.TB, journal *sqljournal.Journal, s sqljournal.Statement) (notes []string) {
	t.Helper()
	for f, err := range journal.Reconcile(t.Context(), s) {
		require.NoError(t, err)
		if f.Why != "statement" {
			break
		}
		assert.Equal(t, sqljournal.Finding{Kind: sqljournal.FindingAsk, Why: "statement", Op: transfer, Note: f.Note},
			f)
		require.ErrorIs(t, journal.Apply(t.Context(), f, "Ada", ""), sqljournal.ErrUncertain)
		notes = append(notes, f.Note)
	}
	return notes
}

// A statement whose lines begin late or end early, as by a limit of rows, a delay or another time zone.
func TestAStatementThatMayLackLines(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	record(t, journal, "M-1", "unknown")
	for name, tc := range map[string]struct {
		hours   int // of the statement
		minutes []int
		want    string // "": no warning
	}{
		"a full one":            {2, []int{1, 50, 110}, ""},
		"an empty one":          {2, nil, "the statement has no line in its period"},
		"one that begins late":  {2, []int{115, 13, 50}, "the lines are from "},
		"yesterday's, of today": {2, []int{50, 1, 40}, "the lines are from "},
		"two hours early":       {48, []int{1, 48*60 - 31}, "the lines are from "},
		"not so early":          {48, []int{1, 48*60 - 29}, ""},
	} {
		s := statement()
		s.From = s.Until.Add(time.Duration(-tc.hours) * time.Hour)
		s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
			for _, minute := range tc.minutes {
				at := s.From.Add(time.Duration(minute) * time.Minute)
				if !yield(lineAt(at, 2, "M-1 T-1 12.50 EUR done"), nil) {
					return
				}
			}
		}
		notes := strings.Join(warnings(t, journal, s), "\n")
		assert.True(t, strings.HasPrefix(notes, tc.want) && (tc.want == "") == (notes == ""), "%s: %s", name, notes)
		assert.NotContains(t, notes, "\n", name)
	}
}

// A service ID that lines of several references have is a warning: it may be the number of a batch.
func TestServiceIDsOfSeveralReferencesAreAWarning(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	s := statement("M-1 B-1 1 EUR done", "M-2 B-1 1 EUR done", "M-3 B-1 1 EUR done", "M-4 B-2 1 EUR done",
		"M-5 B-2 1 EUR done", "M-6 B-3 1 EUR done", "M-6 B-3 1 EUR done", "M-7 B-4 1 EUR done", "M-8 B-4 1 EUR wait",
		"M-8 - 1 EUR done", "M-9 - 1 EUR done")
	s.AllowStrays = true
	notes := warnings(t, journal, s)
	require.Len(t, notes, 2) // one is about their time
	assert.Contains(t, notes[1], `of more than one order: 2, such as "B-1": check`)
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
				"M-1": "executed T-1", "M-2": "executed T-2", "M-3": "unknown", "M-4": "executed T-4",
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
