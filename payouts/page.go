package payouts

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
)

//go:embed static
var static embed.FS

//go:embed templates
var templates embed.FS

const timeLayout = "2006-01-02 15:04:05"

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"time":  func(t time.Time) string { return t.UTC().Format(timeLayout) },
	"after": after,
	"age":   age,
	"order": addressOf,
	"money": func(o order) string { return o.Amount.StringFixed(2) + " " + o.Currency },
	"now":   func() string { return time.Now().UTC().Format(timeLayout) },
	"totals": func(caption string, all []total) map[string]any {
		return map[string]any{"Caption": caption, "Totals": all}
	},
}).ParseFS(templates, "templates/*.html"))

// after is the first whole second behind a time.
func after(t time.Time) string { return t.UTC().Add(time.Second).Format(timeLayout) }

// age says how long something takes, or ago something is.
func age(d time.Duration) string {
	units := []struct {
		name string
		long time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}}
	for _, u := range units {
		if d >= 2*u.long {
			return strconv.Itoa(int(d/u.long)) + " " + u.name
		}
	}
	return strconv.Itoa(int(max(d, 0)/time.Second)) + " s"
}

// page is what a template is given.
type page struct {
	listing
	Template string
	JSON     any      // what a program gets instead
	Problem  *problem // of problem.html
	Queue    progress
	Tabs     []string // states that have orders, and unresolved
	OfDay    []total  // of the chosen day
	Compared []event  // on hold: the statements of which it was recorded since what they prove
	Refresh  bool     // by itself: nothing is filled in here
	Order    order
	Upload   *upload // of statement.html
	History  []event
	Found    resolution // to be confirmed
	Failures []failure  // of orders that were to be resolved
	User     string     // who is signed in; "": nobody has to
	Of       string     // the account, or where the service is
}

// failure is why an order was not resolved.
type failure struct{ Order, Why string }

// Asked reports that several orders can be resolved here.
func (p page) Asked() bool {
	return p.Still != "" && p.State == StateUnresolved
}

// Counts are how many orders are in each state that is no end.
func (p page) Counts() map[string]int64 { return countsOf(p.Queue.Live) }

// Money is that of the page's orders.
func (p page) Money() statement.Money {
	sum := statement.Money{}
	for _, o := range p.Orders {
		sum.Add(o.Amount, o.Currency)
	}
	return sum
}

// listPage shows the orders of a filter, and how far the queue is.
func (s *Service) listPage(q *request) (any, error) {
	f, err := filterOf(q.Request)
	if err != nil {
		return nil, err
	}
	l, err := s.list(q.ctx, f, "./", pageSize)
	if err == nil {
		l.Missing, err = s.missing(q.ctx, f)
	}
	if err != nil {
		return nil, err
	}
	orders := []Order{} // an empty one is [] in JSON
	for _, o := range l.Orders {
		orders = append(orders, o.Order)
	}
	p := page{
		Template: "list.html", listing: l, Refresh: l.Still == "",
		JSON: map[string]any{"orders": orders, "next": l.Next, "previous": l.Previous},
	}
	if len(l.Missing) > 0 {
		p.JSON = map[string]any{"orders": orders, "next": l.Next, "previous": l.Previous, "missing": l.Missing}
	}
	if l.Day != "" {
		q2 := s.selection(filter{Day: l.Day})
		if p.OfDay, err = s.totals(q.ctx, q2.where, q2.args...); err != nil {
			return nil, err
		}
	}
	ended, err := query(q.ctx, s, s.db, database.One[string], `SELECT column1 FROM (
	VALUES ('`+strings.Join(endedStates, "'), ('")+`')) AS v WHERE EXISTS (SELECT 1 FROM @payouts WHERE told = column1)`)
	if err != nil {
		return nil, err
	}
	if p.Queue, err = s.progress(q.ctx); err == nil && p.Queue.Kind == onHold {
		p.Compared, err = s.events(q.ctx, "", p.Queue.Since)
	}
	for _, state := range states {
		if p.Counts()[state] > 0 || state == StateUnresolved || state == f.State || slices.Contains(ended, state) {
			p.Tabs = append(p.Tabs, state)
		}
	}
	return p, err
}

// orderPage shows one order, with what both tables know of it, and those beside it.
func (s *Service) orderPage(q *request) (any, error) {
	o, err := s.find(q.ctx, s.db, q.URL.Query().Get("number"))
	if err != nil {
		return nil, err
	}
	p := page{Template: "order.html", Order: o, JSON: o.Order}
	p.Still = q.URL.Query().Get("still")
	p.Refresh = o.State == StateSending && p.Still == ""
	if !isBrowser(q.Request) {
		return p, nil
	}
	if p.History, err = s.history(q.ctx, o); err != nil {
		return nil, err
	}
	for f, beside := range map[filter]*string{
		{State: o.State, Before: o.Number}: &p.Previous,
		{State: o.State, After: o.Number}:  &p.Next,
	} {
		l, err := s.list(q.ctx, f, "", 1)
		if err != nil {
			return nil, err
		}
		if len(l.Orders) > 0 {
			*beside = string(addressOf(l.Orders[0].Number))
		}
	}
	return p, nil
}

// postResolutions records what a person found out about one order or several, each for
// itself. To pay again is asked once more, with the amounts and who gets them.
func (s *Service) postResolutions(q *request) (any, error) {
	var chosen []string // each is a call and the order's number
	var sure string
	var found resolution
	var err error
	found.By, found.Why, err = q.form(map[string]any{
		"order": &chosen, "sure": &sure, "outcome": &found.Outcome, "service_id": &found.ServiceID, "as_of": &found.AsOf,
	})
	if err == nil {
		err = found.check(chosen)
	}
	if err != nil {
		return nil, err
	}
	p := page{Template: "problem.html", Found: found}
	for _, one := range chosen {
		var number string
		found.Call, number, _ = strings.Cut(one, " ")
		if found.Outcome == "send_again" && sure == "" && isBrowser(q.Request) {
			p.Template = "confirm.html"
			p.Order, err = s.find(q.ctx, s.db, number)
			p.Order.Call = found.Call
			p.Orders = append(p.Orders, p.Order)
		} else {
			p.Order, err = s.resolve(q.ctx, number, found)
		}
		if err != nil && len(chosen) == 1 {
			return nil, err
		}
		if err != nil {
			p.Failures = append(p.Failures, failure{number, s.problemOf(q.Request, err).Detail})
		}
	}
	switch {
	case len(p.Failures) > 0:
		p.Template = "problem.html"
		p.Problem = newProblem(http.StatusConflict, "%d of %d were not recorded", len(p.Failures), len(chosen))
		return p, nil
	case p.Template == "confirm.html":
		return p, nil
	case len(chosen) == 1:
		return p.Order, nil
	}
	return address("./?state=unresolved"), nil
}

func (r resolution) check(chosen []string) error {
	outcome, ok := outcomes[r.Outcome]
	switch {
	case len(chosen) == 0:
		return invalid("choose the orders first")
	case !ok:
		return invalid("the outcome must be executed, not_executed, send_again, paid or returned")
	case r.ServiceID != "" && (outcome != outcomes["executed"] || len(chosen) > 1):
		return invalid("service_id is only for one order that was executed")
	}
	return nil
}

// render writes a page when it is whole, and none if it cannot be.
func (s *Service) render(q *request, p page) error {
	p.User, p.Of = q.user, s.config.Account
	if p.Of == "" {
		base, _ := url.Parse(s.base) // it is one
		p.Of = base.Host
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, p.Template, p); err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.Problem != nil {
		q.w.WriteHeader(p.Problem.Status)
	}
	_, _ = b.WriteTo(q.w) // a browser that left gets no page
	return nil
}

func serveStatic(q *request) (any, error) {
	http.ServeFileFS(q.w, q.Request, static, "static/"+path.Base(q.URL.Path))
	return nil, nil
}
