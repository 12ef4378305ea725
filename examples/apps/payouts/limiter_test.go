package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// postgresURL is that of a schema of the test's own.
func postgresURL(t testing.TB) string {
	t.Helper()
	source := os.Getenv("CARDWIRE_TEST_POSTGRES")
	if source == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CARDWIRE_TEST_POSTGRES is not set, and these tests must run under CI: use scripts/postgres")
		}
		t.Skip("CARDWIRE_TEST_POSTGRES is not set: run scripts/postgres go test ./...")
	}
	schema := "s_" + strings.ToLower(rand.Text())
	execute(t, source, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, source, "DROP SCHEMA "+schema+" CASCADE") })
	return source + "&search_path=" + schema
}

func execute(t testing.TB, source, statement string) {
	t.Helper()
	db := openPool(t, source)
	defer db.Close()
	_, err := db.ExecContext(context.Background(), statement)
	require.NoError(t, err)
}

func openPool(t testing.TB, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", source)
	require.NoError(t, err)
	return db
}

func journalOfTwo(t *testing.T) *sqljournal.Journal {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "journal.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, sqljournal.SQLite)
	require.NoError(t, err)
	require.NoError(t, journal.Migrate(t.Context()))
	for reference, age := range map[string]time.Duration{"M-1": time.Hour, "M-2": 2 * time.Hour, "young": 0} {
		i := cardwire.Intent{Op: "CreateTransfer", Reference: reference, BodySHA256: "00", Time: time.Now().Add(-age), SendBy: time.Now().Add(-age), Unique: true}
		require.NoError(t, journal.Begin(t.Context(), i))
	}
	return journal
}

func unresolvedIn(t *testing.T, journal *sqljournal.Journal) (references []string) {
	t.Helper()
	for e, err := range journal.Unresolved(t.Context(), 0) {
		require.NoError(t, err)
		references = append(references, e.Reference)
	}
	return references
}

func TestAShareIsWhatAllMayDoByTheNumberOfReplicas(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, 2.5, limitOf(t, share(10, 4)), 1e-9)
}

func limitOf(t *testing.T, limiter cardwire.Limiter) float64 {
	t.Helper()
	of, ok := limiter.(*rate.Limiter)
	require.True(t, ok)
	assert.Equal(t, 1, of.Burst())
	return float64(of.Limit())
}

// createTurns may be called by several at once.
func createTurns(t *testing.T, db *sql.DB) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), schemaOf(sqljournal.PostgreSQL))
	assert.NoError(t, err)
}

// Whoever asks, in however many processes: no two turns are closer than the
// interval.
func TestTurnsAreApart(t *testing.T) {
	source := postgresURL(t)
	const each, pools, interval = 10, 4, 5 * time.Millisecond
	var mu sync.Mutex
	var taken []time.Time
	var group sync.WaitGroup
	for range pools {
		db := openPool(t, source)
		defer db.Close()
		group.Go(func() {
			createTurns(t, db)
			limiter := newTurns(db, interval)
			for range each {
				turn, wait, err := limiter.take(t.Context())
				assert.NoError(t, err)
				assert.LessOrEqual(t, wait, each*pools*interval)
				mu.Lock()
				taken = append(taken, turn)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	require.Len(t, taken, each*pools)
	slices.SortFunc(taken, time.Time.Compare)
	for i := range taken[1:] {
		assert.GreaterOrEqual(t, taken[i+1].Sub(taken[i]), interval)
	}
}

func TestATurnThatIsTooFarAwayIsNotTaken(t *testing.T) {
	db := openPool(t, postgresURL(t))
	defer db.Close()
	createTurns(t, db)
	limiter := newTurns(db, time.Hour)
	require.NoError(t, limiter.Wait(t.Context()), "the first turn is at once")
	for range 2 {
		require.ErrorIs(t, limiter.Wait(t.Context()), errNoTurn)
	}

	limiter.patience = 61 * time.Minute
	_, wait, err := limiter.take(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, wait, time.Hour, "those that were not taken hold up nobody")
}

func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	db := openPool(t, postgresURL(t))
	defer db.Close()
	createTurns(t, db)
	limiter := newTurns(db, time.Hour)
	limiter.patience = 2 * time.Hour
	require.NoError(t, limiter.Wait(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, limiter.Wait(ctx), context.DeadlineExceeded)
}

// A database that is down stops what it should count.
func TestWithoutItsDatabaseNothingIsSent(t *testing.T) {
	t.Parallel()
	db := openPool(t, "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	defer db.Close()
	service := cardwiretest.New()
	client, err := cardwire.New("https://api.example.com/api/v1", cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(&http.Client{Transport: service}), cardwire.WithLimiter(&turns{db: db}))
	require.NoError(t, err)
	_, err = client.CreateTransfer(t.Context(), cardwire.TransferParams{
		MerchantOrderNo: "M-1", PayoutCurrency: "EUR", TransferAmount: decimal.New(1, 0),
	})
	require.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
	assert.Empty(t, service.Requests())
}
