package statement

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// Names of columns and statuses may have what separates them.
func TestNames(t *testing.T) {
	t.Parallel()
	var f File
	require.NoError(t, f.Names(`order=No = 1,"amount=Sum, net",id=`, `"a=b, ""c""=executed",x=pending`))
	assert.Equal(t, map[string]string{"order": "No = 1", "amount": "Sum, net", "id": ""}, f.Columns)
	assert.Equal(t, map[string]sqljournal.StatementStatus{
		`a=b, "c"`: sqljournal.StatementExecuted, "x": sqljournal.StatementPending,
	}, f.Statuses)
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
