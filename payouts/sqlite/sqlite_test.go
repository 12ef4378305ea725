package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/payouts/sqlite"
)

// A statement that is parsed once can run again while its rows are read, and once they are; any name is a file's.
func TestStatementsThatAreParsedOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a ?%20#.db")
	db, err := sqlite.Open("/" + name)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	const query = "-- name: Numbers\nSELECT column1 FROM (VALUES (1), (2), (3)) WHERE column1 >= $1"
	for range 2 {
		outer, err := tx.QueryContext(t.Context(), query, 1)
		require.NoError(t, err)
		var seen []int
		for outer.Next() {
			var n, inner int
			require.NoError(t, outer.Scan(&n))
			require.NoError(t, tx.QueryRowContext(t.Context(), query, 3).Scan(&inner))
			seen = append(seen, n, inner)
		}
		require.NoError(t, outer.Err())
		require.NoError(t, outer.Close())
		assert.Equal(t, []int{1, 3, 2, 3, 3, 3}, seen)
	}
	_, err = os.Stat(name)
	require.NoError(t, err)
}
