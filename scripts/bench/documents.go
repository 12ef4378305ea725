package main

import (
	"fmt"
	"os"
	"strings"
)

// Between these lines of a document stand figures, and nothing that is written by
// hand.
const (
	figuresBegin = "<!-- figures: written by scripts/bench -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
)

// chief are the rows that the README shows; docs/speed.md has all of them.
var chief = []string{
	"page-100-time",
	"page-100-allocations",
	"card-time",
	"bins-50-time",
	"list-loopback-time",
	"tiny-memory-time",
	"better-list-stripe",
	"better-list-github",
	"upload",
	"cards",
}

// whole is what docs/speed.md shows.
func (r *result) whole() string { return r.text(false) }

// brief is what the README shows.
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
	table(w, verdicts(rows))
	return w.String()
}

// publish puts figures into a document, in the place of those that it holds.
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
