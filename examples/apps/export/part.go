package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// columns are those of the file, and how a card fills them.
var columns = []struct {
	name string
	text func(*cardwire.Card, bool) string
}{
	{"id", func(c *cardwire.Card, _ bool) string { return c.ID }},
	{"trade_id", func(c *cardwire.Card, _ bool) string { return c.TradeID }},
	{"label", func(c *cardwire.Card, _ bool) string { return c.Label }},
	{"bin", func(c *cardwire.Card, _ bool) string { return c.CardBIN }},
	{"number", number},
	{"expiry", func(c *cardwire.Card, _ bool) string { return c.Expiry.String() }},
	{"status", func(c *cardwire.Card, _ bool) string { return c.Status.String() }},
	{"currency", func(c *cardwire.Card, _ bool) string { return c.Currency }},
	{"available", func(c *cardwire.Card, _ bool) string { return exact(c.Available) }},
	{"pending", func(c *cardwire.Card, _ bool) string { return exact(c.Pending) }},
	{"frozen", func(c *cardwire.Card, _ bool) string { return exact(c.Frozen) }},
	{"fee", func(c *cardwire.Card, _ bool) string { return exact(c.Fee) }},
	{"holder", func(c *cardwire.Card, _ bool) string { return c.HolderUsername }},
	{"email", func(c *cardwire.Card, _ bool) string { return c.HolderEmail }},
	{"created", func(c *cardwire.Card, _ bool) string { return c.CreateTime.String() }},
	{"updated", func(c *cardwire.Card, _ bool) string { return c.UpdateTime.String() }},
	{"remark", func(c *cardwire.Card, _ bool) string { return c.Remark }},
}

// number reveals the number only where -reveal asks for it.
func number(c *cardwire.Card, reveal bool) string {
	if reveal {
		return c.Number.Reveal()
	}
	return c.Number.Masked()
}

// part is the unfinished export: the rows in FILE.part, and in FILE.part.json the page
// to resume from.
type part struct {
	settings settings
	state    state
	totals   *totals
	file     *os.File
	rows     *csv.Writer
	seen     map[string]struct{} // IDs as they are in rows: cards move between pages while pages are read
}

// state is what an unfinished export leaves.
type state struct {
	Fake     bool  `json:"fake"`
	Reveal   bool  `json:"reveal"`
	Limit    int   `json:"limit"`
	NextPage int   `json:"next_page"`
	Bytes    int64 `json:"bytes"` // of FILE.part that are rows of whole pages
}

func (f *part) name() string      { return f.settings.out + ".part" }
func (f *part) stateName() string { return f.name() + ".json" }

// openPart begins an export, or resumes one that was not finished.
func openPart(s settings) (*part, error) {
	if err := s.replaceable(); err != nil {
		return nil, err
	}
	f := &part{settings: s, totals: newTotals(), seen: map[string]struct{}{}}
	saved, err := os.ReadFile(f.stateName())
	_, missing := os.Stat(f.name())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(missing, fs.ErrNotExist) {
		return f, f.begin() // a state without rows is what a crash at the end leaves
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(saved, &f.state); err != nil {
		return nil, fmt.Errorf("%s is damaged: remove it to begin anew", f.stateName())
	}
	if f.state.Fake != s.fake || f.state.Reveal != s.reveal || f.state.Limit != s.limit {
		return nil, fmt.Errorf("%s was begun with other flags: use them, or remove it and %s", f.name(), f.stateName())
	}
	return f, f.resume()
}

// replaceable refuses to overwrite anything but an export of the same service: made-up
// cards must not replace real ones, nor the other way round.
func (s settings) replaceable() error {
	info, err := os.Stat(s.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("-out %s is not a regular file: give the name of a file", s.out)
	}
	file, err := os.Open(s.out)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	other := s
	other.fake = !s.fake
	first, err := csv.NewReader(io.LimitReader(file, 4096)).Read()
	switch {
	case errors.Is(err, io.EOF), slices.Equal(first, s.header()):
		return nil
	case slices.Equal(first, other.header()) && s.fake:
		return fmt.Errorf("-out %s has the cards of a service: made-up ones do not replace them: give another name", s.out)
	case slices.Equal(first, other.header()):
		return fmt.Errorf("-out %s has made-up cards of the fake service: remove it, or give another name", s.out)
	}
	return fmt.Errorf("-out %s is not an export of this program: remove it, or give another name", s.out)
}

// header is the first row. That of made-up cards is another one, so that each export
// recognizes the other's files.
func (s settings) header() []string {
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.name
	}
	if s.fake {
		row[0] = "fake_" + row[0]
	}
	return row
}

func (f *part) begin() error {
	f.state = state{Fake: f.settings.fake, Reveal: f.settings.reveal, Limit: f.settings.limit, NextPage: 1}
	// Whoever may not read card data must not read the file: what is there would
	// keep its mode, its owner, and who has it open.
	for _, old := range []string{f.name(), f.stateName()} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file, err := os.OpenFile(f.name(), os.O_RDWR|os.O_CREATE|os.O_EXCL, partMode)
	if err != nil {
		return err
	}
	f.file, f.rows = file, csv.NewWriter(file)
	return f.rows.Write(f.settings.header())
}

// partMode lets nobody but the owner read what may be card data.
const partMode = 0o600

// resume reads what is there: the totals must be those of all cards.
func (f *part) resume() error {
	file, err := os.OpenFile(f.name(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f.file = file
	size, err := f.protect()
	if err != nil {
		return err
	}
	if size < f.state.Bytes {
		return f.useless("has lost rows")
	}
	rows := csv.NewReader(io.LimitReader(file, f.state.Bytes))
	if _, err := rows.Read(); err != nil {
		return f.useless("is damaged")
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = f.totals.add(row)
		}
		if err != nil {
			return f.useless("is damaged")
		}
		f.seen[row[0]] = struct{}{}
	}
	if err := file.Truncate(f.state.Bytes); err != nil {
		return err
	}
	if _, err := file.Seek(f.state.Bytes, io.SeekStart); err != nil {
		return err
	}
	f.rows = csv.NewWriter(file)
	return nil
}

// useless says why FILE.part cannot be resumed.
func (f *part) useless(why string) error {
	return fmt.Errorf("%s %s: remove it and %s to begin anew", f.name(), why, f.stateName())
}

// protect makes the file that was opened the owner's alone, and returns its size. A
// link could lead to another file than the one that becomes FILE.
func (f *part) protect() (size int64, err error) {
	named, err := os.Lstat(f.name())
	if err != nil {
		return 0, err
	}
	opened, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	if !named.Mode().IsRegular() || !os.SameFile(named, opened) {
		return 0, fmt.Errorf("%s is not a regular file: remove it to begin anew", f.name())
	}
	return opened.Size(), f.file.Chmod(partMode)
}

// add appends a page of cards, and records that it is there.
func (f *part) add(cards []cardwire.Card) error {
	for i := range cards {
		if err := f.write(&cards[i]); err != nil {
			return err
		}
	}
	return f.save()
}

// write appends a card, unless it was on a page before.
func (f *part) write(c *cardwire.Card) error {
	id := harmless(c.ID)
	if _, seen := f.seen[id]; seen {
		return nil
	}
	f.seen[id] = struct{}{}
	row := make([]string, len(columns))
	for i, column := range columns {
		row[i] = harmless(column.text(c, f.settings.reveal))
	}
	return errors.Join(f.totals.add(row), f.rows.Write(row))
}

// harmless keeps spreadsheets from calculating a cardholder's string: an apostrophe
// precedes each part that may be taken for a formula. Parts end where a spreadsheet
// that is told another separator begins a cell. No two strings become one, and each
// is read back as it was written: a line feed never follows a carriage return.
func harmless(text string) string {
	if _, err := decimal.NewFromString(text); err == nil {
		return text // a negative amount
	}
	var b strings.Builder
	for text != "" {
		end := strings.IndexAny(text, ";|\t\r\n") + 1
		if end == 0 {
			end = len(text)
		}
		if mayCalculate(text[:end]) {
			b.WriteByte('\'')
		}
		b.WriteString(text[:end])
		text = text[end:]
	}
	return b.String()
}

// mayCalculate reports whether part may be a formula, also behind quotation marks and
// what is invisible, or begins with what is removed when it is read.
func mayCalculate(part string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(part, func(r rune) bool {
		return r == '"' || unicode.Is(unicode.Zs, r) || !unicode.IsGraphic(r)
	}))
	return strings.IndexByte("'\t\r\n", part[0]) >= 0 ||
		unicode.Is(unicode.Dash, first) || strings.ContainsRune("=+@＝＋＠﹦﹢﹫⁼⁺₌₊﬩", first)
}

// save records the rows of one more page: after an error or a crash the next run resumes
// behind them.
func (f *part) save() error {
	f.rows.Flush()
	if err := errors.Join(f.rows.Error(), f.file.Sync()); err != nil {
		return err
	}
	at, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	f.state.NextPage++
	f.state.Bytes = at
	saved, err := json.Marshal(f.state)
	if err != nil {
		return err
	}
	whole := f.stateName() + ".new"
	if err := os.WriteFile(whole, saved, partMode); err != nil {
		return err
	}
	return os.Rename(whole, f.stateName())
}

// left says where the next run resumes.
func (f *part) left(cause error) error {
	if f.state.Bytes == 0 {
		return cause
	}
	return fmt.Errorf("%d cards are in %s: run it again to resume at page %d: %w", f.totals.cards, f.name(), f.state.NextPage, cause)
}

// finish turns the part into the file, at once or not at all.
func (f *part) finish() error {
	if err := f.settings.replaceable(); err != nil { // it may be there by now
		return err
	}
	if err := os.Rename(f.name(), f.settings.out); err != nil {
		return err
	}
	if err := os.Remove(f.stateName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// close leaves nothing behind that a run could resume from in vain.
func (f *part) close() {
	_ = f.file.Close() // what matters was synced
	if f.state.Bytes == 0 {
		_ = os.Remove(f.name())
	}
}
