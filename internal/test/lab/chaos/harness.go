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
// All traffic stays on loopback.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes a run.
type Config struct {
	Ops   []string // the operations, as in cardwire.Error.Op, which take turns
	Calls int      // spread over the kinds that one of the operations can meet
	Doer  bool     // a caller's http.Client carries the requests: nothing is then proven not to have been sent
}

const (
	concurrency = 48 // calls under way at a time
	// deadline is that of a hurried call: short enough that on a busy machine it ends calls
	// at any point, not only where the service is silent.
	deadline = 150 * time.Millisecond
	// patience is that of every fourth call, whose verdict must be the one of its kind.
	patience     = 30 * time.Second
	patientEvery = 4
	// Where nothing but the caller ends a patient call, he does so that long after the
	// request was written.
	silentPatience = time.Second
	settling       = 30 * time.Second // until nothing can be executed any more
)

// patient is the context of a call that waits until its kind has shown. However
// late a busy machine sends the request, it is sent.
func patient(ctx context.Context, k *Kind) (context.Context, context.CancelFunc) {
	ctx, giveUp := context.WithTimeout(ctx, patience)
	if !k.silent {
		return ctx, giveUp
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { time.AfterFunc(silentPatience, giveUp) },
	}), giveUp
}

// DefaultConfig is 40 transfers for each kind that a transfer can meet.
func DefaultConfig() Config {
	ops := []string{"CreateTransfer"}
	return Config{Ops: ops, Calls: 40 * len(KindsOf(ops))}
}

// AllOps are the operations that change something.
func AllOps() []string {
	return []string{"CreateTransfer", "FreezeCard", "CancelOperation", "RetryOperation", "UploadImage"}
}

// record is one call, as the harness saw it.
type record struct {
	order   Order
	kind    *Kind
	patient bool
	doer    bool

	verdict  Verdict
	deadline bool // the call's error names the deadline
}

// Run makes the calls, waits until everything has settled, and compares.
func Run(ctx context.Context, cfg Config, caller Caller) (*Report, error) {
	kinds := KindsOf(cfg.Ops)
	running, err := Start(ctx, kinds)
	if err != nil {
		return nil, err
	}
	defer running.Stop()
	records := plan(cfg, kinds)
	callAll(ctx, len(records), func(i int) {
		r := &records[i]
		r.call(ctx, caller, running.Base()[r.kind.Name])
	})
	caller.Close()

	settle, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	if err := running.Settle(settle); err != nil {
		return nil, err
	}
	return judge(records, running.Ledger()), nil
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

// callAll makes the calls 0 to n-1, many at a time.
func callAll(ctx context.Context, n int, call func(i int)) {
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

func (r *record) call(ctx context.Context, caller Caller, base string) {
	var cancel context.CancelFunc
	if r.patient {
		ctx, cancel = patient(ctx, r.kind)
	} else {
		ctx, cancel = context.WithTimeout(ctx, deadline)
	}
	defer cancel()
	var err error
	r.verdict, err = caller.Call(ctx, base, r.order)
	r.deadline = errors.Is(err, context.DeadlineExceeded)
}

// The columns of a report beside those of the verdicts.
const (
	calls        = "calls"
	executions   = "executions"    // all of them
	duplicated   = "duplicated"    // orders that arrived or were executed more than once
	falseSuccess = "false success" // said to be done, and not in the ledger
	falseFailure = "false failure" // said not to be done, and in the ledger
	unexpected   = "unexpected"    // verdicts, or executions, that the kind does not allow
	hurried      = "hurried"       // calls that the deadline ended where the fault would not have
)

// Counts are how many calls each verdict and each column has.
type Counts map[string]int

// Report is the outcome of a run.
type Report struct {
	Counts Counts
	// Stray is how many executions belong to no call: a reference that arrived
	// as another. They would be missing from every count.
	Stray int
	// Complaints describe the first calls that went wrong.
	Complaints []string
}

// maxComplaints is enough to see what is wrong, and can still be read.
const maxComplaints = 20

func judge(records []record, ledger *Ledger) *Report {
	report := &Report{Counts: Counts{}}
	for i := range records {
		r := &records[i]
		counts, complaint := r.judge(ledger.entry(r.order))
		for column, n := range counts {
			report.Counts[column] += n
		}
		if complaint != "" && len(report.Complaints) < maxComplaints {
			report.Complaints = append(report.Complaints, fmt.Sprintf("%s %s, patient %t: %s, executed %d times: %s",
				r.kind.Name, r.order.Op, r.patient, r.verdict, counts[executions], complaint))
		}
	}
	report.Stray = ledger.Total() - report.Counts[executions]
	return report
}

// judge compares one call with what the settled ledger says about it.
func (r *record) judge(e entry) (counts Counts, complaint string) {
	counts = Counts{string(r.verdict): 1, calls: 1, executions: e.executions}
	count := func(column string, holds bool) {
		if holds {
			counts[column] = 1
			complaint = column
		}
	}
	executed := e.executions > 0
	isUnknown := r.verdict == Unknown
	allowed := r.kind.allows(r.verdict) || r.doer && isUnknown && r.kind.allows(NotSent)
	inHurry := r.deadline && !r.patient && (isUnknown || r.verdict == NotSent)
	if !allowed && inHurry {
		counts[hurried] = 1
	}
	// A hurried call may have been given up before the service had it.
	wrongEffect := r.kind.effect == never && executed || r.kind.effect == always && !executed && r.patient
	count(unexpected, !allowed && !inHurry || wrongEffect)
	count(falseSuccess, r.verdict.done() && !executed)
	count(falseFailure, r.verdict.undone() && executed || r.verdict == NotSent && e.arrivals > 0)
	count(duplicated, e.executions > 1 || e.arrivals > 1)
	return counts, complaint
}
