package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// repeatedNames are the two texts that every parser must accept by the suite's
// will, and that repeat a field name, which is refused here.
var repeatedNames = []string{"y_object_duplicated_key", "y_object_duplicated_key_and_value"}

// What a parser may accept or refuse, or read in its own way, is read as the standard library reads it.
func TestJSONTestSuite(t *testing.T) {
	t.Parallel()
	for _, f := range jsonsuite.Files(t) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			_, want := value(f.Text)
			switch f.Kind {
			case jsonsuite.Accepted:
				want = !slices.Contains(repeatedNames, f.Name)
			case jsonsuite.Refused:
				want = false
			}
			if len(f.Text) < 10<<10 { // what is deeper is refused, for which there is a policy
				agrees(t, f.Text)
				agrees(t, around(`{"inner":{"text":"a","list":[{"other":`, f.Text, `}]}}`))
				agrees(t, around(`{"text":`, f.Text, `}`))
			}
			_, ok := value(f.Text)
			assert.Equal(t, want, ok, "read")
			assert.Equal(t, want, accepted(f.Text, skip), "skipped")
			assert.Equal(t, want, accepted(around(`[0,`, f.Text, `,0]`), skip), "an element")
			assert.Equal(t, want, accepted(around(`{"x":`, f.Text, `}`), skip), "a field's value")
			var p pair
			known := around(`{"other":`, f.Text, `,"text":"a"}`)
			assert.Equal(t, want, accepted(known, readPair(&p)), "a known field's value")
			asCode := accepted(f.Text, func(c *wire.Codec) { wire.IntOf(c, new(int), wire.Exact) })
			assert.Equal(t, f.Name == "y_structure_lonely_int", asCode, "a code")
		})
	}
}
