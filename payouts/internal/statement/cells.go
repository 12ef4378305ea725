package statement

import (
	"regexp"
	"strings"
)

// formula is what a spreadsheet would calculate: at the beginning of a cell, and where another separator than that of
// the file would begin one, behind spaces of any kind, in its full width, and where it is guarded already.
var formula = regexp.MustCompile(`(^|[;,\t"\r\n])('*[\pZ\v\f\x{feff}]*[=+@\-＝＋＠－])`)

var (
	guarded = regexp.MustCompile(`(^|[;,\t"\r\n])'('*[\pZ\v\f\x{feff}]*[=+@\-＝＋＠－])`)
	number  = regexp.MustCompile(`^="((?:[^"]|"")*)"$`)
)

// Row returns a line of a CSV file of which a spreadsheet calculates nothing, whatever separates its columns there.
func Row(cells ...string) string {
	var row strings.Builder
	for i, cell := range cells {
		if !number.MatchString(cell) {
			cell = formula.ReplaceAllString(cell, "$1'$2")
		}
		if strings.ContainsAny(cell, ",;\t\"\r\n") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		if i > 0 {
			row.WriteByte(',')
		}
		row.WriteString(cell)
	}
	return row.String() + "\n"
}

// Number is a number in the form that a spreadsheet leaves as it is; Row does not guard it.
func Number(text string) string {
	if text == "" {
		return ""
	}
	return `="` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

// unguarded is what a cell was before it was guarded, or made a Number.
func unguarded(cell string) string {
	if text := number.FindStringSubmatch(cell); text != nil {
		return strings.ReplaceAll(text[1], `""`, `"`)
	}
	return guarded.ReplaceAllString(cell, "$1$2")
}

// split returns the cells of a row. In quotes are separators, and quotes that are written twice; a quote anywhere
// else is a character. isOpen: the last quote is not closed.
func split(row string, separator rune) (cells []string, isOpen bool) {
	for {
		quoted, rest := strings.CutPrefix(strings.TrimLeft(row, " "), `"`)
		if !rest {
			cell, after, more := strings.Cut(row, string(separator))
			if cells = append(cells, cell); !more {
				return cells, false
			}
			row = after
			continue
		}
		var cell strings.Builder
		for {
			before, after, isClosed := strings.Cut(quoted, `"`)
			cell.WriteString(before)
			if !isClosed {
				return append(cells, cell.String()), true
			}
			behind := strings.TrimLeft(after, " ")
			if behind == "" {
				return append(cells, cell.String()), false
			}
			if next, isEnd := strings.CutPrefix(behind, string(separator)); isEnd {
				row = next
				break
			}
			cell.WriteByte('"')
			quoted = strings.TrimPrefix(after, `"`) // a quote that is written twice, or that has no meaning
		}
		cells = append(cells, cell.String())
	}
}
