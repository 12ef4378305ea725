package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/journal"
)

// The outcomes of a Resolution, but for StatePaid and StateReturned.
const (
	executed    = "executed"
	notExecuted = "not_executed"
	sendAgain   = "send_again"
)

// outcomes are what a person may find out about an order.
var outcomes = map[string]cardwire.Outcome{
	executed:              cardwire.OutcomeExecuted,
	notExecuted:           cardwire.OutcomeRefused,
	sendAgain:             cardwire.OutcomeNotSent,
	string(StatePaid):     cardwire.OutcomeExecuted,
	string(StateReturned): cardwire.OutcomeExecuted,
}

// Resolution is what a person found out about an order, and why.
type Resolution struct {
	// Call is the Order's, as it was when the service was asked; "": it had none.
	Call string
	// Outcome is "executed": the service has it; "not_executed": the service does not have it, and it is not sent any more;
	// "send_again": the same, and it is sent again, which pays; or, of what was executed, "paid" or "returned".
	Outcome string
	// ServiceID is the service's number, of what was executed; "": not known.
	ServiceID string
	// AsOf is when the service was asked, of what was not executed: at Order.DenyFrom or later.
	AsOf time.Time
	// By is who found it out, for the history. It is required.
	By string
	// Why is how, as in the number of a ticket. It is required.
	Why string
}

// isMoney reports whether it is of what became of the money.
func (r Resolution) isMoney() bool {
	return r.Outcome == string(StatePaid) || r.Outcome == string(StateReturned)
}

// isDenial reports whether it says that nothing was executed.
func (r Resolution) isDenial() bool { return outcomes[r.Outcome] != cardwire.OutcomeExecuted }

// check reports what no order can have.
func (r Resolution) check() error {
	outcome, ok := outcomes[r.Outcome]
	switch {
	case !ok:
		return invalid("the outcome must be executed, not_executed, send_again, paid or returned")
	case r.ServiceID != "" && outcome != cardwire.OutcomeExecuted:
		return invalid("the service's number is only of an order that was executed")
	case !isText(r.Call, r.ServiceID):
		return errText
	}
	return checkWho(r.By, r.Why)
}

// Resolve records what a person found out about an order, or corrects it, and returns the order as it is then: the journal's
// change, the order's and the wake-up of its job are one transaction. An order that is not as the resolution says, or that
// the service could still execute, is [ErrConflict]; with Config.FourEyes also to send again what the same person decided
// about last. Other errors are [ErrNoOrder] and cardwire.ErrInvalidParams.
func (s *Service) Resolve(ctx context.Context, number string, r Resolution) (Order, error) {
	if err := r.check(); err != nil {
		return Order{}, err
	}
	return s.changeOrder(ctx, number, r.By, r.Outcome, func(tx *sql.Tx, o order) error {
		switch {
		case r.isMoney() && o.Journal != "executed":
			return moved(o)
		case r.isMoney() && (r.ServiceID == "" || r.ServiceID == o.ServiceID):
			return s.recordOnOrder(ctx, tx, o, State(r.Outcome), r.By, r.Why)
		case r.Outcome == sendAgain && o.State == StateQueued:
			return moved(o)
		case r.Outcome == sendAgain && o.State == StateUnresolved && hasEnded(o.Told):
			return conflict("this order was reported as ended: record that it was not executed, and use a new number")
		case r.isDenial() && o.Journal == "executed" && !r.AsOf.IsZero() && r.AsOf.Before(o.DenyFrom): // paid was said since
			return conflict("ask the service at %s or later, and say when in AsOf", o.DenyFrom.UTC().Format(time.RFC3339Nano))
		case r.Call == "" && o.Call != "":
			return invalid("the call is required: get the order, and ask the service about its call")
		}
		if r.Outcome == sendAgain {
			if err := s.checkDecision(ctx, tx, o, r.By); err != nil {
				return err
			}
		}
		return s.resolveInJournal(ctx, tx, o, r)
	})
}

// ResolveAll is [Service.Resolve] of several orders, each for itself, of the call that each has now: Call and ServiceID must
// be empty. It returns the orders that it resolved, and an error that names and wraps that of each other one.
func (s *Service) ResolveAll(ctx context.Context, numbers []string, r Resolution) (resolved []Order, err error) {
	if r.Call != "" || r.ServiceID != "" {
		return nil, invalid("a call and the service's number are of one order")
	}
	var errs []error
	for _, number := range numbers {
		o, err := s.Order(ctx, number)
		if err == nil {
			r.Call = o.Call
			o, err = s.Resolve(ctx, number, r)
		}
		if err == nil {
			resolved = append(resolved, o)
		} else {
			errs = append(errs, fmt.Errorf("order %q: %w", number, err))
		}
	}
	return resolved, errors.Join(errs...)
}

// Cancel closes an order of which nothing was executed, and returns it as it is then. Once the journal has closed the number
// nobody can send it, whatever a worker is about to do. An order that is not queued is [ErrConflict], but for one that failed
// or was canceled before, which is returned as it is; others are [ErrNoOrder] and cardwire.ErrInvalidParams.
func (s *Service) Cancel(ctx context.Context, number, by, why string) (Order, error) {
	if err := checkWho(by, why); err != nil {
		return Order{}, err
	}
	return s.changeOrder(ctx, number, by, string(StateCanceled), func(tx *sql.Tx, o order) error {
		switch {
		case o.State == StateFailed, o.State == StateCanceled: // as where the response was lost
			return nil
		case o.State != StateQueued:
			return moved(o)
		}
		if err := s.journal.In(tx).Void(ctx, s.intent(o), by, why); err != nil {
			return err
		}
		return s.recordOnOrder(ctx, tx, o, StateCanceled, by, why)
	})
}

// moved is the conflict of an order that is not in a state in which that can be done.
func moved(o order) error {
	return conflict("the order is in another state now: %s is %s", o.Number, o.State)
}

// resolveInJournal records what is known of a call. The journal determines whether it is accepted, also
// where it corrects what a person said before.
func (s *Service) resolveInJournal(ctx context.Context, tx *sql.Tx, o order, r Resolution) error {
	i := s.intent(o)
	i.Call = r.Call
	err := s.journal.In(tx).Resolve(ctx, i, journal.Resolution{
		Outcome: outcomes[r.Outcome], ServiceID: r.ServiceID, By: r.By, Note: r.Why, AsOf: r.AsOf,
	})
	if err != nil {
		return err
	}
	said := State("")
	if r.isMoney() {
		said = State(r.Outcome)
	} else if !r.isDenial() || o.Said == StateCanceled {
		said = o.Said
	}
	return s.exec(ctx, tx, `UPDATE @payouts SET said = $2, tried_at = NULL, waited = 0 WHERE order_no = $1`, o.Number, string(said))
}

// recordOnOrder records on the order what the journal's row does not say: that it is canceled, paid or returned.
func (s *Service) recordOnOrder(ctx context.Context, tx *sql.Tx, o order, said State, by, why string) error {
	if o.Said == said && o.State == said { // as where the response was lost
		return nil
	}
	err := s.exec(ctx, tx, `UPDATE @payouts SET said = $2, said_at = NOW() WHERE order_no = $1`, o.Number, string(said))
	if err != nil {
		return err
	}
	return s.addHistory(ctx, tx, o.Number, string(said), by, why)
}

// addHistory adds an event to the history of the orders, which has what the journal's does not.
func (s *Service) addHistory(ctx context.Context, db executor, number, what, by, why string) error {
	return s.exec(ctx, db, `INSERT INTO @payouts_history (order_no, at, what, who, note) VALUES ($1, NOW(), $2, $3, $4)`,
		number, what, by, why)
}

// checkDecision reports that the same person decided last about an order, if that matters.
func (s *Service) checkDecision(ctx context.Context, tx *sql.Tx, o order, by string) error {
	if !s.config.FourEyes {
		return nil
	}
	history, err := s.history(ctx, tx, o)
	last := ""
	for _, e := range history {
		last = cmp.Or(e.By, last)
	}
	return cmp.Or(err, s.checkOther(by, last))
}

// checkOther reports that a person is the one who decided last, if that matters.
func (s *Service) checkOther(by, last string) error {
	if s.config.FourEyes && strings.EqualFold(strings.TrimSpace(by), strings.TrimSpace(last)) {
		return conflict("%s decided last: another person must do this", last)
	}
	return nil
}

// checkWho reports what cannot be recorded of a change that a person makes.
func checkWho(by, why string) error {
	switch {
	case by == "" || why == "":
		return invalid("by and why are required, for the history")
	case !isText(by, why):
		return errText
	}
	for _, r := range by {
		if !unicode.IsPrint(r) {
			return invalid("by must be a name of visible characters")
		}
	}
	return nil
}

// changeOrder makes what a person decides about an order: all of it, or nothing.
func (s *Service) changeOrder(
	ctx context.Context, number, by, what string, do func(*sql.Tx, order) error,
) (Order, error) {
	var o order
	if !isText(number) {
		return o.Order, ErrNoOrder
	}
	err := s.withOrderLocked(ctx, number, func(tx *sql.Tx, before order) error {
		err := do(tx, before)
		if err == nil { // also where the journal's row stays as it is
			err = s.exec(ctx, tx, `INSERT INTO @payouts_marks (order_no) VALUES ($1)`, number)
		}
		if err == nil {
			o, err = s.find(ctx, tx, number)
		}
		if err == nil && o.State == StateQueued && before.State != StateQueued {
			err = s.wake(ctx, tx, o)
		}
		return err
	})
	if err == nil {
		s.logChange(ctx, slog.LevelInfo, number, State(what), by, "")
		s.wakeTeller()
	}
	return o.Order, cmp.Or(refusal(err), err)
}

// withOrderLocked does something with an order that nobody else changes before the transaction ends. The journal's row
// is locked first, as everywhere.
func (s *Service) withOrderLocked(ctx context.Context, number string, do func(*sql.Tx, order) error) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		for _, lock := range []string{
			`SELECT reference FROM @intents WHERE op = 'CreateTransfer' AND reference = $1 @lock`,
			`SELECT order_no FROM @payouts WHERE order_no = $1 @lock`,
		} {
			if _, err := query(ctx, s, tx, database.One[string], lock, number); err != nil {
				return err
			}
		}
		o, err := s.find(ctx, tx, number)
		if err == nil {
			err = do(tx, o)
		}
		return err
	})
}

// tryWithOrderLocked is withOrderLocked with a short timeout: where somebody else has the order, the next sweep tries again.
func (s *Service) tryWithOrderLocked(ctx context.Context, number string, do func(*sql.Tx, order) error) error {
	ctx, cancel := context.WithTimeout(ctx, minPause)
	defer cancel()
	return s.withOrderLocked(ctx, number, do)
}
