package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"modernc.org/sqlite"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// settings are what the flags and the environment choose.
type settings struct {
	base, key   string        // the service's address, and the key of its API
	source      string        // of the database: a file of SQLite, or the URL of PostgreSQL
	listen      string        // the address
	timeout     time.Duration // of a call
	late        time.Duration // how long after a call the service may still execute it
	giveUpAfter time.Duration // of an order that cannot be sent
	sweepEvery  time.Duration // between two looks for orders without a job
	purgeAfter  time.Duration // after its end what was sent for an order is removed; 0: never
	rate        float64       // requests a second, of all replicas together; 0: any
	brake       int64         // how many unresolved transfers of the journal stop the sending; 0: any
	workers     int           // of this replica
	migrate     bool          // create or upgrade the tables first
	onHold      bool          // send nothing until somebody releases it
	task        task          // instead of serving
	level       slog.Level    // the least that is logged
	tracers     trace.TracerProvider
	options     []cardwire.Option // more of the client: put here what examples/doctor prints
}

// The timeouts are a chain. A call has ended, and can send nothing more, before its
// job's time is up; and the job has ended before it is taken for lost and runs again.
func (s settings) jobTimeout() time.Duration  { return s.timeout * 3 / 2 }
func (s settings) rescueAfter() time.Duration { return s.timeout * 2 }

// service is what the requests, the jobs and the pages need.
type service struct {
	settings
	db      *sql.DB // orders and jobs
	dialect sqljournal.Dialect
	driver  riverdriver.Driver[*sql.Tx]
	journal *sqljournal.Journal
	river   *river.Client[*sql.Tx]
	client  *cardwire.Client
	limiter cardwire.Limiter
	ramp    *rate.Limiter // grows after a pause
	of      string        // the address of the service, in one form
	log     *slog.Logger
	meters  metric.MeterProvider
	metrics http.Handler // what they measure

	digester *cardwire.Client // tells the digest of a transfer, and sends nothing
	paused   atomic.Bool      // as this replica last saw the queue
	troubles atomic.Int64     // calls in a row that did not reach the service
}

// open opens the database, and connects what works on it. Nothing runs yet.
func open(ctx context.Context, set settings, log *slog.Logger) (*service, error) {
	s := &service{settings: set, log: log}
	// The client is made before the database is claimed for its service.
	for _, step := range []func(context.Context) error{
		s.openDatabase, s.openMetrics, s.connect, s.createTables, s.verify, s.openQueue,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// mostConnections is of one replica: PostgreSQL allows 100 by default.
const mostConnections = 36

// openDatabase opens one pool for all: nothing waits for a connection while it has one.
func (s *service) openDatabase(context.Context) (err error) {
	connections := min(s.workers+8, mostConnections)
	if strings.HasPrefix(s.source, "postgres://") || strings.HasPrefix(s.source, "postgresql://") {
		s.dialect = sqljournal.PostgreSQL
		s.db, err = sql.Open("pgx", s.source)
		s.driver = riverdatabasesql.New(s.db)
	} else {
		s.dialect, connections = sqljournal.SQLite, 1 // one at a time writes
		err = s.openSQLite()
	}
	if err != nil {
		return err
	}
	s.db.SetMaxOpenConns(connections)
	s.db.SetMaxIdleConns(connections)
	s.limiter, s.ramp = s.newLimiter(), rate.NewLimiter(rate.Inf, 1)
	s.journal, err = sqljournal.New(s.db, s.dialect)
	return err
}

func (s *service) openSQLite() error {
	path := url.URL{Path: filepath.ToSlash(s.source)}
	// River's driver compares times as strings: all must be of one form, and in UTC.
	connector, err := sqlite.NewConnector("file:" + path.EscapedPath() + "?_pragma=busy_timeout(5000)" +
		"&_pragma=journal_mode(WAL)&_txlock=immediate&_time_format=sqlite&_timezone=UTC")
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(preparing{connector})
	s.driver, err = sqliteQueue(s.db)
	return err
}

// createTables creates or upgrades all tables, where that is a step of the deployment. Of two
// that do this at once, one waits for the other's transaction, which has the lock alone. SQLite
// has no such lock: there one finds halfway what the other made, and begins again.
func (s *service) createTables(ctx context.Context) (err error) {
	if s.migrate && s.dialect == sqljournal.PostgreSQL {
		return s.transaction(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(5821034417)`); err != nil {
				return err
			}
			return s.createOnce(ctx)
		})
	}
	for i := 0; s.migrate && i < 5; i++ {
		if err = s.createOnce(ctx); err == nil {
			return nil
		}
	}
	return err
}

func (s *service) createOnce(ctx context.Context) error {
	migrator, err := s.migrator()
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err == nil {
		err = s.journal.Migrate(ctx)
	}
	if err != nil {
		return err
	}
	return s.transaction(ctx, func(tx *sql.Tx) error {
		_, err1 := tx.ExecContext(ctx, schemaOf(s.dialect)) // the view needs the journal's table
		_, err2 := tx.ExecContext(ctx, `UPDATE cardwire_intents_journal SET service = $1 WHERE service = ''`, s.of)
		return cmp.Or(err1, err2)
	})
}

// verify reports that the database is not this program's, or has the orders of another
// service: an empty one would forget what was sent, and the fake service would take real
// orders.
func (s *service) verify(ctx context.Context) (err error) {
	if s.dialect == sqljournal.SQLite {
		_, err = os.Stat(s.source) // the driver would create it
	}
	if err == nil {
		err = s.journal.Verify(ctx)
	}
	if errors.Is(err, sqljournal.ErrSchema) || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: if the database or the release is new, start once with -migrate", err)
	}
	if err != nil {
		return err
	}
	var of string
	var watched bool
	err = s.db.QueryRowContext(ctx, `SELECT service, (`+watches[s.dialect]+`) FROM cardwire_intents_journal`).Scan(&of, &watched)
	switch {
	case err != nil:
	case !watched:
		err = errors.New("the orders' triggers on cardwire_intents are missing: start once with -migrate")
	case of != s.of:
		err = fmt.Errorf("the orders in this database are for %s, and not for %s: "+
			"set CARDWIRE_BASE_URL and CARDWIRE_API_KEY, or use another database", of, s.of)
	}
	return err
}

func (s *service) migrator() (*rivermigrate.Migrator[*sql.Tx], error) {
	return rivermigrate.New(s.driver, &rivermigrate.Config{Logger: s.log})
}

// openQueue gives River its settings, which docs/payouts.md explains, and its tables as they are.
func (s *service) openQueue(ctx context.Context) error {
	migrator, err := s.migrator()
	if err != nil {
		return err
	}
	tables, err := migrator.Validate(ctx, nil)
	if err != nil {
		return err
	}
	if !tables.OK {
		return errors.New("the queue's tables are of an older release: start once with -migrate")
	}
	// River deletes a queue that nothing has used for a day, and why it is paused with it: at a start it may
	// do so before it uses the queue itself.
	_, err = s.db.ExecContext(ctx, `UPDATE river_queue SET updated_at = $1 WHERE name = $2`, time.Now().UTC(), everyOrder)
	if err != nil {
		return err
	}
	s.river, err = river.NewClient(s.driver, s.queue())
	return err
}

func (s *service) queue() *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &submitter{service: s})
	return &river.Config{
		Workers:              workers,
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.workers}},
		JobTimeout:           s.jobTimeout(),
		RescueStuckJobsAfter: s.rescueAfter(),
		FetchCooldown:        2 * time.Millisecond,
		FetchPollInterval:    100 * time.Millisecond,
		PollOnly:             true,
		Logger:               slog.New(warnings{s.log.Handler()}),
	}
}

// connect makes the client. Every write is in the journal before it is sent.
func (s *service) connect(context.Context) error {
	observer, err := cardwireotel.NewObserver( //nolint:contextcheck // it calls nothing yet
		cardwireotel.WithTracerProvider(s.tracers), cardwireotel.WithMeterProvider(s.meters))
	if err != nil {
		return err
	}
	opts := append([]cardwire.Option{
		cardwire.WithUserAgent("cardwire-payouts/1"),
		cardwire.WithTimeout(s.timeout),
		cardwire.WithProfile(func(p *cardwire.Profile) { p.LateExecution = s.late }),
		cardwire.WithJournal(s.journal),
		cardwire.WithObserver(observer),
		cardwire.WithObserver(cardwire.Observer{
			JournalError: func(ctx context.Context, c cardwire.CallInfo, err error) {
				s.log.ErrorContext(ctx, "the journal did not record a result", "order", c.Reference, "error", err)
			},
		}),
	}, s.options...)
	if s.client, err = cardwire.New(s.base, s.key, opts...); err != nil {
		return err
	}
	base, _ := url.Parse(s.base) // which the client could read
	s.of = strings.TrimRight(base.String(), "/")
	s.digester, err = cardwire.New(s.base, s.key, append(slices.Clip(s.options), cardwire.WithJournal(digests{}))...)
	return err
}

// close closes the database.
func (s *service) close() (err error) {
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	if s.db != nil {
		err = s.db.Close()
	}
	return err
}

// start runs the queue, and returns what stops it: calls in progress come to their end.
func (s *service) start(ctx context.Context) (stop func(context.Context) error, err error) {
	ctx = context.WithoutCancel(ctx)
	if err := s.river.Start(ctx); err != nil {
		return nil, err
	}
	keeping, cancel := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		s.keep(keeping)
	}()
	return func(ctx context.Context) error {
		cancel()
		err := s.river.Stop(ctx)
		<-kept // a test of the way has its own timeout
		return err
	}, nil
}

// warnings leaves out what is less.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}
