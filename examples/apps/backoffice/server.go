package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"
	"golang.org/x/crypto/bcrypt"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/examples/apps/internal/web"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// How long a page may take, with its calls to the service. An upload has to arrive
// first.
const (
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	bodyTimeout   = 2 * time.Minute
	uploadTimeout = bodyTimeout + 2*time.Minute

	maxForm  = 64 << 10 // more than any other form here needs
	maxImage = 10 << 20
)

// office is what the pages need.
type office struct {
	client  *cardwire.Client
	journal *sqljournal.Journal
	log     *slog.Logger
	profile cardwire.Profile

	account  account
	host     string // by which browsers come over https; "": a loopback address, over http
	fake     bool   // the service is
	sessions memory[struct{}]
	results  memory[said] // what came of writes

	devices, addresses, names failures // to sign in
}

func (o *office) routes() http.Handler {
	mux := http.NewServeMux()
	read := func(path string, handle handler) { mux.Handle("GET "+path, o.respond(readTimeout, 0, handle)) }
	write := func(path string, handle handler) { mux.Handle("POST "+path, o.respond(writeTimeout, maxForm, handle)) }
	read("/{$}", o.overview)
	read("/cards", o.cards)
	read("/cards/{id}", o.card)
	read("/cards/{id}/freeze", o.freezeForm)
	write("/cards/{id}/freeze", o.freeze)
	read("/operations", func(*http.Request) (page, error) { return page{name: "operations", Fields: forms["operations"]}, nil })
	write("/operations", o.retryOrCancel)
	read("/bins", o.bins)
	read("/transfers", o.transferForm)
	write("/transfers", o.checkTransfer)
	read("/transfers/confirm", o.confirmTransfer)
	write("/transfers/send", o.sendTransfer)
	read("/unresolved", o.unresolved)
	write("/unresolved", o.resolve)
	read("/images", func(*http.Request) (page, error) { return imagesPage(nil), nil })
	mux.Handle("POST /images", o.respond(uploadTimeout, maxImage, o.uploadImage))
	read("/result", o.result)
	read("/", func(*http.Request) (page, error) { return notice("no-page", http.StatusNotFound), nil })

	// These are for everybody.
	static, _ := fs.Sub(files, "static") // not the templates; fails only for an invalid path
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	mux.HandleFunc("GET /login", o.login)
	mux.HandleFunc("POST /login", o.login)
	mux.HandleFunc("POST /logout", o.logout)

	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.show(w, r, notice("foreign", http.StatusForbidden))
	}))
	return web.Secured(sameOrigin.Handler(mux), o.serves)
}

func (o *office) serves(host string) bool {
	if o.host != "" {
		return strings.EqualFold(host, o.host)
	}
	return web.IsLoopback(host)
}

// page is what a template is given.
type page struct {
	name string // of the template
	to   string // the page that is to show Said instead of this one; "": none

	Said   *said
	Fields []field           // of the form, in its order
	Form   url.Values        // what was put in
	Faults map[string]string // what is wrong with it, so that it follows the input's label
	Data   any

	// The same for all pages: where and to whom it is shown, and of which service.
	Path         string
	Public, Fake bool
}

// field is an input of a form.
type field struct {
	Name, Label, Hint  string
	Legend             string // of the group that begins with it; "": it begins none
	Kind, Mode         string // type and inputmode; "": text
	Required, ReadOnly bool
	Options            []option // nil: it is no choice
}

type option struct{ Value, Text string }

// Inputs are the fields with what was put in, and what is wrong with it.
func (p page) Inputs() (list []input) {
	for _, f := range p.Fields {
		list = append(list, input{f, p.Form.Get(f.Name), p.Faults[f.Name]})
	}
	return list
}

type input struct {
	field
	Value, Fault string
}

func notice(kind string, status int) page {
	return page{name: "result", Said: &said{Kind: kind, status: status}}
}

// handler returns the page for a request. Its error is that of a read, or what the
// SDK refused of the page's form: the page itself says what came of a write.
type handler func(r *http.Request) (page, error)

// respond refuses anyone who is not signed in. It shows the result of a write on a page
// with an address of its own: loading that again sends nothing. A browser that
// disconnects ends a read, but not a write, whose outcome would then be unknown.
func (o *office) respond(limit time.Duration, size int64, handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.signedIn(r) {
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
		case errors.Is(err, cardwire.ErrInvalidParams) && !errors.Is(err, cardwire.ErrSetup) && p.Form != nil:
			field, fault := problem(err)
			p.Faults = map[string]string{field: fault}
		case err != nil:
			p = page{name: "result", Said: o.judgeRead(ctx, err)}
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
	switch {
	case s.Kind == draft:
		return o.transferPage(r.Context(), page{Form: s.Form})
	case s.Form != nil:
		return o.transferPage(r.Context(), page{Said: s, Form: s.Form})
	case s.CardID == "":
		return page{name: "result", Said: s}, nil
	}
	card, err := o.client.GetCard(r.Context(), s.CardID)
	if err != nil {
		o.judgeRead(r.Context(), err) // the page has at least a link
	}
	return page{name: "result", Said: s, Data: card}, nil
}

// judgeRead also logs why, but not what the service says, which may quote a name.
func (o *office) judgeRead(ctx context.Context, err error) *said {
	s := judge(ofReads, "", err)
	failure, _ := errors.AsType[*cardwire.Error](err)
	if failure != nil {
		o.log.WarnContext(ctx, "read failed", "operation", failure.Op, "status", failure.HTTPStatus, "code", failure.Code, "cause", s.Cause)
	}
	return s
}

//go:embed templates static
var files embed.FS

var functions = template.FuncMap{
	"add": func(a, b int) int { return a + b },
	// All digits that were sent: Decimal.String leaves zeros out at the end.
	"amount":  func(v decimal.Decimal) string { return v.StringFixed(max(0, -v.Exponent())) },
	"failed":  func() []string { return []string{failedTopUp, failedFreeze} },
	"last":    last,
	"page":    numbered,
	"prefix":  strings.HasPrefix,
	"segment": url.PathEscape,
}

// last leaves of a number what whoever knows it recognizes.
func last(text string) string {
	all := []rune(text)
	if len(all) < 8 {
		return "•••"
	}
	return "•••" + string(all[len(all)-4:])
}

// numbered is the address of a page of what the form selects.
func numbered(form url.Values, number int) string {
	form = maps.Clone(form)
	form.Set("page", strconv.Itoa(number))
	return "?" + form.Encode()
}

// forms are the fields of each form.
var forms = func() (forms map[string][]field) {
	source, _ := files.ReadFile("templates/fields.json")
	if err := json.Unmarshal(source, &forms); err != nil {
		panic(err)
	}
	return forms
}()

var pages = template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/*.html"))

// show writes a page when it is whole, and none if it cannot be.
func (o *office) show(w http.ResponseWriter, r *http.Request, p page) {
	p.Path, p.Public, p.Fake = r.URL.Path, !o.signedIn(r), o.fake
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
	_, _ = b.WriteTo(w) // a browser that left gets no page
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
		return a, errors.New("BACKOFFICE_PASSWORD_HASH must be a bcrypt hash of cost 10 or more")
	}
	return a, nil
}

// admits compares the password also where the name is wrong: the time that it takes
// does not tell.
func (a account) admits(name, password string) bool {
	wrong := bcrypt.CompareHashAndPassword(a.hash, []byte(password))
	return subtle.ConstantTimeCompare([]byte(name), []byte(a.name)) == 1 && wrong == nil
}

// sign returns the proof that a token was issued here. It is valid until the password
// changes, also after a restart.
func (a account) sign(token string) string {
	mac := hmac.New(sha256.New, a.hash)
	mac.Write([]byte("device " + token))
	return hex.EncodeToString(mac.Sum(nil))
}

const (
	sessionTime = 8 * time.Hour
	deviceTime  = 30 * 24 * time.Hour
)

// cookieName returns, for https, a name that neither another host nor plain http can set.
func (o *office) cookieName() string {
	if o.host == "" {
		return "backoffice"
	}
	return "__Host-backoffice"
}

// device returns the token of the browser's cookie, and reports whether it was issued
// here: then somebody has signed in with this browser before.
func (o *office) device(r *http.Request) (token string, known bool) {
	c, err := r.Cookie(o.cookieName())
	if err != nil {
		return "", false
	}
	token, mac, _ := strings.Cut(c.Value, ".")
	return token, hmac.Equal([]byte(mac), []byte(o.account.sign(token)))
}

func (o *office) signedIn(r *http.Request) bool {
	token, known := o.device(r)
	return known && o.sessions.find(token) != nil
}

// address returns the browser's IPv4 address, or its IPv6 network: one customer has all
// addresses of that. Behind a proxy it is the one that the proxy names.
func (o *office) address(r *http.Request) string {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	if o.host != "" {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		from = cmp.Or(strings.TrimSpace(hops[len(hops)-1]), from) // the browser may have made up the others
	}
	address, _ := netip.ParseAddr(from) // all that are invalid count as one
	address = address.Unmap()
	network, _ := address.Prefix(min(64, address.BitLen()))
	return network.String()
}

// count counts n failures to sign in, unless there were too many, and reports whether
// it did. A known device has a count of its own, so that strangers cannot keep it out.
// The failures of strangers count for their address and for the name: one address is
// refused long before it could keep others from using that name.
func (o *office) count(r *http.Request, n int) bool {
	if device, known := o.device(r); known {
		return o.devices.add(device, n, 5)
	}
	return o.addresses.add(o.address(r), n, 5) && o.names.add(r.PostFormValue("user"), n, 25)
}

func (o *office) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch {
	case r.Method != http.MethodPost:
		o.show(w, r, page{name: "login"})
	case !o.count(r, 1): // before it is known to fail: many may come at once
		w.Header().Set("Retry-After", "10")
		o.show(w, r, page{name: "login", Form: r.PostForm, Said: &said{Kind: "too-many-tries", status: http.StatusTooManyRequests}})
	case !o.account.admits(r.PostFormValue("user"), r.PostFormValue("password")):
		o.log.WarnContext(r.Context(), "sign-in refused") // without the name: it may be a password
		o.show(w, r, page{name: "login", Form: r.PostForm, Said: &said{Kind: "wrong-password", status: http.StatusForbidden}})
	default:
		o.log.InfoContext(r.Context(), "signed in")
		o.count(r, -1)
		before, _ := o.device(r)
		o.sessions.forget(before) // one browser, one session
		token := o.sessions.keep(&struct{}{}, sessionTime)
		http.SetCookie(w, &http.Cookie{
			Name: o.cookieName(), Value: token + "." + o.account.sign(token), Path: "/", MaxAge: int(deviceTime.Seconds()),
			HttpOnly: true, Secure: o.host != "", SameSite: http.SameSiteStrictMode,
		})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (o *office) logout(w http.ResponseWriter, r *http.Request) {
	token, _ := o.device(r)
	o.sessions.forget(token)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

const (
	failureTime = 50 * time.Second // until a key that reached its limit is forgotten
	maxFailures = 10_000           // keys
)

// failures counts failures by key, and forgets them one after the other. Its memory is
// bounded: once it is full, all other keys share one count.
type failures struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time // when all of a key are forgotten
}

// add counts n failures, unless that makes more than limit, and reports whether it did.
// A negative n takes them back.
func (f *failures) add(key string, n, limit int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if len(f.until) >= maxFailures {
		maps.DeleteFunc(f.until, func(_ [sha256.Size]byte, until time.Time) bool { return !until.After(now) })
	}
	hash := sha256.Sum256([]byte(key))
	if _, kept := f.until[hash]; !kept && len(f.until) >= maxFailures {
		hash = [sha256.Size]byte{}
	}
	left := max(0, f.until[hash].Sub(now)) + failureTime*time.Duration(n)/time.Duration(limit)
	if left > failureTime {
		return false
	}
	if f.until == nil {
		f.until = map[[sha256.Size]byte]time.Time{}
	}
	f.until[hash] = now.Add(left)
	return true
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

func (m *memory[T]) forget(token string) { m.values.Delete(sha256.Sum256([]byte(token))) }

// find returns nil where nothing is kept.
func (m *memory[T]) find(token string) *T {
	found, _ := m.values.Load(sha256.Sum256([]byte(token)))
	v, _ := found.(*T)
	return v
}
