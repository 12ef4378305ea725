// Package check validates parameters before they are sent. Its errors name the
// parameter and what is wrong with it, and never contain its value.
package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// How long a call may take, and how late the service may execute it, if nobody says otherwise: a payout service and a
// journal must agree with the client.
const (
	DefaultTimeout       = 30 * time.Second
	DefaultLateExecution = 10 * time.Minute
)

// maxID bounds identifiers: anything longer is a mistake.
const maxID = 128

// Given is [Visible] for an identifier that is required.
func Given(name, v string) error {
	if v == "" {
		return errors.New(name + " is empty")
	}
	return Visible(name, v)
}

// UUID accepts the usual form of 36 characters, in any letter case.
func UUID(name, v string) error {
	if v == "" {
		return errors.New(name + " is empty")
	}
	// Parse also accepts braces, a URN prefix and bare digits; services do not.
	if id, err := uuid.Parse(v); err != nil || len(v) != 36 || id == uuid.Nil {
		return errors.New(name + " must be a UUID of 36 characters that is not all zeros")
	}
	return nil
}

// Visible accepts an identifier of any form without white space at its ends or invisible
// characters, so that no two look the same. "" is accepted.
func Visible(name, v string) error {
	if v != strings.TrimSpace(v) {
		return errors.New(name + " begins or ends with white space")
	}
	if len(v) > maxID {
		return errors.New(name + " is longer than 128 bytes")
	}
	if err := Text(name, v); err != nil {
		return err
	}
	if strings.ContainsFunc(v, hidden) {
		return errors.New(name + " contains an invisible character")
	}
	return nil
}

func hidden(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Cleaned returns the part of a service's identifier that [Visible] accepts: id
// itself, or a shorter copy. The rest is invisible, and a database may refuse it.
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

// UTF8 refuses invalid UTF-8, which would arrive as another string.
func UTF8(name, v string) error {
	if !utf8.ValidString(v) {
		return errors.New(name + " is not valid UTF-8")
	}
	return nil
}

// Note accepts lines of text that every database can store.
func Note(name, v string) error {
	if strings.Contains(v, "\x00") {
		return errors.New(name + " contains a NUL character")
	}
	return UTF8(name, v)
}

// Values requires valid UTF-8 in the names and values of a query or a form.
func Values(name string, v url.Values) error {
	for key, values := range v {
		if !utf8.ValidString(key) || !utf8.ValidString(strings.Join(values, "&")) {
			return errors.New(name + " is not valid UTF-8")
		}
	}
	return nil
}

// Text refuses invalid UTF-8 and control characters.
func Text(name, v string) error {
	if err := UTF8(name, v); err != nil {
		return err
	}
	for _, r := range v {
		if control(r) {
			return errors.New(name + " contains a control character")
		}
	}
	return nil
}

// control reports whether r is a C0 or C1 control, changes the direction of text, or
// ends a line.
func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Digits accepts a numeric code, which the API sends as a string of digits, and "".
func Digits(name, v string) error {
	if len(v) > 18 || strings.Trim(v, "0123456789") != "" {
		return errors.New(name + " must be a code of at most 18 digits")
	}
	return nil
}

// Country accepts two letters, and "".
func Country(name, v string) error {
	if v != "" && (len(v) != 2 || !letters(v)) {
		return errors.New(name + " must be a two-letter country code")
	}
	return nil
}

// Currency accepts three to ten letters or digits, as currency codes have, and "".
func Currency(name, v string) error {
	other := func(r rune) bool { return !letterOrDigit(r) }
	if v != "" && (len(v) < 3 || len(v) > 10 || strings.ContainsFunc(v, other)) {
		return errors.New(name + " must be a currency code of 3 to 10 letters or digits, as in EUR")
	}
	return nil
}

func letters(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' })
}

func letterOrDigit(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// Filename accepts the plain name of a file, which is sent in a part's header.
func Filename(name, v string) error {
	switch {
	case v == "":
		return errors.New(name + " is empty")
	case len(v) > 255:
		return errors.New(name + " is longer than 255 bytes")
	case v == "." || v == ".." || strings.ContainsAny(v, `/\`):
		return errors.New(name + " is a path, not a file name")
	case strings.Contains(v, `"`):
		return errors.New(name + " contains a quotation mark")
	}
	return Text(name, v)
}

// ContentType accepts a media type like image/png.
func ContentType(name, v string) error {
	media, _, err := mime.ParseMediaType(v)
	if err != nil || !strings.Contains(media, "/") || !visible(v, " ") {
		return errors.New(name + " must be a media type like image/png")
	}
	return nil
}

// Key accepts a key of visible ASCII, which can be sent in a header unescaped.
func Key(name, v string) error {
	scheme, _, found := strings.Cut(v, " ")
	switch {
	case v == "":
		return errors.New(name + " is empty")
	case found && strings.EqualFold(scheme, "Bearer"):
		return errors.New(name + ` begins with "Bearer ", which the client adds: pass only the key`)
	case len(v) > 1 && strings.ContainsRune("\"'`", rune(v[0])) && v[0] == v[len(v)-1]:
		return errors.New(name + " is in quotation marks: pass only what is between them")
	case strings.ContainsAny(v, "\r\n"):
		return errors.New(name + " contains a line break: trim what you read from a file or a form")
	case strings.ContainsFunc(v, unicode.IsSpace):
		return errors.New(name + " contains white space: pass only the key")
	case !visible(v, ""):
		return errors.New(name + " contains a character that is not visible ASCII: copy the key again")
	}
	return nil
}

// Duration accepts zero, and what is not so short that a number was meant to be one of seconds.
func Duration(name string, d time.Duration) error {
	switch {
	case d < 0:
		return errors.New(name + " must not be negative")
	case d > 0 && d < time.Millisecond:
		return fmt.Errorf("%s: %v is less than a millisecond: write %d*time.Second for seconds", name, d, d)
	}
	return nil
}

// Product accepts a product name for the User-Agent header.
func Product(v string) error {
	if strings.TrimSpace(v) == "" {
		return errors.New("the product name is empty")
	}
	if !visible(v, " ") {
		return errors.New("the product name contains a character that is not visible ASCII")
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

// refused are the headers that the client sets itself, that would make net/http send
// a request twice, that concern one hop only, that ask for a part of the response, or
// that may make a server treat the request as another one: a read that is retried
// must stay a read.
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

// seenAs returns the name under which a server may see a header: those that follow CGI
// do not distinguish characters other than letters and digits.
func seenAs(name string) string {
	return http.CanonicalHeaderKey(strings.Map(func(r rune) rune {
		if letterOrDigit(r) {
			return r
		}
		return '-'
	}, name))
}

// Header accepts a header that a caller may add to a request.
func Header(name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !token(r) }) {
		return errors.New("the header name is not a token")
	}
	if seen := seenAs(name); refused[seen] {
		return errors.New("header " + seen + " is reserved by the client")
	}
	if !visible(value, " \t") {
		return errors.New("the header value contains a character that is not visible ASCII")
	}
	return nil
}

func token(r rune) bool { return letterOrDigit(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r) }

// Path accepts a path below the base URL, without a query or a fragment.
func Path(v string) error {
	switch {
	case !strings.HasPrefix(v, "/") || strings.HasPrefix(v, "//"):
		return errors.New(`Path must begin with one "/"`)
	case strings.ContainsAny(v, `?#\%`):
		return errors.New("Path contains a query, a fragment, a backslash or a percent escape")
	case hasDotSegment(v):
		return errors.New(`Path must not contain "." or ".." segments`)
	case strings.ContainsAny(v, " \u00a0"):
		return errors.New("Path contains a space")
	}
	return Text("Path", v)
}

// hasDotSegment reports whether a segment is "." or "..", also with parameters: some
// services treat "..;x" as "..".
func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

const likeBaseURL = ": it must be like https://host/api/v1"

// BaseURL accepts the URL that all paths are relative to: https, or http if the host
// is this machine or insecure is true.
func BaseURL(name, v string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(v)
	switch {
	case v == "":
		return nil, errors.New(name + " is empty" + likeBaseURL)
	case v != strings.TrimSpace(v):
		return nil, errors.New(name + " begins or ends with white space")
	case !strings.Contains(v, "://"):
		return nil, errors.New(name + " has no scheme" + likeBaseURL)
	case err != nil:
		return nil, errors.New(name + " is not a URL" + likeBaseURL)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New(name + " must use https")
	case u.User != nil:
		return nil, errors.New(name + " contains a user name: pass the API key to New")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(v, "#"):
		return nil, errors.New(name + " contains a query or a fragment" + likeBaseURL)
	case u.Scheme == "http" && !insecure && !loopback(u.Hostname()):
		return nil, errors.New(name + " is plain http, which would send the key in the clear: " +
			"use https, or WithInsecureHTTP for a host that you trust")
	}
	if err := cmp.Or(host(name, u), trimPath(name, u)); err != nil {
		return nil, err
	}
	return u, nil
}

func host(name string, u *url.URL) error {
	other := func(r rune) bool { return !letterOrDigit(r) && !strings.ContainsRune("-._:[]%", r) }
	switch port, err := strconv.Atoi(u.Port()); {
	case u.Hostname() == "":
		return errors.New(name + " has no host" + likeBaseURL)
	case strings.ContainsFunc(u.Host, other):
		// net/http would connect to another host: it replaces invalid UTF-8, and drops
		// invisible characters.
		return errors.New(name + "'s host is not ASCII: write a name in another script as xn--")
	case u.Port() != "" && (err != nil || port < 1 || port > 65535):
		return errors.New(name + "'s port must be from 1 to 65535")
	}
	return nil
}

// trimPath removes slashes from the end of the path.
func trimPath(name string, u *url.URL) error {
	// An unnecessary escape, as in %2f, would change the path.
	escaped := strings.Contains(u.RawPath, "%")
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	if escaped || u.Path != "" && Path(u.Path) != nil {
		return errors.New(name + `'s path must begin with one "/" and contain no percent escapes, ` +
			`spaces, backslashes or dot segments, as in /api/v1`)
	}
	return nil
}

// BasePath accepts a base URL under which the API can be: with another path, such as that of
// one operation, every call would be a 404. A server on this machine may be a test's.
func BasePath(name string, u *url.URL) error {
	if strings.HasSuffix(u.Path, "/api/v1") || loopback(u.Hostname()) {
		return nil
	}
	return errors.New(name + " must end in /api/v1, as in https://host/api/v1: " +
		"if a gateway rewrites paths, use WithAnyBasePath")
}

// Nil reports whether v is nil, or a nil pointer, map, function or channel in an
// interface, whose methods would panic at the first call.
func Nil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// loopback reports whether the host is this machine, without a look-up, which could
// return any address for a name.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
