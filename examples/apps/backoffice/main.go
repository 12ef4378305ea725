// Backoffice is a small merchant backend: pages for the people who look after
// cards and transfers, rendered here and usable without JavaScript.
//
//	go run -C examples/apps ./backoffice
//
// starts it beside the fake service, and prints its address and a password. With
// CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY set it works on
// that service. It then wants to know who may sign in: BACKOFFICE_USER, and
// BACKOFFICE_PASSWORD_HASH, which "htpasswd -nBC 12 NAME" prints after the colon. The
// first start with a new journal needs -migrate, which creates its tables.
//
// What has a number is recorded before it is sent, so that neither a second click
// nor a crash sends a transfer or a freeze twice. A failed operation, which may fail
// again, may be retried or canceled again, but not while the last time is unresolved.
// An image has no number: two clicks are two uploads. What a page offers after a write
// follows cardwire.NextStep alone.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	"golang.org/x/crypto/bcrypt"
	_ "modernc.org/sqlite" // and that of SQLite

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/examples/apps/internal/web"
	"github.com/cardwire/cardwire-go/sqljournal"
)

const help = `Backoffice is a small merchant backend: pages to look after cards and transfers.

	go run -C examples/apps ./backoffice

Environment:
	CARDWIRE_BASE_URL         the service, as in https://api.example.com/api/v1
	CARDWIRE_API_KEY          its API key
	BACKOFFICE_USER           who may sign in
	BACKOFFICE_PASSWORD_HASH  what "htpasswd -nBC 12 NAME" prints after the colon
	                          without the first two: the fake service, and a password that is printed

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
	err := run(ctx, out, errs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil:
		_, _ = fmt.Fprintln(errs, "backoffice: stopped")
		return 0
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(errs, "backoffice:", err)
		return 2
	}
	_, _ = fmt.Fprintln(errs, "backoffice:", err)
	return 1
}

func run(ctx context.Context, out, logTo io.Writer, args []string) error {
	flags := flag.NewFlagSet("backoffice", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // status prints an error once
	listen := flags.String("listen", "127.0.0.1:8081", "the `address` to listen on")
	host := flags.String("https", "", "the `host` by which browsers come, through a proxy that speaks https, passes on the Host header and sets X-Forwarded-For; needed to listen for other machines")
	file := flags.String("journal", "backoffice.db", "the SQLite `file` that records what is sent; the fake service has a temporary one")
	postgres := flags.String("postgres", "", "record what is sent in PostgreSQL at this `URL`; the password may be in PGPASSWORD or .pgpass")
	migrate := flags.Bool("migrate", false, "create or upgrade the tables of the journal first: once for each new journal and release; the fake service's has them")
	lose := flags.Int("lose", 0, "the fake service executes the next `n` transfers and loses the responses")
	var level slog.Level
	flags.TextVar(&level, "log", slog.LevelInfo, "the least `level` to log: DEBUG shows each request to the service")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && strings.Contains(*host, "/"):
		err = fmt.Errorf("-https must be a host such as office.example, not %q", *host)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, errUsage)
	}

	who, err := accountFromEnv()
	var fake *cardwiretest.Service // nil: the service is a real one
	if os.Getenv("CARDWIRE_BASE_URL") == "" && os.Getenv("CARDWIRE_API_KEY") == "" {
		fake, who, err = demonstrate(out, *lose)
		*migrate = true
		*file = filepath.Join(os.TempDir(), "backoffice-"+rand.Text()+".db")
		defer func() { _ = os.Remove(*file) }()
	}
	if err != nil {
		return err
	}
	db, journal, err := openJournal(ctx, *file, *postgres, *migrate)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // what was recorded is on the disk
	logger := slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: level}))
	names := cardwire.DefaultProfile()
	correct(&names)
	client, err := connect(journal, logger, names, fake)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	o := &office{client: client, journal: journal, log: logger, profile: names, account: who, host: *host, fake: fake != nil}
	return o.serve(ctx, out, *listen)
}

// demonstrate starts a service in this process, and invents somebody who may sign in.
func demonstrate(out io.Writer, lose int) (*cardwiretest.Service, account, error) {
	fake := cardwiretest.New(cardwiretest.WithCards(64))
	fake.AddFailedOperation(failedTopUp, "transfer_in")
	fake.AddFailedOperation(failedFreeze, "freeze")
	fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, lose)
	password := strings.ToLower(rand.Text()[:12])
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	_, _ = fmt.Fprintf(out, "This is the fake service: no money moves. Sign in as demo with the password %s.\n", password)
	return fake, account{"demo", hash}, err
}

// openJournal opens the database that remembers what was sent. It must outlive
// this process: what it forgets may be sent again.
func openJournal(ctx context.Context, file, postgres string, migrate bool) (*sql.DB, *sqljournal.Journal, error) {
	path := url.URL{Path: filepath.ToSlash(file)}
	driver, source, dialect := "sqlite", "file:"+path.EscapedPath()+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)", sqljournal.SQLite
	if postgres != "" {
		driver, source, dialect = "pgx", postgres, sqljournal.PostgreSQL
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, err
	}
	journal, err := sqljournal.New(db, dialect)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		if migrate {
			err = journal.Migrate(ctx)
		} else {
			err = journal.Verify(ctx) // an empty database would forget what was sent
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, journal, nil
}

// correct is where the statements belong that examples/doctor prints. Each name that
// they add is one more filter for cards.
func correct(*cardwire.Profile) {}

// connect makes the client. It logs writes that failed, and why the journal did not take
// a result.
func connect(journal *sqljournal.Journal, logger *slog.Logger, names cardwire.Profile, fake *cardwiretest.Service) (*cardwire.Client, error) {
	opts := []cardwire.Option{
		cardwire.WithUserAgent("cardwire-backoffice/1"),
		cardwire.WithProfile(func(p *cardwire.Profile) { *p = names }),
		cardwire.WithMaskedCards(), // no page and no log can show what is not here
		cardwire.WithJournal(&careful{Journal: journal}),
		cardwire.WithLogger(logger),
		cardwire.WithObserver(cardwire.Observer{JournalError: func(ctx context.Context, c cardwire.CallInfo, err error) {
			logger.ErrorContext(ctx, "the journal did not record a result: the reference is unresolved",
				"operation", c.Op, "reference", c.Reference, "error", err)
		}}),
	}
	if fake == nil {
		return cardwire.NewFromEnv(opts...)
	}
	opts = append(opts, cardwire.WithHTTPClient(&http.Client{Transport: fake}))
	return cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, opts...)
}

// serve serves until ctx is done. What is being sent then may come to its end.
func (o *office) serve(ctx context.Context, out io.Writer, address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%w: -listen chooses another port", err)
	}
	defer func() { _ = listener.Close() }()
	open := "https://" + o.host
	if o.host == "" {
		open = "http://" + listener.Addr().String()
	}
	if o.host == "" && !web.IsLoopback(listener.Addr().String()) {
		return errors.New("to listen for other machines put a proxy that speaks https in front, and give its host by -https")
	}
	_, _ = fmt.Fprintf(out, "Open %s/ in a browser.\n", open)
	server := &http.Server{
		Handler: o.routes(), ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: bodyTimeout, WriteTimeout: uploadTimeout + 10*time.Second, IdleTimeout: time.Minute,
	}
	return web.Serve(ctx, server, listener, writeTimeout+10*time.Second)
}
