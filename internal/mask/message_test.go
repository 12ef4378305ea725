package mask

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, msg, key, want string }{
		{"nothing to do", "no such card", "", "no such card"},
		{"empty", "", "k3y", ""},
		{"other scripts", "número inválido: 金額 ✓ 👍", "", "número inválido: 金額 ✓ 👍"},

		{"line breaks", "a\r\nb\tc", "", "a  b c"},
		{"NUL, escape and DEL", "a\x00b\x1b[31mc\x7f", "", "a b [31mc "},
		{"C1", "a\u0085b\u009bc", "", "a b c"},
		{"line and paragraph separators", "a\u2028b\u2029c", "", "a b c"},
		{"directional overrides", "a\u202ab\u202ec", "", "a b c"},
		{"directional isolates", "a\u2066b\u2069c", "", "a b c"},
		{"directional marks", "a\u200eb\u200fc\u061cd", "", "a b c d"},
		{"zero width", "a\u200bb\u2060c\ufeffd\u00ade", "", "a b c d e"},
		{"spaces of other kinds", "a\u00a0b\u3000c", "", "a b c"},
		{"private use and unassigned", "a\ue000b\U000e0041c", "", "a b c"},
		{"invalid UTF-8", "a\xffb\xc3", "", "a\ufffdb\ufffd"},

		{"11 digits", "order 12345678901 exists", "", "order 12345678901 exists"},
		{"12 digits", "order 123456789012 exists", "", "order ************ exists"},
		{"13 digits", "4111111111119", "", "*************"},
		{"16 digits", "card 4917365624401735 declined", "", "card **************** declined"},
		{"19 digits", "6304985028090561515.", "", "*******************."},
		{"20 digits", "12345678901234567890", "", "********************"},
		{"between letters", "card4917365624401735x", "", "card****************x"},
		{"two runs", "4917365624401735,4917365624401735", "", "****************,****************"},
		{"runs that are too short", "12345678901, of 12345678901", "", "12345678901, of 12345678901"},
		{"runs that may be one number", "12345678901,12345678901", "", "***********,***********"},
		{"groups", "4917 3656 2440 1735", "", "**** **** **** ****"},
		{"groups with hyphens", "(4917-3656-2440-1735)", "", "(****-****-****-****)"},
		{"groups of an American card", "3714 496353 98431", "", "**** ****** *****"},
		{"groups and an expiry", "4917 3656 2440 1735 09/28", "", "**** **** **** **** **/28"},
		{"groups separated by unprintable characters", "4917\u00a03656\n2440\x001735", "", "**** **** **** ****"},
		{"digits split by an unprintable character", "491736562\u200b4401735", "", "********* *******"},
		{"date and time", "2026-02-28 23:59:59, 20260228 100", "", "2026-02-28 23:59:59, 20260228 100"},
		{"amounts", "1 000 000 000 000", "", "1 000 000 000 000"},
		{"groups separated by two spaces", "4917  3656  2440  1735", "", "****  ****  ****  ****"},
		{"groups separated by six spaces", "4917      3656      2440      1735", "",
			"4917      3656      2440      1735"},
		{"groups separated in other ways", "4917.3656/2440_1735,4917+3656 – 24401735", "",
			"****.****/****_****,****+**** – ********"},
		{"groups in a URL", "?pan=4917%203656%202440%201735", "", "?pan=****%******%******%******"},
		{"groups separated by a letter", "4917a3656a2440a1735", "", "4917a3656a2440a1735"},
		{"a version and an address", "HTTP/1.1 10.1.20.255:8443", "", "HTTP/1.1 10.1.20.255:8443"},

		{"key", "key k3y is wrong", "k3y", "key *** is wrong"},
		{"key twice", "sk-k3y-9sk-k3y-9", "sk-k3y-9", "******"},
		{"key that overlaps itself", "aaaaaaaaa!", "aaaaaaaa", "***!"},
		{"key of a letter", "key k: ask the bank 9k 密钥k错误 k", "k",
			"key ***: ask the bank 9k 密钥***错误 ***"},
		{"key of seven letters in a longer word", "testing-keys testing", "testing", "***-keys ***"},
		{"key of eight letters in a longer word", "sandboxed", "sandboxe", "***d"},
		{"another letter case is another key", "K3Y", "k3y", "K3Y"},
		{"key among invalid UTF-8", "\xffk3y\xff", "k3y", "\ufffd***\ufffd"},
		{"key with digits at its end", "sk-123456789012!", "sk-123456789012", "***!"},
		{"key with digits within", "ab123456789012cd!", "ab123456789012cd", "***!"},
		{"key of few digits within a card number", "491736562244401735", "562", "******************"},
		{"key of digits, followed by digits", "1234567890123", "123456789012", "****"},
		{"key that the control characters split", "k\x003\x00y", "k3y", "k 3 y"},
		{"key that its own removal would make", "sk-sk-k3y-9k3y-9", "sk-k3y-9", "sk-***k3y-9"},
	} {
		assert.Equal(t, tc.want, Message(tc.msg, tc.key), tc.name)
	}
}

func TestMessageCutsAt256Bytes(t *testing.T) {
	t.Parallel()
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, tc := range []struct{ name, msg, want string }{
		{"as long as may be", a(256), a(256)},
		{"one more", a(257), a(256)},
		{"very long", a(1 << 20), a(256)},
		{"before a letter of two bytes", a(255) + "é", a(255)},
		{"after it", a(254) + "éa", a(254) + "é"},
		{"before a letter of four bytes", a(253) + "👍", a(253)},
		{"after invalid UTF-8 has grown", strings.Repeat("\xff", 100), strings.Repeat("\ufffd", 85)},
		{"within a card number", a(245) + "4917365624401735", a(245) + "***********"},
		{"within a group", a(250) + "4917 3656 2440 1735", a(250) + "**** *"},
		{"within the key", a(250) + strings.Repeat("sk-k3y-9", 3), a(250) + "******"},
		{"before the end of the key", a(254) + "sk-k3y-9", a(254) + "**"},
		{"after a key that is longer than its mask", strings.Repeat("a-key-of-18-bytes-", 100),
			strings.Repeat("a-key-of-18-bytes-", 15)[:256]},
	} {
		assert.Equal(t, tc.want, Message(tc.msg, "sk-k3y-9"), tc.name)
	}
	const long = "a-key-of-18-bytes-"
	assert.Equal(t, strings.Repeat("*", 256), Message(strings.Repeat(long, 100), long))
}

func FuzzMessage(f *testing.F) {
	for _, seed := range [][2]string{
		{"card 4917365624401735 declined", "k3y"}, {"4917 3656-2440 1735", "56"}, {"ababa", "aba"},
		{"\xff\x00\u202e" + strings.Repeat("é", 200), "e"}, {strings.Repeat("1", 300), "1"}, {"k\u200b3y", "k3y"},
		{strings.Repeat("a", 250) + "123456789012", "456"},
	} {
		f.Add(seed[0], seed[1])
	}
	run := regexp.MustCompile(`[0-9]{12}|[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}`)
	f.Fuzz(func(t *testing.T, msg, key string) {
		got := Message(msg, key)
		if len(got) > 256 {
			t.Errorf("%d bytes", len(got))
		}
		if !utf8.ValidString(got) {
			t.Errorf("not valid UTF-8: %q", got)
		}
		if run.MatchString(got) {
			t.Errorf("digits: %q", got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("unprintable characters: %q", got)
		}
		// A mask may spell a key that has asterisks; keys are visible ASCII.
		unusual := func(r rune) bool { return r <= ' ' || r > '~' || r == '*' }
		if len(key) >= minKey && !strings.ContainsFunc(key, unusual) && strings.Contains(got, key) {
			t.Errorf("the key %q: %q", key, got)
		}
	})
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		header http.Header
		want   string
	}{
		{"none", http.Header{"X-Other": {"r"}}, ""},
		{"no header", nil, ""},
		{"the first name", http.Header{"X-Request-Id": {"r1", "r2"}, "Request-Id": {"r3"}}, "r1"},
		{"the second name", http.Header{"Request-Id": {"r3"}, "X-Correlation-Id": {"r4"}}, "r3"},
		{"the third name", http.Header{"X-Correlation-Id": {"r4"}}, "r4"},
		{"an empty one", http.Header{"X-Request-Id": {""}, "Request-Id": {"r3"}}, "r3"},
		{"UUID", http.Header{"X-Request-Id": {"3f2b8c1e-9d4a-4e6f-8a7b-5c0d1e2f3a4b"}},
			"3f2b8c1e-9d4a-4e6f-8a7b-5c0d1e2f3a4b"},
		{"digits in hyphenated groups", http.Header{"X-Request-Id": {"4917-3656-2440-1735"}}, "****-****-****-****"},
		{"digits in groups too short for a card's", http.Header{"X-Request-Id": {"2026-123-4"}}, "2026-123-4"},
		{"11 digits", http.Header{"X-Request-Id": {"r12345678901"}}, "r12345678901"},
		{"12 digits", http.Header{"X-Request-Id": {"r123456789012"}}, "r************"},
		{"spaces in a card number", http.Header{"X-Request-Id": {"4917 3656 2440 1735"}}, "****************"},
		{"invisible characters", http.Header{"X-Request-Id": {"r\r\n1\x1b[0m\x00é\u202e\xff2"}}, "r1[0m2"},
		{"the client's key", http.Header{"X-Request-Id": {"r-k3y-1"}}, "r-***-1"},
		{"nothing that shows", http.Header{"X-Request-Id": {"\u202e"}, "Request-Id": {"r3"}}, "r3"},
		{"64 bytes", http.Header{"X-Request-Id": {strings.Repeat("r", 64)}}, strings.Repeat("r", 64)},
		{"65 bytes", http.Header{"X-Request-Id": {strings.Repeat("r", 65)}}, strings.Repeat("r", 64)},
		{"very long", http.Header{"X-Request-Id": {strings.Repeat("r", 1<<16)}}, strings.Repeat("r", 64)},
	} {
		assert.Equal(t, tc.want, RequestID(tc.header, "k3y"), tc.name)
	}
}

func TestHeaderLeavesOutTheKey(t *testing.T) {
	t.Parallel()
	header := http.Header{"X-Bank": {"bank", "k9"}, "X-Echo": {"a", "Bearer k"}, "X-Long": {"xsk-k3y-9x"}}
	assert.Equal(t, http.Header{"X-Bank": {"bank", "k9"}, "X-Long": {"xsk-k3y-9x"}}, Header(header, "k"))
	assert.Equal(t, http.Header{"X-Bank": {"bank", "k9"}, "X-Echo": {"a", "Bearer k"}}, Header(header, "sk-k3y-9"))
}
