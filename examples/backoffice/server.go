package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shopspring/decimal"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// How long a page may take, with its calls to the service. An upload has to arrive
// first.
const (
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	bodyTimeout   = 2 * time.Minute
	uploadTimeout = bodyTimeout + 2*time.Minute

	maxForm  = 64 << 10 // more than any other form here holds
	maxImage = 10 << 20
)

// office is what the pages need.
type office struct {
	client  *cardwire.Client
	journal *sqljournal.Journal
	log     *slog.Logger

	account   account
	https     bool // browsers come by it
	fake      bool // the service is
	strangers *visitor
	visitors  memory[visitor] // by their cookies
	results   memory[said]    // what came of writes
}

func (o *office) routes() http.Handler {
	mux := http.NewServeMux()
	read := func(path string, handle handler) { mux.Handle("GET "+path, o.answer(readTimeout, 0, handle)) }
	write := func(path string, handle handler) { mux.Handle("POST "+path, o.answer(writeTimeout, maxForm, handle)) }
	read("/{$}", o.overview)
	read("/cards", o.cards)
	read("/cards/{id}", o.card)
	read("/cards/{id}/freeze", o.freezeForm)
	write("/cards/{id}/freeze", o.freeze)
	read("/operations", func(*http.Request) (page, error) { return page{name: "operations"}, nil })
	write("/operations", o.settleOperation)
	read("/bins", o.bins)
	read("/transfers", o.transferForm)
	write("/transfers", o.transfer)
	read("/undecided", o.undecided)
	write("/undecided", o.resolve)
	read("/images", func(*http.Request) (page, error) { return page{name: "images"}, nil })
	mux.Handle("POST /images", o.answer(uploadTimeout, maxImage, o.uploadImage))
	read("/result", o.result)
	read("/", func(*http.Request) (page, error) { return notice("no-page", http.StatusNotFound), nil })

	// These are for everybody.
	mux.Handle("GET /static/", http.FileServerFS(files))
	mux.HandleFunc("GET /login", o.login)
	mux.HandleFunc("POST /login", o.login)
	mux.HandleFunc("POST /logout", o.logout)

	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.show(w, r, notice("foreign", http.StatusForbidden))
	}))
	return secured(sameOrigin.Handler(mux))
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

// page is what a template is given.
type page struct {
	name string // of the template
	to   string // the page that is to show Said instead of this one; "": none

	Said   *said
	Form   url.Values        // what was put in
	Faults map[string]string // what is wrong with it, so that it follows the input's label
	Data   any

	// The same for all pages: where and to whom it is shown, and of which service.
	Path         string
	Public, Fake bool
}

func notice(kind string, status int) page {
	return page{name: "result", Said: &said{Kind: kind, status: status}}
}

// handler returns the page that answers a request. Its error is that of a read, or
// what the SDK refused of the page's form: what came of a write the page says.
type handler func(r *http.Request) (page, error)

// answer lets nobody through who is not signed in. It shows what came of a write on
// a page of its own address: to load that again sends nothing. A browser that leaves
// ends a read, but not a write, which must not turn into something of which nobody
// knows whether it was done.
func (o *office) answer(limit time.Duration, size int64, handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.visitor(r).signedIn.Load() {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		ctx := r.Context()
		if r.Method == http.MethodPost {
			ctx = context.WithoutCancel(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, size)
		if err := r.ParseForm(); err != nil {
			o.show(w, r, notice("bad-form", http.StatusBadRequest))
			return
		}
		p, err := handle(r)
		switch {
		case errors.Is(err, cardwire.ErrInvalidParams) && p.Form != nil:
			field, text := problem(err)
			p.Faults = map[string]string{field: text}
		case err != nil:
			p = page{name: "result", Said: judge(ofReads, "", err)}
		case p.to != "":
			http.Redirect(w, r, p.to+"?said="+o.results.keep(p.Said, sessionTime), http.StatusSeeOther)
			return
		}
		o.show(w, r, p)
	})
}

// result shows what came of a write as long as it is known. What is to be sent again
// comes back in its form.
func (o *office) result(r *http.Request) (page, error) {
	s := cmp.Or(o.results.find(r.Form.Get("said")), &said{Kind: "forgotten", status: http.StatusNotFound})
	if s.Form != nil {
		return o.transferPage(r.Context(), page{Said: s, Form: s.Form})
	}
	return page{name: "result", Said: s}, nil
}

//go:embed templates static
var files embed.FS

var functions = template.FuncMap{
	"add": func(a, b int) int { return a + b },
	// All digits that were sent: Decimal.String leaves zeros out at the end.
	"amount":  func(v decimal.Decimal) string { return v.StringFixed(max(0, -v.Exponent())) },
	"failed":  func() []string { return []string{failedTopUp, failedFreeze} },
	"dict":    dict,
	"list":    func(v ...any) []any { return v },
	"prefix":  strings.HasPrefix,
	"segment": url.PathEscape,
}

// dict makes a map of pairs, so that a template can be given more than one value.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0].(string)] = pair[1]
	}
	return m
}

var pages = template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/*.html"))

// show writes a page when it is whole, and none if it cannot be.
func (o *office) show(w http.ResponseWriter, r *http.Request, p page) {
	p.Path, p.Public, p.Fake = r.URL.Path, !o.visitor(r).signedIn.Load(), o.fake
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, p.name+".html", p); err != nil {
		o.log.ErrorContext(r.Context(), "page not rendered", "page", p.name, "error", err)
		http.Error(w, "This page could not be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch {
	case p.Said != nil:
		w.WriteHeader(p.Said.status)
	case len(p.Faults) > 0:
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	_, _ = b.WriteTo(w) // a browser that left is its own affair
}

// account is the one user.
type account struct {
	name string
	hash []byte // of the password, by bcrypt
}

func accountFromEnv() (account, error) {
	a := account{os.Getenv("BACKOFFICE_USER"), []byte(os.Getenv("BACKOFFICE_PASSWORD_HASH"))}
	if a.name == "" {
		return a, errors.New("BACKOFFICE_USER is not set: name who may sign in")
	}
	if cost, err := bcrypt.Cost(a.hash); err != nil || cost < bcrypt.DefaultCost {
		return a, errors.New("BACKOFFICE_PASSWORD_HASH is not a hash by bcrypt, of cost 10 or more")
	}
	return a, nil
}

// admits compares the password also where the name is wrong: the time that it takes
// does not tell.
func (a account) admits(name, password string) bool {
	wrong := bcrypt.CompareHashAndPassword(a.hash, []byte(password))
	return subtle.ConstantTimeCompare([]byte(name), []byte(a.name)) == 1 && wrong == nil
}

const (
	cookieName  = "backoffice"
	sessionTime = 8 * time.Hour
	visitorTime = 30 * 24 * time.Hour
)

// visitor is a browser that has signed in. It is known for longer than its session
// lasts, and has a bound of its own for tries to sign in. Strangers are one visitor:
// there is one account to guess at, and behind a proxy all have one address. So who
// guesses all the time keeps out other strangers, but nobody who works here.
type visitor struct {
	signedIn atomic.Bool
	tries    *rate.Limiter
}

func newVisitor() *visitor { return &visitor{tries: rate.NewLimiter(rate.Every(10*time.Second), 5)} }

func (o *office) visitor(r *http.Request) *visitor {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return o.strangers
	}
	return cmp.Or(o.visitors.find(c.Value), o.strangers)
}

func (o *office) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch {
	case r.Method != http.MethodPost:
		o.show(w, r, page{name: "login"})
	case !o.visitor(r).tries.Allow():
		w.Header().Set("Retry-After", "10")
		o.show(w, r, page{name: "login", Said: &said{Kind: "too-many-tries", status: http.StatusTooManyRequests}})
	case !o.account.admits(r.PostFormValue("user"), r.PostFormValue("password")):
		o.log.WarnContext(r.Context(), "sign-in refused") // without the name: it may be a password
		o.show(w, r, page{name: "login", Said: &said{Kind: "wrong-password", status: http.StatusForbidden}})
	default:
		o.log.InfoContext(r.Context(), "signed in")
		o.visitor(r).signedIn.Store(false) // one browser, one session
		v := newVisitor()
		v.signedIn.Store(true)
		time.AfterFunc(sessionTime, func() { v.signedIn.Store(false) })
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: o.visitors.keep(v, visitorTime), Path: "/", MaxAge: int(visitorTime.Seconds()),
			HttpOnly: true, Secure: o.https, SameSite: http.SameSiteStrictMode,
		})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (o *office) logout(w http.ResponseWriter, r *http.Request) {
	o.visitor(r).signedIn.Store(false)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// memory keeps values for a while, under tokens that nobody can guess and of which
// it knows only the hashes. It forgets all of them when the program ends.
type memory[T any] struct{ values sync.Map }

func (m *memory[T]) keep(v *T, while time.Duration) (token string) {
	token = rand.Text()
	key := sha256.Sum256([]byte(token))
	m.values.Store(key, v)
	time.AfterFunc(while, func() { m.values.Delete(key) })
	return token
}

// find returns nil where nothing is kept.
func (m *memory[T]) find(token string) *T {
	found, _ := m.values.Load(sha256.Sum256([]byte(token)))
	v, _ := found.(*T)
	return v
}
