package repo

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRootIsFoundFromBelow(t *testing.T) {
	want, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, below := range []string{".", "../../../docs"} {
		t.Run(below, func(t *testing.T) {
			t.Chdir(below)
			root, err := Root(t.Context())
			require.NoError(t, err)
			assert.Equal(t, want, root)
		})
	}
}

func TestThereIsNoRootElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Root(t.Context())
	assert.ErrorContains(t, err, "run it inside the repository")
}
