// Package statement reads the provider's statement from a CSV file, and sums up what it says.
package statement

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Fields are the columns of a statement. Without id and currency these are not compared.
var Fields = []string{"order", "amount", "status", "time", "id", "currency"}

// IsOptional reports whether a file may lack a field.
func IsOptional(field string) bool { return field == "id" || field == "currency" }

// File says how a CSV file with a header is read, which has every transfer of [From, Until).
type File struct {
	From, Until time.Time
	Exported    time.Time                             // not before Until
	Columns     map[string]string                     // what the file calls the fields that it calls otherwise; "": it has none
	Statuses    map[string]sqljournal.StatementStatus // what its statuses mean
	Strays      bool                                  // more than half of it may be unknown here
	Most        int                                   // lines; 0: as many as there are
}

// Names reads what the file calls its columns, as in "order=Order No,amount=Sum,id=", and what its statuses mean, as
// in "done=executed,rejected=not_executed".
func (f *File) Names(columns, statuses string) (err error) {
	if f.Columns, err = pairs[string](columns, strings.Index); err != nil {
		return fmt.Errorf("%w: columns: %w", cardwire.ErrInvalidParams, err)
	}
	f.Statuses, err = pairs[sqljournal.StatementStatus](statuses, strings.LastIndex)
	if err == nil && len(f.Statuses) == 0 {
		err = errors.New("it does not say what any status means")
	}
	if err != nil {
		err = fmt.Errorf("%w: status: %w, as in done=executed,rejected=not_executed,processing=pending",
			cardwire.ErrInvalidParams, err)
	}
	return err
}

// Command is the command line of the program that reads the file as this says.
func (f *File) Command(name string) string {
	words := []string{"payouts -reconcile", quoted(name)}
	for _, t := range []struct {
		flag string
		at   time.Time
	}{{"-from", f.From}, {"-until", f.Until}, {"-exported", f.Exported}} {
		words = append(words, t.flag, t.at.Format(time.RFC3339Nano))
	}
	words = append(words, "-columns", quoted(joined(f.Columns)), "-status", quoted(joined(f.Statuses)))
	if f.Strays {
		words = append(words, "-strays")
	}
	return strings.Join(words, " ")
}

// quoted is one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// joined writes what pairs reads.
func joined[T ~string](all map[string]T) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+string(all[name]))
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(list) // into memory
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

// pairs reads "a=1,b=2". What contains a comma is quoted, as in CSV. Names of columns and statuses may have a "=".
func pairs[T ~string](text string, index func(text, of string) int) (map[string]T, error) {
	all := map[string]T{}
	if strings.TrimSpace(text) == "" {
		return all, nil
	}
	list, err := csv.NewReader(strings.NewReader(text)).Read()
	for _, pair := range list {
		at := max(index(pair, "="), 0)
		value, found := strings.CutPrefix(pair[at:], "=")
		name := pair[:at]
		if _, twice := all[name]; twice || !found {
			err = errors.New("expected names that occur once, each with = and a value")
		}
		all[name] = T(value)
	}
	return all, err
}

// Statement is the file's, which is read once.
func (f *File) Statement(in io.Reader) sqljournal.Statement {
	return sqljournal.Statement{
		Op: cardwire.OpCreateTransfer, From: f.From, Until: f.Until, Exported: f.Exported, Statuses: f.Statuses,
		AllowStrays: f.Strays, Lines: f.lines(in),
	}
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

// Sample is what a person sees of a file who says what its columns and statuses are.
type Sample struct {
	Header []string
	Rows   [][]string // the first
	Words  []string   // the statuses
}

const (
	maxColumns = 50
	maxHeader  = 10_000 // bytes, of which each choice has a copy
	maxRows    = 3
	maxWords   = 30
	longest    = 200 // bytes of a word
)

// Look reads the sample. The columns are those that have the fields' names, unless they are known.
func (f *File) Look(file io.Reader) (s Sample, err error) {
	in, header, err := Open(file)
	if err == nil && (len(header) > maxColumns || len(strings.Join(header, "")) > maxHeader) {
		err = fmt.Errorf("line 1 has more than %d columns, or %d bytes", maxColumns, maxHeader)
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
	}
	s.Header = header
	if f.Columns == nil {
		f.Columns = map[string]string{}
		for _, field := range Fields {
			f.Columns[field] = ""
			for _, name := range header {
				if strings.EqualFold(name, field) {
					f.Columns[field] = name
				}
			}
		}
	}
	status := f.Columns["status"]
	at := slices.Index(header, status)
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
		}
		if text := strings.Join(row, ""); !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			line, _ := in.FieldPos(0)
			return s, fmt.Errorf("%w: line %d is not in UTF-8", cardwire.ErrInvalidParams, line)
		}
		if len(s.Rows) < maxRows {
			s.Rows = append(s.Rows, row)
		}
		if status == "" || at < 0 || slices.Contains(s.Words, unguarded(row[at])) {
			continue
		}
		if s.Words = append(s.Words, unguarded(row[at])); len(s.Words) > maxWords || len(row[at]) > longest {
			s.Words = nil
			return s, fmt.Errorf("%w: column %q has more than %d different values, or long ones: choose that of the status",
				cardwire.ErrInvalidParams, status, maxWords)
		}
	}
}

// open reads the header, which must have the columns.
func (f *File) open(file io.Reader) (*rows, error) {
	names := maps.Clone(f.Columns)
	if names == nil {
		names = map[string]string{}
	}
	for _, field := range Fields {
		if _, isSaid := names[field]; !isSaid {
			names[field] = field
		}
	}
	if len(names) != len(Fields) {
		return nil, errors.New("the columns are " + strings.Join(Fields, ", ") + ", as in order=Number,amount=Sum")
	}
	in, header, err := Open(file)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for _, field := range Fields {
		column, found := names[field], 0
		if other := fields[column]; other != "" && column != "" {
			return nil, fmt.Errorf("column %q is chosen for two fields: %s and %s", column, other, field)
		}
		fields[column] = field
		for _, name := range header {
			if name == column {
				found++
			}
		}
		isOptional := (column == field || column == "") && IsOptional(field)
		if column == "" {
			found = 0 // which a column without a name is not
		}
		if found > 1 || found == 0 && !isOptional {
			return nil, fmt.Errorf("line 1 must name one column %q, and names %d of its %d so: "+
				"check the names of the columns, and that the file is CSV in UTF-8", column, found, len(header))
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
	delete(value, "") // of no column
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
