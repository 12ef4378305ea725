package payouts

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/database"
	shops "github.com/cardwire/cardwire-go/payouts/internal/shop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a merchant with the service, its database and the fake service.
type shop struct {
	*Service
	t      shops.Tester
	source string
	log    *buffer
	fake   *cardwiretest.Service
}

// buffer is a bytes.Buffer that may be read while the program still writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var (
	newFile, newDatabase, openDB = shops.NewFile, shops.NewDatabase, shops.OpenDB
	eachDatabase, paramsFor      = shops.EachDatabase, shops.Params
)

const (
	waitFor = 2 * time.Minute
	tick    = 5 * time.Millisecond
)

// openShop opens a service whose orders are not sent.
func openShop(t shops.Tester, source string, set func(*Config)) *shop {
	t.Helper()
	s := newShop(t, source, set)
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

// newShop is a shop on a database as it is.
func newShop(t shops.Tester, source string, set func(*Config)) *shop {
	t.Helper()
	s := &shop{t: t, source: source, log: &buffer{}, fake: cardwiretest.New()}
	c := Config{
		BaseURL: "https://cards.example/api/v1", APIKey: cardwiretest.DefaultKey, Timeout: 5 * time.Second, Workers: 4,
		LateExecution: -1, Logger: slog.New(slog.NewTextHandler(s.log, nil)), MeterProvider: noop.NewMeterProvider(),
		Options: []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: s.fake})},
	}
	if set != nil {
		set(&c)
	}
	db, dialect := openDB(t, source)
	var err error
	s.Service, err = New(db, dialect, c)
	require.NoError(t, err)
	return s
}

// eachShop is eachDatabase with a shop.
func eachShop(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Helper()
	eachDatabase(t, func(t *testing.T, source string) { test(t, openShop(t, source, nil)) })
}

// shopInFile is a shop on SQLite.
func shopInFile(t *testing.T) *shop {
	t.Helper()
	return openShop(t, newFile(t), nil)
}

// run sends orders until the test ends, or stop is called.
func (s *shop) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(s.t, <-ended)
	})
	s.t.Cleanup(stop)
	return stop
}

// orders submits an order for each number.
func (s *shop) orders(numbers ...string) {
	s.t.Helper()
	for _, number := range numbers {
		_, err := s.SubmitNow(s.t.Context(), paramsFor(number))
		require.NoError(s.t, err)
	}
}

func (s *shop) found(number string) order {
	s.t.Helper()
	o, err := s.find(s.t.Context(), s.db, number)
	require.NoError(s.t, err)
	return o
}

func (s *shop) states(numbers ...string) (all []State) {
	s.t.Helper()
	for _, number := range numbers {
		all = append(all, s.found(number).State)
	}
	return all
}

func (s *shop) await(number string, state State) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.found(number).State == state }, waitFor, tick,
		"%s: %s", number, state)
}

func (s *shop) do(statement string, args ...any) {
	s.t.Helper()
	require.NoError(s.t, s.exec(s.t.Context(), s.db, statement, args...))
}

// valuesOf returns the values of a query.
func valuesOf[T any](s *shop, text string, args ...any) []T {
	s.t.Helper()
	all, err := query(s.t.Context(), s.Service, s.db, database.One[T], text, args...)
	require.NoError(s.t, err)
	return all
}

// runOnce runs an order's job once, as River would. The rate after a pause is TestTheQueueIsLookedAfter's.
func (s *shop) runOnce(number string) error {
	s.ramp.SetLimit(rate.Inf)
	job := &river.Job[submit]{JobRow: &rivertype.JobRow{Metadata: []byte("{}")}, Args: submit{number}}
	return (&submitter{Service: s.Service}).Work(s.t.Context(), job)
}

// work is runOnce, and returns for how long the job snoozes.
func (s *shop) work(number string) time.Duration {
	s.t.Helper()
	err := s.runOnce(number)
	if snooze, ok := errors.AsType[*rivertype.JobSnoozeError](err); ok {
		return snooze.Duration
	}
	require.NoError(s.t, err)
	return 0
}

// willFail makes the next transfer fail.
func (s *shop) willFail(f cardwiretest.Fault) { s.fake.Fail(operation, f, 1) }

var lostResponse = cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}

// loseResponse makes an order whose response was lost.
func (s *shop) loseResponse(number string, executed bool) {
	s.t.Helper()
	s.orders(number)
	s.willFail(cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: executed})
	require.Zero(s.t, s.work(number), "the job ends")
	require.Equal(s.t, StateUnresolved, s.found(number).State)
	s.do(`UPDATE @intents SET send_by = time, settled_by = time WHERE state = 'unknown'`)
}

// resolveAs resolves the call that is on record as Ada found out now.
func (s *shop) resolveAs(number, outcome string, serviceID ...string) error {
	s.t.Helper()
	r := Resolution{Call: s.found(number).Call, Outcome: outcome, AsOf: time.Now(), By: "Ada", Why: "ticket 7"}
	if len(serviceID) > 0 {
		r.ServiceID = serviceID[0]
	}
	_, err := s.Resolve(s.t.Context(), number, r)
	return err
}

func (s *shop) resolves(number, outcome string, serviceID ...string) {
	s.t.Helper()
	require.NoError(s.t, s.resolveAs(number, outcome, serviceID...))
}

// refuses expects that a resolution conflicts with what is known, and that nothing changes.
func (s *shop) refuses(number, outcome, why string, serviceID ...string) {
	s.t.Helper()
	before := s.found(number).State
	err := s.resolveAs(number, outcome, serviceID...)
	require.ErrorIs(s.t, err, ErrConflict)
	require.ErrorContains(s.t, err, why)
	assert.Equal(s.t, before, s.found(number).State)
}

// cancels cancels an order.
func (s *shop) cancels(number string) error {
	_, err := s.Cancel(s.t.Context(), number, "Ada", "ticket 7")
	return err
}

// status is whether orders are sent.
func (s *shop) status() Status {
	s.t.Helper()
	status, err := s.Status(s.t.Context())
	require.NoError(s.t, err)
	return status
}

// details are those of an order.
func (s *shop) details(number string) Details {
	s.t.Helper()
	d, err := s.Details(s.t.Context(), number)
	require.NoError(s.t, err)
	return d
}

// lists returns the numbers of the orders that are in a state.
func (s *shop) lists(state State) (numbers []string) {
	s.t.Helper()
	page, err := s.Orders(s.t.Context(), Filter{State: state})
	require.NoError(s.t, err)
	for _, o := range page.Orders {
		numbers = append(numbers, o.Number)
	}
	return numbers
}

// tells tells what has changed, until nothing is left.
func (s *shop) tells() {
	s.t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = s.tell(s.t.Context())
		require.NoError(s.t, err)
	}
}
