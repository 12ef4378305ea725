package sqljournal_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// merchant is a program with a table of orders beside its journal, a broker that delivers what it has again
// and again, and a service that executes whatever it receives.
type merchant struct {
	t       *testing.T
	db      *sql.DB
	at      place
	journal *sqljournal.Journal
	client  *cardwire.Client
	service *cardwiretest.Service
	broker  []string
	failed  map[string]bool // the customer was told so
	sent    int             // requests
	delays  bool            // the next is executed when delayed is called
	delayed func()
}

func newMerchant(t *testing.T, at place) *merchant {
	t.Helper()
	m := &merchant{t: t, at: at, service: cardwiretest.New(), failed: map[string]bool{}}
	m.db, m.journal = openNew(t, at)
	execute(t, m.db, "CREATE TABLE "+at.Table+"_orders (number TEXT PRIMARY KEY)")
	t.Cleanup(func() {
		_, err := m.db.ExecContext(context.Background(), "DROP TABLE "+at.Table+"_orders")
		assert.NoError(t, err)
	})
	client, err := cardwire.New(service, cardwiretest.DefaultKey, cardwire.WithJournal(m.journal),
		cardwire.WithHTTPClient(&http.Client{Transport: m}), cardwire.WithTimeout(time.Minute))
	require.NoError(t, err)
	m.client = client
	return m
}

// RoundTrip implements http.RoundTripper.
func (m *merchant) RoundTrip(r *http.Request) (*http.Response, error) {
	m.sent++
	if !m.delays {
		return m.service.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	late := r.Clone(m.t.Context())
	m.delayed = func() {
		late.Body = io.NopCloser(bytes.NewReader(body))
		response, err := m.service.RoundTrip(late)
		require.NoError(m.t, err)
		require.NoError(m.t, response.Body.Close())
	}
	return nil, errors.New("the connection was reset")
}

func paramsOf(number string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("12.50"),
	}
}

// accept takes an order from the broker: it and its row in the journal are written together.
func (m *merchant) accept(number string) {
	m.t.Helper()
	if !slices.Contains(m.broker, number) {
		m.broker = append(m.broker, number)
	}
	tx, err := m.db.BeginTx(m.t.Context(), nil)
	require.NoError(m.t, err)
	defer func() { _ = tx.Rollback() }() // it is over
	insert := "INSERT INTO " + m.at.Table + "_orders VALUES ('" + number + "') ON CONFLICT DO NOTHING"
	_, err = tx.ExecContext(m.t.Context(), insert)
	require.NoError(m.t, err)
	i := cardwire.Intent{Op: transfer, Reference: number, Service: service, Summary: "12.50 EUR",
		BodySHA256: paramsOf(number).Digest()}
	err = m.journal.In(tx).Reserve(m.t.Context(), i)
	require.True(m.t, err == nil || errors.Is(err, cardwire.ErrDuplicateIntent), err)
	require.NoError(m.t, tx.Commit())
}

// send pays an order, as a worker does whatever has happened before.
func (m *merchant) send(number string) cardwire.Step {
	m.t.Helper()
	m.accept(number)
	_, err := m.client.CreateTransfer(m.t.Context(), paramsOf(number))
	step := cardwire.NextStep(err)
	m.failed[number] = m.failed[number] || step == cardwire.StepFail
	return step
}

func (m *merchant) fails(number string, f cardwiretest.Fault) {
	m.t.Helper()
	m.service.Fail(transfer, f, 1)
	m.send(number)
}

// cancel is what a person does, on whom the customer relies.
func (m *merchant) cancel(number string) {
	m.t.Helper()
	i := cardwire.Intent{Op: transfer, Reference: number}
	require.NoError(m.t, m.journal.Void(m.t.Context(), i, "Ada", "canceled"))
	m.failed[number] = true
}

// statement is what the service exports, as a file has it.
func (m *merchant) statement(file map[string]string) sqljournal.Statement {
	s := statement()
	s.From, s.Until, s.Exported, s.AllowStrays = time.Now().Add(-24*time.Hour), time.Now(), time.Now(), true
	s.Lines = func(yield func(sqljournal.StatementLine, error) bool) {
		for n, e := range m.service.Ledger() {
			number, changed := file[e.Reference]
			if !changed {
				number = e.Reference
			}
			if number != "" && !yield(lineAt(e.Time, n+2, number+" "+e.ID+" "+e.Amount+" EUR done"), nil) {
				return
			}
		}
	}
	return s
}

// ask is the service's support, which is right when it is asked.
func (m *merchant) ask(number string) (id string, isPaid bool) {
	for _, e := range m.service.Ledger() {
		if e.Reference == number {
			return e.ID, true
		}
	}
	return "", false
}

func (m *merchant) numbers() (all []string) {
	rows, err := m.db.QueryContext(m.t.Context(), "SELECT number FROM "+m.at.Table+"_orders ORDER BY number")
	require.NoError(m.t, err)
	defer rows.Close()
	for rows.Next() {
		var number string
		require.NoError(m.t, rows.Scan(&number))
		all = append(all, number)
	}
	require.NoError(m.t, rows.Err())
	return all
}

// The procedure of docs/operations.md, step by step: no order is paid twice, and none that was paid fails.
func TestTheProcedureAfterARestore(t *testing.T) {
	t.Parallel()
	lost := cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}
	never := cardwiretest.Fault{Kind: cardwiretest.FaultReset}
	refuses := cardwiretest.Fault{Status: 422}
	eachPlace(t, func(t *testing.T, at place) {
		m := newMerchant(t, at)
		ctx := t.Context()
		m.send("paid")
		m.fails("lost", lost)
		m.fails("never", never)
		m.fails("refused", refuses)
		for _, number := range []string{"paid-since", "lost-since", "late-since", "refused-since", "replaced", "waits"} {
			m.accept(number)
		}
		restore := backUp(t, m.db, at, at.Table+"_orders")
		m.send("paid-since")
		m.fails("lost-since", lost)
		m.fails("refused-since", refuses)
		m.cancel("replaced")
		m.send("replacement")
		m.send("new")
		m.fails("new-lost", lost)
		m.send("2026-000017") // which a spreadsheet changes
		m.send("lags")        // which the statement does not list yet
		m.accept("new-waits")
		m.delays = true
		m.send("late-since")
		late := []func(){m.delayed}
		m.send("new-late")
		m.delays, late = false, append(late, m.delayed)

		// 1. All programs are stopped. The orders and the journal are restored from one backup.
		restore()
		// 2. The journal is put on hold before any program is started.
		require.NoError(t, m.journal.Hold(ctx, "Ada", "restore of 9:00", 11*time.Minute))
		// 3. The programs are started. The broker delivers again what it has; nothing is sent.
		sent := m.sent
		deliver := func() {
			t.Helper()
			for _, number := range slices.Repeat(m.broker, 2) {
				m.send(number)
			}
		}
		deliver()
		assert.Equal(t, sent, m.sent)
		for _, execute := range late {
			execute()
		}
		// 4. Until the floor nothing can be denied or released.
		h, err := m.journal.Held(ctx)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(11*time.Minute), h.Floor, time.Minute)
		require.ErrorContains(t, m.journal.Release(ctx, "Ada", "too early"), "until")
		require.Error(t, m.journal.Void(ctx, cardwire.Intent{Op: transfer, Reference: "waits"}, "Ada", "too early"))
		pass(t, m.db, at, 12)
		// 5. What the statement lists is recorded, and nothing else.
		applyAll(t, m.journal, reconciled(t, m.journal, m.statement(map[string]string{
			"lags": "", "new-lost": "", "2026-000017": "2.03E+03",
		})))
		// 6. The service is asked about each order that is unresolved or would be sent.
		asked := time.Now()
		for _, number := range m.numbers() {
			e, err := m.journal.Lookup(ctx, transfer, number)
			require.NoError(t, err)
			if e.Outcome == cardwire.OutcomeExecuted || standing(t, m.journal, number) == "closed" {
				continue
			}
			id, isPaid := m.ask(number)
			switch {
			case isPaid:
				err := m.journal.Resolve(ctx, e.Intent, paid(id))
				if errors.Is(err, sqljournal.ErrDecided) { // the line with its changed number has the ID
					assert.Equal(t, "2026-000017", number)
					require.ErrorContains(t, err, "the service ID belongs to reference 2.03E+03")
					err = m.journal.Resolve(ctx, e.Intent, paid(""))
				}
				require.NoError(t, err)
			case m.failed[number]: // as the merchant's own letters say
				m.cancel(number)
			case e.Outcome == cardwire.OutcomeUnknown:
				found := notSent()
				found.AsOf = asked
				require.NoError(t, m.journal.Resolve(ctx, e.Intent, found))
			}
		}
		// 7. The hold is released.
		deliver()
		assert.Equal(t, sent, m.sent, "nothing was sent until here")
		require.NoError(t, m.journal.Release(ctx, "Ada", "the service was asked about each"))
		deliver()
		for _, number := range m.broker {
			times := m.service.Executions(transfer, number)
			want := 1
			if slices.Contains([]string{"refused", "refused-since", "replaced"}, number) {
				want = 0
				assert.Equal(t, "closed", standing(t, m.journal, number), number)
			}
			assert.Equal(t, want, times, "%s is paid", number)
			assert.False(t, m.failed[number] && times > 0, "%s was paid, and is failed", number)
		}
		assert.Len(t, slices.Collect(maps.Keys(m.failed)), len(m.broker))
	})
}
