package check_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/check"
)

// canary stands in every value that is refused where the rule leaves room for
// it; no error may repeat it.
const canary = "QQcanary"

// checks runs one check over values, of which those with "" are accepted.
func checks(t *testing.T, one func(string) error, want map[string]string) {
	t.Helper()
	for value, problem := range want {
		err := one(value)
		if problem == "" {
			assert.NoError(t, err, "of %q", value)
			continue
		}
		assert.EqualError(t, err, problem, "of %q", value)
		assert.NotContains(t, problem, canary)
	}
}

// named gives check the name that its errors begin with.
func named(check func(name, v string) error) func(string) error {
	return func(v string) error { return check("CardID", v) }
}

// What a caller's user may have typed into an identifier to be two headers, or to look
// like another one.
var hostileIDs = map[string]string{
	"":                             "CardID is empty",
	"a\x00b" + canary:              "CardID contains a control character",
	"\x7f" + canary:                "CardID contains a control character",
	"\r\n" + canary:                "CardID begins or ends with white space",
	"a\n" + canary:                 "CardID contains a control character",
	"\t" + canary:                  "CardID begins or ends with white space",
	"\u0085" + canary:              "CardID begins or ends with white space",
	"\u009f" + canary:              "CardID contains a control character",
	"\u2028" + canary:              "CardID begins or ends with white space",
	"\u2029" + canary:              "CardID begins or ends with white space",
	"\u202e" + canary:              "CardID contains a control character",
	"\u202a" + canary:              "CardID contains a control character",
	"\u2066" + canary:              "CardID contains a control character",
	"\u2069" + canary:              "CardID contains a control character",
	"\u200b" + canary:              "CardID contains an invisible character",
	canary + "\ufeff":              "CardID contains an invisible character",
	"a\u00adb" + canary:            "CardID contains an invisible character",
	"\u200f" + canary:              "CardID contains an invisible character",
	canary + "\U000e0041":          "CardID contains an invisible character",
	canary + "\ufe0f":              "CardID contains an invisible character",
	"\u3164" + canary:              "CardID contains an invisible character",
	"a\u2065b" + canary:            "CardID contains an invisible character",
	"a\u2800b" + canary:            "CardID contains an invisible character",
	"\xff" + canary:                "CardID is not valid UTF-8",
	"a\xc0\xaf" + canary:           "CardID is not valid UTF-8",
	"\xed\xa0\x80" + canary:        "CardID is not valid UTF-8",
	canary + "\xc3":                "CardID is not valid UTF-8",
	strings.Repeat("a", 129):       "CardID is longer than 128 bytes",
	strings.Repeat("é", 65):        "CardID is longer than 128 bytes",
	strings.Repeat("a", 1_000_000): "CardID is longer than 128 bytes",
	strings.Repeat("é", 64):        "",
	strings.Repeat("a", 128):       "",
	"...":                          "",
	"a..b":                         "",
	"c1":                           "",
	"%2e%2e":                       "", // it is escaped again wherever it is sent
	"a b":                          "",
	"a?b#c&d=e":                    "",
	"é中😀":                          "",
	"\u00a0":                       "CardID begins or ends with white space",
	" " + canary:                   "CardID begins or ends with white space",
	"a\u2028b" + canary:            "CardID contains a control character",
	"2024/0001":                    "",
	"..":                           "", // no identifier is part of a path
	"a\u2027\u202fb":               "", // neighbours of what is refused
	"~":                            "",
}

func TestUUID(t *testing.T) {
	t.Parallel()
	const problem = "CardID must be a UUID of 36 characters that is not all zeros"
	checks(t, named(check.UUID), map[string]string{
		"7d444840-9dc0-11d1-b245-5ffdce74fad2":          "",
		"7D444840-9DC0-11D1-B245-5FFDCE74FAD2":          "",
		"7d444840-9dc0-41d1-b245-5ffdce74FAD2":          "",
		"ffffffff-ffff-ffff-ffff-ffffffffffff":          "",
		"":                                              "CardID is empty",
		"00000000-0000-0000-0000-000000000000":          problem,
		"{7d444840-9dc0-11d1-b245-5ffdce74fad2}":        problem,
		"urn:uuid:7d444840-9dc0-11d1-b245-5ffdce74fad2": problem,
		"7d4448409dc011d1b2455ffdce74fad2":              problem,
		"7d444840-9dc0-11d1-b245-5ffdce74fad":           problem,
		"7d444840-9dc0-11d1-b245-5ffdce74fad2a":         problem,
		" 7d444840-9dc0-11d1-b245-5ffdce74fad":          problem,
		"7d444840-9dc0-11d1-b245-5ffdce74fa\r\n":        problem,
		"7d444840-9dc0-11d1-b245-5ffdce74fadg":          problem,
		"7d4448409-dc0-11d1-b245-5ffdce74fad2":          problem,
		"7d444840_9dc0_11d1_b245_5ffdce74fad2":          problem,
		"7d444840-9dc0-11d1-b245-" + canary + "fad2":    problem,
		canary: problem,
	})
}

func TestVisible(t *testing.T) {
	t.Parallel()
	checks(t, named(check.Visible), map[string]string{
		"":                       "",
		"order 7":                "",
		"a/b":                    "",
		strings.Repeat("a", 128): "",
		" " + canary:             "CardID begins or ends with white space",
		canary + " ":             "CardID begins or ends with white space",
		canary + "\u00a0":        "CardID begins or ends with white space",
		canary + "\n":            "CardID begins or ends with white space",
		" ":                      "CardID begins or ends with white space",
		strings.Repeat("a", 129): "CardID is longer than 128 bytes",
		canary + "\x00":          "CardID contains a control character",
		"a\n" + canary:           "CardID contains a control character",
		canary + "\u202e":        "CardID contains a control character",
		canary + "\u200b":        "CardID contains an invisible character",
		"\ufeff" + canary:        "CardID contains an invisible character",
		"10\u00ad01" + canary:    "CardID contains an invisible character",
		"\u2060" + canary:        "CardID contains an invisible character",
		canary + "\xff":          "CardID is not valid UTF-8",
	})
}

func TestGiven(t *testing.T) {
	t.Parallel()
	checks(t, named(check.Given), hostileIDs)
}

func TestText(t *testing.T) {
	t.Parallel()
	checks(t, named(check.Text), map[string]string{
		"":                    "",
		" ":                   "",
		"é中😀 / \\ \"":         "",
		"\u00a0":              "",
		"\ufffd":              "",
		"\u200d\ufeff\u00ad":  "", // of a name in some scripts it is a part
		canary + "\x1f":       "CardID contains a control character",
		canary + "\u0080":     "CardID contains a control character",
		canary + "\xf0\x9f":   "CardID is not valid UTF-8",
		canary + "\x00\xff":   "CardID is not valid UTF-8",
		canary + "\u2067":     "CardID contains a control character",
		canary + "\u202d end": "CardID contains a control character",
	})
}

func TestUTF8(t *testing.T) {
	t.Parallel()
	checks(t, named(check.UTF8), map[string]string{
		"":                          "",
		"line\nfeed":                "",
		"é\x00":                     "",
		canary + "\xff":             "CardID is not valid UTF-8",
		canary + "\xed\xb0\x80":     "CardID is not valid UTF-8",
		"\xc3" + canary:             "CardID is not valid UTF-8",
		canary + "\xf4\x90\x80\x80": "CardID is not valid UTF-8",
	})
}

func TestValues(t *testing.T) {
	t.Parallel()
	require.NoError(t, check.Values("Query", nil))
	require.NoError(t, check.Values("Query", url.Values{"": {""}, "a\x00": {"b\r\n", "\ufffd"}}))
	for _, v := range []url.Values{
		{"a" + canary + "\xff": {"b"}},
		{"a": {"b", canary + "\xc3"}},
		{"a": {"\xc3", "\xa9"}}, // which are a letter together
		{"a\xed\xa0\x80": nil},
	} {
		require.EqualError(t, check.Values("Query", v), "Query is not valid UTF-8")
	}
}

func TestDigits(t *testing.T) {
	t.Parallel()
	const problem = "CardID must be a code of at most 18 digits"
	checks(t, named(check.Digits), map[string]string{
		"":                      "",
		"0":                     "",
		"007":                   "",
		strings.Repeat("9", 18): "",
		strings.Repeat("9", 19): problem,
		"1" + canary + "1":      problem,
		canary:                  problem,
		"-1":                    problem,
		"+1":                    problem,
		"1.0":                   problem,
		"1 ":                    problem,
		"1\n":                   problem,
		"1\x00":                 problem,
		"\u0661":                problem,
		"\uff11":                problem,
		"\xff":                  problem,
	})
}

func TestCountry(t *testing.T) {
	t.Parallel()
	const problem = "CardID must be a two-letter country code"
	checks(t, named(check.Country), map[string]string{
		"": "", "PT": "", "pt": "", "Zz": "", "aA": "",
		"P": problem, "PRT": problem, "P1": problem, "P ": problem, "é": problem, "@A": problem, "[z": problem,
		"`a": problem, "{a": problem, "P\x00": problem, "\xff\xff": problem, "\u212a": problem, canary: problem,
	})
}

func TestCurrency(t *testing.T) {
	t.Parallel()
	const problem = "CardID must be a currency code of 3 to 10 letters or digits, as in EUR"
	checks(t, named(check.Currency), map[string]string{
		"": "", "USD": "", "usd": "", "USDT": "", "1INCH": "", "ABCDEFGHIJ": "",
		"US": problem, "ABCDEFGHIJK": problem, "US ": problem, "U-D": problem, "US\n": problem, "é1": problem,
		"US\u212a": problem, "\xff\xff\xff": problem, canary + canary: problem,
	})
}

// What is accepted stands between quotation marks in a part's header.
var hostileFilenames = map[string]string{
	"a.png":                                 "",
	"id card (1).JPEG":                      "",
	"паспорт.jpg":                           "",
	"身分證.png":                               "",
	"a;b=c.png":                             "",
	"100%.png":                              "",
	".png":                                  "",
	"...":                                   "",
	"a..png":                                "",
	"-rf":                                   "",
	strings.Repeat("a", 255):                "",
	strings.Repeat("a", 256):                "Filename is longer than 255 bytes",
	"":                                      "Filename is empty",
	".":                                     "Filename is a path, not a file name",
	"..":                                    "Filename is a path, not a file name",
	"../" + canary:                          "Filename is a path, not a file name",
	"/etc/" + canary:                        "Filename is a path, not a file name",
	`C:\` + canary:                          "Filename is a path, not a file name",
	`..\..\` + canary:                       "Filename is a path, not a file name",
	canary + "/":                            "Filename is a path, not a file name",
	`a"; filename="` + canary:               "Filename contains a quotation mark",
	`"`:                                     "Filename contains a quotation mark",
	"a.png\r\nX-Evil: " + canary:            "Filename contains a control character",
	"a.png\n" + canary:                      "Filename contains a control character",
	"a.png\r" + canary:                      "Filename contains a control character",
	"a.png\x00.exe" + canary:                "Filename contains a control character",
	"\t" + canary:                           "Filename contains a control character",
	canary + "\u202egnp.exe":                "Filename contains a control character",
	canary + "\u2028":                       "Filename contains a control character",
	canary + "\u0085":                       "Filename contains a control character",
	canary + "\xff.png":                     "Filename is not valid UTF-8",
	canary + "\xe5\x98\x8a\xe5\x98\x8d\xe5": "Filename is not valid UTF-8",
}

func TestFilename(t *testing.T) {
	t.Parallel()
	checks(t, func(v string) error { return check.Filename("Filename", v) }, hostileFilenames)
}

func TestContentType(t *testing.T) {
	t.Parallel()
	const problem = "ContentType must be a media type like image/png"
	checks(t, func(v string) error { return check.ContentType("ContentType", v) }, map[string]string{
		"image/png":                              "",
		"IMAGE/PNG":                              "",
		"application/vnd.api+json":               "",
		`text/plain; charset=utf-8`:              "",
		`text/plain; charset="utf-8"`:            "",
		"":                                       problem,
		" ":                                      problem,
		"image":                                  problem,
		"image/":                                 problem,
		"/png":                                   problem,
		"image/png/x":                            problem,
		"image png":                              problem,
		"image/png; " + canary:                   problem,
		"image/png; charset":                     problem,
		"image/png; a=1; a=2":                    problem,
		"image/png\r\nX-Evil: " + canary:         problem,
		"image/png;\r\n a=" + canary:             problem,
		"image/png\n\n" + canary:                 problem,
		"image/png; a=\"\r\n" + canary + "\"":    problem,
		"image/png; a=\"\x00\"":                  problem,
		"image/png;\ta=b":                        problem,
		"image/png\t":                            problem,
		"image/é":                                problem,
		"image/png; a=\"é\"":                     problem,
		"image/\xff":                             problem,
		"im@ge/png":                              problem,
		"image/png, image/gif":                   problem,
		"multipart/form-data; boundary=\"\r\n\"": problem,
	})
}

func TestKey(t *testing.T) {
	t.Parallel()
	const (
		lineBreak = "CARDWIRE_API_KEY contains a line break: trim what was read from a file or a form"
		space     = "CARDWIRE_API_KEY contains white space: copy the key again, without what surrounds it"
		hidden    = "CARDWIRE_API_KEY contains a character that is not visible ASCII: copy the key again"
		scheme    = `CARDWIRE_API_KEY begins with "Bearer ", which the client adds: pass only the key`
	)
	checks(t, func(v string) error { return check.Key("CARDWIRE_API_KEY", v) }, map[string]string{
		"sk_live_abc-123~!":       "",
		"!":                       "",
		"Bearer":                  "",
		"Bearer-" + canary:        "",
		"":                        "CARDWIRE_API_KEY is empty",
		"Bearer " + canary:        scheme,
		"bearer " + canary + "\n": scheme,
		" " + canary:              space,
		" Bearer " + canary:       space,
		canary + " ":              space,
		canary + "\u00a0":         space,
		canary + "\t" + canary:    space,
		canary + "\n":             lineBreak,
		canary + "\r\nX: y":       lineBreak,
		canary + "\x00":           hidden,
		canary + "\x7f":           hidden,
		canary + "é":              hidden,
		canary + "\u200b":         hidden,
		"\ufeff" + canary:         hidden,
		canary + "\xff":           hidden,
	})
}

func TestProduct(t *testing.T) {
	t.Parallel()
	const problem = "the product name contains a character that is not visible ASCII"
	checks(t, check.Product, map[string]string{
		"shop/1.0":            "",
		"shop/1.0 (linux)":    "",
		"":                    "the product name is empty",
		"   ":                 "the product name is empty",
		canary + "\r\nX: y":   problem,
		canary + "\n":         problem,
		canary + "\t":         problem,
		canary + "é":          problem,
		canary + "\x00":       problem,
		canary + "\x7f":       problem,
		canary + "\xff":       problem,
		"\u00a0" + canary:     problem,
		"\u200b":              problem,
		canary + "/1.0\u2028": problem,
	})
}

// inCases writes a header's name in the letter cases that HTTP takes for one.
func inCases(name string) []string {
	return []string{name, strings.ToLower(name), strings.ToUpper(name)}
}

func TestHeaderNamesThatAreNotACallers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "Cookie", "Idempotency-Key", "X-Idempotency-Key", "Host",
		"Content-Type", "Content-Length", "Content-Encoding", "Accept-Encoding", "Connection", "Keep-Alive",
		"Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Range", "If-Range",
		"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "HTTP-Method-Override", "HTTP-Method",
		"Method-Override", "X-Method", "X-Original-Method", "X-Forwarded-Method", "X-Original-URL", "X-Rewrite-URL",
	} {
		want := "header " + http.CanonicalHeaderKey(name) + " is reserved by the client"
		for _, hyphen := range []string{"-", "_", "."} {
			for _, name := range inCases(strings.ReplaceAll(name, "-", hyphen)) {
				assert.EqualError(t, check.Header(name, canary), want, name)
			}
		}
	}
}

func TestHeaderNames(t *testing.T) {
	t.Parallel()
	const problem = "the header name is not a token"
	checks(t, func(name string) error { return check.Header(name, "v") }, map[string]string{
		"X-Request-Id":              "",
		"x-tenant":                  "",
		"Accept-Language":           "",
		"!#$%&'*+-.^_`|~9aZ":        "",
		"":                          problem,
		canary + " ":                problem,
		" " + canary:                problem,
		canary + ":":                problem,
		"X: y\r\n" + canary:         problem,
		canary + "\n":               problem,
		canary + "\x00":             problem,
		canary + "\x7f":             problem,
		"(" + canary + ")":          problem,
		"a/b" + canary:              problem,
		canary + "é":                problem,
		canary + "\xff":             problem,
		canary + "\u212a":           problem,
		"Authorization " + canary:   problem,
		"Authorization:" + canary:   problem,
		"Content-Length\t" + canary: problem,
	})
}

func TestHeaderValues(t *testing.T) {
	t.Parallel()
	const problem = "the header value contains a character that is not visible ASCII"
	checks(t, func(v string) error { return check.Header("X-Tenant", v) }, map[string]string{
		"":                             "",
		"a b\tc":                       "",
		"~!@#":                         "",
		canary + "\r\nAuthorization: ": problem,
		canary + "\n":                  problem,
		canary + "\r":                  problem,
		canary + "\x00":                problem,
		canary + "\x7f":                problem,
		canary + "é":                   problem,
		canary + "\xff":                problem,
		canary + "\u560a":              problem, // whose low byte is a line feed
	})
}

func TestPath(t *testing.T) {
	t.Parallel()
	const (
		begin  = `Path must begin with one "/"`
		other  = "Path contains a query, a fragment, a backslash or a percent escape"
		dots   = `Path must not contain "." or ".." segments`
		space  = "Path contains a space"
		hidden = "Path contains a control character"
	)
	checks(t, check.Path, map[string]string{
		"/":                    "",
		"/cards/info":          "",
		"/cards/":              "",
		"/a.b/..c/d../...":     "",
		"/a:b;c=d,e@f":         "",
		"/a..;b/...;c/;..":     "",
		"/é":                   "",
		"":                     begin,
		canary:                 begin,
		"cards":                begin,
		"//" + canary:          begin,
		"https://" + canary:    begin,
		`\` + canary:           begin,
		" /" + canary:          begin,
		"/a?" + canary:         other,
		"/a#" + canary:         other,
		`/\` + canary:          other,
		`/a\..\` + canary:      other,
		"/%2e%2e/" + canary:    other,
		"/a%2f" + canary:       other,
		"/%":                   other,
		"/..;/" + canary:       dots,
		"/a/..;b=c/" + canary:  dots,
		"/.;/" + canary:        dots,
		"/..":                  dots,
		"/.":                   dots,
		"/../" + canary:        dots,
		"/a/../" + canary:      dots,
		"/" + canary + "/..":   dots,
		"/" + canary + "/./b":  dots,
		"/" + canary + "/.":    dots,
		"/a " + canary:         space,
		"/a\u00a0" + canary:    space,
		"/a\n" + canary:        hidden,
		"/a\r\nX:" + canary:    hidden,
		"/a\x00" + canary:      hidden,
		"/a\t" + canary:        hidden,
		"/a\u2028" + canary:    hidden,
		"/a\xff" + canary:      "Path is not valid UTF-8",
		"/\xc0\xae./" + canary: "Path is not valid UTF-8",
	})
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://api.example.com/api/v1":    "https://api.example.com/api/v1",
		"https://api.example.com/api/v1///": "https://api.example.com/api/v1",
		"https://api.example.com/":          "https://api.example.com",
		"https://api.example.com:8443/api":  "https://api.example.com:8443/api",
		"https://api.example.com:65535":     "https://api.example.com:65535",
		"HTTPS://api.example.com/api":       "https://api.example.com/api",
		"https://192.0.2.1/api":             "https://192.0.2.1/api",
		"https://[2001:db8::1]:8443":        "https://[2001:db8::1]:8443",
		"https://[fe80::1%25eth0]:8443/v1":  "https://[fe80::1%25eth0]:8443/v1",
		"https://h/%C3%A9":                  "https://h/%C3%A9",
		"https://h/é":                       "https://h/%C3%A9",
		"https://xn--r8jz45g.example.com":   "https://xn--r8jz45g.example.com",
		"https://api_1.example.com./v1":     "https://api_1.example.com./v1",
		"http://127.0.0.1:8080/api":         "http://127.0.0.1:8080/api",
		"http://127.255.0.9":                "http://127.255.0.9",
		"http://[::1]:8080/api":             "http://[::1]:8080/api",
		"http://localhost:8080":             "http://localhost:8080",
		"http://LOCALHOST":                  "http://LOCALHOST",
	} {
		u, err := check.BaseURL("the base URL", text, false)
		require.NoError(t, err, "of %q", text)
		assert.Equal(t, want, u.String())
	}
}

const (
	inClear = " is plain http, which would send the key in the clear: " +
		"use https, or WithInsecureHTTP for a host that you trust"
	hasUser = " contains a user name: pass the API key to New"
)

func TestBaseURLRefuses(t *testing.T) {
	t.Parallel()
	const (
		like     = ": it must be like https://host/api/v1"
		notPlain = `'s path must begin with one "/" and contain no percent escapes, ` +
			`spaces, backslashes or dot segments, as in /api/v1`
	)
	for problem, texts := range map[string][]string{
		" is empty" + like:                 {""},
		" begins or ends with white space": {" https://h/~", "https://h/~\n", " "},
		"'s port must be from 1 to 65535":  {"https://h:65536/~", "https://h:0", "https://[::1]:99999999999999999999/"},
		" contains a query or a fragment":  {"https://h/?a=~", "https://h?", "https://h/#~", "https://h#"},
		" must use https":                  {"ftp://h/~", "file://h/~", "ws://h", "unix://h", "mailto:a://b"},
		" has no host" + like:              {"https:///~", "https://:443/~", "https:a://b/~"},
		hasUser:                            {"https://me@h/~", "https://me:~@h/", "https://@h", "https://:@h"},
		" has no scheme" + like: {
			"~", "/api/v1", "//h/~", "h/~", "h:443/~", "https:", "https:h", "https:/h", "mailto:~@example.com",
		},
		" is not a URL" + like: {
			"https://h:port/~", "https://[::1/~", "https://h o/~", "https://h%41/~", "https://h/a%zz~", "https://h/\n~",
			"https://h/\x7f~",
		},
		"'s host is not ASCII: write a name in another script as xn--": {
			"https://~\xff.example.com", "https://~\u200b.example.com", "https://~\u202e.example.com",
			"https://~\uff0f.example.com", "https://\u00e9.example.com/~", "https://%C3%A9.example.com/~",
			"https://a\u00a0b/~", `https://a"b/~`, "https://a;b/~", "https://a,b/~", "https://[::1%25\xff]/~",
		},
		inClear: {
			"http://api.example.com/~", "http://192.168.0.1", "http://10.0.0.1", "http://0.0.0.0", "http://[::]",
			"http://[2001:db8::1]", "http://127.0.0.1.example.com", "http://127.1", "http://2130706433",
			"http://0x7f.0.0.1", "http://localhost.example.com", "http://notlocalhost", "http://localhost.",
			"http://shop.localhost", // resolvers ask the network for it
		},
		notPlain: {
			"https://h/../~", "https://h/a/..", "https://h/./~", "https://h//~", "https://h/%2e%2e/~",
			"https://h/%2E%2E/~", "https://h/a%2f~", "https://h/%2F~", "https://h/%61~", "https://h/%5c~",
			"https://h/%3f~", "https://h/%23~", "https://h/%25~", "https://h/%20~", "https://h/ ~", "https://h/%0a~",
			"https://h/%00~", "https://h/%ff~", `https://h/\~`, "https://h/\u2028~",
		},
	} {
		for _, text := range texts {
			text = strings.ReplaceAll(text, "~", canary)
			u, err := check.BaseURL("CARDWIRE_BASE_URL", text, false)
			assert.EqualError(t, err, "CARDWIRE_BASE_URL"+problem, "of %q", text)
			assert.Nil(t, u)
		}
	}
}

func TestBaseURLInTheClear(t *testing.T) {
	t.Parallel()
	u, err := check.BaseURL("the base URL", "http://192.168.0.1:81/api/", true)
	require.NoError(t, err)
	assert.Equal(t, "http://192.168.0.1:81/api", u.String())
	for text, problem := range map[string]string{
		"httpx://h/" + canary: " must use https", "http://user@h/" + canary: hasUser,
	} {
		_, err := check.BaseURL("the base URL", text, true)
		assert.EqualError(t, err, "the base URL"+problem)
	}
}

func TestBasePath(t *testing.T) {
	t.Parallel()
	for text, fine := range map[string]bool{
		"https://h/api/v1": true, "https://h/shop/api/v1": true,
		"http://localhost:80/v1": true, "https://127.0.0.1": true, "http://[::1]/api/v1/cards": true,
		"https://h": false, "https://h/v1": false, "https://h/api/v1/cards": false, "https://h/API/V1": false,
		"https://h/xapi/v1": false, "https://h/api/v10": false,
	} {
		u, err := check.BaseURL("the base URL", text, false)
		require.NoError(t, err)
		if err = check.BasePath("the base URL", u); fine {
			assert.NoError(t, err, text)
			continue
		}
		assert.EqualError(t, err, "the base URL must end in /api/v1, as in https://host/api/v1: "+
			"if a gateway rewrites paths, use WithAnyBasePath", text)
	}
}
