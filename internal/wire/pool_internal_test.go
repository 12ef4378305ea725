package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader that is given back keeps its buffers, and must keep nothing that
// stood in them: a payload would stay in memory for as long as the process.
func TestReleaseLeavesNothingOfThePayload(t *testing.T) {
	canary := []byte("QQcanary")
	var a, b string
	fields := []FieldOf[struct{}]{
		{Name: "a", Value: func(c *Codec, _ *struct{}) { c.String(&a) }},
		{Name: "b", Value: func(c *Codec, _ *struct{}) { c.String(&b) }},
	}
	c := NewReader([]byte(`{"QQcanary1":1,"\u0051Qcanary2":2,"a":"QQcanary","b":"QQ\u0063anary","QQcanary3":0,"x":`), true)
	var none struct{}
	Object(c, &none, fields, Whole) // it ends too early, so nothing was handed out
	require.NotNil(t, c.Err())
	c.Masking = true

	slab, scratch := c.slab[:cap(c.slab)], c.scratch[:cap(c.scratch)]
	pending, names := c.pending[:cap(c.pending)], c.names[:cap(c.names)]
	require.True(t, bytes.Contains(slab, canary), "the string must have been there for the test to mean anything")
	require.True(t, bytes.Contains(scratch, canary))
	require.NotNil(t, pending[0].dst)
	require.True(t, bytes.Contains(names[0], canary))
	c.Release()

	assert.Equal(t, make([]byte, len(slab)), slab)
	assert.Equal(t, make([]byte, len(scratch)), scratch)
	assert.Equal(t, make([]pendingString, len(pending)), pending)
	assert.Equal(t, make([][]byte, len(names)), names)
	assert.Nil(t, c.buf)
	assert.Nil(t, c.err)
	assert.Nil(t, c.drifts)
	assert.Nil(t, c.out)
	assert.Empty(t, c.path)
	assert.False(t, c.observe || c.Masking || c.writing)
}

// Strings that were handed out are in the buffers still, beyond their length.
func TestReleaseLeavesNothingOfWhatWasHandedOut(t *testing.T) {
	c := NewReader([]byte(`"QQ\u0063anary"`), true)
	var text string
	c.String(&text)
	c.End()
	require.Equal(t, "QQcanary", text)

	slab, scratch, pending := c.slab[:cap(c.slab)], c.scratch[:cap(c.scratch)], c.pending[:cap(c.pending)]
	require.True(t, bytes.Contains(slab, []byte(text)))
	require.True(t, bytes.Contains(scratch, []byte(text)))
	c.Release()

	assert.Equal(t, make([]byte, len(slab)), slab)
	assert.Equal(t, make([]byte, len(scratch)), scratch)
	assert.Equal(t, make([]pendingString, len(pending)), pending)
}

// Amounts are payload too, and the next reader is not to know them.
func TestReleaseForgetsAmounts(t *testing.T) {
	c := NewReader([]byte(`"12.34"`), false)
	var sum decimal.Decimal
	c.DecimalString(&sum)
	known := c.amounts
	require.True(t, slices.ContainsFunc(known.places[:], func(a amount) bool { return a.coefficient == 1234 }))
	c.Release()

	assert.Zero(t, *known)
	assert.Equal(t, "12.34", sum.String())
}

// A reader that comes out of the pool reads as a new one does, whatever it was
// left in the middle of.
func TestAUsedReaderIsAsGoodAsNew(t *testing.T) {
	for _, left := range []string{
		`{"a":"b","c":[{"d":"\u0065"`, `[[[[{"x":1,"x":2}`, `{"a":1}x`, `"\ud800"`, `"` + "\xff", ``, `{"a":{"a":{"a":tru`,
	} {
		c := NewReader([]byte(left), true)
		c.Masking = true
		var text string
		c.Each(func() { c.String(&text) })
		c.Map(func([]byte) { c.String(&text); c.Skip() })
		c.End()
		c.Release()

		c = NewReader([]byte(`{"a":"b"}`), true)
		var got string
		fields := []FieldOf[struct{}]{{Name: "a", Required: true, Value: func(c *Codec, _ *struct{}) { c.String(&got) }}}
		var none struct{}
		Object(c, &none, fields, Whole)
		c.End()
		assert.Nil(t, c.Err(), "after %q", left)
		assert.Equal(t, "b", got, "after %q", left)
		assert.Empty(t, c.Drifts(), "after %q", left)
		assert.False(t, c.Masking, "after %q", left)
		c.Release()
	}
}

// Whatever was read, and however it ended, nothing of it is left in what goes
// back to the pool, also where that grew.
func TestReleaseLeavesNothingWhateverWasRead(t *testing.T) {
	const canary = "4917365624401735"
	escaped := `\u0034917365624401735`
	long := strings.Repeat(escaped, maxKept/len(canary)+1)
	var names strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&names, `"%s%d":"%s",`, escaped, i, escaped)
	}
	whole := `{"a":"` + canary + `","b":"` + escaped + `","` + canary + `":{"` + escaped + `":["` + escaped + `",{"x":"` + escaped + `"}]},"l":["` + canary + `","` + escaped + `"]}`
	texts := []string{
		whole, `{"a":"` + long + `","b":"` + long + `"}`, `{` + names.String() + `"a":"` + canary + `"}`, `{"` + long + `":1}`,
		`{"a":"` + escaped + `","a":1}`, `{"a":"` + escaped + `\ud800"}`, `{"b":"` + escaped + "\xff\"}", `{"b":"` + escaped + `"}x`,
	}
	for i := range whole {
		texts = append(texts, whole[:i])
	}
	for _, text := range texts {
		var a string
		var list []string
		fields := []FieldOf[struct{}]{
			{Name: "a", Value: func(c *Codec, _ *struct{}) { c.String(&a) }},
			{Name: "b", Value: func(c *Codec, _ *struct{}) { _ = c.CodeBytes() }},
			{Name: "l", Value: func(c *Codec, _ *struct{}) { c.Strings(&list) }},
		}
		c := NewReader([]byte(text), true)
		var none struct{}
		Object(c, &none, fields, Whole)
		c.End()
		slab, scratch, pending, kept := c.slab[:cap(c.slab)], c.scratch[:cap(c.scratch)], c.pending[:cap(c.pending)], c.names[:cap(c.names)]
		c.Release()
		name := text[:min(len(text), 60)]
		assert.Equal(t, -1, bytes.IndexFunc(slab, func(r rune) bool { return r != 0 }), name)
		assert.Equal(t, -1, bytes.IndexFunc(scratch, func(r rune) bool { return r != 0 }), name)
		for _, p := range pending {
			assert.Zero(t, p, name)
		}
		for _, n := range kept {
			assert.Nil(t, n, name)
		}
		assert.LessOrEqual(t, cap(c.scratch), maxKept, name)
		assert.LessOrEqual(t, cap(c.slab), maxKept, name)
	}
}
