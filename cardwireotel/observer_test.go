package cardwireotel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwireotel"
)

// telemetry is what a client reported.
type telemetry struct {
	t      *testing.T
	traces *sdktrace.TracerProvider
	spans  *tracetest.InMemoryExporter
	meters *sdkmetric.ManualReader
}

// watched returns a client whose requests carrier responds to, and its telemetry.
func watched(t *testing.T, carrier http.RoundTripper, opts ...cardwire.Option) (*cardwire.Client, *telemetry) {
	t.Helper()
	w := &telemetry{t: t, spans: tracetest.NewInMemoryExporter(), meters: sdkmetric.NewManualReader()}
	w.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
	observer, err := cardwireotel.NewObserver(
		cardwireotel.WithTracerProvider(w.traces),
		cardwireotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.meters))))
	require.NoError(t, err)
	client, err := cardwire.New("https://api.example.com/api/v1", "sk-canary-key-1", append(opts,
		cardwire.WithHTTPClient(&http.Client{Transport: carrier}), cardwire.WithObserver(observer))...)
	require.NoError(t, err)
	return client, w
}

// span returns the one span of the client, as text: name, kind and status, then
// attributes and events, each on a line.
func (w *telemetry) span() string {
	w.t.Helper()
	var own []tracetest.SpanStub
	for _, s := range w.spans.GetSpans() {
		if s.InstrumentationScope.Name == cardwireotel.ScopeName {
			own = append(own, s)
		}
	}
	require.Len(w.t, own, 1)
	return spanText(own[0])
}

func spanText(s tracetest.SpanStub) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %q\n%s", s.Name, s.SpanKind, s.Status.Code, s.Status.Description, attributesText(s.Attributes))
	for _, e := range s.Events {
		fmt.Fprintf(&b, "event %s\n%s", e.Name, attributesText(e.Attributes))
	}
	return b.String()
}

func attributesText(list []attribute.KeyValue) string {
	var lines []string
	for _, a := range list {
		value := a.Value.String()
		if a.Key == cardwireotel.AttrDuration {
			value = "?" // of the clock
		}
		lines = append(lines, fmt.Sprintf("  %s = %s\n", a.Key, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// durations are the points of the histogram: operation and outcome, and how many.
func (w *telemetry) durations() map[string]uint64 {
	w.t.Helper()
	points := map[string]uint64{}
	for _, p := range w.histogram().DataPoints {
		operation, _ := p.Attributes.Value(cardwireotel.AttrOperation)
		outcome, _ := p.Attributes.Value(cardwireotel.AttrOutcome)
		assert.Equal(w.t, 2, p.Attributes.Len())
		points[operation.AsString()+" "+outcome.AsString()] = p.Count
	}
	return points
}

func (w *telemetry) histogram() metricdata.Histogram[float64] {
	w.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(w.t, w.meters.Collect(w.t.Context(), &all))
	require.Len(w.t, all.ScopeMetrics, 1)
	assert.Equal(w.t, cardwireotel.ScopeName, all.ScopeMetrics[0].Scope.Name)
	require.Len(w.t, all.ScopeMetrics[0].Metrics, 1)
	m := all.ScopeMetrics[0].Metrics[0]
	assert.Equal(w.t, "cardwire.call.duration", m.Name)
	assert.Equal(w.t, "s", m.Unit)
	h, ok := m.Data.(metricdata.Histogram[float64])
	require.True(w.t, ok)
	return h
}

// script responds to requests with its responses, one after the other.
type script []string

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	if next == "" {
		return nil, errors.New("reset, with the canary sk-canary-key-1")
	}
	status, body, _ := strings.Cut(next, " ")
	var code int
	if _, err := fmt.Sscan(status, &code); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func responses(list ...string) *script { return (*script)(&list) }

var transfer = cardwire.TransferParams{
	MerchantOrderNo: "order-canary-1", TransferAmount: decimal.RequireFromString("12.50"),
	ReceiverBankAccountNumber: "4000000000000009",
}

func TestASuccessIsASpanAndADuration(t *testing.T) {
	t.Parallel()
	client, told := watched(t, responses(`200 {"code":200,"msg":"success","data":{`+
		`"api_order_no":"api-canary-1","merchant_order_no":"order-canary-1","status":"wait_process"}}`))
	_, err := client.CreateTransfer(t.Context(), transfer)
	require.NoError(t, err)
	assert.Equal(t, `cardwire.CreateTransfer client Unset ""
  cardwire.attempts = 1
  cardwire.code = 200
  cardwire.operation = CreateTransfer
  cardwire.outcome = success
  cardwire.write = true
  http.request.method = POST
  http.response.status_code = 200
event cardwire.attempt
  cardwire.attempt.duration = ?
  cardwire.attempt.phase = received
  http.response.status_code = 200
`, told.span())
	assert.Equal(t, map[string]uint64{"CreateTransfer success": 1}, told.durations())
}

func TestRetriesAreEventsOfOneSpan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, told := watched(t, responses("", "503 busy", `200 {"code":200,"msg":"success","data":7}`),
			cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 2}))
		_, err := client.CardCapacity(t.Context())
		require.NoError(t, err)
		assert.Equal(t, `cardwire.CardCapacity client Unset ""
  cardwire.attempts = 3
  cardwire.code = 200
  cardwire.operation = CardCapacity
  cardwire.outcome = success
  cardwire.write = false
  http.request.method = GET
  http.response.status_code = 200
event cardwire.attempt
  cardwire.attempt.duration = ?
  cardwire.attempt.phase = sent
  cardwire.attempt.wait = 1e-09
event cardwire.attempt
  cardwire.attempt.duration = ?
  cardwire.attempt.phase = received
  cardwire.attempt.wait = 1e-09
  http.response.status_code = 503
event cardwire.attempt
  cardwire.attempt.duration = ?
  cardwire.attempt.phase = received
  http.response.status_code = 200
`, told.span())
		assert.Equal(t, map[string]uint64{"CardCapacity success": 1}, told.durations())
	})
}

func TestEachFailureHasItsOutcomeAndType(t *testing.T) {
	t.Parallel()
	create := func(ctx context.Context, c *cardwire.Client) error {
		_, err := c.CreateTransfer(ctx, transfer)
		return err
	}
	getCard := func(ctx context.Context, c *cardwire.Client) error {
		_, err := c.GetCard(ctx, "card-1", cardwire.WithoutRetry())
		return err
	}
	keyless := cardwire.WithKeySource(func(context.Context) (string, error) { return "", errors.New("vault is down") })
	for name, tc := range map[string]struct {
		call     func(context.Context, *cardwire.Client) error
		response string
		opts     []cardwire.Option
		outcome  string
		kind     string
	}{
		"no key":               {create, "", []cardwire.Option{keyless}, "not_sent", "not_sent"},
		"a reset":              {create, "", nil, "unknown", "unknown"},
		"a bad gateway":        {create, "502 <html>", nil, "unknown", "unknown"},
		"refused":              {create, `200 {"code":422,"msg":"no 4000000000000009","data":null}`, nil, "refused", "refused"},
		"a wrong key":          {create, `401 {"code":401,"msg":"no","data":null}`, nil, "refused", "unauthorized"},
		"too many requests":    {create, `429 {"code":429,"msg":"no","data":null}`, nil, "refused", "rate_limited"},
		"a redirect":           {create, "307 ", nil, "unknown", "redirect"},
		"executed, unreadable": {create, `200 {"code":200,"msg":"success","data":{"merchant_order_no":"` + transfer.MerchantOrderNo + `"}}`, nil, "executed", "unreadable"},
		"unknown, unreadable":  {create, `200 {"code":200,"msg":"success","data":[]}`, nil, "unknown", "unreadable"},
		"too long":             {create, "200 " + strings.Repeat(" ", 65<<10), nil, "unknown", "too_large"},
		"no such card":         {getCard, `404 {"code":404,"msg":"no","data":null}`, nil, "refused", "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, told := watched(t, responses(tc.response), tc.opts...)
			require.Error(t, tc.call(t.Context(), client))
			text := told.span()
			assert.Contains(t, text, "\n  cardwire.outcome = "+tc.outcome+"\n")
			assert.Contains(t, text, "\n  error.type = "+tc.kind+"\n")
			assert.Contains(t, text, ` client Error "`+tc.outcome+`"`)
			for point := range told.durations() {
				assert.True(t, strings.HasSuffix(point, " "+tc.outcome), point)
			}
		})
	}
}

func TestTheContextsEndIsAType(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		kind string
	}{
		"a deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, "timeout"},
		"a cancellation": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, told := watched(t, hanging{})
				ctx, stop := tc.end(t.Context())
				defer stop()
				_, err := client.CardCapacity(ctx)
				require.ErrorIs(t, err, ctx.Err())
				assert.Contains(t, told.span(), "\n  error.type = "+tc.kind+"\n")
				points := told.histogram().DataPoints
				require.Len(t, points, 1)
				assert.InDelta(t, 1, points[0].Sum, 1e-9, "seconds of the call")
			})
		})
	}
}

// hanging does not respond before its request ends.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestDriftAndTheJournalsFailureAreEvents(t *testing.T) {
	t.Parallel()
	client, told := watched(t, responses(`200 {"code":200,"msg":"success","data":{"api_order_no":7,"canary":"4000000000000009"}}`),
		cardwire.WithJournal(forgetful{}))
	_, err := client.CreateTransfer(t.Context(), transfer)
	require.NoError(t, err)
	text := told.span()
	assert.Contains(t, text, "event cardwire.drift\n  cardwire.drift.kind = number for string\n  cardwire.drift.path = data.api_order_no\n")
	assert.Contains(t, text, "event cardwire.drift\n  cardwire.drift.kind = unknown field\n  cardwire.drift.path = data.*\n")
	assert.True(t, strings.HasSuffix(text, "event cardwire.journal_error\n"), text)
}

// forgetful is a journal that cannot record how a call ended.
type forgetful struct{}

func (forgetful) Begin(context.Context, cardwire.Intent) error { return nil }

func (forgetful) End(context.Context, cardwire.Intent, cardwire.IntentResult) error {
	return errors.New("disk full at order-canary-1")
}

// The call's span is a child of the caller's, and what carries the request sees
// it as the current one. Another observer's span in between takes nothing of it.
func TestTheSpanIsBetweenTheCallersAndTheRequests(t *testing.T) {
	t.Parallel()
	var current trace.SpanContext
	carrier := seeing(func(r *http.Request) (*http.Response, error) {
		current = trace.SpanContextFromContext(r.Context())
		return responses(`200 {"code":200,"msg":"success","data":7}`).RoundTrip(r)
	})
	var told *telemetry
	between := cardwire.Observer{CallStart: func(ctx context.Context, _ cardwire.CallInfo) context.Context {
		ctx, span := told.traces.Tracer("another").Start(ctx, "between")
		span.End()
		return ctx
	}}
	client, told := watched(t, carrier)
	observed, told2 := watched(t, carrier, cardwire.WithObserver(between))

	ctx, caller := told.traces.Tracer("caller").Start(t.Context(), "caller")
	_, err := client.CardCapacity(ctx)
	require.NoError(t, err)
	caller.End()
	spans := told.spans.GetSpans()
	require.Len(t, spans, 2)
	assert.Equal(t, spans[1].SpanContext.SpanID(), spans[0].Parent.SpanID())
	assert.Equal(t, spans[0].SpanContext.SpanID(), current.SpanID())

	_, err = observed.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.Contains(t, told2.span(), "event cardwire.attempt\n")
}

type seeing func(*http.Request) (*http.Response, error)

func (f seeing) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Whatever comes back, what is reported is one of a few names, and holds nothing
// of the request or the response.
func TestNothingSensitiveIsReported(t *testing.T) {
	t.Parallel()
	for _, response := range []string{
		"",
		`200 {"code":200,"msg":"canary","data":{"api_order_no":"canary"}}`,
		`200 {"code":422,"msg":"order-canary-1: 4000000000000009","data":"canary"}`,
		`200 {"code":200,"msg":"success","data":{"api_order_no":{"canary":4000000000000009}}}`,
		`200 {"code":200,"msg":"success","data":{"api_order_no":"1","canary":"sk-canary-key-1"}}`,
		"502 canary sk-canary-key-1",
	} {
		t.Run(response, func(t *testing.T) {
			t.Parallel()
			client, told := watched(t, responses(response), cardwire.WithJournal(forgetful{}))
			_, _ = client.CreateTransfer(t.Context(), transfer)
			stubs := told.spans.GetSpans()
			require.Len(t, stubs, 1)
			text := strings.ToLower(fmt.Sprintf("%+v %+v", stubs, told.histogram()))
			assert.NotContains(t, text, "canary")
			assert.NotContains(t, text, "4000000000000009")
			for _, name := range names(stubs[0]) {
				assert.Contains(t, documented, name)
			}
		})
	}
}

var documented = []string{
	"cardwire.operation", "cardwire.outcome", "cardwire.write", "cardwire.code", "cardwire.attempts", "error.type",
	"http.request.method", "http.response.status_code", "cardwire.attempt.phase", "cardwire.attempt.duration",
	"cardwire.attempt.wait", "cardwire.drift.path", "cardwire.drift.kind",
}

// names are those of all attributes of a span and its events.
func names(s tracetest.SpanStub) (list []string) {
	attributes := slices.Clone(s.Attributes)
	for _, e := range s.Events {
		attributes = append(attributes, e.Attributes...)
	}
	for _, a := range attributes {
		list = append(list, string(a.Key))
	}
	return list
}

// Without providers of its own the observer uses the global ones, which record
// nothing until the program sets them.
func TestTheGlobalProvidersAreTheDefault(t *testing.T) {
	t.Parallel()
	observer, err := cardwireotel.NewObserver(nil)
	require.NoError(t, err)
	client, err := cardwire.New("https://api.example.com/api/v1", "sk-1", cardwire.WithObserver(observer),
		cardwire.WithHTTPClient(&http.Client{Transport: responses(`200 {"code":200,"msg":"success","data":7}`)}))
	require.NoError(t, err)
	n, err := client.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(7), n)
}
