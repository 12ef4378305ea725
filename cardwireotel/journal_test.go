package cardwireotel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/cardwire/cardwire-go/cardwireotel"
)

func TestTheJournalHasGauges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		var asked int
		var oldest time.Time
		var inProgress, unresolved int64
		var down error
		registration, err := cardwireotel.ObserveJournal(func(context.Context) (int64, int64, time.Time, error) {
			asked++
			return inProgress, unresolved, oldest, down
		}, cardwireotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		require.NoError(t, err)
		assert.Equal(t, 0, asked, "it is asked where the numbers are collected")

		for _, tc := range []struct {
			name                   string
			inProgress, unresolved int64
			oldest                 time.Time
			age                    string
		}{
			{"nothing", 0, 0, time.Time{}, "0"},
			{"an outage", 3, 7, time.Now().Add(-90 * time.Second), "90"},
			{"a clock that differs", 0, 1, time.Now().Add(time.Hour), "0"},
		} {
			inProgress, unresolved, oldest, asked = tc.inProgress, tc.unresolved, tc.oldest, 0
			values, err := collected(t, reader)
			require.NoError(t, err, tc.name)
			assert.Equal(t, map[string]string{
				"cardwire.journal.in_progress {intent}\n":    fmt.Sprint(tc.inProgress),
				"cardwire.journal.unresolved {intent}\n":     fmt.Sprint(tc.unresolved),
				"cardwire.journal.oldest_unresolved.age s\n": tc.age,
			}, values, tc.name)
			assert.Equal(t, 1, asked, "once for all three: %s", tc.name)
		}

		down = errors.New("the database is down")
		values, err := collected(t, reader)
		require.ErrorIs(t, err, down)
		assert.Empty(t, values, "zeros would look as if all were well")

		down = nil
		require.NoError(t, registration.Unregister())
		values, err = collected(t, reader)
		require.NoError(t, err)
		assert.Empty(t, values)
	})
	_, err := cardwireotel.ObserveJournal(nil)
	assert.EqualError(t, err, "cardwireotel: ObserveJournal: the function is nil")
}
