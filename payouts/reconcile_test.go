package payouts

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// A statement is of transfers, of this account, and is recorded under the name of who did it.
func TestWhatIsNoStatementIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.loseResponse("A-1", true)
		s.loseResponse("A-2", true)
		now := time.Now()
		file := statement.File{From: now.Add(-time.Hour), Until: now, Exported: now,
			Statuses: map[string]sqljournal.StatementStatus{"done": sqljournal.StatementExecuted}}
		none := func(sqljournal.Finding, error) {}
		reconcile := func(by, name string, do func(sqljournal.Finding, error)) error {
			at := now.UTC().Add(-time.Second).Format(time.RFC3339)
			st := file.Statement(strings.NewReader("order,amount,status,time\nA-1,12.50,done," + at +
				"\nA-2,12.50,done," + at + "\n"))
			return s.Reconcile(t.Context(), name, st, by, by, do)
		}
		other, err := New(s.db, s.dialect, Config{BaseURL: s.base, APIKey: "k", Account: "another"})
		require.NoError(t, err)
		require.ErrorContains(t, other.Reconcile(t.Context(), "a file", file.Statement(nil), "", "", none),
			`and not for `+s.base+`, account "another"`)
		require.ErrorIs(t, reconcile(" Ada", "a file", none), cardwire.ErrInvalidParams, "the journal refuses the name")
		require.ErrorIs(t, reconcile("", "a\x00file", none), cardwire.ErrInvalidParams)
		require.ErrorContains(t, s.Reconcile(t.Context(), "a file", sqljournal.Statement{Op: cardwire.OpFreezeCard},
			"", "", none),
			"the statement must be of transfers")
		assert.Empty(t, valuesOf[string](s, `SELECT note FROM @payouts_history`))
		report := statement.NewReport()
		require.NoError(t, reconcile("Ada", "a file", func(f sqljournal.Finding, left error) {
			s.do(`UPDATE @intents SET calls = calls + 1 WHERE reference = 'A-2'`) // somebody was faster
			report.Add(f, left)
		}))
		assert.Equal(t, []int{2, 1}, []int{report.Certain, report.Left})
	})
}
