package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// input is one input of a form, with what was put in and what is wrong with it.
type input struct {
	Name     string // as in the SDK's parameters, so that its errors find the input
	Label    string // "": made of Name
	Hint     string
	Kind     string // an input's type, or "select"; "": text
	Mode     string // the keyboard that a phone shows; "": letters
	Value    string
	Error    string
	Required bool
	ReadOnly bool
	Options  []option
}

type option struct{ Value, Label string }

// inputs fills a form's inputs with what was put in.
func inputs(values interface{ Get(string) string }, form ...input) []*input {
	var filled []*input
	for _, in := range form {
		if in.Label == "" {
			in.Label = words(in.Name)
		}
		in.Value = strings.TrimSpace(values.Get(in.Name))
		filled = append(filled, &in)
	}
	return filled
}

var ends = regexp.MustCompile(`([a-z])([A-Z])|([A-Z])([A-Z][a-z])`)

// words makes "Sender ID number" of SenderIDNumber.
func words(name string) string {
	list := strings.Fields(ends.ReplaceAllString(ends.ReplaceAllString(name, "$1$3 $2$4"), "$1$3 $2$4"))
	for i, word := range list {
		if i > 0 && strings.ContainsFunc(word, unicode.IsLower) {
			list[i] = strings.ToLower(word)
		}
	}
	return strings.Join(list, " ")
}

// blame puts the SDK's words beside the input that they are about, and reports
// whether there is one.
func blame(form []*input, err error) bool {
	name, text := problem(err)
	for _, in := range form {
		if strings.EqualFold(in.Name, name) {
			if in.Error == "" {
				in.Error = in.Label + " " + text + "."
			}
			return true
		}
	}
	return false
}

// DescribedBy names the elements that explain the input.
func (in *input) DescribedBy() string {
	var ids []string
	if in.Hint != "" {
		ids = append(ids, in.Name+"-hint")
	}
	if in.Error != "" {
		ids = append(ids, in.Name+"-error")
	}
	return strings.Join(ids, " ")
}

// offer adds a choice that a select does not have yet.
func (in *input) offer(v string) {
	if in.Kind == "select" && !slices.ContainsFunc(in.Options, func(o option) bool { return o.Value == v }) {
		in.Options = append(in.Options[:len(in.Options):len(in.Options)], option{v, v})
	}
}
