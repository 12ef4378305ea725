package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README says how much larger the client makes a program that has an HTTP client and JSON already, and what
// it links.
func TestWhatTheClientWeighs(t *testing.T) {
	t.Parallel()
	at, err := filepath.Abs(root)
	require.NoError(t, err)
	const of = "github.com/cardwire/cardwire-go"
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run := func(args ...string) string {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	write("go.mod", strings.Replace(document(t, "go.mod"), "module "+of, "module shop", 1)+
		"\nrequire "+of+" v0.0.0\nreplace "+of+" => "+at+"\n")
	write("go.sum", document(t, "go.sum"))
	size := func(imports, use string) float64 {
		write("main.go", "package main\n\nimport (\n\t\"encoding/json\"\n\t\"net/http\"\n"+imports+")\n\n"+
			"func main() {\n"+
			"\tr, err := http.Get(\"https://example.com\")\n\t_ = json.NewDecoder(r.Body).Decode(&err)\n"+use+"}\n")
		run("build", "-ldflags=-s -w", "-o", "shop", ".")
		program, err := os.Stat(filepath.Join(dir, "shop"))
		require.NoError(t, err)
		return float64(program.Size()) / 1e6
	}
	without := size("", "")
	with := size("\t\"context\"\n\t\""+of+"\"\n", "\tc, _ := cardwire.NewFromEnv()\n"+
		"\t_, _ = c.GetCard(context.Background(), \"c-1\")\n"+
		"\t_, _ = c.CreateTransfer(context.Background(), cardwire.TransferParams{})\n")
	if runtime.GOARCH == "amd64" {
		assert.InDelta(t, 1.2, with-without, 0.2)
		assert.Contains(t, document(t, "README.md"), "The client adds 1.2 MB to")
	}

	const linked = `{{with .Module}}{{.Path}}{{end}}`
	modules := map[string]bool{}
	for _, module := range strings.Fields(run("list", "-deps", "-f", linked, ".")) {
		modules[module] = true
	}
	assert.Equal(t, map[string]bool{
		"shop": true, of: true, "github.com/shopspring/decimal": true, "github.com/hashicorp/go-retryablehttp": true,
		"github.com/hashicorp/go-cleanhttp": true, "github.com/google/uuid": true,
	}, modules)
}
