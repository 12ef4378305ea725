// Package jsonsuite gives tests references for JSON that are independent of this module:
// the files of JSONTestSuite, and what encoding/json accepts. The suite is not part of
// the repository: an environment variable names its directory.
package jsonsuite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Variable names the directory that contains test_parsing and test_transform.
const Variable = "JSON_TEST_SUITE"

// Kind is what the suite requires for a file: the first letter of its name.
type Kind byte

// The kinds of the suite.
const (
	Accepted  Kind = 'y' // JSON, which every parser must accept
	Refused   Kind = 'n' // no JSON, which every parser must refuse
	Free      Kind = 'i' // either
	Transform Kind = 't' // parsers read it as different values
)

// counts are how many files of each kind the suite has: with fewer, tests would pass
// without proving anything.
var counts = map[Kind]int{Accepted: 95, Refused: 188, Free: 35, Transform: 22}

// File is one file of the suite.
type File struct {
	Name string // without its directory and .json
	Kind Kind
	Text []byte
}

// Files returns all files. Without them the test is skipped, but fails if CI is "true",
// because they are required there.
func Files(tb testing.TB) []File {
	tb.Helper()
	dir := os.Getenv(Variable)
	switch {
	case dir != "":
	case os.Getenv("CI") == "true":
		tb.Fatalf("%s is not set, and CI is: the texts of JSONTestSuite are required", Variable)
	default:
		tb.Skipf("%s does not say where the texts of JSONTestSuite are", Variable)
	}
	files, err := read(dir)
	if err != nil {
		tb.Fatalf("the texts of JSONTestSuite: %v", err)
	}
	return files
}

// Seeds returns the files of at most limit bytes, which are few enough to begin fuzzing
// with; none if the environment variable is not set.
func Seeds(tb testing.TB, limit int) [][]byte {
	tb.Helper()
	if os.Getenv(Variable) == "" {
		return nil
	}
	var seeds [][]byte
	for _, f := range Files(tb) {
		if len(f.Text) <= limit {
			seeds = append(seeds, f.Text)
		}
	}
	return seeds
}

func read(dir string) ([]File, error) {
	var files []File
	found := map[Kind]int{}
	for _, folder := range []string{"test_parsing", "test_transform"} {
		names, err := filepath.Glob(filepath.Join(dir, folder, "*.json"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			f := File{Name: trimmed(name), Kind: Transform, Text: text}
			if folder == "test_parsing" {
				f.Kind = Kind(f.Name[0])
			}
			found[f.Kind]++
			files = append(files, f)
		}
	}
	for kind, want := range counts {
		if found[kind] != want {
			return nil, fmt.Errorf("%d texts of kind %c instead of %d", found[kind], kind, want)
		}
	}
	return files, nil
}

func trimmed(name string) string {
	name = filepath.Base(name)
	return name[:len(name)-len(filepath.Ext(name))]
}
