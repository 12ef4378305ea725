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
		f := File{Columns: map[string]string{}, Statuses: map[string]sqljournal.StatementStatus{"x": sqljournal.StatementPending}}
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

// A spreadsheet calculates nothing of what is written, whatever stands before it, and what is read is what was meant.
func TestFormulasAreGuarded(t *testing.T) {
	t.Parallel()
	for _, cell := range []string{"=1", "＝1", "\u00a0=1", "\ufeff=1", "; =1", ",@x", "\t+1", "'-1", "''=1"} {
		assert.Equal(t, []string{"'" + cell}, Guarded(cell))
		assert.Equal(t, cell, unguarded("'"+cell))
	}
	for _, cell := range []string{"A-1", "'", "it's", "1=1"} {
		assert.Equal(t, []string{cell}, Guarded(cell))
		assert.Equal(t, cell, unguarded(cell))
	}
}

// The first line of a file without a header has names and accounts.
func TestAFileWithoutAHeader(t *testing.T) {
	t.Parallel()
	for _, err := range new(File).Statement(strings.NewReader("A-1,12.50,CANARY\n")).Lines {
		require.ErrorContains(t, err, `line 1 must name one column "order", and names 0 of its 3 so`)
		assert.NotContains(t, err.Error(), "CANARY")
	}
}
