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

// clientAfterRestart is a client that remembers nothing, on its own journal.
func clientAfterRestart(t *testing.T, at place, server *cardwiretest.Server, opts ...cardwire.Option) (*cardwire.Client, *sqljournal.Journal) {
	t.Helper()
	_, journal := open(t, at)
	return server.Client(append(opts, cardwire.WithJournal(journal))...), journal
}

func sent(t *testing.T, client *cardwire.Client, reference string) string {
	t.Helper()
	_, err := client.CreateTransfer(t.Context(), order(reference))
	return ending(err)
}

// The money went out, the response did not come back.
func TestAnOrderWhoseResponseWasLostIsNotSentAgain(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		server := cardwiretest.NewServer(t)
		server.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
		first, _ := clientAfterRestart(t, at, server)
		require.Equal(t, "unknown", sent(t, first, "M-1"))

		second, journal := clientAfterRestart(t, at, server)
		require.Equal(t, "taken-unknown", sent(t, second, "M-1"))
		require.Equal(t, []string{"M-1"}, references(t, journal, 0))
		assert.Len(t, server.Requests(), 1)

		require.NoError(t, resolved(t, journal, "M-1", cardwire.OutcomeExecuted))
		third, _ := clientAfterRestart(t, at, server)
		assert.Equal(t, "taken-executed", sent(t, third, "M-1"))
		assert.Equal(t, 1, server.Executions("CreateTransfer", "M-1"))
		assert.Equal(t, []string{"executed 1 true"}, rowsOf(t, db, at.Table))
	})
}

// The request was lost: once the service has said so, the order may be sent.
func TestAnOrderThatWasNotExecutedIsSentAfterItIsResolved(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		server := cardwiretest.NewServer(t)
		server.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
		first, journal := clientAfterRestart(t, at, server)
		require.Equal(t, "unknown", sent(t, first, "M-1"))
		require.NoError(t, resolved(t, journal, "M-1", cardwire.OutcomeNotSent))
		require.Equal(t, "success", sent(t, first, "M-1"))
		id := server.Ledger()[0].ID
		assert.Equal(t, []string{"executed 2 true " + id}, rowsOf(t, db, at.Table))
	})
}

// A service that responds to a retry as it did to the first may be asked again.
func TestAServiceThatDeduplicatesResolvesARetry(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		server := cardwiretest.NewServer(t, cardwiretest.WithDeduplication())
		server.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
		server.Fail("CreateTransfer", cardwiretest.Fault{Status: 422}, 1)
		profile := cardwire.DefaultProfile()
		profile.ServerDeduplicates = true
		for _, want := range []string{"unknown", "unknown", "success", "taken-executed"} {
			_, journal := open(t, at, sqljournal.WithRepeats())
			client := server.Client(cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile }), cardwire.WithJournal(journal))
			require.Equal(t, want, sent(t, client, "M-1"))
		}
		assert.Equal(t, 1, server.Executions("CreateTransfer", "M-1"))
		id := server.Ledger()[0].ID
		assert.Equal(t, []string{"executed 3 true " + id}, rowsOf(t, db, at.Table))
	})
}

// What Begin does not record first is not sent.
func TestWithoutWithRepeatsNothingIsRetried(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		server := cardwiretest.NewServer(t, cardwiretest.WithDeduplication())
		server.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
		profile := cardwire.DefaultProfile()
		profile.ServerDeduplicates = true
		for _, want := range []string{"unknown", "taken-unknown"} {
			client, _ := clientAfterRestart(t, at, server, cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile }))
			require.Equal(t, want, sent(t, client, "M-1"))
		}
		assert.Len(t, server.Requests(), 1)
	})
}

// Not even a service that deduplicates is sent another body.
func TestAnotherBodyIsNotSent(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		server := cardwiretest.NewServer(t, cardwiretest.WithDeduplication())
		server.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
		profile := cardwire.DefaultProfile()
		profile.ServerDeduplicates = true
		client, _ := clientAfterRestart(t, at, server, cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile }))
		require.Equal(t, "unknown", sent(t, client, "M-1"))

		_, journal := open(t, at, sqljournal.WithRepeats())
		fresh := server.Client(cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile }), cardwire.WithJournal(journal))
		other := order("M-1")
		other.SenderAddress = "another street"
		_, err := fresh.CreateTransfer(t.Context(), other)
		require.Equal(t, "taken-unknown", ending(err), "the order may have been executed")
		require.ErrorIs(t, err, cardwire.ErrOtherBody)
		assert.Len(t, server.Requests(), 1)
	})
}

// Cancelling is recorded, and may be done again.
func TestACancellingIsRecordedEachTime(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		server := cardwiretest.NewServer(t)
		const id = "6f1ab0f2-3c53-4f0c-9f0a-2d8f3c1f7a10"
		client, _ := clientAfterRestart(t, at, server)
		for range 2 {
			server.AddFailedOperation(id, "freeze")
			require.NoError(t, client.CancelOperation(t.Context(), id))
		}
		assert.Equal(t, []string{"executed 1 true", "executed 1 true"}, rowsOf(t, db, at.Table))
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
		client, journal := clientAfterRestart(t, at, server, cardwire.WithObserver(cardwire.Observer{
			Attempt:      forget,
			JournalError: func(_ context.Context, _ cardwire.CallInfo, err error) { told = err },
		}))
		require.Equal(t, "success", sent(t, client, "M-1"))
		require.ErrorIs(t, told, sqljournal.ErrRecordedAgain)
		assert.Equal(t, []string{"recorded again: executed"}, kinds(t, journal))
		after, _ := clientAfterRestart(t, at, server)
		assert.Equal(t, "taken-executed", sent(t, after, "M-1"))
		assert.Equal(t, 1, server.Executions("CreateTransfer", "M-1"))
	})
}

// A reference is either refused by Void or never sent again: one that no call can have,
// as with a space that was pasted, would leave the real one free.
func TestVoidRefusesWhatTheClientRefuses(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		journal, database := during(t, at, nil)
		server := cardwiretest.NewServer(t)
		client := server.Client(cardwire.WithJournal(journal))

		database.before = func() { assert.Fail(t, "the database was asked") }
		for what, reference := range map[string]string{
			"":                       "",
			"white space":            canaryReference + " ",
			"\t":                     "\t" + canaryReference,
			"\n":                     canaryReference + "\n",
			"no-break space":         canaryReference + "\u00a0",
			"an invisible character": canaryReference + "\u200b",
			"a control character":    canaryReference + "\x00" + canaryReference,
			"UTF-8":                  canaryReference + "\xff",
			"128 bytes":              strings.Repeat(canaryReference, 10),
		} {
			_, err := client.CreateTransfer(t.Context(), order(reference))
			require.ErrorIs(t, err, cardwire.ErrInvalidParams, what)
			err = journal.Void(t.Context(), transfer, reference, "Ada", "cancelled")
			require.ErrorIs(t, err, cardwire.ErrInvalidParams, what)
			assert.NotContains(t, err.Error(), canaryReference, what)
			require.ErrorIs(t, journal.Void(t.Context(), reference, "M-1", "Ada", "cancelled"), cardwire.ErrInvalidParams, what)
		}
		assert.EqualError(t, journal.Void(t.Context(), transfer, "M-1 ", "", ""), "cardwire: invalid parameters: reference begins or ends with white space")
		assert.EqualError(t, journal.Void(t.Context(), "", "M-1", "", ""), "cardwire: invalid parameters: op is empty")
		assert.Zero(t, database.asked.Load())
		assert.Empty(t, rowsOf(t, db, at.Table))

		database.before = nil
		for _, reference := range []string{"M-1", "M 1/a", strings.Repeat("M", 128)} {
			require.NoError(t, journal.Void(t.Context(), transfer, reference, "Ada", "cancelled"))
			assert.Equal(t, "taken-not sent", sent(t, client, reference))
		}
		assert.Empty(t, server.Requests())
	})
}
