package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cardwire/cardwire-go/payouts"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// reconciliation compares the journal with the service's statement instead of serving.
type reconciliation struct {
	statement.File
	name, columns, statuses string
	zone                    string
	times                   [3]string // as somebody typed them
	out                     string    // for the findings, as CSV
	apply                   bool
	by, why                 string // for the history
}

func (t *reconciliation) flags(f *flag.FlagSet) {
	f.StringVar(&t.name, "reconcile", "", "compare with the service's statement, a CSV `file` of every transfer\n"+
		"in every status, print what it says, and exit")
	f.StringVar(&t.zone, "zone", "UTC", "the time zone of its times without an offset, as in Europe/Berlin")
	f.StringVar(&t.times[0], "from", "", "the `time` at which it begins, as in 2026-01-31T15:04:05+01:00")
	f.StringVar(&t.times[1], "until", "", "the `time` at which it ends, exclusive")
	f.StringVar(&t.times[2], "exported", "", "the `time` of the export, at or after -until")
	f.StringVar(&t.Decimal, "decimal", "", "what separates its decimal places, \".\" or \",\", where 1,234 can be read in two ways")
	f.StringVar(&t.First, "dates", "", "what comes first where 03/04/2026 can be read in two ways: \"day\" or \"month\"")
	f.StringVar(&t.columns, "columns", "", "its names for the columns order, amount, status, time, id, currency,\n"+
		"as in \"order=Order No,amount=Sum,id=\": it has no id")
	f.StringVar(&t.statuses, "status", "", "what they mean,\nas in done=executed,rejected=not_executed,processing=pending")
	f.BoolVar(&t.Strays, "strays", false, "accept that more than half of it is unknown here, as after a restore")
	f.StringVar(&t.out, "out", "", "a new `file` for all findings, as CSV")
	f.BoolVar(&t.apply, "apply", false, "record what it proves, with -by and -why")
	f.StringVar(&t.by, "by", "", "your `name`, for the history")
	f.StringVar(&t.why, "why", "", "why, for the history")
}

func (t *reconciliation) run(ctx context.Context, svc *payouts.Service, out io.Writer) error {
	if err := t.settle(); err != nil {
		return err
	}
	file, err := os.Open(t.name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	list, err := t.list()
	if err != nil {
		return err
	}
	if !t.apply {
		t.by, t.why = "", ""
	}
	rows, report := bufio.NewWriter(list), statement.NewReport()
	_, _ = rows.WriteString("\ufefffinding,why,order,amount,currency,recorded by -apply,note\n") // Flush says whether it failed
	err = svc.Reconcile(ctx, filepath.Base(t.name), t.Statement(file), t.by, t.why,
		func(f sqljournal.Finding, left error) {
			amount, currency := statement.MoneyOf(f)
			_, _ = rows.WriteString(statement.Row( // Flush says whether it failed
				string(f.Kind), f.Why, f.Reference, amount.String(), currency, strconv.FormatBool(f.Applies()), f.Note))
			if left != nil {
				_, _ = fmt.Fprintf(out, "left: %q: %v\n", f.Reference, left)
			}
			report.Add(f, left)
		})
	if err = errors.Join(cmp.Or(err, rows.Flush()), list.Close()); err == nil {
		err = report.Write(out)
	}
	if err == nil && t.apply {
		_, err = fmt.Fprintf(out, "Recorded: %d. Left: %d.\n", report.Certain-report.Left, report.Left)
	}
	return err
}

// list opens what all findings are written to. It is not the statement, whose file is there.
func (t *reconciliation) list() (*os.File, error) {
	if t.out == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return os.OpenFile(t.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// settle reads what the flags say together, whatever their order.
func (t *reconciliation) settle() error {
	if err := t.SetZone(t.zone); err != nil {
		return fmt.Errorf("-zone: %w", err)
	}
	for i, at := range []*time.Time{&t.From, &t.Until, &t.Exported} {
		var err error
		if *at, err = statement.Moment(t.times[i]); err != nil {
			return fmt.Errorf("-%s: %w", []string{"from", "until", "exported"}[i], err)
		}
	}
	return t.Names(t.columns, t.statuses)
}
