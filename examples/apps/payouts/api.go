package main

import (
	"bytes"
	"context"
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

// problem is what every failed request gets: RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// statusError is an error with the status of its response.
type statusError struct {
	status int
	error
}

func (e *statusError) Unwrap() error { return e.error }

var errBody = &statusError{http.StatusBadRequest, errors.New("the body must be one JSON object in UTF-8, of at most 64 KiB")}

// statusFor is the status of an error. What is not in it is this program's trouble.
func statusFor(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	for status, targets := range map[int][]error{
		http.StatusNotFound: {errNoOrder},
		http.StatusConflict: {
			errOtherBody, errMoved, errTooEarly, errOtherTry, errOthers, errOtherID,
			sqljournal.ErrDecided, sqljournal.ErrNoIntent, cardwire.ErrDuplicateIntent,
		},
		http.StatusUnprocessableEntity: {errText, errNumber, errOutcome, errHasID, errNotAgain, errTry, errWho, cardwire.ErrInvalidParams},
	} {
		if slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) }) {
			return status
		}
	}
	return http.StatusInternalServerError
}

// fail writes an error as a problem. What is this program's trouble is logged, and not
// told.
func (s *service) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem{Type: "about:blank", Status: statusFor(err), Detail: err.Error()}
	if p.Status == http.StatusInternalServerError {
		s.log.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "error", err)
		p.Status, p.Detail = http.StatusServiceUnavailable, "the database or the journal is not available: try again"
	}
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who has gone asks again
}

func (s *service) respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // as above
}

// api adds the operations for programs.
func (s *service) api(mux *http.ServeMux) {
	handle := func(pattern string, h func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			// A client that hangs up must not cut off what it began, in the middle.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
			defer cancel()
			ctx, end := startRequest(ctx, s.tracer, r, pattern)
			defer end()
			if err := h(w, r.WithContext(ctx)); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	handle("POST /payouts", s.postPayout)
	handle("GET /payouts", s.getPayouts)
	handle("GET /payouts/{order}", func(w http.ResponseWriter, r *http.Request) error {
		return s.show(w)(s.findTry(r.Context(), r.PathValue("order")))
	})
	handle("POST /payouts/{order}/resolve", func(w http.ResponseWriter, r *http.Request) error {
		var found resolution
		if err := decode(w, r, map[string]any{
			"try": &found.Try, "outcome": &found.Outcome, "service_id": &found.ServiceID, "send_again": &found.SendAgain,
			"by": &found.By, "why": &found.Why,
		}); err != nil {
			return err
		}
		found.By = signedIn(r, found.By)
		return s.show(w)(s.resolve(r.Context(), r.PathValue("order"), found))
	})
	handle("POST /payouts/{order}/cancel", func(w http.ResponseWriter, r *http.Request) error {
		var by, why string
		if err := decode(w, r, map[string]any{"by": &by, "why": &why}); err != nil {
			return err
		}
		return s.show(w)(s.cancel(r.Context(), r.PathValue("order"), signedIn(r, by), why))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		s.respond(w, http.StatusOK, map[string]string{"status": "up"})
	})
	handle("GET /readyz", func(w http.ResponseWriter, r *http.Request) error {
		if err := s.ready(r.Context()); err != nil {
			s.log.ErrorContext(r.Context(), "not ready", "error", err)
			return &statusError{http.StatusServiceUnavailable, errors.New("the database or the journal is not as it should be: see the log")}
		}
		s.respond(w, http.StatusOK, map[string]string{"status": "ready"})
		return nil
	})
}

// findTry returns an order and, if it is unresolved, which try is to be asked about.
func (s *service) findTry(ctx context.Context, number string) (order, error) {
	o, err := s.find(ctx, number)
	if err == nil && o.State == unresolved {
		var e sqljournal.Entry
		e, err = s.journal.Lookup(ctx, operation, number)
		o.Try = e.Try
	}
	return o, err
}

// ready reports why this replica could not send: there is no database, or it is
// another one than at the start.
func (s *service) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return errors.Join(s.db.PingContext(ctx), s.journal.Verify(ctx))
}

func (s *service) show(w http.ResponseWriter) func(order, error) error {
	return func(o order, err error) error {
		if err == nil {
			s.respond(w, http.StatusOK, o)
		}
		return err
	}
}

// postPayout takes an order. The same again is the same payout.
func (s *service) postPayout(w http.ResponseWriter, r *http.Request) error {
	var number, transfer json.RawMessage // the merchant's number, and the other fields by the service's names
	if err := decode(w, r, map[string]any{"order": &number, "transfer": &transfer}); err != nil {
		return err
	}
	params, err := paramsOf(number, transfer)
	if err != nil {
		return err
	}
	o, created, err := s.create(r.Context(), params)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/payouts/"+url.PathEscape(o.Order))
	status := http.StatusOK
	if created {
		status = http.StatusAccepted
	}
	s.respond(w, status, o)
	return nil
}

// paramsOf has the fields read and checked as they will be when they are sent. That
// reader is strict: it refuses a field that comes twice, as a number within transfer would.
// What it does not know is in Extra. If your service requires such fields, allow them here.
func paramsOf(number, transfer json.RawMessage) (p cardwire.TransferParams, err error) {
	if number == nil || !bytes.HasPrefix(transfer, []byte("{")) {
		return p, &statusError{http.StatusUnprocessableEntity, errors.New("expected order, a string, and transfer, an object")}
	}
	text := slices.Concat([]byte(`{"merchantOrderNo":`), number)
	if fields := bytes.TrimSpace(transfer[1:]); fields[0] != '}' {
		text = append(text, ',')
	}
	err = p.UnmarshalJSON(append(text, transfer[1:]...))
	switch {
	case errors.Is(err, cardwire.ErrUnreadable): // that is not the service's response
		_, reason, _ := strings.Cut(err.Error(), "TransferParams: ")
		err = &statusError{http.StatusUnprocessableEntity, fmt.Errorf("order and transfer: %s: each field is a string that is not empty, "+
			"and transferAmount has two decimals and is above zero, as in \"12.50\"", strings.TrimPrefix(reason, "*: "))}
	case err == nil && p.Extra != nil: // a typo must not be a payout without what was meant
		err = &statusError{http.StatusUnprocessableEntity, fmt.Errorf("transfer has unknown fields: %q", slices.Sorted(maps.Keys(p.Extra)))}
	}
	return p, err
}

func (s *service) getPayouts(w http.ResponseWriter, r *http.Request) error {
	state := r.URL.Query().Get("state")
	if state != "" && !slices.Contains(states, state) {
		return &statusError{http.StatusUnprocessableEntity, fmt.Errorf("state must be one of %s", strings.Join(states, ", "))}
	}
	list, err := s.list(r.Context(), state, r.URL.Query().Get("after"), pageSize)
	if err != nil {
		return err
	}
	if len(list) == pageSize {
		w.Header().Set("Link", fmt.Sprintf("<%s>; rel=%q", nextPage(r.URL.Path, state, list), "next"))
	}
	s.respond(w, http.StatusOK, map[string]any{"payouts": list})
	return nil
}

func nextPage(path, state string, list []order) string {
	return path + "?" + url.Values{"state": {state}, "after": {list[len(list)-1].Order}}.Encode()
}

const (
	requestTimeout = 15 * time.Second
	maxBody        = 64 << 10 // more than any request needs
	pageSize       = 100
)

// decode reads one JSON object with these fields, each at most once and by its exact name:
// what was meant otherwise must not be a payout.
func decode(w http.ResponseWriter, r *http.Request, fields map[string]any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || !utf8.Valid(text) || !json.Valid(text) || !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return errBody
	}
	d := json.NewDecoder(bytes.NewReader(text)) // of which each token is valid
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		key, _ := name.(string)
		field := fields[key]
		if field == nil || d.Decode(field) != nil {
			return &statusError{http.StatusBadRequest, fmt.Errorf("the field %q is unknown, comes twice or is of another type", key)}
		}
		delete(fields, key)
	}
	return nil
}

// signedIn is who makes a request: the user, where there is a password, or whoever the
// request names.
func signedIn(r *http.Request, named string) string {
	if user, _, ok := r.BasicAuth(); ok && user != "" {
		return user
	}
	return strings.TrimSpace(named)
}
