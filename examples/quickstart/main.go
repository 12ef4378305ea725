// Quickstart is a merchant's day: every operation of the service, and one mishap.
//
//	go run ./examples/quickstart
//
// starts the fake service of package cardwiretest on this machine, and talks to
// it over real HTTP. With CARDWIRE_BASE_URL, which ends in /api/v1, and
// CARDWIRE_API_KEY set it talks to that service instead, and only reads. With
// the flag -write it also changes things there: it freezes a card and sends money.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

const help = `Quickstart is a merchant's day: every operation of the service, and one response that
is lost.

	go run ./examples/quickstart

Environment:
	CARDWIRE_BASE_URL  the service, as in https://api.example.com/api/v1
	CARDWIRE_API_KEY   its API key
	                   without the two: the fake service of package cardwiretest

Flags:
`

func main() {
	// The first interrupt ends the day in order, a second one at once.
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
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(errs, "quickstart:", err)
		return 2
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(errs, "quickstart: interrupted")
		return 130 // as shells report an interrupt
	}
	_, _ = fmt.Fprintln(errs, "quickstart:", err)
	return 1
}

// timeout bounds the day. Each call has a bound of its own: see
// cardwire.WithTimeout.
const timeout = 2 * time.Minute

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	write := flags.Bool("write", false,
		"freeze a card, retry and cancel operations, upload an image and send money, on the service of CARDWIRE_BASE_URL")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, errUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if os.Getenv("CARDWIRE_BASE_URL") == "" && os.Getenv("CARDWIRE_API_KEY") == "" {
		return withFake(ctx, out)
	}
	return withService(ctx, out, *write)
}

// withService talks to the service that the environment names.
func withService(ctx context.Context, out io.Writer, write bool) error {
	client, err := cardwire.NewFromEnv()
	if err != nil {
		return fmt.Errorf("CARDWIRE_BASE_URL and CARDWIRE_API_KEY: %w", err)
	}
	defer client.CloseIdleConnections()
	d := &day{
		client: client, write: write,
		cancelID: failedTopUp, retryID: failedFreeze,
		orderNo: "order-" + rand.Text(),
	}
	return d.live(ctx, out)
}

const preface = `A merchant's day, against the fake service. CARDWIRE_BASE_URL and
CARDWIRE_API_KEY name another, on which only -write changes anything.

`

// withFake talks to the fake service, on which everything may be tried.
func withFake(ctx context.Context, out io.Writer) error {
	if _, err := io.WriteString(out, preface); err != nil {
		return err
	}
	service := cardwiretest.New()
	service.AddFailedOperation(failedTopUp, "transfer_in")
	service.AddFailedOperation(failedFreeze, "freeze")

	baseURL, stop, err := serve(ctx, service)
	if err != nil {
		return err
	}
	defer stop()
	client, err := cardwire.New(baseURL, cardwiretest.DefaultKey)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	d := &day{
		client: client, write: true, fake: service,
		cancelID: failedTopUp, retryID: failedFreeze,
		freezeID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01", orderNo: "order-2025-0001",
	}
	return d.live(ctx, out)
}

// The card operations that failed, as far as the fake service is concerned.
// Another one does not know them, and refuses.
const (
	failedTopUp  = "0c5b7a1e-2f4d-4c8a-9b3e-6d1f8a7c2e50"
	failedFreeze = "7e9d3b2a-5c1f-4e6b-8a4d-1b2c3d4e5f6a"
)

// serve serves the service on a port of this machine until stop is called.
func serve(ctx context.Context, service http.Handler) (baseURL string, stop func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: service, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends when stop is called
	}()
	stop = func() {
		_ = server.Close()
		<-served
	}
	return "http://" + listener.Addr().String() + "/api/v1", stop, nil
}
