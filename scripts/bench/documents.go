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

// whole returns the table of docs/speed.md.
func (r *result) whole() string { return r.text(false) }

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
