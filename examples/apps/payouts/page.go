package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	"past":   func(t moment) bool { return time.Now().After(t.Time) },
	"path":   url.PathEscape,
	"states": func() []string { return states },
}).ParseFS(templates, "templates/*.html"))

// page is what a template is given.
type page struct {
	listing
	Problem *problem // of problem.html
	Paused  *pause   // why nothing is sent; nil: it is
	Counts  map[string]int64
	Order   order
	Upload  *upload // of statement.html
	History []event
	User    string // who is signed in; "": nobody has to
	Of      string // where the service is
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
			}
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="payouts"`)
		http.Error(w, "Sign in with your name and the password.", http.StatusUnauthorized)
	}), func(string) bool { return true })
}

// listPage shows the orders of a state.
func (s *service) listPage(w http.ResponseWriter, r *http.Request) error {
	l, err := s.listed(r)
	if err != nil {
		return err
	}
	p := page{listing: l}
	if p.Counts, err = s.counts(r.Context()); err != nil {
		return err
	}
	if p.Paused, _, err = s.pausedNow(r.Context()); err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "list.html", p)
}

// orderPage shows one order, with what both tables know of it.
func (s *service) orderPage(w http.ResponseWriter, r *http.Request) (err error) {
	var p page
	if p.Order, err = s.seen(r.Context(), r.PathValue("order")); err != nil {
		return err
	}
	if p.History, err = s.history(r.Context(), p.Order); err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "order.html", p)
}

// paged gives a browser the errors of a page as a page.
func (s *service) paged(do handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := do(w, r)
		if err == nil || !strings.Contains(r.Header.Get("Accept"), "text/html") {
			return err
		}
		p := s.problemOf(r, err)
		return s.render(w, r, p.Status, "problem.html", page{Problem: p, Order: order{Order: r.PathValue("order")}})
	}
}

// redirected shows the order that do returns at an address of its own: to load that once
// more does nothing.
func redirected(do func(*http.Request) (order, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		o, err := do(r)
		if err == nil {
			http.Redirect(w, r, "/orders/"+url.PathEscape(o.Order), http.StatusSeeOther)
		}
		return err
	}
}

// render writes a page when it is whole, and none if it cannot be.
func (s *service) render(w http.ResponseWriter, r *http.Request, status int, name string, p page) error {
	p.User, _, _ = r.BasicAuth()
	_, p.Of, _ = strings.Cut(s.of, "://")
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, p); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // a browser that left gets no page
	return nil
}
