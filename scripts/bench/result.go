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
	System  string             `json:"system"`
	CPU     string             `json:"cpu"`
	Procs   int                `json:"gomaxprocs"`
	Long    bool               `json:"long"`
	Rows    []row              `json:"rows"`
	Medians map[string]float64 `json:"medians"`
}

// row is one line of the table.
type row struct {
	ID      string  `json:"id"`
	Text    string  `json:"measure"`
	Unit    string  `json:"unit,omitempty"`
	Bar     float64 `json:"bar,omitempty"`
	AtLeast bool    `json:"at_least,omitempty"`
	Value   float64 `json:"measured"`
	CPU     float64 `json:"by_cpu,omitempty"`
	Best    float64 `json:"of_best_rounds,omitempty"`
}

// newResult also names the bars of which nothing was measured.
func newResult(r *runner) (out *result, missing []string) {
	out = &result{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: r.cpu,
		Procs: runtime.GOMAXPROCS(0), Long: r.long, Medians: map[string]float64{},
	}
	for _, b := range bars {
		v, ok := b.value(r.samples)
		if !ok {
			missing = append(missing, b.id)
			continue
		}
		line := row{ID: b.id, Text: b.text, Unit: b.unit, Bar: b.limit, AtLeast: b.atLeast, Value: v}
		if b.cpu != nil {
			line.CPU, _ = b.cpu(r.samples)
			line.Best, _ = b.best(r.samples)
		}
		out.Rows = append(out.Rows, line)
	}
	for name, values := range r.samples {
		out.Medians[name], _ = median(values)
	}
	return out, missing
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
	table(w, verdicts(r.Rows))
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
		fmt.Fprintf(w, "%-45s %14.6g\n", name, r.Medians[name])
	}
	return w.String()
}

// verdicts are the lines of a table that says what each row is held to.
func verdicts(rows []row) [][]string {
	lines := [][]string{{"measure", "bar", "measured", ""}}
	for _, row := range rows {
		lines = append(lines, []string{row.Text, row.bar(), row.show(row.Value), row.verdict()})
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
		fmt.Fprintf(w, "| %-*s | %*s | %*s | %-*s |\n",
			widths[0], line[0], widths[1], line[1], widths[2], line[2], widths[3], line[3])
		if i == 0 {
			fmt.Fprintf(w, "|%s|%s:|%s:|%s|\n", dashes(widths[0]+2), dashes(widths[1]+1), dashes(widths[2]+1), dashes(widths[3]+2))
		}
	}
}

func dashes(n int) string { return strings.Repeat("-", n) }

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
	case r.Unit == connections:
		digits = 0
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
