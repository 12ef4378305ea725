package cardwireotel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/cardwireotel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collected returns all metrics by name, unit and attributes: the values of counters and
// gauges, and of a histogram how many calls took how long in all.
func collected(t *testing.T, reader *sdkmetric.ManualReader) (values map[string]string, err error) {
	t.Helper()
	var all metricdata.ResourceMetrics
	err = reader.Collect(t.Context(), &all)
	values = map[string]string{}
	for _, scope := range all.ScopeMetrics {
		assert.Equal(t, cardwireotel.ScopeName, scope.Scope.Name)
		for _, m := range scope.Metrics {
			assert.NotEmpty(t, m.Description)
			switch name := m.Name + " " + m.Unit + "\n"; data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				points(values, name, data.DataPoints)
			case metricdata.Gauge[float64]:
				points(values, name, data.DataPoints)
			case metricdata.Sum[int64]:
				points(values, name, data.DataPoints)
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					values[name+lines(p.Attributes.ToSlice())] = fmt.Sprintf("%d in %.9g", p.Count, p.Sum)
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return values, err
}

func points[N int64 | float64](values map[string]string, name string, list []metricdata.DataPoint[N]) {
	for _, p := range list {
		values[name+lines(p.Attributes.ToSlice())] = fmt.Sprint(p.Value)
	}
}

// lines returns the attributes in order, one on each line.
func lines(list []attribute.KeyValue) string {
	var text []string
	for _, a := range list {
		text = append(text, fmt.Sprintf("  %s = %s\n", a.Key, a.Value.String()))
	}
	slices.Sort(text)
	return strings.Join(text, "")
}
