package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestList(t *testing.T) {
	t.Parallel()
	const source = `package p

type Status int
const (
	Active Status = iota
	Closed
	Name = "a b"
	quiet = 1
)
var Err, err error
type Plain struct { Text string; Number, Other int }
func (Plain) Value(n int) (string, error) { return "", nil }
func (*Plain) Change(texts ...string) {}
func (*Plain) hidden() {}
type Sealed struct { Plain; *inner; digits [4]byte }
type inner struct{}
func (inner) Promoted() bool { return true }
type Listed struct { List []Plain; Map map[string]func(Plain) error }
type Doer interface { Do(p *Plain) error; hidden() }
type Option func(*inner) error
type Same = Plain
type Pair[T any, U comparable] struct { First T; Second U }
func New(base string, opts ...Option) (*Plain, error) { return nil, nil }
func Call[T any](p Plain) (T, error) { var t T; return t, nil }
func quietly() {}
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, 0)
	require.NoError(t, err)
	p, err := new(types.Config).Check("example.com/p", files, []*ast.File{file}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{
		`const Active Status = 0`,
		`const Closed Status = 1`,
		`const Name untyped string = "a b"`,
		`func Call[T any](p Plain) (T, error)`,
		`func New(base string, opts ...Option) (*Plain, error)`,
		`type Doer interface`,
		`type Doer, method Do(p *Plain) error`,
		`type Listed struct`,
		`type Listed, field List []Plain`,
		`type Listed, field Map map[string]func(Plain) error`,
		`type Option func(*inner) error`,
		`type Pair, field First T`,
		`type Pair, field Second U`,
		`type Pair[T any, U comparable] struct`,
		`type Plain struct, comparable`,
		`type Plain, field Number int`,
		`type Plain, field Other int`,
		`type Plain, field Text string`,
		`type Plain, method Value(n int) (string, error)`,
		`type Plain, method of a pointer Change(texts ...string)`,
		`type Same = Plain`,
		`type Sealed struct, comparable, with unexported fields`,
		`type Sealed, field Plain Plain, embedded`,
		`type Sealed, method Promoted() bool`,
		`type Sealed, method Value(n int) (string, error)`,
		`type Sealed, method of a pointer Change(texts ...string)`,
		`type Status int`,
		`var Err error`,
	}, list(p))
}

func TestWhatIsPublic(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"example.com/p": true, "example.com/p/ptest": true, "example.com/p/internal/x": false, "example.com/p/examples/x": false,
		"example.com/p/scripts/x": false, "example.com/p/internals": true,
	} {
		assert.Equal(t, want, isPublic(built{ImportPath: path, Name: "p"}), path)
		assert.False(t, isPublic(built{ImportPath: path, Name: "main"}), path)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("same.txt", "package p\n\nfunc A()\n")
	same, err := compareAll(dir, map[string]string{"same.txt": "package p\n\nfunc A()\n"})
	require.NoError(t, err)
	assert.True(t, same)
	for name, lists := range map[string]map[string]string{
		"a line more":  {"same.txt": "package p\n\nfunc A()\nfunc B()\n"},
		"a line less":  {"same.txt": "package p\n\n"},
		"another file": {"same.txt": "package p\n\nfunc A()\n", "new.txt": "package q\n\n"},
		"no file":      {},
	} {
		same, err := compareAll(dir, lists)
		require.NoError(t, err, name)
		assert.False(t, same, name)
	}
	assert.Equal(t, []string{"- func B()", "+ func C()"}, difference("p\n\nfunc A()\nfunc B()\n", "p\n\nfunc A()\nfunc C()\n"))
}
