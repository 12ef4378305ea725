package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/shopspring/decimal"
)

// filter says which orders are asked for.
type filter struct {
	State  string `json:"-"` // "": any
	Day    string `json:"-"` // on which they were created, in UTC; "": any
	Find   string `json:"-"` // numbers of orders or of the service, with spaces or commas between; "": any
	After  string `json:"-"` // the order before the first; "": there is none
	Before string `json:"-"` // the order after the last; "": see After
	Still  string `json:"-"` // "on": the page does not refresh, so that forms can be filled in
}

// listing are orders, and the addresses of those before and after them. What is still to be
// done comes with the oldest first, and what has ended with the newest.
type listing struct {
	filter
	Orders   []order `json:"payouts"`
	Next     string  `json:"next,omitempty"`
	Previous string  `json:"previous,omitempty"`
}

const (
	pageSize = 100
	mostFind = 500 // numbers at a time
)

// filterOf reads a filter from an address.
func filterOf(r *http.Request) (f filter, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return f, invalid("the address cannot be read: %v", err)
	}
	find := strings.TrimSpace(q.Get("find"))
	f = filter{q.Get("state"), q.Get("day"), find, q.Get("after"), q.Get("before"), q.Get("still")}
	_, wrongDay := time.Parse(time.DateOnly, cmp.Or(f.Day, time.DateOnly))
	switch {
	case f.State != "" && !slices.Contains(states, f.State):
		err = invalid("state must be one of %s", strings.Join(states, ", "))
	case wrongDay != nil:
		err = invalid("day must be a date, as in 2026-01-31")
	case !isText(f.Find, f.After, f.Before):
		err = errText
	case len(f.numbers()) > mostFind:
		err = invalid("at most %d numbers can be looked for at a time", mostFind)
	}
	return f, err
}

// At is the address of the filter's orders.
func (f filter) At(path string) string {
	q := url.Values{
		"state": {f.State}, "day": {f.Day}, "find": {f.Find}, "after": {f.After}, "before": {f.Before}, "still": {f.Still},
	}
	maps.DeleteFunc(q, func(_ string, values []string) bool { return values[0] == "" })
	return strings.TrimSuffix(path+"?"+q.Encode(), "?")
}

// AsStill is the filter of a page with forms.
func (f filter) AsStill() filter {
	f.Still = "on"
	return f
}

func (f filter) numbers() []string {
	return strings.FieldsFunc(f.Find, func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n", r) })
}

// selection is the condition of a query, with its arguments.
type selection struct {
	where string
	args  []any
}

// arg adds an argument, and returns what it is in the condition.
func (q *selection) arg(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// selection is the filter as a condition, without its place in the list.
func (f filter) selection() (q selection) {
	q.where = "TRUE"
	switch {
	case f.State == "":
	case slices.Contains(unended, f.State):
		q.where += " AND state = " + q.arg(f.State)
	default: // of which PostgreSQL's planner expects more than none
		q.where += " AND coalesce(state = " + q.arg(f.State) + ", FALSE)"
	}
	if f.Day != "" {
		day, _ := time.Parse(time.DateOnly, f.Day)
		q.where += " AND created_at >= " + q.arg(day) + " AND created_at < " + q.arg(day.AddDate(0, 0, 1))
	}
	var numbers []string
	for _, number := range f.numbers() {
		numbers = append(numbers, q.arg(number))
	}
	if in := strings.Join(numbers, ", "); in != "" {
		q.where += " AND order_no IN (SELECT order_no FROM payouts WHERE order_no IN (" + in + ")" +
			" UNION ALL SELECT reference FROM cardwire_intents" +
			" WHERE service_id <> '' AND op || '' = 'CreateTransfer' AND service_id IN (" + in + "))"
	}
	return q
}

// list returns at most so many of the orders that the filter is about. Path is that of the
// addresses.
func (s *service) list(ctx context.Context, f filter, path string, most int) (l listing, err error) {
	q := f.selection()
	among, err := s.among(ctx, f.State)
	if err != nil {
		return l, err
	}
	backward := f.Before != ""
	direction, comparison := " DESC", " < "
	if slices.Contains(unended, f.State) != backward {
		direction, comparison = " ASC", " > "
	}
	if place := cmp.Or(f.Before, f.After); place != "" {
		number := q.arg(place)
		q.where += " AND (created_at, order_no)" + comparison +
			"((SELECT created_at FROM payouts WHERE order_no = " + number + "), " + number + ")"
	}
	l.filter = f
	l.Orders, err = s.read(ctx, s.db, q.where+among+" ORDER BY created_at"+direction+", order_no"+direction+
		" LIMIT "+strconv.Itoa(most+1), q.args...)
	more := len(l.Orders) > most
	l.Orders = l.Orders[:min(most, len(l.Orders))]
	if backward {
		slices.Reverse(l.Orders)
	}
	if len(l.Orders) > 0 {
		first, last := l.filter, l.filter
		first.After, first.Before = "", l.Orders[0].Order
		last.After, last.Before = l.Orders[len(l.Orders)-1].Order, ""
		if more || backward {
			l.Next = last.At(path)
		}
		if backward && more || f.After != "" {
			l.Previous = first.At(path)
		}
	}
	return l, err
}

// listed are the orders that a request asks for.
func (s *service) listed(r *http.Request) (listing, error) {
	f, err := filterOf(r)
	if err != nil {
		return listing{}, err
	}
	return s.list(r.Context(), f, r.URL.Path, pageSize)
}

// total is how many orders are in a state, how much money they are, and since when the oldest is.
type total struct {
	State    string
	Currency string
	Orders   int64
	Cents    decimal.Decimal
	Since    moment
}

// Amount is the money in the currency's units.
func (t total) Amount() string { return t.Cents.Shift(-2).StringFixed(2) }

// totals sums up the orders of a condition, by state and currency.
func (s *service) totals(ctx context.Context, where string, args ...any) (all []total, err error) {
	err = sqlscan.Select(ctx, s.db, &all, `SELECT state, currency, count(*) AS orders,
	sum(CAST(replace(amount, '.', '') AS NUMERIC)) AS cents, min(changed_at) AS since
FROM payouts_states WHERE `+where+` GROUP BY state, currency`, args...)
	slices.SortFunc(all, func(a, b total) int {
		byState := slices.Index(states, a.State) - slices.Index(states, b.State)
		return cmp.Or(byState, strings.Compare(a.Currency, b.Currency))
	})
	return all, err
}

// liveTotals are those of the orders that have not ended.
func (s *service) liveTotals(ctx context.Context) ([]total, error) {
	all, err := s.totals(ctx, `order_no IN `+live)
	return slices.DeleteFunc(all, func(t total) bool { return !slices.Contains(unended, t.State) }), err
}

// countsOf returns how many orders are in each state: those that are not there are 0.
func countsOf(all []total) map[string]int64 {
	counts := map[string]int64{}
	for _, t := range all {
		counts[t.State] += t.Orders
	}
	return counts
}

// formula is what a spreadsheet would calculate, also where that is quoted already.
var formula = regexp.MustCompile(`^'*\s*[=+@-]`)

// guarded puts an apostrophe before what a spreadsheet would calculate.
func guarded(row []string) []string {
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

// export writes all orders of a filter as CSV. A file that ends early breaks the connection:
// half of the orders must not look like all.
func (s *service) export(w http.ResponseWriter, r *http.Request) (any, error) {
	f, err := filterOf(r)
	f.After, f.Before = "", ""
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(r.Context()) // it takes as long as it takes
	l, err := s.list(ctx, f, "", 10*pageSize)
	if err != nil {
		return nil, err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="orders.csv"`)
	out := csv.NewWriter(w)
	err = out.Write([]string{
		"order", "state", "amount", "currency", "service_id", "service_status", "note", "created_at", "changed_at",
	})
	for ; err == nil && len(l.Orders) > 0; l, err = s.list(ctx, f, "", 10*pageSize) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)) // of what has none
		for _, o := range l.Orders {
			_ = out.Write(guarded([]string{ // Flush says whether it failed
				o.Order, o.State, o.Amount, o.Currency, o.ServiceID, o.ServiceStatus, o.Note,
				o.CreatedAt.Format(time.RFC3339), o.ChangedAt.Format(time.RFC3339),
			}))
			f.After = o.Order
		}
		if out.Flush(); out.Error() != nil || l.Next == "" {
			err = out.Error()
			break
		}
	}
	if err != nil {
		s.log.ErrorContext(ctx, "an export ended early", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil, nil
}
