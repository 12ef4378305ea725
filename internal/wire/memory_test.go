package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// Not parallel: allocations are counted. A buffer that grew with the text would
// be allocated dozens of times.
func TestALongTextWithEscapesTakesOneBuffer(t *testing.T) {
	text := []byte(`"\u0041` + strings.Repeat("a", 1<<20) + `"`)
	assert.LessOrEqual(t, testing.AllocsPerRun(3, func() {
		c := wire.NewReader(text, false)
		c.Skip()
	}), 5.0)
}
