package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/sqljournal"
)

//go:embed static templates
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"path": url.PathEscape,
	"who": func(p page, id, hint string) map[string]string {
		return map[string]string{"User": p.User, "ID": id, "Hint": hint}
	},
}).ParseFS(files, "templates/*.html"))

// page is what a template is given.
type page struct {
	Problem    string // what went wrong with a form; "": nothing
	State      string // that is listed; "": all
	Stopped    string // why nothing is sent; "": it is
	Counts     []count
	Orders     []order
	Next       string // the address of the next page; "": there is none
	Order      order
	Question   string // to ask support; "": there is nothing to ask
	NotBefore  string // when "not executed" is believed; "": now
	Ledger     string // the number that the fake service has for the order; "": none
	History    []event
	User       string // who is signed in; "": nobody has to
	Fake       bool
	FakeFaults []fakeFault // what the fake service can be made to do
}

func (s *service) routes(password string) http.Handler {
	mux := http.NewServeMux()
	s.api(mux)
	static, _ := fs.Sub(files, "static") // fails only for an invalid path
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	mux.HandleFunc("GET /{$}", s.listPage)
	mux.HandleFunc("GET /orders/{order}", func(w http.ResponseWriter, r *http.Request) { s.orderPage(w, r, http.StatusOK, "") })
	mux.HandleFunc("POST /orders/{order}/resolve", s.form(func(ctx context.Context, r *http.Request) error {
		outcome, again := strings.CutSuffix(r.PostForm.Get("outcome"), "+send_again")
		_, err := s.resolve(ctx, r.PathValue("order"), resolution{
			Try: r.PostForm.Get("try"), Outcome: outcome, SendAgain: again, ServiceID: r.PostForm.Get("service_id"),
			By: signedIn(r, r.PostForm.Get("by")), Why: r.PostForm.Get("why"),
		})
		return err
	}))
	mux.HandleFunc("POST /orders/{order}/cancel", s.form(func(ctx context.Context, r *http.Request) error {
		_, err := s.cancel(ctx, r.PathValue("order"), signedIn(r, r.PostForm.Get("by")), r.PostForm.Get("why"))
		return err
	}))
	if s.fake != nil {
		mux.HandleFunc("POST /sample", s.sample)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &statusError{http.StatusNotFound, errors.New("there is no such page or operation")})
	})
	return secured(http.NewCrossOriginProtection().Handler(mux), password)
}

// secured keeps browsers from doing what no page here needs, and lets in who has the
// password. Without one, only browsers of this machine come: another site may give its
// own name this address, so other hosts are refused.
func secured(next http.Handler, password string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if password == "" && !isLoopback(r.Host) {
			http.Error(w, "This host is not served here: open the address that the program printed.", http.StatusMisdirectedRequest)
			return
		}
		user, given, _ := r.BasicAuth()
		if password != "" && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" &&
			(user == "" || subtle.ConstantTimeCompare([]byte(given), []byte(password)) != 1) {
			h.Set("WWW-Authenticate", `Basic realm="payouts"`)
			http.Error(w, "Sign in with your name and the password.", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	address, _ := netip.ParseAddr(name) // the zero Addr is no loopback
	return strings.EqualFold(name, "localhost") || address.IsLoopback()
}

// listPage shows the orders of a state.
func (s *service) listPage(w http.ResponseWriter, r *http.Request) {
	p := page{State: r.URL.Query().Get("state")}
	if p.State != "" && !slices.Contains(states, p.State) {
		p.State = ""
	}
	var err error
	if p.Orders, err = s.list(r.Context(), p.State, r.URL.Query().Get("after"), pageSize); err == nil {
		p.Counts, err = s.counts(r.Context(), states)
	}
	if err == nil {
		p.Stopped, err = s.stopped(r.Context())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if len(p.Orders) == pageSize {
		p.Next = nextPage("/", p.State, p.Orders)
	}
	s.render(w, r, http.StatusOK, "list.html", p)
}

// orderPage shows one order, with what both tables know of it.
func (s *service) orderPage(w http.ResponseWriter, r *http.Request, status int, problem string) {
	p := page{Problem: problem}
	var err error
	if p.Order, err = s.find(r.Context(), r.PathValue("order")); err == nil {
		p.History, err = s.history(r.Context(), p.Order.Order)
	}
	if err == nil && p.Order.State == unresolved {
		var e sqljournal.Entry
		e, err = s.journal.Lookup(r.Context(), operation, p.Order.Order)
		p.Order.Try = e.Try
		p.Question = question(p.Order, e)
		if from := e.SendBy.Add(s.grace); time.Now().Before(from) {
			p.NotBefore = from.Add(time.Second).Format("2006-01-02 15:04:05 UTC")
		}
		if s.fake != nil {
			p.Ledger = s.inLedger(p.Order.Order)
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.render(w, r, status, "order.html", p)
}

// question is what to ask the service's support about an unresolved order.
func question(o order, e sqljournal.Entry) string {
	return fmt.Sprintf("Do you have a transfer with the merchant order number %s over %s %s, sent between %s and %s UTC? "+
		"If so, what is its number (api_order_no)? If not, can it still be executed?",
		o.Order, o.Amount, o.Currency, e.CreatedAt.Format("2006-01-02 15:04:05"), e.SendBy.Add(time.Second).Format("15:04:05"))
}

// stopped is what to do while the brake holds; "": it does not.
func (s *service) stopped(ctx context.Context) (string, error) {
	if s.brake == 0 {
		return "", nil
	}
	stats, err := s.journal.Stats(ctx)
	if err != nil || stats.Unresolved < s.brake {
		return "", err
	}
	return fmt.Sprintf("Sending is stopped until orders are resolved (unresolved: %d, -brake %d).", stats.Unresolved, s.brake), nil
}

// form does what a form asks for, and shows the order again, at an address of its own:
// to load that once more does nothing.
func (s *service) form(do func(ctx context.Context, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
		defer cancel()
		err := r.ParseForm()
		if err == nil {
			err = do(ctx, r)
		}
		switch status := statusFor(err); {
		case err == nil:
			http.Redirect(w, r, "/orders/"+url.PathEscape(r.PathValue("order")), http.StatusSeeOther)
		case status == http.StatusConflict, status == http.StatusUnprocessableEntity:
			s.orderPage(w, r, status, err.Error())
		default:
			s.fail(w, r, err)
		}
	}
}

// render writes a page when it is whole, and none if it cannot be.
func (s *service) render(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.User, _, _ = r.BasicAuth()
	if p.Fake = s.fake != nil; p.Fake {
		p.FakeFaults = fakeFaults
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, p); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // a browser that left gets no page
}
