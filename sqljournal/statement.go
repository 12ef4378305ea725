package sqljournal

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Statement is the provider's own list of transfers, as an export or a settlement file
// has it: the input of [Journal.Reconcile].
//
// It must list every transfer of [From, Until) in every status: what such a statement does
// not list was not executed. Both times are compared with those of the journal, and the
// provider has its own clock: set From ten minutes or more before the first call in question.
// What is not listed is uncertain if the call began less than ten minutes after From, or, in a
// statement that ends before it was exported, could be executed in its last ten minutes.
type Statement struct {
	// Op is the operation, as in cardwire.Intent: OpCreateTransfer. OpCancelOrRetry may be
	// repeated, and cannot be reconciled.
	Op cardwire.Op
	// From is the beginning of the period that the statement covers.
	From time.Time
	// Until is the end of that period, exclusive. A statement that ends less than ten minutes
	// before Exported must list everything that the provider had then.
	Until time.Time
	// Exported is when the provider made the statement, by the journal's clock: at or after
	// Until, and not in the future.
	Exported time.Time
	// Statuses says what each status of the provider means. A line with another status
	// is an error.
	Statuses map[string]StatementStatus
	// Lines are the transfers, in any order. Their errors end Reconcile before its first
	// finding.
	Lines iter.Seq2[StatementLine, error]
	// AllowStrays accepts a statement even if more than half of it is not on record, as after
	// the journal was lost. Otherwise that is [ErrStrays]: the statement is probably another
	// account's.
	AllowStrays bool
	// Waiting are the orders that your program may still send, whether the journal has them
	// or not: their Summary, as in cardwire.Intent, by Reference. One that a line resembles is
	// [FindingSimilar], with a warning; one with another amount is [FindingDiffers].
	Waiting map[string]string
}

// StatementLine is a transfer in a [Statement].
type StatementLine struct {
	// Line is its number in the file, for messages.
	Line int
	// Reference is the merchant order number, exactly as the provider has it.
	Reference string
	// ServiceID is the provider's number of the transfer; "": none.
	ServiceID string
	// Currency is the currency of Amount; "": not known, and not compared.
	Currency string
	// Status is the provider's own word, one of Statement.Statuses.
	Status string
	// Amount is what the beneficiary gets, as in cardwire.TransferParams.TransferAmount.
	Amount decimal.Decimal
	// Time is when the provider received the transfer: not after Statement.Exported.
	Time time.Time
}

// StatementStatus is what a status of the provider means.
type StatementStatus string

const (
	// StatementExecuted is a transfer that is on its way or has arrived: the money has
	// left the account.
	StatementExecuted StatementStatus = "executed"
	// StatementNotExecuted is a transfer that was rejected, canceled or returned, for good.
	StatementNotExecuted StatementStatus = "not_executed"
	// StatementPending is a transfer that may still become either.
	StatementPending StatementStatus = "pending"
)

// rank orders the lines of one reference by how much they say; 0 is no status.
func (s StatementStatus) rank() int {
	return 1 + slices.Index([]StatementStatus{StatementNotExecuted, StatementPending, StatementExecuted}, s)
}

// ErrStrays reports that more than half of the references of a statement are not on
// record: see [Statement].AllowStrays.
var ErrStrays = errors.New("sqljournal: more than half of the statement is not on record: " +
	"check that it is this account's; AllowStrays accepts it if the journal was lost")

func (s *Statement) check() error {
	err := check.Given("Op", string(s.Op))
	switch {
	case err != nil:
	case s.Op == cardwire.OpCancelOrRetry:
		err = errors.New("the operation may be repeated, and cannot be reconciled")
	case s.From.IsZero(), !s.From.Before(s.Until):
		err = errors.New("set From to a time before Until")
	case s.Exported.Before(s.Until):
		err = errors.New("set Until to a time at or before Exported: what happened later is not in the statement")
	case s.Exported.After(time.Now()):
		err = errors.New("the time of Exported is in the future")
	case s.Lines == nil:
		err = errors.New("the iterator Lines is nil: set it to the lines of the statement")
	}
	for _, status := range s.Statuses {
		if status.rank() == 0 {
			err = cmp.Or(err, errors.New("each value of Statuses must be executed, not_executed or pending"))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
	}
	return nil
}

// status returns what a line says, or why it cannot be used.
func (s *Statement) status(l StatementLine) (StatementStatus, error) {
	status, ok := s.Statuses[l.Status]
	_, exact := wire.ParseDecimal(wire.AppendDecimal(nil, l.Amount), false)
	err := cmp.Or(check.Visible("Reference", strings.TrimSpace(l.Reference)), check.Visible("ServiceID", l.ServiceID),
		check.Currency("Currency", l.Currency))
	switch {
	case err != nil:
	case !ok:
		err = errors.New("its Status is not one of Statuses")
	case !exact:
		err = errors.New("its Amount has more than 40 digits")
	case l.Time.IsZero():
		err = errors.New("its Time is missing")
	case l.Time.After(s.Exported.Add(skew)):
		err = errors.New("its Time is after Exported: check the time zones of both")
	default:
		return status, nil
	}
	return "", fmt.Errorf("%w: line %d of the statement: %w", cardwire.ErrInvalidParams, l.Line, err)
}

// covers reports whether the whole life of a call is in the period of the statement, by the
// provider's clock too, so that what is not listed did not happen.
func (s *Statement) covers(e Entry) bool {
	return !e.Time.Add(-skew).Before(s.From) && s.settles(e)
}

// settles reports whether the call was settled before the statement ends.
func (s *Statement) settles(e Entry) bool {
	end := s.Until
	if s.Exported.Sub(end) >= skew { // it was cut off there, by the provider's clock
		end = end.Add(-skew)
	}
	return e.SettledBy.Before(end)
}

// alike returns the same string for references that differ only in letter case, white space
// and leading zeros: spreadsheets and providers change those.
func alike(reference string) string {
	folded := strings.ToLower(strings.ToUpper(reference))
	return strings.TrimLeft(strings.Join(strings.Fields(folded), ""), "0")
}

// contents describes a statement as a whole.
type contents struct {
	lines, denials int
	shifted        int // executed lines outside the time of their calls
	similar        int // lines that may be about an order whose number only resembles theirs
	example        string
	shared         int // service IDs that executed lines of several references have
	sharing        string
	first, last    time.Time
}

const (
	skew  = 10 * time.Minute // how much the provider's clock may differ
	zones = 30 * time.Minute // the least difference of time zones: in another one, a day's statement ends early
)

// isShifted reports whether a finding matches an executed line with a call that was not in
// progress at the line's time, as with a wrong time zone.
func isShifted(f Finding, l *listed) bool {
	matches := f.Kind == FindingAgrees || f.Kind == FindingExecuted || f.Kind == FindingPaidThoughClosed
	return matches && l.status == StatementExecuted && f.Entry.Calls > 0 && // without a call there is no time
		(l.line.Time.Before(f.Entry.Time.Add(-skew)) || l.line.Time.After(f.Entry.SettledBy.Add(skew)))
}

func (c *contents) add(l StatementLine, status StatementStatus) {
	if c.lines == 0 || l.Time.Before(c.first) {
		c.first = l.Time
	}
	if l.Time.After(c.last) {
		c.last = l.Time
	}
	if status == StatementNotExecuted {
		c.denials++
	}
	c.lines++
}

// warnings are the reasons to doubt that the statement lists all that it should.
func (s *Statement) warnings(c contents) (all []string) {
	long := s.Until.Sub(s.From) / 10
	if c.lines == 0 {
		return []string{"the statement has no lines: " +
			"every unresolved order of its period would be recorded as not executed"}
	}
	if c.first.Sub(s.From) > long {
		all = append(all, "the first line is of "+stamp(c.first)+", long after the statement begins ("+stamp(s.From)+
			"): an order that is missing before it would be recorded as not executed")
	}
	if s.Until.Sub(c.last) > min(long, zones) {
		all = append(all, "the last line is of "+stamp(c.last)+", long before the statement ends ("+stamp(s.Until)+
			"): an order that is missing after it would be recorded as not executed")
	}
	if c.denials == 0 {
		all = append(all, `no line has a status that means "not executed": if the statement lists only successes, `+
			`an order that is not in it may still be pending, and "not executed" is not certain`)
	}
	if c.similar > 0 {
		all = append(all, fmt.Sprintf("lines that match an order here only if letter case, spaces or leading zeros "+
			"are ignored: %d, such as %s: find out which orders they are before sending these", c.similar, c.example))
	}
	if c.shared > 0 {
		all = append(all, fmt.Sprintf("service IDs in executed lines of more than one order: %d, as %s: "+
			"check that the column is the number of one transfer; only one order is recorded with it", c.shared, c.sharing))
	}
	if c.shifted > 0 {
		all = append(all, fmt.Sprintf("executed lines whose time does not fit their calls on record: %d: "+
			"check the time zone of the lines, and of the start and end of the statement", c.shifted))
	}
	return all
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
