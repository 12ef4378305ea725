package wire

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsBare reports whether a body cannot be a damaged envelope: it is empty, or begins
// with anything but "{" after byte order marks and white space.
func IsBare(body []byte) bool {
	body = bytes.TrimLeftFunc(body, func(r rune) bool {
		return r == '\ufeff' || r == utf8.RuneError || r == 0 || unicode.IsSpace(r)
	})
	return len(body) == 0 || body[0] != '{'
}

// Names reports whether a name, a string or a number in the value at m is the reference,
// or a string mentions it.
func (c *Codec) Names(m Mark, reference string) bool {
	c.Rewind(m)
	found := false
	var look func()
	look = func() {
		switch c.Kind() {
		case '{':
			c.Map(func(name []byte) {
				found = found || strings.EqualFold(string(name), reference)
				look()
			})
		case '[':
			c.Each(look)
		case '"':
			found = mentions(string(c.Bytes()), reference) || found
		default:
			found = string(c.Span()) == reference || found
		}
	}
	look()
	return found || c.Err() != nil
}

// mentions reports whether s contains the reference as a word, in any letter case.
func mentions(s, reference string) bool {
	s, reference = strings.ToLower(s), strings.ToLower(reference)
	partOf := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for {
		before, after, found := strings.Cut(s, reference)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !partOf(last) && !partOf(next) {
			return true
		}
		s = after
	}
}
