package payouts

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// role makes a role that may log in, with its own name as password.
func (s *shop) role(name string) string {
	s.t.Helper()
	role := strings.Replace(valuesOf[string](s, `SELECT current_database()::text`)[0], "d_", name+"_", 1)
	s.do(`CREATE ROLE ` + role + ` LOGIN PASSWORD '` + role + `'`)
	s.t.Cleanup(func() {
		_, err := s.db.ExecContext(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		assert.NoError(s.t, err)
	})
	return role
}

// as is the source of the shop's database for a role.
func (s *shop) as(role string) string {
	s.t.Helper()
	source, err := url.Parse(s.source)
	require.NoError(s.t, err)
	source.User = url.UserPassword(role, role)
	return source.String()
}

// A program's role needs what docs/payouts.md grants, and no more: what it lacks Verify says in the same words.
func TestTheRightsOfAProgram(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/payouts.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(guide), "```sql\n")
	grants, _, _ := strings.Cut(rest, "```")
	owner := openShop(t, newDatabase(t), nil)
	role := owner.role("shop")
	s := newShop(t, owner.as(role), func(c *Config) { c.PurgeAfter = time.Millisecond })
	for grant := range strings.SplitSeq(strings.TrimSpace(grants), "\n") {
		grant = strings.Replace(grant, " TO shop;", " TO "+role+";", 1)
		require.ErrorContains(t, s.Verify(t.Context()), "\n"+grant)
		owner.do(grant)
	}
	s.loseResponse("A-1", false)
	s.resolves("A-1", "send_again")
	s.orders("A-2", "A-3")
	stop := s.run()
	s.await("A-1", StateSubmitted)
	s.await("A-2", StateSubmitted)
	stop()
	s.resolves("A-2", "paid")
	s.orders("A-4")
	require.NoError(t, s.cancels("A-4"))
	s.tells()
	s.sweeps()
	assert.Equal(t, []int64{4}, valuesOf[int64](s, `SELECT count(*) FROM @payouts WHERE body = ''`), "they are purged")
	assert.Contains(t, s.lists(""), "A-1")
	assert.Equal(t, StatePaid, s.details("A-2").Order.State)
	require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
	require.NoError(t, s.Hold(t.Context(), "Ada", "a restore"))
	s.settled()
	require.NoError(t, s.Release(t.Context(), "Ada", "compared"))
	assert.Contains(t, s.log.String(), "A-4")
	assert.NotContains(t, s.log.String(), "permission denied")

	reader := owner.role("reader") // as for a dashboard: nothing there is personal
	owner.do(`GRANT USAGE ON SCHEMA @schema TO ` + reader)
	owner.do(`GRANT SELECT ON @payouts_orders TO ` + reader)
	db, _ := openDB(t, owner.as(reader))
	require.NoError(t, s.exec(t.Context(), db, `SELECT * FROM @payouts_orders`))
	require.ErrorContains(t, s.exec(t.Context(), db, `SELECT body FROM @payouts`), "permission denied")
}

// Another journal of the same account in the database would grant what this one has granted: one that may be read, and
// one that may not. A copy's row says that it is elsewhere.
func TestAnotherJournalIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		name := "payments_intents"
		if s.dialect == sqljournal.PostgreSQL {
			name = "other." + name
		}
		other, err := sqljournal.New(s.db, s.dialect, sqljournal.WithTable(name))
		require.NoError(t, err)
		require.NoError(t, other.Migrate(t.Context()))
		require.NoError(t, s.Verify(t.Context()), "it is nobody's yet")
		require.NoError(t, other.SetService(t.Context(), s.base, "another"))
		require.NoError(t, s.Verify(t.Context()))
		require.NoError(t, other.SetService(t.Context(), s.base, ""))
		require.ErrorContains(t, s.Verify(t.Context()), `payments_intents_journal`)
		require.ErrorContains(t, s.Run(t.Context()), `is another journal of https://cards.example/api/v1, account ""`)
		if s.dialect == sqljournal.SQLite {
			return
		}
		s.do(`UPDATE other.payments_intents_journal SET in_table = '7'`)
		require.NoError(t, s.Verify(t.Context()), "it is a copy")
		s.do(`UPDATE other.payments_intents_journal SET in_table = ''`)
		role := s.role("shop")
		s.do(`GRANT USAGE ON SCHEMA @schema TO ` + role)
		s.do(`GRANT ALL ON ALL TABLES IN SCHEMA @schema TO ` + role)
		s.do(`GRANT ALL ON ALL SEQUENCES IN SCHEMA @schema TO ` + role)
		for range 2 {
			require.ErrorContains(t, newShop(t, s.as(role), nil).Verify(t.Context()),
				"payouts: other.payments_intents_journal, another journal, may not be read")
			s.do(`GRANT USAGE ON SCHEMA other TO ` + role)
			s.do(`ALTER ROLE ` + role + ` SET search_path = other`) // its name is the same all the same
		}
	})
}

// What another program wrote into the queue's tables this one would discard.
func TestAQueueOfAnotherProgramIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1")
		require.NoError(t, s.Verify(t.Context()))
		for _, change := range []string{`kind = 'email'`, `queue = 'default'`} {
			s.do(`UPDATE @river_job SET ` + change)
			require.ErrorContains(t, s.Verify(t.Context()), "river_job has jobs of another program")
			s.do(`UPDATE @river_job SET kind = 'cardwire_payout', queue = 'cardwire_payouts'`)
		}
		require.NoError(t, s.Verify(t.Context()))
	})
}

// Tables of another release are refused, and Migrate changes nothing of them.
func TestAnotherReleaseIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for version, want := range map[int]string{release + 1: "of a newer release: update this program",
			release - 1: "use a new schema or file"} {
			s.do(`UPDATE @payouts_control SET release = $1`, version)
			s.do(`DROP VIEW IF EXISTS @payouts_orders`)
			require.ErrorContains(t, s.Verify(t.Context()), want)
			require.ErrorContains(t, s.Migrate(t.Context()), want)
			require.Error(t, s.exec(t.Context(), s.db, `SELECT * FROM @payouts_orders`), "it is as it was")
		}
		s.do(`UPDATE @payouts_control SET release = $1`, release)
		require.ErrorContains(t, s.Verify(t.Context()), "payouts_orders is missing: call Migrate once")
		require.NoError(t, s.Migrate(t.Context()))
		require.NoError(t, s.Verify(t.Context()))
	})
}

func TestASchemaHasAName(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, newFile(t))
	for schema, dialect := range map[string]sqljournal.Dialect{
		"a-b": sqljournal.PostgreSQL, "1a": sqljournal.PostgreSQL, "a.b": sqljournal.PostgreSQL,
		strings.Repeat("a", 47): sqljournal.PostgreSQL, "a": sqljournal.SQLite,
	} {
		_, err := New(db, dialect, Config{BaseURL: "https://cards.example/api/v1", APIKey: "k", Schema: schema})
		require.ErrorContains(t, err, "must be at most 46 letters, digits and underscores", schema)
	}
	assert.Equal(t, "cardwire.cardwire_intents", JournalTable(""))
	assert.Equal(t, "Tenant_b.cardwire_intents", JournalTable("Tenant_b"))
}

// mail is a job of a merchant's own River.
type mail struct {
	Number int `json:"number"`
}

func (mail) Kind() string { return "mail" }

// Two tenants share a database, whose search path leads to one of them, and the merchant's own River is in a third
// schema. When a leader is killed, the next one takes care of the jobs of its own schema, and of no other: no job is
// lost, and no order is another tenant's.
func TestNeighbors(t *testing.T) {
	t.Parallel()
	source := newDatabase(t)
	var tenants []*shop
	for _, schema := range []string{"", "Tenant_b"} {
		tenants = append(tenants, openShop(t, strings.Replace(source, "=public", "=%22Tenant_b%22", 1),
			func(c *Config) { c.Schema, c.Account = schema, schema }))
	}
	db, _ := openDB(t, source)
	driver := riverdatabasesql.New(db)
	migrator, err := rivermigrate.New(driver, nil)
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	done := make(chan int, 10)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[mail]) error {
		done <- job.Args.Number
		return nil
	}))
	merchant, err := river.NewClient(driver, &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		JobTimeout: time.Second, RescueStuckJobsAfter: time.Second, PollOnly: true,
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	for number := range 3 {
		_, err := merchant.Insert(t.Context(), mail{number}, nil)
		require.NoError(t, err)
	}
	// By its leader's end.
	const killed = ` SET state = 'running', attempted_at = now() - interval '1 hour', attempt = 1`
	_, err = db.ExecContext(t.Context(), `UPDATE public.river_job`+killed)
	require.NoError(t, err)
	for i, s := range tenants {
		s.orders(fmt.Sprint("A-", i), fmt.Sprint("B-", i))
		s.do(`UPDATE @river_job` + killed)
		s.run()
	}
	for i, s := range tenants {
		s.await(fmt.Sprint("A-", i), StateSubmitted)
		s.await(fmt.Sprint("B-", i), StateSubmitted)
		assert.Len(t, s.fake.Ledger(), 2)
		assert.Equal(t, []string{fmt.Sprint("A-", i), fmt.Sprint("B-", i)},
			valuesOf[string](s, `SELECT order_no FROM @payouts ORDER BY order_no`))
		require.NoError(t, s.Verify(t.Context()))
	}
	assert.Equal(t, []int64{3}, valuesOf[int64](tenants[0],
		`SELECT count(*) FROM public.river_job WHERE state = 'running' AND errors IS NULL`))
	require.NoError(t, merchant.Start(t.Context()))
	var numbers []int
	for range 3 {
		numbers = append(numbers, <-done)
	}
	require.NoError(t, merchant.Stop(t.Context()))
	assert.ElementsMatch(t, []int{0, 1, 2}, numbers)
}
