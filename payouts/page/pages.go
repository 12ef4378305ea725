package page

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/payouts"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
)

//go:embed static
var static embed.FS

//go:embed templates
var templates embed.FS

const timeLayout = "2006-01-02 15:04:05 UTC"

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"time":   inUTC,
	"after":  func(t time.Time) string { return inUTC(t.Add(time.Second)) }, // the first whole second behind it
	"now":    func() string { return inUTC(time.Now()) },
	"exact":  func(t time.Time) string { return t.Format(time.RFC3339Nano) },
	"age":    func(t time.Time) string { return age(time.Since(t)) },
	"order":  addressOf,
	"choice": choiceOf,
	"money":  func(o payouts.Order) string { return o.Amount.StringFixed(2) + " " + o.Currency },
	"look": func(o payouts.Order) bool { // the status of an accepted order is undocumented
		return o.State == payouts.StateSubmitted && o.ServiceStatus != "" && o.ServiceStatus != string(cardwire.TransferWaitProcess)
	},
	"totals": func(caption string, all []payouts.Total) map[string]any {
		return map[string]any{"Caption": caption, "Totals": all}
	},
}).ParseFS(templates, "templates/*.html"))

func inUTC(t time.Time) string { return t.UTC().Format(timeLayout) }

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
	filter
	payouts.Details
	Orders   []payouts.Order
	Payees   []string // of Orders, where to pay again is to be confirmed
	Missing  []string // of the numbers that were looked for
	Next     string   // the address of the next page; "": this is the last
	Previous string
	Template string
	JSON     any      // what a program gets instead
	Problem  *problem // of problem.html
	Queue    queue
	Tabs     []payouts.State
	OfDay    []payouts.Total // of the chosen day
	Refresh  bool            // by itself: nothing is filled in here
	Upload   *upload         // of statement.html
	Found    payouts.Resolution
	Failures []failure // of orders that were to be resolved
	User     string    // who is signed in; "": nobody has to
	Of       string    // the account, or where the service is
}

// failure is why an order was not resolved.
type failure struct{ Order, Why string }

// Asked reports that several orders can be resolved here.
func (p page) Asked() bool { return p.Still != "" && p.State == payouts.StateUnresolved }

// May reports whether an outcome can be recorded of the order.
func (p page) May(outcome string) bool { return slices.Contains(p.Outcomes, outcome) }

// Money is that of the page's orders.
func (p page) Money() statement.Money {
	sum := statement.Money{}
	for _, o := range p.Orders {
		sum.Add(o.Amount, o.Currency)
	}
	return sum
}

// queue is how far the queue is.
type queue struct {
	Paused  string    `json:"paused,omitempty"` // why nothing is sent; "": it is
	Kind    string    `json:"kind,omitempty"`
	Since   time.Time `json:"since,omitzero"` // which names the pause
	Floor   time.Time `json:"floor,omitzero"` // of a hold: it is not released before
	Waiting int64     `json:"waiting"`        // orders that are to be sent

	Idle        time.Time `json:"idle,omitzero"`         // since when no replica has worked
	Untold      int64     `json:"untold,omitempty"`      // orders of which Changed has not been told
	UntoldSince time.Time `json:"untold_since,omitzero"` // the oldest of these changes

	Live    []payouts.Total `json:"-"` // of what has not ended
	History []payouts.Event `json:"-"` // since nothing is sent
}

// Count is how many orders are in a state that is no end.
func (u queue) Count(state payouts.State) (n int64) {
	for _, t := range u.Live {
		if t.State == state {
			n += t.Orders
		}
	}
	return n
}

func (h *handler) queue(ctx context.Context) (u queue, err error) {
	status, err1 := h.svc.Status(ctx)
	live, err2 := h.svc.Totals(ctx, payouts.Filter{Live: true})
	u = queue{
		Paused: status.Why, Kind: status.Kind, Since: status.Since, Floor: status.Floor, Live: live, History: status.History,
		Idle: status.Idle, Untold: status.Untold, UntoldSince: status.UntoldSince,
	}
	u.Waiting = u.Count(payouts.StateQueued)
	if !status.Until.IsZero() {
		u.Paused += "; the next try is at " + inUTC(status.Until) + ", and at once after Resume"
	}
	return u, errors.Join(err1, err2)
}

// orderPage shows one order, with what both tables know of it, and those beside it.
func (h *handler) orderPage(q *request) (any, error) {
	d, err := h.svc.Details(q.ctx, q.URL.Query().Get("number"))
	if err != nil {
		return nil, err
	}
	o := d.Order
	o.Reason = d.Reason
	p := page{Template: "order.html", Details: d, JSON: o}
	p.Still = q.URL.Query().Get("still")
	p.Refresh = o.State == payouts.StateSending && p.Still == ""
	if !isBrowser(q.Request) {
		return p, nil
	}
	for f, beside := range map[*payouts.Filter]*string{
		{State: o.State, Before: o.Number, Limit: 1}: &p.Previous,
		{State: o.State, After: o.Number, Limit: 1}:  &p.Next,
	} {
		found, err := h.svc.Orders(q.ctx, *f)
		if err != nil {
			return nil, err
		}
		if len(found.Orders) > 0 {
			*beside = string(addressOf(found.Orders[0].Number))
		}
	}
	return p, nil
}

// render writes a page when it is whole, and none if it cannot be.
func (h *handler) render(q *request, p page) error {
	status, _ := h.svc.Status(q.ctx) // the service is known without the database
	service, _ := url.Parse(status.Service)
	p.User, p.Of = q.user, cmp.Or(status.Account, service.Host)
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
