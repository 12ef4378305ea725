// Package chaos makes thousands of calls into a service that fails in some fifty ways, and
// says yes with other data than it promised in a few more, and then compares what the
// client said with what the service did.
//
// The service keeps a ledger and does not deduplicate: a request that is sent twice is
// executed twice. A call is judged only when nothing can be executed any more. What must
// not occur is
//
//   - a duplicate: an order that arrived or was executed more than once,
//   - a false success: said to be done, and not in the ledger,
//   - a false failure: said not to be done, and in the ledger,
//   - a verdict, or an execution, that the kind of fault does not allow.
//
// The short run is part of the tests:
//
//	go test -race -run TestLedger ./chaos
//
// and the long one, over all five operations that change something, is
//
//	go test -run TestLedger -timeout 60m ./chaos -v -args -all -calls 200000
//
// Times are printed and never asserted. All traffic stays on loopback.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// Config describes a run.
type Config struct {
	// Ops are the operations, as in cardwire.Error.Op, which take turns.
	Ops []string
	// Calls is how many calls are made. They are spread over the kinds that one
	// of the operations can meet.
	Calls int
	// Concurrency is how many of them are under way at a time.
	Concurrency int
	// Deadline is that of a hurried call: short enough that on a busy machine it
	// ends calls at any point, not only where the service is silent.
	Deadline time.Duration
	// Patience is the deadline of every fourth call, whose verdict must be the one
	// of its kind: it is never reached. Where nothing but the caller ends a call,
	// he does so SilentPatience after the request was written.
	Patience, SilentPatience time.Duration
	// Doer says that a caller's http.Client carries the requests: nothing is then
	// proven not to have been sent.
	Doer bool
	// Settle bounds the wait until nothing can be executed any more.
	Settle time.Duration
}

// patient is the context of a call that waits until its kind has shown. However
// late a busy machine sends the request, it is sent.
func (c *Config) patient(ctx context.Context, k *Kind) (context.Context, context.CancelFunc) {
	ctx, giveUp := context.WithTimeout(ctx, c.Patience)
	if !k.silent {
		return ctx, giveUp
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { time.AfterFunc(c.SilentPatience, giveUp) },
	}), giveUp
}

// DefaultConfig is 40 transfers for each kind that a transfer can meet.
func DefaultConfig() Config {
	ops := []string{"CreateTransfer"}
	return Config{
		Ops: ops, Calls: 40 * len(KindsOf(ops)), Concurrency: 48,
		Deadline: 150 * time.Millisecond, Patience: 30 * time.Second, SilentPatience: time.Second,
		Settle: 30 * time.Second,
	}
}

// AllOps are the operations that change something.
func AllOps() []string {
	return []string{"CreateTransfer", "FreezeCard", "CancelOperation", "RetryOperation", "UploadImage"}
}

// patientEvery is how often a call is patient.
const patientEvery = 4

// record is one call, as the harness saw it.
type record struct {
	order   Order
	kind    *Kind
	patient bool
	doer    bool

	verdict  Verdict
	deadline bool // the call's error names the deadline
	atOnce   int  // what the ledger said when the call returned
	took     time.Duration
}

// Run makes the calls, waits until everything has settled, and compares.
func Run(ctx context.Context, cfg Config, caller Caller) (*Report, error) {
	kinds := KindsOf(cfg.Ops)
	running, err := Start(ctx, kinds)
	if err != nil {
		return nil, err
	}
	defer running.Stop()
	ledger := running.Ledger()

	records := plan(cfg, kinds)
	start := time.Now()
	callAll(ctx, cfg.Concurrency, len(records), func(i int) {
		r := &records[i]
		r.call(ctx, cfg, caller, running.Base()[r.kind.Name])
		r.atOnce = ledger.Executions(r.order)
	})
	calls := time.Since(start)
	caller.Close()

	settle, cancel := context.WithTimeout(ctx, cfg.Settle)
	defer cancel()
	if err := running.Settle(settle); err != nil {
		return nil, err
	}
	report := judge(records, kinds, ledger)
	report.Calling, report.Settling = calls, time.Since(start)-calls
	return report, nil
}

// plan spreads the calls: neighbours are of different kinds, and each kind has
// each operation hurried and patient.
func plan(cfg Config, kinds []Kind) []record {
	records := make([]record, cfg.Calls)
	for i := range records {
		round, kind := i/len(kinds), &kinds[i%len(kinds)]
		ops := kind.fits(cfg.Ops)
		// A UUID is all that some operations take as a reference.
		order := Order{Op: ops[round%len(ops)], Reference: fmt.Sprintf("6f1c2a34-5b6d-4e7f-8a9b-%012x", i)}
		records[i] = record{order: order, kind: kind, patient: round/len(ops)%patientEvery == 0, doer: cfg.Doer}
	}
	return records
}

// callAll makes the calls 0 to n-1, so many at a time.
func callAll(ctx context.Context, concurrency, n int, call func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				call(int(i))
			}
		})
	}
	workers.Wait()
}

func (r *record) call(ctx context.Context, cfg Config, caller Caller, base string) {
	var cancel context.CancelFunc
	if r.patient {
		ctx, cancel = cfg.patient(ctx, r.kind)
	} else {
		ctx, cancel = context.WithTimeout(ctx, cfg.Deadline)
	}
	defer cancel()
	start := time.Now()
	var err error
	r.verdict, err = caller.Call(ctx, base, r.order)
	r.took = time.Since(start)
	r.deadline = errors.Is(err, context.DeadlineExceeded)
}

// The columns of a report beside the verdicts.
const (
	calls           = iota + int(verdicts)
	executions      // all of them
	duplicated      // orders that arrived or were executed more than once
	falseSuccess    // said to be done, and not in the ledger
	falseFailure    // said not to be done, and in the ledger
	unexpected      // verdicts, or executions, that the kind does not allow
	hurried         // calls that the deadline ended where the fault would not have
	unknownExecuted // unknown, and in the ledger once it had settled
	atOnceWrong     // unknown, and not yet in the ledger when the call returned
	columns
)

const titles = "success\tnot sent\trefused\tunknown\texecuted\tcalls\texecutions\tduplicated\tfalse success\t" +
	"false failure\tunexpected\thurried\tunknown, done\tat once wrong\tlongest\tkind\t\n"

// Row is what became of the calls of one kind: verdicts and columns.
type Row struct {
	Kind    string
	Counts  [columns]int
	Longest time.Duration
}

func (w *Row) add(o Row) {
	for i := range w.Counts {
		w.Counts[i] += o.Counts[i]
	}
	w.Longest = max(w.Longest, o.Longest)
}

// Report is the outcome of a run.
type Report struct {
	Rows []Row // by kind; the last is the sum
	// Stray is how many executions belong to no call: a reference that arrived
	// as another. They would be missing from every count above.
	Stray int
	// Complaints describe the first calls that went wrong.
	Complaints []string
	// Calling and Settling are figures, and nothing else.
	Calling, Settling time.Duration
}

// Total is the sum of all rows.
func (r *Report) Total() *Row { return &r.Rows[len(r.Rows)-1] }

// maxComplaints is enough to see what is wrong, and can still be read.
const maxComplaints = 20

func judge(records []record, kinds []Kind, ledger *Ledger) *Report {
	report := &Report{Rows: make([]Row, len(kinds)+1)}
	rows := map[*Kind]*Row{}
	for i := range kinds {
		report.Rows[i].Kind = kinds[i].Name
		rows[&kinds[i]] = &report.Rows[i]
	}
	for i := range records {
		r := &records[i]
		row, complaint := r.judge(ledger.entry(r.order))
		rows[r.kind].add(row)
		report.Total().add(row)
		if complaint != "" && len(report.Complaints) < maxComplaints {
			report.Complaints = append(report.Complaints, fmt.Sprintf("%s %s, patient %t: %s, executed %d times: %s",
				r.kind.Name, r.order.Op, r.patient, r.verdict, row.Counts[executions], complaint))
		}
	}
	report.Stray = ledger.Total() - report.Total().Counts[executions]
	return report
}

// judge compares one call with what the settled ledger says about it.
func (r *record) judge(e entry) (row Row, complaint string) {
	row.Longest = r.took
	count := func(column int, holds bool, words string) {
		if holds {
			row.Counts[column]++
			complaint = words
		}
	}
	executed := e.executions > 0
	isUnknown := r.verdict == Unknown
	row.Counts[r.verdict], row.Counts[calls], row.Counts[executions] = 1, 1, e.executions
	count(unknownExecuted, isUnknown && executed, "")
	count(atOnceWrong, isUnknown && (r.atOnce > 0) != executed, "")
	allowed := r.kind.allows(r.verdict) || r.doer && isUnknown && r.kind.allows(NotSent)
	inHurry := r.deadline && !r.patient && (isUnknown || r.verdict == NotSent)
	count(hurried, !allowed && inHurry, "")
	// A hurried call may have been given up before the service had it.
	wrongEffect := r.kind.effect == never && executed || r.kind.effect == always && !executed && r.patient
	count(unexpected, !allowed && !inHurry || wrongEffect, "not what this kind allows")
	count(falseSuccess, r.verdict.done() && !executed, "false success")
	count(falseFailure, r.verdict.undone() && executed || r.verdict == NotSent && e.arrivals > 0, "false failure")
	count(duplicated, e.executions > 1 || e.arrivals > 1, "duplicate")
	return row, complaint
}

// String is a table by kind.
func (r *Report) String() string {
	var table strings.Builder
	table.WriteString("\n") // a test's log begins with the place in the file
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = io.WriteString(w, titles) // a Builder takes everything
	for _, row := range r.Rows {
		for _, n := range row.Counts {
			_, _ = fmt.Fprintf(w, "%d\t", n)
		}
		_, _ = fmt.Fprintf(w, "%v\t%s\t\n", row.Longest.Round(time.Millisecond), row.Kind)
	}
	_ = w.Flush()
	calling, settling := r.Calling.Round(time.Millisecond), r.Settling.Round(time.Millisecond)
	_, _ = fmt.Fprintf(&table, "calls took %v, settling %v\n", calling, settling)
	return table.String()
}
