// Package chaos makes thousands of calls into a service that fails in some fifty ways, and
// then compares what the client said with what the service did.
//
// The service keeps a ledger and does not deduplicate: a request that is sent twice is
// executed twice. A call is compared only when nothing can be executed any more. What must
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
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

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
	finishing      = 30 * time.Second // until nothing can be executed any more
)

// allOps are the operations that change something.
var allOps = []string{"CreateTransfer", "FreezeCard", "CancelOperation", "RetryOperation", "UploadImage"}

// trial is one call, as the harness saw it.
type trial struct {
	order   Order
	kind    *Kind
	patient bool
	doer    *http.Client // carries the request; nil: the client's own connections

	verdict  Verdict
	deadline bool // the call's error names the deadline
}

// run makes calls of the operations in turn, waits until nothing can be executed any more, and
// compares. If a caller's doer carries the requests, each call comes after a read that leaves
// an idle connection, and nothing is proven not to have been sent.
func run(ctx context.Context, kinds []Kind, ops []string, n int, doer *http.Client) (*summary, error) {
	running, err := Start(ctx, kinds)
	if err != nil {
		return nil, err
	}
	defer running.Stop()
	trials := plan(ops, n, kinds)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				r := &trials[i]
				r.doer = doer
				r.call(ctx, running.Base()[r.kind.Name])
			}
		})
	}
	workers.Wait()
	if doer != nil {
		doer.CloseIdleConnections()
	}
	finish, cancel := context.WithTimeout(ctx, finishing)
	defer cancel()
	if err := running.Finish(finish); err != nil {
		return nil, err
	}
	return compare(trials, running.Ledger()), nil
}

// plan spreads the calls: neighbours are of different kinds, and each kind has
// each operation hurried and patient.
func plan(ops []string, n int, kinds []Kind) []trial {
	trials := make([]trial, n)
	for i := range trials {
		round, kind := i/len(kinds), &kinds[i%len(kinds)]
		// A UUID is all that some operations take as a reference.
		order := Order{Op: ops[round%len(ops)], Reference: fmt.Sprintf("6f1c2a34-5b6d-4e7f-8a9b-%012x", i)}
		trials[i] = trial{order: order, kind: kind, patient: round/len(ops)%patientEvery == 0}
	}
	return trials
}

// call makes the call that the order's Op names. A patient call waits until its kind has
// shown: however late a busy machine sends the request, it is sent.
func (r *trial) call(ctx context.Context, base string) {
	wait := deadline
	if r.patient {
		wait = patience
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if r.patient && r.kind.silent {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { time.AfterFunc(silentPatience, cancel) },
		})
	}
	// Without long waits even a hurried call retries whatever the client thinks may be retried.
	policy := cardwire.DefaultRetryPolicy()
	policy.MinDelay, policy.MaxDelay = time.Millisecond, 10*time.Millisecond
	opts := []cardwire.Option{cardwire.WithRetry(policy), cardwire.WithJournal(journal.NewMemory())}
	if r.doer != nil {
		opts = append(opts, cardwire.WithHTTPClient(r.doer))
	}
	client, err := cardwire.New(base, "chaos-key", opts...)
	if err == nil && r.doer != nil {
		read, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_, _ = client.CardCapacity(read, cardwire.WithoutRetry()) //nolint:contextcheck // no trace hears of it
		cancel()                                                  // where it fails, nothing idles
	}
	if err == nil {
		err = send(ctx, client, r.order)
	}
	r.verdict, r.deadline = Unknown, errors.Is(err, context.DeadlineExceeded)
	if err == nil {
		r.verdict = Success
	} else if failure, ok := errors.AsType[*cardwire.Error](err); ok { // one that has no outcome decides nothing
		r.verdict = Verdict(failure.Outcome.String())
	}
}

func send(ctx context.Context, client *cardwire.Client, o Order) (err error) {
	switch o.Op {
	case "CreateTransfer":
		_, err = client.CreateTransfer(ctx, cardwire.TransferParams{
			MerchantOrderNo: o.Reference, PayoutCurrency: "EUR", TransferType: cardwire.TransferTypeC2C,
			PayoutMethod: cardwire.PayoutMethodBankTransfer, TransferAmount: decimal.New(1050, -2),
			SenderFirstName: "Ada", SenderLastName: "Example", SenderCountry: "DE",
			ReceiverNativeFirstName: "Bo", ReceiverNativeLastName: "Example", ReceiverBankAccountNumber: "DE00",
		})
	case "FreezeCard":
		_, err = client.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: o.Reference})
	case "CancelOperation":
		err = client.CancelOperation(ctx, o.Reference)
	case "RetryOperation":
		err = client.RetryOperation(ctx, o.Reference)
	default:
		_, err = client.UploadImage(ctx, cardwire.UploadImageParams{
			Filename: o.Reference + ".png", Data: []byte("\x89PNG\r\n\x1a\nimage"),
		})
	}
	return err
}

// summary is the outcome of a run.
type summary struct {
	verdicts map[Verdict]int
	// stray is how many executions belong to no call: a reference that arrived
	// as another.
	stray int
	wrong []string // of each call with which something is wrong
}

func compare(trials []trial, ledger *Ledger) *summary {
	all := &summary{verdicts: map[Verdict]int{}, stray: ledger.Total()}
	for i := range trials {
		r := &trials[i]
		e := ledger.entry(r.order)
		all.verdicts[r.verdict]++
		all.stray -= e.executions
		if wrong := r.flaws(e); len(wrong) > 0 {
			all.wrong = append(all.wrong, fmt.Sprintf("%s %s, patient %t: %s, executed %d times: %q",
				r.kind.Name, r.order.Op, r.patient, r.verdict, e.executions, wrong))
		}
	}
	return all
}

// What may be wrong with a call.
const (
	duplicated   = "duplicated"    // the order arrived or was executed more than once
	falseSuccess = "false success" // said to be done, and not in the ledger
	falseFailure = "false failure" // said not to be done, and in the ledger
	unexpected   = "unexpected"    // a verdict, or an execution, that the kind does not allow
)

// flaws compares one call with what the ledger says at the end about it.
func (r *trial) flaws(e entry) (wrong []string) {
	executed := e.executions > 0
	isUnknown := r.verdict == Unknown
	allowed := r.kind.allows(r.verdict) || r.doer != nil && isUnknown && r.kind.allows(NotSent)
	// A hurried call may have been given up before the service had it.
	inHurry := r.deadline && !r.patient && (isUnknown || r.verdict == NotSent)
	wrongEffect := r.kind.effect == never && executed || r.kind.effect == always && !executed && r.patient
	for _, c := range []struct {
		what  string
		holds bool
	}{
		{duplicated, e.executions > 1 || e.arrivals > 1},
		{falseSuccess, r.verdict.done() && !executed},
		{falseFailure, r.verdict.undone() && executed || r.verdict == NotSent && e.arrivals > 0},
		{unexpected, !allowed && !inHurry || wrongEffect},
	} {
		if c.holds {
			wrong = append(wrong, c.what)
		}
	}
	return wrong
}
