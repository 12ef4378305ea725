package payouts

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/payouts/sqlite"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a merchant with the service, its database and the fake service.
type shop struct {
	*Service
	t      tester
	source string
	log    *buffer
	fake   *cardwiretest.Service
	until  time.Time // where the last statement that it uploaded ends
}

// tester is a test, or a step of one that rapid runs.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
	Cleanup(func())
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

const (
	waitFor = 2 * time.Minute
	tick    = 5 * time.Millisecond
)

// newFile is a new database of SQLite, with any name.
func newFile(t testing.TB) string { return filepath.Join(t.TempDir(), "pay ?%20#.db") }

// newDatabase is the data source name of a new database of PostgreSQL.
func newDatabase(t testing.TB) string {
	t.Helper()
	source := os.Getenv("CARDWIRE_TEST_POSTGRES")
	if source == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CARDWIRE_TEST_POSTGRES is not set, and these tests must run under CI: " +
				"use ../sqljournal/scripts/postgres")
		}
		t.Skip("CARDWIRE_TEST_POSTGRES is not set: run ../sqljournal/scripts/postgres go test ./...")
	}
	name := "d_" + strings.ToLower(rand.Text())
	db, _ := openDB(t, source)
	_, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), "DROP DATABASE "+name)
		assert.NoError(t, err)
	})
	// The search path is not that of the user, who has the schema's name.
	return strings.Replace(source, "/postgres?", "/"+name+"?search_path=public&", 1)
}

// openDB opens a database until the test ends.
func openDB(t tester, source string) (*sql.DB, sqljournal.Dialect) {
	t.Helper()
	dialect, open := sqljournal.SQLite, sqlite.Open
	if strings.Contains(source, "://") {
		dialect, open = sqljournal.PostgreSQL, func(source string) (*sql.DB, error) { return sql.Open("pgx", source) }
	}
	db, err := open(source)
	require.NoError(t, err)
	if dialect == sqljournal.PostgreSQL {
		db.SetMaxOpenConns(16)
	}
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db, dialect
}

// openShop opens a service whose orders are not sent.
func openShop(t tester, source string, set func(*Config)) *shop {
	t.Helper()
	s := newShop(t, source, set)
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

// newShop is a shop on a database as it is.
func newShop(t tester, source string, set func(*Config)) *shop {
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

// eachDatabase runs a test on both databases, while other tests run.
func eachDatabase(t *testing.T, test func(t *testing.T, source string)) {
	t.Helper()
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { test(t, newFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newDatabase(t)) })
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

func paramsFor(number string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
		ReceiverBankAccountNumber: "DE00CANARY",
	}
}

// submit submits a transfer in a transaction of its own.
func (s *shop) submit(p cardwire.TransferParams) (o Order, err error) {
	s.t.Helper()
	err = s.transaction(s.t.Context(), func(tx *sql.Tx) (err error) {
		o, err = s.Submit(s.t.Context(), tx, p)
		return err
	})
	return o, err
}

// orders submits an order for each number.
func (s *shop) orders(numbers ...string) {
	s.t.Helper()
	for _, number := range numbers {
		_, err := s.submit(paramsFor(number))
		require.NoError(s.t, err)
	}
}

func (s *shop) found(number string) order {
	s.t.Helper()
	o, err := s.find(s.t.Context(), s.db, number)
	require.NoError(s.t, err)
	return o
}

func (s *shop) states(numbers ...string) (all []string) {
	s.t.Helper()
	for _, number := range numbers {
		all = append(all, s.found(number).State)
	}
	return all
}

func (s *shop) await(number, state string) {
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

// request sends a form, and returns the response of a program, or of a browser.
func (s *shop) request(method, path, form string, browser bool) *http.Response {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(form))
	if browser {
		r.Header.Set("Accept", "text/html")
	}
	w := httptest.NewRecorder()
	mux := http.NewServeMux()
	mux.Handle("/ops/", s.Handler(func(*http.Request) string { return "Ada" }))
	mux.ServeHTTP(w, r)
	return w.Result()
}

// get returns what the API says.
func (s *shop) get(path string) string {
	s.t.Helper()
	return textOf(s.t, s.request("GET", "/ops/"+path, "", false))
}

// page returns what a browser shows.
func (s *shop) page(path string) string {
	s.t.Helper()
	return textOf(s.t, s.request("GET", "/ops/"+path, "", true))
}

// post sends a form, and returns the status and the text.
func (s *shop) post(path string, form url.Values) (int, string) {
	s.t.Helper()
	if !form.Has("why") {
		form.Set("why", "ticket 7")
	}
	r := s.request("POST", "/ops/"+path, form.Encode(), false)
	return r.StatusCode, textOf(s.t, r)
}

// resolveAs resolves the call that is on record as Ada found out now.
func (s *shop) resolveAs(number, outcome string, serviceID ...string) (int, string) {
	s.t.Helper()
	form := url.Values{"order": {s.found(number).Call + " " + number}, "outcome": {outcome}}
	if len(serviceID) > 0 {
		form["service_id"] = serviceID
	}
	form.Set("as_of", time.Now().UTC().Format(time.RFC3339Nano))
	return s.post("resolve", form)
}

func (s *shop) resolves(number, outcome string, serviceID ...string) {
	s.t.Helper()
	status, text := s.resolveAs(number, outcome, serviceID...)
	require.Equal(s.t, 200, status, text)
}

// refuses expects that a resolution conflicts with what is known, and that nothing changes.
func (s *shop) refuses(number, outcome, why string, serviceID ...string) {
	s.t.Helper()
	before := s.found(number).State
	status, text := s.resolveAs(number, outcome, serviceID...)
	assert.Equal(s.t, 409, status, text)
	assert.Contains(s.t, text, why)
	assert.Equal(s.t, before, s.found(number).State)
}

// cancelAs cancels an order.
func (s *shop) cancelAs(number string) int {
	s.t.Helper()
	status, _ := s.post("cancel", url.Values{"order": {number}})
	return status
}

func textOf(t tester, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
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
