package journal_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// What a person or a statement recorded has no body: it is another order's where the money differs as a value.
func TestWhatHasNoBodyIsComparedByItsMoney(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		amount, currency string // of the record
		want             string // of Begin and of Reserve
	}{
		"the same value":   {"12.5", "eur", "executed"},
		"nothing is known": {"0", "", "executed"},
		"no currency":      {"12.50", "", "executed"},
		"another amount":   {"12.51", "EUR", "executed, other body"},
		"another currency": {"12.50", "USD", "executed, other body"},
		"only a currency":  {"0", "USD", "executed, other body"},
	} {
		r := journal.Record{Intent: intent("", ""), Outcome: cardwire.OutcomeExecuted, EndedAt: at(1)}
		r.Amount, r.Currency = decimal.RequireFromString(tc.amount), tc.currency
		assert.Equal(t, tc.want, word(second(r.Begin(intent("b", "b-1"), journal.Hold{}, at(12)))), name)
		next, err := r.Reserve(intent("", "b-1"), journal.Hold{}, at(12))
		assert.Equal(t, tc.want, word(err), name)
		if tc.want == "executed" { // it is the order's now, with what it is of
			r.Amount, r.Currency = decimal.New(1250, -2), "EUR"
			assert.True(t, next.Reserved && next.BodySHA256 == "b-1" && next.Amount.Equal(r.Amount) &&
				next.Currency != "", name)
		}
	}
}

// What a person recorded as executed is corrected to refused, and is never sent again under its number.
func TestWhatWasExecutedIsNeverFree(t *testing.T) {
	t.Parallel()
	executed := journal.Record{Intent: intent("a", "b-1"), Outcome: cardwire.OutcomeExecuted, EndedAt: at(12)}
	denial := journal.Resolution{Outcome: cardwire.OutcomeNotSent, By: "Ada", AsOf: at(13)}
	next, err := executed.Resolve(executed.Intent, denial, "", journal.Hold{}, at(13))
	require.EqualError(t, err, "cardwire: it was recorded as executed: record it as refused, and give the order a "+
		"new number")
	assert.Equal(t, executed, next)
	denial.Outcome = cardwire.OutcomeRefused
	next, err = executed.Resolve(executed.Intent, denial, "", journal.Hold{}, at(13))
	require.NoError(t, err)
	assert.True(t, next.IsClosed())
}

// From when on a denial is believed, which is what the page of an order shows.
func TestDenyFrom(t *testing.T) {
	t.Parallel()
	unknown := journal.Record{Intent: intent("a", "b-1")}
	paid := journal.Record{Intent: intent("a", "b-1"), Outcome: cardwire.OutcomeExecuted, EndedAt: at(12)}
	free := journal.Record{Intent: intent("a", "b-1"), Outcome: cardwire.OutcomeNotSent, EndedAt: at(12)}
	held := journal.Hold{Since: at(5), Floor: at(16), By: "Ada"}
	for name, tc := range map[string]struct {
		r    journal.Record
		h    journal.Hold
		from int
		why  string // of an earlier one
	}{
		"unknown": {unknown, journal.Hold{}, 11,
			"cardwire: the service may still execute it until 2026-01-31T12:11:00Z: ask again then"},
		"a person said executed": {paid, journal.Hold{}, 12,
			"cardwire: a person recorded it as executed at 2026-01-31T12:12:00Z: ask the service again"},
		"on hold": {unknown, held, 16, "cardwire: the journal is on hold, or was, and a call that it has forgotten " +
			"may be executed until 2026-01-31T12:16:00Z: ask the service again then"},
		"free, on hold": {free, held, 16, "cardwire: the journal is on hold, or was, and a call that it has " +
			"forgotten may be executed until 2026-01-31T12:16:00Z: ask the service again then"},
	} {
		assert.Equal(t, at(tc.from), tc.r.DenyFrom(tc.h), name)
		denial := journal.Resolution{Outcome: cardwire.OutcomeRefused, By: "Ada", AsOf: at(tc.from).Add(-1)}
		err := second(tc.r.Resolve(tc.r.Intent, denial, "", tc.h, at(20)))
		require.EqualError(t, err, tc.why, name)
		assert.Equal(t, tc.h.By != "", word(err) == "on hold", name)
		denial.AsOf = at(tc.from)
		require.NoError(t, second(tc.r.Resolve(tc.r.Intent, denial, "", tc.h, at(20))), name)
	}
}

// Somebody was paid by a call of another body than the order that has the number now: no one may take the one for the
// other, or send it.
func TestAReservedRowKeepsItsBody(t *testing.T) {
	t.Parallel()
	free := journal.Record{
		Intent: intent("a", "b-1"), Outcome: cardwire.OutcomeRefused, Reserved: true, EndedAt: at(1),
	}
	late := intent("z", "b-2")
	late.SettledBy = at(14)
	result := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-9"}
	next, err := free.End(late, result, false, false, journal.Hold{}, at(2))
	assert.Equal(t, "unknown", word(err))
	want := free
	want.Outcome, want.Closed, want.SettledBy, want.EndedAt = cardwire.OutcomeUnknown, true, at(14), at(2)
	assert.Equal(t, want, next)

	paid := free
	paid.Outcome, paid.Proved, paid.ServiceID = cardwire.OutcomeExecuted, true, "T-1"
	next, err = paid.End(late, result, false, false, journal.Hold{}, at(2))
	assert.Equal(t, "executed", word(err))
	assert.Equal(t, paid, next)
}
