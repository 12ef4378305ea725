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

// Caller is a client under test.
type Caller interface {
	// Call has the order executed by the service at the base URL. The error is
	// looked at only to see whether the deadline ended the call.
	Call(ctx context.Context, base string, o Order) (Verdict, error)
	// Close lets go of all connections.
	Close()
}

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

// DefaultConfig is 50 transfers for each of the 43 kinds that a transfer can
// meet.
func DefaultConfig() Config {
	return Config{
		Ops: []string{"CreateTransfer"}, Calls: 2150, Concurrency: 48,
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
		records[i] = record{
			order: Order{Op: ops[round%len(ops)], Reference: reference(i)},
			kind:  kind, patient: round/len(ops)%patientEvery == 0,
		}
	}
	return records
}

// reference is a UUID, which is all that some operations take.
func reference(i int) string { return fmt.Sprintf("6f1c2a34-5b6d-4e7f-8a9b-%012x", i) }

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

// Row is what became of the calls of one kind.
type Row struct {
	Kind            string
	Calls           int
	Verdicts        [verdicts]int
	Executions      int // all of them
	Duplicated      int // orders executed more than once
	Worst           int // executions of one order
	FalseSuccess    int
	FalseFailure    int
	Unexpected      int // verdicts, or executions, that the kind does not allow
	Hurried         int // calls that the deadline ended where the fault would not have
	UnknownExecuted int // unknown, and in the ledger once it had settled
	AtOnceWrong     int // unknown, and not yet in the ledger when the call returned
	Longest         time.Duration
}

func (w *Row) add(o Row) {
	for v := range w.Verdicts {
		w.Verdicts[v] += o.Verdicts[v]
	}
	w.Calls += o.Calls
	w.Executions += o.Executions
	w.Duplicated += o.Duplicated
	w.Worst = max(w.Worst, o.Worst)
	w.FalseSuccess += o.FalseSuccess
	w.FalseFailure += o.FalseFailure
	w.Unexpected += o.Unexpected
	w.Hurried += o.Hurried
	w.UnknownExecuted += o.UnknownExecuted
	w.AtOnceWrong += o.AtOnceWrong
	w.Longest = max(w.Longest, o.Longest)
}

// Report is the outcome of a run.
type Report struct {
	Rows  []Row
	Total Row
	// Stray is how many executions belong to no call: a reference that arrived
	// as another. They would be missing from every count above.
	Stray int
	// Complaints describe the first calls that went wrong.
	Complaints []string
	// Calling and Settling are figures, and nothing else.
	Calling, Settling time.Duration
}

// maxComplaints is enough to see what is wrong, and can still be read.
const maxComplaints = 20

func judge(records []record, kinds []Kind, ledger *Ledger) *Report {
	report := &Report{Total: Row{Kind: "all"}}
	rows := map[*Kind]*Row{}
	for i := range kinds {
		rows[&kinds[i]] = &Row{Kind: kinds[i].Name}
	}
	for i := range records {
		r := &records[i]
		executions := ledger.Executions(r.order)
		row, complaint := r.judge(executions)
		rows[r.kind].add(row)
		if complaint != "" && len(report.Complaints) < maxComplaints {
			report.Complaints = append(report.Complaints, fmt.Sprintf("%s %s, patient %t: %s, executed %d times: %s",
				r.kind.Name, r.order.Op, r.patient, r.verdict, executions, complaint))
		}
	}
	for i := range kinds {
		report.Rows = append(report.Rows, *rows[&kinds[i]])
		report.Total.add(*rows[&kinds[i]])
	}
	report.Stray = ledger.Total() - report.Total.Executions
	return report
}

// judge compares one call with what the settled ledger says about it.
func (r *record) judge(executions int) (row Row, complaint string) {
	row = Row{Calls: 1, Executions: executions, Worst: executions, Longest: r.took}
	row.Verdicts[r.verdict] = 1
	switch {
	case r.verdict.done() && executions == 0:
		row.FalseSuccess, complaint = 1, "false success"
	case r.verdict.undone() && executions > 0:
		row.FalseFailure, complaint = 1, "false failure"
	case r.verdict == Unknown && executions > 0:
		row.UnknownExecuted = 1
	}
	if r.verdict == Unknown && (r.atOnce > 0) != (executions > 0) {
		row.AtOnceWrong = 1
	}
	if executions > 1 {
		row.Duplicated, complaint = 1, "duplicate"
	}
	hurried := r.deadline && !r.patient && (r.verdict == Unknown || r.verdict == NotSent)
	switch {
	case r.kind.allows(r.verdict):
	case hurried:
		row.Hurried = 1
	default:
		row.Unexpected = 1
	}
	// A hurried call may have been given up before the service had it.
	if r.kind.effect == never && executions > 0 || r.kind.effect == always && executions == 0 && r.patient {
		row.Unexpected = 1
	}
	if row.Unexpected > 0 && complaint == "" {
		complaint = "not what this kind allows"
	}
	return row, complaint
}

// String is a table by kind.
func (r *Report) String() string {
	var text strings.Builder
	text.WriteString("kind\tcalls\t")
	for v := range verdicts {
		text.WriteString(v.String() + "\t")
	}
	text.WriteString("executions\tduplicated\tworst\tfalse success\tfalse failure\tunexpected\thurried\t" +
		"unknown, done\tat once wrong\tlongest\t\n")
	for _, row := range append(r.Rows[:len(r.Rows):len(r.Rows)], r.Total) {
		fmt.Fprintf(&text, "%s\t%d\t", row.Kind, row.Calls)
		for _, n := range row.Verdicts {
			fmt.Fprintf(&text, "%d\t", n)
		}
		fmt.Fprintf(&text, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t\n", row.Executions, row.Duplicated, row.Worst,
			row.FalseSuccess, row.FalseFailure, row.Unexpected, row.Hurried, row.UnknownExecuted, row.AtOnceWrong,
			row.Longest.Round(time.Millisecond))
	}
	var table strings.Builder
	table.WriteString("\n") // a test's log begins with the place in the file
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = io.WriteString(w, text.String()) // a Builder takes everything
	_ = w.Flush()
	fmt.Fprintf(&table, "calls took %v, settling %v\n", r.Calling.Round(time.Millisecond), r.Settling.Round(time.Millisecond))
	return table.String()
}
