package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader finds each group of operations in the file of its name, and no more files than
// can be taken in at a glance.
func TestTheTopLevelIsAsItWasOrdered(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	var names, code []string
	for _, entry := range entries {
		name := entry.Name()
		names = append(names, name)
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && name != "record.go" {
			code = append(code, name)
		}
	}
	assert.Subset(t, names, []string{
		"client.go", "cards.go", "bins.go", "account.go", "remittance.go", "upload.go", "envelope.go", "types.go",
		"errors.go", "examples", "internal", "go.mod", "go.sum", "README.md",
	})
	assert.LessOrEqual(t, len(code), 21, "%v", code)
}
