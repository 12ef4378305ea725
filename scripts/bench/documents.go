package main

import (
	"fmt"
	"os"
	"strings"
)

// These lines of a document enclose generated figures, and nothing written by hand.
const (
	figuresBegin = "<!-- figures: written by scripts/bench -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
)

// chief are the rows in the README; docs/speed.md has all rows.
var chief = []string{
	"list-100",
	"list-1000-worst",
	"list-bytes",
	"list-loopback",
	"bins",
	"tiny",
	"better-list-generated",
	"better-list-stripe",
	"upload",
	"cards",
}

// whole returns the table of docs/speed.md.
func (r *result) whole() string { return r.text(false) }

// brief returns the table of the README.
func (r *result) brief() string {
	var rows []row
	for _, id := range chief {
		for _, row := range r.Rows {
			if row.ID == id {
				rows = append(rows, row)
			}
		}
	}
	w := new(strings.Builder)
	table(w, r.lines(rows))
	return w.String()
}

// publish replaces the figures of a document.
func publish(file, figures string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), figuresBegin)
	_, after, ends := strings.Cut(rest, figuresEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for figures, between %q and %q", file, figuresBegin, figuresEnd)
	}
	return os.WriteFile(file, []byte(before+figuresBegin+"\n"+figures+"\n"+figuresEnd+after), 0o644)
}
