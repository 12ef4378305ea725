package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestEveryExportedNameHasACommentThatBeginsWithIt(t *testing.T) {
	t.Parallel()
	packages := publicPackages(t)
	assert.Subset(t, packages, []string{".", "cardwireotel", "cardwiretest", "sqljournal"})
	for _, dir := range packages {
		var missing []string
		for _, file := range wiretest.Source(t, filepath.Join(root, dir)) {
			missing = append(missing, undocumented(file)...)
		}
		assert.Empty(t, missing, dir)
	}
}

func TestEveryPublicPackageHasAComment(t *testing.T) {
	t.Parallel()
	for _, dir := range publicPackages(t) {
		documented := slices.ContainsFunc(wiretest.Source(t, filepath.Join(root, dir)), func(file *ast.File) bool {
			return strings.HasPrefix(file.Doc.Text(), "Package "+file.Name.Name+" ")
		})
		assert.True(t, documented, dir)
	}
}

// publicPackages are the directories of what others can import, those of nested
// modules too.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		hidden := path != "." && strings.HasPrefix(entry.Name(), ".")
		if hidden || slices.Contains([]string{"examples", "internal", "scripts", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		sources, err := filepath.Glob(filepath.Join(root, path, "*.go"))
		sources = slices.DeleteFunc(sources, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
		if err == nil && len(sources) > 0 && wiretest.Source(t, filepath.Join(root, path))[0].Name.Name != "main" {
			dirs = append(dirs, path)
		}
		return err
	}))
	return dirs
}

// Doc comments and error messages use the words of the field.
func TestPublicWordsAreThoseOfTheField(t *testing.T) {
	t.Parallel()
	for _, dir := range publicPackages(t) {
		for _, file := range wiretest.Source(t, filepath.Join(root, dir)) {
			assert.Empty(t, foreignWords(file), dir)
		}
	}
}

func TestTheWordCheckerFindsForeignWords(t *testing.T) {
	t.Parallel()
	const source = `// Package p calls the interface.
package p

// Name is not shown
// by the document. The interface io.Reader is fine? No: name it.
type Name interface {
	// Answers are counted.
	Answers() int // replies
}

// quiet holds the reply, which nobody reads.
func quiet() error { return errors.New("the answer is too large") }

const undecidedKind = "undecided"
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"the interface", "not shown", "The interface", "Answers", "replies", "answer", "undecided",
	}, foreignWords(file))
}

// foreignWord matches the words that this project does not use for a response, the API,
// what is undocumented, and what is unresolved.
var foreignWord = regexp.MustCompile(`(?i)\b(answer(s|ed)?|repl(y|ies)|the interface|not shown|undecided)\b`)

// foreignWords returns those in the doc comments of exported names and in all strings:
// which of them becomes part of an error cannot be told from the syntax.
func foreignWords(file *ast.File) (found []string) {
	look := func(text string) {
		text = strings.ReplaceAll(text, "'undecided'", "") // in tables that an earlier version wrote
		found = append(found, foreignWord.FindAllString(strings.Join(strings.Fields(text), " "), -1)...)
	}
	look(file.Doc.Text())
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			if x.Name.IsExported() {
				look(x.Doc.Text())
			}
		case *ast.GenDecl:
			look(x.Doc.Text())
		case *ast.TypeSpec:
			look(x.Doc.Text())
		case *ast.ValueSpec:
			look(x.Doc.Text() + x.Comment.Text())
		case *ast.Field:
			look(x.Doc.Text() + x.Comment.Text())
		case *ast.BasicLit:
			if x.Kind == token.STRING {
				look(x.Value)
			}
		}
		return true
	})
	return found
}

// A checker that finds nothing anywhere would pass the test above.
func TestTheCommentCheckerFindsWhatIsMissing(t *testing.T) {
	t.Parallel()
	const source = `package p

type Bare struct{}

// A wrong beginning of Wrong.
type Wrong struct {
	// Good is fine.
	Good int
	Bad  int
	// Which is not how it begins.
	Worse int
	// Good, Both are not allowed to share one comment.
	Both, Each int
	quiet int
}

// Embeds is fine.
type Embeds struct {
	Wrong
	// Good is fine.
	Good
}

// Two has methods; that it names Third explains nothing.
type Two interface {
	// First is fine.
	First()
	Second()
	Third()
}

// One has a method.
type One interface{ Only() }

func (Bare) Method() {}

func (*Bare) Pointer() {}

func (*Bare) quiet() {}

func Function() {}

// Documented is fine.
func Documented() {}

type hidden struct{ Field int }

func (hidden) Method() {}

const Alone = 1

// The members of this group need a word each.
const (
	Said   = 1 // said
	Unsaid = 2
)

const (
	Trailing = 1 // a group without a comment of its own
	// Own is fine.
	Own = 2
)

// Err stands before a var.
var Err, Second error
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Bare", "Wrong", "Wrong.Bad", "Wrong.Worse", "Wrong.Both", "Wrong.Each", "Embeds.Wrong", "Two.Second",
		"Two.Third", "One.Only",
		"Bare.Method", "Bare.Pointer", "Function", "Alone", "Unsaid", "Trailing", "Second",
	}, undocumented(file))
}

// undocumented returns the exported names of a file, fields and methods
// included, that have no comment of their own that begins with the name. A
// constant of a group that has a comment may do with one at its line's end.
func undocumented(file *ast.File) (missing []string) {
	check := func(name, word string, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			if beginsWith(doc, word) {
				return
			}
		}
		missing = append(missing, name)
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			receiver := ""
			if d.Recv != nil {
				receiver = baseName(d.Recv.List[0].Type)
				if !ast.IsExported(receiver) {
					continue
				}
				receiver += "."
			}
			if d.Name.IsExported() {
				check(receiver+d.Name.Name, d.Name.Name, d.Doc)
			}
		case *ast.GenDecl:
			group := d.Doc
			if !d.Lparen.IsValid() {
				group = nil // the declaration's comment is then the name's own
			}
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if !s.Name.IsExported() {
						continue
					}
					check(s.Name.Name, s.Name.Name, s.Doc, d.Doc)
					missing = append(missing, undocumentedFields(s)...)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() && (group == nil || d.Tok != token.CONST || s.Comment == nil) {
							check(name.Name, name.Name, s.Doc, d.Doc)
						}
					}
				}
			}
		}
	}
	return missing
}

// undocumentedFields looks at fields and at the methods of interfaces.
func undocumentedFields(s *ast.TypeSpec) (missing []string) {
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	for _, field := range fields.List {
		names := []string{baseName(field.Type)}
		if len(field.Names) > 0 {
			names = nil
			for _, n := range field.Names {
				names = append(names, n.Name)
			}
		}
		for _, name := range names {
			explained := len(names) == 1 && beginsWith(field.Doc, name)
			if ast.IsExported(name) && !explained {
				missing = append(missing, s.Name.Name+"."+name)
			}
		}
	}
	return missing
}

func beginsWith(doc *ast.CommentGroup, word string) bool {
	return regexp.MustCompile(`^` + word + `\b`).MatchString(doc.Text())
}

// baseName returns the name of the type that an expression denotes: of a
// receiver, or of an embedded field.
func baseName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return baseName(x.X)
	case *ast.IndexExpr:
		return baseName(x.X)
	case *ast.IndexListExpr:
		return baseName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}
