package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// compare reports what a statement says of the journal, and does something with each finding.
func (s *service) compare(ctx context.Context, c *comparison, file io.Reader, do func(sqljournal.Finding) error) error {
	c.Report = &report{seen: sha256.New()}
	statuses, err := pairs[sqljournal.StatementStatus](c.Statuses)
	if err == nil && len(statuses) == 0 {
		err = errors.New("it does not say what any status means")
	}
	if err != nil {
		return invalid("-status: %v, as in done=executed,rejected=not_executed,processing=pending", err)
	}
	waiting, err := s.waiting(ctx)
	if err != nil {
		return err
	}
	for f, err := range s.journal.Reconcile(ctx, sqljournal.Statement{
		Op: operation, From: c.From, Until: c.Until, Exported: c.Exported, Statuses: statuses,
		AllowStrays: c.Strays, Lines: c.lines(file), Waiting: waiting,
	}) {
		if err == nil {
			c.Report.add(f)
			err = do(f)
		}
		if errors.Is(err, sqljournal.ErrStrays) {
			err = invalid("%v (-strays)", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waiting are the orders that may still be sent, and their amounts: the journal need not know them.
// It looks at all orders for those that the journal forgot, which nothing else has the time to do.
func (s *service) waiting(ctx context.Context) (map[string]string, error) {
	var all []order
	err := sqlscan.Select(ctx, s.db, &all, `SELECT order_no FROM payouts_states
WHERE missed_at IS NULL AND calls > 0 AND state = 'forgotten'`)
	for _, o := range all {
		err = cmp.Or(err, s.miss(ctx, o.Order))
	}
	if err != nil {
		return nil, err
	}
	err = sqlscan.Select(ctx, s.db, &all, `SELECT order_no, amount, currency FROM payouts_states
WHERE order_no IN `+live+` AND state IN ('queued', 'held', 'forgotten')`)
	amounts := make(map[string]string, len(all))
	for _, o := range all {
		amounts[o.Order] = o.Amount + " " + o.Currency
	}
	return amounts, err
}

// look does nothing.
func look(sqljournal.Finding) error { return nil }

// Result is what came of applying it.
func (c *comparison) Result() string {
	return fmt.Sprintf("Recorded: %d. Changed meanwhile, or contradicted, and left: %d; the log says why.",
		c.done, c.left)
}

// errDoubted reports that nothing was recorded of a report with warnings.
var errDoubted = invalid("the report has warnings, and nothing was recorded: read them, and confirm them (-anyway) " +
	"if the statement is complete anyway")

// isDoubted reports that it has warnings, and so nothing is recorded.
func (c *comparison) isDoubted() bool { return len(c.Report.Warnings) > 0 && !c.Anyway }

// apply records a finding, if it is certain and no warning came before it: the journal's change,
// the order's and the wake-up of its job are one transaction.
func (s *service) apply(ctx context.Context, c *comparison, f sqljournal.Finding) error {
	if c.isDoubted() || !f.Applies() {
		return nil
	}
	_, err := s.decide(ctx, f.Reference, c.By, "reconciled", func(tx *sql.Tx, o order) error {
		return s.applyTo(ctx, tx, o, f, c)
	})
	if errors.Is(err, errNoOrder) { // of another program, or forgotten
		err = s.journal.Apply(ctx, f, c.By, c.Why)
	}
	switch {
	case err == nil:
		c.done++
	case refusal(err) != nil:
		c.left++
		s.report(ctx, slog.LevelWarn, f.Reference, "not reconciled", c.By, err.Error())
		err = nil
	}
	return err
}

// applyTo records what a statement says of an order, or of another request with its number.
func (s *service) applyTo(ctx context.Context, tx *sql.Tx, o order, f sqljournal.Finding, c *comparison) error {
	if o.IsOther {
		return s.journal.In(tx).Apply(ctx, f, c.By, c.Why)
	}
	if err := s.journal.In(tx).Apply(ctx, f, c.By, c.Why); err != nil {
		return err
	}
	if f.Kind == sqljournal.FindingPending || f.Kind == sqljournal.FindingDiffers {
		return nil
	}
	return agree(ctx, tx, o, "executed")
}

// task is what the program does instead of serving.
type task struct {
	comparison
	file   string // the statement
	out    string // for the findings, as CSV
	apply  bool
	closed string // a file of numbers
}

func (t *task) flags(flags *flag.FlagSet) {
	flags.StringVar(&t.file, "reconcile", "", "compare with the service's statement, a CSV `file` of every transfer\n"+
		"in every status, print what it says, and exit")
	t.comparison.flags(flags, func(_, text string) (time.Time, error) { return time.Parse(time.RFC3339, text) })
	flags.StringVar(&t.out, "out", "", "a new `file` for all findings, as CSV")
	flags.BoolVar(&t.apply, "apply", false, "record what is certain; what was not executed fails")
	flags.StringVar(&t.closed, "closed", "", "close the numbers of a CSV `file`, in its column order (-columns),\n"+
		"which your own records have as failed or canceled, and exit")
}

// run does the task.
func (t *task) run(ctx context.Context, s *service, out io.Writer) error {
	if t.apply || t.closed != "" {
		if err := check(t.By, t.Why); err != nil {
			return fmt.Errorf("-by and -why: %w", err)
		}
	}
	if t.file != "" {
		if err := t.reconcile(ctx, s, out); err != nil {
			return err
		}
	}
	if t.closed == "" {
		return nil
	}
	return t.closeAll(ctx, s, out)
}

func (t *task) reconcile(ctx context.Context, s *service, out io.Writer) (err error) {
	file, err := os.Open(t.file)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if t.Exported.IsZero() {
		t.Exported = info.ModTime()
	}
	rows := csv.NewWriter(io.Discard)
	if t.out != "" {
		list, err2 := os.OpenFile(t.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // it is not the statement
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, list.Close()) }()
		rows = csv.NewWriter(list)
	}
	_ = rows.Write([]string{"finding", "order", "amount", "currency", "recorded by -apply", "note"}) // it is buffered
	err = s.compare(ctx, &t.comparison, file, func(f sqljournal.Finding) error {
		amount, currency := moneyOf(f)
		err := rows.Write(guarded([]string{
			string(f.Kind), f.Reference, amount.String(), currency, strconv.FormatBool(f.Applies()), f.Note,
		}))
		if err == nil && t.apply {
			err = s.apply(ctx, &t.comparison, f)
		}
		return err
	})
	rows.Flush()
	err = errors.Join(err, rows.Error())
	if err != nil && t.out != "" { // it is half of the findings
		err = errors.Join(err, os.Remove(t.out))
	}
	if err == nil {
		err = t.Report.write(out)
	}
	if err == nil && t.apply && t.isDoubted() {
		err = errDoubted
	}
	if err == nil && t.apply {
		_, err = fmt.Fprintln(out, t.Result())
	}
	return err
}

// write writes the totals, and the first findings of each kind but "agrees".
func (r *report) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, warning := range r.Warnings {
		_, _ = fmt.Fprintf(w, "warning: %s\n", warning)
	}
	_, _ = fmt.Fprintln(w, "FINDING\tORDERS\tAMOUNT\tRECORDED BY -apply")
	for _, t := range r.Kinds {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%d\n", t.Kind, t.Orders, t.Sums, t.Certain)
	}
	for _, t := range r.Kinds {
		for _, f := range t.First {
			if f.Kind != sqljournal.FindingAgrees {
				_, _ = fmt.Fprintf(w, "%s: %q: %s\n", f.Kind, f.Reference, f.Note)
			}
		}
	}
	return w.Flush() // which returns the first error
}

// closeAll closes numbers, whether their orders are here or not.
func (t *task) closeAll(ctx context.Context, s *service, out io.Writer) error {
	file, err := os.Open(t.closed)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	numbers, err := t.numbers(file)
	if err != nil {
		return fmt.Errorf("nothing is closed: %w", err)
	}
	var open []error
	var unknown []string // here
	for _, number := range numbers {
		_, missing := s.find(ctx, number)
		err := s.closeNumber(ctx, number, t.By, t.Why)
		switch {
		case refusal(err) != nil:
			open = append(open, fmt.Errorf("%q is not closed: %w", number, err))
		case err != nil:
			return err
		case errors.Is(missing, errNoOrder):
			unknown = append(unknown, number)
		}
	}
	_, err = fmt.Fprintf(out, "Closed: %d of %d.\n", len(numbers)-len(open), len(numbers))
	if len(unknown) > 0 {
		_, err2 := fmt.Fprintf(out, "Without an order here: %d, as %q: compare how they are written.\n",
			len(unknown), unknown[:min(listed, len(unknown))])
		err = errors.Join(err, err2)
	}
	return errors.Join(append(open, err)...)
}

// numbers reads the numbers of a file: all of it, before any is closed.
func (c *comparison) numbers(file io.Reader) (all []string, err error) {
	rows, err := c.open(file, []string{"order"})
	if err != nil {
		return nil, err
	}
	column := slices.Index(rows.header, rows.names["order"])
	list, err := rows.file.ReadAll()
	for _, row := range list {
		all = append(all, unguarded(row[column]))
	}
	return all, err
}

func (s *service) closeNumber(ctx context.Context, number, by, why string) error {
	o, err := s.cancel(ctx, number, by, why)
	switch {
	case errors.Is(err, errMoved):
		return conflict("it is " + o.State)
	case errors.Is(err, errNoOrder), err == nil && o.IsOther: // the number is another request's, and open
		return s.journal.Void(ctx, cardwire.Intent{Op: operation, Reference: number}, by, why)
	}
	return err
}
