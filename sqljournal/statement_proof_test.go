package sqljournal_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// keeps are the lines of a statement that a file has.
func keeps(s sqljournal.Statement, has func(sqljournal.StatementLine) bool) sqljournal.Statement {
	all := s.Lines
	s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
		for line, err := range all {
			if has(line) && !yield(line, err) {
				return
			}
		}
	}
	return s
}

// A file has a limit of rows, is late, or is of one wallet. What it lacks stays what it is, and that it lacks
// what a response proved is said first.
func TestAStatementThatLacksLinesDeniesNothing(t *testing.T) {
	t.Parallel()
	for name, has := range map[string]func(sqljournal.StatementLine) bool{
		"a limit of rows": func(l sqljournal.StatementLine) bool { return l.Line < 14 },
		"a delay":         func(l sqljournal.StatementLine) bool { return time.Since(l.Time) > 25*time.Minute },
		"one wallet":      func(l sqljournal.StatementLine) bool { return l.Currency == "EUR" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, at place) {
				_, journal := openNew(t, at)
				var lines []sqljournal.StatementLine
				for n := range 24 { // all are executed, and a response proves half of them
					i := since(fmt.Sprintf("M-%02d", n), time.Duration(120-5*n)*time.Minute)
					result := unknown
					if n%2 == 0 {
						result = executed
						result.ServiceID = "T-" + i.Reference
					}
					if n >= 12 {
						i.Currency = "USD"
					}
					ended(t, journal, i, result)
					lines = append(lines, lineAt(i.Time, n+2,
						i.Reference+" T-"+i.Reference+" "+i.Amount.StringFixed(2)+" "+i.Currency+" done"))
				}
				s := statement()
				s.From, s.Until, s.Exported = time.Now().Add(-2*time.Hour-time.Minute), time.Now(), time.Now()
				s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
					for _, line := range lines {
						if !yield(line, nil) {
							return
						}
					}
				}
				assert.Empty(t, warnings(t, journal, s), "a complete one")
				s = keeps(s, has)
				notes := warnings(t, journal, s)
				require.NotEmpty(t, notes)
				assert.Contains(t, notes[0], "the statement is not complete: it lacks orders that a response proved "+
					"executed")
				findings := reconciled(t, journal, s)
				applyAll(t, journal, findings)
				missing := 0
				for _, f := range findings {
					n := 0
					_, err := fmt.Sscanf(f.Reference, "M-%d", &n)
					require.NoError(t, err)
					want := "executed T-" + f.Reference
					if !has(lines[n]) {
						missing++
						assert.Equal(t, "not listed", f.Why, f.Reference)
						if n%2 == 1 {
							want = "unknown"
						}
						isProved := strings.Contains(f.Note, "; a response proved that it was executed, recorded ")
						assert.Equal(t, n%2 == 0, isProved, f.Note)
						assert.Equal(t, n%2 == 1, strings.Contains(f.Note, "; unresolved since "+stamp(f.Entry.Time)),
							f.Note)
						covers := "the statement covers the whole life of its call, from "
						if f.Entry.SettledBy.After(s.Until) {
							covers = "the statement does not cover the whole life of its call, from "
						}
						assert.Contains(t, f.Note, "; "+covers+stamp(f.Entry.Time)+" to "+stamp(f.Entry.SettledBy))
					}
					assert.Equal(t, want, standing(t, journal, f.Reference))
				}
				assert.Positive(t, missing)
			})
		})
	}
}

// A spreadsheet, or the provider, changed the numbers of eight orders of one amount, currency and minute.
// Each order stays unresolved, and its line is recorded under the number that it has, unless that is the order's as
// spreadsheets change numbers; both name each other, also after the lines were recorded.
func TestNumbersThatChangedOnTheirWay(t *testing.T) {
	t.Parallel()
	changed := map[string]string{
		"202601310000000017":   "202601310000000000", // 15 digits
		"202601310000000031":   "2.02601E+17",
		"202601310000000047-A": "202601310000000047", // a cut
		"47":                   "INV-47",             // a prefix
		"2-1":                  "2-Jan",
		"007":                  "7",
		"inv-9":                "INV-9",
		"M 10":                 "M_10_",
	}
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		lines := []string{"M-1 T-1 12.50 USD done"}
		record(t, journal, "M-1", "unknown")
		record(t, journal, "M-2", "free") // has nothing to do with them, which nothing says
		for number, other := range changed {
			record(t, journal, number, "unknown")
			lines = append(lines, fmt.Sprintf("%s T-%d 12.50 EUR done", other, len(lines)+1))
		}
		s := statement(lines...)
		s.AllowStrays = true
		before := reconciled(t, journal, s)
		applyAll(t, journal, before)
		after := reconciled(t, journal, s)
		for number, other := range changed {
			other = strings.ReplaceAll(other, "_", " ")
			assert.Equal(t, "unknown", standing(t, journal, number))
			for n, findings := range [][]sqljournal.Finding{before, after} {
				kinds := kinds(t, findings)
				assert.Equal(t, "not listed", kinds[number])
				want := []string{"not known", "agrees"}[n]
				if slices.Contains([]string{"202601310000000000", "7", "INV-9", "M 10 "}, other) {
					want = "differs"
				}
				assert.Equal(t, want, kinds[other], other)
				for _, f := range findings {
					switch f.Reference {
					case number:
						assert.Contains(t, f.Note, fmt.Sprintf("(%q)", other), "the line of %s", number)
						assert.NotContains(t, f.Note, `"M-1"`)
					case other:
						assert.Contains(t, f.Note, fmt.Sprintf("%q", number), "the order of %s", other)
						assert.Contains(t, f.Note, `"M-2"`, "a free order may be the one too")
						assert.NotContains(t, f.Note, `"M-1"`, "it is of another currency")
					}
				}
			}
		}
	})
}

// A number that a spreadsheet has changed is another order's of the same amount: a person asks about both, and
// nothing is recorded of either, even where one of them is exact.
func TestAChangedNumberProvesNothing(t *testing.T) {
	t.Parallel()
	changed := map[string]string{ // what became of the first's number is the second
		"000123%02d": "123%02d", "20260131%02d000000171": "20260131%02d000000000", "abc-%02d": "ABC-%02d",
		"Z\u200b-%02d": "Z-%02d",
	}
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		record(t, journal, "M-1", "unknown")
		lines := []string{"M-1 T-M-1 12.50 EUR done"}
		wanted, before := map[string]string{"M-1": "recorded"}, map[string]string{}
		n := 10
		for _, first := range []string{"unknown", "executed early", "executed", "free", "closed"} {
			for _, second := range []string{"unknown", "free", "closed", "nothing"} {
				for format, otherFormat := range changed {
					number, other := fmt.Sprintf(format, n), fmt.Sprintf(otherFormat, n)
					record(t, journal, number, first)
					record(t, journal, other, second)
					status := map[bool]string{true: "wait", false: "done"}[second != "unknown" && n%2 == 0]
					lines = append(lines, other+" T-"+other+" 12.50 EUR "+status)
					wanted[number], wanted[other] = "not listed", "differs"
					before[number], before[other] = standing(t, journal, number), standing(t, journal, other)
				}
				n++
			}
		}
		s := statement(lines...)
		s.From, s.AllowStrays = s.From.Add(-2*time.Hour), true
		findings := reconciled(t, journal, s)
		assert.Equal(t, wanted, kinds(t, findings))
		for _, f := range findings {
			if f.Reference != "M-1" {
				assert.Regexp(t, `; as spreadsheets change numbers, it may be "[^"]+"`, f.Note)
			}
		}
		assert.Equal(t, 1, applyAll(t, journal, findings))
		for number, was := range before {
			assert.Equal(t, was, standing(t, journal, number), number)
		}
	})
}

// A number that is like another order's is its own where both are listed, or where the service's number is on record.
func TestALikeNumberIsItsOwn(t *testing.T) {
	t.Parallel()
	_, journal := openNew(t, onSQLite(t, ""))
	for reference, state := range map[string]string{"07": "unknown", "7": "unknown", "08": "unknown", "8": "executed"} {
		record(t, journal, reference, state)
	}
	s := statement("07 T-1 12.50 EUR done", "7 T-2 12.50 EUR done", "8 S-1-8 12.50 EUR done")
	assert.Equal(t, map[string]string{"07": "recorded", "7": "recorded", "8": "agrees", "08": "not listed"},
		kinds(t, reconciled(t, journal, s)))
}

// The changed number is that of another order: the line of the first is a second one of the other.
func TestAChangedNumberIsAnotherOrders(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		for reference, state := range map[string]string{
			"A-1": "unknown", "B-1": "unknown", "A-2": "unknown", "B-2": "executed", "A-3": "unknown", "B-3": "closed",
		} {
			record(t, journal, reference, state)
		}
		lines := []string{
			"B-1 T-1 12.50 EUR done", "B-1 T-2 12.50 EUR done", "B-2 S-1-B-2 12.50 EUR done", "B-2 T-3 12.50 EUR done",
			"B-3 T-4 12.50 EUR done",
		}
		s := statement(lines...)
		findings := reconciled(t, journal, s)
		assert.Equal(t, map[string]string{
			"A-1": "not listed", "A-2": "not listed", "A-3": "not listed", "B-1": "twice", "B-2": "twice",
			"B-3": "closed",
		}, kinds(t, findings))
		for _, f := range findings {
			if strings.HasPrefix(f.Reference, "A") {
				assert.Contains(t, f.Note, `; of its amount, and of no call here: line 2 ("B-1"), line 3 ("B-1"), `+
					`line 4 ("B-2"), line 5 ("B-2")`)
			} else {
				assert.Contains(t, f.Note, "in the statement: "+"line ")
			}
			if f.Why == "twice" {
				assert.Contains(t, f.Note, `; again in line `)
				assert.Contains(t, f.Note, `; unresolved or free here, of its amount: "A-1", "A-2", "A-3"`)
			}
		}
		applyAll(t, journal, findings)
		for reference, want := range map[string]string{
			"A-1": "unknown", "A-2": "unknown", "A-3": "unknown", "B-1": "executed T-1", "B-2": "executed S-1-B-2",
			"B-3": "executed T-4",
		} {
			assert.Equal(t, want, standing(t, journal, reference))
		}
	})
}

// A person was wrong who said that an order was executed. The statement does not list it, and that is
// said; it is no sign that the statement is not complete.
func TestAMistakenExecuted(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		record(t, journal, "M-1", "confirmed")
		record(t, journal, "M-2", "executed")
		s := statement("M-2 S-1-M-2 12.50 EUR done")
		f := finding(t, journal, s, "M-1")
		assert.Equal(t, "not listed", f.Why)
		assert.Contains(t, f.Note, "; recorded as executed "+stamp(f.Entry.EndedAt)+
			", without a response that proves it; ")
		assert.NotContains(t, strings.Join(warnings(t, journal, s), ""), "not complete")
		require.ErrorIs(t, journal.Apply(t.Context(), f, "Ada", ""), sqljournal.ErrUncertain)
		require.NoError(t, journal.Resolve(t.Context(), f.Entry.Intent, rejected()))
		assert.Equal(t, "closed", standing(t, journal, "M-1"))
	})
}

// The lines take at most a kilobyte each, with what is on record of them, also of a file whose rows are long, and none of which is
// on record.
func TestTheMemoryOfAStatement(t *testing.T) {
	const lines = 50_000
	_, journal := openNew(t, onSQLite(t, ""))
	s := statement()
	s.AllowStrays = true
	s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
		for n := range lines {
			row := fmt.Sprintf("2026013100%010d,AO2af56c04afe05%05d,EUR,done,%s", n, n, strings.Repeat("a name ", 100))
			if !yield(sqljournal.StatementLine{
				Line: n + 2, Reference: row[:20], ServiceID: row[21:41], Currency: row[42:45], Status: row[46:50],
				Amount: decimal.New(int64(n), -2), Time: s.From.Add(time.Duration(n) * time.Microsecond),
			}, nil) {
				return
			}
		}
	}
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, found := inUse(), 0
	for f, err := range journal.Reconcile(t.Context(), s) {
		require.NoError(t, err)
		if f.Why != "not known" {
			continue
		}
		if found++; found == 1 {
			t.Logf("%d bytes a line", (inUse()-before)/lines)
			assert.Less(t, inUse()-before, uint64(lines)*1024)
		}
	}
	assert.Equal(t, lines, found)
}
