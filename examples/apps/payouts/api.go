package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cardwire/cardwire-go"
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

func newProblem(status int, format string, args ...any) *problem {
	return &problem{"about:blank", http.StatusText(status), status, fmt.Sprintf(format, args...)}
}

// conflict is the problem of a request that does not fit the order as it is.
func conflict(detail string) error { return newProblem(http.StatusConflict, "%s", detail) }

// invalid is the problem of a request that fits no order.
func invalid(format string, args ...any) error {
	return newProblem(http.StatusUnprocessableEntity, format, args...)
}

// refusal returns why a change does not fit what is on record; nil: something is broken.
func refusal(err error) *problem {
	for _, moved := range []error{
		sqljournal.ErrDecided, sqljournal.ErrNoIntent, cardwire.ErrDuplicateIntent, sqljournal.ErrMoved, sqljournal.ErrUncertain,
	} {
		if errors.Is(err, moved) {
			return newProblem(http.StatusConflict, "%v", err)
		}
	}
	if errors.Is(err, cardwire.ErrInvalidParams) {
		return newProblem(http.StatusUnprocessableEntity, "%v", err)
	}
	p, _ := errors.AsType[*problem](err)
	return p
}

// problemOf returns what to respond to a request that failed. An error that no client
// causes is this program's own: the log has it, and the response does not.
func (s *service) problemOf(r *http.Request, err error) *problem {
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

var errNoPage = newProblem(http.StatusNotFound, "there is no such page or operation")

// handler does what a request asks for. What it returns is the response: a page, an address to go
// to, or what is written as JSON; nil: it has responded.
type handler func(w http.ResponseWriter, r *http.Request) (any, error)

// address is that of a page of this program.
type address string

// addressOf is the address of an order's page.
func addressOf(number string) address { return address("/orders/" + url.PathEscape(number)) }

func isBrowser(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// respond writes what a handler returned. A browser that changed an order is shown it at an
// address of its own: to load that once more does nothing.
func (s *service) respond(w http.ResponseWriter, r *http.Request, response any) error {
	if o, changed := response.(order); changed && isBrowser(r) {
		response = addressOf(o.Order)
	}
	switch v := response.(type) {
	case nil:
	case page:
		return s.render(w, r, v)
	case address:
		http.Redirect(w, r, string(v), http.StatusSeeOther)
	default:
		writeJSON(w, "application/json", http.StatusOK, v)
	}
	return nil
}

// refuse writes an error: a browser gets it as a page.
func (s *service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problemOf(r, err)
	shown := page{Template: "problem.html", Problem: p, Order: order{Order: r.PathValue("order")}}
	if !isBrowser(r) || s.render(w, r, shown) != nil {
		writeJSON(w, "application/problem+json", p.Status, p)
	}
}

const (
	requestTimeout = 15 * time.Second
	maxBody        = 64 << 10 // more than any request needs
)

// routes are the operations for programs, and the pages.
func (s *service) routes(password string) http.Handler {
	up := map[string]string{"status": "up"}
	handlers := map[string]handler{
		"POST /payouts":                 s.postPayout,
		"GET /payouts":                  func(_ http.ResponseWriter, r *http.Request) (any, error) { return s.listed(r) },
		"GET /payouts/{order}":          s.getPayout,
		"POST /payouts/{order}/resolve": s.postResolution,
		"POST /payouts/{order}/cancel":  decided(s.cancel),
		"POST /payouts/{order}/send":    decided(s.sendHeld),
		"POST /held":                    s.postHeld,
		"POST /resolve":                 s.postResolutions,
		"GET /queue":                    func(_ http.ResponseWriter, r *http.Request) (any, error) { return s.progress(r.Context()) },
		"POST /resume":                  s.postResumption,
		"GET /healthz":                  func(http.ResponseWriter, *http.Request) (any, error) { return up, nil },
		"GET /readyz":                   s.ready,
		"GET /metrics": func(w http.ResponseWriter, r *http.Request) (any, error) {
			s.metrics.ServeHTTP(w, r)
			return nil, nil
		},
		"GET /{$}":            s.listPage,
		"GET /orders.csv":     s.export,
		"GET /orders/{order}": s.orderPage,
		"GET /statement":      s.statementPage,
		"POST /statement":     s.postStatement,
		"/":                   func(http.ResponseWriter, *http.Request) (any, error) { return nil, errNoPage },
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(static))
	for pattern, handle := range handlers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			// A client that hangs up must not cut off what it began, in the middle.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
			defer cancel()
			ctx, span := s.startRequest(ctx, pattern, r)
			defer span.End()
			r = r.WithContext(ctx)
			if pattern != "POST /statement" {
				r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			}
			response, err := handle(w, r)
			if err == nil {
				err = s.respond(w, r, response)
			}
			if err != nil {
				s.refuse(w, r, err)
			}
		})
	}
	return s.signIn(http.NewCrossOriginProtection().Handler(mux), password)
}

func (s *service) getPayout(_ http.ResponseWriter, r *http.Request) (any, error) {
	return s.seen(r.Context(), r.PathValue("order"))
}

func (s *service) postResolution(_ http.ResponseWriter, r *http.Request) (any, error) {
	var found resolution
	if err := found.decode(r, map[string]any{"call": &found.Call}); err != nil {
		return nil, err
	}
	return s.resolve(r.Context(), r.PathValue("order"), found)
}

// parseTime reads a time of JSON, or of a form's field, which is in UTC.
func parseTime(name, text string) (time.Time, error) {
	t, err := timeOf(text, time.UTC)
	if err != nil {
		err = invalid("%s must be a time, as in 2026-01-31T15:04:05Z", name)
	}
	return t, err
}

// postResumption resumes the queue, as a person found that it can: that person has not seen
// a hold that began since.
func (s *service) postResumption(_ http.ResponseWriter, r *http.Request) (any, error) {
	ctx := r.Context()
	var named string
	var since time.Time
	by, why, err := decodeBy(r, map[string]any{"since": &named})
	if err == nil && named != "" {
		since, err = parseTime("since", named)
	}
	ended := false
	if err == nil {
		ended, err = s.resume(ctx, by, since)
	}
	if err == nil && !ended {
		err = conflict("since must be that of the current pause, and is required to release a hold: " +
			"check again why nothing is sent")
	}
	if err == nil {
		err = s.transaction(ctx, func(tx *sql.Tx) error {
			return record(ctx, tx, "", "resumed", by, why)
		})
	}
	return address("/"), err
}

// decision is what a person does to an order, with a name and a reason.
type decision func(ctx context.Context, number, by, why string) (order, error)

// decided makes the decision of a request.
func decided(do decision) handler {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		by, why, err := decodeBy(r, map[string]any{})
		if err != nil {
			return nil, err
		}
		return do(r.Context(), r.PathValue("order"), by, why)
	}
}

// postPayout takes an order. The same again is the same payout.
func (s *service) postPayout(w http.ResponseWriter, r *http.Request) (any, error) {
	var number, transfer json.RawMessage // the merchant's number, and the other fields by the service's names
	if err := decode(r, map[string]any{"order": &number, "transfer": &transfer}); err != nil {
		return nil, err
	}
	params, err := paramsOf(number, transfer)
	if err != nil {
		return nil, err
	}
	o, err := s.create(r.Context(), params)
	if err == nil {
		w.Header().Set("Location", "/payouts/"+url.PathEscape(o.Order))
		writeJSON(w, "application/json", http.StatusAccepted, o)
	}
	return nil, err
}

// paramsOf has the fields read and checked as they will be when they are sent. That
// reader is strict: it refuses a field that comes twice, as a number within transfer would.
// What it does not know is in Extra. If your service requires such fields, allow them here.
func paramsOf(number, transfer json.RawMessage) (p cardwire.TransferParams, err error) {
	if number == nil || !bytes.HasPrefix(transfer, []byte("{")) {
		return p, invalid("expected order, a string, and transfer, an object")
	}
	text := slices.Concat([]byte(`{"merchantOrderNo":`), number)
	if fields := bytes.TrimSpace(transfer[1:]); fields[0] != '}' {
		text = append(text, ',')
	}
	err = p.UnmarshalJSON(append(text, transfer[1:]...))
	switch {
	case errors.Is(err, cardwire.ErrUnreadable): // that is not the service's response
		_, reason, _ := strings.Cut(errors.Unwrap(err).Error(), "TransferParams: ")
		err = invalid("order and transfer: %s: each field is a string that is not empty, "+
			"and transferAmount has two decimals and is above zero, as in \"12.50\"", strings.TrimPrefix(reason, "*: "))
	case err == nil && p.Extra != nil: // a typo must not be a payout without what was meant
		err = invalid("transfer has unknown fields: %q", slices.Sorted(maps.Keys(p.Extra)))
	}
	return p, err
}

// decode reads the fields of one JSON object, or of a form, each at most once and by its
// exact name: what was meant otherwise must not be a payout. A field that is left out may
// be the service's number, without which an order is paid twice.
func decode(r *http.Request, fields map[string]any) error {
	text, err := io.ReadAll(r.Body)
	switch {
	case err == nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		return decodeForm(string(text), fields)
	case err != nil || !utf8.Valid(text) || !json.Valid(text):
		return errBody
	}
	d := json.NewDecoder(bytes.NewReader(text)) // of which each token is valid
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		key, _ := name.(string)
		field := fields[key]
		if field == nil || d.Decode(field) != nil {
			return newProblem(http.StatusBadRequest, "the field %q is unknown, comes twice or is of another type", key)
		}
		delete(fields, key)
	}
	return nil
}

// decodeBy is decode of what a person does, and who it is, and why.
func decodeBy(r *http.Request, fields map[string]any) (by, why string, err error) {
	fields["by"], fields["why"] = &by, &why
	if err := decode(r, fields); err != nil {
		return "", "", err
	}
	by, why = signedIn(r, by), strings.TrimSpace(why)
	return by, why, check(by, why)
}

func decodeForm(text string, fields map[string]any) error {
	form, err := url.ParseQuery(text)
	if err != nil {
		return errBody
	}
	for key, values := range form {
		field, one := fields[key].(*string)
		list, many := fields[key].(*[]string)
		switch {
		case many:
			*list = values
		case one && len(values) == 1:
			*field = values[0]
		default:
			return errBody
		}
	}
	return nil
}

var errBody = newProblem(http.StatusBadRequest,
	"the body must be one JSON object in UTF-8, or a form whose fields are known and come once, of at most 64 KiB")

// signedIn is who makes a request: the user, where there is a password, or whoever the
// request names.
func signedIn(r *http.Request, named string) string {
	if user, _, ok := r.BasicAuth(); ok && strings.TrimSpace(user) != "" {
		return strings.TrimSpace(user)
	}
	return strings.TrimSpace(named)
}
