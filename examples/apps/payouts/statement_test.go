package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	header = "order,id,amount,currency,status,time\n"
	tail   = "EUR,done,2026-01-31T07:00:00Z\n" // of a line
)

// read returns the lines of a file, one string for each, and the error that ends it.
func (c *comparison) read(text string) (lines []string, err error) {
	for l, err := range c.lines(strings.NewReader(text)) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, fmt.Sprintf("%d %s %s %s %s %s %s",
			l.Line, l.Reference, l.ServiceID, l.Amount, l.Currency, l.Status, l.Time.UTC().Format(time.RFC3339)))
	}
	return lines, nil
}

// Exports of spreadsheets and of services, and what is read.
func TestAStatementOfAnyForm(t *testing.T) {
	t.Parallel()
	const want = "2 A-1 T-1 1234.5 EUR done 2026-01-31T07:00:00Z"
	for name, tc := range map[string]struct{ columns, text, want string }{
		"plain":         {"", header + "A-1,T-1,1234.50," + tail, want},
		"a BOM":         {"", "\ufeff" + header + "A-1,T-1,1234.50," + tail, want},
		"a BOM, quoted": {"", "\ufeff\"order\",id,amount,currency,status,time\nA-1,T-1,1234.50," + tail, want},
		"CRLF": {
			"", "order,id,amount,currency,status,time\r\nA-1,T-1,1234.50,EUR,done,2026-01-31T07:00:00Z\r\n", want,
		},
		"semicolons": {
			"", "order;id;amount;currency;status;time\nA-1;T-1;1234,50;EUR;done;2026-01-31T07:00:00Z\n", want,
		},
		"tabs": {
			"", strings.ReplaceAll(header, ",", "\t") + "A-1\tT-1\t1234,5\tEUR\tdone\t2026-01-31T07:00:00Z\n", want,
		},
		"quotes": {"", header + `"A-1","T-1","1234,50","EUR","done","2026-01-31T07:00:00Z"` + "\n", want},
		"another order": {
			"", "time,status,currency,amount,id,order\n2026-01-31T07:00:00Z,done,EUR,1234.50,T-1,A-1\n", want,
		},
		"more columns": {
			"",
			"payee,order,id,amount,currency,status,time,payee\nX,A-1,T-1,1234.50,EUR,done,2026-01-31T07:00:00Z,X\n",
			want,
		},
		"other names": {
			"order=No.,amount=\"Sum, net\"", "No.,id,\"Sum, net\",currency,status,time\nA-1,T-1,1234.50," + tail, "",
		},
		"names, quoted": {
			`order=No.,"amount=Sum, net"`, "No.,id,\"Sum, net\",currency,status,time\nA-1,T-1,1234.50," + tail, want,
		},
		"a zone":          {"", header + "A-1,T-1,1234.50,EUR,done,2026-01-31T08:00:00+01:00\n", want},
		"that of -from":   {"", header + "A-1,T-1,1234.50,EUR,done,2026-01-31 09:00:00\n", want},
		"without seconds": {"", header + "A-1,T-1,1234.50,EUR,done,2026-01-31 09:00\n", want},
		"no id": {
			"", "order,amount,status,time\nA-1,1234.50,done,2026-01-31T07:00:00Z\n",
			"2 A-1  1234.5  done 2026-01-31T07:00:00Z",
		},
		"four decimals": {"", header + "A-1,T-1,1234.5000," + tail, want},
		"an empty line": {"", header + "\nA-1,T-1,1234.50," + tail, "3" + want[1:]},
	} {
		r := &comparison{Columns: tc.columns, From: time.Date(2026, 1, 31, 0, 0, 0, 0, time.FixedZone("", 2*60*60))}
		lines, err := r.read(tc.text)
		if tc.want == "" {
			require.ErrorContains(t, err, "-columns: ", name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, []string{tc.want}, lines, name)
	}
}

// What cannot be read stops everything, and says where it is.
func TestAStatementThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const good = "A-1,T-1,12.50," + tail
	line := func(text string) string { return header + good + text }
	for name, tc := range map[string]struct{ columns, text, want string }{
		"nothing": {"", "", "the file is empty"},
		"no column": {
			"", "order,id,currency,status,time\n", `line 1 must have one column "amount", and has ["order" "id"`,
		},
		"a column twice":      {"", "order,amount,amount,status,time\n", `line 1 must have one column "amount"`},
		"no id, though named": {"id=TX", header, `line 1 must have one column "TX"`},
		"order is called id":  {"order=id", "amount,status,time\n", `line 1 must have one column "id"`},
		"an unknown column": {
			"sum=amount", header, "-columns: the columns are order, amount, status, time, id, currency",
		},
		"columns twice": {"id=a,id=b", header, "-columns: expected names that occur once"},
		"UTF-16": {
			"", "\xff\xfeo\x00r\x00d\x00e\x00r\x00", "check -columns, and that the file is CSV in UTF-8",
		},
		"cut in a line": {"", line("A-2,T-2,12"), "record on line 3: wrong number of fields"},
		"cut in quotes": {
			"", line(`A-2,T-2,"12.50`), `parse error on line 3, column 15: extraneous or missing " in quoted-field`,
		},
		"a quote": {
			"", line(`A-2,T"2,12.50,EUR,done,2026-01-31T07:00:00Z`),
			`parse error on line 3, column 6: bare " in non-quoted-field`,
		},
		"thousands": {
			"", line(`A-2,T-2,"1,234.50",EUR,done,2026-01-31T07:00:00Z`),
			`line 3, column "amount": the amount must be as in 1234.50 or 1234,50`,
		},
		"in two ways":        {"", line(`A-2,T-2,"1,234",EUR,done,2026-01-31T07:00:00Z`), `line 3, column "amount": `},
		"a minus":            {"", line("A-2,T-2,-12.50,EUR,done,2026-01-31T07:00:00Z"), `line 3, column "amount": `},
		"no amount":          {"", line("A-2,T-2,,EUR,done,2026-01-31T07:00:00Z"), `line 3, column "amount": `},
		"no time":            {"", line("A-2,T-2,12.50,EUR,done,"), `line 3, column "time": the time must be as in`},
		"a day of which?":    {"", line("A-2,T-2,12.50,EUR,done,01/02/2026 07:00"), `line 3, column "time": `},
		"no day that exists": {"", line("A-2,T-2,12.50,EUR,done,2026-02-30 07:00:00"), `line 3, column "time": `},
		"below two lines": {
			"", header + `A-1,T-1,12.50,EUR,done,"2026-01-31T07:00:00Z"` + "\n\n\nA-2,T-2,x,EUR,done,x\n",
			`line 5, column "amount": `,
		},
	} {
		_, err := (&comparison{Columns: tc.columns}).read(tc.text)
		require.ErrorContains(t, err, tc.want, name)
		assert.NotContains(t, err.Error(), "1,234", name)
	}
}
