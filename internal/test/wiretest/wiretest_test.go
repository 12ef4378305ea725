package wiretest

import (
	"reflect"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
)

func TestZeroFieldsAreFoundAtAnyDepth(t *testing.T) {
	t.Parallel()
	type inner struct{ A, B string }
	type outer struct {
		Amount  decimal.Decimal
		Pointer *inner
		List    []inner
		Empty   []inner
		None    *inner
		Flag    bool
		hidden  int
	}
	v := outer{Amount: Dec("0.00"), Pointer: &inner{A: "a"}, List: []inner{{"a", "b"}, {B: "b"}}, Empty: []inner{}}
	assert.Zero(t, v.hidden)
	want := []string{"Amount", "Pointer.B", "List[].A", "Empty", "None", "Flag"}
	assert.Equal(t, want, zeroFields(reflect.ValueOf(v), ""))
}
