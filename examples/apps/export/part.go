package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cardwire/cardwire-go"
)

// part is FILE.part: the rows of an incomplete export. They alone determine where the next run
// resumes.
type part struct {
	name  string
	whole string // FILE
	file  *os.File
	rows  *csv.Writer
	seen  map[string]struct{} // IDs as they are in rows: cards move between pages while pages are read
}

// openPart begins an export, or resumes one that was not finished.
func openPart(whole string) (*part, error) {
	if info, err := os.Stat(whole); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("-out %s is not a regular file: give the name of a file", whole)
	}
	f := &part{name: whole + ".part", whole: whole, seen: map[string]struct{}{}}
	file, err := os.OpenFile(f.name, os.O_RDWR|os.O_CREATE, ownerOnly)
	if err != nil {
		return nil, err
	}
	f.file, f.rows = file, csv.NewWriter(file)
	if err := errors.Join(file.Chmod(ownerOnly), f.resume()); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// ownerOnly lets nobody else read names and balances.
const ownerOnly = 0o600

// resume keeps all rows except the last, which a crash may have cut off.
func (f *part) resume() error {
	rows := csv.NewReader(f.file)
	header, err := rows.Read()
	if !errors.Is(err, io.EOF) && !slices.Equal(header, names()) {
		return fmt.Errorf("%s is not what an export left: remove it, or give -out another name", f.name)
	}
	last, begin, end := "", int64(0), rows.InputOffset()
	for {
		row, err := rows.Read()
		if err != nil {
			break // the end, or a damaged row, which is read from the service again
		}
		last, begin, end = strings.Clone(row[0]), end, rows.InputOffset()
		f.seen[last] = struct{}{}
	}
	delete(f.seen, last)
	if err := f.file.Truncate(begin); err != nil {
		return err
	}
	if _, err := f.file.Seek(begin, io.SeekStart); err != nil {
		return err
	}
	if begin == 0 {
		return f.rows.Write(names())
	}
	return nil
}

// add appends the cards of a page, except those that were on an earlier page.
func (f *part) add(cards []cardwire.Card) error {
	for i := range cards {
		row := rowOf(&cards[i])
		if _, seen := f.seen[row[0]]; seen {
			continue
		}
		f.seen[row[0]] = struct{}{}
		if err := f.rows.Write(row); err != nil {
			return err
		}
	}
	f.rows.Flush()
	return f.rows.Error()
}

// finish turns the part into the file, atomically.
func (f *part) finish() error {
	if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
		return err
	}
	return os.Rename(f.name, f.whole)
}

func (f *part) close() { _ = f.file.Close() } // finish may have closed it
