package payouts

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// site is a database with a journal, as docs/operations.md speaks of it.
type site struct {
	driver, source string
	dialect        sqljournal.Dialect
}

func eachSite(t *testing.T, test func(t *testing.T, s site)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { test(t, siteInFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, site{"pgx", newSchema(t), sqljournal.PostgreSQL}) })
}

func siteInFile(t *testing.T) site {
	t.Helper()
	return site{"sqlite", "file:" + filepath.Join(t.TempDir(), "journal.db"), sqljournal.SQLite}
}

func (s site) open(t *testing.T, opts ...sqljournal.Option) (*sql.DB, *sqljournal.Journal) {
	t.Helper()
	db, err := sql.Open(s.driver, s.source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, s.dialect, opts...)
	require.NoError(t, err)
	return db, journal
}

// openPinned creates the journal, and opens it as the page recommends.
func (s site) openPinned(t *testing.T) (*sql.DB, *sqljournal.Journal) {
	t.Helper()
	db, journal := s.open(t)
	require.NoError(t, journal.Migrate(t.Context()))
	var identity string
	require.NoError(t, db.QueryRowContext(t.Context(), operations(t, "SELECT identity")).Scan(&identity))
	return s.open(t, sqljournal.WithIdentity(identity))
}

var (
	sqlBlock   = regexp.MustCompile("(?ms)^ *```sql\n(.*?)^ *```$")
	sqlComment = regexp.MustCompile(`(?m)--.*$`)
)

// operations returns the one statement of docs/operations.md that begins so.
func operations(t *testing.T, prefix string) string {
	t.Helper()
	var found []string
	for _, block := range sqlBlock.FindAllStringSubmatch(operationsPage(t), -1) {
		for _, statement := range strings.Split(block[1], ";") {
			statement = strings.TrimSpace(sqlComment.ReplaceAllString(statement, ""))
			if strings.HasPrefix(statement, prefix) {
				found = append(found, statement)
			}
		}
	}
	require.Len(t, found, 1, "statements of the page that begin with %s", prefix)
	return found[0]
}

func operationsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	return string(text)
}

// intentOf is what a journal is told of a call that has just begun, and ended.
func intentOf(reference string) cardwire.Intent {
	now := time.Now()
	return cardwire.Intent{
		Op: operation, Reference: reference, BodySHA256: "00", Call: rand.Text(),
		Time: now, SendBy: now, SettledBy: now,
	}
}

func payBy(t *testing.T, client *cardwire.Client, reference string) error {
	t.Helper()
	_, err := client.CreateTransfer(t.Context(), cardwire.TransferParams{
		MerchantOrderNo: reference, PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
	})
	return err
}

func clientOf(t *testing.T, service *cardwiretest.Service, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	client, err := cardwire.New("https://api.example.com/api/v1", cardwiretest.DefaultKey,
		append(opts, cardwire.WithHTTPClient(&http.Client{Transport: service}))...)
	require.NoError(t, err)
	return client
}

func TestRecordPaid(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(t *testing.T, j *sqljournal.Journal, i cardwire.Intent) error{
		"not in the journal": func(*testing.T, *sqljournal.Journal, cardwire.Intent) error { return nil },
		"voided": func(t *testing.T, j *sqljournal.Journal, i cardwire.Intent) error {
			return j.Void(t.Context(), i, "Bob", "canceled")
		},
		"in progress": func(t *testing.T, j *sqljournal.Journal, i cardwire.Intent) error {
			return j.Begin(t.Context(), i)
		},
		"unknown":  ended(cardwire.OutcomeUnknown),
		"refused":  ended(cardwire.OutcomeRefused),
		"not sent": ended(cardwire.OutcomeNotSent),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachSite(t, func(t *testing.T, s site) {
				_, journal := s.openPinned(t)
				i := intentOf("M-1")
				i.SendBy = i.SendBy.Add(time.Minute)
				require.NoError(t, before(t, journal, i))
				for range 2 {
					require.NoError(t, recordPaid(t.Context(), journal, "M-1", "T-1", "Ada", "ticket 7"))
				}
				want := &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"}
				assert.Equal(t, want, journal.Begin(t.Context(), i))
				history, err := journal.History(t.Context(), operation, "M-1")
				require.NoError(t, err)
				last := history[len(history)-1]
				assert.Equal(t, cardwire.OutcomeExecuted, last.Outcome)
				assert.Equal(t, []string{"Ada", "ticket 7"}, []string{last.By, last.Note})
			})
		})
	}
	t.Run("no journal", func(t *testing.T) {
		t.Parallel()
		_, journal := siteInFile(t).open(t)
		require.ErrorIs(t, recordPaid(t.Context(), journal, "M-1", "T-1", "Ada", ""), sqljournal.ErrSchema)
	})
	t.Run("a space was pasted", func(t *testing.T) {
		t.Parallel()
		_, journal := siteInFile(t).openPinned(t)
		require.ErrorIs(t, recordPaid(t.Context(), journal, "M-1 ", "T-1", "Ada", ""), cardwire.ErrInvalidParams)
	})
}

func ended(outcome cardwire.Outcome) func(*testing.T, *sqljournal.Journal, cardwire.Intent) error {
	return func(t *testing.T, j *sqljournal.Journal, i cardwire.Intent) error {
		return errors.Join(j.Begin(t.Context(), i), j.End(t.Context(), i, cardwire.IntentResult{Outcome: outcome}))
	}
}

// A backup that is restored is the same journal, which has forgotten what came after it.
func TestARestoreForgets(t *testing.T) {
	t.Parallel()
	journal, restore := backedUp(t)
	service := cardwiretest.New()
	require.NoError(t, payBy(t, clientOf(t, service, cardwire.WithJournal(journal)), "M-1"))

	restored := restore()
	require.NoError(t, restored.Verify(t.Context()), "the identity cannot tell")
	_, err := restored.Lookup(t.Context(), cardwire.OpCreateTransfer, "M-1")
	require.ErrorIs(t, err, sqljournal.ErrNoIntent, "it would be sent again")
	require.NoError(t, recordPaid(t.Context(), restored, "M-1", "T-1", "Grace", "in the service's records"))
	require.ErrorIs(t, payBy(t, clientOf(t, service, cardwire.WithJournal(restored)), "M-1"), cardwire.ErrExecuted)
	assert.Equal(t, 1, service.Executions(cardwire.OpCreateTransfer, "M-1"))
}

// backedUp returns a journal of which there is a backup, and what restores the backup.
func backedUp(t *testing.T) (journal *sqljournal.Journal, restore func() *sqljournal.Journal) {
	t.Helper()
	s := siteInFile(t)
	file := strings.TrimPrefix(s.source, "file:")
	db, journal := s.openPinned(t)
	identity, err := journal.Identity(t.Context())
	require.NoError(t, err)
	backup := filepath.Join(t.TempDir(), "backup.db")
	command(t, db, strings.ReplaceAll(operations(t, "VACUUM INTO"), "/backup/journal.db", backup))
	return journal, func() *sqljournal.Journal {
		require.NoError(t, db.Close())
		require.NoError(t, os.Rename(backup, file))
		_, restored := s.open(t, sqljournal.WithIdentity(identity))
		return restored
	}
}

// What the page grants is enough for a program, and for no more.
func TestThePermissionsOfAProgram(t *testing.T) {
	t.Parallel()
	source := newSchema(t)
	s := site{"pgx", source, sqljournal.PostgreSQL}
	db, _ := s.openPinned(t)
	openShop(t, source, nil) // whose trigger the program needs no permission for
	role := "r_" + strings.ToLower(rand.Text())
	schema := source[strings.LastIndex(source, "=")+1:]
	command(t, db, "CREATE ROLE "+role)
	t.Cleanup(func() {
		execute(t, source, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	})
	command(t, db, "GRANT USAGE ON SCHEMA "+schema+" TO "+role)
	for _, what := range []string{"SELECT, INSERT, UPDATE", "SELECT, INSERT ON", "SELECT, UPDATE (service, account, longest)"} {
		command(t, db, strings.ReplaceAll(operations(t, "GRANT "+what), "payments", role))
	}

	s.source += "&role=" + role
	limited, journal := s.open(t)
	require.NoError(t, journal.Verify(t.Context()))
	service := cardwiretest.New()
	client := clientOf(t, service, cardwire.WithJournal(journal))
	command(t, limited, "CREATE TEMP TABLE payouts_marks (order_no TEXT)") // which the trigger takes for no marks
	require.NoError(t, payBy(t, client, "M-1"))
	require.ErrorIs(t, payBy(t, client, "M-1"), cardwire.ErrExecuted)
	require.NoError(t, recordPaid(t.Context(), journal, "M-2", "T-2", "Ada", ""))
	require.NoError(t, tell(t.Context(), &bytes.Buffer{}, journal, "M-2"))
	for _, statement := range []string{
		"DELETE FROM cardwire_intents", "UPDATE cardwire_intents_history SET note = ''",
		"DROP TABLE cardwire_intents", "UPDATE cardwire_intents_journal SET identity = 'staging'",
	} {
		_, err := limited.ExecContext(t.Context(), statement)
		require.ErrorContains(t, err, "42501", statement)
	}
}

// Whether a call may still be in progress is for PostgreSQL's clock to say, not for this machine's.
func TestTheClockOfTheJournal(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]string{"behind": "-1 hour", "ahead": "1 hour"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := newSchema(t)
			for _, clock := range []string{"statement_timestamp", "clock_timestamp"} {
				execute(t, source, "CREATE FUNCTION "+clock+"() RETURNS timestamptz LANGUAGE sql AS "+
					"$$SELECT pg_catalog."+clock+"() + interval '"+offset+"'$$")
			}
			_, journal := site{"pgx", source + ",pg_catalog", sqljournal.PostgreSQL}.openPinned(t)
			for reference, left := range map[string]time.Duration{"young": time.Minute, "old": 0} {
				i := intentOf(reference)
				i.SendBy = i.SendBy.Add(left)
				require.NoError(t, journal.Begin(t.Context(), i))
				e, err := journal.Lookup(t.Context(), operation, reference)
				require.NoError(t, err)
				assert.Equal(t, left > 0, e.InProgress, reference)
			}
			stats, err := journal.Stats(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []int64{1, 1}, []int64{stats.InProgress, stats.Unresolved})
		})
	}
}

func TestSupportIsTold(t *testing.T) {
	t.Parallel()
	_, journal := siteInFile(t).openPinned(t)
	service := cardwiretest.New()
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	require.ErrorIs(t, payBy(t, clientOf(t, service, cardwire.WithJournal(journal)), "M-1"), cardwire.ErrOutcomeUnknown)
	require.NoError(t, recordPaid(t.Context(), journal, "M-1", "T-1", "Ada", "ticket 7"))
	var out bytes.Buffer
	require.NoError(t, tell(t.Context(), &out, journal, "M-1"))
	assert.Regexp(t, `\AM-1, 12.50 EUR: executed, service ID "T-1", in progress false, closed false
20\S+Z begun: unknown "" ""
20\S+Z ended: unknown "" "unknown outcome: connection reset by the peer"
20\S+Z resolved: executed "Ada" "ticket 7"
\z`, out.String())
	require.ErrorIs(t, tell(t.Context(), &out, journal, "M-9"), sqljournal.ErrNoIntent)
}

func TestTheGaugesAreTheJournalsNumbers(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	_, journal := siteInFile(t).openPinned(t)
	for reference, age := range map[string]time.Duration{"M-1": time.Hour, "M-2": 2 * time.Hour, "young": 0} {
		i := intentOf(reference)
		i.Time, i.SendBy = i.Time.Add(-age), i.SendBy.Add(-age)
		require.NoError(t, journal.Begin(t.Context(), i))
	}
	registration, err := watch(journal, cardwireotel.WithMeterProvider(meters))
	require.NoError(t, err)
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	values := map[string]float64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Gauge[int64]:
			values[m.Name] = float64(data.DataPoints[0].Value)
		case metricdata.Gauge[float64]:
			values[m.Name] = data.DataPoints[0].Value
		}
		assert.Contains(t, operationsPage(t), "`"+m.Name+"`")
	}
	assert.Len(t, values, 3)
	assert.InDelta(t, 3, values["cardwire.journal.unresolved"], 0)
	assert.InDelta(t, 0, values["cardwire.journal.in_progress"], 0)
	assert.InDelta(t, 7200, values["cardwire.journal.oldest_unresolved.age"], 600)
	require.NoError(t, registration.Unregister())
}

// execute executes a statement in a connection of its own.
func execute(t testing.TB, source, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", source)
	require.NoError(t, err)
	_, err = db.ExecContext(context.Background(), statement)
	require.NoError(t, errors.Join(err, db.Close()), statement)
}

func command(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}
