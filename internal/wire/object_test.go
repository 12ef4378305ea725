package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// The forms in which a pet is sent.
const (
	listed wire.Variant = 1 << 1
	single wire.Variant = 1 << 2
)

type pet struct {
	ID, Name, Race, Chip, Owner string
}

var petFields = []wire.FieldOf[pet]{
	{Name: "id", Required: true, Value: func(c *wire.Codec, p *pet) { c.Text(&p.ID, wire.ID) }},
	{Name: "name", Value: func(c *wire.Codec, p *pet) { c.String(&p.Name) }},
	{Name: "race", In: listed, Value: func(c *wire.Codec, p *pet) { c.Text(&p.Race, wire.FreeNull) }},
	{Name: "chip", In: single, Value: func(c *wire.Codec, p *pet) { c.Text(&p.Chip, wire.Code) }},
	{Name: "owner", In: listed | single, Value: func(c *wire.Codec, p *pet) { c.String(&p.Owner) }},
}

func drifts(kind string, paths ...string) (all []wire.Drift) {
	for _, p := range paths {
		all = append(all, wire.Drift{Path: p, Kind: kind})
	}
	return all
}

func missing(paths ...string) []wire.Drift { return drifts("missing field", paths...) }

func unknown(paths ...string) []wire.Drift { return drifts("unknown field", paths...) }

func TestMissingFieldsByVariant(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		variant    wire.Variant
		want       pet
		drifts     []wire.Drift
		err        string
	}{
		{
			"list form, whole", `{"id":"1","name":"Rex","race":"pug","owner":"Eve"}`, listed,
			pet{"1", "Rex", "pug", "", "Eve"}, nil, "",
		},
		{
			"single form, whole", `{"id":"1","name":"Rex","chip":"77","owner":"Eve"}`, single,
			pet{"1", "Rex", "", "77", "Eve"}, nil, "",
		},
		{
			"a field of the other form is read", `{"id":"1","name":"Rex","race":"pug","chip":"77","owner":"Eve"}`,
			listed,
			pet{"1", "Rex", "pug", "77", "Eve"}, nil, "",
		},
		{"list form, bare", `{"id":"1"}`, listed, pet{ID: "1"}, missing("name", "race", "owner"), ""},
		{"single form, bare", `{"id":"1"}`, single, pet{ID: "1"}, missing("name", "chip", "owner"), ""},
		{"the last alone", `{"owner":"","id":"1"}`, single, pet{ID: "1"}, missing("name", "chip"), ""},
		{"another form, bare", `{"id":"1"}`, wire.Whole, pet{ID: "1"}, missing("name"), ""},
		{"no form, bare", `{"id":"1"}`, wire.Lenient, pet{ID: "1"}, nil, ""},
		{"empty is not missing", `{"id":"1","name":"","race":null,"owner":""}`, listed, pet{ID: "1"}, nil, ""},
		{"required missing", `{"name":"Rex"}`, listed, pet{}, nil, "id is missing"},
		{"required missing in no form", `{"name":"Rex"}`, wire.Lenient, pet{}, nil, "id is missing"},
		{"required null", `{"id":null}`, listed, pet{}, nil, "id: expected a string"},
		{"required in another letter case", `{"ID":"1"}`, wire.Lenient, pet{}, unknown("*"), "id is missing"},
		{"empty", `{}`, single, pet{}, nil, "id is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got pet
			r := read(t, test.text, func(c *wire.Codec) { wire.Object(c, &got, petFields, test.variant) })
			assert.Equal(t, test.err, r.err)
			assert.Equal(t, test.drifts, r.drifts)
			if test.err == "" {
				assert.Equal(t, test.want, got)
			}
		})
	}
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text   string
		drifts []wire.Drift
	}{
		"before":                         {`{"x":1,"text":"a","other":2}`, unknown("*")},
		"between":                        {`{"text":"a","x":{"text":"b"},"other":2}`, unknown("*")},
		"after":                          {`{"text":"a","other":2,"x":[null]}`, unknown("*")},
		"several are reported once":      {`{"text":"a","x":1,"other":2,"y":1,"z":{"q":1}}`, unknown("*")},
		"in another letter case":         {`{"text":"a","Text":"b","other":2}`, unknown("*")},
		"a letter that folds":            {`{"text":"a","other":2,"teſt":1,"\u212a":1}`, unknown("*")},
		"a known name with a space":      {`{"text":"a","text ":"b","other":2}`, unknown("*")},
		"the empty name":                 {`{"text":"a","other":2,"":"b"}`, unknown("*")},
		"a known name in escapes is one": {`{"\u0074ext":"a","o\u0074her":2}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got pair
			r := read(t, test.text, readPair(&got))
			require.Empty(t, r.err)
			assert.Equal(t, test.drifts, r.drifts)
			assert.Equal(t, pair{"a", "2"}, got)
		})
	}
}

// box holds pets in each of the ways in which one object holds others.
type box struct {
	Pet  pet
	Rows []pet
	List []pet
	Map  map[string]pet
}

var boxFields = []wire.FieldOf[box]{
	{Name: "pet", Value: func(c *wire.Codec, b *box) { wire.Object(c, &b.Pet, petFields, single) }},
	{Name: "rows", Value: func(c *wire.Codec, b *box) { wire.Rows(c, &b.Rows, petFields, listed) }},
	{Name: "list", Value: func(c *wire.Codec, b *box) { wire.List(c, &b.List, petFields) }},
	{Name: "map", Value: func(c *wire.Codec, b *box) {
		c.Map(func([]byte) {
			var p pet
			wire.Object(c, &p, petFields, wire.Lenient)
		})
	}},
}

func readBox(b *box) func(*wire.Codec) {
	return func(c *wire.Codec) { wire.Object(c, b, boxFields, wire.Lenient) }
}

func TestPathsLeadToTheField(t *testing.T) {
	t.Parallel()
	const whole = `{"id":"1","name":"","chip":"","owner":""}`
	for text, want := range map[string]string{
		`[]`:                          "expected an object",
		`{"pet":1}`:                   "pet: expected an object",
		`{"pet":{"id":"1","name":2}}`: "pet.name: expected a string",
		`{ "pet" : { "id" : "1" , "n\u0061me" : 2 } }`: "pet.name: expected a string",
		`{"pet":{"name":"Rex","chip":"","owner":""}}`:  "pet.id is missing",
		`{"rows":[1]}`:                                "rows[0]: expected an object",
		`{"rows":[{"id":1.5},{"id":2.5}]}`:            "rows[0].id: expected a string",
		`{"rows":{"7":{}}}`:                           "rows[0].id is missing",
		`{"rows":{"7":{"id":"1"},"a":1}}`:             "rows: expected an array",
		`{"list":[{"id":"1","name":""},{"name":""}]}`: "list[1].id is missing",
		`{"list":"a"}`:                                "list: expected an array",
		`{"map":{"QQ":{"id":1.5}}}`:                   "map.*.id: expected a string",
		`{"pet":` + whole + `,"list":1}`:              "list: expected an array",
	} {
		refused(t, want, read(t, text, readBox(&box{})))
	}
	for text, want := range map[string][]wire.Drift{
		`{"pet":{"id":"1","name":"","chip":"","owner":"","QQ":1},"QQ":1}`:          unknown("pet.*", "*"),
		`{"list":[{"id":"1","name":"","QQ":1},{"id":"1","name":"","Q":1}],"QQ":1}`: unknown("list[].*", "*"),
		`{"pet":{"id":1},"list":null,"map":{"QQ":{"id":4,"Z":5}}}`: {
			{Path: "pet.id", Kind: "number for string"},
			{Path: "pet.name", Kind: "missing field"},
			{Path: "pet.chip", Kind: "missing field"},
			{Path: "pet.owner", Kind: "missing field"},
			{Path: "list", Kind: "null for array"},
			{Path: "map.*.id", Kind: "number for string"},
			{Path: "map.*.*", Kind: "unknown field"},
		},
		`{"rows":[{"id":2,"x":[{"y":1}]},{"id":3}]}`: {
			{Path: "rows[].id", Kind: "number for string"},
			{Path: "rows[].*", Kind: "unknown field"},
			{Path: "rows[].name", Kind: "missing field"},
			{Path: "rows[].race", Kind: "missing field"},
			{Path: "rows[].owner", Kind: "missing field"},
		},
	} {
		r := read(t, text, readBox(&box{}))
		require.Empty(t, r.err)
		assert.Equal(t, want, r.drifts, text)
	}
}

func TestRowsAndLists(t *testing.T) {
	t.Parallel()
	var b box
	plainly(t, read(t, `{"rows":[],"list":[ ]}`, readBox(&b)))
	assert.Equal(t, box{Rows: []pet{}, List: []pet{}}, b, "an empty array is no nil")

	b = box{Rows: []pet{{ID: "old"}}, List: []pet{{ID: "old"}}}
	rows := `[{"id":"1","name":"a","race":"b","owner":"c"},{"id":"2","name":"d"}]`
	r := read(t, `{"rows":`+rows+`,"list":null}`, readBox(&b))
	require.Empty(t, r.err)
	assert.Equal(t, []pet{{"1", "a", "b", "", "c"}, {ID: "2", Name: "d"}}, b.Rows)
	assert.Equal(t, []pet{}, b.List, "null leaves nothing of what was there")

	refused(t, notStrict+"a value is missing", read(t, `{"rows":[{"id":"1"},]}`, readBox(&b)))
	refused(t, notStrict+"a comma or a closing bracket is missing", read(t, `{"list":[{"id":"1"}}`, readBox(&b)))
}

// What cannot be read is skipped, and named as far as it can be. The rest of it must be JSON.
func TestElementsAreSetAside(t *testing.T) {
	t.Parallel()
	var pets []pet
	rows := func(c *wire.Codec) {
		wire.Rows(c, &pets, petFields, wire.Lenient)
		for _, u := range c.Unreadable() {
			pets = append(pets, pet{ID: u.ID, Chip: u.BIN, Race: fmt.Sprint(u.Index), Name: u.Err.Error()})
		}
	}
	const good, long = `{"id":"1"}`, "0123456789012345678901234567890123456789012345678901234567890123456789"
	for text, want := range map[string][]pet{
		`[` + good + `,{"bin":77,"name":2,"id":"4"},{"bin":"8"},` + good + `,7]`: {{ID: "1"}, {ID: "1"},
			{"4", "[1].name: expected a string", "1", "77", ""}, {"", "[2].id is missing", "2", "8", ""},
			{"", "[4]: expected an object", "4", "", ""}},
		"[{\"id\": \"a\" ,\"race\":\"\xff\",\"owner\":1,\"x\":[\"\xff\"]}," + good + `]`: {{ID: "1"},
			{"a", "[0].owner: expected a string", "0", "", ""}},
		`{"5":{"id":["4111"],"bin":"` + long + `"},"9":` + good + `}`: {{ID: "1"},
			{`["4111"]`, "[0].id: expected a string", "0", "", ""}},
	} {
		require.Empty(t, read(t, text, rows).err, text)
		assert.Equal(t, want, pets, text)
	}
	for text, problem := range map[string]string{
		`[` + good + `,{"id":1.5,"x":}]`:                       "a value is missing",
		`[` + good + `,{"id":1.5,"x":1,"x":1}]`:                "a field name appears twice",
		`[` + good + strings.Repeat(`,{"id":1.5}`, 2000) + `]`: "it has too many tiny elements",
	} {
		refused(t, notStrict+problem, read(t, text, rows))
	}
	kept := pet{ID: "9"}
	holder := []wire.FieldOf[pet]{{Name: "rows", Value: func(c *wire.Codec, _ *pet) { rows(c) }}}
	assert.EqualError(t, wire.Unmarshal([]byte(`{"rows":[`+good+`,0]}`), &kept, holder), "rows[1]: expected an object")
	assert.Equal(t, pet{ID: "9"}, kept, "what a program keeps is read as a whole")
}

// Lists that grow by doubling cost twice the room and a copy of everything.
func TestRoomForRowsIsMadeOnce(t *testing.T) {
	t.Parallel()
	const n = 300
	for name, length := range map[string]func(i int) int{
		"rows of one length":  func(int) int { return 80 },
		"a long row first":    func(i int) int { return 80 + 2000*max(0, 1-i) },
		"longer and longer":   func(i int) int { return i },
		"shorter and shorter": func(i int) int { return n - i },
	} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"id":"%d","name":"%s"}`, i, strings.Repeat("x", length(i))))
		}
		for _, between := range []string{",", " ,\n "} {
			var b box
			require.Empty(t, read(t, `{"rows":[`+strings.Join(list, between)+`]}`, readBox(&b)).err, name)
			assert.Len(t, b.Rows, n, name)
			assert.LessOrEqual(t, cap(b.Rows), n+1, name)
		}
	}
}

func TestRoomForRowsHasBounds(t *testing.T) {
	t.Parallel()
	// A million objects within a row begin as the row does: the room stays within what
	// rows may cost.
	var b box
	text := `{"rows":[{"id":"1","x":[` + strings.Repeat(`{"id":1},`, 999_999) + `{"id":1}]}]}`
	require.Empty(t, read(t, text, readBox(&b)).err)
	assert.Len(t, b.Rows, 1)
	assert.LessOrEqual(t, cap(b.Rows)*int(unsafe.Sizeof(pet{})), 4*len(text)+256<<10)

	// A list within an element guesses nothing from what follows the element.
	b = box{}
	text = `{"list":[{"id":"1"}],"rows":[` + strings.Repeat(`{"id":"2"},`, 999) + `{"id":"3"}]}`
	require.Empty(t, read(t, text, readBox(&b)).err)
	assert.Equal(t, 1, cap(b.List))
}

// A short text must not turn into a multiple of itself in memory, and an
// ordinary one, whose elements have all their fields, must not be refused.
func TestElementsMustBeWorthTheirMemory(t *testing.T) {
	t.Parallel()
	type large struct {
		Name string
		Room [1000]byte
	}
	fields := []wire.FieldOf[large]{{Name: "n", Value: func(c *wire.Codec, v *large) { c.String(&v.Name) }}}
	rows := func(c *wire.Codec) {
		var list []large
		wire.Rows(c, &list, fields, wire.Whole)
	}
	listOf := func(n int, one string) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	assert.Empty(t, read(t, listOf(200, `{"n":""}`), rows).err)
	assert.Empty(t, read(t, listOf(5000, `{"n":"`+strings.Repeat("x", 500)+`"}`), rows).err)
	refused(t, notStrict+"it has too many tiny elements", read(t, listOf(5000, `{"n":""}`), rows))
}

// Not parallel: other tests would allocate in between.
func TestStringsShareTheirMemory(t *testing.T) {
	allocations := func(n int) float64 {
		body := []byte(`[` + strings.Repeat(`"some text",`, n-1) + `"some text"]`)
		kept := make([]string, n)
		return testing.AllocsPerRun(200, func() {
			c := wire.NewReader(body, false)
			i := 0
			c.Each(func() { c.String(&kept[i]); i++ })
			c.End()
			require.Nil(t, c.Err())
			require.Equal(t, "some text", kept[n-1])
		})
	}
	assert.InDelta(t, allocations(1), allocations(50), 0)
	assert.InDelta(t, allocations(1)+18, allocations(1000), 2, "9000 bytes, by 512 at a time")
}

func TestDriftsAreKeptOnceAndUpToAHundred(t *testing.T) {
	t.Parallel()
	fields := make([]wire.FieldOf[struct{}], 60)
	for i := range fields {
		fields[i] = wire.FieldOf[struct{}]{Name: fmt.Sprintf("m%02d", i), Value: func(*wire.Codec, *struct{}) {}}
	}
	var paths []string
	for _, holder := range []string{"a", "b"} {
		for i := range fields {
			paths = append(paths, fmt.Sprintf("[].%s.m%02d", holder, i))
		}
	}
	empty := func(c *wire.Codec, v *struct{}) { wire.Object(c, v, fields, wire.Whole) }
	holder := []wire.FieldOf[struct{}]{{Name: "a", Value: empty}, {Name: "b", Value: empty}}
	r := read(t, `[{"a":{},"b":{}},{"a":{},"b":{}}]`, func(c *wire.Codec) {
		c.Each(func() { wire.Object(c, new(struct{}), holder, wire.Whole) })
	})
	require.Empty(t, r.err)
	assert.Equal(t, missing(paths[:100]...), r.drifts)

	r = read(t, `[1,null,2,null]`, func(c *wire.Codec) { c.Each(func() { c.Text(new(string), wire.Code) }) })
	assert.Equal(t, append(drifts("number for string", "[]"), drifts("null for string", "[]")...), r.drifts)
}

func TestDriftIsNotKeptWhereNobodyWatches(t *testing.T) {
	t.Parallel()
	var p pet
	c := wire.NewReader([]byte(`{"id":7,"x":1}`), false)
	wire.Object(c, &p, petFields, listed)
	c.End()
	require.Nil(t, c.Err())
	assert.Equal(t, pet{ID: "7"}, p)
	assert.Nil(t, c.Drifts())
}

// letter is an envelope whose data is read last, wherever it stands.
type letter struct {
	Head string
	Pet  pet
	data wire.Mark
}

var letterFields = []wire.FieldOf[letter]{
	{Name: "head", Value: func(c *wire.Codec, l *letter) { c.String(&l.Head) }},
	{Name: "data", Value: func(c *wire.Codec, l *letter) { l.data = c.Mark(); c.Skip() }},
}

func TestRewindReadsAgain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]result{
		`{"data":{"id":"1","name":"Rex"},"head":"h"}`:             {},
		`{"head":"\u0068","data":{"id":"1","name":"Rex"}}`:        {},
		`{"data":{"id":1,"name":"Rex"},"head":"h"}`:               {drifts: drifts("number for string", "data.id")},
		`{"data":{"id":"1","name":true},"head":"h"}`:              {err: "data.name: expected a string"},
		`{"x":1,"data":{"id":"1","x":1,"name":"Rex"},"head":"h"}`: {drifts: unknown("*", "data.*")},
		`{"a":0,"b":1,"data":{"id":"1","name":"Rex"},"head":"h"}`: {drifts: unknown("*")},
	} {
		var l letter
		c := wire.NewReader([]byte(text), true)
		wire.Object(c, &l, letterFields, wire.Whole)
		c.End()
		require.Nil(t, c.Err(), text)
		c.Rewind(l.data)
		wire.Object(c, &l.Pet, petFields, wire.Whole)
		if want.err != "" {
			assert.EqualError(t, c.Err(), want.err, text)
			continue
		}
		require.Nil(t, c.Err(), text)
		assert.Equal(t, letter{"h", pet{ID: "1", Name: "Rex"}, l.data}, l, text)
		assert.Equal(t, want.drifts, c.Drifts(), text)
	}
}
