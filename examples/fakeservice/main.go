// Fakeservice serves the fake service of package cardwiretest, for curl and for programs in
// other languages.
//
//	go run ./examples/fakeservice
//	go run ./examples/fakeservice -addr 127.0.0.1:9000 -fail CreateTransfer:reset:executed
//
// It prints its base URL, its key and some curl lines, serves until it is interrupted, and
// then prints what was executed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

const help = `Fakeservice serves the fake service of package cardwiretest, for curl and for programs
in other languages, until it is interrupted. It prints what to export for the other
programs, CARDWIRE_BASE_URL and CARDWIRE_API_KEY, and curl lines; at the end it prints what
was executed, whatever the responses were.

	go run ./examples/fakeservice
	go run ./examples/fakeservice -addr 127.0.0.1:9000 -fail CreateTransfer:reset:executed

A transferAmount is refused outside min_quota and max_quota of its payoutCurrency, which
/remittance/currency lists.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(status(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}

// errUsage is for mistakes at the command line.
var errUsage = errors.New("-help lists the flags")

// status runs the program and returns its exit status.
func status(ctx context.Context, out, errs io.Writer, args []string) int {
	err := run(ctx, out, args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintln(errs, "fakeservice:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

func run(ctx context.Context, out io.Writer, args []string) error {
	service := cardwiretest.New()
	service.AddFailedOperation(failedFreeze, "freeze")
	addr, err := parse(out, args, service)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("%w: -addr chooses another port", err)
	}
	_, _ = fmt.Fprintf(out, introduction, listener.Addr(), cardwiretest.DefaultKey, failedFreeze)
	server := &http.Server{Handler: service, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // Shutdown would wait for a fault that hangs
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	ledger := service.Ledger()
	_, _ = fmt.Fprintf(out, "\nExecuted: %d\n", len(ledger))
	for _, e := range ledger {
		line := fmt.Sprintf("%s %q %s %s %s", e.Op, e.Reference, e.ID, e.Amount, e.Currency)
		_, _ = fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	return nil
}

// failedFreeze is an operation that can be canceled or retried.
const failedFreeze = "7e9d3b2a-5c1f-4e6b-8a4d-1b2c3d4e5f6a"

const introduction = `The fake service listens. Its data is made up.

export CARDWIRE_BASE_URL=http://%s/api/v1 CARDWIRE_API_KEY=%s

curl -H "Authorization: Bearer $CARDWIRE_API_KEY" "$CARDWIRE_BASE_URL/cards" -G -d limit=5 -d page=1
curl -H "Authorization: Bearer $CARDWIRE_API_KEY" "$CARDWIRE_BASE_URL/cards/adjustAction" \
  -d client_transaction_id=%s -d type=retry
curl -H "Authorization: Bearer $CARDWIRE_API_KEY" "$CARDWIRE_BASE_URL/remittance/transfer" \
  -H 'Content-Type: application/json' -d '{"merchantOrderNo":"order-1","payoutCurrency":"EUR",` +
	`"transferType":"3","payoutMethod":"1","transferAmount":"25.00"}'
`

// parse returns the address to listen on, and makes the service fail as the flags say.
func parse(out io.Writer, args []string, service *cardwiretest.Service) (string, error) {
	flags := flag.NewFlagSet("fakeservice", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	addr := flags.String("addr", "127.0.0.1:8080", "`address` to listen on; port 0: any that is free")
	public := flags.Bool("any-address", false, "allow an address that other machines can reach")
	flags.Func("fail", "make one request fail, as `OPERATION:KIND[:executed]`; repeatable. Kinds:\n"+
		strings.Join(slices.Sorted(maps.Keys(faults)), ", "), func(value string) error { return fail(service, value) })
	err := flags.Parse(args)
	switch resolved, invalid := net.ResolveTCPAddr("tcp", *addr); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return "", err
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case invalid != nil:
		err = fmt.Errorf("-addr: %w", invalid)
	case !*public && !resolved.IP.IsLoopback(): // everybody knows the key
		err = fmt.Errorf("-addr: %s is not on loopback: add -any-address if other machines are to reach it", *addr)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, errUsage)
	}
	return *addr, nil
}

// faults are the kinds of the flag -fail.
var faults = map[string]cardwiretest.Fault{
	"status":       {Kind: cardwiretest.FaultStatus},
	"html":         {Kind: cardwiretest.FaultHTML},
	"rate-limited": {Kind: cardwiretest.FaultRateLimited},
	"reset":        {Kind: cardwiretest.FaultReset},
	"hang":         {Kind: cardwiretest.FaultHang},
	"late":         {Kind: cardwiretest.FaultLate},
	"truncated":    {Kind: cardwiretest.FaultTruncated},
	"garbage":      {Kind: cardwiretest.FaultGarbage},
	"slow":         {Kind: cardwiretest.FaultSlow, Delay: 10 * time.Second},
	"drift":        {Kind: cardwiretest.FaultDrift},
}

// fail makes one request fail as the value of a flag says.
func fail(service *cardwiretest.Service, value string) (err error) {
	op, kind, _ := strings.Cut(value, ":")
	kind, executed := strings.CutSuffix(kind, ":executed")
	fault, known := faults[kind]
	if !known {
		return fmt.Errorf("there is no kind %q of fault", kind)
	}
	defer func() { // an unknown operation is a mistake in a test, but here only one at the command line
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	fault.Executed = executed
	service.Fail(cardwire.Op(op), fault, 1)
	return nil
}
