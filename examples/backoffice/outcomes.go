package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// said is what came of something; templates/said.html has the words for each kind.
type said struct {
	Kind      string
	What      string // what it is about, like "The transfer"
	Service   string // the service's own words; "": none
	Status    string // the service's, of what it accepted; "": none
	Reference string // what to ask the service about; "": nothing
}

// verdict says what an error comes to that is all of these.
type verdict struct {
	kind   string
	status int
	is     []error
}

// ofWrites decides first whether it happened, and only then why not. The last
// takes whatever is left: what nobody decided may have happened.
var ofWrites = []verdict{
	{"other-body", http.StatusConflict, []error{sqljournal.ErrOtherBody}},
	{"done-before", http.StatusConflict, []error{cardwire.ErrDuplicateIntent, cardwire.ErrExecuted}},
	{"still-unknown", http.StatusConflict, []error{cardwire.ErrDuplicateIntent}},
	{"invalid", http.StatusUnprocessableEntity, []error{cardwire.ErrNotSent, cardwire.ErrInvalidParams}},
	{"not-sent", http.StatusServiceUnavailable, []error{cardwire.ErrNotSent}},
	{"refused", http.StatusUnprocessableEntity, []error{cardwire.ErrRefused}},
	{"executed", http.StatusOK, []error{cardwire.ErrExecuted}},
	{"unknown", http.StatusBadGateway, nil},
}

// ofReads is simpler: whatever went wrong, nothing was changed.
var ofReads = []verdict{
	{"invalid", http.StatusBadRequest, []error{cardwire.ErrInvalidParams}},
	{"ignored", http.StatusBadGateway, []error{cardwire.ErrParameterIgnored}},
	{"not-found", http.StatusNotFound, []error{cardwire.ErrNotFound}},
	{"wrong-key", http.StatusBadGateway, []error{cardwire.ErrUnauthorized}},
	{"busy", http.StatusServiceUnavailable, []error{cardwire.ErrRateLimited}},
	{"unreadable", http.StatusBadGateway, nil},
}

func judge(verdicts []verdict, what string, err error) (status int, s *said) {
	s = &said{What: what}
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		s.Service, s.Reference = failure.Message, failure.Reference
	}
	for _, v := range verdicts {
		if !slices.ContainsFunc(v.is, func(target error) bool { return !errors.Is(err, target) }) {
			s.Kind = v.kind
			return v.status, s
		}
	}
	panic("the last verdict takes every error")
}

// problem is what the SDK says of a parameter: the name of its field in Go, and
// what is wrong with it.
func problem(err error) (field, text string) {
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		err = failure.Unwrap()
	}
	field, text, _ = strings.Cut(strings.TrimPrefix(err.Error(), cardwire.ErrInvalidParams.Error()+": "), " ")
	return field, text
}

// careful is a journal that also lets nobody retry or cancel a failed operation
// again of which it is undecided what came of the last time.
type careful struct{ *sqljournal.Journal }

func (j careful) Begin(ctx context.Context, i cardwire.Intent) error {
	if i.Unique { // the journal itself sees to that
		return j.Journal.Begin(ctx, i)
	}
	entries, err := j.Undecided(ctx, 0)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Op == i.Op && strings.EqualFold(e.Reference, i.Reference) { // the same UUID in either case
			// Wrapped, so that it holds whatever the Profile says.
			return fmt.Errorf("undecided: %w", &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown})
		}
	}
	return j.Journal.Begin(ctx, i)
}

// matter is a write of which nobody knows whether it happened.
type matter struct {
	sqljournal.Entry
	// UnderWay says that a call of it may still be waiting for its answer: to
	// settle it now could let a second one go.
	UnderWay bool
}

// callTime is longer than any call takes that has a reference, recording included.
const callTime = writeTimeout + 30*time.Second

func (o *office) matters(ctx context.Context) ([]matter, error) {
	entries, err := o.journal.Undecided(ctx, 0)
	var matters []matter
	for _, e := range entries {
		matters = append(matters, matter{e, e.Open && time.Since(e.BegunAt) < callTime})
	}
	return matters, err
}

func (o *office) undecided(w http.ResponseWriter, r *http.Request) {
	o.showUndecided(w, r, http.StatusOK, nil)
}

func (o *office) showUndecided(w http.ResponseWriter, r *http.Request, status int, s *said) {
	matters, err := o.matters(r.Context())
	if err != nil {
		o.log.ErrorContext(r.Context(), "the journal could not be read", "error", err)
		o.tell(w, r, http.StatusServiceUnavailable, &said{Kind: "no-journal"})
		return
	}
	o.show(w, r, status, "undecided", page{Title: "Undecided", Nav: "undecided", Said: s, Data: matters})
}

// answers are what the service may have said.
var answers = map[string]cardwire.Outcome{"executed": cardwire.OutcomeExecuted, "refused": cardwire.OutcomeRefused}

// resolve records what the service said. It is the one page that can let
// something be sent again, and leaves a trace in the log.
func (o *office) resolve(w http.ResponseWriter, r *http.Request) {
	if !o.readForm(w, r) {
		return
	}
	answer := r.PostForm.Get("answer")
	tried := sqljournal.Entry{Op: r.PostForm.Get("op"), Reference: r.PostForm.Get("reference"), Try: r.PostForm.Get("try")}
	status, kind := o.record(r.Context(), tried, answer)
	o.log.InfoContext(r.Context(), "resolve", "operation", tried.Op, "reference", tried.Reference, "try", tried.Try, "result", kind)
	o.showUndecided(w, r, status, &said{Kind: kind, Reference: tried.Reference})
}

// record decides the one try that the page showed: of a later one the answer says
// nothing.
func (o *office) record(ctx context.Context, tried sqljournal.Entry, answer string) (status int, kind string) {
	outcome, ok := answers[answer]
	if !ok {
		return http.StatusUnprocessableEntity, "no-answer"
	}
	matters, err := o.matters(ctx)
	for _, m := range matters {
		if m.Op == tried.Op && m.Reference == tried.Reference && m.UnderWay {
			return http.StatusConflict, "too-early"
		}
	}
	if err == nil {
		err = o.journal.ResolveEntry(ctx, tried, outcome)
	}
	switch {
	case err == nil:
		return http.StatusOK, "resolved-" + answer
	case errors.Is(err, sqljournal.ErrDecided), errors.Is(err, sqljournal.ErrNoIntent):
		return http.StatusConflict, "moved-on"
	}
	return http.StatusServiceUnavailable, "not-recorded"
}
