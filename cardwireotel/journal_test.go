package cardwireotel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cardwire/cardwire-go/cardwireotel"
)

// gauges are what the reader finds: "unit value" by the name.
func gauges(t *testing.T, reader *sdkmetric.ManualReader) (values map[string]any, err error) {
	t.Helper()
	var all metricdata.ResourceMetrics
	err = reader.Collect(t.Context(), &all)
	values = map[string]any{}
	for _, scope := range all.ScopeMetrics {
		assert.Equal(t, cardwireotel.ScopeName, scope.Scope.Name)
		for _, m := range scope.Metrics {
			assert.NotEmpty(t, m.Description)
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				require.Len(t, data.DataPoints, 1)
				assert.Equal(t, 0, data.DataPoints[0].Attributes.Len())
				values[m.Name+" "+m.Unit] = data.DataPoints[0].Value
			case metricdata.Gauge[float64]:
				require.Len(t, data.DataPoints, 1)
				assert.Equal(t, 0, data.DataPoints[0].Attributes.Len())
				values[m.Name+" "+m.Unit] = data.DataPoints[0].Value
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	return values, err
}

func TestTheJournalHasGauges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		var asked int
		var oldest time.Time
		var inProgress, unresolved int64
		registration, err := cardwireotel.ObserveJournal(func(context.Context) (int64, int64, time.Time, error) {
			asked++
			return inProgress, unresolved, oldest, nil
		}, cardwireotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		require.NoError(t, err)
		assert.Equal(t, 0, asked, "it is asked where the numbers are collected")

		for _, tc := range []struct {
			name                   string
			inProgress, unresolved int64
			oldest                 time.Time
			age                    float64
		}{
			{"nothing", 0, 0, time.Time{}, 0},
			{"an outage", 3, 7, time.Now().Add(-90 * time.Second), 90},
			{"a clock that differs", 0, 1, time.Now().Add(time.Hour), 0},
		} {
			inProgress, unresolved, oldest, asked = tc.inProgress, tc.unresolved, tc.oldest, 0
			values, err := gauges(t, reader)
			require.NoError(t, err, tc.name)
			assert.Equal(t, map[string]any{
				"cardwire.journal.in_progress {intent}":    tc.inProgress,
				"cardwire.journal.unresolved {intent}":     tc.unresolved,
				"cardwire.journal.oldest_unresolved.age s": tc.age,
			}, values, tc.name)
			assert.Equal(t, 1, asked, "once for all three: %s", tc.name)
		}

		require.NoError(t, registration.Unregister())
		values, err := gauges(t, reader)
		require.NoError(t, err)
		assert.Empty(t, values)
	})
}

// Zeros would look as if all were well.
func TestAJournalThatCannotBeAskedHasNoGauges(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	down := errors.New("the database is down")
	_, err := cardwireotel.ObserveJournal(func(context.Context) (int64, int64, time.Time, error) {
		return 1, 2, time.Now(), down
	}, cardwireotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	require.NoError(t, err)
	values, err := gauges(t, reader)
	require.ErrorIs(t, err, down)
	assert.Empty(t, values)
}

func TestAJournalNeedsItsNumbers(t *testing.T) {
	t.Parallel()
	_, err := cardwireotel.ObserveJournal(nil)
	assert.EqualError(t, err, "cardwireotel: ObserveJournal: the function is nil")
}
