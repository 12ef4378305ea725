package jsonsuite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// said is how a test under test ended.
type said string

// verdict is a test that says how it ended instead of ending.
type verdict struct{ testing.TB }

func (verdict) Helper() {}

func (verdict) Fatalf(format string, args ...any) {
	panic(said("failed: " + fmt.Sprintf(format, args...)))
}

func (verdict) Skipf(format string, args ...any) {
	panic(said("skipped: " + fmt.Sprintf(format, args...)))
}

// asked returns the texts, or how the test that asked for them ended.
func asked(t *testing.T) (files []File, end said) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			end = r.(said)
		}
	}()
	return Files(verdict{t}), ""
}

// made writes a suite of as many texts as the real one has, and returns its
// directory.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for kind, n := range counts {
		folder, prefix := "test_parsing", string(rune(kind))+"_"
		if kind == Transform {
			folder, prefix = "test_transform", "number_"
		}
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
		for i := range n {
			name := filepath.Join(dir, folder, fmt.Sprintf("%s%d.0.json", prefix, i))
			require.NoError(t, os.WriteFile(name, fmt.Appendf(nil, "[%d]%*s", i, i, ""), 0o600))
		}
	}
	return dir
}

func TestWithoutTheVariableTestsAreSkippedButForCI(t *testing.T) {
	t.Setenv(Variable, "")
	t.Setenv("CI", "")
	_, end := asked(t)
	assert.Equal(t, said("skipped: JSON_TEST_SUITE does not say where the texts of JSONTestSuite are"), end)
	assert.Empty(t, Seeds(t, 1000), "fuzzing goes on without")

	t.Setenv("CI", "true")
	_, end = asked(t)
	assert.Equal(t, said("failed: JSON_TEST_SUITE is not set, and CI is: the texts of JSONTestSuite are required"), end)
}

func TestFilesOfASuite(t *testing.T) {
	t.Setenv(Variable, made(t))
	files, end := asked(t)
	require.Empty(t, end)
	require.Len(t, files, 340)
	byName := map[string]File{}
	for _, f := range files {
		byName[f.Name] = f
	}
	assert.Equal(t, File{"n_187.0", Refused, fmt.Appendf(nil, "[187]%187s", "")}, byName["n_187.0"])
	assert.Equal(t, File{"number_0.0", Transform, []byte("[0]")}, byName["number_0.0"])

	// Of each kind the texts up to the third are as short.
	assert.Len(t, Seeds(t, len("[2]")+2), 4*3)
}

func TestASuiteThatLacksATextIsAFailure(t *testing.T) {
	dir := made(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "test_parsing", "i_34.0.json")))
	t.Setenv(Variable, dir)
	_, end := asked(t)
	assert.Equal(t, said("failed: the texts of JSONTestSuite: 34 texts of kind i instead of 35"), end)

	t.Setenv(Variable, filepath.Join(dir, "nowhere"))
	_, end = asked(t)
	assert.Contains(t, end, "failed: the texts of JSONTestSuite: 0 texts of kind ")
}
