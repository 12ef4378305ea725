// Package docs_test holds the rules of what is written about this module: its README, its
// documents and its comments.
package docs_test

import (
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the root of the repository. The paths in these tests are relative to it.
const root = "../../.."

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

// files returns the files of the repository whose names end with suffix.
func files(t *testing.T, suffix string) (paths []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, suffix) {
			paths = append(paths, path)
		}
		return err
	}))
	require.Greater(t, len(paths), 3)
	return paths
}

// Documents name the tests that check their claims: these tests exist, and a comment that names some is the last
// thing in its document, where no reader of a paragraph meets it.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	name := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)
	for _, path := range files(t, ".go") { // cardwiretest.TestJournal is in no file of tests
		for _, declared := range regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllStringSubmatch(document(t, path), -1) {
			there[declared[1]] = true
		}
	}
	least := map[string]int{
		".github/SECURITY.md": 25, "docs/operations.md": 20, "docs/outcomes.md": 5, "docs/payouts.md": 30,
		"docs/speed.md": 5, "README.md": 3,
	}
	for _, path := range documents(t) {
		text := document(t, path)
		named := name.FindAllString(text, -1)
		assert.GreaterOrEqual(t, len(named), least[path], path)
		for _, test := range named {
			assert.True(t, there[test], "%s: there is no %s", path, test)
		}
		for _, comment := range regexp.MustCompile(`(?s)<!--.*?-->`).FindAllString(text, -1) {
			isLast := strings.HasSuffix(text, comment+"\n")
			assert.True(t, isLast || !name.MatchString(comment), "%s: %s is not at the end", path, comment)
		}
	}
}

// otherNames are the names in the prose that are not part of the public API.
var otherNames = map[string]bool{
	"DisableKeepAlives": true, "CARDWIRE_BASE_URL": true, "CARDWIRE_API_KEY": true, "PAYOUTS_PASSWORD": true,
	"JobTimeout": true, "RescueStuckJobsAfter": true, // River's
}

func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	lists, err := fs.Glob(os.DirFS(root), "api/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	var api strings.Builder
	for _, list := range lists {
		api.WriteString(document(t, list))
	}
	quoted := regexp.MustCompile("`(?:([A-Z]\\w+)\\.)?([A-Z]\\w+)`")
	for _, path := range documents(t) {
		for _, name := range quoted.FindAllStringSubmatch(document(t, path), -1) {
			typeName, ident := name[1], name[2]
			if otherNames[ident] || regexp.MustCompile(`^(Test|Fuzz|Benchmark)`).MatchString(ident) {
				continue
			}
			pattern := `(?m)\b` + ident + `\b`
			if typeName != "" {
				field, method := `type `+typeName+` .*\{\n(\t.*\n)*\t`, `func \(\w+ \*?`+typeName+`\) `
				pattern = `(?m)^(` + field + `|` + method + `)` + ident + `\b`
			}
			found := regexp.MustCompile(pattern).MatchString(api.String())
			assert.True(t, found, "%s names %s, which does not exist", path, name[0])
		}
	}
}

// A reader has time for so many words in all, and for so many about payouts.
func TestTheDocumentsAreShort(t *testing.T) {
	t.Parallel()
	words := 0
	for _, path := range documents(t) {
		if path == "README.md" || path == "CHANGELOG.md" || strings.HasPrefix(path, "docs/") {
			words += len(strings.Fields(document(t, path)))
		}
	}
	assert.LessOrEqual(t, words, 10_500)
	assert.LessOrEqual(t, len(strings.Fields(document(t, "docs/payouts.md"))), 1_800)
}

// documents are the paths of all documents.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", ".github/*.md", "docs/*.md", "examples/*.md"} {
		found, err := fs.Glob(os.DirFS(root), pattern)
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	require.Greater(t, len(paths), 8)
	return paths
}

// Every link within the repository leads to a file.
func TestEveryLinkExists(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	code := regexp.MustCompile("(?ms)^ *```.*?^ *```$") // where f[T](x) is a call
	for _, path := range documents(t) {
		links := 0
		for _, target := range link.FindAllStringSubmatch(code.ReplaceAllString(document(t, path), ""), -1) {
			if strings.Contains(target[1], "://") {
				continue
			}
			links++
			_, err := fs.Stat(os.DirFS(root), pathpkg.Join(pathpkg.Dir(path), target[1]))
			assert.NoError(t, err, "%s links to %s", path, target[1])
		}
		if path == "README.md" {
			assert.Greater(t, links, 10)
		}
	}
}

// Whoever changes a nested module has to learn that it has tests of its own, and each has
// its dependencies watched.
func TestEveryModuleIsNamed(t *testing.T) {
	t.Parallel()
	contributing, dependabot := document(t, ".github/CONTRIBUTING.md"), document(t, ".github/dependabot.yml")
	for _, path := range files(t, "go.mod") {
		dir := pathpkg.Dir("/" + path)
		assert.Contains(t, dependabot, "      - "+dir+"\n")
		assert.True(t, dir == "/" || strings.Contains(contributing, "`"+dir[1:]+"`"), "%s is not named", dir)
	}
}

func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	pinned := 0
	for _, path := range files(t, ".yml") {
		for _, use := range regexp.MustCompile(`uses: .*`).FindAllString(document(t, path), -1) {
			assert.Regexp(t, `@[0-9a-f]{40} # v[0-9.]+$`, use)
			pinned++
		}
	}
	assert.Positive(t, pinned)
}

func TestTestsSleepInBubbles(t *testing.T) {
	t.Parallel()
	for _, path := range files(t, "_test.go") {
		if text := document(t, path); regexp.MustCompile(`time\.Sleep\(`).MatchString(text) {
			assert.True(t, strings.Contains(text, `"testing/synctest"`), path)
		}
	}
}
