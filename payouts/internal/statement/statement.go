// Package statement reads the provider's statement from a CSV file, and sums up what it says.
package statement

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Fields are the columns of a statement. Without id and currency these are not compared.
var Fields = []string{"order", "amount", "status", "time", "id", "currency"}

// File says how a CSV file with a header is read, which has every transfer of [From, Until).
type File struct {
	From, Until time.Time
	Exported    time.Time                             // not before Until
	Columns     map[string]string                     // what the file calls the fields that it calls otherwise
	Statuses    map[string]sqljournal.StatementStatus // what its statuses mean
	Strays      bool                                  // more than half of it may be unknown here
	Most        int                                   // lines; 0: as many as there are
}

// Names reads what the file calls its columns, as in "order=Order No,amount=Sum", and what its statuses mean, as in
// "done=executed,rejected=not_executed".
func (f *File) Names(columns, statuses string) (err error) {
	if f.Columns, err = pairs(columns); err != nil {
		return fmt.Errorf("%w: columns: %w", cardwire.ErrInvalidParams, err)
	}
	means, err := pairs(statuses)
	if err == nil && len(means) == 0 {
		err = errors.New("it does not say what any status means")
	}
	if err != nil {
		return fmt.Errorf("%w: status: %w, as in done=executed,rejected=not_executed,processing=pending",
			cardwire.ErrInvalidParams, err)
	}
	f.Statuses = map[string]sqljournal.StatementStatus{}
	for status, meaning := range means {
		f.Statuses[status] = sqljournal.StatementStatus(meaning)
	}
	return nil
}

// pairs reads "a=1,b=2". What contains a comma is quoted, as in CSV.
func pairs(text string) (map[string]string, error) {
	all := map[string]string{}
	if strings.TrimSpace(text) == "" {
		return all, nil
	}
	list, err := csv.NewReader(strings.NewReader(text)).Read()
	for _, pair := range list {
		name, value, found := strings.Cut(pair, "=")
		if _, twice := all[name]; twice || !found {
			err = errors.New("expected names that occur once, each with = and a value")
		}
		all[name] = value
	}
	return all, err
}

func (f *File) lines(file io.Reader) iter.Seq2[sqljournal.StatementLine, error] {
	return func(yield func(sqljournal.StatementLine, error) bool) {
		rows, err := f.open(file)
		for n := 1; err == nil; n++ {
			var line sqljournal.StatementLine
			if line, err = rows.next(); err == nil && f.Most > 0 && n > f.Most {
				err = fmt.Errorf("it has more than %d lines: payouts -reconcile reads as many as memory allows", f.Most)
			}
			if err == nil && !yield(line, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(sqljournal.StatementLine{}, fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err))
		}
	}
}

// rows are those of a file behind its header.
type rows struct {
	*csv.Reader
	names  map[string]string // what the file calls the fields
	header []string
	zone   *time.Location // of times that have none
}

// Open reads the header. Spreadsheets choose what separates the columns by language: it is what the first
// line has most of.
func Open(file io.Reader) (_ *csv.Reader, header []string, err error) {
	buffered := bufio.NewReaderSize(file, 64<<10)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" { // which some programs put before UTF-8
		_, _ = buffered.Discard(3) // they are there
	}
	in := csv.NewReader(buffered)
	start, _ := buffered.Peek(buffered.Size()) // where that fails, so does Read
	for _, separator := range ",;\t" {
		first := csv.NewReader(bytes.NewReader(start))
		first.Comma = separator
		if names, _ := first.Read(); len(names) > len(header) {
			in.Comma, header = separator, names
		}
	}
	header, err = in.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("the file is empty")
	}
	return in, header, err
}

// open reads the header, which must have the columns.
func (f *File) open(file io.Reader) (*rows, error) {
	names := maps.Clone(f.Columns)
	if names == nil {
		names = map[string]string{}
	}
	for _, field := range Fields {
		names[field] = cmp.Or(names[field], field)
	}
	if len(names) != len(Fields) {
		return nil, errors.New("the columns are " + strings.Join(Fields, ", ") + ", as in order=Number,amount=Sum")
	}
	in, header, err := Open(file)
	if err != nil {
		return nil, err
	}
	for _, field := range Fields {
		column, found := names[field], 0
		for _, name := range header {
			if name == column {
				found++
			}
		}
		isOptional := column == field && (field == "id" || field == "currency")
		if found > 1 || found == 0 && !isOptional {
			return nil, fmt.Errorf("line 1 must have one column %q, and has %q: "+
				"check the names of the columns, and that the file is CSV in UTF-8", column, header)
		}
	}
	return &rows{in, names, header, f.From.Location()}, nil
}

// next returns a line. encoding/csv names line and column of what it cannot read.
func (t *rows) next() (line sqljournal.StatementLine, err error) {
	record, err := t.Read()
	if err != nil {
		return line, err
	}
	value := map[string]string{} // by the file's names
	for i, name := range t.header {
		value[name] = unguarded(record[i])
	}
	line.Line, _ = t.FieldPos(0)
	line.Reference, line.ServiceID = value[t.names["order"]], value[t.names["id"]]
	line.Currency, line.Status = value[t.names["currency"]], value[t.names["status"]]
	column := t.names["amount"]
	if line.Amount, err = amountOf(value[column]); err == nil {
		column = t.names["time"]
		line.Time, err = TimeOf(value[column], t.zone)
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

// TimeOf reads a time of a file or a form. One without a zone is in that zone.
func TimeOf(text string, zone *time.Location) (at time.Time, err error) {
	text = strings.Replace(strings.TrimSpace(text), " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err = time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return at, errors.New("the time must be as in 2026-01-31T15:04:05Z, or 2026-01-31 15:04:05 in the first zone")
}

// formula is what a spreadsheet would calculate, also where that is quoted already, behind a separator or a
// space of any kind, or in its full width.
var formula = regexp.MustCompile(`^'*[\s;,\pZ\x{feff}]*[=+@\-＝＋＠－]`)

// Guarded puts an apostrophe before what a spreadsheet would calculate.
func Guarded(row ...string) []string {
	for i, cell := range row {
		if formula.MatchString(cell) {
			row[i] = "'" + cell
		}
	}
	return row
}

// unguarded is what a cell was before it was guarded.
func unguarded(cell string) string {
	if rest, found := strings.CutPrefix(cell, "'"); found && formula.MatchString(rest) {
		return rest
	}
	return cell
}
