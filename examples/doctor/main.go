// Doctor is to be run first with a new key: it finds out which of the client's
// assumptions hold for the service, and says what to set where they do not.
//
//	CARDWIRE_BASE_URL=https://... CARDWIRE_API_KEY=... go run ./examples/doctor
//
// It only reads: some eighty small requests, most of them only where a name is
// not the assumed one. Without the two variables it examines the fake service of
// package cardwiretest. Its exit status is 3 where an assumption is contradicted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

const help = `Doctor finds out which of the client's assumptions are right for a service, and says
what to set where they are not. It only reads.

	CARDWIRE_BASE_URL=https://... CARDWIRE_API_KEY=... go run ./examples/doctor

Environment:
	CARDWIRE_BASE_URL  the service, as in https://api.example.com/api/v1
	CARDWIRE_API_KEY   its API key
	                   without the two: the fake service of package cardwiretest

The exit status is 3 where an assumption is contradicted.

Flags:
`

func main() {
	// The first interrupt ends the examination in order, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(status(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}

// contradictedStatus is the exit status that tells a script to look.
const contradictedStatus = 3

// errUsage is for mistakes at the command line.
var errUsage = errors.New("-help lists the flags")

// status runs the program and returns its exit status.
func status(ctx context.Context, out, errs io.Writer, args []string) int {
	healthy, err := run(ctx, out, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(errs, "doctor:", err)
		return 2
	case err != nil && ctx.Err() != nil:
		_, _ = fmt.Fprintln(errs, "doctor: interrupted")
		return 130 // as shells report an interrupt
	case err != nil:
		_, _ = fmt.Fprintln(errs, "doctor:", err)
		return 1
	case !healthy:
		return contradictedStatus
	}
	return 0
}

func run(ctx context.Context, out io.Writer, args []string) (healthy bool, err error) {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	secrets := flags.Bool("secrets", false, "also read a card's secrets, which the service may record")
	timeout := flags.Duration("timeout", 5*time.Minute, "how long the examination may take")
	err = flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return false, err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", err, errUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	d := &doctor{connect: connect, baseURL: os.Getenv("CARDWIRE_BASE_URL"), profile: cardwire.DefaultProfile(), secrets: *secrets}
	if err := d.examine(ctx); err != nil {
		return false, err
	}
	return d.healthy(), d.report(out)
}

// connect makes a client of the service that the environment names, or of the
// fake one.
func connect(opts ...cardwire.Option) (*cardwire.Client, error) {
	if os.Getenv("CARDWIRE_BASE_URL") != "" || os.Getenv("CARDWIRE_API_KEY") != "" {
		return cardwire.NewFromEnv(opts...)
	}
	fake := cardwire.WithHTTPClient(&http.Client{Transport: cardwiretest.New()})
	return cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append(opts, fake)...)
}

// report prints what was found, and the option that sets the Profile accordingly.
func (d *doctor) report(out io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "WHAT\tASSUMED\tSTATE\tWHAT TO DO")
	for _, f := range d.findings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.what, f.assumed, f.state, f.advice)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case d.obstacle != nil:
		b.WriteString("\nNothing else can be checked before that: " + d.obstacle.Error() + "\n")
	case len(d.settings) == 0:
		b.WriteString("\nNothing is to be set: cardwire.DefaultProfile agrees with the service as far as can be seen.\n")
	default:
		b.WriteString("\nGive cardwire.New this option:\n\n" + option(d.settings) + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// option returns the Go source of the settings, as gofmt would have it.
func option(settings []string) string {
	const begin, end = "\tcardwire.WithProfile(func(p *cardwire.Profile) {", "})"
	if len(settings) == 1 {
		return begin + " " + settings[0] + " " + end
	}
	return begin + "\n\t\t" + strings.Join(settings, "\n\t\t") + "\n\t" + end
}
