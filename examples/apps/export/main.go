// Export writes all cards to a CSV file.
//
//	go run -C examples/apps ./export -out /tmp/cards.csv
//
// It reads from the service of CARDWIRE_BASE_URL, which ends in /api/v1, with the key of
// CARDWIRE_API_KEY; try it with examples/fakeservice. Card numbers are masked, and CVVs are not
// written. The file appears when it is complete, and replaces an existing one. Until then its
// rows are in a file beside it, FILE.part: after an error, an interrupt or a crash, the next
// run resumes there. It keeps the pages that it reads ahead, and the ID of each card, in memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/cardwire/cardwire-go"
)

const usage = `Export writes all cards to a CSV file, with masked numbers. The file appears when it is
whole; until then its rows are in FILE.part, where the next run resumes.

It needs CARDWIRE_BASE_URL, as in https://api.example.com/api/v1, and CARDWIRE_API_KEY.

`

func main() {
	// The first interrupt ends the export gracefully, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(status(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}

// errUsage is for mistakes at the command line.
var errUsage = errors.New("-help lists the flags")

// status runs the program and returns its exit status.
func status(ctx context.Context, out, errs io.Writer, args []string) int {
	err := run(ctx, out, errs, args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintln(errs, "export:", err)
	switch {
	case errors.Is(err, errUsage):
		return 2
	case ctx.Err() != nil:
		return 130 // as shells report an interrupt
	}
	return 1
}

// settings are what the flags say.
type settings struct {
	out      string
	limit    int
	prefetch int
}

func parse(out io.Writer, args []string) (s settings, err error) {
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	flags.StringVar(&s.out, "out", "cards.csv", "the `file` to write")
	flags.IntVar(&s.limit, "limit", 100, "cards per page")
	flags.IntVar(&s.prefetch, "prefetch", 4, "pages to read ahead")
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return s, err
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && s.limit < 1:
		err = errors.New("-limit must be at least 1")
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", err, errUsage)
	}
	return s, err
}

func run(ctx context.Context, out, errs io.Writer, args []string) error {
	s, err := parse(out, args)
	if err != nil {
		return err
	}
	client, err := cardwire.NewFromEnv(
		cardwire.WithUserAgent("cardwire-export/1"),
		// The cardwire.WithProfile that examples/doctor prints belongs here, with TrustResponses
		// off: a page of more than -limit cards must be an error.
		cardwire.WithLogger(slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))),
		cardwire.WithMaskedCards(),
	)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	f, err := openPart(s.out)
	if err != nil {
		return err
	}
	defer f.close()
	if err := export(ctx, client, s, f, terminal(errs)); err != nil {
		return fmt.Errorf("%d cards are in %s, where the next run resumes: %w", len(f.seen), f.name, err)
	}
	_, err = fmt.Fprintf(out, "%d cards are in %s\n", len(f.seen), s.out)
	return err
}

// export appends the cards that f does not have yet, and finishes it.
func export(ctx context.Context, client *cardwire.Client, s settings, f *part, progress io.Writer) error {
	// Each card on a page before this one is in f, which has no card twice.
	params := cardwire.ListCardsParams{Page: len(f.seen)/s.limit + 1, PageSize: s.limit}
	for page, err := range client.AllPages(ctx, params, cardwire.WithPrefetch(s.prefetch)) {
		if err != nil {
			return err
		}
		if err := f.add(page.Cards); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(progress, "\r%d of %d cards ", len(f.seen), page.Total)
	}
	_, _ = fmt.Fprintln(progress)
	return f.finish()
}

// terminal is w if a person is watching: progress in a log file helps nobody.
func terminal(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return w
		}
	}
	return io.Discard
}
