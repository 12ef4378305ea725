package wire_test

import (
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// notStrict is how the error of a text that is no strict JSON begins.
const notStrict = "the response is not strict JSON: "

// result is what came of reading one text.
type result struct {
	err    string
	drifts []wire.Drift
}

// read has read take one value from text, checks that it is all there is, and
// gives what was found. The value that read fills is complete afterwards.
func read(t testing.TB, text string, read func(*wire.Codec)) result {
	t.Helper()
	c := wire.NewReader([]byte(text), true)
	read(c)
	c.End()
	r := result{drifts: c.Drifts()}
	if err := c.Err(); err != nil {
		r.err = err.Error()
		assert.Equal(t, err.Malformed, len(r.err) > len(notStrict) && r.err[:len(notStrict)] == notStrict)
	}
	return r
}

// refused asserts that text was not read, and why.
func refused(t testing.TB, want string, r result) {
	t.Helper()
	assert.Equal(t, want, r.err)
}

// plainly asserts that text was read, and that nothing about it was odd.
func plainly(t testing.TB, r result) {
	t.Helper()
	require.Empty(t, r.err)
	assert.Empty(t, r.drifts)
}

// exactly shows a decimal with its scale, which its own String would drop:
// "12.340" is "12340e-3".
func exactly(d decimal.Decimal) string {
	return fmt.Sprintf("%se%d", d.Coefficient(), d.Exponent())
}

// pair is an object with one string and any other value.
type pair struct{ Text, Other string }

var pairFields = []wire.FieldOf[pair]{
	{Name: "text", Value: func(c *wire.Codec, p *pair) { c.String(&p.Text) }},
	{Name: "other", Value: func(c *wire.Codec, p *pair) { p.Other = string(c.Span()) }},
}

func readPair(p *pair) func(*wire.Codec) {
	return func(c *wire.Codec) { wire.Object(c, p, pairFields, wire.Whole) }
}
