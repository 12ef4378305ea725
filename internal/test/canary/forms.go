package canary

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Forms returns text and its decodings: from the escapes of Go, JSON, XML and URLs,
// from base64 and hex, and from the codes of bytes, as fmt prints them. If text has
// several readings, each is a form. Most forms are nonsense: they are for searching only.
func Forms(text string) (forms []string) {
	for range 3 { // JSON in JSON is escaped twice
		forms = append(forms, text)
		forms = appendBase64(forms, text)
		spaced := hexDumpLine(text)
		forms = appendHex(forms, spaced)
		forms = appendCodes(forms, spaced)
		forms = appendCharacters(forms, text)
		plain := unescape(text)
		if plain == text {
			break
		}
		text = plain
	}
	return forms
}

// between separates parts that do not belong together. No secret contains it.
const between = '\x00'

// unescape decodes the escapes of Go, JSON, XML and URLs anywhere in the text.
func unescape(text string) string {
	if !strings.ContainsAny(text, `\%&`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := escape(text[i:])
		if n == 0 {
			b.WriteByte(text[i])
			i++
			continue
		}
		if r < utf8.RuneSelf {
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// escape reads the escape that s begins with, and returns its length, 0 for none.
func escape(s string) (r rune, n int) {
	switch s[0] {
	case '%':
		return code(s, 1, 2, 16)
	case '&':
		return entity(s)
	case '\\':
		return backslash(s)
	}
	return 0, 0
}

func backslash(s string) (r rune, n int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case 'x':
		return code(s, 2, 2, 16)
	case 'u':
		return code(s, 2, 4, 16)
	case 'U':
		return code(s, 2, 8, 16)
	case '0', '1', '2', '3':
		return code(s, 1, 3, 8)
	case '\\', '/', '"', '\'':
		return rune(s[1]), 2
	case 'n', 'r', 't':
		return ' ', 2
	}
	return 0, 0
}

var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func entity(s string) (r rune, n int) {
	name, _, found := strings.Cut(s[1:min(len(s), 12)], ";")
	if !found {
		return 0, 0
	}
	n = len("&;") + len(name)
	if number, ok := strings.CutPrefix(name, "#x"); ok {
		r, _ = code(number, 0, len(number), 16)
	} else if number, ok := strings.CutPrefix(name, "#"); ok {
		r, _ = code(number, 0, len(number), 10)
	} else {
		r = entities[name]
	}
	if r == 0 {
		return 0, 0
	}
	return r, n
}

// code reads digits of a base from s, beginning at start.
func code(s string, start, digits, base int) (r rune, n int) {
	if len(s) < start+digits {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[start:start+digits], base, 21)
	if err != nil {
		return 0, 0
	}
	return rune(v), start + digits
}

// sextets are the values of the characters of base64, of both alphabets, plus 1.
var sextets = func() (t [256]byte) {
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		t[c] = byte(i + 1)
	}
	t['-'], t['_'] = t['+'], t['/']
	return t
}()

// appendBase64 reads each run as base64 from each of its first four characters
// on, because the text before a secret may look like base64 too. Padding ends
// a run; the end of a line does not.
func appendBase64(forms []string, text string) []string {
	for skip := range 4 {
		b := make([]byte, 0, len(text)*3/4+1)
		var bits uint32
		var have, seen int
		for i := range len(text) {
			c := text[i]
			v := sextets[c]
			switch {
			case v == 0 && lineEnd(c):
				continue
			case v == 0:
				if seen > 0 {
					b = append(b, between)
				}
				bits, have, seen = 0, 0, 0
				continue
			}
			if seen++; seen <= skip {
				continue
			}
			bits, have = bits<<6|uint32(v-1), have+6
			if have >= 8 {
				have -= 8
				b = append(b, byte(bits>>have))
			}
		}
		forms = append(forms, string(b))
	}
	return forms
}

func lineEnd(c byte) bool { return c == '\n' || c == '\r' }

// appendHex reads each run of hexadecimal digits from its first and from its
// second digit on. Single spaces, colons and hyphens do not end a run.
func appendHex(forms []string, text string) []string {
	for skip := range 2 {
		b := make([]byte, 0, len(text)/2+1)
		var high byte
		seen := 0
		for i := range len(text) {
			v, ok := nibble(text[i])
			switch {
			case !ok && strings.IndexByte(" :-\n", text[i]) >= 0:
				continue
			case !ok:
				if seen > 0 {
					b = append(b, between)
				}
				seen = 0
				continue
			}
			if seen++; seen <= skip {
				continue
			}
			if (seen-skip)%2 == 1 {
				high = v
			} else {
				b = append(b, high<<4|v)
			}
		}
		forms = append(forms, string(b))
	}
	return forms
}

func nibble(c byte) (v byte, ok bool) {
	switch lower := c | 0x20; {
	case c >= '0' && c <= '9':
		return c - '0', true
	case lower >= 'a' && lower <= 'f':
		return lower - 'a' + 10, true
	}
	return 0, false
}

var dumpLineEnd = regexp.MustCompile(`  \|.{1,48}\|\n\W*[0-9a-f]{8}  `)

// hexDumpLine removes what separates the lines of a dump, that of
// encoding/hex and the one in testify's diffs.
func hexDumpLine(text string) string {
	if !strings.Contains(text, "  |") {
		return text
	}
	return dumpLineEnd.ReplaceAllString(text, " ")
}

// appendCodes reads words as the codes of bytes in the bases that fmt prints.
func appendCodes(forms []string, text string) []string {
	bases := [...]int{10, 16, 8, 2}
	var spelled [len(bases)][]byte
	words(text, func(word string) {
		for i, base := range bases {
			v, ok := byteOf(word, base)
			if !ok {
				v = between
			}
			spelled[i] = append(spelled[i], v)
		}
	})
	for _, b := range spelled {
		forms = append(forms, string(b))
	}
	return forms
}

// appendCharacters reads single characters, bare or in quotes.
func appendCharacters(forms []string, text string) []string {
	b := make([]byte, 0, len(text)/2+1)
	for token := range strings.FieldsSeq(text) {
		c, ok := character(token)
		if !ok { // it may be the first or the last of a list
			token = token[strings.LastIndexAny(token, "[({")+1:]
			token, _, _ = strings.Cut(token, "]")
			c, ok = character(strings.Trim(token, "),;}"))
		}
		if !ok {
			c = between
		}
		b = append(b, c)
	}
	return append(forms, string(b))
}

func character(token string) (c byte, ok bool) {
	if last := len(token) - 1; last > 0 && strings.Trim(token[:last], "0") == "" {
		token = token[last:] // padded
	}
	switch {
	case len(token) == 1:
		return token[0], true
	case len(token) == 3 && token[0] == '\'' && token[2] == '\'':
		return token[1], true
	}
	return 0, false
}

func byteOf(word string, base int) (byte, bool) {
	if len(word) > 2 && word[0] == '0' && strings.IndexByte("xXbBoO", word[1]) >= 0 {
		word = word[2:]
	}
	v := 0
	for i := range len(word) {
		d, ok := nibble(word[i])
		if v = v*base + int(d); !ok || int(d) >= base || v > 0xff {
			return 0, false
		}
	}
	return byte(v), v > 0
}

// words calls each with the words of the text, without what fmt puts around the
// code of a byte.
func words(text string, each func(string)) {
	for i := 0; i < len(text); {
		rest := text[i:]
		if n := decoration(rest); n > 0 {
			if rest[0] == ']' || rest[0] == '}' {
				each("") // ends a list
			}
			i += n
			continue
		}
		n := 0
		for n < len(rest) && wordByte(rest[n]) {
			n++
		}
		each(rest[:n])
		i += n
		if n > 0 && strings.HasPrefix(text[i:], " '") && len(text) > i+3 && text[i+3] == '\'' {
			i += len(" '4'") // U+0034 '4'
		}
	}
}

// decoration returns the length of what precedes a word and is not part of it.
func decoration(s string) int {
	switch {
	case strings.HasPrefix(s, "%!"): // %!e(uint8=52)
		if operand := strings.IndexByte(s[:min(len(s), 12)], '='); operand > 0 {
			return operand + 1
		}
	case strings.HasPrefix(s, "U+"), strings.HasPrefix(s, `\x`), strings.HasPrefix(s, `\u`):
		return 2
	}
	if wordByte(s[0]) {
		return 0
	}
	return 1
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
