package jsonsuite

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"unicode/utf8"
)

// Strict reports whether text is JSON without what a strict reader refuses beyond
// encoding/json: duplicate names, invalid strings and depth. It uses only encoding/json.
func Strict(text []byte, maxDepth int) bool {
	if !json.Valid(text) || !utf8.Valid(text) || halfSurrogate(string(text)) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	deepest, repeated := 0, false
	walk(d, 0, &deepest, &repeated)
	return deepest <= maxDepth && !repeated
}

// walk reads one value from valid JSON.
func walk(d *json.Decoder, depth int, deepest *int, repeated *bool) {
	token, err := d.Token()
	if errors.Is(err, io.EOF) {
		return
	}
	open, ok := token.(json.Delim)
	if !ok {
		return
	}
	*deepest = max(*deepest, depth+1)
	names := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, _ := d.Token()
			*repeated = *repeated || names[name.(string)]
			names[name.(string)] = true
		}
		walk(d, depth+1, deepest, repeated)
	}
	_, _ = d.Token()
}

var (
	escapedBackslash = regexp.MustCompile(`\\\\`)
	pairOfHalves     = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`)
	half             = regexp.MustCompile(`(?i)\\ud[89a-f][0-9a-f]{2}`)
)

// halfSurrogate reports whether valid JSON contains half of a surrogate pair.
func halfSurrogate(text string) bool {
	// Something is left in place of each: what stands apart must not meet.
	text = escapedBackslash.ReplaceAllString(text, "-")
	return half.MatchString(pairOfHalves.ReplaceAllString(text, "-"))
}
