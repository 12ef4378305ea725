package docs_test

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// instrument is a function of OpenTelemetry's metrics that makes one.
var instrument = regexp.MustCompile(`^(?:Int64|Float64)(Counter|Histogram|ObservableGauge)$`)

// metrics returns the metrics and the attributes of the package in dir, as Prometheus names
// them.
func metrics(t *testing.T, dir string) (metrics, labels []string) {
	t.Helper()
	constants := map[string]string{}
	text := func(x ast.Expr) string {
		switch x := x.(type) {
		case *ast.Ident:
			return constants[x.Name]
		case *ast.BasicLit:
			value, _ := strconv.Unquote(x.Value) // "": a number
			return value
		}
		return ""
	}
	escaped := strings.NewReplacer(".", "_")
	files := wiretest.Source(t, filepath.Join(root, dir))
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				constants[spec.Names[0].Name] = text(spec.Values[0])
			}
			return true
		})
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := f.X.(*ast.Ident)
			switch {
			case of != nil && of.Name == "attribute":
				labels = append(labels, escaped.Replace(text(call.Args[0])))
			case instrument.MatchString(f.Sel.Name):
				suffix := map[string]string{"s": "_seconds"}[text(call.Args[1].(*ast.CallExpr).Args[0])]
				if strings.HasSuffix(f.Sel.Name, "Counter") {
					suffix += "_total"
				}
				metrics = append(metrics, escaped.Replace(text(call.Args[0]))+suffix)
			}
			return true
		})
	}
	return metrics, labels
}

// An alert on a metric that nothing reports never fires.
func TestAlertsAreOnAllMetricsAndNoOthers(t *testing.T) {
	t.Parallel()
	alerts := document(t, "docs/alerts.yml")
	known := map[string]bool{}
	for _, dir := range []string{"cardwireotel", "examples/apps/payouts"} {
		names, labels := metrics(t, dir)
		require.NotEmpty(t, names)
		for _, name := range append(names, labels...) {
			known[name] = true
		}
		for _, name := range names {
			assert.True(t, strings.Contains(alerts, name), "no alert is on %s", name)
		}
	}
	for _, name := range regexp.MustCompile(`\b(?:cardwire|payouts)_\w+`).FindAllString(alerts, -1) {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		assert.True(t, known[base], "%s is not reported", name)
	}
}
