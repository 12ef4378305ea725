package main

import (
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// code is what the tests change.
const code = `package p

const limit = 2

var table = []row{
	{name: "first", deep: true},
	{name: second, deep: true},
}

// put is of a generic type.
func (b *box[T]) put(v T) bool {
	defer b.lock.Leave()
	if got, ok := b.shelf.get(v); ok && got != nil {
		b.count = 1 // of those
		return b.open && (got.fresh || b.late())
	}
	switch {
	case b.closed(), b.full:
		return false
	case v == nil:
		b.forget()
	}
	b.note("put: %s, once", v)
	return b.keep(v, limit)
}

func init() {}

func init() {}
`

func TestChanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		place    place
		old, new string
	}{
		"drop a statement":           {in("box.put", drop("Leave")), "\tdefer b.lock.Leave()\n", "\n"},
		"drop an operand":            {in("box.put", drop("fresh")), "got.fresh || b.late()", "b.late()"},
		"drop the other operand":     {in("box.put", drop("late")), "got.fresh || b.late()", "got.fresh"},
		"drop operands":              {in("box.put", drop("_.fresh || _")), "b.open && (got.fresh || b.late())", "b.open"},
		"drop one of a case":         {in("box.put", drop("closed")), "b.closed(), b.full", "b.full"},
		"drop the last of a case":    {in("box.put", drop("full")), "b.closed(), b.full", "b.closed()"},
		"drop a case":                {in("box.put", drop("v == nil")), "\tcase v == nil:\n\t\tb.forget()\n", "\n"},
		"drop a statement of a case": {in("box.put", drop("forget")), "\t\tb.forget()\n", "\n"},
		"drop a field of a row":      {in("table/second", drop("deep")), "second, deep: true", "second"},
		"never, by a statement":      {in("box.put", never("shelf.get")), "ok && got != nil", "(ok && got != nil) && false"},
		"never a case":               {in("box.put", never("closed")), "b.closed()", "(b.closed()) && false"},
		"always":                     {in("box.put", always("_ != nil")), "ok && got != nil", "(ok && got != nil) || true"},
		"swap a selected name":       {in("box.put", swap("open", "true")), "b.open", "true"},
		"swap what is around":        {in("box.put", swap("_.keep(_, limit)", "!_.lose(_)")), "b.keep(v, limit)", "!b.lose(v)"},
		"swap and use it twice":      {in("box.put", swap("_.late()", "_.late() && _.later()")), "b.late()", "b.late() && b.later()"},
		"swap a statement":           {in("box.put", swap("return false", "_ = b\nreturn true")), "return false", "_ = b\nreturn true"},
		"value of a constant":        {in("limit", value("3")), "limit = 2", "limit = 3"},
		"value of a variable":        {in("box.put/count", value("9")), "b.count = 1", "b.count = 9"},
		"value of a field":           {in(`table/"first"`, swap("true", "false")), `"first", deep: true`, `"first", deep: false`},
		"before a statement":         {in("box.put", before("keep", "b.look()")), "return b.keep", "b.look()\nreturn b.keep"},
		"after an element":           {in("table/second", after("name", "old: true")), "second, deep", "second, old: true, deep"},
		"declare":                    {in("box.put", declare("var x int")), "v, limit)\n}\n", "v, limit)\n}\n\nvar x int\n"},
		"a piece of a string":        {in("box.put", literal(", once", "")), "put: %s, once", "put: %s"},
		"a part, and a name in it":   {in("box.put/fresh", swap("got", "b")), "got.fresh", "b.fresh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 1, strings.Count(code, tc.old))
			edits, err := tc.place.edits(sourceOf(t))
			require.NoError(t, err)
			require.Len(t, edits, 1)
			assert.Equal(t, "a.go", edits[0].File)
			changed := code[:edits[0].Start] + edits[0].Text + code[edits[0].End:]
			assert.Equal(t, formatted(t, strings.Replace(code, tc.old, tc.new, 1)), formatted(t, changed))
		})
	}
}

func TestWhatDoesNotMatchOnceIsAnErrorThatNamesTheMutant(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]place{
		`box.take: "box.take" matches 0 declarations instead of one`:                                   in("box.take", drop("Leave")),
		`init: "init" matches 2 declarations instead of one`:                                           in("init", drop("x")),
		`box.put: "note(_)" matches 0 expressions or statements instead of one`:                        in("box.put", swap("note(_)", "x")),
		`box.put/lid: "lid" matches 0 parts instead of one`:                                            in("box.put/lid", value("1")),
		`box.put: "Enter" matches 0 parts instead of one`:                                              in("box.put", drop("Enter")),
		`box.put: "v" matches 4 parts instead of one`:                                                  in("box.put", drop("v")),
		`box.put: "keep" matches 0 conditions instead of one`:                                          in("box.put", never("keep")),
		`box.put: "got" matches 3 expressions or statements instead of one`:                            in("box.put", swap("got", "b")),
		`box.put: "twice" matches 0 strings instead of one`:                                            in("box.put", literal("twice", "")),
		`box.put: "if" is neither an expression nor a statement`:                                       in("box.put", drop("if")),
		`box.put: "a; b" is 2 statements instead of one`:                                               in("box.put", drop("a; b")),
		`box.put: there is not one value`:                                                              in("box.put", value("1")),
		`box.put: "_(_, _, _)" has 4 _ for the pattern's 2`:                                            in("box.put", swap("_.keep(_, limit)", "_(_, _, _)")),
		"box.put: \"x\" matches 0 parts instead of one\nbox.put: \"y\" matches 0 parts instead of one": in("box.put", drop("x"), drop("y")),
	} {
		m := defect("a defect", p)
		_, err := m.find(sourceOf(t))
		assert.EqualError(t, err, "a defect: "+want)
	}
}

func TestTheTestsOfAMutant(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"call.claim":               {"", ".", "./..."},
		"transport.exchange.pause": {"", "./internal/transport", ".", "./..."},
		"sqljournal.Journal.End":   {"sqljournal", "./..."},
		"export.part.begin/Remove": {"examples/apps", "./..."},
	} {
		m := defect("a defect", in(name))
		assert.Equal(t, want, slices.Concat([]string{m.module()}, m.packages()), name)
	}
}

func sourceOf(t *testing.T) *source {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte(code), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a_test.go"), []byte(code), 0o600))
	return newSource(root)
}

func formatted(t *testing.T, code string) string {
	t.Helper()
	b, err := format.Source([]byte(code))
	require.NoError(t, err)
	return string(b)
}
