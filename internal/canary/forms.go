package canary

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
)

// Forms returns text and its decodings: from the escapes of Go, JSON, XML and URLs,
// from base64 and hex, and from the codes of bytes, as fmt prints them. If text has
// several readings, each is a form. Most forms are nonsense: they are for searching only.
func Forms(text string) (forms []string) {
	for range 3 { // JSON in JSON is escaped twice
		forms = append(forms, text, characters(text))
		forms = appendBase64(forms, text)
		forms = appendHex(forms, text)
		forms = appendCodes(forms, text)
		plain := unescape(text)
		if plain == text {
			break
		}
		text = plain
	}
	return forms
}

// between separates parts that do not belong together. No secret contains it.
const between = "\x00"

var escape = regexp.MustCompile(`\\(?:x..|u....|U.{8}|[0-3]..|.)|%[0-9A-Fa-f]{2}`)

// unescape decodes the escapes of Go, JSON, XML and URLs anywhere in the text.
func unescape(text string) string {
	if strings.ContainsAny(text, `\%`) {
		text = escape.ReplaceAllStringFunc(text, func(s string) string {
			if s[0] == '%' {
				s = `\x` + s[1:]
			}
			r, multibyte, rest, err := strconv.UnquoteChar(s, s[1])
			switch {
			case s == `\/`:
				return "/"
			case err != nil:
				return s
			case multibyte:
				return string(r) + rest
			}
			return string([]byte{byte(r)}) + rest
		})
	}
	return html.UnescapeString(text)
}

var (
	base64Run      = regexp.MustCompile(`[0-9A-Za-z+/]{6,}`)
	base64Alphabet = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "")
)

// appendBase64 reads each run as base64 from each of its first four characters on,
// because the text before a secret may look like base64 too.
func appendBase64(forms []string, text string) []string {
	return appendRuns(forms, base64Run.FindAllString(base64Alphabet.Replace(text), -1), 4, func(run string) []byte {
		b, _ := base64.RawStdEncoding.DecodeString(run) // what precedes the first error
		return b
	})
}

var (
	hexRun       = regexp.MustCompile(`[0-9A-Fa-f](?:[ :\n-]*[0-9A-Fa-f]){5,}`)
	hexSeparator = strings.NewReplacer(" ", "", ":", "", "-", "", "\n", "")
	// hexDumpEnd separates the lines of a dump, that of encoding/hex and the one in testify's diffs.
	hexDumpEnd = regexp.MustCompile(`  \|.{1,48}\|\n\W*[0-9a-f]{8}  `)
)

// appendHex reads each run of hexadecimal digits from its first and from its second digit on.
func appendHex(forms []string, text string) []string {
	if strings.Contains(text, "  |") {
		text = hexDumpEnd.ReplaceAllString(text, " ")
	}
	return appendRuns(forms, hexRun.FindAllString(text, -1), 2, func(run string) []byte {
		b, _ := hex.DecodeString(hexSeparator.Replace(run)) // what precedes the first error
		return b
	})
}

// appendRuns adds a form for each place at which the runs may begin to be read.
func appendRuns(forms, runs []string, starts int, decode func(string) []byte) []string {
	for start := range starts {
		var b strings.Builder
		for _, run := range runs {
			b.Write(decode(run[start:]))
			b.WriteString(between)
		}
		forms = append(forms, b.String())
	}
	return forms
}

var (
	listEnd = strings.NewReplacer("]", " ] ", "}", " } ")
	// decoration is what fmt puts around the code of a byte: %!e(uint8=52), U+0034 '4'.
	decoration = regexp.MustCompile(`%!.\(\w+=|U\+| '.'`)
)

// appendCodes reads words as the codes of bytes in the bases that fmt prints.
func appendCodes(forms []string, text string) []string {
	words := strings.FieldsFunc(listEnd.Replace(decoration.ReplaceAllString(text, " ")), func(r rune) bool {
		return r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' && r != ']' || r > 'z' && r != '}'
	})
	for _, base := range []int{10, 16, 8, 2} {
		codes := make([]byte, len(words))
		for i, w := range words {
			codes[i] = byteOf(w, base)
		}
		forms = append(forms, string(codes))
	}
	return forms
}

// byteOf returns the byte that the word is the code of, 0 for none.
func byteOf(word string, base int) byte {
	if len(word) > 2 && word[0] == '0' && strings.IndexByte("xXbBoO", word[1]) >= 0 {
		word = word[2:]
	}
	v := 0
	for _, c := range []byte(strings.ToLower(word)) {
		digit := strings.IndexByte("0123456789abcdef", c)
		if v = v*base + digit; digit < 0 || digit >= base || v > 0xff {
			return 0
		}
	}
	return byte(v)
}

// characters reads single characters, bare, padded or in quotes.
func characters(text string) string {
	var b strings.Builder
	for token := range strings.FieldsSeq(text) {
		if i := strings.LastIndexAny(token, "[({"); i >= 0 && i < len(token)-1 {
			token = token[i+1:]
		}
		if i := strings.IndexAny(token, "])},;"); i > 0 {
			token = token[:i]
		}
		if len(token) > 2 {
			token = strings.TrimSuffix(strings.TrimPrefix(token, "'"), "'")
		}
		if rest := strings.TrimLeft(token[:max(len(token)-1, 0)], "0"); rest != "" {
			token = between
		}
		b.WriteString(token[max(len(token)-1, 0):])
	}
	return b.String()
}
