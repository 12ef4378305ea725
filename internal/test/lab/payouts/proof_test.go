//go:build unix

package payouts

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var flagOrders = flag.Int("orders", 0, "how many orders there are, at 30 a second; 0: 200")

var flagFailover = flag.String("failover", "", "a standby takes over: whole, or behind the server that is gone")

// Whatever happens to replicas and database, each order ends once.
func TestProof(t *testing.T) {
	if os.Getenv("CARDWIRE_TEST_POSTGRES") == "" && os.Getenv("CI") != "true" { // it would install PostgreSQL
		t.Skip("CARDWIRE_TEST_POSTGRES is not set: run ../../../sqljournal/scripts/postgres go test ./payouts")
	}
	p := Proof{Dir: t.TempDir(), Orders: 200, Rate: 20, Restarts: 1}
	if *flagOrders > 0 {
		p.Orders, p.Rate, p.Restarts = *flagOrders, 30, 2
	}
	p.Failover = map[string]Failover{"whole": Whole, "behind": Behind}[*flagFailover]
	if p.Failover != None {
		p.Restarts = 0
	}
	r, flaws, err := p.Run(t.Context())
	require.NoError(t, err)
	t.Logf("%+v", r)
	assert.Empty(t, flaws[:min(len(flaws), 20)])
	assert.Zero(t, r.Flaws())
	assert.Equal(t, p.Orders, r.Submitted+r.Failed)
	assert.Equal(t, p.Restarts, r.Restarts)
	assert.Positive(t, r.Kills+r.Stops)
	assert.Greater(t, r.Clicks.Load(), int64(p.Orders))
}
