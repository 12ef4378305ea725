package sqljournal_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/shop"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestTheRulesOfEveryJournal(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		db.SetMaxOpenConns(8) // a server for tests takes only so many
		cardwiretest.TestJournal(t, func(t *testing.T) cardwire.Journal { return &described{j, db, at, 0} })
	})
}

// described is a journal that also says what is on record. The floor of every second hold has passed.
type described struct {
	*sqljournal.Journal

	db    *sql.DB
	at    place
	holds int
}

func (d *described) Record(ctx context.Context, op cardwire.Op, reference string) (journal.Record, error) {
	e, err := d.Lookup(ctx, op, reference)
	if errors.Is(err, sqljournal.ErrNoIntent) {
		return journal.Record{}, nil
	}
	return recordOf(e), err
}

func (d *described) Hold(ctx context.Context, by, why string, atLeast time.Duration) error {
	err := d.Journal.Hold(ctx, by, why, atLeast)
	if d.holds++; d.holds%2 == 0 { // after whoever asked half an hour ago
		floor := time.Now().Add(-10 * time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z")
		_, err2 := d.db.ExecContext(ctx, "UPDATE "+d.at.Table+"_journal SET floor = '"+floor+"'")
		err = errors.Join(err, err2)
	}
	return err
}

var flagSeeds = flag.Uint64("seeds", 20, "how many seeds TestSimulate tries")

// A merchant's program ends every order once, whatever happens to it, to the service and to a journal
// in a file.
func TestSimulate(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) cardwire.Journal {
		_, j := openNew(t, onSQLite(t, "&_pragma=journal_mode(WAL)"))
		return j
	}
	start := func(w *cardwiretest.World) cardwiretest.Program { return shop.New(w) }
	cardwiretest.Simulate(t, start, cardwiretest.Seeds(1, *flagSeeds), cardwiretest.JournalOf(open))
}
