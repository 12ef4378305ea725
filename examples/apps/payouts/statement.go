package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// comparison is of the journal with the service's statement, a CSV with a header, and every transfer
// of [From, Until) in every status. The command line and the page fill it in by the same names.
type comparison struct {
	From, Until time.Time
	Exported    time.Time // not before Until
	Columns     string    // what the file calls those of fields, as in "order=Order No,amount=Sum"
	Statuses    string    // what its statuses mean, as in "done=executed,rejected=not_executed"
	Strays      bool      // more than half of it may be unknown here
	By, Why     string    // who records what it makes certain
	Again       bool      // what was not executed is sent again, and does not fail
	Anyway      bool      // it is applied with the warnings that it has

	Report *report // nil: nothing was compared
	done   int
	left   int // it changed since the report, or contradicts what is on record: the log says which and why
}

// flags are the fields by their names. A time is read by parse.
func (c *comparison) flags(flags *flag.FlagSet, parse func(name, text string) (time.Time, error)) {
	timeOf := func(name, usage string, at *time.Time) {
		flags.Func(name, usage, func(text string) (err error) {
			*at, err = parse(name, text)
			return err
		})
	}
	timeOf("from", "the `time` at which it begins, as in 2026-01-31T15:04:05+01:00", &c.From)
	timeOf("until", "the `time` at which it ends, exclusive", &c.Until)
	timeOf("exported", "the `time` of the export, at or after -until (default: when the file was last written)",
		&c.Exported)
	flags.StringVar(&c.Columns, "columns", "", "its names for the columns order, amount, status, time, id, currency,\n"+
		"as in \"order=Order No,amount=Sum\"")
	flags.StringVar(&c.Statuses, "status", "", "what its statuses mean,\n"+
		"as in done=executed,rejected=not_executed,processing=pending")
	flags.BoolVar(&c.Strays, "strays", false, "accept that more than half of it is unknown here, as after a restore")
	flags.BoolVar(&c.Again, "again", false, "with -apply: what was not executed is sent again")
	flags.BoolVar(&c.Anyway, "anyway", false, "with -apply: apply in spite of the report's warnings")
	flags.StringVar(&c.By, "by", "", "your `name`, for the history")
	flags.StringVar(&c.Why, "why", "", "why, for the history")
}

// fields are the columns. Without id and currency these are not compared.
var fields = []string{"order", "amount", "status", "time", "id", "currency"}

// transfers are the lines of a statement.
type transfers struct {
	file   *csv.Reader
	names  map[string]string // what the file calls the fields
	header []string
	zone   *time.Location // of times that have none
}

// pairs reads "a=1,b=2". What contains a comma is quoted, as in CSV.
func pairs[V ~string](text string) (map[string]V, error) {
	all := map[string]V{}
	if strings.TrimSpace(text) == "" {
		return all, nil
	}
	list, err := csv.NewReader(strings.NewReader(text)).Read()
	for _, pair := range list {
		name, value, found := strings.Cut(pair, "=")
		if _, twice := all[name]; twice || !found {
			err = errors.New("expected names that occur once, each with = and a value")
		}
		all[name] = V(value)
	}
	return all, err
}

// lines reads the file, once.
func (c *comparison) lines(file io.Reader) iter.Seq2[sqljournal.StatementLine, error] {
	return func(yield func(sqljournal.StatementLine, error) bool) {
		t, err := c.open(file, fields)
		for err == nil {
			var line sqljournal.StatementLine
			if line, err = t.next(); err == nil && !yield(line, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(sqljournal.StatementLine{}, invalid("%v", err))
		}
	}
}

// open reads the header, which has the columns of required fields. Spreadsheets choose what
// separates the columns by language.
func (c *comparison) open(file io.Reader, required []string) (*transfers, error) {
	names, err := pairs[string](c.Columns)
	for _, field := range fields {
		names[field] = cmp.Or(names[field], field)
	}
	if err == nil && len(names) != len(fields) {
		err = errors.New("the columns are " + strings.Join(fields, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("-columns: %w, as in order=Number,amount=Sum", err)
	}
	buffered := bufio.NewReaderSize(file, 64<<10)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" { // which some programs put before UTF-8
		_, _ = buffered.Discard(3) // they are there
	}
	t := &transfers{file: csv.NewReader(buffered), names: names, zone: c.From.Location()}
	start, _ := buffered.Peek(buffered.Size()) // where that fails, so does Read
	for _, separator := range ";\t" {
		first := csv.NewReader(bytes.NewReader(start))
		first.Comma = separator
		if header, _ := first.Read(); slices.Contains(header, names["order"]) {
			t.file.Comma = separator
		}
	}
	t.header, err = t.file.Read()
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("the file is empty")
	case err == nil:
		err = t.check(required)
	}
	return t, err
}

// check reports a column that the header lacks, or has twice.
func (t *transfers) check(required []string) error {
	for _, field := range required {
		column, found := t.names[field], 0
		for _, name := range t.header {
			if name == column {
				found++
			}
		}
		isOptional := column == field && (field == "id" || field == "currency")
		if found > 1 || found == 0 && !isOptional {
			return fmt.Errorf("line 1 must have one column %q, and has %q: "+
				"check -columns, and that the file is CSV in UTF-8", column, t.header)
		}
	}
	return nil
}

// next returns a line. encoding/csv names line and column of what it cannot read.
func (t *transfers) next() (line sqljournal.StatementLine, err error) {
	record, err := t.file.Read()
	if err != nil {
		return line, err
	}
	value := map[string]string{} // by the file's names
	for i, name := range t.header {
		value[name] = record[i]
	}
	line.Line, _ = t.file.FieldPos(0)
	line.Reference, line.ServiceID = value[t.names["order"]], value[t.names["id"]]
	line.Currency, line.Status = value[t.names["currency"]], value[t.names["status"]]
	column := t.names["amount"]
	if line.Amount, err = amountOf(value[column]); err == nil {
		column = t.names["time"]
		line.Time, err = timeOf(value[column], t.zone)
	}
	if err != nil {
		err = fmt.Errorf("line %d, column %q: %w", line.Line, column, err)
	}
	return line, err
}

// plainAmount has no more than one separator, and not three digits behind it: 1,234 can be
// read in two ways.
var plainAmount = regexp.MustCompile(`^[0-9]+([.,]([0-9]{1,2}|[0-9]{4,}))?$`)

func amountOf(text string) (decimal.Decimal, error) {
	text = strings.TrimSpace(text)
	if !plainAmount.MatchString(text) {
		return decimal.Decimal{}, errors.New("the amount must be as in 1234.50 or 1234,50")
	}
	return decimal.NewFromString(strings.Replace(text, ",", ".", 1))
}

func timeOf(text string, zone *time.Location) (at time.Time, err error) {
	text = strings.Replace(strings.TrimSpace(text), " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err = time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return at, errors.New("the time must be as in 2026-01-31T15:04:05Z, or 2026-01-31 15:04:05 in the zone of -from")
}

// report is what the statement says, by kind of finding.
type report struct {
	Warnings []string
	Kinds    []*kindTotal
	Certain  int       // findings that are recorded when the report is applied
	seen     hash.Hash // of these, and of the warnings
}

// Seen names what is recorded when the report is applied, and what it warns of.
func (r *report) Seen() string { return hex.EncodeToString(r.seen.Sum(nil)) }

// kindTotal is of all findings of a kind.
type kindTotal struct {
	Kind    sqljournal.FindingKind
	Orders  int
	Certain int
	Sums    money
	First   []sqljournal.Finding // at most listed
}

const listed = 50

func (r *report) add(f sqljournal.Finding) {
	if f.Kind == sqljournal.FindingWarning {
		r.Warnings = append(r.Warnings, f.Note)
		_, _ = fmt.Fprintf(r.seen, "%s %q\n", f.Kind, f.Note) // it never fails
		return
	}
	n := slices.IndexFunc(r.Kinds, func(t *kindTotal) bool { return t.Kind == f.Kind })
	if n < 0 {
		n = len(r.Kinds)
		r.Kinds = append(r.Kinds, &kindTotal{Kind: f.Kind, Sums: money{}})
	}
	t := r.Kinds[n]
	t.Orders++
	if f.Applies() {
		t.Certain++
		r.Certain++
		_, _ = fmt.Fprintf(r.seen, "%s %q %q\n", f.Kind, f.Reference, f.Entry.Call) // it never fails
	}
	t.Sums.add(moneyOf(f))
	if len(t.First) < listed {
		t.First = append(t.First, f)
	}
}

// moneyOf is what a finding is about: what is listed there, or else what is on record here.
func moneyOf(f sqljournal.Finding) (decimal.Decimal, string) {
	if f.Line.Line > 0 {
		return f.Line.Amount, f.Line.Currency
	}
	text, currency, _ := strings.Cut(f.Entry.Summary, " ")
	amount, _ := decimal.NewFromString(text) // zero where no summary is on record
	return amount, currency
}

// money is an amount of each currency.
type money map[string]decimal.Decimal

func (m money) add(amount decimal.Decimal, currency string) { m[currency] = m[currency].Add(amount) }

// String returns it as in "12.50 EUR, 3.00 USD".
func (m money) String() string {
	var all []string
	for _, currency := range slices.Sorted(maps.Keys(m)) {
		all = append(all, strings.TrimSpace(m[currency].StringFixed(2)+" "+currency))
	}
	return strings.Join(all, ", ")
}
