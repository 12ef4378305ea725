package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// named are fields with these names and values, in turns.
func named(pairs ...string) (f wire.Fields) {
	for i := 0; i < len(pairs); i += 2 {
		f = append(f, wire.Field{Name: pairs[i], Value: pairs[i+1]})
	}
	return f
}

func TestDigestDoesNotDependOnTheOrderOfNames(t *testing.T) {
	t.Parallel()
	for _, f := range []wire.Fields{
		named("a", "1", "b", "2", "c", "3"),
		named("a\x00", "b", "a", "\x00b", "", "a\x00\x00b"),
	} {
		given := slices.Clone(f)
		want := f.Digest()
		assert.Equal(t, given, f, "the fields are written in their own order afterwards")
		for _, o := range [][]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			assert.Equal(t, want, wire.Fields{f[o[0]], f[o[1]], f[o[2]]}.Digest(), "%q", f)
		}
	}
	pays, paysOther := named("to", "Ann", "to", "Bob", "sum", "1", "sum", "2"),
		named("sum", "2", "sum", "1", "to", "Ann", "to", "Bob")
	assert.NotEqual(t, pays.Digest(), paysOther.Digest(), "the values of a name may belong to those of another")
}
