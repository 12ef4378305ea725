package cardwireotel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/journal"
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
	opts = append([]cardwire.Option{cardwire.WithJournal(journal.NewMemory())}, opts...)
	client, err := cardwire.New("https://api.example.com/api/v1", "sk-canary-key-1", append(opts,
		cardwire.WithHTTPClient(&http.Client{Transport: carrier}), cardwire.WithObserver(observer))...)
	require.NoError(t, err)
	return client, w
}

// documented are the attributes. No other is reported, and nothing of the request or the response.
var documented = []string{
	"cardwire.operation", "cardwire.outcome", "cardwire.read_only", "cardwire.code", "cardwire.step", "error.type",
	"http.request.resend_count", "server.address", "server.port",
	"http.request.method", "http.response.status_code", "cardwire.attempt.phase", "cardwire.attempt.duration",
	"cardwire.attempt.wait", "cardwire.attempt.resent", "cardwire.drift.path", "cardwire.drift.kind",
}

// span returns the one span of the client, as text: name, kind and status, then
// attributes and events, each on a line. The duration of an attempt is left out.
func (w *telemetry) span() string {
	w.t.Helper()
	own := slices.DeleteFunc(w.spans.GetSpans(), func(s tracetest.SpanStub) bool {
		return s.InstrumentationScope.Name != cardwireotel.ScopeName
	})
	require.Len(w.t, own, 1)
	s := own[0]
	text := fmt.Sprintf("%s %s %s %q\n%s", s.Name, s.SpanKind, s.Status.Code, s.Status.Description, lines(s.Attributes))
	for _, e := range s.Events {
		text += fmt.Sprintf("event %s\n%s", e.Name, lines(e.Attributes))
	}
	all := strings.ToLower(fmt.Sprintf("%+v %+v", own, w.metrics()))
	assert.NotContains(w.t, all, "canary")
	assert.NotContains(w.t, all, "4000000000000009")
	for _, attribute := range regexp.MustCompile(`(?m)^  (\S+) = `).FindAllStringSubmatch(text, -1) {
		assert.Contains(w.t, documented, attribute[1])
	}
	return regexp.MustCompile(`(attempt.duration =) .*`).ReplaceAllString(text, "$1 ?")
}

// metrics are those that the client reported.
func (w *telemetry) metrics() map[string]string {
	w.t.Helper()
	values, err := collected(w.t, w.meters)
	require.NoError(w.t, err)
	return values
}

// duration is the metric of a call that ended so.
func duration(operation, outcome string) string {
	return "cardwire.call.duration s\n  cardwire.operation = " + operation + "\n  cardwire.outcome = " + outcome + "\n"
}

// request is the metric of requests that ended so, as OpenTelemetry's conventions name it.
func request(attributes string) string {
	return "http.client.request.duration s\n  " + attributes +
		"\n  server.address = api.example.com\n  server.port = 443\n"
}

// responses are the responses to requests, one after the other: a status and a body; "": none.
func responses(list ...string) wiretest.RoundTripper {
	return func(r *http.Request) (*http.Response, error) {
		next := list[0]
		list = list[1:]
		if next == "" {
			return nil, errors.New("reset, with the canary sk-canary-key-1")
		}
		status, body, _ := strings.Cut(next, " ")
		code, err := strconv.Atoi(status)
		return wiretest.Response(r, code, body), err
	}
}

var transfer = cardwire.TransferParams{
	MerchantOrderNo: "order-canary-1", TransferAmount: decimal.RequireFromString("12.50"),
	ReceiverBankAccountNumber: "4000000000000009",
}

// A write that the HTTP client sends twice, whose response drifts, and whose end the journal cannot
// record, is one span with all of that.
func TestACallIsASpanAndADuration(t *testing.T) {
	t.Parallel()
	response := responses(`200 {"code":200,"msg":"success","data":{"merchant_order_no":"order-canary-1",` +
		`"api_order_no":7,"status":"canary","canary":"4000000000000009"}}`)
	client, told := watched(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		for range 2 { // as of a RoundTripper that retries
			httptrace.ContextClientTrace(r.Context()).WroteHeaders()
		}
		return response(r)
	}), cardwire.WithJournal(forgetful()))
	_, err := client.CreateTransfer(t.Context(), transfer)
	require.ErrorIs(t, err, cardwire.ErrSetup, "it is told to the caller, too")
	assert.Equal(t, `cardwire.CreateTransfer client Error "executed"
  cardwire.code = 200
  cardwire.operation = CreateTransfer
  cardwire.outcome = executed
  cardwire.read_only = false
  cardwire.step = done
  error.type = setup
  http.request.method = POST
  http.response.status_code = 200
  server.address = api.example.com
  server.port = 443
event cardwire.attempt
  cardwire.attempt.duration = ?
  cardwire.attempt.phase = received
  cardwire.attempt.resent = true
  http.response.status_code = 200
event cardwire.drift
  cardwire.drift.kind = number for string
  cardwire.drift.path = data.api_order_no
event cardwire.drift
  cardwire.drift.kind = unknown field
  cardwire.drift.path = data.*
event cardwire.journal_error
`, told.span())
	metrics := told.metrics()
	assert.Contains(t, metrics, duration("CreateTransfer", "executed"))
	assert.Equal(t, "1", metrics["cardwire.resent {request}\n"])
	assert.Equal(t, "1", metrics["cardwire.journal.errors {error}\n"])
}

func TestRetriesAreEventsOfOneSpan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, told := watched(t, responses("", "503 busy", `200 {"code":200,"msg":"success","data":7}`),
			cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 2}))
		_, err := client.CardCapacity(t.Context())
		require.NoError(t, err)
		assert.Equal(t, `cardwire.CardCapacity client Unset ""
  cardwire.code = 200
  cardwire.operation = CardCapacity
  cardwire.outcome = success
  cardwire.read_only = true
  http.request.method = GET
  http.request.resend_count = 2
  http.response.status_code = 200
  server.address = api.example.com
  server.port = 443
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
		assert.Equal(t, map[string]string{
			duration("CardCapacity", "success"): "1 in 2e-09", "cardwire.journal.errors {error}\n": "0",
			"cardwire.resent {request}\n":                                                               "0",
			request("error.type = no_response\n  http.request.method = GET"):                            "1 in 0",
			request("error.type = 503\n  http.request.method = GET\n  http.response.status_code = 503"): "1 in 0",
			request("http.request.method = GET\n  http.response.status_code = 200"):                     "1 in 0",
		}, told.metrics())
	})
}

func TestEachFailureHasItsOutcomeAndType(t *testing.T) {
	t.Parallel()
	keyless := func(err error) []cardwire.Option {
		return []cardwire.Option{cardwire.WithKeySource(func(context.Context) (string, error) { return "", err })}
	}
	named := `200 {"code":200,"msg":"success","data":{"merchant_order_no":"` + transfer.MerchantOrderNo + `"}}`
	for _, tc := range []struct {
		response, outcome, kind string
		opts                    []cardwire.Option
	}{
		{"", "not_sent", "not_sent", keyless(errors.New("vault is down"))},
		{"", "not_sent", "timeout", keyless(context.DeadlineExceeded)},
		{"", "not_sent", "canceled", keyless(context.Canceled)},
		{"", "unknown", "unknown", nil},
		{"502 canary sk-canary-key-1", "unknown", "unreadable", nil},
		{`200 {"code":422,"msg":"invalid: 4000000000000009","data":"canary"}`, "refused", "refused", nil},
		{`401 {"code":401,"msg":"no","data":null}`, "refused", "unauthorized", nil},
		{`404 {"code":404,"msg":"invalid account","data":null}`, "refused", "not_found", nil},
		{`429 {"code":429,"msg":"no","data":null}`, "refused", "rate_limited", nil},
		{"307 ", "unknown", "redirect", nil},
		{named, "executed", "unreadable", nil},
		{`200 {"code":200,"msg":"success","data":{"canary":4000000000000009}}`, "unknown", "unreadable", nil},
		{"200 " + strings.Repeat(" ", 65<<10), "unknown", "too_large", nil},
	} {
		t.Run(tc.kind+" "+tc.outcome, func(t *testing.T) {
			t.Parallel()
			client, told := watched(t, responses(tc.response), tc.opts...)
			_, err := client.CreateTransfer(t.Context(), transfer)
			require.Error(t, err)
			text := told.span()
			assert.Contains(t, text, "\n  cardwire.outcome = "+tc.outcome+"\n")
			assert.Contains(t, text, "\n  error.type = "+tc.kind+"\n")
			assert.Contains(t, text, "\n  cardwire.step = "+cardwire.NextStep(err).String()+"\n")
			assert.Contains(t, text, ` client Error "`+tc.outcome+`"`)
			assert.Contains(t, told.metrics(), duration("CreateTransfer", tc.outcome))
		})
	}
}

// forgetful is a journal that cannot record how a call ended.
func forgetful() cardwire.Journal {
	return &wiretest.Journal{OnEnd: func(context.Context, cardwire.Intent, cardwire.IntentResult) error {
		return errors.New("disk full at order-canary-1")
	}}
}

// The call's span is a child of the caller's, and what carries the request sees
// it as the current one. Another observer's span in between takes nothing of it.
func TestTheSpanIsBetweenTheCallersAndTheRequests(t *testing.T) {
	t.Parallel()
	var current trace.SpanContext
	carrier := wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
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

// Baggage, which may be personal data, and another observer's span stay here.
func TestTraceParentIsThatOfTheCallsSpan(t *testing.T) {
	t.Parallel()
	tracers := sdktrace.NewTracerProvider()
	observer, err := cardwireotel.NewObserver(cardwireotel.WithTracerProvider(tracers))
	require.NoError(t, err)
	ctx := observer.CallStart(t.Context(), cardwire.CallInfo{Op: cardwire.OpGetCard})
	span := trace.SpanContextFromContext(ctx)
	ctx, _ = tracers.Tracer("another").Start(ctx, "inner")
	assert.Equal(t, "00-"+span.TraceID().String()+"-"+span.SpanID().String()+"-01", observer.TraceParent(ctx))
	assert.Empty(t, observer.TraceParent(t.Context()))
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
