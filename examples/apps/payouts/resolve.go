package main

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/cardwire/cardwire-go"
)

// outcomes are what a person may find out about an order.
var outcomes = map[string]cardwire.Outcome{
	"executed":     cardwire.OutcomeExecuted, // the service has it
	"not_executed": cardwire.OutcomeRefused,  // the service does not have it, and it is not sent any more
	"send_again":   cardwire.OutcomeNotSent,  // as "not_executed", and this pays
	paid:           cardwire.OutcomeExecuted, // of one that was executed
	returned:       cardwire.OutcomeExecuted, // of one that was executed
}

// resolution is what a person found out, and why.
type resolution struct {
	Call      string // the journal's: what GET returned when the service was asked
	Outcome   string
	ServiceID string    // the service's number, of an executed one; "": not known
	AsOf      time.Time // when the service was asked, of what was not executed
	By        string
	Why       string
}

// resolve records what a person found out, or corrects it: the journal's change, the order's
// and the wake-up of its job are one transaction.
func (s *service) resolve(ctx context.Context, number string, r resolution) (o order, err error) {
	if !isText(r.Call, r.ServiceID) {
		return o, errText
	}
	if _, err := s.seen(ctx, number); err != nil {
		return o, err
	}
	return s.decide(ctx, number, r.By, r.Outcome, func(tx *sql.Tx, o order) error {
		ofMoney := r.Outcome == paid || r.Outcome == returned
		denied := outcomes[r.Outcome] != cardwire.OutcomeExecuted
		switch {
		case ofMoney && (o.State == submitted || o.State == paid || o.State == returned):
			return s.sayMoney(ctx, tx, o, r)
		case o.IsOther && o.Calls == 0 && !o.saidPaid():
			return conflict("in the journal this number belongs to another request: this order was not sent; " +
				"cancel it, and use a new number")
		case ofMoney:
			return errMoved
		case r.Call == "" && o.Call != "":
			return invalid("call is required: get the order, and ask the service about this call")
		case denied && o.saidPaid() && r.AsOf.Before(o.ChangedAt.Time): // by a form that was open before
			return conflict("the order was recorded as executed since: ask the service again, and say when in as_of")
		case r.Outcome == "send_again" && o.HasFailed:
			return conflict("this order was reported as failed or canceled: use a new number")
		case r.Outcome == "send_again" && (o.State == queued || o.State == held):
			return errMoved
		case r.Outcome == "send_again" && o.Ended() && o.Call == "":
			return conflict("the record of this order is not from a call of this program: " +
				"another program may have sent it: fail the order, and use a new number")
		case r.Outcome == "send_again" && o.Body == "":
			return conflict("the request of this order was purged: use a new number")
		// A call may have begun just before it was found that the journal has lost records.
		case o.isLost() && denied && (r.AsOf.IsZero() || r.AsOf.After(time.Now())):
			return invalid("as_of is required: when the service was asked, and not in the future")
		case o.isLost() && denied && (o.DenyFrom.IsZero() || r.AsOf.Before(o.DenyFrom.Time)):
			return conflict("the journal has lost records of this order, and the service may still execute it: " +
				"ask again after " + o.DenyFrom.Format(time.RFC3339))
		case o.isLost() && o.IsOther && r.Outcome == "send_again":
			return conflict("in the journal this number belongs to another request: use a new number")
		case o.isLost() && o.IsOther: // the journal has no row for this order
			said := map[string]string{"executed": submitted, "not_executed": failed}[r.Outcome]
			return cmp.Or(say(ctx, tx, o.Order, said), record(ctx, tx, o.Order, r.Outcome, r.By, r.Why))
		case o.isLost() && r.Outcome == "send_again":
			if err := rely(ctx, tx, o, r); err != nil {
				return err
			}
		}
		return cmp.Or(s.tellJournal(ctx, tx, o, r), agree(ctx, tx, o, r.Outcome))
	})
}

// decode reads what a request says of an order, and other fields.
func (r *resolution) decode(from *http.Request, fields map[string]any) (err error) {
	var asOf string
	fields["outcome"], fields["service_id"], fields["as_of"] = &r.Outcome, &r.ServiceID, &asOf
	if r.By, r.Why, err = decodeBy(from, fields); err != nil {
		return err
	}
	if asOf != "" {
		if r.AsOf, err = parseTime("as_of", asOf); err != nil {
			return err
		}
	}
	r.ServiceID = strings.TrimSpace(r.ServiceID)
	outcome, ok := outcomes[r.Outcome]
	switch {
	case !ok:
		return invalid("the outcome must be executed, not_executed, send_again, paid or returned")
	case outcome != cardwire.OutcomeExecuted && r.ServiceID != "":
		return invalid("service_id is only for an order that was executed")
	}
	return nil
}

// check reports what cannot be recorded of a change that a person makes.
func check(by, why string) error {
	switch {
	case by == "" || why == "":
		return invalid("by and why are required: the history records who made the change, and why")
	case !isText(by, why):
		return errText
	case strings.ContainsFunc(by, func(r rune) bool { return !unicode.IsPrint(r) }):
		return invalid("by must be a name of visible characters")
	}
	return nil
}

// seen returns an order that somebody looks at. Where the journal has forgotten it, this is
// the latest that it was found out.
func (s *service) seen(ctx context.Context, number string) (order, error) {
	o, err := s.find(ctx, number)
	if err == nil && o.isLost() && o.MissedAt.IsZero() {
		if err = s.miss(ctx, number); err == nil {
			o, err = s.find(ctx, number)
		}
	}
	return o, err
}

// decide makes what a person decides about an order: all of it, or nothing. The order's row
// is locked first, so that of two people one is first.
func (s *service) decide(
	ctx context.Context, number, by, what string, do func(*sql.Tx, order) error,
) (o order, err error) {
	if !isText(number) {
		return o, errNoOrder
	}
	err = s.locked(ctx, number, func(tx *sql.Tx, before order) error {
		o = before
		err := do(tx, o)
		if err == nil {
			o, err = s.findIn(ctx, tx, number)
		}
		if err == nil && o.State == queued {
			err = s.wake(ctx, tx, o)
		}
		return err
	})
	if err == nil {
		s.report(ctx, slog.LevelInfo, number, what, by, "")
	}
	return o, err
}

// locked does something with an order that nobody else changes before the transaction ends.
func (s *service) locked(ctx context.Context, number string, do func(*sql.Tx, order) error) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE payouts SET said = said WHERE order_no = $1`, number); err != nil {
			return err
		}
		o, err := s.findIn(ctx, tx, number)
		if err == nil {
			err = do(tx, o)
		}
		return err
	})
}

// tellJournal records what is known of a call. The journal decides whether it is believed,
// also where it corrects what a person said before. What it has forgotten is closed first, or stays
// nothing, where it is sent again.
func (s *service) tellJournal(ctx context.Context, tx *sql.Tx, o order, r resolution) error {
	journal, i := s.journal.In(tx), o.intent()
	if o.isLost() && o.Closed && r.Outcome == "not_executed" { // it says so, whatever closed it
		return nil
	}
	if o.Journal == "" && o.isLost() {
		if r.Outcome == "send_again" {
			return nil
		}
		err := journal.Void(ctx, i, r.By, r.Why)
		if err != nil || outcomes[r.Outcome] != cardwire.OutcomeExecuted {
			return err
		}
	} else {
		i.Call = r.Call
	}
	return journal.Resolve(ctx, i, cardwire.Resolution{
		Outcome: outcomes[r.Outcome], ServiceID: r.ServiceID, By: r.By, Note: r.Why, AsOf: r.AsOf,
	})
}

// agree replaces what was said of the order before by what is known now.
func agree(ctx context.Context, tx *sql.Tx, o order, outcome string) error {
	switch {
	case outcome == "not_executed" && o.Said == canceled:
		return nil
	case outcome == "not_executed":
		return say(ctx, tx, o.Order, failed)
	case outcome == "send_again": // with a day of its own
		_, err := tx.ExecContext(ctx, `UPDATE payouts SET retried_at = NULL, said = `+heldNow+`, said_at = NULL
WHERE order_no = $1`, o.Order)
		return err
	case o.Said == paid, o.Said == returned:
		return nil
	}
	// The journal has it too, and says when it changed.
	_, err := tx.ExecContext(ctx, `UPDATE payouts SET said = 'submitted', said_at = NULL WHERE order_no = $1`, o.Order)
	return err
}

// rely counts only the calls that the journal knows, where a person says that nothing else
// was executed, and pays.
func rely(ctx context.Context, tx *sql.Tx, o order, r resolution) error {
	_, err := tx.ExecContext(ctx, `UPDATE payouts SET missed_at = NULL, calls = (
	SELECT coalesce(max(calls), 0) FROM cardwire_intents WHERE op = 'CreateTransfer' AND reference = order_no)
WHERE order_no = $1`, o.Order)
	return cmp.Or(err, record(ctx, tx, o.Order, r.Outcome, r.By, r.Why))
}

// sayMoney records what became of the money, which the journal knows nothing of.
func (s *service) sayMoney(ctx context.Context, tx *sql.Tx, o order, r resolution) error {
	if r.ServiceID != "" && r.ServiceID != o.ServiceID && !o.IsOther {
		r.Call = o.Call
		if err := s.tellJournal(ctx, tx, o, r); err != nil {
			return err
		}
	}
	if o.Said == r.Outcome { // as where the response was lost
		return nil
	}
	return cmp.Or(say(ctx, tx, o.Order, r.Outcome), record(ctx, tx, o.Order, r.Outcome, r.By, r.Why))
}

// say keeps what an order's end is, as of now, whatever the journal forgets.
func say(ctx context.Context, tx *sql.Tx, number, said string) error {
	_, err := tx.ExecContext(ctx, `UPDATE payouts SET said = $2, said_at = $3,
	has_failed = has_failed OR $2 IN ('failed', 'canceled') WHERE order_no = $1`, number, said, time.Now().UTC())
	return err
}

// record puts into the history what the journal's does not have.
func record(ctx context.Context, tx *sql.Tx, number, what, by, why string) error {
	_, err := tx.ExecContext(ctx, `
INSERT INTO payouts_history (order_no, at, what, who, note) VALUES ($1, $2, $3, $4, $5)`,
		number, time.Now().UTC(), what, by, why)
	return err
}

// cancel closes an order of which nothing was executed. Once the journal has closed the
// number nobody can send it, whatever a worker is about to do. Where the number is another
// request's, this order's body can never be sent under it. What failed stays so, also where
// the journal alone knew it, and forgets.
func (s *service) cancel(ctx context.Context, number, by, why string) (order, error) {
	return s.decide(ctx, number, by, canceled, func(tx *sql.Tx, o order) error {
		said := canceled
		switch o.State {
		case failed:
			said = failed
		case canceled, queued, held, conflicted:
		default:
			return errMoved
		}
		if !o.IsOther { // of what ended too: its number may be open again
			if err := s.journal.In(tx).Void(ctx, o.intent(), by, why); err != nil {
				return err
			}
		}
		if o.Said == said {
			return nil
		}
		return cmp.Or(say(ctx, tx, o.Order, said), record(ctx, tx, o.Order, said, by, why))
	})
}
