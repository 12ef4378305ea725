package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// What a person may say of an order.
const (
	executed    = "executed"     // of an unresolved one: the service has it
	notExecuted = "not_executed" // of an unresolved one: it does not, and will not
)

// resolution is what a person found out, and on what grounds.
type resolution struct {
	Try       string // of an unresolved one: what GET returned when the service was asked
	Outcome   string // executed or not_executed; of a submitted order paid or returned
	ServiceID string // the service's number, of an executed one; "": not known
	SendAgain bool   // of one that was not executed; else it fails
	By        string
	Why       string
}

var (
	errOutcome  = errors.New("the outcome must be executed or not_executed, or paid or returned of an order that was submitted")
	errHasID    = errors.New("service_id means that it was executed: leave it out, or correct the outcome")
	errNotAgain = errors.New("only what was not executed is sent again: leave out send_again, or correct the outcome")
	errWho      = errors.New("by and why are required: the history keeps who decided, and on what grounds")
	errOtherID  = errors.New("the service's number on record is another one, or there is none")
	errTooEarly = errors.New("it is too early")
	errOthers   = errors.New("in the journal this number belongs to another request: this order was not sent, and \"not executed\" would free the other one; use a new number")
	errTry      = errors.New("try is required: get the order, and ask the service about this try")
	errOtherTry = errors.New("this is about another try: the order was sent again since; get it, and ask the service about this try")
)

// resolve records what a person found out, first in the journal and then in the order,
// whose job is woken in the same transaction. After a crash in between, the same
// resolution finishes what was begun.
func (s *service) resolve(ctx context.Context, number string, r resolution) (order, error) {
	r.Why, r.ServiceID = strings.TrimSpace(r.Why), strings.TrimSpace(r.ServiceID)
	c := change{order: number, from: []string{unresolved}, by: r.By, note: r.Why, serviceID: r.ServiceID}
	switch {
	case r.By == "" || r.Why == "":
		return order{}, errWho
	case !isText(r.By, r.Why, r.ServiceID):
		return order{}, errText
	case r.Outcome == notExecuted && r.ServiceID != "":
		return order{}, errHasID // a slip that pays twice
	case r.Outcome == paid, r.Outcome == returned: // also where the first was a mistake
		c.from, c.to = []string{submitted, paid, returned}, r.Outcome
	case r.Outcome == executed:
		c.to = submitted
	case r.Outcome == notExecuted && r.SendAgain:
		c.to = queued
	case r.Outcome == notExecuted:
		c.to = failed
	default:
		return order{}, errOutcome
	}
	if r.SendAgain && r.Outcome != notExecuted {
		return order{}, errNotAgain
	}
	o, err := s.find(ctx, number)
	again := o.State == c.to && o.Note == c.note // the response was lost
	switch {
	case err != nil:
		return o, err
	case !again && !slices.Contains(c.from, o.State):
		return o, errMoved
	case o.State != unresolved && r.ServiceID != "" && r.ServiceID != o.ServiceID && (again || o.ServiceID != ""):
		return o, errOtherID
	case c.from[0] != unresolved && again:
		return o, nil
	case c.from[0] != unresolved:
		return s.apply(ctx, c)
	}
	if c.serviceID, err = s.tellJournal(ctx, o, r); err != nil || again {
		return o, err
	}
	return s.apply(ctx, c, func(tx *sql.Tx, o order) error { return s.wake(ctx, tx, o) })
}

// tellJournal records the resolution of an unresolved order, by the rule: "not
// executed" only when nothing of the call can be sent, and the service has had its time.
// It returns the service's number, which the journal may know.
func (s *service) tellJournal(ctx context.Context, o order, r resolution) (serviceID string, err error) {
	e, err := s.journal.Lookup(ctx, operation, o.Order)
	switch {
	case err != nil:
		return "", err
	case r.Try == "":
		return "", errTry
	case e.Try != r.Try: // what was found out about one try proves nothing about a later one
		return "", errOtherTry
	case o.OtherBody && r.Outcome == executed:
		return r.ServiceID, nil // the intent belongs to another request
	case o.OtherBody:
		return "", errOthers
	case r.ServiceID != "" && e.ServiceID != "" && r.ServiceID != e.ServiceID:
		return "", errOtherID
	}
	found := sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted, ServiceID: r.ServiceID, By: r.By, Note: r.Why}
	if r.Outcome == notExecuted {
		found.Outcome, found.Close = cardwire.OutcomeNotSent, !r.SendAgain
		if from := e.SendBy.Add(s.grace); time.Now().Before(from) {
			return "", fmt.Errorf("%w: the service may still execute it; ask again after %s", errTooEarly, from.Format(time.RFC3339))
		}
	}
	err = s.journal.Resolve(ctx, e, found)
	happened := e.Outcome == cardwire.OutcomeExecuted
	if errors.Is(err, sqljournal.ErrDecided) && e.Outcome != cardwire.OutcomeUnknown && happened == (r.Outcome == executed) {
		err = nil // it says so already
		if found.Close {
			err = s.journal.Void(ctx, operation, o.Order, r.By, r.Why)
		}
	}
	return cmp.Or(r.ServiceID, e.ServiceID), err
}

// cancel closes an order of which nothing was executed. The journal is asked first:
// once it has closed the number nobody can send it, whatever a worker is about to do.
func (s *service) cancel(ctx context.Context, number, by, why string) (order, error) {
	why = strings.TrimSpace(why)
	o, err := s.find(ctx, number)
	switch {
	case err != nil:
		return o, err
	case by == "" || why == "":
		return o, errWho
	case !isText(by, why):
		return o, errText
	case o.State == cancelled:
		return o, nil
	case o.State != queued:
		return o, errMoved
	}
	if err := s.journal.Void(ctx, operation, number, by, why); err != nil {
		return o, err
	}
	// A worker that took the order meanwhile finds the number closed, and fails it.
	return s.apply(ctx, change{
		order: number, from: []string{queued, sending, failed}, to: cancelled, by: by, note: why, level: slog.LevelInfo,
	}, func(tx *sql.Tx, o order) error { return s.wake(ctx, tx, o) })
}
