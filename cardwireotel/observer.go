// Package cardwireotel reports the calls of a cardwire client to OpenTelemetry:
// a span and a duration for each.
//
//	observer, err := cardwireotel.NewObserver()
//	if err != nil {
//		return err
//	}
//	client, err := cardwire.NewFromEnv(cardwire.WithObserver(observer))
//
// [ObserveJournal] reports the numbers of a journal that need monitoring.
//
// A call is one span, a child of the caller's, however many requests it takes: the requests
// are its events, and so is what deviates from the API. Over the client's own connections each
// request has the span's traceparent, without baggage. Nothing that it reports identifies a
// customer: no path, query, reference, message or body. The names do not change before the
// next major version.
//
// What OpenTelemetry's conventions for HTTP clients name has that name, so that dashboards for them have
// data; what begins with cardwire is what they do not have. The attributes of a span:
//
//	cardwire.operation         like "CreateTransfer"; of cardwire.Call it is Request.Op
//	cardwire.read_only         whether the operation changes nothing
//	cardwire.outcome           "success" or, for a failed call, its outcome: "not_sent",
//	                           "refused", "unknown" or "executed"
//	cardwire.step              what to do after a failed call: see cardwire.NextStep
//	cardwire.code              the code of the envelope, if one was readable
//	error.type                 why the call failed, in one of a few words: see NewObserver
//	http.request.method        the HTTP method
//	http.request.resend_count  the number of requests made beyond the first, if there were any
//	http.response.status_code  the HTTP status, if there was a response
//	server.address             the host of the base URL
//	server.port                its port
//
// Its events, and their attributes:
//
//	cardwire.attempt           one request, with its http.response.status_code
//	cardwire.attempt.phase     how far it got: "connect", "sent" or "received"
//	cardwire.attempt.duration  how long it took, in seconds
//	cardwire.attempt.wait      the pause before the next one, in seconds, if there was one
//	cardwire.attempt.resent    true if the caller's HTTP client sent it more than once
//	cardwire.drift             a deviation from the API
//	cardwire.drift.path        where, like "data.data[].fee"
//	cardwire.drift.kind        what deviates, like "string for number"; never a value
//	cardwire.journal_error     the journal failed, or contradicts the result
//
// The metrics. The counters begin at 0, so that an alert on their increase sees the first:
//
//	http.client.request.duration  histogram of requests in seconds, by http.request.method,
//	                           http.response.status_code, server.address, server.port and error.type:
//	                           the status of 400 and above, "no_connection" or "no_response"
//	cardwire.call.duration     histogram of whole calls in seconds, retries and waits
//	                           included, by cardwire.operation and cardwire.outcome
//	cardwire.journal.errors    counter of the events cardwire.journal_error
//	cardwire.resent            counter of the requests of writes that the caller's HTTP client
//	                           sent more than once: somebody may have been paid twice
package cardwireotel

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/cardwire/cardwire-go"
)

// ScopeName is the name of the instrumentation scope of spans and metrics.
const ScopeName = "github.com/cardwire/cardwire-go/cardwireotel"

// Option configures the observer.
type Option func(*settings)

// settings are what the options choose; nil: the default.
type settings struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
}

// WithTracerProvider makes p the provider of the spans; nil, the default: OpenTelemetry's
// global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *settings) { s.tracers = p }
}

// WithMeterProvider makes p the provider of the metrics; nil, the default:
// OpenTelemetry's global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *settings) { s.meters = p }
}

// buckets are the bounds of the histogram in seconds: the ones that OpenTelemetry
// recommends for HTTP, and those of a call with retries and of an upload.
var buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300}

// NewObserver returns an observer for [cardwire.WithObserver].
//
// A failed call's span has the status Error, and its error.type is one of other_body,
// duplicate_intent, setup, invalid_params, unauthorized, not_found, rate_limited,
// parameter_ignored, drift, unreadable, too_large, redirect, canceled and timeout, or
// otherwise the outcome. NewObserver returns the meter provider's error if that cannot create
// a metric.
func NewObserver(opts ...Option) (cardwire.Observer, error) {
	s := settingsOf(opts)
	meter := s.meters.Meter(ScopeName)
	duration, err1 := meter.Float64Histogram("cardwire.call.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of a call, with its retries and waits."),
		metric.WithExplicitBucketBoundaries(buckets...))
	request, err4 := meter.Float64Histogram("http.client.request.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of HTTP client requests."),
		metric.WithExplicitBucketBoundaries(buckets...))
	unrecorded, err2 := meter.Int64Counter("cardwire.journal.errors",
		metric.WithUnit("{error}"), metric.WithDescription("Failures of the journal, and results that it contradicts."))
	resent, err3 := meter.Int64Counter("cardwire.resent",
		metric.WithUnit("{request}"),
		metric.WithDescription("Write requests that the HTTP client sent more than once."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return cardwire.Observer{}, err
	}
	unrecorded.Add(context.Background(), 0)
	resent.Add(context.Background(), 0)
	o := &observer{s.tracers.Tracer(ScopeName), duration, request, unrecorded, resent}
	return cardwire.Observer{
		CallStart: o.start, CallEnd: o.end,
		Attempt: o.attempt, Drift: drift, JournalError: o.journalError, TraceParent: traceParent,
	}, nil
}

// settingsOf returns the chosen providers, or else the global ones.
func settingsOf(opts []Option) (s settings) {
	for _, opt := range opts {
		if opt != nil {
			opt(&s)
		}
	}
	if s.tracers == nil {
		s.tracers = otel.GetTracerProvider()
	}
	if s.meters == nil {
		s.meters = otel.GetMeterProvider()
	}
	return s
}

type observer struct {
	tracer     trace.Tracer
	duration   metric.Float64Histogram // of calls
	request    metric.Float64Histogram // of requests
	unrecorded metric.Int64Counter
	resent     metric.Int64Counter
}

// spanKey finds a call's own span. The context's current one may be another
// observer's.
type spanKey struct{}

func spanOf(ctx context.Context) trace.Span {
	span, ok := ctx.Value(spanKey{}).(trace.Span)
	if !ok {
		return noop.Span{} // another observer replaced the context
	}
	return span
}

func (o *observer) start(ctx context.Context, c cardwire.CallInfo) context.Context {
	ctx, span := o.tracer.Start(ctx, "cardwire."+string(c.Op), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("cardwire.operation", string(c.Op)),
			attribute.Bool("cardwire.read_only", c.ReadOnly),
		), trace.WithAttributes(requestOf(c)...))
	return context.WithValue(ctx, spanKey{}, span)
}

func (o *observer) end(ctx context.Context, c cardwire.CallInfo, r cardwire.CallResult) {
	span := spanOf(ctx)
	outcome := outcomeOf(r)
	span.SetAttributes(attribute.String("cardwire.outcome", outcome))
	if r.Attempts > 1 {
		span.SetAttributes(attribute.Int("http.request.resend_count", r.Attempts-1))
	}
	span.SetAttributes(statusOf(r.HTTPStatus)...)
	if r.Code != 0 {
		span.SetAttributes(attribute.Int("cardwire.code", r.Code))
	}
	if r.Err != nil {
		span.SetAttributes(attribute.String("error.type", errorType(r.Err, outcome)),
			attribute.String("cardwire.step", cardwire.NextStep(r.Err).String()))
		span.SetStatus(codes.Error, outcome)
	}
	span.End()
	o.duration.Record(ctx, r.Duration.Seconds(), metric.WithAttributes(
		attribute.String("cardwire.operation", string(c.Op)), attribute.String("cardwire.outcome", outcome)))
}

func (o *observer) attempt(ctx context.Context, c cardwire.CallInfo, a cardwire.Attempt) {
	made := append(requestOf(c), statusOf(a.HTTPStatus)...)
	if failure := failureOf(a); failure != "" {
		made = append(made, attribute.String("error.type", failure))
	}
	o.request.Record(ctx, a.Duration.Seconds(), metric.WithAttributes(made...))
	attributes := append(statusOf(a.HTTPStatus),
		attribute.String("cardwire.attempt.phase", a.Phase), attribute.Float64("cardwire.attempt.duration", a.Duration.Seconds()))
	if a.Wait > 0 {
		attributes = append(attributes, attribute.Float64("cardwire.attempt.wait", a.Wait.Seconds()))
	}
	if a.Resent {
		attributes = append(attributes, attribute.Bool("cardwire.attempt.resent", true))
		o.resent.Add(ctx, 1)
	}
	spanOf(ctx).AddEvent("cardwire.attempt", trace.WithAttributes(attributes...))
}

func drift(ctx context.Context, _ cardwire.CallInfo, d cardwire.Drift) {
	spanOf(ctx).AddEvent("cardwire.drift", trace.WithAttributes(
		attribute.String("cardwire.drift.path", d.Path), attribute.String("cardwire.drift.kind", d.Kind)))
}

func (o *observer) journalError(ctx context.Context, _ cardwire.CallInfo, _ error) {
	spanOf(ctx).AddEvent("cardwire.journal_error") // the journal chose the error's message, which may contain anything
	o.unrecorded.Add(ctx, 1)
}

func traceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(ctx, spanOf(ctx)), carrier)
	return carrier["traceparent"]
}

// requestOf describes a call's requests.
func requestOf(c cardwire.CallInfo) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("http.request.method", c.Method)}
	host, port, err := net.SplitHostPort(c.Server)
	if number, err2 := strconv.Atoi(port); err == nil && err2 == nil {
		all = append(all, attribute.String("server.address", host), attribute.Int("server.port", number))
	}
	return all
}

// failureOf is the error.type of a request; "": it has a response below 400.
func failureOf(a cardwire.Attempt) string {
	switch {
	case a.HTTPStatus >= http.StatusBadRequest:
		return strconv.Itoa(a.HTTPStatus)
	case a.HTTPStatus == 0 && a.Phase == "connect":
		return "no_connection"
	case a.HTTPStatus == 0:
		return "no_response"
	}
	return ""
}

// statusOf returns the status of the response, if there was one.
func statusOf(status int) []attribute.KeyValue {
	if status == 0 {
		return nil
	}
	return []attribute.KeyValue{attribute.Int("http.response.status_code", status)}
}

func outcomeOf(r cardwire.CallResult) string {
	if r.Err == nil {
		return "success"
	}
	return r.Outcome.String()
}

// errorTypes are the causes that error.type distinguishes: the first that matches applies.
var errorTypes = []struct {
	cause error
	name  string
}{
	{cardwire.ErrOtherBody, "other_body"},
	{cardwire.ErrDuplicateIntent, "duplicate_intent"},
	{cardwire.ErrSetup, "setup"},
	{cardwire.ErrInvalidParams, "invalid_params"},
	{cardwire.ErrUnauthorized, "unauthorized"},
	{cardwire.ErrNotFound, "not_found"},
	{cardwire.ErrRateLimited, "rate_limited"},
	{cardwire.ErrParameterIgnored, "parameter_ignored"},
	{cardwire.ErrDrift, "drift"},
	{cardwire.ErrUnreadable, "unreadable"},
	{cardwire.ErrResponseTooLarge, "too_large"},
	{cardwire.ErrRedirect, "redirect"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "timeout"},
}

func errorType(err error, outcome string) string {
	for _, t := range errorTypes {
		if errors.Is(err, t.cause) {
			return t.name
		}
	}
	return outcome
}
