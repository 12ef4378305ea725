package sqljournal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Canceling is recorded, and may be done again: the last call is on record, and all are in
// the history.
func TestACancelingIsRecordedEachTime(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		server := cardwiretest.NewServer(t)
		const id = "6f1ab0f2-3c53-4f0c-9f0a-2d8f3c1f7a10"
		client := server.Client(cardwire.WithJournal(journal))
		for range 2 {
			server.AddFailedOperation(id, "freeze")
			require.NoError(t, client.CancelOperation(t.Context(), id))
		}
		history, err := journal.History(t.Context(), "CardOperation", id)
		require.NoError(t, err)
		require.Len(t, history, 4)
		assert.NotEqual(t, history[1].Call, history[3].Call)
	})
}

// The database forgot the order while it was being paid: the client says so, and the
// order is not paid again.
func TestAnOrderThatTheDatabaseForgotIsNotSentAgain(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		server := cardwiretest.NewServer(t)
		var told error
		client := server.Client(cardwire.WithJournal(journal), cardwire.WithObserver(cardwire.Observer{
			Attempt: func(ctx context.Context, _ cardwire.CallInfo, _ cardwire.Attempt) {
				_, err := db.ExecContext(ctx, "DELETE FROM "+at.Table)
				assert.NoError(t, err)
			},
			JournalError: func(_ context.Context, _ cardwire.CallInfo, err error) { told = err },
		}))
		_, err := client.CreateTransfer(t.Context(), order("M-1"))
		require.NoError(t, err)
		require.ErrorIs(t, told, sqljournal.ErrRecordedAgain)
		require.ErrorContains(t, told, "the journal did not record the result: the database had forgotten the intent")
		_, err = client.CreateTransfer(t.Context(), order("M-1"))
		assert.Equal(t, "taken-executed", ending(err))
		assert.Equal(t, 1, server.Executions(transfer, "M-1"))
	})
}

// Who is told that nothing was sent is told why, and what to do, without a word of the
// database, which may quote what it was given.
func TestTheClientSaysWhatIsWrongWithTheDatabase(t *testing.T) {
	t.Parallel()
	const quoted = ": 4111111111111111"
	noTables := "this is not the journal's database: its tables are missing: " +
		"check which database and schema this is; a new journal is created by Migrate"
	readOnly := "the database is read-only: check whether it is a standby, and whose file it is"
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		server := cardwiretest.NewServer(t)
		refuses := func(want string, journal *sqljournal.Journal) {
			t.Helper()
			_, err := server.Client(cardwire.WithJournal(journal)).CreateTransfer(t.Context(), order("M-1"))
			assert.EqualError(t, err, "cardwire: CreateTransfer M-1: not sent: the journal did not record the intent: "+
				want+": it is safe to call again")
		}
		fails := func(want string, cause error) {
			t.Helper()
			broken, outage := during(t, at, cause)
			require.NoError(t, broken.Verify(t.Context()))
			outage.failed.Store(1)
			refuses(want, broken)
		}
		elsewhere := intent("M-0")
		elsewhere.Service = "https://old.example.com/api/v1"
		_, unmigrated := open(t, at.another(t))
		refuses(noTables, unmigrated)
		if at.Dialect == sqljournal.SQLite {
			fails(readOnly, errors.New("attempt to write a readonly database (8)"+quoted))
			fails("the file is not a database", errors.New("file is not a database (26)"+quoted))
			fails("the disk of the database is full", errors.New("database or disk is full (13)"+quoted))
			fails("a table or a column is missing: check which database and schema this is",
				errors.New("no such table: t (1)"+quoted))
		} else {
			fails(readOnly, sqlState("25006"))
			fails("the disk of the database is full", sqlState("53100"))
			fails("a permission is missing: see Permissions in the documentation of sqljournal", sqlState("42501"))
			fails("a table or a column is missing: check which database and schema this is", sqlState("42P01"))
		}
		fails("check its database", errors.New("no"+quoted))
		fails("it did not return in time", fmt.Errorf("%w%s", context.DeadlineExceeded, quoted))
		begun(t, journal, elsewhere)
		refuses("the journal belongs to the service at https://old.example.com/api/v1, and the call is for "+
			server.URL+": use a journal of its own for each, or SetService if the service has moved", journal)
		require.NoError(t, db.Close())
		refuses("the database was closed: close it when the last call has returned", journal)
	})
}

// A reference is either refused by Void or never sent again: one that no call can have,
// as with a space that was pasted, would leave the real one free.
func TestVoidRefusesWhatTheClientRefuses(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-REF-77"
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		server := cardwiretest.NewServer(t)
		client := server.Client(cardwire.WithJournal(journal))
		void := func(op, reference, by string) error {
			return journal.Void(t.Context(), cardwire.Intent{Op: op, Reference: reference}, by, "canceled")
		}
		for what, reference := range map[string]string{
			"":                       "",
			"white space":            canary + " ",
			"\t":                     "\t" + canary,
			"\n":                     canary + "\n",
			"no-break space":         canary + "\u00a0",
			"an invisible character": canary + "\u200b",
			"a control character":    canary + "\x00" + canary,
			"UTF-8":                  canary + "\xff",
			"128 bytes":              strings.Repeat(canary, 10),
		} {
			_, err := client.CreateTransfer(t.Context(), order(reference))
			require.ErrorIs(t, err, cardwire.ErrInvalidParams, what)
			err = void(transfer, reference, "Ada")
			require.ErrorIs(t, err, cardwire.ErrInvalidParams, what)
			assert.NotContains(t, err.Error(), canary, what)
			require.ErrorIs(t, void(reference, "M-1", "Ada"), cardwire.ErrInvalidParams, what)
		}
		assert.ErrorContains(t, void(transfer, "M-1 ", "Ada"), "reference begins or ends with white space")
		assert.EqualError(t, void("", "M-1", "Ada"), "cardwire: invalid parameters: op is empty")
		assert.EqualError(t, void(transfer, "M-1", ""), "cardwire: invalid parameters: by is empty")
		assert.Empty(t, rows(t, db, at))
		for _, reference := range []string{"M-1", "M 1/a", strings.Repeat("M", 128)} {
			require.NoError(t, void(transfer, reference, "Ada"))
			_, err := client.CreateTransfer(t.Context(), order(reference))
			assert.Equal(t, "taken-not sent", ending(err))
		}
		assert.Empty(t, server.Requests())
	})
}
