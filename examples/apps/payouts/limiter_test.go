package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// On SQLite there is one replica, and -rate is its own.
func TestTheRateOfOneReplica(t *testing.T) {
	t.Parallel()
	for perSecond, want := range map[float64]rate.Limit{0: rate.Inf, 2.5: 2.5} {
		s := &service{settings: settings{rate: perSecond}, dialect: sqljournal.SQLite}
		limiter, ok := s.newLimiter().(*rate.Limiter)
		require.True(t, ok)
		assert.Equal(t, want, limiter.Limit())
		assert.LessOrEqual(t, limiter.Burst(), 1)
	}
}

func createTurns(t *testing.T, db *sql.DB) {
	t.Helper()
	journal, err := sqljournal.New(db, sqljournal.PostgreSQL)
	assert.NoError(t, err)
	assert.NoError(t, journal.Migrate(t.Context())) // which the view reads
	_, err = db.ExecContext(t.Context(), schemaOf(sqljournal.PostgreSQL))
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
	for i := range pools {
		db := openPool(t, source)
		defer db.Close()
		if i == 0 {
			createTurns(t, db)
		}
		group.Go(func() {
			for range each {
				turn, wait, err := take(t, db, interval, patience)
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
	limiter := &turns{db, 1. / 3600}
	require.NoError(t, limiter.Wait(t.Context()), "the first turn is at once")
	for range 2 {
		require.ErrorIs(t, limiter.Wait(t.Context()), errNoTurn)
	}
	_, wait, err := take(t, db, time.Hour, 61*time.Minute)
	require.NoError(t, err)
	assert.LessOrEqual(t, wait, time.Hour, "those that were not taken hold up nobody")
	assert.Greater(t, wait, 59*time.Minute)
}

// take takes a turn, and returns when it is.
func take(t *testing.T, db *sql.DB, interval, patience time.Duration) (turn time.Time, wait time.Duration, err error) {
	t.Helper()
	var seconds float64
	row := db.QueryRowContext(t.Context(), takeTurn+", taken", interval.Seconds(), patience.Seconds())
	err = row.Scan(&seconds, &turn)
	return turn, time.Duration(seconds * float64(time.Second)), err
}

func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	db := openPool(t, postgresURL(t))
	defer db.Close()
	createTurns(t, db)
	limiter := &turns{db, 1 / (patience - time.Second).Seconds()}
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
	err := payBy(t, clientOf(t, service, cardwire.WithLimiter(&turns{db, 1})), "M-1")
	require.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
	assert.Empty(t, service.Requests())
}
