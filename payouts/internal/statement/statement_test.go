package statement

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// What the page prints for a choice is that choice where the command reads it.
func TestTheFlagsAreTheChoice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a ,;="'\\ü\n]*`)
		f := File{Columns: map[string]string{},
			Statuses: map[string]sqljournal.StatementStatus{"x": sqljournal.StatementPending}}
		for _, field := range Fields {
			f.Columns[field] = name.Draw(t, "column")
		}
		for range 3 {
			f.Statuses[name.Draw(t, "status")] = sqljournal.StatementExecuted
		}
		var read File
		require.NoError(t, read.Names(joined(f.Columns), joined(f.Statuses)))
		assert.Equal(t, f, read)
	})
}

// A spreadsheet calculates nothing of what is written, whatever stands before it and whatever separates its columns,
// and what is read is what was meant.
func TestFormulasAreGuarded(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"=1": "'=1", "＝1": "'＝1", "\u00a0=1": "'\u00a0=1", "\ufeff=1": "'\ufeff=1", "'-1": "''-1", "''=1": "'''=1",
		"A-1;=1+1;": `"A-1;'=1+1;"`, "; =1": `";' =1"`, ",@x": `",'@x"`, "\t+1": "\"\t'+1\"", "a\r=1": "\"a\r'=1\"",
		"a\n-1": "\"a\n'-1\"", `a"=1`: `"a""'=1"`, "A-1": "A-1", "'": "'", "it's": "it's",
		"1=1": "1=1", `a"b`: `"a""b"`,
		Number("007"): `"=""007"""`, Number(`7"=1`): `"=""7""""=1"""`,
	} {
		assert.Equal(t, want+",x\n", Row(cell, "x"))
	}
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`[=+@;,\t"'\r\n \x{a0}aA0-]*`).Draw(t, "cell")
		cells, isOpen := split(strings.TrimSuffix(Row(cell, Number(cell), "x"), "\n"), ',')
		require.False(t, isOpen)
		require.Len(t, cells, 3)
		assert.Equal(t, []string{cell, cell, "x"}, []string{unguarded(cells[0]), unguarded(cells[1]), cells[2]})
		assert.NotRegexp(t, `(^|[;,\t"\r\n])[\pZ]*[=+@-]`, cells[0])
	})
}

// The first line of a file without a header has names and accounts.
func TestAFileWithoutAHeader(t *testing.T) {
	t.Parallel()
	for _, err := range new(File).Statement(strings.NewReader("A-1,12.50,CANARY\n")).Lines {
		require.ErrorContains(t, err, `line 1 must name one column "order", and names none of its 3 so`)
		assert.NotContains(t, err.Error(), "CANARY")
	}
}
