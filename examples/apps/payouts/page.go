package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"golang.org/x/time/rate"
)

//go:embed static
var static embed.FS

//go:embed templates
var templates embed.FS

const seconds = "2006-01-02 15:04:05"

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"time":   func(t moment) string { return t.UTC().Format(seconds) },
	"after":  func(t moment) string { return t.UTC().Add(time.Second).Format(seconds) },
	"age":    age,
	"path":   url.PathEscape,
	"states": func() []string { return states },
	"totals": func(caption string, all []total) map[string]any {
		return map[string]any{"Caption": caption, "Totals": all}
	},
}).ParseFS(templates, "templates/*.html"))

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
	Problem  *problem // of problem.html
	Queue    progress
	OfDay    []total  // of the chosen day
	Held     []string // orders that a form is about
	Seen     string   // which these are
	Refresh  bool     // by itself: nothing is filled in here
	Order    order
	Upload   *upload // of statement.html
	History  []event
	Found    resolution // to be confirmed
	Failures []failure  // of orders that were to be resolved
	User     string     // who is signed in; "": nobody has to
	Of       string     // where the service is
}

// failure is why an order was not resolved.
type failure struct{ Order, Why string }

// Asked reports that several orders can be resolved here.
func (p page) Asked() bool { return p.Still != "" && slices.ContainsFunc(p.Orders, order.Unknown) }

// Counts are how many orders are in each state that is no end.
func (p page) Counts() map[string]int64 { return countsOf(p.Queue.Live) }

// Money is that of the page's orders.
func (p page) Money() money {
	sum := money{}
	for _, o := range p.Orders {
		amount, _ := decimal.NewFromString(o.Amount) // it was one
		sum.add(amount, o.Currency)
	}
	return sum
}

// signIn requires the password, if there is one. Without it only this machine is served. Who
// gives a wrong one waits: one a second is told so.
func (s *service) signIn(next http.Handler, password string) http.Handler {
	if password == "" {
		return secured(next, isLoopback)
	}
	failures := rate.NewLimiter(1, 3)
	return secured(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, tried := r.BasicAuth()
		admitted := user != "" && subtle.ConstantTimeCompare([]byte(given), []byte(password)) == 1
		if admitted || r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		if tried {
			ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
			defer cancel()
			if failures.Wait(ctx) == nil {
				s.log.WarnContext(ctx, "a sign-in failed", "from", r.RemoteAddr) // a name may be a password
			} else { // of too many at once none is told sooner
				<-ctx.Done()
			}
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="payouts"`)
		http.Error(w, "Sign in with your name and the password.", http.StatusUnauthorized)
	}), func(string) bool { return true })
}

// listPage shows the orders of a filter, and how far the queue is.
func (s *service) listPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.listed(r)
	if err != nil {
		return nil, err
	}
	p := page{Template: "list.html", listing: l, Refresh: l.Still == ""}
	if l.Day != "" {
		q := filter{Day: l.Day}.selection()
		if p.OfDay, err = s.totals(r.Context(), q.where, q.args...); err != nil {
			return nil, err
		}
	}
	if p.Queue, err = s.progress(r.Context()); err != nil {
		return nil, err
	}
	if l.Still != "" {
		p.Held, p.Seen, err = s.heldNumbers(r.Context())
	}
	return p, err
}

// orderPage shows one order, with what both tables know of it, and those beside it.
func (s *service) orderPage(_ http.ResponseWriter, r *http.Request) (_ any, err error) {
	p := page{Template: "order.html"}
	if p.Order, err = s.seen(r.Context(), r.PathValue("order")); err != nil {
		return nil, err
	}
	if p.History, err = s.history(r.Context(), p.Order); err != nil {
		return nil, err
	}
	for f, beside := range map[filter]*string{
		{State: p.Order.State, Before: p.Order.Order}: &p.Previous,
		{State: p.Order.State, After: p.Order.Order}:  &p.Next,
	} {
		l, err := s.list(r.Context(), f, "", 1)
		if err != nil {
			return nil, err
		}
		if len(l.Orders) > 0 {
			*beside = string(addressOf(l.Orders[0].Order))
		}
	}
	p.Refresh = p.Order.State == sending
	return p, nil
}

// postResolutions records what a person found out about one order or several, each for
// itself. To pay again is asked once more, with the amounts and who gets them.
func (s *service) postResolutions(_ http.ResponseWriter, r *http.Request) (any, error) {
	var all, sure string
	var chosen, listed []string // each is a call and the order's number
	var found resolution
	err := found.decode(r, map[string]any{"order": &chosen, "listed": &listed, "all": &all, "sure": &sure})
	if all != "" {
		chosen = listed
	}
	if err == nil && len(chosen) == 0 {
		err = invalid("choose the orders first")
	}
	if err != nil {
		return nil, err
	}
	if found.Outcome == "send_again" && sure == "" {
		return s.confirm(r.Context(), chosen, found)
	}
	p := page{Template: "problem.html"}
	for _, one := range chosen {
		call, number, _ := strings.Cut(one, " ")
		found.Call = call
		p.Order, err = s.resolve(r.Context(), number, found)
		if err == nil {
			continue
		}
		if len(chosen) == 1 {
			return nil, err
		}
		p.Failures = append(p.Failures, failure{number, s.problemOf(r, err).Detail})
	}
	switch {
	case len(p.Failures) > 0:
		p.Problem = newProblem(http.StatusConflict, "%d of %d were not recorded", len(p.Failures), len(chosen))
		return p, nil
	case len(chosen) == 1:
		return addressOf(p.Order.Order), nil
	}
	return address("/?state=unresolved"), nil
}

// confirm asks once more before orders are paid again.
func (s *service) confirm(ctx context.Context, chosen []string, found resolution) (any, error) {
	p := page{Template: "confirm.html", Found: found}
	for _, one := range chosen {
		call, number, _ := strings.Cut(one, " ")
		o, err := s.seen(ctx, number)
		if err != nil {
			return nil, err
		}
		o.Call = call
		p.Orders = append(p.Orders, o)
	}
	return p, nil
}

// render writes a page when it is whole, and none if it cannot be.
func (s *service) render(w http.ResponseWriter, r *http.Request, p page) error {
	p.User, _, _ = r.BasicAuth()
	_, p.Of, _ = strings.Cut(s.of, "://")
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, p.Template, p); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.Problem != nil {
		w.WriteHeader(p.Problem.Status)
	}
	_, _ = b.WriteTo(w) // a browser that left gets no page
	return nil
}
