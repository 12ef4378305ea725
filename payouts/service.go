// Package payouts submits each of a merchant's orders once, from the merchant's own database. Submit
// writes an order, its row in the journal and its job in the caller's transaction; Run sends the orders, in
// any number of replicas; and Changed is told what became of each. For what people have to decide there are
// methods, and package payouts/page is a web page on these.
//
//	svc, err := payouts.New(db, sqljournal.PostgreSQL, config)
//	if err != nil {
//		return err
//	}
//	if _, err := svc.Submit(ctx, tx, order); err != nil { // in the checkout's own transaction
//		return err
//	}
//	mux.Handle("/payouts/", signIn(page.Handler(svc, who)))
//	return svc.Run(ctx)
//
// [Service.Migrate] creates the tables, as a step of the deployment. The importer opens the database, with
// a driver of its own: in PostgreSQL with 8 connections more than Workers, and SQLite with
// package payouts/sqlite. docs/payouts.md explains each step.
package payouts

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/sqljournal"
)

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
	limiter    cardwire.Limiter // of Config.Rate
	ramp       *rate.Limiter    // of this replica: slow after a pause, then without a limit
	base       string           // the address of the service, as the journal has it
	log        *slog.Logger
	marked     chan struct{} // something has changed

	running  atomic.Bool
	mu       sync.Mutex
	troubles map[string]bool // orders that the service did not take since the last that it took or refused for good
	key      keyless
	turnless time.Time    // since when no order has had a turn; zero: the last one had
	held     time.Time    // since when the journal is on hold, as was logged; maintain alone uses it
	mute     sync.Once    // logs that nobody is told
	looked   atomic.Int64 // when this replica last looked where the journal is
}

// New returns a Service on db, a database of the dialect. It does not access the database.
func New(db *sql.DB, dialect sqljournal.Dialect, c Config) (*Service, error) {
	if err := c.complete(dialect); err != nil {
		return nil, err
	}
	s := &Service{
		config: c, db: db, dialect: dialect, log: c.Logger, marked: make(chan struct{}, 1),
		words: wordsOf(dialect, c.Schema), ramp: rate.NewLimiter(rate.Inf, 1), troubles: map[string]bool{},
	}
	s.limiter = s.newLimiter()
	for _, open := range []func() error{s.openJournal, s.connect, s.observeDelays, s.openQueue} {
		if err := open(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Service) openJournal() (err error) {
	opts := []sqljournal.Option{sqljournal.WithIdentity(s.config.Identity)}
	if s.dialect == sqljournal.PostgreSQL {
		opts = append(opts, sqljournal.WithTable(JournalTable(s.config.Schema)))
	}
	if s.config.SynchronousFailover {
		opts = append(opts, sqljournal.WithSynchronousFailover())
	}
	if s.config.SynchronousNormal {
		opts = append(opts, sqljournal.WithSynchronousNormal())
	}
	s.journal, err = sqljournal.New(s.db, s.dialect, opts...)
	return err
}

func (s *Service) openQueue() (err error) {
	if s.dialect == sqljournal.PostgreSQL {
		s.driver = riverdatabasesql.New(s.db)
	} else if s.driver, err = sqliteQueue(s.db); err != nil {
		return err
	}
	s.river, err = river.NewClient(s.driver, s.queue())
	return err
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
