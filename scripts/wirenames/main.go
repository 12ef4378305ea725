// Wirenames reports whether the tests know the wire: it misspells one name of the
// conversation with the service at a time and runs the tests of the package, and those
// of internal/test/hostile if none fails. One must fail.
//
//	go run ./scripts/wirenames [-v] [-list] [-run regexp] [-jobs n]
//
// A field name that is wrong both in the code and in its test is a defect that nobody
// notices before money is sent. So each name must appear in a test as a literal, and
// this program finds those that do not.
// It works in copies of the repository, in a temporary directory, and changes
// nothing else. The exit status is 1 if a name survives, and 2 if there
// is no result: the tests fail without any change, before or after, or a misspelt name
// does not compile.
//
// Names are found by their place in the product code of the root package:
//
//   - the fields of responses: the Name of each wire.FieldOf
//   - the fields of requests: x.Add("name", ...), wire.Field, wire.Fields, wire.File
//     and the list of a transfer's
//   - the segments of each operation's path
//   - what DefaultProfile assumes, and the string constants of the package
//   - header names, media types and the scheme of the Authorization header
//
// The list exempt, below, has the exceptions and the reasons.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/scripts/internal/mutation"
)

func main() {
	mutation.Program{
		Name: "wirenames", Find: misspellAll, Exempt: exempt, Skip: mutation.Longest, Tell: tell, Report: report,
	}.Main()
}

func misspellAll(tree *mutation.Tree) ([]mutation.Mutant, error) {
	names, err := find(tree.Root)
	mutants := make([]mutation.Mutant, len(names))
	for i, n := range names {
		mutants[i] = n.mutant()
	}
	return mutants, err
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

// exempt are constants whose value no test can check.
var exempt = map[string]string{
	"cardOperationRecord": "it is a key in memory, and not on the wire",
	"messageSuccess":      "it only spares an allocation: any other text is kept as it came",
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
	selector, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch selector.Sel.Name {
	case "Add":
		f.whole("field", n.Args[0])
	case "Get", "Set", "Del", "Values":
		f.whole("header", n.Args[0])
	}
}

func (f *finder) composite(n *ast.CompositeLit) {
	switch typeName(n.Type) {
	case "spec":
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
		f.elements("field", n)
	case "[]transferField":
		f.elements("field", n)
	case "[]wire.FieldOf":
		f.elements("field", n)
	case "wire.File":
		f.whole("field", element(n, "Field", 0))
	}
}

// elements gathers the names of the elements of a list.
func (f *finder) elements(what string, list *ast.CompositeLit) {
	for _, e := range list.Elts {
		if named, ok := e.(*ast.CompositeLit); ok {
			f.whole(what, element(named, "Name", 0))
		}
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

// misspell puts a letter in the middle, so that not even a test that searches for a
// part of a string finds the name. A code of digits becomes another code.
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
	case *ast.IndexExpr: // of a generic type
		return typeName(e.X)
	case *ast.ArrayType:
		return "[]" + typeName(e.Elt)
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

// mutant is the name misspelt.
func (n name) mutant() mutation.Mutant {
	return mutation.Mutant{
		Name:     n.String(),
		Edits:    []mutation.Edit{{File: n.file, Start: n.start, End: n.end, Text: strconv.Quote(n.wrong)}},
		Packages: []string{".", "./internal/test/hostile"},
	}
}

// tell leaves out the names that the tests know, unless all are wanted.
func tell(r mutation.Result, verbose bool) {
	if verbose || r.Verdict != mutation.Killed {
		fmt.Printf("%s: %s\n", r.Mutant.Name, r.Verdict)
	}
}

func report(results []mutation.Result, took time.Duration) (survivors int, err error) {
	var (
		unbuilt []error
		slow    int
	)
	for _, r := range results {
		switch r.Verdict {
		case mutation.Unbuilt:
			unbuilt = append(unbuilt, fmt.Errorf("%s does not compile where it is misspelt", r.Mutant.Name))
		case mutation.Survived:
			survivors++
			fmt.Printf("survivor: %s\n", r.Mutant.Name)
		case mutation.TimedOut:
			slow++
		}
	}
	if len(unbuilt) > 0 {
		return survivors, errors.Join(unbuilt...)
	}
	fmt.Printf("\ncaught %d of %d in %s", len(results)-survivors, len(results), took.Round(time.Second))
	if slow > 0 {
		fmt.Printf(", %d of them by tests that do not end", slow)
	}
	fmt.Println()
	return survivors, nil
}
