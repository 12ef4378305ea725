// Package check says what a parameter must be before it is sent. Its errors
// name the parameter and what is wrong with it, and never hold its value.
package check

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxID bounds identifiers: longer ones are a mistake, not an identifier.
const maxID = 128

// ID refuses what cannot be an identifier, or would be another place in a URL.
func ID(name, v string) error {
	switch {
	case v == "":
		return errors.New(name + " is empty")
	case v == "." || v == "..":
		return errors.New(name + " is a path, not an identifier")
	case len(v) > maxID:
		return errors.New(name + " is longer than 128 bytes")
	case strings.ContainsAny(v, `/\`):
		return errors.New(name + " holds a slash or a backslash")
	}
	return shown(name, v)
}

// UUID wants the usual form of 36 characters, in any letter case.
func UUID(name, v string) error {
	if v == "" {
		return errors.New(name + " is empty")
	}
	// Parse takes braces, a URN prefix and bare digits too: no service is known to.
	if id, err := uuid.Parse(v); err != nil || len(v) != 36 || id == uuid.Nil {
		return errors.New(name + " is not a UUID like xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx")
	}
	return nil
}

// Visible wants an identifier of any form without spaces at its ends.
func Visible(name, v string) error {
	if v != strings.TrimSpace(v) {
		return errors.New(name + " begins or ends with white space")
	}
	if len(v) > maxID {
		return errors.New(name + " is longer than 128 bytes")
	}
	return shown(name, v)
}

// shown is [Text] for what tells one thing from another: two that look like one
// would be two.
func shown(name, v string) error {
	if err := Text(name, v); err != nil {
		return err
	}
	if strings.ContainsFunc(v, hidden) {
		return errors.New(name + " holds a character that does not show")
	}
	return nil
}

func hidden(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Cleaned returns the part of a service's identifier that [Visible] accepts: id
// itself, or a shorter copy. A database may refuse the rest, and no person sees it.
func Cleaned(id []byte) []byte {
	if Visible("", string(id)) == nil {
		return id
	}
	clean := bytes.TrimSpace(bytes.Map(func(r rune) rune {
		if r == utf8.RuneError || control(r) || hidden(r) {
			return -1
		}
		return r
	}, id))
	if len(clean) <= maxID {
		return clean
	}
	end := maxID
	for !utf8.RuneStart(clean[end]) {
		end--
	}
	return bytes.TrimSpace(clean[:end])
}

// UTF8 refuses invalid UTF-8, which would arrive as another text.
func UTF8(name, v string) error {
	if !utf8.ValidString(v) {
		return errors.New(name + " is not valid UTF-8")
	}
	return nil
}

// Values wants names and values of a query or a form in valid UTF-8.
func Values(name string, v url.Values) error {
	for key, values := range v {
		if !utf8.ValidString(key) || !utf8.ValidString(strings.Join(values, "&")) {
			return errors.New(name + " is not valid UTF-8")
		}
	}
	return nil
}

// Given is [Visible] for an identifier that must be given.
func Given(name, v string) error {
	if v == "" {
		return errors.New(name + " is empty")
	}
	return Visible(name, v)
}

// Text refuses invalid UTF-8 and control characters.
func Text(name, v string) error {
	if err := UTF8(name, v); err != nil {
		return err
	}
	for _, r := range v {
		if control(r) {
			return errors.New(name + " holds a control character")
		}
	}
	return nil
}

// control covers the C0 and C1 controls and what turns the direction of a text
// or ends a line without being one of them.
func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Digits wants the code of a list, which the interface sends as digits. "" is none.
func Digits(name, v string) error {
	if len(v) > 18 || strings.Trim(v, "0123456789") != "" {
		return errors.New(name + " is not a numeric code")
	}
	return nil
}

// Country wants two letters. "" is none.
func Country(name, v string) error {
	if v != "" && (len(v) != 2 || !letters(v)) {
		return errors.New(name + " is not a country code of two letters")
	}
	return nil
}

// Currency wants three to ten letters or digits, as currency codes have. "" is none.
func Currency(name, v string) error {
	if v != "" && (len(v) < 3 || len(v) > 10 || strings.ContainsFunc(v, func(r rune) bool { return !letterOrDigit(r) })) {
		return errors.New(name + " is not a currency code")
	}
	return nil
}

func letters(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' })
}

func letterOrDigit(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// Filename wants the plain name of a file, which goes into a part's header.
func Filename(name, v string) error {
	switch {
	case v == "":
		return errors.New(name + " is empty")
	case len(v) > 255:
		return errors.New(name + " is longer than 255 bytes")
	case v == "." || v == ".." || strings.ContainsAny(v, `/\`):
		return errors.New(name + " is a path, not a file name")
	case strings.Contains(v, `"`):
		return errors.New(name + " holds a quotation mark")
	}
	return Text(name, v)
}

// ContentType wants a media type like image/png.
func ContentType(name, v string) error {
	media, _, err := mime.ParseMediaType(v)
	if err != nil || !strings.Contains(media, "/") || !visible(v, " ") {
		return errors.New(name + " is not a media type like image/png")
	}
	return nil
}

// Key wants a key of visible ASCII, so that it fits into a header as it is.
func Key(v string) error {
	if v == "" {
		return errors.New("the API key is empty")
	}
	if !visible(v, "") {
		return errors.New("the API key holds a character that is not visible ASCII")
	}
	return nil
}

// Product wants a product name for the User-Agent header.
func Product(v string) error {
	if strings.TrimSpace(v) == "" {
		return errors.New("the product is empty")
	}
	if !visible(v, " ") {
		return errors.New("the product is not visible ASCII")
	}
	return nil
}

func visible(v, also string) bool {
	for _, r := range v {
		if (r <= ' ' || r > '~') && !strings.ContainsRune(also, r) {
			return false
		}
	}
	return true
}

// refused are the headers that the client sets itself, that would make
// net/http send a request twice, that concern one hop only, that ask for a part of
// the response, or that have a server take the request for another one: a read
// that is retried must stay a read.
var refused = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true,
	"Idempotency-Key": true, "X-Idempotency-Key": true,
	"Host": true, "Content-Type": true, "Content-Length": true, "Content-Encoding": true,
	"Accept-Encoding": true, "Connection": true, "Keep-Alive": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
	"Range": true, "If-Range": true,
	"X-Http-Method-Override": true, "X-Http-Method": true, "X-Method-Override": true,
	"Http-Method-Override": true, "Http-Method": true, "Method-Override": true,
	"X-Method": true, "X-Original-Method": true, "X-Forwarded-Method": true,
	"X-Original-Url": true, "X-Rewrite-Url": true,
}

// seenAs is the name that a server knows a header by: those that follow CGI take
// every other character than a letter or a digit for the same.
func seenAs(name string) string {
	return http.CanonicalHeaderKey(strings.Map(func(r rune) rune {
		if letterOrDigit(r) {
			return r
		}
		return '-'
	}, name))
}

// Header wants a header that a caller may add to a request.
func Header(name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !token(r) }) {
		return errors.New("the header's name is not a token")
	}
	if refused[seenAs(name)] {
		return errors.New("the header is not a caller's to set")
	}
	if !visible(value, " \t") {
		return errors.New("the header's value is not visible ASCII")
	}
	return nil
}

func token(r rune) bool { return letterOrDigit(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r) }

// Path wants a path below the base URL, and nothing but a path.
func Path(v string) error {
	switch {
	case !strings.HasPrefix(v, "/") || strings.HasPrefix(v, "//"):
		return errors.New(`Path does not begin with one "/"`)
	case strings.ContainsAny(v, `?#\%`):
		return errors.New("Path holds a query, a fragment, a backslash or an escape")
	case leadsElsewhere(v):
		return errors.New("Path leads elsewhere by dots")
	case strings.ContainsAny(v, " \u00a0"):
		return errors.New("Path holds a space")
	}
	return Text("Path", v)
}

// leadsElsewhere finds the segments . and .., also with parameters: some services
// take "..;x" for "..".
func leadsElsewhere(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

// BaseURL wants the address that all paths are relative to, over https, or
// over http where the host is this machine or insecure allows it.
func BaseURL(v string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(v)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("the base URL is not like https://host/api/v1")
	case u.User != nil:
		return nil, errors.New("the base URL holds a user name: the key is a parameter of its own")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(v, "#"):
		return nil, errors.New("the base URL holds a query or a fragment")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return !letterOrDigit(r) && !strings.ContainsRune("-._:[]%", r) }):
		// net/http would ask for another host: it replaces what is not UTF-8, and
		// drops what does not show.
		return nil, errors.New("the base URL's host is not plain ASCII: write a name in another script as xn--")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("the base URL is not https")
	case u.Scheme == "http" && !insecure && !loopback(u.Hostname()):
		return nil, errors.New("the base URL is plain http, which would send the key in the clear: use https, or WithInsecureHTTP for a host that you trust")
	}
	// An escape that need not be one, as in %2f, would become another path.
	if strings.Contains(u.RawPath, "%") {
		return nil, errors.New("the base URL's path is not a plain one")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	if u.Path == "" {
		return u, nil
	}
	if err := Path(u.Path); err != nil {
		return nil, errors.New("the base URL's path is not a plain one")
	}
	return u, nil
}
