package docs_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	instrument = regexp.MustCompile(
		`meter\.(?:Int64|Float64)(Counter|Histogram|ObservableGauge)\("([\w.]+)",\s+(?:metric\.WithUnit\("([^"]+)"\))?`)
	attribute = regexp.MustCompile(`attribute\.\w+\("([\w.]+)", `)
)

// metrics returns the metrics and the attributes of the package in dir, as Prometheus names
// them.
func metrics(t *testing.T, dir string) (metrics, labels []string) {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	var text strings.Builder
	for _, source := range sources {
		if relative, err := filepath.Rel(root, source); err == nil && !strings.HasSuffix(source, "_test.go") {
			text.WriteString(document(t, relative))
		}
	}
	named := func(name string) string { return strings.ReplaceAll(name, ".", "_") }
	for _, made := range instrument.FindAllStringSubmatch(text.String(), -1) {
		suffix := map[string]string{"s": "_seconds"}[made[3]] + map[string]string{"Counter": "_total"}[made[1]]
		metrics = append(metrics, named(made[2])+suffix)
	}
	for _, attribute := range attribute.FindAllStringSubmatch(text.String(), -1) {
		labels = append(labels, named(attribute[1]))
	}
	return metrics, labels
}

// An alert on a metric that nothing reports never fires.
func TestAlertsAreOnAllMetricsAndNoOthers(t *testing.T) {
	t.Parallel()
	alerts := document(t, "docs/alerts.yml")
	known := map[string]bool{}
	for _, dir := range []string{"cardwireotel", "payouts"} {
		names, labels := metrics(t, dir)
		require.Greater(t, len(names), 2)
		for _, name := range append(names, labels...) {
			known[name] = true
		}
		for _, name := range names {
			isOwn := !strings.HasPrefix(name, "http_") // the others are for dashboards that are there
			assert.True(t, !isOwn || strings.Contains(alerts, name), "no alert is on %s", name)
		}
	}
	dashboard := document(t, "docs/dashboard.json")
	require.True(t, json.Valid([]byte(dashboard)))
	for _, name := range regexp.MustCompile(`\b(?:cardwire|payouts)_\w+`).FindAllString(alerts+dashboard, -1) {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		assert.True(t, known[base], "%s is not reported", name)
	}
}
