package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// outcomes are what a person may find out about an order, and the state that it leads to.
var outcomes = map[string]string{
	executed:       submitted, // the service has it
	"not_executed": failed,    // the service does not have it, and never will
	"send_again":   queued,    // as "not_executed", and this pays
	paid:           paid,      // of one that was submitted
	returned:       returned,  // of one that was submitted
}

const executed = "executed"

// resolution is what a person found out, and why.
type resolution struct {
	Try       string // of an unresolved one: what GET returned when the service was asked
	Outcome   string
	ServiceID string // the service's number, of an executed one; "": not known
	By        string
	Why       string
}

// resolve records what a person found out: of an unresolved order first in the journal and
// then in the order, whose job is woken in the same transaction. After a crash in between,
// the same resolution finishes what was begun.
func (s *service) resolve(ctx context.Context, number string, r resolution) (order, error) {
	r.Why, r.ServiceID = strings.TrimSpace(r.Why), strings.TrimSpace(r.ServiceID)
	to := outcomes[r.Outcome]
	switch {
	case to == "":
		return order{}, invalid("the outcome must be executed, not_executed or send_again, or paid or returned of an order that was submitted")
	case r.ServiceID != "" && (to == failed || to == queued): // a slip that pays twice
		return order{}, invalid("service_id means that it was executed: leave it out, or correct the outcome")
	}
	if err := check(r.By, r.Why, r.ServiceID); err != nil {
		return order{}, err
	}
	o, err := s.find(ctx, number)
	c := change{order: number, from: []string{unresolved}, to: to, by: r.By, note: r.Why, serviceID: r.ServiceID}
	ofMoney := to == paid || to == returned // which the journal knows nothing of
	same := o.State == to && o.Note == r.Why && (ofMoney || o.Try == r.Try) && (r.ServiceID == "" || r.ServiceID == o.ServiceID)
	switch {
	case err != nil, same: // as where the response was lost
		return o, err
	case ofMoney: // also where the first was a mistake
		c.from = []string{submitted, paid, returned}
		return s.apply(ctx, c)
	}
	if o, err = s.findEntry(ctx, number); err == nil && o.State != unresolved {
		err = errMoved
	}
	if err == nil {
		c.serviceID, err = s.tellJournal(ctx, o, r)
	}
	if err != nil {
		return o, err
	}
	return s.apply(ctx, c, s.wake)
}

// check reports what cannot be recorded of a change that a person makes.
func check(by, why, serviceID string) error {
	switch {
	case by == "" || why == "":
		return invalid("by and why are required: the history records who made the change, and why")
	case !isText(by, why, serviceID):
		return errText
	}
	return nil
}

// tellJournal records the resolution of an unresolved order, by the rule: "not
// executed" only when nothing of the call can be sent, and the service has had its time.
// It returns the service's number, which the journal may know.
func (s *service) tellJournal(ctx context.Context, o order, r resolution) (serviceID string, err error) {
	said, known := r.Outcome == executed, o.Entry.Outcome == cardwire.OutcomeExecuted
	switch {
	case r.Try == "":
		return "", invalid("try is required: get the order, and ask the service about this try")
	case r.Try != o.Try: // what was found out about one try proves nothing about a later one
		return "", conflict("this is about another try: the order was sent again since; get it, and ask the service about this try")
	case o.OtherBody && said:
		return r.ServiceID, nil // the intent belongs to another request
	case o.OtherBody:
		return "", conflict("in the journal this number belongs to another request: this order was not sent, " +
			"and \"not executed\" would free the other one; use a new number")
	case o.IsForgotten():
		return "", conflict(`the journal has no record of this try: see docs/operations.md, "Backups, and what a restore forgets"`)
	case known && r.ServiceID != "" && r.ServiceID != o.Entry.ServiceID:
		return "", conflict("the journal has this order as executed, with another number of the service's or none: leave service_id out, " +
			"and record it later, with paid or returned")
	}
	found := sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted, ServiceID: r.ServiceID, By: r.By, Note: r.Why}
	if !said {
		found.Outcome, found.Close = cardwire.OutcomeNotSent, outcomes[r.Outcome] == failed
		if from := s.notBefore(o.Entry); !from.IsZero() {
			return "", conflict("it is too early: the service may still execute it; ask again after " + from.Format(time.RFC3339))
		}
	}
	err = s.journal.Resolve(ctx, o.Entry, found)
	if errors.Is(err, sqljournal.ErrDecided) && o.Entry.Outcome != cardwire.OutcomeUnknown && known == said {
		err = nil // it says so already
		if found.Close {
			err = s.journal.Void(ctx, operation, o.Order, r.By, r.Why)
		}
	}
	if said {
		serviceID = cmp.Or(r.ServiceID, o.Entry.ServiceID)
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
	if err := check(by, why, ""); err != nil {
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
	return s.apply(ctx, change{order: number, from: []string{queued}, to: cancelled, by: by, note: why})
}
