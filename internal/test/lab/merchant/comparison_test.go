//go:build unix

package merchant

import (
	"context"
	"maps"
	weak "math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
)

// The same merchant with other clients, which return a success or an error: what an error
// means is for the merchant to say. The result is that of docs/merchant.md, but for chance and the deadline.
func TestComparison(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/merchant.md")
	require.NoError(t, err)
	for name, caller := range map[string]*chaos.Other{
		"go-retryablehttp": chaos.Retrying(), "Idempotency-Key": chaos.Idempotent(),
	} {
		for onError, step := range map[string]cardwire.Step{
			"fails the order": cardwire.StepFail, "retries it, 4 times": cardwire.StepRetry,
		} {
			counts := strings.Repeat(` \| ([\d,]+)`, 3)
			row := regexp.MustCompile(regexp.QuoteMeta("| "+name+" | "+onError) + counts)
			documented := row.FindStringSubmatch(string(text))
			require.NotNil(t, documented, row)
			w := newSetting(t, *flagOrders, cardwire.NewMemoryJournal())
			w.journal, w.lease, w.call = nil, time.Hour, plain(caller, w.service.Base(), step)
			w.start(func(ctx context.Context) { work(ctx, w.merchant) })
			w.compare()
			caller.Close()
			for i, n := range []int{w.Twice, w.FailedPaid} {
				const margin = 0.1 // of all orders
				share := number(t, documented[2+i]) / number(t, documented[1])
				assert.InDelta(t, share, float64(n)/float64(w.number), margin, "paid twice, failed though paid")
			}
			t.Logf("| %s | %s | %d | %d | %d |", name, onError, w.number, w.Twice, w.FailedPaid)
		}
	}
}

// number reads one like "1,177".
func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	require.NoError(t, err)
	return n
}

// plain is the caller of a client that knows successes and errors only. Each call meets a
// kind of its own, half of them none, although these clients reuse connections.
func plain(c *chaos.Other, bases map[string]string, onError cardwire.Step) caller {
	kinds := slices.Sorted(maps.Keys(bases))
	return func(ctx context.Context, p cardwire.TransferParams) advice {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		base := bases["ok"]
		if weak.IntN(2) == 0 {
			base = bases[kinds[weak.IntN(len(kinds))]]
		}
		if v, _ := c.Call(ctx, base, chaos.Order{Op: operation, Reference: p.MerchantOrderNo}); v == chaos.Success {
			return advice{step: cardwire.StepDone}
		}
		return advice{step: onError}
	}
}
