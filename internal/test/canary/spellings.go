package canary

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
)

// Spellings returns the secret in every form that a search by [Forms] must find, by the
// name of the form. It is for tests of such searches.
func Spellings(secret string) map[string]string {
	all := map[string]string{
		"as it is":             secret,
		"in a query":           url.QueryEscape(secret),
		"in a path":            url.PathEscape(secret),
		"quoted":               fmt.Sprintf("%q", secret),
		"quoted in ASCII":      fmt.Sprintf("%+q", secret),
		"quoted by a backtick": fmt.Sprintf("%#q", secret),
		"hex":                  fmt.Sprintf("%x", secret),
		"HEX":                  fmt.Sprintf("%X", secret),
		"hex with spaces":      fmt.Sprintf("% x", secret),
		"hex with 0x":          fmt.Sprintf("%#x", secret),
		"hex with 0x each":     fmt.Sprintf("%# x", secret),
		"hex with colons":      strings.ReplaceAll(fmt.Sprintf("% x", secret), " ", ":"),
		"hex dump":             hex.Dump([]byte("at first: " + secret)),
		"JSON":                 marshalled(json.Marshal(secret)),
		"JSON in JSON":         marshalled(json.Marshal(marshalled(json.Marshal(secret)))),
		"bytes in JSON":        marshalled(json.Marshal([]byte(secret))),
		"XML":                  marshalled(xml.Marshal(secret)),
		"Go bytes":             fmt.Sprintf("%#v", []byte(secret)),
	}
	for verb := range strings.FieldsSeq("v d +d 5d 03d o #o O b #b c q +q U #U e t") {
		all["bytes as %"+verb] = fmt.Sprintf("%"+verb, []rune(secret))
	}
	for name, format := range map[string]string{
		"percents": "%%%02X", "small percents": "%%%02x", "entities": "&#%d;", "hex entities": "&#x%X;",
		"hex escapes": `\x%02x`, "Unicode escapes": `\u%04x`, "long Unicode escapes": `\U%08X`,
		"octal escapes": `\%03o`,
	} {
		var b strings.Builder
		for i := range len(secret) {
			fmt.Fprintf(&b, format, secret[i])
		}
		all[name] = b.String()
	}
	for before := range 4 {
		text := []byte(strings.Repeat("-", before) + secret + "?")
		for name, e := range map[string]*base64.Encoding{
			"base64": base64.StdEncoding, "base64 of URLs": base64.URLEncoding,
			"bare base64": base64.RawStdEncoding, "bare base64 of URLs": base64.RawURLEncoding,
		} {
			all[fmt.Sprintf("%s after %d", name, before)] = "q" + strings.Repeat("/", before) + e.EncodeToString(text)
		}
		line := base64.StdEncoding.EncodeToString(text)
		all[fmt.Sprintf("lines of base64 after %d", before)] = line[:9] + "\r\n" + line[9:]
	}
	return all
}

// marshalled is for strings, which every encoder accepts.
func marshalled(text []byte, _ error) string { return string(text) }
