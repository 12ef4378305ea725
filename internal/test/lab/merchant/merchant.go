package merchant

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Task is what one merchant process does. It ends when the queue is empty.
type Task struct {
	Bases   map[string]string // the base URL of each kind of fault
	Kinds   []string          // those that a call may meet, each as often as it is in the list
	Desk    string            // support's URL
	Table   string            // where the orders are
	Journal *Place            // nil: there is no journal
	Shard   int               // the messages that this process takes first
	Workers int
	Seed    uint64
	Client  string // "cardwire", or one of the clients to compare with

	RetryErrors bool // of those: an error means StepRetry, and not StepFail

	Timeout time.Duration // of a call
	Grace   time.Duration // how long after SendBy "not found" is not believed
	Lease   time.Duration // after which a message is delivered again
	Limit   int           // how often an order is retried
}

// Place is where a journal is.
type Place struct {
	Driver, Source string
	Dialect        sqljournal.Dialect
	Table          string
}

func (p *Place) open() (*sql.DB, *sqljournal.Journal, error) {
	db, err := sql.Open(p.Driver, p.Source)
	if err != nil {
		return nil, nil, err
	}
	if p.Dialect == sqljournal.SQLite {
		db.SetMaxOpenConns(2)
	}
	journal, err := sqljournal.New(db, p.Dialect, sqljournal.WithTable(p.Table))
	return db, journal, err
}

// merchant is a process of the merchant's.
type merchant struct {
	Task
	table   *table
	journal *sqljournal.Journal // nil: none
	client  client
	desk    desk
}

// client is all that the merchant knows of a client: a call, and what to do next.
type client interface {
	call(ctx context.Context, m message, kind string, meanwhile func()) advice
	close()
}

// Run is the life of a merchant process.
func (t Task) Run(ctx context.Context) (err error) {
	m := &merchant{Task: t, desk: desk{t.Desk}}
	if m.table, err = openTable(t.Table); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.table.close()) }()
	if t.Journal != nil {
		db, journal, openErr := t.Journal.open()
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		m.journal = journal
	} else if err := m.table.recover(ctx); err != nil {
		return err
	}
	if m.client, err = m.newClient(); err != nil {
		return err
	}
	defer m.client.close()
	return m.run(ctx)
}

func (m *merchant) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	queue := make(chan message)
	var workers sync.WaitGroup
	for range m.Workers {
		workers.Go(func() {
			for msg := range queue {
				if err := m.handle(ctx, msg); err != nil {
					stop(err)
				}
			}
		})
	}
	workers.Go(func() {
		if err := m.support(ctx); err != nil {
			stop(err)
		}
	})
	err := m.deliver(ctx, queue)
	close(queue)
	stop(nil)
	workers.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// pollEvery is how often the queue is looked at, and supportEvery the list of what
// is unresolved.
const (
	pollEvery    = 20 * time.Millisecond
	supportEvery = 300 * time.Millisecond
)

// deliver hands messages to the workers until there are none.
func (m *merchant) deliver(ctx context.Context, queue chan<- message) error {
	for {
		messages, err := m.table.lease(ctx, m.Shard, 2*m.Workers, m.Lease)
		if err != nil {
			return err
		}
		for _, msg := range messages {
			select {
			case queue <- msg:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if len(messages) > 0 {
			continue
		}
		if empty, err := m.table.isEmpty(ctx); empty || err != nil {
			return err
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// luck is drawn for each delivery, and is the same in every run.
func (m *merchant) luck(msg message) *rand.Rand {
	return rand.New(rand.NewPCG(m.Seed, uint64(msg.ID)<<16+uint64(msg.Deliveries))) //nolint:gosec // no secret
}

// handle is a worker's part: call, and do what the step says.
func (m *merchant) handle(ctx context.Context, msg message) error {
	luck := m.luck(msg)
	a, err := m.submit(ctx, msg, luck)
	if err != nil {
		return err
	}
	if a.step == cardwire.StepRetry && !a.none && msg.Tries >= m.Limit {
		a.step = cardwire.StepFail
	}
	if a.step == cardwire.StepFail {
		switch err := m.void(ctx, msg); {
		case errors.Is(err, cardwire.ErrDuplicateIntent):
			a.step = cardwire.StepWait // another worker was faster: the next call tells how it ended
		case err != nil: // the journal's database is away
			a.step, a.after = cardwire.StepWait, supportEvery
		}
	}
	a.after = max(a.after, time.Duration(msg.Tries+1)*25*time.Millisecond)
	if a.step == cardwire.StepReconcile {
		a.after = supportEvery
	}
	var reborn *message
	if !msg.Late && m.Client == clientCardwire && luck.IntN(4) == 0 {
		reborn = &message{Body: bodies[luck.IntN(len(bodies))]}
	}
	return m.table.record(ctx, msg, a, reborn, m.Timeout+m.Grace+time.Duration(luck.IntN(2000))*time.Millisecond)
}

// submit calls. With a journal the merchant asks nobody before. Without one it asks
// its own table, since the client takes a call after an unknown one for a decision.
func (m *merchant) submit(ctx context.Context, msg message, luck *rand.Rand) (advice, error) {
	if m.journal == nil {
		if may, err := m.table.take(ctx, msg.Reference, m.Client == clientCardwire); err != nil || !may {
			return advice{none: true, after: supportEvery}, err
		}
	}
	var sent atomic.Bool
	begun := time.Now()
	a := m.client.call(ctx, msg, m.Kinds[luck.IntN(len(m.Kinds))], func() {
		if !msg.Double || m.journal != nil {
			return // with one, two messages are two clicks
		}
		// The call cannot end before it has a connection, but by its deadline.
		second := m.client.call(ctx, msg, "down", func() {})
		sent.Store(second.step != cardwire.StepWait && time.Since(begun) < m.Timeout)
	})
	if sent.Load() {
		return a, fmt.Errorf("%s: the second of two clicks at once was not told to wait", msg.Reference)
	}
	return a, ctx.Err()
}

// void closes a reference before its order is failed. A final refusal has closed it
// already; a request that was invalid, or retried to the limit, has not.
func (m *merchant) void(ctx context.Context, msg message) error {
	if m.journal == nil {
		return nil
	}
	return m.journal.Void(ctx, cardwire.Intent{Op: operation, Reference: msg.Reference}, "merchant", "the order is failed")
}

const (
	operation      = "CreateTransfer"
	clientCardwire = "cardwire"
)

// bodies are those of messages: some were never what the customer ordered.
var bodies = []string{asOrdered, "other", "invalid"}

const asOrdered = "as ordered"

func params(msg message) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: msg.Reference, PayoutCurrency: "EUR", TransferType: cardwire.TransferTypeC2C,
		PayoutMethod: cardwire.PayoutMethodBankTransfer, TransferAmount: amounts[msg.Body],
		SenderFirstName: "Ada", SenderLastName: "Example", SenderCountry: "DE",
		ReceiverNativeFirstName: "Bo", ReceiverNativeLastName: "Example", ReceiverBankAccountNumber: "DE00",
	}
}

var amounts = map[string]decimal.Decimal{
	asOrdered: decimal.New(1050, -2), "other": decimal.New(1150, -2), "invalid": decimal.New(10505, -3),
}

func (m *merchant) newClient() (client, error) {
	switch m.Client {
	case clientCardwire:
		return m.newCardwire()
	case clientRetrying:
		return &plain{chaos.Retrying(), m.Task}, nil
	case clientIdempotent:
		return &plain{chaos.Idempotent(), m.Task}, nil
	}
	return nil, fmt.Errorf("no client is called %q", m.Client)
}

// ofCardwire is one client for all kinds of faults: a header of the request and the
// address of its connection say which.
type ofCardwire struct {
	client *cardwire.Client
	bases  map[string]string
}

func (m *merchant) newCardwire() (client, error) {
	opts := []cardwire.Option{
		cardwire.WithTimeout(m.Timeout),
		cardwire.WithTransport(&http.Transport{DialContext: dial}),
		cardwire.WithProfile(func(p *cardwire.Profile) {
			p.DuplicateCodes, p.LateExecution = []int{http.StatusUnprocessableEntity}, m.Grace
		}),
	}
	if m.journal != nil {
		opts = append(opts, cardwire.WithJournal(m.journal))
	}
	c, err := cardwire.New(m.Bases["ok"], "merchant-key", opts...)
	return &ofCardwire{c, m.Bases}, err
}

// route is how one call gets to the service, as a value of its context.
type route struct {
	address   string
	meanwhile func() // what happens while the call is in progress
}

type routeKey struct{}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	r, ok := ctx.Value(routeKey{}).(*route)
	if !ok {
		return nil, errors.New("a call without a route")
	}
	r.meanwhile()
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, cmp.Or(r.address, address))
}

func (c *ofCardwire) call(ctx context.Context, msg message, kind string, meanwhile func()) advice {
	base, err := url.Parse(c.bases[kind])
	if err != nil {
		return advice{step: cardwire.StepRetry}
	}
	ctx = context.WithValue(ctx, routeKey{}, &route{base.Host, meanwhile})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// Where a pause is worst: the connection is there, and its first byte is not.
		GotConn: func(httptrace.GotConnInfo) { _ = pause(ctx, time.Duration(msg.ID%4)*10*time.Millisecond) },
	})
	transfer, err := c.client.CreateTransfer(ctx, params(msg), cardwire.WithHeader(chaos.KindHeader, kind))
	return adviceOn(transfer, err)
}

// adviceOn looks at the step, at how long to wait, and at the service's ID.
func adviceOn(transfer *cardwire.Transfer, err error) advice {
	a := advice{step: cardwire.NextStep(err)}
	if transfer != nil {
		a.serviceID = transfer.APIOrderNo
	}
	if failure, ok := errors.AsType[*cardwire.Error](err); ok {
		a.after = failure.RetryAfter
	}
	if d, ok := errors.AsType[*cardwire.DuplicateIntent](err); ok && a.step == cardwire.StepDone {
		a.serviceID = d.ServiceID
	}
	return a
}

func (c *ofCardwire) close() { c.client.CloseIdleConnections() }
