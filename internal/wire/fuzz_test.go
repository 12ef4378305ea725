package wire_test

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// texts are whole texts of every kind.
var texts = []string{
	`{"code":200,"msg":"success","data":{"total":2,"data":[{"id":"c1","available":"12.340","pending":0.5}]}}`,
	`{"a":[1,-0,1.50,2e5,3E-7,true,false,null,"\u00e9\/\ud83d\ude00"],"b":{"c":{}}}`,
	`{"text":"a",2}`,
	`{"":0}`, `[[[[]]]]`, nested("[", "", "]", 64), nested("[", "", "]", 65), `"\ud800"`, "\"\xff\"", "\"a\nb\"",
	" \t\r\n{} \t\r\n",
	`{"x" : 1 , "y" : [ ] , "z" : { } }`, // with other white space

	// With a name that comes twice in one object, and without.
	`{"a":1,"\u0061":2}`, `{"text":"a","text":"a"}`, `{"text":"a","t\u0065xt":"a"}`,
	`{"t\u0065xt":"a","other":1,"text":"a"}`,
	`{"x":1,"x":1}`, `{"x":1,"text":"a","y":2,"x":1}`, `{"\u0078":1,"x":1}`, `{"\u0078":1,"\u0079":1,"\u0078":1}`,
	`{"":1,"":1}`,
	`{"other":[[{"z":[{"y":1,"\u0079":1}]}]]}`, `{"x":{"x":1},"x":1}`, `{"x":{` + fieldList(40, plainName) + `},"x":1}`,
	`{` + fieldList(18, plainName) + `,"n16":1}`, `{` + fieldList(100, escapedName) + `,"n0":1}`,
	`{"x":{"a":1},"y":{"a":1}}`, `{"x":[{"a":1},{"a":1}]}`, `{"x":{"x":{"x":1}}}`, `{"x":1,"X":1}`,
	`{"x":1,"x\u0000":1}`,
	`{"xy":1,"x":1}`, `{"text":"a","Text":1,"TEXT":2}`, "{\"\u00e9\":1,\"e\u0301\":1}",
	`{` + fieldList(100, escapedName) + `}`,
}

// addTexts seeds f with texts, and with those of JSONTestSuite if they are there.
func addTexts(f *testing.F) {
	f.Helper()
	for _, text := range texts {
		f.Add([]byte(text))
	}
	for _, text := range jsonsuite.Seeds(f, 4<<10) {
		f.Add(text)
	}
}

// accepted says whether read takes text as a whole.
func accepted(text []byte, read func(*wire.Codec)) bool {
	c := wire.NewReader(slices.Clip(text), true)
	read(c)
	c.End()
	return c.Err() == nil
}

func FuzzSkip(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		require.Equal(t, jsonsuite.Strict(text, 64), accepted(text, skip), "skipped")
		// The other ways to read anything at all must agree with Skip.
		array, object := around(`[`, text, `]`), around(`{"x":`, text, `}`)
		each := func(c *wire.Codec) { c.Each(c.Skip) }
		require.Equal(t, jsonsuite.Strict(array, 64), accepted(array, each), "elements")
		table := func(c *wire.Codec) { c.Map(func([]byte) { c.Skip() }) }
		require.Equal(t, jsonsuite.Strict(object, 64), accepted(object, table), "a table")
		if jsonsuite.Strict(text, 63) {
			var p pair
			require.True(t, accepted(object, readPair(&p)), "an unknown field")
			require.True(t, accepted(around(`{"other":`, text, `}`), readPair(&p)), "a known field")
			require.Equal(t, strings.Trim(string(text), " \t\r\n"), p.Other)
		}
	})
}

func around(before string, text []byte, after string) []byte {
	return append(append([]byte(before), text...), after...)
}

func FuzzText(f *testing.F) {
	for _, text := range []string{
		``, `abc`, "\x7f", "é", "中", "😀", "\u2028",
		`\"\\\/\b\f\n\r\t`, `a\"b`, `a":1,"b`, `a\\`, `08\/2027`, `é\n`,
		`\u00e9\u00eF\u00Ef`, `a\u0000b`, `\ud83d\ude00`, `\uD83D\uDE00`, `\udbff\udfff`, `\ufffd`, `\ud7ff\ue000`,
		"a\nb", "\t", "\x00", "\x1f", "\\n\x01", "é\x01", "\\\n",
		"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "Andr\xe9", "\\n\xff", "\\é",
		`\x41`, `\N`, `\U0041`, `\u041`, `\u`, `\u00g1`, `\u+041`, `\u 041`, "\\u00@1\\u00`1",
		`\ud83d`, `\ud83dx`, `\ud83d\n`, `\ud83d\nde00`, `\ud83dabcdef`, `\ud83d\ud83d`, `\ud83d\uzzzz`, `\ud83d\ude0`,
		`\ude00`, `\ude00\ud83d`, `\`, `a\`, `\\\`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, inside string) {
		quoted := []byte(`"` + inside + `"`)
		var want, got string
		valid := jsonsuite.Strict(quoted, 64) && json.Unmarshal(quoted, &want) == nil
		require.Equal(t, valid, accepted(quoted, func(c *wire.Codec) { c.String(&got) }))
		if valid {
			require.Equal(t, want, got)
		}

		// A quote inside makes it no text, and may still make it the names and
		// values of an object.
		object := around(`{`, quoted, `:0}`)
		var name string
		require.Equal(t, jsonsuite.Strict(object, 64), accepted(object, func(c *wire.Codec) {
			c.Map(func(n []byte) { name = string(n); c.Skip() })
		}))
		if valid {
			require.Equal(t, want, name)
		}

		if utf8.ValidString(inside) {
			written := wire.AppendString(nil, inside)
			require.NoError(t, json.Unmarshal(written, &want))
			require.Equal(t, inside, want)
			require.True(t, accepted(written, func(c *wire.Codec) { c.String(&got) }))
			require.Equal(t, inside, got)
		}
	})
}

var (
	numberGrammar  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	integerGrammar = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	smallNumber    = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?([eE][+-]?0*([0-9]|[12][0-9]|30))?$`)
)

func FuzzNumber(f *testing.F) {
	for _, text := range []string{
		"0", "-0", "1", "-1", "10", "907", "0.0", "0.10", "-0.5", "12.340", "0e0", "0.0e0", "1e5", "1E5", "1e+5",
		"1E-5", "1.5e05",
		"-0.0e-0", "1e31", "1e-30", "1e+0005", "1e400", "1" + zeros(400), maxInt64, minInt64, "9223372036854775808",
		"-9223372036854775809", "999999999999999999", "1000000000000000000", nines(40), nines(41), nines(18) + ".5",
		"", "-", "01", "-01", "00", "1.", "1.e5", ".5", "-.5", "+1", "--1", "1e", "1e+", "1E-", "-x", "1.2.3", "0x1",
		"1_0",
		"1e5.0", "1e5e5", "1e--5", "1e 5", "1,5", "1-", " 1", "1 ", "1\x00", "1\u0661", "NaN", "Inf", "e5", "$1", "1%",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number := numberGrammar.MatchString(text)
		require.Equal(t, number, accepted([]byte(text), skip) && strings.Trim(text, "-0123456789.eE+") == "")

		plainly := integerGrammar.MatchString(text)
		d, ok := wire.ParseDecimal([]byte(text), true)
		want, err := strconv.ParseInt(text, 10, 64)
		integer := err == nil && plainly
		if whole, _ := new(big.Rat).SetString(text); ok && !plainly && whole.IsInt() { // 1.0, 1e2
			want, integer = whole.Num().Int64(), whole.Num().IsInt64()
		}
		if strings.Trim(text, "-+.eE0123456789") == "" {
			var fromNumber, fromText int64
			require.Equal(t, integer, accepted([]byte(text), func(c *wire.Codec) { wire.Int(c, &fromNumber) }))
			quoted := []byte(`"` + text + `"`)
			require.Equal(t, integer && plainly,
				accepted(quoted, func(c *wire.Codec) { wire.IntOf(c, &fromText, wire.Required) }))
			if integer {
				require.Equal(t, want, fromNumber)
			}
			if integer && plainly {
				require.Equal(t, want, fromText)
			}
			var code int
			isCode := integer && want == int64(int32(want)) && len(text) <= 40 && !strings.ContainsAny(text, "eE")
			require.Equal(t, isCode, accepted([]byte(text), func(c *wire.Codec) { c.EnvelopeCode(&code) }))
			require.True(t, !isCode || int64(code) == want)
		}

		require.True(t, number || !ok, "what is no number is no amount")
		require.True(t, ok || !smallNumber.MatchString(text), "a small number is an amount")
		_, plain := wire.ParseDecimal([]byte(text), false)
		require.Equal(t, ok && !strings.ContainsAny(text, "eE"), plain)
		if !ok {
			return
		}
		exactly, _ := new(big.Rat).SetString(text)
		require.Zero(t, exactly.Cmp(d.Rat()), "an amount is exact")
		if plain {
			_, fraction, _ := strings.Cut(text, ".")
			require.Equal(t, -len(fraction), int(d.Exponent()), "an amount keeps its scale")
		}
		written := wire.AppendDecimal(nil, d)
		require.Regexp(t, numberGrammar, string(written))
		again, ok := wire.ParseDecimal(written, false)
		require.True(t, ok, "what was read can be written and read again: %s", written)
		require.Zero(t, exactly.Cmp(again.Rat()))

		cents, ok := wire.Cents(d)
		hundred := new(big.Rat).Mul(exactly, big.NewRat(100, 1))
		if !ok {
			require.True(t, exactly.Sign() <= 0 || !hundred.IsInt() || len(hundred.Num().String()) > 40)
			return
		}
		require.Regexp(t, `^(0|[1-9][0-9]*)\.[0-9]{2}$`, cents)
		back, _ := new(big.Rat).SetString(cents)
		require.Zero(t, exactly.Cmp(back))
	})
}

// thing has a field of each kind, itself included.
type thing struct {
	Text, Null, ID string
	Int, Count     int
	Number         int64
	Flag, Bool     bool
	Texts          []string
	Amount, Figure decimal.Decimal
	Inner          *thing
	List           []thing
	Code, Present  string
	Int64          int64
	Pets           []pet
}

func thingFields() []wire.FieldOf[thing] {
	return []wire.FieldOf[thing]{
		{Name: "text", Value: func(c *wire.Codec, v *thing) { c.String(&v.Text) }},
		{Name: "null", Value: func(c *wire.Codec, v *thing) { c.Text(&v.Null, wire.FreeNull) }},
		{Name: "id", Value: func(c *wire.Codec, v *thing) { c.Text(&v.ID, wire.ID) }},
		{Name: "int", Value: func(c *wire.Codec, v *thing) { wire.Int(c, &v.Int) }},
		{Name: "count", Value: func(c *wire.Codec, v *thing) { c.Count(&v.Count) }},
		{Name: "number", Value: func(c *wire.Codec, v *thing) { wire.IntOf(c, &v.Number, wire.Required) }},
		{Name: "flag", Value: func(c *wire.Codec, v *thing) { c.Flag(&v.Flag) }},
		{Name: "bool", Value: func(c *wire.Codec, v *thing) { c.Bool(&v.Bool) }},
		{Name: "texts", Value: func(c *wire.Codec, v *thing) { c.Strings(&v.Texts) }},
		{Name: "amount", Value: func(c *wire.Codec, v *thing) { c.DecimalString(&v.Amount) }},
		{Name: "figure", Value: func(c *wire.Codec, v *thing) { c.DecimalNumber(&v.Figure) }},
		{Name: "inner", Value: func(c *wire.Codec, v *thing) {
			if c.Writing && v.Inner == nil {
				c.Append([]byte("null")...)
				return
			}
			if !c.Writing {
				v.Inner = new(thing)
			}
			wire.Object(c, v.Inner, thingFields(), wire.Lenient)
		}},
		{Name: "list", Value: func(c *wire.Codec, v *thing) { wire.Rows(c, &v.List, thingFields(), wire.Lenient) }},
		{Name: "code", Value: func(c *wire.Codec, v *thing) { c.Text(&v.Code, wire.Code) }},
		{Name: "present", Value: func(c *wire.Codec, v *thing) { c.Text(&v.Present, wire.Required) }},
		{Name: "int64", Value: func(c *wire.Codec, v *thing) { wire.Int(c, &v.Int64) }},
		{Name: "pets", Value: func(c *wire.Codec, v *thing) { wire.List(c, &v.Pets, petFields) }},
	}
}

const allFields = `{"text":"a\u0062","null":null,"id":"i","int":-1,"count":2,"number":3,"flag":1,"bool":true,` +
	`"texts":["x","y"],"amount":"1.20","figure":1.5e2`

// things are documents that can be read as a thing, with drift at least.
var things = []string{
	allFields + `}`,
	allFields + `,"inner":` + allFields + `},"list":[` + allFields + `},{},` + allFields + `}]}`,
	`{"list":[{"text":"0123456789","id":"\u0061"},{"texts":[]},{"list":[{"null":"n"}]}],"inner":{"inner":{}}}`,
	`{"list":[{"bool":false,"int":7,"text":"a"},{"text":"b","bool":true,"int":8},{"int":9,"bool":false,"id":"1"}]}`,
	`{"text":null,"int":"1","flag":true,"bool":0,"amount":1,"figure":"2","texts":null,"Text":"b"}`,
	`{"figure":-0.005,"amount":"` + nines(40) + `","number":` + minInt64 + `,"count":0,"flag":0,"id":"\ud83d\ude00"}`,
}

func FuzzObject(f *testing.F) {
	addTexts(f)
	for _, text := range things {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { agrees(t, text) })
}

func FuzzDateTime(f *testing.F) {
	for _, text := range []string{
		"2026-01-31", "2024-02-29", "2000-02-29", "2023-02-29", "1900-02-29", "2024-02-30", "2026-04-30", "2026-04-31",
		"2026-06-31", "2026-09-31", "2026-11-31", "2026-12-31", "2026-01-32", "2026-01-00", "2026-00-01", "2026-13-01",
		"0000-01-01", "0001-01-01", "9999-12-31", "2026-1-01", "26-01-01", "02026-01-01", "2026/01-01", "2026-01/01",
		"2026-01-01 ", " 2026-01-01", "+026-01-01", "2026-+1-01", "2026-01-0a", "2026-01-0\x00", "20\u0662-01-01",
		"00:00:00", "23:59:59", "01:02:03", "24:00:00", "00:60:00", "23:59:60", "1:02:03", "01:02", "01:02:03 ",
		"01-02:03",
		"01:02-03", "0a:02:03", "01:02:0a", "-1:02:03", "01:02:.5", "00000:00", "01:02:1x", "2026-01-1x", "2026001-01",
		"09/202x", "1:02:03.", "09/2028", "01/0001", "12/9999",
		"00/2028",
		"13/2028", "09/0000", "9/2028", "09/28", "2028/09", "09-2028", "**/****", "+9/2028", "09/2028 ", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		year, month, day, ok := wire.ParseDate([]byte(text))
		want, err := time.Parse(time.DateOnly, text)
		require.Equal(t, err == nil && want.Year() > 0, ok)
		if ok {
			require.Equal(t, want, time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC))
		}

		hour, minute, second, ok := wire.ParseClock([]byte(text))
		want, err = time.Parse(time.TimeOnly, text)
		// time.Parse takes hours of one digit and fractions of a second too.
		require.Equal(t, err == nil && len(text) == 8, ok)
		if ok {
			require.Equal(t, want, time.Date(0, 1, 1, hour, minute, second, 0, time.UTC))
		}

		year, month, ok = wire.ParseMonth([]byte(text))
		want, err = time.Parse("01/2006", text)
		require.Equal(t, err == nil && want.Year() > 0, ok)
		if ok {
			require.Equal(t, want, time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC))
		}
	})
}
