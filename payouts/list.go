package payouts

import (
	"bufio"
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/shopspring/decimal"
	"golang.org/x/text/unicode/norm"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
)

// filter says which orders are asked for.
type filter struct {
	State  string // "": any
	Day    string // on which they were created, in UTC; "": any
	Find   string // a number of an order or of the service, or several, one a line; "": any
	After  string // the order before the first; "": there is none
	Before string // the order after the last; "": see After
	Still  string // "on": the page does not refresh, so that forms can be filled in; "all": with all orders selected
	For    string // "spreadsheet": an export has numbers in the form that those leave as it is
}

// listing are orders, and the addresses of those before and after them. What is still to be
// done comes with the oldest first, and what has ended with the newest.
type listing struct {
	filter
	Orders   []order
	Next     string
	Previous string
	Missing  []string // of the numbers that were looked for
}

const (
	pageSize = 100
	maxFind  = 500 // numbers at a time
)

// filterOf reads a filter from an address.
func filterOf(r *http.Request) (f filter, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return f, invalid("the address cannot be read: %v", err)
	}
	find := strings.TrimSpace(q.Get("find"))
	f = filter{q.Get("state"), q.Get("day"), find, q.Get("after"), q.Get("before"), q.Get("still"), q.Get("for")}
	_, wrongDay := time.Parse(time.DateOnly, cmp.Or(f.Day, time.DateOnly))
	switch {
	case f.State != "" && !slices.Contains(states, f.State):
		err = invalid("state must be one of %s", strings.Join(states, ", "))
	case wrongDay != nil:
		err = invalid("day must be a date, as in 2026-01-31")
	case !isText(f.Find, f.After, f.Before):
		err = errText
	case len(f.numbers()) > maxFind:
		err = invalid("at most %d numbers can be looked for at a time", maxFind)
	}
	return f, err
}

// At is the address of the filter's orders.
func (f filter) At(path string) string {
	q := url.Values{
		"state": {f.State}, "day": {f.Day}, "find": {f.Find}, "after": {f.After}, "before": {f.Before}, "still": {f.Still},
		"for": {f.For},
	}
	maps.DeleteFunc(q, func(_ string, values []string) bool { return values[0] == "" })
	return path + "?" + q.Encode()
}

// ForSpreadsheets is the filter of an export that a spreadsheet reads.
func (f filter) ForSpreadsheets() filter {
	f.For = "spreadsheet"
	return f
}

// AsStill is the filter of a page with forms.
func (f filter) AsStill() filter {
	f.Still = "on"
	return f
}

// AllTicked is the filter of a page with forms, on which all orders are selected.
func (f filter) AllTicked() filter {
	f.Still = "all"
	return f
}

// numbers are what is looked for: the whole of each line, which may contain anything, and its parts.
func (f filter) numbers() []string {
	if f.Find == "" {
		return nil
	}
	all := slices.Concat(lines(f.Find), lines(pasted(f.Find)), pieces(pasted(f.Find)))
	slices.Sort(all)
	return slices.Compact(all)
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' })
}

func pieces(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n", r) })
}

// pasted is a text without what is copied with it: characters that nobody sees, and spaces of other kinds.
func pasted(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case unicode.Is(unicode.Zs, r):
			return ' '
		}
		return r
	}, norm.NFC.String(text))
}

// missing are the numbers that are looked for, and that no order and no transfer has.
func (s *Service) missing(ctx context.Context, f filter) (missing []string, err error) {
	numbers := f.numbers()
	if len(numbers) == 0 {
		return nil, nil
	}
	in := database.Placeholders(0, numbers)
	found, err := query(ctx, s, s.db, database.One[string], `SELECT order_no FROM @payouts WHERE order_no IN `+in+` UNION
SELECT service_id FROM @intents WHERE service_id <> '' AND op || '' = 'CreateTransfer' AND service_id IN `+in,
		database.Parameters(numbers)...)
	for i, line := range lines(pasted(f.Find)) {
		if raw := lines(f.Find); slices.Contains(found, strings.TrimSpace(line)) || slices.Contains(found, raw[min(i, len(raw)-1)]) {
			continue
		}
		for _, part := range pieces(line) {
			if !slices.Contains(found, part) && !slices.Contains(missing, part) {
				missing = append(missing, part)
			}
		}
	}
	return missing, err
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
func (s *Service) selection(f filter) (q selection) {
	q.where = "TRUE"
	if f.State != "" {
		q.where = "state = " + q.arg(f.State)
	}
	if f.Day != "" {
		day, _ := time.Parse(time.DateOnly, f.Day)
		q.where += " AND created_at >= " + q.arg(s.moment(day)) + " AND created_at < " + q.arg(s.moment(day.AddDate(0, 0, 1)))
	}
	if numbers := f.numbers(); len(numbers) > 0 {
		in := database.Placeholders(len(q.args), numbers)
		q.args = append(q.args, database.Parameters(numbers)...)
		q.where += " AND order_no IN (SELECT order_no FROM @payouts WHERE order_no IN " + in +
			" UNION ALL SELECT reference FROM @intents" +
			" WHERE service_id <> '' AND op || '' = 'CreateTransfer' AND service_id IN " + in + ")"
	}
	return q
}

// list returns at most so many of the orders that the filter is about. Path is that of the addresses. Where
// a state is asked for, it looks at the orders that were told to be in it, and those that have changed since.
func (s *Service) list(ctx context.Context, f filter, path string, most int) (l listing, err error) {
	q := s.selection(f)
	isBackward := f.Before != ""
	direction, comparison := " DESC", " < "
	if f.State != "" && !hasEnded(f.State) != isBackward || f.State == "" && isBackward {
		direction, comparison = " ASC", " > "
	}
	from, order := "", " ORDER BY created_at"+direction+", order_no"+direction+" LIMIT "+strconv.Itoa(most+1)
	if place := cmp.Or(f.Before, f.After); place != "" {
		number := q.arg(place)
		from = " AND (created_at, order_no)" + comparison +
			"((SELECT created_at FROM @payouts WHERE order_no = " + number + "), " + number + ")"
	}
	among := ""
	if f.State != "" && f.Find == "" && f.Day == "" {
		among = " AND order_no IN (SELECT order_no FROM (SELECT order_no FROM @payouts WHERE " +
			candidates(f.State) + from + order + ") few UNION SELECT order_no FROM @payouts_marks)"
	}
	l.filter = f
	l.Orders, err = s.read(ctx, s.db, q.where+from+among+order, q.args...)
	more := len(l.Orders) > most
	l.Orders = l.Orders[:min(most, len(l.Orders))]
	if isBackward {
		slices.Reverse(l.Orders)
	}
	if len(l.Orders) > 0 {
		first, last := l.filter, l.filter
		first.After, first.Before = "", l.Orders[0].Number
		last.After, last.Before = l.Orders[len(l.Orders)-1].Number, ""
		if more || isBackward {
			l.Next = last.At(path)
		}
		if isBackward && more || f.After != "" {
			l.Previous = first.At(path)
		}
	}
	return l, err
}

// candidates is the condition of orders that were last told to be in a state. Those that have changed since have a mark.
func candidates(state string) string {
	switch state {
	case StateQueued:
		return `told = '' AND order_no NOT IN @open`
	case StateSending:
		return `order_no IN @open`
	case StateUnresolved: // also by time alone
		return `order_no IN (SELECT order_no FROM @payouts WHERE told = 'unresolved'
	UNION SELECT order_no FROM @payouts WHERE told = '' AND order_no IN @open)`
	}
	return `told = '` + state + `'`
}

// total is how many orders are in a state, how much money they are, and since when the oldest is.
type total struct {
	State, Currency string
	Orders          int64
	Cents           decimal.Decimal
	Since           time.Time
}

// Amount is the money in the currency's units.
func (t total) Amount() string { return t.Cents.Shift(-2).StringFixed(2) }

// totals sums up the orders of a condition, by state and currency.
func (s *Service) totals(ctx context.Context, where string, args ...any) ([]total, error) {
	all, err := query(ctx, s, s.db, func(scan scan) (t total, err error) {
		err = scan(&t.State, &t.Currency, &t.Orders, &t.Cents, database.Moment(&t.Since))
		return t, err
	}, `SELECT state, currency, count(*), sum(CAST(replace(amount, '.', '') AS NUMERIC)), min(changed_at)
FROM @payouts_orders WHERE `+where+` GROUP BY state, currency`, args...)
	slices.SortFunc(all, func(a, b total) int {
		byState := slices.Index(states, a.State) - slices.Index(states, b.State)
		return cmp.Or(byState, strings.Compare(a.Currency, b.Currency))
	})
	return all, err
}

// liveTotals are those of the orders that have not ended.
func (s *Service) liveTotals(ctx context.Context) ([]total, error) {
	all, err := s.totals(ctx, `order_no IN @live`)
	return slices.DeleteFunc(all, func(t total) bool { return hasEnded(t.State) }), err
}

// countsOf returns how many orders are in each state: those that are not there are 0.
func countsOf(all []total) map[string]int64 {
	counts := map[string]int64{}
	for _, t := range all {
		counts[t.State] += t.Orders
	}
	return counts
}

// export writes all orders of a filter as CSV: numbers as they are, or in the form that spreadsheets leave as it is. A file that ends early breaks the connection:
// half of the orders must not look like all.
func (s *Service) export(q *request) (any, error) {
	f, err := filterOf(q.Request)
	f.After, f.Before = "", ""
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(q.ctx) // it takes as long as it takes
	l, err := s.list(ctx, f, "", 10*pageSize)
	if err != nil {
		return nil, err
	}
	q.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	q.w.Header().Set("Content-Disposition", `attachment; filename="orders.csv"`)
	out := bufio.NewWriter(q.w)
	number := func(text string) string { return text }
	if f.For == "spreadsheet" {
		number = statement.Number
	}
	_, err = out.WriteString("\ufefforder,state,amount,currency,service_id,service_status,reason,created_at,changed_at\n")
	for ; err == nil && len(l.Orders) > 0; l, err = s.list(ctx, f, "", 10*pageSize) {
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(time.Minute)) // of what has none
		for _, o := range l.Orders {
			_, _ = out.WriteString(statement.Row( // Flush says whether it failed
				number(o.Number), o.State, o.Amount.StringFixed(2), o.Currency, number(o.ServiceID), o.ServiceStatus, o.Reason,
				o.CreatedAt.Format(time.RFC3339), o.ChangedAt.Format(time.RFC3339),
			))
			f.After = o.Number
		}
		if err = out.Flush(); err != nil || l.Next == "" {
			break
		}
	}
	if err != nil {
		s.log.ErrorContext(ctx, "an export ended early", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil, nil
}
