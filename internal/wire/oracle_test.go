package wire_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// The standard library is asked what a text is and what it holds: encoding/json/v2
// with its strict defaults where there is one, and otherwise encoding/json about
// valid texts that repeat no name. All that may differ is in policies.

// policy is one way in which this package is meant to differ. One text of it is
// read into a thing by this package, and into a mirror by the other two. What
// each reads is shown as in fields; "": it refuses.
type policy struct {
	name         string
	text         string
	ours, v1, v2 string
	// when finds what the policy refuses and the others accept: a known field's
	// value, in a text that is strict JSON. nil: it refuses nothing of this kind.
	when func(name string, v any) bool
}

var policies = []policy{
	// Of any text.
	{name: "nesting is at most 64 deep", text: `{"x":` + nested("[", "", "]", 64) + `}`, v1: "{}", v2: "{}"},
	{name: "no name is repeated", text: `{"x":1,"\u0078":1}`, v1: "{}"},
	{name: "half of a surrogate pair is no character", text: `{"text":"\udead"}`, v1: "{text:\ufffd}"},
	{name: "a string is valid UTF-8", text: "{\"text\":\"\xff\"}", v1: "{text:\ufffd}"},
	{name: "names in another letter case are others", text: `{"TEXT":"x"}`, ours: "{}", v1: "{text:x}", v2: "{}"},
	{
		name: "elements may not cost a multiple of their text",
		text: `{"list":[` + strings.Repeat("{},", 5000) + `{}]}`,
		v1:   "{list:5001}", v2: "{list:5001}",
		when: func(name string, v any) bool { return (name == "list" || name == "texts") && elements(v) > 300 },
	},

	// Of numbers.
	{
		name: "an exponent is at most 30", text: `{"figure":1e31}`, v1: "{figure:1e31}", v2: "{figure:1e31}",
		when: func(name string, v any) bool { return name == "figure" && isNumber(v) && !withinLimits(v) },
	},
	{name: "an exponent is at least -30", text: `{"figure":1E-31}`, v1: "{figure:1E-31}", v2: "{figure:1E-31}"},
	{
		name: "a number has at most 40 digits", text: `{"figure":` + nines(41) + `}`,
		v1: "{figure:" + nines(41) + "}", v2: "{figure:" + nines(41) + "}",
	},
	{
		name: "an amount in a string is a plain decimal", text: `{"amount":"1e5"}`, v1: "{amount:1e5}",
		v2: "{amount:1e5}",
		when: func(name string, v any) bool {
			text, ok := v.(string)
			isAmount := ok && (name == "amount" || name == "figure")
			return isAmount && (!plainDecimal.MatchString(text) || !withinLimits(json.Number(text)))
		},
	},
	{name: "an amount may be a number", text: `{"amount":1.50}`, ours: "{amount:1.50}"},
	{name: "an integer may be a string", text: `{"int":"-7"}`, ours: "{int:-7}"},
	{
		name: "a count is not negative", text: `{"count":-1}`, v1: "{count:-1}", v2: "{count:-1}",
		when: func(name string, v any) bool {
			n, ok := v.(json.Number)
			return ok && name == "count" && strings.HasPrefix(string(n), "-")
		},
	},
	{name: "a flag may be a boolean", text: `{"flag":true}`, ours: "{flag:true}"},
	{name: "a boolean may be 0 or 1", text: `{"bool":1}`, ours: "{bool:true}"},

	// Of identifiers.
	{name: "an identifier may be an integer", text: `{"id":7}`, ours: "{id:7}"},
	{
		name: "an identifier is not empty", text: `{"id":""}`, v1: "{}", v2: "{}",
		when: func(name string, v any) bool { return name == "id" && v == "" },
	},
	{
		name: "an identifier is not blank", text: `{"id":"\u00a0 \n"}`, v1: "{id:\u00a0 \n}", v2: "{id:\u00a0 \n}",
		when: func(name string, v any) bool {
			text, ok := v.(string)
			return ok && name == "id" && text != "" && strings.TrimSpace(text) == ""
		},
	},

	// Of null.
	{
		name: "an identifier is not null", text: `{"id":null}`, v1: "{}", v2: "{}",
		when: func(name string, v any) bool { return name == "id" && v == nil },
	},
	{
		name: "a number that must be there is not null", text: `{"number":null}`, v1: "{}", v2: "{}",
		when: func(name string, v any) bool { return (name == "number" || name == "count") && v == nil },
	},
	{
		name: "an amount is not null", text: `{"amount":null}`, v1: "{}", v2: "{}",
		when: func(name string, v any) bool { return (name == "amount" || name == "figure") && v == nil },
	},
	{
		name: "an object is not null", text: `{"inner":null}`, v1: "{}", v2: "{}",
		when: func(name string, v any) bool { return name == "inner" && v == nil },
	},
	{
		name: "a list is not null", text: `{"list":null}`, v1: "{}", v2: "{}",
		when: func(name string, v any) bool { return name == "list" && v == nil },
	},
	{
		name: "no element is null", text: `{"list":[null]}`, v1: "{list:1}", v2: "{list:1}",
		when: func(name string, v any) bool {
			list, ok := v.([]any)
			for _, e := range list {
				ok = ok && e != nil
			}
			return (name == "list" || name == "texts") && list != nil && !ok
		},
	},
}

var plainDecimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

func isNumber(v any) bool {
	_, ok := v.(json.Number)
	return ok
}

// withinLimits says whether a number has an exponent of at most 30 and, written
// out, at most 40 digits.
func withinLimits(v any) bool {
	text := strings.ToLower(strings.TrimPrefix(string(v.(json.Number)), "-"))
	mantissa, exponent, scientific := strings.Cut(text, "e")
	e, err := strconv.Atoi(exponent)
	if scientific && (err != nil || e < -30 || e > 30) {
		return false
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	e -= len(fraction)
	count := len(whole) + len(fraction)
	return max(count, count+e, -e) <= 40
}

// elements counts those of a list and of the lists in it.
func elements(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += 1 + elements(e)
		}
	case map[string]any:
		for _, e := range v {
			n += elements(e)
		}
	}
	return n
}

// excused names a policy for which a text that the oracle reads into a mirror is
// refused; "": there is none.
func excused(doc any) string {
	object, ok := doc.(map[string]any)
	if !ok {
		return ""
	}
	for name, v := range object {
		for _, p := range policies {
			if p.when != nil && p.when(name, v) {
				return p.name
			}
		}
		inner := []any{v}
		if list, ok := v.([]any); ok && name == "list" {
			inner = list
		} else if name != "inner" {
			continue
		}
		for _, e := range inner {
			if why := excused(e); why != "" {
				return why
			}
		}
	}
	return ""
}

// fields lists the fields of a struct that are not zero, and of lists their length.
func fields(v any) string {
	var b strings.Builder
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		f := reflect.Indirect(s.Field(i))
		if !f.IsValid() || f.IsZero() {
			continue
		}
		var shown any
		switch d, isAmount := f.Interface().(decimal.Decimal); {
		case isAmount:
			shown = string(wire.AppendDecimal(nil, d))
		case f.Kind() == reflect.Slice:
			shown = f.Len()
		default:
			shown = f.Interface()
		}
		fmt.Fprintf(&b, ",%s:%v", strings.ToLower(s.Type().Field(i).Name), shown)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func TestPoliciesAreWhereTheStandardLibraryDiffers(t *testing.T) {
	t.Parallel()
	for _, p := range policies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			require.NotEqual(t, []string{p.ours, p.ours}, []string{p.v1, p.v2}, "a policy makes a difference")
			var ours string
			var got thing
			if accepted([]byte(p.text), readThing(&got)) {
				ours = fields(got)
			}
			assert.Equal(t, p.ours, ours)

			var v1 string
			var reflected mirror
			if json.Unmarshal([]byte(p.text), &reflected) == nil {
				v1 = fields(reflected)
			}
			assert.Equal(t, p.v1, v1)
			if !oracleIsV2 {
				return
			}
			var v2 string
			var strictly mirror
			if oracleInto([]byte(p.text), &strictly) {
				v2 = fields(strictly)
			}
			assert.Equal(t, p.v2, v2)
		})
	}
}

func readThing(v *thing) func(*wire.Codec) {
	return func(c *wire.Codec) { wire.Object(c, v, thingFields(), wire.Lenient) }
}

// agrees asserts that text is read as the oracle reads it, as any value and as
// a thing, and says whether it was as either.
func agrees(t *testing.T, text []byte) (untyped, typed bool) {
	t.Helper()
	want, ok := oracle(text)
	got, read := value(text)
	require.Equal(t, ok && depthOf(want) <= 64, read, "of %.200q", text)
	if read {
		require.Equal(t, want, got, "of %.200q", text)
	}
	return read, agreesTyped(t, text, want, read)
}

func agreesTyped(t *testing.T, text []byte, doc any, strictly bool) bool {
	t.Helper()
	var got thing
	var want mirror
	c := wire.NewReader(text, true)
	readThing(&got)(c)
	c.End()
	_, isObject := doc.(map[string]any)
	wanted := strictly && isObject && oracleInto(text, &want)
	switch {
	case c.Err() != nil:
		require.True(t, !wanted || excused(doc) != "", "refused for %v: %.200q", c.Err(), text)
		return false
	case len(c.Drifts()) == 0: // the standard library tolerates other things
		require.True(t, wanted, "of %.200q", text)
		same(t, &want, &got)
	}
	require.True(t, strictly, "of %.200q", text)
	return true
}

func depthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			deepest = max(deepest, depthOf(e))
		}
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, depthOf(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

// Documents are changed at random, in the same way in each run.
func TestChangedDocumentsAreReadAsTheStandardLibraryReadsThem(t *testing.T) {
	t.Parallel()
	const documents = 6_000
	var untyped, typed int
	g := rand.New(rand.NewPCG(1, 2))
	for range documents {
		text := oneOf(g, things)
		for range g.IntN(4) {
			text = replaced(g, text)
		}
		for range g.IntN(3) {
			text = spoilt(g, text)
		}
		asAny, asThing := agrees(t, []byte(text))
		if asAny {
			untyped++
		}
		if asThing {
			typed++
		}
	}
	t.Logf("%d documents: %d strict JSON, of which %d read as a thing", documents, untyped, typed)
	assert.Greater(t, untyped, documents/4, "many are JSON")
	assert.Less(t, untyped, documents*3/4, "many are not")
	assert.Greater(t, typed, documents/20, "and many have their known fields right")
}

func oneOf(g *rand.Rand, of []string) string { return of[g.IntN(len(of))] }

// replaced puts another value in the place of one.
func replaced(g *rand.Rand, text string) string {
	values := append([]string{
		"0", "1", "-1", "1.50", "2e5", "1e31", maxInt64, "9223372036854775808", nines(39), `""`, `"7"`, `"12.5"`,
		`" é\u00e9\\ "`,
		"true", "false", "null", "[]", " [ ] ", `["x","y"]`, "{}", `{"id":"1"}`, `[{},{"x":{}}]`,
	}, things...)
	fields := strings.Split(text, ":")
	i := 1 + g.IntN(len(fields)-1)
	end := max(strings.IndexAny(fields[i], ",]}"), 0)
	fields[i] = oneOf(g, values) + fields[i][end:]
	return strings.Join(fields, ":")
}

// spoilt adds, removes or changes one byte.
func spoilt(g *rand.Rand, text string) string {
	const significant = "{}[]\",:\\ \n0123456789-+.eEtfnu\x00\x1f\x7f\x80\xc3\xff"
	at := g.IntN(len(text))
	b := significant[g.IntN(len(significant))]
	return text[:at] + string([]byte{b})[:g.IntN(2)] + text[at+g.IntN(2):]
}

// anything reads a value of any kind as encoding/json reads it into an any, but
// for numbers, which keep their text.
func anything(c *wire.Codec) any {
	switch c.Kind() {
	case '{':
		object := map[string]any{}
		c.Map(func(name []byte) {
			key := string(name)
			object[key] = anything(c)
		})
		return object
	case '[':
		list := []any{}
		c.Each(func() { list = append(list, anything(c)) })
		return list
	case '"':
		return string(c.Bytes())
	case 't', 'f':
		var b bool
		c.Bool(&b)
		return b
	case 'n':
		c.Null()
		return nil
	case '0', '-':
		return json.Number(c.Span())
	default:
		c.Skip()
		return nil
	}
}

// value reads text as a whole, and says whether it was accepted.
func value(text []byte) (v any, ok bool) {
	ok = accepted(text, func(c *wire.Codec) { v = anything(c) })
	return v, ok
}
