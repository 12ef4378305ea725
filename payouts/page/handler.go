// Package page shows the orders of package payouts to people, who resolve, cancel, pause and release there, and is an API
// for shops in other languages. It uses the public names of package payouts alone. docs/payouts.md describes the API.
package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/payouts"
)

// Option is a setting of a [Handler].
type Option func(*handler)

// WithTrustedOrigins names the origins of the page as browsers see it, as in https://shop.example, behind a proxy that
// rewrites the Host header: otherwise its own forms look as if they came from another site. [Handler] panics if one is
// not a scheme and a host.
func WithTrustedOrigins(origins ...string) Option {
	return func(h *handler) {
		for _, origin := range origins {
			if err := h.origins.AddTrustedOrigin(origin); err != nil {
				panic("page: WithTrustedOrigins: " + err.Error())
			}
		}
	}
}

// WithLogger has l get why a request failed that no client is to blame for, and what is wrong with the database is not
// told to clients; without it, or with nil, nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(h *handler) { h.log = l } }

const (
	requestTimeout = 15 * time.Second
	maxBody        = 64 << 10 // more than any request needs
)

// Handler returns the page and the API of s, at and below any path: its links are relative, and only the last part of an
// address matters. It has no password: put it behind your own sign-in. who names the person whose request it is, for the
// history; nil, or "": the forms ask for a name. Requests of other sites are refused, as net/http's
// CrossOriginProtection does. GET readyz tells nothing that is secret.
func Handler(s *payouts.Service, who func(*http.Request) string, opts ...Option) http.Handler {
	h := &handler{svc: s, who: who, origins: http.NewCrossOriginProtection()}
	for _, opt := range opts {
		opt(h)
	}
	h.log = cmp.Or(h.log, slog.New(slog.DiscardHandler))
	h.operations = map[string]func(*request) (any, error){
		"GET ":           h.listPage,
		"GET order":      h.orderPage,
		"GET orders.csv": h.export,
		"GET queue":      func(q *request) (any, error) { return h.queue(q.ctx) },
		"GET readyz":     h.ready,
		"GET statement":  func(*request) (any, error) { return page{Template: "statement.html", Upload: &upload{}}, nil },
		"POST orders":    h.postOrder,
		"POST resolve":   h.postResolutions,
		"POST cancel":    h.postCancel,
		"POST pause":     post(s.Pause),
		"POST resume":    h.postResume,
		"POST hold":      post(s.Hold),
		"POST release":   post(s.Release),
		"POST moved":     post(s.Moved),
		"POST statement": h.postStatement,
		"GET style.css":  serveStatic,
		"GET icon.svg":   serveStatic,
		"GET now.js":     serveStatic,
	}
	return h
}

type handler struct {
	svc        *payouts.Service
	who        func(*http.Request) string
	origins    *http.CrossOriginProtection
	log        *slog.Logger
	operations map[string]func(*request) (any, error) // by method and name
}

// request is a request, with who makes it.
type request struct {
	*http.Request
	ctx  context.Context //nolint:containedctx // of the request, which outlives its client
	w    http.ResponseWriter
	user string // "": nobody signed in
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	// A client that hangs up must not cut off what it began, in the middle.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
	defer cancel()
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	q := &request{Request: r, ctx: ctx, w: w}
	if h.who != nil {
		q.user = strings.TrimSpace(h.who(r))
	}
	if name := q.name(); name != "statement" {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	response, err := any(nil), h.origins.Check(r)
	if err != nil {
		err = errOrigin
	} else {
		response, err = h.operation(q)(q)
	}
	if err == nil {
		err = h.respond(q, response)
	}
	if err != nil {
		h.refuse(q, err)
	}
}

// name is the last part of the address.
func (q *request) name() string { return q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:] }

// operation is what a request asks for, or says why there is none.
func (h *handler) operation(q *request) func(*request) (any, error) {
	method, name := q.Method, q.name()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if do := h.operations[method+" "+name]; do != nil && q.URL.Path != "" {
		return do
	}
	var allowed []string
	for _, one := range []string{http.MethodGet, http.MethodPost} {
		if h.operations[one+" "+name] != nil {
			allowed = append(allowed, strings.Replace(one, "GET", "GET, HEAD", 1))
		}
	}
	// A router that tells no pattern does not say where the page is, and a program must not get the list for a wrong name.
	isList := q.URL.Path == "" ||
		isBrowser(q.Request) && !strings.HasSuffix(q.Pattern, strings.TrimSuffix(q.URL.Path, name))
	return func(q *request) (any, error) {
		switch {
		case q.URL.Path != "" && len(allowed) > 0:
			q.w.Header().Set("Allow", strings.Join(allowed, ", "))
			return nil, newProblem(http.StatusMethodNotAllowed, "this takes %s", strings.Join(allowed, ", "))
		case method == http.MethodGet && isList:
			return q.withSlash(), nil
		}
		return nil, newProblem(http.StatusNotFound, "there is no such page or operation; the list is at the path that ends in a slash")
	}
}

// withSlash is the address of the page where it was asked for without the slash at its end, on which its links depend. A
// router that strips all of the path has left it in what the client sent.
func (q *request) withSlash() address {
	asked, _ := url.ParseRequestURI(q.RequestURI)
	to := url.URL{Path: "./" + path.Base(cmp.Or(q.URL.Path, asked.Path)) + "/", RawQuery: q.URL.RawQuery}
	return address(to.String())
}

// address is that of a page of this program, relative to any other.
type address string

// addressOf is the address of an order's page: in a path a number might be taken for another one.
func addressOf(number string) address { return address("order?number=" + url.QueryEscape(number)) }

func isBrowser(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// respond writes what an operation returned: a page, an address to go to, or what is written as JSON; nil: it has
// responded. A browser that changed an order is shown it at an address of its own: to load that once more does
// nothing.
func (h *handler) respond(q *request, response any) error {
	if o, ok := response.(payouts.Order); ok && q.Method == http.MethodPost && isBrowser(q.Request) {
		response = addressOf(o.Number)
	}
	switch v := response.(type) {
	case nil:
	case page:
		if isBrowser(q.Request) || v.JSON == nil {
			return h.render(q, v)
		}
		writeJSON(q.w, "application/json", http.StatusOK, v.JSON)
	case address:
		q.w.Header().Set("Location", string(v)) // http.Redirect would make it absolute
		q.w.WriteHeader(http.StatusSeeOther)
	default:
		writeJSON(q.w, "application/json", http.StatusOK, v)
	}
	return nil
}

// problem is an error, and the response to the request that met it: RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Detail }

func newProblem(status int, format string, args ...any) *problem {
	return &problem{"about:blank", http.StatusText(status), status, fmt.Sprintf(format, args...)}
}

// invalid is the problem of a request that fits no order.
func invalid(format string, args ...any) error {
	return newProblem(http.StatusUnprocessableEntity, format, args...)
}

var (
	errBody = newProblem(http.StatusBadRequest,
		"the body must be a form whose fields are known and come once, of at most 64 KiB")
	errOrigin = newProblem(http.StatusForbidden, "this comes from another site. Behind a proxy that rewrites the Host header, "+
		"name the site's own origin by WithTrustedOrigins, or by -origins of the program")
)

// problemOf returns what to respond to a request that failed. An error that no client
// causes is this program's own: the log has it, and the response does not.
func (h *handler) problemOf(q *request, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	status := 0
	switch {
	case errors.Is(err, payouts.ErrNoOrder):
		return newProblem(http.StatusNotFound, "there is no such order")
	case errors.Is(err, payouts.ErrConflict):
		status = http.StatusConflict
	case errors.Is(err, cardwire.ErrInvalidParams), errors.Is(err, cardwire.ErrUnreadable):
		status = http.StatusUnprocessableEntity
	default:
		h.log.ErrorContext(q.ctx, "a request failed", "path", q.URL.Path, "error", err)
		return newProblem(http.StatusServiceUnavailable, "the database or the journal is not available: try again")
	}
	text := err.Error()
	for _, known := range []error{payouts.ErrConflict, cardwire.ErrInvalidParams} { // what follows is for people
		prefix := known.Error() + ": "
		text = text[strings.LastIndex(prefix+text, prefix):]
	}
	return newProblem(status, "%s", text)
}

// refuse writes an error: a browser gets it as a page.
func (h *handler) refuse(q *request, err error) {
	p := h.problemOf(q, err)
	if !isBrowser(q.Request) || h.render(q, page{Template: "problem.html", Problem: p}) != nil {
		writeJSON(q.w, "application/problem+json", p.Status, p)
	}
}

func writeJSON(w http.ResponseWriter, contentType string, status int, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has disconnected asks again
}

// ready responds where orders are accepted and a replica works, and says that none is sent: it may be asked without a
// password, and so does not say why a person or the service stopped them.
func (h *handler) ready(q *request) (any, error) {
	if err := h.svc.Verify(q.ctx); err != nil {
		return nil, err
	}
	ready := map[string]string{"status": "up"}
	status, err := h.svc.Status(q.ctx)
	if err == nil && !status.Idle.IsZero() {
		err = newProblem(http.StatusServiceUnavailable, "no replica has worked since %s: start one that calls Run", inUTC(status.Idle))
	}
	if status.Kind != "" {
		ready["paused"] = status.Kind
	}
	return ready, err
}
