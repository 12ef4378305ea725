package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
)

// A pattern is an expression or a statement. In it, _ matches any expression, and a name
// also matches a selector that ends with it: memory.Enter matches c.core.memory.Enter.

// parse parses a pattern.
func parse(pattern string) (ast.Node, error) {
	if e, err := parser.ParseExpr(pattern); err == nil {
		return e, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+pattern+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("%q is neither an expression nor a statement", pattern)
	}
	body := f.Decls[0].(*ast.FuncDecl).Body.List
	if len(body) != 1 {
		return nil, fmt.Errorf("%q is %d statements instead of one", pattern, len(body))
	}
	return body[0], nil
}

// nodes lead from a scope to a node in it.
type nodes []ast.Node

func (n nodes) node() ast.Node   { return n[len(n)-1] }
func (n nodes) parent() ast.Node { return n[len(n)-2] }

// match is a node that a pattern matches, and what each _ of the pattern matched.
type match struct {
	way nodes
	any []ast.Node
}

// find returns the nodes of root that the pattern matches, but none within another.
func find(root, pattern ast.Node) (found []match) {
	var way nodes
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			way = way[:len(way)-1]
			return true
		}
		way = append(way, n)
		m := match{way: slices.Clone(way)}
		if !m.same(reflect.ValueOf(pattern), reflect.ValueOf(n)) {
			return true
		}
		found = append(found, m)
		way = way[:len(way)-1]
		return false
	})
	return found
}

// same compares syntax, without positions and comments.
func (m *match) same(pattern, n reflect.Value) bool {
	if pattern.Kind() == reflect.Interface {
		pattern, n = pattern.Elem(), n.Elem()
	}
	if !pattern.IsValid() || !n.IsValid() {
		return pattern.IsValid() == n.IsValid()
	}
	if name, ok := pattern.Interface().(*ast.Ident); ok && name != nil {
		e, _ := n.Interface().(ast.Expr)
		if name.Name == "_" && e != nil {
			m.any = append(m.any, e)
			return true
		}
		if s, ok := e.(*ast.SelectorExpr); ok {
			return s.Sel.Name == name.Name
		}
	}
	if pattern.Type() != n.Type() {
		return false
	}
	switch pattern.Interface().(type) {
	case token.Pos, *ast.CommentGroup:
		return true
	}
	return m.sameValue(pattern, n)
}

func (m *match) sameValue(pattern, n reflect.Value) bool {
	switch pattern.Kind() {
	case reflect.Pointer:
		return m.same(pattern.Elem(), n.Elem())
	case reflect.Struct:
		for i := range pattern.NumField() {
			if !m.same(pattern.Field(i), n.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if pattern.Len() != n.Len() {
			return false
		}
		for i := range pattern.Len() {
			if !m.same(pattern.Index(i), n.Index(i)) {
				return false
			}
		}
		return true
	}
	return pattern.Equal(n)
}
