package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

const meanings = "done=executed,rejected=not_executed,processing=pending"

// lastHour is how a statement of the last hour is read.
func lastHour() comparison {
	return comparison{From: time.Now().Add(-time.Hour), Until: time.Now(), Statuses: meanings}
}

// fileOf is a file of a text, which was exported now.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(name, time.Time{}, time.Now())) // the file system's clock is behind
	return name
}

// runs runs the program with the flags of a task.
func (s *shop) runs(do task) (out string, err error) {
	s.t.Helper()
	var b bytes.Buffer
	do.By, do.Why = "Ada", "ticket 7"
	err = do.run(s.t.Context(), s.service, &b)
	return b.String(), err
}

// lines are what the statement's file has of orders, the first of the beginning of the hour:
// "NUMBER ID AMOUNT STATUS".
func lines(all ...string) string {
	text, at := header, time.Now().Add(-59*time.Minute)
	for _, line := range all {
		f := strings.Fields(line)
		text += strings.Join([]string{f[0], f[1], f[2], "EUR", f[3], at.UTC().Format(time.RFC3339)}, ",") + "\n"
		at = time.Now()
	}
	return text
}

// ledger is the service's own record of what it executed.
func (s *shop) ledger(others ...string) string {
	for _, e := range s.fake.Ledger() {
		others = append(others, e.Reference+" "+e.ID+" "+e.Amount+" done")
	}
	return lines(others...)
}

// statesOf are the states of orders.
func (s *shop) statesOf(numbers ...string) (all []string) {
	s.t.Helper()
	for _, number := range numbers {
		all = append(all, s.state(number))
	}
	return all
}

// applies applies a statement of the last hour.
func (s *shop) applies(again bool, all ...string) (out string) {
	s.t.Helper()
	text := lines(append([]string{"first T-0 1.00 rejected"}, all...)...)
	do := task{comparison: lastHour(), file: fileOf(s.t.(*testing.T), text), apply: true}
	do.Strays, do.Anyway, do.Again = true, true, again
	out, err := s.runs(do)
	require.NoError(s.t, err)
	return out
}

// The report changes nothing; what is certain is then recorded of orders and of numbers that
// have none; and the second time nothing is left.
func TestAStatementIsReportedAndApplied(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("paid", true)
		s.lost("unpaid", false)
		s.lost("rejected", false)
		s.lost("waits", false)
		s.order("closed")
		require.Equal(t, 200, s.cancelAs("closed").StatusCode)
		s.order("queued")
		s.lost("differs", false)
		numbers := []string{"paid", "unpaid", "rejected", "waits", "closed", "queued", "differs"}
		before := []string{unresolved, unresolved, unresolved, unresolved, canceled, queued, unresolved}
		text := s.ledger("rejected T-9 12.50 rejected", "waits T-8 12.50 processing", "closed T-7 12.50 done",
			"stray T-6 3.00 done", "differs T-5 99.00 done", "another T-4 4.50 done")
		do := task{comparison: lastHour(), file: fileOf(t, text), out: filepath.Join(t.TempDir(), "out.csv")}
		out, err := s.runs(do)
		require.NoError(t, err)
		for _, want := range []string{
			"FINDING             ORDERS  AMOUNT     RECORDED BY -apply\n",
			"paid though closed  1       12.50 EUR  1\n", "executed            1       12.50 EUR  1\n",
			"not listed          1       12.50 EUR  0\n", "rejected            1       12.50 EUR  0\n",
			"stray               2       7.50 EUR   2\n", "differs             1       99.00 EUR  0\n",
			"agrees              1       12.50 EUR  0\n",
			"paid though closed: \"closed\": in the statement: line 4, T-7, 12.50 EUR, done, 20",
		} {
			assert.Contains(t, out, want)
		}
		assert.NotContains(t, out, "warning")
		assert.Equal(t, before, s.statesOf(numbers...))
		rows, err := os.ReadFile(do.out)
		require.NoError(t, err)
		assert.Contains(t, string(rows),
			"paid though closed,closed,12.5,EUR,true,\"in the statement: line 4, T-7, 12.50 EUR, done, 20")
		assert.Contains(t, string(rows),
			"differs,differs,99,EUR,false,\"in the statement: line 6, T-5, 99.00 EUR, done, 20")
		assert.Equal(t, 9, strings.Count(string(rows), "\n"))
		assert.Contains(t, string(rows), "finding,order,amount,currency,recorded by -apply,note\n")
		_, err = s.runs(do)
		require.ErrorIs(t, err, os.ErrExist, "it may be the statement")

		do.out, do.apply = "", true
		out, err = s.runs(do)
		require.NoError(t, err)
		assert.Contains(t, out, "Recorded: 4. Changed meanwhile, or contradicted, and left: 0")
		assert.Equal(t, []string{submitted, unresolved, unresolved, unresolved, submitted, queued, unresolved},
			s.statesOf(numbers...))
		assert.Contains(t, s.get("/orders/paid"), "ticket 7; in the statement: line 8, ")
		assert.Contains(t, s.get("/payouts/closed"), `"service_id":"T-7"`)
		s.order("stray")
		assert.Equal(t, submitted, s.state("stray"), "its late message pays nothing")
		out, err = s.runs(do)
		require.NoError(t, err)
		assert.Contains(t, out, "Recorded: 0. Changed meanwhile, or contradicted, and left: 0")
		assert.Contains(t, out, "agrees ")
	})
}

// The file of the findings has nothing that a spreadsheet calculates.
func TestTheFileOfFindingsHasNoFormula(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	text := header + "=cmd|x,-T1,3.00,EUR,done," + time.Now().Add(-time.Minute).UTC().Format(time.RFC3339) + "\n"
	do := task{comparison: lastHour(), file: fileOf(t, text), out: filepath.Join(t.TempDir(), "out.csv")}
	_, err := s.runs(do)
	require.ErrorContains(t, err, "more than half of the statement is not on record")
	assert.NoFileExists(t, do.out, "half of the findings")
	do.Strays = true
	_, err = s.runs(do)
	require.NoError(t, err)
	rows, err := os.ReadFile(do.out)
	require.NoError(t, err)
	assert.Contains(t, string(rows), "\nstray,'=cmd|x,3,EUR,true,")
}

// The number is another program's transfer: this order is none of what the statement lists.
func TestAStatementAboutAnotherProgramsTransfer(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.otherRequest("A-1")
		s.order("A-2")
		s.otherRequest("A-2")
		require.Equal(t, 200, s.cancelAs("A-2").StatusCode)
		s.order("A-3")
		s.otherRequest("A-3")
		out := s.applies(true, "A-1 T-1 12.50 done", "A-2 T-2 12.50 done", "A-3 T-3 12.50 rejected")
		assert.Contains(t, out, "Recorded: 2.")
		assert.Equal(t, []string{conflicted, canceled, conflicted}, s.statesOf("A-1", "A-2", "A-3"))
		e, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		assert.Equal(t, cardwire.OutcomeExecuted, e.Outcome)
	})
}

// What a statement knew first is not sent. It may be another program's, and perhaps nobody was paid for
// the order: that is said where the amount was another one.
func TestWhatWasExecutedElsewhere(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.applies(false, "A-1 T-1 99.00 done", "A-2 T-2 12.5 done", "A-3 T-3 12.50 done", "A-4 T-4 12.50 done")
		s.exec(`UPDATE cardwire_intents SET summary = '12.50 USD' WHERE reference = 'A-3'`)
		s.exec(`UPDATE cardwire_intents SET summary = '' WHERE reference = 'A-4'`)
		for number, isOther := range map[string]bool{"A-1": true, "A-2": false, "A-3": true, "A-4": false} {
			s.order(number)
			assert.Equal(t, submitted, s.state(number))
			said := strings.Contains(s.get("/orders/"+number), "executed with another amount")
			assert.Equal(t, isOther, said, number)
			logged := `level=ERROR msg=payout order=` + number + ` what="executed with another`
			assert.Equal(t, isOther, strings.Contains(s.log.String(), logged), number)
		}
		assert.Contains(t, s.get("/orders/A-1"), "before it came: 99.00 EUR; it is not sent")
		assert.NotContains(t, s.log.String(), "99.00")
		s.refuses("A-1", "send_again", "not from a call of this program")
		s.resolves("A-1", "not_executed")
		assert.Equal(t, failed, s.state("A-1"))
		require.ErrorIs(t, s.journal.Begin(t.Context(), intentOf("A-1")), cardwire.ErrDuplicateIntent)
	})
}

// Wrong statements do no harm that nobody asked for.
func TestAWrongFileDoesNoHarm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		edit  func(*task)
		fails string
		says  string // in the report
	}{
		"truncated": {
			lines("A-1 T-1 12.50 done") + "A-2,T-2,12", func(*task) {}, "record on line 3: wrong number of fields", "",
		},
		"another account's": {
			lines("B-1 T-1 12.50 done", "B-2 T-2 12.50 done"), func(*task) {},
			"more than half of the statement is not on record", "",
		},
		"yesterday's": {
			lines("A-1 T-1 12.50 rejected"), func(*task) {}, errDoubted.Error(), "warning: the lines are from 20",
		},
		"no statuses": {
			lines("A-1 T-1 12.50 done"), func(do *task) { do.Statuses = "" },
			"-status: it does not say what any status means", "",
		},
		"the file is not there": {"", func(do *task) { do.file += "x" }, "no such file", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shopInFile(t)
			s.lost("A-1", true)
			s.lost("A-2", true)
			do := task{comparison: lastHour(), file: fileOf(t, tc.text), apply: true}
			tc.edit(&do)
			out, err := s.runs(do)
			require.ErrorContains(t, err, tc.fails)
			assert.NotContains(t, out, "Recorded: ")
			assert.Contains(t, out, tc.says)
			assert.Equal(t, []string{unresolved, unresolved}, s.statesOf("A-1", "A-2"))
		})
	}
}

// Numbers that the merchant's own records have as failed or canceled are closed, whether their
// orders are here or not; what is not so here is said.
func TestNumbersAreClosed(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("waits", "refused")
		s.fails(cardwiretest.Fault{Status: 422})
		assert.Zero(t, s.work("refused"))
		s.order("paid")
		assert.Zero(t, s.work("paid"))
		s.lost("lost", true)
		s.order("-7")
		for _, number := range []string{"other", "taken"} {
			s.order(number)
			s.otherRequest(number)
		}
		s.exec(`UPDATE cardwire_intents SET state = 'refused' WHERE reference = 'other'`)
		do := task{closed: fileOf(t, "\ufeffWhy;Order No\r\nx;waits\r\n\"a,\";\"refused\"\r\n\r\n"+
			";unknown\r\n;paid\r\n;lost\r\n;'-7\r\n;other\r\n;taken\r\n")}
		do.Columns = "order=Order No"
		out, err := s.runs(do)
		require.ErrorContains(t, err,
			"\"paid\" is not closed: it is submitted\n\"lost\" is not closed: it is unresolved")
		assert.Equal(t, "Closed: 5 of 8.\nWithout an order here: 1, as [\"unknown\"]: compare how they are written.\n", out)
		assert.Equal(t, []string{canceled, failed, submitted, unresolved, canceled},
			s.statesOf("waits", "refused", "paid", "lost", "-7"), "our export has '-7")
		assert.Equal(t, failed, s.order("unknown").State, "its late message pays nothing")
		assert.Zero(t, s.work("unknown"))
		assert.Len(t, s.fake.Ledger(), 2)
		assert.ErrorContains(t, err, "\"taken\" is not closed")
		e, err := s.journal.Lookup(t.Context(), operation, "other")
		require.NoError(t, err)
		assert.True(t, e.Closed, "another request's too")
		events, err := s.journal.History(t.Context(), operation, "unknown")
		require.NoError(t, err)
		assert.Equal(t, []string{"Ada", "ticket 7"}, []string{events[0].By, events[0].Note})

		_, err = s.runs(task{closed: fileOf(t, "order\n A-9\nunknown")})
		require.ErrorContains(t, err, `" A-9" is not closed: `)
		s.exec(`DELETE FROM cardwire_intents WHERE reference = 'unknown'`)
		assert.Equal(t, failed, s.state("unknown"), "the order knows it too")

		s.exec(`ALTER TABLE cardwire_intents RENAME TO gone`)
		_, err = s.runs(task{closed: fileOf(t, "order\nnew\n\"cut")})
		require.ErrorContains(t, err, "parse error on line 3")
		out, err = s.runs(task{closed: fileOf(t, "order\nnew")})
		require.ErrorIs(t, err, sqljournal.ErrSchema)
		assert.Empty(t, out, "it goes no further")
		s.exec(`ALTER TABLE gone RENAME TO cardwire_intents`)
	})
}

// What is not understood of a file of numbers is an error, before anything is closed.
func TestAFileOfNumbersThatIsNotUnderstoodClosesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, columns, says string }{
		"no header":       {"A-1\nA-2\n", "", `line 1 must have one column "order", and has ["A-1"]`},
		"another header":  {"Order No;Why\nA-1;x\n", "", `must have one column "order", and has ["Order No;Why"]`},
		"two of the name": {"order,order\nA-1,A-2\n", "", `must have one column "order"`},
		"nothing":         {"", "", "the file is empty"},
		"a row is short":  {"order;why\nA-1;x\nA-2\n", "", "record on line 3: wrong number of fields"},
		"no such column":  {"order\nA-1\n", "number=order", "-columns: the columns are order, amount"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shopInFile(t)
			s.order("A-1")
			out, err := s.runs(task{closed: fileOf(t, tc.text), comparison: comparison{Columns: tc.columns}})
			require.ErrorContains(t, err, "nothing is closed: ")
			require.ErrorContains(t, err, tc.says)
			assert.Empty(t, out)
			assert.Equal(t, queued, s.state("A-1"))
		})
	}
}

// The flags, as a person gives them: first the report, then -apply, then -closed, and -hold.
func TestTheCommandsOfARestore(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", settingsOf("").base)
	t.Setenv("CARDWIRE_API_KEY", settingsOf("").key)
	s := shopInFile(t)
	s.lost("A-1", true)
	s.order("A-2")
	r := lastHour()
	text := strings.ReplaceAll(s.ledger(), "order,", "No.,")
	from, until := r.From.Format(time.RFC3339), time.Now().Format(time.RFC3339)
	file := fileOf(t, text)
	command := func(ctx context.Context, args ...string) (string, error) {
		var out buffer
		err := run(ctx, &out, s.log, append(args, "-db", s.source))
		return out.String(), err
	}
	compare := []string{
		"-reconcile", file, "-from", from, "-until", until, "-columns", "order=No.", "-status", "done=executed",
	}
	out, err := command(t.Context(), compare...)
	require.NoError(t, err)
	assert.Contains(t, out, "executed  1       12.50 EUR  1\n")
	assert.Equal(t, unresolved, s.state("A-1"))
	_, err = command(t.Context(), append(compare, "-exported", from)...)
	require.ErrorContains(t, err, "set Until to a time at or before Exported")
	_, err = command(t.Context(), append(compare, "-apply")...)
	require.ErrorContains(t, err, "-by and -why: by and why are required")
	_, err = command(t.Context(), "-closed", file)
	require.ErrorContains(t, err, "-by and -why: by and why are required")
	apply := slices.Concat(compare, []string{"-apply", "-by", "Ada", "-why", "ticket 7"})
	out, err = command(t.Context(), apply...)
	require.ErrorIs(t, err, errDoubted)
	assert.Contains(t, out, "warning: the lines are from 20")
	assert.Equal(t, unresolved, s.state("A-1"))
	out, err = command(t.Context(), append(apply, "-anyway")...)
	require.NoError(t, err)
	assert.Contains(t, out, "Recorded: 1.")
	out, err = command(t.Context(), "-closed", fileOf(t, "order\nA-2"), "-by", "Ada", "-why", "ticket 7")
	require.NoError(t, err)
	assert.Equal(t, "Closed: 1 of 1.\n", out)
	assert.Equal(t, []string{submitted, canceled}, s.statesOf("A-1", "A-2"))
	assert.Contains(t, s.get("/orders/A-1"), "ticket 7; in the statement: line 2, ")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended, serving := make(chan error, 1), &buffer{}
	go func() {
		ended <- run(ctx, serving, s.log, []string{"-hold", "-listen", "127.0.0.1:0", "-db", s.source})
	}()
	require.Eventually(t, func() bool { return strings.Contains(serving.String(), "Open http") }, waitFor, tick)
	s.order("A-3")
	assert.Equal(t, held, s.state("A-3"))
	stop()
	require.NoError(t, <-ended)
	assert.Equal(t, held, s.state("A-3"))
}
