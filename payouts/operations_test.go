package payouts

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestRecordPaid(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("waits")
	s.loseResponse("lost", true)
	for _, number := range []string{"not in the journal", "waits", "lost"} {
		for range 2 {
			require.NoError(t, recordPaid(t.Context(), s.journal, number, "T-"+number, "Ada", "ticket 7"))
		}
		e, err := s.journal.Lookup(t.Context(), operation, number)
		require.NoError(t, err)
		assert.Equal(t, []any{cardwire.OutcomeExecuted, "T-" + number}, []any{e.Outcome, e.ServiceID})
		history, err := s.journal.History(t.Context(), operation, number)
		require.NoError(t, err)
		last := history[len(history)-1]
		assert.Equal(t, []any{cardwire.OutcomeExecuted, "Ada", "ticket 7"}, []any{last.Outcome, last.By, last.Note})
	}
	require.ErrorIs(t, recordPaid(t.Context(), s.journal, "pasted ", "T-1", "Ada", ""), cardwire.ErrInvalidParams)
}

func TestSupportIsTold(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.loseResponse("M-1", true)
	require.NoError(t, recordPaid(t.Context(), s.journal, "M-1", "T-1", "Ada", "ticket 7"))
	var out bytes.Buffer
	require.NoError(t, tell(t.Context(), &out, s.journal, "M-1"))
	assert.Regexp(t, `\AM-1, 12.50 EUR: executed, service ID "T-1", in progress false, closed false
20\S+Z reserved: not_sent "" ""
20\S+Z begun: unknown "" ""
20\S+Z ended: unknown "" "unknown outcome: connection reset by the peer"
20\S+Z resolved: executed "Ada" "ticket 7"
\z`, out.String())
	require.ErrorIs(t, tell(t.Context(), &out, s.journal, "M-9"), sqljournal.ErrNoIntent)
}
