package payouts

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// A shop has a pool of pgx, a River on it and a table payouts, all where its search path leads. One transaction of the
// pool writes its row, its job and the payout, or none.
func TestAShopsOwnPool(t *testing.T) {
	t.Parallel()
	source := newDatabase(t)
	openShop(t, source, nil)
	pool, err := pgxpool.New(t.Context(), source)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	driver := riverdatabasesql.New(db)
	migrator, err := rivermigrate.New(driver, nil)
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	mails, err := river.NewClient(driver, &river.Config{})
	require.NoError(t, err)
	var c Config
	s := newShop(t, source, func(set *Config) { c = *set })
	s.Service, err = New(db, sqljournal.PostgreSQL, c)
	require.NoError(t, err)
	s.do(`CREATE TABLE payouts (number TEXT PRIMARY KEY)`)
	undo := errors.New("the checkout failed")
	for _, want := range []error{undo, nil} {
		err := s.transaction(t.Context(), func(tx *sql.Tx) error {
			_, err1 := tx.ExecContext(t.Context(), `INSERT INTO payouts VALUES ('A-1')`)
			_, err2 := mails.InsertTx(t.Context(), tx, mail{1}, nil)
			_, err3 := s.Submit(t.Context(), tx, paramsFor("A-1"))
			return errors.Join(err1, err2, err3, want)
		})
		require.ErrorIs(t, err, want)
		for _, table := range []string{"public.payouts", "public.river_job", "@payouts", "@river_job"} {
			rows := map[error]int64{nil: 1}[want]
			assert.Equal(t, []int64{rows}, valuesOf[int64](s, `SELECT count(*) FROM `+table), table)
		}
	}
	s.run()
	s.await("A-1", StateSubmitted)
	assert.Equal(t, []string{"available"}, valuesOf[string](s, `SELECT state::text FROM public.river_job`))
}

// PostgreSQL looks for the tables of a program first in the schema that has the name of its role.
func TestASchemaWithTheNameOfARole(t *testing.T) {
	t.Parallel()
	owner := openShop(t, newDatabase(t), nil)
	role := owner.role("shop")
	owner.do(`CREATE TABLE public.payouts (number TEXT PRIMARY KEY)`)
	owner.source = strings.Replace(owner.source, "search_path=public&", "", 1) // the default
	finds := func() string {
		db, _ := openDB(t, owner.as(role))
		var schema string
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT relnamespace::regnamespace::text FROM pg_class
			WHERE oid = to_regclass('payouts')`).Scan(&schema))
		return schema
	}
	assert.Equal(t, "public", finds())
	tenant := openShop(t, owner.source, func(c *Config) { c.Schema, c.Account = role, "b" })
	tenant.do(`GRANT USAGE ON SCHEMA @schema TO ` + role)
	assert.Equal(t, role, finds())
}

// A Service that was not used yet looks at its database first. On SQLite it does not: it knows the file by Identity
// alone, and without it an order is where the caller's transaction is.
func TestATransactionOfAnotherDatabase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		create := map[bool]func(testing.TB) string{false: newFile, true: newDatabase}[strings.Contains(source, "://")]
		other := openShop(t, create(t), nil)
		identity, err := openShop(t, source, nil).journal.Identity(t.Context())
		require.NoError(t, err)
		submit := func(identity string) error {
			s := newShop(t, source, func(c *Config) { c.Identity = identity })
			return other.transaction(t.Context(), func(tx *sql.Tx) error {
				_, err := s.Submit(t.Context(), tx, paramsFor("A-1"))
				return err
			})
		}
		require.ErrorIs(t, submit(identity), sqljournal.ErrSchema)
		if other.dialect == sqljournal.PostgreSQL {
			require.ErrorIs(t, submit(""), sqljournal.ErrSchema)
			return
		}
		_, err = other.Order(t.Context(), "A-1")
		require.ErrorIs(t, err, ErrNoOrder)
		require.NoError(t, submit(""))
		assert.Equal(t, StateQueued, other.found("A-1").State)
	})
}
