package payouts

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

var (
	wordsOfText  = regexp.MustCompile(`[\pL\pM\pN]+`)
	digitsOfWord = regexp.MustCompile(`\pN+`)
)

// masked is what the service said of a request, without the request's own values and without digits: for the log, and
// to compare what it says of several.
func masked(message, body string) string {
	var values map[string]any
	_ = json.Unmarshal([]byte(body), &values) // of a body that was purged there are none
	var own []string
	for _, v := range values {
		own = append(own, wordsOfText.FindAllString(fold(fmt.Sprint(v)), -1)...)
	}
	return wordsOfText.ReplaceAllStringFunc(norm.NFC.String(message), func(word string) string {
		short := digitsOfWord.ReplaceAllString(word, "#")
		for _, value := range own {
			if short != "#" && isPart(fold(word), value) {
				return "…"
			}
		}
		return short
	})
}

func fold(text string) string { return strings.ToLower(norm.NFC.String(text)) }

// isPart reports whether two words are the same, or one is a part of the other that is not there by chance.
func isPart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || utf8.RuneCountInString(a) >= 4 && strings.Contains(b, a)
}
