package sqljournal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// FindingKind is how the statement and the journal compare. "Executed there" is a line with
// [StatementExecuted], "not executed there" one with [StatementNotExecuted]. "Free" is a
// reference that may be sent, reserved ones included. A line that is repeated with the same
// ServiceID, Amount and Time is one line. What is about the statement as a whole comes first, then lines that
// cannot be read, then what was paid though closed, then what was paid twice.
type FindingKind string

const (
	// FindingRecorded is executed there, and free or unresolved here. Apply records it.
	FindingRecorded FindingKind = "recorded"
	// FindingAgrees is the same on both sides, or pending there and not free here.
	FindingAgrees FindingKind = "agrees"
	// FindingAsk is for a person, who asks the service: see Finding.Why.
	FindingAsk FindingKind = "ask"
	// FindingUnread is a line that cannot be read: it says nothing of any order, and hides no other line.
	FindingUnread FindingKind = "unread"
)

// Why a person has to ask, as Finding.Why says.
const (
	whyStatement = "statement"
	whyClosed    = "closed"
	whyTwice     = "twice"
	whyDiffers   = "differs"
	whyNotKnown  = "not known"
	whyPending   = "pending"
	whyRejected  = "rejected"
	whyNotListed = "not listed"
)

// Finding is what [Journal.Reconcile] found out about a reference.
type Finding struct {
	Kind FindingKind // how the two sides compare
	// Why is the first of these that fits, of FindingAsk:
	//   - "statement": what is odd about the statement as a whole, in Note alone;
	//   - "closed": executed there, and closed here. Apply records it as executed;
	//   - "twice": executed there in lines of different ServiceIDs, or more than once without one: somebody was
	//     paid twice, or several numbers were changed to one. Apply records it as executed, unless it is;
	//   - "differs": the number may be another order's, as a spreadsheet changes numbers, which proves nothing; or
	//     executed there with another amount, currency or ServiceID: of those, what is not on record or free, Apply
	//     records as unknown, and it is never free again;
	//   - "not known": executed there, and nothing is on record here: the database has lost it, another program
	//     sent it, or its number has changed. Apply records it as executed;
	//   - "pending": pending there, and here nothing is on record, or the reference is free or closed: Apply records
	//     it as unknown, and it is never free again; or executed there, while a call is in progress here;
	//   - "rejected": not executed there, and unresolved or executed here;
	//   - "not listed": unresolved here; or executed, whoever said so, with the whole life of its call in the
	//     period of the statement, which does not list it; or of a number that a listed one may be.
	Why       string
	Op        cardwire.Op // that of the Statement
	Reference string      // "": it is about the statement, or the line has none
	// Line is the first that counts: executed, else pending, else not executed. Zero: not listed.
	Line StatementLine
	// Entry is what was on record. If nothing was, it has no Op.
	Entry Entry
	// IsUnexplained reports whether no call here explains a line of it, also once that is recorded: it may be about
	// another order, of a changed number.
	IsUnexplained bool
	// Note is what a person needs, in words:
	//   - not listed, rejected: since when, whether a response proved that it was executed, whether the
	//     statement covers the whole life of the call, and the lines of its amount and currency that no
	//     call explains: one may have its number, changed on its way;
	//   - a line that no call explains: the unresolved and free orders of its amount and currency.
	Note string

	period  string   // of the statement, in words
	changed []string // numbers that may be this one, changed on its way
}

// Applies reports whether [Journal.Apply] has something to record.
func (f Finding) Applies() bool {
	switch {
	case f.Kind == FindingRecorded:
		return true
	case f.Kind != FindingAsk || f.Line.Line == 0 || isNothing(f.Entry) && check.Given("reference", f.Reference) != nil:
		return false // the client would refuse such a reference
	}
	switch f.Why {
	case whyClosed, whyNotKnown:
		return true
	case whyPending:
		return !f.Entry.InProgress
	case whyTwice:
		return f.Entry.Outcome != cardwire.OutcomeExecuted
	case whyDiffers:
		return isFreeOrClosed(f.Entry) && len(f.changed) == 0
	}
	return false
}

func isNothing(e Entry) bool { return e.Op == "" }

// isUndone reports whether nothing happened, as far as is on record.
func isUndone(e Entry) bool {
	return isNothing(e) || e.Outcome == cardwire.OutcomeRefused || e.Outcome == cardwire.OutcomeNotSent
}

// isFreeOrClosed is isUndone, whatever hold came since.
func isFreeOrClosed(e Entry) bool { return isUndone(e) || e.wasFree }

type listed struct {
	reference string
	lines     []StatementLine // those that say most; none: it is not listed
	status    StatementStatus // theirs
	entry     Entry           // what is on record
	urgency   int             // of the finding
	changed   []string        // other numbers that may be this one, changed on its way
}

// compare returns the kind of finding, and why a person has to ask; "": there is nothing to say.
func (s *Statement) compare(l listed) (kind FindingKind, why string) {
	switch e := l.entry; {
	case e.InProgress && l.status == "":
		return "", ""
	case e.InProgress && l.status == StatementExecuted: // the end of the call says more
		return FindingAsk, whyPending
	case e.InProgress:
		return FindingAgrees, ""
	case l.status == StatementExecuted || l.status == StatementPending && isFreeOrClosed(e):
		return l.compareHappened()
	case l.status == StatementNotExecuted && !isUndone(e):
		return FindingAsk, whyRejected
	case l.status != "":
		return FindingAgrees, ""
	case len(l.changed) > 0, !isUndone(e) && (e.Outcome == cardwire.OutcomeUnknown || s.covers(e)):
		return FindingAsk, whyNotListed
	}
	return "", ""
}

// compareHappened is compare for what is executed there, or pending there and undone here.
func (l listed) compareHappened() (kind FindingKind, why string) {
	e := l.entry
	isOther := func(line StatementLine) bool {
		return line.ServiceID == "" || line.ServiceID != l.lines[0].ServiceID
	}
	isKnown := e.ServiceID != "" && e.ServiceID == l.lines[0].ServiceID // whatever its number
	switch {
	case len(l.changed) > 0 && !isKnown:
		return FindingAsk, whyDiffers
	case l.status == StatementPending:
		return FindingAsk, whyPending
	case isUndone(e) && e.Closed:
		return FindingAsk, whyClosed
	case slices.ContainsFunc(l.lines[1:], isOther):
		return FindingAsk, whyTwice
	case slices.ContainsFunc(l.lines, e.differs):
		return FindingAsk, whyDiffers
	case isNothing(e):
		return FindingAsk, whyNotKnown
	case e.Outcome == cardwire.OutcomeExecuted:
		return FindingAgrees, ""
	}
	return FindingRecorded, ""
}

// covers reports whether the whole life of a call is in the period of the statement.
func (s *Statement) covers(e Entry) bool {
	return !e.Time.Before(s.From) && !e.SettledBy.After(s.Until)
}

// isExplained reports whether the lines are about a request of this journal. A row that only a statement has made is
// none: its lines may be those of another order, whose number was changed on its way.
func (l listed) isExplained(why string) bool {
	isOdd := slices.Contains([]string{whyNotKnown, whyDiffers, whyTwice}, why)
	return !isOdd && (l.status == StatementNotExecuted || l.entry.Calls > 0 || l.entry.BodySHA256 != "")
}

// differs reports whether a line has another amount, currency or service ID than the entry. A
// value that one side lacks is not compared.
func (e Entry) differs(l StatementLine) bool {
	return !e.Amount.IsZero() && !e.Amount.Equal(l.Amount) ||
		e.Currency != "" && l.Currency != "" && !strings.EqualFold(e.Currency, l.Currency) ||
		e.ServiceID != "" && l.ServiceID != "" && e.ServiceID != l.ServiceID
}

// purse has the names of lines, or of orders, by amount and currency.
type purse map[string][]string

const (
	maxNamed    = 20  // of an amount and currency
	maxLines    = 100 // of a reference, in a note
	anyCurrency = "*"
)

func moneyKey(amount decimal.Decimal, currency string) string {
	return amount.String() + " " + strings.ToUpper(currency)
}

func (p purse) add(amount decimal.Decimal, currency, name string) {
	key := moneyKey(amount, currency)
	if len(p[key]) == maxNamed {
		name = "and more"
	}
	if len(p[key]) <= maxNamed {
		p[key] = append(p[key], name)
	}
}

// like names what has the amount and the currency, or no currency; "": nothing has.
func (p purse) like(amount decimal.Decimal, currency string) string {
	names := p[moneyKey(amount, cmp.Or(currency, anyCurrency))]
	if currency != "" {
		names = slices.Concat(names, p[moneyKey(amount, "")])
	}
	return strings.Join(names, ", ")
}

// inWords returns a line as a person reads it.
func inWords(l StatementLine) string {
	all := []string{fmt.Sprint("line ", l.Line), l.ServiceID, moneyInWords(l.Amount, l.Currency), l.Status, stamp(l.Time)}
	return strings.Join(slices.DeleteFunc(all, func(word string) bool { return word == "" }), ", ")
}

// moneyInWords returns an amount as in "12.50 EUR".
func moneyInWords(amount decimal.Decimal, currency string) string {
	return strings.TrimSpace(string(wire.AppendDecimal(nil, amount)) + " " + currency)
}
