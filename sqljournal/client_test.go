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

// afterRestart is a client that remembers nothing, on its own journal.
func afterRestart(
	t *testing.T, at place, server *cardwiretest.Server, opts ...cardwire.Option,
) (*cardwire.Client, *sqljournal.Journal) {
	t.Helper()
	_, journal := open(t, at)
	return server.Client(append(opts, cardwire.WithJournal(journal))...), journal
}

// sent sends the order, and returns how the call ended.
func sent(t *testing.T, client *cardwire.Client, reference string) string {
	t.Helper()
	_, err := client.CreateTransfer(t.Context(), order(reference))
	return ending(err)
}

// The money went out, the response did not come back.
func TestAnOrderWhoseResponseWasLostIsNotSentAgain(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		server := cardwiretest.NewServer(t)
		server.Fail(transfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
		first, _ := afterRestart(t, at, server)
		require.Equal(t, "unknown", sent(t, first, "M-1"))

		second, journal := afterRestart(t, at, server)
		require.Equal(t, "taken-unknown", sent(t, second, "M-1"))
		for e, err := range journal.Unresolved(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, journal.Resolve(t.Context(), e.Intent, paid(server.Ledger()[0].ID)))
		}
		third, _ := afterRestart(t, at, server)
		assert.Equal(t, "taken-executed", sent(t, third, "M-1"))
		assert.Len(t, server.Requests(), 1)
	})
}

// The request was lost: once the service has said so, the order may be sent.
func TestAnOrderThatWasNotExecutedIsSentAfterItIsResolved(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		server := cardwiretest.NewServer(t)
		server.Fail(transfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
		first, journal := afterRestart(t, at, server)
		require.Equal(t, "unknown", sent(t, first, "M-1"))
		execute(t, db, "UPDATE "+at.Table+" SET send_by = time, settled_by = time") // time passes
		require.NoError(t, journal.Resolve(t.Context(), lookup(t, journal, "M-1").Intent, notSent()))
		require.Equal(t, "success", sent(t, first, "M-1"))
		assert.Equal(t, []string{"M-1 executed 2 " + server.Ledger()[0].ID}, rows(t, db, at))
	})
}

// Canceling is recorded, and may be done again: the last call is on record, and all are in
// the history.
func TestACancelingIsRecordedEachTime(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		server := cardwiretest.NewServer(t)
		const id = "6f1ab0f2-3c53-4f0c-9f0a-2d8f3c1f7a10"
		client, _ := afterRestart(t, at, server)
		for range 2 {
			server.AddFailedOperation(id, "freeze")
			require.NoError(t, client.CancelOperation(t.Context(), id))
		}
		history, err := journal.History(t.Context(), "CardOperation", id)
		require.NoError(t, err)
		assert.Len(t, history, 4)
		assert.NotEqual(t, history[1].Call, history[3].Call)
	})
}

// The database forgot the order while it was being paid: the client says so, and the
// order is not paid again.
func TestAnOrderThatTheDatabaseForgotIsNotSentAgain(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		server := cardwiretest.NewServer(t)
		var told error
		forget := func(ctx context.Context, _ cardwire.CallInfo, _ cardwire.Attempt) {
			_, err := db.ExecContext(ctx, "DELETE FROM "+at.Table)
			assert.NoError(t, err)
		}
		client, _ := afterRestart(t, at, server, cardwire.WithObserver(cardwire.Observer{
			Attempt:      forget,
			JournalError: func(_ context.Context, _ cardwire.CallInfo, err error) { told = err },
		}))
		require.Equal(t, "success", sent(t, client, "M-1"))
		require.ErrorIs(t, told, sqljournal.ErrRecordedAgain)
		after, _ := afterRestart(t, at, server)
		assert.Equal(t, "taken-executed", sent(t, after, "M-1"))
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
			assert.Equal(t, "taken-not sent", sent(t, client, reference))
		}
		assert.Empty(t, server.Requests())
	})
}
