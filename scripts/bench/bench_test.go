package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadTakesWhatBenchmarksPrint(t *testing.T) {
	t.Parallel()
	for name, suffix := range map[string]string{"several processors": "-2", "one processor": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, into := new(runner), samples{}
			text := "goos: linux\npkg: example.com/x\ncpu: AMD EPYC\n" +
				"BenchmarkDecode/page=100-php/plain" + suffix + "   \t     266\t    672646 ns/op\t 110.74 MB/s\t    1785 allocs/op\n" +
				"PASS\n"
			require.NoError(t, r.read(into, []byte(text)))
			require.NoError(t, r.read(into, []byte(strings.ReplaceAll(text, "672646", "5.5e+05"))))
			assert.Equal(t, "AMD EPYC", r.cpu)
			assert.Equal(t, samples{
				"Decode/page=100-php/plain ns/op":     {672646, 550000},
				"Decode/page=100-php/plain MB/s":      {110.74, 110.74},
				"Decode/page=100-php/plain allocs/op": {1785, 1785},
			}, into)
		})
	}
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing ran": "PASS\n",
		"no number":   "BenchmarkX-2  10  many ns/op\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Error(t, new(runner).read(samples{}, []byte(text)))
		})
	}
}

// Values of one round are compared with one another: the third round, in which
// everything took ten times as long, changes nothing.
func TestWhatIsMadeOfRounds(t *testing.T) {
	t.Parallel()
	s := samples{"ours": {20, 30, 400}, "theirs": {100, 120, 1000}, "never": {}}
	for name, tc := range map[string]struct {
		value func(samples) (float64, bool)
		want  float64
	}{
		"ratio":      {medianRatio("ours", "theirs"), 0.25},
		"difference": {medianDifference("theirs", "ours"), 90},
		"median":     {medianOf("ours"), 30},
		"best":       {bestRatio("ours", "theirs"), 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := tc.value(s)
			assert.True(t, ok)
			assert.InDelta(t, tc.want, got, 1e-9)
		})
	}
	for name, value := range map[string]func(samples) (float64, bool){
		"ratio": medianRatio("ours", "never"), "difference": medianDifference("ours", "never"),
		"median": medianOf("never"), "best": bestRatio("ours", "never"),
	} {
		t.Run(name+" of nothing", func(t *testing.T) {
			t.Parallel()
			_, ok := value(s)
			assert.False(t, ok)
		})
	}
}

func TestMedianOfAnEvenNumberLiesBetween(t *testing.T) {
	t.Parallel()
	got, ok := median([]float64{9, 1, 3, 5})
	assert.True(t, ok)
	assert.InDelta(t, 4, got, 1e-9)
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row  row
		want string
	}{
		"at the bar":      {row{Bar: 0.5, Value: 0.5}, "pass"},
		"above the most":  {row{Bar: 0.5, Value: 0.501}, "short"},
		"below the most":  {row{Bar: 0.5, Value: 0.1}, "pass"},
		"above the least": {row{Bar: 10, Value: 10.1, AtLeast: true}, "pass"},
		"below the least": {row{Bar: 10, Value: 9.9, AtLeast: true}, "short"},
		"held to nothing": {row{Value: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, tc.row.verdict())
		})
	}
}

func TestBarsAreDistinctAndMeasured(t *testing.T) {
	t.Parallel()
	// As long as nothing was measured each bar is missing, and is so once.
	r := &runner{samples: samples{}, next: samples{}}
	result, missing := newResult(r)
	assert.Empty(t, result.Rows)
	assert.Len(t, missing, len(bars))
	seen := map[string]bool{}
	for _, id := range missing {
		assert.False(t, seen[id], id)
		seen[id] = true
	}
	for _, p := range panels {
		for _, row := range p.rows {
			assert.True(t, seen[row.id], "the chart shows %s, which is no bar", row.id)
		}
	}
}

// What the repository shows, and the figures that it was made of.
const (
	root     = "../../"
	measured = root + "docs/speed.json"
)

// A bar that is new or changed wants another measurement.
func TestPublishedFiguresAreOfAllBars(t *testing.T) {
	t.Parallel()
	published, err := load(measured)
	require.NoError(t, err)
	want := make([]row, len(bars))
	for i, b := range bars {
		want[i] = row{ID: b.id, Text: b.text, Unit: b.unit, Bar: b.limit, AtLeast: b.atLeast}
	}
	got := make([]row, len(published.Rows))
	for i, r := range published.Rows {
		got[i] = row{ID: r.ID, Text: r.Text, Unit: r.Unit, Bar: r.Bar, AtLeast: r.AtLeast}
	}
	assert.Equal(t, want, got, "measure again: the command is at the top of main.go")
}

// Writing the documents again, from the same figures, changes nothing.
func TestDocumentsShowTheFiguresAsTheyWereMeasured(t *testing.T) {
	t.Parallel()
	published, err := load(measured)
	require.NoError(t, err)
	for name, write := range map[string]func(file string) error{
		"docs/speed.md":  func(file string) error { return publish(file, published.whole()) },
		"docs/speed.svg": func(file string) error { return draw(file, published) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := content(t, root+name)
			again := filepath.Join(t.TempDir(), filepath.Base(name))
			require.NoError(t, os.WriteFile(again, []byte(shown), 0o600))
			require.NoError(t, write(again))
			assert.Equal(t, content(t, again), shown,
				"go run ./scripts/bench -from docs/speed.json -svg docs/speed.svg -md docs/speed.md")
		})
	}
}

func TestPublishLeavesWhatStandsAroundTheFigures(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "document.md")
	const before, after = "# Speed\n\n<!-- figures: written by scripts/bench -->\n", "<!-- end of figures -->\n\nLess is better.\n"
	require.NoError(t, os.WriteFile(file, []byte(before+"old\n"+after), 0o600))
	require.NoError(t, publish(file, drawn.whole()))
	assert.Equal(t, before+`
go1.26.8, linux/amd64, Some & Any, GOMAXPROCS=2

| measure                 |         bar | go1.26.8 |       | go1.27.1 |
|-------------------------|------------:|---------:|-------|---------:|
| list of 100 cards, time |        0.22 |    0.205 | pass  |    0.310 |
| tiny call               |        1.00 |    0.820 | pass  |    0.900 |
| times better            | at least 10 |     9.87 | short |          |
| upload                  |       2 MiB | 1.61 MiB | pass  |          |
| stripe-go               |             |     3.36 |       |          |

`+after, content(t, file))
}

func TestPublishNeedsAPlaceForFigures(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no beginning": "<!-- end of figures -->\n",
		"no end":       "<!-- figures: written by scripts/bench -->\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "document.md")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			require.ErrorContains(t, publish(file, "figures"), "document.md has no place for figures")
			assert.Equal(t, text, content(t, file))
		})
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

var drawn = &result{
	Go: "go1.26.8", Next: "go1.27.1", System: "linux/amd64", CPU: "Some & Any", Procs: 2,
	Rows: []row{
		{ID: "list-100-worst", Text: "list of 100 cards, time", Bar: 0.22, Value: 0.205, Next: 0.31, CPU: 0.21, Best: 0.2},
		{ID: "tiny", Text: "tiny call", Bar: 1, Value: 0.82, Next: 0.9},
		{ID: "better", Text: "times better", Bar: 10, AtLeast: true, Value: 9.87},
		{ID: "upload", Text: "upload", Unit: mib, Bar: 2, Value: 1.61},
		{ID: "list-stripe", Text: "stripe-go", Value: 3.36},
	},
	Medians:     map[string]float64{"Memory/bare ns/op": 672646, "upload MiB": 1.61},
	NextMedians: map[string]float64{"Memory/bare ns/op": 391000},
}

func TestTable(t *testing.T) {
	t.Parallel()
	const table = `go1.26.8, linux/amd64, Some & Any, GOMAXPROCS=2

| measure                 |         bar | go1.26.8 |       | go1.27.1 |
|-------------------------|------------:|---------:|-------|---------:|
| list of 100 cards, time |        0.22 |    0.205 | pass  |    0.310 |
| tiny call               |        1.00 |    0.820 | pass  |    0.900 |
| times better            | at least 10 |     9.87 | short |          |
| upload                  |       2 MiB | 1.61 MiB | pass  |          |
| stripe-go               |             |     3.36 |       |          |
`
	const more = `
The times again, for a machine that has other things to do:

| measure                 |  bar | by CPU time | of the best rounds |
|-------------------------|-----:|------------:|--------------------|
| list of 100 cards, time | 0.22 |       0.210 | 0.200              |

Memory/bare ns/op                                     672646         391000
upload MiB                                              1.61
`
	assert.Equal(t, table, drawn.text(false))
	assert.Equal(t, table+more, drawn.text(true))
	assert.Equal(t, 1, drawn.short())
}

func TestProcessorWithoutAName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "go1.26.8, linux/arm64", (&result{Go: "go1.26.8", System: "linux/arm64"}).machine())
}

func TestFiguresAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "figures.json")
	require.NoError(t, drawn.save(file))
	got, err := load(file)
	require.NoError(t, err)
	assert.Equal(t, drawn, got)
}

func TestChart(t *testing.T) {
	t.Parallel()
	texts, bars := elements(t, chart(drawn))
	for _, want := range []string{"list of 100, the slowest shape", "0.20", "stripe-go", "3.36", "by hand: 1"} {
		assert.Contains(t, texts, want)
	}
	assert.Contains(t, strings.Join(texts, "\n"), "Some & Any")
	assert.NotContains(t, texts, "50 BINs", "what was not measured")
	// The two of the first scale, then that of the other.
	require.Len(t, bars, 3)
	assert.InDelta(t, 0.205/0.82, bars[0]/bars[1], 0.001)
	assert.InDelta(t, 470, bars[2], 0.1, "the longest bar takes the room there is")
}

// elements returns the texts of a chart and the lengths of its bars.
func elements(t *testing.T, svg string) (texts []string, bars []float64) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, bars
		}
		require.NoError(t, err)
		switch v := token.(type) {
		case xml.CharData:
			texts = append(texts, string(v))
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range v.Attr {
				attributes[a.Name.Local] = a.Value
			}
			if class := attributes["class"]; class == "ours" || class == "others" {
				length, err := strconv.ParseFloat(attributes["width"], 64)
				require.NoError(t, err)
				bars = append(bars, length)
			}
		}
	}
}
