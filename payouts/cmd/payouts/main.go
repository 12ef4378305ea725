// Payouts runs the service of package payouts by itself: an HTTP API and a page, with a database of its own.
//
//	payouts -migrate                 # once for each new database and release
//	payouts -identity 0123...        # serves, until it is interrupted
//
// docs/payouts.md explains each step. A Go program imports the package instead.
package main

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // a container has no zones of its own
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go/payouts"
	"github.com/cardwire/cardwire-go/payouts/page"
	"github.com/cardwire/cardwire-go/payouts/sqlite"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func main() {
	// The first interrupt ends the program gracefully, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, os.Stderr, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "payouts:", strings.TrimPrefix(err.Error(), "payouts: "))
		os.Exit(1)
	}
}

const usage = `Payouts submits each of a merchant's orders once, and shows what became of each.
It needs CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY; to listen for other machines
it needs PAYOUTS_PASSWORD, which all users share.`

// settings are what the flags and the environment choose.
type settings struct {
	payouts.Config
	db, listen, password string
	origins              []string // of the page, where a proxy rewrites Host
	migrate, hold        bool
	task                 reconciliation
	level                slog.Level
}

func parse(args []string) (o settings, err error) {
	o.BaseURL, o.APIKey = os.Getenv("CARDWIRE_BASE_URL"), os.Getenv("CARDWIRE_API_KEY")
	o.password = os.Getenv("PAYOUTS_PASSWORD")
	f := flag.NewFlagSet("payouts", flag.ExitOnError)
	f.StringVar(&o.db, "db", "payouts.db", "the `database`: a URL or keyword string of PostgreSQL, or an SQLite file")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8082", "the `address` to listen on")
	f.Func("origins", "of the page behind a proxy that rewrites Host, as in https://shop.example, with commas between", o.trust)
	f.BoolVar(&o.FourEyes, "four-eyes", false, "to send again, release or move takes another person than who decided or held last")
	f.BoolVar(&o.migrate, "migrate", false, "create or upgrade the tables, print the journal's identity, and exit")
	f.BoolVar(&o.hold, "hold", false, "put the journal on hold, as after a restore, and exit; with -by and -why")
	f.StringVar(&o.Identity, "identity", "", "of the journal that must be in the database; \"\": any")
	f.StringVar(&o.Schema, "schema", "", "PostgreSQL's `schema` of all tables (default cardwire)")
	f.BoolVar(&o.SynchronousFailover, "synchronous", false, "a standby that takes over has all that was committed")
	f.StringVar(&o.Account, "account", "", "your `name` for the account, which the page shows")
	f.IntVar(&o.Workers, "workers", 0, "how many orders this replica sends at a time (default 8)")
	f.DurationVar(&o.Timeout, "timeout", 0, "how long a call may take (default 30s)")
	f.DurationVar(&o.LateExecution, "late", 0, "how long after a call the service may still execute it (default 10m)")
	f.DurationVar(&o.PurgeAfter, "purge", 0, "how long after its end an order's request is kept; 0: forever")
	f.Float64Var(&o.Rate, "rate", 0, "requests a second, of all replicas on PostgreSQL together; 0: no limit")
	f.IntVar(&o.Brake, "brake", 0, "send nothing while so many are unresolved (default 20); -1: no limit")
	f.TextVar(&o.level, "log", slog.LevelInfo, "the minimum `level` to log: INFO, WARN or ERROR")
	o.task.flags(f)
	f.Usage = func() {
		_, _ = fmt.Fprintln(f.Output(), usage)
		f.PrintDefaults()
	}
	_ = f.Parse(args) // it exits
	if err := areUTF8(f); err != nil {
		return o, err
	}
	return o, o.check(f.NArg())
}

// trust reads -origins.
func (o *settings) trust(list string) (err error) {
	o.origins = strings.Split(list, ",")
	for _, origin := range o.origins {
		err = errors.Join(err, http.NewCrossOriginProtection().AddTrustedOrigin(origin))
	}
	return err
}

func (o *settings) check(arguments int) error {
	_, port, err := net.SplitHostPort(o.listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case arguments > 0:
		return errors.New("only flags are taken: -help lists them")
	case o.BaseURL == "" || o.APIKey == "":
		return errors.New("set CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY, or try go run ./demo")
	case (o.hold || o.task.apply) && (o.task.by == "" || o.task.why == ""):
		return errors.New("-hold and -apply need -by and -why, for the history")
	case o.migrate, o.hold, o.task.name != "": // nobody is served
	case err != nil:
		return fmt.Errorf("-listen %q must be a host and a port, as in 127.0.0.1:8082", o.listen)
	case len(o.password) < 12 && (o.password != "" || !isLoopback(o.listen)):
		return errors.New("to listen for other machines set PAYOUTS_PASSWORD, of at least 12 bytes, " +
			"and put an https proxy in front")
	case !utf8.ValidString(o.password):
		return errors.New("PAYOUTS_PASSWORD is not in UTF-8, in which browsers send it")
	}
	return nil
}

// areUTF8 names a flag of another encoding, as a terminal may give a name.
func areUTF8(f *flag.FlagSet) (err error) {
	f.Visit(func(one *flag.Flag) {
		if utf8.ValidString(one.Value.String()) {
			return
		}
		err = fmt.Errorf("-%s is not in UTF-8", one.Name)
		if one.Name != "db" { // which may have a password
			err = fmt.Errorf("-%s %q is not in UTF-8", one.Name, one.Value)
		}
	})
	return err
}

// names are what people set here, by the names that payouts.New has for them.
var names = strings.NewReplacer("BaseURL", "CARDWIRE_BASE_URL", "the base URL", "CARDWIRE_BASE_URL",
	"APIKey", "CARDWIRE_API_KEY", "the API key", "CARDWIRE_API_KEY", "WithAccount: name", "-account", "Schema", "-schema",
	"Workers", "-workers", "Timeout", "-timeout", "Rate", "-rate", "LateExecution", "-late", "PurgeAfter", "-purge")

func run(ctx context.Context, out, logTo io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return err
	}
	o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	o.Logger = slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: o.level}))
	db, dialect, err := open(o.db, max(o.Workers, 8)+8)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing uses it any more
	svc, err := payouts.New(db, dialect, o.Config)
	if err != nil {
		return errors.New(names.Replace(err.Error()))
	}
	switch {
	case o.migrate:
		var identity string
		if err = svc.Migrate(ctx); err == nil {
			identity, err = svc.Journal().Identity(ctx)
		}
		if err == nil {
			_, err = fmt.Fprintf(out, "Start it with -identity %s\n", identity)
		}
		return err
	case o.hold:
		return svc.Hold(ctx, o.task.by, o.task.why)
	case o.task.name != "":
		return o.task.run(ctx, svc, out)
	}
	return o.serve(ctx, svc, out, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}

// isPostgreSQL is how a URL or a keyword string of PostgreSQL begins, or continues: pgx reads any keyword.
var isPostgreSQL = regexp.MustCompile(`^postgres(ql)?://|(^|\s)(host|dbname|service)\s*=`)

// open opens the database. A source that is neither is not printed: it may have a password.
func open(source string, connections int) (*sql.DB, sqljournal.Dialect, error) {
	if !strings.Contains(source, "=") && !strings.Contains(source, "://") {
		db, err := sqlite.Open(source)
		return db, sqljournal.SQLite, err
	}
	if !isPostgreSQL.MatchString(source) {
		return nil, 0, errors.New("-db must be a file's name, postgres://user@host/name, or host=db user=shop dbname=shop")
	}
	config, err := pgx.ParseConfig(source)
	if err != nil {
		return nil, 0, errors.New("-db cannot be read: " + whyNot(source))
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, sqljournal.PostgreSQL, nil
}

// whyNot says what is wrong with an address of a database, without its password.
func whyNot(source string) string {
	_, rest, isURL := strings.Cut(source, "://")
	user := rest[:max(strings.LastIndex(rest, "@"), 0)]
	switch {
	case !isURL:
		return "put single quotes around a value with a space, as in password='a b', and \\ before a quote in it"
	case strings.ContainsAny(user, "/?#[]"):
		return "its user or password has one of / ? # [ ], which a URL has as %2F %3F %23 %5B %5D"
	}
	return "it must be as in postgres://user:password@host:5432/name?sslmode=verify-full, with %25 for a %"
}

// serve serves until ctx is done. Calls in progress may then come to their end.
func (o *settings) serve(ctx context.Context, svc *payouts.Service, out io.Writer, metrics http.Handler) error {
	if err := svc.Verify(ctx); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("-listen %q: %w", o.listen, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle("/", page.Handler(svc, func(r *http.Request) string {
		user, _, _ := r.BasicAuth()
		return user
	}, page.WithLogger(o.Logger), page.WithTrustedOrigins(o.origins...)))
	server := &http.Server{
		Handler:     &gate{next: mux, password: o.password, log: o.Logger, failures: rate.NewLimiter(1, 3)},
		ErrorLog:    slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop() // where the server failed
		served <- server.Serve(listener)
	}()
	_, _ = fmt.Fprintf(out, "Open http://%s/ in a browser. Ctrl-C ends it.\n", listener.Addr())
	err = svc.Run(ctx)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 25*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(ending))
	if failure := <-served; !errors.Is(failure, http.ErrServerClosed) {
		return errors.Join(err, failure)
	}
	return err
}

// gate asks for the password, if there is one. Without it only this machine is served: another site may give its
// own name this address, and read the pages as its own.
type gate struct {
	next     http.Handler
	password string
	log      *slog.Logger
	failures *rate.Limiter
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, given, _ := r.BasicAuth()
	isRight := subtle.ConstantTimeCompare([]byte(given), []byte(g.password)) == 1
	switch {
	case g.password == "" && !isLoopback(r.Host):
		http.Error(w, "This host is not served here: open the address that the program printed, "+
			"and let a proxy pass on the Host header.", http.StatusMisdirectedRequest)
	case g.password == "" || r.URL.Path == "/readyz" || isRight && user != "" && utf8.ValidString(user):
		g.next.ServeHTTP(w, r)
	default:
		says := "Sign in with your name and the password."
		if isRight {
			says = "Sign in with your name in UTF-8, or without accents: it is what the history has of you."
		} else if user != "" {
			g.fail(r)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="payouts", charset="UTF-8"`)
		http.Error(w, says, http.StatusUnauthorized)
	}
}

// fail lets who guessed wait for a turn that all who guess share. Whoever knows the password waits for nobody, also
// behind the same proxy. The name is not logged: it may be a password.
func (g *gate) fail(r *http.Request) {
	g.log.WarnContext(r.Context(), "a sign-in failed", "from", r.RemoteAddr)
	ctx, cancel := context.WithTimeout(r.Context(), 15*time.Second)
	defer cancel()
	if g.failures.Wait(ctx) != nil { // there are too many
		<-ctx.Done()
	}
}

// isLoopback reports whether a host, with or without a port, is this machine by any network.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	address, _ := netip.ParseAddr(name) // the zero Addr is no loopback
	return strings.EqualFold(name, "localhost") || address.IsLoopback()
}
