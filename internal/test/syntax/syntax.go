// Package syntax parses the project's own source, for the tests of its rules.
package syntax

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files returns the files of a package without its tests, including comments.
func Files(t testing.TB, dir string) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.NotEmpty(t, files)
	return files
}

// BaseName returns the name of the type that an expression denotes: of a
// receiver, or of an embedded field.
func BaseName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return BaseName(x.X)
	case *ast.IndexExpr:
		return BaseName(x.X)
	case *ast.IndexListExpr:
		return BaseName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}
