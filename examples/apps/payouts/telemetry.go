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
	orders, err := meter.Int64ObservableGauge("payouts.orders",
		metric.WithUnit("{order}"), metric.WithDescription("Orders that have not ended, by state."))
	if err != nil {
		return nil, err
	}
	age, err := meter.Float64ObservableGauge("payouts.oldest_unresolved.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the order that is unresolved for longest became so; 0: there is none."))
	if err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		counts, oldest, err := s.open(ctx)
		if err != nil {
			return err // zeros would look as if all were well
		}
		for _, state := range unended {
			o.ObserveInt64(orders, counts[state], metric.WithAttributes(attribute.String("state", state)))
		}
		o.ObserveFloat64(age, oldest.Seconds())
		return nil
	}, orders, age)
	if err != nil {
		return nil, err
	}
	return registration.Unregister, nil
}

var unended = []string{queued, sending, unresolved}

// open counts the orders that have not ended, and returns for how long one has been
// unresolved at most.
func (s *service) open(ctx context.Context) (counts map[string]int64, oldest time.Duration, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT state, count(*) FROM payouts WHERE state IN ('queued', 'sending', 'unresolved') GROUP BY state`)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	counts = map[string]int64{}
	for rows.Next() {
		var state string
		var n int64
		if err := rows.Scan(&state, &n); err != nil {
			return nil, 0, err
		}
		counts[state] = n
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, 0, err
	}
	var since time.Time
	err = s.db.QueryRowContext(ctx, `SELECT changed_at FROM payouts WHERE state = 'unresolved' ORDER BY changed_at LIMIT 1`).Scan(&since)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return counts, 0, nil
	case err != nil:
		return nil, 0, err
	}
	return counts, max(0, time.Since(since)), nil
}
