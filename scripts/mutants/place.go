package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cardwire/cardwire-go/scripts/internal/mutation"
)

// place is where a mutant changes the code, and how.
type place struct {
	name    string // as in "transport.exchange.pause/MaxRetryAfter"
	changes []change
}

// in makes changes in a function, a method, a constant or a variable: "do" and
// "call.claim" of the root package, "transport.harden" of a package of dirs. A slash leads
// to the part that mentions a name: the field with that key, the row with that value, or
// the part that drop would remove.
func in(name string, changes ...change) place { return place{name, changes} }

// dir is the directory of the place's package, relative to the root.
func (p *place) dir() string {
	first, _, _ := strings.Cut(p.name, ".")
	return dirs[first]
}

// edits finds the changes in the code.
func (p *place) edits(code *source) ([]mutation.Edit, error) {
	s, err := code.scope(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	var (
		edits    []mutation.Edit
		failures []error
	)
	for _, c := range p.changes {
		edit, err := c(s)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", p.name, err))
		}
		edits = append(edits, edit)
	}
	return edits, errors.Join(failures...)
}

// source is the product code of the repository.
type source struct {
	root string
	read map[string][]*file // by directory
}

func newSource(root string) *source { return &source{root, map[string][]*file{}} }

// file is a file of it.
type file struct {
	name  string // relative to the root
	bytes []byte
	set   *token.FileSet
	tree  *ast.File
}

// text is a node as it is written.
func (f *file) text(n ast.Node) string { return string(f.bytes[f.offset(n.Pos()):f.offset(n.End())]) }

func (f *file) offset(p token.Pos) int { return f.set.Position(p).Offset }

// files returns those of a directory, without its tests.
func (c *source) files(dir string) ([]*file, error) {
	if files, ok := c.read[dir]; ok {
		return files, nil
	}
	names, err := filepath.Glob(filepath.Join(c.root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*file
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := &file{name: path.Join(dir, filepath.Base(name)), set: token.NewFileSet()}
		if f.bytes, err = os.ReadFile(name); err != nil {
			return nil, err
		}
		if f.tree, err = parser.ParseFile(f.set, name, f.bytes, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	c.read[dir] = files
	return files, nil
}

// scope is the code of a place.
type scope struct {
	*file
	declared ast.Node // the whole of it
	node     ast.Node // what is searched
}

// scope finds the one declaration with the name of the place, and what follows its slash.
func (c *source) scope(p *place) (*scope, error) {
	name, part, narrow := strings.Cut(p.name, "/")
	if p.dir() != "" {
		_, name, _ = strings.Cut(name, ".")
	}
	files, err := c.files(p.dir())
	if err != nil {
		return nil, err
	}
	var found []*scope
	for _, f := range files {
		for _, d := range f.tree.Decls {
			found = append(found, f.declarations(d, name)...)
		}
	}
	if len(found) != 1 {
		return nil, notOne("declarations", name, len(found))
	}
	if narrow {
		return found[0].narrow(part)
	}
	return found[0], nil
}

// declarations returns what of a declaration has the name.
func (f *file) declarations(d ast.Decl, name string) (found []*scope) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if nameOf(d) == name {
			found = append(found, &scope{f, d, d.Body})
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok && v.Names[0].Name == name {
				found = append(found, &scope{f, d, v})
			}
		}
	}
	return found
}

// nameOf is the name of a function, after that of its receiver's type.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	return receiver.(*ast.Ident).Name + "." + d.Name.Name
}

// narrow returns the part of the scope that mentions a name.
func (s *scope) narrow(name string) (*scope, error) {
	parts, err := s.parts(name)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		if pair, ok := p.node().(*ast.KeyValueExpr); ok && !s.mentions(pair.Key, name) {
			parts[i] = p[:len(p)-1] // the row
		}
	}
	if len(parts) != 1 {
		return nil, notOne("parts", name, len(parts))
	}
	return &scope{s.file, s.declared, parts[0].node()}, nil
}

func (s *scope) mentions(n ast.Node, name string) bool {
	pattern, err := parse(name)
	return err == nil && len(find(n, pattern)) > 0
}

// parts returns the smallest parts that mention the pattern: an operand of && or ||, an
// element of a composite literal or of a case, a statement, or a case.
func (s *scope) parts(pattern string) (parts []nodes, err error) {
	parsed, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	for _, m := range find(s.node, parsed) {
		p := m.way
		for len(p) > 1 && !isPart(p.parent(), p.node()) {
			p = p[:len(p)-1]
		}
		if len(p) > 1 && !slices.ContainsFunc(parts, func(other nodes) bool { return other.node() == p.node() }) {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// part returns the only one of the parts.
func (s *scope) part(pattern string) (nodes, error) {
	parts, err := s.parts(pattern)
	if err == nil && len(parts) != 1 {
		err = notOne("parts", pattern, len(parts))
	}
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

func isPart(parent, n ast.Node) bool {
	switch parent := parent.(type) {
	case *ast.BinaryExpr:
		return parent.Op == token.LAND || parent.Op == token.LOR
	case *ast.CompositeLit:
		return n != parent.Type
	case *ast.CaseClause:
		_, statement := n.(ast.Stmt)
		return statement || len(parent.List) > 1
	case *ast.BlockStmt:
		return true
	}
	return false
}

func notOne(what, pattern string, n int) error {
	return fmt.Errorf("%q matches %d %s instead of one", pattern, n, what)
}
