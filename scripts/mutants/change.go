package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/cardwire/cardwire-go/scripts/internal/mutation"
)

// change finds the edit that changes a scope. What it changes must be there once.
type change func(*scope) (mutation.Edit, error)

// drop removes the part that mentions the pattern: an operand of && or ||, an element, a
// statement or a case, whichever is smallest.
func drop(pattern string) change {
	return func(s *scope) (mutation.Edit, error) {
		p, err := s.part(pattern)
		if err != nil {
			return mutation.Edit{}, err
		}
		switch parent := p.parent().(type) {
		case *ast.BinaryExpr:
			if parent.X == p.node() {
				return s.replace(parent, s.text(parent.Y)), nil
			}
			return s.replace(parent, s.text(parent.X)), nil
		case *ast.CompositeLit:
			return s.dropElement(parent.Elts, p.node()), nil
		case *ast.CaseClause:
			if e, ok := p.node().(ast.Expr); ok {
				return s.dropElement(parent.List, e), nil
			}
		}
		return s.replace(p.node(), ""), nil
	}
}

// never makes false the condition that mentions the pattern, of an if, a for or a case.
func never(pattern string) change { return fix(pattern, ") && false") }

// always makes it true.
func always(pattern string) change { return fix(pattern, ") || true") }

func fix(pattern, end string) change {
	return func(s *scope) (mutation.Edit, error) {
		conditions, err := s.conditions(pattern)
		if err == nil && len(conditions) != 1 {
			err = notOne("conditions", pattern, len(conditions))
		}
		if err != nil {
			return mutation.Edit{}, err
		}
		return s.replace(conditions[0], "("+s.text(conditions[0])+end), nil
	}
}

// swap puts an expression or a statement in the place of the one that the pattern matches.
// What the pattern's _ matched is put for each _ in it, in turn: if the pattern has one, for
// all of them, and if it has none, _ is Go's.
func swap(pattern, other string) change {
	return func(s *scope) (mutation.Edit, error) {
		parsed, err := parse(pattern)
		if err != nil {
			return mutation.Edit{}, err
		}
		found := find(s.node, parsed)
		if len(found) != 1 {
			return mutation.Edit{}, notOne("expressions or statements", pattern, len(found))
		}
		text, err := s.fill(other, found[0].any)
		return s.replace(found[0].way.node(), text), err
	}
}

// value gives a constant, a variable, a field or an assigned variable another value.
func value(other string) change {
	return func(s *scope) (mutation.Edit, error) {
		var values []ast.Expr
		switch n := s.node.(type) {
		case *ast.ValueSpec:
			values = n.Values
		case *ast.AssignStmt:
			values = n.Rhs
		case *ast.KeyValueExpr:
			values = append(values, n.Value)
		}
		if len(values) != 1 {
			return mutation.Edit{}, errors.New("there is not one value")
		}
		return s.replace(values[0], other), nil
	}
}

// before puts code before the statement or element that mentions the pattern.
func before(pattern, code string) change { return beside(pattern, code, true) }

// after puts it behind.
func after(pattern, code string) change { return beside(pattern, code, false) }

func beside(pattern, code string, first bool) change {
	return func(s *scope) (mutation.Edit, error) {
		p, err := s.part(pattern)
		if err != nil {
			return mutation.Edit{}, err
		}
		separator := ", "
		if _, statement := p.node().(ast.Stmt); statement {
			separator = "\n"
		}
		if first {
			return s.insert(p.node().Pos(), code+separator), nil
		}
		return s.insert(p.node().End(), separator+code), nil
	}
}

// declare puts a declaration behind that of the scope.
func declare(code string) change {
	return func(s *scope) (mutation.Edit, error) { return s.insert(s.declared.End(), "\n\n"+code), nil }
}

// literal changes a piece of a string literal, as of a statement in SQL.
func literal(piece, other string) change {
	return func(s *scope) (mutation.Edit, error) {
		var found []token.Pos
		ast.Inspect(s.node, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				for rest, start := l.Value, 0; strings.Contains(rest[start:], piece); start++ {
					start += strings.Index(rest[start:], piece)
					found = append(found, l.Pos()+token.Pos(start))
				}
			}
			return true
		})
		if len(found) != 1 {
			return mutation.Edit{}, notOne("strings", piece, len(found))
		}
		edit := s.insert(found[0], other)
		edit.End += len(piece)
		return edit, nil
	}
}

// conditions returns those that mention the pattern, or whose statement does before them.
func (s *scope) conditions(pattern string) (conditions []ast.Expr, err error) {
	parsed, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	for _, m := range find(s.node, parsed) {
		for p := m.way; len(p) > 1; p = p[:len(p)-1] {
			if c := condition(p.parent(), p.node()); c != nil {
				if !slices.Contains(conditions, c) {
					conditions = append(conditions, c)
				}
				break
			}
			if _, block := p.parent().(*ast.BlockStmt); block {
				break
			}
		}
	}
	return conditions, nil
}

// condition returns the condition of a statement whose head n is in, or nil.
func condition(statement, n ast.Node) ast.Expr {
	switch statement := statement.(type) {
	case *ast.IfStmt:
		if n == statement.Init || n == statement.Cond {
			return statement.Cond
		}
	case *ast.ForStmt:
		if n == statement.Init || n == statement.Cond {
			return statement.Cond
		}
	case *ast.CaseClause:
		if e, ok := n.(ast.Expr); ok {
			return e
		}
	}
	return nil
}

func (s *scope) replace(n ast.Node, text string) mutation.Edit {
	return mutation.Edit{File: s.name, Start: s.offset(n.Pos()), End: s.offset(n.End()), Text: text}
}

func (s *scope) insert(at token.Pos, text string) mutation.Edit {
	return mutation.Edit{File: s.name, Start: s.offset(at), End: s.offset(at), Text: text}
}

// dropElement removes an element of a list and its comma.
func (s *scope) dropElement(list []ast.Expr, n ast.Node) mutation.Edit {
	edit := s.replace(n, "")
	i := slices.IndexFunc(list, func(e ast.Expr) bool { return e == n })
	switch {
	case i+1 < len(list):
		edit.End = s.offset(list[i+1].Pos())
	case i > 0:
		edit.Start = s.offset(list[i-1].End())
	}
	return edit
}

var anyName = regexp.MustCompile(`\b_\b`)

// fill puts what a pattern's _ matched in the places of those in text.
func (s *scope) fill(text string, caught []ast.Node) (string, error) {
	if len(caught) == 0 {
		return text, nil
	}
	next := -1
	filled := anyName.ReplaceAllStringFunc(text, func(string) string {
		next++
		return s.text(caught[min(next, len(caught)-1)])
	})
	if len(caught) > 1 && next >= len(caught) {
		return "", fmt.Errorf("%q has %d _ for the pattern's %d", text, next+1, len(caught))
	}
	return filled, nil
}
