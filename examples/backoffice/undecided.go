package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

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
	op, answer := r.PostForm.Get("op"), r.PostForm.Get("answer")
	s := &said{Kind: "resolved-" + answer, Reference: r.PostForm.Get("reference")}
	status := http.StatusOK
	switch err := o.record(r.Context(), op, s.Reference, answer); {
	case err == nil:
		o.log.InfoContext(r.Context(), "resolved", "operation", op, "reference", s.Reference, "answer", answer)
	case errors.Is(err, errNoAnswer):
		status, s.Kind = http.StatusUnprocessableEntity, "no-answer"
	case errors.Is(err, errUnderWay):
		status, s.Kind = http.StatusConflict, "too-early"
	case errors.Is(err, sqljournal.ErrDecided), errors.Is(err, sqljournal.ErrNoIntent):
		status, s.Kind = http.StatusConflict, "decided"
	default:
		o.log.ErrorContext(r.Context(), "not resolved", "operation", op, "reference", s.Reference, "error", err)
		status, s.Kind = http.StatusServiceUnavailable, "not-recorded"
	}
	o.showUndecided(w, r, status, s)
}

var (
	errNoAnswer = errors.New("no answer was given")
	errUnderWay = errors.New("a call may be under way")
)

func (o *office) record(ctx context.Context, op, reference, answer string) error {
	outcome, ok := answers[answer]
	if !ok {
		return errNoAnswer
	}
	matters, err := o.matters(ctx)
	if err != nil {
		return err
	}
	for _, m := range matters {
		if m.Op == op && m.Reference == reference && m.UnderWay {
			return errUnderWay
		}
	}
	return o.journal.Resolve(ctx, op, reference, outcome)
}
