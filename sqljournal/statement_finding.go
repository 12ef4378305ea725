package sqljournal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// FindingKind is how the statement and the journal compare. "Executed there" is a line with
// [StatementExecuted], "not executed there" one with [StatementNotExecuted].
type FindingKind string

const (
	// FindingWarning is about the statement as a whole, has only a Note, and comes first.
	FindingWarning FindingKind = "warning"
	// FindingPaidThoughClosed is executed there, and closed or free here. Apply records it
	// as executed. After the warnings, all of these come first.
	FindingPaidThoughClosed FindingKind = "paid though closed"
	// FindingAgrees is the same on both sides.
	FindingAgrees FindingKind = "agrees"
	// FindingExecuted is unresolved here and executed there. Apply records it.
	FindingExecuted FindingKind = "executed"
	// FindingNotExecuted is unresolved here and not listed, although the statement covers the
	// whole life of the call, from its Time to its SettledBy, and ten minutes before it; also
	// ten after it, if the statement ends before it was exported. Apply closes or frees it.
	FindingNotExecuted FindingKind = "not executed"
	// FindingRejected is unresolved here and not executed there, and the statement covers the
	// whole life of the call. Apply closes or frees it.
	FindingRejected FindingKind = "rejected"
	// FindingPending is pending there. Apply records it as unknown if nothing is on record,
	// or the reference is free or closed.
	FindingPending FindingKind = "pending"
	// FindingSending is in progress here: the call may still send.
	FindingSending FindingKind = "sending"
	// FindingTooEarly is unresolved here, and settled only after Statement.Until, or shortly
	// before: a later statement is needed.
	FindingTooEarly FindingKind = "too early"
	// FindingOutside is unresolved here, and began before Statement.From, or shortly after: an
	// earlier statement is needed.
	FindingOutside FindingKind = "outside"
	// FindingStray is executed there, and nothing is on record here: the database has lost
	// it, or another program sent it. Apply records it as executed.
	FindingStray FindingKind = "stray"
	// FindingMissing is executed here, according to a response and within the period of the
	// statement, and not listed there.
	FindingMissing FindingKind = "missing"
	// FindingReturned is executed here, and not executed there.
	FindingReturned FindingKind = "returned"
	// FindingDiffers has another amount, currency or service ID there. Apply records it as
	// executed in the same cases as FindingTwice.
	FindingDiffers FindingKind = "differs"
	// FindingTwice is executed there in more than one line: somebody was paid twice. Apply
	// records it as executed if nothing is on record, or the reference is free or closed.
	FindingTwice FindingKind = "twice"
	// FindingSimilar is a reference that another one matches only if letter case, spaces or
	// leading zeros are ignored: one of the two is listed, and the other is on record or in
	// Statement.Waiting. They are never matched. What is executed or pending there is
	// recorded under its own reference, and has the kind of that.
	FindingSimilar FindingKind = "similar"
)

// Finding is what [Journal.Reconcile] found out about a reference.
type Finding struct {
	// Kind is how the two sides compare.
	Kind FindingKind
	// Op is the operation, as in Statement.
	Op cardwire.Op
	// Reference is the reference; "": it is a warning, or the line has none.
	Reference string
	// Line is the line that counts. Of several lines, executed outranks pending, and pending
	// outranks rejected. Zero: the statement does not list the reference.
	Line StatementLine
	// Entry is what was on record. If nothing was, it has no Op, and at most the Summary of
	// an order in Statement.Waiting.
	Entry Entry
	// Note is what the statement says, in words. [Journal.Apply] adds it to the history.
	Note string
	// AsOf is the end of the period that the statement covers.
	AsOf time.Time
	// Free makes Apply free a reference that was not executed, so that it can be sent again,
	// instead of closing it. Reconcile leaves it false.
	Free bool
}

// Applies reports whether [Journal.Apply] has something to record. If not, both sides agree,
// or a person must decide.
func (f Finding) Applies() bool {
	switch f.Kind {
	case FindingExecuted, FindingNotExecuted, FindingRejected, FindingPaidThoughClosed:
		return true
	case FindingStray, FindingPending, FindingTwice, FindingDiffers:
		isUsable := check.Given("reference", f.Reference) == nil // the client would refuse any other
		return isUsable && isUndone(f.Entry)
	}
	return false
}

// isNothing reports whether an entry is that of a reference that is not on record.
func isNothing(e Entry) bool { return e.Op == "" }

// isDenied reports whether a reference is closed or free.
func isDenied(e Entry) bool {
	return e.Outcome == cardwire.OutcomeRefused || e.Outcome == cardwire.OutcomeNotSent
}

// isUndone reports whether nothing happened, as far as is on record.
func isUndone(e Entry) bool { return isNothing(e) || isDenied(e) }

// listed is what a statement has of a reference.
type listed struct {
	line     StatementLine   // the one that counts
	status   StatementStatus // its; "": none is listed
	executed []int           // numbers of the first two executed lines
	isFirst  bool            // it is reported before the others
	other    string          // the reference that it resembles
}

func (l *listed) add(r record) {
	if r.Status == StatementExecuted && len(l.executed) < 2 {
		l.executed = append(l.executed, r.Line.Line)
	}
	if r.Status.rank() > l.status.rank() {
		l.line, l.status = r.Line, r.Status
	}
	l.isFirst = l.isFirst || r.IsFirst
}

// happened reports whether the line is about what was executed, or may be.
func (l *listed) happened() bool {
	return l.status == StatementExecuted || l.status == StatementPending
}

// isTold reports whether the line is about what was executed, or may be, and is on record without a
// call, as after an earlier statement.
func (l *listed) isTold(e Entry) bool {
	return l.happened() && !isNothing(e) && e.Calls == 0
}

// compare returns the kind of finding; "": there is nothing to compare.
func (s *Statement) compare(l *listed, e Entry) FindingKind {
	switch {
	case len(l.executed) > 1:
		return FindingTwice
	case e.InProgress:
		return FindingSending
	case l.status == StatementExecuted:
		return s.whereExecuted(l.line, e)
	case l.status == StatementPending:
		return FindingPending
	case e.Outcome == cardwire.OutcomeExecuted:
		return s.whereNotExecuted(l, e)
	case isNothing(e), isDenied(e):
		return agreement(l)
	case l.status != "" && differs(l.line, e):
		return FindingDiffers
	case !s.settles(e):
		return FindingTooEarly
	case !s.covers(e):
		return FindingOutside
	case l.status == "":
		return FindingNotExecuted
	}
	return FindingRejected
}

// whereExecuted is compare for what is executed there.
func (s *Statement) whereExecuted(line StatementLine, e Entry) FindingKind {
	switch {
	case differs(line, e):
		return FindingDiffers
	case isNothing(e):
		return FindingStray
	case isDenied(e):
		return FindingPaidThoughClosed
	case e.Outcome == cardwire.OutcomeExecuted:
		return FindingAgrees
	}
	return FindingExecuted
}

// whereNotExecuted is compare for what is executed here only.
func (s *Statement) whereNotExecuted(l *listed, e Entry) FindingKind {
	switch {
	case l.status == StatementNotExecuted:
		return FindingReturned
	case e.Proved && s.covers(e):
		return FindingMissing
	}
	return ""
}

// agreement is compare where nothing happened on either side.
func agreement(l *listed) FindingKind {
	if l.status == "" {
		return ""
	}
	return FindingAgrees
}

// differs reports whether a line has another amount, currency or service ID than the entry. A
// value that one side lacks is not compared.
func differs(l StatementLine, e Entry) bool {
	amount, currency, _ := strings.Cut(e.Summary, " ")
	own, ok := wire.ParseDecimal([]byte(amount), false)
	return ok && !own.Equal(l.Amount) ||
		ok && l.Currency != "" && currency != "" && !strings.EqualFold(currency, l.Currency) ||
		l.ServiceID != "" && e.ServiceID != "" && l.ServiceID != e.ServiceID
}

// finding puts the kind into words.
func (s *Statement) finding(kind FindingKind, reference string, l *listed, e Entry) Finding {
	note := "not in the statement from " + stamp(s.From) + " until " + stamp(s.Until)
	if l.status != "" {
		note = "in the statement: " + inWords(l.line)
	}
	if l.other != "" {
		note += "; similar to " + l.other
	}
	switch kind {
	case FindingTwice:
		note += fmt.Sprintf("; again in line %d", l.executed[1])
	case FindingDiffers:
		note += "; here it is " + strings.TrimSpace(e.Summary+" "+e.ServiceID)
	case FindingTooEarly:
		note += "; the service may execute it until " + stamp(e.SettledBy)
	case FindingOutside:
		note += "; it was sent at " + stamp(e.Time)
	}
	return Finding{Kind: kind, Op: s.Op, Reference: reference, Line: l.line, Entry: e, Note: note, AsOf: s.Until}
}

// inWords returns a line as a person reads it.
func inWords(l StatementLine) string {
	all := []string{fmt.Sprint("line ", l.Line), l.ServiceID, amountOf(l), l.Status, stamp(l.Time)}
	return strings.Join(slices.DeleteFunc(all, func(word string) bool { return word == "" }), ", ")
}

// amountOf returns the amount of a line in the form of cardwire.Intent.Summary.
func amountOf(l StatementLine) string {
	return strings.TrimSpace(string(wire.AppendDecimal(nil, l.Amount)) + " " + l.Currency)
}
