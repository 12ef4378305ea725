// Backoffice is a small merchant backend: pages for the people who look after
// cards and transfers, rendered here and usable without JavaScript.
//
//	go run -C examples/backoffice .
//
// starts it beside the fake service, and prints its address and a password. With
// CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY set it works on
// that service. It then wants to know who may sign in: BACKOFFICE_USER, and
// BACKOFFICE_PASSWORD_HASH, a hash by bcrypt, which "htpasswd -nBC 12 NAME" prints
// after the colon.
//
// What has a number is recorded before it is sent, in SQLite or, with -postgres,
// in PostgreSQL, so that neither a second click nor a crash sends a transfer or a
// freeze twice. A failed operation may be retried or cancelled again, since it may
// fail again, but not while it is undecided what came of the last time. An image
// has no number: two clicks are two uploads.
package main

import (
	"cmp"
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
	"github.com/cardwire/cardwire-go/sqljournal"
)

func main() { os.Exit(status()) }

func status() int {
	// The first interrupt ends the program in order; a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	defer stop()
	switch err := run(ctx, os.Stdout, os.Stderr, os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "backoffice:", err)
		return 1
	}
	return 0
}

// settings are what the flags say.
type settings struct {
	listen, journal, postgres string
	https                     bool
	lose                      int
	level                     slog.Level
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("backoffice", flag.ContinueOnError)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8080", "the `address` to listen on")
	flags.BoolVar(&s.https, "https", false, "browsers come through a proxy that speaks https; needed to listen for other machines")
	flags.StringVar(&s.journal, "journal", "", "the SQLite `file` that records what is sent; with the fake service a temporary one, else backoffice.db")
	flags.StringVar(&s.postgres, "postgres", "", "record what is sent in PostgreSQL at this `URL`; the password may stand in PGPASSWORD or .pgpass")
	flags.IntVar(&s.lose, "lose", 0, "the fake service executes the next `n` transfers and loses the answers")
	flags.TextVar(&s.level, "log", slog.LevelInfo, "the least `level` to log: DEBUG shows each request to the service")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, nil
}

func run(ctx context.Context, out, logTo io.Writer, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: s.level}))
	if os.Getenv("CARDWIRE_BASE_URL") == "" && os.Getenv("CARDWIRE_API_KEY") == "" {
		return withFake(ctx, out, logger, s)
	}
	who, err := accountFromEnv()
	if err != nil {
		return err
	}
	s.journal = cmp.Or(s.journal, "backoffice.db")
	return open(ctx, out, logger, s, who, nil)
}

// withFake works on a service in this process, for which it invents a password.
func withFake(ctx context.Context, out io.Writer, logger *slog.Logger, s settings) error {
	fake := cardwiretest.New(cardwiretest.WithCards(64))
	fake.AddFailedOperation(failedTopUp, "transfer_in")
	fake.AddFailedOperation(failedFreeze, "freeze")
	fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, s.lose)
	dir, err := os.MkdirTemp("", "backoffice")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s.journal = cmp.Or(s.journal, filepath.Join(dir, "journal.db"))
	password := strings.ToLower(rand.Text()[:12])
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "This is the fake service: no money moves. Sign in as demo with the password %s.\n", password); err != nil {
		return err
	}
	return open(ctx, out, logger, s, account{"demo", hash}, fake)
}

// open puts everything together, and serves pages until ctx is done. fake is nil
// where the service is a real one.
func open(ctx context.Context, out io.Writer, logger *slog.Logger, s settings, who account, fake *cardwiretest.Service) error {
	db, journal, err := openJournal(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // what was recorded is on the disk
	client, err := connect(journal, logger, fake)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	o := &office{client: client, journal: journal, log: logger, door: newDoor(who, s.https), fake: fake != nil}
	return serve(ctx, out, logger, s, o.handler())
}

// openJournal opens the database that remembers what was sent. It must outlive
// this process: what it forgets may be sent again.
func openJournal(ctx context.Context, s settings) (*sql.DB, *sqljournal.Journal, error) {
	driver, source, dialect := "pgx", s.postgres, sqljournal.PostgreSQL
	if s.postgres == "" {
		path := url.URL{Path: filepath.ToSlash(s.journal)}
		driver, source, dialect = "sqlite", "file:"+path.EscapedPath()+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)", sqljournal.SQLite
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, err
	}
	journal, err := sqljournal.New(db, dialect)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
		defer cancel()
		err = journal.EnsureSchema(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, journal, nil
}

func connect(journal *sqljournal.Journal, logger *slog.Logger, fake *cardwiretest.Service) (*cardwire.Client, error) {
	opts := []cardwire.Option{
		cardwire.WithUserAgent("cardwire-backoffice/1"),
		// What examples/doctor advises belongs here.
		cardwire.WithProfile(cardwire.DefaultProfile()),
		cardwire.WithMaskedCards(), // no page and no log can show what is not here
		cardwire.WithJournal(careful{journal}),
		cardwire.WithLogger(logger),
		cardwire.WithObserver(cardwire.DriftLogger(logger)),
		cardwire.WithObserver(failureLogger(logger)),
	}
	if fake == nil {
		return cardwire.NewFromEnv(opts...)
	}
	inProcess := &http.Client{Transport: fake}
	return cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append(opts, cardwire.WithHTTPClient(inProcess))...)
}

// failureLogger logs what people will ask about: calls that failed, and results
// that the journal did not take. It leaves out a failed call's error: the service's
// message in it may quote a name or an account.
func failureLogger(logger *slog.Logger) cardwire.Observer {
	return cardwire.Observer{
		CallEnd: func(ctx context.Context, c cardwire.CallInfo, r cardwire.CallResult) {
			if r.Err != nil {
				logger.WarnContext(ctx, "call failed", "operation", c.Op, "reference", c.Reference,
					"outcome", r.Outcome.String(), "status", r.HTTPStatus, "code", r.Code)
			}
		},
		JournalError: func(ctx context.Context, c cardwire.CallInfo, err error) {
			logger.ErrorContext(ctx, "the journal did not record a result: it shows as undecided",
				"operation", c.Op, "reference", c.Reference, "error", err)
		},
	}
}

// How long the database may take at the start, a browser with its request, and
// the server to end. A page has the time that its calls to the service have.
const (
	schemaTimeout = 15 * time.Second
	headerTimeout = 10 * time.Second
	bodyTimeout   = 2 * time.Minute
	pageTimeout   = uploadTimeout + 10*time.Second
	idleTimeout   = time.Minute
	endTimeout    = writeTimeout + 10*time.Second
)

// serve serves until ctx is done. What is being sent then may come to its end.
func serve(ctx context.Context, out io.Writer, logger *slog.Logger, s settings, pages http.Handler) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	if address, ok := listener.Addr().(*net.TCPAddr); !s.https && (!ok || !address.IP.IsLoopback()) {
		return errors.New("to listen for other machines put a proxy that speaks https in front, and give -https")
	}
	if _, err := fmt.Fprintf(out, "Open http://%s/ in a browser.\n", listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{
		Handler: pages, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: pageTimeout, IdleTimeout: idleTimeout,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err = server.Shutdown(ending)
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, server.Close())
}
