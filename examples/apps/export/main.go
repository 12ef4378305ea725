// Export writes all cards to a CSV file.
//
//	go run -C examples/apps ./export -out /tmp/cards.csv
//
// It reads several pages at a time and shows how far it has come. Card numbers
// are masked unless -reveal is given; CVVs are never written. The file appears
// when it is whole: until then its rows are in a file beside it, FILE.part. An
// error, an interrupt or a crash leaves that one, and the next run resumes there.
//
// It talks to the service of CARDWIRE_BASE_URL, which ends in /api/v1, with the
// key of CARDWIRE_API_KEY, or to the fake one if -fake says so. What one of the two
// wrote the other does not overwrite.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/schollz/progressbar/v3"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

const help = `Export writes all cards to a CSV file, with masked numbers. The file appears when it
is whole; until then its rows are in FILE.part, where the next run resumes.

	go run -C examples/apps ./export -out /tmp/cards.csv

Environment:
	CARDWIRE_BASE_URL  the service, as in https://api.example.com/api/v1
	CARDWIRE_API_KEY   its API key

Flags:
`

func main() {
	// The first interrupt ends the export in order; a second one ends the program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(status(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}

// errUsage is for mistakes at the command line.
var errUsage = errors.New("-help lists the flags")

// status runs the program and returns its exit status.
func status(ctx context.Context, out, progress io.Writer, args []string) int {
	err := run(ctx, out, progress, args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(progress, "export:", err)
		return 2
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(progress, "export: interrupted:", err)
		return 130 // as shells report an interrupt
	}
	_, _ = fmt.Fprintln(progress, "export:", err)
	return 1
}

// settings are what the flags say.
type settings struct {
	out      string
	fake     bool
	reveal   bool
	limit    int
	prefetch int
	verbose  bool
}

func parse(out io.Writer, args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	flags.StringVar(&s.out, "out", "cards.csv", "the `file` to write; a former export is replaced")
	flags.BoolVar(&s.fake, "fake", false, "export the made-up cards of the fake service")
	flags.BoolVar(&s.reveal, "reveal", false, "write full card numbers: the file is then in the scope of PCI DSS")
	flags.IntVar(&s.limit, "limit", 100, "cards per page")
	flags.IntVar(&s.prefetch, "prefetch", 4, "pages to read ahead")
	flags.BoolVar(&s.verbose, "v", false, "log every request to standard error")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return s, err
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && !s.fake && os.Getenv("CARDWIRE_BASE_URL") == "" && os.Getenv("CARDWIRE_API_KEY") == "":
		err = errors.New("set CARDWIRE_BASE_URL and CARDWIRE_API_KEY, or export made-up cards with -fake")
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w", err, errUsage)
	}
	return s, nil
}

func run(ctx context.Context, out, progress io.Writer, args []string) error {
	s, err := parse(out, args)
	if err != nil {
		return err
	}
	client, err := connect(s, progress)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	f, err := openPart(s)
	if err != nil {
		return err
	}
	defer f.close()
	if f.state.NextPage > 1 {
		_, _ = fmt.Fprintf(progress, "Resuming at page %d: %d cards are in %s.\n", f.state.NextPage, f.totals.cards, f.name())
	}
	totals, err := export(ctx, client, f, progress)
	if err != nil {
		return err
	}
	if s.fake {
		_, _ = fmt.Fprintln(out, "The cards are made up: they are those of the fake service.")
	}
	return totals.print(out)
}

// connect makes a client that never sees a full number unless that is asked for.
func connect(s settings, log io.Writer) (*cardwire.Client, error) {
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	opts := []cardwire.Option{
		cardwire.WithUserAgent("cardwire-export/1"),
		// The cardwire.WithProfile that examples/doctor prints belongs here.
		cardwire.WithLogger(logger),
	}
	if !s.reveal {
		opts = append(opts, cardwire.WithMaskedCards())
	}
	if !s.fake {
		return cardwire.NewFromEnv(opts...)
	}
	fake := &http.Client{Transport: cardwiretest.New(cardwiretest.WithCards(950))}
	return cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append(opts, cardwire.WithHTTPClient(fake))...)
}

// export reads the pages that f does not have yet, and finishes it. After an error f
// keeps what it has, and the page to resume from.
func export(ctx context.Context, client *cardwire.Client, f *part, progress io.Writer) (*totals, error) {
	params := cardwire.ListCardsParams{Limit: f.settings.limit, Page: f.state.NextPage}
	bar := newBar(progress)
	defer func() { _ = bar.Clear() }()
	for page, err := range client.AllPages(ctx, params, cardwire.WithPrefetch(f.settings.prefetch)) {
		if err != nil {
			return nil, f.left(err)
		}
		if err := f.add(page.Cards); err != nil {
			return nil, err
		}
		bar.ChangeMax(max(page.Total, f.totals.cards, 1))
		_ = bar.Set(f.totals.cards) // a bar that cannot be drawn is no reason to stop
	}
	return f.totals, f.finish()
}

func newBar(w io.Writer) *progressbar.ProgressBar {
	return progressbar.NewOptions(1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetVisibility(isTerminal(w)),
		progressbar.OptionSetDescription("cards"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)
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
