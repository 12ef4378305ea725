package statement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// Report is what the statement says, by kind of finding.
type Report struct {
	Warnings []string
	Kinds    []*Kind
	Certain  int // findings that are recorded when the report is applied
	Left     int // of those, which did not fit what was then on record
	seen     hash.Hash
}

// Kind is of all findings of a kind.
type Kind struct {
	Kind    string // and why a person has to ask
	Orders  int
	Certain int
	Sums    Money
	First   []sqljournal.Finding // at most listed
}

const listed = 50

// Seen names what is recorded when the report is applied, and what it warns of.
func (r *Report) Seen() string { return hex.EncodeToString(r.seen.Sum(nil)) }

// NewReport returns one of no findings.
func NewReport() *Report { return &Report{seen: sha256.New()} }

// Add adds a finding, and why it was left.
func (r *Report) Add(f sqljournal.Finding, left error) {
	if left != nil {
		r.Left++
	}
	if f.Why == "statement" {
		r.Warnings = append(r.Warnings, f.Note)
		_, _ = fmt.Fprintf(r.seen, "%s %q\n", f.Kind, f.Note) // it never fails
		return
	}
	what := string(f.Kind)
	if f.Why != "" {
		what += ": " + f.Why
	}
	n := slices.IndexFunc(r.Kinds, func(t *Kind) bool { return t.Kind == what })
	if n < 0 {
		n = len(r.Kinds)
		r.Kinds = append(r.Kinds, &Kind{Kind: what, Sums: Money{}})
	}
	t := r.Kinds[n]
	t.Orders++
	if f.Applies() {
		t.Certain++
		r.Certain++
		_, _ = fmt.Fprintf(r.seen, "%s %q %q %q\n", what, f.Reference, f.Entry.Call, f.Line.ServiceID) // it never fails
	}
	switch {
	case f.Kind != sqljournal.FindingUnread:
		t.Sums.Add(MoneyOf(f))
	case t.Orders == 1: // of what is unread no amount is known
		r.Warnings = append(r.Warnings, "some lines are unread, whose orders may be called not listed: "+
			"correct the file or the choice, and compare again")
	}
	if len(t.First) < listed {
		t.First = append(t.First, f)
	}
}

// MoneyOf is what a finding is about: what is listed there, or else what is on record here.
func MoneyOf(f sqljournal.Finding) (decimal.Decimal, string) {
	if f.Line.Line > 0 {
		return f.Line.Amount, f.Line.Currency
	}
	return f.Entry.Amount, f.Entry.Currency
}

// Write writes the totals, and the first findings of each kind but "agrees".
func (r *Report) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, warning := range r.Warnings {
		_, _ = fmt.Fprintf(w, "warning: %s\n", warning)
	}
	_, _ = fmt.Fprintln(w, "FINDING\tORDERS\tAMOUNT\tRECORDED BY -apply")
	for _, t := range r.Kinds {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%d\n", t.Kind, t.Orders, t.Sums, t.Certain)
	}
	for _, t := range r.Kinds {
		for _, f := range t.First {
			if f.Kind != sqljournal.FindingAgrees {
				_, _ = fmt.Fprintf(w, "%s: %q: %s\n", t.Kind, f.Reference, f.Note)
			}
		}
	}
	return w.Flush() // which returns the first error
}

// Money is an amount of each currency.
type Money map[string]decimal.Decimal

// Add adds an amount.
func (m Money) Add(amount decimal.Decimal, currency string) { m[currency] = m[currency].Add(amount) }

// String returns it as in "12.50 EUR, 3.00 USD".
func (m Money) String() string {
	var all []string
	for _, currency := range slices.Sorted(maps.Keys(m)) {
		all = append(all, strings.TrimSpace(m[currency].StringFixed(2)+" "+currency))
	}
	return strings.Join(all, ", ")
}
