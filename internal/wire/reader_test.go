package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

func skip(c *wire.Codec) { c.Skip() }

func TestHTMLInPlaceOfJSON(t *testing.T) {
	t.Parallel()
	const want = "the response is HTML, not JSON: check the base URL and any proxy"
	for _, page := range []string{"<html>", "<HTML lang=en>", " \n<!DOCTYPE html><p>4111111111111111"} {
		c := wire.NewReader([]byte(page), false)
		c.Skip()
		assert.EqualError(t, c.Err(), want, page)
		assert.True(t, c.Err().Malformed, page)
	}
	for _, other := range []string{"<", "<p>", "<?xml version=1?>", "[<html>]"} {
		assert.Equal(t, notStrict+"a value is missing", read(t, other, skip).err, other)
	}
}

func TestWholeTexts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, problem string }{
		{"object", `{"a":1}`, ""},
		{"array", `[]`, ""},
		{"a string alone", `"a"`, ""},
		{"white space around", " \t\r\n{} \t\r\n", ""},
		{"nothing", ``, "it ends too early"},
		{"white space only", " \n", "it ends too early"},
		{"byte order mark", "\ufeff{}", "a value is missing"},
		{"NUL before", "\x00{}", "it ends too early"},
		{"NUL after", "{}\x00", "bytes follow the end"},
		{"NUL within", "{\x00}", "a field name is missing"},
		{"a second text", `{}{}`, "bytes follow the end"},
		{"a bracket after", `{}}`, "bytes follow the end"},
		{"a comma after", `[],`, "bytes follow the end"},
		{"a word that goes on", `nullx`, "bytes follow the end"},
		{"a number that goes on", `1x`, "bytes follow the end"},
		{"form feed as white space", "\f{}", "a value is missing"},
		{"no-break space as white space", "\u00a0{}", "a value is missing"},
		{"a comment", `/**/{}`, "a value is missing"},
		{"a page", `<page></page>`, "a value is missing"},
		{"single quotes", `'a'`, "a value is missing"},
		{"bare name", `{a:1}`, "a field name is missing"},
		{"not a number", `NaN`, "a value is missing"},
		{"infinity", `-Infinity`, "a number is misspelled"},
		{"word in another case", `True`, "a value is missing"},
		{"colon in an array", `[1:2]`, "a comma or a closing bracket is missing"},
		{"comma for colon", `{"a",1}`, "a colon is missing"},
		{"array cut short", `[`, "it ends too early"},
		{"array cut short after an element", `[1`, "it ends too early"},
		{"array cut short after a comma", `[1,`, "it ends too early"},
		{"object cut short", `{`, "a field name is missing"},
		{"object cut short after a name", `{"a"`, "a colon is missing"},
		{"object cut short after a colon", `{"a":`, "it ends too early"},
		{"object cut short after a value", `{"a":1`, "it ends too early"},
		{"string cut short", `"a`, "it ends too early"},
		{"string cut short in an escape", `"a\`, "it ends too early"},
		{"string cut short after an escape", `"a\"`, "it ends too early"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := ""
			if test.problem != "" {
				want = notStrict + test.problem
			}
			assert.Equal(t, want, read(t, test.text, skip).err)
		})
	}
}

func TestNumbersFollowTheGrammar(t *testing.T) {
	t.Parallel()
	accepted := []string{
		"0", "-0", "1", "-1", "10", "907", "0.0", "0.10", "-0.5", "123.456", "0e0", "0E0", "1e5", "1E5", "1e+5", "1e-5",
		"1.5e05", "-0.0e-0", "1e400", "1" + strings.Repeat("0", 400),
	}
	for _, text := range accepted {
		r := read(t, text, func(c *wire.Codec) { assert.Equal(t, text, string(c.Span())) })
		plainly(t, r)
	}
	for text, problem := range map[string]string{
		"-": "a number is misspelled", "01": "a number is misspelled", "-01": "a number is misspelled", "00": "a number is misspelled",
		"1.": "a number is misspelled", "1.e5": "a number is misspelled", "-.5": "a number is misspelled", "--1": "a number is misspelled",
		"1e": "a number is misspelled", "1e+": "a number is misspelled", "1E-": "a number is misspelled", "-x": "a number is misspelled",
		"+1": "a value is missing", ".5": "a value is missing",
		"1.2.3": "bytes follow the end", "0x10": "bytes follow the end", "1_000": "bytes follow the end", "1e5.0": "bytes follow the end",
		"1,5": "bytes follow the end", "1-": "bytes follow the end", "1e5e5": "bytes follow the end", "1\u0661": "bytes follow the end",
	} {
		refused(t, notStrict+problem, read(t, text, skip))
	}
}

// Strings are read in four places, which must agree on what a string is.
func TestTexts(t *testing.T) {
	t.Parallel()
	const (
		control = "a string contains a control character"
		utf8    = "a string is not valid UTF-8"
		escape  = "a string contains an invalid escape"
		short   = "it ends too early"
	)
	for _, test := range []struct{ name, text, want, problem string }{
		{"empty", ``, "", ""},
		{"plain", `abc`, "abc", ""},
		{"delete is no control character to JSON", "\x7f", "\x7f", ""},
		{"two bytes", `é`, "é", ""},
		{"three bytes", `中`, "中", ""},
		{"four bytes", `😀`, "😀", ""},
		{"line separator", "\u2028", "\u2028", ""},
		{"short escapes", `\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t", ""},
		{"slash escaped as PHP does", `08\/2027`, "08/2027", ""},
		{"letters escaped as PHP does", `Andr\u00e9`, "André", ""},
		{"hex in both cases", `\u00eF\u00Ef`, "ïï", ""},
		{"escaped NUL", `a\u0000b`, "a\x00b", ""},
		{"escaped quote does not end it", `a\"b`, `a"b`, ""},
		{"escaped backslash before the end", `a\\`, `a\`, ""},
		{"surrogate pair", `\ud83d\ude00`, "😀", ""},
		{"surrogate pair in capitals", `\uD83D\uDE00`, "😀", ""},
		{"the highest pair", `\udbff\udfff`, "\U0010ffff", ""},
		{"the replacement character itself", `\ufffd`, "\ufffd", ""},
		{"just outside of the surrogates", `\ud7ff\ue000`, "\ud7ff\ue000", ""},
		{"escape after two bytes", `é\n`, "é\n", ""},
		{"line feed", "a\nb", "", control},
		{"tab", "\t", "", control},
		{"NUL", "\x00", "", control},
		{"the last control character", "\x1f", "", control},
		{"control character after an escape", "\\n\x01", "", control},
		{"control character after two bytes", "é\x01", "", control},
		{"escaped line feed byte", "\\\n", "", escape},
		{"lone byte", "\xff", "", utf8},
		{"cut sequence", "a\xc3", "", utf8},
		{"overlong slash", "\xc0\xaf", "", utf8},
		{"surrogate in UTF-8", "\xed\xa0\x80", "", utf8},
		{"beyond Unicode", "\xf4\x90\x80\x80", "", utf8},
		{"Latin-1", "Andr\xe9", "", utf8},
		{"invalid after an escape", "\\n\xff", "", utf8},
		{"backslash then a byte of two", "\\é", "", escape},
		{"unknown escape", `\x41`, "", escape},
		{"escape in capitals", `\N`, "", escape},
		{"capital U", `\U0041`, "", escape},
		{"three hex digits", `\u041`, "", escape},
		{"no hex digits", `\u`, "", escape},
		{"no hex", `\u00g1`, "", escape},
		{"hex with a sign", `\u+041`, "", escape},
		{"hex with white space", `\u 041`, "", escape},
		{"hex just outside", "\\u00@1\\u00`1", "", escape},
		{"first half alone", `\ud83d`, "", escape},
		{"first half before a letter", `\ud83dx`, "", escape},
		{"first half before another escape", `\ud83d\n`, "", escape},
		{"first half before an escape of another kind", `\ud83d\nde00`, "", escape},
		{"first half before six other bytes", `\ud83dabcdef`, "", escape},
		{"first half twice", `\ud83d\ud83d`, "", escape},
		{"first half before no hex", `\ud83d\uzzzz`, "", escape},
		{"first half before a short escape", `\ud83d\ude0`, "", escape},
		{"second half alone", `\ude00`, "", escape},
		{"halves in the wrong order", `\ude00\ud83d`, "", escape},
		{"backslash at the end", `a\`, "", short},
		{"three backslashes at the end", `\\\`, "", short},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			quoted := `"` + test.text + `"`
			var value, name string
			for place, r := range map[string]result{
				"value":        read(t, quoted, func(c *wire.Codec) { c.String(&value) }),
				"element":      read(t, "["+quoted+"]", func(c *wire.Codec) { c.Each(func() { value = string(c.Bytes()) }) }),
				"skipped":      read(t, quoted, skip),
				"name":         read(t, `{`+quoted+`:1}`, func(c *wire.Codec) { c.Map(func(n []byte) { name = string(n); c.Skip() }) }),
				"unknown name": read(t, `{`+quoted+`:1}`, readPair(&pair{})),
			} {
				if test.problem == "" {
					assert.Empty(t, r.err, place)
				} else {
					assert.Equal(t, notStrict+test.problem, r.err, place)
				}
			}
			assert.Equal(t, test.want, value)
			assert.Equal(t, test.want, name)
			// Bytes are looked at several at a time, so where a string begins may matter.
			for before := range 17 {
				padded := strings.Repeat("p", before) + test.text
				for after := range 17 {
					tail := strings.Repeat("s", after)
					var got string
					r := read(t, `["`+padded+tail+`"]`, func(c *wire.Codec) { c.Each(func() { c.String(&got) }) })
					switch {
					case test.problem == "":
						require.Equal(t, strings.Repeat("p", before)+test.want+tail, got)
					case test.problem != short:
						// What follows may turn half an escape into another error.
						require.NotEmpty(t, r.err, "%d before, %d after", before, after)
					}
				}
			}
		})
	}
}

func TestATextIsBorrowedUntilTheNext(t *testing.T) {
	t.Parallel()
	var first, second, third string
	plainly(t, read(t, `["\u0061bc","\u0064ef","\u0067"]`, func(c *wire.Codec) {
		all := []*string{&first, &second, &third}
		c.Each(func() {
			c.String(all[0])
			all = all[1:]
		})
	}))
	assert.Equal(t, "abc,def,g", strings.Join([]string{first, second, third}, ","),
		"strings that are kept do not share the room in which they are unescaped")
}

func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

// node is an object within itself, once as a field and once as a list.
type node struct {
	Child *node
	List  []node
}

func readNode(c *wire.Codec, n *node) { wire.Object(c, n, nodeFields(), wire.Lenient) }

func nodeFields() []wire.FieldOf[node] {
	return []wire.FieldOf[node]{
		{Name: "child", Value: func(c *wire.Codec, n *node) {
			n.Child = new(node)
			readNode(c, n.Child)
		}},
		{Name: "list", Value: func(c *wire.Codec, n *node) { wire.List(c, &n.List, nodeFields()) }},
	}
}

func TestDepthEndsAt64(t *testing.T) {
	t.Parallel()
	var each func(*wire.Codec)
	each = func(c *wire.Codec) { c.Each(func() { each(c) }) }
	var table func(*wire.Codec)
	table = func(c *wire.Codec) { c.Map(func([]byte) { table(c) }) }
	for _, test := range []struct {
		name             string
		read             func(*wire.Codec)
		open, inner, end string
		perLevel         int
	}{
		{"skipped arrays", skip, "[", "", "]", 1},
		{"skipped objects", skip, `{"a":`, "0", "}", 1},
		{"skipped in turns", skip, `[{"a":`, "[]", "}]", 2},
		{"arrays", each, "[", "", "]", 1},
		{"tables", table, `{"a":`, "{}", "}", 1},
		{"objects", func(c *wire.Codec) { readNode(c, &node{}) }, `{"child":`, "{}", "}", 1},
		{"lists", func(c *wire.Codec) { readNode(c, &node{}) }, `{"list":[`, `{"list":[]}`, "]}", 2},
		{"unknown fields", func(c *wire.Codec) { readNode(c, &node{}) }, `{"x":`, "[]", "}", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inner := strings.Count(test.inner, "[") + strings.Count(test.inner, "{")
			levels := (64 - inner) / test.perLevel
			deepest := nested(test.open, test.inner, test.end, levels)
			if (64-inner)%test.perLevel != 0 {
				deepest = nested(test.open, "0", test.end, 32)
			}
			require.Equal(t, 64, strings.Count(deepest, "[")+strings.Count(deepest, "{"))
			assert.Empty(t, read(t, deepest, test.read).err)
			refused(t, notStrict+"it is nested too deep", read(t, nested(test.open, test.inner, test.end, levels+1), test.read))
		})
	}
}

func TestAMillionBracketsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"[", `{"a":`} {
		refused(t, notStrict+"it is nested too deep", read(t, strings.Repeat(open, 1_000_000), skip))
	}
}

// fieldList names n distinct fields, of which each is written by write.
func fieldList(n int, write func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = write(i) + fmt.Sprintf(`:%d`, i)
	}
	return strings.Join(list, ",")
}

func plainName(i int) string { return fmt.Sprintf(`"n%d"`, i) }

func escapedName(i int) string { return fmt.Sprintf(`"\u006e%d"`, i) }

// An object is read in four ways, and none may let a name stand twice: of two
// amounts the caller would see one, and the service may have meant the other.
func TestRepeatedNames(t *testing.T) {
	t.Parallel()
	ways := func() map[string]func(*wire.Codec) {
		return map[string]func(*wire.Codec){
			"known and unknown": readPair(&pair{}),
			"table":             func(c *wire.Codec) { c.Map(func([]byte) { c.Skip() }) },
			"skipped":           skip,
			"span":              func(c *wire.Codec) { c.Span() },
		}
	}
	for _, test := range []struct {
		name, text string
		repeated   bool
	}{
		{"known", `{"text":"a","text":"a"}`, true},
		{"known, apart", `{"text":"a","other":1,"text":"b"}`, true},
		{"known, the second in escapes", `{"text":"a","t\u0065xt":"a"}`, true},
		{"known, the first in escapes", `{"t\u0065xt":"a","text":"a"}`, true},
		{"unknown", `{"x":1,"x":1}`, true},
		{"unknown, apart", `{"x":1,"text":"a","y":2,"x":1}`, true},
		{"unknown, the second in escapes", `{"x":1,"\u0078":1}`, true},
		{"unknown, the first in escapes", `{"\u0078":1,"x":1}`, true},
		{"unknown, both in escapes", `{"\u0078":1,"\u0079":1,"\u0078":1}`, true},
		{"unknown, an escaped string in between", `{"\u0078":"\u0079","x":1}`, true},
		{"empty", `{"":1,"":1}`, true},
		{"with other white space", `{"x" : 1 , "x":1}`, true},
		{"within an unknown field", `{"x":{"y":1,"y":1}}`, true},
		{"within a known field", `{"other":{"y":1,"y":1}}`, true},
		{"deep within", `{"other":[[{"z":[{"y":1,"\u0079":1}]}]]}`, true},
		{"after a nested object with the same name", `{"x":{"x":1},"x":1}`, true},
		{"after a nested object with many names", `{"x":{` + fieldList(40, plainName) + `},"x":1}`, true},
		{"16 names, the first again", `{` + fieldList(16, plainName) + `,"n0":1}`, true},
		{"16 names, the last again", `{` + fieldList(16, plainName) + `,"n15":1}`, true},
		{"15 names, the last again", `{` + fieldList(15, plainName) + `,"n14":1}`, true},
		{"17 names, the last again", `{` + fieldList(17, plainName) + `,"n16":1}`, true},
		{"18 names, the 17th again", `{` + fieldList(18, plainName) + `,"n16":1}`, true},
		{"100 names, the first again", `{` + fieldList(100, plainName) + `,"n0":1}`, true},
		{"100 names in escapes, the first again", `{` + fieldList(100, escapedName) + `,"n0":1}`, true},
		{"100 names, the last again in escapes", `{` + fieldList(100, plainName) + `,"\u006e99":1}`, true},
		{"100 names in escapes", `{` + fieldList(100, escapedName) + `}`, false},
		{"16 names", `{` + fieldList(16, plainName) + `}`, false},
		{"17 names", `{` + fieldList(17, plainName) + `}`, false},
		{"many names beside many names", `{"x":{` + fieldList(40, plainName) + `},"y":{` + fieldList(40, plainName) + `}}`, false},
		{"the same name in siblings", `{"x":{"a":1},"y":{"a":1}}`, false},
		{"the same name in elements", `{"x":[{"a":1},{"a":1}]}`, false},
		{"the same name in a parent", `{"x":{"x":{"x":1}}}`, false},
		{"names in other letter cases", `{"x":1,"X":1}`, false},
		{"a known name in other letter cases", `{"text":"a","Text":1,"TEXT":2}`, false},
		{"composed and decomposed", "{\"\u00e9\":1,\"e\u0301\":1}", false},
		{"a NUL more", `{"x":1,"x\u0000":1}`, false},
		{"a beginning of another", `{"xy":1,"x":1}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for way, read1 := range ways() {
				r := read(t, test.text, read1)
				if test.repeated {
					assert.Equal(t, notStrict+"a field name appears twice", r.err, way)
				} else {
					assert.Empty(t, r.err, way)
				}
			}
		})
	}
}

// A response contains names and numbers of people. No error and no drift may repeat
// a byte of it, whatever is wrong and wherever.
func TestErrorsAndDriftsHoldNoPayload(t *testing.T) {
	t.Parallel()
	const text = `{"QQname":"QQvalue","text":"QQtext","other":{"QQinner":["QQelement",77777.7e7,true,null,{"\u0051Q":"\n"}]},"QQ2":[77777]}`
	check := func(text string) {
		var p pair
		r := read(t, text, readPair(&p))
		shown := r.err + fmt.Sprint(r.drifts)
		assert.NotContains(t, shown, "QQ", "of %s", text)
		assert.NotContains(t, shown, "777", "of %s", text)
	}
	check(text)
	for i := range len(text) {
		check(text[:i])
		for _, b := range []string{"", "\x00", "\xff", `"`, `\`, "{", "}", "]", ",", ":", "1", "t", "QQ777"} {
			check(text[:i] + b + text[i+1:])
			check(text[:i] + b + text[i:])
		}
	}
}

func TestMismatchesHoldNoPayload(t *testing.T) {
	t.Parallel()
	for _, v := range valueTests {
		for _, text := range []string{
			`"QQ777"`, `77777.7`, `-77777e7`, `777777777777777777777777777777777777777777777`, `{"QQ":"QQ777"}`, `["QQ777",["QQ777"]]`,
			`"QQ777`, `77777.`, `QQ777`, `{"QQ":1,"QQ":2}`,
		} {
			r, _ := readForm(t, v.read, form{text: text})
			shown := r.err + fmt.Sprint(r.drifts)
			assert.NotContains(t, shown, "QQ", "%s of %s", v.name, text)
			assert.NotContains(t, shown, "777", "%s of %s", v.name, text)
		}
	}
}
