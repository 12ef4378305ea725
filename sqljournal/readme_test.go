package sqljournal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// imports is what an editor adds to the program of the README.
const imports = `package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
	"github.com/shopspring/decimal"
	_ "modernc.org/sqlite"
)

`

// A new user follows the README: a fresh module, its lines of installation, and the program of the
// first transfer, whose response is lost.
func TestREADME(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	program := regexp.MustCompile("(?s)```go\n(func main.*?)```").FindSubmatch(readme)
	require.NotNil(t, program)
	assert.LessOrEqual(t, strings.Count(string(program[1]), "\n"), 20)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), append([]byte(imports), program[1]...), 0o600))
	service := cardwiretest.NewServer(t)
	run := func(command ...string) string {
		c := exec.CommandContext(t.Context(), command[0], command[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CARDWIRE_BASE_URL="+service.URL,
			"CARDWIRE_API_KEY="+service.Key)
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	run("go", "mod", "init", "shop")
	lines := regexp.MustCompile(`(?m)^go mod (edit -replace \S+|tidy)`).FindAllString(string(readme), -1)
	require.Len(t, lines, 3)
	for _, line := range lines {
		run(strings.Fields(strings.Replace(line, "=../cardwire-go", "="+root, 1))...)
	}
	run("go", "build", "-o", "shop", ".")

	shop := filepath.Join(dir, "shop")
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	assert.Contains(t, string(readme), "`"+strings.TrimSpace(run(shop))+"`", "it shows what is printed")
	assert.Contains(t, run(shop), "reconcile cardwire: CreateTransfer 1001: unknown outcome")
	file := "file:" + filepath.Join(dir, "journal.db")
	_, j := open(t, place{"sqlite", file, sqljournal.SQLite, sqljournal.DefaultTable})
	require.NoError(t, j.Resolve(t.Context(), cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: "1001"},
		journal.Resolution{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1", By: "Ada"}))
	assert.Contains(t, run(shop), "done cardwire: CreateTransfer 1001: executed")
	assert.Len(t, service.Ledger(), 1)
}
