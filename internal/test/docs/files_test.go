package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader finds each group of operations in the file of its name, and no more files than
// can be taken in at a glance.
func TestTheTopLevelIsAsItWasOrdered(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	var names, code []string
	for _, entry := range entries {
		name := entry.Name()
		names = append(names, name)
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			code = append(code, name)
		}
	}
	assert.Subset(t, names, []string{
		"client.go", "cards.go", "bins.go", "account.go", "remittance.go", "upload.go", "envelope.go", "types.go",
		"errors.go", "examples", "internal", "go.mod", "go.sum", "README.md",
	})
	assert.LessOrEqual(t, len(code), 21, "%v", code)
}

// cmp.Or evaluates all its arguments: what takes a context would run after what has failed.
func TestNothingWithAContextRunsAfterAFailure(t *testing.T) {
	t.Parallel()
	const harmful = "package p; var _, _ = cmp.Or(f(ctx), s.g(k.ctx, 1)), cmp.Or(err, check(x, h(t.Context())))"
	assert.Len(t, orWithContext(t, "", harmful), 2)
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			assert.Empty(t, orWithContext(t, root+"/"+path, nil))
		}
		return err
	}))
}

// orWithContext returns the places of calls of cmp.Or in which an argument after the first
// passes a context on.
func orWithContext(t *testing.T, path string, source any) (places []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		or, isCall := n.(*ast.CallExpr)
		if !isCall || !isSelector(or.Fun, "Or") {
			return true
		}
		for _, argument := range or.Args[1:] {
			ast.Inspect(argument, func(n ast.Node) bool {
				call, isCall := n.(*ast.CallExpr)
				if isCall && len(call.Args) > 0 && isContext(call.Args[0]) {
					places = append(places, files.Position(call.Pos()).String())
				}
				return !isCall || !isSelector(call.Fun, "Or")
			})
		}
		return true
	})
	return places
}

func isSelector(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name
}

func isContext(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		return isSelector(call.Fun, "Context")
	}
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "ctx" || isSelector(e, "ctx")
}
