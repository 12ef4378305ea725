package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/shopspring/decimal"
)

// totals are what the export ends with.
type totals struct {
	cards      int
	byStatus   map[string]int
	byCurrency map[string]*sums
}

// sums are amounts of one currency, in whole units.
type sums struct {
	cards                      int
	available, pending, frozen decimal.Decimal
}

func newTotals() *totals {
	return &totals{byStatus: map[string]int{}, byCurrency: map[string]*sums{}}
}

// add adds a row as it is in the file, so that a resumed export counts alike.
func (t *totals) add(row []string) error {
	available, err1 := decimal.NewFromString(row[column("available")])
	pending, err2 := decimal.NewFromString(row[column("pending")])
	frozen, err3 := decimal.NewFromString(row[column("frozen")])
	t.cards++
	t.byStatus[row[column("status")]]++
	currency := row[column("currency")]
	s := t.byCurrency[currency]
	if s == nil {
		s = &sums{}
		t.byCurrency[currency] = s
	}
	s.cards++
	s.available = s.available.Add(available)
	s.pending = s.pending.Add(pending)
	s.frozen = s.frozen.Add(frozen)
	return errors.Join(err1, err2, err3)
}

func column(name string) int {
	for i := range columns {
		if columns[i].name == name {
			return i
		}
	}
	panic("no column " + name)
}

// exact writes an amount with the scale that was sent: 1.500 has three digits.
func exact(d decimal.Decimal) string { return d.StringFixed(max(-d.Exponent(), 0)) }

func (t *totals) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cards\n\n", t.cards)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) }
	line("STATUS\tCARDS\n")
	for _, status := range slices.Sorted(maps.Keys(t.byStatus)) {
		line("%s\t%d\n", status, t.byStatus[status])
	}
	line("\t\nCURRENCY\tCARDS\tAVAILABLE\tPENDING\tFROZEN\n")
	for _, currency := range slices.Sorted(maps.Keys(t.byCurrency)) {
		s := t.byCurrency[currency]
		line("%s\t%d\t%s\t%s\t%s\n", currency, s.cards, exact(s.available), exact(s.pending), exact(s.frozen))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}
