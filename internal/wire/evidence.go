package wire

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// IsBare reports whether a body cannot be a damaged JSON object: it is empty, and whole, or
// begins with anything but "{" after byte order marks and white space.
func IsBare(body []byte, whole bool) bool {
	body = bytes.TrimLeftFunc(body, func(r rune) bool {
		return r == '\ufeff' || r == utf8.RuneError || r == 0 || unicode.IsSpace(r)
	})
	if len(body) == 0 {
		return whole
	}
	return body[0] != '{'
}

// IsPage reports whether a body is HTML, as gateways send it.
func IsPage(body []byte) bool { return page().Match(body) }

var page = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[\s\x{feff}]*<(?:!|(?:html|head|body|title|style|script|meta|link|center|div|p|pre|h[1-6]|hr|br|b|font|table|span)\b)`)
})

// Mentions moves to the value at m, and reports whether a name, a string or a number in it
// is the reference, a string contains it as a word, or the value cannot be read.
func (c *Codec) Mentions(m Mark, reference string) bool {
	c.Rewind(m)
	found := false
	c.visit(func(name []byte) { found = found || strings.EqualFold(string(name), reference) }, func() {
		if c.Kind() == '"' {
			found = HasWord(string(c.Bytes(Text)), reference) || found
			return
		}
		found = string(c.Span()) == reference || found
	})
	return found || c.Err() != nil
}

// Strings returns every string value of a document, up to what cannot be read.
func Strings(document []byte) (list []string) {
	c := NewReader(document, false)
	c.SkipBOM()
	c.visit(func([]byte) {}, func() {
		if c.Kind() != '"' {
			c.Skip()
			return
		}
		list = append(list, string(c.Bytes(Message)))
	})
	return list
}

// visit calls name with each name in the next value, and value before each value in it that
// contains no others; value must read it.
func (c *Codec) visit(name func([]byte), value func()) {
	switch c.Kind() {
	case '{':
		c.Map(func(n []byte) {
			name(n)
			c.visit(name, value)
		})
	case '[':
		c.Each(func() { c.visit(name, value) })
	default:
		value()
	}
}

// HasWord reports whether s contains the reference as a word, in any letter case.
func HasWord(s, reference string) bool {
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
