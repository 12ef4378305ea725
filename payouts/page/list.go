package page

import (
	"bufio"
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/cardwire/cardwire-go/payouts"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
)

// filter says which orders are asked for.
type filter struct {
	State  payouts.State // "": any
	Day    string        // on which they were created, in UTC; "": any
	Find   string        // a number of an order or of the service, or several, one a line; "": any
	After  string        // the order before the first; "": there is none
	Before string        // the order after the last; "": see After
	Still  string        // "on": the page does not refresh, so that forms can be filled in; "all": with all orders selected
	For    string        // "spreadsheet": an export has numbers in the form that those leave as it is
}

// states are those of the tabs.
var states = []payouts.State{
	payouts.StateQueued, payouts.StateSending, payouts.StateUnresolved, payouts.StateSubmitted, payouts.StateFailed,
	payouts.StateCanceled, payouts.StatePaid, payouts.StateReturned,
}

// filterOf reads a filter from an address.
func filterOf(r *http.Request) (f filter, asked payouts.Filter, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return f, asked, invalid("the address cannot be read: %v", err)
	}
	f = filter{
		payouts.State(q.Get("state")), q.Get("day"), strings.TrimSpace(q.Get("find")), q.Get("after"), q.Get("before"),
		q.Get("still"), q.Get("for"),
	}
	asked = payouts.Filter{State: f.State, After: f.After, Before: f.Before, Numbers: f.numbers()}
	if f.Day != "" {
		if asked.From, err = time.Parse(time.DateOnly, f.Day); err != nil {
			return f, asked, invalid("day must be a date, as in 2026-01-31")
		}
		asked.Until = asked.From.AddDate(0, 0, 1)
	}
	return f, asked, nil
}

// At is the address of the filter's orders.
func (f filter) At(path string) string {
	q := url.Values{
		"state": {string(f.State)}, "day": {f.Day}, "find": {f.Find}, "after": {f.After}, "before": {f.Before},
		"still": {f.Still}, "for": {f.For},
	}
	maps.DeleteFunc(q, func(_ string, values []string) bool { return values[0] == "" })
	return path + "?" + q.Encode()
}

// ForSpreadsheets is the filter of an export that a spreadsheet reads.
func (f filter) ForSpreadsheets() filter {
	f.For = "spreadsheet"
	return f
}

// As is the filter of a page with forms.
func (f filter) As(still string) filter {
	f.Still = still
	return f
}

// beside is the address of the page after an order, or before one; "": there is none.
func (f filter) beside(after, before string) string {
	if after == before { // both are empty
		return ""
	}
	f.After, f.Before = after, before
	return f.At("./")
}

// numbers are what is looked for: the whole of each line, which may contain anything, and its parts.
func (f filter) numbers() []string {
	all := slices.Concat(lines(f.Find), lines(pasted(f.Find)), pieces(pasted(f.Find)))
	slices.Sort(all)
	return slices.Compact(all)
}

func lines(text string) (all []string) {
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
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

// missing are the numbers that are looked for, and that are not there, as a whole line or as a part of one.
func (f filter) missing(unknown []string) (missing []string) {
	isThere := func(number string) bool { return !slices.Contains(unknown, number) }
	for i, line := range lines(pasted(f.Find)) {
		if raw := lines(f.Find); isThere(line) || isThere(raw[min(i, len(raw)-1)]) {
			continue
		}
		for _, part := range pieces(line) {
			if !isThere(part) && !slices.Contains(missing, part) {
				missing = append(missing, part)
			}
		}
	}
	return missing
}

// listPage shows the orders of a filter, and how far the queue is.
func (h *handler) listPage(q *request) (any, error) {
	f, asked, err := filterOf(q.Request)
	if err != nil {
		return nil, err
	}
	found, err := h.svc.Orders(q.ctx, asked)
	if err != nil {
		return nil, err
	}
	p := page{
		Template: "list.html", filter: f, Orders: found.Orders, Missing: f.missing(found.Missing), Refresh: f.Still == "",
		Next: f.beside(found.Next, ""), Previous: f.beside("", found.Previous), Tabs: states,
	}
	list := map[string]any{"orders": append([]payouts.Order{}, p.Orders...), "next": p.Next, "previous": p.Previous}
	if len(p.Missing) > 0 {
		list["missing"] = p.Missing
	}
	if p.JSON = list; !isBrowser(q.Request) {
		return p, nil
	}
	if f.Day != "" {
		p.OfDay, err = h.svc.Totals(q.ctx, payouts.Filter{From: asked.From, Until: asked.Until})
	}
	if err == nil {
		p.Queue, err = h.queue(q.ctx)
	}
	return p, err
}

const exported = 1000 // orders that are read at a time

// export writes all orders of a filter as CSV: numbers as they are, or in the form that spreadsheets leave as it is. A file that
// ends early breaks the connection: half of the orders must not look like all.
func (h *handler) export(q *request) (any, error) {
	f, asked, err := filterOf(q.Request)
	if err != nil {
		return nil, err
	}
	asked.After, asked.Before, asked.Limit = "", "", exported
	ctx := context.WithoutCancel(q.ctx) // it takes as long as it takes
	found, err := h.svc.Orders(ctx, asked)
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
	for ; err == nil && len(found.Orders) > 0; found, err = h.svc.Orders(ctx, asked) {
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(time.Minute)) // of what has none
		for _, o := range found.Orders {
			_, _ = out.WriteString(statement.Row( // Flush says whether it failed
				number(o.Number), string(o.State), o.Amount.StringFixed(2), o.Currency, number(o.ServiceID), o.ServiceStatus,
				o.Reason, o.CreatedAt.Format(time.RFC3339), o.ChangedAt.Format(time.RFC3339),
			))
		}
		asked.After = found.Next
		if err = out.Flush(); err != nil || asked.After == "" {
			break
		}
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		h.log.ErrorContext(ctx, "an export ended early", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil, nil
}
