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
	for name, tc := range map[string]struct {
		data  string
		want  int64
		drift []cardwire.Drift
	}{
		"a number":          {`250`, 250, nil},
		"none":              {`0`, 0, nil},
		"below zero":        {`-1`, -1, nil},
		"the greatest":      {`9223372036854775807`, 9223372036854775807, nil},
		"a number as text":  {`"250"`, 250, []cardwire.Drift{{"data", "string for number"}}},
		"spaces around it":  {" \n250\t", 250, nil},
		"the lowest number": {`-9223372036854775808`, -9223372036854775808, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wiretest.ReadsQuirk(t, "GET /shop/api/v1/account/capacity", wiretest.Success(tc.data), (*cardwire.Client).CardCapacity, tc.want, tc.drift)
		})
	}
}

func TestUnreadableCardCapacity(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`null`, `true`, `""`, `"many"`, `250.0`, `25e1`, `9223372036854775808`, `-9223372036854775809`, `"007"`, `[250]`, `{"capacity":250}`,
	} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data)).CardCapacity(t.Context())
			assert.Zero(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			require.ErrorContains(t, err, ": data: expected an integer")
		})
	}
}

func TestCardCapacityUnderStrictDrift(t *testing.T) {
	t.Parallel()
	got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`"250"`), cardwire.WithStrictDrift()).CardCapacity(t.Context())
	require.ErrorIs(t, err, cardwire.ErrDrift)
	require.ErrorIs(t, err, cardwire.ErrExecuted)
	assert.Equal(t, int64(250), got, "the value is returned together with the error")
}
