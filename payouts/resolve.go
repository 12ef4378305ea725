package payouts

import (
	"context"
	"database/sql"
	"log/slog"
	"time"
	"unicode"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/journal"
)

// outcomes are what a person may find out about an order.
var outcomes = map[string]cardwire.Outcome{
	"executed":     cardwire.OutcomeExecuted, // the service has it
	"not_executed": cardwire.OutcomeRefused,  // the service does not have it, and it is not sent any more
	"send_again":   cardwire.OutcomeNotSent,  // as "not_executed", and this pays
	StatePaid:      cardwire.OutcomeExecuted, // of one that was executed
	StateReturned:  cardwire.OutcomeExecuted, // of one that was executed
}

// resolution is what a person found out, and why.
type resolution struct {
	Call      string // the journal's: what the order had when the service was asked
	Outcome   string
	ServiceID string    // the service's number, of an executed one; "": not known
	AsOf      time.Time // when the service was asked, of what was not executed
	By        string
	Why       string
}

// isMoney reports whether it is of what became of the money.
func (r resolution) isMoney() bool { return r.Outcome == StatePaid || r.Outcome == StateReturned }

// isDenial reports whether it says that nothing was executed.
func (r resolution) isDenial() bool { return outcomes[r.Outcome] != cardwire.OutcomeExecuted }

// resolve records what a person found out, or corrects it: the journal's change, the order's
// and the wake-up of its job are one transaction.
func (s *Service) resolve(ctx context.Context, number string, r resolution) (order, error) {
	if !isText(r.Call, r.ServiceID) {
		return order{}, errText
	}
	return s.changeOrder(ctx, number, r.By, r.Outcome, func(tx *sql.Tx, o order) error {
		switch {
		case r.isMoney() && o.Journal != "executed":
			return errMoved
		case r.isMoney() && (r.ServiceID == "" || r.ServiceID == o.ServiceID):
			return s.recordOnOrder(ctx, tx, o, r.Outcome, r.By, r.Why)
		case r.Outcome == "send_again" && o.State == StateQueued:
			return errMoved
		case r.Outcome == "send_again" && o.State == StateUnresolved && hasEnded(o.Told):
			return conflict("this order was reported as ended: record that it was not executed, and use a new number")
		case r.isDenial() && o.Journal == "executed" && !r.AsOf.IsZero() && r.AsOf.Before(o.DenyFrom): // paid was said since
			return conflict("ask the service at " + after(o.DenyFrom) + " UTC or later, and say when in as_of")
		case r.Call == "" && o.Call != "":
			return invalid("call is required: get the order, and ask the service about this call")
		}
		return s.resolveInJournal(ctx, tx, o, r)
	})
}

// resolveInJournal records what is known of a call. The journal determines whether it is accepted, also
// where it corrects what a person said before.
func (s *Service) resolveInJournal(ctx context.Context, tx *sql.Tx, o order, r resolution) error {
	i := s.intent(o)
	i.Call = r.Call
	err := s.journal.In(tx).Resolve(ctx, i, journal.Resolution{
		Outcome: outcomes[r.Outcome], ServiceID: r.ServiceID, By: r.By, Note: r.Why, AsOf: r.AsOf,
	})
	if err != nil {
		return err
	}
	said := ""
	if r.isMoney() {
		said = r.Outcome
	} else if !r.isDenial() || o.Said == StateCanceled {
		said = o.Said
	}
	return s.exec(ctx, tx, `UPDATE @payouts SET said = $2, tried_at = NULL, waited = 0 WHERE order_no = $1`, o.Number, said)
}

// recordOnOrder records what a person says of the order alone: the journal knows nothing of it.
func (s *Service) recordOnOrder(ctx context.Context, tx *sql.Tx, o order, said, by, why string) error {
	if o.Said == said && o.State == said { // as where the response was lost
		return nil
	}
	err := s.exec(ctx, tx, `UPDATE @payouts SET said = $2, said_at = NOW() WHERE order_no = $1`, o.Number, said)
	if err != nil {
		return err
	}
	return s.addHistory(ctx, tx, o.Number, said, by, why)
}

// addHistory puts into the history what the journal's does not have.
func (s *Service) addHistory(ctx context.Context, db executor, number, what, by, why string) error {
	return s.exec(ctx, db, `INSERT INTO @payouts_history (order_no, at, what, who, note) VALUES ($1, NOW(), $2, $3, $4)`,
		number, what, by, why)
}

// cancel closes an order of which nothing was executed. Once the journal has closed the number
// nobody can send it, whatever a worker is about to do.
func (s *Service) cancel(ctx context.Context, number, by, why string) (order, error) {
	return s.changeOrder(ctx, number, by, StateCanceled, func(tx *sql.Tx, o order) error {
		switch {
		case o.State == StateFailed, o.State == StateCanceled: // as where the response was lost
			return nil
		case o.State != StateQueued:
			return errMoved
		}
		if err := s.journal.In(tx).Void(ctx, s.intent(o), by, why); err != nil {
			return err
		}
		return s.recordOnOrder(ctx, tx, o, StateCanceled, by, why)
	})
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
) (o order, err error) {
	if !isText(number) {
		return o, ErrNoOrder
	}
	err = s.withOrderLocked(ctx, number, func(tx *sql.Tx, before order) error {
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
		s.logChange(ctx, slog.LevelInfo, number, what, by, "")
		s.wakeTeller()
	}
	return o, err
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
