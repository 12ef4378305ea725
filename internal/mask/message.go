// Package mask keeps card data and keys out of printed text: it masks messages, headers
// and decoded values, and scrambles what a sealed value contains.
package mask

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage is how many bytes of a message are kept.
const maxMessage = 256

// minKey is the least length of a key that is masked anywhere. A shorter one, as tests have,
// is masked only as a whole word: the key "k" not in "bank".
const minKey = 8

// keyAt reports whether the key is at s[i].
func keyAt(s string, i int, key string) bool {
	return key != "" && strings.HasPrefix(s[i:], key) &&
		(len(key) >= minKey || !wordAt(s, i-1) && !wordAt(s, i+len(key)))
}

// wordAt reports whether a letter from A to Z or a digit is at s[i].
func wordAt(s string, i int) bool {
	return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z')
}

// containsKey reports whether the key is anywhere in s.
func containsKey(s, key string) bool {
	for i := range len(s) {
		if keyAt(s, i, key) {
			return true
		}
	}
	return false
}

// Message makes a message of the service safe for logs: it masks the client's key and
// digits that may be a card number, and replaces unprintable characters with spaces.
func Message(msg, key string) string {
	msg = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, msg)
	// Both digits and key are searched for in the whole message: masking one of them
	// first, or truncating, could leave a part of the other.
	digits := maskDigits(msg)
	var b []byte
	keyEnd := 0
	for i := 0; i < len(msg) && len(b) <= maxMessage; i++ {
		if keyAt(msg, i, key) {
			if i >= keyEnd {
				b = append(b, "***"...)
			}
			keyEnd = i + len(key)
		}
		if i >= keyEnd {
			b = append(b, digits[i])
		}
	}
	b = b[:min(len(b), maxMessage)]
	for !utf8.Valid(b) {
		b = b[:len(b)-1]
	}
	return string(b)
}

// The least number of digits in a card number, and in each of its groups but the last
// if it is written in groups, with at most so many bytes between them.
const (
	minCardDigits  = 12
	minGroupDigits = 4
	maxGap         = 5 // as of a dash in UTF-8 between spaces
)

// maskDigits masks digits that may be a card number: in a row, or in groups with a few
// bytes other than letters from A to Z in between.
func maskDigits(s string) string {
	b := []byte(s)
	start, digits, group, gap := 0, 0, 0, 0
	for i := range len(b) + 1 {
		switch {
		case digitAt(b, i):
			if gap > 0 {
				group, gap = 0, 0
			}
			digits++
			group++
			continue
		case group >= minGroupDigits && gap < maxGap && i < len(b) && !letterAt(b, i):
			gap++
			continue
		case digits >= minCardDigits:
			for j := start; j < i; j++ {
				if digitAt(b, j) {
					b[j] = '*'
				}
			}
		}
		start, digits, group, gap = i+1, 0, 0, 0
	}
	return string(b)
}

func digitAt(b []byte, i int) bool { return i < len(b) && b[i] >= '0' && b[i] <= '9' }

func letterAt(b []byte, i int) bool { return b[i]|0x20 >= 'a' && b[i]|0x20 <= 'z' }

// Header returns a copy of a header that is safe for logs: some services echo the key,
// or put what they log into a header.
func Header(h http.Header, key string) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if name == "Set-Cookie" || name == "Authorization" || maskDigits(name) != name ||
			containsKey(strings.Join(values, "\n"), key) {
			continue
		}
		out[name] = make([]string, len(values))
		for i, v := range values {
			out[name][i] = maskDigits(v)
		}
	}
	return out
}

// maxRequestID bounds a request ID.
const maxRequestID = 64

// RequestID returns the service's identifier of the exchange; "": none was sent.
func RequestID(h http.Header, key string) string {
	// Not by Get, which would canonicalize the names again.
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Correlation-Id"} {
		values := h[name]
		if len(values) == 0 {
			continue
		}
		value := values[0]
		if id := Message(strings.Map(visible, value), key); id != "" {
			return id[:min(len(id), maxRequestID)]
		}
	}
	return ""
}

// visible keeps visible ASCII.
func visible(r rune) rune {
	if r <= ' ' || r > '~' {
		return -1
	}
	return r
}
