package docs_test

import (
	"go/ast"
	"go/types"
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

// The linter sees to every other exported name, by revive's exported.
func TestEveryExportedFieldHasAComment(t *testing.T) {
	t.Parallel()
	packages := publicPackages(t)
	assert.Subset(t, packages, []string{".", "cardwireotel", "cardwiretest", "sqljournal"})
	fields := 0
	for _, dir := range packages {
		for _, file := range wiretest.Source(t, filepath.Join(root, dir)) {
			missing, all := undocumented(file)
			assert.Empty(t, missing, dir)
			fields += all
		}
	}
	assert.Greater(t, fields, 300)
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

// foreignWord matches the words that this project does not use for a response, the API,
// what is undocumented, and what is unresolved.
var foreignWord = regexp.MustCompile(`(?i)\b(answer(s|ed)?|repl(y|ies)|the\W+interface|not\W+shown|undecided)\b`)

// Comments and error messages use the words of the field.
func TestPublicWordsAreThoseOfTheField(t *testing.T) {
	t.Parallel()
	assert.Len(t, foreignWord.FindAllString("Answers are not shown\n// by the interface: undecided", -1), 4)
	for _, dir := range publicPackages(t) {
		sources, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		for _, source := range sources {
			text, err := os.ReadFile(source)
			require.NoError(t, err)
			assert.Empty(t, foreignWord.FindAllString(string(text), -1), source)
		}
	}
}

// undocumented returns the exported fields of a file's exported structs, and the methods of
// its interfaces, that have no comment of their own, behind or, beginning with the name, above,
// and how many there are.
func undocumented(file *ast.File) (missing []string, all int) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		var fields *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			fields = of.Fields
		case *ast.InterfaceType:
			fields = of.Methods
		default:
			return false
		}
		for _, field := range fields.List {
			names := field.Names
			if len(names) == 0 { // it is embedded: *http.Client is Client
				of := strings.TrimPrefix(types.ExprString(field.Type), "*")
				names = []*ast.Ident{ast.NewIdent(of[strings.LastIndex(of, ".")+1:])}
			}
			for _, name := range names {
				above := regexp.MustCompile(`^` + name.Name + `\b`).MatchString(field.Doc.Text())
				explained := len(names) == 1 && (above || field.Comment != nil)
				all++
				if name.IsExported() && !explained {
					missing = append(missing, spec.Name.Name+"."+name.Name)
				}
			}
		}
		return false
	})
	return missing, all
}
