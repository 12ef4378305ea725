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

func main() { os.Exit(status()) }

// contradictedStatus is the exit status that tells a script to look.
const contradictedStatus = 3

func status() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	healthy, err := run(ctx, os.Stdout, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "doctor:", err)
		return 1
	case !healthy:
		return contradictedStatus
	}
	return 0
}

func run(ctx context.Context, out io.Writer, args []string) (healthy bool, err error) {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	secrets := flags.Bool("secrets", false, "also read a card's secrets, which the service may record")
	timeout := flags.Duration("timeout", 5*time.Minute, "how long the examination may take")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if flags.NArg() > 0 {
		return false, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	d := &doctor{connect: connect, profile: cardwire.DefaultProfile(), secrets: *secrets}
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
	if len(d.settings) == 0 {
		b.WriteString("\nNothing is to be set: cardwire.DefaultProfile agrees with the service as far as can be seen.\n")
	} else {
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
