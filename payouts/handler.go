package payouts

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// problem is an error, and the response to the request that met it: RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Detail }

// Is reports whether target is cardwire.ErrInvalidParams, and this the problem of such a request.
func (p *problem) Is(target error) bool {
	return target == cardwire.ErrInvalidParams && p.Status == http.StatusUnprocessableEntity
}

func newProblem(status int, format string, args ...any) *problem {
	return &problem{"about:blank", http.StatusText(status), status, fmt.Sprintf(format, args...)}
}

// conflict is the problem of a request that does not fit the order as it is.
func conflict(detail string) error { return newProblem(http.StatusConflict, "%s", detail) }

// invalid is the problem of a request that fits no order.
func invalid(format string, args ...any) error {
	return newProblem(http.StatusUnprocessableEntity, format, args...)
}

var (
	errText   = invalid("a string must be UTF-8 without NUL")
	errMoved  = conflict("the order is in another state now")
	errNoPage = newProblem(http.StatusNotFound, "there is no such page or operation")
	errBody   = newProblem(http.StatusBadRequest,
		"the body must be a form whose fields are known and come once, of at most 64 KiB")
)

// refusal returns why a change does not fit what is on record; nil: something is broken.
func refusal(err error) *problem {
	for _, moved := range []error{
		ErrConflict, cardwire.ErrDuplicateIntent, cardwire.ErrOtherBody, sqljournal.ErrDecided, sqljournal.ErrNoIntent,
		sqljournal.ErrMoved, sqljournal.ErrUncertain, journal.ErrOnHold,
	} {
		if errors.Is(err, moved) {
			return newProblem(http.StatusConflict, "%v", err)
		}
	}
	if errors.Is(err, cardwire.ErrInvalidParams) || errors.Is(err, cardwire.ErrUnreadable) {
		return newProblem(http.StatusUnprocessableEntity, "%v", err)
	}
	if errors.Is(err, ErrNoOrder) {
		return newProblem(http.StatusNotFound, "there is no such order")
	}
	p, _ := errors.AsType[*problem](err)
	return p
}

// problemOf returns what to respond to a request that failed. An error that no client
// causes is this program's own: the log has it, and the response does not.
func (s *Service) problemOf(r *http.Request, err error) *problem {
	if p := refusal(err); p != nil {
		return p
	}
	s.log.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "error", err)
	return newProblem(http.StatusServiceUnavailable, "the database or the journal is not available: try again")
}

func writeJSON(w http.ResponseWriter, contentType string, status int, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has disconnected asks again
}

// address is that of a page of this program, relative to any other.
type address string

// addressOf is the address of an order's page: in a path a number might be taken for another one.
func addressOf(number string) address { return address("order?number=" + url.QueryEscape(number)) }

func isBrowser(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

const (
	requestTimeout = 15 * time.Second
	maxBody        = 64 << 10 // more than any request needs
)

// Handler returns the page and the API for operations, below any path: its links are relative, and only
// the last part of an address matters. It has no password: put it behind your own sign-in. who names the
// person whose request it is, for the history; nil, or "": the forms ask for a name. Requests of other
// sites are refused, as net/http's CrossOriginProtection does.
//
// The API is described in docs/payouts.md. GET readyz tells nothing that is secret.
func (s *Service) Handler(who func(*http.Request) string) http.Handler {
	if who == nil {
		who = func(*http.Request) string { return "" }
	}
	handlers := map[string]func(q *request) (any, error){
		"GET ":           s.listPage,
		"GET order":      s.orderPage,
		"GET orders.csv": s.export,
		"GET queue":      func(q *request) (any, error) { return s.progress(q.ctx) },
		"GET readyz":     s.ready,
		"GET statement":  func(*request) (any, error) { return page{Template: "statement.html", Upload: &upload{}}, nil },
		"POST orders":    s.postOrder,
		"POST resolve":   s.postResolutions,
		"POST cancel":    s.postCancel,
		"POST pause":     s.postPause,
		"POST resume":    s.postResume,
		"POST hold":      s.postHeld(s.Hold),
		"POST release":   s.postHeld(s.journal.Release),
		"POST moved":     s.postHeld(s.journal.Moved),
		"POST statement": s.postStatement,
		"GET style.css":  serveStatic,
		"GET icon.svg":   serveStatic,
	}
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		// A client that hangs up must not cut off what it began, in the middle.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
		defer cancel()
		ctx = traceContext.Extract(ctx, propagation.HeaderCarrier(r.Header))
		q := &request{Request: r, ctx: ctx, w: w, user: strings.TrimSpace(who(r))}
		name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		if name != "statement" {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		handle := handlers[r.Method+" "+name]
		if handle == nil {
			handle = func(*request) (any, error) { return nil, errNoPage }
		}
		response, err := handle(q)
		if err == nil {
			err = s.respond(q, response)
		}
		if err != nil {
			s.refuse(q, err)
		}
	}))
}

// request is a request, with who makes it.
type request struct {
	*http.Request
	ctx  context.Context //nolint:containedctx // of the request, which outlives its client
	w    http.ResponseWriter
	user string // "": nobody signed in
}

// respond writes what a handler returned: a page, an address to go to, or what is written as JSON; nil: it has
// responded. A browser that changed an order is shown it at an address of its own: to load that once more does
// nothing.
func (s *Service) respond(q *request, response any) error {
	if o, ok := response.(order); ok {
		response = o.Order
		if q.Method == http.MethodPost && isBrowser(q.Request) {
			response = addressOf(o.Number)
		}
	}
	switch v := response.(type) {
	case nil:
	case page:
		if isBrowser(q.Request) || v.JSON == nil {
			return s.render(q, v)
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

// refuse writes an error: a browser gets it as a page.
func (s *Service) refuse(q *request, err error) {
	p := s.problemOf(q.Request, err)
	if !isBrowser(q.Request) || s.render(q, page{Template: "problem.html", Problem: p}) != nil {
		writeJSON(q.w, "application/problem+json", p.Status, p)
	}
}

// ready responds where orders are accepted and a replica works, and says that none is sent: it may be asked without a
// password, and so does not say why a person or the service stopped them.
func (s *Service) ready(q *request) (any, error) {
	status := map[string]string{"status": "up"}
	if err := s.Verify(q.ctx); err != nil {
		return nil, err
	}
	d, err := s.delays(q.ctx)
	if err == nil && !d.Idle.IsZero() {
		err = newProblem(http.StatusServiceUnavailable, "no replica has worked since %s UTC: start one that calls Run",
			d.Idle.Format(timeLayout))
	}
	if err != nil {
		return nil, err
	}
	p, err := s.pausedNow(q.ctx, s.db)
	if p.Kind != "" {
		status["paused"] = p.Kind
	}
	return status, err
}

// postOrder takes an order, with the fields of a transfer by the service's names. The same again is
// the same order.
func (s *Service) postOrder(q *request) (any, error) {
	body, err := io.ReadAll(q.Body)
	var p cardwire.TransferParams
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, newProblem(http.StatusBadRequest, "the body must be a transfer as JSON, of at most 64 KiB")
	}
	switch err := p.UnmarshalJSON(body); {
	case errors.Is(err, cardwire.ErrUnreadable):
		_, reason, _ := strings.Cut(err.Error(), "TransferParams: ")
		return nil, invalid("%s: each field is a string that is not empty, "+
			"and transferAmount has two decimals and is above zero, as in \"12.50\"", strings.TrimPrefix(reason, "*: "))
	case err != nil:
		return nil, err
	case p.Extra != nil: // a typo must not be a payout without what was meant
		return nil, invalid("the transfer has unknown fields")
	}
	var o Order
	err = s.transaction(q.ctx, func(tx *sql.Tx) (err error) {
		o, err = s.Submit(q.ctx, tx, p)
		return err
	})
	if err == nil {
		q.w.Header().Set("Location", string(addressOf(o.Number)))
		writeJSON(q.w, "application/json", http.StatusAccepted, o)
	}
	return nil, err
}

// form reads the fields of a form, each at most once and by its exact name, and who sends it and why: what was
// meant otherwise must not be a payout. A field that is left out may be the service's number, without
// which an order is paid twice.
func (q *request) form(fields map[string]any) (by, why string, err error) {
	text, err := io.ReadAll(q.Body)
	form, err2 := url.ParseQuery(string(text))
	if err != nil || err2 != nil {
		return "", "", errBody
	}
	by, why, err = q.fields(form, fields)
	return by, why, cmp.Or(err, checkWho(by, why))
}

// fields reads those of a form.
func (q *request) fields(form url.Values, fields map[string]any) (by, why string, err error) {
	fields["by"], fields["why"] = &by, &why
	for key, values := range form {
		switch field := fields[key].(type) {
		case *[]string:
			*field = values
		case *string:
			*field = strings.TrimSpace(values[0])
			if len(values) > 1 {
				return "", "", errBody
			}
		case *time.Time:
			if len(values) > 1 {
				return "", "", errBody
			}
			if values[0] == "" {
				continue
			}
			if *field, err = statement.TimeOf(values[0], time.UTC); err != nil {
				return "", "", invalid("%s must be a time, as in 2026-01-31T15:04:05Z", key)
			}
		default:
			return "", "", errBody
		}
	}
	return cmp.Or(q.user, by), why, nil
}

func (s *Service) postCancel(q *request) (any, error) {
	var number string
	by, why, err := q.form(map[string]any{"order": &number})
	if err != nil {
		return nil, err
	}
	return s.cancel(q.ctx, number, by, why)
}

// postPause stops payments until a person resumes.
func (s *Service) postPause(q *request) (any, error) {
	by, why, err := q.form(map[string]any{})
	if err != nil {
		return nil, err
	}
	changed, err := s.pause(q.ctx, pause{Kind: byHand, Why: "paused by " + by + ": " + why})
	if err == nil && changed { // otherwise somebody has already, whom the page names
		err = s.addHistory(q.ctx, s.db, "", "paused", by, why)
	}
	return address("./"), err
}

// postResume ends the pause that a person has seen.
func (s *Service) postResume(q *request) (any, error) {
	var since time.Time
	by, why, err := q.form(map[string]any{"since": &since})
	if err != nil {
		return nil, err
	}
	p, err := s.pausedNow(q.ctx, s.db)
	ended := false
	if err == nil && p.Kind != onHold && p.Since.Equal(since) {
		ended, err = s.resume(q.ctx, by, p)
	}
	if err == nil && !ended {
		err = conflict("since must be that of the current pause: check again why nothing is sent")
	}
	if err == nil {
		err = s.addHistory(q.ctx, s.db, "", "resumed", by, why)
	}
	return address("./"), err
}

// postHeld begins or ends a hold.
func (s *Service) postHeld(do func(ctx context.Context, by, why string) error) func(*request) (any, error) {
	return func(q *request) (any, error) {
		by, why, err := q.form(map[string]any{})
		if err == nil {
			err = do(q.ctx, by, why)
		}
		return address("./"), err
	}
}
