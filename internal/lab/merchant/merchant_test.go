package merchant

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var flagOrders = flag.Int("orders", 0, "how many orders there are; 0: a few hundred")

// A test that needs other processes starts this program again.
func TestMain(m *testing.M) {
	if os.Getenv(TaskVariable) != "" {
		os.Exit(Work(context.Background()))
	}
	os.Exit(m.Run())
}

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	journal, err := OnSQLite(t.Context(), dir)
	require.NoError(t, err)
	p := Proof{
		Dir: dir, Orders: orders(300), Client: clientCardwire, Journal: journal,
		Processes: 3, Kill: true, Pause: true, Workers: 16,
		Timeout: 400 * time.Millisecond, Grace: 1500 * time.Millisecond, Lease: 3 * time.Second, Limit: 4, Seed: 1,
	}
	r, err := p.Run(t.Context())
	require.NoError(t, err)
	t.Log(r)
	assert.Zero(t, r.Flaws())
}

func orders(few int) int {
	if *flagOrders > 0 {
		return *flagOrders
	}
	return few
}
