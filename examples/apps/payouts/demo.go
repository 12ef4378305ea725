package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// fakeFault is something that the fake service can be made to do to one order. A
// service of your own needs nothing of this file.
type fakeFault struct {
	Name  string
	fault *cardwiretest.Fault // nil: none
}

var fakeFaults = []fakeFault{
	{"takes it", nil},
	{"takes it, and the response is lost", &cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}},
	{"does not take it, and the response is lost", &cardwiretest.Fault{Kind: cardwiretest.FaultReset}},
	{"refuses it", &cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: http.StatusUnprocessableEntity, Message: "no"}},
	{"has too many requests for half a minute", &cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "30"}},
}

func sampleOrder() cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: "sample-" + strings.ToLower(rand.Text()[:8]), PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
		TransferType: cardwire.TransferTypeC2C, PayoutMethod: cardwire.PayoutMethodBankTransfer,
	}
}

// sample sends an order of the page's form.
func (s *service) sample(r *http.Request) (order, error) {
	var fault string
	if err := decode(r, map[string]any{"fault": &fault}); err != nil {
		return order{}, err
	}
	i, err := strconv.Atoi(fault)
	if err != nil || i < 0 || i >= len(fakeFaults) {
		return order{}, newProblem(http.StatusBadRequest, "the form is not this page's")
	}
	if f := fakeFaults[i].fault; f != nil {
		s.fake.Fail(operation, *f, 1)
	}
	return s.create(r.Context(), sampleOrder())
}

// inLedger returns the number that the fake service has for an order; "": none.
func (s *service) inLedger(number string) string {
	if s.fake == nil {
		return ""
	}
	for _, e := range s.fake.Ledger() {
		if e.Reference == number {
			return e.ID
		}
	}
	return ""
}

const demoOrders = 200

// demoFaults are met by every second order.
var demoFaults = []cardwiretest.Fault{
	{Kind: cardwiretest.FaultReset, Executed: true},
	{Kind: cardwiretest.FaultReset},
	{Kind: cardwiretest.FaultHTML, Executed: true},
	{Kind: cardwiretest.FaultHTML},
	{Kind: cardwiretest.FaultStatus, Status: http.StatusUnprocessableEntity, Message: "no"},
	{Kind: cardwiretest.FaultRateLimited},
	{Kind: cardwiretest.FaultTruncated, Executed: true},
	{Kind: cardwiretest.FaultGarbage, Executed: true},
	{Kind: cardwiretest.FaultLate, Delay: 200 * time.Millisecond},
	{Kind: cardwiretest.FaultStatus, Status: http.StatusServiceUnavailable, Executed: true},
}

// useFake gives the fake service, if that is used, a file for its orders, unless one is
// named, and returns what removes the file. The demonstration waits for nobody, and logs
// nothing.
func (o *settings) useFake() (forget func(), err error) {
	if o.demo {
		o.fake = cmp.Or(o.fake, cardwiretest.New())
		o.timeout, o.grace, o.brake, o.level = time.Second, 2*time.Second, 0, slog.LevelError+1
	}
	forget = func() {}
	if o.fake != nil && o.source == "" {
		var directory string
		directory, err = os.MkdirTemp("", "payouts-")
		o.source, o.migrate = filepath.Join(directory, "payouts.db"), true
		forget = func() { _ = os.RemoveAll(directory) } // nobody needs what could not be removed
	}
	return forget, err
}

// demonstrate sends orders through the fake service, responds as its support, and
// compares what became of them with its ledger.
func (s *service) demonstrate(ctx context.Context, out io.Writer) (err error) {
	if err := s.river.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.river.Stop(context.WithoutCancel(ctx))) }()
	_, _ = fmt.Fprintf(out, "%d orders go to the fake service. Every second call meets a fault, every tenth order comes twice.\n", demoOrders)
	numbers, err := s.sendDemo(ctx, "demo-"+strings.ToLower(rand.Text()[:8]))
	if err == nil {
		err = s.supportDemo(ctx, out, numbers)
	}
	if err == nil {
		err = s.compareDemo(ctx, out, numbers)
	}
	if ctx.Err() != nil {
		return errors.New("the demonstration was interrupted")
	}
	return err
}

func (s *service) sendDemo(ctx context.Context, batch string) (numbers []string, err error) {
	for i := range demoOrders {
		p := sampleOrder()
		p.MerchantOrderNo = fmt.Sprintf("%s-%03d", batch, i)
		numbers = append(numbers, p.MerchantOrderNo)
		if i%2 == 1 {
			s.fake.Fail(operation, demoFaults[i/2%len(demoFaults)], 1)
		}
		for range 1 + (i%10)/9 {
			if _, err := s.create(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	return numbers, nil
}

// supportDemo does what people do: it looks into the ledger for each unresolved order.
// Of those that are not there it has every second one sent again.
func (s *service) supportDemo(ctx context.Context, out io.Writer, numbers []string) error {
	bar := progressbar.NewOptions(len(numbers), progressbar.OptionSetWriter(out), progressbar.OptionSetVisibility(isTerminal(out)),
		progressbar.OptionSetDescription("orders that have ended"), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := 0
		list, err := read(ctx, s.db, `SELECT `+columns+` FROM payouts WHERE state IN ('queued', 'sending', 'unresolved')`)
		if err != nil {
			return err
		}
		for _, o := range list {
			i := slices.Index(numbers, o.Order)
			if i < 0 {
				continue // of an earlier run
			}
			left++
			if err := s.resolveDemo(ctx, o, i%4 == 1); err != nil {
				return err
			}
		}
		_ = bar.Set(len(numbers) - left) // a bar that cannot be drawn is no reason to stop
		if left == 0 {
			_ = bar.Finish()
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (s *service) resolveDemo(ctx context.Context, o order, again bool) error {
	if o.State != unresolved {
		return nil
	}
	o, err := s.find(ctx, o.Order)
	if err != nil {
		return err
	}
	found := resolution{Try: o.Try, Outcome: "not_executed", By: "support", Why: "looked into the ledger"}
	switch {
	case s.fake.Executions(operation, o.Order) > 0:
		found.Outcome = executed
	case again:
		found.Outcome = "send_again"
	}
	_, err = s.resolve(ctx, o.Order, found)
	if p, ok := errors.AsType[*problem](err); ok && p.Status == http.StatusConflict { // too early: it is asked again
		return nil
	}
	return err
}

var errDisagree = errors.New("orders and ledger disagree")

// compareDemo compares each order with the ledger.
func (s *service) compareDemo(ctx context.Context, out io.Writer, numbers []string) error {
	n, wrong := map[string]int{}, 0
	for _, number := range numbers {
		o, err := s.find(ctx, number)
		if err != nil {
			return err
		}
		times, want := s.fake.Executions(operation, number), 0
		if o.State == submitted {
			want = 1
		}
		if n[o.State]++; times != want {
			wrong++
			_, _ = fmt.Fprintf(out, "%s is %s, and was executed %d times\n", number, o.State, times)
		}
	}
	_, _ = fmt.Fprintf(out, "submitted %d\nfailed    %d\n", n[submitted], n[failed])
	if wrong > 0 {
		return fmt.Errorf("%w on %d orders", errDisagree, wrong)
	}
	_, _ = fmt.Fprintln(out, "Orders and ledger agree: what was submitted was executed once, and nothing else was.")
	return nil
}

// isTerminal reports whether somebody looks on: a bar in a log file helps nobody.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
