package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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

// Which texts are refused is in the fuzz tests; here is what is said of them.
func TestWhatIsWrongWithTheJSON(t *testing.T) {
	t.Parallel()
	for problem, texts := range map[string][]string{
		"": {`{"a":1}`, `[]`, `"a"`, " \t\r\n{} \t\r\n", `{"a":"\u00e9\/é"}`, `-1.50e+3`},
		"it ends too early": {
			``, " \n", "\x00{}", `[`, `[1`, `[1,`, `{"a":`, `{"a":1`, `"a`, `"a\`, `"a\"`, `"é`,
		},
		"bytes follow the end": {"{}\x00", `{}{}`, `{}}`, `[],`, `nullx`, `1x`, `1.2.3`, `1e5.0`},
		"a value is missing": {
			"\ufeff{}", "\f{}", "\u00a0{}", `/**/{}`, `'a'`, `NaN`, `True`, `+1`, `.5`, `<page></page>`, `[,1]`,
			`{"a":}`,
		},
		"a field name is missing":                 {"{\x00}", `{a:1}`, `{1:1}`, `{`, `{"a":1,}`},
		"a colon is missing":                      {`{"a",1}`, `{"a" 1}`, `{"a"`},
		"a comma or a closing bracket is missing": {`[1:2]`, `[1 2]`, `[1}`, `{"a":1]`, `{"a":1 "b":2}`},
		"a value is misspelled":                   {`tru`, `nul`, `flase`},
		"a number is misspelled":                  {`-Infinity`, `-`, `01`, `1.`, `1e`, `-.5`},
		"a string contains a control character":   {"\"a\nb\"", "\"\x00\"", "\"é\x1f\"", "\"\\n\x01\""},
		"a string is not valid UTF-8":             {"\"\xff\"", "\"a\xc3\"", "\"\xed\xa0\x80\"", "{\"Andr\xe9\":1}"},
		"a string contains an invalid escape":     {`"\x41"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\u12"`, `{"\N":1}`},
		"a field name appears twice":              {`{"x":1,"\u0078":1}`, `[{"x":{"y":1,"z":2,"y":3}}]`},
		"it is nested too deep":                   {nested("[", "", "]", 65), strings.Repeat(`{"a":`, 1_000_000)},
	} {
		want := problem
		if problem != "" {
			want = notStrict + problem
		}
		for _, text := range texts {
			assert.Equal(t, want, read(t, text, skip).err, "of %.60q", text)
		}
	}
}

func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
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

// Names are compared at the end of their object: a million must not take quadratic time,
// nor a multiple of the text in memory.
func TestObjectsOfManyNames(t *testing.T) {
	t.Parallel()
	list := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return `{` + strings.TrimSuffix(text.String(), ",") + `}`
	}
	assert.Empty(t, read(t, list(50_000, `"field %d":0,`), skip).err)
	assert.Empty(t, read(t, `[`+strings.Repeat(`{"a":1,"b":2},`, 50_000)+`0]`, skip).err, "names are forgotten")
	refused(t, notStrict+"it has too many tiny elements", read(t, list(60_000, `"%x":0,`), skip))
}
