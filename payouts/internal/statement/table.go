package statement

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// table are the rows of a file behind its header.
type table struct {
	lines     *lines
	separator rune
	header    []string
	columns   map[string]int // of the fields; -1: it has none
}

// row is a line of a table.
type row struct {
	line  int // the number of the first, of several
	cells []string
	wrong string // why it cannot be read; "": it can
}

// value is the cell of a column, without what pads it.
func (r row) value(at int) string {
	return strings.TrimSpace(unguarded(strings.TrimSpace(r.cells[at])))
}

const (
	maxPreamble = 50       // lines before the header
	maxTogether = 50       // lines of one row, with line breaks in quotes
	maxLine     = 64 << 10 // bytes
	separators  = ",;\t|"  // which spreadsheets choose by language
	leastNames  = 4        // in a header: order, amount, status and time are needed
	replacement = "\ufffd" // of what is no character
)

// newTable finds the header: the line with all columns that are known, or else that with the most names, and of several
// the first. Missing names a column that a header lacks.
func newTable(file io.Reader, missing func(header []string) (name string)) (*table, error) {
	in, err := newLines(file)
	if err != nil {
		return nil, err
	}
	t, best, at, known := &table{lines: in}, 0, line{}, separators
	for n := range maxPreamble {
		l, err := in.peek(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if said, is := strings.CutPrefix(l.text, "sep="); is && n == 0 && utf8.RuneCountInString(said) == 1 {
			known = said
			continue
		}
		for _, separator := range known {
			names, _ := split(l.text, separator)
			rank := rankOf(names)
			names = unique(names)
			if rank > 0 && missing(names) == "" {
				rank += 1 << 30
			}
			if rank > best {
				t.separator, t.header, best, at = separator, names, rank, l
			}
		}
	}
	if best == 0 {
		return nil, errors.New("the file is empty")
	}
	if name := missing(t.header); name != "" {
		return nil, fmt.Errorf("line %d must name one column %q, and names none of its %d so: "+
			"check the names of the columns, and that the file is CSV", at.number, name, len(t.header))
	}
	in.drop(at.number)
	return t, nil
}

// rankOf is how much a line is like a header, which has names alone.
func rankOf(cells []string) (rank int) {
	isHeader := true
	for _, cell := range cells {
		cell = strings.TrimSpace(cell)
		if cell != "" {
			rank++
		}
		if len(cell) <= longest {
			_, noAmount := amountOf(cell, ".")
			_, noTime := timeOf(cell, time.UTC, "day")
			isHeader = isHeader && noAmount != nil && noTime != nil
		}
	}
	if isHeader && rank >= leastNames {
		rank += 1 << 20
	}
	return rank
}

// unique are names of which each occurs once: of several that are the same each gets its number, so that nobody chooses
// one for another.
func unique(names []string) []string {
	count, seen := map[string]int{}, map[string]int{}
	for i, name := range names {
		names[i] = strings.TrimSpace(unguarded(name))
		count[names[i]]++
	}
	for i, name := range names {
		if seen[name]++; name != "" && count[name] > 1 {
			names[i] = fmt.Sprintf("%s (%d)", name, seen[name])
		}
	}
	return names
}

// next returns the next row that is not empty.
func (t *table) next() (r row, err error) {
	for isEmpty := true; isEmpty && err == nil; {
		var l line
		if l, err = t.lines.peek(0); err == nil {
			r = t.together(l)
			isEmpty = r.wrong == "" && !slices.ContainsFunc(r.cells, isThere)
		}
	}
	return r, err
}

func isThere(cell string) bool { return strings.TrimSpace(cell) != "" }

// together takes a line, with those in which a quoted cell of it continues and ends.
func (t *table) together(l line) row {
	text, took := l.text, 1
	cells, isOpen := split(text, t.separator)
	for isOpen && took < maxTogether && len(text) <= maxLine {
		more, err := t.lines.peek(took)
		if err != nil {
			break // what ends the file ends the row
		}
		text += "\n" + more.text
		took++
		if mayClose(more.text, string(t.separator)) {
			cells, isOpen = split(text, t.separator)
		}
	}
	most := len(t.header)
	for len(cells) > most && !isThere(cells[len(cells)-1]) {
		cells = cells[:len(cells)-1]
	}
	for len(cells) < most && (t.header[len(cells)] == "" || !slices.ContainsFunc(cells, isThere)) {
		cells = append(cells, "") // of no column, or of no line
	}
	r := row{line: l.number, cells: cells}
	switch {
	case len(text) > maxLine:
		r.wrong = fmt.Sprintf("it has more than %d bytes", maxLine)
	case isOpen:
		r.wrong = "a quote is not closed"
	case len(cells) != most:
		r.wrong = fmt.Sprintf("it has %d cells, and the header %d", len(cells), most)
	}
	if r.wrong != "" {
		took = 1
	}
	t.lines.drop(took)
	return r
}

// mayClose reports whether a quote ends a cell in the line. Without that a row is not split again.
func mayClose(text, separator string) bool {
	for {
		_, after, found := strings.Cut(text, `"`)
		behind := strings.TrimLeft(after, " ")
		if !found || behind == "" || strings.HasPrefix(behind, separator) {
			return found
		}
		text = after
	}
}

// lines are those of a file, in UTF-8 whatever it is in. CR, LF and CRLF end a line.
type lines struct {
	in     *bufio.Reader
	number int
	ahead  []line
	failed error
}

type line struct {
	number int
	text   string // longer than maxLine: a part of it
}

// newLines finds out what a file is in.
func newLines(file io.Reader) (*lines, error) {
	in := bufio.NewReaderSize(file, 64<<10)
	start, _ := in.Peek(4) // where that fails, so does reading
	text := string(start)
	switch {
	case strings.HasPrefix(text, "PK\x03\x04"), strings.HasPrefix(text, "\xd0\xcf\x11\xe0"):
		return nil, errors.New("the file is a workbook, as in xlsx, and no CSV: open it, and save the sheet as CSV UTF-8")
	case strings.HasPrefix(text, "\xef\xbb\xbf"):
		_, _ = in.Discard(3) // they are there
	case strings.HasPrefix(text, "\xff\xfe"), len(text) > 1 && text[0] != 0 && text[1] == 0:
		in = bufio.NewReader(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(in))
	case strings.HasPrefix(text, "\xfe\xff"), len(text) > 1 && text[0] == 0 && text[1] != 0:
		in = bufio.NewReader(unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder().Reader(in))
	}
	return &lines{in: in}, nil
}

// peek returns the line that is n behind the next one.
func (l *lines) peek(n int) (line, error) {
	for len(l.ahead) <= n {
		if l.failed == nil {
			var text string
			text, l.failed = l.read()
			if l.failed != nil && text == "" {
				continue
			}
			l.number++
			l.ahead = append(l.ahead, line{l.number, text})
			continue
		}
		return line{}, l.failed
	}
	return l.ahead[n], nil
}

func (l *lines) drop(n int) { l.ahead = slices.Delete(l.ahead, 0, n) }

// read reads a line. One that is not in UTF-8 is in Windows-1252, as files of older programs are.
func (l *lines) read() (text string, err error) {
	var all []byte
	for {
		b, err := l.in.ReadByte()
		if b == '\r' && err == nil {
			if next, _ := l.in.Peek(1); string(next) == "\n" {
				_, _ = l.in.Discard(1) // it is there
			}
		}
		if err != nil || b == '\n' || b == '\r' {
			text = string(all)
			if !utf8.ValidString(text) && len(text) <= maxLine {
				text, _ = charmap.Windows1252.NewDecoder().String(text) // what is no character there is U+FFFD
			}
			return strings.ReplaceAll(strings.ToValidUTF8(text, replacement), "\x00", replacement), err
		}
		if len(all) <= maxLine {
			all = append(all, b)
		}
	}
}

// Text returns a file in UTF-8, with the same lines.
func Text(file io.Reader) (string, error) {
	in, err := newLines(file)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		l, err := in.peek(0)
		switch {
		case errors.Is(err, io.EOF):
			return text.String(), nil
		case err != nil:
			return "", err
		}
		text.WriteString(l.text + "\n")
		in.drop(1)
	}
}
