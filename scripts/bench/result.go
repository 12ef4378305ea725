package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// result is what is written as JSON and read again.
type result struct {
	Go      string             `json:"go"`
	Next    string             `json:"next"`
	System  string             `json:"system"`
	CPU     string             `json:"cpu"`
	Procs   int                `json:"gomaxprocs"`
	Long    bool               `json:"long"`
	Rows    []row              `json:"rows"`
	Medians map[string]float64 `json:"medians"`
	// NextMedians are those of the next release of Go.
	NextMedians map[string]float64 `json:"next_medians,omitempty"`
}

// row is one line of the table.
type row struct {
	ID      string  `json:"id"`
	Text    string  `json:"measure"`
	Unit    string  `json:"unit,omitempty"`
	Bar     float64 `json:"bar,omitempty"`
	AtLeast bool    `json:"at_least,omitempty"`
	Value   float64 `json:"measured"`
	Next    float64 `json:"next,omitempty"`
	CPU     float64 `json:"by_cpu,omitempty"`
	Best    float64 `json:"of_best_rounds,omitempty"`
}

// newResult also names the bars of which nothing was measured.
func newResult(r *runner) (out *result, missing []string) {
	out = &result{
		Go: runtime.Version(), Next: next, System: runtime.GOOS + "/" + runtime.GOARCH, CPU: r.cpu,
		Procs: runtime.GOMAXPROCS(0), Long: r.long,
		Medians: medians(r.samples), NextMedians: medians(r.next),
	}
	for _, b := range bars {
		v, ok := b.value(r.samples)
		if !ok {
			missing = append(missing, b.id)
			continue
		}
		line := row{ID: b.id, Text: b.text, Unit: b.unit, Bar: b.limit, AtLeast: b.atLeast, Value: v}
		if b.twice {
			if line.Next, ok = b.value(r.next); !ok {
				missing = append(missing, b.id+" by "+next)
			}
		}
		if b.cpu != nil {
			line.CPU, _ = b.cpu(r.samples)
			line.Best, _ = b.best(r.samples)
		}
		out.Rows = append(out.Rows, line)
	}
	return out, missing
}

func medians(s samples) map[string]float64 {
	out := map[string]float64{}
	for name, values := range s {
		out[name], _ = median(values)
	}
	return out
}

// verdict is "pass" or "short", and "" for what is held to no bar.
func (r row) verdict() string {
	switch {
	case r.Bar == 0:
		return ""
	case r.AtLeast && r.Value >= r.Bar, !r.AtLeast && r.Value <= r.Bar:
		return "pass"
	}
	return "short"
}

func (r *result) short() (n int) {
	for _, row := range r.Rows {
		if row.verdict() == "short" {
			n++
		}
	}
	return n
}

// text is a table that is Markdown and can be read as it stands. With all, other
// views of the times follow, and the median of each benchmark.
func (r *result) text(all bool) string {
	w := new(strings.Builder)
	fmt.Fprintf(w, "%s, GOMAXPROCS=%d\n\n", r.machine(), r.Procs)
	table(w, r.lines(r.Rows))
	if !all {
		return w.String()
	}
	fmt.Fprintln(w, "\nThe times again, for a machine that has other things to do:")
	fmt.Fprintln(w)
	lines := [][]string{{"measure", "bar", "by CPU time", "of the best rounds"}}
	for _, row := range r.Rows {
		if row.CPU != 0 {
			lines = append(lines, []string{row.Text, row.bar(), row.show(row.CPU), row.show(row.Best)})
		}
	}
	table(w, lines)
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(r.Medians)) {
		line := fmt.Sprintf("%-45s %14.6g", name, r.Medians[name])
		if v, ok := r.NextMedians[name]; ok {
			line += fmt.Sprintf(" %14.6g", v)
		}
		fmt.Fprintln(w, line)
	}
	return w.String()
}

// lines are those of a table that says what each row is held to, and what the next
// release of Go makes of it.
func (r *result) lines(rows []row) [][]string {
	lines := [][]string{{"measure", "bar", r.Go, "", r.Next}}
	for _, row := range rows {
		again := ""
		if row.Next != 0 {
			again = row.show(row.Next)
		}
		lines = append(lines, []string{row.Text, row.bar(), row.show(row.Value), row.verdict(), again})
	}
	return lines
}

// machine leaves out the processor where no benchmark told its name.
func (r *result) machine() string {
	return strings.TrimSuffix(strings.Join([]string{r.Go, r.System, r.CPU}, ", "), ", ")
}

func table(w *strings.Builder, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for i, line := range lines {
		for column, cell := range line {
			fmt.Fprintf(w, "| %s ", aligned(column, cell, widths[column]))
		}
		fmt.Fprintln(w, "|")
		if i > 0 {
			continue
		}
		for column, width := range widths {
			fmt.Fprint(w, "|"+dashes(column, width))
		}
		fmt.Fprintln(w, "|")
	}
}

// Words are aligned on the left, in the first column and in that of verdicts; figures on
// the right.
func words(column int) bool { return column == 0 || column == 3 }

func aligned(column int, cell string, width int) string {
	if words(column) {
		return fmt.Sprintf("%-*s", width, cell)
	}
	return fmt.Sprintf("%*s", width, cell)
}

func dashes(column, width int) string {
	if words(column) {
		return strings.Repeat("-", width+2)
	}
	return strings.Repeat("-", width+1) + ":"
}

func (r row) bar() string {
	if r.Bar == 0 {
		return ""
	}
	text := strconv.FormatFloat(r.Bar, 'f', -1, 64)
	if len(text) < 4 && r.Bar < 2 && r.Unit == "" {
		text = strconv.FormatFloat(r.Bar, 'f', 2, 64)
	}
	if r.AtLeast {
		text = "at least " + text
	}
	return text + r.suffix()
}

func (r row) show(value float64) string {
	digits := 3
	switch {
	case value >= 10:
		digits = 1
	case value >= 2 || r.Unit == mib:
		digits = 2
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + r.suffix()
}

func (r row) suffix() string {
	if r.Unit == mib {
		return " MiB"
	}
	return ""
}

func (r *result) save(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func load(file string) (*result, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(result)
	return r, json.Unmarshal(text, r)
}
