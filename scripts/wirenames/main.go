// Wirenames says whether the tests know the wire: it misspells one name of the
// conversation with the service at a time and runs the tests of the package,
// which must fail.
//
//	go run ./scripts/wirenames [-v] [-list] [-run regexp] [-jobs n]
//
// A member's name that is wrong here and wrong in the test that should know it
// is a defect that nobody sees before money is sent. So each name has to stand
// in a test as a literal of its own, and this program finds those that do not.
// It works in copies of the repository, in a temporary directory, and changes
// nothing else. The exit status is 1 if a name survives, and 2 if nothing can
// be said: the tests fail as they are, before or after, or a misspelt name does
// not compile.
//
// Names are found by where they stand in the product code of the root package:
//
//   - the members of replies: the first argument of wire.Required and wire.Expected
//   - the fields of requests: x.Add("name", ...), wire.Field, wire.Fields, wire.File
//   - the segments of each operation's path
//   - what DefaultProfile assumes, and the string constants of the package
//   - header names, media types and the scheme of the Authorization header
//
// The list exempt, below, names what is left out, and why.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	var (
		verbose = flag.Bool("v", false, "report every name, not only those that survive")
		list    = flag.Bool("list", false, "list the names and run nothing")
		pattern = flag.String("run", "", "try only names whose line in -list matches this `regexp`")
		jobs    = flag.Int("jobs", runtime.GOMAXPROCS(0), "try `n` names at a time")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	survivors, err := run(ctx, *verbose, *list, *pattern, max(*jobs, 1))
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "wirenames:", err)
		os.Exit(2)
	case survivors > 0:
		os.Exit(1)
	}
}

func run(ctx context.Context, verbose, list bool, pattern string, jobs int) (survivors int, err error) {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return 0, err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return 0, err
	}
	// One copy is taken first, so that all that follows sees the same code.
	temp, err := os.MkdirTemp("", "wirenames-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	original := filepath.Join(temp, "original")
	if err := os.CopyFS(original, withoutGit{os.DirFS(root)}); err != nil {
		return 0, err
	}
	names, err := find(original)
	if err != nil {
		return 0, err
	}
	names = slices.DeleteFunc(names, func(n name) bool { return !wanted.MatchString(n.String()) })
	if list {
		for _, n := range names {
			fmt.Println(n)
		}
		fmt.Printf("%d names\n", len(names))
		for constant, reason := range exempt {
			fmt.Printf("exempt: %s: %s\n", constant, reason)
		}
		return 0, nil
	}
	if len(names) == 0 {
		return 0, errors.New("there is no name to misspell")
	}
	return tryAll(ctx, temp, names, jobs, verbose)
}

// moduleRoot is where the go.mod of the current directory stands.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("run it inside the repository")
	}
	return filepath.Dir(file), nil
}

// withoutGit hides the history, which no test needs.
type withoutGit struct{ fs.FS }

func (f withoutGit) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }), err
}

// name is one name of the wire, at one place of the code.
type name struct {
	file       string // relative to the root
	line       int
	start, end int // of the literal in the file
	what       string
	right      string // as it stands
	wrong      string // the whole literal's text, with the name misspelt
}

func (n name) String() string {
	return fmt.Sprintf("%s:%d: %s %q", n.file, n.line, n.what, n.right)
}

// find returns the names in the product code of the package in dir.
func find(dir string) ([]name, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var names []name
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f := finder{fset: token.NewFileSet(), file: filepath.Base(file), seen: map[token.Pos]bool{}}
		tree, err := parser.ParseFile(f.fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		f.constants(tree)
		ast.Inspect(tree, f.visit)
		slices.SortStableFunc(f.names, func(a, b name) int { return cmp.Compare(a.start, b.start) })
		names = append(names, f.names...)
	}
	return names, nil
}

// finder gathers the names of one file.
type finder struct {
	fset  *token.FileSet
	file  string
	seen  map[token.Pos]bool // literals that have been gathered
	names []name
}

var (
	headerForm = regexp.MustCompile(`^[A-Z][a-z]*(-[A-Z][a-z]+)+$`)
	mediaType  = regexp.MustCompile(`^(application|multipart|text)/[a-z0-9.+-]+$`)
)

// exempt are constants that no test can hold to their text.
var exempt = map[string]string{
	"messageSuccess": "it only spares an allocation: any other text is kept as it came",
}

// constants gathers the package's own string constants: values such as cancel.
func (f *finder) constants(tree *ast.File) {
	for _, d := range tree.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			for i, value := range spec.Values {
				if exempt[spec.Names[i].Name] == "" {
					f.whole("constant", value)
				}
			}
		}
	}
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.CallExpr:
		f.call(n)
	case *ast.CompositeLit:
		f.composite(n)
	case *ast.IndexExpr:
		// The maps of this package that are indexed by a literal are headers.
		f.whole("header", n.Index)
	case *ast.BasicLit:
		f.literal(n)
	}
	return true
}

func (f *finder) call(n *ast.CallExpr) {
	if len(n.Args) == 0 {
		return
	}
	fun := n.Fun
	if generic, ok := fun.(*ast.IndexExpr); ok {
		fun = generic.X
	}
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch name := selector.Sel.Name; name {
	case "Required", "Expected":
		if isName(selector.X, "wire") {
			f.whole("member", n.Args[0])
		}
	case "Add":
		f.whole("field", n.Args[0])
	case "Get", "Set", "Del", "Values":
		f.whole("header", n.Args[0])
	}
}

func (f *finder) composite(n *ast.CompositeLit) {
	switch typeName(n.Type) {
	case "operation":
		f.segments(element(n, "path", -1))
	case "Profile":
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				f.whole("profile", pair.Value)
			}
		}
	case "wire.Field":
		f.whole("field", element(n, "Name", 0))
	case "wire.Fields":
		for _, e := range n.Elts {
			if field, ok := e.(*ast.CompositeLit); ok {
				f.whole("field", element(field, "Name", 0))
			}
		}
	case "wire.File":
		f.whole("field", element(n, "Field", 0))
	}
}

// literal gathers what shows by its form alone that it is a name of the wire.
func (f *finder) literal(n *ast.BasicLit) {
	switch text := text(n); {
	case headerForm.MatchString(text):
		f.whole("header", n)
	case mediaType.MatchString(text):
		f.whole("media type", n)
	case text == "Bearer ":
		f.whole("scheme", n)
	}
}

// whole gathers a literal that is one name.
func (f *finder) whole(what string, e ast.Expr) {
	if right := text(e); right != "" {
		f.add(e, name{what: what, right: right, wrong: misspell(right)})
		f.seen[e.Pos()] = true
	}
}

// segments gathers each segment of a path.
func (f *finder) segments(e ast.Expr) {
	path := strings.Split(text(e), "/")
	for i, segment := range path {
		if segment == "" {
			continue
		}
		wrong := slices.Clone(path)
		wrong[i] = misspell(segment)
		f.add(e, name{what: "path", right: segment, wrong: strings.Join(wrong, "/")})
	}
	if e != nil {
		f.seen[e.Pos()] = true
	}
}

func (f *finder) add(e ast.Expr, n name) {
	if f.seen[e.Pos()] {
		return
	}
	start := f.fset.Position(e.Pos())
	n.file, n.line, n.start, n.end = f.file, start.Line, start.Offset, f.fset.Position(e.End()).Offset
	f.names = append(f.names, n)
}

// misspell puts a letter in the middle, so that not even a test that looks for
// a part of a text finds the name. A code of digits becomes another code.
func misspell(name string) string {
	if last := len(name) - 1; strings.Trim(name, "0123456789") == "" {
		return name[:last] + string('0'+(name[last]-'0'+1)%10)
	}
	middle := len(name) / 2
	return name[:middle] + "x" + name[middle:]
}

// text is that of a string literal, "" of anything else.
func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return s
}

func isName(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

// typeName is a type as it is written, "" where it is left out or no name.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return ""
}

// element returns the value of a key, or the one at index where no keys are
// written, or nil.
func element(n *ast.CompositeLit, key string, index int) ast.Expr {
	for i, e := range n.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		switch {
		case ok && isName(pair.Key, key):
			return pair.Value
		case !ok && i == index:
			return e
		}
	}
	return nil
}

// verdict is what the tests say to a name.
type verdict string

const (
	caught   verdict = "caught"
	timedOut verdict = "caught, by a test that does not end"
	survived verdict = "SURVIVED"
	unbuilt  verdict = "does not compile"
)

type result struct {
	name
	verdict verdict
	err     error
}

// tryAll tries the names, several at a time, and returns how many survive.
func tryAll(ctx context.Context, temp string, names []name, jobs int, verbose bool) (int, error) {
	// The first run says how long a run takes, and that the tests pass at all.
	fmt.Printf("%d names; the tests as they are: ", len(names))
	started := time.Now()
	out, err := test(ctx, filepath.Join(temp, "original"), 10*time.Minute)
	took := time.Since(started)
	if err != nil {
		fmt.Printf("failed\n%s", out)
		return 0, errors.New("the tests fail without any misspelling")
	}
	fmt.Printf("passed in %s\n", took.Round(100*time.Millisecond))
	limit := max(time.Minute, 5*took)

	queue := make(chan name)
	results := make(chan result)
	var workers sync.WaitGroup
	for i := range min(jobs, len(names)) {
		workers.Go(func() { work(ctx, filepath.Join(temp, strconv.Itoa(i)), limit, queue, results) })
	}
	go func() {
		for _, n := range names {
			queue <- n
		}
		close(queue)
		workers.Wait()
		close(results)
	}()
	survivors, err := report(results, len(names), verbose)
	if err != nil {
		return survivors, err
	}
	// Tests that fail now and then would seem to catch anything.
	if out, err := test(ctx, filepath.Join(temp, "original"), limit); err != nil {
		fmt.Printf("%s", out)
		return survivors, errors.New("the tests fail now and then: nothing above can be relied on")
	}
	return survivors, nil
}

func report(results <-chan result, total int, verbose bool) (int, error) {
	var (
		failures  []error
		survivors []result
		done      int
		slow      int
	)
	started := time.Now()
	for r := range results {
		done++
		switch {
		case r.err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", r.name, r.err))
			continue
		case r.verdict == unbuilt:
			failures = append(failures, fmt.Errorf("%s, misspelt as %q, %s", r.name, r.wrong, unbuilt))
		case r.verdict == survived:
			survivors = append(survivors, r)
		case r.verdict == timedOut:
			slow++
		}
		if verbose || r.verdict != caught {
			fmt.Printf("%s: %s\n", r.name, r.verdict)
		}
		if done%20 == 0 {
			fmt.Printf("... %d of %d in %s\n", done, total, time.Since(started).Round(time.Second))
		}
	}
	if len(failures) > 0 {
		return len(survivors), errors.Join(failures...)
	}
	slices.SortFunc(survivors, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.start, b.start))
	})
	fmt.Printf("\ncaught %d of %d in %s", total-len(survivors), total, time.Since(started).Round(time.Second))
	if slow > 0 {
		fmt.Printf(", %d of them by tests that do not end", slow)
	}
	fmt.Println()
	for _, s := range survivors {
		fmt.Printf("survivor: %s\n", s.name)
	}
	return len(survivors), nil
}

// work tries names in a copy of its own, which keeps the build cache of use:
// only the package with the name is compiled again.
func work(ctx context.Context, dir string, limit time.Duration, queue <-chan name, results chan<- result) {
	copied := os.CopyFS(dir, os.DirFS(filepath.Join(filepath.Dir(dir), "original")))
	for n := range queue {
		r := result{name: n, err: cmp.Or(copied, ctx.Err())}
		if r.err == nil {
			r.verdict, r.err = try(ctx, dir, n, limit)
		}
		results <- r
	}
}

// try misspells the name, runs the tests and puts the file back.
func try(ctx context.Context, dir string, n name, limit time.Duration) (v verdict, err error) {
	file := filepath.Join(dir, n.file)
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	changed := slices.Concat(source[:n.start], []byte(strconv.Quote(n.wrong)), source[n.end:])
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(file, source, 0o600)) }()
	out, err := test(ctx, dir, limit)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return survived, nil
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return unbuilt, nil
	case bytes.Contains(out, []byte("panic: test timed out")):
		return timedOut, nil
	case bytes.Contains(out, []byte("FAIL")):
		return caught, nil
	}
	return "", fmt.Errorf("the tests could not be run: %w: %s", err, out)
}

// test runs the package's tests in dir. The first failure is enough.
func test(ctx context.Context, dir string, limit time.Duration) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-short", "-count=1", "-failfast", "-vet=off",
		"-timeout="+limit.String(), ".")
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}
