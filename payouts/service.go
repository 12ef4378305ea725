// Package payouts submits each of a merchant's orders once, from the merchant's own database. Submit
// writes an order, its row in the journal and its job in the caller's transaction; Run works the jobs, in
// any number of replicas; and Changed tells what became of each. What people do about them is a method; package
// payouts/page shows it to them.
//
//	svc, err := payouts.New(db, sqljournal.PostgreSQL, payouts.Config{BaseURL: url, APIKey: key, Changed: changed})
//	...
//	order, err := svc.Submit(ctx, tx, params) // in the checkout's own transaction
//	...
//	mux.Handle("/payouts/", signIn(page.Handler(svc, who)))
//	err = svc.Run(ctx)
//
// [Service.Migrate] creates the tables, as a step of the deployment. The importer opens the database, with
// a driver of its own: in PostgreSQL with 8 connections more than Workers, and SQLite with
// package payouts/sqlite. docs/payouts.md explains each step.
package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Config has the settings of a [Service]. BaseURL is required, and APIKey without a key source; the zero value of any
// other field is its default.
type Config struct {
	// BaseURL is that of cardwire.New.
	BaseURL string
	// APIKey is the key of the API; "": Options have cardwire.WithKeySource.
	APIKey string
	// Account is the merchant's own name of the account, as in cardwire.WithAccount.
	Account string
	// Options are more options of the client: a profile, TLS, a logger. The journal is this package's. Timeout, Account and
	// LateExecution are set here or there, as WithTimeout, WithAccount and Profile.LateExecution; in both places they
	// must be the same.
	Options []cardwire.Option
	// Schema is PostgreSQL's schema of all tables: the journal's, the queue's and those of this package; "": cardwire. Each
	// account, tenant and environment has one of its own, or a file of SQLite, of which Schema must be "".
	Schema string
	// Identity names the journal that must be in the database, as in sqljournal.WithIdentity; "": the one
	// that is found. It refuses what nothing else does: a new, empty database.
	Identity string
	// SynchronousFailover says that a standby that takes over has all that was committed, as in
	// sqljournal.WithSynchronousFailover: otherwise the journal is on hold then.
	SynchronousFailover bool
	// SynchronousNormal accepts a file of SQLite that may lose what was committed last in a loss of power, as in
	// sqljournal.WithSynchronousNormal.
	SynchronousNormal bool
	// Workers is how many orders a replica sends at a time; 0: 8.
	Workers int
	// Timeout is how long a call may take, and a Changed; 0: 30 s.
	Timeout time.Duration
	// Rate is how many requests a second all replicas send together, on SQLite this one; 0: no limit. With
	// a rate Timeout must be at least 20 s.
	Rate float64
	// LateExecution is how long after a call the service may still execute it: until then "not executed" is
	// not accepted; 0: 10 min, negative: it never executes late.
	LateExecution time.Duration
	// FourEyes says that to send an order again, and to release a hold or say that it was a move, takes another person
	// than who decided last about the order, by its history, or who holds.
	FourEyes bool
	// PurgeAfter is how long after its end an order's request, which is personal data, is kept; 0: forever.
	PurgeAfter time.Duration
	// Brake is the number of unresolved orders at which nothing more is sent; 0: 20, negative: no limit.
	Brake int
	// Logger gets a line for each step of an order, with the service's words but without what they quote of the
	// request; an error of Changed is logged as it is. nil: nothing is logged.
	Logger *slog.Logger
	// MeterProvider measures the calls, the journal and the orders while Run runs, and always since when no replica
	// has; nil: OpenTelemetry's.
	MeterProvider metric.MeterProvider
	// TracerProvider traces from Submit to the call; nil: OpenTelemetry's.
	TracerProvider trace.TracerProvider
	// Changed is told that an order is submitted, failed, canceled, paid, returned or unresolved, or that
	// its ServiceID was corrected: at least once, in any replica, whoever changed it. It runs in a
	// transaction in which the order is locked, so that what it writes in tx and what was told are one; the
	// last call has the last state. If it returns an error, or takes longer than Timeout, the transaction
	// is rolled back, and it is called again, after pauses of up to ten minutes, while other orders go on.
	// On SQLite it may use the database by tx alone, and takes milliseconds: calls wait for it. Once a replica
	// with Changed has run, those without leave all changes to it, also while it is away; what changes before
	// that is told to nobody.
	Changed func(ctx context.Context, tx *sql.Tx, o Order) error
}

// Format keeps the key out of what fmt and slog print.
func (c Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "payouts.Config(%s)", c.BaseURL) }

// The timeouts are a chain. A call has ended, and can send nothing more, before its
// job's time is up; and the job has ended before it is taken for lost and runs again.
func (s *Service) jobTimeout() time.Duration  { return s.config.Timeout * 3 / 2 }
func (s *Service) rescueAfter() time.Duration { return s.config.Timeout * 2 }

// Service submits orders. It is safe for concurrent use; Run runs once at a time.
type Service struct {
	config     Config
	db         *sql.DB
	dialect    sqljournal.Dialect
	words      *strings.Replacer // of the dialect, and the names of the tables
	statements sync.Map          // in the dialect, by their text
	driver     riverdriver.Driver[*sql.Tx]
	journal    *sqljournal.Journal
	river      *river.Client[*sql.Tx]
	client     *cardwire.Client
	limiter    cardwire.Limiter
	ramp       *rate.Limiter // grows after a pause
	base       string        // the address of the service, as the journal has it
	log        *slog.Logger
	marked     chan struct{} // something has changed

	running  atomic.Bool
	mu       sync.Mutex
	troubles map[string]bool // orders that did not reach the service since the last that did
	key      keyless
	turnless time.Time    // since when no order has had a turn; zero: the last one had
	held     time.Time    // since when the journal is on hold, as was logged; maintain alone uses it
	mute     sync.Once    // that nobody is told was logged
	looked   atomic.Int64 // when this replica last looked where the journal is
}

// schemaName is what the queue takes; of SQLite it is empty.
var schemaName = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]{0,45})?$`)

const defaultSchema = "cardwire"

// New returns a Service on db, a database of the dialect. It does not access the database.
func New(db *sql.DB, dialect sqljournal.Dialect, c Config) (*Service, error) {
	c.Workers, c.Brake = cmp.Or(c.Workers, 8), cmp.Or(c.Brake, 20)
	if err := c.settle(); err != nil {
		return nil, err
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	wrong := cmp.Or(check.Duration("Timeout", c.Timeout), check.Duration("LateExecution", c.LateExecution),
		check.Duration("PurgeAfter", c.PurgeAfter))
	switch {
	case wrong != nil:
		return nil, fmt.Errorf("payouts: %w", wrong)
	case c.Workers < 0:
		return nil, fmt.Errorf("payouts: Workers is %d: it must be at least 1, or 0 for 8", c.Workers)
	case c.Rate < 0:
		return nil, fmt.Errorf("payouts: Rate is %g: it must be greater than zero, or 0 for no limit", c.Rate)
	case c.Rate > 0 && c.Timeout < 2*maxTurnWait: // a turn may be that far away, and the job's time includes it
		return nil, errors.New("payouts: with Rate, Timeout must be at least " + (2 * maxTurnWait).String())
	}
	table := sqljournal.WithTable(sqljournal.DefaultTable)
	if dialect == sqljournal.PostgreSQL {
		c.Schema = cmp.Or(c.Schema, defaultSchema)
		table = sqljournal.WithTable(JournalTable(c.Schema))
	}
	if !schemaName.MatchString(c.Schema) || c.Schema != "" && dialect == sqljournal.SQLite {
		return nil, fmt.Errorf("payouts: Schema %q must be at most 46 letters, digits and underscores, and not begin with a digit; "+
			"with SQLite it must be empty", c.Schema)
	}
	s := &Service{
		config: c, db: db, dialect: dialect, log: c.Logger, marked: make(chan struct{}, 1),
		words: wordsOf(dialect, c.Schema), ramp: rate.NewLimiter(rate.Inf, 1), troubles: map[string]bool{},
	}
	s.limiter = s.newLimiter()
	var err error
	opts := []sqljournal.Option{table, sqljournal.WithIdentity(c.Identity)}
	if c.SynchronousFailover {
		opts = append(opts, sqljournal.WithSynchronousFailover())
	}
	if c.SynchronousNormal {
		opts = append(opts, sqljournal.WithSynchronousNormal())
	}
	if s.journal, err = sqljournal.New(db, dialect, opts...); err == nil {
		err = s.connect()
	}
	if err == nil {
		err = s.observeDelays()
	}
	if err != nil {
		return nil, err
	}
	if dialect == sqljournal.PostgreSQL {
		s.driver = riverdatabasesql.New(db)
	} else if s.driver, err = sqliteQueue(db); err != nil {
		return nil, err
	}
	s.river, err = river.NewClient(s.driver, s.queue())
	return s, err
}

// settle sets what Options may set too, and refuses what is set there to something else.
func (c *Config) settle() error {
	const unset = check.DefaultLateExecution + 1 // a profile has always one: nobody means this
	marked := cardwire.WithProfile(func(p *cardwire.Profile) { p.LateExecution = unset })
	client, err := cardwire.New(c.BaseURL, c.APIKey, append([]cardwire.Option{marked}, c.Options...)...)
	if err != nil {
		return err
	}
	o := client.Settings()
	isLate, late := o.LateExecution != unset, max(c.LateExecution, 0)
	differ := func(name string, own, other any) error {
		return fmt.Errorf("payouts: %s is %v, and Options set it to %v: set it in one place", name, own, other)
	}
	switch {
	case c.Timeout != 0 && o.Timeout != 0 && c.Timeout != o.Timeout:
		return differ("Timeout", c.Timeout, o.Timeout)
	case c.Account != "" && o.Account != "" && c.Account != o.Account:
		return differ("Account", strconv.Quote(c.Account), strconv.Quote(o.Account))
	case c.LateExecution != 0 && isLate && late != o.LateExecution:
		return differ("LateExecution", late, o.LateExecution)
	}
	c.Timeout, c.Account = cmp.Or(c.Timeout, o.Timeout, check.DefaultTimeout), cmp.Or(c.Account, o.Account)
	switch {
	case isLate:
		c.LateExecution = o.LateExecution
	case c.LateExecution == 0:
		c.LateExecution = check.DefaultLateExecution
	default:
		c.LateExecution = late
	}
	return nil
}

// queue gives River its settings.
func (s *Service) queue() *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &submitter{Service: s})
	return &river.Config{
		Schema:               s.config.Schema,
		Workers:              workers,
		Queues:               map[string]river.QueueConfig{queue: s.queueConfig()},
		JobTimeout:           s.jobTimeout(),
		RescueStuckJobsAfter: s.rescueAfter(),
		FetchCooldown:        2 * time.Millisecond,
		FetchPollInterval:    100 * time.Millisecond,
		PollOnly:             true,
		Logger:               slog.New(warnings{s.log.Handler()}),
	}
}

// connect makes the client. Every write is in the journal before it is sent.
func (s *Service) connect() error {
	observer, err := cardwireotel.NewObserver(
		cardwireotel.WithTracerProvider(s.config.TracerProvider), cardwireotel.WithMeterProvider(s.config.MeterProvider))
	if err != nil {
		return err
	}
	opts := append(slices.Clone(s.config.Options),
		cardwire.WithObserver(observer),
		cardwire.WithObserver(cardwire.Observer{
			JournalError: func(ctx context.Context, c cardwire.CallInfo, err error) {
				s.log.ErrorContext(ctx, "the journal failed", "order", c.Reference, "error", err)
			},
		}),
		cardwire.WithJournal(s.journal),
		cardwire.WithTimeout(s.config.Timeout),
		cardwire.WithAccount(s.config.Account),
		cardwire.WithProfile(func(p *cardwire.Profile) { p.LateExecution = s.config.LateExecution }),
	)
	s.client, err = cardwire.New(s.config.BaseURL, s.config.APIKey, opts...)
	if err == nil {
		s.base = s.client.Settings().Service
		s.config.APIKey = "" // so that nothing prints it
	}
	return err
}

// Journal returns the journal, which other programs that send transfers of the account use too.
func (s *Service) Journal() *sqljournal.Journal { return s.journal }

// Run sends orders until ctx is done, and returns when the calls in progress have ended, which takes up to
// twice Timeout: one that is cut off is one more to ask about. Any number of replicas may run. An error
// that it returns at once is that of [Service.Verify], or says that Run is running already.
func (s *Service) Run(ctx context.Context) error {
	if !s.running.CompareAndSwap(false, true) {
		return errors.New("payouts: Run is running already: each replica has a Service of its own")
	}
	defer s.running.Store(false)
	err := s.Verify(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	gauges, err := s.observe()
	if err != nil {
		return err
	}
	defer func() { _ = gauges() }() // nothing is measured any more
	defer s.client.CloseIdleConnections()
	detached := context.WithoutCancel(ctx)
	if err := s.river.Start(detached); err != nil {
		return err
	}
	var group sync.WaitGroup
	group.Go(func() { s.noteWork(ctx) })
	group.Go(func() { s.maintain(ctx) })
	group.Go(func() { s.tellAlways(ctx) })
	<-ctx.Done()
	ending, cancel := context.WithTimeout(detached, s.rescueAfter())
	defer cancel()
	err = s.river.Stop(ending)
	group.Wait() // a probe has its own timeout
	return errors.Join(err, s.journal.Flush(ending))
}

// warnings passes on warnings and errors alone: River logs each job below.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}
