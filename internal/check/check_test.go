package check_test

import (
	"maps"
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

// checks runs one check over values by the problem that each has; "": none.
func checks(t *testing.T, one func(string) error, want map[string][]string) {
	t.Helper()
	for problem, values := range want {
		assert.NotContains(t, problem, canary)
		for _, value := range values {
			if problem == "" {
				assert.NoError(t, one(value), "of %q", value)
			} else {
				assert.EqualError(t, one(value), problem, "of %q", value)
			}
		}
	}
}

// named gives check the name that its errors begin with.
func named(check func(name, v string) error) func(string) error {
	return func(v string) error { return check("CardID", v) }
}

// What a caller's user may have typed into an identifier to be two headers, or to look
// like another one.
var hostileIDs = map[string][]string{
	"CardID is empty": {""},
	"CardID contains a control character": {
		"a\x00b" + canary, "\x7f" + canary, "a\n" + canary, "\u009f" + canary, "\u202e" + canary, "\u202a" + canary,
		"\u2066" + canary, "\u2069" + canary, "a\u2028b" + canary, canary + "\x1f", canary + "\u0080",
	},
	"CardID begins or ends with white space": {
		"\r\n" + canary, "\t" + canary, "\u0085" + canary, "\u2028" + canary, "\u2029" + canary, "\u00a0", " " + canary,
		canary + " ", canary + "\u00a0", canary + "\n", " ",
	},
	"CardID contains an invisible character": {
		"\u200b" + canary, canary + "\ufeff", "a\u00adb" + canary, "\u200f" + canary, canary + "\U000e0041",
		canary + "\ufe0f", "\u3164" + canary, "a\u2065b" + canary, "a\u2800b" + canary, canary + "\u200b",
		"\ufeff" + canary, "10\u00ad01" + canary, "\u2060" + canary,
	},
	"CardID is not valid UTF-8": {
		"\xff" + canary, "a\xc0\xaf" + canary, "\xed\xa0\x80" + canary, canary + "\xc3", canary + "\xff",
	},
	"CardID is longer than 128 bytes": {
		strings.Repeat("a", 129), strings.Repeat("é", 65), strings.Repeat("a", 1_000_000),
	},
	// No identifier is part of a path, and each is escaped wherever it is sent.
	"": {
		strings.Repeat("é", 64), strings.Repeat("a", 128), "...", "a..b", "c1", "%2e%2e", "a b", "a?b#c&d=e",
		"é中😀",
		"2024/0001", "..", "~", "a\u2027\u202fb", // the neighbors of what is refused
	},
}

func TestUUID(t *testing.T) {
	t.Parallel()
	const problem = "CardID must be a UUID of 36 characters that is not all zeros"
	checks(t, named(check.UUID), map[string][]string{
		"": {
			"7d444840-9dc0-11d1-b245-5ffdce74fad2", "7D444840-9DC0-11D1-B245-5FFDCE74FAD2",
			"7d444840-9dc0-41d1-b245-5ffdce74FAD2", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		},
		"CardID is empty": {""},
		problem: {
			"00000000-0000-0000-0000-000000000000", "{7d444840-9dc0-11d1-b245-5ffdce74fad2}",
			"urn:uuid:7d444840-9dc0-11d1-b245-5ffdce74fad2", "7d4448409dc011d1b2455ffdce74fad2",
			"7d444840-9dc0-11d1-b245-5ffdce74fad", "7d444840-9dc0-11d1-b245-5ffdce74fad2a",
			" 7d444840-9dc0-11d1-b245-5ffdce74fad", "7d444840-9dc0-11d1-b245-5ffdce74fa\r\n",
			"7d444840-9dc0-11d1-b245-5ffdce74fadg", "7d4448409-dc0-11d1-b245-5ffdce74fad2",
			"7d444840_9dc0_11d1_b245_5ffdce74fad2", "7d444840-9dc0-11d1-b245-" + canary + "fad2", canary,
		},
	})
}

// An identifier that is required is one that is visible, and not empty.
func TestGivenAndVisible(t *testing.T) {
	t.Parallel()
	checks(t, named(check.Given), hostileIDs)
	visible := maps.Clone(hostileIDs)
	delete(visible, "CardID is empty")
	checks(t, named(check.Visible), visible)
	assert.NoError(t, check.Visible("CardID", ""))
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
	checks(t, named(check.Digits), map[string][]string{
		"": {"", "0", "007", strings.Repeat("9", 18)},
		problem: {
			strings.Repeat("9", 19), "1" + canary + "1", canary, "-1", "+1", "1.0", "1 ", "1\n", "1\x00", "\u0661",
			"\uff11", "\xff",
		},
	})
}

func TestCountry(t *testing.T) {
	t.Parallel()
	const problem = "CardID must be a two-letter country code"
	checks(t, named(check.Country), map[string][]string{
		"":      {"", "PT", "pt", "Zz", "aA"},
		problem: {"P", "PRT", "P1", "P ", "é", "@A", "[z", "`a", "{a", "P\x00", "\xff\xff", "\u212a", canary},
	})
}

func TestCurrency(t *testing.T) {
	t.Parallel()
	const problem = "CardID must be a currency code of 3 to 10 letters or digits, as in EUR"
	checks(t, named(check.Currency), map[string][]string{
		"":      {"", "USD", "usd", "USDT", "1INCH", "ABCDEFGHIJ"},
		problem: {"US", "ABCDEFGHIJK", "US ", "U-D", "US\n", "é1", "US\u212a", "\xff\xff\xff", canary + canary},
	})
}

// What is accepted stands between quotation marks in a part's header.
var hostileFilenames = map[string][]string{
	"": {
		"a.png", "id card (1).JPEG", "паспорт.jpg", "身分證.png", "a;b=c.png", "100%.png", ".png", "...",
		"a..png", "-rf",
		strings.Repeat("a", 255),
	},
	"Filename is longer than 255 bytes": {strings.Repeat("a", 256)},
	"Filename is empty":                 {""},
	"Filename is a path, not a file name": {
		".", "..", "../" + canary, "/etc/" + canary, `C:\` + canary, `..\..\` + canary, canary + "/",
	},
	"Filename contains a quotation mark": {`a"; filename="` + canary, `"`},
	"Filename contains a control character": {
		"a.png\r\nX-Evil: " + canary, "a.png\n" + canary, "a.png\r" + canary, "a.png\x00.exe" + canary, "\t" + canary,
		canary + "\u202egnp.exe", canary + "\u2028", canary + "\u0085",
	},
	"Filename is not valid UTF-8": {canary + "\xff.png", canary + "\xe5\x98\x8a\xe5\x98\x8d\xe5"},
}

func TestFilename(t *testing.T) {
	t.Parallel()
	checks(t, func(v string) error { return check.Filename("Filename", v) }, hostileFilenames)
}

func TestContentType(t *testing.T) {
	t.Parallel()
	const problem = "ContentType must be a media type like image/png"
	checks(t, func(v string) error { return check.ContentType("ContentType", v) }, map[string][]string{
		"": {
			"image/png", "IMAGE/PNG", "application/vnd.api+json", `text/plain; charset=utf-8`,
			`text/plain; charset="utf-8"`,
		},
		problem: {
			"", " ", "image", "image/", "/png", "image/png/x", "image png", "image/png; " + canary,
			"image/png; charset", "image/png; a=1; a=2", "image/png\r\nX-Evil: " + canary, "image/png;\r\n a=" + canary,
			"image/png\n\n" + canary, "image/png; a=\"\r\n" + canary + "\"", "image/png; a=\"\x00\"", "image/png;\ta=b",
			"image/png\t", "image/é", "image/png; a=\"é\"", "image/\xff", "im@ge/png", "image/png, image/gif",
			"multipart/form-data; boundary=\"\r\n\"",
		},
	})
}

func TestKey(t *testing.T) {
	t.Parallel()
	const (
		lineBreak = "CARDWIRE_API_KEY contains a line break: trim what you read from a file or a form"
		space     = "CARDWIRE_API_KEY contains white space: pass only the key"
		hidden    = "CARDWIRE_API_KEY contains a character that is not visible ASCII: copy the key again"
		quoted    = "CARDWIRE_API_KEY is in quotation marks: pass only what is between them"
		scheme    = `CARDWIRE_API_KEY begins with "Bearer ", which the client adds: pass only the key`
	)
	checks(t, func(v string) error { return check.Key("CARDWIRE_API_KEY", v) }, map[string][]string{
		"CARDWIRE_API_KEY is empty": {""},

		"":        {"sk_live_abc-123~!", "!", `"`, `"a`, `"a'`, "Bearer", "Bearer-" + canary},
		scheme:    {"Bearer " + canary, "bearer " + canary + "\n"},
		space:     {" " + canary, " Bearer " + canary, canary + " ", canary + "\u00a0", canary + "\t" + canary},
		quoted:    {`"` + canary + `"`, "'" + canary + "'", "`" + canary + "`", `""`},
		lineBreak: {canary + "\n", canary + "\r\nX: y"},
		hidden: {
			canary + "\x00", canary + "\x7f", canary + "é", canary + "\u200b", "\ufeff" + canary, canary + "\xff",
		},
	})
}

func TestProduct(t *testing.T) {
	t.Parallel()
	const problem = "the product name contains a character that is not visible ASCII"
	checks(t, check.Product, map[string][]string{
		"":                          {"shop/1.0", "shop/1.0 (linux)"},
		"the product name is empty": {"", "   "},
		problem: {
			canary + "\r\nX: y", canary + "\n", canary + "\t", canary + "é", canary + "\x00", canary + "\x7f",
			canary + "\xff", "\u00a0" + canary, "\u200b", canary + "/1.0\u2028",
		},
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
	checks(t, func(name string) error { return check.Header(name, "v") }, map[string][]string{
		"": {"X-Request-Id", "x-tenant", "Accept-Language", "!#$%&'*+-.^_`|~9aZ"},
		problem: {
			"", canary + " ", " " + canary, canary + ":", "X: y\r\n" + canary, canary + "\n", canary + "\x00",
			canary + "\x7f", "(" + canary + ")", "a/b" + canary, canary + "é", canary + "\xff", canary + "\u212a",
			"Authorization " + canary, "Authorization:" + canary, "Content-Length\t" + canary,
		},
	})
}

func TestHeaderValues(t *testing.T) {
	t.Parallel()
	const problem = "the header value contains a character that is not visible ASCII"
	checks(t, func(v string) error { return check.Header("X-Tenant", v) }, map[string][]string{
		"": {"", "a b\tc", "~!@#"},
		problem: {
			canary + "\r\nAuthorization: ", canary + "\n", canary + "\r", canary + "\x00", canary + "\x7f",
			canary + "é", canary + "\xff", canary + "\u560a", // whose low byte is a line feed
		},
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
	checks(t, check.Path, map[string][]string{
		"":    {"/", "/cards/info", "/cards/", "/a.b/..c/d../...", "/a:b;c=d,e@f", "/a..;b/...;c/;..", "/é"},
		begin: {"", canary, "cards", "//" + canary, "https://" + canary, `\` + canary, " /" + canary},
		other: {
			"/a?" + canary, "/a#" + canary, `/\` + canary, `/a\..\` + canary, "/%2e%2e/" + canary, "/a%2f" + canary,
			"/%",
		},
		dots: {
			"/..;/" + canary, "/a/..;b=c/" + canary, "/.;/" + canary, "/..", "/.", "/../" + canary, "/a/../" + canary,
			"/" + canary + "/..", "/" + canary + "/./b", "/" + canary + "/.",
		},
		space:  {"/a " + canary, "/a\u00a0" + canary},
		hidden: {"/a\n" + canary, "/a\r\nX:" + canary, "/a\x00" + canary, "/a\t" + canary, "/a\u2028" + canary},

		"Path is not valid UTF-8": {"/a\xff" + canary, "/\xc0\xae./" + canary},
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

func TestBaseURLRefuses(t *testing.T) {
	t.Parallel()
	const (
		inClear = " is plain http, which would send the key in the clear: " +
			"use https, or WithInsecureHTTP for a host that you trust"
		hasUser  = " contains a user name: pass the API key to New"
		like     = ": it must be like https://host/api/v1"
		notPlain = `'s path must begin with one "/" and contain no percent escapes, ` +
			`spaces, backslashes or dot segments, as in /api/v1`
	)
	for problem, texts := range map[string][]string{
		" is empty" + like:                 {""},
		" begins or ends with white space": {" https://h/~", "https://h/~\n", " "},
		"'s port must be from 1 to 65535": {"https://h:65536/~", "https://h:0",
			"https://[::1]:99999999999999999999/"},
		" contains a query or a fragment" + like: {"https://h/?a=~", "https://h?", "https://h/#~", "https://h#"},
		" must use https":                        {"ftp://h/~", "file://h/~", "ws://h", "unix://h", "mailto:a://b"},
		" has no host" + like:                    {"https:///~", "https://:443/~", "https:a://b/~"},
		hasUser:                                  {"https://me@h/~", "https://me:~@h/", "https://@h", "https://:@h"},
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

func TestNil(t *testing.T) {
	t.Parallel()
	for _, v := range []any{nil, (*int)(nil), map[string]int(nil), (func())(nil), (chan int)(nil)} {
		assert.True(t, check.Nil(v), "%T", v)
	}
	for _, v := range []any{0, "", new(int), map[string]int{}, func() {}, struct{}{}} {
		assert.False(t, check.Nil(v), "%T", v)
	}
}
