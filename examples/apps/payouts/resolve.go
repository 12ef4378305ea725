package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// What a person may say of an unresolved order. Of a submitted one it is paid or returned.
const (
	executed    = "executed"     // the service has it
	notExecuted = "not_executed" // it does not, and will not
)

// resolution is what a person found out, and why.
type resolution struct {
	Try       string // of an unresolved one: what GET returned when the service was asked
	Outcome   string
	ServiceID string // the service's number, of an executed one; "": not known
	SendAgain bool   // of one that was not executed; else it fails
	By        string
	Why       string
}

var errOtherID = conflict("the service's number on record is another one")

// resolve records what a person found out.
func (s *service) resolve(ctx context.Context, number string, r resolution) (order, error) {
	r.Why, r.ServiceID = strings.TrimSpace(r.Why), strings.TrimSpace(r.ServiceID)
	if err := r.check(); err != nil {
		return order{}, err
	}
	o, err := s.find(ctx, number)
	switch {
	case err != nil:
		return o, err
	case r.Outcome == paid, r.Outcome == returned:
		return s.recordMoney(ctx, o, r)
	}
	return s.recordOutcome(ctx, o, r)
}

func (r resolution) check() error {
	switch {
	case !slices.Contains([]string{executed, notExecuted, paid, returned}, r.Outcome):
		return invalid("the outcome must be executed or not_executed, or paid or returned of an order that was submitted")
	case r.Outcome == notExecuted && r.ServiceID != "": // a slip that pays twice
		return invalid("service_id means that it was executed: leave it out, or correct the outcome")
	case r.Outcome != notExecuted && r.SendAgain:
		return invalid("only what was not executed is sent again: leave out send_again, or correct the outcome")
	case !isText(r.ServiceID):
		return errText
	}
	return checkReason(r.By, r.Why)
}

func checkReason(by, why string) error {
	switch {
	case by == "" || why == "":
		return invalid("by and why are required: the history records who made the change, and why")
	case !isText(by, why):
		return errText
	}
	return nil
}

// isIn reports whether the order is what this resolution made of it, as where the response
// was lost.
func (r resolution) isIn(o order, state string) bool {
	return o.State == state && o.Note == r.Why && (r.ServiceID == "" || r.ServiceID == o.ServiceID)
}

// recordMoney records what became of the money of a submitted order, also where the first
// was a mistake. Of this the journal knows nothing.
func (s *service) recordMoney(ctx context.Context, o order, r resolution) (order, error) {
	switch {
	case r.isIn(o, r.Outcome):
		return o, nil
	case r.ServiceID != "" && o.ServiceID != "" && r.ServiceID != o.ServiceID:
		return o, errOtherID
	}
	return s.apply(ctx, change{
		order: o.Order, from: []string{submitted, paid, returned}, to: r.Outcome, by: r.By, note: r.Why, serviceID: r.ServiceID,
	})
}

// recordOutcome records whether an unresolved order was executed, first in the journal and
// then in the order, whose job is woken in the same transaction. After a crash in between,
// the same resolution finishes what was begun.
func (s *service) recordOutcome(ctx context.Context, o order, r resolution) (order, error) {
	to := submitted
	switch {
	case r.SendAgain:
		to = queued
	case r.Outcome == notExecuted:
		to = failed
	}
	again := r.isIn(o, to)
	if o.State != unresolved && !again {
		return o, errMoved
	}
	serviceID, err := s.tellJournal(ctx, o, r)
	if err != nil || again {
		return o, err
	}
	return s.apply(ctx, change{order: o.Order, from: []string{unresolved}, to: to, by: r.By, note: r.Why, serviceID: serviceID}, s.wake)
}

// tellJournal records the resolution of an unresolved order, by the rule: "not
// executed" only when nothing of the call can be sent, and the service has had its time.
// It returns the service's number, which the journal may know.
func (s *service) tellJournal(ctx context.Context, o order, r resolution) (serviceID string, err error) {
	e, err := s.lookup(ctx, o.Order)
	happened := e.Outcome == cardwire.OutcomeExecuted
	switch {
	case err != nil:
		return "", err
	case r.Try == "":
		return "", invalid("try is required: get the order, and ask the service about this try")
	case r.Try != o.Try, o.State != unresolved && e.Try != o.Try: // what was found out about one try proves nothing about a later one
		return "", conflict("this is about another try: the order was sent again since; get it, and ask the service about this try")
	case o.OtherBody && r.Outcome == executed:
		return r.ServiceID, nil // the intent belongs to another request
	case o.OtherBody:
		return "", conflict("in the journal this number belongs to another request: this order was not sent, " +
			"and \"not executed\" would free the other one; use a new number")
	case e.Try != o.Try:
		return "", conflict(`the journal has no record of this try: see docs/operations.md, "Backups, and what a restore forgets"`)
	case happened && r.ServiceID != "" && e.ServiceID == "":
		return "", conflict("the journal has this order as executed, without the service's number: leave service_id out, " +
			"and record it later, with paid or returned")
	case happened && r.ServiceID != "" && r.ServiceID != e.ServiceID:
		return "", errOtherID
	}
	found := sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted, ServiceID: r.ServiceID, By: r.By, Note: r.Why}
	if r.Outcome == notExecuted {
		found.Outcome, found.Close = cardwire.OutcomeNotSent, !r.SendAgain
		if from := s.notBefore(e); !from.IsZero() {
			return "", conflict("it is too early: the service may still execute it; ask again after " + from.Format(time.RFC3339))
		}
	}
	err = s.journal.Resolve(ctx, e, found)
	if errors.Is(err, sqljournal.ErrDecided) && e.Outcome != cardwire.OutcomeUnknown && happened == (r.Outcome == executed) {
		err = nil // it says so already
		if found.Close {
			err = s.journal.Void(ctx, operation, o.Order, r.By, r.Why)
		}
	}
	if r.Outcome == executed {
		serviceID = cmp.Or(r.ServiceID, e.ServiceID)
	}
	return serviceID, err
}

// notBefore is when "not executed" is believed of a try; zero: now.
func (s *service) notBefore(e sqljournal.Entry) (from time.Time) {
	if end := e.SendBy.Add(s.grace); time.Now().Before(end) {
		from = end
	}
	return from
}

// cancel closes an order of which nothing was executed. The journal is asked first:
// once it has closed the number nobody can send it, whatever a worker is about to do.
func (s *service) cancel(ctx context.Context, number, by, why string) (order, error) {
	why = strings.TrimSpace(why)
	if err := checkReason(by, why); err != nil {
		return order{}, err
	}
	o, err := s.find(ctx, number)
	switch {
	case err != nil, o.State == cancelled:
		return o, err
	case o.State != queued:
		return o, errMoved
	}
	if err := s.journal.Void(ctx, operation, number, by, why); err != nil {
		return o, err
	}
	// A worker that took the order meanwhile finds the number closed, and fails it.
	return s.apply(ctx, change{order: number, from: []string{queued, sending, failed}, to: cancelled, by: by, note: why}, s.wake)
}
