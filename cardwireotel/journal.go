package cardwireotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// ObserveJournal reports a journal's numbers as gauges:
//
//	cardwire.journal.in_progress            the intents whose calls may still send
//	cardwire.journal.unresolved             the intents whose outcome must be resolved
//	cardwire.journal.oldest_unresolved.age  the seconds since the oldest of those was begun;
//	                                        0: there is none
//
// At each collection it calls stats once, which returns them as sqljournal.Journal.Stats
// does; oldest is the zero time if nothing is unresolved. Of the options it uses only
// [WithMeterProvider].
//
// If stats fails, nothing is reported, so that an alert on missing values fires, and
// OpenTelemetry handles the error. Replicas that share a journal report the same
// numbers: take their maximum, not their sum. Unregister of the Registration ends it.
// ObserveJournal fails if stats is nil, or with the meter provider's error.
func ObserveJournal(stats func(ctx context.Context) (inProgress, unresolved int64, oldest time.Time, err error), opts ...Option) (metric.Registration, error) {
	if stats == nil {
		return nil, errors.New("cardwireotel: ObserveJournal: the function is nil")
	}
	meter := settingsOf(opts).meters.Meter(ScopeName)
	inProgress, err1 := meter.Int64ObservableGauge("cardwire.journal.in_progress",
		metric.WithUnit("{intent}"), metric.WithDescription("Intents in the journal whose calls may still send."))
	unresolved, err2 := meter.Int64ObservableGauge("cardwire.journal.unresolved",
		metric.WithUnit("{intent}"), metric.WithDescription("Intents in the journal whose outcome must be resolved."))
	age, err3 := meter.Float64ObservableGauge("cardwire.journal.oldest_unresolved.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the oldest unresolved intent was begun."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		open, due, oldest, err := stats(ctx)
		if err != nil {
			return err // zeros would look as if all was well
		}
		o.ObserveInt64(inProgress, open)
		o.ObserveInt64(unresolved, due)
		o.ObserveFloat64(age, ageOf(oldest).Seconds())
		return nil
	}, inProgress, unresolved, age)
}

// ageOf is never negative: the database's clock may be ahead of this machine's.
func ageOf(oldest time.Time) time.Duration {
	if oldest.IsZero() {
		return 0
	}
	return max(0, time.Since(oldest))
}
