package sqljournal_test

import (
	"context"
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
		_, err = client.CreateTransfer(t.Context(), order("M-1"))
		assert.Equal(t, "taken-executed", ending(err))
		assert.Equal(t, 1, server.Executions(transfer, "M-1"))
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
