package sqljournal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// Which rows a call may begin is one expression in SQL, which says of each row what the rules say.
func TestTheStatementBeginsWhatTheRulesBegin(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		var rows []string
		n, ended := 0, map[string]journal.Record{}
		for _, o := range []cardwire.Outcome{
			cardwire.OutcomeUnknown, cardwire.OutcomeNotSent, cardwire.OutcomeRefused, cardwire.OutcomeExecuted,
		} {
			for _, hash := range []string{"", body, "another"} {
				for _, amount := range []string{"", "12.5", "12.51"} {
					for _, currency := range []string{"", "eur", "USD"} {
						for _, closed := range []bool{false, true} {
							n++
							reference := fmt.Sprint("M-", n)
							r := journal.Record{Intent: settled(reference), Outcome: o, Closed: closed,
								EndedAt: time.Now()}
							r.BodySHA256, r.Currency, r.Amount = hash, currency, decimal.Decimal{}
							if amount != "" {
								r.Amount = decimal.RequireFromString(amount)
							}
							ended[reference] = r
							rows = append(rows, fmt.Sprintf("UPDATE %s SET state = '%s', body_sha256 = '%s', "+
								"amount = '%s', currency = '%s', closed = (1 = %d), ended_at = time "+
								"WHERE reference = '%s'",
								at.Table, strings.ReplaceAll(o.String(), " ", "_"), hash, amount, currency,
								map[bool]int{true: 1}[closed], reference))
						}
					}
				}
			}
		}
		for reference := range ended {
			begun(t, j, settled(reference))
		}
		execute(t, db, rows...)
		for reference, r := range ended {
			i := intent(reference)
			_, want := r.Begin(i, journal.Hold{}, time.Now())
			require.Equal(t, word(want), word(j.Begin(t.Context(), i)), "%+v", r)
		}
	})
}
