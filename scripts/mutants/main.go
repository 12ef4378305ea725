// Mutants reports whether the tests would notice if this client sent something twice,
// or reported the wrong outcome: it puts one defect at a time into a copy of the
// repository and runs the tests, which must fail.
//
//	go run ./scripts/mutants [-v] [-list] [-run regexp] [-jobs n]
//
// It works in copies, in a temporary directory, and changes nothing else. It
// ends with a table of what killed each mutant: the first test that failed. The
// exit status is 1 if a mutant survives or does not compile, and 2 if there is no
// result: the tests fail without any mutant, or the code that a mutant changes is gone.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cardwire/cardwire-go/scripts/internal/mutation"
)

func main() {
	mutation.Program{Name: "mutants", Find: makeAll, Skip: skip, Tell: tell, Report: report}.Main()
}

// skip are tests that are not asked. Those that count allocations fail for almost
// any change, and those that compare a setting with itself do not know what it is
// for.
const skip = `Alloc|^TestTheDefaults$|^TestSettingsOfTheEngines$|` + mutation.Longest

// makeAll finds the code of every mutant, including those that are not selected.
func makeAll(tree *mutation.Tree) ([]mutation.Mutant, error) {
	code := newSource(tree.Root)
	var (
		made     []mutation.Mutant
		failures []error
	)
	for _, m := range mutants {
		one, err := m.find(code)
		if err == nil && slices.ContainsFunc(made, func(other mutation.Mutant) bool { return other.Name == m.name }) {
			err = fmt.Errorf("%s: another mutant has this name", m.name)
		}
		failures = append(failures, err)
		made = append(made, one)
	}
	return made, errors.Join(failures...)
}

// find finds the code that the mutant changes.
func (m *mutant) find(code *source) (mutation.Mutant, error) {
	found := mutation.Mutant{Name: m.name, Dir: m.module(), Packages: m.packages()}
	var failures []error
	for _, p := range m.places {
		edits, err := p.edits(code)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", m.name, err))
		}
		found.Edits = append(found.Edits, edits...)
	}
	return found, errors.Join(failures...)
}

// module is the directory of the nested module whose tests are run; "": the root's are.
func (m *mutant) module() string {
	switch dir := m.places[0].dir(); dir {
	case dirs["sqljournal"]:
		return dir
	case dirs["export"]:
		return path.Dir(dir)
	}
	return ""
}

// packages are those whose tests are run, the quickest first: that of the code, that of
// the client, and all.
func (m *mutant) packages() []string {
	if m.module() != "" {
		return []string{"./..."}
	}
	packages := []string{".", "./..."}
	if own := m.places[0].dir(); own != "" {
		packages = slices.Insert(packages, 0, "./"+own)
	}
	return packages
}

func tell(r mutation.Result, verbose bool) {
	if !verbose {
		return
	}
	fmt.Printf("%s: %s in %.1f s\n", r.Mutant.Name, r.Verdict, r.Took.Seconds())
	for _, test := range r.Failed {
		fmt.Printf("\t%s\n", test)
	}
}

// widest is the length to which a test's name is cut, in characters.
const widest = 72

// report writes the table, and returns how many mutants no test killed.
func report(results []mutation.Result, took time.Duration) (alive int, err error) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "MUTANT\tKILLED BY\tSECONDS") // Flush tells of errors
	for _, r := range results {
		killer := string(r.Verdict)
		switch {
		case r.Verdict == mutation.Survived || r.Verdict == mutation.Unbuilt:
			alive++
		case r.Verdict == mutation.TimedOut:
			killer = cmp.Or(strings.Join(r.Failed, " or "), "a package") + ", which does not end"
		case len(r.Failed) > 0:
			killer = r.Failed[0]
		default:
			killer = "a package as a whole"
		}
		_, _ = fmt.Fprintf(w, "%s\t%.*s\t%.1f\n", r.Mutant.Name, widest, killer, r.Took.Seconds())
	}
	if err := w.Flush(); err != nil {
		return alive, err
	}
	fmt.Printf("killed %d of %d in %s\n", len(results)-alive, len(results), took.Round(time.Second))
	return alive, nil
}
