package page

import (
	"database/sql"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/payouts"
	shops "github.com/cardwire/cardwire-go/payouts/internal/shop"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a merchant with the service and its database. Its calls are those of the test, by the journal.
type shop struct {
	*payouts.Service
	t     *testing.T
	db    *sql.DB
	names *strings.Replacer
	log   strings.Builder
	until time.Time // where the last statement that it uploaded ends
}

const base = "https://cards.example/api/v1"

func openShop(t *testing.T, source string) *shop {
	t.Helper()
	s := &shop{t: t, names: strings.NewReplacer("@intents", "cardwire_intents", "@payouts", "cardwire_payouts")}
	var dialect sqljournal.Dialect
	s.db, dialect = shops.OpenDB(t, source)
	if dialect == sqljournal.PostgreSQL {
		s.names = strings.NewReplacer("@intents", "cardwire.cardwire_intents", "@payouts", "cardwire.payouts")
	}
	var err error
	s.Service, err = payouts.New(s.db, dialect, payouts.Config{BaseURL: base, APIKey: "k", LateExecution: -1})
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

// eachShop runs a test on both databases, while other tests run.
func eachShop(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Helper()
	shops.EachDatabase(t, func(t *testing.T, source string) { test(t, openShop(t, source)) })
}

// shopInFile is a shop on SQLite.
func shopInFile(t *testing.T) *shop {
	t.Helper()
	return openShop(t, shops.NewFile(t))
}

// orders submits an order for each number.
func (s *shop) orders(numbers ...string) {
	s.t.Helper()
	for _, number := range numbers {
		_, err := s.SubmitNow(s.t.Context(), shops.Params(number))
		require.NoError(s.t, err)
	}
}

// calls makes the call of an order that is there, as the worker does.
func (s *shop) calls(number string, r cardwire.IntentResult) {
	s.t.Helper()
	p, now := shops.Params(number), time.Now()
	i := cardwire.Intent{
		Op: cardwire.OpCreateTransfer, Reference: number, BodySHA256: p.Digest(), Amount: p.TransferAmount,
		Currency: p.PayoutCurrency, Service: base, Call: "call-of-" + url.QueryEscape(number), Time: now,
		SendBy: now.Add(time.Minute), SettledBy: now.Add(time.Minute),
	}
	require.NoError(s.t, s.Journal().Begin(s.t.Context(), i))
	require.NoError(s.t, s.Journal().End(s.t.Context(), i, r))
	s.do(`UPDATE @intents SET send_by = time, settled_by = time WHERE state = 'unknown'`)
}

func (s *shop) execute(number, status string) {
	s.t.Helper()
	s.calls(number, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-" + number, Status: status})
}

// loseResponse makes an order whose response was lost.
func (s *shop) loseResponse(number string) {
	s.t.Helper()
	s.orders(number)
	s.calls(number, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown, Reason: "connection reset"})
}

func (s *shop) do(statement string, args ...any) {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), s.names.Replace(statement), args...)
	require.NoError(s.t, err)
}

// settled is after the hold's floor.
func (s *shop) settled() {
	s.t.Helper()
	s.do(`UPDATE @intents_journal SET floor = $1`, database.Text(time.Now().Add(-time.Second)))
}

func (s *shop) found(number string) payouts.Order {
	s.t.Helper()
	o, err := s.Order(s.t.Context(), number)
	require.NoError(s.t, err)
	return o
}

func (s *shop) states(numbers ...string) (all []payouts.State) {
	s.t.Helper()
	for _, number := range numbers {
		all = append(all, s.found(number).State)
	}
	return all
}

// ada is who signed in.
func ada(*http.Request) string { return "Ada" }

// request sends a form, and returns the response of a program, or of a browser.
func (s *shop) request(method, path, form string, browser bool) *http.Response {
	s.t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/ops/", Handler(s.Service, ada))
	return send(s.t, mux, method, "http://127.0.0.1"+path, form, browser)
}

// send sends a request to any handler.
func send(t *testing.T, h http.Handler, method, address, form string, browser bool) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	if browser {
		r.Header.Set("Accept", "text/html")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
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

func textOf(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

// A failure of the database is logged, and not told.
func TestWhatIsBrokenIsLogged(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("A-1")
	h := Handler(s.Service, ada, WithLogger(slog.New(slog.NewTextHandler(&s.log, nil))))
	s.do(`ALTER TABLE @payouts_history RENAME TO gone`)
	r := send(t, h, "POST", "/cancel", "order=A-1&why=x", false)
	assert.Equal(t, 503, r.StatusCode)
	assert.NotContains(t, textOf(t, r), "no such table")
	assert.Contains(t, s.log.String(), "no such table")
}
