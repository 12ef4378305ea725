package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
)

// repeatedNames are the two texts that every parser must accept by the suite's
// will, and that repeat a field name, which is refused here.
var repeatedNames = []string{
	"test_parsing/y_object_duplicated_key.json", "test_parsing/y_object_duplicated_key_and_value.json",
}

// What the suite says of a text is in its name. What a parser may accept or refuse is read as the
// standard library reads it.
func TestJSONTestSuite(t *testing.T) {
	t.Parallel()
	for name, text := range jsonsuite.Files(t) {
		want := jsonsuite.Strict(text, 64)
		switch {
		case slices.Contains(repeatedNames, name), strings.HasPrefix(name, "test_parsing/n_"):
			want = false
		case strings.HasPrefix(name, "test_parsing/y_"):
			want = true
		}
		assert.Equal(t, want, accepted(text, skip), name)
	}
}
