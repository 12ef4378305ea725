// Doctor finds out which of the client's assumptions are right for a service, and says what to
// set where they are wrong. Run it first with a new key: it only reads, in some eighty small requests.
//
//	CARDWIRE_BASE_URL=https://... CARDWIRE_API_KEY=... go run ./examples/doctor
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

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

const help = `Doctor finds out which of the client's assumptions are right for a service, and says
what to set where they are not. It only reads. Environment:

	CARDWIRE_BASE_URL  the service, as in https://api.example.com/api/v1
	CARDWIRE_API_KEY   its API key
	                   without the two: the fake service of package cardwiretest
	SSL_CERT_FILE      the certificates to trust, as behind a proxy with a CA of its own

The exit status is 3 where an assumption is contradicted.

Flags:
`

func main() {
	// The first interrupt ends the examination gracefully, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(status(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}

// errUsage is for mistakes at the command line, errContradicted for what the report says.
var errUsage, errContradicted = errors.New("-help lists the flags"), errors.New("an assumption is contradicted")

// status runs the program and returns its exit status.
func status(ctx context.Context, out, errs io.Writer, args []string) int {
	err := run(ctx, out, args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintln(errs, "doctor:", err)
	switch {
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errContradicted):
		return 3
	case ctx.Err() != nil:
		return 130 // as shells report an interrupt
	}
	return 1
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	secrets := flags.Bool("secrets", false, "also read a card's secrets, which the service may record")
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
	d := &doctor{profile: cardwire.DefaultProfile(), drift: map[cardwire.Op][]string{}}
	if err := d.examine(ctx, *secrets); err != nil {
		return err
	}
	return d.report(out)
}

// isFake reports whether the environment names no service.
func isFake() bool {
	return os.Getenv("CARDWIRE_BASE_URL") == "" && os.Getenv("CARDWIRE_API_KEY") == ""
}

// connect makes a client of the service that the environment names, or of the fake one.
func connect(opts ...cardwire.Option) (*cardwire.Client, error) {
	if !isFake() {
		return cardwire.NewFromEnv(opts...)
	}
	fake := cardwire.WithHTTPClient(&http.Client{Transport: cardwiretest.New()})
	return cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append(opts, fake)...)
}

// report prints what was found, and the option that sets the Profile accordingly.
func (d *doctor) report(out io.Writer) (err error) {
	var b strings.Builder
	if isFake() {
		b.WriteString("This is the fake service: set CARDWIRE_BASE_URL and CARDWIRE_API_KEY to examine yours.\n\n")
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "WHAT\tASSUMED\tSTATE\tWHAT TO DO")
	for _, f := range d.findings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.what, f.assumed, f.state, f.advice)
		if f.state == contradicted {
			err = errContradicted
		}
	}
	_ = table.Flush() // a Builder takes everything
	if len(d.settings) == 0 {
		b.WriteString("\nNothing is to be set: as far as can be read, cardwire.DefaultProfile is right.\n")
	} else {
		b.WriteString("\nGive cardwire.New this option:\n\n\tcardwire.WithProfile(func(p *cardwire.Profile) {\n\t\t" +
			strings.Join(d.settings, "\n\t\t") + "\n\t})\n")
	}
	b.WriteString("\nWhat no read can tell, docs/ask-your-provider.md asks.\n")
	if _, failed := io.WriteString(out, b.String()); failed != nil {
		return failed
	}
	return err
}
