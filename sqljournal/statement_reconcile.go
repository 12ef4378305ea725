package sqljournal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
)

// reconciliation is a statement on its way to a report.
type reconciliation struct {
	*Statement
	on          *Tx
	lines       []StatementLine // by reference; of each, those that say most first
	shared      map[string]bool // service IDs of executed lines of several references
	all         []listed        // what is listed
	unexplained purse           // lines
	orders      purse           // unresolved and free ones that no line says to be executed
	missing     int             // orders that a response proved executed, and that are not listed
	example     string          // one of those
}

func (r *reconciliation) run(ctx context.Context, yield func(Finding, error) bool) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := r.on.verify(ctx); err != nil {
		return err
	}
	if err := r.on.refusesOp(ctx, r.Op); err != nil {
		return err
	}
	if err := r.read(); err != nil {
		return err
	}
	if err := r.survey(ctx); err != nil {
		return err
	}
	for _, warning := range r.warnings() {
		if !yield(Finding{Kind: FindingWarning, Op: r.Op, Note: warning}, nil) {
			return nil
		}
	}
	// What was paid though closed comes first, then what was paid twice.
	slices.SortStableFunc(r.all, func(a, b listed) int { return b.urgency - a.urgency })
	return r.visit(ctx, func(l *listed, e Entry) bool {
		kind := r.compare(*l, e)
		return kind == "" || yield(r.finding(kind, *l, e), nil)
	})
}

// read keeps the lines, each once, and of each no more than its fields: what reads a file may give
// parts of longer strings.
func (r *reconciliation) read() error {
	owners := map[string]string{} // the references of service IDs
	r.shared = map[string]bool{}
	for l, err := range r.Lines {
		if err != nil {
			return fmt.Errorf("sqljournal: reading the statement: %w", err)
		}
		if err := r.checkLine(l); err != nil {
			return err
		}
		l.Reference, l.ServiceID = strings.Clone(l.Reference), strings.Clone(l.ServiceID)
		l.Currency, l.Status = strings.Clone(l.Currency), strings.Clone(l.Status)
		if l.ServiceID != "" && r.Statuses[l.Status] == StatementExecuted {
			if cmp.Or(owners[l.ServiceID], l.Reference) != l.Reference {
				r.shared[l.ServiceID] = true
			}
			owners[l.ServiceID] = l.Reference
		}
		r.lines = append(r.lines, l)
	}
	slices.SortFunc(r.lines, func(a, b StatementLine) int { return cmp.Or(r.order(a, b), a.Line-b.Line) })
	r.lines = slices.CompactFunc(r.lines, func(a, b StatementLine) bool { return r.order(a, b) == 0 })
	return nil
}

// order is zero of two lines that say the same; those without a service ID are the last.
func (r *reconciliation) order(a, b StatementLine) int {
	if c := strings.Compare(a.Reference, b.Reference); c != 0 {
		return c
	}
	return cmp.Or(r.Statuses[b.Status].rank()-r.Statuses[a.Status].rank(),
		strings.Compare(cmp.Or(a.ServiceID, "\xff"), cmp.Or(b.ServiceID, "\xff")), a.Amount.Cmp(b.Amount),
		strings.Compare(a.Currency, b.Currency), a.Time.Compare(b.Time))
}

// group returns what is listed.
func (r *reconciliation) group() (all []listed) {
	for n, line := range r.lines {
		l := listed{reference: line.Reference, status: r.Statuses[line.Status], lines: r.lines[n : n+1]}
		switch last := len(all) - 1; {
		case last < 0, all[last].reference != l.reference:
			all = append(all, l)
		case all[last].status == l.status:
			all[last].lines = all[last].lines[:len(all[last].lines)+1]
		}
	}
	return all
}

func (r *reconciliation) isListed(reference string) bool {
	_, is := slices.BinarySearchFunc(r.lines, reference, func(l StatementLine, reference string) int {
		return strings.Compare(l.Reference, reference)
	})
	return is
}

// survey finds out what each reference has to do with others, before anything is reported.
func (r *reconciliation) survey(ctx context.Context) error {
	r.all, r.unexplained, r.orders = r.group(), purse{}, purse{}
	references, strays := len(r.all), 0
	err := r.visit(ctx, func(l *listed, e Entry) bool {
		kind := r.compare(*l, e)
		l.urgency = slices.Index([]FindingKind{FindingTwice, FindingPaidThoughClosed}, kind)
		isListed := len(l.lines) > 0
		if isListed && isNothing(e) {
			strays++
		}
		switch {
		case isListed && !l.isExplained(e, kind):
			for _, line := range l.lines {
				r.unexplained.add(line.Amount, line.Currency, fmt.Sprintf("line %d (%q)", line.Line, line.Reference))
			}
		case !e.Amount.IsZero() && l.status != StatementExecuted && (e.Outcome == cardwire.OutcomeUnknown || isUndone(e) && !e.Closed):
			r.orders.add(e.Amount, e.Currency, strconv.Quote(l.reference))
			r.orders.add(e.Amount, anyCurrency, strconv.Quote(l.reference))
		case kind == FindingNotListed && e.Proved:
			r.missing++
			r.example = cmp.Or(r.example, l.reference)
		}
		return true
	})
	if err == nil && 2*strays > references && !r.AllowStrays {
		err = ErrStrays
	}
	return err
}

// warnings are what is said of the statement as a whole.
func (r *reconciliation) warnings() (all []string) {
	if r.missing > 0 {
		all = append(all, fmt.Sprintf("the statement is not complete: it lacks orders that a response proved executed, and "+
			"whose calls are in its period: %d, such as %q: check for a limit of rows, a delay, a filter, and changed numbers",
			r.missing, r.example))
	}
	if len(r.lines) == 0 {
		return append(all, "the statement has no lines")
	}
	byTime := func(a, b StatementLine) int { return a.Time.Compare(b.Time) }
	first, last := slices.MinFunc(r.lines, byTime).Time, slices.MaxFunc(r.lines, byTime).Time
	if long := r.Until.Sub(r.From) / 10; first.Sub(r.From) > long ||
		r.Until.Sub(last) > min(long, 30*time.Minute) { // less than a time zone
		all = append(all, "the lines are from "+stamp(first)+" to "+stamp(last)+", and the statement from "+
			stamp(r.From)+" until "+stamp(r.Until)+": check for a limit of rows, a delay, and the time zone")
	}
	if len(r.shared) > 0 {
		all = append(all, fmt.Sprintf("service IDs in executed lines of more than one order: %d, such as %q: check that the "+
			"column is the number of one transfer; only one order is recorded with it",
			len(r.shared), slices.Min(slices.Collect(maps.Keys(r.shared)))))
	}
	return all
}

// finding puts the kind into words.
func (r *reconciliation) finding(kind FindingKind, l listed, e Entry) Finding {
	f := Finding{
		Kind: kind, Op: r.Op, Reference: l.reference, Entry: e, IsUnexplained: len(l.lines) > 0 && !l.isExplained(e, kind),
	}
	notes := []string{"not in the statement from " + stamp(r.From) + " until " + stamp(r.Until)}
	if len(l.lines) > 0 {
		f.Line, notes = l.lines[0], nil
	}
	where := "in the statement: "
	for _, line := range l.lines[:min(len(l.lines), maxLines)] {
		notes = append(notes, where+inWords(line))
		where = "again in "
		if like := r.orders.like(line.Amount, line.Currency); like != "" && f.IsUnexplained {
			notes = append(notes, "unresolved or free here, of its amount: "+like)
		}
	}
	if more := len(l.lines) - maxLines; more > 0 {
		notes = append(notes, fmt.Sprintf("and in %d more", more))
	}
	if len(l.lines) > 0 && e.differs(f.Line) {
		notes = append(notes, "here it is "+strings.TrimSpace(moneyInWords(e.Amount, e.Currency)+" "+e.ServiceID))
	}
	if kind == FindingNotListed || kind == FindingRejected {
		notes = append(notes, r.toAsk(e)...)
	}
	f.Note = strings.Join(notes, "; ")
	return f
}

// toAsk is what a person needs who asks the service about an order.
func (r *reconciliation) toAsk(e Entry) (notes []string) {
	switch {
	case e.Proved:
		notes = append(notes, "a response proved that it was executed, recorded "+stamp(e.EndedAt))
	case e.Outcome == cardwire.OutcomeExecuted:
		notes = append(notes, "recorded as executed "+stamp(e.EndedAt)+", without a response that proves it")
	default:
		notes = append(notes, "unresolved since "+stamp(e.Time))
	}
	covers := "does not cover"
	if r.covers(e) {
		covers = "covers"
	}
	notes = append(notes, "the statement "+covers+" the whole life of its call, from "+stamp(e.Time)+" to "+stamp(e.SettledBy))
	if like := r.unexplained.like(e.Amount, e.Currency); !e.Amount.IsZero() && like != "" {
		notes = append(notes, "of its amount, and of no call here: "+like)
	}
	return notes
}

// visit visits what is listed; then what is not listed, and unresolved, free, or executed in the
// period. Each page is a query of its own: SQLite lets nobody write during one.
func (r *reconciliation) visit(ctx context.Context, do func(*listed, Entry) (goesOn bool)) error {
	for start := 0; start < len(r.all); start += lookupSize {
		some := r.all[start:min(start+lookupSize, len(r.all))]
		entries, err := r.onRecord(ctx, some)
		if err != nil {
			return err
		}
		for i := range some {
			if !do(&some[i], entries[some[i].reference]) {
				return nil
			}
		}
	}
	moment := r.on.journal.dialect.moment
	for last := ""; ; {
		page, err := r.on.entries(ctx, `
i.op = ?1 AND i.reference > ?2 AND (i.state IN ('open', 'unknown') OR i.state <> 'executed' AND NOT i.closed
	OR i.state = 'executed' AND i.time >= ?3 AND i.settled_by <= ?4)
ORDER BY i.reference LIMIT `+strconv.Itoa(pageSize), r.Op, last, moment(r.From), moment(r.Until))
		if err != nil {
			return err
		}
		for _, k := range page {
			if !r.isListed(k.Reference) && !do(&listed{reference: k.Reference}, k.Entry) {
				return nil
			}
		}
		if len(page) < pageSize {
			return nil
		}
		last = page[len(page)-1].Reference
	}
}

// lookupSize is how many references are looked up at a time: in some drivers, the time grows
// with the square of the number of parameters.
const lookupSize = 128

// onRecord returns what is on record, by reference.
func (r *reconciliation) onRecord(ctx context.Context, some []listed) (map[string]Entry, error) {
	found, args, places := map[string]Entry{}, []any{r.Op}, ""
	for i := range 1 << bits.Len(uint(len(some)-1)) { // a power of two: there are few different statements
		reference := some[min(i, len(some)-1)].reference
		args, places = append(args, reference), places+",?"+strconv.Itoa(i+2)
	}
	page, err := r.on.entries(ctx, `i.op = ?1 AND i.reference IN (`+places[1:]+`)`, args...)
	for _, k := range page {
		found[k.Reference] = k.Entry
	}
	return found, err
}
