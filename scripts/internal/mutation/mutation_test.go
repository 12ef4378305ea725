package mutation

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatTheTestsSay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lines   string
		verdict Verdict
		failed  []string
		output  string // of what failed
	}{
		"a subtest fails": {
			`{"Action":"output","Package":"p/a","Test":"TestA/one","Output":"--- PASS: TestA/one (0.00s)\n"}
{"Action":"pass","Package":"p/a","Test":"TestA/one","Elapsed":0}
{"Action":"output","Package":"p/a","Test":"TestA/two","Output":"--- FAIL: TestA/two (0.00s)\n"}
{"Action":"fail","Package":"p/a","Test":"TestA/two","Elapsed":0}
{"Action":"output","Package":"p/a","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"p/a","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"p/a","Test":"TestAB","Elapsed":0}
{"Action":"output","Package":"p/a","Output":"FAIL\tp/a\t0.016s\n"}
{"Action":"fail","Package":"p/a","Elapsed":0.017}
`,
			Killed, []string{"TestA/two", "TestAB"},
			"--- FAIL: TestA/two (0.00s)\n--- FAIL: TestA (0.00s)\nFAIL\tp/a\t0.016s\n",
		},
		"a package fails as a whole": {
			`{"Action":"pass","Package":"p/e","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p/e","Output":"FAIL\tp/e\t0.036s\n"}
{"Action":"fail","Package":"p/e","Elapsed":0.044}
`,
			Killed, nil,
			"FAIL\tp/e\t0.036s\n",
		},
		"a test does not compile": {
			`{"ImportPath":"p/b [p/b.test]","Action":"build-output","Output":"b/b_test.go:3:28: undefined: undefined\n"}
{"ImportPath":"p/b [p/b.test]","Action":"build-fail"}
{"Action":"output","Package":"p/b","Output":"FAIL\tp/b [build failed]\n"}
{"Action":"fail","Package":"p/b","Elapsed":0,"FailedBuild":"p/b [p/b.test]"}
`,
			Unbuilt, nil,
			"b/b_test.go:3:28: undefined: undefined\nFAIL\tp/b [build failed]\n",
		},
		"an import is not there": {
			`{"ImportPath":"nowhere","Action":"build-output","Output":"c/c_test.go:2:19: package nowhere is not in std\n"}
{"ImportPath":"nowhere","Action":"build-fail"}
{"Action":"output","Package":"p/c","Output":"FAIL\tp/c [setup failed]\n"}
{"Action":"fail","Package":"p/c","Elapsed":0,"FailedBuild":"nowhere"}
`,
			Unbuilt, nil,
			"c/c_test.go:2:19: package nowhere is not in std\nFAIL\tp/c [setup failed]\n",
		},
		"two tests do not end": {
			`{"Action":"output","Package":"p/d","Test":"TestA","Output":"panic: test timed out after 1s\n"}
{"Action":"output","Package":"p/d","Test":"TestA","Output":"\trunning tests:\n"}
{"Action":"output","Package":"p/d","Test":"TestA","Output":"\t\tTestA (1s)\n"}
{"Action":"output","Package":"p/d","Test":"TestA","Output":"\t\tTestB/one (1s)\n"}
{"Action":"output","Package":"p/d","Test":"TestA","Output":"\n"}
{"Action":"output","Package":"p/d","Test":"TestA","Output":"\t\tno test\n"}
{"Action":"output","Package":"p/d","Output":"FAIL\tp/d\t1.017s\n"}
{"Action":"fail","Package":"p/d","Elapsed":1.025}
`,
			TimedOut, []string{"TestA", "TestB/one"},
			"FAIL\tp/d\t1.017s\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := read([]byte(tc.lines))
			assert.Equal(t, tc.verdict, r.verdict())
			assert.Equal(t, tc.failed, r.failed)
			assert.Equal(t, tc.output, string(r.output))
		})
	}
}

func TestHowLongTheSlowestPackageTook(t *testing.T) {
	t.Parallel()
	r := read([]byte(`{"Action":"pass","Package":"p/a","Test":"TestA","Elapsed":9}
{"Action":"pass","Package":"p/a","Elapsed":1.5}
{"Action":"pass","Package":"p/b","Elapsed":0.25}
`))
	assert.Equal(t, 1500*time.Millisecond, r.slowest)
}

func TestAMutantIsMadeAndUndone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.go")
	require.NoError(t, os.WriteFile(file, []byte("one two three two"), 0o600))
	m := Mutant{Edits: []Edit{{File: "a.go", End: 3, Text: "eleven"}, {File: "a.go", Start: 8, End: 17}}}
	restore, err := m.make(dir)
	require.NoError(t, err)
	changed, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "eleven two ", string(changed))
	require.NoError(t, restore())
	original, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "one two three two", string(original))
}
