package main

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

//go:embed templates static
var files embed.FS

// office is what the pages need.
type office struct {
	client  *cardwire.Client
	journal *sqljournal.Journal
	log     *slog.Logger
	door    *door
	fake    bool // the service is
}

var pages = parsePages()

func (o *office) handler() http.Handler {
	inside := http.NewServeMux()
	inside.HandleFunc("GET /{$}", o.overview)
	inside.HandleFunc("GET /cards", o.cards)
	inside.HandleFunc("GET /cards/{id}", o.card)
	inside.HandleFunc("GET /cards/{id}/freeze", o.freezeForm)
	inside.HandleFunc("POST /cards/{id}/freeze", o.freeze)
	inside.HandleFunc("GET /operations", o.operationForm)
	inside.HandleFunc("POST /operations", o.settleOperation)
	inside.HandleFunc("GET /bins", o.bins)
	inside.HandleFunc("GET /transfers", o.transferForm)
	inside.HandleFunc("POST /transfers", o.transfer)
	inside.HandleFunc("GET /undecided", o.undecided)
	inside.HandleFunc("POST /undecided", o.resolve)
	inside.HandleFunc("GET /images", o.imageForm)
	inside.HandleFunc("POST /images", o.uploadImage)
	inside.HandleFunc("POST /logout", o.logout)
	inside.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		o.tell(w, r, http.StatusNotFound, &said{Kind: "no-page"})
	})

	all := http.NewServeMux()
	all.Handle("GET /static/", http.FileServerFS(files))
	all.HandleFunc("GET /login", o.loginForm)
	all.HandleFunc("POST /login", o.login)
	all.Handle("/", o.door.guard(timed(inside)))

	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.tell(w, r, http.StatusForbidden, &said{Kind: "foreign"})
	}))
	return secured(sameOrigin.Handler(all))
}

// secured keeps browsers from doing what no page here needs.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// How long a page may take. An upload has to arrive first.
const (
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	uploadTimeout = bodyTimeout + 2*time.Minute
)

// timed bounds what a page asks of the service. A page that only reads ends with
// the browser. One that writes does not: a browser that leaves must not turn what
// is being done into something of which nobody knows whether it was done.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, limit := r.Context(), readTimeout
		if r.Method == http.MethodPost {
			ctx, limit = context.WithoutCancel(ctx), writeTimeout
		}
		if r.URL.Path == "/images" {
			limit = uploadTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// page is what every template is given.
type page struct {
	Title  string
	Nav    string // the entry of the menu that it belongs to
	Public bool   // whoever sees it is not signed in
	Fake   bool
	Said   *said
	Inputs []*input
	Data   any
}

// Faults are the inputs that need to be corrected.
func (p page) Faults() (faults []*input) {
	for _, in := range p.Inputs {
		if in.Error != "" {
			faults = append(faults, in)
		}
	}
	return faults
}

var functions = template.FuncMap{
	"amount":  amount,
	"prefix":  strings.HasPrefix,
	"segment": url.PathEscape,
	"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
}

// amount writes all digits that were sent: Decimal.String leaves zeros out at the end.
func amount(v decimal.Decimal) string { return v.StringFixed(max(0, -v.Exponent())) }

// parsePages reads every page together with the layout around it.
func parsePages() map[string]*template.Template {
	around := template.Must(template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/said.html"))
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is above
	}
	pages := map[string]*template.Template{}
	for _, name := range names {
		page := template.Must(template.Must(around.Clone()).ParseFS(files, name))
		pages[strings.TrimSuffix(path.Base(name), ".html")] = page
	}
	return pages
}

// show writes a page when it is whole, and none if it cannot be.
func (o *office) show(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.Fake = o.fake
	var b bytes.Buffer
	if err := pages[name].Execute(&b, p); err != nil {
		o.log.ErrorContext(r.Context(), "page not rendered", "page", name, "error", err)
		http.Error(w, "This page could not be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // a browser that left is its own affair
}

// tell shows what came of something, and with facts what is now known.
func (o *office) tell(w http.ResponseWriter, r *http.Request, status int, s *said, facts ...option) {
	o.show(w, r, status, "result", page{Title: "Result", Public: !o.door.knows(r), Said: s, Data: facts})
}

// unread says why nothing could be read.
func (o *office) unread(w http.ResponseWriter, r *http.Request, err error) {
	status, s := judge(ofReads, "", err)
	o.tell(w, r, status, s)
}

// unwritten says what came of a write that did not simply succeed.
func (o *office) unwritten(w http.ResponseWriter, r *http.Request, what string, err error) {
	status, s := judge(ofWrites, what, err)
	o.tell(w, r, status, s)
}

type figures struct {
	Capacity  int64
	Cards     int
	Undecided int
}

func (o *office) overview(w http.ResponseWriter, r *http.Request) {
	d, err := o.count(r.Context())
	if err != nil {
		o.unread(w, r, err)
		return
	}
	o.show(w, r, http.StatusOK, "overview", page{Title: "Overview", Nav: "overview", Data: d})
}

func (o *office) count(ctx context.Context) (d figures, err error) {
	if d.Capacity, err = o.client.CardCapacity(ctx); err != nil {
		return d, err
	}
	cards, err := o.client.ListCards(ctx, cardwire.ListCardsParams{Limit: 1})
	if err != nil {
		return d, err
	}
	entries, err := o.journal.Undecided(ctx, 0)
	d.Cards, d.Undecided = cards.Total, len(entries)
	return d, err
}

// maxForm is more than any form here holds, but for images.
const maxForm = 64 << 10

// readForm reads a form, or says that it cannot.
func (o *office) readForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		o.tell(w, r, http.StatusBadRequest, &said{Kind: "bad-form"})
		return false
	}
	return true
}
