package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Statement is the provider's own list of transfers, as an export or a settlement file has it, for [Journal.Reconcile].
//
// It proves what happened, and never what did not: a file lacks lines for many reasons that it
// does not tell, such as a row limit, a delay, a filter, or a number that a spreadsheet changed.
type Statement struct {
	// Op is the operation: cardwire.OpCreateTransfer, or another that is on record and never repeated.
	Op cardwire.Op
	// From is the beginning of the period that the statement should cover.
	From time.Time
	// Until is the end of that period, exclusive.
	Until time.Time
	// Exported is when the provider made the statement: at or after Until, not in the future.
	Exported time.Time
	// Statuses says what each status of the provider means. A line with another one is FindingUnread.
	Statuses map[string]StatementStatus
	// Lines are the transfers, in any order. An error ends Reconcile before its first finding.
	Lines iter.Seq2[StatementLine, error]
	// AllowStrays accepts what is [ErrStrays] otherwise, as after the journal was lost.
	AllowStrays bool
}

// StatementLine is a transfer in a [Statement].
type StatementLine struct {
	Line      int             // its number in the file, for messages
	Reference string          // the merchant order number, exactly as the provider has it
	ServiceID string          // the provider's number of the transfer; "": none
	Currency  string          // of Amount; "": not known, and not compared
	Status    string          // the provider's own word, one of Statement.Statuses
	Amount    decimal.Decimal // what the beneficiary gets, as in cardwire.TransferParams.TransferAmount
	Time      time.Time       // when the provider received it: not after Statement.Exported
	Unread    string          // why the line cannot be read: it is FindingUnread, and hides no other; "": it can
}

// StatementStatus is what a status of the provider means.
type StatementStatus string

// What a transfer may be.
const (
	StatementExecuted    StatementStatus = "executed"     // on its way or arrived: the money has left the account
	StatementNotExecuted StatementStatus = "not_executed" // rejected, canceled or returned, for good
	StatementPending     StatementStatus = "pending"      // it may still become either
)

// rank orders the lines of one reference by how much they say; 0 is no status.
func (s StatementStatus) rank() int {
	return 1 + slices.Index([]StatementStatus{StatementNotExecuted, StatementPending, StatementExecuted}, s)
}

// ErrStrays reports that more than half of the references of a statement are not on record.
var ErrStrays = errors.New("sqljournal: more than half of the statement is not on record: " +
	"check that it is this account's; AllowStrays accepts it if the journal was lost")

// Reconcile compares the journal with the provider's statement, and changes nothing. It yields what is odd about the
// statement, then each line that cannot be read, then one finding for each reference that is listed, or that should
// be: see [FindingKind]. [Journal.Apply] records what happened, in the loop or later; what did not happen is for a
// person, who asks the service. A statement without a line in its period proves nothing: each line is FindingUnread.
//
// An invalid statement is a cardwire.ErrInvalidParams; one that is probably another account's is [ErrStrays]. Both
// come before the first finding. After an error it yields nothing more.
//
// It reads the journal once, in short queries, while others use it, and keeps in memory the lines and what is on
// record of them, at most a kilobyte for each.
func (j *Journal) Reconcile(ctx context.Context, s Statement) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		r := &reconciliation{Statement: &s, on: j.waiting()}
		if err := r.run(ctx, yield); err != nil {
			yield(Finding{}, err)
		}
	}
}

func (s *Statement) check(context.Context) error {
	err := check.Given("Op", string(s.Op))
	switch {
	case err != nil:
	case s.From.IsZero(), !s.From.Before(s.Until):
		err = errors.New("set From to a time before Until")
	case s.Exported.Before(s.Until):
		err = errors.New("set Until to a time at or before Exported: what happened later is not in the statement")
	case s.Exported.After(time.Now()):
		err = errors.New("the time of Exported is in the future")
	case s.Lines == nil:
		err = errors.New("the iterator Lines is nil: set it to the lines of the statement")
	case slices.ContainsFunc(slices.Collect(maps.Values(s.Statuses)),
		func(m StatementStatus) bool { return m.rank() == 0 }):
		err = errors.New("each value of Statuses must be executed, not_executed or pending")
	}
	if err != nil {
		return invalid(err)
	}
	return nil
}

// whyUnread returns why a line cannot be used; "": it can. A number with invisible characters can be: it may be
// another order's, and has to be asked about.
func (s *Statement) whyUnread(l StatementLine) string {
	_, isStatus := s.Statuses[l.Status]
	isExact := l.Amount.Coefficient().BitLen() < 140 // before it is written out
	if isExact {
		_, isExact = wire.ParseDecimal(wire.AppendDecimal(nil, l.Amount), false)
	}
	err := cmp.Or(check.Text("the order number", l.Reference), check.Visible("the service ID", l.ServiceID),
		check.Currency("the currency", l.Currency))
	switch {
	case err != nil:
		return err.Error()
	case len(l.Reference) > maxReference:
		return fmt.Sprintf("the order number is longer than %d bytes", maxReference)
	case !isStatus:
		return "nobody said what its status means"
	case !isExact:
		return "the amount has more than 40 digits"
	case l.Time.Before(time.Unix(0, 0)): // as where a spreadsheet has no date
		return "the time is missing, or before 1970"
	case l.Time.After(s.Exported.Add(10 * time.Minute)): // the provider has its own clock
		return "the time is after that of the export: check the time zones of both"
	}
	return ""
}

const maxReference = 200 // bytes; the client's are shorter

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
