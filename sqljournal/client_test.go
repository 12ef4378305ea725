package sqljournal_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Who is told that nothing was sent is told why, and what to do, without a word of the
// database, which may quote what it was given.
func TestTheClientSaysWhatIsWrongWithTheDatabase(t *testing.T) {
	t.Parallel()
	const quoted = ": 4111111111111111"
	noTables := "this is not the journal's database: its tables are missing: " +
		"check which database and schema this is; a new journal is created by Migrate"
	readOnly := "the database is read-only: check whether it is a standby, and whose file it is"
	stopped := "the statement was canceled or did not return in time: check for a session that locks the row"
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		server := cardwiretest.NewServer(t)
		refuses := func(want string, journal *sqljournal.Journal) {
			t.Helper()
			_, err := server.Client(cardwire.WithJournal(journal)).CreateTransfer(t.Context(), cardwire.TransferParams{
				MerchantOrderNo: "M-1", PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
			})
			assert.EqualError(t, err, "cardwire: CreateTransfer M-1: not sent: the journal did not record the intent: "+
				want+": call again once that is corrected")
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
		fails(stopped, context.DeadlineExceeded)
		if at.Dialect == sqljournal.SQLite {
			fails(readOnly, errors.New("attempt to write a readonly database (8)"+quoted))
			fails("the file is not an SQLite database: check its path",
				errors.New("file is not a database (26)"+quoted))
			fails("the disk of the database is full", errors.New("database or disk is full (13)"+quoted))
			fails("a table or a column is missing: check which database and schema this is",
				errors.New("no such table: t (1)"+quoted))
		} else {
			fails(readOnly, sqlState("25006"))
			slash := at
			slash.Source = strings.Replace(at.Source, "postgres://", "postgres://shop:a/b@", 1)
			_, unreadable := open(t, slash)
			refuses("the address of the database cannot be read: "+
				"write /, @, :, ? and % in a password as %2F, %40, %3A, %3F and %25", unreadable)
			fails("the disk of the database is full", sqlState("53100"))
			fails(stopped, sqlState("57014"))
			fails("a permission is missing: see Permissions in the documentation of sqljournal", sqlState("42501"))
			fails("a table or a column is missing: check which database and schema this is", sqlState("42P01"))
		}
		begun(t, journal, elsewhere)
		refuses("the journal belongs to the service at https://old.example.com/api/v1, and the call is for "+
			server.URL+": check the base URL, and use a separate journal for each service, "+
			"or SetService if it has changed", journal)
		require.NoError(t, db.Close())
		refuses("the database was closed: close it when the last call has returned", journal)
	})
}

// Void refuses what the client refuses, as a reference with a space that was pasted: it would leave the
// real one free.
func TestVoidRefusesWhatTheClientRefuses(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-REF-77"
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		void := func(op cardwire.Op, reference, by string) error {
			return j.Void(t.Context(), cardwire.Intent{Op: op, Reference: reference}, by, "canceled")
		}
		for what, wrong := range map[string]string{"is empty": "", "begins or ends with white space": canary + " "} {
			for name, err := range map[string]error{
				"op":        void(cardwire.Op(wrong), "M-1", "Ada"),
				"reference": void(transfer, wrong, "Ada"),
				"by":        void(transfer, "M-1", wrong),
			} {
				assert.EqualError(t, err, "cardwire: invalid parameters: "+name+" "+what)
			}
		}
		for note, want := range map[string]string{"a\x00b": "contains a NUL character", "\xff": "is not valid UTF-8"} {
			want = "cardwire: invalid parameters: note " + want
			voided := cardwire.Intent{Op: transfer, Reference: "M-1"}
			require.EqualError(t, j.Void(t.Context(), voided, "Ada", note), want)
			require.EqualError(t, journal.NewMemory().Void(t.Context(), voided, "Ada", note), want)
		}
		assert.Empty(t, rows(t, db, at))
		longest := strings.Repeat("M", 128)
		require.NoError(t, void(transfer, longest, "Ada"))
		assert.Equal(t, "not_sent", word(j.Begin(t.Context(), intent(longest))))
	})
}
