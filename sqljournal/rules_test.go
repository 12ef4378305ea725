package sqljournal_test

import (
	"testing"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestTheRulesOfEveryJournal(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		cardwiretest.TestJournal(t, func(t *testing.T) cardwire.Journal {
			db, journal := openNew(t, at.another(t))
			db.SetMaxOpenConns(8) // a server for tests takes only so many
			if at.Dialect == sqljournal.SQLite {
				db.SetMaxOpenConns(1) // who waits for SQLite's lock gives up after ten seconds
			}
			return journal
		})
	})
}
