package payouts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/database"
)

// Filter chooses orders; the zero value chooses all.
type Filter struct {
	// State is that of the orders; "": any.
	State State
	// Live chooses those that have not ended.
	Live bool
	// From is the first moment at which they were created; zero: any.
	From time.Time
	// Until is the moment before which they were created; zero: any.
	Until time.Time
	// Numbers are of orders or of the service, at most 500; none: any.
	Numbers []string
	// After is [Page].Next, for the page after that one; "": the first page.
	After string
	// Before is [Page].Previous, for the page before that one; "": see After.
	Before string
	// Limit is how many orders a page has at most; 0: 100.
	Limit int
}

// Page is a part of the orders of a filter. Orders of a state that is no end come oldest first; those that have ended, and
// those of any state, newest first.
type Page struct {
	// Orders are at most Limit.
	Orders []Order
	// Next is the Filter's After of the next page; "": this is the last.
	Next string
	// Previous is the Filter's Before of the page before this one; "": this is the first.
	Previous string
	// Missing are the Filter's Numbers that no order and no transfer has.
	Missing []string
}

const maxNumbers = 500 // of a filter

// check reports what no database can be asked for.
func (f Filter) check() error {
	switch {
	case f.State != "" && !slices.Contains(states, f.State):
		return invalid("State must be one of %q", states)
	case len(f.Numbers) > maxNumbers:
		return invalid("Numbers must be at most %d", maxNumbers)
	case !isText(append(slices.Clone(f.Numbers), f.After, f.Before)...):
		return errText
	}
	return nil
}

// Orders returns a page of the orders of a filter, or an error that is cardwire.ErrInvalidParams. Where a state is asked
// for, it looks at the orders that were told to be in it, and those that have changed since.
func (s *Service) Orders(ctx context.Context, f Filter) (p Page, err error) {
	if err := f.check(); err != nil {
		return p, err
	}
	q, most := s.selection(f), cmp.Or(f.Limit, 100)
	isBackward := f.Before != ""
	where := q.where + q.placed(f, most)
	found, err := s.read(ctx, s.db, where, q.args...)
	if err == nil {
		p.Missing, err = s.missing(ctx, f.Numbers)
	}
	isMore := len(found) > most
	if found = found[:min(most, len(found))]; len(found) == 0 {
		return p, err
	}
	if isBackward {
		slices.Reverse(found)
	}
	for _, o := range found {
		p.Orders = append(p.Orders, o.Order)
	}
	if isMore || isBackward {
		p.Next = found[len(found)-1].Number
	}
	if isBackward && isMore || f.After != "" {
		p.Previous = found[0].Number
	}
	return p, err
}

// missing are the numbers that no order and no transfer has.
func (s *Service) missing(ctx context.Context, numbers []string) ([]string, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	in := database.Placeholders(0, numbers)
	found, err := query(ctx, s, s.db, database.One[string], `SELECT order_no FROM @payouts WHERE order_no IN `+in+` UNION
SELECT service_id FROM @intents WHERE service_id <> '' AND op || '' = 'CreateTransfer' AND service_id IN `+in,
		database.Parameters(numbers)...)
	return slices.DeleteFunc(slices.Clone(numbers), func(n string) bool { return slices.Contains(found, n) }), err
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
func (s *Service) selection(f Filter) (q selection) {
	q.where = "TRUE"
	if f.State != "" {
		q.where = "state = " + q.arg(string(f.State))
	}
	if f.Live {
		q.where += ` AND order_no IN @live AND state IN ('queued', 'sending', 'unresolved')`
	}
	if !f.From.IsZero() {
		q.where += " AND created_at >= " + q.arg(s.moment(f.From))
	}
	if !f.Until.IsZero() {
		q.where += " AND created_at < " + q.arg(s.moment(f.Until))
	}
	if len(f.Numbers) > 0 {
		in := database.Placeholders(len(q.args), f.Numbers)
		q.args = append(q.args, database.Parameters(f.Numbers)...)
		q.where += " AND order_no IN (SELECT order_no FROM @payouts WHERE order_no IN " + in +
			" UNION ALL SELECT reference FROM @intents" +
			" WHERE service_id <> '' AND op || '' = 'CreateTransfer' AND service_id IN " + in + ")"
	}
	return q
}

// placed is the filter's place in the list, with one order more than are asked for.
func (q *selection) placed(f Filter, most int) string {
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
	if f.State != "" && len(f.Numbers) == 0 && f.From.IsZero() && f.Until.IsZero() {
		among = " AND order_no IN (SELECT order_no FROM (SELECT order_no FROM @payouts WHERE " +
			candidates(f.State) + from + order + ") few UNION SELECT order_no FROM @payouts_marks)"
	}
	return from + among + order
}

// candidates is the condition of orders that may be in a state: those that were last told so. The others that may be have
// a mark, since they have changed.
func candidates(state State) string {
	switch state {
	case StateQueued:
		return `told = '' AND order_no NOT IN @open`
	case StateSending:
		return `order_no IN @open`
	case StateUnresolved: // also by time alone
		return `order_no IN (SELECT order_no FROM @payouts WHERE told = 'unresolved'
	UNION SELECT order_no FROM @payouts WHERE told = '' AND order_no IN @open)`
	}
	return fmt.Sprintf(`told = '%s'`, state)
}

// Total is how many orders are in a state, and how much money they are.
type Total struct {
	// State is that of the orders.
	State State
	// Currency is the payout currency, as in EUR.
	Currency string
	// Orders is how many they are.
	Orders int64
	// Amount is the sum of the orders' amounts, in units of Currency.
	Amount decimal.Decimal
	// Since is when the first of them changed last.
	Since time.Time
}

// Totals sums up the orders of a filter, whatever its After, Before and Limit, by state and currency. An error may be
// cardwire.ErrInvalidParams. Of many orders it takes seconds, unless they are Live or of a few days.
func (s *Service) Totals(ctx context.Context, f Filter) ([]Total, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	q := s.selection(f)
	all, err := query(ctx, s, s.db, func(scan scan) (t Total, err error) {
		err = scan(&t.State, &t.Currency, &t.Orders, &t.Amount, database.Moment(&t.Since))
		t.Amount = t.Amount.Shift(-2)
		return t, err
	}, `SELECT state, currency, count(*), sum(CAST(replace(amount, '.', '') AS NUMERIC)), min(changed_at)
FROM @payouts_orders WHERE `+q.where+` GROUP BY state, currency`, q.args...)
	slices.SortFunc(all, func(a, b Total) int {
		byState := slices.Index(states, a.State) - slices.Index(states, b.State)
		return cmp.Or(byState, strings.Compare(a.Currency, b.Currency))
	})
	return all, err
}

// liveTotals are those of the orders that have not ended.
func (s *Service) liveTotals(ctx context.Context) ([]Total, error) {
	return s.Totals(ctx, Filter{Live: true})
}

// countsOf returns how many orders are in each state: those that are not there are 0.
func countsOf(all []Total) map[State]int64 {
	counts := map[State]int64{}
	for _, t := range all {
		counts[t.State] += t.Orders
	}
	return counts
}
