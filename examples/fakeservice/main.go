// Fakeservice serves the fake service of package cardwiretest on an address of
// choice, for curl and for programs in other languages.
//
//	go run ./examples/fakeservice
//	go run ./examples/fakeservice -addr 127.0.0.1:9000 -fail CreateTransfer:reset:executed:1
//
// It prints its key and a curl line for every operation, serves until it is
// interrupted, and then prints what was executed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

const help = `Fakeservice serves the fake service of package cardwiretest, for curl and for programs
in other languages, until it is interrupted. It prints its key and curl lines, and at the
end what was executed, whatever the responses were.

	go run ./examples/fakeservice
	go run ./examples/fakeservice -addr 127.0.0.1:9000 -fail CreateTransfer:reset:executed:1

It reads nothing from the environment, and prints what to export for the other programs:
CARDWIRE_BASE_URL and CARDWIRE_API_KEY. A transferAmount is refused outside min_quota and
max_quota of its payoutCurrency, which /remittance/currency lists.

Flags:
`

func main() {
	// The first interrupt ends the program in order, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(status(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}

// errUsage is for mistakes at the command line.
var errUsage = errors.New("-help lists the flags")

// status runs the program and returns its exit status.
func status(ctx context.Context, out, errs io.Writer, args []string) int {
	err := run(ctx, out, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil:
		_, _ = fmt.Fprintln(errs, "fakeservice: stopped")
		return 0
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(errs, "fakeservice:", err)
		return 2
	}
	_, _ = fmt.Fprintln(errs, "fakeservice:", err)
	return 1
}

// settings are what the flags say.
type settings struct {
	addr       string
	anyAddress bool
	cards      int
	faults     []fault
	options    []cardwiretest.Option
}

func parse(out io.Writer, args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("fakeservice", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	flags.StringVar(&s.addr, "addr", "127.0.0.1:8080", "`address` to listen on; port 0: any that is free")
	flags.BoolVar(&s.anyAddress, "any-address", false, "allow an address that other machines can reach")
	flags.Func("fail", "make an operation fail, as `OPERATION:KIND[:executed][:TIMES]`; repeatable. TIMES is a number, 1 by "+
		"default, or always.\nFurther parts are status=503, code=500, message=TEXT, retry-after=2 and delay=1s.\n"+
		"Kinds: "+strings.Join(kinds(), ", "), func(value string) error {
		f, err := parseFault(value)
		s.faults = append(s.faults, f)
		return err
	})
	flags.IntVar(&s.cards, "cards", 25, "`number` of cards to begin with")
	latency := flags.Duration("latency", 0, "`delay` of every response")
	seed := flags.Int64("seed", 1, "`number` that the data is derived from")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return s, err
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil:
		err = s.checkAddress()
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w", err, errUsage)
	}
	s.options = []cardwiretest.Option{cardwiretest.WithLatency(*latency), cardwiretest.WithSeed(*seed)}
	return s, nil
}

// checkAddress keeps the service, whose key is known to everybody, to this machine.
func (s *settings) checkAddress() error {
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	ip, err := netip.ParseAddr(host)
	if s.anyAddress || host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("-addr: %s is not on loopback: add -any-address if other machines are to reach it", s.addr)
}

// What the service knows besides its cards, for the curl lines.
const (
	cardID       = "card-1"
	orderID      = "order-of-card-1"
	failedTopUp  = "0c5b7a1e-2f4d-4c8a-9b3e-6d1f8a7c2e50"
	failedFreeze = "7e9d3b2a-5c1f-4e6b-8a4d-1b2c3d4e5f6a"
)

func (s *settings) service() *cardwiretest.Service {
	service := cardwiretest.New(append(s.options, cardwiretest.WithCards(s.cards-1))...)
	if s.cards > 0 { // the last one has an ID that is known
		service.SetCard(`{"id":"` + cardID + `","order_id":"` + orderID + `","available":"250.000"}`)
	}
	service.AddFailedOperation(failedTopUp, "transfer_in")
	service.AddFailedOperation(failedFreeze, "freeze")
	for _, f := range s.faults {
		service.Fail(f.op, f.fault, f.times)
	}
	return service
}

// grace is how long requests under way may take when the service stops.
const grace = time.Second

func run(ctx context.Context, out io.Writer, args []string) error {
	s, err := parse(out, args)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("%w: -addr chooses another port", err)
	}
	service := s.service()
	server := &http.Server{Handler: service, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	introduce(out, "http://"+listener.Addr().String()+"/api/v1", s.faults)

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	// The context that has ended cannot bound what remains to be done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err = server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // some fault still hangs
		err = server.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	printLedger(out, service.Ledger())
	return err
}

// printLedger prints what was executed, one line for each.
func printLedger(out io.Writer, ledger []cardwiretest.Execution) {
	var b strings.Builder
	if len(ledger) == 0 {
		b.WriteString("\nNothing was executed.\n")
	} else {
		b.WriteString("\nThis was executed:\n")
	}
	for _, e := range ledger {
		fmt.Fprintf(&b, "%s %q", e.Op, e.Reference)
		if e.ID != "" {
			b.WriteString(", ID " + e.ID)
		}
		if e.Amount != "" {
			b.WriteString(", " + e.Amount + " " + e.Currency)
		}
		b.WriteString("\n")
	}
	_, _ = io.WriteString(out, b.String()) // who does not listen was served
}

func introduce(out io.Writer, baseURL string, faults []fault) {
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, format+"\n", args...) // who does not listen can still be served
	}
	say("The fake service is at %s. Its data is made up.", baseURL)
	for _, f := range faults {
		say("%s", f)
	}
	say("")
	say("export CARDWIRE_BASE_URL=%s CARDWIRE_API_KEY=%s", baseURL, cardwiretest.DefaultKey)
	say("")
	for _, line := range curls() {
		say("%s", line)
	}
}

// curls returns a line for each operation, for a shell in which the exported
// variables are set.
func curls() []string {
	lines := []struct{ path, args string }{
		{"/bins", ""},
		{"/bins/maintenance", ""},
		{"/account/capacity", ""},
		{"/cards", "-G -d limit=5 -d page=1 -d status=0"},
		{"/cards/info", "-G -d id=" + cardID},
		{"/cards/info", "-G -d id=" + orderID},
		{"/cards/private", "-d cardId=" + cardID},
		{"/cards/suspend", "-F cardId=" + cardID + " -F clientTransactionId=5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"},
		{"/cards/adjustAction", "-d client_transaction_id=" + failedTopUp + " -d type=cancel"},
		{"/cards/adjustAction", "-d client_transaction_id=" + failedFreeze + " -d type=retry"},
		{"/cards/upload", "-F 'file=an image;filename=front.png;type=image/png'"},
		{"/remittance/states", ""},
		{"/remittance/currency", ""},
		{"/remittance/transfer", "-H 'Content-Type: application/json' -d '" +
			`{"merchantOrderNo":"order-1","payoutCurrency":"EUR","transferType":"3","payoutMethod":"1","transferAmount":"25.00"}'`},
	}
	var all []string
	for _, l := range lines {
		line := `curl -H "Authorization: Bearer $CARDWIRE_API_KEY" "$CARDWIRE_BASE_URL` + l.path + `" ` + l.args
		all = append(all, strings.TrimSpace(line))
	}
	return all
}
