package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// scope is the name under which this program reports to OpenTelemetry. Metrics are at
// /metrics. Set a provider of traces with otel.SetTracerProvider in main: without one there
// are none.
const scope = "github.com/cardwire/cardwire-go/examples/apps/payouts"

var traceContext propagation.TraceContext

// startRequest begins the span of a request, in the trace of whoever made it.
func (s *service) startRequest(ctx context.Context, name string, r *http.Request) (context.Context, trace.Span) {
	ctx = traceContext.Extract(ctx, propagation.HeaderCarrier(r.Header))
	return s.tracers.Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
}

// traceOf is a job's metadata: the trace of the request that made it. The job's
// arguments are the order's number and nothing else.
func traceOf(ctx context.Context) []byte {
	carrier := propagation.MapCarrier{}
	traceContext.Inject(ctx, carrier)
	text, _ := json.Marshal(carrier) // a map of strings cannot fail
	return text
}

// startJob begins the span of a job, in the trace of the request. The call's own span,
// of cardwireotel, is its child.
func (s *service) startJob(ctx context.Context, job *rivertype.JobRow) (context.Context, trace.Span) {
	carrier := propagation.MapCarrier{}
	_ = json.Unmarshal(job.Metadata, &carrier) // what River adds may be no string, which is passed over
	ctx = traceContext.Extract(ctx, carrier)
	return s.tracers.Tracer(scope).Start(ctx, "payout", trace.WithSpanKind(trace.SpanKindConsumer))
}

// watch reports the journal's numbers as gauges of OpenTelemetry.
func watch(journal *sqljournal.Journal, opts ...cardwireotel.Option) (metric.Registration, error) {
	return cardwireotel.ObserveJournal(func(ctx context.Context) (int64, int64, time.Time, error) {
		stats, err := journal.Stats(ctx)
		return stats.InProgress, stats.Unresolved, stats.OldestUnresolved, err
	}, opts...)
}

// openMetrics has /metrics say, in the form of Prometheus, what is measured of the calls, the
// journal and the orders.
func (s *service) openMetrics(context.Context) error {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return err
	}
	s.metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	s.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	_, err = watch(s.journal, cardwireotel.WithMeterProvider(s.meters))
	return errors.Join(err, s.observe())
}

// observe reports how many orders have not ended, by state, since when the oldest that needs
// a person has waited, and whether the queue is paused. Replicas report the same numbers.
func (s *service) observe() error {
	meter := s.meters.Meter(scope)
	orders, err1 := meter.Int64ObservableGauge("payouts.orders",
		metric.WithUnit("{order}"), metric.WithDescription("Orders that have not ended, by state."))
	age, err2 := meter.Float64ObservableGauge("payouts.oldest_unresolved.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the last change of the oldest order "+
			"that a person has to look at; 0: there is none."))
	paused, err3 := meter.Int64ObservableGauge("payouts.paused",
		metric.WithDescription("1 while the queue is paused, with why: hold, brake, trouble or by hand."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		totals, err1 := s.liveTotals(ctx)
		p, err2 := s.pausedNow(ctx)
		if err := errors.Join(err1, err2); err != nil {
			return err // zeros would look as if all were well
		}
		counts, waited := countsOf(totals), time.Duration(0)
		for _, state := range unended {
			o.ObserveInt64(orders, counts[state], metric.WithAttributes(attribute.String("state", state)))
		}
		for _, t := range totals {
			if t.State == unresolved || t.State == forgotten || t.State == conflicted {
				waited = max(waited, time.Since(t.Since.Time)) // clocks of replicas differ
			}
		}
		o.ObserveFloat64(age, waited.Seconds())
		if p.Why == "" {
			o.ObserveInt64(paused, 0)
		} else {
			o.ObserveInt64(paused, 1, metric.WithAttributes(attribute.String("why", p.kind())))
		}
		return nil
	}, orders, age, paused)
	return err
}
