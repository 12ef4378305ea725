package replay

import (
	"errors"
	"flag"
	"io"
	"log"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
)

var flagRaces = flag.Int("races", 1500, "how many calls TestRaces makes")

func TestMain(m *testing.M) {
	// net/http logs what arrives unasked on a connection, as here it must.
	log.SetOutput(io.Discard) //nolint:forbidigo // no other way to keep it out of the tests' output
	goleak.VerifyTestMain(m)
}

// patience bounds waits that are not to be long, and tick is how often is looked.
const (
	patience = 20 * time.Second
	tick     = time.Millisecond
)

// slack is for what the runtime opens once, at the first connection.
const slack = 4

// flat has the test fail if it leaves file descriptors open. It is to be called
// first, so that everything else is closed by then, and by tests that do not run
// beside others, whose descriptors it would count.
func flat(t *testing.T) {
	t.Helper()
	before, err := descriptors()
	if err != nil {
		t.Run("descriptors", func(t *testing.T) { t.Skipf("this system has no list of the open descriptors: %v", err) })
		return
	}
	t.Cleanup(func() {
		after := 0
		assert.Eventually(t, func() bool {
			after, err = descriptors()
			return err == nil && after <= before+slack
		}, patience, tick, "file descriptors are left open")
		t.Logf("open descriptors: %d before, %d after", before, after)
	})
}

func descriptors() (int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	return len(entries), err
}

// outcome is what a call says of itself in one word.
func outcome(err error) string {
	var failure *cardwire.Error
	switch {
	case err == nil:
		return "success"
	case errors.As(err, &failure):
		return failure.Outcome.String()
	}
	return "no outcome"
}

// statusOf is that of the last response; 0: there was none, or it was a success.
func statusOf(err error) int {
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		return failure.HTTPStatus
	}
	return 0
}

// newClient retries as by default, without the waits.
func newClient(t *testing.T, base string, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	policy := cardwire.DefaultRetryPolicy()
	policy.MinDelay, policy.MaxDelay = 1, 1
	c, err := cardwire.New(base, key, append([]cardwire.Option{cardwire.WithRetry(policy)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

const (
	key       = "replay-key"
	maxReads  = 3 // requests of a read, by the default policy
	maxWrites = 3 // connections sought for a write, if nothing was ever sent
)
