package statement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// read returns what a file says, a line each.
func read(f File, text string) (lines []string) {
	if f.Statuses == nil {
		f.Statuses = map[string]sqljournal.StatementStatus{"done": sqljournal.StatementExecuted}
	}
	for l, err := range f.Statement(strings.NewReader(text)).Lines {
		switch {
		case err != nil:
			lines = append(lines, err.Error())
		case l.Unread != "":
			lines = append(lines, fmt.Sprintf("%d: %s", l.Line, l.Unread))
		default:
			words := []string{fmt.Sprint(l.Line), l.Reference, l.ServiceID, l.Amount.String(), l.Currency, l.Status,
				l.Time.UTC().Format(time.RFC3339)}
			lines = append(lines, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
		}
	}
	return lines
}

func utf16Of(text string, first, second int) string {
	var b strings.Builder
	for _, r := range text { // which are all of the first plane
		bytes := [2]byte{byte(r), byte(r >> 8)}
		b.WriteByte(bytes[first])
		b.WriteByte(bytes[second])
	}
	return b.String()
}

// What banks, providers and spreadsheets write. What is read of each file is literal: no line is left out.
func TestOrdinaryFiles(t *testing.T) {
	t.Parallel()
	const (
		head  = "order,amount,status,time\n"
		plain = head + "A-1,12.50,done,2026-11-28\n"
		head2 = "order;amount;status;time\n"
		day   = "2026-11-28T00:00:00Z"
		read1 = "2 A-1 12.5 done " + day

		noAmount = `: column "amount": the amount must be as in 1234.50 or 1.234,50`
		workbook = "cardwire: invalid parameters: the file is a workbook, as in xlsx, and no CSV: " +
			"open it, and save the sheet as CSV UTF-8"
	)
	german := map[string]string{"order": "Auftrag", "amount": "Betrag", "status": "Status", "time": "Datum",
		"currency": "Währung"}
	const germanHead = "Auftrag;Betrag;Währung;Status;Datum\n"
	options := map[string]File{
		"a preamble":             {Columns: german},
		"a preamble of commas":   {Columns: german},
		"with a decimal comma":   {Decimal: ","},
		"with a decimal point":   {Decimal: "."},
		"with the day first":     {First: "day"},
		"with the month first":   {First: "month"},
		"times of Berlin":        {Zone: berlin(t)},
		"Windows-1252":           {Columns: german},
		"a column twice, chosen": {Columns: map[string]string{"amount": "amount (2)"}},
		"more than it may have":  {Most: 1},
	}
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"the plainest":    {plain, []string{read1}},
		"no last end":     {head + "A-1,12.50,done,2026-11-28", []string{read1}},
		"CRLF":            {strings.ReplaceAll(plain, "\n", "\r\n"), []string{read1}},
		"CR alone":        {strings.ReplaceAll(plain, "\n", "\r"), []string{read1}},
		"a BOM":           {"\ufeff" + plain, []string{read1}},
		"UTF-16 LE":       {utf16Of("\ufeff"+plain, 0, 1), []string{read1}},
		"UTF-16 BE":       {utf16Of("\ufeff"+plain, 1, 0), []string{read1}},
		"UTF-16, no BOM":  {utf16Of(plain, 0, 1), []string{read1}},
		"semicolons":      {head2 + "A-1;12,50;done;2026-11-28\n", []string{read1}},
		"tabs":            {strings.ReplaceAll(plain, ",", "\t"), []string{read1}},
		"bars":            {strings.ReplaceAll(plain, ",", "|"), []string{read1}},
		"sep=":            {"sep=;\n" + head2 + "A-1;12,50;done;2026-11-28\n", []string{"3 A-1 12.5 done " + day}},
		"sep= of its own": {"sep=^\n" + strings.ReplaceAll(plain, ",", "^"), []string{"3 A-1 12.5 done " + day}},
		"a preamble": {"Kontoauszug;von;01.11.2026;bis;30.11.2026\nKonto;DE00 1234\n\n" + germanHead +
			"A-1;12,50;EUR;done;28.11.2026\n", []string{"5 A-1 12.5 EUR done " + day}},
		"a preamble of commas": {"Dear customer, this, and that, is yours, with regards\n" + germanHead +
			"A-1;12,50;EUR;done;28.11.2026\n", []string{"3 A-1 12.5 EUR done " + day}},
		"a total": {head + "A-1,12.50,done,2026-11-28\n\nTotal,12.50,,\n",
			[]string{read1, `4: column "time": ` + errTime.Error()}},
		"a total of its own": {head + "A-1,12.50,done,2026-11-28\nTotal: 12.50\n",
			[]string{read1, "3: it has 1 cells, and the header 4"}},
		"empty rows": {head + "\n,,,\n , \nA-1,12.50,done,2026-11-28\n\n", []string{"5 A-1 12.5 done " + day}},
		"a separator at ends": {"order,amount,status,time,\nA-1,12.50,done,2026-11-28\n" +
			"A-2,12.50,done,2026-11-28,\nA-3,12.50,done,2026-11-28,,\n",
			[]string{read1, "3 A-2 12.5 done " + day, "4 A-3 12.5 done " + day}},
		"leaves the account": {head + "A-1,-1234.50,done,2026-11-28\nA-2,(12.50),done,2026-11-28\n" +
			"A-3,12.50-,done,2026-11-28\nA-4,−12.50,done,2026-11-28\nA-5,+12.50,done,2026-11-28\n",
			[]string{"2 A-1 1234.5 done " + day, "3 A-2 12.5 done " + day, "4 A-3 12.5 done " + day,
				"5 A-4 12.5 done " + day, "6 A-5 12.5 done " + day}},
		"thousands": {head2 + "A-1;1.234,50;done;2026-11-28\nA-2;1 234,50;done;2026-11-28\n" +
			"A-3;1\u00a0234,50;done;2026-11-28\nA-4;1,234.50;done;2026-11-28\n" +
			"A-5;1'234.50;done;2026-11-28\nA-6;1.234.567;done;2026-11-28\n",
			[]string{"2 A-1 1234.5 done " + day, "3 A-2 1234.5 done " + day, "4 A-3 1234.5 done " + day,
				"5 A-4 1234.5 done " + day, "6 A-5 1234.5 done " + day, "7 A-6 1234567 done " + day}},
		"thousands in quotes": {head + `A-1,"1 234,50",done,2026-11-28` + "\n", []string{"2 A-1 1234.5 done " + day}},
		"no thousands": {head2 + "A-1;0,125;done;2026-11-28\nA-2;1234,125;done;2026-11-28\n",
			[]string{"2 A-1 0.125 done " + day, "3 A-2 1234.125 done " + day}},
		"an amount of two readings": {head2 + "A-1;1,234;done;2026-11-28\nA-2;12,50;done;2026-11-28\n",
			[]string{`2: column "amount": ` + errDecimal.Error(), "3 A-2 12.5 done " + day}},
		"with a decimal comma": {head2 +
			"A-1;1,234;done;2026-11-28\nA-2;1.234;done;2026-11-28\nA-3;12.50;done;2026-11-28\n",
			[]string{"2 A-1 1.234 done " + day, "3 A-2 1234 done " + day,
				"4" + noAmount}},
		"with a decimal point": {head2 + "A-1;1,234;done;2026-11-28\n", []string{"2 A-1 1234 done " + day}},
		"no amounts": {head + "A-1,12.50 EUR,done,2026-11-28\nA-2,1.2.3,done,2026-11-28\n" +
			"A-3,--1,done,2026-11-28\nA-4,,done,2026-11-28\nA-5,=1+1,done,2026-11-28\n",
			[]string{"2" + noAmount, "3" + noAmount, "4" + noAmount, "5" + noAmount, "6" + noAmount}},
		"bare quotes": {head + `A-1 "x",12.50,done,2026-11-28` + "\n", []string{`2 A-1 "x" 12.5 done ` + day}},
		"quotes in quotes": {head + `"A-1 ""x""","12.50", "done" ,"2026-11-28"` + "\n",
			[]string{`2 A-1 "x" 12.5 done ` + day}},
		"a stray quote": {head + `"A-1 "x" y",12.50,done,2026-11-28` + "\n",
			[]string{`2 A-1 "x" y 12.5 done ` + day}},
		"a quote that is not closed": {head + "\"A-0,12.50,done,2026-11-28\nA-1,12.50,done,2026-11-28\n",
			[]string{"2: a quote is not closed", "3 A-1 12.5 done " + day}},
		"a break in a cell": {"order,note,amount,status,time\nA-1,\"two\nlines\",12.50,done,2026-11-28\n" +
			"A-2,\"x\r\ny\",12.50,done,2026-11-28\n", []string{"2 A-1 12.5 done " + day, "4 A-2 12.5 done " + day}},
		"padded IDs": {"order,id,amount,status,time\n  A-1  , T-1\u00a0,12.50, done ,2026-11-28\n",
			[]string{"2 A-1 T-1 12.5 done " + day}},
		"numbers as formulas": {head + `="000123",12.50,done,2026-11-28` + "\n" +
			`"=""000124""",12.50,done,2026-11-28` + "\n'=5,12.50,done,2026-11-28\n",
			[]string{"2 000123 12.5 done " + day, "3 000124 12.5 done " + day, "4 =5 12.5 done " + day}},
		"days": {head + "A-1,12.50,done,2026/11/28\nA-2,12.50,done,28.11.2026\n" +
			"A-3,12.50,done,28/11/2026\nA-4,12.50,done,11/28/2026\nA-5,12.50,done,28-Nov-2026\n" +
			"A-6,12.50,done,28 Nov 2026\n",
			[]string{read1, "3 A-2 12.5 done " + day, "4 A-3 12.5 done " + day, "5 A-4 12.5 done " + day,
				"6 A-5 12.5 done " + day, "7 A-6 12.5 done " + day}},
		"a day of two readings": {head + "A-1,12.50,done,03/04/2026\nA-2,12.50,done,04/04/2026\n",
			[]string{`2: column "time": ` + errDates.Error(), "3 A-2 12.5 done 2026-04-04T00:00:00Z"}},
		"with the day first": {head + "A-1,12.50,done,03/04/2026\nA-2,12.50,done,11/28/2026\n",
			[]string{"2 A-1 12.5 done 2026-04-03T00:00:00Z", `3: column "time": ` + errTime.Error()}},
		"with the month first": {head + "A-1,12.50,done,03/04/2026\nA-2,12.50,done,01.02.2026\n",
			[]string{"2 A-1 12.5 done 2026-03-04T00:00:00Z", "3 A-2 12.5 done 2026-02-01T00:00:00Z"}},
		"times": {head2 + "A-1;1;done;2026-11-28 15:04\nA-2;1;done;2026-11-28T15:04:05.123+0530\n" +
			"A-3;1;done;28.11.2026, 15:04:05\nA-4;1;done;11/28/2026 3:04:05 PM\n" +
			"A-5;1;done;2026-11-28 15:04:05 UTC\nA-6;1;done;2026-11-28 25:00\n", []string{
			"2 A-1 1 done 2026-11-28T15:04:00Z", "3 A-2 1 done 2026-11-28T09:34:05Z",
			"4 A-3 1 done 2026-11-28T15:04:05Z", "5 A-4 1 done 2026-11-28T15:04:05Z",
			"6 A-5 1 done 2026-11-28T15:04:05Z", `7: column "time": ` + errTime.Error()}},
		"times of Berlin": {head + "A-1,1,done,2026-10-24 15:00\nA-2,1,done,2026-10-26 15:00\n" +
			"A-3,1,done,2026-10-25 02:30\nA-4,1,done,2026-10-25 02:30+01:00\nA-5,1,done,2026-03-29 02:30\n",
			[]string{"2 A-1 1 done 2026-10-24T13:00:00Z", "3 A-2 1 done 2026-10-26T14:00:00Z",
				`4: column "time": clocks of the zone show this time twice: it needs its offset`,
				"5 A-4 1 done 2026-10-25T01:30:00Z",
				`6: column "time": clocks of the zone skip this time: check the zone, or give the offset`}},
		"a Windows-1252 byte that nobody needs": {"order,name,amount,status,time\n" +
			"A-1,M\xfcller,12.50,done,2026-11-28\n", []string{read1}},
		"Windows-1252": {"Auftrag;Betrag;W\xe4hrung;Status;Datum\nA-1;1\xa0234,50;EUR;ausgef\xfchrt;28.11.2026\n",
			[]string{"2 A-1 1234.5 EUR ausgeführt " + day}},
		"a byte that is lost": {head + "A-\x81,12.50,done,2026-11-28\nA-1,12.50,d\x00ne,2026-11-28\n",
			[]string{`2: column "order" has a character that is lost: export the file in UTF-8`,
				`3: column "status" has a character that is lost: export the file in UTF-8`}},
		"cells that are missed": {head + "A-1,12,50,done,2026-11-28\nA-1,12\n",
			[]string{"2: it has 5 cells, and the header 4", "3: it has 2 cells, and the header 4"}},
		"a column twice": {"order,amount,amount,status,time\nA-1,1,2,done,2026-11-28\n",
			[]string{`cardwire: invalid parameters: line 1 must name one column "amount", and names none of its 5 ` +
				"so: check the names of the columns, and that the file is CSV"}},
		"a column twice, chosen": {"order,amount,amount,status,time\nA-1,1,2,done,2026-11-28\n",
			[]string{"2 A-1 2 done " + day}},
		"an amount of a million digits": {head + "A-1," + strings.Repeat("9", 1_000_000) + ",done,2026-11-28\nA-2," +
			strings.Repeat("9", 20_000) + ",done,2026-11-28\nA-3,1,done,2026-11-28\n",
			[]string{"2: it has more than 65536 bytes", `3: column "amount" has more than 200 bytes`,
				"4 A-3 1 done " + day}},
		"more than it may have": {head + "A-1,1,done,2026-11-28\nA-2,1,done,2026-11-28\n",
			[]string{"2 A-1 1 done " + day, "cardwire: invalid parameters: it has more than 1 lines: " +
				"payouts -reconcile reads as many as memory allows"}},
		"xlsx": {"PK\x03\x04\x14\x00", []string{workbook}},
		"xls":  {"\xd0\xcf\x11\xe0\xa1", []string{workbook}},
		"no header": {"A-1,12.50,CANARY\n", []string{`cardwire: invalid parameters: line 1 must name ` +
			`one column "order", and names none of its 3 so: ` + "check the names of the columns, and that the file is CSV"}},
		"empty":                {"", []string{"cardwire: invalid parameters: the file is empty"}},
		"nothing but a header": {head, nil},
	} {
		got := read(options[name], tc.file)
		assert.Equal(t, tc.want, got, name)
		text, err := Text(strings.NewReader(tc.file)) // as the page keeps it
		if strings.HasPrefix(name, "xls") {
			require.ErrorContains(t, err, "workbook")
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, got, read(options[name], text), name)
	}
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	var f File
	require.NoError(t, f.SetZone("Europe/Berlin"))
	return f.Zone
}

// What can be read in two ways is asked for, and only that; names that occur twice are no choice that is made.
func TestWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	look := func(f File, text string) (Sample, map[string]string) {
		s, err := f.Look(strings.NewReader(text))
		require.NoError(t, err)
		return s, f.Columns
	}
	const rows = "A-1,\"1,234\",done,03/04/2026\nA-2,5,failed,13/04/2026\n"
	s, columns := look(File{}, "Order,AMOUNT,status,Time\n"+rows)
	assert.Equal(t, map[string]string{"order": "Order", "amount": "AMOUNT", "status": "status", "time": "Time",
		"id": "", "currency": ""}, columns)
	assert.Equal(t, Sample{
		Header: []string{"Order", "AMOUNT", "status", "Time"},
		Rows:   [][]string{{"A-1", "1,234", "done", "03/04/2026"}, {"A-2", "5", "failed", "13/04/2026"}},
		Words:  []string{"done", "failed"}, AsksDecimal: true, AsksFirst: true,
	}, s)
	s, _ = look(File{Decimal: ",", First: "day"}, "order,amount,status,time\n"+rows)
	assert.False(t, s.AsksDecimal || s.AsksFirst)
	s, columns = look(File{}, "order,amount,Amount,status,time\nA-1,1,2,done,2026-11-28\n")
	assert.Empty(t, columns["amount"], "one of two")
	assert.Equal(t, "Amount", s.Header[2])
	s, columns = look(File{}, "order,amount,amount,status,time\nA-1,1,2,done,2026-11-28\n")
	assert.Empty(t, columns["amount"])
	assert.Equal(t, []string{"order", "amount (1)", "amount (2)", "status", "time"}, s.Header)
}
