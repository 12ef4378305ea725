package wire_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// form is one way in which a value may stand on the wire, and what is made of it.
type form struct {
	text  string
	want  any
	drift string // the kind, where the form is tolerated
	err   string // where it is refused
}

func documented(text string, want any) form          { return form{text: text, want: want} }
func tolerated(text string, want any, k string) form { return form{text: text, want: want, drift: k} }

// mismatch is JSON of the wrong kind, which fails with the field's name.
func mismatch(text, want string) form { return form{text: text, err: "v: expected " + want} }

// mismatchIn fails at an element of the array.
func mismatchIn(index int, text, want string) form {
	return form{text: text, err: fmt.Sprintf("v[%d]: expected %s", index, want)}
}

// broken is no JSON.
func broken(text, problem string) form { return form{text: text, err: notStrict + problem} }

// others is the same refusal of several texts.
func others(want string, texts ...string) (forms []form) {
	for _, text := range texts {
		forms = append(forms, mismatch(text, want))
	}
	return forms
}

// Wherever a value is read, these are no JSON. What begins like a value of the
// wrong kind may be refused as that: a caller that goes on past a wrong kind
// skips the value, and Skip sees the rest.
var neverJSON = []form{
	broken(`tru`, "a value is misspelled"), broken(`nul`, "a value is misspelled"),
	broken(`flase`, "a value is misspelled"),
	broken(`"open`, "it ends too early"), broken("\x00", "it ends too early"),
	broken(`-`, "a number is misspelled"), broken(`1.`, "a number is misspelled"),
	broken(`{"a"`, "a colon is missing"), broken(`x`, "a value is missing"),
	broken(``, "a value is missing"), // the brace of the object around it
	broken(`[1`, "a comma or a closing bracket is missing"),
}

// kinds are the first bytes that Kind tells apart.
const kinds = `"0tn{[`

// reader reads one value and returns what shows it.
type reader func(*wire.Codec) any

// into reads with a Codec method into a variable that holds old, since a reader
// that leaves the variable alone must not pass for one that sets it.
func into[T any](old T, method func(*wire.Codec, *T)) reader {
	return func(c *wire.Codec) any {
		v := old
		method(c, &v)
		return v
	}
}

func decimals(method func(*wire.Codec, *decimal.Decimal)) reader {
	return func(c *wire.Codec) any {
		v := decimal.New(99, 9)
		method(c, &v)
		return exactly(v)
	}
}

func raw[T any](method func(*wire.Codec, *T)) reader {
	return func(c *wire.Codec) any {
		var v T
		method(c, &v)
		return cmp.Or(fmt.Sprintf("%s", any(v)), "null")
	}
}

const masks = "other mask characters"

// day is a valid date, or today.
type day string

func (d *day) String() string { return string(*d) }

func (d *day) UnmarshalText(text []byte) error {
	if !d.isDocumented(text) && !slices.Contains([]string{"", "today", "invalid"}, string(text)) {
		return errors.New("not a day")
	}
	*d = day(text)
	return nil
}

func (d *day) isDocumented(text []byte) bool {
	_, _, _, ok := wire.ParseDate(text)
	if ok {
		*d = day(text)
	}
	return ok
}

func joined(method func(*wire.Codec, *[]string)) reader {
	return func(c *wire.Codec) any {
		v := []string{"old"}
		method(c, &v)
		if v == nil {
			return "nil"
		}
		return fmt.Sprintf("%q", v)
	}
}

func borrowed(method func(*wire.Codec) []byte) reader {
	return func(c *wire.Codec) any { return string(method(c)) }
}

const (
	minInt64 = "-9223372036854775808"
	maxInt64 = "9223372036854775807"

	most = int64(math.MaxInt64)
)

// integers are the forms that every integer takes and refuses alike. largest is
// what fits into T, which for an int depends on the machine.
func integers[T int | int64](largest T) []form {
	above := strconv.FormatUint(uint64(largest)+1, 10)
	below := "-" + strconv.FormatUint(uint64(largest)+2, 10)
	return append(others("an integer that fits",
		`1.5`, `1e-1`, `0.00001`, `1e19`, `1e400`, above, below, `9223372036854775808`, `-9223372036854775809`,
		`10000000000000000000`,
		`99999999999999999999999999999999999999999`),
		documented(`0`, T(0)), documented(`-0`, T(0)), documented(`7`, T(7)),
		documented(strconv.FormatInt(int64(largest), 10), largest),
		tolerated(`1.0`, T(1), "decimal for integer"), tolerated(`1e2`, T(100), "decimal for integer"),
		tolerated(`420E-1`, T(42), "decimal for integer"), tolerated(`-0.0`, T(0), "decimal for integer"),
		broken(`01`, "a number is misspelled"), broken(`+1`, "a value is missing"),
	)
}

// integerStrings are what an integer sent as a string may be, each with drift.
func integerStrings[T int | int64](largest T) []form {
	return append(others("an integer that fits",
		`""`, `" 1"`, `"1 "`, `"+1"`, `"01"`, `"-"`, `"--1"`, `"1.0"`, `"1e2"`, `"0x1"`, `"1_0"`, `"abc"`,
		`"9223372036854775808"`,
		`"\u0661"`),
		tolerated(`"0"`, T(0), "string for number"), tolerated(`"12"`, T(12), "string for number"),
		tolerated(`"`+strconv.FormatInt(int64(largest), 10)+`"`, largest, "string for number"),
		tolerated(`"\u0031"`, T(1), "string for number"),
		broken(`"\ud800"`, "a string contains an invalid escape"),
	)
}

// codeNumbers are what an identifier sent as a number may be.
func codeNumbers() []form {
	return append(others("a string", `1.5`, `1e3`, `-0.0`, `true`, `false`, `{}`, `[]`),
		tolerated(`12`, "12", "number for string"),
		tolerated(`0`, "0", "number for string"),
		tolerated(`-7`, "-7", "number for string"),
		tolerated(`99999999999999999999999999`, "99999999999999999999999999", "number for string"),
		broken(`012`, "a number is misspelled"),
	)
}

// emptyLists are the forms of a list without elements, and what is sent for a list and is none.
func emptyLists() []form {
	return append(others("an array", `"a"`, `1`, `true`, `{"message":"no"}`, `{"01":0}`, `{"1.0":0}`, `{"":0}`),
		documented(`[]`, `[]`), documented(`[ ]`, `[]`),
		tolerated(`null`, `[]`, "null for array"), tolerated(`{ }`, `[]`, "object for array"),
	)
}

func join(parts ...[]form) (all []form) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// invalid are forms that cost a value, and no more.
func invalid(drift string, list ...string) (all []form) {
	for _, text := range list {
		all = append(all, form{text: text, want: "invalid", drift: drift})
	}
	return all
}

func textOf(form wire.Tolerance) func(*wire.Codec, *string) {
	return func(c *wire.Codec, dst *string) { c.Text(dst, form) }
}

func integerOf[T int | int64](form wire.Tolerance) func(*wire.Codec, *T) {
	return func(c *wire.Codec, dst *T) { wire.IntOf(c, dst, form) }
}

const noCharacter = "invalid character"

// freeText are the forms of a text that nobody compares.
var freeText = join([]form{
	documented(`"abc"`, "abc"), documented(`""`, ""), documented(`"\ud83d\ude00 \ufffd\n"`, "😀 \ufffd\n"),
	tolerated(`12`, "12", "number for string"), tolerated(`-1.50`, "-1.50", "number for string"),
	tolerated(`false`, "", "false for string"),
	tolerated("\"Andr\xe9\"", "Andr\ufffd", noCharacter),
	tolerated("\"\xd6\xd8\xb8\xb4!\"", "\ufffd\u0638\ufffd!", noCharacter),
	tolerated(`"a\ud83d"`, "a\ufffd", noCharacter), tolerated(`"\ud83db"`, "\ufffdb", noCharacter),
	tolerated(`"\ude00\ud83d\n"`, "\ufffd\ufffd\n", noCharacter),
	tolerated(`"\ud83d\ud83d\ude00"`, "\ufffd😀", noCharacter),
	tolerated("\"\xff\\u00e9\"", "\ufffdé", noCharacter),
	broken("\"\xff\\x\"", "a string contains an invalid escape"),
	broken("\"\xff\n\"", "a string contains a control character"),
	broken("\"\xff", "it ends too early"), broken(`"\ud83d\u12"`, "a string contains an invalid escape"),
}, others("a string", `true`, `{}`, `[]`))

var valueTests = []struct {
	name  string
	read  reader
	forms []form
}{
	{"String", into("old", (*wire.Codec).String), join([]form{
		documented(`"abc"`, "abc"), documented(`""`, ""), documented(`"a\u00e9\/"`, "aé/"),
		tolerated(`null`, "", "null for string"),
		broken("\"a\xff\"", "a string is not valid UTF-8"), broken(`"\ud83d"`, "a string contains an invalid escape"),
	}, others("a string", `12`, `-1`, `true`, `false`, `{}`, `[]`))},

	{"Free", into("old", textOf(wire.Free)), join(freeText, []form{tolerated(`null`, "", "null for string")})},
	{"FreeNull", into("old", textOf(wire.FreeNull)), join(freeText, []form{documented(`null`, "")})},
	{"FreeRequired", into("old", textOf(wire.FreeRequired)), join(freeText, []form{mismatch(`null`, "a string")})},

	{"Code", into("old", textOf(wire.Code)), join([]form{
		documented(`"a1"`, "a1"), documented(`""`, ""),
		tolerated(`null`, "", "null for string"),
	}, codeNumbers())},

	{"RequiredCode", into("old", textOf(wire.Required)), join([]form{
		documented(`"a1"`, "a1"), documented(`""`, ""),
		mismatch(`null`, "a string"),
	}, codeNumbers())},

	{"ID", into("old", textOf(wire.ID)), join([]form{
		documented(`"a1"`, "a1"), documented(`"\u0061"`, "a"), documented(`" a "`, " a "),
		mismatch(`""`, "an identifier"), mismatch(`" "`, "an identifier"), mismatch(`"\u00a0\n"`, "an identifier"),
		mismatch(`null`, "a string"),
	}, codeNumbers())},

	{"Int", into(99, wire.Int[int]), join(integers(math.MaxInt), integerStrings(math.MaxInt), []form{
		documented(`-1`, -1), documented(strconv.Itoa(math.MinInt), math.MinInt),
		tolerated(`"-5"`, -5, "string for number"),
		tolerated(`null`, 0, "null for number"),
	}, others("an integer", `true`, `false`, `{}`, `[]`))},

	{"Count", into(99, (*wire.Codec).Count), join(integers(math.MaxInt), integerStrings(math.MaxInt), []form{
		mismatch(`-1`, "a count"), mismatch(strconv.Itoa(math.MinInt), "a count"),
		{text: `"-1"`, err: "v: expected a count", drift: "string for number"}, // the string was not what was wrong
		tolerated(`"-0"`, 0, "string for number"),
	}, others("an integer", `null`, `true`, `false`, `{}`, `[]`))},

	{"RequiredInt64", into(99, integerOf[int64](wire.Required)), join(integers(most), integerStrings(most), []form{
		documented(`-1`, int64(-1)), documented(minInt64, int64(-9223372036854775808)),
	}, others("an integer", `null`, `true`, `false`, `{}`, `[]`))},

	{"EnvelopeCode", into(99, func(c *wire.Codec, dst *int) { c.EnvelopeCode(dst) }), join([]form{
		documented(`200`, 200), documented(`-1`, -1), documented(`0`, 0), documented(`2147483647`, 2147483647),
		tolerated(`"200"`, 200, "string for number"), tolerated(`"0"`, 0, "string for number"),
		tolerated(`200.0`, 200, "decimal for integer"), tolerated(`-1.00`, -1, "decimal for integer"),
		broken(`0200`, "a number is misspelled"),
	}, others("a code", `"-1"`, `"+200"`, `" 200"`, `"200 "`, `"0200"`, `"200.0"`, `"2e2"`, `"2\u00300"`, `""`, `"x"`,
		`2e2`, `200.5`, `200.`+zeros(60), `4111111111111111`, `"4111111111111111"`, `2147483648`, `-2147483649`,
		`9223372036854775808`, `null`, `true`, `false`, `{}`, `[]`))},

	{"Flag", into(true, (*wire.Codec).Flag), join([]form{
		documented(`0`, false), documented(`1`, true), documented(`-0`, false),
		tolerated(`2`, true, "flag other than 0 and 1"), tolerated(`-1`, true, "flag other than 0 and 1"),
		tolerated(`"0"`, false, "string for number"), tolerated(`"1"`, true, "string for number"),
		tolerated(`true`, true, "boolean for number"), tolerated(`false`, false, "boolean for number"),
		tolerated(`null`, false, "null for number"),
		mismatch(`"2"`, "0 or 1"), mismatch(`"-1"`, "0 or 1"),
		mismatch(`"true"`, "an integer that fits"), mismatch(`""`, "an integer that fits"),
		tolerated(`1.0`, true, "decimal for integer"), tolerated(`0e5`, false, "decimal for integer"),
		mismatch(`0.5`, "an integer that fits"),
		mismatch(`9223372036854775808`, "an integer that fits"),
	}, others("an integer", `{}`, `[]`))},

	{"Bool", into(true, (*wire.Codec).Bool), join([]form{
		documented(`true`, true), documented(`false`, false),
		tolerated(`1`, true, "number for boolean"), tolerated(`0`, false, "number for boolean"),
		tolerated(`"1"`, true, "string for boolean"), tolerated(`"0"`, false, "string for boolean"),
		tolerated(`null`, false, "null for boolean"),
	}, others("a boolean", `2`, `-1`, `-0`, `10`, `1.0`, `"2"`, `""`, `"true"`, `"false"`, `"01"`, `{}`, `[]`))},

	{"Strings", joined((*wire.Codec).Strings), join([]form{
		documented(`["a","","\u0062"]`, `["a" "" "b"]`),
		tolerated(`{"0":"a","2":"b","-1":"c"}`, `["a" "b" "c"]`, "object for array"),
		{text: `{"0":"a","5":1}`, err: "v[1]: expected a string"},
		mismatchIn(1, `["a",1]`, "a string"), mismatchIn(0, `[null]`, "a string"),
		broken(`["a",]`, "a value is missing"), broken(`["a" "b"]`, "a comma or a closing bracket is missing"),
	}, emptyLists())},

	{"Codes", joined((*wire.Codec).Codes), join([]form{
		documented(`["493193","49319300"]`, `["493193" "49319300"]`),
		tolerated(`{"1":"493193"}`, `["493193"]`, "object for array"),
		{text: `["1",2]`, want: `["1" "2"]`, drift: "number for string"},
		mismatchIn(0, `[null]`, "a string"), mismatchIn(0, `[1.5]`, "a string"),
	}, emptyLists())},

	{"DecimalString", decimals((*wire.Codec).DecimalString), join([]form{
		documented(`"123.450"`, "123450e-3"), documented(`"0"`, "0e0"), documented(`"-7.50"`, "-750e-2"),
		documented(`"\u0031"`, "1e0"),
		tolerated(`123.450`, "123450e-3", "number for string"), tolerated(`12e2`, "12e2", "number for string"),
		tolerated(`0`, "0e0", "number for string"),
	}, others("a decimal amount", `null`, `true`, `{}`, `[]`),
		others("a decimal amount of at most 40 digits", `"12e2"`, `""`, `" 1"`, `"1,5"`, `"NaN"`, `1e31`))},

	{"DecimalNumber", decimals((*wire.Codec).DecimalNumber), join([]form{
		documented(`12.30`, "1230e-2"), documented(`0`, "0e0"), documented(`-0`, "0e0"), documented(`1.5E-3`, "15e-4"),
		tolerated(`"12.30"`, "1230e-2", "string for number"), broken(`1.`, "a number is misspelled"),
	}, others("a decimal amount", `null`, `true`, `{}`, `[]`),
		others("a decimal amount of at most 40 digits", `"1e3"`, `"."`, nines(41), `1e999999999999`))},

	{"LenientDecimal", decimals((*wire.Codec).LenientDecimal), join([]form{
		documented(`12.30`, "1230e-2"), tolerated(`"12.30"`, "1230e-2", "string for number"),
		tolerated(`null`, "0e0", "null for number"), mismatch(`""`, "a decimal amount of at most 40 digits"),
	}, others("a decimal amount", `true`, `{}`, `[]`))},

	{"RawObject", raw((*wire.Codec).RawObject), join([]form{
		documented(`null`, `null`), documented(`{ "a" : [1] }`, `{ "a" : [1] }`),
		tolerated(`[]`, `null`, "empty array for object"), broken(`{"a":1,"a":1}`, "a field name appears twice"),
	}, others("null or an object", `"a"`, `0`, `true`))},

	{"RawList", raw((*wire.Codec).RawList), join([]form{
		documented(`[1,{"a":null}, "b"]`, `[1 {"a":null} "b"]`),
		tolerated(`{"7":{"a":1},"8":null}`, `[{"a":1} null]`, "object for array"),
		broken(`[1,{"a":tru}]`, "a value is misspelled"),
	}, emptyLists())},

	{"Date", func(c *wire.Codec) any {
		var v day
		wire.Date(c, &v, v.isDocumented)
		return string(v)
	}, join([]form{
		documented(`"2026-01-31"`, "2026-01-31"), documented(`"2024\u002d02-29"`, "2024-02-29"),
		tolerated(`"today"`, "today", "date in another form"),
		tolerated(`null`, "", "null for string"), tolerated(`""`, "", "empty string"),
		tolerated(`"2026-02-29"`, "invalid", "invalid date"), tolerated(`"invalid"`, "invalid", "invalid date"),
		{text: `12e1`, want: "invalid", drift: "number for string, invalid date"},
		tolerated(`[]`, "", "empty array for string"),
		broken(`[1,]`, "a value is missing"), broken(`{"a":1,"a":1}`, "a field name appears twice"),
	}, invalid("invalid date", `true`, `false`, `{}`, `{"date":[1],"timezone_type":3}`))},

	{"Digits", borrowed(func(c *wire.Codec) []byte { return c.Digits(wire.Code, "digits", 16) }), join([]form{
		documented(`"4000********0002"`, "4000********0002"), documented(`""`, ""), documented(`"123"`, "123"),
		tolerated(`null`, "", "null for string"), tolerated(`123`, "123", "number for string"),
		tolerated(`"XXXXXXXXXXXX0002"`, "************0002", masks),
		tolerated(`"4000xx•●#\u20220002"`, "4000******0002", masks),
		tolerated(`"4000 00** **** 0002"`, "400000******0002", masks), tolerated(`" XXX "`, "***", masks),
		tolerated(`"400000      0002"`, "400000******0002", masks), tolerated(`"   "`, "***", masks),
		tolerated(`"XXXXXXXXXXXX0002 "`, "************0002", masks),
		{text: `1.5`, want: "invalid", drift: "number for string, invalid digits"},
	}, invalid("invalid digits", `"4000000000000002  "`, `"4000  0000 0000 0002"`, `"123  "`,
		`"4000 0000 0000 0002"`, `" "`, `"4000-XXXX"`, `"****-****-****-0002"`, `"12a"`, `"１"`, `"12345678901234567"`,
		`true`, `false`, `{"a":[1]}`, `[]`))},

	{"Span", borrowed((*wire.Codec).Span), []form{
		documented(`"a\u0062"`, `"a\u0062"`), documented(`-1.50e+3`, `-1.50e+3`), documented(`0`, `0`),
		documented(`true`, `true`), documented(`false`, `false`), documented(`null`, `null`),
		documented(` { "a" : [ 1 , 2 ] } `, `{ "a" : [ 1 , 2 ] }`), documented(`[]`, `[]`),
	}},

	{"Null", func(c *wire.Codec) any {
		was := c.Null()
		if !was {
			c.Skip()
		}
		return was
	}, []form{
		documented(`null`, true), documented(`"null"`, false), documented(`0`, false),
		documented(`true`, false), documented(`{}`, false), documented(`[]`, false),
	}},

	{"EmptyObject", func(c *wire.Codec) any {
		was := c.EmptyObject()
		if !was {
			c.Skip()
		}
		return was
	}, []form{
		documented(`{}`, true), documented("{ \n}", true), documented(`{"a":1}`, false), documented(`{"":{}}`, false),
		documented(`[]`, false), documented(`null`, false), documented(`"{}"`, false), documented(`0`, false),
		documented(`true`, false),
		broken(`{,}`, "a field name is missing"), broken(`{]`, "a field name is missing"),
	}},

	{"EmptyArray", func(c *wire.Codec) any {
		c.EmptyArray("an address or an empty array")
		return nil
	}, join([]form{
		documented(`[]`, nil), documented("[\t]", nil),
		mismatchIn(0, `[1]`, "an address or an empty array"),
		mismatchIn(0, `[{}]`, "an address or an empty array"),
	}, others("an array", `{}`, `null`, `""`, `0`, `true`))},

	{"Each", func(c *wire.Codec) any {
		var got []string
		c.Each(func() { got = append(got, string(c.Span())) })
		return strings.Join(got, "|")
	}, join([]form{
		documented(`[1, "a",null ,{"b":2}]`, `1|"a"|null|{"b":2}`), documented(`[]`, ``),
		broken(`[1 2]`, "a comma or a closing bracket is missing"), broken(`[1,,2]`, "a value is missing"),
		broken(`[1}`, "a comma or a closing bracket is missing"),
	}, others("an array", `{}`, `null`, `"[]"`, `0`, `true`, `false`))},

	{"Map", func(c *wire.Codec) any {
		var got []string
		c.Map(func(name []byte) {
			entry := string(name) + "="
			got = append(got, entry+string(c.Span()))
		})
		return strings.Join(got, "|")
	}, join([]form{
		documented(`{"0-10":1,"\u0061" : [2] ,"":null}`, `0-10=1|a=[2]|=null`), documented(`{}`, ``),
		broken(`{"a":1,}`, "a field name is missing"), broken(`{"a":}`, "a value is missing"),
		broken(`{"a":1,"a":1}`, "a field name appears twice"),
	}, others("an object", `[]`, `null`, `"{}"`, `0`, `true`))},
}

func TestEveryValueInEveryForm(t *testing.T) {
	t.Parallel()
	for _, v := range valueTests {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			covered := ""
			for _, f := range v.forms {
				covered += kindOf(f.text)
				checkForm(t, v.read, f)
			}
			for _, f := range neverJSON {
				r, _ := readForm(t, v.read, f)
				mismatch := strings.HasPrefix(r.err, "v: expected ") || strings.HasPrefix(r.err, "v[0]: expected ")
				assert.True(t, r.err == f.err || mismatch,
					"of %s: %s", f.text, r.err)
			}
			for _, kind := range kinds {
				assert.Contains(t, covered, string(kind), "the table says nothing about a kind of value")
			}
		})
	}
}

func kindOf(text string) string {
	c := wire.NewReader([]byte(text), false)
	return string(rune(c.Kind()))
}

// readForm reads the form as the field v of an object.
func readForm(t *testing.T, one reader, f form) (r result, value any) {
	t.Helper()
	holder := []wire.FieldOf[struct{}]{
		{Name: "v", Required: true, Value: func(c *wire.Codec, _ *struct{}) { value = one(c) }},
	}
	return read(t, `{"v":`+f.text+`}`, func(c *wire.Codec) {
		var none struct{}
		wire.Object(c, &none, holder, wire.Whole)
	}), value
}

func checkForm(t *testing.T, one reader, f form) {
	t.Helper()
	r, value := readForm(t, one, f)
	var want []wire.Drift
	for kind := range strings.SplitSeq(f.drift, ", ") {
		if kind != "" {
			want = append(want, drifts(kind, driftPath(f))...)
		}
	}
	assert.Equal(t, want, r.drifts, "of %s", f.text)
	assert.Equal(t, f.err, r.err, "of %s", f.text)
	if f.err == "" && r.err == "" {
		assert.Equal(t, f.want, value, "of %s", f.text)
	}
}

// driftPath is the field, or its elements where the drift is one of those.
func driftPath(f form) string {
	if strings.HasPrefix(f.text, "[") && f.text != "[]" {
		return "v[]"
	}
	return "v"
}

func TestNothingIsReadAfterAnError(t *testing.T) {
	t.Parallel()
	c := wire.NewReader([]byte(`"text" 12 true [1] {"a":1}`), true)
	c.Fail("something else")
	assert.Equal(t, byte(0), c.Kind())

	text, number, flag, list := "old", 99, true, []string{}
	c.String(&text)
	wire.Int(c, &number)
	c.Bool(&flag)
	c.Strings(&list)
	c.Map(func([]byte) { t.Error("a field was read") })
	c.Each(func() { t.Error("an element was read") })
	assert.Nil(t, c.Span())
	c.Drift("anything")
	c.End()

	assert.Equal(t, "old", text)
	assert.Empty(t, list)
	assert.Equal(t, byte(0), c.Kind())
	assert.Empty(t, c.Drifts())
	assert.Equal(t, "expected something else", c.Err().Error(), "the first error is the one that stays")
}
