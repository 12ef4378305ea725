package cardwire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestCardCapacity(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/account/capacity", `{"code":200,"msg":"success","data":250}`,
		cardwire.WithStrictDrift())
	got, err := c.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(250), got)
}

func TestCardCapacityQuirks(t *testing.T) {
	t.Parallel()
	capacity := (*cardwire.Client).CardCapacity
	for data, want := range map[string]int64{`0`: 0, `-9223372036854775808`: -9223372036854775808} {
		wiretest.ReadsQuirk(t, wiretest.Anything, wiretest.Success(data), capacity, want, nil)
	}
	for data, kind := range map[string]string{
		`"250"`: "string for number", `250.0`: "decimal for integer", `25e1`: "decimal for integer",
	} {
		wiretest.ReadsQuirk(t, wiretest.Anything, wiretest.Success(data), capacity, 250,
			[]cardwire.Drift{{"data", kind}})
	}
	for _, data := range []string{`null`, `""`, `250.5`, `"250.0"`, `1e19`, `{"capacity":250}`} {
		got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data)).CardCapacity(t.Context())
		assert.Zero(t, got, data)
		require.ErrorIs(t, err, cardwire.ErrUnreadable, data)
		require.ErrorContains(t, err, ": data: expected an integer", data)
	}
}
