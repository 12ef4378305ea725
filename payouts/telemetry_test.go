package payouts

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Each kind of pause is named wherever an operator meets them.
func TestEachKindOfPauseIsNamed(t *testing.T) {
	t.Parallel()
	for file, words := range map[string]string{
		"telemetry.go": "1 while nothing is sent", "../docs/operations.md": "| `payouts.paused` |",
		"../docs/dashboard.json": "Nothing is sent: ", "../docs/alerts.yml": "The page says more. ",
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, about, _ := strings.Cut(string(text), words)
		about, _, _ = strings.Cut(about, "\n\n")
		for _, kind := range []string{inTrouble, brake, refused, onHold, byHand} {
			assert.Contains(t, about, kind, file)
		}
	}
}

func TestTheGaugesAreTheOrdersNumbers(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		page, err := os.ReadFile("../docs/operations.md")
		require.NoError(t, err)
		reader := sdkmetric.NewManualReader()
		s := openShop(t, source, func(c *Config) {
			c.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		})
		measured := func() (values map[string]float64, err error) {
			var all metricdata.ResourceMetrics
			err = reader.Collect(t.Context(), &all)
			values = map[string]float64{}
			for _, scope := range all.ScopeMetrics {
				for _, m := range scope.Metrics {
					assert.Contains(t, string(page), "`"+m.Name+"`")
					switch data := m.Data.(type) {
					case metricdata.Gauge[int64]:
						for _, p := range data.DataPoints {
							values[fmt.Sprint(m.Name, p.Attributes.ToSlice())] = float64(p.Value)
						}
					case metricdata.Gauge[float64]:
						values[m.Name] = data.DataPoints[0].Value
					}
				}
			}
			return values, err
		}
		values, err := measured()
		require.NoError(t, err)
		assert.Equal(t, map[string]float64{
			"payouts.idle": 0, "payouts.untold[]": 0, "payouts.oldest_untold.age": 0,
		}, values, "no replica has to run")
		end, err := s.observe()
		require.NoError(t, err)
		s.orders("A-1")
		s.loseResponse("A-2", true)
		s.do(`UPDATE @payouts_control SET worked_at = $1`, s.moment(time.Now().Add(-time.Hour)))
		s.do(`UPDATE @payouts_marks SET since = $1`, s.moment(time.Now().Add(-2*time.Hour)))
		values, err = measured()
		require.NoError(t, err)
		assert.InDelta(t, 3600, values["payouts.idle"], 30)
		assert.InDelta(t, 7200, values["payouts.oldest_untold.age"], 30)
		delete(values, "payouts.idle")
		delete(values, "payouts.oldest_untold.age")
		assert.Positive(t, values["payouts.oldest_unresolved.age"])
		assert.Positive(t, values["cardwire.journal.oldest_unresolved.age"])
		delete(values, "payouts.oldest_unresolved.age")
		delete(values, "cardwire.journal.oldest_unresolved.age")
		assert.Equal(t, map[string]float64{
			"payouts.orders[{\"state\":\"queued\"}]": 1, "payouts.orders[{\"state\":\"sending\"}]": 0,
			"payouts.orders[{\"state\":\"unresolved\"}]": 1, "payouts.paused[]": 0, "payouts.untold[]": 2,
			"cardwire.journal.unresolved[]": 1, "cardwire.journal.in_progress[]": 0,
		}, values)
		require.NoError(t, s.Hold(t.Context(), "Ada", "a restore"))
		values, err = measured()
		require.NoError(t, err)
		assert.InDelta(t, 1, values["payouts.paused[{\"why\":\"hold\"}]"], 0)
		s.do(`ALTER TABLE @payouts RENAME TO gone`)
		_, err = measured()
		require.Error(t, err, "zeros would look as if all were well")
		require.NoError(t, end())
	})
}
