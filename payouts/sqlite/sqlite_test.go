package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A statement that is parsed once can run again while its rows are read, and once they are; any name is a file's.
func TestStatementsThatAreParsedOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a ?%20#.db")
	db, err := Open("/" + name)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	const query = "SELECT column1 FROM (VALUES (1), (2), (3)) WHERE column1 >= $1"
	for range 2 { // the second time it is parsed
		outer, err := tx.QueryContext(t.Context(), query, 1)
		require.NoError(t, err)
		var seen []int
		for outer.Next() {
			var n, inner int
			require.NoError(t, outer.Scan(&n))
			require.NoError(t, tx.QueryRowContext(t.Context(), query, 3).Scan(&inner))
			for i := range 2 * maxParsed {
				require.NoError(t, tx.QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d", i)).Scan(new(int)))
			}
			seen = append(seen, n, inner)
		}
		require.NoError(t, outer.Err())
		require.NoError(t, outer.Close())
		assert.Equal(t, []int{1, 3, 2, 3, 3, 3}, seen)
	}
	require.NoError(t, tx.Rollback())
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Raw(func(c any) error {
		parsed := c.(*conn).parsed
		assert.Len(t, parsed, maxParsed)
		assert.False(t, parsed[query].isOpen, "it is used again")
		return nil
	}))
	_, err = os.Stat(name)
	require.NoError(t, err)
}
