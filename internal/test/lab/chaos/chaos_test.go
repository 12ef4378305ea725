package chaos

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	flagCalls = flag.Int("calls", 0, "how many calls TestLedger makes; 0: 50 for each kind")
	flagAll   = flag.Bool("all", false, "TestLedger calls all five operations, not transfers only")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, ofProxies...) }

func TestLedger(t *testing.T) {
	cfg := DefaultConfig()
	if *flagCalls > 0 {
		cfg.Calls = *flagCalls
	}
	if *flagAll {
		cfg.Ops = AllOps()
	}
	report, err := Run(t.Context(), cfg, new(Cardwire))
	require.NoError(t, err)
	t.Logf("%s", report)

	assertFlawless(t, report, cfg.Calls)
	awaitNoSockets(t)
}

func assertFlawless(t *testing.T, report *Report, calls int) {
	t.Helper()
	assert.Equal(t, calls, report.Total.Calls)
	assert.Zero(t, report.Total.Duplicated, "orders that were executed more than once")
	assert.Zero(t, report.Total.FalseSuccess, "orders said to be done that the ledger does not have")
	assert.Zero(t, report.Total.FalseFailure, "orders said not to be done that the ledger has")
	assert.Zero(t, report.Total.Unexpected, "calls that ended as their kind does not allow")
	assert.Zero(t, report.Stray, "executions of what nobody ordered")
	assert.Empty(t, report.Complaints)
}

func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for _, k := range Kinds() {
		names[k.Name] = true
		assert.NotEmpty(t, k.verdicts, k.Name)
	}
	assert.Len(t, names, 45, "no name is that of two")
	assert.Equal(t, []int{25, 15, 5}, []int{len(serviceKinds()), len(proxyKinds()), len(dataKinds())})
	assert.Len(t, KindsOf([]string{"CreateTransfer"}), 43)
	assert.Len(t, KindsOf(AllOps()), 45)
}

// The rules by which calls are judged, on calls whose result is known.
func TestJudge(t *testing.T) {
	t.Parallel()
	executes, refuses := &Kind{effect: always, verdicts: []Verdict{Unknown}}, &Kind{verdicts: []Verdict{Refused}}
	one := func(v Verdict) (counts [verdicts]int) { counts[v] = 1; return counts }
	tests := []struct {
		name       string
		record     record
		executions int
		want       Row
	}{
		{
			"unknown and done", record{kind: executes, patient: true, verdict: Unknown, atOnce: 1}, 1,
			Row{Calls: 1, Verdicts: one(Unknown), Executions: 1, Worst: 1, UnknownExecuted: 1},
		},
		{
			"done after it was asked about", record{kind: executes, patient: true, verdict: Unknown}, 1,
			Row{Calls: 1, Verdicts: one(Unknown), Executions: 1, Worst: 1, UnknownExecuted: 1, AtOnceWrong: 1},
		},
		{
			"done twice", record{kind: executes, patient: true, verdict: Unknown, atOnce: 2}, 2,
			Row{Calls: 1, Verdicts: one(Unknown), Executions: 2, Worst: 2, Duplicated: 1, UnknownExecuted: 1},
		},
		{
			"not sent and done", record{kind: executes, patient: true, verdict: NotSent, atOnce: 1}, 1,
			Row{Calls: 1, Verdicts: one(NotSent), Executions: 1, Worst: 1, FalseFailure: 1, Unexpected: 1},
		},
		{
			"executed and not done", record{kind: refuses, patient: true, verdict: Executed}, 0,
			Row{Calls: 1, Verdicts: one(Executed), FalseSuccess: 1, Unexpected: 1},
		},
		{
			"refused and done", record{kind: refuses, verdict: Refused, atOnce: 1}, 1,
			Row{Calls: 1, Verdicts: one(Refused), Executions: 1, Worst: 1, FalseFailure: 1, Unexpected: 1},
		},
		{
			"ended by the deadline of a hurried call", record{kind: refuses, verdict: NotSent, deadline: true}, 0,
			Row{Calls: 1, Verdicts: one(NotSent), Hurried: 1},
		},
		{
			"ended by the deadline of a patient call",
			record{kind: refuses, patient: true, verdict: Unknown, deadline: true}, 0,
			Row{Calls: 1, Verdicts: one(Unknown), Unexpected: 1},
		},
		{
			"unknown without a deadline where the service refused", record{kind: refuses, verdict: Unknown}, 0,
			Row{Calls: 1, Verdicts: one(Unknown), Unexpected: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := tt.record.judge(tt.executions)
			assert.Equal(t, tt.want, got)
		})
	}
}
