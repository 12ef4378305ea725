package sqljournal_test

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// export is what the provider's site exported after the day had ended.
const export = `order,id,amount,currency,status,received
order-1,T-1,100.00,EUR,settled,2026-01-31T08:00:00Z
order-2,T-2,50.00,EUR,processing,2026-01-31T12:00:00Z
order-3,T-3,20.00,EUR,rejected,2026-01-31T23:40:00Z
`

// transfers reads the lines of an export.
func transfers(r io.Reader) iter.Seq2[sqljournal.StatementLine, error] {
	return func(yield func(sqljournal.StatementLine, error) bool) {
		file := csv.NewReader(r)
		for number := 1; ; number++ {
			fields, err := file.Read()
			switch {
			case errors.Is(err, io.EOF):
				return
			case number == 1 && err == nil: // the header
				continue
			case err == nil:
				line, err := transferOf(number, fields)
				if err != nil {
					line.Unread = err.Error() // it hides no other line
				}
				if !yield(line, nil) {
					return
				}
			default:
				yield(sqljournal.StatementLine{}, err)
				return
			}
		}
	}
}

func transferOf(number int, fields []string) (sqljournal.StatementLine, error) {
	amount, err := decimal.NewFromString(fields[2])
	received, err2 := time.Parse(time.RFC3339, fields[5])
	return sqljournal.StatementLine{
		Line: number, Reference: fields[0], ServiceID: fields[1], Amount: amount, Currency: fields[3],
		Status: fields[4], Time: received,
	}, errors.Join(err, err2)
}

// A backup was restored. The journal has forgotten what was paid since, which the provider's
// own export has.
func ExampleJournal_Reconcile() {
	if err := reconcile(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// ask, not known: order-1, to be recorded: true
	// ask, pending: order-2, to be recorded: true
	// agrees: order-3, to be recorded: false
}

func reconcile(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "sqljournal")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a program keeps its file
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "journal.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	journal, err := sqljournal.New(db, sqljournal.SQLite)
	if err != nil {
		return err
	}
	if err := journal.Migrate(ctx); err != nil {
		return err
	}
	begin := time.Date(2026, 1, 31, 7, 0, 0, 0, time.UTC)
	statement := sqljournal.Statement{
		Op: cardwire.OpCreateTransfer, From: begin, Until: begin.Add(17 * time.Hour),
		Exported: begin.Add(18 * time.Hour),
		Statuses: map[string]sqljournal.StatementStatus{
			"settled": sqljournal.StatementExecuted, "rejected": sqljournal.StatementNotExecuted,
			"processing": sqljournal.StatementPending,
		},
		Lines:       transfers(strings.NewReader(export)),
		AllowStrays: true, // this journal has forgotten everything
	}
	for f, err := range journal.Reconcile(ctx, statement) {
		if err != nil {
			return err
		}
		what := string(f.Kind)
		if f.Kind == sqljournal.FindingAsk {
			what += ", " + f.Why
		}
		fmt.Printf("%s: %s, to be recorded: %t\n", what, f.Reference, f.Applies())
		if f.Applies() { // a program shows the whole report to a person first
			if err := journal.Apply(ctx, f, "Ada", "restore of January 31"); err != nil {
				return err
			}
		}
	}
	return nil
}
