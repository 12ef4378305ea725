// Payouts is a service that submits each of a merchant's orders once. It takes orders
// over HTTP, keeps them in a table of its own, and calls the service from a queue of jobs;
// a page shows what became of each.
//
//	CARDWIRE_BASE_URL=https://.../api/v1 CARDWIRE_API_KEY=... go run -C examples/apps ./payouts -migrate
//
// starts it, with SQLite in payouts.db, and prints the address of the page. With
// -db postgres://... any number of replicas may run. The program beside it,
// go run -C examples/apps ./payouts/demo, runs it against the fake service. docs/payouts.md
// explains each step.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"

	"github.com/cardwire/cardwire-go"
)

func main() {
	// The first interrupt ends the program gracefully, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, os.Stderr, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "payouts:", err)
		os.Exit(1)
	}
}

const usage = `Payouts submits each of a merchant's orders once, and shows what became of each.

It uses the service of CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY: both
are required. PAYOUTS_PASSWORD, which all users share, is needed to listen for
other machines.

`

func parse(args []string) (o settings, err error) {
	o.base, o.key = os.Getenv("CARDWIRE_BASE_URL"), os.Getenv("CARDWIRE_API_KEY")
	o.giveUpAfter, o.tracers = giveUpAfter, otel.GetTracerProvider()
	flags := flag.NewFlagSet("payouts", flag.ExitOnError)
	flags.StringVar(&o.source, "db", "payouts.db",
		"the `database`: postgres://..., or an SQLite file, for one machine")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8082", "the `address` to listen on")
	flags.BoolVar(&o.migrate, "migrate", false,
		"create or upgrade the tables first: once for each new database and release")
	flags.BoolVar(&o.onHold, "hold", false,
		"send nothing from any replica until somebody releases the hold: for the first start after a restore")
	flags.IntVar(&o.workers, "workers", 8, "how many orders this replica sends at a time")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second,
		"how long a call may take; its job may take 1.5 times as long, and runs again after twice as long")
	flags.DurationVar(&o.late, "late", cardwire.DefaultProfile().LateExecution,
		"how long after a call the service may still execute it: until then \"not executed\" is not accepted")
	flags.DurationVar(&o.sweepEvery, "sweep", time.Minute, "how often to look for orders whose job is lost")
	flags.DurationVar(&o.purgeAfter, "purge", 0,
		"how long after its end an order's request, which is personal data, is kept; "+
			"its number stays closed; 0: forever")
	flags.Float64Var(&o.rate, "rate", 0, "requests per second, of all replicas on PostgreSQL together; 0: no limit")
	flags.Int64Var(&o.brake, "brake", 20, "send nothing while the journal has this many unresolved transfers; 0: no limit")
	flags.TextVar(&o.level, "log", slog.LevelInfo, "the minimum `level` to log: INFO, WARN or ERROR")
	o.task.flags(flags)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	_ = flags.Parse(args) // it exits
	err = ignored(flags)
	switch {
	case err != nil:
	case flags.NArg() > 0 || o.workers < 1 || o.timeout < time.Millisecond || o.late < 0 ||
		o.sweepEvery < time.Second || o.rate < 0 || o.brake < 0 || o.purgeAfter < 0:
		err = errors.New("only flags are taken; -workers and -timeout must be greater than zero, " +
			"-sweep at least 1s, and nothing less than zero: -help lists them")
	case o.rate > 0 && o.timeout < 2*patience: // a turn may be that far away, and the job's time includes it
		err = fmt.Errorf("-timeout must be at least %v with -rate", 2*patience)
	case o.base == "" || o.key == "":
		err = errors.New("set CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY; " +
			"to try it without a service: go run ./payouts/demo")
	}
	return o, err
}

const serving = "a start without -reconcile and -closed"

// partners are those of which flags need one: without it they would be ignored.
var partners = []struct{ flags, need []string }{
	{[]string{"hold"}, []string{serving}},
	{[]string{"from", "until", "status", "strays"}, []string{"-reconcile", serving}}, // the page begins with them
	{[]string{"exported", "out", "apply"}, []string{"-reconcile"}},
	{[]string{"again", "anyway"}, []string{"-apply"}},
	{[]string{"by", "why"}, []string{"-reconcile", "-closed"}},
}

// ignored reports a flag that would be: whoever gave it expects something else. A task of an empty
// name would be too, as of a variable that is not set, and the program would serve.
func ignored(flags *flag.FlagSet) (err error) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		given["-"+f.Name] = f.Value.String() != "false"
		if (f.Name == "reconcile" || f.Name == "closed") && f.Value.String() == "" {
			err = fmt.Errorf("-%s needs the name of a file", f.Name)
		}
	})
	given[serving] = !given["-reconcile"] && !given["-closed"]
	for _, p := range partners {
		for _, name := range p.flags {
			if given["-"+name] && !slices.ContainsFunc(p.need, func(other string) bool { return given[other] }) {
				err = fmt.Errorf("-%s would be ignored: it needs %s", name, strings.Join(p.need, " or "))
			}
		}
	}
	return err
}

func run(ctx context.Context, out, logTo io.Writer, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	s, err := open(ctx, o, slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: o.level})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if o.task.file != "" || o.task.closed != "" {
		return o.task.run(ctx, s, out)
	}
	return s.serve(ctx, out, os.Getenv("PAYOUTS_PASSWORD"))
}

const leastPassword = 12

// serve serves until ctx is done. Calls in progress may then come to their end: one that
// is cut off is one more to ask about.
func (s *service) serve(ctx context.Context, out io.Writer, password string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the server does, unless an error comes first
	switch {
	case password == "" && !isLoopback(listener.Addr().String()):
		return errors.New("to listen for other machines set PAYOUTS_PASSWORD, " +
			"and put an https proxy in front")
	case password != "" && utf8.RuneCountInString(password) < leastPassword:
		return fmt.Errorf("PAYOUTS_PASSWORD must have at least %d characters", leastPassword)
	}
	detached := context.WithoutCancel(ctx)
	if s.onHold {
		if err := s.hold(ctx); err != nil {
			return err
		}
	}
	stopQueue, err := s.start(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		_, _ = fmt.Fprintln(out, "Stopping: waiting for calls in progress.")
		ending, cancel := context.WithTimeout(detached, s.rescueAfter())
		defer cancel()
		stopped <- stopQueue(ending)
	})
	server := &http.Server{
		Handler: s.routes(password), ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	}
	_, _ = fmt.Fprintf(out, "Open http://%s/ in a browser. Ctrl-C ends it.\n", listener.Addr())
	err = serveUntil(ctx, server, listener, requestTimeout+server.ReadTimeout)
	stop() // where the server failed
	return errors.Join(err, <-stopped)
}
