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

// observe reports the gauges of the journal and of the orders, until end is called. Replicas report the same numbers.
func (s *Service) observe() (end func() error, err error) {
	journal, err := cardwireotel.ObserveJournal(func(ctx context.Context) (int64, int64, time.Time, error) {
		stats, err := s.journal.Stats(ctx)
		return stats.InProgress, stats.Unresolved, stats.OldestUnresolved, err
	}, cardwireotel.WithMeterProvider(s.config.MeterProvider))
	if err != nil {
		return nil, err
	}
	orders, err := s.observeOrders()
	if err != nil {
		return nil, errors.Join(err, journal.Unregister())
	}
	return func() error { return errors.Join(orders.Unregister(), journal.Unregister()) }, nil
}

// observeOrders reports how many orders have not ended, how long the oldest of those that need a person has waited, and
// whether orders are sent.
func (s *Service) observeOrders() (metric.Registration, error) {
	meter := s.config.MeterProvider.Meter(scope)
	orders, err1 := meter.Int64ObservableGauge("payouts.orders",
		metric.WithUnit("{order}"), metric.WithDescription("Orders that have not ended, by state."))
	oldest, err2 := meter.Float64ObservableGauge("payouts.oldest_unresolved.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the last change of the oldest order "+
			"that a person has to look at; 0: there is none."))
	paused, err3 := meter.Int64ObservableGauge("payouts.paused",
		metric.WithDescription("1 while nothing is sent, with why: hold, brake, trouble, refused or by hand."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		totals, err1 := s.liveTotals(ctx)
		p, err2 := s.pausedNow(ctx, s.db)
		if err := errors.Join(err1, err2); err != nil {
			return err // zeros would look as if all were well
		}
		counts, waited := countsOf(totals), 0.0
		for _, state := range liveStates {
			o.ObserveInt64(orders, counts[state], metric.WithAttributes(attribute.String("state", string(state))))
		}
		for _, t := range totals {
			if t.State == StateUnresolved {
				waited = max(waited, secondsSince(t.Since))
			}
		}
		o.ObserveFloat64(oldest, waited)
		if p.Kind == "" {
			o.ObserveInt64(paused, 0)
		} else {
			o.ObserveInt64(paused, 1, metric.WithAttributes(attribute.String("why", p.Kind)))
		}
		return nil
	}, orders, oldest, paused)
}

// observeDelays reports the delays also where no replica runs. While they cannot be read nothing is reported: an
// error would take the program's other metrics with it.
func (s *Service) observeDelays() error {
	meter := s.config.MeterProvider.Meter(scope)
	idle, err1 := meter.Float64ObservableGauge("payouts.idle",
		metric.WithUnit("s"), metric.WithDescription("Time since a replica last worked; 0: less than a minute."))
	untold, err2 := meter.Int64ObservableGauge("payouts.untold", metric.WithUnit("{order}"),
		metric.WithDescription("Orders of which Changed has not been told for a minute or longer."))
	oldest, err3 := meter.Float64ObservableGauge("payouts.oldest_untold.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the oldest of these changes; 0: there is none."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		d, err := s.delays(ctx)
		if err != nil {
			return nil
		}
		o.ObserveFloat64(idle, secondsSince(d.Idle))
		o.ObserveInt64(untold, d.Untold)
		o.ObserveFloat64(oldest, secondsSince(d.UntoldSince))
		return nil
	}, idle, untold, oldest)
	return err
}

// secondsSince is 0 of the zero time, and of one in the future: clocks differ.
func secondsSince(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(time.Since(t), 0).Seconds()
}
