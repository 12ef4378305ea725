package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest"
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
	{Name: "id", Required: true, Value: func(c *wire.Codec, p *pet) { c.ID(&p.ID) }},
	{Name: "name", Value: func(c *wire.Codec, p *pet) { c.String(&p.Name) }},
	{Name: "race", In: listed, Value: func(c *wire.Codec, p *pet) { c.NullString(&p.Race) }},
	{Name: "chip", In: single, Value: func(c *wire.Codec, p *pet) { c.Code(&p.Chip) }},
	{Name: "owner", In: listed | single, Value: func(c *wire.Codec, p *pet) { c.String(&p.Owner) }},
}

func missing(paths ...string) (drifts []wire.Drift) {
	for _, p := range paths {
		drifts = append(drifts, wire.Drift{Path: p, Kind: "missing field"})
	}
	return drifts
}

func TestMissingFieldsByVariant(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		variant    wire.Variant
		want       pet
		drifts     []wire.Drift
		err        string
	}{
		{"list form, whole", `{"id":"1","name":"Rex","race":"pug","owner":"Eve"}`, listed, pet{"1", "Rex", "pug", "", "Eve"}, nil, ""},
		{"single form, whole", `{"id":"1","name":"Rex","chip":"77","owner":"Eve"}`, single, pet{"1", "Rex", "", "77", "Eve"}, nil, ""},
		{"in another order", `{"owner":"Eve","race":"pug","name":"Rex","id":"1"}`, listed, pet{"1", "Rex", "pug", "", "Eve"}, nil, ""},
		{"a field of the other form is read", `{"id":"1","name":"Rex","race":"pug","chip":"77","owner":"Eve"}`, listed, pet{"1", "Rex", "pug", "77", "Eve"}, nil, ""},
		{"list form, bare", `{"id":"1"}`, listed, pet{ID: "1"}, missing("name", "race", "owner"), ""},
		{"single form, bare", `{"id":"1"}`, single, pet{ID: "1"}, missing("name", "chip", "owner"), ""},
		{"another form, bare", `{"id":"1"}`, wire.Whole, pet{ID: "1"}, missing("name"), ""},
		{"no form, bare", `{"id":"1"}`, wire.Lenient, pet{ID: "1"}, nil, ""},
		{"an empty string is not missing", `{"id":"1","name":"","race":null,"owner":""}`, listed, pet{ID: "1"}, nil, ""},
		{"required missing", `{"name":"Rex"}`, listed, pet{}, nil, "id is missing"},
		{"required missing in no form", `{"name":"Rex"}`, wire.Lenient, pet{}, nil, "id is missing"},
		{"required null", `{"id":null}`, listed, pet{}, nil, "id: expected a string"},
		{"required in another letter case", `{"ID":"1"}`, wire.Lenient, pet{}, []wire.Drift{{Path: "*", Kind: "unknown field"}}, "id is missing"},
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
	unknown := func(path string) []wire.Drift { return []wire.Drift{{Path: path, Kind: "unknown field"}} }
	for _, test := range []struct {
		name, text string
		want       pair
		drifts     []wire.Drift
	}{
		{"before", `{"x":1,"text":"a","other":2}`, pair{"a", "2"}, unknown("*")},
		{"between", `{"text":"a","x":{"text":"b"},"other":2}`, pair{"a", "2"}, unknown("*")},
		{"after", `{"text":"a","other":2,"x":[null]}`, pair{"a", "2"}, unknown("*")},
		{"several are reported once", `{"text":"a","x":1,"other":2,"y":1,"z":{"q":1}}`, pair{"a", "2"}, unknown("*")},
		{"the known name in another letter case", `{"text":"a","Text":"b","other":2}`, pair{"a", "2"}, unknown("*")},
		{"a letter that folds to a known one", `{"text":"a","other":2,"teſt":1,"\u212a":1}`, pair{"a", "2"}, unknown("*")},
		{"a known name with a space", `{"text":"a","text ":"b","other":2}`, pair{"a", "2"}, unknown("*")},
		{"the empty name", `{"text":"a","other":2,"":"b"}`, pair{"a", "2"}, unknown("*")},
		{"the known name in escapes is known", `{"\u0074ext":"a","o\u0074her":2}`, pair{"a", "2"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got pair
			r := read(t, test.text, readPair(&got))
			require.Empty(t, r.err)
			assert.Equal(t, test.drifts, r.drifts)
			assert.Equal(t, test.want, got)
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
	for _, test := range []struct {
		name, text, err string
		drifts          []wire.Drift
	}{
		{"the whole", `[]`, "expected an object", nil},
		{"a field", `{"pet":1}`, "pet: expected an object", nil},
		{"a field's field", `{"pet":{"id":"1","name":2}}`, "pet.name: expected a string", nil},
		{"names with spaces around and escapes within", `{ "pet" : { "id" : "1" , "n\u0061me" : 2 } }`, "pet.name: expected a string", nil},
		{"a required field of a field", `{"pet":{"name":"Rex","chip":"","owner":""}}`, "pet.id is missing", nil},
		{"a row", `{"rows":[1]}`, "rows[]: expected an object", nil},
		{"a row's field", `{"rows":[{"id":"1","name":"","race":"","owner":""},{"id":2.5}]}`, "rows[].id: expected a string", nil},
		{"a row's required field", `{"rows":[{}]}`, "rows[].id is missing", nil},
		{"rows that are null", `{"rows":null}`, "rows: expected an array", nil},
		{"rows that are an object", `{"rows":{}}`, "rows: expected an array", nil},
		{"an element of a list", `{"list":[{"id":"1","name":""},{"name":""}]}`, "list[].id is missing", nil},
		{"a list of another kind", `{"list":"a"}`, "list: expected an array", nil},
		{"a value in a table, whose name is data", `{"map":{"QQ":{"id":1.5}}}`, "map.*.id: expected a string", nil},
		{"after a nested value was left", `{"pet":{"id":"1","name":"","chip":"","owner":""},"list":1}`, "list: expected an array", nil},
		{"an unknown name within a field and after it", `{"pet":{"id":"1","name":"","chip":"","owner":"","QQ":1},"QQ":1}`, "", []wire.Drift{
			{Path: "pet.*", Kind: "unknown field"}, {Path: "*", Kind: "unknown field"},
		}},
		{"an unknown name within rows and after them", `{"list":[{"id":"1","name":"","QQ":1},{"id":"1","name":"","QQ":1}],"QQ":1}`, "", []wire.Drift{
			{Path: "list[].*", Kind: "unknown field"}, {Path: "*", Kind: "unknown field"},
		}},
		{"drift in every place", `{"pet":{"id":1},"rows":[{"id":2,"x":[{"y":1}]},{"id":3}],"list":null,"map":{"QQ":{"id":4,"Z":5}}}`, "", []wire.Drift{
			{Path: "pet.id", Kind: "number for string"},
			{Path: "pet.name", Kind: "missing field"},
			{Path: "pet.chip", Kind: "missing field"},
			{Path: "pet.owner", Kind: "missing field"},
			{Path: "rows[].id", Kind: "number for string"},
			{Path: "rows[].*", Kind: "unknown field"},
			{Path: "rows[].name", Kind: "missing field"},
			{Path: "rows[].race", Kind: "missing field"},
			{Path: "rows[].owner", Kind: "missing field"},
			{Path: "list", Kind: "null for array"},
			{Path: "map.*.id", Kind: "number for string"},
			{Path: "map.*.*", Kind: "unknown field"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := read(t, test.text, readBox(&box{}))
			assert.Equal(t, test.err, r.err)
			assert.Equal(t, test.drifts, r.drifts)
		})
	}
}

func TestRowsAndLists(t *testing.T) {
	t.Parallel()
	var b box
	plainly(t, read(t, `{"rows":[],"list":[ ]}`, readBox(&b)))
	assert.Equal(t, box{Rows: []pet{}, List: []pet{}}, b, "an empty array is no nil")

	b = box{Rows: []pet{{ID: "old"}}, List: []pet{{ID: "old"}}}
	r := read(t, `{"rows":[{"id":"1","name":"a","race":"b","owner":"c"},{"id":"2","name":"d","race":null,"owner":""}],"list":null}`, readBox(&b))
	require.Empty(t, r.err)
	assert.Equal(t, []pet{{"1", "a", "b", "", "c"}, {ID: "2", Name: "d"}}, b.Rows)
	assert.Nil(t, b.List, "null leaves nothing of what was there")

	for _, text := range []string{
		`{"rows":[{"id":"1","name":"","race":"","owner":""},]}`, `{"rows":[,]}`, `{"list":[{"id":"1","name":""},]}`,
	} {
		refused(t, notStrict+"a value is missing", read(t, text, readBox(&box{})))
	}
	for _, text := range []string{`{"rows":[{"id":"1"} {"id":"2"}]}`, `{"list":[{"id":"1"}}`} {
		refused(t, notStrict+"a comma or a closing bracket is missing", read(t, text, readBox(&box{})))
	}
}

// Rows grow while they are read; the strings of the rows before must not be lost.
func TestRowsInAnyOrder(t *testing.T) {
	t.Parallel()
	var b box
	plainly(t, read(t, `{"rows":[{"owner":"a","id":"1","race":"b","name":"c"},{"owner":"d","id":"2","race":"e","name":"f"},`+
		`{"id":"3","name":"g","race":"h","owner":"i"},{"id":"4","owner":"j","race":"k","name":"l"}]}`, readBox(&b)))
	assert.Equal(t, []pet{{"1", "c", "b", "", "a"}, {"2", "f", "e", "", "d"}, {"3", "g", "h", "", "i"}, {"4", "l", "k", "", "j"}}, b.Rows)

	const row = `{"owner":"a","id":"1","race":"b","name":"c"}`
	for _, again := range []string{
		`{"owner":"a","owner":"a","id":"1","race":"b","name":"c"}`, `{"owner":"a","id":"1","race":"b","name":"c","owner":"a"}`,
	} {
		refused(t, notStrict+"a field name appears twice", read(t, `{"rows":[`+row+`,`+again+`]}`, readBox(&box{})))
	}
	r := read(t, `{"rows":[`+row+`,{"owner":"a","id":"1","name":"c"}]}`, readBox(&box{}))
	require.Empty(t, r.err)
	assert.Equal(t, []wire.Drift{{Path: "rows[].race", Kind: "missing field"}}, r.drifts)
}

func TestTextsSurviveTheGrowthOfRows(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	var want []pet
	// The first row is long, so that room is guessed for too few.
	p := pet{ID: "0", Name: strings.Repeat("x", 20_000), Race: "r", Owner: "o"}
	for i := range 300 {
		fmt.Fprintf(&text, `,{"id":"%s","name":"%s","race":"r","owner":"\u006f"}`, p.ID, p.Name)
		want = append(want, p)
		p.ID, p.Name = fmt.Sprint(i+1), fmt.Sprintf("name %d", i+1)
	}
	var b box
	plainly(t, read(t, `{"rows":[`+text.String()[1:]+`]}`, readBox(&b)))
	assert.Equal(t, want, b.Rows)
}

func TestTextsSurviveTheGrowthOfAListWithinAnElement(t *testing.T) {
	t.Parallel()
	type owner struct {
		Pets  []pet
		Names []string
		Last  string
	}
	fields := []wire.FieldOf[owner]{
		{Name: "pets", Value: func(c *wire.Codec, o *owner) { wire.List(c, &o.Pets, petFields) }},
		{Name: "names", Value: func(c *wire.Codec, o *owner) { c.Strings(&o.Names) }},
		{Name: "last", Value: func(c *wire.Codec, o *owner) { c.String(&o.Last) }},
	}
	want := owner{Last: "l"}
	var pets, names []string
	for i := range 21 {
		name := fmt.Sprintf("name %d", i)
		pets = append(pets, fmt.Sprintf(`{"id":"%d","name":"%s","race":"r","owner":"\u006f"}`, i, name))
		names = append(names, fmt.Sprintf("%q", name))
		want.Pets = append(want.Pets, pet{ID: fmt.Sprint(i), Name: name, Race: "r", Owner: "o"})
		want.Names = append(want.Names, name)
	}
	one := `{"pets":[` + strings.Join(pets, ",") + `],"names":[` + strings.Join(names, ",") + `],"last":"l"}`
	var owners []owner
	r := read(t, `[`+one+`,`+one+`]`, func(c *wire.Codec) { wire.Rows(c, &owners, fields, wire.Whole) })
	require.Empty(t, r.err)
	assert.Equal(t, []owner{want, want}, owners)
}

func TestRoomForRowsIsGuessedWithinBounds(t *testing.T) {
	t.Parallel()
	row := `{"id":"1","name":"` + strings.Repeat("x", 80) + `","race":"r","owner":"o"}`
	var b box
	plainly(t, read(t, `{"rows":[`+strings.Repeat(row+",", 99)+row+`]}`, readBox(&b)))
	assert.Len(t, b.Rows, 100)
	assert.LessOrEqual(t, cap(b.Rows), 110, "rows of one size are given room for themselves, and little more")

	// A first row of ten bytes promises a million rows and is not believed.
	b = box{}
	r := read(t, `{"rows":[{"id":"1"},{"id":"2","name":"`+strings.Repeat("x", 10_000_000)+`"}]}`, readBox(&b))
	require.Empty(t, r.err)
	assert.Len(t, b.Rows, 2)
	assert.LessOrEqual(t, cap(b.Rows), 2)

	// Nor are a million objects within a row, which begin as it does: the room stays
	// within what rows may cost.
	b = box{}
	text := `{"rows":[{"id":"1","x":[` + strings.Repeat(`{"id":1},`, 999_999) + `{"id":1}]}]}`
	r = read(t, text, readBox(&b))
	require.Empty(t, r.err)
	assert.Len(t, b.Rows, 1)
	assert.LessOrEqual(t, cap(b.Rows)*int(unsafe.Sizeof(pet{})), 4*len(text)+256<<10)

	// A list within an element guesses nothing from what follows the element.
	b = box{}
	r = read(t, `{"list":[{"id":"1"}],"rows":[{"id":"2","name":"`+strings.Repeat("x", 100_000)+`"}]}`, readBox(&b))
	require.Empty(t, r.err)
	assert.LessOrEqual(t, cap(b.List), 4)
}

// Not parallel: memory is counted. Lists that grow by doubling cost twice the room
// and a copy of everything.
func TestRoomForRowsIsAllocatedOnce(t *testing.T) {
	const n = 300
	row := func(i, length int) string {
		return fmt.Sprintf(`{"id":"%d","name":"%s","race":"r","owner":"o"}`, i, strings.Repeat("x", length))
	}
	oneOf := func(at, length int) func(int) int {
		return func(i int) int {
			if i == at {
				return length
			}
			return 80
		}
	}
	for name, length := range map[string]func(i int) int{
		"rows of one length":  oneOf(0, 80),
		"a long row first":    oneOf(0, 2000),
		"a long row last":     oneOf(n-1, 2000),
		"a short row first":   oneOf(0, 0),
		"longer and longer":   func(i int) int { return i },
		"shorter and shorter": func(i int) int { return n - i },
	} {
		for separator, between := range map[string]string{"": ",", ", with white space": " ,\n "} {
			t.Run(name+separator, func(t *testing.T) {
				var list []string
				texts := 0
				for i := range n {
					list = append(list, row(i, length(i)))
					texts += 2*length(i) + 16 // at the end of what strings share there may be no room for the next
				}
				body := []byte("[" + strings.Join(list, between) + "]")
				var rows []pet
				least := wiretest.LeastBytes(func() {
					c := wire.NewReader(body, false)
					wire.Rows(c, &rows, petFields, listed)
					c.End()
					require.Nil(t, c.Err())
				})
				assert.Len(t, rows, n)
				assert.LessOrEqual(t, cap(rows), n+1)
				room := n * int(unsafe.Sizeof(pet{}))
				assert.LessOrEqual(t, least, room+texts+texts/8+room/16)
			})
		}
	}
}

// Where rows begin with different names, those that were read tell how many are left.
func TestRoomForRowsThatBeginDifferently(t *testing.T) {
	for name, lengths := range map[string][2]int{"of one length": {80, 80}, "a long one first": {800, 80}} {
		t.Run(name, func(t *testing.T) {
			list := []string{`{"owner":"o","id":"0","name":"` + strings.Repeat("x", lengths[0]) + `","race":"r"}`}
			for i := range 999 {
				list = append(list, fmt.Sprintf(`{"id":"%d","name":"%s","race":"r","owner":"o"}`, i, strings.Repeat("x", lengths[1])))
			}
			var b box
			plainly(t, read(t, `{"rows":[`+strings.Join(list, ",")+`]}`, readBox(&b)))
			assert.Len(t, b.Rows, 1000)
			assert.LessOrEqual(t, cap(b.Rows), 1200)
		})
	}
}

// All strings of an element are parts of one, one after the other.
func TestStringsOfAnElementShareOne(t *testing.T) {
	t.Parallel()
	var b box
	plainly(t, read(t, `{"rows":[{"id":"12","name":"\u0052ex","race":"pug","owner":"Eve"},{"id":"3","name":"Tom","race":"","owner":"Eve"}]}`, readBox(&b)))
	at := func(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
	first, second := b.Rows[0], b.Rows[1]
	assert.Equal(t, at(first.ID)+2, at(first.Name))
	assert.Equal(t, at(first.Name)+3, at(first.Race))
	assert.Equal(t, at(first.Race)+3, at(first.Owner))
	assert.Equal(t, at(second.ID)+1, at(second.Name))
	assert.Equal(t, at(second.Name)+3, at(second.Owner))
}

type strip struct{ Strings [40]string }

// Not parallel: other tests would allocate in between.
func TestStringsOfAnElementCostOneAllocation(t *testing.T) {
	fields := make([]wire.FieldOf[strip], 40)
	for i := range fields {
		fields[i] = wire.FieldOf[strip]{Name: fmt.Sprintf("m%d", i), Value: func(c *wire.Codec, s *strip) { c.String(&s.Strings[i]) }}
	}
	allocations := func(n int) float64 {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"m%d":"text %d"`, i, i)
		}
		body := []byte(`[{` + strings.Join(list, ",") + `}]`)
		var rows []strip
		return testing.AllocsPerRun(200, func() {
			c := wire.NewReader(body, false)
			wire.Rows(c, &rows, fields, wire.Lenient)
			c.End()
			require.Nil(t, c.Err())
		})
	}
	// A pool may drop a reader at any time, and under the race detector does;
	// its buffers grow by doubling. One allocation a string would be 39 more.
	assert.Less(t, allocations(40)-allocations(1), 15.0)
}

func TestTheTextIsNotKept(t *testing.T) {
	t.Parallel()
	body := []byte(`{"rows":[{"id":"12","name":"Rex","race":"\u0070ug","owner":"Eve"}],"list":[{"id":"1","name":"Tom"}]}`)
	var b box
	c := wire.NewReader(body, true)
	readBox(&b)(c)
	c.End()
	require.Nil(t, c.Err())
	clear(body) // the transport clears a body that was read
	assert.Equal(t, []pet{{"12", "Rex", "pug", "", "Eve"}}, b.Rows)
	assert.Equal(t, []pet{{ID: "1", Name: "Tom"}}, b.List)
}

func TestDriftsAreKeptOnceAndUpToAHundred(t *testing.T) {
	t.Parallel()
	fields := make([]wire.FieldOf[struct{}], 60)
	var all []wire.Drift
	for i := range fields {
		fields[i] = wire.FieldOf[struct{}]{Name: fmt.Sprintf("m%02d", i), Value: func(*wire.Codec, *struct{}) {}}
	}
	for _, holder := range []string{"a", "b"} {
		for i := range fields {
			all = append(all, wire.Drift{Path: fmt.Sprintf("%s.m%02d", holder, i), Kind: "missing field"})
		}
	}
	empty := func(c *wire.Codec, v *struct{}) { wire.Object(c, v, fields, wire.Whole) }
	holder := []wire.FieldOf[struct{}]{{Name: "a", Value: empty}, {Name: "b", Value: empty}}
	r := read(t, `[{"a":{},"b":{}},{"a":{},"b":{}}]`, func(c *wire.Codec) {
		c.Each(func() {
			var v struct{}
			wire.Object(c, &v, holder, wire.Whole)
		})
	})
	require.Empty(t, r.err)
	for i := range all {
		all[i].Path = "[]." + all[i].Path
	}
	assert.Equal(t, all[:100], r.drifts)
}

func TestOneFieldMayDriftInTwoWays(t *testing.T) {
	t.Parallel()
	var list []string
	r := read(t, `[1,null,2,null]`, func(c *wire.Codec) {
		c.Each(func() {
			var s string
			c.Code(&s)
			list = append(list, s)
		})
	})
	require.Empty(t, r.err)
	assert.Equal(t, []wire.Drift{{Path: "[]", Kind: "number for string"}, {Path: "[]", Kind: "null for string"}}, r.drifts)
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
	for _, test := range []struct {
		name, text, err string
		want            letter
		drifts          []wire.Drift
	}{
		{name: "first", text: `{"data":{"id":"1","name":"Rex"},"head":"h"}`, want: letter{Head: "h", Pet: pet{ID: "1", Name: "Rex"}}},
		{name: "last", text: `{"head":"\u0068","data":{"id":"1","name":"Rex"}}`, want: letter{Head: "h", Pet: pet{ID: "1", Name: "Rex"}}},
		{
			name: "drift has the path", text: `{"data":{"id":1,"name":"Rex"},"head":"h"}`,
			want: letter{Head: "h", Pet: pet{ID: "1", Name: "Rex"}}, drifts: []wire.Drift{{Path: "data.id", Kind: "number for string"}},
		},
		{name: "errors have the path", text: `{"data":{"id":"1","name":true},"head":"h"}`, err: "data.name: expected a string"},
		{
			name: "many unknown fields before and after", text: `{` + fieldList(20, plainName) + `,"data":{"id":"1","name":"Rex"},"head":"h","x":1}`,
			want: letter{Head: "h", Pet: pet{ID: "1", Name: "Rex"}}, drifts: []wire.Drift{{Path: "*", Kind: "unknown field"}},
		},
		{
			name: "unknown fields in data", text: `{"x":1,"data":{"id":"1","x":1,"name":"Rex"},"head":"h"}`,
			want: letter{Head: "h", Pet: pet{ID: "1", Name: "Rex"}}, drifts: []wire.Drift{{Path: "*", Kind: "unknown field"}, {Path: "data.*", Kind: "unknown field"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var l letter
			c := wire.NewReader([]byte(test.text), true)
			wire.Object(c, &l, letterFields, wire.Whole)
			c.End()
			require.Nil(t, c.Err())
			c.Rewind(l.data)
			wire.Object(c, &l.Pet, petFields, wire.Whole)
			if test.err != "" {
				require.NotNil(t, c.Err())
				assert.Equal(t, test.err, c.Err().Error())
				return
			}
			require.Nil(t, c.Err())
			l.data = wire.Mark{}
			assert.Equal(t, test.want, l)
			assert.Equal(t, test.drifts, c.Drifts())
		})
	}
}

// patient skips its data where that is of the wrong kind, and goes on.
type patient struct {
	Before, After, Wrong string
	Pet                  pet
}

var patientFields = []wire.FieldOf[patient]{
	{Name: "before", Value: func(c *wire.Codec, p *patient) { c.String(&p.Before) }},
	{Name: "data", Value: func(c *wire.Codec, p *patient) {
		mark := c.Mark()
		wire.Object(c, &p.Pet, petFields, wire.Whole)
		if err := c.Err(); err != nil && !err.Malformed {
			p.Wrong = err.Error()
			c.Rewind(mark)
			c.Skip()
			p.Pet = pet{}
		}
	}},
	{Name: "after", Value: func(c *wire.Codec, p *patient) { c.String(&p.After) }},
}

func TestRewindForgetsAnErrorAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text, err string
		want            patient
	}{
		{"the strings before are kept", `{"before":"b","data":{"id":"1","name":7},"after":"a"}`, "", patient{Before: "b", After: "a", Wrong: "data.name: expected a string"}},
		{"not even an object", `{"before":"b","data":[{"id":"1"}],"after":"a"}`, "", patient{Before: "b", After: "a", Wrong: "data: expected an object"}},
		{"deep within", `{"before":"b","data":{"x":[[{"y":1}]],"id":{"z":[1]}},"after":"a"}`, "", patient{Before: "b", After: "a", Wrong: "data.id: expected a string"}},
		{"the strings after are not handed out", `{"before":"b","data":{"id":"1","name":"Rex","chip":true},"after":"a"}`, "", patient{Before: "b", After: "a", Wrong: "data.chip: expected a string"}},
		{"a name within and after", `{"data":{"z":1,"id":7.5},"z":1,"after":"a"}`, "", patient{After: "a", Wrong: "data.id: expected a string"}},
		{"what follows must be sound", `{"data":{"id":7.5,"name":"a" "b"}}`, notStrict + "a comma or a closing bracket is missing", patient{}},
		{"a name before and after", `{"x":1,"data":{"id":7.5},"x":1}`, notStrict + "a field name appears twice", patient{}},
		{"data twice", `{"data":{"id":7.5},"data":{"id":7.5}}`, notStrict + "a field name appears twice", patient{}},
		{"a wrong kind that is no JSON", `{"data":tru}`, notStrict + "a value is misspelled", patient{}},
		{"an error after it", `{"data":1,"after":2}`, "after: expected a string", patient{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got patient
			r := read(t, test.text, func(c *wire.Codec) { wire.Object(c, &got, patientFields, wire.Lenient) })
			assert.Equal(t, test.err, r.err)
			if test.err == "" {
				assert.Equal(t, test.want, got)
			}
		})
	}
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
	read := func(text string) *wire.Error {
		c := wire.NewReader([]byte(text), false)
		var list []large
		wire.Rows(c, &list, fields, wire.Whole)
		c.End()
		return c.Err()
	}
	tiny := func(n int) string { return "[" + strings.Repeat(`{"n":""},`, n) + `{"n":""}]` }
	assert.Nil(t, read(tiny(200)))
	worthy := `{"n":"` + strings.Repeat("x", 500) + `"}`
	assert.Nil(t, read("["+strings.Repeat(worthy+",", 5000)+worthy+"]"))
	require.NotNil(t, read(tiny(5000)))
	assert.True(t, read(tiny(5000)).Malformed)
}
