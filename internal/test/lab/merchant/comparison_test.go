//go:build unix

package merchant

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contenders are the rows of the table in docs/merchant.md.
var contenders = []struct {
	client      string
	journal     bool
	retryErrors bool
	onError     string
}{
	{clientCardwire, true, false, "does what `NextStep` says, with a journal"},
	{clientCardwire, false, false, "does what `NextStep` says, without one"},
	{clientRetrying, false, false, "fails the order"},
	{clientRetrying, false, true, "retries it, 4 times"},
	{clientIdempotent, false, false, "fails the order"},
	{clientIdempotent, false, true, "retries it, 4 times"},
}

// The same merchant, with its table and without crashes, with other clients. What the
// documentation says of them is what comes out, but for chance and the deadline.
func TestComparison(t *testing.T) {
	documented := documentedTable(t)
	require.Len(t, documented, len(contenders))
	for i, c := range contenders {
		p := proof(t, orders(300))
		p.Client, p.RetryErrors, p.Timeout, p.Workers = c.client, c.retryErrors, 2*time.Second, 48
		if c.journal {
			p.Journal = onSQLite(t)
		}
		r := run(t, p)
		t.Logf("| %s | %s | %d | %d | %d |", c.client, c.onError, r.Orders, r.Twice, r.FailedPaid)

		want := documented[i]
		assert.Equal(t, []string{c.client, c.onError}, want.words)
		if c.client == clientCardwire {
			assert.Zero(t, r.Flaws())
			assert.Zero(t, want.twice+want.failedPaid)
			continue
		}
		const margin = 0.1 // of all orders
		share := func(n, of int) float64 { return float64(n) / float64(of) }
		assert.InDelta(t, share(want.twice, want.orders), share(r.Twice, r.Orders), margin, "paid twice")
		assert.InDelta(t, share(want.failedPaid, want.orders), share(r.FailedPaid, r.Orders), margin, "failed though paid")
	}
}

type documentedRow struct {
	words                     []string
	orders, twice, failedPaid int
}

// documentedTable reads the rows whose last three columns are numbers.
func documentedTable(t *testing.T) (rows []documentedRow) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/merchant.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 {
			continue
		}
		var numbers [3]int
		for i, cell := range cells[2:] {
			numbers[i], err = strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(cell), ",", ""))
			if err != nil {
				break
			}
		}
		if err != nil {
			continue
		}
		words := []string{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])}
		rows = append(rows, documentedRow{words, numbers[0], numbers[1], numbers[2]})
	}
	return rows
}
