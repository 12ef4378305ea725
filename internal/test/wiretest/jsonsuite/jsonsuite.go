// Package jsonsuite gives tests references for JSON that are independent of this module:
// the files of JSONTestSuite, and what encoding/json accepts. The suite is not part of
// the repository: an environment variable names its directory.
package jsonsuite

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Variable names the directory that contains test_parsing and test_transform.
const Variable = "JSON_TEST_SUITE"

// files is how many the suite has: with fewer, tests would pass without proving anything.
const files = 340

// Files returns the texts by their names, as in test_parsing/y_array_empty.json. Without the
// suite the test is skipped, but fails if CI is "true", because it is required there.
func Files(tb testing.TB) map[string][]byte {
	tb.Helper()
	dir := os.Getenv(Variable)
	switch {
	case dir != "":
	case os.Getenv("CI") == "true":
		tb.Fatalf("%s is not set, and CI is: the texts of JSONTestSuite are required", Variable)
	default:
		tb.Skipf("%s does not say where the texts of JSONTestSuite are", Variable)
	}
	all := map[string][]byte{}
	names, _ := filepath.Glob(filepath.Join(dir, "test_*", "*.json")) // the pattern is sound
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(tb, err)
		all[filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)] = text
	}
	require.Len(tb, all, files)
	return all
}

// Seeds returns the texts of at most limit bytes, which are few enough to begin fuzzing
// with; none if the environment variable is not set.
func Seeds(tb testing.TB, limit int) (seeds [][]byte) {
	tb.Helper()
	if os.Getenv(Variable) == "" {
		return nil
	}
	for _, text := range Files(tb) {
		if len(text) <= limit {
			seeds = append(seeds, text)
		}
	}
	return seeds
}

// Strict reports whether text is JSON without what a strict reader refuses beyond
// encoding/json: duplicate names, invalid strings and depth. It uses only encoding/json.
func Strict(text []byte, maxDepth int) bool {
	if !json.Valid(text) || !utf8.Valid(text) || halfSurrogate(string(text)) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	deepest, repeated := 0, false
	walk(d, 0, &deepest, &repeated)
	return deepest <= maxDepth && !repeated
}

// walk reads one value from valid JSON.
func walk(d *json.Decoder, depth int, deepest *int, repeated *bool) {
	token, _ := d.Token()
	open, ok := token.(json.Delim)
	if !ok {
		return
	}
	*deepest = max(*deepest, depth+1)
	names := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, _ := d.Token()
			*repeated = *repeated || names[name.(string)]
			names[name.(string)] = true
		}
		walk(d, depth+1, deepest, repeated)
	}
	_, _ = d.Token()
}

var (
	escapedBackslash = regexp.MustCompile(`\\\\`)
	pairOfHalves     = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`)
	half             = regexp.MustCompile(`(?i)\\ud[89a-f][0-9a-f]{2}`)
)

// halfSurrogate reports whether valid JSON contains half of a surrogate pair.
func halfSurrogate(text string) bool {
	// Each is replaced, not removed: what it separates must not become one.
	text = escapedBackslash.ReplaceAllString(text, "-")
	return half.MatchString(pairOfHalves.ReplaceAllString(text, "-"))
}
