// Package mutation reports whether tests notice a defect: it puts one at a time
// into a copy of the repository and runs the tests there, which must fail.
package mutation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go/scripts/internal/repo"
)

// Mutant is a defect, and the tests that are to notice it.
type Mutant struct {
	// Name identifies it.
	Name string
	// Edits are the changes that make it; those of one file must not overlap.
	Edits []Edit
	// Dir is the directory of the module whose tests are run, relative to the
	// root; "": the root itself.
	Dir string
	// Packages are what go test is given, one after the other until a test
	// fails: the quickest first.
	Packages []string
}

// Edit is a change of one file.
type Edit struct {
	// File is the file, relative to the root.
	File string
	// Start is where the bytes begin that are replaced.
	Start int
	// End is where they end.
	End int
	// Text replaces them.
	Text string
}

// Verdict is the result of the tests for a mutant; "": they could not be run.
type Verdict string

const (
	// Killed means that a test failed.
	Killed Verdict = "killed"
	// TimedOut means that a test did not end, which is a failure too.
	TimedOut Verdict = "killed by a test that does not end"
	// Survived means that all tests passed.
	Survived Verdict = "SURVIVED"
	// Unbuilt means that a package did not compile, so that no test was run.
	Unbuilt Verdict = "DOES NOT COMPILE"
)

// Result is the result for a mutant.
type Result struct {
	// Mutant is the mutant.
	Mutant Mutant
	// Verdict is the result of the tests.
	Verdict Verdict
	// Failed are the tests that failed, in that order, subtests without the test
	// that they belong to. It is empty where a package failed as a whole.
	Failed []string
	// Took is how long it took, compiling included.
	Took time.Duration
}

// Plan is which mutants to try, and how.
type Plan struct {
	// Mutants are tried in this order.
	Mutants []Mutant
	// Jobs is how many are tried at a time; 0: one.
	Jobs int
	// Skip is a regexp of tests that are not run; "": all are.
	Skip string
	// Log receives progress messages; nil: none.
	Log io.Writer
	// Report receives each result, one at a time; nil: none.
	Report func(Result)
}

func (p *Plan) logf(format string, args ...any) {
	if p.Log != nil {
		_, _ = fmt.Fprintf(p.Log, format, args...) // a log has nobody to tell
	}
}

// Find finds mutants in a copy of the repository.
type Find func(*Tree) ([]Mutant, error)

// List returns the mutants whose name matches the pattern, and tries none.
func List(ctx context.Context, pattern string, find Find) (list []Mutant, err error) {
	err = inCopy(ctx, pattern, find, func(_ *Tree, mutants []Mutant) error {
		list = mutants
		return nil
	})
	return list, err
}

// Run tries the mutants whose name matches the pattern, as the plan says beside
// its Mutants. It is an error if there is none.
func Run(ctx context.Context, pattern string, find Find, p Plan) (results []Result, err error) {
	err = inCopy(ctx, pattern, find, func(t *Tree, mutants []Mutant) error {
		if len(mutants) == 0 {
			return errors.New("there is nothing to try")
		}
		p.Mutants = mutants
		results, err = t.Try(ctx, p)
		return err
	})
	return results, err
}

// inCopy uses a copy of the repository of the current directory, and removes it.
func inCopy(ctx context.Context, pattern string, find Find, use func(*Tree, []Mutant) error) (err error) {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	tree, err := Copy(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Remove()) }()
	mutants, err := find(tree)
	if err != nil {
		return err
	}
	return use(tree, slices.DeleteFunc(mutants, func(m Mutant) bool { return !wanted.MatchString(m.Name) }))
}

// Longest is a Plan.Skip for the tests that print everything in every way. They
// take longer than all others, which find what they find.
const Longest = `ShowsASecret$`

// Tree is a copy of the repository at the time of the copy.
type Tree struct {
	// Root is the directory of the copy. Do not change it.
	Root string

	temp string
}

// Copy takes a copy of the repository of the current directory.
func Copy(ctx context.Context) (*Tree, error) {
	root, err := repo.Root(ctx)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: filepath.Join(temp, "original"), temp: temp}
	if err := os.CopyFS(t.Root, withoutGit{os.DirFS(root)}); err != nil {
		return nil, errors.Join(err, t.Remove())
	}
	return t, nil
}

// Remove removes the copy, and those that Try made of it.
func (t *Tree) Remove() error { return os.RemoveAll(t.temp) }

// Try tries the mutants and returns their results in the order of the plan. It
// is an error if the tests fail without any mutant, before or after: they would
// then seem to kill every mutant.
func (t *Tree) Try(ctx context.Context, p Plan) ([]Result, error) {
	p.logf("%d mutants; the tests as they are: ", len(p.Mutants))
	started := time.Now()
	slowest, err := t.baseline(ctx, p, firstLimit)
	if err != nil {
		return nil, err
	}
	p.logf("passed in %s\n", time.Since(started).Round(100*time.Millisecond))
	limit := max(leastLimit, 5*slowest)
	results, err := t.tryAll(ctx, p, limit)
	if err != nil {
		return results, err
	}
	if _, err = t.baseline(ctx, p, limit); err != nil {
		err = fmt.Errorf("these results are not reliable: %w", err)
	}
	return results, err
}

// How long the tests of a package may take: as they are, and at least of a mutant.
const (
	firstLimit = 10 * time.Minute
	leastLimit = 30 * time.Second
)

// baseline runs all tests of the plan without a mutant, and returns how long the
// slowest package took.
func (t *Tree) baseline(ctx context.Context, p Plan, limit time.Duration) (slowest time.Duration, err error) {
	packages := map[string][]string{}
	for _, m := range p.Mutants {
		packages[m.Dir] = append(packages[m.Dir], m.Packages...)
	}
	for dir, patterns := range packages {
		slices.Sort(patterns)
		r, err := test(ctx, filepath.Join(t.Root, dir), slices.Compact(patterns), p.Skip, limit)
		if err != nil {
			return 0, err
		}
		if !r.passed {
			return 0, fmt.Errorf("the tests fail without any mutant: %s\n%s", strings.Join(r.failed, ", "), r.output)
		}
		slowest = max(slowest, r.slowest)
	}
	return slowest, nil
}

// numbered is a result with its place in the plan.
type numbered struct {
	Result
	place int
	err   error
}

func (t *Tree) tryAll(ctx context.Context, p Plan, limit time.Duration) ([]Result, error) {
	queue := make(chan int)
	tried := make(chan numbered)
	var workers sync.WaitGroup
	for i := range min(max(p.Jobs, 1), len(p.Mutants)) {
		workers.Go(func() { t.work(ctx, filepath.Join(t.temp, strconv.Itoa(i)), p, limit, queue, tried) })
	}
	go func() {
		for i := range p.Mutants {
			queue <- i
		}
		close(queue)
		workers.Wait()
		close(tried)
	}()
	results := make([]Result, len(p.Mutants))
	var failures []error
	started, done := time.Now(), 0
	for n := range tried {
		results[n.place] = n.Result
		if n.err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", n.Mutant.Name, n.err))
			continue
		}
		if p.Report != nil {
			p.Report(n.Result)
		}
		if done++; done%20 == 0 {
			p.logf("... %d of %d in %s\n", done, len(results), time.Since(started).Round(time.Second))
		}
	}
	return results, cmp.Or(ctx.Err(), errors.Join(failures...))
}

// work tries mutants in a copy of its own, which keeps the build cache of use:
// only what a mutant changes is compiled again.
func (t *Tree) work(ctx context.Context, dir string, p Plan, limit time.Duration, queue <-chan int, tried chan<- numbered) {
	copied := os.CopyFS(dir, os.DirFS(t.Root))
	for i := range queue {
		n := numbered{Result: Result{Mutant: p.Mutants[i]}, place: i, err: cmp.Or(copied, ctx.Err())}
		if n.err == nil {
			n.Result, n.err = try(ctx, dir, p.Mutants[i], p.Skip, limit)
		}
		tried <- n
	}
}

// try makes the mutant, runs the tests and puts the files back.
func try(ctx context.Context, dir string, m Mutant, skip string, limit time.Duration) (r Result, err error) {
	started := time.Now()
	restore, err := m.make(dir)
	defer func() { err = errors.Join(err, restore()) }()
	if err != nil {
		return Result{Mutant: m}, err
	}
	r = Result{Mutant: m, Verdict: Survived}
	for _, p := range m.Packages {
		run, err := test(ctx, filepath.Join(dir, m.Dir), []string{p}, skip, limit)
		if err != nil {
			return Result{Mutant: m}, err
		}
		if !run.passed {
			r.Verdict, r.Failed = run.verdict(), run.failed
			break
		}
	}
	r.Took = time.Since(started)
	return r, nil
}

// make changes the files, and returns what undoes that, also after an error.
func (m *Mutant) make(dir string) (restore func() error, err error) {
	originals := map[string][]byte{}
	restore = func() (err error) {
		for file, source := range originals {
			err = errors.Join(err, os.WriteFile(file, source, 0o600))
		}
		return err
	}
	// From the end of a file to its beginning, so that no edit moves another.
	edits := slices.SortedFunc(slices.Values(m.Edits), func(a, b Edit) int { return cmp.Compare(b.Start, a.Start) })
	for _, e := range edits {
		file := filepath.Join(dir, filepath.FromSlash(e.File))
		source, err := os.ReadFile(file)
		if err != nil {
			return restore, err
		}
		if originals[file] == nil {
			originals[file] = source
		}
		changed := slices.Concat(source[:e.Start], []byte(e.Text), source[e.End:])
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			return restore, err
		}
	}
	return restore, nil
}

// run is one run of go test.
type run struct {
	passed   bool
	unbuilt  bool
	timedOut bool
	failed   []string
	slowest  time.Duration // of the packages that passed
	output   []byte        // of what failed
}

func (r *run) verdict() Verdict {
	switch {
	case r.unbuilt:
		return Unbuilt
	case r.timedOut:
		return TimedOut
	}
	return Killed
}

// test runs the tests of the packages in dir. The first failure is enough.
func test(ctx context.Context, dir string, packages []string, skip string, limit time.Duration) (run, error) {
	args := []string{"test", "-json", "-short", "-count=1", "-failfast", "-vet=off", "-timeout=" + limit.String()}
	if skip != "" {
		args = append(args, "-skip="+skip)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if done := ctx.Err(); done != nil {
		return run{}, done
	}
	r := read(stdout.Bytes())
	if r.passed = err == nil; !r.passed && !r.unbuilt && len(r.output) == 0 {
		return run{}, fmt.Errorf("the tests could not be run: %w: %s", err, &stderr)
	}
	return r, nil
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output, FailedBuild string

	Elapsed float64 // in seconds
}

// read reads what go test -json writes.
func read(lines []byte) (r run) {
	running := false
	outputs := map[[2]string][]byte{} // by package and test
	for line := range bytes.Lines(lines) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch e.Action {
		case "pass":
			if e.Test == "" {
				r.slowest = max(r.slowest, time.Duration(e.Elapsed*float64(time.Second)))
			}
		case "fail":
			r.unbuilt = r.unbuilt || e.FailedBuild != ""
			r.add(e.Test)
			r.output = append(r.output, outputs[[2]string{e.Package, e.Test}]...)
		case "build-output":
			r.output = append(r.output, e.Output...)
		case "output":
			from := [2]string{e.Package, e.Test}
			outputs[from] = append(outputs[from], e.Output...)
			r.timedOut = r.timedOut || strings.HasPrefix(e.Output, timeout)
			// Of tests that run out of time it only says that they were running.
			if running = running && strings.HasPrefix(e.Output, "\t\t"); running {
				r.add(strings.Fields(e.Output)[0])
			}
			running = running || e.Output == "\trunning tests:\n"
		}
	}
	return r
}

// timeout begins what a test says that does not end.
const timeout = "panic: test timed out after "

// add notes a test that failed. Subtests are told of before the test that they
// belong to.
func (r *run) add(test string) {
	if test != "" && !slices.ContainsFunc(r.failed, func(f string) bool { return strings.HasPrefix(f, test+"/") }) {
		r.failed = append(r.failed, test)
	}
}

// withoutGit hides the history, which no test needs.
type withoutGit struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (f withoutGit) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }), err
}
