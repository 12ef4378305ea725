package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

func TestIsBare(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"<html>": true, "Unauthorized": true, "[1]": true, `"{"`: true, "\n\t denied": true, "\ufeffno": true,
		`{"code":401}`: false, " \r\n{": false, "\ufeff{}": false, "\ufeff \ufeff{}": false, "\x00{": false,
		"\xff\xfe{": false,
		"\u00a0{":   false, "\u2003\v\f{": false,
	} {
		assert.Equal(t, want, wire.IsBare([]byte(body), true), "%q", body)
		assert.Equal(t, want, wire.IsBare([]byte(body), false), "%q, cut off", body)
	}
	for _, empty := range []string{"", " \r\n", "\ufeff"} {
		assert.True(t, wire.IsBare([]byte(empty), true), "%q", empty)
		assert.False(t, wire.IsBare([]byte(empty), false), "%q, cut off: it may have been an envelope", empty)
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	const reference = "Order-7"
	for data, want := range map[string]bool{
		`"Order-7"`: true, `"order-7"`: true, `"the order (ORDER-7) exists"`: true, `"Order-77, Order-7"`: true,
		`"éOrder-7 Order-7."`:     true,
		`{"a":[{"b":"Order-7"}]}`: true, `[0,"x","Order-7",null]`: true, `["Order-7","x"]`: true, `{"order-7":1}`: true,
		`{"a":"Order-7","b":"x","c":1}`: true, `{"ORDER-7":1,"b":2}`: true,
		`"Order-77"`: false, `"1Order-7"`: false, `"éOrder-7"`: false, `"Order-7é"`: false, `"Order-"`: false,
		`""`:             false,
		`{"Order-77":1}`: false, `{"my Order-7":1}`: false, `null`: false, `[]`: false, `{}`: false, `7`: false,
		`true`: false,
	} {
		assert.Equal(t, want, mentions(t, `{"data":`+data+`,"msg":"Order-7"}`, reference), data)
	}
	assert.True(t, mentions(t, `{"data":[12,1234]}`, "1234"))
	assert.True(t, mentions(t, `{"data":[1234,12]}`, "1234"))
	assert.False(t, mentions(t, `{"data":[12345,1234.0]}`, "1234"))
}

// mentions asks for the data of an envelope that was read as a whole before.
func mentions(t *testing.T, text, reference string) bool {
	t.Helper()
	var l letter
	c := wire.NewReader([]byte(text), false)
	wire.Object(c, &l, letterFields, wire.Lenient)
	require.Nil(t, c.Err())
	return c.Mentions(l.data, reference)
}

func TestWhatCannotBeReadMayMentionAnything(t *testing.T) {
	t.Parallel()
	c := wire.NewReader([]byte(`{"data":{"a":1,"a":2}}`), false)
	var at wire.Mark
	c.Map(func([]byte) { at = c.Mark(); c.Skip() })
	require.NotNil(t, c.Err())
	assert.True(t, c.Mentions(at, "Order-7"))
}
