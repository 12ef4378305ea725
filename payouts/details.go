package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Details is an order with all that a person needs to decide about it. It has personal data.
type Details struct {
	// Order is the order itself.
	Order Order
	// Payee is who gets the money, and the end of the account's number; "": it was not given, or was purged.
	Payee string
	// Reason is why the last call failed, or why a person resolved or canceled the order since, with the service's words;
	// "": none.
	Reason string
	// CallFrom is when the call began that the service is asked about; zero: there is none.
	CallFrom time.Time
	// CallUntil is until when that call may have reached the service.
	CallUntil time.Time
	// Outcomes are those of a [Resolution] that can be recorded of the order as it is; none while it is queued: see MayCancel.
	Outcomes []string
	// MayCancel reports whether nothing was executed yet, so that [Service.Cancel] closes the order.
	MayCancel bool
	// History is what is known of the order, the oldest first.
	History []Event
}

// Event is a line of a history.
type Event struct {
	// Time is when it happened.
	Time time.Time
	// Where is the table that has it: order or journal.
	Where string
	// What happened, in a word or two.
	What string
	// By is who did it; "": a call.
	By string
	// Why is why, in that person's words, or those of a call that failed; "": none.
	Why string
}

// Details returns all that is known of an order as it is now, or [ErrNoOrder].
func (s *Service) Details(ctx context.Context, number string) (d Details, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		o, err := s.find(ctx, tx, number)
		if err != nil {
			return err
		}
		d = Details{Order: o.Order, Payee: o.payee(), Outcomes: o.outcomes(), MayCancel: o.State == StateQueued}
		if o.Journal == "open" || o.Journal == "unknown" {
			d.CallFrom, d.CallUntil = o.CallFrom, o.CallUntil
		}
		d.History, err = s.history(ctx, tx, o)
		if err != nil {
			return err
		}
		d.Reason = cmp.Or(o.Reason, d.History[len(d.History)-1].Why) // it was created at least
		if o.Words != "" && o.Journal != "executed" {
			d.Reason = strings.TrimPrefix(d.Reason+", "+o.Words, ", ")
		}
		return nil
	})
	return d, err
}

// payee is who gets the money.
func (o order) payee() string {
	p, _ := o.transfer() // what was purged is no transfer
	payee := strings.TrimSpace(p.ReceiverNativeFirstName + " " + p.ReceiverNativeLastName)
	if account := []rune(p.ReceiverBankAccountNumber); len(account) > 4 {
		payee += ", account …" + string(account[len(account)-4:])
	}
	return strings.Map(func(r rune) rune { // a character that turns the direction would garble the page around it
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return utf8.RuneError
		}
		return r
	}, strings.TrimPrefix(payee, ", "))
}

// outcomes are what a person may record of it.
func (o order) outcomes() (all []string) {
	if o.Journal == "executed" {
		all = append(all, string(StatePaid), string(StateReturned))
	}
	if o.State == StateUnresolved || hasEnded(o.State) && !o.Proved {
		all = append(all, executed)
	}
	if o.State == StateUnresolved || o.Journal == "executed" && !o.Proved {
		all = append(all, notExecuted)
	}
	if o.mayBeSentAgain() {
		all = append(all, sendAgain)
	}
	return all
}

// mayBeSentAgain reports whether it may be paid under its number, if it was not executed.
func (o order) mayBeSentAgain() bool {
	return o.State == StateUnresolved && !o.Closed && !hasEnded(o.Told)
}

// events returns what people did to an order, or to the queue, since then, the oldest first.
func (s *Service) events(ctx context.Context, db querier, number string, since time.Time) ([]Event, error) {
	return query(ctx, s, db, func(scan scan) (Event, error) {
		e := Event{Where: "order"}
		err := scan(database.Moment(&e.Time), &e.What, &e.By, &e.Why)
		return e, err
	}, `SELECT at, what, who, note FROM @payouts_history WHERE order_no = $1 AND at >= $2 ORDER BY at`, number, s.moment(since))
}

// history returns what both tables know of an order, the oldest first.
func (s *Service) history(ctx context.Context, tx *sql.Tx, o order) ([]Event, error) {
	events, err := s.events(ctx, tx, o.Number, time.Time{})
	if err != nil {
		return nil, err
	}
	events = slices.Insert(events, 0, Event{Time: o.CreatedAt, Where: "order", What: "created", By: "merchant"})
	journal, err := s.journal.In(tx).History(ctx, operation, o.Number)
	if errors.Is(err, sqljournal.ErrNoIntent) {
		err = nil
	}
	for _, h := range journal {
		events = append(events, Event{h.Time, "journal", fmt.Sprintf("%s: %s", h.Kind, h.Outcome), h.By, h.Note})
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return events, err
}
