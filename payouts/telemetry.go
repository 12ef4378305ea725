package payouts

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cardwire/cardwire-go/cardwireotel"
)

// scope is the name under which this package reports to OpenTelemetry.
const scope = "github.com/cardwire/cardwire-go/payouts"

var traceContext propagation.TraceContext

// traceOf is a job's metadata: the trace in which the order was submitted. The job's
// arguments are the order's number and nothing else.
func traceOf(ctx context.Context) []byte {
	carrier := propagation.MapCarrier{}
	traceContext.Inject(ctx, carrier)
	text, _ := json.Marshal(carrier) // a map of strings cannot fail
	return text
}

// startJob begins the span of a job, in the trace of the order. The call's own span,
// of cardwireotel, is its child.
func (s *Service) startJob(ctx context.Context, job *rivertype.JobRow) (context.Context, trace.Span) {
	carrier := propagation.MapCarrier{}
	_ = json.Unmarshal(job.Metadata, &carrier) // what River adds may be no string, which is passed over
	ctx = traceContext.Extract(ctx, carrier)
	return s.config.TracerProvider.Tracer(scope).Start(ctx, "payout", trace.WithSpanKind(trace.SpanKindConsumer))
}

// observe reports the journal's numbers, how many orders have not ended, by state, since when the oldest that
// needs a person has waited, and whether nothing is sent. Replicas report the same numbers.
func (s *Service) observe() (end func() error, err error) {
	journal, err := cardwireotel.ObserveJournal(func(ctx context.Context) (int64, int64, time.Time, error) {
		stats, err := s.journal.Stats(ctx)
		return stats.InProgress, stats.Unresolved, stats.OldestUnresolved, err
	}, cardwireotel.WithMeterProvider(s.config.MeterProvider))
	if err != nil {
		return nil, err
	}
	meter := s.config.MeterProvider.Meter(scope)
	orders, err1 := meter.Int64ObservableGauge("payouts.orders",
		metric.WithUnit("{order}"), metric.WithDescription("Orders that have not ended, by state."))
	oldest, err2 := meter.Float64ObservableGauge("payouts.oldest_unresolved.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the last change of the oldest order "+
			"that a person has to look at; 0: there is none."))
	paused, err3 := meter.Int64ObservableGauge("payouts.paused",
		metric.WithDescription("1 while nothing is sent, with why: hold, brake, trouble, refused or by hand."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return journal.Unregister, errors.Join(err, journal.Unregister())
	}
	own, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		totals, err1 := s.liveTotals(ctx)
		p, err2 := s.pausedNow(ctx, s.db)
		if err := errors.Join(err1, err2); err != nil {
			return err // zeros would look as if all were well
		}
		counts, waited := countsOf(totals), time.Duration(0)
		for _, state := range liveStates {
			o.ObserveInt64(orders, counts[state], metric.WithAttributes(attribute.String("state", string(state))))
		}
		for _, t := range totals {
			if t.State == StateUnresolved {
				waited = max(waited, time.Since(t.Since)) // clocks of replicas differ
			}
		}
		o.ObserveFloat64(oldest, waited.Seconds())
		if p.Kind == "" {
			o.ObserveInt64(paused, 0)
		} else {
			o.ObserveInt64(paused, 1, metric.WithAttributes(attribute.String("why", p.Kind)))
		}
		return nil
	}, orders, oldest, paused)
	return func() error { return errors.Join(own.Unregister(), journal.Unregister()) }, err
}
