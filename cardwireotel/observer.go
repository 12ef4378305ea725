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
// are its events, and so is what deviates from the API. Nothing that it reports identifies a
// customer: no path, query, reference, message or body.
package cardwireotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/cardwire/cardwire-go"
)

// ScopeName is the name of the instrumentation scope of spans and metrics.
const ScopeName = "github.com/cardwire/cardwire-go/cardwireotel"

// The names of what is reported. They do not change before the next major version.
const (
	// CallDuration is the histogram of whole calls in seconds, retries and waits
	// included. Its attributes are AttrOperation and AttrOutcome.
	CallDuration = "cardwire.call.duration"
	// JournalErrors is the counter of the events EventJournalError. It begins at 0, so
	// that an alert on its increase sees the first.
	JournalErrors = "cardwire.journal.errors"
	// ResentWrites is the counter of write requests that the caller's HTTP client sent more
	// than once: somebody may have been paid twice. It begins at 0.
	ResentWrites = "cardwire.resent"

	// EventAttempt is the event of one request, with AttrPhase, AttrHTTPStatus,
	// AttrDuration, AttrWait and AttrResent.
	EventAttempt = "cardwire.attempt"
	// EventDrift is the event of a deviation from the API, with
	// AttrDriftPath and AttrDriftKind.
	EventDrift = "cardwire.drift"
	// EventJournalError is the event of a journal that failed, or contradicts a result.
	EventJournalError = "cardwire.journal_error"

	// AttrOperation is the operation, like "CreateTransfer"; of [cardwire.Call] it is
	// Request.Op.
	AttrOperation = "cardwire.operation"
	// AttrOutcome is "success" or, for a failed call, its outcome: "not_sent", "refused",
	// "unknown" or "executed".
	AttrOutcome = "cardwire.outcome"
	// AttrWrite reports whether the operation changes something.
	AttrWrite = "cardwire.write"
	// AttrCode is the code of the envelope, if one was readable.
	AttrCode = "cardwire.code"
	// AttrAttempts is the number of requests made.
	AttrAttempts = "cardwire.attempts"
	// AttrErrorType is why the call failed, in one of a few words: see [NewObserver].
	AttrErrorType = "error.type"
	// AttrHTTPMethod is the HTTP method.
	AttrHTTPMethod = "http.request.method"
	// AttrHTTPStatus is the HTTP status, if there was a response.
	AttrHTTPStatus = "http.response.status_code"
	// AttrPhase is how far a request got: "connect", "sent" or "received".
	AttrPhase = "cardwire.attempt.phase"
	// AttrDuration is how long a request took, in seconds.
	AttrDuration = "cardwire.attempt.duration"
	// AttrWait is the pause before the next request, in seconds, if there was one.
	AttrWait = "cardwire.attempt.wait"
	// AttrResent is true if the request is one of ResentWrites.
	AttrResent = "cardwire.attempt.resent"
	// AttrDriftPath is where a response deviates, like "data.data[].fee".
	AttrDriftPath = "cardwire.drift.path"
	// AttrDriftKind is how it deviates, like "string for number"; never a value.
	AttrDriftKind = "cardwire.drift.kind"
)

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
// A failed call's span has the status Error, and AttrErrorType is one of other_body,
// duplicate_intent, setup, invalid_params, unauthorized, not_found, rate_limited,
// parameter_ignored, drift, unreadable, too_large, redirect, canceled and timeout, or
// otherwise the outcome. NewObserver returns the meter provider's error if that cannot create
// a metric.
func NewObserver(opts ...Option) (cardwire.Observer, error) {
	s := settingsOf(opts)
	meter := s.meters.Meter(ScopeName)
	duration, err1 := meter.Float64Histogram(CallDuration,
		metric.WithUnit("s"), metric.WithDescription("Duration of a call, with its retries and waits."),
		metric.WithExplicitBucketBoundaries(buckets...))
	unrecorded, err2 := meter.Int64Counter(JournalErrors,
		metric.WithUnit("{error}"), metric.WithDescription("Failures of the journal, and results that it contradicts."))
	resent, err3 := meter.Int64Counter(ResentWrites,
		metric.WithUnit("{request}"),
		metric.WithDescription("Write requests that the HTTP client sent more than once."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return cardwire.Observer{}, err
	}
	unrecorded.Add(context.Background(), 0)
	resent.Add(context.Background(), 0)
	o := &observer{s.tracers.Tracer(ScopeName), duration, unrecorded, resent}
	return cardwire.Observer{
		CallStart: o.start, CallEnd: o.end,
		Attempt: o.attempt, Drift: drift, JournalError: o.journalError,
	}, nil
}

// settingsOf are the chosen providers, or else the global ones.
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
	duration   metric.Float64Histogram
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
	ctx, span := o.tracer.Start(ctx, "cardwire."+c.Op, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String(AttrOperation, c.Op),
		attribute.Bool(AttrWrite, c.Write),
		attribute.String(AttrHTTPMethod, c.Method),
	))
	return context.WithValue(ctx, spanKey{}, span)
}

func (o *observer) end(ctx context.Context, c cardwire.CallInfo, r cardwire.CallResult) {
	span := spanOf(ctx)
	outcome := outcomeOf(r)
	span.SetAttributes(attribute.String(AttrOutcome, outcome), attribute.Int(AttrAttempts, r.Attempts))
	span.SetAttributes(statusOf(r.HTTPStatus)...)
	if r.Code != 0 {
		span.SetAttributes(attribute.Int(AttrCode, r.Code))
	}
	if r.Err != nil {
		span.SetAttributes(attribute.String(AttrErrorType, errorType(r.Err, outcome)))
		span.SetStatus(codes.Error, outcome)
	}
	span.End()
	o.duration.Record(ctx, r.Duration.Seconds(), metric.WithAttributes(
		attribute.String(AttrOperation, c.Op), attribute.String(AttrOutcome, outcome)))
}

func (o *observer) attempt(ctx context.Context, _ cardwire.CallInfo, a cardwire.Attempt) {
	attributes := append(statusOf(a.HTTPStatus),
		attribute.String(AttrPhase, a.Phase), attribute.Float64(AttrDuration, a.Duration.Seconds()))
	if a.Wait > 0 {
		attributes = append(attributes, attribute.Float64(AttrWait, a.Wait.Seconds()))
	}
	if a.Resent {
		attributes = append(attributes, attribute.Bool(AttrResent, true))
		o.resent.Add(ctx, 1)
	}
	spanOf(ctx).AddEvent(EventAttempt, trace.WithAttributes(attributes...))
}

func drift(ctx context.Context, _ cardwire.CallInfo, d cardwire.Drift) {
	spanOf(ctx).AddEvent(EventDrift, trace.WithAttributes(
		attribute.String(AttrDriftPath, d.Path), attribute.String(AttrDriftKind, d.Kind)))
}

func (o *observer) journalError(ctx context.Context, _ cardwire.CallInfo, _ error) {
	spanOf(ctx).AddEvent(EventJournalError) // the journal chose the error's message, which may contain anything
	o.unrecorded.Add(ctx, 1)
}

// statusOf returns the status of the response, if there was one.
func statusOf(status int) []attribute.KeyValue {
	if status == 0 {
		return nil
	}
	return []attribute.KeyValue{attribute.Int(AttrHTTPStatus, status)}
}

func outcomeOf(r cardwire.CallResult) string {
	if r.Err == nil {
		return "success"
	}
	switch r.Outcome {
	case cardwire.OutcomeNotSent:
		return "not_sent"
	case cardwire.OutcomeRefused:
		return "refused"
	case cardwire.OutcomeExecuted:
		return "executed"
	case cardwire.OutcomeUnknown:
	}
	return "unknown"
}

// errorTypes are the causes that AttrErrorType distinguishes: the first that matches applies.
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
