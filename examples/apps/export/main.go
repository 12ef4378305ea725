// Export writes all cards to a CSV file.
//
//	go run -C examples/apps ./export -out /tmp/cards.csv
//
// It reads several pages at a time and shows how far it has come. Card numbers
// are masked unless -reveal is given; CVVs are never written. The file appears
// when it is whole: until then its rows are in a file beside it, FILE.part. An
// error or an interrupt leaves that one, and the next run goes on from there.
//
// It talks to the service of CARDWIRE_BASE_URL, which ends in /api/v1, with the
// key of CARDWIRE_API_KEY, and without them to the fake one.
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

func main() { os.Exit(status()) }

func status() int {
	// The first interrupt ends the export in order; a second one ends the program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	defer stop()
	switch err := run(ctx, os.Stdout, os.Stderr, os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "export:", err)
		return 1
	}
	return 0
}

// settings are what the flags say.
type settings struct {
	out      string
	reveal   bool
	limit    int
	prefetch int
	verbose  bool
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	flags.StringVar(&s.out, "out", "cards.csv", "the `file` to write; one that exists is replaced")
	flags.BoolVar(&s.reveal, "reveal", false, "write full card numbers: the file then falls under PCI DSS")
	flags.IntVar(&s.limit, "limit", 100, "cards a page")
	flags.IntVar(&s.prefetch, "prefetch", 4, "pages read ahead")
	flags.BoolVar(&s.verbose, "v", false, "log every request to standard error")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, nil
}

func run(ctx context.Context, out, progress io.Writer, args []string) error {
	s, err := parse(args)
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
	totals, err := export(ctx, client, s, f, progress)
	if err != nil {
		return err
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
	if os.Getenv("CARDWIRE_BASE_URL") != "" || os.Getenv("CARDWIRE_API_KEY") != "" {
		return cardwire.NewFromEnv(opts...)
	}
	fake := &http.Client{Transport: cardwiretest.New(cardwiretest.WithCards(950))}
	return cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append(opts, cardwire.WithHTTPClient(fake))...)
}

// export reads the cards that f does not have yet, and finishes it. After an
// error f keeps what it has, and the page to go on from.
func export(ctx context.Context, client *cardwire.Client, s settings, f *part, progress io.Writer) (*totals, error) {
	params := cardwire.ListCardsParams{Limit: s.limit, Page: f.state.NextPage}
	first, err := client.ListCards(ctx, cardwire.ListCardsParams{Limit: s.limit})
	if err != nil {
		return nil, err
	}
	bar := newBar(progress, first.Total, f.totals.cards)
	for card, err := range client.AllCards(ctx, params, cardwire.WithPrefetch(s.prefetch)) {
		if err != nil {
			return nil, f.keep(err)
		}
		if err := f.write(&card); err != nil {
			return nil, err
		}
		_ = bar.Add(1) // a bar that cannot be drawn is no reason to stop
	}
	_ = bar.Finish()
	return f.totals, f.finish()
}

func newBar(w io.Writer, total, done int) *progressbar.ProgressBar {
	bar := progressbar.NewOptions(max(total, 1),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetVisibility(isTerminal(w)),
		progressbar.OptionSetDescription("cards"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)
	_ = bar.Set(min(done, total))
	return bar
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
