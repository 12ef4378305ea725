package chaos

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var flagEach = flag.Int("each", 20, "how many calls of each kind TestNothingIsLeftOpen makes")

// Toxiproxy's goroutines outlive its proxies: those of a toxic that waits for a
// while, and those that hold bytes for somebody who is gone for good. Whether
// they keep a connection, the descriptors tell. All other goroutines are looked
// for, the client's first of all.
var ofProxies = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
}

// However many calls were made, of whatever kind and operation: once connections
// have drained, there are as many descriptors and goroutines as before.
func TestNothingIsLeftOpen(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Ops = AllOps()
	round := len(KindsOf(cfg.Ops))
	run := func(calls int) {
		cfg.Calls = calls
		report, err := Run(t.Context(), cfg, new(Cardwire))
		require.NoError(t, err)
		assertFlawless(t, report, calls)
		awaitNoSockets(t)
	}
	run(round) // opens what the runtime opens once
	before := len(descriptors())
	leaks := append([]goleak.Option{goleak.IgnoreCurrent()}, ofProxies...)

	run(round * *flagEach)
	after := len(descriptors())
	require.LessOrEqual(t, after, before, "file descriptors are left open")
	require.NoError(t, goleak.Find(leaks...))
	t.Logf("%d calls: %d descriptors before, %d after", round**flagEach, before, after)
}

// awaitNoSockets returns when no socket is open but those that this process was
// started with. The proxies close their ends a moment after they were stopped.
func awaitNoSockets(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return sockets(descriptors()) == inherited }, 10*time.Second, 10*time.Millisecond,
		"sockets are left open")
}

var inherited = sockets(descriptors())

func sockets(descriptors []string) (n int) {
	for _, d := range descriptors {
		if strings.HasPrefix(d, "socket:") {
			n++
		}
	}
	return n
}

// descriptors says what the open ones are; nil: this system does not tell.
func descriptors() (names []string) {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name, err := os.Readlink(dir + "/" + e.Name())
		if err != nil {
			continue // that of reading the directory, or just closed
		}
		names = append(names, name)
	}
	return names
}
