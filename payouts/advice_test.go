package payouts

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// An error that a person has to act on says what to do, and not to migrate where that never helps.
func TestErrorsSayWhatToDo(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := newShop(t, source, nil)
		says := func(errs map[string]error, advice string) {
			t.Helper()
			for door, err := range errs {
				require.ErrorContains(t, err, advice, door)
				assert.Contains(t, err.Error(), "payouts: ", door)
			}
		}
		says(s.doors(s.db), "call Migrate once")
		require.NoError(t, s.Migrate(t.Context()))
		s.orders("A-1")

		isSQLite := s.dialect == sqljournal.SQLite
		otherSource, otherDialect := newFile, sqljournal.PostgreSQL
		if !isSQLite {
			otherSource, otherDialect = newDatabase, sqljournal.SQLite
		}
		other := newShop(t, otherSource(t), nil)
		says(map[string]error{"Submit": s.doors(other.db)["Submit"]},
			"use the one that New was given; if it is that one,")
		require.NoError(t, other.Migrate(t.Context()))
		assert.ErrorContains(t, s.doors(other.db)["Submit"], "it belongs to another journal: check which database and")
		if !isSQLite { // which has one connection, and nobody to ask beside the caller's transaction
			fresh := newShop(t, source, nil)
			fresh.db.SetMaxOpenConns(1)
			busy, err := fresh.db.Conn(t.Context())
			require.NoError(t, err)
			tx, err := other.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = fresh.Submit(t.Context(), tx, paramsFor("A-2"))
			assert.ErrorContains(t, err, "call Verify when the program starts")
			require.NoError(t, errors.Join(tx.Rollback(), busy.Close()))
			fresh.db.SetMaxOpenConns(4)
			assert.NoError(t, fresh.doors(s.db)["Submit"], "nothing was concluded from the other one")
		}
		pinned := newShop(t, source, func(c *Config) { c.Identity = "another" })
		assert.Regexp(t, "it belongs to another journal: check which database and schema this is$",
			pinned.doors(s.db)["Verify"])
		mistaken, err := New(s.db, otherDialect, Config{BaseURL: s.base, APIKey: "k"})
		require.NoError(t, err)
		says((&shop{Service: mistaken, t: t}).doors(s.db),
			"is "+s.dialect.String()+": pass sqljournal."+s.dialect.String()+" to New")
		require.NoError(t, other.db.Close())
		says(other.doors(other.db), "the database was closed: close it when Run has returned")
		tx, err := s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		_, err = s.Submit(t.Context(), tx, paramsFor("A-2"))
		says(map[string]error{"Submit": err}, "the transaction has ended too early: commit it after Submit")
		if !isSQLite {
			role := newShop(t, s.as(s.role("nobody")), nil)
			doors := role.doors(role.db)
			assert.ErrorContains(t, doors["Verify"], "this role lacks rights; the tables' owner executes:\nGRANT ")
			delete(doors, "Verify")
			says(doors, "this role lacks rights: Verify says which")
		}

		s.row("A-3", `state = 'executed'`)
		s.config.Changed = func(_ context.Context, tx *sql.Tx, _ Order) error { return tx.Commit() }
		_, err = s.tellOf(t.Context(), []string{"A-3"})
		says(map[string]error{"Changed": err}, "in Changed neither commit nor roll it back")
		s.config.Changed = func(context.Context, *sql.Tx, Order) error { return nil }
		late, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		says(map[string]error{"Changed": s.changed(late, nil, Order{})},
			"Changed took longer than Timeout (5s): have a job")
	})
}

// doors are what its methods say; Submit does so in a transaction of db.
func (s *shop) doors(db *sql.DB) map[string]error {
	s.t.Helper()
	_, err := s.Order(s.t.Context(), "A-1")
	doors := map[string]error{"Order": err, "Verify": s.Verify(s.t.Context())}
	if tx, err := db.BeginTx(s.t.Context(), nil); err == nil {
		_, doors["Submit"] = s.Submit(s.t.Context(), tx, paramsFor("A-2"))
		require.NoError(s.t, tx.Rollback())
	}
	return doors
}
