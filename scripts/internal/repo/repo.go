// Package repo finds the repository for the programs in scripts.
package repo

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Root is the repository's own directory, from whichever directory below it the
// program is run.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cardwire/cardwire-go").Output()
	if err != nil {
		return "", fmt.Errorf("run it inside the repository: go list: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
