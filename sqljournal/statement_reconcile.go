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
	unread      []Finding
	all         []listed // what is listed, and what is unresolved, free, or of the period, by reference
	unexplained purse    // lines
	orders      purse    // unresolved and free ones that no line says to be executed
	references  int      // that are listed
	strays      int      // those of them that are not on record
	missing     int      // orders that a response proved executed, and that are not listed
	example     string   // one of those
}

func (r *reconciliation) run(ctx context.Context, yield func(Finding, error) bool) error {
	isKnown := func(ctx context.Context) error { return r.on.refusesOp(ctx, r.Op) }
	for _, step := range []func(context.Context) error{
		r.check, r.on.verify, isKnown, r.read, r.join,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.findChanged()
	if r.survey(); !r.AllowStrays && 2*r.strays > r.references {
		return ErrStrays
	}
	for _, f := range append(r.warnings(), r.unread...) {
		if f.Op = r.Op; !yield(f, nil) {
			return nil
		}
	}
	// What was paid though closed comes first, then what was paid twice.
	slices.SortStableFunc(r.all, func(a, b listed) int { return b.urgency - a.urgency })
	for _, l := range r.all {
		if kind, why := r.compare(l); kind != "" && !yield(r.finding(kind, why, l), nil) {
			break
		}
	}
	return nil
}

// read keeps the lines, each once, and of each no more than its fields: what reads a file may give
// parts of longer strings.
func (r *reconciliation) read(context.Context) error {
	isInPeriod := false
	for l, err := range r.Lines {
		if err != nil {
			return fmt.Errorf("sqljournal: reading the statement: %w", err)
		}
		l.Reference, l.ServiceID = strings.Clone(l.Reference), strings.Clone(l.ServiceID)
		l.Currency, l.Status = strings.Clone(l.Currency), strings.Clone(l.Status)
		if l.Unread = cmp.Or(l.Unread, r.whyUnread(l)); l.Unread != "" {
			r.addUnread(l)
			continue
		}
		isInPeriod = isInPeriod || !l.Time.Before(r.From) && l.Time.Before(r.Until)
		r.lines = append(r.lines, l)
	}
	if !isInPeriod {
		for _, l := range r.lines {
			l.Unread = "no line of the statement is in its period"
			r.addUnread(l)
		}
		r.lines = nil
	}
	slices.SortFunc(r.lines, func(a, b StatementLine) int { return cmp.Or(r.order(a, b), a.Line-b.Line) })
	r.lines = slices.CompactFunc(r.lines, func(a, b StatementLine) bool { return r.order(a, b) == 0 })
	return nil
}

func (r *reconciliation) addUnread(l StatementLine) {
	note := fmt.Sprintf("line %d: %s", l.Line, l.Unread)
	r.unread = append(r.unread, Finding{Kind: FindingUnread, Reference: l.Reference, Line: l, Note: note})
}

// sharedIDs are service IDs in executed lines of more than one reference.
func (r *reconciliation) sharedIDs() []string {
	owners, shared := map[string]string{}, map[string]bool{}
	for _, l := range r.lines {
		if l.ServiceID == "" || r.Statuses[l.Status] != StatementExecuted {
			continue
		}
		if cmp.Or(owners[l.ServiceID], l.Reference) != l.Reference {
			shared[l.ServiceID] = true
		}
		owners[l.ServiceID] = l.Reference
	}
	return slices.Sorted(maps.Keys(shared))
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

// findChanged finds the orders that are not listed, and the listed numbers that may be theirs: each names the other.
func (r *reconciliation) findChanged() {
	forms := map[string][]*listed{} // of orders, by what a spreadsheet makes of them
	for n := range r.all {
		if l := &r.all[n]; len(l.lines) == 0 {
			for _, form := range changedForms(l.reference) {
				forms[form] = append(forms[form], l)
			}
		}
	}
	for n := range r.all {
		l := &r.all[n]
		if len(l.lines) == 0 || l.status == StatementNotExecuted {
			continue
		}
		for _, order := range forms[plainForm(l.reference)] {
			l.changed, order.changed = append(l.changed, order.reference), append(order.changed, l.reference)
		}
	}
}

// survey finds out what each reference has to do with others, before anything is reported.
func (r *reconciliation) survey() {
	r.unexplained, r.orders = purse{}, purse{}
	for n := range r.all {
		l := &r.all[n]
		_, why := r.compare(*l)
		l.urgency = slices.Index([]string{whyTwice, whyClosed}, why)
		isListed, e := len(l.lines) > 0, l.entry
		if isListed {
			r.references++
		}
		if isListed && isNothing(e) {
			r.strays++
		}
		switch {
		case isListed && !l.isExplained(why):
			for _, line := range l.lines {
				r.unexplained.add(line.Amount, line.Currency, fmt.Sprintf("line %d (%q)", line.Line, line.Reference))
			}
		case !e.Amount.IsZero() && l.status != StatementExecuted && (e.Outcome == cardwire.OutcomeUnknown || isUndone(e) && !e.Closed):
			r.orders.add(e.Amount, e.Currency, strconv.Quote(l.reference))
			r.orders.add(e.Amount, anyCurrency, strconv.Quote(l.reference))
		case why == whyNotListed && e.Proved:
			r.missing++
			r.example = cmp.Or(r.example, l.reference)
		}
	}
}

// warnings are what is said of the statement as a whole.
func (r *reconciliation) warnings() (all []Finding) {
	warn := func(format string, args ...any) {
		all = append(all, Finding{Kind: FindingAsk, Why: whyStatement, Note: fmt.Sprintf(format, args...)})
	}
	if r.missing > 0 {
		warn("the statement is not complete: it lacks orders that a response proved executed, and "+
			"whose calls are in its period: %d, such as %q: check for a limit of rows, a delay, a filter, and changed numbers",
			r.missing, r.example)
	}
	if len(r.lines) == 0 {
		warn("the statement has no line in its period, %s, and proves nothing: check the period, the time zone and "+
			"the columns", r.period())
		return all
	}
	byTime := func(a, b StatementLine) int { return a.Time.Compare(b.Time) }
	first, last := slices.MinFunc(r.lines, byTime).Time, slices.MaxFunc(r.lines, byTime).Time
	if long := r.Until.Sub(r.From) / 10; first.Sub(r.From) > long ||
		r.Until.Sub(last) > min(long, 30*time.Minute) { // less than a time zone
		warn("the lines are from %s to %s, and the statement %s: check for a limit of rows, a delay, and the time zone",
			stamp(first), stamp(last), r.period())
	}
	if shared := r.sharedIDs(); len(shared) > 0 {
		warn("service IDs in executed lines of more than one order: %d, such as %q: check that the "+
			"column is the number of one transfer; only one order is recorded with it", len(shared), shared[0])
	}
	return all
}

func (s *Statement) period() string { return "from " + stamp(s.From) + " until " + stamp(s.Until) }

// finding puts the kind into words.
func (r *reconciliation) finding(kind FindingKind, why string, l listed) Finding {
	e := l.entry
	f := Finding{
		Kind: kind, Why: why, Op: r.Op, Reference: l.reference, Entry: e, period: r.period(), changed: l.changed,
		IsUnexplained: len(l.lines) > 0 && !l.isExplained(why),
	}
	notes := []string{"not in the statement " + f.period}
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
	if len(l.changed) > 0 && kind == FindingAsk {
		notes = append(notes, "as spreadsheets change numbers, it may be "+inQuotes(l.changed))
	}
	if !isUndone(e) && (why == whyNotListed || why == whyRejected) {
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

// join reads what is on record of what is listed, and what else should be listed: one pass over both sides in the order
// of their references. Each page is a query of its own: SQLite lets nobody write during one.
func (r *reconciliation) join(ctx context.Context) error {
	left := r.group()
	for last, isLast := "", false; !isLast; {
		some := left[:min(len(left), lookupSize)]
		page, err := r.page(ctx, last, some, len(some) == len(left))
		if err != nil {
			return err
		}
		isWhole := len(page) < pageSize
		isLast = isWhole && len(some) == len(left)
		for _, k := range page {
			n, isListed := slices.BinarySearchFunc(some, k.Reference, func(l listed, reference string) int {
				return strings.Compare(l.reference, reference)
			})
			r.all = append(r.all, some[:n]...)
			found := listed{reference: k.Reference}
			if some = some[n:]; isListed {
				found, some = some[0], some[1:]
			}
			found.entry, last = k.Entry, k.Reference
			r.all = append(r.all, found)
		}
		if isWhole && len(some) > 0 {
			r.all, last = append(r.all, some...), some[len(some)-1].reference
		}
		for len(left) > 0 && left[0].reference <= last {
			left = left[1:]
		}
	}
	return nil
}

// lookupSize is how many references are looked up at a time: in some drivers, the time grows
// with the square of the number of parameters.
const lookupSize = 128

// page reads what comes after a reference: up to the last of some that are listed, or to the end.
func (r *reconciliation) page(ctx context.Context, after string, some []listed, toTheEnd bool) ([]known, error) {
	moment := r.on.journal.dialect.moment
	args, places, upTo := []any{r.Op, after, moment(r.From), moment(r.Until)}, "''", ""
	for i := range 1 << bits.Len(uint(max(len(some)-1, 0))) { // a power of two: there are few different statements
		if len(some) > 0 {
			args = append(args, some[min(i, len(some)-1)].reference)
			places += ",?" + strconv.Itoa(len(args))
		}
	}
	if !toTheEnd {
		upTo = " AND i.reference <= ?" + strconv.Itoa(len(args)) // the last of them
	}
	return r.on.entries(ctx, `i.op = ?1 AND i.reference > ?2`+upTo+` AND (i.reference IN (`+places+`)
	OR i.state IN ('open', 'unknown') OR i.state <> 'executed' AND NOT i.closed OR i.settled_by >= ?3 AND i.time <= ?4)
ORDER BY i.reference LIMIT `+strconv.Itoa(pageSize), args...)
}

// inQuotes names the first of some numbers.
func inQuotes(numbers []string) string {
	var all []string
	for _, number := range numbers[:min(len(numbers), maxNamed)] {
		all = append(all, strconv.Quote(number))
	}
	if len(numbers) > maxNamed {
		all = append(all, "and more")
	}
	return strings.Join(all, ", ")
}
