package main

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// postgresURL is that of a schema of the test's own.
func postgresURL(t *testing.T) string {
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

func execute(t *testing.T, source, statement string) {
	t.Helper()
	db := openPool(t, source)
	defer db.Close()
	_, err := db.ExecContext(context.Background(), statement)
	require.NoError(t, err)
}

func openPool(t *testing.T, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", source)
	require.NoError(t, err)
	return db
}

func TestNoOrderIsExecutedTwice(t *testing.T) {
	for name, source := range map[string]func(*testing.T) string{
		"PostgreSQL": postgresURL,
		"SQLite":     func(*testing.T) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, run(t.Context(), &out, source(t)))
			assert.Regexp(t, `\A3 replicas send the same 20 orders: map\[reconcile:[1-9][0-9]* done:`, out.String())
			assert.Regexp(t, `\n3 replicas send the same 1[0-2] orders: map\[done:`, out.String(), "only those that are not done")
			assert.Regexp(t, `\n20 orders, 20 executions, 0 orders executed twice\n\z`, out.String())
		})
	}
}

func journalOfTwo(t *testing.T) *sqljournal.Journal {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "journal.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, migrate(t.Context(), db, sqljournal.SQLite))
	journal, err := openJournal(t.Context(), db, sqljournal.SQLite)
	require.NoError(t, err)
	for reference, age := range map[string]time.Duration{"M-1": time.Hour, "M-2": 2 * time.Hour, "young": 0} {
		i := cardwire.Intent{Op: "CreateTransfer", Reference: reference, BodySHA256: "00", Time: time.Now().Add(-age), SendBy: time.Now().Add(-age), Unique: true}
		require.NoError(t, journal.Begin(t.Context(), i))
	}
	return journal
}

func unresolved(t *testing.T, journal *sqljournal.Journal) (references []string) {
	t.Helper()
	for e, err := range journal.Unresolved(t.Context(), 0) {
		require.NoError(t, err)
		references = append(references, e.Reference)
	}
	return references
}

func TestSupportResolvesWhatIsOldEnough(t *testing.T) {
	t.Parallel()
	journal := journalOfTwo(t)
	var asked []string
	found := map[string]cardwire.Outcome{"M-1": cardwire.OutcomeUnknown, "M-2": cardwire.OutcomeExecuted}
	err := resolve(t.Context(), journal, time.Minute, func(_ context.Context, e sqljournal.Entry) (sqljournal.Resolution, error) {
		asked = append(asked, e.Reference)
		return sqljournal.Resolution{Outcome: found[e.Reference], By: "support", Note: "ticket 7"}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"M-2", "M-1"}, asked)
	assert.Equal(t, []string{"M-1", "young"}, unresolved(t, journal))
	events, err := journal.History(t.Context(), "CreateTransfer", "M-2")
	require.NoError(t, err)
	last := events[len(events)-1]
	assert.Equal(t, []string{"resolved", "support", "ticket 7"}, []string{last.Kind, last.By, last.Note})
}

var executed = sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted}

func TestOneThatSupportCannotFindOutHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	journal := journalOfTwo(t)
	closed := errors.New("support is closed")
	err := resolve(t.Context(), journal, time.Minute, func(_ context.Context, e sqljournal.Entry) (sqljournal.Resolution, error) {
		if e.Reference == "M-2" {
			return executed, closed
		}
		return sqljournal.Resolution{Outcome: cardwire.OutcomeRefused}, nil
	})
	require.ErrorIs(t, err, closed)
	assert.Equal(t, []string{"M-2", "young"}, unresolved(t, journal))
}

func TestResolvingTwiceAtOnceIsNoError(t *testing.T) {
	t.Parallel()
	journal := journalOfTwo(t)
	err := resolve(t.Context(), journal, time.Minute, func(ctx context.Context, e sqljournal.Entry) (sqljournal.Resolution, error) {
		return executed, journal.Resolve(ctx, e, executed) // the other replica
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"young"}, unresolved(t, journal))
}

// A resolution that was long in coming frees no order that was begun again.
func TestAnOldResolutionFreesNothing(t *testing.T) {
	t.Parallel()
	journal := journalOfTwo(t)
	err := resolve(t.Context(), journal, 90*time.Minute, func(ctx context.Context, e sqljournal.Entry) (sqljournal.Resolution, error) {
		// The other replica was told the same, and has sent the order again.
		again := cardwire.Intent{Op: e.Op, Reference: e.Reference, BodySHA256: e.BodySHA256, Time: time.Now(), Unique: true}
		notSent := sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent}
		return notSent, errors.Join(journal.Resolve(ctx, e, notSent), journal.Begin(ctx, again))
	})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"M-1", "M-2", "young"}, unresolved(t, journal))
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
			if !assert.NoError(t, migrateTurns(t.Context(), db)) {
				return
			}
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
	require.NoError(t, migrateTurns(t.Context(), db))
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
	require.NoError(t, migrateTurns(t.Context(), db))
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

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// The guides show this program, to the letter.
func TestTheGuidesShowThisCode(t *testing.T) {
	t.Parallel()
	for guide, tc := range map[string]struct {
		files  []string
		blocks int
	}{
		"replicas.md":   {[]string{"replica.go", "resolve.go", "turns.go"}, 4},
		"operations.md": {[]string{"brake.go", "support.go", "watch.go"}, 4},
	} {
		text, err := os.ReadFile("../../../docs/" + guide)
		require.NoError(t, err)
		var program strings.Builder
		for _, name := range tc.files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			program.Write(text)
		}
		blocks := goBlock.FindAllStringSubmatch(string(text), -1)
		require.Len(t, blocks, tc.blocks, guide)
		for _, block := range blocks {
			assert.Contains(t, program.String(), "\n"+block[1], guide)
		}
	}
}
