package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name under which this program reports to OpenTelemetry. Set providers
// with otel.SetTracerProvider and otel.SetMeterProvider in main: without them nothing
// is reported.
const scope = "github.com/cardwire/cardwire-go/examples/apps/payouts"

var traceContext propagation.TraceContext

// startRequest begins the span of a request, in the trace of whoever made it.
func startRequest(ctx context.Context, t trace.Tracer, r *http.Request, name string) (context.Context, func()) {
	ctx = traceContext.Extract(ctx, propagation.HeaderCarrier(r.Header))
	ctx, span := t.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func() { span.End() }
}

// traceOf is a job's metadata: the trace of the request that made it. The job's
// arguments are the order's number and nothing else.
func traceOf(ctx context.Context) []byte {
	carrier := propagation.MapCarrier{}
	traceContext.Inject(ctx, carrier)
	text, err := json.Marshal(carrier)
	if err != nil { // a map of strings cannot fail
		return nil
	}
	return text
}

// startJob begins the span of a job, in the trace of the request. The call's own span,
// of cardwireotel, is its child.
func startJob(ctx context.Context, t trace.Tracer, job *rivertype.JobRow) (context.Context, func()) {
	var metadata map[string]any // River adds its own
	_ = json.Unmarshal(job.Metadata, &metadata)
	carrier := propagation.MapCarrier{}
	for name, value := range metadata {
		if text, ok := value.(string); ok {
			carrier[name] = text
		}
	}
	ctx, span := t.Start(traceContext.Extract(ctx, carrier), "payout", trace.WithSpanKind(trace.SpanKindConsumer))
	return ctx, func() { span.End() }
}

// observe reports how many orders have not ended, by state, and for how long the one
// that is unresolved for longest has been so. Replicas report the same numbers.
func (s *service) observe(meters metric.MeterProvider) (stop func() error, err error) {
	meter := meters.Meter(scope)
	orders, err1 := meter.Int64ObservableGauge("payouts.orders",
		metric.WithUnit("{order}"), metric.WithDescription("Orders that have not ended, by state."))
	age, err2 := meter.Float64ObservableGauge("payouts.oldest_unresolved.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the order that is unresolved for longest became so; 0: there is none."))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		counts, err1 := s.counts(ctx, unended)
		oldest, err2 := s.oldest(ctx)
		if err := errors.Join(err1, err2); err != nil {
			return err // zeros would look as if all were well
		}
		for _, c := range counts {
			o.ObserveInt64(orders, c.N, metric.WithAttributes(attribute.String("state", c.State)))
		}
		o.ObserveFloat64(age, oldest.Seconds())
		return nil
	}, orders, age)
	if err != nil {
		return nil, err
	}
	return registration.Unregister, nil
}

// oldest returns for how long one order has been unresolved at most; 0: there is none.
func (s *service) oldest(ctx context.Context) (time.Duration, error) {
	var since time.Time
	err := s.db.QueryRowContext(ctx, `SELECT changed_at FROM payouts WHERE state = 'unresolved' ORDER BY changed_at LIMIT 1`).Scan(&since)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return max(0, time.Since(since)), nil
}
