package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// fences are the blocks of code, with the language of each.
var fences = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// goBlocks returns the Go code of the README.
func goBlocks(t *testing.T) []string {
	t.Helper()
	var blocks []string
	for _, block := range fences.FindAllStringSubmatch(document(t, "README.md"), -1) {
		if block[1] == "go" {
			blocks = append(blocks, block[2])
		}
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// fragmentImports are what a fragment may use without saying so.
var fragmentImports = map[string]string{
	"cardwire":     "github.com/cardwire/cardwire-go",
	"cardwiretest": "github.com/cardwire/cardwire-go/cardwiretest",
	"context":      "context",
	"decimal":      "github.com/shopspring/decimal",
	"errors":       "errors",
	"fmt":          "fmt",
	"testing":      "testing",
}

// fragmentNames stand for what a reader of a fragment has in a program already.
const fragmentNames = `
var (
	ctx        context.Context
	client     *cardwire.Client
	params     cardwire.TransferParams
	order      struct{ Number string }
	resumeFrom int
	t          *testing.T
)

func refund(context.Context, *cardwire.Client, struct{ Number string }) error { return nil }
func markSubmitted(order struct{ Number string }, t *cardwire.Transfer) error { return nil }
func markFailed(order struct{ Number string }, err error) error               { return nil }
func sendLater(order struct{ Number string }, err error) error                { return nil }
func lookLater(order struct{ Number string }, err error) error                { return nil }
func reconcile(order struct{ Number string }, err error) error                { return nil }
func use([]cardwire.Card)                                                     {}
`

// program makes a file of a block: a block that is no file becomes the body of a
// function.
func program(t *testing.T, block string) string {
	t.Helper()
	if strings.HasPrefix(block, "package ") {
		return block
	}
	body := "func fragment() error {\n" + block + uses(t, block) + "\nreturn nil\n}\n"
	var imports strings.Builder
	for name, path := range fragmentImports {
		if strings.Contains(body+fragmentNames, name+".") {
			fmt.Fprintf(&imports, "import %s %q\n", name, path)
		}
	}
	return "package fragment\n" + imports.String() + fragmentNames + "\n" + body
}

// uses returns statements that use what a fragment declares: a reader would.
func uses(t *testing.T, block string) string {
	t.Helper()
	source := "package p\nfunc f() {\n" + block + "\n}"
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	require.NoError(t, err, "the README's code must parse:\n%s", block)
	var text strings.Builder
	for _, statement := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if assign, ok := statement.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
			for _, left := range assign.Lhs {
				if name := left.(*ast.Ident).Name; name != "_" {
					text.WriteString("\n_ = " + name)
				}
			}
		}
	}
	return text.String()
}

// The blocks are compiled as packages of this module that exist in an overlay
// only, so that nothing is written into the tree. "go list -export" compiles as
// "go build" does, but links no program.
func TestREADMECodeCompiles(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs the Go command")
	}
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no Go command on this machine")
	}
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"list", "-export", "-overlay=" + filepath.Join(dir, "overlay.json")}
	for i, block := range goBlocks(t) {
		name := "readme" + strconv.Itoa(i+1)
		source := filepath.Join(dir, name+".go")
		require.NoError(t, os.WriteFile(source, []byte(program(t, block)), 0o600))
		overlay.Replace[filepath.Join(here, "internal", name, name+".go")] = source
		args = append(args, "./internal/"+name)
	}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600))

	list := exec.CommandContext(t.Context(), command, args...)
	list.Dir = here
	output, err := list.CombinedOutput()
	require.NoError(t, err, "the README's code does not compile:\n%s", output)
}

// Code in the README looks like code in the package.
func TestREADMECodeIsFormatted(t *testing.T) {
	t.Parallel()
	for _, block := range goBlocks(t) {
		formatted, err := format.Source([]byte(block))
		require.NoError(t, err)
		assert.Equal(t, strings.TrimRight(string(formatted), "\n"), strings.TrimRight(block, "\n"))
	}
}

// The sections stand in this order, and what is longer stands elsewhere.
func TestREADMEIsShort(t *testing.T) {
	t.Parallel()
	text := document(t, "README.md")
	assert.LessOrEqual(t, strings.Count(text, "\n"), 160)
	var sections []string
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text, -1) {
		sections = append(sections, heading[1])
	}
	assert.Equal(t, []string{
		"Install", "Quick start", "Operations", "Errors and NextStep", "Pagination", "Money and dates", "Card data",
		"Operations that the API only names", "Testing", "Configuration", "Assumptions that bite", "Links",
	}, sections)
}

// The diagram ends in success, the four outcomes, and what a reference that is not free
// leads to.
func TestTheDiagramDrawsEveryOutcome(t *testing.T) {
	t.Parallel()
	ends := regexp.MustCompile(`>(success|(?:Outcome|Err)[A-Za-z]+)<`)
	drawn := ends.FindAllStringSubmatch(document(t, "docs/outcomes.svg"), -1)
	names := map[string]bool{}
	for _, name := range drawn {
		names[name[1]] = true
	}
	assert.Equal(t, map[string]bool{
		"OutcomeNotSent": true, "OutcomeRefused": true, "OutcomeExecuted": true, "OutcomeUnknown": true,
		"success": true, "ErrDuplicateIntent": true, "ErrOtherBody": true,
	}, names)
}

// The API's document leaves 28 things open, and what it does not mention 2. This is the only
// place that counts them.
func TestEveryAssumptionHasARow(t *testing.T) {
	t.Parallel()
	var numbers []string
	for _, line := range strings.Split(document(t, "docs/assumptions.md"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 2 || strings.Trim(cells[1], " -") == "" {
			continue // no row, or the head of the table
		}
		numbers = append(numbers, strings.TrimSpace(cells[1]))
		require.Len(t, cells, 7, "a row has five cells: %s", line)
		assert.NotEmpty(t, strings.TrimSpace(cells[2]), "what is undocumented: %s", line)
		assert.NotEmpty(t, strings.TrimSpace(cells[3]), "what is done: %s", line)
	}
	want := make([]string, 30)
	for i := range want {
		want[i] = strconv.Itoa(i + 1)
	}
	assert.Equal(t, want, numbers)
}

// The table of methods is complete.
func TestREADMEListsEveryOperation(t *testing.T) {
	t.Parallel()
	text := document(t, "README.md")
	client := reflect.TypeFor[*cardwire.Client]()
	operations := 0
	for m := range client.Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() {
			continue // CloseIdleConnections and what prints
		}
		operations++
		assert.Regexp(t, "(?m)^\\| .*`"+m.Name+"`.* \\|.*\\|", text, "the table lacks %s", m.Name)
	}
	assert.Greater(t, operations, 10)
}

func TestREADMENamesExamplesThatExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`examples/[a-z]+`).FindAllString(document(t, "README.md"), -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		info, err := fs.Stat(os.DirFS(root), name)
		require.NoError(t, err)
		assert.True(t, info.IsDir())
	}
}

// Whatever can be called or chosen is shown in an example that runs.
func TestEveryOperationAndOptionHasAnExample(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "example_test.go"), nil, parser.ParseComments)
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, example := range doc.Examples(file) {
		assert.NotEmpty(t, example.Output, "the example of %s is compiled, but does not run", example.Name)
		shown[example.Name] = true
	}
	for m := range reflect.TypeFor[*cardwire.Client]().Methods() {
		if m.Type.NumIn() > 1 && m.Type.In(1) == reflect.TypeFor[context.Context]() {
			assert.True(t, shown["Client_"+m.Name], "%s has no example", m.Name)
		}
	}
	for _, file := range wiretest.Source(t, root) {
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "With") {
				assert.True(t, shown[f.Name.Name], "%s has no example", f.Name.Name)
			}
		}
	}
}
