package chaos

import (
	"cmp"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	flagCalls = flag.Int("calls", 0, "how many calls TestLedger makes; 0: 40 for each kind")
	flagAll   = flag.Bool("all", false, "TestLedger calls all five operations, not transfers only")
)

func TestMain(m *testing.M) {
	// net/http logs what arrives unasked on a connection, as here it must.
	log.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

func TestLedger(t *testing.T) {
	for name, doer := range map[string]*http.Client{
		"own connections": nil,
		"a caller's client with idle connections": {Transport: &http.Transport{
			MaxIdleConnsPerHost: 100, MaxResponseHeaderBytes: 64 << 10,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, ops := Kinds(), allOps
			if !*flagAll { // an upload has no reference that a gateway's refusal could name
				kinds, ops = append(kinds, GatewayKinds()...), allOps[:1]
			}
			n := cmp.Or(*flagCalls, 40*len(kinds))
			if doer != nil {
				n /= 4
			}
			all, err := run(t.Context(), kinds, ops, n, doer)
			require.NoError(t, err)
			t.Logf("%d calls: %v", n, all.verdicts)
			assert.Zero(t, all.stray, "executions of what nobody ordered")
			assert.Empty(t, all.wrong[:min(len(all.wrong), 20)])
			require.Eventually(t, func() bool { return sockets() == inherited }, 10*time.Second, 10*time.Millisecond,
				"sockets are left open")
		})
	}
}

// inherited are the sockets that this process was started with.
var inherited = sockets()

// sockets counts those that are open; 0 where the system does not tell.
func sockets() (n int) {
	const dir = "/proc/self/fd"
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name, err := os.Readlink(dir + "/" + e.Name()) // an error: just closed
		if err == nil && strings.HasPrefix(name, "socket:") {
			n++
		}
	}
	return n
}

// The rules by which calls are compared, on calls whose result is known.
func TestJudge(t *testing.T) {
	t.Parallel()
	executes, refuses := &Kind{effect: always, verdicts: unknown}, &Kind{verdicts: refused}
	patient := func(k *Kind, v Verdict) trial { return trial{kind: k, patient: true, verdict: v} }
	hurry := func(k *Kind, v Verdict) trial { return trial{kind: k, verdict: v, deadline: true} }
	for name, tc := range map[string]struct {
		trial                trial
		arrivals, executions int
		wrong                []string
	}{
		"done":                  {patient(executes, Unknown), 1, 1, nil},
		"done twice":            {patient(executes, Unknown), 2, 2, []string{duplicated}},
		"sent twice":            {patient(refuses, Refused), 2, 0, []string{duplicated}},
		"not sent and done":     {patient(executes, NotSent), 1, 1, []string{falseFailure, unexpected}},
		"not sent and received": {patient(refuses, NotSent), 1, 0, []string{falseFailure, unexpected}},
		"executed and not done": {patient(refuses, Executed), 1, 0, []string{falseSuccess, unexpected}},
		"refused and done":      {patient(refuses, Refused), 1, 1, []string{falseFailure, unexpected}},
		"hurried":               {hurry(refuses, NotSent), 0, 0, nil},
		"not hurried":           {trial{kind: refuses, verdict: Unknown}, 0, 0, []string{unexpected}},
		"patient":               {patient(refuses, Unknown), 0, 0, []string{unexpected}},
		"not done":              {patient(executes, Unknown), 1, 0, []string{unexpected}},
	} {
		got := tc.trial.flaws(entry{arrivals: tc.arrivals, executions: tc.executions})
		assert.Equal(t, tc.wrong, got, name)
	}
}
