package wire_test

import (
	"math"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

func TestMarshalAndUnmarshal(t *testing.T) {
	t.Parallel()
	const within = `"texts":[],"amount":"0","figure":0,"inner":null,"list":[],"code":"","present":"",` +
		`"int64":0,"pets":[]`
	const whole = `{"text":"say \"é\"","null":"n","id":"i1","int":-12,"count":3,"number":-9223372036854775808,` +
		`"flag":1,"bool":true,"texts":["a","\\"],"amount":"12.340","figure":-0.05,"inner":null,"list":[` +
		`{"text":"","null":"","id":"2","int":0,"count":0,"number":0,"flag":0,"bool":false,` + within + `},` +
		`{"text":"t","null":"","id":"3","int":0,"count":0,"number":0,"flag":0,"bool":false,` + within + `}],` +
		`"code":"c7","present":"p","int64":9223372036854775807,` +
		`"pets":[{"id":"4","name":"","race":"","chip":"5","owner":""}]}`
	want := thing{
		Text: `say "é"`, Null: "n", Code: "c7", Present: "p", ID: "i1", Int: -12, Count: 3, Int64: most,
		Number: math.MinInt64, Flag: true, Bool: true, Texts: []string{"a", `\`}, Amount: decimal.New(12340, -3),
		Figure: decimal.New(-5, -2), List: []thing{{ID: "2"}, {ID: "3", Text: "t"}}, Pets: []pet{{ID: "4", Chip: "5"}},
	}
	text, err := wire.Marshal(&want, thingFields())
	require.NoError(t, err)
	assert.Equal(t, whole, string(text))

	var got thing
	require.NoError(t, wire.Unmarshal([]byte(strings.ReplaceAll(whole, `"inner":null,`, "")), &got, thingFields()))
	again, err := wire.Marshal(&got, thingFields())
	require.NoError(t, err)
	assert.Equal(t, whole, string(again))
}

func TestUnmarshalLeavesAloneWhatItDoesNotFill(t *testing.T) {
	t.Parallel()
	old := pet{ID: "old", Name: "Old"}
	for _, test := range []struct {
		text string
		want pet
		err  string
	}{
		{` null `, old, ""},
		{`{"id":"1"}`, pet{ID: "1"}, ""}, // nothing of the old pet is mixed into the new one
		{`{"id":"1","name":null,"x":1}`, pet{ID: "1"}, ""},
		{`{"id":"1","name":7}`, old, "name: expected a string"},
		{`{"name":"Rex"}`, old, "id is missing"},
		{`[]`, old, "expected an object"},
		{`nul`, old, notStrict + "a value is misspelled"},
		{`null null`, old, notStrict + "bytes follow the end"},
		{`{"id":"1"}}`, old, notStrict + "bytes follow the end"},
		{`{"id":"1","id":"1"}`, old, notStrict + "a field name appears twice"},
		{`{"name":"a","id":"1","name":"b"}`, old, notStrict + "a field name appears twice"},
		{``, old, notStrict + "it ends too early"},
	} {
		got := old
		err := wire.Unmarshal([]byte(test.text), &got, petFields)
		if test.err == "" {
			require.NoError(t, err, test.text)
		} else {
			require.EqualError(t, err, test.err, test.text)
		}
		assert.Equal(t, test.want, got, test.text)
	}
}
