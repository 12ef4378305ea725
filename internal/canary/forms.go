package canary

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
)

// Forms returns text, and what it is if Go wrote it: without the escapes of quotes, JSON,
// XML and URLs, and with bytes in place of their base64, their hex and their codes, as
// encoding/json, %x and %v write a []byte. Most forms are nonsense: they are for searching only.
func Forms(text string) (forms []string) {
	for range 3 { // JSON in JSON is escaped twice
		forms = append(forms, text, codes(text))
		forms = appendRuns(forms, base64Run.FindAllString(base64Alphabet.Replace(text), -1), 4, base64.RawStdEncoding.DecodeString)
		forms = appendRuns(forms, hexRun.FindAllString(text, -1), 2, hex.DecodeString)
		plain := unescape(text)
		if plain == text {
			break
		}
		text = plain
	}
	return forms
}

var escape = regexp.MustCompile(`\\(?:x..|u....|.)|%[0-9A-Fa-f]{2}`)

// unescape decodes the escapes of Go, JSON, XML and URLs anywhere in the text.
func unescape(text string) string {
	text = escape.ReplaceAllStringFunc(text, func(s string) string {
		if s[0] == '%' {
			s = `\x` + s[1:]
		}
		r, multibyte, _, err := strconv.UnquoteChar(s, s[1])
		switch {
		case s == `\/`:
			return "/"
		case err != nil:
			return s
		case multibyte:
			return string(r)
		}
		return string([]byte{byte(r)})
	})
	return html.UnescapeString(text)
}

var (
	base64Run      = regexp.MustCompile(`[0-9A-Za-z+/]{6,}`)
	base64Alphabet = strings.NewReplacer("-", "+", "_", "/")
	hexRun         = regexp.MustCompile(`[0-9A-Fa-f]{6,}`)
)

// appendRuns adds a form for each place at which the runs may begin to be read, because the
// text before a secret may look like a part of it.
func appendRuns(forms, runs []string, starts int, decode func(string) ([]byte, error)) []string {
	for start := range starts {
		var b strings.Builder
		for _, run := range runs {
			decoded, _ := decode(run[start:]) // what precedes the first error
			b.Write(decoded)
			b.WriteByte(0) // which no secret contains
		}
		forms = append(forms, b.String())
	}
	return forms
}

var word = regexp.MustCompile(`\b(?:0x[0-9a-f]{1,2}|[0-9]{1,3})\b`)

// codes reads numbers as bytes.
func codes(text string) string {
	var b strings.Builder
	for _, w := range word.FindAllString(text, -1) {
		code, _ := strconv.ParseUint(w, 0, 8)
		b.WriteByte(byte(code))
	}
	return b.String()
}
