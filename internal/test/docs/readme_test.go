package docs_test

import (
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// fences are the blocks of code, with the language of each.
var fences = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// Its Go code is in a file that is compiled.
func TestREADMECodeCompiles(t *testing.T) {
	t.Parallel()
	compiled, blocks := document(t, "internal/test/docs/example_readme_test.go"), 0
	for _, block := range fences.FindAllStringSubmatch(document(t, "README.md"), -1) {
		if block[1] == "go" && !strings.HasPrefix(block[2], "func main() {") { // which sqljournal runs
			blocks++
			indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(block[2], "\t$1")
			assert.Contains(t, compiled, "error {\n"+indented, "example_readme_test.go has another version")
		}
	}
	assert.Positive(t, blocks)
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
		"Install", "Quick start", "Operations", "The first transfer", "Money, dates and card data", "Testing",
		"Configuration", "Links",
	}, sections)
}

// The diagram ends in success, in the four outcomes, and in the steps of a reference that is
// not free.
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

// The API's document leaves 28 things open, and what it does not mention 3. This is the only
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
	want := make([]string, 31)
	for i := range want {
		want[i] = strconv.Itoa(i + 1)
	}
	assert.Equal(t, want, numbers)
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

// Each operation is shown in an example that runs, and in the table of the README.
func TestEveryOperationHasAnExample(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "example_test.go"), nil, parser.ParseComments)
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, example := range doc.Examples(file) {
		assert.NotEmpty(t, example.Output, "the example of %s is compiled, but does not run", example.Name)
		shown[example.Name] = true
	}
	readme := document(t, "README.md")
	for name := range wiretest.AllMethods() {
		if name != "Call" {
			assert.True(t, shown["Client_"+name], "%s has no example", name)
			assert.Regexp(t, "(?m)^\\| .*`"+name+"`.* \\|.*\\|", readme, "the table lacks %s", name)
		}
	}
}
