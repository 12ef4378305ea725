package cardwire

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds what is kept of the service's own words.
const maxMessage = 256

// sanitise makes the service's words fit for a log: the client's key and digits
// that may be a card number are masked, and what does not print is a space.
func sanitise(msg, key string) string {
	msg = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, msg)
	// Digits and key are both sought in the whole text, since masking one of
	// them first, or cutting, could leave a part of the other.
	digits := maskDigits(msg)
	var b []byte
	keyEnd := 0
	for i := 0; i < len(msg) && len(b) <= maxMessage; i++ {
		if key != "" && strings.HasPrefix(msg[i:], key) {
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

// The least digits that may be a card number, and those of its first groups
// where it is written in groups.
const (
	minCardDigits  = 12
	minGroupDigits = 4
)

// maskDigits masks digits that may be a card number: in a row, or parted by single
// spaces and hyphens as on a card.
func maskDigits(s string) string {
	b := []byte(s)
	start, digits, group := 0, 0, 0
	for i := range len(b) + 1 {
		switch {
		case digitAt(b, i):
			digits++
			group++
			continue
		case group >= minGroupDigits && digitAt(b, i+1) && (b[i] == ' ' || b[i] == '-'):
			group = 0
			continue
		case digits >= minCardDigits:
			for j := start; j < i; j++ {
				if digitAt(b, j) {
					b[j] = '*'
				}
			}
		}
		start, digits, group = i+1, 0, 0
	}
	return string(b)
}

func digitAt(b []byte, i int) bool { return i < len(b) && b[i] >= '0' && b[i] <= '9' }

// loggable is a copy of a header without what is not for a log: some services echo
// the key, and what they write to their own log may be in a header too.
func loggable(h http.Header, key string) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if name == "Set-Cookie" || name == "Authorization" || maskDigits(name) != name ||
			key != "" && strings.Contains(strings.Join(values, "\n"), key) {
			continue
		}
		out[name] = make([]string, len(values))
		for i, v := range values {
			out[name][i] = maskDigits(v)
		}
	}
	return out
}

// maxRequestID bounds what is kept of an identifier that the service chose.
const maxRequestID = 64

func requestID(h http.Header, key string) string {
	// Not by Get, which would make canonical what is so already.
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Correlation-Id"} {
		values := h[name]
		if len(values) == 0 {
			continue
		}
		value := values[0]
		if id := sanitise(strings.Map(visible, value), key); id != "" {
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

// formatMasked honours width and flags, so that tables line up, and no verb.
func formatMasked(f fmt.State, text string) {
	fmt.Fprintf(f, fmt.FormatString(f, 's'), text)
}
