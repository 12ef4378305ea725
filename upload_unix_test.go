//go:build linux || darwin

package cardwire

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/upload"
)

// Opening a named pipe waits for somebody who writes to it, and no context ends that.
func TestImageFileOfANamedPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "front.png")
	require.NoError(t, os.WriteFile(path, []byte(pngHead), 0o600))
	p, err := ImageFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))

	_, err = unasked(t).UploadImage(t.Context(), p)
	refusedBeforehand(t, err, "the file was replaced or has changed its size since ImageFile")
	_, err = ImageFile(path)
	require.ErrorIs(t, err, upload.ErrNotRegular)
}
