package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
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
	// Statuses says what each status of the provider means. A line with another one is an error.
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

// Reconcile compares the journal with the provider's statement, and changes nothing. It yields warnings about the
// statement, then one finding for each reference that is listed, or that should be: see [FindingKind].
// [Journal.Apply] records what happened, in the loop or later; what did not happen is for a person, who asks the
// service.
//
// An invalid statement or line is a cardwire.ErrInvalidParams, which names the line; a statement that is probably
// another account's is [ErrStrays]. Both come before the first finding. After an error it yields nothing more.
//
// It reads the journal in short queries, while others use it, and keeps the lines in memory, at most half a
// kilobyte for each: a million lines take less than 500 MB.
func (j *Journal) Reconcile(ctx context.Context, s Statement) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		r := &reconciliation{Statement: &s, on: j.waiting()}
		if err := r.run(ctx, yield); err != nil {
			yield(Finding{}, err)
		}
	}
}

func (s *Statement) check() error {
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

// checkLine returns why a line cannot be used.
func (s *Statement) checkLine(l StatementLine) error {
	_, isStatus := s.Statuses[l.Status]
	_, isExact := wire.ParseDecimal(wire.AppendDecimal(nil, l.Amount), false)
	err := cmp.Or(check.Visible("Reference", strings.TrimSpace(l.Reference)), check.Visible("ServiceID", l.ServiceID),
		check.Currency("Currency", l.Currency))
	switch {
	case err != nil:
	case !isStatus:
		err = errors.New("its Status is not one of Statuses")
	case !isExact:
		err = errors.New("its Amount has more than 40 digits")
	case l.Time.Before(time.Unix(0, 0)): // as where a spreadsheet has no date
		err = errors.New("its Time is missing, or before 1970")
	case l.Time.After(s.Exported.Add(10 * time.Minute)): // the provider has its own clock
		err = errors.New("its Time is after Exported: check the time zones of both")
	default:
		return nil
	}
	return invalid(fmt.Errorf("line %d of the statement: %w", l.Line, err))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
