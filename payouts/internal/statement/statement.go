// Package statement reads the provider's statement from a CSV file, and sums up what it says.
package statement

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	Zone        *time.Location                        // of times without an offset; nil: UTC
	Columns     map[string]string                     // what the file calls the fields that it calls otherwise; "": it has none
	Statuses    map[string]sqljournal.StatementStatus // what its statuses mean
	Decimal     string                                // what separates decimal places, "." or ","; "": amounts say it
	First       string                                // "day" or "month" of 03/04/2026; "": dates say it
	Strays      bool                                  // more than half of it may be unknown here
	Most        int                                   // lines; 0: as many as there are
}

// SetZone sets the zone by its IANA name; "" is UTC. What the machine calls local is none.
func (f *File) SetZone(name string) (err error) {
	if f.Zone, err = time.LoadLocation(name); err != nil || f.Zone == time.Local {
		return fmt.Errorf("%w: the time zone must have an IANA name, as in Europe/Berlin", cardwire.ErrInvalidParams)
	}
	return nil
}

func (f *File) timeOf(text string) (time.Time, error) {
	return timeOf(text, cmp.Or(f.Zone, time.UTC), f.First)
}

// Names reads what the file calls its columns, as in "order=Order No,amount=Sum,id=", and what its statuses mean, as
// in "done=executed,rejected=not_executed".
func (f *File) Names(columns, statuses string) (err error) {
	if f.Columns, err = pairs[string](columns, strings.Index); err != nil {
		return fmt.Errorf("%w: -columns: %w", cardwire.ErrInvalidParams, err)
	}
	f.Statuses, err = pairs[sqljournal.StatementStatus](statuses, strings.LastIndex)
	if err == nil && len(f.Statuses) == 0 {
		err = errors.New("it does not say what any status means")
	}
	if err != nil {
		err = fmt.Errorf("%w: -status: %w, as in done=executed,rejected=not_executed,processing=pending",
			cardwire.ErrInvalidParams, err)
	}
	return err
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
			err = fmt.Errorf("%q: expected names that occur once, each with = and a value", pair)
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
		t, err := f.open(file)
		for n := 1; err == nil; n++ {
			var r row
			if r, err = t.next(); err == nil && f.Most > 0 && n > f.Most {
				err = fmt.Errorf("it has more than %d lines: payouts -reconcile reads as many as memory allows", f.Most)
			}
			if err == nil && !yield(f.line(t, r), nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(sqljournal.StatementLine{}, fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err))
		}
	}
}

// open reads the header, which must have the columns.
func (f *File) open(file io.Reader) (*table, error) {
	names := map[string]string{}
	for _, field := range Fields {
		names[field] = field
	}
	maps.Copy(names, f.Columns)
	if len(names) != len(Fields) {
		return nil, errors.New("the columns are " + strings.Join(Fields, ", ") + ", as in order=Number,amount=Sum")
	}
	if !slices.Contains([]string{"", ".", ","}, f.Decimal) || !slices.Contains([]string{"", "day", "month"}, f.First) {
		return nil, errors.New(`what separates decimal places is "." or ",", and what comes first in a date is day or month`)
	}
	fields, isNeeded := map[string]string{}, map[string]bool{}
	for _, field := range Fields {
		column := names[field]
		if other := fields[column]; other != "" && column != "" {
			return nil, fmt.Errorf("column %q is chosen for two fields: %s and %s", column, other, field)
		}
		fields[column] = field
		if column == "" && !IsOptional(field) {
			return nil, fmt.Errorf("choose one column for the field %s", field)
		}
		isNeeded[column] = column != "" && !(column == field && IsOptional(field))
	}
	t, err := newTable(file, func(header []string) (missing string) {
		for _, field := range Fields {
			if name := names[field]; isNeeded[name] && !slices.Contains(header, name) {
				return name
			}
		}
		return ""
	})
	if err == nil {
		t.columns = map[string]int{}
		for _, field := range Fields {
			t.columns[field] = slices.Index(t.header, cmp.Or(names[field], "\x00")) // which no header has
		}
	}
	return t, err
}

// line returns what a row says. Fields that nobody needs may be of any kind.
func (f *File) line(t *table, r row) (line sqljournal.StatementLine) {
	line.Line = r.line
	if line.Unread = r.wrong; line.Unread != "" {
		return line
	}
	value := map[string]string{}
	for _, field := range Fields {
		at := t.columns[field]
		if at < 0 {
			continue
		}
		value[field] = r.value(at)
		switch {
		case len(value[field]) > longest:
			line.Unread = fmt.Sprintf("column %q has more than %d bytes", t.header[at], longest)
			return line
		case strings.ContainsRune(value[field], utf8.RuneError):
			line.Unread = fmt.Sprintf("column %q has a character that is lost: export the file in UTF-8", t.header[at])
			return line
		}
	}
	line.Reference, line.ServiceID, line.Currency, line.Status = value["order"], value["id"], value["currency"], value["status"]
	field, err := "amount", error(nil)
	if line.Amount, err = amountOf(value[field], f.Decimal); err == nil {
		field = "time"
		line.Time, err = f.timeOf(value[field])
	}
	if err != nil {
		line.Unread = fmt.Sprintf("column %q: %v", t.header[t.columns[field]], err)
	}
	return line
}

// Sample is what a person sees of a file who says what its columns and statuses are.
type Sample struct {
	Header      []string
	Rows        [][]string // the first
	Words       []string   // the statuses
	AsksDecimal bool       // an amount can be read in two ways
	AsksFirst   bool       // a date can be read in two ways
}

const (
	maxColumns = 50
	maxHeader  = 10_000 // bytes, of which each choice has a copy
	maxRows    = 3
	maxWords   = 30
)

// Look reads the sample. The columns are those that have the fields' names, unless they are known.
func (f *File) Look(file io.Reader) (s Sample, err error) {
	t, err := newTable(file, func(header []string) (missing string) {
		for _, name := range f.Columns {
			if name != "" && !slices.Contains(header, name) {
				return name
			}
		}
		return ""
	})
	if err == nil && (len(t.header) > maxColumns || len(strings.Join(t.header, "")) > maxHeader) {
		err = fmt.Errorf("the header has more than %d columns, or %d bytes", maxColumns, maxHeader)
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
	}
	s.Header = t.header
	if f.Columns == nil {
		f.Columns = columnsOf(t.header)
	}
	for {
		r, err := t.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err == nil && r.wrong == "" {
			err = f.sample(&s, r)
		}
		if err != nil {
			return s, fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
		}
	}
}

// sample adds a row to the sample.
func (f *File) sample(s *Sample, r row) error {
	value := func(field string) string {
		at := slices.Index(s.Header, cmp.Or(f.Columns[field], "\x00")) // which no header has
		if at < 0 {
			return ""
		}
		return r.value(at)
	}
	if len(s.Rows) < maxRows {
		s.Rows = append(s.Rows, r.cells)
	}
	if amount := value("amount"); len(amount) <= longest {
		_, err := amountOf(amount, f.Decimal)
		s.AsksDecimal = s.AsksDecimal || errors.Is(err, errDecimal)
	}
	_, err := f.timeOf(value("time"))
	s.AsksFirst = s.AsksFirst || errors.Is(err, errDates)
	word := value("status")
	if f.Columns["status"] == "" || slices.Contains(s.Words, word) {
		return nil
	}
	if s.Words = append(s.Words, word); len(s.Words) > maxWords || len(word) > longest {
		s.Words = nil
		return fmt.Errorf("column %q has more than %d different values, or long ones: choose that of the status",
			f.Columns["status"], maxWords)
	}
	return nil
}

// columnsOf are the columns that have a field's name in any letter case, and are the only one of it.
func columnsOf(header []string) map[string]string {
	columns := map[string]string{}
	for _, field := range Fields {
		named := slices.DeleteFunc(slices.Clone(header), func(name string) bool { return !strings.EqualFold(name, field) })
		if columns[field] = ""; len(named) == 1 {
			columns[field] = named[0]
		}
	}
	return columns
}
